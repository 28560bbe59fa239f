"""A linear map as a matrix: what NumPy, SciPy and pandas ask of one, products and sums, rows and columns, blocks by
name."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import IndexSetError, SpaceError, VectorError
from ..programs.program import Program
from ..runtime import tuning
from ..spaces.layout import held
from ..spaces.space import DirectSum, Space, Weighted, real_space
from ..terms.term import Arrow, Term
from .leaves import IN_TRACES, any_traced
from .matrices.written_maps import as_matrix, code_of, is_sparse, is_symmetric, written
from .structured import Structured, of_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .linear_map import LinearMap


class AsMatrix(Structured):
    """The part of a LinearMap that a matrix has."""

    __pandas_priority__ = 5000
    ndim = 2

    if TYPE_CHECKING:  # what LinearMap has

        @property
        def H(self) -> LinearMap: ...
        def __call__(self, *vectors: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __init__(self, *given: Any, **named: Any) -> None: ...
        @classmethod
        def of(cls, term: Term) -> LinearMap: ...

    # -- what NumPy and SciPy ask ---------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of entries of the matrix."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        """The number of rows. `len(L.program)` counts the steps."""
        return self.shape[0]

    def __iter__(self) -> Any:
        """The rows, as arrays."""
        return iter([self[i] for i in range(len(self))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The matrix: np.asarray(L)."""
        caller = sys._getframe(1).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
        if caller == "scipy.sparse._base":  # A @ L asks whether L is an array; one that is not multiplies by itself
            held = np.empty((), object)
            held[()] = self
            return held
        if copy is False:
            raise ValueError(
                "a linear map holds no matrix: np.asarray(L, copy=False) cannot give one without making it"
            )
        found = self.to_dense()
        return found if dtype is None or any_traced(found) else found.astype(dtype, copy=False)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """NumPy's functions: those that give numbers or vectors by structure, others on the matrix."""
        own = _FUNCTIONS.get(function)
        if own is not None and args and isinstance(args[0], AsMatrix):
            found = own(*args, **named)
            if found is not NotImplemented:
                return found
        return function(*_arrays(args), **{k: _arrays(v) for k, v in named.items()})

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        # SciPy's optimisers ask isinstance(J, LinearOperator). Huge maps are; others become the matrices that most of
        # their methods want. `type(L)` is LinearMap.
        m, n = self.shape
        scipy = sys.modules.get("scipy.sparse.linalg")
        huge = m * n > tuning.DENSE_UNKNOWNS**2 and (min(m, n) > 256 or m * n > 1 << 27)
        if scipy is None or not huge or not (self.domain.plain and self.codomain.plain):
            return type(self)
        return _operator_kind(type(self), scipy.LinearOperator)

    def __reduce__(self) -> Any:
        return _restored, (type(self),), cast(Any, self).__getstate__()

    @of_numbers
    def toarray(self) -> NDArray[Any]:
        """The same as `to_dense`, in SciPy's spelling."""
        return self.to_dense()

    def dot(self, other: Any) -> Any:
        """The same as L @ other, in NumPy's spelling."""
        return self @ other

    # -- products and sums ----------------------------------------------------------------------------------

    def _product(self, X: Any) -> Any:
        """L @ X for what is no map. See Note [Vectors and matrices]."""
        if is_sparse(X):
            return self @ cast(
                Any, self._of_matrix(X, (self.shape[1], X.shape[-1]), flat_space(X.shape[-1]), self.domain)
            )
        given = _plain(X, self)
        if given is None:
            return self(X)
        how = _reading(self.domain, np.shape(given), 0, "L @ X")
        if how == "element":
            return self(given)
        return self.matvec(given) if how == "coordinates" else self.matmat(given)

    def _product_from_left(self, X: Any) -> Any:
        """X @ L for what is no map: Lᵀ of each row."""
        if is_sparse(X):
            return (
                cast(Any, self._of_matrix(X, (X.shape[0], self.shape[0]), self.codomain, flat_space(X.shape[0]))) @ self
            )
        given = _plain(X, self)
        if given is None:
            return self.T(X)
        how = _reading(self.codomain, np.shape(given), -1, "X @ L")
        if how == "element":
            return self.T(given)
        return self.T.matvec(given) if how == "coordinates" else self.T.matmat(given.T).T

    def _of_matrix(self, given: Any, shape: tuple[int, int], domain: Space, codomain: Space) -> LinearMap:
        """A matrix as a map."""
        matrix = as_matrix(_of_tables(given), shape)
        facts = ("symmetric",) if domain is codomain and domain.plain and is_symmetric(matrix) else ()
        kind = np.result_type(np.float32, np.dtype(str(matrix.dtype)))
        return self._from_code(code_of(matrix), domain, codomain, facts, kind)

    def summand(self, other: Any) -> LinearMap:
        """What is added to this map, as one between the same spaces."""
        if hasattr(other, "beside"):
            return other.beside(self)
        if isinstance(other, Arrow):
            if not isinstance(other, Term):
                alike = self.domain.unweighted is self.codomain.unweighted
                other = other.at(self.domain.unweighted if alike else self.domain)
            found = self.of(other)
            if found.codomain is self.codomain.unweighted and found.domain is self.domain.unweighted:
                found = cast(Any, type(self))(self.domain, self.codomain, found.program)
            found.dtype = self.dtype  # a term has no type of its own
            plain = found.domain is found.codomain and found.domain.plain
            if plain and found.structure.kind in ("identity", "diagonal"):
                signs = {"definite"} if (found.diagonal() >= 0).all() else set[str]()
                found.facts = found.facts | {"symmetric"} | signs
            return found
        if isinstance(other, (int, float, complex)) and not isinstance(other, bool):
            other = np.asarray(other)
        return self._of_matrix(other, self.shape, self.domain, self.codomain)

    def _from_code(
        self, code: Any, domain: Space, codomain: Space, facts: Iterable[str] = (), dtype: Any = None
    ) -> LinearMap:
        """The map of code on coordinates."""
        kind = self.dtype if dtype is None else np.dtype(dtype)
        found = written(code, domain, codomain, kind)
        if found.point:
            return cast(Any, type(self))(domain, codomain, None, kind, lambda: found, facts, leaves=IN_TRACES)
        return cast(Any, type(self))(domain, codomain, found.program, kind, facts=facts)

    # -- rows, columns and blocks ---------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """L[rows, columns] on the flattened matrix: a map, a row or column as an array where one side is a number, a
        number where both are. Each side is a number, a slice, positions or a mask, and chosen by itself: L[[0, 2], [1,
        3]] has two rows and two columns, as with np.ix_. Names choose blocks: J["u", "a"], J["u"], J[:, "a"]; a tuple
        is a path into a tree, J[("u", 0), "a"]. Beside a name, a number counts the parts of a tuple.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> L[0, 1], L[0], L[:, 1:].to_dense().tolist()
        (1.0, array([2., 1., 0.]), [[1.0, 0.0], [3.0, 2.0]])
        >>> J = rz.jacobian(lambda p: {"u": p["a"] * p["b"], "v": p["b"] ** 2})({"a": 2.0, "b": np.ones(2)})
        >>> J["u", "a"].shape, J["u", "b"].structure
        ((2, 1), diagonal)
        """
        pair: Any = key if isinstance(key, tuple) and len(cast(Any, key)) == 2 else (key, slice(None))
        rows, columns = cast("tuple[Any, Any]", pair)
        if isinstance(key, tuple) and len(cast(Any, key)) > 2:
            raise SpaceError(f"L[rows, columns] takes two indices, a matrix has two axes; got {key!r}")
        shapes: Any = np.shape(rows), np.shape(columns)
        if [len(s) for s in shapes] == [2, 2] and shapes[0][1] == shapes[1][0] == 1:  # of np.ix_
            rows, columns = np.ravel(rows), np.ravel(columns)
        named = any([isinstance(side, (str, tuple)) for side in (rows, columns)])
        down, across = _side(self.codomain, rows, named, "rows"), _side(self.domain, columns, named, "columns")
        if isinstance(down, int):
            row = self.T._line(down)
            if isinstance(across, int):
                return float(row[across]) if self.leaves is None and row.dtype == float else row[across]
            return row[_coordinates(self.domain, across)]
        if isinstance(across, int):
            return self._line(across)[_coordinates(self.codomain, down)]
        found = cast(Any, self)
        if down is not None:
            found = self._reading_of(self.codomain, down, "rows") @ found
        return found if across is None else found @ self._reading_of(self.domain, across, "columns").T

    def _line(self, j: int) -> Any:
        """A column of the matrix."""
        unit = np.zeros((self.shape[1], 1), self.dtype)
        unit[j] = 1.0
        found = self._on_coordinates(unit) if self.leaves is None else self.leaves.matmat(cast(Any, self), unit)
        return found[:, 0]

    def _reading_of(self, space: Space, which: Any, what: str) -> LinearMap:
        """The map that reads a part of a space, or some coordinates."""
        if not isinstance(which, _Part):
            return cast(Any, self)._selection(space, which, what)
        program = Program()
        slots = [program.input(leaf.shape) for leaf in space.leaves]
        program.outputs = slots[which.first : which.first + len(which.space.leaves)]
        return cast(Any, type(self))(space, which.space, program, self.dtype)


# -- vectors and matrices -------------------------------------------------------------------------------------

# Note [Vectors and matrices]: an array in a product with a map is an element of the space if it has its shape. If not,
# a matrix with as many rows (before L: columns) as the space has dimensions holds vectors of coordinates; and one
# vector of so many numbers holds the coordinates of one. So a matrix-shaped element, of ℝ^(n×m), has shape (n, m), and
# an array of k vectors shape (n·m, k). Only at (n, 1) both readings are there, and it is an element.


def _reading(space: Space, shape: tuple[int, ...], axis: int, what: str) -> str:
    """How an array is read: "element", "columns" or "coordinates"."""
    if len(space.code) == 1 and tuple(shape) == space.leaves[0].shape:
        return "element"
    if len(shape) == 2 and shape[axis] == space.dim:
        return "columns"
    if tuple(shape) == (space.dim,):
        return "coordinates"
    many = f"(k, {space.dim})" if axis else f"({space.dim}, k)"
    due = f"an element of {space}, its coordinates, shape ({space.dim},), or a matrix of vectors, shape {many}"
    raise VectorError(f"{what}: X is {due}; got shape {tuple(shape)}")


def _of_tables(x: Any) -> Any:
    """The numbers of a table or column of pandas or polars; others as they are."""
    return x.to_numpy() if type(x).__module__.split(".")[0] in ("pandas", "polars") else x


def _plain(x: Any, L: AsMatrix) -> Any:
    """An array, traced or not; None for other values."""
    found: Any = held(_of_tables(x))
    if isinstance(found, (list, np.generic)) and len(L.domain.code) == len(L.codomain.code) == 1:
        found = x if any_traced(found) else np.asarray(found)
    found = cast(Any, found)
    known = type(found) is np.ndarray or (hasattr(found, "shape") and (L.leaves or IN_TRACES).owns(found))
    return found if known and (any_traced(found) or found.dtype.kind in "fiub" or L.leaves is not None) else None


def flat_space(n: int) -> Space:
    """ℝⁿ."""
    return real_space((n,))


def _arrays(x: Any) -> Any:
    """Maps anywhere in lists and tuples as matrices."""
    if isinstance(x, AsMatrix):
        return x.to_dense()
    return type(x)([_arrays(part) for part in x]) if type(x) in (list, tuple) else x


# -- rows and columns -----------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A component of a space: its first leaf, where its coordinates begin, and what it is."""

    first: int
    start: int
    space: Space


