"""A small program as expressions of single numbers: every component of every slot is a node of `Scalars`, equal ones
once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape
from ...ops.opaque import Discrete, Select
from ...programs.axis.along import ComponentNodes, kind_of
from ...programs.axis.scalars import ZERO, TooMany
from ...programs.program import INPUT, Constant, Program
from ...spaces.formal_vectors import weak

FLOAT = np.dtype(float)
KNOWN = (float, Combination, Contraction, Elementwise, Reduction, Reshape, Select, Cast, Discrete)
"""The steps that have a form on single numbers."""


class WholeNodes(ComponentNodes):
    """Nodes of whole slots, without a long axis: arrays of node numbers in the shapes of the slots."""

    def __init__(self, program: Program, most: int) -> None:
        super().__init__(program, {}, (), 1, most, exact=True)

    def unrolled(self, op: Any, xs: list[Any], shape: Shape) -> Any:
        """The nodes of a step."""
        self.graph.room(math.prod(shape))
        return self._reduced(op, xs, shape) if type(op) is Reduction else self._step(op, xs, shape)

    def _reduced(self, op: Reduction, xs: list[Any], shape: Shape) -> Any:
        box = op.relations[0].target.box or ()
        lead, trail = math.prod(shape[: op.axis]), math.prod(shape[op.axis + len(box) :])
        total = np.full((lead, math.prod(box), trail), ZERO)
        for relation, x in zip(op.relations, xs, strict=True):
            self.graph.room(relation.count)
            wide = np.asarray(x).reshape(lead, relation.source.size, trail)
            for r, c, t in zip(*[a.tolist() for a in relation.pairs()], strict=True):
                for i, j in np.ndindex(lead, trail):
                    total[i, c, j] = self.graph.combination((1.0, float(t)), (int(total[i, c, j]), int(wide[i, r, j])))
        return total.reshape(shape)

    def _constants(self, value: Any, shape: Shape) -> Any:
        """Numbers as nodes; all of them Python floats, so that arithmetic of numbers is carried out at once."""
        self.graph.room(math.prod(shape))
        numbers = np.broadcast_to(np.asarray(value), shape).reshape(-1).tolist()
        return np.array([self.graph.fixed(x) for x in numbers], np.intp).reshape(shape)


class Unrolled(WholeNodes):
    """The nodes of all slots."""

    def __init__(self, program: Program, most: int) -> None:
        super().__init__(program, most)
        for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
            if op is not INPUT and type(op) is not Constant:
                self._small[slot] = self.unrolled(op, [self._small[a] for a in args], program.shapes[slot])
            else:
                self.small(slot)


def kinds(program: Program, given: Sequence[Any]) -> list[Any]:
    """The types of all slots; `float` for numbers that take any other's type, None where it is not known."""
    found: list[Any] = [None] * len(program.ops)
    for slot, kind in zip(program.inputs, given, strict=True):
        found[slot] = kind
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if type(op) is Constant:
            value = weak(op.value)
            found[slot] = float if type(value) is float else np.asarray(value).dtype
        elif type(op) in KNOWN and all([found[a] is not None for a in args]) and getattr(op, "shaped", None) is None:
            kind = kind_of(op, [found[a] for a in args])
            found[slot] = float if kind == FLOAT and not program.shapes[slot] else kind  # float64 numbers are floats
    return found


def unrolled(program: Program, kinds: Sequence[Any], most: int) -> Unrolled | None:
    """The program on single numbers; None if it has more than `most` operations, or numbers other than float64."""
    for slot, (op, kind) in enumerate(zip(program.ops, kinds, strict=True)):
        truth = kind is not None and kind == np.dtype(bool) and (type(op) is Discrete or type(op) is Constant)
        if kind is None or not (kind == FLOAT or truth) or math.prod(program.shapes[slot]) > 4 * most:
            return None
    try:
        return Unrolled(program, most)
    except TooMany:
        return None
