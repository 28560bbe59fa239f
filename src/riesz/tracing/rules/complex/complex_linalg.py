"""np.linalg of complex matrices, by the real matrix [[A, −B], [B, A]] of twice the size for A + iB.

It has the inverse and the powers of the complex matrix as blocks. Eigenvalues and determinants are ops of both parts;
vectors are known up to a phase, which stands still in their derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...deciding import known
from ...differentials import plus
from ...registry import answers
from ...trace import refuse
from ...traced import as_array, holds_traced
from ..elementwise import unmoving
from ..linalg.matrix_ops import differential_of, inverse, mirrored, taken_apart, turned, within
from ..linalg.numpy_linalg import stacked_matrices
from .complex_arrays import norm as entrywise_norm
from .complex_pairs import complex_answers, joined, parts_of

_ONE = np.eye(1)
_Eigh: Any = type(np.linalg.eigh(_ONE))
_Eig: Any = type(np.linalg.eig(_ONE))
_Svd: Any = type(np.linalg.svd(_ONE))
_Slogdet: Any = type(np.linalg.slogdet(_ONE))


def _both(z: Any) -> list[Any]:
    """Both parts of an array, zeros written out in the type of the other part."""
    parts = parts_of(z)
    known = as_array(parts[0] if parts[1] is None else parts[1])
    return [np.zeros(np.shape(known), known.dtype) if part is None else part for part in parts]


def embedded(z: Any) -> Any:
    """[[A, −B], [B, A]], for the last two axes."""
    a, b = _both(z)
    return np.concatenate([np.concatenate([a, -b], axis=-1), np.concatenate([b, a], axis=-1)], axis=-2)


def _from_blocks(m: Any) -> Any:
    """The complex matrix of a real one of twice the size."""
    rows, columns = np.shape(m)[-2] // 2, np.shape(m)[-1] // 2
    return joined(m[..., :rows, :columns], m[..., rows:, :columns])


@complex_answers(np.linalg.inv)
def inv(a: Any) -> Any:
    return _from_blocks(np.linalg.inv(embedded(a)))


@complex_answers(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, **named: Any) -> Any:
    return _from_blocks(np.linalg.pinv(embedded(a), **({} if rcond is None else {"rcond": rcond}), **named))


@complex_answers(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    re, im = _both(b)
    vector = np.ndim(b) == 1
    right = np.concatenate([re, im], axis=0 if vector else -2)
    found = np.linalg.solve(embedded(a), right)
    n = np.shape(a)[-1]
    return joined(found[:n], found[n:]) if vector else joined(found[..., :n, :], found[..., n:, :])


@complex_answers(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    return _from_blocks(np.linalg.matrix_power(embedded(a), n))


# -- ops of a real and an imaginary part -------------------------------------------------------------------


def _times(x: Any, y: Any) -> tuple[Any, Any]:
    """The product of complex matrices, each a pair of parts; None is zero."""
    (a, b), (c, d) = x, y

    def product(p: Any, q: Any) -> Any:
        return None if p is None or q is None else p @ q

    minus = product(b, d)
    return plus(product(a, c), None if minus is None else -minus), plus(product(a, d), product(b, c))


def _adjoint(x: Any) -> tuple[Any, Any]:
    return None if x[0] is None else x[0].mT, None if x[1] is None else -x[1].mT


def _eigh_parts(a: Any, b: Any) -> Any:
    found: Any = np.linalg.eigh(a + 1j * b)
    w, v = found
    return w, np.ascontiguousarray(v.real), np.ascontiguousarray(v.imag)


@differential_of("eigh_complex", _eigh_parts, lambda a, b: (a[:-1], a, a))
def EIGH(d: Any, y: Any, a: Any, b: Any) -> Any:
    """With M = V*·dA·V: dw = diag M, V*·dV = M / (wⱼ − wᵢ) off the diagonal, 0 on it: the phase stands still."""
    w, *v = y
    m = _times(_times(_adjoint(v), d), v)
    x = tuple([turned(part, w, -1) for part in m])
    return np.diagonal(m[0], 0, -2, -1), *_times(v, x)


def _svd_parts(a: Any, b: Any) -> Any:
    found: Any = np.linalg.svd(a + 1j * b, full_matrices=False)
    u, s, vh = found
    v: Any = np.conj(np.swapaxes(vh, -1, -2))
    return tuple([np.ascontiguousarray(part) for part in (u.real, u.imag, s, v.real, v.imag)])


def _svd_shapes(a: Any, b: Any) -> Any:
    *lead, m, n = a
    u, v = (*lead, m, min(m, n)), (*lead, n, min(m, n))
    return u, u, (*lead, min(m, n)), v, v


@differential_of("svd_complex", _svd_parts, _svd_shapes)
def SVD(d: Any, y: Any, a: Any, b: Any) -> Any:
    """With M = U*·dA·V: ds = Re diag M; dU, dV as for real matrices, half of the phase of M to each side."""
    u, s, v = y[:2], y[2], y[3:]
    m = _times(_times(_adjoint(u), d), v)
    even, odd = [[turned(p + sign * q, s, -sign) for p, q in zip(m, _adjoint(m), strict=True)] for sign in (1, -1)]
    upon = 1.0 / s[..., None, :]
    phase = within(np.eye(s.shape[-1], dtype=bool), m[1] * (0.5 * upon))
    found = []
    for side, other, sign, moved, along in ((u, v, 1.0, d, m), (v, u, -1.0, _adjoint(d), _adjoint(m))):
        x = 0.5 * (even[0] + sign * odd[0]), 0.5 * (even[1] + sign * odd[1]) + sign * phase
        rest = zip(_times(moved, other), _times(side, along), strict=True)
        found.append([part + (p - q) * upon for part, (p, q) in zip(_times(side, x), rest, strict=True)])
    return *found[0], np.diagonal(m[0], 0, -2, -1), *found[1]


def _eig_parts(a: Any, b: Any) -> Any:
    found: Any = np.linalg.eig(a + 1j * b if np.any(b) else a)
    w, v = found
    return tuple([np.ascontiguousarray(part) for part in (w.real, w.imag, v.real, v.imag)])


@differential_of("eig_complex", _eig_parts, lambda a, b: (a[:-1], a[:-1], a, a))
def EIG(d: Any, y: Any, a: Any, b: Any) -> Any:
    """With M = V⁻¹·dA·V: dw = diag M, V⁻¹·dV = M / (wⱼ − wᵢ) off the diagonal; vectors keep length and phase."""
    wr, wi, *v = y
    n = wr.shape[-1]
    turned_v = inverse(embedded(joined(*v)), strict=False)
    m = _times(_times((turned_v[..., :n, :n], turned_v[..., n:, :n]), d), v)
    off = ~np.eye(n, dtype=bool)
    gap = [np.where(off, part[..., None, :] - part[..., :, None], 1.0) for part in (wr, wi)]
    size = gap[0] * gap[0] + gap[1] * gap[1]
    f = gap[0] / size, -gap[1] / size
    x = within(off, f[0] * m[0] - f[1] * m[1]), within(off, f[0] * m[1] + f[1] * m[0])
    dv = _times(v, x)
    along = [np.sum(part, axis=-2)[..., None, :] for part in (v[0] * dv[0] + v[1] * dv[1], v[0] * dv[1] - v[1] * dv[0])]
    still = dv[0] - (v[0] * along[0] - v[1] * along[1]), dv[1] - (v[0] * along[1] + v[1] * along[0])
    return *[np.diagonal(part, 0, -2, -1) for part in m], *still


def _slogdet_parts(a: Any, b: Any) -> Any:
    sign, log = np.linalg.slogdet(a + 1j * b)
    return np.asarray(sign.real), np.asarray(sign.imag), np.asarray(log)


@differential_of("slogdet_complex", _slogdet_parts, lambda a, b: (a[:-2], a[:-2], a[:-2]))
def SLOGDET(d: Any, y: Any, a: Any, b: Any) -> Any:
    """With t = tr A⁻¹·dA: the real part of t for the logarithm, i·Im t times the sign for the sign."""
    re, im, _ = y
    n = a.shape[-1]
    turned_a = inverse(embedded(joined(a, b)), strict=False)
    m = _times((turned_a[..., :n, :n], turned_a[..., n:, :n]), d)
    t = [np.sum(np.diagonal(part, 0, -2, -1), axis=-1) for part in m]
    return -im * t[1], re * t[1], t[0]


def _parts(z: Any) -> list[Any]:
    """Both parts of matrices, written out, of one shape."""
    if np.ndim(z) < 2 or np.shape(z)[-1] != np.shape(z)[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return [np.broadcast_to(part, np.shape(z)) for part in _both(z)]


@complex_answers(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    re, im, log = taken_apart(SLOGDET, *_parts(a))
    return _Slogdet(joined(re, im), log)


@complex_answers(np.linalg.det)
def det(a: Any) -> Any:
    sign, log = slogdet(a)
    return sign * np.exp(log)


def _triangle(x: Any, lower: bool) -> Any:
    """The symmetric matrix that a triangle says."""
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    return half + np.swapaxes(half, -1, -2) + np.eye(np.shape(x)[-1], dtype=x.dtype) * x


@complex_answers(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and vectors of a Hermitian matrix, of which NumPy reads one triangle."""
    re, im = _parts(a)
    lower, n = UPLO.upper() == "L", np.shape(a)[-1]
    sign = (np.tri(n, n, -1) - np.tri(n, n, -1).T).astype(re.dtype)  # times this, what is antisymmetric is symmetric
    parts = [mirrored(part, lower) if holds_traced(part) else _triangle(part, lower) for part in (re, im * sign)]
    w, *v = taken_apart(EIGH, parts[0], parts[1] * sign)
    return _Eigh(w, joined(*v))


