"""Sums, means, products, extrema, cumulative sums: contractions and relational reductions where they are linear."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Reduction, contraction
from ...ops.opaque import Discrete, Ruled, Smooth
from ...relations import Triangular
from ...relations.index_sets import Seg
from ...terms import primitives as p
from ..differentials import chosen
from ..traced import (
    BOOL,
    FLOAT,
    INT,
    Traced,
    answers,
    as_array,
    convert,
    lifted,
    primitive_step,
    refuse,
    result_dtype,
    several,
    step,
    tidy,
)
from .elementwise import discrete, is_discrete, scaled, where
from .gathering import along
from .rearranging import axes_of, concatenate, expand_dims, moveaxis, of_number, ravel, reshape

_NONE = np._NoValue  # pyright: ignore
FEW, MANY = 16, 1 << 12
"""Up to how many columns of an array of how many numbers are compared as columns."""


def _given(x: Any) -> Any:
    return None if x is _NONE else x


def _kept(shape: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if i in gone else n for i, n in enumerate(shape)])


def _dropped(shape: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for i, n in enumerate(shape) if i not in gone])


def _masked(x: Any, mask: Any, neutral: float) -> Traced:
    return (
        x
        if mask is None or mask is True
        else where(mask, x, neutral if x.dtype.kind == "f" else _whole(neutral, x.dtype))
    )


def _whole(neutral: float, dtype: Any) -> Any:
    """A neutral number of floats, for integers or truth values: infinity is the end of their range."""
    if dtype.kind == "b":
        return np.bool_(neutral > 0)
    info = np.iinfo(dtype)
    return dtype.type(min(max(neutral, info.min), info.max))


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction takes away."""
    return () if of_number(axis, ndim) else axes_of(axis, ndim)


def total(x: Traced, axis: Any = None, keepdims: bool = False) -> Traced:
    """Σ over axes, a contraction."""
    gone = reduced_axes(axis, x.ndim)
    labels = tuple(range(x.ndim))
    result = step(contraction((labels,), tuple([a for a in labels if a not in gone])), x) if gone else x
    return reshape(result, _kept(x.shape, gone)) if keepdims else result


@answers(np.sum, what="Σ, a contraction", rule="Σ of dx")
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Σ over axes."""
    x = _masked(lifted(a), _given(where), 0.0)
    if x.dtype.kind != "f" and dtype is None:
        gone = reduced_axes(axis, x.ndim)
        parameters = (("axis", tuple([i - x.ndim for i in gone])), ("keepdims", bool(_given(keepdims))))
        result = several(Discrete(np.sum, parameters, _reduced_shape), _summed(x), x)
        return result if _given(initial) is None else result + int(initial)
    x = convert(x, np.dtype(dtype)) if dtype is not None else x
    result = total(x, axis, bool(_given(keepdims)))
    return result if _given(initial) is None else result + initial


def _summed(x: Traced) -> Any:
    """The type of sums and products of integers and truth values."""
    return np.dtype(np.uint64) if x.dtype.kind == "u" else INT


def _reduced_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    shape = shapes[0]
    axis = parameters["axis"]
    gone = tuple([i % len(shape) for i in (axis if isinstance(axis, tuple) else (axis,))])
    return _kept(shape, gone) if parameters.get("keepdims") else _dropped(shape, gone)


def _same_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[0]


def _count(x: Traced, axis: Any) -> int:
    return math.prod([x.shape[i] for i in axes_of(axis, x.ndim)])


def _counts(mask: Any, axis: Any, keepdims: Any, dtype: Any) -> Any:
    """How many elements a mask keeps, in a floating-point type."""
    found = np.sum(mask, axis=axis if axis is None else axes_of(axis, np.ndim(mask)), keepdims=bool(_given(keepdims)))
    return convert(found, dtype)


def _float(a: Any) -> Traced:
    x = lifted(a)
    return x if x.dtype.kind == "f" else convert(x, FLOAT)


@answers(np.mean, what="Σ / n", rule="mean of dx")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None
) -> Any:
    """The mean."""
    x = _float(a)
    x = convert(x, np.dtype(dtype)) if dtype is not None else x
    if _given(where) is not None and _given(where) is not True:
        mask = np.broadcast_to(_given(where), x.shape)
        return total(_masked(x, mask, 0.0), axis, bool(_given(keepdims))) / _counts(mask, axis, keepdims, x.dtype)
    n = _count(x, axis)
    result = total(x, axis, bool(_given(keepdims)))
    return scaled(1.0 / n, result) if n else result * np.nan


@answers(np.average, what="Σ w·x / Σ w", rule="the same of dx")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The weighted mean."""
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        return (found, np.full(np.shape(found), _count(lifted(a), axis), found.dtype)) if returned else found
    x, w = as_array(a), as_array(weights)
    if np.shape(w) != np.shape(x):
        (at,) = axes_of(axis, np.ndim(x))
        w = np.reshape(w, tuple([-1 if i == at else 1 for i in range(np.ndim(x))]))
    kind = result_dtype([x, w])[0]
    whole = np.sum(
        np.broadcast_to(w, np.shape(x)),
        axis=axis,
        keepdims=bool(_given(keepdims)),
        dtype=kind if kind.kind == "f" else FLOAT,
    )
    found = np.sum(x * w, axis=axis, keepdims=bool(_given(keepdims))) / whole
    return (found, whole) if returned else found


