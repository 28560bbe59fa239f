"""Which rows devices give to each other for red_R: lists made once from the pairs of a relation.

Sources and targets are cut into blocks of equal length, one for each of D devices. A pair is owned by the device of its
target. What the device has of the source is read where it lies; other rows come from their devices, each once for
all pairs that need it (a star forest: a row is a root, the places it is sent to are its leaves). The adjoint goes the
same way back: sums of a row's leaves are added to the root.

Rows travel either all at once (`all_to_all`, room for the longest list between two devices) or by shifts: device p
to device p + k, for those k that occur, with room for the longest list of that shift.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime import tuning
from ..index_sets import Array


class Sums(NamedTuple):
    """Σ over pairs on each device, a row for a device: `rows` to read, places `at` to add to, in order, each `times`
    (None: once). Rows are filled up with places behind the last."""

    rows: Array
    at: Array
    times: Array | None


class ExchangeLists(NamedTuple):
    """All that devices need to know; arrays have a row for each device. `shifts`: the shifts that occur, each with room
    for so many rows; None: all at once."""

    devices: int
    sources: int  # in a block
    targets: int
    room: int  # rows that a device gets, places left free included
    shifts: tuple[tuple[int, int], ...] | None
    sent: int  # rows that travel, places left free not counted
    send: Array  # rows of the block, in the order in which they go
    here: Sums  # of rows of the block
    away: Sums  # of rows that came
    here_back: Sums  # the same pairs, from targets to sources
    away_back: Sums
    added_back: Sums  # of rows that came back, to rows of the block

    @property
    def moved(self) -> int:
        """Rows that travel, places left free included."""
        if self.shifts is None:
            return self.room * (self.devices - 1)
        return self.devices * sum([room for _, room in self.shifts])


def exchange_lists(size: int, offsets: Array, index: Array | None, times: Array | None, devices: int) -> ExchangeLists:
    """The lists of pairs grouped by target (see cpu/groups.py)."""
    count = len(offsets) - 1
    sources, targets = max(1, -(-size // devices)), max(1, -(-count // devices))
    target = np.repeat(np.arange(count), np.diff(offsets))
    source = np.arange(size) if index is None else np.asarray(index, dtype=np.intp)
    owner, holder = target // targets, source // sources
    far = np.flatnonzero(owner != holder)
    rows, which = np.unique(owner[far] * size + source[far], return_inverse=True)
    taker, row = np.divmod(rows, max(size, 1))
    giver = row // sources
    pairs = np.bincount(taker * devices + giver, minlength=devices * devices).reshape(devices, devices)
    starts = np.concatenate([[0], np.cumsum(pairs.ravel())])[:-1]
    rank = np.arange(len(rows)) - starts[taker * devices + giver]
    shift = (taker - giver) % devices
    longest = [(k, int(pairs[np.arange(devices), (np.arange(devices) - k) % devices].max())) for k in range(1, devices)]
    used = tuple([(k, room) for k, room in longest if room])
    widest = int(pairs.max(initial=0))
    together = devices * (devices - 1) * widest
    few = len(used) <= tuning.EXCHANGED_SHIFTS or devices * sum([room for _, room in used]) < together // 2
    if few:
        begins = np.zeros(devices, dtype=np.intp)
        for k, begin in zip([k for k, _ in used], np.cumsum([0, *[room for _, room in used]]), strict=False):
            begins[k] = begin
        room = sum([n for _, n in used])
        leaf, root = begins[shift] + rank, begins[shift] + rank
    else:
        room = devices * widest
        leaf, root = giver * widest + rank, taker * widest + rank
    send = np.full((devices, room), sources, dtype=np.int32)  # places left free are of no row
    send[giver, root] = row - giver * sources
    near = np.flatnonzero(owner == holder)
    block, place = source[near] % sources, target[near] % targets
    end, slots = target[far] % targets, leaf[which]
    weigh = [None if times is None else times[pairs] for pairs in (near, far)]
    back = np.broadcast_to(np.arange(room), send.shape)
    return ExchangeLists(
        devices,
        sources,
        targets,
        room,
        used if few else None,
        len(rows),
        send,
        here=_sums(owner[near], block, place, weigh[0], devices, sources, targets),
        away=_sums(owner[far], slots, end, weigh[1], devices, room, targets),
        here_back=_sums(owner[near], place, block, weigh[0], devices, targets, sources),
        away_back=_sums(owner[far], end, slots, weigh[1], devices, targets, room),
        added_back=_sums(np.repeat(np.arange(devices), room), back.ravel(), send.ravel(), None, devices, room, sources),
    )


def _sums(device: Array, rows: Array, at: Array, times: Any, devices: int, most: int, size: int) -> Sums:
    """Pairs of each device, in the order of the places they are added to; `most` rows, `size` places."""
    order = np.lexsort((rows, at, device))
    device, counts = device[order], np.bincount(device, minlength=devices)
    column = np.arange(len(device)) - np.concatenate([[0], np.cumsum(counts)])[:-1][device]
    shape = devices, int(counts.max(initial=0))
    found = [np.full(shape, end, dtype=np.int32) for end in (most, size)]
    for table, values in zip(found, (rows, at), strict=True):
        table[device, column] = values[order]
    weights = None
    if times is not None:
        weights = np.zeros(shape)
        weights[device, column] = times[order]
    return Sums(found[0], found[1], weights)
