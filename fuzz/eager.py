"""JAX's rules without JAX's compiler: its primitives evaluated by NumPy, one by one.

JAX compiles each primitive for each shape it meets, some 30 ms each; a random program meets a dozen new ones. What makes JAX a reference here are its
rules of differentiation, and they are what runs; `2 + 2` is NumPy's. Primitives that are not in the table are compiled as usual.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special as special
from jax import lax
from jax._src import ad_util
from jax._src import lax as rooms
from jax._src.numpy import lax_numpy

TABLE: dict[Any, Any] = {}


class P:
    """Primitives by name."""

    rooms = (rooms.lax, rooms.slicing, rooms.special, rooms.control_flow, rooms.linalg, rooms.fft, ad_util)

    def __class_getitem__(cls, name: str) -> Any:
        return next(getattr(room, name + "_p") for room in cls.rooms if hasattr(room, name + "_p"))


def like(x: Any, y: Any) -> Any:
    """y with the type of x: the types of lax are those of its arguments."""
    return np.asarray(y).astype(np.asarray(x).dtype, copy=False)


def elementwise(**table: Any) -> None:
    for name, f in table.items():
        TABLE[P[name]] = lambda *xs, f=f, **_: like(xs[0], f(*xs))


def truths(**table: Any) -> None:
    for name, f in table.items():
        TABLE[P[name]] = lambda *xs, f=f, **_: np.asarray(f(*xs))


def rule(name: str) -> Any:
    def entered(f: Any) -> Any:
        TABLE[P[name]] = f
        return f

    return entered


def _round(x: Any, rounding_method: Any) -> Any:
    return np.rint(x) if int(rounding_method) == 1 else np.trunc(x + np.copysign(0.5, x))


def _divide(x: Any, y: Any) -> Any:
    return np.trunc(x / y) if np.asarray(x).dtype.kind in "iu" else x / y


elementwise(
    sin=np.sin, cos=np.cos, tan=np.tan, sinh=np.sinh, cosh=np.cosh, tanh=np.tanh, asin=np.arcsin, acos=np.arccos, atan=np.arctan,
    asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh, exp=np.exp, exp2=np.exp2, expm1=np.expm1, log=np.log, log1p=np.log1p, sqrt=np.sqrt,
    rsqrt=lambda x: 1 / np.sqrt(x), cbrt=np.cbrt, floor=np.floor, ceil=np.ceil, sign=np.sign, neg=np.negative, square=np.square, add=np.add,
    sub=np.subtract, mul=np.multiply, div=_divide, max=np.maximum, min=np.minimum, pow=np.power, rem=np.fmod, atan2=np.arctan2, erf=special.erf,
    erfc=special.erfc, erf_inv=special.erfinv, lgamma=special.gammaln, digamma=special.digamma, logistic=special.expit, nextafter=np.nextafter,
    conj=np.conj, igamma=special.gammainc, igammac=special.gammaincc, regularized_incomplete_beta=special.betainc, polygamma=special.polygamma,
    zeta=special.zeta, bessel_i0e=special.i0e, bessel_i1e=special.i1e, add_any=np.add, shift_left=np.left_shift,
    shift_right_arithmetic=np.right_shift,
)  # fmt: skip
truths(
    eq=np.equal,
    ne=np.not_equal,
    lt=np.less,
    le=np.less_equal,
    gt=np.greater,
    ge=np.greater_equal,
    is_finite=np.isfinite,
)
for _name, _f in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.bitwise_not}.items():
    truths(**{_name: _f})
TABLE[P["round"]] = lambda x, *, rounding_method: like(x, _round(x, rounding_method))
TABLE[P["abs"]] = lambda x: np.asarray(np.abs(x))
TABLE[P["real"]] = lambda x: np.asarray(np.real(x))
TABLE[P["imag"]] = lambda x: np.asarray(np.imag(x))
TABLE[P["complex"]] = lambda x, y: np.asarray(x + 1j * np.asarray(y))
TABLE[P["copy"]] = lambda x, **_: np.array(x)


@rule("integer_pow")
def _integer_pow(x: Any, *, y: int) -> Any:
    return like(x, np.asarray(x) ** y if y >= 0 else 1 / np.asarray(x) ** -y)


@rule("convert_element_type")
def _convert(x: Any, *, new_dtype: Any, **_: Any) -> Any:
    if np.asarray(x).dtype.kind == "c" and np.dtype(new_dtype).kind != "c":
        x = np.real(x)
    return np.asarray(x).astype(new_dtype)


@rule("select_n")
def _select(which: Any, *cases: Any) -> Any:
    which = np.asarray(which)
    if len(cases) == 2:
        return np.where(which.astype(bool), cases[1], cases[0])
    return np.choose(np.broadcast_to(which, np.shape(cases[0])), cases)


@rule("clamp")
def _clamp(low: Any, x: Any, high: Any) -> Any:
    return like(x, np.minimum(np.maximum(x, low), high))


@rule("broadcast_in_dim")
def _broadcast(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    x = np.asarray(x)
    placed = [1] * len(shape)
    for i, d in enumerate(broadcast_dimensions):
        placed[d] = x.shape[i]
    return np.broadcast_to(x.reshape(placed), shape).copy()


TABLE[P["transpose"]] = lambda x, *, permutation: np.transpose(np.asarray(x), permutation)
TABLE[P["squeeze"]] = lambda x, *, dimensions: np.squeeze(np.asarray(x), tuple(dimensions))
TABLE[P["rev"]] = lambda x, *, dimensions: np.flip(np.asarray(x), tuple(dimensions))
TABLE[P["concatenate"]] = lambda *xs, dimension: np.concatenate([np.asarray(x) for x in xs], dimension)
TABLE[P["iota"]] = lambda *, dtype, shape, dimension, **_: np.broadcast_to(
    np.arange(shape[dimension]).reshape([-1 if i == dimension else 1 for i in range(len(shape))]), shape
).astype(dtype)


@rule("reshape")
def _reshape(x: Any, *, new_sizes: Any, dimensions: Any = None, **_: Any) -> Any:
    x = np.asarray(x)
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


@rule("slice")
def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return np.asarray(x)[
        tuple(
            [
                slice(a, b, k)
                for a, b, k in zip(start_indices, limit_indices, strides or (1,) * len(start_indices), strict=True)
            ]
        )
    ].copy()


@rule("dynamic_slice")
def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Any) -> Any:
    x = np.asarray(x)
    at = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, slice_sizes, strict=True)]
    return x[tuple([slice(s, s + m) for s, m in zip(at, slice_sizes, strict=True)])].copy()


@rule("dynamic_update_slice")
def _dynamic_update_slice(x: Any, y: Any, *starts: Any) -> Any:
    x, y = np.array(x), np.asarray(y)
    at = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, y.shape, strict=True)]
    x[tuple([slice(s, s + m) for s, m in zip(at, y.shape, strict=True)])] = y
    return x


@rule("pad")
def _pad(x: Any, fill: Any, *, padding_config: Any) -> Any:
    x = np.asarray(x)
    for axis, (low, high, inside) in enumerate(padding_config):
        n = x.shape[axis]
        stretched = list(x.shape)
        stretched[axis] = max(n + (n - 1) * inside, 0) if n else 0
        y = np.full(stretched, fill, x.dtype)
        y[(slice(None),) * axis + (slice(None, None, inside + 1),)] = x
        cut = slice(max(-low, 0), stretched[axis] - max(-high, 0))
        y = y[(slice(None),) * axis + (cut,)]
        width = [(0, 0)] * x.ndim
        width[axis] = (max(low, 0), max(high, 0))
        x = np.pad(y, width, constant_values=np.asarray(fill)[()])
    return x


for _name, _f in {"sum": np.sum, "prod": np.prod, "and": np.all, "or": np.any}.items():
    TABLE[P[f"reduce_{_name}"]] = lambda x, *, axes, f=_f, **_: like(x, f(np.asarray(x), axis=tuple(axes)))


def _extreme(f: Any, empty: float) -> Any:
    def run(x: Any, *, axes: Any, **_: Any) -> Any:
        x = np.asarray(x)
        start = (
            {
                "initial": (
                    empty if x.dtype.kind == "f" else np.iinfo(x.dtype).min if empty < 0 else np.iinfo(x.dtype).max
                )
            }
            if x.dtype.kind in "fi"
            else {}
        )
        return like(x, f(x, axis=tuple(axes), **start))

    return run


TABLE[P["reduce_max"]], TABLE[P["reduce_min"]] = _extreme(np.max, -np.inf), _extreme(np.min, np.inf)
TABLE[P["argmax"]] = lambda x, *, axes, index_dtype: np.asarray(np.argmax(np.asarray(x), axes[0])).astype(index_dtype)
TABLE[P["argmin"]] = lambda x, *, axes, index_dtype: np.asarray(np.argmin(np.asarray(x), axes[0])).astype(index_dtype)
for _name, _f in {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
}.items():

    def _running(x: Any, *, axis: int, reverse: bool, f: Any = _f) -> Any:
        x = np.asarray(x)
        return like(x, np.flip(f(np.flip(x, axis), axis=axis), axis) if reverse else f(x, axis=axis))

    TABLE[P[_name]] = _running


@rule("dot_general")
def _dot(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any) -> Any:
    (cx, cy), (bx, by) = dimension_numbers
    x, y = np.asarray(x), np.asarray(y)
    left, right, count = [-1] * x.ndim, [-1] * y.ndim, 0
    for i, j in [*zip(bx, by, strict=True), *zip(cx, cy, strict=True)]:
        left[i] = right[j] = count
        count += 1
    batch = [left[i] for i in bx]
    for side in (left, right):
        for i, k in enumerate(side):
            if k < 0:
                side[i] = count
                count += 1
    out = [
        *batch,
        *[k for i, k in enumerate(left) if i not in (*bx, *cx)],
        *[k for i, k in enumerate(right) if i not in (*by, *cy)],
    ]
    found = np.einsum(x, left, y, right, out)
    return found if preferred_element_type is None else found.astype(preferred_element_type)


def _window(operand: Any, indices: Any, numbers: Any, sizes: Any) -> tuple[Any, Any, Any]:
    """Index arrays, one for each axis of the operand, of the shape of the result; which of them are inside; and the place of each axis in it."""
    collapsed = (
        numbers.collapsed_slice_dims if hasattr(numbers, "collapsed_slice_dims") else numbers.inserted_window_dims
    )
    offset = numbers.offset_dims if hasattr(numbers, "offset_dims") else numbers.update_window_dims
    mapping = numbers.start_index_map if hasattr(numbers, "start_index_map") else numbers.scatter_dims_to_operand_dims
    batching = tuple(numbers.operand_batching_dims)
    starts_batching = tuple(
        numbers.start_indices_batching_dims
        if hasattr(numbers, "start_indices_batching_dims")
        else numbers.scatter_indices_batching_dims
    )
    batch_shape = indices.shape[:-1]
    rank = len(batch_shape) + len(offset)
    batch_dims = [d for d in range(rank) if d not in offset]
    kept = [d for d in range(operand.ndim) if d not in collapsed and d not in batching]

    def over_batch(a: Any) -> Any:
        shape = [1] * rank
        for d, n in zip(batch_dims, batch_shape, strict=True):
            shape[d] = n
        return a.reshape(shape)

    found, inside = [], np.ones((1,) * rank, bool)
    for d in range(operand.ndim):
        at = np.zeros((1,) * rank, int)
        if d in mapping:
            start = over_batch(indices[..., mapping.index(d)].astype(int))
            inside = inside & (start >= 0) & (start <= operand.shape[d] - sizes[d])
            at = at + start
        if d in batching:
            axis = starts_batching[batching.index(d)]
            shape = [1] * len(batch_shape)
            shape[axis] = batch_shape[axis]
            at = at + over_batch(np.broadcast_to(np.arange(batch_shape[axis]).reshape(shape), batch_shape))
        if d in kept:
            shape = [1] * rank
            shape[offset[kept.index(d)]] = sizes[d]
            at = at + np.arange(sizes[d]).reshape(shape)
        found.append(at)
    return found, inside, (batch_dims, batch_shape, offset, kept)


def _clipped(found: list[Any], operand: Any, indices: Any, numbers: Any, sizes: Any) -> Any:
    mapping = numbers.start_index_map if hasattr(numbers, "start_index_map") else numbers.scatter_dims_to_operand_dims
    high = np.array([operand.shape[d] - sizes[d] for d in mapping])
    return np.clip(indices, 0, high) if len(mapping) else indices


@rule("gather")
def _gather(
    operand: Any,
    indices: Any,
    *,
    dimension_numbers: Any,
    slice_sizes: Any,
    mode: Any = None,
    fill_value: Any = None,
    **_: Any,
) -> Any:
    operand, indices = np.asarray(operand), np.asarray(indices)
    clipped = _clipped([], operand, indices, dimension_numbers, slice_sizes)
    at, _, (batch_dims, batch_shape, offset, kept) = _window(operand, clipped, dimension_numbers, slice_sizes)
    shape = [0] * (len(batch_dims) + len(offset))
    for d, n in zip(batch_dims, batch_shape, strict=True):
        shape[d] = n
    for d, k in zip(offset, kept, strict=True):
        shape[d] = slice_sizes[k]
    if 0 in shape:
        return np.zeros(shape, operand.dtype)
    found = np.broadcast_to(operand[tuple(at)], shape).copy() if at else np.broadcast_to(operand, shape).copy()
    if mode == lax.GatherScatterMode.FILL_OR_DROP:
        inside = np.broadcast_to(_window(operand, indices, dimension_numbers, slice_sizes)[1], shape)
        if not inside.all():
            fill = (
                (
                    np.nan
                    if operand.dtype.kind in "fc"
                    else np.iinfo(operand.dtype).min
                    if operand.dtype.kind == "i"
                    else True
                )
                if fill_value is None
                else fill_value
            )
            found = np.where(inside, found, np.asarray(fill, operand.dtype))
    return found


def _scattered(join: Any) -> Any:
    def run(operand: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any = None, **_: Any) -> Any:
        operand, indices, updates = np.array(operand), np.asarray(indices), np.asarray(updates)
        numbers = dimension_numbers
        kept = [
            d
            for d in range(operand.ndim)
            if d not in numbers.inserted_window_dims and d not in numbers.operand_batching_dims
        ]
        sizes = [1] * operand.ndim
        for d, k in zip(numbers.update_window_dims, kept, strict=True):
            sizes[k] = updates.shape[d]
        if mode == lax.GatherScatterMode.CLIP:
            indices = _clipped([], operand, indices, numbers, sizes)
        at, inside, _ = _window(operand, indices, numbers, sizes)
        if not updates.size:
            return operand
        good = np.broadcast_to(inside, updates.shape)
        where = tuple([np.broadcast_to(a, updates.shape)[good] for a in at])
        join(operand, where, updates[good])
        return operand

    return run


def _put(operand: Any, where: Any, values: Any) -> None:
    operand[where] = values


for _name, _join in {
    "scatter_add": np.add.at,
    "scatter_mul": np.multiply.at,
    "scatter_max": np.maximum.at,
    "scatter_min": np.minimum.at,
    "scatter": _put,
}.items():
    TABLE[P[_name]] = _scattered(_join)


@rule("sort")
def _sort(*xs: Any, dimension: int, is_stable: bool, num_keys: int) -> Any:
    xs = [np.asarray(x) for x in xs]
    keys = [np.where(x == 0, 0.0, x) if x.dtype.kind == "f" else x for x in xs[:num_keys]]
    order = (
        np.lexsort(keys[::-1], axis=dimension) if num_keys > 1 else np.argsort(keys[0], axis=dimension, kind="stable")
    )
    return [np.take_along_axis(x, order, dimension) for x in xs]


TABLE[P["stage"]] = np.asarray
TABLE[P["tile"]] = lambda x, *, reps: np.tile(np.asarray(x), reps)
TABLE[P["stack"]] = lambda *xs, axis: np.stack([np.asarray(x) for x in xs], axis)
TABLE[P["unstack"]] = lambda x, *, axis: [np.array(r) for r in np.moveaxis(np.asarray(x), axis, 0)]
TABLE[P["split"]] = lambda x, *, sizes, axis: [
    np.array(r) for r in np.split(np.asarray(x), np.cumsum(sizes)[:-1], axis)
]


@rule("fft")
def _fft(x: Any, *, fft_type: Any, fft_lengths: Any) -> Any:
    x = np.asarray(x)
    run = (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)[int(fft_type)]
    return run(x, fft_lengths, tuple(range(x.ndim - len(fft_lengths), x.ndim)))


@rule("triangular_solve")
def _triangular(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool, **_: Any
) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    if transpose_a:
        a = a.mT
    return np.linalg.solve(a, b) if left_side else np.linalg.solve(a.mT, b.mT).mT


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, **_: Any) -> Any:
    """By counting: JAX's own goes through vmap, which hides the numbers."""
    a, v = jnp.asarray(a), jnp.asarray(v)
    a = a if sorter is None else a[sorter]
    return jnp.sum((jnp.less if side == "left" else jnp.less_equal)(a, v[..., None]), axis=-1)


@contextmanager
def by_numpy() -> Any:
    """Inside, JAX's primitives are evaluated by NumPy."""
    before = {p: p.impl for p in TABLE}
    own = lax_numpy.searchsorted
    try:
        lax_numpy.searchsorted = jnp.searchsorted = searchsorted
        for p, run in TABLE.items():
            p.impl = run
        with jax.disable_jit():
            yield
    finally:
        lax_numpy.searchsorted = jnp.searchsorted = own
        for p, run in before.items():
            p.impl = run
