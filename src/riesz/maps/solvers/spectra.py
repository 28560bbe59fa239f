"""Eigenvalues, singular values and Cholesky factors of matrices by their parts (Note [Care] in factorised.py).

Orthogonal matrices and factors are given as code on columns, (n, k) → (m, k), which is traced into a linear map.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from ...errors import SolveError, SpaceError
from ...runtime import tuning
from ..matrices.written_maps import diagonals, spread
from .composite import Axes, Kronecker, KroneckerSum, LowRankPlus, Reordered, SeparateSolver
from .factorised import Banded, BlockDiagonalSolver, Dense, DiagonalSolver, Permutation, Solver, linalg

Code = Callable[[Any], Any]


class Spectrum(NamedTuple):
    """A = U diag(values) Vᵀ, the values in no order; U and V as code on columns. U = V where A is symmetric."""

    values: Any
    left: Code
    right: Code


def symmetric_spectrum(S: Solver, dense: Callable[[], Any]) -> Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix; `dense` makes it where its parts do not help."""
    return _spectrum(S, dense, True)


def singular_spectrum(S: Solver, dense: Callable[[], Any]) -> Spectrum:
    """Singular values and vectors."""
    return _spectrum(S, dense, False)


def _spectrum(S: Solver, dense: Callable[[], Any] | None, symmetric: bool) -> Spectrum:
    found = _by_parts(S, symmetric)
    if found is None:
        small_enough(S.shape)
        return _of_dense(S.apply(np.eye(S.shape[1], dtype=S.dtype)) if dense is None else dense(), symmetric)
    return found


def small_enough(shape: tuple[int, int], what: str = "all eigenvalues or singular values with their vectors") -> None:
    """Refuse to make a huge dense matrix that nobody asked for."""
    if min(shape) > 4 * tuning.DENSE_UNKNOWNS or shape[0] * shape[1] > 16 * tuning.DENSE_UNKNOWNS**2:
        advice = "ask for k of them, L.eigh(k) or L.svd(k), or compute them from np.asarray(L)"
        raise SolveError(f"{what} of a map of shape {shape} without parts need a dense matrix: {advice}")


def _of_dense(a: Any, symmetric: bool) -> Spectrum:
    if symmetric:
        w, v = linalg.eigh(a, check_finite=False) if len(a) else (np.zeros(0, a.dtype), a)
        return Spectrum(w, *[_times(v)] * 2)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return Spectrum(s, _times(u), _times(vt.T))


def _by_parts(S: Solver, symmetric: bool) -> Spectrum | None:
    """The spectrum from the parts of a matrix; None where there are none."""
    match S:
        case DiagonalSolver():
            sign = np.where(S.d < 0, -1, 1).astype(S.dtype)[:, None]
            if symmetric or (S.d >= 0).all():
                return Spectrum(S.d, _same, _same)
            return Spectrum(np.abs(S.d), lambda x: sign * x, _same)
        case Permutation() if not symmetric:
            sign, index = np.where(S.values < 0, -1, 1).astype(S.dtype)[:, None], S.index
            back = np.argsort(index)  # A = diag(values) P, and P e_index(i) = e_i
            return Spectrum(np.abs(S.values), lambda x: sign * x, lambda x: x[back])
        case BlockDiagonalSolver():
            return _of_blocks(S.blocks, symmetric)
        case Banded() if symmetric:
            w, v = _banded(S)
            return Spectrum(w, *[_times(v)] * 2)
        case Dense():
            return _of_dense(S.matrix, symmetric)
        case Reordered():
            return _reordered(S, symmetric)
        case SeparateSolver():
            found = [_spectrum(m, None, symmetric) for m in S.members]
            values = np.concatenate([f.values for f in found])
            return Spectrum(values, *[_apart([f[i] for f in found], S.cuts) for i in (1, 2)])
        case Kronecker() if not symmetric or all([looks_symmetric(f.apply, *f.shape, f.dtype) for f in S.factors]):
            return _product([_spectrum(f, None, symmetric) for f in S.factors], np.multiply)
        case KroneckerSum() if symmetric:
            return _product([_of_dense(a, True) for a in S.matrices], np.add)
        case Axes():
            return _turned(S, symmetric)
        case _:
            return None


def looks_symmetric(apply: Code, m: int, n: int, dtype: Any) -> bool:
    """Whether x·Ay = y·Ax for some x and y, to rounding."""
    if m != n:
        return False
    x, y = np.random.default_rng(7).standard_normal((2, n)).astype(dtype)
    Ax, Ay = apply(x), apply(y)
    size = np.linalg.norm(x) * np.linalg.norm(Ay) + np.linalg.norm(y) * np.linalg.norm(Ax)
    return bool(np.abs(x @ Ay - y @ Ax) <= 1e3 * np.finfo(dtype).eps * size)


def _same(x: Any) -> Any:
    return x


def _times(a: Any) -> Code:
    return lambda x: a @ x


