"""Programs: the flat form of a function, s_n ∘ … ∘ s_1 with s_i = (op_i × id) ∘ red_{R_i}.

A step is an op and a tuple of argument slots; that tuple is the wiring R_i, stored as its difference from the identity.
A Program is also a value domain (ops/domain.py), whose leaves are slots: interpreting a term over it writes the steps.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..errors import SpaceError
from ..ops.domain import Domain, Leaf
from ..ops.op import Cast, Combination, Contraction, Elementwise, Op, Reduction, Reshape, product
from ..relations import Relation, pairs
from ..relations.index_sets import Seg
from ..runtime import displayed, later, tuning
from ..runtime.stackless import quiet
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import Formal
from ..terms import primitives

Shape = tuple[int, ...]


class Constant:
    """The op of a slot that holds a fixed vector."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return Constant, (self.value,)

    @property
    def arrays(self) -> list[Any]:
        """The arrays it is made of."""
        value = self.value
        return [f for t in value.terms for f, _ in t.factors] if type(value) is Formal else [value]


class Input:
    """The op of a slot that is given."""

    __slots__ = ()


INPUT = Input()


def several(shape: Any) -> bool:
    """Whether this is a tuple of shapes, of the results of a step with several."""
    return bool(shape) and type(shape[0]) is tuple


_NO_CHOICE = {float, Input, Constant, Elementwise, Combination, Reduction, Reshape, Cast, Contraction}
"""Steps that choose nothing, but for products with strong zeros."""


