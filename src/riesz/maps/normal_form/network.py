"""The normal form of a linear map: a graph whose nodes are arrays and whose edges are sums of entries.

It is derived from a linear program by eliminating the steps between inputs and outputs: the entries on either side of a
step are composed, unless what comes out is more than what went in. Then the step stays, a hub: a product that is better
left unmultiplied. So the network is never larger than the program, however often values are shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from ...ops.op import Contraction
from ...programs.program import INPUT, Program, applied
from ...relations.index_algebra import IndexTable
from ...runtime import tuning
from ...runtime.stackless import quiet
from .coefficients import Coefficients, Room
from .edges import edges
from .entries import Entry, EntryCost, StaysApart, composed, costs, evaluated, identity, total
from .merging import EntrySum, Groups, merged


class Kept(NamedTuple):
    """A step without entries: its op, and in order its arguments, those that move (slots) and coefficients."""

    op: Any
    args: tuple[tuple[bool, int], ...]


class Network:
    """inputs, outputs and hubs (slots of the program it came from), `blocks[to][from]` the entries of an edge,
    `kept[to]` steps without entries."""

    def __init__(self, program: Program, fixed: int) -> None:
        self.c = Coefficients()
        self.inputs = program.inputs[fixed:]
        self.shapes: dict[int, tuple[int, ...]] = {s: program.shapes[s] for s in self.inputs}
        self.outputs = list(program.outputs)
        self.blocks: dict[int, dict[int, list[Entry]]] = {}
        self.kept: dict[int, Kept] = {}
        self.hubs: list[int] = []
        self.params: list[int] = []
        self.strong: set[int] = set()  # nodes whose zeros are strong (Note [Strong] in ops/op.py)
        self.guarded: set[int] = set()  # nodes with places that nothing reaches, which some product must not look at
        self.made: dict[Any, Any] = {}  # what was made of it: patterns, programs, …

    def known(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is made of the network once for all points."""
        with self.c.lock:
            if key not in self.made:
                self.made[key] = make()
            return self.made[key]

    def like(self, **changed: Any) -> Network:
        """The same network but for some parts."""
        other = Network.__new__(Network)
        parts: dict[str, Any] = {**self.__dict__, "made": {}, **changed}
        other.__dict__.update({k: v for k, v in parts.items() if k != "turned" or k in changed})
        return other

    @property
    def simple(self) -> bool:
        """Whether there is nothing between inputs and outputs."""
        return not self.hubs and not self.kept

    def block(self, row: int, column: int) -> list[Entry]:
        """The entries from one input to one output, by number."""
        out, inn = self.outputs[row], self.inputs[column]
        return self.blocks.get(out, {}).get(inn, [])

    def sources(self, node: int) -> list[int]:
        """The nodes that a node is computed from."""
        return [a for moves, a in self.kept[node].args if moves] if node in self.kept else list(self.blocks[node])

    @cached_property
    def turned(self) -> Network:
        """The transpose of a network without hubs: the same entries with their sides exchanged."""
        # an input that nothing reads has a row too, an empty one
        blocks: dict[int, dict[int, list[Entry]]] = {a: {} for a in self.inputs}
        for to, row in self.blocks.items():
            for a, es in row.items():
                blocks[a][to] = [e.turned for e in es]
        ends = {"inputs": self.outputs, "outputs": self.inputs}
        return self.like(**ends, blocks=blocks, strong=set(), guarded=set(), turned=self)

    @property
    def entries(self) -> list[Entry]:
        """All entries."""
        return [e for row in self.blocks.values() for es in row.values() for e in es]

    @property
    def listed(self) -> bool:
        """Whether index arrays say where some entries are: their positions are few once those that meet are added."""
        return any([type(m) is IndexTable for e in self.entries for m in (*e.out, *e.inn)])

    def constant(self, entries: Sequence[Entry]) -> bool:
        """Whether the numbers of some entries are the same at every point."""
        moving = self.c.program.dependent(self.params)
        return not any([moving[f.slot] for e in entries for f in e.factors])

    @property
    def order(self) -> list[int]:
        """Nodes that are computed, in order."""
        return sorted({*self.hubs, *self.kept, *[o for o in self.outputs if o not in self.inputs]})


