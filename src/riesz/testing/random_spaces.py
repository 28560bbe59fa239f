"""Random sets, relations, spaces and vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import relations as rel
from ..relations.index_sets import Plus, Product, Seg, Set, unit
from ..spaces.formal_vectors import Formal, FormalProduct
from ..spaces.space import Copower, DirectSum, Form, Leaf, R, Space, Tensor, zero_space
from ..terms.term import Term

T = TypeVar("T")
Pick = Callable[[int], int]
Moves = list[Callable[[], Term]]


class Couple(NamedTuple):
    """A named tuple of two components."""

    first: Any
    second: Any


@dataclass
class Duo:
    """A dataclass of two components."""

    one: Any
    two: Any


class SpaceBuilder:
    """Builds random sets, relations, spaces and vectors."""

    def __init__(self, pick: Pick, most: int = 24, weighted: bool = True) -> None:
        self.pick: Pick = lambda n: int(pick(n))
        self.most, self.weighted = most, weighted
        self.mapped = False  # inside f^X, where declared functions must accept leading axes

    def among(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.pick(len(options))]

    def maybe(self, one_in: int = 2) -> bool:
        """True, once in a while."""
        return self.pick(one_in) == one_in - 1

    def rng(self) -> np.random.Generator:
        """A source of numbers."""
        return np.random.default_rng(self.pick(1 << 16))

    # -- sets and relations --------------------------------------------------------------------------------------------

    def index_set(self, most: int = 6, depth: int = 2) -> Set:
        """An index set of at most `most` elements."""
        kind = self.pick(7) if depth else 0
        if kind < 3:
            return Seg(min(self.among((2, 1, 3, 2, 4, 2, 3, 1, 2, 3, 2, 3, 0)), most))
        if kind == 3 and most > 2:  # (X + Y) × Z, whose elements do not lie in one box
            n = self.among((2, 1, 3))
            return Product((Plus((Seg(1), Seg(max(most // n - 1, 0)))), Seg(n)))
        parts: list[Set] = []
        for _ in range(self.among((2, 3, 1, 2, 2, 3, 2, 0))):
            parts.append(self.index_set(most, depth - 1))
            most = most // max(parts[-1].size, 1) if kind < 6 else most - parts[-1].size
        found = Product(tuple(parts)) if kind < 6 else Plus(tuple(parts))
        return found if parts or found.size <= most else Seg(0)

    def some_set(self, most: int = 6) -> Set:
        """An index set with an element."""
        found = self.index_set(max(most, 1))
        return found if found.size else Seg(1)

    def relation(self, source: Set, target: Set, depth: int = 1) -> rel.Relation:
        """A relation between two sets."""
        n, m, rng = source.size, target.size, self.rng()
        options: list[Callable[[], rel.Relation]] = [
            lambda: self._pairs(source, target, rng),
            lambda: rel.Full(source, target, 1 + self.pick(2)),
            lambda: rel.Empty(source, target),
        ]
        if m or not n:
            options.append(lambda: rel.function(source, target, rng.integers(0, max(m, 1), n)))
            cuts = [0, *np.sort(rng.integers(0, n + 1, max(m - 1, 0))), *[n] * min(m, 1)]
            options.append(lambda: rel.Segments(source, target, rel.freeze(np.array(cuts, np.intp))))
        if n or not m:
            options.append(lambda: rel.function(target, source, rng.integers(0, max(n, 1), m)).converse)
        if n == m:
            options.append(lambda: rel.Diagonal(source, target))
        if source is target and isinstance(source, Seg):
            options.append(lambda: rel.triangular(source))
        segments = isinstance(source, Seg) and isinstance(target, Seg)
        if segments and 0 < m <= n:
            step = 1 + self.pick((n - 1) // (m - 1)) if m > 1 else 1
            first = self.pick(n - step * (m - 1))
            last = first + step * (m - 1)
            options.append(lambda: rel.Range(source, target, *((first, step) if self.maybe() else (last, -step))))
        if target is unit and n:
            options.append(lambda: rel.Point(source, target, self.pick(n)))
        if isinstance(source, Seg) and segments and 0 < m < n:
            options.append(lambda: rel.window(source, n - m + 1))
        if not depth:
            return self.among(options)()
        options.append(lambda: self.relation(source, target, 0) | self.relation(source, target, 0))
        if isinstance(source, Product) and isinstance(target, Product):
            one, two = source.factors, target.factors
            if len(one) == len(two) == 2 and not any([isinstance(f, Product) for f in one + two]):
                options += [lambda: self.relation(one[0], two[0], 0) * self.relation(one[1], two[1], 0)] * 2
        sums = [s.summands if isinstance(s, Plus) else () for s in (source, target)]
        if len(sums[0]) == len(sums[1]) > 1:
            options += [lambda: rel.Sum(source, target, self._relations(zip(*sums, strict=True)))] * 2
        options.append(lambda: self.relation(target, source, depth - 1).converse)
        options.append(lambda: self._then(source, self.index_set(4), target))
        if isinstance(source, Plus):
            options += [lambda: rel.Beside(source, target, self._relations([(s, target) for s in sums[0]]), False)] * 2
        return self.among(options)()

    def _relations(self, ends: Iterable[tuple[Set, Set]]) -> tuple[rel.Relation, ...]:
        return tuple([self.relation(s, t, 0) for s, t in ends])

    def _pairs(self, source: Set, target: Set, rng: np.random.Generator) -> rel.Relation:
        n, m = source.size, target.size
        drawn: Any = rng.integers(0, (n, m), (n + m, 2)).tolist() if n * m else ()
        return rel.pairs(source, target, [(source.element(i), target.element(j)) for i, j in drawn])

    def _then(self, source: Set, middle: Set, target: Set) -> rel.Relation:
        first, second = self.relation(source, middle, 0), self.relation(middle, target, 0)
        return first.then(second) if self.maybe() else rel.Through(source, target, (first, second))

    # -- spaces and vectors --------------------------------------------------------------------------------------------

    def space(self, most: int | None = None, depth: int = 3) -> Space:
        """A space of dimension at most `most`."""
        room = self.most if most is None else most
        if room < 1:
            return self.among((zero_space, Copower(R, Seg(0))))
        if self.maybe(16):
            return zero_space
        kinds: list[Callable[[], Space]] = [lambda: R, lambda: Copower(R, self.index_set(min(room, 6)))]
        if depth:
            kinds += [
                lambda: self._sum(room, depth - 1),
                lambda: self._copower(room, depth - 1),
                lambda: self._tensor(room, depth - 1),
                lambda: self._sum(room, depth - 1),
            ]
        if depth and self.weighted:
            kinds.append(lambda: self.weight(self.space(room, depth - 1)))
        return self.among(kinds)()

    def plain_space(self, most: int, depth: int = 2) -> Space:
        """A space with its Euclidean inner product."""
        weighted, self.weighted = self.weighted, False
        try:
            return self.space(most, depth)
        finally:
            self.weighted = weighted

    def _sum(self, room: int, depth: int) -> Space:
        parts: list[Space] = []
        for _ in range(self.among((2, 3, 1, 2, 2, 3, 2, 0))):
            parts.append(self.space(room, depth))
            room -= parts[-1].dim
        return self.sum_of(parts)

    def sum_of(self, parts: Sequence[Space]) -> DirectSum:
        """A direct sum of the given spaces, held in some container, over some index set of that size."""
        n = len(parts)
        forms = [None, None, Form(dict, tuple("abcdef"[:n])), Form(list, None)]
        if n == 2:
            forms += [Form(Couple, ("first", "second")), Form(Duo, ("one", "two"))]
        index = self.index_set(n) if self.maybe(4) else Seg(n)
        return DirectSum(index if index.size == n else Seg(n), tuple(parts), self.among(forms))

    def _copower(self, room: int, depth: int) -> Space:
        index = self.index_set(min(room, 6))
        return Copower(self.space(room // max(index.size, 1), depth), index)

    def _tensor(self, room: int, depth: int) -> Space:
        left = R if self.maybe(4) else self.space(min(room, 6), depth)
        return Tensor(left, self.space(room // max(left.dim, 1), depth))

    def weight(self, space: Space) -> Space:
        """A plain space with some inner product."""
        if not space.plain:
            return space
        rng = self.rng()
        scales = [0.5 + rng.random(leaf.shape) if leaf.shape else 0.5 + float(rng.random()) for leaf in space.leaves]
        n = space.dim
        match self.pick(3):
            case 0:
                return space.weighted(2.0)
            case 1 if len(space.leaves) == 1 and space.leaves[0].shape != (n, n):
                half = rng.standard_normal((n, n)) / (n + 1.0)
                return space.weighted(half @ half.T + np.eye(n))
            case _:
                return space.weighted(space.wrap(scales))

    def vector(self, space: Space) -> Any:
        """An element of a space."""
        return space.wrap(list(self.leaves(space)))

    def leaves(self, space: Space) -> tuple[Any, ...]:
        """The leaves of an element, read-only; some of a tensor's unevaluated."""
        rng, formal = self.rng(), self.maybe(3)
        return tuple([_leaf(leaf, rng, formal) for leaf in space.leaves])


def _leaf(leaf: Leaf, rng: np.random.Generator, formal: bool) -> Any:
    """Random numbers in the shape of a leaf, read-only; or an unevaluated sum of two products."""
    shape = leaf.shape
    if not shape:
        return float(rng.standard_normal())
    if not (formal and leaf.formal and len(shape) > 1):
        return rel.freeze(rng.standard_normal(shape))
    rest, sides, count = tuple(range(1, len(shape))), (shape[0], shape[1:]), 1 + rng.integers(2)
    numbers = [[rel.freeze(rng.standard_normal(side)) for side in sides] for _ in range(count)]
    products = [((a, (0,)), (b, rest)) for a, b in numbers]
    return Formal(shape, tuple([FormalProduct(float(rng.standard_normal()), p) for p in products]))
