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
    """Points x in the frame of a pose, in the world.

    >>> import numpy as np, riesz as rz
    >>> ahead = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # where, and a quaternion
    >>> rz.manifolds.pose_apply(ahead, np.array([1.0, 2.0, 3.0]))
    array([6., 2., 3.])
    """
    return pose[..., :3] + quaternion_rotate(pose[..., 3:], x)


def pose_to_local(pose: Any, x: Any) -> Any:
    """Points x in the world, in the frame of a pose.

    >>> import numpy as np, riesz as rz
    >>> ahead = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    >>> rz.manifolds.pose_to_local(ahead, np.array([6.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    return quaternion_rotate(quaternion_inverse(pose[..., 3:]), x - pose[..., :3])


def pose_product(a: Any, b: Any) -> Any:
    """The pose b, given in the frame of a, in the world.

    >>> import numpy as np, riesz as rz
    >>> m, x = rz.manifolds, np.ones(3)
    >>> a, b = m.SE3.random(2, seed=0)
    >>> bool(np.allclose(m.pose_apply(m.pose_product(a, b), x), m.pose_apply(a, m.pose_apply(b, x))))
    True
    """
    return np.concatenate([pose_apply(a, b[..., :3]), quaternion_product(a[..., 3:], b[..., 3:])], axis=-1)


def pose_inverse(a: Any) -> Any:
    """The pose of the world in the frame of a.

    >>> import numpy as np, riesz as rz
    >>> a = rz.manifolds.SE3.random(seed=0)
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> m = rz.manifolds
    >>> bool(np.allclose(m.pose_apply(m.pose_inverse(a), m.pose_apply(a, x)), x))
    True
    """
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
    """The pose b in the plane, given in the frame of a, in the world.

    >>> import numpy as np, riesz as rz
    >>> quarter = np.array([1.0, 0.0, 0.0, 1.0])  # x, y, cosine, sine
    >>> rz.manifolds.pose2_product(quarter, quarter)
    array([ 1.,  1., -1.,  0.])
    """
    return np.concatenate([a[..., :2] + _turned(a[..., 2:], b[..., :2]), _turned(a[..., 2:], b[..., 2:])], axis=-1)


def pose2_inverse(a: Any) -> Any:
    """The pose of the world in the frame of a.

    >>> import numpy as np, riesz as rz
    >>> a = rz.manifolds.SE2.random(seed=0)
    >>> (rz.manifolds.pose2_product(a, rz.manifolds.pose2_inverse(a)) + 0.0).round(12)
    array([0., 0., 1., 0.])
    """
    back = a[..., 2:] * np.array([1.0, -1.0])
    return np.concatenate([-_turned(back, a[..., :2]), back], axis=-1)


def pose2_between(a: Any, b: Any) -> Any:
    """The pose b in the frame of a, in the plane.

    >>> import numpy as np, riesz as rz
    >>> a, b = rz.manifolds.SE2.random(2, seed=0)
    >>> bool(np.allclose(rz.manifolds.pose2_product(a, rz.manifolds.pose2_between(a, b)), b))
    True
    """
    back = a[..., 2:] * np.array([1.0, -1.0])
    return np.concatenate([_turned(back, b[..., :2] - a[..., :2]), _turned(back, b[..., 2:])], axis=-1)


def pose2_angle(a: Any) -> Any:
    """The angle of a pose in the plane, between −π and π.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.pose2_angle(np.array([1.0, 2.0, 0.0, 1.0])).round(6)
    np.float64(1.570796)
    """
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
    """Pixels moved by radial distortion: p · (1 + k₁ |p|² + k₂ |p|⁴).

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.radial(np.array([1.0, 2.0]), 0.1)
    array([1.5, 3. ])
    """
    s = np.sum(p * p, axis=-1, keepdims=True)
    return p * (1.0 + s * (k1 + k2 * s))
