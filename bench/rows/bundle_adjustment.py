"""Bundle adjustment: observations, each of one camera (11 numbers), one point (3) and one weight; residuals, their sparse Jacobian, its adjoint."""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse
from contest import Contestants, Row, in_jax, installed, jax, torch

import riesz as rz

CAMERAS = 100


def projection(xp, camera, X):
    """Pixels of points: Rodrigues' rotation, centre, focal length, principal point, two radial coefficients; any leading axes."""
    rotation, centre, focal, shift, radial = (
        camera[..., :3],
        camera[..., 3:6],
        camera[..., 6:7],
        camera[..., 7:9],
        camera[..., 9:11],
    )
    angle = xp.sqrt(xp.sum(rotation * rotation, -1))
    axis = rotation / angle[..., None]
    cos, sin = xp.cos(angle), xp.sin(angle)
    Y = X - centre
    a, b, c = axis[..., 0], axis[..., 1], axis[..., 2]
    cross = xp.stack([b * Y[..., 2] - c * Y[..., 1], c * Y[..., 0] - a * Y[..., 2], a * Y[..., 1] - b * Y[..., 0]], -1)
    turned = Y * cos[..., None] + cross * sin[..., None] + axis * (xp.sum(axis * Y, -1) * (1.0 - cos))[..., None]
    p = turned[..., :2] / turned[..., 2:3]
    r2 = xp.sum(p * p, -1)
    return focal * p * (1.0 + radial[..., 0] * r2 + radial[..., 1] * r2 * r2)[..., None] + shift


