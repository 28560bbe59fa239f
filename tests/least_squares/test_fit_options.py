"""Losses, bounds, weights, equations, fixed parts, scales, callbacks and covariances of fits: SciPy and dense algebra as references."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize

import riesz as rz
from riesz.errors import SolveError, VectorError
from riesz.least_squares.robust_losses import LOSSES

rng = np.random.default_rng(3)
T = np.linspace(0.0, 3.0, 60)
DATA = 2.0 * np.exp(-1.1 * T) + 0.3 + 0.02 * rng.standard_normal(60)
DATA[::9] += 1.5
START = {"a": 1.0, "k": 1.0, "c": 0.0}


def curve(p, t=T, y=DATA):
    return p["a"] * np.exp(-p["k"] * t) + p["c"] - y


def flat(v):
    return curve({"a": v[0], "k": v[1], "c": v[2]})


def values(p):
    return np.array([p["a"], p["k"], p["c"]])


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
@pytest.mark.parametrize("minimise", [rz.levenberg_marquardt, rz.gauss_newton])
def test_losses_as_in_scipy(loss, minimise):
    exact = scipy.optimize.least_squares(
        flat, [1.9, 1.0, 0.2], loss=loss, f_scale=0.1, xtol=1e-15, ftol=1e-15, gtol=1e-12
    )
    start = dict(zip("akc", exact.x * 1.01, strict=True)) if loss == "arctan" else START
    found = minimise(curve, start, loss=loss, loss_scale=0.1, max_iterations=300)
    assert found.converged, found
    np.testing.assert_allclose(found.cost, exact.cost, rtol=1e-8)
    np.testing.assert_allclose(values(found.x), exact.x, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "linear"])
def test_the_derivatives_of_losses(name):
    s, h = np.array([0.0, 0.3, 0.9, 1.3, 20.0]), 1e-6
    rho = LOSSES[name]
    _value, first, second = rho(s + h)
    np.testing.assert_allclose((rho(s + 2 * h)[0] - rho(s)[0]) / (2 * h), first, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((rho(s + 2 * h)[1] - rho(s)[1]) / (2 * h), second, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(rho(np.zeros(1))[:2], [[0.0], [1.0]])


def test_a_loss_of_ones_own_is_differentiated():
    given = rz.levenberg_marquardt(curve, START, loss="cauchy", loss_scale=0.1, max_iterations=300)
    for own in (np.log1p, lambda s: np.stack(LOSSES["cauchy"](s))):
        found = rz.levenberg_marquardt(curve, START, loss=own, loss_scale=0.1, max_iterations=300)
        np.testing.assert_allclose(values(found.x), values(given.x), rtol=1e-9)


def test_rows_may_be_one_observation_and_parts_have_losses_of_their_own():
    """The mean of points with an outlier; the cost is a sum over points of ρ of the squared distance."""
    points = rng.standard_normal((30, 2))
    points[0] = 50.0

    def parts(x):
        return {"far": x - points, "near": 0.1 * x}

    found = rz.levenberg_marquardt(
        parts, np.zeros(2), loss={"far": "geman_mcclure"}, loss_axis=-1, loss_scale=2.0, max_iterations=200
    )

    def cost(x):
        s = np.sum((x - points) ** 2, axis=1) / 4.0
        return 2.0 * np.sum(s / (1 + s)) + 0.5 * np.sum((0.1 * x) ** 2)

    exact = scipy.optimize.minimize(cost, np.zeros(2), tol=1e-12)
    assert found.converged
    np.testing.assert_allclose(found.cost, cost(found.x), rtol=1e-12)
    np.testing.assert_allclose(found.x, exact.x, atol=1e-5)


@pytest.mark.parametrize("method", ["auto", "sparse", "iterative"])
def test_bounds_as_in_scipy(method):
    lower, upper = [0.0, 0.0, 0.35], [1.5, np.inf, 1.0]
    exact = scipy.optimize.least_squares(
        flat, [1.0, 1.0, 0.5], bounds=(lower, upper), xtol=1e-15, ftol=1e-15, gtol=1e-12
    )
    sides = [dict(zip("akc", side, strict=True)) for side in (lower, upper)]
    found = rz.levenberg_marquardt(curve, START, bounds=sides, method=method, max_iterations=200)
    assert found.converged, found
    np.testing.assert_allclose(values(found.x), exact.x, rtol=1e-6)
    assert found.x["a"] <= 1.5 and found.x["c"] >= 0.35
    np.testing.assert_allclose(found.cost, exact.cost, rtol=1e-9)


@pytest.mark.parametrize("minimise", [rz.levenberg_marquardt, rz.gauss_newton])
def test_bounds_that_steps_push_against_though_the_gradient_does_not(minimise):
    """A step may leave through one bound and end at another: what is cut may lead uphill."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 4.0, 40)
    for _ in range(40):
        p = rng.uniform([0.5, 0.3, 2.0, -1.0], [3.0, 2.0, 5.0, 1.0])
        y = p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) + 0.05 * rng.standard_normal(40)
        lower = p - rng.uniform(-0.1, 0.4, 4)
        upper = lower + rng.uniform(0.05, 0.6, 4)
        start = rng.uniform(lower, upper)
        found = minimise(wave, start, t, y, bounds=(lower, upper))
        slope = found.jacobian.T(found.residual)
        held = ((found.x <= lower) & (slope > 0)) | ((found.x >= upper) & (slope < 0))
        assert found.converged, found
        np.testing.assert_allclose(np.where(held, 0.0, slope), 0.0, atol=1e-5)


