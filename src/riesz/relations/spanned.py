"""Relations given by their span: windows, strided and shifted slices, broadcasts of single axes, and what composition
makes of them.

An affine span runs as a few slice operations on arrays, nothing stored: labels that share an axis with another label
(the offsets of a window) are looped over, the shorter ones first; all others are slices, summed or broadcast. With
index arrays it runs as a sum over pairs.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import RelationError
from ..runtime import buffers, tuning
from ..runtime import pool as threads
from .base import Relation
from .cpu.pair_sums import pair_sum
from .index_algebra import Affine, along, labels_of
from .index_sets import Array, Indices, box_set
from .spans import Span, bounds, meet, positions, substituted, tidied, window


class Spanned(Relation):
    """{(left(l), right(l)) | l a label}, each pair as often as labels give it.

    >>> from riesz import relations, seg
    >>> relations.window(seg(4), 2).plan()([1.0, 2.0, 3.0, 4.0]).tolist()
    [3.0, 5.0, 7.0]
    """

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
                    outside = f"outside an axis of {where} with positions 0 to {n - 1}"
                    raise RelationError(f"the span reaches {low if low < 0 else high}, {outside}")

    @property
    def span(self) -> Span:
        return Span(self.sizes, self.left, self.right, self.times)

    def _turn(self) -> Spanned:
        return Spanned(self.target, self.source, self.sizes, self.right, self.left, self.times)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        span, box, other = self.span, self.source.box or (), self.target.box or ()
        rows, cols = positions(span, span.left, box), positions(span, span.right, other)
        return rows, cols, np.full(len(rows), self.times)

    def reduce(self, v: Array) -> Array:
        if not self.span.affine:
            return pair_sum(self, v)
        if (moved := self._moved(v, None)) is not None:
            return moved
        return slice_sum(self.target.box or (), [self], v) if self.stages is None else self.stages.reduce(v)

    def reduce_into(self, total: Array, v: Array) -> None:
        if self._moved(v, total) is not None:
            return
        if self.stages is not None:
            self.stages.reduce_into(total, v)
        elif self.span.affine:
            add_slices(total, [self], v, fresh=False)
        else:
            total += pair_sum(self, v)

    def _moved(self, v: Array, total: Array | None) -> Array | None:
        """red of small arrays where it moves elements: one copy between two views. None where it is other than that."""
        sides = self.moves
        small = v.size <= tuning.SLICE_TILE_NUMBERS and v.shape[0] * v.shape[2] * self.target.size <= 4 * v.size
        if sides is None or not v.size or not small or not v.flags.c_contiguous:
            return None
        if total is None:
            whole = math.prod(self.sizes) == self.target.size
            found = (buffers.empty if whole else buffers.zeros)((v.shape[0], self.target.size, v.shape[2]), v.dtype)
            self._seen(found, sides[1])[...] = self._seen(v, sides[0])
            return found
        if not total.flags.c_contiguous:
            return None
        there = self._seen(total, sides[1])
        there += self._seen(v, sides[0])
        return total

    def _seen(self, array: Array, side: tuple[int, list[int]]) -> Array:
        """An array with an axis before and one behind as one with an axis for each label between them."""
        a, n, b = array.shape
        start, steps = side
        step = b * array.itemsize
        strides = (n * step, *[s * step for s in steps], array.itemsize)
        return np.ndarray((a, *self.sizes, b), array.dtype, array, start * step, strides)

    @cached_property
    def moves(self) -> tuple[tuple[int, list[int]], tuple[int, list[int]]] | None:
        """Source and target: where they begin, and how far each label goes, if every label has a place of its own."""
        if not self.span.affine or self.times != 1 or 0 in self.sizes:
            return None
        sides: list[tuple[int, list[int]]] = []
        for maps, box in ((self.left, self.source.box or ()), (self.right, self.target.box or ())):
            start, steps, step = 0, [0] * len(self.sizes), 1
            for m, n in zip(reversed(maps), reversed(box), strict=True):
                start += m.offset * step
                for k, s in m.terms:
                    steps[k] += s * step
                step *= n
            sides.append((start, steps))
        reach = 0
        for step, n in sorted([(abs(s), n) for s, n in zip(sides[1][1], self.sizes, strict=True) if n > 1]):
            if step <= reach:
                return None
            reach += step * (n - 1)
        return sides[0], sides[1]

    @property
    def patch(self) -> tuple[slice, slice] | None:
        if self.moves is None or len(self.sizes) != 1:
            return None
        (first, (step,)), (start, (pace,)) = self.moves
        n = self.sizes[0]
        return (
            (slice(first, first + step * n, step), slice(start, start + pace * n, pace))
            if min(step, pace) > 0
            else None
        )

    @cached_property
    def stages(self) -> Relation | None:
        """A long window as short ones in sequence: 64 as 8 of 8, each as 4 of 2, needs 12 additions. None: no gain."""
        if not self.span.affine or math.prod([self.sizes[k] for k in self.loops]) < tuning.STAGED_WINDOW_PIECES:
            return None
        found = staged(self)
        turned = staged(self._turn()) if found is None else None
        return found if turned is None else turned.converse

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """Labels to loop over: every axis is then a slice along one label, and no label along two axes of a side."""
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

    @cached_property
    def pieces(self) -> list[Piece]:
        """One copy of a slice to a slice for every value of the labels that are looped over."""
        if 0 in self.sizes:
            return []
        found: list[Piece] = []
        for fixed in itertools.product(*[range(self.sizes[k]) for k in self.loops]):
            at = dict(zip(self.loops, fixed, strict=True))
            left = [(0, 1, -1) if i in self._summed else _line(m, at) for i, m in enumerate(self.left)]
            right = [_line(m, at) for m in self.right]
            found.append(Piece(left, right, dict(enumerate(self.sizes)), float(self.times)))
        return found

    @cached_property
    def _summed(self) -> tuple[int, ...]:
        """The axes of the source along labels that the target does not have."""
        kept = {*self.loops, *[k for m in self.right for k in labels_of(m)]}
        return tuple([i for i, m in enumerate(self.left) if labels_of(m) and not set(labels_of(m)) & kept])

    def narrowed(self, given: Any) -> Any:
        """An array, of any library, with an axis before and behind, summed along what the target does not have."""
        if not self._summed:
            return given
        sizes = dict(enumerate(self.sizes))
        keys = [line_slice(_line(m, {}), sizes) if i in self._summed else slice(None) for i, m in enumerate(self.left)]
        return given[(slice(None), *keys)].sum(axis=tuple([i + 1 for i in self._summed]), keepdims=True)


def staged(r: Spanned) -> Relation | None:
    """First sums of p neighbours along one axis, then every p-th of those, with p chosen to do the least work."""
    X, pieces, m = r.source.box or (), math.prod([r.sizes[k] for k in r.loops]), r.target.size
    best: tuple[int, int, int, int] | None = None
    uses = [k for side in (r.left, r.right) for i in side for k in labels_of(i)]
    for axis, i in enumerate(cast("tuple[Affine, ...]", r.left)):
        for label, stride in i.terms:
            if label not in r.loops or uses.count(label) != 1 or stride < 0:
                continue
            for p in [q for q in range(2, r.sizes[label] + 1) if r.sizes[label] % q == 0]:
                between = r.source.size // max(X[axis], 1) * (X[axis] - stride * (p - 1))
                cost = p * between + pieces // p * m
                best = (cost, axis, label, p) if best is None or cost < best[0] else best
    if best is None or best[0] > 0.7 * pieces * m:
        return _without_last(r, uses)
    _, axis, label, p = best
    stride = dict(r.left[axis].terms)[label]
    axes = [along(k) for k in range(len(X))]
    long = {k: n if k != axis else n - stride * (p - 1) for k, n in enumerate(X)} | {len(X): p}
    first = tidied(long, (*axes[:axis], Affine(0, ((axis, 1), (len(X), stride))), *axes[axis + 1 :]), tuple(axes), 1)
    rest = Affine(r.left[axis].offset, tuple([(k, s * p if k == label else s) for k, s in r.left[axis].terms]))
    sizes = {k: n // p if k == label else n for k, n in enumerate(r.sizes)}
    second = tidied(sizes, (*r.left[:axis], rest, *r.left[axis + 1 :]), r.right, r.times)
    middle = box_set(tuple([long[k] for k in range(len(X))]))
    from .compound import Through

    return Through(r.source, r.target, (Spanned(r.source, middle, *first), Spanned(middle, r.target, *second)))


def _without_last(r: Spanned, uses: list[int]) -> Relation | None:
    """A window of prime length as one that is shorter by one, and a slice."""
    alone = [k for k in r.loops if uses.count(k) == 1 and r.sizes[k] >= tuning.STAGED_WINDOW_PIECES]
    if not alone or any([k in labels_of(i) for i in r.right for k in alone]) or r.sizes[alone[0]] % 2 == 0:
        return None
    label, n = alone[0], r.sizes[alone[0]]
    sizes = dict(enumerate(r.sizes))
    shorter = tidied(sizes | {label: n - 1}, r.left, r.right, r.times)
    end = tuple([substituted(i, label, Affine(n - 1)) or i for i in r.left])
    last = tidied({k: size for k, size in sizes.items() if k != label}, end, r.right, r.times)
    most = Spanned(r.source, r.target, *shorter)
    if most.stages is None:
        return None
    from .compound import Union

    return Union(r.source, r.target, (most, Spanned(r.source, r.target, *last)))


def as_spanned(relation: Relation) -> Spanned | None:
    """A relation as slices, if its span is affine and not a sum or broadcast over everything."""
    if isinstance(relation, Spanned):
        return relation if relation.span.affine and relation.stages is None else None
    span = relation.span if relation.sliced else None
    if span is None or not span.affine:
        return None
    return Spanned(relation.source, relation.target, span.sizes, span.left, span.right, span.times)


Line = tuple[int, int, int]  # start, step, label (-1: none)


def _line(m: Any, at: dict[int, int]) -> Line:
    start = m.offset + sum([s * at[k] for k, s in m.terms if k in at])
    free = [(k, s) for k, s in m.terms if k not in at]
    return (start, free[0][1], free[0][0]) if free else (start, 1, -1)


def line_slice(line: Line, sizes: dict[int, int]) -> Any:
    """The slice, or the point, that a line is."""
    start, step, label = line
    if label < 0:
        return start
    stop = start + step * sizes[label]
    return slice(start, None if stop < 0 else stop, step)


class Piece(NamedTuple):
    """A slice of the source that is added to a slice of the target, repeated along labels it does not have."""

    left: list[Line]
    right: list[Line]
    sizes: dict[int, int]
    times: float

    @property
    def gone(self) -> set[int]:
        """Labels of the source that the target does not have: the piece is summed along them."""
        return {k for _, _, k in self.left if k >= 0} - {k for _, _, k in self.right}

    def covers(self, box: tuple[int, ...]) -> bool:
        """Whether every element of the target is hit."""
        whole = [(0, 1, n) for n in box]
        return whole == [(start, step, self.sizes[k] if k >= 0 else 1) for start, step, k in self.right]

    def add(self, total: Array, v: Array, low: int, high: int, fresh: bool) -> None:
        """Do it for the rows low … high of the target; `fresh`: write, do not add."""
        ranges: dict[int, tuple[int, int]] = {}
        if self.right:
            start, step, label = self.right[0]
            if label < 0 and not low <= start < high:
                return
            if label >= 0:
                first, last = meet(window(start - low, step, high - low), (0, self.sizes[label] - 1))
                if first > last:
                    return
                ranges[label] = (first, last + 1)
        part, have = self._slice(v, self.left, ranges)
        place, want = self._slice(total, self.right, ranges)
        part = self.arranged(part, have, want)
        if fresh:
            place[...] = part
        else:
            place += part

    def arranged(self, part: Any, have: list[int], want: list[int]) -> Any:
        """A slice of the source, of any array library, with the axes of one of the target."""
        gone = self.gone
        if gone:
            part = part.sum(axis=tuple([i + 1 for i, k in enumerate(have) if k in gone]))
            have = [k for k in have if k not in gone]
        part = part.transpose([0, *[have.index(k) + 1 for k in want if k in have], len(have) + 1])
        part = part[(slice(None), *[slice(None) if k in have else None for k in want])]
        return part if self.times == 1.0 else part * part.dtype.type(self.times)

    def _slice(self, array: Array, lines: list[Line], ranges: dict[int, tuple[int, int]]) -> tuple[Array, list[int]]:
        """The slice of an array with one axis before and one behind, and the labels of its axes."""
        keys: list[Any] = [slice(None)]
        for start, step, label in lines:
            first, last = ranges.get(label, (0, self.sizes.get(label, 1)))
            keys.append(line_slice((start + step * first, step, label), {label: last - first}))
        return array[tuple(keys)], [label for _, _, label in lines if label >= 0]


def slice_sum(box: tuple[int, ...], members: list[Spanned], v: Array) -> Array:
    """The sum of the reductions of affine spans into one box."""
    first = members[0].pieces
    whole = bool(first) and first[0].covers(box)
    total = (buffers.empty if whole else buffers.zeros)((v.shape[0], math.prod(box), v.shape[2]), v.dtype)
    add_slices(total, members, v, fresh=whole)
    return total


def add_slices(total: Array, members: list[Spanned], v: Array, fresh: bool) -> None:
    """Add affine spans to an array, tile by tile of its rows; the order of the sums does not depend on the tiles."""
    X, Y = members[0].source.box or (), members[0].target.box or ()
    given = v.reshape((v.shape[0], *X, v.shape[2]))
    out = total.reshape((total.shape[0], *Y, total.shape[2]))
    pieces = [(p, x) for m in members for x in [m.narrowed(given)] for p in m.pieces]
    if not total.size or not pieces:
        return
    rows = Y[0] if Y else 1
    whole = any([p.gone for p, _ in pieces])  # NumPy's order of a sum depends on the shape of what it sums
    height = rows if len(pieces) == 1 or whole else max(tuning.SLICE_TILE_NUMBERS * rows // total.size, 1)

    def work(first: int, last: int) -> None:
        for low in range(first, last, height):
            for i, (piece, x) in enumerate(pieces):
                piece.add(out, x, low, min(low + height, last), fresh and not i)

    parts = 1 if whole else min(threads.worth(total.size // (4 * tuning.SLICE_TILE_NUMBERS)), rows)
    cuts = [rows * k // parts for k in range(parts + 1)]
    threads.spread(work, list(itertools.pairwise(cuts)))