def _side(space: Space, which: Any, named: bool, what: str) -> Any:
    """None for all of it, a number, a part, or what `submatrix` takes."""
    if which is Ellipsis or (isinstance(which, slice) and which == slice(None)):
        return None
    base = space.base if isinstance(space, Weighted) else space
    if isinstance(which, (str, tuple)):
        return _part(space, (which,) if isinstance(which, str) else cast(Any, which))
    if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
        if named and isinstance(base, DirectSum):
            return _part(space, (int(which),))
        if not -space.dim <= which < space.dim:
            raise IndexSetError(f"{what} of this matrix are numbered 0 to {space.dim - 1}; got {which}")
        return int(which) % space.dim
    if which is None or isinstance(which, (bool, np.bool_)):
        raise SpaceError(f"{what} of a matrix are numbers, a slice, positions, a mask or names; got {which}")
    return which


def _part(space: Space, path: tuple[Any, ...]) -> _Part:
    """A component by its path: names, and positions in tuples."""
    at, first, start = space, 0, 0
    for key in path:
        at = at.unweighted if isinstance(at, Weighted) else at
        if not isinstance(at, DirectSum):
            raise SpaceError(f"there is no part {key!r} in {at}: it is no tuple, dict or dataclass")
        k = at.position(key)
        before = at.summands[:k]
        first, start = first + sum([len(s.leaves) for s in before]), start + sum([s.dim for s in before])
        at = at.summands[k]
    return _Part(first, start, at)


