"""Matrices and diagonals as programs of the point: from the entries of a network, for every point at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...calculus.batching import mapped
from ...ops.op import Reduction, Reshape, contraction
from ...programs.program import Program, outputs
from ...relations.base import freeze
from ...relations.index_algebra import IndexMap
from ...relations.index_sets import Seg
from ...relations.kinds import Function, Range
from ..instances import Instance
from ..instances import turned as turned_instance
from ..normal_form.coefficients import Factor
from ..normal_form.entries import Entry, diagonal_entries, sparse_size
from ..normal_form.network import Network, multiplied
from ..normal_form.rebuilt import added, laid_out, placed
from .matrix_patterns import LeafPlace, MatrixPattern, made
from .parts import Part

Shape = tuple[int, ...]


def matrix(source: Instance) -> Program:
    """point ↦ the matrix, components flattened row-major, in order."""

    def make() -> Program:
        net = multiplied(source.network) if source.fixed else None
        program = source.program
        columns = [program.shapes[s] for s in program.inputs[len(source.point) :]]
        rows = [program.shapes[s] for s in program.outputs]
        size = sum([math.prod(r) for r in rows]) * sum([math.prod(c) for c in columns])
        if net is not None and sum([sparse_size(net.c, e) for e in net.entries]) <= 4 * size:
            return _from_entries(source, net, rows, columns)
        return _from_columns(source, rows, columns)

    return source.once("matrix", make)


def normal(source: Instance) -> Program | None:
    """The program of the normal form, of point and vector; None where it is longer than the program itself."""

    def make() -> Program | None:
        net = source.network
        with net.c.lock:
            still = [a for k in net.kept.values() for moves, a in k.args if not moves]
            program = _Written(source, net, net.entries, still)
            found = laid_out(net, program.whole, program.factors.__getitem__)
        return found if len(found) <= len(source.program) else None

    return source.once("normal", make)


def diagonal(source: Instance) -> Program | None:
    """point ↦ the diagonal of the matrix, flat; None where there are no entries to read it from."""

    def make() -> Program | None:
        net = multiplied(source.network) if source.fixed else None
        if net is None or [net.shapes[s] for s in net.inputs] != [net.shapes[s] for s in net.outputs]:
            return None
        shapes = [net.shapes[s] for s in net.inputs]
        with net.c.lock:
            cuts = [
                [(d, d.out) for e in net.block(i, i) for d in diagonal_entries(net.c, e, box)]
                for i, box in enumerate(shapes)
            ]
            program = _Written(source, net, [d for part in cuts for d, _ in part])
            totals = [program.sum(part, box) for part, box in zip(cuts, shapes, strict=True)]
            sizes = [math.prod(box) for box in shapes]
            parts = [program.flat(y, (n,)) for y, n in zip(totals, sizes, strict=True)]
        return program.closed(program.joined(parts, 0, sizes))

    return source.once("diagonal", make)


def sparse_numbers(source: Instance) -> tuple[Program, MatrixPattern] | None:
    """point ↦ the numbers of the sparse matrix, in the order of its pattern; None where positions are computed from the
    point or there are no entries to read them from."""

    def make() -> tuple[Program, MatrixPattern] | None:
        net = multiplied(source.network) if source.fixed else None
        if net is None:
            return None
        sides: list[list[LeafPlace]] = []
        for slots in (net.outputs, net.inputs):
            shapes = [net.shapes[s] for s in slots]
            starts = np.cumsum([0, *[math.prod(s) for s in shapes]]).tolist()
            sides.append([LeafPlace(at, s) for at, s in zip(starts, shapes, strict=False)])
        rows, columns = sides
        with net.c.lock:
            pairs = [(i, j) for i in range(len(rows)) for j in range(len(columns))]
            entries = [(e, rows[i], columns[j]) for i, j in pairs for e in net.block(i, j)]
            heights = [sum([p.size for p in side]) for side in sides]
            found = made(net.c, entries, *heights)
            program = _Written(source, net, [e for e, _, _ in entries])
            parts = [program.flat(y, (math.prod(program.whole.shapes[y]),)) for y in map(program.spread, entries)]
            if not parts:
                return program.closed(program.whole.zeros((0,))), found
            joined = program.joined(parts, 0, [program.whole.shapes[y][0] for y in parts])
            into = Function(Seg(len(found.slots)), Seg(found.size), freeze(np.asarray(found.slots, np.intp)))
            return program.closed(program.whole.step(Reduction((into,), 0), (joined,))), found

    return source.once("sparse numbers", make)


def part_program(source: Instance, net: Network, part: Part) -> Program:
    """point ↦ an array made of entries of a network."""
    with net.c.lock:
        program = _Written(source, net, [e for e, _ in part.entries])
        return program.closed(program.sum(part.entries, part.box))


def _from_entries(source: Instance, net: Network, rows: Sequence[Shape], columns: Sequence[Shape]) -> Program:
    heights, widths = [math.prod(r) for r in rows], [math.prod(c) for c in columns]
    with net.c.lock:
        program = _Written(source, net, net.entries)
        bands: list[int] = []
        for i, row in enumerate(rows):
            blocks: list[int] = []
            for j, column in enumerate(columns):
                total = program.sum([(e, (*e.out, *e.inn)) for e in net.block(i, j)], (*row, *column))
                blocks.append(program.flat(total, (heights[i], widths[j])))
            bands.append(program.joined(blocks, 1, widths))
    return program.closed(program.joined(bands, 0, heights))


def _from_columns(source: Instance, rows: Sequence[Shape], columns: Sequence[Shape]) -> Program:
    """The map on the basis, at once."""
    if sum([math.prod(r) for r in rows]) < sum([math.prod(c) for c in columns]):
        other = _from_columns(turned_instance(source), columns, rows)
        turned = Program()
        slots = [turned.input(other.shapes[s]) for s in other.inputs]
        turned.outputs = [turned.step(contraction(((0, 1),), (1, 0)), outputs(other, turned, slots))]
        return turned
    program, fixed = _Written(source), len(source.point)
    n, at = sum([math.prod(c) for c in columns]), 0
    basis: list[int] = []
    for column in columns:
        width = math.prod(column)
        basis.append(program.whole.const(np.eye(n, width, -at).reshape((n, *column))))
        at += width
    found = mapped(source.program, program.whole, [*program.point, *basis], [False] * fixed + [True] * len(basis), n)
    heights = [math.prod(r) for r in rows]
    flat = [program.flat(y, (n, h)) for y, h in zip(found, heights, strict=True)]
    return program.closed(program.whole.step(contraction(((0, 1),), (1, 0)), (program.joined(flat, 1, heights),)))


class _Written:
    """A program of the point that is being written: the coefficients of a network, and sums of entries."""

    def __init__(
        self, source: Instance, net: Network | None = None, entries: Sequence[Entry] = (), more: Sequence[int] = ()
    ) -> None:
        self.whole = Program()
        self.point = [self.whole.input(source.program.shapes[s]) for s in source.program.inputs[: len(source.point)]]
        self._net = net
        wanted = sorted({f.slot for e in entries for f in e.factors} | set(more))
        inner = net.c.program.prune(net.params, wanted) if net is not None else Program()
        self.factors = dict(zip(wanted, outputs(inner, self.whole, self.point), strict=True)) if wanted else {}

    def closed(self, slot: int) -> Program:
        """The program that ends here."""
        return self.whole.prune(self.point, [slot])

    def flat(self, slot: int, shape: Shape) -> int:
        """The same numbers in another shape."""
        return slot if self.whole.shapes[slot] == shape else self.whole.step(Reshape(shape), (slot,))

    def joined(self, slots: Sequence[int], axis: int, sizes: Sequence[int]) -> int:
        """Arrays one after the other."""
        if len(slots) == 1:
            return slots[0]
        total, at = Seg(sum(sizes)), 0
        parts: list[Range] = []
        for n in sizes:
            parts.append(Range(Seg(n), total, at, 1, True))
            at += n
        return self.whole.step(Reduction(tuple(parts), axis), slots)

    def spread(self, placed_entry: tuple[Entry, Any, Any]) -> int:
        """The numbers of an entry on all its outer labels."""
        assert self._net is not None
        e, c = placed_entry[0], self._net.c
        operands = [f._replace(slot=self.factors[f.slot]) for f in e.factors] or [Factor(self.whole.const(1.0), ())]
        have = {k for f in operands for k in f.labels}
        strong = tuple([i for i, f in enumerate(operands) if f.strong]) if len(operands) > 1 else ()
        extra = {k: c.sizes[k] for k in e.outer if k not in have}
        op = contraction(tuple([f.labels for f in operands]), e.outer, extra, strong)
        return self.whole.scale(e.scale, self.whole.step(op, [f.slot for f in operands]))

    def sum(self, entries: Sequence[tuple[Entry, Sequence[IndexMap]]], box: Shape) -> int:
        """Entries added up in an array; each with the maps to its axes."""
        assert self._net is not None
        slots: list[int] = []
        for e, maps in entries:
            operands = [f._replace(slot=self.factors[f.slot]) for f in e.factors] or [Factor(self.whole.const(1.0), ())]
            slots.append(placed(self._net.c, self.whole, operands, (e.scale, maps, box), diagonals=True))
        return added(self.whole, slots, box)
