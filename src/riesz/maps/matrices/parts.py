"""Arrays made of entries, planned once for all points: where the numbers of each entry go, and by which contraction
they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...relations.index_algebra import Affine, IndexMap, flat_map, values
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry
from ..normal_form.index_maps import distinct, injective, size_of, whole
from ..normal_form.network_values import Spread, Values

Shape = tuple[int, ...]


class Part:
    """A sum of entries as an array; each entry with an index map for each axis of the array."""

    def __init__(self, c: Coefficients, entries: Sequence[tuple[Entry, Sequence[IndexMap]]], box: Shape) -> None:
        self.box, self.entries = box, entries
        self._direct = _direct(c, *entries[0], box) if len(entries) == 1 else None  # one entry that is the array
        self._placed = [] if self._direct is not None else [_Placed(c, e, maps, box) for e, maps in entries]

    def at(self, v: Values) -> Any:
        """The array at a point; not to be written to."""
        if self._direct is not None:
            found = self._direct.at(v)
            return found if found.shape == self.box else found.reshape(self.box)
        total = np.zeros(self.box, v.dtype)
        if total.size:
            for one in self._placed:
                one.add(v, total)
        return total

    def copied(self, v: Values) -> Any:
        """The array at a point, to be given away: row-major, the caller's own."""
        return self.at(v) if self._direct is None else np.array(self.at(v), order="C")


def _direct(c: Coefficients, e: Entry, maps: Sequence[IndexMap], box: Shape) -> Spread | None:
    """An entry with one label for each axis: it is the array of its coefficients."""
    axes = list(zip(maps, box, strict=True))
    if not all([type(m) is Affine and not m.terms if n == 1 else whole(m, n, c.sizes) for m, n in axes]):
        return None
    labels = [cast(Affine, m).terms[0][0] for m, n in axes if n != 1]
    return Spread(c, e, tuple(labels)) if len(set(labels)) == len(labels) else None


class _Placed:
    """An entry that is added where its maps say."""

    def __init__(self, c: Coefficients, e: Entry, maps: Sequence[IndexMap], box: Shape) -> None:
        outer = distinct(maps)
        self.spread = Spread(c, e, outer)
        self._where: Any = None
        if all([type(m) is Affine for m in maps]) and injective(maps, outer):
            flat = cast(Affine, flat_map(maps, box))
            self._start, strides = flat.offset, dict(flat.terms)
            self._steps = [strides.get(k, 0) for k in outer]
        else:
            self._where = tuple([np.broadcast_to(values(m, outer, c.sizes), self.spread.box) for m in maps])
        self._empty = not size_of(outer, c.sizes)

    def add(self, v: Values, total: Any) -> None:
        """Add the numbers at a point to a row-major array."""
        if self._empty:
            return
        if self._where is not None:
            np.add.at(total, self._where, self.spread.at(v))
            return
        size = total.itemsize
        view = np.ndarray(self.spread.box, total.dtype, total, size * self._start, [size * s for s in self._steps])
        view += self.spread.at(v)
