"""Sorting, order statistics, interpolation: which element stands where has no derivative; fetching it is a gather at computed positions."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ..opaque import Discrete, Take
from ..ops import Reduction
from ..relations import Gather, freeze
from ..sets import Seg
from .elementwise import discrete, where
from .indexing import wrapped
from .rearranging import along, axes_of, broadcast_to, concatenate, everywhere, moveaxis, of_number, ravel, reshape, stack
from .traced import FLOAT, INT, Traced, answers, convert, holds_traced, lifted, operands, refuse, several, slot_of, tidy, trace_of

_NONE = np._NoValue  # pyright: ignore
DISCRETE = "no derivative: constant between ties"


def _rows(a: Any, axis: Any) -> tuple[Traced, int]:
    """The array with the axis to sort along last, and where that axis was; None: flat."""
    x = lifted(a)
    if axis is None:
        return ravel(x), 0
    (at,) = axes_of(axis, x.ndim)
    return moveaxis(x, at, x.ndim - 1), at


def _same_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[0]


def taken(x: Traced, positions: Any) -> Traced:
    """x[…, positions[…]], row by row: all axes but the last run together."""
    trace = trace_of(x, positions)
    batch = x.ndim - 1
    shape = (*x.shape[:batch], *np.shape(positions)[batch:])
    if not math.prod(shape):
        return lifted(np.zeros(shape, x.dtype), trace)
    slots = (slot_of(trace, x, x.dtype), slot_of(trace, positions, INT))
    return Traced(trace, trace.step(Take(batch, batch), slots), x.dtype)


def _kind(kind: Any, order: Any, stable: Any) -> str:
    if order is not None:
        raise refuse("sorting by fields (order=…) is for structured arrays; traced arrays hold real numbers")
    return "stable" if stable else str(kind or "quicksort")


# -- orders -----------------------------------------------------------------------------------------------


def _argsort(x: Any, kind: str) -> Any:
    return np.argsort(x, axis=-1, kind=kind)  # pyright: ignore


@answers(np.argsort, what="discrete", rule=DISCRETE)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The positions in ascending order."""
    x, at = _rows(a, None if of_number(axis, np.ndim(a)) else axis)
    found = several(Discrete(_argsort, (("kind", _kind(kind, order, stable)),), _same_shape), INT, x)
    return moveaxis(found, found.ndim - 1, at)


@answers(np.sort, what="gather by the order", rule="dx gathered by the same order; equal elements in the order they stand")
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The elements in ascending order."""
    _kind(kind, order, stable)
    x, at = _rows(a, axis)
    found = taken(x, several(Discrete(_argsort, (("kind", "stable"),), _same_shape), INT, x))
    return moveaxis(found, found.ndim - 1, at)


def _argpartition(x: Any, kth: Any) -> Any:
    return np.argpartition(x, kth, axis=-1)


def _kth(kth: Any) -> Any:
    if holds_traced(kth):
        raise refuse("kth is a fixed position; this one is traced. Make it static, or take x[k] from np.sort(x)")
    return int(kth) if np.ndim(kth) == 0 else tuple([int(k) for k in kth])


@answers(np.argpartition, what="discrete", rule=DISCRETE)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The positions, with the k-th in place."""
    x, at = _rows(a, None if of_number(axis, np.ndim(a)) else axis)
    found = several(Discrete(_argpartition, (("kth", _kth(kth)),), _same_shape), INT, x)
    return moveaxis(found, found.ndim - 1, at)


@answers(np.partition, what="gather by the order", rule="dx gathered by the same order")
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The elements, with the k-th in place."""
    x, at = _rows(a, axis)
    found = taken(x, argpartition(x, kth))
    return moveaxis(found, found.ndim - 1, at)


def _lexsort(*keys: Any) -> Any:
    return np.lexsort(keys, axis=-1)


@answers(np.lexsort, what="discrete", rule=DISCRETE)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, ties by the one before."""
    trace = trace_of(keys)
    given = [lifted(k, trace) for k in keys]
    if of_number(axis, given[0].ndim):
        return several(Discrete(_lexsort, (), _same_shape), INT, *given)
    (at,) = axes_of(axis, given[0].ndim)
    last = given[0].ndim - 1
    found = several(Discrete(_lexsort, (), _same_shape), INT, *[moveaxis(k, at, last) for k in given])
    return moveaxis(found, last, at)


# -- places in a sorted array -----------------------------------------------------------------------------


