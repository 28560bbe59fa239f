"""Relations of which only counts are known: how many pairs there are, and where partners lie.

A function of such a relation cannot be run. It can be derived and placed like any other, so that what it costs on many
devices can be told for 10¹² pairs that nobody has.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, NoReturn, cast

from ..errors import RelationError
from ..runtime import tuning
from .base import Relation
from .index_sets import Array, Set


class Traffic(NamedTuple):
    """What comes to each device in one exchange: rows, places left free included, and in how many messages."""

    rows: int
    messages: int


class Uniform(NamedTuple):
    """Partners anywhere, each as likely. `degrees`: pairs of a source, and the share of sources that have so many, as
    far as ratios go; without it they are spread by chance.

    >>> from riesz import relations, seg
    >>> hubs = relations.Uniform(((1, 0.99), (1000, 0.01)))
    >>> [relations.counted(seg(10**6), seg(10**6), 10**7, law).traffic(256).rows for law in (relations.Uniform(), hubs)]
    [52992, 22016]
    """

    degrees: tuple[tuple[int, float], ...] = ()

    def traffic(self, block: int, across: int, pairs: int, devices: int) -> Traffic:
        """Blocks of `block` rows of one side and `across` of the other."""
        mean = pairs / (block * devices)
        if self.degrees:
            shares, whole = sum([share for _, share in self.degrees]), sum([d * share for d, share in self.degrees])
            each = math.log1p(-1 / devices) * mean * shares / whole
            kept = sum([share * math.exp(d * each) for d, share in self.degrees]) / shares
        else:
            kept = math.exp(-mean / devices)
        needed = 1 - kept  # the chance that another device needs a row
        mean, spread = block * needed, math.sqrt(block * needed * kept)
        if devices - 1 <= tuning.EXCHANGED_SHIFTS:
            return Traffic((devices - 1) * _longest(mean, spread, devices, block), devices - 1)
        return Traffic(devices * _longest(mean, spread, devices * (devices - 1), block), devices - 1)


class Near(NamedTuple):
    """Partners at most `reach` positions of the sources away, each as likely; 0: sources and targets in one order.

    >>> from riesz import relations, seg
    >>> relations.counted(seg(10**6), seg(10**6), 10**7, relations.Near(10)).traffic(256)
    Traffic(rows=20, messages=2)
    """

    reach: int

    def traffic(self, block: int, across: int, pairs: int, devices: int) -> Traffic:
        """A row j positions behind the border is needed by pairs of the reach − j + 1 positions before it."""
        if not self.reach:
            return Traffic(0, 0)
        width, dense = 2 * self.reach + 1, pairs / (block * devices)
        rate = dense / width
        missed = -math.expm1(-rate * self.reach) / rate  # the integral of exp(−rate·t)
        twice = -math.expm1(-2 * rate * self.reach) / (2 * rate)
        hops = math.ceil(self.reach / block)
        mean, spread = self.reach - missed, math.sqrt(max(missed - twice, 0.0))
        messages = min(2 * hops, devices - 1)
        return Traffic(2 * _longest(mean, spread, devices, self.reach), messages)


class Lattice(NamedTuple):
    """Neighbours up to `reach` steps along the axes of a grid of so many `dimensions`, numbered so that devices have
    cubes: along a Z-order curve, with a power of two of devices along each axis.

    >>> from riesz import relations, seg
    >>> relations.counted(seg(2**30), seg(2**30), 6 * 2**30, relations.Lattice(3)).traffic(512)
    Traffic(rows=294912, messages=18)
    """

    dimensions: int
    reach: int = 1

    def traffic(self, block: int, across: int, pairs: int, devices: int) -> Traffic:
        """A face comes from each side, in a round of its own. Rounds are not packed for many devices: then there is one
        for each difference of the numbers of neighbours, log₂ devices of them up and as many down."""
        face = math.ceil(block ** ((self.dimensions - 1) / self.dimensions) * self.reach)
        packed = devices <= tuning.EXCHANGED_ROUNDS
        rounds = 2 * (self.dimensions if packed else math.ceil(math.log2(devices)))
        return Traffic(rounds * face, rounds)


def _longest(mean: float, spread: float, lists: int, most: int) -> int:
    """The longest of so many lists whose lengths are spread about a mean."""
    return min(most, math.ceil(mean + spread * math.sqrt(2 * math.log(max(lists, 1)))))


Law = Uniform | Near | Lattice


class Counted(Relation):
    """A relation with so many pairs whose partners lie as a law says.

    >>> from riesz import relations, seg
    >>> R = relations.counted(seg(10**9), seg(10**9), 10**12, relations.Near(1000))
    >>> R.count, R.traffic(4096)
    (1000000000000, Traffic(rows=2000, messages=2))
    """

    counted: ClassVar[bool] = True

    held: int
    law: Law
    turned: bool = False

    def check(self) -> None:
        held, law = cast(Any, self.held), cast(Any, self.law)
        if not isinstance(held, int) or held < 0:
            raise RelationError(f"the number of pairs is a whole number; got {held!r}")
        if not isinstance(law, Uniform | Near | Lattice):
            laws = "relations.Uniform(), relations.Near(reach) or relations.Lattice(dimensions)"
            raise RelationError(f"where partners lie is said by {laws}; got {law!r}")

    @property
    def count(self) -> int:
        return self.held

    def traffic(self, devices: int) -> Traffic:
        """What comes to each of so many devices when red_R is computed on blocks; the adjoint sends as much back."""
        ends = self.source.size, self.target.size
        source, target = [max(1, -(-n // devices)) for n in (reversed(ends) if self.turned else ends)]
        if devices < 2:
            return Traffic(0, 0)
        by_target = self.law.traffic(source, target, self.held, devices)
        if isinstance(self.law, Uniform):  # sums of targets may go instead of sources
            return min(by_target, Uniform().traffic(target, source, self.held, devices))
        return by_target

    def _none(self) -> NoReturn:
        how = (
            "it can be derived and placed, as in g.plan(devices=…), not run; relations.relation(X, Y, pairs) has pairs"
        )
        raise RelationError(f"of {self} only the number of pairs is known: {how}")

    def reduce(self, v: Array) -> Array:
        self._none()

    def pairs(self) -> Any:
        self._none()


def counted(source: Set, target: Set, pairs: int, law: Law) -> Relation:
    """A relation of which only counts are known: `pairs`, and where partners lie (`relations.Uniform`, `Near` or
    `Lattice`). It can be derived and placed, not run.

    >>> from riesz import relations, seg
    >>> relations.counted(seg(10**6), seg(10**6), 10**7, relations.Uniform())
    10000000 pairs ⊆ 1000000×1000000
    """
    return Counted(source, target, pairs, law)
