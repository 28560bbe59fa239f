"""Which slots of a program have a long axis, and what each step does at one position of it.

The axis is followed from the outputs back: `demands` says which axis of each argument runs along with axis k of the
result. An argument without one is needed whole, before anything runs along the axis. A gather along the axis reads a
table, `AxisRead`, at the row that belongs to the position.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape, Single
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...relations import Gather, Relation
from ...relations.index_algebra import Affine, IndexTable, along, labels_of
from ...relations.spans import Span
from ...spaces.formal_vectors import Formal, weak
from ...terms.primitives import RULES
from ..program import INPUT, Constant, Program
from ..sub_programs import Block
from .axis_labels import axis_labels
from .scalars import EQUAL, ONE, ZERO, Exact, Load, Operation, Scalars, Small, convert

Axes = list[int | None]
MIXING = (Single, Transform, Take, Put, Strongly, Ruled, Declared, Get, Convolution, ExchangedLeg, Block)
"""Ops that may mix positions of any axis."""


class MixesPositions(Exception):
    """A step that mixes positions of the long axis."""


class AxisRead(NamedTuple):
    """A slot read along the long axis: at start + step·p of one axis, or in rows of a table, by an index array."""

    slot: int
    axes: tuple[int, ...]
    start: int = 0
    step: int = 1
    rows: int = -1  # the number of the index array


# -- following the axis back ------------------------------------------------------------------------------


def followed(program: Program, outputs: Sequence[int], n: int, axis: int) -> tuple[dict[int, int], list[int]]:
    """The long axis of each slot that has it (of outputs `axis`, or another of size n), and the slots needed whole."""
    shapes = program.shapes
    long: dict[int, int] = {}
    whole: set[int] = set()
    for slot in outputs:
        fitting = [k for k, size in enumerate(shapes[slot]) if size == n]
        if fitting:
            long[slot] = axis if axis in fitting else fitting[0]
        else:
            whole.add(slot)
    for slot in range(len(program.ops) - 1, -1, -1):
        op, args = program.ops[slot], program.args[slot]
        if slot in whole:
            whole.update(args)
        elif slot in long and op is not INPUT and type(op) is not Constant:
            for a, k in zip(args, demands(op, [shapes[a] for a in args], shapes[slot], long[slot]), strict=True):
                if k is None:
                    whole.add(a)
                elif long.setdefault(a, k) != k:
                    raise MixesPositions
    return long, sorted(whole)


AXES = OpRules[Callable[[Any, Sequence[Shape], Shape, int], Axes]]("programs.axis.along.AXES")
"""The axis of each argument that runs along with axis k of the result; None for arguments that are read whole."""


def demands(op: Any, shapes: Sequence[Shape], shape: Shape, k: int) -> Axes:
    """The axis of each argument that runs along with axis k of the result."""
    return AXES[type(op)](op, shapes, shape, k)


def mixing(*_: Any) -> Any:
    """Steps that are not looked into."""
    raise MixesPositions


AXES("refused: mixes positions", *MIXING)(mixing)


@AXES("the same axis, broadcast", float, Elementwise, Combination, Select, Cast)
@AXES("the axis of its label", Contraction)
def _labelled(op: Any, shapes: Sequence[Shape], shape: Shape, k: int) -> Axes:
    out, given = axis_labels(op, shapes, shape)
    return under_label(out[k], (out, *given))[1:]


@AXES("the same axis, where elementwise", Discrete)
def _discrete(op: Discrete, shapes: Sequence[Shape], shape: Shape, k: int) -> Axes:
    whole = op.shaped is not None or "axis" in dict(op.parameters)  # it looks at a whole axis
    return (mixing if whole else _labelled)(op, shapes, shape, k)


AXES("through the relations", Reduction)(lambda op, shapes, shape, k: [_through(r, op.axis, k) for r in op.relations])


@AXES("an axis that is kept", Reshape)
def _reshape(op: Reshape, shapes: Sequence[Shape], shape: Shape, k: int) -> Axes:
    axes = _labelled(op, shapes, shape, k)
    return mixing() if axes == [None] and shape[k] != 1 else axes


def under_label(label: int, labels: Sequence[Sequence[int]]) -> Axes:
    """The axis of each array that has a label; none has it twice."""
    if any([ls.count(label) > 1 for ls in labels]):
        raise MixesPositions
    return [ls.index(label) if label in ls else None for ls in labels]


def _through(relation: Relation, axis: int, k: int) -> int | None:
    """The axis of a reduction's argument behind axis k of its result; None for a gather."""
    source, target = relation.source.box, relation.target.box
    assert source is not None and target is not None
    if k < axis:
        return k
    if k >= axis + len(target):
        return k - len(target) + len(source)
    label = _label(relation, k - axis)
    if label is None:
        return None
    span = cast(Span, relation.span)
    users = [i for i, m in enumerate(span.left) if label in labels_of(m)]
    alone = len(users) == 1 and type(span.left[users[0]]) is Affine and span.left[users[0]] == along(label)
    return axis + users[0] if alone and source[users[0]] == span.sizes[label] else None


