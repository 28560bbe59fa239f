"""Linearity by construction: what a program must be for a LinearMap to be made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LinearityError
from ..ops.number_domains import NUMBERS
from ..ops.op import Combination, Contraction, Elementwise, Linear, Reduction
from ..ops.opaque import Declared, Discrete, Ruled, Select
from ..programs.program import INPUT, Constant, Program, applied
from ..runtime.stackless import quiet
from ..spaces.formal_vectors import dense


@quiet
def linear_program(program: Program) -> Program:
    """The program itself where every step is linear in the inputs; zeros and constant steps are cleared away; anything
    else is refused.

    In the result a slot is a constant or depends on the inputs, and sums have no constant summands.
    """
    moving = program.dependent(program.inputs)
    clean = True
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if not moving[slot]:
            clean = clean and type(op) is Constant
        elif type(op) is not float and op is not INPUT:
            live = sum([moving[a] for a in args])
            _check(op, args, moving, live)
            clean = clean and (live == len(args) or not isinstance(op, (Combination, Reduction)))
    clean = clean and all([moving[s] for s in program.outputs])
    return program if clean else specialised(program, ())


def _check(op: Any, args: tuple[int, ...], moving: bytearray, live: int) -> None:
    if isinstance(op, Elementwise):
        raise LinearityError(f"not a linear map: {op.primitive} is not linear")
    if isinstance(op, Contraction) and live > 1:
        raise LinearityError(f"not a linear map: a product of {live} factors that depend on the input")
    if isinstance(op, (Discrete, Select)) or (isinstance(op, Ruled) and (op.smooth.transpose is None or live > 1)):
        raise LinearityError(f"not a linear map: {op.title} of an argument that depends on the input")
    if isinstance(op, Declared):
        legs = [where for _, where in op.leg_slices() if any([moving[a] for a in args[where]])]
        if len(legs) > 1:
            raise LinearityError(f"not a linear map: {op.form.name} of two arguments that depend on the input")


@quiet
def specialised(program: Program, xs: Sequence[Any]) -> Program:
    """A program at numbers for its first inputs, linear in the others: what is known is carried out."""
    values: dict[int, Any] = dict(zip(program.inputs[: len(xs)], xs, strict=True))
    free = program.inputs[len(xs) :]
    moving = program.dependent(free)
    tape = Program(share=False)
    place: dict[int, int] = {s: tape.input(program.shapes[s]) for s in free}
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if op is INPUT:
            continue
        if not moving[slot]:
            values[slot] = applied(NUMBERS, op, [values[a] for a in args])
            continue
        live = tuple([i for i, a in enumerate(args) if moving[a]])
        if isinstance(op, Linear) and len(live) < len(args):
            for a in args:
                if not moving[a]:
                    _require_zero(values[a])
            op, args = op.only(live), tuple([args[i] for i in live])
        for a in args:
            if a not in place:
                place[a] = tape.const(values[a])
        place[slot] = applied(tape, op, [place[a] for a in args])
    for slot in program.outputs:
        if not moving[slot]:
            _require_zero(values[slot])
    tape.outputs = [place[s] if moving[s] else tape.zeros(program.shapes[s]) for s in program.outputs]
    return tape


def _require_zero(value: Any) -> None:
    if np.any(dense(value)):
        raise LinearityError("not a linear map: it adds a constant other than zero")
