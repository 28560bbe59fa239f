"""solve_ivp with events and dense output: when something happens is an implicit function of the parameters.

g(T, y(T)) = 0 makes T a function of all that the flow y depends on. How often each event happens, and which one ends
the integration, is decided at the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import SolveError
from ...tracing.deciding import decided
from ...tracing.trace import refuse
from ...tracing.traced import FLOAT, tidy
from ..control import vmap
from ..traces.records import Aval
from .implicit_functions import implicit
from .opened_functions import opened

NAME = "scipy.integrate.solve_ivp"


def as_event(g: Callable[..., Any], like: Any) -> Any:
    """A function with the marks that solve_ivp looks for on an event of the user's."""
    event: Any = lambda t, y: float(g(t, y))  # noqa: E731
    event.terminal, event.direction = getattr(like, "terminal", False), getattr(like, "direction", 0)
    return event


class Happenings:
    """How often each event happens at the point, and the place among all of the one that ends it, or −1."""

    def __init__(self, found: Any, events: Sequence[Any]) -> None:
        self.counts = [len(t) for t in found.t_events]
        self.end = -1
        if found.status == 1:
            ends = [bool(getattr(e, "terminal", False)) for e in events]
            last = [t[-1] if end and len(t) else np.nan for t, end in zip(found.t_events, ends, strict=True)]
            which = int(np.nanargmin(np.abs(np.asarray(last) - found.t[-1])))
            self.end = sum(self.counts[: which + 1]) - 1

    def key(self) -> list[int]:
        """What another point must share."""
        return [*self.counts, self.end]


def event_times(
    f: Any, events: Sequence[Any], start: Any, begin: Any, end: Any, args: tuple[Any, ...], solve: Any, flowing: Any
) -> tuple[Any, Happenings]:
    """When the events happen, one after the other in one array. `solve(f, events, y0, t0, t1)` finds it with numbers,
    `flowing(y0, t0, ts, *args)` is y at some times."""
    t0, t1 = tidy(begin), tidy(end)
    given = (start, t0, t1, *args)
    bodies = (lambda y, t, t1, *p: f(t, y, *p), *[_at(g) for g in events])

    def found(closed: Sequence[Any], point: Sequence[Any]) -> Any:
        y0, t0, t1, *rest = point
        g = lambda t, y: np.asarray(closed[0](np.asarray(y), float(t), t1, *rest), float)  # noqa: E731
        like = [
            as_event(lambda t, y, c=c: c(np.asarray(y), float(t), t1, *rest), e)
            for c, e in zip(closed[1:], events, strict=True)
        ]
        return solve(g, like, np.asarray(y0, float), float(t0), float(t1))

    inside = opened(NAME, bodies, given)
    if inside is None:
        here = lambda t, y: np.asarray(f(t, y, *args), float)  # noqa: E731
        plain = solve(here, [as_event(lambda t, y, e=e: e(t, y, *args), e) for e in events], start, t0, t1)
        return np.concatenate(plain.t_events), Happenings(plain, events)
    here = lambda *xs: found(inside.closed, xs)  # noqa: E731
    try:
        at_point = here(*[inside.home.number(s, True) for s in inside.slots])
    except LookupError:
        raise refuse(
            f"{NAME} with events: how often they happen is decided by the numbers, which are not known here; "
            "rz.root(lambda t: …) solves for the time of one event"
        ) from None
    known = Happenings(at_point, events)
    same = lambda *xs: (float(Happenings(here(*xs), events).key() == known.key()),)  # noqa: E731
    unmoving = lambda dxs, ys, *xs: (None,)  # noqa: E731
    decided(inside.step(f"events of {NAME}", same, ((),), unmoving, [Aval((), FLOAT, True)])[0])
    if not sum(known.counts):
        return np.zeros(0), known

    def residual(T: Any, y0: Any, t0: Any, t1: Any, *p: Any) -> Any:
        parts, first = [], 0
        for g, count in zip(events, known.counts, strict=True):
            if count:
                ts = T[first : first + count]
                parts.append(vmap(lambda t, y, g=g: tidy(g(t, y, *p)))(ts, flowing(y0, t0, ts, *p)))
            first += count
        return np.concatenate(parts)

    def solved(F: Any, closed: Any, T: Any, rest: Any) -> Any:
        times = np.concatenate(found([lambda *a, c=c: c(T, *a) for c in closed[1:]], rest).t_events)
        if len(times) != len(T):
            raise SolveError(
                f"{NAME}: the events happen {len(times)} times here, and {len(T)} times where it was traced"
            )
        return times

    functions = (residual, *[lambda T, *a, b=b: b(*a) for b in bodies])
    first = np.concatenate(at_point.t_events)
    return implicit(f"events of {NAME}", functions, first, given, lambda F, *rest: F, solved), known


def _at(event: Any) -> Any:
    return lambda y, t, t1, *p: tidy(event(t, y, *p))


class Trajectory:
    """As the `sol` of solve_ivp: y at any time."""

    def __init__(self, flowing: Any, t_min: Any, t_max: Any) -> None:
        self.flowing, self.t_min, self.t_max = flowing, t_min, t_max

    def __call__(self, t: Any) -> Any:
        times = tidy(t)
        found = self.flowing(np.reshape(times, -1))
        return np.transpose(found) if np.ndim(times) else found[0]
