"""Gradient of an LSTM run along a sequence as a loop that is one step of the program, not unrolled."""

from __future__ import annotations

import numpy as np
import scipy.special
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def cell(xp, expit, W, b, state, x):
    """The new hidden and cell state."""
    h, c = state
    forget, admit, emit, change = xp.split(xp.concatenate([x, h], axis=-1) @ W + b, 4, axis=-1)
    c = expit(forget) * c + expit(admit) * xp.tanh(change)
    return expit(emit) * xp.tanh(c), c


def by_hand(W, b, xs):
    """Forward with everything kept, and back."""
    (time, batch, size), hidden = xs.shape, W.shape[1] // 4
    joined, gates = np.empty((time, batch, size + hidden)), np.empty((time, batch, 4 * hidden))
    cells, tanhs = np.zeros((time + 1, batch, hidden)), np.empty((time, batch, hidden))
    h = np.zeros((batch, hidden))
    hs = np.empty((time, batch, hidden))
    for t in range(time):
        joined[t, :, :size], joined[t, :, size:] = xs[t], h
        z = joined[t] @ W + b
        gates[t, :, : 3 * hidden] = scipy.special.expit(z[:, : 3 * hidden])
        gates[t, :, 3 * hidden :] = np.tanh(z[:, 3 * hidden :])
        f, i, o, g = np.split(gates[t], 4, axis=-1)
        cells[t + 1] = f * cells[t] + i * g
        tanhs[t] = np.tanh(cells[t + 1])
        h = hs[t] = o * tanhs[t]
    scale = 2.0 / hs.size
    dz, dh, dc = np.empty_like(gates), np.zeros((batch, hidden)), np.zeros((batch, hidden))
    Wh = np.ascontiguousarray(W[size:].T)
    for t in range(time - 1, -1, -1):
        f, i, o, g = np.split(gates[t], 4, axis=-1)
        dh = dh + scale * hs[t]
        dc = dc + dh * o * (1.0 - tanhs[t] ** 2)
        np.concatenate(
            [dc * cells[t] * f * (1 - f), dc * g * i * (1 - i), dh * tanhs[t] * o * (1 - o), dc * i * (1 - g * g)],
            axis=-1,
            out=dz[t],
        )
        dc = dc * f
        dh = dz[t] @ Wh
    return joined.reshape(-1, size + hidden).T @ dz.reshape(-1, 4 * hidden), dz.sum((0, 1))


def contestants(time, batch, size) -> Contestants:
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(2 * size, 4 * size)) / np.sqrt(2 * size), np.zeros(4 * size)
    xs = rng.normal(size=(time, batch, size))
    start = (np.zeros((batch, size)), np.zeros((batch, size)))

    def loss(W, b, xs):
        def step(state, x):
            h, c = cell(np, scipy.special.expit, W, b, state, x)
            return (h, c), h

        return np.mean(rz.loop(step, start, xs)[1] ** 2)

    ours = rz.compile(rz.grad(loss, (0, 1)))
    found: Contestants = {"riesz": lambda: ours(W, b, xs), "hand": lambda: by_hand(W, b, xs)}
    if j := jax():

        def loss_in_jax(W, b, xs):
            def step(state, x):
                h, c = cell(j.numpy, j.nn.sigmoid, W, b, state, x)
                return (h, c), h

            return j.numpy.mean(j.lax.scan(step, start, xs)[1] ** 2)

        found["JAX"] = in_jax(j.grad(loss_in_jax, (0, 1)), W, b, xs)
    if t := torch():
        Wt, bt, xt = t.from_numpy(W).requires_grad_(), t.from_numpy(b).requires_grad_(), t.from_numpy(xs)
        zeros = t.zeros((batch, size), dtype=xt.dtype)

        def in_torch():
            state, hs = (zeros, zeros), []
            for x in xt:
                h, c = state
                f, i, o, g = t.chunk(t.cat([x, h], -1) @ Wt + bt, 4, -1)
                c = t.sigmoid(f) * c + t.sigmoid(i) * t.tanh(g)
                state = t.sigmoid(o) * t.tanh(c), c
                hs.append(state[0])
            return t.autograd.grad((t.stack(hs) ** 2).mean(), (Wt, bt))

        found["torch"] = in_torch
    return found


ROWS = [
    Row(
        "LSTM as a scan, {time} steps, batch {batch}, width {size}",
        contestants,
        {"riesz": 1 / 1.1},
        {"time": 100, "batch": 32, "size": 128},
        {"time": 50, "batch": 16, "size": 64},
        aim_text="level",
    )
]
