"""The gradient of a function of two numbers: what a call costs."""

from __future__ import annotations

import numpy as np
from contest import Contestants, Row, installed, jax, torch

import riesz as rz


def rosenbrock(x):
    return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


def by_hand(x):
    """On Python floats."""
    a, b = x.tolist()
    d = b - a * a
    return np.array([-2.0 * (1.0 - a) - 400.0 * a * d, 200.0 * d])


def contestants() -> Contestants:
    x = np.array([1.2, 0.7])
    compiled, plain = rz.compile(rz.grad(rosenbrock)), rz.grad(rosenbrock)
    for _ in range(5):
        plain(x)
    found: Contestants = {
        "riesz, compiled": lambda: compiled(x),
        "riesz, plain rz.grad": lambda: plain(x),
        "hand": lambda: by_hand(x),
    }
    if j := jax():
        gradient, xj = j.jit(j.grad(rosenbrock)), j.numpy.asarray(x)
        found["JAX"] = lambda: gradient(xj).block_until_ready()
    if t := torch():
        xt = t.from_numpy(x).requires_grad_()
        found["torch"] = lambda: t.autograd.grad(rosenbrock(xt), xt)[0]
    if installed("autograd"):
        import autograd

        slope = autograd.grad(rosenbrock)
        found["autograd"] = lambda: slope(x)
    if installed("casadi"):
        import casadi

        s = casadi.SX.sym("x", 2)
        generated = casadi.Function("gradient", [s], [casadi.gradient(rosenbrock(s), s)])
        found["CasADi"] = lambda: generated(x)
    return found


ROWS = [
    Row(
        "∇ Rosenbrock, a call",
        contestants,
        {"riesz, compiled": 8.0, "riesz, plain rz.grad": 3.0},
        {},
        {},
        limits="reading the argument and making the result take as long as the arithmetic.",
    )
]
