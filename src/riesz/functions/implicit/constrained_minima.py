"""Minima under bounds, equations and inequalities as functions of what they depend on, by the conditions of Karush,
Kuhn and Tucker.

With L = f − λ·h − μ·g they are x = clip(x − ∇L, lower, upper), h = 0, min(μ, g) = 0: as many equations as unknowns. The
derivative of clip and min is that of the side that is taken, so their Jacobian is the matrix of the active set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracing.argument_trees import flatten
from ...tracing.trace import refuse
from ...tracing.traced import holds_traced, tidy
from ..gradients import grad
from ..jacobians import jacobian
from .equation_solvers import Equation, polished
from .implicit_functions import implicit


def constrained(
    name: str, f: Any, start: Any, args: tuple[Any, ...], sides: Any, equations: Any, inequalities: Any, run: Any
) -> Any:
    """x between `sides` at which f(x, *args) is least where equations(x, *args) = 0 and inequalities(x, *args) ≥ 0
    (None: there are none). `run(f, h, g, x0, lower, upper)` finds it with numbers, from functions of x alone."""
    rows = [c for c in (equations, inequalities) if c is not None]
    functions = tuple([_ignoring_sides(c) for c in (f, *rows)])

    def conditions(f: Any, *rows: Any) -> Any:
        def lagrangian(x: Any, multipliers: Any, *given: Any) -> Any:
            return f(x, *given) - sum([m @ c(x, *given) for m, c in zip(multipliers, rows, strict=True)])

        slope = grad(lagrangian, 0)

        def F(z: Any, lower: Any, upper: Any, *given: Any) -> Any:
            x, multipliers = z if rows else (z[0], [])
            values = [c(x, lower, upper, *given) for c in rows]
            if inequalities is not None:
                values[-1] = np.minimum(multipliers[-1], values[-1])
            moved = x - slope(x, multipliers, lower, upper, *given)
            return (x - np.clip(moved, lower, upper), values) if rows else x - np.clip(moved, lower, upper)

        return F

    def solve(F: Any, functions: Any, x: Any, rest: Any) -> Any:
        own = [lambda v, c=c: c(v, *rest) for c in functions]
        given = [own[0], *[None if c is None else own.pop() for c in (inequalities, equations)][::-1]]
        v = np.clip(np.asarray(run(*given, np.asarray(x), rest[0], rest[1]), float), rest[0], rest[1])
        multipliers = _multipliers(functions, v, rest, inequalities is not None)
        eq = Equation(name, F, (v, multipliers) if rows else (v,), rest)
        return eq.tree(polished(eq, eq.start, name))

    return implicit(name, functions, start, (*sides, *args), conditions, solve, True)


def _ignoring_sides(c: Any) -> Any:
    return lambda x, lower, upper, *a: c(x, *a)


def _multipliers(functions: Sequence[Any], x: Any, rest: Any, last_are_inequalities: bool) -> list[Any]:
    """Multipliers that fit best at x: 0 for inequalities that are not met with equality."""
    f, *rows = functions
    if not rows:
        return []
    lower, upper = rest[:2]
    near = 1e-6 * (1.0 + np.abs(x))
    free = (x > lower + near) & (x < upper - near)
    values = [np.asarray(c(x, *rest)) for c in rows]
    active = [np.ones(v.shape, bool) for v in values]
    if last_are_inequalities:
        active[-1] = values[-1] <= 1e-5 * (1.0 + np.max(np.abs(x), initial=0.0))
    slopes = np.concatenate([jacobian(c, 0)(x, *rest).to_dense() for c in rows])
    found, on = np.zeros(len(slopes)), np.concatenate(active)
    g = np.asarray(grad(f, 0)(x, *rest))
    found[on] = np.linalg.lstsq(slopes[on][:, free].T, g[free], rcond=None)[0]
    parts = np.split(found, np.cumsum([v.size for v in values])[:-1])
    if last_are_inequalities:
        parts[-1] = np.maximum(parts[-1], 0.0)
    return parts


# -- what SciPy's users say ---------------------------------------------------------------------------------------


def sides_of(bounds: Any, start: Any) -> tuple[Any, Any]:
    """Bounds of scipy.optimize (pairs, None for none, or a Bounds) as two arrays."""
    if bounds is None:
        return np.full(start.shape, -np.inf), np.full(start.shape, np.inf)
    pairs = [(bounds.lb, bounds.ub)] if hasattr(bounds, "lb") else [tuple(b) for b in bounds]
    if hasattr(bounds, "lb"):
        return tuple([np.broadcast_to(tidy(b) * 1.0, start.shape) for b in pairs[0]])
    ends = [
        np.stack([tidy(infinite if b is None else b) * 1.0 for b in side])
        for side, infinite in zip(zip(*pairs, strict=True), (-np.inf, np.inf), strict=True)
    ]
    return tuple([np.broadcast_to(end, start.shape) for end in ends])


def conditions_of(constraints: Any, start: Any, row: Any) -> tuple[Any, Any]:
    """Constraints of scipy.optimize.minimize (dictionaries, LinearConstraint, NonlinearConstraint) as two functions of
    x: what is 0, and what is not negative; None where there are none."""
    every = [constraints] if isinstance(constraints, dict) or hasattr(constraints, "lb") else list(constraints)
    zero: list[Any] = []
    positive: list[Any] = []
    for c in every:
        if isinstance(c, dict):
            kind = zero if c["type"] == "eq" else positive
            kind.append(lambda x, c=c: np.ravel(row(c["fun"](x, *c.get("args", ())))))
        elif hasattr(c, "A") or hasattr(c, "fun"):
            f = (lambda x, c=c: np.ravel(c.A @ x)) if hasattr(c, "A") else (lambda x, c=c: np.ravel(row(c.fun(x))))
            _between(f, c, start, zero, positive)
        else:
            raise refuse(f"scipy.optimize.minimize: a constraint of class {type(c).__name__} is not known to riesz")
    joined = [(lambda x, *a, p=p: np.concatenate([q(x) for q in p])) if p else None for p in (zero, positive)]
    return joined[0], joined[1]


def _between(f: Any, c: Any, start: Any, zero: list[Any], positive: list[Any]) -> None:
    """lb ≤ f ≤ ub as equations and inequalities."""
    if holds_traced([c.lb, c.ub]):
        raise refuse(
            "scipy.optimize.minimize: traced limits of a constraint are not known; put them into the function: "
            "NonlinearConstraint(lambda x: f(x) - limit, 0.0, np.inf)"
        )
    n = np.shape(c.A)[0] if hasattr(c, "A") and np.ndim(c.A) == 2 else np.size(flatten(f(start))[0][0])
    lower, upper = np.broadcast_to(c.lb, n), np.broadcast_to(c.ub, n)
    same = np.flatnonzero(lower == upper)
    for at, kind, sign, limit in (
        (same, zero, 1.0, lower),
        (np.flatnonzero(np.isfinite(lower) & (lower != upper)), positive, 1.0, lower),
        (np.flatnonzero(np.isfinite(upper) & (lower != upper)), positive, -1.0, upper),
    ):
        if at.size:
            kind.append(lambda x, at=at, sign=sign, limit=limit: sign * (f(x)[at] - limit[at]))
