"""Arrays made of entries, planned once for all points: where the numbers of each entry go, and by which contraction
they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ...ops.op import contraction
from ...relations.index_algebra import Affine, IndexMap, Labels, values
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import dense
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry
from ..normal_form.index_maps import distinct, injective, size_of, whole
from ..normal_form.network_values import Values
from ..normal_form.symmetric_products import gram, symmetric

Shape = tuple[int, ...]


class Spread:
    """The coefficient of an entry on some labels, broadcast along those it does not depend on; labels of none of these
    are summed over."""

    def __init__(self, c: Coefficients, e: Entry, labels: Labels) -> None:
        have = {k for f in e.factors for k in f.labels}
        self.entry = e
        self.labels = tuple([k for k in labels if k in have])
        self.box = tuple([c.sizes[k] for k in labels])
        self.thin = tuple([c.sizes[k] if k in have else 1 for k in labels])
        self.slots = [f.slot for f in e.factors]
        strong = tuple([i for i, f in enumerate(e.factors) if f.strong]) if len(e.factors) > 1 else ()
        self.op = contraction(tuple([f.labels for f in e.factors]), self.labels, {}, strong)
        self.halved = symmetric(e, self.labels, c.sizes)

    def at(self, v: Values) -> Any:
        """The numbers at a point; not to be written to."""
        if not self.slots:
            return np.broadcast_to(v.dtype.type(self.entry.scale), self.box)
        slots, scale = v.slots, self.entry.scale
        with quietly():
            if self.halved:
                found = gram(self.entry, self.labels, slots, v.dtype)
            else:
                found = np.asarray(dense(self.op.run(*[slots[s] for s in self.slots])), v.dtype)
                found = found if scale == 1.0 else found * v.dtype.type(scale)
        if found.shape != self.thin:
            found = found.reshape(self.thin)
        return found if self.thin == self.box else np.broadcast_to(found, self.box)


class Part:
    """A sum of entries as an array; each entry with an index map for each axis of the array."""

    def __init__(self, c: Coefficients, entries: Sequence[tuple[Entry, Sequence[IndexMap]]], box: Shape) -> None:
        self.box = box
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
    if not all(
        [type(m) is Affine and not m.terms if n == 1 else whole(m, n, c.sizes) for m, n in zip(maps, box, strict=True)]
    ):
        return None
    labels = [cast(Affine, m).terms[0][0] for m, n in zip(maps, box, strict=True) if n != 1]
    return Spread(c, e, tuple(labels)) if len(set(labels)) == len(labels) else None


class _Placed:
    """An entry that is added where its maps say."""

    def __init__(self, c: Coefficients, e: Entry, maps: Sequence[IndexMap], box: Shape) -> None:
        outer = distinct(maps)
        self.spread = Spread(c, e, outer)
        self._where: Any = None
        if all([type(m) is Affine for m in maps]) and injective(maps, outer):
            below = [math.prod(box[i + 1 :]) for i in range(len(box))]
            affine = cast("Sequence[Affine]", maps)
            self._start = sum([m.offset * step for m, step in zip(affine, below, strict=True)])
            self._steps = [
                sum([s * step for m, step in zip(affine, below, strict=True) for j, s in m.terms if j == k])
                for k in outer
            ]
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
