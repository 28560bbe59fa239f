"""Products of arrays placed by index maps: the terms of a factored gradient, added to arrays and compared with each
other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ...ops.op import contraction
from ...relations.cpu.pair_sums import add_rows
from ...relations.index_algebra import Affine, IndexMap, IndexTable, Labels, along, labels_of, renamed, values
from ...runtime.warnings_off import quietly
from ...spaces.contraction import network, spread
from ...spaces.formal_vectors import dense
from ..normal_form.index_maps import Sizes, Tables, distinct, whole

Shape = tuple[int, ...]
Array = Any
Operand = tuple[Any, Labels]


@dataclass(eq=False, repr=False)
class PlacedTerm:
    """scale · Σ over labels of a product: `factors` are arrays with one label per axis, `index` maps labels to places
    along the axes of the result.

    A label in an index map is a direction of the result, any other is summed over; `sizes` has all of them.
    """

    scale: float
    factors: tuple[Operand, ...]
    index: tuple[IndexMap, ...]
    sizes: Sizes
    axes: dict[int, Any]  # which labels run together with those of other terms

    def coefficient(self, out: Labels, strong: tuple[int, ...] = ()) -> Array:
        """The product on some labels, summed over all others."""
        have = {*out, *[k for _, ls in self.factors for k in ls]}
        times = math.prod([n for k, n in self.sizes.items() if k not in have])
        return _product(self.factors, out, self.sizes, self.scale * times, strong)

    def evaluated(self, strong: tuple[int, ...] = ()) -> PlacedTerm:
        """The same term with one factor."""
        out = distinct(self.index)
        sizes, axes = [{k: x for k, x in of.items() if k in out} for of in (self.sizes, self.axes)]
        return PlacedTerm(1.0, ((self.coefficient(out, strong), out),), self.index, sizes, axes)

    def outer(self, shape: Shape) -> tuple[Array, Array] | None:
        """(U, V) with Σ_r U_r ⊗ V_r the term, U on the first axes and V on the rest; None where it is none."""
        known = self.__dict__
        if "_outer" not in known:
            cuts = (self._cut(shape, k) for k in range(1, len(shape)))
            known["_outer"] = next((p for p in cuts if p is not None), None)
        return known["_outer"]

    def _cut(self, shape: Shape, cut: int) -> tuple[Array, Array] | None:
        axes = list(zip(self.index, shape, strict=True))
        first, rest = [[m for m, n in side if n != 1] for side in (axes[:cut], axes[cut:])]
        if not all([n == 1 or whole(m, n, self.sizes) for m, n in axes]):
            return None
        first, rest = [[labels_of(m)[0] for m in side] for side in (first, rest)]
        if len({*first, *rest}) < len(first) + len(rest):
            return None
        sides: tuple[list[Operand], list[Operand]] = ([], [])
        for f in self.factors:
            left, right = not set(first).isdisjoint(f[1]), not set(rest).isdisjoint(f[1])
            if left and right:
                return None
            sides[0 if left or (not right and not first) else 1].append(f)
        inner = [{k for _, ls in side for k in ls} for side in sides]
        shared = tuple([k for k in self.sizes if k in inner[0] and k in inner[1] and k not in first and k not in rest])
        nowhere = math.prod([n for k, n in self.sizes.items() if k not in {*inner[0], *inner[1], *first, *rest}])
        U = _product(sides[0], (*shared, *first), self.sizes, 1.0).reshape((-1, *shape[:cut]))
        V = _product(sides[1], (*shared, *rest), self.sizes, 1.0).reshape((-1, *shape[cut:]))
        k = self.scale * nowhere
        return (U, V) if k == 1.0 else (U * k, V) if U.size <= V.size else (U, V * k)

    def __repr__(self) -> str:
        names = {k: "ijklmnpqrst"[i] if i < 11 else f"l{i}" for i, k in enumerate(self.sizes)}
        shapes = ["×".join(map(str, np.shape(a))) or "number" for a, _ in self.factors]
        labels = [", ".join([names[k] for k in ls]) for _, ls in self.factors]
        factors = " · ".join([f"{shape}[{ls}]" for shape, ls in zip(shapes, labels, strict=True)])
        at = ", ".join([_shown(m, names) for m in self.index])
        return f"{self.scale:.6g} · {factors or '1'} at [{at}]"


def _shown(m: IndexMap, names: dict[int, str]) -> str:
    if type(m) is IndexTable:
        return f"table[{', '.join([names[k] for k in m.labels])}]"
    assert type(m) is Affine
    parts = [f"{'' if s == 1 else f'{s}·'}{names[k]}" for k, s in m.terms]
    return " + ".join([*parts, *([str(m.offset)] if m.offset or not parts else [])])


def _product(
    factors: Sequence[Operand], out: Labels, sizes: Sizes, scale: float, strong: tuple[int, ...] = ()
) -> Array:
    """The product of some factors, times a number, on the given labels."""
    if not factors:
        return np.full([sizes[k] for k in out], scale)
    have = {k for _, ls in factors for k in ls}
    extra = {k: sizes[k] for k in out if k not in have}
    op = contraction(tuple([ls for _, ls in factors]), out, extra, strong if len(factors) > 1 else ())
    with quietly():
        found = np.asarray(dense(op.run(*[a for a, _ in factors])))
    return found if scale == 1.0 else found * scale


# -- terms into arrays ---------------------------------------------------------------------------------------


def add_term(W: Array, t: PlacedTerm, k: float) -> None:
    """W += k·term in place."""
    pair = t.outer(W.shape)
    if pair is not None:
        _add_outer(W, *pair, k)
        return
    listed = [i for i, m in enumerate(t.index) if type(m) is IndexTable]
    if len(listed) == 1:
        axis = listed[0]
        turned = replace(t, index=(t.index[axis], *t.index[:axis], *t.index[axis + 1 :]))
        front = np.moveaxis(W, axis, 0)
        rows, found = rows_of([turned], front.shape, W.dtype)
        front[rows] += k * found
        return
    slices = _slices(t, W.shape)
    if slices is not None:
        W[slices] += k * t.coefficient(distinct(t.index))
        return
    labels = distinct(t.index)
    np.add.at(W, tuple([values(m, labels, t.sizes) for m in t.index]), k * t.coefficient(labels))


def _add_outer(W: Array, U: Array, V: Array, k: float) -> None:
    """W += k·UᵀV."""
    left, right = matrix(U), matrix(V)
    if W.flags.carray and W.dtype == U.dtype == V.dtype and W.dtype.char in "fd" and W.size:
        from scipy.linalg import blas  # pyright: ignore[reportMissingTypeStubs]

        gemm: Any = blas.dgemm if W.dtype.char == "d" else blas.sgemm  # pyright: ignore
        flat = W.reshape(left.shape[1], right.shape[1])
        gemm(k, right.T, left.T, beta=1.0, c=flat.T, trans_b=1, overwrite_c=1)
    else:
        np.add(W, (k * (left.T @ right)).reshape(W.shape), out=W, casting="same_kind")


def matrix(U: Array) -> Array:
    """All axes but the first as one."""
    return U.reshape(len(U), math.prod(U.shape[1:]))


def _slices(t: PlacedTerm, shape: Shape) -> tuple[Any, ...] | None:
    """The part of an array that a term covers, if each axis has a label of its own: numbers and slices."""
    found: list[Any] = []
    for m, n in zip(t.index, shape, strict=True):
        if type(m) is not Affine or len(m.terms) > 1:
            return None
        if not m.terms:
            found.append(m.offset)
            continue
        ((label, stride),) = m.terms
        end = m.offset + stride * (t.sizes[label] - 1)
        stop = end + (1 if stride > 0 else -1)
        found.append(slice(m.offset, None if stop < 0 else min(stop, n), stride))
    labels = [labels_of(m) for m in t.index if labels_of(m)]
    return tuple(found) if len(set(labels)) == len(labels) else None


def rows_of(terms: Sequence[PlacedTerm], shape: Shape, dtype: Any) -> tuple[Array, Array]:
    """The rows that some terms concern, ascending, and the sums of what belongs there."""
    places: list[Array] = []
    for t in terms:
        mine = labels_of(t.index[0])
        places.append(np.broadcast_to(values(t.index[0], mine, t.sizes), [t.sizes[k] for k in mine]))
    flat: Array = np.concatenate([p.reshape(-1) for p in places]) if places else np.zeros(0, np.intp)
    rows, inverse = np.unique(flat, return_inverse=True)
    small = (len(rows), *shape[1:])
    total = np.zeros(small, dtype)
    start = 0
    for t, p in zip(terms, places, strict=True):
        mine = labels_of(t.index[0])
        at = inverse.reshape(-1)[start : start + p.size]
        start += p.size
        rest = [(m, n) for m, n in zip(t.index[1:], shape[1:], strict=True) if n != 1]
        own = [*mine, *[k for m, _ in rest for k in labels_of(m)]]
        if all([whole(m, n, t.sizes) for m, n in rest]) and len(set(own)) == len(own):
            # all axes but the first have a label of their own that runs through them
            block = np.asarray(t.coefficient((*mine, *distinct(t.index[1:]))), dtype)
            total += add_rows(at, len(rows), block.reshape(p.size, math.prod(shape[1:]))).reshape(small)
        else:
            index = (IndexTable(at.reshape(p.shape), mine), *t.index[1:])
            labels = distinct(index)
            np.add.at(total, tuple([values(m, labels, t.sizes) for m in index]), t.coefficient(labels))
    return rows, total


# -- inner products, example by example ----------------------------------------------------------------------


def summed_labels(t: PlacedTerm) -> dict[int, int]:
    """The labels that numbers of one place are summed over, those of index tables included, with their lengths."""
    shown = {k for m in t.index if type(m) is not IndexTable for k in labels_of(m)}
    return {k: n for k, n in t.sizes.items() if k not in shown}


def stacked(terms: Sequence[PlacedTerm], chosen: Sequence[int]) -> list[tuple[PlacedTerm, int]]:
    """Terms with a label chosen in each; those of one form (a matrix used again) as one with a label more."""
    groups: dict[Any, list[tuple[PlacedTerm, int]]] = {}
    for t, b in zip(terms, chosen, strict=True):
        names = {k: i for i, k in enumerate(t.sizes)}
        maps = [renamed(m, names) for m in t.index]
        places = tuple([(m.labels,) if type(m) is IndexTable else m for m in maps])
        factors = tuple([tuple([names[k] for k in ls]) for _, ls in t.factors])
        key = (names[b], tuple(t.sizes.values()), places, factors)
        groups.setdefault(key if t.factors else id(t), []).append((t, b))
    return [_as_one([t for t, _ in group], group[0][1]) if len(group) > 1 else group[0] for group in groups.values()]


def _as_one(terms: Sequence[PlacedTerm], b: int) -> tuple[PlacedTerm, int]:
    first = terms[0]
    new = 1 + max(first.sizes)
    scales = np.array([t.scale for t in terms], first.factors[0][0].dtype)
    factors = [(np.stack([t.factors[i][0] for t in terms]), (new, *ls)) for i, (_, ls) in enumerate(first.factors)]
    index: list[IndexMap] = []
    for i, m in enumerate(first.index):
        tables = [cast(Any, t.index[i]).array for t in terms] if type(m) is IndexTable else []
        index.append(IndexTable(np.stack(tables), (new, *labels_of(m))) if tables else m)
    return PlacedTerm(1.0, (*factors, (scales, (new,))), tuple(index), first.sizes | {new: len(terms)}, first.axes), b


def inner_by_example(s: PlacedTerm, b: int, t: PlacedTerm, other: int, shape: Shape) -> Array:
    """⟨s_b, t_b⟩ for each example b: the sum over all places that both terms reach."""
    shift = 1 + max(s.sizes)
    names = {k: b if k == other else k + shift for k in t.sizes}
    sizes = s.sizes | {names[k]: n for k, n in t.sizes.items()}
    factors = [*s.factors, *[(a, tuple([names[k] for k in ls])) for a, ls in t.factors]]
    left, right = list(s.index), [renamed(m, names) for m in t.index]
    for i, n in enumerate(shape):
        m, q = left[i], right[i]
        if n == 1:
            continue
        runs = [(x, y) for x, y in ((q, m), (m, q)) if whole(x, n, sizes)]
        free = [(x, y) for x, y in runs if labels_of(x)[0] not in (b, *labels_of(y))]
        if not free:  # two places that may or may not be the same
            both = distinct((m, q))
            kind = np.result_type(*[a for a, _ in factors]) if factors else float
            factors.append((np.asarray(values(m, both, sizes) == values(q, both, sizes), kind), both))
            continue
        label, to = labels_of(free[0][0])[0], free[0][1]
        factors = [(a, ls) if label not in ls else _gathered(a, ls, label, to, sizes) for a, ls in factors]
        left, right = [[Tables().substituted(x, {label: to}, sizes) for x in side] for side in (left, right)]
        del sizes[label]
    short = {k: i for i, k in enumerate([b, *[k for k in sizes if k != b]])}  # einsum takes small numbers as labels
    operands = [(a, tuple([short[k] for k in ls])) for a, ls in factors]
    scale, rest = network(operands, (0,), {short[k]: n for k, n in sizes.items()})
    total = np.full(sizes[b], s.scale * t.scale * scale, np.result_type(*[a for a, _ in factors]) if factors else float)
    for a, ls in rest:
        total = total * spread(a, ls, (0,))
    return total


def _gathered(a: Array, labels: Labels, label: int, to: IndexMap, sizes: Sizes) -> Operand:
    """A factor with a label replaced by a map of other labels."""
    maps = [to if k == label else along(k) for k in labels]
    out = distinct(maps)
    if type(to) is Affine and len(out) == len(labels) and whole(to, sizes[label], sizes):
        return a, tuple([labels_of(m)[0] for m in maps])
    found = a[tuple([values(m, out, sizes) for m in maps])]
    return np.broadcast_to(found, [sizes[k] for k in out]), out
