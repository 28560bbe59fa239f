"""Textbook derivatives of functions written with loops over rows and pairs, lists of numbers, arrays made inside,
namespaces, factors of matrices and functions put together by hand. A row: kind, the book's formula, the function in
plain NumPy, where."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.linalg as sl
import scipy.special as sp

RNG = np.random.default_rng(4)
n, p, m = 8, 4, 3
X = RNG.normal(size=(n, p))
y = RNG.normal(size=n)
w, a, b, c = RNG.normal(size=(4, p))
x, z = RNG.uniform(0.5, 1.5, size=(2, p))
A, B, G = RNG.normal(size=(3, p, p))
S = G @ G.T + 4 * np.eye(p)
L = np.linalg.cholesky(S)
W = RNG.normal(size=(p, m))
M = 2 * np.eye(p) + 0.3 * RNG.normal(size=(p, p))
K = RNG.normal(size=(6, p))
lab = np.array([0, 1, 1, 0, 1, 0, 0, 1])
cls = np.array([0, 2, 1, 1, 0, 2, 0, 1])
keep = np.array([1.0, 0.0, 1.0, 1.0])
listed = [0.5, -1.0, 2.0, 0.25, 1.5, -0.5, 0.75, 1.0]
table = [[1.0, 2.0, 0.5, -1.0], [0.0, 1.0, 1.5, 2.0], [2.0, 0.3, 0.1, 1.0]]
games = [(0, 1), (2, 1), (3, 2), (0, 3)]
rate, gam, dt = 0.3, 1.7, 0.1
given = SimpleNamespace(X=X, y=y, rate=rate)


def log_sum(v):
    top = v.max()
    return top + np.log(np.sum(np.exp(v - top)))


def classes_by_rows(W):
    total = 0.0
    for i in range(n):
        scores = X[i] @ W
        total -= scores[cls[i]] - log_sum(scores)
    return total / n


def logistic_by_rows(w):
    total = 0.0
    for xi, ti in zip(X, lab, strict=True):
        s = np.dot(xi, w)
        total += np.log(1 + np.exp(s)) - ti * s
    return total / n


def squares_of_floats(w):
    return sum((float(yi) - xi @ w) ** 2 for xi, yi in zip(X, y, strict=True))


def made_inside(x):
    part = np.array([2.0, 0.5, 1.0, 3.0])
    return 0.5 * np.sum((part * x - a) ** 2)


def by_namespace(w):
    e = given.X @ w - given.y
    return e @ e + given.rate * w @ w


def gain(x):
    return x + S @ K.T @ np.linalg.inv(K @ S @ K.T + np.eye(6)) @ (K @ z - K @ x)


part = np.array([2.0, 0.5, 1.0, 3.0])
ROWS = [
    # rows, pairs and lists
    ("gradient", "Xᵀ(softmax(XW) − P) / 8\n  where P = I₃[cls]", classes_by_rows, W),
    ("gradient", "Xᵀ(σ(Xw) − lab) / 8", logistic_by_rows, w),
    ("gradient", "2Xᵀ(Xw − y)", squares_of_floats, w),
    ("gradient", "2Xᵀ(Xw − listed)", lambda w: sum((X[i] @ w - listed[i]) ** 2 for i in range(n)), w),
    ("gradient", "2Xᵀ(Xw − listed)", lambda w: np.sum((X @ w - np.array(listed)) ** 2), w),
    ("gradient", "2tableᵀ table x", lambda x: np.sum((np.array(table) @ x) ** 2), x),
    (
        "gradient",
        "−Dᵀσ(−Dx)\n  where D = I₄[[0, 1, 2, 0]] − I₄[[1, 2, 3, 3]]",
        lambda x: sum(np.log1p(np.exp(x[j] - x[i])) for i, j in [(0, 1), (1, 2), (2, 3), (0, 3)]),
        x,
    ),
    (
        "gradient",
        "Dᵀ sin(Dx)\n  where D = I₄[[0, 2, 3, 0]] − I₄[[1, 1, 2, 3]]",
        lambda x: -sum(np.cos(x[i] - x[j]) for i, j in games),
        x,
    ),
    ("gradient", "2Pᵀ(Px − 2)\n  where P = I₄[[0, 2, 3]]", lambda x: sum((x[i] - 2.0) ** 2 for i in [0, 2, 3]), x),
    ("gradient", "part ∘ (part ∘ x − a)", made_inside, x),
    ("gradient", "2Xᵀ(Xw − y) + 2rate w", by_namespace, w),
    ("gradient", "2(keep ∘ (x − a))", lambda x: np.sum((keep * (x - a)) ** 2), x),
    # functions put together by hand
    ("gradient", "softmax(x)", lambda x: np.logaddexp.reduce(x), x),
    ("jacobian", "diag(s) − ssᵀ\n  where s = softmax(x)", lambda x: np.exp(x - sp.logsumexp(x)), x),
    ("gradient", "tanh(x)", lambda x: np.sum(np.log(np.exp(x) + np.exp(-x))), x),
    ("gradient", "1 − tanh(x)²", lambda x: np.sum((np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))), x),
    ("gradient", "a ∘ sinh(x)", lambda x: a @ (np.exp(x) + np.exp(-x)) / 2, x),
    ("gradient", "[x > 0] ∘ a", lambda x: a @ np.clip(x, 0, np.inf), x - 1),
    ("hessian", "Kᵀ(diag(s) − ssᵀ)K\n  where s = softmax(Kx)", lambda x: log_sum(K @ x), x),
    (
        "hessian",
        "2Xᵀ diag((1 − e²) / (1 + e²)²) X\n  where e = Xw − y",
        lambda w: np.sum(np.log1p((X @ w - y) ** 2)),
        w,
    ),
    # factors of matrices
    ("gradient", "2Sx", lambda x: np.sum((np.linalg.cholesky(S).T @ x) ** 2), x),
    (
        "gradient",
        "S⁻¹x",
        lambda x: 0.5 * np.sum(sl.solve_triangular(sl.cholesky(S, lower=True), x, lower=True) ** 2),
        x,
    ),
    ("gradient", "−L⁻ᵀL⁻¹(a − mu)", lambda mu: 0.5 * np.sum(sl.solve_triangular(L, a - mu, lower=True) ** 2), x),
    ("gradient", "−M⁻ᵀabᵀM⁻ᵀ", lambda M: a @ sl.lu_solve(sl.lu_factor(M), b), M),
    ("gradient", "−M⁻ᵀbaᵀM⁻ᵀ", lambda M: a @ sl.lu_solve(sl.lu_factor(M), b, trans=1), M),
    ("jacobian", "S⁻¹", lambda x: sl.lu_solve(sl.lu_factor(S), x), x),
    ("gradient", "pinv(S) x", lambda x: 0.5 * x @ np.linalg.pinv(S) @ x, x),
    ("gradient", "4M⁻ᵀ", lambda M: 4 * np.linalg.slogdet(gam * M)[1], M),
    ("gradient", "(1 / gam) (−M⁻ᵀabᵀM⁻ᵀ)", lambda M: a @ np.linalg.solve(gam * M, b), M),
    ("jacobian", "(I − dt A)⁻¹(I + dt A)", lambda x: np.linalg.solve(np.eye(4) - dt * A, x + dt * A @ x), x),
    ("jacobian", "I − SKᵀ(KSKᵀ + I)⁻¹K", gain, x),
    ("gradient", "gam Sx + A(Bx) + BᵀAᵀx", lambda x: gam / 2 * x @ S @ x + x @ A @ B @ x, x),
]
