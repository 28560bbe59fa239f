"""Functions of complex numbers inside traced code: values of NumPy's, derivatives by differences."""

import numpy as np
import pytest
import scipy.special as s

import riesz as rz

X = np.array([0.3, -1.2, 0.7, 1.9])
Y = np.array([-0.4, 0.8, -1.1, 0.2])
FUNCTIONS = [np.exp2, np.expm1, np.log1p, np.arcsinh, np.arccosh, np.arctanh, np.arcsin, np.arctan]
FUNCTIONS += [s.erf, s.erfc, s.erfi, s.erfcx, s.wofz, s.dawsn, lambda z: s.erf(z[0])]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions_of_complex_numbers(f):
    def parts(v):
        z = f(v[0] + 1j * v[1])
        return np.stack([z.real, z.imag])

    v, h = np.stack([X, Y]), 1e-6
    np.testing.assert_allclose(rz.function(parts)(v), parts(v), rtol=1e-13, atol=1e-15)
    for dv in (np.stack([X, X[::-1]]), np.stack([Y, X])):
        wanted = (parts(v + h * dv) - parts(v - h * dv)) / (2 * h)
        np.testing.assert_allclose(rz.jvp(parts, (v,), (dv,))[1], wanted, rtol=1e-7, atol=1e-8)
        second = lambda v, dv=dv: rz.jvp(parts, (v,), (dv,))[1]  # noqa: E731
        wanted = (second(v + h * dv) - second(v - h * dv)) / (2 * h)
        np.testing.assert_allclose(rz.jvp(second, (v,), (dv,))[1], wanted, rtol=1e-6, atol=1e-6)
    for backend in ("numpy", "numba", "jax"):
        np.testing.assert_allclose(rz.compile(parts, backend=backend)(v), parts(v), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", [None, (0, 2), (-1, 0)])
@pytest.mark.parametrize("kind", ["fro", "nuc", 1, 2, -2, np.inf])
def test_norms(kind, axis):
    def norm(v, ord=kind, axis=axis):
        z = v[0] + 1j * v[1]
        return np.linalg.norm(z[:, 0] if axis is None else z, ord, axis, keepdims=True)

    v = np.random.default_rng(3).normal(size=(2, 3, 2, 4))
    orders = [norm, *[lambda v, k=k: norm(v, k, 1) for k in (1, 2, 3, 0.5, np.inf)]] if axis == (0, 2) else [norm]
    for f in orders:
        found, wanted = rz.function(f)(v), f(v)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
        wanted = (f(v + 1e-6 * np.sin(v)) - f(v - 1e-6 * np.sin(v))) / 2e-6
        np.testing.assert_allclose(rz.jvp(f, (v,), (np.sin(v),))[1], wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("f", "half"), [(np.expm1, 0.5), (np.log1p, -0.5)])
def test_small_numbers_are_exact(f, half):
    w = X * (1e-9 + 2e-9j)
    found = rz.function(lambda x: f(x * (1e-9 + 2e-9j)).real)(X)
    np.testing.assert_allclose(found, (w + half * w * w).real, rtol=1e-14)  # NumPy's log1p has 8 digits here


@pytest.mark.parametrize(
    "f",
    [
        np.prod,
        lambda z: np.prod(z, axis=0),
        lambda z: np.prod(z, axis=1),
        lambda z: np.prod(z, axis=-1, keepdims=True),
        lambda z: np.prod(z, keepdims=True),
        lambda z: np.prod(z[:, :0], axis=1),
        lambda z: np.prod(z[:1], axis=0),
        lambda z: np.where(np.iscomplex(z), z, 1j) * np.isreal(z),
    ],
)
def test_products_and_questions(f):
    def parts(x):
        z = f(x.reshape(3, -1) * (1 + 0.5j) - 0.2j)
        return z.real, z.imag

    x = np.linspace(0.3, 1.7, 15)
    for found, wanted in zip(rz.function(parts)(x), parts(x), strict=True):
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    v, h = np.cos(x), 1e-6
    for k in range(2):
        wanted = (parts(x + h * v)[k] - parts(x - h * v)[k]) / (2 * h)
        np.testing.assert_allclose(rz.jvp(parts, (x,), (v,))[1][k], wanted, rtol=1e-6, atol=1e-7)
