"""Steps as lines of jnp: what each op of a program is called in generated code.

Arrays that the program holds, and those of relations, are arguments of the function (`Shared.arrays`); numbers are
literals.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.axis.slices import Tiled
from ...programs.passes.deferring import Deferred
from ...programs.passes.fusing import SparseProduct
from ...programs.sub_programs import Block, Call, Loop
from ...relations.jax.reduction_in_jax import prepared
from ...relations.kinds import Diagonal, Gather, Point, Range
from ...relations.spanned import as_spanned, line_slice
from ...runtime import tuning
from ...terms.primitives import RULES
from ..source_text import literal, new_name, placed, slice_text, tupled, weighted_sum, word
from . import jax_functions, jax_steps
from .jax_host import called_back


class NoJaxCode(Exception):
    """There is no JAX code for a program; the reason."""


class TooLong(NoJaxCode):
    """XLA would take too long."""


class JaxValue(NamedTuple):
    """A slot in generated code: an expression, its shape, whether it is one number for all; of an input, its type."""

    text: str
    shape: Any
    number: bool = False
    kind: Any = None


class Shared:
    """What all functions of one source have in common: names, arrays that are arguments, a count of lines."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"jnp": jnp, "inf": math.inf, "nan": math.nan, "float": float, "int": int}
        self.arrays: dict[str, Any] = {}
        self.packs: dict[str, tuple[int, ...]] = {}  # stacks of inputs, made outside: XLA takes long for many of them
        self.weak: set[str] = set()  # arrays of Python's numbers: of any type
        self.cut: dict[str, tuple[str, ...]] = {}  # arrays with a row for each device along axes of a mesh
        self.called: list[str] = []
        self.count = 0
        self._held: dict[int, tuple[str, Any]] = {}

    def name(self, base: str, value: Any) -> str:
        """A name for something the code refers to."""
        return new_name(self.names, base, value)

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
        if self.count > tuning.JAX_LINES:
            limit = f"more than {tuning.JAX_LINES:,} lines that do not repeat"
            raise TooLong(f"it has {limit}, which would take XLA minutes")
        return f"{letter}{self.count}"


LINES = OpRules[Callable[["JaxSteps", Any, list[JaxValue]], JaxValue]]("backends.jax.jax_ops.LINES")
"""The line or lines of a step, from the values of its arguments."""


