"""Which solver fits a linear map: chosen by its structure, never by trial.

Diagonal, banded, block-diagonal, Kronecker products and sums, a base plus low rank; else sparse if it is sparse, dense if it is small, and otherwise
iterations that only apply it. Maps that are not square are solved in the least-squares sense.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SolveError, SpaceError
from ..ops import Reduction
from ..relations import Triangular
from ..relations.spans import Affine
from .entries import Entry
from .indexing import distinct, flat_map, labels_of, size_of
from .materialise import add, blocks_of
from .structure import batch_axes, facts, offsets, parts
from .values import Values

if TYPE_CHECKING:
    from .linear_map import LinearMap
    from .solvers import Solver

Shape = tuple[int, ...]
METHODS = ("auto", "dense", "sparse", "iterative", "cg", "minres", "gmres", "lsmr")
OPTIONS = ("tolerance", "max_iterations", "preconditioner")
SMALL = 2048
"""Up to so many unknowns a matrix without better structure is factorised as it is."""


def solver_of(L: LinearMap, method: str = "auto", **options: Any) -> Solver:
    """A factorised solver for a map, or one that iterates."""
    if method not in METHODS:
        raise SpaceError(f"method={method!r}: expected one of {', '.join(METHODS)}")
    if unknown := [k for k in options if k not in OPTIONS]:
        raise SpaceError(f"solving takes no {', '.join(unknown)}: iterations take {', '.join(OPTIONS)}")
    if options and method in ("dense", "sparse"):
        raise SpaceError(f"method={method!r} takes no {', '.join(options)}: tolerance, max_iterations and preconditioner belong to iterations")
    from .sparse_solvers import fills

    m, n = L.shape
    if method == "dense" or (method == "auto" and min(m, n) == 0):
        return _dense(L)
    if method == "sparse":
        return _sparse(L)
    if method != "auto":
        return _krylov(L, None if method == "iterative" else method, **options)
    if m != n:
        return _dense(L) if max(m, n) <= SMALL else _sparse_least_squares(L) or _krylov(L, "lsmr", **options)
    v = L.flat
    if v is not None:
        found = _structured(L, v)
        if found is not None:
            return found
        if v.positions() <= n * n // 8 and v.positions() <= 64 * n and not fills(L.to_sparse()):
            return _sparse(L)
    found = _steps(L.values) if v is None else None
    return found or (_dense(L) if n <= SMALL else _krylov(L, None, **options))


def _dense(L: LinearMap) -> Solver:
    from .solvers import Dense, DenseLeastSquares

    return Dense(L.to_dense()) if L.shape[0] == L.shape[1] else DenseLeastSquares(L.to_dense())


def _sparse(L: LinearMap) -> Solver:
    from .sparse_solvers import choose_sparse

    if L.shape[0] != L.shape[1]:
        raise SpaceError(f"a sparse factorisation needs as many rows as columns; this map has shape {L.shape}: method='lsmr', or L.gram()")
    symmetric = True if "symmetric" in L.facts else None
    return choose_sparse(L.to_sparse(), symmetric, [leaf.size for leaf in L.domain.leaves])


def _sparse_least_squares(L: LinearMap) -> Solver | None:
    """Normal equations where they are sparse and not singular."""
    from .sparse_solvers import SparseLeastSquares

    v, few = L.flat, min(L.shape)
    if v is None or v.positions() > 64 * max(L.shape):
        return None
    matrix = L.to_sparse()
    lines = np.diff(matrix.indptr) if L.shape[0] >= L.shape[1] else np.bincount(matrix.indices, minlength=L.shape[1])
    if (lines.astype(float) ** 2).sum() > 64 * (few + v.positions()):
        return None
    try:
        return SparseLeastSquares(matrix)
    except SolveError:  # of lower rank, or nearly: iterations take what there is
        return None


def _krylov(L: LinearMap, method: str | None, **options: Any) -> Solver:
    from .krylov import Krylov
    from .solvers import Diagonal

    m, n = L.shape
    symmetric = "symmetric" in L.facts and m == n
    if "preconditioner" not in options and m == n and symmetric and L.flat is not None:
        diagonal = L.diagonal()
        if (diagonal > 0).all():
            options["preconditioner"] = Diagonal(diagonal)
    options |= {"symmetric": symmetric, "definite": "definite" in L.facts, "method": method, "dtype": L.dtype}
    return Krylov(L.matvec, L.rmatvec, n, m, **options)


# -- by structure --------------------------------------------------------------------------------------------


def _structured(L: LinearMap, v: Values) -> Solver | None:
    rows, columns = [leaf.shape for leaf in L.codomain.leaves], [leaf.shape for leaf in L.domain.leaves]
    if len(rows) == len(columns) == 1:
        return _between(v, v.net.block(0, 0), rows[0], columns[0])
    if len(rows) != len(columns) or any([math.prod(a) != math.prod(b) for a, b in zip(rows, columns, strict=True)]):
        return None
    if any([v.net.block(i, j) for i in range(len(rows)) for j in range(len(columns)) if i != j]):
        return None
    found = [_between(v, v.net.block(i, i), r, c) for i, (r, c) in enumerate(zip(rows, columns, strict=True))]
    if any([s is None for s in found]):
        return None
    from .composite_solvers import Apart

    return Apart([s for s in found if s is not None])


def _steps(v: Values) -> Solver | None:
    """A chain of square steps between one array and another, each with a solver of its own."""
    from .composite_solvers import RunningSums, Steps

    net = v.net
    if len(net.inputs) != 1 or len(net.outputs) != 1 or len({math.prod(net.shapes[s]) for s in (*net.inputs, *net.order)}) > 1:
        return None
    chain = [net.inputs[0], *net.order]
    sources = [[a for moves, a in net.kept[s].args if moves] if s in net.kept else list(net.blocks[s]) for s in net.order]
    if sources != [[s] for s in chain[:-1]]:
        return None
    members: list[Solver] = []
    for at, node in zip(chain, net.order, strict=False):
        if node not in net.kept:
            one = _between(v, net.blocks[node][at], net.shapes[node], net.shapes[at])
        elif isinstance(op := net.kept[node].op, Reduction) and isinstance(r := op.relations[0], Triangular) and not r.strict:
            shape = net.shapes[at]
            one = RunningSums((math.prod(shape[: op.axis]), shape[op.axis], math.prod(shape[op.axis + 1 :])), not r.lower, v.dtype)
        else:
            return None
        if one is None:
            return None
        members.append(one)
    return Steps(members)


def _between(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """The solver of a square map between two leaves; None where no structure helps."""
    from .solvers import Diagonal

    c, n = v.net.c, math.prod(row)
    if n != math.prod(column):
        return None
    if not entries:
        raise SolveError(f"the map is zero: no right-hand side other than 0 of {n:,} numbers can be reached")
    lines = offsets(c, entries, row, column)
    if lines is not None and lines == [0]:
        return Diagonal(_band(v, entries, lines, row, column)[0])
    width = n if lines is None else max(lines) - min(lines)
    if lines is not None and width <= 8:
        return _banded(v, entries, lines, row, column)
    found = _kronecker_sum(v, entries, row, column)
    if found is not None:
        return found
    if lines is not None and width <= min(n // 4, 256):
        return _banded(v, entries, lines, row, column)
    for way in (_kronecker, _blocks, _low_rank):
        found = way(v, entries, row, column)
        if found is not None:
            return found
    return None


def _band(v: Values, entries: Sequence[Entry], lines: list[int], row: Shape, column: Shape) -> Any:
    """The diagonals as rows, in LAPACK's order: number j of a row belongs to column j."""
    upper = max(max(lines), 0)
    lower = max(-min(lines), 0)
    total = np.zeros((lower + upper + 1, math.prod(column)), v.dtype)
    for e in entries:
        down, across = flat_map(e.out, row), flat_map(e.inn, column)
        assert down is not None and across is not None
        add(v, e, total, (Affine(upper - across.offset + down.offset), across))
    return total


