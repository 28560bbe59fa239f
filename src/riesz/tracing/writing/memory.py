"""The memory of an array that a traced function writes to: where each of its elements comes from.

`source` has a number for each element: −1 where the number is known, else a place in the slots written so far, laid one
after the other (`parts`). A write adds one part and lets NumPy assign its places to elements of `source`, so masks,
index arrays, broadcasting and duplicates are NumPy's own. A read gathers from the parts it meets and places them by one
reduction; what was overwritten never shows up, and known zeros are no terms.

    y = np.zeros(5)        source  −1 −1 −1 −1 −1    parts
    y[1:4] = a             source  −1  0  1  2 −1    a
    y[::2] = b             source   3  0  4  2  5    a, b        y = red_R a + red_S b

Summands of y[k] += v wait (`pending`) until somebody reads such a place or writes to it; then all of them are one
reduction. A place with summands has −3 − s where it had s.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Combination, Reduction, broadcast
from ...ops.opaque import Discrete
from ...relations import Point, Range
from ...relations.index_sets import Seg, unit
from ..layouts import frame_of
from ..registry import BY_NAME
from ..trace import Trace
from .rows import lattice, ordered, placed, row, shaped, taken

KNOWN = -1
_MANY, _LARGE = 8, 1000  # so many sums of smaller boxes are one step


class Memory:
    """Where the elements of an array come from; `slot`: the step that made all of them, if a step did. `fixed` says why
    nobody may write to it, or is empty."""

    __slots__ = (
        *("_ends", "_single", "dtype", "fixed", "numbered", "odd", "parts", "pending", "shape"),
        *("slot", "source", "trace", "version", "waiting"),
    )

    def __init__(self, trace: Trace, shape: Any, dtype: Any, slot: int | None, fixed: str = "", odd: Any = None):
        self.trace, self.shape, self.dtype, self.slot, self.fixed = trace, shape, dtype, slot, fixed
        self.odd = odd  # how it was made, or lies, where NumPy may lay it out by other than rows (layouts.py)
        self.version = 0  # how often it was written to
        self.source: Any = None
        self.numbered: Any = None
        self.parts: list[int] = []
        self.pending: list[tuple[Any, int]] = []  # places, and the slot of what is added there
        self.waiting: list[Any] = []  # elements that nobody has read yet, by weak references
        self._ends = np.zeros(4, np.intp)  # where the next part begins; longer than needed
        self._single = np.zeros(4, bool)  # which parts are single numbers

    def opened(self) -> Any:
        """The table of sources; made at the first write."""
        if self.source is None:
            size = math.prod(self.shape)
            self.source = np.full(size, KNOWN)
            if self.slot is not None:
                self.laid(self.source)[...] = np.arange(size).reshape(self.shape)
                self._add(self.slot)
        return self.source

    def laid(self, table: Any) -> Any:
        """A table with an entry for each place in memory, as the array lies there."""
        if self.odd is None:
            return table.reshape(self.shape)
        frame = frame_of(self)
        if frame is None:
            return table.reshape(self.shape)
        strides = tuple([s // frame.itemsize * table.itemsize for s in frame.strides])
        return np.ndarray(self.shape, table.dtype, table, 0, strides)

    def _begin(self, j: int) -> int:
        return int(self._ends[j - 1]) if j else 0

    def _add(self, slot: int) -> None:
        j, shape = len(self.parts), self.trace.shapes[slot]
        if j == len(self._ends):
            self._ends, self._single = np.resize(self._ends, 2 * j), np.resize(self._single, 2 * j)
        self.parts.append(slot)
        self._ends[j], self._single[j] = self._begin(j) + math.prod(shape), not shape

    def numbers(self) -> Any:
        """The places themselves, in one axis."""
        if self.numbered is None:
            self.numbered = np.arange(self.opened().size)
            self.numbered.flags.writeable = False
        return self.numbered

    def _change(self, places: Any, key: Any) -> None:
        """Before something is written: what waits is read; sums at these places are made."""
        self._release()
        if self.pending and np.min(places[key], initial=KNOWN) < KNOWN:
            self.flush()

    def _release(self) -> None:
        """What waits for elements as they are now is read."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for found in [w() for w in waiting]:
                if found is not None:
                    found.read()

    def add(self, places: Any, slot: int) -> None:
        """A slot is added to the elements with these numbers, each as often as it comes up."""
        self._release()
        at = np.ravel(places)
        before = self.source[at]
        fresh = before >= KNOWN
        self.source[at[fresh]] = -3 - before[fresh]
        self.pending.append((places, slot))
        self.version += 1

    def flush(self) -> None:
        """All summands so far become one reduction."""
        pending, self.pending, trace, size = self.pending, [], self.trace, len(self.source)
        if len(pending) == 1 and self.box(pending[0][0]) is not None:
            return self._added(*pending[0])
        groups: dict[Any, list[Any]] = {}
        for places, slot in pending:
            groups.setdefault((np.shape(places), trace.shapes[slot]), []).append((places, slot))
        where: list[Any] = []
        slots: list[int] = []
        wide: list[int] = []  # summands by the axes of the array
        signs: list[float] = []
        for (shape, given), found in groups.items():
            n = len(found)
            boxes = [self.box(places) for places, _ in found] if n < _MANY or math.prod(shape) >= _LARGE else [None]
            if None not in boxes:
                for (_, s), box in zip(found, boxes, strict=True):
                    sign, s = self._signed(s)
                    signs.append(sign)
                    wide.append(self._widened(s, shape, box))
                continue
            slot = row(trace, [s for _, s in found])
            if shape != given:
                slot = shaped(trace, slot, (n, *(1,) * (len(shape) - len(given)), *given))
                slot = trace.step(broadcast(trace.shapes[slot], (n, *shape)), (slot,))
            slots.append(shaped(trace, slot, (n * math.prod(shape),)))
            where.append(np.concatenate([np.ravel(places) for places, _ in found]))
        touched = np.flatnonzero(self.source < KNOWN)
        self.source[touched] = -3 - self.source[touched]
        if wide and np.min(self.source) > KNOWN:
            touched = np.arange(size)
        place, before = np.arange(size), np.full(size, KNOWN)
        before[touched] = self.source[touched]
        if 4 * len(touched) < 3 * size and not wide:  # else all elements, in one step
            place[touched] = np.arange(len(touched))
            before = before[touched]
        n = len(before)
        total = [trace.step(Reduction(tuple([placed(place[at], n) for at in where]), 0), slots)] if where else []
        old = self.read(before, np.zeros(n, self.dtype))  # numbers that are known are 0 here
        total = total if old is None else [old, *total]
        if wide:
            total = [*[shaped(trace, s, self.shape) for s in total], *wide]
        signs = [1.0] * (len(total) - len(wide)) + signs
        total = total[0] if signs == [1.0] else trace.step(Combination(tuple(signs)), total)
        start = self._begin(len(self.parts))
        self.source[touched] = start + place[touched]
        self._add(total)

    def box(self, places: Any) -> Any:
        """Where places begin along each axis of the array, and their steps, if they are a large box of it; else None.
        A sum there is one of arrays, padded by axes: no list of places."""
        size, rank = len(self.opened()), len(self.shape)
        if self.odd is not None or not rank or np.ndim(places) != rank or not size or 4 * np.size(places) < size:
            return None
        first, starts, steps = places[(0,) * rank], list[int](), list[int]()
        for k, n in enumerate(self.shape):
            below = math.prod(self.shape[k + 1 :])
            second = places[tuple([int(j == k) for j in range(rank)])] if places.shape[k] > 1 else first + below
            starts.append(int(first) // below % n)
            steps.append(int(second - first) // below)
        if min(steps) < 1:
            return None
        inside = tuple([slice(at, None, by) for at, by in zip(starts, steps, strict=True)])
        found = self.numbers().reshape(self.shape)[inside][tuple(map(slice, places.shape))]
        return list(zip(starts, steps, strict=True)) if np.array_equal(found, places) else None

    def _added(self, places: Any, slot: int) -> None:
        """The only summand, of a box: the box is a part of its own."""
        before = self.source[places] = -3 - self.source[places]
        old, (sign, slot) = self.read(before, np.zeros(before.shape, self.dtype)), self._signed(slot)
        total = self._spread(slot, before.shape)
        signs, slots = ((sign,), (total,)) if old is None else ((1.0, sign), (old, total))
        total = total if signs == (1.0,) else self.trace.step(Combination(signs), slots)
        start = self._begin(len(self.parts))
        self.source[places] = start + np.arange(before.size).reshape(before.shape)
        self._add(total)

    def _signed(self, slot: int) -> tuple[float, int]:
        """A sign and a slot that together are a slot."""
        less = type(self.trace.ops[slot]) is float and self.trace.ops[slot] == -1.0
        return (-1.0, self.trace.args[slot][0]) if less else (1.0, slot)

    def _spread(self, slot: int, shape: Any) -> int:
        given = self.trace.shapes[slot]
        return slot if given == shape else self.trace.step(broadcast(given, shape), (slot,))

    def _widened(self, slot: int, shape: Any, box: Any) -> int:
        """A summand of a box as an array of the shape of all, 0 elsewhere."""
        trace, slot = self.trace, self._spread(slot, shape)
        for axis, (start, step) in enumerate(box):
            if (n := self.shape[axis]) != (m := shape[axis]):
                slot = trace.step(Reduction((Range(Seg(m), Seg(n), start, step, True),), axis), (slot,))
        return slot

    def at(self, places: Any, numbers: Any) -> int | None:
        """The slot of elements by their numbers."""
        found = self.source[places]
        if self.pending and np.min(found, initial=KNOWN) < KNOWN:
            self.flush()
            found = self.source[places]
        return self.read(np.asarray(found), numbers)

    def write(self, places: Any, key: Any, slot: int) -> None:
        """The elements of a slot become those at places[key]; `places` is a view of `source`."""
        self._change(places, key)
        self._write(places, key, slot)

    def _write(self, places: Any, key: Any, slot: int) -> None:
        shape, start = self.trace.shapes[slot], self._begin(len(self.parts))
        places[key] = np.arange(start, start + math.prod(shape)).reshape(shape) if shape else start
        self._add(slot)
        self.version += 1

    def forget(self, places: Any, key: Any) -> None:
        """Numbers that are known were written at places[key]."""
        self._change(places, key)
        places[key] = KNOWN
        self.version += 1

    def read(self, places: Any, numbers: Any) -> int | None:
        """The slot of elements with these places; None where all numbers are known. `numbers`: those that are, in the
        same shape."""
        trace, shape = self.trace, places.shape
        if self.pending and np.min(places, initial=KNOWN) < KNOWN:
            self.flush()
            assert np.min(places, initial=KNOWN) >= KNOWN
        if not shape:
            return None if places < 0 else self._element(int(places))
        flat = places.ravel()
        if not flat.size or not (flat >= 0).any():
            return None
        owners = np.searchsorted(self._ends[: len(self.parts)], flat, "right")
        owners[flat < 0] = KNOWN
        relations: list[Any] = []
        slots: list[int] = []
        for where, slot, relation in self._groups(flat, owners, numbers):
            if relation is None and len(where) == flat.size and ordered(where):
                return shaped(trace, slot, shape)
            relations.append(placed(where, flat.size) if relation is None else relation)
            slots.append(slot)
        small = self.dtype.kind in "bui" and self.dtype.itemsize < 4  # sums of these are wider
        slots = [self._as(np.dtype(np.intp), s) for s in slots] if small else slots
        slot = trace.step(Reduction(tuple(relations), 0), slots)
        return shaped(trace, self._as(self.dtype, slot) if small else slot, shape)

    def _as(self, dtype: Any, slot: int) -> int:
        return self.trace.step(Discrete(BY_NAME["as_type"], (("dtype", dtype),)), (slot,))

    def _groups(self, flat: Any, owners: Any, numbers: Any) -> list[tuple[Any, int, Any]]:
        """Positions in `flat`, and the slot of one axis that has the elements for them, in their order or by a
        relation."""
        found: list[tuple[Any, int, Any]] = []
        alone = np.flatnonzero((owners != KNOWN) & self._single[owners])  # numbers written one by one
        if len(alone):
            found.append((alone, row(self.trace, [self.parts[j] for j in owners[alone].tolist()]), None))
            owners = owners.copy()
            owners[alone] = -2
        order = np.argsort(owners, kind="stable")
        for where in np.split(order, np.flatnonzero(np.diff(owners[order])) + 1):
            j = int(owners[where[0]])
            if j >= 0:
                at = flat[where] - self._begin(j)
                shape = self.trace.shapes[self.parts[j]]
                if len(shape) > 1 and (relation := lattice(at, where, math.prod(shape), flat.size)) is not None:
                    found.append((where, shaped(self.trace, self.parts[j], (math.prod(shape),)), relation))
                else:
                    found.append((where, self._taken(j, at), None))
            elif j == KNOWN:
                values = np.asarray(numbers).ravel()[where]
                nonzero = np.flatnonzero(values)
                if len(nonzero):
                    found.append((where[nonzero], self.trace.const(values[nonzero].astype(self.dtype)), None))
        return found

    def _element(self, place: int) -> int:
        j = int(np.searchsorted(self._ends[: len(self.parts)], place, "right"))
        slot, trace = self.parts[j], self.trace
        if not trace.shapes[slot]:
            return slot
        slot = shaped(trace, slot, (math.prod(trace.shapes[slot]),))
        return trace.step(Reduction((Point(Seg(trace.shapes[slot][0]), unit, place - self._begin(j)),), 0), (slot,))

    def _taken(self, j: int, at: Any) -> int:
        """Elements of a part by their places in it, in one axis."""
        slot, shape = self.parts[j], self.trace.shapes[self.parts[j]]
        if not shape:
            return self.trace.step(broadcast((), (len(at),)), (slot,))
        return taken(self.trace, shaped(self.trace, slot, (math.prod(shape),)), at)
