"""A program as one function of numbers: machine code where llvmlite is installed, Python on floats otherwise.

What cannot be written raises `Blocked`. What cannot be done with the numbers given (a singular matrix, a nan) gives
None: then the ordinary way is taken, so that errors and nan are always its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...programs.axis.along import MixesPositions
from ...programs.passes.deferring import has_nan
from ...programs.program import Program
from ...runtime import tuning
from ...runtime.buffers import empty
from ..python.scalar_code import RAISED
from ..python.unrolled import FLOAT
from .float_code import float_function
from .machine_code import assembly, compiled
from .number_forms import exact
from .scope import Scope
from .statements import Blocked, Buffer, Position, Statements
from .writer import Arrayed, StatementWriter

DTYPES = {"f": np.dtype(float), "i": np.dtype(np.int64), "b": np.dtype(bool)}
Run = Callable[[Sequence[Any]], "list[Any] | None"]


@cache
def machine_code_here() -> bool:
    """Whether machine code can be had."""
    return find_spec("llvmlite") is not None


def letter(x: Any) -> str:
    """The kind of a given number or array: f, i or b."""
    if type(x) is float:
        return "f"
    dtype = getattr(x, "dtype", None)
    for name, own in DTYPES.items():
        if dtype == own:
            return name
    raise Blocked(f"numbers of the type {dtype or type(x)}")


class NativeFunction:
    """The statements of a program for arguments of some kinds, and the function they become."""

    def __init__(self, program: Program, letters: Sequence[str], most: int | None = None) -> None:
        writer = StatementWriter(most)
        self.shapes = [program.shapes[s] for s in program.outputs]
        self._whole = [i for i, name in enumerate(letters) if name == "i"]
        inputs: list[Any] = []
        for slot in program.inputs:
            shape = program.shapes[slot]
            buffer = Buffer(writer.fresh("a"), math.prod(shape), "argument")
            writer.written.arguments.append(buffer)
            inputs.append(writer.placed(shape, buffer))
        try:
            scope = Scope(writer, program, inputs, letters)
        except (MixesPositions, NotImplementedError) as reason:
            raise Blocked("a step that mixes positions") from reason
        self.letters = [scope.letters[s] for s in program.outputs]
        self.written: Statements = writer.written
        for slot in program.outputs:
            writer.written.results.append(_result(scope, scope.values[slot], program.shapes[slot]))

    def machine(self, keeps: bool = False) -> Run:
        """As machine code; it `keeps` its memory for the next call."""
        text, buffers = assembly(self.written)
        function = compiled(text, len(buffers), keeps or self.written.count <= tuning.NATIVE_JOINED_STATEMENTS)
        fixed = [b.numbers for b in self.written.fixed]
        tail = [x.ctypes.data for x in fixed]
        results = [b.size for b in self.written.results]
        own = [b.size for b in buffers[len(self.written.arguments) + len(results) + len(fixed) :]]
        whole, small = self._whole, tuning.REUSED_ARRAY_BYTES // FLOAT.itemsize
        free: list[Any] = []  # memory of calls that are over; calls at the same time have their own

        def run(given: Sequence[Any]) -> list[Any] | None:
            if whole and not all([exact(given[i]) for i in whole]):
                return None
            arrays = [np.ascontiguousarray(x, float) for x in given]
            found = [np.empty(size) if size < small else empty((size,), FLOAT) for size in results]
            where = [x.__array_interface__["data"][0] for x in (*arrays, *found)]
            try:
                memory, rest = free.pop()
            except IndexError:
                memory = [empty((size,), FLOAT) for size in own]
                rest = [x.__array_interface__["data"][0] for x in memory]
            failed = function(*where, *tail, *rest)
            if keeps:
                free.append((memory, rest))
            return None if failed else self._finished(found)

        run.kept, run.letters = fixed, self.letters  # pyright: ignore
        return run

    def floats(self) -> Run:
        """As Python on floats."""
        _, function = float_function(self.written)
        whole = self._whole

        def run(given: Sequence[Any]) -> list[Any] | None:
            if whole and not all([exact(given[i]) for i in whole]):
                return None
            try:
                found = function(*[np.asarray(x, float).reshape(-1).tolist() for x in given])
            except RAISED:
                return None
            return self._finished([np.array(x, float) for x in found])

        run.letters = self.letters  # pyright: ignore
        return run

    def text(self, machine: bool) -> str:
        """What it was written as: LLVM's assembly, or Python."""
        return assembly(self.written)[0] if machine else float_function(self.written)[0]

    def _finished(self, found: list[Any]) -> list[Any] | None:
        results: list[Any] = []
        for x, shape, kind in zip(found, self.shapes, self.letters, strict=True):
            if has_nan(x):
                return None
            x = x if kind == "f" else x.astype(DTYPES[kind])
            results.append(x.reshape(shape) if shape else float(x[0]) if kind == "f" else x[0])
        return results


def _result(scope: Scope, x: Any, shape: Any) -> Buffer:
    """The buffer of a result: memory that holds it already, or a new one."""
    written, size = scope.writer.written, math.prod(shape)
    if type(x) is Arrayed and x.place is not None:
        buffer, at = x.place
        if buffer.role == "own" and buffer.size == size and at == Position():
            buffer.role = "result"
            written.own.remove(buffer)
            return buffer
    buffer = Buffer(scope.writer.fresh("r"), size, "result")
    scope.store(scope.writer.placed(shape, buffer), x)
    return buffer
