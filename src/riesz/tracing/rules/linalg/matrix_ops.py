"""Functions of matrices as ops: solves, inverses and factorisations, each with its differential written in products and
solves.

Every op takes arrays with leading axes, the same ones for all its arguments, and acts on the last two. What an op is
linear in (the right-hand side of a solve) it can be transposed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import SingularError
from ....ops.op import product
from ....ops.opaque import Get, Ruled, Smooth
from ...differentials import chosen, plus
from ...traced import BOOL, Traced, operands
from ..elementwise import unmoving
from ..rearranging import concatenate
from ..rearranging import same_shape as like_first

Shape = tuple[int, ...]


def applied(smooth: Smooth, *xs: Any, **parameters: Any) -> Traced:
    """A function with one result on arrays in their common type."""
    trace, slots, dtype, _ = operands(*xs)
    return Traced(trace, trace.step(Ruled(smooth, tuple(parameters.items())), slots), dtype)


def taken_apart(smooth: Smooth, *xs: Any, **parameters: Any) -> tuple[Traced, ...]:
    """The results of a function that has several."""
    trace, slots, dtype, _ = operands(*xs)
    whole = trace.step(Ruled(smooth, tuple(parameters.items())), slots)
    return tuple([Traced(trace, trace.step(Get(i), (whole,)), dtype) for i in range(len(trace.shapes[whole]))])


def each(function: Callable[..., Any], *xs: Any) -> Any:
    """A function of single matrices at every index of the leading axes."""
    lead = np.shape(xs[0])[:-2]
    if not lead:
        return function(*xs)
    flat = [np.reshape(x, (math.prod(lead), *np.shape(x)[len(lead) :])) for x in xs]
    if not flat[0].shape[0]:
        return np.zeros_like(xs[-1])
    found = [function(*row) for row in zip(*flat, strict=True)]
    return np.stack(found).reshape((*lead, *np.shape(found[0])))


def _first_shape(first: Shape, *rest: Shape, **parameters: Any) -> Shape:
    return first


def differential_of(name: str, array: Any, shapes: Any = _first_shape) -> Callable[[Any], Smooth]:
    """Declare an op: the function below is its differential, dy from the dxs, y and the xs."""
    return lambda differential: Smooth(name, array, shapes, differential)


def turned_round(a: Any, transposed: bool) -> Any:
    """A or Aᵀ."""
    return a.mT if transposed else a


# A differential is written in linear steps: a triangle of dA is a selection by a fixed mask, not np.tril; a quotient a
# product with the reciprocal.
def within(mask: Any, x: Any) -> Traced:
    """x where a fixed mask holds, 0 elsewhere."""
    return chosen(np.broadcast_to(mask, x.shape), x)


def lower_part(x: Any, k: int = 0) -> Traced:
    """np.tril."""
    return within(np.tri(x.shape[-2], x.shape[-1], k, dtype=bool), x)


def upper_part(x: Any, k: int = 0) -> Traced:
    """np.triu."""
    return within(~np.tri(x.shape[-2], x.shape[-1], k - 1, dtype=bool), x)


# -- solves -----------------------------------------------------------------------------------------------


def columnwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Code linear in the columns of its last argument; a matrix repeated along the first axis is factorised once."""

    def code(*xs: Any, **parameters: Any) -> Any:
        *fixed, b = [np.asarray(x) for x in xs]
        if b.ndim > 2 and b.shape[0] > 1 and all([x.strides[0] == 0 for x in fixed]):
            wide = np.moveaxis(b, 0, -1)
            columns = wide.reshape((*wide.shape[:-2], wide.shape[-2] * wide.shape[-1]))
            solved = code(*[x[0] for x in fixed], columns, **parameters)
            return np.moveaxis(solved.reshape(wide.shape), -1, 0)
        try:
            return function(*fixed, b, **parameters)
        except np.linalg.LinAlgError as problem:
            raise SingularError(
                f"{problem}: a system with a matrix of shape {fixed[0].shape[-2:]} has no solution at this point. "
                "np.linalg.solve, inv, qr and their like, and their derivatives, need matrices of full rank; "
                "np.linalg.lstsq and pinv have values for others too"
            ) from None

    return code


