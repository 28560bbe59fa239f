"""Generated code: time of a call, for functions of a few numbers, a small network, and a long elementwise function. JAX where it is installed.

Each row: medians, every contestant on the same input in the same process, results compared. Run: python bench/compile.py
"""

from __future__ import annotations

import importlib.util
import timeit

import numpy as np
from timing import row

import riesz as rz


def per_call(work, *args, repeat=7):
    """Median seconds of one call."""
    work(*args)
    number, _ = timeit.Timer(lambda: work(*args)).autorange()
    return sorted(timeit.repeat(lambda: work(*args), number=max(number // 4, 1), repeat=repeat))[repeat // 2] / max(number // 4, 1)


def contest(title, contestants, args, tolerance=1e-9):
    """One row for each contestant; all must agree with the first."""
    wanted = None
    for name, work in contestants.items():
        found = [np.asarray(a) for a in _leaves(work(*args))]
        wanted = found if wanted is None else wanted
        assert all([np.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(found, wanted, strict=True)]), name
        for _ in range(4):
            work(*args)
        row(f"{title}: {name}", per_call(work, *args))


def _leaves(x):
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, (tuple, list)) else [x]


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def by_hand(x):
    """The gradient as one would write it."""
    a, b = x.tolist()
    d = b - a * a
    return np.array([-2.0 * (1.0 - a) - 400.0 * a * d, 200.0 * d])


def tiny():
    x = np.array([1.2, 0.7])
    compiled, plain = rz.compile(rz.grad(rosenbrock), x), rz.grad(rosenbrock)
    rivals = {"by hand": by_hand, "rz.compile": compiled, "plain rz.grad": plain}
    contest("∇ Rosenbrock", rivals | jax_gradient(rosenbrock), (x,))


def network():
    rng = np.random.default_rng(0)
    p = [rng.normal(size=s) for s in ((64, 32), (64,), (10, 64), (10,))]
    x, y = rng.normal(size=(16, 32)), rng.normal(size=(16, 10))

    def loss(w1, b1, w2, b2):
        h = np.tanh(x @ w1.T + b1)
        return np.sum((h @ w2.T + b2 - y) ** 2)

    def hand(w1, b1, w2, b2):
        h = np.tanh(x @ w1.T + b1)
        d = 2.0 * (h @ w2.T + b2 - y)
        e = (d @ w2) * (1.0 - h * h)
        return e.T @ x, e.sum(0), d.T @ h, d.sum(0)

    g = rz.grad(loss, argnums=(0, 1, 2, 3))
    contest("∇ network 32-64-10, batch 16", {"by hand": hand, "rz.compile": rz.compile(g, *p), "plain rz.grad": g}, p)


def elementwise(n=10**6):
    x = np.random.default_rng(0).normal(size=n)

    def f(x):
        y = np.sin(x) * np.exp(-0.5 * x * x) + x**3
        return y / (1.0 + y * y)

    contest(
        f"elementwise, {n:,}",
        {"NumPy": f, "rz.compile": rz.compile(f, x)} | jax_values(f),
        (x,),
    )


def jax_gradient(f):
    if importlib.util.find_spec("jax") is None:
        return {}
    import jax

    jax.config.update("jax_enable_x64", True)
    return {"jitted JAX": jax.jit(jax.grad(f))}


def jax_values(f):
    if importlib.util.find_spec("jax") is None:
        return {}
    import types

    import jax
    import jax.numpy as jnp

    g = jax.jit(types.FunctionType(f.__code__, {**f.__globals__, "np": jnp}))
    return {"jitted JAX": lambda x: g(x).block_until_ready()}


if __name__ == "__main__":
    tiny()
    network()
    elementwise()
