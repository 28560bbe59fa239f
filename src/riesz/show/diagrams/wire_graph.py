"""The graph of a string diagram: boxes, dots and bars joined by wires. A wire is an index set.

Nodes are made in the order in which things happen, and the open ends of their wires are handed on until something takes
them. An array without axes has one wire of size 1, so that a number can be followed too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

KINDS = {
    "input": "input",
    "output": "output",
    "array": "array",
    "relation": "relation",
    "function": "function",
    "linear": "linear step",
    "dot": "equal indices",
    "copy": "copies",
    "sum": "sum",
    "scale": "factor",
    "next": "for the next round",
    "rest": "left out",
}
"""The kinds of nodes, in words."""


class GraphNode:
    """A box, dot or bar; `data`: the id of the slot it came from."""

    __slots__ = ("data", "kind", "label", "number")

    def __init__(self, number: int, kind: str, label: str, data: str) -> None:
        self.number, self.kind, self.label, self.data = number, kind, label, data


class End(NamedTuple):
    """The open end of a wire: its node, how many indices it has, which index it is (ends of one index are drawn with
    one name), and which axis of the node's array."""

    node: int
    size: int
    name: int
    axis: int = 0


class Wire(NamedTuple):
    """A wire from one node to a later one; `axes`: which ones of both; `times`: how many wires it stands for."""

    first: int
    last: int
    size: int
    name: int
    axes: tuple[int, int]
    times: int = 1


class RepeatFrame(NamedTuple):
    """Nodes that stand for many: drawn once, done `times` times."""

    nodes: frozenset[int]
    times: int
    words: str


Bundle = list[End]
"""The open ends of an array, one for each axis; one of size 1 where it has none."""


