"""Which solver fits a linear map: chosen by its structure, never by trial.

The structure is that of every point, so the choice is made once for a network and kept with it: a *way* makes the
solver from the numbers at a point. Diagonal, banded, block-diagonal, Kronecker products and sums, a base plus low rank;
else sparse if it is sparse, dense if it is small, and otherwise iterations that only apply it. Maps that are not square
are solved in the least-squares sense.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ...errors import SolveError, SpaceError
from ...ops.op import Reduction
from ...relations import Triangular
from ...relations.index_algebra import Affine, along, flat_map, labels_of
from ...runtime import tuning
from ..matrices.materialise import block_part, block_positions
from ..matrices.parts import Part
from ..normal_form.coefficients import Coefficients
from ..normal_form.entries import Entry
from ..normal_form.index_maps import distinct
from ..normal_form.network import Network
from ..normal_form.network_values import Values
from ..normal_form.structure import batch_axes, facts, offsets, parts
from . import composite
from .factorised import Banded, BlockDiagonalSolver, Dense, DenseLeastSquares, DiagonalSolver, Solver, care

if TYPE_CHECKING:
    from ..linear_map import LinearMap

Shape = tuple[int, ...]
Way = Callable[[Values], Solver | None]
METHODS = ("auto", "dense", "sparse", "iterative", "cg", "minres", "gmres", "lsmr")
OPTIONS = ("tolerance", "max_iterations", "preconditioner", "checkpoint", "every")


def solver_of(L: LinearMap, method: str = "auto", **options: Any) -> Solver:
    """A factorised solver for a map, or one that iterates."""
    if method not in METHODS:
        raise SpaceError(f"method={method!r}: expected one of {', '.join(METHODS)}")
    if unknown := [k for k in options if k not in OPTIONS]:
        raise SpaceError(f"solving takes no {', '.join(unknown)}: iterations take {', '.join(OPTIONS)}")
    if options and method in ("dense", "sparse"):
        whose = f"{', '.join(OPTIONS)} belong to iterations"
        raise SpaceError(f"method={method!r} takes no {', '.join(options)}: {whose}")
    m, n = L.shape
    if method == "dense" or (method == "auto" and min(m, n) == 0):
        return _dense(L)
    if method == "sparse":
        return _sparse(L)
    if method != "auto":
        return _krylov(L, None if method == "iterative" else method, **options)
    if m != n:
        small = max(m, n) <= tuning.DENSE_UNKNOWNS
        return _dense(L) if small else _sparse_least_squares(L) or _krylov(L, "lsmr", **options)
    v = L.flat
    if v is not None and (found := _first(ways_of(L), v)) is not None:
        return found
    if (positions := L.positions) is not None and positions <= min(n * n // 8, 64 * n):
        from .sparse import fills

        if not fills(L.stored()):
            return _sparse(L)
    found = _steps(L.values) if v is None else None
    return found or (_dense(L) if n <= tuning.DENSE_UNKNOWNS else _krylov(L, None, **options))


def ways_of(L: LinearMap) -> list[Way]:
    """The ways to solve with a map by structure, for all points; none where hubs are left."""
    v = L.flat
    if v is None:
        return []
    rows, columns = [leaf.shape for leaf in L.codomain.leaves], [leaf.shape for leaf in L.domain.leaves]
    return v.net.known(("ways", *rows, None, *columns), lambda: _between_leaves(v.net, rows, columns))


def _dense(L: LinearMap) -> Solver:
    return Dense(L.to_dense()) if L.shape[0] == L.shape[1] else DenseLeastSquares(L.to_dense())


def _sparse(L: LinearMap) -> Solver:
    from .sparse import choose_sparse

    if L.shape[0] != L.shape[1]:
        due = "a sparse factorisation needs as many rows as columns"
        raise SpaceError(f"{due}; this map has shape {L.shape}: method='lsmr', or L.gram()")
    symmetric = True if "symmetric" in L.facts else None
    return choose_sparse(L.stored(), symmetric, [leaf.size for leaf in L.domain.leaves])


def _sparse_least_squares(L: LinearMap) -> Solver | None:
    """Normal equations where they are sparse and not singular."""
    from .sparse import SparseLeastSquares

    positions, few = L.positions, min(L.shape)
    if positions is None or positions > 64 * max(L.shape):
        return None
    matrix = L.stored()
    lines = np.diff(matrix.indptr) if L.shape[0] >= L.shape[1] else np.bincount(matrix.indices, minlength=L.shape[1])
    if (lines.astype(float) ** 2).sum() > 64 * (few + positions):
        return None
    try:
        return SparseLeastSquares(matrix)
    except SolveError:  # of lower rank, or nearly: iterations take what there is
        return None


def _krylov(L: LinearMap, method: str | None, **options: Any) -> Solver:
    from .krylov import Krylov

    m, n = L.shape
    symmetric = "symmetric" in L.facts and m == n
    if "preconditioner" not in options and m == n and symmetric and L.positions is not None:
        diagonal = L.diagonal()
        if (diagonal > 0).all():
            options["preconditioner"] = DiagonalSolver(diagonal)
    options |= {"symmetric": symmetric, "definite": "definite" in L.facts, "method": method, "dtype": L.dtype}
    return Krylov(L.matvec, L.rmatvec, n, m, **options)


# -- by structure --------------------------------------------------------------------------------------------


def _first(ways: Sequence[Way], v: Values) -> Solver | None:
    """The solver at a point by the first way that has one."""
    for way in ways:
        found = way(v)
        if found is not None:
            return found
    return None


def _each(every: Sequence[Sequence[Way]], make: Callable[[list[Solver]], Solver]) -> Way:
    """What is made of a solver for each part; none where a part has none."""

    def way(v: Values) -> Solver | None:
        found: list[Solver] = []
        for ways in every:
            one = _first(ways, v)
            if one is None:
                return None
            found.append(one)
        return make(found)

    return way


def _between_leaves(net: Network, rows: list[Shape], columns: list[Shape]) -> list[Way]:
    """The ways to solve with a map without hubs, for all points."""
    if len(rows) == len(columns) == 1:
        return _between(net, net.block(0, 0), rows[0], columns[0])
    if len(rows) != len(columns) or any([math.prod(a) != math.prod(b) for a, b in zip(rows, columns, strict=True)]):
        return []
    if any([net.block(i, j) for i in range(len(rows)) for j in range(len(columns)) if i != j]):
        return []
    every = [_between(net, net.block(i, i), r, c) for i, (r, c) in enumerate(zip(rows, columns, strict=True))]
    return [_each(every, composite.SeparateSolver)] if all(every) else []


def _steps(v: Values) -> Solver | None:
    """A chain of square steps between one array and another, each with a solver of its own."""
    net = v.net
    shapes = [net.shapes[s] for s in (*net.inputs, *net.order)]
    several = any([bool(s) and isinstance(cast(Any, s[0]), tuple) for s in shapes])  # of results, as those of a loop
    if len(net.inputs) != 1 or len(net.outputs) != 1 or several or len({math.prod(s) for s in shapes}) > 1:
        return None
    chain = [net.inputs[0], *net.order]
    if any([net.sources(s) != [a] for a, s in zip(chain, net.order, strict=False)]):
        return None
    members: list[Solver] = []
    for at, node in zip(chain, net.order, strict=False):
        if node in net.kept:
            one = _running_sums(net.kept[node].op, net.shapes[at], v.dtype)
        else:
            one = _first(_between(net, net.blocks[node][at], net.shapes[node], net.shapes[at]), v)
        if one is None:
            return None
        members.append(one)
    return composite.ProductSolver(members)


def _running_sums(op: Any, shape: Shape, dtype: Any) -> Solver | None:
    """The solver of a step that is running sums."""
    relation = op.relations[0] if isinstance(op, Reduction) else None
    if not isinstance(relation, Triangular) or relation.strict:
        return None
    box = math.prod(shape[: op.axis]), shape[op.axis], math.prod(shape[op.axis + 1 :])
    return composite.RunningSums(box, not relation.lower, dtype)


def _between(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> list[Way]:
    """The ways to solve with a square map between two leaves, the best first; none where no structure helps."""
    n = math.prod(row)
    if n != math.prod(column):
        return []
    if not n:
        return [lambda v: DiagonalSolver(np.zeros(0, v.dtype))]
    if not entries:
        return [lambda v: _zero(n, v.dtype)]
    ways = _by_structure(net, entries, row, column)
    return [_kept(ways)] if ways and net.constant(entries) else ways


def _zero(n: int, dtype: Any) -> Solver:
    if care() != "parts":
        raise SolveError(f"the map is zero: no right-hand side other than 0 of {n:,} numbers can be reached")
    return DiagonalSolver(np.zeros(n, dtype))


def _kept(ways: Sequence[Way]) -> Way:
    """A solver that is the same at every point, made once for each precision."""
    known: dict[Any, Solver | None] = {}

    def way(v: Values) -> Solver | None:
        key = v.dtype, care()
        if key not in known:
            known[key] = _first(ways, v)
        return known[key]

    return way


def _by_structure(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> list[Way]:
    n = math.prod(row)
    lines = offsets(net.c, entries, row, column)
    width = n if lines is None else max(lines) - min(lines)
    if lines is not None and (lines == [0] or width <= 8):
        return [_banded(net, entries, lines, row, column)]
    found = [_kronecker_sum(net, entries, row, column)]
    if lines is not None and width <= min(n // 4, 256, 16 * len(lines)):  # few lines far apart: a sparse matrix
        found.append(_banded(net, entries, lines, row, column))
    found += [way(net, entries, row, column) for way in (_kronecker, _blocks, _low_rank)]
    return [way for way in found if way is not None]


def band_part(
    net: Network, entries: Sequence[Entry], lines: list[int], row: Shape, column: Shape
) -> tuple[Part, int, int]:
    """The diagonals as rows, in LAPACK's order: number j of a row belongs to column j; how many are below and above."""
    upper, lower = max(max(lines), 0), max(-min(lines), 0)
    placed: list[tuple[Entry, tuple[Affine, Affine]]] = []
    for e in entries:
        down, across = flat_map(e.out, row), flat_map(e.inn, column)
        assert down is not None and across is not None
        placed.append((e, (Affine(upper - across.offset + down.offset), across)))
    return Part(net.c, placed, (lower + upper + 1, math.prod(column))), lower, upper


