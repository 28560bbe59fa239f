"""Which rows devices give to each other for red_R: lists made once from the pairs of a relation.

Sources and targets are cut into blocks of equal length, one for each of D devices. A pair whose source and target lie
on one device stays there. Another one is owned by the device of its target, which gets the row of the source, once for
all its pairs; or by the device of its source, which adds up what it has for the target, and the sum travels, once. So
what travels is a star forest: a row on one device is a root, the places it is sent to are its leaves. With pairs split
by both, each row of a source and each sum for a target that travels covers the pairs it has a part in; the fewest that
cover all pairs are found from a matching (Kőnig's theorem). The adjoint goes the same way back.

Rows travel either all at once (`all_to_all`, room for the longest list between two devices) or in rounds, in each of
which a device gives to one other device and gets from one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ...runtime import tuning
from ..cpu.groups import Groups
from ..index_sets import Array

OWNERS = ("auto", "target", "source", "both")


class Sums(NamedTuple):
    """Σ over pairs on each device, a row for a device: `rows` to read, places `at` to add to, in order (None: each
    place has one row), each `times` (None: once). Rows are filled up with places behind the last."""

    rows: Array
    at: Array | None
    times: Array | None


class ExchangeRound(NamedTuple):
    """Which device gives to which, and the room for rows."""

    pairs: tuple[tuple[int, int], ...]
    room: int


class ExchangeLists(NamedTuple):
    """All that devices need to know; arrays have a row for each device. `rounds`: None if rows travel all at once."""

    owner: str
    devices: int
    sources: int  # in a block
    targets: int
    room: int  # rows that a device gets, places left free included
    rounds: tuple[ExchangeRound, ...] | None
    sent: int  # rows that travel, places left free not counted
    busiest: int  # rows that the device gets or gives for which these are most
    sums: tuple[Sums, Sums, Sums]  # of the block: to be sent, and here; of rows that came
    back: tuple[Sums, Sums, Sums]  # the same for the adjoint

    @property
    def moved(self) -> int:
        """Rows that travel, places left free included."""
        if self.rounds is None:
            return self.room * (self.devices - 1)
        return sum([len(one.pairs) * one.room for one in self.rounds])

    @property
    def turned(self) -> ExchangeLists:
        """The same lists for the converse."""
        rounds = None if self.rounds is None else tuple([_back(one) for one in self.rounds])
        owner = {"target": "source", "source": "target"}.get(self.owner, self.owner)
        turned = self._replace(owner=owner, rounds=rounds, sums=self.back, back=self.sums)
        return turned._replace(sources=self.targets, targets=self.sources)

    @property
    def arrays(self) -> Any:
        """What differs between devices."""
        return self.sums


def _back(one: ExchangeRound) -> ExchangeRound:
    return ExchangeRound(tuple([(q, p) for p, q in one.pairs]), one.room)


def exchange_lists(groups: Groups, devices: int, owner: str = "auto", apart: bool = False) -> ExchangeLists:
    """The lists of pairs grouped by target; "auto" takes the owner for which fewest rows travel. `apart`: rows are not
    added up, each pair of a device has a place of its own."""
    size, count = groups.size, groups.targets
    sources, targets = max(1, -(-size // devices)), max(1, -(-count // devices))
    target = np.repeat(np.arange(count), np.diff(groups.offsets))
    source = np.arange(size) if groups.index is None else np.asarray(groups.index, dtype=np.intp)
    taker_of, giver_of, place_of = target // targets, source // sources, target % targets
    if apart:
        held = np.bincount(taker_of, minlength=devices)
        place_of, targets = np.arange(len(target)) - (np.cumsum(held) - held)[taker_of], max(1, int(held.max()))
    far, near = np.flatnonzero(taker_of != giver_of), np.flatnonzero(taker_of == giver_of)
    s, t = source[far], target[far]
    between = taker_of[far] * devices + giver_of[far]  # which device gives to which
    owner, by_row = _owned(owner, between * size + s, between * count + t)
    items, first, which = np.unique(
        between * (size + count) + np.where(by_row, s, size + t), return_index=True, return_inverse=True
    )
    which = which.reshape(-1)
    pair, row_item = items // (size + count), by_row[first]
    taker, giver = np.divmod(pair, devices)
    traffic = np.bincount(pair, minlength=devices * devices).reshape(devices, devices).T  # giver × taker
    starts = np.concatenate([[0], np.cumsum(traffic.T.ravel())])[:-1]
    rank = np.arange(len(items)) - starts[pair]
    rounds, widest = _rounds(traffic), int(traffic.max(initial=0))
    if rounds is None:
        room = devices * widest
        leaf, root = giver * widest + rank, taker * widest + rank
    else:
        begins = np.zeros((devices, devices), dtype=np.intp)
        room = 0
        for one in rounds:
            begins[tuple(np.transpose(one.pairs))] = room
            room += one.room
        leaf = root = begins[giver, taker] + rank
    times = [None if groups.times is None else groups.times[some] for some in (near, far)]
    # to be sent: rows as they are, and sums for targets elsewhere
    pushed = np.flatnonzero(~by_row)
    send_device = np.concatenate([giver[row_item], giver_of[far][pushed]])
    send_row = np.concatenate([s[first][row_item] % sources, s[pushed] % sources])
    send_at = np.concatenate([root[row_item], root[which[pushed]]])
    # of rows that came: to all pairs of a row, sums to their target
    pulled = np.flatnonzero(by_row)
    away_device = np.concatenate([taker_of[far][pulled], taker[~row_item]])
    away_row = np.concatenate([leaf[which[pulled]], leaf[~row_item]])
    away_at = np.concatenate([place_of[far][pulled], place_of[far][first][~row_item]])
    send_times = away_times = None
    if times[1] is not None:
        send_times = np.concatenate([np.ones(int(row_item.sum())), times[1][pushed]])
        away_times = np.concatenate([times[1][pulled], np.ones(int((~row_item).sum()))])
    block, place, home = source[near] % sources, place_of[near], taker_of[near]
    D = devices
    return ExchangeLists(
        owner,
        D,
        sources,
        targets,
        room,
        rounds,
        len(items),
        int(max(traffic.sum(0).max(initial=0), traffic.sum(1).max(initial=0))),
        (
            sums(send_device, send_row, send_at, send_times, D, sources, room),
            sums(home, block, place, times[0], D, sources, targets),
            sums(away_device, away_row, away_at, away_times, D, room, targets),
        ),
        (
            sums(away_device, away_at, away_row, away_times, D, targets, room),
            sums(home, place, block, times[0], D, targets, sources),
            sums(send_device, send_at, send_row, send_times, D, room, sources),
        ),
    )


def _owned(owner: str, rows: Array, ends: Array) -> tuple[str, Array]:
    """Who owns pairs between devices, and which of these are covered by the row of their source (the others by the sum
    for their target). `rows` and `ends` say for each pair what may travel for it."""
    if owner in ("target", "source") or not len(rows):
        return owner if owner != "auto" else "target", np.full(len(rows), owner != "source")
    kinds, row = np.unique(rows, return_inverse=True)
    places, end = np.unique(ends, return_inverse=True)
    m, n = len(kinds), len(places)
    by_row, fewest = _covered(row.reshape(-1), end.reshape(-1), m, n)
    if owner == "auto" and fewest > tuning.SPLIT_OWNERS_RATIO * min(m, n):
        return ("target" if m <= n else "source"), np.full(len(rows), m <= n)
    return "both", by_row


def _covered(row: Array, end: Array, m: int, n: int) -> tuple[Array, int]:
    """Which pairs are covered by their row, such that the fewest rows and ends cover all pairs, and how few these are:
    a smallest vertex cover of the graph between rows and ends, from a largest matching."""
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]
    from scipy.sparse import csgraph  # pyright: ignore[reportMissingTypeStubs]

    sp, cs = cast(Any, sparse), cast(Any, csgraph)
    graph = sp.csr_array((np.ones(len(row), np.int8), (row, end)), shape=(m, n))
    match = cs.maximum_bipartite_matching(graph, perm_type="column")  # of each row, or −1
    matched, free = np.flatnonzero(match >= 0), np.flatnonzero(match < 0)
    # reached from rows that have no match, by any pair to its end, by a match to its row; one node before all rows
    heads = np.concatenate([row, m + match[matched], np.full(len(free), m + n)])
    tails = np.concatenate([m + end, matched, free])
    steps = sp.csr_array((np.ones(len(heads), np.int8), (heads, tails)), shape=(m + n + 1, m + n + 1))
    reached = np.zeros(m + n + 1, dtype=bool)
    reached[cs.breadth_first_order(steps, m + n, return_predecessors=False)] = True
    return ~reached[row], len(matched)  # the cover: rows that are not reached, and ends that are


def _rounds(traffic: Array) -> tuple[ExchangeRound, ...] | None:
    """Rounds in which all may travel; None where that is little less than all at once. `traffic`: giver × taker."""
    D = len(traffic)
    givers, takers = np.nonzero(traffic)
    found: list[list[tuple[int, int]]] = [[] for _ in range(D)]
    pairs: list[tuple[int, int]] = list(zip(givers.tolist(), takers.tolist(), strict=True))
    for p, q in pairs:
        found[(q - p) % D].append((p, q))
    best = _with_room(found, traffic)
    if D <= tuning.EXCHANGED_ROUNDS:  # the longest lists first, each in the first round in which both are free
        pairs = [pairs[k] for k in np.argsort(-traffic[givers, takers], kind="stable").tolist()]
        rounds: list[list[tuple[int, int]]] = []
        gives: list[set[int]] = []
        takes: list[set[int]] = []
        for p, q in pairs:
            k = next((k for k in range(len(rounds)) if p not in gives[k] and q not in takes[k]), len(rounds))
            if k == len(rounds):
                rounds.append([])
                gives.append(set())
                takes.append(set())
            rounds[k].append((p, q))
            gives[k].add(p)
            takes[k].add(q)
        best = min(best, _with_room(rounds, traffic), key=lambda some: (sum([one.room for one in some]), len(some)))
    room, together = sum([one.room for one in best]), D * int(traffic.max(initial=0))
    return best if len(best) <= tuning.EXCHANGED_SHIFTS or 2 * room < together else None


def _with_room(rounds: list[list[tuple[int, int]]], traffic: Array) -> tuple[ExchangeRound, ...]:
    return tuple([ExchangeRound(tuple(one), max([int(traffic[p, q]) for p, q in one])) for one in rounds if one])


def sums(device: Array, rows: Array, at: Array, times: Any, devices: int, most: int, size: int) -> Sums:
    """Pairs of each device, in the order of the places they are added to; `most` rows, `size` places."""
    times = None if times is None or bool((times == 1).all()) else times
    if times is None and len(at) * 2 >= devices * size and np.bincount(device * size + at).max(initial=0) <= 1:
        found = np.full((devices, size), most, dtype=np.int32)
        found[device, at] = rows
        return Sums(found, None, None)
    order = np.argsort(device * size + at, kind="stable")
    device, counts = device[order], np.bincount(device, minlength=devices)
    column = np.arange(len(device)) - np.concatenate([[0], np.cumsum(counts)])[:-1][device]
    shape = devices, int(counts.max(initial=0))
    tables = [np.full(shape, end, dtype=np.int32) for end in (most, size)]
    for table, values in zip(tables, (rows, at), strict=True):
        table[device, column] = values[order]
    weights = None
    if times is not None:
        weights = np.zeros(shape)
        weights[device, column] = times[order]
    return Sums(tables[0], tables[1], weights)
