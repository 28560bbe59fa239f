"""Xᵀ diag(w) X: half of a symmetric product says all of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.op import contraction
from ...relations.index_algebra import Labels
from ...runtime import tuning
from ...spaces.formal_vectors import dense
from .entries import Entry
from .index_maps import Sizes, size_of

Split = tuple[int, int, set[int]]


def twice(e: Entry, labels: Labels, sizes: Sizes) -> Split | None:
    """Two factors that are one array, its labels the same where they are summed and all different where they are not;
    and the summed ones. None where there are none, or the product is small."""
    if any([f.strong for f in e.factors]):
        return None
    outer = set(labels)
    for i, f in enumerate(e.factors):
        for j in range(i + 1, len(e.factors)):
            g = e.factors[j]
            common = {a for a, b in zip(f.labels, g.labels, strict=False) if a == b}
            apart = [k for ls in (f.labels, g.labels) for k in ls if k not in common]
            rest = {k for m, h in enumerate(e.factors) if m not in (i, j) for k in h.labels}
            fits = f.slot == g.slot and not common & outer and len(apart) == len(outer) and set(apart) == outer
            if fits and common and rest <= common and len(set(f.labels)) == len(f.labels):
                work = size_of(labels, sizes) * size_of(common, sizes)
                return (i, j, common) if work >= tuning.SYMMETRIC_MULTIPLICATIONS else None
    return None


def gram(e: Entry, split: Split, labels: Labels, numbers: dict[int, Any], dtype: Any) -> Any:
    """The product of an entry's factors, one array twice, weighed where it is summed; times its scale."""
    first, second, common = split
    mine, other = e.factors[first].labels, e.factors[second].labels
    out = [i for i, k in enumerate(mine) if k not in common]
    inner = [i for i, k in enumerate(mine) if k in common]
    whole = np.asarray(dense(numbers[e.factors[first].slot]), dtype).transpose([*inner, *out])
    depth, shape = whole.shape[: len(inner)], whole.shape[len(inner) :]
    X = whole.reshape(int(np.prod(depth)), int(np.prod(shape)))
    rest = [f for i, f in enumerate(e.factors) if i not in (first, second)]
    weights: Any = np.full(len(X), e.scale, dtype)
    if rest:
        summed = tuple([mine[i] for i in inner])
        have = {k for f in rest for k in f.labels}
        extra = {k: n for k, n in zip(summed, depth, strict=True) if k not in have}
        op = contraction(tuple([f.labels for f in rest]), summed, extra)
        weights = np.asarray(dense(op.run(*[numbers[f.slot] for f in rest])), dtype).reshape(-1) * weights
    product = _squared(X, weights).reshape([*shape, *shape])
    order = [*[mine[i] for i in out], *[other[i] for i in out]]
    return product.transpose([order.index(k) for k in labels])


def _squared(X: Any, w: Any) -> Any:
    """Xᵀ diag(w) X as ±(√|w| X)ᵀ(√|w| X), by sign: NumPy computes one half of such a product."""
    Y = np.sqrt(np.abs(w))[:, None] * X
    minus = w < 0
    if not minus.any():
        return Y.T @ Y
    if minus.all():
        return -(Y.T @ Y)
    above, below = Y[~minus], Y[minus]
    return above.T @ above - below.T @ below
