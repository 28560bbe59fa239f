"""A function of one number at every index of a long array, f^X."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def f(xp, x):
    """Some arithmetic and two primitives."""
    y = xp.sin(x) * xp.exp(-0.5 * x * x) + x**3
    return y / (1.0 + y * y)


def contestants(n) -> Contestants:
    x = np.random.default_rng(0).normal(size=n)
    ours = rz.compile(lambda x: f(np, x))
    found: Contestants = {"riesz": lambda: ours(x), "hand": lambda: f(np, x)}
    if j := jax():
        found["JAX"] = in_jax(lambda x: f(j.numpy, x), x)
    if t := torch():
        given = t.from_numpy(x)
        found["torch"] = lambda: f(t, given)
    return found


ROWS = [Row("elementwise f^X, {n:,} numbers", contestants, {"riesz": 1 / 1.1}, dict(n=10**6), dict(n=10**5), aim_text="level")]
