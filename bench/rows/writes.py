"""Programs that write into arrays beside their functional forms: value, gradient and sparse Jacobian are to take the same time."""

from __future__ import annotations

from functools import partial

import numpy as np
from contest import Contestants, Row

import riesz as rz


def finite_elements(n):
    """A residual assembled by np.add.at, on n nodes, of which a tenth is fixed."""
    rng = np.random.default_rng(0)
    tri, G, free = rng.integers(0, n, (2 * n, 3)), rng.normal(size=(2 * n, 3, 2)), np.arange(n // 10, n)

    def element(u):
        at = u[tri]
        k = 1.0 + at.mean(1) ** 2
        return k[:, None] * np.einsum("ej,eaj->ea", np.einsum("ea,eaj->ej", at, G), G)

    def written(x):
        u, r = np.zeros(n), np.zeros(n)
        u[free] = x
        np.add.at(r, tri, element(u))
        return r[free]

    def functional(x):
        return np.bincount(tri.ravel(), element(np.bincount(free, x, n)).ravel(), n)[free]

    return written, functional, rng.normal(size=len(free))


def runge_kutta(n):
    """Four stages in the rows of a table."""
    A, b = np.tri(4, k=-1) * 0.3, np.array([1.0, 2.0, 2.0, 1.0]) / 6.0

    def slope(y):
        return np.sin(y) - y * np.roll(y, 1)

    def written(y):
        k = np.zeros((4, n))
        for i in range(4):
            k[i] = slope(y + 0.1 * (A[i, :i] @ k[:i]) if i else y)
        return y + 0.1 * (b @ k)

    def functional(y):
        k = []
        for i in range(4):
            k.append(slope(y + 0.1 * (A[i, :i] @ np.stack(k)) if i else y))
        return y + 0.1 * (b @ np.stack(k))

    return written, functional, np.random.default_rng(0).normal(size=n)


def tridiagonal(n):
    """3u + sin u minus both neighbours, added up in place."""

    def written(u):
        r = 3.0 * u + np.sin(u)
        r[1:] -= u[:-1]
        r[:-1] -= u[1:]
        return r

    def functional(u):
        p = np.pad(u, 1)
        return 3.0 * u + np.sin(u) - p[2:] - p[:-2]

    return written, functional, np.random.default_rng(0).normal(size=n)


def numbers(n):
    """A Python loop over elements."""

    def written(x):
        y = np.zeros(n)
        for i in range(n):
            y[i] = np.sin(x[i]) * x[i]
        return y

    return written, lambda x: np.sin(x) * x, np.random.default_rng(0).normal(size=n)


def elements(n):
    """Element matrices assembled in a Python loop."""
    rng = np.random.default_rng(0)
    tri = np.stack([np.arange(n), (np.arange(n) + 1) % n, (np.arange(n) + 7) % n], 1)
    G = rng.normal(size=(n, 3, 3))

    def written(x):
        r = np.zeros(n)
        for e in range(n):
            r[tri[e]] += G[e] @ np.sin(x[tri[e]])
        return r

    return (
        written,
        lambda x: np.bincount(tri.ravel(), np.einsum("eab,eb->ea", G, np.sin(x[tri])).ravel(), n),
        rng.normal(size=n),
    )


def made(f, what):
    """A function of x that gives one of the three."""
    if what == "value":
        return rz.function(f)
    if what == "gradient":
        return rz.grad(lambda x: np.sum(f(x) ** 2))
    jacobian = rz.jacobian(f)
    return lambda x: jacobian(x).to_sparse()


def contest(program, what, n) -> Contestants:
    *forms, x = program(n)
    return {name: partial(made(f, what), x) for name, f in zip(("riesz", "functional"), forms, strict=True)}


def summed(name, result):
    """Of a matrix, the sums of its rows."""
    return result.sum(axis=1) if hasattr(result, "tocsr") else result


PROGRAMS = {
    "finite elements, {n:,} nodes": (finite_elements, 10**5, 10**4),
    "Runge–Kutta table, {n:,} states": (runge_kutta, 10**5, 10**4),
    "tridiagonal sums, n = {n:,}": (tridiagonal, 10**6, 10**5),
    "a loop over {n:,} numbers": (numbers, 1000, 1000),
    "{n:,} elements one by one": (elements, 1000, 1000),
}
ROWS = [
    Row(
        f"written in place: {title}, {what}",
        partial(contest, f, what),
        {"riesz": 1 / 1.2},
        {"n": full},
        {"n": quick},
        rival="functional",
        compared=summed,
    )
    for title, (f, full, quick) in PROGRAMS.items()
    for what in ("value", "gradient", "sparse Jacobian")
]
