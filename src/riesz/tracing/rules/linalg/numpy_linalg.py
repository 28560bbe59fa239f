"""np.linalg: rules that write the ops of matrices.py, determinants.py and norms.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...registry import NOT_SAID, answer_rows, answers
from ...trace import refuse
from ...traced import INT, Traced, lifted, operands
from ..elementwise import floating, unmoving
from ..rearranging import axes_of
from . import matrix_ops as m
from .determinants import DET

_Eigh: Any = type(np.linalg.eigh(np.eye(1)))
_Svd: Any = type(np.linalg.svd(np.eye(1)))
_Qr: Any = type(np.linalg.qr(np.eye(1)))
_Slogdet: Any = type(np.linalg.slogdet(np.eye(1)))


def stacked_matrices(a: Any, square: bool = True) -> Traced:
    """Floating-point matrices in the last two axes, checked as NumPy does."""
    x = floating(a)
    if x.ndim < 2:
        raise np.linalg.LinAlgError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return x


def together(*xs: Any) -> tuple[Traced, ...]:
    """Arrays in their common type."""
    trace, slots, dtype, _ = operands(*xs)
    return tuple([Traced(trace, slot, dtype) for slot in slots])


@answers(np.linalg.solve, what="op solve, linear in b", rule="A⁻¹(db − dA·x)")
def solve(a: Any, b: Any) -> Any:
    """A⁻¹b: b is a vector if it has one axis, otherwise matrices."""
    x, y = together(a, b)
    stacked_matrices(x)
    return np.squeeze(m.solve(x, y[:, None]), -1) if y.ndim == 1 else m.solve(x, y)


def inv(a: Any) -> Any:
    """A⁻¹."""
    return m.inverse(stacked_matrices(a))


def det(a: Any) -> Any:
    """The determinant."""
    return m.applied(DET, stacked_matrices(a))


@m.differential_of(
    "slogdet", lambda a: tuple([np.asarray(x) for x in np.linalg.slogdet(a)]), lambda a: (a[:-2], a[:-2])
)
def SLOGDET(d: Any, y: Any, a: Any) -> Any:
    return None, np.sum(m.inverse(a, strict=False).mT * d[0], axis=(-2, -1))


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """L with L·Lᵀ = A, or its transpose."""
    factor = m.cholesky(stacked_matrices(a), not upper)
    return factor.mT if upper else factor


def _eigh(a: Any, UPLO: str) -> tuple[Traced, ...]:
    x = stacked_matrices(a)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return m.eigh(x, lower=UPLO.upper() == "L")


_SVD = "ds = diag(Uᵀ·dA·V); dU, dV by differences and sums of singular values; equal ones have none"


@answers(np.linalg.svd, what="op svd", rule=_SVD)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """U, s, Vᵀ. Columns beyond the rank of the frame are any that complete it; they turn against the others only."""
    x = stacked_matrices(a, square=hermitian)
    if hermitian:
        return _from_eigenvectors(x, compute_uv)
    rows, columns = x.shape[-2:]
    u, s, vh = m.svd(x, compute_uv and full_matrices and rows != columns)
    return _Svd(u, s, vh) if compute_uv else s


def _from_eigenvectors(x: Traced, compute_uv: bool) -> Any:
    """The singular value decomposition of a symmetric matrix: eigenvalues by size, their signs in Vᵀ."""
    w, v = m.eigh(x)
    order = unmoving(_by_size, x.dtype, w, shaped=m.square_shape)
    w = np.einsum("...i,...ij->...j", w, order)
    if not compute_uv:
        return np.absolute(w)
    v = v @ order
    return _Svd(v, np.absolute(w), (v * np.sign(w)[..., None, :]).mT)


def _by_size(w: Any) -> Any:
    places = np.argsort(np.abs(w), axis=-1)[..., ::-1]
    return (np.arange(w.shape[-1])[:, None] == places[..., None, :]).astype(w.dtype)


def svdvals(x: Any, /) -> Any:
    """Singular values."""
    return m.svd(stacked_matrices(x, square=False))[1]


@answers(np.linalg.pinv, what="op pinv", rule="−A⁺·dA·A⁺ + A⁺A⁺ᵀ·dAᵀ(1 − AA⁺) + (1 − A⁺A)dAᵀ·A⁺ᵀA⁺, at constant rank")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    x = stacked_matrices(a, square=hermitian)
    given = rcond if rtol is None else rtol
    if given is None or given is NOT_SAID:
        given = 1e-15 if rtol is None else max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    if type(given) is Traced or np.ndim(given):
        raise refuse("np.linalg.pinv takes one fixed number as its cutoff here")
    x = m.mirrored(x) if hermitian else x
    return m.applied(m.PINV, x, cutoff=float(given), hermitian=hermitian)


@answers(np.linalg.matrix_power, what="contractions, by repeated squaring", rule="one summand per factor")
def matrix_power(a: Any, n: Any) -> Any:
    x: Any = stacked_matrices(a)
    if not isinstance(n, (int, np.integer)):
        raise TypeError("exponent must be an integer")
    if n == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=lifted(a).dtype), x.shape)
    x, n = (m.inverse(x), -n) if n < 0 else (lifted(a), n)  # whole numbers stay that
    return whole_power(x, int(n), np.matmul)


def whole_power(x: Any, n: int, times: Any) -> Any:
    """The product of n > 0 factors x, by repeated squaring."""
    result: Any = None
    while n:
        if n % 2:
            result = x if result is None else times(result, x)
        n //= 2
        x = times(x, x) if n else x
    return result


_QR = "dQ = C − Q(N − Ω), dR = (N − Ω)R, with C = dA·R⁻¹, N = QᵀC, Ω skew with N's lower triangle"


@answers(np.linalg.qr, what="op qr", rule=_QR)
def qr(a: Any, mode: str = "reduced") -> Any:
    x = stacked_matrices(a, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise refuse(f"np.linalg.qr in mode {mode!r} is not known to riesz; 'reduced', 'complete' and 'r' are")
    return m.qr(x)[1] if mode == "r" else _Qr(*m.qr(x, mode == "complete"))


@answers(np.linalg.lstsq, what="pinv(A)·b", rule="that of pinv and the product")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution, residuals (of the full rank), rank and singular values."""
    x, y = together(a, b)
    rows, columns = stacked_matrices(x, square=False).shape[-2:]
    eps = float(np.finfo(x.dtype).eps)
    cutoff = eps * max(rows, columns) if rcond is None else eps if rcond == -1 else float(rcond)
    solution = m.applied(m.PINV, x, cutoff=cutoff, hermitian=False) @ y
    left: Any = np.zeros(0, x.dtype)
    if rows > columns:
        off = y - x @ solution
        left = np.sum(off * off, axis=0, keepdims=y.ndim == 1)
    return solution, left, _rank(x, cutoff), m.svd(x)[1]


