"""Random vectorised NumPy functions: slices, gathers, reshapes, products, sums, windows, selections, control flow, in any order, with shared values.

The same seed gives the same function and arguments. Which steps are taken depends on shapes only, so a function can be traced.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import riesz as rz

LARGE = 120
"""Arrays do not grow beyond about so many numbers."""


@rz.custom_derivative
def bent(x):
    """A function with a rule of its own."""
    return x * np.exp(-x * x)


@bent.derivative
def _(x):
    return lambda dx: (1.0 - 2.0 * x * x) * np.exp(-x * x) * dx


ELEMENTWISE = [
    np.sin,
    np.tanh,
    lambda x: x * np.tanh(x),
    lambda x: 0.5 * x,
    lambda x: 1.0 / (2.0 + x * x),
    lambda x: x,
    np.cos,
    bent,
]


# -- steps: (rng, x, axis, n = x.shape[axis], another value) → array ------------------------------------------------------


def _strided(rng, x, axis, n, y):
    step = int(rng.choice([1, 2, 3, -1, -2]))
    low = int(rng.integers(n)) if n else 0
    return x[(slice(None),) * axis + (slice(low, None, step),)]


def _taken(rng, x, axis, n, y):
    return (
        np.take(x, rng.integers(-n, n, size=tuple(rng.integers(1, 5, size=rng.integers(1, 3)))), axis=axis) if n else x
    )


def _mask(rng, x, axis, n, y):
    return np.compress(rng.integers(2, size=n).astype(bool), x, axis=axis)


def _masked(rng, x, axis, n, y):
    return x[rng.integers(2, size=x.shape).astype(bool)]


def _gathered(rng, x, axis, n, y):
    if x.ndim < 2 or not x.size:
        return x
    count = int(rng.integers(1, 7))
    i, j = (rng.integers(0, k, size=count) for k in x.shape[:2])
    return x[i, j]


def _reshaped(rng, x, axis, n, y):
    size = math.prod(x.shape)
    divisors = [d for d in range(1, size + 1) if size % d == 0] or [1]
    d = int(rng.choice(divisors))
    return x.reshape(-1) if rng.integers(3) == 0 else x.reshape((d, size // d)) if size else x.reshape((0, 3))


def _matrix(rng, x, axis, n, y):
    return np.tensordot(rng.normal(size=(int(rng.integers(1, 5)), x.shape[0])) / (1 + x.shape[0]), x, axes=(1, 0))


def _times(rng, x, axis, n, y):
    return x * y if np.shape(y) == x.shape else x * np.tanh(np.sum(y))


def _where(rng, x, axis, n, y):
    return np.where(rng.normal(size=x.shape) > 0, x, np.sin(x))


def _guarded(rng, x, axis, n, y):
    """Nan where the branch is not taken."""
    which = int(rng.integers(5))
    if which == 0:
        return np.where(x > 0.1, np.log(x), x)
    if which == 1:
        return np.where(x > 0.1, np.sqrt(x) * x, 0.0)
    if which == 2:
        return np.maximum(x, 0.1) * np.where(x < -0.1, 1 / np.sqrt(-x), 1.0)
    if which == 3:
        return np.clip(x, -0.5, 0.7)
    return np.sqrt(np.maximum(x, 0.2)) * x


def _difference(rng, x, axis, n, y):
    head = (slice(None),) * axis
    return x[(*head, slice(1, None))] - x[(*head, slice(None, -1))] * rng.normal()


def _windowed(rng, x, axis, n, y):
    return (
        np.convolve(x, rng.normal(size=int(rng.integers(1, 4))), ["full", "same", "valid"][rng.integers(3)])
        if x.ndim == 1 and n
        else x
    )


def _outer(rng, x, axis, n, y):
    return np.outer(x, np.sin(x)) if 0 < math.prod(x.shape) < 6 else x


def _softmax(rng, x, axis, n, y):
    e = np.exp(np.tanh(x))
    return e / e.sum(axis=axis, keepdims=True) if n else e


def _einsum(rng, x, axis, n, y):
    ways = {
        3: ["bij,bkj->bik", "bij,bij->bi", "bij,cij->bc", "bij,bij->ij"],
        2: ["bi,bj->bij", "bi,bi->b", "bi,bj->ij"],
        1: ["i,i->i", "i,j->ij"],
    }
    return np.einsum(ways[x.ndim][rng.integers(len(ways[x.ndim]))], x, np.cos(x)) if x.ndim in ways else x


def _diagonal(rng, x, axis, n, y):
    if x.ndim < 2:
        return x
    k = int(rng.integers(-1, 2))
    return np.diagonal(x, k) if rng.integers(2) else np.trace(x, k) * 0.5


def _diagflat(rng, x, axis, n, y):
    return np.diag(x) if x.ndim == 1 and n < 8 else x


def _padded(rng, x, axis, n, y):
    width = [(int(a), int(b)) for a, b in rng.integers(0, 3, size=(x.ndim, 2))]
    return np.pad(x, width, mode=str(rng.choice(["constant", "edge", "wrap"])) if all(x.shape) else "constant")


def _repeated(rng, x, axis, n, y):
    return np.tile(x, int(rng.integers(1, 4))) if rng.integers(2) else np.repeat(x, int(rng.integers(1, 4)), axis=axis)


def _segments(rng, x, axis, n, y):
    ids = rng.integers(0, 4, size=x.shape[0])
    if x.ndim == 1:
        return np.bincount(ids, weights=x, minlength=5)
    return np.einsum("pk,p...->k...", np.eye(4)[ids], x)


def _fourier(rng, x, axis, n, y):
    z = np.fft.fft(x, axis=axis) if n else x
    return z.real + z.imag if n else x


def _sorted(rng, x, axis, n, y):
    if not n:
        return x
    which = int(rng.integers(3))
    if which == 0:
        return np.sort(x, axis=axis)
    if which == 1:
        return np.take_along_axis(np.sin(x), np.argsort(x, axis=axis), axis=axis)
    return np.max(x, axis=axis, keepdims=True) - x


def _looped(rng, x, axis, n, y):
    carry, rows = rz.loop(lambda c, t: (np.tanh(c) * t + 0.1 * c, c.sum() * t), x, rng.normal(size=3))
    return carry if rng.integers(2) else rows


def _conditional(rng, x, axis, n, y):
    return rz.cond(np.sum(x) > 0.0, lambda u: np.sin(u), lambda u: 0.5 * u, x)


STEPS: dict[str, Any] = {
    "elementwise": lambda rng, x, axis, n, y: ELEMENTWISE[rng.integers(len(ELEMENTWISE))](x),
    "elementwise again": lambda rng, x, axis, n, y: ELEMENTWISE[rng.integers(len(ELEMENTWISE))](x),
    "sum": lambda rng, x, axis, n, y: x.sum(axis=axis),
    "mean": lambda rng, x, axis, n, y: x + x.mean(axis=axis, keepdims=True) if n else x,
    "slice": _strided,
    "slice again": _strided,
    "take": _taken,
    "compress": _mask,
    "mask": _masked,
    "gather": _gathered,
    "transpose": lambda rng, x, axis, n, y: np.transpose(x, rng.permutation(x.ndim)),
    "reshape": _reshaped,
    "matrix": _matrix,
    "scale": lambda rng, x, axis, n, y: x * rng.normal(size=x.shape[-1]),
    "times": _times,
    "concatenate": lambda rng, x, axis, n, y: np.concatenate(
        [x, ELEMENTWISE[rng.integers(len(ELEMENTWISE))](x)], axis=axis
    ),
    "where": _where,
    "guarded": _guarded,
    "roll": lambda rng, x, axis, n, y: np.roll(x, int(rng.integers(n + 1)), axis=axis),
    "difference": _difference,
    "convolve": _windowed,
    "outer": _outer,
    "stack": lambda rng, x, axis, n, y: np.stack([x, x * np.cos(x)], axis=int(rng.integers(x.ndim + 1))),
    "softmax": _softmax,
    "einsum": _einsum,
    "diagonal": _diagonal,
    "diag": _diagflat,
    "pad": _padded,
    "repeat": _repeated,
    "segments": _segments,
    "cumsum": lambda rng, x, axis, n, y: np.cumsum(x, axis=axis),
    "fourier": _fourier,
    "sort": _sorted,
    "loop": _looped,
    "cond": _conditional,
    "axis": lambda rng, x, axis, n, y: np.expand_dims(x, axis),
    "keep": lambda rng, x, axis, n, y: x.sum(axis=axis, keepdims=True) * x,
}
OPAQUE = ("fourier", "sort", "loop", "cond")
"""Steps that have no entries, or whose positions depend on the point."""


def random_function(
    seed: int, inputs: int = 1, depth: int = 8, without: tuple[str, ...] = (), single: bool = False
) -> tuple[Any, list[Any]]:
    """A function of some arrays, and arguments for it; the same for the same seed. `single`: it gives one array."""
    shapes = [_shape(np.random.default_rng((seed, i))) for i in range(inputs)]
    args: list[Any] = [
        np.random.default_rng((seed, 100 + i)).normal(size=s) if s else float(np.sin(seed + i))
        for i, s in enumerate(shapes)
    ]
    names = [name for name in STEPS if name not in without]

    def f(*xs: Any) -> Any:
        rng = np.random.default_rng((seed, 7))
        pool = list(xs)
        for _ in range(rng.integers(1, depth + 1)):
            pool.append(_step(rng, pool, names))
        if single:
            return pool[-1]
        results = pool[-1], pool[-1 - int(rng.integers(min(3, len(pool))))]
        return [results[0], results[0], results, {"last": results[0], "other": results[1]}][seed % 4]

    return f, args


def _shape(rng: Any) -> tuple[int, ...]:
    sizes = rng.choice(
        [0, 1, 2, 3, 4, 5], p=[0.02, 0.13, 0.2, 0.25, 0.2, 0.2], size=rng.choice([0, 1, 2, 3], p=[0.1, 0.3, 0.4, 0.2])
    )
    return tuple([int(n) for n in sizes])


def _step(rng: Any, pool: list[Any], names: list[str]) -> Any:
    recent = pool[-3:]
    x = recent[rng.integers(len(recent))]
    name = names[rng.integers(len(names))]
    if np.ndim(x) == 0:
        return x * rng.normal(size=int(rng.integers(1, 5))) if rng.integers(2) else np.sin(x)
    axis = int(rng.integers(x.ndim))
    found = STEPS[name](rng, x, axis, x.shape[axis], pool[rng.integers(len(pool))])
    return found if math.prod(np.shape(found)) <= LARGE and np.ndim(found) <= 4 else np.sin(x)