class Program:
    """Steps in parallel lists; `inputs` and `outputs` are slots. `len(p)` counts no inputs and constants."""

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

    def like(self, slots: Iterable[int], source: Program) -> list[int]:
        """New input slots, in the shapes of some slots of another program."""
        return [self.input(source.shapes[slot]) for slot in slots]

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
        """A slot that holds op of other slots; a step written before is found again, one that does nothing left out."""
        given = tuple(args)
        known, shapes = self._known, self.shapes
        if known is not None:
            if len(given) > 1:
                op, given = _ordered(op, given)
            key = (op, given)
            if (slot := known.get(key)) is not None:
                return slot
            if len(given) == 1:
                if type(op) is Combination:
                    return self.scale(op.coefficients[0], given[0])
                if type(op) is Contraction and op.trivial:
                    return given[0]
            known[key] = len(shapes)
        shape = op.shape_of((shapes[given[0]],) if len(given) == 1 else tuple([shapes[a] for a in given]))
        self.ops.append(op)  # as in `_append`, without a call
        self.args.append(given)
        shapes.append(shape)
        return len(shapes) - 1

    def scale(self, k: float, slot: int) -> int:
        """(k·) of a slot; its op is the float k itself, the cheapest thing to hold a hundred thousand of."""
        if self._known is not None:
            key = (k.hex(), slot)
            if (found := self._known.get(key)) is not None:
                return found
            if k == 1.0:
                return slot
            inner = self.ops[slot]
            if type(inner) is float and 1e-150 < abs(k * inner) < 1e150:  # (k·) • (l·) = (kl·)
                return self.scale(k * inner, self.args[slot][0])
            self._known[key] = len(self.ops)
        return self._append(k, (slot,), self.shapes[slot])

    def take(self, source: Program, slot: int, args: Sequence[int]) -> int:
        """A slot of another program, of the arguments it has here."""
        op = source.ops[slot]
        return self.input(source.shapes[slot]) if op is INPUT else applied(self, op, args)

    def copy(self, source: Program, slots: Iterable[int], place: dict[int, int]) -> None:
        """Slots of another program, each after its arguments; `place` says where its slots are in this one."""
        given = source.args
        for slot in slots:
            place[slot] = self.take(source, slot, [place[a] for a in given[slot]])

    def zeros(self, shape: Shape) -> int:
        """A slot of zeros."""
        if not shape:
            return self.const(0.0)
        known = {} if self._known is None else self._known
        if ("0", shape) not in known:
            known["0", shape] = self._append(Constant(np.broadcast_to(0.0, shape)), (), shape)
        return known["0", shape]

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
        return self.remembered("_hushed", len(self.ops), self._read_by_selections)

    def _read_by_selections(self) -> bytearray | None:
        flags = bytearray([self.calm]) * len(self.ops)
        strong = any([op.strong for op in self.ops if type(op) is Contraction])
        for slot in range(len(self.ops) - 1, -1, -1) if strong or not set(map(type, self.ops)) <= _NO_CHOICE else ():
            op, args = self.ops[slot], self.args[slot]
            if type(op) is Contraction:
                flags[slot] |= bool(op.strong)
            elif type(getattr(op, "op", None)) is Contraction:  # one whose guard is deferred
                flags[slot] = 1
            if flags[slot] or getattr(op, "hushes", False):
                for a in args if flags[slot] else args[1:]:  # what a condition does is no branch's business
                    flags[a] = 1
        return flags if any(flags) else None

    def remembered(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        """What was made of a program under a name, made again where it is in another state since."""
        known = self.__dict__
        if known.get(name, (None,))[0] != state:
            known[name] = state, make()
        return known[name][1]

    @property
    def stages(self) -> list[tuple[bool, Sequence[int]]]:
        """The slots in the order to compute them in, each stage with whether nobody is warned of what happens there."""
        flags = self.hushed
        if flags is None:
            return [(False, range(len(self.ops)))]
        return [(True, [s for s, h in enumerate(flags) if h]), (False, [s for s, h in enumerate(flags) if not h])]

    @property
    def hushed_first(self) -> Program:
        """The same steps, those that a selection reads before the others."""
        if self.hushed is None:
            return self
        found, place = Program(share=False), dict[int, int]()
        found.copy(self, dict.fromkeys([*self.inputs, *[s for _, slots in self.stages for s in slots]]), place)
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
                    found.update(map(id, op.arrays))
                else:
                    stack.extend(getattr(op, "programs", ()))
        return found

    def dependent(self, on: Iterable[int], still: type | None = None) -> bytearray:
        """Which slots depend on the given ones; not on steps of the kind `still`."""
        flags = bytearray(len(self.ops))
        for slot in on:
            flags[slot] = 1
        for slot, args in enumerate(self.args):
            for a in args:
                if flags[a]:
                    flags[slot] = self.ops[slot].__class__ is not still
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
        """The slots that some slots are made of, from the `given` ones, in order: no others are looked at."""
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

    @property
    def pruned(self) -> Program:
        """The program without the steps nobody needs."""
        return self.prune(self.inputs, self.outputs)

    def __getstate__(self) -> Any:
        return {name: getattr(self, name) for name in ("ops", "args", "shapes", "inputs", "outputs")}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.ops = [INPUT if isinstance(op, Input) else op for op in self.ops]
        self._known, self._keep = {}, []

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html

    def diagram(self, limit: int = 120) -> Any:
        """A string diagram of the steps; `limit`: draw at most so many."""
        return later.diagram(self, limit=limit)


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
    if op.__class__ is Constant:
        return domain.const(op.value)
    return domain.scale(op, args[0]) if op.__class__ is float else domain.step(op, args)


@quiet
def run(
    program: Program, domain: Domain[Leaf], inputs: Sequence[Leaf], last: Sequence[Sequence[int]] | None = None
) -> list[Leaf]:
    """Every slot of a program over a value domain. `last`: the slots to be let go of after each step."""
    slots: list[Any] = [None] * len(program.ops)
    for slot, value in zip(program.inputs, inputs, strict=True):
        slots[slot] = value
    if domain.hushes and program.hushed is not None:
        for calm, which in program.stages:
            with quietly() if calm else nullcontext():
                _steps(program, domain, which, slots, None)
    else:
        _steps(program, domain, range(len(slots)), slots, last)
    return slots


def _steps(program: Program, domain: Domain[Any], which: Iterable[int], slots: list[Any], last: Any) -> None:
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
    """For each step the large slots that nothing reads after it, to be used again; None where there are none."""

    def make() -> list[list[int]] | None:
        results = set(program.outputs)
        after: dict[int, int] = {a: slot for slot, args in enumerate(program.args) for a in args}
        found: list[list[int]] = [[] for _ in program.ops]
        for a, slot in after.items():
            shape: Any = program.shapes[a]
            if a not in results and not several(shape) and math.prod(shape) >= tuning.DROPPED_SLOT_NUMBERS:
                found[slot].append(a)
        return found if any(found) else None

    return program.remembered("_last", (len(program.ops), tuple(program.outputs)), make)


def outputs(program: Program, domain: Domain[Leaf], inputs: Sequence[Leaf]) -> list[Leaf]:
    """The outputs of a program over a value domain."""
    slots = run(program, domain, inputs, _last_uses(program) if domain.hushes else None)
    return [slots[slot] for slot in program.outputs]


_ARITHMETIC = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "negative": "neg"}
"""NumPy's names of operators, and Python's."""


