"""The Hessian of logistic regression as a matrix."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz


def by_hand(w, X):
    """XᵀDX, with D from the sigmoid: one triangle by BLAS, the other copied."""
    s = 1.0 / (1.0 + np.exp(-(X @ w)))
    half = scipy.linalg.blas.dsyrk(1.0, (np.sqrt(s * (1.0 - s))[:, None] * X).T)
    return np.triu(half) + np.triu(half, 1).T


def contestants(n) -> Contestants:
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(2 * n, n)), rng.normal(size=n) / np.sqrt(n)
    hessian = rz.hessian(lambda w: np.sum(np.logaddexp(0.0, X @ w)))
    found: Contestants = {"riesz": lambda: hessian(w).to_dense(), "hand": lambda: by_hand(w, X)}
    if j := jax():
        found["JAX"] = in_jax(lambda w, X: j.hessian(lambda w: j.numpy.sum(j.numpy.logaddexp(0.0, X @ w)))(w), w, X)
    if t := torch():
        from torch.func import hessian as hessian_in_torch

        wt, Xt = t.from_numpy(w), t.from_numpy(X)
        found["torch"] = lambda: hessian_in_torch(lambda w: t.nn.functional.softplus(Xt @ w).sum())(wt)
    return found


ROWS = [
    Row(
        "logistic regression, Hessian, n = {n}",
        contestants,
        {"riesz": 4.0},
        {"n": 1000},
        {"n": 400},
        limits="one half of XᵀDX at the speed of BLAS: by hand it takes as long.",
    )
]
