"""A linear program on many vectors at once: every slot that depends on the inputs gets one leading axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ops import Combination, Contraction, Declared, Get, Reduction, contraction
from ..programs.program import INPUT, Constant, Program
from ..vectors import dense


def batched(program: Program, inputs: Sequence[Any], n: int) -> list[Any]:
    """The outputs of a linear program on inputs with a leading axis of length n."""
    slots: list[Any] = [None] * len(program.ops)
    moving = program.dependent(program.inputs)
    for slot, value in zip(program.inputs, inputs, strict=True):
        slots[slot] = value
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if op is INPUT:
            continue
        if type(op) is Constant:
            slots[slot] = op.value
            continue
        given = [slots[a] for a in args]
        if type(op) is float:
            slots[slot] = op * given[0]
        elif not moving[slot]:
            slots[slot] = op.run(*given)
        elif type(op) is Contraction:
            head = -1
            labels = tuple([(head, *ls) if moving[a] else ls for ls, a in zip(op.labels, args, strict=True)])
            slots[slot] = contraction(labels, (head, *op.out), dict(op.extra)).run(*given)
        elif type(op) is Reduction:
            slots[slot] = Reduction(op.relations, op.axis + 1).run(*given)
        elif type(op) is Combination:
            rank = len(program.shapes[slot])
            slots[slot] = op.run(*[_aligned(x, len(program.shapes[a]), rank) for x, a in zip(given, args, strict=True)])
        elif type(op) is Declared and op.form.batched:
            slots[slot] = op.run(*[x if moving[a] else np.broadcast_to(dense(x), (n, *program.shapes[a])) for x, a in zip(given, args, strict=True)])
        elif type(op) is Declared and n == 0:
            slots[slot] = tuple([np.zeros((0, *shape)) for shape in program.shapes[slot]])
        elif type(op) is Declared:
            columns = [op.run(*[_column(x, j) if moving[a] else x for x, a in zip(given, args, strict=True)]) for j in range(n)]
            slots[slot] = tuple([np.stack([np.asarray(dense(v)) for v in part]) for part in zip(*columns, strict=True)])
        else:
            assert isinstance(op, Get)
            slots[slot] = op.run(*given)
    return [dense(slots[s]) if moving[s] else np.broadcast_to(dense(slots[s]), (n, *program.shapes[s])) for s in program.outputs]


def _aligned(x: Any, own: int, rank: int) -> Any:
    if own == rank:
        return x
    array = np.asarray(dense(x))
    return array.reshape((array.shape[0], *(1,) * (rank - own), *array.shape[1:]))


def _column(x: Any, j: int) -> Any:
    part = dense(x)[j]
    return float(part) if np.ndim(part) == 0 else part
