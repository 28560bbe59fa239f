"""Labelled contraction of arrays: the one kernel behind products, ⊛, ⊗, ⊙, sums, broadcasts, transposes and diagonals.

An operand is an array with one label per axis. The result has the output labels as axes; every other label is summed
over. A label in no operand counts as an axis of ones: in the output it broadcasts, otherwise it multiplies by its size.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from ..relations.index_sets import Array
from .contraction_order import path, results

Labels = tuple[int, ...]
Factor = tuple[Any, Labels]


class Meter:
    """Counts multiplications of numbers."""

    def __init__(self) -> None:
        self.multiplications = 0


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Generator[Meter]:
    """Count the multiplications carried out inside."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def charge(multiplications: int) -> None:
    """Add to the meter, if there is one."""
    meter = _meter.get()
    if meter is not None:
        meter.multiplications += multiplications


def number(k: Any) -> Any:
    """A scalar result as a Python float where it is float64, which is faster and rounds the same; float32 stays."""
    scalar: Any = cast(Array, k)[()] if isinstance(k, np.ndarray) else k
    return float(scalar) if type(scalar) is np.float64 else scalar


def single(a: Array, labels: Labels, out: Labels, sizes: dict[int, int]) -> Array:
    """One operand: take diagonals of repeated labels, sum, permute, broadcast, and spread repeated output labels."""
    if len(set(labels)) < len(labels):
        kept = tuple(dict.fromkeys(labels))
        a, labels = np.einsum(a, list(labels), list(kept)), kept
    distinct = out if len(set(out)) == len(out) else tuple(dict.fromkeys(out))
    gone = tuple([i for i, label in enumerate(labels) if label not in distinct])
    if gone:
        a = column_sums(a) if gone == (0,) else a.sum(axis=gone)
        labels = tuple([label for label in labels if label in distinct])
    order = [labels.index(label) for label in distinct if label in labels]
    a = a.transpose(order) if order != list(range(len(order))) else a
    if len(labels) < len(distinct):
        holes = tuple([i for i, label in enumerate(distinct) if label not in labels])
        a = np.broadcast_to(np.expand_dims(a, holes), [sizes[label] for label in distinct])
    if len(distinct) < len(out):
        spread = cast(Any, np.zeros)([sizes[label] for label in out], a.dtype)
        np.einsum(spread, list(out), list(distinct))[...] = a
        a = spread
    return a


def column_sums(a: Array) -> Array:
    """a.sum(axis=0). Many short rows are added up by einsum: in the same order, and several times as fast.

    >>> column_sums(np.ones((1000, 2)))
    array([1000., 1000.])
    """
    short = a.ndim == 2 and 1 < a.shape[1] <= 128 < 512 <= a.shape[0] and a.flags.c_contiguous
    return np.einsum(a, (0, 1), (1,)) if short else a.sum(axis=0)


def pair(a: Array, la: Labels, b: Array, lb: Labels, out: Labels) -> Array:
    """Two operands, distinct labels in each, all of `out` in them: a matrix product, batched over shared outputs."""
    in_a, in_b, kept = set(la), set(lb), set(out)
    alone_a = tuple([i for i, label in enumerate(la) if label not in in_b and label not in kept])
    alone_b = tuple([i for i, label in enumerate(lb) if label not in in_a and label not in kept])
    if alone_a:
        a, la = a.sum(axis=alone_a), tuple([label for label in la if label in in_b or label in kept])
    if alone_b:
        b, lb = b.sum(axis=alone_b), tuple([label for label in lb if label in in_a or label in kept])
    if _meter.get() is not None:
        sizes = dict(zip((*la, *lb), (*np.shape(a), *np.shape(b)), strict=True))
        charge(math.prod(sizes.values()))
    summed = [label for label in la if label in in_b and label not in kept]
    if not summed:
        return spread(a, la, out) * spread(b, lb, out)
    batch = [label for label in out if label in in_a and label in in_b]
    if not batch:
        axes = ([la.index(s) for s in summed], [lb.index(s) for s in summed])
        free = (*[label for label in la if label in kept], *[label for label in lb if label in kept])
        product = np.tensordot(a, b, axes)
        return product if free == out else product.transpose([free.index(label) for label in out])
    free_a = [label for label in la if label in kept and label not in batch]
    free_b = [label for label in lb if label in kept and label not in batch]
    n = math.prod([a.shape[la.index(s)] for s in summed])
    if not free_a and not free_b and (n < 64 or la[-len(summed) :] != tuple(summed)):
        # dot products of short or scattered rows: one pass, no matrix product
        return np.einsum(a, list(la), b, list(lb), list(out))
    left = a.transpose([la.index(label) for label in (*batch, *free_a, *summed)])
    right = b.transpose([lb.index(label) for label in (*batch, *summed, *free_b)])
    head = left.shape[: len(batch)]
    shape_a = left.shape[len(batch) : len(batch) + len(free_a)]
    shape_b = right.shape[len(batch) + len(summed) :]
    left = left.reshape((*head, math.prod(shape_a), n))
    right = right.reshape((*head, n, math.prod(shape_b)))
    product = (left @ right).reshape((*head, *shape_a, *shape_b))
    have = (*batch, *free_a, *free_b)
    return product if have == out else product.transpose([have.index(label) for label in out])


