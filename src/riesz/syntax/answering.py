"""While a function is traced, a few functions that convert their arguments to plain arrays answer for traced ones.

np.array([x[0], x[1]]), np.asarray(x) and functions of SciPy written in Python do not ask their arguments first. For the time of a trace the names
the traced code sees (in the modules, and in the function's own globals) stand for versions that do; given anything else they are the originals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial, wraps
from threading import RLock
from typing import Any, cast

import numpy as np

from .complexes import COMPLEX
from .elementwise import full
from .functions import PARTS
from .mistakes import OTHERS, outside
from .traced import FUNCTIONS, Traced, call_function, convert, holds_traced, is_complex, refuse, tidy
from .watching import homes

_lock = RLock()
_depth = 0
_changed: list[tuple[dict[str, Any], str, Any]] = []
_versions: dict[Any, Any] = {}
_joining: dict[str, Any] = {}


def _asking(original: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def version(*args: Any, **named: Any) -> Any:
        if any([holds_traced(a) for a in args]) or any([holds_traced(a) for a in named.values()]):
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
    x = x if dtype is None else convert(x, np.dtype(dtype))
    return np.reshape(x, (*(1,) * (ndmin - x.ndim), *x.shape)) if x.ndim < ndmin else x


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
    """np.r_ and np.c_ on traced arrays; on anything else the originals."""

    def __init__(self, original: Any, columns: bool) -> None:
        self.original = original
        self.columns = columns

    def __getitem__(self, key: Any) -> Any:
        if not holds_traced(key):
            return self.original[key]
        parts = [
            p if holds_traced(p) else self.original[p] if isinstance(p, slice) else np.asarray(p) for p in (key if isinstance(key, tuple) else (key,))
        ]
        if any([isinstance(p, np.ndarray) and cast(Any, p).dtype.kind in "US" for p in parts]):
            raise refuse("np.r_ and np.c_ with a directive in a text are not known for traced arrays; write np.concatenate or np.stack")
        return FUNCTIONS[np.column_stack if self.columns else np.hstack](parts)


def _table() -> dict[Any, Any]:
    """original → version, for what is loaded by now."""
    if not _versions:
        for original in (np.array, np.asarray, np.asfortranarray):
            _versions[original] = _asking(original, _array)
        _versions[np.ascontiguousarray] = _asking(np.ascontiguousarray, partial(_array, ndmin=1))
        _versions[np.asanyarray] = _asanyarray(np.asanyarray)
        _joining.update({"r_": _Joining(np.r_, False), "c_": _Joining(np.c_, True)})
        for original in (np.take, np.full_like):  # their rules are asked for the first argument only
            _versions[original] = _asking(original, _rule(original))
        _versions[np.full] = _asking(np.full, full)
    if "scipy" in sys.modules:
        from .scipy_names import counterparts

        for original, own in counterparts().items():
            if original not in _versions:
                _versions[original] = _asking(original, own)
    return _versions


def _places(function: Any, table: dict[Any, Any]) -> list[tuple[dict[str, Any], str, Any]]:
    """Where traced code looks these functions up: the modules, the globals of the function and of those it calls, and users' modules they mention."""
    found: list[tuple[dict[str, Any], str, Any]] = []
    for original in table:
        for module in (np, *[sys.modules.get(part) for part in PARTS]):
            if module is not None and vars(module).get(original.__name__) is original:
                found.append((vars(module), original.__name__, original))
    known = {id(original) for original in table}
    for names in homes(function):
        for name, value in names.items():
            if id(value) in known:
                found.append((names, name, value))
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
def answering(function: Any) -> Generator[Any]:
    """For the time of a trace; gives the function, or the version of it that answers."""
    global _depth
    with _lock:
        _depth += 1
    try:
        with _lock:
            table = _table()
            for name, version in _joining.items():
                _exchange(np.__dict__, name, version)
            for names, name, value in _places(function, table):
                _exchange(names, name, table[value])
        yield _answered(function, table)
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                while _changed:
                    names, name, value = _changed.pop()
                    names[name] = value
