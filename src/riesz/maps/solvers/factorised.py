"""Factorised matrices of one kind each: diagonal, permutation, block-diagonal, banded, triangular, dense.

`S.solve(b)` takes one right-hand side (n,) or several as columns (n, k), as often as one likes; `S.name` says what is
done, `S.flops` about what it costs to factorise and to solve once. Singular matrices are refused when they are
factorised.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, cast

import numpy as np
import scipy.linalg as _linalg  # pyright: ignore[reportMissingTypeStubs]

from ...errors import SolveError, VectorError
from ...relations.base import freeze, seal
from ...runtime.displayed import Displayed
from ...runtime.warnings_off import quietly

linalg = cast(Any, _linalg)

# Note [Scaling]: rows and columns are scaled by powers of two before a matrix is factorised, which rounds nothing. So
# diag(1, 10⁻³⁰) counts as what it is, a matrix without any difficulty, and what is singular to working precision does
# not depend on the units of the unknowns.


# Note [Care]: a solution needs a matrix that is not singular to working precision. A determinant needs factors only,
# however small the pivots ("factors"); a spectrum needs the parts of the matrix and no factors ("parts").
_care: ContextVar[str] = ContextVar("care", default="solutions")
care = _care.get


@contextmanager
def caring_for(what: str) -> Generator[None]:
    """Solvers made inside are for "factors" or "parts" alone. See Note [Care]."""
    token = _care.set(what)
    try:
        yield
    finally:
        _care.reset(token)


def least(dtype: Any, rcond: float | None) -> float:
    """The reciprocal condition number that a matrix must exceed."""
    return (float(np.finfo(dtype).eps) if care() == "solutions" else 0.0) if rcond is None else rcond


def _factorised(kind: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Solver:
    return kind(*args, **named)


class Solver(Displayed):
    """A matrix A that has been factorised: `solve(b)` is A⁻¹b, with `transposed=True` A⁻ᵀb; `apply(x)` is A x.

    The work is done in the precision of the matrix, float32 or float64.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]
    matrix: Any
    refinements = 0  # x ← x + A⁻¹(b − A x), so often: for factorisations that are not backward stable by themselves

    def __new__(cls, *args: Any, **named: Any) -> Any:
        made = super().__new__(cls)
        made._given = args, named  # what it is made of: pickled so, and factorised again
        return made

    def __reduce__(self) -> Any:
        return _factorised, (type(self), *self._given)

    def __init__(
        self, shape: tuple[int, int], dtype: Any, name: str = "", flops: float = 0.0, rcond: float = 1.0
    ) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.name, self.flops, self.rcond = name, flops, rcond
        self.row: Any = None  # see Note [Scaling]
        self.column: Any = None

    def solve(self, b: Any, *, transposed: bool = False) -> Any:
        """The x with A x = b, of shape (n,) or, column by column, (n, k)."""
        given, columns = self._columns(b, self.shape[1] if transposed else self.shape[0], "right-hand side")
        with quietly():
            x = self._refined(columns, transposed)
        if not np.isfinite(x).all() and np.isfinite(columns).all():
            where = int(np.argmin(np.isfinite(x).all(axis=1)))
            raise SolveError(f"{self.name}: the solution is too large for {self.dtype} at index {where}")
        x = x.copy() if x is columns else x
        return x[:, 0] if given.ndim == 1 else x

    def apply(self, x: Any, *, transposed: bool = False) -> Any:
        """A x, or Aᵀx."""
        given, columns = self._columns(x, self.shape[0] if transposed else self.shape[1], "vector")
        found = self._apply(columns, transposed)
        found = found.copy() if found is columns else found
        return found[:, 0] if given.ndim == 1 else found

    def _columns(self, b: Any, n: int, what: str) -> tuple[Any, Any]:
        given = np.asarray(b)
        if given.dtype.kind not in "fiu" or given.ndim not in (1, 2) or given.shape[0] != n:
            due = f"an array of real numbers of shape ({n},) or ({n}, k)"
            raise VectorError(f"{self.name}: a {what} is {due}; got {given.dtype} of {given.shape}")
        columns = given.reshape(n, -1 if given.size else int(np.prod(given.shape[1:])))
        return given, columns.astype(self.dtype, copy=False)

    def _refined(self, b: Any, transposed: bool) -> Any:
        """The solution for columns of the right kind, not looked at; it may be b itself."""
        x = self._scaled(b, transposed)
        for _ in range(self.refinements):
            x = x + self._scaled(b - self._apply(x, transposed), transposed)
        return x

    def _scaled(self, b: Any, transposed: bool) -> Any:
        if not self.shape[0] or not b.shape[1]:
            return np.zeros((self.shape[0] if transposed else self.shape[1], b.shape[1]), self.dtype)
        before, after = (self.column, self.row) if transposed else (self.row, self.column)
        x = self._run(b if before is None else b * before[:, None], transposed)
        return x if after is None else x * after[:, None]

    def _run(self, b: Any, transposed: bool) -> Any:
        """Solve with the scaled matrix, (n, k) → (n, k)."""
        raise NotImplementedError

    def _apply(self, x: Any, transposed: bool) -> Any:
        """The matrix as it was given, times a matrix."""
        return (self.matrix.T if transposed else self.matrix) @ x

    def slogdet(self) -> tuple[float, float]:
        """The sign of the determinant and the logarithm of its size."""
        if not self.shape[0]:
            return 1.0, 0.0
        sign, size = self._slogdet()
        for scale in (self.row, self.column):
            if scale is not None:
                size = size - np.log(scale).sum(dtype=float)
        return float(sign), float(size)

    def _slogdet(self) -> tuple[Any, Any]:
        """Those of the scaled matrix."""
        raise SolveError(f"{self.name}: no determinant without a factorisation; method='dense' makes one")

    def _inspect(self, norm: float, threshold: float | None, rcond: float | None = None) -> None:
        """Estimate the reciprocal condition number of the scaled matrix, whose 1-norm is given, and refuse what is
        singular to working precision. `rcond`: an estimate that there is already."""
        if not self.shape[0]:
            return
        due = least(self.dtype, threshold)
        if care() == "factors" or (rcond is not None and rcond > due):
            self.rcond = rcond or 0.0
            return
        with quietly():
            inverse, where = _inverse_norm(self._run, self.shape[0], self.dtype)
        self.rcond = 1.0 / (norm * inverse) if np.isfinite(inverse) else 0.0
        if not self.rcond > due:
            raise SolveError(
                f"{self.name}: singular to working precision (reciprocal condition number {self.rcond:.1e}), "
                f"unknown {where} is not determined; for a least-squares solution use method='lsmr' or add a small "
                "multiple of the identity"
            )

    def __repr__(self) -> str:
        return f"<{self.shape[0]} × {self.shape[1]}, {self.name}>"