def solver(name: str, array: Any, *moved: Any, flag: str = "transposed", **known: Any) -> Smooth:
    """x = A⁻¹b, linear in its last argument b: dx = A⁻¹(db − dA·x). `moved` gives dA·x from dA and x, for each argument
    before b; the transpose is the same with the parameter `flag` turned round ("": it is symmetric)."""

    def differential(d: Any, x: Any, *xs: Any, **parameters: Any) -> Any:
        parts = [-f(da, x, **parameters) for f, da in zip(moved, d[:-1], strict=True) if da is not None]
        return applied(own, *xs[:-1], plus(d[-1], *parts), **parameters)

    def transpose(k: int, **parameters: Any) -> Ruled:
        other = {**parameters, flag: not parameters[flag]} if flag else parameters
        return Ruled(own, tuple(other.items()))

    own = Smooth(name, array, lambda *shapes, **parameters: shapes[-1], differential, transpose, **known)
    return own


@columnwise
def _solve_array(a: Any, b: Any, *, transposed: bool) -> Any:
    return np.linalg.solve(turned_round(a, transposed), b)


@columnwise
def _triangular_array(t: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    if t.ndim == 2:
        import scipy.linalg

        named = {"lower": lower, "unit_diagonal": unit, "check_finite": False}
        return scipy.linalg.solve_triangular(t, b, trans=int(transposed), **named) if b.size else np.zeros_like(b)
    t = np.tril(t) if lower else np.triu(t)
    t = np.where(np.eye(t.shape[-1], dtype=bool), t.dtype.type(1), t) if unit else t
    return np.linalg.solve(turned_round(t, transposed), b)


def _triangle_moved(dt: Any, x: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    """dT·x, dT within the triangle."""
    return turned_round(lower_part(dt, -int(unit)) if lower else upper_part(dt, int(unit)), transposed) @ x


SOLVE = solver("solve", _solve_array, lambda da, x, *, transposed: turned_round(da, transposed) @ x, mixes=(-2,))
TRIANGULAR = solver("solve_triangular", _triangular_array, _triangle_moved, mixes=(-2,))


def _spread(x: Any, lead: Shape) -> Any:
    return np.broadcast_to(x, (*lead, *np.shape(x)[-2:])) if np.shape(x)[:-2] != lead else x


def _with_one_matrix(smooth: Smooth, a: Any, b: Any, **parameters: Any) -> Any:
    """For matrices b, leading axes broadcast; one matrix a takes all right-hand sides at once, as columns."""
    if not np.shape(a)[:-2] and np.ndim(b) > 2:
        wide = np.moveaxis(b, -2, 0)
        columns = np.reshape(wide, (wide.shape[0], math.prod(wide.shape[1:])))
        solved = applied(smooth, a, columns, **parameters)
        return np.moveaxis(np.reshape(solved, (solved.shape[0], *wide.shape[1:])), 0, -2)
    lead = np.broadcast_shapes(np.shape(a)[:-2], np.shape(b)[:-2])
    return applied(smooth, _spread(a, lead), _spread(b, lead), **parameters)


def solve(a: Any, b: Any, transposed: bool = False) -> Any:
    """A⁻¹b or A⁻ᵀb for matrices b."""
    return _with_one_matrix(SOLVE, a, b, transposed=transposed)


def solve_triangular(t: Any, b: Any, lower: bool, transposed: bool = False, unit: bool = False) -> Any:
    """T⁻¹b or T⁻ᵀb for a triangle T of a matrix and matrices b."""
    return _with_one_matrix(TRIANGULAR, t, b, lower=lower, transposed=transposed, unit=unit)


# -- inverses ---------------------------------------------------------------------------------------------


def _inverse_array(a: Any, *, strict: bool) -> Any:
    """The inverse; where there is none an error, or nan."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        if strict:
            raise
        return each(lambda x: _inverse_array(x, strict=False), a) if a.ndim > 2 else np.full_like(a, np.nan)


INVERSE = Smooth("inv", _inverse_array, _first_shape, lambda d, y, a, *, strict: -(y @ d[0] @ y))  # d A⁻¹ = −A⁻¹·dA·A⁻¹


def inverse(a: Any, strict: bool = True) -> Traced:
    """A⁻¹."""
    return applied(INVERSE, a, strict=strict)


def _pinv_array(a: Any, *, cutoff: float, hermitian: bool) -> Any:
    return np.linalg.pinv(a, rcond=cutoff, hermitian=hermitian)


@differential_of("pinv", _pinv_array, lambda a, **parameters: (*a[:-2], a[-1], a[-2]))
def PINV(d: Any, y: Any, a: Any, **parameters: Any) -> Any:
    """dA⁺ = −A⁺·dA·A⁺ + A⁺A⁺ᵀ·dAᵀ(1 − AA⁺) + (1 − A⁺A)dAᵀ·A⁺ᵀA⁺: at constant rank."""
    (da,) = d
    left = y @ (y.mT @ da.mT)
    right = (da.mT @ y.mT) @ y
    return left - (left @ a) @ y + right - y @ (a @ right) - y @ da @ y


# -- symmetric matrices -----------------------------------------------------------------------------------


# Note [Symmetric]: NumPy reads one triangle of a matrix that is meant to be symmetric, and so the value does. In the
# derivative of a matrix that is symmetric up to rounding an entry and its mirror image count half each, as in a tie of
# maxima: so the gradient is symmetric. In that of any other matrix the triangle NumPy reads counts alone. Each matrix
# of a stack is looked at as a whole: one entry's last bit changes nothing.
def mirrored(a: Any, lower: bool = True) -> Any:
    """The symmetric matrix with the lower or upper triangle of a. See Note [Symmetric]."""
    return applied(MIRRORED, a, lower=lower)


def _mirrored_array(a: Any, *, lower: bool) -> Any:
    read = np.tri(a.shape[-1], dtype=bool)
    return np.where(read if lower else read.T, a, a.mT)


@differential_of("mirrored", _mirrored_array)
def MIRRORED(d: Any, y: Any, a: Any, *, lower: bool) -> Any:
    half = chosen(unmoving(_share, a.dtype, a, shaped=like_first, lower=lower), d[0])
    return half + half.mT


def _share(a: Any, lower: bool) -> Any:
    """What an entry counts: ½ and its mirror image ½, or 1 and 0; the diagonal meets itself. See Note [Symmetric]."""
    n = a.shape[-1]
    read = np.tri(n, dtype=a.dtype) - np.eye(n, dtype=a.dtype) / 2
    with np.errstate(all="ignore"):
        gap, size = [np.max(np.abs(x), axis=(-2, -1), keepdims=True, initial=0) for x in (a - a.mT, a)]
    return np.where(gap <= np.sqrt(np.finfo(a.dtype).eps) * size, a.dtype.type(0.5), read if lower else read.T)


def _diagonal_part(x: Any) -> Any:
    return within(np.eye(x.shape[-1], dtype=bool), x)


@differential_of("cholesky", np.linalg.cholesky)
def CHOLESKY(d: Any, y: Any, a: Any) -> Any:
    """dL = L·Φ(L⁻¹·dA·L⁻ᵀ), Φ the lower triangle with half of the diagonal."""
    inner = solve_triangular(y, solve_triangular(y, d[0], True).mT, True)
    return y @ (lower_part(inner, -1) + 0.5 * _diagonal_part(inner))


def cholesky(a: Any, lower: bool = True) -> Traced:
    """L with L·Lᵀ = A, from a triangle of A."""
    return applied(CHOLESKY, mirrored(a, lower))


# Note [Ties]: eigenvectors and singular vectors turn by 1 / (difference of eigenvalues). Where two eigenvalues are
# equal they have no derivative, and the coefficient is infinite; nothing is pretended. Equal means up to their rounding
# error: a quotient with that would be a number without meaning. But what does not touch these vectors (an exact zero)
# takes no notice: zeros are strong, both ways (that is what the selection by an everywhere true mask in dw is for).
def turned(x: Any, w: Any, sign: int) -> Any:
    """x / (wⱼ ± wᵢ) off the diagonal. See Note [Ties]."""
    row, column = w[..., None, :], w[..., :, None]
    off = ~np.eye(x.shape[-1], dtype=bool)
    apart = unmoving(_apart, BOOL, w, shaped=square_shape, sign=sign)
    gap = np.where(apart, row - column if sign < 0 else row + column, 0.0)
    trace, slots, _, _ = operands(1.0 / np.where(off, gap, 1.0), x)
    ratio = Traced(trace, trace.step(product(trace.shapes[slots[0]], trace.shapes[slots[1]], (1,)), slots), x.dtype)
    return within(off, ratio)


def _apart(w: Any, sign: int) -> Any:
    """Whether wⱼ ± wᵢ is more than rounding. See Note [Ties]."""
    error = 4 * w.shape[-1] * np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1, initial=0)
    return ~(np.abs(w[..., None, :] + sign * w[..., :, None]) <= error[..., None, None])


def square_shape(shapes: Any, parameters: Any) -> Shape:
    """The shape of a discrete op's result: its first argument's, with the last axis twice."""
    return (*shapes[0], shapes[0][-1])


def _pairs(*matrices: Any, lower: bool, driver: str, subset: Any) -> Any:
    """Eigenvalues and eigenvectors of a matrix or a pair, by NumPy or a driver of SciPy: eigenvectors may have other
    signs, and by the triangle read too. Those in `subset` have the signs they have when only those are asked for."""
    if driver == "numpy":
        return tuple(np.linalg.eigh(matrices[0], "L" if lower else "U"))
    import scipy.linalg

    named = {"lower": lower, "driver": driver or None, "check_finite": False}
    w, v = np.empty(matrices[0].shape[:-1], matrices[0].dtype), np.empty_like(matrices[0])
    for at in np.ndindex(*w.shape[:-1]):
        if w.shape[-1]:
            w[at], v[at] = scipy.linalg.eigh(*[x[at] for x in matrices], **named)
            if subset is not None:
                _, few = scipy.linalg.eigh(*[x[at] for x in matrices], subset_by_index=subset, **named)
                few_here = v[at][:, subset[0] : subset[1] + 1]
                few_here *= np.where(np.sum(few * few_here, axis=0) < 0, -1.0, 1.0)
    return w, v


def _pairs_differential(d: Any, y: Any, *matrices: Any, **named: Any) -> Any:
    """With M = Vᵀ·dA·V, N = Vᵀ·dB·V and K = M − N·diag(w): dw = diag K, dV = V·(K / (wⱼ − wᵢ) − ½ diag N)."""
    w, v = y
    m, n = [None if x is None else v.mT @ x @ v for x in (*d, None)[:2]]
    k = plus(m, None if n is None else -(n * w[..., None, :]))
    dw, inner = within(True, np.diagonal(k, 0, -2, -1)), turned(k, w, -1)
    return dw, v @ (inner if n is None else inner - 0.5 * _diagonal_part(n))


EIGH = Smooth("eigh", _pairs, lambda a, **named: (a[:-1], a), _pairs_differential)
EIGH_PAIR = Smooth("eigh_pair", _pairs, lambda a, b, **named: (a[:-1], a), _pairs_differential)


def eigh(a: Any, b: Any = None, lower: bool = True, driver: str = "numpy", subset: Any = None) -> tuple[Traced, ...]:
    """Eigenvalues and eigenvectors of a symmetric matrix, from a triangle of it, or of A·v = w·B·v, with vᵀ·B·v = 1;
    `driver` is "numpy" (without b), or one of SciPy's ("" is its own choice)."""
    matrices = [mirrored(x, lower) for x in (a, b) if x is not None]
    return taken_apart(EIGH if b is None else EIGH_PAIR, *matrices, lower=lower, driver=driver, subset=subset)


# -- singular values --------------------------------------------------------------------------------------


def _svd_shapes(a: Shape, *, full: bool) -> tuple[Shape, Shape, Shape]:
    *lead, m, n = a
    k = min(m, n)
    return (*lead, m, m if full else k), (*lead, k), (*lead, n if full else k, n)


@differential_of("svd", lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full)), _svd_shapes)
def SVD(d: Any, y: Any, a: Any, *, full: bool) -> Any:
    """With M = Uᵀ·dA·V: ds = diag M, Uᵀ·dU and Vᵀ·dV = ½[(M + Mᵀ) / (sⱼ − sᵢ) ± (M − Mᵀ) / (sⱼ + sᵢ)]; the rest / s."""
    u, s, vh = y
    k = s.shape[-1]
    u1, v1 = u[..., :, :k], vh[..., :k, :].mT
    m = u1.mT @ d[0] @ v1
    even, odd, row = turned(m + m.mT, s, -1), turned(m - m.mT, s, 1), s[..., None, :]
    ds = chosen(s != 0, np.diagonal(m, 0, -2, -1))  # a singular value is an absolute value: derivative 0 at 0
    du = _frame(u, k, 0.5 * (even + odd), (d[0] @ v1), row)
    dv = _frame(vh.mT, k, 0.5 * (even - odd), (d[0].mT @ u1), row)
    return du, ds, dv.mT


