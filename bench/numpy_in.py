"""The NumPy front end: what tracing costs, the first gradient, and calls afterwards. autograd, JAX and PyTorch where they are installed.

Each row: medians of several runs, every contestant on the same input in the same process, results compared. Run: make bench
"""

from __future__ import annotations

import importlib.util

import numpy as np
from timing import row, timed

import riesz as rz
from riesz.functions.function import TracedFunction


def peers():
    """(name, NumPy-like module, gradient of a function) for what is installed."""
    found = []
    if importlib.util.find_spec("autograd"):
        import autograd
        import autograd.numpy as anp

        found.append(("autograd", anp, autograd.grad))
    if importlib.util.find_spec("jax"):
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        found.append(("JAX, not compiled", jnp, jax.grad))
        found.append(("JAX, jit", jnp, lambda f: jax.jit(jax.grad(f))))
    return found


def long_function(np, n):
    """n operations one after the other."""

    def f(x):
        for _ in range(n // 4):
            x = x + 0.001 * np.sin(x[::-1])
        return np.sum(x)

    return f


def tracing(n=10_000):
    """A function of 10,000 operations: run by NumPy, traced, first gradient."""
    x = np.linspace(0.1, 1.0, 5)
    f = long_function(np, n)
    plain, value = timed(lambda: f(x))
    traced, record = timed(lambda: TracedFunction(f).at((x,))[0])
    row(f"{n:,} operations: NumPy alone", plain)
    row(
        f"{n:,} operations: traced",
        traced,
        f"{len(record.program):,} steps; {1e6 * (traced - plain) / n:.1f} µs each beyond NumPy",
    )
    first, g = timed(lambda: rz.grad(long_function(np, n))(x), 3)
    row(f"{n:,} operations: trace and first gradient, riesz", first)
    assert abs(rz.function(f)(x) - value) <= 1e-9 * abs(value)
    for name, module, grad in peers():
        if name == "JAX, jit":
            continue  # minutes of compilation
        seconds, other = timed(
            lambda module=module, grad=grad: grad(long_function(module, n))(x), 1 if "JAX" in name else 3
        )
        assert np.allclose(g, other, rtol=1e-9), name
        row(f"{n:,} operations: first gradient, {name}", seconds, f"{seconds / first:.1f} × riesz")


def rosenbrock(x):
    """Two variables."""
    return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


def calls(repeat=300):
    """A tiny gradient, again and again: no tracing after the first call."""
    x = np.array([1.2, 1.7])
    contestants = [("riesz", rz.grad(rosenbrock))] + [(name, grad(rosenbrock)) for name, _, grad in peers()]
    reference = contestants[0][1](x)
    seconds = {}
    for name, g in contestants:
        assert np.allclose(g(x), reference, rtol=1e-12), name
        total, _ = timed(lambda g=g: [g(x) for _ in range(repeat)])
        seconds[name] = total / repeat
        row(f"Rosenbrock gradient, per call: {name}", seconds[name], f"{seconds[name] / seconds['riesz']:.1f} × riesz")


def loops(n=2000):
    """A recurrence of n rounds: one step of the program, its gradient with and without checkpoints."""
    W = np.random.default_rng(0).normal(size=(8, 8)) / 3.0
    us = np.random.default_rng(1).normal(size=(n, 8))

    def f(W, checkpoint):
        return np.sum(rz.loop(lambda c, u: (np.tanh(W @ c + u), ()), np.zeros(8), us, checkpoint=checkpoint)[0])

    kept, a = timed(lambda: rz.grad(f)(W, False), 3)
    again, b = timed(lambda: rz.grad(f)(W, True), 3)
    assert np.allclose(a, b, rtol=1e-10)
    row(f"gradient of a loop of {n:,} rounds", kept)
    row(f"gradient of a loop of {n:,} rounds, checkpointed", again)


if __name__ == "__main__":
    tracing()
    calls()
    loops()
