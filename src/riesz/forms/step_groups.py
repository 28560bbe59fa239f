"""Which steps of a program are read as one, and whether it is a loop over places."""

from __future__ import annotations

from typing import Any

from ..ops.op import Combination, Reduction
from ..programs.program import Program

PLACED = 8000
"""Programs with more steps are cut, even if they are loops over the entries of arrays."""


def inside_sums(program: Program) -> list[bool]:
    """Which steps are sums that only another sum of the same shape reads: s = s + t, again and again, is one sum."""
    uses, found = program.uses(), [False] * len(program.ops)
    for slot, op in enumerate(program.ops):
        for a in program.args[slot] if type(op) is Combination else ():
            alike = type(program.ops[a]) is Combination and program.shapes[a] == program.shapes[slot]
            found[a] = alike and uses[a] == 1 and a not in program.outputs
    return found


def opened(program: Program, slot: int, inside: list[bool]) -> tuple[Any, tuple[int, ...]]:
    """A step and its arguments, with the terms of the sums in it."""
    op, args = program.ops[slot], program.args[slot]
    if type(op) is not Combination or not any([inside[a] for a in args]):
        return op, args
    terms: list[tuple[float, int]] = []
    waiting = list(zip(op.coefficients, args, strict=True))[::-1]
    while waiting:
        k, a = waiting.pop()
        inner = program.ops[a]
        if inside[a] and isinstance(inner, Combination):
            waiting += [(k * c, b) for c, b in zip(inner.coefficients, program.args[a], strict=True)][::-1]
        else:
            terms.append((k, a))
    return Combination(tuple([k for k, _ in terms])), tuple([a for _, a in terms])


def of_places(program: Program) -> bool:
    """Whether many steps take one place of an array, as a loop over its entries or rows does."""
    if len(program.ops) > PLACED:
        return False
    ones = [
        op
        for op in program.ops
        if isinstance(op, Reduction) and 1 in (op.relations[0].target.size, op.relations[0].source.size)
    ]
    return 12 * len(ones) > len(program.ops)
