"""Which number of each argument a step reads for one number of its result: positions as sums of labels of a loop nest.

x[::-1] + y.T        at (i, j)   reads   x at (n − 1 − i, j),  y at (j, i)
Σₖ a·b               at (i, j)   reads   a at (i, k),  b at (k, j),  for a new label k
x[index]             at (i)      reads   x at index[i]
a slice, turned      at (i)      reads   x at i − 3,  or nothing where that is outside
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Transform
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape, Single
from ...ops.op_rules import OpRules
from ...ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ...programs.passes.deferring import Deferred
from ...programs.passes.fusing import SparseProduct
from ...programs.sub_programs import Block
from ...relations import Gather, Relation
from ...relations.index_algebra import ORIGIN, Affine, IndexTable, along, combined
from ...runtime import tuning
from ...tracing.rules.reductions import EXTREMUM


class TableEntry(NamedTuple):
    """A number of an index array, which is known by its number."""

    array: int
    at: Affine


class Access(NamedTuple):
    """Where an argument is read: a position for each axis; nothing where an index of `guards` is not in 0 … n − 1."""

    arg: int
    at: tuple[Affine, ...]
    guards: tuple[tuple[Affine, int], ...] = ()

    @property
    def places(self) -> list[Affine]:
        """All indices it depends on."""
        return [*self.at, *[at for at, _ in self.guards]]


class Reads(NamedTuple):
    """What a step reads at one position of its result: terms that are added up, and the labels each term is summed
    over, with their sizes. A sum over few numbers is as many terms; steps that add nothing have one."""

    terms: tuple[tuple[Access, ...], ...]
    sums: tuple[tuple[int, int], ...] = ()

    @property
    def accesses(self) -> list[Access]:
        """All of them."""
        return [a for term in self.terms for a in term]


def short_axes(sizes: dict[int, int], axes: Iterable[int]) -> list[int]:
    """The axes, or labels, that are written out: in order, while there are few components and many positions."""
    found: list[int] = []
    count, size = 1, math.prod(sizes.values())
    for k in axes:
        more = count * sizes[k]
        if sizes[k] > 1 and more <= tuning.NEST_SHORT_AXIS and size >= tuning.NEST_LONG_AXIS_RATIO * more:
            found.append(k)
            count = more
    return found


def unrolled(shape: Sequence[int]) -> list[int]:
    """The axes of an array that are written out, from the last on."""
    return short_axes(dict(enumerate(shape)), reversed(range(len(shape))))


def plain(at: Affine) -> int | None:
    """The label that a position is, if it is one."""
    (atom, stride), *more = at.terms or ((None, 1),)
    return atom if not at.offset and not more and stride == 1 and type(atom) is int else None


def atoms_in(index: Iterable[Affine]) -> list[Any]:
    """What a position depends on: labels and entries of index arrays, and what these depend on."""
    found: list[Any] = []
    waiting = list(index)
    while waiting:
        for atom, _ in waiting.pop().terms:
            found.append(atom)
            waiting.extend([atom.at] if isinstance(atom, TableEntry) else [])
    return found


def labels_in(index: Iterable[Affine]) -> list[int]:
    """The labels a position depends on."""
    return [k for at in index for k in atoms_in((at,)) if type(k) is int]


def renamed(at: Affine, name: Callable[[int], int]) -> Affine:
    """A position under other names of labels."""
    atoms = [(a._replace(at=renamed(a.at, name)) if isinstance(a, TableEntry) else name(a), s) for a, s in at.terms]
    return combined(at.offset, [(along(a), s) for a, s in atoms])


class Asked(NamedTuple):
    """A number of a step's result, at an index. `fresh` makes a label of a size, `array` numbers an index array."""

    shapes: Sequence[Shape]
    shape: Shape
    at: tuple[Affine, ...]
    fresh: Callable[[int], int]
    array: Callable[[Any], int]


READS = OpRules[Callable[[Any, Asked], "Reads | None"]]("backends.numba.accesses.READS")
"""What a step reads for one number of its result; None where it has no such form: it is left to NumPy."""
OTHERS = (Single, Transform, Take, Put, Strongly, Declared, Get, Convolution, ExchangedLeg, Block, Deferred)
READS("left to NumPy", *OTHERS, SparseProduct)(lambda op, q: None)