def _of_blocks(blocks: Any, symmetric: bool) -> Spectrum:
    N, m, _ = blocks.shape

    def code(a: Any) -> Code:
        return lambda x: np.einsum("nij,njk->nik", a, x.reshape(N, m, -1)).reshape(N * m, -1)

    if symmetric:
        w, v = np.linalg.eigh(blocks)
        return Spectrum(w.reshape(-1), *[code(v)] * 2)
    u, s, vt = np.linalg.svd(blocks)
    return Spectrum(s.reshape(-1), code(u), code(vt.transpose(0, 2, 1)))


def lower_bands(S: Banded) -> Any:
    """The main diagonal and those below, as SciPy's symmetric band matrices are stored."""
    return S.ab[S.upper :]


def _banded(S: Banded, vectors: bool = True) -> Any:
    if vectors:
        small_enough(S.shape)
    if S.lower <= 1 and S.shape[0] > 1:
        ends = S.ab[S.upper], (S.ab[-1, :-1] if S.lower else np.zeros(S.shape[0] - 1, S.dtype))
        return linalg.eigh_tridiagonal(*ends, eigvals_only=not vectors, check_finite=False)
    return linalg.eig_banded(lower_bands(S), lower=True, eigvals_only=not vectors, check_finite=False)


def ends_of(S: Solver, k: int, which: str) -> Any:
    """The k smallest and the k largest eigenvalues of a tridiagonal matrix, with vectors; None for others, and where
    the smallest in size lie between."""
    if not isinstance(S, Banded) or S.lower > 1 or 2 * k >= S.shape[0]:
        return None
    n, line = S.shape[0], (S.ab[-1, :-1] if S.lower else np.zeros(S.shape[0] - 1, S.dtype))
    found: list[Any] = []
    for low in (0, n - k):
        if which != ("LA" if low == 0 else "SA"):
            found.append(linalg.eigh_tridiagonal(S.ab[S.upper], line, select="i", select_range=(low, low + k - 1)))
    if which == "SM" and not (found[0][0] > 0).all():
        return None
    return [np.concatenate([f[i] for f in found], axis=-1) for i in (0, 1)]


def _reordered(S: Reordered, symmetric: bool) -> Spectrum | None:
    place, inner = S.place, S.inner
    if inner.shape[0] == len(place):
        found = _by_parts(inner, symmetric)
        if found is None:
            return None
        return Spectrum(found.values, *[lambda x, f=f: f(x)[place] for f in found[1:]])
    if not isinstance(inner, BlockDiagonalSolver):
        return None
    # Blocks are padded by ones: a padding larger than all others is told from them.
    N, m, _ = inner.blocks.shape
    padding = np.ones(N * m, bool)
    padding[place] = False
    blocks, size = inner.blocks.copy(), 4.0 * float(np.abs(inner.blocks).sum(axis=2).max()) + 1.0
    blocks[:, np.arange(m), np.arange(m)] += (padding * (size - 1.0)).reshape(N, m).astype(blocks.dtype)
    found = _of_blocks(blocks, symmetric)
    mine = np.flatnonzero(np.abs(found.values) < 0.75 * size)

    def code(f: Code) -> Code:
        def padded(x: Any) -> Any:
            return f(spread(x, mine, N * m))[place]

        return padded

    return Spectrum(found.values[mine], code(found.left), code(found.right))


def _apart(codes: Sequence[Code], cuts: Any) -> Code:
    return lambda x: np.concatenate([f(part) for f, part in zip(codes, np.split(x, cuts), strict=True)])


def along_axes(codes: Sequence[Code], sizes: Sequence[int]) -> Code:
    """A Kronecker product of square matrices, each as code, on columns."""

    def code(x: Any) -> Any:
        cube = x.reshape(*sizes, -1)
        for axis, f in enumerate(codes):
            moved = np.moveaxis(cube, axis, 0)
            cube = np.moveaxis(f(moved.reshape(sizes[axis], -1)).reshape(moved.shape), 0, axis)
        return cube.reshape(x.shape)

    return code


def _product(found: Sequence[Spectrum], join: Any) -> Spectrum:
    """Of a Kronecker product, or a sum."""
    values = reduce(lambda a, b: join.outer(a, b), [f.values for f in found]).reshape(-1)
    sizes = [len(f.values) for f in found]
    return Spectrum(values, *[along_axes([f[i] for f in found], sizes) for i in (1, 2)])


def _turned(S: Axes, symmetric: bool) -> Spectrum | None:
    (row, down), (column, across) = S.sides
    if symmetric and (row, down) != (column, across):
        return None
    found = _spectrum(S.inner, None, symmetric)

    def code(f: Code, shape: Any, order: list[int]) -> Code:
        back = [order.index(i) for i in range(len(order))]
        return lambda x: f(x).reshape(*[shape[i] for i in order], -1).transpose(*back, len(back)).reshape(x.shape)

    return Spectrum(found.values, code(found.left, row, down), code(found.right, column, across))


