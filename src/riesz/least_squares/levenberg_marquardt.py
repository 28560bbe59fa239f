"""Nonlinear least squares, min ½‖r(x)‖², with the derivative of r as a LinearMap: `gauss_newton` and
`levenberg_marquardt`.

The unknown may be a tree of arrays. Norms of residuals are those of the codomain, weighted or not; steps and damping
are measured in coordinates. SciPy's optimisers take the same derivatives, on flat arrays:

>>> import numpy as np, riesz as rz, scipy.optimize
>>> def r(x):
...     return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])
>>> start = np.array([-1.2, 1.0])
>>> found = scipy.optimize.least_squares(r, start, jac=lambda x: rz.linearize(r, x)[1].as_operator())
>>> bool(np.allclose(found.x, 1.0))
True
>>> def f(x):
...     return 0.5 * np.sum(r(x) ** 2)
>>> hess = lambda x: rz.hessian(f)(x).as_operator()
>>> found = scipy.optimize.minimize(f, start, jac=rz.grad(f), hess=hess, method="trust-constr")
>>> bool(np.allclose(found.x, 1.0))
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import VectorError
from ..runtime.progress import working
from ..terms.term import Arrow
from .constrained_fits import with_equations
from .fit_loop import Damping, Halving, Settings, begun
from .fit_result import Iteration, LeastSquaresResult


def gauss_newton(
    residual: Any,
    x0: Any,
    *args: Any,
    max_iterations: int = 50,
    tolerance: float = 1e-10,
    progress: bool | Callable[[Iteration], None] = False,
    method: str = "auto",
    **options: Any,
) -> LeastSquaresResult:
    """Minimise ½‖r(x)‖² by Gauss–Newton steps, min ‖r + r'(x)s‖², each halved until the cost falls; the shortest step
    where there are several.

    See `levenberg_marquardt` for the arguments and options; it is the safer choice far from the solution.

    >>> import numpy as np, riesz as rz
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> rz.gauss_newton(lambda p: p["a"] * np.exp(p["k"] * t) - 2.0 * np.exp(-t), {"a": 1.0, "k": 0.0}).converged
    True
    """
    settings = Settings(max_iterations, tolerance, progress, method, **options)
    return minimised(residual, x0, args, Halving(), settings)


def levenberg_marquardt(
    residual: Any,
    x0: Any,
    *args: Any,
    max_iterations: int = 100,
    tolerance: float = 1e-10,
    damping: float | None = None,
    progress: bool | Callable[[Iteration], None] = False,
    method: str = "auto",
    **options: Any,
) -> LeastSquaresResult:
    """Minimise ½‖r(x)‖² by steps s with min ‖r + r'(x)s‖² + λ‖D s‖², D the column norms of r'; λ is `damping` at first
    (1e-6; or where the fit given as x0 ended; 0.1 for many separate fits, where D is more alike in the first steps).

    `residual` is NumPy code or a combinator of one argument, a tree of floats and arrays like x0; `args` are passed on
    to it. x0 may be the result of another fit. It stops when the cosine between r and every column of r' is below
    `tolerance`, the step relative to x is, or the cost cannot fall any more (by `cost_tolerance`, relative).
    `progress=True` prints a line per step; a function gets the `Iteration`. `method`: "dense" (QR), "sparse" (normal
    equations by their structure: blocks, Schur complement), "iterative" (LSMR, nothing but products), "cg" (conjugate
    gradients, preconditioned by blocks), or "auto"; the result says which way was taken.

    Further options, trees like x0 or like the residual where they speak of parts:

    - `loss`: "soft_l1", "huber", "cauchy", "arctan", "geman_mcclure" or a function ρ of the squared residuals, the same
      for all or one for each part of the residual (None: squares); `loss_scale`: where outliers begin; `loss_axis=-1`:
      numbers along the last axis of an array are one observation (else each is).
    - `weights`: the residual's squares are multiplied by them; `information`: a matrix for each row of numbers along
      the last axis. With either, covariances are absolute.
    - `bounds=(lower, upper)`; `fixed`: True for what stays, or a mask; `x_scale`: typical sizes instead of D.
    - `equality`: a function of x and args that is to be 0 (augmented Lagrangian, `max_iterations` for each of
      its rounds; the result has `multipliers`).
    - `manifold={"q": rz.manifolds.SO3}`: unknowns on manifolds.
    - `checkpoint`: a file that is written after `every` so many accepted steps, and from which the fit goes on to the
      same bits when it is started again; a file of another fit is refused.
    - `callback`: gets each accepted `Iteration` with its x; the fit stops where it gives True.

    >>> import numpy as np, riesz as rz
    >>> r = lambda x: np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])
    >>> found = rz.levenberg_marquardt(r, np.array([-1.2, 1.0]))
    >>> found.converged, np.allclose(found.x, 1.0)
    (True, True)
    """
    if damping is None and isinstance(x0, LeastSquaresResult) and x0.damping > 0.0:
        damping = max(x0.damping, 1e-12)
    usual, damping = damping is None, 1e-6 if damping is None else damping
    if not damping > 0.0:
        raise VectorError(f"damping={damping!r}: a positive number is due (gauss_newton takes undamped steps)")
    settings = Settings(max_iterations, tolerance, progress, method, **options)
    return minimised(residual, x0, args, Damping(damping, usual), settings)


def minimised(residual: Any, x0: Any, args: Any, policy: Any, settings: Settings) -> LeastSquaresResult:
    """The fit, with the damping or halving of a policy."""
    if args and isinstance(residual, Arrow):
        instead = "put the others into it, as in residual @ rz.fork(rz.id, rz.const(c))"
        raise VectorError(f"a combinator takes one argument; {instead}")
    with working(policy.title, settings.most) as work:
        if settings.equality is not None:
            return with_equations(residual, x0, args, policy, settings, work)
        fit = begun(residual, x0, args, policy, settings, work)
        from .batched_fits import apart

        return (apart(fit) if settings.checkpoint is None else None) or fit.run()


def _over_an_axis(damped: bool, in_axes: Any, out_axes: Any) -> Any:
    from .batched_fits import FitsOverAnAxis

    return FitsOverAnAxis(damped, in_axes, out_axes)


setattr(gauss_newton, "over_an_axis", partial(_over_an_axis, False))  # noqa: B010  (what rz.vmap makes of them)
setattr(levenberg_marquardt, "over_an_axis", partial(_over_an_axis, True))  # noqa: B010
