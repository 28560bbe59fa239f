"""What does not depend on the arguments is computed once, products with numbers become scalings, and equal steps one.

Arrays are computed beforehand where that does not take more memory than what they come from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ops import Contraction, contraction
from ..programs.blocks import Block
from ..programs.program import INPUT, Constant, Program
from ..vectors import weak

SMALL = 1 << 12
"""Constants of so many numbers are always computed beforehand."""


def folded(program: Program) -> Program:
    """The same function, with fewer steps."""
    small = Program()
    place: list[int] = []
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        given = [place[a] for a in args]
        if op is INPUT or type(op) is Constant:
            place.append(small.take(program, slot, given))
        else:
            known = _computed(small, op, given, program.shapes[slot])
            place.append(small.const(known) if known is not None else _written(small, op, given))
    return small.prune(small.inputs, [place[s] for s in program.outputs])


def _computed(program: Program, op: Any, args: list[int], shape: Any) -> Any:
    """The value of a step whose arguments are all constants; None for others."""
    if not all([type(program.ops[a]) is Constant for a in args]) or isinstance(op, Block) or (shape and type(shape[0]) is tuple):
        return None
    values = [program.ops[a].value for a in args]
    repeated = type(op) is Contraction and len(args) == 1 and type(weak(values[0])) is float and set(op.labels[0]) <= set(op.out)  # stays one number
    if not repeated and math.prod(shape) > max(SMALL, sum([math.prod(program.shapes[a]) for a in args])):
        return None
    try:
        with np.errstate(all="ignore"):
            return op * values[0] if type(op) is float else op.run(*values)
    except Exception:  # it is raised again when the code runs
        return None


def _written(program: Program, op: Any, args: list[int]) -> int:
    if type(op) is float:
        return program.scale(op, args[0])
    if type(op) is Contraction and len(args) == 2 and not op.extra and len(set(op.out)) == len(op.out):
        for i in (0, 1):  # k · x, with k a number or one repeated along axes of x
            k = weak(program.ops[args[i]].value) if type(program.ops[args[i]]) is Constant else None
            if type(k) is float and op.labels[1 - i] == op.out and set(op.labels[i]) <= set(op.out):
                if not op.strong:
                    return program.scale(k, args[1 - i])
                if math.isfinite(k) and k != 0.0:  # zeros are zeros; x may be a mask, which a scaling would leave one
                    return program.step(contraction(op.labels, op.out), args)
    return program.step(op, args)
