"""Gradient of a Gaussian mixture's log-likelihood in weights, means and factors of the inverse covariances."""

from __future__ import annotations

import numpy as np
import scipy.special
from contest import Contestants, Row, in_jax, jax, torch

import riesz as rz

TILE = 128


def log_likelihood(xp, logsumexp, alphas, means, icf, x, at):
    """ln p(x); icf[k] holds the log diagonal of Q_k, a lower triangular factor of the inverse covariance, and what is below it; `at` says where."""
    n, d = x.shape
    diagonal = icf[:, :d]
    below = xp.concatenate([xp.zeros_like(icf[:, :1]), icf[:, d:]], axis=1)[:, at]
    centred = x[:, None, :] - means
    turned = xp.exp(diagonal) * centred + xp.einsum("kij,nkj->nki", below, centred)
    exponents = alphas + xp.sum(diagonal, axis=1) - 0.5 * xp.sum(turned**2, axis=2)
    return -0.5 * n * d * np.log(2 * np.pi) + xp.sum(logsumexp(exponents, axis=1)) - n * logsumexp(alphas)


def in_torch(torch, alphas, means, icf, x, at):
    """The same, and its gradient."""
    n, d = x.shape
    diagonal = icf[:, :d]
    below = torch.cat([torch.zeros_like(icf[:, :1]), icf[:, d:]], 1)[:, at]
    centred = x[:, None, :] - means
    turned = torch.exp(diagonal) * centred + torch.einsum("kij,nkj->nki", below, centred)
    exponents = alphas + diagonal.sum(1) - 0.5 * (turned**2).sum(2)
    y = -0.5 * n * d * np.log(2 * np.pi) + torch.logsumexp(exponents, 1).sum() - n * torch.logsumexp(alphas, 0)
    return torch.autograd.grad(y, (alphas, means, icf))


def by_hand(alphas, means, icf, x, at):
    """Points in tiles; per component two products of matrices, the third taken out of the sum over points."""
    (n, d), k = x.shape, len(alphas)
    Q = np.concatenate([np.zeros((k, 1)), icf[:, d:]], axis=1)[:, at]
    scale = np.exp(icf[:, :d])
    Q[:, np.arange(d), np.arange(d)] = scale
    base = alphas + icf[:, :d].sum(1)
    weights, pulled, outer = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for start in range(0, n, TILE):
        centred = x[start : start + TILE] - means[:, None, :]
        turned = centred @ Q.swapaxes(1, 2)
        e = base - 0.5 * np.einsum("kni,kni->nk", turned, turned)
        e -= e.max(1, keepdims=True)
        np.exp(e, out=e)
        e /= e.sum(1, keepdims=True)
        turned *= e.T[:, :, None]
        weights += e.sum(0)
        pulled += turned.sum(1)
        outer += turned.swapaxes(1, 2) @ centred
    found = np.zeros_like(icf)
    rows, columns = np.tril_indices(d, -1)
    found[:, d + at[rows, columns] - 1] = -outer[:, rows, columns]
    found[:, :d] = weights[:, None] - np.einsum("kii->ki", outer) * scale
    soft = np.exp(alphas - alphas.max())
    return weights - n * soft / soft.sum(), np.einsum("ki,kij->kj", pulled, Q), found


def contestants(n, d, k) -> Contestants:
    rng = np.random.default_rng(0)
    x, alphas, means, icf = (
        rng.normal(size=(n, d)),
        rng.normal(size=k),
        rng.normal(size=(k, d)),
        0.1 * rng.normal(size=(k, d * (d + 1) // 2)),
    )
    upper = np.triu(np.ones((d, d), dtype=int), 1)
    at = (np.cumsum(upper).reshape(d, d) * upper).T
    p = alphas, means, icf
    gradient = rz.compile(
        rz.grad(lambda a, m, q: log_likelihood(np, scipy.special.logsumexp, a, m, q, x, at), (0, 1, 2))
    )
    found: Contestants = {"riesz": lambda: gradient(*p), "hand": lambda: by_hand(*p, x, at)}
    if j := jax():
        xj = j.numpy.asarray(x)
        found["JAX"] = in_jax(
            j.grad(lambda a, m, q, x: log_likelihood(j.numpy, j.scipy.special.logsumexp, a, m, q, x, at), (0, 1, 2)),
            *p,
            xj,
        )
    if t := torch():
        given = [t.from_numpy(a).requires_grad_() for a in p]
        xt, att = t.from_numpy(x), t.from_numpy(at)
        found["torch"] = lambda: in_torch(t, *given, xt, att)
    return found


ROWS = [
    Row(
        "GMM gradient, n = {n:,}, d = {d}, K = {k}",
        contestants,
        {"riesz": 3.8},
        {"n": 10_000, "d": 64, "k": 100},
        {"n": 1_000, "d": 32, "k": 50},
    ),
    Row(
        "GMM gradient: peak memory",
        contestants,
        {"riesz": 60.0},
        {"n": 10_000, "d": 64, "k": 100},
        {"n": 4_000, "d": 64, "k": 50},
        measure="memory",
        warm={"n": 50, "d": 4, "k": 3},
    ),
]
