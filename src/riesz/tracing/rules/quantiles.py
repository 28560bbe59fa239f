"""Quantiles, percentiles, medians: combinations of sorted elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..registry import answers_called
from ..trace import refuse
from ..traced import FLOAT, INT, Traced, convert, holds_traced, lifted, tidy, trace_of
from .elementwise import discrete, floating, unmoving, where
from .gathering import along
from .rearranging import axes_of, kept_shape, moveaxis, ravel, reshape, same_shape
from .sorting import taken


def _order_or_nan(x: Any) -> Any:
    """The order of each row; in a row with a nan, its place everywhere."""
    order = np.argsort(x, axis=-1, kind="stable")
    last = order[..., -1:]
    return np.where(np.isnan(np.take_along_axis(np.asarray(x), last, -1)), last, order)


def _flattened(a: Any, axis: Any, keepdims: Any) -> tuple[Traced, tuple[int, ...]]:
    """The axes to reduce merged into a last one, and the shape of a result."""
    x = floating(a)
    gone = axes_of(axis, x.ndim)
    shape = tuple([n for i, n in enumerate(x.shape) if i not in gone])
    merged = moveaxis(x, gone, tuple(range(x.ndim - len(gone), x.ndim))) if shape else x
    rows = reshape(merged, (*shape, math.prod([x.shape[i] for i in gone])))
    return rows, kept_shape(x.shape, gone) if keepdims else shape


def _sorted(x: Traced) -> Traced:
    """The elements of each row in their order."""
    return taken(x, unmoving(_order_or_nan, INT, x, shaped=same_shape))


_CHOSEN = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
"""Methods that take one of the elements."""
_SHIFTS = {
    **{"interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0)},
    **{"median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)},
}
"""α and β of Hyndman and Fan."""
_METHODS = ("linear", "midpoint", "averaged_inverted_cdf", *_CHOSEN, *_SHIFTS)


def _neighbours(n: int, q: Any, method: str) -> tuple[Any, Any, Any]:
    """Of quantiles of a sorted array of length n: the positions below and above, and the weight of the one above; None
    where one element is taken. Both are read, also where a weight is 0: NumPy's is nan if the gap is not finite."""
    q = np.asarray(q)
    if method in _CHOSEN or (method == "linear" and q.dtype.kind in "iub"):
        at = np.quantile(np.arange(n), q, method=method).astype(np.intp)
        return at, at, None
    place = (n - 1) * q
    if method == "averaged_inverted_cdf":
        place = n * q - 1.0
    elif method == "midpoint":
        place = 0.5 * (np.floor(place) + np.ceil(place))
    elif method != "linear":
        alpha, beta = _SHIFTS[method]
        place = n * q + (alpha + q * (1.0 - alpha - beta)) - 1.0
    low = np.floor(place)
    part = place - low
    if method == "averaged_inverted_cdf":
        part = np.where(part == 0, 0.5, 1.0)
    high = np.clip(low + 1, 0, n - 1) * (place >= 0)
    low, part = np.clip(low, 0, n - 1), np.where((place < 0) | (place >= n - 1), 0.0, part)
    low, high = np.where(part == 1, high, low), np.where(part == 1, low, high)
    return low.astype(np.intp), high.astype(np.intp), np.where(part == 1, 0.0, part)


def _checked(q: Any, method: Any, weights: Any) -> Any:
    if weights is not None:
        raise refuse(
            "quantiles with weights=… are not known to riesz; sort and interpolate the cumulative weights with "
            "np.interp"
        )
    if method not in _METHODS:
        raise refuse(f"the method {method!r} of quantiles is not known to riesz; these are: {', '.join(_METHODS)}")
    if holds_traced(q):
        if method != "linear":
            raise refuse(f"quantiles at traced q are known for method='linear'; got {method!r}")
        return tidy(q)
    fixed = np.asarray(q)
    if not bool(((fixed >= 0) & (fixed <= 1)).all()):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return fixed


def _presented(found: Traced, shape: tuple[int, ...], outer: tuple[int, ...] = ()) -> Any:
    """Rows × quantiles as NumPy gives them: quantiles first."""
    return reshape(moveaxis(found, found.ndim - 1, 0) if found.ndim > 1 else found, (*outer, *shape))


def _quantile(a: Any, q: Any, axis: Any, keepdims: Any, method: str) -> Any:
    x, shape = _flattened(lifted(a, trace_of(a, q)), axis, keepdims)
    n = x.shape[-1]
    if not n:
        raise IndexError("quantiles of an empty axis")
    rows = _sorted(x)
    if type(q) is Traced:
        place: Any = ravel(q) * float(n - 1)
        inside = discrete(np.fmin, discrete(np.fmax, place, 0.0), float(n - 1))  # a branch not taken may have any
        whole = discrete(np.floor, inside)
        low = convert(whole, INT)
        high = unmoving(np.minimum, INT, low + 1, np.asarray(n - 1))
        found = _interpolated(rows[..., low], rows[..., high], place - whole)
        there = discrete(np.greater_equal, place, 0.0) & discrete(np.less_equal, place, float(n - 1))
        return _presented(where(there, found, np.nan), shape, q.shape)
    low, high, part = _neighbours(n, q.ravel(), method)
    found = along(rows, x.ndim - 1, low)
    if part is not None:
        above, part = along(rows, x.ndim - 1, high), part.astype(x.dtype)
        gap = above - found
        if not part.any():
            found = _spoiled(found, gap)
        elif (part == part[0]).all():  # one number is a scaling
            found = found + float(part[0]) * gap if part[0] < 0.5 else above - float(1 - part[0]) * gap
        else:
            found = _interpolated(found, above, part)
    return _presented(found, shape, q.shape)


