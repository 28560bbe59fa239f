"""NumPy code by the line: what it says, and the inputs it is tested at.

A case is an expression in `np` and its inputs. It is evaluated with `np` standing for numpy (plain and traced) or for jax.numpy; its text is its
name. `onp` is numpy always, for constants. The tables are in cases_pointwise.py and cases_structure.py, the tests in test_coverage.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Draw:
    """Random numbers of a shape in an interval; some may be replaced by fixed values."""

    def __init__(self, shape: tuple[int, ...], low: float, high: float, fixed: dict[Any, float] | None = None) -> None:
        self.shape = shape
        self.low = low
        self.high = high
        self.fixed = fixed or {}

    def sample(self, rng: np.random.Generator) -> Any:
        """Numbers in the interval, no two of them close to each other, none close to a whole number."""
        n = int(np.prod(self.shape))
        spread = (rng.permutation(n) + rng.uniform(0.2, 0.8, n)) / max(n, 1)
        x = (self.low + (self.high - self.low) * spread).reshape(self.shape)
        x = np.where(np.abs(x - np.rint(x)) < 0.02, x + 0.037, x)
        for at, value in self.fixed.items():
            x[at] = value
        return x

    def at(self, shape: tuple[int, ...]) -> Draw:
        """The same interval at another shape."""
        return Draw(shape, self.low, self.high)


def N(*shape: int, fixed: dict[Any, float] | None = None) -> Draw:
    """Numbers of both signs."""
    return Draw(shape, -2.0, 2.0, fixed)


def P(*shape: int) -> Draw:
    """Positive numbers."""
    return Draw(shape, 0.5, 2.5)


def U(*shape: int) -> Draw:
    """Numbers in (−0.9, 0.9)."""
    return Draw(shape, -0.9, 0.9)


class Case:
    """An expression, its inputs, further shapes for them, and how its derivative is known."""

    def __init__(
        self, text: str, inputs: tuple[Draw, ...], shapes: tuple[Any, ...], differences: bool, single: bool
    ) -> None:
        self.text = text
        self.inputs = inputs
        self.shapes = shapes  # each a tuple of shapes, one per input: empty arrays, axes of length 1
        self.differences = differences  # JAX has no such function or another convention: finite differences instead
        self.single = single  # also tested in float32
        names = ", ".join(["x", "y", "z", "u"][: len(inputs)])
        self.function: Callable[..., Any] = eval(f"lambda np, {names}: {text}", {"onp": np, "__name__": __name__})

    def __repr__(self) -> str:
        return f"{self.text}  {' '.join([str(d.shape) for d in self.inputs])}"

    def sample(self, seed: int = 0) -> list[Any]:
        """The inputs."""
        rng = np.random.default_rng(seed)
        return [d.sample(rng) for d in self.inputs]


def names(block: str) -> list[str]:
    """Words."""
    return block.split()


def texts(block: str) -> list[str]:
    """Expressions separated by semicolons."""
    return [" ".join(part.split()) for part in block.split(";")]


CASES: list[Case] = []


def case(text: str, *inputs: Draw, shapes: Any = (), differences: bool = False, single: bool = True) -> None:
    """Enter a case. A shape in `shapes` is for the only input, or a tuple of shapes is one for each."""
    wide = tuple([s if s and isinstance(s[0], tuple) else (s,) for s in shapes])
    CASES.append(Case(text, inputs, wide, differences, single))
