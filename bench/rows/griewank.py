"""The derivative of x ↦ sin(aᵀx)·b applied to a vector: n + 1 numbers, not n²."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def contestants(n) -> Contestants:
    x, a, b, v = np.random.default_rng(0).normal(size=(4, n)) / np.sqrt(n)
    jacobian = rz.jacobian(lambda x: np.sin(a @ x) * b)
    found: Contestants = {"riesz": lambda: jacobian(x)(v), "hand": lambda: (np.cos(a @ x) * (a @ v)) * b}
    if j := jax():
        found["JAX"] = in_jax(lambda x, v, a, b: j.jvp(lambda x: j.numpy.sin(a @ x) * b, (x,), (v,))[1], x, v, a, b)
    if t := torch():
        from torch.func import jvp

        xt, at, bt, vt = [t.from_numpy(y) for y in (x, a, b, v)]
        found["torch"] = lambda: jvp(lambda x: t.sin(at @ x) * bt, (xt,), (vt,))[1]
    return found


ROWS = [Row("Griewank's b·sin(aᵀx), derivative applied, n = {n:,}", contestants, {"riesz": 1 / 1.1}, dict(n=10**6), dict(n=10**5), aim_text="level")]
