"""Programs: the flat form of a function, s_n ∘ … ∘ s_1 with s_i = (op_i × id) ∘ red_{R_i}.

A step is an op and a tuple of argument slots; that tuple is the wiring R_i, stored as its difference from the identity.
A Program is also a value domain (ops/domain.py), whose leaves are slots: interpreting a term over it writes the steps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import SpaceError
from ..ops.domain import Domain, Leaf
from ..ops.op import Cast, Combination, Contraction, Elementwise, Op, Reduction, Reshape, product
from ..relations import Relation, pairs
from ..relations.index_sets import Seg
from ..runtime import later, tuning
from ..runtime.stackless import quiet
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import Formal

Shape = tuple[int, ...]


class Constant:
    """The op of a slot that holds a fixed vector."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Constant, (self.value,)


class Input:
    """The op of a slot that is given."""

    __slots__ = ()


INPUT = Input()


_NO_CHOICE = {float, Input, Constant, Elementwise, Combination, Reduction, Reshape, Cast, Contraction}
"""Steps that choose nothing, but for products with strong zeros."""


class Program:
    """Steps in parallel lists; `inputs` and `outputs` are slots. `len(p)` counts steps, without inputs and
    constants."""

    hushes = False  # writing a step warns of nothing

    def __init__(self, share: bool = True) -> None:
        self.ops: list[Any] = []
        self.args: list[tuple[int, ...]] = []
        self.shapes: list[Any] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._known: dict[Any, int] | None = {} if share else None
        self._keep: list[Any] = []  # constants stay alive while their identity is a key

    # -- writing ---------------------------------------------------------------------------------------

    def _append(self, op: Any, args: tuple[int, ...], shape: Any) -> int:
        self.ops.append(op)
        self.args.append(args)
        self.shapes.append(shape)
        return len(self.ops) - 1

    def input(self, shape: Shape) -> int:
        """A new input slot."""
        slot = self._append(INPUT, (), shape)
        self.inputs.append(slot)
        return slot

    def const(self, value: Any) -> int:
        """The slot of a fixed vector; the same object, or the same number, has one slot."""
        formal = type(value) is Formal
        shape: Shape = value.shape if formal else np.shape(value)
        if self._known is None:
            return self._append(Constant(value), (), shape)
        key: Any = ("k", id(value)) if shape or formal else ("k", type(value), float(value).hex())
        slot = self._known.get(key)
        if slot is None:
            slot = self._known[key] = self._append(Constant(value), (), shape)
            self._keep.append(value)
        return slot

    def step(self, op: Op, args: Sequence[int]) -> int:
        """A slot that holds op of other slots; a step written before is found again, and steps that do nothing are left
        out."""
        given = tuple(args)
        known, shapes = self._known, self.shapes
        if known is not None:
            if len(given) > 1:
                op, given = _ordered(op, given)
            key = (op, given)
            slot = known.get(key)
            if slot is not None:
                return slot
            if len(given) == 1:
                if type(op) is Combination:
                    return self.scale(op.coefficients[0], given[0])
                if type(op) is Contraction and op.trivial:
                    return given[0]
            known[key] = len(shapes)
        shape = op.shape_of((shapes[given[0]],) if len(given) == 1 else tuple([shapes[a] for a in given]))
        self.ops.append(op)
        self.args.append(given)
        shapes.append(shape)
        return len(shapes) - 1

    def scale(self, k: float, slot: int) -> int:
        """(k·) of a slot; its op is the float k itself, the cheapest thing to hold a hundred thousand of."""
        if self._known is not None:
            key = (k.hex(), slot)
            found = self._known.get(key)
            if found is not None:
                return found
            if k == 1.0:
                return slot
            inner = self.ops[slot]
            if type(inner) is float and 1e-150 < abs(k * inner) < 1e150:  # (k·) • (l·) = (kl·)
                return self.scale(k * inner, self.args[slot][0])
            self._known[key] = len(self.ops)
        self.ops.append(k)
        self.args.append((slot,))
        self.shapes.append(self.shapes[slot])
        return len(self.ops) - 1

    def take(self, source: Program, slot: int, args: Sequence[int]) -> int:
        """A slot of another program, of the arguments it has here."""
        op = source.ops[slot]
        return self.input(source.shapes[slot]) if op is INPUT else applied(self, op, args)

    def copy(self, source: Program, slots: Iterable[int], place: dict[int, int]) -> None:
        """Slots of another program, each after its arguments; `place` says where slots of that program are in this
        one."""
        given = source.args
        for slot in slots:
            place[slot] = self.take(source, slot, [place[a] for a in given[slot]])

    def zeros(self, shape: Shape) -> int:
        """A slot of zeros."""
        if not shape:
            return self.const(0.0)
        key = ("0", shape)
        slot = None if self._known is None else self._known.get(key)
        if slot is None:
            slot = self._append(Constant(np.broadcast_to(0.0, shape)), (), shape)
            if self._known is not None:
                self._known[key] = slot
        return slot

    def shape(self, slot: int) -> Any:
        """The shape of a slot."""
        return self.shapes[slot]

    def linearized(self, op: Elementwise, xs: Sequence[int]) -> tuple[int, tuple[Any, ...]]:
        """The slot of a primitive's value and its partial derivatives, as slots, numbers or None."""
        y = self.step(op, xs)
        found = op.primitive.partials([Symbol(self, x) for x in xs], Symbol(self, y))
        return y, tuple([d.slot if isinstance(d, Symbol) else d for d in found])

    # -- reading ---------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return sum([type(op) is not Constant and op is not INPUT for op in self.ops])

    def wiring(self, slot: int) -> Relation:
        """R_i of a step: from the slots before it to the op's arguments followed by the slots passed through.

        red of it hands the op its arguments and keeps everything; its converse sums the cotangents of a slot used
        twice.
        """
        arguments = self.args[slot]
        moved = [(a, i) for i, a in enumerate(arguments)]
        passed = [(s, len(arguments) + s) for s in range(slot)]
        return pairs(Seg(slot), Seg(len(arguments) + slot), moved + passed)

    calm = False
    """Whether nobody is warned of anything that happens in it."""

    @property
    def hushed(self) -> bytearray | None:
        """The slots that a selection reads, directly or not: what happens there may belong to a branch not taken, and
        nobody is warned of it.

        Arguments of such slots are among them, so they can be computed first. None if there are none. All of them in a
        program that takes derivatives (`calm`): what is infinite there speaks for itself.
        """
        known: dict[str, Any] = self.__dict__
        if known.get("_hushed", (-1,))[0] != len(self.ops):
            flags = bytearray([self.calm]) * len(self.ops)
            none = set(map(type, self.ops)) <= _NO_CHOICE and not any(
                [op.strong for op in self.ops if type(op) is Contraction]
            )
            for slot in () if none else range(len(self.ops) - 1, -1, -1):
                op, args = self.ops[slot], self.args[slot]
                if (type(op) is Contraction and op.strong) or type(
                    getattr(op, "op", None)
                ) is Contraction:  # and one whose guard is deferred
                    flags[slot] = 1
                if flags[slot] or getattr(op, "hushes", False):
                    for a in args if flags[slot] else args[1:]:  # what a condition does is no branch's business
                        flags[a] = 1
            known["_hushed"] = (len(self.ops), flags if any(flags) else None)
        return known["_hushed"][1]

    @property
    def hushed_first(self) -> Program:
        """The same steps, those that a selection reads before the others."""
        flags = self.hushed
        if flags is None:
            return self
        found, place = Program(share=False), dict[int, int]()
        order = (*self.inputs, *[s for s, h in enumerate(flags) if h], *[s for s, h in enumerate(flags) if not h])
        found.copy(self, dict.fromkeys(order), place)
        found.outputs = [place[s] for s in self.outputs]
        return found

    @property
    def held(self) -> set[int]:
        """The identities of all arrays this program keeps: constants, and those of programs inside its steps."""
        found: set[int] = set()
        stack: list[Any] = [self]
        while stack:
            program = stack.pop()
            for op in program.ops:
                if type(op) is Constant:
                    value = op.value
                    found.update(
                        [id(f) for t in value.terms for f, _ in t.factors] if type(value) is Formal else [id(value)]
                    )
                else:
                    stack.extend(getattr(op, "programs", ()))
        return found

    def dependent(self, on: Iterable[int]) -> bytearray:
        """Which slots depend on the given ones."""
        flags = bytearray(len(self.ops))
        for slot in on:
            flags[slot] = 1
        for slot, args in enumerate(self.args):
            for a in args:
                if flags[a]:
                    flags[slot] = 1
                    break
        return flags

    def needed(self, ends: Iterable[int], given: Iterable[int] = ()) -> bytearray:
        """Which slots some slots are made of, these included; what `given` slots are made of is not needed for them."""
        args, live = self.args, bytearray(len(self.ops))
        stop = {s for s in given if args[s]}
        for slot in ends:
            live[slot] = 1
        for slot in range(len(live) - 1, -1, -1):
            if live[slot] and slot not in stop:
                for a in args[slot]:
                    live[a] = 1
        return live

    def ancestors(self, ends: Iterable[int], given: Container[int]) -> list[int]:
        """The slots that some slots are made of, these included, from the `given` ones, in order: no others are looked
        at."""
        found, stack = set[int](), list(ends)
        while stack:
            slot = stack.pop()
            if slot not in found and slot not in given:
                found.add(slot)
                stack.extend(self.args[slot])
        return sorted(found)

    def uses(self) -> list[int]:
        """How often each slot is read, by steps and as an output."""
        found = [0] * len(self.ops)
        for args in (*self.args, self.outputs):
            for a in args:
                found[a] += 1
        return found

    def readers(self) -> list[list[int]]:
        """The steps that read each slot; one that reads it twice is there twice."""
        found: list[list[int]] = [[] for _ in self.ops]
        for slot, args in enumerate(self.args):
            for a in args:
                found[a].append(slot)
        return found

    def prune(self, inputs: Sequence[int], outputs: Sequence[int]) -> Program:
        """The program from some slots to some outputs, without the steps nobody needs."""
        live = self.needed(outputs, inputs)
        small = Program()
        small._keep = self._keep
        if all(live) and list(inputs) == self.inputs:  # nothing to leave out: the same steps, other outputs
            small.ops, small.args, small.shapes = self.ops, self.args, self.shapes
            small.inputs, small.outputs = list(inputs), list(outputs)
            return small
        place = [-1] * len(self.ops)
        for slot in inputs:
            place[slot] = small.input(self.shapes[slot])
        ops, args, shapes = small.ops, small.args, small.shapes
        for slot, (op, given) in enumerate(zip(self.ops, self.args, strict=True)):
            if live[slot] and place[slot] < 0:
                place[slot] = len(ops)
                ops.append(op)
                args.append((place[given[0]],) if len(given) == 1 else tuple([place[a] for a in given]))
                shapes.append(self.shapes[slot])
        small.outputs = [place[slot] for slot in outputs]
        return small

    def __getstate__(self) -> Any:
        return {
            "ops": self.ops,
            "args": self.args,
            "shapes": self.shapes,
            "inputs": self.inputs,
            "outputs": self.outputs,
        }

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.ops = [INPUT if isinstance(op, Input) else op for op in self.ops]
        self._known, self._keep = {}, []

    def __repr__(self) -> str:
        return later.text(self)