@quiet
def derived(program: Program, fixed: int = 0) -> Network:
    """The network of a program that is linear in all inputs after the first `fixed`; coefficients depend on those."""
    net = Network(program, fixed)
    c = net.c
    moving = program.dependent(program.inputs[fixed:])
    place = {slot: c.program.input(program.shapes[slot]) for slot in program.inputs[:fixed]}
    net.params = list(place.values())
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if not moving[slot] and slot not in place:
            place[slot] = applied(c, op, [place[a] for a in args])
    live = program.needed(program.outputs)
    products = [(op, args) for op, args in zip(program.ops, program.args, strict=True) if type(op) is Contraction]
    net.strong = {args[k] for op, args in products for k in op.strong}
    net.guarded = {args[op.guarded] for op, args in products if op.guarded >= 0}
    for slot, op in enumerate(program.ops):
        if not moving[slot] or not live[slot]:
            continue
        net.shapes[slot] = program.shapes[slot]
        if op is INPUT:
            continue
        found = edges(c, program, slot, moving, place.__getitem__)
        if found is None:
            args = [(bool(moving[a]), a if moving[a] else place[a]) for a in program.args[slot]]
            net.kept[slot] = Kept(op, tuple(args))
            continue
        row: dict[int, list[Entry]] = {}
        for a, es in found:
            row.setdefault(a, []).extend([e.strongly for e in es] if slot in net.strong else es)
        net.blocks[slot] = {a: merged(c, es) for a, es in row.items()}
    for at, slot in enumerate(program.outputs):  # nodes of their own: a step may be an output twice, or an input
        net.outputs[at] = node = len(program.ops) + at
        net.shapes[node] = shape = program.shapes[slot]
        net.blocks[node] = {slot: [identity(c, shape)]} if moving[slot] and 0 not in shape else {}
    _Elimination(net, force=False).run()
    _without_zeros(net)
    return net


def _without_zeros(net: Network) -> None:
    """Leave out entries that are 0 times finite numbers; 0 times what may be infinite stays."""

    def counts(e: Entry) -> bool:
        known = [net.c.about(f.slot) for f in e.factors]
        return all([k.number != 0.0 for k in known]) or not all([k.finite for k in known])

    if net.simple:
        for to, row in net.blocks.items():
            some = {a: list(filter(counts, es)) for a, es in row.items()}
            net.blocks[to] = {a: es for a, es in some.items() if es}


