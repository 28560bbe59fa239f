"""Solvers for SciPy's sparse matrices: LU, the Schur complement of a block-diagonal corner, and the choice between all
kinds."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as _sparse  # pyright: ignore[reportMissingTypeStubs]
import scipy.sparse.csgraph as _csgraph  # pyright: ignore[reportMissingTypeStubs]

from ...errors import SolveError, VectorError
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from .composite import Reordered
from .factorised import (
    Banded,
    BlockDiagonalSolver,
    Dense,
    DiagonalSolver,
    Permutation,
    Solver,
    care,
    numbers,
    parity,
    powers,
    signs_and_logs,
)
from .krylov import sparse_linalg

sparse = cast(Any, _sparse)
csgraph = cast(Any, _csgraph)


def canonical(matrix: Any) -> Any:
    """A square matrix in CSR form, without stored zeros, its numbers finite."""
    found = sparse.csr_array(matrix)
    if found.shape[0] != found.shape[1]:
        other = "for least squares, solve with AᵀA or use Krylov"
        raise VectorError(f"a sparse system must be square; got shape {found.shape} ({other})")
    data = numbers(found.data, "a sparse matrix", 1)
    found = sparse.csr_array((data, found.indices, found.indptr), shape=found.shape, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


def _is_symmetric(a: Any) -> bool:
    turned = a.T.tocsr()
    turned.sort_indices()
    return all([np.array_equal(getattr(a, part), getattr(turned, part)) for part in ("indptr", "indices", "data")])


def _rows(a: Any) -> Any:
    """The row of each entry."""
    return cast(Any, np).repeat(np.arange(a.shape[0]), np.diff(a.indptr))


class Sparse(Solver):
    """A sparse matrix: SuperLU, without row exchanges where it is definite and that turns out accurate."""

    refinements = 1

    def __init__(self, matrix: Any, symmetric: bool | None = None, rcond: float | None = None) -> None:
        self.matrix = canonical(matrix)
        a, n = self.matrix, self.matrix.shape[0]
        super().__init__((n, n), a.dtype, f"sparse, {a.nnz} entries: SuperLU")
        if not n or care() == "parts":
            return
        self._structure()
        definite = bool((a.diagonal() > 0).all()) and (_is_symmetric(a) if symmetric is None else symmetric)
        rows = _rows(a)
        triangular = bool((rows >= a.indices).all()) or bool((rows <= a.indices).all())
        if triangular:
            self._factor("triangular: substitution", definite, permc_spec="NATURAL", diag_pivot_thresh=0.0)
        elif definite:
            still: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
            self._factor("symmetric LU, minimum degree", True, permc_spec="MMD_AT_PLUS_A", **still)
        if not triangular and not (definite and self._accurate()):
            self._factor("LU with partial pivoting", False)
        self.flops = 2.0 * (self.lu.L.nnz + self.lu.U.nnz) if triangular else 4.0 * self.lu.nnz**2 / n
        self._inspect(self._norm, rcond)

    def _structure(self) -> None:
        """Refuse what is singular whatever the numbers are."""
        if self.matrix.diagonal().all():
            return
        match = csgraph.maximum_bipartite_matching(self.matrix, perm_type="column")
        if (match < 0).any():
            row = int(np.argmax(match < 0))
            empty = self.matrix.indptr[row] == self.matrix.indptr[row + 1]
            why = "is 0" if empty else "has no unknown left to determine (structural rank)"
            raise SolveError(f"{self.name}: singular, row {row} {why}")

    def _factor(self, how: str, definite: bool, **options: Any) -> None:
        a = self.matrix
        self.name = f"sparse, {a.nnz} entries: SuperLU, {how}"
        if definite:
            self.row = self.column = powers(np.sqrt(a.diagonal()))
        else:
            self.row = powers(abs(a).max(axis=1).toarray().reshape(-1))
            scaled = abs(a * self.row[:, None]).tocsc() if a.nnz else a
            self.column = powers(scaled.max(axis=0).toarray().reshape(-1))
        data = a.data * self.row[_rows(a)] * self.column[a.indices]
        scaled = sparse.csc_array(sparse.csr_array((data, a.indices, a.indptr), shape=a.shape))
        self._norm = float(abs(scaled).sum(axis=0).max())
        try:
            self.lu = sparse_linalg.splu(scaled, **options)
        except RuntimeError:
            raise SolveError(f"{self.name}: singular, {self._undetermined(scaled)} is not determined") from None

    def _undetermined(self, scaled: Any) -> str:
        """The largest component of a vector that the scaled matrix takes to 0, by inverse iteration."""
        n, eps = self.shape[0], float(np.finfo(self.dtype).eps)
        for size in (64.0, -300.0):  # the first one may be singular too
            beside = sparse.diags_array(size * eps * self._norm * np.linspace(1.0, 2.0, n)).astype(self.dtype)
            try:
                near = sparse_linalg.splu(sparse.csc_array(scaled + beside))
            except RuntimeError:
                continue
            x = near.solve(np.ones(n, self.dtype))
            return f"unknown {int(np.argmax(np.abs(near.solve(x / np.abs(x).max()))))}"
        return "some unknown"

    def _accurate(self) -> bool:
        """Whether the factors, made without row exchanges, reproduce a known solution."""
        x = np.ones((self.shape[0], 1), self.dtype)
        b = self._apply(x, False)
        with quietly():
            error = np.abs(self._apply(self._scaled(b, False), False) - b)
        scale = abs(self.matrix) @ x
        return bool((error <= 1e3 * np.finfo(self.dtype).eps * self.shape[0] ** 0.5 * scale).all())

    def _run(self, b: Any, transposed: bool) -> Any:
        return self.lu.solve(np.ascontiguousarray(b), "T" if transposed else "N")

    def _slogdet(self) -> tuple[Any, Any]:
        sign, size = signs_and_logs(self.lu.U.diagonal())
        return sign * parity(self.lu.perm_r) * parity(self.lu.perm_c), size


class ArrowSolver(Solver):
    """A symmetric [[A, B], [Bᵀ, C]] with C block-diagonal (bundle adjustment: A cameras, C points): S = A − B C⁻¹ Bᵀ is
    formed and factorised.

    `eliminated` says, by a mask or indices, which unknowns are those of C; for a number p, those from p on.
    """

    refinements = 1

    def __init__(self, matrix: Any, eliminated: Any, rcond: float | None = None) -> None:
        self.matrix = canonical(matrix)
        n = self.matrix.shape[0]
        super().__init__((n, n), self.matrix.dtype)
        mask = np.zeros(n, bool)
        mask[slice(int(eliminated), None) if np.ndim(eliminated) == 0 else np.asarray(eliminated)] = True
        self.kept, self.gone = np.flatnonzero(~mask), np.flatnonzero(mask)
        top, bottom = self.matrix[self.kept], self.matrix[self.gone]
        self.B = sparse.csr_array(top[:, self.gone])
        corner = _block_form(sparse.csr_array(bottom[:, self.gone]), True)
        if corner is None:
            small = f"blocks of {tuning.CONNECTED_BLOCK_ROWS} or fewer"
            raise VectorError(f"the unknowns to eliminate do not fall apart into {small}: choose others, or use Sparse")
        blocks, place = corner
        try:
            self.corner = Reordered(BlockDiagonalSolver(blocks, rcond), place, "corner")
        except SolveError as error:
            raise SolveError(f"Schur complement: the eliminated part is singular: {error}") from None
        N, m, _ = blocks.shape
        inverses = sparse.bsr_array((self._inverses(), np.arange(N), np.arange(N + 1)), shape=(N * m, N * m))
        wide = sparse.csr_array((self.B.data, place[self.B.indices], self.B.indptr), shape=(len(self.kept), N * m))
        S = top[:, self.kept] - (wide @ inverses.tocsr()) @ wide.T
        self.complement = self._chosen(sparse.csr_array(S), rcond)
        self.flops = self.corner.flops + self.complement.flops + 4.0 * self.B.nnz * (m + 1.0)
        self.rcond = min(self.corner.rcond, self.complement.rcond)
        others = f"the other {len(self.kept)} unknowns {self.complement.name}"
        self.name = f"Schur complement of {N} blocks of at most {m} × {m}; {others}"

    def _inverses(self) -> Any:
        inner = cast(BlockDiagonalSolver, self.corner.inner)
        if not inner.blocks.size:
            return inner.blocks
        shape = inner.blocks.shape[:2]
        return inner.inverse * inner.row.reshape(shape)[:, None, :] * inner.column.reshape(shape)[:, :, None]

    def _chosen(self, complement: Any, rcond: float | None) -> Solver:
        p = complement.shape[0]
        full = p <= 200 or (complement.nnz > 0.2 * p * p and p <= 20_000)
        symmetric = (complement + complement.T) * 0.5
        try:
            return Dense(symmetric.toarray(), rcond) if full else Sparse(symmetric, True, rcond)
        except SolveError as error:
            raise SolveError(f"Schur complement of the unknowns kept: {error}") from None

    def _run(self, b: Any, transposed: bool) -> Any:
        top, bottom = b[self.kept], self.corner.solve(b[self.gone])
        found = np.empty_like(b)
        found[self.kept] = self.complement.solve(top - self.B @ bottom)
        found[self.gone] = bottom - self.corner.solve(self.B.T @ found[self.kept])
        return found

    def _apply(self, x: Any, transposed: bool) -> Any:
        return self.matrix @ x  # symmetric

    def _slogdet(self) -> tuple[Any, Any]:
        (left, small), (right, large) = self.corner.slogdet(), self.complement.slogdet()
        return left * right, small + large


class SparseLeastSquares(Solver):
    """A sparse rectangle of full rank: AᵀA, or AAᵀ if wide, is factorised, and solutions are corrected with A."""

    refinements = 2

    def __init__(self, matrix: Any) -> None:
        self.matrix = sparse.csr_array(matrix)
        m, n = self.matrix.shape
        super().__init__((m, n), self.matrix.dtype)
        self.tall = m >= n
        turned = self.matrix.T.tocsr()
        normal = turned @ self.matrix if self.tall else self.matrix @ turned
        if fills(normal):
            raise SolveError(f"the normal equations of a sparse {m} × {n} matrix fill up")
        self.inner = choose_sparse(normal, True)
        self.rcond = float(np.sqrt(self.inner.rcond))
        if self.rcond < float(np.finfo(self.dtype).eps) ** 0.35:
            small = f"reciprocal condition number {self.inner.rcond:.1e}, too small for normal equations"
            raise SolveError(f"{self.inner.name}: {small}")
        self.name = f"{'least squares, AᵀA' if self.tall else 'shortest solution, AAᵀ'}: {self.inner.name}; corrected"
        self.flops = self.inner.flops + 4.0 * self.matrix.nnz

    def _run(self, b: Any, transposed: bool) -> Any:
        A: Any = self.matrix.T if transposed else self.matrix
        return A.T @ self.inner.solve(b) if self.tall == transposed else self.inner.solve(A.T @ b)


def _block_form(a: Any, padded: bool) -> tuple[Any, Any] | None:
    """Connected parts as blocks (N, m, m), smaller ones padded by 1, and the place of each unknown; None if large."""
    n = a.shape[0]
    if not n:
        return np.zeros((0, 1, 1), a.dtype), np.zeros(0, np.intp)
    count, part = csgraph.connected_components(a, directed=True, connection="weak")
    sizes = np.bincount(part, minlength=count)
    m = int(sizes.max())
    if m > tuning.CONNECTED_BLOCK_ROWS or (not padded and count * m * m > 4 * (a.nnz + n)):
        return None
    order = np.argsort(part, kind="stable")
    within = np.empty(n, np.intp)
    within[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = _rows(a)
    blocks = np.zeros((count, m, m), a.dtype)
    blocks[part[rows], within[rows], within[a.indices]] = a.data
    padding = np.arange(m) >= sizes[:, None]
    blocks[:, np.arange(m), np.arange(m)] += padding
    return blocks, part.astype(np.intp) * m + within


def _away(a: Any, place: Any = None) -> Any:
    """How far each entry lies below the diagonal, with unknown i at place[i]."""
    rows = _rows(a)
    return rows - a.indices if place is None else place[rows] - place[a.indices]


def _bands(a: Any, place: Any = None) -> tuple[int, int]:
    """How many diagonals lie below and above the main one."""
    away = _away(a, place)
    return max(int(away.max(initial=0)), 0), max(int(-away.min(initial=0)), 0)


def _narrow(a: Any, lower: int, upper: int) -> bool:
    """Whether a band is filled well enough that LAPACK's band solver is the better choice."""
    return (2 * lower + upper + 1) * a.shape[0] <= 8 * (a.nnz + a.shape[0]) and lower + upper <= 256


