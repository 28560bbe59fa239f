"""Sparse Hessians and Jacobians of JAX functions at a new point, and the time to the first: riesz at NumPy arrays and
under jax.jit, asdex, sparsejac (which is given the pattern), CasADi (its own expressions, buffers given beforehand).

    python bench/jax_sparse.py [10 1000 100000]
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import os
import statistics
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import asdex
import casadi
import jax
import jax.numpy as jnp
import numpy as np
import sparsejac
from jax.experimental.sparse import BCOO

import riesz as rz

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


def chain(x):
    """Rosenbrock's function."""
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def stencil(x):
    """Each with its two neighbours."""
    p = jnp.pad(x, 1)
    return 3.0 * x + jnp.sin(x) - p[2:] - p[:-2]


def in_casadi(what, n):
    X, none = casadi.MX.sym("x", n), casadi.MX.zeros(1)
    if what == "Hessian":
        f = casadi.sum1(100.0 * (X[1:] - X[:-1] ** 2) ** 2 + (1.0 - X[:-1]) ** 2)
        return casadi.Function("h", [X], [casadi.hessian(f, X)[0]])
    f = 3.0 * X + casadi.sin(X) - casadi.vertcat(X[1:], none) - casadi.vertcat(none, X[:-1])
    return casadi.Function("j", [X], [casadi.jacobian(f, X)])


def timed(make):
    """Seconds to the first result, and microseconds for one more."""
    begin = time.perf_counter()
    again = make()
    again()
    first, found = time.perf_counter() - begin, []
    for _ in range(30):
        begin = time.perf_counter()
        again()
        found.append(time.perf_counter() - begin)
    return first, 1e6 * statistics.median(found)


def row(what, n):
    x = rng.normal(size=n)
    xj, f = jnp.asarray(x), chain if what == "Hessian" else stencil
    mine, theirs = (rz.sparse_hessian, asdex.hessian) if what == "Hessian" else (rz.sparse_jacobian, asdex.jacobian)
    given = sparsejac.jacrev if what == "Hessian" else sparsejac.jacfwd
    pattern = mine(f, x).pattern.matrix(np.ones(mine(f, x).pattern.nnz))

    def riesz():
        S = mine(f, x)
        return lambda: S.values(x)

    def jitted(make):
        S = jax.jit(make())
        return lambda: S(xj).data.block_until_ready()

    def buffers():
        call, run = in_casadi(what, n).buffer()
        out, at = np.zeros(pattern.nnz), x.copy()
        call.set_arg(0, memoryview(at))
        call.set_res(0, memoryview(out))
        keep = call, out, at
        return lambda: (run(), keep)

    slope = jax.grad(f) if what == "Hessian" else f
    found = {
        "riesz": timed(riesz),
        "riesz in jax.jit": timed(lambda: jitted(lambda: mine(f))),
        "asdex": timed(lambda: jitted(lambda: theirs(f, xj))),
        "sparsejac": timed(lambda: jitted(lambda: given(slope, BCOO.from_scipy_sparse(pattern.tocoo())))),
        "CasADi": timed(buffers),
    }
    for name, (first, again) in found.items():
        print(f"{what}, n = {n:,}: {name:<18} again {again:10.1f} µs   first {first:7.3f} s", flush=True)


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ["10", "1000", "100000"]):
        row("Hessian", size)
        row("Jacobian", size)
