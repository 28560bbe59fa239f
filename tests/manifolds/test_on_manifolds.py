"""Least squares, minima and derivatives of functions on manifolds and their products."""

import itertools

import numpy as np
import pytest

import riesz as rz
from riesz.errors import SpaceError, VectorError

m = rz.manifolds
rng = np.random.default_rng(0)


def wahba(R, seen, known):
    return seen @ np.swapaxes(R, -1, -2) - known


@pytest.mark.parametrize("angle", [0.5, 2.0, np.pi - 1e-6, np.pi])
@pytest.mark.parametrize("matrices", [True, False])
def test_rotations_fit_quadratically_from_anywhere(angle, matrices):
    """Turning points onto points: the start is away by any angle, π included."""
    true = m.rotation_exp(np.array([0.3, -0.2, 0.9]))
    seen = rng.standard_normal((20, 3))
    known = seen @ true.T
    away = m.rotation_exp(angle * m.Sphere.random(3, seed=1))
    start = true @ away if matrices else m.matrix_to_quaternion(true @ away)
    turn = (lambda R: R) if matrices else m.quaternion_to_matrix
    found = rz.levenberg_marquardt(lambda R: wahba(turn(R), seen, known), start, manifold=m.SO3)
    assert found.converged and found.cost < 1e-20 and m.SO3.contains(found.x), found
    np.testing.assert_allclose(turn(found.x), true, atol=1e-9)
    norms = [n for n in found.history if 1e-9 < n < 0.3]
    assert all(after < 2.0 * before**1.7 for before, after in itertools.pairwise(norms))


def test_a_start_that_is_not_on_the_manifold_is_refused():
    with pytest.raises(VectorError, match=r"x0 is not on rz\.manifolds\.SO3"):
        rz.levenberg_marquardt(lambda R: R @ np.ones(3), 2.0 * np.eye(3), manifold=m.SO3)
    with pytest.raises(VectorError, match="no methods tangent"):
        rz.grad(np.sum, manifold=3.0)
    with pytest.raises(SpaceError, match="in the first argument"):
        rz.grad(np.sum, 1, manifold=m.SO3)
    with pytest.raises(VectorError, match="arrays"):
        rz.grad(np.sum, manifold=m.SO3)(np.ones(5))


