"""Less work in loops: steps of a body that give the same in every round are computed once, before it; a loop that runs
twice runs once.

A derivative needs the carries of each round, a value only the last: two loops that differ in what they keep are one
that keeps it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.stackless import Rule, quiet, solve
from ..program import INPUT, Constant, Program
from ..rewriting import rewritten
from ..sub_programs import Block, Call, Loop


@quiet
def hoisted(program: Program) -> Program:
    """The same function with invariant steps before its loops, from the innermost outwards; the program itself where
    nothing changes."""
    return solve((program,), _rule) if any([isinstance(op, Block) for op in program.ops]) else program


def _rule(program: Program) -> Rule:
    inside: dict[int, Call | Loop] = {}
    changed = False
    for slot, op in enumerate(program.ops):
        if isinstance(op, (Call, Loop)):
            parts: list[Program] = []
            for part in op.programs:
                parts.append((yield (part,)))
            if all([a is b for a, b in zip(parts, op.programs, strict=True)]):
                inside[slot] = op
            else:
                changed = True
                inside[slot] = Call(tuple(parts)) if isinstance(op, Call) else _with_body(op, parts[0], 0)
            changed = changed or any(_invariant(inside[slot]))
    twice = _twice(program, inside)
    if not changed and not twice:
        return program
    place: list[int] = []

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        block = inside.get(slot)
        if slot in twice:
            if twice[slot] != slot:
                return place[twice[slot]]
            assert isinstance(block, Loop)
            block = Loop(block.body, block.consts, block.carries, block.length, block.reverse, True, block.adjoint)
        if isinstance(block, Loop) and any(still := _invariant(block)):
            return _split(whole, block, given, still)
        return None if block is None else whole.step(block, given)

    return rewritten(program, rule, False, place)


def _twice(program: Program, inside: dict[int, Call | Loop]) -> dict[int, int]:
    """The first of the loops with the same body and arguments, for those of which there are several."""
    same: dict[Any, list[int]] = {}
    for slot, op in inside.items():
        if isinstance(op, Loop):
            same.setdefault((op.body, op.consts, op.carries, op.length, op.reverse, program.args[slot]), []).append(
                slot
            )
    return {slot: slots[0] for slots in same.values() if len(slots) > 1 for slot in slots}


def _with_body(loop: Loop, body: Program, more: int) -> Loop:
    return Loop(body, loop.consts + more, loop.carries, loop.length, loop.reverse, loop.keep, loop.adjoint)


def _invariant(block: Call | Loop) -> list[bool]:
    """Which steps of a loop's body give the same in every round."""
    if not isinstance(block, Loop) or block.length < 2:
        return []
    body = block.body
    moving = body.dependent(body.inputs[block.consts :])
    return [not moving[s] and op is not INPUT and type(op) is not Constant for s, op in enumerate(body.ops)]


def _split(program: Program, loop: Loop, args: Sequence[int], still: Sequence[bool]) -> int:
    """A loop after its invariant steps, whose results are further constants of it."""
    old, body = loop.body, Program(share=False)
    outside: dict[int, int] = dict(zip(old.inputs[: loop.consts], args, strict=False))
    read = {a for slot, given in enumerate(old.args) if not still[slot] for a in given} | set(old.outputs)
    border = [slot for slot in range(len(old.ops)) if still[slot] and slot in read]
    for slot, given in enumerate(old.args):
        if still[slot]:
            for a in given:
                if a not in outside:
                    outside[a] = program.const(old.ops[a].value)
            outside[slot] = program.take(old, slot, [outside[a] for a in given])
    order = [*old.inputs[: loop.consts], *border, *old.inputs[loop.consts :]]
    place = {slot: body.input(old.shapes[slot]) for slot in order}
    body.copy(old, [s for s in range(len(old.ops)) if s not in place and not still[s]], place)
    body.outputs = [place[slot] for slot in old.outputs]
    at = loop.consts
    return program.step(_with_body(loop, body, len(border)), [*args[:at], *[outside[s] for s in border], *args[at:]])
