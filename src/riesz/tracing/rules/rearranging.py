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
from ..layouts import axes_in_memory, lies_by_columns
from ..registry import FUNCTIONS, answer_rows, answers
from ..trace import refuse
from ..traced import TRACED, Traced, as_array, lifted, result_dtype, slot_of, step, tidy, trace_of, typed

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
    """Whether the axis named is the first or last of a number: NumPy's reductions take it for an array of one."""
    return not ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1)


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction takes away."""
    return () if of_number(axis, ndim) else axes_of(axis, ndim)


def kept_shape(shape: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with axes of length 1 in the place of some axes."""
    return tuple([1 if i in gone else n for i, n in enumerate(shape)])


def same_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    """The shape of a discrete op's result: that of its first argument."""
    return shapes[0]


@answers(np.transpose, np.permute_dims, what="contraction: axes permuted", rule=SAME)
def transpose(x: Any, axes: Any = None) -> Traced:
    order = tuple(range(x.ndim))[::-1] if axes is None else axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ValueError("axes don't match array")
    return x if order == tuple(range(x.ndim)) else step(contraction((tuple(range(x.ndim)),), order), x)


@answers(np.swapaxes, what="contraction: axes permuted", rule=SAME)
def swapaxes(x: Traced, axis1: int, axis2: int) -> Traced:
    order = list(range(x.ndim))
    i, j = axes_of(axis1, x.ndim)[0], axes_of(axis2, x.ndim)[0]
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


@answers(np.moveaxis, what="contraction: axes permuted", rule=SAME)
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    from_, to = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    order = [a for a in range(x.ndim) if a not in from_]
    for d, s in sorted(zip(to, from_, strict=True)):
        order.insert(d, s)
    return transpose(x, order)


@answers(np.rollaxis, what="contraction: axes permuted", rule=SAME)
def rollaxis(x: Traced, axis: int, start: int = 0) -> Traced:
    shape = np.rollaxis(np.broadcast_to(0.0, tuple(range(2, 2 + x.ndim))), axis, start).shape
    return transpose(x, [n - 2 for n in shape])


@answers(np.reshape, what="reshape, unitary", rule=SAME)
def reshape(x: Traced, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Traced:
    wanted = shape if shape is not None else newshape
    if order in ("A", "a") and lies_by_columns(x):
        order = "F"
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
    if order in ("K", "k"):
        x, order = transpose(x, axes_in_memory(x)), "C"
    return reshape(x, (-1,) if x.size else (0,), order=order)


@answers(np.expand_dims, what="reshape, unitary", rule=SAME)
def expand_dims(x: Traced, axis: Any) -> Traced:
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    at = axes_of(given, x.ndim + len(given))
    sizes = iter(x.shape)
    return reshape(x, tuple([1 if i in at else next(sizes) for i in range(x.ndim + len(given))]))


@answers(np.squeeze, what="reshape, unitary", rule=SAME)
def squeeze(x: Traced, axis: Any = None) -> Traced:
    if of_number(axis, x.ndim):
        return x
    at = tuple([i for i, n in enumerate(x.shape) if n == 1]) if axis is None else axes_of(axis, x.ndim)
    if any([x.shape[i] != 1 for i in at]):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return reshape(x, tuple([n for i, n in enumerate(x.shape) if i not in at]))


def _raised(x: Any, rank: int) -> Any:
    shape = np.shape(x)
    missing = rank - len(shape)
    if missing <= 0:
        return x
    behind = int(rank == 3 and missing < 3)  # NumPy puts the last of three axes behind
    return np.reshape(x, (*(1,) * (missing - behind), *shape, *(1,) * behind))


def _atleast(rank: int) -> Any:
    def code(*xs: Any) -> Any:
        found = [_raised(as_array(x), rank) for x in xs]
        return found[0] if len(found) == 1 else tuple(found)

    return code


def lengths(shape: Any) -> tuple[int, ...]:
    """A shape, or a number for an array of one axis."""
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])


@answers(np.broadcast_to, what="contraction: repeated along axes (rep)", rule=SAME)
def broadcast_to(x: Traced, shape: Any, subok: bool = False) -> Traced:
    wanted = lengths(shape)
    if np.broadcast_shapes(x.shape, wanted) != wanted:
        raise ValueError(f"cannot broadcast an array of shape {x.shape} to {wanted}")
    return x if wanted == x.shape else step(broadcast(x.shape, wanted), x)


def written_to(x: Any, shape: Any) -> Any:
    """x as it is written into an array of a shape: broadcast, and leading axes of length 1 fall away."""
    wanted = lengths(shape)
    more = max(0, np.ndim(x) - len(wanted))
    return np.broadcast_to(np.reshape(x, np.shape(x)[more:]) if np.shape(x)[:more] == (1,) * more else x, wanted)


