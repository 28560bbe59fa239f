"""A linear map common to all summands is applied once, to their sum: Σᵢ A·xᵢ = A·Σᵢ xᵢ.

    Σ over a label of A ⋆ x, the label in x alone    first the sum of x, then A
    k·(A ⋆ x) + l·(A ⋆ y)                            A ⋆ (k·x + l·y)

In a gradient the first is a map applied at every point and then summed over the points; it is one matrix product less.
Nothing gets more work.
"""

from __future__ import annotations

import math
from typing import Any

from ...ops.op import Combination, Contraction, contraction
from ...runtime import tuning
from ...runtime.stackless import quiet
from ..cost import flops
from ..program import Program
from ..rewriting import rewritten


@quiet
def collected(program: Program) -> Program:
    """The same function with common linear maps applied to sums; the program itself where there are none."""
    if not any([type(op) is Contraction and len(op.labels) == 2 for op in program.ops]):
        return program
    uses = program.uses()

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        if type(op) is Contraction and len(given) == 2:
            return _summed_first(small, op, given)
        if type(op) is Combination:
            return _common(small, op, given, [uses[a] == 1 for a in program.args[slot]])
        return None

    small = rewritten(program, rule, share=False)
    return program if small is program else small.pruned


def _summed_first(program: Program, op: Contraction, args: list[int]) -> int | None:
    """A contraction after the sums over labels that only one of its arguments has."""
    for i, labels in enumerate(op.labels):
        kept = tuple([k for k in labels if k in op.out or k in op.labels[1 - i]])
        large = math.prod(program.shapes[args[i]]) >= tuning.COLLECTED_NUMBERS
        if large and len(kept) < len(labels) == len(set(labels)):
            args[i] = program.step(contraction((labels,), kept), (args[i],))
            pair = (kept, op.labels[1]) if i == 0 else (op.labels[0], kept)
            rest = contraction(pair, op.out, dict(op.extra), op.strong)
            return _summed_first(program, rest, args) or program.step(rest, args)
    return None


def _common(program: Program, op: Combination, args: list[int], alone: list[bool]) -> int | None:
    """A sum of products with a common factor, as the product of that and a sum."""
    groups: dict[tuple[Contraction, int, int, Any], list[int]] = {}
    for i, (slot, single) in enumerate(zip(args, alone, strict=True)):
        inner = program.ops[slot]
        if single and type(inner) is Contraction and len(inner.labels) == 2:
            for which in (0, 1):
                shared, other = program.args[slot][which], program.args[slot][1 - which]
                groups.setdefault((inner, which, shared, program.shapes[other]), []).append(i)
    key = max(groups, key=lambda k: len(groups[k]), default=None)
    if key is None or len(groups[key]) < 2:
        return None
    inner, which, shared, theirs = key
    members = groups[key]
    rest = [i for i in range(len(args)) if i not in members]
    total = Combination(tuple([op.coefficients[i] for i in members]))
    after = Combination((1.0, *[op.coefficients[i] for i in rest]))
    given, first = [program.shapes[a] for a in args], args[members[0]]
    result, whole = program.shapes[first], op.shape_of(tuple(given))
    product = flops(inner, [program.shapes[a] for a in program.args[first]], result)
    work = flops(total, [theirs] * len(members), theirs) + flops(after, [result, *[given[i] for i in rest]], whole)
    if work >= flops(op, given, whole) + (len(members) - 1) * product:
        return None
    others = [program.args[args[i]][1 - which] for i in members]
    factor = program.step(total, others)
    made = program.step(inner, (shared, factor) if which == 0 else (factor, shared))
    return program.step(after, [made, *[args[i] for i in rest]]) if rest else made
