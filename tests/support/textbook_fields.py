"""Derivatives that people of many fields look up: regression, densities, factors of matrices, written as each of them
writes. A row: kind, the book's formula (one for each argument), the function in plain NumPy, where."""

from __future__ import annotations

import types

import numpy as np
import scipy.linalg as sl
import scipy.special as sp
from numpy import einsum, exp, log
from numpy.linalg import cholesky, det, inv, norm, slogdet, solve

RNG = np.random.default_rng(77)
n, d, k = 9, 4, 3
design = RNG.normal(size=(n, d))
resp = RNG.normal(size=n)
counts = np.floor(RNG.uniform(0, 6, size=n))
signs = np.where(RNG.normal(size=n) > 0, 1.0, -1.0)
binary = (signs + 1) / 2
offset = RNG.normal(size=n) / 4
wts = RNG.uniform(0.5, 2.0, size=n)
group = np.array([0, 1, 2, 2, 1, 0, 1, 2, 0])
hot = np.eye(k)[group]
w0, u0, lin, rhs, m0 = RNG.normal(size=(5, d))
p0, q0, r0 = RNG.uniform(0.4, 1.6, size=(3, d))
theta0 = RNG.normal(size=(d, k)) / 2
phi0 = RNG.normal(size=d)
A, B, C, M = RNG.normal(size=(4, d, d))
Omega = A @ A.T + d * np.eye(d)
Psi = B @ B.T + d * np.eye(d)
Rm = np.array([[1.5, 0.2, 0.0], [0.2, 2.0, 0.3], [0.0, 0.3, 1.2]])
zobs = RNG.normal(size=k)
rect, wide = RNG.normal(size=(d, k)), RNG.normal(size=(k, d))
sq = 2 * np.eye(d) + 0.4 * RNG.normal(size=(d, d))
risk, ridge, tau, eps, lr, nu, kappa = 1.7, 0.35, 0.8, 0.01, 0.1, 4.0, 0.6
Kgram = design @ design.T + n * np.eye(n)
feats = RNG.normal(size=(n, d))
query = RNG.normal(size=d)
Nonneg = RNG.uniform(0.5, 1.5, size=(n, d))
Wf, Hf = RNG.uniform(0.5, 1.5, size=(n, k)), RNG.uniform(0.5, 1.5, size=(k, d))
seen = (RNG.uniform(size=(n, d)) > 0.4).astype(float)
probs = sp.softmax(RNG.normal(size=d))
cross = RNG.normal(size=(d, k))
start_l = np.tril(RNG.normal(size=(d, d)) / 3) + 2 * np.eye(d)


def least_squares_in_pieces(beta):
    fitted = einsum("nd,d->n", design, beta)
    residual = fitted - resp
    return residual.dot(residual) / 2


def elastic_smooth(beta):
    fit = design.dot(beta)
    gap = fit - resp
    return (gap**2).mean() / 2 + 0.5 * ridge * beta.dot(beta)


def newton_poisson(beta):
    eta = design @ beta + offset
    rate = exp(eta)
    return rate.sum() - counts @ eta


def negative_binomial(beta):
    mu = exp(design @ beta)
    return np.sum((counts + nu) * log(mu + nu) - counts * log(mu))


def gamma_regression(beta):
    eta = design @ beta
    return (wts * exp(-eta) + eta).sum()


def logit_prob(beta):
    p = 1.0 / (1.0 + exp(-design @ beta))
    return -(binary * log(p) + (1 - binary) * log(1 - p)).sum()


def logit_rows(beta):
    total = 0.0
    for xi, ti in zip(design, binary, strict=True):
        total += np.logaddexp(0.0, xi @ beta) - ti * (xi @ beta)
    return total


def xent_probs(Theta):
    scores = design @ Theta
    P = exp(scores) / exp(scores).sum(axis=1, keepdims=True)
    return -(hot * log(P)).sum()


def xent_shifted(Theta):
    scores = design @ Theta
    shifted = scores - scores.max(axis=1, keepdims=True)
    return -(hot * (shifted - log(exp(shifted).sum(axis=1, keepdims=True)))).sum() / n


