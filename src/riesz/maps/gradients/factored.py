"""Gradients that are not multiplied out: sums of products of arrays, placed by index maps.

The gradient of a matrix that examples went through is Σ_b u_b ⊗ v_b, that of an embedding a few rows. What follows from
the factors (norms, norms for each example, products with a vector, a step of an optimiser) is computed from the
factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...errors import VectorError
from ...relations.base import seal
from ...relations.index_algebra import Affine, labels_of
from ...runtime.displayed import Displayed
from ...spaces.layout import describe
from ..normal_form.index_maps import size_of, whole
from .placed import Array, PlacedTerm, Shape, add_term, inner_by_example, matrix, rows_of, stacked, summed_labels


class Factored(NDArrayOperatorsMixin, Displayed):
    """A gradient as a sum of terms that are not multiplied out. `np.asarray(G)` is the array; W - lr * G needs none of
    its size but the result.

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

    def __init__(self, shape: Shape, dtype: Any, terms: Sequence[PlacedTerm]) -> None:
        self.shape, self.dtype, self.terms = tuple(shape), np.dtype(dtype), tuple(terms)

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
        return None if any([p is None for p in found]) else seal(cast(Any, found))

    @property
    def factors(self) -> list[tuple[Array, Array]]:
        """Pairs (U, V), U : r × m and V : r × n, with G = Σ UᵀV: r outer products each. With more axes, U has some of
        the first and V the rest."""
        if self._outers is None:
            instead = ".terms has what it is made of, np.asarray(G) the numbers"
            raise VectorError(f"{self!r} is not a sum of outer products; {instead}")
        return list(self._outers)

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
        """Whether only some rows are concerned: those of gathers E[indices], slices, single rows."""
        if not self.ndim:
            return False
        runs = [t for t in self.terms if type(t.index[0]) is Affine]
        return sum([size_of(labels_of(t.index[0]), t.sizes) for t in runs]) < self.shape[0]

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        if not self.is_row_sparse:
            why = "its terms run through all rows; use .terms, or np.asarray(G)"
            raise VectorError(f"{self!r} is not row-sparse: {why}")
        return seal(rows_of(self.terms, self.shape, self.dtype))

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
        if np.ndarray not in type(W).__mro__ or W.shape != self.shape or W.dtype.kind != "f":
            raise VectorError(f"add_to adds to an array of floats of shape {self.shape} in place; got {describe(W)}")
        if self.terms and self.is_row_sparse:
            W[self.rows] += k * self.values
            return W
        for t in self.terms:
            add_term(W, t, k)
        return W

    def __repr__(self) -> str:
        said = "zero" if not self.terms else _count(len(self.terms), "term")
        if self.terms and self.is_row_sparse:
            said = f"row-sparse, {_count(len(self.rows), 'row')}"
        elif self.terms and self._outers is not None:
            said = _count(sum([len(U) for U, _ in self._outers]), "outer product")
        return f"Factored({' × '.join([f'{n:,}' for n in self.shape])}: {said})"

    # -- norms -------------------------------------------------------------------------------------------

    def norm(self) -> float:
        """The Euclidean norm of all entries: from rows, or from Σ (UUᵀ)∘(VVᵀ) where that is less work than multiplying
        out."""
        if not self.terms:
            return 0.0
        if self.is_row_sparse:
            return float(np.linalg.norm(self.values))
        if self._outers is not None:
            flat = [(matrix(U), matrix(V)) for U, V in self._outers]
            m, n = flat[0][0].shape[1], flat[0][1].shape[1]
            if sum([len(U) for U, _ in flat]) * (m + n) < m * n and all([U.shape[1] == m for U, _ in flat]):
                U, V = [np.concatenate(side) for side in zip(*flat, strict=True)]
                gram = (U @ U.T) * (V @ V.T)
                square, least = float(gram.sum()), math.sqrt(np.finfo(gram.dtype).eps) * float(np.trace(gram))
                if square > least:  # otherwise the terms cancel, and so do the digits
                    return math.sqrt(square)
        return float(np.linalg.norm(self.to_dense()))

    def example_norms(self, examples: int | None = None) -> Array:
        """The norm of each summand along the axis that all terms are summed over, that of the examples: ‖u_b‖·‖v_b‖ for
        Σ_b u_b ⊗ v_b.

        Where the value is a sum over examples that do not meet elsewhere, these are the norms of the gradients of the
        single examples. With several such axes (examples and words), `examples` is the length of the one that is meant.

        >>> import numpy as np, riesz as rz
        >>> X, W = np.array([[3.0, 4.0], [0.0, 1.0]]), np.ones((2, 4))
        >>> rz.grad(lambda W: np.sum(X @ W), factored=True)(W).example_norms()
        array([10.,  2.])
        """
        alone = bool(self.terms) and all([set(summed_labels(t).values()) == {1} for t in self.terms])
        if examples == 1 or (examples is None and alone):
            return np.array([self.norm()], self.dtype)
        if not self.terms and examples is not None:
            return np.zeros(examples, self.dtype)
        terms = stacked(self.terms, self._examples(examples))
        total: Any = 0.0
        for i, one in enumerate(terms):
            for j, other in enumerate(terms[: i + 1]):
                total = total + (1.0 if i == j else 2.0) * inner_by_example(*one, *other, self.shape)
        return np.sqrt(np.maximum(total, 0.0)).astype(self.dtype, copy=False)

    def reweighted(self, weights: Any) -> Factored:
        """Σ_b weights_b · summand_b, along the axis of `example_norms`: what clipping gradients example by example
        needs."""
        w = np.asarray(weights, self.dtype)
        if w.ndim != 1:
            raise VectorError(f"reweighted takes one number for each example; got an array of shape {w.shape}")
        if len(w) == 1:
            return self._scaled(w[0])
        chosen = self._examples(len(w)) if self.terms else []
        pairs = zip(self.terms, chosen, strict=True)
        return self._with([replace(t, factors=(*t.factors, (w, (b,)))) for t, b in pairs])

    def _examples(self, examples: int | None) -> list[int]:
        """The label of the examples in each term."""
        every = [{k: n for k, n in summed_labels(t).items() if n != 1 and examples in (None, n)} for t in self.terms]
        axes: list[set[Any]] = [{t.axes.get(k) for k in found} for t, found in zip(self.terms, every, strict=True)]
        common = axes[0].intersection(*axes[1:]) if axes else set[Any]()
        kept = [[k for k in found if t.axes.get(k) in common] for t, found in zip(self.terms, every, strict=True)]
        if len(common) == 1 and all([len(ks) == 1 for ks in kept]):
            return [ks[0] for ks in kept]
        lengths = [sorted([n for n in summed_labels(t).values() if n != 1]) for t in self.terms]
        asked = "" if examples is None else f" of length {examples}"
        several = examples is None and any([len(found) > 1 for found in lengths])
        hint = "; choose one with example_norms(examples=length)" if several else ""
        raise VectorError(
            f"the examples in {self!r} cannot be told apart: every term must be summed along one axis{asked}, the same "
            f"for all; the terms are summed along axes of lengths {', '.join(map(str, lengths)) or 'none'}{hint}"
        )

    # -- algebra -----------------------------------------------------------------------------------------

    def _with(self, terms: Sequence[PlacedTerm], dtype: Any = None) -> Factored:
        return Factored(self.shape, self.dtype if dtype is None else dtype, terms)

    def _scaled(self, k: Any) -> Factored:
        own = isinstance(k, (int, float)) and not isinstance(k, np.generic)
        kind = self.dtype if own else np.result_type(self.dtype, k)
        return self._with([replace(t, scale=t.scale * float(k)) for t in self.terms], kind)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
        """Sums, multiples and products with arrays from the factors; any other function of numbers from the array."""
        if isinstance(named.get("out", (None,))[0], Factored):  # G += …: G becomes the sum
            del named["out"]
        if method == "__call__" and len(args) <= 2:
            found = self._answer(ufunc, args, named)
            if found is not None:
                return found
        return getattr(ufunc, method)(*[x.to_dense() if isinstance(x, Factored) else x for x in args], **named)

    def _answer(self, ufunc: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        a: Any = args[0]
        b: Any = args[-1]
        if ufunc in (np.add, np.subtract):
            sign = 1.0 if ufunc is np.add else -1.0
            if isinstance(b, Factored) and not isinstance(a, Factored):
                if list(named) == ["out"] and named["out"][0] is a and a.shape == self.shape:
                    return b.add_to(a, sign)
                return None if named else _sum(a, b, sign, 1.0)
            if isinstance(a, Factored) and not isinstance(b, Factored):
                return None if named else _sum(b, a, 1.0, sign)
            if isinstance(a, Factored) and isinstance(b, Factored) and a.shape == b.shape and not named:
                more = (b if sign == 1.0 else b._scaled(-1.0)).terms
                return a._with([*a.terms, *more], np.result_type(a.dtype, b.dtype))
        if named:
            return None
        if ufunc is np.negative:
            return self._scaled(-1.0)
        if ufunc is np.multiply and any([_number(x) for x in args]):
            return self._scaled(a if b is self else b)
        if ufunc is np.true_divide and a is self and _number(b):
            return self._scaled(1.0 / b)
        if ufunc is np.matmul and self.ndim == 2 and not (isinstance(a, Factored) and isinstance(b, Factored)):
            if a is self:
                return self._applied(np.asarray(b))
            return self._turned._applied(np.asarray(a).T).T if np.ndim(a) <= 2 else None
        return None

    @cached_property
    def _turned(self) -> Factored:
        return Factored(self.shape[::-1], self.dtype, [replace(t, index=t.index[::-1]) for t in self.terms])

    def _applied(self, x: Array) -> Array:
        """G @ x, term by term: two thin products, or the rows that there are."""
        m, n = self.shape
        if x.ndim not in (1, 2) or x.shape[0] != n:
            due = f"a vector of length {n} or a matrix with as many rows is due"
            raise VectorError(f"{self!r} times an array of shape {x.shape}: {due}")
        total = np.zeros((m, *x.shape[1:]), np.result_type(self.dtype, x))
        for t in self.terms:
            pair = t.outer(self.shape)
            columns = x.shape[1] if x.ndim == 2 else 1
            if pair is not None and len(pair[0]) * (m + n) * columns <= (len(pair[0]) + columns) * m * n:
                total += pair[0].T @ (pair[1] @ x)
            elif pair is None and not whole(t.index[0], m, t.sizes):
                rows, found = rows_of([t], self.shape, self.dtype)
                total[rows] += found @ x
            else:
                total += self._with([t]).to_dense() @ x
        return total


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(x: Any) -> bool:
    return not isinstance(x, Factored) and np.ndim(x) == 0 and np.asarray(x).dtype.kind in "fiu"


def _sum(a: Any, G: Factored, mine: float, its: float) -> Any:
    """its·a + mine·G as a new array, its = ±1; None where shapes differ or a is no array of numbers."""
    a = np.asarray(a)
    if a.ndim == 0 and a == 0:  # where Python's sum begins
        return G._scaled(mine)  # pyright: ignore[reportPrivateUsage]
    if a.shape != G.shape or a.dtype.kind not in "fiu":
        return None
    made = np.array(a, np.result_type(a, G.dtype)) if its == 1.0 else -np.asarray(a, np.result_type(a, G.dtype))
    return G.add_to(made, mine)