def _banded(v: Values, entries: Sequence[Entry], lines: list[int], row: Shape, column: Shape) -> Solver:
    from .solvers import Banded

    return Banded(_band(v, entries, lines, row, column), max(-min(lines), 0), max(max(lines), 0))


def _dense_part(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Any:
    total = np.zeros((*row, *column), v.dtype)
    for e in entries:
        add(v, e, total, (*e.out, *e.inn))
    return total.reshape(math.prod(row), math.prod(column))


def _any(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """A solver for a part of a map: by structure, or dense if it is small."""
    from .solvers import Dense

    found = _between(v, entries, row, column)
    if found is None and math.prod(row) <= SMALL:
        return Dense(_dense_part(v, entries, row, column))
    return found


def _kronecker(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """One entry in independent parts, each square: factor by factor."""
    if len(entries) != 1:
        return None
    e = entries[0]
    groups = parts(e)
    if len(groups) < 2:
        return None
    from .composite_solvers import Axes, Kronecker

    solvers: list[Solver] = []
    down: list[int] = []
    across: list[int] = []
    for k, g in enumerate(groups):
        mine = [i for i, m in enumerate(e.out) if set(labels_of(m)) & g]
        yours = [j for j, m in enumerate(e.inn) if set(labels_of(m)) & g]
        factors = tuple([f for f in e.factors if f.labels and set(f.labels) <= g])
        scalars = tuple([f for f in e.factors if not f.labels]) if k == 0 else ()
        part = Entry(tuple([e.out[i] for i in mine]), tuple([e.inn[j] for j in yours]), (*factors, *scalars), e.scale if k == 0 else 1.0)
        tall, wide = tuple([row[i] for i in mine]), tuple([column[j] for j in yours])
        one = _any(v, [part], tall, wide) if math.prod(tall) == math.prod(wide) else None
        if one is None:
            return None
        solvers.append(one)
        down += mine
        across += yours
    rest = [i for i in range(len(row)) if i not in down], [j for j in range(len(column)) if j not in across]
    if any([row[i] != 1 for i in rest[0]]):  # all in one line of an axis
        return None
    return Axes(Kronecker(*solvers), row, [*down, *rest[0]], column, [*across, *rest[1]])


def _kronecker_sum(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """A ⊗ I + I ⊗ B: every entry acts along one axis and is the identity along the others; if it is one axis for all, I ⊗ A ⊗ I."""
    if row != column or len(row) < 2 or len(entries) < 2:
        return None
    c = v.net.c
    per: dict[int, list[Entry]] = {i: [] for i, n in enumerate(row) if n != 1}
    same: list[Entry] = []
    for e in entries:
        still = {i for i, j in batch_axes(c, [e], row, column) if i == j}
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
    per[moved[0]] += [Entry((e.out[moved[0]],), (e.inn[moved[0]],), e.factors, e.scale) for e in same]
    from .composite_solvers import Kronecker, KroneckerSum
    from .solvers import Diagonal

    if len(moved) == 1:  # I ⊗ A ⊗ I
        one = _any(v, per[moved[0]], (row[moved[0]],), (row[moved[0]],))
        return None if one is None else Kronecker(*[one if i == moved[0] else Diagonal(np.ones(n, v.dtype)) for i, n in enumerate(row)])
    if max(row) > SMALL:
        return None
    matrices = [_dense_part(v, es, (row[i],), (row[i],)) for i, es in per.items()]
    plain = all([np.array_equal(a, a.T) for a in matrices])
    return KroneckerSum(*matrices) if plain or len(matrices) == 2 else None


def _blocks(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """Block-diagonal along the axes that every entry shares."""
    from .composite_solvers import Reordered
    from .solvers import Blocks

    if not batch_axes(v.net.c, entries, row, column):
        return None
    found = blocks_of(v, entries, row, column)
    if found is None or found.values.shape[1] != found.values.shape[2] or found.values.size > 1 << 27:
        return None
    n = math.prod(row)
    if not np.array_equal(found.rows, found.columns):
        return None
    place = np.empty(n, np.intp)
    place[found.rows.reshape(-1)] = np.arange(n)
    inner = Blocks(found.values)
    return inner if np.array_equal(place, np.arange(n)) else Reordered(inner, place)


def _low_rank(v: Values, entries: Sequence[Entry], row: Shape, column: Shape) -> Solver | None:
    """A base with a solver of its own plus products through few labels: Woodbury."""
    from .composite_solvers import LowRankPlus

    c, n = v.net.c, math.prod(row)
    base: list[Entry] = []
    U: list[Any] = []
    V: list[Any] = []
    for e in entries:
        f = facts(c, e)
        if f.both or (not f.left and not f.right):
            base.append(e)
        else:
            pair = _split(v, e, row, column)
            if pair is None:
                return None
            U.append(pair[0])
            V.append(pair[1])
    rank = sum([u.shape[1] for u in U])
    if not base or not U or 4 * rank > n:
        return None
    try:
        inner = _between(v, base, row, column)
    except SolveError:  # a singular base says nothing about the sum
        return None
    left, right = [side[0] if len(side) == 1 else np.concatenate(side, axis=1) for side in (U, V)]
    return None if inner is None else LowRankPlus(inner, left, right)


def _split(v: Values, e: Entry, row: Shape, column: Shape) -> tuple[Any, Any] | None:
    """U and V of an entry U Vᵀ whose factors do not go across."""
    c = v.net.c
    left, right = set(distinct(e.out)), set(distinct(e.inn))
    near = [f for f in e.factors if set(f.labels) & right]
    far = [f for f in e.factors if f not in near]
    if any([set(f.labels) & left for f in near]):
        return None
    inner = tuple([k for k in dict.fromkeys([k for f in near for k in f.labels if k not in right]) if any([k in g.labels for g in far])])
    rank = size_of(inner, c.sizes)
    sides: list[Any] = []
    for maps, box, factors, scale in ((e.out, row, far, e.scale), (e.inn, column, near, 1.0)):
        ends = tuple([Affine(0, ((k, 1),)) for k in inner])
        whole = Entry(tuple(maps), ends, tuple(factors), scale)
        axes = [m.terms[0][0] for m in maps if type(m) is Affine and m.offset == 0 and len(m.terms) == 1 and m.terms[0][1] == 1]
        if tuple([c.sizes[k] for k in dict.fromkeys(axes)]) == tuple(box):  # one label for each axis
            tall = v.spread(whole, (*axes, *inner))
        else:
            tall = np.zeros((*box, *[c.sizes[k] for k in inner]), v.dtype)
            add(v, whole, tall, (*maps, *ends))
        sides.append(tall.reshape(math.prod(box), rank))
    return sides[0], sides[1]
