"""Relational reduction in JAX, for the CPU and the GPU: the same kinds, plans and order of sums; nothing atomic, so the
same bits every run.

A sum over stored pairs runs in one of three ways. On an NVIDIA GPU one kernel (rows_on_gpu.py) sums the groups.
Elsewhere groups of about the same size share a table of sources, and their sums are a few gathers (Note [Tables]); a
function on the CPU is scattered, which XLA does in order. Groups longer than LONG are cut into pieces first, and the
sums of pieces summed, so that no group makes the others wait; not if there are MANY groups of about the same length,
for the kernel.

Compiled code knows a relation by its *Code* only, and the arrays of a plan are its arguments: relations that differ in
their arrays share one compilation, and no relation is kept because code was compiled for it.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ...errors import RelationError
from ...runtime import tuning
from ...runtime.interning import Node
from ..base import Relation
from ..compound import Beside, Both, Compound, Sum, Through, Union
from ..index_sets import box_set
from ..kinds import Copied, Diagonal, Empty, Full, Function, Gather, Pairs, Segments, Triangular
from ..spanned import Line, Piece, Spanned, line_slice

LONG, MANY = 64, 1 << 15  # pairs of a group; groups


class ReductionCode(Node):
    """What compiled code knows of a relation: how it runs, sizes, what it is made of. Interned: JAX looks for `is`."""

    how: str
    source: int
    target: int
    made_of: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"{self.how} {self.source}→{self.target}"


def apply(
    relation: Relation, v: Any, shape: tuple[int, int, int] | None = None, result: tuple[int, ...] | None = None
) -> Any:
    """red_R along the middle axis of a JAX array, also under jit, vmap and grad; seen as `shape`, given as `result`."""
    if not isinstance(v, Tracer):  # numbers: nothing will be transposed
        code, arrays = prepared(relation)
        return _forward(code, shape, result, arrays, v)
    codes, arrays, _ = _both(relation)
    return _apply(*codes, shape, result, *arrays, v)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _forward(code: ReductionCode, shape: Any, result: Any, arrays: Any, v: Any) -> Any:
    y = reduce(code, arrays, v if shape is None else v.reshape(shape))
    return y if result is None else y.reshape(result)


def _both(relation: Relation) -> Any:
    """The codes of a relation and of its converse, their arrays, and the converse, kept as long as the relation."""
    found = relation.__dict__.get("_both")
    if found is None:
        turned = relation.converse
        codes, arrays = zip(prepared(relation), prepared(turned), strict=True)
        found = relation.__dict__["_both"] = codes, arrays, turned
    return found


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _apply(code: ReductionCode, turned: ReductionCode, shape: Any, result: Any, there: Any, back: Any, v: Any) -> Any:
    (forth, tree), (others, other) = jax.tree.flatten(there), jax.tree.flatten(back)
    y = RED.bind(v if shape is None else v.reshape(shape), *forth, *others, codes=(code, turned), trees=(tree, other))
    return y if result is None else y.reshape(result)


# -- red as an operation of JAX's own: linear, its transpose the converse, a batch one more leading axis ------

RED = Primitive("red")


@functools.partial(jax.jit, static_argnames=("codes", "trees"))
def _run(v: Any, *arrays: Any, codes: Any, trees: Any) -> Any:
    return reduce(codes[0], trees[0].unflatten(arrays[: trees[0].num_leaves]), v)


def _shape(v: Any, *_: Any, codes: Any, trees: Any) -> Any:
    return ShapedArray((v.shape[0], codes[0].target, v.shape[2]), v.dtype)


def _tangent(primals: Any, tangents: Any, **params: Any) -> Any:
    v, *arrays = primals
    y = RED.bind(v, *arrays, **params)
    moves = type(tangents[0]) is not ad.Zero
    return y, RED.bind(tangents[0], *arrays, **params) if moves else ad.Zero.from_primal_value(y)


def _transpose(cotangent: Any, v: Any, *arrays: Any, codes: Any, trees: Any) -> Any:
    forth = trees[0].num_leaves
    if type(cotangent) is ad.Zero:
        return [ad.Zero(v.aval), *[None] * len(arrays)]
    turned = RED.bind(cotangent, *arrays[forth:], *arrays[:forth], codes=codes[::-1], trees=trees[::-1])
    return [turned, *[None] * len(arrays)]


def _batched(values: Any, axes: Any, **params: Any) -> Any:
    v, *arrays = values
    if axes[0] is None or any([axis is not None for axis in axes[1:]]):
        raise RelationError("a relation cannot be mapped over with vmap, only the values it reduces")
    v = jnp.moveaxis(v, axes[0], 0)
    y = RED.bind(v.reshape(v.shape[0] * v.shape[1], *v.shape[2:]), *arrays, **params)
    return y.reshape(*v.shape[:2], *y.shape[1:]), 0


RED.def_impl(_run)
RED.def_abstract_eval(_shape)
ad.primitive_jvps[RED] = _tangent
ad.primitive_transposes[RED] = _transpose
batching.primitive_batchers[RED] = _batched
mlir.register_lowering(RED, mlir.lower_fun(_run, multiple_results=False))


# -- plans -------------------------------------------------------------------------------------------------


class GroupSums(NamedTuple):
    """How groups are summed: those of up to LONG pairs at once; longer ones in pieces, and the sums of these again."""

    here: Any  # (starts, lengths), or tables, of all groups, the long ones empty
    pieces: Any = None  # the same of the pieces of long groups
    long: Any = None  # which groups those are
    of_pieces: Any = None  # GroupSums of the pieces


class PairTable(NamedTuple):
    """Note [Tables]: targets with up to k pairs, and the sources of the first, second, … pair; |X| for none."""

    targets: Any
    sources: Any
    times: Any


def prepared(relation: Relation) -> tuple[ReductionCode, Any]:
    """The code of a relation and the arrays that reducing it takes, made once and kept on the device."""
    found = relation.__dict__.get("_in_jax")
    if found is None:
        how, made_of, arrays = _taken_apart(relation)
        with jax.ensure_compile_time_eval():  # numbers, also where code is being traced
            arrays = jax.tree.map(jnp.asarray, arrays)
        code = ReductionCode(how, relation.source.size, relation.target.size, made_of)
        found = relation.__dict__["_in_jax"] = code, arrays
    return found


def _taken_apart(relation: Relation) -> tuple[str, tuple[Any, ...], Any]:
    """How a relation runs, what it is made of, and its arrays."""
    match relation:
        case Empty():
            return "zeros", (), ()
        case Diagonal():
            return "same", (), ()
        case Full(times=times):
            return "total", (times,), ()
        case Gather(index=index):
            return "gather", (), index.astype(np.int32) if relation.source.size < 2**31 else index
        case Segments(turned=True):
            return "gather", (), relation.ids.astype(np.int32)
        case Copied(cut=cut, tile=tile):
            return "slice" if tile is None else "place", (cut.start, cut.stop, cut.step), ()
        case Triangular(lower=lower, strict=strict):
            return "scan", (lower, strict), ()
        case Both(first=first, second=second):
            return "both", *_members([first, second])
        case Beside(members=members, turned=True):
            return "fork", *_members([r.converse for r in members])
        case Compound(members=members):
            return {Through: "through", Beside: "join", Sum: "sum", Union: "union"}[type(relation)], *_members(members)
        case Spanned(stages=Relation() as stages):
            return _taken_apart(stages)
        case Function(index=index) if not _on_gpu():
            return "scatter", (), index
        case Spanned() if relation.span.affine:
            return "slices", (relation.source.box, relation.target.box, *relation.span), ()
        case Function() | Pairs() | Segments() | Spanned():
            groups = relation.groups
            if _on_gpu() and _has_kernel():
                return "rows", (), (rows(groups.offsets), groups.index, groups.times)
            index = np.arange(groups.count, dtype=np.int32) if groups.index is None else groups.index
            return "tables", (), tables(groups.offsets, index, groups.times, groups.size)
        case _:
            raise RelationError(f"{type(relation).__name__} cannot be reduced in JAX yet")


def _members(members: Any) -> tuple[tuple[ReductionCode, ...], tuple[Any, ...]]:
    found = [prepared(r) for r in members]
    return tuple([code for code, _ in found]), tuple([arrays for _, arrays in found])


def _on_gpu() -> bool:
    return jax.default_backend() == "gpu"


@functools.cache
def _has_kernel() -> bool:
    """Whether this JAX has what our kernel is written in."""
    try:
        from . import gpu_rows as rows_on_gpu  # noqa: F401
    except ImportError:
        return False
    return True


def rows(offsets: Any) -> GroupSums:
    """The sums of groups, by where each begins and its length."""
    lengths = np.diff(offsets)
    even = len(lengths) >= MANY and int(lengths.max()) * len(lengths) <= 2 * int(offsets[-1])
    return _grouped(offsets, lambda *group: group, rows, even)


def tables(offsets: Any, index: Any, times: Any, size: int) -> GroupSums:
    """The sums of groups, as tables by size, and where each target's sum stands."""

    def of_pieces(cuts: Any) -> GroupSums:
        return tables(cuts, np.arange(cuts[-1], dtype=np.int32), None, int(cuts[-1]))

    return _grouped(offsets, lambda *group: _tables(*group, index, times, size), of_pieces)


