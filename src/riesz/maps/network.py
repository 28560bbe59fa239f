"""The normal form of a linear map: a graph whose nodes are arrays and whose edges are sums of entries.

It is derived from a linear program by eliminating the steps between inputs and outputs: the entries on either side of a step are composed, unless
what comes out is more than what went in. Then the step stays, a hub: a product that is better left unmultiplied. So the network is never larger
than the program, however often values are shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from ..ops import Contraction
from ..programs.program import INPUT, Constant, Program
from ..stackless import quiet
from .coefficients import Coefficients, Room
from .edges import edges
from .entries import Apart, Entry, composed, evaluated, identity, size, sparse_size, work
from .indexing import Table
from .merging import merged

LONG = 8
"""An entry with more factors than this is not made: the step between stays."""
TRIES = 4
"""How often a step that stays is looked at again when a neighbour has gone."""
MANY = 256
"""A step with more compositions than this around it stays."""

MORE = 4
"""A step stays if without it there would be so many more entries."""
FEW = 64
"""More entries than this between two arrays are not multiplied out for a matrix."""
PATHS = 2
"""Hubs are removed for a matrix until index arrays list so many times more positions than there were; then sparse matrices are multiplied instead."""


class Kept(NamedTuple):
    """A step without entries: its op, the arguments that move (slots) and those that do not (coefficients), in order."""

    op: Any
    args: tuple[tuple[bool, int], ...]


class Network:
    """inputs, outputs and hubs (slots of the program it came from), `blocks[to][from]` the entries of an edge, `kept[to]` steps without entries."""

    def __init__(self, program: Program, fixed: int) -> None:
        self.c = Coefficients()
        self.inputs = program.inputs[fixed:]
        self.shapes: dict[int, tuple[int, ...]] = {s: program.shapes[s] for s in self.inputs}
        self.outputs = list(program.outputs)
        self.blocks: dict[int, dict[int, list[Entry]]] = {}
        self.kept: dict[int, Kept] = {}
        self.hubs: list[int] = []
        self.params: list[int] = []
        self.strong: set[int] = set()  # nodes whose zeros are strong (Note [Strong] in ops.py)
        self.made: dict[Any, Any] = {}  # what was made of it: patterns, programs, …

    @property
    def simple(self) -> bool:
        """Whether there is nothing between inputs and outputs."""
        return not self.hubs and not self.kept

    def block(self, row: int, column: int) -> list[Entry]:
        """The entries from one input to one output, by number."""
        out, inn = self.outputs[row], self.inputs[column]
        return self.blocks.get(out, {}).get(inn, [])

    @cached_property
    def turned(self) -> Network:
        """The transpose of a network without hubs: the same entries with their sides exchanged."""
        other = Network.__new__(Network)
        other.c, other.shapes, other.inputs, other.outputs = self.c, self.shapes, self.outputs, self.inputs
        other.kept, other.hubs, other.params, other.strong, other.made = {}, [], self.params, set(), {}
        other.blocks = {}
        for to, row in self.blocks.items():
            for a, es in row.items():
                other.blocks.setdefault(a, {})[to] = [e.turned for e in es]
        other.__dict__["turned"] = self
        return other

    @property
    def entries(self) -> list[Entry]:
        """All entries."""
        return [e for row in self.blocks.values() for es in row.values() for e in es]

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
    place: dict[int, int] = {}
    params = set(program.inputs[:fixed])
    for slot in program.inputs[:fixed]:
        place[slot] = c.program.input(program.shapes[slot])
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if moving[slot] or slot in params:
            continue
        if type(op) is Constant:
            place[slot] = c.program.const(op.value)
        else:
            place[slot] = c.program.scale(op, place[args[0]]) if type(op) is float else c.step(op, [place[a] for a in args])
    net.params = [place[s] for s in program.inputs[:fixed]]
    live = _live(program, moving)
    net.strong = {program.args[i][k] for i, op in enumerate(program.ops) if type(op) is Contraction for k in op.strong}
    for slot, op in enumerate(program.ops):
        if not moving[slot] or not live[slot]:
            continue
        net.shapes[slot] = program.shapes[slot]
        if op is INPUT:
            continue
        found = edges(c, program, slot, moving, place.__getitem__)
        if found is None:
            net.kept[slot] = Kept(op, tuple([(bool(moving[a]), a if moving[a] else place[a]) for a in program.args[slot]]))
            continue
        row: dict[int, list[Entry]] = {}
        for a, es in found:
            row.setdefault(a, []).extend([e.strongly for e in es] if slot in net.strong else es)
        net.blocks[slot] = {a: merged(c, es) for a, es in row.items()}
    for at, slot in enumerate(program.outputs):  # outputs are nodes of their own: a step may be an output twice, or an input
        node = len(program.ops) + at
        net.outputs[at] = node
        net.shapes[node] = program.shapes[slot]
        net.blocks[node] = {slot: [identity(c, program.shapes[slot])]} if moving[slot] and 0 not in program.shapes[slot] else {}
    _eliminate(net)
    return net


def _live(program: Program, moving: Any) -> bytearray:
    live = bytearray(len(program.ops))
    for slot in program.outputs:
        live[slot] = 1
    for slot in range(len(program.ops) - 1, -1, -1):
        if live[slot] and moving[slot]:
            for a in program.args[slot]:
                live[a] = 1
    return live


def _eliminate(net: Network, force: bool = False) -> None:
    """Remove the steps between, the ones that concern the fewest numbers first, as long as that makes the network no larger.

    `force`: in any case, those that the fewest paths go through first, until too many positions are listed.
    """
    blocks = net.blocks
    users: dict[int, set[int]] = {}
    for to, row in blocks.items():
        for a in row:
            users.setdefault(a, set()).add(to)
    fixed = {*net.inputs, *net.outputs}
    for slot, kept in net.kept.items():
        fixed.add(slot)
        fixed.update([a for moves, a in kept.args if moves])

    def weight(s: int) -> tuple[int, int]:
        after, n = users.get(s, set()), math.prod(net.shapes[s])
        if not force:
            return len(blocks[s]) * len(after), n
        coming, going = [positions(net.c, [e for es in sides for e in es]) for sides in (blocks[s].values(), [blocks[to][s] for to in after])]
        return coming * going // max(n, 1), n

    left = PATHS * max(positions(net.c, net.entries), 4096) if force else None  # so many positions may be listed
    tries = {s: 0 for s in blocks if s not in fixed}
    waiting = [(*weight(s), s) for s in tries]
    heapify(waiting)
    while waiting:
        *known, s = heappop(waiting)
        if s not in blocks:
            continue
        now = weight(s)
        if now > tuple(known):  # its neighbourhood has grown since: others first
            heappush(waiting, (*now, s))
            continue
        tries[s] += 1
        more = _removed(net, s, users, left)
        if more is not None:
            left = None if left is None else left - more
            around = {*blocks[s], *users.get(s, ())}
            _detach(net, s, users)
            for a in around:
                if 0 < tries.get(a, 0) < TRIES:  # refused before: look again
                    heappush(waiting, (*weight(a), a))
    net.c.room = None
    net.hubs = [s for s in blocks if s not in {*net.inputs, *net.outputs}]
    idle = [s for s in net.hubs if not users.get(s) and s not in fixed]
    while idle:  # zero on the way out
        s = idle.pop()
        net.hubs.remove(s)
        idle.extend([a for a in blocks[s] if a in net.hubs and users[a] == {s} and a not in fixed])
        _detach(net, s, users)


def _detach(net: Network, s: int, users: dict[int, set[int]]) -> None:
    for a in net.blocks.pop(s):
        users[a].discard(s)
    for to in users.pop(s, set()):
        net.blocks[to].pop(s, None)


def _removed(net: Network, s: int, users: dict[int, set[int]], left: int | None) -> int | None:
    """Compose what comes into a node with what goes out of it; the new entries are put in place. How many more positions are listed then; None where
    that would be more than `left`, or, if there is no such number, where the network would become larger."""
    c, blocks, force = net.c, net.blocks, left is not None
    before, after = blocks[s], users.get(s, set())
    coming, going = sum([len(es) for es in before.values()]), sum([len(blocks[to][s]) for to in after])
    if coming * going > max(MANY if not force else 16 * MANY, 2 * (coming + going)):
        return None
    around = [*before.values(), *[blocks[to][s] for to in after]]
    around += [blocks[to][a] for to in after for a in before if a in blocks[to]]
    old = sum([_weight(c, es) for es in around])
    c.room = Room(old + 256, product=True) if left is None else Room(left, product=False)
    made: dict[tuple[int, int], list[Entry]] = {}
    new = 0
    for to in after:
        for a, first in before.items():
            have = blocks[to].get(a, [])
            try:
                found = [e for second in blocks[to][s] for one in first for e in composed(c, second, one, net.shapes[s])]
            except Apart:
                return None
            if any([len(e.factors) > LONG for e in found]):
                if not force:
                    return None
                found = [evaluated(c, e) for e in found]
            made[to, a] = merged(c, [*have, *found])
            if force and _overfull(net, made[to, a], to, a):
                return None
            new += _weight(c, made[to, a])
    more = sum([listed(c, es) for es in made.values()]) - sum([listed(c, es) for es in around])
    if left is not None and more > left:
        return None
    if not force and (new > old + 256 or sum(map(len, made.values())) > sum(map(len, around)) + MORE):
        return None
    for (to, a), es in made.items():
        if es:
            blocks[to][a] = es
            users.setdefault(a, set()).add(to)
        else:
            blocks[to].pop(a, None)
            users.get(a, set()).discard(to)
    return more


def _overfull(net: Network, es: Sequence[Entry], to: int, a: int) -> bool:
    """Whether some entries reach more positions than there are, several times over, or are too many: a dense matrix says it better."""
    reached = positions(net.c, es)
    return len(es) > FEW or reached > 1024 + 4 * math.prod(net.shapes[to]) * math.prod(net.shapes[a])


def positions(c: Coefficients, es: Sequence[Entry]) -> int:
    """How many positions some entries reach, those that several reach counted several times."""
    return sum([sparse_size(c, e) for e in es])


def listed(c: Coefficients, es: Sequence[Entry]) -> int:
    """How many positions index arrays reach on both sides."""
    return positions(c, [e for e in es if all([any([type(m) is Table for m in side]) for side in (e.out, e.inn)])])


def multiplied(net: Network) -> Network | None:
    """The network without hubs: what matrices are made of. None where some step has no entries, or there would be too many."""
    found = thinned(net)
    return found if found.simple else None


def thinned(net: Network) -> Network:
    """The network without the hubs that a matrix does not need: all of them, if no step is without entries and positions do not multiply."""
    if net.simple or net.kept:
        return net
    with net.c.lock:
        return _thinned(net)


def _thinned(net: Network) -> Network:
    if "thinned" not in net.made:
        other = Network.__new__(Network)
        other.__dict__.update({k: v for k, v in net.__dict__.items() if k != "turned"})
        other.made = {"thinned": other}
        other.blocks = {to: dict(row) for to, row in net.blocks.items()}
        patience, net.c.patience = net.c.patience, 16
        _eliminate(other, force=True)
        net.c.patience = patience
        net.made["thinned"] = other
    return net.made["thinned"]


def _weight(c: Coefficients, es: Sequence[Entry]) -> int:
    return sum([work(c, e) + size(c, e) for e in es])
