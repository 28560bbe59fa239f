"""A program as statements: each slot is numbers (nodes of expressions, written once and when they are wanted) or an
array (an expression of positions, or memory).

The program inside a loop or a branch is a scope inside that of its program. What it takes from outside are variables
and memory there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape, Single
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.axis.along import kind_of
from ...programs.axis.scalars import Fixed
from ...programs.passes.deferring import Deferred
from ...programs.passes.fusing import SparseProduct
from ...programs.program import INPUT, Constant, Program, several
from ...programs.sub_programs import Block, Call, Loop
from ...runtime import tuning
from ...spaces.formal_vectors import dense, weak
from .computed_positions import Collected, Scattered, found_places, put, taken
from .number_forms import NumberForms, exact, form_name
from .pieces import pieces
from .rounds import branches, rounds
from .statements import Blocked, Buffer, Fail, For, Position, SetNumber, Update, Value, counter
from .writer import Arrayed, Element, Slot, StatementWriter, Variable


class Scope(NumberForms):
    """The statements of one program. `inputs` are values for its inputs, `letters` their kinds: f, i or b."""

    def __init__(
        self,
        writer: StatementWriter,
        program: Program,
        inputs: Sequence[Slot],
        letters: Sequence[Any],
        targets: dict[int, Any] | None = None,
        scattered: set[int] | None = None,
    ) -> None:
        super().__init__(program, 1 << 60)
        self.writer, self.at, self.targets, self.scattered = writer, 0, targets or {}, scattered or set()
        self._texts: list[dict[int, Value]] = [{}]
        self.values: list[Slot] = [None] * len(program.ops)
        self.letters: list[Any] = [None] * len(program.ops)
        self.uses = program.uses()
        live = program.needed(program.outputs)
        if any([on and not several(s) and 0 in s for on, s in zip(live, program.shapes, strict=True)]):
            raise Blocked("an empty array")
        for slot, value, letter in zip(program.inputs, inputs, letters, strict=True):
            if live[slot]:
                self.values[slot], self.letters[slot] = self.taken(value), letter
        for slot, op in enumerate(program.ops):
            if live[slot] and op is not INPUT:
                self.at = slot
                args = program.args[slot]
                self.letters[slot] = self._letter(op, [self.letters[a] for a in args])  # a block's with its value
                self.values[slot] = self._value(op, args, program.shapes[slot])

    # -- values ------------------------------------------------------------------------------------------

    def taken(self, value: Slot) -> Slot:
        """A value of another scope here: its numbers are given as an array of values."""
        if type(value) is Arrayed:
            return self.numbers(value) if math.prod(value.shape) <= tuning.NATIVE_SLOT_NUMBERS else value
        return np.array([self.node(v) for v in value.reshape(-1)], np.intp).reshape(value.shape)

    def inner(
        self,
        program: Program,
        inputs: Sequence[Slot],
        letters: Sequence[Any],
        targets: dict[int, Any] | None = None,
        scattered: set[int] | None = None,
    ) -> Scope:
        """A scope inside this one; `targets`: memory for what its loop stacks; `scattered`: slots that wait until a
        carry collects them."""
        return Scope(self.writer, program, inputs, letters, targets, scattered)

    def handed(self, x: Slot) -> Slot:
        """A value for a scope inside: numbers as values."""
        if type(x) is Arrayed:
            if math.prod(x.shape) > tuning.NATIVE_SLOT_NUMBERS:
                return self.stored(x)
            x = self.numbers(x)
        found: Any = np.empty(x.size, object)
        found[:] = [self.value(node) for node in x.reshape(-1).tolist()]
        return found.reshape(x.shape)

    def node(self, value: Value) -> int:
        """The node of a value."""
        if not isinstance(value, str):
            return self.graph.fixed(value)
        found = self.graph.leaf(Variable(value))  # pyright: ignore
        self._texts[0][found] = value
        return found

    def value(self, node: int) -> Value:
        """What a node is in statements, written where it is not yet."""
        found = self._text(node)
        if found is not None:
            return found
        need, stack = set[int](), [int(node)]
        while stack:
            x = stack.pop()
            if x not in need and self._text(x) is None:
                need.add(x)
                stack.extend(self.graph.args[x])
        for x in sorted(need):
            self._texts[-1][x] = self._written(x)
        return self._texts[-1][int(node)]

    def _text(self, node: int) -> Value | None:
        for texts in reversed(self._texts):
            if (found := texts.get(int(node))) is not None:
                return found
        return None

    def _written(self, x: int) -> Value:
        op = self.graph.ops[x]
        if type(op) is Fixed:
            number: Any = op.value
            return bool(number) if type(number) in (bool, np.bool_) else float(number)
        if type(op) is Element:
            return self.writer.read(op.buffer, op.at)
        return self.writer.assigned(form_name(op), [self.value(a) for a in self.graph.args[x]])

    def failing(self, node: int) -> None:
        """Where a node holds, the ordinary way is to be taken."""
        self.writer.emit(Fail(self.value(node)))

    def numbers(self, x: Slot) -> Any:
        """A small array in memory, or anything else, as nodes."""
        if type(x) is not Arrayed:
            return x
        if math.prod(x.shape) > tuning.NATIVE_SLOT_NUMBERS:
            raise Blocked(f"an array of shape {x.shape} as numbers")
        return self._elements(x, list(np.ndindex(*x.shape))).reshape(x.shape)

    def _elements(self, x: Arrayed, places: Sequence[Sequence[int]]) -> Any:
        if x.place is None:
            found = [self.node(x.at([Position(int(i)) for i in at])) for at in places]
        else:
            buffer, base = x.place
            flat = np.ravel_multi_index(tuple(np.array(places).T), x.shape) if x.shape else [0] * len(places)
            found = [self.graph.leaf(Element(buffer, base.moved(int(i)))) for i in flat]  # pyright: ignore
        return np.array(found, np.intp)

    def array(self, x: Slot) -> Arrayed:
        """Anything as an array."""
        if type(x) is Arrayed:
            return x
        if len(set(x.reshape(-1).tolist())) == 1:
            one = self.value(x.reshape(-1)[0])
            return Arrayed(x.shape, lambda at: one)
        return self.stored(x)

    def stored(self, x: Slot, fresh: bool = False) -> Arrayed:
        """Anything as an array in memory; `fresh`: in memory of its own."""
        if type(x) is Arrayed and x.place is not None and not fresh:
            return x
        found = self.writer.placed(x.shape, self.writer.buffer(math.prod(x.shape)))
        self.store(found, x)
        return found

    def store(self, target: Arrayed, x: Slot) -> None:
        """x into memory."""
        assert target.place is not None
        buffer, base = target.place
        if type(x) is not Arrayed:
            nodes = np.broadcast_to(x, target.shape).reshape(-1).tolist()
            for i, value in enumerate([self.value(node) for node in nodes]):
                self.writer.emit(SetNumber(buffer, base.moved(i), value))
            return
        lead = len(target.shape) - len(x.shape)
        with self.nest(target.shape) as at:
            total = base
            for k, p in enumerate(at):
                total = total.plus(p, math.prod(target.shape[k + 1 :]))
            inner = [Position() if n == 1 else p for n, p in zip(x.shape, at[lead:], strict=True)]
            self.writer.emit(SetNumber(buffer, total, x.at(inner)))

    @contextmanager
    def nest(self, sizes: Sequence[int]) -> Generator[list[Position]]:
        """Loops inside each other; what is written there is known there only."""
        names, outer = [self.writer.fresh("i") for _ in sizes], self.writer.block
        self._texts.append({})
        inner = self.writer.block = list[Any]()
        try:
            yield [counter(name) for name in names]
        finally:
            self._texts.pop()
            self.writer.block = outer
        for name, n in reversed(list(zip(names, sizes, strict=True))):
            inner = [For(name, Position(), Position(n), False, inner)]
        outer.extend(inner)

    # -- kinds -------------------------------------------------------------------------------------------

    def _letter(self, op: Any, given: list[Any]) -> Any:
        if type(op) is Constant:
            return _letter_of(np.asarray(weak(op.value)).dtype)
        if isinstance(op, Get):
            return given[0][op.at]
        if isinstance(op, (Loop, Call)):
            return None
        if isinstance(op, (Take, Put)):
            return given[0]
        if isinstance(op, Strongly):
            return self._letter(op.op, given)
        if isinstance(op, Ruled):
            return tuple("f" for _ in self.program.shapes[self.at]) if several(self._shape()) else "f"
        if type(op) is Discrete:
            self.whole(op, given)
        if type(op) is Discrete and (op.shaped is not None or op.parameters):
            return self.discrete_letter(op, given)
        kinds = [np.dtype(_KINDS[k]) if k in _KINDS else None for k in given]
        if any([k is None for k in kinds]):
            raise Blocked(f"{type(op).__name__} of {given}")
        found = _letter_of(np.dtype(kind_of(op, kinds)))
        if type(op) is Cast and np.dtype(op.target) != np.dtype(float):
            raise Blocked(f"numbers of the type {op.target}")
        return found

    def _shape(self) -> Any:
        return self.program.shapes[self.at]

    # -- steps -------------------------------------------------------------------------------------------

    def _value(self, op: Any, args: tuple[int, ...], shape: Any) -> Slot:
        if type(op) is Constant:
            return self._constant(op.value, shape)
        return CODE[type(op)](self, op, args, [self.values[a] for a in args], shape)

    def plain(self, op: Any, xs: list[Slot], shape: Shape) -> Slot:
        """A step as numbers, each with an expression of its own, or as an array."""
        numbers = not any([type(x) is Arrayed for x in xs])
        if (
            numbers
            and math.prod(shape) <= tuning.NATIVE_SLOT_NUMBERS
            and _work(op, xs, shape) <= tuning.NATIVE_WRITTEN_PRODUCTS
        ):
            return self.unrolled(op, xs, shape)
        return self._arrays(op, xs, shape)

    def collected(self, op: Combination, xs: list[Slot], shape: Shape) -> Slot:
        pairs = list(zip(op.coefficients, xs, strict=True))
        rest = [(k, x) for k, x in pairs if type(x) is not Scattered]
        ks, left = tuple([k for k, _ in rest]), [x for _, x in rest]
        whole = left[0] if ks == (1.0,) else self._arrays(Combination(ks), left, shape)
        return Collected(whole, [(k, x) for k, x in pairs if type(x) is Scattered])

    def found(self, op: Discrete, xs: list[Slot]) -> Slot:
        named = dict(op.parameters)
        found = found_places(self, xs[0], xs[1], named.get("side", "right"))
        if "last" not in named:
            return found
        graph, last = self.graph, self.graph.fixed(float(named["last"]))
        rest = [graph.subtract(x, graph.fixed(1.0)) for x in found.reshape(-1).tolist()]
        inside = [self.apply("minimum", self.apply("maximum", x, graph.fixed(0.0)), last) for x in rest]
        return np.array(inside, np.intp).reshape(found.shape)

    def _constant(self, value: Any, shape: Shape) -> Slot:
        one = weak(value)
        if np.asarray(one).dtype.kind == "i" and not exact(one):
            raise Blocked("a whole number that floats do not hold")
        if math.prod(shape) <= tuning.NATIVE_SLOT_NUMBERS:
            return self._constants(one, shape)
        whole = np.asarray(dense(value))
        _letter_of(whole.dtype)
        if not any(whole.strides):
            number = float(whole.reshape(-1)[0])
            return Arrayed(shape, lambda at: number)
        return self.writer.placed(shape, self.writer.fixed(np.asarray(whole, float)))

    # -- arrays ------------------------------------------------------------------------------------------

    def _arrays(self, op: Any, xs: list[Slot], shape: Shape) -> Slot:
        match op:
            case Elementwise(primitive=p) if math.prod(shape) > tuning.NATIVE_CALLED_NUMBERS and p.name not in _FAST:
                raise Blocked(f"{p.name} of {math.prod(shape)} numbers")
            case float() | Combination() | Elementwise() | Select() | Cast():
                return self.lazy(self._pointwise_at(self._function(op), xs), shape)
            case Discrete() if op.shaped is None and "axis" not in dict(op.parameters):
                return self.lazy(self._pointwise_at(self._function(op), xs), shape)
            case Contraction():
                return self._sums(op, xs, shape)
            case Reshape():
                buffer, base = self._memory(xs[0])
                return self._few(self.writer.placed(shape, buffer, base))
            case Reduction():
                return self._few(pieces(self, op, xs, shape))
            case _:
                raise Blocked(f"{getattr(op, 'title', op)} of arrays")

    def _memory(self, x: Slot) -> tuple[Buffer, Position]:
        found = self.stored(x).place
        assert found is not None
        return found

    def _few(self, x: Arrayed) -> Slot:
        """An array of few numbers in memory as numbers."""
        return self.numbers(x) if math.prod(x.shape) <= tuning.NATIVE_READ_NUMBERS else x

    def lazy(self, at: Callable[[Sequence[Position]], Value], shape: Shape) -> Slot:
        """An array that is computed where it is read, if that is once."""
        found = Arrayed(shape, at)
        if math.prod(shape) <= tuning.NATIVE_READ_NUMBERS:
            return self.numbers(found)
        return found if self.uses[self.at] <= 1 else self.stored(found)

    def _pointwise_at(self, work: Callable[[tuple[int, ...]], int], xs: list[Slot]) -> Any:
        arrays = [self.array(x) for x in xs]

        def at(positions: Sequence[Position]) -> Value:
            return self.value(work(tuple([self.node(_broadcast(a, positions)) for a in arrays])))

        return at

    def _sums(self, op: Contraction, xs: list[Slot], shape: Shape) -> Slot:
        arrays = [self.array(x) for x in xs]
        sizes = op.sizes(tuple([a.shape for a in arrays]))
        summed = [k for k in sizes if k not in op.out]

        def product(positions: dict[int, Position]) -> Value:
            nodes = [self.node(a.at([positions[k] for k in ls])) for a, ls in zip(arrays, op.labels, strict=True)]
            graph = self.graph
            return self.value(graph.selected_product(nodes, op.strong) if op.strong else graph.product(nodes))

        if not summed and not op.repeats:
            return self.lazy(lambda at: product(dict(zip(op.out, at, strict=True))), shape)
        arrays = [self.array(self.stored(a)) if a.place is None and len(set(ls)) < len(sizes) and a.shape else a
                  for a, ls in zip(arrays, op.labels, strict=True)]  # fmt: skip
        if not op.out:
            return self._total([sizes[k] for k in summed], lambda at: product(dict(zip(summed, at, strict=True))))
        buffer = self.writer.buffer(math.prod(shape))
        found, kept = self.writer.placed(shape, buffer), list(dict.fromkeys(op.out))
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]

        def place(positions: dict[int, Position]) -> Position:
            total = Position()
            for k, stride in zip(op.out, strides, strict=True):
                total = total.plus(positions[k], stride)
            return total

        big = max(range(len(arrays)), key=lambda i: len(op.labels[i]))
        last = op.labels[big][-1]
        if last in op.out or op.repeats:  # rows of the larger argument are added up
            with self.nest(shape) as at:
                zero = Position()
                for p, stride in zip(at, strides, strict=True):
                    zero = zero.plus(p, stride)
                self.writer.emit(SetNumber(buffer, zero, 0.0))
            order = [*[k for k in kept if k != last], *summed, *[k for k in (last,) if k in kept]]
            with self.nest([sizes[k] for k in order]) as at:
                positions = dict(zip(order, at, strict=True))
                self.writer.emit(SetNumber(buffer, place(positions), product(positions), adds=True))
        else:
            with self.nest([sizes[k] for k in kept]) as at:
                outer = dict(zip(kept, at, strict=True))
                one = self._total(
                    [sizes[k] for k in summed], lambda at: product({**outer, **dict(zip(summed, at, strict=True))})
                )
                self.writer.emit(SetNumber(buffer, place(outer), self.value(int(one))))
        return self._few(found)

    def _total(self, sizes: Sequence[int], term: Callable[[Sequence[Position]], Value]) -> Any:
        """The sum of terms over a box, as a number."""
        total = self.writer.fresh("k")
        self.writer.emit(Update((total,), (0.0,)))
        with self.nest(sizes) as at:
            self.writer.emit(Update((total,), (self.writer.assigned("plus", (total, term(at))),)))
        return np.asarray(self.node(total), np.intp)


# -- what each op is ----------------------------------------------------------------------------------------------

CODE = OpRules[Callable[[Scope, Any, tuple[int, ...], list[Slot], Any], Slot]]("backends.native.scope.CODE")
"""A step as statements. What has none is left to the interpreter, with the loop around it: `Blocked`."""

CODE("a loop, as statements", Loop)(lambda scope, op, args, xs, shape: rounds(scope, op, args, xs))
CODE("branches, as statements", Call)(lambda scope, op, args, xs, shape: branches(scope, op, args, xs))
CODE("one of several", Get)(lambda scope, op, args, xs, shape: xs[0][op.at])
CODE("reads at computed positions", Take)(lambda scope, op, args, xs, shape: taken(scope, op, xs[0], xs[1], shape))
CODE("matrices of few numbers, written out; others left to the interpreter", Ruled)(
    lambda scope, op, args, xs, shape: scope.ruled(op, xs, shape)
)
_POINTWISE = (float, Elementwise, Select, Cast)
CODE("number by number", *_POINTWISE)(lambda scope, op, args, xs, shape: scope.plain(op, xs, shape))
CODE("the same memory", Reshape)(lambda scope, op, args, xs, shape: scope.plain(op, xs, shape))
CODE("ranges of memory, gathers, sums", Reduction)(lambda scope, op, args, xs, shape: scope.plain(op, xs, shape))


@CODE("adds at computed positions", Put)
def _put(scope: Scope, op: Put, args: Any, xs: list[Slot], shape: Shape) -> Slot:
    late = scope.at in scope.scattered and math.prod(shape) > tuning.NATIVE_SLOT_NUMBERS
    return Scattered(op, xs[0], xs[1], shape) if late else put(scope, op, xs[0], xs[1], shape)


@CODE("`Take` and `Put` as they are; others number by number", Strongly)
def _strongly(scope: Scope, op: Strongly, args: Any, xs: list[Slot], shape: Shape) -> Slot:
    if isinstance(op.op, (Take, Put)):  # there is no product in it
        return CODE[type(op.op)](scope, op.op, args, xs, shape)
    return scope.plain(op, xs, shape)


@CODE("number by number; what waits to be added up is collected", Combination)
def _sum(scope: Scope, op: Combination, args: Any, xs: list[Slot], shape: Shape) -> Slot:
    waits = any([type(x) is Scattered for x in xs])
    return scope.collected(op, xs, shape) if waits else scope.plain(op, xs, shape)


@CODE("number by number; places in tables; others left to the interpreter", Discrete)
def _discrete(scope: Scope, op: Discrete, args: Any, xs: list[Slot], shape: Shape) -> Slot:
    places = op.function.__name__ in ("_find", "_interval")
    return scope.found(op, xs) if places else scope.plain(op, xs, shape)


@CODE("sums of products, written out or in loops", Contraction)
def _product(scope: Scope, op: Contraction, args: Any, xs: list[Slot], shape: Shape) -> Slot:
    if op.guarded >= 0:  # a nan that comes out of it is looked for at the end
        op, xs = op.unguarded, xs[:-1]
    return scope.plain(op, xs, shape)


@CODE(
    "left to the interpreter", *(Single, Transform, Declared, Convolution, ExchangedLeg, Block, Deferred, SparseProduct)
)
def _blocked(scope: Scope, op: Any, args: Any, xs: list[Slot], shape: Any) -> Slot:
    raise Blocked(f"{getattr(op, 'title', type(op).__name__)}")


def _broadcast(a: Arrayed, positions: Sequence[Position]) -> Value:
    lead = len(positions) - len(a.shape)
    return a.at([Position() if n == 1 else p for n, p in zip(a.shape, positions[lead:], strict=True)])


_FAST = ("exp", "tanh", "power", "divide")
"""Functions with vector instructions here; array code has them for others."""
_KINDS = {"f": "f8", "i": "i8", "b": "?"}


def _letter_of(dtype: Any) -> str:
    if dtype == np.dtype(float):
        return "f"
    if dtype == np.dtype(np.int64):
        return "i"
    if dtype.kind != "b":
        raise Blocked(f"numbers of the type {dtype}")
    return "b"


def _work(op: Any, xs: Sequence[Any], shape: Shape) -> int:
    if type(op) is not Contraction:
        return math.prod(shape)
    return math.prod(op.sizes(tuple([x.shape for x in xs])).values())