def wave(p, t, y):
    return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) - y


def test_one_bound_for_all_and_scipys_bounds():
    A, b = rng.standard_normal((30, 8)), rng.standard_normal(30)
    exact = scipy.optimize.lsq_linear(A, b, (0.0, np.inf), tol=1e-14)
    for bounds in ((0.0, None), scipy.optimize.Bounds(np.zeros(8), np.inf)):
        found = rz.levenberg_marquardt(lambda x: A @ x - b, np.ones(8), bounds=bounds)
        assert found.converged, found
        np.testing.assert_allclose(found.x, exact.x, atol=1e-8)


def test_weights_and_information_matrices():
    A, b = rng.standard_normal((20, 2, 3)), rng.standard_normal((20, 2))
    r = lambda x: A @ x - b  # noqa: E731
    w = rng.uniform(0.5, 2.0, (20, 2))
    M = rng.standard_normal((20, 2, 2))
    W = M @ M.transpose(0, 2, 1) + np.eye(2)
    for given, omega in (({"weights": w}, w[:, :, None] * np.eye(2)), ({"information": W}, W)):
        N, g = np.einsum("nik,nij,njl->kl", A, omega, A), np.einsum("nik,nij,nj->k", A, omega, b)
        found = rz.levenberg_marquardt(r, np.zeros(3), **given)
        np.testing.assert_allclose(found.x, np.linalg.solve(N, g), rtol=1e-8)
        np.testing.assert_allclose(found.covariance(), np.linalg.inv(N), rtol=1e-8)
    rows = rz.levenberg_marquardt(r, np.zeros(3), weights=w[:, 0])
    np.testing.assert_allclose(
        rows.x, rz.levenberg_marquardt(r, np.zeros(3), weights=w[:, :1] * np.ones(2)).x, rtol=1e-9
    )


def test_equations_hold_and_have_multipliers():
    """The nearest point of a circle and a plane; SciPy's SLSQP finds the same."""
    target = np.array([2.0, 1.0, 0.5])

    def equations(x):
        return np.sum(x**2) - 1.0, x[0] + x[1] - x[2]

    found = rz.levenberg_marquardt(lambda x: x - target, np.array([1.0, 0.0, 0.5]), equality=equations)
    exact = scipy.optimize.minimize(
        lambda x: 0.5 * np.sum((x - target) ** 2),
        [1.0, 0.0, 0.5],
        constraints={"type": "eq", "fun": lambda x: np.array(equations(x))},
        tol=1e-14,
    )
    assert found.converged, found
    np.testing.assert_allclose(found.x, exact.x, atol=1e-6)
    np.testing.assert_allclose(np.stack(equations(found.x)), 0.0, atol=1e-8)
    J = np.stack([2.0 * found.x, [1.0, 1.0, -1.0]])
    np.testing.assert_allclose(found.x - target + J.T @ found.multipliers, 0.0, atol=1e-6)


def test_equations_that_contradict_each_other_are_told():
    found = rz.levenberg_marquardt(
        lambda x: x, np.ones(1), equality=lambda x: np.stack([x[0] - 1.0, x[0] - 2.0]), max_iterations=400
    )
    assert not found.converged and "the equations are off" in found.message


class Pose(NamedTuple):
    turn: float
    shift: np.ndarray


def test_fixed_parts_and_masks():
    seen = rng.standard_normal((6, 2))
    model = lambda p: p.turn * seen + p.shift  # noqa: E731
    data = model(Pose(2.0, np.array([1.0, -1.0])))
    r = lambda p: model(p) - data + 0.1 * seen[::-1]  # noqa: E731
    for fixed, changed in (
        (Pose(True, None), [False, True, True]),
        (Pose(False, np.array([True, False])), [True, False, True]),
        ({"shift": True}, [True, False, False]),
    ):
        start = Pose(1.5, np.array([0.5, 0.25]))
        found = rz.levenberg_marquardt(r, start, fixed=fixed)
        assert found.converged and isinstance(found.x, Pose)
        assert [found.x.turn != 1.5, *(found.x.shift != start.shift)] == changed
        moved = np.flatnonzero(changed)
        A = rz.jacobian(r)(found.x).to_dense()[:, moved]
        np.testing.assert_allclose(A.T @ np.ravel(found.residual), 0.0, atol=1e-9)
        errors = found.standard_errors
        variance = 2.0 * found.cost / (12 - len(moved))
        expected = np.zeros(3)
        expected[moved] = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
        np.testing.assert_allclose([errors.turn, *errors.shift], expected, rtol=1e-7)


