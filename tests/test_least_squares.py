"""Gauss–Newton and Levenberg–Marquardt: known minima, SciPy's results, every way to solve for a step, and what happens when it goes wrong."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz.errors import SolveError, VectorError
from riesz.least_squares import Iteration
from riesz.terms.open import bridged

both = pytest.mark.parametrize("minimise", [rz.gauss_newton, rz.levenberg_marquardt])
methods = pytest.mark.parametrize("method", ["auto", "dense", "sparse", "iterative"])


def rosenbrock(x):
    return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


@both
@methods
def test_rosenbrock(minimise, method):
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), method=method)
    assert found.converged and found.iterations < 50
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-8)
    np.testing.assert_allclose(found.residual, 0.0, atol=1e-8)
    assert found.history[-1] < 1e-7 and found.history == sorted(found.history, reverse=True)
    assert "converged after" in repr(found) and "x = array" in repr(found)


T = np.linspace(0.0, 2.0, 40)
DATA = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.05 * np.sin(40.0 * T)


def curve(p):
    return p["a"] * np.exp(p["k"] * T) + p["c"] - DATA


@both
def test_curve_fit_with_a_dict(minimise):
    found = minimise(curve, {"a": 1.0, "k": -0.5, "c": 0.0})
    exact = scipy.optimize.least_squares(
        lambda v: v[0] * np.exp(v[1] * T) + v[2] - DATA, [1.0, -0.5, 0.0], xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert found.converged and isinstance(found.x["a"], float)
    np.testing.assert_allclose([found.x["a"], found.x["k"], found.x["c"]], exact.x, rtol=1e-6)
    np.testing.assert_allclose(found.cost, exact.cost, rtol=1e-12)
    np.testing.assert_allclose(found.jacobian.T(found.residual)["a"], 0.0, atol=1e-9)


class Line(NamedTuple):
    slope: float
    offset: np.ndarray


@both
def test_further_arguments_are_passed_on(minimise):
    t, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])
    found = minimise(lambda p, t, y: p.slope * t + p.offset[0] - y, Line(0.0, np.zeros(1)), t, y)
    assert found.converged and isinstance(found.x, Line)
    np.testing.assert_allclose([found.x.slope, found.x.offset[0]], [2.0, 1.0])


@both
def test_a_combinator(minimise):
    x, y = rz.proj(0), rz.proj(1)
    found = minimise((rz.fork(10.0 * (y - x * x), 1.0 - x)).at(rz.R * rz.R), (-1.2, 1.0))
    assert found.converged
    np.testing.assert_allclose(found.x, (1.0, 1.0))


@both
@pytest.mark.parametrize("method", ["dense", "iterative"])
@pytest.mark.parametrize("weight", [np.diag([1.0, 3.0]), np.array([[1.0, 0.5], [0.5, 3.0]])], ids=["scales", "matrix"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_inner_product_of_the_codomain_counts(minimise, method, weight, sparse):
    """min ‖x·(1, 1) − d‖² in a weighted norm is a weighted mean of d."""
    plain, data, ones = rz.R ** rz.seg(2), np.array([1.0, 5.0]), np.ones(2)
    given = np.diag(weight).copy() if weight[0, 1] == 0.0 else weight
    space = plain.weighted(scipy.sparse.csr_array(weight) if sparse else given)
    residual = bridged(plain, space) @ rz.contract_left(ones[:, None]).at(rz.R ** rz.seg(1)) - rz.const(data, space).at(
        rz.R ** rz.seg(1)
    )
    assert residual.codomain is space
    found = minimise(residual, np.zeros(1), method=method)
    assert found.converged
    np.testing.assert_allclose(found.x, (ones @ weight @ data) / (ones @ weight @ ones))
    np.testing.assert_allclose(found.history[0], space.norm(data))


# -- a small bundle adjustment ---------------------------------------------------------------

CAMERAS, POINTS = 5, 40
rng = np.random.default_rng(0)
CAMERA, POINT = [a.ravel() for a in np.meshgrid(np.arange(CAMERAS), np.arange(POINTS), indexing="ij")]
SEEN = (CAMERA + POINT) % 4 > 0  # every point by at least three
CAMERA, POINT = CAMERA[SEEN], POINT[SEEN]


def project(cameras, points):
    """Turned by the rotation vector (Rodrigues), moved by the translation, seen through a pinhole."""
    c, p = cameras[CAMERA], points[POINT]
    angle = np.sqrt(np.sum(c[:, :3] ** 2, axis=1, keepdims=True))
    k = c[:, :3] / angle
    q = (
        np.cos(angle) * p
        + np.sin(angle) * np.cross(k, p)
        + (1.0 - np.cos(angle)) * np.sum(k * p, axis=1, keepdims=True) * k
        + c[:, 3:]
    )
    return 2.0 * q[:, :2] / q[:, 2:]


TRUE = (
    np.concatenate(
        [0.5 * rng.standard_normal((CAMERAS, 3)), 0.1 * rng.standard_normal((CAMERAS, 3)) + [0.0, 0.0, 4.0]], axis=1
    ),
    rng.uniform(-1.0, 1.0, (POINTS, 3)),
)
OBSERVED = project(*TRUE) + 1e-3 * rng.standard_normal((len(CAMERA), 2))
START = (TRUE[0] + 0.02 * rng.standard_normal(TRUE[0].shape), TRUE[1] + 0.05 * rng.standard_normal(TRUE[1].shape))


def reprojection(x):
    cameras, points = x
    anchors = 0.1 * (cameras - TRUE[0])  # fixes the gauge
    return project(cameras, points) - OBSERVED, anchors


@pytest.mark.long
@methods
def test_bundle_adjustment_as_scipy_does_it(method):
    def flat(v):
        x = v[: CAMERAS * 6].reshape(CAMERAS, 6), v[CAMERAS * 6 :].reshape(POINTS, 3)
        return np.concatenate([part.ravel() for part in reprojection(x)])

    start = np.concatenate([a.ravel() for a in START])
    exact = scipy.optimize.least_squares(
        flat, start, jac=lambda v: rz.linearize(flat, v)[1].to_dense(), xtol=1e-15, ftol=1e-15, gtol=1e-12
    )
    found = rz.levenberg_marquardt(reprojection, START, method=method, max_iterations=100)
    assert found.converged, found
    np.testing.assert_allclose(found.cost, exact.cost, rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([a.ravel() for a in found.x]), exact.x, atol=1e-5)
    if method == "sparse":
        assert f"Schur complement of {POINTS} blocks of at most 3 × 3; the other 30 unknowns dense" in found.method


@pytest.mark.long
@pytest.mark.parametrize("minimise", [rz.gauss_newton, rz.levenberg_marquardt])
@pytest.mark.parametrize("method", ["dense", "sparse"])
def test_bundle_adjustment_without_a_gauge(minimise, method):
    """Rank-deficient: seven directions cost nothing."""
    found = minimise(lambda x: project(*x) - OBSERVED, START, method=method, max_iterations=100)
    assert found.converged, found
    assert found.cost < 0.5 * 1e-6 * OBSERVED.size


@pytest.mark.parametrize("minimise", [rz.gauss_newton, rz.levenberg_marquardt])
@methods
def test_rank_deficient(minimise, method):
    """x and y only appear as x + y; of all minimisers Gauss–Newton takes the nearest."""
    start = np.array([1.0, 0.0, 1.0, 7.0])
    found = minimise(
        lambda x: np.stack([x[0] + x[1] - 3.0, 2.0 * (x[0] + x[1]) - 6.0, x[2] ** 2 - 4.0]), start, method=method
    )
    assert found.converged, found
    np.testing.assert_allclose([found.x[0] + found.x[1], found.x[2], found.x[3]], [3.0, 2.0, 7.0], rtol=1e-7)
    np.testing.assert_allclose(found.x[0] - found.x[1], 1.0, atol=1e-6)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6), st.sampled_from(["dense", "sparse", "iterative"])
)
def test_linear_problems_take_one_step_of_gauss_newton(seed, m, n, method):
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.standard_normal((max(m, n), max(m, n))))
    A, b = q[:m, :n] + 3.0 * np.eye(m, n), rng.standard_normal(m)
    found = rz.gauss_newton(lambda x: A @ x - b, np.zeros(n), method=method)
    exact = np.linalg.lstsq(A, b)[0]
    assert found.converged
    np.testing.assert_allclose(A @ found.x, A @ exact, atol=1e-6)
    if method == "dense":
        assert found.iterations <= 2


def test_unknowns_that_do_not_matter_stay():
    found = rz.levenberg_marquardt(
        lambda x: x["a"] ** 2 - 2.0, {"a": np.array([1.0]), "unused": np.array([5.0, 6.0])}, method="dense"
    )
    assert found.converged
    np.testing.assert_allclose(found.x["a"] ** 2, 2.0)
    np.testing.assert_array_equal(found.x["unused"], [5.0, 6.0])


def test_units_of_the_unknowns_do_not_matter():
    """Columns of very different size: the damping is relative to them."""
    scale = np.array([1e-8, 1e8])
    plain = rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0]))
    scaled = rz.levenberg_marquardt(lambda x: rosenbrock(x * scale), np.array([-1.2, 1.0]) / scale)
    assert scaled.converged and scaled.iterations == plain.iterations
    np.testing.assert_allclose(scaled.x * scale, plain.x)


def test_float32_is_kept():
    found = rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0], np.float32))
    assert found.converged and found.x.dtype == np.float32
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-4)


def test_large_and_sparse():
    """A chain of 2,000 unknowns, each tied to the next: tridiagonal normal equations."""
    n = 2000
    data = np.sin(np.arange(n) / 100.0)

    def residual(x):
        return 10.0 * (x[1:] - x[:-1]), x**3 + x - data

    found = rz.levenberg_marquardt(residual, np.zeros(n), method="iterative", max_iterations=100)
    assert found.converged and found.method == "LSMR", found
    _, J = rz.linearize(residual, found.x)
    np.testing.assert_allclose(J.T(found.residual), 0.0, atol=1e-6)


@both
def test_normal_equations_by_their_structure(minimise):
    n = 60
    found = minimise(lambda x: (10.0 * (x[1:] - x[:-1]), x**3 + x - 1.0), np.zeros(n), method="sparse")
    assert found.converged and "normal equations, banded, 1 below and 1 above" in found.method
    np.testing.assert_allclose(found.x, 0.6823278038280193)


def test_a_large_sparse_jacobian_is_used_as_it_is(monkeypatch):
    n = 300
    monkeypatch.setattr(rz.LinearMap, "to_sparse", lambda J: scipy.sparse.csr_array(J.to_dense()), raising=False)
    found = rz.levenberg_marquardt(lambda x: (10.0 * (x[1:] - x[:-1]), x**3 + x - 1.0), np.zeros(n))
    assert found.converged and "normal equations, banded, 1 below and 1 above" in found.method
    np.testing.assert_allclose(found.x, 0.6823278038280193)
    small = rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0]))
    assert small.method == "dense QR"


# -- telling what happens -----------------------------------------------------------------------


def test_progress_prints_one_line_per_step(capsys):
    found = rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0]), progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == found.iterations
    assert all(all(word in line for word in ("cost", "step", "damping", " s")) for line in lines)
    assert sum("rejected" not in line for line in lines) == len(found.history) - 1
    rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0]))
    assert capsys.readouterr().out == ""


def test_progress_may_be_a_function():
    seen: list[Iteration] = []
    found = rz.gauss_newton(rosenbrock, np.array([-1.2, 1.0]), progress=seen.append)
    assert [s.number for s in seen] == list(range(1, found.iterations + 1))
    assert [np.sqrt(2.0 * s.cost) for s in seen if s.accepted] == found.history[1:]


def test_too_few_iterations():
    found = rz.levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0]), max_iterations=2)
    assert not found.converged and found.message == "max_iterations=2 are used up" and "NOT converged" in repr(found)


def test_a_start_at_the_minimum():
    found = rz.gauss_newton(rosenbrock, np.ones(2))
    assert found.converged and found.iterations == 0 and "residual" in found.message


def test_nan_at_the_start():
    with pytest.raises(SolveError, match="the residual at x0 is nan in component 1 of 2"):
        rz.levenberg_marquardt(lambda x: np.stack([x[0], np.log(x[1])]), np.array([1.0, -1.0]))


@both
def test_steps_into_nan_are_rejected(minimise):
    """√ is not defined where the first full step leads."""
    seen: list[Iteration] = []
    found = minimise(lambda x: np.sqrt(x) - 0.1, np.array([1.0]), progress=seen.append)
    assert found.converged and not all(s.accepted for s in seen)
    np.testing.assert_allclose(found.x, 0.01)


@both
def test_a_derivative_that_is_not_finite(minimise):
    found = minimise(lambda x: np.sqrt(x) - 1.0, np.array([0.0]))
    assert not found.converged and "derivative of the residual is not finite" in found.message


@both
def test_a_wrong_derivative_does_not_converge(minimise):
    wrong = rz.custom_derivative(lambda x: x**2)
    wrong.derivative(lambda x: lambda dx: -2.0 * x * dx)

    found = minimise(lambda x: wrong(x) - 3.0, np.array([1.0]))
    assert not found.converged and found.history == found.history[:1]


def test_what_is_refused():
    with pytest.raises(VectorError, match="method='magic'"):
        rz.gauss_newton(rosenbrock, np.ones(2), method="magic")
    with pytest.raises(VectorError, match="damping=0"):
        rz.levenberg_marquardt(rosenbrock, np.ones(2), damping=0.0)
    with pytest.raises(VectorError, match="one argument"):
        rz.gauss_newton(rz.sin, 1.0, 2.0)


# -- SciPy's optimisers with riesz's derivatives -----------------------------------------------------


@pytest.mark.parametrize("form", ["operator", "dense", "sparse"])
def test_scipy_least_squares(form):
    def jac(x):
        J = rz.linearize(rosenbrock, x)[1]
        return (
            J.as_operator()
            if form == "operator"
            else J.to_dense()
            if form == "dense"
            else scipy.sparse.csr_array(J.to_dense())
        )

    found = scipy.optimize.least_squares(rosenbrock, np.array([-1.2, 1.0]), jac=jac)
    np.testing.assert_allclose(found.x, 1.0)


def objective(x):
    return 0.5 * np.sum(rosenbrock(x) ** 2)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("BFGS", {}),
        ("Newton-CG", {"hess": lambda x: rz.hessian(objective)(x).as_operator()}),
        ("Newton-CG", {"hessp": lambda x, p: rz.hvp(objective, (x,), (p,))}),
        ("trust-krylov", {"hessp": lambda x, p: rz.hvp(objective, (x,), (p,))}),
        ("trust-exact", {"hess": lambda x: rz.hessian(objective)(x).to_dense()}),
        ("trust-constr", {"hess": lambda x: rz.hessian(objective)(x).as_operator()}),
    ],
)
def test_scipy_minimize(method, options):
    found = scipy.optimize.minimize(objective, np.array([-1.2, 1.0]), jac=rz.grad(objective), method=method, **options)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
