"""Many small fits: each against SciPy, alone and together, with damping and convergence of its own."""

import numpy as np
import pytest
import scipy.optimize

import riesz as rz
from riesz.errors import SpaceError, VectorError

rng = np.random.default_rng(0)
N, T = 40, np.linspace(0.0, 3.0, 12)
TRUE = np.stack([rng.uniform(1, 3, N), rng.uniform(0.5, 2, N), rng.uniform(-0.5, 0.5, N)], axis=1)
DATA = TRUE[:, :1] * np.exp(-TRUE[:, 1:2] * T) + TRUE[:, 2:] + 0.02 * rng.standard_normal((N, len(T)))
START = np.tile([1.0, 1.0, 0.0], (N, 1))


def one(p, y):
    return p[0] * np.exp(-p[1] * T) + p[2] - y


EXACT = [
    scipy.optimize.least_squares(lambda p, y=y: one(p, y), p, xtol=1e-15, ftol=1e-15, gtol=1e-13)
    for p, y in zip(START, DATA, strict=True)
]


@pytest.mark.parametrize("fit", [rz.levenberg_marquardt, rz.gauss_newton])
def test_fits_over_an_axis(fit):
    found = rz.vmap(fit, (None, 0, 0))(one, START, DATA)
    assert len(found) == N and found.converged.all() and "40 of 40 fits converged" in repr(found)
    np.testing.assert_allclose(found.costs, [e.cost for e in EXACT], rtol=1e-9)
    np.testing.assert_allclose(found.x, [e.x for e in EXACT], rtol=1e-5)
    np.testing.assert_allclose(found.residual, [one(p, y) for p, y in zip(found.x, DATA, strict=True)], atol=1e-14)
    alone = rz.levenberg_marquardt(one, START[3], DATA[3])
    np.testing.assert_allclose(found.covariance()[3], alone.covariance(), rtol=1e-4)
    np.testing.assert_allclose(found.standard_errors[3], alone.standard_errors, rtol=1e-4)
    assert "fits converged" in rz.display(found).html()


def test_fits_that_do_not_determine_their_unknowns_are_told():
    fit = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))
    found = fit(lambda p, y: (p[0] + p[1]) * np.exp(-p[2] * T) - y, START, DATA)
    assert not found.determined.any() and np.isnan(found.covariance()).all()
    assert "40 of them do not determine all their unknowns" in repr(found)
    assert "do not determine" in rz.display(found).html()
    far = fit(lambda p, y: np.stack([p[0] - y[0], p[1] / (1.0 + np.exp(p[2] + 100.0)) - y[1]]), START, DATA[:, :2])
    assert not far.determined.any()  # the last is of no influence, by far
    found = fit(lambda p, y: one(p * [1e8, 1e-7, 1.0], y), START / [1e8, 1e-7, 1.0], DATA)
    assert found.determined.all() and found.converged.all()
    by = np.array([1e8, 1e-7, 1.0])
    plain = fit(one, START, DATA)
    np.testing.assert_allclose(found.covariance() * np.outer(by, by), plain.covariance(), rtol=1e-3, atol=1e-12)


S = np.linspace(-6.0, 6.0, 40)


def curves(kind):
    """A model, its parameters, and starts from which few of the undamped fits find their way."""
    g, side = np.random.default_rng(1), np.where(np.arange(N) % 2, 1.0, -1.0)
    if kind == "logistic":
        true, start = [g.uniform(5, 20, N), g.uniform(0.5, 2, N), g.uniform(-2, 2, N)], [1.0, 0.2, -4.0]
        return lambda p, s: p[0] / (1.0 + np.exp(-p[1] * (s - p[2]))), true, start
    if kind == "peak":
        true = [g.uniform(1, 5, N), g.uniform(-1, 1, N), g.uniform(0.5, 1.5, N)]
        return lambda p, s: p[0] * np.exp(-0.5 * ((s - p[1]) / p[2]) ** 2), true, [1.0, true[1] + 3.3 * side, 1.0]
    true = [g.uniform(5, 20, N), g.uniform(3, 10, N), g.uniform(0.4, 1.2, N)]
    return lambda p, s: p[0] * np.exp(-p[1] * np.exp(-p[2] * (s + 6.0))), true, [1.0, 1.0, 0.2]


@pytest.mark.parametrize("units", [[1.0, 1.0, 1.0], [1e4, 1e-3, 1e2]])
@pytest.mark.parametrize("kind", ["logistic", "peak", "gompertz"])
def test_poor_starts_of_many_fits_find_their_minimum(kind, units):
    model, true, start = curves(kind)
    y = np.stack([model(p, S) for p in np.transpose(true)])
    y += 0.02 * np.random.default_rng(2).standard_normal(y.shape)
    start = np.stack([np.broadcast_to(a, N) for a in start], axis=1) / units
    fit = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))
    found = fit(lambda p, y: model([p[i] * u for i, u in enumerate(units)], S) - y, start, y)
    least = 0.5 * np.sum((y - np.stack([model(p, S) for p in np.transpose(true)])) ** 2, axis=1)
    reached = found.costs <= least
    assert np.count_nonzero(reached) >= 38 and found.converged[reached].all() and found.determined[reached].all()


def test_trees_other_axes_and_shared_arguments():
    def r(p, t, y):
        return p["a"] * np.exp(-p["k"] * t) + p["c"][0] - y, 1e-9 * p["c"]

    start = {"a": START[:, 0], "k": START[:, 1], "c": START[:, 2:]}
    found = rz.vmap(rz.levenberg_marquardt, in_axes=(0, None, 1))(r, start, T, DATA.T)
    assert found.converged.all() and found.x["a"].shape == (N,) and found.x["c"].shape == (N, 1)
    np.testing.assert_allclose(found.costs, [e.cost for e in EXACT], rtol=1e-9)
    assert found.standard_errors["c"].shape == (N, 1)