class _Elimination:
    """The steps between are removed, the ones that concern the fewest numbers first, as long as that makes the network
    no larger.

    `force`: in any case, those that the fewest paths go through first, until too many positions are listed.
    """

    def __init__(self, net: Network, force: bool) -> None:
        self.net, self.force = net, force
        self.blocks = {to: {a: EntrySum(net.c, es) for a, es in row.items()} for to, row in net.blocks.items()}
        self.users: dict[int, set[int]] = {}
        for to, row in net.blocks.items():
            for a in row:
                self.users.setdefault(a, set()).add(to)
        self.fixed = {*net.inputs, *net.outputs, *net.kept, *[a for slot in net.kept for a in net.sources(slot)]}
        positions = costs(net.c, net.entries).positions
        self.left = tuning.HUB_LISTED_RATIO * max(positions, 4096)  # so many positions may be listed

    def run(self) -> None:
        """Remove what can be removed."""
        blocks, users, net = self.blocks, self.users, self.net
        tries = {s: 0 for s in blocks if s not in self.fixed}
        waiting = [(*self._weight(s), s) for s in tries]
        heapify(waiting)
        while waiting:
            *known, s = heappop(waiting)
            if s not in blocks:
                continue
            now = self._weight(s)
            if now > tuple(known):  # its neighbourhood has grown since: others first
                heappush(waiting, (*now, s))
                continue
            tries[s] += 1
            if self._removed(s):
                around = {*blocks[s], *users.get(s, ())}
                self._detach(s)
                for a in around:
                    if 0 < tries.get(a, 0) < tuning.HUB_TRIES:  # refused before: look again
                        heappush(waiting, (*self._weight(a), a))
        net.c.room = None
        idle = [s for s in blocks if not users.get(s) and s not in self.fixed]
        while idle:  # zero on the way out
            s = idle.pop()
            idle.extend([a for a in blocks[s] if a in blocks and users[a] == {s} and a not in self.fixed])
            self._detach(s)
        net.blocks = {to: {a: list(es.entries) for a, es in row.items()} for to, row in blocks.items()}
        net.hubs = [s for s in blocks if s not in {*net.inputs, *net.outputs}]

    def _weight(self, s: int) -> tuple[int, int]:
        before, after, n = self.blocks[s], self.users.get(s, set()), math.prod(self.net.shapes[s])
        if not self.force:
            return len(before) * len(after), n
        coming = sum([es.cost.positions for es in before.values()])
        going = sum([self.blocks[to][s].cost.positions for to in after])
        return coming * going // max(n, 1), n

    def _detach(self, s: int) -> None:
        for a in self.blocks.pop(s):
            self.users[a].discard(s)
        for to in self.users.pop(s, set()):
            self.blocks[to].pop(s, None)

    def _removed(self, s: int) -> bool:
        """Compose what comes into a node with what goes out of it, if that is no larger, and put it in place."""
        c, blocks, force = self.net.c, self.blocks, self.force
        before, after = blocks[s], self.users.get(s, set())
        coming, going = total([es.cost for es in before.values()]), total([blocks[to][s].cost for to in after])
        old, most = coming.plus(going), tuning.HUB_COMPOSITIONS * (16 if force else 1)
        if coming.entries * going.entries > max(most, 2 * old.entries):
            return False
        have = sum([blocks[to][a].cost.weight for to in after for a in before if a in blocks[to]])
        c.room = Room(self.left, product=False) if force else Room(old.weight + have + 256, product=True)
        made: list[tuple[int, int, EntrySum, Groups]] = []
        for to in after:
            for a, first in before.items():
                pairs = [(second, one) for second in blocks[to][s].entries for one in first.entries]
                try:
                    found = [e for second, one in pairs for e in composed(c, second, one, self.net.shapes[s])]
                except StaysApart:
                    return False
                if any([len(e.factors) > tuning.ENTRY_FACTORS for e in found]):
                    if not force:
                        return False
                    found = [evaluated(c, e) for e in found]
                there = blocks[to].get(a) or EntrySum(c)
                made.append((to, a, there, there.plus(c, found)))
        changes = [there.change(c, changed) for _, _, there, changed in made]
        new = total(changes)
        if force:
            full = any([self._overfull(m, more) for m, more in zip(made, changes, strict=True)])
            if full or new.listed - old.listed > self.left:
                return False
        elif new.weight > old.weight + 256 or new.entries > old.entries + tuning.HUB_MORE_ENTRIES:
            return False
        self.left -= new.listed - old.listed
        for to, a, there, changed in made:
            there.take(c, changed)
            if there.cost.entries:
                blocks[to][a] = there
                self.users.setdefault(a, set()).add(to)
            else:
                blocks[to].pop(a, None)
                self.users.get(a, set()).discard(to)
        return True

    def _overfull(self, made: tuple[int, int, EntrySum, Groups], more: EntryCost) -> bool:
        """Whether entries are too many, or reach positions several times over: a dense matrix says it better."""
        to, a, there, _ = made
        cost, every = there.cost.plus(more), math.prod(self.net.shapes[to]) * math.prod(self.net.shapes[a])
        return cost.entries > tuning.BLOCK_ENTRIES or cost.positions > 1024 + 4 * every


def multiplied(net: Network) -> Network | None:
    """The network without hubs, which matrices are made of; None where steps have no entries or are too many."""
    found = thinned(net)
    return found if found.simple else None


def thinned(net: Network) -> Network:
    """The network without the hubs that a matrix does not need: all, unless positions multiply."""
    return net if net.simple or net.kept else net.known("thinned", lambda: _thinned(net))


def _thinned(net: Network) -> Network:
    other = net.like(blocks={to: dict(row) for to, row in net.blocks.items()})
    other.made["thinned"] = other
    patience, net.c.patience = net.c.patience, 16
    _Elimination(other, force=True).run()
    net.c.patience = patience
    _without_zeros(other)
    return other