class WireGraph:
    """Nodes, wires and frames."""

    def __init__(self) -> None:
        self.nodes: list[GraphNode] = []
        self.wires: list[Wire] = []
        self.frames: list[RepeatFrame] = []
        self._joined: list[int] = []  # of indices that are one, by union-find

    # -- making ------------------------------------------------------------------------------------------------

    def node(self, kind: str, label: str = "", data: str = "") -> int:
        """A new node."""
        self.nodes.append(GraphNode(len(self.nodes), kind, label, data))
        return len(self.nodes) - 1

    def index(self) -> int:
        """A new index."""
        self._joined.append(len(self._joined))
        return len(self._joined) - 1

    def ends(self, node: int, shape: Sequence[int], like: Sequence[int] = ()) -> Bundle:
        """The ends of an array that a node gives away; `like`: the indices they are, where these are known."""
        sizes = list(shape) or [1]
        known = like if len(like) == len(sizes) else [self.index() for _ in sizes]
        return [End(node, n, i, axis) for axis, (n, i) in enumerate(zip(sizes, known, strict=True))]

    def wire(self, a: End, b: End, times: int = 1) -> None:
        """Join two ends; the first is the earlier one."""
        name = self.merged(a.name, b.name)
        self.wires.append(Wire(a.node, b.node, max(a.size, b.size), name, (a.axis, b.axis), times))

    def taken(self, node: int, bundle: Bundle, times: int = 1) -> list[int]:
        """Hand the ends of an array to a node, which knows their indices then."""
        for axis, end in enumerate(bundle):
            self.wire(end, End(node, end.size, end.name, axis), times)
        return [end.name for end in bundle]

    def framed(self, first: int, times: int, words: str) -> None:
        """A frame around all nodes from a number on."""
        inside = frozenset(range(first, len(self.nodes)))
        if inside:
            self.frames.append(RepeatFrame(inside, times, words))

    # -- indices -----------------------------------------------------------------------------------------------

    def same(self, index: int) -> int:
        """The index that stands for all it was joined with."""
        found = self._joined
        while found[index] != index:
            found[index] = found[found[index]]
            index = found[index]
        return index

    def merged(self, a: int, b: int) -> int:
        """Two indices become one."""
        a, b = sorted([self.same(a), self.same(b)])
        self._joined[b] = a
        return a

    def letters(self) -> dict[int, str]:
        """A letter for each index along which something runs, in order of appearance."""
        found: dict[int, str] = {}
        for w in self.wires:
            i = self.same(w.name)
            if w.size != 1 and i not in found:
                k = len(found)
                found[i] = _LETTERS[k % len(_LETTERS)] + _below(k // len(_LETTERS))
        return found

    def neighbours(self) -> tuple[list[list[int]], list[list[int]]]:
        """The wires that come into each node, and those that leave it."""
        coming: list[list[int]] = [[] for _ in self.nodes]
        going: list[list[int]] = [[] for _ in self.nodes]
        for k, w in enumerate(self.wires):
            going[w.first].append(k)
            coming[w.last].append(k)
        return coming, going


_LETTERS = "ijklmnpqrstuv"


def _below(k: int) -> str:
    return str(k).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")) if k else ""


# -- one product ---------------------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """An argument of a product: the ends of an array, one label for each axis, and whether it is a box of its own."""

    bundle: Bundle
    labels: Sequence[int]
    own: bool


class WiredProduct:
    """Σ over labels of a product of arrays: ends with one label meet, in a wire where there are two, else in a dot.

    Wires of boxes have no direction. They are given one here: from what comes in to what goes out. `result`: the ends
    that go on.
    """

    def __init__(
        self, graph: WireGraph, operands: Sequence[Operand], out: Sequence[int], sizes: dict[int, int], data: str
    ) -> None:
        self.g, self.data = graph, data
        self.inside = {o.bundle[0].node for o in operands if o.own and o.labels}
        self.links: list[tuple[End, End]] = []  # within the step
        self.coming: list[tuple[End, End]] = []  # from before, and what takes it
        meeting: dict[int, list[End]] = {}
        for o in operands:
            for k, end in zip(o.labels, o.bundle, strict=False):
                meeting.setdefault(k, []).append(end)
        counts = Counter(out)
        going = {k: self._met(meeting.get(k, []), counts[k], sizes[k]) for k in dict.fromkeys([*meeting, *out])}
        self.result = [going[k].pop() for k in out]
        numbers = [o.bundle[0] for o in operands if not o.own and not o.labels]
        self._numbers(numbers)
        if not self.result and not self.inside and len(numbers) == 1:
            self.result = numbers
        self._directed()
        for o in operands:
            if o.own and not o.labels:  # a number of its own is a factor on some wire
                graph.nodes[o.bundle[0].node].kind = "scale"
                if self.result:
                    at = self.result[0]
                    graph.wire(at, End(o.bundle[0].node, at.size, at.name))
                    self.result[0] = End(o.bundle[0].node, at.size, at.name)
                else:
                    self.result = [o.bundle[0]]

    def _met(self, ends: list[End], wanted: int, size: int) -> list[End]:
        """What happens to the ends of one label, and the ends that go on."""
        if len(ends) == wanted == 1:
            return ends
        apart = len(ends) == 2 and ends[0].node != ends[1].node
        if apart and not wanted and any([e.node in self.inside for e in ends]):
            self._link(*ends)
            return []
        dot = self.g.node("dot", data=self.data)
        self.inside.add(dot)
        index = ends[0].name if ends else self.g.index()
        for end in ends:
            self._link(end, End(dot, size, index))
        return [End(dot, size, index)] * wanted

    def _link(self, a: End, b: End) -> None:
        if a.node in self.inside and b.node in self.inside:
            self.links.append((a, b))
        else:
            self.coming.append((a, b) if b.node in self.inside else (b, a))

    def _numbers(self, numbers: list[End]) -> None:
        """Numbers that come in: each goes to a box that nothing else comes into, or they are multiplied."""
        g = self.g
        if self.inside:
            fed = {to.node for _, to in self.coming}
            free = [n for n in sorted(self.inside) if n not in fed] or sorted(self.inside)
            self.coming += [(e, e._replace(node=free[min(k, len(free) - 1)])) for k, e in enumerate(numbers)]
        elif len(numbers) + bool(self.result) > 1:
            times = g.node("function", "·", self.data)
            for e in (*self.result[:1], *numbers):
                g.wire(e, End(times, e.size, e.name))
            first = (self.result or numbers)[0]
            self.result[:1] = [End(times, first.size, first.name)]

    def _directed(self) -> None:
        """Directions for the wires between boxes and dots of this step."""
        g = self.g
        near: dict[int, list[int]] = {n: [] for n in self.inside}
        for a, b in self.links:
            near[a.node].append(b.node)
            near[b.node].append(a.node)
        ends = [e.node for e in self.result if e.node in near]
        first, last = _distances([to.node for _, to in self.coming], near), _distances(ends, near)
        far = len(near) + 1
        place = {n: (first.get(n, far), -last.get(n, far), n) for n in near}
        if not first:
            place = {n: (-last.get(n, far), 0, n) for n in near}
        busy = {*ends, *[to.node for _, to in self.coming]}
        # what hangs on a wire that goes through comes from the left
        hanging = {n for n in near if len(near[n]) == 1 and n not in busy and n in first and n in last}
        for a, b in self.links:
            ahead = place[a.node] < place[b.node]
            if (a.node in hanging) != (b.node in hanging):
                ahead = a.node in hanging
            g.wire(*((a, b) if ahead else (b, a)))
        for end, to in self.coming:
            g.wire(end, to)
        if not self.result and near:
            seen = [n for n in near if n in first and n not in hanging] or list(near)
            self.result = [End(max(seen, key=place.__getitem__), 1, g.index())]


def _distances(starts: Iterable[int], near: dict[int, list[int]]) -> dict[int, int]:
    """How far each node is from some others, where it can be reached."""
    found = dict.fromkeys(starts, 0)
    waiting = list(found)
    for n in waiting:
        for m in near[n]:
            if m not in found:
                found[m] = found[n] + 1
                waiting.append(m)
    return found
