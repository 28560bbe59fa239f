"""Slices, stacks and sums by relations, of arrays in memory: loops with fixed strides, or by tables of positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops.op import Reduction, Shape
from .statements import Pick, Position, SetNumber
from .writer import Arrayed

if TYPE_CHECKING:
    from .scope import Scope


def pieces(scope: Scope, op: Reduction, xs: list[Any], shape: Shape) -> Arrayed:
    """Σ red_R(x), in memory."""
    box = op.relations[0].target.box or ()
    size = math.prod(box)
    lead, trail = math.prod(shape[: op.axis]), math.prod(shape[op.axis + len(box) :])
    found = scope.writer.placed(shape, scope.writer.buffer(math.prod(shape)))
    assert found.place is not None
    buffer, _ = found.place
    covers = op.covers or (len(xs) == 1 and _once(op.relations[0], size))
    if not covers:
        scope.store(found, np.broadcast_to(np.intp(scope.graph.fixed(0.0)), shape) if math.prod(shape) <= 16 else
                    Arrayed(shape, lambda at: 0.0))  # fmt: skip
    for relation, x in zip(op.relations, xs, strict=True):
        memory = scope.stored(x).place
        assert memory is not None
        source, base = memory
        rows, columns, times = [np.asarray(p) for p in relation.pairs()]
        if not len(rows):
            continue
        with scope.nest((lead, len(rows), trail)) as (i, j, k):
            row, column = _position(scope, rows, j), _position(scope, columns, j)
            value = scope.writer.read(source, base.plus(i, relation.source.size * trail).plus(row, trail).plus(k))
            if not (times == 1).all():
                factor = float(times[0]) if (times == times[0]).all() else scope.writer.read(
                    scope.writer.fixed(np.asarray(times, float)), j)  # fmt: skip
                value = scope.writer.assigned("multiply", (factor, value))
            at = Position().plus(i, size * trail).plus(column, trail).plus(k)
            scope.writer.emit(SetNumber(buffer, at, value, adds=not covers))
    return found


def _once(relation: Any, size: int) -> bool:
    """Whether every place of the target is reached just once."""
    _, columns, _ = relation.pairs()
    return len(columns) == size and len(np.unique(columns)) == size


def _position(scope: Scope, numbers: Any, j: Position) -> Position:
    """The j-th of some positions: in steps, or from a table."""
    steps = np.diff(numbers)
    if not len(steps) or (steps == steps[0]).all():
        return Position(int(numbers[0])).plus(j, int(steps[0]) if len(steps) else 0)
    name = scope.writer.fresh("n")
    scope.writer.emit(Pick(name, scope.writer.fixed(np.asarray(numbers, np.int64)), j))
    return Position(0, ((name, 1),))
