"""The algebra of relations: composition, products, sums, unions, restriction; by symbols as far as they go, by matrices
at last."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..errors import RelationError
from ..runtime import tuning
from .base import Relation, freeze
from .compound import Beside, Both, Sum, Through, Union, in_turn, through
from .index_algebra import Affine, IndexMap, IndexTable, along, labels_of
from .index_sets import Indices, Seg, Set, box_set, boxes, unit
from .kinds import Diagonal, Empty, Full, Function, Gather, Pairs, Place, Point, Range, Segments
from .spanned import Spanned
from .spans import NotSymbolic, Span, beside, composed, one_label, substituted, tidied


def then(first: Relation, second: Relation) -> Relation:
    """R followed by S."""
    as_relation(second)
    if first.target is not second.source:
        ends = f"the first ends in {first.target}, the second starts at {second.source}"
        raise RelationError(f"cannot follow {first} by {second}: {ends}")
    source, target = first.source, second.target
    match first, second:
        case _ if not first.target.size or isinstance(first, Empty) or isinstance(second, Empty):
            return Empty(source, target)
        case Diagonal(), _ if source is first.target:
            return second
        case _, Diagonal() if second.source is target:
            return first
        case Full(), Full():
            return Full(source, target, first.times * second.times * first.target.size)
        case Function(), Function():
            return Function(source, target, freeze(second.index[first.index]))
        case (Function() | Segments(turned=False), Full()):  # every x has one y, and every y all z
            return Full(source, target, second.times)
        case Segments(turned=False), Segments(turned=False):
            return Segments(source, target, freeze(first.offsets[second.offsets]))
        case (Full(), Gather() | Segments(turned=True)) | (Gather(), Gather()):
            return then(second.converse, first.converse).converse
        case Segments(turned=True), Segments(turned=True):
            return then(second.converse, first.converse).converse
        case Through(), _:
            return in_turn([*first.members[:-1], then(first.members[-1], second)])
        case _, Through():
            return in_turn([then(first, second.members[0]), *second.members[1:]])
        case Union(), _:
            return united(source, target, [then(r, second) for r in first.members])
        case _, Union():
            return united(source, target, [then(first, r) for r in second.members])
        case Sum(), Sum() if first.target is second.source and len(first.members) == len(second.members):
            return Sum(source, target, tuple([then(r, s) for r, s in zip(first.members, second.members, strict=True)]))
        case Both(first=a, second=b), Both(first=c, second=d) if a.target is c.source and b.target is d.source:
            return product(then(a, c), then(b, d))
        case _:
            found = _by_span(first, second) or through(first, second)
            return from_matrix(source, target, first.times_matrix(second)) if found is None else found


def fused(first: Relation, second: Relation) -> Relation | None:
    """R followed by S as one relation, if symbols suffice and there is no more to add than in two steps.

    >>> from riesz import relations, seg
    >>> fused(relations.shift(seg(9), 1), relations.shift(seg(9), 2)).count
    6
    """
    if isinstance(first, Union) or isinstance(second, Union) or first.target is not second.source:
        return None
    found = _by_span(first, second)
    return found if found is not None and found.work <= first.work + second.work else None


def _by_span(first: Relation, second: Relation) -> Relation | None:
    """R followed by S, if symbols suffice."""
    a, b = first.span, second.span
    if a is None or b is None:
        return None
    try:
        parts = _pieces(a, b)
    except NotSymbolic:
        return None
    return united(first.source, second.target, [named(first.source, second.target, c) for c in parts])


def _pieces(a: Span, b: Span) -> list[Span | None]:
    """The composition of two spans; where a window meets the end of a range, one for each offset of the window."""
    try:
        return [composed(a, b, freeze)]
    except NotSymbolic:
        parts, others = _apart(a, a.right), _apart(b, b.left)
        if len(parts) * len(others) == 1 or len(parts) * len(others) > tuning.COMPOSED_PIECES:
            raise
        return [composed(p, q, freeze) for p in parts for q in others]


def _apart(span: Span, side: tuple[IndexMap, ...]) -> list[Span]:
    """A span as one for each value of its shortest label that shares an axis with another; itself if there is none."""
    shared = [k for m in side if isinstance(m, Affine) and len(m.terms) > 1 for k, _ in m.terms]
    if not shared:
        return [span]
    label = min(shared, key=lambda k: span.sizes[k])
    if span.sizes[label] > tuning.COMPOSED_PIECES:
        return [span]
    sizes = dict(enumerate(span.sizes))
    found: list[Span] = []
    for value in range(span.sizes[label]):
        rows = [[substituted(m, label, Affine(value)) for m in maps] for maps in (span.left, span.right)]
        left, right = [tuple([m for m in row if m is not None]) for row in rows]
        found.append(tidied({k: n for k, n in sizes.items() if k != label}, left, right, span.times))
    return found


def named(source: Set, target: Set, span: Span | None) -> Relation:
    """A span under the name of the kind it is, if it has one.

    >>> from riesz import relations, seg
    >>> type(named(seg(3), seg(3), relations.full(seg(3), seg(3)).span)).__name__
    'Full'
    """
    X, Y = source.box, target.box
    if span is None or X is None or Y is None or 0 in (*span.sizes, *X, *Y) or not span.times:
        return Empty(source, target)
    whole_left, whole_right = _whole(span.left, X, span.sizes), _whole(span.right, Y, span.sizes)
    apart = not (_used(span.left) & _used(span.right))
    if whole_left and whole_right and span.left == span.right and span.times == 1:
        return Diagonal(source, target)
    if whole_left and whole_right and apart:
        return Full(source, target, span.times)
    if span.times == 1:
        if not span.sizes and target is unit:
            return Point(source, target, _flat(span.left, X))
        if not span.sizes and source is unit:
            return Place(source, target, _flat(span.right, Y))
        if len(X) == len(Y) == 1:
            match span.left, span.right:
                case (Affine(start, ((0, step),)),), (Affine(0, ((0, 1),)),) if whole_right:
                    return Range(source, target, start, step, False)
                case (Affine(0, ((0, 1),)),), (Affine(start, ((0, step),)),) if whole_left:
                    return Range(source, target, start, step, True)
                case (Affine(0, ((0, 1),)),), (IndexTable(array, (0,)),) if whole_left:
                    return Function(source, target, array)
                case (IndexTable(array, (0,)),), (Affine(0, ((0, 1),)),) if whole_right:
                    return Gather(source, target, array)
                case _:
                    pass
    return _factored(source, target, span) or Spanned(source, target, span.sizes, span.left, span.right, span.times)


def _factored(source: Set, target: Set, span: Span) -> Relation | None:
    """R × =_Z or =_Z × R where an index array meets axes that are only passed through, which are no pairs."""
    if span.affine or not len(span.left) or not len(span.right):
        return None
    X, Y = cast("tuple[int, ...]", source.box), cast("tuple[int, ...]", target.box)
    for at, rest in ((-1, slice(None, -1)), (0, slice(1, None))):
        m, other = span.left[at], span.right[at]
        label = _used((m,))
        others = {*_used(span.left[rest]), *_used(span.right[rest])}
        same = type(m) is type(other) is Affine and m == other and X[at] == Y[at]
        if not same or not _whole((m,), (X[at],), span.sizes) or label & others:
            continue
        sizes = {k: n for k, n in enumerate(span.sizes) if k not in label}
        passed = Diagonal(Seg(X[at]), Seg(X[at]))
        core = named(box_set(X[rest]), box_set(Y[rest]), tidied(sizes, span.left[rest], span.right[rest], span.times))
        return Both(source, target, *((core, passed) if at else (passed, core)))
    return None


def _used(maps: tuple[IndexMap, ...]) -> set[int]:
    return {k for m in maps for k in labels_of(m)}


def _whole(maps: tuple[IndexMap, ...], box: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether a side is the whole box, each axis its own label (axes of length 1 are constants)."""
    seen: set[int] = set()
    for m, n in zip(maps, box, strict=True):
        if type(m) is not Affine:
            return False
        if n == 1 and m == Affine(0):
            continue
        label = m.terms[0][0] if m.terms else -1
        if m != along(label) or sizes[label] != n or label in seen:
            return False
        seen.add(label)
    return True


