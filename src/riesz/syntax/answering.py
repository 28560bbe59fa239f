"""While a function is traced, a few functions that convert their arguments to plain arrays answer for traced ones.

np.array([x[0], x[1]]), np.asarray(x) and functions of SciPy written in Python do not ask their arguments first. For the time of a trace the names
the traced code sees (in the modules, and in the function's own globals) stand for versions that do; given anything else they are the originals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial, wraps
from threading import RLock
from typing import Any, cast

import numpy as np

from .complexes import COMPLEX
from .elementwise import full
from .functions import PARTS
from .mistakes import OTHERS, outside
from .traced import TRACED, Traced, call_function, convert, holds_traced, is_complex, note, refuse, tidy, typed, witness
from .watching import homes, reached

_lock = RLock()
_depth = 0
_changed: list[tuple[dict[str, Any], str, Any]] = []
_versions: dict[Any, Any] = {}
_joining: dict[str, Any] = {}


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

    def own(*args: Any, **named: Any) -> Any:
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


class _Listing:
    """A function of arrays that may be given lists of traced numbers, np.mean([x, y]); equal to the original, so that tables by function find it."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __call__(self, *args: Any, **named: Any) -> Any:
        for a in args:
            if (type(a) is list or type(a) is tuple) and holds_traced(a):
                return self.original(*[tidy(b) if isinstance(b, (list, tuple)) and holds_traced(b) else b for b in args], **named)
        return self.original(*args, **named)

    def __eq__(self, other: Any) -> bool:
        return other is self or other is self.original

    def __hash__(self) -> int:
        return hash(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __reduce__(self) -> Any:
        return self.original.__reduce__()


_LISTING = (
    *(np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.median, np.average, np.any, np.all, np.ndim, np.shape, np.size, np.dot),
    *(np.linalg.norm, np.linalg.det, np.linalg.inv, np.linalg.solve, np.linalg.slogdet),
)


def _table() -> dict[Any, Any]:
    """original → version, for what is loaded by now."""
    if not _versions:
        _versions.update({original: _Listing(original) for original in _LISTING})
        _versions[np.array] = _asking(np.array, _copied)
        for original in (np.asarray, np.asfortranarray):
            _versions[original] = _asking(original, _array)
        _versions[np.ascontiguousarray] = _asking(np.ascontiguousarray, partial(_array, ndmin=1))
        _versions[np.asanyarray] = _asanyarray(np.asanyarray)
        _joining.update({"r_": _Joining(np.r_), "c_": _Joining(np.c_)})
        for original in (np.take, np.full_like):  # their rules are asked for the first argument only
            _versions[original] = _asking(original, _rule(original))
        _versions[np.full] = _asking(np.full, full)
    if "scipy" in sys.modules:
        from .scipy_names import counterparts

        for original, own in counterparts().items():
            if original not in _versions:
                _versions[original] = _asking(original, own)
    return _versions


class _Modules:
    """Where the modules have the functions of the table: found again when the table has grown."""

    count = 0
    rows: tuple[tuple[dict[str, Any], str, Any], ...] = ()
    known: frozenset[int] = frozenset()


def _places(things: Iterable[Any], table: dict[Any, Any]) -> list[tuple[dict[str, Any], str, Any]]:
    """Where traced code looks these functions up: the modules, the globals of the function and of those it calls, and users' modules they mention."""
    loaded = [np, np.linalg, *[sys.modules[part] for part in PARTS if part in sys.modules]]
    if _Modules.count != len(table) + len(loaded):
        rows = [(vars(module), original.__name__, original) for module in loaded for original in table if hasattr(module, original.__name__)]
        _Modules.rows, _Modules.known = tuple(rows), frozenset([id(original) for original in table])
        _Modules.count = len(table) + len(loaded)
    found = [row for row in _Modules.rows if row[0].get(row[1]) is row[2]]
    known = _Modules.known
    for names in homes(things):
        found.extend([(names, name, value) for name, value in names.items() if id(value) in known])
    return found


def _exchange(names: dict[str, Any], name: str, version: Any) -> None:
    _changed.append((names, name, names[name]))
    names[name] = version


def _answered(function: Any, table: dict[Any, Any]) -> Any:
    """A function, or the version of it that answers; a partial application of one too."""
    if isinstance(function, partial) and any([function.func is f for f in table]):
        return partial(table[function.func], *function.args, **function.keywords)
    return next((version for original, version in table.items() if original is function), function)


@contextmanager
def answering(function: Any, things: Iterable[Any] | None = None) -> Generator[Any]:
    """For the time of a trace; gives the function, or the version of it that answers. `things` is what the function reaches, where that is known."""
    global _depth
    with _lock:
        _depth += 1
    try:
        with _lock:
            table = _table()
            for name, version in _joining.items():
                _exchange(np.__dict__, name, version)
            for names, name, value in _places(reached(function) if things is None else things, table):
                _exchange(names, name, table[value])
        yield _answered(function, table)
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                while _changed:
                    names, name, value = _changed.pop()
                    names[name] = value
