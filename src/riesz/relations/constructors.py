"""Relations from what is at hand: sets, functions, slices, index arrays, windows, segments, pairs, matrices, edge
lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..errors import RelationError
from .algebra import from_matrix, named
from .base import Relation, freeze, within
from .index_algebra import Affine, IndexTable, along
from .index_sets import Array, Indices, Seg, Set, unit
from .kinds import Diagonal, Empty, Full, Function, Point, Range, Segments, Triangular
from .spans import one_label, tidied


def positions_in(values: Any, where: Set) -> Indices:
    """Positions of elements; an integer array is taken as positions, anything else element by element."""
    if isinstance(values, np.ma.MaskedArray) or hasattr(values, "to_numpy"):
        from .keys import column

        found = column(values)
        if found.missing.any():
            at = int(np.argmax(found.missing))
            raise RelationError(f"positions in {where} are all there; the one at {at} is missing")
        values = found.values
    numbers = isinstance(values, (list, tuple)) and {type(v) for v in cast("list[Any]", values)} == {int}
    plain = numbers or isinstance(values, np.ndarray) or isinstance(where, Seg)
    given: Any = np.asarray(cast(Any, values)) if plain else None
    if given is not None and given.dtype.kind in "iu" and given.ndim == 1:
        if given.dtype.kind == "u":
            within(given, where, "the list of positions")
        return given.astype(np.intp, copy=False)
    if given is not None and given.size == 0:
        return np.zeros(0, np.intp)
    try:
        return np.array([where.position(v) for v in cast("list[Any]", values)], np.intp)
    except (ValueError, TypeError) as problem:
        raise RelationError(f"not a relation on {where}: {problem}") from None


def as_set(given: Any) -> Set:
    """An index set; anything else is refused."""
    if not isinstance(given, Set):
        raise RelationError(f"a relation is between index sets; got {given!r}: write seg({given!r})")
    return given


def whole(number: Any, what: str) -> int:
    """An integer; anything else is refused."""
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
        raise RelationError(f"{what} is a whole number; got {number!r}")
    return int(cast(Any, number))


def full(source: Set, target: Set) -> Relation:
    """X × Y, every pair.

    >>> from riesz import seg
    >>> full(seg(2), seg(3)).then(full(seg(3), seg(1))).times
    3
    """
    return Full(source, target, 1)


def diagonal(index: Set) -> Relation:
    """{(x, x) | x ∈ X}.

    >>> from riesz import seg
    >>> diagonal(seg(2)).matrix().toarray().tolist()
    [[1, 0], [0, 1]]
    """
    return Diagonal(as_set(index), index)


def empty(source: Set, target: Set) -> Relation:
    """The relation without pairs.

    >>> from riesz import seg
    >>> empty(seg(2), seg(3)).count
    0
    """
    return Empty(source, target)


def function(source: Set, target: Set, image: Any) -> Relation:
    """{(x, f(x))}, with f given by its values (positions or elements of the target) or as a Python function.

    >>> from riesz import seg
    >>> R = function(seg(4), seg(2), [0, 1, 0, 1])
    >>> R.matrix().toarray().tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """
    values = [image(x) for x in as_set(source)] if callable(image) else image
    return Function(as_set(source), as_set(target), freeze(positions_in(values, target)))


def gather(source: Set, target: Set, index: Any) -> Relation:
    """{(f(y), y)}: the converse of a function; (red v)_y = v_{f(y)}.

    >>> from riesz import seg
    >>> gather(seg(3), seg(2), [2, 0]).plan()([5.0, 6.0, 7.0]).tolist()
    [7.0, 5.0]
    """
    return function(target, source, index).converse


def triangular(index: Set) -> Relation:
    """{(i, j) | i ≤ j} on a segment; red is the prefix sum.

    >>> from riesz import seg
    >>> triangular(seg(3)).plan()([1.0, 2.0, 3.0]).tolist()
    [1.0, 3.0, 6.0]
    """
    return Triangular(index, index, True)


def pairs(source: Set, target: Set, given: Iterable[tuple[Any, Any]]) -> Relation:
    """An explicit relation; a pair given twice counts twice.

    >>> from riesz import seg
    >>> pairs(seg(2), seg(2), [(0, 1), (0, 1), (1, 0)]).matrix().toarray().tolist()
    [[0, 2], [1, 0]]
    """
    listed: list[Any] = list(given)
    for pair in listed:
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(cast("tuple[Any, ...]", pair)) != 2:
            raise RelationError(f"a relation is made of pairs (x, y); got {pair!r}")
    rows = positions_in([p[0] for p in listed], source)
    cols = positions_in([p[1] for p in listed], target)
    within(rows, source, "the first of the pairs")
    within(cols, target, "the second of the pairs")
    return _counted(source, target, rows, cols)


def relation(source: Set, target: Set, given: Any) -> Relation:
    """A relation from what is at hand: pairs (x, y), a Python function x ↦ y, or a |X| × |Y| matrix of multiplicities
    (NumPy or SciPy).

    >>> import riesz as rz, numpy as np
    >>> R = rz.relation(rz.seg(2), rz.seg(3), [(0, 2), (1, 0), (1, 2)])
    >>> R.converse.matrix().toarray().tolist()
    [[0, 1], [0, 0], [1, 1]]
    >>> rz.relation(rz.seg(4), rz.seg(2), lambda x: x % 2)
    f:4→2
    """
    source, target = as_set(source), as_set(target)
    if callable(given):
        return function(source, target, given)
    shape = getattr(given, "shape", None)
    if shape == (2, 2) == (source.size, target.size) and isinstance(given, np.ndarray):
        say = "use relations.pairs(X, Y, …) or a SciPy matrix to say which"
        raise RelationError(f"a 2 × 2 array may be a matrix or two pairs; {say}")
    wanted = (source.size, target.size)
    if shape is None or shape == (0,) or (len(shape) == 2 and shape[1] == 2 and shape != wanted):
        return pairs(source, target, given)
    if shape != wanted:
        due = f"a relation on {source} × {target} is a matrix of shape {wanted} or a list of pairs"
        raise RelationError(f"{due}; got an array of shape {shape}")
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    matrix = cast(Any, sparse).csr_array(given, copy=True)
    counts = cast(Array, matrix.data)
    if counts.size and not (counts.min() >= 0 and counts.max() < 2**53 and np.array_equal(counts, np.round(counts))):
        raise RelationError("multiplicities are natural numbers; the matrix given has others")
    matrix.eliminate_zeros()
    return from_matrix(source, target, matrix.astype(np.intp))


def point(index: Set, at: int) -> Relation:
    """{(x, ())} for the element at one position: the projection π_x of a copower is its reduction.

    >>> from riesz import seg
    >>> point(seg(3), 1).pairs()[0].tolist()
    [1]
    """
    return Point(as_set(index), unit, whole(at, "a position"))


def permutation(index: Set, image: Any) -> Relation:
    """{(x, p(x))} for a permutation p of a set, by its values.

    >>> from riesz import seg
    >>> permutation(seg(3), [2, 0, 1]).converse.image([0]).tolist()
    [1]
    """
    made = function(index, index, image)
    values = np.sort(cast(Function, made).index)
    if not np.array_equal(values, np.arange(index.size)):
        missing = np.setdiff1d(np.arange(index.size), values)
        raise RelationError(f"not a permutation of {index}: {missing[0]} is no value")
    return made


def shift(index: Set, by: int) -> Relation:
    """{(i, i + by)} on a segment, as far as both are in it; red moves a vector and fills with zeros.

    >>> from riesz import seg
    >>> shift(seg(3), 1).matrix().toarray().tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    """
    by = whole(by, "a shift")
    return stride(index, index, start=max(-by, 0), begin=max(by, 0), count=max(index.size - abs(by), 0))


def stride(
    source: Set, target: Set, start: int = 0, step: int = 1, begin: int = 0, jump: int = 1, count: int | None = None
) -> Relation:
    """{(start + step·t, begin + jump·t) | t < count}: every step-th element to every jump-th place.

    >>> from riesz import seg
    >>> stride(seg(5), seg(3), start=4, step=-2)
    4::-2
    """
    n, m = _length(source), _length(target)
    start, step, begin, jump = [whole(k, "a stride") for k in (start, step, begin, jump)]
    if step == 0 or jump == 0:
        raise RelationError("a stride goes on: step and jump must not be 0")
    most = min(_room(start, step, n), _room(begin, jump, m))
    used = most if count is None else count
    if used > most or used < 0:
        asked = f"{used} elements from {start} by {step} and {begin} by {jump}"
        raise RelationError(f"a stride of {asked} does not fit {source} and {target}: {most} do")
    return named(source, target, one_label(used, Affine(start, ((0, step),)), Affine(begin, ((0, jump),))))


def _length(index: Set) -> int:
    as_set(index)
    if index.box is None or len(index.box) != 1:
        more = "relations of several axes are products R * S"
        raise RelationError(f"a segment is due, such as seg(5); got {index} ({more})")
    return index.box[0]


def _room(start: int, step: int, n: int) -> int:
    return 0 if not 0 <= start < n else (n - 1 - start) // step + 1 if step > 0 else start // -step + 1


def window(source: Set, size: int, step: int = 1, dilation: int = 1, target: Set | None = None) -> Relation:
    """{(step·j + dilation·k, j) | k < size}: y_j is the sum over a window of x; stencils, convolutions and pooling are
    made of it.

    >>> from riesz import seg
    >>> window(seg(4), 2).matrix().toarray().T.tolist()
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    n = _length(source)
    size, step, dilation = [whole(k, "a window") for k in (size, step, dilation)]
    reach = dilation * (size - 1) + 1
    if size < 1 or step < 1 or dilation < 1 or reach > n:
        raise RelationError(f"a window of {size} elements, {dilation} apart, moved by {step}, does not fit {source}")
    count = (n - reach) // step + 1
    where = Seg(count) if target is None else target
    if _length(where) != count:
        raise RelationError(f"this window has {count} places in {source}; the target {where} has {_length(where)}")
    return named(source, where, tidied({0: count, 1: size}, (Affine(0, ((0, step), (1, dilation))),), (along(0),), 1))


