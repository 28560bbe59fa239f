"""Laws of closed forms, one after the other: what is printed, and that it is the derivative."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as sp

import riesz as rz

RNG = np.random.default_rng(5)
X, y, w = RNG.normal(size=(8, 4)), RNG.normal(size=8), RNG.normal(size=4)
A, a, v = RNG.normal(size=(4, 4)), RNG.normal(size=4), RNG.normal(size=4)
p = sp.softmax(RNG.normal(size=4))
S = A @ A.T + 4 * np.eye(4)
Z = A + 5 * np.eye(4)
W = RNG.normal(size=(4, 3))
classes = np.array([0, 1, 2, 1, 0, 2, 1, 0])
wt = RNG.uniform(0.5, 1.5, size=8)
here, there = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
s, k = 0.7, 0.4


def picked(W):
    e = np.exp(X @ W)
    return -np.sum(np.log((e / e.sum(1, keepdims=True))[np.arange(8), classes]))


def along(W):
    z = X @ W
    return np.sum(np.log(np.sum(np.exp(z), axis=1)) - np.take_along_axis(z, classes[:, None], 1)[:, 0])


def scattered(W):
    return np.sum(np.take_along_axis(X @ W, classes[:, None], 1) ** 2)


def bounded(w):
    e = np.abs(X @ w - y)
    small = np.minimum(e, s)
    return np.sum(0.5 * small**2 + s * (e - small))


def beside(x):
    return np.sum(np.sin(np.concatenate([[0.0], x[:-1]]) + np.concatenate([x[1:], [0.0]])))


def beside_written(x):
    r = np.zeros(4)
    r[1:] += x[:-1]
    r[:-1] += x[1:]
    return np.sum(np.sin(r))


BESIDE = "E cos(Ex)\n  where E = PᵀQ + QᵀP\n        P = I₄[:3]\n        Q = I₄[1:]"

CASES = {
    "neighbours on both sides": ("gradient", beside, w, BESIDE),
    "neighbours on both sides, written in place": ("gradient", beside_written, w, BESIDE),
    "a row of I": ("gradient", lambda x: np.eye(4)[1] @ x**2, w, "2x₁ e1\n  where e1 = I₄[1]"),
    "one number beside zeros": (
        "gradient",
        lambda x: np.array([0.0, 3.0, 0.0, 0.0]) @ x,
        w,
        "3 e1\n  where e1 = I₄[1]",
    ),
    "a vector that sums to 1": ("gradient", lambda z: -p @ sp.log_softmax(z), w, "softmax(z) − p"),
    "positive weights in |·|": ("gradient", lambda w: np.sum(np.abs(wt * (X @ w - y))), w, "Xᵀ(wt ∘ sign(Xw − y))"),
    "numbers in |·|": ("gradient", lambda x: np.sum(np.abs(-3 * x) * x), w, "6 |x|"),
    "1 / (c (1 + z / c))": (
        "gradient",
        lambda w: np.sum(np.log(1 + ((X @ w - y) / s) ** 2)),
        w,
        "2Xᵀ(e / (s² + e²))\n  where e = Xw − y",
    ),
    "the same under a root": ("gradient", lambda t: np.sqrt(1 + (t / s) ** 2) * s, 0.3, "t / sqrt(t² + s²)"),
    "M⁻¹M⁻¹": ("gradient", lambda X: np.trace(np.linalg.inv(X)), Z, "−(X⁻²)ᵀ"),
    "M M of a sum": ("jacobian", lambda x: (A + S) @ ((A + S) @ x), w, "(A + S)²"),
    "decimals": ("gradient", lambda x: 0.5 * np.sum((A @ x - 0.9 * x) ** 2), w, "(Aᵀ − (9/10)I)(Ax − (9/10)x)"),
    "a small number beside a variance": (
        "gradient",
        lambda x: np.log(np.mean((x - x.mean()) ** 2) + 1e-6),
        w,
        "2e / (4e−06 + ‖e‖²)\n  where e = x − mean(x)",
    ),
    "a decimal beside a product": ("gradient", lambda x: np.log(a @ x - 0.02 + 9), w, "a / (449/50 + xᵀa)"),
    "(a − b)ᵀ under each other": ("jacobian", lambda x: np.array([np.sum((x - a) ** 2)]), w, "2𝟏(x − a)ᵀ"),
    "entries that are picked": ("gradient", picked, W, "Xᵀ(softmax(XW) − P)\n  where P = I₃[classes]"),
    "entries along an axis": ("gradient", along, W, "Xᵀ(softmax(XW) − P)\n  where P = I₃[classes]"),
    "entries put back": ("gradient", scattered, W, "2Xᵀ diag(diag(XWPᵀ)) P\n  where P = I₃[classes]"),
    "min(u, v) where v > u": ("gradient", bounded, w, "Xᵀ clip(Xw − y, −s, s)"),
    "edges in a loop": (
        "gradient",
        lambda x: sum([wt[i] * (x[here[i]] - x[there[i]]) ** 2 for i in range(4)]),
        w,
        "2Gᵀ(Gx ∘ D wt)\n  where D = I₈[:4]\n        G = I₄[[0, 1, 2, 0]] − I₄[[1, 2, 3, 3]]",
    ),
    "one eigenvector": (
        "gradient",
        lambda S: np.linalg.eigvalsh(S)[-1],
        S,
        "vvᵀ\n  where v = V e3\n        S = V diag(λ) Vᵀ\n        e3 = I₄[3]\n        Sᵀ = S",
    ),
    "one pair of singular vectors": (
        "gradient",
        lambda Z: np.linalg.norm(Z, 2),
        Z,
        "uvᵀ\n  where v = V e0\n        u = U e0\n        Z = U diag(s) Vᵀ\n        e0 = I₄[0]",
    ),
    "numbers in brackets": ("gradient", lambda z: a @ sp.softmax(z), w, "softmax(z) ∘ (a − aᵀ softmax(z))"),
    "signs of quotients": (
        "gradient",
        lambda x: np.sum(x**2 / (x**2 + k)),
        w,
        "2kx / (x² + k)²",
    ),
    "fractions with long digits": ("gradient", lambda x: np.mean(x) / 81, 2 * w, "(1/324)𝟏"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_law_for_form_and_value(case):
    kind, f, at, text = CASES[case]
    form = getattr(rz.derive(f, at), kind)
    assert str(form) == text
    found: dict = {}
    exec(form.code("numpy"), found)
    numbers = found[kind](at, *[v for _, v in form.written().given()])
    expected = rz.grad(f)(at) if kind == "gradient" else rz.jacobian(f)(at).to_dense()
    np.testing.assert_allclose(numbers, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("target", ["text", "latex", "jax", "torch"])
def test_negative_powers_of_matrices_in_other_languages(target):
    form = rz.derive(lambda X: np.trace(np.linalg.inv(X)), Z).gradient
    text = form.code(target)
    if target == "text":
        np.testing.assert_allclose(rz.function(text)(Z), rz.grad(lambda X: np.trace(np.linalg.inv(X)))(Z), atol=1e-12)
    assert {"text": "inv(X) @ inv(X)", "latex": "X^{-2}"}.get(target, "matrix_power(X, -2)") in text


def test_a_residual_keeps_its_sign_in_products_with_inverses():
    form = rz.derive(lambda w: (y - X @ w) @ np.linalg.solve(S[:1, :1] * np.eye(8), y - X @ w), w).gradient
    found: dict = {}
    exec(form.code("numpy"), found)
    numbers = found["gradient"](w, *[v for _, v in form.written().given()])
    np.testing.assert_allclose(numbers, 2 * X.T @ (X @ w - y) / S[0, 0], atol=1e-12)


def test_many_terms_with_unit_vectors_take_seconds():
    """A correlation is a matrix of sums over two unit vectors; what is looked at is bounded, and the form is right."""
    f = lambda w: np.corrcoef(X @ w, y)[0, 1]  # noqa: E731
    form = rz.derive(f, w).gradient
    found: dict = {}
    exec(form.code("numpy"), found)
    numbers = found["gradient"](w, *[v for _, v in form.written().given()])
    np.testing.assert_allclose(numbers, rz.grad(f)(w), atol=1e-12)


def test_a_vector_that_does_not_sum_to_one_is_no_stochastic_one():
    with pytest.raises(rz.VectorError, match="is not stochastic"):
        rz.assume(2 * p, stochastic=True)
    shown = str(rz.derive(lambda q, z: -rz.assume(q, stochastic=True) @ sp.log_softmax(z), p, w).gradient["z"])
    assert shown == "softmax(z) − q"
    twice = 2 * p
    assert str(rz.derive(lambda z: -twice @ sp.log_softmax(z), w).gradient) == "Σ(twice) softmax(z) − twice"
