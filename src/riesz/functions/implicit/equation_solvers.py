"""F(x) = 0 solved with numbers: Newton's method with structured steps, SciPy's solvers, users' own.

Whoever solved it, the result is checked: a Newton step from there must be small. What SciPy's tolerances leave is
taken off by such steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import RieszError, SolveError, SpaceError
from ...runtime import tuning
from ...tracing.argument_trees import flatten, unflatten
from ..gradients import grad
from ..jacobians import jacobian

ROOTS = ("hybr", "lm", "krylov", "df-sane", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden")
SCALAR_ROOTS = ("bisect", "brentq", "brenth", "ridder", "toms748", "secant")


class Equation:
    """F(x, *args) = 0 in flat coordinates of x; counts what is computed."""

    def __init__(self, name: str, F: Callable[..., Any], x0: Any, args: tuple[Any, ...]) -> None:
        self.name, self.F, self.args, self.count = name, F, args, 0
        self._leaves, self._tree = flatten(x0)
        self.start = flat(self._leaves)
        self.jacobian = jacobian(F)
        self.eps = float(np.finfo(np.result_type(*[np.asarray(x) for x in self._leaves], np.float32)).eps)

    def tree(self, v: Any) -> Any:
        """Flat coordinates as the tree that x is."""
        found, at = list[Any](), 0
        for x in self._leaves:
            n = np.size(x)
            part = np.reshape(v[at : at + n], np.shape(x)).astype(np.asarray(x).dtype)
            found.append(part if part.ndim else float(part) if type(x) is float else part[()])
            at += n
        return unflatten(self._tree, found)

    def __call__(self, v: Any) -> Any:
        self.count += 1
        found = flat(flatten(self.F(self.tree(v), *self.args))[0])
        if found.shape != self.start.shape:
            sizes = f"{found.size} numbers for an unknown of {self.start.size}"
            raise SpaceError(f"{self.name}: as many equations as unknowns are due; the function gives {sizes}")
        return found

    def map(self, v: Any) -> Any:
        """∂F/∂x, with its structure."""
        return self.jacobian(self.tree(v), *self.args)

    def step(self, v: Any, r: Any) -> Any:
        """(∂F/∂x)⁻¹ r, by structure."""
        J = self.map(v)
        with np.errstate(all="ignore"):
            return J.domain.flatten(J.solve(J.codomain.unflatten(r)))

    def failure(self, v: Any, r: Any, how: str, why: str = "") -> SolveError:
        """The error of a root that was not found."""
        found = f"the residual is {size(r):.3g} after {self.count} evaluations, at {np.array2string(v, threshold=6)}"
        ways = (
            "solver='BFGS'" if "min" in self.name else "solver='hybr', for one unknown solver='brentq', bracket=(a, b)"
        )
        other = f"Start elsewhere, or take another solver: {ways}, or a function of your own, solver=lambda f, x0: …"
        return SolveError(f"{self.name}: no solution was found by {how}{why}: {found}. {other}")


def flat(leaves: Any) -> Any:
    """Leaves in one array."""
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in leaves]) if leaves else np.zeros(0)


def size(v: Any) -> float:
    """The largest number."""
    return float(np.max(np.abs(v), initial=0.0))


def newton(eq: Equation, v: Any, most: int = 100) -> Any:
    """Newton's method: each step halved until the residual falls."""
    r = eq(v)
    for _ in range(most):
        now = size(r)
        if not np.isfinite(now):
            raise eq.failure(v, r, "Newton's method", " (the function is not finite there)")
        if now == 0.0:
            return v
        try:
            s = eq.step(v, r)
        except (RieszError, np.linalg.LinAlgError) as problem:
            raise eq.failure(v, r, "Newton's method", f" (a step cannot be solved for: {problem})") from problem
        t = 1.0
        while t > 1e-10:
            w = v - t * s
            after = eq(w)
            if size(after) <= (1.0 - 1e-4 * t) * now:
                break
            t = t * 0.5 if size(s) > eq.eps**0.5 * size(v) else 0.0  # so close, rounding is all there is
        else:
            break
        v, r = w, after
        if size(s) <= 2.0 * eq.eps * size(v):
            break
    return checked(eq, v, "Newton's method")