def xent_picked(Theta):
    logp = sp.log_softmax(design @ Theta, axis=1)
    return -logp[np.arange(n), group].sum()


def xent_einsum(Theta):
    scores = einsum("nd,dk->nk", design, Theta)
    return sp.logsumexp(scores, axis=1).sum() - einsum("nk,nk->", hot, scores)


def xent_one(z):
    return log(exp(z).sum()) - z[2]


def label_smoothing(z):
    soft = (1 - eps) * np.eye(d)[1] + eps / d
    return -(soft * sp.log_softmax(z)).sum()


def focal_free(z):
    return -log(1 / (1 + exp(-z))).sum()


def svm(beta):
    return np.maximum(0.0, 1.0 - signs * (design @ beta)).sum() + ridge / 2 * (beta @ beta)


def svm_where(beta):
    m = signs * (design @ beta)
    return np.where(m < 1, 1 - m, 0.0).mean()


def huber_loss(beta):
    e = design @ beta - resp
    small = np.abs(e) < kappa
    return np.where(small, 0.5 * e**2, kappa * (np.abs(e) - 0.5 * kappa)).sum()


def pinball(beta):
    e = resp - design @ beta
    return np.maximum(tau * e, (tau - 1) * e).sum()


def epsilon_insensitive(beta):
    return np.maximum(np.abs(design @ beta - resp) - kappa, 0).sum()


def cauchy(beta):
    return log(1 + ((design @ beta - resp) / kappa) ** 2).sum()


def mvn_density(mean):
    diff = query - mean
    return -0.5 * (d * log(2 * np.pi) + slogdet(Omega)[1] + diff @ inv(Omega) @ diff)


def mvn_rows(mean):
    D = feats - mean
    return 0.5 * np.sum((D @ inv(Omega)) * D)


def mvn_cov(Cov):
    diff = query - m0
    return 0.5 * log(det(Cov)) + 0.5 * diff @ solve(Cov, diff)


def mvn_cov_data(Cov):
    Sc = feats.T @ feats
    return n * slogdet(Cov)[1] + np.trace(inv(Cov) @ Sc)


def mvn_chol(Lc):
    white = sl.solve_triangular(Lc, query - m0, lower=True)
    return 0.5 * white @ white + log(np.diag(Lc)).sum()


def mvn_precision(Prec):
    diff = query - m0
    return 0.5 * diff @ Prec @ diff - 0.5 * slogdet(Prec)[1]


def gp_evidence(Kmat):
    low = cholesky(Kmat)
    alpha = sl.cho_solve((low, True), resp)
    return 0.5 * resp @ alpha + log(np.diagonal(low)).sum() + n / 2 * log(2 * np.pi)


def gp_noise(s2):
    Ky = Kgram + s2 * np.eye(n)
    return 0.5 * resp @ solve(Ky, resp) + 0.5 * slogdet(Ky)[1]


def gp_noise_chol(s):
    low = cholesky(Kgram + s**2 * np.eye(n))
    half = sl.solve_triangular(low, resp, lower=True)
    return 0.5 * half @ half + log(np.diag(low)).sum()


def gp_mean(xs):
    return solve(Kgram, resp) @ (design @ xs)


def student_fit(loc):
    return (nu + 1) / 2 * log(1 + (resp - loc) ** 2 / nu).sum()


def gaussian_log_std(logs):
    return n * logs + 0.5 * exp(-2 * logs) * ((resp - 0.2) ** 2).sum()


def pca_error(V):
    return norm(feats - feats @ V @ V.T, "fro") ** 2 / n


def variance_explained(v):
    Cx = feats.T @ feats / n
    return (v @ Cx @ v) / (v @ v)


def whitening(V):
    return 0.25 * norm(V.T @ Omega @ V - np.eye(k), "fro") ** 2


def nmf_frobenius(Wn, Hn):
    return 0.5 * ((Nonneg - Wn @ Hn) ** 2).sum()