def ring(n, seed):
    rng = np.random.default_rng(seed)
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    w = np.stack([0.1 * np.sin(angle), 0.0 * angle, angle], axis=1)
    poses = np.concatenate([5.0 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1), m.quaternion_exp(w)], axis=1)
    i = np.arange(n)
    j = (i + 1) % n
    i, j = np.append(i, [0, 1]), np.append(j, [n // 2, n // 2 + 1])
    Z = m.SE3.retract(m.pose_between(poses[i], poses[j]), 0.02 * rng.standard_normal((len(i), 6)))
    return poses, i, j, Z, m.SE3.retract(poses, 0.1 * rng.standard_normal((n, 6)))


@pytest.mark.parametrize("method", ["auto", "sparse"])
def test_a_pose_graph_in_space(method):
    poses, i, j, Z, start = ring(60, 0)
    residual = lambda x: (m.SE3.local(Z, m.pose_between(x[i], x[j])), m.SE3.local(poses[0], x[0]))  # noqa: E731
    found = rz.levenberg_marquardt(residual, start, manifold=m.SE3, method=method)
    parts = rz.levenberg_marquardt(
        lambda p: residual(np.concatenate([p["t"], p["q"]], axis=1)),
        {"t": start[:, :3], "q": start[:, 3:]},
        manifold={"q": m.SO3},
        method=method,
    )
    assert found.converged and parts.converged and found.iterations < 12
    assert m.SE3.contains(found.x) and parts.jacobian.domain.dim == 360
    np.testing.assert_allclose(parts.cost, found.cost, rtol=1e-8)
    assert found.covariance().shape == (360, 360)
    assert parts.covariance("q").shape == (60, 3, 3) and parts.standard_errors["q"].shape == (60, 3)


def test_a_pose_may_be_fixed():
    _poses, i, j, Z, start = ring(20, 1)
    mask = np.arange(20) == 0
    found = rz.levenberg_marquardt(
        lambda x: m.SE3.local(Z, m.pose_between(x[i], x[j])), start, manifold=m.SE3, fixed=mask
    )
    assert found.converged and not found.undetermined
    np.testing.assert_allclose(found.x[0], start[0], atol=1e-15)
    free = rz.levenberg_marquardt(lambda x: m.SE3.local(Z, m.pose_between(x[i], x[j])), start, manifold=m.SE3)
    assert "rank 114, there are 120" in free.undetermined


def test_argmin_on_a_manifold_and_its_derivative():
    """The smallest eigenvalue is min xᵀAx on the sphere; its derivative is x xᵀ."""
    A = rng.standard_normal((4, 4))
    A = A + A.T
    _values, vectors = np.linalg.eigh(A)
    start = vectors[:, 0] + 0.2 * rng.standard_normal(4)
    start /= np.linalg.norm(start)
    least = lambda A: rz.argmin(lambda x, A: np.dot(x, A @ x), start, A, manifold=m.Sphere)  # noqa: E731
    np.testing.assert_allclose(np.abs(least(A) @ vectors[:, 0]), 1.0, atol=1e-9)
    g = rz.grad(lambda A: np.dot(least(A), A @ least(A)))(A)
    np.testing.assert_allclose(g, np.outer(vectors[:, 0], vectors[:, 0]), atol=1e-7)
    J = rz.jacobian(lambda t: least(A + t * np.eye(4) + t * np.ones((4, 4))))(0.0).to_dense()[:, 0]
    h = 1e-5
    moved = [least(A + t * np.eye(4) + t * np.ones((4, 4))) for t in (h, -h)]
    np.testing.assert_allclose(J, (moved[0] - moved[1]) / (2 * h), atol=1e-5)


class Positive:
    """The numbers above 0, with the metric of their logarithms."""

    def tangent(self, x):
        return np.zeros(np.shape(x))

    def retract(self, x, v):
        return x * np.exp(v / x)

    def local(self, x, y):
        return x * np.log(y / x)

    def space(self, x):
        return rz.space_of(np.zeros(np.shape(x))).weighted(1.0 / np.asarray(x) ** 2)


def test_a_manifold_of_ones_own_and_a_metric_of_its_own():
    x = np.array([0.5, 2.0])
    g = rz.grad(lambda x: np.sum(x**2), manifold=Positive())(x)
    np.testing.assert_allclose(g, 2.0 * x * x**2)
    J = rz.jacobian(lambda x: x**3, manifold=Positive())(x)
    assert J.domain.inner(x, x) == 2.0
    found = rz.levenberg_marquardt(lambda x: np.log(x) - np.array([1.0, -3.0]), x, manifold=Positive())
    assert found.converged and (found.x > 0).all()
    np.testing.assert_allclose(found.x, np.exp([1.0, -3.0]))


def test_products_by_trees():
    M = m.product({"R": m.SO3, "t": None})
    x = {"R": m.SO3.random(seed=3), "t": np.array([1.0, 2.0, 3.0])}
    y = {"R": m.SO3.random(seed=4), "t": np.zeros(3)}
    v = M.local(x, y)
    z = M.retract(x, v)
    np.testing.assert_allclose(z["R"], y["R"], atol=1e-12)
    np.testing.assert_allclose(z["t"], y["t"], atol=1e-12)
    f = lambda p: np.sum(p["R"] @ p["t"]) ** 2  # noqa: E731
    for manifold in (M, {"R": m.SO3}):
        g = rz.grad(f, manifold=manifold)(x)
        assert g["R"].shape == (3,) and g["t"].shape == (3,)
    H = rz.hessian(f, manifold=M)(x)
    assert H.shape == (6, 6)
    np.testing.assert_allclose(H.to_dense(), H.to_dense().T, atol=1e-10)
