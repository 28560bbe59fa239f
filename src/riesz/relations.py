"""Relations R ⊆ X × Y with multiplicities: matrices of natural numbers that know their shape   (§2.2.3).

A relation is used in one way, relational reduction (red_R v)_y = Σ_{(x,y)∈R} v_x, and its converse gives the adjoint.
Each kind here says how it reduces (`reduce`), what its converse is and, at the least, which pairs it holds.
Composition multiplies multiplicities out: red_S • red_R = red_{R.then(S)} as maps, not as sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .errors import RelationError
from .interning import Node
from .sets import Plus, Seg, Set, boxes, unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.intp]
    Array = NDArray[Any]


class Relation(Node):
    """R ⊆ source × target. `R.converse`, `R.then(S)`, `R.pairs()`, `R.matrix()`."""

    source: Set
    target: Set

    def adopt(self) -> None:
        for s in (self.source, self.target):
            if not isinstance(cast(Any, s), Set):
                raise RelationError(f"a relation is between index sets; got {s!r}: write seg({s!r})")

    @property
    def converse(self) -> Relation:
        """Rᵀ = {(y, x) | (x, y) ∈ R}; the converse of the converse is the relation itself."""
        raise NotImplementedError

    def reduce(self, v: Array) -> Array:
        """red_R along the middle axis of an array of shape (a, |source|, b)."""
        raise NotImplementedError

    def reduce_into(self, total: Array, v: Array) -> None:
        """Add red_R v to an array of shape (a, |target|, b)."""
        total += self.reduce(v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        """Positions in source, positions in target, multiplicities."""
        raise NotImplementedError

    @property
    def tile(self) -> slice | None:
        """The slice of the target that the source is copied to, if that is what red does."""
        return None

    def then(self, other: Relation) -> Relation:
        """R followed by S: multiplicity of (x, z) is Σ_y R(x, y)·S(y, z)."""
        if self.target is not other.source:
            raise RelationError(f"cannot follow {self} by {other}: the first ends in {self.target}, the second starts at {other.source}")
        match self, other:
            case (Empty(), _) | (_, Empty()):
                return Empty(self.source, other.target)
            case Diagonal(), _ if self.source is self.target:
                return other
            case _, Diagonal() if other.source is other.target:
                return self
            case Full(), Full():
                return Full(self.source, other.target, self.times * other.times * self.target.size)
            case Function(), Function():
                return Function(self.source, other.target, freeze(other.image[self.image]))
            case Gather(), Gather():
                return other.converse.then(self.converse).converse
            case _:
                return _from_matrix(self.source, other.target, self._product(other))

    def _product(self, other: Relation) -> Any:
        """The product of multiplicities: integers, or floats where they would overflow."""
        rough = self.matrix().astype(float) @ other.matrix().astype(float)
        return rough if rough.nnz and rough.max() > 2.0**53 else self.matrix() @ other.matrix()

    def matrix(self) -> Any:
        """|source| × |target| multiplicities as a SciPy CSR array."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        rows, cols, times = self.pairs()
        return cast(Any, sparse).csr_array((times, (rows, cols)), shape=(self.source.size, self.target.size))

    @cached_property
    def _weights(self) -> Any:
        return self.matrix().T.tocsr().astype(float)

    def _sparse_reduce(self, v: Array) -> Array:
        a, n, b = v.shape
        wide = np.moveaxis(v, 1, 0).reshape(n, a * b)
        weights = self._weights if v.dtype == float else self._weights.astype(v.dtype)
        return np.moveaxis((weights @ wide).reshape(self.target.size, a, b), 0, 1)

    def block(self, rows: Indices | None, cols: Indices | None, source: Set, target: Set) -> Relation:
        """The relation between two parts, given by positions (None: all), renamed to source and target."""
        if rows is None and cols is None and source is self.source and target is self.target:
            return self
        match self:
            case Empty():
                return Empty(source, target)
            case Full():
                return Full(source, target, self.times)
            case _:
                matrix = self.matrix()
                matrix = matrix if rows is None else matrix[rows]
                matrix = matrix if cols is None else matrix[:, cols]
                return _from_matrix(source, target, matrix)

    def __repr__(self) -> str:
        from .show.unicode import show_relation

        return show_relation(self)


class Empty(Relation):
    """∅: no pairs; red_∅ = 0."""

    @property
    def converse(self) -> Relation:
        return Empty(self.target, self.source)

    def reduce(self, v: Array) -> Array:
        return np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        none = np.zeros(0, np.intp)
        return none, none, none


