"""Covariances, polynomials, sparse matrices, np.r_ and np.c_ in traced code, against JAX, SciPy and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import riesz as rz

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 6))
W = RNG.normal(size=(3, 3))

CASES = {
    "cov": lambda np: lambda x: np.cov(x),
    "cov, columns": lambda np: lambda x: np.cov(x.T, rowvar=False),
    "cov, biased": lambda np: lambda x: np.cov(x, bias=True),
    "cov, ddof": lambda np: lambda x: np.cov(x, ddof=2),
    "cov of two": lambda np: lambda x: np.cov(x[0], x[1]),
    "cov, weights": lambda np: (
        lambda x: np.cov(x, fweights=np.array([1, 2, 1, 1, 3, 1]), aweights=np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.3]))
    ),
    "variance": lambda np: lambda x: np.cov(x[0]),
    "corrcoef": lambda np: lambda x: np.corrcoef(x),
    "polyval": lambda np: lambda x: np.polyval(x[0], x[1]),
    "polyval, fixed coefficients": lambda np: lambda x: np.polyval(np.array([1.0, 2.0, 3.0]), x),
}


def close(a, b):
    """Equal to 1e-12 relative to their norms."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.linalg.norm(a - b) <= 1e-12 * max(np.linalg.norm(a), np.linalg.norm(b)), (a, b)


@pytest.mark.parametrize("name", CASES)
def test_against_jax(name):
    f, g = CASES[name](np), CASES[name](jnp)
    value, back = rz.vjp(f, A)
    want, jback = jax.vjp(g, A)
    close(value, want)
    close(value, f(A))
    w = RNG.normal(size=np.shape(want))
    close(back(w if w.shape else float(w))[0], jback(w)[0])
    scalar = lambda np, h: lambda x: np.sum(np.sin(h(x)))  # noqa: E731
    close(rz.hvp(scalar(np, f), (A,), (A,)), jax.jvp(jax.grad(scalar(jnp, g)), (A,), (A,))[1])
    assert rz.grad(scalar(np, f))(A.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    "make", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array, scipy.sparse.csr_matrix]
)
def test_sparse_matrices(make):
    dense = RNG.normal(size=(4, 5)) * (RNG.random((4, 5)) < 0.5)
    S = make(dense)
    x, X = RNG.normal(size=5), RNG.normal(size=(5, 2))
    for f, g, at in [
        (lambda x: S @ x, lambda x: dense @ x, x),
        (lambda X: S @ X, lambda X: dense @ X, X),
        (lambda y: y @ S, lambda y: y @ dense, RNG.normal(size=4)),
        (lambda Y: Y @ S, lambda Y: Y @ dense, RNG.normal(size=(3, 4))),
        *(
            [(lambda x: S.dot(x), lambda x: dense @ x, x)] if S.format != "coo" else []
        ),  # COO's own dot refuses what it does not know
        (lambda x: S.T @ (S @ x), lambda x: dense.T @ dense @ x, x),
    ]:
        np.testing.assert_allclose(rz.function(f)(at), g(at), rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(rz.jacobian(f)(at).to_dense(), rz.jacobian(g)(at).to_dense(), rtol=1e-13, atol=1e-14)
    assert "red" in str(rz.linearize(lambda x: S @ x, x)[1])  # entries and indices, no dense matrix
    with pytest.raises(ValueError, match="do not fit"):
        rz.function(lambda x: S @ x)(np.ones(4))
    if make is scipy.sparse.csr_matrix:  # * is a product of matrices
        np.testing.assert_allclose(rz.function(lambda y: y * S)(np.ones(4)), np.ones(4) * S)
    else:
        with pytest.raises(rz.TraceError, match="@"):
            rz.function(lambda x: x * S)(np.ones(5))


def test_joining_by_brackets():
    f = lambda x: np.r_[x, 0.0, x[:2], 1:3]  # noqa: E731
    x = np.arange(3.0)
    assert rz.function(f)(x).tolist() == f(x).tolist()
    assert rz.grad(lambda x: np.sum(f(x) ** 2))(x).tolist() == [0.0, 4.0, 4.0]
    g = lambda x: np.c_[x, 2.0 * x, np.ones(3)]  # noqa: E731
    assert rz.function(g)(x).tolist() == g(x).tolist()
    assert type(np.r_).__name__ == "RClass"


def test_rows_stacked_one_by_one_cost_linear_time():
    f = lambda x: np.sum(np.stack([r * 2.0 for r in x]) ** 2)  # noqa: E731
    x = RNG.normal(size=(50, 3))
    np.testing.assert_allclose(rz.grad(f)(x), 8.0 * x, rtol=1e-15)