def _spoiled(element: Any, gap: Any) -> Any:
    """An element that is the quantile. NumPy adds 0 · the gap to the next one: nan where that is infinite."""
    return where(discrete(np.isfinite, gap), element, np.nan)


def _interpolated(below: Any, above: Any, part: Any) -> Any:
    """As NumPy does it: from the nearer end."""
    gap = above - below
    near = discrete(np.less, part, 0.5) if type(part) is Traced else part < 0.5
    return where(near, below + part * gap, above - (1.0 - part) * gap)


def _nothing(x: Traced, shape: tuple[int, ...]) -> Any:
    """nan for each row, where the rows of an array are empty or there are none."""
    return lifted(np.full(shape, np.nan, x.dtype), x.home)


def _widened(a: Any, q: Any, method: Any) -> Any:
    """a in the type its quantiles have: where elements are weighted and q has a type of its own, that of both."""
    if type(a) is not Traced or a.dtype.kind != "f" or type(q) in (int, float) or method in _CHOSEN or holds_traced(q):
        return a
    kind = np.asarray(q).dtype
    return convert(a, np.result_type(a.dtype, kind if kind.kind == "f" else FLOAT))


def _median(a: Any, axis: Any, keepdims: Any) -> Any:
    x, shape = _flattened(a, axis, keepdims)
    if not x.size:
        return _nothing(x, shape)
    rows, last, (at, odd) = _sorted(x), x.ndim - 1, divmod(x.shape[-1], 2)
    above = along(rows, last, np.array([at]))
    return _presented(above if odd else 0.5 * (along(rows, last, np.array([at - 1])) + above), shape)


def _number_neighbours(x: Any, q: tuple[float, ...], method: str, which: int) -> Any:
    """`_neighbours` among the numbers of each row; 0 where there are none."""
    counts = np.sum(~np.isnan(x), axis=-1)
    found = np.zeros((*np.shape(counts), len(q)))
    for m in np.unique(counts[counts > 0]):
        given = _neighbours(int(m), q, method)[which]
        found[counts == m] = 0.0 if given is None else given
    return found


def _neighbour(x: Any, q: tuple[float, ...], method: str, which: int) -> Any:
    """Where in each row of x the elements below and above a quantile of its numbers stand."""
    order = np.argsort(x, axis=-1, kind="stable")
    return np.take_along_axis(order, _number_neighbours(x, q, method, which).astype(np.intp), -1)


def _between(x: Any, q: tuple[float, ...], method: str) -> Any:
    return _number_neighbours(x, q, method, 2).astype(np.asarray(x).dtype)


def _per_row(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return (*shapes[0][:-1], len(parameters["q"]))


def _nanquantile(a: Any, q: Any, axis: Any, keepdims: Any, method: str, middle: bool = False) -> Any:
    if type(q) is Traced:
        raise refuse(
            "quantiles of the numbers that are not nan at traced q are not known to riesz; q is fixed, or np.quantile"
        )
    x, shape = _flattened(a, axis, keepdims)
    if not x.size:
        return _nothing(x, shape)  # NumPy's have no axis of quantiles then
    given = {"q": tuple(q.ravel().tolist()), "method": method}
    low, high = [taken(x, unmoving(_neighbour, INT, x, shaped=_per_row, **given, which=k)) for k in (0, 1)]
    part = unmoving(_between, x.dtype, x, shaped=_per_row, **given)
    mean = 0.5 * (low + high) if middle else _interpolated(low, high, part)
    element = low if middle or _neighbours(1, q, method)[2] is None else _spoiled(low, high - low)
    return _presented(where(discrete(np.equal, part, 0.0), element, mean), shape, q.shape)


def _nanmedian(a: Any, axis: Any, keepdims: Any) -> Any:
    return _nanquantile(a, np.asarray(0.5), axis, keepdims, "linear", middle=True)


def _at(found: Any, percent: bool = False) -> Any:
    """A function of numbers and quantiles."""

    def code(a: Any, q: Any, axis: Any, method: Any, keepdims: Any, weights: Any = None) -> Any:
        parts = q if not percent else tidy(q) / 100.0 if holds_traced(q) else np.true_divide(q, 100.0)
        return found(_widened(a, q, method), _checked(parts, method, weights), axis, keepdims, method)

    return code


_OF_NUMBERS = "the same combination of dx"
_OF = f"{_OF_NUMBERS}; slope · dq for traced q"
_OF_MIDDLE = "dx of the middle element; of an even number ½ of each of the two"
for _f, _rule, _code in (
    (np.quantile, _OF, _at(_quantile)),
    (np.percentile, _OF, _at(_quantile, percent=True)),
    (np.median, _OF_MIDDLE, _median),
    (np.nanquantile, _OF_NUMBERS, _at(_nanquantile)),
    (np.nanpercentile, _OF_NUMBERS, _at(_nanquantile, percent=True)),
    (np.nanmedian, _OF_NUMBERS, _nanmedian),
):
    answers_called(_f, what="combination of sorted elements", rule=_rule)(_code)
