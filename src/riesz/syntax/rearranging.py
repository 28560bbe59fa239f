"""Rearrangements: shapes are renumberings, permutations of axes contractions, slices and copies relational reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..ops import Reduction, Reshape, broadcast, contraction
from ..relations import Gather, Range, freeze
from ..sets import Seg, box_set
from .traced import FUNCTIONS, Traced, answers, convert, holds_traced, lifted, refuse, result_dtype, slot_of, step, tidy, trace_of, typed, viewed

SAME = "the same of dx"


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, checked."""
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for a in given:
        if type(a) is not int and (isinstance(a, bool) or not hasattr(a, "__index__")):
            raise TypeError(f"an axis is an integer; got {a!r}")
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
    found = tuple([int(a) % ndim for a in given])
    if len(set(found)) < len(found):
        raise ValueError(f"an axis is named twice: {axis}")
    return found


def of_number(axis: Any, ndim: int) -> bool:
    """Whether the axis named is the first or last of a number, which has none: reductions and some others of NumPy take it for an array of one."""
    return not ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1)


@answers(np.transpose, np.permute_dims, what="contraction: axes permuted", rule=SAME)
def transpose(x: Any, axes: Any = None) -> Traced:
    """Axes permuted."""
    order = tuple(range(x.ndim))[::-1] if axes is None else axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError("axes don't match array")
    return x if order == tuple(range(x.ndim)) else viewed(x, step(contraction((tuple(range(x.ndim)),), order), x))


@answers(np.matrix_transpose, np.linalg.matrix_transpose, what="contraction: axes permuted", rule=SAME)
def matrix_transpose(x: Traced, /) -> Traced:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


@answers(np.swapaxes, what="contraction: axes permuted", rule=SAME)
def swapaxes(x: Traced, axis1: int, axis2: int) -> Traced:
    """Two axes exchanged."""
    order = list(range(x.ndim))
    i, j = axes_of(axis1, x.ndim)[0], axes_of(axis2, x.ndim)[0]
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


@answers(np.moveaxis, what="contraction: axes permuted", rule=SAME)
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Axes moved."""
    from_, to = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in from_]
    for d, s in sorted(zip(to, from_, strict=True)):
        order.insert(d, s)
    return transpose(x, order)


@answers(np.rollaxis, what="contraction: axes permuted", rule=SAME)
def rollaxis(x: Traced, axis: int, start: int = 0) -> Traced:
    """An axis rolled to another place."""
    shape = np.rollaxis(np.broadcast_to(0.0, tuple(range(2, 2 + x.ndim))), axis, start).shape
    return transpose(x, [n - 2 for n in shape])


@answers(np.reshape, what="reshape, unitary", rule=SAME)
def reshape(x: Traced, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Traced:
    """The same numbers under another shape."""
    wanted = shape if shape is not None else newshape
    if order in ("F", "f"):
        size = np.broadcast_to(0.0, x.shape).reshape(wanted).shape
        return transpose(reshape(transpose(x), size[::-1]))
    if order not in ("C", "A"):
        raise refuse(f"np.reshape in order {order!r} is not known to riesz; 'C' and 'F' are")
    given = tuple([int(n) for n in cast(Any, wanted)]) if isinstance(wanted, (tuple, list)) else (int(wanted),)
    size = x.size
    if -1 in given:
        rest = math.prod([n for n in given if n != -1])
        if given.count(-1) > 1 or not rest or size % rest:
            raise ValueError(f"cannot reshape array of size {size} into shape {given}")
        given = tuple([size // rest if n == -1 else n for n in given])
    if math.prod(given) != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {given}")
    return x if given == x.shape else viewed(x, step(Reshape(given), x))


@answers(np.ravel, what="reshape, unitary", rule=SAME)
def ravel(x: Any, order: str = "C") -> Any:
    """In one axis."""
    return reshape(x, (-1,) if x.size else (0,), order="C" if order in ("K", "A") else order)


@answers(np.expand_dims, what="reshape, unitary", rule=SAME)
def expand_dims(x: Traced, axis: Any) -> Traced:
    """New axes of length 1."""
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    at = axes_of(given, x.ndim + len(given))
    sizes = iter(x.shape)
    return reshape(x, tuple([1 if i in at else next(sizes) for i in range(x.ndim + len(given))]))


@answers(np.squeeze, what="reshape, unitary", rule=SAME)
def squeeze(x: Traced, axis: Any = None) -> Traced:
    """Without axes of length 1."""
    if of_number(axis, x.ndim):
        return x
    at = tuple([i for i, n in enumerate(x.shape) if n == 1]) if axis is None else axes_of(axis, x.ndim)
    if any([x.shape[i] != 1 for i in at]):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return reshape(x, tuple([n for i, n in enumerate(x.shape) if i not in at]))


def _atleast(rank: int) -> Any:
    def code(*xs: Any) -> Any:
        found = [_raised(lifted(x) if type(x) is Traced else np.asarray(x), rank) for x in xs]
        return found[0] if len(found) == 1 else tuple(found)

    return code


def _raised(x: Any, rank: int) -> Any:
    shape = np.shape(x)
    match rank - len(shape), rank:
        case (missing, _) if missing <= 0:
            return x
        case 2, 3:
            return np.reshape(x, (1, *shape, 1))
        case 1, 3:
            return np.reshape(x, (*shape, 1))
        case missing, _:
            return np.reshape(x, (*(1,) * missing, *shape))


for _f, _k in ((np.atleast_1d, 1), (np.atleast_2d, 2), (np.atleast_3d, 3)):
    answers(_f, what="reshape, unitary", rule=SAME)(_atleast(_k))


@answers(np.broadcast_to, what="contraction: repeated along axes (rep)", rule=SAME)
def broadcast_to(x: Traced, shape: Any, subok: bool = False) -> Traced:
    """Repeated along new axes and axes of length 1."""
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])
    if np.broadcast_shapes(x.shape, wanted) != wanted:
        raise ValueError(f"cannot broadcast an array of shape {x.shape} to {wanted}")
    return x if wanted == x.shape else viewed(x, step(broadcast(x.shape, wanted), x))


@answers(np.broadcast_arrays, what="contraction: repeated along axes (rep)", rule=SAME)
def broadcast_arrays(*xs: Any, subok: bool = False) -> Any:
    """All with one shape."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in xs])
    return tuple([np.broadcast_to(x, shape) for x in xs])


