"""Integrals and differential equations as steps: computed with numbers by SciPy, differentiated under the integral and
by the equations of the sensitivities, which are again such steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import SolveError
from ...tracing.deciding import decided
from ...tracing.trace import refuse
from ...tracing.traced import FLOAT, tidy
from ..control import vmap
from ..jacobians import jacobian
from ..traces.records import Aval
from .opened_functions import opened

TIGHT = 1e-10  # the tolerance of sensitivities


def integral(name: str, f: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...], run: Any) -> Any:
    """∫ f(t, *args) dt from a to b and the error of it; `run(f, a, b)` computes both with numbers.

    d∫f = ∫ ∂f/∂p dt · dp + f(b) db − f(a) da."""
    inside = opened(name, (lambda t, a, b, *p: f(t, *p),), (_inner(a, b), a, b, *args))
    if inside is None:
        return run(lambda t: f(t, *args), a, b)
    (closed,), shape = inside.closed, inside.bodies[0].results[0].shape

    def value(t: Any, a: Any, b: Any, *rest: Any) -> Any:
        return run(lambda t: closed(t, a, b, *rest), float(a), float(b))

    def differential(dxs: Sequence[Any], ys: Any, t: Any, a: Any, b: Any, *rest: Any) -> Any:
        total = np.zeros(shape)
        for end, d, sign in ((b, dxs[2], 1.0), (a, dxs[1], -1.0)):
            if d is not None:
                total = total + sign * closed(end, a, b, *rest) * d
        for i, d in enumerate(dxs[3:]):
            if d is not None:
                slope = lambda t, *p, i=i: _matrix(lambda q: closed(t, a, b, *p[:i], q, *p[i + 1 :]), p[i])  # noqa: E731
                S, _ = integral(name, slope, a, b, rest, _vector_quad)
                total = total + (S @ np.reshape(d, -1)).reshape(shape)
        return total, None

    dtype = inside.bodies[0].results[0].dtype  # of vectors; numbers are those of Python
    kinds = [Aval(shape, dtype if shape and dtype.kind == "f" else FLOAT, not shape), Aval((), FLOAT, True)]
    return tuple(inside.step(name, value, (shape, ()), differential, kinds))


def _inner(a: Any, b: Any) -> Any:
    """A number where the integrand is traced."""
    return 0.5 * (a + b) if not isinstance(a, float) or not isinstance(b, float) or math.isfinite(a + b) else 1.0


def _matrix(f: Callable[[Any], Any], x: Any) -> Any:
    """∂f/∂x as a matrix."""
    return jacobian(f)(x).to_dense()


def _vector_quad(f: Any, a: float, b: float) -> Any:
    from scipy.integrate import quad_vec

    value, error = quad_vec(f, a, b, epsabs=1e-12, epsrel=TIGHT)[:2]
    return value, error


def flow(name: str, f: Any, y0: Any, t0: Any, times: Any, args: tuple[Any, ...], run: Any, method: Any) -> Any:
    """y at some times, where y' = f(t, y, *args) and y = y0 at t0: one row for each time. `run(f, y0, times, t0)`
    computes it with numbers.

    ∂y/∂(y0, p) is the solution S of S' = ∂f/∂y·S + ∂f/∂p with S = (1, 0) at t0; dy = S·(dy0 − f dt0, dp) + f dt."""
    scalar = tidy(t0)
    inside = opened(name, (lambda t, y, ts, *p: f(t, y, *p),), (scalar, y0, times, *args))
    if inside is None:
        return run(lambda t, y: f(t, y, *args), y0, times, t0)
    (closed,), n, count = inside.closed, len(y0), len(times)

    def value(t0: Any, y0: Any, ts: Any, *rest: Any) -> Any:
        g = lambda t, y: np.asarray(closed(float(t), np.asarray(y), ts, *rest), float)  # noqa: E731
        return (np.asarray(run(g, np.asarray(y0, float), np.asarray(ts), float(t0))),)

    def differential(dxs: Sequence[Any], ys: Any, t0: Any, y0: Any, ts: Any, *rest: Any) -> Any:
        (y,), live = ys, [i for i, d in enumerate(dxs[3:]) if d is not None]
        total = np.zeros((count, n))
        if dxs[0] is not None or dxs[1] is not None or live:
            sizes = [math.prod(rest[i].shape) for i in live]
            start = np.zeros(n) if dxs[1] is None else dxs[1]
            start = start if dxs[0] is None else start - closed(t0, y0, ts, *rest) * dxs[0]
            moves = np.concatenate([start, *[np.reshape(dxs[3 + i], -1) for i in live]])
            S = _sensitivities(name, closed, n, live, sizes, method, y0, t0, ts, rest)
            total = total + S @ moves
        if dxs[2] is not None:
            slopes = vmap(lambda t, y: closed(t, y, ts, *rest))(ts, y)
            total = total + slopes * dxs[2][:, None]
        return (total,)

    return inside.step(name, value, ((count, n),), differential, [Aval((count, n), FLOAT, False)])[0]


