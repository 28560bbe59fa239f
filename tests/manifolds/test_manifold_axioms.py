"""What every manifold must satisfy, for points beside each other and alone; rotations at 0 and at π."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import riesz as rz

m = rz.manifolds
MANIFOLDS = {
    "SO2": (m.SO2, m.SO2.random),
    "SO3 matrices": (m.SO3, m.SO3.random),
    "SO3 quaternions": (m.SO3, lambda *n, seed: m.SO3.random(*n, seed=seed, matrices=False)),
    "unit quaternions": (m.UnitQuaternions, m.UnitQuaternions.random),
    "SE2": (m.SE2, m.SE2.random),
    "SE3": (m.SE3, m.SE3.random),
    "SE3 matrices": (m.SE3, lambda *n, seed: m.SE3.random(*n, seed=seed, matrices=True)),
    "sphere": (m.Sphere, lambda *n, seed: m.Sphere.random(*n, 4, seed=seed)),
    "circle": (m.Sphere, lambda *n, seed: m.Sphere.random(*n, 2, seed=seed)),
    "Stiefel": (m.Stiefel, lambda *n, seed: m.Stiefel.random(*n, 5, 3, seed=seed)),
    "orthogonal": (m.Stiefel, lambda *n, seed: m.Stiefel.random(*n, 3, 3, seed=seed)),
    "SPD": (m.SPD, lambda *n, seed: m.SPD.random(*n, 3, 3, seed=seed)),
}
each = pytest.mark.parametrize("name", MANIFOLDS)
few = settings(max_examples=4, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def same(M, x, y):
    """q and −q are one rotation."""
    if M in (m.SO3, m.UnitQuaternions) and x.shape[-1] == 4:
        y = y * np.sign(np.sum(x * y, axis=-1, keepdims=True))
    if M is m.SE3 and x.shape[-1] == 7:
        y = np.concatenate([y[..., :3], y[..., 3:] * np.sign(np.sum((x * y)[..., 3:], -1, keepdims=True))], -1)
    np.testing.assert_allclose(x, y, atol=1e-9)


@each
@settings(max_examples=15, deadline=None)
@given(seed=seeds, size=st.floats(1e-9, 1.0), lead=st.sampled_from([(), (2,), (2, 3)]))
def test_axioms(name, seed, size, lead):
    M, random = MANIFOLDS[name]
    x, rng = random(*lead, seed=seed), np.random.default_rng(seed)
    zero = M.tangent(x)
    assert zero.shape[: len(lead)] == lead and not zero.any() and M.contains(x)
    v = size * rng.standard_normal(zero.shape)
    np.testing.assert_allclose(M.retract(x, zero), x, atol=1e-12)
    y = M.retract(x, v)
    assert M.contains(y)
    if name != "SPD" and name[:2] in ("SO", "un", "SE", "sp", "ci"):
        v *= np.minimum(1.0, 3.0 / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30))
        y = M.retract(x, v)
    np.testing.assert_allclose(M.local(x, y), v, atol=1e-8)
    same(M, M.retract(x, M.local(x, y)), y)


@each
@few
@given(seed=seeds)
def test_the_derivative_of_the_retraction_at_0_is_the_identity(name, seed):
    M, random = MANIFOLDS[name]
    x = random(3, seed=seed)
    J = rz.jacobian(lambda v, x: M.local(x, M.retract(x, v)))(M.tangent(x), x)
    np.testing.assert_allclose(J.to_dense(), np.eye(J.shape[0]), atol=1e-10)


@each
@few
@given(seed=seeds)
def test_gradient_and_hessian_against_differences_along_curves(name, seed):
    M, random = MANIFOLDS[name]
    x, rng = random(seed=seed), np.random.default_rng(seed)
    C = rng.standard_normal(x.shape)
    f = lambda x: np.sum(np.sin(C * x)) + 0.5 * np.sum(C * x) ** 2  # noqa: E731
    g, H = rz.grad(f, manifold=M)(x), rz.hessian(f, manifold=M)(x)
    assert g.shape == M.tangent(x).shape
    v, h = rng.standard_normal(g.shape), 1e-4
    at = [f(M.retract(x, t * h * v)) for t in (-2, -1, 0, 1, 2)]
    slope = (at[0] - 8 * at[1] + 8 * at[3] - at[4]) / (12 * h)
    bend = (-at[0] + 16 * at[1] - 30 * at[2] + 16 * at[3] - at[4]) / (12 * h * h)
    scale = 1.0 + np.abs(at[2])
    np.testing.assert_allclose(np.sum(g * v), slope, rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(np.sum(v * H(v)), bend, rtol=1e-4, atol=1e-4 * scale)
    value, again = rz.value_and_grad(f, manifold=M)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(again, g, rtol=1e-12)


@few
@given(seed=seeds)
def test_riemannian_gradients_known_from_books(seed):
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((4, 4)), m.Sphere.random(4, seed=seed)
    S = A + A.T
    g = rz.grad(lambda x: 0.5 * np.dot(x, S @ x), manifold=m.Sphere)(x)
    projected = S @ x - x * (x @ S @ x)
    np.testing.assert_allclose(np.linalg.norm(g), np.linalg.norm(projected), rtol=1e-9)
    values = np.linalg.eigvalsh(rz.hessian(lambda x: 0.5 * np.dot(x, S @ x), manifold=m.Sphere)(x).to_dense())
    P = np.eye(4) - np.outer(x, x)
    book = np.sort(np.linalg.eigvalsh(P @ (S - (x @ S @ x) * np.eye(4)) @ P))
    keep = np.delete(book, np.argmin(np.abs(book)))
    np.testing.assert_allclose(values, keep, atol=1e-9)


@few
@given(seed=seeds)
def test_jacobians_between_tangent_spaces(seed):
    """The product with a fixed rotation from the left is an isometry: the identity in frames that turn along."""
    a, x = m.SO3.random(2, seed=seed)
    J = rz.jacobian(lambda x: a @ x, manifold=m.SO3, into=m.SO3)(x)
    np.testing.assert_allclose(J.to_dense(), np.eye(3), atol=1e-12)
    inverse = rz.jacobian(lambda x: np.swapaxes(x, -1, -2), manifold=m.SO3, into=m.SO3)(x)
    np.testing.assert_allclose(inverse.to_dense(), -x, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 1e-4, 0.0316, 0.1, 1.0, 3.1, np.pi - 1e-8, np.pi])
def test_rotations_against_scipy_at_every_angle(angle):
    rng = np.random.default_rng(int(1e6 * angle))
    axis = m.Sphere.random(3, seed=rng)
    w, x = angle * axis, rng.standard_normal(3)
    R = Rotation.from_rotvec(w)
    np.testing.assert_allclose(m.rotation_exp(w), R.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(m.rotate(w, x), R.apply(x), atol=1e-14)
    np.testing.assert_allclose(m.quaternion_exp(w), R.as_quat(), atol=1e-14)
    np.testing.assert_allclose(m.quaternion_rotate(R.as_quat(), x), R.apply(x), atol=1e-14)
    for log in (m.rotation_log(m.rotation_exp(w)), m.quaternion_log(m.quaternion_exp(w))):
        np.testing.assert_allclose(np.minimum(np.abs(log - w), np.abs(log + w) if angle > 3 else 9.0), 0.0, atol=2e-8)
    J = rz.jacobian(m.rotate)(w, x).to_dense()
    h = 1e-5
    differences = [(m.rotate(w + h * e, x) - m.rotate(w - h * e, x)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(J, np.stack(differences, axis=1), atol=1e-8)
    H = rz.hessian(lambda w: np.sum(m.rotate(w, x) * x[::-1]))(w).to_dense()
    G = rz.grad(lambda w: np.sum(m.rotate(w, x) * x[::-1]))
    np.testing.assert_allclose(H, np.stack([(G(w + h * e) - G(w - h * e)) / (2 * h) for e in np.eye(3)]), atol=1e-8)


def test_logarithms_have_derivatives_at_0_and_at_pi():
    for angle in (0.0, 1e-7, 0.3, np.pi - 1e-9, np.pi):
        q, R = m.quaternion_exp(np.array([angle, 0.0, 0.0])), m.rotation_exp(np.array([angle, 0.0, 0.0]))
        J = rz.jacobian(lambda v, q=q: m.quaternion_log(m.quaternion_product(q, m.quaternion_exp(v))))(np.zeros(3))
        K = rz.jacobian(lambda v, R=R: m.rotation_log(R @ m.rotation_exp(v)))(np.zeros(3))
        half = angle / 2
        cot = 1.0 if angle < 1e-6 else half / np.tan(half)
        exact = np.array([[1.0, 0.0, 0.0], [0.0, cot, -half], [0.0, half, cot]])
        np.testing.assert_allclose(J.to_dense(), exact, atol=1e-6)
        np.testing.assert_allclose(K.to_dense(), exact, atol=1e-6)


def test_poses():
    a, b, x = m.SE3.random(5, seed=0), m.SE3.random(5, seed=1), np.random.default_rng(2).standard_normal((5, 3))
    np.testing.assert_allclose(m.pose_apply(m.pose_product(a, b), x), m.pose_apply(a, m.pose_apply(b, x)), atol=1e-13)
    np.testing.assert_allclose(m.pose_to_local(a, m.pose_apply(a, x)), x, atol=1e-13)
    np.testing.assert_allclose(m.pose_apply(m.pose_inverse(a), x), m.pose_to_local(a, x), atol=1e-13)
    np.testing.assert_allclose(m.pose_product(a, m.pose_between(a, b)), b, atol=1e-13)
    c, d = m.SE2.random(5, seed=0), m.SE2.random(5, seed=1)
    np.testing.assert_allclose(m.pose2_product(c, m.pose2_between(c, d)), d, atol=1e-13)
    np.testing.assert_allclose(m.pose2_product(c, m.pose2_inverse(c)), np.tile([0, 0, 1.0, 0], (5, 1)), atol=1e-13)
    np.testing.assert_allclose(
        m.pose2_angle(m.pose2_product(c, d)), m.wrap_angle(m.pose2_angle(c) + m.pose2_angle(d)), atol=1e-12
    )
    np.testing.assert_allclose(m.radial(m.pinhole(np.array([1.0, 2.0, 2.0])), 0.1), np.array([0.5, 1.0]) * 1.125)