class Symbol:
    """A slot with arithmetic, for writing derivatives of primitives."""

    __slots__ = ("program", "slot")

    def __init__(self, program: Program, slot: int) -> None:
        self.program = program
        self.slot = slot

    def _step(self, op: Op, args: Sequence[Any]) -> Symbol:
        slots = [a.slot if isinstance(a, Symbol) else self.program.const(a) for a in args]
        return Symbol(self.program, self.program.step(op, slots))

    def apply_primitive(self, primitive: Any, args: tuple[Any, ...]) -> Symbol:
        """p(args)."""
        return self._step(Elementwise(primitive), args)

    def _sum(self, mine: float, other: Any, its: float) -> Symbol:
        if isinstance(other, Symbol):
            return self._step(Combination((mine, its)), (self, other))
        return self._step(Combination((its, mine)), (float(other), self))

    def __add__(self, other: Any) -> Symbol:
        return self._sum(1.0, other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return self._sum(1.0, other, -1.0)

    def __rsub__(self, other: Any) -> Symbol:
        return self._sum(-1.0, other, 1.0)

    def __mul__(self, other: Any) -> Symbol:
        if not isinstance(other, Symbol):
            return Symbol(self.program, self.program.scale(float(other), self.slot))
        shapes = self.program.shapes
        return self._step(product(shapes[self.slot], shapes[other.slot]), (self, other))

    __rmul__ = __mul__

    def __neg__(self) -> Symbol:
        return self * -1.0

    def __pow__(self, k: Any) -> Symbol:
        return self.apply_primitive(primitives.power(k), (self,))

    def __truediv__(self, other: Any) -> Symbol:
        if not isinstance(other, Symbol):
            return self * (1.0 / other)
        if other.slot == self.slot:
            return self * primitives.reciprocal(other)
        return self.apply_primitive(primitives.divide, (self, other))

    def __rtruediv__(self, other: Any) -> Symbol:
        return other * self.apply_primitive(primitives.reciprocal, (self,))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        """NumPy's functions of numbers, by the primitive of the same name."""
        name: str = ufunc.__name__
        if method == "__call__" and not named:
            if name in _ARITHMETIC:
                return getattr(operator, _ARITHMETIC[name])(*[a if isinstance(a, Symbol) else float(a) for a in args])
            if ufunc is np.square:
                return args[0] * args[0]
            found: Any = getattr(primitives, {"log": "ln", "power": "pow"}.get(name, name), None)
            if not isinstance(found, primitives.Primitive):
                found = later.primitive_named(name)
            if found is not None:
                return found(*args)
        raise SpaceError(
            f"the derivative of a primitive is written with arithmetic and primitives; np.{name} is not one riesz knows"
        )
