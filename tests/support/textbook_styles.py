"""Textbook derivatives of functions as different people write them: einsum, loops over rows, classes, closures,
dictionaries, default values, np.where, scipy.special and scipy.stats, keepdims. A row: kind, the book's formula, the
function in plain NumPy, where."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.special as sp
import scipy.stats as st

RNG = np.random.default_rng(3)
n, p, m = 6, 4, 3
X = RNG.normal(size=(n, p))
y = RNG.normal(size=n)
z = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
sy = 2 * z - 1
wt = RNG.uniform(0.5, 1.5, size=n)
w, a, b, c, mu, mu0, q = RNG.normal(size=(7, p))
x, u = RNG.uniform(0.5, 1.5, size=(2, p))
A, B, C, G = RNG.normal(size=(4, p, p))
S = G @ G.T + 4 * np.eye(p)
P = A @ A.T + 3 * np.eye(p)
R = np.diag([0.5, 0.8, 1.2]) + 0.1
H = RNG.normal(size=(m, p))
F = RNG.normal(size=(p, p))
z3 = RNG.normal(size=m)
M = RNG.uniform(0.5, 1.5, size=(n, p))
V0 = RNG.uniform(0.5, 1.5, size=(n, 2))
H0 = RNG.uniform(0.5, 1.5, size=(2, p))
W = RNG.normal(size=(p, m))
Y = np.eye(m)[np.array([0, 2, 1, 1, 0, 2])]
N = RNG.normal(size=(n, n))
Kn = N @ N.T + n * np.eye(n)
K0 = Kn / 2
L0 = np.linalg.cholesky(S)
X0 = 2 * np.eye(p) + 0.3 * RNG.normal(size=(p, p))
lam, tau, sigma2, delta, alpha, margin, beta = 0.3, 2.0, 0.8, 0.7, 0.25, 1.0, 0.9
src, dst = np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 0, 2])
Wg = np.abs(RNG.normal(size=(p, p)))
Wg = Wg + Wg.T
W1, W2 = RNG.normal(size=(5, p)), RNG.normal(size=(m, 5))
b1, b2 = RNG.normal(size=5), RNG.normal(size=m)
t3 = RNG.normal(size=m)
Qm, Km, Vm = RNG.normal(size=(3, p)), RNG.normal(size=(5, p)), RNG.normal(size=(5, m))
Phi = RNG.normal(size=(n, p))
idx = np.array([2, 0, 3, 3, 1])
obs = RNG.normal(size=5)
Gm = RNG.normal(size=(p, p))
G0 = RNG.normal(size=(3, m))
ws = RNG.uniform(0.5, 1.5, size=5)
reg = 0.3
mask = (RNG.uniform(size=(n, p)) > 0.4).astype(float)


class Ridge:
    def __init__(self):
        self.X, self.y, self.lam = X, y, lam

    def predict(self, w):
        return np.dot(self.X, w)

    def loss(self, w):
        r = self.predict(w) - self.y
        return 0.5 * np.dot(r, r) + 0.5 * self.lam * np.dot(w, w)

    def __call__(self, w):
        return self.loss(w)


class Logistic:
    def __init__(self, X, t, lam=0.1):
        self.X = X
        self.t = t
        self.lam = lam

    @staticmethod
    def sigmoid(v):
        return 1.0 / (1.0 + np.exp(-v))

    def nll(self, w):
        h = self.sigmoid(self.X.dot(w))
        return -(self.t * np.log(h) + (1 - self.t) * np.log(1 - h)).sum() / len(self.t)


class Kalman:
    def __init__(self):
        self.H, self.R, self.P, self.mu, self.z = H, R, P, mu, z3

    def cost(self, x):
        innovation = self.z - self.H @ x
        prior = x - self.mu
        return innovation @ np.linalg.solve(self.R, innovation) / 2 + prior @ np.linalg.solve(self.P, prior) / 2


def make_loss(X, y, reg):
    def loss(w):
        return ((X @ w - y) ** 2).mean() + reg * (w**2).sum()

    return loss


def weighted(w, X=X, y=y, wt=wt):
    return np.sum(wt * np.square(y - X.dot(w)))


def affine(layer, x):
    return layer["W"] @ x + layer["b"]


def mlp(params, x):
    h = np.tanh(affine(params["first"], x))
    return affine(params["second"], h)


def elbo_term(mu, rho):
    s = np.exp(rho)
    return 0.5 * np.sum(s**2 + mu**2 - 1 - 2 * rho)


def stable_softmax(v, axis=-1):
    v = v - np.max(v, axis=axis, keepdims=True)
    e = np.exp(v)
    return e / np.sum(e, axis=axis, keepdims=True)


def cross_entropy(W):
    probs = stable_softmax(X @ W, axis=1)
    return -np.sum(Y * np.log(probs)) / X.shape[0]


def stable_bce(w):
    s = X @ w
    return np.sum(np.maximum(s, 0) - s * z + np.log1p(np.exp(-np.abs(s))))


def huber_where(w):
    r = y - X @ w
    a = np.abs(r)
    return np.where(a < delta, 0.5 * r * r, delta * a - 0.5 * delta**2).sum()


def smooth_hinge(w):
    t = sy * (X @ w)
    return np.sum(np.where(t >= 1, 0.0, 0.5 * (1 - t) ** 2))


def attention(q):
    s = Km @ q / np.sqrt(p)
    return stable_softmax(s) @ (Vm @ t3)


def gp_nll(K):
    n = len(y)
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y.dot(alpha) + np.log(np.diagonal(L)).sum() + 0.5 * n * np.log(2 * np.pi)


def gp_in_noise(s):
    K = K0 + s * np.eye(n)
    return 0.5 * y @ np.linalg.solve(K, y) + 0.5 * np.linalg.slogdet(K)[1]


def mvn_logpdf(mu):
    L = np.linalg.cholesky(S)
    v = sl.solve_triangular(L, x - mu, lower=True)
    return -0.5 * v @ v - np.log(np.diag(L)).sum() - 0.5 * p * np.log(2 * np.pi)


def rms_norm(x):
    return x / np.sqrt(np.mean(x**2))


def triplet(x):
    return np.maximum(0.0, np.sum((x - a) ** 2) - np.sum((x - b) ** 2) + margin)


def info_nce(q):
    logits = Phi @ q / tau
    return -logits[0] + sp.logsumexp(logits)


def graph_smoothness(x):
    return 0.5 * np.sum(Wg * (x[:, None] - x[None, :]) ** 2)


def power_step(x):
    v = S @ x
    return v / np.linalg.norm(v)


def rosenbrock_like(x):
    return np.sum((x[1:] - x[:-1]) ** 2) * 0.5


def horner(t):
    s = 0.0
    for k in (2.0, -1.0, 3.0):
        s = s * t + k
    return s


def newton_schulz(X):
    return np.sum(A * (2 * X - X @ X))


RIDGE, LOGISTIC, KALMAN = Ridge(), Logistic(X, z), Kalman()
CONFIG = {"lam": 0.5, "A": A, "b": b}
t = z


class Scorer(NamedTuple):
    A: np.ndarray
    b: np.ndarray


@dataclasses.dataclass
class Quadratic:
    A: np.ndarray
    reg: float = 0.5

    @property
    def gram(self):
        return self.A.T @ self.A

    @staticmethod
    def square(v):
        return np.sum(v**2)

    def loss(self, x):
        return x @ self.gram @ x + self.reg * self.square(x)


def by_rows(w):
    total = 0.0
    for i in range(len(y)):
        total = total + (X[i] @ w - y[i]) ** 2
    return total


def by_entries(x):
    total = 0.0
    for i in range(p):
        for j in range(p):
            total += A[i, j] * x[i] * x[j]
    return total


def rosenbrock(x):
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(p - 1))


def class_loss(W):
    logits = X @ W
    logits = logits - logits.max(1, keepdims=True)
    log_probability = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    return -log_probability[np.arange(n), classes].mean()


def masked_softmax(x):
    e = np.exp(x - np.max(x)) * keep
    return a @ (e / e.sum())


classes, labels, keep = np.array([0, 2, 1, 1, 0, 2]), np.array([1, 0, 1, 1, 0, 1]), np.array([1, 0, 1, 1])
SCORER, QUADRATIC, LAYERS = Scorer(A, b), Quadratic(A), [A, B]
ROWS = [
    # as loops, by containers, of whole numbers
    ("gradient", "2Xᵀ(Xw − y)", by_rows, w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: sum((xi @ w - yi) ** 2 for xi, yi in zip(X, y, strict=True)), w),
    ("gradient", "−Xᵀ(y ∘ σ(−y ∘ Xw))", lambda w: sum(np.log(1 + np.exp(-y[i] * (X[i] @ w))) for i in range(n)), w),
    ("gradient", "(A + Aᵀ)x", by_entries, x),
    (
        "gradient",
        "200Qᵀ(Qx − s) − 400Pᵀ((Qx − s) ∘ Px) − 2Pᵀ(1 − Px)\n  where s = (Px)²\n        P = I₄[:3]\n        Q = I₄[1:]",
        rosenbrock,
        x,
    ),
    ("gradient", "2Aᵀ(Ax − b)", lambda x: np.sum((SCORER.A @ x - SCORER.b) ** 2), x),
    ("gradient", "2AᵀAx + 2reg x", QUADRATIC.loss, x),
    ("jacobian", "LAYERS1 LAYERS0", lambda x: functools.reduce(lambda v, L: L @ v, LAYERS, x), x),
    ("gradient", "Xᵀ(softmax(XW) − P) / 6\n  where P = I₃[classes]", class_loss, W),
    (
        "gradient",
        "Xᵀ(softmax(XW) − P)\n  where P = I₃[classes]",
        lambda W: -np.sum(np.eye(m)[classes] * sp.log_softmax(X @ W, 1)),
        W,
    ),
    (
        "gradient",
        "Xᵀ(σ(Xw) − labels)",
        lambda w: -np.sum(labels * np.log(sp.expit(X @ w)) + (1 - labels) * np.log(sp.expit(-X @ w))),
        w,
    ),
    (
        "gradient",
        "−Xᵀ((2labels − 1) ∘ σ((1 − 2labels) ∘ Xw))",
        lambda w: np.sum(np.logaddexp(0, -(2 * labels - 1) * (X @ w))),
        w,
    ),
    ("gradient", "keep ∘ exp(x) ∘ (a − aᵀ(keep ∘ exp(x)) / s) / s\n  where s = keepᵀexp(x)", masked_softmax, x),
    (
        "gradient",
        "x₃e2 + x₂e3 + x₁e0 + x₀e1\n  where e0 = I₄[0]\n        e1 = I₄[1]\n        e2 = I₄[2]\n        e3 = I₄[3]",
        lambda x: x[0] * x[1] + x[2] * x[3],
        x,
    ),
    ("gradient", "[x > 0] ∘ [6 > x]", lambda x: np.sum(np.minimum(np.maximum(x, 0), 6)), x),
    ("gradient", "σ(−x) − σ(x)", lambda x: st.logistic.logpdf(x).sum(), x),
    ("gradient", "−4x / (3 + x²)", lambda x: st.t.logpdf(x, 3.0).sum(), x),
    ("gradient", "(1 / sqrt(2π)) exp(−½x²)", lambda x: st.norm.cdf(x).sum(), x),
    # least squares, written in many ways
    ("gradient", "Xᵀ(Xw − y) + lam w", RIDGE.loss, w),
    ("gradient", "Xᵀ(Xw − y) + lam w", RIDGE, w),
    ("gradient", "2(Xᵀ(Xw − y) / 6 + reg w)", make_loss(X, y, 0.3), w),
    ("gradient", "2Xᵀ(wt ∘ (Xw − y))", weighted, w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.einsum("i,i->", X @ w - y, X @ w - y), w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.square(np.einsum("ij,j->i", X, w) - y).sum(), w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.linalg.norm(np.matmul(X, w) - y, ord=2) ** 2, w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.inner(X @ w - y, X @ w - y), w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.vdot(X @ w - y, X @ w - y), w),
    ("gradient", "(2/6)Xᵀ(Xw − y)", lambda w: np.average((X @ w - y) ** 2), w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.add.reduce((X @ w - y) ** 2), w),
    ("gradient", "2Xᵀ(Xw − y)", lambda w: np.trace(np.outer(X @ w - y, X @ w - y)), w),
    ("gradient", "2Xᵀ(Xw − y) + 2 lam w", lambda w: w @ X.T @ X @ w - 2 * y @ X @ w + y @ y + lam * w @ w, w),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: np.sum((X @ W - Y) ** 2, axis=(0, 1)), W),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: np.sum(np.sum((X @ W - Y) ** 2, axis=1)), W),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: np.einsum("ik,ik->", X @ W - Y, X @ W - Y), W),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: np.trace((X @ W - Y).T @ (X @ W - Y)), W),
    ("gradient", "2Xᵀ(XW − Y)", lambda W: np.linalg.norm((X @ W - Y).ravel()) ** 2, W),
    ("gradient", "(2/18)Xᵀ(XW − Y)", lambda W: np.mean((X @ W - Y) ** 2), W),
    ("gradient", "Aᵀ(Ax − b)", functools.partial(lambda A, b, x: 0.5 * np.sum((A @ x - b) ** 2), A, b), x),
    ("gradient", "2lam x + Aᵀb", lambda x: CONFIG["lam"] * x @ x + (CONFIG["A"] @ x) @ CONFIG["b"], x),
    ("gradient", "Σ(wt ∘ (y − m)) (−2)", lambda m: np.sum(wt * (y - m) ** 2), 0.3),
    ("gradient", "2Xᵀ(Xw − y) / ‖y − mean(y)‖²", lambda w: np.sum((y - X @ w) ** 2) / np.sum((y - y.mean()) ** 2), w),
    ("gradient", "(Xᵀ(Xw − y)) / sqrt(‖Xw − y‖² + delta)", lambda w: np.sqrt(np.sum((X @ w - y) ** 2) + delta), w),
    ("gradient", "Xᵀ((Xw − y) / sqrt(delta + (Xw − y)²))", lambda w: np.sqrt((X @ w - y) ** 2 + delta).sum(), w),
    ("gradient", "2Xᵀ((Xw − y) / (1 + (Xw − y)²))", lambda w: np.log1p((X @ w - y) ** 2).sum(), w),
    ("gradient", "3Xᵀ((Xw − y) ∘ |Xw − y|)", lambda w: np.sum(np.abs(X @ w - y) ** 3), w),
    (
        "gradient",
        "−Xᵀ(alpha − [Xw > y])",
        lambda w: np.sum(np.maximum(alpha * (y - X @ w), (alpha - 1) * (y - X @ w))),
        w,
    ),
    ("gradient", "Xᵀ clip(Xw − y, −delta, delta)", huber_where, w),
    ("gradient", "Xᵀ clip(Xw − y, −delta, delta)", lambda w: sp.huber(delta, X @ w - y).sum(), w),
    ("hessian", "2XᵀX + 2 lam I", lambda w: np.sum((X @ w - y) ** 2) + lam * np.sum(w * w), w),
    ("hessian", "2Xᵀ diag(wt) X", weighted, w),
    ("jacobian", "X", lambda w: X @ w - y, w),
    ("jacobian", "−diag(wt) X", lambda w: wt * (y - X @ w), w),
    # logistic and friends
    ("gradient", "Xᵀ(σ(Xw) − t) / 6", LOGISTIC.nll, w),
    ("gradient", "Xᵀ(σ(Xw) − z)", stable_bce, w),
    ("gradient", "−Xᵀ(sy ∘ σ(−sy ∘ Xw))", lambda w: np.logaddexp(0, -sy * (X @ w)).sum(), w),
    ("gradient", "−(1/6)Xᵀ(sy ∘ σ(−sy ∘ Xw))", lambda w: np.mean(np.log1p(np.exp(-sy * X.dot(w)))), w),
    (
        "gradient",
        "Xᵀ(σ(Xw) − z) + lam w",
        lambda w: -np.sum(z * np.log(sp.expit(X @ w)) + (1 - z) * np.log1p(-sp.expit(X @ w))) + lam / 2 * w @ w,
        w,
    ),
    (
        "gradient",
        "Xᵀ(σ(Xw) − z)",
        lambda w: -np.sum(sp.xlogy(z, sp.expit(X @ w)) + sp.xlog1py(1 - z, -sp.expit(X @ w))),
        w,
    ),
    ("gradient", "Xᵀ(exp(Xw) − y)", lambda w: np.exp(X @ w).sum() - y.dot(X.dot(w)), w),
    ("hessian", "Xᵀ diag(σ(Xw) ∘ (1 − σ(Xw))) X", stable_bce, w),
    ("gradient", "Xᵀ(softmax(XW) − Y) / 6", cross_entropy, W),
    ("gradient", "Xᵀ(softmax(XW) − Y)", lambda W: -np.sum(Y * (X @ W - sp.logsumexp(X @ W, axis=1, keepdims=True))), W),
    (
        "gradient",
        "Xᵀ(softmax(XW) − Y)",
        lambda W: np.sum(np.log(np.exp(X @ W).sum(axis=1)) - (Y * (X @ W)).sum(axis=1)),
        W,
    ),
    ("gradient", "σ(x)", lambda x: np.where(x > 0, x + np.log1p(np.exp(-x)), np.log1p(np.exp(x))).sum(), x - 1),
    ("gradient", "σ(x)", lambda x: -sp.log_expit(-x).sum(), x),
    ("gradient", "σ(x) ∘ (1 − σ(x))", lambda x: np.sum(0.5 * (1 + np.tanh(x / 2))), x),
    ("gradient", "beta σ(beta x) ∘ (1 − σ(beta x))", lambda x: np.sum(1 / (1 + np.exp(-beta * x))), x),
    ("gradient", "1 / (x ∘ (1 − x))", lambda x: np.sum(sp.logit(x)), x / 2),
    ("gradient", "1 / (x ∘ (1 − x))", lambda x: np.sum(np.log(x / (1 - x))), x / 2),
    ("gradient", "softmax(x)", lambda x: sp.logsumexp(x), x),
    ("gradient", "softmax(x + a)", lambda x: np.log(np.sum(np.exp(x + a))), x),
    ("gradient", "wt ∘ exp(x) / (wtᵀexp(x))", lambda x: sp.logsumexp(x, b=wt), y),
    ("jacobian", "diag(s) − ssᵀ\n  where s = softmax(x)", stable_softmax, x),
    ("jacobian", "(diag(s) − ssᵀ) / tau\n  where s = softmax(x / tau)", lambda x: stable_softmax(x / tau), x),
    ("gradient", "s ∘ (a − aᵀs)\n  where s = softmax(x)", lambda x: a @ sp.softmax(x), x),
    (
        "gradient",
        "−s ∘ (log(s) − sᵀlog(s))\n  where s = softmax(x)",
        lambda x: -np.sum(sp.softmax(x) * sp.log_softmax(x)),
        x,
    ),
    (
        "gradient",
        "−Xᵀ(sy ∘ [1 > sy ∘ Xw]) / 6 + lam w",
        lambda w: np.mean(np.clip(1 - sy * (X @ w), 0, None)) + lam / 2 * np.dot(w, w),
        w,
    ),
    ("gradient", "−Xᵀ(sy ∘ max(0, 1 − sy ∘ Xw))", smooth_hinge, w),
    ("gradient", "[x > 0] + alpha [0 > x]", lambda x: np.sum(np.where(x > 0, x, alpha * x)), x - 1),
    ("gradient", "[x > 0] + [0 > x] ∘ exp(x)", lambda x: np.sum(np.where(x > 0, x, np.expm1(x))), x - 1),
    ("gradient", "σ(x) + x ∘ σ(x) ∘ (1 − σ(x))", lambda x: np.sum(x * (1 / (1 + np.exp(-x)))), x),
    (
        "gradient",
        "tanh(s) + x ∘ (1 − tanh(s)²) ∘ σ(x)\n  where s = log(1 + exp(x))",
        lambda x: np.sum(x * np.tanh(np.log1p(np.exp(x)))),
        x,
    ),
    (
        "gradient",
        "½(1 + erf(x / 1.4142135623730951)) + x ∘ exp(−½x²) / 2.5066282746310002",
        lambda x: np.sum(0.5 * x * (1 + sp.erf(x / np.sqrt(2)))),
        x,
    ),
    # Gaussians
    ("gradient", "S⁻¹(x − mu)", mvn_logpdf, mu),
    ("gradient", "S⁻¹(x − mu)", lambda m: st.multivariate_normal.logpdf(x, m, S), mu),
    ("gradient", "½(K⁻¹ − K⁻¹yyᵀK⁻¹)", gp_nll, Kn),
    ("gradient", "½ tr((K0 + sI)⁻¹) − ½‖(K0 + sI)⁻¹y‖²", gp_in_noise, 0.5),
    (
        "gradient",
        "½S⁻¹ − ½S⁻¹(x − mu)(x − mu)ᵀS⁻¹",
        lambda S: 0.5 * np.log(np.linalg.det(S)) + 0.5 * (x - mu).T @ np.linalg.inv(S) @ (x - mu),
        S,
    ),
    ("gradient", "½S⁻¹ − ½S⁻¹(x − mu)(x − mu)ᵀS⁻¹", lambda S: -st.multivariate_normal.logpdf(x, mu, S), S),
    (
        "gradient",
        "diag(1 / diag(L)) − L⁻ᵀL⁻¹(x − mu)(x − mu)ᵀL⁻ᵀ",
        lambda L: np.sum(np.log(np.diag(L))) + 0.5 * np.sum(np.linalg.solve(L, x - mu) ** 2),
        L0,
    ),
    ("gradient", "(mu − x) / sigma2", lambda m: np.sum((x - m) ** 2) / (2 * sigma2), mu),
    ("gradient", "½‖x − mu‖² / v² − 2 / v", lambda v: -0.5 * 4 * np.log(v) - 0.5 * np.sum((x - mu) ** 2) / v, 0.9),
    ("gradient", "1 − exp(−2r) ‖x − mu‖² / 4", lambda r: (np.sum((x - mu) ** 2) * np.exp(-2 * r) / 2 + 4 * r) / 4, 0.2),
    ("gradient", ("mu", "exp(2rho) − 1"), elbo_term, mu, 0.1 * u),
    (
        "gradient",
        "S⁻¹(x − mu) + P⁻¹(x − mu0)",
        lambda x: 0.5 * (x - mu) @ np.linalg.solve(S, x - mu) + 0.5 * (x - mu0) @ np.linalg.inv(P) @ (x - mu0),
        x,
    ),
    ("gradient", "½(S⁻¹ − P⁻¹)", lambda P: 0.5 * (np.trace(np.linalg.solve(S, P)) - np.linalg.slogdet(P)[1]), P),
    ("gradient", "6S⁻¹mu − S⁻¹Xᵀ𝟏", lambda mu: 0.5 * np.einsum("ij,jk,ik->", X - mu, np.linalg.inv(S), X - mu), mu),
    (
        "gradient",
        "½(6S⁻¹ − S⁻¹(X − 𝟏muᵀ)ᵀ(X − 𝟏muᵀ)S⁻¹)",
        lambda S: 0.5 * np.einsum("ij,jk,ik->", X - mu, np.linalg.inv(S), X - mu) + 3 * np.linalg.slogdet(S)[1],
        S,
    ),
    ("gradient", "−(x − mu) / sigma2", lambda x: st.norm.logpdf(x, mu, np.sqrt(sigma2)).sum(), x),
    ("gradient", "−sign(x − mu) / tau", lambda x: st.laplace.logpdf(x, mu, tau).sum(), x),
    ("gradient", "lam − Σ(u) / lam²", lambda lam: np.sum(u) / lam + lam**2 / 2, 1.3),
    ("gradient", "4 / lam − Σ(u)", lambda lam: st.expon.logpdf(u, scale=1 / lam).sum(), 1.3),
    (
        "gradient",
        "(a − 1) / x − (b − 1) / (1 − x)",
        lambda x: np.sum((a - 1) * np.log(x) + (b - 1) * np.log(1 - x)),
        x / 2,
    ),
    ("gradient", "psi(a) − psi(Σ(a))", lambda a: np.sum(sp.gammaln(a)) - sp.gammaln(np.sum(a)), u),
    ("gradient", "−beta (x − mu) / (tau + (x − mu)²)", lambda x: -0.5 * beta * np.sum(np.log(tau + (x - mu) ** 2)), x),
    (
        "hessian",
        "S⁻¹ + P⁻¹",
        lambda x: 0.5 * (x - mu) @ np.linalg.solve(S, x - mu) + 0.5 * (x - mu0) @ np.linalg.inv(P) @ (x - mu0),
        x,
    ),
    # Kalman, filters, control
    ("gradient", "P⁻¹(x − mu) − HᵀR⁻¹(z − Hx)", KALMAN.cost, x),
    ("hessian", "P⁻¹ + HᵀR⁻¹H", KALMAN.cost, x),
    ("jacobian", "I − PHᵀ(HPHᵀ + R)⁻¹H", lambda x: x + P @ H.T @ np.linalg.solve(H @ P @ H.T + R, z3 - H @ x), x),
    ("jacobian", "I − PHᵀ(HPHᵀ + R)⁻¹H", lambda x: x + P @ H.T @ np.linalg.inv(H @ P @ H.T + R) @ (z3 - H @ x), x),
    ("gradient", "2(FᵀSFx + Px)", lambda x: (F @ x) @ S @ (F @ x) + x.T @ P @ x, x),
    (
        "gradient",
        "−2(P Hᵀ − K(HPHᵀ + R))",
        lambda K: np.trace((np.eye(p) - K @ H) @ P @ (np.eye(p) - K @ H).T + K @ R @ K.T),
        H.T,
    ),
    ("jacobian", "F − BA", lambda x: F @ x - B @ (A @ x), x),
    ("gradient", "2(F²)ᵀ(F²x − a)", lambda x: np.sum((F @ (F @ x) - a) ** 2), x),
    # PCA, NMF, factorisations, k-means
    ("gradient", "−2XᵀXw", lambda w: -np.sum((X @ w) ** 2), w),
    ("gradient", "2(Sw − (wᵀSw)w / (wᵀw)) / (wᵀw)", lambda w: np.dot(w, S @ w) / np.dot(w, w), w),
    ("gradient", "4(UUᵀ − S)U", lambda U: np.sum((S - U @ U.T) ** 2), W),
    (
        "gradient",
        ("2(V0 H0 − M)H0ᵀ", "2V0ᵀ(V0 H0 − M)"),
        lambda V0, H0: np.linalg.norm(M - V0 @ H0, "fro") ** 2,
        V0,
        H0,
    ),
    (
        "gradient",
        ("(𝟏𝟏ᵀ − M / (V0 H0)) H0ᵀ", "V0ᵀ(𝟏𝟏ᵀ − M / (V0 H0))"),
        lambda V0, H0: np.sum(V0 @ H0 - M * np.log(V0 @ H0)),
        V0,
        H0,
    ),
    (
        "gradient",
        ("2(mask ∘ (V0 H0 − M))H0ᵀ", "2V0ᵀ(mask ∘ (V0 H0 − M))"),
        lambda V0, H0: np.sum((mask * (M - V0 @ H0)) ** 2),
        V0,
        H0,
    ),
    ("gradient", "(mask ∘ (Z − M)) + lam Z", lambda Z: 0.5 * np.sum(mask * (Z - M) ** 2) + lam / 2 * np.sum(Z**2), X),
    ("gradient", "2(Σ(wt) mu − Xᵀwt)", lambda mu: np.sum(wt[:, None] * (X - mu[None, :]) ** 2), mu),
    ("gradient", "2(6mu − Xᵀ𝟏)", lambda mu: sum(np.sum((X[i] - mu) ** 2) for i in range(6)), mu),
    ("gradient", "X(XᵀX)⁻¹", lambda X: 0.5 * np.linalg.slogdet(X.T @ X)[1], W),
    ("gradient", "2(WWᵀW − W)", lambda W: 0.5 * np.sum((W.T @ W - np.eye(m)) ** 2), W),
    ("gradient", "polar(X)", lambda X: np.linalg.norm(X, "nuc"), X0),
    ("gradient", "polar(X)", lambda X: np.linalg.svd(X, compute_uv=False).sum(), X0),
    ("gradient", "X / ‖X‖", lambda X: np.linalg.norm(X), X0),
    # contrastive, metric learning, attention
    ("gradient", "2(x − a)[‖x − a‖² + margin > ‖x − b‖²] − 2(x − b)[‖x − a‖² + margin > ‖x − b‖²]", triplet, x),
    ("gradient", "(Phiᵀ softmax(Phi q / tau) − Phiᵀe0) / tau\n  where e0 = I₆[0]", info_nce, q),
    ("gradient", "Kmᵀ(s ∘ (Vm t3 − t3ᵀVmᵀs)) / 2\n  where s = softmax(½Km q)", attention, q),
    ("gradient", "½(sᵀ Vm)ᵀ\n  where s = softmax(½Km q)", lambda t: 0.5 * stable_softmax(Km @ q / 2) @ (Vm @ t), t3),
    ("gradient", "softmax(Qm Kmᵀ / 2)ᵀ G0", lambda V: np.sum(G0 * (stable_softmax(Qm @ Km.T / 2) @ V)), Vm),
    (
        "gradient",
        "−(a / (‖x‖‖a‖) − (xᵀa)x / (‖x‖³‖a‖))",
        lambda x: 1 - np.dot(x, a) / (np.linalg.norm(x) * np.linalg.norm(a)),
        x,
    ),
    ("gradient", "(x − a) / ‖x − a‖", lambda x: np.sqrt(np.sum((x - a) ** 2)), x),
    ("gradient", "2S(x − a)", lambda x: (x - a).dot(S).dot(x - a), x),
    ("gradient", "2H(x − a)(x − a)ᵀ", lambda H: np.sum((H @ (x - a)) ** 2), H),
    ("gradient", "(Gm + Gmᵀ)x", lambda x: np.einsum("i,ij,j", x, Gm, x), x),
    # networks
    (
        "gradient",
        "W1ᵀ((1 − h²) ∘ W2ᵀ(W2 h + b2 − t3))\n  where h = tanh(W1x + b1)",
        lambda x: 0.5 * np.sum((W2 @ np.tanh(W1 @ x + b1) + b2 - t3) ** 2),
        x,
    ),
    (
        "jacobian",
        "W2 diag(1 − tanh(W1x + b1)²) W1",
        lambda x: mlp({"first": {"W": W1, "b": b1}, "second": {"W": W2, "b": b2}}, x),
        x,
    ),
    ("jacobian", "W2 diag(σ(W1x) ∘ (1 − σ(W1x))) W1", lambda x: W2 @ sp.expit(W1 @ x), x),
    ("gradient", "W1ᵀ([W1x > 0] ∘ W2ᵀt3)", lambda x: t3 @ (W2 @ np.where(W1 @ x > 0, W1 @ x, 0)), x),
    ("gradient", "(σ(Wx) ∘ (1 − σ(Wx)) ∘ a)xᵀ", lambda W: a @ (1 / (1 + np.exp(-W @ x))), A),
    ("jacobian", "(I − xxᵀ / ‖x‖²) / ‖x‖", lambda x: x / np.linalg.norm(x), x),
    ("jacobian", "(I − xxᵀ / (4r²)) / r\n  where r = sqrt(mean(x²))", rms_norm, x),
    ("jacobian", "(S − vvᵀS / ‖v‖²) / ‖v‖\n  where v = Sx", power_step, x),
    ("jacobian", "diag(a) (I − (1/4)𝟏𝟏ᵀ)", lambda x: a * (x - x.mean()) + b, x),
    ("jacobian", "I + W2ᵀ diag([W2x > 0]) W2", lambda x: x + W2.T @ np.maximum(W2 @ x, 0), b1),
    ("gradient", "2(I + Bᵀ)AᵀA(x + Bx)", lambda x: np.sum((A @ (x + B @ x)) ** 2), x),
    # graphs, stencils, gathers
    ("gradient", "2(diag(Wg 𝟏) − Wg)x", graph_smoothness, x),
    ("gradient", "Dᵀ(Dx)\n  where D = I₄[1:] − I₄[:3]", rosenbrock_like, x),
    ("gradient", "2Eᵀ(Ex)\n  where E = I₄[src] − I₄[dst]", lambda x: np.sum((x[src] - x[dst]) ** 2), x),
    ("gradient", "2Eᵀ(ws ∘ Ex)\n  where E = I₄[src] − I₄[dst]", lambda x: np.sum(ws * (x[src] - x[dst]) ** 2), x),
    ("gradient", "Eᵀ sign(Ex)\n  where E = I₄[src] − I₄[dst]", lambda x: np.sum(np.abs(x[src] - x[dst])), x),
    ("gradient", "2Pᵀ(Px − obs)\n  where P = I₄[idx]", lambda x: np.sum((x[idx] - obs) ** 2), x),
    (
        "gradient",
        "2Dᵀ(Dx)\n  where D = I₄[2:] − 2I₄[1:3] + I₄[:2]",
        lambda x: np.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2),
        x,
    ),
    ("gradient", "2Dᵀ(Dx)\n  where D = I₄[2:] − 2I₄[1:3] + I₄[:2]", lambda x: np.sum(np.diff(x, 2) ** 2), x),
    ("hessian", "2Eᵀ diag(ws) E\n  where E = I₄[src] − I₄[dst]", lambda x: np.sum(ws * (x[src] - x[dst]) ** 2), x),
    ("jacobian", "I", lambda x: x + a, x),
    # scalars and entrywise
    ("gradient", "4t − 1", horner, 0.7),
    ("gradient", "cos(x) ∘ exp(sin(x))", lambda x: np.exp(np.sin(x)).sum(), x),
    ("gradient", "−2 sin(t) exp(cos(t))", lambda t: 2.0 * np.exp(np.cos(t)), 0.3),
    ("gradient", "1 / (x log(10))", lambda x: np.log10(x).sum(), x),
    ("gradient", "1 / sqrt(1 + x²)", lambda x: np.sum(np.arcsinh(x)), x),
    ("gradient", "1 / (1 − x²)", lambda x: np.sum(np.arctanh(x)), x / 2),
    ("gradient", "exp(−x) ∘ (1 − x)", lambda x: np.sum(x * np.exp(-x)), x),
    ("gradient", "−2x ∘ exp(−x²)", lambda x: np.exp(-(x**2)).sum(), x),
    ("gradient", "2a ∘ (a ∘ x + b)", lambda x: np.linalg.norm(a * x + b) ** 2, x),
    ("gradient", "a ∘ sign(a ∘ x)", lambda x: np.abs(a * x).sum(), x),
    ("gradient", "4‖x‖²x", lambda x: (x @ x) ** 2, x),
    ("gradient", "3‖x‖x", lambda x: np.linalg.norm(x) ** 3, x),
    ("gradient", "x / ‖x‖ + a", lambda x: np.linalg.norm(x) + np.dot(a, x), x),
    ("gradient", "x ∘ |x|", lambda x: np.sum(np.abs(x) ** 3) / 3, x),
    ("gradient", "2X", lambda X: np.linalg.norm(X) ** 2, X0),
    ("gradient", "2A + 2Aᵀ", lambda X: 2 * np.trace(A @ X) + 2 * np.trace(A @ X.T), X0),
    ("gradient", "2A − AXᵀ − XᵀA", newton_schulz, X0),
    # matrices: traces, determinants, inverses, powers, Kronecker products, functions of matrices
    ("gradient", "cosm(X)ᵀ", lambda X: np.trace(sl.sinm(X)), X0),
    ("gradient", "expm(X)ᵀ", lambda X: sl.expm(X).trace(), X0),
    ("jacobian", "vec(A expm(tA))", lambda t: sl.expm(t * A), 0.3),
    ("gradient", "tr(A expm(tA))", lambda t: np.trace(sl.expm(t * A)), 0.3),
    ("gradient", "4(X³)ᵀ", lambda X: np.trace(np.linalg.matrix_power(X, 4)), X0),
    ("gradient", "−(X⁻¹AX⁻¹)ᵀ", lambda X: np.trace(np.linalg.solve(X, A)), X0),
    ("gradient", "−(X⁻¹AX⁻¹)ᵀ", lambda X: np.einsum("ij,ji->", A, np.linalg.inv(X)), X0),
    ("gradient", "2SXP", lambda X: np.einsum("ij,jk,kl,il->", S, X, P, X), X0),
    ("gradient", "AᵀXBᵀ + AXB", lambda X: np.trace(A @ X @ B @ X.T), X0),
    ("gradient", "(B X A)ᵀ + (A X B)ᵀ", lambda X: np.sum((A @ X @ B) * X.T), X0),
    ("gradient", "2Aᵀ(AXB − C)Bᵀ", lambda X: np.sum((A @ X @ B - C) ** 2), X0),
    ("gradient", "2Aᵀ(AX + XB − C) + 2(AX + XB − C)Bᵀ", lambda X: np.linalg.norm(A @ X + X @ B - C) ** 2, X0),
    ("gradient", "X⁻ᵀ − S", lambda X: np.log(np.linalg.det(X)) - np.trace(S @ X), X0),
    ("gradient", "(S + X)⁻ᵀ", lambda X: np.log(np.linalg.det(S + X)), X0),
    ("gradient", "2S⁻¹X(I + XᵀS⁻¹X)⁻¹", lambda X: np.linalg.slogdet(np.eye(m) + X.T @ np.linalg.solve(S, X))[1], W),
    ("gradient", "Aᵀdiag(c)B", lambda X: np.sum(c * np.diag(A @ X @ B.T)), X0),
    ("gradient", "diag(a)", lambda X: a @ np.diag(X), X0),
    ("gradient", "diag(A)", lambda x: np.trace(np.diag(x) @ A), x),
    ("gradient", "diag(Aᵀ S A)", lambda x: np.trace(A @ np.diag(x) @ A.T @ S), x),
    ("gradient", "diag(2Aᵀ A diag(x) Bᵀ B)", lambda x: np.sum((A @ np.diag(x) @ B.T) ** 2), x),
    ("gradient", "tr(A) I", lambda X: np.trace(np.kron(X, A)), X0),
    ("gradient", "2‖A‖²X", lambda X: np.sum(np.kron(X, A) ** 2), X0),
    ("gradient", "tr(X) I + tr(X) I", lambda X: np.trace(X) ** 2, X0),
    ("gradient", "I / tr(X) − X⁻ᵀ", lambda X: np.log(np.trace(X)) - np.log(np.linalg.det(X)), X0),
    ("gradient", "det(X) tr(X) X⁻ᵀ + det(X) I", lambda X: np.linalg.det(X) * np.trace(X), X0),
    ("gradient", "(det(X)^(1/4)) X⁻ᵀ / 4", lambda X: np.linalg.det(X) ** 0.25, X0),
    ("gradient", "xbᵀ + ABᵀ", lambda X: x @ X @ b + np.trace(A.T @ X @ B), X0),
    ("gradient", "cos(X) ∘ A", lambda X: np.sum(A * np.sin(X)), X0),
    ("gradient", "Aᵀ cos(AX)", lambda X: np.sin(A @ X).sum(), X0),
    ("gradient", "Aᵀ(cos(Ax) ∘ a)", lambda x: a @ np.sin(A @ x), x),
    ("gradient", "2cos(‖x‖²)x", lambda x: np.sin(x @ x), x),
    ("gradient", "2x / ‖x‖²", lambda x: np.log(x.T @ x), x),
    ("jacobian", "A", lambda x: A @ x, x),
    ("jacobian", "2diag(Ax) A", lambda x: (A @ x) ** 2, x),
    ("jacobian", "(aᵀx)A + Axaᵀ", lambda x: (a @ x) * (A @ x), x),
    ("jacobian", "A ⊗ Bᵀ", lambda X: A @ X @ B, X0),
    ("jacobian", "I ⊗ I", lambda X: X + A, X0),
    ("jacobian", "K", lambda X: X.T, X0),
    ("jacobian", "−X⁻¹ ⊗ (X⁻¹A)ᵀ", lambda X: np.linalg.solve(X, A), X0),
    ("jacobian", "I ⊗ aᵀ", lambda X: X @ a, X0),
    ("jacobian", "a ⊗ I", lambda x: np.outer(a, x), x),
    ("jacobian", "XᵀA ⊗ I + (I ⊗ XᵀAᵀ)K", lambda X: X.T @ A @ X, X0),
    ("hessian", "2(I ⊗ I)", lambda X: np.sum(X**2), X0),
    ("hessian", "2(AᵀA ⊗ BBᵀ)", lambda X: np.sum((A @ X @ B) ** 2), X0),
    ("hessian", "2K", lambda X: np.trace(X @ X), X0),
    ("hessian", "(X⁻ᵀ ⊗ X⁻¹) K (−1)", lambda X: np.log(np.linalg.det(X)), X0),
    ("hessian", "2S ⊗ P", lambda X: np.trace(X.T @ S @ X @ P), X0),
]
