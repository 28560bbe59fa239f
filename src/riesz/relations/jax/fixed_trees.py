"""red_R with the same bits on any number of devices: the sources of each target come one by one, and are added up in
pairs, and pairs of pairs, in their order. Which numbers are added to which depends on the relation alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..index_sets import Array
from .exchange_lists import ExchangeLists, ExchangeRound, exchange_lists

if TYPE_CHECKING:
    from ..base import Relation


class FixedTrees(NamedTuple):
    """`leaves`: how each device gets a row for each pair of its targets; `levels`: which rows are added to which, None
    behind the last one; `ends`: where each target finds its sum."""

    leaves: ExchangeLists
    levels: tuple[tuple[Array, Array], ...]
    ends: Array

    @property
    def devices(self) -> int:
        return self.leaves.devices

    @property
    def sources(self) -> int:
        return self.leaves.sources

    @property
    def targets(self) -> int:
        return self.ends.shape[1]

    @property
    def rounds(self) -> tuple[ExchangeRound, ...] | None:
        """What travels."""
        return self.leaves.rounds

    @property
    def arrays(self) -> Any:
        """What differs between devices."""
        return self.leaves.arrays, self.levels, self.ends


def fixed_trees(relation: Relation, devices: int) -> FixedTrees:
    """The trees of all targets; the same for a target wherever it is."""
    groups = relation.groups
    leaves = exchange_lists(groups, devices, "target", apart=True)
    targets = max(1, -(-groups.targets // devices))
    counts = np.zeros(devices * targets, dtype=np.intp)
    counts[: groups.targets] = np.diff(groups.offsets)
    counts = counts.reshape(devices, targets)
    levels: list[tuple[Array, Array]] = []
    while counts.max(initial=0) > 1:
        half = -(-counts // 2)
        starts, size = _starts(counts), int(counts.sum(1).max())
        device, target = np.divmod(np.repeat(np.arange(half.size), half.ravel()), targets)
        rank = np.arange(len(device)) - np.repeat(np.cumsum(half.ravel()) - half.ravel(), half.ravel())
        to = _starts(half)[device, target] + rank
        pair = np.full((2, devices, int(half.sum(1).max())), size, dtype=np.int32)
        for k in (0, 1):
            there = 2 * rank + k < counts[device, target]
            pair[k, device[there], to[there]] = (starts[device, target] + 2 * rank + k)[there]
        levels.append((pair[0], pair[1]))
        counts = half
    ends = np.where(counts > 0, _starts(counts), int(counts.sum(1).max(initial=0))).astype(np.int32)
    return FixedTrees(leaves, tuple(levels), ends)


def _starts(counts: Array) -> Array:
    return np.cumsum(counts, 1) - counts
