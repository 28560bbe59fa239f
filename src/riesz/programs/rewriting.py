"""A program written again, step by step: what passes have in common."""

from __future__ import annotations

from collections.abc import Callable

from .program import INPUT, Constant, Program

Rewriting = Callable[[Program, int, list[int]], int | None]
"""Writes one step of a program into another one, where its arguments are at the given slots; None: as it was."""


def rewritten(program: Program, rule: Rewriting, share: bool = True, place: list[int] | None = None) -> Program:
    """A program with each step as a rule writes it, the program itself where it writes none; inputs and constants stay.
    `place` is told where each slot is."""
    small, place, changed = Program(share), [] if place is None else place, False
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        given = [place[a] for a in args]
        found = None if op is INPUT or type(op) is Constant else rule(small, slot, given)
        changed = changed or found is not None
        place.append(small.take(program, slot, given) if found is None else found)
    small.inputs, small.outputs = [place[s] for s in program.inputs], [place[s] for s in program.outputs]
    return small if changed else program
