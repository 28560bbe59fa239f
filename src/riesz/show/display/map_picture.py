"""Where the numbers of a map are, as SVG: what `L.spy()` draws, without Matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...maps.linear_map import LinearMap
from ..diagrams.svg_drawing import xml_text
from ..spy import Picture, cells, picture, shade, spy_text, title
from .display_objects import Display

CELLS, SIDE = 64, 160
"""Cells and pixels along the longer side."""
BLUE, GREY = "#3b6ea5", "#999"


class MapPicture(Display):
    """A picture of a matrix: dark where its numbers are; `cells` and `side`: how fine and how large it is.

    >>> import numpy as np, riesz as rz
    >>> rz.jacobian(np.sin)(np.zeros(3)).picture().svg()[:4]
    '<svg'
    """

    kind = "picture"

    def __init__(self, L: LinearMap, cells: int = CELLS, side: int = SIDE) -> None:
        self.map, self.cells, self.side = L, cells, side

    def seen(self) -> Picture:
        """How full the cells are."""
        return picture(self.map, *cells(self.map, self.cells))

    def unicode(self) -> str:
        return str(spy_text(self.map))

    def svg(self, alone: bool = False) -> str:
        """Runs of equally dark cells as one path each; lines between the leaves of direct sums."""
        seen = self.seen()
        height, width = seen.share.shape
        scale = min(self.side / max(height, width, 1), 12.0)
        levels = np.rint(4 * shade(seen.share)).astype(int) if seen.known else np.ones((height, width), int)
        fill, found = f'fill="{BLUE if seen.known else GREY}"', [k for k in np.unique(levels).tolist() if k]
        paths = [f'<path d="{_runs(levels == k)}" {fill} fill-opacity="{k / 4:g}"/>' for k in found]
        lines = [f"M{p.first} 0V{height}" for p in seen.columns[1:]] + [f"M0 {p.first}H{width}" for p in seen.rows[1:]]
        hair = f'fill="none" stroke="#888" stroke-width="{0.8 / scale:.3g}"'
        between = f'<path d="{"".join(lines)}" {hair}/>' if lines else ""
        edge, size = f"{-1 / scale:.3g}", f'width="{width * scale + 2:.0f}" height="{height * scale + 2:.0f}"'
        box = f"{edge} {edge} {width + 2 / scale:.4g} {height + 2 / scale:.4g}"
        words = "where the numbers of the matrix are" + ("" if seen.known else ": dense or unknown")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} style="flex:none" viewBox="{box}">'
            f"<title>{xml_text(words)}</title><desc>{xml_text(title(self.map, seen.known))}</desc>"
            f'<g shape-rendering="crispEdges">{"".join(paths)}</g>{between}<rect width="{width}" height="{height}" '
            f"{hair}/></svg>"
        )

    def body(self) -> str:
        return self.svg()

    def save(self, path: Any) -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg(), encoding="utf-8")

    def json(self) -> dict[str, Any]:
        seen = self.seen()
        sides = {
            key: [{"name": p.name, "start": p.start, "size": p.size, "first": p.first, "cells": p.cells} for p in parts]
            for key, parts in (("rows", seen.rows), ("columns", seen.columns))
        }
        share: Any = np.round(np.asarray(seen.share, float), 4).tolist()
        return {"kind": self.kind, "words": title(self.map, seen.known), "known": seen.known, "share": share, **sides}


def _runs(mask: Any) -> str:
    """The cells of a mask as rectangles, one for each run along a row."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    steps = np.diff(padded, axis=1)
    runs = zip(*[x.tolist() for x in (*np.nonzero(steps == 1), np.nonzero(steps == -1)[1])], strict=True)
    return "".join([f"M{a} {y}h{b - a}v1h{a - b}z" for y, a, b in runs])
