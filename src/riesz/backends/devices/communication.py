"""Steps of a program that runs on every device of a mesh, each on its part: what devices give to each other.

`names` are axes of the mesh, the first one varies slowest; `count` is how many devices lie along them. Parts of an axis
are blocks of equal length; where the length of the axis is no multiple of `count`, the last ones are filled up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...ops.op import Op, Shape
from ...programs.cost import FLOPS
from ...relations.base import Relation
from ...relations.counts import Counted
from ...runtime import tuning

Names = tuple[str, ...]


def block(n: int, count: int) -> int:
    """The length of a part of an axis."""
    return -(-n // count)


class Communication(Op):
    """A value placed in another way. `kind` is one of

    all-reduce      sums of the parts of a sum
    reduce-scatter  the same, of which each device keeps its block of `axis`
    all-gather      the blocks of `axis`, put together
    all-to-all      blocks of `axis` put together, `to` cut into blocks
    part            the device's own block of `axis`; nothing travels
    clear           zeros where `axis` is filled up; nothing travels
    """

    kind: str
    names: Names
    count: int
    axis: int = 0
    length: int = 0  # of the whole axis
    to: int = 0
    made_to_run = True

    @property
    def title(self) -> str:
        return self.kind

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        shape = list(shapes[0])
        if self.kind in ("all-gather", "all-to-all"):
            shape[self.axis] = self.length
        if self.kind in ("part", "reduce-scatter"):
            shape[self.axis] = block(self.length, self.count)
        if self.kind == "all-to-all":
            shape[self.to] = block(shape[self.to], self.count)
        return tuple(shape)

    def numbers(self, shape: Shape, result: Shape) -> int:
        """How many numbers come to a device."""
        return 0 if self.kind in ("part", "clear") else math.prod(result)


class Rims(Op):
    """Rows at the ends of the blocks of an axis of so many elements, that devices before or behind need for shifts of
    one value: `rims` of halo_exchange.py, one behind the other."""

    rims: Any
    size: int
    axis: int
    names: Names
    count: int
    made_to_run = True

    @property
    def title(self) -> str:
        return "exchange"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        rows = sum([one.high - one.low for one in self.rims])
        return (*shapes[0][: self.axis], rows, *shapes[0][self.axis + 1 :])

    @property
    def messages(self) -> int:
        """In how many messages rows come to a device."""
        return len(self.rims)

    def numbers(self, shape: Shape, result: Shape) -> int:
        """How many numbers come to a device."""
        return math.prod(result)


class Exchange(Op):
    """red_R along an axis of which each device has a block, of the sources, of the targets or of both. `how` is

    exchange  blocks of both: rows that are needed elsewhere travel as in `R.plan(mesh=…)`
    targets   sources are whole: each device computes its block of the targets; nothing travels
    sources   targets are whole: each device adds up what its block of the sources gives, a part of a sum

    With `rims`, the rows that an exchange needs are there already, a second argument.
    """

    how: str
    relation: Relation
    axis: int
    names: Names
    count: int
    rims: Any = ()
    made_to_run = True

    @property
    def title(self) -> str:
        return "exchange" if self.how == "exchange" else "red"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        source, target = self.relation.source.box or (), list(self.relation.target.box or ())
        if self.how != "sources":
            target[0] = block(target[0], self.count)
        return (*shapes[0][: self.axis], *target, *shapes[0][self.axis + len(source) :])

    def width(self, shape: Shape) -> int:
        """How many numbers a row has, by the shape of the argument."""
        return math.prod(shape[: self.axis]) * math.prod(shape[self.axis + len(self.relation.source.box or ()) :])

    @cached_property
    def form(self) -> Any:
        """How an exchange is done: along lists, or without."""
        from ...relations.jax.mesh_plan import form_of

        return form_of(self.relation, self.count)

    @cached_property
    def arrays(self) -> Any:
        """What differs between devices, a row of each array for a device: lists, or the pairs of each device."""
        return self.form.arrays if self.how == "exchange" else _own_pairs(self.relation, self.how, self.count)

    @cached_property
    def room(self) -> int:
        """The rows that a device gets, places left free included."""
        if self.how != "exchange" or self.rims:
            return 0
        if isinstance(self.relation, Counted):
            return self.relation.traffic(self.count).rows
        from ...relations.jax.mesh_plan import room_of

        return room_of(self.form)

    @property
    def listed(self) -> bool:
        """Whether devices go through lists of pairs."""
        return self.how != "exchange" or self.relation.counted or not without_lists(self.relation, self.count)

    @property
    def messages(self) -> int:
        """In how many messages rows come to a device."""
        if isinstance(self.relation, Counted):
            return self.relation.traffic(self.count).messages
        return self.count - 1 if self.form.rounds is None else len(self.form.rounds)

    def numbers(self, shape: Shape, result: Shape) -> int:
        """How many numbers come to a device."""
        return self.room * self.width(shape)


FLOPS("nothing", Communication, Rims)(lambda op, shapes, shape: 0)
FLOPS("what the device's pairs add", Exchange)(
    lambda op, shapes, shape: op.relation.work * op.width(shapes[0]) // op.count
)


def _own_pairs(relation: Relation, how: str, count: int) -> Any:
    """The pairs of each device: rows to read, places to add to in order (behind the last: nothing), and how often; a
    row of the arrays for a device. By blocks of targets or of sources."""
    from ...relations.jax.exchange_lists import sums

    groups = relation.groups
    sources, targets = relation.source.size, relation.target.size
    target = np.repeat(np.arange(targets), np.diff(groups.offsets))
    source = np.arange(groups.count) if groups.index is None else np.asarray(groups.index, dtype=np.intp)
    if how == "targets":
        size = _flat_block(relation.target, count)
        return sums(target // size, source, target % size, groups.times, count, sources, size)
    size = _flat_block(relation.source, count)
    return sums(source // size, source % size, target, groups.times, count, size, targets)


def listed(relation: Relation) -> bool:
    """Whether the pairs of a relation may be listed."""
    return relation.count <= tuning.PLACED_PAIRS * (relation.source.size + relation.target.size)


def without_lists(relation: Relation, count: int) -> bool:
    """Whether devices exchange blocks along a relation without lists."""
    from ...relations.jax.halo_exchange import without_lists

    return without_lists(relation, count) is not None


def shared_rims(relation: Relation, others: Sequence[Relation], count: int) -> Any:
    """The rims that shifts of one value need together; None where a relation is none."""
    from ...relations.jax.halo_exchange import Halo, shared
    from ...relations.jax.halo_exchange import without_lists as form

    found = [one for one in [form(r, count) for r in others] if isinstance(one, Halo)]
    return shared(found) if isinstance(form(relation, count), Halo) else None


def _flat_block(box: Any, count: int) -> int:
    return block(box.box[0], count) * math.prod(box.box[1:])