def _whole(x: Any) -> Any:
    """Arrays that are parts of others, as copies: sealing a part leaves the whole writeable."""
    if isinstance(x, np.ndarray):
        return cast(Any, x) if x.base is None else freeze(cast(Any, x))
    return type(x)([_whole(part) for part in x]) if type(x) in (list, tuple) else x


def sealed(solver: Solver) -> Solver:
    """A solver whose arrays, and those of the solvers it is made of, nobody can write to."""
    waiting: list[Any] = [solver]
    while waiting:
        held = cast("dict[str, Any]", vars(waiting.pop()))
        held.update({name: _whole(x) for name, x in held.items()})
        for part in seal(held).values():
            several = cast("list[Any]", part) if isinstance(part, (list, tuple)) else [part]
            waiting += [x for x in several if isinstance(x, Solver)]
    return solver


def _inverse_norm(run: Any, n: int, dtype: Any) -> tuple[float, int]:
    """‖A⁻¹‖₁ from below (Hager, Higham), and the largest component of a vector that A nearly takes to 0."""
    x = np.full((n, 1), 1.0 / n, dtype)
    y = run(x, False)
    best = float(np.abs(y).sum())
    for _ in range(5):
        z = run(np.where(y < 0, -1, 1).astype(dtype), True)
        j = int(np.argmax(np.abs(z)))
        if not np.abs(z[j, 0]) > (z * x).sum():
            break
        x = np.zeros((n, 1), dtype)
        x[j] = 1.0
        y, last = run(x, False), y
        size = float(np.abs(y).sum())
        if size <= best:
            y = last
            break
        best = size
    signs = np.where(np.arange(n) % 2, -1.0, 1.0) * (1.0 + np.arange(n) / max(n - 1, 1))
    other = run(signs[:, None].astype(dtype), False)
    size = 2.0 * float(np.abs(other).sum()) / (3.0 * n)
    y, best = (y, best) if size <= best else (other, size)
    return best, int(np.argmax(np.where(np.isfinite(y), np.abs(y), np.inf)))


