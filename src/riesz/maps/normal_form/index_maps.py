"""Index maps of entries: where an entry of a linear map lies along one axis, as a function of its labels.

A label of size 1 is never used: it is a constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from ...relations import index_algebra
from ...relations.base import seal
from ...relations.index_algebra import ORIGIN, Affine, IndexMap, IndexTable, Labels, along, labels_of, values

Sizes = dict[int, int]


def axis_map(label: int, n: int) -> Affine:
    """The label itself, or the one position of an axis of size 1."""
    return ORIGIN if n == 1 else along(label)


def whole(m: IndexMap, n: int, sizes: Sizes) -> bool:
    """Whether a map is one label that runs through an axis of size n."""
    return type(m) is Affine and not m.offset and len(m.terms) == 1 and m.terms[0][1] == 1 and sizes[m.terms[0][0]] == n


def distinct(maps: Iterable[IndexMap]) -> Labels:
    """The labels of some maps, in order of appearance."""
    return tuple(dict.fromkeys([k for m in maps for k in labels_of(m)]))


def table(array: Any, labels: Labels) -> IndexMap:
    """A table, or the affine map it is."""
    array = cast(Any, np.asarray(array))
    if array.ndim == 1 and array.size:
        start = int(array[0])
        step = int(array[1]) - start if array.size > 1 else 0
        last = start + step * (array.size - 1)
        if int(array[-1]) == last and np.array_equal(array, cast(Any, start + step * np.arange(array.size))):
            return Affine(start, ((labels[0], step),) if step else ())
    return IndexTable(array, labels)


class Tables:
    """Tables made of tables, remembered: the same composition gives the same array."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, Any]] = {}
        self._arrays: dict[Any, Any] = {}

    def table(self, array: Any, labels: Labels) -> IndexMap:
        """A table, or the affine map it is; equal arrays are one array."""
        m = table(array, labels)
        if type(m) is not IndexTable:
            return m
        key = (m.array.shape, hash(m.array.tobytes()))
        known = self._arrays.setdefault(key, seal(m.array))
        return IndexTable(known, labels) if known is m.array or np.array_equal(known, m.array) else m

    def remembered(self, key: Any, maps: Sequence[IndexMap], labels: Labels, make: Any) -> Any:
        """What is made of some maps, once; the maps are kept, for their identities are the key."""
        known = (*key, tuple([self.key(m, labels) for m in maps]))
        if known not in self._known:
            self._known[known] = (seal(make()), maps)
        return self._known[known][0]

    def substituted(self, m: IndexMap, change: dict[int, IndexMap], sizes: Sizes) -> IndexMap:
        """A map with labels replaced by maps of other labels; `sizes` are those of all labels."""
        mine = labels_of(m)
        if not any([k in change for k in mine]):
            return m
        if type(m) is Affine:
            parts: Any = [(change.get(k) or along(k), s) for k, s in m.terms]
            if all([type(p) is Affine for p, _ in parts]):
                return index_algebra.combined(m.offset, parts)
            if len(m.terms) == 1 and not m.offset and m.terms[0][1] == 1:
                return parts[0][0]
            labels = distinct([p for p, _ in parts])
            key: Any = ("a", m.offset, tuple([(self.key(p, labels), s) for p, s in parts]))
            total = lambda: sum([s * values(p, labels, sizes) for p, s in parts], np.intp(m.offset))  # noqa: E731
            return self._made(key, labels, total, sizes, m)
        assert type(m) is IndexTable
        maps = [change.get(k) or along(k) for k in m.labels]
        labels = distinct(maps)
        if len(labels) == len(maps) and all([whole(p, n, sizes) for p, n in zip(maps, m.array.shape, strict=True)]):
            return IndexTable(m.array, tuple([labels_of(p)[0] for p in maps]))
        key = ("t", id(m.array), tuple([self.key(p, labels) for p in maps]))
        return self._made(key, labels, lambda: m.array[tuple([values(p, labels, sizes) for p in maps])], sizes, m)

    def key(self, m: IndexMap, labels: Labels) -> Any:
        """What a map is, whatever its labels are called."""
        if type(m) is IndexTable:
            return ("t", id(m.array), tuple([labels.index(k) for k in m.labels]))
        assert type(m) is Affine
        return ("a", m.offset, tuple([(labels.index(k), s) for k, s in m.terms]))

    def _made(self, key: Any, labels: Labels, make: Any, sizes: Sizes, parent: Any) -> IndexMap:
        if not labels:
            return Affine(int(np.asarray(make()).reshape(())))
        box = tuple([sizes[k] for k in labels])
        found = self._known.get((key, box))
        if found is None:  # the parent keeps the identities in the key alive
            made = self.table(np.broadcast_to(make(), box), tuple(range(len(labels))))
            found = self._known[key, box] = made, parent
        return index_algebra.renamed(found[0], dict(enumerate(labels)))


def radix(m: IndexMap, n: int, sizes: Sizes) -> list[tuple[int, int]] | None:
    """The terms of a map that counts through n places in mixed radix, the fastest first; None where it does not."""
    if type(m) is not Affine or m.offset:
        return None
    below = 1
    terms = sorted(m.terms, key=lambda t: t[1])
    for k, s in terms:
        if s != below:
            return None
        below *= sizes[k]
    return terms if below == n else None


def refined(a: list[tuple[int, int]], b: list[tuple[int, int]], sizes: Sizes, fresh: Any) -> dict[int, IndexMap] | None:
    """Labels of two mixed-radix maps in common finer labels, so that they agree; None where cuts do not divide."""
    cuts = sorted({s for _, s in (*a, *b)} | {s * sizes[k] for k, s in (*a, *b)})
    change: dict[int, IndexMap] = {}
    pieces: list[tuple[int, int, int]] = []  # from, to, label
    for low, high in itertools.pairwise(cuts):
        if high % low:
            return None
        pieces.append((low, high, fresh(high // low)))
    for k, s in (*a, *b):
        inside = tuple(sorted([(label, low // s) for low, high, label in pieces if s <= low and high <= s * sizes[k]]))
        change[k] = Affine(0, inside)
    return change


def injective(maps: Sequence[IndexMap], labels: Labels) -> bool:
    """Whether different labels always give different positions: each can be read off an axis in turn."""
    known: set[int] = set()
    every = [set(labels_of(m)) for m in maps if type(m) is Affine]
    while True:
        more = [left for m in every if len(left := m - known) == 1]
        if not more:
            return known == set(labels)
        for left in more:
            known |= left


def all_positions(maps: Sequence[IndexMap], box: Sequence[int], labels: Labels, sizes: Sizes) -> Any:
    """The row-major positions in a box at every value of the labels, one axis for each."""
    found = index_algebra.flat_positions(maps, box, labels, sizes)
    return np.broadcast_to(found, [sizes[k] for k in labels])


def size_of(labels: Iterable[int], sizes: Sizes) -> int:
    """How many positions some labels have together."""
    return math.prod([sizes[k] for k in labels])
