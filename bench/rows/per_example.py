"""Squared norm of each example's gradient: a network's parameters, a batch of examples."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def loss(xp, weights, x, y):
    """Of one example: tanh layers, squared error."""
    for W in weights[:-1]:
        x = xp.tanh(W @ x)
    return 0.5 * xp.sum((weights[-1] @ x - y) ** 2)


def by_hand(weights, X, Y):
    """‖δ ⊗ h‖² = ‖δ‖²·‖h‖²: one pass forward and one back."""
    hidden = [X]
    for W in weights[:-1]:
        hidden.append(np.tanh(hidden[-1] @ W.T))
    delta = hidden[-1] @ weights[-1].T - Y
    total = np.zeros(len(X))
    for i in range(len(weights) - 1, -1, -1):
        total += np.einsum("bi,bi->b", delta, delta) * np.einsum("bi,bi->b", hidden[i], hidden[i])
        if i:
            delta = (delta @ weights[i]) * (1.0 - hidden[i] ** 2)
    return total


def contestants(layers, width, batch) -> Contestants:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(width, width)) / np.sqrt(width) for _ in range(layers)]
    X, Y = rng.normal(size=(2, batch, width))

    def norms(weights, X, Y):
        gradients = rz.vmap(rz.grad(lambda w, x, y: loss(np, w, x, y)), (None, 0, 0))(weights, X, Y)
        return sum([np.sum(g**2, axis=(1, 2)) for g in gradients])

    ours = rz.compile(norms)
    found: Contestants = {"riesz": lambda: ours(weights, X, Y), "hand": lambda: by_hand(weights, X, Y)}
    if j := jax():

        def norms_in_jax(weights, X, Y):
            gradients = j.vmap(j.grad(lambda w, x, y: loss(j.numpy, w, x, y)), (None, 0, 0))(weights, X, Y)
            return sum([j.numpy.sum(g**2, axis=(1, 2)) for g in gradients])

        found["JAX"] = in_jax(norms_in_jax, weights, X, Y)
    if t := torch():
        from torch.func import grad, vmap

        given = [t.from_numpy(W) for W in weights], t.from_numpy(X), t.from_numpy(Y)

        def norms_in_torch():
            gradients = vmap(grad(lambda w, x, y: loss(t, w, x, y)), (None, 0, 0))(*given)
            return sum([(g**2).sum((1, 2)) for g in gradients])

        found["torch"] = norms_in_torch
    return found


ROWS = [
    Row(
        "per-example squared gradient norms, MLP {layers} × {width}, batch {batch}",
        contestants,
        {"riesz": 3.5},
        {"layers": 4, "width": 512, "batch": 128},
        {"layers": 4, "width": 256, "batch": 64},
        limits="the matrix products of one pass forward and back are most of it; by hand it takes four fifths of the time.",
    )
]
