"""Indexing, gathers and scatters of PyTorch's: NumPy's indexing on traced arrays."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...functions.control.branches import stop_gradient
from ...tracing.trace import refuse
from ..lax.lax_registry import beside, is_traced
from ..lax.lax_shapes import along
from .aten_registry import aten
from .aten_shapes import whole, wrote


def _positions(index: Sequence[Any]) -> tuple[Any, ...]:
    """Indices as NumPy has them; masks whose places depend on the numbers have no shape that is known."""
    for i in index:
        if is_traced(i) and i.dtype.kind == "b":
            raise refuse("x[mask] has a length that depends on the numbers; write torch.where(mask, x, 0)")
    return tuple([slice(None) if i is None else i if is_traced(i) else np.asarray(i) for i in index])


@aten("`x[i, j]`", "index.Tensor", "_unsafe_index")
def _index(e: Any, x: Any, index: Sequence[Any]) -> Any:
    at = _positions(index)
    return beside(x, *at)[at]


@aten("`y[i] = u`, `np.add.at`", "index_put", "_unsafe_index_put")
def _index_put(e: Any, x: Any, index: Sequence[Any], u: Any, accumulate: bool = False) -> Any:
    if len(index) == 1 and is_traced(index[0]) and index[0].dtype.kind == "b" and np.size(u) == 1:
        mask = np.reshape(index[0], (*index[0].shape, *(1,) * (np.ndim(x) - index[0].ndim)))
        return np.where(mask, x + u if accumulate else u, x)
    at = _positions(index)
    return added(np.add, x, at, u) if accumulate else wrote(x, at, u)


@aten("`np.where` with the source in order", "masked_scatter")
def _masked_scatter(e: Any, x: Any, mask: Any, source: Any) -> Any:
    mask = np.broadcast_to(mask, np.shape(x))
    at = np.maximum(np.cumsum(np.reshape(mask, (-1,)).astype(int)) - 1, 0)
    rows = np.reshape(source, (-1,))
    return np.where(mask, np.reshape(np.take(beside(rows, at), at, axis=0), np.shape(x)), x)


def added(into: Any, x: Any, at: Any, u: Any) -> Any:
    """x with u added (multiplied, compared) at some places, each as often as it is named."""
    y = beside(whole(x), u, *at).copy()
    into.at(y, at, u)
    return y


@aten("`np.take`", "index_select")
def _index_select(e: Any, x: Any, dim: int, index: Any) -> Any:
    if not np.ndim(x):
        return x
    return np.take(beside(x, index), np.reshape(index, (-1,)), axis=dim)


@aten("`np.take` of the raveled array", "take")
def _take(e: Any, x: Any, index: Any) -> Any:
    return np.take(np.reshape(beside(x, index), (-1,)), index, axis=0)


@aten("`y[:, i] += a * u`", "index_add")
def _index_add(e: Any, x: Any, dim: int, index: Any, u: Any, *, alpha: Any = 1) -> Any:
    return added(np.add, x, along(np.ndim(x), dim % np.ndim(x), index), u if alpha == 1 else alpha * u)


@aten("`w[i]`; the row of the padding does not move", "embedding")
def _embedding(e: Any, w: Any, index: Any, padding: int = -1, scale: bool = False, sparse: bool = False) -> Any:
    found = np.take(beside(w, index), index, axis=0)
    if padding < 0:
        return found
    inside = np.equal(index, padding)
    return np.where(np.reshape(inside, (*np.shape(inside), 1)), stop_gradient(found), found)


@aten("`np.take_along_axis`", "gather")
def _gather(e: Any, x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    if not np.ndim(x):
        return np.reshape(x, np.shape(index))
    axis, shape = dim % np.ndim(x), np.shape(index)
    if not np.ndim(index):
        return np.take(beside(x, index), index, axis=0)
    parts = [slice(None) if i == axis or n == x.shape[i] else slice(0, n) for i, n in enumerate(shape)]
    x = x[tuple(parts)] if any([s != slice(None) for s in parts]) else x
    x = beside(x, index)
    return np.take_along_axis(x, beside(index, x) if is_traced(index) else np.asarray(index), axis=axis)


_FOLDS: dict[str, Any] = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "add": np.add}
_FOLDS["multiply"] = np.multiply


@aten("`y[i] = u` at the places of a gather, `np.add.at`, `np.multiply.at`, …", "scatter", "scatter_add")
@aten("`np.add.at`, `np.multiply.at`, `np.maximum.at`, `np.minimum.at`", "scatter_reduce.two")
def _scatter(e: Any, x: Any, dim: int, index: Any, u: Any, how: Any = None, *, reduce: Any = None, **named: Any) -> Any:
    how = "sum" if e.name == "scatter_add" else how or reduce
    if how == "mean" or named.get("include_self", True) is False:
        raise refuse("scatter_reduce is known for sum, prod, amax and amin with include_self=True")
    if not np.ndim(x):
        x, index, u = [np.reshape(v, (1,)) for v in (x, index, u)]
        return np.reshape(_scatter(e, x, 0, index, u, how), ())
    axis, shape = dim % np.ndim(x), np.shape(index)
    if np.ndim(u):
        u = u if np.shape(u) == shape else u[tuple([slice(0, n) for n in shape])]
    grid = np.ogrid[tuple([slice(0, n) for n in shape])]
    at = tuple([index if i == axis else g for i, g in enumerate(grid)])
    return wrote(x, at, u) if how is None else added(_FOLDS[how], x, at, u)


@aten("`np.searchsorted`", "searchsorted.Tensor", "bucketize")
def _searchsorted(e: Any, a: Any, b: Any, *, right: bool = False, side: Any = None, **named: Any) -> Any:
    edges, x = (a, b) if e.name == "searchsorted" else (b, a)
    if np.ndim(edges) != 1:
        raise refuse("torch.searchsorted is known for one row of edges")
    return np.searchsorted(edges, x, "right" if right or side == "right" else "left")
