"""What a trace of a Python function depends on besides its arguments: names, globals, attributes, by identity; the
functions it calls; the numbers in arrays it can reach."""

from __future__ import annotations

import builtins
import ctypes
import dis
import gc
import os
import pickle
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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

# -- whose code something is ------------------------------------------------------------------------------

_PLAIN = {float, int, bool, complex, str, bytes, type(None), np.float64}
"""Types of values that hold nothing."""
_LIBRARIES = {"numpy", "scipy", "riesz", "builtins", "jax", "torch"}
_NAMES = "pandas polars pyarrow xarray numba llvmlite matplotlib duckdb sympy mpmath jaxlib"
_FOREIGN = _LIBRARIES | set(_NAMES.split())
"""Libraries whose code is not looked into; their objects may hold arrays of the user's."""
_OTHERS = _FOREIGN | sys.stdlib_module_names  # modules that are not a user's
_WORDS = """init new post_init repr str eq hash dict weakref doc del init_subclass class_getitem copy deepcopy reduce
getstate setstate replace"""
_APART = {f"__{word}__" for word in _WORDS.split()}
"""Special methods that computing with an object does not call."""


def users(module: str) -> bool:
    """Whether a module of this name is a user's."""
    return module.split(".")[0] not in _OTHERS


def _library(x: Any) -> str:
    """The first part of the name of the module that a class or a function comes from."""
    return (x.__module__ or "").split(".")[0]


def _is_object(x: Any) -> bool:
    """An object of a user's class, whose attributes a function may read."""
    kind = cast(Any, type(x))
    plain = isinstance(x, (*_CODE, types.BuiltinFunctionType, np.ndarray))
    own = getattr(x, "__dict__", None)  # some objects answer for any name
    attributes = isinstance(own, dict) or (own is None and hasattr(kind, "__slots__"))
    return not plain and attributes and _library(kind) not in _LIBRARIES


# -- places that values are looked up in: mappings, by `get` ----------------------------------------------


