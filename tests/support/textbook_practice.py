"""Derivatives that people of many fields look up: learning, control, graphs, finance, signals, matrices, written as each
of them writes. A row: kind, the book's formula (one for each argument), the function in plain NumPy, where."""

from __future__ import annotations

from functools import reduce
from operator import matmul

import numpy as np
import scipy.special as sp
from numpy import einsum, exp, log
from numpy.linalg import det, inv, norm, slogdet, solve

RNG = np.random.default_rng(77)
n, d, k = 9, 4, 3
design = RNG.normal(size=(n, d))
resp = RNG.normal(size=n)
w0, u0, lin, rhs, m0 = RNG.normal(size=(5, d))
p0, q0, r0 = RNG.uniform(0.4, 1.6, size=(3, d))
theta0 = RNG.normal(size=(d, k)) / 2
phi0 = RNG.normal(size=d)
A, B, C, M = RNG.normal(size=(4, d, d))
Omega = A @ A.T + d * np.eye(d)
Psi = B @ B.T + d * np.eye(d)
Rm = np.array([[1.5, 0.2, 0.0], [0.2, 2.0, 0.3], [0.0, 0.3, 1.2]])
Hobs = RNG.normal(size=(k, d))
zobs = RNG.normal(size=k)
rect, wide = RNG.normal(size=(d, k)), RNG.normal(size=(k, d))
sq = 2 * np.eye(d) + 0.4 * RNG.normal(size=(d, d))
Wadj = np.abs(RNG.normal(size=(d, d)))
Wadj = np.triu(Wadj, 1) + np.triu(Wadj, 1).T
Lap = np.diag(Wadj.sum(1)) - Wadj
src, dst = np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 0, 2])
edge_w = RNG.uniform(0.5, 1.5, size=5)
ret = RNG.normal(size=d) / 10
risk, ridge, tau, eps, lr, nu, kappa = 1.7, 0.35, 0.8, 0.01, 0.1, 4.0, 0.6
feats = RNG.normal(size=(n, d))
Kq, Vq = RNG.normal(size=(6, d)), RNG.normal(size=(6, k))
query = RNG.normal(size=d)
Win, Wout = RNG.normal(size=(5, d)), RNG.normal(size=(k, 5))
bin_, bout = RNG.normal(size=5), RNG.normal(size=k)
trans = sp.softmax(RNG.normal(size=(d, d)), axis=1)
reward = RNG.normal(size=d)
cross = RNG.normal(size=(d, k))


def contrastive_pair(v):
    scores = Kq @ v / tau
    return sp.logsumexp(scores) - scores[3]


def margin_rank(v):
    return np.maximum(0.0, kappa - v @ p0 + v @ q0)


def scores_of(q):
    s = Kq @ q / np.sqrt(d)
    a = exp(s - s.max())
    a = a / a.sum()
    return a @ Vq


def attention_value(V):
    a = sp.softmax(Kq @ query)
    return zobs @ (a @ V)


def kalman_update(m):
    S = Hobs @ Omega @ Hobs.T + Rm
    gain = Omega @ Hobs.T @ inv(S)
    return m + gain @ (zobs - Hobs @ m)


def kalman_joseph(G):
    I_KH = np.eye(d) - G @ Hobs
    return np.trace(I_KH @ Omega @ I_KH.T + G @ Rm @ G.T)


def innovation(m):
    v = zobs - Hobs @ m
    return 0.5 * v @ solve(Hobs @ Omega @ Hobs.T + Rm, v)


def information(m):
    return 0.5 * (m - m0) @ solve(Omega, m - m0) + 0.5 * (zobs - Hobs @ m) @ solve(Rm, zobs - Hobs @ m)


def laplacian_by_edges(x):
    return 0.5 * (edge_w * (x[src] - x[dst]) ** 2).sum()


def laplacian_by_pairs(x):
    return 0.25 * (Wadj * (x[:, None] - x[None, :]) ** 2).sum()


def label_spreading(F):
    return np.trace(F.T @ Lap @ F) + risk * norm(F - rect) ** 2


def spectral_cut(x):
    return (x @ Lap @ x) / (x @ np.diag(Wadj.sum(0)) @ x)


