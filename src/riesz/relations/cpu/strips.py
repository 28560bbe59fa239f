"""The pairs of a function cut in strips of targets, one for each thread: a thread adds what belongs to its strip, in
the order of the pairs.

Sources come in order, so they arrive as memory is read; a strip of targets is smaller than all of them, and nearer. No
thread writes where another does, and each target is summed as if there were one thread: the same bits for any number of
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..index_sets import Array


class Strips:
    """Strip s has the targets lows[s] … lows[s + 1], about equally many pairs each: `near`, the source in its chunk,
    `far`, the target in its strip.

    Both take two bytes where that is enough; starts[s, c] says where the pairs of strip s in chunk c begin.
    """

    def __init__(self, loops: Any, index: Array, targets: int, count: int) -> None:
        ends = np.cumsum(np.bincount(index, minlength=targets))
        inner = np.searchsorted(ends, [len(index) * k // count for k in range(1, count)])
        self.lows = np.array([0, *inner, targets])
        widths = np.diff(self.lows)
        owners = np.repeat(np.arange(count, dtype=np.uint16), widths)
        self.starts = np.zeros((count, (len(index) >> loops.CHUNK_BITS) + 2), np.int64)
        self.near = np.zeros(len(index) + loops.STRIP_PAIRS_AHEAD, np.uint16)
        self.far = np.zeros(len(index) + loops.STRIP_PAIRS_AHEAD, np.uint16 if widths.max() <= 1 << 16 else np.uint32)
        loops.dealt(index, owners, self.lows, self.starts, self.near, self.far)
        self.chunk = loops.CHUNK_BITS

    @property
    def order(self) -> Array:
        """The pairs in the order of the strips; behind them as many more as loops look ahead."""
        chunk = np.tile(np.arange(self.starts.shape[1] - 1), len(self.starts)) << self.chunk
        found = np.zeros(len(self.near), np.intp)
        found[: self.starts[-1, -1]] = np.repeat(chunk, np.diff(self.starts).ravel())
        return found + self.near

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self.starts.nbytes + self.near.nbytes + self.far.nbytes
