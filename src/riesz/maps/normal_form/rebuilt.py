"""From the normal form back to programs: gather, contract, scatter for each entry, hub by hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ...ops.op import Combination, Reduction, contraction
from ...programs.program import Program
from ...relations.index_algebra import IndexMap, Labels, labels_of
from ...spaces.contraction import number
from .coefficients import Coefficients, Factor
from .index_maps import distinct, whole
from .network import Network
from .network_values import Values

Shape = tuple[int, ...]
Target = tuple[float, Sequence[IndexMap], Shape]  # a scale, index maps, and the box they are of


def rebuilt(v: Values) -> Program:
    """The linear program of a network at a point."""
    program = Program()

    @cache
    def factor(slot: int) -> int:
        value = v.slots[slot]
        return program.const(value if np.ndim(value) else number(value))

    with v.net.c.lock:
        return laid_out(v.net, program, factor)


def laid_out(net: Network, program: Program, factor: Callable[[int], int]) -> Program:
    """The steps of a network, from new inputs of a program to its outputs; `factor` gives the slot of a factor."""
    place = {s: program.input(net.shapes[s]) for s in net.inputs}
    for node in net.order:
        if node in net.kept:
            kept = net.kept[node]
            place[node] = program.step(kept.op, [place[a] if moves else factor(a) for moves, a in kept.args])
            continue
        slots: list[int] = []
        for a, es in net.blocks.get(node, {}).items():
            strongly = a in net.strong or a in net.guarded
            for e in es:
                x, labels = _read(net.c, program, place[a], e.inn, net.shapes[a])
                operands = [*[f._replace(slot=factor(f.slot)) for f in e.factors], Factor(x, labels, strongly)]
                slots.append(placed(net.c, program, operands, (e.scale, e.out, net.shapes[node])))
        place[node] = added(program, slots, net.shapes[node])
    program.outputs = [place[o] for o in net.outputs]
    return program


def added(program: Program, slots: list[int], shape: Shape) -> int:
    """The sum of some slots."""
    if not slots:
        return program.zeros(shape)
    return slots[0] if len(slots) == 1 else program.step(Combination((1.0,) * len(slots)), slots)


def placed(c: Coefficients, program: Program, operands: Sequence[Factor], at: Target, diagonals: bool = False) -> int:
    """A product, contracted and scattered to where the maps say. `diagonals`: a label on two axes is no scatter."""
    scale, maps, box = at
    labels, wanted = distinct(maps), _axes(c, maps, box, diagonals)
    out = labels if wanted is None else wanted
    have = {k for f in operands for k in f.labels}
    strong = tuple([i for i, f in enumerate(operands) if f.strong]) if len(operands) > 1 else ()
    extra = {k: c.sizes[k] for k in out if k not in have}
    op = contraction(tuple([f.labels for f in operands]), out, extra, strong)
    y = program.scale(scale, program.step(op, [f.slot for f in operands]))
    return y if wanted is not None else program.step(Reduction((c.reading(maps, box, labels).converse,), 0), (y,))


def _read(c: Coefficients, program: Program, x: int, maps: Sequence[IndexMap], box: Shape) -> tuple[int, Labels]:
    """An array at the positions that the maps say, and the labels of its axes."""
    axes = _axes(c, maps, box)
    if axes is not None:
        return x, axes
    labels = distinct(maps)
    return program.step(Reduction((c.reading(maps, box, labels),), 0), (x,)), labels


def _axes(c: Coefficients, maps: Sequence[IndexMap], box: Shape, diagonals: bool = False) -> Labels | None:
    """A label for each axis, if each map runs along one; axes of size 1 have their own."""
    if not all([n == 1 or whole(m, n, c.sizes) for m, n in zip(maps, box, strict=True)]):
        return None
    if not diagonals and len(distinct(maps)) != sum([n != 1 for n in box]):
        return None
    return tuple([labels_of(m)[0] if n != 1 else c.fresh(1) for m, n in zip(maps, box, strict=True)])
