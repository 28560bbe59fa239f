"""What does not depend on the arguments is computed once, products with numbers become scalings, and equal steps one.

Arrays are computed beforehand where that does not take more memory than what they come from.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Contraction, contraction
from ...relations.index_sets import Array
from ...runtime import tuning
from ...spaces.formal_vectors import Formal, FormalProduct, weak
from ..program import Constant, Program, several
from ..rewriting import rewritten
from ..sub_programs import Block


def folded(program: Program) -> Program:
    """The same function, with fewer steps."""

    def rule(small: Program, slot: int, given: list[int]) -> int:
        op = program.ops[slot]
        known = _computed(small, op, given, program.shapes[slot])
        return small.const(known) if known is not None else _written(small, op, given)

    return rewritten(program, rule).pruned


def _computed(program: Program, op: Any, args: list[int], shape: Any) -> Any:
    """The value of a step whose arguments are all constants; None for others."""
    if not all([type(program.ops[a]) is Constant for a in args]) or isinstance(op, Block) or several(shape):
        return None
    values = [program.ops[a].value for a in args]
    alone = type(op) is Contraction and len(args) == 1 and set(op.labels[0]) <= set(op.out)
    if not (alone and type(weak(values[0])) is float):  # a number repeated stays one number
        given = sum([math.prod(program.shapes[a]) for a in args])
        if math.prod(shape) > max(tuning.FOLDED_NUMBERS, given):
            return None
        if given > tuning.FOLDED_REPEATED and all([type(weak(v)) is float for v in values]):
            return None  # one number each, which would be written out
    try:
        with np.errstate(all="ignore"):
            found = op * values[0] if type(op) is float else op.run(*values)
    except Exception:  # it is raised again when the code runs
        return None
    return _repeated(found) if all([type(weak(v)) is float for v in values]) else found


def _repeated(found: Array) -> Any:
    """An array with one number everywhere as that number, which is of any type."""
    if type(found) is not np.ndarray or found.dtype != float or not found.size:
        return found
    first = float(found.flat[0])
    return Formal(found.shape, (FormalProduct(first, ()),)) if (found == first).all() else found


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