class JaxSteps:
    """Statements, and values that they compute; `slot` and `shape` are those of the step that is being written."""

    def __init__(self, shared: Shared, depth: int) -> None:
        self.lines: list[str] = []
        self.shared, self.depth = shared, depth
        self.shape: Any = ()
        self.products = 0  # of matrices
        self.light = True  # XLA compiles the lines fast: no loops, no calls

    def array(self, v: JaxValue) -> str:
        """The text of an array of the value's shape."""
        return f"jnp.full({v.shape}, {v.text})" if v.number else v.text

    def set(self, text: str) -> str:
        """A line; the name it gives to what it computes."""
        name = self.shared.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def _value(self, text: str) -> JaxValue:
        return JaxValue(self.set(text), self.shape)

    def _arguments(self, xs: Sequence[JaxValue]) -> str:
        return ", ".join([self.array(x) for x in xs])

    def _applied(self, name: str, function: Any, xs: Sequence[JaxValue]) -> JaxValue:
        self.light = False
        return self._value(f"{self.shared.name(word(name), function)}({self._arguments(xs)})")

    def _wide(self, text: str, kept: Any, out: Any) -> JaxValue:
        """An array with some labels as one with all of them, in their order."""
        text = placed(text, kept, out)
        return self._value(f"jnp.broadcast_to({text}, {self.shape})" if len(kept) < len(out) else text)

    def step(self, op: Any, xs: list[JaxValue], shape: Any) -> JaxValue:
        """The line or lines of a step."""
        self.shape = shape
        return LINES[type(op)](self, op, xs)

    LINES("2.0 * x", float)(lambda self, op, xs: self._combination((op,), xs))
    LINES("x + 2.0 * y", Combination)(lambda self, op, xs: self._combination(op.coefficients, xs))
    LINES("astype", Cast)(
        lambda self, op, xs: self._value(f"jnp.asarray({self.array(xs[0])}).astype('{op.target.name}')")
    )
    LINES("where", Select)(lambda self, op, xs: self._value(f"jnp.where({', '.join(self._spread(xs))})"))
    LINES("t[0]", Get)(lambda self, op, xs: JaxValue(f"{xs[0].text}[{op.at}]", self.shape))
    LINES("take", Take)(lambda self, op, xs: self._applied("take", jax_steps.take(op), xs))
    LINES("at[…].add", Put)(lambda self, op, xs: self._applied("put", jax_steps.put(op), xs))

    @LINES("fft, rfft; others none", Single, Transform)
    def _transform(self, op: Any, xs: list[JaxValue]) -> JaxValue:
        found = jax_steps.TRANSFORMS.get(type(op))
        return self._refused(op, xs) if found is None else self._applied(op.title, partial(found, op), xs)

    @LINES("convolve", Convolution, ExchangedLeg)
    def _convolution(self, op: Any, xs: list[JaxValue]) -> JaxValue:
        return self._applied("convolution", jax_steps.convolution(op), xs)

    @LINES("reshape", Reshape)
    def _reshape(self, op: Reshape, xs: list[JaxValue]) -> JaxValue:
        return xs[0]._replace(shape=self.shape) if xs[0].number else self._value(f"{xs[0].text}.reshape({self.shape})")

    @LINES("the op inside, and where", Strongly)
    def _strongly(self, op: Strongly, xs: list[JaxValue]) -> JaxValue:
        y = self.step(op.op, xs, self.shape)
        mixes = op.op.smooth.mixes if isinstance(op.op, Ruled) else None
        within = "" if mixes is None else f", axis={mixes}, keepdims=True"  # in each part
        return self._value(f"jnp.where(jnp.any({self.array(xs[op.k])} != 0{within}), {self.array(y)}, 0)")

    @LINES("functions of the programs inside, scan, switch", Call, Loop)
    def _block(self, op: Block, xs: list[JaxValue]) -> JaxValue:
        from .jax_lines import block

        shape, self.light = self.shape, False
        return JaxValue(self.set(block(self, op, xs)), shape)

    @LINES("jnp; others by a call back", Ruled)
    @LINES("a call back", Declared)
    def _other(self, op: Any, xs: list[JaxValue]) -> JaxValue:
        if isinstance(op, Ruled) and op.smooth.name == "solve_map" and (bands := self._tridiagonal(op, xs)) is not None:
            return bands
        found = jax_functions.found(op)
        if found is None and isinstance(op, Ruled) and op.smooth.name in ("lu", "eigh_pair"):
            return self._refused(op, xs)
        if found is None:
            self.shared.called.append(op.title)
        return self._applied(op.title, found or called_back(op, self.shape, False), xs)

    def _tridiagonal(self, op: Ruled, xs: list[JaxValue]) -> JaxValue | None:
        """A⁻¹b for a tridiagonal A(p): its diagonals are computed from p, and JAX has a solver for them."""
        from .jax_lines import block

        given = dict(op.parameters)
        bands = given["family"].bands()
        if bands is None or max(bands[1:]) > 1:
            return None
        program, lower, upper = bands
        shape, self.shape = self.shape, program.shapes[program.outputs[0]]
        diagonals = JaxValue(self.set(f"{block(self, Call((program,)), xs[:-1])}[0]"), self.shape)
        self.shape = shape
        solve = partial(jax_functions.tridiagonal, lower=lower, upper=upper, transposed=given["transposed"])
        return self._applied("solve_tridiagonal", solve, [diagonals, xs[-1]])

    @LINES("jnp; others refused", Discrete)
    def _discrete(self, op: Discrete, xs: list[JaxValue]) -> JaxValue:
        found = jax_functions.found(op)
        return self._refused(op, xs) if found is None else self._applied(op.title, found, xs)

    @LINES("refused", Deferred, Tiled)
    def _refused(self, op: Any, xs: list[JaxValue]) -> JaxValue:
        raise NoJaxCode(f"{op.title} has no form in JAX")

    def _spread(self, xs: Sequence[JaxValue]) -> list[str]:
        """Arguments of a step that broadcasts: numbers stay numbers if the others have the shape of the result."""
        full = np.broadcast_shapes(*[x.shape for x in xs if not x.number]) == self.shape
        return [x.text if full else self.array(x) for x in xs]

    def _combination(self, coefficients: Sequence[float], xs: list[JaxValue]) -> JaxValue:
        ks, texts = list(coefficients), self._spread(xs)
        while len(texts) > 50:  # Python's parser does not like long sums
            ks, texts = [1.0, *ks[49:]], [self.set(weighted_sum(ks[:49], texts[:49])), *texts[49:]]
        return self._value(weighted_sum(ks, texts))

    @LINES("jnp; others by a call back", Elementwise)
    def _elementwise(self, op: Elementwise, xs: list[JaxValue]) -> JaxValue:
        p, given = op.primitive, self._spread(xs)
        if p.rule is RULES["power"]:
            return self._value(_power(given[0], p.parameter))
        function = jax_functions.primitive(p)
        if function is None:
            self.shared.called.append(p.name)
            return self._applied(p.name, called_back(op, self.shape, True), xs)
        named = getattr(jnp, function.__name__, None) is function
        name = f"jnp.{function.__name__}" if named else self.shared.name(word(p.name), function)
        more = [] if p.parameter is None else [literal(p.parameter)]
        return self._value(f"{name}({', '.join([*given, *more])})")

    # -- products and sums --------------------------------------------------------------------------------------------

    @LINES("*, sum, einsum", Contraction)
    def _contraction(self, op: Contraction, xs: list[JaxValue]) -> JaxValue:
        labels, out = op.labels, op.out
        distinct = all([len(set(ls)) == len(ls) for ls in (*labels, out)])
        sizes = op.sizes(tuple([x.shape for x in xs]))
        if len(xs) > 1:
            labels, xs = self._squeezed(labels, xs, {k for k, n in sizes.items() if n == 1 and k not in out})
        inside = {k for ls in labels for k in ls}
        if op.strong or not distinct:
            self.light = False
            name, strong = ("strong_product", f"{op.strong}, ") if op.strong else ("product", "")
            given = tupled([self.array(x) for x in xs])
            return self._value(f"{self.shared.helper(name)}({given}, {labels}, {out}, {strong}{sizes})")
        if len(xs) == 1:
            return self._single(op, xs[0])
        order = _pointwise(labels, out)
        if order is None:
            self.products += 1
            kept = tuple([k for k in out if k in inside])
            pattern = jax_steps.letters(labels, kept)
            return self._wide(f"{self.shared.helper('einsum')}({pattern!r}, {self._arguments(xs)})", kept, out)
        text, gone = self._multiplied(xs, labels, order), _gone(order, out)
        order = tuple([k for k in order if k in out])
        return self._wide(f"({text}){gone}" if gone or order != out else text, order, out)

    def _squeezed(self, labels: Sequence[Any], xs: Sequence[JaxValue], gone: set[int]) -> Any:
        """Arguments without the axes of size 1 that are summed over."""
        found: list[JaxValue] = []
        for ls, x in zip(labels, xs, strict=True):
            shape = tuple([n for k, n in zip(ls, x.shape, strict=True) if k not in gone])
            text = x.text if x.number or shape == x.shape else f"{x.text}.reshape({shape})"
            found.append(JaxValue(text, shape, x.number))
        return tuple([tuple([k for k in ls if k not in gone]) for ls in labels]), found

    def _multiplied(self, xs: Sequence[JaxValue], labels: Sequence[Any], order: Any) -> str:
        """A product with axes in an order; numbers stay numbers where the other factors have all axes."""
        given = list(zip(xs, labels, strict=True))
        covered = {k for x, ls in given if not x.number for k in ls} == set(order)
        texts = [x.text if x.number and covered else placed(self.array(x), ls, order) for x, ls in given]
        return " * ".join(texts)

    def _single(self, op: Contraction, x: JaxValue) -> JaxValue:
        labels, out = op.labels[0], op.out
        if x.number and set(labels) <= set(out):
            return JaxValue(x.text, self.shape, True)
        return self._wide(f"{self.array(x)}{_gone(labels, out)}", tuple([k for k in labels if k in out]), out)

    @LINES("x[2:], take, concatenate, segment sums", Reduction)
    def _reduction(self, op: Reduction, xs: list[JaxValue]) -> JaxValue:
        shape = self.shape
        if len(xs) == 1:
            return self._value(self._red(op, op.relations[0], xs[0], shape))
        box = op.relations[0].target.box or ()
        tiles = [r.tile for r in op.relations]
        starts = [-1 if t is None else t.start or 0 for t in tiles]
        size = op.relations[0].target.size
        lead, trail = math.prod(shape[: op.axis]), math.prod(shape[op.axis + len(box) :])
        given = list(zip(xs, op.relations, strict=True))
        flat = [f"{self.array(x)}.reshape({(lead, r.source.size, trail)})" for x, r in given]
        if op.covers and all([t is not None and t.step in (None, 1) for t in tiles]):
            order = sorted([i for i, r in enumerate(op.relations) if r.source.size], key=lambda i: starts[i])
            return self._value(f"jnp.concatenate([{', '.join([flat[i] for i in order])}], 1).reshape({shape})")
        if len(xs) <= tuning.JAX_PADDED_ARRAYS:
            return self._value(f"{self._sum_of_slices(op, xs, (lead, size, trail))}.reshape({shape})")
        total = self.set(f"jnp.zeros({(lead, size, trail)}, jnp.result_type({self._arguments(xs)}))")
        for r, tile, x, text in zip(op.relations, tiles, xs, flat, strict=True):
            red = "" if tile is not None else self._red(op, r, x, (lead, size, trail))
            total = self.set(f"{total} + {red}" if tile is None else f"{total}.at[:, {slice_text(tile)}].add({text})")
        return self._value(f"{total}.reshape({shape})")

    def _sum_of_slices(self, op: Reduction, xs: Sequence[JaxValue], wide: tuple[int, int, int]) -> str:
        """Σ of values of which most are slices that go to slices: those that follow one another are joined, others
        padded."""
        lead, size, trail = wide
        runs: list[list[tuple[str, Run]]] = []
        texts: list[str] = []
        for x, r in zip(xs, op.relations, strict=True):
            moved = _slice_to_slice(r)
            if moved is None:
                texts.append(self._red(op, r, x, wide))
                continue
            cut, run = moved
            text = f"{self.array(x)}.reshape({(lead, r.source.size, trail)})"
            runs.append([(text if cut == slice(0, r.source.size, 1) else f"{text}[:, {slice_text(cut)}]", run)])
        runs.sort(key=lambda parts: parts[0][1].start)
        for first in runs:
            for other in runs:
                last = first[-1][1] if first else None
                if other is not first and other and last and last.before(other[0][1]):
                    first.extend(other)
                    other.clear()
        for parts in filter(None, runs):
            names, at, last = [text for text, _ in parts], parts[0][1], parts[-1][1]
            text = names[0] if len(names) == 1 else f"jnp.concatenate({tupled(names)}, 1)"
            room = at.start, size - last.end, at.step - 1
            texts.append(f"{self.shared.helper('padded')}({text}, {room})" if any(room) else text)
        return f"({' + '.join(texts)})" if len(texts) > 1 else texts[0]

    def _red(self, op: Reduction, relation: Any, x: JaxValue, shape: Any) -> str:
        """red_R of one value."""
        source, target, text = relation.source.box or (), relation.target.box or (), self.array(x)
        head = ":, " * op.axis
        match relation:
            case Point() if source:
                at = ", ".join([str(int(i)) for i in np.unravel_index(relation.at, source)])
                return f"{text}[{head}{at}].reshape({shape})"
            case Point() | Diagonal():
                return f"{text}.reshape({shape})"
            case Range(turned=False) if len(source) == 1 and len(target) == 1:
                return f"{text}[{head}{slice_text(relation.slice(relation.target.size))}].reshape({shape})"
            case Gather() if len(source) == 1:
                index = self.shared.array(prepared(relation)[1])
                return f"jnp.take({text}, {index}, {op.axis}, mode='clip').reshape({shape})"
        wide = (math.prod(x.shape[: op.axis]), relation.source.size, math.prod(x.shape[op.axis + len(source) :]))
        return self._segments(relation, text, wide, shape)

    def _segments(self, relation: Any, text: str, wide: Any, shape: Any, name: str = "") -> str:
        code, arrays = prepared(relation)
        self.light &= code.how in ("slices", "slice", "place")
        name = self.shared.name(name or f"R_{word(code.how)}", code)
        return f"{self.shared.helper('red')}({name}, {self.shared.array(arrays)}, {text}, {wide}, {shape})"

    @LINES("gather, product, segment sum", SparseProduct)
    def _sparse(self, op: SparseProduct, xs: list[JaxValue]) -> JaxValue:
        """Gathered, weighed, summed up: three steps for XLA to fuse."""
        x, w = [self.array(v) for v in xs]
        count, trail = op.gather.target.size, math.prod(self.shape[1:])
        index, wide = self.shared.array(prepared(op.gather)[1]), (1, count, trail)
        rows = self.set(f"jnp.take({x}, {index}, 0, mode='clip').reshape({wide}) * {w}.reshape(({count}, 1))")
        return self._value(self._segments(op.scatter, rows, wide, self.shape, "R_sum"))