def checked(eq: Equation, v: Any, how: str, trusted: bool = False) -> Any:
    """v, if it solves the equation: a step from there is small. Where no step can be solved for, and the solver was
    sure, if the residual is small beside the first one."""
    r = eq(v)
    if not np.all(np.isfinite(r)):
        raise eq.failure(v, r, how, " (the function is not finite there)")
    if not np.any(r):
        return v
    try:
        s = size(eq.step(v, r))
        right = s <= eq.eps**0.4 * size(v) + 100.0 * eq.eps * (1.0 + size(eq.start))
    except (RieszError, np.linalg.LinAlgError):
        right = trusted and size(r) <= eq.eps**0.5 * size(eq(eq.start))
    if not right:
        raise eq.failure(v, r, how)
    return v


def polished(eq: Equation, v: Any, how: str, trusted: bool = True) -> Any:
    """What another solver found, with a few steps of Newton's method where they stay close by."""
    try:
        w = newton(eq, v, 8)
    except (RieszError, np.linalg.LinAlgError):
        return checked(eq, v, how, trusted)
    near = size(w - v) <= 1e-3 * size(v) + eq.eps**0.4 * (1.0 + size(eq.start))
    return w if near else checked(eq, v, how, trusted)


# -- ways to solve: (name, F, functions, x0, args) ↦ x --------------------------------------------------------------


def rooted(name: str, F: Any, x0: Any, args: Any, solver: Any, options: dict[str, Any]) -> Any:
    """x with F(x) = 0."""
    eq = Equation(name, F, x0, args)
    if solver is None or solver == "newton":
        if options:
            raise SpaceError(f"{name}: Newton's method has no options {sorted(options)}; name a solver of SciPy's")
        return eq.tree(newton(eq, eq.start))
    if callable(solver):
        own = solver(lambda x: F(x, *args), eq.tree(eq.start), **options)
        return eq.tree(polished(eq, flat(flatten(own)[0]), "the given solver"))
    import scipy.optimize as optimize

    if solver in ROOTS:
        dense = (lambda v: eq.map(v).to_dense()) if solver in ("hybr", "lm") else None
        found: Any = optimize.root(eq, eq.start, method=solver, jac=dense, **options)
        return eq.tree(polished(eq, np.asarray(found.x), f"scipy.optimize.root, {solver!r}", bool(found.success)))
    if solver in SCALAR_ROOTS:
        if eq.start.size != 1:
            raise SpaceError(f"{name}: solver={solver!r} is for one unknown; x0 has {eq.start.size}")
        number = lambda x: float(eq(np.array([x]))[0])  # noqa: E731
        if "bracket" not in options:
            options = {"x0": float(eq.start[0]), **options}
        found = optimize.root_scalar(number, method=solver, **options)
        return eq.tree(polished(eq, np.array([found.root]), f"scipy.optimize.root_scalar, {solver!r}", found.converged))
    names = ", ".join(["newton", *ROOTS, *SCALAR_ROOTS])
    raise SpaceError(f"{name}: solver={solver!r} is not known; one of {names}, or a function (f, x0) ↦ x is due")


def iterated(name: str, F: Any, x0: Any, args: Any, most: int = 2000) -> Any:
    """x = x − F(x) until it stays: fixed points that attract. The rest is Newton's method."""
    eq = Equation(name, F, x0, args)
    v, r = eq.start, eq(eq.start)
    for _ in range(most):
        if not np.all(np.isfinite(r)):
            break
        v = v - r
        r = eq(v)
        if size(r) <= eq.eps**0.5 * size(v):
            return eq.tree(polished(eq, v, "iteration"))
    raise eq.failure(v, r, "iteration", " (it does not settle; solver='newton' finds fixed points that repel)")


