"""Robust losses ρ(s) of squared residuals s, with ρ' and ρ'': ρ(s) ≈ s near 0, less for outliers."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import VectorError
from ..functions.directional import jvp

Loss = Callable[[Any], Any]


def _soft_l1(s: Any) -> Any:
    t = 1.0 + s
    return 2.0 * (np.sqrt(t) - 1.0), t**-0.5, -0.5 * t**-1.5


def _huber(s: Any) -> Any:
    near, t = s <= 1.0, np.maximum(s, 1.0)
    return (
        np.where(near, s, 2.0 * np.sqrt(t) - 1.0),
        np.where(near, 1.0, t**-0.5),
        np.where(near, 0.0, -0.5 * t**-1.5),
    )


def _cauchy(s: Any) -> Any:
    return np.log1p(s), 1.0 / (1.0 + s), -1.0 / (1.0 + s) ** 2


def _arctan(s: Any) -> Any:
    t = 1.0 + s**2
    return np.arctan(s), 1.0 / t, -2.0 * s / t**2


def _geman_mcclure(s: Any) -> Any:
    t = 1.0 / (1.0 + s)
    return s * t, t**2, -2.0 * t**3


LOSSES: dict[str, Loss | None] = {
    "linear": None,
    "soft_l1": _soft_l1,
    "huber": _huber,
    "cauchy": _cauchy,
    "arctan": _arctan,
    "geman_mcclure": _geman_mcclure,
}


def loss_of(given: Any) -> Loss | None:
    """ρ, ρ' and ρ'' of a loss: a name of the table, or a function, of which riesz takes the derivatives; one that gives
    all three, as SciPy wants it, is taken as it is. None: ρ(s) = s."""
    if given is None:
        return None
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given]
    if not callable(given):
        raise VectorError(f"loss={given!r}: expected one of {', '.join(LOSSES)}, or a function ρ(s) of an array")

    def derived(s: Any) -> Any:
        found = np.asarray(given(s), float)
        if found.shape == (3, *np.shape(s)):
            return tuple(found)
        if found.shape != np.shape(s):
            due = f"ρ(s) has the shape of s, or (3, …) with ρ' and ρ''; s has {np.shape(s)}"
            raise VectorError(f"loss={given!r} gives an array of shape {found.shape}: {due}")
        ones = np.ones_like(s)
        slope = lambda t: jvp(given, (t,), (np.ones_like(s),))[1]  # noqa: E731
        first, second = jvp(slope, (s,), (ones,))
        return found, np.broadcast_to(first, s.shape), np.broadcast_to(second, s.shape)

    return derived


class Robust:
    """Losses of parts of the residual. Part k are the coordinates `ranges[k]`, in groups of `widths[k]` that belong
    together; beyond `scale` they count as outliers."""

    def __init__(self, losses: list[Loss | None], ranges: list[slice], widths: list[int], scale: float) -> None:
        self.parts = [part for part in zip(losses, ranges, widths, strict=True) if part[0] is not None]
        self.scale = scale

    def cost(self, r: Any) -> float:
        """½ Σ scale² ρ(‖r‖² / scale²)."""
        total = float(r @ r)
        for loss, where, wide in self.parts:
            s = self._sizes(r[where], wide)
            assert loss is not None
            total += self.scale**2 * float(np.sum(loss(s)[0])) - float(r[where] @ r[where])
        return 0.5 * total

    def weighed(self, r: Any) -> tuple[Any, Any]:
        """r and the factors of the rows of J, so that JᵀJ and Jᵀr are those of the cost. For numbers by themselves with
        ρ'' (as far as that stays positive), for groups with ρ' alone."""
        scaled, rows = r.copy(), np.ones(len(r))
        for loss, where, wide in self.parts:
            assert loss is not None
            s = self._sizes(r[where], wide)
            _, first, second = loss(s)
            curved = first + 2.0 * second * s if wide == 1 else first
            tiny = np.finfo(float).eps
            factor = np.sqrt(np.maximum(np.where(curved > 0.1 * first, curved, first), tiny))
            rows[where] = np.repeat(factor, wide)
            scaled[where] = r[where] * np.repeat(first / factor, wide)
        return scaled, rows

    def _sizes(self, r: Any, wide: int) -> Any:
        return np.sum((r.reshape(-1, wide) / self.scale) ** 2, axis=1)