def _label(relation: Relation, j: int) -> int | None:
    """The label of a span that is axis j of the target; None for a gather that has no such span."""
    span, box = relation.span, relation.target.box or ()
    if span is not None and type(m := span.right[j]) is Affine and len(m.terms) == 1:
        label = m.terms[0][0]
        others = [label for i, other in enumerate(span.right) if i != j for label in labels_of(other)]
        if m == along(label) and span.sizes[label] == box[j] and label not in others:
            return label
    if isinstance(relation, Gather):
        return None
    raise MixesPositions


def kind_of(op: Any, kinds: Sequence[Any]) -> Any:
    """The type of a step's result, as NumPy decides it; the type float is that of numbers that take any other."""
    samples = [1.0 if kind is float else np.empty(0, kind) for kind in kinds]
    match op:
        case Elementwise(primitive=p) if set(kinds) != {float}:
            return np.asarray(p.rule.array(*samples, *([] if p.parameter is None else [p.parameter]))).dtype
        case Discrete():
            return np.asarray(op.function(*samples, **dict(op.parameters))).dtype
        case Cast():
            return op.target
        case Select():
            return np.result_type(*samples[1:])
        case _:
            more = [op] if type(op) is float else []
            return float if set(kinds) == {float} else np.result_type(*samples, *more)


# -- one position of it -----------------------------------------------------------------------------------


NODES = OpRules[Callable[["ComponentNodes", Any, list[Any], Shape], Any]]("programs.axis.along.NODES")
"""The nodes of a step that runs along the axis, from those of its arguments."""


