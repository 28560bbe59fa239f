"""Functions that are written anew at each call (a lambda in a method, `rz.grad(self.loss)`): they are recognised by
their code and by what they capture, so that a trace is found again.

The *signature* of a function lists its code and all it closes over, by value where that is a number or a text and by
identity otherwise. Two functions with one signature do the same. What a kept trace depends on is a list of rows
(watching.py); those on closed-over names are carried over to the names of the new function.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import tuning
from ...tracing.surroundings.watching import KEPT, MISSING, Cell
from ..remade import DerivedFunction

if TYPE_CHECKING:
    from .records import Record

Signature = tuple[Any, ...]


class _Seen:
    """A trace of a function that may be gone, with what it depends on and all that its signature names."""

    __slots__ = ("again", "cells", "code", "numbers", "record", "rows", "things")

    def __init__(self, record: Record, rows: Sequence[Any], cells: list[Any], things: list[Any], again: bool) -> None:
        self.record, self.rows, self.cells, self.things, self.again = record, rows, cells, things, again
        self.code: Any = next((x for x in things if isinstance(x, types.CodeType)), None)
        held = [value for _, _, value in rows] + things
        self.numbers = sum({id(x): x.nbytes for x in held if isinstance(x, np.ndarray)}.values())


_seen: OrderedDict[Any, _Seen] = OrderedDict()
"""By signature and kind of arguments."""
_gone: OrderedDict[int, None] = OrderedDict()
"""Hashes of those that were let go: what comes again is kept longer."""
_lock = Lock()

_VALUES = {int, bool, str, bytes, type(None)}


def signature(function: Any) -> tuple[Signature, list[Any], list[Any]] | None:
    """What a function is made of; the cells it closes over, in order; the objects that are named by identity. None for
    one that is not made anew: of an object that is called, nothing is known."""
    if not isinstance(function, (types.FunctionType, types.MethodType, partial, DerivedFunction)):
        return None
    found, cells, things = list[Any](), list[Any](), list[Any]()
    numbered: dict[int, int] = {}  # cells and functions that were met, by identity
    stack: list[Any] = [function]
    while stack:
        x: Any = stack.pop()
        kind = type(x)
        if kind in _VALUES:
            found += (kind, x)
        elif kind is float:
            found += (kind, x.hex())
        elif kind is types.FunctionType:
            if id(x) in numbered:
                found.append(numbered[id(x)])
                continue
            numbered[id(x)] = len(numbered)
            own = vars(x)
            if len(own) > (KEPT in own):
                found.append(id(x))  # it has attributes: known as itself only
                things.append(x)
                continue
            found += (id(x.__code__), id(x.__globals__))
            things += (x.__code__, x.__globals__)
            for cell in x.__closure__ or ():
                if id(cell) not in numbered:
                    numbered[id(cell)] = len(numbered)
                    cells.append(cell)
                    stack.append(Cell(cell).get(None, MISSING))
                found.append(numbered[id(cell)])
            stack += (x.__defaults__, *(x.__kwdefaults__ or {}).items())
        elif kind is tuple:
            found += (kind, len(x))
            stack += x
        elif kind is types.MethodType:
            found.append(kind)
            stack += (x.__func__, x.__self__)
        elif kind is partial:
            found += (kind, len(x.args), len(x.keywords))
            stack += (x.func, *x.args, *x.keywords.items())
        elif isinstance(x, DerivedFunction):
            found.append(kind)
            stack += (x.function, x.options)
        elif kind.__name__ == "TracedFunction":
            found += (kind, x.static, x.name)
            stack.append(x.function)
        else:
            found.append(id(x))
            things.append(x)
    return tuple(found), cells, things


def remember(function: Any, key: Any, record: Record, rows: Sequence[Any]) -> None:
    """Keep a trace for functions that will be written anew."""
    known = signature(function)
    if known is None:
        return
    mark, cells, things = known
    seen = _Seen(record, rows, cells, things, hash((mark, key)) in _gone)
    if seen.numbers > tuning.RECOGNISED_BYTES:
        return
    with _lock:
        _seen[mark, key] = seen
        _seen.move_to_end((mark, key))
        older = [(k, s) for k, s in reversed(_seen.items()) if s.code is seen.code][1:]
        held = 0
        for n, (k, s) in enumerate(older):  # of one code, the newest, and a few that came again
            held += s.numbers
            if not s.again or held > tuning.RECOGNISED_BYTES_TOGETHER or n >= tuning.RECOGNISED_ALIKE:
                _let_go(k)
        if len(_seen) > tuning.TRACES_KEPT:
            _let_go(next(iter(_seen)))


def _let_go(mark: Any) -> None:
    del _seen[mark]
    _gone[hash(mark)] = None
    if len(_gone) > tuning.TRACES_KEPT:
        _gone.popitem(last=False)


def recall(function: Any, key: Any) -> tuple[Record, list[Any]] | None:
    """A trace of a function that does the same, and what it depends on now; None where there is none."""
    if not _seen or (known := signature(function)) is None:
        return None
    seen = _seen.get((known[0], key))
    if seen is None:
        return None
    cells = {id(old): new for old, new in zip(seen.cells, known[1], strict=True)}
    rows: list[Any] = []
    for row in seen.rows:
        where, name, value = row
        if type(where) is Cell and id(where.cell) in cells:
            mine = Cell(cells[id(where.cell)])
            rows.append((mine, name, mine.get(name, MISSING)))
        elif where.get(name, MISSING) is value:
            rows.append(row)
        else:
            return None
    return seen.record, rows