def batch_norm(x):
    return (x - np.mean(x)) / np.std(x)


def layer_norm(x):
    centred = x - x.mean()
    return p0 * centred / np.sqrt((centred**2).mean()) + u0


def rms(x):
    return p0 * x / np.sqrt(np.mean(x * x))


def unit(x):
    return x / np.sqrt(x.dot(x))


def weight_norm(v):
    return risk * v / norm(v)


def bellman(V):
    return 0.5 * norm(reward + 0.9 * trans @ V - V) ** 2


def discounted(V):
    return solve(np.eye(d) - 0.9 * trans, V)


def two_steps(pi):
    return pi @ trans @ trans @ reward


def stationary(pi):
    return norm(pi @ trans - pi) ** 2 + (pi.sum() - 1) ** 2


def markowitz(x):
    return ret @ x - 0.5 * risk * x @ Omega @ x


def sharpe(x):
    return (ret @ x) / np.sqrt(x @ Omega @ x)


def volatility(x):
    return np.sqrt(x.dot(Omega).dot(x))


def turnover(x):
    return 0.5 * x @ Omega @ x + kappa * np.abs(x - p0).sum()


def risk_parity(x):
    return 0.5 * x @ Omega @ x - log(x).sum()


def smoothing_spline(f):
    return norm(resp[:d] - f) ** 2 + risk * (np.diff(f, n=2) ** 2).sum()


def whittaker(f):
    D1 = np.diff(np.eye(d), axis=0)
    return (f - p0) @ (f - p0) + risk * (D1 @ f) @ (D1 @ f)


def penalised_basis(b):
    return norm(resp - feats @ b) ** 2 + ridge * b @ Psi @ b


def total_variation(f):
    return np.sum(np.abs(f[1:] - f[:-1]))


def smooth_tv(f):
    return np.sqrt((f[1:] - f[:-1]) ** 2 + eps).sum()


def mlp(x):
    h = np.tanh(Win @ x + bin_)
    return Wout @ h + bout


def mlp_loss(x):
    out = Wout @ sp.expit(Win @ x + bin_) + bout
    return 0.5 * ((out - zobs) ** 2).sum()


def mlp_weights(W):
    return 0.5 * ((Wout @ np.tanh(W @ query + bin_) - zobs) ** 2).sum()


def relu_weights(W):
    return zobs @ (Wout @ np.maximum(W @ query, 0))


def gated(x):
    return (A @ x) * sp.expit(B @ x)


def recurrent(h):
    return np.tanh(A @ h + B @ query)


def leapfrog(x):
    return x - lr * (Omega @ x - lin)


def momentum(x):
    return x - lr * design.T @ (design @ x - resp)


def ekf(x):
    return x + lr * np.sin(x)


def log_barrier(x):
    return lin @ x - kappa * np.sum(log(5 - wide @ x))


def augmented(x):
    h = Hobs @ x - zobs
    return lin @ x + zobs @ h + risk / 2 * (h @ h)


def inverse_quadratic(x):
    return 1 / (1 + x @ Omega @ x)


def periodic(x):
    return np.cos(2 * np.pi * x).sum()


def ridge_path(lam):
    return solve(design.T @ design + lam * np.eye(d), design.T @ resp)


def lyapunov_like(P):
    return norm(A.T @ P + P @ A + Omega) ** 2


def riccati(P):
    return A.T @ P @ A + Omega - P


def lqr_cost(u):
    x1 = A @ query + rect @ u
    return x1 @ Omega @ x1 + u @ Rm @ u


def mpc_two(u):
    x = query
    for _ in range(2):
        x = A @ x + rect @ u
    return x @ Omega @ x


def centred(v):
    H = np.eye(n) - np.ones((n, n)) / n
    return v @ feats.T @ H @ feats @ v


Xf, yf, wf = RNG.normal(size=(8, d)), RNG.normal(size=8), RNG.uniform(0.5, 1.5, size=8)
labels, soft = np.array([0, 1, 2, 1, 0, 2, 1, 0]), np.array([0.2, 0.3, 0.5])
ring = (np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]))


