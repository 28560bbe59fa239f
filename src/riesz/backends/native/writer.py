"""What all scopes of a generated function share: names, memory, and the list of statements that is being written."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...ops.op import Shape
from ...runtime import tuning
from .statements import START, Assign, Blocked, Buffer, For, Position, Read, Statements, Value, counter


class Variable(NamedTuple):
    """A number in a variable."""

    name: str


class Element(NamedTuple):
    """A number in a buffer."""

    buffer: Buffer
    at: Position


class Arrayed:
    """An array: `at(positions)` is the value at one of its places; `place` is its memory, row by row, if it has one."""

    def __init__(
        self, shape: Shape, at: Callable[[Sequence[Position]], Value], place: tuple[Buffer, Position] | None = None
    ) -> None:
        self.shape, self.at, self.place = shape, at, place


Slot = Any
"""An array of nodes, an `Arrayed`, or a list of these for steps with several results."""


class StatementWriter:
    """What all scopes of a function share: names, memory, and the list of statements that is being written."""

    def __init__(self, most: int | None = None) -> None:
        self.written = Statements()
        self.most = tuning.NATIVE_STATEMENTS if most is None else most
        self.block = self.written.body
        self._names = 0
        self._fixed: dict[Any, Buffer] = {}

    def fresh(self, letter: str) -> str:
        """A new name."""
        self._names += 1
        return f"{letter}{self._names}"

    def emit(self, statement: Any) -> None:
        """The next statement."""
        self.block.append(statement)
        self.written.count += 1
        if self.written.count > self.most:
            raise Blocked(f"a function of more than {self.most:,} statements")

    def read(self, buffer: Buffer, at: Position) -> Value:
        """A number from memory."""
        name = self.fresh("v")
        self.emit(Read(name, buffer, at))
        return name

    def assigned(self, op: str, args: Sequence[Value]) -> Value:
        """A new variable."""
        name = self.fresh("v")
        self.emit(Assign(name, op, tuple(args)))
        return name

    def placed(self, shape: Shape, buffer: Buffer, base: Position = START) -> Arrayed:
        """An array in memory."""
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]

        def at(positions: Sequence[Position]) -> Value:
            total = base
            for p, stride in zip(positions, strides, strict=True):
                total = total.plus(p, stride)
            return self.read(buffer, total)

        return Arrayed(shape, at, (buffer, base))

    def buffer(self, size: int) -> Buffer:
        """Memory of the function's own."""
        found = Buffer(self.fresh("b"), size)
        self.written.own.append(found)
        return found

    def fixed(self, numbers: Any) -> Buffer:
        """Memory with numbers in it; equal ones once."""
        kind = np.int64 if numbers.dtype.kind in "iu" else np.float64
        flat = np.ascontiguousarray(numbers, kind).reshape(-1)
        key = flat.dtype.char, flat.tobytes()
        if key not in self._fixed:
            self._fixed[key] = Buffer(self.fresh("g"), flat.size, "fixed", flat)
            self.written.fixed.append(self._fixed[key])
        return self._fixed[key]

    @contextmanager
    def inside(self) -> Generator[list[Any]]:
        """Statements into a list of their own."""
        outer, self.block = self.block, list[Any]()
        try:
            yield self.block
        finally:
            self.block = outer

    @contextmanager
    def loop(self, start: Position, stop: Position, reverse: bool = False) -> Generator[Position]:
        """A loop; what is written inside is its body."""
        name = self.fresh("i")
        with self.inside() as body:
            yield counter(name)
        self.emit(For(name, start, stop, reverse, body))
