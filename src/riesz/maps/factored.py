"""Gradients that are not multiplied out: sums of products of arrays, placed by index maps.

The gradient of a matrix that examples went through is Σ_b u_b ⊗ v_b, that of an embedding a few rows. What follows from the factors (norms, norms for
each example, products with a vector, a step of an optimiser) is computed from the factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..contractions import network, spread
from ..errors import VectorError
from ..ops import contraction
from ..relations.running import add_rows
from ..relations.spans import Affine
from ..vectors import dense
from .entries import renamed
from .indexing import IndexMap, Labels, Table, Tables, along, distinct, labels_of, values, whole

Shape = tuple[int, ...]
Array = Any
Operand = tuple[Any, Labels]


class Term:
    """scale · Σ over labels of a product: `factors` are arrays with one label per axis, `index` has the place of a number along each axis of the result.

    A label in an index map is a direction of the result, any other is summed over; `sizes` has all of them.
    """

    def __init__(self, scale: float, factors: tuple[Operand, ...], index: tuple[IndexMap, ...], sizes: dict[int, int], axes: dict[int, Any]) -> None:
        self.scale = scale
        self.factors = factors
        self.index = index
        self.sizes = sizes
        self.axes = axes  # which labels run together with those of other terms

    def changed(self, **parts: Any) -> Term:
        """The same term but for some parts."""
        kept = {k: getattr(self, k) for k in ("scale", "factors", "index", "sizes", "axes")}
        return Term(**(kept | parts))

    def coefficient(self, out: Labels, strong: tuple[int, ...] = ()) -> Array:
        """The product on some labels, summed over all others."""
        times = math.prod([n for k, n in self.sizes.items() if k not in out and not any([k in ls for _, ls in self.factors])])
        return _product(self.factors, out, self.sizes, self.scale * times, strong)

    def evaluated(self, strong: tuple[int, ...] = ()) -> Term:
        """The same term with one factor."""
        out = distinct(self.index)
        found = self.coefficient(out, strong)
        return Term(1.0, ((found, out),), self.index, {k: self.sizes[k] for k in out}, {k: a for k, a in self.axes.items() if k in out})

    def outer(self, shape: Shape) -> tuple[Array, Array] | None:
        """(U, V) with Σ_r U_r ⊗ V_r the term, U on the first axes and V on the rest; None where it is no such product."""
        found = self.__dict__.get("_outer", ())
        if found == ():
            found = self.__dict__["_outer"] = next((p for p in [self._cut(shape, k) for k in range(1, len(shape))] if p is not None), None)
        return found

    def _cut(self, shape: Shape, cut: int) -> tuple[Array, Array] | None:
        named = [(labels_of(m)[0] if n != 1 else None) if n == 1 or whole(m, n, self.sizes) else -1 for m, n in zip(self.index, shape, strict=True)]
        first, rest = [[k for k in side if k is not None] for side in (named[:cut], named[cut:])]
        if -1 in named or len({*first, *rest}) < len(first) + len(rest):
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
        names = {k: _letter(i) for i, k in enumerate(self.sizes)}
        factors = " · ".join([f"{'×'.join(map(str, np.shape(a))) or 'number'}[{', '.join([names[k] for k in ls])}]" for a, ls in self.factors])
        at = ", ".join([_shown(m, names) for m in self.index])
        return f"{self.scale:.6g} · {factors or '1'} at [{at}]"


def _letter(i: int) -> str:
    return "ijklmnpqrst"[i] if i < 11 else f"l{i}"


def _shown(m: IndexMap, names: dict[int, str]) -> str:
    if type(m) is Table:
        return f"table[{', '.join([names[k] for k in m.labels])}]"
    assert type(m) is Affine
    parts = [f"{'' if s == 1 else f'{s}·'}{names[k]}" for k, s in m.terms]
    return " + ".join([*parts, *([str(m.offset)] if m.offset or not parts else [])])


def _product(factors: Sequence[Operand], out: Labels, sizes: dict[int, int], scale: float, strong: tuple[int, ...] = ()) -> Array:
    """The product of some factors, times a number, on the given labels."""
    if not factors:
        return np.full([sizes[k] for k in out], scale)
    have = {k for _, ls in factors for k in ls}
    op = contraction(tuple([ls for _, ls in factors]), out, {k: sizes[k] for k in out if k not in have}, strong if len(factors) > 1 else ())
    with np.errstate(all="ignore"):
        found = np.asarray(dense(op.run(*[a for a, _ in factors])))
    return found if scale == 1.0 else found * scale


class Factored(NDArrayOperatorsMixin):
    """A gradient as a sum of terms that are not multiplied out. `np.asarray(G)` is the array; W - lr * G needs none of its size but the result.

    >>> import numpy as np, riesz as rz
    >>> X, W = np.arange(6.0).reshape(3, 2), np.ones((2, 4))
    >>> G = rz.grad(lambda W: np.sum(np.sin(X @ W)), factored=True)(W)
    >>> G
    Factored(2 × 4: 3 outer products)
    >>> (U, V), = G.factors
    >>> np.allclose(U.T @ V, G)
    True
    >>> E, words = np.ones((10_000, 2)), np.array([7, 3, 7])
    >>> G = rz.grad(lambda E: np.sum(E[words] ** 2), factored=True)(E)
    >>> G, G.rows, G.values
    (Factored(10,000 × 2: row-sparse, 2 rows), array([3, 7]), array([[2., 2.],
           [4., 4.]]))
    """

    __array_priority__ = 1000

    def __init__(self, shape: Shape, dtype: Any, terms: Sequence[Term]) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.terms = tuple(terms)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    # -- what it is made of ------------------------------------------------------------------------------

    @cached_property
    def _outers(self) -> list[tuple[Array, Array]] | None:
        found = [t.outer(self.shape) for t in self.terms]
        return None if any([p is None for p in found]) else cast(Any, found)

    @property
    def factors(self) -> list[tuple[Array, Array]]:
        """Pairs (U, V), U : r × m and V : r × n, with G = Σ UᵀV: r outer products each. With more axes, U has some of the first and V the rest."""
        if self._outers is None:
            raise VectorError(f"{self!r} is not a sum of outer products; .terms has what it is made of, np.asarray(G) the numbers")
        return self._outers

    @property
    def rank(self) -> int:
        """A bound for the rank of a matrix: how many outer products there are, or rows, or the shorter side."""
        if self.ndim != 2:
            raise VectorError(f"{self!r} has no rank: a matrix is due")
        bounds = [*self.shape]
        if self._outers is not None:
            bounds.append(sum([len(U) for U, _ in self._outers]))
        if self.is_row_sparse:
            bounds.append(len(self.rows))
        return min(bounds)

    @property
    def is_row_sparse(self) -> bool:
        """Whether each term concerns some rows only: gathers E[indices], slices, single rows."""
        return self.ndim > 0 and not any([whole(t.index[0], self.shape[0], t.sizes) or self.shape[0] == 1 for t in self.terms])

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        if not self.is_row_sparse:
            raise VectorError(f"{self!r} is not row-sparse: some term runs through all rows; use .terms, or np.asarray(G)")
        return _compact(self.terms, self.shape, self.dtype)

    @property
    def rows(self) -> Array:
        """The rows that are not zero, ascending, each once."""
        return self._rows[0]

    @property
    def values(self) -> Array:
        """The numbers of these rows."""
        return self._rows[1]

    # -- arrays ------------------------------------------------------------------------------------------

    def to_dense(self) -> Array:
        """The array."""
        return self.add_to(np.zeros(self.shape, self.dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a factored gradient is no array yet: np.asarray(G) makes one")
        return self.to_dense() if dtype is None else self.to_dense().astype(dtype, copy=False)

    def add_to(self, W: Array, k: float = 1.0) -> Array:
        """W += k · G in place: outer products by one matrix product, rows where they belong. Returns W.

        >>> import numpy as np, riesz as rz
        >>> X, W = np.ones((3, 2)), np.zeros((2, 2))
        >>> G = rz.grad(lambda W: np.sum(X @ W), factored=True)(W)
        >>> G.add_to(W, -0.5)
        array([[-1.5, -1.5],
               [-1.5, -1.5]])
        """
        if not isinstance(cast(Any, W), np.ndarray) or W.shape != self.shape or W.dtype.kind != "f":
            given = f"an array of {W.dtype}, shape {W.shape}" if isinstance(W, np.ndarray) else repr(W)
            raise VectorError(f"add_to adds to an array of floats of shape {self.shape} in place; got {given}")
        if self.terms and self.is_row_sparse:
            W[self.rows] += k * self.values
            return W
        for t in self.terms:
            _add(W, t, k)
        return W

    def __repr__(self) -> str:
        return f"Factored({' × '.join([f'{n:,}' for n in self.shape])}: {self._said})"

    @property
    def _said(self) -> str:
        if not self.terms:
            return "zero"
        if self.is_row_sparse:
            return f"row-sparse, {_count(len(self.rows), 'row')}"
        if self._outers is not None:
            return _count(sum([len(U) for U, _ in self._outers]), "outer product")
        return _count(len(self.terms), "term")

    # -- norms -------------------------------------------------------------------------------------------

    def norm(self) -> float:
        """The Euclidean norm of all entries: from rows, or from Σ (UUᵀ)∘(VVᵀ) where that is less work than multiplying out."""
        if not self.terms:
            return 0.0
        if self.is_row_sparse:
            return float(np.linalg.norm(self.values))
        if self._outers is not None:
            cut = math.prod(self._outers[0][0].shape[1:])
            flat = [(U.reshape(len(U), -1), V.reshape(len(V), -1)) for U, V in self._outers]
            count = sum([len(U) for U, _ in flat])
            if count * (cut + self.size // max(cut, 1)) < self.size and all([U.shape[1] == cut for U, _ in flat]):
                U, V = [np.concatenate(side) for side in zip(*flat, strict=True)]
                gram = (U @ U.T) * (V @ V.T)
                square = float(gram.sum())
                if square > math.sqrt(np.finfo(gram.dtype).eps) * float(np.trace(gram)):  # otherwise the terms cancel, and so do the digits
                    return math.sqrt(square)
        return float(np.linalg.norm(self.to_dense()))

    def example_norms(self, examples: int | None = None) -> Array:
        """The norm of each summand along the axis that all terms are summed over, that of the examples: ‖u_b‖·‖v_b‖ for Σ_b u_b ⊗ v_b.

        Where the value is a sum over examples that do not meet elsewhere, these are the norms of the gradients of the single examples.
        With several such axes (examples and words), `examples` is the length of the one that is meant.

        >>> import numpy as np, riesz as rz
        >>> X, W = np.array([[3.0, 4.0], [0.0, 1.0]]), np.ones((2, 4))
        >>> rz.grad(lambda W: np.sum(X @ W), factored=True)(W).example_norms()
        array([10.,  2.])
        """
        if examples == 1 or (examples is None and self.terms and all([n == 1 for t in self.terms for n in _summed(t).values()])):
            if examples == 1 or all([_summed(t) for t in self.terms]):
                return np.array([self.norm()])
        if not self.terms and examples is not None:
            return np.zeros(examples, self.dtype)
        chosen = self._examples(examples)
        total: Any = 0.0
        for i, (t, b) in enumerate(zip(self.terms, chosen, strict=True)):
            for j in range(i, len(self.terms)):
                total = total + (1.0 if i == j else 2.0) * _inner(t, b, self.terms[j], chosen[j], self.shape)
        return np.sqrt(np.maximum(total, 0.0)).astype(self.dtype, copy=False)

    def reweighted(self, weights: Any) -> Factored:
        """Σ_b weights_b · summand_b, along the axis of `example_norms`: what clipping gradients example by example needs."""
        w = np.asarray(weights, self.dtype)
        if w.ndim != 1:
            raise VectorError(f"reweighted takes one number for each example; got an array of shape {w.shape}")
        chosen = self._examples(len(w))
        return self._with([t.changed(factors=(*t.factors, (w, (b,)))) for t, b in zip(self.terms, chosen, strict=True)])

    def _examples(self, examples: int | None) -> list[int]:
        """The label of the examples in each term."""
        every = [{k: n for k, n in _summed(t).items() if n != 1 and examples in (None, n)} for t in self.terms]
        common = set.intersection(*[{t.axes.get(k) for k in found} for t, found in zip(self.terms, every, strict=True)]) if every else set()
        kept = [[k for k in found if t.axes.get(k) in common] for t, found in zip(self.terms, every, strict=True)]
        if len(common) == 1 and all([len(ks) == 1 for ks in kept]):
            return [ks[0] for ks in kept]
        lengths = sorted({n for t in self.terms for n in _summed(t).values() if n != 1})
        asked = "" if examples is None else f" and length {examples}"
        raise VectorError(
            f"examples cannot be told apart in {self!r}: one axis is due{asked} that every term is summed along; the terms are summed along axes of "
            f"lengths {lengths}" + (", choose one with example_norms(examples=length)" if examples is None and len(lengths) > 1 else "")
        )

    # -- algebra -----------------------------------------------------------------------------------------

    def _with(self, terms: Sequence[Term], dtype: Any = None) -> Factored:
        return Factored(self.shape, self.dtype if dtype is None else dtype, terms)

    def _scaled(self, k: Any) -> Factored:
        kind = self.dtype if isinstance(k, (int, float)) and not isinstance(k, np.generic) else np.result_type(self.dtype, k)
        return self._with([t.changed(scale=t.scale * float(k)) for t in self.terms], kind)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        """Sums, multiples and products with arrays from the factors; any other function of numbers from the array."""
        if method == "__call__" and len(args) <= 2:
            found = self._answer(ufunc, args, named)
            if found is not None:
                return found
        return getattr(ufunc, method)(*[x.to_dense() if isinstance(x, Factored) else x for x in args], **named)

    def _answer(self, ufunc: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        a, b = args if len(args) == 2 else (args[0], None)
        if ufunc in (np.add, np.subtract):
            sign = 1.0 if ufunc is np.add else -1.0
            if isinstance(b, Factored) and not isinstance(a, Factored):
                if list(named) == ["out"] and named["out"][0] is a and a.shape == self.shape:
                    return b.add_to(a, sign)
                return None if named else _sum(a, b, sign, 1.0)
            if isinstance(a, Factored) and not isinstance(b, Factored):
                return None if named else _sum(b, a, 1.0, sign)
            if isinstance(a, Factored) and isinstance(b, Factored) and a.shape == b.shape and not named:
                return a._with([*a.terms, *(b if sign == 1.0 else b._scaled(-1.0)).terms], np.result_type(a.dtype, b.dtype))
        if named:
            return None
        if ufunc is np.negative:
            return self._scaled(-1.0)
        if ufunc is np.multiply and any([_number(x) for x in args]):
            return self._scaled(a if b is self else b)
        if ufunc is np.true_divide and a is self and _number(b):
            return self._scaled(type(b)(1) / b if isinstance(b, np.generic) else 1.0 / b)
        if ufunc is np.matmul and self.ndim == 2 and not (isinstance(a, Factored) and isinstance(b, Factored)):
            return self._applied(np.asarray(b)) if a is self else self._turned._applied(np.asarray(a).T).T if np.ndim(a) <= 2 else None
        return None

    @cached_property
    def _turned(self) -> Factored:
        return Factored(self.shape[::-1], self.dtype, [t.changed(index=t.index[::-1]) for t in self.terms])

    def _applied(self, x: Array) -> Array:
        """G @ x, term by term: two thin products, or the rows that there are."""
        m, n = self.shape
        if x.ndim not in (1, 2) or x.shape[0] != n:
            raise VectorError(f"{self!r} times an array of shape {x.shape}: a vector of length {n} or a matrix with as many rows is due")
        total = np.zeros((m, *x.shape[1:]), np.result_type(self.dtype, x))
        for t in self.terms:
            pair = t.outer(self.shape)
            if pair is not None and len(pair[0]) * (m + n) < 2 * m * n:
                total += pair[0].T @ (pair[1] @ x)
            elif pair is None and type(t.index[0]) is Table:
                rows, found = _compact([t], self.shape, self.dtype)
                total[rows] += found @ x
            else:
                total += self._with([t]).to_dense() @ x
        return total


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(x: Any) -> bool:
    return not isinstance(x, Factored) and np.ndim(x) == 0 and np.asarray(x).dtype.kind in "fiu"


def _sum(a: Any, G: Factored, mine: float, its: float) -> Array | None:
    """its·a + mine'·G as a new array; None where shapes differ or a is no array of numbers."""
    a = np.asarray(a)
    if a.shape != G.shape or a.dtype.kind not in "fiu":
        return None
    made = np.array(a, np.result_type(a, G.dtype)) if its == 1.0 else -np.asarray(a, np.result_type(a, G.dtype))
    return G.add_to(made, mine)