def _ordered(op: Op, args: tuple[int, ...]) -> tuple[Op, tuple[int, ...]]:
    """One way of writing what can be written in two: factors by slot, and k·x + l·x as (k + l)·x."""
    if type(op) is Contraction and len(args) == 2 and args[0] > args[1]:
        return op.swapped, (args[1], args[0])
    if type(op) is Combination and len(set(args)) < len(args):
        total: dict[int, float] = {}
        for k, a in zip(op.coefficients, args, strict=True):
            total[a] = total.get(a, 0.0) + k
        return Combination(tuple(total.values())), tuple(total)
    return op, args


def applied(domain: Any, op: Any, args: Sequence[Any]) -> Any:
    """A constant, a scaling or another step, over a value domain."""
    kind = op.__class__
    return (
        domain.const(op.value)
        if kind is Constant
        else domain.scale(op, args[0])
        if kind is float
        else domain.step(op, args)
    )


@quiet
def run(
    program: Program, domain: Domain[Leaf], inputs: Sequence[Leaf], last: Sequence[Sequence[int]] | None = None
) -> list[Leaf]:
    """Every slot of a program over a value domain; outputs are at `program.outputs`. `last`: the slots to be let go of
    after each step."""
    slots: list[Any] = [None] * len(program.ops)
    for slot, value in zip(program.inputs, inputs, strict=True):
        slots[slot] = value
    hushed = program.hushed if domain.hushes else None
    if hushed is None:
        _steps(program, domain, range(len(slots)), slots, last)
    else:
        with quietly():
            _steps(program, domain, [s for s, h in enumerate(hushed) if h], slots)
        _steps(program, domain, [s for s, h in enumerate(hushed) if not h], slots)
    return slots


