"""Xᵀ diag(w) X: half of a symmetric product says all of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import contraction
from ...relations.index_algebra import Labels
from ...runtime import tuning
from ...spaces.formal_vectors import dense
from .entries import Entry
from .index_maps import Sizes, size_of


def symmetric(e: Entry, labels: Labels, sizes: Sizes) -> bool:
    """Whether `gram` has a product for an entry."""
    split = _twice(e, labels)
    return split is not None and size_of(labels, sizes) * size_of(split[2], sizes) >= tuning.SYMMETRIC_MULTIPLICATIONS


def gram(e: Entry, labels: Labels, numbers: dict[int, Any], dtype: Any) -> Any:
    """The product of an entry's factors, times its scale, summed to some labels; None where it is not one array twice,
    weighed where it is summed."""
    split = _twice(e, labels)
    if split is None:
        return None
    first, second, common = split
    slot = e.factors[first].slot
    mine, other = e.factors[first].labels, e.factors[second].labels
    out = [i for i, k in enumerate(mine) if k not in common]
    inner = [i for i, k in enumerate(mine) if k in common]
    whole = np.asarray(dense(numbers[slot]), dtype)
    shape = [whole.shape[i] for i in out]
    n, depth = math.prod(shape), math.prod([whole.shape[i] for i in inner])
    if n * n * depth < tuning.SYMMETRIC_MULTIPLICATIONS:
        return None
    X = whole.transpose([*inner, *out]).reshape(depth, n)
    rest = [f for i, f in enumerate(e.factors) if i not in (first, second)]
    weights: Any = np.full(depth, e.scale, dtype)
    if rest:
        summed = tuple([mine[i] for i in inner])
        sizes = {mine[i]: whole.shape[i] for i in inner}
        have = {k for f in rest for k in f.labels}
        op = contraction(tuple([f.labels for f in rest]), summed, {k: m for k, m in sizes.items() if k not in have})
        weights = np.asarray(dense(op.run(*[numbers[f.slot] for f in rest])), dtype).reshape(depth) * weights
    product = _squared(X, weights).reshape([*shape, *shape])
    order = [*[mine[i] for i in out], *[other[i] for i in out]]
    return product.transpose([order.index(k) for k in labels])


def _twice(e: Entry, labels: Labels) -> tuple[int, int, set[int]] | None:
    """Two factors that are one array, its labels the same where they are summed and all different where they are not;
    and the summed ones."""
    if any([f.strong for f in e.factors]):
        return None
    outer = set(labels)
    for i, f in enumerate(e.factors):
        for j in range(i + 1, len(e.factors)):
            g = e.factors[j]
            common = {a for a, b in zip(f.labels, g.labels, strict=False) if a == b}
            apart = [k for ls in (f.labels, g.labels) for k in ls if k not in common]
            rest = {k for m, h in enumerate(e.factors) if m not in (i, j) for k in h.labels}
            fits = (
                f.slot == g.slot
                and not common & outer
                and len(set(apart)) == len(apart) == len(outer)
                and set(apart) == outer
            )
            if fits and common and rest <= common and len(set(f.labels)) == len(f.labels):
                return i, j, common
    return None


def _squared(X: Any, w: Any) -> Any:
    """Xᵀ diag(w) X as ±(√|w| X)ᵀ(√|w| X), rows of either sign apart: NumPy computes one half of a product with the
    transpose."""
    Y = np.sqrt(np.abs(w))[:, None] * X
    minus = w < 0
    if not minus.any():
        return Y.T @ Y
    if minus.all():
        return -(Y.T @ Y)
    above, below = Y[~minus], Y[minus]
    return above.T @ above - below.T @ below
