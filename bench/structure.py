"""Derivatives whose structure decides: riesz against jitted JAX as one writes it there, and against what an expert writes by hand in NumPy and SciPy.

Every contestant gets the same arrays in the same process; results are compared; medians in milliseconds, ratios behind them. Structure, pattern
and code are derived
once per function; what is timed is the work at a new point.
Run: make bench, or python bench/structure.py [--quick]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from timing import timed

import riesz as rz


def contest(title, contestants, check, tolerance=1e-7):
    """One line per workload; the first contestant is riesz."""
    times, results = {}, {}
    for name, work in contestants.items():
        start = time.perf_counter()
        work()
        first = time.perf_counter() - start
        times[name], results[name] = timed(work, 3 if first > 1 else 9)
    reference = None
    for name, found in results.items():
        shown = check(name, found)
        reference = shown if reference is None else reference
        size = np.abs(reference).max()
        assert np.allclose(shown, reference, rtol=tolerance, atol=tolerance * size), f"{title}: {name} differs by {np.abs(shown - reference).max()}"
    mine = times["riesz"]
    cells = "   ".join([f"{name} {1e3 * t:9.3f}" for name, t in times.items()])
    ratios = "  ".join([f"{name} ÷ riesz {t / mine:8.2f}" for name, t in times.items() if name != "riesz"])
    print(f"{title:<58} {cells}   {ratios}", flush=True)


def projection(xp, rotation, centre, focal, shift, radial, X):
    """Points seen by cameras with Rodrigues rotations and radial distortion, component by component; any array library."""
    angle = xp.sqrt(xp.sum(rotation * rotation, -1))
    axis = rotation / angle[..., None]
    cos, sin = xp.cos(angle), xp.sin(angle)
    Y = X - centre
    a, b, c = axis[..., 0], axis[..., 1], axis[..., 2]
    cross = xp.stack([b * Y[..., 2] - c * Y[..., 1], c * Y[..., 0] - a * Y[..., 2], a * Y[..., 1] - b * Y[..., 0]], -1)
    dot = xp.sum(axis * Y, -1)
    R = Y * cos[..., None] + cross * sin[..., None] + axis * (dot * (1 - cos))[..., None]
    p = R[..., :2] / R[..., 2:3]
    r2 = xp.sum(p * p, -1)
    scale = 1 + radial[..., 0] * r2 + radial[..., 1] * r2 * r2
    return focal * p * scale[..., None] + shift


def bundle_adjustment(jax, jnp, observations):
    """The exact sparse Jacobian: 28 numbers for each observation. JAX computes its blocks only, vmapped by hand."""
    rng = np.random.default_rng(0)
    cameras, points = 100, max(observations // 10, 10)
    ci, pi = rng.integers(0, cameras, observations), rng.integers(0, points, observations)
    seen = rng.normal(size=(observations, 2))
    cams = 0.1 * rng.normal(size=(cameras, 11))
    cams[:, 6] += 1.0
    pts = rng.normal(loc=(0.0, 0.0, 5.0), size=(points, 3))
    weights = rng.uniform(0.5, 1.0, observations)

    def residual(cams, pts, weights):
        c = cams[ci]
        p = projection(np, c[:, :3], c[:, 3:6], c[:, 6:7], c[:, 7:9], c[:, 9:11], pts[pi])
        return weights[:, None] * (p - seen)

    jacobian = rz.jacobian(residual, (0, 1, 2))
    plain = jacobian(cams, pts, weights)
    plain.to_sparse()

    def one(c, X, w, s):
        return w * (projection(jnp, c[:3], c[3:6], c[6:7], c[7:9], c[9:11], X) - s)

    blocks = jax.jit(jax.vmap(jax.jacfwd(one, (0, 1, 2))))
    given = [jnp.asarray(x) for x in (cams[ci], pts[pi], weights, seen)]

    def by_jax():
        return [np.asarray(b) for b in blocks(*given)]

    def check(name, found):
        if name == "riesz":
            assert found.nnz == 28 * observations
            return np.sort(np.abs(found[:200].toarray()).sum(axis=1))
        return np.sort(sum([np.abs(b[:100].reshape(200, -1)).sum(axis=1) for b in found]))

    contest(
        f"bundle adjustment, {observations:,} observations: CSR Jacobian",
        {"riesz": lambda: jacobian(cams, pts, weights).to_sparse(), "JAX blocks": by_jax},
        check,
    )
    S = plain.to_sparse()
    u = rng.normal(size=S.shape[0])
    back = jax.jit(
        lambda c, X, w, u: jax.vjp(
            lambda c, X, w: w[:, None] * (projection(jnp, c[ci][:, :3], c[ci][:, 3:6], c[ci][:, 6:7], c[ci][:, 7:9], c[ci][:, 9:11], X[pi]) - seen),
            c,
            X,
            w,
        )[1](u)
    )
    at = [jnp.asarray(x) for x in (cams, pts, weights)]
    turned = S.T.tocsr()
    contest(
        "  stored Jᵀu",
        {"riesz": lambda: turned @ u, "JAX vjp": lambda: np.concatenate([np.asarray(x).ravel() for x in back(*at, jnp.asarray(u.reshape(-1, 2)))])},
        lambda name, found: found,
    )


def logistic(jax, jnp, n):
    """The Hessian as a matrix, and a Newton step."""
    rng = np.random.default_rng(1)
    X, w, b = rng.normal(size=(2 * n, n)), 0.1 * rng.normal(size=n) / np.sqrt(n), rng.normal(size=n)
    hessian = rz.hessian(lambda w: np.sum(np.logaddexp(0.0, X @ w)))
    Xj = jnp.asarray(X)
    by_jax = jax.jit(jax.hessian(lambda w: jnp.sum(jnp.logaddexp(0.0, Xj @ w))))

    def by_hand():
        s = 1.0 / (1.0 + np.exp(-(X @ w)))
        return X.T @ ((s * (1 - s))[:, None] * X)

    contest(
        f"logistic regression, n = {n}: Hessian matrix",
        {"riesz": lambda: hessian(w).to_dense(), "JAX": lambda: np.asarray(by_jax(w)), "hand": by_hand},
        lambda _, x: x,
    )
    del b


def factorisation(jax, jnp, n, k):
    """The Hessian of ‖T − UVᵀ‖² in U applied to a vector."""
    rng = np.random.default_rng(2)
    T, U, V, D = rng.normal(size=(n, n)), *rng.normal(size=(3, n, k))
    H = rz.hessian(lambda U, V: np.sum((T - U @ V.T) ** 2))(U, V)
    simple = H.simplify()
    Tj = jnp.asarray(T)
    by_jax = jax.jit(lambda U, V, D: jax.jvp(jax.grad(lambda U: jnp.sum((Tj - U @ V.T) ** 2)), (U,), (D,))[1])
    contest(
        f"matrix factorisation, n = {n}, k = {k}: Hessian times vector",
        {"riesz": lambda: simple(D), "as derived": lambda: H(D), "JAX": lambda: np.asarray(by_jax(U, V, D)), "hand": lambda: 2 * D @ (V.T @ V)},
        lambda _, x: x,
    )


def stencil(n):
    """A Newton step of a nonlinear tridiagonal system."""
    rng = np.random.default_rng(3)
    u, b = rng.normal(size=n), rng.normal(size=n)

    def f(u):
        p = np.pad(u, 1)
        return 3.0 * u + np.sin(u) - p[2:] - p[:-2]

    jacobian = rz.jacobian(f)
    jacobian(u).solve(b)

    def by_hand():
        ab = np.empty((3, n))
        ab[0], ab[1], ab[2] = -1.0, 3.0 + np.cos(u), -1.0
        return scipy.linalg.solve_banded((1, 1), ab, b)

    contest(f"tridiagonal Newton step, n = {n:,}", {"riesz": lambda: jacobian(u).solve(b), "hand": by_hand}, lambda _, x: x)


def graph(edges):
    """The Hessian of an energy on the edges of a graph, as a sparse matrix."""
    rng = np.random.default_rng(4)
    n = edges // 5
    i, j, u = rng.integers(0, n, edges), rng.integers(0, n, edges), rng.normal(size=n)
    hessian = rz.hessian(lambda u: np.sum(np.sqrt(1.0 + (u[i] - u[j]) ** 2)))

    def by_hand():
        d = u[i] - u[j]
        w = (1.0 + d * d) ** -1.5
        rows, columns = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        return scipy.sparse.coo_array((np.concatenate([w, w, -w, -w]), (rows, columns)), shape=(n, n)).tocsr()

    v = rng.normal(size=n)
    contest(f"graph energy, {edges:,} edges: sparse Hessian", {"riesz": lambda: hessian(u).to_sparse(), "hand": by_hand}, lambda _, S: S @ v)


def chain(jax, jnp, n, rank):
    """(I + U diag V)⁻¹ b."""
    rng = np.random.default_rng(5)
    U, V, x, b = rng.normal(size=(n, rank)), rng.normal(size=(rank, n)) / n, rng.normal(size=n), rng.normal(size=n)
    jacobian = rz.jacobian(lambda x: x + U @ np.tanh(V @ x))
    by_jax = jax.jit(lambda x, b: jnp.linalg.solve(jax.jacfwd(lambda x: x + U @ jnp.tanh(V @ x))(x), b))

    def by_hand():
        W = (1.0 - np.tanh(V @ x) ** 2)[:, None] * V
        return b - U @ np.linalg.solve(np.eye(rank) + W @ U, W @ b)

    contest(
        f"identity plus rank {rank}, n = {n}: solve",
        {"riesz": lambda: jacobian(x).solve(b), "JAX": lambda: np.asarray(by_jax(x, b)), "hand": by_hand},
        lambda _, x: x,
    )


def griewank(jax, jnp, n):
    """The Jacobian of x ↦ cos(‖x‖²)·b applied to a vector, everything included."""
    rng = np.random.default_rng(6)
    x, b, v = rng.normal(size=(3, n)) / np.sqrt(n)
    L = rz.jacobian(lambda x: np.cos(np.sum(x * x)) * b)(x).simplify()
    by_jax = jax.jit(lambda x, v: jax.jvp(lambda x: jnp.cos(jnp.sum(x * x)) * b, (x,), (v,))[1])
    contest(
        f"Griewank, n = {n:,}: apply",
        {"riesz": lambda: L(v), "JAX": lambda: np.asarray(by_jax(x, v)), "hand": lambda: (-2 * np.sin(x @ x) * (x @ v)) * b},
        lambda _, x: x,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    print("milliseconds; ratios above 1: riesz is faster")
    bundle_adjustment(jax, jnp, 60_000 if quick else 204_472)
    logistic(jax, jnp, 200 if quick else 1000)
    factorisation(jax, jnp, 1000, 5)
    stencil(10**5 if quick else 10**6)
    graph(10**5 if quick else 10**6)
    chain(jax, jnp, 2000, 10)
    griewank(jax, jnp, 10**6)


if __name__ == "__main__":
    main()
