"""What a linear map is, in words and as facts that solving uses: read off its entries, never guessed from numbers.

A fact holds for every value of the coefficients. Where entries are products, ranks are bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...ops.op import Reduction
from ...relations import Triangular
from ...relations.index_algebra import Affine, IndexTable, Labels, flat_map, labels_of
from ...runtime import displayed
from .coefficients import Coefficients
from .entries import Entry, sparse_size
from .index_maps import distinct, injective, size_of, whole
from .network import Network, thinned

if TYPE_CHECKING:
    from .network_values import Values

Shape = tuple[int, ...]
Entries = Sequence[Entry]
Pairs = list[tuple[int, int]]


class Facts(NamedTuple):
    """One entry: labels on both sides, on the left only, on the right only, within; how its two sides hang together."""

    both: Labels
    left: Labels
    right: Labels
    rank: int  # bound on the rank of what is between left and right, for fixed `both`
    listed: bool  # whether index arrays say where its numbers are
    constant: bool  # whether there is no factor at all


def facts(c: Coefficients, e: Entry) -> Facts:
    """How an entry is connected."""
    out, inn = distinct(e.out), distinct(e.inn)
    both = tuple([k for k in out if k in inn])
    left = tuple([k for k in out if k not in both])
    right = tuple([k for k in inn if k not in both])
    listed = any([type(m) is IndexTable for m in (*e.out, *e.inn)])
    bound = min(size_of(left, c.sizes), size_of(right, c.sizes))
    near = [f for f in e.factors if set(f.labels) & set(right)]
    far = [f for f in e.factors if f not in near]
    if not any([set(f.labels) & set(left) for f in near]):
        fixed = {*both, *left, *right}
        shared = {k for f in near for k in f.labels} & {k for f in far for k in f.labels}
        bound = min(bound, size_of(shared - fixed, c.sizes))
    return Facts(both, left, right, bound, listed, not e.factors)


def batch_axes(c: Coefficients, entries: Sequence[Entry], row: Shape, column: Shape) -> list[tuple[int, int]]:
    """Axes (i of the rows, j of the columns) along which every entry is diagonal: one label runs through both."""
    found: list[tuple[int, int]] | None = None
    for e in entries:
        often = [Counter([k for m in side for k in labels_of(m)]) for side in (e.out, e.inn)]
        mine = [
            (i, j)
            for i, m in enumerate(e.out)
            for j, q in enumerate(e.inn)
            if row[i] == column[j] > 1 and type(q) is Affine and whole(m, row[i], c.sizes) and m == q
            if all([count[labels_of(m)[0]] == 1 for count in often])
        ]
        found = mine if found is None else [p for p in found if p in mine]
    return found or []


def offsets(c: Coefficients, entries: Sequence[Entry], row: Shape, column: Shape) -> list[int] | None:
    """The diagonals that hold all entries, as flat offsets (column − row), ascending; None where there are none."""
    found: set[int] = set()
    for e in entries:
        down, across = flat_map(e.out, row), flat_map(e.inn, column)
        if down is None or across is None or down.terms != across.terms:
            return None
        found.add(across.offset - down.offset)
    return sorted(found)


class Structure(NamedTuple):
    """`kind` in one word or two, `words` in a sentence; `nonzeros` bounds how many numbers of the matrix are not
    zero."""

    kind: str
    words: str
    nonzeros: int
    rank: int

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return self.words

    def __format__(self, spec: str) -> str:
        return format(self.words, spec)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


def block_structure(c: Coefficients, entries: Sequence[Entry], row: Shape, column: Shape) -> Structure:
    """What the entries between two leaves are."""
    height, width = math.prod(row), math.prod(column)
    full = min(height, width)
    if not entries or not height or not width:
        return Structure("zero", "zero", 0, 0)
    count = min(sum([sparse_size(c, e) for e in entries]), height * width)
    every = [facts(c, e) for e in entries]
    diagonals = offsets(c, entries, row, column)
    if diagonals is not None:
        return _on_diagonals(c, entries, diagonals, count, (height, width))
    axes = batch_axes(c, entries, row, column)
    if axes and any([f.left or f.right for f in every]):
        return Structure(*_in_blocks(c, entries, axes, (row, column)), count, full)
    if any([f.listed for f in every]):
        return _listed(entries, every[0], count, (height, width), full)
    if all([not f.left and not f.right for f in every]):
        e = entries[0]
        alone = len(entries) == 1 and not e.factors and count == height == width
        if alone and all([injective(side, e.outer) for side in (e.out, e.inn)]):
            return Structure("permutation", _times(e.scale, "permutation", "a permutation"), count, full)
        if len(row) == len(column) and all([_shifted(e) for e in entries]):
            return _sparse(f"stencil of {len(entries)} points", count, (height, width), full)
        return _sparse("sparse", count, (height, width), full)
    flat = [(f, e) for f, e in zip(every, entries, strict=True) if not (f.left or f.right)]
    rest = [(f, e) for f, e in zip(every, entries, strict=True) if f.left or f.right]
    if len(entries) == 1 and len(parts(entries[0])) > 1:
        return Structure("Kronecker", f"Kronecker product of {len(parts(entries[0]))}", count, full)
    if any([f.both for f, _ in rest]):
        return _sparse("sparse in blocks", count, (height, width), full)
    rank = sum([f.rank for f, _ in rest])
    if flat:
        inner = block_structure(c, [e for _, e in flat], row, column)
        if rank < full:
            return Structure(f"{inner.kind} + low rank", f"{inner.words} + rank {rank}", height * width, full)
        return Structure("dense", "dense", height * width, full)
    if rank < full:
        return Structure("low rank", f"rank {rank}", count, rank)
    factors = len(entries[0].factors)
    product = f", a product of {factors} factors" if len(entries) == 1 and factors > 1 else ""
    return Structure("dense", "dense" + product, count, full)


def _times(k: float, alone: str, words: str) -> str:
    """A multiple, in words."""
    return alone if k == 1.0 else f"{k:.4g} times {words}"


def _shifted(e: Entry) -> bool:
    """Whether both sides run along the same labels, axis by axis, one shifted against the other."""
    pairs = [(a, b) for a, b in zip(e.out, e.inn, strict=True) if isinstance(a, Affine) and isinstance(b, Affine)]
    return len(pairs) == len(e.out) and all([a.terms == b.terms and [s for _, s in a.terms] == [1] for a, b in pairs])


def _on_diagonals(c: Coefficients, entries: Entries, found: list[int], count: int, shape: tuple[int, int]) -> Structure:
    full = min(shape)
    if found == [0]:
        whole_range = sum([sparse_size(c, e) for e in entries]) == full == max(shape)
        if whole_range and len(entries) == 1 and not entries[0].factors and injective(entries[0].out, entries[0].outer):
            return Structure("identity", _times(entries[0].scale, "identity", "the identity"), count, full)
        return Structure("diagonal", "diagonal", count, min(full, count))
    low, high = min(found), max(found)
    if set(found) <= {-1, 0, 1} and shape[0] == shape[1] and 0 in found:
        return Structure("banded", "tridiagonal" if len(found) == 3 else "bidiagonal", count, full)
    if len(found) == 1:
        return Structure("banded", f"one diagonal, at {low:+,d}", count, full)
    where = f"{-low:,} below and {high:,} above"
    if low > 0:
        where = f"{low:,} to {high:,} above"
    elif high < 0:
        where = f"{-high:,} to {-low:,} below"
    return Structure("banded", f"{len(found)} diagonals, {where} the main one", count, full)


def _in_blocks(c: Coefficients, entries: Entries, axes: Pairs, shapes: Sequence[Shape]) -> tuple[str, str]:
    """Block-diagonal: for every value of the batch axes one matrix between the others."""
    shared: Any = list(zip(*axes, strict=True))
    n = math.prod([shapes[0][i] for i, _ in axes])
    labels = {labels_of(e.out[i])[0] for e in entries for i, _ in axes}

    def beside(side: Any, which: int) -> Any:
        return tuple([x for i, x in enumerate(side) if i not in shared[which]])

    inside: list[Entry] = []  # at one value of the batch labels
    for e in entries:
        factors = [f._replace(labels=tuple([k for k in f.labels if k not in labels])) for f in e.factors]
        inside.append(Entry(beside(e.out, 0), beside(e.inn, 1), tuple(factors), e.scale))
    rows, columns = beside(shapes[0], 0), beside(shapes[1], 1)
    words, shape = block_structure(c, inside, rows, columns).words, f"{math.prod(rows)}×{math.prod(columns)}"
    if not any([set(f.labels) & labels for e in entries for f in e.factors]):
        return "Kronecker", f"Kronecker product of the identity on {n:,} and one {shape} block ({words})"
    return "block-diagonal", f"block-diagonal: {n:,} blocks of {shape}, each {words}"


def parts(e: Entry) -> list[set[int]]:
    """The labels of the independent parts of an entry, in the order of the rows; none where some lack a side."""
    groups: list[set[int]] = [{k} for k in e.outer]
    for f in e.factors:
        touched = [g for g in groups if g & set(f.labels)]
        if touched or f.labels:
            groups = [g for g in groups if g not in touched] + [set(f.labels).union(*touched)]
    for m in (*e.out, *e.inn):  # labels that share an axis belong together
        touched = [g for g in groups if g & set(labels_of(m))]
        if len(touched) > 1:
            groups = [g for g in groups if g not in touched] + [set().union(*touched)]
    out, inn = distinct(e.out), distinct(e.inn)
    if not all([g & set(out) and g & set(inn) for g in groups]):
        return []
    return sorted(groups, key=lambda g: min([out.index(k) for k in g if k in out]))


def _listed(entries: Sequence[Entry], f: Facts, count: int, shape: tuple[int, int], full: int) -> Structure:
    e = entries[0]
    sides = [any([type(m) is IndexTable for m in side]) for side in (e.out, e.inn)]
    if len(entries) == 1 and f.constant and not f.left and not f.right and not all(sides):
        what = f"{'scatter' if sides[0] else 'gather'} of {count:,} numbers"
        return Structure("sparse", _times(e.scale, what, f"a {what}"), count, min(full, count))
    return _sparse("sparse", count, shape, min(full, count))


def _sparse(words: str, count: int, shape: tuple[int, int], rank: int) -> Structure:
    every = shape[0] * shape[1]
    if count == every:
        return Structure("dense", "dense", every, rank)
    return Structure("sparse", f"{words}, at most {count:,} of {every:,} numbers", count, rank)


def structure(v: Values, rows: Sequence[Shape], columns: Sequence[Shape]) -> Structure:
    """The structure of a map; of one between direct sums, block by block."""
    net, c = v.net, v.net.c
    height, width = sum([math.prod(s) for s in rows]), sum([math.prod(s) for s in columns])
    if not net.simple:
        from .sparsity import few

        flat = thinned(net)
        if not flat.simple and (count := few(flat)) is not None:
            return _sparse("sparse", count, (height, width), min(height, width, count))
        if not flat.simple or 4 * sum([sparse_size(c, e) for e in flat.entries]) > height * width:
            return _product(net, height, width)
        net = flat
    if len(rows) == len(columns) == 1:
        return block_structure(c, net.block(0, 0), rows[0], columns[0])
    grid = [[block_structure(c, net.block(i, j), r, s) for j, s in enumerate(columns)] for i, r in enumerate(rows)]
    count = sum([s.nonzeros for line in grid for s in line])
    rank = min(height, width, sum([s.rank for line in grid for s in line]))
    off = [s for i, line in enumerate(grid) for j, s in enumerate(line) if i != j and s.kind != "zero"]
    kind = "block-diagonal" if not off and len(rows) == len(columns) else "blocks"
    if count == 0:
        return Structure("zero", "zero", 0, 0)
    lines = [f"({i}, {j}): {s.words}" for i, line in enumerate(grid) for j, s in enumerate(line) if s.kind != "zero"]
    shown = lines if len(lines) <= 16 else [*lines[:12], f"… {len(lines) - 14} more", *lines[-2:]]
    return Structure(kind, f"{len(rows)}×{len(columns)} blocks; " + "; ".join(shown), count, rank)


def _product(net: Network, height: int, width: int) -> Structure:
    """A map with steps that are better left between: how many, and what they are called."""
    titles = sorted({_title(k.op) for k in net.kept.values()})
    through = f", with {', '.join(titles)}" if titles else ""
    between = {*net.hubs, *net.kept}
    words = f"a product left unmultiplied, {len(between)} step{'s' if len(between) > 1 else ''} between{through}"
    if len(between) == len(titles) == 1 and all([_plain(net.blocks[o]) for o in net.outputs]):  # nothing but that step
        words = titles[0]
    rank, past = min(height, width), any([a in net.inputs for o in net.outputs for a in net.blocks[o]])
    if len(between) == 1 and not past:  # all goes through one array
        rank = min(rank, *[math.prod(net.shapes[s]) for s in between])
    return Structure("product", words, height * width, rank)


def _plain(row: dict[int, list[Entry]]) -> bool:
    """Whether a row of blocks is one identity."""
    every = [e for es in row.values() for e in es]
    if len(every) != 1 or any([type(m) is IndexTable for e in every for m in (*e.out, *e.inn)]):
        return False
    return not every[0].factors and every[0].scale == 1.0 and every[0].out == every[0].inn


def _title(op: Any) -> str:
    """A step that has no entries, by name."""
    if isinstance(op, Reduction) and any([isinstance(r, Triangular) for r in op.relations]):
        return "running sums"
    return str(getattr(op, "title", "a step of its own"))
