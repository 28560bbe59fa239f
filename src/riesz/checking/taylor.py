"""The Taylor test: how fast f(x + h·dx) − f(x) − h·f'(x)dx falls with h, and what is wrong where it falls too
slowly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Leaves = list[Any]
"""Arrays of float64, one per array of a value."""
Line = Callable[[float], Leaves]
"""A function along a direction: of h."""


class Slope(NamedTuple):
    """How fast a remainder falls: its order in h (∞: it is rounding from the start; nan: it cannot be said)."""

    order: float
    ok: bool
    note: str = ""
    draw: int = 0
    result: int = 0

    def __str__(self) -> str:
        return "exact" if self.order == math.inf else "none" if math.isnan(self.order) else f"order {self.order:.2f}"


class Called(NamedTuple):
    """What the function and its derivative are called in notes."""

    function: str = "f"
    here: str = "f(x)"
    moved: str = "f(x + h·dx)"
    derivative: str = "f'(x)dx"


PLAIN = Called()


# Note [Taylor]: the remainder r(h) is measured at h = 1, 1/4, 1/16, … down to where x + h·dx is x but for a few last
# digits. There r is rounding: its largest value at the five smallest h says how much of it f makes. Larger remainders
# count, if they are also more than √ε of h·f'(x)dx: derivatives that agree to half of the digits are the same here. Of
# what counts, the smallest h decide; larger ones may meet kinks, the end of the domain or other terms of the series.
# Where f'(x) is wrong, r falls like h until it drowns. Where it is right, r falls like h² or, where f is linear near x
# with a kink further off, drops to rounding all at once: so the fall from the last remainder that counts to where
# counting ends is looked at too. Under the order-1 law that fall is at most the ratio of two steps, so it cannot excuse
# a wrong derivative. Last, where f loses many digits it stands still for the smallest h; there it is enough that two
# steps in a row agree with f'(x)dx closely.
def slopes(f: Line, y: Leaves, dy: Leaves, eps: float, called: Called = PLAIN) -> list[Slope]:
    """For each array, the order in h of f(h) − y − h·dy, where eps is the rounding of one operation."""
    ratio, count = (4.0, 25) if eps < 1e-10 else (2.0, 20)
    steps = ratio ** -np.arange(count)
    remainders, sizes = np.full((2, count, len(y)), np.nan)
    problem = ""
    for k, h in enumerate(steps):
        try:
            there = f(float(h))
        except Exception as error:  # outside the domain; if it is never inside, that is said
            problem = f": {type(error).__name__}: {error}"
            continue
        for j, (a, b, d) in enumerate(zip(there, y, dy, strict=True)):
            remainders[k, j], sizes[k, j] = _norm(a - b - h * d), max(_norm(a), _norm(a - b))
    found: list[Slope] = []
    for j, (b, d) in enumerate(zip(y, dy, strict=True)):
        finite = np.isfinite(b).all(), np.isfinite(d).all()
        if not all(finite):
            found.append(Slope(math.nan, False, f"{called.derivative if finite[0] else called.here} is not finite"))
        elif not np.isfinite(remainders[-5:, j]).any():
            found.append(Slope(math.nan, False, f"{called.moved} is not finite, however small h{problem}"))
        else:
            slope, step = _slope(steps, remainders[:, j], sizes[:, j], _norm(b), _norm(d), eps)
            found.append(slope if slope.ok else slope._replace(note=_diagnosis(f, b, d, steps, step, j, called)))
    return found


def _slope(h: Any, r: Any, sizes: Any, y: float, dy: float, eps: float) -> tuple[Slope, int | None]:
    """The order from the remainders, and the smallest step that counts. See Note [Taylor]."""
    known = np.isfinite(r)
    rounding = float(np.max(r[-5:][known[-5:]]))
    signal = max(float(np.max(sizes[known])), float(h[0]) * dy)
    if rounding > 1e-3 * signal and rounding > 1e3 * eps * (1.0 + y):
        return Slope(math.nan, False), None
    level = 10.0 * np.maximum(rounding, 2.0 * eps * (y + np.where(known, sizes, 0.0) + h * dy))
    level = np.maximum(level, math.sqrt(eps) * h * dy)
    counts = np.flatnonzero(known & (np.where(known, r, 0.0) > level))
    if len(counts) < 2:
        return Slope(math.inf, True), None
    before, last = int(counts[-2]), int(counts[-1])
    logs = np.log(h[counts[-4:]]), np.log(r[counts[-4:]])
    fitted = float(np.polyfit(*logs, 1)[0])  # pyright: ignore  (the slope of log r over log h)
    end = math.log(r[before] / r[last]) / math.log(h[before] / h[last])
    drop = math.log(r[last] / level[last + 1]) / math.log(h[0] / h[1]) if last + 1 < len(h) and known[last + 1] else 0.0
    order = fitted if fitted > 1.5 else max(fitted, end, drop)
    close = known & (np.where(known, r, np.inf) <= 5.0 * math.sqrt(eps) * dy * h)
    agree = bool((close[1:] & close[:-1]).any())
    return Slope(order if order > 1.5 or not agree else math.inf, order > 1.5 or agree), last


def _diagnosis(f: Line, y: Any, dy: Any, steps: Any, step: int | None, j: int, called: Called) -> str:
    """What differences on both sides say about a derivative that is wrong."""
    if step is None:
        guesses = "a jump here, chance inside it, or too much rounding to tell"
        return f"{called.moved} does not tend to {called.here} as h → 0: {guesses}"
    h = float(steps[step])
    try:
        right, left = (f(h)[j] - y) / h, (y - f(-h)[j]) / h
    except Exception:
        right, left = dy, np.full(np.shape(dy), np.nan)
    middle, kink = np.ravel((right + left) / 2.0 - dy), np.ravel(right - left)
    if not np.isfinite(kink).all():
        return f"{called.function} is not finite on the other side of x: this is the end of its domain"
    if _norm(kink) >= _norm(middle):
        k = int(np.argmax(np.abs(kink)))
        sides = f"{np.ravel(left)[k]:.6g} on one side, {np.ravel(right)[k]:.6g} on the other"
        return f"{called.function} has a kink here: its slope{_entry(y, k)} is {sides}"
    k = int(np.argmax(np.abs(middle)))
    slope = np.ravel(dy)[k]
    return f"{called.derivative}{_entry(y, k)} is {slope:.6g}, but differences give {slope + middle[k]:.6g}"


def _entry(y: Any, k: int) -> str:
    return f" at {[int(i) for i in np.unravel_index(k, np.shape(y))]}" if np.ndim(y) else ""


def _norm(x: Any) -> float:
    return float(np.linalg.norm(np.ravel(x)))


def largest_eps(types: Sequence[Any]) -> float:
    """The rounding of the coarsest floating-point type among some."""
    return max([float(np.finfo(t).eps) for t in types if t.kind == "f"], default=float(np.finfo(float).eps))
