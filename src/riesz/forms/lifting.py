"""Names for what a function computes with: a second trace in which captured arrays and numbers are arguments.

What NumPy computes from captured arrays (−y, V.T, x − mu) is then seen as steps, and numbers keep their names. The
function's own local variables are results beside its value, so that a part that needs a name gets the user's. Printed
forms come from this trace; numbers come from the first one.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..errors import VectorError
from ..tracing.traced import Traced

_ASSUMED: ContextVar[list[tuple[Any, tuple[str, ...]]] | None] = ContextVar("assumed", default=None)
FACTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "symmetric": lambda a: (a, a.T),
    "orthogonal": lambda a: (a.T @ a, np.eye(len(a)) if a.shape[0] == a.shape[1] else np.nan),
    "stochastic": lambda a: (a.sum(1), np.ones(len(a))),
}
"""What can be assumed of a matrix: two arrays that are then the same."""


def holds(fact: str, a: Any, tolerance: float = 1e-14) -> bool:
    """Whether a fact holds of numbers, up to rounding: forms are true to all digits."""
    if a.ndim != 2 or not a.size:
        return False
    one, other = FACTS[fact](a)
    return np.shape(one) == np.shape(other) and bool(np.abs(one - other).max() <= tolerance * np.abs(one).max())


def assume(a: Any, **facts: bool) -> Any:
    """The array itself, with facts that closed forms may use: symmetric, orthogonal, stochastic (rows sum to 1).

    Numbers are checked; a fact that does not hold is an error.

    >>> import numpy as np, riesz as rz
    >>> print(rz.derive(lambda S, x: x @ rz.assume(S, symmetric=True) @ x, np.eye(2), np.ones(2)).gradient["x"])
    2Sx
      where Sᵀ = S
    """
    for name, claimed in facts.items():
        if name not in FACTS:
            raise VectorError(f"assume({name}=…): the facts are {', '.join([f'{k}=True' for k in FACTS])}")
        if claimed and not isinstance(a, Traced) and not holds(name, np.asarray(a), 1e-8):
            raise VectorError(f"assume({name}=True): the array of shape {np.shape(a)} is not {name}")
    noted = _ASSUMED.get()
    if noted is not None and isinstance(a, Traced):
        noted.append((a, tuple([name for name, claimed in facts.items() if claimed])))
    return a


def lifted(f: types.FunctionType, names: Sequence[str], count: int, small: bool) -> Callable[..., Any]:
    """f as a function of its first arguments and of what it captures under some names. Its result is a pair: the value,
    and (local variables, assumptions). Local variables are seen in small functions only: a trace takes longer then."""
    inner = f.__code__.co_freevars
    around = dict(f.__globals__)
    cells = {name: types.CellType() if name in names else c for name, c in zip(inner, f.__closure__ or (), strict=True)}
    new = types.FunctionType(f.__code__, around, f.__name__, f.__defaults__, tuple(cells.values()) or None)
    new.__kwdefaults__ = f.__kwdefaults__
    watching = _watching

    def opened(*args: Any) -> Any:
        for name, value in zip(names, args[count:], strict=True):
            if name in cells:
                cells[name].cell_contents = value
            else:
                around[name] = value
        with watching(new.__code__ if small else None) as seen:
            value = new(*args[:count])
        return value, seen.found()

    # It belongs to the user's code: a trace looks into it.
    return types.FunctionType(opened.__code__, around, f.__name__, None, opened.__closure__)


class _watching:
    """Sees the local variables of a function when it returns, and what it assumes of arrays."""

    def __init__(self, code: types.CodeType | None) -> None:
        self.code = code
        self.locals: dict[str, Any] = {}
        self.noted: list[tuple[Any, tuple[str, ...]]] = []

    def __enter__(self) -> _watching:
        self._before = sys.getprofile()
        self._token = _ASSUMED.set(self.noted)
        if self.code is not None:
            sys.setprofile(self._profile)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.code is not None:
            sys.setprofile(self._before)
        _ASSUMED.reset(self._token)

    def _profile(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "return" and frame.f_code is self.code:
            self.locals = {k: v for k, v in frame.f_locals.items() if isinstance(v, Traced) and v.dtype.kind == "f"}

    def found(self) -> Any:
        """Local variables by name, and assumed arrays by number and facts."""
        assumed = {f"{k} {' '.join(facts)}": a for k, (a, facts) in enumerate(self.noted)}
        return dict(self.locals), assumed


def plain_function(f: Any) -> types.FunctionType | None:
    """A function that can be traced with other values for what it captures."""
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
    return {name: value for name, value in found.items() if _floats(value)}


def _floats(v: Any) -> bool:
    return isinstance(v, float) or (isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size > 0)


def _names(code: types.CodeType) -> list[str]:
    """The names that code looks up, those of inner functions included."""
    found, waiting = list[str](), [code]
    while waiting:
        c = waiting.pop()
        found += [i.argval for i in dis.get_instructions(c) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
        waiting += [k for k in c.co_consts if isinstance(k, types.CodeType)]
    return list(dict.fromkeys(found))