def _each_row(function: Any, a: Any, v: Any, **named: Any) -> Any:
    """A function of a fixed sorted vector and any array, under leading axes of both."""
    if np.ndim(a) == 1:
        return function(a, v, **named)
    lead = np.shape(a)[:-1]
    found = np.zeros(np.shape(v), np.intp)
    for at in np.ndindex(*lead):
        found[at] = function(a[at], v[at], **named)
    return found


def _find(a: Any, v: Any, side: str) -> Any:
    return _each_row(np.searchsorted, a, v, side=side)


def _bin(bins: Any, v: Any, right: bool) -> Any:
    return _each_row(_digitized, bins, v, right=right)


def _digitized(bins: Any, x: Any, right: bool) -> Any:
    return cast(Any, np).digitize(x, bins, right=right)


def _place_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[1]


def _both(a: Any, v: Any) -> tuple[Traced, Traced]:
    trace = trace_of(tidy(a), tidy(v))
    return lifted(a, trace), lifted(v, trace)


@answers(np.searchsorted, what="discrete", rule="no derivative: constant between jumps")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where v would be put in."""
    edges, x = _both(a if sorter is None else np.take(a, sorter), v)
    if edges.ndim != 1:
        raise ValueError("object too deep for desired array")
    return several(Discrete(_find, (("side", side),), _place_shape), INT, edges, x)


@answers(np.digitize, what="discrete", rule="no derivative: constant between jumps")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The bin of each number."""
    edges, v = _both(bins, x)
    return several(Discrete(_bin, (("right", bool(right)),), _place_shape), INT, edges, v)


