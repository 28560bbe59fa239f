"""Unit vectors, orthonormal columns, and positive definite matrices."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import VectorError
from .lie_groups import TOLERANCE
from .manifold import Manifold
from .rotations import sine_ratio


def _dot(a: Any, b: Any) -> Any:
    return np.sum(a * b, axis=-1, keepdims=True)


def _reflected(u: Any, x: Any) -> Any:
    """x reflected at the plane normal to u, along the last axis."""
    return x - u * (2.0 * _dot(u, x) / _dot(u, u))


class SphereManifold(Manifold):
    """Unit vectors along the last axis; geodesics are great circles.

    >>> import numpy as np, riesz as rz
    >>> x = np.array([0.0, 0.0, 1.0])
    >>> rz.grad(lambda x: x @ np.array([1.0, 2.0, 3.0]), manifold=rz.manifolds.Sphere)(x).shape
    (2,)
    """

    def tangent(self, x: Any) -> Any:
        return np.zeros((*np.shape(x)[:-1], np.shape(x)[-1] - 1))

    def _normal(self, x: Any) -> Any:
        """What is reflected at to take the last axis to x or −x, whichever is farther."""
        last = np.zeros(np.shape(x)[-1])
        last[-1] = 1.0
        return x + np.where(x[..., -1:] < 0, -1.0, 1.0) * last

    def _lifted(self, x: Any, v: Any) -> Any:
        """A tangent vector as a vector of the space around."""
        return _reflected(self._normal(x), np.concatenate([v, np.zeros((*np.shape(v)[:-1], 1))], axis=-1))

    def retract(self, x: Any, v: Any) -> Any:
        s = _dot(v, v)
        half = 0.25 * s
        cosine = 1.0 - 2.0 * half * sine_ratio(half) ** 2
        return cosine * x + sine_ratio(s) * self._lifted(x, v)

    def local(self, x: Any, y: Any) -> Any:
        cosine = _dot(x, y)
        across = y - cosine * x
        s = _dot(across, across)
        near = (s < 1e-6) & (cosine > 0)
        size = np.sqrt(np.where(s < 1e-30, 1.0, s))
        t = s / np.where(near, cosine, 1.0) ** 2  # tan² of the angle
        series = (1.0 + t * (-1.0 / 3.0 + t * (0.2 - t / 7.0))) / np.where(near, cosine, 1.0)
        factor = np.where(near, series, np.arctan2(size, cosine) / size)
        return _reflected(self._normal(x), factor * across)[..., :-1]

    def contains(self, x: Any) -> bool:
        return bool((np.abs(np.sum(np.asarray(x) ** 2, axis=-1) - 1.0) < TOLERANCE).all())

    def random(self, *shape: int, seed: Any = None) -> Any:
        """Points of a shape, uniformly distributed."""
        x = np.random.default_rng(seed).standard_normal(shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)


class StiefelManifold(Manifold):
    """Matrices (…, n, p) with orthonormal columns; retraction by QR. Tangent coordinates: the skew part of xᵀV, each
    pair times √2, and the part of V orthogonal to x.

    >>> import numpy as np, riesz as rz
    >>> S = rz.manifolds.Stiefel
    >>> x = S.random(5, 2, seed=0)
    >>> bool(np.allclose(x.T @ x, np.eye(2))), S.tangent(x).shape
    (True, (7,))
    """

    axes = 2
    connection = "of the QR retraction: the Riemannian Hessian where the gradient is 0, otherwise to first order"

    def _size(self, x: Any) -> tuple[int, int]:
        shape = np.shape(x)
        if len(shape) < 2 or shape[-2] < shape[-1]:
            raise VectorError(f"Stiefel: arrays (…, n, p) with n ≥ p are due; got shape {shape}")
        return shape[-2], shape[-1]

    def tangent(self, x: Any) -> Any:
        n, p = self._size(x)
        return np.zeros((*np.shape(x)[:-2], p * (p - 1) // 2 + (n - p) * p))

    def _reflections(self, x: Any) -> list[Any]:
        """Vectors of reflections whose product takes the first axes to ± the columns of x."""
        n, p = self._size(x)
        columns, found = [x[..., k] for k in range(p)], []
        for k in range(p):
            e = np.zeros(n)
            e[k] = 1.0
            below = columns[k] * (np.arange(n) >= k)
            u = below + np.where(columns[k][..., k : k + 1] < 0, -1.0, 1.0) * e
            found.append(u)
            columns = [_reflected(u, c) for c in columns]
        return found

    def _lifted(self, x: Any, v: Any) -> Any:
        """A tangent vector as an n × p matrix."""
        n, p = self._size(x)
        pairs = p * (p - 1) // 2
        i, j = np.triu_indices(p, 1)
        basis = np.zeros((pairs, p, p))
        basis[np.arange(pairs), i, j], basis[np.arange(pairs), j, i] = math.sqrt(0.5), -math.sqrt(0.5)
        inside = x @ np.einsum("...k,kij->...ij", v[..., :pairs], basis)
        if n == p:
            return inside
        rest = np.reshape(v[..., pairs:], (*np.shape(v)[:-1], p, n - p))
        outside = np.concatenate([np.zeros((*np.shape(v)[:-1], p, p)), rest], axis=-1)  # rows are columns here
        for u in reversed(self._reflections(x)):
            outside = _reflected(np.expand_dims(u, -2), outside)
        return inside + np.swapaxes(outside, -1, -2)

    def _coordinates(self, x: Any, V: Any) -> Any:
        n, p = self._size(x)
        i, j = np.triu_indices(p, 1)
        inside = (np.swapaxes(x, -1, -2) @ V)[..., i, j] * math.sqrt(2.0)
        if n == p:
            return inside
        rows = np.swapaxes(V, -1, -2)
        for u in self._reflections(x):
            rows = _reflected(np.expand_dims(u, -2), rows)
        rest = rows[..., p:]
        return np.concatenate([inside, np.reshape(rest, (*np.shape(rest)[:-2], p * (n - p)))], axis=-1)

    def retract(self, x: Any, v: Any) -> Any:
        _, p = self._size(x)
        V = self._lifted(x, v)
        L = np.linalg.cholesky(np.eye(p) + np.swapaxes(V, -1, -2) @ V)
        return np.swapaxes(np.linalg.solve(L, np.swapaxes(x + V, -1, -2)), -1, -2)

    def local(self, x: Any, y: Any) -> Any:
        _, p = self._size(x)
        A = np.swapaxes(x, -1, -2) @ y
        columns: list[Any] = []  # of the triangle R with x + V = y R, so A R + RᵀAᵀ = 2 I
        for k in range(p):
            known = [-np.sum(A[..., k, : i + 1] * columns[i][..., : i + 1], axis=-1) for i in range(k)]
            right = np.stack([*known, np.ones(np.shape(A)[:-2])], axis=-1)
            r = np.linalg.solve(A[..., : k + 1, : k + 1], np.expand_dims(right, -1))[..., 0]
            columns.append(np.concatenate([r, np.zeros((*np.shape(r)[:-1], p - k - 1))], axis=-1))
        R = np.stack(columns, axis=-1)
        return self._coordinates(x, y @ R - x)

    def contains(self, x: Any) -> bool:
        given = np.asarray(x)
        _, p = self._size(x)
        return bool((np.abs(np.swapaxes(given, -1, -2) @ given - np.eye(p)) < TOLERANCE).all())

    def random(self, *shape: int, seed: Any = None) -> Any:
        """Points of a shape (…, n, p)."""
        Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal(shape))
        return Q * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[..., None, :]


class SPDManifold(Manifold):
    """Symmetric positive definite matrices (…, n, n), with the log-Cholesky metric: x = L Lᵀ, and tangent vectors are
    the logarithms of the diagonal of L and its entries below, row by row.

    >>> import numpy as np, riesz as rz
    >>> P = rz.manifolds.SPD
    >>> A = P.retract(np.eye(2), P.local(np.eye(2), np.diag([2.0, 3.0])))
    >>> A.round(6) + 0.0
    array([[2., 0.],
           [0., 3.]])
    """

    axes = 2
    connection = "Levi-Civita of the log-Cholesky metric: retractions are geodesics"

    def tangent(self, x: Any) -> Any:
        n = np.shape(x)[-1]
        return np.zeros((*np.shape(x)[:-2], n * (n + 1) // 2))

    def retract(self, x: Any, v: Any) -> Any:
        n = np.shape(x)[-1]
        i, j = np.tril_indices(n)
        basis = np.zeros((len(i), n, n))
        basis[np.arange(len(i)), i, j] = 1.0
        L, V = np.linalg.cholesky(x), np.einsum("...k,kij->...ij", v, basis)
        below = np.tril(np.ones((n, n)), -1)
        moved = below * (L + V) + np.eye(n) * L * np.exp(np.eye(n) * V)
        return moved @ np.swapaxes(moved, -1, -2)

    def local(self, x: Any, y: Any) -> Any:
        n = np.shape(x)[-1]
        i, j = np.tril_indices(n)
        A, B = np.linalg.cholesky(x)[..., i, j], np.linalg.cholesky(y)[..., i, j]
        diagonal = i == j
        ratio = np.where(diagonal, B / np.where(diagonal, A, 1.0), 1.0)
        return np.where(diagonal, np.log(ratio), B - A)

    def contains(self, x: Any) -> bool:
        given = np.asarray(x)
        symmetric = np.abs(given - np.swapaxes(given, -1, -2)) <= TOLERANCE * np.abs(given).max(initial=0.0)
        return bool(symmetric.all() and (np.linalg.eigvalsh(given) > 0).all())

    def random(self, *shape: int, seed: Any = None) -> Any:
        """Points of a shape (…, n, n)."""
        A = np.random.default_rng(seed).standard_normal(shape)
        return A @ np.swapaxes(A, -1, -2) + np.eye(shape[-1])


Sphere, Stiefel, SPD = SphereManifold(), StiefelManifold(), SPDManifold()