def eigenvalues(S: Solver, dense: Callable[[], Any]) -> Any:
    """The eigenvalues of a symmetric matrix alone, in ascending order."""
    match S:
        case Banded():
            found = _banded(S, False)
        case Reordered(inner=Banded()):
            found = _banded(cast(Banded, S.inner), False)
        case LowRankPlus(base=DiagonalSolver()) if (shift := multiple(S)) is not None:
            few = linalg.eigvalsh(low_rank_form(S)[1])
            found = np.concatenate([np.full(S.shape[0] - len(few), shift, S.dtype), shift + few])
        case _:
            found = _by_parts(S, True)
            if found is None:
                small_enough(S.shape)
                return linalg.eigvalsh(dense(), check_finite=False)
            found = found.values
    return np.sort(found)


def multiple(S: LowRankPlus) -> Any:
    """The c of a base c·I, and None for any other."""
    d = S.base.d if isinstance(S.base, DiagonalSolver) else np.zeros(0)
    return d[0] if len(d) and (d == d[0]).all() else None


def low_rank_form(S: LowRankPlus) -> tuple[Any, Any]:
    """Q with orthonormal columns and a small symmetric matrix B with U Vᵀ = Q B Qᵀ."""
    Q, R = np.linalg.qr(np.concatenate([S.U, S.V], axis=1) if S.V is not S.U else S.U)
    k = S.U.shape[1]
    left, right = (R[:, :k], R[:, k:]) if S.V is not S.U else (R, R)
    B = left @ right.T
    return Q, 0.5 * (B + B.T)


def cholesky_code(S: Solver, dense: Callable[[], Any], stored: Callable[[], Any] | None) -> Code:
    """C, lower triangular, with C Cᵀ = A."""
    found = _cholesky(S)
    if found is not None:
        return found
    if stored is not None:
        return _sparse_cholesky(stored())
    small_enough(S.shape, "the Cholesky factor")
    return _times(_factor(dense()))


def _factor(a: Any) -> Any:
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise SolveError(NOT_DEFINITE) from None


NOT_DEFINITE = "the map is not positive definite: it has no Cholesky factor; L.eigh() tells its eigenvalues"


def _cholesky(S: Solver) -> Code | None:
    match S:
        case DiagonalSolver():
            if not (S.d > 0).all():
                raise SolveError(f"{NOT_DEFINITE} (entry {int(np.argmin(S.d))} of its diagonal is {S.d.min()})")
            root = np.sqrt(S.d)[:, None]
            return lambda x: root * x
        case BlockDiagonalSolver():
            N, m, _ = S.blocks.shape
            lower = _factor(S.blocks)
            return lambda x: np.einsum("nij,njk->nik", lower, x.reshape(N, m, -1)).reshape(N * m, -1)
        case Banded():
            return _banded_cholesky(S)
        case Dense():
            return _times(_factor(S.matrix))
        case Reordered(inner=BlockDiagonalSolver()) if S.inner.shape[0] == len(S.place):
            inner, place, back = cast(Code, _cholesky(S.inner)), S.place, np.argsort(S.place)
            return lambda x: inner(x[back])[place]
        case SeparateSolver():
            parts = [_cholesky(m) for m in S.members]
            return None if None in parts else _apart(cast(Any, parts), S.cuts)
        case Kronecker():
            factors = [_cholesky(f) for f in S.factors]
            return None if None in factors else along_axes(cast(Any, factors), S.sizes)
        case Axes(inner=inner) if all([order == sorted(order) for _, order in S.sides]):
            return _cholesky(inner)
        case _:
            return None


def _banded_cholesky(S: Banded) -> Code:
    try:
        bands = linalg.cholesky_banded(lower_bands(S), lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise SolveError(NOT_DEFINITE) from None
    n = S.shape[0]
    lines = {-d: band[: n - d, None] for d, band in enumerate(bands) if d < n}
    return diagonals(lines, S.shape)


def _sparse_cholesky(a: Any) -> Code:
    """Without exchanges, from SuperLU: A = L D Lᵀ."""
    from .krylov import sparse_linalg
    from .sparse import sparse

    try:
        still: Any = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        lu = sparse_linalg.splu(sparse.csc_array(a), **still)
    except RuntimeError:
        raise SolveError(NOT_DEFINITE) from None
    d = lu.U.diagonal()
    if not (d > 0).all() or not np.array_equal(lu.perm_r, np.arange(a.shape[0])):
        raise SolveError(NOT_DEFINITE)
    root = sparse.csr_array(lu.L) @ sparse.diags_array(np.sqrt(d))
    return lambda x: root @ x


def chosen(values: Any, k: int | None, which: str) -> Any:
    """The order of some values: all ascending, or k of them as SciPy's eigsh names them, ascending."""
    keys = {"LM": np.abs(values), "SM": -np.abs(values), "LA": values, "SA": -values}
    if which not in keys:
        raise SpaceError(f"which={which!r}: expected one of {', '.join(keys)}, as in scipy.sparse.linalg.eigsh")
    if k is not None:
        best = np.argsort(-keys[which], kind="stable")[:k]
        return best[np.argsort(values[best], kind="stable")]
    return np.argsort(values, kind="stable")
