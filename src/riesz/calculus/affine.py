"""Affine interpretation f^[1]: the value of a function and its derivative, together   (§5, Figure 1).

A leaf of this domain is a pair of a value and a wire. A wire is a linear map from the domain of f, given by the step of
the linear program that ends in it; `None` is the zero map. The chain rule and the parallel rule are the interpreter;
the other rules are here. Over numbers the linear program has numbers for coefficients; over symbols its coefficients
are slots of the same program. A step with several results has a dict of wires, one per result that moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic

import numpy as np

from ..errors import LinearityError
from ..ops.domain import Leaf, SlopedDomain
from ..ops.op import Combination, Contraction, Elementwise, Linear, Multilinear, Op, Reduction, broadcast, product
from ..ops.op_rules import OpRules
from ..ops.opaque import NOT, Declared, Discrete, Get, Ruled, Select, Strongly, Take
from ..programs.program import INPUT, Constant, Program, applied, run, several
from ..programs.sub_programs import Block, Call, Loop
from ..relations import Gather, freeze
from ..relations.index_sets import Seg, box_set
from ..runtime import later
from ..spaces.formal_vectors import dense
from ..terms.primitives import UNKNOWN, divide, reciprocal
from .reached import ZEROS, Reach, guarded, known_finite, of_step, through
from .reverse import unknown

_NOT_LINEAR = "a derivative must be linear in the differentials; this one"


class Pair(Generic[Leaf]):
    """(f(x), f'(x)) for one leaf."""

    __slots__ = ("value", "wire")

    def __init__(self, value: Leaf, wire: Any) -> None:
        self.value = value
        self.wire = wire


Differential = Callable[["AffineDomain[Any]", Any, Any, list[Any], Sequence["Pair[Any]"], tuple[int, ...]], Any]
DIFFERENTIALS = OpRules[Differential]("calculus.affine.DIFFERENTIALS")
"""The wire of a step, from its value, the values and pairs of its arguments, and which of them move."""


class AffineDomain(Generic[Leaf]):
    """The domain of pairs over a base domain; wires are slots of `tape`, and `lift` brings a base value there as a
    coefficient.

    Without `guards` it is not looked which places wires reach: right where all coefficients are finite.
    """

    def __init__(
        self, base: SlopedDomain[Leaf], tape: Program, lift: Callable[[Any], int], guards: bool = True
    ) -> None:
        self.base, self.hushes = base, base.hushes
        self.tape, self.lift, self.guards = tape, lift, guards
        self.reach: dict[int, Reach] = {}  # of wires that do not reach everywhere (reached.py)

    def const(self, value: Any) -> Pair[Leaf]:
        """K_w^[1](x) = (w, 0)."""
        return Pair(self.base.const(value), None)

    def zeros(self, shape: tuple[int, ...]) -> Pair[Leaf]:
        """The zero vector, a constant."""
        return Pair(self.base.zeros(shape), None)

    def shape(self, pair: Pair[Leaf]) -> Any:
        """The shape of a leaf."""
        return self.base.shape(pair.value)

    def scale(self, k: float, x: Pair[Leaf]) -> Pair[Leaf]:
        """(k·), a linear map."""
        return Pair(self.base.scale(k, x.value), None if x.wire is None else self._scaled(k, x.wire))

    def step(self, op: Op, args: Sequence[Pair[Leaf]]) -> Pair[Leaf]:
        """One operation, by its kind."""
        if type(op) is Elementwise:
            return self._primitive(op, args)
        values = [a.value for a in args]
        live = tuple([i for i, a in enumerate(args) if a.wire is not None])
        if not live:
            return Pair(self.base.step(op, values), None)  # a constant function of x
        if isinstance(op, Block):
            from .block_rules import affine_block

            return affine_block(self, op, args, live)
        y = self.base.step(op, values)
        return Pair(y, DIFFERENTIALS[type(op)](self, op, y, values, args, live))

    @DIFFERENTIALS("p'(x) · dx, see `_primitive`", Elementwise)
    @DIFFERENTIALS("programs inside, see `affine_block`", Call, Loop)
    def _wire(self, op: Any, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]) -> Any:
        return self.step(op, args).wire

    DIFFERENTIALS("the same of dx", float)(lambda self, op, y, xs, args, live: self._scaled(op, args[0].wire))
    DIFFERENTIALS("that of one result", Get)(lambda self, op, y, xs, args, live: args[0].wire.get(op.at))
    DIFFERENTIALS("0: constant between jumps", Discrete)(lambda self, op, y, xs, args, live: None)

    @DIFFERENTIALS("the same of dx", Linear)
    def _linear(self, op: Linear, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]) -> int:
        """h^[1](x) = (h(x), h)."""
        small: Any = op if len(live) == len(args) else op.only(live)
        wires = [args[i].wire for i in live]
        partly = self.reach and type(small) is Combination and any([w in self.reach for w in wires])
        if partly and not all([math.isfinite(k) for k in small.coefficients]):
            scaled = [self._scaled(k, w) for k, w in zip(small.coefficients, wires, strict=True)]
            return self._wide(self._sum(scaled), self.base.shape(y))
        return self._wide(self._reached(self.tape.step(small, wires), small, wires), self.base.shape(y))

    def _reached(self, wire: int, op: Any, wires: Sequence[int], more: Sequence[Any] = ()) -> int:
        """A wire, and what is known of the places it reaches, from the step that it ends."""
        if not self.guards:
            return wire
        known, shapes = [self.reach.get(w) for w in wires], [self.tape.shape(w) for w in wires]
        return self._knowing(wire, of_step(self.base, op, known, shapes, self.tape.shape(wire), more))

    def part(self, wire: int, at: int, partly: bool) -> int:
        """One of the results of a block; `partly`: nothing reaches its zeros."""
        return self._knowing(self.tape.step(Get(at), (wire,)), ZEROS if partly and self.guards else None)

    def wire(self, pair: Pair[Leaf]) -> int:
        """The wire of a leaf, zeros where it does not move."""
        return self.tape.zeros(self.base.shape(pair.value)) if pair.wire is None else pair.wire

    def _knowing(self, wire: int, found: Reach | None) -> int:
        if found is not None:
            self.reach[wire] = found
        return wire

    def _scaled(self, k: float, wire: int) -> int:
        """(k·) of a wire."""
        r = self.reach.get(wire)
        if r is None:
            return self.tape.scale(k, wire)
        if math.isfinite(k):
            return self._knowing(self.tape.scale(k, wire), r)
        return self._knowing(self._product(product((), self.tape.shape(wire)), [self.base.const(k)], 1, wire), r)

    def _product(self, op: Contraction, values: Sequence[Any], k: int, wire: int) -> int:
        """A product with a wire, its argument k, of which some places may not be reached, and other `values`."""
        slots = [self.lift(v) for v in values]
        slots.insert(k, wire)
        r = self.reach.get(wire)
        if r is ZEROS:
            return self.tape.step(op.strongly(k), slots)
        mask = None if r is None or all([known_finite(self.base, v) for v in values]) else r.mask
        return self.tape.step(op, slots) if mask is None else self.tape.step(guarded(op, k), [*slots, self.lift(mask)])

    def _wide(self, wire: int, shape: tuple[int, ...]) -> int:
        """A wire in the shape of the value, where broadcasting made that larger."""
        if self.tape.shape(wire) == shape:
            return wire
        op = broadcast(self.tape.shape(wire), shape)
        return self._reached(self.tape.step(op, (wire,)), op, [wire])

    @DIFFERENTIALS("linear in each argument: summed", Multilinear)
    def _multilinear(
        self, op: Multilinear, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]
    ) -> int:
        """⋄^[1](u, v) = (u ⋄ v, (u⋄) • π₁ + (⋄v) • π₀), for any number of arguments."""
        if type(op) is Take and not op.batch and isinstance(values[1], (np.ndarray, np.integer)):
            gather = _gather(op, values[1], self.base.shape(values[0]))
            return self._reached(self.tape.step(gather, (args[0].wire,)), gather, [args[0].wire])
        square = len(live) == 2 == len(args) and args[0].wire == args[1].wire and values[0] is values[1]
        if square and getattr(op, "swapped", None) is op:
            return self._scaled(2.0, self._leg(op, values, 1, args[1].wire))  # u ⋄ u, symmetric: 2·(u⋄)
        return self._sum([self._leg(op, values, i, args[i].wire) for i in live])

    def _leg(self, op: Multilinear, values: list[Any], k: int, wire: int) -> int:
        """A multilinear step as a function of its argument k."""
        if not self.guards:
            return self.tape.step(op, [wire if j == k else self.lift(v) for j, v in enumerate(values)])
        others = [v for j, v in enumerate(values) if j != k]
        if type(op) is Contraction:
            found = self._product(op, others, k, wire)
            masks = [(i, values[i]) for i in op.strong if i != k]
            shapes = [self.tape.shape(wire) if j == k else self.base.shape(v) for j, v in enumerate(values)]
            return self._knowing(found, through(self.base, op, k, self.reach.get(wire), masks, shapes))
        slots = [wire if j == k else self.lift(v) for j, v in enumerate(values)]
        return self._reached(self.tape.step(op, slots), op, [wire], others)

    def _primitive(self, op: Elementwise, args: Sequence[Pair[Leaf]]) -> Pair[Leaf]:
        """p^[1](x) = (p(x), (p'(x)·)), at every index: Δ of the family."""
        values = [a.value for a in args]
        if all([a.wire is None for a in args]):
            return Pair(self.base.step(op, values), None)
        y, partials = self.base.linearized(op, values)
        strong, wires = (0,) if op.primitive.rule.selects else (), list[int]()
        for i, (d, a) in enumerate(zip(partials, args, strict=True)):
            if a.wire is not None and d is not None:
                if d is UNKNOWN:
                    raise unknown(op, i)
                wires.append(self._times(d, a.wire, strong))
        if len(args) == 1 or not wires:
            return Pair(y, wires[0] if wires else None)
        return Pair(y, self._wide(self._sum(wires), self.base.shape(y)))

    def _times(self, partial: Any, wire: int, strong: tuple[int, ...]) -> int:
        """partial ⊛ wire; `strong`: it selects."""
        if type(partial) is float:
            if not strong or math.isfinite(partial):
                return self._scaled(partial, wire)
            partial = self.base.const(partial)
        op = product(self.base.shape(partial), self.tape.shape(wire), strong)
        return self._leg(op, [partial, None], 1, wire)

    @DIFFERENTIALS("c ⊛ da + ¬c ⊛ db", Select)
    def _select(self, op: Select, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]) -> int:
        """where(c, a, b)^[1] = (where(c, a, b), (c ⊛) • da + (¬c ⊛) • db): selections, not products."""
        return self._wide(self._chosen(values[0], args[1].wire, args[2].wire), self.base.shape(y))

    def _chosen(self, c: Any, first: int | None, second: int | None) -> Any:
        """(c ⊛) of a wire + (¬c ⊛) of another; None for one that does not move."""
        wires = [] if first is None else [self._times(c, first, (0,))]
        if second is not None:
            wires.append(self._times(self.base.step(NOT, (c,)), second, (0,)))
        return self._sum(wires)

    @DIFFERENTIALS("as the op inside", Strongly)
    def _strongly(self, op: Strongly, *rest: Any) -> Any:
        return self._ruled(op.op, *rest) if type(op.op) is Ruled else self._multilinear(op, *rest)

    @DIFFERENTIALS("its own differential", Ruled)
    def _ruled(self, op: Ruled, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]) -> Any:
        """f^[1](x) = (f(x), dx ↦ rule(dx, f(x), x)): coefficients of the rule here, its linear steps on the tape."""
        shapes = tuple([self.base.shape(v) for v in values])
        result = op.shape_of(shapes)
        ys = [self.base.step(Get(i), (y,)) for i in range(len(result))] if several(result) else [y]
        rule: tuple[Program, list[int | None]] = later.rule_program(op, shapes, live)
        program, results = rule
        wires = self.inline(program, [*values, *ys], [args[i].wire for i in live])
        found = {i: wires[r] for i, r in enumerate(results) if r is not None}
        return found or None if several(result) else found.get(0)

    def inline(self, program: Program, values: Sequence[Any], wires: Sequence[int]) -> list[int]:
        """A program linear in its last inputs: what depends on these wires on the tape, the rest in the base domain. It
        may be linear in some more inputs; these are 0, and so is what depends on them alone."""
        ends = len(values) + len(wires)
        base: dict[int, Any] = dict(zip(program.inputs[: len(values)], values, strict=True))
        place: dict[int, int] = dict(zip(program.inputs[len(values) : ends], wires, strict=True))
        moving = program.dependent(program.inputs[len(values) : ends])
        nothing = program.dependent(program.inputs[ends:])
        lifted: dict[int, int] = {}
        zero = bytearray(len(program.ops))  # what is 0 because a differential that does not move is
        for slot, (op, given) in enumerate(zip(program.ops, program.args, strict=True)):
            if nothing[slot] and not moving[slot]:
                zero[slot], base[slot] = 1, self._nothing(program.shapes[slot])
                continue
            if op is INPUT:
                continue
            if not moving[slot]:
                zero[slot] = _stays_zero(op, [bool(zero[a]) for a in given])
                base[slot] = applied(self.base, op, [base[a] for a in given])
                continue
            for a in given:
                if not moving[a] and a not in lifted:
                    lifted[a] = self.lift(base[a])
            slots = [place[a] if moving[a] else lifted[a] for a in given]
            live: tuple[int, ...] = tuple([i for i, a in enumerate(given) if moving[a]])
            if isinstance(op, Linear) and len(live) < len(given):
                if not all([zero[a] for a in given if not moving[a]]):
                    raise LinearityError(f"{_NOT_LINEAR} adds something that does not depend on them")
                op, slots = op.only(live), [slots[i] for i in live]
            if isinstance(op, Multilinear) and len(live) > 1:
                raise LinearityError(f"{_NOT_LINEAR} multiplies them with each other")
            fixed = [None if moving[a] else base[a] for a in given]
            if type(op) is Select or type(op) is Elementwise:
                place[slot] = self._plainly_linear(op, fixed, slots, program.shapes[slot])
            elif type(op) is Contraction:
                k = next(iter(live))
                place[slot] = self._leg(op, fixed, k, slots[k])
            elif isinstance(op, Linear):
                place[slot] = self._reached(self.tape.step(op, slots), op, slots)
            else:
                place[slot] = applied(self.tape, op, slots)
        return [place[s] for s in program.outputs]

    def _nothing(self, shape: Any) -> Any:
        """Zeros; of a step with several results they are read one by one."""
        return None if several(shape) else self.base.zeros(shape)

    def _plainly_linear(self, op: Any, fixed: list[Any], slots: list[int], shape: tuple[int, ...]) -> int:
        """What a rule may do with a differential besides linear steps: choose or divide by something fixed."""
        if type(op) is Select and fixed[0] is not None:
            moved = [w if x is None else None for w, x in zip(slots, fixed, strict=True)]
            return self._wide(self._chosen(fixed[0], moved[1], moved[2]), shape)
        if type(op) is Elementwise and op.primitive is divide and fixed[0] is None and fixed[1] is not None:
            return self._times(self.base.step(reciprocal.op, (fixed[1],)), slots[0], ())
        name = op.primitive.name if type(op) is Elementwise else op.title
        raise LinearityError(f"{_NOT_LINEAR} uses {name} of one")

    @DIFFERENTIALS("linear in each argument, as declared", Declared)
    def _declared(
        self, op: Declared, y: Any, values: list[Any], args: Sequence[Pair[Leaf]], live: tuple[int, ...]
    ) -> dict[int, Any]:
        """A declared function is linear in each of its arguments: one summand per argument that moves."""
        wires: list[int] = []
        for _, where in op.leg_slices():
            moving = args[where]
            if all([a.wire is None for a in moving]):
                continue
            mixed = [self.lift(v) for v in values] if len(op.sources) > 1 else [0] * len(values)
            mixed[where] = [self.wire(a) for a in moving]
            wires.append(self.tape.step(op, mixed))
        count = len(op.form.legs[op.target].leaves)
        return {i: self._sum([self.tape.step(Get(i), (wire,)) for wire in wires]) for i in range(count)}

    def _sum(self, wires: list[int]) -> Any:
        if len(wires) < 2:
            return wires[0] if wires else None
        op = Combination((1.0,) * len(wires))
        return self._reached(self.tape.step(op, wires), op, wires)


