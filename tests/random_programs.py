"""Random vectorised NumPy functions: slices, gathers, reshapes, products, sums, windows, selections, in any order and with shared values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ELEMENTWISE = [np.sin, np.tanh, lambda x: x * x, lambda x: 0.5 * x, lambda x: 1.0 / (2.0 + x * x), lambda x: x, np.cos]


def random_function(seed: int, inputs: int = 1, depth: int = 8) -> tuple[Any, list[np.ndarray]]:
    """A function of some arrays, and arguments for it; the same for the same seed."""
    shapes = [_shape(np.random.default_rng((seed, i))) for i in range(inputs)]
    args = [np.random.default_rng((seed, 100 + i)).normal(size=s) for i, s in enumerate(shapes)]

    def f(*xs: Any) -> Any:
        rng = np.random.default_rng((seed, 7))
        pool = list(xs)
        for _ in range(rng.integers(1, depth + 1)):
            pool.append(_step(rng, pool))
        return pool[-1]

    return f, args


def _shape(rng: Any) -> tuple[int, ...]:
    return tuple([int(n) for n in rng.integers(1, 6, size=rng.integers(1, 4))])


def _step(rng: Any, pool: list[Any]) -> Any:
    recent = pool[-3:]
    x = recent[rng.integers(len(recent))]
    choice = rng.integers(20)
    if x.ndim == 0:
        return x * rng.normal(size=int(rng.integers(1, 5))) if choice % 2 else np.sin(x)
    axis = int(rng.integers(x.ndim))
    n = x.shape[axis]
    if choice < 3:
        return ELEMENTWISE[rng.integers(len(ELEMENTWISE))](x)
    if choice == 3:
        return x.sum(axis=axis)
    if choice == 4:
        return x + x.mean(axis=axis, keepdims=True)
    if choice == 5:
        low, step = int(rng.integers(n)), int(rng.choice([1, 1, 2, -1]))
        return x[(slice(None),) * axis + (slice(low, None, step) if step > 0 else slice(None, None, -1),)]
    if choice == 6:
        index = rng.integers(0, n, size=tuple(rng.integers(1, 5, size=rng.integers(1, 3))))
        return np.take(x, index, axis=axis)
    if choice == 7:
        return np.transpose(x, rng.permutation(x.ndim))
    if choice == 8:
        return x.reshape(-1) if rng.integers(2) else x.reshape(_split(rng, math.prod(x.shape)))
    if choice == 9:
        w = rng.normal(size=(int(rng.integers(1, 5)), x.shape[0]))
        return np.tensordot(w, x, axes=(1, 0))
    if choice == 10:
        return x * rng.normal(size=x.shape[-1])
    if choice == 11:
        y = pool[rng.integers(len(pool))]
        return x * y if y.shape == x.shape else x * y.sum()
    if choice == 12:
        return np.concatenate([x, ELEMENTWISE[rng.integers(len(ELEMENTWISE))](x)], axis=axis)
    if choice == 13:
        return np.where(rng.normal(size=x.shape) > 0, x, np.sin(x))
    if choice == 14:
        return np.roll(x, int(rng.integers(n)), axis=axis)
    if choice == 15 and n > 1:
        head = (slice(None),) * axis
        return x[(*head, slice(1, None))] - x[(*head, slice(None, -1))]
    if choice == 16 and x.ndim == 1:
        return np.convolve(x, rng.normal(size=int(rng.integers(1, 4))), ["full", "same", "valid"][rng.integers(3)])
    if choice == 17 and x.ndim == 1:
        return np.outer(x, np.sin(x)) if x.size < 6 else np.cumsum(x)
    if choice == 18:
        return np.stack([x, x * x], axis=int(rng.integers(x.ndim + 1))) if x.size < 60 else x
    if choice == 19:
        e = np.exp(x - x.mean())
        return e / e.sum(axis=axis, keepdims=True)
    return np.expand_dims(x, axis) if x.ndim < 4 else x


def _split(rng: Any, n: int) -> tuple[int, ...]:
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    d = int(rng.choice(divisors))
    return (d, n // d)
