"""Spans: a relation as two index maps from one box of labels, l ↦ (left(l), right(l)).

Multiplicities are automatic (two labels that give one pair count twice) and the converse is free (exchange the sides).
Tables have one label here. Composition solves right₁(l) = left₂(m), axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .index_algebra import Affine, IndexMap, IndexTable, combined, flat_positions, labels_of, renamed
from .index_sets import Indices


class Listed(IndexTable):
    """What a table of one label was called; older pickles make tables by this name."""

    __slots__ = ()

    def __new__(cls, array: Any, label: int) -> Any:
        return IndexTable(array, (label,))


class Span(NamedTuple):
    """sizes of the labels, one index map per axis of the source and of the target, and how often each pair counts."""

    sizes: tuple[int, ...]
    left: tuple[IndexMap, ...]
    right: tuple[IndexMap, ...]
    times: int = 1

    @property
    def turned(self) -> Span:
        """The converse."""
        return Span(self.sizes, self.right, self.left, self.times)

    @property
    def affine(self) -> bool:
        """Whether no index array is needed."""
        return not any([type(m) is IndexTable for m in (*self.left, *self.right)])

    def once(self, maps: tuple[IndexMap, ...]) -> bool:
        """Whether a side is surely never twice at one place: each label is alone on an axis."""
        alone = {m.terms[0][0] for m in maps if type(m) is Affine and len(m.terms) == 1}
        return self.times == 1 and len(alone) == len(self.sizes)


def shifted(span: Span, by: int) -> Span:
    """The span with its labels counted from `by` on (its sizes stay; used to keep two spans apart)."""
    names = {i: i + by for i in range(len(span.sizes))}
    left, right = [tuple([renamed(m, names) for m in maps]) for maps in (span.left, span.right)]
    return Span(span.sizes, left, right, span.times)


def beside(a: Span, b: Span) -> Span:
    """The span of a product of relations: the labels of both, the axes of both."""
    other = shifted(b, len(a.sizes))
    sizes = dict(enumerate((*a.sizes, *b.sizes)))
    return tidied(sizes, (*a.left, *other.left), (*a.right, *other.right), a.times * b.times)


def substituted(m: IndexMap, label: int, by: Affine) -> IndexMap | None:
    """A map with a label replaced by an affine expression; None where an index array would have to be cut."""
    if label not in labels_of(m):
        return m
    if isinstance(m, Affine):
        rest = Affine(m.offset, tuple([t for t in m.terms if t[0] != label]))
        return combined(0, [(by, dict(m.terms)[label]), (rest, 1)])
    return None if by.terms else Affine(int(m.array[by.offset]))


def positions(span: Span, maps: tuple[IndexMap, ...], box: tuple[int, ...]) -> Indices:
    """The flat positions in a box that the maps give, for every label in row-major order."""
    return np.broadcast_to(flat_positions(maps, box, range(len(span.sizes)), span.sizes), span.sizes).reshape(-1)


def bounds(m: IndexMap, sizes: dict[int, int]) -> tuple[int, int]:
    """The smallest and the largest value of a map (1, 0 where there is none)."""
    if type(m) is IndexTable:
        return (int(m.array.min()), int(m.array.max())) if m.array.size else (1, 0)
    assert type(m) is Affine
    low = high = m.offset
    for label, stride in m.terms:
        if not sizes[label]:
            return 1, 0
        reach = stride * (sizes[label] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


class NotSymbolic(Exception):
    """A composition that only an explicit join can carry out."""


def composed(first: Span, second: Span, freeze: Any) -> Span | None:
    """first followed by second; None for the empty relation; NotSymbolic where there is no closed form."""
    solver = _Solver(first, shifted(second, len(first.sizes)), freeze)
    while solver.pending:
        if not solver.advance():
            return None
    return solver.result()


class _Solver:
    """Equations right₁ = left₂, solved one by one; each solution removes a label or proves there is none."""

    def __init__(self, first: Span, second: Span, freeze: Any) -> None:
        self.freeze = freeze
        self.sizes = dict(enumerate((*first.sizes, *second.sizes)))
        self.left = list(first.left)
        self.right = list(second.right)
        self.pending: list[tuple[IndexMap, IndexMap]] = list(zip(first.right, second.left, strict=True))
        self.times = first.times * second.times
        self.fresh = len(self.sizes)

    def advance(self) -> bool:
        """Solve one equation that can be solved; False: no pair is left."""
        if any([not n for n in self.sizes.values()]):
            return False
        for i, (a, b) in enumerate(self.pending):
            for u, v in ((a, b), (b, a)):
                found = self._try(u, v)
                if found is not None:
                    del self.pending[i]
                    for label, by in self.change if found else ():
                        if not self._changed(label, lambda m, k=label, by=by: self._sub(m, k, by)):
                            raise NotSymbolic
                    return found
        raise NotSymbolic

    def _try(self, u: IndexMap, v: IndexMap) -> bool | None:
        """Solve u = v for a label of u, into self.change: True solved, False impossible, None not this way."""
        self.change: list[tuple[int, Affine]] = []
        if type(u) is IndexTable:
            return self._listed(u, v)
        assert type(u) is Affine
        if type(v) is Affine and not u.terms and not v.terms:
            return u.offset == v.offset
        if type(v) is not Affine or len(u.terms) != 1:
            return None
        ((label, stride),) = u.terms
        if not v.terms:  # offset + stride·l = constant
            at, rest = divmod(v.offset - u.offset, stride)
            if rest or not 0 <= at < self.sizes[label]:
                return False
            self.change = [(label, Affine(at))]
            return True
        if len(v.terms) == 1:
            return self._line(u, label, stride, v)
        if abs(stride) != 1 or label in labels_of(v):
            return None
        low, high = bounds(v, self.sizes)  # several labels on the other side: they must all stay in range
        values = sorted([(low - u.offset) * stride, (high - u.offset) * stride])
        if values[0] < 0 or values[1] >= self.sizes[label]:
            return None
        self.change = [(label, Affine((v.offset - u.offset) * stride, tuple([(k, s * stride) for k, s in v.terms])))]
        return True

    def _line(self, u: Affine, label: int, s: int, v: Affine) -> bool | None:
        """offset + s·l = offset' + t·m: all solutions are l = l₀ + (t/g)·k, m = m₀ + (s/g)·k."""
        ((other, t),) = v.terms
        if other == label:
            return None
        found = lines_meet(s, t, v.offset - u.offset, self.sizes[label], self.sizes[other])
        if found is None:
            return False
        (first, step), (second, jump), count = found
        k = self.fresh
        self.fresh += 1
        self.sizes[k] = count
        self.change = [(label, Affine(first, ((k, step),))), (other, Affine(second, ((k, jump),)))]
        return True

    def _listed(self, u: IndexTable, v: IndexMap) -> bool | None:
        """array[l] = v: with v a label of stride 1 that covers the array's values, that label becomes the array."""
        if type(v) is not Affine:
            return None
        if not v.terms:
            hits = np.flatnonzero(u.array == v.offset)
            if not len(hits):
                return False
            if len(hits) == 1:
                self.change = [(u.labels[0], Affine(int(hits[0])))]
                return True
            return None
        if len(v.terms) != 1 or abs(v.terms[0][1]) != 1:
            return None
        ((label, stride),) = v.terms
        values = (u.array - v.offset) * stride
        if label == u.labels[0] or (values.size and (values.min() < 0 or values.max() >= self.sizes[label])):
            return None
        # The label is a function of u's label: every map that uses it must be the label itself or an array along it.
        arrays = self.freeze(values)

        def change(m: IndexMap) -> IndexMap | None:
            if label not in labels_of(m):
                return m
            if type(m) is IndexTable:
                return IndexTable(self.freeze(np.asarray(m.array)[arrays]), u.labels)
            assert type(m) is Affine
            return IndexTable(self.freeze(m.offset + m.terms[0][1] * arrays), u.labels) if len(m.terms) == 1 else None

        return self._changed(label, change)

    def _changed(self, label: int, change: Callable[[IndexMap], IndexMap | None]) -> bool | None:
        """All maps without a label; None, and nothing changed, where one cannot do without it."""
        n, maps = len(self.left), [*self.left, *self.right, *[m for pair in self.pending for m in pair]]
        found = [m for m in map(change, maps) if m is not None]
        if len(found) < len(maps):
            return None
        rest = found[n + len(self.right) :]
        self.left, self.right = found[:n], found[n : n + len(self.right)]
        self.pending = list(zip(rest[::2], rest[1::2], strict=True))
        del self.sizes[label]
        return True

    def _sub(self, m: IndexMap, label: int, by: Affine) -> IndexMap | None:
        if type(m) is IndexTable and m.labels == (label,) and len(by.terms) == 1:
            ((other, stride),) = by.terms
            count = self.sizes[other]
            stop = by.offset + stride * count
            part = m.array[by.offset : None if stop < 0 else stop : stride]
            whole = by.offset == 0 and stride == 1 and count == len(m.array)
            return IndexTable(m.array if whole else self.freeze(np.ascontiguousarray(part)), (other,))
        return substituted(m, label, by)

    def result(self) -> Span | None:
        """The span of what is left; labels in no map become multiplicity."""
        if any([not n for n in self.sizes.values()]):
            return None
        return tidied(self.sizes, tuple(self.left), tuple(self.right), self.times)