def over_symbols(
    program: Program, moving: Sequence[bool], strong: bool = False
) -> tuple[AffineDomain[int], list[int], list[Pair[int]]]:
    """A program over pairs of slots of one new program: the domain, the inputs x and dx, and the outputs.

    `moving` says which inputs have a dx; `strong`: nothing reaches its zeros."""
    joint, shapes = Program(), [program.shapes[s] for s in program.inputs]
    xs = [joint.input(s) for s in shapes]
    dxs = [joint.input(s) if m else None for s, m in zip(shapes, moving, strict=True)]
    wires = [dx for dx in dxs if dx is not None]
    domain = AffineDomain[int](joint, joint, lambda slot: slot)
    if strong:
        domain.reach.update(dict.fromkeys(wires, ZEROS))
    slots = run(program, domain, [Pair(x, dx) for x, dx in zip(xs, dxs, strict=True)])
    return domain, [*xs, *wires], [slots[s] for s in program.outputs]


def _stays_zero(op: Any, zero: list[bool]) -> bool:
    """Whether a step gives 0, from which of its arguments are 0."""
    if type(op) is Constant:
        return not np.any(dense(op.value))
    if type(op) is float or isinstance(op, Linear):
        return all(zero)
    return isinstance(op, Multilinear) and not isinstance(op, Ruled) and any(zero)


def _gather(op: Take, index: Any, shape: tuple[int, ...]) -> Reduction:
    """A gather at positions that are known by now is a relation."""
    n = shape[op.axis]
    at = np.asarray(index, np.intp)
    return Reduction((Gather(Seg(n), box_set(at.shape), freeze(np.where(at < 0, at + n, at).ravel())),), op.axis)
