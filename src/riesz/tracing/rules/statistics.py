"""Variances without nan, covariances, correlations and polynomials, from sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import answers, answers_called
from ..trace import refuse
from ..traced import FLOAT, convert, holds_traced, lifted, tidy, trace_of
from .elementwise import discrete, floating, in_double


@answers_called(np.cov, what="products of centred rows", rule="that of the products")
def cov(m: Any, y: Any, rowvar: bool, bias: bool, ddof: Any, fweights: Any, aweights: Any, dtype: Any = None) -> Any:
    """The covariance matrix of the rows (or columns)."""
    x = _rows(m, y, rowvar, FLOAT if dtype is None else np.dtype(dtype))
    n = x.shape[1]
    free = ddof if ddof is not None else int(not bias)
    if fweights is None and aweights is None:
        centred = x - np.mean(x, axis=1, keepdims=True)
        scale: Any = n - free
        weighted = centred
    else:
        frequency = np.ones(n) if fweights is None else np.asarray(fweights, float)
        weight = frequency if aweights is None else frequency * np.asarray(aweights, float)
        whole = np.sum(weight)
        centred = x - (x @ weight / whole)[:, None]
        spent = free if aweights is None else free * np.sum(weight * np.asarray(aweights, float)) / whole
        scale, weighted = whole - (spent if free else 0.0), centred * weight
    return np.squeeze(weighted @ centred.T * (1.0 / scale if scale > 0 else np.inf))


def _rows(m: Any, y: Any, rowvar: bool, kind: Any) -> Any:
    """One variable per row."""
    trace = trace_of(m, y)
    x = lifted(tidy(m), trace)
    x = x if x.dtype == kind else convert(x, kind)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    x = x if x.ndim == 2 else np.reshape(x, (1, -1))
    x = x if rowvar or np.ndim(m) < 2 else x.T
    if y is None:
        return x
    return np.concatenate([x, _rows(lifted(y, trace) if type(y) is np.ndarray else y, None, rowvar, kind)], axis=0)


@answers_called(np.corrcoef, what="covariances over standard deviations", rule="that of both")
def corrcoef(x: Any, y: Any, rowvar: bool, bias: Any, ddof: Any, dtype: Any = None) -> Any:
    """The correlation matrix; bias and ddof cancel, as in NumPy."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    spread = np.sqrt(np.diagonal(c))
    return c / (spread[:, None] * spread[None, :])


@answers_called(np.nanvar, what="selection and mean of squares", rule="that of the formula, where x is a number")
def nanvar(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> Any:
    x = floating(a)
    x = x if dtype is None or np.dtype(dtype) == x.dtype else convert(x, np.dtype(dtype))
    good = discrete(np.logical_not, discrete(np.isnan, x))
    good = good if where is None else np.logical_and(good, where)
    found = np.where(good, x, 0.0)
    count = convert(np.sum(good, axis, keepdims=True), x.dtype)
    centred = np.where(good, found - np.sum(found, axis, keepdims=True) / np.maximum(count, 1.0), 0.0)
    free = convert(np.sum(good, axis, keepdims=bool(keepdims)), x.dtype) - ddof
    total = np.sum(centred * centred, axis, keepdims=bool(keepdims))
    return np.where(free > 0, total / np.where(free > 0, free, 1.0), np.nan)


@answers_called(np.nanstd, what="root of np.nanvar", rule="that of the root, where x is a number; 0 at 0")
def nanstd(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any) -> Any:
    said = {"dtype": dtype, "ddof": ddof, "keepdims": bool(keepdims)} | ({} if where is None else {"where": where})
    square = nanvar(a, axis, **said)
    none = square == 0
    return np.where(none, 0.0, np.sqrt(np.where(none, 1.0, square)))


@answers_called(np.polyder, what="products with powers", rule="the same of dx")
def polyder(p: Any, m: int) -> Any:
    """The coefficients of the derivative of order m, highest power first."""
    x = tidy(p)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(m):
        x = x[:-1] * np.arange(x.shape[0] - 1, 0, -1)
    return x


@answers(np.roots, what="eigenvalues of the companion matrix", rule="−Σ dpₖ xᵏ / p′(x), by the eigenvalues")
def roots(p: Any) -> Any:
    """The roots of a polynomial, highest power first; whether the first and the last are 0 is decided at the point."""
    x = floating(tidy(p))
    if x.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    zeros = 0
    while x.shape[0] and bool(x[0] == 0):
        x = x[1:]
    while x.shape[0] and bool(x[-1] == 0):
        x, zeros = x[:-1], zeros + 1
    if x.shape[0] < 2:
        return np.zeros(zeros)
    n = x.shape[0] - 1
    top = np.reshape(-x[1:] / x[0], (1, n))
    found = np.linalg.eigvals(np.concatenate([top, np.eye(n - 1, n, dtype=x.dtype)]))
    return np.concatenate([found, np.zeros(zeros, found.dtype)]) if zeros else found


@answers(np.polyval, what="Horner's scheme", rule="that of the products")
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p, highest power first, at x."""
    if isinstance(x, np.poly1d):
        raise refuse("np.polyval of a polynomial is not known for traced coefficients; evaluate at numbers")
    p = p if holds_traced(p) else np.asarray(p)
    given = tidy(x)
    total: Any = np.zeros(np.shape(given), getattr(given, "dtype", None) or np.asarray(given).dtype)
    for k in range(np.shape(tidy(p))[0]):
        total = total * given + p[k]
    return total


@answers_called(np.logspace, what="powers of evenly spaced exponents", rule="that of both")
def logspace(start: Any, stop: Any, num: int, endpoint: bool, base: Any, dtype: Any, axis: int) -> Any:
    found = np.power(base, np.linspace(start, stop, num, endpoint=endpoint, axis=axis))
    return found if dtype is None else found.astype(dtype)


@answers_called(np.geomspace, what="exponentials of evenly spaced logarithms", rule="that of both")
def geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    start, stop = in_double(start), in_double(stop)
    found = np.exp(np.linspace(np.log(start), np.log(stop), num, endpoint=endpoint, axis=axis))
    return found if dtype is None else found.astype(dtype)
