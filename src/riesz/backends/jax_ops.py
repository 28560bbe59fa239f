"""Steps as lines of jnp: what each op of a program is called in generated code.

Arrays that the program holds, and those of relations, are arguments of the function (`Shared.arrays`); numbers are literals.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..convolution import Convolution, Turned
from ..opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..ops import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..programs.blocks import Block
from ..programs.fusing import SparseProduct
from ..relations.in_jax import prepared
from ..relations.kinds import Diagonal, Gather, Point, Range
from ..terms.primitives import RULES
from . import jax_functions, jax_steps
from .array_code import _placed, _word  # pyright: ignore[reportPrivateUsage]
from .jax_host import called_back

MOST = 3_000
"""Programs with more lines than this, loops written once, are not given to XLA: it would take minutes."""


class Unfit(Exception):
    """There is no JAX code for a program; the reason."""


class TooLong(Unfit):
    """XLA would take too long."""


class Value(NamedTuple):
    """A slot in generated code: an expression, its shape, whether it is a number that stands for an array of them; of an input, its type."""

    text: str
    shape: Any
    number: bool = False
    kind: Any = None


class Shared:
    """What all functions of one source have in common: names they refer to, arrays that are arguments, a count of lines."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"jnp": jnp, "inf": math.inf, "nan": math.nan, "float": float, "int": int}  # what generated lines mean by these
        self.arrays: dict[str, Any] = {}
        self.packs: dict[str, tuple[int, ...]] = {}  # arguments that are stacks of inputs, made outside: XLA takes long to stack a thousand arrays
        self.called: list[str] = []
        self.count = 0
        self._held: dict[int, tuple[str, Any]] = {}

    def name(self, base: str, value: Any) -> str:
        """A name for something the code refers to."""
        if self.names.setdefault(base, value) is value:
            return base
        name = f"{base}_{len(self.names)}"
        self.names[name] = value
        return name

    def array(self, value: Any) -> str:
        """The name of an argument: an array, or the arrays of a relation; the same for the same object."""
        found = self._held.get(id(value))
        if found is None:
            found = self._held[id(value)] = f"c{len(self._held)}", value
            self.arrays[found[0]] = value
        return found[0]

    def helper(self, name: str) -> str:
        """A function of jax_steps.py."""
        return self.name(name, getattr(jax_steps, name))

    def fresh(self, letter: str = "t") -> str:
        """A name that was not used."""
        self.count += 1
        if self.count > MOST:
            raise TooLong(f"it has more than {MOST:,} lines that do not repeat, which would take XLA minutes")
        return f"{letter}{self.count}"