class Diagonal(Relation):
    """{(x, x)}: red = id. Source and target may be two names of one size (a regrouping of indices)."""

    def check(self) -> None:
        if self.source.size != self.target.size:
            raise RelationError(f"a diagonal needs sets of one size; {self.source} has {self.source.size}, {self.target} has {self.target.size}")

    @property
    def converse(self) -> Relation:
        return Diagonal(self.target, self.source)

    def reduce(self, v: Array) -> Array:
        return v

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        every = np.arange(self.source.size)
        return every, every, np.ones_like(every)


class Full(Relation):
    """X × Y, every pair, each `times` times: a sum, broadcast."""

    times: int = 1

    @property
    def converse(self) -> Relation:
        return Full(self.target, self.source, self.times)

    def reduce(self, v: Array) -> Array:
        total = v.sum(axis=1, keepdims=True)
        total = total if self.times == 1 else total * float(self.times)
        return np.broadcast_to(total, (v.shape[0], self.target.size, v.shape[2]))

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        n, m = self.source.size, self.target.size
        return np.repeat(np.arange(n), m), np.tile(np.arange(m), n), np.full(n * m, self.times)


class Function(Relation):
    """{(x, f(x))}: a total function, by its image; red scatters and sums."""

    image: Any

    def check(self) -> None:
        _within(self.image, self.target, "the image")
        if self.image.shape != (self.source.size,):
            raise RelationError(f"a function on {self.source} needs {self.source.size} values, got an array of shape {self.image.shape}")

    @property
    def converse(self) -> Relation:
        return Gather(self.target, self.source, self.image)

    def reduce(self, v: Array) -> Array:
        return self._sparse_reduce(v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        every = np.arange(self.source.size)
        return every, self.image, np.ones_like(every)


class Gather(Relation):
    """{(f(y), y)}: the converse of a function Y → X, by its image; red copies."""

    image: Any

    def check(self) -> None:
        _within(self.image, self.source, "the index array")
        if self.image.shape != (self.target.size,):
            raise RelationError(f"a gather into {self.target} needs {self.target.size} indices, got an array of shape {self.image.shape}")

    @property
    def converse(self) -> Relation:
        return Function(self.target, self.source, self.image)

    def reduce(self, v: Array) -> Array:
        return np.take(v, self.image, axis=1)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        every = np.arange(self.target.size)
        return self.image, every, np.ones_like(every)


class Point(Relation):
    """{(x, ())} for one x: red is the projection π_x, a view."""

    at: int

    def check(self) -> None:
        _within(np.array([self.at]), self.source, "the point")

    @property
    def converse(self) -> Relation:
        return Place(self.target, self.source, self.at)

    def reduce(self, v: Array) -> Array:
        return v[:, self.at : self.at + 1, :]

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        one = np.ones(1, np.intp)
        return one * self.at, one * 0, one


class Place(Relation):
    """{((), x)} for one x: red is the injection ι_x."""

    at: int

    def check(self) -> None:
        _within(np.array([self.at]), self.target, "the point")

    @property
    def converse(self) -> Relation:
        return Point(self.target, self.source, self.at)

    def reduce(self, v: Array) -> Array:
        total = np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        self.reduce_into(total, v)
        return total

    def reduce_into(self, total: Array, v: Array) -> None:
        total[:, self.at, :] += v[:, 0, :]

    @property
    def tile(self) -> slice | None:
        return slice(self.at, self.at + 1)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        one = np.ones(1, np.intp)
        return one * 0, one * self.at, one


class Range(Relation):
    """{(start + step·k, k)}: red takes a slice, a view; `turned`, {(k, start + step·k)}: red puts one into zeros."""

    start: int
    step: int
    turned: bool = False

    def check(self) -> None:
        long, short = (self.target, self.source) if self.turned else (self.source, self.target)
        ends = np.array([self.start, self.start + self.step * (short.size - 1)]) if short.size else np.zeros(0, np.intp)
        _within(ends, long, "the slice")

    @property
    def converse(self) -> Relation:
        return Range(self.target, self.source, self.start, self.step, not self.turned)

    def _slice(self, count: int) -> slice:
        end = self.start + self.step * count
        return slice(self.start, None if end < 0 else end, self.step) if count else slice(0, 0)

    def reduce(self, v: Array) -> Array:
        if not self.turned:
            return v[:, self._slice(self.target.size)]
        total = np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        self.reduce_into(total, v)
        return total

    @property
    def tile(self) -> slice | None:
        return self._slice(self.source.size) if self.turned else None

    def reduce_into(self, total: Array, v: Array) -> None:
        if self.turned:
            total[:, self._slice(self.source.size)] += v
        else:
            total += self.reduce(v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        short = np.arange(self.source.size if self.turned else self.target.size)
        long = self.start + self.step * short
        return (short, long, np.ones_like(short)) if self.turned else (long, short, np.ones_like(short))


class Triangular(Relation):
    """{(i, j) | i ≤ j}, or i ≥ j when `lower` is false: prefix and suffix sums. No pair is stored."""

    lower: bool = True

    def check(self) -> None:
        if not isinstance(self.source, Seg) or self.source is not self.target:
            raise RelationError(f"a triangular relation orders one segment; got {self.source} and {self.target}")

    @property
    def converse(self) -> Relation:
        return Triangular(self.source, self.target, not self.lower)

    def reduce(self, v: Array) -> Array:
        return np.cumsum(v, axis=1) if self.lower else np.cumsum(v[:, ::-1], axis=1)[:, ::-1]

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        rows, cols = np.triu_indices(self.source.size)
        rows, cols = (rows, cols) if self.lower else (cols, rows)
        return rows, cols, np.ones_like(rows)


class Pairs(Relation):
    """An explicit list of pairs, with multiplicities; sorted, no pair twice."""

    rows: Any
    cols: Any
    times: Any

    def check(self) -> None:
        _within(self.rows, self.source, "the first of the pairs")
        _within(self.cols, self.target, "the second of the pairs")

    @cached_property
    def _converse(self) -> Relation:
        order = np.lexsort((self.rows, self.cols))
        turned = Pairs(self.target, self.source, *(freeze(a[order]) for a in (self.cols, self.rows, self.times)))
        turned.__dict__["_converse"] = self
        return turned

    @property
    def converse(self) -> Relation:
        return self._converse

    def reduce(self, v: Array) -> Array:
        return self._sparse_reduce(v)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        return self.rows, self.cols, self.times


class Beside(Relation):
    """[R₁, …, Rₙ] ⊆ (X₁ + … + Xₙ) × Y: relations into one set side by side; or, `turned`, the converse ⟨R₁ᵀ, …, Rₙᵀ⟩."""

    members: tuple[Relation, ...]
    turned: bool = False

    def check(self) -> None:
        inner, outer = (self.source, self.target) if self.turned else (self.target, self.source)
        fits = isinstance(outer, Plus) and outer.summands == tuple([r.source for r in self.members])
        if not fits or any([r.target is not inner for r in self.members]):
            raise RelationError(f"relations side by side go from the parts of {outer} to {inner}; got {list(self.members)}")

    @property
    def converse(self) -> Relation:
        return Beside(self.target, self.source, self.members, not self.turned)

    def reduce(self, v: Array) -> Array:
        if not self.members:
            return np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)
        if self.turned:
            return np.concatenate([r.converse.reduce(v) for r in self.members], axis=1)
        ends = np.cumsum([r.source.size for r in self.members])[:-1]
        pieces = np.split(v, ends, axis=1)
        return sum([r.reduce(p) for r, p in zip(self.members, pieces, strict=True)], np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype))

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        offsets = cast(Plus, self.source if not self.turned else self.target).offsets
        found = [(r.pairs(), o) for r, o in zip(self.members, offsets, strict=True)]
        none = np.zeros(0, np.intp)
        rows = np.concatenate([none, *[p[0] + o for p, o in found]])
        cols = np.concatenate([none, *[p[1] for p, _ in found]])
        times = np.concatenate([none, *[p[2] for p, _ in found]])
        return (cols, rows, times) if self.turned else (rows, cols, times)


