"""k-means on sparse points: the gradient of the sum of squared distances to the nearest centre, and the diagonal of its (diagonal) Hessian."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def by_hand(centres, X, norms):
    """Labels by a product with the sparse matrix; then counts and one histogram."""
    k, d = centres.shape
    labels = np.argmin(norms[:, None] - 2.0 * (X @ centres.T) + np.sum(centres**2, axis=1), axis=1)
    counts = np.bincount(labels, minlength=k).astype(float)
    places = np.repeat(labels * d, np.diff(X.indptr)) + X.indices
    sums = np.bincount(places, X.data, k * d).reshape(k, d)
    return 2.0 * (counts[:, None] * centres - sums), np.repeat(2.0 * counts[:, None], d, axis=1)


def contestants(n, d, k, each) -> Contestants:
    rng = np.random.default_rng(0)
    columns, values = rng.integers(0, d, (n * each,)), rng.normal(size=n * each)
    rows = np.repeat(np.arange(n), each)
    X = scipy.sparse.csr_array((values, columns, each * np.arange(n + 1)), shape=(n, d))
    norms = np.bincount(rows, values**2, n)
    centres = rng.normal(size=(k, d)) / np.sqrt(d)
    ones = np.ones_like(centres)

    def cost(centres):
        """The distance from each point to each centre goes by a product with the sparse matrix."""
        distances = norms[:, None] - 2.0 * (X @ centres.T) + np.sum(centres**2, axis=1)
        return np.sum(np.min(distances, axis=1))

    newton = rz.compile(lambda c: rz.jvp(rz.grad(cost), (c,), (ones,)))
    found: Contestants = {"riesz": lambda: newton(centres), "hand": lambda: by_hand(centres, X, norms)}
    if j := jax():
        from jax.experimental import sparse

        jnp = j.numpy
        where, place, numbers, lengths = [jnp.asarray(a) for a in (rows, columns, values, norms)]

        def cost_in_jax(centres, where, place, numbers, lengths):
            inner = j.ops.segment_sum(numbers[:, None] * centres.T[place], where, n, indices_are_sorted=True)
            return jnp.sum(jnp.min(lengths[:, None] - 2.0 * inner + jnp.sum(centres**2, axis=1), axis=1))

        rest = where, place, numbers, lengths
        found["JAX"] = in_jax(
            lambda c, v, *rest: j.jvp(lambda c: j.grad(cost_in_jax)(c, *rest), (c,), (v,)), centres, ones, *rest
        )
        matrix = sparse.BCOO((numbers, jnp.stack([where, place], 1)), shape=(n, d), indices_sorted=True)

        def cost_by_matrix(centres, matrix, lengths):
            return jnp.sum(jnp.min(lengths[:, None] - 2.0 * (matrix @ centres.T) + jnp.sum(centres**2, axis=1), axis=1))

        rest = matrix, lengths
        found["JAX, BCOO"] = in_jax(
            lambda c, v, *rest: j.jvp(lambda c: j.grad(cost_by_matrix)(c, *rest), (c,), (v,)), centres, ones, *rest
        )
    if t := torch():
        warnings.simplefilter("ignore")  # sparse matrices are in beta there
        there = t.sparse_csr_tensor(
            t.from_numpy(X.indptr.astype(np.int64)),
            t.from_numpy(X.indices.astype(np.int64)),
            t.from_numpy(X.data),
            X.shape,
        )
        at, one, length = t.from_numpy(centres), t.from_numpy(ones), t.from_numpy(norms)

        def cost_in_torch(c):
            return (length[:, None] - 2.0 * (there @ c.T) + (c**2).sum(1)).min(1).values.sum()

        def in_torch():
            c = at.clone().requires_grad_()
            (g,) = t.autograd.grad(cost_in_torch(c), c, create_graph=True)
            (h,) = t.autograd.grad((g * one).sum(), c)
            return g, h

        found["torch"] = in_torch
    return found


ROWS = [
    Row(
        "sparse k-means, gradient and Hessian diagonal, {n:,} points × {each} nonzeros, k = {k}",
        contestants,
        {"riesz": 6.0},
        {"n": 50_000, "d": 2_000, "k": 10, "each": 20},
        {"n": 10_000, "d": 2_000, "k": 10, "each": 20},
        limits="a product with the sparse matrix, and passes over the distances; the second product meets one number in k that is not zero.",
    )
]