class _Attributes:
    """The attributes of an object that are values, its own and those of its class."""

    __slots__ = ("names", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        kinds = (owner if isinstance(owner, type) else type(owner)).__mro__[:-1]
        of_kinds = {k: v for kind in reversed(kinds) for k, v in vars(kind).items()}  # the first class has its way
        names = {k for k, v in of_kinds.items() if k[:2] != "__" and not hasattr(v, "__get__")}
        if not isinstance(owner, type):
            own = getattr(owner, "__dict__", None)
            names.update(own if isinstance(own, dict) else ())
            names.update([k for kind in kinds for k, v in vars(kind).items() if type(v) is types.MemberDescriptorType])
        self.names: list[str] = sorted(names)

    def get(self, name: str, default: Any) -> Any:
        """What an attribute is now."""
        return getattr(self.owner, name, default)

    def values(self) -> list[Any]:
        """What all of them are now."""
        return [getattr(self.owner, name, None) for name in self.names]


class Cell:
    """A closed-over name."""

    __slots__ = ("cell",)

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def get(self, name: Any = None, default: Any = None) -> Any:
        """What it means now; it may be empty."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return default


class _Same:
    """What a look at a holder showed; as a mapping of one, itself while it shows the same objects, bytes or number."""

    __slots__ = ("look", "owner", "seen")

    def __init__(self, owner: Any, look: Callable[[Any], Any]) -> None:
        self.owner, self.look, self.seen = owner, look, look(owner)

    def get(self, name: Any = None, default: Any = None) -> Any:
        """This itself, while that is the same."""
        before, now = self.seen, self.look(self.owner)
        one_by_one = type(before) is list
        same = len(now) == len(before) and all(map(is_, now, before)) if one_by_one else now == before
        return self if same else default


KEPT = "__riesz__"
"""The attribute of a function under which riesz keeps what it knows of it."""


def _own_attributes(attributes: dict[str, Any]) -> int:
    return len(attributes) - (KEPT in attributes)


class Endless:
    """Stands for what is not looked at any more: never the same."""

    def get(self, name: Any = None, default: Any = None) -> Any:
        """Another object each time."""
        return object()


def place(where: Any, name: Any) -> Any:
    """What a watched value is a value of: a name in a namespace, an attribute of an object, a list, an array."""
    match where:
        case Cell():
            return id(where.cell)
        case _Attributes():
            return id(where.owner), name
        case Contents():
            return id(where.array)
        case _Same():
            return id(where.owner), where.look
        case Endless():
            return object()
        case _:
            return id(where), name


# -- what a function can reach ----------------------------------------------------------------------------


class Wrapper:
    """An object of riesz's own around a function of the user's."""

    function: Any


_CONTAINERS = (deque, set, frozenset, types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_BUFFERS = (array, bytearray, ctypes.Array, ctypes.Structure, ctypes.Union, ctypes._SimpleCData)  # pyright: ignore
_CODE = (type, types.ModuleType, types.FunctionType)
_RULES = {"CustomDerivative": ("rule", "turned")}


def _members(f: Any) -> list[Any] | None:
    """What a holder other than lists, tuples, dictionaries and users' objects holds; None if it is none."""
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


def _seen(f: Any) -> Any:
    """What a look at a holder shows: its members, or its bytes."""
    if isinstance(f, list):
        return list(map(meant, cast("list[Any]", f))) if Standing.now else cast("list[Any]", f).copy()
    found = _members(f) or []
    return found[0] if isinstance(f, _BUFFERS) else found


def _parts(f: Any) -> dict[str, Any]:
    """The attributes of an object of NumPy or SciPy that hold numbers: sparse matrices, polynomials, splines."""
    kind = cast(Any, type(f))
    if not kind.__module__.startswith(("numpy", "scipy")) or isinstance(f, _CODE) or not hasattr(f, "__dict__"):
        return {}
    slots = [k for base in kind.__mro__ for k in vars(base).get("__slots__", ())]
    found = vars(f) | {k: getattr(f, k, None) for k in slots}
    return {k: v for k, v in found.items() if isinstance(v, (np.ndarray, tuple, dict, list))}


def _around(f: Any) -> list[Any] | None:
    """What a wrapper, of Python's or of our own, is around."""
    match f:
        case types.MethodType():
            return [f.__func__, f.__self__]
        case partial():
            return [f.func, *f.args, *f.keywords.values()]
        case Wrapper():
            return [f.function]
        case property():
            return [f.fget]
        case cached_property():
            return [cast(Any, f).func]
        case _:
            return None


def _inside(f: Any) -> list[Any] | None:
    """What a container or an object of the user's holds, a function or a class mentions; None for anything else."""
    members, parts = _members(f), _parts(f)
    if members is not None or parts or isinstance(f, np.ndarray):
        return members or list(parts.values())  # masked arrays have a mask
    if isinstance(f, (dict, list, tuple)):
        return list(cast("dict[Any, Any]", f).values()) if isinstance(f, dict) else list(cast("list[Any]", f))
    if _is_object(f):
        return _Attributes(f).values()
    if isinstance(f, type) and _library(f) not in _OTHERS:
        return [*vars(f).values(), *f.__mro__[1:-1]]
    if isinstance(f, types.FunctionType) and _library(f) not in _FOREIGN:
        defaults = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        return [*defaults, *[value for _, _, value in _names(f)], *vars(f).values()]
    return None


def reached(*starts: Any) -> Iterator[Any]:
    """Functions, users' objects and arrays that a function may use: by closure, globals, attributes, defaults."""
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
        if (around := _around(f)) is not None:
            stack += around
        elif (inside := _inside(f)) is not None:
            yield f
            stack += inside
            if isinstance(f, types.FunctionType):
                functions.append(f)
            elif _is_object(f) and not isinstance(f, (dict, list, tuple)):
                kinds.update(dict.fromkeys(cast(Any, type(f)).__mro__[:-1]))
        elif not isinstance(f, type):  # what rz.grad(f), rz.compile(f) and the like give
            if isinstance(f, types.FunctionType) and _library(f) == "riesz":  # our own code around a user's function
                stack += [Cell(c).get() for c in f.__closure__ or ()]
            stack += [getattr(cast(Any, f), name, None) for name in ("__wrapped__", *_RULES.get(type(f).__name__, ()))]
    yield Endless()


def _methods(kinds: Iterable[type], functions: Iterable[types.FunctionType], seen: set[int]) -> list[Any]:
    """Methods and properties of users' classes that functions mention, or operators call; not seen yet."""
    names, found = spoken(functions), list[Any]()
    for kind in [k for k in kinds if _library(k) not in _OTHERS]:
        mine = [v for k, v in vars(kind).items() if k in names or (k.startswith("__") and k not in _APART)]
        found.extend([v for v in mine if hasattr(v, "__get__") and id(v) not in seen])
    return found


def _names(f: types.FunctionType) -> list[tuple[Any, str, Any]]:
    """Closed-over names, globals and names of users' modules a function mentions: where, and what they mean now."""
    cells = [(Cell(c), k) for k, c in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)]
    found: list[tuple[Any, str, Any]] = [(cell, k, cell.get(k, MISSING)) for cell, k in cells]
    names, seen = mentioned(f.__code__), {id(f.__globals__)}
    found.extend([(space, k, space[k]) for space in (f.__globals__, sys.modules) for k in names if k in space])
    for _, _, value in found:  # grows: a module may be an attribute of a module
        inside = vars(value) if isinstance(value, types.ModuleType) and users(value.__name__) else {}
        if inside and id(inside) not in seen:
            seen.add(id(inside))
            found.extend([(inside, k, inside[k]) for k in names if k in inside])
    return [row for row in found if not isinstance(row[2], types.ModuleType)]