@answers(np.interp, what="gathers at the place found, and a product", rule="slope · dx; of fp and xp at both neighbours; from the right at a knot")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation."""
    trace = trace_of(tidy(x), tidy(xp), tidy(fp), *[tidy(v) for v in (left, right, period) if v is not None])
    t, knots, values = [lifted(v, trace) if not isinstance(v, (bool, int)) else lifted(float(v), trace) for v in (x, xp, fp)]
    t, knots, values = [v if v.dtype == FLOAT else convert(v, FLOAT) for v in (t, knots, values)]  # NumPy interpolates in double precision
    if knots.ndim != 1 or knots.shape != values.shape:
        raise ValueError("fp and xp are not of the same length.")
    if not knots.size:
        raise ValueError("array of sample points is empty")
    if period is not None:
        t, knots = np.remainder(t, period), np.remainder(knots, period)
        order = np.argsort(knots)
        knots, values = knots[order], values[order]
        knots = concatenate([knots[-1:] - period, knots, knots[:1] + period])
        values = concatenate([values[-1:], values, values[:1]])
        left = right = None
    n = knots.shape[0]
    if n > 1:
        at = several(Discrete(_interval, (("last", n - 2),), _place_shape), INT, knots, t)
        low, high = knots[at], knots[at + 1]
        gap = high - low
        if not holds_traced(xp) and bool((np.diff(xp) > 0).all()):
            inside: Any = values[at] + (values[at + 1] - values[at]) / gap * (t - low)
        else:  # between two equal knots at the end there is nothing, and the value is that of the last
            none = discrete(np.equal, gap, 0.0)
            inside = where(none, values[at + 1], values[at] + (values[at + 1] - values[at]) / where(none, 1.0, gap) * (t - low))
    else:
        inside = values[0] + 0.0 * t
    inside = where(discrete(np.less, t, knots[0]), values[0] if left is None else left, inside)
    return where(discrete(np.greater, t, knots[n - 1]), values[n - 1] if right is None else right, inside)


def _interval(knots: Any, x: Any, last: int) -> Any:
    return np.clip(_find(knots, x, "right") - 1, 0, last)


# -- gathers along an axis --------------------------------------------------------------------------------


@answers(np.take_along_axis, what="gather: a relational reduction, or at computed positions", rule="the same of dx")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Elements at positions of their own in each row."""
    if type(indices) is not Traced:
        numbered = cast(Any, np).arange(arr.size).reshape(arr.shape)
        return everywhere(arr, np.take_along_axis(numbered, np.asarray(indices), axis))
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    x = lifted(arr, trace_of(arr, indices))
    if axis is None:
        x, axis = ravel(x), 0
    (at,) = axes_of(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    rows, places = moveaxis(x, at, x.ndim - 1), moveaxis(indices, at, x.ndim - 1)
    lead = np.broadcast_shapes(rows.shape[:-1], places.shape[:-1])
    rows = broadcast_to(rows, (*lead, rows.shape[-1]))
    places = several(Discrete(_spread, (("shape", (*lead, places.shape[-1])),), _spread_shape), INT, places) if places.shape[:-1] != lead else places
    return moveaxis(taken(rows, wrapped(places, x.shape[at])), x.ndim - 1, at)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    lead = np.shape(x)[: np.ndim(x) - len(shape)]
    return np.broadcast_to(x, (*lead, *shape))


def _spread_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    shape = parameters["shape"]
    return (*shapes[0][: len(shapes[0]) - len(shape)], *shape)


@answers(np.choose, what="gather from the stacked choices", rule="dx of the choice taken")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """The element of the choice each index names."""
    options = [tidy(c) for c in choices]
    which = tidy(a)
    if type(which) is Traced and which.dtype.kind == "f":
        raise refuse("np.choose takes integers; this index is a traced float. Use np.where(c, a, b) for a condition")
    shape = np.broadcast_shapes(np.shape(which), *[np.shape(c) for c in options])
    if holds_traced(options):
        dtype = operands(*options, floating=False)[2]
        table: Any = stack([convert(np.broadcast_to(c, shape), dtype) for c in options])
    else:
        table = np.stack([np.broadcast_to(c, shape) for c in np.broadcast_arrays(*options)])
    n = len(options)
    if type(which) is not Traced:
        at = np.asarray(which)
        if mode == "raise" and at.size and not (at.min() >= 0 and at.max() < n):
            raise ValueError("invalid entry in choice array")
        at = np.clip(at, 0, n - 1) if mode == "clip" else at % n
        return take_along_axis(table, np.broadcast_to(at, shape)[None], 0)[0]
    which = reshape(which, (*(1,) * (len(shape) - which.ndim), *which.shape))  # what is mapped over comes before that
    places = several(Discrete(_chosen, (("n", n), ("mode", mode), ("shape", shape)), _spread_shape), INT, which)
    result = table[n - 1]
    for k in range(n - 2, -1, -1):  # selections: what is not chosen leaves no trace
        result = np.where(places == k, table[k], result)
    return result


def _chosen(which: Any, n: int, mode: str, shape: tuple[int, ...]) -> Any:
    """Indices in their range, for `choose`."""
    if mode == "raise" and np.size(which) and not (np.min(which) >= 0 and np.max(which) < n):
        raise ValueError("invalid entry in choice array")
    within = np.clip(which, 0, n - 1) if mode == "clip" else np.remainder(which, n)
    return _spread(within, shape)


@answers(np.bincount, what="relational reduction: weights added up per bin", rule="the same of the weights' differential")
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Σ of the weights of each bin."""
    if type(x) is Traced:
        raise refuse("np.bincount of traced numbers has a length that depends on them; give fixed bins, or np.sum(x[:, None] == np.arange(n), 0)")
    at = np.asarray(x, np.intp)
    n = max(int(at.max(initial=-1)) + 1, minlength)
    w = lifted(weights)
    w = w if w.dtype == FLOAT else convert(w, FLOAT)
    if w.shape != at.shape:
        raise ValueError("The weights and list don't have the same length.")
    if not at.size:
        return lifted(np.zeros(n), trace_of(w))
    trace = trace_of(w)
    return Traced(trace, trace.step(Reduction((Gather(Seg(n), Seg(at.size), freeze(at)).converse,), 0), (slot_of(trace, w, FLOAT),)))


# -- quantiles --------------------------------------------------------------------------------------------


def _order_or_nan(x: Any) -> Any:
    """The order of each row; in a row with a nan, its place everywhere."""
    order = np.argsort(x, axis=-1, kind="stable")
    last = order[..., -1:]
    return np.where(np.isnan(np.take_along_axis(np.asarray(x), last, -1)), last, order)


def _flattened(a: Any, axis: Any) -> tuple[Traced, tuple[int, ...], tuple[int, ...]]:
    """The axes to reduce merged into a last one; the shape of the rest, and with the axes kept."""
    x = lifted(a)
    x = x if x.dtype.kind == "f" else convert(x, FLOAT)
    gone = axes_of(axis, x.ndim)
    rest = tuple([i for i in range(x.ndim) if i not in gone])
    shape = tuple([x.shape[i] for i in rest])
    count = math.prod([x.shape[i] for i in gone])
    kept = tuple([1 if i in gone else n for i, n in enumerate(x.shape)])
    merged = moveaxis(x, gone, tuple(range(x.ndim - len(gone), x.ndim))) if rest else x
    return reshape(merged, (*shape, count)), shape, kept


_METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased"),
)


def _place(n: int, q: Any, method: Any) -> Any:
    """Where quantiles lie in a sorted array of length n, as fractional positions: they are the quantiles of 0, 1, …, n − 1."""
    return np.quantile(np.arange(float(n)), np.asarray(q, float), method=method)


def _checked(q: Any, method: Any, named: dict[str, Any]) -> Any:
    if named.get("weights") is not None:
        raise refuse("quantiles with weights=… are not known to riesz; sort and interpolate the cumulative weights with np.interp")
    if method not in _METHODS:
        raise refuse(f"the method {method!r} of quantiles is not known to riesz; these are: {', '.join(_METHODS)}")
    if holds_traced(q):
        if method != "linear":
            raise refuse(f"quantiles at traced q are known for method='linear'; got {method!r}")
        return tidy(q)
    fixed = np.asarray(q, float)
    if not bool(((fixed >= 0) & (fixed <= 1)).all()):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return fixed


def _presented(found: Traced, shape: tuple[int, ...], kept: tuple[int, ...], outer: tuple[int, ...], keepdims: Any) -> Any:
    """Rows × quantiles as NumPy gives them: quantiles first."""
    rank = len(shape)
    turned = moveaxis(found, rank, 0) if rank else found
    return reshape(turned, (*outer, *(kept if keepdims and keepdims is not _NONE else shape)))


def _quantile(a: Any, q: Any, axis: Any, keepdims: Any, method: str) -> Any:
    x, shape, kept = _flattened(lifted(a, trace_of(a, q)), axis)
    n = x.shape[-1]
    if not n:
        raise IndexError("quantiles of an empty axis")
    rows = taken(x, several(Discrete(_order_or_nan, (), _same_shape), INT, x))
    if type(q) is Traced:
        place: Any = ravel(q) * float(n - 1)
        low = convert(discrete(np.floor, place), INT)
        high = several(Discrete(np.minimum), INT, low + 1, np.asarray(n - 1))
        below, above, part = rows[..., low], rows[..., high], place - discrete(np.floor, place)
        return _presented(_interpolated(below, above, part), shape, kept, q.shape, keepdims)
    place = np.ravel(_place(n, q, method))
    low = np.floor(place).astype(np.intp)
    part = (place - low).astype(x.dtype)
    found = along(rows, x.ndim - 1, low)
    if part.any():
        above = along(rows, x.ndim - 1, np.minimum(low + 1, n - 1))
        gap = above - found
        if (part == part[0]).all():  # one number is a scaling
            found = found + float(part[0]) * gap if part[0] < 0.5 else above - float(1 - part[0]) * gap
        else:
            found = _interpolated(found, above, part)
    return _presented(found, shape, kept, q.shape, keepdims)


def _interpolated(below: Any, above: Any, part: Any) -> Any:
    """As NumPy does it: from the nearer end."""
    gap = above - below
    near = discrete(np.less, part, 0.5) if type(part) is Traced else part < 0.5
    return where(near, below + part * gap, above - (1.0 - part) * gap)


def _nothing(a: Any, q: Any, axis: Any, keepdims: Any) -> Any:
    """nan for each row, where the rows of an array are empty or there are none."""
    x, shape, kept = _flattened(a, axis)
    if x.size:
        return None
    return lifted(np.full((*np.shape(q), *(kept if keepdims and keepdims is not _NONE else shape)), np.nan, x.dtype), x.home)


_STATISTIC = "combination of sorted elements"
_OF = "the same combination of dx; slope · dq for traced q"


@answers(np.quantile, what=_STATISTIC, rule=_OF)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, **named: Any
) -> Any:
    """Quantiles."""
    return _quantile(_widened(a, q, method), _checked(q, method, named), axis, keepdims, method)


@answers(np.percentile, what=_STATISTIC, rule=_OF)
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, **named: Any
) -> Any:
    """Quantiles in percent."""
    return _quantile(_widened(a, q, method), _checked(_hundredth(q), method, named), axis, keepdims, method)


def _widened(a: Any, q: Any, method: Any) -> Any:
    """a in the type its quantiles have: where elements are weighted and q has a type of its own, that of both."""
    chosen_only = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
    if type(a) is not Traced or a.dtype.kind != "f" or type(q) in (int, float) or method in chosen_only or holds_traced(q):
        return a
    kind = np.asarray(q).dtype
    return convert(a, np.result_type(a.dtype, kind if kind.kind == "f" else FLOAT))


def _hundredth(q: Any) -> Any:
    return tidy(q) / 100.0 if holds_traced(q) else np.true_divide(q, 100.0)


@answers(np.median, what=_STATISTIC, rule="dx of the middle element; of an even number ½ of each of the two")
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The median."""
    empty = _nothing(a, np.asarray(0.5), axis, keepdims)
    if empty is not None:
        return empty
    x, shape, kept = _flattened(a, axis)
    rows = taken(x, several(Discrete(_order_or_nan, (), _same_shape), INT, x))
    last, (at, odd) = x.ndim - 1, divmod(x.shape[-1], 2)
    above = along(rows, last, np.array([at]))
    return _presented(above if odd else 0.5 * (along(rows, last, np.array([at - 1])) + above), shape, kept, (), keepdims)


def _numbers_place(x: Any, q: tuple[float, ...], method: str) -> Any:
    """Fractional positions of quantiles among the numbers of each row; 0 where there are none."""
    counts = np.sum(~np.isnan(x), axis=-1)
    found = np.zeros((*np.shape(counts), len(q)))
    for m in np.unique(counts):
        found[counts == m] = _place(int(m), q, method) if m else 0.0
    return found


def _neighbour(x: Any, q: tuple[float, ...], method: str, above: int) -> Any:
    """Where in each row of x the elements below and above a quantile of its numbers stand."""
    order = np.argsort(x, axis=-1, kind="stable")
    at = np.floor(_numbers_place(x, q, method)).astype(np.intp) + above
    return np.take_along_axis(order, np.minimum(at, np.shape(x)[-1] - 1), -1)


def _between(x: Any, q: tuple[float, ...], method: str) -> Any:
    place = _numbers_place(x, q, method)
    return (place - np.floor(place)).astype(np.asarray(x).dtype)


def _per_row(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return (*shapes[0][:-1], len(parameters["q"]))


def _nanquantile(a: Any, q: Any, axis: Any, keepdims: Any, method: str, middle: bool = False) -> Any:
    if type(q) is Traced:
        raise refuse("quantiles of the numbers that are not nan at traced q are not known to riesz; q is fixed, or np.quantile")
    empty = _nothing(a, np.asarray(0.5), axis, keepdims)  # NumPy's have no axis of quantiles then
    if empty is not None:
        return empty
    x, shape, kept = _flattened(a, axis)
    given = (("q", tuple([float(v) for v in q.ravel()])), ("method", method))
    low, high = [taken(x, several(Discrete(_neighbour, (*given, ("above", k)), _per_row), INT, x)) for k in (0, 1)]
    part = several(Discrete(_between, given, _per_row), x.dtype, x)
    mean = 0.5 * (low + high) if middle else _interpolated(low, high, part)
    found = where(discrete(np.equal, part, 0.0), low, mean)  # above the last number there may be nan
    return _presented(found, shape, kept, q.shape, keepdims)


_OF_NUMBERS = "the same combination of dx"


@answers(np.nanquantile, what=_STATISTIC, rule=_OF_NUMBERS)
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, **named: Any
) -> Any:
    """Quantiles of the numbers."""
    return _nanquantile(_widened(a, q, method), _checked(q, method, named), axis, keepdims, method)


@answers(np.nanpercentile, what=_STATISTIC, rule=_OF_NUMBERS)
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear", keepdims: Any = False, **named: Any
) -> Any:
    """Quantiles of the numbers, in percent."""
    return _nanquantile(_widened(a, q, method), _checked(_hundredth(q), method, named), axis, keepdims, method)


