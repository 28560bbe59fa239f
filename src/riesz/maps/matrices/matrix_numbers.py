"""The numbers of a matrix as one program of the point: coefficients, put where a table says; products of sparse
matrices as lists of pairs. The positions are made once for all points; no sparse matrix is made at a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.op import Combination, Reduction, Reshape, contraction
from ...programs.program import Program, several
from ...relations.base import freeze, seal
from ...relations.constructors import edges
from ...relations.index_sets import Seg
from ...relations.kinds import Gather, Range
from ...runtime import later, tuning
from ..instances import Instance
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry, sparse_size
from ..normal_form.network import Network, thinned
from ..normal_form.network_values import Spread
from .materialise import placed, places
from .matrix_patterns import LeafPlace, MatrixPattern, between, made

Run = Callable[[tuple[Any, ...]], Any]


class FlatPart(NamedTuple):
    """A flat slot of a program, how many numbers it has, and which of them are meant; None: all, as they lie."""

    slot: int
    size: int
    which: Any = None


class MatrixProgram(NamedTuple):
    """The positions of a matrix in CSR form, and point ↦ its numbers in that order."""

    indptr: Any
    indices: Any
    program: Program

    def matrix(self, shape: tuple[int, int]) -> Any:
        """The matrix as CSR without its numbers, to be copied: SciPy looks at the index arrays once."""
        import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

        none = np.zeros(len(self.indices))
        found = cast(Any, scipy_sparse).csr_array((none, self.indices, self.indptr), shape=shape)
        assert found.has_canonical_format
        found.data = None
        return found


class MatrixCode:
    """What maps of a family have in common: an empty matrix with its positions, and code for its numbers."""

    def __init__(self, empty: Any, run: Run) -> None:
        self._empty, self.run = empty, run

    def matrix(self, data: Any) -> Any:
        """The sparse matrix with these numbers, which shares the index arrays."""
        found = copy(self._empty)
        found.data = data
        return found


def coded(L: Any, dense: bool) -> MatrixCode | None:
    """Code for the numbers of maps of the family that L belongs to; None where they are computed step by step: where
    there is no family, or where there are many numbers."""
    source: Instance = L.instance
    if not source.point or L.dtype != float:
        return None
    sides = [tuple([leaf.shape for leaf in V.leaves]) for V in (L.codomain, L.domain)]
    return source.once(("coded", dense, *sides), lambda: _coded(source, L, dense))


def _coded(source: Instance, L: Any, dense: bool) -> MatrixCode | None:
    if L.shape[0] * L.shape[1] > tuning.CODED_NUMBERS if dense else 0 in L.shape:
        return None
    net = thinned(source.network)
    positions = sum([sparse_size(net.c, e) for e in net.entries])
    if positions > (min(tuning.CODED_NUMBERS, 4 * L.shape[0] * L.shape[1]) if dense else tuning.CODED_NUMBERS):
        return None
    if any([Spread(net.c, e, e.outer).halved is not None for e in net.entries]):
        return None  # of large products one half is computed
    rows, columns = [places(V.leaves) for V in (L.codomain, L.domain)]
    if dense:
        empty, program = None, dense_numbers(net, rows, columns) if net.simple and L.shape[0] * L.shape[1] else None
    else:
        found = stored_numbers(net, rows, columns)
        empty, program = (None, None) if found is None else (found.matrix(L.shape), found.program)
    code = None if program is None else _code(program, source.point)
    return None if code is None else MatrixCode(empty, code.run)


def _code(program: Program, point: tuple[Any, ...]) -> Any:
    """Machine code where the work is large and there are few steps, if it can be had: compiling takes a tenth of a
    second. It is decided at the first point: equal points give equal bits."""
    sizes = sum([math.prod(s) for s in program.shapes if not several(s)])
    if sizes > tuning.COMPILED_MATRIX_NUMBERS and len(program.ops) <= tuning.COMPILED_MATRIX_STEPS:
        code = later.coded(program, point, True)
        if code is not None and code.backend == "native":
            return code
    return later.coded(program, point, False)


def matrix_program(L: Any, lower: bool) -> MatrixProgram | None:
    """That of the sparse matrices of the family that a map belongs to; None as for `stored_numbers`."""
    rows, columns = [places(V.leaves) for V in (L.codomain, L.domain)]
    return stored_numbers(thinned(L.instance.network), rows, columns, lower) if L.dtype == float else None


def stored_numbers(
    net: Network, rows: list[LeafPlace], columns: list[LeafPlace], lower: bool = False
) -> MatrixProgram | None:
    """The sparse matrix of a network, or its `lower` triangle; None where steps have no entries, or products have too
    many pairs."""
    if net.kept:
        return None
    with net.c.lock:
        found = _simple(net, rows, columns) if net.simple else _multiplied(net, columns)
        if found is None:
            return None
        at, sources = found
        indptr, indices, keep = at.indptr, at.indices, None
        if lower:
            keep = lines(indptr) >= indices
            indptr, indices = np.append(0, np.cumsum(keep))[indptr].astype(indptr.dtype), indices[keep]
        slot = _gathered(net.c.program, *sources, at.size, keep)
    return MatrixProgram(seal(indptr), seal(indices), _calm(net, slot))


def lines(indptr: Any) -> Any:
    """The row of each position."""
    return cast(Any, np).repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def dense_numbers(net: Network, rows: list[LeafPlace], columns: list[LeafPlace]) -> Program:
    """point ↦ all numbers of the matrix of a network without hubs, row by row."""
    height, width = [sum([place.size for place in side]) for side in (rows, columns)]
    entries = placed(net, rows, columns)
    with net.c.lock:
        at = made(net.c, entries, height, width)
        flat = lines(at.indptr) * width + at.indices
        slot = _gathered(net.c.program, [_spread(net.c, e) for e, _, _ in entries], flat[at.slots], height * width)
    return _calm(net, slot)


def _calm(net: Network, slot: int) -> Program:
    """The program that ends here; what happens in branches not taken is nobody's business."""
    found = net.c.program.prune(net.params, [slot])
    found.calm = True
    return found


