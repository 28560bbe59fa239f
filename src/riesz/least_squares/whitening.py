"""Weights and information matrices: the residual times a root of them, as NumPy code that is traced with it."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import VectorError
from ..manifolds.prefix_trees import spread
from ..tracing.argument_trees import flatten, unflatten


def whitened(residual: Callable[..., Any], weights: Any, information: Any) -> Callable[..., Any]:
    """The residual whose squares are those of `residual` times weights, rᵀ Ω r with an information matrix Ω."""

    def value(x: Any, *args: Any) -> Any:
        leaves, tree = flatten(residual(x, *args))
        roots = [_roots(given, tree, len(leaves), what, root) for given, what, root in _kinds(weights, information)]
        found: list[Any] = []
        for y, w, U in zip(leaves, *roots, strict=True):
            z = y if w is None else _fitting(w, y) * y
            found.append(z if U is None else _matrices(U, z))
        return unflatten(tree, found)

    return value


def _kinds(weights: Any, information: Any) -> list[tuple[Any, str, Callable[[Any], Any]]]:
    """Both kinds, with their roots."""
    return [(weights, "weights", _scales), (information, "information", _factors)]


def _roots(given: Any, tree: Any, count: int, what: str, root: Callable[[Any], Any]) -> list[Any]:
    several = isinstance(given, (dict, tuple, list)) and not (isinstance(given, list) and np.ndim(given))
    said = spread(given, tree, count, what) if several else [given] * count
    return [None if s is None else root(s) for s in said]


def _scales(w: Any) -> Any:
    w = np.asarray(w, float)
    if not (w >= 0).all():
        raise VectorError("weights: numbers of at least 0 are due")
    return np.sqrt(w)


def _factors(given: Any) -> Any:
    """Lᵀ with L Lᵀ = W."""
    W = np.asarray(given, float)
    if W.ndim < 2 or W.shape[-1] != W.shape[-2] or not np.allclose(W, np.swapaxes(W, -1, -2)):
        raise VectorError(f"information: symmetric matrices (…, m, m) are due; got shape {W.shape}")
    try:
        return np.swapaxes(np.linalg.cholesky(W), -1, -2)
    except np.linalg.LinAlgError:
        raise VectorError("information: positive definite matrices are due") from None


def _fitting(w: Any, y: Any) -> Any:
    """Weights of numbers, or of rows of numbers."""
    shape = np.shape(y)
    if w.ndim and w.shape != shape and w.shape == shape[: w.ndim]:
        return w.reshape(*w.shape, *[1] * (len(shape) - w.ndim))
    return w


def _matrices(U: Any, y: Any) -> Any:
    """U y along the last axis."""
    if U.shape[-1] != np.shape(y)[-1]:
        raise VectorError(f"information: {U.shape[-1]} × {U.shape[-1]} matrices, and rows of {np.shape(y)[-1]} numbers")
    return np.einsum("...ij,...j->...i", U, y)
