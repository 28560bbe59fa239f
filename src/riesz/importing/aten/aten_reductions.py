"""PyTorch's operations that reduce, accumulate and sort."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.rules.scipy_names import log_softmax, logsumexp, softmax
from ..lax.lax_registry import beside
from ..lax.lax_shapes import along
from .aten_elementwise import typed
from .aten_registry import aten
from .aten_shapes import axes_of, whole

_FOLDS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "nansum": np.nansum, "nanmean": np.nanmean}
_FOLDS |= {"amax": np.max, "amin": np.min, "any": np.any, "all": np.all}


def over(fold: Any, x: Any, dims: Any, keep: bool) -> Any:
    """A fold over axes; over all of them as NumPy writes it."""
    if not np.ndim(x):
        return fold(np.reshape(x, (1,)))
    axes = axes_of(x, dims)
    return fold(x, axis=None if len(axes) == np.ndim(x) else axes if len(axes) > 1 else axes[0], keepdims=keep)


@aten("`np.sum`, `np.mean`, `np.prod`, `np.max`, `np.min`, `np.any`, `np.all`, …", *_FOLDS)
def _fold(e: Any, x: Any, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    x = typed(dtype, whole(x))
    return over(
        _FOLDS[e.name], np.not_equal(x, 0) if e.name in ("any", "all") and x.dtype.kind != "b" else x, dims, keep
    )


@aten("`np.max`, `np.min`", "max.default", "min.default")
def _largest(e: Any, x: Any) -> Any:
    return over(np.max if e.name == "max" else np.min, x, None, False)


@aten("`np.argmax` or `np.argmin`, and a gather", "max.dim", "min.dim")
def _largest_at(e: Any, x: Any, dim: int, keep: bool = False) -> Any:
    if not np.ndim(x):
        return [x, np.zeros((), int)]
    at = (np.argmax if e.name == "max" else np.argmin)(x, axis=dim)
    at = np.expand_dims(at, dim)
    return [v if keep else np.squeeze(v, dim) for v in (picked(x, at, dim), at)]


def picked(x: Any, at: Any, axis: int) -> Any:
    """The entries of x at computed places along an axis."""
    return np.take_along_axis(beside(x, at), at, axis=axis)


@aten("`np.argmax`, `np.argmin`", "argmax", "argmin")
def _argmax(e: Any, x: Any, dim: Any = None, keep: bool = False) -> Any:
    return getattr(np, e.name)(x, axis=dim, keepdims=keep) if np.ndim(x) else np.zeros((), int)


@aten("`np.var`, its root, and the mean", "var", "std", "var_mean", "std_mean")
def _variance(
    e: Any, x: Any, dims: Any = None, keep: Any = False, third: Any = None, *, correction: Any = None, **named: Any
) -> Any:
    if isinstance(dims, bool):  # var(x, unbiased)
        dims, keep, correction = None, False, float(dims)
    elif isinstance(third, bool):  # var(x, dims, unbiased, keepdim)
        keep, correction = third, float(keep)
    keep, off = named.get("keepdim", keep), 1.0 if correction is None else correction
    axes = axes_of(x, dims)
    n = int(np.prod([np.shape(x)[a] for a in axes]))
    mean = over(np.mean, x, dims, True)
    found = over(np.sum, np.square(x - mean), dims, keep) / max(n - off, 0)
    found = np.sqrt(found) if e.name.startswith("std") else found
    return [found, mean if keep else np.reshape(mean, np.shape(found))] if e.name.endswith("mean") else found


_RUNNING: dict[str, Any] = {"cumsum": np.cumsum, "cumprod": np.cumprod, "logcumsumexp": np.logaddexp.accumulate}


@aten("`np.cumsum`, `np.cumprod`, `np.logaddexp.accumulate`", *_RUNNING)
def _running(e: Any, x: Any, dim: int, *, dtype: Any = None) -> Any:
    x = typed(dtype, whole(x))
    return _RUNNING[e.name](x, axis=dim) if np.ndim(x) else x


@aten("the last place of the largest (smallest) so far, and a gather", "cummax", "cummin")
def _extreme(e: Any, x: Any, dim: int) -> Any:
    best = (np.maximum if e.name == "cummax" else np.minimum).accumulate(x, axis=dim)
    count = np.reshape(np.arange(x.shape[dim]), [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)])
    at = np.maximum.accumulate(np.where(np.equal(x, best), count, 0), axis=dim)
    return [picked(x, at, dim), at]


@aten("`np.argsort` and gathers", "sort", "argsort", "topk", "kthvalue", "median.dim", "msort")
def _sort(e: Any, x: Any, *given: Any, **named: Any) -> Any:
    dim, descending, count = -1, False, None
    match e.name:
        case "sort" | "argsort":
            rest = [v for v in given if not isinstance(v, bool)]
            flags = [v for v in given if isinstance(v, bool)]
            dim, descending = named.get("dim", rest[0] if rest else -1), named.get("descending", (flags or [False])[-1])
        case "topk":
            count, dim, descending = given[0], *given[1:3]
        case "msort":
            dim = 0
        case _:
            dim = given[1] if e.name == "kthvalue" else given[0]
    if not np.ndim(x):
        return np.zeros((), int) if e.name == "argsort" else x if e.name == "msort" else [x, np.zeros((), int)]
    order = np.argsort(-x if descending else x, axis=dim, kind="stable")
    axis = dim % np.ndim(x)
    if e.name in ("kthvalue", "median"):
        place = given[0] - 1 if e.name == "kthvalue" else (x.shape[axis] - 1) // 2
        at = order[along(x.ndim, axis, slice(place, place + 1))]
        return [v if given[-1] else np.squeeze(v, axis) for v in (picked(x, at, axis), at)]
    at = order if count is None else order[along(x.ndim, axis, slice(0, count))]
    if e.name == "argsort":
        return at
    return picked(x, at, axis) if e.name == "msort" else [picked(x, at, axis), at]


@aten("`np.sort` and the one in the middle", "median.default")
def _median(e: Any, x: Any) -> Any:
    return np.sort(np.reshape(x, (-1,)))[(np.size(x) - 1) // 2]


@aten("`scipy.special.logsumexp`", "logsumexp")
def _logsumexp(e: Any, x: Any, dims: Any, keep: bool = False) -> Any:
    return logsumexp(x, axis=axes_of(x, dims), keepdims=keep) if np.ndim(x) else x


@aten("`scipy.special.softmax`, `log_softmax`", "softmax.int", "_softmax", "log_softmax.int", "_log_softmax")
def _softmax(e: Any, x: Any, dim: int, *rest: Any) -> Any:
    if rest and rest[0] is not None and not isinstance(rest[0], bool):
        x = typed(rest[0], x)
    f = log_softmax if "log" in e.name else softmax
    return f(x, axis=dim) if np.ndim(x) else np.reshape(f(np.reshape(x, (1,))), ())


@aten("a norm of the difference", "dist")
def _dist(e: Any, x: Any, y: Any, p: Any = 2) -> Any:
    return _norm(e, x - y, p)


@aten("a norm along axes", "linalg_vector_norm", "norm")
def _norm(e: Any, x: Any, order: Any = 2, dims: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    x, order = typed(dtype, whole(x)), 2.0 if order is None else float(order)
    axes = axes_of(x, dims)
    if order == 2 and len(axes) <= 1 and np.ndim(x):
        return np.linalg.norm(x, axis=axes[0], keepdims=keep)
    if order == np.inf or order == -np.inf:
        return over(np.max if order > 0 else np.min, np.abs(x), axes, keep)
    if order == 0:
        return over(np.sum, np.not_equal(x, 0).astype(x.dtype), axes, keep)
    if order == 1:
        return over(np.sum, np.abs(x), axes, keep)
    if order == 2:
        flat = (*range(np.ndim(x) - len(axes)), -1)
        rest = [i for i in range(np.ndim(x)) if i not in axes]
        turned = np.transpose(x, (*rest, *axes))
        found = np.linalg.norm(np.reshape(turned, (*[np.shape(x)[i] for i in rest], -1)), axis=flat[-1])
        kept = [1 if i in axes else n for i, n in enumerate(np.shape(x))]
        return np.reshape(found, kept) if keep else found
    return over(np.sum, np.abs(x) ** order, axes, keep) ** (1 / order)
