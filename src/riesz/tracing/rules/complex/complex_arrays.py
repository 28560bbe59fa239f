"""Complex arrays: what acts on both parts alike (rearrangements, sums), products of several arrays, and joining arrays
together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np

from ....terms import primitives as p
from ...deciding import decided
from ...differentials import plus
from ...registry import COMPLEX, FUNCTIONS, NOT_SAID
from ...trace import refuse
from ...traced import INT, TRACED, is_complex, primitive_step, tidy
from ..elementwise import unmoving
from .complex_functions import conjugate, minus
from .complex_pairs import complex_answers, complex_convert, each, joined, parts_of

_UNLIKE = ("initial", "constant_values", "end_values", "prepend", "append", "dtype")
"""Arguments that do not mean the same for both parts."""
_TYPED = (np.sum, np.mean, np.cumsum)
"""Functions whose third argument is a type."""


def _alike(function: Any) -> Any:
    """A function that does the same to both parts."""

    def code(z: Any, *args: Any, **named: Any) -> Any:
        if is_complex(args) or is_complex(list(named.values())):
            raise refuse(
                f"np.{function.__name__} takes complex numbers as its first argument only; write the rest with "
                "z.real and z.imag"
            )
        odd = [k for k in _UNLIKE if named.get(k) is not None and named.get(k) is not NOT_SAID]
        further = len(args) > 1 and function in _TYPED and args[1] is not None
        if odd or further or (len(args) > 2 and function == np.diff):
            raise refuse(
                f"np.{function.__name__} of a complex array takes no {odd[0] if odd else 'further arguments'}; use "
                "np.concatenate"
            )
        return each(lambda x: function(x, *args, **named), z)

    return code


for _f in (
    *(np.reshape, np.ravel, np.transpose, np.permute_dims, np.matrix_transpose, np.linalg.matrix_transpose),
    *(np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.squeeze, np.broadcast_to, np.copy, np.pad),
    *(np.split, np.array_split, np.vsplit, np.hsplit, np.dsplit, np.flip, np.fliplr, np.flipud, np.roll, np.rot90),
    *(np.tile, np.repeat, np.resize, np.take, np.delete, np.tril, np.triu, np.fft.fftshift, np.fft.ifftshift),
    *(np.sum, np.mean, np.cumsum, np.diff, np.trace, np.linalg.trace, np.diagonal, np.linalg.diagonal),
    *(np.diag, np.diagflat, *([np.unstack] if hasattr(np, "unstack") else [])),
    *(np.take_along_axis, np.gradient, np.trapezoid, np.around, np.round, np.lib.stride_tricks.sliding_window_view),
    *([np.cumulative_sum] if hasattr(np, "cumulative_sum") else []),
):
    COMPLEX[_f] = _alike(_f)


def multilinear(f: Callable[..., Any], *xs: Any) -> Any:
    """f, linear in each argument, of complex arrays: f of every choice of parts, times its power of i."""
    options = [parts_of(x) for x in xs]
    total: list[Any] = [None, None]
    for choice in product((0, 1), repeat=len(xs)):
        given = [option[c] for option, c in zip(options, choice, strict=True)]
        if any([x is None for x in given]):
            continue
        power = sum(choice) % 4
        total[power % 2] = (plus if power < 2 else minus)(total[power % 2], f(*given))
    return joined(*total)


def _bilinear(function: Any, conjugated: int | None = None) -> Any:
    """A product for each pair of parts; one argument may be conjugated."""

    def code(a: Any, b: Any, *args: Any, **named: Any) -> Any:
        xs = [conjugate(x) if i == conjugated else x for i, x in enumerate((a, b))]
        return multilinear(lambda x, y: function(x, y, *args, **named), *xs)

    return code


for _f in (
    *(np.matmul, np.linalg.matmul, np.dot, np.inner, np.outer, np.linalg.outer, np.tensordot, np.linalg.tensordot),
    *(np.kron, np.cross, np.linalg.cross, np.convolve),
):
    COMPLEX[_f] = _bilinear(_f)
for _f, _at in ((np.vdot, 0), (np.linalg.vecdot, 0), (np.correlate, 1)):
    COMPLEX[_f] = _bilinear(_f, _at)
for _name, _at in (("vecdot", 0), ("matvec", None), ("vecmat", 0)):
    if hasattr(np, _name):
        COMPLEX[getattr(np, _name)] = _bilinear(getattr(np, _name), _at)


@complex_answers(np.einsum)
def einsum(*args: Any, **named: Any) -> Any:
    """A contraction for each choice of parts."""
    if not isinstance(args[0], str):
        raise refuse(
            "np.einsum with index lists is not known to riesz for complex arrays; write the subscripts as a string"
        )
    return multilinear(lambda *xs: np.einsum(args[0], *xs), *args[1:])


@complex_answers(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Products one after the other."""
    result, *rest = list(arrays)
    for x in rest:
        result = np.dot(result, x)
    return result


