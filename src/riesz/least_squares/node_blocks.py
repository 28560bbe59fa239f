"""The diagonal blocks of JᵀJ, node by node, and their inverses."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .factor_blocks import FactorBlocks


def diagonal_blocks(blocks: FactorBlocks, data: Any, added: Any) -> Callable[[Any], Any]:
    """x ↦ B⁻¹x, B the diagonal blocks of JᵀJ + diag(added)."""
    n, first = blocks.shape[1], blocks.node_first
    sizes = np.diff(first)
    wide = int(sizes.max(initial=1))
    rows = np.repeat(np.arange(blocks.shape[0]), np.diff(blocks.indptr))
    node, column = blocks.node_of[blocks.indices], blocks.indices - first[blocks.node_of[blocks.indices]]
    total = np.zeros((len(sizes), wide, wide))
    for away in range(wide):  # entries of one row and one node, so many places apart
        a, b = np.arange(len(data) - away), np.arange(away, len(data))
        same = (rows[a] == rows[b]) & (node[a] == node[b])
        a, b = a[same], b[same]
        flat = (node[a] * wide + column[a]) * wide + column[b]
        np.add.at(total.reshape(-1), flat, data[a] * data[b])
    lower = np.tril(total.transpose(0, 2, 1), -1)
    total = np.triu(total) + lower
    inner = np.arange(n) - first[blocks.node_of]
    total[blocks.node_of, inner, inner] += added
    padding = np.arange(wide) >= sizes[:, None]
    total[:, np.arange(wide), np.arange(wide)] += padding
    place = blocks.node_of * wide + inner
    inverse = np.linalg.inv(total)

    def apply(x: Any) -> Any:
        given = np.zeros(len(sizes) * wide)
        given[place] = x
        return (inverse @ given.reshape(len(sizes), wide, 1)).reshape(-1)[place]

    return apply