def segments(offsets: Any, target: Set | None = None) -> Relation:
    """{(e, s) | offsets[s] ≤ e < offsets[s + 1]}: red sums each segment; empty ones give 0.

    >>> segments([0, 2, 2, 5]).in_degrees.tolist()
    [2, 0, 3]
    """
    cuts = np.asarray(offsets)
    if cuts.ndim != 1 or cuts.dtype.kind not in "iu" or not cuts.size:
        many = "one more than there are segments"
        raise RelationError(f"offsets of segments are integers from 0 on that do not decrease, {many}")
    cuts = cuts.astype(np.intp)
    where = Seg(len(cuts) - 1) if target is None else target
    if where.size != len(cuts) - 1:
        raise RelationError(f"{len(cuts) - 1} segments, but the target {where} has {where.size} elements")
    return Segments(Seg(int(cuts[-1])), where, freeze(cuts))


def sliced(index: Set, key: slice) -> Relation:
    """{(start + step·t, t)}: red takes the slice x[key].

    >>> from riesz import seg
    >>> sliced(seg(6), slice(4, None, -2))
    4::-2
    """
    if not isinstance(cast(Any, key), slice):
        raise RelationError(f"sliced(X, slice(start, stop, step)) takes a slice; got {key!r}")
    start, stop, step = key.indices(_length(index))
    count = len(range(start, stop, step))
    return Range(index, Seg(count), start if count else 0, step, False)


