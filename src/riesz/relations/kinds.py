"""The kinds of relations that have names. Each knows its span and the fastest way to reduce; the compact ones store no
pairs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from ..errors import RelationError
from .base import Box, Relation, freeze, seal, within
from .cpu.groups import Groups, ascending, kind_for, owners, short
from .cpu.pair_sums import gather, pair_sum, repeat, running_sum, scatter
from .index_algebra import ORIGIN, Affine, IndexMap, IndexTable, along
from .index_sets import Array, Indices, Seg, Set
from .spans import Span, one_label, tidied


class Empty(Relation):
    """∅: no pairs; red_∅ = 0.

    >>> from riesz import relations, seg
    >>> relations.empty(seg(3), seg(2)).plan()([1.0, 2.0, 3.0]).tolist()
    [0.0, 0.0]
    """

    def reduce(self, v: Array) -> Array:
        return self.zeros(v)

    @property
    def count(self) -> int:
        return 0

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        none = np.zeros(0, np.intp)
        return none, none, none


class Diagonal(Relation):
    """{(x, x)}: red = id. Source and target may be two names of one size (a regrouping of indices).

    >>> from riesz import relations, seg
    >>> R = relations.diagonal(seg(3))
    >>> type(R).__name__, R.plan()([1.0, 2.0, 3.0]).tolist()
    ('Diagonal', [1.0, 2.0, 3.0])
    """

    sliced: ClassVar[bool] = True

    def check(self) -> None:
        n, m = self.source.size, self.target.size
        if n != m:
            raise RelationError(f"a diagonal needs sets of one size; {self.source} has {n}, {self.target} has {m}")

    def between(self, source: Box, target: Box) -> Span | None:
        if source == target:
            maps = tuple([along(i) for i in range(len(source))])
            return tidied(dict(enumerate(source)), maps, maps, 1)
        if len(source) != 1 and len(target) != 1:
            return None  # not affine
        box = target if len(source) == 1 else source
        flat = Affine(0, tuple([(i, int(np.prod(box[i + 1 :]))) for i in range(len(box))]))
        found = tidied(dict(enumerate(box)), (flat,), tuple([along(i) for i in range(len(box))]), 1)
        return found if len(source) == 1 else found.turned

    def reduce(self, v: Array) -> Array:
        return v


class Full(Relation):
    """X × Y, every pair, each `times` times: a sum, broadcast.

    >>> from riesz import relations, seg
    >>> relations.full(seg(3), seg(2)).plan()([1.0, 2.0, 3.0]).tolist()
    [6.0, 6.0]
    """

    times: int = 1

    def between(self, source: Box, target: Box) -> Span | None:
        n, sizes = len(source), (*source, *target)
        maps = tuple([along(i) for i in range(len(sizes))])
        return tidied(dict(enumerate(sizes)), maps[:n], maps[n:], self.times)

    @property
    def count(self) -> int:
        return self.source.size * self.target.size * self.times

    @property
    def work(self) -> int:
        return self.source.size + self.target.size

    def reduce(self, v: Array) -> Array:
        total = v.sum(axis=1, keepdims=True)
        total = total if self.times == 1 else total * float(self.times)
        return np.broadcast_to(total, (v.shape[0], self.target.size, v.shape[2]))


class Function(Relation):
    """{(x, f(x))}: a total function, by its image; red scatters and sums.

    >>> from riesz import relations, seg
    >>> relations.function(seg(3), seg(2), [1, 0, 1]).plan()([1.0, 2.0, 3.0]).tolist()
    [2.0, 4.0]
    """

    index: Any

    def check(self) -> None:
        within(self.index, self.target, "the image")
        _one_each(self.index, self.source, f"a function on {self.source} needs {self.source.size} values")

    def between(self, source: Box, target: Box) -> Span | None:
        return listed(source, target, self.index)

    def _turn(self) -> Relation:
        return Gather(self.target, self.source, self.index)

    def reduce(self, v: Array) -> Array:
        return scatter(self, v)

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What was prepared for sums on threads."""
        return {}

    @cached_property
    def short(self) -> Indices:
        """The index in 32 bits where that is enough: half the memory to read."""
        return seal(short(self.index, self.target.size))

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        return np.arange(self.source.size), self.index, ones(self.source.size)

    def matrix(self) -> Any:
        return self.weights(np.intp).T

    def weights(self, kind: Any) -> Any:
        """By sources, as they come: nothing is sorted."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        n, positions = self.source.size, kind_for(max(self.source.size + 1, self.target.size))
        parts = (np.ones(n, kind), self.index.astype(positions), np.arange(n + 1, dtype=positions))
        return cast(Any, sparse).csc_array(parts, shape=(self.target.size, n))


class Gather(Relation):
    """{(f(y), y)}: the converse of a function Y → X, by its image; red copies.

    >>> from riesz import relations, seg
    >>> relations.gather(seg(3), seg(4), [2, 2, 0, 1]).plan()([1.0, 2.0, 3.0]).tolist()
    [3.0, 3.0, 1.0, 2.0]
    """

    index: Any

    def check(self) -> None:
        within(self.index, self.source, "the index array")
        _one_each(self.index, self.target, f"a gather into {self.target} needs {self.target.size} indices")

    def between(self, source: Box, target: Box) -> Span | None:
        found = listed(target, source, self.index)
        return found and found.turned

    def _turn(self) -> Relation:
        return Function(self.target, self.source, self.index)

    def reduce(self, v: Array) -> Array:
        return gather(self, v)

    @cached_property
    def short(self) -> Indices:
        """The index in 32 bits where that is enough."""
        return seal(short(self.index, self.source.size))

    @cached_property
    def in_order(self) -> bool:
        """Whether sources come in order, as far as a few of them tell."""
        return ascending(self.index[:: len(self.index) // 64 + 1])

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        return self.index, np.arange(self.target.size), ones(self.target.size)


def _one_each(index: Array, where: Set, need: str) -> None:
    if index.shape != (where.size,):
        raise RelationError(f"{need}, got an array of shape {index.shape}")


class Segments(Relation):
    """{(e, s) | offsets[s] ≤ e < offsets[s + 1]}: red sums each segment; `turned`, the converse: red repeats.

    >>> from riesz import relations
    >>> R = relations.segments([0, 2, 3])
    >>> R.plan()([1.0, 2.0, 3.0]).tolist(), R.converse.plan()([1.0, 2.0]).tolist()
    ([3.0, 3.0], [1.0, 1.0, 2.0])
    """

    offsets: Any
    turned: bool = False

    def check(self) -> None:
        long, few = (self.target, self.source) if self.turned else (self.source, self.target)
        cuts = self.offsets
        if bool((cuts[1:] < cuts[:-1]).any()) or cuts[:1].any():
            bad = int(np.flatnonzero(np.diff(cuts) < 0)[0]) + 1 if not cuts[:1].any() else 0
            raise RelationError(f"offsets of segments begin with 0 and do not decrease; got {cuts[bad]} at {bad}")
        if cuts.shape != (few.size + 1,) or int(cuts[0]) or int(cuts[-1]) != long.size:
            need = f"{few} segments of {long} need {few.size + 1} offsets from 0 to {long.size}"
            raise RelationError(f"{need}; got an array of shape {cuts.shape}")

    @cached_property
    def ids(self) -> Indices:
        """The segment of each element."""
        return freeze(owners(self.offsets).astype(np.intp))

    def between(self, source: Box, target: Box) -> Span | None:
        found = listed(target, source, self.ids) if self.turned else listed(source, target, self.ids)
        return found.turned if self.turned and found is not None else found

    @cached_property
    def groups(self) -> Groups:
        if not self.turned:
            return Groups(self.source.size, short(self.offsets, self.source.size + 1), None)
        places = np.arange(self.target.size + 1, dtype=kind_for(self.target.size + 1))
        return Groups(self.source.size, places, short(self.ids, self.source.size))

    def reduce(self, v: Array) -> Array:
        return repeat(self.offsets, v) if self.turned else pair_sum(self, v)


class Copied(Relation):
    """One slice, copied: red takes it, a view, or puts it into zeros, at its `tile`."""

    sliced: ClassVar[bool] = True

    @cached_property
    def cut(self) -> Any:
        """The slice."""
        raise NotImplementedError

    @property
    def patch(self) -> tuple[slice, slice]:
        return (self.cut, slice(None)) if self.tile is None else (slice(None), self.tile)

    def reduce(self, v: Array) -> Array:
        tile = self.tile
        if tile is None:
            return v[:, self.cut]
        total = self.zeros(v)
        total[:, tile] = v
        return total

    def reduce_into(self, total: Array, v: Array) -> None:
        if self.tile is None:
            total += v[:, self.cut]
        else:
            total[:, self.tile] += v


class Point(Copied):
    """{(x, ())} for one x: red is the projection π_x, a view.

    >>> from riesz import relations, seg
    >>> relations.point(seg(3), 1).plan()([1.0, 2.0, 3.0]).tolist()
    2.0
    """

    at: int

    def check(self) -> None:
        within(np.array([self.at]), self.source, "the point")

    def between(self, source: Box, target: Box) -> Span | None:
        return Span((), _place(self.at, source), (ORIGIN,) * len(target))

    def _turn(self) -> Relation:
        return Place(self.target, self.source, self.at)

    @cached_property
    def cut(self) -> Any:
        return slice(self.at, self.at + 1)


class Place(Copied):
    """{((), x)} for one x: red is the injection ι_x.

    >>> from riesz import relations, seg
    >>> R = relations.point(seg(3), 1).converse
    >>> type(R).__name__, R.plan()(5.0).tolist()
    ('Place', [0.0, 5.0, 0.0])
    """

    at: int

    def check(self) -> None:
        within(np.array([self.at]), self.target, "the point")

    def between(self, source: Box, target: Box) -> Span | None:
        return Span((), (ORIGIN,) * len(source), _place(self.at, target))

    def _turn(self) -> Relation:
        return Point(self.target, self.source, self.at)

    @cached_property
    def cut(self) -> Any:
        return slice(self.at, self.at + 1)

    @property
    def tile(self) -> slice | None:
        return self.cut


def _place(at: int, box: Box) -> tuple[IndexMap, ...]:
    return tuple([Affine(int(i)) for i in np.unravel_index(at, box)])


class Range(Copied):
    """{(start + step·k, k)}: red takes a slice, a view; `turned`, {(k, start + step·k)}: red puts one into zeros.

    >>> from riesz import relations, seg
    >>> R = relations.sliced(seg(5), slice(1, None, 2))
    >>> R.plan()([0.0, 1.0, 2.0, 3.0, 4.0]).tolist(), R.converse.plan()([7.0, 8.0]).tolist()
    ([1.0, 3.0], [0.0, 7.0, 0.0, 8.0, 0.0])
    """

    start: int
    step: int
    turned: bool = False

    def check(self) -> None:
        long, count = (self.target, self.source.size) if self.turned else (self.source, self.target.size)
        ends = np.array([self.start, self.start + self.step * (count - 1)]) if count else np.zeros(0, np.intp)
        within(ends, long, "the slice")

    def between(self, source: Box, target: Box) -> Span | None:
        count = self.source.size if self.turned else self.target.size
        found = one_label(count, Affine(self.start, ((0, self.step),)), along(0))
        return found.turned if self.turned else found

    @cached_property
    def cut(self) -> Any:
        return self.slice(self.source.size if self.turned else self.target.size)

    @property
    def tile(self) -> Any:
        return self.cut if self.turned else None

    def slice(self, count: int) -> Any:
        """The slice that `count` elements are."""
        end = self.start + self.step * count
        return slice(self.start, None if end < 0 else end, self.step) if count else slice(0, 0)


class Triangular(Relation):
    """{(i, j) | i ≤ j}, or i ≥ j unless `lower`, without i = j when `strict`: prefix and suffix sums, no pair kept.

    >>> from riesz import relations, seg
    >>> relations.triangular(seg(3)).plan()([1.0, 2.0, 3.0]).tolist()
    [1.0, 3.0, 6.0]
    """

    lower: bool = True
    strict: bool = False

    def check(self) -> None:
        if not isinstance(self.source, Seg) or self.source is not self.target:
            raise RelationError(f"a triangular relation orders one segment; got {self.source} and {self.target}")

    def _turn(self) -> Relation:
        return Triangular(self.source, self.target, not self.lower, self.strict)

    @property
    def count(self) -> int:
        n = self.source.size
        return n * (n - 1) // 2 if self.strict else n * (n + 1) // 2

    @property
    def work(self) -> int:
        return self.source.size

    def reduce(self, v: Array) -> Array:
        return running_sum(v, backwards=not self.lower, strict=self.strict)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        rows, cols = np.triu_indices(self.source.size, int(self.strict))
        rows, cols = (rows, cols) if self.lower else (cols, rows)
        return rows, cols, np.ones_like(rows)


class Pairs(Relation):
    """An explicit list of pairs, with multiplicities; sorted, no pair twice.

    >>> from riesz import relations, seg
    >>> relations.pairs(seg(3), seg(2), [(0, 0), (0, 1), (2, 0)]).plan()([1.0, 2.0, 3.0]).tolist()
    [4.0, 1.0]
    """

    rows: Any
    cols: Any
    times: Any

    def check(self) -> None:
        within(self.rows, self.source, "the first of the pairs")
        within(self.cols, self.target, "the second of the pairs")

    def _turn(self) -> Relation:
        groups = self.groups
        rows = owners(groups.offsets).astype(np.intp)
        cols = np.arange(len(rows)) if groups.index is None else groups.index.astype(np.intp)
        times = self.times if groups.times is None else groups.times
        return Pairs(self.target, self.source, *[freeze(a) for a in (rows, cols, times)])

    def between(self, source: Box, target: Box) -> Span | None:
        return self._span if len(source) == len(target) == 1 else None

    @cached_property
    def _span(self) -> Span | None:
        times = self.times
        if not times.size or not bool((times == times[0]).all()) or times[0] != int(times[0]):
            return None
        return one_label(len(self.rows), IndexTable(self.rows, (0,)), IndexTable(self.cols, (0,)), int(times[0]))

    def reduce(self, v: Array) -> Array:
        return pair_sum(self, v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        return self.rows, self.cols, self.times


def ones(count: int) -> Indices:
    """Multiplicities of pairs that occur once: one number, seen many times."""
    return np.broadcast_to(np.intp(1), (count,))


def listed(source: Box, target: Box, image: Any) -> Span | None:
    """The span of a function given by an index array, on a segment."""
    if len(source) != 1 or not len(target):
        return None
    axes: list[Any] = [image]
    if len(target) > 1:
        axes = [freeze(np.asarray(k, np.intp)) for k in cast(Any, np.unravel_index(image, target))]
    return tidied({0: source[0]}, (along(0),), tuple([IndexTable(k, (0,)) for k in axes]), 1)
