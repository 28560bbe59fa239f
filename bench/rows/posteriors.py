"""Samplers and marginal likelihoods: trajectories of Hamiltonian Monte Carlo, the gradient of a Gaussian process."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from contest import Contestants, Row, in_jax, jax

import riesz as rz
from rows.small_loops import ours

STEP = 0.02


def trajectories(density, slope, start, speed, steps) -> Contestants:
    """`steps` leapfrogs: where a point ends, its speed and the change of the energy. density(xp, q), slope(q) by hand."""

    def leapfrog(xp, fori_loop, gradient, q, v):
        def once(_, state):
            q, v = state
            v = v + 0.5 * STEP * gradient(q)
            q = q + STEP * v
            return q, v + 0.5 * STEP * gradient(q)

        last, w = fori_loop(0, steps, once, (q, v))
        return last, w, density(xp, last) - density(xp, q) + 0.5 * (xp.sum(v * v) - xp.sum(w * w))

    def plain_loop(lower, upper, body, state):
        for i in range(lower, upper):
            state = body(i, state)
        return state

    gradient = rz.grad(lambda q: density(np, q))
    found = ours(rz.function(lambda q, v: leapfrog(np, rz.fori_loop, gradient, q, v)), start, speed)
    found["hand"] = lambda: leapfrog(np, plain_loop, slope, start, speed)
    if j := jax():
        slopes = j.grad(lambda q: density(j.numpy, q))
        found["JAX"] = in_jax(lambda q, v: leapfrog(j.numpy, j.lax.fori_loop, slopes, q, v), start, speed)
    return found


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(steps) -> Contestants:
    """Unknowns: the mean, the logarithm of the spread, and the eight schools in units of it."""

    def density(xp, q):
        mean, spread, z = q[0], xp.exp(q[1]), q[2:]
        misfit = (EFFECTS - mean - spread * z) / ERRORS
        return -0.5 * (xp.sum(misfit**2) + xp.sum(z**2) + (mean / 5.0) ** 2) - xp.log1p((spread / 5.0) ** 2) + q[1]

    def slope(q):
        mean, spread, z = q[0], np.exp(q[1]), q[2:]
        pull, ratio = (EFFECTS - mean - spread * z) / ERRORS**2, (spread / 5.0) ** 2
        first = pull.sum() - mean / 25.0, spread * (pull @ z) - 2.0 * ratio / (1.0 + ratio) + 1.0
        return np.concatenate([first, spread * pull - z])

    rng = np.random.default_rng(0)
    return trajectories(density, slope, 0.3 * rng.normal(size=10), rng.normal(size=10), steps)


def logistic_posterior(steps, examples, unknowns) -> Contestants:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(examples, unknowns))
    y = (X @ rng.normal(size=unknowns) > rng.normal(size=examples)).astype(float)

    def density(xp, q):
        s = X @ q
        return xp.sum(y * s - xp.logaddexp(0.0, s)) - 0.5 * xp.sum(q**2)

    def slope(q):
        return X.T @ (y - 1.0 / (1.0 + np.exp(-X @ q))) - q

    return trajectories(density, slope, np.zeros(unknowns), rng.normal(size=unknowns), steps)


def gaussian_process(points) -> Contestants:
    """The gradient of the marginal likelihood in the logarithms of height, length and noise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(points, 3)), rng.normal(size=points)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)

    def loss(xp, triangular, p):
        K = xp.exp(p[0]) * xp.exp(-0.5 * squares * xp.exp(-2.0 * p[1])) + xp.exp(p[2]) * np.eye(points)
        L = xp.linalg.cholesky(K)
        w = triangular(L, y, lower=True)
        return 0.5 * xp.sum(w * w) + xp.sum(xp.log(xp.diagonal(L)))

    def by_hand(p):
        bell, scaled = np.exp(p[0] - 0.5 * squares * np.exp(-2.0 * p[1])), squares * np.exp(-2.0 * p[1])
        K = bell + np.exp(p[2]) * np.eye(points)
        factor = scipy.linalg.cho_factor(K, lower=True)
        a, inverse = scipy.linalg.cho_solve(factor, y), scipy.linalg.cho_solve(factor, np.eye(points))
        G = 0.5 * (inverse - np.outer(a, a)) * bell
        trace = np.trace(inverse) - a @ a
        return np.array([G.sum(), np.sum(G * scaled), 0.5 * np.exp(p[2]) * trace])

    p = np.array([0.1, 0.2, -1.0])
    found = ours(rz.grad(lambda p: loss(np, scipy.linalg.solve_triangular, p)), p)
    found["hand"] = lambda: by_hand(p)
    if j := jax():
        found["JAX"] = in_jax(j.grad(lambda p: loss(j.numpy, j.scipy.linalg.solve_triangular, p)), p)
    return found


def aims(numba: float, alone: float) -> dict[str, float]:
    return {"riesz, compiled": numba, "riesz, plain": 0.8 * numba, "riesz, without Numba": alone}


ROWS = [
    Row("Hamiltonian Monte Carlo, eight schools, {steps} leapfrogs", eight_schools, aims(1, 0.1),
        {"steps": 100}, {"steps": 20}),
    Row("Hamiltonian Monte Carlo, logistic regression {examples} × {unknowns}, {steps} leapfrogs", logistic_posterior,
        aims(1, 0.9), {"steps": 50, "examples": 500, "unknowns": 20}, {"steps": 10, "examples": 40, "unknowns": 5}),
    Row("Gaussian process, marginal likelihood of {points} points", gaussian_process, aims(1.2, 1),
        {"points": 300}, {"points": 20},
        limits="BLAS takes 2.3 ms for the factor, two solves and a product; masks and a look at symmetry the rest."),
]  # fmt: skip