def triangular_strict(index: Set) -> Relation:
    """{(i, j) | i < j} on a segment: red is the prefix sum before each element.

    >>> from riesz import seg
    >>> triangular_strict(seg(3)).matrix().toarray().tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    return Triangular(index, index, True, True)


def edges(source: Set, target: Set, rows: Any, cols: Any) -> Relation:
    """The relation of an edge list: pairs (rows[e], cols[e]), each as often as it occurs.

    >>> from riesz import seg
    >>> edges(seg(3), seg(2), [0, 2, 2], [1, 1, 1]).matrix().toarray().tolist()
    [[0, 1], [0, 0], [0, 2]]
    """
    at, to = positions_in(_column(rows), as_set(source)), positions_in(_column(cols), as_set(target))
    if len(at) != len(to):
        raise RelationError(f"an edge list has as many ends as beginnings; got {len(at)} and {len(to)}")
    within(at, source, "the first column")
    within(to, target, "the second column")
    flat = [len(s.box or ()) for s in (source, target)] == [1, 1]
    if flat and len(at) <= source.size * target.size:  # a span as it is: nothing sorted or counted
        span = one_label(len(at), IndexTable(freeze(at), (0,)), IndexTable(freeze(to), (0,)))
        return named(source, target, span)
    return _counted(source, target, at, to)


def _column(given: Any) -> Any:
    """A column of a table, all of it there, or a list of elements."""
    if not hasattr(given, "fetchnumpy"):
        return given
    from .keys import column

    found = column(given)
    return np.ma.array(found.values, mask=found.missing)


def _counted(source: Set, target: Set, at: Any, to: Any) -> Relation:
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    ones = np.ones(len(at), np.intp)
    return from_matrix(source, target, cast(Any, sparse).coo_array((ones, (at, to)), shape=(source.size, target.size)))
