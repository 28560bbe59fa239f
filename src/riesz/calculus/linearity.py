"""Linearity by construction: what a program must be for a LinearMap to be made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LinearityError
from ..ops.number_domains import NUMBERS
from ..ops.op import Combination, Contraction, Elementwise, Linear, Reduction
from ..ops.opaque import Declared, Discrete, Get, Ruled, Select
from ..programs.program import INPUT, Constant, Program, applied
from ..programs.sub_programs import Block, Loop
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


def moves_linearly(program: Program, moving: Sequence[bool], affine: bool = False) -> list[bool]:
    """Which outputs depend on the inputs that move; refused where they are not linear in these (or affine), inside
    blocks too."""
    flags = bytearray(len(program.ops))
    parts: dict[int, list[bool]] = {}
    for slot, moves in zip(program.inputs, moving, strict=True):
        flags[slot] = moves
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        given = [bool(flags[a]) for a in args]
        if op is INPUT or not any(given):
            continue
        if isinstance(op, Block):
            parts[slot] = _block_moves(op, given)
            flags[slot] = any(parts[slot])
        elif isinstance(op, Get) and args[0] in parts:
            flags[slot] = parts[args[0]][op.at]
        else:
            _check(op, args, flags, sum(given))
            for a in args if isinstance(op, Linear) and not affine else ():
                fixed = program.ops[a]
                if not flags[a] and not (isinstance(fixed, Constant) and not np.any(dense(fixed.value))):
                    raise LinearityError("not a linear map: it adds what does not depend on the input")
            flags[slot] = True
    return [bool(flags[s]) for s in program.outputs]


def _block_moves(op: Any, given: list[bool]) -> list[bool]:
    """The same of a call or loop. A carry moves if it moves at first or after any round."""
    if not isinstance(op, Loop):
        if any(given[: op.fixed]):
            raise LinearityError("not a linear map: a choice that depends on the input")
        found = [moves_linearly(branch, given[op.fixed :]) for branch in op.branches]
        return [any(column) for column in zip(*found, strict=True)]
    c, m = op.consts, op.carries
    while True:
        after = moves_linearly(op.body, given, affine=True)
        grown = [was or now for was, now in zip(given[c : c + m], after[:m], strict=True)]
        if grown == given[c : c + m]:
            return [*grown, *moves_linearly(op.body, given)[m:], *(grown if op.keep else ())]
        given = [*given[:c], *grown, *given[c + m :]]


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
