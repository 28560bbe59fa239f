"""Minima under bounds and constraints, and least-squares fits, with traced parameters: against closed forms and
differences of SciPy's results."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate as integrate
import scipy.optimize as optimize
from numpy.testing import assert_allclose

import riesz as rz
from riesz.errors import SolveError

P = np.array([1.0, 0.5])
TIGHT = {"ftol": 1e-15}


def differences(f, p, h=1e-3):
    """∂f by differences of fourth order."""
    d = lambda e: (8 * (f(p + h * e) - f(p - h * e)) - f(p + 2 * h * e) + f(p - 2 * h * e)) / (12 * h)  # noqa: E731
    return np.stack([np.asarray(d(e)) for e in np.eye(len(p))], axis=-1)


def inequality(p):
    bound = {"type": "ineq", "fun": lambda x: 0.3 * p[1] + 0.5 - x[0] - x[1]}
    return optimize.minimize(lambda x: np.sum((x - p) ** 2) + x[0] * x[1] / 2, np.zeros(2), constraints=bound).x


def inactive(p):
    far = {"type": "ineq", "fun": lambda x: 10.0 * p[0] - x[0] - x[1]}
    return optimize.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(2), constraints=far).x


def everything(p):
    rows = [
        {"type": "ineq", "fun": lambda x: 1 - x[0] ** 2 - x[2] * p[0]},
        {"type": "eq", "fun": lambda x: x[3] + x[1] - p[1]},
    ]
    aim = lambda x: np.sum((x - np.concatenate([p, p])) ** 2) + x[0] ** 4  # noqa: E731
    bounds = [(0, None), (0.7, 2), (None, None), (-1, 1)]
    return optimize.minimize(aim, np.full(4, 0.2), bounds=bounds, constraints=rows, options=TIGHT).x


def objects(p):
    disc = optimize.NonlinearConstraint(lambda x: x[0] ** 2 + p[0] * x[1] ** 2, -np.inf, 0.5)
    strip = optimize.LinearConstraint([[1.0, 1.0]], -1, 4)
    return optimize.minimize(
        lambda x: np.sum((x - [1.0, 0.5]) ** 2), np.zeros(2), constraints=[disc, strip], method="SLSQP", options=TIGHT
    ).x


def bounds(p):
    sides = optimize.Bounds([0.0, 0.0], [0.4, 1.0])
    return optimize.minimize(lambda x: np.sum((x - p) ** 2) + x[0] * x[1], np.zeros(2), bounds=sides).x


def moving_bound(p):
    return optimize.minimize(lambda x: np.sum((x - 3.0) ** 2) + x[0] * x[1], np.zeros(2), bounds=[(0, p[0]), (0, 1)]).x


@pytest.mark.parametrize("f", [inequality, inactive, everything, objects, bounds, moving_bound])
def test_minima_under_constraints(f):
    plain, traced = f(P), rz.function(f)(P)
    assert_allclose(traced, plain, atol=1e-6)
    exact = lambda p: np.asarray(rz.function(f)(p))  # noqa: E731  # SciPy's results, polished
    assert_allclose(rz.jacobian(f)(P).to_dense(), differences(exact, P), atol=1e-7)
    total = lambda p: np.sum(np.sin(f(p)))  # noqa: E731
    assert_allclose(rz.hessian(total)(P).to_dense(), differences(rz.grad(total), P), atol=1e-6)


def test_a_projection_has_its_closed_form():
    def onto_the_disc(p):
        disc = {"type": "ineq", "fun": lambda x: 1.0 - x @ x}
        return optimize.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(3), constraints=disc).x

    p = np.array([2.0, 1.0, -0.5])
    assert_allclose(
        rz.jacobian(onto_the_disc)(p).to_dense(), rz.jacobian(lambda p: p / np.sqrt(p @ p))(p).to_dense(), atol=1e-9
    )
    inside = np.array([0.2, 0.1, 0.0])
    assert_allclose(rz.jacobian(onto_the_disc)(inside).to_dense(), np.eye(3), atol=1e-9)


def test_what_cannot_be_met_is_an_error():
    both = [{"type": "ineq", "fun": lambda x: x[0] - 2.0}, {"type": "ineq", "fun": lambda x: 1.0 - x[0]}]
    f = lambda p: optimize.minimize(lambda x: np.sum((x - p) ** 2), np.zeros(1), constraints=both).x  # noqa: E731
    with pytest.raises(SolveError, match=r"minimize"):
        rz.jacobian(f)(np.array([0.5]))


A, B = np.random.default_rng(0).normal(size=(6, 4)), np.random.default_rng(1).normal(size=6)
T = np.linspace(0, 1, 9)
FITS = {
    "least_squares": lambda p: optimize.least_squares(lambda x: [x[0] - p[0], x[1] * p[1] - 1, x[0] * x[1] - 0.3], [1, 1]).x,
    "bounds": lambda p: optimize.least_squares(
        lambda x: np.array([x[0] - p[0], x[1] * p[1] - 1, x[0] * x[1] - 0.3]), [0.5, 0.5], bounds=([0, 0], [0.7, 5])
    ).x,
    "leastsq": lambda p: optimize.leastsq(lambda x, q: [x[0] - q, x[1] * p[1] - 1, x[0] * x[1] - 1], [1, 1], (p[0],))[0],
    "curve_fit": lambda p: optimize.curve_fit(lambda t, a, b: a * np.exp(b * t), T, p[0] + np.sin(5 * p[1] * T))[0],
    "covariance": lambda p: optimize.curve_fit(
        lambda t, a, b: a * np.exp(b * t), T, p[0] + np.sin(5 * p[1] * T), [1.0, 0.1], 1 + p[0] * T
    )[1],
    "nnls": lambda p: optimize.nnls(p[0] * A, B + p[1])[0],
    "lsq_linear": lambda p: optimize.lsq_linear(p[0] * A, B + p[1], (-0.2, 0.3)).x,
    "fmin_bfgs": lambda p: optimize.fmin_bfgs(lambda x: np.sum((x - p) ** 2) + x[0] ** 4, np.zeros(2), disp=0),
    "fmin": lambda p: optimize.fmin(lambda x: np.sum((x - p) ** 2) + x[0] ** 4, np.zeros(2), disp=0),
    "fminbound": lambda p: optimize.fminbound(lambda x: (x - p[0]) ** 2 + p[1] * np.exp(x), -3, 3),
    "brent": lambda p: optimize.brent(lambda x: (x - p[0]) ** 2 + p[1] * np.exp(x)),
    "broyden1": lambda p: optimize.broyden1(lambda x: x**3 + x - p, np.zeros(2), f_tol=1e-9),
    "anderson": lambda p: optimize.anderson(lambda x: x**3 + x - p, np.zeros(2), f_tol=1e-9),
    "differential_evolution": lambda p: optimize.differential_evolution(
        lambda x: np.sum((x - p) ** 2) + x[0] ** 4, [(-2, 2), (-2, 2)], seed=1, maxiter=30
    ).x,
    "dblquad": lambda p: integrate.dblquad(lambda y, x: np.exp(-p[0] * x * y) * p[1], 0, p[0], 0, lambda x: 1 + x)[0],
    "nquad": lambda p: integrate.nquad(lambda x, y: np.exp(-p[0] * x * y) * p[1], [(0, p[0]), (0, 1)])[0],
    "quad_vec": lambda p: integrate.quad_vec(lambda t: p * np.sin(t * p[0]), 0, p[1])[0],
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_fits_and_kin(name):
    f = FITS[name]
    assert_allclose(rz.function(f)(P), f(P), rtol=1e-3, atol=1e-4)
    exact = lambda p: np.asarray(rz.function(f)(p))  # noqa: E731
    found = rz.jacobian(f)(P).to_dense()
    assert_allclose(found, differences(exact, P).reshape(found.shape), rtol=1e-6, atol=1e-7)
    if name in ("dblquad", "nquad"):
        return  # second derivatives of nested integrals take seconds
    v = np.array([0.3, -0.7])
    total = lambda p: np.sum(np.sin(f(p)))  # noqa: E731
    assert_allclose(rz.hvp(total)(P, v), differences(rz.grad(total), P) @ v, rtol=1e-4, atol=1e-5)
