"""Poses and projections as ready NumPy functions.

A pose in space is (x, y, z, and a unit quaternion): seven numbers; one in the plane (x, y, cos, sin). It takes points
from its own frame to the world.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np

from .rotations import quaternion_inverse, quaternion_product, quaternion_rotate


def pose_apply(pose: Any, x: Any) -> Any:
    """Points x in the frame of a pose, in the world."""
    return pose[..., :3] + quaternion_rotate(pose[..., 3:], x)


def pose_to_local(pose: Any, x: Any) -> Any:
    """Points x in the world, in the frame of a pose."""
    return quaternion_rotate(quaternion_inverse(pose[..., 3:]), x - pose[..., :3])


def pose_product(a: Any, b: Any) -> Any:
    """The pose b, given in the frame of a, in the world."""
    return np.concatenate([pose_apply(a, b[..., :3]), quaternion_product(a[..., 3:], b[..., 3:])], axis=-1)


def pose_inverse(a: Any) -> Any:
    """The pose of the world in the frame of a."""
    q = quaternion_inverse(a[..., 3:])
    return np.concatenate([-quaternion_rotate(q, a[..., :3]), q], axis=-1)


def pose_between(a: Any, b: Any) -> Any:
    """The pose b in the frame of a: edges of pose graphs.

    >>> import numpy as np, riesz as rz
    >>> a, b = rz.manifolds.SE3.random(2, seed=0)
    >>> between = rz.manifolds.pose_between(a, b)
    >>> bool(np.allclose(rz.manifolds.pose_product(a, between), b))
    True
    """
    turned = quaternion_product(quaternion_inverse(a[..., 3:]), b[..., 3:])
    return np.concatenate([pose_to_local(a, b[..., :3]), turned], axis=-1)


def pose2_product(a: Any, b: Any) -> Any:
    """The pose b in the plane, given in the frame of a, in the world."""
    return np.concatenate([a[..., :2] + _turned(a[..., 2:], b[..., :2]), _turned(a[..., 2:], b[..., 2:])], axis=-1)


def pose2_inverse(a: Any) -> Any:
    """The pose of the world in the frame of a."""
    back = a[..., 2:] * np.array([1.0, -1.0])
    return np.concatenate([-_turned(back, a[..., :2]), back], axis=-1)


def pose2_between(a: Any, b: Any) -> Any:
    """The pose b in the frame of a, in the plane."""
    back = a[..., 2:] * np.array([1.0, -1.0])
    return np.concatenate([_turned(back, b[..., :2] - a[..., :2]), _turned(back, b[..., 2:])], axis=-1)


def pose2_angle(a: Any) -> Any:
    """The angle of a pose in the plane, between −π and π."""
    return np.arctan2(a[..., 3], a[..., 2])


def _turned(r: Any, x: Any) -> Any:
    """Vectors in the plane turned by (cos, sin)."""
    c, s, a, b = r[..., 0], r[..., 1], x[..., 0], x[..., 1]
    return np.stack([c * a - s * b, s * a + c * b], axis=-1)


turn = _turned
"""The product of two rotations of the plane, or of one and a vector."""


def pinhole(x: Any, focal: Any = 1.0, center: Any = 0.0) -> Any:
    """Points in the frame of a camera that looks along z, as pixels.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.pinhole(np.array([1.0, 2.0, 4.0]), focal=100.0)
    array([25., 50.])
    """
    return focal * x[..., :2] / x[..., 2:] + center


def radial(p: Any, k1: Any, k2: Any = 0.0) -> Any:
    """Pixels moved by radial distortion: p · (1 + k₁ |p|² + k₂ |p|⁴)."""
    s = np.sum(p * p, axis=-1, keepdims=True)
    return p * (1.0 + s * (k1 + k2 * s))
