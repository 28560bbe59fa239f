"""Rotations and poses as manifolds. Tangent vectors are in the frame of the point: retract(x, v) = x · exp(v)."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import VectorError
from .manifold import Manifold
from .poses import turn
from .rotations import (
    quaternion_exp,
    quaternion_inverse,
    quaternion_log,
    quaternion_product,
    quaternion_rotate,
    rotation_exp,
    rotation_log,
)

TOLERANCE = 1e-5
"""How far from a point an array may be."""


def _unit(x: Any) -> bool:
    return bool((np.abs(np.sum(np.asarray(x) ** 2, axis=-1) - 1.0) < TOLERANCE).all())


class UnitQuaternionManifold(Manifold):
    """Unit quaternions (x, y, z, w) as rotations: q and −q are one.

    >>> import numpy as np, riesz as rz
    >>> Q = rz.manifolds.UnitQuaternions
    >>> rz.grad(lambda q: q[0], manifold=Q)(np.array([0.0, 0.0, 0.0, 1.0]))
    array([0.5, 0. , 0. ])
    """

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[:-1], 3))

    def retract(self, x: Any, v: Any) -> Any:
        return quaternion_product(x, quaternion_exp(v))

    def local(self, x: Any, y: Any) -> Any:
        return quaternion_log(quaternion_product(quaternion_inverse(x), y))

    def contains(self, x: Any) -> bool:
        return np.shape(x)[-1:] == (4,) and _unit(x)

    def random(self, *lead: int, seed: Any = None) -> Any:
        """Points, uniformly distributed."""
        q = np.random.default_rng(seed).standard_normal((*lead, 4))
        return q / np.linalg.norm(q, axis=-1, keepdims=True)


class SO3Manifold(Manifold):
    """Rotations of space, as 3 × 3 matrices (…, 3, 3) or unit quaternions (…, 4); geodesics of angle up to π.

    >>> import numpy as np, riesz as rz
    >>> R = rz.manifolds.rotation_exp(np.array([0.0, 0.0, 0.5]))
    >>> rz.grad(lambda R: np.trace(R @ R), manifold=rz.manifolds.SO3)(R).round(6)
    array([ 0.      ,  0.      , -3.365884])
    """

    def _matrices(self, x: Any) -> bool:
        shape = np.shape(x)
        if shape[-1:] == (4,):
            return False
        if shape[-2:] == (3, 3):
            return True
        raise VectorError(f"SO3: arrays (…, 3, 3) of matrices or (…, 4) of quaternions are due; got shape {shape}")

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[: -2 if self._matrices(x) else -1], 3))

    def retract(self, x: Any, v: Any) -> Any:
        return x @ rotation_exp(v) if self._matrices(x) else quaternion_product(x, quaternion_exp(v))

    def local(self, x: Any, y: Any) -> Any:
        if self._matrices(x):
            return rotation_log(np.swapaxes(x, -1, -2) @ y)
        return quaternion_log(quaternion_product(quaternion_inverse(x), y))

    def contains(self, x: Any) -> bool:
        if not self._matrices(x):
            return _unit(x)
        given = np.asarray(x)
        flat = np.abs(np.swapaxes(given, -1, -2) @ given - np.eye(3)) < TOLERANCE
        return bool(flat.all() and (np.linalg.det(given) > 0).all())

    def random(self, *lead: int, seed: Any = None, matrices: bool = True) -> Any:
        """Points, uniformly distributed: matrices, or quaternions."""
        from .rotations import quaternion_to_matrix

        q = UnitQuaternionManifold().random(*lead, seed=seed)
        return quaternion_to_matrix(q) if matrices else q


class SO2Manifold(Manifold):
    """Rotations of the plane as (cos, sin).

    >>> import numpy as np, riesz as rz
    >>> SO2 = rz.manifolds.SO2
    >>> x = SO2.random(seed=0)
    >>> x.shape, SO2.tangent(x).shape
    ((2,), (1,))
    """

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[:-1], 1))

    def retract(self, x: Any, v: Any) -> Any:
        return turn(x, np.concatenate([np.cos(v), np.sin(v)], axis=-1))

    def local(self, x: Any, y: Any) -> Any:
        between = turn(x * np.array([1.0, -1.0]), y)
        return np.arctan2(between[..., 1:], between[..., :1])

    def contains(self, x: Any) -> bool:
        return np.shape(x)[-1:] == (2,) and _unit(x)

    def random(self, *lead: int, seed: Any = None) -> Any:
        """Points, uniformly distributed."""
        a = np.random.default_rng(seed).uniform(-np.pi, np.pi, lead)
        return np.stack([np.cos(a), np.sin(a)], axis=-1)


class SE2Manifold(Manifold):
    """Poses in the plane as (x, y, cos, sin); tangent vectors (shift in the frame of the pose, angle).

    >>> import numpy as np, riesz as rz
    >>> SE2 = rz.manifolds.SE2
    >>> x, y = SE2.random(2, seed=0)
    >>> SE2.local(x, y).shape, bool(np.allclose(SE2.retract(x, SE2.local(x, y)), y))
    ((3,), True)
    """

    connection = "Levi-Civita of ℝ² × SO2: retractions are geodesics"

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[:-1], 3))

    def retract(self, x: Any, v: Any) -> Any:
        moved = x[..., :2] + turn(x[..., 2:], v[..., :2])
        return np.concatenate([moved, SO2.retract(x[..., 2:], v[..., 2:])], axis=-1)

    def local(self, x: Any, y: Any) -> Any:
        back = x[..., 2:] * np.array([1.0, -1.0])
        return np.concatenate([turn(back, y[..., :2] - x[..., :2]), SO2.local(x[..., 2:], y[..., 2:])], axis=-1)

    def contains(self, x: Any) -> bool:
        return np.shape(x)[-1:] == (4,) and _unit(np.asarray(x)[..., 2:])

    def random(self, *lead: int, seed: Any = None) -> Any:
        """Points: shifts standard normal, angles uniform."""
        rng = np.random.default_rng(seed)
        return np.concatenate([rng.standard_normal((*lead, 2)), SO2.random(*lead, seed=rng)], axis=-1)


class SE3Manifold(Manifold):
    """Poses in space as (x, y, z, unit quaternion) or 4 × 4 matrices; tangent vectors (shift in the frame of the pose,
    rotation vector).

    >>> import numpy as np, riesz as rz
    >>> SE3 = rz.manifolds.SE3
    >>> x, y = SE3.random(2, seed=0)
    >>> SE3.local(x, y).shape, bool(np.allclose(SE3.retract(x, SE3.local(x, y)), y))
    ((6,), True)
    """

    connection = "Levi-Civita of ℝ³ × SO3: retractions are geodesics"

    def _matrices(self, x: Any) -> bool:
        shape = np.shape(x)
        if shape[-1:] == (7,):
            return False
        if shape[-2:] == (4, 4):
            return True
        raise VectorError(f"SE3: arrays (…, 7) of shifts and quaternions or (…, 4, 4) are due; got shape {shape}")

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[: -2 if self._matrices(x) else -1], 6))

    def retract(self, x: Any, v: Any) -> Any:
        if not self._matrices(x):
            moved = x[..., :3] + quaternion_rotate(x[..., 3:], v[..., :3])
            return np.concatenate([moved, quaternion_product(x[..., 3:], quaternion_exp(v[..., 3:]))], axis=-1)
        R = x[..., :3, :3]
        moved = x[..., :3, 3:] + R @ np.expand_dims(v[..., :3], -1)
        top = np.concatenate([R @ rotation_exp(v[..., 3:]), moved], axis=-1)
        return np.concatenate([top, x[..., 3:, :]], axis=-2)

    def local(self, x: Any, y: Any) -> Any:
        if not self._matrices(x):
            back = quaternion_inverse(x[..., 3:])
            shift = quaternion_rotate(back, y[..., :3] - x[..., :3])
            return np.concatenate([shift, quaternion_log(quaternion_product(back, y[..., 3:]))], axis=-1)
        back = np.swapaxes(x[..., :3, :3], -1, -2)
        shift = (back @ (y[..., :3, 3:] - x[..., :3, 3:]))[..., 0]
        return np.concatenate([shift, rotation_log(back @ y[..., :3, :3])], axis=-1)

    def contains(self, x: Any) -> bool:
        given = np.asarray(x)
        if not self._matrices(given):
            return _unit(given[..., 3:])
        last = np.abs(given[..., 3, :] - np.array([0.0, 0.0, 0.0, 1.0])) < TOLERANCE
        return bool(last.all()) and SO3.contains(given[..., :3, :3])

    def random(self, *lead: int, seed: Any = None, matrices: bool = False) -> Any:
        """Points: shifts standard normal, rotations uniform; seven numbers each, or matrices."""
        rng = np.random.default_rng(seed)
        t = rng.standard_normal((*lead, 3))
        if not matrices:
            return np.concatenate([t, UnitQuaternions.random(*lead, seed=rng)], axis=-1)
        found = np.zeros((*lead, 4, 4))
        found[..., :3, :3], found[..., :3, 3], found[..., 3, 3] = SO3.random(*lead, seed=rng), t, 1.0
        return found


SO2, SO3, SE2, SE3 = SO2Manifold(), SO3Manifold(), SE2Manifold(), SE3Manifold()
UnitQuaternions = UnitQuaternionManifold()
