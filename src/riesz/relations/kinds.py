"""The kinds of relations that have names. Each knows its converse, its span and the fastest way to reduce; the compact
ones store no pairs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..errors import RelationError
from .base import Relation, freeze, seal, within
from .cpu.groups import Groups, ascending, kind_for, owners, short
from .cpu.pair_sums import gather, pair_sum, repeat, running_sum, scatter
from .index_algebra import Affine, IndexTable
from .index_sets import Seg
from .spans import Span, tidied

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.intp]
    Array = NDArray[Any]


class Empty(Relation):
    """∅: no pairs; red_∅ = 0."""

    @property
    def converse(self) -> Relation:
        return Empty(self.target, self.source)

    def reduce(self, v: Array) -> Array:
        return np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)

    @property
    def count(self) -> int:
        return 0

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        none = np.zeros(0, np.intp)
        return none, none, none


class Diagonal(Relation):
    """{(x, x)}: red = id. Source and target may be two names of one size (a regrouping of indices)."""

    sliced: ClassVar[bool] = True

    def check(self) -> None:
        if self.source.size != self.target.size:
            raise RelationError(
                f"a diagonal needs sets of one size; {self.source} has {self.source.size}, {self.target} has "
                f"{self.target.size}"
            )

    @property
    def span(self) -> Span | None:
        return regrouping(self.source.box, self.target.box)

    @property
    def is_function(self) -> bool:
        return True

    @property
    def is_injective(self) -> bool:
        return True

    @property
    def converse(self) -> Relation:
        return Diagonal(self.target, self.source)

    def reduce(self, v: Array) -> Array:
        return v

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        every = np.arange(self.source.size)
        return every, every, ones(len(every))


class Full(Relation):
    """X × Y, every pair, each `times` times: a sum, broadcast."""

    times: int = 1

    @property
    def span(self) -> Span | None:
        if self.source.box is None or self.target.box is None:
            return None
        n = len(self.source.box)
        sizes = (*self.source.box, *self.target.box)
        maps = [Affine(0, ((i, 1),)) for i in range(len(sizes))]
        return tidied(dict(enumerate(sizes)), tuple(maps[:n]), tuple(maps[n:]), self.times)

    @property
    def is_function(self) -> bool:
        return self.target.size * self.times == 1 or not self.source.size

    @property
    def is_injective(self) -> bool:
        return self.source.size * self.times <= 1 or not self.target.size

    @property
    def converse(self) -> Relation:
        return Full(self.target, self.source, self.times)

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

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        n, m = self.source.size, self.target.size
        return np.repeat(np.arange(n), m), np.tile(np.arange(m), n), np.full(n * m, self.times)


class Function(Relation):
    """{(x, f(x))}: a total function, by its image; red scatters and sums."""

    index: Any

    def check(self) -> None:
        within(self.index, self.target, "the image")
        if self.index.shape != (self.source.size,):
            raise RelationError(
                f"a function on {self.source} needs {self.source.size} values, got an array of shape {self.index.shape}"
            )

    @property
    def span(self) -> Span | None:
        return listed(self.source.box, self.target.box, self.index)

    @property
    def is_function(self) -> bool:
        return True

    @property
    def converse(self) -> Relation:
        return self._with_converse(lambda: Gather(self.target, self.source, self.index))

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
        every = np.arange(self.source.size)
        return every, self.index, ones(len(every))

    def matrix(self) -> Any:
        return self.weights(np.intp).T

    def weights(self, kind: Any) -> Any:
        """By sources, as they come: nothing is sorted."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        n, positions = self.source.size, kind_for(max(self.source.size + 1, self.target.size))
        parts = (np.ones(n, kind), self.index.astype(positions), np.arange(n + 1, dtype=positions))
        return cast(Any, sparse).csc_array(parts, shape=(self.target.size, n))


class Gather(Relation):
    """{(f(y), y)}: the converse of a function Y → X, by its image; red copies."""

    index: Any

    def check(self) -> None:
        within(self.index, self.source, "the index array")
        if self.index.shape != (self.target.size,):
            raise RelationError(
                f"a gather into {self.target} needs {self.target.size} indices, got an array of shape "
                f"{self.index.shape}"
            )

    @property
    def span(self) -> Span | None:
        found = listed(self.target.box, self.source.box, self.index)
        return None if found is None else found.turned

    @property
    def is_injective(self) -> bool:
        return True

    @property
    def converse(self) -> Relation:
        return self._with_converse(lambda: Function(self.target, self.source, self.index))

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
        every = np.arange(self.target.size)
        return self.index, every, ones(len(every))


