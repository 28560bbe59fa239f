"""Determinants and analytic functions of a matrix, with all their derivatives as multilinear forms.

The k-th derivative of such an f at A is symmetric in its k directions, so one op serves every order: its differential
in a direction is itself with that direction replaced, its differential in A is the next order, and its transposes are
itself again.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from ....ops.opaque import Ruled, Smooth
from ...differentials import plus
from .matrix_ops import applied, differential_of, each, real_part


def _directions(smooth: Smooth, d: Any, a: Any, ms: tuple[Any, ...], **named: Any) -> Any:
    """The differential of a form of this kind: each direction in turn, and one direction more."""
    parts = [applied(smooth, a, *ms[:i], dm, *ms[i + 1 :], **named) for i, dm in enumerate(d[1:]) if dm is not None]
    return plus(*parts, None if d[0] is None else applied(smooth, a, *ms, d[0], **named))


def _cofactors_array(a: Any, *ms: Any) -> Any:
    """The gradient in A of D^(k−1)det(A)[M₁, …]; for k = 1 the cofactors.

    With A = U·diag(s)·Vᵀ it is det(U)·det(V) · U·G·Vᵀ; for diagonal matrices the derivative is a sum over k distinct
    rows and their permutations π: Σ sign(π) · (Π of the other sⱼ) · Π Mₗ[iₗ, i_π(l)]. Nothing is divided by, so it
    holds for every rank.
    """
    shape = a.shape
    if a.ndim > 2 and a.shape[0] > 1 and a.strides[0] == 0:  # one matrix along the leading axis: factorised once
        a = a[:1]
    k, n = len(ms) + 1, a.shape[-1]
    good = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    if not good.all():  # the others may be in a branch not taken
        return np.where(good, _cofactors_array(np.where(good, a, a.dtype.type(0)), *ms), a.dtype.type(np.nan))
    u, s, vh = np.linalg.svd(a)
    others = np.ones((*s.shape[:-1], *(1,) * k), s.dtype)
    for j in range(n):
        free = np.ones((n,) * k, bool)
        for axis in range(k):
            free &= (np.arange(n) != j).reshape(tuple([-1 if i == axis else 1 for i in range(k)]))
        others = others * np.where(free, s[..., j][(..., *(None,) * k)], s.dtype.type(1))
    turned = [u.mT @ m @ vh.mT for m in ms]
    lead = np.broadcast_shapes(a.shape[:-2], *[m.shape[:-2] for m in ms])
    form = np.zeros((*lead, n, n), s.dtype)
    einsum: Any = np.einsum
    if n:
        for order in permutations(range(k)):
            operands: list[Any] = [others, [..., *range(k)]]
            for row, m in enumerate(turned):
                operands += [m, [..., row, order[row]]]
            if order[-1] == k - 1:
                part = einsum(*operands, [..., k - 1])[..., :, None] * np.eye(n, dtype=s.dtype)
            else:
                part = einsum(*operands, [..., k - 1, order[-1]])
            form = form - part if np.linalg.det(np.eye(k)[list(order)]) < 0 else form + part
    orientation = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return np.broadcast_to((orientation * (u @ form @ vh)).astype(s.dtype), shape)


def _cofactors_differential(d: Any, y: Any, a: Any, *ms: Any) -> Any:
    return _directions(COFACTORS, d, a, ms)


COFACTORS = Smooth(
    "cofactors", _cofactors_array, lambda a, *ms: a, _cofactors_differential, lambda k: Ruled(COFACTORS), mixes=(-2, -1)
)


@differential_of("det", np.linalg.det, lambda a: a[:-2])
def DET(d: Any, y: Any, a: Any) -> Any:
    return np.sum(applied(COFACTORS, a) * d[0], axis=(-2, -1))


def _analytic(name: str) -> Smooth:
    """A function of SciPy that takes a matrix to a matrix of the same shape through its power series."""

    def array(a: Any, *ms: Any, at: int) -> Any:
        """D^k f(A)[M₁, …]: the corner of f of a block triangular matrix whose blocks are A and the directions.

        `at` names the argument that holds a cotangent, if one does: then everything else is transposed.
        """
        import scipy.linalg

        if at:
            a, ms = a.mT, tuple([m if i == at else m.mT for i, m in enumerate(ms, 1)])
        n, count = a.shape[-1], 2 ** len(ms)
        if not n:
            return np.zeros_like(a)
        big = np.zeros((*a.shape[:-2], count, n, count, n), a.dtype)
        for row in range(count):  # a block is a set of directions; the block one direction further on is that direction
            big[..., row, :, row, :] = a
            for i, m in enumerate(ms):
                if not row >> i & 1:
                    big[..., row, :, row | 1 << i, :] = m
        function = getattr(scipy.linalg, name)
        wide = big.reshape((*a.shape[:-2], count * n, count * n))
        found = each(lambda x: real_part(np.asarray(function(x)), a.dtype, name), wide)
        return found[..., :n, (count - 1) * n :]

    def differential(d: Any, y: Any, a: Any, *ms: Any, at: int) -> Any:
        return _directions(own, d, a, ms, at=at)

    def transpose(k: int, *, at: int) -> Ruled:
        return Ruled(own, (("at", k if not at else 0 if at == k else at),))

    own = Smooth(name, array, lambda a, *ms, at: a, differential, transpose, mixes=(-2, -1))
    return own


ANALYTIC = {name: _analytic(name) for name in ("expm", "logm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")}
