"""What a trace of a Python function depends on besides its arrays: names, globals, attributes, by identity; and the functions it calls."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

MOST = 1000
"""How many things are looked at, at most."""

MISSING = object()


def _is_object(x: Any) -> bool:
    """An object of a user's class, whose attributes a function may read."""
    kind = cast(Any, type(x))
    plain = isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ndarray))
    return not plain and isinstance(getattr(x, "__dict__", None), dict) and kind.__module__.split(".")[0] not in _LIBRARIES


class _Attributes:
    """The attributes of an object that are values, its own and those of its class, as a mapping."""

    __slots__ = ("names", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        shared = {k for kind in type(owner).__mro__[:-1] for k, v in vars(kind).items() if not k.startswith("__") and not hasattr(v, "__get__")}
        self.names: list[str] = sorted({*vars(owner), *shared})

    def get(self, name: str, default: Any) -> Any:
        """What an attribute is now."""
        return getattr(self.owner, name, default)


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


def reached(*starts: Any) -> Iterator[Any]:
    """Functions and objects of users' own that a function may use: itself, closed-over ones, globals its code mentions, attributes, defaults."""
    from .functions import Function

    seen: set[int] = set()
    stack: list[Any] = list(starts)
    while stack and len(seen) < MOST:
        f = stack.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        if isinstance(f, types.MethodType):
            stack += [f.__func__, f.__self__]
        elif isinstance(f, partial):
            stack += [f.func, *f.args, *f.keywords.values()]
        elif isinstance(f, Function):
            stack.append(f.function)
        elif _is_object(f):
            yield f
            stack += [*vars(f).values(), vars(type(f)).get("__call__")]
        elif isinstance(f, types.FunctionType) and (f.__module__ or "").split(".")[0] not in _LIBRARIES:
            yield f
            stack += [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values(), *[value for _, _, value in _names(f)]]
            stack.append(getattr(f, "__wrapped__", None))


def _names(f: types.FunctionType) -> list[tuple[Any, str, Any]]:
    """The closed-over names, globals and names of users' modules a function mentions: where they are looked up, and what they mean now."""
    found: list[tuple[Any, str, Any]] = []
    if f.__closure__:
        cells = _Cells(dict(zip(f.__code__.co_freevars, f.__closure__, strict=True)))
        found.extend([(cells, k, cells.get(k, MISSING)) for k in f.__code__.co_freevars])
    for code in _codes(f.__code__):
        found.extend([(f.__globals__, k, f.__globals__[k]) for k in code.co_names if k in f.__globals__])
    mentioned = {k for code in _codes(f.__code__) for k in code.co_names}
    for _, _, value in found:  # grows: a module may be an attribute of a module
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in _OTHERS:
            inside = vars(value)
            found.extend([(inside, k, inside[k]) for k in mentioned if k in inside and not any([h is inside and n == k for h, n, _ in found])])
    return [row for row in found if not isinstance(row[2], types.ModuleType)]


def homes(*functions: Any) -> list[dict[str, Any]]:
    """The namespaces in which a function and those it calls look up what they mention."""
    found: dict[int, dict[str, Any]] = {}
    for f in reached(*functions):
        if isinstance(f, types.FunctionType):
            found[id(f.__globals__)] = f.__globals__
            found.update({id(where): where for where, _, _ in _names(f) if type(where) is dict})
    return list(found.values())


def watch(*functions: Any) -> list[Any]:
    """(where, name, value) of everything whose change makes a trace out of date."""
    found: list[Any] = []
    for f in reached(*functions):
        if isinstance(f, types.FunctionType):
            found.extend(_names(f))
        else:
            attributes = _Attributes(f)
            found.extend([(attributes, k, getattr(f, k)) for k in attributes.names])
    return found


_LIBRARIES = {"numpy", "scipy", "riesz", "builtins", "jax", "torch"}
_OTHERS = _LIBRARIES | sys.stdlib_module_names  # modules that are not a user's


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """The code of a function and of those written inside it."""
    found = [code]
    for c in found:
        found.extend([k for k in c.co_consts if isinstance(k, types.CodeType)])
    return found
