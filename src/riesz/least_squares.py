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

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.linalg as _linalg  # pyright: ignore[reportMissingTypeStubs]
import scipy.sparse as _sparse  # pyright: ignore[reportMissingTypeStubs]
import scipy.sparse.linalg as _sparse_linalg  # pyright: ignore[reportMissingTypeStubs]

from .calculus.interpretation.product_rules import metric
from .checking.taylor import largest_eps
from .errors import RieszError, SolveError, VectorError
from .functions import derivatives as api
from .maps.linear_map import LinearMap
from .maps.solvers.sparse import choose_sparse
from .ops.number_domains import NUMBERS
from .programs.program import Program, outputs
from .spaces.layout import ROOT
from .terms.term import Arrow

linalg, sparse, sparse_linalg = cast(Any, _linalg), cast(Any, _sparse), cast(Any, _sparse_linalg)

METHODS = ("auto", "dense", "sparse", "iterative")


class Iteration(NamedTuple):
    """One step that was tried."""

    number: int
    cost: float
    step: float
    damping: float
    seconds: float
    accepted: bool

    def __str__(self) -> str:
        found = f"{self.number:4d}  cost {self.cost:.6e}  step {self.step:.2e}  damping {self.damping:.1e}"
        return f"{found}  {self.seconds:.3f} s{'' if self.accepted else '  rejected'}"


class LeastSquaresResult:
    """What a least-squares iteration found: `x`, `residual` (r at x), `cost` (½‖r‖²), `history` (‖r‖ after each
    accepted step, the start first), `iterations`, `converged`, `message`, `method` (how steps were solved for) and
    `jacobian`, the LinearMap at x."""

    def __init__(
        self, at: _Point, history: list[float], iterations: int, converged: bool, message: str, method: str
    ) -> None:
        self.x, self.residual, self.cost, self.jacobian = at.x, at.y, at.cost, at.J
        self.history, self.iterations, self.method = history, iterations, method
        self.converged, self.message = converged, message

    def __repr__(self) -> str:
        head = f"{'converged' if self.converged else 'NOT converged'} after {self.iterations} iterations"
        x = f"  x = {self.x!r}\n" if self.jacobian.domain.dim <= 20 else ""
        norms = f"  ‖r‖ from {self.history[0]:.6g} to {self.history[-1]:.6g}"
        return f"{head}: {self.message}\n{x}{norms}\n  steps: {self.method}"


def gauss_newton(
    residual: Any,
    x0: Any,
    *args: Any,
    max_iterations: int = 50,
    tolerance: float = 1e-10,
    progress: bool | Callable[[Iteration], None] = False,
    method: str = "auto",
) -> LeastSquaresResult:
    """Minimise ½‖r(x)‖² by Gauss–Newton steps, min ‖r + r'(x)s‖, each halved until the cost falls; the shortest step
    where there are several.

    See `levenberg_marquardt` for the arguments; it is the safer choice far from the solution.

    >>> import numpy as np, riesz as rz
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> rz.gauss_newton(lambda p: p["a"] * np.exp(p["k"] * t) - 2.0 * np.exp(-t), {"a": 1.0, "k": 0.0}).converged
    True
    """
    return _minimise(residual, x0, args, _Halving(), max_iterations, tolerance, progress, method)


def levenberg_marquardt(
    residual: Any,
    x0: Any,
    *args: Any,
    max_iterations: int = 50,
    tolerance: float = 1e-10,
    damping: float = 1e-3,
    progress: bool | Callable[[Iteration], None] = False,
    method: str = "auto",
) -> LeastSquaresResult:
    """Minimise ½‖r(x)‖² by steps s with min ‖r + r'(x)s‖² + λ‖D s‖², D the column norms of r'; λ is `damping` at first.

    `residual` is NumPy code or a combinator of one argument, a tree of floats and arrays like x0; `args` are passed on
    to it. It stops when the cosine between r and every column of r' is below `tolerance`, the step relative to x is, or
    the cost cannot fall any more. `progress=True` prints a line per step; a function gets the `Iteration`. `method`:
    "dense" (QR), "sparse" (normal equations by their structure, Schur complement included), "iterative" (LSMR, nothing
    but products), or "auto".

    >>> import numpy as np, riesz as rz
    >>> r = lambda x: np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])
    >>> found = rz.levenberg_marquardt(r, np.array([-1.2, 1.0]))
    >>> found.converged, np.allclose(found.x, 1.0)
    (True, True)
    """
    if not damping > 0.0:
        raise VectorError(f"damping={damping!r}: a positive number is due (gauss_newton takes undamped steps)")
    return _minimise(residual, x0, args, _Damping(damping), max_iterations, tolerance, progress, method)