def spoken(things: Iterable[Any]) -> set[str]:
    """All names that the functions among some things mention."""
    return {name for f in things if isinstance(f, types.FunctionType) for name in mentioned(f.__code__)}


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


def held(things: Iterable[Any], known: set[int], holders: Any) -> list[tuple[Any, Any, Any]]:
    """(where, name, value) of functions, given by identity, and of possible holders of such, in what was reached."""
    found: list[tuple[Any, Any, Any]] = []
    scanned: set[int] = set()

    def look(where: Any, items: Iterable[tuple[Any, Any]]) -> None:
        found.extend([(where, k, v) for k, v in items if id(v) in known or isinstance(v, holders)])

    for f in things:
        if isinstance(f, types.FunctionType):
            for cell in f.__closure__ or ():
                look(cell, [("cell_contents", Cell(cell).get())])
            if f.__defaults__:
                found.append((f, "__defaults__", f.__defaults__))
            look(f.__kwdefaults__, (f.__kwdefaults__ or {}).items())
        elif isinstance(f, dict):
            look(f, cast("dict[Any, Any]", f).items())
        elif isinstance(f, list):
            look(f, enumerate(cast("list[Any]", f)))
        elif not isinstance(f, (np.ndarray, tuple, Endless)) and _members(f) is None:
            if isinstance(getattr(f, "__dict__", None), dict):
                look(vars(f), vars(f).items())
            for kind in cast(Any, f if isinstance(f, type) else type(f)).__mro__[:-1]:
                if id(kind) not in scanned and _library(kind) not in _LIBRARIES:
                    scanned.add(id(kind))
                    look(kind, vars(kind).items())
                    slots = [k for k, v in vars(kind).items() if isinstance(v, types.MemberDescriptorType)]
                    look(f, [(k, getattr(f, k, None)) for k in slots])
    return found


# -- whether it changed -----------------------------------------------------------------------------------