# -- putting together -------------------------------------------------------------------------------------


@answers(np.concatenate, what="relational reduction: each part placed in its range", rule=SAME)
def concatenate(arrays: Sequence[Any], axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    """Arrays one after the other."""
    xs = [tidy(a) for a in arrays]
    if axis is None:
        xs, axis = [np.ravel(x) for x in xs], 0
    trace = trace_of(*xs)
    kind = result_dtype(xs)[0] if dtype is None else np.dtype(dtype)
    slots = [slot_of(trace, x, kind) for x in xs]
    shapes = [trace.shapes[s] for s in slots]
    if not shapes[0]:
        raise ValueError("numbers cannot be concatenated; np.stack makes an array of them")
    (at,) = axes_of(axis, len(shapes[0]))
    for s in shapes:
        if (*s[:at], *s[at + 1 :]) != (*shapes[0][:at], *shapes[0][at + 1 :]):
            raise ValueError(f"arrays of shapes {', '.join(map(str, shapes))} cannot be concatenated along axis {axis}")
    sizes = [s[at] for s in shapes]
    starts = np.cumsum([0, *sizes])
    whole = Seg(int(starts[-1]))
    parts = [(Range(Seg(n), whole, int(s), 1, True), slot) for n, s, slot in zip(sizes, starts[:-1], slots, strict=True) if n]
    if not parts:
        return Traced(trace, slots[0], kind)
    if len(parts) == 1:
        return Traced(trace, parts[0][1], kind)
    return Traced(trace, trace.step(Reduction(tuple([r for r, _ in parts]), at), [slot for _, slot in parts]), kind)


@answers(np.stack, what="relational reduction: each part placed at its index", rule=SAME)
def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    """Arrays along a new axis."""
    xs = [tidy(a) for a in arrays]
    if len({np.shape(x) for x in xs}) > 1:
        raise ValueError(f"all input arrays must have the same shape; got {', '.join([str(np.shape(x)) for x in xs])}")
    rank = np.ndim(xs[0]) + 1
    (at,) = axes_of(axis, rank)
    return concatenate([np.reshape(x, (*np.shape(x)[:at], 1, *np.shape(x)[at:])) for x in xs], at, dtype=dtype)


@answers(np.vstack, what="relational reduction", rule=SAME)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    """Arrays on top of each other."""
    return concatenate([_raised(tidy(x), 2) for x in tup], 0, dtype=dtype)


@answers(np.hstack, what="relational reduction", rule=SAME)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    """Arrays side by side."""
    xs = [_raised(tidy(x), 1) for x in tup]
    return concatenate(xs, 0 if np.ndim(xs[0]) == 1 else 1, dtype=dtype)


@answers(np.dstack, what="relational reduction", rule=SAME)
def dstack(tup: Any) -> Any:
    """Arrays behind each other."""
    return concatenate([_raised(tidy(x), 3) for x in tup], 2)


@answers(np.column_stack, what="relational reduction", rule=SAME)
def column_stack(tup: Any) -> Any:
    """Arrays as columns."""
    xs = [tidy(x) for x in tup]
    return concatenate([np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in xs], 1)


@answers(np.block, what="relational reductions", rule=SAME)
def block(arrays: Any) -> Any:
    """An array of blocks."""

    def depth(x: Any) -> int:
        return 1 + max([depth(part) for part in cast("list[Any]", x)]) if isinstance(x, list) else 0

    levels = depth(arrays)
    found: list[Any] = []

    def leaves(x: Any) -> None:
        if isinstance(x, list):
            for part in cast("list[Any]", x):
                leaves(part)
        else:
            found.append(x)

    leaves(arrays)
    rank = max([levels, *[np.ndim(tidy(x)) for x in found]])

    def build(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return _raised_front(tidy(x), rank)
        return concatenate([build(part, level + 1) for part in cast("list[Any]", x)], axis=rank - levels + level)

    return build(arrays, 0)


def _raised_front(x: Any, rank: int) -> Any:
    return np.reshape(x, (*(1,) * (rank - np.ndim(x)), *np.shape(x)))


@answers(np.append, what="relational reduction", rule=SAME)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """values after arr."""
    return concatenate([arr, values], axis)


# -- taking apart -----------------------------------------------------------------------------------------


@answers(np.split, np.array_split, what="relational reductions: slices", rule=SAME)
def split(x: Traced, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    """Parts of an array."""
    (at,) = axes_of(axis, x.ndim)
    n = x.shape[at]
    cuts = [0, *[int(c) for c in _cuts(n, indices_or_sections)], n]
    return [x[(*(slice(None),) * at, slice(a, b))] for a, b in pairwise(cuts)]


def _cuts(n: int, given: Any) -> list[int]:
    if not isinstance(given, (int, np.integer)):
        return [min(int(c), n) if c >= 0 else int(c) for c in given]
    each, extra = divmod(n, int(given))
    return [int(c) for c in np.cumsum([each + (i < extra) for i in range(int(given))])[:-1]]


def _equal_split(x: Traced, indices_or_sections: Any, axis: int = 0) -> list[Traced]:
    if isinstance(indices_or_sections, (int, np.integer)) and x.shape[axes_of(axis, x.ndim)[0]] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return split(x, indices_or_sections, axis)


FUNCTIONS[np.split] = _equal_split
answers(np.vsplit, what="relational reductions: slices", rule=SAME)(lambda x, k: _equal_split(x, k, 0))
answers(np.hsplit, what="relational reductions: slices", rule=SAME)(lambda x, k: _equal_split(x, k, 0 if x.ndim == 1 else 1))
answers(np.dsplit, what="relational reductions: slices", rule=SAME)(lambda x, k: _equal_split(x, k, 2))
if hasattr(np, "unstack"):
    answers(np.unstack, what="relational reductions: points", rule=SAME)(lambda x, /, *, axis=0: tuple(moveaxis(x, axis, 0)))


# -- copies to other places -------------------------------------------------------------------------------


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


def everywhere(x: Traced, positions: Any) -> Traced:
    """x gathered from all its positions, flat."""
    at = np.asarray(positions, np.intp)
    flat = Gather(box_set(x.shape), box_set(at.shape), freeze(np.ascontiguousarray(at).ravel()))
    return step(Reduction((flat,), 0), x)


@answers(np.flip, what="relational reduction: a slice of step −1", rule=SAME)
def flip(m: Traced, axis: Any = None) -> Traced:
    """Axes turned round."""
    x = m
    for a in axes_of(axis, x.ndim):
        x = along(x, a, np.arange(x.shape[a])[::-1]) if x.shape[a] > 1 else x
    return x


answers(np.fliplr, what="relational reduction: a slice of step −1", rule=SAME)(lambda m: flip(m, 1))
answers(np.flipud, what="relational reduction: a slice of step −1", rule=SAME)(lambda m: flip(m, 0))


@answers(np.roll, what="relational reduction: two slices exchanged", rule=SAME)
def roll(a: Traced, shift: Any, axis: Any = None) -> Any:
    """Elements moved round along axes."""
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
    """A quarter turn."""
    a, b = axes_of(tuple(axes), m.ndim)
    match k % 4:
        case 0:
            return m
        case 1:
            return swapaxes(flip(m, b), a, b)
        case 2:
            return flip(m, (a, b))
        case _:
            return flip(swapaxes(m, a, b), b)


@answers(np.tile, what="contraction: repeated along a new axis, and a reshape", rule=SAME)
def tile(A: Traced, reps: Any) -> Any:
    """Copies side by side."""
    counts = (int(reps),) if isinstance(reps, (int, np.integer)) else tuple([int(r) for r in reps])
    rank = max(A.ndim, len(counts))
    shape = (*(1,) * (rank - A.ndim), *A.shape)
    counts = (*(1,) * (rank - len(counts)), *counts)
    wide = [n for pair in zip(counts, shape, strict=True) for n in pair]
    slim = [n for one in shape for n in (1, one)]
    spread = broadcast_to(reshape(A, tuple(slim)), tuple(wide))
    return reshape(spread, tuple([c * n for c, n in zip(counts, shape, strict=True)]))


@answers(np.repeat, what="contraction or relational reduction: each element several times", rule=SAME)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element several times."""
    flat = axis is None or of_number(axis, a.ndim)
    x = ravel(a) if flat else a
    (at,) = axes_of(0 if flat else axis, x.ndim)
    return along(x, at, np.repeat(np.arange(x.shape[at]), repeats))


@answers(np.resize, what="relational reduction", rule=SAME)
def resize(a: Traced, new_shape: Any) -> Any:
    """Repeated or cut to a shape."""
    if not a.size:
        return lifted(np.zeros(new_shape, a.dtype), a.home)
    return everywhere(a, np.resize(np.arange(a.size).reshape(a.shape), new_shape))


@answers(np.take, what="relational reduction: a gather", rule=SAME)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at positions along an axis."""
    flat = axis is None or of_number(axis, np.ndim(a))
    x = np.ravel(a) if flat else a
    (at,) = axes_of(0 if flat else axis, np.ndim(x))
    if mode != "raise":
        n = np.shape(x)[at]
        indices = np.clip(indices, 0, n - 1) if mode == "clip" else tidy(indices) % n
    from .indexing import index

    places = indices if type(indices) is Traced else np.asarray(indices)
    places = places if places.dtype.kind in "iu" or not places.size else places.astype(np.intp, casting="same_kind")  # True is 1 here
    return index(lifted(x, trace_of(x, indices)), (*(slice(None),) * at, places))


@answers(np.compress, what="relational reduction: a gather", rule=SAME)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Elements where a fixed condition holds."""
    return take(a, np.flatnonzero(condition), axis)


@answers(np.delete, what="relational reduction: a gather", rule=SAME)
def delete(arr: Traced, obj: Any, axis: Any = None) -> Any:
    """Without the elements at some positions."""
    x = ravel(arr) if axis is None else arr
    (at,) = axes_of(0 if axis is None else axis, x.ndim)
    return along(x, at, np.delete(np.arange(x.shape[at]), obj))


@answers(np.insert, what="relational reduction: values placed behind, then a gather", rule=SAME)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Values put in before positions."""
    x = np.ravel(arr) if axis is None else tidy(arr)
    rank = np.ndim(x)
    (at,) = axes_of(0 if axis is None else axis, rank)
    given = _raised_front(convert(tidy(values), x.dtype), rank)
    if not isinstance(obj, slice) and np.ndim(obj) == 0:  # one position: the axes of the values are the inserted one and the rest, as NumPy has it
        given = np.moveaxis(given, 0, at)
    n = np.shape(x)[at]
    count = np.insert(np.arange(n), obj, 0).size - n
    count = np.shape(given)[at] if count == 1 else count
    wide = np.broadcast_to(given, (*np.shape(x)[:at], count, *np.shape(x)[at + 1 :]))
    return along(concatenate([x, wide], at), at, np.insert(np.arange(n), obj, n + np.arange(count)))


@answers(np.pad, what="relational reduction: placed in a larger range, or a gather", rule=SAME)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **named: Any) -> Any:
    """With borders."""
    x = lifted(array)
    if isinstance(pad_width, dict):
        given = {int(a) % x.ndim: w for a, w in cast("dict[Any, Any]", pad_width).items()}
        pad_width = [np.broadcast_to(given.get(a, 0), (2,)) for a in range(x.ndim)]
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist() if x.ndim else []
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
        case "empty" | "constant" if mode == "empty" or _all_zero(named.get("constant_values", 0)):
            return step(Reduction((Range(Seg(n), Seg(n + before + after), before if n else 0, 1, True),), axis), x)
        case "reflect" | "symmetric" if named.get("reflect_type", "even") == "odd":
            # 2·edge − mirrored, again and again where the border is wide: NumPy's border of the coordinate vectors has the weights.
            weights = np.pad(np.eye(n), ((before, after), (0, 0)), mode=mode, reflect_type="odd").astype(x.dtype)
            return moveaxis(np.tensordot(weights, x, ([1], [axis])), 0, axis)
        case "edge" | "reflect" | "symmetric" | "wrap":
            return along(x, axis, np.pad(np.arange(n), (before, after), mode=mode))
        case "constant" | "linear_ramp" | "mean" | "median" | "maximum" | "minimum":
            borders = [_border(x, axis, width, side, mode, named) for side, width in enumerate((before, after))]
            return concatenate([borders[0], x, borders[1]], axis)
        case _:
            raise refuse(f"np.pad with mode {mode!r} is not known to riesz; the modes NumPy knows by name are")


def _all_zero(x: Any) -> bool:
    return not holds_traced(x) and not np.any(np.asarray(x))


def _border(x: Traced, axis: int, width: int, side: int, mode: str, named: dict[str, Any]) -> Any:
    """What stands before (side 0) or after (side 1) an array along an axis."""
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


def _triangle(keep: Any) -> Any:
    def code(m: Any, k: int = 0) -> Any:
        x = lifted(m)
        if x.ndim == 1:
            x = broadcast_to(x, (x.shape[0], x.shape[0]))
        mask = keep(np.ones(x.shape[-2:], bool), k)
        return FUNCTIONS[np.where](np.broadcast_to(mask, x.shape), x, 0.0)

    return code


for _f in (np.tril, np.triu):
    answers(_f, what="selection by a fixed mask", rule=SAME)(_triangle(_f))


@answers(np.copy, np.asarray, np.array, np.asanyarray, np.ascontiguousarray, what="identity", rule="dx")
def copy(a: Any, *args: Any, **named: Any) -> Any:
    """The same numbers, on their own."""
    return typed(lifted(a).copy(), None)


@answers(np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.result_type, what="static", rule="no derivative")
def shape(a: Any) -> Any:
    """The shape."""
    return a.shape


FUNCTIONS[np.ndim] = lambda a: a.ndim
FUNCTIONS[np.size] = lambda a, axis=None: a.size if axis is None else a.shape[axis]
FUNCTIONS[np.iscomplexobj] = lambda x: False
FUNCTIONS[np.isrealobj] = lambda x: True
FUNCTIONS[np.result_type] = lambda *xs: np.result_type(*[x.dtype if type(x) is Traced else x for x in xs])


@answers(np.meshgrid, what="contraction: repeated along axes (rep)", rule=SAME)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid."""
    xs = [np.ravel(tidy(x)) for x in xi]
    n = len(xs)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    sizes = [np.shape(x)[0] for x in xs]
    shape = [1] * n
    for i, a in enumerate(order):
        shape[a] = sizes[i]
    found: list[Any] = []
    for x, a in zip(xs, order, strict=True):
        slim = np.reshape(x, tuple([-1 if k == a else 1 for k in range(n)]))
        found.append(slim if sparse else np.broadcast_to(slim, tuple(shape)))
    return tuple(found)


@answers(np.lib.stride_tricks.sliding_window_view, what="relational reduction: a gather of windows", rule=SAME)
def sliding_window_view(x: Traced, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """Windows along axes, as last axes."""
    sizes = (int(window_shape),) if isinstance(window_shape, (int, np.integer)) else tuple([int(k) for k in window_shape])
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


if hasattr(np, "astype"):
    answers(np.astype, what="cast", rule="the cast of dx")(lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype))