# -- where we are ------------------------------------------------------------------------------------------


class _Point:
    """x with r(x) and r'(x), in coordinates in which the norm of the residual is Euclidean."""

    def __init__(self, f: Any, x: Any) -> None:
        self.x = x
        with np.errstate(all="ignore"):
            self.y, self.J = api.linearize(f, x)
        W, plain = self.J.codomain, self.J.codomain.unweighted
        self.r = plain.flatten(plain.wrap(metric(W.open(self.y), W, ROOT, NUMBERS))).astype(float)
        self.finite = bool(np.isfinite(self.r).all())
        self.cost = 0.5 * float(self.r @ self.r) if self.finite else math.inf

    def whitened(self) -> LinearMap:
        """r' followed by the root of the codomain's inner product."""
        J = self.J
        if J.codomain.plain:
            return J
        whole = Program()
        given = [whole.input(leaf.shape) for leaf in J.domain.leaves]
        whole.outputs = metric(outputs(J.program, whole, given), J.codomain, ROOT, whole)
        return LinearMap(J.domain, J.codomain.unweighted, whole, J.dtype)

    def coordinates(self) -> Any:
        return self.J.domain.flatten(self.x).astype(float)

    def moved(self, f: Any, step: Any) -> _Point:
        """The point x + step; every array keeps its type."""
        V = self.J.domain
        leaves = [np.asarray(a + s, np.asarray(a).dtype)[()] for a, s in zip(V.open(self.x), V.cut(step), strict=True)]
        return _Point(f, V.wrap([float(a) if np.ndim(a) == 0 and a.dtype == float else a for a in leaves]))


# -- one linear problem ------------------------------------------------------------------------------------


def _matrix(J: LinearMap, method: str) -> Any:
    """r' as a dense array, a sparse one, or None where only products are wanted."""
    m, n = J.shape
    if method == "sparse" or (method == "auto" and n > 200):
        try:
            found = sparse.csr_array(J.to_sparse()).astype(float)
        except RieszError:
            if method == "sparse":
                raise
        else:
            return found if method == "sparse" or found.nnz < 0.2 * m * n else found.toarray()
    return np.asarray(J.to_dense(), float) if method == "dense" or (method == "auto" and m * n <= 10_000_000) else None


