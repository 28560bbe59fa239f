"""Matrices, diagonals and blocks of a linear map from its entries, each number written where its index maps say.
Nothing is probed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry, diagonal_entries
from ..normal_form.index_maps import all_positions, size_of
from ..normal_form.network import Network
from ..normal_form.network_values import Values
from ..normal_form.structure import batch_axes, facts
from .matrix_patterns import LeafPlace, MatrixPattern, Placed, between, made
from .parts import Part

Shape = tuple[int, ...]


def places(leaves: Sequence[Any]) -> list[LeafPlace]:
    """Where the leaves of a space begin."""
    found: list[LeafPlace] = []
    at = 0
    for leaf in leaves:
        found.append(LeafPlace(at, leaf.shape))
        at += leaf.size
    return found


def placed(net: Network, rows: list[LeafPlace], columns: list[LeafPlace]) -> list[Placed]:
    """All entries with the leaves they lie between."""
    pairs = [(r, k, row, column) for r, row in enumerate(rows) for k, column in enumerate(columns)]
    return [(e, row, column) for r, k, row, column in pairs for e in net.block(r, k)]


def sparse(v: Values, rows: list[LeafPlace], columns: list[LeafPlace], shape: tuple[int, int]) -> Any:
    """The matrix as CSR, with its exact pattern, made once for all points, whose index arrays it shares."""
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    key = ("pattern", tuple([p.shape for p in rows]), tuple([p.shape for p in columns]))
    p = v.net.known(key, lambda: made(v.net.c, placed(v.net, rows, columns), *shape))
    data = numbers(v, p, [e for e, _, _ in placed(v.net, rows, columns)])
    if p.slots is not None and v.net.made.get(("filling", id(p.indices))) is not None:
        v.net.made[key] = p._replace(slots=None, order=None)  # as large as the numbers, and not needed any more
    return cast(Any, scipy_sparse).csr_array((data, p.indices, p.indptr), shape=shape)


def numbers(v: Values, p: MatrixPattern, entries: Sequence[Entry]) -> Any:
    """The data of a pattern at a point, from the entries it was made of."""
    from .filling import Filling, filling

    way: Filling | None = v.net.known(("filling", id(p.indices)), lambda: filling(v, entries, p.slots, p.size))
    if way is not None:
        return way.data(v)
    flat = np.concatenate([np.zeros(0, v.dtype), *[v.spread(e).reshape(-1) for e in entries]])
    if p.order is None:
        return np.bincount(p.slots, weights=flat, minlength=p.size).astype(v.dtype, copy=False)
    data = cast(Any, flat).take(p.order)
    if len(p.more):
        np.add.at(data, p.slots[p.more], flat[p.more])
    return data


def product(v: Values, columns: list[LeafPlace], shape: tuple[int, int]) -> Any:
    """A network with hubs as CSR: the product of sparse matrices; None where steps have no entries or are dense."""
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    net, csr = v.net, cast(Any, scipy_sparse).csr_array
    if net.kept or (8 * v.positions() > shape[0] * shape[1] and not net.listed):
        return None
    eye = partial(cast(Any, scipy_sparse).eye_array, n=shape[1], format="csr", dtype=v.dtype)
    found: dict[int, Any] = {
        slot: eye(math.prod(column.shape), k=column.start) for slot, column in zip(net.inputs, columns, strict=True)
    }
    for to in net.order:
        total = csr((math.prod(net.shapes[to]), shape[1]), dtype=v.dtype)
        for a, es in net.blocks[to].items():
            p = between(net, to, a)
            step = csr((numbers(v, p, es), p.indices, p.indptr), shape=(total.shape[0], found[a].shape[0]))
            if any([f.strong for e in es for f in e.factors]):  # a strong zero is a place without a number
                step = step.copy()
                step.eliminate_zeros()
            total = total + step @ found[a]
        found[to] = total
    return cast(Any, scipy_sparse).vstack([found[o] for o in net.outputs], format="csr")


def full(v: Values, rows: list[LeafPlace], columns: list[LeafPlace], shape: tuple[int, int]) -> Any:
    """The matrix as an array."""

    def block(r: int, k: int) -> Part | None:
        box, entries = (*rows[r].shape, *columns[k].shape), v.net.block(r, k)
        make = partial(Part, v.net.c, [(e, (*e.out, *e.inn)) for e in entries], box)
        return v.net.known(("full", r, k, box), make) if entries else None

    if len(rows) == len(columns) == 1 and (whole := block(0, 0)) is not None:
        return whole.copied(v).reshape(shape)
    total = np.zeros(shape, v.dtype)
    for r, row in enumerate(rows):
        for k, column in enumerate(columns):
            if (part := block(r, k)) is not None:
                total[row.range, column.range] += part.at(v).reshape(row.size, column.size)
    return total


class Blocks(NamedTuple):
    """Small dense matrices of one shape: `values` (N, m, n), and the flat rows (N, m) and columns (N, n) of each;
    np.asarray gives the values."""

    values: Any
    rows: Any
    columns: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)


def blocks_of(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Blocks | None:
    """The blocks between two leaves, along the labels of both sides; None where blocks of one shape cannot say it."""
    c = v.net.c
    axes = batch_axes(c, entries, row, column)
    if axes:
        rows, columns = block_positions(axes, row, column)
        values = block_part(c, entries, axes, row, column).copied(v)
        return Blocks(values.reshape(*rows.shape, columns.shape[1]), rows, columns)
    found = [_entry_blocks(v, e, row, column) for e in entries]
    if not found or any([b is None for b in found]) or len({b.values.shape[1:] for b in found if b is not None}) > 1:
        return None
    groups = [b for b in found if b is not None]
    return Blocks(*[np.concatenate(parts) for parts in zip(*groups, strict=True)])  # copies, also of a single one


def block_part(
    c: Coefficients, entries: Sequence[Entry], axes: list[tuple[int, int]], row: Shape, column: Shape
) -> Part:
    """The blocks along axes that every entry shares, as an array of these axes, other rows and other columns."""
    down = _shared_first([i for i, _ in axes], row)
    across = _shared_first([j for _, j in axes], column)[len(axes) :]
    placed = [(e, [*[e.out[i] for i in down], *[e.inn[j] for j in across]]) for e in entries]
    return Part(c, placed, (*[row[i] for i in down], *[column[j] for j in across]))


def block_positions(axes: list[tuple[int, int]], row: Shape, column: Shape) -> list[Any]:
    """The flat rows (N, m) and columns (N, n) of the blocks along some axes."""
    n = math.prod([row[i] for i, _ in axes])
    sides = zip((row, column), zip(*axes, strict=True), strict=True)
    moved = [np.arange(math.prod(s)).reshape(s).transpose(_shared_first(shared, s)) for s, shared in sides]
    return [at.reshape(n, at.size // max(n, 1)) for at in moved]


def _shared_first(shared: Sequence[int], shape: Shape) -> list[int]:
    """The axes of an array, some before all others."""
    return [*shared, *[i for i in range(len(shape)) if i not in shared]]


def _entry_blocks(v: Values, e: Entry, row: Shape, column: Shape) -> Blocks | None:
    """The blocks of one entry: one for every value of the labels on both sides."""
    sizes, found = v.net.c.sizes, facts(v.net.c, e)
    both, left, right = found.both, found.left, found.right
    if not both:
        return None
    n, m, k = [size_of(labels, sizes) for labels in (both, left, right)]
    sides = (e.out, row, (*both, *left)), (e.inn, column, (*both, *right))
    down, across = [all_positions(maps, shape, labels, sizes).reshape(n, -1) for maps, shape, labels in sides]
    values = v.spread(e).transpose([e.outer.index(label) for label in (*both, *left, *right)])
    return Blocks(values.reshape(n, m, k), down, across)


def diagonal(v: Values, leaves: list[LeafPlace], size: int) -> Any:
    """The diagonal, from the entries between each leaf and itself."""
    c, total = v.net.c, np.zeros(size, v.dtype)

    def make() -> Any:
        pairs = [(e, leaf) for i, leaf in enumerate(leaves) for e in v.net.block(i, i)]
        cuts = [(d, leaf) for e, leaf in pairs for d in diagonal_entries(c, e, leaf.shape)]
        parts = [(leaf, Part(c, [(d, d.out)], leaf.shape)) for d, leaf in cuts]
        return {f.slot for d, _ in cuts for f in d.factors}, parts

    wanted, parts = v.net.known("diagonal", make)
    here = Values(v.net, v.point, v.dtype, v.run(wanted))
    for leaf, part in parts:
        total[leaf.range] += part.at(here).reshape(-1)
    return total