class NotFinite(SolveError):
    """A matrix with numbers that are none."""


def signs_and_logs(values: Any) -> tuple[float, float]:
    """The sign of a product, and the logarithm of its size."""
    negative = np.count_nonzero(values < 0)
    with quietly():
        size = np.log(np.abs(values)).sum(dtype=float)
    return (0.0 if not np.all(values) else -1.0 if negative % 2 else 1.0), float(size)


def parity(index: Any) -> float:
    """The sign of a permutation, by its cycles."""
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]
    from scipy.sparse.csgraph import connected_components  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    n = len(index)
    graph = cast(Any, sparse).csr_array((np.ones(n, np.int8), np.asarray(index, np.int32), np.arange(n + 1)), (n, n))
    cycles = cast(Any, connected_components)(graph, directed=True, connection="weak", return_labels=False)
    return -1.0 if (n - cycles) % 2 else 1.0


def _exchanges(pivots: Any) -> float:
    """The sign of LAPACK's row exchanges: row i with row pivots[i]."""
    return -1.0 if np.count_nonzero(pivots != np.arange(len(pivots))) % 2 else 1.0


def numbers(array: Any, what: str, ndim: int) -> Any:
    """An array of float32 or float64, finite."""
    given = np.asarray(array)
    if given.dtype.kind not in "fiu" or given.ndim != ndim:
        due = f"an array of real numbers with {ndim} axes"
        raise VectorError(f"{what} is {due}; got {given.dtype} of shape {given.shape}")
    narrow = given.dtype.kind == "f" and given.dtype.itemsize <= 4
    found: Any = given.astype(np.float32 if narrow else np.float64, copy=False)
    if not np.isfinite(found).all():
        where = [int(i) for i in np.unravel_index(int(np.argmin(np.isfinite(found))), found.shape)]
        raise NotFinite(f"{what} has the entry {found[tuple(where)]} at {where}: nothing can be solved with it")
    return found


def square(array: Any, what: str, ndim: int = 2) -> Any:
    """An array of finite numbers whose last two axes are equally long."""
    found = numbers(array, what, ndim)
    if found.shape[-1] != found.shape[-2]:
        other = "; DenseLeastSquares takes any shape" if ndim == 2 else ""
        raise VectorError(f"{what} must be square; got shape {found.shape}{other}")
    return found


def powers(largest: Any) -> Any:
    """Powers of two that bring numbers to about 1; 1 for 0."""
    limit = 120 if largest.dtype == np.float32 else 1000
    _, exponent = np.frexp(largest)
    return np.ldexp(largest.dtype.type(1.0), np.minimum(np.maximum(-exponent, -limit), limit))


def _scales(a: Any, definite: bool) -> tuple[Any, Any]:
    """Row and column scales of (a stack of) matrices, equal ones where the matrix is to stay symmetric."""
    if definite:
        both = powers(np.sqrt(np.diagonal(a, axis1=-2, axis2=-1)))
        return both, both
    sizes = np.abs(a)
    row = powers(sizes.max(axis=-1))
    return row, powers((sizes * row[..., :, None]).max(axis=-2))