def _rank(x: Any, cutoff: float | None) -> Any:
    parameters = {} if cutoff is None else {"rtol": cutoff}
    return unmoving(_rank_array, INT, x, shaped=_lead_shape, **parameters)


def _lead_shape(shapes: Any, parameters: Any) -> Any:
    return shapes[0][:-2]


def _rank_array(x: Any, rtol: float | None = None) -> Any:
    return np.asarray(np.linalg.matrix_rank(x, rtol=rtol))[()]


@answers(np.linalg.matrix_rank, what="discrete", rule="no derivative")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if tol is not None:
        raise refuse(
            "np.linalg.matrix_rank of a traced array takes rtol=…, relative to the largest singular value, not tol=…"
        )
    return _rank(stacked_matrices(A, square=False), None if rtol is None else float(rtol))


@answers(np.linalg.tensorsolve, what="reshapes and op solve", rule="that of solve")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, y = together(a, b)
    if axes is not None:
        gone = axes_of(tuple(axes), x.ndim)
        x = np.transpose(x, (*[i for i in range(x.ndim) if i not in gone], *gone))
    shape = x.shape[y.ndim :]
    n = math.prod(shape)
    if x.size != n * n:
        raise np.linalg.LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(solve(np.reshape(x, (n, n)), np.ravel(y)), shape)


@answers(np.linalg.tensorinv, what="reshapes and op inv", rule="that of inv")
def tensorinv(a: Any, ind: int = 2) -> Any:
    x = floating(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = (*x.shape[ind:], *x.shape[:ind])
    return np.reshape(inv(np.reshape(x, (math.prod(x.shape[:ind]), -1))), shape)


_CHOLESKY = "L·Φ(L⁻¹·dA·L⁻ᵀ), Φ: lower triangle, half of the diagonal"
_EIGH = "dw = diag M, dV = V·(M / (wⱼ − wᵢ)), M = Vᵀ·dA·V; equal eigenvalues have no dV"
answer_rows(
    (np.linalg.inv, "op inv", "−A⁻¹·dA·A⁻¹", inv),
    (np.linalg.det, "op det", "⟨cofactors, dA⟩, at every rank and order", det),
    (np.linalg.slogdet, "op slogdet", "0, ⟨A⁻ᵀ, dA⟩", lambda a: _Slogdet(*m.taken_apart(SLOGDET, stacked_matrices(a)))),
    (np.linalg.cholesky, "op cholesky", _CHOLESKY, cholesky),
    (np.linalg.eigh, "op eigh", _EIGH, lambda a, UPLO="L": _Eigh(*_eigh(a, UPLO))),
    (np.linalg.eigvalsh, "op eigh", "diag(Vᵀ·dA·V)", lambda a, UPLO="L": _eigh(a, UPLO)[0]),
    (np.linalg.svdvals, "op svd", "diag(Uᵀ·dA·V); 0 where s = 0", svdvals),
)