def fills(matrix: Any) -> bool:
    """Whether elimination would fill a large matrix: even in the Cuthill–McKee order its entries lie far from the
    diagonal, as those of a random graph do (measured: 0.12 to 0.3 of the size; grids of two to four dimensions 0.003 to
    0.04). A few full rows and columns do no harm."""
    a = sparse.csr_array(matrix)
    if a.shape[0] <= 20_000 or not _far(a):
        return False
    degree = np.diff(a.indptr) + np.bincount(a.indices, minlength=a.shape[0])
    some = np.flatnonzero(degree <= 16 * degree.mean())
    a = a[some][:, some]
    return _far(a, _cuthill_mckee(a, False))


def _cuthill_mckee(a: Any, symmetric: bool) -> Any:
    """The place of each unknown in the Cuthill–McKee order."""
    place = np.empty(a.shape[0], np.intp)
    place[csgraph.reverse_cuthill_mckee(a, symmetric_mode=symmetric)] = np.arange(a.shape[0])
    return place


def _far(a: Any, place: Any = None) -> bool:
    """Whether the entries are away from the diagonal by more than a tenth of the size, on average."""
    return bool(np.abs(_away(a, place)).sum(dtype=float) > 0.1 * a.shape[0] * a.nnz)


def banded(a: Any, lower: int, upper: int, place: Any = None) -> Banded:
    """The band solver of a sparse matrix."""
    ab = np.zeros((lower + upper + 1, a.shape[0]), a.dtype)
    ab[upper + _away(a, place), a.indices if place is None else place[a.indices]] = a.data
    return Banded(ab, lower, upper)