def _frame(q: Any, k: int, inner: Any, image: Any, s: Any) -> Any:
    """The motion of orthonormal columns: `inner` within the first k, image / s out of it; others turn against those."""
    first = q[..., :, :k]
    moved = first @ inner
    if q.shape[-2] == k:
        return moved
    outside = (image - first @ (first.mT @ image)) * (1.0 / s)
    moved = moved + outside
    return moved if q.shape[-1] == k else concatenate([moved, -(first @ (outside.mT @ q[..., :, k:]))], -1)


def svd(a: Any, full: bool = False) -> tuple[Traced, ...]:
    """U, s, Vᵀ."""
    return taken_apart(SVD, a, full=full)


def _polar_array(a: Any, *, strict: bool) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return u @ vh if strict else (u * np.sign(s)[..., None, :]) @ vh


@differential_of("polar", _polar_array)
def POLAR(d: Any, y: Any, a: Any, *, strict: bool) -> Any:
    """With P = WᵀA: dW = W·Ω + (1 − W·Wᵀ)·dA·P⁻¹, PΩ + ΩP = Wᵀ·dA − dAᵀ·W: equal singular values do no harm."""
    wide = a.shape[-1] > a.shape[-2]
    w, da, x = [z.mT for z in (y, d[0], a)] if wide else (y, d[0], a)
    p, m = w.mT @ x, w.mT @ da
    dw = w @ applied(HALVED, p, m - m.mT, strict=strict)
    if x.shape[-2] > x.shape[-1]:
        cutoff = 4 * p.shape[-1] * float(np.finfo(p.dtype).eps)
        outside = da - w @ m
        dw = dw + outside @ (inverse(p, strict=False) if strict else applied(PINV, p, cutoff=cutoff, hermitian=True))
    return dw.mT if wide else dw


