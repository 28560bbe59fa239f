"""Functions whose results are real or complex as the numbers have it, and complex extrema."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from numpy.testing import assert_allclose

import riesz as rz

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4))


def parts(z):
    return (z.real, z.imag) if np.iscomplexobj(z) else (z,)


def agree(f, x, h=1e-6, second=True):
    """Value, forward and backward derivative and a second derivative, against differences."""
    flat = lambda x: np.concatenate([np.ravel(part) for part in f(x)])  # noqa: E731
    v = RNG.normal(size=np.shape(x))
    assert_allclose(rz.function(flat)(x), flat(x), atol=1e-12)
    slope = (flat(x + h * v) - flat(x - h * v)) / (2 * h)
    L = rz.jacobian(flat)(x)
    assert_allclose(L(v), slope, rtol=1e-5, atol=1e-7)
    w = RNG.normal(size=slope.shape)
    assert_allclose(np.sum(L.H(w) * v), w @ slope, rtol=1e-5, atol=1e-7)
    if second:
        g = rz.grad(lambda x: np.sum(np.sin(flat(x))))
        assert_allclose(rz.jvp(g, (x,), (v,))[1], (g(x + h * v) - g(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("a", [A, A @ A.T + np.diag([1.0, 2.0, 3.0, 4.0]), np.stack([A, A.T + 1])])
def test_eig_of_real_matrices(a):
    agree(lambda a: parts(np.linalg.eigvals(a)), a)
    agree(lambda a: [np.abs(y) for y in np.linalg.eig(a)], a)


def test_eig_decides_at_each_point():
    f = rz.function(lambda a: np.sum(np.linalg.eigvals(a) ** 2).real)
    for a in (A, np.diag([1.0, 2.0, 3.0, 4.0]), A.T):
        assert f(a) == pytest.approx(np.trace(a @ a))
    with pytest.raises(rz.TraceError, match=r"np\.linalg\.eig\(a \+ 0j\)"):
        rz.derive(lambda a: np.linalg.eigvals(a).real, rz.R ** (3, 3))


def test_square_roots_that_are_complex():
    S = A + A.T  # indefinite
    agree(lambda a: parts(scipy.linalg.sqrtm(a)), S)
    agree(lambda a: parts(scipy.linalg.sqrtm(a)), S @ S + np.eye(4))


def test_extrema_by_the_order_of_complex_numbers():
    z = RNG.normal(size=(2, 3, 4))
    z[0, 1] = z[0, 0, 0]  # equal real parts
    for f in (np.max, np.min):
        for more in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}, {"axis": -1}):
            g = lambda z, f=f, more=more: parts(f(z[0] + 1j * z[1], **more))  # noqa: E731
            ours, theirs = rz.function(g)(z), g(z)
            for a, b in zip(ours, theirs, strict=True):
                assert_allclose(a, b)
    agree(lambda z: parts(np.max(z[0] + 1j * z[1], axis=0)), RNG.normal(size=(2, 3, 4)))


def test_real_if_close():
    agree(lambda x: parts(np.real_if_close(np.sin(x) + 1e-18j * x)), A)
    agree(lambda x: parts(np.real_if_close(np.sin(x) + 1j * x)), A)


def test_norms_by_order():
    agree(lambda x: [np.linalg.norm(x + 1j * x**2, ord=3, axis=0)], A)
    agree(lambda x: [np.linalg.norm(x + 1j * x**2, ord="nuc")], A)


def test_normal_with_a_singular_covariance():
    B = RNG.normal(size=(4, 2))
    x = B @ np.array([0.3, -0.2])
    f = lambda s: scipy.stats.multivariate_normal.logpdf(x, np.zeros(4), s * (B @ B.T), allow_singular=True)  # noqa: E731
    assert rz.function(f)(1.3) == pytest.approx(f(1.3))
    assert rz.grad(f)(1.3) == pytest.approx((f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rel=1e-6)
    full = lambda C: [scipy.stats.multivariate_normal.logpdf(x, np.zeros(4), C + C.T, allow_singular=True)]  # noqa: E731
    agree(full, A @ A.T + np.eye(4))


FORMULAS = {
    "polyval": lambda z: np.polyval([1.0, 2.0, 0.5], z),
    "polyval of coefficients": lambda z: np.polyval(z[0], 0.7),
    "average": lambda z: np.average(z, axis=0, weights=[1.0, 2.0, 3.0, 4.0]),
    "linspace": lambda z: np.linspace(z[0], 2.0 * z[1], 5),
    "sinc": np.sinc,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "interp": lambda z: np.interp([0.3, 1.7], [0.0, 1.0, 2.0, 3.0], z[0]),
    "gradient": lambda z: np.gradient(z, axis=0),
    "trapezoid": lambda z: np.trapezoid(z, dx=0.1),
    "take_along_axis": lambda z: np.take_along_axis(z, np.array([[1], [0], [2], [3]]), 1),
    "vector_norm": lambda z: np.linalg.vector_norm(z, axis=0, ord=3) + 0j,
    "matrix_norm": lambda z: np.linalg.matrix_norm(z) + 0j,
    "windows": lambda z: np.lib.stride_tricks.sliding_window_view(z, 2, axis=0),
    "isclose": lambda z: np.where(np.isclose(z, z[0]), z, 2 * z),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_on_complex_numbers(name):
    agree(lambda x: parts(FORMULAS[name](x + 1j * np.cos(x))), A, second=name not in ("isclose",))
