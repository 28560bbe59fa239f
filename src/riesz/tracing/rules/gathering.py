"""Elements in other places: flips, shifts, repetitions, gathers, padding, windows. They are slices and relational
reductions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...ops.op import Reduction
from ...relations import Gather, Range, freeze
from ...relations.index_sets import Seg, box_set
from ..registry import answer_rows, answers, answers_called
from ..trace import refuse
from ..traced import Traced, convert, holds_traced, lifted, step, tidy, trace_of
from . import rearranging as r
from .indexing import everywhere, index
from .rearranging import SAME, axes_of, broadcast_to, concatenate, lengths, moveaxis, of_number, ravel, reshape


def along(x: Traced, axis: int, positions: Any) -> Traced:
    """x gathered along one axis at fixed positions."""
    n = x.shape[axis]
    at = np.asarray(positions, np.intp)
    if at.ndim == 1 and at.size:
        jump = int(at[1] - at[0]) if at.size > 1 else 1
        if jump and bool((np.diff(at) == jump).all()):  # a slice
            if jump == 1 and at[0] == 0 and at.size == n:
                return x
            return step(Reduction((Range(Seg(n), Seg(at.size), int(at[0]), jump, False),), axis), x)
    return step(Reduction((Gather(Seg(n), box_set(at.shape), freeze(at.ravel())),), axis), x)


def flip(m: Traced, axis: Any = None) -> Traced:
    """Axes turned round."""
    x = m
    for a in axes_of(axis, x.ndim):
        x = along(x, a, np.arange(x.shape[a])[::-1]) if x.shape[a] > 1 else x
    return x


@answers(np.roll, what="relational reduction: two slices exchanged", rule=SAME)
def roll(a: Traced, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    x = a
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(given)
    if len(given) == 1 < len(shifts):
        given = given * len(shifts)
    for s, d in zip(shifts, given, strict=True):
        (d,) = axes_of(d, x.ndim)
        n = x.shape[d]
        k = int(s) % n if n else 0
        if k:
            head = (slice(None),) * d
            x = concatenate([x[(*head, slice(n - k, None))], x[(*head, slice(None, n - k))]], d)
    return x


@answers(np.rot90, what="transposition and slices", rule=SAME)
def rot90(m: Traced, k: int = 1, axes: Any = (0, 1)) -> Traced:
    a, b = axes_of(tuple(axes), m.ndim)
    if k % 2 == 0:
        return flip(m, (a, b)) if k % 4 else m
    return r.swapaxes(flip(m, b), a, b) if k % 4 == 1 else flip(r.swapaxes(m, a, b), b)


@answers(np.tile, what="contraction: repeated along a new axis, and a reshape", rule=SAME)
def tile(A: Traced, reps: Any) -> Any:
    counts = lengths(reps)
    rank = max(A.ndim, len(counts))
    shape = (*(1,) * (rank - A.ndim), *A.shape)
    counts = (*(1,) * (rank - len(counts)), *counts)
    wide = [n for pair in zip(counts, shape, strict=True) for n in pair]
    slim = [n for one in shape for n in (1, one)]
    spread = broadcast_to(reshape(A, tuple(slim)), tuple(wide))
    return reshape(spread, tuple([c * n for c, n in zip(counts, shape, strict=True)]))


def _along_axis(x: Any, axis: Any, places: Any) -> Any:
    """x gathered along one axis (None: flat) at places that are computed from its positions there."""
    x = ravel(x) if axis is None else x
    (at,) = axes_of(0 if axis is None else axis, x.ndim)
    return along(x, at, places(np.arange(x.shape[at])))


def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    return _along_axis(a, None if of_number(axis, a.ndim) else axis, lambda at: np.repeat(at, repeats))


@answers(np.resize, what="relational reduction", rule=SAME)
def resize(a: Traced, new_shape: Any) -> Any:
    if not a.size:
        return lifted(np.zeros(new_shape, a.dtype), a.home)
    return everywhere(a, np.resize(np.arange(a.size).reshape(a.shape), new_shape))


@answers(np.take, what="relational reduction: a gather", rule=SAME)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    flat = axis is None or of_number(axis, np.ndim(a))
    x = np.ravel(a) if flat else a
    (at,) = axes_of(0 if flat else axis, np.ndim(x))
    if mode != "raise":
        n = np.shape(x)[at]
        indices = np.clip(indices, 0, n - 1) if mode == "clip" else tidy(indices) % n
    places = indices if type(indices) is Traced else np.asarray(indices)
    if places.dtype.kind not in "iu" and places.size:
        places = places.astype(np.intp, casting="same_kind")  # True is 1 here
    return index(lifted(x, trace_of(x, indices)), (*(slice(None),) * at, places))


@answers(np.insert, what="relational reduction: values placed behind, then a gather", rule=SAME)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x = np.ravel(arr) if axis is None else tidy(arr)
    rank = np.ndim(x)
    (at,) = axes_of(0 if axis is None else axis, rank)
    given = convert(tidy(values), x.dtype)
    given = r.raised_front(given, max(rank, np.ndim(given)))
    if not isinstance(obj, slice) and np.ndim(obj) == 0:  # one position: the values' first axis is the inserted one
        given = np.moveaxis(given, 0, at)
    n = np.shape(x)[at]
    count = np.insert(np.arange(n), obj, 0).size - n
    count = np.shape(given)[at] if count == 1 else count
    wide = r.written_to(given, (*np.shape(x)[:at], count, *np.shape(x)[at + 1 :]))
    return along(concatenate([x, wide], at), at, np.insert(np.arange(n), obj, n + np.arange(count)))


@answers(np.pad, what="relational reduction: placed in a larger range, or a gather", rule=SAME)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **named: Any) -> Any:
    x = lifted(array)
    if isinstance(pad_width, dict):
        given = {int(a) % x.ndim: w for a, w in cast("dict[Any, Any]", pad_width).items()}
        pad_width = [np.broadcast_to(given.get(a, 0), (2,)) for a in range(x.ndim)]
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist() if x.ndim else []
    if any([min(pair) < 0 for pair in widths]):
        raise ValueError("index can't contain negative values")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _padded(x, axis, before, after, mode, named)
    return x


def _padded(x: Traced, axis: int, before: int, after: int, mode: Any, named: dict[str, Any]) -> Any:
    """With borders along one axis."""
    n = x.shape[axis]
    if not n and mode not in ("constant", "empty"):
        raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    match mode:
        case "empty" | "constant" if mode == "empty" or _is_zero(named.get("constant_values", 0)):
            return step(Reduction((Range(Seg(n), Seg(n + before + after), before if n else 0, 1, True),), axis), x)
        case "reflect" | "symmetric" if named.get("reflect_type", "even") == "odd":
            return _reflected(x, axis, before, after, int(mode == "symmetric"))
        case "edge" | "reflect" | "symmetric" | "wrap":
            return along(x, axis, np.pad(np.arange(n), (before, after), mode=mode))
        case "constant" | "linear_ramp" | "mean" | "median" | "maximum" | "minimum":
            borders = [_border(x, axis, width, side, mode, named) for side, width in enumerate((before, after))]
            return concatenate([borders[0], x, borders[1]], axis)
        case _:
            raise refuse(f"np.pad with mode {mode!r} is not known to riesz; the modes NumPy knows by name are")


def _reflected(x: Traced, axis: int, before: int, after: int, edge: int) -> Any:
    """With borders 2·edge − mirrored, again and again where they are wide; `edge`: whether the edge is mirrored too."""
    n = x.shape[axis]
    if n == 1:
        return along(x, axis, np.zeros(before + 1 + after, np.intp))
    while before or after:
        m = x.shape[axis]
        period = n - 1 + edge
        whole = (m - 1 + edge) // period * period
        borders = []
        for width, side in ((before, 1), (after, -1)):
            places = (1 - edge + np.arange(min(whole, width))) * side - (side < 0)
            chunk = 2 * along(x, axis, np.array([0 if side > 0 else m - 1])) - along(x, axis, places % m)
            borders.append(along(chunk, axis, np.arange(len(places))[::-1]) if side > 0 else chunk)
        before, after = [w - b.shape[axis] for w, b in zip((before, after), borders, strict=True)]
        x = concatenate([borders[0], x, borders[1]], axis)
    return x


def _is_zero(x: Any) -> bool:
    return not holds_traced(x) and not np.any(np.asarray(x))


def _border(x: Traced, axis: int, width: int, side: int, mode: str, named: dict[str, Any]) -> Any:
    """What stands before (side 0) or after (side 1) an array along an axis."""
    if x.dtype.kind != "f" and mode in ("linear_ramp", "mean", "median"):  # whole numbers stay whole
        found = _border(convert(x, np.dtype(float)), axis, width, side, mode, named)
        return convert(np.floor(found) if mode == "linear_ramp" else np.round(found), x.dtype)
    head = (slice(None),) * axis
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    if mode in ("constant", "linear_ramp"):
        ends = tidy(named.get("constant_values" if mode == "constant" else "end_values", 0))
        end = convert(np.broadcast_to(ends, (x.ndim, 2))[axis, side], x.dtype)
        if mode == "constant":
            return np.broadcast_to(end, shape)
        ramp = np.linspace(0.0, 1.0, width, endpoint=False, dtype=x.dtype)[:: -1 if side else 1]
        edge = x[(*head, slice(-1, None) if side else slice(0, 1))]
        return end + (edge - end) * np.reshape(ramp, (width, *(1,) * (x.ndim - axis - 1)))
    n = x.shape[axis]
    length = named.get("stat_length")
    count = n if length is None else min(n, int(np.broadcast_to(length, (x.ndim, 2))[axis, side]))
    part = x[(*head, slice(n - count, None) if side else slice(None, count))]
    statistic = {"mean": np.mean, "median": np.median, "maximum": np.max, "minimum": np.min}[mode]
    return np.broadcast_to(statistic(part, axis=axis, keepdims=True), shape)


_WINDOWS = "relational reduction: a gather of windows"


@answers_called(np.lib.stride_tricks.sliding_window_view, what=_WINDOWS, rule=SAME)
def sliding_window_view(x: Traced, window_shape: Any, axis: Any) -> Any:
    sizes = lengths(window_shape)
    named = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axes_of(a, x.ndim)[0] for a in cast("list[Any]", named)]  # one may be named twice
    if len(axes) != len(sizes):
        raise ValueError(f"window_shape {sizes} and axes {axes} must have one length")
    for at, size in zip(axes, sizes, strict=True):
        n = x.shape[at]
        if size > n or size < 0:
            raise ValueError(f"a window of length {size} does not fit an axis of length {n}")
        windows = np.arange(n - size + 1)[:, None] + np.arange(size)
        x = moveaxis(along(x, at, windows), at + 1, -1)
    return x


def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    if not holds_traced(condition):
        return take(a, np.flatnonzero(condition), axis)
    x = np.ravel(a) if axis is None else a  # some, of a number that is not known
    return x[(slice(None),) * (0 if axis is None else axes_of(axis, np.ndim(x))[0]) + (tidy(condition),)]


_REVERSED, _GATHER = "relational reduction: a slice of step −1", "relational reduction: a gather"
_REPEATED = "contraction or relational reduction: each element several times"
answer_rows(
    (np.flip, _REVERSED, SAME, flip),
    (np.fliplr, _REVERSED, SAME, lambda m: flip(m, 1)),
    (np.flipud, _REVERSED, SAME, lambda m: flip(m, 0)),
    (np.repeat, _REPEATED, SAME, _repeat),
    (np.compress, _GATHER, SAME, _compress),
    (np.delete, _GATHER, SAME, lambda arr, obj, axis=None: _along_axis(arr, axis, lambda at: np.delete(at, obj))),
)