class Segments(Relation):
    """{(e, s) | offsets[s] ≤ e < offsets[s + 1]}: red sums each segment; `turned`, the converse: red repeats. Only the
    offsets are stored."""

    offsets: Any
    turned: bool = False

    def check(self) -> None:
        long, few = (self.target, self.source) if self.turned else (self.source, self.target)
        if bool((self.offsets[1:] < self.offsets[:-1]).any()) or self.offsets[:1].any():
            bad = int(np.flatnonzero(np.diff(self.offsets) < 0)[0]) + 1 if not self.offsets[:1].any() else 0
            raise RelationError(
                f"offsets of segments begin with 0 and do not decrease; got {self.offsets[bad]} at {bad}"
            )
        if self.offsets.shape != (few.size + 1,) or int(self.offsets[0]) or int(self.offsets[-1]) != long.size:
            raise RelationError(
                f"{few} segments of {long} need {few.size + 1} offsets from 0 to {long.size}; got an array of shape "
                f"{self.offsets.shape}"
            )

    @cached_property
    def ids(self) -> Indices:
        """The segment of each element."""
        return freeze(owners(self.offsets).astype(np.intp))

    @property
    def span(self) -> Span | None:
        long, few = (self.target, self.source) if self.turned else (self.source, self.target)
        found = listed(long.box, few.box, self.ids)
        return found.turned if self.turned and found is not None else found

    @property
    def is_function(self) -> bool:
        return not self.turned or bool((np.diff(self.offsets) == 1).all())

    @property
    def is_injective(self) -> bool:
        return self.turned or bool((np.diff(self.offsets) <= 1).all())

    @property
    def converse(self) -> Relation:
        return self._with_converse(lambda: Segments(self.target, self.source, self.offsets, not self.turned))

    @cached_property
    def groups(self) -> Groups:
        if self.turned:
            return Groups(
                self.source.size,
                np.arange(self.target.size + 1, dtype=kind_for(self.target.size + 1)),
                short(self.ids, self.source.size),
            )
        return Groups(self.source.size, short(self.offsets, self.source.size + 1), None)

    def reduce(self, v: Array) -> Array:
        return repeat(self.offsets, v) if self.turned else pair_sum(self, v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        every = np.arange(len(self.ids))
        return (self.ids, every, ones(len(every))) if self.turned else (every, self.ids, ones(len(every)))


class Point(Relation):
    """{(x, ())} for one x: red is the projection π_x, a view."""

    sliced: ClassVar[bool] = True

    at: int

    def check(self) -> None:
        within(np.array([self.at]), self.source, "the point")

    @property
    def span(self) -> Span | None:
        return (
            None
            if self.source.box is None
            else Span((), tuple([Affine(int(i)) for i in np.unravel_index(self.at, self.source.box)]), ())
        )

    @property
    def converse(self) -> Relation:
        return Place(self.target, self.source, self.at)

    def reduce(self, v: Array) -> Array:
        return v[:, self.at : self.at + 1, :]

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        one = np.ones(1, np.intp)
        return one * self.at, one * 0, one


class Place(Relation):
    """{((), x)} for one x: red is the injection ι_x."""

    sliced: ClassVar[bool] = True

    at: int

    def check(self) -> None:
        within(np.array([self.at]), self.target, "the point")

    @property
    def span(self) -> Span | None:
        return (
            None
            if self.target.box is None
            else Span((), (), tuple([Affine(int(i)) for i in np.unravel_index(self.at, self.target.box)]))
        )

    @property
    def converse(self) -> Relation:
        return Point(self.target, self.source, self.at)

    def reduce(self, v: Array) -> Array:
        total = np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        total[:, self.at, :] = v[:, 0, :]
        return total

    def reduce_into(self, total: Array, v: Array) -> None:
        total[:, self.at, :] += v[:, 0, :]

    @property
    def tile(self) -> slice | None:
        return slice(self.at, self.at + 1)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        one = np.ones(1, np.intp)
        return one * 0, one * self.at, one


class Range(Relation):
    """{(start + step·k, k)}: red takes a slice, a view; `turned`, {(k, start + step·k)}: red puts one into zeros."""

    sliced: ClassVar[bool] = True

    start: int
    step: int
    turned: bool = False

    def check(self) -> None:
        long, short = (self.target, self.source) if self.turned else (self.source, self.target)
        ends = np.array([self.start, self.start + self.step * (short.size - 1)]) if short.size else np.zeros(0, np.intp)
        within(ends, long, "the slice")

    @property
    def span(self) -> Span | None:
        count = self.source.size if self.turned else self.target.size
        found = tidied({0: count}, (Affine(self.start, ((0, self.step),)),), (Affine(0, ((0, 1),)),), 1)
        return found.turned if self.turned else found

    @property
    def is_injective(self) -> bool:
        return True

    @property
    def is_function(self) -> bool:
        return self.turned or self.source.size == self.target.size

    @property
    def converse(self) -> Relation:
        return Range(self.target, self.source, self.start, self.step, not self.turned)

    def slice(self, count: int) -> Any:
        """The slice that `count` elements are."""
        end = self.start + self.step * count
        return slice(self.start, None if end < 0 else end, self.step) if count else slice(0, 0)

    def reduce(self, v: Array) -> Array:
        if not self.turned:
            return v[:, self.slice(self.target.size)]
        total = np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        total[:, self.slice(self.source.size)] = v
        return total

    @property
    def tile(self) -> slice | None:
        return self.slice(self.source.size) if self.turned else None

    def reduce_into(self, total: Array, v: Array) -> None:
        if self.turned:
            total[:, self.slice(self.source.size)] += v
        else:
            total += self.reduce(v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        short = np.arange(self.source.size if self.turned else self.target.size)
        long = self.start + self.step * short
        return (short, long, np.ones_like(short)) if self.turned else (long, short, np.ones_like(short))


class Triangular(Relation):
    """{(i, j) | i ≤ j}, or i ≥ j when `lower` is false, without i = j when `strict`: prefix and suffix sums. No pair is
    stored."""

    lower: bool = True
    strict: bool = False

    def check(self) -> None:
        if not isinstance(self.source, Seg) or self.source is not self.target:
            raise RelationError(f"a triangular relation orders one segment; got {self.source} and {self.target}")

    @property
    def converse(self) -> Relation:
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
    """An explicit list of pairs, with multiplicities; sorted, no pair twice."""

    rows: Any
    cols: Any
    times: Any

    def check(self) -> None:
        within(self.rows, self.source, "the first of the pairs")
        within(self.cols, self.target, "the second of the pairs")

    def _turned(self) -> Relation:
        groups = self.groups
        rows = owners(groups.offsets).astype(np.intp)
        cols = np.arange(len(rows)) if groups.index is None else groups.index.astype(np.intp)
        times = self.times if groups.times is None else groups.times
        return Pairs(self.target, self.source, *(freeze(a) for a in (rows, cols, times)))

    @property
    def span(self) -> Span | None:
        return self._span

    @cached_property
    def _span(self) -> Span | None:
        if self.source.box is None or self.target.box is None or len(self.source.box) != 1 or len(self.target.box) != 1:
            return None
        if not self.times.size or not bool((self.times == self.times[0]).all()) or self.times[0] != int(self.times[0]):
            return None
        return tidied(
            {0: len(self.rows)}, (IndexTable(self.rows, (0,)),), (IndexTable(self.cols, (0,)),), int(self.times[0])
        )

    @property
    def converse(self) -> Relation:
        return self._with_converse(self._turned)

    def reduce(self, v: Array) -> Array:
        return pair_sum(self, v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        return self.rows, self.cols, self.times


def ones(count: int) -> Indices:
    """Multiplicities of pairs that occur once: one number, seen many times."""
    return np.broadcast_to(np.intp(1), (count,))


Box = tuple[int, ...]


def regrouping(source: Box | None, target: Box | None) -> Span | None:
    """The span of the row-major bijection between two boxes of one size; None where it is not affine."""
    if source is None or target is None:
        return None
    if source == target:
        maps = tuple([Affine(0, ((i, 1),)) for i in range(len(source))])
        return tidied(dict(enumerate(source)), maps, maps, 1)
    if len(source) == 1 or len(target) == 1:
        box = target if len(source) == 1 else source
        strides = [int(np.prod(box[i + 1 :])) for i in range(len(box))]
        flat = (Affine(0, tuple([(i, s) for i, s in enumerate(strides)])),)
        apart = tuple([Affine(0, ((i, 1),)) for i in range(len(box))])
        found = tidied(dict(enumerate(box)), flat, apart, 1)
        return found if len(source) == 1 else found.turned
    return None


def listed(source: Box | None, target: Box | None, image: Any) -> Span | None:
    """The span of a function given by an index array, on a segment."""
    if source is None or target is None or len(source) != 1 or not len(target):
        return None
    axes: list[Any] = (
        [image]
        if len(target) == 1
        else [freeze(np.asarray(k, np.intp)) for k in cast(Any, np.unravel_index(image, target))]
    )
    return tidied({0: source[0]}, (Affine(0, ((0, 1),)),), tuple([IndexTable(k, (0,)) for k in axes]), 1)