Sources = tuple[Sequence[FlatPart], Any]
"""FlatPart, and the place of each of them."""


def _simple(net: Network, rows: list[LeafPlace], columns: list[LeafPlace]) -> tuple[MatrixPattern, Sources]:
    height, width = [sum([place.size for place in side]) for side in (rows, columns)]
    entries = placed(net, rows, columns)
    at = made(net.c, entries, height, width)
    return at, ([_spread(net.c, e) for e, _, _ in entries], at.slots)


def _spread(c: Coefficients, e: Entry) -> FlatPart:
    """The coefficient of an entry on all its outer labels; along those it does not depend on it is read again."""
    have = {k for f in e.factors for k in f.labels}
    labels = tuple([k for k in e.outer if k in have])
    found = c.product(e.factors, labels).slot if e.factors else c.program.const(1.0)
    size, box = math.prod([c.sizes[k] for k in labels]), [c.sizes[k] for k in e.outer]
    slot = c.program.scale(e.scale, found)
    slot = slot if c.program.shapes[slot] == (size,) else c.program.step(Reshape((size,)), (slot,))
    if len(labels) == len(box):
        return FlatPart(slot, size)
    thin = np.arange(size).reshape([c.sizes[k] if k in have else 1 for k in e.outer])
    return FlatPart(slot, size, np.broadcast_to(thin, box).reshape(-1))


def _joined(program: Program, parts: Sequence[tuple[int, int]]) -> int:
    """Flat slots one after the other."""
    if len(parts) == 1:
        return parts[0][0]
    total, at = Seg(sum([n for _, n in parts])), 0
    relations: list[Range] = []
    for _, n in parts:
        relations.append(Range(Seg(n), total, at, 1, True))
        at += n
    return program.step(Reduction(tuple(relations), 0), [slot for slot, _ in parts])


