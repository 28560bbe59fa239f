"""Matrices behind slices and gathers: rows of an identity and differences of such, under names that are defined beside
the form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ops.op import Reduction
from ..relations.base import Relation
from ..relations.kinds import Diagonal, Full, Function, Gather, Place, Point, Range, Triangular
from .polynomials import Algebra, Labels, Polynomial, Unreadable

LISTED = 12
"""Index arrays of up to this many places are written out where their matrix is defined, if they have no name."""


class Selected(NamedTuple):
    """Σ coefficient · I_n[rows]; all rows where none are said."""

    n: int
    parts: tuple[tuple[int, str], ...]


class Picked(NamedTuple):
    """k · red_R(x) along an axis."""

    scale: Any
    relation: Relation
    source: Polynomial
    axis: int


class Selections:
    """The matrices behind the slices and gathers of a program: `chosen` by name, `indices` the arrays of places."""

    def __init__(
        self, algebra: Algebra, fresh_name: Callable[[Sequence[str], str], str], known: dict[str, Any]
    ) -> None:
        self.algebra, self._fresh, self._known = algebra, fresh_name, known
        self.chosen: dict[str, Selected] = {}
        self.indices: dict[str, Any] = {}  # those that are used
        self._matrices: dict[Any, Polynomial] = {}
        self._picked: dict[Polynomial, Picked] = {}
        algebra.selected = self

    # -- steps --------------------------------------------------------------------------------------------

    def reduced(self, op: Reduction, xs: list[Polynomial], shape: Labels) -> Polynomial:
        """Σ red_R(x) along one axis."""
        if len(xs) > 1:
            terms = [Picked(1, R, x, op.axis) for R, x in zip(op.relations, xs, strict=True)]
            found = self._at_once(terms) or self._put_together(terms)
            if found is not None:
                return found
        parts = [(1, self._along(R, x, op.axis)) for R, x in zip(op.relations, xs, strict=True)]
        found = self.algebra.total(parts, shape)
        if len(xs) == 1:
            self._picked.setdefault(found, Picked(1, op.relations[0], xs[0], op.axis))
        return found

    def combined(self, coefficients: Sequence[float], xs: Sequence[Any], shape: Labels) -> Polynomial | None:
        """Σ k red_R(x) of one x by one matrix, as x[1:] − x[:-1] = D x; None where it is another sum."""
        picked = [self._picked.get(x) for x in xs if isinstance(x, Polynomial) and x.shape == tuple(shape)]
        base = next((p for p in picked if p is not None), None)
        if base is None or len(picked) < max(2, len(xs)):
            return None
        terms: list[Picked] = []
        for k, x, p in zip(coefficients, xs, picked, strict=True):
            if p is None:  # x itself, beside its rows
                if multiple(self.algebra, x, base.source) == 0:
                    return None
                p = Picked(1, _all_rows(base.relation), x, base.axis)
            terms.append(p._replace(scale=k * p.scale))
        return self._at_once(terms)

    def _at_once(self, terms: list[Picked]) -> Polynomial | None:
        """Σ k red_R(x) along an axis by one matrix, where each x is a multiple of one."""
        if not all([isinstance(t.relation, (Range, Gather, Function, Diagonal)) for t in terms]):
            return None
        base = terms[0]
        numbers = [t.scale * multiple(self.algebra, t.source, base.source) * (t.axis == base.axis) for t in terms]
        sizes = {(t.relation.source.box, t.relation.target.box) for t in terms}
        if len(sizes) > 1 or any([len(box or ()) > 1 for pair in sizes for box in pair]):
            return None
        if any([not k or float(k) % 1 for k in numbers]):
            return None
        matrix = self._difference(tuple([int(k) for k in numbers]), tuple([t.relation for t in terms]))
        return None if matrix is None else self._product(matrix, base.source, base.axis)

    def _put_together(self, terms: list[Picked]) -> Polynomial | None:
        """Pieces of one array put side by side, as np.roll does: one matrix of rows."""
        pieces = [self._picked.get(t.source) for t in terms]
        first = pieces[0]
        if first is None or first.relation.source.box is None or len(first.relation.source.box) > 1:
            return None
        index = np.full(terms[0].relation.target.size, -1)
        for t, piece in zip(terms, pieces, strict=True):
            places, rows = rows_of(t.relation.converse), rows_of(piece.relation) if piece is not None else None
            if piece is None or places is None or rows is None or piece[2:] != first[2:] or t.axis != first.axis:
                return None
            if (index[places] >= 0).any() or len(np.unique(places)) < len(places):  # they add up
                return None
            index[places] = rows
        if (index < 0).any():
            return None
        n = first.relation.source.size
        return self._product(self.rows(index, n), first.source, first.axis)

    # -- products with matrices ---------------------------------------------------------------------------

    def _along(self, R: Relation, x: Polynomial, axis: int) -> Polynomial:
        """red_R(x) along an axis."""
        before, after = R.source.box or (), R.target.box or ()
        if len(before) == 2 and len(after) == 1 and isinstance(R, Gather):
            return self._entries(R.index, before, x, axis, False)
        if len(before) == 1 and len(after) == 2 and isinstance(R, Function):
            return self._entries(R.index, after, x, axis, True)
        if len(before) == len(after) == 2 and isinstance(R, (Gather, Function)):
            return self._columns(R, before, after, x, axis)
        if len(before) > 1 or len(after) > 1:
            raise Unreadable("a sum along pairs of several axes")
        return self._product(self._matrix(R), x, axis, bool(before), bool(after))

    def _product(self, P: Polynomial, x: Polynomial, axis: int, before: bool = True, after: bool = True) -> Polynomial:
        kept = [i for i in range(x.rank) if not axis <= i < axis + before]
        axes = [1000 if i == axis and before else i for i in range(x.rank)]
        out = [*kept[:axis], *([1001] if after else []), *kept[axis:]]
        return self.algebra.contracted(((1001, 1000), tuple(axes)), tuple(out), (P, x))

    def _columns(self, R: Gather | Function, before: Labels, after: Labels, x: Polynomial, axis: int) -> Polynomial:
        """x[rows, columns] as a column or a row, or the entries of such put there."""
        put = isinstance(R, Function)
        line = before if put else after
        if 1 not in line:
            raise Unreadable("a sum along pairs of several axes")
        at = line.index(1)
        if put:
            labels = [i if i < axis + at else i - 1 for i in range(x.rank)]
            labels[axis + at] = 1000
            x = self.algebra.contracted((tuple(labels),), tuple(range(x.rank - 1)), (x,))
            return self._entries(np.ravel(R.index), after, x, axis, True)
        found = self._entries(np.ravel(R.index), before, x, axis, False)
        kept = [i if i < axis + at else i + 1 for i in range(found.rank)]
        return self.algebra.contracted((tuple(kept),), tuple(range(found.rank + 1)), (found,), {axis + at: 1})

    def _entries(self, index: Any, box: Labels, x: Polynomial, axis: int, put: bool) -> Polynomial:
        """x[rows, columns], or entries put there: a matrix of rows for each index array."""
        rows, columns = np.divmod(np.asarray(index), box[1])
        whole = np.array_equal(rows, np.arange(box[0]))
        labels = [(1000, 1002)] if whole else [(1003, 1000), (1003, 1002)]
        matrices = [self.rows(columns, box[1])] if whole else [self.rows(rows, box[0]), self.rows(columns, box[1])]
        one = 1000 if whole else 1003
        inside, outside = ([one], [1000, 1002]) if put else ([1000, 1002], [one])
        others = [i for i in range(x.rank) if not axis <= i < axis + len(inside)]
        axes = [*others[:axis], *inside, *others[axis:]]
        out = [*others[:axis], *outside, *others[axis:]]
        return self.algebra.contracted((*labels, tuple(axes)), tuple(out), (*matrices, x))

    # -- matrices -----------------------------------------------------------------------------------------

    def _difference(self, coefficients: tuple[int, ...], relations: tuple[Relation, ...]) -> Polynomial | None:
        """Σ k red_R as a matrix."""
        n, m = relations[0].target.size, relations[0].source.size
        for turned, Rs in ((False, relations), (True, [R.converse for R in relations])):
            rows = [rows_of(R) for R in Rs]
            if not any([r is None for r in rows]):
                parts = [(k, np.asarray(r)) for k, r in zip(coefficients, rows, strict=True)]
                found = self.combined_rows(parts, n if turned else m)
                return self.algebra.permuted(found, (1, 0)) if turned else found
        return None

    def combined_rows(self, parts: Sequence[tuple[int, Any]], m: int) -> Polynomial:
        """Σ k · I_m[index], of index arrays of one length."""
        total: dict[bytes, tuple[int, Any]] = {}
        for k, index in parts:
            index = np.asarray(index, np.intp)
            total[index.tobytes()] = k + total.get(index.tobytes(), (0, index))[0], index
        kept = {key: part for key, part in total.items() if part[0]}
        shape = len(parts[0][1]), m
        if not kept:
            return self.algebra.form(shape, [])
        ((k, index), *others) = kept.values()
        if not others:
            return self.algebra.scaled(k, self.rows(index, m))
        for sign in (1, -1):
            key = m, frozenset([(name, sign * k) for name, (k, _) in kept.items()])
            if key in self._matrices:
                return self.algebra.scaled(sign, self._matrices[key])
        found = self._named(
            "DEFGHPQ", Selected(m, tuple([(k, self._written(i, m)) for k, i in kept.values()])), shape[0]
        )
        self.algebra.rows[next(reversed(self.chosen))] = tuple(kept.values())
        self._matrices[m, frozenset([(name, k) for name, (k, _) in kept.items()])] = found
        return found

    def rows(self, index: Any, m: int) -> Polynomial:
        """I_m[index]: a unit vector where it is one row."""
        index = np.asarray(index, np.intp)
        key = m, index.tobytes()
        if key not in self._matrices:
            if len(index) == 1:
                unit = self.unit(int(index[0]), m)
                self._matrices[key] = self.algebra.contracted(((0,),), (1, 0), (unit,), {1: 1})
            elif np.array_equal(index, np.arange(m)):
                self._matrices[key] = self.algebra.of(self.algebra.identity(m))
            else:
                found = self._named("PQDEFGH", Selected(m, ((1, self._written(index, m)),)), len(index))
                self.algebra.stochastic.add(next(reversed(self.chosen)))
                self.algebra.rows[next(reversed(self.chosen))] = ((1, np.asarray(index)),)
                self._matrices[key] = found
        return self._matrices[key]

    def unit(self, at: int, n: int) -> Polynomial:
        """A unit vector."""
        place = Selected(n, ((1, str(at)),))
        name = next((k for k, v in self.chosen.items() if v == place), None) or self._fresh((), f"e{at}")
        self.chosen[name] = place
        self.algebra.units[name] = at
        return self.algebra.array(name, (n,))

    def _named(self, letters: str, selected: Selected, n: int) -> Polynomial:
        name = self._fresh(letters, f"{letters[0]}{len(self.chosen)}")
        self.chosen[name] = selected
        return self.algebra.array(name, (n, selected.n))

    def _written(self, index: Any, m: int) -> str:
        """What stands in the brackets of I[…]: a slice, a name, a list of places; nothing for all rows."""
        n, step = len(index), int(index[1] - index[0]) if len(index) > 1 else 1
        if step and np.array_equal(index, index[0] + step * np.arange(n)):
            stop = int(index[0]) + step * n
            if (n, stop, step) == (m, m, 1):
                return ""
            return f"{int(index[0]) or ''}:{stop if 0 <= stop < m else ''}" + (f":{step}" if step != 1 else "")
        for name, known in self._known.items():
            if np.array_equal(known, index):
                self.indices[name] = known
                return name
        if n <= LISTED:
            return str([int(i) for i in index])
        name = self._fresh("ijk", f"i{len(self.indices)}")
        self._known[name] = self.indices[name] = index
        return name

    def _matrix(self, R: Relation) -> Polynomial:
        """red_R as a matrix, target by source: rows of an identity, or its transpose."""
        if R in self._matrices:
            return self._matrices[R]
        if R.converse in self._matrices:
            return self.algebra.permuted(self._matrices[R.converse], (1, 0))
        n, m, index = R.target.size, R.source.size, rows_of(R)
        match R:
            case Diagonal():
                found = self.algebra.of(self.algebra.identity(n))
            case Full(times=k):
                found = self.algebra.constant(k, (n, m))
            case Triangular(lower=lower, strict=strict):
                name, k = ("tril", -int(strict)) if lower else ("triu", int(strict))
                found = self.algebra.half(name, n, k)
            case Point(at=at) | Place(at=at):
                unit = self.unit(at, m * n)
                found = self.algebra.contracted(((0,),), (1, 0) if n == 1 else (0, 1), (unit,), {1: 1})
            case _ if index is not None:
                found = self.rows(index, m)
            case Range(turned=True) | Function():
                return self.algebra.permuted(self._matrix(R.converse), (1, 0))
            case _:
                raise Unreadable(f"a sum along {type(R).__name__.lower()} pairs")
        self._matrices[R] = found
        return found


def rows_of(R: Relation) -> Any:
    """The source of each target, where red_R copies one each; None for others."""
    if isinstance(R, Diagonal):
        return np.arange(R.target.size)
    if isinstance(R, Range) and not R.turned:
        return R.start + R.step * np.arange(R.target.size)
    return np.asarray(R.index).ravel() if isinstance(R, Gather) else None


def _all_rows(R: Relation) -> Relation:
    """The diagonal relation on the source, or on the target."""
    return Diagonal(R.source, R.source)


def multiple(algebra: Algebra, x: Polynomial, base: Polynomial) -> Any:
    """k of x = k · base; 0 where it is no multiple."""
    if x is base:
        return 1
    if not x.products or not base.products or x.shape != base.shape:
        return 0
    k = x.products[0].scale / base.products[0].scale
    return k if algebra.scaled(k, base) is x else 0
