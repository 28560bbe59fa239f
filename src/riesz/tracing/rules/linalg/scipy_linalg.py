"""Counterparts of scipy.linalg for traced arrays, written with the ops of np.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import FLOAT, Traced, convert, tidy
from ..elementwise import floating
from ..gathering import along
from ..rearranging import concatenate
from . import matrix_ops as m
from . import norms
from . import numpy_linalg as linalg
from .determinants import ANALYTIC
from .scipy_batches import over_batch

SYMMETRIC = ("sym", "her", "pos", "symmetric", "hermitian", "positive definite")
TRIANGULAR = ("lower triangular", "upper triangular")


def _lapack(x: Any) -> Any:
    """An array in a type that LAPACK knows: float16 becomes float32."""
    x = tidy(x)
    return convert(x, np.dtype(np.float32)) if getattr(x, "dtype", None) == np.float16 else x


def stacked_matrices(a: Any, square: bool = True) -> Traced:
    """Floating-point matrices in the last two axes, in a type that LAPACK knows."""
    return linalg.stacked_matrices(_lapack(a), square)


def _common(*xs: Any) -> tuple[Traced, ...]:
    """Arrays in their common type, one that LAPACK knows."""
    return linalg.together(*[_lapack(x) for x in xs])


def _columns(b: Any) -> Any:
    return b[:, None] if np.ndim(b) == 1 else b


def _like(x: Any, b: Any) -> Any:
    return np.squeeze(x, -1) if np.ndim(b) == 1 else x


def _number_or_letter(trans: Any) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans is 0, 1, 2, 'N', 'T' or 'C'; got {trans!r}")
    return trans in (1, 2, "T", "C")


# -- solves -----------------------------------------------------------------------------------------------


def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: Any = False) -> Any:
    """A⁻¹b; what is assumed of A says which part of it is read."""
    x, y = _common(a, b)
    if assume_a in TRIANGULAR:
        return solve_triangular(x, y, transposed, assume_a == TRIANGULAR[0])
    if assume_a == "diagonal":
        x = np.where(np.eye(x.shape[-1], dtype=bool), x, 0.0)
    else:
        stacked_matrices(x)
    x = m.mirrored(x, lower) if assume_a in SYMMETRIC else x
    return _like(m.solve(x, _columns(y), bool(transposed)), y)


def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: Any = False, unit_diagonal: Any = False) -> Any:
    x, y = _common(a, b)
    how = bool(lower), _number_or_letter(trans), bool(unit_diagonal)
    return _like(m.solve_triangular(stacked_matrices(x), _columns(y), *how), y)


def inv(a: Any, assume_a: Any = None, lower: bool = False) -> Any:
    x = stacked_matrices(a)
    if assume_a in TRIANGULAR:
        x = (np.tril if assume_a == TRIANGULAR[0] else np.triu)(x)
    return m.inverse(m.mirrored(x, lower) if assume_a in SYMMETRIC else x)


def cholesky(a: Any, lower: bool = False) -> Any:
    factor = m.cholesky(stacked_matrices(np.atleast_2d(a)), lower)
    return factor if lower else factor.mT


def cho_factor(a: Any, lower: bool = False) -> Any:
    """The factor for cho_solve; its other triangle is that of A."""
    x = stacked_matrices(np.atleast_2d(a))
    read = np.tri(x.shape[-1], dtype=bool)
    factor = np.where(read if lower else read.T, cholesky(x, lower), x)
    return [factor, np.full(x.shape[:-2], lower)] if x.ndim > 2 else (factor, lower)


def cho_solve(c_and_lower: Any, b: Any) -> Any:
    factor, lower = c_and_lower
    lower = bool(np.all(lower))  # one for all matrices of a stack
    x, y = _common(factor, b)
    half = m.solve_triangular(x, _columns(y), lower, not lower)
    return _like(m.solve_triangular(x, half, lower, lower), y)


def _lu_factor(a: Any) -> tuple[Traced, Traced]:
    """L and U in one array, and the exchanges of rows."""
    packed, pivots = m.taken_apart(m.LU, stacked_matrices(a))
    return packed, Traced(pivots.home, pivots.slot, np.dtype(np.int32))


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0) -> Any:
    packed, pivots = lu_and_piv
    x, y = _common(packed, b)
    rows = m.exchange(pivots, x)
    if _number_or_letter(trans):
        half = m.solve_triangular(x, _columns(y), False, True)
        return _like(rows.mT @ m.solve_triangular(x, half, True, True, True), y)
    half = m.solve_triangular(x, rows @ _columns(y), True, unit=True)
    return _like(m.solve_triangular(x, half, False), y)


def lu(a: Any, permute_l: bool = False, p_indices: bool = False) -> Any:
    if p_indices:
        raise refuse("scipy.linalg.lu with p_indices=True is not known to riesz; leave it out, P is then a matrix")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise refuse(f"scipy.linalg.lu is known to riesz for square matrices; got an array of shape {a.shape}")
    packed, pivots = _lu_factor(a)
    p, (lower, upper) = m.exchange(pivots, packed).mT, m.unpacked(packed)
    return (p @ lower, upper) if permute_l else (p, lower, upper)


# -- bands ------------------------------------------------------------------------------------------------


def _banded_product(ab: Any, x: Any, *, below: int, above: int, turned: bool) -> Any:
    """A·x or Aᵀ·x for A given by its diagonals."""
    n = x.shape[-2]
    r, i = np.arange(below + above + 1)[:, None], np.arange(n)
    column = i + 0 * r if turned else i + above - r  # of the band
    meets = i - above + r if turned else column  # the row of x
    there = (meets >= 0) & (meets < n)
    flat: Any = np.reshape(ab, (*ab.shape[:-2], ab.shape[-2] * n))
    band = m.within(there, along(flat, flat.ndim - 1, r * n + np.where(there, column, 0)))
    return np.einsum("...ri,...rim->...im", band, along(x, x.ndim - 2, np.where(there, meets, 0)))


def _turned_band(ab: Any, below: int, above: int) -> Any:
    """The diagonals of the transpose."""
    r, column = np.arange(below + above + 1)[:, None], np.arange(ab.shape[-1])
    at = column + r - below
    there = (at >= 0) & (at < ab.shape[-1])
    return np.where(there, ab[..., below + above - r, np.where(there, at, 0)], ab.dtype.type(0))


@m.columnwise
def _banded_array(ab: Any, b: Any, *, below: int, above: int, turned: bool) -> Any:
    import scipy.linalg

    if turned:
        ab, below, above = _turned_band(ab, below, above), above, below
    code = scipy.linalg.solve_banded
    return m.each(lambda ab, b: code((below, above), ab, b, check_finite=False) if b.size else b, ab, b)


BANDED = m.solver("solve_banded", _banded_array, _banded_product, flag="turned", linear_time=True, mixes=(-2,))


@over_batch(None, 2, "1|2")
def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Any:
    below, above = [int(k) for k in l_and_u]
    x, y = _common(ab, b)
    if x.ndim != 2 or x.shape[0] != below + above + 1 or x.shape[1] != y.shape[0]:
        raise ValueError(
            f"solve_banded: {below} + {above} + 1 diagonals of length {y.shape[0]} are wanted; got an array of shape "
            f"{x.shape}"
        )
    return _like(m.applied(BANDED, x, _columns(y), below=below, above=above, turned=False), y)


@over_batch(2, "1|2")
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """The same for a symmetric matrix given by half of its diagonals: the other half are these, moved."""
    x, y = _common(ab, b)
    if x.ndim != 2 or x.shape[1] != y.shape[0]:
        raise ValueError(f"solveh_banded: diagonals of length {y.shape[0]} are wanted; got an array of shape {x.shape}")
    k, n = x.shape[0] - 1, x.shape[1]
    row, column = np.arange(1, k + 1)[:, None], np.arange(n)
    half = x if lower else x[::-1]  # diagonal by diagonal from the main one
    at = column - row if lower else column + row
    there = (at >= 0) & (at < n)
    mirrored = m.within(there, half[row, np.where(there, at, 0)]) if k else half[1:]
    down, up = (half[1:], mirrored) if lower else (mirrored, half[1:])
    full = concatenate([up[::-1], half[:1], down], 0)
    return _like(m.applied(BANDED, full, _columns(y), below=k, above=k, turned=False), y)


def solve_circulant(c: Any, b: Any, caxis: int = -1, baxis: int = 0, outaxis: int = 0, **named: Any) -> Any:
    """C⁻¹b for the matrix with columns c moved round: a quotient of Fourier transforms."""
    x, y = np.atleast_1d(tidy(c)), np.atleast_1d(tidy(b))
    if np.ndim(x) != 1 or (caxis, outaxis) not in ((-1, 0), (0, 0)) or baxis != 0 or named.get("singular") == "lstsq":
        raise refuse(
            "scipy.linalg.solve_circulant is known to riesz for one vector c, the usual axes and singular='raise'"
        )
    if np.shape(x) != np.shape(y)[:1]:
        raise ValueError(f"Shapes of c {np.shape(x)} and b {np.shape(y)} are incompatible")
    values = np.fft.fft(x)
    wide = np.reshape(values, (np.shape(x)[0], *(1,) * (np.ndim(y) - 1)))
    return np.real(np.fft.ifft(np.fft.fft(y, axis=0) / wide, axis=0))


# -- factorisations ---------------------------------------------------------------------------------------


@over_batch(2, 2)
def eigh(a: Any, b: Any, lower: bool, eigvals_only: bool, subset_by_index: Any, driver: Any, **other: Any) -> Any:
    """Eigenvalues and eigenvectors of a symmetric matrix, or of a pair A·v = w·B·v."""
    if other.get("subset_by_value") is not None or other.get("type", 1) != 1:
        raise refuse(
            "scipy.linalg.eigh with subset_by_value or another type than 1 is not known to riesz; subset_by_index is"
        )
    subset = None if subset_by_index is None else tuple([int(k) for k in subset_by_index])
    matrices = [stacked_matrices(x) for x in _common(*[x for x in (a, b) if x is not None])]
    w, v = m.eigh(*matrices, lower=lower, driver=driver or "", subset=subset)
    if subset is not None:
        w, v = w[..., subset[0] : subset[1] + 1], v[..., :, subset[0] : subset[1] + 1]
    return w if eigvals_only else (w, v)


@over_batch(2)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    found = linalg.svd(_lapack(a), full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@over_batch(2)
def qr(a: Any, mode: str = "full", pivoting: bool = False) -> Any:
    if pivoting or mode not in ("full", "r", "economic"):
        raise refuse("scipy.linalg.qr is known to riesz without pivoting, in the modes 'full', 'economic' and 'r'")
    q, r = m.qr(stacked_matrices(a, square=False), mode != "economic")
    return (r,) if mode == "r" else (q, r)


@over_batch(2)
def polar(a: Any, side: str = "right") -> Any:
    x = stacked_matrices(a, square=False)
    w = m.polar(x, strict=True)
    return w, w.mT @ x if side == "right" else x @ w.mT


def pinv(a: Any, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Any:
    if atol is not None or return_rank:
        raise refuse("scipy.linalg.pinv of a traced array takes rtol=… only")
    x = stacked_matrices(a, square=False)
    return linalg.pinv(x, max(x.shape[-2:]) * float(np.finfo(x.dtype).eps) if rtol is None else rtol)


@over_batch(2, "1|2")
def lstsq(a: Any, b: Any, cond: Any = None) -> Any:
    x, y = _common(a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ValueError(
            f"lstsq(A, b): a matrix and a right-hand side with as many rows are wanted; got shapes {x.shape} and "
            f"{y.shape}"
        )
    solution, left, rank, s = linalg.lstsq(x, y, float(np.finfo(x.dtype).eps) if cond is None else cond)
    return solution, left[0] if y.ndim == 1 and np.shape(left)[0] else left, rank, s


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """As np.linalg.norm, but for the type: what BLAS and LAPACK compute comes back as a float64."""
    x = floating(a)
    plain = axis is None and not keepdims and x.size and x.dtype != np.float16
    lapack = (x.ndim == 1 and ord in (None, 2)) or (x.ndim == 2 and ord in (1, np.inf) and 1 not in x.shape)
    return norms.norm(convert(x, FLOAT) if plain and lapack else x, ord, axis, keepdims)


# -- functions and equations ------------------------------------------------------------------------------


def analytic(name: str) -> Any:
    """expm, logm and their kin."""

    def code(A: Any) -> Any:
        x = stacked_matrices(A)
        x = convert(x, FLOAT) if name == "logm" else x  # SciPy's logm leaves single precision
        return m.applied(ANALYTIC[name], x, at=0)

    return code


@over_batch(2, 2)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    x, y = _common(a, q)
    return m.sylvester(x, x.mT, y)


@over_batch(2, 2)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """X with AXAᵀ − X + Q = 0, as one system of linear equations, of float64 as in SciPy."""
    x, y = _common(a, q)
    n = x.shape[0]
    system = np.eye(n * n) - np.kron(x, x)
    return np.reshape(m.solve(system, np.reshape(y, (n * n, 1))), (n, n))


# -- matrices of a given form -----------------------------------------------------------------------------


def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal; the axes in front of them are broadcast."""
    blocks = [np.atleast_2d(tidy(x)) for x in arrs]
    lead = np.broadcast_shapes(*[np.shape(x)[:-2] for x in blocks])
    ends = np.cumsum([np.shape(x)[-1] for x in blocks])
    rows: list[Any] = []
    for x, end in zip(blocks, ends, strict=True):
        around = (int(end) - np.shape(x)[-1], int(ends[-1] - end))
        wide = np.broadcast_to(x, (*lead, *np.shape(x)[-2:]))
        rows.append(np.pad(wide, (*[(0, 0)] * (len(lead) + 1), around)))
    return concatenate(rows, len(lead))


