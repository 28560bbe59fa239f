"""Steps on slices of a long axis: what runs on a slice, and the op `Tiled`, a part of a program run slice by slice.

A step runs *along* the axis if a slice of its result is the step on slices of its arguments, or *sums* it: then its
results on slices add up. A tile is short enough for its arrays to stay in the cache; arrays as long as the axis are
made only of what is read elsewhere.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.number_domains import NUMBERS
from ...ops.op import Contraction, Reduction, Reshape, Shape, contraction
from ...ops.opaque import Discrete, Ruled
from ...runtime import buffers, tuning
from ...runtime import pool as threads
from ...runtime.blas_threads import one_blas_thread
from ...spaces.formal_vectors import Formal, FormalProduct, dense, weak
from ..program import INPUT, Constant, Program, applied, outputs
from ..sub_programs import Block
from .along import Axes, MixesPositions, demands, under_label


class Mode(NamedTuple):
    """How a step runs on slices: along an axis of its result, or (None) as a contraction that sums its label."""

    axis: int | None
    label: int = -1


def slices(op: Any, shapes: Sequence[Shape], shape: Shape, mode: Mode) -> Axes:
    """The axis along which each argument is sliced, None for those read whole; raises where it sees everything."""
    k = mode.axis
    if k is None:
        return under_label(mode.label, op.labels)
    axes: Any = dict(op.parameters).get("axis") if isinstance(op, (Discrete, Ruled)) else None
    if axes is not None:
        return _beside(shapes, shape, k, tuple(np.atleast_1d(axes).tolist()))
    if isinstance(op, Reduction):
        source, target = [len(cast(Shape, s.box)) for s in (op.relations[0].source, op.relations[0].target)]
        if op.axis <= k < op.axis + target:
            raise MixesPositions
        return [k if k < op.axis else k - target + source] * len(shapes)
    return demands(op, shapes, shape, k)


def _beside(shapes: Sequence[Shape], shape: Shape, k: int, axes: tuple[int, ...]) -> Axes:
    """Functions of some axes of arguments alike (extrema, sorting, …) run along all others."""
    rank = max([len(s) for s in shapes])
    kept = [i for i in range(rank) if len(shape) == rank or i - rank not in axes]
    at = kept[k]
    if at - rank in axes or any([a >= 0 for a in axes]) or any([len(s) != rank or s[at] != shape[k] for s in shapes]):
        raise MixesPositions
    return [at] * len(shapes)


def resized(op: Any, axis: int | None, m: int) -> Any:
    """An op that knows the length of the long axis, for another one."""
    if axis is not None and type(op) is Contraction and op.extra:
        extra = {k: m if k == op.out[axis] else n for k, n in op.extra}
        return contraction(op.labels, op.out, extra, op.strong, op.guarded)
    return Reshape(resize(op.shape, axis, m)) if type(op) is Reshape else op


def resize(shape: Shape, axis: int | None, m: int) -> Shape:
    """A shape with another length of one axis."""
    return shape if axis is None else (*shape[:axis], m, *shape[axis + 1 :])


class Tiled(Block):
    """A program run on tiles of an axis of `length` positions: `axes` says which axis of each slot that is, None for
    those without.

    An output without the axis is the sum of those of all tiles. The body is written for the whole length.
    """

    body: Program
    length: int
    axes: tuple[int | None, ...]
    tile: int
    made_to_run = True

    @property
    def title(self) -> str:
        return "tiles"

    def __str__(self) -> str:
        tiles = f"{len(self.tiles):,} tiles of up to {self.lengths[0]:,} of {self.length:,} positions"
        return f"{len(self.body)} of them run on {tiles}"

    @cached_property
    def tiles(self) -> list[tuple[int, int]]:
        """Where tiles begin and end."""
        return shares(self.length, max(-(-self.length // self.tile), 1))

    @property
    def lengths(self) -> list[int]:
        """The lengths of tiles that occur."""
        return sorted({b - a for a, b in self.tiles}, reverse=True)

    def at(self, m: int) -> Program:
        """The body for a tile of m positions."""
        body, tile = self.body, Program(share=False)
        for slot, (op, args, axis) in enumerate(zip(body.ops, body.args, self.axes, strict=True)):
            shape = resize(body.shapes[slot], axis, m)
            if op is INPUT:
                tile.input(shape)
            elif type(op) is Constant:
                tile.const(op.value if not shape else Formal(shape, (FormalProduct(weak(op.value), ()),)))
            else:
                applied(tile, resized(op, axis, m), args)
            assert tile.shapes[-1] == shape, (op, tile.shapes[-1], shape)
        tile.outputs = body.outputs
        return tile

    def run(self, *xs: Any) -> Any:
        bodies = {m: self.at(m) for m in self.lengths}

        def work(m: int) -> Callable[..., Sequence[Any]]:
            return lambda *tile: outputs(bodies[m], NUMBERS, tile)

        return self.loop([dense(x) for x in xs], {m: work(m) for m in self.lengths})

    def loop(self, xs: Sequence[Any], work: dict[int, Callable[..., Sequence[Any]]]) -> tuple[Any, ...]:
        """The results, by functions for tiles of each length. Tiles are spread over threads in groups that do not
        depend on their number."""
        axes = [self.axes[s] if np.ndim(x) else None for s, x in zip(self.body.inputs, xs, strict=True)]
        ends = [self.axes[s] for s in self.body.outputs]
        tiles, groups = self.tiles, self._groups(len(self.tiles))
        sums: list[list[Any]] = [[None] * len(ends) for _ in groups]
        whole: list[Any] = [None] * len(ends)
        lock, errors = threading.Lock(), np.geterr()

        def run(low: int, high: int) -> None:
            with np.errstate(**cast(Any, errors)):
                for group in range(low, high):
                    for a, b in tiles[slice(*groups[group])]:
                        given = [x if i is None else x[_part(i, a, b)] for x, i in zip(xs, axes, strict=True)]
                        keep(work[b - a](*given), sums[group], a, b)

        def keep(found: Sequence[Any], total: list[Any], a: int, b: int) -> None:
            for j, (y, k) in enumerate(zip(map(dense, found), ends, strict=True)):
                if k is not None:
                    with lock:
                        if whole[j] is None:
                            whole[j] = buffers.empty(self.body.shapes[self.body.outputs[j]], y.dtype)
                    whole[j][_part(k, a, b)] = y
                elif total[j] is None:
                    total[j] = y if type(y) is not np.ndarray or y.flags.owndata else np.array(y)
                else:
                    total[j] = _added(total[j], y)

        with one_blas_thread():
            threads.spread(run, shares(len(groups), min(threads.count(), len(groups))))
        for group in sums[1:]:
            for j, y in enumerate(group):
                if ends[j] is None:
                    sums[0][j] = _added(sums[0][j], y)
        return tuple([w if k is not None else s for w, s, k in zip(whole, sums[0], ends, strict=True)])

    def _groups(self, tiles: int) -> list[tuple[int, int]]:
        size = 8 * sum([math.prod(self.body.shapes[s]) for s in self.body.outputs if self.axes[s] is None])
        count = min(tiles, tuning.TILE_SUM_GROUPS, max(tuning.TILE_SUM_BYTES // max(size, 1), 2))
        return shares(tiles, count)


def shares(n: int, count: int) -> list[tuple[int, int]]:
    """Where parts of n things begin and end: their lengths differ by one at most."""
    return list(itertools.pairwise([n * k // count for k in range(count + 1)]))


def _part(axis: int, a: int, b: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(a, b),)


def _added(total: Any, y: Any) -> Any:
    return np.add(total, y, out=total) if np.ndim(total) else total + y
