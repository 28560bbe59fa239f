"""Convolutions and pooling."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..lax.lax_products import convolved, opened
from ..lax.lax_registry import beside
from ..lax.lax_shapes import padded
from .aten_registry import aten


def each(given: Any, n: int) -> list[int]:
    """One number for each axis."""
    given = [given] if isinstance(given, int) else list(given)
    return given * n if len(given) == 1 else given


@aten("windows and a contraction", "convolution")
def _convolution(
    e: Any, x: Any, w: Any, b: Any, stride: Any, pad: Any, dilation: Any, transposed: bool, more: Any, groups: int
) -> Any:
    n = w.ndim - 2
    stride, pad, dilation, more = [each(v, n) for v in (stride, pad, dilation, more)]
    single = x.ndim == n + 1
    x = x[None] if single else x
    if transposed:
        wide = [d * (k - 1) - p for d, k, p in zip(dilation, w.shape[2:], pad, strict=True)]
        i, o, *sizes = w.shape
        turned = np.swapaxes(np.reshape(w, (groups, i // groups, o, *sizes)), 1, 2)
        turned = np.flip(np.reshape(turned, (groups * o, i // groups, *sizes)), tuple(range(2, w.ndim)))
        ends = [(p, p + m) for p, m in zip(wide, more, strict=True)]
        y = convolved(x, turned, [1] * n, ends, stride, dilation, groups)
    else:
        y = convolved(x, w, stride, [(p, p) for p in pad], [1] * n, dilation, groups)
    y = y if b is None else y + np.reshape(b, (-1, *(1,) * n))
    return y[0] if single else y


def _ends(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> tuple[int, int]:
    """The padding before and behind an axis; behind so much that a last window that is cut off is whole."""
    if not ceil:
        return p, p
    count = -(-(n + 2 * p - d * (k - 1) - 1) // s) + 1
    count -= (count - 1) * s >= n + p  # a window begins inside, or in the padding before
    return p, max((count - 1) * s + d * (k - 1) + 1 - n - p, 0)


def _windows(x: Any, value: Any, kernel: Any, stride: Any, pad: Any, dilation: Any, ceil: bool, n: int) -> Any:
    """The windows of the last axes, side by side on axes behind."""
    kernel = each(kernel, n)
    stride, pad, dilation = each(stride, n) if len(each(stride, n)) else kernel, each(pad, n), each(dilation, n)
    axes = list(range(x.ndim - n, x.ndim))
    ends = [_ends(x.shape[a], *row, ceil) for a, *row in zip(axes, kernel, stride, pad, dilation, strict=True)]
    wide = padded(x, value, [(0, 0, 0)] * (x.ndim - n) + [(a, b, 0) for a, b in ends])
    cut = [  # what no window reaches
        slice(0, x.shape[a] + sum(end)) for a, end in zip(axes, ends, strict=True)
    ]
    return opened(wide[(..., *cut)], axes, kernel, stride, dilation)


@aten("windows, `np.argmax`, a gather", *[f"max_pool{n}d_with_indices" for n in (1, 2, 3)])
def _max_pool(
    e: Any, x: Any, kernel: Any, stride: Any = (), pad: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    n = int(e.name[8])
    how = kernel, stride, pad, dilation, ceil, n
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    found = _windows(x, np.asarray(low, x.dtype), *how)
    size = math.prod(x.shape[-n:])
    spots = _windows(np.reshape(np.arange(size), x.shape[-n:]), np.asarray(size), *how)
    flat = (*found.shape[: x.ndim], -1)
    found, spots = (
        np.reshape(found, flat),
        np.broadcast_to(np.reshape(spots, (*spots.shape[:n], -1)), np.reshape(found, flat).shape),
    )
    at = np.argmax(found, axis=-1)[..., None]
    return [np.take_along_axis(beside(v, at), at, axis=-1)[..., 0] for v in (found, spots)]


@aten("windows and `np.mean`", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    e: Any, x: Any, kernel: Any, stride: Any = (), pad: Any = 0, ceil: bool = False, inside: bool = True, by: Any = None
) -> Any:
    n = int(e.name[8])
    kernel = each(kernel, n)
    total = _windows(x, np.zeros((), x.dtype), kernel, stride, pad, 1, ceil, n)
    total = np.sum(total, axis=tuple(range(x.ndim, x.ndim + n)))
    if by is not None:
        return total / by
    # how many there are in each window, with or without the padding, without what `ceil` adds
    shape, pads = x.shape[-n:], each(pad, n)
    ones = np.ones(shape, x.dtype)
    if inside:
        ones = np.ones([m + 2 * p for m, p in zip(shape, pads, strict=True)], x.dtype)
        extra = [
            _ends(m, k, s, p, 1, ceil)[1] - p
            for m, k, s, p in zip(shape, kernel, each(stride, n) or kernel, pads, strict=True)
        ]
        ones = padded(ones, np.zeros((), x.dtype), [(0, max(m, 0), 0) for m in extra])
        count = opened(ones, range(n), kernel, each(stride, n) or kernel, [1] * n)
    else:
        count = _windows(ones, np.zeros((), x.dtype), kernel, stride, pad, 1, ceil, n)
    return total / np.sum(count, axis=tuple(range(n, 2 * n)))


def _cells(n: int, m: int) -> tuple[Any, Any]:
    """Where the m cells of n begin and end."""
    i = np.arange(m)
    return (i * n) // m, -((-(i + 1) * n) // m)


@aten("a matrix of averages along each axis", "adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def _adaptive_avg(e: Any, x: Any, sizes: Any) -> Any:
    for k, m in enumerate(reversed(list(sizes))):
        n, axis = x.shape[-1 - k], x.ndim - 1 - k
        if n % m == 0:
            x = np.mean(np.reshape(x, (*x.shape[:axis], m, n // m, *x.shape[axis + 1 :])), axis=axis + 1)
        else:
            a, b = _cells(n, m)
            j = np.arange(n)
            A = ((j >= a[:, None]) & (j < b[:, None])) / (b - a)[:, None]
            x = np.moveaxis(np.matmul(np.moveaxis(x, axis, -1), A.T.astype(x.dtype)), -1, axis)
    return x


@aten("gathers, `np.argmax`", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max(e: Any, x: Any, sizes: Any) -> Any:
    spots = np.broadcast_to(np.reshape(np.arange(math.prod(x.shape[-len(sizes) :])), x.shape[-len(sizes) :]), x.shape)
    for k, m in enumerate(reversed(list(sizes))):
        axis = x.ndim - 1 - k
        a, b = _cells(x.shape[axis], m)
        at = np.minimum(a[:, None] + np.arange((b - a).max()), (b - 1)[:, None])
        x, spots = [np.take(v, at, axis=axis) for v in (x, spots)]
        best = np.expand_dims(np.argmax(x, axis=axis + 1), axis + 1)
        x, spots = [np.squeeze(np.take_along_axis(beside(v, best), best, axis=axis + 1), axis + 1) for v in (x, spots)]
    return [x, spots]