def broadcast_arrays(*xs: Any, subok: bool = False) -> Any:
    """All with one shape."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in xs])
    return tuple([np.broadcast_to(x, shape) for x in xs])


# -- putting together -------------------------------------------------------------------------------------


@answers(np.concatenate, what="relational reduction: each part placed in its range", rule=SAME)
def concatenate(
    arrays: Sequence[Any], axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Any:
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
    *starts, end = [int(n) for n in np.cumsum([0, *sizes])]
    there = [i for i, n in enumerate(sizes) if n]
    if len(there) < 2:
        return Traced(trace, slots[there[0] if there else 0], kind)
    ranges = tuple([Range(Seg(sizes[i]), Seg(end), starts[i], 1, True) for i in there])
    return Traced(trace, trace.step(Reduction(ranges, at), [slots[i] for i in there]), kind)


@answers(np.stack, what="relational reduction: each part placed at its index", rule=SAME)
def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    xs = [tidy(a) for a in arrays]
    if len({np.shape(x) for x in xs}) > 1:
        raise ValueError(f"all input arrays must have the same shape; got {', '.join([str(np.shape(x)) for x in xs])}")
    rank = np.ndim(xs[0]) + 1
    (at,) = axes_of(axis, rank)
    return concatenate([np.reshape(x, (*np.shape(x)[:at], 1, *np.shape(x)[at:])) for x in xs], at, dtype=dtype)


def _vstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    return concatenate([_raised(tidy(x), 2) for x in tup], 0, dtype=dtype)


def _hstack(tup: Any, *, dtype: Any = None, casting: Any = None) -> Any:
    xs = [_raised(tidy(x), 1) for x in tup]
    return concatenate(xs, 0 if np.ndim(xs[0]) == 1 else 1, dtype=dtype)


def _column(x: Any) -> Any:
    x = tidy(x)
    return np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x


@answers(np.block, what="relational reductions", rule=SAME)
def block(arrays: Any) -> Any:
    def depth(x: Any) -> int:
        return 1 + max([depth(part) for part in cast("list[Any]", x)]) if isinstance(x, list) else 0

    def leaves(x: Any) -> list[Any]:
        return [leaf for part in cast("list[Any]", x) for leaf in leaves(part)] if isinstance(x, list) else [x]

    levels = depth(arrays)
    rank = max([levels, *[np.ndim(tidy(x)) for x in leaves(arrays)]])

    def build(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            return raised_front(tidy(x), rank)
        parts = [build(part, level + 1) for part in cast("list[Any]", x)]
        return np.concatenate(parts, axis=rank - levels + level)  # a row may have no traced part

    return build(arrays, 0)


def raised_front(x: Any, rank: int) -> Any:
    return np.reshape(x, (*(1,) * (rank - np.ndim(x)), *np.shape(x)))


# -- taking apart -----------------------------------------------------------------------------------------


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


# -- masks, copies, grids ----------------------------------------------------------------------------------


def _triangle(keep: Any) -> Any:
    def code(m: Any, k: int = 0) -> Any:
        x = lifted(m)
        if x.ndim == 1:
            x = broadcast_to(x, (x.shape[0], x.shape[0]))
        mask = keep(np.ones(x.shape[-2:], bool), k)
        return FUNCTIONS[np.where](np.broadcast_to(mask, x.shape), x, 0.0 if x.dtype.kind == "f" else x.dtype.type(0))

    return code


@answers(np.meshgrid, what="contraction: repeated along axes (rep)", rule=SAME)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)
    shapes = [tuple([-1 if k == a else 1 for k in range(n)]) for a in order]
    found = [np.reshape(np.ravel(tidy(x)), shape) for x, shape in zip(xi, shapes, strict=True)]
    return tuple(found) if sparse else broadcast_arrays(*found)


# -- the table --------------------------------------------------------------------------------------------

_PERMUTED, _SLICES, _JOINED = "contraction: axes permuted", "relational reductions: slices", "relational reduction"
_RESHAPED, _REPEATED, _STATIC = "reshape, unitary", "contraction: repeated along axes (rep)", "no derivative"
_COPIES = (np.copy, np.asarray, np.array, np.asanyarray, np.ascontiguousarray)
answer_rows(
    ((np.matrix_transpose, np.linalg.matrix_transpose), _PERMUTED, SAME, lambda x, /: swapaxes(x, -1, -2)),
    (np.atleast_1d, _RESHAPED, SAME, _atleast(1)),
    (np.atleast_2d, _RESHAPED, SAME, _atleast(2)),
    (np.atleast_3d, _RESHAPED, SAME, _atleast(3)),
    (np.broadcast_arrays, _REPEATED, SAME, broadcast_arrays),
    (np.vstack, _JOINED, SAME, _vstack),
    (np.hstack, _JOINED, SAME, _hstack),
    (np.dstack, _JOINED, SAME, lambda tup: concatenate([_raised(tidy(x), 3) for x in tup], 2)),
    (np.column_stack, _JOINED, SAME, lambda tup: concatenate([_column(x) for x in tup], 1)),
    (np.append, _JOINED, SAME, lambda arr, values, axis=None: concatenate([arr, values], axis)),
    (np.array_split, _SLICES, SAME, split),
    (np.split, _SLICES, SAME, _equal_split),
    (np.vsplit, _SLICES, SAME, lambda x, k: _equal_split(x, k, 0)),
    (np.hsplit, _SLICES, SAME, lambda x, k: _equal_split(x, k, 0 if x.ndim == 1 else 1)),
    (np.dsplit, _SLICES, SAME, lambda x, k: _equal_split(x, k, 2)),
    (np.tril, "selection by a fixed mask", SAME, _triangle(np.tril)),
    (np.triu, "selection by a fixed mask", SAME, _triangle(np.triu)),
    (_COPIES, "identity", "dx", lambda a, *args, **named: typed(lifted(a).copy(), None)),
    (np.shape, "static", _STATIC, lambda a: a.shape),
    (np.ndim, "static", _STATIC, lambda a: a.ndim),
    (np.size, "static", _STATIC, lambda a, axis=None: a.size if axis is None else a.shape[axis]),
    (np.iscomplexobj, "static", _STATIC, lambda x: False),
    (np.isrealobj, "static", _STATIC, lambda x: True),
    (np.result_type, "static", _STATIC, lambda *xs: np.result_type(*[x.dtype if type(x) in TRACED else x for x in xs])),
)
if hasattr(np, "unstack"):
    points = "relational reductions: points"
    answer_rows((np.unstack, points, SAME, lambda x, /, *, axis=0: tuple(moveaxis(x, axis, 0))))
if hasattr(np, "astype"):
    answer_rows((np.astype, "cast", "the cast of dx", lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype)))