def _flat(maps: tuple[IndexMap, ...], box: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(tuple([cast(Affine, m).offset for m in maps]), box)) if box else 0


def product(first: Relation, second: Relation) -> Relation:
    """R × S."""
    as_relation(second)
    source, target = first.source * second.source, first.target * second.target
    a, b = first.span, second.span
    if a is None or b is None or source.box is None or target.box is None:
        return Both(source, target, first, second)
    return named(source, target, beside(a, b)) if a.affine and b.affine else Both(source, target, first, second)


def summed(first: Relation, second: Relation) -> Relation:
    """R + S."""
    as_relation(second)
    members = [m for r in (first, second) for m in (r.members if isinstance(r, Sum) else (r,))]
    return Sum(first.source + second.source, first.target + second.target, tuple(members))


def union(first: Relation, second: Relation) -> Relation:
    """R ∪ S, multiplicities added."""
    as_relation(second)
    if first.source is not second.source or first.target is not second.target:
        one, other = [f"{r.source} × {r.target}" for r in (first, second)]
        raise RelationError(f"a union needs relations on the same sets; got {one} and {other}")
    return united(first.source, first.target, [first, second])


def united(source: Set, target: Set, members: list[Relation]) -> Relation:
    """The union of several relations; equal ones count several times, empty ones go."""
    flat = [m for r in members for m in (r.members if isinstance(r, Union) else (r,)) if not isinstance(m, Empty)]
    if not flat:
        return Empty(source, target)
    fulls = [r for r in flat if isinstance(r, Full)]
    rest = _counted([r for r in flat if not isinstance(r, Full)])
    if fulls:
        rest.append(Full(source, target, sum([r.times for r in fulls])))
    return rest[0] if len(rest) == 1 else Union(source, target, tuple(rest))