def nmf_divergence(Hn):
    approx = Wf @ Hn
    return (approx - Nonneg * log(approx)).sum()


def completion(Wn, Hn):
    gap = seen * (Wn @ Hn - Nonneg)
    return 0.5 * norm(gap) ** 2 + 0.5 * ridge * (norm(Wn) ** 2 + norm(Hn) ** 2)


def kmeans(centre):
    return sum(norm(row - centre) ** 2 for row in feats)


def kmeans_assigned(centres):
    return ((feats - centres[group]) ** 2).sum()


def kmeans_hot(centres):
    return 0.5 * norm(feats - hot @ centres) ** 2


def kl_discrete(z):
    s = sp.softmax(z)
    return np.sum(s * (log(s) - log(probs)))


def kl_reverse(z):
    return np.sum(probs * (log(probs) - sp.log_softmax(z)))


def kl_gauss(mean, logvar):
    return 0.5 * np.sum(mean**2 + exp(logvar) - logvar - 1)


def kl_mvn(Cov):
    return 0.5 * (np.trace(inv(Psi) @ Cov) - d + slogdet(Psi)[1] - slogdet(Cov)[1])


def kl_mvn_mean(mean):
    return 0.5 * (m0 - mean).T @ inv(Psi) @ (m0 - mean)


def entropy(p):
    return -np.sum(p * log(p))


def cross_entropy_p(p):
    return -probs @ log(p)


def procrustes(Rt):
    return norm(A @ Rt - B, "fro") ** 2


def procrustes_trace(Rt):
    return np.trace(Rt.T @ A.T @ B)


def cca(a, b):
    return a @ cross @ b - 0.5 * (a @ Omega @ a) - 0.5 * (b @ Rm @ b)


def correlation(a):
    return (a @ cross @ zobs) / np.sqrt(a @ Omega @ a)


def fisher_ratio(v):
    return (v @ Psi @ v) / (v @ Omega @ v)


def discriminant(x):
    return m0 @ solve(Omega, x) - 0.5 * m0 @ solve(Omega, m0)


def quadratic_discriminant(x):
    return -0.5 * (x - m0) @ solve(Psi, x - m0) - 0.5 * slogdet(Psi)[1]


def rbf_to(x):
    return exp(-((x - m0) ** 2).sum() / (2 * tau**2))


def rbf_expansion(x):
    return resp @ exp(-0.5 * ((feats - x) ** 2).sum(axis=1))


def mahal(x):
    dlt = x - m0
    return np.sqrt(dlt @ inv(Psi) @ dlt)


def bures_free(Cov):
    return np.trace(Cov) + np.trace(Omega) - 2 * np.trace(Cov @ Omega)


def stein(Cov):
    return np.trace(solve(Omega, Cov)) - log(det(solve(Omega, Cov))) - d


def graphical(Prec):
    return np.trace(Omega @ Prec) - slogdet(Prec)[1]


def factor_cov(Lf):
    return slogdet(Lf @ Lf.T + Omega)[1]


def factor_fit(Lf):
    return 0.25 * norm(Lf @ Lf.T - Omega) ** 2


def d_optimal(weight):
    return -slogdet(design.T @ np.diag(weight) @ design)[1]


def a_optimal(X):
    return np.trace(inv(X.T @ X))


def skew(X):
    return 0.5 * norm(X - X.T) ** 2


def symmetric_part(X):
    return norm((X + X.T) / 2) ** 2


def huber_svd(X):
    return 0.5 * norm(X - cross) ** 2 + risk * np.trace(X.T @ X)


def weighted_frobenius(X):
    return np.sum(np.abs(cross) * (X - cross) ** 2)


class Estimator:
    """A fit with its data as attributes."""

    def __init__(self, inputs, outputs, penalty):
        self.inputs, self.outputs, self.penalty = inputs, outputs, penalty
        self.gram = inputs.T @ inputs

    def normal(self, beta):
        return 0.5 * beta @ self.gram @ beta - (self.inputs.T @ self.outputs) @ beta

    def objective(self, beta):
        return norm(self.outputs - self.inputs @ beta) ** 2 + self.penalty * norm(beta) ** 2

    def gls(self, beta):
        e = self.outputs - self.inputs @ beta
        return e @ sl.solve(Kgram, e, assume_a="pos")


