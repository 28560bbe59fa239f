"""Norms of vectors and matrices. The derivative of a norm at 0 is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....terms import primitives as p
from ...registry import answers
from ...traced import convert, primitive_step
from ..elementwise import discrete, floating
from ..rearranging import axes_of, kept_shape
from .matrix_ops import NUCLEAR, applied, inverse, svd

NORM = "root of a sum of squares; for other orders sums, powers, extrema and singular values"
NORM_RULE = "of the parts; 0 at 0"


def _order(ord: Any) -> Any:
    return float(ord) if isinstance(ord, (int, float, np.number)) else ord


def _vector_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The norm along axes taken as one."""
    over: Any = {"axis": axis, "keepdims": keepdims}
    match _order(ord):
        case None | 2.0:
            return primitive_step(p.root, np.sum(x * x, **over))
        case 1.0:
            return np.sum(np.absolute(x), **over)
        case 0.0:
            return np.sum(convert(discrete(np.not_equal, x, 0.0), x.dtype), **over)
        case np.inf if not x.size:
            return np.sum(x, **over)
        case float() as k if np.isinf(k):
            return (np.max if k > 0 else np.min)(np.absolute(x), **over)
        case float() as k:
            whole = np.sum(np.absolute(x) ** k, **over)
            if k < 0:
                return whole ** (1.0 / k)
            nothing = whole == 0.0  # its derivative there is 0
            return np.where(nothing, 0.0, np.where(nothing, 1.0, whole) ** (1.0 / k))
        case _:
            raise ValueError(f"Invalid norm order {ord!r} for vectors")


def _matrix_norm(x: Any, ord: Any) -> Any:
    """The norm of the matrices in the last two axes."""
    if not all(x.shape[-2:]) and _order(ord) in ("nuc", 2.0, 1.0, np.inf):  # 0 where there is nothing
        return np.sum(x, axis=(-2, -1))
    match _order(ord):
        case None | "fro" | "f":
            return primitive_step(p.root, np.sum(x * x, axis=(-2, -1)))
        case "nuc":
            return applied(NUCLEAR, x)
        case 2.0:
            return svd(x)[1][..., 0]
        case -2.0:
            return svd(x)[1][..., -1]
        case float() as k if abs(k) in (1.0, np.inf):
            sums = np.sum(np.absolute(x), axis=-2 if abs(k) == 1.0 else -1)
            return (np.max if k > 0 else np.min)(sums, axis=-1)
        case _:
            raise ValueError("Invalid norm order for matrices.")


@answers(np.linalg.norm, what=NORM, rule=NORM_RULE)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = floating(x)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            found = _vector_norm(x, None, None, False)
            return np.reshape(found, (1,) * x.ndim) if keepdims else found
        if x.ndim not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    gone = axes_of(axis, x.ndim)
    if len(gone) == 1:
        return _vector_norm(x, ord, gone, keepdims)
    if len(gone) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    found = _matrix_norm(np.moveaxis(x, gone, (-2, -1)), ord)
    return np.reshape(found, kept_shape(x.shape, gone)) if keepdims else found


@answers(np.linalg.vector_norm, what=NORM, rule=NORM_RULE)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    x = floating(x)
    return _vector_norm(x, ord, axes_of(axis, x.ndim), keepdims)


@answers(np.linalg.matrix_norm, what=NORM, rule=NORM_RULE)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    found = _matrix_norm(floating(x), ord)
    return found[..., None, None] if keepdims else found


@answers(np.linalg.cond, what="quotient of singular values, or ‖A‖·‖A⁻¹‖", rule="of the parts")
def cond(x: Any, p: Any = None) -> Any:
    x = floating(x)
    if p is None or p in (2, -2):
        s = svd(x)[1]
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return _matrix_norm(x, p) * _matrix_norm(inverse(x, strict=False), p)