def _steps(
    program: Program,
    domain: Domain[Any],
    which: Iterable[int],
    slots: list[Any],
    last: Sequence[Sequence[int]] | None = None,
) -> None:
    ops, given, step, scale, const = program.ops, program.args, domain.step, domain.scale, domain.const
    for slot in which:
        op, args = ops[slot], given[slot]
        kind = op.__class__
        if kind is float:
            slots[slot] = scale(op, slots[args[0]])
        elif kind is Constant:
            slots[slot] = const(op.value)
        elif op is not INPUT:
            slots[slot] = step(op, [slots[a] for a in args])
        if last is not None:
            for a in last[slot]:
                slots[a] = None


def _last_uses(program: Program) -> list[list[int]] | None:
    """For each step the large slots that nothing reads after it: their memory is used again at once. None where there
    are none."""
    known: dict[str, Any] = program.__dict__
    if known.get("_last", (-1,))[0] != (len(program.ops), program.outputs):
        results = set(program.outputs)
        after: dict[int, int] = {a: slot for slot, args in enumerate(program.args) for a in args}
        found: list[list[int]] = [[] for _ in program.ops]
        for a, slot in after.items():
            shape: Any = program.shapes[a]
            if a not in results and shape and type(shape[0]) is int and math.prod(shape) >= tuning.DROPPED_SLOT_NUMBERS:
                found[slot].append(a)
        known["_last"] = (len(program.ops), list(program.outputs)), found if any(found) else None
    return known["_last"][1]


