"""Functions defined by equations: `root`, `fixed_point`, `argmin`.

F(x, a) = 0 defines x as a function of a. In a trace it is one step, whose run solves with numbers and whose
differential is NumPy code: dx = −(∂F/∂x)⁻¹ (∂F/∂a · da), by maps at traced points. So it has derivatives of all orders,
and the solver of ∂F/∂x is the one its structure asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import SpaceError
from ...manifolds.manifold import as_manifold
from ...tracing.argument_trees import flatten, unflatten
from ...tracing.traced import Traced, tidy
from ..directional import jvp
from ..function_types import V
from ..gradients import grad
from ..jacobians import jacobian
from . import equation_solvers as solvers
from .opened_functions import opened


def root(f: Callable[..., Any], x0: V, *args: Any, solver: Any = None, **options: Any) -> V:
    """x with f(x, *args) = 0, found from x0 on; a differentiable function of args and of what f closes over, to any
    order, by the implicit function theorem. x is a tree like x0, and f gives as many numbers.

    `solver` is "newton" (the default: steps by rz.jacobian(f)(x).solve, with its structure), a method of
    scipy.optimize.root ("hybr", "krylov", …) or root_scalar ("brentq", with bracket=(a, b)), or a function (f, x0) ↦ x
    that is called with numbers only. `options` are passed on. A root that was not found is a SolveError.

    >>> import numpy as np, riesz as rz
    >>> r = lambda a: rz.root(lambda x, a: x**3 + x - a, 1.0, a)
    >>> round(r(2.0), 6), round(rz.grad(r)(2.0), 6)
    (1.0, 0.25)
    """
    solve = lambda F, fs, x, a: solvers.rooted("rz.root", F, x, a, solver, options)  # noqa: E731
    return implicit("rz.root", (f,), x0, args, lambda f: f, solve)


def fixed_point(g: Callable[..., V], x0: V, *args: Any, solver: Any = None, **options: Any) -> V:
    """x with g(x, *args) = x, found from x0 on; differentiable as `root` is. By default x ← g(x) until it settles, the
    rest by Newton's method; other solvers are those of `root`, for x − g(x) = 0.

    >>> import numpy as np, riesz as rz
    >>> round(rz.grad(lambda a: rz.fixed_point(lambda x: np.cos(a * x), 1.0))(1.0), 6)
    -0.297474
    """
    name = "rz.fixed_point"

    def rest(g: Any) -> Any:
        def F(x: Any, *args: Any) -> Any:
            leaves, tree = flatten(x)
            after, same = flatten(g(x, *args))
            if same != tree or [np.shape(y) for y in after] != [np.shape(y) for y in leaves]:
                raise SpaceError(f"{name}: g must give what x0 is: arrays of the same shapes in the same containers")
            return unflatten(tree, [tidy(a) - tidy(b) for a, b in zip(leaves, after, strict=True)])

        return F

    def solve(F: Any, fs: Any, x: Any, a: Any) -> Any:
        iterate = solver is None and not options
        return solvers.iterated(name, F, x, a) if iterate else solvers.rooted(name, F, x, a, solver, options)

    return implicit(name, (g,), x0, args, rest, solve)


def argmin(
    f: Callable[..., Any],
    x0: V,
    *args: Any,
    equality: Any = None,
    solver: Any = None,
    manifold: Any = None,
    **options: Any,
) -> V:
    """x at which f(x, *args) is least, near x0, where `equality`(x, *args) = 0 if that is given; a differentiable
    function of args and of what f closes over, by the equations ∇f = 0, or those of Lagrange.

    By default Newton's method downhill, with structured Hessians. `solver` may be a method of scipy.optimize.minimize,
    or a function (f, x0) ↦ x that is called with numbers only. With `manifold` (of `rz.manifolds`, or a tree of them) x
    stays on it: v is sought with f(retract(x0, v)) least.

    >>> import numpy as np, riesz as rz
    >>> ridge = lambda k: rz.argmin(lambda x: np.sum((x - 1.0) ** 2) + k * np.sum(x**2), np.zeros(2))
    >>> rz.jacobian(ridge)(1.0).to_dense().ravel()
    array([-0.25, -0.25])
    """

    if manifold is not None:
        M = as_manifold(manifold)
        zero, moved = M.tangent(x0), lambda g: g and (lambda v, *a: g(M.retract(x0, v), *a))
        return M.retract(x0, argmin(moved(f), zero, *args, equality=moved(equality), solver=solver, **options))

    def stationary(f: Any, *more: Any) -> Any:
        slope = grad(f, 0)
        if not more:
            return lambda z, *args: slope(z[0], *args)

        def lagrangian(x: Any, multipliers: Any, *args: Any) -> Any:
            parts = flatten(more[0](x, *args))[0]
            return f(x, *args) + sum([np.sum(m * tidy(y)) for m, y in zip(multipliers, parts, strict=True)])

        slopes = grad(lagrangian, 0)
        return lambda z, *args: (slopes(z[0], z[1], *args), more[0](z[0], *args))

    def solve(F: Any, fs: Any, x: Any, a: Any) -> Any:
        return solvers.minimised("rz.argmin", F, fs, x, a, solver, options)

    functions = (f,) if equality is None else (f, equality)
    return implicit("rz.argmin", functions, x0, args, stationary, solve, True)


# -- the step -------------------------------------------------------------------------------------------------------


def implicit(name: str, functions: Any, x0: Any, args: Any, equations: Any, solve: Any, parts: bool = False) -> Any:
    """`equations` makes F of the functions, `solve(F, functions, x0, args)` finds z with F(z, *args) = 0. With `parts`
    z is a tuple: x, and multipliers, one for each number that the functions after the first give."""
    leaves, tree = flatten(x0)
    leaves = [x if isinstance(tidy(x), Traced) else _floats(x, name) for x in leaves]
    x0 = unflatten(tree, leaves)
    inside = opened(name, functions, (x0, *args))
    if inside is None:
        found = solve(equations(*functions), functions, x0, args)
        return found[0] if parts else found
    n, closed = len(leaves), inside.closed
    F = equations(*closed)
    kinds = inside.avals[:n]
    shapes = tuple([a.shape for a in (*kinds, *[a for b in inside.bodies[1:] if parts for a in b.results])])

    def run(*xs: Any) -> Any:
        start = unflatten(tree, [np.asarray(x) if np.ndim(x) else float(x) for x in xs[:n]])
        return tuple(flatten(solve(F, closed, start, xs[n:]))[0])

    def differential(dxs: Sequence[Any], ys: Any, *xs: Any) -> Any:
        x = unflatten(tree, list(ys[:n]))
        z: Any = (x, list(ys[n:])) if len(ys) > n else (x,) if parts else x
        return _moved(F, z, len(ys), xs[n:], dxs[n:])

    return unflatten(tree, inside.step(name, run, shapes, differential, kinds))


def _moved(F: Any, z: Any, count: int, rest: Sequence[Any], moves: Sequence[Any]) -> Any:
    """dz = −(∂F/∂z)⁻¹ (∂F/∂a · da)."""
    live = [i for i, d in enumerate(moves) if d is not None]
    if not live:
        return (None,) * count

    def at(*some: Any) -> Any:
        given = dict(zip(live, some, strict=True))
        return F(z, *[given.get(i, x) for i, x in enumerate(rest)])

    r = jvp(at, tuple([rest[i] for i in live]), tuple([moves[i] for i in live]))[1]
    return tuple([-s for s in flatten(jacobian(F, 0)(z, *rest).solve(r))[0]])


def _floats(x: Any, name: str) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        raise SpaceError(f"{name} starts from numbers; x0 holds {x!r}")
    return x if isinstance(x, float) or array.dtype.kind == "f" else float(x) if not array.ndim else array.astype(float)
