"""Which traced arrays share their numbers, as NumPy's do: views, copies, and operators in place.

A view remembers which array it looks into and how: the NumPy function that made it. When the array is written to, that
function, applied to the table of sources (writing/memory.py), says which elements the view shows, and whether it is a
view at all. An array reads its elements again when it is used after a write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import Any, cast

import numpy as np

from .layouts import REORDERS, Made, frame_of
from .operators import Operators
from .trace import Trace, inmost, leaked, name_of, refuse

_TRACED: Any = Operators  # the operators of traced arrays, and of nothing else
ARGUMENT = "the function was given it, so its caller's array would change"
"""Why nobody may write to an argument."""
_NAMES = """reshape ravel transpose permute_dims swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to
broadcast_arrays diagonal split array_split vsplit hsplit dsplit atleast_1d atleast_2d atleast_3d flip fliplr flipud
rot90 real real_if_close matrix_transpose unstack"""
_VIEWS = {getattr(np, name) for name in _NAMES.split() if hasattr(np, name)}  # unstack is new
VIEWS = _VIEWS | {np.linalg.matrix_transpose, np.linalg.diagonal}
"""Functions whose results look into their argument; what others do inside does not make an array shared."""
_MOVERS = """transpose swapaxes moveaxis rollaxis rot90 broadcast_to broadcast_arrays einsum permute_dims
matrix_transpose diagonal"""
MOVERS = {getattr(np, name) for name in _MOVERS.split()} | {np.linalg.matrix_transpose, np.linalg.diagonal}
"""Those whose results have their axes in another order, or no order at all."""
_USERS = "dot einsum tensordot inner outer where concatenate stack vstack hstack vdot kron"
SUMS = {np.add, np.subtract}
"""Ufuncs whose second operand can be added later."""
OPERANDS = {getattr(np, name) for name in _USERS.split()}
"""Functions that use the arrays they are given as they use traced ones: as arguments of steps, whose numbers are read
when the program runs."""


def traced_in(xs: Sequence[Any]) -> list[Any]:
    """The traced arrays among some values, and in lists and tuples of them."""
    found: list[Any] = []
    for x in xs:
        if isinstance(x, _TRACED):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found.extend(traced_in(cast("list[Any]", x)))
    return found


def rearranges(args: tuple[Any, ...]) -> bool:
    """Whether np.einsum of one array only moves its axes: then it gives a view."""
    if len(args) != 2 or not isinstance(args[0], str):
        return False
    before, arrow, after = args[0].replace(" ", "").partition("->")
    return set(before) <= set(after) if arrow else len(set(before)) == len(before)


class Look:
    """What an array looks into: memory, which array it is a view of (None: all of it), and how."""

    __slots__ = ("how", "memory", "moved", "parent", "seen")
    waits = False  # what waits is of another class (writing/waiting.py)

    def __init__(self, memory: Any, parent: Any = None, how: Any = None, moved: bool = False) -> None:
        self.memory, self.parent, self.how = memory, parent, how
        self.moved = moved  # its axes may lie in memory in another order
        self.seen: int = memory.version


def rooted(x: Any, fixed: str = "", odd: Any = None) -> Look:
    """Memory for an array that is no view; `odd`: how it was made, where it may lie in memory by other than rows."""
    from .writing.memory import Memory

    if x.look is not None and x.look.waits:
        x.unshare()
    if x.look is None:
        _owned(x, x.maker)
        x.look = Look(Memory(x.home, x.shape, x.dtype, x.own_slot, fixed, odd), moved=odd is not None)
    return x.look


def _owned(x: Any, trace: Any) -> None:
    """An array made of outer arrays only was computed in the outer function; it belongs to the one that made it."""
    if x.home is not trace and trace is not None and trace is inmost():
        x.own_slot, x.home = trace.capture(x), trace


def viewed(x: Any, part: Any, how: Callable[[Any], Any], moved: bool = False) -> Any:
    """A view of x; `how` makes the same view of any array. `moved`: its axes lie in another order."""
    if isinstance(part, _TRACED) and part is not x and (part.shape or part.weak is None):
        look = rooted(x)
        _owned(part, look.memory.trace)
        part.look = Look(look.memory, x, how, moved or look.moved)
    return part


def without_out(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The arguments of a function, and the array that its result goes to, given by name or by position."""
    place = _place_of_out(function)
    if len(args) > place:
        return (*args[:place], *((None,) if args[place + 1 :] else ()), *args[place + 1 :]), named, args[place]
    target = named.get("out")
    return args, {k: v for k, v in named.items() if k != "out"}, target[0] if type(target) is tuple else target


@lru_cache(256)
def _place_of_out(function: Any) -> int:
    try:
        found = list(signature(function).parameters.values())
    except ValueError:  # a compiled one
        return 2 if function in (np.dot, np.concatenate) else sys.maxsize
    named = [i for i, p in enumerate(found) if p.name == "out" and p.kind is p.POSITIONAL_OR_KEYWORD]
    return named[0] if named else sys.maxsize


def views(function: Any, result: Any, args: tuple[Any, ...], named: dict[str, Any], given: list[Any]) -> Any:
    """The result of a function that gives views: which array each looks into, and how."""
    if not isinstance(result, (list, tuple)):
        return _view(function, result, args, named, given[0], None) if given else result
    parts = cast("list[Any]", result)
    apart = len(args) == len(parts) > 1 or function is np.broadcast_arrays  # one for each argument
    looked = [(x, args[i] if apart else given[0], None if apart else i) for i, x in enumerate(parts)]
    return cast(Any, type(result))([_view(function, x, args, named, of, i) for x, of, i in looked])


