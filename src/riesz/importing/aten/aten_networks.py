"""Layers of networks: norms, attention, recurrent layers, dropout."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special as sp

from ...functions.control.loops import loop
from ...tracing.rules.scipy_names import softmax
from ...tracing.trace import refuse
from .aten_registry import DRAWS, aten


def normalised(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """x with mean 0 and variance 1 along axes, the mean, and one over the deviation."""
    mean = np.mean(x, axis=axes, keepdims=True)
    away = x - mean
    rate = 1.0 / np.sqrt(np.mean(np.square(away), axis=axes, keepdims=True) + eps)
    return away * rate, mean, rate


def _scaled(x: Any, w: Any, b: Any, shape: Any) -> Any:
    x = x if w is None else x * np.reshape(w, shape)
    return x if b is None else x + np.reshape(b, shape)


@aten("`(x - mean) / np.sqrt(variance + eps)`, along the last axes", "layer_norm", "native_layer_norm")
def _layer_norm(e: Any, x: Any, shape: Any, w: Any = None, b: Any = None, eps: float = 1e-5, *rest: Any) -> Any:
    y, mean, rate = normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    y = _scaled(y, w, b, tuple(shape))
    return [y, mean, rate] if e.name == "native_layer_norm" else y


@aten("`x / np.sqrt(np.mean(x**2) + eps)`", "rms_norm")
def _rms_norm(e: Any, x: Any, shape: Any, w: Any = None, eps: Any = None) -> Any:
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = x / np.sqrt(np.mean(np.square(x), axis=axes, keepdims=True) + eps)
    return _scaled(y, w, None, tuple(shape))


@aten("`(x - mean) / np.sqrt(variance + eps)`, in groups of channels", "group_norm", "native_group_norm")
def _group_norm(e: Any, x: Any, *given: Any) -> Any:
    if e.name == "group_norm":
        groups, w, b, eps = given[:4]
    else:
        w, b, _, _, _, groups, eps = given
    shape = x.shape
    y, mean, rate = normalised(np.reshape(x, (shape[0], groups, -1)), (2,), eps)
    y = _scaled(np.reshape(y, shape), w, b, (shape[1], *(1,) * (x.ndim - 2)))
    return [y, *[np.reshape(v, (shape[0], groups)) for v in (mean, rate)]] if e.name == "native_group_norm" else y


_BATCH = "the statistics of the buffers, or of the batch where there are none"


@aten(_BATCH, "batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit.no_stats")
@aten(_BATCH, "_native_batch_norm_legit", "_native_batch_norm_legit_functional")
def _batch_norm(e: Any, x: Any, w: Any, b: Any, *given: Any) -> Any:
    old = [] if isinstance(given[0], bool) else [v for v in given[:2] if v is not None]
    training, _, eps = (
        (False, *given[2:4]) if e.name.endswith("no_training") else [v for v in given if v is not None][len(old) :][:3]
    )
    wide = (-1, *(1,) * (x.ndim - 2))
    if old and not training:
        y = (x - np.reshape(old[0], wide)) / np.sqrt(np.reshape(old[1], wide) + eps)
        y = _scaled(y, w, b, wide)
        return y if e.name == "batch_norm" else [y, np.zeros(0), np.zeros(0)]
    if old:
        raise refuse("batch statistics that are written to buffers")  # refused before, with the names of these
    y, mean, rate = normalised(x, (0, *range(2, x.ndim)), eps)
    y = _scaled(y, w, b, wide)
    return y if e.name == "batch_norm" else [y, np.reshape(mean, (-1,)), np.reshape(rate, (-1,))]


@aten("the array itself; refused where it draws", "dropout", "native_dropout", "feature_dropout", "alpha_dropout")
def _dropout(e: Any, x: Any, p: float, training: bool) -> Any:
    if training and p:
        raise refuse(f"{e.name} is not taken: {DRAWS}")
    return [x, np.ones(np.shape(x), bool)] if e.name == "native_dropout" else x


@aten("`softmax(q @ k.T / sqrt(d)) @ v`", "scaled_dot_product_attention")
def _attention(
    e: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    p: float = 0.0,
    causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    if p:
        raise refuse(f"dropout in attention is not taken: {DRAWS}")
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = [np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v)]
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * (float(q.shape[-1]) ** -0.5 if scale is None else scale)
    if causal:
        mask = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    if mask is None:
        return np.matmul(softmax(scores, axis=-1), v)
    if mask.dtype.kind != "b":
        return np.matmul(softmax(scores + mask, axis=-1), v)
    any_ = np.any(mask, axis=-1, keepdims=True)
    weights = softmax(np.where(np.logical_or(mask, np.logical_not(any_)), scores, -np.inf), axis=-1)
    return np.matmul(np.where(any_, weights, 0.0), v)


def _gates(x: Any, n: int) -> list[Any]:
    size = x.shape[-1] // n
    return [x[..., k * size : (k + 1) * size] for k in range(n)]


def _lstm_cell(x: Any, state: Any, u: Any, b: Any, out: Any) -> Any:
    h, c = state
    z = x + np.matmul(h, np.transpose(u))
    i, f, g, o = _gates(z if b is None else z + b, 4)
    c = sp.expit(f) * c + sp.expit(i) * np.tanh(g)
    h = sp.expit(o) * np.tanh(c)
    return h if out is None else np.matmul(h, np.transpose(out)), c


def _gru_cell(x: Any, state: Any, u: Any, b: Any, out: Any) -> Any:
    (h,) = state
    z = np.matmul(h, np.transpose(u))
    (r, i, n), (hr, hi, hn) = _gates(x, 3), _gates(z if b is None else z + b, 3)
    i = sp.expit(i + hi)
    return ((1 - i) * np.tanh(n + sp.expit(r + hr) * hn) + i * h,)


def _plain_cell(f: Any) -> Any:
    def cell(x: Any, state: Any, u: Any, b: Any, out: Any) -> Any:
        z = x + np.matmul(state[0], np.transpose(u))
        return (f(z if b is None else z + b),)

    return cell


_CELLS: dict[str, Any] = {"lstm": _lstm_cell, "gru": _gru_cell, "rnn_tanh": _plain_cell(np.tanh)}
_CELLS["rnn_relu"] = _plain_cell(lambda z: np.where(np.less_equal(z, 0), 0, z))


@aten("`rz.loop` over the rows of each layer and direction", *[f"{name}.input" for name in _CELLS])
def _recurrent(
    e: Any,
    x: Any,
    start: Any,
    weights: Sequence[Any],
    biased: bool,
    layers: int,
    p: float,
    training: bool,
    both: bool,
    batch_first: bool,
) -> Any:
    if training and p and layers > 1:
        raise refuse(f"dropout between recurrent layers is not taken: {DRAWS}")
    states = list(start) if isinstance(start, (list, tuple)) else [start]
    cell, ways = _CELLS[e.name], 2 if both else 1
    each = len(weights) // (layers * ways)
    x = np.swapaxes(x, 0, 1) if batch_first else x
    last: list[list[Any]] = []
    for layer in range(layers):
        found: list[Any] = []
        for way in range(ways):
            at = layer * ways + way
            w, u, *rest = weights[each * at : each * at + each]
            bias, back, out = rest[0] if biased else None, rest[1] if biased else None, rest[-1] if each % 2 else None
            rows = np.matmul(x, np.transpose(w))  # all rows at once, outside the loop
            rows = rows if bias is None else rows + bias

            def body(state: Any, row: Any, u: Any = u, b: Any = back, out: Any = out) -> Any:
                state = cell(row, state, u, b, out)
                return state, state[0]

            end, ys = loop(body, tuple([s[at] for s in states]), rows, length=x.shape[0], reverse=bool(way))
            last.append(list(end))
            found.append(ys)
        x = found[0] if ways == 1 else np.concatenate(found, -1)
    ends = [np.stack([s[k] for s in last]) for k in range(len(states))]
    return [np.swapaxes(x, 0, 1) if batch_first else x, *ends]


@aten("`(1 - y) * x + np.logaddexp(0, -x)`", "binary_cross_entropy_with_logits")
def _bce_logits(e: Any, x: Any, y: Any, weight: Any = None, positive: Any = None, reduction: int = 1) -> Any:
    soft = np.logaddexp(0.0, -x)
    found = (1 - y) * x + (soft if positive is None else (1 + (positive - 1) * y) * soft)
    found = found if weight is None else found * weight
    return (found, np.mean(found), np.sum(found))[reduction] if reduction else found
