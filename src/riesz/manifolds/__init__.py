"""Manifolds for derivatives and least squares, and poses, rotations and projections as NumPy functions.

>>> import numpy as np, riesz as rz
>>> from riesz.manifolds import SO3
>>> x, y = SO3.random(2, seed=0)
>>> bool(np.allclose(SO3.retract(x, SO3.local(x, y)), y))
True
"""

from .lie_groups import SE2, SE3, SO2, SO3, UnitQuaternions
from .manifold import Euclidean, Manifold, ProductManifold, product
from .matrix_manifolds import SPD, Sphere, Stiefel
from .poses import (
    pinhole,
    pose2_angle,
    pose2_between,
    pose2_inverse,
    pose2_product,
    pose_apply,
    pose_between,
    pose_inverse,
    pose_product,
    pose_to_local,
    radial,
)
from .rotations import (
    matrix_to_quaternion,
    quaternion_exp,
    quaternion_inverse,
    quaternion_log,
    quaternion_product,
    quaternion_rotate,
    quaternion_to_matrix,
    rotate,
    rotation_exp,
    rotation_log,
    wrap_angle,
)

__all__ = ["SE2", "SE3", "SO2", "SO3", "SPD", "Euclidean", "Manifold", "ProductManifold", "Sphere", "Stiefel"]
__all__ += ["UnitQuaternions", "matrix_to_quaternion", "pinhole", "pose2_angle", "pose2_between", "pose2_inverse"]
__all__ += ["pose2_product", "pose_apply", "pose_between", "pose_inverse", "pose_product", "pose_to_local", "product"]
__all__ += ["quaternion_exp", "quaternion_inverse", "quaternion_log", "quaternion_product", "quaternion_rotate"]
__all__ += ["quaternion_to_matrix", "radial", "rotate", "rotation_exp", "rotation_log", "wrap_angle"]