def _view(function: Any, part: Any, args: Any, named: Any, x: Any, i: int | None) -> Any:
    """A result as a view of x; `i`: it is one of several."""
    if not isinstance(part, _TRACED) or not isinstance(x, _TRACED):
        return part
    number = not (x.shape or (x.weak and function is not np.real) or function is np.broadcast_to)
    part = type(part)(part.home, part.slot, part.dtype, part.weak if number or part.shape else None)

    def how(p: Any) -> Any:
        if i is None and len(args) > 1 and function in _EACH:
            return function(p)
        if function is np.broadcast_arrays:
            return p if p.shape == part.shape else np.broadcast_to(p, part.shape)
        found = function(*[p if a is x else a for a in args], **{k: p if a is x else a for k, a in named.items()})
        return found if i is None else found[i]

    return viewed(x, part, how, function in MOVERS)


_EACH = {np.atleast_1d, np.atleast_2d, np.atleast_3d}  # of each argument by itself


def places_of(x: Any, numbered: bool = False) -> Any:
    """The table of sources, or of the places themselves, looked at as x looks at its memory."""
    chain = _settled_chain(x)
    memory = x.look.memory
    found = memory.laid(memory.numbers() if numbered else memory.opened())
    for y in chain:
        found = y.look.how(found)
    return found


def _settled_chain(x: Any) -> list[Any]:
    """The views that lead from the root of its memory to x. What NumPy copied (a reshape of a transpose) turns out to
    be no view here, and is from then on its own root."""
    chain = [x]
    while chain[-1].look.parent is not None:
        chain.append(chain[-1].look.parent)
        rooted(chain[-1])
    memory, views = chain[-1].look.memory, []
    frames = _frames(memory)
    for y in reversed(chain[:-1]):
        looks = [y.look.how(f) for f in frames]
        shared = [not v.size or np.may_share_memory(v, f) for v, f in zip(looks, frames, strict=True)]
        if any(shared) and not all(shared):
            raise refuse(
                "an array is written to, and how NumPy lays it out in memory is not known (it comes from a computation "
                "with transposed arrays): another one may be a view or a copy of it; copy it first: x = x.copy()"
            )
        if all(shared):
            if y.look.memory is not memory:
                y.look.memory, y.look.seen = memory, 0
            frames = looks
            views.append(y)
        else:
            y.look.memory.version += 1  # views of y must look again
            y.look = None
            odd = None if looks[0].flags.c_contiguous else np.empty_like(looks[0], subok=False)
            memory, views = rooted(y, odd=odd).memory, []
            frames = _frames(memory)
    return views


def _frames(memory: Any) -> list[Any]:
    """Arrays that lie in memory as one of this kind does, or may."""
    found = frame_of(memory)
    return [found] if found is not None else [np.empty(memory.shape, np.int8, order) for order in ("C", "F")]


def base_of(x: Any) -> Any:
    """The array that x is a view of, as NumPy has it: the one at the root; None for one on its own."""
    if x.look is None or x.look.parent is None:
        return None
    _settled_chain(x)
    root = x
    while root.look is not None and root.look.parent is not None:
        root = root.look.parent
    return None if root is x else root


def current_slot(x: Any) -> int:
    """The slot of an array that may have been written to since it was read."""
    if x.look.waits:
        x.own_slot, x.look = x.look.read(), None
    elif x.look.seen != x.look.memory.version:
        places = places_of(x)
        look = x.look
        if look.seen != look.memory.version:
            slot = look.memory.read(places, None)
            x.home = look.memory.trace
            x.own_slot = x.home.const(np.zeros(x.shape, x.dtype)) if slot is None else slot
            look.seen = look.memory.version
    return x.own_slot


def writable(x: Any) -> Trace:
    """The trace of an array that is about to be written to; an error if it must not be."""
    memory = rooted(x).memory
    if memory.fixed:
        root = x
        while root.look.parent is not None:
            root = root.look.parent
        name = name_of(lambda v: v is root, "x")
        way = f"write into a copy: {name} = {name}.copy()"
        raise refuse(f"an in-place change of this array is not possible: {memory.fixed}; {way}")
    if not memory.trace.open:
        raise leaked(memory.trace)
    if memory.trace is not inmost():
        raise refuse(
            "an array of an outer function is changed in place inside another one that is traced (a loop's body, a "
            "branch, an inner derivative): it would happen once, not at each call; return the new array instead, or "
            "copy the array there: a = a.copy()"
        )
    _settled_chain(x)
    return x.look.memory.trace


def fresh(result: Any, function: Any, args: Sequence[Any], named: dict[str, Any], given: Sequence[Any] = ()) -> Any:
    """What a function that gives no view gives: an array on its own, also where it has the numbers of an argument."""
    if isinstance(result, _TRACED):
        for x in (*given, *args):
            if result is x:
                return result.copy("K")
        result.unshare()
        if len(result.shape) > 1 and (function in REORDERS or any([moved(x) for x in (*given, *args)])):
            rooted(result, odd=Made(function, args, named))
    elif isinstance(result, (list, tuple)):
        for part in cast("list[Any]", result):
            if isinstance(part, _TRACED) and not any([part is x for x in args]):
                part.unshare()
    return result


def moved(x: Any) -> bool:
    """Whether what NumPy computes from an array may lie in memory by other than rows."""
    if isinstance(x, np.ndarray):
        steps = [abs(s) for s, n in zip(cast(Any, x).strides, cast(Any, x).shape, strict=True) if s and n > 1]
        return steps != sorted(steps, reverse=True)
    return isinstance(x, _TRACED) and getattr(x, "look", None) is not None and x.look.moved
