"""Solves, inverses, determinants and Cholesky factors of matrices up to 8×8, as statements.

Up to 3×3 elimination is written out, with selections in place of exchanged rows; larger systems call a helper, a
function of its own for each shape. A pivot of 0, or a square root of a number that is not positive, fails: then the
ordinary way is taken, with its error or its nan.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ...programs.axis.scalars import ONE, ZERO
from .statements import Assign, Blocked, Buffer, Fail, Helper, If, Invoke, Position, Read, SetNumber, Update

if TYPE_CHECKING:
    from .scope import Scope

WRITTEN_OUT, LARGEST = 3, 8


def _nodes(rows: list[list[int]]) -> Any:
    return np.array(rows, np.intp)


def _eliminated(scope: Scope, rows: list[list[int]], n: int) -> int:
    """Rows brought to triangular form by exchanges and subtractions; the sign of the exchanges. Pivots of 0 fail."""
    graph, sign = scope.graph, ONE
    for k in range(n):
        for i in range(k + 1, n):
            larger = scope.apply("greater", scope.apply("absolute", rows[i][k]), scope.apply("absolute", rows[k][k]))
            for j in range(k, len(rows[k])):
                a, b = rows[k][j], rows[i][j]
                rows[k][j], rows[i][j] = graph.select(larger, b, a), graph.select(larger, a, b)
            sign = graph.select(larger, graph.scale(-1.0, sign), sign)
        scope.failing(scope.apply("equal", rows[k][k], ZERO))
        for i in range(k + 1, n):
            factor = graph.divide(rows[i][k], rows[k][k])
            for j in range(k + 1, len(rows[i])):
                rows[i][j] = graph.subtract(rows[i][j], graph.product([factor, rows[k][j]]))
    return sign


def _solved(scope: Scope, a: Any, b: Any) -> Any:
    n = len(b)
    if n > LARGEST:
        raise Blocked(f"a system of {n} equations")
    if n > WRITTEN_OUT:
        return _by_helper(scope, a, b)
    rows = [[*a[i].tolist(), *b[i].tolist()] for i in range(n)]
    _eliminated(scope, rows, n)
    upper = [row[:n] for row in rows]
    return _substituted(scope, upper, [row[n:] for row in rows], range(n - 1, -1, -1))


def _substituted(scope: Scope, t: Any, b: Any, order: Any, unit: bool = False) -> Any:
    """x with T·x = b, its rows in an order in which each needs those before it."""
    n, m = len(b), len(b[0])
    graph, x = scope.graph, [[ZERO] * m for _ in range(n)]
    done: list[int] = []
    for k in order:
        for j in range(m):
            total = int(b[k][j])
            for i in done:
                total = graph.subtract(total, graph.product([t[k][i], x[i][j]]))
            x[k][j] = total if unit else graph.divide(total, t[k][k])
        done.append(k)
    return _nodes(x)


def _solve(scope: Scope, a: Any, b: Any, *, transposed: bool) -> Any:
    return _solved(scope, a.T if transposed else a, b)


def _inverse(scope: Scope, a: Any, *, strict: bool) -> Any:
    return _solved(scope, a, np.where(np.eye(len(a), dtype=bool), ONE, scope.graph.fixed(0.0)))


def _triangular(scope: Scope, t: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    n = len(b)
    if n > LARGEST:
        raise Blocked(f"a system of {n} equations")
    if not unit:
        for k in range(n):
            scope.failing(scope.apply("equal", int(t[k, k]), ZERO))
    rows = (t.T if transposed else t).tolist()
    order = range(n) if lower != transposed else range(n - 1, -1, -1)
    return _substituted(scope, rows, b.tolist(), order, unit)


def _cholesky(scope: Scope, a: Any) -> Any:
    graph, n = scope.graph, len(a)
    if n > LARGEST:
        raise Blocked(f"a matrix of {n} rows")
    zero = graph.fixed(0.0)
    rows = [[zero] * n for _ in range(n)]
    for j in range(n):
        total = int(a[j, j])
        for k in range(j):
            total = graph.subtract(total, graph.product([rows[j][k], rows[j][k]]))
        scope.failing(scope.apply("logical_not", scope.apply("greater", total, ZERO)))
        rows[j][j] = graph.power(total, 0.5)
        for i in range(j + 1, n):
            total = int(a[i, j])
            for k in range(j):
                total = graph.subtract(total, graph.product([rows[i][k], rows[j][k]]))
            rows[i][j] = graph.divide(total, rows[j][j])
    return _nodes(rows)


def _pivots(scope: Scope, a: Any) -> tuple[int, list[int]]:
    """The sign of the exchanges, and the pivots."""
    n = len(a)
    if n > LARGEST:
        raise Blocked(f"a determinant of {n} rows")
    if n <= WRITTEN_OUT:
        rows = [row[:] for row in a.tolist()]
        sign = _eliminated(scope, rows, n)
        return sign, [rows[k][k] for k in range(n)]
    matrix, signs = scope.stored(a, fresh=True), scope.stored(np.array([ONE], np.intp), fresh=True)
    _invoked(scope, n, 0, matrix, None, signs)
    return int(scope.numbers(signs)[0]), np.diagonal(scope.numbers(matrix)).tolist()


def _det(scope: Scope, a: Any) -> Any:
    sign, pivots = _pivots(scope, a)
    return np.asarray(scope.graph.product([sign, *pivots]), np.intp)


def _slogdet(scope: Scope, a: Any) -> Any:
    graph = scope.graph
    sign, pivots = _pivots(scope, a)
    total = graph.combination([1.0] * len(pivots), [scope.apply("log", scope.apply("absolute", p)) for p in pivots])
    for p in pivots:
        sign = graph.select(scope.apply("less", p, ZERO), graph.scale(-1.0, sign), sign)
    return [np.asarray(sign, np.intp), np.asarray(total, np.intp)]


def _cofactors(scope: Scope, a: Any, *ms: Any) -> Any:
    """The gradient in A of D^(k−1)det(A)[M₁, …]: the minors, each direction M in the place of a row in turn."""
    graph, n = scope.graph, len(a)
    if n > 4 or len(ms) > 2:
        raise Blocked(f"derivatives of a determinant of {n} rows")
    found = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        rows, total = [r for r in range(n) if r != i], [list[int]() for _ in range(n)]
        for places in permutations(rows, len(ms)):
            chosen = [ms[places.index(r)][r] if r in places else a[r] for r in rows]
            for j in range(n):
                total[j].append(_minor(scope, chosen, [c for c in range(n) if c != j]))
        for j in range(n):
            sign = -1.0 if (i + j) % 2 else 1.0
            found[i][j] = graph.combination([sign] * len(total[j]), total[j]) if total[j] else graph.fixed(0.0)
    return _nodes(found)


def _minor(scope: Scope, rows: list[Any], columns: list[int]) -> int:
    graph = scope.graph
    if not rows:
        return ONE
    signs = [-1.0 if k % 2 else 1.0 for k in range(len(columns))]
    inner = [_minor(scope, rows[1:], [d for d in columns if d != c]) for c in columns]
    terms = [graph.product([int(rows[0][c]), x]) for c, x in zip(columns, inner, strict=True)]
    return graph.combination(signs, terms)


# -- helpers ----------------------------------------------------------------------------------------------


def _by_helper(scope: Scope, a: Any, b: Any) -> Any:
    matrix, columns = scope.stored(a, fresh=True), scope.stored(b, fresh=True)
    _invoked(scope, len(b), b.shape[1], matrix, columns, scope.stored(np.array([ONE], np.intp), fresh=True))
    return scope.numbers(columns)


def _invoked(scope: Scope, n: int, m: int, matrix: Any, columns: Any, signs: Any) -> None:
    name, w = f"eliminate_{n}_{m}", scope.writer
    if name not in w.written.helpers:
        w.written.helpers[name] = _Elimination(w, name, n, m).helper
    given = [x.place for x in (matrix, columns, signs) if x is not None]
    w.emit(Invoke(name, tuple(given)))


class _Elimination:
    """M, X, sign ← the triangular form of M, M⁻¹X and the sign of the exchanges."""

    def __init__(self, writer: Any, name: str, n: int, m: int) -> None:
        self.writer, self.n, self.m = writer, n, m
        self.matrix, self.signs = Buffer("M", n * n), Buffer("S", 1)
        self.columns = Buffer("X", n * m)
        with writer.inside() as body:
            self._written()
        self.helper = Helper(name, [b for b in (self.matrix, self.columns, self.signs) if b.size], body)

    def _written(self) -> None:
        n = self.n
        with self._for(Position(), Position(n)) as k:
            with self._for(k.moved(1), Position(n)) as i:
                larger = self._op("greater", self._size(i, k), self._size(k, k))
                with self.writer.inside() as exchange:
                    self._exchanged(self.matrix, n, k, i)
                    if self.m:
                        self._exchanged(self.columns, self.m, k, i)
                    sign = self._read(self.signs, Position())
                    self.writer.emit(SetNumber(self.signs, Position(), self._op("negative", sign)))
                self.writer.emit(If(larger, exchange, []))
            pivot = self._read(self.matrix, _at(k, k, n))
            self.writer.emit(Fail(self._op("equal", pivot, 0.0)))
            with self._for(k.moved(1), Position(n)) as i:
                factor = self._op("divide", self._read(self.matrix, _at(i, k, n)), pivot)
                with self._for(k.moved(1), Position(n)) as j:
                    self._subtracted(self.matrix, _at(i, j, n), factor, _at(k, j, n))
                if self.m:
                    with self._for(Position(), Position(self.m)) as j:
                        self._subtracted(self.columns, _at(i, j, self.m), factor, _at(k, j, self.m))
        if self.m:
            self._back()

    def _back(self) -> None:
        n, m = self.n, self.m
        with self._for(Position(), Position(n), reverse=True) as k:
            pivot = self._read(self.matrix, _at(k, k, n))
            with self._for(Position(), Position(m)) as j:
                total = self.writer.fresh("k")
                self.writer.emit(Update((total,), (self._read(self.columns, _at(k, j, m)),)))
                with self._for(k.moved(1), Position(n)) as i:
                    one = self._op(
                        "multiply", self._read(self.matrix, _at(k, i, n)), self._read(self.columns, _at(i, j, m))
                    )
                    self.writer.emit(Update((total,), (self._op("subtract", total, one),)))
                self.writer.emit(SetNumber(self.columns, _at(k, j, m), self._op("divide", total, pivot)))

    def _for(self, start: Position, stop: Position, reverse: bool = False) -> Any:
        return self.writer.loop(start, stop, reverse)

    def _op(self, op: str, *args: Any) -> str:
        name = self.writer.fresh("v")
        self.writer.emit(Assign(name, op, args))
        return name

    def _read(self, buffer: Buffer, at: Position) -> str:
        name = self.writer.fresh("v")
        self.writer.emit(Read(name, buffer, at))
        return name

    def _size(self, i: Position, j: Position) -> str:
        return self._op("absolute", self._read(self.matrix, _at(i, j, self.n)))

    def _exchanged(self, buffer: Buffer, width: int, k: Position, i: Position) -> None:
        with self._for(Position(), Position(width)) as j:
            a, b = self._read(buffer, _at(k, j, width)), self._read(buffer, _at(i, j, width))
            self.writer.emit(SetNumber(buffer, _at(k, j, width), b))
            self.writer.emit(SetNumber(buffer, _at(i, j, width), a))

    def _subtracted(self, buffer: Buffer, at: Position, factor: str, other: Position) -> None:
        less = self._op("multiply", factor, self._read(buffer, other))
        self.writer.emit(SetNumber(buffer, at, self._op("subtract", self._read(buffer, at), less)))


def _at(i: Position, j: Position, width: int) -> Position:
    return j.plus(i, width)


MATRICES: dict[str, Any] = {
    "solve": _solve,
    "inv": _inverse,
    "solve_triangular": _triangular,
    "cholesky": _cholesky,
    "det": _det,
    "slogdet": _slogdet,
    "cofactors": _cofactors,
}
"""The functions of matrices that are written here."""
