"""Statistics of samples in scipy.stats: moments, means, correlations, as formulas along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import holds_traced, typed
from .gamma_functions import s
from .precision import as_given, double


def _count(x: Any, axis: Any) -> int:
    """How many numbers there are along an axis, several, or all."""
    return int(np.size(x) if axis is None else np.prod(np.array(np.shape(x))[np.array(axis)]))


def _power_mean(x: Any, axis: Any, order: int) -> Any:
    """The central moment."""
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return np.mean(centred**order, axis=axis)


def _standard(x: Any, axis: int, order: int) -> Any:
    return _power_mean(x, axis, order) / _power_mean(x, axis, 2) ** (order / 2)


def _skew(x: Any, axis: int, bias: bool = True) -> Any:
    n = _count(x, axis)
    found = _standard(x, axis, 3)
    return found if bias or n < 3 else found * np.sqrt((n - 1.0) * n) / (n - 2.0)


def _kurtosis(x: Any, axis: int, fisher: bool = True, bias: bool = True) -> Any:
    n = _count(x, axis)
    found = _standard(x, axis, 4)
    if not bias and n > 3:
        found = ((n * n - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2.0) * (n - 3.0)) + 3.0
    return found - 3.0 if fisher else found


def _weighted_mean(x: Any, axis: int, weights: Any) -> Any:
    return np.mean(x, axis=axis) if weights is None else np.average(x, axis=axis, weights=double(weights))


def _of_sample(code: Callable[..., Any], start: int = 0) -> Callable[..., Any]:
    name = code.__name__.lstrip("_")

    def function(a: Any, *args: Any, **named: Any) -> Any:
        options = dict(zip(_NAMES[name], args, strict=False)) | named
        if options.pop("nan_policy", "propagate") != "propagate":
            raise refuse(f"scipy.stats.{name} with nan_policy is not known to riesz for traced arrays; leave it out")
        x, axis, kept = double(a), options.pop("axis", start), name != "zscore" and options.pop("keepdims", False)
        found = code(x, axis, **options)
        if kept:
            found = np.expand_dims(found, tuple(range(np.ndim(x))) if axis is None else axis)
        found = as_given(found, a, options.get("qk"), options.get("weights"))
        return typed(found, False) if holds_traced(found) else found

    return function


_NAMES: dict[str, list[str]] = {
    "skew": ["axis", "bias"],
    "kurtosis": ["axis", "fisher", "bias"],
    "moment": ["order", "axis"],
    "gmean": ["axis", "dtype", "weights"],
    "hmean": ["axis", "dtype"],
    "pmean": ["p"],
    "sem": ["axis", "ddof"],
    "variation": ["axis"],
    "zscore": ["axis", "ddof"],
    "entropy": ["qk", "base", "axis"],
    "iqr": ["axis", "rng"],
    "trim_mean": ["proportiontocut", "axis"],
}


def _moment(x: Any, axis: int, order: Any = 1, *, center: Any = None) -> Any:
    if center is None:
        return 0.0 * _power_mean(x, axis, 2) if order == 1 else _power_mean(x, axis, order)
    return np.mean((x - double(center)) ** order, axis=axis)


def _gmean(x: Any, axis: int, dtype: Any = None, weights: Any = None) -> Any:
    return np.exp(_weighted_mean(np.log(x), axis, weights))


def _hmean(x: Any, axis: int, dtype: Any = None, *, weights: Any = None) -> Any:
    return 1.0 / _weighted_mean(1.0 / x, axis, weights)


def _pmean(x: Any, axis: int, p: Any, *, dtype: Any = None, weights: Any = None) -> Any:
    if not holds_traced(p) and p == 0:
        return _gmean(x, axis, None, weights)
    return _weighted_mean(x**p, axis, weights) ** (1.0 / p)


def _sem(x: Any, axis: int, ddof: int = 1) -> Any:
    return np.std(x, axis=axis, ddof=ddof) / np.sqrt(_count(x, axis))


def _variation(x: Any, axis: int, ddof: int = 0) -> Any:
    return np.std(x, axis=axis, ddof=ddof) / np.mean(x, axis=axis)


def _zscore(x: Any, axis: int, ddof: int = 0) -> Any:
    return (x - np.mean(x, axis=axis, keepdims=True)) / np.std(x, axis=axis, ddof=ddof, keepdims=True)


def _entropy(x: Any, axis: int, qk: Any = None, base: Any = None) -> Any:
    p = x / np.sum(x, axis=axis, keepdims=True)
    if qk is None:
        total = np.sum(s.entr(p), axis=axis)
    else:
        q = double(qk)
        total = np.sum(s.rel_entr(p, q / np.sum(q, axis=axis, keepdims=True)), axis=axis)
    return total if base is None else total / np.log(base)


def _iqr(x: Any, axis: int, rng: Any = (25, 75), scale: float = 1.0, interpolation: Any = "linear") -> Any:
    if not np.size(x):
        raise refuse("scipy.stats.iqr of no numbers is not known to riesz for traced arrays")
    low, high = np.percentile(x, rng, axis=axis, method=interpolation)
    return (high - low) / (scale if not isinstance(scale, str) else 1.3489795003921634)


def _trim_mean(x: Any, axis: Any, proportiontocut: float) -> Any:
    x, axis = (np.ravel(x), 0) if axis is None else (x, axis)
    n = np.shape(x)[axis]
    cut = int(proportiontocut * n)
    x = np.moveaxis(np.sort(x, axis=axis), axis, 0)
    return np.mean(x[cut : n - cut], axis=0)


def _pearson(x: Any, y: Any) -> Any:
    x, y = double(x), double(y)
    x, y = x - np.mean(x), y - np.mean(y)
    return np.sum(x * y) / np.sqrt(np.sum(x * x) * np.sum(y * y))


def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: int = 0) -> Any:
    """As scipy.stats.pearsonr of two vectors: the correlation, and how likely it is by chance."""
    if alternative != "two-sided" or method is not None or np.ndim(x) != 1:
        raise refuse(
            "scipy.stats.pearsonr is known to riesz for two vectors without further options; write np.corrcoef"
        )
    r, half = _pearson(x, y), np.shape(x)[0] / 2 - 1
    return Correlation(as_given(r, x, y), 2.0 * s.betainc(half, half, 0.5 * (1.0 - np.abs(r))))


class Correlation(tuple[Any, Any]):
    """A statistic and its p-value, by name and as a pair."""

    __slots__ = ()

    def __new__(cls, statistic: Any, pvalue: Any) -> Correlation:
        return super().__new__(cls, (statistic, pvalue))

    @property
    def statistic(self) -> Any:
        """The correlation."""
        return self[0]

    @property
    def pvalue(self) -> Any:
        """How likely one as large is by chance."""
        return self[1]


_CODES = (_skew, _kurtosis, _moment, _gmean, _hmean, _pmean, _sem, _variation, _zscore, _iqr, _trim_mean, _entropy)
_WHAT, _RULE = "means along an axis", "that of the formula"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    **{code.__name__[1:]: (_of_sample(code), _WHAT, _RULE) for code in _CODES},
    "iqr": (_of_sample(_iqr, None), _WHAT, _RULE),  # pyright: ignore[reportArgumentType]
    "pearsonr": (pearsonr, _WHAT, _RULE),
}
