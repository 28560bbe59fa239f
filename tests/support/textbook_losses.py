"""Derivatives from statistics, machine learning, networks and graphs, as their textbooks have them. A row: kind, the
book's formula (one for each argument), the function in plain NumPy, where."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
import scipy.special as sp
from numpy.linalg import det, inv, norm, slogdet, solve

RNG = np.random.default_rng(2)
n, p, m = 6, 4, 3
X = RNG.normal(size=(n, p))
y, z = RNG.normal(size=(2, n))
sy = np.sign(RNG.normal(size=n))
counts = np.floor(RNG.uniform(1.0, 6.0, size=n))
wt = RNG.uniform(0.5, 1.5, size=n)
w, v, a, mu = RNG.normal(size=(4, p))
x = RNG.uniform(0.5, 1.5, size=p)
u = RNG.uniform(0.5, 1.5, size=n)
G = RNG.normal(size=(p, p))
S = G @ G.T + 4 * np.eye(p)
Om = np.linalg.inv(S)
Om = Om + Om.T
R = np.diag(wt)
V = RNG.normal(size=(n, n))
V = V @ V.T + n * np.eye(n)
Y = np.eye(m)[RNG.integers(0, m, n)]
W = RNG.normal(size=(p, m))
M = RNG.uniform(0.5, 1.5, size=(n, p))
u4 = RNG.uniform(0.5, 1.5, size=p)
U0, V0 = RNG.uniform(0.5, 1.5, size=(n, 2)), RNG.uniform(0.5, 1.5, size=(p, 2))
H = RNG.normal(size=(n, p))
F = RNG.normal(size=(p, p))
L0 = np.linalg.cholesky(S)
q, k1 = RNG.normal(size=(2, p))
Ks, Vs = RNG.normal(size=(n, p)), RNG.normal(size=(n, m))
lam, tau, delta, eps, al = 0.3, 2.0, 0.7, 0.1, 0.25
edges = np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 0, 2])
E = np.zeros((5, p))
E[np.arange(5), edges[0]], E[np.arange(5), edges[1]] = 1.0, -1.0
Lap = E.T @ E
W1, W2 = RNG.normal(size=(n, p)), RNG.normal(size=(m, n))
b1, b2 = RNG.normal(size=n), RNG.normal(size=m)
tt = RNG.normal(size=m)


def logistic(w):
    prob = 1 / (1 + np.exp(-X @ w))
    return -np.sum(z * np.log(prob) + (1 - z) * np.log(1 - prob))


def softmax_loss(W):
    logits = X @ W
    logits = logits - logits.max(axis=1, keepdims=True)
    return -np.sum(Y * (logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))))


def huber(w):
    r = X @ w - y
    return np.sum(np.where(np.abs(r) <= delta, 0.5 * r**2, delta * (np.abs(r) - 0.5 * delta)))


def normal_in_covariance(S):
    r = x - mu
    return 0.5 * slogdet(S)[1] + 0.5 * r @ solve(S, r)


def normal_by_cholesky(S):
    L = np.linalg.cholesky(S)
    r = sl.solve_triangular(L, x - mu, lower=True)
    return np.sum(np.log(np.diag(L))) + 0.5 * r @ r


def normal_in_factor(L):
    r = solve(L, x - mu)
    return np.log(det(L)) + 0.5 * r @ r


def marginal_likelihood(K):
    L = np.linalg.cholesky(K)
    alpha = sl.cho_solve((L, True), y)
    return 0.5 * y @ alpha + np.sum(np.log(np.diag(L)))


def layer_norm(x):
    return (x - np.mean(x)) / np.std(x)


def kalman(x):
    r = y - H @ x
    return 0.5 * (x - mu) @ inv(S) @ (x - mu) + 0.5 * r @ inv(V) @ r


ROWS = [
    # least squares
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.sum((X @ w - y) ** 2), w),
    ("gradient", "−2Xᵀ(y − Xw)", lambda w: (y - X @ w) @ (y - X @ w), w),
    ("gradient", "Xᵀ(Xw − y)", lambda w: 0.5 * norm(X @ w - y) ** 2, w),
    ("gradient", "(2/6)Xᵀ(Xw − y)", lambda w: np.mean((X @ w - y) ** 2), w),
    ("gradient", "Xᵀ(Xw − y) / ‖Xw − y‖", lambda w: norm(X @ w - y), w),
    ("gradient", "2Xᵀ(Xw − y) + 2 lam w", lambda w: np.sum((X @ w - y) ** 2) + lam * np.sum(w**2), w),
    ("gradient", "Xᵀ(Xw − y) + lam w", lambda w: 0.5 * np.sum((X @ w - y) ** 2) + 0.5 * lam * w @ w, w),
    ("gradient", "2XᵀR(Xw − y)", lambda w: (X @ w - y) @ R @ (X @ w - y), w),
    ("gradient", "2Xᵀ(wt ∘ (Xw − y))", lambda w: np.sum(wt * (X @ w - y) ** 2), w),
    ("gradient", "XᵀV⁻¹(Xw − y)", lambda w: 0.5 * (y - X @ w) @ inv(V) @ (y - X @ w), w),
    ("gradient", "XᵀV⁻¹(Xw − y)", lambda w: 0.5 * (y - X @ w) @ solve(V, y - X @ w), w),
    ("gradient", "Xᵀ(Xw − y) + lam sign(w)", lambda w: 0.5 * norm(X @ w - y) ** 2 + lam * norm(w, 1), w),
    (
        "gradient",
        "Xᵀ(Xw − y) + lam (al sign(w) + (1 − al)w)",
        lambda w: 0.5 * norm(X @ w - y) ** 2 + lam * (al * np.sum(np.abs(w)) + 0.5 * (1 - al) * w @ w),
        w,
    ),
    ("gradient", "2Xᵀ(Xw − y) + 2GᵀGw", lambda w: norm(X @ w - y) ** 2 + norm(G @ w) ** 2, w),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: norm(X @ W - Y) ** 2, W),
    ("gradient", "2Xᵀ(XW − Y) + 2 lam W", lambda W: norm(X @ W - Y, "fro") ** 2 + lam * norm(W) ** 2, W),
    ("gradient", "Xᵀ sign(Xw − y)", lambda w: np.sum(np.abs(X @ w - y)), w),
    ("gradient", "Xᵀ tanh(Xw − y)", lambda w: np.sum(np.log(np.cosh(X @ w - y))), w),
    (
        "gradient",
        "−Xᵀ(tau − [0 > y − Xw])",
        lambda w: np.sum(np.maximum(tau * (y - X @ w), (tau - 1) * (y - X @ w))),
        w,
    ),
    ("gradient", "Xᵀ clip(Xw − y, −delta, delta)", huber, w),
    ("gradient", "2Xᵀ(e / (1 + e²))\n  where e = Xw − y", lambda w: np.sum(np.log1p((X @ w - y) ** 2)), w),
    ("gradient", "Xᵀ(e / sqrt(1 + e²))\n  where e = Xw − y", lambda w: np.sum(np.sqrt(1 + (X @ w - y) ** 2) - 1), w),
    ("hessian", "2XᵀX", lambda w: np.sum((X @ w - y) ** 2), w),
    ("hessian", "2(XᵀX + lam I)", lambda w: np.sum((X @ w - y) ** 2) + lam * np.sum(w**2), w),
    ("hessian", "XᵀV⁻¹X", lambda w: 0.5 * (y - X @ w) @ inv(V) @ (y - X @ w), w),
    ("hessian", "2Xᵀ diag(wt) X", lambda w: np.sum(wt * (X @ w - y) ** 2), w),
    ("jacobian", "X", lambda w: X @ w - y, w),
    ("jacobian", "−X", lambda w: y - X @ w, w),
    # classification
    ("gradient", "Xᵀ(σ(Xw) − z)", logistic, w),
    ("gradient", "Xᵀ(σ(Xw) − z)", lambda w: np.sum(np.logaddexp(0, X @ w) - z * (X @ w)), w),
    ("gradient", "Xᵀ(σ(Xw) − z)", lambda w: np.sum(np.log1p(np.exp(X @ w))) - z @ (X @ w), w),
    (
        "gradient",
        "Xᵀ(σ(Xw) − z)",
        lambda w: -np.sum(z * np.log(sp.expit(X @ w)) + (1 - z) * np.log(sp.expit(-X @ w))),
        w,
    ),
    ("gradient", "(1/6)Xᵀ(σ(Xw) − z)", lambda w: np.mean(np.logaddexp(0, X @ w) - z * (X @ w)), w),
    ("gradient", "−Xᵀ(sy ∘ σ(−sy ∘ Xw))", lambda w: np.sum(np.log(1 + np.exp(-sy * (X @ w)))), w),
    ("gradient", "−Xᵀ(sy ∘ σ(−sy ∘ Xw))", lambda w: -np.sum(np.log(sp.expit(sy * (X @ w)))), w),
    ("gradient", "−Xᵀ(sy ∘ σ(−sy ∘ Xw))", lambda w: -np.sum(sp.log_expit(sy * (X @ w))), w),
    (
        "gradient",
        "Xᵀ(σ(Xw) − z) + lam w",
        lambda w: np.sum(np.logaddexp(0, X @ w)) - z @ X @ w + 0.5 * lam * norm(w) ** 2,
        w,
    ),
    ("hessian", "Xᵀ diag(σ(Xw) ∘ (1 − σ(Xw))) X", logistic, w),
    ("hessian", "Xᵀ diag(s ∘ (1 − s)) X\n  where s = σ(Xw)", lambda w: np.sum(np.logaddexp(0, X @ w)), w),
    ("gradient", "Xᵀ(softmax(XW) − Y)", softmax_loss, W),
    ("gradient", "Xᵀ(softmax(XW) − Y)", lambda W: np.sum(sp.logsumexp(X @ W, axis=1)) - np.sum(Y * (X @ W)), W),
    ("gradient", "Xᵀ(softmax(XW) − Y)", lambda W: -np.sum(Y * np.log(sp.softmax(X @ W, axis=1))), W),
    ("gradient", "Xᵀ(softmax(XW) − Y)", lambda W: -np.sum(Y * sp.log_softmax(X @ W, axis=1)), W),
    ("gradient", "(1/6)Xᵀ(softmax(XW) − Y)", lambda W: -np.mean(np.sum(Y * sp.log_softmax(X @ W, axis=1), axis=1)), W),
    ("gradient", "softmax(x) − a", lambda x: sp.logsumexp(x) - a @ x, x),
    ("gradient", "softmax(x)", lambda x: np.log(np.sum(np.exp(x))), x),
    ("gradient", "softmax(x)", lambda x: np.max(x) + np.log(np.sum(np.exp(x - np.max(x)))), x),
    ("gradient", "softmax(x / tau)", lambda x: tau * np.log(np.sum(np.exp(x / tau))), x),
    ("jacobian", "diag(s) − ssᵀ\n  where s = softmax(x)", lambda x: np.exp(x) / np.sum(np.exp(x)), x),
    ("jacobian", "diag(s) − ssᵀ\n  where s = softmax(x)", lambda x: sp.softmax(x), x),
    ("jacobian", "I − 𝟏 softmax(x)ᵀ", lambda x: sp.log_softmax(x), x),
    ("hessian", "diag(s) − ssᵀ\n  where s = softmax(x)", lambda x: sp.logsumexp(x), x),
    ("gradient", "−Xᵀ(sy ∘ [1 > sy ∘ Xw])", lambda w: np.sum(np.maximum(0, 1 - sy * (X @ w))), w),
    (
        "gradient",
        "lam w − Xᵀ(sy ∘ [1 > sy ∘ Xw])",
        lambda w: np.sum(np.maximum(0, 1 - sy * (X @ w))) + 0.5 * lam * w @ w,
        w,
    ),
    ("gradient", "−2Xᵀ(sy ∘ max(0, 1 − sy ∘ Xw))", lambda w: np.sum(np.maximum(0, 1 - sy * (X @ w)) ** 2), w),
    ("gradient", "−Xᵀ(sy ∘ exp(−sy ∘ Xw))", lambda w: np.sum(np.exp(-sy * (X @ w))), w),
    ("gradient", "−Xᵀ(sy ∘ [0 > sy ∘ Xw])", lambda w: np.sum(np.maximum(0, -sy * (X @ w))), w),
    # generalised linear models
    ("gradient", "Xᵀ(exp(Xw) − counts)", lambda w: np.sum(np.exp(X @ w) - counts * (X @ w)), w),
    ("hessian", "Xᵀ diag(exp(Xw)) X", lambda w: np.sum(np.exp(X @ w) - counts * (X @ w)), w),
    ("gradient", "Xᵀ(1 − counts ∘ exp(−Xw))", lambda w: np.sum(counts * np.exp(-X @ w) + X @ w), w),
    # the normal distribution
    ("gradient", "−S⁻¹(x − mu)", lambda mu: 0.5 * (x - mu) @ inv(S) @ (x - mu), mu),
    ("gradient", "−S⁻¹(x − mu)", lambda mu: 0.5 * (x - mu) @ solve(S, x - mu), mu),
    ("gradient", "S⁻¹(Xᵀ𝟏 − 6mu)", lambda mu: -0.5 * np.sum((X - mu) @ inv(S) * (X - mu)), mu),
    ("gradient", "½S⁻¹ − ½S⁻¹(x − mu)(x − mu)ᵀS⁻¹", normal_in_covariance, S),
    ("gradient", "½S⁻¹ − ½S⁻¹(x − mu)(x − mu)ᵀS⁻¹", normal_by_cholesky, S),
    ("gradient", "½(x − mu)(x − mu)ᵀ − ½P⁻¹", lambda P: 0.5 * (x - mu) @ P @ (x - mu) - 0.5 * slogdet(P)[1], S),
    ("gradient", "L⁻ᵀ − L⁻ᵀL⁻¹(x − mu)(x − mu)ᵀL⁻ᵀ", normal_in_factor, L0),
    ("gradient", "G − P⁻¹", lambda P: np.trace(G.T @ P) - np.log(det(P)), S),
    ("hessian", "S⁻¹", lambda mu: 0.5 * (x - mu) @ inv(S) @ (x - mu), mu),
    ("gradient", "6 / s − ‖y‖² / s³", lambda s: 6 * np.log(s) + np.sum(y**2) / (2 * s**2), 1.3),
    ("gradient", "−Σ(y − m) / tau²", lambda m: np.sum((y - m) ** 2) / (2 * tau**2), 0.3),
    ("gradient", "½(K⁻¹ − K⁻¹yyᵀK⁻¹)", marginal_likelihood, V),
    ("gradient", "½(K⁻¹ − K⁻¹yyᵀK⁻¹)", lambda K: 0.5 * y @ solve(K, y) + 0.5 * slogdet(K)[1], V),
    (
        "gradient",
        "½ tr(K⁻¹) − ½yᵀK⁻¹K⁻¹y\n  where K = V + sI",
        lambda s: 0.5 * y @ inv(V + s * np.eye(6)) @ y + 0.5 * slogdet(V + s * np.eye(6))[1],
        0.5,
    ),
    ("gradient", "S⁻¹", lambda S: 2 * np.sum(np.log(np.diag(np.linalg.cholesky(S)))), S),
    ("gradient", "exp(−½‖x‖²) (−x)", lambda x: np.exp(-0.5 * x @ x), x),
    ("gradient", "½(Q⁻¹ − Q⁻¹SQ⁻¹)", lambda Q: 0.5 * (np.trace(inv(Q) @ S) + slogdet(Q)[1]), S),
    # other statistics
    ("gradient", "(2/4)(x − mean(x))", lambda x: np.var(x), x),
    ("gradient", "(2/3)(x − mean(x))", lambda x: np.var(x, ddof=1), x),
    ("gradient", "(x − mean(x)) / (4 std(x))", lambda x: np.std(x), x),
    ("gradient", "(1/4)𝟏", lambda x: np.mean(x), x),
    ("gradient", "(1/24)𝟏𝟏ᵀ", lambda X: np.mean(X), X),
    ("gradient", "−log(x) − 1", lambda x: -np.sum(x * np.log(x)), x),
    ("gradient", "log(x / u4) + 1", lambda x: np.sum(x * np.log(x / u4)), x),
    ("gradient", "log(x) + 1 − a", lambda x: np.sum(x * (np.log(x) - a)), x),
    ("gradient", "−a / x", lambda x: -np.sum(a * np.log(x)), x),
    ("gradient", "counts / lam − 1", lambda lam: np.sum(counts * np.log(lam) - lam), u),
    ("gradient", "2(6mu − Xᵀ𝟏)", lambda mu: np.sum((X - mu) ** 2), mu),
    ("gradient", "2X(XᵀX − S)", lambda X: norm(X.T @ X - S) ** 2 / 2, X),
    ("gradient", "Sw / sqrt(wᵀSw)", lambda w: np.sqrt(w @ S @ w), x),
    ("gradient", "mu − lam Sw", lambda w: mu @ w - 0.5 * lam * w @ S @ w, w),
    ("gradient", "mu / sqrt(wᵀSw) − (muᵀw)Sw / sqrt(wᵀSw)³", lambda w: mu @ w / np.sqrt(w @ S @ w), w),
    ("gradient", "−1 / w", lambda w: -np.sum(np.log(w)), x),
    ("gradient", "a − lam / x", lambda x: a @ x - lam * np.sum(np.log(x)), x),
    ("gradient", "Xᵀ(1 / (b1 − Xw))", lambda w: -np.sum(np.log(b1 - X @ w)), 0.01 * w),
    ("hessian", "Xᵀ diag(1 / (b1 − Xw)²) X", lambda w: -np.sum(np.log(b1 - X @ w)), 0.01 * w),
    ("hessian", "diag(1 / x)", lambda x: np.sum(x * np.log(x)), x),
    # matrix factorisation, PCA, k-means
    ("gradient", "−2SW", lambda W: -np.trace(W.T @ S @ W), W),
    ("gradient", "−2XᵀXW", lambda W: -(norm(X @ W) ** 2), W),
    ("gradient", "2(Sw − (wᵀSw)w / ‖w‖²) / ‖w‖²", lambda w: w @ S @ w / (w @ w), w),
    (
        "gradient",
        ("2(UVᵀ − M)V", "2(UVᵀ − M)ᵀU"),
        lambda U, V: norm(M - U @ V.T) ** 2,
        U0,
        V0,
    ),
    (
        "gradient",
        ("(UVᵀ − M)V + lam U", "(UVᵀ − M)ᵀU + lam V"),
        lambda U, V: 0.5 * norm(M - U @ V.T) ** 2 + 0.5 * lam * (norm(U) ** 2 + norm(V) ** 2),
        U0,
        V0,
    ),
    (
        "gradient",
        ("(𝟏𝟏ᵀ − M / (UVᵀ))V", "(𝟏𝟏ᵀ − M / (UVᵀ))ᵀU"),
        lambda U, V: np.sum(U @ V.T - M * np.log(U @ V.T)),
        U0,
        V0,
    ),
    ("gradient", "2Yᵀ(YC − X)", lambda C: norm(X - Y @ C) ** 2, W.T),
    ("gradient", "2(XWWᵀ − X)ᵀXW + 2Xᵀ(XWWᵀ − X)W", lambda W: norm(X @ W @ W.T - X) ** 2, W),
    # contrastive losses, kernels, attention
    ("gradient", "Ksᵀ softmax(Ks q / tau) / tau − a / tau", lambda q: sp.logsumexp(Ks @ q / tau) - a @ q / tau, q),
    (
        "jacobian",
        "Vsᵀ(diag(s) − ssᵀ)Ks / tau\n  where s = softmax(Ks q / tau)",
        lambda q: sp.softmax(Ks @ q / tau) @ Vs,
        q,
    ),
    ("gradient", "v / (‖q‖‖v‖) − (qᵀv)q / (‖q‖³‖v‖)", lambda q: q @ v / (norm(q) * norm(v)), q),
    ("gradient", "(a − x) exp(−½‖x − a‖²)", lambda x: np.exp(-0.5 * norm(x - a) ** 2), x),
    (
        "gradient",
        "−k(x − a) / tau²\n  where k = exp(−½‖x − a‖² / tau²)",
        lambda x: np.exp(-np.sum((x - a) ** 2) / (2 * tau**2)),
        x,
    ),
    (
        "gradient",
        "2[1 + ‖x − a‖² > ‖x − v‖²] (v − a)",
        lambda x: np.maximum(0, 1 + norm(x - a) ** 2 - norm(x - v) ** 2),
        x,
    ),
    # networks
    ("gradient", "Xᵀ(1 − tanh(Xw)²)", lambda w: np.sum(np.tanh(X @ w)), w),
    ("gradient", "2((1 − tanh(Wx)²) ∘ (tanh(Wx) − y))xᵀ", lambda W: np.sum((np.tanh(W @ x) - y) ** 2), W1),
    (
        "gradient",
        ("exᵀ", "e\n  where e = (W2ᵀ(W2h + b2 − tt)) ∘ (1 − h²)\n        h = tanh(W1x + b1)"),
        lambda W1, b1: 0.5 * np.sum((W2 @ np.tanh(W1 @ x + b1) + b2 - tt) ** 2),
        W1,
        b1,
    ),
    (
        "gradient",
        ("ehᵀ", "e\n  where e = softmax(W2h + b2) − tt\n        h = max(0, W1x + b1)"),
        lambda W2, b2: sp.logsumexp(W2 @ np.maximum(0, W1 @ x + b1) + b2) - tt @ (W2 @ np.maximum(0, W1 @ x + b1) + b2),
        W2,
        b2,
    ),
    ("jacobian", "diag(1 − tanh(W1x)²) W1", lambda x: np.tanh(W1 @ x), x),
    ("jacobian", "W2 diag(1 − tanh(W1x)²) W1", lambda x: W2 @ np.tanh(W1 @ x), x),
    ("jacobian", "diag(s ∘ (1 − s)) W1\n  where s = σ(W1x + b1)", lambda x: sp.expit(W1 @ x + b1), x),
    ("jacobian", "diag([W1x + b1 > 0]) W1", lambda x: np.maximum(W1 @ x + b1, 0), x),
    ("jacobian", "W2 diag([W1x + b1 > 0]) W1", lambda x: W2 @ np.maximum(W1 @ x + b1, 0) + b2, x),
    ("gradient", "σ(x) + x ∘ σ(x) ∘ (1 − σ(x))", lambda x: np.sum(x * sp.expit(x)), x),
    ("gradient", "σ(x)", lambda x: np.sum(np.log1p(np.exp(x))), x),
    ("gradient", "σ(x) ∘ (1 − σ(x))", lambda x: np.sum(1 / (1 + np.exp(-x))), x),
    ("gradient", "1 − tanh(x)²", lambda x: np.sum(np.tanh(x)), x),
    ("gradient", "[x > 0]", lambda x: np.sum(np.maximum(x, 0)), x),
    ("gradient", "1 / (1 + |x|)²", lambda x: np.sum(x / (1 + np.abs(x))), x),
    ("jacobian", "I − (1/4)𝟏𝟏ᵀ", lambda x: x - np.mean(x), x),
    ("jacobian", "(I − (1/4)𝟏𝟏ᵀ − (1/4)hhᵀ) / std(x)\n  where h = (x − mean(x)) / std(x)", layer_norm, x),
    (
        "jacobian",
        "diag(a) / s − (a ∘ x)xᵀ / (4s³)\n  where s = sqrt(mean(x²))",
        lambda x: a * x / np.sqrt(np.mean(x**2)),
        x,
    ),
    ("gradient", "2Xᵀ(XW)", lambda W: norm(X @ W) ** 2, W),
    # filters, control, dynamics
    ("gradient", "S⁻¹(x − mu) − HᵀV⁻¹(y − Hx)", kalman, x),
    ("hessian", "S⁻¹ + HᵀV⁻¹H", kalman, x),
    ("jacobian", "F", lambda x: F @ x + a, x),
    ("jacobian", "I + eps F", lambda x: x + eps * (F @ x), x),
    ("jacobian", "I − eps S", lambda x: x - eps * (S @ x - a), x),
    ("jacobian", "diag(a) − diag(Fx) − diag(x)F", lambda x: x * (a - F @ x), x),
    ("gradient", "2(Sx + FᵀSFx)", lambda x: x @ S @ x + (F @ x) @ S @ (F @ x), x),
    (
        "gradient",
        "−2(I − KH)SHᵀ + 2KV",
        lambda K: np.trace((np.eye(4) - K @ H) @ S @ (np.eye(4) - K @ H).T + K @ V @ K.T),
        H.T,
    ),
    # graphs
    ("gradient", "2Eᵀ(Ex)", lambda x: norm(E @ x) ** 2, x),
    ("gradient", "2Lap x", lambda x: x @ Lap @ x, x),
    ("hessian", "2EᵀE", lambda x: norm(E @ x) ** 2, x),
    (
        "gradient",
        "2DᵀDx\n  where D = I₄[[0, 1, 2, 3, 0]] − I₄[[1, 2, 3, 0, 2]]",
        lambda x: np.sum((x[edges[0]] - x[edges[1]]) ** 2),
        x,
    ),
    (
        "gradient",
        "Dᵀ sin(Dx)\n  where D = I₄[[0, 1, 2, 3, 0]] − I₄[[1, 2, 3, 0, 2]]",
        lambda x: -np.sum(np.cos(x[edges[0]] - x[edges[1]])),
        x,
    ),
    ("gradient", "2DᵀDx\n  where D = I₄[1:] − I₄[:3]", lambda x: np.sum((x[1:] - x[:-1]) ** 2), x),
    ("gradient", "2DᵀDx\n  where D = I₄[1:] − I₄[:3]", lambda x: np.sum(np.diff(x) ** 2), x),
    ("gradient", "Dᵀ sign(Dx)\n  where D = I₄[1:] − I₄[:3]", lambda x: np.sum(np.abs(np.diff(x))), x),
    (
        "gradient",
        "(x − a) + lam Dᵀ(Dx / sqrt((Dx)² + eps))\n  where D = I₄[1:] − I₄[:3]",
        lambda x: 0.5 * norm(x - a) ** 2 + lam * np.sum(np.sqrt(np.diff(x) ** 2 + eps)),
        x,
    ),
    ("gradient", "4(6X − 𝟏𝟏ᵀX)", lambda X: np.sum((X[:, None, :] - X[None, :, :]) ** 2), X),
    ("hessian", "2DᵀD\n  where D = I₄[1:] − I₄[:3]", lambda x: np.sum(np.diff(x) ** 2), x),
    # scalars and small functions
    ("gradient", "cos(t)", lambda t: np.sin(t), 0.3),
    ("gradient", "3t²", lambda t: t**3, 0.3),
    ("gradient", "exp(t) (1 + t)", lambda t: t * np.exp(t), 0.3),
    ("gradient", "aᵀexp(ta)", lambda t: np.sum(np.exp(t * a)), 0.3),
    (
        "gradient",
        ("−2(1 − s) − 400s(t − s²)", "200(t − s²)"),
        lambda s, t: (1 - s) ** 2 + 100 * (t - s**2) ** 2,
        0.3,
        0.7,
    ),
    ("gradient", ("2s", "2t"), lambda s, t: s**2 + t**2, 0.3, 0.7),
    ("gradient", "2(tΣ(a²) − aᵀv)", lambda t: np.sum((t * a - v) ** 2), 0.3),
    ("jacobian", "a", lambda t: t * a + v, 0.3),
    ("hessian", "2‖a‖²", lambda t: np.sum((t * a - v) ** 2), 0.3),
    ("gradient", "exp(mean(log(x))) / (4x)", lambda x: np.exp(np.mean(np.log(x))), x),
    ("gradient", "prod(x) / x", lambda x: np.prod(x), x),
    ("gradient", "sinh(x)", lambda x: np.sum(np.cosh(x)), x),
    ("gradient", "a ∘ x^(a − 1)", lambda x: np.sum(x**a), x),
]