def choose_sparse(matrix: Any, symmetric: bool | None = None, groups: Any = ()) -> Solver:
    """The solver for a square sparse matrix: diagonal, permutation, blocks, banded (reordered if that helps), Schur
    complement, dense or sparse LU.

    `groups` are numbers of unknowns that follow each other and belong together, such as the sizes of the components of
    a direct sum; the Schur complement is tried on the largest that falls apart into blocks. `symmetric` spares the
    test.

    >>> import scipy.sparse
    >>> choose_sparse(scipy.sparse.diags_array([[1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0]], offsets=[-1, 0, 1]))
    <3 × 3, banded, 1 below and 1 above the diagonal: LAPACK gttrf, O(n)>
    """
    a = canonical(matrix)
    n = a.shape[0]
    counts = np.diff(a.indptr)
    lower, upper = _bands(a)
    if lower == upper == 0:
        return DiagonalSolver(a.diagonal())
    if (counts == 1).all():
        return Permutation(a.indices, a.data)
    parts = _block_form(a, False)
    if parts is not None and len(parts[0]) > 1:
        blocks, place = parts
        inner = BlockDiagonalSolver(blocks)
        return inner if (place[1:] > place[:-1]).all() and inner.shape[0] == n else Reordered(inner, place)
    if _narrow(a, lower, upper):
        return banded(a, lower, upper)
    if lower and upper and a.nnz <= 20 * n:
        place = _cuthill_mckee(a, bool(symmetric))
        lower, upper = _bands(a, place)
        if _narrow(a, lower, upper):
            return Reordered(banded(a, lower, upper, place), place, "reordered (Cuthill–McKee)")
    if symmetric is None:
        symmetric = _is_symmetric(a)
    corner = _corner(a, groups) if symmetric and care() != "parts" else None
    if corner is not None:
        return ArrowSolver(a, corner)
    return Dense(a.toarray()) if n <= 5000 and a.nnz > 0.25 * n * n else Sparse(a, symmetric)


def _corner(a: Any, groups: Any) -> Any:
    """The largest group, at least half of the unknowns, that falls apart into blocks; None if there is none."""
    stops = np.cumsum(np.asarray(groups, int))
    for size, stop in sorted(zip(groups, stops, strict=True), reverse=True):
        if 2 * size < a.shape[0]:
            break
        where = slice(int(stop - size), int(stop))
        if _block_form(sparse.csr_array(a[where, where]), True) is not None:
            return np.arange(where.start, where.stop)
    return None