def _sensitivities(
    name: str, f: Any, n: int, live: list[int], sizes: list[int], method: Any, y0: Any, t0: Any, ts: Any, rest: Any
) -> Any:
    """∂y/∂(y0, p) at all times: times × n × (n + numbers in p)."""
    m = n + sum(sizes)

    def both(t: Any, w: Any, ts: Any, *rest: Any) -> Any:
        y, S = w[:n], np.reshape(w[n:], (n, m))
        rows = _matrix(lambda y: f(t, y, ts, *rest), y) @ S
        parts = [np.zeros((n, n))]
        for i in live:
            parts.append(_matrix(lambda q, i=i: f(t, y, ts, *rest[:i], q, *rest[i + 1 :]), rest[i]))
        return np.concatenate([f(t, y, ts, *rest), np.reshape(rows + np.concatenate(parts, 1), -1)])

    def run(g: Any, w: Any, ts: Any, t0: Any) -> Any:
        from scipy.integrate import solve_ivp

        if len(ts) and not np.any(ts != t0):
            return np.repeat(w[None], len(ts), 0)
        found: Any = solve_ivp(g, (t0, float(ts[-1])), w, method, np.asarray(ts), rtol=TIGHT, atol=1e-12)
        if not found.success:
            raise SolveError(f"{name}: the sensitivities cannot be computed: {found.message}")
        return found.y.T

    start = np.concatenate([y0, np.reshape(np.eye(n, m), -1)])
    w = flow(name, lambda t, w, *p: both(t, w, *p), start, t0, ts, (ts, *rest), run, method)
    return np.reshape(w[:, n:], (len(ts), n, m))


def times_at(name: str, f: Any, y0: Any, t0: Any, t1: Any, args: tuple[Any, ...], chosen: Any) -> Any:
    """The times between t0 and t1 that a solver chooses by the numbers at this point; they guard the trace."""
    inside = opened(name, (lambda y, t0, t1, *p: f(t0, y, *p),), (y0, t0, t1, *args))
    if inside is None:
        return chosen(lambda t, y: f(t, y, *args), y0, t0, t1)[1:-1]
    (closed,) = inside.closed

    def times(y0: Any, t0: Any, t1: Any, *rest: Any) -> Any:
        g = lambda t, y: np.asarray(closed(np.asarray(y), float(t), t1, *rest), float)  # noqa: E731
        return chosen(g, np.asarray(y0, float), float(t0), float(t1))[1:-1]

    try:
        known = times(*[inside.home.number(s, True) for s in inside.slots])
    except LookupError:
        raise refuse(
            f"{name} chooses its times by the numbers, which are not known here: say where the solution is wanted, "
            "t_eval=[t1] for the end t1, or t_eval=np.linspace(t0, t1, 50)"
        ) from None

    def same(*xs: Any) -> Any:
        return (float(np.array_equal(times(*xs), known)),)

    unmoving = lambda dxs, ys, *xs: (None,)  # noqa: E731
    decided(inside.step(f"times of {name}", same, ((),), unmoving, [Aval((), FLOAT, True)])[0])
    return known