# -- terms into arrays ---------------------------------------------------------------------------------------


def _add(W: Array, t: Term, k: float) -> None:
    """W += k·term in place."""
    pair = t.outer(W.shape)
    if pair is not None:
        _add_outer(W, *pair, k)
        return
    listed = [i for i, m in enumerate(t.index) if type(m) is Table]
    if len(listed) == 1:
        axis = listed[0]
        turned = t.changed(index=(t.index[axis], *t.index[:axis], *t.index[axis + 1 :]))
        front = np.moveaxis(W, axis, 0)
        rows, found = _compact([turned], front.shape, W.dtype)
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
    U, V = U.reshape(len(U), -1), V.reshape(len(V), -1)
    if W.flags.c_contiguous and W.dtype == U.dtype == V.dtype and W.dtype.char in "fd" and W.size:
        from scipy.linalg import blas  # pyright: ignore[reportMissingTypeStubs]

        gemm: Any = blas.dgemm if W.dtype.char == "d" else blas.sgemm  # pyright: ignore
        flat = W.reshape(U.shape[1], V.shape[1])
        gemm(k, V.T, U.T, beta=1.0, c=flat.T, trans_b=1, overwrite_c=1)
    else:
        W += (k * (U.T @ V)).reshape(W.shape)


def _slices(t: Term, shape: Shape) -> tuple[Any, ...] | None:
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


