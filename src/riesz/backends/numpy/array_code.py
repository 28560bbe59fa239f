"""A program as NumPy source: one line for each step, the values of large steps written over arrays that are not needed
any more.

A float64 number is a Python float here as in the interpreter, and so is a number repeated along axes
(`Value.repeated`), which has no memory.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single, contraction
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.axis.along import kind_of
from ...programs.axis.slices import Tiled
from ...programs.passes.deferring import Deferred, deferred, has_nan
from ...programs.passes.fusing import SparseProduct
from ...programs.program import INPUT, Constant, Program
from ...programs.sub_programs import Call, Loop
from ...relations.compound import Both
from ...relations.kinds import Diagonal, Function, Gather, Pairs, Point, Range, Segments, Triangular
from ...runtime import buffers, tuning
from ...spaces.contraction import column_sums, number
from ...spaces.formal_vectors import dense, weak
from ...terms.primitives import RULES
from ..common import numbers

FLOAT = np.dtype(float)


class ArrayValue(NamedTuple):
    """A slot in generated code: its text, shape and kind (`float`: a Python float; None: not known).

    `fresh`: nobody else holds its memory; `new`: no argument does, but it may be a view of something larger.
    """

    text: str
    shape: Any
    kind: Any
    fresh: bool = False
    new: bool = False

    @property
    def shared(self) -> ArrayValue:
        """The same, held by somebody else too."""
        return self._replace(fresh=False, new=False)

    @property
    def repeated(self) -> bool:
        """Whether the text is a number that stands for an array."""
        return self.kind is float and self.shape != ()


LINES = OpRules[Callable[["Arrays", Any, list[ArrayValue]], ArrayValue]]("backends.numpy.array_code.LINES")
"""The line of a step, from the values of its arguments."""
INTERPRETED = "as in the interpreter"


class Arrays:
    """The statements that run a program on arrays. Without `look` nan are not looked for where a guard would matter:
    these slots are `born`."""

    def __init__(self, program: Program, inputs: Sequence[ArrayValue], look: bool = True) -> None:
        self._look, self.born = look, list[int]()
        self.names: dict[str, Any] = {"number": number, "dense": dense, "inf": math.inf, "nan": math.nan}
        self.names.update({v.text: v for v in inputs})  # no other thing gets the name of an argument
        self.lines: list[str] = []
        self.called: list[str] = []
        program = deferred(program)
        self._program = program
        self._values: list[Any] = [None] * len(program.ops)
        self._last = [0] * len(program.ops)
        for slot, args in enumerate(program.args):
            for a in args:
                self._last[a] = slot
        for slot in program.outputs:
            self._last[slot] = len(program.ops)
        for slot, value in zip(program.inputs, inputs, strict=True):
            self._values[slot] = value
        self._held: set[int] = set()
        self.calm, hushed = 0, program.hushed  # how many lines end with the last one that a selection reads
        for slot, op in enumerate(program.ops):
            if op is not INPUT:
                self._slot = slot
                self._values[slot] = (
                    self._constant(op.value)
                    if type(op) is Constant
                    else self._step(op, [self._values[a] for a in program.args[slot]])
                )
                self._free(slot)
                if hushed is not None and hushed[slot]:
                    self.calm = len(self.lines)

    @property
    def wide(self) -> str:
        """The name of what repeats a number."""
        return self._np("broadcast_to")

    @property
    def program(self) -> Program:
        """The program as it is run."""
        return self._program

    @property
    def outputs(self) -> list[ArrayValue]:
        """The values of the program's outputs."""
        return [self._values[s] for s in self._program.outputs]

    # -- values ------------------------------------------------------------------------------------------

    def _name(self, base: str, value: Any) -> str:
        """A name for something the code refers to."""
        if self.names.setdefault(base, value) is value:
            return base
        name = f"{base}_{len(self.names)}"
        self.names[name] = value
        return name

    def _np(self, name: str) -> str:
        return self._name(name, getattr(np, name))

    def _constant(self, value: Any) -> ArrayValue:
        one = weak(value)
        if type(one) is float:
            return ArrayValue(_literal(one), self._program.shapes[self._slot], float)
        return ArrayValue(self._name(f"c{self._slot}", one), np.shape(one), np.asarray(one).dtype)

    def handed(self, v: ArrayValue, aval: str, seen: set[str]) -> str:
        """An output as the caller gets it: copied if somebody else holds it, or has got it already."""
        wide = v.text if not v.repeated else f"{self.wide}({v.text}, {v.shape})"
        shared = not v.new or v.text in seen
        seen.add(v.text)
        return f"own({wide}, {aval}{', True' if shared else ''})"

    def _array(self, v: ArrayValue) -> ArrayValue:
        """A value whose text is an array of its shape."""
        if not v.repeated:
            return v
        return ArrayValue(f"{self._np('broadcast_to')}({v.text}, {v.shape})", v.shape, FLOAT)

    def _set(self, text: str, kind: Any, fresh: bool = False) -> ArrayValue:
        """The value of this slot, computed by an expression."""
        self.lines.append(f"t{self._slot} = {text}")
        return ArrayValue(f"t{self._slot}", self._program.shapes[self._slot], kind, fresh and kind is not None)

    def _free(self, slot: int) -> None:
        """Let go of large arrays after their last use."""
        gone = [a for a in dict.fromkeys(self._program.args[slot]) if self._last[a] == slot and self._values[a].fresh]
        gone = [a for a in gone if self._large(a) or type(self._values[a].kind) is tuple]
        names = [self._values[a].text for a in gone if a not in self._held]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    def _large(self, slot: int) -> bool:
        shape = self._program.shapes[slot]
        return bool(shape) and numbers(shape) >= tuning.OVERWRITTEN_NUMBERS

    def _view(self, text: str, v: ArrayValue) -> ArrayValue:
        """A value that shares memory with an argument, which then stays as it is."""
        self._shared()
        return self._set(text, v.kind)

    def _shared(self) -> None:
        """Nothing is written over the arguments of this step any more."""
        for a in self._program.args[self._slot]:
            self._values[a] = self._values[a].shared

    # -- steps -------------------------------------------------------------------------------------------

    def _step(self, op: Any, xs: list[ArrayValue]) -> ArrayValue:
        return LINES[type(op)](self, op, xs)

    LINES("2.0 * x", float)(lambda self, op, xs: self._combination((op,), xs))
    LINES("x + 2.0 * y", Combination)(lambda self, op, xs: self._combination(op.coefficients, xs))

    @LINES("reshape", Reshape)
    def _reshape(self, op: Reshape, xs: list[ArrayValue]) -> ArrayValue:
        x = xs[0]
        if x.kind is float:
            return ArrayValue(x.text, op.shape, float)
        return self._view(f"{x.text}.reshape({op.shape})", x) if op.shape and x.shape else self._call(op, xs)

    @LINES("astype", Cast)
    def _cast(self, op: Cast, xs: list[ArrayValue]) -> ArrayValue:
        if not xs[0].shape or xs[0].repeated:
            return self._call(op, xs)
        return self._set(f"{xs[0].text}.astype({self._np(op.target.name)})", op.target, True)

    @LINES("t[0]", Get)
    def _get(self, op: Get, xs: list[ArrayValue]) -> ArrayValue:
        kinds = xs[0].kind
        if type(kinds) is tuple:
            return self._set(f"{xs[0].text}[{op.at}]", kinds[op.at], True)
        return self._set(f"dense({xs[0].text}[{op.at}])", None)

    @LINES(INTERPRETED, Single, Transform, Take, Put, Strongly, Ruled, Declared, Convolution, ExchangedLeg, Call)
    @LINES("loop over tiles or rounds, see `TiledArrays`", Loop, Tiled)
    def _call(self, op: Any, xs: list[ArrayValue]) -> ArrayValue:
        """A step that has no line of its own runs as in the interpreter."""
        self.called.append(op.title)
        name = self._name(f"{_word(op.title)}_{self._slot}", op.run)
        text = f"{name}({', '.join([self._array(x).text for x in xs])})"
        shape = self._program.shapes[self._slot]
        several = bool(shape) and type(shape[0]) is tuple
        self._shared()
        if several and hasattr(op, "kinds"):
            return self._set(text, op.kinds([x.kind for x in xs]), True)
        return self._set(text if several else f"dense({text})", None if several else self._kind(op, xs))

    def _kind(self, op: Any, xs: list[ArrayValue]) -> Any:
        """The type of a step's result, where it follows from those of its arguments."""
        if (
            isinstance(op, (Discrete, Ruled))
            and "axis" in dict(op.parameters)
            and not any([x.kind is None for x in xs])
        ):
            return np.asarray(
                op.run(*[np.ones((1,) * len(x.shape), FLOAT if x.kind is float else x.kind) for x in xs])
            ).dtype
        plain = type(op) in (
            float,
            Elementwise,
            Contraction,
            Combination,
            Reduction,
            Reshape,
            Cast,
            Select,
            SparseProduct,
        ) or (getattr(op, "shaped", 0) is None and "axis" not in dict(op.parameters))
        if not plain or any([x.kind is None for x in xs]):
            return None
        kind = kind_of(op, [FLOAT if x.repeated else x.kind for x in xs])
        return (
            float
            if (kind is float or kind == FLOAT) and not self._program.shapes[self._slot]
            else FLOAT
            if kind is float
            else kind
        )

    def _spread(self, xs: list[ArrayValue]) -> list[ArrayValue] | None:
        """Arguments of an elementwise step: numbers stay numbers if the other arguments have the shape of the result;
        None if all are numbers."""
        if all([x.kind is float for x in xs]):
            return None
        shape = self._program.shapes[self._slot]
        full = np.broadcast_shapes(*[x.shape for x in xs if not x.repeated]) == shape
        return xs if full else [self._array(x) for x in xs]

    def _combination(self, coefficients: Sequence[float], xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs)
        given = xs if spread is None else spread
        kind = float if spread is None else self._kind(Combination(tuple(coefficients)), xs)
        if self._over(kind):
            return self._long_sum(coefficients, given, kind)
        text = ""
        for k, x in zip(coefficients, given, strict=True):
            if abs(k) == 1.0:
                text = f"{text} {'+' if k > 0 else '-'} {x.text}" if text else x.text if k > 0 else f"-{x.text}"
            else:
                text = f"{text} + {_literal(k)} * {x.text}" if text else f"{_literal(k)} * {x.text}"
        return self._set(text, kind, spread is not None and (len(xs) > 1 or coefficients[0] != 1.0))

    def _over(self, kind: Any) -> bool:
        """Whether the result is worth putting into memory that is there already."""
        return kind is not None and kind is not float and self._large(self._slot)

    def _target(self, xs: list[ArrayValue], kind: Any) -> str:
        """An array for a large result: that of an argument nobody needs any more, else a new one."""
        shape = self._program.shapes[self._slot]
        for a in dict.fromkeys(self._program.args[self._slot]):
            v = self._values[a]
            if (
                v.fresh
                and v.shape == shape
                and v.kind == kind
                and self._last[a] == self._slot
                and any([x.text == v.text for x in xs])
            ):
                self._held.add(a)
                return v.text
        if math.prod(shape) * kind.itemsize < tuning.REUSED_ARRAY_BYTES:
            return ""
        return f"{self._name('empty', buffers.empty)}({shape}, {self._np(kind.name)})"

    def _ufunc(self, name: str, xs: list[str], target: str) -> str:
        return f"{name}({', '.join(xs)}, out={target})" if target else f"{name}({', '.join(xs)})"

    def _long_sum(self, coefficients: Sequence[float], xs: list[ArrayValue], kind: Any) -> ArrayValue:
        """Σ kᵢ·xᵢ of large arrays, added up in one array. Only the first step may write over an argument."""
        add, subtract, multiply, negative = [self._np(f) for f in ("add", "subtract", "multiply", "negative")]
        name = f"t{self._slot}"
        (k, x), *rest = zip(coefficients, xs, strict=True)
        if k == 1.0 and rest and abs(rest[0][0]) == 1.0:
            sign, y = rest.pop(0)
            first = self._ufunc(
                add if sign > 0 else subtract, [x.text, y.text], self._target([x, y] if not rest else [], kind)
            )
        elif k == 1.0:
            first = self._ufunc(self._np("positive"), [x.text], self._target([], kind))
        else:
            scaled = self._target([x] if not rest else [], kind)
            first = (
                self._ufunc(negative, [x.text], scaled)
                if k == -1.0
                else self._ufunc(multiply, [_literal(k), x.text], scaled)
            )
        shape = self._program.shapes[self._slot]
        if rest and any([v.shape != shape for v in xs]):  # a partial sum may be smaller than the whole
            first = f"{self._name('array', np.array)}({self._np('broadcast_to')}({first}, {shape}))"
        value = self._set(first, kind, True)
        for k, y in rest:
            what = add if k != -1.0 else subtract
            self.lines.append(f"{what}({name}, {y.text if abs(k) == 1.0 else f'{_literal(k)} * {y.text}'}, out={name})")
        return value

    @LINES("a ufunc", Elementwise)
    def _elementwise(self, op: Elementwise, xs: list[ArrayValue]) -> ArrayValue:
        p, spread = op.primitive, self._spread(xs)
        if spread is None or not self._program.shapes[self._slot]:
            name = self._name(_word(p.name), p)
            text = f"{name}({', '.join([x.text for x in xs])})"
            return self._set(
                text if p.rule.scalar is not None else f"number({text})",
                float if spread is None else self._kind(op, xs),
            )
        kind, texts = self._kind(op, xs), [x.text for x in spread]
        if p.rule is RULES["power"]:
            return self._power(texts[0], p.parameter, spread, kind)
        array = p.rule.array
        name = self._name(_word(p.name), array)
        if isinstance(array, np.ufunc) and self._over(kind):
            return self._set(self._ufunc(name, texts, self._target(spread, kind)), kind, True)
        return self._set(
            f"{name}({', '.join([*texts, *([] if p.parameter is None else [repr(p.parameter)])])})", kind, True
        )

    def _power(self, x: str, k: float, xs: list[ArrayValue], kind: Any) -> ArrayValue:
        if k in (3.0, 4.0) and kind is not None and kind is not float:  # products, a tenth of the time of a power
            square, other = self._np("square"), x if k == 3.0 else f"t{self._slot}"
            found = self._set(self._ufunc(square, [x], self._target([], kind) if self._over(kind) else ""), kind, True)
            self.lines.append(f"{found.text} = {self._ufunc(self._np('multiply'), [found.text, other], found.text)}")
            return found
        named = {2.0: "square", -1.0: "reciprocal", 0.5: "sqrt"}.get(k)  # as NumPy's own operator does it
        if named is not None and self._over(kind):
            return self._set(self._ufunc(self._np(named), [x], self._target(xs, kind)), kind, True)
        if self._over(kind):
            return self._set(self._ufunc(self._np("power"), [x, _literal(k)], self._target(xs, kind)), kind, True)
        return self._set(f"{x} ** {_literal(k)}", kind, True)

    @LINES("where", Select)
    def _select(self, op: Select, xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs)
        known = (
            spread is not None and not any([x.kind is None for x in xs]) and not all([x.kind is float for x in xs[1:]])
        )
        if spread is None or not known or not self._program.shapes[self._slot]:
            return self._call(op, xs)
        return self._set(f"{self._np('where')}({', '.join([x.text for x in spread])})", self._kind(op, xs), True)

    @LINES("a ufunc; others as in the interpreter", Discrete)
    def _discrete(self, op: Discrete, xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs) if op.shaped is None and self._program.shapes[self._slot] else None
        if spread is None or op.parameters or not isinstance(op.function, np.ufunc):
            return self._call(op, xs)
        return self._set(
            f"{self._name(op.function.__name__, op.function)}({', '.join([x.text for x in spread])})",
            self._kind(op, xs),
            True,
        )

    # -- products and sums -------------------------------------------------------------------------------

    @LINES("*, dot, matmul, sum, transpose; others as in the interpreter", Contraction)
    def _contraction(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        distinct = all([len(set(ls)) == len(ls) for ls in (*op.labels, op.out)])
        if len(xs) == 1 and distinct and not op.strong:
            return self._single(op, xs[0])
        if len(xs) != 2 or not distinct or op.extra:
            return self._call(op, xs)
        if len(op.strong) > 1:
            return self._call(op, xs)
        if op.strong:
            at = op.strong[0]
            fits = (
                op.labels[0] == op.labels[1] == op.out != ()
                and xs[at].kind == np.dtype(bool)
                and not xs[1 - at].repeated
            )
            if not fits or xs[1 - at].kind is None:
                return self._strong(op, xs)
            return self._set(f"{self._np('where')}({xs[at].text}, {xs[1 - at].text}, 0.0)", xs[1 - at].kind, True)
        (la, lb), out = op.labels, op.out
        if set(out) == {*la, *lb}:
            return self._product(op, xs)
        return self._matrix(op, [self._array(x) for x in xs])

    @LINES("the product, and its guard if there is a nan", Deferred)
    def _deferred(self, op: Deferred, xs: list[ArrayValue]) -> ArrayValue:
        """A product, and its guard if there is a nan in it."""
        given = xs[: len(op.plain.labels)]
        found = self._contraction(op.plain, given)
        if found.kind is None or found.repeated:
            return self._call(op, xs)
        name = f"t{self._slot}"
        if found.text != name:
            found = self._set(found.text, found.kind)
        if not self._look:
            self.born.append(self._slot)
            return found
        self._shared()
        again = f"{self._name(f'exact_{self._slot}', op.exact)}({', '.join([self._array(x).text for x in xs])})"
        wrong = f"{name} != {name}" if found.kind is float else f"{self._name('has_nan', has_nan)}({name})"
        self.lines.extend([f"if {wrong}:", f"    {name} = {again}"])
        return found

    def _strong(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        """Strong zeros matter only where another factor is not finite. A product without nan has none such: it is
        cheaper to look at."""
        plain, slot = contraction(op.labels, op.out), self._slot
        if not op.out or op.extra or any([x.kind is None or x.kind is float or x.kind.kind != "f" for x in xs]):
            return self._call(op, xs)
        again = f"dense({self._name(f'strong_{slot}', op.run)}({', '.join([x.text for x in xs])}))"
        found = self._product(plain, xs) if set(op.out) == {*op.labels[0], *op.labels[1]} else self._matrix(plain, xs)
        if self._look:
            self.lines.extend([f"if {self._name('has_nan', has_nan)}({found.text}):", f"    {found.text} = {again}"])
        else:
            self.born.append(slot)
        return found

    def _product(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        if all([x.kind is float for x in xs]):
            return self._set(f"{xs[0].text} * {xs[1].text}", float)
        for x, one, ls in zip(xs, xs[::-1], op.labels, strict=True):
            if (
                one.kind is float
                and one.text == "1.0"
                and ls == op.out
                and x.kind is not None
                and x.kind is not float
                and x.kind.kind == "f"
            ):
                self._shared()
                return x.shared
        whole = [set(ls) == set(op.out) for ls in op.labels]
        given = [x if whole[1 - i] else self._array(x) for i, x in enumerate(xs)]
        kind = self._kind(op, xs)
        texts = [
            x.text if x.kind is float else _placed(x.text, ls, op.out) for x, ls in zip(given, op.labels, strict=True)
        ]
        if self._over(kind):
            same = [x for x, ls in zip(given, op.labels, strict=True) if ls == op.out]
            return self._set(self._ufunc(self._np("multiply"), texts, self._target(same, kind)), kind, True)
        text = f"{texts[0]} * {texts[1]}"
        return self._set(
            f"float({text})" if kind is float else text, kind, True
        )  # a truth value times a number is no Python float

    def _matrix(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        (la, lb), out = op.labels, op.out
        common = [k for k in la if k in lb]
        plain = (
            len(common) == 1
            and max(len(la), len(lb)) <= 2
            and common[0] not in out
            and len(out) == len(la) + len(lb) - 2
        )
        if any([x.kind is None for x in xs]):
            return self._call(op, xs)
        if not plain:
            return self._batched(op, xs)
        a = f"{xs[0].text}.T" if la[-1] != common[0] else xs[0].text
        b = f"{xs[1].text}.T" if lb[0] != common[0] else xs[1].text
        turned = out != (*[k for k in la if k not in common], *[k for k in lb if k not in common])
        if turned and len(out) == 2:  # (ab)ᵀ = bᵀaᵀ, in rows as asked for
            a, b, turned = *[x.removesuffix(".T") if x.endswith(".T") else f"{x}.T" for x in (b, a)], False
        text, kind = f"{self._np('dot')}({a}, {b})", self._kind(op, xs)
        if not out:
            return self._set(f"float({text})" if kind is float else f"number({text})", kind)
        return self._set(f"{text}.T" if turned else text, kind, not turned)

    def _batched(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        """Matrix products over shared axes, the one in front whose free axis comes first in the result; other
        contractions as they run anyway."""
        batch = [k for k in op.out if all([k in ls for ls in op.labels])]
        first = next((k for k in op.out if k not in batch), -1)
        (x, la), (y, lb) = sorted(zip(xs, op.labels, strict=True), key=lambda g: first not in g[1])
        (rows, columns), summed = (
            [[k for k in ls if k in op.out and k not in batch] for ls in (la, lb)],
            [k for k in la if k not in op.out],
        )
        if summed != [k for k in lb if k not in op.out] or len(summed) != 1:
            return self._new(op, xs)
        if (
            not batch
            and len(columns) == 1
            and (*la, *columns) == (*rows, *summed, *columns)
            and op.out == (*rows, *columns)
        ):  # rows of a matrix
            wide = self._program.shapes[self._slot]
            flat = (math.prod(x.shape[:-1]), x.shape[-1])
            found = (
                f"{self._np('dot')}({x.text}.reshape({flat}), "
                f"{y.text if lb[0] == summed[0] else f'{y.text}.T'}).reshape({wide})"
            )
            return self._set(found, self._kind(op, xs), True)
        if (len(rows), len(columns)) != (1, 1):
            return self._new(op, xs)
        a, b = [
            _placed(v.text, ls, (*batch, *order))
            for v, ls, order in ((x, la, (*rows, *summed)), (y, lb, (*summed, *columns)))
        ]
        text = _placed(f"{self._np('matmul')}({a}, {b})", (*batch, *rows, *columns), op.out)
        return self._set(text, self._kind(op, xs), self._last[self._slot] < len(self._program.ops))

    @LINES(INTERPRETED, SparseProduct)
    def _new(self, op: Contraction | Reduction | SparseProduct, xs: list[ArrayValue]) -> ArrayValue:
        """A step as in the interpreter whose result shares no memory with its arguments."""
        kept = [self._values[a] for a in self._program.args[self._slot]]
        found = self._call(op, xs)
        for a, v in zip(self._program.args[self._slot], kept, strict=True):
            self._values[a] = v
        inside = self._last[self._slot] < len(self._program.ops)
        return found._replace(
            fresh=inside and bool(found.shape) and found.kind is not None and found.kind is not float, new=True
        )

    def _single(self, op: Contraction, x: ArrayValue) -> ArrayValue:
        labels, out = op.labels[0], op.out
        if x.kind is float and not labels:
            return ArrayValue(x.text, self._program.shapes[self._slot], float)
        x = self._array(x)
        gone = tuple([i for i, k in enumerate(labels) if k not in out])
        kept = tuple([k for k in labels if k in out])
        text, kind = x.text, self._kind(op, [x])
        if x.kind is None:
            return self._call(op, [x])
        if gone == (0,) and len(x.shape) == 2 and self._large(self._program.args[self._slot][0]):
            text = f"{self._name('column_sums', column_sums)}({text})"
        elif gone:
            text = f"{text}.sum({'axis=' + repr(gone[0] if len(gone) == 1 else gone) if kept else ''})"
        if not out:
            return self._set(f"float({text})" if kind is float else f"number({text})", kind)
        same = kept == out
        text = _placed(text, kept, out)
        if len(kept) < len(out):
            text = f"{self._np('broadcast_to')}({text}, {self._program.shapes[self._slot]})"
        return self._set(text, kind, True) if gone and same else self._view(text, x._replace(kind=kind))

    @LINES("x[2:], take, concatenate; others as in the interpreter", Reduction)
    def _reduction(self, op: Reduction, xs: list[ArrayValue]) -> ArrayValue:
        if len(xs) > 1:
            if op.joined is None or any([x.kind is None for x in xs]):
                return self._call(op, xs)
            texts = [self._array(xs[i]).text for i in op.joined]
            return self._set(
                f"{self._np('concatenate')}(({', '.join(texts)}), axis={op.axis})", self._kind(op, xs), True
            )
        relation: Any = op.relations[0]
        x = self._array(xs[0])
        source, shape = relation.source.box, self._program.shapes[self._slot]
        head = ":, " * op.axis
        match relation:
            case Point() if source == ():  # a set of one point has no axis
                return x
            case Point() if source and shape:
                at = ", ".join([str(int(i)) for i in np.unravel_index(relation.at, source)])
                return self._view(f"{x.text}[{head}{at}]", x)
            case Point() if not shape and x.kind is not None and x.kind == FLOAT:  # (np.dtype(float) == None holds)
                return self._set(f"{x.text}.item({relation.at})", float)
            case Range(turned=False) if source and len(source) == 1 and shape and len(relation.target.box or ()) == 1:
                s = relation.slice(relation.target.size)
                step = f":{s.step}" if s.step not in (None, 1) else ""
                return self._view(f"{x.text}[{head}{s.start}:{'' if s.stop is None else s.stop}{step}]", x)
            case Gather() if source and len(source) == 1 and shape and numbers(shape) < tuning.COMPILED_PAIR_LOOPS_FROM:
                index = self._name(f"i{self._slot}", relation.index.reshape(relation.target.box or ()))
                return self._set(f"{self._np('take')}({x.text}, {index}, axis={op.axis})", x.kind, True)
            case _:
                return self._new(op, [x]) if _copies(relation) else self._call(op, [x])


def _copies(relation: Any) -> bool:
    """Whether a reduction gives an array of its own, which may be written to."""
    if isinstance(relation, Both):
        return _copies(relation.second) or (isinstance(relation.second, Diagonal) and _copies(relation.first))
    return isinstance(relation, (Function, Gather, Pairs, Segments, Triangular))


def _literal(k: float) -> str:
    text = repr(float(k))
    return f"({text})" if text[0] == "-" else text


def _word(title: str) -> str:
    """A title as an identifier."""
    word = "".join([c for c in title if (c.isalnum() or c == "_") and c.isascii()]).lstrip("0123456789") or "op"
    return f"{word}_" if keyword.iskeyword(word) else word


def _placed(text: str, labels: tuple[int, ...], out: tuple[int, ...]) -> str:
    """Axes in the order of `out`, of size 1 where a label is missing."""
    order = [labels.index(k) for k in out if k in labels]
    if order != sorted(order):
        text = f"{text}.transpose({', '.join(map(str, order))})"
    lead = next((i for i, k in enumerate(out) if k in labels), len(out))
    if not labels or all([k in labels for k in out[lead:]]):
        return text  # missing axes in front are added by NumPy itself
    return f"{text}[{', '.join([':' if k in labels else 'None' for k in out[lead:]])}]"