@READS("the same index", float, Elementwise, Combination, Select, Cast)
@READS("the same index; others left to NumPy", Discrete)
def _each(op: Any, q: Asked) -> Reads | None:
    """One number of each argument, arguments broadcast."""
    if type(op) is Discrete and op.shaped is not None:
        return None
    places = [q.at[len(q.shape) - len(s) :] for s in q.shapes]
    return Reads((tuple([Access(i, _where(s, at)) for i, (s, at) in enumerate(zip(q.shapes, places, strict=True))]),))


def _where(shape: Shape, at: Iterable[Affine]) -> tuple[Affine, ...]:
    """A position, 0 along axes of size 1."""
    return tuple([ORIGIN if n == 1 else place for n, place in zip(shape, at, strict=True)])


@READS("one place each, by index maps; others left to NumPy", Reduction)
def _reduction(op: Reduction, q: Asked) -> Reads | None:
    found = [_related(i, r, op.axis, q.at, q.array) for i, r in enumerate(op.relations)]
    known = [a for a in found if a is not None]
    if len(known) < len(found):
        return None
    there = [a for a in known if all([at.terms or 0 <= at.offset < n for at, n in a.guards])]
    return Reads(tuple([(a._replace(guards=tuple([(at, n) for at, n in a.guards if at.terms])),) for a in there]))


@READS("extrema: the axes they are over; others left to NumPy", Ruled)
def _extremum(op: Ruled, q: Asked) -> Reads | None:
    (shape,) = q.shapes if op.smooth is EXTREMUM else ((0,),)
    if not math.prod(shape):
        return None
    over, labels = gone(op, shape), range(len(shape))
    kept = [k for k in labels if k not in over or dict(op.parameters)["keepdims"]]
    return _summed((labels,), q, dict(enumerate(shape)), dict(zip(kept, q.at, strict=True)), sorted(over))


@READS("whole axes put together or apart; others left to NumPy", Reshape)
def _reshape(op: Reshape, q: Asked) -> Reads | None:
    (source,), target = q.shapes, q.shape
    found: list[Affine] = []
    j = 0
    for n in source if math.prod(source) else ():
        at, size = ORIGIN, 1
        while size < n and j < len(target):
            at, size = combined(0, [(at, target[j]), (q.at[j], 1)]), size * target[j]
            j += 1
        if size != n:
            return None
        found.append(at)
    rest = math.prod(source) and all([n == 1 for n in target[j:]])
    return Reads(((Access(0, tuple(found)),),)) if rest else None


@READS("labels; a diagonal is left to NumPy", Contraction)
def _contraction(op: Contraction, q: Asked) -> Reads | None:
    if len(set(op.out)) < len(op.out):
        return None
    sizes = op.sizes(tuple(q.shapes))
    return _summed(op.labels, q, sizes, dict(zip(op.out, q.at, strict=True)), [k for k in sizes if k not in op.out])


def gone(op: Any, shape: Shape) -> list[int]:
    """The axes that an extremum is taken over."""
    return [k % len(shape) for k in dict(op.parameters)["axis"]]


def _summed(
    labels: Sequence[Sequence[int]], q: Asked, sizes: dict[int, int], at: dict[int, Affine], summed: list[int]
) -> Reads:
    """Arguments read under their labels, `at` says where; sums as new labels or, of few numbers, as terms."""
    few = short_axes(sizes, summed)
    sums: list[tuple[int, int]] = []
    for k in summed:
        at[k] = ORIGIN
        if sizes[k] != 1 and k not in few:
            sums.append((q.fresh(sizes[k]), sizes[k]))
            at[k] = along(sums[-1][0])
    terms: list[tuple[Access, ...]] = []
    for values in itertools.product(*[range(sizes[k]) for k in few]):
        at |= {k: Affine(v) for k, v in zip(few, values, strict=True)}
        places = [_where(s, [at[k] for k in ls]) for ls, s in zip(labels, q.shapes, strict=True)]
        terms.append(tuple([Access(i, place) for i, place in enumerate(places)]))
    return Reads(tuple(terms), tuple(sums))


def scattered(op: Any, index: tuple[Affine, ...], array: Callable[[Any], int]) -> tuple[Affine, ...] | None:
    """Where a reduction puts the number at an index of its argument, if every number goes to one place."""
    if type(op) is not Reduction or len(op.relations) != 1:
        return None
    found = _related(0, op.relations[0].converse, op.axis, index, array)
    return None if found is None or found.guards else found.at


