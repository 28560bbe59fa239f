"""What each linear step is as entries: one list for each argument that moves. Steps without such a form stay as they
are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single, contraction
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.program import Constant, Program
from ...programs.sub_programs import Block
from ...relations import Both, Empty, Function, Gather, Pairs, Relation, Segments, Union
from ...relations.index_algebra import ORIGIN, Affine, IndexMap, IndexTable, flat_map
from ...runtime import tuning
from ...spaces.formal_vectors import Formal
from .coefficients import Coefficients, Factor
from .entries import Entry, identity, tidied
from .index_maps import axis_map, distinct, refined

Shape = tuple[int, ...]
Edges = list[tuple[int, list[Entry]]]  # (argument, entries)


class LinearStep(NamedTuple):
    """A step whose entries are wanted: its arguments, their shapes, that of the result, and which arguments are `live`.

    `place` gives the slots of coefficients; `strong`: zeros of the argument annihilate the others.
    """

    c: Coefficients
    program: Program
    args: tuple[int, ...]
    shapes: list[Any]
    shape: Any
    live: list[int]
    place: Callable[[int], int]
    strong: bool = False


ENTRIES = OpRules[Callable[[Any, LinearStep], "Edges | None"]]("maps.normal_form.edges.ENTRIES")
"""The entries of a linear step, by argument; None where it has no such form: then it stays a step of the network."""


def edges(c: Coefficients, program: Program, slot: int, moving: Any, place: Callable[[int], int]) -> Edges | None:
    """The entries of a step, by argument; None where it has no such form."""
    op, args = program.ops[slot], program.args[slot]
    shapes, live = [program.shapes[a] for a in args], [i for i, a in enumerate(args) if moving[a]]
    return ENTRIES[type(op)](op, LinearStep(c, program, args, shapes, program.shapes[slot], live, place))


ENTRIES("stays a step", Single, Transform, Declared, Get, Block)(lambda op, s: None)
ENTRIES("none: not linear", Elementwise, Select, Discrete)(lambda op, s: None)
ENTRIES("k·id", float)(lambda op, s: [(s.args[0], [identity(s.c, s.shape).scaled(s.c, op)])])
ENTRIES("id", Cast)(lambda op, s: [(s.args[0], [identity(s.c, s.shape)])])
ENTRIES("as the op inside", Strongly)(lambda op, s: ENTRIES[type(op.op)](op.op, s._replace(strong=True)))


def _tidied(c: Coefficients, e: Entry, labels: Sequence[int]) -> list[Entry]:
    """An entry made tidy, with all its labels; those of size 1 are constants."""
    return tidied(c, e, frozenset([k for k in labels if c.sizes[k] != 1]))


def _runs(c: Coefficients, labels: Sequence[int]) -> tuple[IndexMap, ...]:
    """An axis for each label, which runs through it."""
    return tuple([axis_map(k, c.sizes[k]) for k in labels])


def _fresh(c: Coefficients, shape: Sequence[int]) -> tuple[IndexMap, ...]:
    """An axis for each size, with a label of its own."""
    return _runs(c, [c.fresh(n) for n in shape])


@ENTRIES("kᵢ·id for each argument", Combination)
def _combination(op: Combination, s: LinearStep) -> Edges:
    found: Edges = []
    for i in s.live:
        out, shift = _fresh(s.c, s.shape), len(s.shape) - len(s.shapes[i])
        inn = [out[shift + j] if n == s.shape[shift + j] else ORIGIN for j, n in enumerate(s.shapes[i])]
        found.append((s.args[i], [Entry(out, tuple(inn)).scaled(s.c, op.coefficients[i])]))
    return found


@ENTRIES("one: two ways of counting", Reshape)
def _reshape(op: Reshape, s: LinearStep) -> Edges:
    c, shapes, total = s.c, (s.shapes[0], s.shape), math.prod(s.shape)
    sides = [[c.fresh(n) for n in shape] for shape in shapes]
    flats = [cast(Affine, flat_map(_runs(c, side), shape)) for side, shape in zip(sides, shapes, strict=True)]
    terms = [sorted(flat.terms, key=lambda t: t[1]) for flat in flats]
    change = refined(terms[0], terms[1], c.sizes, c.fresh) if total > 1 else {}
    if change is None:
        t = c.fresh(total)
        maps = [_places(c, np.arange(total), [t], shape) for shape in shapes]
    else:
        maps = [tuple([change.get(k, ORIGIN) for k in side]) for side in sides]
    return [(s.args[0], [Entry(maps[1], maps[0])])]


@ENTRIES("one, its factors the other arguments", Contraction)
def _contraction(op: Contraction, s: LinearStep) -> Edges:
    made: Edges = []
    for k in s.live:
        sizes = op.sizes(tuple(s.shapes))
        names = {label: s.c.fresh(n) for label, n in sizes.items()}
        scale = 1.0
        factors: list[Factor] = []
        guard = len(s.args) - 1 if op.guarded == k else -1  # entries are made of what reaches a place
        for i, a in enumerate(s.args):
            if i not in (k, guard):
                more, found = factors_of(s.c, s.place(a), [names[x] for x in op.labels[i]], i in op.strong)
                scale, factors = scale * more, [*factors, *found]
        out, inn = [_runs(s.c, [names[x] for x in labels]) for labels in (op.out, op.labels[k])]
        made.append((s.args[k], _tidied(s.c, Entry(out, inn, tuple(factors), scale), [*names.values()])))
    return made


@ENTRIES("index maps of the relations; running sums stay steps", Reduction)
def _reduction(op: Reduction, s: LinearStep) -> Edges | None:
    made: Edges = []
    for i in s.live:
        relation, shape = op.relations[i], s.shapes[i]
        found = relation_entries(s.c, relation)
        if found is None:
            return None
        lead, rest = _fresh(s.c, shape[: op.axis]), _fresh(s.c, shape[op.axis + len(relation.source.box or ()) :])
        sides = [((*lead, *e.out, *rest), (*lead, *e.inn, *rest)) for e in found]
        made.append((s.args[i], [Entry(*two, e.factors, e.scale) for two, e in zip(sides, found, strict=True)]))
    return made


@ENTRIES("one, where the positions are constant; else stays a step", Take, Put)
def _at_positions(op: Take | Put, s: LinearStep) -> Edges | None:
    """x : B × P × n × Q and index : B × I give B × P × I × Q."""
    known = s.program.ops[s.args[1]]
    if s.live != [0] or type(known) is not Constant or s.strong:
        return None
    c, index, long = s.c, np.asarray(known.value), s.shapes[0] if isinstance(op, Take) else s.shape
    if not index.size:
        return [(s.args[0], [])]
    n = long[op.axis]
    labels, inner, rest = [
        [c.fresh(k) for k in sizes] for sizes in (long[: op.axis], index.shape[op.batch :], long[op.axis + 1 :])
    ]
    (at,) = _places(c, np.where(index < 0, index + n, index), [*labels[: op.batch], *inner], (n,))
    lead, tail = _runs(c, labels), _runs(c, rest)
    e = Entry((*lead, *_runs(c, inner), *tail), (*lead, at, *tail))
    return [(s.args[0], [e if isinstance(op, Take) else e.turned])]


@ENTRIES("one: aᵢvⱼwᵢ₊ⱼ", Convolution, ExchangedLeg)
def _legs(op: Convolution | ExchangedLeg, s: LinearStep) -> Edges | None:
    """A leg of Σ aᵢ vⱼ wᵢ₊ⱼ along the last axis."""
    if len(s.live) != 1:
        return None
    c, k, shapes, shape = s.c, s.live[0], s.shapes, s.shape
    other = s.place(s.args[1 - k])
    if isinstance(op, ExchangedLeg):
        k, shapes = 1 - k, shapes[::-1]
    legs = {2: (0, 1), 0: (2, 1), 1: (0, 2)}[op.leg]  # which legs the arguments are
    sizes = {legs[0]: shapes[0][-1], legs[1]: shapes[1][-1], op.leg: shape[-1]}
    i, j = c.fresh(sizes[0]), c.fresh(sizes[1])
    both = tuple([(x, 1) for x in (i, j) if c.sizes[x] != 1])
    last: dict[int, IndexMap] = {0: axis_map(i, sizes[0]), 1: axis_map(j, sizes[1]), 2: Affine(0, both)}
    lead = _fresh(c, shape[:-1])

    def side(box: Shape, leg: int) -> tuple[IndexMap, ...]:
        rows = lead[len(lead) - len(box) + 1 :]
        return (*[ORIGIN if n == 1 else m for n, m in zip(box[:-1], rows, strict=True)], last[leg])

    t = [c.fresh(n) for n in shapes[1 - k]]
    factor = c.factor(other, t)
    change = dict(zip(t, side(shapes[1 - k], legs[1 - k]), strict=True))
    factor = c.moved(factor, {x: m for x, m in change.items() if x in factor.labels})
    e = Entry(side(shape, op.leg), side(shapes[k], legs[k]), (factor,))
    return [(s.args[s.live[0]], _tidied(c, e, (i, j, *distinct(lead))))]


@ENTRIES("a matrix for each of many small parts; else stays a step", Ruled)
def _matrices(op: Ruled, s: LinearStep) -> Edges | None:
    """The matrix of each part is what the step makes of unit vectors."""
    c, shape, mixes = s.c, s.shape, op.smooth.mixes
    if len(s.live) != 1 or mixes is None or not op.smooth.batched:
        return None
    if not math.prod(shape) >= tuning.MANY_PARTS_RATIO * math.prod([shape[a] for a in mixes]) ** 2 > 0:
        return None
    (k,) = s.live
    mixed = [a % len(shape) for a in mixes]
    core = tuple([shape[a] for a in mixed])
    lead, n = shape[: mixed[0]], math.prod(core)
    units = np.eye(n, dtype=np.float32).reshape(n, *[1 for _ in lead], *core, *[1 for _ in shape[mixed[-1] + 1 :]])
    units = np.broadcast_to(units, (n, *lead, *units.shape[1 + len(lead) :]))
    slots = [0 if i == k else s.place(a) for i, a in enumerate(s.args)]
    slots[k] = c.program.const(np.ascontiguousarray(units))
    for i, slot in enumerate(slots):
        labels = tuple(range(1, len(c.shape(slot)) + 1))
        slots[i] = slot if i == k else c.step(contraction((labels,), (0, *labels), {0: n}), (slot,))
    matrix = c.step(Reshape((*core, *lead, *core)), (c.step(op, slots),))
    out = [c.fresh(size) for size in shape]
    inn = [c.fresh(size) if i in mixed else label for i, (size, label) in enumerate(zip(shape, out, strict=True))]
    scale, factors = factors_of(c, matrix, [*[inn[a] for a in mixed], *out[: mixed[-1] + 1]], False)
    e = Entry(_runs(c, out), _runs(c, inn), tuple(factors), scale)
    return [(s.args[k], _tidied(c, e, (*out, *inn)))]


def _floats(x: Any) -> Any:
    """Truth values as numbers."""
    array = np.asarray(x)
    return x if array.dtype.kind == "f" else array.astype(float)


FLOATS = Discrete(_floats)


def factors_of(c: Coefficients, slot: int, labels: Sequence[int], strong: bool) -> tuple[float, list[Factor]]:
    """A coefficient as a scale and factors: an outer product that was never multiplied out stays one."""
    if not strong:
        scale, slot, labels = c.peeled(slot, tuple(labels))
        if scale != 1.0:
            more, found = factors_of(c, slot, labels, strong)
            return scale * more, found
    op = c.program.ops[slot]
    if type(op) is Constant and type(op.value) is Formal and len(op.value.terms) == 1 and not strong:
        term = op.value.terms[0]
        arrays = [(c.program.const(np.asarray(array)), axes) for array, axes in term.factors]
        return float(term.scale), [c.factor(array, [labels[i] for i in axes]) for array, axes in arrays]
    if type(op) is Constant:
        if type(op.value) is not Formal and np.asarray(op.value).dtype.kind != "f":
            slot = c.as_float(slot)
    elif strong or isinstance(op, Discrete):
        slot = c.step(FLOATS, (slot,))
    return 1.0, [c.factor(slot, labels, strong)]


def relation_entries(c: Coefficients, relation: Relation) -> list[Entry] | None:
    """red_R as entries; None for relations that are rules rather than index maps (running sums)."""
    source, target = relation.source.box, relation.target.box
    assert source is not None and target is not None
    if isinstance(relation, Empty) or (isinstance(relation, Pairs) and not len(relation.rows)):
        return []
    if isinstance(relation, Union):
        parts = [relation_entries(c, r) for r in relation.members]
        return None if any([p is None for p in parts]) else [e for p in parts for e in p or ()]
    span = relation.span
    if span is not None:
        labels = [c.fresh(n) for n in span.sizes]
        maps = [tuple([_span_map(c, m, labels) for m in side]) for side in (span.right, span.left)]
        return _tidied(c, Entry(maps[0], maps[1], (), float(span.times)), labels)
    if isinstance(relation, Both):
        first, second = relation_entries(c, relation.first), relation_entries(c, relation.second)
        if first is None or second is None:
            return None
        pairs = [(a, b, (*a.factors, *b.factors)) for a in first for b in second]
        return [Entry((*a.out, *b.out), (*a.inn, *b.inn), factors, a.scale * b.scale) for a, b, factors in pairs]
    if isinstance(relation, (Function, Gather, Segments)):
        turned = isinstance(relation, Gather) or (isinstance(relation, Segments) and relation.turned)
        index = relation.ids if isinstance(relation, Segments) else relation.index
        if turned:
            source, target = target, source
        labels = [c.fresh(n) for n in source]  # x ↦ index[x], from arrays on the source to arrays on the target
        e = Entry(_places(c, index.reshape(source), labels, target), _runs(c, labels))
        return [e.turned if turned else e]
    if isinstance(relation, Pairs):
        t = c.fresh(len(relation.rows))
        sides = _places(c, relation.cols, [t], target), _places(c, relation.rows, [t], source)
        counts = c.factor(c.program.const(np.asarray(relation.times, float)), [t])
        return _tidied(c, Entry(*sides, (counts,)), [t])
    return None


def _places(c: Coefficients, flat: Any, labels: Sequence[int], box: Shape) -> tuple[IndexMap, ...]:
    """The index maps of flat positions in a box."""
    kept = tuple([k for k in labels if c.sizes[k] != 1])
    if not box:
        return ()
    axes: Any = [flat] if len(box) == 1 else cast(Any, np.unravel_index)(flat, box)
    found: list[IndexMap] = []
    for n, a in zip(box, axes, strict=True):
        small = np.asarray(a, np.intp).reshape([c.sizes[k] for k in kept])
        found.append(ORIGIN if n == 1 else Affine(int(small)) if not kept else c.tables.table(small, kept))
    return tuple(found)


def _span_map(c: Coefficients, m: Any, labels: list[int]) -> IndexMap:
    if type(m) is IndexTable:
        return c.tables.table(m.array, (labels[m.labels[0]],)) if len(m.array) != 1 else Affine(int(m.array[0]))
    assert isinstance(m, Affine)
    return Affine(m.offset, tuple([(labels[k], s) for k, s in m.terms if c.sizes[labels[k]] != 1]))
