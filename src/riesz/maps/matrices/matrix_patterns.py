"""The positions of a sparse matrix, made once for all points.

In general they are sorted, by counting. Where every value of one long label has rows of its own and always the same
columns in the same order (observations of a camera and a point, rows of a stencil), the pattern is written down without
sorting.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...relations.base import seal
from ...relations.cpu.groups import counted
from ...relations.index_algebra import Affine, IndexTable, flat_map, flat_positions
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
    return seal(_regular(c, entries, height, width) or _sorted(c, entries, height, width))


def between(net: Network, to: int, a: int) -> MatrixPattern:
    """Where one node of a network reaches another, once for all points."""
    row, column = LeafPlace(0, net.shapes[to]), LeafPlace(0, net.shapes[a])
    entries = [(e, row, column) for e in net.blocks[to][a]]
    return net.known(("between", to, a), lambda: made(net.c, entries, row.size, column.size))


def _sorted(c: Coefficients, entries: Sequence[Placed], height: int, width: int) -> MatrixPattern:
    lines: dict[Any, tuple[Any, Any]] = {}  # entries with the same maps are sorted once
    # what positions are made of, whatever the labels are called
    maps = [tuple([c.tables.key(m, e.outer) for m in (*e.out, *e.inn)]) for e, _, _ in entries]
    keys = [(*key, *sides, *[c.sizes[k] for k in e.outer]) for key, (e, *sides) in zip(maps, entries, strict=True)]
    kind = np.int32 if max(sum([sparse_size(c, e) for e, _, _ in entries]), width, height) < 2**31 else np.int64
    for key, (e, row, column) in zip(keys, entries, strict=True):
        if key not in lines:
            box, sides = [c.sizes[k] for k in e.outer], ((e.out, row), (e.inn, column))
            found = [place.start + flat_positions(m, place.shape, e.outer, c.sizes) for m, place in sides]
            lines[key] = tuple([np.broadcast_to(side.astype(kind), box).reshape(-1) for side in found])
    none = np.zeros(0, kind)
    down, across = [np.concatenate([none, *[line[i] for line in lines.values()]]) for i in (0, 1)]
    order = counted(across, width)
    order = order[counted(down[order], height)]  # by rows, within a row by columns
    down, across = down[order], across[order]
    new = np.ones(len(order), bool)
    new[1:] = (down[1:] != down[:-1]) | (across[1:] != across[:-1])
    indices = across[new]
    indptr = np.zeros(height + 1, kind)
    np.cumsum(np.bincount(down[new], minlength=height), out=indptr[1:])
    slots = np.empty(len(order), kind)
    slots[order] = np.cumsum(new, dtype=kind) - 1
    if len(lines) < len(entries):
        ends = np.cumsum([len(d) for d, _ in lines.values()])
        part = dict(zip(lines, np.split(slots, ends[:-1]), strict=True))
        slots = np.concatenate([part[key] for key in keys])
    many = 8 * (len(slots) - len(indices)) > len(slots) or len(indices) < len(slots) > tuning.GATHERED_NUMBERS
    if many or len(lines) < len(entries):
        return MatrixPattern(indptr, indices, None, slots, len(indices))
    return MatrixPattern(indptr, indices, order[new].astype(np.intp), slots, len(indices), order[~new])


Key = tuple[int, int, tuple[Any, ...], Shape]  # row within a group, where columns begin, index maps and their shape


def _regular(c: Coefficients, entries: Sequence[Placed], height: int, width: int) -> MatrixPattern | None:
    """The pattern by groups of rows, one for each value of a long label; None where rows or columns are not of that
    kind."""
    if not entries:
        return None
    lengths = [{c.sizes[k] for k in e.outer} for e, _, _ in entries]
    length = max(lengths[0].intersection(*lengths), default=0)
    if length < tuning.PATTERN_LABEL or height % length:
        return None
    found: dict[Key, Any] = {}
    places: list[list[Key]] = []
    for e, row, column in entries:
        keys = _keys(c, e, row, column, length, height // length)
        if keys is None or len(found) > tuning.PATTERN_NUMBERS_PER_VALUE:
            return None
        places.append(keys)
        found.update({key: _across(key, length) for key in keys if key not in found})
    order = sorted(found, key=lambda key: (key[0], int(found[key][0])))
    for a, b in itertools.pairwise(order):
        if a[0] == b[0] and not bool((found[a] < found[b]).all()):
            return None
    return _written(c, entries, places, order, found, (length, height, width))


def _keys(c: Coefficients, e: Entry, row: LeafPlace, column: LeafPlace, length: int, rows: int) -> list[Key] | None:
    """The numbers of an entry at each value of the long label: row within the group, and index maps along it."""
    down = flat_map(e.out, row.shape)
    at = next(k for k in e.outer if c.sizes[k] == length)
    rest = [k for k in e.outer if k != at]
    count = math.prod([c.sizes[k] for k in rest])
    if down is None or dict(down.terms).get(at) != rows or row.start or count > tuning.PATTERN_NUMBERS_PER_VALUE:
        return None
    if any([type(m) is IndexTable and m.labels != (at,) for m in e.inn]):
        return None
    found: list[Key] = []
    for values in itertools.product(*[range(c.sizes[k]) for k in rest]):
        here = dict(zip(rest, values, strict=True))
        first = down.offset + sum([s * here[k] for k, s in down.terms if k != at])
        if not 0 <= first < rows:
            return None
        maps = tuple([_along(m, at, here) for m in e.inn])
        found.append((first, column.start, maps, column.shape))
    return found


class _Array:
    """An index array, compared by identity."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Array) and other.array is self.array

    def __hash__(self) -> int:
        return id(self.array)


