"""Counterparts of scipy.signal's convolutions, in any number of axes."""

from __future__ import annotations

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


_WHAT = "relational reductions and bilinear op convolution"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "convolve": (convolve, _WHAT, RULE),
    "correlate": (correlate, _WHAT, RULE),
    "fftconvolve": (fftconvolve, _WHAT, RULE),
    "oaconvolve": (fftconvolve, _WHAT, RULE),
    "convolve2d": (convolve2d, _WHAT, RULE),
    "correlate2d": (correlate2d, _WHAT, RULE),
    **FILTERS,
}
