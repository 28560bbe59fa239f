"""Derivatives as matrices at point after point: small Jacobians, sparse Hessians, collocation of a cart-pole."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from contest import Contestants, Row, in_jax, installed, jax

import riesz as rz


def curve(observations, parameters) -> Contestants:
    """The Jacobian of a fit, dense."""
    t = np.linspace(0.0, 2.0, observations)
    p = np.array([1.0, 0.5, 0.2, 0.1])[:parameters]

    def model(xp, p):
        y = p[0] * xp.exp(-p[1] * t) + p[2]
        return y + p[3] * xp.sin(t) if parameters > 3 else y

    J = rz.jacobian(lambda p: model(np, p))

    def by_hand(p):
        e = np.exp(-p[1] * t)
        return np.stack([e, -p[0] * t * e, np.ones(observations), np.sin(t)][:parameters], axis=1)

    found: Contestants = {"riesz": lambda: J(p).to_dense(), "hand": lambda: by_hand(p)}
    if j := jax():
        found["JAX"] = in_jax(j.jacfwd(lambda p: model(j.numpy, p)), p)
    return found


def fit(observations) -> Contestants:
    """A decay with three unknowns, fitted by Levenberg–Marquardt; SciPy is given the Jacobian by hand."""
    t = np.linspace(0.0, 4.0, observations)
    data = 2.0 * np.exp(-0.8 * t) + 0.5 + 0.02 * np.random.default_rng(0).normal(size=observations)
    start = np.array([1.0, 1.0, 0.0])

    def residual(p):
        return p[0] * np.exp(-p[1] * t) + p[2] - data

    def slopes(p):
        e = np.exp(-p[1] * t)
        return np.stack([e, -p[0] * t * e, np.ones(observations)], axis=1)

    def by_hand():
        p, damping = start, 1e-3
        r = residual(p)
        for _ in range(50):
            J = slopes(p)
            N, g = J.T @ J, J.T @ r
            step = np.linalg.solve(N + damping * np.diag(np.diag(N)), -g)
            trial = residual(p + step)
            if trial @ trial < r @ r:
                fell, p, r, damping = r @ r - trial @ trial, p + step, trial, 0.1 * damping
                if fell < 1e-14 * (r @ r):
                    break
            else:
                damping *= 10.0
        return p

    return {
        "riesz": lambda: rz.levenberg_marquardt(residual, start).x,
        "SciPy": lambda: scipy.optimize.least_squares(residual, start, slopes, ftol=1e-14, xtol=1e-12, gtol=1e-14).x,
        "hand": by_hand,
    }


def chained(xp, x):
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def chain_by_hand(x):
    """The data of the CSR matrix, row by row."""
    n = len(x)
    data, diagonal = np.empty(3 * n - 2), np.zeros(n)
    diagonal[:-1] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
    diagonal[1:] += 200.0
    off = -400.0 * x[:-1]
    data[::3], data[1::3], data[2::3] = diagonal, off, off
    return data


def woods(xp, x):
    """Four unknowns at a time, tied by a shared one: of CUTEst."""
    a, b, c, d = x[0::4], x[1::4], x[2::4], x[3::4]
    first = 100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2 + 90.0 * (d - c**2) ** 2 + (1.0 - c) ** 2
    return xp.sum(first + 10.0 * (b + d - 2.0) ** 2 + 0.1 * (b - d) ** 2)


def woods_by_hand(x):
    a, b, c, d = x[0::4], x[1::4], x[2::4], x[3::4]
    rows = [1200.0 * a**2 - 400.0 * b + 2.0, -400.0 * a, -400.0 * a, 0.0 * a + 220.2, 0.0 * a + 19.8]
    rows += [1080.0 * c**2 - 360.0 * d + 2.0, -360.0 * c, 0.0 * a + 19.8, -360.0 * c, 0.0 * a + 200.2]
    return np.stack(rows, axis=1).reshape(-1)


def waves(xp, x):
    """Neighbours, and neighbours of neighbours."""
    return xp.sum(xp.sin(x[1:] * x[:-1])) + xp.sum(xp.cos(x[2:] * x[:-2]))


def waves_by_hand(x):
    n = len(x)
    s, c = x[1:] * x[:-1], x[2:] * x[:-2]
    diagonal = np.zeros(n)
    diagonal[1:] -= np.sin(s) * x[:-1] ** 2
    diagonal[:-1] -= np.sin(s) * x[1:] ** 2
    diagonal[2:] -= np.cos(c) * x[:-2] ** 2
    diagonal[:-2] -= np.cos(c) * x[2:] ** 2
    near, far = np.cos(s) - s * np.sin(s), -np.sin(c) - c * np.cos(c)
    bands = np.zeros((n, 5))
    bands[2:, 0], bands[1:, 1], bands[:, 2], bands[:-1, 3], bands[:-2, 4] = far, near, diagonal, near, far
    at = np.arange(n)[:, None] + np.arange(-2, 3)
    return bands[(at >= 0) & (at < n)]


def fours(n):
    """The pattern of `woods`."""
    block = [[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]]
    found = scipy.sparse.kron(scipy.sparse.eye_array(n // 4), block, format="csr")
    found.eliminate_zeros()
    return found


def bands(width):
    return lambda n: scipy.sparse.diags_array(
        [np.ones(n - abs(k)) for k in range(-width, width + 1)], offsets=range(-width, width + 1)
    )


PROBLEMS = {
    "Rosenbrock, chained": (chained, chain_by_hand, bands(1)),
    "Woods": (woods, woods_by_hand, fours),
    "sines of products": (waves, waves_by_hand, bands(2)),
}


class InCasadi:
    """The functions of NumPy that the problems call."""

    def __init__(self, ca):
        self.sum, self.sin, self.cos = (lambda x: ca.sum1(ca.vec(x))), ca.sin, ca.cos


def again(problem, n) -> Contestants:
    """A sparse Hessian whose pattern is known already, at another point."""
    f, by_hand, pattern = PROBLEMS[problem]
    x = np.random.default_rng(0).normal(size=n)
    H, S = rz.hessian(lambda x: f(np, x)), rz.sparse_hessian(lambda x: f(np, x), x)
    for _ in range(4):
        H(x).to_sparse()
    found: Contestants = {
        "riesz": lambda: H(x).to_sparse(),
        "riesz, numbers": lambda: S.values(x),
        "hand": lambda: by_hand(x),
    }
    if (j := jax()) and installed("asdex"):
        import asdex

        found["asdex"] = in_jax(asdex.hessian(lambda x: f(j.numpy, x), j.numpy.asarray(x)), x)
    if j and installed("sparsejac"):
        import sparsejac
        from jax.experimental import sparse as jax_sparse

        known = jax_sparse.BCOO.from_scipy_sparse(pattern(n).tocoo())
        found["sparsejac"] = in_jax(sparsejac.jacfwd(j.grad(lambda x: f(j.numpy, x)), known), x)
    if installed("casadi"):
        import casadi

        s = casadi.SX.sym("x", n)
        generated = casadi.Function("H", [s], [casadi.hessian(f(InCasadi(casadi), s), s)[0]])
        found["CasADi"] = lambda: generated(x)
    return found


def numbers(_: str, found: Any) -> Any:
    """The data of a matrix row by row, whatever holds it."""
    if hasattr(found, "sparse"):
        found = found.sparse().tocsr()
    if hasattr(found, "indices") and not hasattr(found, "indptr"):
        rows, columns = np.asarray(found.indices).T
        shape = tuple(found.shape)
        found = scipy.sparse.coo_array((np.asarray(found.data), (rows, columns)), shape=shape).tocsr()
    if hasattr(found, "indptr"):
        found.sort_indices()
    return found.data if hasattr(found, "indptr") else found


STEP = 0.02


def cart_pole(xp, s, u):
    """The slopes of a cart with a pole, all times at once; each row of s a component."""
    _, v, a, w = s
    sine, cosine = xp.sin(a), xp.cos(a)
    mass = 1.0 + 0.3 * sine * sine
    faster = (u + 0.3 * sine * (0.5 * w * w + 9.81 * cosine)) / mass
    turning = (-u * cosine - 0.15 * w * w * cosine * sine - 12.753 * sine) / (0.5 * mass)
    return v, faster, w, turning


def collocation(times, second) -> Contestants:
    """The numbers of the Jacobian of the defects, or of the Hessian of the Lagrangian."""
    rng = np.random.default_rng(0)
    x, u, m = rng.normal(size=(times + 1, 4)), rng.normal(size=times + 1), rng.normal(size=(times, 4))

    def defects(x, u):
        slopes = np.stack(cart_pole(np, x.T, u), axis=1)
        return x[1:] - x[:-1] - 0.5 * STEP * (slopes[1:] + slopes[:-1])

    def lagrangian(x, u, m):
        return np.sum(u * u) + np.sum(m * defects(x, u))

    if second:
        S, at = rz.sparse_hessian(lagrangian, x, u, m, argnums=(0, 1)), (x, u, m)
    else:
        S, at = rz.sparse_jacobian(defects, x, u, argnums=(0, 1)), (x, u)

    def blocks(x, u, more=0.0):
        """The derivatives of the slopes at each time, by steps along i."""
        given = np.concatenate([x, u[:, None]], axis=1) + more
        steps = given[..., None] + 1e-30j * np.eye(5)
        s = np.moveaxis(steps[:, :4], 1, 0)
        parts = cart_pole(np, s, steps[:, 4])
        return np.stack([np.broadcast_to(part, (times + 1, 5)).imag for part in parts], axis=1) / 1e-30

    rows, columns = S.pattern

    def by_hand():
        if second:
            return hessian_by_hand()
        half, eye = -0.5 * STEP * blocks(x, u), np.eye(4, 5)
        both = np.concatenate([(half[:-1] - eye)[:, :, None], (half[1:] + eye)[:, :, None]], axis=2)
        time, of = np.where(columns < 4 * times + 4, columns // 4, columns - 4 * times - 4), columns % 4
        of = np.where(columns < 4 * times + 4, of, 4)
        return both[rows // 4, rows % 4, time - rows // 4, of]

    def hessian_by_hand():
        """Differences of the first derivatives: good for a comparison to 10⁻⁷."""
        weight = np.zeros((times + 1, 4))
        weight[1:] -= 0.5 * STEP * m
        weight[:-1] -= 0.5 * STEP * m
        h, eye = 1e-5, np.eye(5)
        sides = [np.einsum("tij,ti->tj", blocks(x, u, k * h * e), weight) for e in eye for k in (-2, -1, 1, 2)]
        a, b, c, d = np.stack(sides).reshape(5, 4, times + 1, 5).transpose(1, 2, 0, 3)
        H = (8.0 * (c - b) - (d - a)) / (12.0 * h)
        H[:, 4, 4] += 2.0
        end = 4 * times + 4
        row, column = [np.where(k < end, k % 4, 4) for k in (rows, columns)]
        return H[np.where(rows < end, rows // 4, rows - end), row, column]

    found: Contestants = {"riesz": lambda: S.values(*at), "hand": by_hand}
    if installed("casadi"):
        import casadi as ca

        X, U, M = ca.SX.sym("x", 4, times + 1), ca.SX.sym("u", times + 1), ca.SX.sym("m", 4, times)
        F = [ca.vertcat(*cart_pole(ca, [X[i, k] for i in range(4)], U[k])) for k in range(times + 1)]
        g = ca.horzcat(*[X[:, k + 1] - X[:, k] - 0.5 * STEP * (F[k + 1] + F[k]) for k in range(times)])
        z = ca.vertcat(ca.vec(X), U)
        L = ca.sumsqr(U) + ca.sum1(ca.vec(M * g))
        matrix = ca.hessian(L, z)[0] if second else ca.jacobian(ca.vec(g), z)
        generated, flat = ca.Function("f", [z, ca.vec(M)], [matrix]), (np.concatenate([x.ravel(), u]), m.ravel())
        found["CasADi"] = lambda: generated(*flat)
    return found


ROWS = [
    Row("Jacobian {observations} × {parameters}, dense", curve, {"riesz": 1.5},
        {"observations": 50, "parameters": 3}, {"observations": 50, "parameters": 3},
        limits="J(x) takes 3 µs, its numbers as long as by hand."),
    Row("Jacobian {observations} × {parameters}, dense", curve, {"riesz": 1.5},
        {"observations": 80, "parameters": 4}, {"observations": 80, "parameters": 4},
        limits="J(x) takes 3 µs, its numbers as long as by hand."),
    Row("Levenberg–Marquardt, {observations} × 3", fit, {"riesz": 1.5}, {"observations": 50}, {"observations": 20},
        rival="SciPy", limits="a round takes 100 µs, a third of it the derivative, the rest Python around small arrays."),
    *[Row("sparse Hessian again, {problem}, n = {n:,}", again, {"riesz": 2.0, "riesz, numbers": 2.0},
          {"problem": problem, "n": n}, {"problem": problem, "n": n}, rival="asdex", compared=numbers, limits="H(x) and SciPy's matrix take 5 µs; `rz.sparse_hessian` gives the numbers.")
      for problem in PROBLEMS for n in (12, 100, 1000, 10_000)],
    *[Row(f"cart-pole, {{times}} times: numbers of the {name}", collocation, {"riesz": 1.0},
          {"times": 100, "second": second}, {"times": 10, "second": second}, rival="CasADi", compared=numbers)
      for name, second in (("Jacobian", False), ("Hessian", True))],
]  # fmt: skip
