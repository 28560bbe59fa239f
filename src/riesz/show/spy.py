"""Where the numbers of a linear map are: a picture of its matrix, from its entries, as text or with Matplotlib.

The matrix is cut into cells, those of each leaf of a direct sum apart, and the positions of the entries are counted in
them. Up to EXACT positions are counted once each, however many entries reach them; more than about WORK are sampled: no
cell is marked where there is nothing, but one with few numbers may be missed.
"""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import RieszError
from ..maps.linear_map import LinearMap
from ..maps.matrices.materialise import places
from ..maps.matrices.matrix_patterns import LeafPlace
from ..maps.normal_form import Entry, Sizes, distinct, size_of
from ..relations.index_algebra import Affine, IndexMap, Labels, flat_positions
from ..spaces.layout import Branch, build
from ..spaces.space import Space

EXACT, WORK = 1 << 18, 1 << 21
CELLS = 320
"""At most so many cells to a side with Matplotlib."""
WIDE, HIGH = 60, 30
"""The size of a picture in text, in characters."""
LONGEST = 16
"""Names of leaves are cut to this."""


class LeafCells(NamedTuple):
    """A leaf along one side: its name, its coordinates from `start`, and its cells from `first`."""

    name: str
    start: int
    size: int
    first: int
    cells: int

    def cell(self, at: Any) -> Any:
        """The cells of some coordinates of the leaf."""
        return self.first + at * self.cells // self.size

    @property
    def capacity(self) -> Any:
        """How many coordinates each cell has."""
        bounds = -(-np.arange(self.cells + 1) * self.size // self.cells)
        return np.diff(bounds)


class Picture(NamedTuple):
    """`share`: how full each cell is, 0 to 1; `known`: whether positions could be told."""

    share: Any
    rows: list[LeafCells]
    columns: list[LeafCells]
    known: bool


class Drawing(str):
    """A text that shows itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# -- counting ------------------------------------------------------------------------------------------------


def names(space: Space) -> list[str]:
    """A name for each leaf: the keys on the way to it."""

    def under(branch: Branch, parts: list[Any]) -> list[str]:
        if branch.tensor is not None:
            return parts[0]
        keys = branch.form.names if branch.form and branch.form.names else range(branch.arity)
        pairs = [(key, name) for key, part in zip(keys, parts, strict=True) for name in part]
        return [(f"{key}.{name}" if name else str(key))[:LONGEST] for key, name in pairs]

    return build(space.code, [[""] for _ in space.leaves], under)


def parts(space: Space, limit: int, dots: int = 1) -> list[LeafCells]:
    """The leaves along one side in at most `limit` characters of `dots` cells each; one part where they are many."""
    given = [(p.start, math.prod(p.shape)) for p in places(space.leaves)]
    filled = [(start, size) for start, size in given if size]
    total = space.dim
    if len(given) == 1 or len(filled) > limit // 4:
        return [LeafCells("", 0, total, 0, min(total, limit * dots))] if total else []
    called = [name for name, (_, size) in zip(names(space), given, strict=True) if size]
    found: list[LeafCells] = []
    first = 0
    for name, (start, size) in zip(called, filled, strict=True):
        share = size if total <= limit else 1 + (limit - len(filled)) * size // total
        found.append(LeafCells(name, start, size, first, min(size, share * dots)))
        first += found[-1].cells
    return found


def cells(L: LinearMap, limit: int) -> tuple[list[LeafCells], list[LeafCells]]:
    """Both sides, the longer one in at most `limit` cells, the shorter one in proportion but not too few."""
    longer = max(*L.shape, 1)
    high, wide = [max(-(-limit * n // longer), limit // 4) for n in L.shape]
    return parts(L.codomain, high), parts(L.domain, wide)


def picture(L: LinearMap, rows: list[LeafCells], columns: list[LeafCells]) -> Picture:
    """How full the cells of a matrix are."""
    shape = (sum([p.cells for p in rows]), sum([p.cells for p in columns]))
    v = L.flat
    if v is None:
        return Picture(np.ones(shape), rows, columns, False)
    net = v.net
    counts = np.zeros(shape)
    down, across = places(L.codomain.leaves), dict(zip(net.inputs, places(L.domain.leaves), strict=True))
    every = [(row, net.blocks.get(out, {}).items()) for out, row in zip(net.outputs, down, strict=True)]
    found = [(es, row, across[a]) for row, inside in every for a, es in inside if es]
    blocks = [(es, row, column) for es, row, column in found if math.prod(row.shape) and math.prod(column.shape)]
    exact = v.positions() <= EXACT
    work = WORK // max(sum([len(es) for es, _, _ in blocks]), 1)
    for es, row, column in blocks:
        sides = _Side(_part(rows, row), row), _Side(_part(columns, column), column)
        if exact:
            _counted(counts, es, sides, net.c.sizes)
        else:
            for e in es:
                _sampled(counts, e, sides, net.c.sizes, work)
    room = np.outer(*[np.concatenate([np.zeros(0), *[p.capacity for p in side]]) for side in (rows, columns)])
    return Picture(np.minimum(counts / np.maximum(room, 1), 1.0), rows, columns, True)


def _part(found: list[LeafCells], place: LeafPlace) -> LeafCells:
    """The part a leaf is in."""
    return next(p for p in found if p.start <= place.start < p.start + p.size)


class _Side(NamedTuple):
    """A leaf and the part it is in."""

    part: LeafCells
    leaf: LeafPlace

    def cell(self, at: Any) -> Any:
        """The cells of some coordinates of the leaf."""
        return self.part.cell(at + (self.leaf.start - self.part.start))


def _counted(counts: Any, es: list[Entry], sides: tuple[_Side, _Side], sizes: Sizes) -> None:
    """Add what some entries have in each cell, positions that several reach once."""
    shapes = [side.leaf.shape for side in sides]
    width = math.prod(shapes[1])
    found = [_chosen((e.out, e.inn), shapes, e.outer, sizes, EXACT)[0] for e in es]
    keys = np.unique(np.concatenate([down * width + across for down, across in found]))
    _add(counts, sides[0].cell(keys // width), sides[1].cell(keys % width), 1.0)


def _sampled(counts: Any, e: Entry, sides: tuple[_Side, _Side], sizes: Sizes, work: int) -> None:
    """Add about what an entry has in each cell, from `work` positions; a full rectangle is a product of sides."""
    maps, ends = (e.out, e.inn), (distinct(e.out), distinct(e.inn))
    if set(ends[0]) & set(ends[1]):
        (down, across), weight = _chosen(maps, [side.leaf.shape for side in sides], e.outer, sizes, work)
        _add(counts, sides[0].cell(down), sides[1].cell(across), weight)
        return
    lines: list[Any] = []
    for side, m, labels, n in zip(sides, maps, ends, counts.shape, strict=True):
        (at,), weight = _chosen([m], [side.leaf.shape], labels, sizes, work)
        lines.append(weight * np.bincount(side.cell(at), minlength=n))
    counts += np.outer(*lines)


def _add(counts: Any, down: Any, across: Any, weight: float) -> None:
    flat = down * counts.shape[1] + across
    counts += weight * np.bincount(flat, minlength=counts.size).reshape(counts.shape)


def _chosen(
    sides: Sequence[Sequence[IndexMap]], boxes: Sequence[tuple[int, ...]], labels: Labels, sizes: Sizes, work: int
) -> tuple[list[Any], float]:
    """Flat positions in each box at all values of the labels, or at `work` random ones, and what each stands for."""
    total = size_of(labels, sizes)
    if total <= work:
        box = [sizes[k] for k in labels]
        positions = [flat_positions(m, b, labels, sizes) for m, b in zip(sides, boxes, strict=True)]
        return [np.broadcast_to(p, box).reshape(-1) for p in positions], 1.0
    rng = np.random.default_rng(0)
    drawn = {k: rng.integers(0, sizes[k], work) for k in labels}
    found: list[Any] = []
    for maps, box in zip(sides, boxes, strict=True):
        at: Any = np.zeros(work, np.intp)
        for m, n in zip(maps, box, strict=True):
            if isinstance(m, Affine):
                at = at * n + sum([s * drawn[k] for k, s in m.terms], np.intp(m.offset))
            else:
                at = at * n + m.array[tuple([drawn[k] for k in m.labels])]
        found.append(at)
    return found, total / work


# -- as text -------------------------------------------------------------------------------------------------


def title(L: LinearMap, known: bool = True) -> str:
    """Shape and structure in a line; of a direct sum only how many blocks there are."""
    several = len(L.domain.leaves) > 1 or len(L.codomain.leaves) > 1
    words = str(L.structure).partition("; ")[0] if several else str(L.structure)
    return f"{L.shape[0]:,} × {L.shape[1]:,}, {words}" + ("" if known else "; dense or unknown")


def spy_text(L: LinearMap) -> Drawing:
    """A picture of at most 60 × 30 characters: a square for each number, or a braille dot for each cell."""
    if not all(L.shape):
        return Drawing(f"{title(L)}\n(nothing to see: no rows or no columns)")
    rows, columns = (parts(space, HIGH) for space in (L.codomain, L.domain))
    high, wide = L.shape[0] + len(rows) - 1, 2 * L.shape[1] - 1 + 2 * len(columns)
    small = max(*L.shape, high) <= HIGH and wide <= WIDE
    if not small:
        rows = parts(L.codomain, HIGH + 1 - len(rows), 4)
        columns = parts(L.domain, WIDE + 1 - len(parts(L.domain, WIDE)), 2)
    seen = picture(L, rows, columns)
    grid = [[_squares(b, seen.known) if small else _braille(b, seen.known) for b in line] for line in _grid(seen)]
    widths = [len(block[0]) for block in grid[0]]
    margin = max([len(p.name) for p in rows])
    pad = " " * (margin + 1) if margin else ""

    def rule(left: str, cross: str, right: str) -> str:
        return pad + left + cross.join(["─" * w for w in widths]) + right

    lines = [title(L, seen.known)]
    if any([p.name for p in columns]):
        called = [p.name[:w].ljust(w) for p, w in zip(columns, widths, strict=True)]
        lines.append((pad + " " + " ".join(called)).rstrip())
    lines.append(rule("┌", "┬", "┐"))
    for i, (part, blocks) in enumerate(zip(rows, grid, strict=True)):
        if i:
            lines.append(rule("├", "┼", "┤"))
        for k, texts in enumerate(zip(*blocks, strict=True)):
            name = (part.name if k == 0 else "").rjust(margin) + " " if margin else ""
            lines.append(name + "│" + "│".join(texts) + "│")
    return Drawing("\n".join([*lines, rule("└", "┴", "┘")]))


def _grid(seen: Picture) -> list[list[Any]]:
    """The cells, leaf by leaf."""
    rows, columns = [[slice(p.first, p.first + p.cells) for p in side] for side in (seen.rows, seen.columns)]
    return [[seen.share[r, c] > 0 for c in columns] for r in rows]


def _squares(cells: Any, known: bool) -> list[str]:
    signs = ("·", "■" if known else "░")
    return [" " + " ".join([signs[int(x)] for x in row]) + " " for row in cells]


def _braille(cells: Any, known: bool) -> list[str]:
    """Two by four cells to a character."""
    height, width = -(-cells.shape[0] // 4), -(-cells.shape[1] // 2)
    if not known:
        return ["░" * width] * height
    whole = np.zeros((4 * height, 2 * width), np.int64)
    whole[: cells.shape[0], : cells.shape[1]] = cells
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    codes = 0x2800 + (whole.reshape(height, 4, width, 2) * bits[:, None, :]).sum(axis=(1, 3))
    return ["".join([chr(c) for c in row]) for row in codes.tolist()]


# -- with Matplotlib -----------------------------------------------------------------------------------------


def shade(share: Any) -> Any:
    """How dark a cell is drawn: a single number among many can still be seen."""
    return np.where(share > 0, 0.45 + 0.55 * np.cbrt(share), 0.0)


def spy_axes(L: LinearMap, ax: Any = None, markersize: float | None = None, heading: str | None = None) -> Any:
    """The picture on Matplotlib axes, with lines between the leaves of direct sums; `markersize`: markers, no cells."""
    if ax is None:
        try:
            pyplot: Any = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            advice = "pip install 'riesz[plot]'; L.spy(text=True) needs nothing"
            raise RieszError(f"L.spy() draws with Matplotlib, which is not installed: {advice}") from None
        ax = pyplot.subplots()[1]
    rows, columns = cells(L, CELLS)
    seen = picture(L, rows, columns)
    height, width = seen.share.shape
    if markersize is None and seen.share.size:
        dark = shade(seen.share)
        colours, most = ("Blues", 1.2) if seen.known else ("Greys", 3.0)
        ax.imshow(np.where(dark > 0, dark, np.nan), cmap=colours, vmin=0.0, vmax=most)
    elif seen.share.size:
        at = np.nonzero(seen.share)
        ax.plot(at[1], at[0], "s", markersize=markersize, color="tab:blue" if seen.known else "lightgray")
        ax.set_aspect("equal")
    ax.set_xlim(-0.5, max(width, 1) - 0.5)
    ax.set_ylim(max(height, 1) - 0.5, -0.5)
    if max(height, width) > 16 * max(min(height, width), 1):
        ax.set_aspect("auto")
    for axis, found, line in ((ax.xaxis, columns, ax.axvline), (ax.yaxis, rows, ax.axhline)):
        for part in found[1:]:
            line(part.first - 0.5, color="0.4", linewidth=0.6)
        _ticks(axis, found)
    ax.xaxis.tick_top()
    own = "\n".join(textwrap.wrap(title(L, seen.known), 60)[:3])
    ax.set_title(own if heading is None else heading, fontsize="medium")
    return ax


def _ticks(axis: Any, found: list[LeafCells]) -> None:
    """Names of leaves in their middles; for a single leaf, coordinates."""
    if any([p.name for p in found]):
        axis.set_ticks([p.first + (p.cells - 1) / 2 for p in found], [p.name for p in found])
        axis.set_tick_params(length=0)
    elif found:
        (p,) = found
        wanted = np.unique(np.linspace(0, p.cells - 1, min(p.cells, 5)).astype(int))
        axis.set_ticks(wanted, [f"{-(-k * p.size // p.cells):,}" for k in wanted.tolist()])
