"""Rearrangements: shapes are renumberings, permutations of axes contractions, slices and copies relational
reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ...ops.op import Reduction, Reshape, broadcast, contraction
from ...relations import Range
from ...relations.index_sets import Seg
from ..traced import (
    FUNCTIONS,
    Traced,
    answers,
    as_array,
    lifted,
    refuse,
    result_dtype,
    slot_of,
    step,
    tidy,
    trace_of,
    typed,
)

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
    """Whether the axis named is the first or last of a number, which has none: reductions and some others of NumPy take
    it for an array of one."""
    return not ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1)


@answers(np.transpose, np.permute_dims, what="contraction: axes permuted", rule=SAME)
def transpose(x: Any, axes: Any = None) -> Traced:
    """Axes permuted."""
    order = tuple(range(x.ndim))[::-1] if axes is None else axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError("axes don't match array")
    return x if order == tuple(range(x.ndim)) else step(contraction((tuple(range(x.ndim)),), order), x)


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
    return x if given == x.shape else step(Reshape(given), x)


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
        found = [_raised(as_array(x), rank) for x in xs]
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
    return x if wanted == x.shape else step(broadcast(x.shape, wanted), x)


def written_to(x: Any, shape: Any) -> Any:
    """x as it is written into an array of a shape: broadcast, and leading axes of length 1 fall away."""
    wanted = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])
    more = max(0, np.ndim(x) - len(wanted))
    return np.broadcast_to(np.reshape(x, np.shape(x)[more:]) if np.shape(x)[:more] == (1,) * more else x, wanted)


@answers(np.broadcast_arrays, what="contraction: repeated along axes (rep)", rule=SAME)
def broadcast_arrays(*xs: Any, subok: bool = False) -> Any:
    """All with one shape."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in xs])
    return tuple([np.broadcast_to(x, shape) for x in xs])


# -- putting together -------------------------------------------------------------------------------------


@answers(np.concatenate, what="relational reduction: each part placed in its range", rule=SAME)
def concatenate(
    arrays: Sequence[Any], axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Any:
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
    parts = [
        (Range(Seg(n), whole, int(s), 1, True), slot) for n, s, slot in zip(sizes, starts[:-1], slots, strict=True) if n
    ]
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
            return raised_front(tidy(x), rank)
        return np.concatenate(
            [build(part, level + 1) for part in cast("list[Any]", x)], axis=rank - levels + level
        )  # a row may have no traced part

    return build(arrays, 0)


def raised_front(x: Any, rank: int) -> Any:
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
answers(np.hsplit, what="relational reductions: slices", rule=SAME)(
    lambda x, k: _equal_split(x, k, 0 if x.ndim == 1 else 1)
)
answers(np.dsplit, what="relational reductions: slices", rule=SAME)(lambda x, k: _equal_split(x, k, 2))
if hasattr(np, "unstack"):
    answers(np.unstack, what="relational reductions: points", rule=SAME)(
        lambda x, /, *, axis=0: tuple(moveaxis(x, axis, 0))
    )


# -- masks, copies, grids ----------------------------------------------------------------------------------


def _triangle(keep: Any) -> Any:
    def code(m: Any, k: int = 0) -> Any:
        x = lifted(m)
        if x.ndim == 1:
            x = broadcast_to(x, (x.shape[0], x.shape[0]))
        mask = keep(np.ones(x.shape[-2:], bool), k)
        return FUNCTIONS[np.where](np.broadcast_to(mask, x.shape), x, 0.0 if x.dtype.kind == "f" else x.dtype.type(0))

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


if hasattr(np, "astype"):
    answers(np.astype, what="cast", rule="the cast of dx")(
        lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype)
    )
