"""Textbook derivatives in other letters and shapes, written by other hands: multi_dot, einsum, dataclasses, closures,
attributes, loops. A row: kind, the book's formula (one for each argument), the function in plain NumPy, where."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import scipy.linalg as sl
import scipy.special as sp
from numpy.linalg import det, inv, multi_dot, norm, slogdet, solve

RNG = np.random.default_rng(20)
n, p, m = 7, 5, 3
Phi = RNG.normal(size=(n, p))
targets = RNG.normal(size=n)
spins = np.sign(RNG.normal(size=n))
freq = np.floor(RNG.uniform(1.0, 6.0, size=n))
weights = RNG.uniform(0.5, 1.5, size=n)
theta, beta, g, h, prior = RNG.normal(size=(5, p))
r, s, pos = RNG.uniform(0.5, 1.5, size=(3, p))
E, F, G, J = RNG.normal(size=(4, p, p))
Q = E @ E.T + 5 * np.eye(p)
Sigma = F @ F.T + 5 * np.eye(p)
Lam = np.diag(RNG.uniform(0.5, 1.5, size=m)) + 0.2
Hm = RNG.normal(size=(m, p))
obs = RNG.normal(size=m)
U, Vh = RNG.normal(size=(p, m)), RNG.normal(size=(m, p))
Z = 2 * np.eye(p) + 0.3 * RNG.normal(size=(p, p))
N = RNG.normal(size=(n, n))
Ker = N @ N.T + n * np.eye(n)
Data = RNG.uniform(0.5, 1.5, size=(n, p))
onehot = np.eye(m)[np.array([0, 2, 1, 1, 0, 2, 2])]
cls = np.array([0, 2, 1, 1, 0, 2, 2])
truth = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
Wt = RNG.normal(size=(p, m))
K1, V1 = RNG.normal(size=(6, p)), RNG.normal(size=(6, m))
q0 = RNG.normal(size=p)
rho, gam, eta, om = 0.4, 1.3, 0.05, 0.7
Adj = np.abs(RNG.normal(size=(p, p)))
Adj = Adj + Adj.T
Deg = np.diag(Adj.sum(1))
head, tail = np.array([0, 1, 2, 3, 4, 0]), np.array([1, 2, 3, 4, 0, 2])
W1, W2, W3 = RNG.normal(size=(6, p)), RNG.normal(size=(4, 6)), RNG.normal(size=(m, 4))
k1, k2 = RNG.normal(size=6), RNG.normal(size=4)
aux = RNG.normal(size=4)
goal = RNG.normal(size=m)
Fdyn, Gdyn = RNG.normal(size=(p, p)) / 2, RNG.normal(size=(p, 2))
ctrl = RNG.normal(size=2)
Rc = np.array([[2.0, 0.3], [0.3, 1.0]])
tri = np.linalg.cholesky(Q)


@dataclasses.dataclass
class KalmanUpdate:
    H: np.ndarray
    R: np.ndarray
    P: np.ndarray
    m: np.ndarray

    def neg_log(self, x, z):
        v = z - self.H @ x
        d = x - self.m
        return 0.5 * (v.T @ inv(self.R) @ v + d.T @ inv(self.P) @ d)


class GLM:
    """A Poisson regression with an offset and weights."""

    def __init__(self, design, counts, l2):
        self.design, self.counts, self.l2 = design, counts, l2

    def eta(self, coef):
        return self.design @ coef

    def deviance(self, coef):
        mean = np.exp(self.eta(coef))
        return np.sum(mean - self.counts * self.eta(coef)) + 0.5 * self.l2 * np.sum(coef**2)


def softmax_rows(S):
    S = S - S.max(axis=-1, keepdims=True)
    P = np.exp(S)
    return P / P.sum(axis=-1, keepdims=True)


def lse(v):
    top = v.max()
    return top + np.log(np.sum(np.exp(v - top)))


def ce_loop(W):
    total = 0.0
    for i in range(n):
        scores = Phi[i] @ W
        total -= scores[cls[i]] - lse(scores)
    return total / n


def gp(Kmat):
    c, low = sl.cho_factor(Kmat, lower=True)
    return 0.5 * np.dot(targets, sl.cho_solve((c, low), targets)) + np.sum(np.log(np.diag(c)))


def gp_scale(v):
    C = v * Ker + om * np.eye(n)
    return 0.5 * targets @ solve(C, targets) + 0.5 * slogdet(C)[1]


def mvn_mean_chol(mu):
    e = sl.solve_triangular(tri, r - mu, lower=True)
    return 0.5 * np.sum(e**2)


def attention_scores(q):
    scores = K1 @ q / math.sqrt(5)
    w = np.exp(scores - np.max(scores))
    w = w / np.sum(w)
    return np.sum(w @ V1 @ goal)


def two_layer(x):
    hidden = np.tanh(np.dot(W1, x) + k1)
    out = np.dot(W2, hidden) + k2
    return 0.5 * np.sum(np.square(out - aux))


def relu_net(x):
    z1 = W1 @ x + k1
    a1 = z1 * (z1 > 0)
    return W2 @ a1


def ista_objective(x):
    resid = Hm @ x - obs
    return 0.5 * resid @ resid + rho * np.abs(x).sum()


def barrier(x):
    return g @ x - gam * np.log(pos - x).sum()


def lagrangian(x, nu):
    return 0.5 * x @ Q @ x + g @ x + nu @ (Hm @ x - obs)


def bradley_terry(v):
    d = v[head] - v[tail]
    return np.sum(np.log1p(np.exp(-d)))


def cox(v):
    e = np.exp(v)
    return np.log(e.sum()) - v @ s


def mahalanobis(x):
    d = x - prior
    return math.sqrt(2.0) * np.sqrt(d @ solve(Sigma, d))


def newton_like(x):
    return x - eta * (Q @ x - g)


def euler(x):
    return x + eta * np.tanh(Fdyn @ x)


def lqr(u):
    nxt = Fdyn @ q0 + Gdyn @ u
    return nxt @ Q @ nxt + u @ Rc @ u


def layer(x):
    xc = x - x.mean()
    return g * xc / np.sqrt((xc**2).mean()) + h


def cosine(x):
    return np.dot(x, h) / np.sqrt(np.dot(x, x) * np.dot(h, h))


def dice(x):
    return 1 - 2 * np.sum(x * s) / (np.sum(x) + np.sum(s))


def logcosh(v):
    e = Phi @ v - targets
    return np.sum(np.log(np.cosh(e))) / n


def residual_block(x):
    return x + W1.T @ np.maximum(0.0, W1 @ x)


def lotka(x):
    return x * (g + E @ x)


def make_tikhonov(design, rhs, smooth, weight):
    def objective(v):
        misfit = design @ v - rhs
        rough = smooth @ v
        return np.vdot(misfit, misfit) + weight * np.vdot(rough, rough)

    return objective


KU, POISSON = KalmanUpdate(Hm, Lam, Sigma, prior), GLM(Phi, freq, 0.4)
H, R, P, l2, counts, design, rhs, smooth, weight, shift = Hm, Lam, Sigma, 0.4, freq, Phi, targets, F, 0.6, g
weights6 = RNG.uniform(0.5, 1.5, size=6)

ROWS = [
    ("gradient", "det(Z) Z⁻ᵀ", lambda Z: det(Z), Z),
    ("gradient", "det(EZF) Z⁻ᵀ", lambda Z: det(multi_dot([E, Z, F])), Z),
    ("gradient", "2 det(UᵀQU) QU(UᵀQU)⁻¹", lambda U: det(multi_dot([U.T, Q, U])), U),
    ("gradient", "2U(UᵀU)⁻¹", lambda U: slogdet(U.T @ U)[1], U),
    ("gradient", "2(Vh Vhᵀ)⁻¹Vh", lambda Vh: slogdet(Vh @ Vh.T)[1], Vh),
    ("gradient", "2QU(UᵀQU)⁻¹", lambda U: np.log(det(np.einsum("ai,ab,bj->ij", U, Q, U))), U),
    ("gradient", "5Z⁻ᵀ", lambda Z: slogdet(gam * Z)[1] * 5, Z),
    ("gradient", "−Z⁻ᵀghᵀZ⁻ᵀ", lambda Z: np.dot(g, np.dot(inv(Z), h)), Z),
    ("gradient", "−Z⁻ᵀghᵀZ⁻ᵀ", lambda Z: np.einsum("i,ij,j->", g, inv(Z), h), Z),
    ("gradient", "−(Z⁻¹FEZ⁻¹)ᵀ", lambda Z: np.einsum("ij,jk,ki->", E, inv(Z), F), Z),
    ("gradient", "−2Z⁻ᵀZ⁻¹ggᵀZ⁻ᵀ", lambda Z: norm(solve(Z, g)) ** 2, Z),
    ("gradient", "−Q⁻¹ggᵀQ⁻¹", lambda Q: g @ solve(Q, g), Q),
    ("jacobian", "−Z⁻¹ ⊗ Z⁻ᵀ", lambda Z: solve(Z, np.eye(5)), Z),
    ("jacobian", "−Hm Z⁻¹ ⊗ (Z⁻¹U)ᵀ", lambda Z: Hm @ inv(Z) @ U, Z),
    ("gradient", "−2(QU(UᵀQU)⁻¹(UᵀQU)⁻¹)", lambda U: np.trace(inv(U.T @ Q @ U)), U),
    ("gradient", "½ sqrt(det(Q)) Q⁻¹", lambda Q: np.sqrt(det(Q)), Q),
    ("gradient", "tr((Q + t Sigma)⁻¹Sigma)", lambda t: slogdet(Q + t * Sigma)[1], 0.3),
    ("gradient", "g obsᵀ", lambda U: np.vdot(g, U @ obs), U),
    ("gradient", "2Qr", lambda r: np.einsum("i,ij,j->", r, Q, r), r),
    ("gradient", "(E + Eᵀ)r", lambda r: np.sum(r[:, None] * E * r[None, :]), r),
    ("gradient", "Er + Eᵀr − 2g", lambda r: np.dot(r, E).dot(r) - 2 * np.dot(g, r), r),
    ("gradient", "EᵀF(Gr + h) + GᵀFᵀ(Er + g)", lambda r: np.dot(E @ r + g, F @ (G @ r + h)), r),
    ("gradient", "−2Hmᵀ Lam (obs − Hm r)", lambda r: (obs - Hm @ r) @ Lam @ (obs - Hm @ r), r),
    ("gradient", "−2Lam (obs − Hm r)rᵀ", lambda Hm: (obs - Hm @ r) @ Lam @ (obs - Hm @ r), Hm),
    ("gradient", "(F + Fᵀ)U obs obsᵀ", lambda U: np.dot(U @ obs, F @ (U @ obs)), U),
    ("gradient", "U(obs goalᵀ + goal obsᵀ)", lambda U: (U @ obs) @ (U @ goal), U),
    ("gradient", "FᵀEᵀ", lambda Z: np.trace(Z @ E @ F), Z),
    ("gradient", "EᵀFᵀ", lambda Z: np.einsum("ij,jk,ki", E, Z, F), Z),
    ("gradient", "EZ + EᵀZ", lambda Z: np.einsum("ji,jk,ki->", Z, E, Z), Z),
    ("gradient", "EᵀU Lamᵀ + EU Lam", lambda U: np.trace(U.T @ E @ U @ Lam), U),
    ("gradient", "4UUᵀU", lambda U: np.sum((U.T @ U) ** 2), U),
    ("gradient", "2Eᵀ(EU Hm − F)Hmᵀ", lambda U: np.sum(np.square(E @ U @ Hm - F)), U),
    ("gradient", "5(Z⁴)ᵀ", lambda Z: np.trace(np.linalg.matrix_power(Z, 5)), Z),
    ("gradient", "(F expm(ZF / 5))ᵀ", lambda Z: np.trace(sl.expm(Z @ F / 5) * 5), Z),
    ("gradient", "2(U − g goalᵀ)", lambda U: norm(U - np.outer(g, goal)) ** 2, U),
    ("gradient", "I − (Z⁻¹Z⁻¹)ᵀ", lambda Z: np.trace(Z) + np.trace(inv(Z)), Z),
    ("gradient", "(r − g) / ‖r − g‖", lambda r: np.sqrt(((r - g) ** 2).sum()), r),
    ("gradient", "3‖U‖U", lambda U: norm(U) ** 3, U),
    ("gradient", "Eᵀ sign(Er)", lambda r: norm(E @ r, 1), r),
    ("gradient", "h / (‖r‖‖h‖) − (rᵀh)r / (‖r‖³‖h‖)", cosine, r),
    ("gradient", "2r / (1 + ‖r‖²)", lambda r: np.log(1 + np.sum(r**2)), r),
    ("gradient", "2designᵀ(design v − rhs) + 2weight smoothᵀ smooth v", make_tikhonov(Phi, targets, F, 0.6), theta),
    ("gradient", "designᵀ(exp(design coef) − counts) + l2 coef", POISSON.deviance, theta),
    ("hessian", "designᵀ diag(exp(design coef)) design + l2 I", POISSON.deviance, theta),
    ("gradient", "Phiᵀ(softmax(Phi W) − P) / 7\n  where P = I₃[cls]", ce_loop, Wt),
    (
        "gradient",
        "Phiᵀ(softmax(Phi W) − onehot) / 7",
        lambda W: -np.mean(np.sum(onehot * np.log(softmax_rows(Phi @ W)), axis=-1)),
        Wt,
    ),
    ("gradient", "Phiᵀ tanh(Phi v − targets) / 7", logcosh, theta),
    (
        "gradient",
        "−Phiᵀ(spins ∘ σ(−spins ∘ Phi v)) + rho v",
        lambda v: np.log1p(np.exp(-spins * (Phi @ v))).sum() + rho / 2 * (v @ v),
        theta,
    ),
    (
        "gradient",
        "Phiᵀ(weights ∘ (σ(Phi v) − truth))",
        lambda v: -np.sum(weights * (truth * np.log(sp.expit(Phi @ v)) + (1 - truth) * np.log(1 - sp.expit(Phi @ v)))),
        theta,
    ),
    (
        "hessian",
        "Phiᵀ diag(weights ∘ s ∘ (1 − s)) Phi\n  where s = σ(Phi v)",
        lambda v: np.sum(weights * (np.logaddexp(0, Phi @ v) - truth * (Phi @ v))),
        theta,
    ),
    ("gradient", "Hmᵀ(Hm x − obs) + rho sign(x)", ista_objective, theta),
    (
        "gradient",
        "−2Phiᵀ(spins ∘ max(0, 1 − spins ∘ Phi v)) + 2rho v",
        lambda v: np.sum(np.maximum(1 - spins * np.dot(Phi, v), 0) ** 2) + rho * np.dot(v, v),
        theta,
    ),
    ("gradient", "Phiᵀ(1 − freq ∘ exp(−Phi v))", lambda v: np.sum(freq * np.exp(-Phi @ v)) + np.sum(Phi @ v), theta),
    (
        "gradient",
        "2Phiᵀ(weights ∘ (Phi v − targets)) / Σ(weights)",
        lambda v: np.average((Phi @ v - targets) ** 2, weights=weights),
        theta,
    ),
    ("gradient", "−Q⁻¹(r − mu)", mvn_mean_chol, g),
    ("gradient", "Sigma⁻¹(x − prior) sqrt(2) / sqrt((x − prior)ᵀSigma⁻¹(x − prior))", mahalanobis, r),
    ("gradient", "½(Kmat⁻¹ − Kmat⁻¹ targets targetsᵀ Kmat⁻¹)", gp, Ker),
    ("gradient", "½ tr(C⁻¹Ker) − ½ targetsᵀ C⁻¹ Ker C⁻¹ targets\n  where C = v Ker + om I", gp_scale, 0.8),
    ("gradient", "½(S⁻¹ − S⁻¹QS⁻¹)", lambda S: 0.5 * (slogdet(S)[1] + np.trace(solve(S, Q))), Sigma),
    (
        "gradient",
        "½(S⁻¹ − S⁻¹QS⁻¹)",
        lambda S: np.log(np.diag(np.linalg.cholesky(S))).sum() + 0.5 * np.trace(inv(S) @ Q),
        Sigma,
    ),
    ("gradient", "Q − P⁻¹ + rho sign(P)", lambda P: np.trace(Q @ P) - slogdet(P)[1] + rho * np.abs(P).sum(), Sigma),
    ("gradient", "softmax(v) − s", cox, theta),
    ("gradient", "−Dᵀσ(−Dv)\n  where D = I₅[head] − I₅[tail]", bradley_terry, theta),
    ("gradient", "1 − pos / x", lambda x: np.sum(x - pos * np.log(x)), r),
    ("gradient", "log(x / Σ(x))", lambda x: np.sum(x * np.log(x / np.sum(x))), r),
    (
        "gradient",
        "psi(Σ(x)) − psi(x) + log(s)",
        lambda x: sp.gammaln(x.sum()) - sp.gammaln(x).sum() + (x - 1) @ np.log(s),
        r,
    ),
    ("gradient", "½(x − mean(x))", lambda x: ((x - x.mean()) ** 2).sum() / 4, r),
    (
        "gradient",
        "K1ᵀ((s ∘ (V1 goal − sᵀV1 goal)) / sqrt(5))\n  where s = softmax(K1 q / sqrt(5))",
        attention_scores,
        q0,
    ),
    ("jacobian", "V1ᵀ(diag(a) − aaᵀ)K1\n  where a = softmax(K1 q)", lambda q: V1.T @ softmax_rows(K1 @ q), q0),
    (
        "gradient",
        "(K1ᵀ softmax(K1 q / gam) − K1ᵀe1) / gam\n  where e1 = I₆[1]",
        lambda q: lse(K1 @ q / gam) - (K1[1] @ q) / gam,
        q0,
    ),
    ("gradient", "W1ᵀ((W2ᵀ(W2h + k2 − aux)) ∘ (1 − h²))\n  where h = tanh(W1 x + k1)", two_layer, r),
    ("jacobian", "W2 diag([W1 x + k1 > 0]) W1", relu_net, r),
    ("jacobian", "I + W1ᵀ diag([W1 x > 0]) W1", residual_block, r),
    ("jacobian", "diag(g)(I − (1/5)𝟏𝟏ᵀ − (1/5)kkᵀ) / std(x)\n  where k = (x − mean(x)) / std(x)", layer, r),
    (
        "jacobian",
        "W3 diag(1 − b²) W2 diag(1 − a²) W1\n  where a = tanh(W1 x)\n        b = tanh(W2a)",
        lambda x: W3 @ np.tanh(W2 @ np.tanh(W1 @ x)),
        r,
    ),
    (
        "gradient",
        "(W2ᵀ((W2 σ(W1 r) − aux)) ∘ s ∘ (1 − s))rᵀ\n  where s = σ(W1 r)",
        lambda W1: 0.5 * np.sum((W2 @ (1 / (1 + np.exp(-(W1 @ r)))) - aux) ** 2),
        W1,
    ),
    ("gradient", "σ(x) ∘ (1 + x ∘ (1 − σ(x)))", lambda x: np.sum(x / (1 + np.exp(-x))), r),
    ("jacobian", "diag(g ∘ x)", lambda x: 0.5 * g * x**2, r),
    ("gradient", ("−Hᵀ R⁻¹(z − Hx) + P⁻¹(x − m)", "R⁻¹(z − Hx)"), KU.neg_log, r, obs),
    ("gradient", "2Gdynᵀ Q (Fdyn q0 + Gdyn u) + 2Rc u", lqr, ctrl),
    ("gradient", ("Qx + g + Hmᵀ nu", "Hm x − obs"), lagrangian, r, obs),
    ("gradient", "g + gam / (pos − x)", barrier, 0.1 * r),
    ("hessian", "gam diag(1 / (pos − x)²)", barrier, 0.1 * r),
    ("jacobian", "I − eta Q", newton_like, r),
    ("jacobian", "I + eta diag(1 − tanh(Fdyn x)²) Fdyn", euler, r),
    ("jacobian", "diag(g + Ex) + diag(x)E", lotka, r),
    (
        "gradient",
        ("−(Data − W H)Hᵀ", "−Wᵀ(Data − W H)"),
        lambda W, H: 0.5 * np.sum((Data - W @ H) ** 2),
        RNG.uniform(0.5, 1.5, size=(n, m)),
        RNG.uniform(0.5, 1.5, size=(m, p)),
    ),
    ("gradient", "2(Deg − Adj)x", lambda x: x @ (Deg - Adj) @ x, r),
    ("gradient", "2(Deg − Adj)X", lambda X: np.trace(X.T @ (Deg - Adj) @ X), U),
    (
        "gradient",
        "2Dᵀ(weights6 ∘ Dx)\n  where D = I₅[head] − I₅[tail]",
        lambda x: np.sum(weights6 * (x[head] - x[tail]) ** 2),
        r,
    ),
    ("gradient", "2DᵀDx\n  where D = I₅[2:] − 2I₅[1:4] + I₅[:3]", lambda x: np.sum(np.diff(x, n=2) ** 2), r),
    ("gradient", "2(Qw − (wᵀQw) w / ‖w‖²) / ‖w‖²", lambda w: np.dot(w, Q @ w) / np.dot(w, w), theta),
    ("gradient", "−2s / (Σ(x) + Σ(s)) + (2sᵀx / (Σ(x) + Σ(s))²)𝟏", dice, r),
]
