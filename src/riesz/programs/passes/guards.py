"""Programs without guards (Note [Strong] in ops/op.py): for array code, which looks for nan at the end, and for people
to read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, contraction
from ...ops.opaque import Select
from ..program import Constant, Program
from ..rewriting import rewritten


def _guarded(op: Any) -> bool:
    return type(op) is Contraction and op.guarded >= 0


def unguarded(program: Program) -> tuple[Program, list[int]] | None:
    """The same function without guards and without strong zeros of numbers, and the outputs to be looked at: it is
    right unless there is a nan in one of them. None where there is nothing to leave out, or a nan might get lost on the
    way to an output."""
    kept = dict[int, tuple[int, ...]]()
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if type(op) is Contraction and op.strong:
            masks = tuple([i for i in op.strong if _truths(program, op, args, i)])
            if masks != op.strong:
                kept[slot] = masks
    reached = _reached_outputs(program, kept) if kept else None
    if reached is None:
        return None

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        if slot not in kept:
            return None
        op: Contraction = program.ops[slot]
        n = len(given) - _guarded(op)
        return small.step(contraction(op.labels[:n], op.out, dict(op.extra), kept[slot]), given[:n])

    return rewritten(program, rule).pruned, reached


def _reached_outputs(program: Program, born: Iterable[int]) -> list[int] | None:
    """The outputs that a nan born in some slots reaches; None where it might get lost."""
    moved = bytearray(len(program.ops))
    for slot in born:
        moved[slot] = 1
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if not moved[slot] and any([moved[a] for a in args]):
            if not _hands_on(op):
                return None
            moved[slot] = 1
    return [i for i, s in enumerate(program.outputs) if moved[s]]


def without_guards(program: Program) -> Program:
    """The same function for people to read: a guard only says what 0 · ∞ is. No unused steps."""

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op: Any = program.ops[slot]
        return small.step(op.unguarded, given[:-1]) if _guarded(op) else None

    return rewritten(program, rule).pruned


def _truths(program: Program, op: Contraction, args: tuple[int, ...], i: int) -> bool:
    """Whether a strong argument selects by truth values, other than as a guard."""
    inner = program.ops[args[i]]
    floats = type(inner) is Elementwise or (type(inner) is Constant and np.asarray(inner.value).dtype.kind == "f")
    return not floats and not (_guarded(op) and i == len(args) - 1)


_FORGET = ("power", "pow", "hypot", "larger", "larger_number", "smaller_number", "sign", "inverse")
"""Primitives that may give a number at nan."""


def _hands_on(op: Any) -> bool:
    """Whether a nan that a step is given is in its result, or was left out because something chose another number."""
    if type(op) is Elementwise:
        return not op.primitive.rule.selects and op.primitive.name not in _FORGET
    return type(op) in (float, Combination, Contraction, Reduction, Reshape, Cast, Select)
