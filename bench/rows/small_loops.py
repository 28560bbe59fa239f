"""Gradients of loops over time with a small state: integrators, filters, hidden Markov models, rollouts, small networks.

What is written by hand is a loop on NumPy's arrays with its adjoint, or differentiated by a complex step: exact, and one run for each parameter.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from contest import Contestants, Row, in_jax, jax

import riesz as rz
from riesz.backends.native import native_backend, native_loops
from riesz.backends.numba import numba_backend
from riesz.programs.axis import components


@contextmanager
def without_machine_code() -> Generator[None]:
    """As it is where llvmlite and Numba are not installed, for code that is written meanwhile."""
    asked = [(module, "machine_code_here") for module in (native_loops, native_backend)]
    asked += [(module, "numba_installed") for module in (numba_backend, components)]
    kept = [getattr(module, name) for module, name in asked]
    for module, name in asked:
        setattr(module, name, lambda: False)
    try:
        yield
    finally:
        for (module, name), before in zip(asked, kept, strict=True):
            setattr(module, name, before)


def ours(f: Any, *args: Any) -> Contestants:
    """Compiled, plain, and compiled without Numba. Each is called once: that is when code is written."""
    compiled, plain, alone = rz.compile(f), f, rz.compile(f)
    with without_machine_code():
        alone(*args)
    return {
        "riesz, compiled": lambda: compiled(*args),
        "riesz, plain": lambda: plain(*args),
        "riesz, without Numba": lambda: alone(*args),
    }


def played(loss: Any, by_hand: Any, *args: Any) -> Contestants:
    """The gradient of loss(xp, loop, …): xp is NumPy or jax.numpy, loop is rz.loop or lax.scan."""
    found = ours(rz.grad(lambda *xs: loss(np, rz.loop, *xs)), *args)
    found["hand"] = lambda: by_hand(*args)
    if j := jax():
        found["JAX"] = in_jax(j.grad(lambda *xs: loss(j.numpy, j.lax.scan, *xs)), *args)
    return found


def plain_loop(step: Any, state: Any, xs: Any, length: int | None = None) -> Any:
    """What rz.loop means."""
    ys = []
    for t in range(len(xs) if length is None else length):
        state, y = step(state, None if xs is None else xs[t])
        ys.append(y)
    return state, None if ys[0] is None else np.array(ys)


def complex_step(loss: Any) -> Any:
    """The gradient by steps along i, each parameter in turn."""

    def gradient(x: Any) -> Any:
        steps = x + 1e-30j * np.eye(x.size)
        return np.array([loss(np, plain_loop, s).imag for s in steps]) / 1e-30

    return gradient


# -- an integrator ------------------------------------------------------------------------------------------


def predators(xp, p, y):
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def pulled(p, y, v):
    """The adjoint of `predators`: cotangents of p and y."""
    a, b = v
    dy = np.array([a * (p[0] - p[1] * y[1]) + b * p[2] * y[1], -a * p[1] * y[0] + b * (p[2] * y[0] - p[3])])
    return np.array([a * y[0], -a * y[0] * y[1], b * y[0] * y[1], -b * y[1]]), dy


H = 0.01


def trajectory(xp, loop, p, data):
    def step(y, d):
        k1 = predators(xp, p, y)
        k2 = predators(xp, p, y + 0.5 * H * k1)
        k3 = predators(xp, p, y + 0.5 * H * k2)
        k4 = predators(xp, p, y + H * k3)
        y = y + (H / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, xp.sum((y - d) ** 2)

    return xp.sum(loop(step, xp.asarray([1.0, 0.5]), data)[1])


def trajectory_by_hand(p, data):
    """Forward with all stages kept, and back."""
    f, y, kept = (lambda y: predators(np, p, y)), np.array([1.0, 0.5]), []
    for d in data:
        y2 = y + 0.5 * H * (k1 := f(y))
        y3 = y + 0.5 * H * (k2 := f(y2))
        y4 = y + H * (k3 := f(y3))
        after = y + (H / 6) * (k1 + 2 * k2 + 2 * k3 + f(y4))
        kept.append((y, y2, y3, y4, 2 * (after - d)))
        y = after
    dp, dy = np.zeros_like(p), np.zeros_like(y)
    for y, y2, y3, y4, residual in reversed(kept):
        dy = dy + residual
        g4, d4 = pulled(p, y4, dy * (H / 6))
        g3, d3 = pulled(p, y3, dy * (H / 3) + H * d4)
        g2, d2 = pulled(p, y2, dy * (H / 3) + 0.5 * H * d3)
        g1, d1 = pulled(p, y, dy * (H / 6) + 0.5 * H * d2)
        dp, dy = dp + g1 + g2 + g3 + g4, dy + d1 + d2 + d3 + d4
    return dp


P = np.array([1.1, 0.4, 0.1, 0.4])


def integrator(rounds) -> Contestants:
    data = np.random.default_rng(0).normal(size=(rounds, 2))
    return played(lambda xp, loop, p: trajectory(xp, loop, p, data), lambda p: trajectory_by_hand(p, data), P)


def second(rounds, whole) -> Contestants:
    """A product with the Hessian of the integrator's loss, or all of it."""
    data, v = np.random.default_rng(0).normal(size=(rounds, 2)), np.array([1.0, -0.5, 2.0, 0.3])
    loss = lambda p: trajectory(np, rz.loop, p, data)  # noqa: E731
    product = lambda p, v: rz.hvp(loss, (p,), (v,))  # noqa: E731
    matrix = lambda p: rz.hessian(loss)(p).to_dense()  # noqa: E731
    found = ours(matrix, P) if whole else ours(product, P, v)
    by_hand = lambda v: trajectory_by_hand(P + 1e-30j * v, data).imag / 1e-30  # noqa: E731
    found["hand"] = lambda: np.array([by_hand(e) for e in np.eye(4)]) if whole else by_hand(v)
    if j := jax():
        scan = lambda p: trajectory(j.numpy, j.lax.scan, p, data)  # noqa: E731
        pushed = lambda p, v: j.jvp(j.grad(scan), (p,), (v,))[1]  # noqa: E731
        found["JAX"] = in_jax(j.hessian(scan), P) if whole else in_jax(pushed, P, v)
    return found


