"""Relations given by their span: windows, strided and shifted slices, broadcasts of single axes, and what composition makes of them.

An affine span runs as a few slice operations on arrays, nothing stored: labels that share an axis with another label (the offsets of a window) are
looped over, the shorter ones first; all others are slices, summed or broadcast. With index arrays it runs as a sparse matrix.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RelationError
from .core import Relation
from .spans import Affine, Span, bounds, labels_of, positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.intp]
    Array = NDArray[Any]


class Spanned(Relation):
    """{(left(l), right(l)) | l a label}, each pair as often as labels give it."""

    sizes: tuple[int, ...]
    left: tuple[Any, ...]
    right: tuple[Any, ...]
    times: int = 1

    def check(self) -> None:
        sizes = dict(enumerate(self.sizes))
        for maps, where in ((self.left, self.source), (self.right, self.target)):
            if where.box is None or len(where.box) != len(maps):
                raise RelationError(f"a span needs one index map per axis of {where}")
            for m, n in zip(maps, where.box, strict=True):
                low, high = bounds(m, sizes)
                if low <= high and not 0 <= low <= high < n:
                    raise RelationError(f"the span reaches {low if low < 0 else high}, outside an axis of {where} with positions 0 to {n - 1}")

    @property
    def span(self) -> Span:
        return Span(self.sizes, self.left, self.right, self.times)

    @property
    def converse(self) -> Relation:
        return Spanned(self.target, self.source, self.sizes, self.right, self.left, self.times)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        span = self.span
        rows, cols = positions(span, span.left, self.source.box or ()), positions(span, span.right, self.target.box or ())
        return rows, cols, np.full(len(rows), self.times)

    def reduce(self, v: Array) -> Array:
        total = np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        self.reduce_into(total, v)
        return total

    def reduce_into(self, total: Array, v: Array) -> None:
        if not self.span.affine:
            total += self.sparse_reduce(v)
            return
        given = v.reshape((v.shape[0], *(self.source.box or ()), v.shape[2]))
        out = total.reshape((total.shape[0], *(self.target.box or ()), total.shape[2]))
        scale = 1 if self.times == 1 else float(self.times)
        if 0 in self.sizes:
            return
        for fixed in itertools.product(*[range(self.sizes[k]) for k in self._loops]):
            at = dict(zip(self._loops, fixed, strict=True))
            part, have = self._part(given, self.left, at)
            place, want = self._part(out, self.right, at)
            gone = tuple([i + 1 for i, k in enumerate(have) if k not in want])
            part = part.sum(axis=gone, keepdims=False) if gone else part
            kept = [k for k in have if k in want]
            order = [0, *[kept.index(k) + 1 for k in want if k in kept], len(kept) + 1]
            part = part.transpose(order) if order != list(range(len(order))) else part
            holes = tuple([i + 1 for i, k in enumerate(want) if k not in kept])
            part = np.expand_dims(part, holes) if holes else part
            place += part if scale == 1 else scale * part

    @cached_property
    def _loops(self) -> tuple[int, ...]:
        """Labels to loop over, so that every axis is a slice along at most one label, and no label runs along two axes of one side."""
        chosen: set[int] = set()
        for maps in (self.left, self.right):
            seen: set[int] = set()
            for m in maps:
                inside = sorted([k for k in labels_of(m) if k not in chosen], key=lambda k: self.sizes[k])
                chosen.update(inside[:-1])
                for k in inside[-1:]:
                    if k in seen:
                        chosen.add(k)
                    seen.add(k)
        return tuple(sorted(chosen))

    def _part(self, array: Array, maps: tuple[Any, ...], at: dict[int, int]) -> tuple[Array, list[int]]:
        """The slice of an array (with one axis before and one behind) at fixed loop labels, and the labels of its axes."""
        keys: list[Any] = [slice(None)]
        have: list[int] = []
        for m in maps:
            assert type(m) is Affine
            start = m.offset + sum([s * at[k] for k, s in m.terms if k in at])
            free = [(k, s) for k, s in m.terms if k not in at]
            if not free:
                keys.append(start)
                continue
            ((label, step),) = free
            stop = start + step * self.sizes[label]
            keys.append(slice(start, None if stop < 0 else stop, step))
            have.append(label)
        return array[tuple(keys)], have
