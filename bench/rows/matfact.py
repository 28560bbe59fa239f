"""The Hessian of ‖T − UVᵀ‖² in U, times a vector."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def contestants(n, k) -> Contestants:
    rng = np.random.default_rng(0)
    T, (U, V, D) = rng.normal(size=(n, n)), rng.normal(size=(3, n, k))
    hessian = rz.hessian(lambda U, V: np.sum((T - U @ V.T) ** 2))
    H = hessian(U, V).simplify()
    product = rz.compile(lambda U, V, D: rz.hvp(lambda U: np.sum((T - U @ V.T) ** 2), (U,), (D,)))
    found: Contestants = {
        "riesz": lambda: H(D),
        "riesz, compiled hvp": lambda: product(U, V, D),
        "hand": lambda: 2.0 * (D @ (V.T @ V)),
    }
    if j := jax():
        jnp = j.numpy
        found["JAX"] = in_jax(
            lambda U, V, D, T: j.jvp(j.grad(lambda U: jnp.sum((T - U @ V.T) ** 2)), (U,), (D,))[1], U, V, D, T
        )
    if t := torch():
        from torch.func import grad, jvp

        Tt, Ut, Vt, Dt = [t.from_numpy(a) for a in (T, U, V, D)]
        found["torch"] = lambda: jvp(grad(lambda U: ((Tt - U @ Vt.T) ** 2).sum()), (Ut,), (Dt,))[1]
    return found


ROWS = [
    Row(
        "Hessian of ‖T − UVᵀ‖² times vector, n = {n}, k = {k}",
        contestants,
        {"riesz": 50.0, "riesz, compiled hvp": 50.0},
        {"n": 1000, "k": 5},
        {"n": 1000, "k": 5},
        limits="a product with a transposed 5×5 matrix takes NumPy 3 µs longer than with one in order.",
    )
]