def _grouped(offsets: Any, make: Any, of_pieces: Any, even: bool = False) -> GroupSums:
    starts, lengths = offsets[:-1], np.diff(offsets)
    long = np.flatnonzero(lengths > LONG)
    if even or not len(long):
        return GroupSums(make(starts, lengths))
    begin, length, cuts = _cut(starts[long], lengths[long])
    short = make(starts, np.where(lengths > LONG, 0, lengths))
    return GroupSums(short, make(begin, length), long.astype(np.int32), of_pieces(cuts))


def _cut(starts: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Groups in pieces of LONG pairs: their starts and lengths, and the offsets of each group's pieces."""
    counts = -(-lengths // LONG)
    cuts = np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype)
    step = (np.arange(cuts[-1]) - np.repeat(cuts[:-1], counts)) * LONG
    begin = np.repeat(starts, counts) + step
    length = np.minimum(LONG, np.repeat(starts + lengths, counts) - begin)
    return begin.astype(starts.dtype), length.astype(starts.dtype), cuts


def _tables(starts: Any, lengths: Any, index: Any, times: Any, size: int) -> tuple[tuple[PairTable, ...], Any]:
    kind = np.searchsorted(tuning.JAX_TABLE_SIZES, lengths)
    found: list[PairTable] = []
    place = np.full(len(starts), -1, np.int32)
    filled = 0
    for which, k in enumerate(tuning.JAX_TABLE_SIZES):
        targets = np.flatnonzero((kind == which) & (lengths > 0))
        if not len(targets):
            continue
        pair = starts[targets] + np.arange(k)[:, None]
        real = np.arange(k)[:, None] < lengths[targets]
        pair = np.minimum(pair, len(index) - 1)
        sources = np.where(real, index[pair], size).astype(np.int32)
        found.append(PairTable(targets.astype(np.int32), sources, None if times is None else times[pair]))
        place[targets] = filled + np.arange(len(targets))
        filled += len(targets)
    return tuple(found), np.where(place < 0, filled, place).astype(np.int32)


# -- execution ---------------------------------------------------------------------------------------------


def reduce(code: ReductionCode, arrays: Any, v: Any) -> Any:
    """red_R along the middle axis of (a, |source|, b), by the code and the arrays of the relation."""
    a, n, b = v.shape
    m, made_of = code.target, code.made_of
    match code.how:
        case "zeros":
            return jnp.zeros((a, m, b), v.dtype)
        case "same":
            return v
        case "total":
            return jnp.broadcast_to(v.sum(axis=1, keepdims=True) * float(made_of[0]), (a, m, b))
        case "gather":
            return v.at[:, arrays].get(mode="promise_in_bounds")
        case "slice":
            return v[:, slice(*made_of)]
        case "place":
            return jnp.zeros((a, m, b), v.dtype).at[:, slice(*made_of)].set(v)
        case "scan":
            lower, strict = made_of
            total = jax.lax.cumsum(v, axis=1, reverse=not lower)
            if not strict or not n:
                return total
            none = jnp.zeros((a, 1, b), v.dtype)
            return jnp.concatenate([none, total[:, :-1]] if lower else [total[:, 1:], none], axis=1)
        case "both":
            first, second = made_of
            half = reduce(first, arrays[0], v.reshape(a, first.source, second.source * b))
            rest = reduce(second, arrays[1], half.reshape(a * first.target, second.source, b))
            return rest.reshape(a, m, b)
        case "through":
            return functools.reduce(lambda x, r: reduce(r[0], r[1], x), zip(made_of, arrays, strict=True), v)
        case "fork" | "join" | "sum" | "union":
            cuts = itertools.pairwise(np.cumsum([0, *[r.source for r in made_of]]))
            given = [v[:, low:high] if code.how in ("join", "sum") else v for low, high in cuts]
            parts = [reduce(r, x, p) for r, x, p in zip(made_of, arrays, given, strict=True)]
            if code.how == "union":
                return functools.reduce(jnp.add, parts)
            if code.how == "join" or not parts:
                return sum(parts, jnp.zeros((a, m, b), v.dtype))
            return jnp.concatenate(parts, axis=1)
        case "slices":
            X, Y, *span = made_of
            return _slices(Spanned(box_set(X), box_set(Y), *span), v)
        case "scatter":
            return jnp.moveaxis(jax.ops.segment_sum(jnp.moveaxis(v, 1, 0), arrays, m, mode="promise_in_bounds"), 0, 1)
        case "rows":
            from .gpu_rows import row_sums

            plan, *of = arrays
            kernels = [lambda s, n, x, of=of: row_sums(s, n, *of, x) for of in (of, (None, None))]
            return _group_sums(plan, *kernels, v)
        case _:  # tables
            return _group_sums(arrays, _sums, _sums, v)


def _group_sums(plan: GroupSums, run: Any, run_pieces: Any, v: Any) -> Any:
    """Short groups at once; long ones by pieces, and their sums put in place."""
    y = run(*plan.here, v)
    if plan.long is None:
        return y
    sums = _group_sums(plan.of_pieces, run_pieces, run_pieces, run(*plan.pieces, v))
    return y.at[:, plan.long].set(sums, unique_indices=True, mode="promise_in_bounds")


def _sums(groups: tuple[PairTable, ...], place: Any, v: Any) -> Any:
    """Σ over the rows of each table, one after the other; missing pairs are masked, not multiplied by zero."""
    a, n, b = v.shape
    done = [jnp.zeros((a, 1, b), v.dtype)]
    for table in reversed(groups):
        total = None
        for k in range(table.sources.shape[0]):
            at = table.sources[k]
            x = jnp.where((at < n)[:, None], v.at[:, at].get(mode="clip"), 0)
            x = x if table.times is None else x * table.times[k].astype(v.dtype)[:, None]
            total = x if total is None else total + x
        done.insert(0, total)
    return jnp.concatenate(done, axis=1).at[:, place].get(mode="promise_in_bounds")


def _slices(relation: Spanned, v: Any) -> Any:
    """The pieces of an affine span, padded to the target and added: one loop over memory when compiled."""
    a, _, b = v.shape
    X, Y = relation.source.box or (), relation.target.box or ()
    given = relation.narrowed(v.reshape((a, *X, b)))
    parts = [_placed(piece, given, Y) for piece in relation.pieces]
    total = functools.reduce(jnp.add, parts) if parts else jnp.zeros((a, *Y, b), v.dtype)
    return total.reshape(a, math.prod(Y), b)


def _placed(piece: Piece, given: Any, box: tuple[int, ...]) -> Any:
    have, want = [k for _, _, k in piece.left if k >= 0], [k for _, _, k in piece.right if k >= 0]
    part = given[(slice(None), *[line_slice(line, piece.sizes) for line in piece.left])]
    part = piece.arranged(part, have, want)
    part = jnp.broadcast_to(part, (part.shape[0], *[piece.sizes[k] for k in want], part.shape[-1]))
    part = jnp.expand_dims(part, [i + 1 for i, (_, _, k) in enumerate(piece.right) if k < 0])
    back = [i + 1 for i, (_, step, k) in enumerate(piece.right) if k >= 0 and step < 0]
    part = jnp.flip(part, back) if back else part
    room = [(0, 0, 0), *[_room(line, piece.sizes, n) for line, n in zip(piece.right, box, strict=True)], (0, 0, 0)]
    return part if not any(itertools.chain(*room)) else jax.lax.pad(part, jnp.zeros((), part.dtype), room)


def _room(line: Line, sizes: dict[int, int], n: int) -> tuple[int, int, int]:
    """How far a slice is from both ends of an axis, and how many places lie between its elements."""
    start, step, label = line
    count = sizes[label] if label >= 0 else 1
    ends = sorted([start, start + step * (count - 1)])
    return ends[0], n - 1 - ends[1], abs(step) - 1 if count > 1 else 0