@complex_answers(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return eigh(a, UPLO)[0]


@complex_answers(np.linalg.eig)
def eig(a: Any) -> Any:
    wr, wi, *v = taken_apart(EIG, *_parts(a))
    return _Eig(joined(wr, wi), joined(*v))


_EIG = "dw = diag M, dV = V·(M / (wⱼ − wᵢ)), M = V⁻¹·dA·V; vectors keep length and phase"


@answers(np.linalg.eig, what="op eig; real or complex as the numbers at the point have it", rule=_EIG)
def eig_of_real(a: Any) -> Any:
    """Eigenvalues and vectors of a real matrix: complex where, at the point, one of them is."""
    a = stacked_matrices(a)
    parts = taken_apart(EIG, a, np.zeros(a.shape, a.dtype))
    real = known(np.all(parts[1] == 0.0))
    if real is None:
        raise refuse(
            "the eigenvalues and eigenvectors of np.linalg.eig and eigvals are real or complex, as the numbers have "
            "it, and those are not known here; write np.linalg.eig(a + 0j) for complex ones, np.linalg.eigh or "
            "eigvalsh for symmetric matrices"
        )
    return _Eig(parts[0], parts[2]) if real else _Eig(joined(*parts[:2]), joined(*parts[2:]))


@answers(np.linalg.eigvals, what="op eig; real or complex as the numbers at the point have it", rule="diag(V⁻¹·dA·V)")
def eigvals_of_real(a: Any) -> Any:
    return eig_of_real(a)[0]


@complex_answers(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    return eig(a)[0]


@complex_answers(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    rows, columns = np.shape(a)[-2:]
    if compute_uv and full_matrices and rows != columns:
        raise refuse(
            "np.linalg.svd of complex matrices is known to riesz with full_matrices=False, or compute_uv=False: "
            "further singular vectors have no derivatives"
        )
    re, im = _both(a)
    ur, ui, s, vr, vi = taken_apart(SVD, re, im)
    if not compute_uv:
        return s
    return _Svd(joined(ur, ui), s, joined(np.swapaxes(vr, -1, -2), -np.swapaxes(vi, -1, -2)))


@complex_answers(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return svd(x, compute_uv=False)


@complex_answers(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms that need singular values; the others are those of the absolute values."""
    matrix = np.ndim(x) == 2 if axis is None else isinstance(axis, tuple) and len(axis) == 2
    if ord is None or (matrix and ord == "fro") or (not matrix and ord == 2):
        return entrywise_norm(x, axis, keepdims)
    if not matrix or ord not in _OF_SINGULAR_VALUES:
        return np.linalg.norm(np.abs(x), ord, axis, keepdims)
    axes = (0, 1) if axis is None else axis
    values = svd(np.moveaxis(x, axes, (-2, -1)), compute_uv=False)
    found = _OF_SINGULAR_VALUES[ord](values, axis=-1)
    return np.expand_dims(found, axes) if keepdims else found


_OF_SINGULAR_VALUES = {2: np.max, -2: np.min, "nuc": np.sum}


@complex_answers(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of the absolute values."""
    return (
        entrywise_norm(x, axis, keepdims)
        if ord == 2
        else np.linalg.vector_norm(np.abs(x), axis=axis, keepdims=keepdims, ord=ord)
    )


@complex_answers(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


# -- square roots of real matrices that are complex ------------------------------------------------------------


def _root_parts(a: Any) -> Any:
    import scipy.linalg

    found: Any = np.stack([scipy.linalg.sqrtm(x) for x in np.reshape(a, (-1, *np.shape(a)[-2:]))]).reshape(np.shape(a))
    return np.ascontiguousarray(found.real), np.ascontiguousarray(found.imag)


@differential_of("sqrtm_complex", _root_parts, lambda a: (a, a))
def ROOT(d: Any, y: Any, a: Any) -> Any:
    """X·dX + dX·X = dA, as one system of n² unknowns."""
    x, one = joined(*y), np.eye(a.shape[-1], dtype=a.dtype)
    n = a.shape[-1]
    left = np.reshape(x[..., :, None, :, None] * one[:, None, :], (*a.shape[:-2], n * n, n * n))
    right = np.reshape(one[:, None, :, None] * np.swapaxes(x, -1, -2)[..., None, :, None, :], left.shape)
    rows = np.reshape(d[0], (*a.shape[:-2], n * n, 1))
    found = np.reshape(np.linalg.solve(left + right, rows + 0j), a.shape)
    return found.real, found.imag


def _imaginary(a: Any) -> Any:
    return np.asarray(float(np.any(_root_parts(a)[1])))


def sqrtm_of_real(a: Any, real: Any) -> Any:
    """The square root of a real matrix: `real(a)`, or complex where it is, at the point."""
    mixed = a.size and known(unmoving(_imaginary, a.dtype, a, shaped=_number) > 0.0)
    return joined(*taken_apart(ROOT, a)) if mixed else real(a)


def _number(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return ()
