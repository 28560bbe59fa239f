"""A function of one number at every index of a long array, f^X."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def f(xp, x):
    """Some arithmetic and two primitives."""
    y = xp.sin(x) * xp.exp(-0.5 * x * x) + x**3
    return y / (1.0 + y * y)


def by_hand(x):
    """In tiles that stay in the cache, over buffers that are kept; x³ by products."""
    out = np.empty_like(x)
    y, t = np.empty((2, 8192))
    for k in range(0, x.size, 8192):
        part, to = x[k : k + 8192], out[k : k + 8192]
        y_, t_ = y[: part.size], t[: part.size]
        np.multiply(part, part, out=t_)
        np.multiply(t_, part, out=y_)
        t_ *= -0.5
        np.exp(t_, out=t_)
        t_ *= np.sin(part, out=to)
        y_ += t_
        np.multiply(y_, y_, out=t_)
        t_ += 1.0
        np.divide(y_, t_, out=to)
    return out


def contestants(n) -> Contestants:
    x = np.random.default_rng(0).normal(size=n)
    ours = rz.compile(lambda x: f(np, x))
    found: Contestants = {"riesz": lambda: ours(x), "hand": lambda: by_hand(x), "NumPy as written": lambda: f(np, x)}
    if j := jax():
        found["JAX"] = in_jax(lambda x: f(j.numpy, x), x)
    if t := torch():
        given = t.from_numpy(x)
        found["torch"] = lambda: f(t, given)
    return found


ROWS = [
    Row("elementwise f^X, {n:,} numbers", contestants, {"riesz": 1 / 1.1}, {"n": 10**6}, {"n": 10**5}, aim_text="level")
]
