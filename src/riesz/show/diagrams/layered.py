"""Where everything of a diagram is drawn: nodes in layers from left to right, wires between neighbouring layers.

Layers are longest paths. Wires that pass a layer have a point in it, unless there would be very many of these. The
order in each layer comes from a fixed number of sweeps that put nodes where their neighbours are; heights are the
least-squares ones under that order, found by pooling. Each sweep takes the time of a sort.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from .wire_graph import GraphNode, WireGraph

PORT, GAP, HIGH, LABEL, SWEEPS = 15.0, 30.0, 26.0, 11.0, 10
"""Between two wires of a node; between layers, at the least; the height of a box; the size of what is written on
wires; sweeps to and fro."""
POINTS = 20
"""Wires get so many points in layers they pass, on average; the longest ones go straight beyond that."""

Point = tuple[float, float]


class Placed(NamedTuple):
    """A node: its middle, its width and its height."""

    x: float
    y: float
    w: float
    h: float


class DiagramLayout(NamedTuple):
    """The places of nodes and the points of wires, in a picture of some width and height."""

    nodes: list[Placed]
    wires: list[list[Point]]
    width: float
    height: float

    @property
    def mirrored(self) -> DiagramLayout:
        """The same from right to left."""
        w = self.width
        nodes = [p._replace(x=w - p.x) for p in self.nodes]
        return DiagramLayout(nodes, [[(w - x, y) for x, y in points[::-1]] for points in self.wires], w, self.height)


def text_width(text: str, size: float = 13.0) -> float:
    """About how wide a text is."""
    wide = sum([1.0 if unicodedata.east_asian_width(c) in "WF" else 0.62 for c in text if not unicodedata.combining(c)])
    return size * wide


def laid_out(graph: WireGraph, labels: dict[int, str], levels: int = 0) -> DiagramLayout:
    """The layout of a graph; `labels`: what is written on some wires; `levels`: how many hulls are inside one another,
    which need room."""
    return _Layers(graph, labels, levels).layout()


class _Layers:
    def __init__(self, graph: WireGraph, labels: dict[int, str], levels: int) -> None:
        self.graph, self.labels = graph, labels
        self.space, self.ends = 14.0 + 7.0 * min(levels, 4), 5.0 + 5.0 * levels
        self.coming, self.going = graph.neighbours()
        self.layer = self._ranked()
        self.size = [self._size(n) for n in graph.nodes]
        self.paths = self._points()
        self.rows = self._ordered()
        self.y = self._heights()

    def _size(self, node: GraphNode) -> tuple[float, float]:
        ports = max(len(self.coming[node.number]), len(self.going[node.number]), 1)
        match node.kind:
            case "dot":
                return 9.0, 9.0
            case "copy" | "sum":
                return 15.0, max(20.0, PORT * ports)
            case "scale":
                return max(22.0, text_width(node.label, 12.0) + 12.0), 22.0
            case "input" | "output" | "next":
                return text_width(node.label) + 2 * self.ends, max(20.0, PORT * ports)
            case _:
                return max(28.0, text_width(node.label) + 18.0), max(HIGH, PORT * (ports - 1) + 22.0)

    def _ranked(self) -> list[int]:
        """The layer of each node: inputs first, outputs last, arrays right before whoever reads them."""
        nodes, wires = self.graph.nodes, self.graph.wires
        after = self._framed()
        waiting = [len(w) for w in self.coming]
        for n in [to for found in after for to in found]:
            waiting[n] += 1
        order = [n.number for n in nodes if not waiting[n.number]]
        layer = [0] * len(nodes)
        moved = [n.kind == "input" for n in nodes]
        for n in order:
            joined = [wires[k].last for k in self.going[n]]
            for k, to in enumerate([*joined, *after[n]]):
                layer[to], moved[to] = max(layer[to], layer[n] + 1), moved[to] or (k < len(joined) and moved[n])
                waiting[to] -= 1
                if not waiting[to]:
                    order.append(to)
        assert len(order) == len(nodes), "wires go round in a circle"
        for n in reversed(order):
            if not moved[n] and self.going[n]:
                layer[n] = min([layer[to] for to in [*[wires[k].last for k in self.going[n]], *after[n]]]) - 1
        lowest = min([layer[n.number] for n in nodes if n.kind != "input"], default=1)
        layer = [0 if n.kind == "input" else layer[n.number] + max(1 - lowest, 0) for n in nodes]
        last = max([k for n, k in zip(nodes, layer, strict=True) if n.kind != "output"], default=0) + 1
        return [last if n.kind == "output" else k for n, k in zip(nodes, layer, strict=True)]

    def _framed(self) -> list[list[int]]:
        """For each node, others that are to be right of it though no wire says so: what a frame takes is left of all of
        the frame, what takes something from it, with the arrays there, is right of it."""
        wires = self.graph.wires
        after: list[list[int]] = [[] for _ in self.graph.nodes]
        for inside in [f.nodes for f in self.graph.frames]:
            before = {w.first for w in wires if w.last in inside} - inside
            behind = {w.last for w in wires if w.first in inside} - inside
            arrays = {w.first for w in wires if w.last in behind and not self.coming[w.first]} - inside - before
            right = behind | {n for n in arrays if self.graph.nodes[n].kind != "input"}
            if not (before | inside) & self._reached(right, after) and not before & self._reached(inside, after):
                for n in before:
                    after[n] += inside
                for n in inside:
                    after[n] += right
        return after

    def _reached(self, start: Iterable[int], after: list[list[int]]) -> set[int]:
        """These nodes and all that is to be right of them."""
        found, waiting = set(start), list(start)
        while waiting:
            n = waiting.pop()
            for to in [*[self.graph.wires[k].last for k in self.going[n]], *after[n]]:
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return found

    def _points(self) -> list[list[int]]:
        """Each wire as nodes and points from layer to layer: points are numbered behind the nodes."""
        total = len(self.graph.nodes)
        spans = [self.layer[w.last] - self.layer[w.first] for w in self.graph.wires]
        room = POINTS * (len(spans) + total)
        longest = len(self.graph.nodes) if sum(spans) <= room else room // max(len(spans), 1)
        self.at = list(self.layer)
        paths: list[list[int]] = []
        for w, span in zip(self.graph.wires, spans, strict=True):
            between = range(self.layer[w.first] + 1, self.layer[w.last]) if span <= longest else ()
            points = list(range(len(self.at), len(self.at) + len(between)))
            self.at += between
            paths.append([w.first, *points, w.last])
        self.left: list[list[int]] = [[] for _ in self.at]
        self.right: list[list[int]] = [[] for _ in self.at]
        for path in paths:
            for a, b in pairwise(path):
                self.right[a].append(b)
                self.left[b].append(a)
        return paths

    # -- order -------------------------------------------------------------------------------------------------

    def _ordered(self) -> list[list[int]]:
        """The nodes and points of each layer from top to bottom, with few crossings. Inputs and outputs keep their
        order where that costs no crossing."""
        kept, free = self._swept(True), self._swept(False)
        return kept if self._crossings(kept) <= self._crossings(free) else free

    def _swept(self, keep: bool) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(max(self.at, default=0) + 1)]
        for v in self._walked():
            rows[self.at[v]].append(v)
        ends = [rows[0], rows[-1]] if keep else []
        for row in ends:
            row.sort()
        best, least = [list(r) for r in rows], self._crossings(rows)
        place = [0.0] * len(self.at)
        for sweep in range(SWEEPS):
            near, far = (self.left, self.right) if sweep % 2 == 0 else (self.right, self.left)
            for row in rows if sweep % 2 == 0 else reversed(rows):
                for k, v in enumerate(row):
                    place[v] = (k + 0.5) / len(row)
                if any([row is end for end in ends]):
                    continue
                seen = {v: near[v] or far[v] for v in row}
                keys = {v: sum([place[u] for u in of]) / len(of) if of else place[v] for v, of in seen.items()}
                row.sort(key=keys.__getitem__)
                for k, v in enumerate(row):
                    place[v] = (k + 0.5) / len(row)
            found = self._crossings(rows)
            if found < least:
                best, least = [list(r) for r in rows], found
        return best

    def _walked(self) -> list[int]:
        """All nodes and points, neighbours near each other: depth first from the first input."""
        seen = bytearray(len(self.at))
        found: list[int] = []
        for start in range(len(self.at)):
            stack = [start]
            while stack:
                v = stack.pop()
                if not seen[v]:
                    seen[v] = 1
                    found.append(v)
                    stack.extend(reversed(self.right[v] + self.left[v]))
        return found

    def _crossings(self, rows: list[list[int]]) -> int:
        place = {v: k for row in rows for k, v in enumerate(row)}
        total = 0
        for row in rows:
            seen: list[int] = []
            for v in row:
                mine = sorted([place[u] for u in self.right[v]])
                total += sum([len(seen) - bisect_right(seen, k) for k in mine])
                for k in mine:
                    insort(seen, k)
        return total

    # -- heights -----------------------------------------------------------------------------------------------

    def _half(self, v: int) -> float:
        return self.size[v][1] / 2 if v < len(self.size) else 2.0

    def _heights(self) -> list[float]:
        y = [0.0] * len(self.at)
        for row in self.rows:
            at = 0.0
            for v in row:
                y[v] = at + self._half(v)
                at += 2 * self._half(v) + self.space
        self.offsets: dict[tuple[int, int, int], float] = {}
        for sweep in range(2 * SWEEPS):
            if sweep % 4 == 0:
                self._ports(y)
            near = (self.left, self.right)
            sides = [near[sweep % 2]] if sweep < 2 * SWEEPS - 4 else list(near)
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                self._settled(row, sides, y)
        self._ports(y)
        return y

    def _ports(self, y: list[float]) -> None:
        """How far from the middle of its nodes each wire begins and ends: in the order of where it goes."""
        n = len(self.size)
        self.offsets = {}
        for v in range(n):
            kind = self.graph.nodes[v].kind
            for side, wires in enumerate((self.coming[v], self.going[v])):
                step = -2 if side == 0 else 1
                order = sorted(wires, key=lambda k: (y[self.paths[k][step]], k))
                for i, k in enumerate(order):
                    inside = 0.0 if kind == "dot" else PORT * (i - (len(order) - 1) / 2)
                    self.offsets[k, v, side] = inside
        self.shift: list[dict[int, float]] = [{} for _ in self.at]  # of a node, towards each neighbour
        for k, path in enumerate(self.paths):
            self.shift[path[0]][path[1]] = self.offsets[k, path[0], 1]
            self.shift[path[-1]][path[-2]] = self.offsets[k, path[-1], 0]

    def _settled(self, row: list[int], sides: Sequence[list[list[int]]], y: list[float]) -> None:
        """Move the nodes of a layer to where their neighbours want them, in order and apart."""
        blocks: list[list[float]] = []  # of nodes that touch: weight, weighted sum, count
        apart = [0.0]
        for a, b in pairwise(row):
            space = self.space if a < len(self.size) or b < len(self.size) else 11.0
            apart.append(apart[-1] + self._half(a) + self._half(b) + space)
        for v, before in zip(row, apart, strict=True):
            wanted = [y[u] + self.shift[u].get(v, 0.0) - self.shift[v].get(u, 0.0) for near in sides for u in near[v]]
            weight = (1.0 if v < len(self.size) else 3.0) * max(len(wanted), 0.2)
            aim = sum(wanted) / len(wanted) if wanted else y[v]
            blocks.append([weight, weight * (aim - before), 1])
            while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] > blocks[-1][1] / blocks[-1][0]:
                last = blocks.pop()
                blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
        at = 0
        for weight, total, count in blocks:
            for _ in range(int(count)):
                y[row[at]] = total / weight + apart[at]
                at += 1

    # -- the whole ---------------------------------------------------------------------------------------------

    def layout(self) -> DiagramLayout:
        """Coordinates, from (0, 0) on."""
        count = len(self.rows)
        wide, gaps = [0.0] * count, [GAP] * count
        for (w, _), layer in zip(self.size, self.layer, strict=True):
            wide[layer] = max(wide[layer], w)
        for k, label in self.labels.items():
            path = self.paths[k]
            at = self.at[path[0]]
            gaps[at] = max(gaps[at], text_width(label, LABEL) + 24.0)
        x, middles = 0.0, list[float]()
        for w, gap in zip(wide, gaps, strict=True):
            middles.append(x + w / 2)
            x += w + gap
        tops = [y - self._half(v) for v, y in enumerate(self.y)]
        top = min(tops, default=0.0)
        height = max([y + self._half(v) for v, y in enumerate(self.y)], default=0.0) - top
        nodes = [Placed(self._x(v, middles, wide), self.y[v] - top, *self.size[v]) for v in range(len(self.size))]
        wires: list[list[Point]] = []
        for k, path in enumerate(self.paths):
            a, b = nodes[path[0]], nodes[path[-1]]
            begin, level = a.x + a.w / 2, a.y + self.offsets[k, path[0], 1]
            points = [(begin, level)]
            if k in self.labels:  # straight under what is written on it
                edge = middles[self.at[path[0]]] + wide[self.at[path[0]]] / 2
                points.append((edge + text_width(self.labels[k], LABEL) + 5.0, level))
            for v in path[1:-1]:
                half = wide[self.at[v]] / 2
                points += [(middles[self.at[v]] - half, self.y[v] - top), (middles[self.at[v]] + half, self.y[v] - top)]
            points.append((b.x - b.w / 2, b.y + self.offsets[k, path[-1], 0]))
            wires.append(points)
        return DiagramLayout(nodes, wires, x - (gaps[-1] if gaps else 0.0), height)

    def _x(self, v: int, middles: list[float], wide: list[float]) -> float:
        """Inputs end where wires begin, outputs begin where they end."""
        layer, kind = self.layer[v], self.graph.nodes[v].kind
        room = (wide[layer] - self.size[v][0]) / 2
        return middles[layer] + (room if kind == "input" else -room if kind == "output" else 0.0)