def _pointwise(labels: Sequence[Any], out: Any) -> Any:
    """The order of labels for a product without sums, or with sums that XLA fuses; None for products of matrices."""
    inside = {k for ls in labels for k in ls}
    if inside <= set(out):
        return tuple([k for k in out if k in inside])
    largest = max(labels, key=len)
    batch = [k for k in out if all([k in ls for ls in labels])]
    return largest if batch and set(largest) == inside else None


class Run(NamedTuple):
    """Places start, start + step, …, below end."""

    start: int
    end: int
    step: int

    def before(self, other: Run) -> bool:
        """Whether another run goes on where this one ends."""
        return self.step == other.step == 1 and self.end == other.start


def _slice_to_slice(relation: Any) -> tuple[slice, Run] | None:
    """The slice of one axis that a relation takes, and where it puts it, in the same order; None for others."""
    found = as_spanned(relation)
    pieces = found.pieces if found is not None else []
    if found is None or len(pieces) != 1 or found.times != 1 or len(found.left) != 1 or len(found.right) != 1:
        return None
    (left, right), sizes = (pieces[0].left[0], pieces[0].right[0]), pieces[0].sizes
    start, step, label = right
    count = 1 if label < 0 else sizes[label]
    if left[2] != label or step <= 0:
        return None
    cut = line_slice(left, sizes) if label >= 0 else slice(left[0], left[0] + 1, 1)
    return cut, Run(start, start + (count - 1) * step + 1, step if count > 1 else 1)


def _power(x: str, k: float) -> str:
    if k == 0.5:
        return f"jnp.sqrt({x})"
    if k == -1.0:
        return f"1.0 / {x}"
    whole = math.isfinite(k) and k == int(k) and abs(k) <= 64
    return f"{x} ** {literal(int(k) if whole else k)}" if math.isfinite(k) else f"jnp.power({x}, {literal(k)})"


def _gone(labels: Any, out: Any) -> str:
    """The sum over labels that are not in the result."""
    axes = tuple([i for i, k in enumerate(labels) if k not in out])
    return f".sum({axes[0] if len(axes) == 1 else axes})" if axes else ""