def _gathered(program: Program, parts: Sequence[FlatPart], slots: Any, size: int, keep: Any = None) -> int:
    """FlatPart put into `size` places, added up where they meet; 0 where there are none. `keep`: a mask of places."""
    slots, chosen = np.asarray(slots, np.intp), slice(None)
    if keep is not None:
        chosen = keep[slots]
        slots, size = (np.cumsum(keep) - 1)[slots[chosen]], int(keep.sum())
    if not len(slots) or not size:
        return program.zeros((size,))
    joined: dict[int, tuple[int, int]] = {}  # where each slot begins among those put together, and its size
    sources: list[Any] = []
    n = 0
    for part in parts:
        start, _ = joined.setdefault(part.slot, (n, part.size))
        n = max(n, start + part.size)
        sources.append(start + (np.arange(part.size) if part.which is None else part.which))
    source = np.concatenate(sources)[chosen]
    table = np.full(size, -1, np.intp)
    table[slots[::-1]] = np.arange(len(slots) - 1, -1, -1)  # the first of those that meet
    again = np.ones(len(slots), bool)
    again[table[table >= 0]] = False
    pieces = [(slot, k) for slot, (_, k) in joined.items()]
    if (table < 0).any():
        pieces.append((program.zeros((1,)), 1))
    found = np.where(table < 0, n, source[table])
    n = sum([k for _, k in pieces])
    x = _joined(program, pieces)
    more = np.flatnonzero(again)
    if len(more) > len(slots) // 8:
        return program.step(Reduction((edges(Seg(n), Seg(size), source, slots),), 0), (x,))
    y = x if np.array_equal(found, np.arange(n)) else _taken(program, x, n, found)
    if not len(more):
        return y
    rest = program.step(Reduction((edges(Seg(n), Seg(size), source[more], slots[more]),), 0), (x,))
    return program.step(Combination((1.0, 1.0)), (y, rest))


def _taken(program: Program, x: int, n: int, index: Any) -> int:
    return program.step(Reduction((Gather(Seg(n), Seg(len(index)), freeze(index)),), 0), (x,))


class _Sparse(NamedTuple):
    """The pattern of what reaches a node, row by row, and the slot of its numbers; None: all are 1."""

    indptr: Any
    indices: Any
    slot: int | None


def _multiplied(net: Network, columns: list[LeafPlace]) -> tuple[MatrixPattern, Sources] | None:
    """The product of the sparse matrices between hubs: each number is a sum over pairs, listed once."""
    program, width = net.c.program, sum([place.size for place in columns])
    found: dict[int, _Sparse] = {}
    for slot, column in zip(net.inputs, columns, strict=True):
        steps = np.arange(column.size + 1)
        found[slot] = _Sparse(steps, column.start + steps[:-1], None)
    room = tuning.LISTED_PAIRS
    for to in net.order:
        flat: list[Any] = []
        parts: list[FlatPart] = []
        for a, es in net.blocks[to].items():
            p, X = between(net, to, a), found[a]
            mine = [_spread(net.c, e) for e in es]
            numbers = _gathered(program, mine, p.slots, p.size)
            counts = np.diff(X.indptr)[p.indices]
            pairs = int(counts.sum())
            room -= pairs
            if room < 0:
                return None
            left = np.repeat(np.arange(p.size), counts)
            ends = np.cumsum(counts)
            right = np.repeat(X.indptr[p.indices] - ends + counts, counts) + np.arange(pairs)
            flat.append(lines(p.indptr)[left] * width + X.indices[right])
            if X.slot is None:
                parts.append(FlatPart(numbers, p.size, left))
            else:
                strong = (0,) if any([f.strong for e in es for f in e.factors]) else ()
                both = _taken(program, numbers, p.size, left), _taken(program, X.slot, len(X.indices), right)
                parts.append(FlatPart(program.step(contraction(((0,), (0,)), (0,), {}, strong), both), pairs))
        height = math.prod(net.shapes[to])
        every, slots = np.unique(np.concatenate([np.zeros(0, np.intp), *flat]), return_inverse=True)
        indptr = np.searchsorted(every, np.arange(height + 1) * width)
        found[to] = _Sparse(indptr, every % max(width, 1), _gathered(program, parts, slots, len(every)))
    outs = [found[o] for o in net.outputs]
    parts = [FlatPart(x.slot, len(x.indices)) for x in outs if x.slot is not None and len(x.indices)]
    indices = np.concatenate([np.zeros(0, np.intp), *[x.indices for x in outs]])
    indptr = np.concatenate([np.zeros(1, np.intp), *[np.diff(x.indptr) for x in outs]]).cumsum()
    kind = np.int32 if max(len(indices), width, len(indptr)) < 2**31 else np.int64
    at = MatrixPattern(indptr.astype(kind), indices.astype(kind), None, None, len(indices))
    return at, (parts, np.arange(len(indices)))
