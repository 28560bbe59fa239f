"""What generated loops are made of: numbers in variables, numbers in buffers, `for` and `if`.

A value is the name of a variable, a float or a truth value. A variable is assigned once, except those of `Update`. A
buffer is a row of float64 numbers; positions in it are sums of loop counters with fixed strides. Two targets print
statements: machine_code.py and float_code.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Value = str | float | bool


class Position(NamedTuple):
    """offset + Σ stride · counter."""

    offset: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    def moved(self, offset: int) -> Position:
        """Further on by a fixed number."""
        return Position(self.offset + offset, self.terms)

    def plus(self, other: Position, stride: int = 1) -> Position:
        """This and `stride` times another one."""
        total = dict(self.terms)
        for name, k in other.terms:
            total[name] = total.get(name, 0) + stride * k
        return Position(self.offset + stride * other.offset, tuple([(n, k) for n, k in total.items() if k]))


START = Position()


def counter(name: str) -> Position:
    """The counter of a loop."""
    return Position(0, ((name, 1),))


@dataclass(eq=False)
class Buffer:
    """A row of numbers: an argument of the function, a result, numbers known beforehand, or its own memory."""

    name: str
    size: int
    role: str = "own"  # argument, result, fixed, own
    numbers: Any = None  # of a fixed one


class Assign(NamedTuple):
    """name = op(args), with the op's name in `machine_code.FORMS`."""

    name: str
    op: str
    args: tuple[Value, ...]


class Read(NamedTuple):
    """name = buffer[at]."""

    name: str
    buffer: Buffer
    at: Position


class Pick(NamedTuple):
    """counter `name` = table[at], a whole number."""

    name: str
    table: Buffer
    at: Position


class Locate(NamedTuple):
    """counter `name` = a computed whole number, a negative one counted from the end. Outside it fails."""

    name: str
    value: Value
    size: int


class SetNumber(NamedTuple):
    """buffer[at] = value, or += where it `adds`."""

    buffer: Buffer
    at: Position
    value: Value
    adds: bool = False


class Update(NamedTuple):
    """Variables that change: all values are taken first."""

    names: tuple[str, ...]
    values: tuple[Value, ...]


class For(NamedTuple):
    """for name in start … stop − 1, or downwards."""

    name: str
    start: Position
    stop: Position
    reverse: bool
    body: list[Any]


class Lanes(NamedTuple):
    """for name in 0 … times − 1, in any order: several at a time where the body allows it."""

    name: str
    times: int
    body: list[Any]


class If(NamedTuple):
    """One of two lists of statements."""

    condition: Value
    yes: list[Any]
    no: list[Any]


class Fail(NamedTuple):
    """What cannot be done here: the ordinary way is taken."""

    condition: Value


class Invoke(NamedTuple):
    """A helper on buffers, each from a position on."""

    helper: str
    buffers: tuple[tuple[Buffer, Position], ...]


@dataclass(eq=False)
class Helper:
    """Statements used in several places, on buffers that it is given."""

    name: str
    buffers: list[Buffer]
    body: list[Any]


@dataclass(eq=False)
class Statements:
    """A whole function. `arguments` and `results` are buffers in order."""

    body: list[Any] = field(default_factory=list[Any])
    arguments: list[Buffer] = field(default_factory=list[Buffer])
    results: list[Buffer] = field(default_factory=list[Buffer])
    fixed: list[Buffer] = field(default_factory=list[Buffer])
    own: list[Buffer] = field(default_factory=list[Buffer])
    helpers: dict[str, Helper] = field(default_factory=dict[str, Helper])
    count: int = 0  # operations of numbers that are written out


class Blocked(Exception):
    """Something that has no such statements."""
