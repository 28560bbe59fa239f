"""Cosine transforms and filters by rank of SciPy in traced code, against SciPy and differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage as ndimage
import scipy.signal as signal
from numpy.testing import assert_allclose

import riesz as rz

RNG = np.random.default_rng(1)
X = RNG.normal(size=(5, 6))


def agree(f, x, h=1e-6):
    """Value, type, forward and backward derivative, against SciPy and differences."""
    found = rz.function(f)(x)
    assert found.dtype == f(x).dtype and found.shape == f(x).shape
    assert_allclose(found, f(x), atol=1e-12)
    v = RNG.normal(size=x.shape)
    slope = (f(x + h * v) - f(x - h * v)) / (2 * h)
    L = rz.jacobian(f)(x)
    assert_allclose(L(v), slope, rtol=1e-6, atol=1e-8)
    w = RNG.normal(size=slope.shape)
    assert_allclose(np.sum(L.H(w) * v), np.sum(w * slope), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "kind"), itertools.product(["dct", "idct", "dst", "idst"], [1, 2, 3, 4]))
def test_transforms(name, kind):
    f = getattr(scipy.fft, name)
    for norm, more in itertools.product((None, "ortho", "forward"), ({}, {"axis": 0}, {"n": 4}, {"n": 9})):
        g = lambda x, norm=norm, more=more: f(x, kind, norm=norm, **more)  # noqa: E731
        assert_allclose(rz.function(g)(X), g(X), atol=1e-12)
    agree(lambda x: f(x, kind), X)
    agree(lambda x: getattr(scipy.fft, f"{name}n")(x, kind, norm="ortho"), X)
    small = rz.function(lambda x: f(x, kind))(X.astype(np.float32))
    assert small.dtype == np.float32
    H = rz.hessian(lambda x: np.sum(f(x, kind) ** 3))(X[0])
    assert_allclose(H.to_dense(), H.to_dense().T, atol=1e-9)


FILTERS = {
    "maximum": lambda x: ndimage.maximum_filter(x, 3),
    "minimum, sizes": lambda x: ndimage.minimum_filter(x, (3, 1), mode="nearest"),
    "maximum1d": lambda x: ndimage.maximum_filter1d(x, 3, axis=0, mode="constant", cval=0.2),
    "median": lambda x: ndimage.median_filter(x, 3, mode="mirror"),
    "median, footprint": lambda x: ndimage.median_filter(x, footprint=np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])),
    "median, even": lambda x: ndimage.median_filter(x, 2),
    "rank": lambda x: ndimage.rank_filter(x, 2, 3),
    "rank, negative": lambda x: ndimage.rank_filter(x, -2, 3, mode="wrap"),
    "percentile": lambda x: ndimage.percentile_filter(x, 35, 3),
    "percentile, axes": lambda x: ndimage.percentile_filter(x, 80, 3, axes=(1,)),
    "origin": lambda x: ndimage.maximum_filter(x, 3, origin=1),
    "erosion": lambda x: ndimage.grey_erosion(x, size=(3, 3)),
    "dilation": lambda x: ndimage.grey_dilation(x, size=(3, 3)),
    "medfilt": lambda x: signal.medfilt(x, 3),
    "medfilt2d": lambda x: signal.medfilt2d(x, (3, 5)),
    "medfilt, one axis": lambda x: signal.medfilt(x[0]),
    "order_filter": lambda x: signal.order_filter(x, np.ones((3, 3)), 2),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_by_rank(name):
    agree(FILTERS[name], X)
    assert rz.function(FILTERS[name])(X.astype(np.float32)).dtype == FILTERS[name](X.astype(np.float32)).dtype


A = RNG.normal(size=(4, 4))
S = A @ A.T + np.diag([1.0, 2.0, 3.0, 4.0])
B = RNG.normal(size=(4, 2))
MATRICES = {
    "eigvals": (lambda a: np.abs(scipy.linalg.eigvals(a)), A),
    "eig, pair": (lambda a: scipy.linalg.eigvals(a, S).real, S + 0.1 * A),
    "eigh_tridiagonal": (
        lambda d: np.abs(scipy.linalg.eigh_tridiagonal(d, np.array([0.3, 0.4, 0.5]))[1]),
        np.arange(4.0),
    ),
    "eigvalsh_tridiagonal": (lambda e: scipy.linalg.eigvalsh_tridiagonal(np.arange(4.0), e), np.array([0.3, 0.4, 0.5])),
    "eig_banded": (lambda a: scipy.linalg.eig_banded(a)[0], X[:2, :5] + 3.0),
    "eigvals_banded": (lambda a: scipy.linalg.eigvals_banded(a, lower=True), X[:2, :5] + 3.0),
    "pinvh": (lambda a: scipy.linalg.pinvh(a + a.T), S),
    "expm_frechet": (lambda a: np.concatenate(scipy.linalg.expm_frechet(a, S)), 0.3 * A),
    "fractional_matrix_power": (lambda a: scipy.linalg.fractional_matrix_power(a @ a.T + np.eye(4), 0.3), A),
    "signm": (lambda a: scipy.linalg.signm(a @ a.T + a), A + 3 * np.eye(4)),
    "issymmetric": (lambda a: a if scipy.linalg.issymmetric(a) else 2 * a, S),
    "care, A": (lambda a: scipy.linalg.solve_continuous_are(a, B, np.eye(4), np.eye(2)), A),
    "care, B": (lambda b: scipy.linalg.solve_continuous_are(A, b, np.eye(4), np.eye(2)), B),
    "care, Q and R": (
        lambda t: scipy.linalg.solve_continuous_are(A, B, t[0] * S, t[1] * np.eye(2)),
        np.array([1.0, 2.0]),
    ),
}


@pytest.mark.parametrize("name", MATRICES)
def test_functions_of_matrices(name):
    f, x = MATRICES[name]
    assert_allclose(rz.function(f)(x), f(x), rtol=1e-9, atol=1e-10)
    v = RNG.normal(size=x.shape)
    h = 1e-5
    v = v + np.swapaxes(v, -1, -2) if name == "issymmetric" else v
    slope = (f(x + h * v) - f(x - h * v)) / (2 * h)
    L = rz.jacobian(f)(x)
    assert_allclose(L(v), slope, rtol=1e-5, atol=1e-7)
    w = RNG.normal(size=slope.shape)
    assert_allclose(np.sum(L.H(w) * v), np.sum(w * slope), rtol=1e-5, atol=1e-6)
    g = rz.grad(lambda x: np.sum(np.sin(f(x))))
    assert_allclose(rz.jvp(g, (x,), (v,))[1], (g(x + h * v) - g(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-5)
