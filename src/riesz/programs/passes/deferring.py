"""Guards out of the way: a product with a guard is computed plainly, and its mask only if a nan comes out (Note
[Strong] in ops/op.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

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
        from ...ops.number_domains import NUMBERS

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
    total: Any = cast(Any, np.vdot)(x, x)  # squares: no two infinities cancel
    return bool(total != total)


def deferred(program: Program) -> Program:
    """The same function with masks computed when they are wanted; the program itself where there are no guards."""
    guards = [slot for slot, op in enumerate(program.ops) if type(op) is Contraction and op.guarded >= 0]
    if not guards:
        return program
    lazy = _lazy(program)
    found: dict[int, tuple[list[int], list[int]]] = {}
    for slot in guards:
        mask = program.args[slot][-1]
        steps, read = _ancestors(program, mask, lazy)
        if len(steps) > tuning.DEFERRED_MASK_STEPS:
            _wanted(program, mask, lazy)
            steps, read = [], [mask]
        found[slot] = steps, read
    place: list[int] = []

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        if lazy[slot]:
            return -1
        if slot not in found:
            return None
        steps, read = found[slot]
        masks = _masks(program, steps, read, program.args[slot][-1])
        return small.step(Deferred(program.ops[slot], masks), [*given[:-1], *[place[a] for a in read]])

    return rewritten(program, rule, False, place)


def _lazy(program: Program) -> bytearray:
    """The steps whose results are read by guards only, directly or not."""
    lazy = bytearray(b"\x01") * len(program.ops)
    for slot in program.outputs:
        lazy[slot] = 0
    for slot in range(len(program.ops) - 1, -1, -1):
        op, args = program.ops[slot], program.args[slot]
        if op is INPUT or type(op) is Constant:
            lazy[slot] = 0
        if not lazy[slot]:
            guard = type(op) is Contraction and op.guarded >= 0
            for a in args[:-1] if guard else args:
                lazy[a] = 0
    return lazy


def _ancestors(program: Program, mask: int, lazy: bytearray) -> tuple[list[int], list[int]]:
    """The lazy steps that a mask is made of, and the other slots that these read; it stops where there are too many."""
    steps, read, stack = set[int](), dict[int, None](), [mask]
    while stack and len(steps) <= tuning.DEFERRED_MASK_STEPS:
        slot = stack.pop()
        if not lazy[slot]:
            read[slot] = None
        elif slot not in steps:
            steps.add(slot)
            stack.extend(program.args[slot])
    return sorted(steps), list(read)


def _wanted(program: Program, mask: int, lazy: bytearray) -> None:
    """A mask is computed in any case, and all that it is made of."""
    stack = [mask]
    while stack:
        slot = stack.pop()
        if lazy[slot]:
            lazy[slot] = 0
            stack.extend(program.args[slot])


def _masks(program: Program, steps: list[int], read: list[int], mask: int) -> Program:
    small = Program()
    place = {slot: small.input(program.shapes[slot]) for slot in read}
    small.copy(program, steps, place)
    small.outputs = [place[mask]]
    return small


_KEEP = (float, Combination, Contraction, Reduction, Reshape, Cast, Select)
"""Steps that hand on a nan, or leave it out because something chose another number."""


def unguarded(program: Program) -> tuple[Program, list[int]] | None:
    """The same function without guards and without strong zeros of numbers, and the outputs to be looked at: it is
    right unless there is a nan in one of them. None where there is nothing to leave out, or a nan might get lost on the
    way to an output."""
    moved, kept = bytearray(len(program.ops)), dict[int, tuple[int, ...]]()
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        after = any([moved[a] for a in args])
        if type(op) is Contraction and op.strong:
            masks = tuple([i for i in op.strong if _truths(program, op, args, i)])
            if masks != op.strong:
                kept[slot], after = masks, True
        elif after and not _hands_on(op):
            return None
        moved[slot] = after
    if not kept:
        return None

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        if slot not in kept:
            return None
        op: Contraction = program.ops[slot]
        n = len(given) - (op.guarded >= 0)
        return small.step(contraction(op.labels[:n], op.out, dict(op.extra), kept[slot]), given[:n])

    small = rewritten(program, rule)
    return small.prune(small.inputs, small.outputs), [i for i, s in enumerate(program.outputs) if moved[s]]


def reached_outputs(program: Program, born: Sequence[int], carries: Sequence[int]) -> list[int] | None:
    """The outputs that a nan born in some slots, or among the carries of a loop, reaches; None where it might get lost
    on the way."""
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
    """The same function as far as coefficients are finite, for people to read: a guard only says what 0 · ∞ is; no
    unused steps."""
    if not any([type(op) is Contraction and op.guarded >= 0 for op in program.ops]):
        return program.prune(program.inputs, program.outputs)

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        return small.step(op.unguarded, given[:-1]) if type(op) is Contraction and op.guarded >= 0 else None

    small = rewritten(program, rule)
    return small.prune(small.inputs, small.outputs)


def _truths(program: Program, op: Contraction, args: tuple[int, ...], i: int) -> bool:
    """Whether a strong argument selects by truth values, other than as a guard: what it does not choose need not be
    0."""
    inner = program.ops[args[i]]
    floats = type(inner) is Elementwise or (type(inner) is Constant and np.asarray(inner.value).dtype.kind == "f")
    return not floats and not (op.guarded >= 0 and i == len(args) - 1)


def _hands_on(op: Any) -> bool:
    """Whether a nan that a step is given is in its result, or was left out because something chose another number."""
    return type(op) in _KEEP or (type(op) is Elementwise and not _forgets(op))


def _forgets(op: Elementwise) -> bool:
    """Whether a primitive may give a number at nan."""
    return op.primitive.rule.selects or op.primitive.name in (
        "power",
        "pow",
        "hypot",
        "larger",
        "larger_number",
        "smaller_number",
        "sign",
        "inverse",
    )