@lru_cache
def _lapack(names: tuple[str, ...], dtype: Any) -> Any:
    """LAPACK's own functions: SciPy's wrappers take longer than small matrices do."""
    return linalg.get_lapack_funcs(names, dtype=dtype)


class DiagonalSolver(Solver):
    """diag(d)."""

    def __init__(self, d: Any) -> None:
        self.d = numbers(d, "a diagonal", 1)
        n = len(self.d)
        super().__init__((n, n), self.d.dtype, "diagonal: one division per unknown", float(n))
        if not self.d.all() and care() != "parts":
            raise SolveError(f"diagonal: singular, entry {int(np.argmin(self.d != 0))} is 0")
        self.one = bool((self.d == 1).all())  # the identity

    def _run(self, b: Any, transposed: bool) -> Any:
        return b if self.one else b / self.d[:, None]

    def _apply(self, x: Any, transposed: bool) -> Any:
        return x if self.one else x * self.d[:, None]

    def _slogdet(self) -> tuple[Any, Any]:
        return signs_and_logs(self.d)


class Permutation(Solver):
    """(A x)_i = values_i · x_index(i), for a gather that reads everything once."""

    def __init__(self, index: Any, values: Any = None) -> None:
        self.index = np.asarray(index)
        n = len(self.index)
        fits = not n or (self.index.dtype.kind in "iu" and self.index.min() >= 0 and self.index.max() < n)
        if self.index.ndim != 1 or not fits:
            raise VectorError(f"a permutation of {n} is an array of the indices 0 to {n - 1}; got {self.index!r}")
        self.index = self.index.astype(np.intp)
        self.values = np.ones(n) if values is None else numbers(values, "the values of a permutation", 1)
        super().__init__((n, n), self.values.dtype, "permutation" + ("" if values is None else ", scaled"), float(n))
        counts = np.bincount(self.index, minlength=n)
        if (counts != 1).any():
            raise SolveError(f"{self.name}: singular, unknown {int(np.argmin(counts))} is never read")
        if not self.values.all() and care() != "parts":
            raise SolveError(f"{self.name}: singular, the value of row {int(np.argmin(self.values != 0))} is 0")
        self.inverse = np.argsort(self.index)

    def _run(self, b: Any, transposed: bool) -> Any:
        return b[self.index] / self.values[:, None] if transposed else (b / self.values[:, None])[self.inverse]

    def _apply(self, x: Any, transposed: bool) -> Any:
        return (x * self.values[:, None])[self.inverse] if transposed else x[self.index] * self.values[:, None]

    def _slogdet(self) -> tuple[Any, Any]:
        sign, size = signs_and_logs(self.values)
        return sign * parity(self.index), size


class BlockDiagonalSolver(Solver):
    """Square blocks (N, m, m) along the diagonal: all inverses in one batched call, solutions refined once."""

    refinements = 1

    def __init__(self, blocks: Any, rcond: float | None = None) -> None:
        self.blocks = square(blocks, "a stack of blocks", 3)
        N, m, _ = self.blocks.shape
        name = f"block-diagonal, {N} blocks of {m} × {m}: batched LU"
        super().__init__((N * m, N * m), self.blocks.dtype, name, N * (2.0 * m**3 + 2.0 * m**2))
        if not self.blocks.size or care() == "parts":
            return
        row, column = _scales(self.blocks, False)
        scaled = self.blocks * row[:, :, None] * column[:, None, :]
        self.row, self.column = row.reshape(-1), column.reshape(-1)
        try:
            self.inverse: Any = cast(Any, np.linalg).inv(scaled)
        except np.linalg.LinAlgError:
            signs = np.abs(np.linalg.slogdet(scaled)[0])
            raise SolveError(f"{self.name}: block {int(np.argmin(signs))} is singular") from None
        norms = [np.abs(a).sum(axis=1).max(axis=1) for a in (scaled, self.inverse)]
        condition = norms[0] * norms[1]
        worst = int(np.argmax(condition))
        self.rcond = 1.0 / float(condition[worst])
        if not self.rcond > least(self.dtype, rcond) and care() != "factors":
            precise = f"singular to working precision (reciprocal condition number {self.rcond:.1e})"
            raise SolveError(f"{self.name}: block {worst} is {precise}")

    def _times(self, blocks: Any, x: Any, transposed: bool) -> Any:
        N, m, _ = self.blocks.shape
        return np.matmul(blocks.transpose(0, 2, 1) if transposed else blocks, x.reshape(N, m, -1)).reshape(x.shape)

    def _run(self, b: Any, transposed: bool) -> Any:
        return self._times(self.inverse, b, transposed)

    def _apply(self, x: Any, transposed: bool) -> Any:
        return self._times(self.blocks, x, transposed) if x.size else x

    def slogdet(self) -> tuple[float, float]:
        """The sign of the determinant and the logarithm of its size."""
        signs, sizes = np.linalg.slogdet(self.blocks)
        return float(signs.prod()), float(sizes.sum(dtype=float))