def toeplitz(c: Any, r: Any = None) -> Any:
    """Constant along diagonals: first column c, first row r (its first element is not read)."""
    column = np.atleast_1d(tidy(c))
    row = column if r is None else np.atleast_1d(tidy(r))
    lead = np.broadcast_shapes(np.shape(column)[:-1], np.shape(row)[:-1])
    n, k = np.shape(column)[-1], np.shape(row)[-1]
    column, row = np.broadcast_to(column, (*lead, n)), np.broadcast_to(row, (*lead, k))
    both = concatenate([np.flip(row[..., 1:], -1), column], len(lead))
    return along(both, len(lead), np.arange(n)[:, None] - np.arange(k) + k - 1)


def hankel(c: Any, r: Any = None) -> Any:
    """Constant along anti-diagonals: first column c, last row r (its first element is not read)."""
    column = np.ravel(tidy(c))
    row = np.zeros(np.shape(column), column.dtype) if r is None else np.ravel(tidy(r))
    n, k = np.shape(column)[0], np.shape(row)[0]
    return along(concatenate([column, row[1:]], 0), 0, np.arange(n)[:, None] + np.arange(k))


def circulant(c: Any) -> Any:
    """Columns that are c moved round."""
    c = np.atleast_1d(c)
    n = c.shape[-1]
    return along(c, c.ndim - 1, (np.arange(n)[:, None] - np.arange(n)) % n)


