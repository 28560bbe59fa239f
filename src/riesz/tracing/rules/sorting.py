"""Sorting, order statistics, interpolation: which element stands where has no derivative; fetching it is a gather at
computed positions."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ...ops.opaque import Take
from ..registry import answer_rows, answers
from ..trace import refuse
from ..traced import FLOAT, INT, Traced, convert, holds_traced, lifted, operands, several, tidy, trace_of
from .elementwise import discrete, unmoving, where
from .indexing import everywhere, wrapped
from .rearranging import axes_of, broadcast_to, concatenate, moveaxis, of_number, ravel, reshape, stack
from .rearranging import same_shape as _same_shape

DISCRETE = "no derivative: constant between ties"


def _rows(a: Any, axis: Any) -> tuple[Traced, int]:
    """The array with the axis to sort along last, and where that axis was; None: flat."""
    x = lifted(a)
    if axis is None:
        return ravel(x), 0
    (at,) = axes_of(axis, x.ndim)
    return moveaxis(x, at, x.ndim - 1), at


def taken(x: Traced, positions: Any) -> Traced:
    """x[…, positions[…]], row by row: all axes but the last run together."""
    batch = x.ndim - 1
    shape = (*x.shape[:batch], *np.shape(positions)[batch:])
    if not math.prod(shape):
        return lifted(np.zeros(shape, x.dtype), trace_of(x, positions))
    return several(Take(batch, batch), x.dtype, x, positions)


def _kind(kind: Any, order: Any, stable: Any) -> str:
    if order is not None:
        raise refuse("sorting by fields (order=…) is for structured arrays; traced arrays hold real numbers")
    return "stable" if stable else str(kind or "quicksort")


# -- orders -----------------------------------------------------------------------------------------------


def _ordered(a: Any, axis: Any, order: Any, elements: bool, **parameters: Any) -> Traced:
    """The elements along an axis in an order, or their positions."""
    x, at = _rows(a, None if not elements and of_number(axis, np.ndim(a)) else axis)
    places = unmoving(order, INT, x, shaped=_same_shape, **parameters)
    return moveaxis(taken(x, places) if elements else places, x.ndim - 1, at)


def _argsort(x: Any, kind: str) -> Any:
    return np.argsort(x, axis=-1, kind=kind)  # pyright: ignore


@answers(np.argsort, what="discrete", rule=DISCRETE)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    return _ordered(a, axis, _argsort, False, kind=_kind(kind, order, stable))


_IN_ORDER = "dx gathered by the same order"


@answers(np.sort, what="gather by the order", rule=f"{_IN_ORDER}; equal elements in the order they stand")
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _kind(kind, order, stable)
    return _ordered(a, axis, _argsort, True, kind="stable")


def _argpartition(x: Any, kth: Any) -> Any:
    return np.argpartition(x, kth, axis=-1)


def _kth(kth: Any) -> Any:
    if holds_traced(kth):
        raise refuse("kth is a fixed position; this one is traced. Make it static, or take x[k] from np.sort(x)")
    return int(kth) if np.ndim(kth) == 0 else tuple([int(k) for k in kth])


@answers(np.argpartition, what="discrete", rule=DISCRETE)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    return _ordered(a, axis, _argpartition, False, kth=_kth(kth))


def _partition_order(x: Any, kth: Any) -> Any:
    """The positions of the elements as np.partition leaves them, which is not the order of np.argpartition."""
    left = np.argsort(np.partition(x, kth, axis=-1), axis=-1, kind="stable")
    found = np.empty_like(left)
    np.put_along_axis(found, left, np.argsort(x, axis=-1, kind="stable"), -1)
    return found


@answers(np.partition, what="gather by the order", rule=_IN_ORDER)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    return _ordered(a, axis, _partition_order, True, kth=_kth(kth))


def _lexsort(*keys: Any) -> Any:
    return np.lexsort(keys, axis=-1)


@answers(np.lexsort, what="discrete", rule=DISCRETE)
def lexsort(keys: Any, axis: int = -1) -> Any:
    trace = trace_of(keys)
    given = [lifted(k, trace) for k in keys]
    if of_number(axis, given[0].ndim):
        return unmoving(_lexsort, INT, *given, shaped=_same_shape)
    (at,), last = axes_of(axis, given[0].ndim), given[0].ndim - 1
    return moveaxis(unmoving(_lexsort, INT, *[moveaxis(k, at, last) for k in given], shaped=_same_shape), last, at)


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
    return _each_row(lambda edges, x: cast(Any, np).digitize(x, edges, right=right), bins, v)


def _place_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[1]


def _both(a: Any, v: Any) -> tuple[Traced, Traced]:
    trace = trace_of(tidy(a), tidy(v))
    return lifted(a, trace), lifted(v, trace)


@answers(np.searchsorted, what="discrete", rule="no derivative: constant between jumps")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    edges, x = _both(a if sorter is None else np.take(a, sorter), v)
    if edges.ndim != 1:
        raise ValueError("object too deep for desired array")
    return unmoving(_find, INT, edges, x, shaped=_place_shape, side=side)


@answers(np.digitize, what="discrete", rule="no derivative: constant between jumps")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges, v = _both(bins, x)
    return unmoving(_bin, INT, edges, v, shaped=_place_shape, right=bool(right))


_SLOPES = "slope · dx; of fp and xp at both neighbours; from the right at a knot"


@answers(np.interp, what="gathers at the place found, and a product", rule=_SLOPES)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    trace = trace_of(tidy(x), tidy(xp), tidy(fp), *[tidy(v) for v in (left, right, period) if v is not None])
    given = [lifted(float(v) if isinstance(v, (bool, int)) else v, trace) for v in (x, xp, fp)]
    t, knots, values = [v if v.dtype == FLOAT else convert(v, FLOAT) for v in given]  # NumPy's is in double precision
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
        at = unmoving(_interval, INT, knots, t, shaped=_place_shape, last=n - 2)
        inside = _on_the_line(t, knots[at], knots[at + 1], values[at], values[at + 1], _fine(xp, fp))
    else:
        inside = broadcast_to(values[0], t.shape)
    inside = where(discrete(np.less, t, knots[0]), values[0] if left is None else left, inside)
    return where(discrete(np.greater, t, knots[n - 1]), values[n - 1] if right is None else right, inside)


def _fine(xp: Any, fp: Any) -> bool:
    """Whether knots and values are fixed and finite, and no two knots are equal."""
    fixed = not holds_traced((xp, fp))
    return fixed and bool(np.isfinite(xp).all() and np.isfinite(fp).all() and (np.diff(xp) > 0).all())


def _on_the_line(t: Any, low: Any, high: Any, below: Any, above: Any, fine: bool) -> Any:
    """The value at t of the line through (low, below) and (high, above). Where it is nan, NumPy begins at the other
    end, and then looks for an end that t is at, or for ends of equal height."""
    slope = (above - below) / (high - low)
    found = below + slope * (t - low)
    if fine:
        return found
    other = above + slope * (t - high)
    level = discrete(np.equal, below, above) & discrete(np.equal, t, t) | discrete(np.equal, t, low)
    end = where(discrete(np.equal, t, high), above, where(level, below, other))
    return where(discrete(np.isnan, found), where(discrete(np.isnan, other), end, other), found)


def _interval(knots: Any, x: Any, last: int) -> Any:
    return np.clip(_find(knots, x, "right") - 1, 0, last)


# -- gathers along an axis --------------------------------------------------------------------------------


@answers(np.take_along_axis, what="gather: a relational reduction, or at computed positions", rule="the same of dx")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
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
    if places.shape[:-1] != lead:
        places = unmoving(_spread, INT, places, shaped=_spread_shape, shape=(*lead, places.shape[-1]))
    return moveaxis(taken(rows, wrapped(places, x.shape[at])), x.ndim - 1, at)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    lead = np.shape(x)[: np.ndim(x) - len(shape)]
    return np.broadcast_to(x, (*lead, *shape))


def _spread_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    shape = parameters["shape"]
    return (*shapes[0][: len(shapes[0]) - len(shape)], *shape)


@answers(np.choose, what="gather from the stacked choices", rule="dx of the choice taken")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
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
        return take_along_axis(table, _chosen(np.asarray(which), n, mode, shape)[None], 0)[0]
    which = reshape(which, (*(1,) * (len(shape) - which.ndim), *which.shape))  # what is mapped over comes before that
    places = unmoving(_chosen, INT, which, shaped=_spread_shape, n=n, mode=mode, shape=shape)
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


# -- positions as indices ---------------------------------------------------------------------------------


def _first(function: Any, neutral: float) -> Any:
    def code(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = lifted(a)
        return function(where(discrete(np.isnan, x), neutral, x), axis, keepdims=bool(keepdims))

    return code


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Whole numbers as indices along each axis: quotients and remainders."""
    rest, found = indices, list[Any]()
    for n in shape if order == "F" else tuple(shape)[::-1]:
        found.append(np.remainder(rest, n))
        rest = np.floor_divide(rest, n)
    return tuple(found if order == "F" else found[::-1])


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Indices along each axis as one whole number; what is out of range is not noticed."""
    if mode != "raise":
        raise refuse("np.ravel_multi_index of traced indices is known with mode='raise'; clip or wrap them before")
    pairs = list(zip(multi_index, dims, strict=True))
    total: Any = 0
    for k, n in pairs if order == "C" else pairs[::-1]:
        total = total * n + k
    return total


def _triangle(function: Any) -> Any:
    def code(arr: Any, k: int = 0) -> Any:
        if arr.ndim != 2:
            raise ValueError("input array must be 2-d")
        return function(arr.shape[-2], k=k, m=arr.shape[-1])

    return code


def diag_indices_from(arr: Any) -> Any:
    """As np.diag_indices: of the shape alone."""
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        least = "input array must be at least 2-d"
        raise ValueError(least if arr.ndim < 2 else "All dimensions of input must be of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)


answer_rows(
    (np.nanargmax, "discrete", DISCRETE, _first(np.argmax, -np.inf)),
    (np.nanargmin, "discrete", DISCRETE, _first(np.argmin, np.inf)),
    (np.unravel_index, "discrete", "no derivative", unravel_index),
    (np.ravel_multi_index, "discrete", "no derivative", ravel_multi_index),
    (np.diag_indices_from, "static", "no derivative", diag_indices_from),
    (np.tril_indices_from, "static", "no derivative", _triangle(np.tril_indices)),
    (np.triu_indices_from, "static", "no derivative", _triangle(np.triu_indices)),
)


# -- what cannot be ---------------------------------------------------------------------------------------


def _refused(reason: str, *names: str) -> None:
    for name in [name for name in names if hasattr(np, name)]:
        answers(getattr(np, name), what="refused", rule=reason)(_refusal(f"np.{name}: {reason}"))


def _refusal(message: str) -> Any:
    def code(*args: Any, **named: Any) -> Any:
        raise refuse(message)

    return code


_refused(
    "the result's length depends on the numbers, which are not known while tracing; write np.where(mask, x, 0), or a "
    "fixed number of np.sort(x)",
    *("argwhere", "trim_zeros", "union1d", "intersect1d", "setdiff1d"),
    *("setxor1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
)
_refused("it gives complex numbers; np.sort sorts real ones", "sort_complex")