def xent_loop(W):
    return sum([sp.logsumexp(Xf[i] @ W) - (Xf[i] @ W)[labels[i]] for i in range(8)])


def xent_along(W):
    z = Xf @ W
    top = z.max(1)
    lse = top + np.log(np.exp(z - top[:, None]).sum(1))
    return np.mean(lse - np.take_along_axis(z, labels[:, None], 1)[:, 0])


def xent_of_probabilities(W):
    p = np.exp(Xf @ W)
    p = p / p.sum(1, keepdims=True)
    return -np.log(p[np.arange(8), labels]).mean()


def huber_by_minimum(w):
    e = np.abs(Xf @ w - yf)
    small = np.minimum(e, kappa)
    return np.sum(0.5 * small**2 + kappa * (e - small))


def geman_mcclure(w):
    square = (Xf @ w - yf) ** 2
    return np.sum(square / (square + kappa**2))


def welsch(w):
    return np.sum(1 - np.exp(-(((Xf @ w - yf) / kappa) ** 2) / 2))


def tukey(w):
    e = (Xf @ w - yf) / 5
    return np.sum(np.where(np.abs(e) < 1, 1 - (1 - e**2) ** 3, 1.0)) / 6


def edges_in_a_loop(x):
    return sum([wf[k] * (x[ring[0][k]] - x[ring[1][k]]) ** 2 for k in range(4)])


def layer_norm_eps(x):
    centred = x - x.mean()
    return p0 * centred / np.sqrt((centred**2).mean() + 1e-5) + u0


def sharpe_rate(x):
    return (lin @ x - 0.02) / np.sqrt(x @ Omega @ x)