def matrix_kernel(la: Labels, lb: Labels, out: Labels) -> Callable[[Array, Array], Array] | None:
    """Code for products of matrices and vectors, planned once; None unless one label is summed and no other shared."""
    common = [label for label in la if label in lb]
    if len(common) != 1 or max(len(la), len(lb)) > 2 or common[0] in out or len(out) != len(la) + len(lb) - 2:
        return None
    turn_a, turn_b = la[-1] != common[0], lb[0] != common[0]
    turn = out != (*[k for k in la if k not in common], *[k for k in lb if k not in common])

    def product(a: Array, b: Array) -> Array:
        charge(a.size * b.size // max(a.shape[0 if turn_a else -1], 1))
        found = np.dot(a.T if turn_a else a, b.T if turn_b else b)
        return found.T if turn else found

    return product


def product_kernel(la: Labels, lb: Labels, out: Labels) -> Callable[[Array, Array], Array] | None:
    """Code for products without sums, planned once: axes in the order of the result; None where some are summed."""
    if not {*la, *lb} <= set(out):
        return None
    first, second = _axes(la, out), _axes(lb, out)

    def product(a: Array, b: Array) -> Array:
        found = _placed(a, first) * _placed(b, second)
        charge(found.size)
        return found

    return product


def _axes(labels: Labels, out: Labels) -> Any:
    """How an array gets the axes of a result: their order, None where it is that already, and an index with the missing
    ones; None for nothing.

    A number stays a number: a Python float has no type of its own.
    """
    if not labels:
        return None
    order = [labels.index(label) for label in out if label in labels]
    index = tuple([slice(None) if label in labels else None for label in out])
    return None if labels == out else (None if order == sorted(order) else order, index)


def _placed(a: Array, axes: Any) -> Array:
    if axes is None:
        return a
    order, index = axes
    return np.asarray(a if order is None else np.transpose(a, order))[index]


def spread(a: Array, labels: Labels, out: Labels) -> Array:
    """Axes in the order of out, size 1 where a label is missing: ready for NumPy's broadcasting."""
    return _placed(a, _axes(labels, out))


def network(factors: Sequence[Factor], out: Labels, sizes: dict[int, int]) -> tuple[Any, list[Factor]]:
    """Carry out the sums of a product, in the order of least work, not outer products: scale and remaining factors."""
    kept = set(out)
    holders = Counter([label for _, labels in factors for label in set(labels)])
    work: list[Factor] = []
    for a, labels in factors:
        wanted = tuple(dict.fromkeys([label for label in labels if label in kept or holders[label] > 1]))
        work.append((a if wanted == labels else single(a, labels, wanted, sizes), wanted))
    groups = [[work[i] for i in group] for group in _linked(work, kept)]
    alone, joined = [g[0] for g in groups if len(g) == 1], [_product(g, kept, sizes) for g in groups if len(g) > 1]
    repeated = [float(size) for label, size in sizes.items() if not holders[label] and label not in kept]
    numbers = [[number(a) for a, labels in found if not labels] for found in (alone, joined)]
    scale = math.prod(repeated, start=functools.reduce(_times, numbers[0], 1.0))
    return functools.reduce(_times, numbers[1], scale), [f for f in (*alone, *joined) if f[1]]


def _linked(factors: list[Factor], kept: set[int]) -> list[list[int]]:
    """The factors in groups that summed labels hold together."""
    groups: list[tuple[list[int], set[int]]] = []
    for i, (_, labels) in enumerate(factors):
        summed = {label for label in labels if label not in kept}
        met = [g for g in groups if not summed.isdisjoint(g[1])]
        one = (sorted([n for g in met for n in g[0]] + [i]), summed.union(*[g[1] for g in met]))
        groups = [g for g in groups if summed.isdisjoint(g[1])] + [one]
    return [members for members, _ in groups]


def _product(factors: list[Factor], kept: set[int], sizes: dict[int, int]) -> Factor:
    """A product of factors with its sums carried out, as one factor."""
    labels = [ls for _, ls in factors]
    out = tuple(dict.fromkeys([k for ls in labels for k in ls if k in kept]))
    pairs = path(labels, out, sizes).pairs if len(factors) > 2 else ((0, 1),)
    held = results(labels, out, pairs)
    arrays: list[Any] = [a for a, _ in factors]
    for made, (i, j) in zip(held[len(factors) :], pairs, strict=True):
        arrays.append(pair(arrays[i], held[i], arrays[j], held[j], made))
        arrays[i] = arrays[j] = None
    return arrays[-1], held[-1]


def _times(scale: Any, k: Any) -> Any:
    if type(scale) is float and scale == 1.0:
        return k
    charge(1)
    return scale * k
