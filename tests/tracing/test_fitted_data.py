"""Splines of FITPACK, radial functions, triangles and polynomials through points in traced code: SciPy's values, differences
for derivatives of first and second order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate as si
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError

RNG = np.random.default_rng(0)
T, Y = np.sort(RNG.uniform(0.0, 5.0, 9)), RNG.normal(size=9)
Q = np.array([0.7, 1.9, 3.3])
P, AT = RNG.uniform(0.0, 1.0, (9, 2)), RNG.uniform(0.3, 0.6, (4, 2))
X6, Y7, Z = np.arange(6.0), 0.5 * np.arange(7.0), RNG.normal(size=(6, 7))
ENDS = np.concatenate([[T[0]] * 4, [2.5], [T[-1]] * 4])
SMOOTH = si.UnivariateSpline(T, Y, s=0.1)
TABLE = si.RectBivariateSpline(X6, Y7, Z)
RADIAL = si.RBFInterpolator(P, Y, kernel="gaussian", epsilon=3.0, degree=1)
PLANES = si.LinearNDInterpolator(P, Y, fill_value=0.0)

CASES = {
    **{
        f"radial {k}": (lambda v, k=k: si.RBFInterpolator(P, v, kernel=k, epsilon=2.0, smoothing=0.01)(AT), Y)
        for k in ("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "gaussian")
    },
    "radial, columns": (lambda v: si.RBFInterpolator(P, np.stack([v, v**2], 1))(AT), Y),
    "radial, points": (lambda x: RADIAL(x), AT),
    **{f"interpolated {k}": (lambda v, k=k: si.InterpolatedUnivariateSpline(T, v, k=k)(Q), Y) for k in (1, 2, 3, 4, 5)},
    "univariate": (
        lambda v: si.UnivariateSpline(T, v, s=0).derivative()(Q) * si.UnivariateSpline(T, v, s=0).integral(T[1], T[5]),
        Y,
    ),
    "univariate, points": (lambda x: SMOOTH(x) + SMOOTH.derivative()(x) + SMOOTH.integral(T[0], x[0]), Q),
    "least squares": (lambda v: si.LSQUnivariateSpline(T, v, [2.0, 3.0])(Q), Y),
    "make_lsq_spline": (lambda v: si.make_lsq_spline(T, v, ENDS, w=np.linspace(1.0, 2.0, 9))(Q), Y),
    "splrep": (lambda v: si.splev(Q, si.splrep(T, v), der=1), Y),
    "table": (lambda z: si.RectBivariateSpline(X6, Y7, z, kx=2)([1.5, 2.2], [0.7, 1.1, 2.0]), Z),
    "table, points": (lambda x: TABLE.ev(x, 0.3 * x) + TABLE(x[0], x[1], dx=1)[0, 0], Q),
    "triangles": (lambda v: si.LinearNDInterpolator(P, np.stack([v, v**2], 1))(AT), Y),
    "nearest": (lambda v: si.NearestNDInterpolator(P, v)(AT) * v[:4], Y),
    "griddata": (lambda v: si.griddata((P[:, 0], P[:, 1]), v, (AT[:, 0], AT[:, 1])), Y),
    "griddata on a line": (lambda v: si.griddata(T, v, Q), Y),
    "barycentric": (lambda v: si.barycentric_interpolate(T, v, np.append(Q, T[2])), Y),
    "krogh": (lambda v: si.KroghInterpolator(T, v)(Q), Y),
    "krogh, points": (lambda x: si.krogh_interpolate(T, Y, x), Q),
}


def slope(f, x, v, h=1e-4):
    steps = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return sum(w / h * (f(x + k * h * v) - f(x - k * h * v)) for k, w in steps)


@pytest.mark.parametrize("name", sampled(CASES, 3, str))
def test_values_and_derivatives(name):
    f, x = CASES[name]
    v = np.random.default_rng(1).normal(size=x.shape)
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(rz.jvp(f, (x,), (v,))[1], slope(f, x, v), rtol=1e-6, atol=1e-6)
    loss = lambda x: np.sum(np.sin(f(x)))  # noqa: E731
    gradient = rz.grad(loss)
    np.testing.assert_allclose(np.sum(gradient(x) * v), slope(loss, x, v), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(rz.hvp(loss, (x,), (v,)), slope(gradient, x, v), rtol=1e-5, atol=1e-5)


def test_the_triangle_does_not_move():
    x, v = np.array([[0.5, 0.4], [0.45, 0.55], [5.0, 5.0]]), np.full((3, 2), 1e-6)
    found = rz.jvp(lambda x: PLANES(x), (x,), (v,))[1]
    np.testing.assert_allclose(found, PLANES(x + v) - PLANES(x), atol=1e-12)
    assert found[2] == 0.0


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda v: si.UnivariateSpline(T, v)(Q), "s=0"),
        (lambda v: si.RBFInterpolator(P, v, neighbors=4)(AT), "neighbors"),
        (lambda v: si.griddata(P, v, AT, method="cubic"), "method='linear'"),
        (lambda v: si.splrep(T, v, s=1.0)[1], "s=0"),
    ],
)
def test_what_is_not_known_says_what_is(f, words):
    with pytest.raises(TraceError, match=words):
        rz.grad(lambda v: np.sum(f(v)))(Y)
