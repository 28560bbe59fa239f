"""Value domains over numbers: plain evaluation, and evaluation that counts multiplications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..spaces.contraction import metered
from ..spaces.formal_vectors import Formal, dense
from .op import Contraction, Elementwise, Op

OTHER = object()
"""What generated code gives where it does not apply."""


class Numbers:
    """eval⁽⁰⁾: a leaf is a float, an array or a formal vector."""

    hushes = True  # what a selection reads is computed without warnings

    def const(self, value: Any) -> Any:
        """A fixed vector."""
        return value

    def step(self, op: Op, args: Sequence[Any]) -> Any:
        """op of the arguments."""
        return op.run(*args)

    def scale(self, k: float, value: Any) -> Any:
        """k · value."""
        return k * value

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Zeros, without memory."""
        return np.broadcast_to(0.0, shape) if shape else 0.0

    def shape(self, value: Any) -> Any:
        """The shape of a leaf."""
        if type(value) is tuple:
            return tuple([np.shape(v) for v in cast("tuple[Any, ...]", value)])
        return value.shape if type(value) is Formal else np.shape(value)

    def linearized(self, op: Elementwise, xs: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """The value of a primitive at xs and its partial derivatives there."""
        p = op.primitive
        if len(xs) > 1 or type(xs[0]) is Formal:
            xs = [dense(x) for x in xs]
        y = p.run(*xs)
        return y, p.partials(xs, y)


NUMBERS = Numbers()


class Multiplied(Numbers):
    """Numbers where a small u ⊗ v is multiplied out at once: keeping it apart costs more than it saves."""

    SMALL = 4096

    def step(self, op: Op, args: Sequence[Any]) -> Any:
        if type(op) is Contraction and len(args) == 2 and op.out and not op.strong:
            u, v = args
            if type(u) is np.ndarray and type(v) is np.ndarray and (not op.expands or u.size * v.size <= self.SMALL):
                return op.kernel(u, v)
        return op.run(*args)


MULTIPLIED = Multiplied()


class Counting(Numbers):
    """Numbers that count the multiplications spent on contractions and scalings."""

    def __init__(self) -> None:
        self.multiplications = 0

    def step(self, op: Op, args: Sequence[Any]) -> Any:
        with metered() as meter:
            result = op.run(*args)
        self.multiplications += meter.multiplications
        return result

    def scale(self, k: float, value: Any) -> Any:
        if abs(k) != 1.0 and type(value) is not Formal:
            self.multiplications += int(np.size(value))
        return k * value
