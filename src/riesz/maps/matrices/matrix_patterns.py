"""The positions of a sparse matrix, made once for all points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...relations.base import seal
from ...relations.cpu.groups import counted
from ...relations.index_algebra import flat_positions
from ...runtime import tuning
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry, sparse_size
from ..normal_form.network import Network

Shape = tuple[int, ...]


class LeafPlace(NamedTuple):
    """A leaf of a space in flat coordinates: where it begins, its shape."""

    start: int
    shape: Shape

    @property
    def size(self) -> int:
        """How many coordinates it has."""
        return math.prod(self.shape)

    @property
    def range(self) -> slice:
        """These coordinates."""
        return slice(self.start, self.start + self.size)


class MatrixPattern(NamedTuple):
    """CSR index arrays, and for each number of the entries its place in the data."""

    indptr: Any
    indices: Any
    order: Any  # data = numbers[order], `more` added where a few entries overlap; None where many do: sums by slot
    slots: Any  # the place of each number in the data
    size: int
    more: Any = ()


Placed = tuple[Entry, LeafPlace, LeafPlace]


def made(c: Coefficients, entries: Sequence[Placed], height: int, width: int) -> MatrixPattern:
    """Every position some entry reaches."""
    return seal(_sorted(c, entries, height, width))


def between(net: Network, to: int, a: int) -> MatrixPattern:
    """Where one node of a network reaches another, once for all points."""
    row, column = LeafPlace(0, net.shapes[to]), LeafPlace(0, net.shapes[a])
    entries = [(e, row, column) for e in net.blocks[to][a]]
    return net.known(("between", to, a), lambda: made(net.c, entries, row.size, column.size))


def _sorted(c: Coefficients, entries: Sequence[Placed], height: int, width: int) -> MatrixPattern:
    # what positions are made of, whatever the labels are called: entries with the same maps are sorted once
    maps = [tuple([c.tables.key(m, e.outer) for m in (*e.out, *e.inn)]) for e, _, _ in entries]
    keys = [(*key, *sides, *[c.sizes[k] for k in e.outer]) for key, (e, *sides) in zip(maps, entries, strict=True)]
    kind = np.int32 if max(sum([sparse_size(c, e) for e, _, _ in entries]), width, height) < 2**31 else np.int64
    lines: dict[Any, Placed] = {}
    for key, entry in zip(keys, entries, strict=True):
        lines.setdefault(key, entry)
    lengths = {key: math.prod([c.sizes[k] for k in e.outer]) for key, (e, _, _) in lines.items()}
    count = sum(lengths.values())
    down, across = [np.empty(count, kind) for _ in range(2)]  # the largest arrays there are: no copies of them
    at = 0
    for key, (e, *sides) in lines.items():
        box, end = [c.sizes[k] for k in e.outer], at + lengths[key]
        for flat, maps_of, place in zip((down, across), (e.out, e.inn), sides, strict=True):
            flat[at:end].reshape(box)[...] = place.start + flat_positions(maps_of, place.shape, e.outer, c.sizes)
        at = end
    slots, indices, size = np.empty(count, kind), list[Any](), 0
    indptr = np.zeros(height + 1, kind)
    for low, high in _row_ranges(down, height):
        mine = slice(None) if high - low == height else np.flatnonzero((down >= low) & (down < high))
        r, k = down[mine], across[mine]
        order = _order(r - low, k, high - low, width)
        r, k = r[order], k[order]
        new = np.ones(len(order), bool)
        new[1:] = (r[1:] != r[:-1]) | (k[1:] != k[:-1])
        slots[order if isinstance(mine, slice) else mine[order]] = size - 1 + np.cumsum(new, dtype=kind)
        indices.append(k[new])
        indptr[low + 1 : high + 1] = np.bincount(r[new] - low, minlength=high - low)
        size += len(indices[-1])
    del down, across
    np.cumsum(indptr, out=indptr)
    indices = _joined(indices, kind)
    if len(lengths) < len(entries):
        ends = np.cumsum(list(lengths.values()))
        part = dict(zip(lengths, np.split(slots, ends[:-1]), strict=True))
        slots = np.concatenate([part[key] for key in keys])
    many = 8 * (len(slots) - size) > len(slots) or size < len(slots) > tuning.GATHERED_NUMBERS
    if many or len(lengths) < len(entries):
        return MatrixPattern(indptr, indices, None, slots, size)
    first, order = np.arange(count), np.empty(size, np.intp)
    order[slots[::-1]] = first[::-1]  # of those that meet, the first
    return MatrixPattern(indptr, indices, order, slots, size, np.flatnonzero(order[slots] != first).astype(kind))


def _row_ranges(down: Any, height: int) -> list[tuple[int, int]]:
    """All rows in ranges of about as many positions each, so that what sorts them stays small."""
    if len(down) <= tuning.SORTED_TOGETHER:
        return [(0, height)]
    until = np.cumsum(np.bincount(down, minlength=height))
    parts = min(8, -(-len(down) // tuning.SORTED_TOGETHER))
    cuts = np.searchsorted(until, np.arange(1, parts) * (len(down) / parts), side="right")
    ends = np.unique([0, *cuts, height]).tolist()
    return list(itertools.pairwise(ends))


def _joined(parts: list[Any], kind: Any) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _order(down: Any, across: Any, height: int, width: int) -> Any:
    """Positions by rows, then columns: a few ascending runs (observations, stencils) are merged, others counted."""
    flat = down.astype(np.int64) * width + across
    if 64 * np.count_nonzero(flat[1:] < flat[:-1]) <= len(flat):
        return np.argsort(flat, kind="stable")
    order = counted(across, width)
    return order[counted(down[order], height)]
