"""Gradient of a wide network: only the product of matrices decides."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def loss(xp, weights, biases, x, y):
    """Mean squared error of tanh layers; the last is linear."""
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        x = xp.tanh(x @ W + b)
    return xp.mean((x @ weights[-1] + biases[-1] - y) ** 2)


def by_hand(weights, biases, x, y):
    """Forward, and back."""
    hidden = [x]
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        hidden.append(np.tanh(hidden[-1] @ W + b))
    d = (2.0 / y.size) * (hidden[-1] @ weights[-1] + biases[-1] - y)
    ws, bs = [], []
    for i in range(len(weights) - 1, -1, -1):
        ws.append(hidden[i].T @ d)
        bs.append(d.sum(0))
        if i:
            d = (d @ weights[i].T) * (1.0 - hidden[i] ** 2)
    return ws[::-1], bs[::-1]


def contestants(width, batch, layers) -> Contestants:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(width, width)) / np.sqrt(width) for _ in range(layers)]
    biases = [0.1 * rng.normal(size=width) for _ in range(layers)]
    x, y = rng.normal(size=(2, batch, width))
    ours = rz.compile(rz.grad(lambda w, b, x, y: loss(np, w, b, x, y), (0, 1)))
    found: Contestants = {"riesz": lambda: ours(weights, biases, x, y), "hand": lambda: by_hand(weights, biases, x, y)}
    if j := jax():
        found["JAX"] = in_jax(j.grad(lambda w, b, x, y: loss(j.numpy, w, b, x, y), (0, 1)), weights, biases, x, y)
    if t := torch():
        ws, bs = [[t.from_numpy(a).requires_grad_() for a in part] for part in (weights, biases)]
        xt, yt = t.from_numpy(x), t.from_numpy(y)
        found["torch"] = lambda: t.autograd.grad(loss(t, ws, bs, xt, yt), [*ws, *bs])
    return found


SMALL = {"width": 32, "batch": 16, "layers": 2}
ROWS = [
    Row(
        "MLP gradient, {layers} layers of width {width}, batch {batch}",
        contestants,
        {"riesz": 1 / 1.1},
        {"width": 1024, "batch": 128, "layers": 4},
        {"width": 512, "batch": 128, "layers": 4},
        aim_text="level",
    ),
    Row("small network, {layers} layers of width {width}, batch {batch}", contestants, {"riesz": 0.0}, SMALL, SMALL),
]
