"""Sparse matrices whose numbers are traced: fixed positions, a traced array of data.

    A = Σ_e data_e · |row_e⟩⟨column_e|         A @ x = red_row(data ⊛ gather_column x)

Nothing is made dense. As a linear map it is a family at a traced point, so solving goes by its structure. What only
moves entries (slices, stacks, blocks, diagonals) SciPy itself does, on matrices that hold the numbers of the entries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, matmul, mul, sub, truediv
from typing import Any, NamedTuple

import numpy as np

from ....ops.op import Reduction
from ....relations.base import freeze
from ....relations.index_sets import Seg
from ....relations.kinds import Function
from ....runtime import later
from ...registry import by_name
from ...trace import refuse
from ...traced import HOLDERS, TRACED, Traced, convert, lifted, step, tidy, trace_of
from ..array_products import is_sparse, sparse_product
from ..gathering import along
from ..rearranging import concatenate


def added_up(data: Any, places: Any, n: int) -> Traced:
    """Numbers added up at fixed places of an axis of length n."""
    return step(Reduction((Function(Seg(len(places)), Seg(n), freeze(np.asarray(places, np.intp))),), 0), data)


class SparseTraced:
    """A matrix of scipy.sparse with traced data. `kind` is the class it would have; entries are in its order."""

    __array_ufunc__ = None  # operators with arrays on the left come to us
    ndim = 2
    _map: tuple[int | None, Any] = None, None

    def __init__(self, rows: Any, columns: Any, data: Traced, shape: tuple[int, int], kind: Any) -> None:
        self.row, self.col = [freeze(np.asarray(k, np.intp)) for k in (rows, columns)]
        self.data, self.shape, self.kind = data, (int(shape[0]), int(shape[1])), kind
        self.coords = self.row, self.col

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        """What the value would be, for isinstance in the users' code (Note [Class])."""
        frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame.f_globals.get("__name__") == "abc":  # asks for somebody else
            frame = frame.f_back
        ours = frame.f_globals.get("__name__", "").startswith(("riesz.", "scipy."))
        return SparseTraced if ours else self.kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.kind, name):
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'")
        raise refuse(
            f"A.{name} of a sparse matrix with traced data is not known to riesz. What is: @, +, -, products with "
            "numbers, A.T, A[i, j], diagonal, sum, trace, multiply, toarray, tocsr and other formats, and "
            "scipy.sparse.linalg.spsolve"
        )

    def __repr__(self) -> str:
        return f"traced {self.kind.__name__}, {self.shape[0]} × {self.shape[1]}, {self.nnz} stored"

    nnz = size = property(lambda self: len(self.row), doc="How many entries are stored.")
    dtype = property(lambda self: self.data.dtype, doc="The type of the entries.")
    format = property(lambda self: self.kind.__name__[:3], doc="The format, by SciPy's name.")
    T = property(lambda self: self.transpose(), doc="The transpose.")

    @property
    def indices(self) -> Any:
        """The columns of entries by row, or the rows of entries by column."""
        return self.row if self.format == "csc" else self.col

    @property
    def indptr(self) -> Any:
        """Where each row, or column, begins."""
        lines, n = (self.col, self.shape[1]) if self.format == "csc" else (self.row, self.shape[0])
        return np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=n))])

    # -- formats ------------------------------------------------------------------------------------------

    def of_kind(self, kind: Any) -> SparseTraced:
        """The same in another format; by rows and by columns each position is stored once."""
        name = kind.__name__[:3]
        if name not in ("csr", "csc"):
            return self.with_kind(kind)
        m, n = self.shape
        keys = self.col * m + self.row if name == "csc" else self.row * n + self.col
        places, inverse = np.unique(keys, return_inverse=True)
        if len(places) == len(keys):
            data = self.data if (inverse[1:] > inverse[:-1]).all() else along(self.data, 0, np.argsort(keys))
        else:
            data = added_up(self.data, inverse, len(places))
        columns, rows = (places // max(m, 1), places % max(m, 1)) if name == "csc" else (places % max(n, 1), places)
        return SparseTraced(rows if name == "csc" else places // max(n, 1), columns, data, self.shape, kind)

    def asformat(self, format: str | None, copy: bool = False) -> SparseTraced:
        """A matrix of the same family in another format."""
        if format is None or format == self.format:
            return self
        return self.of_kind(kind_like(self.kind, format))

    def tocsr(self, copy: bool = False) -> SparseTraced:
        """By rows."""
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> SparseTraced:
        """By columns."""
        return self.asformat("csc")

    def tocoo(self, copy: bool = True) -> SparseTraced:
        """As a list of entries."""
        return self.asformat("coo")

    todia = tolil = todok = tobsr = tocoo

    def copy(self) -> SparseTraced:
        """The same with numbers of its own."""
        return self.with_data(self.data.copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> SparseTraced:
        """The same in another type."""
        return self.with_data(convert(self.data, np.dtype(dtype)))

    def sum_duplicates(self) -> None:
        """In order, each position once: by rows or by columns. A list of entries stays as it is."""
        self.__dict__.update(self.of_kind(self.kind).__dict__)

    sort_indices = sum_duplicates

    def eliminate_zeros(self) -> None:
        """Nothing: which numbers are 0 is not known."""

    def with_kind(self, kind: Any) -> SparseTraced:
        """The same entries under another class's name."""
        return SparseTraced(self.row, self.col, self.data, self.shape, kind)

    def with_data(self, data: Any) -> SparseTraced:
        """Other numbers at the same positions."""
        return SparseTraced(self.row, self.col, data, self.shape, self.kind)

    def transpose(self, axes: Any = None, copy: bool = False) -> SparseTraced:
        """The transpose, as in SciPy by columns if this is by rows."""
        other: str = {"csr": "csc", "csc": "csr"}.get(str(self.format), str(self.format))
        return SparseTraced(self.col, self.row, self.data, (self.shape[1], self.shape[0]), kind_like(self.kind, other))

    # -- as arrays ----------------------------------------------------------------------------------------

    def toarray(self, order: Any = None, out: Any = None) -> Traced:
        """The dense matrix."""
        flat = added_up(self.data, self.row * self.shape[1] + self.col, self.shape[0] * self.shape[1])
        return np.reshape(flat, self.shape)  # pyright: ignore[reportReturnType]

    todense = toarray

    def diagonal(self, k: int = 0) -> Traced:
        """The k-th diagonal."""
        m, n = self.shape
        there = np.flatnonzero(self.col - self.row == k)
        return added_up(along(self.data, 0, there), np.minimum(self.row, self.col)[there], _length(m, n, k))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all entries, or of each column or row."""
        if axis is None:
            return np.sum(self.data)
        at = int(axis) % 2
        found = added_up(self.data, self.row if at else self.col, self.shape[1 - at])
        if not self.is_matrix:
            return found
        return np.reshape(found, (self.shape[0], 1) if at else (1, self.shape[1]))

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all entries, zeros included, or of each column or row."""
        return self.sum(axis) / (self.shape[0] * self.shape[1] if axis is None else self.shape[int(axis) % 2])

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    @property
    def is_matrix(self) -> bool:
        """Whether it is one of SciPy's matrices, for which * is the product of matrices."""
        return self.kind.__name__.endswith("matrix")

    # -- products -----------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return multiplied(self, other)
        x = tidy(other)
        home = trace_of(self.data, x)
        x = lifted(x, home) if type(x) not in TRACED or x.home is not home else x
        return sparse_product(self, _at_least_single(x, self.data))

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return multiplied(other, self)
        found = self.T @ (other.T if np.ndim(other) > 1 else other)
        return found.T if np.ndim(found) > 1 else found

    def dot(self, other: Any) -> Any:
        """A @ x; of a number, A · x."""
        return self._times(other) if not is_sparse(other) and not np.ndim(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """The product entry by entry, with a number, an array that broadcasts, or another sparse matrix."""
        if is_sparse(other):
            if tuple(other.shape) != self.shape:
                raise ValueError(f"A.multiply(B): shapes {self.shape} and {tuple(other.shape)} do not fit")
            a, b = _entries(self), _entries(other)
            keys, others = [x.row * self.shape[1] + x.col for x in (a, b)]
            _, i, j = np.intersect1d(keys, others, assume_unique=True, return_indices=True)
            both = multiplied_pairs(a.data, b.data, i, j)
            return SparseTraced(a.row[i], a.col[i], both, self.shape, kind_like(self.kind, "csr"))
        if not np.ndim(other):
            return self._times(other)
        wide = np.broadcast_to(tidy(other), self.shape) if np.shape(other) != self.shape else tidy(other)
        return SparseTraced(self.row, self.col, self.data * wide[self.row, self.col], self.shape, self.kind)

    def _times(self, k: Any) -> SparseTraced:
        return self.with_data(self.data * k)

    def __mul__(self, other: Any) -> Any:
        if not is_sparse(other) and not np.ndim(other):
            return self._times(other)
        return self @ other if self.is_matrix else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if not is_sparse(other) and not np.ndim(other):
            return self._times(other)
        return self.__rmatmul__(other) if self.is_matrix else self.multiply(other)

    def __truediv__(self, k: Any) -> SparseTraced:
        if is_sparse(k):
            raise refuse("A / B of sparse matrices is not known to riesz for traced data; write A.multiply(1 / b)")
        return self._times(1.0 / k) if not np.ndim(k) else self.multiply(1.0 / tidy(k))

    def __neg__(self) -> SparseTraced:
        return self.with_data(-self.data)

    def _each(self, function: Callable[[Any], Any]) -> SparseTraced:
        """A function of each entry that keeps zeros."""
        found = self.of_kind(kind_like(self.kind, "csc" if self.format == "csc" else "csr"))
        return found.with_data(function(found.data))

    def power(self, n: Any, dtype: Any = None) -> SparseTraced:
        """Each entry to a power."""
        return self._each(lambda x: x**n)

    def sqrt(self) -> SparseTraced:
        """The square root of each entry."""
        return self._each(np.sqrt)

    def __pow__(self, n: Any) -> SparseTraced:
        if not self.is_matrix:
            return self.power(n)
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise refuse(f"A ** {n!r} of a sparse matrix with traced data: a whole number from 1 on is due")
        return reduce(matmul, [self.tocsr()] * int(n))

    def __abs__(self) -> SparseTraced:
        return self._each(np.abs)

    # -- sums ---------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not is_sparse(other):
            if not np.ndim(other):
                if isinstance(other, (int, float)) and other == 0:
                    return self
                raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
            return self.toarray() + other
        if tuple(other.shape) != self.shape:
            raise ValueError(f"inconsistent shapes: {self.shape} and {tuple(other.shape)}")
        b = _entries(other)
        rows, columns = [np.concatenate(pair) for pair in ((self.row, b.row), (self.col, b.col))]
        data = concatenate([self.data, b.data], 0)
        whole = SparseTraced(rows, columns, data, self.shape, self.kind)
        return whole.of_kind(kind_like(self.kind, "csc" if self.format == "csc" else "csr"))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refuse(f"A[…] = … of a sparse matrix with traced data is not known to riesz; {BUILT}")

    def __getitem__(self, key: Any) -> Any:
        found = moved(lambda a: a[key], self)
        return found[0] if type(found) is tuple else found

    # -- as a linear map ----------------------------------------------------------------------------------

    @property
    def linear_map(self) -> Any:
        """The map v ↦ A v, at the traced data: it has structure and solvers. One, until the data are written to."""
        if self._map[0] != self.data.slot:
            self._map = self.data.slot, later.map_of_entries(self.row, self.col, self.data.copy(), self.shape)
        return self._map[1]


HOLDERS.add(SparseTraced)
BUILT = "write its entries as an array: scipy.sparse.coo_array((values, (rows, columns)), shape)"
_OPERATORS = {np.add: add, np.subtract: sub, np.multiply: mul, np.divide: truediv}


@by_name
def with_numbers(ufunc: Any, left: Any, right: Any) -> Any:
    """x ∘ A or A ∘ x for a sparse matrix A of numbers and a traced x."""
    home = trace_of(left, right)

    def traced(a: Any) -> Any:
        if not is_sparse(a):
            return a
        if ufunc not in _OPERATORS or a.ndim != 2 or a.dtype.kind not in "fiub":
            raise refuse(
                f"np.{ufunc.__name__} of a sparse matrix, {a.dtype} of shape {a.shape}, and a traced array is not "
                "known to riesz; @, *, /, + and - of real matrices are"
            )
        entries = a.tocoo()
        data = lifted(entries.data if a.dtype.kind == "f" else entries.data.astype(float), home)
        return SparseTraced(entries.row, entries.col, data, a.shape, type(a))

    return _OPERATORS.get(ufunc, mul)(traced(left), traced(right))


class _Entries(NamedTuple):
    row: Any
    col: Any
    data: Any


def constants(matrix: Any) -> _Entries:
    """The entries of a matrix with numbers, by rows."""
    entries = matrix.tocsr().tocoo()
    return _Entries(np.asarray(entries.row, np.intp), np.asarray(entries.col, np.intp), entries.data)


def _entries(other: Any) -> Any:
    """The entries of a sparse matrix, traced or not, by rows, each position once."""
    return other.of_kind(kind_like(other.kind, "csr")) if type(other) is SparseTraced else constants(other)


def multiplied_pairs(a: Any, b: Any, i: Any, j: Any) -> Any:
    """a[i] · b[j]."""
    left, right = [along(x, 0, at) if type(x) is Traced else x[at] for x, at in ((a, i), (b, j))]
    return left * right


def _length(m: int, n: int, k: int) -> int:
    return max(min(m + min(k, 0), n - max(k, 0)), 0)


def kind_like(kind: Any, format: str) -> Any:
    """SciPy's class of a format, array or matrix as another is."""
    import scipy.sparse

    return getattr(scipy.sparse, f"{format}_{'matrix' if kind.__name__.endswith('matrix') else 'array'}")


def multiplied(a: Any, b: Any) -> SparseTraced:
    """A @ B of sparse matrices, one of them traced: all pairs of entries that meet, added up by position."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    like = a if type(a) is SparseTraced else b
    left, right = _entries(a), _entries(b)
    begins = np.searchsorted(right.row, np.arange(b.shape[0] + 1))
    counts = np.diff(begins)[left.col]
    first = np.repeat(np.arange(len(left.row)), counts)
    second = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(begins[left.col], counts)
    data = multiplied_pairs(_at_least_single(left.data, right.data), right.data, first, second)
    shape = int(a.shape[0]), int(b.shape[1])
    return SparseTraced(left.row[first], right.col[second], data, shape, like.kind).of_kind(kind_like(like.kind, "csr"))


def _at_least_single(x: Any, other: Any) -> Any:
    """A factor beside another one; SciPy multiplies half precision in single precision."""
    return x.astype(np.float32) if np.result_type(x.dtype, other.dtype) == np.float16 else x


# Note [Numbered]: SciPy moves entries about by itself, on matrices that have the numbers 1, 2, … of the entries for
# data. What comes out says for each position which entry it is; nothing is added there, since each position of a
# numbered matrix is stored once.
class Numbering:
    """The entries of several arrays and matrices, numbered one after the other. See Note [Numbered]."""

    def __init__(self) -> None:
        self.data: list[Any] = []
        self.count = 1

    def array(self, x: Any) -> Any:
        """An array of the numbers of its elements."""
        found = np.arange(self.count, self.count + int(np.prod(np.shape(x)))).reshape(np.shape(x))
        self.count += found.size
        self.data.append(np.ravel(x) if np.ndim(x) else np.reshape(x, (1,)))
        return found

    def matrix(self, a: Any) -> Any:
        """A sparse matrix of the numbers of its entries; of an array, all are."""
        import scipy.sparse

        if a is None:
            return None
        if not is_sparse(a):
            x = tidy(a)
            return scipy.sparse.coo_array(np.atleast_2d(self.array(x)))
        b = _entries(a)
        kind = a.kind if type(a) is SparseTraced else type(a)
        return kind_like(kind, "coo")((self.array(b.data), (b.row, b.col)), shape=tuple(a.shape)).tocsr()

    def found(self, result: Any, kind: Any = None) -> Any:
        """What came out of numbered matrices, with the entries themselves."""
        data = concatenate([x if type(x) is Traced else np.asarray(x, float) for x in self.data], 0)
        if not is_sparse(result):  # one entry, or an array of them; 0: not stored
            at = np.asarray(result)
            there = np.where(at > 0, 1.0, 0.0)
            return along(data, 0, np.maximum(at, 1).ravel() - 1).reshape(at.shape) * there
        if result.ndim == 1:
            entries = result.tocoo()
            return added_up(along(data, 0, entries.data - 1), entries.coords[0], result.shape[0])
        entries = result.tocoo()
        shape = tuple([int(n) for n in result.shape])
        taken = along(data, 0, entries.data - 1)
        whole = SparseTraced(entries.row, entries.col, taken, shape, type(entries))  # pyright: ignore[reportArgumentType]
        kind = kind or type(result)
        return whole.with_kind(kind) if kind_like(kind, result.format) is kind else whole.of_kind(kind)


def moved(function: Callable[..., Any], *matrices: Any) -> Any:
    """A function of SciPy's that only moves entries of matrices about."""
    numbers = Numbering()
    return numbers.found(function(*[numbers.matrix(a) for a in matrices]))


def moved_blocks(function: Callable[..., Any], blocks: Sequence[Any]) -> Any:
    """The same of nested lists of matrices."""
    numbers = Numbering()
    nested = [
        [numbers.matrix(b) for b in row] if isinstance(row, (list, tuple)) else numbers.matrix(row) for row in blocks
    ]
    return numbers.found(function(nested))