def _compact(terms: Sequence[Term], shape: Shape, dtype: Any) -> tuple[Array, Array]:
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
        rest = [labels_of(m)[0] if n != 1 else None for m, n in zip(t.index[1:], shape[1:], strict=True)] if _plain(t, shape) else [-1]
        if -1 not in rest:
            block = t.coefficient((*mine, *[k for k in rest if k is not None]))
            total += add_rows(at, len(rows), np.asarray(block, dtype).reshape(p.size, -1)).reshape(small)
        else:
            index = (Table(at.reshape(p.shape), mine), *t.index[1:])
            labels = distinct(index)
            np.add.at(total, tuple([values(m, labels, t.sizes) for m in index]), t.coefficient(labels))
    return rows, total


def _plain(t: Term, shape: Shape) -> bool:
    """Whether all axes but the first have a label of their own that runs through them."""
    mine = labels_of(t.index[0])
    rest = [labels_of(m) for m, n in zip(t.index[1:], shape[1:], strict=True) if n != 1]
    fits = all([n == 1 or whole(m, n, t.sizes) for m, n in zip(t.index[1:], shape[1:], strict=True)])
    return fits and len(set(rest)) == len(rest) and not any([ls[0] in mine for ls in rest])


# -- inner products, example by example ----------------------------------------------------------------------


