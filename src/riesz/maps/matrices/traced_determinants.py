"""The determinant of a map at a point that is no number, by structure: NumPy code on the parts that make up the matrix.

Everything is written with steps that have derivatives to any order. A band matrix is cut into blocks and every second
one is eliminated, again and again (block cyclic reduction), so that a program for n unknowns has log n rounds of
batched steps. Rows are exchanged within blocks only.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import tuning
from ..leaves import IN_TRACES, Leaves
from ..normal_form.entries import Entry
from ..normal_form.network import Network, multiplied
from ..normal_form.structure import batch_axes, offsets
from ..solvers.choice import band_part, factors_of, low_rank_of
from ..solvers.factorised import parity
from .materialise import block_part, block_positions
from .matrix_programs import part_program
from .parts import Part
from .sparse_determinants import sparse_slogdet

if TYPE_CHECKING:
    from ..linear_map import LinearMap

Shape = tuple[int, ...]
Pair = tuple[Any, Any]


def slogdet_at(L: LinearMap, kind: Leaves) -> Pair:
    """Sign and logarithm of the determinant, by structure where there is some, otherwise of the dense matrix."""
    if not L.shape[0]:
        return 1.0, 0.0
    source = L.instance
    net = multiplied(source.network) if source.fixed else None
    if net is not None and (
        L.shape[0] > tuning.DENSE_DETERMINANT_UNKNOWNS or L.structure.kind in ("diagonal", "identity")
    ):
        found = _Determinant(L, kind, net).between_leaves()
        if found is not None:
            return found
    few = None if net is None or kind is not IN_TRACES else L.positions
    if net is not None and few is not None and 8 * few <= L.size and L.shape[0] > tuning.DENSE_DETERMINANT_UNKNOWNS:
        return sparse_slogdet(L, kind, net)
    if L.shape[0] > 8 * tuning.DENSE_UNKNOWNS:
        raise kind.refusal(f"the determinant of {L.shape[0]:,} unknowns, {L.structure},")
    return tuple(kind.arrays.linalg.slogdet(L.to_dense()))


class _Determinant:
    """The determinant of a map that is being written."""

    def __init__(self, L: LinearMap, kind: Leaves, net: Network) -> None:
        self.L, self.kind, self.net, self.xp = L, kind, net, kind.arrays

    def part(self, part: Part) -> Any:
        """An array made of entries, at the point."""
        L = self.L
        return self.kind.computed(part_program(L.instance, self.net, part), L.instance.point, [], L.dtype)[0]

    def between_leaves(self) -> Pair | None:
        net, L = self.net, self.L
        rows, columns = [leaf.shape for leaf in L.codomain.leaves], [leaf.shape for leaf in L.domain.leaves]
        if [math.prod(r) for r in rows] != [math.prod(c) for c in columns]:
            return None
        if any([net.block(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]):
            return None
        every = [self.between(net.block(i, i), r, c) for i, (r, c) in enumerate(zip(rows, columns, strict=True))]
        return self._joined(every)

    def _joined(self, every: Sequence[Pair | None], times: Sequence[int] | None = None) -> Pair | None:
        """A product of determinants, each so often."""
        sign: Any = 1.0
        size: Any = 0.0
        for found, k in zip(every, times or [1] * len(every), strict=True):
            if found is None:
                return None
            sign = sign * (found[0] if k % 2 else self.xp.abs(found[0]))
            size = size + k * found[1]
        return sign, size

    def between(self, entries: Sequence[Entry], row: Shape, column: Shape) -> Pair | None:
        """The determinant of a square map between two leaves; None where no structure helps."""
        n, c = math.prod(row), self.net.c
        if n != math.prod(column):
            return None
        if not n:
            return 1.0, 0.0
        if not entries:
            return 0.0, -np.inf
        lines = offsets(c, entries, row, column)
        if lines is not None and lines == [0]:
            return self._diagonal(self.part(band_part(self.net, entries, lines, row, column)[0])[0])
        if lines is not None and max(lines) - min(lines) <= 64 and n > tuning.DENSE_DETERMINANT_UNKNOWNS:
            band, lower, upper = band_part(self.net, entries, lines, row, column)
            return _banded(self.xp, self.part(band), lower, upper)
        factors = factors_of(entries, row, column)
        if factors is not None:
            sizes = [math.prod(tall) for _, tall, _ in factors.entries]
            every = [self._any([e], tall, wide) for e, tall, wide in factors.entries]
            found = self._joined(every, [n // k for k in sizes])
            places = [
                np.arange(n).reshape(s).transpose(o).reshape(-1)
                for s, o in ((row, factors.down), (column, factors.across))
            ]
            turn = 1.0 if np.array_equal(places[0], places[1]) else parity(places[0]) * parity(places[1])
            return None if found is None else (found[0] * turn, found[1])
        axes = batch_axes(c, entries, row, column)
        if axes:
            rows, columns = block_positions(axes, row, column)
            if np.array_equal(rows, columns) and rows.shape[0] > 1:
                blocks = self.part(block_part(c, entries, axes, row, column))
                size = rows.shape[1]
                return self._stack(self.xp.reshape(blocks, (rows.shape[0], size, size)))
        return self._low_rank(entries, row, column)

    def _any(self, entries: Sequence[Entry], row: Shape, column: Shape) -> Pair | None:
        """By structure, or dense if it is small."""
        found, n = self.between(entries, row, column), math.prod(row)
        if found is not None or n > tuning.DENSE_UNKNOWNS:
            return found
        matrix = self.part(Part(self.net.c, [(e, (*e.out, *e.inn)) for e in entries], (*row, *column)))
        return tuple(self.xp.linalg.slogdet(self.xp.reshape(matrix, (n, n))))

    def _diagonal(self, d: Any) -> Pair:
        xp = self.xp
        return xp.prod(xp.sign(d)), xp.sum(xp.log(xp.abs(d)))

    def _stack(self, blocks: Any) -> Pair:
        signs, sizes = self.xp.linalg.slogdet(blocks)
        return self.xp.prod(signs), self.xp.sum(sizes)

    def _low_rank(self, entries: Sequence[Entry], row: Shape, column: Shape) -> Pair | None:
        """det(D + U Vᵀ) = det D · det(I + VᵀD⁻¹U) for a diagonal D."""
        found, n, xp = low_rank_of(self.net, entries, row, column), math.prod(row), self.xp
        lines = None if found is None else offsets(self.net.c, found.base, row, column)
        if found is None or lines is None or lines != [0]:
            return None
        d = self.part(band_part(self.net, found.base, lines, row, column)[0])[0]
        U, V = [
            xp.concatenate(
                [xp.reshape(self.part(p[i]), (n, k)) for p, k in zip(found.pairs, found.ranks, strict=True)], 1
            )
            for i in (0, 1)
        ]
        small = np.eye(sum(found.ranks)) + V.T @ (U / xp.reshape(d, (n, 1)))
        return self._joined([self._diagonal(d), tuple(xp.linalg.slogdet(small))])


def _banded(xp: Any, ab: Any, lower: int, upper: int) -> Pair:
    """Block cyclic reduction of a band matrix in LAPACK's storage."""
    n, m = ab.shape[1], max(lower, upper, tuning.BAND_BLOCK_ROWS)
    count = -(-n // m)
    flat = xp.concatenate([xp.reshape(ab, (ab.shape[0] * n,)), np.array([0.0, 1.0])])
    at = np.arange(count)[:, None, None] * m + np.arange(m)[:, None]  # rows of each block

    def blocks(shift: int) -> Any:
        """The blocks so many block columns beside the diagonal; past the end, the identity."""
        to = (np.arange(count)[:, None, None] + shift) * m + np.arange(m)
        d = at - to
        inside = (-upper <= d) & (d <= lower) & (at < n) & (to < n) & (to >= 0)
        index = np.where(inside, (upper + d) * n + to, ab.shape[0] * n + ((d == 0) & (at >= n)))
        return flat[index]

    main, before, after = blocks(0), blocks(-1), blocks(1)
    sign: Any = 1.0
    size: Any = 0.0
    none = np.zeros((1, m, m))
    while count > 1:
        if count % 2:
            main = xp.concatenate([main, np.eye(m)[None]])
            before, after = [xp.concatenate([x, none]) for x in (before, after)]
            count += 1
        signs, sizes = xp.linalg.slogdet(main[1::2])
        sign, size = sign * xp.prod(signs), size + xp.sum(sizes)
        both = xp.linalg.solve(main[1::2], xp.concatenate([before[1::2], after[1::2]], 2))
        left, right = both[:, :, :m], both[:, :, m:]
        last = [xp.concatenate([none, x[:-1]]) for x in (left, right)]
        main = main[::2] - after[::2] @ left - before[::2] @ last[1]
        before, after = -(before[::2] @ last[0]), -(after[::2] @ right)
        count //= 2
    signs, sizes = xp.linalg.slogdet(main[0])
    return sign * signs, size + sizes
