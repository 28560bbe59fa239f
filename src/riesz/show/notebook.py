"""A linear map in a notebook: its formula, its structure in words, and a small picture of where its numbers are."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..maps.linear_map import LinearMap
from .spy import cells, picture, shade

STEPS = 400
"""Longer programs are not taken to normal form for the sake of a display, nor are as many blocks shown."""
FORMULA = 4000
"""Longer formulas are left out."""
CELLS = 64
SIDE = 160
"""Cells and pixels along the longer side of the picture."""
BLUE, GREY = "#3b6ea5", "#999"


def html_map(L: LinearMap) -> str | None:
    """The display; None, for the formula alone, where finding the structure could take long."""
    quick = "network" in L.instance.known or len(L.instance.program) <= STEPS
    if not quick or len(L.domain.leaves) * len(L.codomain.leaves) > STEPS or len(L.values.net.hubs) > CELLS:
        return None
    formula = L.simplify().latex()
    net = L.values.net
    stored = sum([net.c.size(slot) for slot in {f.slot for e in net.entries for f in e.factors}])
    symmetric = ["symmetric"] if "symmetric" in L.facts else []
    facts = [f"{L.shape[0]:,} × {L.shape[1]:,}", *symmetric, str(L.structure), f"{stored:,} numbers stored"]
    shown = f"<div>$${escape(formula)}$$</div>" if len(formula) <= FORMULA else ""
    words = f'<div style="font-size:90%;opacity:0.8">{escape(" · ".join(facts))}</div>'
    return (
        f'<div style="display:flex;align-items:center;gap:1.5em">{svg(L)}<div '
        f'style="min-width:0;overflow-x:auto">{shown}{words}</div></div>'
    )


def svg(L: LinearMap) -> str:
    """The picture: runs of equally dark cells as one path each."""
    seen = picture(L, *cells(L, CELLS))
    height, width = seen.share.shape
    if not height or not width:
        return ""
    scale = min(SIDE / max(height, width), 12.0)
    levels = np.rint(4 * shade(seen.share)).astype(int) if seen.known else np.ones((height, width), int)
    fill, found = f'fill="{BLUE if seen.known else GREY}"', [k for k in np.unique(levels).tolist() if k]
    paths = [f'<path d="{_runs(levels == k)}" {fill} fill-opacity="{k / 4:g}"/>' for k in found]
    lines = [f"M{p.first} 0V{height}" for p in seen.columns[1:]] + [f"M0 {p.first}H{width}" for p in seen.rows[1:]]
    hair = f'fill="none" stroke="#888" stroke-width="{0.8 / scale:.3g}"'
    between = f'<path d="{"".join(lines)}" {hair}/>' if lines else ""
    edge, size = f"{-1 / scale:.3g}", f'width="{width * scale + 2:.0f}" height="{height * scale + 2:.0f}"'
    box = f"{edge} {edge} {width + 2 / scale:.4g} {height + 2 / scale:.4g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} style="flex:none" viewBox="{box}">'
        f"<title>where the numbers of the matrix are{'' if seen.known else ': dense or unknown'}</title>"
        f'<g shape-rendering="crispEdges">{"".join(paths)}</g>{between}<rect width="{width}" height="{height}" '
        f"{hair}/></svg>"
    )


def _runs(mask: Any) -> str:
    """The cells of a mask as rectangles, one for each run along a row."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    runs = zip(*[x.tolist() for x in (*np.nonzero(steps == 1), np.nonzero(steps == -1)[1])], strict=True)
    return "".join([f"M{a} {y}h{b - a}v1h{a - b}z" for y, a, b in runs])
