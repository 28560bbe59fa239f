"""Least-squares fits of scipy.optimize inside a trace: least_squares, leastsq, curve_fit, nnls, lsq_linear. SciPy fits
with numbers; derivatives are those of the equations x = clip(x − ∇cost, lower, upper)."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from ...tracing.trace import refuse
from ...tracing.traced import holds_traced, tidy
from ..gradients import grad
from ..jacobians import jacobian
from .constrained_minima import sides_of
from .equation_solvers import Equation, polished
from .implicit_functions import implicit

LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.maximum(z, 1.0)) - 1.0),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}
"""ρ of the squared residual, by SciPy's names."""


def fitted(name: str, residuals: Any, start: Any, args: tuple[Any, ...], sides: Any, cost: Any, run: Any) -> Any:
    """x between sides at which cost(residuals(x, *args)) is least; `run(r, jac, x0, lower, upper)` finds it with
    numbers."""

    def equations(r: Any) -> Any:
        slope = grad(lambda x, *given: cost(r(x, *given)), 0)
        return lambda x, lower, upper, *a: x - np.clip(x - slope(x, lower, upper, *a), lower, upper)

    def solve(F: Any, functions: Any, x: Any, rest: Any) -> Any:
        eq, (r,) = Equation(name, F, x, rest), functions
        slopes = jacobian(r, 0)
        own = (lambda v: np.asarray(r(v, *rest)), lambda v: slopes(v, *rest).to_dense())
        found = run(*own, np.clip(np.asarray(x), rest[0], rest[1]), rest[0], rest[1])
        return eq.tree(polished(eq, np.asarray(found, float), name))

    given = lambda x, lower, upper, *a: residuals(x, *a)  # noqa: E731
    return implicit(name, (given,), start, (*sides, *args), equations, solve)


def _halves(r: Any) -> Any:
    return 0.5 * np.sum(r**2)


def _row(y: Any) -> Any:
    """What a function gives, as one axis of numbers."""
    return np.ravel(np.stack([tidy(part) for part in y]) if isinstance(y, (list, tuple)) else tidy(y))


def _tuple(args: Any) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


class _Ends:
    """Two limits, as scipy.optimize.Bounds has them."""

    def __init__(self, lb: Any, ub: Any) -> None:
        self.lb, self.ub = lb, ub


def _start(x0: Any) -> Any:
    return np.atleast_1d(_row(x0) if holds_traced(x0) else np.asarray(x0, float))


def _result(**parts: Any) -> Any:
    from scipy.optimize import OptimizeResult

    return OptimizeResult(success=True, status=1, message="found (a failure is an error inside a trace)", **parts)


def least_squares(original: Any) -> Any:
    """scipy.optimize.least_squares."""

    def own(
        fun: Any, x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), loss: Any = "linear", f_scale: Any = 1.0,
        args: Any = (), kwargs: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if callable(loss) or loss not in LOSSES or holds_traced(f_scale):
            names = ", ".join(LOSSES)
            raise refuse(
                f"scipy.optimize.least_squares with a traced f_scale or a loss other than {names} is not known"
            )
        residuals = lambda x, *a: _row(fun(x, *a, **(kwargs or {})))  # noqa: E731
        scale, start, given = float(f_scale), _start(x0), _tuple(args)
        cost = lambda r: 0.5 * scale**2 * np.sum(LOSSES[loss]((r / scale) ** 2))  # noqa: E731

        def run(r: Any, slopes: Any, x: Any, lower: Any, upper: Any) -> Any:
            return original(r, x, slopes, bounds=(lower, upper), loss=loss, f_scale=scale, **options).x

        sides = sides_of(bounds if hasattr(bounds, "lb") else _Ends(*bounds), start)
        x = fitted("scipy.optimize.least_squares", residuals, start, given, sides, cost, run)
        r = residuals(x, *given)
        slopes = jacobian(residuals, 0)(x, *given).to_dense()
        return _result(x=x, cost=cost(r), fun=r, jac=slopes, grad=grad(lambda x: cost(residuals(x, *given)))(x))

    return own