def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """T⁻¹b for a Toeplitz matrix, built in full, of float64 as in SciPy."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return _solve_toeplitz(c, r, b)


@over_batch(1, 1, "1|2")
def _solve_toeplitz(c: Any, r: Any, b: Any) -> Any:
    if type(c) is Traced or type(r) is Traced:
        return solve(convert(toeplitz(c, r), FLOAT), b)
    import scipy.linalg

    return solve(convert(scipy.linalg.toeplitz(c, r), FLOAT), b)


def _eigvalsh(a: Any, b: Any, lower: bool, subset_by_index: Any, driver: Any, **other: Any) -> Any:
    return eigh(a, b, lower, True, subset_by_index, driver, **other)


_CORNER = "a corner of the function of a block triangular matrix, of any order"
_sylvester = over_batch(2, 2, 2)(lambda a, b, q: m.sylvester(*_common(a, b, q)))
_ROOT = "dX with X·dX + dX·X = dA"
SOLVES, _IN_TRIANGLE = "A⁻¹(db − dA·x)", "T⁻¹(db − dT·x), dT within the triangle"


def sqrtm(A: Any) -> Any:
    """X with X·X = A."""
    from ..complex.complex_linalg import sqrtm_of_real

    return sqrtm_of_real(stacked_matrices(A), lambda a: m.applied(m.SQRTM, a))


COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "solve": (solve, "op solve, linear in b", SOLVES),
    "solve_triangular": (solve_triangular, "op solve_triangular, linear in b", _IN_TRIANGLE),
    "solve_banded": (solve_banded, "op solve_banded, linear in b", SOLVES),
    "solveh_banded": (solveh_banded, "relational reductions and op solve_banded", SOLVES),
    "solve_circulant": (solve_circulant, "Fourier transforms and a quotient", "that of both"),
    "solve_toeplitz": (solve_toeplitz, "relational reduction and op solve", SOLVES),
    "inv": (inv, "op inv", "−A⁻¹·dA·A⁻¹"),
    "det": (lambda a: linalg.det(convert(floating(a), FLOAT)), "op det", "⟨cofactors, dA⟩, at every rank and order"),
    "cholesky": (cholesky, "op cholesky", "L·Φ(L⁻¹·dA·L⁻ᵀ), Φ: lower triangle, half of the diagonal"),
    "cho_factor": (cho_factor, "op cholesky", "that of cholesky"),
    "cho_solve": (cho_solve, "two triangular solves", "that of both"),
    "lu": (lu, "op lu", "dL = L·(strictly lower W), dU = (upper W)·U, with W = L⁻¹·P·dA·U⁻¹"),
    "lu_factor": (over_batch(2)(_lu_factor), "op lu", "that of lu"),
    "lu_solve": (lu_solve, "two triangular solves", "that of both"),
    "eigh": (eigh, "op eigh", "as np.linalg.eigh; of a pair with M = Vᵀ(dA − wⱼ·dB)V and −½ diag(Vᵀ·dB·V)"),
    "eigvalsh": (_eigvalsh, "op eigh", "diag(Vᵀ·dA·V)"),
    "svd": (svd, "op svd", "as np.linalg.svd"),
    "svdvals": (lambda a: linalg.svdvals(_lapack(a)), "op svd", "diag(Uᵀ·dA·V); 0 where s = 0"),
    "qr": (qr, "op qr", "as np.linalg.qr"),
    "polar": (polar, "op polar and a contraction", "W·Ω + (1 − W·Wᵀ)·dA·P⁻¹, PΩ + ΩP = Wᵀ·dA − dAᵀ·W"),
    "pinv": (pinv, "op pinv", "as np.linalg.pinv"),
    "lstsq": (lstsq, "pinv(A)·b", "that of pinv and the product"),
    "norm": (norm, norms.NORM, norms.NORM_RULE),
    "sqrtm": (sqrtm, "op sqrtm; complex where it is at the point", _ROOT),
    "solve_sylvester": (_sylvester, "op solve_sylvester, linear in Q", "dX with A·dX + dX·B = dQ − dA·X − X·dB"),
    "solve_continuous_lyapunov": (solve_continuous_lyapunov, "op solve_sylvester", "that of solve_sylvester"),
    "solve_discrete_lyapunov": (solve_discrete_lyapunov, "contraction and op solve", "that of solve"),
    "block_diag": (block_diag, "relational reductions: each block placed in its range", "the same of dx"),
    "toeplitz": (toeplitz, "relational reduction: a gather", "the same of dx"),
    "hankel": (hankel, "relational reduction: a gather", "the same of dx"),
    "circulant": (circulant, "relational reduction: a gather", "the same of dx"),
    **{name: (analytic(name), f"op {name}", _CORNER) for name in ANALYTIC},
}
