"""The arrays a function finds outside of itself while it is traced.

A trace reads large ones at each call (they are inputs of its program), and has copies of small ones, which are compared
at each call (watching.py). Where NumPy computed something from a large array while the function was traced, that array
is compared at each call too.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ...errors import TraceError
from ...relations.base import frozen
from ...runtime import tuning
from .contents import Contents, contents_of, owner
from .watching import Dice, Endless, codes_of, reached, watch

OUTSIDE: ContextVar[Outside | None] = ContextVar("outside", default=None)
"""That of the function being traced."""


class Outside:
    """What a function can reach when its trace begins; `made`: its steps may depend on numbers computed from it."""

    def __init__(self, things: Sequence[Any] = ()) -> None:
        """`things`: what the function reaches, functions, objects and arrays."""
        self.things = found = list(things)
        self.before, self.dice = watch(found), Dice(found) if found else None
        arrays = [x for x in found if isinstance(x, np.ndarray) and cast(Any, x).size and not frozen(cast(Any, x))]
        codes = [c for f in found if isinstance(f, types.FunctionType) for c in codes_of(f.__code__)]
        self.made = any([decides(c) for c in codes])
        self.careful = any([writes(c) for c in codes])
        self.unchecked = False  # whether something was assumed that is seen at a point only
        self.indexed = False  # whether something traced was to be an index of a plain array
        self._roots: dict[int, list[Any]] = {}
        for x in arrays:
            self._roots.setdefault(id(owner(x)), []).append(Contents(x) if self.careful else x)
        self._numbers = {id(v) for _, _, v in self.before if isinstance(v, np.generic)}
        self._used: dict[int, Any] = {}
        self._baked: dict[int, Any] = {}  # arrays outside whose numbers went into steps

    def has(self, array: Any) -> bool:
        """Whether an array is, or looks into, one that can be reached and written to from outside."""
        return id(owner(array)) in self._roots

    def take(self, x: Any, baked: bool) -> None:
        """A step was given an array or a number of NumPy's. `baked`: its numbers went into the step."""
        if isinstance(x, np.ndarray):
            root = id(owner(x))
            if root in self._roots:
                self._used[root] = x
                self._check(root)
                if baked:
                    self._baked[id(x)] = x
            elif not frozen(cast(Any, x)):
                self.made = True
        elif isinstance(x, np.generic):
            self.made = self.made or id(x) not in self._numbers
        elif isinstance(x, (list, tuple)):
            for part in cast("list[Any]", x):
                self.take(part, baked)

    def include(self, other: Outside) -> None:
        """What the trace of a function inside depends on."""
        self.made = self.made or other.made or not all([self.has(x) for x in other._baked.values()])
        self._baked.update(other._baked)

    def _check(self, root: int) -> None:
        if self.careful and not all([c.same for c in self._roots[root]]):
            raise TraceError(
                f"an array of shape {self._used[root].shape} that comes from outside the function is written to "
                "inside it, and computed with: what it gives would depend on how often it was called; copy the array "
                "first (a = a.copy()), or make it an argument"
            )

    @property
    def wrote(self) -> bool:
        """Whether the function wrote into an array it found outside."""
        return self.careful and not all([c.same for held in self._roots.values() for c in held])

    @property
    def rolled(self) -> bool:
        """Whether random numbers were drawn since, more is reached than was looked at, or something was assumed and not
        seen: the trace is not kept."""
        drawn = self.dice is not None and (type(self.things[-1]) is Endless or self.dice.rolled)
        return self.unchecked or drawn

    def finish(self) -> None:
        """Refuse functions that wrote to what they computed with."""
        for root in self._used:
            self._check(root)

    def rows(self, things: Sequence[Any] | None = None) -> list[Any]:
        """All whose change makes the trace out of date. `things`: what is reached by now, where that changed."""
        around = self.things if things is None else things
        found = list(self.before) if things is None else watch(around)
        owners = {id(owner(x)) for x in self._baked.values()}
        for x in [cast(Any, x) for x in around if isinstance(x, np.ndarray)]:
            large = x.size > tuning.WATCHED_ARRAY_NUMBERS and not frozen(x)
            if large and (self.made or id(owner(x)) in owners):
                contents = contents_of(x)
                found.append((contents, None, contents))
        return found


def everything(*functions: Any) -> list[Any]:
    """All that functions can reach, with the numbers in all arrays."""
    found = Outside(list(reached(*functions)))
    found.made = True
    return found.rows()


def note(args: Sequence[Any], baked: bool) -> None:
    """Arrays and numbers of NumPy's, and sparse matrices, that a step is given: what the trace depends on."""
    for x in args:
        kind: Any = type(x)
        if kind in PLAIN:
            continue
        if issubclass(kind, (np.ndarray, np.generic, list, tuple)):
            found = OUTSIDE.get()
            if found is not None:
                found.take(x, baked)
        elif kind.__module__.startswith("scipy.sparse"):
            note(list(vars(x).values()), True)


PLAIN: set[Any] = {float, int, bool, str, type(None), slice}
"""Kinds of values that hold no numbers of NumPy's; traced arrays are among them."""


_STORES = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}
_BINARY, _IN_PLACE = dis.opmap["BINARY_OP"], 13  # from here on: +=, -=, …
_NAMES = "at byteswap copyto fill fill_diagonal partition place put put_along_axis putmask resize shuffle sort"
_WRITERS = set(_NAMES.split())
_JUMPS = {code for name, code in dis.opmap.items() if "JUMP" in name and ("IF_TRUE" in name or "IF_FALSE" in name)}
_DECIDERS = {"argwhere", "bool", "flatnonzero", "float", "int", "item", "math", "nonzero", "tolist", "unique"}


@lru_cache(4096)
def writes(code: types.CodeType) -> bool:
    """Whether code may write into an array."""
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    if any([op in _STORES or (op == _BINARY and arg >= _IN_PLACE) for op, arg in steps]):
        return True
    named = any([isinstance(c, tuple) and "out" in c for c in code.co_consts])
    return named or not _WRITERS.isdisjoint(code.co_names)


@lru_cache(4096)
def decides(code: types.CodeType) -> bool:
    """Whether code may turn numbers of an array into Python's, or decide by them what it does."""
    return not _JUMPS.isdisjoint(code.co_code[::2]) or not _DECIDERS.isdisjoint(code.co_names)