def freeze(a: Array) -> Array:
    """The array itself where it is read-only, otherwise a read-only copy."""
    if a.flags.writeable:
        a = a.copy()
        a.flags.writeable = False
    return a


def _within(at: Array, where: Set, what: str) -> None:
    if at.size and not (at.min() >= 0 and at.max() < where.size):
        first = at[(at < 0) | (at >= where.size)][0]
        raise RelationError(f"{what} holds {first}, which is outside {where}: its positions are 0 to {where.size - 1}")


def _from_matrix(source: Set, target: Set, matrix: Any) -> Relation:
    coo = matrix.tocsr().tocoo()
    if not coo.nnz:
        return Empty(source, target)
    rows, cols = coo.coords
    return Pairs(source, target, freeze(rows.astype(np.intp)), freeze(cols.astype(np.intp)), freeze(coo.data))


def _positions(values: Any, where: Set) -> Indices:
    """Positions of elements; an integer array is taken as positions, anything else element by element."""
    given: Any = np.asarray(cast(Any, values)) if isinstance(values, np.ndarray) or isinstance(where, Seg) else None
    if given is not None and given.dtype.kind in "iu" and given.ndim == 1:
        return given.astype(np.intp)
    if given is not None and given.size == 0:
        return np.zeros(0, np.intp)
    try:
        return np.array([where.position(v) for v in values], np.intp)
    except (ValueError, TypeError) as problem:
        raise RelationError(f"not a relation on {where}: {problem}") from None