@answers(np.var, what="mean of squares about the mean", rule="2·mean((x − x̄) · dx)")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance."""
    x = _float(a)
    x = convert(x, np.dtype(dtype)) if dtype is not None else x
    ddof = ddof if _given(correction) is None else correction
    if _given(where) is not None and _given(where) is not True:
        mask = np.broadcast_to(_given(where), x.shape)
        about = (
            total(_masked(x, mask, 0.0), axis, True) / _counts(mask, axis, True, x.dtype)
            if _given(mean) is None
            else mean
        )
        squares = total(_masked((x - about) * (x - about), mask, 0.0), axis, bool(_given(keepdims)))
        return squares / np.maximum(_counts(mask, axis, keepdims, x.dtype) - ddof, 0.0)
    n = max(_count(x, axis) - ddof, 0)
    about = scaled(1.0 / max(_count(x, axis), 1), total(x, axis, True)) if _given(mean) is None else mean
    centred = x - about
    squares = total(centred * centred, axis, bool(_given(keepdims)))
    return scaled(1.0 / n, squares) if n else squares / np.zeros(())


@answers(np.std, what="root of the variance", rule="dvar / 2σ (0 where σ = 0)")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, **named: Any
) -> Any:
    """The standard deviation."""
    return primitive_step(p.root, var(a, axis, dtype, None, ddof, keepdims, **named))


# -- extrema ----------------------------------------------------------------------------------------------


def _extremum_differential(d: Any, y: Any, x: Any, *, axis: Any, keepdims: bool, title: str) -> Any:
    """The differential of the elements that attain the extremum, in equal shares."""
    peak = y if keepdims else expand_dims(y, axis)
    return total(chosen(several(Discrete(shares, (("axis", axis),)), x.dtype, x, peak), d[0]), axis, keepdims)


def shares(x: Any, peak: Any, *, axis: Any) -> Any:
    """1 / k at the k places that attain the extremum, 0 elsewhere; in the type of x."""
    at: Any = np.equal(x, peak).astype(np.asarray(x).dtype.type)
    if axis == (-1,):  # a product with ones, several times as fast as sums of short rows
        count = (at.reshape(-1, at.shape[-1]) @ np.ones(at.shape[-1], at.dtype)).reshape(*at.shape[:-1], 1)
    else:
        count = np.sum(at, axis=axis, keepdims=True)
    return at if (count == 1).all() else np.divide(at, np.maximum(count, 1), out=at)  # nan: no place attains it


def _extremum_shape(shape: Any, *, axis: Any, keepdims: bool, title: str) -> Any:
    return _reduced_shape((shape,), {"axis": axis, "keepdims": keepdims})


def _extremum_array(x: Any, *, axis: Any, keepdims: bool, title: str) -> Any:
    if axis != (-1,) or not x.ndim > 1 or not 0 < x.shape[-1] <= FEW or x.size < MANY:
        return (np.max if title == "max" else np.min)(x, axis=axis, keepdims=keepdims)
    better: Any = np.maximum if title == "max" else np.minimum
    found = x[..., :1].copy()
    for k in range(1, x.shape[-1]):  # all rows at a time: NumPy's own loop along a short axis takes three times as long
        better(found, x[..., k : k + 1], out=found)
    return found if keepdims else found[..., 0]


EXTREMUM = Smooth("extremum", _extremum_array, _extremum_shape, _extremum_differential, linear_time=True)


def _extremum(largest: bool) -> Any:
    def code(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Any:
        x = _masked(lifted(a), _given(where), -np.inf if largest else np.inf)
        gone = tuple([i - x.ndim for i in reduced_axes(axis, x.ndim)])
        if x.dtype.kind != "f":
            found = Discrete(
                np.max if largest else np.min, (("axis", gone), ("keepdims", bool(_given(keepdims)))), _reduced_shape
            )
            result: Any = several(found, x.dtype, x)
        elif not gone:
            result = x
        else:
            if not _count(x, axis):
                if _given(initial) is None:
                    raise ValueError(
                        f"zero-size array to reduction operation {'maximum' if largest else 'minimum'} which has no "
                        "identity"
                    )
                return np.full(
                    _reduced_shape((x.shape,), {"axis": gone, "keepdims": bool(_given(keepdims))}), float(initial)
                )
            parameters = (("axis", gone), ("keepdims", bool(_given(keepdims))), ("title", "max" if largest else "min"))
            result = step(Ruled(EXTREMUM, parameters), x)
        if _given(initial) is not None:
            result = (np.maximum if largest else np.minimum)(
                result, float(initial) if x.dtype.kind == "f" else x.dtype.type(initial)
            )
        return result

    return code


answers(np.max, np.amax, what="maximum over axes", rule="of the largest; ties share equally")(_extremum(True))
answers(np.min, np.amin, what="minimum over axes", rule="of the smallest; ties share equally")(_extremum(False))


@answers(np.ptp, what="maximum − minimum", rule="that of both")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The spread."""
    return np.max(a, axis=axis, keepdims=bool(_given(keepdims))) - np.min(a, axis=axis, keepdims=bool(_given(keepdims)))


