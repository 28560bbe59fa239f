"""Maps that act on every index of a first axis by itself: one small dense matrix for each."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..normal_form.structure import batch_axes
from .materialise import block_part

if TYPE_CHECKING:
    from ..linear_map import LinearMap


def separate_blocks(L: LinearMap) -> Any:
    """The matrices (N, m, n) of a map all of whose arrays have a first axis of length N and which is diagonal along it;
    None for other maps. Rows and columns are those of the arrays at one index, one array after another."""
    v = L.flat
    rows, columns = [[leaf.shape for leaf in V.leaves] for V in (L.codomain, L.domain)]
    shapes = [*rows, *columns]
    if v is None or not rows or not columns or not all(shapes) or len({s[0] for s in shapes}) > 1 or shapes[0][0] < 2:
        return None
    net, N = v.net, shapes[0][0]

    def made() -> Any:
        found: dict[tuple[int, int], Any] = {}
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                entries = net.block(i, j)
                if entries and (0, 0) not in batch_axes(net.c, entries, row, column):
                    return None
                found[i, j] = block_part(net.c, entries, [(0, 0)], row, column) if entries else None
        return found

    parts = net.known(("separate", *rows, None, *columns), made)
    if parts is None:
        return None
    heights, widths = [[math.prod(s[1:]) for s in side] for side in (rows, columns)]
    if len(parts) == 1 and parts[0, 0] is not None:
        return parts[0, 0].at(v).reshape(N, heights[0], widths[0])
    total, tops, lefts = np.zeros((N, sum(heights), sum(widths)), v.dtype), np.cumsum(heights), np.cumsum(widths)
    for (i, j), part in parts.items():
        if part is not None:
            box = slice(tops[i] - heights[i], tops[i]), slice(lefts[j] - widths[j], lefts[j])
            total[:, box[0], box[1]] = part.at(v).reshape(N, heights[i], widths[j])
    return total
