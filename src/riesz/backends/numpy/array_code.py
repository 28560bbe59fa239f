"""A program as NumPy source: one line for each step, the values of large steps written over arrays that are not needed
any more.

A float64 number is a Python float here as in the interpreter, and so is a number repeated along axes
(`Value.repeated`), which has no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...functions.traces.records import Aval, own
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
from ...relations.spanned import Spanned
from ...runtime import buffers, tuning
from ...spaces.contraction import column_sums, number
from ...spaces.formal_vectors import dense, weak
from ...terms.primitives import RULES
from ...tracing.rules.rearranging import same_shape
from ..common import numbers
from ..source_text import literal, new_name, placed, slice_text, weighted_sum, word

FLOAT = np.dtype(float)
PLAIN = (float, Elementwise, Contraction, Combination, Reduction, Reshape, Cast, Select, SparseProduct)
"""Steps whose type follows from the types of their arguments alone."""


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
        self.program = program = deferred(program)  # as it is run
        self._values: list[Any] = [None] * len(program.ops)
        self._last = {a: slot for slot, args in enumerate(program.args) for a in args}
        self._last |= dict.fromkeys(program.outputs, len(program.ops))
        for slot, value in zip(program.inputs, inputs, strict=True):
            self._values[slot] = value
        self._held: set[int] = set()
        self.calm, hushed = 0, program.hushed  # how many lines end with the last one that a selection reads
        for slot, op in enumerate(program.ops):
            if op is INPUT:
                continue
            self._slot, self._shape, self._args = slot, program.shapes[slot], program.args[slot]
            constant = type(op) is Constant
            values = [self._values[a] for a in self._args]
            self._values[slot] = self._constant(op.value) if constant else self._step(op, values)
            self._free()
            if hushed is not None and hushed[slot]:
                self.calm = len(self.lines)
        self.outputs: list[ArrayValue] = [self._values[s] for s in program.outputs]

    # -- values ------------------------------------------------------------------------------------------

    def _name(self, base: str, value: Any) -> str:
        return new_name(self.names, base, value)

    def _np(self, name: str) -> str:
        return self._name(name, getattr(np, name))

    def _constant(self, value: Any) -> ArrayValue:
        one = weak(value)
        if type(one) is float:
            return ArrayValue(literal(one), self._shape, float)
        return ArrayValue(self._name(f"c{self._slot}", one), np.shape(one), np.asarray(one).dtype)

    def given_back(self, avals: Sequence[Aval]) -> list[str]:
        """The outputs as the caller gets them: copied if somebody else holds them, or has got them already."""
        texts, seen = list[str](), set[str]()
        for j, (v, aval) in enumerate(zip(self.outputs, avals, strict=True)):
            fresh = v.fresh and v.kind == aval.dtype and bool(aval.shape) and v.text not in seen
            number = v.kind is float and not aval.shape
            if aval.dtype == FLOAT and (number or fresh):
                texts.append(v.text)
            elif fresh:  # masks and Python floats may make a float64 where float32 is due
                name = f"dtype_{aval.dtype.name}"
                self.names[name] = np.dtype(aval.dtype.name)
                texts.append(f"({v.text} if {v.text}.dtype is {name} else {v.text}.astype({name}))")
            else:
                self.names |= {f"aval_{j}": aval, "own": own}
                shared = not v.new or v.text in seen
                texts.append(f"own({self.array(v).text}, aval_{j}{', True' if shared else ''})")
            seen.add(v.text)
        return texts

    def array(self, v: ArrayValue) -> ArrayValue:
        """A value whose text is an array of its shape."""
        return ArrayValue(self._wide(v.text, v.shape), v.shape, FLOAT) if v.repeated else v

    def _wide(self, text: str, shape: Any) -> str:
        return f"{self._np('broadcast_to')}({text}, {shape})"

    def _arguments(self, xs: Sequence[ArrayValue]) -> str:
        return ", ".join([self.array(x).text for x in xs])

    def _set(self, text: str, kind: Any, fresh: bool = False) -> ArrayValue:
        """The value of this slot, computed by an expression."""
        self.lines.append(f"t{self._slot} = {text}")
        return ArrayValue(f"t{self._slot}", self._shape, kind, fresh and kind is not None)

    def _free(self) -> None:
        """Let go of large arrays after their last use."""
        gone = [a for a in dict.fromkeys(self._args) if self._last[a] == self._slot and self._values[a].fresh]
        gone = [a for a in gone if self._large(a) or type(self._values[a].kind) is tuple]
        names = [self._values[a].text for a in gone if a not in self._held]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    def _large(self, slot: int) -> bool:
        shape = self.program.shapes[slot]
        return bool(shape) and numbers(shape) >= tuning.OVERWRITTEN_NUMBERS

    def _view(self, text: str, kind: Any) -> ArrayValue:
        """A value that shares memory with an argument, which then stays as it is."""
        self._shared()
        return self._set(text, kind)

    def _shared(self) -> None:
        """Nothing is written over the arguments of this step any more."""
        for a in self._args:
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
        return self._view(f"{x.text}.reshape({op.shape})", x.kind) if op.shape and x.shape else self._call(op, xs)

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
        text = f"{self._name(f'{word(op.title)}_{self._slot}', op.run)}({self._arguments(xs)})"
        self._shared()
        if not self._shape or type(self._shape[0]) is not tuple:
            kind = self._kind(op, xs)
            inner = op.op if type(op) is Strongly else op
            ours = type(inner) is Ruled and inner.smooth.ours and self._shape != ()
            if kind is None and ours and all([x.kind is float or x.kind == FLOAT for x in xs]):
                return self._set(f"{self._np('asarray')}({text}, {self._name('float64', FLOAT)})", FLOAT)
            return self._set(f"dense({text})", kind)
        known = hasattr(op, "kinds")
        return self._set(text, op.kinds([x.kind for x in xs]) if known else None, known)

    def _kind(self, op: Any, xs: list[ArrayValue]) -> Any:
        """The type of a step's result, where it follows from those of its arguments."""
        along = isinstance(op, (Discrete, Ruled)) and "axis" in dict(op.parameters)
        if any([x.kind is None for x in xs]):
            return None
        if along or (type(op) is Discrete and op.shaped is same_shape):
            ones = [np.ones((1,) * len(x.shape), FLOAT if x.kind is float else x.kind) for x in xs]
            try:
                return np.asarray(op.run(*ones)).dtype
            except Exception:  # positions that ones are not
                return None
        if type(op) not in PLAIN and (along or getattr(op, "shaped", 0) is not None):
            return None
        kind = kind_of(op, [FLOAT if x.repeated else x.kind for x in xs])
        return (FLOAT if self._shape else float) if kind is float or kind == FLOAT else kind

    def _spread(self, xs: list[ArrayValue]) -> list[ArrayValue] | None:
        """Arguments of an elementwise step, as arrays where the others lack the shape; None if all are numbers."""
        if all([x.kind is float for x in xs]):
            return None
        full = np.broadcast_shapes(*[x.shape for x in xs if not x.repeated]) == self._shape
        return xs if full else [self.array(x) for x in xs]

    def _combination(self, coefficients: Sequence[float], xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs)
        kind = float if spread is None else self._kind(Combination(tuple(coefficients)), xs)
        if spread is not None and self._over(kind):
            return self._long_sum(coefficients, spread, kind)
        text = weighted_sum(coefficients, [x.text for x in spread or xs])
        return self._set(text, kind, spread is not None and (len(xs) > 1 or coefficients[0] != 1.0))

    def _over(self, kind: Any) -> bool:
        """Whether the result is worth putting into memory that is there already."""
        return kind is not None and kind is not float and self._large(self._slot)

    def _target(self, xs: list[ArrayValue], kind: Any) -> str:
        """An array for a large result: that of an argument nobody needs any more, else a new one."""
        for a in dict.fromkeys(self._args):
            v = self._values[a]
            unneeded = v.fresh and self._last[a] == self._slot and any([x.text == v.text for x in xs])
            if unneeded and v.shape == self._shape and v.kind == kind:
                self._held.add(a)
                return v.text
        if math.prod(self._shape) * kind.itemsize < tuning.REUSED_ARRAY_BYTES:
            return ""
        return f"{self._name('empty', buffers.empty)}({self._shape}, {self._np(kind.name)})"

    def _ufunc(self, name: str, texts: Sequence[str], xs: list[ArrayValue], kind: Any) -> str:
        """A call of a ufunc; a large result may be written over some values."""
        target = self._target(xs, kind) if self._over(kind) else ""
        return f"{name}({', '.join([*texts, *([f'out={target}'] if target else [])])})"

    def _long_sum(self, coefficients: Sequence[float], xs: list[ArrayValue], kind: Any) -> ArrayValue:
        """Σ kᵢ·xᵢ of large arrays, added up in one array. Only the first step may write over an argument."""
        add, subtract, multiply, negative = [self._np(f) for f in ("add", "subtract", "multiply", "negative")]
        (k, x), *rest = zip(coefficients, xs, strict=True)
        given, texts = [x], [x.text]
        if k == 1.0 and rest and abs(rest[0][0]) == 1.0:
            sign, y = rest.pop(0)
            name, given, texts = add if sign > 0 else subtract, [x, y], [x.text, y.text]
        elif k == 1.0:
            name, given = self._np("positive"), []
        else:
            name, texts = (negative, texts) if k == -1.0 else (multiply, [literal(float(k)), x.text])
        first = self._ufunc(name, texts, [] if rest else given, kind)
        if rest and any([v.shape != self._shape for v in xs]):  # a partial sum may be smaller than the whole
            first = f"{self._name('array', np.array)}({self._wide(first, self._shape)})"
        value = self._set(first, kind, True)
        for k, y in rest:
            term = y.text if abs(k) == 1.0 else f"{literal(float(k))} * {y.text}"
            self.lines.append(f"{add if k != -1.0 else subtract}({value.text}, {term}, out={value.text})")
        return value

    @LINES("a ufunc", Elementwise)
    def _elementwise(self, op: Elementwise, xs: list[ArrayValue]) -> ArrayValue:
        p, spread = op.primitive, self._spread(xs)
        if spread is None or not self._shape:
            text = f"{self._name(word(p.name), p)}({', '.join([x.text for x in xs])})"
            kind = float if spread is None else self._kind(op, xs)
            return self._set(text if p.rule.scalar is not None else f"number({text})", kind)
        kind, texts = self._kind(op, xs), [x.text for x in spread]
        if p.rule is RULES["power"]:
            return self._power(texts[0], p.parameter, spread, kind)
        array = p.rule.array
        name = self._name(word(p.name), array)
        if isinstance(array, np.ufunc) and self._over(kind):
            return self._set(self._ufunc(name, texts, spread, kind), kind, True)
        more = [] if p.parameter is None else [repr(p.parameter)]
        return self._set(f"{name}({', '.join([*texts, *more])})", kind, True)

    def _power(self, x: str, k: float, xs: list[ArrayValue], kind: Any) -> ArrayValue:
        if k in (3.0, 4.0) and kind is not None and kind is not float:  # products, a tenth of the time of a power
            found = self._set(self._ufunc(self._np("square"), [x], [], kind), kind, True)
            y = found.text
            self.lines.append(f"{y} = {self._np('multiply')}({y}, {x if k == 3.0 else y}, out={y})")
            return found
        if not self._over(kind):
            return self._set(f"{x} ** {literal(float(k))}", kind, True)
        named = {2.0: "square", -1.0: "reciprocal", 0.5: "sqrt"}.get(k)  # as NumPy's own operator does it
        texts = [x] if named else [x, literal(float(k))]
        return self._set(self._ufunc(self._np(named or "power"), texts, xs, kind), kind, True)

    @LINES("where", Select)
    def _select(self, op: Select, xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs)
        known = not any([x.kind is None for x in xs]) and not all([x.kind is float for x in xs[1:]])
        if spread is None or not known or not self._shape:
            return self._call(op, xs)
        return self._set(f"{self._np('where')}({', '.join([x.text for x in spread])})", self._kind(op, xs), True)

    @LINES("a ufunc; others as in the interpreter", Discrete)
    def _discrete(self, op: Discrete, xs: list[ArrayValue]) -> ArrayValue:
        spread = self._spread(xs) if op.shaped is None and self._shape else None
        if spread is None or op.parameters or not isinstance(op.function, np.ufunc):
            return self._call(op, xs)
        name = self._name(op.function.__name__, op.function)
        return self._set(f"{name}({', '.join([x.text for x in spread])})", self._kind(op, xs), True)

    # -- products and sums -------------------------------------------------------------------------------

    @LINES("*, dot, matmul, sum, transpose; others as in the interpreter", Contraction)
    def _contraction(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        distinct = all([len(set(ls)) == len(ls) for ls in (*op.labels, op.out)])
        if len(xs) == 1 and distinct and not op.strong:
            return self._single(op, xs[0])
        if len(xs) != 2 or not distinct or op.extra or len(op.strong) > 1:
            return self._call(op, xs)
        if not op.strong:
            return self._two(op, xs)
        mask, x = xs[op.strong[0]], xs[1 - op.strong[0]]
        same = op.labels[0] == op.labels[1] == op.out != ()
        if same and mask.kind == np.dtype(bool) and not x.repeated and x.kind is not None:
            return self._set(f"{self._np('where')}({mask.text}, {x.text}, 0.0)", x.kind, True)
        # strong zeros matter only where another factor is not finite; a product without nan has none such
        if not op.out or any([x.kind is None or x.kind is float or x.kind.kind != "f" for x in xs]):
            return self._call(op, xs)
        name = self._name(f"strong_{self._slot}", op.run)
        found = self._two(contraction(op.labels, op.out), xs)
        return self._guarded(found, f"dense({name}({', '.join([x.text for x in xs])}))")

    @LINES("the product, and its guard if there is a nan", Deferred)
    def _deferred(self, op: Deferred, xs: list[ArrayValue]) -> ArrayValue:
        before = len(self.lines)
        found = self._contraction(op.plain, xs[: len(op.plain.labels)])
        if found.kind is None or found.repeated:
            del self.lines[before:]
            return self._call(op, xs)
        if found.text != f"t{self._slot}":
            found = self._set(found.text, found.kind)
        if not self._look:
            return self._guarded(found, "")
        self._shared()
        return self._guarded(found, f"{self._name(f'exact_{self._slot}', op.exact)}({self._arguments(xs)})")

    def _guarded(self, found: ArrayValue, again: str) -> ArrayValue:
        """A product, computed again with care if there is a nan in it: that is cheaper to look at than its factors."""
        if not self._look:
            self.born.append(self._slot)
            return found
        y = found.text
        wrong = f"{y} != {y}" if found.kind is float else f"{self._name('has_nan', has_nan)}({y})"
        self.lines.extend([f"if {wrong}:", f"    {y} = {again}"])
        return found

    def _two(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        """A product of two, with a sum or without."""
        whole = set(op.out) == {*op.labels[0], *op.labels[1]}
        return self._product(op, xs) if whole else self._matrix(op, [self.array(x) for x in xs])

    def _product(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        if all([x.kind is float for x in xs]):
            return self._set(f"{xs[0].text} * {xs[1].text}", float)
        for x, one, ls in zip(xs, xs[::-1], op.labels, strict=True):
            unit = one.kind is float and one.text == "1.0" and ls == op.out
            if unit and x.kind is not None and x.kind is not float and x.kind.kind == "f":
                self._shared()
                return x.shared
        whole = [set(ls) == set(op.out) for ls in op.labels]
        given = list(zip([x if whole[1 - i] else self.array(x) for i, x in enumerate(xs)], op.labels, strict=True))
        kind = self._kind(op, xs)
        texts = [x.text if x.kind is float else placed(x.text, ls, op.out) for x, ls in given]
        if self._over(kind):
            same = [x for x, ls in given if ls == op.out]
            return self._set(self._ufunc(self._np("multiply"), texts, same, kind), kind, True)
        text = f"{texts[0]} * {texts[1]}"  # a truth value times a number is no Python float
        return self._set(f"float({text})" if kind is float else text, kind, True)

    def _matrix(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        (la, lb), out = op.labels, op.out
        common = [k for k in la if k in lb]
        if any([x.kind is None for x in xs]):
            return self._call(op, xs)
        flat = len(common) == 1 and common[0] not in out and max(len(la), len(lb)) <= 2
        if not flat or len(out) != len(la) + len(lb) - 2:
            return self._batched(op, xs)
        a = f"{xs[0].text}.T" if la[-1] != common[0] else xs[0].text
        b = f"{xs[1].text}.T" if lb[0] != common[0] else xs[1].text
        turned = out != tuple([k for k in (*la, *lb) if k not in common])
        if turned and len(out) == 2:  # (ab)ᵀ = bᵀaᵀ, in rows as asked for
            a, b, turned = *[x.removesuffix(".T") if x.endswith(".T") else f"{x}.T" for x in (b, a)], False
        text, kind = f"{self._np('dot')}({a}, {b})", self._kind(op, xs)
        return self._set(f"{text}.T" if turned else text, kind, not turned) if out else self._total(text, kind)

    def _total(self, text: str, kind: Any) -> ArrayValue:
        return self._set(f"float({text})" if kind is float else f"number({text})", kind)

    def _batched(self, op: Contraction, xs: list[ArrayValue]) -> ArrayValue:
        """Matrix products over shared axes, the one in front whose free axis comes first in the result."""
        batch = [k for k in op.out if all([k in ls for ls in op.labels])]
        first = next((k for k in op.out if k not in batch), -1)
        (x, la), (y, lb) = sorted(zip(xs, op.labels, strict=True), key=lambda g: first not in g[1])
        rows, columns = [[k for k in ls if k in op.out and k not in batch] for ls in (la, lb)]
        summed = [k for k in la if k not in op.out]
        if summed != [k for k in lb if k not in op.out] or len(summed) != 1:
            return self._new(op, xs)
        in_order = la == (*rows, *summed) and op.out == (*rows, *columns)
        if not batch and len(columns) == 1 and in_order:  # rows of a matrix
            flat = (math.prod(x.shape[:-1]), x.shape[-1])
            matrix = y.text if lb[0] == summed[0] else f"{y.text}.T"
            text = f"{self._np('dot')}({x.text}.reshape({flat}), {matrix}).reshape({self._shape})"
            return self._set(text, self._kind(op, xs), True)
        if (len(rows), len(columns)) != (1, 1):
            return self._new(op, xs)
        a, b = placed(x.text, la, (*batch, *rows, *summed)), placed(y.text, lb, (*batch, *summed, *columns))
        text = placed(f"{self._np('matmul')}({a}, {b})", (*batch, *rows, *columns), op.out)
        return self._set(text, self._kind(op, xs), self._inside)

    @property
    def _inside(self) -> bool:
        """Whether the result of this step is none of the program's."""
        return self._last.get(self._slot, 0) < len(self.program.ops)

    @LINES(INTERPRETED, SparseProduct)
    def _new(self, op: Contraction | Reduction | SparseProduct, xs: list[ArrayValue]) -> ArrayValue:
        """A step as in the interpreter whose result shares no memory with its arguments."""
        kept = [self._values[a] for a in self._args]
        found = self._call(op, xs)
        for a, v in zip(self._args, kept, strict=True):
            self._values[a] = v
        array = bool(found.shape) and found.kind is not None and found.kind is not float
        return found._replace(fresh=self._inside and array, new=True)

    def _single(self, op: Contraction, x: ArrayValue) -> ArrayValue:
        labels, out = op.labels[0], op.out
        if x.kind is float and not labels:
            return ArrayValue(x.text, self._shape, float)
        x = self.array(x)
        gone = tuple([i for i, k in enumerate(labels) if k not in out])
        kept = tuple([k for k in labels if k in out])
        text, kind = x.text, self._kind(op, [x])
        if x.kind is None:
            return self._call(op, [x])
        if gone == (0,) and len(x.shape) == 2 and self._large(self._args[0]):
            text = f"{self._name('column_sums', column_sums)}({text})"
        elif gone:
            text = f"{text}.sum({'axis=' + repr(gone[0] if len(gone) == 1 else gone) if kept else ''})"
        if not out:
            return self._total(text, kind)
        text = placed(text, kept, out)
        if len(kept) < len(out):
            text = self._wide(text, self._shape)
        return self._set(text, kind, True) if gone and kept == out else self._view(text, kind)

    @LINES("x[2:], take, concatenate, bincount; others as in the interpreter", Reduction)
    def _reduction(self, op: Reduction, xs: list[ArrayValue]) -> ArrayValue:
        if len(xs) > 1:
            if op.joined is None or any([x.kind is None for x in xs]):
                return self._call(op, xs)
            parts = [
                f"{self.array(xs[i]).text}{_of(part, ':, ' * op.axis, xs[i].shape[op.axis])}" for i, part in op.joined
            ]
            return self._set(
                f"{self._np('concatenate')}(({', '.join(parts)}), axis={op.axis})", self._kind(op, xs), True
            )
        relation: Any = op.relations[0]
        x, shape = self.array(xs[0]), self._shape
        source, target = relation.source.box, relation.target.box or ()
        line = bool(source) and len(source) == 1 and bool(shape)
        small = line and x.kind is not None and x.kind == FLOAT and not self._over(x.kind)
        head = ":, " * op.axis
        match relation:
            case Point() if source == ():  # a set of one point has no axis
                return x
            case Point() if source and shape:
                at = ", ".join([str(int(i)) for i in np.unravel_index(relation.at, source)])
                return self._view(f"{x.text}[{head}{at}]", x.kind)
            case Point() if not shape and x.kind is not None and x.kind == FLOAT:  # (np.dtype(float) == None holds)
                return self._set(f"{x.text}.item({relation.at})", float)
            case Range(turned=False) if line and len(target) == 1:
                return self._view(f"{x.text}[{head}{slice_text(relation.slice(relation.target.size))}]", x.kind)
            case Gather() if line and numbers(shape) < tuning.COMPILED_PAIR_LOOPS_FROM:
                index = self._name(f"i{self._slot}", relation.index.reshape(target))
                return self._set(f"{self._np('take')}({x.text}, {index}, axis={op.axis})", x.kind, True)
            case Range(turned=True) if small and len(target) == 1:
                found = self._set(f"{self._np('zeros')}({shape})", x.kind, True)
                self.lines.append(f"{found.text}[{head}{slice_text(relation.slice(relation.source.size))}] = {x.text}")
                return found
            case Pairs() | Spanned() if (
                small and len(x.shape) == len(shape) == 1 and relation.count <= tuning.OVERWRITTEN_NUMBERS
            ):
                return self._few_pairs(relation, x)
            case _:
                return self._new(op, [x]) if _copies(relation) else self._call(op, [x])

    def _few_pairs(self, relation: Any, x: ArrayValue) -> ArrayValue:
        """Numbers added up where pairs say, in the order of the pairs."""
        source, target, times = relation.pairs()
        there = f"{self._np('take')}({x.text}, {self._name(f'i{self._slot}', source)})"
        if (np.asarray(times) != 1).any():
            there = f"{there} * {self._name(f'k{self._slot}', np.asarray(times, float))}"
        to = self._name(f"j{self._slot}", target)
        return self._set(f"{self._np('bincount')}({to}, {there}, {relation.target.size})", x.kind, True)


def _of(part: slice, head: str, length: int) -> str:
    """A slice of an axis as text; empty where it is all of it."""
    return "" if len(range(length)[part]) == length else f"[{head}{slice_text(part)}]"


def _copies(relation: Any) -> bool:
    """Whether a reduction gives an array of its own, which may be written to."""
    if isinstance(relation, Both):
        return _copies(relation.second) or (isinstance(relation.second, Diagonal) and _copies(relation.first))
    return isinstance(relation, (Function, Gather, Pairs, Segments, Triangular))