def _arg(function: Any) -> None:
    @answers(function, what="discrete", rule="no derivative")
    def code(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = lifted(a)
        if axis is None or of_number(axis, x.ndim):
            found = code(ravel(x), 0)
            return reshape(found, (1,) * x.ndim) if bool(_given(keepdims)) else found
        (at,) = axes_of(axis, x.ndim)
        if not x.shape[at] and (x.size or not math.prod(_dropped(x.shape, (at,))) == 0):
            raise ValueError(f"attempt to get {function.__name__} of an empty sequence")
        parameters = (("axis", at - x.ndim), ("keepdims", bool(_given(keepdims))))
        return several(Discrete(function, parameters, _reduced_shape), INT, x)


_arg(np.argmax)
_arg(np.argmin)


def _logical(function: Any, dtype: Any) -> None:
    every = function is np.all  # while a function is traced, np.all may be another one

    @answers(function, what="discrete", rule="no derivative")
    def code(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None) -> Any:
        x = lifted(a)
        if _given(where) is not None:
            x = convert(x, BOOL)
            x = np.logical_or(x, np.logical_not(where)) if every else np.logical_and(x, where)
        gone = tuple([i - x.ndim for i in reduced_axes(axis, x.ndim)])
        return several(
            Discrete(function, (("axis", gone), ("keepdims", bool(_given(keepdims)))), _reduced_shape), dtype, x
        )


_logical(np.any, BOOL)
_logical(np.all, BOOL)
_logical(np.count_nonzero, INT)


# -- products of many factors -----------------------------------------------------------------------------


@answers(np.prod, what="a tree of products", rule="of each factor with the product of the others; right with zeros too")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Π over axes, halving the number of factors at each step."""
    if is_discrete(a) and dtype is None:
        whole = _masked(lifted(a), _given(where), 1.0)
        gone = tuple([i - whole.ndim for i in reduced_axes(axis, whole.ndim)])
        product = several(
            Discrete(np.prod, (("axis", gone), ("keepdims", bool(_given(keepdims)))), _reduced_shape),
            _summed(whole),
            whole,
        )
        return product if _given(initial) is None else product * int(initial)
    x = _masked(_float(a), _given(where), 1.0)
    x = convert(x, np.dtype(dtype)) if dtype is not None else x
    gone = reduced_axes(axis, x.ndim)
    shape = x.shape
    kept = tuple([i for i in range(x.ndim) if i not in gone])
    flat: Any = reshape(
        moveaxis(x, gone, tuple(range(len(gone)))), (math.prod([shape[i] for i in gone]), *[shape[i] for i in kept])
    )
    n = flat.shape[0]
    if not n:
        flat, n = flat.sum(axis=0, keepdims=True) + 1.0, 1
    while n > 1:
        pairs = flat[0 : n - n % 2 : 2] * flat[1:n:2]
        flat = concatenate([pairs, flat[n - 1 : n]], 0) if n % 2 else pairs
        n = flat.shape[0]
    result = reshape(flat, _kept(shape, gone) if _given(keepdims) else _dropped(shape, gone))
    return result if _given(initial) is None else result * float(initial)


def _flat_axis(a: Any, axis: Any) -> tuple[Traced, int]:
    x = lifted(a)
    if axis is None or of_number(axis, x.ndim):
        return ravel(x), 0
    return x, axes_of(axis, x.ndim)[0]


@answers(np.cumsum, what="relational reduction by ≤: prefix sums", rule="cumsum of dx")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Prefix sums."""
    x, at = _flat_axis(a, axis)
    if x.dtype.kind != "f" and dtype is None:
        return several(Discrete(np.cumsum, (("axis", at - x.ndim),), _same_shape), _summed(x), x)
    x = convert(x, np.dtype(dtype or x.dtype))
    index = Seg(x.shape[at])
    return step(Reduction((Triangular(index, index, True),), at), x)


@answers(np.cumprod, what="products of shifted products, doubling", rule="that of the products; right with zeros too")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Prefix products, in log₂ n products of the array with itself shifted."""
    x, at = _flat_axis(a, axis)
    if x.dtype.kind != "f" and dtype is None:
        return several(Discrete(np.cumprod, (("axis", at - x.ndim),), _same_shape), _summed(x), x)
    y = moveaxis(convert(x, np.dtype(dtype or x.dtype)), at, 0)
    shift = 1
    while shift < y.shape[0]:
        y = concatenate([y[:shift], y[shift:] * y[:-shift]], 0)
        shift *= 2
    return moveaxis(y, 0, at)


if hasattr(np, "cumulative_sum"):

    def _cumulative(function: Any, neutral: float) -> Any:
        def code(
            x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
        ) -> Any:
            x = x if x.ndim else ravel(x)
            if axis is None and x.ndim != 1:
                raise ValueError("for an array with more than one axis, axis=… is due")
            at = 0 if axis is None else axes_of(axis, x.ndim)[0]
            found = function(x, axis=at, dtype=dtype)
            if not include_initial:
                return found
            first = np.full((*found.shape[:at], 1, *found.shape[at + 1 :]), neutral, found.dtype)
            return concatenate([first, found], at)

        return code

    answers(np.cumulative_sum, what="relational reduction by ≤: prefix sums", rule="cumsum of dx")(
        _cumulative(cumsum, 0.0)
    )
    answers(np.cumulative_prod, what="products of shifted products, doubling", rule="that of the products")(
        _cumulative(cumprod, 1.0)
    )


@answers(np.diff, what="combination of two slices", rule="diff of dx")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours."""
    x = lifted(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return x
    (at,) = axes_of(axis, x.ndim)
    parts: list[Any] = []
    for extra in (_given(prepend), x, _given(append)):
        if extra is not None:
            parts.append(
                np.broadcast_to(extra, (*x.shape[:at], 1, *x.shape[at + 1 :]))
                if np.ndim(extra) == 0 and extra is not x
                else extra
            )
    x = concatenate(parts, at) if len(parts) > 1 else x
    head = (slice(None),) * at
    for _ in range(n):
        after, before = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = after != before if x.dtype.kind == "b" else after - before
    return x


@answers(np.ediff1d, what="combination of two slices", rule="ediff1d of dx")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours, flat."""
    if ary.dtype.kind == "b":
        raise TypeError("truth values have no differences")
    parts = [convert(tidy(x), ary.dtype) for x in (to_begin, diff(ravel(ary)), to_end) if x is not None]
    return concatenate([np.ravel(x) for x in parts], 0) if len(parts) > 1 else parts[0]


@answers(np.gradient, what="combination of slices", rule="gradient of dx")
def gradient(f: Traced, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided at the ends."""
    f = _float(f)
    axes = axes_of(axis, f.ndim)
    spacing = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    found = [_slope(f, at, h, edge_order) for at, h in zip(axes, spacing, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(x: Traced, at: int, h: Any, edge_order: Any) -> Any:
    n = x.shape[at]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required."
        )
    if type(h) is Traced:
        if h.ndim:
            raise refuse("np.gradient at traced points is not known to riesz; write the quotients of np.diff")
        return _slope(x, at, 1.0, edge_order) / h
    # The stencil is NumPy's: its weights are the gradient of the coordinate vectors, one row per point.
    weights: Any = np.gradient(np.eye(n), *([h] if np.ndim(h) else [float(h)]), axis=0, edge_order=edge_order)
    weights = weights.astype(x.dtype)
    y = moveaxis(x, at, 0)
    rows = [
        np.nonzero(weights[i])[0] for i in range(n) if n <= 3 or i in (0, n - 1)
    ]  # a number with weight 0 is not read
    if n <= 3:
        return moveaxis(
            concatenate(
                [expand_dims(np.tensordot(weights[i][r], along(y, 0, r), ([0], [0])), 0) for i, r in enumerate(rows)], 0
            ),
            0,
            at,
        )
    tail = (slice(None), *(None,) * (y.ndim - 1))
    bands = [np.ascontiguousarray(np.diagonal(weights[1:-1], k)) for k in (0, 1, 2)]
    middle = sum([band[tail] * y[k : n - 2 + k] for k, band in enumerate(bands) if band.any()], 0.0)
    ends = [np.tensordot(weights[i][r], along(y, 0, r), ([0], [0])) for i, r in zip((0, n - 1), rows, strict=True)]
    return moveaxis(concatenate([expand_dims(ends[0], 0), middle, expand_dims(ends[1], 0)], 0), 0, at)


def _without_nan(function: Any, neutral: float) -> Any:
    def code(a: Any, axis: Any = None, *args: Any, **named: Any) -> Any:
        if is_discrete(a):
            return function(a, axis, *args, **named)
        x = _float(a)
        missing = discrete(np.isnan, x)
        found = function(where(missing, neutral, x), axis, *args, **named)
        if np.isfinite(neutral) or _given(named.get("initial")) is not None:
            return found
        return where(
            np.all(missing, axis, keepdims=bool(_given(named.get("keepdims", False)))), np.nan, found
        )  # nothing but nan

    return code


answers(np.nansum, what="selection and Σ", rule="Σ of dx where x is a number")(_without_nan(sum_, 0.0))
answers(np.nanprod, what="selection and Π", rule="Π where x is a number")(_without_nan(prod, 1.0))
answers(np.nanmax, what="selection and maximum", rule="of the largest number")(_without_nan(_extremum(True), -np.inf))
answers(np.nanmin, what="selection and minimum", rule="of the smallest number")(_without_nan(_extremum(False), np.inf))


@answers(np.nanmean, what="selection and mean", rule="mean of dx where x is a number")
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = None
) -> Any:
    """The mean of the numbers."""
    x = _float(a)
    x = convert(x, np.dtype(dtype)) if dtype is not None else x
    good = discrete(np.logical_not, discrete(np.isnan, x))
    good = good if _given(where) is None else np.logical_and(good, where)
    return total(_masked(x, good, 0.0), axis, bool(_given(keepdims))) / convert(
        sum_(good, axis, keepdims=keepdims), x.dtype
    )


@answers(np.trapezoid, what="combination of slices and Σ", rule="trapezoid of dx")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The trapezoidal rule."""
    head = (slice(None),) * axes_of(axis, np.ndim(y))[0]
    sums = y[(*head, slice(1, None))] + y[(*head, slice(None, -1))]
    if x is None:
        steps = dx
    elif np.ndim(x) == 1:
        steps = np.reshape(np.diff(x), (-1, *(1,) * (np.ndim(y) - len(head) - 1)))
    else:
        steps = np.diff(x, axis=axis)
    return np.sum(steps * sums * 0.5, axis=axis)