def full(source: Set, target: Set) -> Relation:
    """X × Y, every pair.

    >>> from riesz import seg
    >>> full(seg(2), seg(3)).then(full(seg(3), seg(1))).times
    3
    """
    return Full(source, target, 1)


def diagonal(index: Set) -> Relation:
    """{(x, x) | x ∈ X}."""
    return Diagonal(index, index)


def empty(source: Set, target: Set) -> Relation:
    """The relation without pairs."""
    return Empty(source, target)


def function(source: Set, target: Set, image: Any) -> Relation:
    """{(x, f(x))}, with f given by its values (positions or elements of the target) or as a Python function.

    >>> from riesz import seg
    >>> R = function(seg(4), seg(2), [0, 1, 0, 1])
    >>> R.matrix().toarray().tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """
    values = [image(x) for x in source] if callable(image) else image
    return Function(source, target, freeze(_positions(values, target)))


def gather(source: Set, target: Set, index: Any) -> Relation:
    """{(f(y), y)}: the converse of a function; (red v)_y = v_{f(y)}."""
    return function(target, source, index).converse


def triangular(index: Set) -> Relation:
    """{(i, j) | i ≤ j} on a segment; red is the prefix sum."""
    return Triangular(index, index, True)


def pairs(source: Set, target: Set, given: Iterable[tuple[Any, Any]]) -> Relation:
    """An explicit relation; a pair given twice counts twice.

    >>> from riesz import seg
    >>> pairs(seg(2), seg(2), [(0, 1), (0, 1), (1, 0)]).matrix().toarray().tolist()
    [[0, 2], [1, 0]]
    """
    listed: list[Any] = list(given)
    for pair in listed:
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(cast("tuple[Any, ...]", pair)) != 2:
            raise RelationError(f"a relation is made of pairs (x, y); got {pair!r}")
    rows = _positions([p[0] for p in listed], source)
    cols = _positions([p[1] for p in listed], target)
    _within(rows, source, "the first of the pairs")
    _within(cols, target, "the second of the pairs")
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    ones = np.ones(len(rows), np.intp)
    return _from_matrix(source, target, cast(Any, sparse).coo_array((ones, (rows, cols)), shape=(source.size, target.size)))


def relation(source: Set, target: Set, given: Any) -> Relation:
    """A relation from what is at hand: pairs (x, y), a Python function x ↦ y, or a |X| × |Y| matrix of multiplicities (NumPy or SciPy).

    >>> import riesz as rz, numpy as np
    >>> R = rz.relation(rz.seg(2), rz.seg(3), [(0, 2), (1, 0), (1, 2)])
    >>> R.converse.matrix().toarray().tolist()
    [[0, 1], [0, 0], [1, 1]]
    >>> rz.relation(rz.seg(4), rz.seg(2), lambda x: x % 2)
    f:4→2
    """
    if callable(given):
        return function(source, target, given)
    shape = getattr(given, "shape", None)
    if shape == (2, 2) == (source.size, target.size) and isinstance(given, np.ndarray):
        raise RelationError("a 2 × 2 array may be a matrix or two pairs; use relations.pairs(X, Y, …) or a SciPy matrix to say which")
    if shape is None or shape == (0,) or (len(shape) == 2 and shape[1] == 2 and shape != (source.size, target.size)):
        return pairs(source, target, given)
    if shape != (source.size, target.size):
        wanted = (source.size, target.size)
        raise RelationError(f"a relation on {source} × {target} is a matrix of shape {wanted} or a list of pairs; got an array of shape {shape}")
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    matrix = cast(Any, sparse).csr_array(given)
    counts = cast("Array", matrix.data)
    if counts.size and (counts.min() < 0 or not np.array_equal(counts, np.round(counts))):
        raise RelationError("multiplicities are natural numbers; the matrix given has others")
    matrix.eliminate_zeros()
    return _from_matrix(source, target, matrix.astype(np.intp))


def point(index: Set, at: int) -> Relation:
    """{(x, ())} for the element at one position: the projection π_x of a copower is its reduction."""
    return Point(index, unit, at)


def blocks(relation: Relation) -> list[list[Relation]]:
    """The relation between the boxes of its sets: blocks[j][i] goes from box i of the source to box j of the target."""
    if isinstance(relation, Beside) and relation.members and all([r.source.box is not None and r.target.box is not None for r in relation.members]):
        return [[r.converse] for r in relation.members] if relation.turned else [list(relation.members)]
    sources, targets = boxes(relation.source), boxes(relation.target)
    if isinstance(relation, Diagonal) and relation.source is relation.target:
        return [[diagonal(X) if i == j else Empty(X, Y) for i, (X, _) in enumerate(sources)] for j, (Y, _) in enumerate(targets)]
    return [[relation.block(at, to, X, Y) for X, at in sources] for Y, to in targets]