class Standing:
    """What stands for functions, and their holders, in a trace (answering.py): identity → (function, stand-in)."""

    now: ClassVar[dict[int, tuple[Any, Any]]] = {}
    numpy: ClassVar[Any] = np


def meant(x: Any) -> Any:
    """What something stands for, or itself."""
    return Standing.now.get(id(x), (x,))[0]


def watch(things: Iterable[Any]) -> list[Any]:
    """(where, name, value) of all in what was reached whose change makes a trace out of date, but large arrays."""
    found: list[Any] = []
    single: list[Any] = []  # mappings of one
    small: list[Any] = []
    for f in things:
        if isinstance(f, types.FunctionType):
            found.extend(_names(f))
            if not _ENVIRONMENT.isdisjoint(mentioned(f.__code__)):
                single.append(_Same(os.environ, _variables))
            if own := [(vars(f), k, v) for k, v in vars(f).items() if k != KEPT]:
                found.extend(own)
                single.append(_Same(vars(f), _own_attributes))
        elif isinstance(f, Endless):
            single.append(f)
        elif isinstance(f, np.ndarray):
            x, few = cast(Any, f), cast(Any, f).size <= tuning.WATCHED_ARRAY_NUMBERS
            if x.dtype.hasobject:  # many: it holds its members, so that no other object takes their place in memory
                single.append(_Same(x, _seen) if few else Contents(x))
            elif few and x.size and not frozen(x):
                small.append(Contents(x))
        elif isinstance(f, list) or _members(f) is not None:
            single.append(_Same(f, _seen))
        elif parts := _parts(f):
            found.extend([(vars(f) if k in vars(f) else _Attributes(f), k, v) for k, v in parts.items()])
        elif isinstance(f, dict):
            found.extend([(f, k, v) for k, v in cast("dict[Any, Any]", f).items()])
            single.append(_Same(f, len))
        elif not isinstance(f, tuple):
            attributes = _Attributes(f)
            found.extend([(attributes, k, getattr(f, k, MISSING)) for k in attributes.names])
            if isinstance(getattr(f, "__dict__", None), (dict, types.MappingProxyType)):
                single.append(_Same(vars(f), len))
    found.extend([(x, None, x) for x in (*single, *small)])
    return [(where, name, meant(value)) for where, name, value in found] if Standing.now else found


_ENVIRONMENT = {"environ", "getenv"}


def _variables(environ: Any) -> Any:
    """The variables of the process; what holds them is quicker to copy than what translates them."""
    return getattr(environ, "_data", environ).copy()


def changed(rows: list[Any]) -> set[Any]:
    """The places of watched values that are other ones by now."""
    return {place(where, name) for where, name, value in rows if meant(where.get(name, MISSING)) is not value}


class Effects:
    """What a function can reach, before it runs: whether it was used up since, or has grown."""

    def __init__(self, rows: list[Any]) -> None:
        self.consumed = False
        self.sizes: list[tuple[Any, int]] = []
        for where, _, value in rows:
            kinds: Any = (type(value),)
            if type(where) is _Same and type(where.seen) is list:
                kinds = set(map(type, where.seen))
            if type(value) in _GROWING:
                self.sizes.append((value, len(value)))
            elif any([hasattr(kind, "__next__") for kind in kinds]):
                self.consumed = True
            if type(where) is _Attributes and hasattr(where.owner, "__dict__"):
                self.sizes.append((vars(where.owner), len(vars(where.owner))))

    @property
    def found(self) -> bool:
        """Whether running it once more would be noticed."""
        return self.consumed or any([len(held) != n for held, n in self.sizes])


_GROWING = {list, dict, set, deque}