def batch(rounds, count) -> Contestants:
    """Gradients of many trajectories, by vmap."""
    rng = np.random.default_rng(0)
    data, points = rng.normal(size=(rounds, 2)), P + 0.01 * rng.normal(size=(count, 4))
    found = ours(rz.vmap(rz.grad(lambda p: trajectory(np, rz.loop, p, data))), points)
    found["hand"] = lambda: np.array([trajectory_by_hand(p, data) for p in points])
    if j := jax():
        found["JAX"] = in_jax(j.vmap(j.grad(lambda p: trajectory(j.numpy, j.lax.scan, p, data))), points)
    return found


# -- filters ------------------------------------------------------------------------------------------------


def kalman(rounds, states, observed) -> Contestants:
    move, look = np.eye(states) + 0.1 * np.eye(states, k=1), np.eye(observed, states)
    data = np.random.default_rng(0).normal(size=(rounds, observed))

    def loss(xp, loop, p):
        noise, spread = xp.exp(p[0]) * np.eye(states), xp.exp(p[1]) * np.eye(observed)

        def step(state, y):
            m, V = state
            m, V = move @ m, move @ V @ move.T + noise
            S, e = look @ V @ look.T + spread, y - look @ m
            K = xp.linalg.solve(S, look @ V).T
            fit = e @ xp.linalg.solve(S, e) + xp.log(xp.linalg.det(S))
            return (m + K @ e, V - K @ S @ K.T), 0.5 * fit

        return xp.sum(loop(step, (0.0 * p[0] * np.ones(states), np.eye(states) + 0.0 * p[0]), data)[1])

    return played(loss, complex_step(loss), np.array([-1.0, 0.3]))


def markov(rounds, states) -> Contestants:
    seen = np.random.default_rng(0).integers(0, 3, rounds)
    p = np.random.default_rng(1).normal(size=states * (states + 3))

    def loss(xp, loop, p):
        moves, shows = p[: states**2].reshape(states, states), p[states**2 :].reshape(states, 3)
        moves = moves - xp.log(xp.sum(xp.exp(moves), axis=1, keepdims=True))
        shows = shows - xp.log(xp.sum(xp.exp(shows), axis=1, keepdims=True))
        given = shows.T[seen]

        def step(a, e):
            s = a[:, None] + moves
            top = s[:1] if np.iscomplexobj(p) else xp.max(s, axis=0, keepdims=True)
            return top[0] + xp.log(xp.sum(xp.exp(s - top), axis=0)) + e, None

        a, _ = loop(step, given[0] - np.log(states), given[1:])
        return xp.log(xp.sum(xp.exp(a - a[0]))) + a[0]

    return played(loss, complex_step(loss), p)


# -- rollouts and networks ----------------------------------------------------------------------------------


