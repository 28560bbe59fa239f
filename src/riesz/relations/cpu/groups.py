"""The pairs of a relation grouped by target: what a sum over pairs runs on. Made by counting; within a group, pairs
keep their order."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from ..index_sets import Array


class Groups:
    """Target i has the pairs offsets[i] … offsets[i + 1]: sources `index` (None: the pairs are the sources, in order),
    each `times` (None: once).

    `size` is the number of sources. Positions take 32 bits where that is enough.
    """

    def __init__(self, size: int, offsets: Array, index: Array | None, times: Array | None = None) -> None:
        self.size = size
        self.offsets = offsets
        self.index = index
        self.times = times
        for a in (offsets, index, times):
            if a is not None:
                a.flags.writeable = False

    @classmethod
    def of_pairs(cls, size: int, targets: int, rows: Array, cols: Array, times: Array | None = None) -> Groups:
        """From pairs in any order."""
        if ascending(cols):
            index = None if len(rows) == size and bool((rows == np.arange(size)).all()) else short(rows, size)
            return cls(size, _offsets(cols, targets), index, times)
        if ascending(rows):
            return cls(targets, _offsets(rows, size), short(cols, targets), times).turned()
        by_pair = _sorted(cols, targets)
        order: Any = by_pair.index
        return cls(size, by_pair.offsets, short(rows[order], size), None if times is None else times[order])

    @property
    def targets(self) -> int:
        """How many groups there are."""
        return len(self.offsets) - 1

    @property
    def count(self) -> int:
        """How many pairs are stored."""
        return int(self.offsets[-1])

    def turned(self) -> Groups:
        """The same pairs grouped by source: one pass that counts, one that places."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        index = np.arange(self.count, dtype=self.offsets.dtype) if self.index is None else self.index
        data = np.ones(self.count, np.int8) if self.times is None else self.times
        wide = np.result_type(index, self.offsets)
        parts = (data, index.astype(wide, copy=False), self.offsets.astype(wide, copy=False))
        by_target: Any = cast(Any, sparse).csc_array(parts, shape=(self.size, self.targets))
        found = by_target.tocsr()
        return Groups(self.targets, found.indptr, found.indices, None if self.times is None else found.data)

    @cached_property
    def owners(self) -> Array:
        """The target of each pair."""
        found = owners(self.offsets)
        found.flags.writeable = False
        return found

    @cached_property
    def longest(self) -> int:
        """The size of the largest group."""
        return int(np.diff(self.offsets).max(initial=0))

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.offsets, self.index, self.times, self.__dict__.get("owners"))
        return sum([a.nbytes for a in arrays if a is not None])


def owners(offsets: Array) -> Array:
    """The group of each pair."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=kind_for(len(offsets))), np.diff(offsets))


def counted(values: Array, size: int) -> Array:
    """The order that sorts numbers below a size, equal ones as they come: by counting."""
    if ascending(values):
        return np.arange(len(values), dtype=kind_for(len(values) + 1))
    return cast(Array, _sorted(values, size).index)


def _sorted(values: Array, size: int) -> Groups:
    """The places of each number below a size, in their order."""
    each = np.arange(len(values) + 1, dtype=kind_for(len(values) + 1))
    return Groups(size, each, short(values, size)).turned()


def kind_for(size: int) -> Any:
    """The integers that hold positions below a size."""
    return np.int32 if size <= np.iinfo(np.int32).max else np.int64


def short(index: Array, size: int) -> Array:
    """Positions below a size, in 32 bits where that is enough."""
    return index.astype(kind_for(size), copy=False)


def ascending(values: Array) -> bool:
    """Whether no value is smaller than the one before."""
    return bool((values[1:] >= values[:-1]).all())


def _offsets(sorted_targets: Array, targets: int) -> Array:
    counts = np.bincount(sorted_targets, minlength=targets)
    offsets = np.zeros(targets + 1, kind_for(len(sorted_targets) + 1))
    np.cumsum(counts, out=offsets[1:])
    return offsets
