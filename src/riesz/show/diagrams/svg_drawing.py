"""A diagram as SVG. Everything has the colour of the text around it, and shapes tell kinds apart, never colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from .layered import LABEL, DiagramLayout, Placed, Point, text_width
from .wire_graph import KINDS, RepeatFrame, WireGraph

MARGIN, HEAD = 10.0, 20.0
_FONT = "font-family=\"ui-sans-serif,system-ui,'DejaVu Sans',sans-serif\""
_DARK = "@media (prefers-color-scheme:dark){.rz-diagram{color:#e6e6e6}}"
_STYLE = f"<style>.rz-diagram{{color:#1b1b1b}}{_DARK}</style>"
_UNSAFE = {c: None for c in range(32) if c not in (9, 10, 13)} | {0xFFFE: None, 0xFFFF: None}


class Hull(NamedTuple):
    """The k-th step of a contraction: the nodes that are one array after it, the nodes that it takes something from,
    how many hulls are inside, and what it costs."""

    nodes: frozenset[int]
    starts: frozenset[int]
    number: int
    level: int
    cost: str
    words: str


class Panel(NamedTuple):
    """A graph with its layout; `mirrored`: it is drawn from right to left, and copies and sums change places."""

    graph: WireGraph
    layout: DiagramLayout
    mirrored: bool
    labels: dict[int, str]
    hulls: Sequence[Hull]
    heading: str
    where: Sequence[str]


def xml_text(text: str) -> str:
    """A text inside XML: escaped, without the characters that XML does not have."""
    clean = text.translate(_UNSAFE)
    return escape("".join(["�" if 0xD800 <= ord(c) <= 0xDFFF else c for c in clean]))


def written(panels: Sequence[Panel], title: str, words: str, alone: bool) -> str:
    """The panels side by side; `alone`: for a file, with colours of its own for dark and light."""
    parts: list[str] = []
    head = HEAD if any([p.heading for p in panels]) else 0.0
    side = max([1.0 + 5.0 * min(h.level, 6) for p in panels for h in p.hulls], default=0.0)
    x, height = MARGIN + side, 0.0
    for p in panels:
        top = MARGIN + head + _above(p)
        wide = max(p.layout.width, text_width(p.heading, 12.0))
        if p.heading:
            parts.append(_text(x + wide / 2, MARGIN + 10.0, p.heading, 12.0, 'font-weight="600"'))
        shift = x + (wide - p.layout.width) / 2
        parts.append(f'<g transform="translate({shift:.1f} {top:.1f})">{_panel(p)}</g>')
        x += wide + 4 * MARGIN
        height = max(height, top + p.layout.height + _above(p) + MARGIN)
    width = max(x - 3 * MARGIN + side, 40.0)
    lines = list(dict.fromkeys([line for p in panels for line in p.where]))
    for k, line in enumerate(lines):
        parts.append(_text(MARGIN, height + 4.0 + 15.0 * k, line, 11.0, 'fill-opacity="0.85"', "start"))
        width = max(width, text_width(line, 11.0) + 2 * MARGIN)
    height += 15.0 * len(lines) + (4.0 if lines else 0.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rz-diagram" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" '
        f'{_FONT} font-size="13" fill="none" stroke="none">'
        f"<title>{xml_text(title)}</title><desc>{xml_text(words)}</desc>{_STYLE if alone else ''}{''.join(parts)}</svg>"
    )


def _above(p: Panel) -> float:
    """Room for frames and hulls above and below the nodes."""
    return max(18.0 if p.graph.frames else 6.0, max([_pad(h) for h in p.hulls], default=0.0))


def _pad(h: Hull) -> float:
    """How far a hull is from what is in it."""
    return 3.0 + 12.0 * min(h.level, 6)


def _panel(p: Panel) -> str:
    layout = p.layout
    parts = [_frame(f, p) for f in p.graph.frames]
    parts += [_hull(h, layout) for h in sorted(p.hulls, key=lambda h: -h.level)]
    parts.append('<g stroke="currentColor">')
    for w, points in zip(p.graph.wires, layout.wires, strict=True):
        size = f"{w.size:,}" + (f", {w.times:,} of them" if w.times > 1 else "")
        dashes = ' stroke-dasharray="2 3"' if w.size == 1 else ""
        parts.append(
            f'<path d="{_curve(points)}" stroke-width="{thickness(w.size):.2f}"{dashes} stroke-opacity="0.75">'
            f"<title>index set of {size}</title></path>"
        )
    parts.append("</g>")
    for k, label in p.labels.items():
        (x, y), anchor = (layout.wires[k][-2], "end") if p.mirrored else (layout.wires[k][1], "start")
        room = text_width(label, LABEL) + 2.0
        x, y = x + (room if p.mirrored else -room), y - 3.0 - thickness(p.graph.wires[k].size) / 2
        parts.append(_text(x, y, label, LABEL, 'fill-opacity="0.8"', anchor))
    parts += [_node(p, n) for n in range(len(p.graph.nodes))]
    return "".join(parts)


def thickness(size: int) -> float:
    """How wide a wire is: it grows with the logarithm of its index set."""
    return min(0.9 + 0.32 * math.log2(max(size, 1)), 7.0)


def _curve(points: Sequence[Point]) -> str:
    d = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(y1 - y0) < 0.05:
            d.append(f"H{x1:.1f}")
        else:
            m = (x0 + x1) / 2
            d.append(f"C{m:.1f} {y0:.1f} {m:.1f} {y1:.1f} {x1:.1f} {y1:.1f}")
    return "".join(d)


def _text(x: float, y: float, text: str, size: float, more: str = "", anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="currentColor" {more}>'
        f"{xml_text(text)}</text>"
    )


def _node(p: Panel, n: int) -> str:
    node, at = p.graph.nodes[n], p.layout.nodes[n]
    kind = node.kind
    if p.mirrored:
        kind = {"copy": "sum", "sum": "copy", "input": "output", "output": "input"}.get(kind, kind)
    shape = _shape(kind, at)
    label = node.label if kind not in ("copy", "sum", "dot") else ""
    if kind == "sum":
        text = _text(at.x - 2.5, at.y + 4.0, "+", 11.0)
    else:
        size = 12.0 if kind == "scale" else 13.0
        text = _text(at.x, at.y + size * 0.35, label, size) if label else ""
    ident = f' data-id="{xml_text(node.data)}"' if node.data else ""
    words = KINDS[kind] + (f" {node.label}" if node.label else "")
    if p.mirrored and kind == "relation":
        words += ", read from right to left"
    return (
        f'<g class="rz-{kind}"{ident} data-name="{xml_text(node.label)}"><title>{xml_text(words)}</title>'
        f"{shape}{text}</g>"
    )


_OUTLINE = 'stroke="currentColor" stroke-width="1.2" fill="currentColor" fill-opacity="0.07"'


def _shape(kind: str, at: Placed) -> str:
    x, y, w, h = at
    left, t, right, b = x - w / 2, y - h / 2, x + w / 2, y + h / 2
    rect = f'<rect x="{left:.1f}" y="{t:.1f}" width="{w:.1f}" height="{h:.1f}"'
    match kind:
        case "dot":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{w / 2:.1f}" fill="currentColor"/>'
        case "copy" | "sum":  # a triangle: wide where the many are
            points = f"{left:.1f},{y:.1f} {right:.1f},{t:.1f} {right:.1f},{b:.1f}"
            if kind == "sum":
                points = f"{right:.1f},{y:.1f} {left:.1f},{t:.1f} {left:.1f},{b:.1f}"
            return f'<polygon points="{points}" {_OUTLINE} stroke-linejoin="round"/>'
        case "relation":
            c = min(8.0, h / 3)
            points = [(left + c, t), (right - c, t), (right, y), (right - c, b), (left + c, b), (left, y)]
            return f'<polygon points="{" ".join([f"{a:.1f},{b:.1f}" for a, b in points])}" {_OUTLINE}/>'
        case "function":
            return f'{rect} rx="{min(h / 2, 13.0):.1f}" {_OUTLINE}/>'
        case "scale":
            return f'{rect} rx="{h / 2:.1f}" {_OUTLINE} stroke-dasharray="3 2"/>'
        case "linear":
            lines = f"M{left + 4:.1f} {t:.1f}V{b:.1f}M{right - 4:.1f} {t:.1f}V{b:.1f}"
            return f'{rect} {_OUTLINE}/><path d="{lines}" stroke="currentColor" stroke-width="0.8"/>'
        case "rest":
            return f'{rect} rx="4" {_OUTLINE} stroke-dasharray="1 3"/>'
        case "input" | "output" | "next":
            edge = right if kind == "input" else left
            return f'<path d="M{edge:.1f} {t:.1f}V{b:.1f}" stroke="currentColor" stroke-width="1.6"/>'
        case _:
            return f"{rect} {_OUTLINE}/>"


def _box(nodes: frozenset[int], layout: DiagramLayout, pad: float) -> tuple[float, float, float, float]:
    places = [layout.nodes[n] for n in nodes]
    left, right = min([p.x - p.w / 2 for p in places]) - pad, max([p.x + p.w / 2 for p in places]) + pad
    t, b = min([p.y - p.h / 2 for p in places]) - pad, max([p.y + p.h / 2 for p in places]) + pad
    return left, t, right - left, b - t


def _frame(f: RepeatFrame, p: Panel) -> str:
    x, y, w, h = _box(f.nodes, p.layout, 9.0)
    inside = zip(p.graph.wires, p.layout.wires, strict=True)
    levels = [at for wire, points in inside if {wire.first, wire.last} <= f.nodes for _, at in points]
    top, bottom = min([y, *[at - 6.0 for at in levels]]), max([y + h, *[at + 6.0 for at in levels]])
    y, h = top, bottom - top
    return (
        f'<g class="rz-frame"><title>{xml_text(f.words)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" '
        f'height="{h:.1f}" rx="8" stroke="currentColor" stroke-dasharray="6 4" stroke-opacity="0.7"/>'
        + _text(x + w - 4.0, y - 3.0, f"×{f.times:,}", 11.0, 'font-weight="600"', "end")
        + "</g>"
    )


def _hull(hull: Hull, layout: DiagramLayout) -> str:
    k = min(hull.level, 6)
    x, y, w, h = _box(hull.nodes, layout, 0.0)
    starts = [layout.nodes[n] for n in hull.starts]
    left, top = min([x, *[p.x + p.w / 2 for p in starts]]), min([y, *[p.y for p in starts]])
    right, bottom = x + w + 3.0 + 5.0 * k, max([y + h, *[p.y for p in starts]]) + 3.0 + 3.0 * k
    left, top = left - 1.0 - 5.0 * k, top - _pad(hull)
    return (
        f'<g class="rz-hull" data-number="{hull.number}"><title>{xml_text(hull.words)}</title><rect x="{left:.1f}" '
        f'y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" rx="8" stroke="currentColor" '
        f'stroke-dasharray="1 2.5"/>'
        + _text(right - 5.0, top + 9.5, f"{hull.number}: {hull.cost}", 10.0, 'fill-opacity="0.9"', "end")
        + "</g>"
    )