class ComponentNodes:
    """Nodes for the components of slots: arrays of node numbers, in the shape of the slot with 1 for the long axis."""

    def __init__(
        self, program: Program, long: dict[int, int], whole: Sequence[int], n: int, most: int, exact: bool = False
    ) -> None:
        self.program, self.long, self.n = program, long, n
        self.graph, self._exact = Exact(most) if exact else Scalars(most), exact
        self.sources: list[AxisRead] = []
        self.indices: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._alive: list[Any] = []
        self._whole = set(whole)
        self._moved = program.dependent(long)
        self._small: dict[int, Any] = {}
        self._rows: dict[int, Any] = {}

    def row(self, slot: int) -> Any:
        """The nodes of a slot that has the long axis."""
        if slot not in self._rows:
            self._rows[slot] = self._row(slot)
        return self._rows[slot]

    def _row(self, slot: int) -> Any:
        program, k = self.program, self.long[slot]
        op, args, shape = program.ops[slot], program.args[slot], program.shapes[slot]
        rest, thin = (*shape[:k], *shape[k + 1 :]), (*shape[:k], 1, *shape[k + 1 :])
        self.graph.room(math.prod(thin))
        if type(op) is Constant and (value := _repeated(op.value, k)) is not None:
            return np.expand_dims(self._constants(value, rest), k)
        if slot in self._whole or op is INPUT or type(op) is Constant:
            return _nodes([self._load(AxisRead(slot, (k,)), at) for at in np.ndindex(*rest)], thin)
        axes = demands(op, [program.shapes[a] for a in args], shape, k)
        if type(op) is Reduction:
            return self._reduction(op, args, axes, thin, k)
        xs = [self.row(a) if i is not None else self.small(a) for a, i in zip(args, axes, strict=True)]
        return self._step(op, xs, thin)

    def small(self, slot: int) -> Any:
        """The nodes of all components of a slot that is there whole."""
        if slot not in self._small:
            op, shape = self.program.ops[slot], self.program.shapes[slot]
            if self._moved[slot] and self.n > 1 and self.n in shape:  # every position meets every other
                raise MixesPositions
            self.graph.room(math.prod(shape))
            if type(op) is Constant:
                self._small[slot] = self._constants(weak(op.value), shape)
            else:
                self._small[slot] = _nodes([self.graph.leaf(Small(slot, i)) for i in range(math.prod(shape))], shape)
        return self._small[slot]

    def _constants(self, value: Any, shape: Shape) -> Any:
        """Numbers as nodes. In an array of zeros and ±1 (a selection, say) zeros are structure, unless `exact`."""
        self.graph.room(math.prod(shape))
        if not np.ndim(value):
            one = self.graph.fixed(value[()] if isinstance(value, np.ndarray) else value)
            return np.broadcast_to(np.intp(one), shape)
        if value.dtype.kind == "f" and not self._exact and bool(np.isin(value, (-1.0, 0.0, 1.0)).all()):
            signs = np.array([self.graph.fixed(-1.0), ZERO, ONE])
            return signs[(np.broadcast_to(value, shape) + 1.0).astype(int)]
        return _nodes([self.graph.fixed(x) for x in np.broadcast_to(value, shape).reshape(-1)], shape)

    def _load(self, source: AxisRead, at: tuple[int, ...]) -> int:
        if source not in self._numbers:
            self._numbers[source] = len(self.sources)
            self.sources.append(source)
        return self.graph.leaf(Load(self._numbers[source], at))

    def _index(self, array: Any) -> int:
        """The number of an index array."""
        key = ("index", id(array))
        if key not in self._numbers:
            self._numbers[key] = len(self.indices)
            self.indices.append(array)
        return self._numbers[key]

    # -- steps -------------------------------------------------------------------------------------------

    def _step(self, op: Any, xs: list[Any], shape: Shape) -> Any:
        return NODES[type(op)](self, op, xs, shape)

    NODES("refused: mixes positions", *MIXING)(mixing)
    NODES("sums by the pairs of its relations, see `_reduction`", Reduction)(mixing)
    NODES("the same nodes", Reshape)(lambda self, op, xs, shape: xs[0].reshape(shape))

    @NODES("k · x", float)
    @NODES("Σ kᵢ · xᵢ", Combination)
    @NODES("select", Select)
    @NODES("its scalar function", Elementwise, Discrete)
    @NODES("conversion", Cast)
    def _pointwise(self, op: Any, xs: list[Any], shape: Shape) -> Any:
        return _each(self._function(op), xs, shape)

    def _function(self, op: Any) -> Callable[[tuple[int, ...]], int]:
        """A step that is the same function of numbers everywhere, as a function of nodes."""
        graph = self.graph
        match op:
            case float():
                return lambda nodes: graph.scale(op, nodes[0])
            case Combination(coefficients=ks):
                return lambda nodes: graph.combination(ks, nodes)
            case Elementwise(primitive=p):
                return lambda nodes: self._primitive(p, nodes)
            case Cast(target=kind):
                return lambda nodes: graph.apply(convert(kind), nodes) if nodes[0] != ZERO else ZERO
            case Discrete(function=f, parameters=parameters) if f != np.where:  # another one while a function is traced
                as_type = f.__name__ == "as_type"
                what = convert(dict(parameters)["dtype"]) if as_type else Operation(f.__name__, f, (), parameters)
                return lambda nodes: graph.apply(what, nodes)
            case _:
                return lambda nodes: graph.select(*nodes)

    def _primitive(self, p: Any, nodes: tuple[int, ...]) -> int:
        graph, x = self.graph, nodes[0]
        match p.name if RULES.get(p.name) is p.rule else None:
            case "divide":
                return graph.divide(*nodes)
            case "power":
                return graph.power(x, p.parameter)
            case "relu":
                return graph.apply(Operation("maximum", np.maximum), (x, graph.fixed(0.0)))
            case "sigmoid":
                return graph.divide(ONE, graph.add(ONE, graph.apply(Operation("exp", np.exp), (graph.scale(-1.0, x),))))
            case "inverse" | "log0" as name:
                found = graph.divide(ONE, x) if name == "inverse" else graph.apply(Operation("log", np.log), (x,))
                return graph.select(graph.apply(EQUAL, (x, ZERO)), ZERO, found)
            case _:
                more = () if p.parameter is None else (p.parameter,)
                return graph.apply(Operation(p.name, p.rule.array, more), nodes)

    @NODES("sums of products", Contraction)
    def _contraction(self, op: Contraction, xs: list[Any], shape: Shape) -> Any:
        arrays = zip((*op.labels, op.out), (*[x.shape for x in xs], shape), strict=True)
        sizes = {label: n for ls, own in arrays for label, n in zip(ls, own, strict=True)}
        kept = tuple(dict.fromkeys(op.out))
        every = (*kept, *[label for label in sizes if label not in kept])
        full = tuple([sizes[label] for label in every])
        graph, strong, count = self.graph, op.strong, math.prod(full)
        graph.room(count)
        spread = [_spread(x, ls, every, full).reshape(-1) for x, ls in zip(xs, op.labels, strict=True)]
        times = functools.partial(graph.selected_product, strong=strong) if strong else graph.product
        terms = _each(times, spread, (count,))
        rows = math.prod(full[: len(kept)])
        terms = terms.reshape(rows, -1) if terms.size else np.zeros((rows, 0), np.intp)
        ones = (1.0,) * terms.shape[1]
        sums = _nodes([graph.combination(ones, nodes) for nodes in terms.tolist()], full[: len(kept)])
        if len(kept) == len(op.out):
            return sums
        found = np.full(shape, ZERO)
        cast(Any, np.einsum)(found, list(op.out), list(kept))[...] = sums
        return found

    def _reduction(self, op: Reduction, args: tuple[int, ...], axes: Axes, shape: Shape, k: int) -> Any:
        box = op.relations[0].target.box or ()
        lead, trail = shape[: op.axis], shape[op.axis + len(box) :]
        total = np.full((math.prod(lead), math.prod(shape[op.axis : op.axis + len(box)]), math.prod(trail)), ZERO)
        for relation, a, i in zip(op.relations, args, axes, strict=True):
            if op.axis <= k < op.axis + len(box):
                terms = self._terms(relation, a, op.axis, k - op.axis, lead, trail, i is not None)
            else:
                self.graph.room(relation.count)
                pairs = zip(*[p.tolist() for p in relation.pairs()], strict=True)
                x = self.row(a).reshape(total.shape[0], -1, total.shape[2])
                terms = [(c, x[:, r], t) for r, c, t in pairs]
            for c, x, t in terms:
                total[:, c] = _each(self._function(Combination((1.0, float(t)))), [total[:, c], x], x.shape)
        return total.reshape(shape)

    def _terms(
        self, relation: Relation, slot: int, axis: int, j: int, lead: Shape, trail: Shape, runs: bool
    ) -> list[Any]:
        """(place, nodes, how often) of what is added up at one position of axis j of a relation's target; `runs`: the
        slot has the long axis, otherwise it is read along it."""
        box, target = relation.source.box or (), relation.target.box or ()
        outside = [(*a, *b) for a in np.ndindex(*lead) for b in np.ndindex(*trail)]

        def loads(source: AxisRead, inner: tuple[int, ...]) -> Any:
            nodes = [self._load(source, (*at[: len(lead)], *inner, *at[len(lead) :])) for at in outside]
            return np.array(nodes).reshape(math.prod(lead), math.prod(trail))

        every = tuple(range(axis, axis + len(box)))
        label = _label(relation, j)
        if label is None:  # positions of the whole box, one index array for each component
            if not self.n:
                return []
            flat = np.moveaxis(cast(Gather, relation).index.reshape(target), j, 0).reshape(self.n, -1)
            self.graph.room(flat.shape[1])
            rows = [self._index(np.ascontiguousarray(column)) for column in flat.T]
            return [(c, loads(AxisRead(slot, every, rows=row), ()), 1) for c, row in enumerate(rows)]
        span, found = cast(Span, relation.span), list[Any]()
        moving = [i for i, m in enumerate(span.left) if label in labels_of(m)]
        whole = self.row(slot) if runs else None if moving else self.small(slot)
        sizes = [1 if m == label else n for m, n in enumerate(span.sizes)]
        self.graph.room(math.prod(sizes))
        for at in np.ndindex(*sizes):
            place = _flat([_value(m, at) for m in span.right], [1 if i == j else n for i, n in enumerate(target)])
            inner = {i: _value(m, at) for i, m in enumerate(span.left) if i not in moving}
            if whole is None:
                source = self._source(slot, axis, box, [(i, span.left[i]) for i in moving], label, at)
                nodes = loads(source, tuple(inner.values()))
            else:
                thin = [n if i in inner else 1 for i, n in enumerate(box)]
                row = _flat([inner.get(i, 0) for i in range(len(box))], thin)
                nodes = whole.reshape(math.prod(lead), -1, math.prod(trail))[:, row]
            found.append((place, nodes, span.times))
        return found

    def _source(self, slot: int, axis: int, box: Shape, moving: list[tuple[int, Any]], label: int, at: Any) -> AxisRead:
        """How a slot is read when the index maps of some axes move with the long one."""
        axes = tuple([axis + i for i, _ in moving])
        lines: list[Any] = [None if type(m) is IndexTable else (_value(m, at), dict(m.terms)[label]) for _, m in moving]
        if len(moving) == 1:
            table = moving[0][1]
            return AxisRead(slot, axes, *lines[0]) if lines[0] else AxisRead(slot, axes, rows=self._index(table.array))
        key = "joint", slot, axes, tuple([line or id(m.array) for line, (_, m) in zip(lines, moving, strict=True)])
        if key not in self._numbers:
            flat: Any = np.zeros(self.n, np.intp)
            for line, (i, m) in zip(lines, moving, strict=True):
                flat = flat * box[i] + (line[0] + line[1] * np.arange(self.n) if line else m.array)
            self._numbers[key] = self._index(flat)
            self._alive.extend([m for _, m in moving])  # their identities are in the key
        return AxisRead(slot, axes, rows=self._numbers[key])


