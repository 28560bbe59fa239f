"""While a function is traced, a few functions that convert their arguments to plain arrays answer for traced ones.

np.array([x[0], x[1]]), np.asarray(x) and functions of SciPy written in Python do not ask their arguments first. For the time of a trace the names
the traced code sees (in the modules, and in the function's own globals) stand for versions that do; given anything else they are the originals.
So do functions held as values: in closures, defaults, partial applications, attributes, lists, dictionaries, tuples, and among the arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial, wraps
from operator import is_
from threading import RLock
from typing import Any, ClassVar, cast

import numpy as np

from .complexes import COMPLEX
from .elementwise import full
from .functions import PARTS
from .mistakes import OTHERS, outside
from .traced import FUNCTIONS, TRACED, Traced, call_function, convert, holds_traced, is_complex, note, refuse, tidy, typed, witness
from .watching import Standing, held, meant, reached, spoken

_lock = RLock()
_depth = 0
_changed: list[tuple[Any, Any, Any, Any]] = []
_standing: dict[int, tuple[Any, Any]] = {}
_made: list[int] = []  # the identities of stand-ins for partial applications and tuples
_versions: dict[Any, Any] = {}


def _asking(original: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def version(*args: Any, **named: Any) -> Any:
        if any([holds_traced(a) for a in args]) or any([holds_traced(a) for a in named.values()]):
            note((*args, *named.values()), True)
            home = sys._getframe(1).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
            if home.split(".")[0] in OTHERS or home.startswith("numpy.ma"):
                raise refuse(outside(home.split(".")[0] if home.split(".")[0] in OTHERS else "numpy.ma", "it needs numbers, which are not known yet"))
            return own(*args, **named)
        return original(*args, **named)

    return version


def _rule(original: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for real or for complex arguments."""

    def own(*given: Any, **named: Any) -> Any:
        args = tuple([_opened(a) for a in given])
        return COMPLEX[original](*args, **named) if is_complex(args) else call_function(original, args, named)

    return own


