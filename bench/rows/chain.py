"""The gradient of ½‖ABCx‖² in B, an outer product of two vectors: multiplied out, and as its factors; and the chain itself."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def half_norm(A, B, C, x):
    """½‖ABCx‖², as one writes it."""
    y = A @ B @ C @ x
    return 0.5 * (y * y).sum()


def matrices(n):
    rng = np.random.default_rng(0)
    return [*(rng.normal(size=(3, n, n)) / np.sqrt(n)), rng.normal(size=n)]


def factors(A, B, C, x):
    """Aᵀy and Cx."""
    z = C @ x
    return A.T @ (A @ (B @ z)), z


def contestants(n) -> Contestants:
    p = matrices(n)
    dense, factored = rz.compile(rz.grad(half_norm, 1)), rz.grad(half_norm, 1, factored=True)
    found: Contestants = {
        "riesz, factored": lambda: factored(*p),
        "riesz, dense": lambda: dense(*p),
        "hand": lambda: np.outer(*factors(*p)),
        "hand, factored": lambda: factors(*p),
    }
    if j := jax():
        found["JAX"] = in_jax(j.grad(half_norm, 1), *p)
    if t := torch():
        given = [t.from_numpy(a) for a in p]
        given[1].requires_grad_()
        found["torch"] = lambda: t.autograd.grad(half_norm(*given), given[1])[0]
    return found


def value(n) -> Contestants:
    A, B, C, x = p = matrices(n)
    ours = rz.compile(lambda A, B, C, x: A @ B @ C @ x)
    found: Contestants = {"riesz": lambda: ours(*p), "hand": lambda: A @ (B @ (C @ x))}
    if jax():
        found["JAX"] = in_jax(lambda A, B, C, x: A @ B @ C @ x, *p)
    return found


def maps(n) -> Contestants:
    """The derivative in B, and its adjoint."""
    A, B, C, x = matrices(n)
    L = rz.linearize(lambda B: A @ B @ C @ x, B)[1]
    back, z = L.H, C @ x
    found: Contestants = {"riesz": lambda: (L(B), back(x)), "hand": lambda: (A @ (B @ z), np.outer(A.T @ x, z))}
    if j := jax():
        Aj, Bj, Cj, xj = [j.numpy.asarray(a) for a in (A, B, C, x)]
        push = j.jit(j.linearize(lambda B: Aj @ B @ Cj @ xj, Bj)[1])
        pull = j.jit(j.vjp(lambda B: Aj @ B @ Cj @ xj, Bj)[1])
        found["JAX"] = lambda: j.block_until_ready((push(Bj), pull(xj)[0]))
    return found


def multiplied(name, result):
    return np.outer(*result) if name == "hand, factored" else result


ROWS = [
    Row(
        "∇_B ½‖ABCx‖², n = {n}",
        contestants,
        {"riesz, factored": 100.0, "riesz, dense": 60.0},
        {"n": 1000},
        {"n": 400},
        compared=multiplied,
    ),
    Row("A @ B @ C @ x, n = {n}", value, {"riesz": 0.0}, {"n": 1000}, {"n": 400}),
    Row("derivative of ABCx in B and its adjoint, applied, n = {n}", maps, {"riesz": 0.0}, {"n": 1000}, {"n": 400}),
]
