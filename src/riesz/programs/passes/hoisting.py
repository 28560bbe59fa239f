"""Less work in loops: steps of a body that give the same in every round are computed once, before it; a loop that runs
twice runs once.

Calls with a derivative of their own are written out: once derivatives are taken, what they do is all that counts.

A derivative needs the carries of each round, a value only the last: two loops that differ in what they keep are one
that keeps it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ops.opaque import Get
from ...runtime.stackless import Rule, quiet, solve
from ..program import INPUT, Constant, Program, outputs
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
        if isinstance(op, (Call, Loop)) and "alone" not in op.known:  # its function has the steps already
            parts: list[Program] = []
            for part in op.programs:
                parts.append((yield (part,)))
            if any([a is not b for a, b in zip(parts, op.programs, strict=True)]):
                changes = {"branches": tuple(parts)} if isinstance(op, Call) else {"body": parts[0]}
                changed, op = True, op.replaced(**changes)
            inside[slot], changed = op, changed or any(_invariant(op))
    same: dict[Any, list[int]] = {}  # loops with the same body and arguments
    for slot, op in inside.items():
        if isinstance(op, Loop):
            same.setdefault((op.replaced(keep=True, adjoint=False), program.args[slot]), []).append(slot)
    twice = {slot: slots[0] for slots in same.values() if len(slots) > 1 for slot in slots}
    if not changed and not twice:
        return program
    place: list[int] = []

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        block = inside.get(slot)
        if slot in twice and twice[slot] != slot:
            return place[twice[slot]]
        if isinstance(block, Loop):
            block = block.replaced(keep=True) if slot in twice else block
            if any(still := _invariant(block)):
                return _split(whole, block, given, still)
        return None if block is None else whole.step(block, given)

    return rewritten(program, rule, False, place)


def _invariant(block: Call | Loop) -> list[bool]:
    """Which steps of a loop's body give the same in every round."""
    if not isinstance(block, Loop) or block.length < 2:
        return []
    body = block.body
    moving = body.dependent(body.inputs[block.consts :])
    return [not moving[s] and op is not INPUT and type(op) is not Constant for s, op in enumerate(body.ops)]


def _split(program: Program, loop: Loop, args: Sequence[int], still: Sequence[bool]) -> int:
    """A loop after its invariant steps, whose results are further constants of it."""
    old, at = loop.body, loop.consts
    outside: dict[int, int] = dict(zip(old.inputs[:at], args, strict=False))
    used = {a for s, f in enumerate(still) if f for a in old.args[s]}
    first = [s for s, op in enumerate(old.ops) if still[s] or (type(op) is Constant and s in used)]
    program.copy(old, first, outside)
    read = {a for slot, given in enumerate(old.args) if not still[slot] for a in given} | set(old.outputs)
    border = [slot for slot, f in enumerate(still) if f and slot in read]
    body = old.prune([*old.inputs[:at], *border, *old.inputs[at:]], old.outputs)
    given = [*args[:at], *[outside[s] for s in border], *args[at:]]
    return program.step(loop.replaced(body=body, consts=at + len(border)), given)


@quiet
def written_out(program: Program) -> Program:
    """The same function with the steps of such calls in their place, also inside loops and branches; the program itself
    where there are none."""
    return solve((program,), _opened) if any([isinstance(op, Block) for op in program.ops]) else program


def _opened(program: Program) -> Rule:
    inside: dict[int, Call | Loop] = {}
    for slot, op in enumerate(program.ops):
        if isinstance(op, (Call, Loop)):
            parts: list[Program] = []
            for part in op.programs:
                parts.append((yield (part,)))
            if any([a is not b for a, b in zip(parts, op.programs, strict=True)]) or getattr(op, "rule", None):
                changes = {"branches": tuple(parts)} if isinstance(op, Call) else {"body": parts[0]}
                inside[slot] = op.replaced(**changes)
    results: dict[int, list[int]] = {}

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        op, block = program.ops[slot], inside.get(slot)
        if isinstance(block, Call) and block.rule is not None:
            results[slot] = outputs(block.branches[0], whole, given)
            return given[0]
        if type(op) is Get and program.args[slot][0] in results:
            return results[program.args[slot][0]][op.at]
        return None if block is None else whole.step(block, given)

    return rewritten(program, rule) if inside else program