def minimised(
    name: str, F: Any, functions: Any, x0: Any, args: Any, solver: Any, options: dict[str, Any]
) -> tuple[Any, ...]:
    """x, and multipliers where there are constraints, with ∇f = 0 (or the equations of Lagrange): a minimum."""
    f, *others = functions
    constrained = bool(others)
    zero = [np.zeros_like(np.asarray(y, float)) for y in flatten(others[0](x0, *args))[0]] if constrained else []
    eq = Equation(name, F, (x0, zero), args) if constrained else Equation(name, F, (x0,), args)
    at = Equation(name, lambda x: x, x0, ())  # coordinates of x alone
    if solver is None:
        try:
            found = newton(eq, eq.start) if constrained else _descended(eq, at, f, args)
            return eq.tree(_minimum(eq, at, found))
        except SolveError:
            solver = "SLSQP" if constrained else "BFGS"
    if callable(solver):
        v = flat(flatten(solver(lambda x: f(x, *args), x0, **options))[0])
        how = "the given solver"
    else:
        v, how = _scipy_minimum(at, f, others, args, solver, options), f"scipy.optimize.minimize, {solver!r}"
    if constrained:  # the multipliers that fit best
        whole = np.concatenate([v, eq.start[v.size :]])
        matrix, r = eq.map(whole).to_dense()[: v.size, v.size :], eq(whole)[: v.size]
        v = np.concatenate([v, np.linalg.lstsq(matrix, -r, rcond=None)[0]])
    return eq.tree(_minimum(eq, at, polished(eq, v, how)))


def _scipy_minimum(at: Equation, f: Any, others: Any, args: Any, solver: str, options: dict[str, Any]) -> Any:
    import scipy.optimize as optimize

    slope, second = grad(f, 0), jacobian(grad(f, 0), 0)
    value = lambda v: float(f(at.tree(v), *args))  # noqa: E731
    more: dict[str, Any] = {}
    if solver.lower() not in ("nelder-mead", "powell", "cobyla", "cobyqa"):
        more["jac"] = lambda v: flat(flatten(slope(at.tree(v), *args))[0])
    if solver.lower() in ("newton-cg", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"):
        more["hess"] = lambda v: second(at.tree(v), *args).to_dense()
    if others:
        h = lambda v: flat(flatten(others[0](at.tree(v), *args))[0])  # noqa: E731
        slopes = jacobian(others[0], 0)
        more["constraints"] = {"type": "eq", "fun": h, "jac": lambda v: slopes(at.tree(v), *args).to_dense()}
    return np.asarray(optimize.minimize(value, at.start, method=solver, **more | options).x)


def _descended(eq: Equation, at: Equation, f: Any, args: Any) -> Any:
    """Newton's method downhill: a step that does not go down is one along the gradient."""
    value = lambda v: float(f(at.tree(v), *args))  # noqa: E731
    v, now = eq.start, value(eq.start)
    for _ in range(200):
        g = eq(v)
        if not np.all(np.isfinite(g)):
            raise eq.failure(v, g, "Newton's method", " (the gradient is not finite there)")
        try:
            s = -eq.step(v, g)
        except (RieszError, np.linalg.LinAlgError):
            s = -g
        if not g @ s < 0.0:
            s = -g
        t = 1.0
        while t > 1e-12 and not value(v + t * s) <= now + 1e-4 * t * (g @ s):
            t *= 0.5
        if t <= 1e-12 or size(s) <= eq.eps**0.5 * size(v):
            break
        v = v + t * s
        now = value(v)
    return newton(eq, v)


def _minimum(eq: Equation, at: Equation, v: Any) -> Any:
    """v, if it is no saddle: curvature is not negative in any direction that the constraints leave."""
    n = at.start.size
    if 0 < eq.start.size <= tuning.SADDLE_CHECKED_UNKNOWNS:
        whole = eq.map(v).to_dense()
        curvature, slopes = whole[:n, :n], whole[n:, :n]
        if len(slopes):
            _, s, rows = np.linalg.svd(slopes)
            free = rows[int(np.sum(s > eq.eps * max(slopes.shape) * size(s))) :]
            curvature = free @ curvature @ free.T
        if curvature.size:
            w = np.linalg.eigvalsh((curvature + curvature.T) / 2)
            if w[0] < -(eq.eps**0.5) * np.max(np.abs(w)):
                raise eq.failure(v, eq(v), "Newton's method", f" (a saddle or a maximum: curvature {w[0]:.3g})")
    return v