class Dice:
    """Whether random numbers were drawn since: by NumPy's or Python's global generator, or one a function can reach.
    What clocks and files say counts as drawn: it may be another thing at each call."""

    def __init__(self, things: Iterable[Any]) -> None:
        # There are no generators of modules that nobody loaded, and they are slow to load.
        modules = [sys.modules[name] for name in ("numpy.random", "random") if name in sys.modules]
        kinds = tuple([getattr(m, k) for m in modules for k in ("Generator", "RandomState", "Random") if hasattr(m, k)])
        self.generators: list[Any] = [v for f in things for v in _inside(f) or () if isinstance(v, kinds)]
        if any(["rand" in name or "normal" in name for name in spoken(things)]):
            import random

            self.generators += [np.random.mtrand._rand, random._inst]  # type: ignore[attr-defined]  # pyright: ignore
        self.before = self._states()
        self.asks = any([_asks(f) for f in things if isinstance(f, types.FunctionType)])

    def _states(self) -> list[Any]:
        # The global generator's memory is looked at in any case, which is quick; its state has more in it: half of the
        # normal numbers are in store. Who draws from it loads it, which is a change of state as well.
        plain: Any = None
        if "numpy.random" in sys.modules:
            kept: Any = np.random.mtrand._rand._bit_generator  # pyright: ignore
            known = type(kept) is np.random.MT19937
            plain = ctypes.string_at(kept.ctypes.state_address, _MT19937) if known else pickle.dumps(kept.state)
        return [plain, *[_state(g) for g in self.generators]]

    @property
    def rolled(self) -> bool:
        """Whether a generator moved on: then what was traced is one draw, and must not be kept."""
        return self.asks or self._states() != self.before


_MT19937 = 4 * 625
"""Bytes of that generator's state: 624 numbers and a position."""


_CLOCKS = "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns"
_TOLD = {
    "builtins": {"open", "input"},
    "time": set(_CLOCKS.split()),
    "datetime": {"now", "utcnow", "today"},
    "numpy": {"load", "loadtxt", "genfromtxt", "fromfile", "memmap"},
    "pandas": {"read_csv", "read_table", "read_parquet", "read_pickle", "read_json"},
}
_ASKING = set[str]().union(*_TOLD.values())
_ROOTS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "IMPORT_NAME"}


@lru_cache(4096)
def _chains(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """(root, name) for each name in code that may ask a clock or read a file: time.time, np.load."""
    if _ASKING.isdisjoint(code.co_names):
        return ()
    found: list[tuple[str, str]] = []
    root, modules = "", dict[str, str]()
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname in _ROOTS:
            root = name
        elif step.opname.startswith(("LOAD_FAST", "CALL")):
            root = modules.get(name, "")
        elif step.opname.startswith("STORE_") and root in sys.modules:
            modules[name] = root  # import time as t, inside the function
        if name in _ASKING and step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
            found.append((root, name))
    return tuple(found)


def _asks(f: types.FunctionType) -> bool:
    """Whether a function asks a clock or reads a file."""
    code, space = f.__code__, f.__globals__
    cells = {k: Cell(c).get() for k, c in zip(code.co_freevars, f.__closure__ or (), strict=True)}

    def told(held: Any, name: str) -> bool:
        home = held.__name__ if isinstance(held, types.ModuleType) else getattr(held, "__module__", None) or ""
        return name in _TOLD.get("builtins" if home in ("io", "_io") else home.split(".")[0], ())

    direct = [*cells.values(), *[space.get(k, getattr(builtins, k, None)) for k in mentioned(code)]]
    if any([type(v) is types.BuiltinFunctionType and told(v, v.__name__) for v in direct]):
        return True
    chains = [chain for c in codes_of(code) for chain in _chains(c)]
    return any([told(cells.get(root, space.get(root, sys.modules.get(root))), name) for root, name in chains])


def _state(g: Any) -> Any:
    """The state of a generator as something to compare."""
    if hasattr(g, "getstate"):  # Python's
        return g.getstate()
    return pickle.dumps(g.get_state(legacy=False) if isinstance(g, np.random.RandomState) else g.bit_generator.state)
