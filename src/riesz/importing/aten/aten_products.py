"""Products and Fourier transforms of PyTorch's."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .aten_registry import aten


@aten("`np.matmul`", "matmul", "mm", "bmm", "mv", "dot", "vdot")
def _matmul(e: Any, x: Any, y: Any) -> Any:
    return np.matmul(x, y)


@aten("`x @ w.T + b`", "linear")
def _linear(e: Any, x: Any, w: Any, b: Any = None) -> Any:
    y = np.matmul(x, np.transpose(w))
    return y if b is None else y + b


@aten("`b * z + a * (x @ y)`", "addmm", "addmv", "baddbmm")
def _addmm(e: Any, z: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    found = np.matmul(x, y)
    found = found if alpha == 1 else alpha * found
    return found if beta == 0 else found + (z if beta == 1 else beta * z)


@aten("`np.einsum`", "einsum")
def _einsum(e: Any, text: str, xs: Sequence[Any], path: Any = None) -> Any:
    return np.einsum(text.replace(" ", ""), *xs)


@aten("a product of three, summed along axes", "_trilinear")
def _trilinear(e: Any, x: Any, y: Any, z: Any, *given: Any) -> Any:
    x, y, z = [np.expand_dims(v, tuple(axes)) for v, axes in zip((x, y, z), given, strict=False)]
    text = "abcdefg"[: x.ndim]
    shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
    parts = ["".join([c for c, n, m in zip(text, v.shape, shape, strict=True) if n == m]) for v in (x, y, z)]
    whole = [np.reshape(v, [n for n, m in zip(v.shape, shape, strict=True) if n == m]) for v in (x, y, z)]
    return np.einsum(f"{','.join(parts)}->{''.join([c for i, c in enumerate(text) if i not in given[3]])}", *whole)


@aten("`np.outer`", "outer", "ger")
def _outer(e: Any, x: Any, y: Any) -> Any:
    return np.outer(x, y)


@aten("`np.kron`", "kron")
def _kron(e: Any, x: Any, y: Any) -> Any:
    return np.kron(x, y)


@aten("`np.tensordot`", "tensordot")
def _tensordot(e: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
    return np.tensordot(x, y, (tuple(a), tuple(b)))


@aten("`np.cross`", "linalg_cross")
def _cross(e: Any, x: Any, y: Any, dim: int = -1) -> Any:
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    return np.cross(np.broadcast_to(x, shape), np.broadcast_to(y, shape), axis=dim)


@aten("`np.trace`", "trace")
def _trace(e: Any, x: Any) -> Any:
    return np.trace(x)


@aten("distances by a contraction or by differences", "_cdist_forward", "cdist")
def _cdist(e: Any, x: Any, y: Any, p: float = 2.0, mode: Any = None) -> Any:
    gap = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == np.inf:
        return np.max(gap, axis=-1)
    return np.linalg.norm(gap, axis=-1) if p == 2 else np.sum(gap**p, axis=-1) ** (1 / p)


_NORMS = {0: "backward", 1: "ortho", 2: "forward"}


@aten("`np.fft.fftn`, `ifftn`, `rfftn`, `irfftn`", "_fft_c2c", "_fft_r2c", "_fft_c2r")
def _fft(e: Any, x: Any, dims: Sequence[int], norm: int, last: Any) -> Any:
    axes = tuple(dims)
    if e.name == "_fft_c2c":
        norms = _NORMS if last else {0: "forward", 1: "ortho", 2: "backward"}
        return (np.fft.fftn if last else np.fft.ifftn)(x, axes=axes, norm=norms[norm])
    if e.name == "_fft_r2c":
        return (np.fft.rfftn if last else np.fft.fftn)(x, axes=axes, norm=_NORMS[norm])
    lengths = [np.shape(x)[a] for a in axes[:-1]]
    norms = {0: "forward", 1: "ortho", 2: "backward"}
    return np.fft.irfftn(x, s=(*lengths, last), axes=axes, norm=norms[norm])
