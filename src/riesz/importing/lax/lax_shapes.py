"""JAX's primitives that rearrange, reduce and sort."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..jaxpr_reading import between_whole_numbers
from .lax_elementwise import kind_of
from .lax_registry import beside, is_traced, lax


def along(ndim: int, axis: int, what: Any) -> tuple[Any, ...]:
    """An index that is `what` along one axis."""
    return tuple([what if i == axis else slice(None) for i in range(ndim)])


@lax("`np.reshape`", "reshape", "squeeze", "expand_dims")
def _reshape(reader: Any, e: Any, x: Any, *rest: Any) -> Any:
    order = e.params.get("dimensions")
    order = order if e.primitive.name == "reshape" else None  # the order in which axes are read
    return np.reshape(x if order is None else np.transpose(x, order), e.outvars[0].aval.shape)


@lax("`np.transpose`", "transpose")
def _transpose(reader: Any, e: Any, x: Any) -> Any:
    order = tuple(e.params["permutation"])
    return x if order == tuple(range(len(order))) else np.transpose(x, order)


@lax("`np.flip`", "rev")
def _rev(reader: Any, e: Any, x: Any) -> Any:
    return np.flip(x, tuple(e.params["dimensions"]))


@lax("`np.broadcast_to`", "broadcast_in_dim")
def _broadcast(reader: Any, e: Any, x: Any, *rest: Any) -> Any:
    shape, places = e.params["shape"], e.params["broadcast_dimensions"]
    small = [1] * len(shape)
    for k, i in enumerate(places):
        small[i] = e.invars[0].aval.shape[k]
    x = x if tuple(small) == np.shape(x) else np.reshape(x, tuple(small))
    return x if tuple(small) == tuple(shape) else np.broadcast_to(x, shape)


@lax("a slice", "slice")
def _slice(reader: Any, e: Any, x: Any) -> Any:
    p = e.params
    strides = p["strides"] or [1] * len(p["start_indices"])
    parts = zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    index = [
        slice(None) if (a, b, c) == (0, n, 1) else slice(a, b, c) for (a, b, c), n in zip(parts, x.shape, strict=True)
    ]
    return x[tuple(index)]


@lax("`np.concatenate`", "concatenate")
def _concatenate(reader: Any, e: Any, *xs: Any) -> Any:
    return np.concatenate(xs, e.params["dimension"]) if len(xs) > 1 else xs[0]


@lax("`np.stack`", "stack")
def _stack(reader: Any, e: Any, *xs: Any) -> Any:
    return np.stack(xs, e.params["axis"])


@lax("`np.tile`", "tile")
def _tile(reader: Any, e: Any, x: Any) -> Any:
    return np.tile(x, tuple(e.params["reps"]))


@lax("slices", "split")
def _split(reader: Any, e: Any, x: Any) -> Any:
    ends = np.cumsum(e.params["sizes"])
    axis = e.params["axis"]
    return [x[along(x.ndim, axis, slice(b - n, b))] for n, b in zip(e.params["sizes"], ends.tolist(), strict=True)]


@lax("`np.pad`, slices, gathers", "pad")
def _pad(reader: Any, e: Any, x: Any, value: Any) -> Any:
    return padded(x, value, e.params["padding_config"])


def padded(x: Any, value: Any, config: Sequence[tuple[int, int, int]]) -> Any:
    """An array with a value before, behind and between its elements; negative counts cut off."""
    if all([inner == 0 and low >= 0 and high >= 0 for low, high, inner in config]) and not is_traced(value):
        widths = [(low, high) for low, high, _ in config]
        return np.pad(x, widths, constant_values=np.asarray(value)[()]) if any(map(any, widths)) else x
    inside: Any = None
    for axis, (low, high, inner) in enumerate(config):
        if not (low or high or inner):
            continue
        n = x.shape[axis]
        at = np.arange(-low, max(n + (n - 1) * inner, 0) + high)
        there = (at >= 0) & (at < n + (n - 1) * inner) & (at % (inner + 1) == 0)
        place = np.where(there, at // (inner + 1), n)
        blank = np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        x = x[along(x.ndim, axis, at)] if there.all() else np.take(np.concatenate([x, blank], axis), place, axis)
        mask = there.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        inside = mask if inside is None else inside & mask
    if inside is None or inside.all() or (not is_traced(value) and not np.any(value)):
        return x
    return np.where(np.broadcast_to(inside, x.shape), x, value)


@lax("a constant", "iota")
def _iota(reader: Any, e: Any, *rest: Any) -> Any:
    shape, axis = e.params["shape"], e.params["dimension"]
    rows = np.arange(shape[axis], dtype=e.outvars[0].aval.dtype)
    return np.broadcast_to(rows.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


_REDUCTIONS: dict[str, Any] = {
    **{"reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod},
    **{"reduce_and": np.all, "reduce_or": np.any},
}


@lax("`np.sum`, `np.max`, `np.min`, `np.prod`, `np.all`, `np.any`", *_REDUCTIONS)
def _reduce(reader: Any, e: Any, x: Any) -> Any:
    if e.primitive.name in ("reduce_and", "reduce_or") and kind_of(e) != "b":  # of bits
        return between_whole_numbers(e, [x])
    axes = tuple(e.params["axes"])
    whole = len(axes) == x.ndim
    return _REDUCTIONS[e.primitive.name](x, axis=None if whole else axes) if axes else x


@lax("`np.logical_xor.reduce`", "reduce_xor")
def _reduce_xor(reader: Any, e: Any, x: Any) -> Any:
    if kind_of(e) != "b":
        return between_whole_numbers(e, [x])
    return np.equal(np.sum(x.astype(np.int64), axis=tuple(e.params["axes"])) % 2, 1)


@lax("`np.argmax`, `np.argmin`", "argmax", "argmin")
def _argmax(reader: Any, e: Any, x: Any) -> Any:
    return getattr(np, e.primitive.name)(x, axis=e.params["axes"][0])


_RUNNING: dict[str, Any] = {
    **{"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate},
    "cumlogsumexp": np.logaddexp.accumulate,
}


@lax("`np.cumsum`, `np.cumprod`, `accumulate` of maximum, minimum, logaddexp", *_RUNNING)
def _running(reader: Any, e: Any, x: Any) -> Any:
    axis, run = e.params["axis"], _RUNNING[e.primitive.name]
    return np.flip(run(np.flip(x, axis), axis=axis), axis) if e.params["reverse"] else run(x, axis=axis)


@lax("`np.argsort` or `np.lexsort`, and gathers", "sort")
def _sort(reader: Any, e: Any, *xs: Any) -> Any:
    axis, keys = e.params["dimension"], e.params["num_keys"]
    if len(xs) == 1:
        return [np.sort(xs[0], axis=axis)]
    if keys == 1:
        order = np.argsort(xs[0], axis=axis, kind="stable")
    else:
        order = np.lexsort(np.stack([xs[i] for i in range(keys - 1, -1, -1)]), axis=axis)
    return [np.take_along_axis(beside(x, order), order, axis=axis) for x in xs]


@lax("`np.argsort` and a gather", "top_k", "approx_top_k")
def _top_k(reader: Any, e: Any, x: Any) -> Any:
    p = e.params
    k, axis = p["k"], p.get("axis", p.get("operand_axis", p.get("reduction_dimension", -1))) % x.ndim
    keys = x if not p.get("is_max_k", True) else -x if kind_of(e) == "f" else np.invert(x)
    order = np.argsort(keys, axis=axis, kind="stable")[along(x.ndim, axis, slice(0, k))]
    return [np.take_along_axis(x, order, axis=axis), order]