def _along(m: Any, at: int, here: dict[int, int]) -> Any:
    """A map at fixed values of the short labels."""
    if type(m) is IndexTable:
        return _Array(m.array)
    assert type(m) is Affine
    return m.offset + sum([s * here[k] for k, s in m.terms if k != at]), dict(m.terms).get(at, 0)


def _across(key: Key, length: int) -> Any:
    """The columns at each value of the long label."""
    _, start, maps, shape = key
    total: Any = np.zeros((), np.intp)
    for m, n in zip(maps, shape, strict=True):
        total = total * n + (m.array if isinstance(m, _Array) else m[0] + m[1] * np.arange(length))
    return np.broadcast_to(total, (length,)) + start


def _written(
    c: Coefficients,
    entries: Sequence[Placed],
    places: list[list[Key]],
    order: list[Key],
    found: dict[Key, Any],
    sizes: tuple[int, int, int],
) -> MatrixPattern:
    length, height, width = sizes
    count = len(order)
    kind = np.int32 if max(count * length, width, height) < 2**31 else np.int64
    indices = np.empty((length, count), kind)
    for j, key in enumerate(order):
        indices[:, j] = found[key]
    per = np.bincount([key[0] for key in order], minlength=height // length)
    indptr = np.zeros(height + 1, kind)
    np.cumsum(np.tile(per, length), out=indptr[1:])
    column = {key: j for j, key in enumerate(order)}
    slots: list[Any] = []
    for (e, _, _), keys in zip(entries, places, strict=True):
        axis = next(i for i, k in enumerate(e.outer) if c.sizes[k] == length)
        small = [c.sizes[k] for i, k in enumerate(e.outer) if i != axis]
        at = np.array([column[key] for key in keys], kind).reshape(small)
        first = (count * np.arange(length, dtype=kind)).reshape([-1, *[1] * len(small)])
        slots.append(np.moveaxis(first + at, 0, axis).reshape(-1))
    flat, inverse = np.concatenate(slots), None
    if len(flat) == count * length:
        inverse = np.empty(len(flat), np.intp)  # NumPy takes numbers by others half as fast
        inverse[flat] = np.arange(len(flat))
    return MatrixPattern(indptr, indices.reshape(-1), inverse, flat, count * length)
