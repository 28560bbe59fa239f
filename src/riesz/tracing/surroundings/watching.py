"""What a trace of a Python function depends on besides its arguments: names, globals, attributes, by identity; the
functions it calls; the numbers in arrays it can reach."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from operator import is_
from typing import Any, ClassVar, cast
from weakref import ref

import numpy as np

from ...relations.base import frozen
from ...runtime import tuning
from .contents import Contents

MISSING = object()


def _is_object(x: Any) -> bool:
    """An object of a user's class, whose attributes a function may read."""
    kind = cast(Any, type(x))
    plain = isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ndarray))
    own = getattr(x, "__dict__", None)  # some objects answer for any name
    attributes = isinstance(own, dict) or (own is None and hasattr(kind, "__slots__"))
    return not plain and attributes and kind.__module__.split(".")[0] not in _LIBRARIES


class _Attributes:
    """The attributes of an object that are values, its own and those of its class, as a mapping."""

    __slots__ = ("names", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        kinds = (owner if isinstance(owner, type) else type(owner)).__mro__[:-1]
        shared = {
            k for kind in kinds for k, v in vars(kind).items() if not k.startswith("__") and not hasattr(v, "__get__")
        }
        if not isinstance(owner, type):
            slots = [k for kind in kinds for k, v in vars(kind).items() if isinstance(v, types.MemberDescriptorType)]
            own = getattr(owner, "__dict__", None)
            shared |= {*(own if isinstance(own, dict) else ()), *slots}
        self.names: list[str] = sorted(shared)

    def get(self, name: str, default: Any) -> Any:
        """What an attribute is now."""
        return getattr(self.owner, name, default)

    def values(self) -> list[Any]:
        """What all of them are now."""
        return [getattr(self.owner, name, None) for name in self.names]


class _Cells:
    """The closure of a function, as a mapping."""

    __slots__ = ("cells",)

    def __init__(self, cells: dict[str, Any]) -> None:
        self.cells = cells

    def get(self, name: str, default: Any) -> Any:
        """What a closed-over name means now."""
        try:
            return self.cells[name].cell_contents
        except ValueError:
            return default


class Wrapper:
    """An object of riesz's own around a function of the user's."""

    function: Any


class _Members:
    """What a holder holds; as a mapping of one, itself while that is the same."""

    __slots__ = ("members", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.members = self._now()

    def get(self, name: Any = None, default: Any = None) -> Any:
        """This itself, while the members are the same objects, or the same bytes."""
        before, now = self.members, self._now()
        same = (
            now == before
            if isinstance(self.owner, _BUFFERS)
            else len(now) == len(before) and all(map(is_, now, before))
        )
        return self if same else default

    def _now(self) -> list[Any]:
        if isinstance(self.owner, list):
            entries = cast("list[Any]", self.owner)
            return list(map(meant, entries)) if Standing.now else entries.copy()
        return _members(self.owner) or []


_CONTAINERS = (deque, set, frozenset, types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_BUFFERS = (array, bytearray, ctypes.Array, ctypes.Structure, ctypes.Union, ctypes._SimpleCData)  # pyright: ignore
_CODE = (type, types.ModuleType, types.FunctionType)


def _members(f: Any) -> list[Any] | None:
    """What something holds that is no list, tuple, dictionary or object of a user's class; buffers hold bytes. None if
    it is no holder."""
    if isinstance(f, np.ndarray):
        return cast(Any, f).ravel().tolist() if cast(Any, f).dtype.hasobject else None
    if isinstance(f, _CONTAINERS):
        return gc.get_referents(f)
    if isinstance(f, _BUFFERS):
        return [memoryview(cast(Any, f)).tobytes()]
    if isinstance(f, memoryview):
        return [f.obj]
    if isinstance(f, np.flatiter):
        return [f.base]
    if type(f).__module__.startswith("pandas.core.internals."):  # what tables are made of: blocks, and arrays in these
        return [*getattr(f, "blocks", ()), *getattr(f, "axes", ())] or [getattr(f, "values", None)]
    if isinstance(f, ref):
        return [cast(Any, f)()]
    if isinstance(f, ContextVar):
        try:
            return [cast(Any, f).get()]
        except LookupError:
            return []
    return None


def _parts(f: Any) -> dict[str, Any]:
    """The attributes of an object of NumPy or SciPy that hold numbers: sparse matrices, polynomials, splines have
    such."""
    if (
        not cast(Any, type(f)).__module__.startswith(("numpy", "scipy"))
        or isinstance(f, _CODE)
        or not hasattr(f, "__dict__")
    ):
        return {}
    slots = [k for kind in cast(Any, type(f)).__mro__ for k in vars(kind).get("__slots__", ())]
    found = vars(f) | {k: getattr(f, k, None) for k in slots}
    return {k: v for k, v in found.items() if isinstance(v, (np.ndarray, tuple, dict, list))}


class _Size:
    """How many entries a dictionary has, or attributes an object; as a mapping of one, itself while these are as
    many."""

    __slots__ = ("entries", "size")

    def __init__(self, entries: Any) -> None:
        self.entries = entries
        self.size = len(entries)

    def get(self, name: Any = None, default: Any = None) -> Any:
        """This itself, while there are as many."""
        return self if len(self.entries) == self.size else default


class Endless:
    """Stands for what is not looked at any more: never the same."""

    def get(self, name: Any = None, default: Any = None) -> Any:
        """Another object each time."""
        return object()


def reached(*starts: Any) -> Iterator[Any]:
    """Functions, objects of users' own and arrays that a function may use: itself, closed-over ones, globals its code
    names, attributes, defaults."""
    seen: set[int] = set()
    stack: list[Any] = list(starts)
    functions: list[types.FunctionType] = []
    kinds: dict[type, None] = {}  # the classes of objects
    while len(seen) < tuning.WATCHED_THINGS:
        if not stack and kinds:
            stack = _methods(kinds, functions, seen)
        if not stack:
            return
        f = stack.pop()
        if type(f) in _PLAIN or id(f) in seen:
            continue
        seen.add(id(f))
        if isinstance(f, types.MethodType):
            stack += [f.__func__, f.__self__]
        elif isinstance(f, partial):
            stack += [f.func, *f.args, *f.keywords.values()]
        elif isinstance(f, Wrapper):
            stack.append(f.function)
        elif (members := _members(f)) is not None or isinstance(f, np.ndarray):
            yield f
            stack += [x for x in members or _parts(f).values() if type(x) not in _PLAIN]  # masked arrays have a mask
        elif parts := _parts(f):
            yield f
            stack += parts.values()
        elif isinstance(f, (dict, list, tuple)):
            yield f
            stack += list(cast("dict[Any, Any]", f).values()) if isinstance(f, dict) else list(cast("list[Any]", f))
        elif _is_object(f):
            yield f
            stack += _Attributes(f).values()
            kinds.update(dict.fromkeys(cast(Any, type(f)).__mro__[:-1]))
        elif isinstance(f, type) and f.__module__.split(".")[0] not in _OTHERS:
            yield f
            stack += [*vars(f).values(), *f.__mro__[1:-1]]
        elif isinstance(f, types.FunctionType) and (f.__module__ or "").split(".")[0] not in _FOREIGN:
            yield f
            functions.append(f)
            stack += [
                *(f.__defaults__ or ()),
                *(f.__kwdefaults__ or {}).values(),
                *[value for _, _, value in _names(f)],
                *vars(f).values(),
            ]
            stack.append(getattr(f, "__wrapped__", None))
        elif isinstance(f, (property, cached_property)):
            stack.append(f.fget if isinstance(f, property) else cast(Any, f).func)
        elif not isinstance(f, type):  # what rz.grad(f), rz.compile(f) and the like give
            stack += [getattr(cast(Any, f), name, None) for name in ("__wrapped__", *_RULES.get(type(f).__name__, ()))]
    yield Endless()


def _methods(kinds: Iterable[type], functions: Iterable[types.FunctionType], seen: set[int]) -> list[Any]:
    """Methods and properties of classes that functions mention, and those that operators call; a user's, and not seen
    yet."""
    mentioned = spoken(functions)
    found: list[Any] = []
    for kind in kinds:
        if kind.__module__.split(".")[0] not in _OTHERS:
            names = [k for k in vars(kind) if k in mentioned or (k.startswith("__") and k not in _APART)]
            found.extend([v for v in map(vars(kind).__getitem__, names) if hasattr(v, "__get__") and id(v) not in seen])
    return found


_APART = {
    "__init__",
    "__new__",
    "__post_init__",
    "__repr__",
    "__str__",
    "__eq__",
    "__hash__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__del__",
} | {
    *(
        "__init_subclass__",
        "__class_getitem__",
        "__copy__",
        "__deepcopy__",
        "__reduce__",
        "__getstate__",
        "__setstate__",
        "__replace__",
    )
}
"""Special methods that computing with an object does not call."""


def _names(f: types.FunctionType) -> list[tuple[Any, str, Any]]:
    """The closed-over names, globals and names of users' modules a function mentions: where they are looked up, and
    what they mean now."""
    found: list[tuple[Any, str, Any]] = []
    if f.__closure__:
        cells = _Cells(dict(zip(f.__code__.co_freevars, f.__closure__, strict=True)))
        found.extend([(cells, k, cells.get(k, MISSING)) for k in f.__code__.co_freevars])
    names = mentioned(f.__code__)
    found.extend([(f.__globals__, k, f.__globals__[k]) for k in names if k in f.__globals__])
    found.extend([(sys.modules, k, sys.modules[k]) for k in names if k in sys.modules])  # imported inside it
    seen: set[int] = {id(f.__globals__)}
    for _, _, value in found:  # grows: a module may be an attribute of a module
        if (
            isinstance(value, types.ModuleType)
            and id(vars(value)) not in seen
            and value.__name__.split(".")[0] not in _OTHERS
        ):
            inside = vars(value)
            seen.add(id(inside))
            found.extend([(inside, k, inside[k]) for k in names if k in inside])
    return [row for row in found if not isinstance(row[2], types.ModuleType)]


def spoken(things: Iterable[Any]) -> set[str]:
    """All names that the functions among some things mention."""
    return {name for f in things if isinstance(f, types.FunctionType) for name in mentioned(f.__code__)}


def held(things: Iterable[Any], known: set[int], holders: Any) -> list[tuple[Any, Any, Any]]:
    """(where, name, value) of functions, given by their identities, and of possible holders of such, in what a function
    reached: closures, defaults, lists, dictionaries, attributes."""
    found: list[tuple[Any, Any, Any]] = []
    scanned: set[int] = set()

    def look(where: Any, items: Iterable[tuple[Any, Any]]) -> None:
        found.extend([(where, k, v) for k, v in items if id(v) in known or isinstance(v, holders)])

    for f in things:
        if isinstance(f, types.FunctionType):
            for cell in f.__closure__ or ():
                look(cell, [("cell_contents", _Cells({"": cell}).get("", None))])
            if f.__defaults__:
                found.append((f, "__defaults__", f.__defaults__))
            if f.__kwdefaults__:
                look(f.__kwdefaults__, f.__kwdefaults__.items())
        elif isinstance(f, dict):
            look(f, cast("dict[Any, Any]", f).items())
        elif isinstance(f, list):
            look(f, enumerate(cast("list[Any]", f)))
        elif not isinstance(f, (np.ndarray, tuple, Endless)) and _members(f) is None:
            if isinstance(getattr(f, "__dict__", None), dict):
                look(vars(f), vars(f).items())
            for kind in cast(Any, f if isinstance(f, type) else type(f)).__mro__[:-1]:
                if id(kind) not in scanned and kind.__module__.split(".")[0] not in _LIBRARIES:
                    scanned.add(id(kind))
                    look(kind, vars(kind).items())
                    look(
                        f,
                        [
                            (k, getattr(f, k, None))
                            for k, v in vars(kind).items()
                            if isinstance(v, types.MemberDescriptorType)
                        ],
                    )
    return found


class Standing:
    """What stands for functions, and what holds them, while one is traced (answering.py): by its identity, (the
    function, the stand-in)."""

    now: ClassVar[dict[int, tuple[Any, Any]]] = {}
    numpy: ClassVar[Any] = np


def meant(x: Any) -> Any:
    """What something stands for, or itself."""
    return Standing.now.get(id(x), (x,))[0]


def watch(things: Iterable[Any]) -> list[Any]:
    """(where, name, value) of everything in what a function reached whose change makes a trace out of date, but for
    large arrays (outside.py)."""
    found: list[Any] = []
    small: list[Any] = []
    for f in things:
        if isinstance(f, types.FunctionType):
            found.extend(_names(f))
            if vars(f):
                found.extend([(vars(f), k, v) for k, v in vars(f).items()])
                found.append(_row(_Size(vars(f))))
        elif isinstance(f, Endless):
            found.append(_row(f))
        elif (
            isinstance(f, np.ndarray)
            and cast(Any, f).dtype.hasobject
            and cast(Any, f).size > tuning.WATCHED_ARRAY_NUMBERS
        ):
            found.append(_row(Contents(f)))  # it holds its members, so that no other object takes their place in memory
        elif _members(f) is not None:
            found.append(_row(_Members(f)))
        elif isinstance(f, np.ndarray):
            if 0 < f.size <= tuning.WATCHED_ARRAY_NUMBERS and not frozen(f):
                small.append(Contents(f))
        elif parts := _parts(f):
            found.extend([(vars(f) if k in vars(f) else _Attributes(f), k, v) for k, v in parts.items()])
        elif isinstance(f, dict):
            found.extend([(f, k, v) for k, v in cast("dict[Any, Any]", f).items()])
            found.append(_row(_Size(f)))
        elif isinstance(f, list):
            found.append(_row(_Members(f)))
        elif not isinstance(f, tuple):
            attributes = _Attributes(f)
            found.extend([(attributes, k, getattr(f, k, MISSING)) for k in attributes.names])
            if isinstance(getattr(f, "__dict__", None), (dict, types.MappingProxyType)):
                found.append(_row(_Size(vars(f))))
    found.extend(map(_row, small))
    return [(where, name, meant(value)) for where, name, value in found] if Standing.now else found


def _row(x: Any) -> tuple[Any, None, Any]:
    """A mapping of one."""
    return x, None, x


def place(where: Any, name: Any) -> Any:
    """What a watched value is a value of: a name in a namespace, an attribute of an object, a list, an array."""
    match where:
        case _Cells():
            return id(where.cells[name])
        case _Attributes():
            return id(where.owner), name
        case Contents():
            return id(where.array)
        case _Members():
            return id(where.owner)
        case _Size():
            return id(where.entries), _Size
        case Endless():
            return object()
        case _:
            return id(where), name


class Effects:
    """What a function can reach, before it runs: whether it was used up since, or has grown."""

    def __init__(self, rows: list[Any]) -> None:
        self.consumed = False
        self.sizes: list[tuple[Any, int]] = []
        for where, _, value in rows:
            kind = type(value)
            if kind in _HOLDERS:
                self.sizes.append((value, len(value)))
            elif any(
                [
                    hasattr(k, "__next__")
                    for k in (set(map(type, where.members)) if kind is _Members else (cast(Any, kind),))
                ]
            ):
                self.consumed = True
            if type(where) is _Attributes and hasattr(where.owner, "__dict__"):
                self.sizes.append((vars(where.owner), len(vars(where.owner))))

    @property
    def found(self) -> bool:
        """Whether running it once more would be noticed."""
        return self.consumed or any([len(held) != n for held, n in self.sizes])


_HOLDERS = {list, dict, set, deque}


def changed(rows: list[Any]) -> set[Any]:
    """The places of watched values that are other ones by now."""
    return {place(where, name) for where, name, value in rows if meant(where.get(name, MISSING)) is not value}


class Dice:
    """Whether random numbers were drawn since: by NumPy's or Python's global generator, or one a function can reach."""

    def __init__(self, things: Iterable[Any]) -> None:
        self.generators: list[Any] = []
        chance = False
        kinds = _generators()
        for f in things:
            if isinstance(f, types.FunctionType):
                chance = chance or any(
                    ["rand" in name or "normal" in name for code in codes_of(f.__code__) for name in code.co_names]
                )
            self.generators.extend([v for v in _values(f) if isinstance(v, kinds)])
        if chance:
            import random

            self.generators += [np.random.mtrand._rand, random._inst]  # type: ignore[attr-defined]  # pyright: ignore
        self.before = self._states()

    def _states(self) -> list[Any]:
        # The global generator's memory is looked at in any case, which is quick; its state has more in it: half of the
        # normal numbers are in store. Who draws from it loads it, which is a change of state as well.
        plain: Any = None
        if "numpy.random" in sys.modules:
            kept: Any = np.random.mtrand._rand._bit_generator  # pyright: ignore
            plain = (
                ctypes.string_at(kept.ctypes.state_address, _MT19937)
                if type(kept) is np.random.MT19937
                else _state(kept.state)
            )
        return [plain, *[_state_of(g) for g in self.generators]]

    @property
    def rolled(self) -> bool:
        """Whether a generator moved on: then what was traced is one draw, and must not be kept."""
        return self._states() != self.before


_MT19937 = 4 * 625
"""Bytes of that generator's state: 624 numbers and a position."""


def _generators() -> tuple[Any, ...]:
    """The classes of generators; there are none of modules that nobody loaded, and they are slow to load."""
    found: list[Any] = [np.random.Generator, np.random.RandomState] if "numpy.random" in sys.modules else []
    if "random" in sys.modules:
        from random import Random

        found.append(Random)
    return tuple(found)


def _state_of(g: Any) -> Any:
    if hasattr(g, "getstate"):  # Python's
        return g.getstate()
    return _state(g.get_state(legacy=False) if isinstance(g, np.random.RandomState) else g.bit_generator.state)


def _state(x: Any) -> Any:
    """The state of a generator as something to compare: nested dictionaries of numbers and arrays."""
    if isinstance(x, dict):
        return [(k, _state(v)) for k, v in cast("dict[Any, Any]", x).items()]
    return x.tobytes() if isinstance(x, np.ndarray) else x


def _values(f: Any) -> list[Any]:
    """What a function mentions, an object or a container holds."""
    if isinstance(f, types.FunctionType):
        return [v for _, _, v in _names(f)]
    if isinstance(f, type):
        return list(vars(f).values())
    if isinstance(f, (np.ndarray, Endless)):
        return []
    if (members := _members(f)) is not None:
        return members
    return (
        _Attributes(f).values()
        if not isinstance(f, (dict, list, tuple))
        else list(cast(Any, f.values() if isinstance(f, dict) else f))
    )


_PLAIN = {float, int, bool, complex, str, bytes, type(None), np.float64}
"""Types of values that hold nothing."""
_RULES = {"CustomDerivative": ("rule", "turned")}
_LIBRARIES = {"numpy", "scipy", "riesz", "builtins", "jax", "torch"}
_FOREIGN = _LIBRARIES | {
    "pandas",
    "polars",
    "pyarrow",
    "xarray",
    "numba",
    "llvmlite",
    "matplotlib",
    "duckdb",
    "sympy",
    "mpmath",
    "jaxlib",
}
"""Libraries whose code is not looked into; their objects may hold arrays of the user's."""
_OTHERS = _FOREIGN | sys.stdlib_module_names  # modules that are not a user's


def users(module: str) -> bool:
    """Whether a module of this name is a user's."""
    return module.split(".")[0] not in _OTHERS


@lru_cache(4096)
def mentioned(code: types.CodeType) -> tuple[str, ...]:
    """The globals and attributes that code, and code written inside it, names."""
    return tuple(dict.fromkeys([name for c in codes_of(code) for name in c.co_names]))


def codes_of(code: types.CodeType) -> list[types.CodeType]:
    """The code of a function and of those written inside it."""
    found = [code]
    for c in found:
        found.extend([k for k in c.co_consts if isinstance(k, types.CodeType)])
    return found
