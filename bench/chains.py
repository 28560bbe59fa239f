"""Chains of matrix products as one writes them, A @ B @ C @ x and gradients of it, against NumPy in the best order by hand and jitted JAX as written.

Every contestant gets the same arrays in the same process; results are compared; medians in microseconds, riesz ÷ by hand and JAX ÷ riesz behind them.
Run: make bench, or python bench/chains.py [--sizes 10 100 1000]
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np
from timing import timed

import riesz as rz
from riesz.programs.cost import cost
from riesz.programs.ordering import ordered
from riesz.syntax.functions import Function


def settled(work):
    """Median seconds of a tenth of a second of runs, after a first one."""
    work()
    time.sleep(0.1)
    once, _ = timed(work, 3, collect=False)
    return timed(work, min(max(7, int(0.1 / once)), 2001), collect=False)


def contest(title, contestants):
    """One line; the first is riesz, the second by hand."""
    times, results = {}, {}
    for name, work in contestants.items():
        times[name], results[name] = settled(work)
    reference = np.asarray(results["by hand"])
    for name, found in results.items():
        assert np.allclose(np.asarray(found), reference, rtol=1e-8, atol=1e-8 * np.abs(reference).max()), f"{title}: {name} differs"
    cells = "  ".join(f"{name} {1e6 * t:10.1f}" for name, t in times.items())
    jax = f"  JAX ÷ riesz {times['JAX'] / times['riesz']:6.2f}" if "JAX" in times else ""
    print(f"{title:<44} riesz ÷ by hand {times['riesz'] / times['by hand']:5.2f}{jax}   {cells}", flush=True)


def written(A, B, C, x):
    """The chain as one writes it."""
    return A @ B @ C @ x


def norm(A, B, C, x):
    """½‖A B C x‖²."""
    y = A @ B @ C @ x
    return 0.5 * (y * y).sum()


def by_hand(A, B, C, x):
    """From the right."""
    return A @ (B @ (C @ x))


def gradient_by_hand(A, B, C, x):
    """Aᵀy ⊗ Cx."""
    z = C @ x
    return np.outer(A.T @ (A @ (B @ z)), z)


def chains(n):
    """One size."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(n, n)) / n**0.5 for _ in range(3)] + [rng.normal(size=n)]
    A, B, C, x = given
    f, gradient = rz.function(written), rz.grad(norm, argnums=1)
    L = rz.linearize(lambda B: A @ B @ C @ x, B)[1]
    program = Function(written).at(given)[0].program
    print(f"\nn = {n}: {cost(program).flops:,} operations as written, {cost(ordered(program)).flops:,} in order")
    value = {"riesz": lambda: f(*given), "by hand": lambda: by_hand(*given)}
    slope = {"riesz": lambda: gradient(*given), "by hand": lambda: gradient_by_hand(*given)}
    z = C @ x
    push = {"riesz": lambda: L(B), "by hand": lambda: A @ (B @ z)}
    pull = {"riesz": lambda: L.H(x), "by hand": lambda: np.outer(A.T @ x, z)}
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        there = [jax.numpy.asarray(a) for a in given]
        jitted, slopes = jax.jit(written), jax.jit(jax.grad(norm, argnums=1))
        value["JAX"] = lambda: jitted(*there).block_until_ready()
        slope["JAX"] = lambda: slopes(*there).block_until_ready()
    contest("  A @ B @ C @ x", value)
    contest("  gradient of ½‖A B C x‖² in B", slope)
    contest("  derivative in B, applied", push)
    contest("  its adjoint, applied", pull)


def main():
    """All sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 100, 1000])
    for n in parser.parse_args().sizes:
        chains(n)


if __name__ == "__main__":
    main()