def _halved_array(p: Any, q: Any, *, strict: bool) -> Any:
    """X with PX + XP = Q, for symmetric P. Where P is singular, X is no number, or (not strict) 0."""
    w, v = np.linalg.eigh(p)
    apart, sums = _apart(w, 1), w[..., None, :] + w[..., :, None]
    share = (v.mT @ q @ v) / np.where(apart, sums, 0.0 if strict else np.inf)
    return v @ share @ v.mT


HALVED = solver("solve_symmetric_sylvester", _halved_array, lambda dp, x, **named: dp @ x + x @ dp, flag="")


@differential_of("nuclear", lambda a: np.sum(np.linalg.svdvals(a), axis=-1), lambda a: a[:-2])
def NUCLEAR(d: Any, y: Any, a: Any) -> Any:
    return np.sum(polar(a) * d[0], axis=(-2, -1))


def polar(a: Any, strict: bool = False) -> Traced:
    """W = U·Vᵀ of the singular value decomposition; not strict: with zeros for singular values that are 0."""
    return applied(POLAR, a, strict=strict)


# -- triangular factors -----------------------------------------------------------------------------------


def _qr_array(a: Any, *, full: bool) -> Any:
    return tuple(np.linalg.qr(a, mode="complete" if full else "reduced"))


def _qr_shapes(a: Shape, *, full: bool) -> tuple[Shape, Shape]:
    *lead, m, n = a
    return (*lead, m, m if full else n), (*lead, m if full else n, n)