ROWS = [
    # learning
    ("gradient", "(Kqᵀsoftmax(Kq v / tau) − Kqᵀe) / tau\n  where e = I₆[3]", contrastive_pair, w0),
    ("gradient", "(q0 − p0)[kappa + vᵀq0 > vᵀp0]", margin_rank, w0),
    ("jacobian", "½Vqᵀ(diag(a) − aaᵀ)Kq\n  where a = softmax(½Kq q)", scores_of, query),
    ("gradient", "softmax(Kq query)zobsᵀ", attention_value, Vq),
    ("jacobian", "Wout diag(1 − tanh(Win x + bin_)²) Win", mlp, w0),
    ("gradient", "Winᵀ((Woutᵀ(Wout h + bout − zobs)) ∘ h ∘ (1 − h))\n  where h = σ(Win x + bin_)", mlp_loss, w0),
    ("gradient", "((Woutᵀ(Wout h − zobs)) ∘ (1 − h²))queryᵀ\n  where h = tanh(W query + bin_)", mlp_weights, Win),
    ("gradient", "([W query > 0] ∘ Woutᵀzobs)queryᵀ", relu_weights, Win),
    ("jacobian", "diag(s)A + diag(Ax ∘ s ∘ (1 − s))B\n  where s = σ(Bx)", gated, w0),
    ("jacobian", "diag(1 − tanh(Ah + B query)²)A", recurrent, w0),
    ("jacobian", "(I − kkᵀ / 4 − 𝟏𝟏ᵀ / 4) / std(x)\n  where k = (x − mean(x)) / std(x)", batch_norm, w0),
    ("jacobian", "diag(p0)(I − kkᵀ / 4 − 𝟏𝟏ᵀ / 4) / std(x)\n  where k = (x − mean(x)) / std(x)", layer_norm, w0),
    ("jacobian", "diag(p0)(I − xxᵀ / (4r²)) / r\n  where r = sqrt(mean(x²))", rms, w0),
    ("jacobian", "(I − xxᵀ / ‖x‖²) / ‖x‖", unit, w0),
    ("jacobian", "risk (I − vvᵀ / ‖v‖²) / ‖v‖", weight_norm, w0),
    ("jacobian", "Lap F ⊗ I\n  where J = I₉[:4]\n  F = J feats", lambda Theta: Lap @ feats[:d] @ Theta, theta0),
    # control, filters, chains
    ("jacobian", "I − Omega Hobsᵀ(Hobs Omega Hobsᵀ + Rm)⁻¹Hobs", kalman_update, w0),
    ("gradient", "2G Rm − 2(I − G Hobs)Omega Hobsᵀ", kalman_joseph, rect),
    ("gradient", "−Hobsᵀ(Hobs Omega Hobsᵀ + Rm)⁻¹(zobs − Hobs m)", innovation, w0),
    ("gradient", "Omega⁻¹(m − m0) − HobsᵀRm⁻¹(zobs − Hobs m)", information, w0),
    ("hessian", "Omega⁻¹ + HobsᵀRm⁻¹Hobs", information, w0),
    ("gradient", "2rectᵀOmega(A query + rect u) + 2Rm u", lqr_cost, zobs),
    ("gradient", "2(A rect + rect)ᵀOmega(A(A query + rect u) + rect u)", mpc_two, zobs),
    ("gradient", "2A(AᵀP + PA + Omega) + 2(AᵀP + PA + Omega)Aᵀ", lyapunov_like, Psi),
    ("jacobian", "Aᵀ ⊗ Aᵀ − I", riccati, Psi),
    ("jacobian", "I − lr Omega", leapfrog, w0),
    ("jacobian", "I − lr designᵀdesign", momentum, w0),
    ("jacobian", "I + lr diag(cos(x))", ekf, w0),
    ("gradient", "((9/10)trans − I)ᵀ(reward + (9/10)trans V − V)", bellman, w0),
    ("jacobian", "(I − (9/10)trans)⁻¹", discounted, w0),
    ("gradient", "trans² reward", two_steps, p0),
    ("gradient", "2(trans − I)(transᵀpi − pi) + 2(Σ(pi) − 1)𝟏", stationary, p0),
    # graphs
    ("gradient", "Eᵀ(edge_w ∘ Ex)\n  where E = I₄[src] − I₄[dst]", laplacian_by_edges, w0),
    ("hessian", "Eᵀdiag(edge_w)E\n  where E = I₄[src] − I₄[dst]", laplacian_by_edges, w0),
    ("gradient", "(diag(Wadj𝟏) − Wadj)x", laplacian_by_pairs, w0),
    ("gradient", "2Lap F + 2risk (F − rect)", label_spreading, cross),
    ("gradient", "2(Lap x − (xᵀLap x / (xᵀDx))Dx) / (xᵀDx)\n  where D = diag(Wadj𝟏)", spectral_cut, w0),
    # finance
    ("gradient", "ret − risk Omega x", markowitz, p0),
    ("gradient", "(ret − (retᵀx / (xᵀOmega x)) Omega x) / sqrt(xᵀOmega x)", sharpe, p0),
    ("gradient", "Omega x / sqrt(xᵀOmega x)", volatility, p0),
    ("hessian", "(Omega − Omega xxᵀOmega / v²) / v\n  where v = sqrt(xᵀOmega x)", volatility, p0),
    ("gradient", "Omega x + kappa sign(x − p0)", turnover, w0),
    ("gradient", "Omega x − 1 / x", risk_parity, p0),
    ("hessian", "Omega + diag(1 / x²)", risk_parity, p0),
    # signals
    (
        "gradient",
        "2(f − r) + 2risk DᵀDf\n  where J = I₉[:4]\n  r = J resp\n  D = I₄[2:] − 2I₄[1:3] + I₄[:2]",
        smoothing_spline,
        w0,
    ),
    ("gradient", "2(f − p0) + 2risk D1ᵀD1f", whittaker, w0),
    ("hessian", "2I + 2risk D1ᵀD1", whittaker, w0),
    ("gradient", "2featsᵀ(feats b − resp) + 2ridge Psi b", penalised_basis, w0),
    ("gradient", "Dᵀsign(Df)\n  where D = I₄[1:] − I₄[:3]", total_variation, w0),
    ("gradient", "Dᵀ(Df / sqrt((Df)² + eps))\n  where D = I₄[1:] − I₄[:3]", smooth_tv, w0),
    ("gradient", "−2π sin(2πx)", periodic, w0),
    # programming
    ("gradient", "lin + kappa wideᵀ(1 / (5 − wide x))", log_barrier, w0 / 9),
    ("hessian", "kappa wideᵀdiag(1 / (5 − wide x)²)wide", log_barrier, w0 / 9),
    ("gradient", "lin + Hobsᵀ(zobs + risk (Hobs x − zobs))", augmented, w0),
    ("gradient", "−2Omega x / (1 + xᵀOmega x)²", inverse_quadratic, w0),
    # matrices
    ("gradient", "tr((designᵀdesign + lam I)⁻¹)", lambda lam: slogdet(design.T @ design + lam * np.eye(d))[1], 0.4),
    ("jacobian", "−(designᵀdesign + lam I)⁻²designᵀresp", ridge_path, 0.4),
    ("gradient", "X⁻ᵀ", lambda X: log(abs(det(X))), sq),
    ("gradient", "−X⁻ᵀ", lambda X: slogdet(inv(X))[1], sq),
    ("gradient", "3det(X)³X⁻ᵀ", lambda X: det(X) ** 3, sq),
    ("gradient", "det(AXB)X⁻ᵀ", lambda X: det(A @ X @ B), sq),
    ("gradient", "2AᵀAXBBᵀ", lambda X: einsum("ij,ij", A @ X @ B, A @ X @ B), sq),
    ("gradient", "AᵀBᵀ", lambda X: einsum("ij,jk,ki->", A, X, B), sq),
    ("gradient", "lin rhsᵀ", lambda X: (X @ rhs) @ lin, sq),
    ("gradient", "rhs linᵀ", lambda X: np.inner(lin, X.T @ rhs), sq),
    ("gradient", "X(lin rhsᵀ + rhs linᵀ)", lambda X: np.dot(np.dot(X, lin), np.dot(X, rhs)), sq),
    ("gradient", "BᵀX lin linᵀ + BX lin linᵀ", lambda X: (X @ lin) @ B @ (X @ lin), sq),
    ("gradient", "−(X⁻¹BAX⁻¹)ᵀ", lambda X: np.trace(reduce(matmul, (A, inv(X), B))), sq),
    ("gradient", "−2(X⁻¹)ᵀX⁻¹(X⁻¹)ᵀ", lambda X: norm(inv(X)) ** 2, sq),
    ("gradient", "−((X + A)⁻¹(X + A)⁻¹)ᵀ", lambda X: np.trace(inv(X + A)), sq),
    ("gradient", "AᵀX + AX", lambda X: 0.5 * (np.trace(X.T @ A @ X) + np.vdot(X, A @ X)), sq),
    ("gradient", "AᵀCᵀXBᵀ + CAXB", lambda X: np.trace(A @ X @ B @ X.T @ C), sq),
    ("gradient", "3(X²)ᵀ", lambda X: np.trace(X @ X @ X), sq),
    ("gradient", "(AX + XA)ᵀ", lambda X: np.trace(A @ X @ X), sq),
    ("gradient", "Aᵀ ∘ B", lambda X: np.trace(A @ (B * X)), sq),
    ("gradient", "2X ∘ B", lambda X: np.sum(B * X * X), sq),
    ("gradient", "diag(lin)", lambda X: np.diag(X) @ lin, sq),
    ("gradient", "I", lambda X: einsum("ii->", X), sq),
    ("gradient", "𝟏𝟏ᵀ", lambda X: X.sum(), sq),
    ("gradient", "X / ‖X‖", lambda X: np.sqrt(np.trace(X.T @ X)), rect),
    ("gradient", "2Omega rect", lambda rect: np.trace(rect.T @ Omega @ rect), rect),
    ("gradient", "2Omega Z(ZᵀOmega Z)⁻¹", lambda Z: slogdet(Z.T @ Omega @ Z)[1] * 1.0, rect),
    ("jacobian", "A ⊗ Bᵀ", lambda X: einsum("ij,jk,kl->il", A, X, B), sq),
    ("jacobian", "X⁻¹ ⊗ X⁻ᵀ", lambda X: -inv(X), sq),
    ("jacobian", "2(x − lin)ᵀ", lambda x: np.array([norm(x - lin) ** 2]), w0),
    ("jacobian", "Omega x linᵀ + (linᵀx)Omega", lambda x: Omega @ x * (lin @ x), w0),
    ("jacobian", "−2diag(x)", lambda x: 1 - x**2, w0),
    ("jacobian", "diag(Ax) B + diag(Bx) A", lambda x: (A @ x) * (B @ x), w0),
    ("jacobian", "A diag(cos(x))", lambda x: A @ np.sin(x), w0),
    ("hessian", "A + Aᵀ", lambda x: einsum("ij,i,j", A, x, x), w0),
    ("hessian", "8xxᵀ + 4‖x‖²I", lambda x: norm(x) ** 4, w0),
    ("hessian", "(I − xxᵀ / ‖x‖²) / ‖x‖", lambda x: norm(x), w0),
    ("hessian", "2Bᵀdiag(lin)B", lambda x: lin @ (B @ x) ** 2, w0),
    ("hessian", "lin rhsᵀ + rhs linᵀ", lambda x: (lin @ x) * (rhs @ x), w0),
    ("hessian", "exp(linᵀx)lin linᵀ", lambda x: exp(lin @ x), w0),
    ("hessian", "diag(exp(x))", lambda x: exp(x).sum(), w0),
    ("hessian", "−sin(linᵀx)lin linᵀ", lambda x: np.sin(np.dot(lin, x)), w0),
    # in other hands
    ("gradient", "Xfᵀ(softmax(Xf W) − P)\n  where P = I₃[labels]", xent_loop, theta0),
    ("gradient", "Xfᵀ(softmax(Xf W) − P) / 8\n  where P = I₃[labels]", xent_along, theta0),
    ("gradient", "Xfᵀ(softmax(Xf W) − P) / 8\n  where P = I₃[labels]", xent_of_probabilities, theta0),
    ("gradient", "Xfᵀ clip(Xf w − yf, −kappa, kappa)", huber_by_minimum, w0),
    ("gradient", "2Xfᵀ(e ∘ (kappa² / (kappa² + e²)²))\n  where e = Xf w − yf", geman_mcclure, w0),
    ("gradient", "Xfᵀ(e ∘ exp(−½e² / kappa²)) / kappa²\n  where e = Xf w − yf", welsch, w0),
    ("gradient", "4Xfᵀ(e ∘ [5 > |e|] ∘ (25 − e²)²) / 62500\n  where e = Xf w − yf", tukey, w0),
    ("gradient", "Xfᵀ(wf ∘ sign(Xf w − yf))", lambda w: np.sum(wf * np.abs(Xf @ w - yf)), w0),
    (
        "gradient",
        "2Eᵀ(f ∘ Ex)\n  where D = I₈[:4]\n  E = I₄[[0, 1, 2, 0]] − I₄[[1, 2, 3, 3]]\n  f = D wf",
        edges_in_a_loop,
        w0,
    ),
    ("gradient", "v vᵀ\n  where S = V diag(λ) Vᵀ\n  e = I₄[3]\n  v = V e", lambda S: np.linalg.eigvalsh(S)[-1], Psi),
    ("gradient", "softmax(z) − soft", lambda z: -np.sum(soft * np.log(sp.softmax(z))), zobs),
    ("jacobian", "2𝟏(x − lin)ᵀ", lambda x: np.array([norm(x - lin) ** 2]), w0),
    ("jacobian", "2e xᵀ + f linᵀ\n  where e = I₂[0]\n  f = I₂[1]", lambda x: np.stack([x @ x - 1, lin @ x]), w0),
    (
        "jacobian",
        "diag(p0)(I − 𝟏𝟏ᵀ / 4 − ccᵀ / (4v)) / sqrt(v)\n  where c = x − mean(x)\n  v = mean(c²) + 1e−05",
        layer_norm_eps,
        w0,
    ),
    ("gradient", "−2(X⁻³)ᵀ", lambda X: np.trace(inv(X) @ inv(X)), sq),
    ("gradient", "(lin − (linᵀx − 1/50) Omega x / v) / sqrt(v)\n  where v = xᵀOmega x", sharpe_rate, p0),
    ("gradient", "softmax(z) ∘ (lin − linᵀ softmax(z))", lambda z: np.exp(z) @ lin / np.exp(z).sum(), phi0),
]
