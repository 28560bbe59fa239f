"""Matrices, diagonals and blocks of a linear map from its entries, each number written where its index maps say.
Nothing is probed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...relations.index_algebra import Affine, IndexMap, flat_positions, values
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry, diagonal_entries
from ..normal_form.index_maps import distinct, injective, size_of
from ..normal_form.network_values import Values, multiplied_out
from .matrix_patterns import LeafPlace, MatrixPattern, between, made
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


def pattern(v: Values, rows: list[LeafPlace], columns: list[LeafPlace]) -> MatrixPattern:
    """The exact pattern of a map without hubs, made once for all points."""
    known = v.net.made
    key = ("pattern", tuple([p.shape for p in rows]), tuple([p.shape for p in columns]))
    if key not in known:
        height = rows[-1].start + math.prod(rows[-1].shape) if rows else 0
        width = columns[-1].start + math.prod(columns[-1].shape) if columns else 0
        known[key] = made(v.net.c, placed(v, rows, columns), height, width)
    return known[key]


def placed(v: Values, rows: list[LeafPlace], columns: list[LeafPlace]) -> list[tuple[Entry, LeafPlace, LeafPlace]]:
    """All entries with the leaves they lie between."""
    net = v.net
    found: list[tuple[Entry, LeafPlace, LeafPlace]] = []
    for r, row in enumerate(rows):
        for k, column in enumerate(columns):
            found.extend([(e, row, column) for e in net.block(r, k)])
    return found


def sparse(v: Values, rows: list[LeafPlace], columns: list[LeafPlace], shape: tuple[int, int]) -> Any:
    """The matrix as CSR, with its exact pattern, whose index arrays it shares."""
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    p = pattern(v, rows, columns)
    data = numbers(v, p, [e for e, _, _ in placed(v, rows, columns)])
    return cast(Any, scipy_sparse).csr_array((data, p.indices, p.indptr), shape=shape)


def numbers(v: Values, p: MatrixPattern, entries: Sequence[Entry]) -> Any:
    """The data of a pattern at a point, from the entries it was made of."""
    from .filling import Filling, filling

    known = v.net.made
    with v.net.c.lock:
        if ("filling", id(p)) not in known:
            known["filling", id(p)] = filling(v, entries, p.slots, p.size)
    way: Filling | None = known["filling", id(p)]
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
    """The matrix of a network with hubs as CSR: the product of the sparse matrices of its steps. None where some have
    no entries or are dense."""
    import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

    net, csr = v.net, cast(Any, scipy_sparse).csr_array
    if net.kept or (8 * v.positions() > shape[0] * shape[1] and not net.listed):
        return None
    found: dict[int, Any] = {}
    for slot, column in zip(net.inputs, columns, strict=True):
        found[slot] = cast(Any, scipy_sparse).eye_array(
            math.prod(column.shape), shape[1], k=column.start, format="csr", dtype=v.dtype
        )
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
    if len(rows) == len(columns) == 1:
        known, box = v.net.made, (*rows[0].shape, *columns[0].shape)
        if ("full", box) not in known:
            known["full", box] = Part(v.net.c, [(e, (*e.out, *e.inn)) for e in v.net.block(0, 0)], box)
        return known["full", box].copied(v).reshape(shape)
    total = np.zeros(shape, v.dtype)
    for e, row, column in placed(v, rows, columns):
        block = total[
            row.start : row.start + math.prod(row.shape), column.start : column.start + math.prod(column.shape)
        ]
        strides = (*_strides(row.shape, block.strides[0]), *_strides(column.shape, block.strides[1]))
        add(v, e, np.lib.stride_tricks.as_strided(block, (*row.shape, *column.shape), strides), (*e.out, *e.inn))
    return total


def _strides(shape: Shape, step: int) -> list[int]:
    """The strides of the axes of a leaf, from that of its flat coordinate."""
    return [step * math.prod(shape[i + 1 :]) for i in range(len(shape))]


def add(v: Values, e: Entry, total: Any, maps: Sequence[IndexMap]) -> None:
    """Add the coefficients of an entry to an array with one axis per map."""
    sizes, outer = v.net.c.sizes, e.outer
    if not total.size or any([not sizes[k] for k in outer]):
        return
    if all([type(m) is Affine for m in maps]) and injective(maps, outer):
        start = total[(*[slice(m.offset, m.offset + 1) for m in cast("Sequence[Affine]", maps)], ...)]
        steps = [
            sum(
                [
                    s * step
                    for m, step in zip(maps, total.strides, strict=True)
                    for j, s in cast(Affine, m).terms
                    if j == k
                ]
            )
            for k in outer
        ]
        view = np.lib.stride_tricks.as_strided(start, [sizes[k] for k in outer], steps)
        view += v.spread(e)
    else:
        box = [sizes[k] for k in outer]
        np.add.at(total, tuple([np.broadcast_to(values(m, outer, sizes), box) for m in maps]), v.spread(e))


class Blocks(NamedTuple):
    """Small dense matrices of one shape: `values` (N, m, n), and the flat rows (N, m) and columns (N, n) of each;
    np.asarray gives the values."""

    values: Any
    rows: Any
    columns: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)


def blocks_of(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Blocks | None:
    """The blocks of a map between two leaves, along the labels of both sides; None where blocks of one shape cannot say
    it."""
    from ..normal_form.structure import batch_axes

    c = v.net.c
    axes = batch_axes(c, entries, row, column)
    if axes:
        rows, columns = block_positions(axes, row, column)
        return Blocks(
            block_part(c, entries, axes, row, column).copied(v).reshape(*rows.shape, columns.shape[1]), rows, columns
        )
    found = [_entry_blocks(v, e, row, column) for e in entries]
    if not found or any([b is None for b in found]) or len({b.values.shape[1:] for b in found if b is not None}) > 1:
        return None
    groups = [b for b in found if b is not None]
    return Blocks(*[np.concatenate(parts) for parts in zip(*groups, strict=True)])  # copies, also of a single one


def block_part(
    c: Coefficients, entries: Sequence[Entry], axes: list[tuple[int, int]], row: Shape, column: Shape
) -> Part:
    """The blocks along axes that every entry shares, as an array of these axes, the other rows and the other
    columns."""
    rows, columns = _beside(axes, row, column)
    placed = [
        (e, [*[e.out[i] for i, _ in axes], *[e.out[i] for i in rows], *[e.inn[j] for j in columns]]) for e in entries
    ]
    return Part(c, placed, (*[row[i] for i, _ in axes], *[row[i] for i in rows], *[column[j] for j in columns]))


def block_positions(axes: list[tuple[int, int]], row: Shape, column: Shape) -> tuple[Any, Any]:
    """The flat rows (N, m) and columns (N, n) of the blocks along some axes."""
    rows, columns = _beside(axes, row, column)
    n = math.prod([row[i] for i, _ in axes])
    down = np.arange(math.prod(row)).reshape(row).transpose([*[i for i, _ in axes], *rows])
    across = np.arange(math.prod(column)).reshape(column).transpose([*[j for _, j in axes], *columns])
    return down.reshape(n, math.prod([row[i] for i in rows])), across.reshape(
        n, math.prod([column[j] for j in columns])
    )


def _beside(axes: list[tuple[int, int]], row: Shape, column: Shape) -> tuple[list[int], list[int]]:
    """The axes of rows and of columns that are not among those they share."""
    return [i for i in range(len(row)) if i not in [a for a, _ in axes]], [
        j for j in range(len(column)) if j not in [b for _, b in axes]
    ]


def _entry_blocks(v: Values, e: Entry, row: Shape, column: Shape) -> Blocks | None:
    """The blocks of one entry: one for every value of the labels on both sides."""
    c = v.net.c
    out, inn = distinct(e.out), distinct(e.inn)
    both = tuple([k for k in out if k in inn])
    left, right = tuple([k for k in out if k not in both]), tuple([k for k in inn if k not in both])
    if not both:
        return None
    n, m, k = [size_of(ls, c.sizes) for ls in (both, left, right)]
    down = np.broadcast_to(
        flat_positions(e.out, row, (*both, *left), c.sizes), [c.sizes[x] for x in (*both, *left)]
    ).reshape(n, m)
    across = np.broadcast_to(
        flat_positions(e.inn, column, (*both, *right), c.sizes), [c.sizes[x] for x in (*both, *right)]
    ).reshape(n, k)
    return Blocks(v.spread(e, (*both, *left, *right)).reshape(n, m, k), down, across)


def diagonal(v: Values, leaves: list[LeafPlace], size: int) -> Any:
    """The diagonal, from the entries between each leaf and itself."""
    total = np.zeros(size, v.dtype)
    c = v.net.c
    known = v.net.made
    with c.lock:
        if "diagonal" not in known:
            found = [(e, leaf) for i, leaf in enumerate(leaves) for e in v.net.block(i, i)]
            known["diagonal"] = [(d, leaf) for e, leaf in found for d in diagonal_entries(c, e, leaf.shape)]
    cuts: list[tuple[Entry, LeafPlace]] = known["diagonal"]
    wanted = sorted({f.slot for d, _ in cuts for f in d.factors})
    numbers = dict(zip(wanted, v.run(wanted), strict=True)) if wanted else {}
    for d, leaf in cuts:
        array, labels = multiplied_out(d, distinct(d.out), numbers, v.dtype)
        out = distinct(d.out)
        box = [c.sizes[k] for k in out]
        shown = array.transpose([labels.index(k) for k in out if k in labels]).reshape(
            [c.sizes[k] if k in labels else 1 for k in out]
        )
        part = total[leaf.start : leaf.start + math.prod(leaf.shape)]
        at = np.broadcast_to(flat_positions(d.out, leaf.shape, out, c.sizes), box)
        np.add.at(part, at.reshape(-1), np.broadcast_to(shown, box).reshape(-1))
    return total