@differential_of("qr", _qr_array, _qr_shapes)
def QR(d: Any, y: Any, a: Any, *, full: bool) -> Any:
    """With C = dA·R⁻¹, N = QᵀC, Ω skew with the strictly lower triangle of N: dQ = C − Q·(N − Ω), dR = (N − Ω)·R."""
    q, r = y
    n = r.shape[-1]
    first, square = q[..., :, :n], r[..., :n, :]
    c = solve_triangular(square, d[0].mT, False, True).mT
    inner = first.mT @ c
    low = lower_part(inner, -1)
    upper = inner - low + low.mT
    dq, dr = c - first @ upper, upper @ square
    if not full or q.shape[-1] == n:
        return dq, dr
    rest = -(first @ (dq.mT @ q[..., :, n:]))
    return concatenate([dq, rest], -1), concatenate([dr, 0.0 * d[0][..., n:, :]], -2)


def qr(a: Any, full: bool = False) -> tuple[Any, Any]:
    """Q and R. A wide matrix has the Q of its first columns."""
    rows, columns = a.shape[-2:]
    q, r = taken_apart(QR, a if rows >= columns else a[..., :, :rows], full=full and rows >= columns)
    return (q, r) if rows >= columns else (q, concatenate([r, q.mT @ a[..., :, rows:]], -1))


