"""The trace: a program being written while Python code runs, and errors that name the line of that code."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TraceError
from ..programs.program import Program

if TYPE_CHECKING:
    from .traced import Traced

_inmost: ContextVar[Trace | None] = ContextVar("inmost", default=None)
"""The innermost trace that is being written."""


class Trace(Program):
    """A program being written from Python code. Arrays of an outer trace that turn up inside are captured: inputs of their own."""

    def __init__(self, name: str = "f") -> None:
        super().__init__()
        self.name = name
        self.outer = _inmost.get()
        self.level = self.outer.level + 1 if self.outer is not None else 1
        self.open = True
        self.captured: list[Traced] = []  # as they were when they were captured: theirs is the trace, and the slot, of that moment
        self.handles: dict[Any, Traced] = {}  # arrays that points of linear maps hold, by slot and type
        self._places: dict[tuple[Trace, int], int] = {}  # captured arrays, by their trace and their slot there
        self._copies: dict[Any, tuple[Any, Any]] = {}  # constants in another type, by identity

    def capture(self, x: Traced) -> int:
        """The input slot of an array of an outer trace."""
        key = (x.home, x.slot)
        if key not in self._places:
            self._places[key] = self.input(x.shape)
            self.captured.append(x.copy())
        return self._places[key]

    def inside(self, other: Trace) -> bool:
        """Whether this trace is written inside another one."""
        outer = self.outer
        while outer is not None and outer.level > other.level:
            outer = outer.outer
        return outer is other

    @property
    def captured_slots(self) -> list[int]:
        """The input slots of captured arrays."""
        return list(self._places.values())

    def converted(self, array: Any, dtype: Any) -> Any:
        """A constant array in another type, converted once."""
        key = (id(array), dtype)
        if key not in self._copies:
            self._copies[key] = (array, array.astype(dtype))
        return self._copies[key][1]

    def __enter__(self) -> Trace:
        self._token = _inmost.set(self)
        return self

    def __exit__(self, *problem: object) -> None:
        _inmost.reset(self._token)
        self.open = False


def current_level() -> int:
    """How many traces are being written, one inside the other."""
    trace = _inmost.get()
    return 0 if trace is None else trace.level


def user_line() -> str:
    """Where the user's code is, for error messages."""
    here = os.path.dirname(os.path.dirname(__file__))
    numpy_home, scipy_home = os.path.dirname(np.__file__), os.sep + "scipy" + os.sep
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not file.startswith((here, numpy_home, "<frozen", "<__array_function__")) and scipy_home not in file:
            break
        frame = frame.f_back
    return f" (at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}, in {frame.f_code.co_name})"


def refuse(message: str) -> TraceError:
    """An error that names the user's line."""
    return TraceError(message + user_line())


def leaked(trace: Trace) -> TraceError:
    """The error of an array that outlived its trace."""
    return refuse(
        f"a traced array of {trace.name} is used after its trace has ended: it was kept in a variable outside the function, by itself, "
        "in a linear map or in a rule of rz.custom_derivative; return it instead, or pass it as an argument"
    )