def _of_factors(diagonal: Any, pivots: Any) -> tuple[float, float]:
    """Sign and size of the determinant from triangular factors; without pivots of a Cholesky factorisation."""
    sign, size = signs_and_logs(diagonal)
    return sign if pivots is None else sign * _exchanges(pivots), size


class Banded(Solver):
    """A band matrix in SciPy's storage, ab[upper + i − j, j] = a[i, j], with so many diagonals on either side."""

    def __init__(self, ab: Any, lower: int, upper: int, rcond: float | None = None) -> None:
        given = numbers(ab, "a band matrix", 2).copy()
        rows, n = given.shape
        if lower < 0 or upper < 0 or rows != lower + upper + 1:
            kind = f"a band matrix with {lower} diagonals below and {upper} above"
            raise VectorError(f"{kind} is stored in {lower + upper + 1} rows; got {given.shape}")
        for k in range(rows):  # what lies outside of the matrix counts as 0
            given[k, : max(upper - k, 0)] = 0.0
            given[k, max(n + upper - k, 0) :] = 0.0
        self.ab, self.lower, self.upper = given, lower, upper
        self._given = (given, lower, upper, rcond), {}  # the copy alone is kept
        kind = f"banded, {lower} below and {upper} above the diagonal"
        super().__init__((n, n), given.dtype, kind)
        if not n or care() == "parts":
            return
        if not given.any(axis=0).all():
            raise SolveError(f"{kind}: singular, column {int(np.argmin(given.any(axis=0)))} is 0")
        symmetric = lower == upper and all([np.array_equal(self._band(d), self._band(-d)) for d in range(1, lower + 1)])
        definite = symmetric and bool((given[upper] > 0).all())
        self._scale(definite)
        scaled = self._scaled_bands()
        if lower == upper == 1 and n > 2:
            self._tridiagonal(kind, scaled)
        elif not (definite and self._cholesky(kind, scaled)):
            self._lu(kind, scaled)
        sums = np.abs(scaled).sum(axis=0)
        more = float((2.0 * np.abs(scaled[upper]) - sums).min())  # a diagonal that outweighs its columns by that much:
        if more > 1e4 * float(np.finfo(self.dtype).eps) * float(sums.max()):  # then ‖A⁻¹‖₁ ≤ 1 / more
            self.rcond = more / float(sums.max())
        else:
            self._inspect(float(sums.max()), rcond)

    def _band(self, d: int) -> Any:
        """The diagonal a[j + d, j], without what lies outside."""
        row = self.ab[self.upper + d]
        return row[max(-d, 0) : len(row) - max(d, 0)]

    @property
    def _lines(self) -> list[tuple[int, slice, slice]]:
        """The diagonals within the matrix, each with its rows and columns."""
        n = self.shape[0]
        inside = range(-min(self.upper, n - 1), min(self.lower, n - 1) + 1)
        return [(d, slice(max(d, 0), n + min(d, 0)), slice(max(-d, 0), n - max(d, 0))) for d in inside]

    def _scale(self, definite: bool) -> None:
        """Row and column scales; see Note [Scaling]."""
        n = self.shape[0]
        if definite:
            self.row = self.column = powers(np.sqrt(self.ab[self.upper]))
            return
        largest = np.zeros(n, self.dtype)
        for d, rows, _ in self._lines:
            np.maximum(largest[rows], np.abs(self._band(d)), out=largest[rows])
        if not largest.all():
            raise SolveError(f"{self.name}: singular, row {int(np.argmin(largest != 0))} is 0")
        self.row = powers(largest)
        self.column = np.ones(n, self.dtype)
        self.column = powers(np.abs(self._scaled_bands()).max(axis=0))

    def _scaled_bands(self) -> Any:
        found = self.ab * self.column
        for d, rows, columns in self._lines:
            found[self.upper + d, columns] *= self.row[rows]
        return found

    def _tridiagonal(self, kind: str, a: Any) -> None:
        self.name = f"{kind}: LAPACK gttrf, O(n)"
        self.flops = 16.0 * self.shape[0]
        factor, substitute = linalg.get_lapack_funcs(("gttrf", "gttrs"), (a,))
        *factors, info = factor(a[2, :-1], a[1], a[0, 1:])
        self._pivots(info)
        self._run = lambda b, transposed: substitute(*factors, b, trans="T" if transposed else "N")[0]
        self._factors = factors[1], factors[4] - 1

    def _cholesky(self, kind: str, a: Any) -> bool:
        factor, substitute = linalg.get_lapack_funcs(("pbtrf", "pbtrs"), (a,))
        c, info = factor(
            a[self.upper :], lower=1
        )  # OpenBLAS waits for its threads in every small step of the upper form
        if info:
            return False
        self.name = f"{kind}, positive definite: band Cholesky, O(n)"
        self.flops = self.shape[0] * (self.upper**2 + 5.0 * self.upper + 2.0)
        self._run = lambda b, transposed: substitute(c, b, lower=1)[0]
        self._factors = c[0] ** 2, None
        return True

    def _lu(self, kind: str, a: Any) -> None:
        lower, upper = self.lower, self.upper
        self.name = f"{kind}: band LU, O(n)"
        self.flops = self.shape[0] * (2.0 * lower * (lower + upper + 1) + 4.0 * lower + 2.0 * upper + 1)
        factor, substitute = linalg.get_lapack_funcs(("gbtrf", "gbtrs"), (a,))
        lu, pivots, info = factor(np.concatenate([np.zeros((lower, a.shape[1]), a.dtype), a]), lower, upper)
        self._pivots(info)
        # copies of the pivots, as in Dense
        self._run = lambda b, transposed: substitute(lu, lower, upper, b, pivots.copy(), trans=int(transposed))[0]
        self._factors = lu[lower + upper], pivots

    def _slogdet(self) -> tuple[Any, Any]:
        return _of_factors(*self._factors)

    def _pivots(self, info: int) -> None:
        if info:
            raise SolveError(f"{self.name}: singular, column {info - 1} depends on those before it")

    def _apply(self, x: Any, transposed: bool) -> Any:
        found = np.zeros_like(x)
        for d, rows, columns in self._lines:
            to, source = (columns, rows) if transposed else (rows, columns)
            found[to] += self._band(d)[:, None] * x[source]
        return found


