"""The derivative of x ↦ sin(aᵀx)·b: n + 1 numbers, not n². Applied to a vector once it is there, and with the value, all included."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def f(xp, x, a, b):
    return xp.sin(a @ x) * b


def vectors(n):
    return np.random.default_rng(0).normal(size=(4, n)) / np.sqrt(n)


def applied(n) -> Contestants:
    x, a, b, v = vectors(n)
    _, L = rz.linearize(lambda x: f(np, x, a, b), x)
    slope = np.cos(a @ x)
    found: Contestants = {"riesz": lambda: L(v), "hand": lambda: (slope * (a @ v)) * b}
    if j := jax():
        xj, aj, bj, vj = [j.numpy.asarray(y) for y in (x, a, b, v)]
        push = j.jit(j.linearize(lambda x: f(j.numpy, x, aj, bj), xj)[1])
        found["JAX"] = lambda: push(vj).block_until_ready()
    return found


def pushed(n) -> Contestants:
    x, a, b, v = vectors(n)
    push = rz.compile(lambda x, v, a, b: rz.jvp(lambda x: f(np, x, a, b), (x,), (v,)))
    found: Contestants = {
        "riesz": lambda: push(x, v, a, b),
        "hand": lambda: (np.sin(a @ x) * b, (np.cos(a @ x) * (a @ v)) * b),
    }
    if j := jax():
        found["JAX"] = in_jax(lambda x, v, a, b: j.jvp(lambda x: f(j.numpy, x, a, b), (x,), (v,)), x, v, a, b)
    if t := torch():
        from torch.func import jvp

        xt, at, bt, vt = [t.from_numpy(y) for y in (x, a, b, v)]
        found["torch"] = lambda: jvp(lambda x: f(t, x, at, bt), (xt,), (vt,))
    return found


LEVEL = {"riesz": 1 / 1.1}
SIZES = {"n": 10**6}, {"n": 10**5}
ROWS = [
    Row("Griewank's b·sin(aᵀx), derivative applied, n = {n:,}", applied, LEVEL, *SIZES, aim_text="level"),
    Row("Griewank's b·sin(aᵀx), value and derivative, n = {n:,}", pushed, LEVEL, *SIZES, aim_text="level"),
]