class Problem:
    """Who sees what, and where everything is."""

    def __init__(self, observations: int) -> None:
        rng = np.random.default_rng(0)
        points = max(observations // 10, 10)
        self.camera_of, self.point_of = rng.integers(0, CAMERAS, observations), rng.integers(0, points, observations)
        self.seen = rng.normal(size=(observations, 2))
        self.cameras = 0.1 * rng.normal(size=(CAMERAS, 11)) + np.eye(11)[6]
        self.points = rng.normal(loc=(0.0, 0.0, 5.0), size=(points, 3))
        self.weights = rng.uniform(0.5, 1.0, observations)
        self.at = self.cameras, self.points, self.weights
        self.u = rng.normal(size=(observations, 2))

    def residual(self, xp, cameras, points, weights):
        return weights[:, None] * (projection(xp, cameras[self.camera_of], points[self.point_of]) - self.seen)

    def one(self, xp, camera, point, weight, seen):
        return weight * (projection(xp, camera, point) - seen)

    def skeleton(self):
        """Where the blocks' numbers go in CSR: a row for each pixel, 11 + 3 + 1 columns, of which the other pixel's principal point is 0."""
        n = len(self.weights)
        starts = np.cumsum([0, self.cameras.size, self.points.size])
        columns = [
            11 * self.camera_of[:, None] + np.arange(11),
            starts[1] + 3 * self.point_of[:, None] + np.arange(3),
            starts[2] + np.arange(n)[:, None],
        ]
        return (
            np.repeat(np.concatenate(columns, axis=1)[:, None, :], 2, axis=1).reshape(-1),
            15 * np.arange(2 * n + 1),
            (2 * n, starts[2] + n),
        )


def as_csr(p: Problem, blocks, skeleton):
    """The blocks of all observations as one matrix."""
    columns, offsets, shape = skeleton
    numbers = np.concatenate([np.asarray(b).reshape(len(p.weights), 2, -1) for b in blocks], axis=2)
    return scipy.sparse.csr_array((numbers.reshape(-1), columns, offsets), shape=shape)


def probed(name, J):
    """Two products of a matrix, which say whether two are the same; JAX's blocks are made into one first."""
    if isinstance(J, tuple):
        p = Problem(len(J[0]))
        J = as_csr(p, J, p.skeleton())
    rng = np.random.default_rng(1)
    return J @ rng.normal(size=J.shape[1]), J.T @ rng.normal(size=J.shape[0])


def matrices(observations, numba=True) -> Contestants:
    p = Problem(observations)
    if not numba:
        sys.modules["numba"] = None  # as if it were not there
    jacobian = rz.jacobian(lambda *at: p.residual(np, *at), (0, 1, 2))
    found: Contestants = {("riesz" if numba else "riesz, NumPy only"): lambda: jacobian(*p.at).to_sparse()}
    skeleton = p.skeleton()
    if j := jax():
        blocks = in_jax(
            lambda c, x, w, s: j.vmap(j.jacfwd(lambda *at: p.one(j.numpy, *at), (0, 1, 2)))(
                c[p.camera_of], x[p.point_of], w, s
            ),
            *p.at,
            p.seen,
        )
        found["JAX"] = blocks  # alone; not a matrix yet
        found["JAX and CSR"] = lambda: as_csr(p, blocks(), skeleton)
    if t := torch():
        from torch.func import jacfwd, vmap

        given = [t.from_numpy(a) for a in (p.cameras[p.camera_of], p.points[p.point_of], p.weights, p.seen)]
        found["torch"] = lambda: as_csr(p, vmap(jacfwd(lambda *at: p.one(t, *at), (0, 1, 2)))(*given), skeleton)
    if installed("casadi"):
        import casadi

        symbols = [casadi.SX.sym(name, size) for name, size in (("c", 11), ("x", 3), ("w", 1), ("s", 2))]
        generated = casadi.Function(
            "blocks",
            symbols,
            [casadi.densify(casadi.jacobian(_in_casadi(casadi, *symbols), casadi.vertcat(*symbols[:3])))],
        )
        mapped = generated.map(observations)

        def in_casadi():
            found = mapped(p.cameras[p.camera_of].T, p.points[p.point_of].T, p.weights[None], p.seen.T)
            return as_csr(p, [np.asarray(found).reshape(2, -1, 15).swapaxes(0, 1)], skeleton)

        found["CasADi"] = in_casadi
    return found


def _in_casadi(casadi, camera, X, weight, seen):
    rotation, focal, shift, radial = camera[:3], camera[6], camera[7:9], camera[9:]
    angle = casadi.norm_2(rotation)
    axis, Y = rotation / angle, X - camera[3:6]
    turned = (
        Y * casadi.cos(angle)
        + casadi.cross(axis, Y) * casadi.sin(angle)
        + axis * (casadi.dot(axis, Y) * (1 - casadi.cos(angle)))
    )
    q = turned[:2] / turned[2]
    r2 = casadi.dot(q, q)
    return weight * (focal * q * (1 + radial[0] * r2 + radial[1] * r2**2) + shift - seen)


def residuals(observations) -> Contestants:
    """The function itself."""
    p = Problem(observations)
    ours = rz.compile(lambda *at: p.residual(np, *at))
    found: Contestants = {"riesz": lambda: ours(*p.at), "NumPy as written": lambda: p.residual(np, *p.at)}
    if j := jax():
        found["JAX"] = in_jax(lambda *at: p.residual(j.numpy, *at), *p.at)
    return found


def pulled(observations) -> Contestants:
    """Jᵀu by the stored matrix, and by the derived program."""
    p = Problem(observations)
    J = rz.jacobian(lambda *at: p.residual(np, *at), (0, 1, 2))(*p.at).to_sparse()
    turned, u = J.T.tocsr(), p.u.reshape(-1)
    pull = rz.compile(lambda u, *at: rz.vjp(lambda *at: p.residual(np, *at), *at)[1](u))
    found: Contestants = {"riesz, stored Jᵀu": lambda: turned @ u, "riesz, vjp": lambda: pull(p.u, *p.at)}
    if j := jax():
        found["JAX"] = in_jax(lambda u, *at: j.vjp(lambda *at: p.residual(j.numpy, *at), *at)[1](u), p.u, *p.at)
    if t := torch():
        at = [t.from_numpy(a).requires_grad_() for a in p.at]
        ut, ci, pi, seen = [t.from_numpy(a) for a in (p.u, p.camera_of, p.point_of, p.seen)]
        found["torch"] = lambda: t.autograd.grad(at[2][:, None] * (projection(t, at[0][ci], at[1][pi]) - seen), at, ut)
    return found


def flat(name, result):
    return result if name == "riesz, stored Jᵀu" else np.concatenate([np.asarray(x).reshape(-1) for x in result])


SIZES = {"observations": 204_472}, {"observations": 30_000}
ROWS = [
    Row(
        "bundle adjustment, {observations:,} observations: CSR Jacobian",
        matrices,
        {"riesz": 5.0},
        *SIZES,
        compared=probed,
    ),
    Row(
        "bundle adjustment: CSR Jacobian",
        lambda observations: matrices(observations, numba=False),
        {"riesz, NumPy only": 2.0},
        *SIZES,
        compared=probed,
    ),
    Row("bundle adjustment: residuals", residuals, {"riesz": 0.0}, *SIZES),
    Row("bundle adjustment", pulled, {"riesz, stored Jᵀu": 8.0, "riesz, vjp": 2.0}, *SIZES, compared=flat),
]
