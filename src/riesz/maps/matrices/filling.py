"""The numbers of a sparse matrix at a new point, written straight into the places of a pattern that is known already.

Where the coefficients are computed pointwise along one long label (observations, edges, points of a grid) they are
computed as component code (programs/axis/components.py): every number is read once, written once, and no array of them
lies between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...programs.axis.components import Components, components
from ...relations.base import seal
from ...runtime import tuning
from ..normal_form.coefficients import Factor
from ..normal_form.entries import Entry
from ..normal_form.network_values import Values


class Filling(NamedTuple):
    """Component code, the column of each component, and how columns become data: as they lie, reordered or added."""

    code: Components
    columns: list[Any]
    width: int
    order: Any
    slots: Any
    size: int

    def data(self, v: Values) -> Any:
        """The numbers of the pattern at a point."""
        table = np.empty((self.code.length, self.width), v.dtype)
        self.code.write(v.point, table, self.columns)
        flat = table.reshape(-1)
        if self.slots is not None:
            return np.bincount(self.slots, weights=flat, minlength=self.size).astype(v.dtype, copy=False)
        return flat if self.order is None else flat[self.order]


def filling(v: Values, entries: Sequence[Entry], slots: Any, count: int) -> Filling | None:
    """How to fill the data of a pattern; `slots` says for each number of the entries, one after the other, where it
    belongs. None where no label is long and common to all, or coefficients are not pointwise along it."""
    c = v.net.c
    if not v.point or not entries:
        return None
    lengths = [{c.sizes[k] for k in e.outer} for e in entries]
    length = max(lengths[0].intersection(*lengths), default=0)
    if length < tuning.FILLED_LABEL:
        return None
    wanted: list[int] = []
    places: list[Any] = []  # of each entry, the long label first
    at = 0
    for e in entries:
        outer, box = e.outer, [c.sizes[k] for k in e.outer]
        axis = box.index(length)
        labels = (outer[axis], *outer[:axis], *outer[axis + 1 :])
        made = c.product(e.factors or (Factor(c.program.const(1.0), ()),), labels)
        wanted.append(c.program.scale(e.scale, made.slot))
        size = math.prod(box)
        places.append(np.moveaxis(slots[at : at + size].reshape(box), axis, 0))
        at += size
    code = components(c.program.prune(v.net.params, wanted), axis=0)
    if code is None or code.length != length or any([n is None for n in code.nodes]):
        return None
    found = _direct(code, places, count) or _columns(code, places, count)
    seal([code.indices, code.nodes])
    return seal(found)


def _direct(code: Components, places: list[Any], count: int) -> Filling | None:
    """The data are the columns as they lie: as many numbers at each position, always in the same order."""
    width, rest = divmod(count, code.length)
    steps = width * np.arange(code.length)
    for p in places:
        if rest or not np.array_equal(p.T, p[:1].T + steps) or int(p[0].max(initial=0)) >= width:
            return None
    return Filling(code, [p[0] for p in places], width, None, None, count)


def _columns(code: Components, places: list[Any], count: int) -> Filling:
    """A column for each list of places; then the columns are put in order, or added up where lists meet."""
    known: dict[bytes, int] = {}
    lists: list[Any] = []
    columns: list[Any] = []
    for p in places:
        mine = np.empty(p.shape[1:], np.intp)
        for k in np.ndindex(mine.shape):
            line = np.ascontiguousarray(p[(slice(None), *k)])
            mine[k] = known.setdefault(line.tobytes(), len(lists))
            if mine[k] == len(lists):
                lists.append(line)
        columns.append(mine)
    flat = np.stack(lists, axis=1).reshape(-1)
    if len(flat) > count:
        return Filling(code, columns, len(lists), None, flat, count)
    order = np.empty(count, flat.dtype)
    order[flat] = np.arange(count)
    return Filling(code, columns, len(lists), order, None, count)
