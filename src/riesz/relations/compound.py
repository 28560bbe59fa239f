"""Relations made of relations: side by side into one set, on products and sums of sets, united."""

from __future__ import annotations

import itertools
from functools import cached_property, reduce

import numpy as np

from ..errors import RelationError
from ..runtime import tuning
from .base import Relation
from .index_sets import Array, Indices, Plus
from .kinds import Pairs
from .spanned import Spanned, add_slices, as_spanned, slice_sum
from .spans import Span, beside


class Compound(Relation):
    """Relations on parts of the sets, or on the same ones."""

    members: tuple[Relation, ...]

    def _turn(self) -> Relation:
        return type(self)(self.target, self.source, tuple([r.converse for r in self.members]))

    @property
    def count(self) -> int:
        return sum([r.count for r in self.members])

    @property
    def work(self) -> int:
        return sum([r.work for r in self.members])

    def _starts(self) -> tuple[list[int], list[int]]:
        """Where the parts of source and target that each member is on begin."""
        sides = [[r.source.size for r in self.members], [r.target.size for r in self.members]]
        at, to = [[0, *itertools.accumulate(sizes)][: len(sizes)] for sizes in sides]
        return at, to

    def apart(self, v: Array) -> list[Array]:
        """The reductions of the members, each of its part of the source."""
        pieces = np.split(v, self._starts()[0][1:], axis=1)[: len(self.members)]
        return [r.reduce(p) for r, p in zip(self.members, pieces, strict=True)]

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        found = [r.pairs() for r in self.members]
        none = np.zeros(0, np.intp)
        at, to = self._starts()
        rows = np.concatenate([none, *[p[0] + o for p, o in zip(found, at, strict=True)]])
        cols = np.concatenate([none, *[p[1] + o for p, o in zip(found, to, strict=True)]])
        return rows, cols, np.concatenate([none, *[p[2] for p in found]])


class Beside(Compound):
    """[R₁, …, Rₙ] ⊆ (X₁ + … + Xₙ) × Y: relations into one set; or, `turned`, the converse ⟨R₁ᵀ, …, Rₙᵀ⟩.

    >>> from riesz import relations, seg
    >>> type(relations.Beside(seg(2) + seg(2), seg(2), (relations.diagonal(seg(2)),) * 2).converse).__name__
    'Beside'
    """

    turned: bool = False

    def check(self) -> None:
        inner, outer = (self.source, self.target) if self.turned else (self.target, self.source)
        fits = isinstance(outer, Plus) and outer.summands == tuple([r.source for r in self.members])
        if not fits or any([r.target is not inner for r in self.members]):
            got = list(self.members)
            raise RelationError(f"relations side by side go from the parts of {outer} to {inner}; got {got}")

    def _turn(self) -> Relation:
        return Beside(self.target, self.source, self.members, not self.turned)

    def _starts(self) -> tuple[list[int], list[int]]:
        return super()._starts()[0], [0] * len(self.members)

    def reduce(self, v: Array) -> Array:
        if self.turned and self.members:
            return np.concatenate([r.converse.reduce(v) for r in self.members], axis=1)
        return sum(self.apart(v), self.zeros(v))

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        rows, cols, times = super().pairs()
        return (cols, rows, times) if self.turned else (rows, cols, times)


class Both(Relation):
    """R × S ⊆ (X × X') × (Y × Y'): red along the first part of the axes, then along the second.

    >>> from riesz import relations, seg
    >>> R = relations.triangular(seg(2)) * relations.diagonal(seg(3))
    >>> R.matrix().shape, R.count
    ((6, 6), 9)
    """

    first: Relation
    second: Relation

    @property
    def span(self) -> Span | None:
        a, b = self.first.span, self.second.span
        return None if a is None or b is None or self.source.box is None or self.target.box is None else beside(a, b)

    def _turn(self) -> Relation:
        return Both(self.target, self.source, self.first.converse, self.second.converse)

    @property
    def count(self) -> int:
        return self.first.count * self.second.count

    @property
    def work(self) -> int:
        return self.first.work * self.second.source.size + self.second.work * self.first.target.size

    def reduce(self, v: Array) -> Array:
        a, _, b = v.shape
        n, m = self.first.source.size, self.second.source.size
        half = self.first.reduce(v.reshape(a, n, m * b))
        rows = self.first.target.size
        return self.second.reduce(half.reshape(a * rows, m, b)).reshape(a, self.target.size, b)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        (r, c, t), (r2, c2, t2) = self.first.pairs(), self.second.pairs()
        rows = (r[:, None] * self.second.source.size + r2).ravel()
        cols = (c[:, None] * self.second.target.size + c2).ravel()
        return rows, cols, (t[:, None] * t2).ravel()


