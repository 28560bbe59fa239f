"""PyTorch's operations that rearrange."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracing.trace import refuse
from ..lax.lax_registry import beside, is_traced
from ..lax.lax_shapes import along, padded
from .aten_registry import REFUSED, aten

REFUSED["as_strided"] = "it speaks of places in memory; write the view with slices, reshape, permute or unfold"


def axes_of(x: Any, dims: Any) -> tuple[int, ...]:
    """Axes from the front; all where none are given."""
    ndim = np.ndim(x)
    if dims is None or (not isinstance(dims, int) and not len(dims)):
        return tuple(range(ndim))
    return tuple([d % ndim if ndim else 0 for d in ([dims] if isinstance(dims, int) else dims)])


def whole(x: Any) -> Any:
    """A plain array as an array, so that it has axes."""
    return x if is_traced(x) else np.asarray(x)


@aten("`np.reshape`", "view", "reshape", "_unsafe_view", "_reshape_alias", "view.default")
def _view(e: Any, x: Any, shape: Any) -> Any:
    return np.reshape(x, tuple(shape))


@aten("`np.reshape`", "squeeze", "unsqueeze")
def _squeeze(e: Any, x: Any, dims: Any = None) -> Any:
    shape = list(np.shape(x))
    if e.name == "unsqueeze":
        shape.insert(dims % (len(shape) + 1), 1)
    else:
        gone = axes_of(x, dims) if shape else ()
        shape = [n for i, n in enumerate(shape) if n != 1 or i not in gone]
    return np.reshape(x, tuple(shape))


@aten("`np.transpose`", "permute", "t", "numpy_T", "transpose.int")
def _permute(e: Any, x: Any, *order: Any) -> Any:
    ndim = np.ndim(x)
    if e.name == "transpose":
        return np.swapaxes(x, *order) if ndim else x
    due = axes_of(x, order[0]) if order else tuple(range(ndim))[::-1]
    return x if due == tuple(range(ndim)) else np.transpose(x, due)


@aten("`np.broadcast_to`", "expand", "broadcast_to")
def _expand(e: Any, x: Any, shape: Any, implicit: bool = False) -> Any:
    own = (*(1,) * (len(shape) - np.ndim(x)), *np.shape(x))
    due = tuple([n if k == -1 else k for n, k in zip(own, shape, strict=True)])
    return x if due == np.shape(x) else np.broadcast_to(x, due)


@aten("`np.tile`", "repeat")
def _repeat(e: Any, x: Any, counts: Any) -> Any:
    return np.tile(x, tuple(counts))


@aten("`np.repeat`", "repeat_interleave.self_int")
def _repeat_each(e: Any, x: Any, count: int, dim: Any = None, **named: Any) -> Any:
    return np.repeat(x, count, axis=dim)


@aten("`np.concatenate`", "cat")
def _cat(e: Any, xs: Sequence[Any], dim: int = 0) -> Any:
    xs = [whole(x) for x in xs]
    kept = [x for x in xs if np.shape(x) != (0,)] or xs[:1]  # PyTorch leaves out empty ones of any rank
    return np.concatenate(kept, dim) if len(kept) > 1 else kept[0]


@aten("`np.stack`", "stack")
def _stack(e: Any, xs: Sequence[Any], dim: int = 0) -> Any:
    return np.stack([whole(x) for x in xs], dim)


@aten("`np.flip`", "flip")
def _flip(e: Any, x: Any, dims: Any) -> Any:
    return np.flip(x, axes_of(x, dims)) if len(dims) else x


@aten("`np.roll`", "roll")
def _roll(e: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    return np.roll(x, tuple(shifts), tuple(dims)) if dims else np.roll(x, shifts[0])


@aten("`np.tril`, `np.triu`", "tril", "triu")
def _triangle(e: Any, x: Any, k: int = 0) -> Any:
    return getattr(np, e.name)(x, k)


@aten("`np.diagonal`", "diagonal")
def _diagonal(e: Any, x: Any, offset: int = 0, a: int = 0, b: int = 1) -> Any:
    return np.diagonal(x, offset, a, b)


@aten("a slice", "select.int", "slice.Tensor")
def _slice(e: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if e.name == "select":
        return x[along(x.ndim, dim % x.ndim, _number(start))]
    return x[along(x.ndim, dim % x.ndim, _part(x, dim, start, end, step))]


def _number(n: Any) -> Any:
    return n if is_traced(n) else int(n)


def _part(x: Any, dim: int, start: Any, end: Any, step: int) -> slice:
    """The slice, None where it is the whole axis."""
    a, b, c = slice(start, end, step).indices(x.shape[dim])
    return slice(None) if (a, b, c) == (0, x.shape[dim], 1) else slice(a, max(a, b), c)


@aten("writing to a slice", "select_scatter", "slice_scatter", "diagonal_scatter")
def _write(e: Any, x: Any, u: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    if e.name == "diagonal_scatter":
        offset, a, b = dim, 0 if start is None else start, 1 if end is None else end
        places = np.arange(np.size(x)).reshape(x.shape)
        where: Any = np.unravel_index(np.diagonal(places, offset, a, b), x.shape)
    elif e.name == "select_scatter":
        where = along(x.ndim, dim % x.ndim, _number(start))
    else:
        where = along(x.ndim, dim % x.ndim, _part(x, dim, start, end, step))
    return wrote(x, where, u)


def wrote(x: Any, where: Any, u: Any) -> Any:
    """x with u at some places; either may be traced."""
    y = beside(whole(x), u, *where).copy()
    y[where] = u
    return y


@aten("`np.split`: slices", "split_with_sizes", "split.Tensor", "split.sizes", "unbind", "chunk")
def _split(e: Any, x: Any, sizes: Any = 0, dim: int = 0) -> Any:
    if e.name == "unbind":
        axis = sizes % x.ndim
        return [x[along(x.ndim, axis, i)] for i in range(x.shape[axis])]
    axis = dim % x.ndim
    n = x.shape[axis]
    if e.name == "chunk":
        sizes = max(-(-n // sizes), 1)
    if isinstance(sizes, int):
        sizes = [min(sizes, n - k) for k in range(0, n, sizes)] or [0]
    ends = np.cumsum(sizes).tolist()
    return [x[along(x.ndim, axis, slice(b - k, b))] for k, b in zip(sizes, ends, strict=True)]


@aten("`np.pad`", "constant_pad_nd")
def _pad(e: Any, x: Any, widths: Sequence[int], value: Any = 0) -> Any:
    ends = [(widths[2 * k], widths[2 * k + 1]) for k in range(len(widths) // 2)]
    config = [(0, 0, 0)] * (np.ndim(x) - len(ends)) + [(a, b, 0) for a, b in reversed(ends)]
    return padded(x, value, config)


_EDGES = {"reflection": "reflect", "replication": "edge", "circular": "wrap"}


@aten("`np.take` at reflected, clipped or wrapped places", *[f"{e}_pad{d}d" for e in _EDGES for d in (1, 2, 3)])
def _edge_pad(e: Any, x: Any, widths: Sequence[int]) -> Any:
    mode = _EDGES[e.name.split("_")[0]]
    for k in range(len(widths) // 2):
        axis, (a, b) = x.ndim - 1 - k, widths[2 * k : 2 * k + 2]
        if a or b:
            places = np.pad(np.arange(x.shape[axis]), (max(a, 0), max(b, 0)), mode)
            x = np.take(x, places[max(-a, 0) : len(places) - max(-b, 0)], axis=axis)
    return x


@aten("windows", "unfold")
def _unfold(e: Any, x: Any, dim: int, size: int, step: int) -> Any:
    if not np.ndim(x):
        return np.reshape(x, (1,))
    axis = dim % x.ndim
    found = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return found if step == 1 else found[along(found.ndim, axis, slice(None, None, step))]


@aten(
    "nothing",
    "_assert_tensor_metadata",
    "_assert_scalar",
    "_assert_async",
    "_linalg_check_errors",
    "sym_constrain_range",
)
def _nothing(e: Any, *args: Any, **named: Any) -> Any:
    return None


@aten("its length", "sym_size", "size", "sym_numel", "numel")
def _size(e: Any, x: Any, dim: Any = None) -> Any:
    if "numel" in e.name:
        return int(np.prod(np.shape(x)))
    return np.shape(x) if dim is None else np.shape(x)[dim]


@aten("`np.reshape` and `np.transpose`", "pixel_shuffle")
def _pixel_shuffle(e: Any, x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise refuse(f"pixel_shuffle of {c} channels by {r}")
    k = len(lead)
    x = np.reshape(x, (*lead, c // (r * r), r, r, h, w))
    x = np.transpose(x, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return np.reshape(x, (*lead, c // (r * r), h * r, w * r))