class _Problem:
    """min ‖r + J s‖² + λ‖D s‖² at a point, D² the largest diagonals of JᵀJ so far."""

    def __init__(self, at: _Point, method: str, scale: Any) -> None:
        J = at.whitened()
        self.r, self.J = at.r, J
        self.groups = [leaf.size for leaf in J.domain.leaves]
        self.A = _matrix(J, method)
        self.gradient = self.turned(self.r)
        if self.A is None:  # (Jᵀz)² is the square of the norm on average over signs z: good enough to scale by
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (J.shape[0], 8))
            norms = np.sqrt(np.mean(np.asarray(J.rmatmat(signs), float) ** 2, axis=1))
        elif sparse.issparse(self.A):
            norms = np.sqrt(np.bincount(self.A.indices, np.asarray(self.A.data, float) ** 2, minlength=J.shape[1]))
        else:
            norms = np.sqrt(np.einsum("ij,ij->j", self.A, self.A))
        self.norms, self.finite = norms, bool(np.isfinite(norms).all() and np.isfinite(self.gradient).all())
        self.scale = norms if scale is None else np.maximum(norms, scale)
        self.normal = self.triangle = cast(Any, None)
        self.name = ""

    def product(self, s: Any) -> Any:
        """J s."""
        return self.J.matvec(s) if self.A is None else self.A @ s

    def turned(self, y: Any) -> Any:
        """Jᵀy."""
        return np.asarray(self.J.rmatvec(y) if self.A is None else self.A.T @ y, float)

    def cosine(self) -> float:
        """The largest cosine between r and a column of J."""
        size = float(np.linalg.norm(self.r))
        if not size or not self.gradient.any():
            return 0.0
        slopes = self.gradient / np.where(self.norms > 0, self.norms, 1.0)
        return float(np.abs(slopes).max()) / size

    def step(self, damping: float) -> Any:
        """The minimiser; the shortest one where there are several."""
        D = np.where(self.scale > 0, self.scale, 1.0)
        if self.A is None:
            return self._iterated(damping, D)
        return self._sparse(damping, D) if sparse.issparse(self.A) else self._dense(damping, D)

    def _dense(self, damping: float, D: Any) -> Any:
        if self.triangle is None:
            self.triangle, self.rhs = self.A, -self.r
            if self.A.shape[0] > self.A.shape[1]:
                Q, self.triangle = np.linalg.qr(self.A)
                self.rhs = -(Q.T @ self.r)
        self.name = "dense QR"
        if damping == 0.0:
            return linalg.lstsq(self.triangle / D, self.rhs, cond=len(self.r) * np.finfo(float).eps)[0] / D
        stacked = np.concatenate([self.triangle / D, np.diag(np.full(len(D), math.sqrt(damping)))])
        return linalg.lstsq(stacked, np.concatenate([self.rhs, np.zeros(len(D))]), lapack_driver="gelsy")[0] / D

    def _sparse(self, damping: float, D: Any) -> Any:
        if self.normal is None:
            self.normal = sparse.csr_array(self.A.T @ self.A)
        damped = self.normal + sparse.diags_array(damping * D**2) if damping else self.normal
        try:
            solver = choose_sparse(damped, True, self.groups)
        except SolveError:
            if damping:
                raise
            return self._iterated(0.0, D)
        self.name = f"normal equations, {solver.name}"
        return solver.solve(-self.gradient)

    def _iterated(self, damping: float, D: Any) -> Any:
        """LSMR in the scaled unknowns D s; as exact as is of use at this distance from the solution."""
        self.name = "LSMR"
        shape = self.J.shape
        forward: Callable[[Any], Any] = lambda s: self.product(s.reshape(-1) / D)  # noqa: E731
        backward: Callable[[Any], Any] = lambda y: self.turned(y.reshape(-1)) / D  # noqa: E731
        A = sparse_linalg.LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=float)
        enough = max(min(1e-2, 0.1 * self.cosine()), 1e-14)
        limits = {"atol": enough, "btol": 1e-14, "conlim": 0.0, "maxiter": max(2 * min(shape), 100)}
        return sparse_linalg.lsmr(A, -self.r, damp=math.sqrt(damping), **limits)[0] / D


# -- how far to go -----------------------------------------------------------------------------------------


class _Damping:
    """λ falls with how well the linear model foretold the cost, and grows while steps fail, ever faster (Nielsen)."""

    def __init__(self, value: float) -> None:
        self.value, self.growth = value, 2.0

    def step(self, problem: _Problem) -> Any:
        return problem.step(self.value)

    def accepted(self, ratio: float) -> None:
        self.value = max(self.value * max(1.0 / 3.0, 1.0 - (2.0 * ratio - 1.0) ** 3), 1e-16)
        self.growth = 2.0

    def rejected(self) -> bool:
        """Whether to go on."""
        self.value *= self.growth
        self.growth *= 2.0
        return self.value < 1e20