def _summed(t: Term) -> dict[int, int]:
    """The labels that numbers of one place are summed over, those of index tables included, with their lengths."""
    shown = {k for m in t.index if type(m) is not Table for k in labels_of(m)}
    return {k: n for k, n in t.sizes.items() if k not in shown}


def _inner(s: Term, b: int, t: Term, other: int, shape: Shape) -> Array:
    """⟨s_b, t_b⟩ for each example b: the sum over all places that both terms reach."""
    shift = 1 + max(s.sizes)
    names = {k: b if k == other else k + shift for k in t.sizes}
    sizes = s.sizes | {names[k]: n for k, n in t.sizes.items()}
    factors = [*[(a, tuple([*ls])) for a, ls in s.factors], *[(a, tuple([names[k] for k in ls])) for a, ls in t.factors]]
    left, right = list(s.index), [renamed(m, names) for m in t.index]
    for i, n in enumerate(shape):
        m, q = left[i], right[i]
        if n == 1:
            continue
        free = [(x, y) for x, y in ((q, m), (m, q)) if whole(x, n, sizes) and labels_of(x)[0] != b and labels_of(x)[0] not in labels_of(y)]
        if not free:  # two places that may or may not be the same
            both = distinct((m, q))
            kind = np.result_type(*[a for a, _ in factors]) if factors else float
            factors.append((np.asarray(values(m, both, sizes) == values(q, both, sizes), kind), both))
            continue
        label, to = labels_of(free[0][0])[0], free[0][1]
        factors = [(a, ls) if label not in ls else _gathered(a, ls, label, to, sizes) for a, ls in factors]
        left, right = [[_put_in(x, label, to, sizes) for x in side] for side in (left, right)]
        del sizes[label]
    short = {k: i for i, k in enumerate([b, *[k for k in sizes if k != b]])}  # einsum takes small numbers as labels
    scale, rest = network([(a, tuple([short[k] for k in ls])) for a, ls in factors], (0,), {short[k]: n for k, n in sizes.items()})
    total = np.full(sizes[b], s.scale * t.scale * scale, np.result_type(*[a for a, _ in factors]) if factors else float)
    for a, ls in rest:
        total = total * spread(a, ls, (0,))
    return total


def _gathered(a: Array, labels: Labels, label: int, to: IndexMap, sizes: dict[int, int]) -> Operand:
    """A factor with a label replaced by a map of other labels."""
    maps = [to if k == label else along(k) for k in labels]
    out = distinct(maps)
    if type(to) is Affine and len(out) == len(labels) and whole(to, sizes[label], sizes):
        return a, tuple([labels_of(m)[0] for m in maps])
    found = a[tuple([values(m, out, sizes) for m in maps])]
    return np.broadcast_to(found, [sizes[k] for k in out]), out


def _put_in(m: IndexMap, label: int, to: IndexMap, sizes: dict[int, int]) -> IndexMap:
    """A map with a label replaced by a map of other labels."""
    return Tables().substituted(m, {label: to}, sizes)