class TriangularSolver(Solver):
    """A dense lower or upper triangular matrix; the other half is not looked at."""

    def __init__(self, matrix: Any, lower: bool = True, rcond: float | None = None) -> None:
        given = square(matrix, "a triangular matrix")
        self.matrix, self.lower = np.tril(given) if lower else np.triu(given), lower
        n = len(given)
        name = f"{'lower' if lower else 'upper'} triangular: substitution"
        super().__init__(given.shape, given.dtype, name, float(n) ** 2)
        if care() == "parts":
            return
        if not np.diagonal(given).all():
            raise SolveError(f"{self.name}: singular, the diagonal is 0 at {int(np.argmin(np.diagonal(given) != 0))}")
        if n:
            self.row, self.column = _scales(self.matrix, False)
            self.scaled = self.matrix * self.row[:, None] * self.column
            self._inspect(float(np.abs(self.scaled).sum(axis=0).max()), rcond)

    def _run(self, b: Any, transposed: bool) -> Any:
        return linalg.solve_triangular(self.scaled, b, trans=int(transposed), lower=self.lower, check_finite=False)

    def _slogdet(self) -> tuple[Any, Any]:
        return signs_and_logs(np.diagonal(self.scaled))


class Dense(Solver):
    """A square matrix without structure: Cholesky where it is symmetric positive definite, LU otherwise."""

    def __init__(self, matrix: Any, rcond: float | None = None) -> None:
        self.matrix = square(matrix, "a matrix")
        n = len(self.matrix)
        flops = 2.0 / 3.0 * n**3 + 2.0 * n**2
        super().__init__((n, n), self.matrix.dtype, "dense: LU with partial pivoting", flops)
        if not n or care() == "parts":
            return
        symmetric = bool((np.diagonal(self.matrix) > 0).all() and (self.matrix == self.matrix.T).all())
        found = self._cholesky() if symmetric else None
        found = self._lu() if found is None else found
        self._inspect(self._norm, rcond, found)

    def _prepare(self, definite: bool) -> Any:
        self.row, self.column = _scales(self.matrix, definite)
        scaled = self.matrix * self.row[:, None] * self.column
        self._norm = float(np.abs(scaled).sum(axis=0).max())
        return scaled

    def _cholesky(self) -> float | None:
        """Factorise, and estimate the condition; None where the matrix is not positive definite."""
        potrf, potrs, pocon = _lapack(("potrf", "potrs", "pocon"), self.dtype)
        factor, info = potrf(self._prepare(True), lower=True, overwrite_a=True)
        if info:
            return None
        self.name, self.flops = "dense, symmetric positive definite: Cholesky", self.flops - len(self.matrix) ** 3 / 3.0
        self._run = lambda b, transposed: potrs(factor, b, lower=True)[0]
        self._factors = np.diagonal(factor) ** 2, None
        return pocon(factor, self._norm, uplo="L")[0]

    def _lu(self) -> float:
        """Factorise, and estimate the condition."""
        getrf, getrs, gecon = _lapack(("getrf", "getrs", "gecon"), self.dtype)
        lu, pivots, info = getrf(self._prepare(False), overwrite_a=True)
        if info:
            raise SolveError(f"dense: singular, column {info - 1} depends on those before it")
        # getrs counts the pivots up and down: not for two threads
        self._run = lambda b, transposed: getrs(lu, pivots.copy(), b, trans=int(transposed))[0]
        self._factors = np.diagonal(lu), pivots
        return gecon(lu, self._norm)[0]

    def _slogdet(self) -> tuple[Any, Any]:
        return _of_factors(*self._factors)