class _Halving:
    """The undamped step, halved until the cost falls; `value` is what stands for the damping, 0."""

    def __init__(self) -> None:
        self.value, self.length = 0.0, 1.0
        self.last: tuple[_Problem | None, Any] = (None, None)

    def step(self, problem: _Problem) -> Any:
        if self.last[0] is not problem:
            self.last = (problem, problem.step(0.0))
        return self.length * self.last[1]

    def accepted(self, ratio: float) -> None:
        self.length = 1.0

    def rejected(self) -> bool:
        """Whether to go on."""
        self.length /= 2.0
        return self.length > 1e-12


def _bound(residual: Any, args: tuple[Any, ...]) -> Any:
    """The residual as a function of x alone."""
    if not args:
        return residual if isinstance(residual, Arrow) else api.function(residual)
    if isinstance(residual, Arrow):
        instead = "put the others into it, as in residual @ rz.fork(rz.id, rz.const(c))"
        raise VectorError(f"a combinator takes one argument; {instead}")

    def bound(x: Any) -> Any:
        return residual(x, *args)

    return api.function(bound)


def _minimise(
    residual: Any, x0: Any, args: Any, policy: Any, most: int, tolerance: float, progress: Any, method: str
) -> LeastSquaresResult:
    if method not in METHODS:
        raise VectorError(f"method={method!r}: expected one of {', '.join(METHODS)}")
    f = _bound(residual, args)
    at = _Point(f, x0)
    if not at.finite:
        where = int(np.argmin(np.isfinite(at.r)))
        bad = f"the residual at x0 is {at.r[where]} in component {where} of {len(at.r)}"
        raise SolveError(f"least squares: {bad}; start where it is finite")
    eps = max([largest_eps([np.asarray(a).dtype]) for a in at.J.domain.open(at.x)], default=float(np.finfo(float).eps))
    report: Any = print if progress is True else progress or None
    history, scale = [math.sqrt(2.0 * at.cost)], None
    number, begun, name = 0, time.perf_counter(), "none was needed"

    def done(converged: bool, message: str) -> LeastSquaresResult:
        return LeastSquaresResult(at, history, number, converged, message, name)

    while True:
        problem = _Problem(at, method, scale)
        scale = problem.scale
        if not problem.finite:
            return done(False, "the derivative of the residual is not finite at x")
        if problem.cosine() <= max(tolerance, 4.0 * eps):
            return done(True, "the gradient is 0" + ("" if at.cost else ", and so is the residual"))
        here, bad, small, foreseen = float(np.linalg.norm(scale * at.coordinates())), False, False, math.nan
        while True:
            if number >= most:
                return done(False, f"max_iterations={most} are used up")
            number += 1
            try:
                step = policy.step(problem)
            except SolveError:
                step = np.full(len(scale), np.nan)
            name = problem.name or name
            foretold = -float(problem.gradient @ step) - 0.5 * float(np.linalg.norm(problem.product(step))) ** 2
            if math.isnan(foreseen):
                foreseen = foretold
                small = policy.value <= 1.0 and float(np.linalg.norm(scale * step)) <= tolerance * (here + tolerance)
            trial = at.moved(f, step) if np.isfinite(step).all() else None
            cost = math.inf if trial is None else trial.cost
            bad = bad or not math.isfinite(cost)
            ratio = (at.cost - cost) / foretold if foretold > 0 else -1.0
            good = trial is not None and ratio > 1e-4
            if report is not None:
                size, seconds = float(np.linalg.norm(step)), time.perf_counter() - begun
                report(Iteration(number, cost, size, policy.value, seconds, good))
            if good and trial is not None:
                policy.accepted(ratio)
                at = trial
                history.append(math.sqrt(2.0 * at.cost))
                if small:
                    return done(True, "the step is small")
                break
            if small or foreseen <= 0.01 * math.sqrt(eps) * at.cost:
                return done(True, "the cost cannot fall any more but for rounding")
            if not policy.rejected():
                why = ": the residual is not finite nearby" if bad else ""
                return done(foreseen <= math.sqrt(eps) * at.cost, f"no step lowers the cost{why}")