@answers(np.nanmedian, what=_STATISTIC, rule=_OF_NUMBERS)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The median of the numbers."""
    return _nanquantile(a, np.asarray(0.5), axis, keepdims, "linear", middle=True)


# -- what cannot be ---------------------------------------------------------------------------------------


def _refused(reason: str, *names: str) -> None:
    for name in names:
        function = getattr(np, name, None)
        if function is not None:
            answers(function, what="refused", rule=reason)(_refusal(name, reason))


def _refusal(name: str, reason: str) -> Any:
    def code(*args: Any, **named: Any) -> Any:
        raise refuse(f"np.{name}: {reason}")

    return code


_refused(
    "the result's length depends on the numbers, which are not known while tracing; write np.where(mask, x, 0), or a fixed number of np.sort(x)",
    *("nonzero", "flatnonzero", "argwhere", "extract", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    *("union1d", "intersect1d", "setdiff1d", "setxor1d", "trim_zeros"),
)
_refused(
    "it writes into an array, which a traced array does not allow; build the new one with np.where(mask, new, x) or np.concatenate",
    *("put_along_axis", "put", "place", "putmask", "copyto", "fill_diagonal"),
)
_refused("it gives complex numbers; np.sort sorts real ones", "sort_complex")
_refused(
    "counts have no derivative; compute it outside, or count with np.sum((x[:, None] >= low) & (x[:, None] < high), 0)",
    *("histogram", "histogram2d", "histogramdd", "histogram_bin_edges"),
)