def leastsq(original: Any) -> Any:
    """scipy.optimize.leastsq."""

    def own(func: Any, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False, **options: Any) -> Any:
        if full_output:
            raise refuse("scipy.optimize.leastsq with full_output is not known in a trace; write least_squares(f, x0)")
        residuals = lambda x, *a: _row(func(x, *a))  # noqa: E731
        start = _start(x0)
        run = lambda r, slopes, x, lower, upper: original(r, x, Dfun=slopes, **options)[0]  # noqa: E731
        sides = sides_of(None, start)
        return fitted("scipy.optimize.leastsq", residuals, start, _tuple(args), sides, _halves, run), 1

    return own


def curve_fit(original: Any) -> Any:
    """scipy.optimize.curve_fit: the parameters and their covariance."""

    def own(
        f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: Any = False,
        check_finite: Any = None, bounds: Any = (-np.inf, np.inf), method: Any = None, jac: Any = None,
        *, full_output: Any = False, nan_policy: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if full_output:
            raise refuse("scipy.optimize.curve_fit with full_output is not known in a trace; leave it out")
        if p0 is None:
            p0 = np.ones(len(signature(f).parameters) - 1)
        start = _start(p0)
        x, y = tidy(xdata), tidy(ydata)
        error = None if sigma is None else tidy(sigma)

        def residuals(p: Any, *_: Any) -> Any:
            r = tidy(f(x, *[p[i] for i in range(len(start))])) - y
            if error is None:
                return np.ravel(r)
            return np.linalg.solve(np.linalg.cholesky(error), r) if np.ndim(error) == 2 else np.ravel(r / error)

        def run(r: Any, slopes: Any, p: Any, lower: Any, upper: Any) -> Any:
            from scipy.optimize import least_squares

            tight: Any = {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-12, "x_scale": "jac"}
            return least_squares(r, p, slopes, bounds=(lower, upper), **tight).x

        sides = sides_of(bounds if hasattr(bounds, "lb") else _Ends(*bounds), start)
        p = fitted("scipy.optimize.curve_fit", residuals, start, (), sides, _halves, run)
        J, r = jacobian(residuals)(p).to_dense(), residuals(p)
        covariance = np.linalg.inv(J.T @ J)
        if sigma is None or not absolute_sigma:
            covariance = covariance * (np.sum(r**2) / (r.size - start.size))
        return p, covariance

    return own


def nnls(original: Any) -> Any:
    """scipy.optimize.nnls."""

    def own(A: Any, b: Any, maxiter: Any = None, **options: Any) -> Any:
        matrix, b, ends = tidy(A), tidy(b), _Ends(0.0, np.inf)
        x = _linear(
            "scipy.optimize.nnls", matrix, b, ends, lambda A, b, lower, upper: original(A, b, maxiter=maxiter)[0]
        )
        return x, np.linalg.norm(matrix @ x - b)

    return own


def lsq_linear(original: Any) -> Any:
    """scipy.optimize.lsq_linear."""

    def own(A: Any, b: Any, bounds: Any = (-np.inf, np.inf), **options: Any) -> Any:
        matrix, b = tidy(A), tidy(b)
        run = lambda A, b, lower, upper: original(A, b, (lower, upper), **options).x  # noqa: E731
        x = _linear("scipy.optimize.lsq_linear", matrix, b, bounds if hasattr(bounds, "lb") else _Ends(*bounds), run)
        r = matrix @ x - b
        return _result(x=x, fun=r, cost=_halves(r))

    return own


def _linear(name: str, A: Any, b: Any, ends: Any, run: Any) -> Any:
    """x between ends with the least |A x − b|."""
    start = np.zeros(np.shape(A)[1])

    def solve(r: Any, slopes: Any, x: Any, lower: Any, upper: Any) -> Any:
        return run(slopes(start), -r(start), lower, upper)

    return fitted(name, lambda x: A @ x - b, start, (), sides_of(ends, start), _halves, solve)
