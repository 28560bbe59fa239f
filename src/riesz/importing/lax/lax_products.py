"""Products, convolutions, windows and Fourier transforms of JAX's."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracing.trace import refuse
from ...tracing.traced import lifted
from .lax_registry import is_traced, lax
from .lax_shapes import padded


def product_text(x_rank: int, y_rank: int, summed: Any, shared: Any) -> str:
    """The subscripts of einsum for a dot_general."""
    letters = iter(string.ascii_letters)
    x, y = [""] * x_rank, [""] * y_rank
    for i, j in zip(*shared, strict=True):
        x[i] = y[j] = next(letters)
    out = [x[i] for i in shared[0]]
    for i, j in zip(*summed, strict=True):
        x[i] = y[j] = next(letters)
    for labels in (x, y):
        for i, label in enumerate(labels):
            if not label:
                labels[i] = next(letters)
                out.append(labels[i])
    return f"{''.join(x)},{''.join(y)}->{''.join(out)}"


@lax("`np.matmul` or `np.einsum`: a contraction", "dot_general")
def _dot(reader: Any, e: Any, x: Any, y: Any) -> Any:
    summed, shared = e.params["dimension_numbers"]
    dtype = np.dtype(e.outvars[0].aval.dtype)
    if dtype.itemsize > min(v.dtype.itemsize for v in (x, y)) or dtype.kind != x.dtype.kind:
        x, y = [v if v.dtype == dtype else v.astype(dtype) for v in (x, y)]
    return np.einsum(product_text(np.ndim(x), np.ndim(y), summed, shared), x, y)


@lax("a convolution with group and batch sizes: windows and a contraction", "conv_general_dilated")
def _convolution(reader: Any, e: Any, x: Any, w: Any) -> Any:
    p = e.params
    dims, groups, batches = p["dimension_numbers"], p["feature_group_count"], p["batch_group_count"]
    x, w = np.transpose(x, dims.lhs_spec), np.transpose(w, dims.rhs_spec)
    y = convolved(x, w, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"], groups, batches)
    order = np.argsort(dims.out_spec).tolist()
    return y if order == list(range(len(order))) else np.transpose(y, order)


def convolved(
    x: Any,
    w: Any,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    gaps: Sequence[int],
    dilations: Sequence[int],
    groups: int = 1,
    batches: int = 1,
) -> Any:
    """The convolution of x[n, c, …] with w[o, c, …]; `gaps` spread the elements of x, `dilations` those of w."""
    config = [(0, 0, 0)] * 2
    config += [(low, high, d - 1) for (low, high), d in zip(padding, gaps, strict=True)]
    x = padded(x, np.zeros((), x.dtype), config)
    sizes, spatial = w.shape[2:], tuple(range(2, x.ndim))
    found = opened(x, spatial, sizes, strides, dilations)  # n c o… k…
    n, c, outs = x.shape[0], x.shape[1], found.shape[2 : 2 + len(sizes)]
    o, i, a, b = w.shape[0], w.shape[1], "pqrst"[: len(sizes)], "uvwxy"[: len(sizes)]
    if batches > 1:
        found = np.reshape(found, (batches, n // batches, c, *outs, *sizes))
        w = np.reshape(w, (batches, o // batches, i, *sizes))
        y = np.einsum(f"gnc{a}{b},goc{b}->ngo{a}", found, w)
        n //= batches
    elif groups > 1:
        found = np.reshape(found, (n, groups, c // groups, *outs, *sizes))
        y = np.einsum(f"ngc{a}{b},goc{b}->ngo{a}", found, np.reshape(w, (groups, o // groups, i, *sizes)))
    else:
        y = np.einsum(f"nc{a}{b},oc{b}->no{a}", found, w)
    return np.reshape(y, (n, o, *outs)) if y.ndim > 2 + len(sizes) else y


def opened(x: Any, axes: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """Windows along some axes: the axes of positions stay in place, those of windows go last."""
    for axis, k, s, d in zip(axes, sizes, strides, dilations, strict=True):
        if x.shape[axis] < (k - 1) * d + 1:
            shape = (*x.shape[:axis], 0, *x.shape[axis + 1 :], k)
            x = np.zeros(shape, x.dtype)
            continue
        if k == 1:
            wide = np.reshape(x, (*x.shape, 1))
        else:
            wide = np.lib.stride_tricks.sliding_window_view(x, (k - 1) * d + 1, axis)
        if d > 1:
            wide = wide[..., ::d]
        x = wide if s == 1 else wide[tuple([slice(None, None, s) if i == axis else slice(None) for i in range(x.ndim)])]
    return x


_FOLDS: dict[str, tuple[Any, str]] = {
    "reduce_window_sum": (np.sum, "zero"),
    "reduce_window_max": (np.max, "least"),
    "reduce_window_min": (np.min, "most"),
    "add": (np.sum, "zero"),
    "max": (np.max, "least"),
    "min": (np.min, "most"),
    "mul": (np.prod, "one"),
}


def _neutral(which: str, dtype: Any) -> Any:
    if which in ("zero", "one"):
        return np.asarray(which == "one", dtype)
    ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.asarray(ends[which == "most"], dtype)


def begun(name: str, x: Any, start: Any, neutral: Any) -> Any:
    """A fold that does not begin at its neutral element."""
    if not is_traced(start) and np.array_equal(start, neutral):
        return x
    return {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}[name](x, start)


@lax("`np.sum`, `np.prod`, `np.max`, `np.min` from a first value on", "reduce")
def _reduce(reader: Any, e: Any, x: Any, *start: Any) -> Any:
    name = _fold_of(e.params["jaxpr"])
    if name not in _FOLDS or len(start) != 1:
        raise refuse("lax.reduce is known for sums, products, the largest and the smallest")
    fold, which = _FOLDS[name]
    return [begun(name, fold(x, axis=tuple(e.params["dimensions"])), start[0], _neutral(which, x.dtype))]


def _fold_of(jaxpr: Any) -> str:
    """The primitive that a function of two numbers is; empty for others."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    plain = len(inner.eqns) == 1 and set(inner.eqns[0].invars) == set(inner.invars)
    return inner.eqns[0].primitive.name if plain and inner.outvars == inner.eqns[0].outvars else ""


