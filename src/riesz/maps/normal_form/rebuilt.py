"""From the normal form back to programs: gather, contract, scatter for each entry, hub by hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ops.op import Combination, Op, Reduction, contraction
from ...programs.program import Program
from ...relations import Gather, Relation, named
from ...relations.base import freeze
from ...relations.index_algebra import Affine, IndexMap, Labels, along, flat_positions, labels_of
from ...relations.index_sets import box_set
from ...relations.spans import Span
from ...spaces.contraction import number
from .coefficients import Coefficients, Factor
from .entries import Entry
from .index_maps import distinct, whole
from .network import Network
from .network_values import Values

Shape = tuple[int, ...]


def rebuilt(v: Values) -> Program:
    """The linear program of a network at a point."""
    with v.net.c.lock:
        return _rebuilt(v)


def _rebuilt(v: Values) -> Program:
    net, program = v.net, Program()
    constants: dict[int, int] = {}

    def factor(slot: int) -> int:
        if slot not in constants:
            constants[slot] = program.const(number(v.slots[slot]) if not np.ndim(v.slots[slot]) else v.slots[slot])
        return constants[slot]

    return laid_out(net, program, factor)


def laid_out(net: Network, program: Program, factor: Any) -> Program:
    """The steps of a network, from new inputs of a program to its outputs; `factor` gives the slot of a factor."""
    place = {s: program.input(net.shapes[s]) for s in net.inputs}
    for node in net.order:
        if node in net.kept:
            kept = net.kept[node]
            place[node] = program.step(kept.op, [place[a] if moves else factor(a) for moves, a in kept.args])
            continue
        rows = [(e, a) for a, es in net.blocks.get(node, {}).items() for e in es]
        slots = [
            applied(
                net.c,
                e,
                program,
                place[a],
                (net.shapes[a], net.shapes[node]),
                factor,
                a in net.strong or a in net.guarded,
            )
            for e, a in rows
        ]
        if not slots:
            place[node] = program.zeros(net.shapes[node])
        else:
            place[node] = slots[0] if len(slots) == 1 else program.step(Combination((1.0,) * len(slots)), slots)
    program.outputs = [place[o] for o in net.outputs]
    return program


def applied(
    c: Coefficients,
    e: Entry,
    program: Program,
    x: int,
    shapes: tuple[Shape, Shape],
    factor: Any,
    strongly: bool = False,
) -> int:
    """An entry as steps of a program: gather, contract, scatter. `factor` gives the slot of a factor; `strongly`: the
    vector has strong zeros."""
    source, target = shapes
    x, labels = _read(c, e, program, x, source)
    out = distinct(e.out)
    direct = all([n == 1 or whole(m, n, c.sizes) for m, n in zip(e.out, target, strict=True)]) and len(out) == sum(
        [n != 1 for n in target]
    )
    wanted = axes_of(c, e.out, target) if direct else out
    factors = [Factor(factor(f.slot), f.labels, f.strong) for f in e.factors]
    have = {*labels, *[k for f in factors for k in f.labels]}
    extra = {k: c.sizes[k] for k in wanted if k not in have}
    strong = tuple([i for i, f in enumerate(factors) if f.strong] + ([len(factors)] if strongly and factors else []))
    op: Op = contraction((*[f.labels for f in factors], labels), wanted, extra, strong)
    y = program.scale(e.scale, program.step(op, [*[f.slot for f in factors], x]))
    return y if direct else program.step(Reduction((reading(c, e.out, target, out).converse,), 0), (y,))


def _read(c: Coefficients, e: Entry, program: Program, x: int, source: Shape) -> tuple[int, Labels]:
    inn = distinct(e.inn)
    if all([n == 1 or whole(m, n, c.sizes) for m, n in zip(e.inn, source, strict=True)]) and len(inn) == sum(
        [n != 1 for n in source]
    ):
        return x, axes_of(c, e.inn, source)
    return program.step(Reduction((reading(c, e.inn, source, inn),), 0), (x,)), inn


def axes_of(c: Coefficients, maps: Sequence[IndexMap], box: Shape) -> Labels:
    """A label for each axis that a map runs along; axes of size 1 have their own."""
    return tuple([labels_of(m)[0] if n != 1 else c.fresh(1) for m, n in zip(maps, box, strict=True)])


def reading(c: Coefficients, maps: Sequence[IndexMap], box: Shape, labels: Labels) -> Relation:
    """The relation that reads an array on a box at the maps, into an array on the labels."""
    sizes = tuple([c.sizes[k] for k in labels])
    names = {k: i for i, k in enumerate(labels)}
    source, target = box_set(box), box_set(sizes)
    affine = [m for m in maps if type(m) is Affine]
    if len(affine) == len(maps):
        left = tuple([Affine(m.offset, tuple(sorted([(names[k], s) for k, s in m.terms]))) for m in affine])
        return named(source, target, Span(sizes, left, tuple([along(i) for i in range(len(sizes))])))

    def make() -> Any:
        return freeze(
            np.ascontiguousarray(np.broadcast_to(flat_positions(maps, box, labels, c.sizes), sizes)).reshape(-1)
        )

    return Gather(source, target, c.tables.remembered(("flat", box, sizes), maps, labels, make))