def outputs(program: Program, domain: Domain[Leaf], inputs: Sequence[Leaf]) -> list[Leaf]:
    """The outputs of a program over a value domain."""
    slots = run(program, domain, inputs, _last_uses(program) if domain.hushes else None)
    return [slots[slot] for slot in program.outputs]


_ARITHMETIC: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
}


class Symbol:
    """A slot with arithmetic, for writing derivatives of primitives."""

    __slots__ = ("program", "slot")

    def __init__(self, program: Program, slot: int) -> None:
        self.program = program
        self.slot = slot

    def _make(self, slot: int) -> Symbol:
        return Symbol(self.program, slot)

    def apply_primitive(self, primitive: Any, args: tuple[Any, ...]) -> Symbol:
        """p(args)."""
        slots = [a.slot if isinstance(a, Symbol) else self.program.const(a) for a in args]
        return self._make(self.program.step(Elementwise(primitive), slots))

    def __add__(self, other: Any) -> Symbol:
        return self._sum(other, 1.0, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self._sum(other, 1.0, -1.0)

    def __rsub__(self, other: Any) -> Symbol:
        return self._sum(other, -1.0, 1.0)

    def _sum(self, other: Any, mine: float, its: float) -> Symbol:
        slot = other.slot if isinstance(other, Symbol) else self.program.const(float(other))
        pair = ((its, mine), (slot, self.slot)) if not isinstance(other, Symbol) else ((mine, its), (self.slot, slot))
        return self._make(self.program.step(Combination(pair[0]), pair[1]))

    def __neg__(self) -> Symbol:
        return self._make(self.program.scale(-1.0, self.slot))

    def __mul__(self, other: Any) -> Symbol:
        if not isinstance(other, Symbol):
            return self._make(self.program.scale(float(other), self.slot))
        return self._make(
            self.program.step(
                product(self.program.shapes[self.slot], self.program.shapes[other.slot]), (self.slot, other.slot)
            )
        )

    __rmul__ = __mul__

    def __pow__(self, k: Any) -> Symbol:
        from ..terms.primitives import power

        return self.apply_primitive(power(k), (self,))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        """NumPy's functions of numbers, by the primitive of the same name."""
        from ..terms import primitives

        if method == "__call__" and not named:
            if ufunc is np.divide:
                return args[0] / args[1]
            if ufunc is np.square:
                return args[0] * args[0]
            if ufunc.__name__ in _ARITHMETIC:
                return _ARITHMETIC[ufunc.__name__](*[a if isinstance(a, Symbol) else float(a) for a in args])
            name: str = ufunc.__name__
            found: Any = getattr(primitives, {"log": "ln", "power": "pow"}.get(name, name), None)
            if not isinstance(found, primitives.Primitive):
                found = later.primitive_named(name)
            if found is not None:
                return found(*args)
        raise SpaceError(
            f"the derivative of a primitive is written with arithmetic and primitives; np.{ufunc.__name__} is not "
            "one riesz knows"
        )

    def __truediv__(self, other: Any) -> Symbol:
        from ..terms.primitives import divide, reciprocal

        if not isinstance(other, Symbol):
            return self * (1.0 / other)
        if other.slot == self.slot:
            return self * reciprocal(other)
        return self.apply_primitive(divide, (self, other))

    def __rtruediv__(self, other: Any) -> Symbol:
        from ..terms.primitives import reciprocal

        return other * self.apply_primitive(reciprocal, (self,))
