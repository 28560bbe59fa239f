"""What each linear step is as entries: one list for each argument that moves. Steps without such a form stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..convolution import Convolution, Turned
from ..opaque import Discrete, Put, Strongly, Take
from ..ops import Cast, Combination, Contraction, Reduction, Reshape
from ..programs.program import Constant, Program
from ..relations import Both, Empty, Function, Gather, Pairs, Relation, Segments, Union
from ..relations.spans import Affine, Listed
from ..vectors import Formal
from .coefficients import Coefficients, Factor
from .entries import Entry, identity, tidied
from .indexing import START, IndexMap, axis_map, distinct, refined

Shape = tuple[int, ...]
Edges = list[tuple[int, list[Entry]]]  # (argument, entries)


def edges(c: Coefficients, program: Program, slot: int, moving: Any, place: Callable[[int], int]) -> Edges | None:
    """The entries of a step, by argument; None where it has no such form."""
    op, args = program.ops[slot], program.args[slot]
    shapes = [program.shapes[a] for a in args]
    shape = program.shapes[slot]
    op, strong = (op.op, True) if isinstance(op, Strongly) else (op, False)
    live = [i for i, a in enumerate(args) if moving[a]]
    if type(op) is float:
        return [(args[0], [identity(c, shape).scaled(c, op)])]
    match op:
        case Combination():
            return [(args[i], [_broadcast(c, shapes[i], shape).scaled(c, op.coefficients[i])]) for i in live]
        case Contraction():
            return [(args[i], _contraction(c, op, i, shapes, args, program, place)) for i in live]
        case Reduction():
            found = [_reduction(c, op.relations[i], op.axis, shapes[i]) for i in live]
            return None if any([f is None for f in found]) else [(args[i], cast(Any, f)) for i, f in zip(live, found, strict=True)]
        case Cast():
            return [(args[0], [identity(c, shape)])]
        case Reshape():
            return [(args[0], [_reshape(c, shapes[0], shape)])]
        case Take() | Put() if live == [0] and type(program.ops[args[1]]) is Constant and not strong:
            return [(args[0], _taken(c, op, shapes[0], shape, np.asarray(program.ops[args[1]].value)))]
        case Convolution() | Turned() if len(live) == 1:
            return [(args[live[0]], _convolution(c, op, live[0], shapes, shape, place(args[1 - live[0]])))]
        case _:
            return None


def _broadcast(c: Coefficients, small: Shape, big: Shape) -> Entry:
    out = tuple([axis_map(c.fresh(n), n) for n in big])
    shift = len(big) - len(small)
    return Entry(out, tuple([out[shift + i] if n == big[shift + i] else START for i, n in enumerate(small)]))


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
        found = [c.factor(c.program.const(np.asarray(array)), [labels[i] for i in axes]) for array, axes in term.factors]
        return float(term.scale), found
    if type(op) is Constant:
        if np.asarray(op.value).dtype.kind != "f" if type(op.value) is not Formal else False:
            slot = c.as_float(slot)
    elif strong or isinstance(op, Discrete):
        slot = c.step(FLOATS, (slot,))
    return 1.0, [c.factor(slot, labels, strong)]


def _contraction(
    c: Coefficients, op: Contraction, k: int, shapes: Sequence[Shape], args: Sequence[int], program: Program, place: Callable[[int], int]
) -> list[Entry]:
    sizes = op.sizes(tuple(shapes))
    names = {label: c.fresh(n) for label, n in sizes.items()}
    scale = 1.0
    factors: list[Factor] = []
    guard = len(args) - 1 if op.guarded == k else -1  # entries are made of what reaches a place
    for i, a in enumerate(args):
        if i not in (k, guard):
            more, found = factors_of(c, place(a), [names[x] for x in op.labels[i]], i in op.strong)
            scale, factors = scale * more, [*factors, *found]
    out = tuple([axis_map(names[x], sizes[x]) for x in op.out])
    inn = tuple([axis_map(names[x], sizes[x]) for x in op.labels[k]])
    return tidied(c, [(Entry(out, inn, tuple(factors), scale), frozenset([names[x] for x, n in sizes.items() if n != 1]))])


def _reduction(c: Coefficients, relation: Relation, axis: int, shape: Shape) -> list[Entry] | None:
    found = relation_entries(c, relation)
    if found is None:
        return None
    rank = len(relation.source.box or ())
    lead = tuple([axis_map(c.fresh(n), n) for n in shape[:axis]])
    rest = tuple([axis_map(c.fresh(n), n) for n in shape[axis + rank :]])
    return [Entry((*lead, *e.out, *rest), (*lead, *e.inn, *rest), e.factors, e.scale) for e in found]


def relation_entries(c: Coefficients, relation: Relation) -> list[Entry] | None:
    """red_R as entries; None for relations that are rules rather than index maps (running sums)."""
    source, target = relation.source.box, relation.target.box
    assert source is not None and target is not None
    if isinstance(relation, Empty):
        return []
    if isinstance(relation, Union):
        parts = [relation_entries(c, r) for r in relation.members]
        return None if any([p is None for p in parts]) else [e for p in parts for e in p or ()]
    span = relation.span
    if span is not None:
        labels = [c.fresh(n) for n in span.sizes]
        maps = [tuple([_span_map(c, m, labels) for m in side]) for side in (span.right, span.left)]
        every = frozenset([k for k in labels if c.sizes[k] != 1])
        return tidied(c, [(Entry(maps[0], maps[1], (), float(span.times)), every)])
    if isinstance(relation, Both):
        first, second = relation_entries(c, relation.first), relation_entries(c, relation.second)
        if first is None or second is None:
            return None
        return [Entry((*a.out, *b.out), (*a.inn, *b.inn), (*a.factors, *b.factors), a.scale * b.scale) for a in first for b in second]
    if isinstance(relation, (Function, Gather, Segments)):
        turned = isinstance(relation, Gather) or (isinstance(relation, Segments) and relation.turned)
        index = relation.ids if isinstance(relation, Segments) else relation.index
        e = _function(c, index, target if turned else source, source if turned else target)
        return [e.turned if turned else e]
    if isinstance(relation, Pairs):
        return _pairs(c, relation, source, target)
    return None


def _span_map(c: Coefficients, m: Any, labels: list[int]) -> IndexMap:
    if type(m) is Listed:
        return c.tables.table(m.array, (labels[m.label],)) if len(m.array) != 1 else Affine(int(m.array[0]))
    assert isinstance(m, Affine)
    return Affine(m.offset, tuple([(labels[k], s) for k, s in m.terms if c.sizes[labels[k]] != 1]))


def _function(c: Coefficients, index: Any, source: Shape, target: Shape) -> Entry:
    """x ↦ index[x], as an entry from arrays on the source to arrays on the target."""
    labels = tuple([c.fresh(n) for n in source])
    inn = tuple([axis_map(k, n) for k, n in zip(labels, source, strict=True)])
    return Entry(_places(c, index.reshape(source), labels, target), inn)


def _places(c: Coefficients, flat: Any, labels: Sequence[int], box: Shape) -> tuple[IndexMap, ...]:
    """The index maps of flat positions in a box."""
    kept = tuple([k for k in labels if c.sizes[k] != 1])
    if not box:
        return ()
    axes: Any = [flat] if len(box) == 1 else cast(Any, np.unravel_index)(flat, box)
    found: list[IndexMap] = []
    for n, a in zip(box, axes, strict=True):
        small = np.asarray(a, np.intp).reshape([c.sizes[k] for k in kept])
        found.append(START if n == 1 else Affine(int(small)) if not kept else c.tables.table(small, kept))
    return tuple(found)


def _pairs(c: Coefficients, relation: Pairs, source: Shape, target: Shape) -> list[Entry]:
    if not len(relation.rows):
        return []
    t = c.fresh(len(relation.rows))
    sides = _places(c, relation.cols, [t], target), _places(c, relation.rows, [t], source)
    counts = c.factor(c.program.const(np.asarray(relation.times, float)), [t])
    return tidied(c, [(Entry(*sides, (counts,)), frozenset([t] if c.sizes[t] != 1 else []))])


def _reshape(c: Coefficients, source: Shape, target: Shape) -> Entry:
    """Two mixed-radix ways of counting through one set."""
    total = math.prod(source)
    sides = [[(c.fresh(n), n) for n in shape] for shape in (source, target)]
    flats: list[list[tuple[int, int]]] = []
    for side in sides:
        below = 1
        terms: list[tuple[int, int]] = []
        for k, n in reversed(side):
            if n != 1:
                terms.append((k, below))
            below *= n
        flats.append(terms)
    change = refined(flats[0], flats[1], c.sizes, c.fresh) if total > 1 else {}
    maps = [tuple([START if n == 1 else (change or {}).get(k, START) for k, n in side]) for side in sides]
    if change is None:
        t = c.fresh(total)
        maps = [_places(c, np.arange(total), [t], shape) for shape in (source, target)]
    return Entry(maps[1], maps[0])


def _taken(c: Coefficients, op: Take | Put, source: Shape, target: Shape, index: Any) -> list[Entry]:
    """Positions that were computed, now known: x : B × P × n × Q and index : B × I give B × P × I × Q."""
    if not index.size:
        return []
    long = source if isinstance(op, Take) else target
    n = long[op.axis]
    labels = [c.fresh(k) for k in long[: op.axis]]
    inner = [c.fresh(k) for k in index.shape[op.batch :]]
    rest = [c.fresh(k) for k in long[op.axis + 1 :]]
    (at,) = _places(c, np.where(index < 0, index + n, index), [*labels[: op.batch], *inner], (n,))
    lead, tail = [axis_map(k, c.sizes[k]) for k in labels], [axis_map(k, c.sizes[k]) for k in rest]
    short = (*lead, *[axis_map(k, c.sizes[k]) for k in inner], *tail)
    e = Entry(short, (*lead, at, *tail))
    return [e if isinstance(op, Take) else e.turned]


def _convolution(c: Coefficients, op: Convolution | Turned, k: int, shapes: Sequence[Shape], shape: Shape, other: int) -> list[Entry]:
    """A leg of Σ aᵢ vⱼ wᵢ₊ⱼ along the last axis."""
    if isinstance(op, Turned):
        k, shapes = 1 - k, shapes[::-1]
    legs = {2: (0, 1), 0: (2, 1), 1: (0, 2)}[op.leg]  # which legs the arguments are
    sizes = {legs[0]: shapes[0][-1], legs[1]: shapes[1][-1], op.leg: shape[-1]}
    i, j = c.fresh(sizes[0]), c.fresh(sizes[1])
    both = tuple([(x, 1) for x in (i, j) if c.sizes[x] != 1])
    last: dict[int, IndexMap] = {0: axis_map(i, sizes[0]), 1: axis_map(j, sizes[1]), 2: Affine(0, both)}
    lead = [axis_map(c.fresh(n), n) for n in shape[:-1]]

    def side(s: Shape, leg: int) -> tuple[IndexMap, ...]:
        rows = lead[len(lead) - len(s) + 1 :]
        return (*[START if n == 1 else m for n, m in zip(s[:-1], rows, strict=True)], last[leg])

    t = [c.fresh(n) for n in shapes[1 - k]]
    factor = c.factor(other, t)
    factor = c.moved(factor, {x: m for x, m in zip(t, side(shapes[1 - k], legs[1 - k]), strict=True) if x in factor.labels})
    every = frozenset([x for x in (i, j, *distinct(lead)) if c.sizes[x] != 1])
    return tidied(c, [(Entry(side(shape, op.leg), side(shapes[k], legs[k]), (factor,)), every)])