class Steps:
    """Statements, and values that they compute; `slot` and `shape` are those of the step that is being written."""

    def __init__(self, shared: Shared, depth: int) -> None:
        self.lines: list[str] = []
        self.shared, self.depth = shared, depth
        self.shape: Any = ()

    def array(self, v: Value) -> str:
        """The text of an array of the value's shape."""
        return f"jnp.full({v.shape}, {v.text})" if v.number else v.text

    def set(self, text: str) -> str:
        """A line; the name it gives to what it computes."""
        name = self.shared.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def _value(self, text: str) -> Value:
        return Value(self.set(text), self.shape)

    def _applied(self, name: str, function: Any, xs: Sequence[Value]) -> Value:
        return self._value(f"{self.shared.name(_word(name), function)}({', '.join([self.array(x) for x in xs])})")

    def step(self, op: Any, xs: list[Value], shape: Any) -> Value:
        """The line or lines of a step."""
        self.shape = shape
        match op:
            case float():
                return self._combination((op,), xs)
            case Combination():
                return self._combination(op.coefficients, xs)
            case Elementwise():
                return self._elementwise(op, xs)
            case Contraction():
                return self._contraction(op, xs)
            case Reduction():
                return self._reduction(op, xs)
            case Reshape():
                return xs[0]._replace(shape=shape) if xs[0].number else self._value(f"{xs[0].text}.reshape({shape})")
            case Cast():
                return self._value(f"jnp.asarray({self.array(xs[0])}).astype({op.target.name!r})")
            case Select():
                return self._value(f"jnp.where({', '.join([x.text for x in self._spread(xs)])})")
            case Get():
                return Value(f"{xs[0].text}[{op.at}]", shape)
            case Take():
                return self._applied("take", jax_steps.take(op), xs)
            case Put():
                return self._applied("put", jax_steps.put(op), xs)
            case Convolution() | Turned():
                return self._applied("convolution", jax_steps.convolution(op), xs)
            case SparseProduct():
                return self._sparse(op, xs)
            case Strongly():
                y = self.step(op.op, xs, shape)
                return self._value(f"jnp.where(jnp.any({self.array(xs[op.k])} != 0), {self.array(y)}, 0)")
            case Block():
                from .jax_lines import block

                return Value(self.set(block(self, op, xs)), shape)
            case _:
                return self._other(op, xs)

    def _other(self, op: Any, xs: list[Value]) -> Value:
        found = jax_steps.transform(op) or jax_functions.found(op)
        if found is not None:
            return self._applied(op.title, found, xs)
        if isinstance(op, (Ruled, Declared)) and not (isinstance(op, Ruled) and op.smooth.name in ("lu", "eigh_pair")):
            self.shared.called.append(op.title)
            return self._applied(op.title, called_back(op, self.shape, False), xs)
        title = op.title if isinstance(op, (Discrete, Ruled)) else type(op).__name__
        raise Unfit(f"{title} has no form in JAX")

    def _spread(self, xs: Sequence[Value]) -> list[Value]:
        """Arguments of a step that broadcasts: numbers stay numbers if the others have the shape of the result."""
        shape = self.shape
        full = np.broadcast_shapes(*[x.shape for x in xs if not x.number]) == shape
        return [x if full or not x.number else Value(self.array(x), x.shape) for x in xs]

    def _combination(self, coefficients: Sequence[float], xs: list[Value]) -> Value:
        text, given = "", self._spread(xs)
        for i, (k, x) in enumerate(zip(coefficients, given, strict=True)):
            if i % 50 == 49:  # Python's parser does not like long sums
                text = self.set(text)
            if abs(k) == 1.0:
                text = f"{text} {'+' if k > 0 else '-'} {x.text}" if text else x.text if k > 0 else f"-{x.text}"
            else:
                text = f"{text} + {literal(k)} * {x.text}" if text else f"{literal(k)} * {x.text}"
        return self._value(text)

    def _elementwise(self, op: Elementwise, xs: list[Value]) -> Value:
        p, given = op.primitive, self._spread(xs)
        if p.rule is RULES["power"]:
            return self._value(_power(given[0].text, p.parameter))
        if p.rule is RULES["divide"]:
            return self._value(f"jnp.divide({given[0].text}, {given[1].text})")
        function = jax_functions.primitive(p)
        if function is None:
            self.shared.called.append(p.name)
            return self._applied(p.name, called_back(op, self.shape, True), xs)
        more = [] if p.parameter is None else [literal(p.parameter)]
        named = getattr(jnp, function.__name__, None) is function
        name = f"jnp.{function.__name__}" if named else self.shared.name(_word(p.name), function)
        return self._value(f"{name}({', '.join([*[x.text for x in given], *more])})")

    # -- products and sums --------------------------------------------------------------------------------------------

    def _contraction(self, op: Contraction, xs: list[Value]) -> Value:
        labels, out, shape = op.labels, op.out, self.shape
        distinct = all([len(set(ls)) == len(ls) for ls in (*labels, out)])
        sizes = op.sizes(tuple([x.shape for x in xs]))
        if len(xs) > 1:
            labels, xs = self._squeezed(labels, xs, {k for k, n in sizes.items() if n == 1 and k not in out})
        inside = {k for ls in labels for k in ls}
        if op.strong:
            given = tupled([self.array(x) for x in xs])
            return self._value(f"{self.shared.helper('strong_product')}({given}, {labels}, {out}, {op.strong}, {sizes})")
        if not distinct:
            return self._value(f"{self.shared.helper('product')}({tupled([self.array(x) for x in xs])}, {labels}, {out}, {sizes})")
        if len(xs) == 1:
            return self._single(op, xs[0])
        order = _pointwise(labels, out)
        if order is not None:
            text = self._multiplied(xs, labels, order)
            gone = tuple([i for i, k in enumerate(order) if k not in out])
            text = f"({text}).sum({gone[0] if len(gone) == 1 else gone})" if gone else text
            order = tuple([k for k in order if k in out])
            text = _placed(f"({text})" if order != out and not gone else text, order, out) if order != out else text
            return self._value(text if set(order) == set(out) else f"jnp.broadcast_to({text}, {shape})")
        kept = tuple([k for k in out if k in inside])
        text = f"{self.shared.helper('einsum')}({jax_steps.letters(labels, kept)!r}, {', '.join([self.array(x) for x in xs])})"
        return self._value(text if kept == out else f"jnp.broadcast_to({_placed(text, kept, out)}, {shape})")

    def _squeezed(self, labels: Sequence[Any], xs: Sequence[Value], gone: set[int]) -> Any:
        """Arguments without the axes of size 1 that are summed over."""
        found: list[tuple[Any, Value]] = []
        for ls, x in zip(labels, xs, strict=True):
            shape = tuple([n for k, n in zip(ls, x.shape, strict=True) if k not in gone])
            text = x.text if x.number or shape == x.shape else f"{x.text}.reshape({shape})"
            found.append((tuple([k for k in ls if k not in gone]), Value(text, shape, x.number)))
        return tuple([ls for ls, _ in found]), [x for _, x in found]

    def _multiplied(self, xs: Sequence[Value], labels: Sequence[Any], order: Any) -> str:
        """A product with axes in an order; numbers stay numbers where the other factors have all axes."""
        covered = {k for x, ls in zip(xs, labels, strict=True) if not x.number for k in ls} == set(order)
        return " * ".join([x.text if x.number and covered else _placed(self.array(x), ls, order) for x, ls in zip(xs, labels, strict=True)])

    def _single(self, op: Contraction, x: Value) -> Value:
        labels, out, shape = op.labels[0], op.out, self.shape
        if x.number and set(labels) <= set(out):
            return Value(x.text, shape, True)
        gone = tuple([i for i, k in enumerate(labels) if k not in out])
        kept = tuple([k for k in labels if k in out])
        text = self.array(x)
        if gone:
            text = f"{text}.sum({gone[0] if len(gone) == 1 else gone})"
        text = _placed(text, kept, out)
        return self._value(f"jnp.broadcast_to({text}, {shape})" if len(kept) < len(out) else text)

    def _reduction(self, op: Reduction, xs: list[Value]) -> Value:
        shape = self.shape
        if len(xs) == 1:
            return self._value(self._red(op, op.relations[0], xs[0], shape))
        box = op.relations[0].target.box or ()
        tiles = [r.tile for r in op.relations]
        starts = [-1 if t is None else t.start or 0 for t in tiles]
        lead, size, trail = math.prod(shape[: op.axis]), op.relations[0].target.size, math.prod(shape[op.axis + len(box) :])
        flat = [f"{self.array(x)}.reshape({(lead, r.source.size, trail)})" for x, r in zip(xs, op.relations, strict=True)]
        if op.covers and all([t is not None and t.step in (None, 1) for t in tiles]):
            order = sorted([i for i, r in enumerate(op.relations) if r.source.size], key=lambda i: starts[i])
            return self._value(f"jnp.concatenate([{', '.join([flat[i] for i in order])}], 1).reshape({shape})")
        kinds = ", ".join([self.array(x) for x in xs])
        total = self.set(f"jnp.zeros({(lead, size, trail)}, jnp.result_type({kinds}))")
        for r, tile, x, text in zip(op.relations, tiles, xs, flat, strict=True):
            if tile is not None:
                total = self.set(f"{total}.at[:, {_slice_text(tile)}].add({text})")
            else:
                total = self.set(f"{total} + {self._red(op, r, x, (lead, size, trail))}")
        return self._value(f"{total}.reshape({shape})")

    def _red(self, op: Reduction, relation: Any, x: Value, shape: Any) -> str:
        """red_R of one value."""
        source, target, text = relation.source.box or (), relation.target.box or (), self.array(x)
        head = ":, " * op.axis
        match relation:
            case Diagonal():
                return f"{text}.reshape({shape})"
            case Point():
                at = ", ".join([str(int(i)) for i in np.unravel_index(relation.at, source)]) if source else "()"
                return f"{text}[{head}{at}].reshape({shape})" if source else f"{text}.reshape({shape})"
            case Range(turned=False) if len(source) == 1 and len(target) == 1:
                return f"{text}[{head}{_slice_text(relation.slice(relation.target.size))}].reshape({shape})"
            case Gather() if len(source) == 1:
                index = self.shared.array(prepared(relation)[1])
                return f"jnp.take({text}, {index}, {op.axis}, mode='clip').reshape({shape})"
        code, arrays = prepared(relation)
        lead = math.prod(x.shape[: op.axis])
        wide = (lead, relation.source.size, math.prod(x.shape[op.axis + len(source) :]))
        return f"{self.shared.helper('red')}({self.shared.name(f'R_{_word(code.how)}', code)}, {self.shared.array(arrays)}, {text}, {wide}, {shape})"

    def _sparse(self, op: SparseProduct, xs: list[Value]) -> Value:
        """Gathered, weighed, summed up: three steps for XLA to fuse."""
        x, w = [self.array(v) for v in xs]
        shape = self.shape
        count, trail = op.gather.target.size, math.prod(shape[1:])
        index = self.shared.array(prepared(op.gather)[1])
        rows = self.set(f"jnp.take({x}, {index}, 0, mode='clip').reshape({(1, count, trail)}) * {w}.reshape(({count}, 1))")
        code, arrays = prepared(op.scatter)
        return self._value(
            f"{self.shared.helper('red')}({self.shared.name('R_sum', code)}, {self.shared.array(arrays)}, {rows}, {(1, count, trail)}, {shape})"
        )


def _pointwise(labels: Sequence[Any], out: Any) -> Any:
    """The order of labels for a product that is not one of matrices: without sums, or a batch of sums that XLA fuses with its factors."""
    inside = {k for ls in labels for k in ls}
    if inside <= set(out):
        return tuple([k for k in out if k in inside])
    largest = max(labels, key=len)
    batch = [k for k in out if all([k in ls for ls in labels])]
    return largest if batch and set(largest) == inside else None


def _power(x: str, k: float) -> str:
    if k == 0.5:
        return f"jnp.sqrt({x})"
    if k == -1.0:
        return f"1.0 / {x}"
    return f"{x} ** {literal(int(k) if k == int(k) and abs(k) <= 64 else k)}" if math.isfinite(k) else f"jnp.power({x}, {literal(k)})"


def literal(k: Any) -> str:
    """A number, in parentheses if it is negative."""
    text = repr(k)
    return f"({text})" if text[0] == "-" else text


def tupled(texts: Sequence[str]) -> str:
    """A tuple."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _slice_text(s: slice) -> str:
    step = f":{s.step}" if s.step not in (None, 1) else ""
    return f"{'' if s.start is None else s.start}:{'' if s.stop is None else s.stop}{step}"
