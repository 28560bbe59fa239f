"""The adjoint method: the gradient of ‖A(p)⁻¹b‖² in p, A the tridiagonal Jacobian of a reaction and diffusion problem."""

from __future__ import annotations

from itertools import count

import numpy as np
from contest import Contestants, Row, in_jax, jax
from scipy.linalg import solve_banded

import riesz as rz


def contestants(n) -> Contestants:
    rng = np.random.default_rng(0)
    p, u, b = rng.uniform(0.5, 1.0, n), rng.normal(size=n), rng.normal(size=n)

    def residual(u, p):
        flow = p[1:] * (u[1:] - u[:-1])
        return u + u**3 / 3 - np.concatenate([flow, [0.0]]) + np.concatenate([[0.0], flow])

    gradient = rz.grad(lambda p: np.sum(rz.jacobian(lambda u: residual(u, p))(u).solve(b) ** 2))

    def bands(xp, p):
        """The diagonals below, on and above the main one, each of length n."""
        zero = xp.zeros(1)
        below, above = xp.concatenate([zero, p[1:]]), xp.concatenate([p[1:], zero])
        return -below, 1 + u**2 + below + above, -above

    def by_hand():
        """The matrix is symmetric: the adjoint system has it too."""
        below, middle, above = bands(np, p)
        ab = np.stack([np.roll(above, 1), middle, np.roll(below, -1)])
        x = solve_banded((1, 1), ab, b)
        y = solve_banded((1, 1), ab, 2 * x)
        return np.concatenate([[0.0], -(x[1:] - x[:-1]) * (y[1:] - y[:-1])])

    calls = count()  # a new point each time: a factorisation is kept for the last ones
    found: Contestants = {"riesz": lambda: gradient(p * (1 + 1e-15 * next(calls))), "hand": by_hand}
    if j := jax():
        jnp = j.numpy

        def loss(p, b):
            return jnp.sum(j.lax.linalg.tridiagonal_solve(*bands(jnp, p), b[:, None]) ** 2)

        found["JAX"] = in_jax(j.grad(loss), p, b)
    return found


ROWS = [
    Row(
        "gradient through A(p)⁻¹b, A tridiagonal, n = {n:,}",
        contestants,
        {"riesz": 1.0},
        {"n": 100_000},
        {"n": 1_000},
    )
]
