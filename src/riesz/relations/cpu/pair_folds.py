"""Maxima, minima, products and ln Σ exp over the pairs of a function, and the shares of its sources in an extremum.

Arrays have shape (…, |source|, …) with `behind` axes after that of the source. A target without pairs has the neutral
element: −∞, ∞, 1, −∞.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..index_sets import Array

if TYPE_CHECKING:
    from ..base import Relation

UFUNCS: dict[str, Any] = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}
NEUTRAL = {"max": -math.inf, "min": math.inf, "prod": 1.0, "logsumexp": -math.inf}


def folded(x: Any, *, relation: Relation, behind: int, title: str) -> Array:
    """The fold called `title` along a relation in which each source has one target."""
    v, shape = _three(x, behind), folded_shape(np.shape(x), relation=relation, behind=behind)
    return (_log_sum(relation, v) if title == "logsumexp" else _fold(relation, v, title)).reshape(shape)


def folded_shape(shape: tuple[int, ...], *, relation: Relation, behind: int, **_: Any) -> tuple[int, ...]:
    """The shape of a fold."""
    at = len(shape) - behind - 1
    return (*shape[:at], relation.target.size, *shape[at + 1 :])


def shares(x: Any, y: Any, *, relation: Relation, behind: int) -> Array:
    """The part that each source has in an extremum y: 1 / k where k pairs attain it, 0 elsewhere; in the type of x."""
    back, at = relation.converse, _three(x, behind)
    at = (at == back.reduce(_three(y, behind))).astype(at.dtype)
    count = relation.reduce(at)
    if not (count == 1).all():
        at = at / np.maximum(back.reduce(count), 1)  # nan: nobody attains it
    return at.reshape(np.shape(x))


def _three(x: Any, behind: int) -> Array:
    """An array with the axes before the source's and those behind it each as one."""
    x = np.asarray(x)
    at = x.ndim - behind - 1
    return x.reshape(math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :]))


def _fold(relation: Any, v: Array, title: str) -> Array:
    ufunc, end = UFUNCS[title], NEUTRAL[title]
    if v.dtype.kind in "biu" and math.isinf(end):
        end = np.iinfo(v.dtype).min if end < 0 else np.iinfo(v.dtype).max
    a, n, b = v.shape
    m = relation.target.size
    index = getattr(relation, "index", None)
    y = np.full((a, m, b), end, v.dtype)
    if index is None and b == 1 and n > 4 * m:  # long segments
        some = np.flatnonzero(np.diff(relation.offsets))
        y[:, some, 0] = ufunc.reduceat(v[..., 0], relation.offsets[some], axis=1) if a else 0
        return y
    at: Any = relation.ids if index is None else index
    if a * b != 1:  # NumPy is fast on one axis
        at = cast(Any, np.arange)(a * m * b).reshape(a, m, b)[:, at].reshape(-1)
    with np.errstate(invalid="ignore"):  # it warns of nan, unlike np.maximum
        ufunc.at(y.reshape(-1), at, v.reshape(-1))
    return y


def _log_sum(relation: Any, v: Array) -> Array:
    top = _fold(relation, v, "max")
    top = np.where(np.isfinite(top), top, v.dtype.type(0))
    with np.errstate(divide="ignore"):
        return np.log(relation.reduce(np.exp(v - relation.converse.reduce(top)))) + top


def products_of_others(x: Any, dx: Any = None, *, relation: Relation, behind: int, xp: Any = np) -> tuple[Any, Any]:
    """The product of the other sources with the same target, and its differential at dx (None: not asked).

    By a tree of products, so it is right with zeros. `xp`: whose functions make it.
    """
    axis, groups = x.ndim - behind - 1, relation.groups
    take, join = partial(xp.take, axis=axis), partial(xp.concatenate, axis=axis)
    known = cast("dict[str, Any]", relation.__dict__)
    if "_products" not in known:
        back = None if groups.index is None else np.argsort(groups.index)
        known["_products"] = _tree(groups.offsets), back
    levels, back = known["_products"]
    now = [x] if dx is None else [x, dx]
    now = now if groups.index is None else [take(v, groups.index) for v in now]
    one = np.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
    wide: list[list[Any]] = []
    for _, sibling, left in levels:  # from sources to targets
        wide.append([join([v, end]) for v, end in zip(now, (one, 0 * one), strict=False)])
        now = _multiplied([take(v, left) for v in now], [take(v, sibling[left]) for v in wide[-1]])
    ones = np.ones((*x.shape[:axis], len(np.flatnonzero(np.diff(groups.offsets))), *x.shape[axis + 1 :]), x.dtype)
    found: list[Any] = [ones, 0 * ones][: len(now)]
    for (parent, sibling, _), beside in zip(reversed(levels), reversed(wide), strict=True):  # and back
        found = _multiplied([take(v, parent) for v in found], [take(v, sibling) for v in beside])
    found = found if back is None else [take(v, back) for v in found]
    return found[0], found[-1] if dx is not None else None


def _multiplied(a: list[Any], b: list[Any]) -> list[Any]:
    return [a[0] * b[0]] if len(a) == 1 else [a[0] * b[0], a[1] * b[0] + a[0] * b[1]]


def _tree(offsets: Array) -> list[tuple[Array, Array, Array]]:
    """Sources of each target taken two by two, until one is left. At each level: where the product with the one beside
    goes, where that one is (behind the last: there is none), and which are the first of two."""
    sizes = np.diff(offsets).astype(np.intp)
    sizes, found = sizes[sizes > 0], list[tuple[Array, Array, Array]]()
    while len(sizes) and sizes.max() > 1:
        halves, n = (sizes + 1) // 2, int(sizes.sum())
        local = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        alone = (local % 2 == 0) & (local + 1 == np.repeat(sizes, sizes))
        sibling = np.where(alone, n, np.arange(n) + 1 - 2 * (local % 2))
        found.append(
            (np.repeat(np.cumsum(halves) - halves, sizes) + local // 2, sibling, np.flatnonzero(local % 2 == 0))
        )
        sizes = halves
    return found