EST = Estimator(design, resp, ridge)
BOX = types.SimpleNamespace(G=Omega, h=lin, scale=tau)
STORE = {"mix": wide, "goal": zobs, "level": kappa}


def with_closure(table, goal):
    twice = 2 * goal
    return lambda v: (table @ v - twice) @ (table @ v - twice)


def scaled_features(v):
    Z = (feats - feats.mean(0)) / feats.std(0)
    return ((Z @ v - resp) ** 2).sum()


def centred(v):
    H = np.eye(n) - np.ones((n, n)) / n
    return v @ feats.T @ H @ feats @ v


RIDGE_INVERSE = inv(design.T @ design + ridge * np.eye(d))

ROWS = [
    # estimation
    ("gradient", "designᵀ(design beta − resp)", least_squares_in_pieces, w0),
    ("hessian", "designᵀdesign", least_squares_in_pieces, w0),
    ("gradient", "designᵀ(design beta − resp) / 9 + ridge beta", elastic_smooth, w0),
    ("hessian", "designᵀdesign / 9 + ridge I", elastic_smooth, w0),
    ("gradient", "designᵀ(exp(design beta + offset) − counts)", newton_poisson, w0),
    ("hessian", "designᵀ diag(exp(design beta + offset)) design", newton_poisson, w0),
    (
        "gradient",
        "designᵀ((counts + nu) ∘ mu / (mu + nu) − counts)\n  where mu = exp(design beta)",
        negative_binomial,
        w0,
    ),
    ("gradient", "designᵀ(1 − wts ∘ exp(−design beta))", gamma_regression, w0),
    ("hessian", "designᵀ diag(wts ∘ exp(−design beta)) design", gamma_regression, w0),
    ("gradient", "designᵀ(σ(design beta) − binary)", logit_prob, w0),
    ("hessian", "designᵀ diag(s ∘ (1 − s)) design\n  where s = σ(design beta)", logit_prob, w0),
    ("gradient", "designᵀ(σ(design beta) − binary)", logit_rows, w0),
    ("gradient", "designᵀ(softmax(design Theta) − hot)", xent_probs, theta0),
    ("gradient", "designᵀ(softmax(design Theta) − hot) / 9", xent_shifted, theta0),
    ("gradient", "designᵀ(softmax(design Theta) − P)\n  where P = I₃[group]", xent_picked, theta0),
    ("gradient", "designᵀ(softmax(design Theta) − hot)", xent_einsum, theta0),
    ("gradient", "softmax(z) − e\n  where e = I₄[2]", xent_one, phi0),
    ("hessian", "diag(s) − ssᵀ\n  where s = softmax(z)", xent_one, phi0),
    ("gradient", "softmax(z) − eps / 4 − (1 − eps) e\n  where e = I₄[1]", label_smoothing, phi0),
    ("gradient", "σ(z) − 1", focal_free, phi0),
    ("gradient", "ridge beta − designᵀ(signs ∘ [1 > signs ∘ design beta])", svm, w0),
    ("gradient", "−designᵀ(signs ∘ [1 > signs ∘ design beta]) / 9", svm_where, w0),
    ("gradient", "designᵀ clip(design beta − resp, −kappa, kappa)", huber_loss, w0),
    ("gradient", "designᵀ(sign(e) ∘ [|e| > kappa])\n  where e = design beta − resp", epsilon_insensitive, w0),
    ("gradient", "2designᵀ(e / (kappa² + e²))\n  where e = design beta − resp", cauchy, w0),
    ("gradient", "designᵀ([design beta > resp] − tau 𝟏)", pinball, w0),
    ("gradient", "inputsᵀ(inputs beta − outputs)", EST.normal, w0),
    ("gradient", "2inputsᵀ(inputs beta − outputs) + 2penalty beta", EST.objective, w0),
    ("hessian", "2(inputsᵀinputs + penalty I)", EST.objective, w0),
    ("gradient", "−2inputsᵀKgram⁻¹(outputs − inputs beta)", EST.gls, w0),
    (
        "gradient",
        "2Zᵀ(Zv − resp)\n  where Z = (feats − 𝟏mᵀ) diag(1 / s)\n  m = featsᵀ𝟏 / 9\n  s = sqrt((feats ∘ feats)ᵀ𝟏 / 9 − m²)",
        scaled_features,
        w0,
    ),
    (
        "gradient",
        "2mixᵀ(mix v − goal) + level v",
        lambda v: norm(STORE["mix"] @ v - STORE["goal"]) ** 2 + STORE["level"] / 2 * v @ v,
        w0,
    ),
    ("gradient", "2tableᵀ(table v − twice)", with_closure(wide, zobs), w0),
    ("gradient", "2scale Gx + h", lambda x: BOX.scale * x @ BOX.G @ x + BOX.h @ x, w0),
    ("gradient", "2featsᵀH feats v", centred, w0),
    ("gradient", "2RIDGE_INVERSE x", lambda x: x @ RIDGE_INVERSE @ x, w0),
    (
        "gradient",
        "designᵀ(wts ∘ (design b − resp))",
        lambda b: 0.5 * einsum("i,i,i", wts, design @ b - resp, design @ b - resp),
        w0,
    ),
    (
        "gradient",
        "2designᵀdiag(wts)(design b − resp)",
        lambda b: (design @ b - resp) @ np.diag(wts) @ (design @ b - resp),
        w0,
    ),
    ("gradient", "4designᵀ((design b − resp)³)", lambda b: np.sum((design @ b - resp) ** 4), w0),
    # densities
    ("gradient", "Omega⁻¹(query − mean)", mvn_density, m0),
    ("hessian", "−Omega⁻¹", mvn_density, m0),
    ("gradient", "Omega⁻¹(9mean − featsᵀ𝟏)", mvn_rows, m0),
    ("gradient", "½(Cov⁻ᵀ − Cov⁻ᵀ(query − m0)(query − m0)ᵀCov⁻ᵀ)", mvn_cov, Psi),
    ("gradient", "9Cov⁻ᵀ − (Cov⁻¹featsᵀfeats Cov⁻¹)ᵀ", mvn_cov_data, Psi),
    ("gradient", "diag(1 / diag(Lc)) − tril(Lc⁻ᵀ Lc⁻¹(query − m0)(query − m0)ᵀLc⁻ᵀ)", mvn_chol, start_l),
    ("gradient", "½((query − m0)(query − m0)ᵀ − Prec⁻ᵀ)", mvn_precision, Psi),
    ("gradient", "½(Kmat⁻¹ − Kmat⁻¹ resp respᵀ Kmat⁻¹)", gp_evidence, Kgram),
    ("gradient", "½(tr(Ky⁻¹) − ‖Ky⁻¹resp‖²)\n  where Ky = Kgram + s2 I", gp_noise, 0.7),
    ("gradient", "s(tr(G) − ‖G resp‖²)\n  where G = (Kgram + s²I)⁻¹", gp_noise_chol, 0.7),
    ("gradient", "designᵀKgram⁻¹resp", gp_mean, w0),
    ("gradient", "−(nu + 1)Σ((resp − loc) / (nu + (resp − loc)²))", student_fit, 0.3),
    ("gradient", "9 − exp(−2logs)‖resp − 1/5‖²", gaussian_log_std, 0.2),
    ("gradient", "−Psi⁻¹(x − m0)", quadratic_discriminant, w0),
    ("gradient", "Omega⁻¹m0", discriminant, w0),
    ("gradient", "Psi⁻¹(x − m0) / sqrt((x − m0)ᵀPsi⁻¹(x − m0))", mahal, w0),
    ("gradient", "−((x − m0) / tau²) exp(−‖x − m0‖² / (2tau²))", rbf_to, w0),
    (
        "gradient",
        "featsᵀ(resp ∘ g) − (respᵀg)x\n  where g = exp(−½((feats ∘ feats)𝟏 − 2feats x + ‖x‖²))",
        rbf_expansion,
        w0,
    ),
    ("gradient", "Psi⁻¹(mean − m0)", kl_mvn_mean, w0),
    ("gradient", "½(Psi⁻¹ − Cov⁻ᵀ)", kl_mvn, Omega),
    ("gradient", ("mean", "½(exp(logvar) − 1)"), kl_gauss, w0, lin),
    ("gradient", "softmax(z) − probs", kl_reverse, phi0),
    ("gradient", "s ∘ (log(s / probs) − sᵀlog(s / probs))\n  where s = softmax(z)", kl_discrete, phi0),
    ("gradient", "−log(p) − 1", entropy, p0),
    ("hessian", "−diag(1 / p)", entropy, p0),
    ("gradient", "−probs / p", cross_entropy_p, p0),
    ("gradient", "Omega⁻¹ − Cov⁻¹", stein, Psi),
    ("gradient", "Omega − Prec⁻ᵀ", graphical, Psi),
    ("hessian", "(Prec⁻¹ ⊗ Prec⁻¹)K", graphical, Psi),
    ("gradient", "I − 2Omega", bures_free, Psi),
    # factors
    ("gradient", "(2/9)(featsᵀfeats (VVᵀ − I) + (VVᵀ − I) featsᵀfeats)V", pca_error, rect),
    ("gradient", "2(Cv − (vᵀCv / ‖v‖²) v) / ‖v‖²\n  where C = featsᵀfeats / 9", variance_explained, w0),
    ("gradient", "Omega V(VᵀOmega V − I)", whitening, rect),
    ("gradient", ("(Wn Hn − Nonneg)Hnᵀ", "Wnᵀ(Wn Hn − Nonneg)"), nmf_frobenius, Wf, Hf),
    ("gradient", "Wfᵀ(1 − Nonneg / (Wf Hn))", nmf_divergence, Hf),
    (
        "gradient",
        ("(seen ∘ (Wn Hn − Nonneg))Hnᵀ + ridge Wn", "Wnᵀ(seen ∘ (Wn Hn − Nonneg)) + ridge Hn"),
        completion,
        Wf,
        Hf,
    ),
    ("gradient", "2(9centre − featsᵀ𝟏)", kmeans, w0),
    ("gradient", "2Pᵀ(P centres − feats)\n  where P = I₃[group]", kmeans_assigned, wide),
    ("gradient", "hotᵀ(hot centres − feats)", kmeans_hot, wide),
    ("gradient", "2(Lf Lfᵀ + Omega)⁻¹Lf", factor_cov, rect),
    ("gradient", "(Lf Lfᵀ − Omega)Lf", factor_fit, rect),
    ("gradient", "−diag(design(designᵀdiag(weight)design)⁻¹designᵀ)", d_optimal, wts),
    ("gradient", "−2X(XᵀX)⁻¹(XᵀX)⁻¹", a_optimal, design),
    ("gradient", "2Aᵀ(A Rt − B)", procrustes, sq),
    ("gradient", "AᵀB", procrustes_trace, sq),
    ("gradient", ("cross b − Omega a", "crossᵀa − Rm b"), cca, w0, zobs),
    ("gradient", "(cross zobs − (aᵀcross zobs / (aᵀOmega a)) Omega a) / sqrt(aᵀOmega a)", correlation, w0),
    ("gradient", "2(Psi v − (vᵀPsi v / (vᵀOmega v)) Omega v) / (vᵀOmega v)", fisher_ratio, w0),
    ("gradient", "2(X − Xᵀ)", skew, sq),
    ("gradient", "X + Xᵀ", symmetric_part, sq),
    ("gradient", "X − cross + 2risk X", huber_svd, rect),
    ("gradient", "2|cross| ∘ (X − cross)", weighted_frobenius, rect),
]
