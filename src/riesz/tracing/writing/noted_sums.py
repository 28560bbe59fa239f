"""x[key] += v as a noted summand: who may write, what was read to be written back, what is added where."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..registry import by_name
from ..sharing import SUMS, Look, moved
from ..surroundings.contents import owner
from ..trace import inmost, name_of, refuse
from ..traced import Traced, result_dtype
from .waiting import added_slot, numbers_of, same_view, summand, waiting
from .written import WrittenArray, bare, is_traced, settled


def allowed(x: WrittenArray, traced: bool) -> Any:
    """The trace that writes to an array, if it may; `traced`: what is written is."""
    home, now = x.home, inmost()
    if not x.flags.writeable:
        raise ValueError("assignment destination is read-only")
    if home.trace is not None and home.trace is now:
        return now
    if home.trace is not None and not home.trace.open:  # it was kept by the function, and is from outside now
        home.trace = None
    if home.trace is None and traced:
        name = name_of(lambda v: isinstance(v, np.ndarray) and owner(v) is home.owner, "a")
        raise refuse(
            f"a traced value is written into an array of shape {x.shape} from outside the function, which would keep "
            f"it; write into a copy: own = {name}.copy()"
        )
    if home.trace is not None and inmost() is not None:
        raise refuse(
            "an array of an outer function is written to inside another one that is traced (a loop's body, a branch, "
            "an inner derivative): it would happen once, not at each call; return the new array instead, "
            "or copy the array there: a = a.copy()"
        )
    return now


def written_back(x: Any, key: Any, value: Any) -> bool:
    """Whether x[key] = value ends x[key] += v: of a view nothing is left to do, of a copy the summand is noted."""
    made_here: bool = WrittenArray in (type(x),)
    shared: Any = None if made_here or x.look is None else x.look.memory
    ours: Any = x.home.trace if made_here else None if shared is None else shared.trace
    if is_traced(key) or ours is None or ours is not inmost():
        return False
    if type(value) is WrittenArray and value.origin is not None:
        whole, at, version, added = value.origin
        if whole is not x or at is not key or added is None or version != x.version or value.version != added[2]:
            return False
        places = np.arange(x.size).reshape(x.shape)[bare(key)]
        if len(np.unique(places)) < places.size:
            return False
        trace = allowed(x, True)
        add_at(x, bare(key), added_slot(trace, (added[0], added[1]), x.dtype), trace)
        return True
    if type(value) is WrittenArray:
        return made_here and value.home is x.home and same_view(np.ndarray.__getitem__(x, bare(key)), value)
    if type(value) is not Traced or value.look is None:
        return False
    if not value.look.waits:
        same = not made_here and value.look.memory is shared
        return same and same_view(numbers_of(x)[bare(key)], numbers_of(value))
    memory: Any = x.memory if made_here else shared
    if memory is None or value.look.memory_of is not memory:
        return False
    places = (x.places(memory.numbers()) if made_here else numbers_of(x))[bare(key)]
    found = summand(places, value, memory)
    if found is None:
        return False
    memory.waiting = [w for w in memory.waiting if w() is not value.look]
    add_at(x, bare(key), added_slot(memory.trace, found, memory.dtype), memory.trace)
    value.look.renewed()
    return True


def add_at(x: Any, key: Any, slot: int, trace: Any) -> None:
    """A slot is added to x[key], each element as often as it comes up; x may be written to by this trace."""
    if type(x) is WrittenArray:
        return x.add_traced(key, slot, trace)
    x.look.memory.add(numbers_of(x)[key], slot)


@by_name
def part(x: Traced, key: Any) -> Any:
    """x[key] of an array that was written to since it was read: only the part is read, when it is needed."""
    if is_traced(key):
        return None
    key, places = bare(key), numbers_of(x)
    found, memory = places[key], x.look.memory
    if memory.version == x.look.seen:  # it was a copy, not a view
        return None
    if isinstance(found, np.ndarray) and np.may_share_memory(found, memory.numbered):
        view = Traced(memory.trace, -1, x.dtype, shape=found.shape)
        view.look = Look(memory, x, lambda p: p[key], x.look.moved)
        view.look.seen = -1
        if not found.shape:
            view.weak = None
        return view
    return waiting(memory, found, None) if np.ndim(found) < 2 or not (x.look.moved or moved(found)) else None


def added_in_place(ufunc: Any, method: str, x: Any, others: Any, where: Any, named: Any) -> bool:
    """Whether x += v of an array that the function made is noted as a summand."""
    if ufunc not in SUMS or method != "__call__" or named or where is not True or type(x) is not WrittenArray:
        return False
    value = settled(others[0])
    if type(value) is not Traced or x.dtype.kind != "f" or result_dtype([x.known, value])[0] != x.dtype or not x.size:
        return False
    if x.home.owner.dtype != x.dtype or np.broadcast_shapes(value.shape, x.shape) != x.shape:
        return False
    trace, origin = allowed(x, True), x.origin
    first = origin is not None and x.memory is None and np.array_equal(x.known, origin[0].known[bare(origin[1])])
    add_at(x, ..., added_slot(trace, (ufunc, value), x.dtype), trace)
    x.origin = (*origin[:3], (ufunc, value.as_it_is(), x.version)) if first and origin is not None else None
    return True


@by_name
def added_to_view(ufunc: Any, x: Traced, other: Any) -> bool:
    """Whether x += v of a view, which may be written to, is noted as a summand: a large box of a computed array."""
    value, memory = settled(other), x.look.memory
    if x.look.parent is None or type(value) not in (Traced, float, int, np.float64, np.ndarray) or x.dtype.kind != "f":
        return False
    shape = np.shape(value)
    fits = len(shape) <= len(x.shape) and all([m in (1, n) for m, n in zip(shape[::-1], x.shape[::-1], strict=False)])
    if not fits or (type(value) is np.ndarray and value.dtype.kind not in "fiub"):
        return False
    if result_dtype([x, value])[0] != x.dtype or memory.box(places := numbers_of(x)) is None:
        return False
    memory.add(places, added_slot(memory.trace, (ufunc, value), x.dtype))
    return True