class Sum(Compound):
    """R₁ + … + Rₙ ⊆ (X₁ + … + Xₙ) × (Y₁ + … + Yₙ): each on its own part, nothing in between.

    >>> from riesz import relations, seg
    >>> (relations.full(seg(1), seg(2)) + relations.diagonal(seg(1))).matrix().toarray().tolist()
    [[1, 1, 0], [0, 0, 1]]
    """

    def reduce(self, v: Array) -> Array:
        return np.concatenate(self.apart(v), axis=1) if self.members else self.zeros(v)


class Union(Compound):
    """R₁ ∪ … ∪ Rₙ as multisets: red is the sum of the reductions.

    >>> from riesz import relations, seg
    >>> (relations.diagonal(seg(2)) | relations.full(seg(2), seg(2))).matrix().toarray().tolist()
    [[2, 1], [1, 2]]
    """

    def _starts(self) -> tuple[list[int], list[int]]:
        none = [0] * len(self.members)
        return none, none

    @cached_property
    def _sliced(self) -> tuple[list[Spanned], list[Relation]]:
        """The members that are slices, run together, and the others."""
        spans = [as_spanned(r) for r in self.members]
        return [s for s in spans if s is not None], [r for r, s in zip(self.members, spans, strict=True) if s is None]

    def reduce(self, v: Array) -> Array:
        slices, rest = self._sliced
        total = slice_sum(self.target.box or (), slices, v) if slices else np.array(rest[0].reduce(v))
        for r in rest if slices else rest[1:]:
            r.reduce_into(total, v)
        return total

    def reduce_into(self, total: Array, v: Array) -> None:
        slices, rest = self._sliced
        if slices:
            add_slices(total, slices, v, fresh=False)
        for r in rest:
            r.reduce_into(total, v)


class Through(Compound):
    """Relations one after the other, kept apart where composing them would make more work than doing them in turn.

    >>> from riesz import relations, seg
    >>> R = relations.full(seg(2), seg(3)).then(relations.triangular(seg(3)))
    >>> R.matrix().toarray().tolist()
    [[1, 2, 3], [1, 2, 3]]
    """

    def check(self) -> None:
        ends = [self.source, *[r.target for r in self.members]]
        starts = [*[r.source for r in self.members], self.target]
        if len(self.members) < 2 or any([a is not b for a, b in zip(ends, starts, strict=True)]):
            got = list(self.members)
            raise RelationError(f"relations in sequence lead from {self.source} to {self.target}; got {got}")

    def _turn(self) -> Relation:
        return Through(self.target, self.source, tuple([r.converse for r in reversed(self.members)]))

    def reduce(self, v: Array) -> Array:
        return reduce(lambda x, r: r.reduce(x), self.members, v)

    @property
    def count(self) -> int:
        return int(self.in_degrees.sum())

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        coo = reduce(lambda a, b: a @ b, [r.matrix() for r in self.members]).tocoo()
        rows, cols = coo.coords
        return rows.astype(np.intp), cols.astype(np.intp), coo.data


def through(first: Relation, second: Relation) -> Relation | None:
    """R followed by S in two steps, if its pairs, or theirs, are more than what is stored already."""
    bound = 4 * (_stored(first) + _stored(second)) + tuning.COMPOSED_PAIRS
    if first.count + second.count > bound:
        return in_turn([first, second])
    joined = float(first.in_degrees.astype(float) @ second.out_degrees.astype(float))
    return in_turn([first, second]) if joined > bound else None


def _stored(relation: Relation) -> int:
    """How many pairs a relation stores: none, if it is a rule."""
    if isinstance(relation, (Both, Through)):
        return 0
    span = relation.span
    return relation.count if isinstance(relation, Pairs) or (span is not None and not span.affine) else 0


def in_turn(members: list[Relation]) -> Relation:
    """Relations in sequence, as one flat list."""
    flat = [m for r in members for m in (r.members if isinstance(r, Through) else (r,))]
    return flat[0] if len(flat) == 1 else Through(flat[0].source, flat[-1].target, tuple(flat))
