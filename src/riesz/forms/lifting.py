"""Names for what a function captures: a second trace in which captured arrays and numbers are arguments.

What NumPy computes from captured arrays (−y, V.T, x − mu) is then seen as steps, and numbers keep their names. Printed
forms come from this trace; numbers come from the first one.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def lifted(f: types.FunctionType, names: Sequence[str], count: int) -> Callable[..., Any]:
    """f as a function of its first arguments and of what it captures under some names."""
    inner = f.__code__.co_freevars
    around = dict(f.__globals__)
    cells = {name: types.CellType() if name in names else c for name, c in zip(inner, f.__closure__ or (), strict=True)}
    new = types.FunctionType(f.__code__, around, f.__name__, f.__defaults__, tuple(cells.values()) or None)
    new.__kwdefaults__ = f.__kwdefaults__

    def opened(*args: Any) -> Any:
        for name, value in zip(names, args[count:], strict=True):
            if name in cells:
                cells[name].cell_contents = value
            else:
                around[name] = value
        return new(*args[:count])

    # It belongs to the user's code: a trace looks into it.
    return types.FunctionType(opened.__code__, around, f.__name__, None, opened.__closure__)


def plain_function(f: Any) -> types.FunctionType | None:
    """The Python function behind a decorated one."""
    while isinstance(f, functools.partial) and not f.keywords and not f.args:  # type: ignore[redundant-expr]
        f = f.func  # type: ignore[assignment]
    return f if isinstance(f, types.FunctionType) else None


def captured(f: types.FunctionType) -> dict[str, Any]:
    """The float arrays and floats that a function reads from around it, by name."""
    found: dict[str, Any] = {}
    for name in _names(f.__code__):
        if name in f.__globals__:
            found[name] = f.__globals__[name]
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    floats = lambda v: isinstance(v, float) or (isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size > 0)  # noqa: E731
    return {name: value for name, value in found.items() if floats(value)}


def _names(code: types.CodeType) -> list[str]:
    """The names that code looks up, that of inner functions included."""
    found, waiting = list[str](), [code]
    while waiting:
        c = waiting.pop()
        found += c.co_names
        waiting += [k for k in c.co_consts if isinstance(k, types.CodeType)]
    return list(dict.fromkeys(found))
