"""Expressions of numbers, each written once: what a step does to the components of its arguments at one position of a
long axis.

Equal expressions are one node. Rewriting keeps values up to rounding: x·1, −(−x), k·(l·x), x + 0 and 0·x where the 0 is
structure (`ZERO`): a place that a relation leaves empty, not a number that happens to be 0, whose product with inf is
nan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np


class TooMany(Exception):
    """More operations than asked for."""


class Load(NamedTuple):
    """A component of a source, at the position or at the table row that belongs to it."""

    source: int
    at: tuple[int, ...]


class Small(NamedTuple):
    """A component of a slot that does not have the long axis, by its row-major position."""

    slot: int
    at: int


class Fixed(NamedTuple):
    """A number; a Python float has no type of its own."""

    value: Any


class Operation(NamedTuple):
    """A function of numbers by its array code; `more` and `named` are arguments that do not vary."""

    name: str
    function: Any
    more: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *xs: Any) -> Any:
        return self.function(*xs, *self.more, **dict(self.named))


def _where(c: Any, a: Any, b: Any) -> Any:
    return cast(Any, np.where)(c, a, b)


def _convert(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)[()]


ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATIVE, SQRT, POWER, EQUAL, UNEQUAL = [
    Operation(f.__name__, f)
    for f in (np.add, np.subtract, np.multiply, np.divide, np.negative, np.sqrt, np.power, np.equal, np.not_equal)
]
SELECT = Operation("where", _where)
ZERO, ONE = 0, 1
"""The nodes of a structural 0 and of 1."""

TRUTHS = {
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isfinite, np.isinf),
    *(np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.signbit),
}
"""Functions whose values are truth values."""


def convert(dtype: Any) -> Operation:
    """The same number in another type."""
    return Operation("convert", _convert, (np.dtype(dtype),))


class Scalars:
    """Nodes in parallel lists, arguments first. Beyond `most` operations `TooMany` is raised."""

    def __init__(self, most: int) -> None:
        self.ops: list[Any] = [Fixed(0.0), Fixed(1.0)]
        self.args: list[tuple[int, ...]] = [(), ()]
        self.count = 0
        self._most = most
        self._known: dict[Any, int] = {self._key(1.0): ONE}

    def room(self, more: int) -> None:
        """Refuse work that is certain to be too much."""
        if more > 4 * self._most:
            raise TooMany

    def _node(self, key: Any, op: Any, args: tuple[int, ...] = ()) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(args)
        return found

    def _key(self, value: Any) -> Any:
        if type(value) is float:
            return float, value.hex()
        return type(value), value.tobytes() if isinstance(value, np.generic) else value

    def leaf(self, leaf: Load | Small) -> int:
        """A number that is read."""
        return self._node(leaf, leaf)

    def fixed(self, value: Any) -> int:
        """A number."""
        return self._node(self._key(value), Fixed(value))

    def apply(self, op: Operation, args: Iterable[int]) -> int:
        """A function of nodes as it stands."""
        given, known = tuple(args), len(self.ops)
        node = self._node((op, given), op, given)
        self.count += node == known
        if self.count > self._most:
            raise TooMany
        return node

    # -- arithmetic --------------------------------------------------------------------------------------

    def _number(self, x: int) -> float | None:
        """The value of a node that is a number without a type of its own."""
        op = self.ops[x]
        return op.value if type(op) is Fixed and type(op.value) is float and x != ZERO else None

    def _scaled(self, x: int) -> tuple[float, int]:
        """x as k·y."""
        if self.ops[x] is NEGATIVE:
            return -1.0, self.args[x][0]
        if self.ops[x] is MULTIPLY and (k := self._number(self.args[x][0])) is not None and 1e-6 < abs(k) < 1e6:
            return k, self.args[x][1]
        return 1.0, x

    def scale(self, k: float, x: int) -> int:
        """k·x."""
        if x == ZERO or k == 1.0:
            return x
        if (number := self._number(x)) is not None:
            return self.fixed(k * number)
        if k == -1.0 and self.ops[x] is SUBTRACT:
            return self.apply(SUBTRACT, self.args[x][::-1])
        inner, y = self._scaled(x)
        if y != x and 1e-12 < abs(k * inner) < 1e12:
            return self.scale(k * inner, y)
        return self.apply(NEGATIVE, (x,)) if k == -1.0 else self.apply(MULTIPLY, (self.fixed(k), x))

    def product(self, factors: Sequence[int]) -> int:
        """The product of nodes; numbers go in front."""
        k, rest = 1.0, list[int]()
        for x in factors:
            if x == ZERO:
                return ZERO
            number = self._number(x)
            inner, y = (number, ONE) if number is not None else self._scaled(x)
            if inner == 1.0 or 1e-12 < abs(k * inner) < 1e12:
                k, x = k * inner, y
            if x != ONE:
                rest.append(x)
        rest.sort()
        total = rest[0] if rest else ONE
        for x in rest[1:]:
            total = self.apply(MULTIPLY, (total, x))
        return self.scale(k, total)

    def add(self, x: int, y: int) -> int:
        """x + y."""
        if x == ZERO or y == ZERO:
            return y if x == ZERO else x
        for a, b in ((x, y), (y, x)):
            if self.ops[b] is NEGATIVE:
                return self.subtract(a, self.args[b][0])
        return self.apply(ADD, (min(x, y), max(x, y)))

    def subtract(self, x: int, y: int) -> int:
        """x − y."""
        if y == ZERO:
            return x
        if x == ZERO:
            return self.scale(-1.0, y)
        return self.add(x, self.args[y][0]) if self.ops[y] is NEGATIVE else self.apply(SUBTRACT, (x, y))

    def combination(self, coefficients: Sequence[float], nodes: Sequence[int]) -> int:
        """Σ kᵢ·xᵢ."""
        total = ZERO
        for k, x in zip(coefficients, nodes, strict=True):
            total = self.subtract(total, x) if k == -1.0 else self.add(total, self.scale(k, x))
        return total

    def divide(self, x: int, y: int) -> int:
        """x / y; a sign goes in front."""
        if self.ops[x] is NEGATIVE:
            return self.scale(-1.0, self.apply(DIVIDE, (self.args[x][0], y)))
        return self.apply(DIVIDE, (x, y))

    def power(self, x: int, k: float) -> int:
        """x^k: by multiplication where that is short, the root as NumPy takes it."""
        if k == 0.5:
            return self.apply(SQRT, (x,))
        if abs(k) not in (1.0, 2.0, 3.0, 4.0):
            return self.apply(POWER, (x, self.fixed(k)))
        raised = x
        if abs(k) > 1:
            square = self.apply(MULTIPLY, (x, x))
            raised = square if abs(k) == 2 else self.apply(MULTIPLY, (x, square) if abs(k) == 3 else (square, square))
        return raised if k > 0 else self.apply(DIVIDE, (ONE, raised))

    def select(self, c: int, x: int, y: int) -> int:
        """x where c holds, y elsewhere."""
        known = self.ops[c]
        if type(known) is Fixed:
            return x if known.value else y
        return x if x == y else self.apply(SELECT, (c, x, y))

    def truth(self, x: int) -> bool:
        """Whether a node is known to be a truth value."""
        op = self.ops[x]
        if type(op) is Operation:
            return op.function in TRUTHS
        return type(op) is Fixed and isinstance(op.value, (bool, np.bool_))

    def selected_product(self, factors: Sequence[int], strong: Sequence[int]) -> int:
        """The product of nodes, 0 where a strong one is 0, whatever the others are; truth values only select."""
        if ZERO in factors:
            return ZERO
        value = self.product([x for i, x in enumerate(factors) if not (i in strong and self.truth(x))])
        for i in strong:
            x = factors[i]
            value = self.select(x if self.truth(x) else self.apply(UNEQUAL, (x, ZERO)), value, ZERO)
        return value


class Exact(Scalars):
    """Expressions in which 0·x is computed, for x may be inf, except where the 0 is strong."""

    def scale(self, k: float, x: int) -> int:
        return super().scale(k, x) if x != ZERO or math.isfinite(k) else self.fixed(math.nan)

    def product(self, factors: Sequence[int]) -> int:
        return super().product([self.fixed(0.0) if x == ZERO else x for x in factors])

    def selected_product(self, factors: Sequence[int], strong: Sequence[int]) -> int:
        if any([factors[i] == ZERO for i in strong]):
            return ZERO
        return super().selected_product([self.fixed(0.0) if x == ZERO else x for x in factors], strong)