class DenseLeastSquares(Solver):
    """Any matrix: `solve(b)` is the shortest x that makes ‖A x − b‖ smallest, by singular values; `rank` counts those
    above rounding."""

    def __init__(self, matrix: Any, tolerance: float | None = None) -> None:
        self.matrix = numbers(matrix, "a matrix", 2)
        m, n = self.matrix.shape
        k = min(m, n)
        super().__init__((m, n), self.matrix.dtype, flops=4.0 * m * n * k + 8.0 * k**3)
        u, s, v = np.zeros((m, 0)), np.zeros(0), np.zeros((0, n))
        if k:
            u, s, v = linalg.svd(self.matrix, full_matrices=False, check_finite=False)
        limit = (max(m, n) * np.finfo(self.dtype).eps if tolerance is None else tolerance) * s[0] if k else 0.0
        self.rank = int((s > limit).sum())
        self.values = s
        self.name = f"dense least squares, rank {self.rank} of {k}: singular values, shortest solution"
        parts = (u[:, : self.rank], s[: self.rank, None], v[: self.rank])
        self.factors = tuple([part.astype(self.dtype) for part in parts])

    def _run(self, b: Any, transposed: bool) -> Any:
        u, s, v = self.factors
        return u @ ((v @ b) / s) if transposed else v.T @ ((u.T @ b) / s)