def _repeated(value: Any, k: int) -> Any:
    """A constant that is the same all along an axis, without the axis; None for others."""
    if type(value) is Formal:
        one = weak(value)
        return one if not np.ndim(one) else None
    return value[(slice(None),) * k + (0,)] if value.strides[k] == 0 and value.shape[k] else None


def _nodes(nodes: list[int], shape: Shape) -> Any:
    return np.array(nodes, np.intp).reshape(shape)


def _each(work: Callable[[tuple[int, ...]], int], xs: Sequence[Any], shape: Shape) -> Any:
    """A function of nodes at every component, arguments broadcast."""
    flat = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in xs]
    return _nodes([work(nodes) for nodes in zip(*flat, strict=True)], shape)


def _spread(x: Any, labels: Sequence[int], every: Sequence[int], sizes: Shape) -> Any:
    """An array under labels, as wide as all of them."""
    distinct = [label for label in every if label in labels]
    x = cast(Any, np.einsum)(x, list(labels), distinct)
    return np.broadcast_to(np.expand_dims(x, tuple([i for i, k in enumerate(every) if k not in distinct])), sizes)


def _value(m: Any, at: Any) -> int:
    """An index map at given labels."""
    return int(m.array[at[m.labels[0]]]) if type(m) is IndexTable else m.offset + sum([s * at[k] for k, s in m.terms])


def _flat(place: Sequence[int], box: Sequence[int]) -> int:
    total = 0
    for i, n in zip(place, box, strict=True):
        total = total * n + i
    return total