def _array(a: Any, dtype: Any = None, *args: Any, ndmin: int = 0, **named: Any) -> Any:
    x = tidy(a)
    x = x if hasattr(x, "ndim") else np.asarray(x)
    x = x if dtype is None else convert(x, np.dtype(dtype))
    return np.reshape(x, (*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else typed(x, None)


def _copied(a: Any, dtype: Any = None, *, copy: Any = True, **named: Any) -> Any:
    """np.array: a copy, unless copy=False or None and there is nothing to convert."""
    x = _array(a, dtype, **named)
    return x.copy() if copy and hasattr(x, "copy") else x


def _asanyarray(original: Callable[..., Any]) -> Callable[..., Any]:
    """np.asanyarray; a sparse matrix that asks whether it can multiply a traced array is told no, and the array's own @ gets its turn."""
    plain = _asking(original, _array)

    @wraps(original)
    def version(a: Any, *args: Any, **named: Any) -> Any:
        if type(a) is Traced and sys._getframe(1).f_globals.get("__name__", "").startswith("scipy.sparse"):  # pyright: ignore[reportPrivateUsage]
            closed = np.empty((), object)
            closed[()] = a
            return closed
        return plain(a, *args, **named)

    return version


class _Joining:
    """np.r_ and np.c_ on traced arrays, by NumPy's rules; on anything else the originals."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getitem__(self, key: Any) -> Any:
        items = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
        if not any([holds_traced([k.start, k.stop, k.step] if isinstance(k, slice) else k) for k in items]):
            return self.original[key]
        axis, ndmin, turned = self.original.axis, self.original.ndmin, self.original.trans1d
        if isinstance(items[0], str):
            axis, ndmin, turned = _directive(items.pop(0), axis, ndmin, turned)
        parts = [_joined(k, ndmin, turned) for k in items]
        dtype = np.result_type(*[witness(p) for p in parts])
        return np.concatenate([_array(p, None if is_complex(p) else dtype, ndmin=ndmin) for p in parts], axis=axis)


def _directive(text: str, axis: int, ndmin: int, turned: int) -> tuple[int, int, int]:
    """The axis to join along, the least number of axes, and where the axes of an array with fewer go, from "-1" or "0,2" or "0,2,-1"."""
    if text in ("r", "c"):
        raise refuse(f"np.r_[{text!r}, …] gives a matrix, which riesz does not know for traced arrays; write np.concatenate or np.stack")
    numbers = [int(n) for n in text.split(",")]
    return (*numbers, *(axis, ndmin, turned)[len(numbers) :])[:3]  # pyright: ignore[reportReturnType]


def _joined(item: Any, ndmin: int, turned: int) -> Any:
    """One entry of np.r_: a range from a slice, a number, or an array with at least so many axes."""
    if isinstance(item, str):
        raise ValueError("special directives must be the first entry.")
    if isinstance(item, slice):
        start, stop, step = item.start or 0, item.stop, 1 if item.step is None else item.step
        x = np.linspace(start, stop, int(abs(step))) if isinstance(step, (complex, np.complexfloating)) else np.arange(start, stop, step)
        return x if ndmin < 2 else np.swapaxes(_array(x, ndmin=ndmin), -1, turned) if turned != -1 else _array(x, ndmin=ndmin)
    if type(item) in np.ScalarType or (type(item) in TRACED and not item.shape and item.weak is not None):
        return item
    x = tidy(item)
    y = _array(x, ndmin=ndmin)
    if turned == -1 or x.ndim >= ndmin:
        return y
    more = ndmin - x.ndim
    at = turned if turned >= 0 else turned + more + 1
    axes = list(range(ndmin))
    return np.transpose(y, [*axes[:at], *axes[more:], *axes[at:more]])


def _opened(x: Any) -> Any:
    """A list that holds traced numbers as an array; anything else as it is."""
    return tidy(x) if (type(x) is list or type(x) is tuple) and holds_traced(x) else x


class _Listing:
    """A function of arrays that may be given lists of traced numbers, np.mean([x, y]); equal to the original, so that tables by function find it."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __call__(self, *args: Any, **named: Any) -> Any:
        if args and type(args[0]) is Traced:  # then its rule is asked
            return self.original(*args, **named)
        opened = self.opened
        return self.original(*[opened(a) for a in args], **{k: opened(a) for k, a in named.items()})

    opened = staticmethod(_opened)

    def __eq__(self, other: Any) -> bool:
        return other is self or other is self.original

    def __hash__(self) -> int:
        return hash(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __reduce__(self) -> Any:
        return self.original.__reduce__()


class _ListingParts(_Listing):
    """A function of several arrays in a list, np.concatenate([x, [y, z]]): each of them may be a list."""

    @staticmethod
    def opened(x: Any) -> Any:
        """A list of arrays."""
        return type(x)([_opened(part) for part in cast("list[Any]", x)]) if type(x) is list or type(x) is tuple else x


class _Whole(type):
    """A type of whole numbers that may be called on traced arrays, np.int64(x); otherwise it is the type it is made from."""

    original: Any

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if len(args) == 1 and holds_traced(args[0]):
            return convert(tidy(args[0]), np.dtype(cls.original))
        return cls.original(*args, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


_PARTS = (
    *(np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.linalg.multi_dot),
    *(np.select, np.piecewise, np.lexsort, np.choose),
)
_AS_GIVEN = {np.block, np.broadcast_shapes, np.result_type, np.can_cast, np.einsum_path, np.ix_, np.apply_along_axis, np.apply_over_axes}
"""Functions whose lists are no arrays."""


_OFTEN = {np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.median, np.any, np.all, np.dot, np.linalg.norm}
"""Given lists more often than others: they answer wherever they are called, the others where code that can be seen mentions them."""


def _table() -> dict[Any, Any]:
    """original → version, for what is loaded by now."""
    if not _versions:
        _versions.update({f: _Listing(f) for f in FUNCTIONS if type(f) is type(np.mean) and f not in _AS_GIVEN})
        _versions.update({f: _ListingParts(f) for f in _PARTS})
        _versions[np.array] = _asking(np.array, _copied)
        for original in (np.asarray, np.asfortranarray):
            _versions[original] = _asking(original, _array)
        _versions[np.ascontiguousarray] = _asking(np.ascontiguousarray, partial(_array, ndmin=1))
        _versions[np.asanyarray] = _asanyarray(np.asanyarray)
        for original in (np.take, np.full_like):  # their rules are asked for the first argument only
            _versions[original] = _asking(original, _rule(original))
        _versions[np.full] = _asking(np.full, full)
        _versions.update({original: _Joining(original) for original in (np.r_, np.c_)})
        whole = {np.dtype(code).type for code in np.typecodes["AllInteger"]}
        _versions.update({kind: _Whole(kind.__name__, (kind,), {"original": kind}) for kind in whole})
    if "scipy" in sys.modules:
        from .scipy_names import counterparts

        for original, own in counterparts().items():
            if original not in _versions:
                _versions[original] = _asking(original, own)
    return _versions


class _Modules:
    """Where the modules have the functions of the table; found again when the table has grown."""

    count = 0
    rows: ClassVar[list[tuple[dict[str, Any], str, Any, Any]]] = []  # (names, name, original, version) that are exchanged in any case
    more: ClassVar[dict[str, list[tuple[dict[str, Any], str, Any, Any]]]] = {}  # by name, those that are where traced code mentions it
    known: ClassVar[frozenset[int]] = frozenset()

    @classmethod
    def find(cls, table: dict[Any, Any]) -> None:
        """The names of all functions of the table, in all modules."""
        loaded = [np, np.linalg, np.fft, *[sys.modules[part] for part in PARTS if part in sys.modules]]
        if cls.count == len(table) + len(loaded):
            return
        cls.known, cls.count = frozenset([id(f) for f in table]), len(table) + len(loaded)
        _standing.update({id(version): (f, version) for f, version in table.items()})
        found = [(vars(module), k, meant(v)) for module in loaded for k, v in vars(module).items()]
        cls.rows, cls.more = [], {}
        for names, k, f in [row for row in found if id(row[2]) in cls.known]:
            seldom = isinstance(table[f], (_Listing, _Whole)) and f not in _OFTEN
            (cls.more.setdefault(k, []) if seldom else cls.rows).append((names, k, f, table[f]))


_HOLDERS = (partial, tuple, staticmethod)


def _answered(x: Any, table: dict[Any, Any], deep: int = 8) -> Any:
    """A function, or the version of it that answers; a partial application or a tuple of such, too."""
    if id(x) in _Modules.known:
        return table[x]
    if not deep or not isinstance(x, _HOLDERS):
        return x
    kind, parts, make = _opener(x)
    found = [_answered(part, table, deep - 1) for part in parts]
    if all(map(is_, found, parts)) or type(x) is not kind:
        return x
    version = make(found)
    _standing[id(version)] = x, version
    _made.append(id(version))
    return version


def _opener(x: Any) -> tuple[Any, list[Any], Callable[[list[Any]], Any]]:
    """The kind of a holder, what it holds, and how one is made of other things."""
    if isinstance(x, staticmethod):
        return staticmethod, [cast(Any, x).__func__], lambda found: staticmethod(found[0])
    if isinstance(x, partial):
        p = cast("partial[Any]", x)
        count = 1 + len(p.args)
        return (
            partial,
            [p.func, *p.args, *p.keywords.values()],
            lambda found: partial(*found[:count], **dict(zip(p.keywords, found[count:], strict=True))),
        )
    kind = cast(Any, type(x))
    return (kind if hasattr(kind, "_make") else tuple), list(x), getattr(kind, "_make", tuple)


def _put(where: Any, name: Any, value: Any, instead: Any) -> None:
    """Into a namespace, a list, a cell, the defaults of a function, the attributes of an object or a class, `instead` of what is there."""
    if isinstance(where, list):  # which may have grown or shrunk
        where[:] = [value if x is instead else x for x in cast("list[Any]", where)]
    elif isinstance(where, dict):
        if where.get(name) is instead:
            where[name] = value
    elif isinstance(where, type):
        if vars(where).get(name) is instead:
            type.__setattr__(where, name, value)
    elif getattr(where, name, None) is instead:
        object.__setattr__(where, name, value)


@contextmanager
def answering(function: Any, things: Iterable[Any] | None = None) -> Generator[Callable[[Any], Any]]:
    """For the time of a trace; gives x ↦ x, or the version of it that answers. `things` is what the function reaches, where that is known."""
    global _depth
    with _lock:
        _depth += 1
    try:
        with _lock:
            table, Standing.now = _table(), _standing
            _Modules.find(table)
            seen = list(reached(function)) if things is None else things
            for names, name, value, version in (*_Modules.rows, *[row for k in _Modules.more.keys() & spoken(seen) for row in _Modules.more[k]]):
                if names.get(name) is value:
                    _changed.append((names, name, value, version))
                    names[name] = version
            for where, name, value in held(seen, _Modules.known, _HOLDERS):
                version = _answered(value, table)
                if version is not value:
                    _changed.append((where, name, value, version))
                    _put(where, name, version, value)
        yield lambda x: _answered(x, table)
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                while _changed:
                    where, name, value, version = _changed.pop()
                    _put(where, name, value, version)
                Standing.now = {}
                while _made:
                    del _standing[_made.pop()]
