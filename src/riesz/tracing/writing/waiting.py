"""Elements of an array that is being written to, read when somebody needs them; sums that are written back are not
read at all.

`r[k] += v` asks for r[k], adds v and writes the sum back. The read waits. If its sum with one summand comes back to the
places it was read from, the summand is noted in the array's memory, and all summands become one scatter later. Whatever
else is done with it, or a write to the array, makes it a step.
"""

from __future__ import annotations

from typing import Any, cast
from weakref import ref

import numpy as np

from ..registry import UFUNCS, by_name
from ..sharing import places_of
from ..trace import Trace, inmost
from ..traced import FLOAT, Traced, result_dtype, slot_of, trace_of
from .memory import Memory


class Waiting:
    """Some places of a memory at a moment, perhaps with a summand; what a traced array looks into until it is read."""

    __slots__ = ("__weakref__", "added", "memory_of", "numbers", "places", "slot", "version")
    waits, parent, how, moved = True, None, None, False

    def __init__(self, memory: Memory, places: Any, numbers: Any, added: Any = None) -> None:
        self.memory_of, self.places, self.numbers = memory, places, numbers
        self.added = added  # a ufunc, np.add or np.subtract, and what comes second
        self.slot: int | None = None
        self.version = memory.version
        memory.waiting.append(ref(self))

    def read(self) -> int:
        """The step that reads it."""
        if self.slot is None:
            memory = self.memory_of
            slot = memory.at(self.places, self.numbers)
            if slot is None:
                slot = memory.trace.const(np.asarray(self.numbers, memory.dtype))
            if self.added is not None:
                ufunc, other = self.added
                slot = UFUNCS[ufunc](_array(memory, slot), other).slot
            self.slot = slot
        return cast(int, self.slot)

    def renewed(self) -> None:
        """Its sum was written back: now it is what is there."""
        self.added, self.version = None, self.memory_of.version
        self.memory_of.waiting.append(ref(self))


def _array(memory: Memory, slot: int) -> Traced:
    return Traced(memory.trace, slot, FLOAT if memory.dtype == FLOAT else memory.dtype)


def waiting(memory: Memory, places: Any, numbers: Any, added: Any = None) -> Traced:
    """A traced array of elements that are not read yet."""
    found = Traced(memory.trace, -1, FLOAT if memory.dtype == FLOAT else memory.dtype, shape=np.shape(places))
    found.look = Waiting(memory, places, numbers, added)
    return found


@by_name
def plus(ufunc: Any, x: Traced, other: Any) -> Traced | None:
    """x + other or x − other for elements that wait: they wait with a summand. None where that is something else."""
    look = cast(Waiting, x.look)
    if look.added is not None or look.slot is not None or x.dtype.kind != "f":
        return None
    if type(other) not in (Traced, float, int, np.float64, np.ndarray):
        return None
    trace = look.memory_of.trace
    if trace_of(x, other) is not trace or result_dtype([x, other])[0] != x.dtype:
        return None
    shape = np.shape(other)
    if len(shape) > len(x.shape) or np.broadcast_shapes(shape, x.shape) != x.shape:
        return None
    kept = other.as_it_is() if type(other) is Traced else other
    return waiting(look.memory_of, look.places, look.numbers, (ufunc, kept))


def numbers_of(x: Traced) -> Any:
    """The places in its memory that x looks at."""
    return places_of(x, True)


def summand(places: Any, value: Any, memory: Memory) -> Any:
    """What was added to the elements at these places since they were read from there, or None."""
    look = value.look if type(value) is Traced else None
    if look is None or not look.waits or look.added is None or look.slot is not None:
        return None
    if look.memory_of is not memory or look.version != memory.version or memory.trace is not inmost():
        return None
    if look.places is not places and not np.array_equal(look.places, places):
        return None
    many = np.size(places)
    return None if many > 1 and len(np.unique(places)) < many else look.added


def added_slot(trace: Trace, added: tuple[Any, Any], dtype: Any) -> int:
    """A summand, what is added or subtracted, as a slot."""
    slot = slot_of(trace, added[1], dtype)
    return slot if added[0] is np.add else trace.scale(-1.0, slot)


def same_view(one: Any, other: Any) -> bool:
    """Whether two arrays look at the same elements in the same way."""
    return (
        isinstance(one, np.ndarray)
        and isinstance(other, np.ndarray)
        and one.shape == other.shape
        and one.dtype == other.dtype
        and one.strides == other.strides
        and one.__array_interface__["data"][0] == other.__array_interface__["data"][0]
    )
