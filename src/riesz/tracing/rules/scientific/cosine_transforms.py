"""Cosine and sine transforms of scipy.fft, by Fourier transforms of twice the length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...trace import refuse
from .precision import as_given, double


def _padded(x: Any, n: int) -> Any:
    """x cut or filled with zeros to a length along the last axis."""
    have = np.shape(x)[-1]
    return x[..., :n] if n <= have else np.pad(x, [*[(0, 0)] * (np.ndim(x) - 1), (0, n - have)])


def _turned(x: Any, angles: Any, n: int) -> Any:
    """Σ xⱼ exp(i·anglesⱼ − 2πi·jk/2n), k < n."""
    wide = _padded(x * np.cos(angles), 2 * n) + 1j * _padded(x * np.sin(angles), 2 * n)
    return np.fft.fft(wide)[..., :n]


def _cosine(x: Any, kind: int) -> Any:
    """The transform along the last axis, not normalised."""
    n = np.shape(x)[-1]
    k = np.arange(n)
    if kind == 1:
        return np.fft.rfft(np.concatenate([x, x[..., -2:0:-1]], axis=-1)).real
    if kind == 2:
        z = _turned(x, 0.0 * k, n)
        return 2.0 * (np.cos(np.pi * k / (2 * n)) * z.real + np.sin(np.pi * k / (2 * n)) * z.imag)
    if kind == 3:
        weights = np.where(k == 0, 1.0, 2.0)
        return _turned(x * weights, -np.pi * k / (2 * n), n).real
    z, half = _turned(x, -np.pi * k / (2 * n), n), np.pi * (2 * k + 1) / (4 * n)
    return 2.0 * (np.cos(half) * z.real + np.sin(half) * z.imag)


def _sine(x: Any, kind: int) -> Any:
    n = np.shape(x)[-1]
    signs = np.where(np.arange(n) % 2, -1.0, 1.0)
    if kind == 1:
        zero = np.zeros((*np.shape(x)[:-1], 1))
        return -np.fft.rfft(np.concatenate([zero, x, zero, -np.flip(x, -1)], axis=-1)).imag[..., 1 : n + 1]
    if kind == 2:
        return np.flip(_cosine(signs * x, 2), -1)
    return signs * _cosine(np.flip(x, -1), kind)


def _ends(n: int, kind: int, sine: bool, after: bool) -> Any:
    """What orthogonal transforms multiply the ends with, before and after."""
    found = np.ones(n)
    at = -1 if sine else 0
    root = math.sqrt(0.5) if after else math.sqrt(2.0)
    if kind == 1 and not sine:
        found[[0, -1]] = root
    elif kind == (2 if after else 3):
        found[at] = root
    return found


def _transform(sine: bool, inverse: bool) -> Any:
    name = ("i" if inverse else "") + ("dst" if sine else "dct")

    def code(
        x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        if type not in (1, 2, 3, 4):
            raise ValueError(f"{name} type must be 1, 2, 3 or 4; got {type!r}")
        if norm not in (None, "backward", "forward", "ortho"):
            raise ValueError(f'Invalid norm value {norm!r}; should be "backward", "ortho" or "forward".')
        y = np.moveaxis(double(x), axis, -1)
        y = y if n is None else _padded(y, n)
        m = np.shape(y)[-1]
        length = 2 * (m + (1 if sine else -1) if type == 1 else m)
        kind = {2: 3, 3: 2}.get(type, type) if inverse else type
        ways = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}[norm or "backward"]
        scale = length ** -(1.0 - ways if inverse else ways)
        found = _ortho(y, kind, sine, norm == "ortho" if orthogonalize is None else orthogonalize)
        return as_given(np.moveaxis(scale * found, -1, axis), x, least=np.float32)

    code.__name__ = code.__qualname__ = name
    return code


def _ortho(y: Any, kind: int, sine: bool, wanted: bool) -> Any:
    transform = _sine if sine else _cosine
    if not wanted:
        return transform(y, kind)
    m = np.shape(y)[-1]
    return _ends(m, kind, sine, True) * transform(_ends(m, kind, sine, False) * y, kind)


def _over_axes(one: Any) -> Any:
    def code(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: bool = False,
        workers: Any = None, *, orthogonalize: Any = None,
    ) -> Any:  # fmt: skip
        if np.ndim(x) == 0:
            raise refuse(
                f"scipy.fft.{one.__name__}n of a number is not known to riesz for traced arrays; np.reshape it"
            )
        chosen = range(np.ndim(x))[-len(s) if s is not None else 0 :] if axes is None else axes
        places = [chosen] if isinstance(chosen, int) else list(chosen)
        sizes = [None] * len(places) if s is None else [s] if isinstance(s, int) else list(s)
        for axis, n in zip(places, sizes, strict=True):
            x = one(x, type, n, axis, norm, orthogonalize=orthogonalize)
        return x

    return code


_SINGLE = [_transform(sine, inverse) for sine in (False, True) for inverse in (False, True)]
_WHAT = ("Fourier transforms", "the same of dx")
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    **{f.__name__: (f, *_WHAT) for f in _SINGLE},
    **{f"{f.__name__}n": (_over_axes(f), *_WHAT) for f in _SINGLE},
}
