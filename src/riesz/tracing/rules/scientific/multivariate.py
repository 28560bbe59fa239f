"""Distributions of scipy.stats on vectors and matrices, and kernel densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import holds_traced, typed
from ..linalg.matrix_ops import mirrored
from .gamma_functions import s
from .precision import double

LN_2PI = math.log(2 * math.pi)


def _multigammaln(a: Any, d: int) -> Any:
    return 0.25 * d * (d - 1) * math.log(math.pi) + sum([s.gammaln(a - 0.5 * j) for j in range(d)])


def _factor(matrix: Any, dim: int) -> Any:
    """A covariance given as a matrix, a diagonal or a number."""
    m = double(matrix)
    if np.ndim(m) < 2:
        return m * np.eye(dim) if np.ndim(m) == 0 else np.diag(m)
    return mirrored(m, True) if holds_traced(m) else np.tril(m) + np.tril(m, -1).T  # SciPy reads the lower triangle


def _points(x: Any, mean: Any, matrix: Any) -> tuple[Any, Any, int]:
    """Points minus the mean, the matrix, and the dimension."""
    x = double(x)
    ends = [np.shape(v)[-1] for v in (mean, matrix) if v is not None and np.ndim(v)]
    dim = ends[0] if ends else (np.shape(x)[-1] if np.ndim(x) and mean is None and matrix is None else 1)
    x = x[..., None] if np.ndim(x) == 0 or (np.ndim(x) == 1 and dim == 1) else x
    centre = np.zeros(dim) if mean is None else double(mean)
    return x - centre, _factor(1.0 if matrix is None else matrix, dim), dim


def _distance(y: Any, matrix: Any) -> Any:
    """yᵀ A⁻¹ y for the vectors in the last axis."""
    shape, dim = np.shape(y), np.shape(y)[-1]
    flat = np.reshape(y, (-1, dim))
    solved = np.linalg.solve(matrix, flat.T).T
    return np.reshape(np.sum(flat * solved, axis=-1), shape[:-1])


def _logdet(matrix: Any) -> Any:
    return np.linalg.slogdet(matrix)[1]


def normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """−½ (ln det 2πC + (x−m)ᵀ C⁻¹ (x−m))."""
    y, matrix, dim = _points(x, mean, cov)
    if allow_singular:
        return _singular_logpdf(y, matrix)
    return -0.5 * (dim * LN_2PI + _logdet(matrix) + _distance(y, matrix))


def _singular_logpdf(y: Any, matrix: Any) -> Any:
    """The same with the eigenvalues that are not 0 up to rounding, on the space that their vectors span."""
    w, v = np.linalg.eigh(matrix)
    size = np.max(np.abs(w))
    counts = w > 1e6 * np.finfo(float).eps * size
    along = y @ v
    total = np.sum(np.where(counts, LN_2PI + np.log(np.where(counts, w, 1.0)), 0.0))
    squares = np.sum(np.where(counts, along**2 / np.where(counts, w, 1.0), 0.0), axis=-1)
    outside = np.sqrt(np.sum(np.where(counts, 0.0, along**2), axis=-1)) > 1e3 * 1e6 * np.finfo(float).eps
    return np.where(outside, -np.inf, -0.5 * (total + squares))


def normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    """½ ln det 2πeC."""
    _, matrix, dim = _points(np.zeros(np.shape(mean) or np.shape(cov)[-1:]), mean, cov)
    return 0.5 * (dim * (LN_2PI + 1.0) + _logdet(matrix))


def student_logpdf(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
    """Student's distribution in several dimensions."""
    y, matrix, dim = _points(x, loc, shape)
    df = double(df)
    first = s.gammaln(0.5 * (df + dim)) - s.gammaln(0.5 * df) - 0.5 * dim * np.log(math.pi * df)
    return first - 0.5 * _logdet(matrix) - 0.5 * (df + dim) * np.log1p(_distance(y, matrix) / df)


def _simplex(x: Any, alpha: Any) -> tuple[Any, Any]:
    """Points with all components in the first axis, and parameters beside them."""
    x, alpha = double(x), double(alpha)
    if np.shape(x)[0] + 1 == np.shape(alpha)[0]:
        x = np.concatenate([x, 1.0 - np.sum(x, axis=0, keepdims=True)])
    return x, np.reshape(alpha, (-1, *(1,) * (np.ndim(x) - 1)))


def dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """Σ (αᵢ−1) ln xᵢ − ln B(α)."""
    x, a = _simplex(x, alpha)
    return np.sum(s.xlogy(a - 1.0, x), axis=0) + s.gammaln(np.sum(alpha)) - np.sum(s.gammaln(double(alpha)))


def dirichlet_entropy(alpha: Any) -> Any:
    a = double(alpha)
    total = np.sum(a)
    log_beta = np.sum(s.gammaln(a)) - s.gammaln(total)
    return log_beta + (total - len(a)) * s.psi(total) - np.sum((a - 1.0) * s.psi(a))


def dirichlet_mean(alpha: Any) -> Any:
    a = double(alpha)
    return a / np.sum(a)


def dirichlet_var(alpha: Any) -> Any:
    a = double(alpha)
    total = np.sum(a)
    return a * (total - a) / (total * total * (total + 1.0))


def _matrices(x: Any, scale: Any) -> tuple[Any, Any, int]:
    """Matrices in the last two axes (SciPy has them in the first two), the scale as a matrix, its dimension."""
    x, scale = double(x), double(scale)
    dim = np.shape(scale)[-1] if np.ndim(scale) else 1
    x = np.reshape(x, (1, 1, *np.shape(x))) if np.ndim(x) < 2 else x
    return np.moveaxis(x, (0, 1), (-2, -1)), _factor(scale, dim), dim


def _trace_solve(a: Any, b: Any) -> Any:
    return np.trace(np.linalg.solve(a, b), axis1=-2, axis2=-1)


def wishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    x, v, d = _matrices(x, scale)
    df = double(df)
    first = 0.5 * (df - d - 1.0) * _logdet(x) - 0.5 * _trace_solve(np.broadcast_to(v, np.shape(x)), x)
    return np.squeeze(first - 0.5 * df * (d * math.log(2.0) + _logdet(v)) - _multigammaln(0.5 * df, d))


def invwishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    x, v, d = _matrices(x, scale)
    df = double(df)
    first = -0.5 * (df + d + 1.0) * _logdet(x) - 0.5 * _trace_solve(x, np.broadcast_to(v, np.shape(x)))
    return np.squeeze(first + 0.5 * df * (_logdet(v) - d * math.log(2.0)) - _multigammaln(0.5 * df, d))