def _var(a: Any, *args: Any, **named: Any) -> Any:
    return plus(*[None if x is None else np.var(x, *args, **named) for x in parts_of(a)])


def norm(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """√Σ|z|², with derivative 0 at 0."""
    squares = plus(*[None if part is None else part * part for part in parts_of(x)])
    return primitive_step(p.root, np.sum(squares, axis=axis, keepdims=keepdims))


def _part(x: Any, which: int) -> Any:
    """One part of an array, or of the arrays in nested lists: zeros written out, in the type of the other."""
    if isinstance(x, (list, tuple)):
        return [_part(inside, which) for inside in cast("list[Any]", x)]
    both = parts_of(x)
    if both[which] is not None:
        return both[which]
    kind = getattr(both[1 - which], "dtype", None)
    return np.zeros(np.shape(x), kind if kind is not None and kind.kind == "f" else float)


def _joining(function: Any) -> Any:
    def code(arrays: Any, *args: Any, **named: Any) -> Any:
        given: Any = cast(Any, arrays) if isinstance(arrays, (list, tuple)) else list(arrays)
        return joined(*[function(_part(given, which), *args, **named) for which in (0, 1)])

    return code


for _f in (np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.block):
    COMPLEX[_f] = _joining(_f)
if hasattr(np, "concat"):
    COMPLEX[np.concat] = _joining(np.concat)


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    given = tidy(values) if isinstance(values, list) else values
    return joined(*[np.append(_part(arr, i), _part(given, i), axis) for i in (0, 1)])


@complex_answers(np.where)
def where(condition: Any, *branches: Any) -> Any:
    """Selections of both parts."""
    if is_complex(condition):
        raise refuse("np.where needs a condition; for complex numbers write np.where(z != 0, a, b)")
    if len(branches) != 2:
        raise refuse("np.where(c) with one argument gives indices that depend on the numbers; write np.where(c, a, b)")

    def selected(a: Any, b: Any) -> Any:
        return np.where(condition, 0.0 if a is None else a, 0.0 if b is None else b)

    pairs = zip(*[parts_of(x) for x in branches], strict=True)
    return joined(*[None if a is None and b is None else selected(a, b) for a, b in pairs])


@complex_answers(np.select)
def select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    """Nested selections."""
    result = default if type(default) is not int else float(default)
    for c, x in reversed(list(zip(conditions, choices, strict=True))):
        result = np.where(c, x, result)
    return result


@complex_answers(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **named: Any
) -> Any:
    """An array of one number, in the type of a."""
    kind = np.dtype(dtype or (a.dtype if hasattr(a, "dtype") else complex))
    if kind.kind != "c":
        raise refuse(f"np.full_like: a complex number does not fit into an array of {kind}; give dtype=complex")
    wide = np.broadcast_to(fill_value, np.shape(a) if shape is None else shape)
    return complex_convert(wide, kind) if type(wide) in TRACED else np.asarray(wide, kind)


@complex_answers(np.asarray, np.array, np.asanyarray, np.ascontiguousarray)
def array(a: Any, dtype: Any = None, *args: Any, **named: Any) -> Any:
    """The array itself."""
    return a if dtype is None else complex_convert(a, np.dtype(dtype))


COMPLEX.update(
    {
        np.compress: lambda condition, a, axis=None, out=None: each(lambda x: np.compress(condition, x, axis), a),
        np.var: _var,
        np.std: lambda a, *args, **named: primitive_step(p.root, _var(a, *args, **named)),
        np.append: _append,
        np.iscomplexobj: lambda x: True,
        np.isrealobj: lambda x: False,
    }
)
for _f in (
    *(np.shape, np.ndim, np.size, np.result_type, np.zeros_like, np.empty_like, np.ones_like),
    *(np.broadcast_arrays, np.atleast_1d, np.atleast_2d, np.atleast_3d),
):
    COMPLEX[_f] = FUNCTIONS[_f]  # they look at shape and type, or ask for a reshape


# -- by the order of complex numbers: real parts first ---------------------------------------------------------


def _first_of(re: Any, im: Any, most: bool) -> Any:
    """Where the largest or smallest complex number along the last axis is."""
    best = np.max(re, -1, keepdims=True) if most else np.min(re, -1, keepdims=True)
    worst = -np.inf if most else np.inf
    among = np.where(re == best, im, worst)
    return np.argmax(among, -1) if most else np.argmin(among, -1)


def _extreme(most: bool) -> Any:
    def code(a: Any, axis: Any = None, keepdims: Any = False, **named: Any) -> Any:
        if any([v is not None and v is not NOT_SAID for k, v in named.items() if k != "out"]):
            raise refuse("np.max and np.min of complex arrays are known to riesz with axis and keepdims only")
        axes = tuple(range(np.ndim(a))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple([k % max(np.ndim(a), 1) for k in axes])
        rest = [k for k in range(np.ndim(a)) if k not in axes]
        shape = np.shape(a)
        rows = np.reshape(np.transpose(a, (*rest, *axes)), (*[shape[k] for k in rest], -1))
        re, im = [_part(rows, k) for k in (0, 1)]
        at = unmoving(_first_of, INT, re, im, shaped=_without_last, most=most)
        found = np.squeeze(COMPLEX[np.take_along_axis](rows, at[..., None], -1), -1)
        kept = tuple([1 if k in axes else n for k, n in enumerate(shape)])
        return np.reshape(found, kept) if keepdims is True else found

    return code


def _without_last(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[0][:-1]


for _f, _most in ((np.max, True), (np.amax, True), (np.min, False), (np.amin, False)):
    COMPLEX[_f] = _extreme(_most)


@complex_answers(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The real part where the imaginary part is as small as rounding, at the point; the array elsewhere."""
    im = _part(a, 1)
    small = tol * np.finfo(im.dtype).eps if tol > 1 else tol
    return a.real if decided(np.all(np.abs(im) < small)) else a


# -- formulas ---------------------------------------------------------------------------------------------------


@complex_answers(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Horner's rule."""
    p = tidy(p)
    y = 0.0 * x
    for k in range(np.shape(p)[0]):
        y = y * x + p[k]
    return y


@complex_answers(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """Σ w·z / Σ w."""
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims is True)
    w = tidy(weights)
    if np.ndim(w) == 1 and np.ndim(a) > 1:
        w = np.reshape(w, [-1 if k == axis % np.ndim(a) else 1 for k in range(np.ndim(a))])
    total = np.sum(w * np.ones(np.shape(a)), axis=axis, keepdims=keepdims is True)
    found = np.sum(a * w, axis=axis, keepdims=keepdims is True) / total
    return (found, total) if returned else found


@complex_answers(np.linspace)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, **named: Any) -> Any:
    """Equal steps on a line in the plane."""
    if any([v is not None and v != 0 for v in named.values()]):
        raise refuse("np.linspace of complex numbers is known to riesz without dtype and axis; convert it afterwards")
    t = np.linspace(0.0, 1.0, num, endpoint)
    rows = start + (stop - start) * np.reshape(t, (num, *(1,) * max(np.ndim(start), np.ndim(stop))))
    return (rows, (stop - start) / (num - 1 if endpoint else num)) if retstep else rows


@complex_answers(np.sinc)
def sinc(x: Any) -> Any:
    """sin πz / πz."""
    y = np.where(x == 0, 1e-20, np.pi * x)
    return np.sin(y) / y


@complex_answers(np.expm1)
def expm1(z: Any) -> Any:
    """eᶻ − 1 without cancellation."""
    x, y = [_part(z, k) for k in (0, 1)]
    return joined(np.expm1(x) * np.cos(y) - 2.0 * np.sin(0.5 * y) ** 2, np.exp(x) * np.sin(y))


@complex_answers(np.log1p)
def log1p(z: Any) -> Any:
    """ln(1 + z) without cancellation."""
    x, y = [_part(z, k) for k in (0, 1)]
    return joined(0.5 * np.log1p(x * (2.0 + x) + y * y), np.arctan2(y, 1.0 + x))


@complex_answers(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Both parts of the values fp; the points are real."""
    if is_complex((x, xp, period)) or not is_complex((fp,)):
        raise TypeError("np.interp takes complex values fp, with left and right, but real x, xp and period: use z.real")
    ends: Any = [[None if e is None else _part(e, k) for e in (left, right)] for k in (0, 1)]
    real: Any = np.interp
    return joined(*[real(x, xp, _part(fp, k), *ends[k], period) for k in (0, 1)])


@complex_answers(np.isclose)
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """|a − b| ≤ atol + rtol·|b|."""
    return np.abs(a - b) <= atol + rtol * np.abs(b)


COMPLEX[np.allclose] = lambda a, b, *args, **named: np.all(isclose(a, b, *args, **named))
COMPLEX[np.any] = lambda a, *args, **named: np.any(a != 0, *args, **named)
COMPLEX[np.all] = lambda a, *args, **named: np.all(a != 0, *args, **named)