def _counted(members: list[Relation]) -> list[Relation]:
    """Equal rules as one, with their multiplicities added."""
    found: dict[Any, list[Relation]] = {}
    for r in members:
        span = r.span
        found.setdefault(r if span is None or not span.affine else span._replace(times=1), []).append(r)
    result: list[Relation] = []
    for same in found.values():
        spans = [r.span for r in same]
        if len(same) == 1 or spans[0] is None:
            result += same
        else:
            total = sum([s.times for s in spans if s is not None])
            result.append(named(same[0].source, same[0].target, spans[0]._replace(times=total)))
    return result


def as_relation(given: Any) -> Relation:
    """A relation; anything else is refused."""
    if not isinstance(given, Relation):
        raise RelationError(f"relations are composed, multiplied, added and united with relations; got {given!r}")
    return given


def part(index: Set, which: Any) -> Relation:
    """{(x, x) | x in a part}: a slice, positions or a mask."""
    n = index.size
    if isinstance(which, slice):
        start, stop, step = which.indices(n)
        count = len(range(start, stop, step))
        if index.box is not None and len(index.box) == 1:
            side = Affine(start, ((0, step),))
            return named(index, index, one_label(count, side, side))
        which = np.arange(n)[which]
    given = np.asarray(which)
    if given.dtype.kind not in "biu" and given.size:
        raise RelationError(f"a part of {index} is a slice, positions or a mask; got {which!r}")
    at = np.flatnonzero(given) if given.dtype == bool else np.unique(given.astype(np.intp))
    if given.dtype == bool and given.shape != (n,):
        raise RelationError(f"a mask of {index} needs {n} truth values; got shape {given.shape}")
    if at.size and (at[0] < 0 or at[-1] >= n):
        raise RelationError(f"a part of {index} holds {at[0] if at[0] < 0 else at[-1]}: its positions are 0 to {n - 1}")
    kept = freeze(at.astype(np.intp))
    return Pairs(index, index, kept, kept, freeze(np.ones_like(kept))) if at.size else Empty(index, index)


def block(relation: Relation, rows: Indices | None, cols: Indices | None, source: Set, target: Set) -> Relation:
    """The relation between two parts of its sets, given by positions (None: all), renamed."""
    if rows is None and cols is None and source is relation.source and target is relation.target:
        return relation
    if isinstance(relation, (Empty, Full)):
        return type(relation)(source, target, *relation.parts()[2:])
    matrix = relation.matrix()
    matrix = matrix if rows is None else matrix[rows]
    return from_matrix(source, target, matrix if cols is None else matrix[:, cols])


def from_matrix(source: Set, target: Set, matrix: Any) -> Relation:
    coo = matrix.tocsr().tocoo()
    if not coo.nnz:
        return Empty(source, target)
    rows, cols = coo.coords
    return Pairs(source, target, freeze(rows.astype(np.intp)), freeze(cols.astype(np.intp)), freeze(coo.data))


def blocks(relation: Relation) -> list[list[Relation]]:
    """The relation between the boxes of its sets: blocks[j][i] goes from box i of the source to box j of the target.

    >>> from riesz import relations, seg
    >>> R = relations.full(seg(1), seg(2)) + relations.diagonal(seg(1))
    >>> [[block.count for block in row] for row in blocks(R)]
    [[2, 0], [0, 1]]
    """
    members = relation.members if isinstance(relation, (Beside, Sum)) else ()
    sources, targets = boxes(relation.source), boxes(relation.target)
    if isinstance(relation, Diagonal) and relation.source is relation.target:
        members = tuple([Diagonal(X, X) for X, _ in sources])
    if not members or any([r.source.box is None or r.target.box is None for r in members]):
        return [[block(relation, at, to, X, Y) for X, at in sources] for Y, to in targets]
    if isinstance(relation, Beside):
        return [[r.converse] for r in members] if relation.turned else [list(members)]
    rows = list(enumerate(members))
    return [[r if i == j else Empty(s.source, r.target) for i, s in rows] for j, r in rows]