def matrix_normal_logpdf(X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    x = double(X)
    rows, columns = np.shape(x)[-2:]
    u, v = _factor(rowcov, rows), _factor(colcov, columns)
    y = x if mean is None else x - double(mean)
    square = np.sum(
        np.linalg.solve(u, y) * np.moveaxis(np.linalg.solve(v, np.moveaxis(y, -1, -2)), -1, -2), axis=(-2, -1)
    )
    return -0.5 * (rows * columns * LN_2PI + columns * _logdet(u) + rows * _logdet(v) + square)


def multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """ln n! + Σ (xᵢ ln pᵢ − ln xᵢ!); SciPy takes the last probability as what is left to 1."""
    x, n, p = double(x), double(n), double(p)
    p = np.concatenate([p[..., :-1], 1.0 - np.sum(p[..., :-1], axis=-1, keepdims=True)], axis=-1)
    found = s.gammaln(n + 1.0) + np.sum(s.xlogy(x, p) - s.gammaln(x + 1.0), axis=-1)
    fits = (np.sum(x, axis=-1) == n) & np.all((x >= 0) & (np.floor(x) == x), axis=-1)
    return np.where(fits, found, -np.inf)


def dirichlet_multinomial_logpmf(x: Any, alpha: Any, n: Any) -> Any:
    x, a, n = double(x), double(alpha), double(n)
    total = np.sum(a, axis=-1)
    first = s.gammaln(total) + s.gammaln(n + 1.0) - s.gammaln(n + total)
    found = first + np.sum(s.gammaln(x + a) - s.gammaln(a) - s.gammaln(x + 1.0), axis=-1)
    return np.where(np.sum(x, axis=-1) == n, found, -np.inf)


_LOGS: dict[str, Callable[..., Any]] = {
    "multivariate_normal.logpdf": normal_logpdf,
    "multivariate_t.logpdf": student_logpdf,
    "dirichlet.logpdf": dirichlet_logpdf,
    "wishart.logpdf": wishart_logpdf,
    "invwishart.logpdf": invwishart_logpdf,
    "matrix_normal.logpdf": matrix_normal_logpdf,
    "multinomial.logpmf": multinomial_logpmf,
    "dirichlet_multinomial.logpmf": dirichlet_multinomial_logpmf,
}


def _exponential_of(logarithm: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs, **named: np.exp(logarithm(*xs, **named))


METHODS: dict[str, Callable[..., Any]] = {
    **_LOGS,
    **{k.replace("log", ""): _exponential_of(f) for k, f in _LOGS.items()},
    "multivariate_normal.entropy": normal_entropy,
    "dirichlet.entropy": dirichlet_entropy,
    "dirichlet.mean": dirichlet_mean,
    "dirichlet.var": dirichlet_var,
}


class VectorDistribution:
    """As scipy.stats.multivariate_normal and its like; `fixed`: the parameters of a frozen one."""

    def __init__(self, given: Any, args: tuple[Any, ...] = (), named: Any = None) -> None:
        self.given, self.args, self.named = given, args, named or {}
        self.name = given.__class__.__name__.removesuffix("_gen")

    @classmethod
    def of(cls, given: Any) -> VectorDistribution:
        """That of a distribution of SciPy's."""
        return cls(given)

    def __call__(self, *args: Any, **named: Any) -> VectorDistribution:
        named.pop("seed", None)
        return VectorDistribution(self.given, args, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        code = METHODS.get(f"{self.name}.{name}")
        if code is None:
            known = [k for k in METHODS if k.startswith(self.name)]
            have = f"{', '.join(known)} are" if known else "write its formula in NumPy, or use rz.custom_derivative"
            raise refuse(f"scipy.stats.{self.name}.{name} is not known to riesz for traced arrays; {have}")

        def method(*given: Any, **named: Any) -> Any:
            first = given[:1] if name.startswith(("log", "pdf", "pmf")) else ()
            found = code(*first, *self.args, *given[len(first) :], **named, **self.named)
            return typed(found, False) if holds_traced(found) else found

        return method


def _frozen(given: Any) -> VectorDistribution:
    """Of a frozen distribution of SciPy's, whose parameters are its attributes."""
    name = given.__class__.__name__.removesuffix("_frozen")
    cov = getattr(given, "cov_object", None)
    values = {"cov": given.cov} if cov is not None else {}
    wanted = {"multivariate_normal": "mean", "multivariate_t": "loc shape df", "dirichlet": "alpha"}
    wanted |= {
        "wishart": "df scale",
        "invwishart": "df scale",
        "multinomial": "n p",
        "dirichlet_multinomial": "alpha n",
    }
    if name not in wanted:
        raise refuse(f"a frozen scipy.stats.{name} is not known to riesz; give its methods their parameters")
    found = VectorDistribution(given, (), {**values, **{k: getattr(given, k) for k in wanted[name].split()}})
    found.name = name
    return found


class _FrozenVectors:
    of = staticmethod(_frozen)


class KernelDensity:
    """As scipy.stats.gaussian_kde: a mean of normal densities at the data, which are fixed."""

    given: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        raise refuse(
            "scipy.stats.gaussian_kde of traced data is not known to riesz; "
            "write np.mean(scipy.stats.norm.pdf(x - data))"
        )

    @classmethod
    def of(cls, given: Any) -> KernelDensity:
        """That of a kernel density of SciPy's."""
        found = object.__new__(cls)
        found.given = given
        return found

    def __call__(self, points: Any) -> Any:
        return np.exp(self.logpdf(points))

    evaluate = pdf = __call__

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density."""
        from ..scipy_names import logsumexp

        given, x = self.given, double(x)
        x = np.reshape(x, (given.d, -1)) if np.ndim(x) < 2 else x
        y = x.T[:, None, :] - given.dataset.T[None, :, :]
        logs = -0.5 * (given.d * LN_2PI + _logdet(given.covariance) + _distance(y, given.covariance))
        return logsumexp(logs + np.log(given.weights), axis=1)


CLASSES = {"multi_rv_generic": VectorDistribution, "multi_rv_frozen": _FrozenVectors, "gaussian_kde": KernelDensity}