def test_covariance_as_curve_fit_has_it():
    clean = 2.0 * np.exp(-1.1 * T) + 0.3 + 0.02 * np.cos(40.0 * T)
    x, cov = scipy.optimize.curve_fit(lambda t, a, k, c: a * np.exp(-k * t) + c, T, clean, [1.0, 1.0, 0.0])
    found = rz.levenberg_marquardt(curve, START, T, clean)
    np.testing.assert_allclose(values(found.x), x, rtol=1e-6)
    np.testing.assert_allclose(found.covariance(), cov, rtol=1e-3)
    np.testing.assert_allclose(found.covariance("a", "c"), cov[:1, 2:], rtol=1e-3)
    np.testing.assert_allclose(values(found.standard_errors), np.sqrt(np.diag(cov)), rtol=1e-4)
    assert found.table().splitlines()[0].split() == ["unknown", "estimate", "std.", "error"]
    assert "x['k']" in found.table() and "estimates" in str(rz.display(found).html())
    with pytest.raises(VectorError, match="no part 'z'; its parts are"):
        found.covariance("z")


def test_what_is_not_determined_is_told():
    found = rz.levenberg_marquardt(
        lambda x: np.stack([x["a"] + x["b"][0] - 3.0, x["b"][1] - 1.0]), {"a": 0.0, "b": np.zeros(3)}
    )
    assert found.converged and "J has rank 2, there are 4 unknowns" in repr(found)
    with pytest.raises(SolveError, match="is not determined"):
        found.covariance()
    assert "nan" in found.table()


def test_arguments_are_not_traced_again():
    runs = []

    def r(x, t, y):
        if type(x) is not np.ndarray:
            runs.append(1)
        return x[0] * np.exp(x[1] * t) - y

    for k in range(4):
        y = (k + 1.0) * np.exp(-0.5 * T)
        found = rz.levenberg_marquardt(r, np.array([1.0, -0.2]), T, y)
        np.testing.assert_allclose(found.x, [k + 1.0, -0.5], rtol=1e-6)
    assert len(runs) <= 1


def test_a_fit_begins_where_another_ended():
    first = rz.levenberg_marquardt(curve, START)
    again = rz.levenberg_marquardt(curve, first)
    assert again.iterations <= 2 and abs(again.cost - first.cost) <= 1e-12 * first.cost
    assert rz.gauss_newton(curve, first).converged


def test_callbacks_see_x_and_may_stop():
    seen = []

    def watch(s):
        seen.append((s.cost, s.x["a"]))
        return len(seen) == 2

    found = rz.levenberg_marquardt(curve, START, callback=watch)
    assert len(seen) == 2 and found.message == "the callback asked to stop" and found.x["a"] == seen[-1][1]


def test_x_scale_takes_the_place_of_column_norms():
    found = rz.levenberg_marquardt(curve, START, x_scale={"a": 1.0, "k": 10.0, "c": 0.1})
    np.testing.assert_allclose(values(found.x), values(rz.levenberg_marquardt(curve, START).x), rtol=1e-6)
    assert rz.levenberg_marquardt(curve, START, x_scale=2.0).converged


def test_whole_numbers_are_a_start():
    assert rz.levenberg_marquardt(lambda x: x - np.array([0.5, 1.5]), np.array([0, 1])).x.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "l2"}, "expected one of linear, soft_l1"),
        ({"loss_scale": 0.0}, "loss_scale=0.0: a positive number"),
        ({"loss_axis": 0}, "loss_axis=0"),
        ({"bounds": 1.0}, "a pair is due"),
        ({"bounds": (1.0, 0.0)}, "the lower one is above"),
        ({"fixed": {"z": True}}, "names 'z'; the unknowns are 'a', 'k', 'c'"),
        ({"fixed": {"a": 1.0}}, "truth values are due"),
        ({"x_scale": -1.0}, "positive numbers are due"),
        ({"x_scale": "auto"}, "'jac'"),
        ({"weights": -np.ones(60)}, "at least 0"),
        ({"information": np.ones((2, 3))}, "symmetric matrices"),
        ({"manifold": {"a": 3.0}}, "no methods tangent"),
    ],
)
def test_what_does_not_fit_is_refused(options, match):
    with pytest.raises(VectorError, match=match):
        rz.levenberg_marquardt(curve, START, **options)