def test_a_residual_that_falls_apart_is_solved_part_by_part():
    def all_of_them(p):
        return p["ab"][:, :1] * np.exp(-p["ab"][:, 1:] * T) + p["c"][:, None] - DATA

    found = rz.levenberg_marquardt(all_of_them, {"ab": START[:, :2], "c": START[:, 2]})
    assert found.converged and found.converged_each.all(), found
    assert found.method.startswith("40 separate problems of 3 unknowns and 12 residuals")
    np.testing.assert_allclose(found.costs, [e.cost for e in EXACT], rtol=1e-9)
    np.testing.assert_allclose(found.jacobian.T(found.residual)["c"], 0.0, atol=1e-6)
    assert found.covariance("ab").shape == (N, 2, 2)


def test_what_is_tied_together_is_solved_as_a_whole():
    def tied(p):
        return p[:, :1] * np.exp(-p[:, 1:2] * T) + p[:, 2:] - DATA, p[1:, 2] - p[:-1, 2]

    assert "separate" not in rz.levenberg_marquardt(tied, START).method


def test_each_stops_by_itself():
    """One has no minimum, one is not finite; the others do not mind."""
    start = np.ones((20, 1))
    kind = np.arange(20.0)

    def r(x, k):
        return np.stack([np.where(k == 3.0, np.exp(-x[0]), x[0] ** 2 - k), np.where(k == 5.0, np.log(x[0] - 2.0), 0.0)])

    found = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))(r, start, kind, max_iterations=60)
    fine = (kind != 3) & (kind != 5)
    assert found.converged[fine].all() and not found.converged[5]
    np.testing.assert_allclose(found.x[fine, 0] ** 2, kind[fine], atol=1e-6)
    assert np.isnan(found.covariance()[0]).all() or found.x[0, 0] != 0.0


def test_rotations_beside_each_other():
    m = rz.manifolds
    true, seen = m.SO3.random(30, seed=1, matrices=False), rng.standard_normal((30, 6, 3))
    known = m.quaternion_rotate(true[:, None], seen)
    start = m.SO3.retract(true, 1.5 * m.Sphere.random(30, 3, seed=2))
    found = rz.vmap(rz.levenberg_marquardt, (None, 0, 0, 0))(
        lambda q, a, b: m.quaternion_rotate(q, a) - b, start, seen, known, manifold=m.SO3
    )
    assert found.converged.all() and found.x.shape == (30, 4) and found.costs.max() < 1e-18
    assert found.standard_errors.shape == (30, 3)


@pytest.mark.parametrize("k", [1, 2, 5, 12, 15])
def test_small_systems(k):
    from riesz.least_squares.separate_fits import solved

    A = rng.standard_normal((7, k, k + 2))
    A = A @ A.transpose(0, 2, 1)
    b = rng.standard_normal((7, k))
    A[3] = -np.eye(k)
    with np.errstate(all="ignore"):
        x = solved(A, b)
    good = np.arange(7) != 3
    np.testing.assert_allclose((A[good] @ x[good, :, None])[..., 0], b[good], atol=1e-7)
    assert np.isnan(x[3]).any()


def test_captured_arrays_are_those_of_now():
    shift = np.zeros(3)

    def r(p, y):
        return p - y - shift

    fit = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))
    data = rng.standard_normal((20, 3))
    np.testing.assert_allclose(fit(r, np.zeros((20, 3)), data).x, data)
    shift = np.ones(3)
    np.testing.assert_allclose(fit(r, np.zeros((20, 3)), data).x, data + 1.0)
    shift[:] = 2.0
    np.testing.assert_allclose(fit(r, np.zeros((20, 3)), data).x, data + 2.0)


def test_functions_that_the_residual_calls_are_those_of_now():
    calls = {"model": np.sin}
    fit = rz.vmap(rz.levenberg_marquardt, (None, 0))

    def found():
        return fit(lambda p: calls["model"](p) - 0.5, np.full((20, 2), 0.4)).x

    for model, due in ((np.sin, np.arcsin(0.5)), (np.exp, np.log(0.5)), (np.sin, np.arcsin(0.5))):
        calls["model"] = model
        for _ in range(2):
            np.testing.assert_allclose(found(), due, atol=1e-8)


def test_what_is_refused():
    with pytest.raises(VectorError, match=r"rz\.vmap of a fit takes no bounds"):
        rz.vmap(rz.levenberg_marquardt, (None, 0, 0))(one, START, DATA, bounds=(0, 1))
    with pytest.raises(SpaceError, match="names 2 arguments"):
        rz.vmap(rz.levenberg_marquardt, (0, 0))(one, START, T, DATA)
    with pytest.raises(SpaceError, match="x0 needs an axis"):
        rz.vmap(rz.levenberg_marquardt, (None, None, 0))(one, START, DATA)
    with pytest.raises(SpaceError, match="out_axes"):
        rz.vmap(rz.levenberg_marquardt, 0, 1)


def test_those_that_take_longer_go_on_by_themselves():
    n = 1500
    target = np.linspace(0.5, 3.0, n)
    start = np.where(np.arange(n) % 50 == 0, 30.0, target + 0.01)[:, None]
    found = rz.vmap(rz.levenberg_marquardt, (None, 0, 0))(lambda x, y: np.sinh(x) - np.sinh(y), start, target)
    assert found.converged.all() and found.iterations.max() > 2 * np.median(found.iterations)
    np.testing.assert_allclose(found.x[:, 0], target, rtol=1e-9)
    np.testing.assert_allclose(found.residual[:, 0], np.sinh(found.x[:, 0]) - np.sinh(target), atol=1e-12)