def _coordinates(space: Space, which: Any) -> Any:
    """The flat positions of a side."""
    if which is None:
        return slice(None)
    return slice(which.start, which.start + which.space.dim) if isinstance(which, _Part) else which


# -- NumPy's functions ----------------------------------------------------------------------------------------


def _alone(f: Any) -> Any:
    """Without options; with them, on the matrix."""

    def called(L: Any, *args: Any, **named: Any) -> Any:
        return NotImplemented if args or named else f(L)

    return called


def _numpy_norm(L: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    simple = axis is None and not keepdims and ord in (None, "fro", 1, 2, np.inf)
    return L.norm("fro" if ord is None else ord) if simple else NotImplemented


def _numpy_solve(L: Any, b: Any) -> Any:
    if isinstance(b, AsMatrix) or len(np.shape(b)) not in (1, 2):
        return NotImplemented
    flat = L._from_code(lambda x: x, L.domain, flat_space(L.shape[1])) @ L.inv()
    return flat._product(b)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: _alone(lambda L: L.shape),
    np.ndim: _alone(lambda L: 2),
    np.size: _alone(lambda L: L.size),
    np.trace: _alone(lambda L: L.trace()),
    np.diagonal: _alone(lambda L: L.diagonal()),
    np.diag: _alone(lambda L: L.diagonal()),
    np.transpose: _alone(lambda L: L.T),
    np.dot: lambda L, X, out=None: L @ X if out is None else NotImplemented,
    np.linalg.norm: _numpy_norm,
    np.linalg.solve: _numpy_solve,
    np.linalg.det: _alone(lambda L: L.det()),
    np.linalg.slogdet: _alone(lambda L: L.slogdet()),
    np.linalg.eigvalsh: _alone(lambda L: L.eigvalsh()),
    np.linalg.cond: _alone(lambda L: L.cond()),
}


@cache
def _operator_kind(kind: Any, operator: Any) -> Any:
    """The class that a huge map says it has: LinearMap and SciPy's LinearOperator."""
    return type(kind.__name__, (kind, operator), {"__module__": kind.__module__})


def _restored(kind: Any) -> Any:
    return kind.__new__(kind)