def _lu_array(a: Any) -> Any:
    import scipy.linalg

    lead, n = a.shape[:-2], a.shape[-1]
    packed, pivots = np.empty_like(a), np.zeros(a.shape[:-1], np.int32)
    for at in np.ndindex(*lead):
        if n:
            packed[at], pivots[at] = scipy.linalg.lu_factor(a[at], check_finite=False)
    return packed, pivots


@differential_of("lu", _lu_array, lambda a: (a, a[:-1]))
def LU(d: Any, y: Any, a: Any) -> Any:
    """dL = L·(strictly lower part of W), dU = (upper part of W)·U, with W = L⁻¹·P·dA·U⁻¹."""
    packed, pivots = y
    w = solve_triangular(packed, exchange(pivots, packed) @ d[0], True, unit=True)
    w = solve_triangular(packed, w.mT, False, True).mT
    lower, upper = unpacked(packed)
    return lower @ lower_part(w, -1) + upper_part(w) @ upper, None


def unpacked(packed: Any) -> tuple[Any, Any]:
    """L and U from one array."""
    eye = np.eye(packed.shape[-1], dtype=bool)
    return np.where(eye, 1.0, np.tril(packed)), np.triu(packed)


def exchange(pivots: Any, like: Any) -> Any:
    """The permutation matrix P of the exchanges of rows, in the type of another array."""
    return unmoving(_exchange, like.dtype, like, pivots, shaped=like_first)


def _exchange(like: Any, pivots: Any) -> Any:
    pivots = np.asarray(pivots).astype(np.intp)
    n = pivots.shape[-1]
    order = np.broadcast_to(np.arange(n), pivots.shape).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        row: Any = order[at]
        for i, j in enumerate(pivots[at]):
            row[i], row[j] = row[j], row[i]
    return (order[..., :, None] == np.arange(n)).astype(like.dtype)


# -- matrix equations -------------------------------------------------------------------------------------


def _sylvester_array(a: Any, b: Any, q: Any, *, transposed: bool) -> Any:
    import scipy.linalg

    a, b = turned_round(a, transposed), turned_round(b, transposed)
    kind = np.result_type(a, b, q)
    return each(lambda a, b, q: scipy.linalg.solve_sylvester(a, b, q).astype(kind) if q.size else q, a, b, q)


SYLVESTER = solver(
    "solve_sylvester",
    _sylvester_array,
    lambda da, x, *, transposed: turned_round(da, transposed) @ x,
    lambda db, x, *, transposed: x @ turned_round(db, transposed),
    mixes=(-2, -1),
)


def sylvester(a: Any, b: Any, q: Any) -> Traced:
    """X with AX + XB = Q."""
    return applied(SYLVESTER, a, b, q, transposed=False)


def real_part(x: Any, dtype: Any, name: str) -> Any:
    """A matrix that should be real."""
    if np.iscomplexobj(x):
        if np.abs(x.imag).max(initial=0.0) > np.sqrt(np.finfo(dtype).eps) * np.abs(x).max(initial=0.0):
            raise np.linalg.LinAlgError(f"{name} of this matrix is not real; riesz computes with real arrays")
        x = x.real
    return x.astype(dtype)


def _sqrtm_array(a: Any) -> Any:
    import scipy.linalg

    return each(lambda a: real_part(scipy.linalg.sqrtm(a), a.dtype, "sqrtm") if a.size else a, a)


SQRTM = Smooth("sqrtm", _sqrtm_array, _first_shape, lambda d, y, a: sylvester(y, y, d[0]))  # X·dX + dX·X = dA
