"""Sparse Jacobians and Hessians beyond the aims: a tridiagonal Newton step, and the Hessian of an energy on the edges of a graph."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from contest import Contestants, Row, installed, jax

import riesz as rz


def stencil(xp, u):
    """3u + sin u − both neighbours."""
    p = xp.pad(u, 1)
    return 3.0 * u + xp.sin(u) - p[2:] - p[:-2]


def newton_step(n) -> Contestants:
    u, b = np.random.default_rng(0).normal(size=(2, n))
    jacobian = rz.jacobian(lambda u: stencil(np, u))

    def by_hand():
        bands = np.empty((3, n))
        bands[0], bands[1], bands[2] = -1.0, 3.0 + np.cos(u), -1.0
        return scipy.linalg.solve_banded((1, 1), bands, b)

    found: Contestants = {"riesz": lambda: jacobian(u).solve(b), "hand": by_hand}
    if (j := jax()) and installed("asdex"):
        import asdex

        sparse = j.jit(asdex.jacobian(lambda u: stencil(j.numpy, u), j.numpy.asarray(u)))
        uj = j.numpy.asarray(u)
        found["asdex"] = lambda: scipy.sparse.linalg.spsolve(_from_bcoo(sparse(uj)).tocsc(), b)
    if j and installed("sparsejac"):
        import sparsejac
        from jax.experimental import sparse as jax_sparse

        pattern = scipy.sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]).tocoo()
        jacfwd = j.jit(sparsejac.jacfwd(lambda u: stencil(j.numpy, u), jax_sparse.BCOO.from_scipy_sparse(pattern)))
        at = j.numpy.asarray(u)
        found["sparsejac"] = lambda: scipy.sparse.linalg.spsolve(_from_bcoo(jacfwd(at)).tocsc(), b)
    return found


def _from_bcoo(J):
    """A matrix of JAX's as one of SciPy's."""
    rows, columns = np.asarray(J.indices).T
    return scipy.sparse.coo_array((np.asarray(J.data), (rows, columns)), shape=J.shape)


def graph(edges) -> Contestants:
    rng = np.random.default_rng(0)
    n = edges // 5
    i, j, u = rng.integers(0, n, edges), rng.integers(0, n, edges), rng.normal(size=n)
    hessian = rz.hessian(lambda u: np.sum(np.sqrt(1.0 + (u[i] - u[j]) ** 2)))

    def by_hand():
        d = u[i] - u[j]
        w = (1.0 + d * d) ** -1.5
        rows, columns = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        return scipy.sparse.coo_array((np.concatenate([w, w, -w, -w]), (rows, columns)), shape=(n, n)).tocsr()

    return {"riesz": lambda: hessian(u).to_sparse(), "hand": by_hand}


def probed(name, H):
    return H @ np.random.default_rng(1).normal(size=H.shape[1])


ROWS = [
    Row("tridiagonal Newton step, n = {n:,}", newton_step, {"riesz": 0.0}, {"n": 10**5}, {"n": 10**4}, rival="asdex"),
    Row("graph energy, {edges:,} edges: sparse Hessian", graph, {"riesz": 0.0}, {"edges": 10**6}, {"edges": 10**5}, compared=probed),
]
