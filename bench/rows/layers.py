"""Time to the first gradient of a deep network of different layers: tracing and compiling included, in a process of its own."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, installed, jax, torch

import riesz as rz


def loss(xp, weights, x):
    """Σ of x after the last layer."""
    for W in weights:
        x = xp.tanh(W @ x)
    return xp.sum(x)


def by_hand(weights, x):
    """Forward, and back."""
    xs = [x]
    for W in weights:
        xs.append(np.tanh(W @ xs[-1]))
    found, g = [], np.ones_like(x)
    for W, y, x in zip(reversed(weights), reversed(xs), reversed(xs[:-1]), strict=False):
        d = g * (1.0 - y * y)
        found.append(np.outer(d, x))
        g = W.T @ d
    return found[::-1]


def alone(layers) -> Contestants:
    rng = np.random.default_rng(0)
    weights, x = [rng.normal(size=(8, 8)) / np.sqrt(8) for _ in range(layers)], rng.normal(size=8)
    return {"riesz": lambda: rz.grad(lambda w, x: loss(np, w, x))(weights, x), "hand": lambda: by_hand(weights, x)}


def contestants(layers) -> Contestants:
    found = alone(layers)
    rng = np.random.default_rng(0)
    weights, x = [rng.normal(size=(8, 8)) / np.sqrt(8) for _ in range(layers)], rng.normal(size=8)
    if j := jax():
        there, xj = [j.numpy.asarray(W) for W in weights], j.numpy.asarray(x)
        found["JAX"] = lambda: j.block_until_ready(j.jit(j.grad(lambda w, x: loss(j.numpy, w, x)))(there, xj))
    if t := torch():
        given, xt = [t.from_numpy(W).requires_grad_() for W in weights], t.from_numpy(x)
        found["torch"] = lambda: t.autograd.grad(loss(t, given, xt), given)
    if installed("autograd"):
        import autograd

        found["autograd"] = lambda: autograd.grad(lambda w: loss(autograd.numpy, w, x))(weights)
    return found


ROWS = [
    Row(
        "time to the first gradient, {layers:,} distinct 8×8 tanh layers",
        contestants,
        {"riesz": 900.0},
        {"layers": 1_000},
        {"layers": 60},
        measure="first",
        warm={"layers": 2},
        limits="tracing and two sweeps take about 28 µs of Python for each layer.",
    ),
    Row(
        "time to the first gradient, {layers:,} layers",
        alone,
        {"riesz": 0.4},
        {"layers": 10_000},
        {"layers": 10_000},
        measure="seconds",
        warm={"layers": 2},
        aim_text="≤ 0.4 s",
        limits="tracing and two sweeps take about 28 µs of Python for each layer.",
    ),
]