def _related(
    arg: int, relation: Relation, axis: int, index: tuple[Affine, ...], array: Callable[[Any], int]
) -> Access | None:
    """Where a relation reads, if every number of the target comes from one number of the source, or from none."""
    source, target = relation.source.box, relation.target.box
    assert source is not None and target is not None
    lead, inside, trail = index[:axis], index[axis : axis + len(target)], index[axis + len(target) :]
    span = relation.span
    if span is None or span.times != 1:
        if not isinstance(relation, Gather) or len(source) != 1 or not relation.target.size:
            return None
        steps = [math.prod(target[k + 1 :]) for k in range(len(target))]
        entry = _entry(relation.index, combined(0, list(zip(inside, steps, strict=True))), array)
        return Access(arg, (*lead, entry if source[0] != 1 else ORIGIN, *trail))
    at: dict[int, Affine] = {}
    guards: list[tuple[Affine, int]] = []
    for m, y, n in zip(span.right, inside, target, strict=True):
        if type(m) is not Affine or len(m.terms) > 1 or (m.terms and (m.terms[0][0] in at or abs(m.terms[0][1]) != 1)):
            return None
        if not m.terms:
            guards.extend([(combined(-m.offset, [(y, 1)]), 1)] if n != 1 else [])
            continue
        (k, sign), size = m.terms[0], span.sizes[m.terms[0][0]]
        at[k] = combined(-sign * m.offset, [(y, sign)])
        if (m.offset, sign) not in ((0, 1), (n - 1, -1)) or size != n:
            guards.append((at[k], size))
    if len(at) < len(span.sizes):
        return None
    moved: list[Affine] = []
    for m, n in zip(span.left, source, strict=True):
        if n == 1:
            moved.append(ORIGIN)
        elif isinstance(m, IndexTable):
            moved.append(_entry(m.array, at[m.labels[0]], array))
        else:
            moved.append(combined(m.offset, [(at[k], s) for k, s in m.terms]))
    return Access(arg, (*lead, *moved, *trail), tuple(guards))


def _entry(values: Any, at: Affine, array: Callable[[Any], int]) -> Affine:
    """An index array at a position; its number, where that is known."""
    if not at.terms:
        return Affine(int(values.reshape(-1)[at.offset]) if 0 <= at.offset < values.size else 0)
    return along(TableEntry(array(values), at))


def terms_of(op: Any, shapes: Sequence[Shape]) -> int:
    """How many numbers a step adds up, or takes the extremum of, for each number of its result."""
    if type(op) is Contraction:
        return math.prod([n for k, n in op.sizes(tuple(shapes)).items() if k not in op.out])
    return math.prod([shapes[0][k] for k in gone(op, shapes[0])]) if type(op) is Ruled else 1


def weight(op: Any, shapes: Sequence[Shape]) -> float:
    """What one number of a step's result costs, in sums and products."""
    match op:
        case Elementwise(primitive=p):
            return 4.0 if p.name in _SHORT else 10.0 if p.name in _QUICK else 40.0
        case Combination(coefficients=ks):
            return float(len(ks))
        case Contraction():
            return (len(shapes) + bool(op.strong)) * max(terms_of(op, shapes), 1.0) - 1.0
        case Reduction() | Reshape() | Cast():
            return 0.0
        case _:
            return float(terms_of(op, shapes))


def bulk(op: Any) -> int:
    """How much a compiler has to do for one number of a step's result, about: our own functions are some twenty
    operations each."""
    return 20 if type(op) is Elementwise and op.primitive.name in (*_QUICK, "sin", "cos") else 1


def in_numpy(op: Any) -> int:
    """What a number costs in NumPy, in sums and products: sines and cosines are not vectorised there for 64 bits."""
    if type(op) is not Elementwise or op.primitive.name in _SHORT:
        return 1
    return 12 if op.primitive.name in ("sin", "cos") else 3


_PIECES = ("absolute", "sign", "relu", "step", "larger", "maximum", "minimum", "floor", "trunc")
_SHORT = (*_PIECES, "divide", "sqrt", "root", "power", "inverse")
_QUICK = ("exp", "ln", "tanh", "sigmoid", "logaddexp", "log1p", "expm1")