@lax("windows, and `np.sum`, `np.max`, `np.min` over them", "reduce_window_sum", "reduce_window_max")
@lax("windows, and `np.sum`, `np.max`, `np.min` over them", "reduce_window_min", "reduce_window")
def _reduce_window(reader: Any, e: Any, x: Any, *start: Any) -> Any:
    p, name = e.params, e.primitive.name
    if name == "reduce_window":
        name = _fold_of(p["jaxpr"])
        if name not in _FOLDS or len(start) != 1:
            raise refuse("lax.reduce_window is known for sums, products, the largest and the smallest of a window")
    fold, which = _FOLDS[name]
    dilated = p.get("base_dilation") or (1,) * x.ndim
    config = [(low, high, d - 1) for (low, high), d in zip(p["padding"], dilated, strict=True)]
    neutral = _neutral(which, x.dtype)
    x = padded(x, neutral, config)
    dilations = p.get("window_dilation") or (1,) * x.ndim
    for axis, k in enumerate(p["window_dimensions"]):
        if k > 1 or p["window_strides"][axis] > 1:
            x = opened(x, [axis], [k], [p["window_strides"][axis]], [dilations[axis]])
            x = fold(x, axis=-1)
    if start:
        x = begun(name, x, start[0], neutral)
    return [x] if e.primitive.multiple_results else x


@lax("the place of the largest in each window, and `np.add.at`", "select_and_scatter_add")
def _select_and_scatter(reader: Any, e: Any, source: Any, x: Any) -> Any:
    p, shape = e.params, x.shape
    largest = p["select_prim"].name == "ge"
    size, config = math.prod(shape), [(low, high, 0) for low, high in p["padding"]]
    strides, sizes, ones = p["window_strides"], p["window_dimensions"], (1,) * len(shape)
    wide = padded(x, _neutral("least" if largest else "most", x.dtype), config)
    places = padded(np.arange(size).reshape(shape), np.asarray(size), config)
    found, at = [opened(v, range(len(shape)), sizes, strides, ones) for v in (wide, places)]
    flat = (*found.shape[: len(shape)], math.prod(sizes))
    best = (np.argmax if largest else np.argmin)(np.reshape(found, flat), axis=-1)
    spot = np.take_along_axis(
        lifted(np.reshape(at, flat), best.home) if is_traced(best) else np.reshape(at, flat), best[..., None], axis=-1
    )[..., 0]
    home = next(v.home for v in (source, x) if is_traced(v))
    total = lifted(np.zeros(size + 1, source.dtype), home).copy()
    np.add.at(total, np.reshape(spot, (-1,)), np.reshape(source, (-1,)))
    return np.reshape(total[:size], shape)


@lax("`np.fft.fftn`, `ifftn`, `rfftn`, `irfftn`", "fft")
def _fft(reader: Any, e: Any, x: Any) -> Any:
    lengths = tuple(e.params["fft_lengths"])
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(e.params["fft_type"])]
    return getattr(np.fft, name)(x, s=lengths, axes=tuple(range(-len(lengths), 0)))


@lax("real and imaginary part", "complex")
def _complex(reader: Any, e: Any, a: Any, b: Any) -> Any:
    return a + 1j * b