def tidied(sizes: dict[int, int], left: tuple[IndexMap, ...], right: tuple[IndexMap, ...], times: int) -> Span:
    """A span with labels counted from 0 in order of use; unused ones multiply, those of size 1 go into offsets."""
    fixed: list[IndexMap] = []
    for m in (*left, *right):
        if isinstance(m, Affine):
            m = Affine(m.offset, tuple([(k, s) for k, s in m.terms if sizes[k] != 1]))
        fixed.append(Affine(int(m.array[0])) if isinstance(m, IndexTable) and sizes[m.labels[0]] == 1 else m)
    used = dict.fromkeys([k for m in fixed for k in labels_of(m)])
    names = {k: i for i, k in enumerate(used)}
    maps = tuple([renamed(m, names) for m in fixed])
    times *= math.prod([n for k, n in sizes.items() if k not in used])
    return Span(tuple([sizes[k] for k in used]), maps[: len(left)], maps[len(left) :], times)


def one_label(count: int, left: IndexMap, right: IndexMap, times: int = 1) -> Span:
    """A span between segments, with one label."""
    return tidied({0: count}, (left,), (right,), times)


def lines_meet(s: int, t: int, c: int, n: int, m: int) -> tuple[tuple[int, int], tuple[int, int], int] | None:
    """All l < n and j < m with s·l = c + t·j: l = l₀ + (t/g)·k and j = j₀ + (s/g)·k for k below a count; None where
    there are none.

    >>> lines_meet(2, 3, 1, 10, 10)
    ((2, 3), (1, 2), 3)
    """
    g = math.gcd(s, t)
    if c % g:
        return None
    s, t, c = s // g, t // g, c // g
    first = (c * pow(s, -1, abs(t))) % abs(t) if abs(t) > 1 else 0
    second = (s * first - c) // t
    low, high = meet(window(first, t, n), window(second, s, m))
    return None if low > high else ((first + t * low, t), (second + s * low, s), high - low + 1)


def window(start: int, step: int, n: int) -> tuple[int, int]:
    """The k with 0 ≤ start + step·k < n."""
    if step > 0:
        return -(start // step), (n - 1 - start) // step
    return -((n - 1 - start) // -step), start // -step


def meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The overlap of two ranges, ends included."""
    return max(a[0], b[0]), min(a[1], b[1])
