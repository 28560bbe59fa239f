"""Sums, means, products, extrema, cumulative sums: contractions and relational reductions where they are linear."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Reduction, contraction
from ...ops.opaque import Ruled, Smooth
from ...relations import Triangular
from ...relations.index_sets import Seg
from ...terms import primitives as p
from ..differentials import chosen
from ..registry import FUNCTIONS, NOT_SAID, answer_rows, answers, answers_called
from ..trace import refuse
from ..traced import BOOL, FLOAT, INT, Traced, as_array, convert, lifted, primitive_step, result_dtype, step, tidy
from .elementwise import accumulated, axes_in_front, discrete, floating, folded, is_discrete, scaled, unmoving, where
from .gathering import along
from .rearranging import axes_of, concatenate, kept_shape, moveaxis, of_number, ravel, reduced_axes, reshape
from .rearranging import same_shape as _same_shape

FEW, MANY = 16, 1 << 12
"""Up to how many columns of an array of how many numbers are compared as columns."""


def _dropped(shape: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([n for i, n in enumerate(shape) if i not in gone])


def _masked(x: Any, mask: Any, neutral: float) -> Traced:
    if mask is None or mask is True:
        return x
    return where(mask, x, neutral if x.dtype.kind == "f" else _whole(neutral, x.dtype))


def _whole(neutral: float, dtype: Any) -> Any:
    """A neutral number of floats, for integers or truth values: infinity is the end of their range."""
    if dtype.kind == "b":
        return np.bool_(neutral > 0)
    info = np.iinfo(dtype)
    return dtype.type(min(max(neutral, info.min), info.max))


def _typed(x: Traced, dtype: Any) -> Traced:
    return x if dtype is None else convert(x, np.dtype(dtype))


def total(x: Traced, axis: Any = None, keepdims: Any = False) -> Traced:
    """Σ over axes, a contraction."""
    gone = reduced_axes(axis, x.ndim)
    labels = tuple(range(x.ndim))
    result = step(contraction((labels,), tuple([a for a in labels if a not in gone])), x) if gone else x
    return reshape(result, kept_shape(x.shape, gone)) if keepdims else result


def unmoving_reduction(function: Any, dtype: Any, x: Traced, axis: Any, keepdims: Any) -> Traced:
    """A reduction without a derivative."""
    gone = tuple([i - x.ndim for i in reduced_axes(axis, x.ndim)])
    return unmoving(function, dtype, x, shaped=_reduced_shape, axis=gone, keepdims=bool(keepdims))


def _summed(x: Traced) -> Any:
    """The type of sums and products of integers and truth values."""
    return np.dtype(np.uint64) if x.dtype.kind == "u" else INT


def _reduced_shape(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    shape = shapes[0]
    axis = parameters["axis"]
    gone = tuple([i % len(shape) for i in (axis if isinstance(axis, tuple) else (axis,))])
    return kept_shape(shape, gone) if parameters.get("keepdims") else _dropped(shape, gone)


# -- sums, products, means --------------------------------------------------------------------------------


def _product(x: Traced, axis: Any, keepdims: Any) -> Any:
    """Π over axes, halving the number of factors at each step."""
    gone = reduced_axes(axis, x.ndim)
    flat = axes_in_front(x, gone)
    flat = folded(np.multiply, flat) if flat.shape[0] else flat.sum(axis=0, keepdims=True) + 1.0
    return reshape(flat, (kept_shape if keepdims else _dropped)(x.shape, gone))


def _sum_or_product(function: Any, what: str, rule: str) -> None:
    sums = function is np.sum

    @answers_called(function, what=what, rule=rule)
    def code(a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Any:
        x = lifted(a)
        if x.dtype.kind != "f" and dtype is None:
            found = unmoving_reduction(function, _summed(x), _masked(x, where, 0.0 if sums else 1.0), axis, keepdims)
            initial = None if initial is None else int(initial)
        elif sums:
            found = total(_typed(_masked(x, where, 0.0), dtype), axis, keepdims)
        else:
            found = _product(_typed(_masked(floating(x), where, 1.0), dtype), axis, keepdims)
            initial = None if initial is None else float(initial)
        return found if initial is None else found + initial if sums else found * initial


_OTHERS = "of each factor with the product of the others; right with zeros too"
_sum_or_product(np.sum, "Σ, a contraction", "Σ of dx")
_sum_or_product(np.prod, "a tree of products", _OTHERS)


def _count(x: Traced, axis: Any) -> int:
    return math.prod([x.shape[i] for i in axes_of(axis, x.ndim)])


def _counts(mask: Any, axis: Any, keepdims: Any, dtype: Any) -> Any:
    """How many elements a mask keeps, in a floating-point type."""
    gone = axis if axis is None else axes_of(axis, np.ndim(mask))
    return convert(np.sum(mask, axis=gone, keepdims=bool(keepdims)), dtype)


def _masked_mean(x: Traced, mask: Any, axis: Any, keepdims: Any) -> Any:
    return total(_masked(x, mask, 0.0), axis, keepdims) / _counts(mask, axis, keepdims, x.dtype)


@answers_called(np.mean, what="Σ / n", rule="mean of dx")
def mean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Any:
    x = _typed(floating(a), dtype)
    if where is not None and where is not True:
        return _masked_mean(x, np.broadcast_to(where, x.shape), axis, keepdims)
    n = _count(x, axis)
    result = total(x, axis, keepdims)
    return scaled(1.0 / n, result) if n else result * np.nan


@answers_called(np.nanmean, what="selection and mean", rule="mean of dx where x is a number")
def nanmean(a: Any, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Any:
    x = _typed(floating(a), dtype)
    good = discrete(np.logical_not, discrete(np.isnan, x))
    axis = None if of_number(axis, x.ndim) else axis
    return _masked_mean(x, good if where is None else np.logical_and(good, where), axis, keepdims)


@answers_called(np.average, what="Σ w·x / Σ w", rule="the same of dx")
def average(a: Any, axis: Any, weights: Any, returned: bool, keepdims: Any) -> Any:
    if weights is None:
        found = np.mean(a, axis, keepdims=bool(keepdims))
        return (found, np.full(np.shape(found), _count(lifted(a), axis), found.dtype)) if returned else found
    x, w = as_array(a), as_array(weights)
    if np.shape(w) != np.shape(x):
        (at,) = axes_of(axis, np.ndim(x))
        w = np.reshape(w, tuple([-1 if i == at else 1 for i in range(np.ndim(x))]))
    kind = result_dtype([x, w])[0]
    over: Any = {"axis": axis, "keepdims": bool(keepdims)}
    whole = np.sum(np.broadcast_to(w, np.shape(x)), dtype=kind if kind.kind == "f" else FLOAT, **over)
    found = np.sum(x * w, **over) / whole
    return (found, whole) if returned else found


@answers_called(np.var, what="mean of squares about the mean", rule="2·mean((x − x̄) · dx)")
def var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any) -> Any:
    x = _typed(floating(a), dtype)
    ddof = ddof if correction is None else correction
    if where is not None and where is not True:
        mask = np.broadcast_to(where, x.shape)
        about = _masked_mean(x, mask, axis, True) if mean is None else mean
        squares = total(_masked((x - about) * (x - about), mask, 0.0), axis, keepdims)
        return squares / np.maximum(_counts(mask, axis, keepdims, x.dtype) - ddof, 0.0)
    n = max(_count(x, axis) - ddof, 0)
    centred = x - (scaled(1.0 / max(_count(x, axis), 1), total(x, axis, True)) if mean is None else mean)
    squares = total(centred * centred, axis, keepdims)
    return scaled(1.0 / n, squares) if n else squares / np.zeros(())


@answers(np.std, what="root of the variance", rule="dvar / 2σ (0 where σ = 0)")
def std(*args: Any, **named: Any) -> Any:
    return primitive_step(p.root, var(*args, **named))


# -- extrema ----------------------------------------------------------------------------------------------


def _extremum_differential(d: Any, y: Any, x: Any, *, axis: Any, keepdims: bool, title: str) -> Any:
    """The differential of the elements that attain the extremum, in equal shares."""
    peak = y if keepdims else np.expand_dims(y, axis)
    return total(chosen(unmoving(shares, x.dtype, x, peak, axis=axis), d[0]), axis, keepdims)


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


def _extremum(function: Any) -> Any:
    largest = function is np.max
    better: Any = np.maximum if largest else np.minimum

    def code(a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
        x = _masked(lifted(a), where, -np.inf if largest else np.inf)
        gone = tuple([i - x.ndim for i in reduced_axes(axis, x.ndim)])
        result: Any = x
        if x.dtype.kind != "f":
            result = unmoving_reduction(function, x.dtype, x, axis, keepdims)
        elif gone and not _count(x, axis):
            if initial is None:
                raise ValueError(f"zero-size array to reduction operation {better.__name__} which has no identity")
            return np.full(_reduced_shape((x.shape,), {"axis": gone, "keepdims": keepdims}), x.dtype.type(initial))
        elif gone:
            title = "max" if largest else "min"
            result = step(Ruled(EXTREMUM, (("axis", gone), ("keepdims", bool(keepdims)), ("title", title))), x)
        if initial is None:
            return result
        return better(result, float(initial) if x.dtype.kind == "f" else x.dtype.type(initial))

    return code


for _f, _g, _what, _size in ((np.max, np.amax, "maximum", "largest"), (np.min, np.amin, "minimum", "smallest")):
    answers_called(_f, _g, what=f"{_what} over axes", rule=f"of the {_size}; ties share equally")(_extremum(_f))


@answers_called(np.ptp, what="maximum − minimum", rule="that of both")
def ptp(a: Any, axis: Any, keepdims: Any) -> Any:
    return np.max(a, axis=axis, keepdims=bool(keepdims)) - np.min(a, axis=axis, keepdims=bool(keepdims))


def _place(function: Any) -> None:
    @answers_called(function, what="discrete", rule="no derivative")
    def code(a: Any, axis: Any, keepdims: Any) -> Any:
        x = lifted(a)
        if axis is None or of_number(axis, x.ndim):
            found = FUNCTIONS[function](ravel(x), 0)
            return reshape(found, (1,) * x.ndim) if keepdims else found
        (at,) = axes_of(axis, x.ndim)
        if not x.shape[at] and (x.size or not math.prod(_dropped(x.shape, (at,))) == 0):
            raise ValueError(f"attempt to get {function.__name__} of an empty sequence")
        return unmoving(function, INT, x, shaped=_reduced_shape, axis=at - x.ndim, keepdims=bool(keepdims))


_place(np.argmax)
_place(np.argmin)


def _question(function: Any, dtype: Any) -> None:
    every = function is np.all  # while a function is traced, np.all may be another one

    @answers_called(function, what="discrete", rule="no derivative")
    def code(a: Any, axis: Any, keepdims: Any, where: Any) -> Any:
        x = lifted(a)
        if where is not None:
            x = convert(x, BOOL)
            x = np.logical_or(x, np.logical_not(where)) if every else np.logical_and(x, where)
        return unmoving_reduction(function, dtype, x, axis, keepdims)


_question(np.any, BOOL)
_question(np.all, BOOL)
_question(np.count_nonzero, INT)


def _without_nan(function: Any, neutral: float) -> Any:
    def code(a: Any, axis: Any = None, *args: Any, **named: Any) -> Any:
        if is_discrete(a):
            return FUNCTIONS[function](a, axis, *args, **named)
        x = floating(a)
        missing = discrete(np.isnan, x)
        found = FUNCTIONS[function](where(missing, neutral, x), axis, *args, **named)
        initial, keepdims = [None if (v := named.get(k)) is NOT_SAID else v for k in ("initial", "keepdims")]
        if np.isfinite(neutral) or initial is not None:
            return found
        return where(np.all(missing, axis, keepdims=bool(keepdims)), np.nan, found)  # nothing but nan

    return code


answer_rows(
    (np.nansum, "selection and Σ", "Σ of dx where x is a number", _without_nan(np.sum, 0.0)),
    (np.nanprod, "selection and Π", "Π where x is a number", _without_nan(np.prod, 1.0)),
    (np.nanmax, "selection and maximum", "of the largest number", _without_nan(np.max, -np.inf)),
    (np.nanmin, "selection and minimum", "of the smallest number", _without_nan(np.min, np.inf)),
    (np.nancumsum, "selection and prefix sums", "prefix sums of dx where x is a number", _without_nan(np.cumsum, 0.0)),
    (np.nancumprod, "selection and prefix products", "that of cumprod", _without_nan(np.cumprod, 1.0)),
)


# -- along an axis ----------------------------------------------------------------------------------------


def _prefix_sums(x: Traced, at: int) -> Any:
    index = Seg(x.shape[at])
    return step(Reduction((Triangular(index, index, True),), at), x)


def _prefix_products(x: Traced, at: int) -> Any:
    return moveaxis(accumulated(np.multiply, moveaxis(x, at, 0)), 0, at)


def _cumulates(function: Any, newer: str, code: Any, neutral: float, what: str, rule: str) -> None:
    """Enter np.cumsum or np.cumprod, and the function that the array API has in its place."""

    @answers(function, what=what, rule=rule)
    def cumulated(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = lifted(a)
        flat = axis is None or of_number(axis, x.ndim)
        x, at = (ravel(x), 0) if flat else (x, axes_of(axis, x.ndim)[0])
        if x.dtype.kind != "f" and dtype is None:
            return unmoving(function, _summed(x), x, shaped=_same_shape, axis=at - x.ndim)
        return code(convert(x, np.dtype(dtype or x.dtype)), at)

    def cumulative(x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
        x = x if x.ndim else ravel(x)
        if axis is None and x.ndim != 1:
            raise ValueError("for an array with more than one axis, axis=… is due")
        at = 0 if axis is None else axes_of(axis, x.ndim)[0]
        found = cumulated(x, axis=at, dtype=dtype)
        if not include_initial:
            return found
        first = np.full((*found.shape[:at], 1, *found.shape[at + 1 :]), neutral, found.dtype)
        return concatenate([first, found], at)

    if hasattr(np, newer):
        answers_called(getattr(np, newer), what=what, rule=rule.partition(";")[0])(cumulative)


_cumulates(np.cumsum, "cumulative_sum", _prefix_sums, 0.0, "relational reduction by ≤: prefix sums", "cumsum of dx")
_DOUBLING, _ZEROS = "products of shifted products, doubling", "that of the products; right with zeros too"
_cumulates(np.cumprod, "cumulative_prod", _prefix_products, 1.0, _DOUBLING, _ZEROS)


@answers_called(np.diff, what="combination of two slices", rule="diff of dx")
def diff(a: Any, n: int, axis: int, prepend: Any, append: Any) -> Any:
    x: Any = lifted(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return x
    (at,) = axes_of(axis, x.ndim)
    one = (*x.shape[:at], 1, *x.shape[at + 1 :])
    before, after = [
        [] if extra is None else [np.broadcast_to(extra, one) if np.ndim(extra) == 0 else extra]
        for extra in (prepend, append)
    ]
    x = concatenate([*before, x, *after], at) if before or after else x
    head = (slice(None),) * at
    for _ in range(n):
        right, left = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = right != left if x.dtype.kind == "b" else right - left
    return x


@answers(np.ediff1d, what="combination of two slices", rule="ediff1d of dx")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    if ary.dtype.kind == "b":
        raise TypeError("truth values have no differences")
    parts = [convert(tidy(x), ary.dtype) for x in (to_begin, diff(ravel(ary)), to_end) if x is not None]
    return concatenate([np.ravel(x) for x in parts], 0) if len(parts) > 1 else parts[0]


@answers(np.gradient, what="combination of slices", rule="gradient of dx")
def gradient(f: Traced, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided at the ends."""
    if any([type(h) is Traced and h.ndim for h in varargs]):
        raise refuse("np.gradient at traced points is not known to riesz; write the quotients of np.diff")
    f = floating(f) if type(f) is Traced else as_array(f)
    axes = axes_of(axis, f.ndim)
    spacing = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    if len(spacing) != len(axes):
        raise TypeError("invalid number of arguments")
    found = [_slope(f, at, h, edge_order) for at, h in zip(axes, spacing, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(x: Any, at: int, h: Any, edge_order: Any) -> Any:
    n = x.shape[at]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required."
        )
    if type(h) is Traced:
        return np.gradient(x, axis=at, edge_order=edge_order) / h
    if type(x) is not Traced:
        return np.gradient(x, h, axis=at, edge_order=edge_order)
    # The stencil is NumPy's: its weights are the gradient of the coordinate vectors, one row per point.
    weights: Any = np.gradient(np.eye(n), *([h] if np.ndim(h) else [float(h)]), axis=0, edge_order=edge_order)
    weights = weights.astype(x.dtype)
    y = moveaxis(x, at, 0)

    def row(i: int) -> Any:
        read = np.nonzero(weights[i])[0]  # a number with weight 0 is not read
        return np.expand_dims(np.tensordot(weights[i][read], along(y, 0, read), ([0], [0])), 0)

    if n <= 3:
        return moveaxis(concatenate([row(i) for i in range(n)], 0), 0, at)
    tail = (slice(None), *(None,) * (y.ndim - 1))
    bands = [np.ascontiguousarray(np.diagonal(weights[1:-1], k)) for k in (0, 1, 2)]
    middle = sum([band[tail] * y[k : n - 2 + k] for k, band in enumerate(bands) if band.any()], 0.0)
    return moveaxis(concatenate([row(0), middle, row(n - 1)], 0), 0, at)


@answers(np.trapezoid, what="combination of slices and Σ", rule="trapezoid of dx")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    head = (slice(None),) * axes_of(axis, np.ndim(y))[0]
    sums = y[(*head, slice(1, None))] + y[(*head, slice(None, -1))]
    if x is None:
        steps = dx
    elif np.ndim(x) == 1:
        steps = np.reshape(np.diff(x), (-1, *(1,) * (np.ndim(y) - len(head) - 1)))
    else:
        steps = np.diff(x, axis=axis)
    return np.sum(steps * sums * 0.5, axis=axis)
