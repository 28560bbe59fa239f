"""Sparse Jacobians and Hessians beyond the aims: a tridiagonal Newton step, the Hessian of an energy on the edges of a graph, a tangent matrix."""

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


def triangles(n):
    """The nodes of the triangles of an n × n grid, and their shape gradients."""
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = [corner.ravel() for corner in (i[:-1, :-1], i[1:, :-1], i[:-1, 1:], i[1:, 1:])]
    tri = np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)])
    return tri, np.random.default_rng(0).normal(size=(*tri.shape, 2))


def tangent(elements) -> Contestants:
    """Nonlinear diffusion on triangles, some nodes held fixed: gather, element, scatter."""
    n = round((elements / 2) ** 0.5) + 1
    (tri, G), m = triangles(n), n * n
    free = np.arange(n, m)
    uf = np.random.default_rng(1).normal(size=len(free))

    def residual(uf):
        ue = np.bincount(free, uf, m)[tri]
        k = 1.0 + ue.mean(1) ** 2
        r = k[:, None] * np.einsum("ej,eaj->ea", np.einsum("ea,eaj->ej", ue, G), G)
        return np.bincount(tri.ravel(), r.ravel(), m)[free]

    jacobian = rz.jacobian(residual)
    rows, columns = [np.broadcast_to(side, (len(tri), 3, 3)).ravel() for side in (tri[:, :, None], tri[:, None, :])]

    def assembled(blocks):
        whole = scipy.sparse.coo_array((np.asarray(blocks).ravel(), (rows, columns)), shape=(m, m)).tocsr()
        return whole[n:, n:]

    def by_hand():
        ue = np.concatenate([np.zeros(n), uf])[tri]
        mean = ue.mean(1)
        K = G @ G.transpose(0, 2, 1)
        return assembled(
            (1.0 + mean**2)[:, None, None] * K
            + (2.0 / 3.0 * mean[:, None] * np.einsum("eab,eb->ea", K, ue))[:, :, None]
        )

    found: Contestants = {"riesz": lambda: jacobian(uf).to_sparse(), "hand": by_hand}
    if j := jax():

        def element(ue, G):
            return (1.0 + ue.mean() ** 2) * (G @ (ue @ G))

        blocks, Gj = j.jit(j.vmap(j.jacfwd(element))), j.numpy.asarray(G)
        found["JAX by elements"] = lambda: assembled(
            blocks(j.numpy.asarray(np.concatenate([np.zeros(n), uf])[tri]), Gj)
        )
    return found


def probed(name, H):
    return H @ np.random.default_rng(1).normal(size=H.shape[1])


ROWS = [
    Row("tridiagonal Newton step, n = {n:,}", newton_step, {"riesz": 0.0}, {"n": 10**5}, {"n": 10**4}, rival="asdex"),
    Row(
        "tangent matrix of {elements:,} triangles",
        tangent,
        {"riesz": 0.0},
        {"elements": 10**6},
        {"elements": 10**5},
        compared=probed,
    ),
    Row(
        "graph energy, {edges:,} edges: sparse Hessian",
        graph,
        {"riesz": 0.0},
        {"edges": 10**6},
        {"edges": 10**5},
        compared=probed,
    ),
]
