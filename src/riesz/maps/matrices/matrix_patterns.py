"""The positions of a sparse matrix, made once for all points."""

from __future__ import annotations

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
    lines: dict[Any, Any] = {}  # entries with the same maps are sorted once
    # what positions are made of, whatever the labels are called
    maps = [tuple([c.tables.key(m, e.outer) for m in (*e.out, *e.inn)]) for e, _, _ in entries]
    keys = [(*key, *sides, *[c.sizes[k] for k in e.outer]) for key, (e, *sides) in zip(maps, entries, strict=True)]
    kind = np.int32 if max(sum([sparse_size(c, e) for e, _, _ in entries]), width, height) < 2**31 else np.int64
    for key, (e, row, column) in zip(keys, entries, strict=True):
        if key not in lines:
            box, sides = [c.sizes[k] for k in e.outer], ((e.out, row), (e.inn, column))
            found = [place.start + flat_positions(m, place.shape, e.outer, c.sizes) for m, place in sides]
            lines[key] = [np.broadcast_to(side.astype(kind), box).reshape(-1) for side in found]
    lengths = {key: len(pair[0]) for key, pair in lines.items()}
    down, across = [_joined([pair[i] for pair in lines.values()], kind) for i in (0, 1)]
    lines.clear()  # these arrays are the largest there are: no more of them at a time than it takes
    order = _order(down, across, height, width).astype(kind)
    down = down[order]
    across = across[order]
    new = np.ones(len(order), bool)
    new[1:] = (down[1:] != down[:-1]) | (across[1:] != across[:-1])
    indices = across[new]
    indptr = np.zeros(height + 1, kind)
    np.cumsum(np.bincount(down[new], minlength=height), out=indptr[1:])
    del down, across
    slots, places = np.empty(len(order), kind), np.cumsum(new, dtype=kind)
    slots[order] = np.subtract(places, 1, out=places)
    if len(lengths) < len(entries):
        ends = np.cumsum(list(lengths.values()))
        part = dict(zip(lengths, np.split(slots, ends[:-1]), strict=True))
        slots = np.concatenate([part[key] for key in keys])
    many = 8 * (len(slots) - len(indices)) > len(slots) or len(indices) < len(slots) > tuning.GATHERED_NUMBERS
    if many or len(lengths) < len(entries):
        return MatrixPattern(indptr, indices, None, slots, len(indices))
    return MatrixPattern(indptr, indices, order[new].astype(np.intp), slots, len(indices), order[~new])


def _joined(parts: list[Any], kind: Any) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _order(down: Any, across: Any, height: int, width: int) -> Any:
    """Positions by rows, then columns: a few ascending runs (observations, stencils) are merged, others counted."""
    flat = down.astype(np.int64) * width + across
    if 64 * np.count_nonzero(flat[1:] < flat[:-1]) <= len(flat):
        return np.argsort(flat, kind="stable")
    order = counted(across, width)
    return order[counted(down[order], height)]
