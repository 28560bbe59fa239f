"""The adjoint of a linear program: its steps in reverse, each op transposed, the wiring's relation converted   (§6).

(s_n • … • s_1)* = s_1* • … • s_n*, and red_R* = red_{Rᵀ} for the wiring: the cotangents of a slot read twice are added
up. Over numbers this computes; over symbols (a Program) it writes the adjoint program. A program that is not linear is
read back the same way, with `partials` for its primitives: each step's derivative at the point, transposed. A cotangent
may have places that nothing reaches; what it meets there leaves no trace (reached.py, Note [Strong] in ops/op.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..errors import TraceError
from ..ops.domain import Domain, Leaf
from ..ops.number_domains import NUMBERS
from ..ops.op import Combination, Contraction, Elementwise, Multilinear, Reduction, Shape, Single, product, unbroadcast
from ..ops.op_rules import OpRules
from ..ops.opaque import Declared, Discrete, Get, Put, Select, Strongly, Take
from ..programs.program import Program
from ..programs.sub_programs import Block, Call, Loop
from ..spaces.formal_vectors import Formal
from ..terms.primitives import UNKNOWN
from .reached import ZEROS, Reach, after, guarded, known_finite, of_step, through, union

TRANSPOSES = OpRules[Callable[..., None]]("calculus.reverse.TRANSPOSES")
"""Gives the arguments of a step their cotangents, from that of its result (of several, by number) and its reach."""
_NOTHING: Any = object()
"""What reaches a slot that was given no cotangent yet."""


def pullback(
    program: Program,
    flags: Sequence[int],
    seeds: Sequence[Leaf | None],
    domain: Domain[Leaf],
    value: Callable[[int], Leaf],
    strongly: bool = False,
    marks: list[bool] | None = None,
    within: Sequence[Leaf | None] | None = None,
    partials: Callable[[int], Sequence[Any]] | None = None,
    guards: bool = True,
) -> list[Leaf | None]:
    """The cotangents of all slots that `flags` marks as linear, from those of the outputs; `value` gives the
    coefficients.

    `strongly`: nothing reaches the zeros of the seeds; `within`: masks of the places of each that are reached.
    `marks`, if given, is told which inputs' cotangents have places that nothing reaches.
    `partials` gives the partial derivatives of a step that is not linear, None for arguments it does not depend on.
    Without `guards` everything is multiplied plainly: right where no nan comes out.
    """
    back = Backwards(program, flags, domain, value, partials, guards)
    for slot, seed, mask in zip(program.outputs, seeds, within or [None] * len(seeds), strict=True):
        if flags[slot] and seed is not None:
            back.give(slot, seed, ZEROS if strongly else None if mask is None else Reach(lambda _, mask=mask: mask))
    steps, args, whole, parts, reach = program.ops, program.args, back.whole, back.parts, back.reach
    for slot in range(len(steps) - 1, -1, -1):
        if not flags[slot] or not args[slot]:
            continue
        c = parts.pop(slot, None) or back.collect(slot)
        if c is not None:
            whole[slot] = None  # free as soon as it is used
            TRANSPOSES[steps[slot].__class__](back, steps[slot], slot, args[slot], c, reach[slot] if guards else None)
    found = [back.collect(slot) for slot in program.inputs]
    if marks is not None:
        marks.extend([reach[slot] is not None and reach[slot] is not _NOTHING for slot in program.inputs])
    return found


# Note [Back]: the adjoint of a product with a guarded vector needs no guard. What it makes of the places that the
# vector does not reach goes, on the way back, to places that are not reached either, until the selection or slice that
# left them out leaves it out again.
class Backwards:
    """A program on the way back: the cotangents that slots were given, and what reaches them."""

    def __init__(
        self, program: Program, flags: Sequence[int], domain: Domain[Any], value: Any, partials: Any, guards: bool
    ) -> None:
        self.shapes, self.flags, self.domain, self.value = program.shapes, flags, domain, value
        self.partials, self.guards = partials, guards
        self.reach: list[Any] = [_NOTHING] * len(program.ops)
        self.whole: list[Any] = [None] * len(program.ops)  # a cotangent, or a list of cotangents to be added
        self.pieces: dict[int, dict[Any, list[Any]]] = {}  # cotangents of parts of a slot
        self.parts: dict[int, dict[int, list[Any]]] = {}  # cotangents of each of several results

    def give(self, slot: int, cotangent: Any, reached: Reach | None = None) -> None:
        """One more cotangent of a slot."""
        if self.guards:
            before = self.reach[slot]
            if before is _NOTHING:
                self.reach[slot] = reached
            elif before is not None:
                shape = self.shapes[slot]
                self.reach[slot] = union(self.domain, (before, reached), (shape, shape), shape)
        held = self.whole[slot]
        if held is None:
            self.whole[slot] = cotangent
        elif type(held) is list:
            cast("list[Any]", held).append(cotangent)
        else:
            self.whole[slot] = [held, cotangent]

    def collect(self, slot: int) -> Any:
        """Everything a slot was given, added up: the converse of the wiring."""
        for (axis, _), pieces in self.pieces.pop(slot, {}).items() if self.pieces else ():
            relations, given, reaches, shapes = zip(*pieces, strict=True)
            op = Reduction(relations, axis)
            left = after(self.domain, op, reaches, shapes) if self.guards else None
            self.give(slot, self.domain.step(op, given), left)
        held = self.whole[slot]
        return self._sum(cast("list[Any]", held)) if type(held) is list else held

    def _sum(self, summands: list[Any]) -> Any:
        return summands[0] if len(summands) == 1 else self.domain.step(Combination((1.0,) * len(summands)), summands)

    def _times(self, op: Contraction, k: int, given: Sequence[Any], reached: Reach | None) -> Any:
        """A product with a cotangent, its argument k, of which some places may not be reached."""
        step, domain = self.domain.step, self.domain
        if reached is None or len(given) == 1 or all([known_finite(domain, x) for i, x in enumerate(given) if i != k]):
            return step(op, given)
        if reached is ZEROS:
            return step(op.strongly(k), given)
        mask = reached.mask
        return step(op, given) if mask is None else step(guarded(op, k), [*given, mask])

    def _leg(self, op: Any, k: int, given: Sequence[Any], shapes: Any, r: Reach | None) -> tuple[Any, Reach | None]:
        """A product with a cotangent, its argument k, and what it reaches."""
        left = None
        if self.guards and (r is not None or op.strong or op.repeats):
            left = through(self.domain, op, k, r, [(i, given[i]) for i in op.strong], shapes)
        return self._times(op, k, given, r), left

    def _scaled(self, k: float, c: Any, shape: Shape, reached: Reach | None) -> Any:
        if reached is None or math.isfinite(k):
            return self.domain.scale(k, c)
        return self._times(product((), shape), 1, (self.domain.const(k), c), reached)

    def _summed(self, c: Any, r: Reach | None, shape: Shape, target: Shape) -> tuple[Any, Reach | None]:
        """A cotangent summed over what broadcasting repeated, and what it reaches."""
        if shape == target:
            return c, r
        sums = unbroadcast(shape, target)
        return self.domain.step(sums, (c,)), None if r is None else after(self.domain, sums, [r], [shape])

    def _with(self, c: Any, k: int, given: tuple[int, ...]) -> Sequence[Any]:
        """The arguments of a transposed step: the cotangent in place k, the coefficients elsewhere."""
        if len(given) == 2:
            return (self.value(given[0]), c) if k else (c, self.value(given[1]))
        return [c if i == k else self.value(b) for i, b in enumerate(given)]

    # -- steps -------------------------------------------------------------------------------------------

    @TRANSPOSES("itself", float)
    def _scaling(self, op: float, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        self.give(given[0], self._scaled(op, c, self.shapes[slot], r), r)  # (k·)* = (k·)

    @TRANSPOSES("k · w for each argument", Combination)
    def _combination(self, op: Combination, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        for k, a in zip(op.coefficients, given, strict=True):  # (Σ kᵢ xᵢ)* = ⟨(kᵢ·)⟩
            if self.flags[a]:
                part, left = self._summed(c, r, self.shapes[slot], self.shapes[a])
                self.give(a, part if k == 1.0 else self._scaled(k, part, self.shapes[a], left), left)

    @TRANSPOSES("`transpose`, one for each argument", Contraction)
    def _contraction(self, op: Contraction, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        shapes = self.shapes
        read = tuple([shapes[a] for a in given])
        for k, a in enumerate(given):
            if not self.flags[a]:
                continue
            one, others, shown = op, given, read
            if op.guarded == k:  # see Note [Back]
                one, others, shown = op.unguarded, given[:-1], read[:-1]
            around = [*shown[:k], shapes[slot], *shown[k + 1 :]]
            found, left = self._leg(one.transpose(k, shown), k, self._with(c, k, others), around, r)
            if k == 0 and len(given) == 2 and given[1] == a and op.swapped is op:  # u ⋄ u, symmetric: 2·(u⋄)
                self.give(a, self.domain.scale(2.0, found), left)
                break
            self.give(a, found, left)

    @TRANSPOSES("products with `partials`", Elementwise, Select)
    def _sloped(self, op: Any, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        selects = type(op) is Select or op.primitive.rule.selects
        for a, d in zip(given, self.partials(slot), strict=True):
            if d is not None and self.flags[a]:
                if d is UNKNOWN:
                    raise unknown(op, given.index(a))
                self.give(a, *self._product(c, d, self.shapes[slot], self.shapes[a], selects, r))

    def _product(
        self, c: Any, d: Any, shape: Shape, target: Shape, selects: bool, r: Reach | None
    ) -> tuple[Any, Reach | None]:
        """d ⊛ c, summed over what broadcasting repeated, and what it reaches: the adjoint of (d ⊛)."""
        domain = self.domain
        if type(d) is float:
            if math.isfinite(d) or (r is None and not selects):
                return self._summed(domain.scale(d, c), r, shape, target)
            d = domain.const(d)
        factor = domain.shape(d)
        joint, back = _product_back(factor, target, (0,) if selects else ())
        c, r = self._summed(c, r, shape, joint)  # over axes that neither factor nor argument has
        return self._leg(back, 1, (d, c), (factor, joint), r)

    @TRANSPOSES("the converse of each relation", Reduction)
    def _reduction(self, op: Reduction, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        """[red_Rᵢ]* = ⟨red_{Rᵢᵀ}⟩; parts of one array meet in one step."""
        if type(c) is Formal and len(given) > 1:
            c = c.dense()  # multiplied out once, not once for each part
        for relation, a in zip(op.relations, given, strict=True):
            if self.flags[a]:
                back, held = relation.converse, self.pieces.setdefault(a, {})
                held.setdefault((op.axis, back.target), []).append((back, c, r, self.shapes[slot]))

    @TRANSPOSES("`turned`", Single)
    def _single(self, op: Single, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        """A map with an adjoint of its own."""
        source, target = self.shapes[slot], self.shapes[given[0]]
        turned = op.turned(target)
        left = None if r is None else of_step(self.domain, turned, [r], [source], target)
        self.give(given[0], self.domain.step(turned, (c,)), left)

    @TRANSPOSES("`transpose`, one for each argument", Multilinear)
    def _multilinear(self, op: Multilinear, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        read, left = tuple([self.shapes[b] for b in given]), None
        for k, a in enumerate(given):
            if self.flags[a]:
                turned, arguments = op.transpose(k, read), self._with(c, k, given)
                if self.guards:
                    left = of_step(self.domain, turned, [r], [self.shapes[slot]], self.shapes[a], arguments[1:])
                if r is not None and isinstance(turned, Multilinear) and not isinstance(turned, (Take, Put)):
                    turned = Strongly(turned, k)
                self.give(a, self.domain.step(turned, arguments), left)

    @TRANSPOSES("put beside the other results", Get)
    def _get(self, op: Get, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        self.parts.setdefault(given[0], {}).setdefault(op.at, []).append((c, r))

    @TRANSPOSES("none: no derivative", Discrete)
    def _discrete(self, op: Discrete, slot: int, given: tuple[int, ...], c: Any, r: Reach | None) -> None:
        raise AssertionError(f"not a linear step: {op}")

    def _gathered(self, parts: dict[int, list[Any]], which: Sequence[int], shapes: Any) -> list[Any]:
        """The cotangents of some results of a step with several, zeros included."""
        held = [[c for c, _ in parts.get(i, ())] for i in which]
        return [self._sum(cs) if cs else self.domain.zeros(shapes[i]) for i, cs in zip(which, held, strict=True)]

    @TRANSPOSES("a block of transposes, see `transpose_block`", Call, Loop)
    def _block(self, op: Block, slot: int, given: tuple[int, ...], parts: Any, r: Reach | None) -> None:
        """The transpose of a block is a block; zeros of its results that it knows to be strong are not reached."""
        from .block_rules import narrowed, transpose_block

        small, results, arguments = narrowed(op, list(parts))
        seeded = len(parts) == len(results) or self.domain is not NUMBERS  # in programs an unread carry costs no guards
        partly = (self.guards and not seeded) or any([r is not None for held in parts.values() for _, r in held])
        read, cotangents = [given[i] for i in arguments], self._gathered(parts, results, self.shapes[slot])
        turned = transpose_block(small, tuple([bool(self.flags[a]) for a in read]), partly)
        n, zeros = getattr(small, "carries", 0), [self.domain.zeros(shape) for shape in turned.zeros]
        fixed, rest = [[self.value(read[i]) for i in which] for which in (turned.fixed, turned.rest)]
        result = self.domain.step(turned.op, [*fixed, *cotangents[:n], *zeros, *rest, *cotangents[n:]])
        for j, (i, strong) in enumerate(zip(turned.targets, turned.strong, strict=True)):
            if self.flags[read[i]]:
                self.give(read[i], self.domain.step(Get(j), (result,)), ZEROS if strong else None)

    @TRANSPOSES("another leg of its form", Declared)
    def _declared(self, op: Declared, slot: int, given: tuple[int, ...], parts: Any, r: Reach | None) -> None:
        legs = {leg: given[where] for leg, where in op.leg_slices()}
        leg, moving = next((leg, slots) for leg, slots in legs.items() if any([self.flags[a] for a in slots]))
        turned = Declared(op.form, leg)
        arguments: list[Any] = []
        for source in turned.sources:
            if source == op.target:
                arguments.extend(self._gathered(parts, range(len(self.shapes[slot])), self.shapes[slot]))
            else:
                arguments.extend([self.value(a) for a in legs[source]])
        result = self.domain.step(turned, arguments)
        for i, a in enumerate(moving):
            if self.flags[a]:
                self.give(a, self.domain.step(Get(i), (result,)))


def unknown(op: Any, at: int) -> TraceError:
    """What to say of a derivative nobody knows."""
    where = f" in its argument {at}" if op.primitive.rule.arity > 1 else ""
    more = "; keep that argument fixed" if where else ""
    return TraceError(f"the derivative of {op.primitive.name}{where} is not known{more}")


@lru_cache(maxsize=4096)
def _product_back(factor: Shape, target: Shape, strong: tuple[int, ...]) -> tuple[Shape, Any]:
    """The shape of a product with a factor, and the adjoint of that product."""
    return np.broadcast_shapes(factor, target), product(factor, target, strong).transpose(1, (factor, target))