def _banded(net: Network, entries: Sequence[Entry], lines: list[int], row: Shape, column: Shape) -> Way:
    band, lower, upper = band_part(net, entries, lines, row, column)

    def way(v: Values) -> Solver:
        return DiagonalSolver(band.at(v)[0]) if lines == [0] else Banded(band.at(v), lower, upper)

    return way


def _matrix(c: Coefficients, entries: Sequence[Entry], row: Shape, column: Shape) -> Part:
    """Some entries as a matrix, with the axes of rows and columns apart."""
    return Part(c, [(e, (*e.out, *e.inn)) for e in entries], (*row, *column))


def _any(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> list[Way]:
    """The ways to solve with a part of a map: by structure, or dense if it is small."""
    n = math.prod(row)
    matrix = _matrix(net.c, entries, row, column)

    def dense(v: Values) -> Solver:
        return Dense(matrix.at(v).reshape(n, n))

    return [*_between(net, entries, row, column), *([dense] if n <= tuning.DENSE_UNKNOWNS else [])]


class Factors(NamedTuple):
    """The factors of a Kronecker product: an entry each with its rows and columns, and the axes in their order."""

    entries: list[tuple[Entry, Shape, Shape]]
    down: list[int]
    across: list[int]


def factors_of(entries: Sequence[Entry], row: Shape, column: Shape) -> Factors | None:
    """One entry in independent parts, each square."""
    if len(entries) != 1:
        return None
    e = entries[0]
    groups = parts(e)
    if len(groups) < 2:
        return None
    found: list[tuple[Entry, Shape, Shape]] = []
    down: list[int] = []
    across: list[int] = []
    for k, g in enumerate(groups):
        mine, yours = [[i for i, m in enumerate(side) if set(labels_of(m)) & g] for side in (e.out, e.inn)]
        factors = [f for f in e.factors if f.labels and set(f.labels) <= g]
        scalars = [f for f in e.factors if not f.labels] if k == 0 else []
        out, inn = tuple([e.out[i] for i in mine]), tuple([e.inn[j] for j in yours])
        part = Entry(out, inn, (*factors, *scalars), e.scale if k == 0 else 1.0)
        tall, wide = tuple([row[i] for i in mine]), tuple([column[j] for j in yours])
        if math.prod(tall) != math.prod(wide):
            return None
        found.append((part, tall, wide))
        down += mine
        across += yours
    rest = [i for i in range(len(row)) if i not in down], [j for j in range(len(column)) if j not in across]
    if any([row[i] != 1 for i in rest[0]]):  # all in one line of an axis
        return None
    return Factors(found, [*down, *rest[0]], [*across, *rest[1]])


def _kronecker(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> Way | None:
    """A Kronecker product: factor by factor."""
    found = factors_of(entries, row, column)
    if found is None:
        return None
    every = [_any(net, [part], tall, wide) for part, tall, wide in found.entries]
    sides = row, found.down, column, found.across
    return _each(every, lambda solvers: composite.Axes(composite.Kronecker(*solvers), *sides))


def _kronecker_sum(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> Way | None:
    """A ⊗ I + I ⊗ B: every entry acts along one axis; if it is one axis for all, I ⊗ A ⊗ I."""
    if row != column or len(row) < 2 or len(entries) < 2:
        return None
    per: dict[int, list[Entry]] = {i: [] for i, n in enumerate(row) if n != 1}
    same: list[Entry] = []
    for e in entries:
        still = {i for i, j in batch_axes(net.c, [e], row, column) if i == j}
        labels = {labels_of(e.out[i])[0] for i in still}
        if any([set(f.labels) & labels for f in e.factors]):
            return None
        moving = [i for i in per if i not in still]
        if len(moving) > 1:
            return None
        if moving:
            per[moving[0]].append(Entry((e.out[moving[0]],), (e.inn[moving[0]],), e.factors, e.scale))
        else:
            same.append(e)
    moved = [i for i, es in per.items() if es]
    if len(per) < 2 or not moved:
        return None
    first = moved[0]
    per[first] += [Entry((e.out[first],), (e.inn[first],), e.factors, e.scale) for e in same]
    if len(moved) == 1:  # I ⊗ A ⊗ I
        ones: list[Way] = [lambda v, n=n: DiagonalSolver(np.ones(n, v.dtype)) for n in row]
        ways = _any(net, per[first], (row[first],), (row[first],))
        every = [ways if i == first else [one] for i, one in enumerate(ones)]
        return _each(every, lambda solvers: composite.Kronecker(*solvers))
    if max(row) > tuning.DENSE_UNKNOWNS:
        return None
    summands = [_matrix(net.c, es, (row[i],), (row[i],)) for i, es in per.items()]

    def way(v: Values) -> Solver | None:
        matrices = [one.at(v) for one in summands]
        plain = all([np.array_equal(a, a.T) for a in matrices])
        return composite.KroneckerSum(*matrices) if plain or len(matrices) == 2 else None

    return way


def _blocks(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> Way | None:
    """Block-diagonal along the axes that every entry shares."""
    axes = batch_axes(net.c, entries, row, column)
    if not axes:
        return None
    rows, columns = block_positions(axes, row, column)
    (number, size), n = rows.shape, math.prod(row)
    if not np.array_equal(rows, columns) or number * size * size > 1 << 27:
        return None
    place = np.empty(n, np.intp)
    place[rows.reshape(-1)] = np.arange(n)
    straight = np.array_equal(place, np.arange(n))
    blocks = block_part(net.c, entries, axes, row, column)

    def way(v: Values) -> Solver:
        inner = BlockDiagonalSolver(blocks.at(v).reshape(number, size, size))
        return inner if straight else composite.Reordered(inner, place)

    return way


class LowRank(NamedTuple):
    """Entries that are a base, and pairs U, V of parts with their ranks: base + Σ U Vᵀ."""

    base: list[Entry]
    pairs: list[tuple[Part, Part]]
    ranks: list[int]


def low_rank_of(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> LowRank | None:
    """A base plus products through few labels."""
    base: list[Entry] = []
    pairs: list[tuple[Part, Part]] = []
    ranks: list[int] = []
    for e in entries:
        f = facts(net.c, e)
        if f.both or (not f.left and not f.right):
            base.append(e)
        else:
            found = _split(net.c, e, row, column)
            if found is None:
                return None
            ranks.append(found[0])
            pairs.append(found[1:])
    return LowRank(base, pairs, ranks) if base and pairs and 4 * sum(ranks) <= math.prod(row) else None


def _low_rank(net: Network, entries: Sequence[Entry], row: Shape, column: Shape) -> Way | None:
    """A base with a solver of its own plus low rank: Woodbury."""
    found = low_rank_of(net, entries, row, column)
    if found is None:
        return None
    base, pairs, ranks = found
    n, sides = math.prod(row), list(zip(*pairs, strict=True))
    ways = _between(net, base, row, column)

    def way(v: Values) -> Solver | None:
        try:
            inner = _first(ways, v)
        except SolveError:  # a singular base says nothing about the sum
            return None
        if inner is None:
            return None
        U, V = [[part.at(v).reshape(n, k) for part, k in zip(side, ranks, strict=True)] for side in sides]
        left, right = [side[0] if len(side) == 1 else np.concatenate(side, axis=1) for side in (U, V)]
        try:
            return composite.LowRankPlus(inner, left, right)
        except SolveError:  # a base that is nearly singular costs it all digits, whatever the sum is
            if n > tuning.DENSE_UNKNOWNS:
                raise
            return None

    return way


def _split(c: Coefficients, e: Entry, row: Shape, column: Shape) -> tuple[int, Part, Part] | None:
    """The rank of an entry U Vᵀ whose factors do not go across, U and V."""
    left, right = set(distinct(e.out)), set(distinct(e.inn))
    near = [f for f in e.factors if set(f.labels) & right]
    far = [f for f in e.factors if f not in near]
    if any([set(f.labels) & left for f in near]):
        return None
    beyond = dict.fromkeys([k for f in near for k in f.labels if k not in right])
    inner = tuple([k for k in beyond if any([k in g.labels for g in far])])
    ends, sizes = tuple([along(k) for k in inner]), tuple([c.sizes[k] for k in inner])
    U = _matrix(c, [Entry(e.out, ends, tuple(far), e.scale)], row, sizes)
    V = _matrix(c, [Entry(e.inn, ends, tuple(near))], column, sizes)
    return math.prod(sizes), U, V
