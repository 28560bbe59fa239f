"""Counterparts of scipy.signal's convolutions, in any number of axes, and of its spectra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..trace import refuse
from ..traced import convert, is_complex, result_dtype, tidy
from .array_products import RULE, convolved
from .complex.complex_arrays import multilinear
from .scientific.filters import COUNTERPARTS as FILTERS


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """As scipy.signal.convolve."""
    a, v = tidy(in1), tidy(in2)
    n, m = np.shape(a), np.shape(v)
    if len(n) != len(m):
        raise ValueError(f"convolve takes two arrays with as many axes; got {len(n)} and {len(m)}")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve mode is 'full', 'same' or 'valid'; got {mode!r}")
    if not n:
        return a * v
    if mode == "valid" and not all([i >= j for i, j in zip(n, m, strict=True)]):
        if not all([i <= j for i, j in zip(n, m, strict=True)]):
            raise ValueError(
                f"for mode 'valid' one array must be at least as large as the other along every axis; got {n} and {m}"
            )
        a, v, n, m = v, a, m, n
    if 0 in n or 0 in m:
        return np.zeros([0 if mode != "same" else i for i in n])
    if is_complex((a, v)):
        return multilinear(lambda x, y: convolved(x, y, mode), a, v)
    kind = result_dtype([a, v])[0]
    found = convolved(a, v, mode)
    return found if kind.kind == "f" or method == "fft" else convert(found, kind)  # whole numbers stay whole


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """As scipy.signal.correlate."""
    return convolve(in1, np.conj(np.flip(tidy(in2))), mode, method)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """As scipy.signal.fftconvolve and oaconvolve, along all axes."""
    if axes is not None:
        raise refuse(
            "scipy.signal.fftconvolve and oaconvolve with axes=… are not known to riesz for traced arrays; write "
            "np.fft.rfft, * and np.fft.irfft"
        )
    a, v = [convert(x, np.dtype(np.float32)) if x.dtype == np.float16 else x for x in (tidy(in1), tidy(in2))]
    return convolve(a, v, mode, "fft")


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """As scipy.signal.convolve2d, zero outside."""
    if boundary != "fill" or np.any(fillvalue):
        raise refuse(
            "scipy.signal.convolve2d with boundary=… or fillvalue=… is not known to riesz for traced arrays; np.pad "
            "first, and mode='valid'"
        )
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"convolve2d takes arrays of two axes; got {np.ndim(in1)} and {np.ndim(in2)}")
    return convolve(in1, in2, mode)


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """As scipy.signal.correlate2d, zero outside; the middle of a kernel of even length is the later one."""
    full = "full" if mode == "same" else mode
    found = convolve2d(in1, np.conj(np.flip(tidy(in2))), full, boundary, fillvalue)
    size = zip(np.shape(in1), np.shape(in2), strict=True)
    return found[tuple([slice(m // 2, m // 2 + n) for n, m in size])] if mode == "same" else found


# -- spectra ----------------------------------------------------------------------------------------------


def csd(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None, nfft: Any = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density", axis: int = -1,
    average: str = "mean", name: str = "csd",
) -> Any:  # fmt: skip
    """As scipy.signal.csd: the mean over segments of conj(X)·Y, X and Y the transforms of windowed segments."""
    x, y = (tidy(x),) * 2 if y is x else (tidy(x), tidy(y))
    if is_complex((x, y)) or average != "mean" or scaling not in ("density", "spectrum"):
        raise refuse(f"scipy.signal.{name} is known to riesz for real traced arrays and average='mean'")
    if not x.size or not y.size:
        return np.zeros(np.shape(x)), np.zeros(np.shape(x))
    alone = y is x
    x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    n = max(np.shape(x)[-1], np.shape(y)[-1])
    kind = np.result_type(x.dtype, y.dtype, np.float32)
    x, y = [_longer(v if v.dtype == kind else convert(v, kind), n) for v in (x, y)]
    signal = import_module("scipy.signal")
    if isinstance(window, (str, tuple)):
        nperseg = min(n, 256 if nperseg is None else int(nperseg))
        w = signal.get_window(window, nperseg)
    else:
        w = np.asarray(window, float)
        nperseg = len(w)
    nfft = nperseg if nfft is None else int(nfft)
    skip = nperseg - (nperseg // 2 if noverlap is None else int(noverlap))
    if skip <= 0 or nfft < nperseg or nperseg > n:
        raise ValueError(f"nperseg={nperseg}, noverlap={noverlap}, nfft={nfft} do not fit a signal of length {n}")
    at = np.arange(0, n - nperseg + 1, skip)[:, None] + np.arange(nperseg)
    sides = [_segments(v, at, w.astype(kind), detrend, nfft, return_onesided) for v in ((x,) if alone else (x, y))]
    spectrum = np.conj(sides[0]) * sides[-1]
    scale = 1.0 / (fs * np.sum(w * w)) if scaling == "density" else 1.0 / np.sum(w) ** 2
    if return_onesided:
        scale = scale * np.full(nfft // 2 + 1, 2.0)
        scale[[0, -1] if nfft % 2 == 0 else [0]] /= 2.0
    found = np.mean(spectrum * np.asarray(scale, kind), axis=-2)
    frequencies = np.fft.rfftfreq(nfft, 1.0 / fs) if return_onesided else np.fft.fftfreq(nfft, 1.0 / fs)
    return frequencies, np.moveaxis(found, -1, axis)


def _longer(x: Any, n: int) -> Any:
    """Zeros up to a length, along the last axis."""
    short = n - np.shape(x)[-1]
    return np.concatenate([x, np.zeros((*np.shape(x)[:-1], short))], axis=-1) if short else x


def _segments(x: Any, at: Any, w: Any, detrend: Any, nfft: int, onesided: bool) -> Any:
    """The transforms of windowed segments."""
    parts = x[..., at]
    if callable(detrend):
        parts = detrend(parts)
    elif detrend == "constant":
        parts = parts - np.mean(parts, axis=-1, keepdims=True)
    elif detrend == "linear":
        line = np.linspace(-1.0, 1.0, np.shape(at)[1], dtype=parts.dtype)
        slope = np.sum(parts * line, axis=-1, keepdims=True) / np.sum(line * line)
        parts = parts - np.mean(parts, axis=-1, keepdims=True) - slope * line
    elif detrend:
        raise ValueError(f"Invalid trend type {detrend!r}")
    return (np.fft.rfft if onesided else np.fft.fft)(parts * w, n=nfft, axis=-1)


def welch(x: Any, *args: Any, **named: Any) -> Any:
    """As scipy.signal.welch."""
    x = tidy(x)
    frequencies, found = csd(x, x, *args, **named, name="welch")
    return frequencies, np.real(found)


def periodogram(
    x: Any, fs: float = 1.0, window: Any = "boxcar", nfft: Any = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1,
) -> Any:  # fmt: skip
    """As scipy.signal.periodogram: one segment."""
    x = tidy(x)
    if not x.size:
        return np.zeros(np.shape(x)), np.zeros(np.shape(x))
    n = np.shape(x)[axis] if nfft is None else int(nfft)
    x = np.moveaxis(np.moveaxis(x, axis, -1)[..., :n], -1, axis)
    window = import_module("scipy.signal").get_window("boxcar" if window is None else window, np.shape(x)[axis])
    return welch(x, fs, window, None, 0, nfft, detrend, return_onesided, scaling, axis)


def coherence(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: Any = None, noverlap: Any = None, nfft: Any = None,
    detrend: Any = "constant", axis: int = -1,
) -> Any:  # fmt: skip
    """As scipy.signal.coherence: |Pxy|² / (Pxx Pyy)."""
    options = (fs, window, nperseg, noverlap, nfft, detrend)
    frequencies, xx = welch(x, *options, axis=axis)
    across = csd(x, y, *options, axis=axis, name="coherence")[1]
    return frequencies, (np.real(across) ** 2 + np.imag(across) ** 2) / xx / welch(y, *options, axis=axis)[1]


_SPECTRUM = ("Fourier transforms of windowed segments, a mean of products", "that of the products")
_WHAT = "relational reductions and bilinear op convolution"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "convolve": (convolve, _WHAT, RULE),
    "correlate": (correlate, _WHAT, RULE),
    "fftconvolve": (fftconvolve, _WHAT, RULE),
    "oaconvolve": (fftconvolve, _WHAT, RULE),
    "convolve2d": (convolve2d, _WHAT, RULE),
    "correlate2d": (correlate2d, _WHAT, RULE),
    "csd": (csd, *_SPECTRUM),
    "welch": (welch, *_SPECTRUM),
    "periodogram": (periodogram, *_SPECTRUM),
    "coherence": (coherence, *_SPECTRUM),
    **FILTERS,
}
