"""Guards out of the way: a product with a guard is computed plainly, and its mask only if a nan comes out (Note
[Strong] in ops/op.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from ...ops.number_domains import NUMBERS
from ...ops.op import Cast, Combination, Contraction, Elementwise, Op, Reduction, Reshape, Shape, contraction
from ...ops.opaque import Select
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import dense
from ..axis.along import AXES, mixing
from ..cost import FLOPS, flops
from ..program import INPUT, Constant, Program, outputs
from ..rewriting import rewritten


class Deferred(Op):
    """A guarded product of its first arguments, with a program that makes the mask of the others."""

    op: Contraction
    masks: Program
    made_to_run = True

    @property
    def title(self) -> str:
        return self.op.title

    @cached_property
    def plain(self) -> Contraction:
        """The product without its guard and without strong zeros: the same numbers unless there is a nan among them."""
        return contraction(self.op.labels[:-1], self.op.out, dict(self.op.extra))

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return self.plain.result(shapes[: len(self.plain.labels)])

    def run(self, *xs: Any) -> Any:
        with quietly():
            found = self.plain.run(*[dense(x) for x in xs[: len(self.plain.labels)]])
            return self.exact(*xs) if has_nan(dense(found)) else found

    def exact(self, *xs: Any) -> Any:
        """The product with its guard."""
        n = len(self.plain.labels)
        with quietly():
            return dense(self.op.run(*xs[:n], outputs(self.masks, NUMBERS, xs[n:])[0]))


AXES("refused: mixes positions", Deferred)(mixing)
FLOPS("that of the product without its guard", Deferred)(
    lambda op, shapes, shape: flops(op.plain, shapes[: len(op.plain.labels)], shape)
)


def has_nan(x: Any) -> bool:
    """Whether there is a nan among some numbers.

    >>> has_nan(np.ones(3)), has_nan(np.array([1.0, np.inf])), has_nan(np.array([1.0, np.nan]))
    (False, False, True)
    """
    size = x.size if type(x) is np.ndarray else np.size(x)
    if size > 1 << 13:  # BLAS would wake its threads for a product that takes a few microseconds
        total: Any = x.min()  # a nan, where there is one
    else:
        total = cast(Any, np.vdot)(x, x)  # squares: no two infinities cancel
    return bool(total != total)


def deferred(program: Program) -> Program:
    """The same function with masks computed when they are wanted; the program itself where there are no guards."""
    guards = [slot for slot, op in enumerate(program.ops) if _guarded(op)]
    if not guards:
        return program
    eager = _eager(program)
    found: dict[int, tuple[list[int], list[int]]] = {}  # the steps of each mask, and what these read
    for slot in guards:
        mask = program.args[slot][-1]
        steps = program.ancestors([mask], eager)
        if len(steps) > tuning.DEFERRED_MASK_STEPS:  # it is computed in any case, and all that it is made of
            eager.update(steps)
            steps = []
        read = [a for s in steps for a in program.args[s] if a in eager] if steps else [mask]
        found[slot] = steps, list(dict.fromkeys(read))
    place: list[int] = []

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        if slot not in eager or slot not in found:
            return None if slot in eager else -1
        steps, read = found[slot]
        masks = Program()
        made = dict(zip(read, masks.like(read, program), strict=True))
        masks.copy(program, steps, made)
        masks.outputs = [made[program.args[slot][-1]]]
        return small.step(Deferred(program.ops[slot], masks), [*given[:-1], *[place[a] for a in read]])

    return rewritten(program, rule, False, place)


def _guarded(op: Any) -> bool:
    return type(op) is Contraction and op.guarded >= 0


def _eager(program: Program) -> set[int]:
    """The inputs, the constants, and the steps whose results are read by others than guards, directly or not."""
    eager = set(program.outputs)
    for slot in range(len(program.ops) - 1, -1, -1):
        op, args = program.ops[slot], program.args[slot]
        if op is INPUT or type(op) is Constant:
            eager.add(slot)
        elif slot in eager:
            eager.update(args[:-1] if _guarded(op) else args)
    return eager


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
    reached = reached_outputs(program, list(kept), ()) if kept else None
    if reached is None:
        return None

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        if slot not in kept:
            return None
        op: Contraction = program.ops[slot]
        n = len(given) - _guarded(op)
        return small.step(contraction(op.labels[:n], op.out, dict(op.extra), kept[slot]), given[:n])

    return rewritten(program, rule).pruned, reached


def reached_outputs(program: Program, born: Sequence[int], carries: Sequence[int]) -> list[int] | None:
    """The outputs that a nan born in some slots, or among carries, reaches; None where it might get lost."""
    moved = bytearray(len(program.ops))
    for slot in (*born, *carries):
        moved[slot] = 1
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if not moved[slot] and any([moved[a] for a in args]):
            if not _hands_on(op):
                return None
            moved[slot] = 1
    return [i for i, s in enumerate(program.outputs) if moved[s]]


def without_guards(program: Program) -> Program:
    """The same function for people to read: a guard only says what 0 · ∞ is. No unused steps."""
    if not any(map(_guarded, program.ops)):
        return program.pruned

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
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