def cart_pole(rounds) -> Contestants:
    def loss(xp, loop, w):
        def step(s, _):
            x, v, angle, turn = s
            force = 10 * xp.tanh(w[0] * x + w[1] * v + w[2] * angle + w[3] * turn)
            sine, cosine = xp.sin(angle), xp.cos(angle)
            push = (force + 0.05 * turn * turn * sine) / 1.1
            faster = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
            along = push - 0.05 * faster * cosine / 1.1
            s = xp.stack([x + 0.02 * v, v + 0.02 * along, angle + 0.02 * turn, turn + 0.02 * faster])
            return s, xp.sum(s * s)

        return xp.sum(loop(step, xp.asarray([0.1, 0.0, 0.05, 0.0]) + 0.0 * w, None, length=rounds)[1])

    return played(loss, complex_step(loss), np.array([1.0, 2.0, 20.0, 3.0]))


def recurrent(rounds, width) -> Contestants:
    rng = np.random.default_rng(0)
    data, W = rng.normal(size=(rounds, width)), 0.9 * rng.normal(size=(width, width)) / np.sqrt(width)

    def loss(xp, loop, W):
        return xp.sum(loop(lambda h, x: (xp.tanh(W @ h + x), None), np.zeros(width), data)[0] ** 2)

    def by_hand(W):
        hs = np.zeros((rounds + 1, width))
        for t in range(rounds):
            hs[t + 1] = np.tanh(W @ hs[t] + data[t])
        dz, dh = np.empty((rounds, width)), 2 * hs[-1]
        for t in range(rounds - 1, -1, -1):
            dz[t] = dh * (1 - hs[t + 1] ** 2)
            dh = dz[t] @ W
        return dz.T @ hs[:-1]

    return played(loss, by_hand, W)


def gated(rounds, width) -> Contestants:
    from rows import lstm

    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(2 * width, 4 * width)) / np.sqrt(2 * width), np.zeros(4 * width)
    data, zero = rng.normal(size=(rounds, width)), np.zeros(width)

    def loss(xp, loop, W, b):
        def step(state, x):
            h, c = lstm.cell(xp, lambda z: 1 / (1 + xp.exp(-z)), W, b, state, x)
            return (h, c), h

        return xp.mean(loop(step, (zero, zero), data)[1] ** 2)

    found = ours(rz.grad(lambda W, b: loss(np, rz.loop, W, b), (0, 1)), W, b)
    found["hand"] = lambda: lstm.by_hand(W, b, data[:, None, :])
    if j := jax():
        found["JAX"] = in_jax(j.grad(lambda W, b: loss(j.numpy, j.lax.scan, W, b), (0, 1)), W, b)
    return found


def aims(numba: float, alone: float) -> dict[str, float]:
    return {"riesz, compiled": numba, "riesz, plain": 0.8 * numba, "riesz, without Numba": alone}


ROWS = [
    Row("∇ RK4, 2 states, {rounds} rounds", integrator, aims(40, 0.6), {"rounds": 1000}, {"rounds": 30}),
    Row("Kalman filter, {states} states, {rounds} rounds", kalman, aims(15, 0.3),
        {"rounds": 200, "states": 4, "observed": 2}, {"rounds": 20, "states": 4, "observed": 2}),
    Row("filter, {states} × {states}, {rounds} rounds", kalman, aims(15, 0.3),
        {"rounds": 300, "states": 3, "observed": 3}, {"rounds": 20, "states": 3, "observed": 3}),
    Row("hidden Markov model, {states} states, {rounds} rounds", markov, aims(4, 0.1),
        {"rounds": 600, "states": 5}, {"rounds": 20, "states": 3},
        limits="a round is some 300 operations, 0.03 µs each on Python's floats."),
    Row("cart-pole, {rounds} rounds", cart_pole, aims(4, 0.1), {"rounds": 300}, {"rounds": 20}),
    Row("LSTM of width {width}, {rounds} rounds", gated, aims(4, 0.1), {"rounds": 100, "width": 8},
        {"rounds": 12, "width": 3}),
    Row("RNN of width {width}, {rounds} rounds", recurrent, aims(1, 0.3), {"rounds": 200, "width": 50},
        {"rounds": 12, "width": 20}, limits="without Numba six calls of NumPy a round; by hand it takes longer."),
    Row("RNN of width {width}, {rounds} rounds", recurrent, aims(1, 0.3), {"rounds": 200, "width": 100},
        {"rounds": 12, "width": 9}),
    Row("RK4, {count} trajectories by vmap, {rounds} rounds", batch, aims(20, 1), {"rounds": 1000, "count": 64},
        {"rounds": 20, "count": 11},
        limits="7 ns a round and trajectory; without Numba one trajectory after the other on Python's floats."),
    Row("RK4, product with the Hessian, {rounds} rounds", second, aims(40, 0.2), {"rounds": 1000, "whole": False},
        {"rounds": 30, "whole": False}),
    Row("RK4, Hessian, {rounds} rounds", second, aims(40, 0.2), {"rounds": 1000, "whole": True},
        {"rounds": 30, "whole": True}),
]  # fmt: skip
