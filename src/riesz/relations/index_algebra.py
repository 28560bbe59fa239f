"""Index maps: a position along one axis as a function of labels.

A map is affine, offset + Σ stride·label, or a table, an index array with one axis for each of its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Labels = tuple[int, ...]
Sizes = dict[int, int] | Sequence[int]


class Affine(NamedTuple):
    """offset + Σ stride·label. Loop nests also have entries of index arrays in the place of labels."""

    offset: int
    terms: tuple[tuple[int, int], ...] = ()  # (label, stride), labels ascending, no stride 0


class IndexTable(NamedTuple):
    """array[labels]. Arrays are kept by identity: the same array on two sides is the same relation."""

    array: Any
    labels: Labels


IndexMap = Affine | IndexTable
ORIGIN = Affine(0)


def along(label: Any) -> Affine:
    """The label itself."""
    return Affine(0, ((label, 1),))


def labels_of(m: IndexMap) -> Labels:
    """The labels a map depends on."""
    return m.labels if isinstance(m, IndexTable) else tuple([k for k, _ in m.terms])


def renamed(m: IndexMap, names: dict[int, int]) -> IndexMap:
    """The same map with other labels."""
    if isinstance(m, IndexTable):
        return IndexTable(m.array, tuple([names[k] for k in m.labels]))
    return Affine(m.offset, tuple(sorted([(names[label], stride) for label, stride in m.terms])))


def combined(offset: int, parts: Sequence[tuple[Affine, int]]) -> Affine:
    """offset + Σ stride·map.

    >>> combined(1, [(along(0), 2), (Affine(3, ((1, 1),)), -1)])
    Affine(offset=-2, terms=((0, 2), (1, -1)))
    """
    total: dict[Any, int] = {}
    for m, stride in parts:
        offset += stride * m.offset
        for k, s in m.terms:
            total[k] = total.get(k, 0) + stride * s
    terms = [(k, s) for k, s in total.items() if s]
    return Affine(offset, tuple(sorted(terms, key=None if all([type(k) is int for k, _ in terms]) else repr)))


def values(m: IndexMap, labels: Sequence[int], sizes: Sizes) -> Any:
    """A map at all positions of the given labels, shaped to broadcast."""
    if type(m) is IndexTable:
        order = sorted(range(len(m.labels)), key=lambda i: labels.index(m.labels[i]))
        return np.asarray(m.array).transpose(order).reshape([sizes[k] if k in m.labels else 1 for k in labels])
    assert type(m) is Affine
    total = np.full((1,) * len(labels), m.offset, np.intp)
    for label, stride in m.terms:
        total = total + (stride * np.arange(sizes[label])).reshape([-1 if k == label else 1 for k in labels])
    return total


def flat_positions(maps: Sequence[IndexMap], box: Sequence[int], labels: Sequence[int], sizes: Sizes) -> Any:
    """The row-major positions in a box, at all positions of the labels, shaped to broadcast."""
    total: Any = np.zeros((1,) * len(labels), np.intp)
    for m, n in zip(maps, box, strict=True):
        total = total * n + values(m, labels, sizes)
    return total


def flat_map(maps: Sequence[IndexMap], box: Sequence[int]) -> Affine | None:
    """The row-major position in a box as one affine map; None where some map is a table."""
    parts: list[tuple[Affine, int]] = []
    below = 1
    for m, n in zip(reversed(maps), reversed(box), strict=True):
        if type(m) is not Affine:
            return None
        parts.append((m, below))
        below *= n
    return combined(0, parts)
