"""Rotations as ready NumPy functions, with derivatives of all orders that are right at 0 and at π.

Quaternions are (x, y, z, w), with w the real part; all functions take arrays with leading axes.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np

SMALL = 1e-3
"""Squared angles below it: power series, whose next terms are below rounding, also in second derivatives."""


def _series(s: Any, *terms: float) -> Any:
    total: Any = terms[-1]
    for c in reversed(terms[:-1]):
        total = c + s * total
    return total


def sine_ratio(s: Any) -> Any:
    """sin(a)/a of s = a²."""
    small = s < SMALL
    a = np.sqrt(np.where(small, 1.0, s))
    return np.where(small, _series(s, 1.0, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880), np.sin(a) / a)


def cosine_ratio(s: Any) -> Any:
    """(1 − cos a)/a² of s = a²."""
    return 0.5 * sine_ratio(0.25 * s) ** 2


def _cosine(s: Any) -> Any:
    """cos a of s = a²."""
    small = s < SMALL
    a = np.sqrt(np.where(small, 1.0, s))
    return np.where(small, _series(s, 1.0, -1 / 2, 1 / 24, -1 / 720, 1 / 40320), np.cos(a))


def wrap_angle(a: Any) -> Any:
    """The same angle between −π and π.

    >>> import riesz as rz
    >>> round(float(rz.manifolds.wrap_angle(7.0)), 6)
    0.716815
    """
    return np.arctan2(np.sin(a), np.cos(a))


# -- quaternions -----------------------------------------------------------------------------------------------


def quaternion_product(p: Any, q: Any) -> Any:
    """p q: first the rotation q, then p.

    >>> import numpy as np, riesz as rz
    >>> half = np.array([1.0, 0.0, 0.0, 0.0])  # half a turn about x
    >>> rz.manifolds.quaternion_product(half, half)
    array([ 0.,  0.,  0., -1.])
    """
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    real = a * b - np.sum(u * v, axis=-1, keepdims=True)
    return np.concatenate([a * v + b * u + np.cross(u, v), real], axis=-1)


def quaternion_inverse(q: Any) -> Any:
    """The inverse of a unit quaternion, its conjugate.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.quaternion_inverse(np.array([0.6, 0.0, 0.0, 0.8])) + 0.0
    array([-0.6,  0. ,  0. ,  0.8])
    """
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def quaternion_rotate(q: Any, x: Any) -> Any:
    """The vectors x, turned by unit quaternions.

    >>> import numpy as np, riesz as rz
    >>> q = rz.manifolds.quaternion_exp(np.array([0.0, 0.0, np.pi / 2]))
    >>> rz.manifolds.quaternion_rotate(q, np.array([1.0, 0.0, 0.0])).round(12) + 0.0
    array([0., 1., 0.])
    """
    v, w = q[..., :3], q[..., 3:]
    t = 2.0 * np.cross(v, x)
    return x + w * t + np.cross(v, t)


def quaternion_exp(w: Any) -> Any:
    """The unit quaternion of a rotation vector, axis times angle.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.quaternion_exp(np.array([np.pi, 0.0, 0.0])).round(12)
    array([1., 0., 0., 0.])
    """
    s = 0.25 * np.sum(w * w, axis=-1, keepdims=True)
    return np.concatenate([0.5 * sine_ratio(s) * w, _cosine(s)], axis=-1)


def quaternion_log(q: Any) -> Any:
    """The rotation vector of a unit quaternion, of length at most π.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.quaternion_log(np.array([0.0, 0.0, 1.0, 0.0])).round(6)
    array([0.      , 0.      , 3.141593])
    """
    v, w = q[..., :3], q[..., 3:]
    s = np.sum(v * v, axis=-1, keepdims=True)
    sign = np.where(w < 0, -1.0, 1.0)
    near = s < 1e-6
    size, real = np.sqrt(np.where(near, 1.0, s)), np.where(near, w, 1.0)
    t = s / real**2  # tan² of half the angle
    small = 2.0 * _series(t, 1.0, -1 / 3, 1 / 5, -1 / 7) / real
    return np.where(near, small, 2.0 * sign * np.arctan2(size, sign * w) / size) * v


def quaternion_to_matrix(q: Any) -> Any:
    """The 3 × 3 matrices of unit quaternions.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.quaternion_to_matrix(np.array([1.0, 0.0, 0.0, 0.0]))
    array([[ 1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0., -1.]])
    """
    columns = [quaternion_rotate(q, np.broadcast_to(e, (*np.shape(q)[:-1], 3))) for e in np.eye(3)]
    return np.stack(columns, axis=-1)


def matrix_to_quaternion(R: Any) -> Any:
    """The unit quaternions of rotation matrices; the largest of the four numbers is positive.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.matrix_to_quaternion(np.diag([1.0, -1.0, -1.0])) + 0.0
    array([1., 0., 0., 0.])
    """
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xy, xz, yz = R[..., 1, 0] + R[..., 0, 1], R[..., 0, 2] + R[..., 2, 0], R[..., 2, 1] + R[..., 1, 2]
    x, y, z = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    squares = [1.0 + a - b - c, 1.0 - a + b - c, 1.0 - a - b + c, 1.0 + a + b + c]  # four times each
    rows = [  # row i is 4 qᵢ q
        np.stack([squares[0], xy, xz, x], axis=-1),
        np.stack([xy, squares[1], yz, y], axis=-1),
        np.stack([xz, yz, squares[2], z], axis=-1),
        np.stack([x, y, z, squares[3]], axis=-1),
    ]
    best, largest = rows[3], squares[3]
    for row, square in zip(rows[:3], squares[:3], strict=True):
        better = square > largest
        best = np.where(np.expand_dims(better, -1), row, best)
        largest = np.where(better, square, largest)
    return best / np.sqrt(np.sum(best * best, axis=-1, keepdims=True))


# -- rotation vectors and matrices -----------------------------------------------------------------------------


def rotation_exp(w: Any) -> Any:
    """The rotation matrices of rotation vectors (Rodrigues).

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.rotation_exp(np.array([0.0, 0.0, np.pi])).round(12) + 0.0
    array([[-1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0.,  1.]])
    """
    return quaternion_to_matrix(quaternion_exp(w))


def rotation_log(R: Any) -> Any:
    """The rotation vectors of rotation matrices, of length at most π.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.rotation_log(np.diag([-1.0, -1.0, 1.0])).round(6)
    array([0.      , 0.      , 3.141593])
    """
    return quaternion_log(matrix_to_quaternion(R))


def rotate(w: Any, x: Any) -> Any:
    """The vectors x, turned by rotation vectors w: cameras of bundle adjustment.

    >>> import numpy as np, riesz as rz
    >>> rz.jacobian(rz.manifolds.rotate)(np.zeros(3), np.array([1.0, 0.0, 0.0])).to_dense() + 0.0
    array([[ 0.,  0.,  0.],
           [ 0.,  0.,  1.],
           [ 0., -1.,  0.]])
    """
    s = np.sum(w * w, axis=-1, keepdims=True)
    t = np.cross(w, x)
    return x + sine_ratio(s) * t + cosine_ratio(s) * np.cross(w, t)
