"""Filters of scipy.signal. A recursive filter is a convolution and the solution of a banded triangular system, so that
it is linear in its data and can be differentiated in its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import holds_traced
from ..array_products import RULE, convolved
from .interpolators import solve_banded
from .precision import as_given, double


def along(x: Any, weights: Any, mode: str = "full") -> Any:
    """The convolution with weights along the first axis."""
    if not np.shape(x)[0]:
        return x
    kernel = np.reshape(weights, (-1, *(1,) * (np.ndim(x) - 1)))
    return convolved(x, kernel, mode) if holds_traced((x, kernel)) else _plain_convolution(x, kernel, mode)


def _plain_convolution(x: Any, kernel: Any, mode: str) -> Any:
    from importlib import import_module

    return import_module("scipy.signal").convolve(x, kernel, mode, method="direct")


def _normalised(b: Any, a: Any) -> tuple[Any, Any]:
    """Coefficients of the same length, with a[0] = 1."""
    b, a = [np.atleast_1d(double(v)) for v in (b, a)]
    if np.ndim(b) != 1 or np.ndim(a) != 1:
        raise ValueError("object of too small depth for desired array")
    if not holds_traced(a):
        if a[0] == 0:
            raise ValueError("The first element of `a` cannot be 0.")
        if a[0] != 1.0:
            b, a = b / a[0], a / a[0]
    else:
        b, a = b / a[0], a / a[0]
    n = max(np.shape(a)[0], np.shape(b)[0])
    return tuple([np.concatenate([v, np.zeros(n - np.shape(v)[0])]) for v in (b, a)])  # pyright: ignore[reportReturnType]


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """As scipy.signal.lfilter: Σ aₖ y[n−k] = Σ bₖ x[n−k]."""
    given = b, a, x, zi
    b, a = _normalised(b, a)
    x = np.moveaxis(double(x), axis, 0)
    n, order, more = np.shape(x)[0], np.shape(b)[0] - 1, np.ndim(x) - 1
    right = along(x, b)[:n]
    state = None if zi is None else np.moveaxis(double(zi), axis, 0)
    if state is not None:
        state = np.broadcast_to(state, (order, *np.shape(x)[1:]))
        first = min(order, n)
        right = np.concatenate([right[:first] + state[:first], right[first:]])
    recursive = holds_traced(a) or a[1:].any()
    y = _recursive(a, right) if recursive and n else right
    found = as_given(np.moveaxis(y, 0, axis), *given)
    if state is None:
        return found
    parts = []
    for i in range(order):  # what the last inputs and outputs leave for later
        ks = np.arange(i + 1, order + 1)
        ks = ks[n - ks + i >= 0]
        wide = (-1, *(1,) * more)
        used = np.reshape(b[ks], wide) * x[n - ks + i] - np.reshape(a[ks], wide) * y[n - ks + i]
        parts.append(np.sum(used, axis=0) + (state[i + n] if i + n < order else 0.0))
    return found, as_given(np.moveaxis(np.stack(parts) if parts else state, 0, axis), *given)


def _recursive(a: Any, right: Any) -> Any:
    """y with Σ aₖ y[n−k] = right[n]."""
    n, width = np.shape(right)[0], min(np.shape(a)[0], np.shape(right)[0])
    bands = np.broadcast_to(a[:width, None], (width, n))
    flat = np.reshape(right, (n, -1))
    return np.reshape(solve_banded((width - 1, 0), bands, flat), np.shape(right))


def lfilter_zi(b: Any, a: Any) -> Any:
    """The state in which a step gives a step."""
    given = b, a
    b, a = _normalised(b, a)
    n = np.shape(a)[0] - 1
    companion = np.concatenate([-a[1:][:, None], np.eye(n)[:, : n - 1]], axis=1)
    return as_given(np.linalg.solve(np.eye(n) - companion, b[1:] - a[1:] * b[0]), *given)


def _sections(sos: Any) -> list[tuple[Any, Any]]:
    sos = double(sos)
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    return [(sos[i, :3], sos[i, 3:]) for i in range(np.shape(sos)[0])]


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """As scipy.signal.sosfilt: one section after the other."""
    after = []
    for i, (b, a) in enumerate(_sections(sos)):
        x = lfilter(b, a, x, axis, None if zi is None else double(zi)[i])
        if zi is not None:
            x, state = x
            after.append(state)
    return x if zi is None else (x, np.stack(after))


def sosfilt_zi(sos: Any) -> Any:
    """The states in which a step gives a step."""
    scale, found = 1.0, []
    for b, a in _sections(sos):
        found.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return as_given(np.stack(found), sos)


def _extended(x: Any, axis: int, padtype: Any, edge: int) -> Any:
    n = np.shape(x)[axis]
    if edge <= 0 or padtype is None:
        return x
    if n <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    x = np.moveaxis(x, axis, 0)
    if padtype == "constant":
        left, right = [np.broadcast_to(v, (edge, *np.shape(x)[1:])) for v in (x[:1], x[-1:])]
    else:
        left, right = x[edge:0:-1], x[-2 : -(edge + 2) : -1]
        left, right = (2.0 * x[:1] - left, 2.0 * x[-1:] - right) if padtype == "odd" else (left, right)
    return np.moveaxis(np.concatenate([left, x, right]), 0, axis)


def _both_ways(run: Any, state: Any, x: Any, axis: int, padtype: Any, edge: int) -> Any:
    """Forward and backward, beginning in the state of a constant."""
    ext = np.moveaxis(_extended(double(x), axis, padtype, edge), axis, 0)
    for _ in range(2):
        start = np.reshape(state, (*np.shape(state), *(1,) * (np.ndim(ext) - 1))) * ext[:1]
        ext = np.flip(run(ext, start)[0], 0)
    n = np.shape(ext)[0]
    return np.moveaxis(ext[edge : n - edge] if edge > 0 else ext, 0, axis)


def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """As scipy.signal.filtfilt with method='pad'."""
    if method != "pad":
        raise refuse(
            "scipy.signal.filtfilt with method='gust' is not known to riesz for traced arrays; leave method out"
        )
    longest = max(np.size(b), np.size(a))
    edge = 0 if padtype is None else 3 * longest if padlen is None else padlen
    found = _both_ways(lambda x, zi: lfilter(b, a, x, 0, zi), lfilter_zi(b, a), x, axis, padtype, edge)
    return as_given(found, b, a, x)


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """As scipy.signal.sosfiltfilt."""
    if holds_traced(sos) and padlen is None:
        raise refuse(
            "scipy.signal.sosfiltfilt with traced sections needs padlen=…: the usual one depends on their zeros"
        )
    count = np.shape(sos)[0]
    if padlen is None:
        taps = 2 * count + 1 - min(int((np.asarray(sos)[:, 2] == 0).sum()), int((np.asarray(sos)[:, 5] == 0).sum()))
        padlen = 3 * taps
    edge = 0 if padtype is None else padlen
    found = _both_ways(lambda x, zi: sosfilt(sos, x, 0, zi), sosfilt_zi(sos), x, axis, padtype, edge)
    return as_given(found, sos, x)


def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Any:
    """As scipy.signal.savgol_filter: fixed weights, at the ends those of a fit to the outermost window."""
    from importlib import import_module

    weights = import_module("scipy.signal").savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        from .images import convolve1d

        return convolve1d(x, weights, axis, mode, cval, 0)
    x, given = np.moveaxis(double(x), axis, 0), x
    n, half = np.shape(x)[0], window_length // 2
    if window_length > n:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    at = np.arange(window_length)
    fit = np.linalg.pinv(np.vander(at, polyorder + 1, increasing=True))
    powers = np.arange(polyorder + 1)
    falling = np.prod([powers - i for i in range(deriv)], axis=0) if deriv else np.ones(polyorder + 1)
    edge = falling * at[:, None] ** np.maximum(powers - deriv, 0.0) @ fit / delta**deriv
    flat = np.reshape(x, (n, -1))
    middle = np.reshape(along(x, weights, "valid"), (n - window_length + 1, -1))
    ends = edge[:half] @ flat[:window_length], edge[window_length - half :] @ flat[n - window_length :]
    middle = middle if window_length % 2 else middle[: n - 2 * half]
    return as_given(np.moveaxis(np.reshape(np.concatenate([ends[0], middle, ends[1]]), np.shape(x)), 0, axis), given)


def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """As scipy.signal.hilbert: the analytic signal."""
    x = as_given(double(x), x)
    n = np.shape(x)[axis] if N is None else int(N)
    h = np.zeros(n)
    h[0] = 1.0
    h[1 : (n + 1) // 2] = 2.0
    if n % 2 == 0:
        h[n // 2] = 1.0
    shape = [1] * np.ndim(x)
    shape[axis] = n
    return np.fft.ifft(np.fft.fft(x, n, axis=axis) * np.reshape(h, shape).astype(x.dtype), axis=axis)


def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """As scipy.signal.resample of real data in time."""
    if t is not None or window is not None or domain != "time":
        raise refuse(
            "scipy.signal.resample with t, window or domain is not known to riesz for traced arrays; write np.fft"
        )
    x, given = np.moveaxis(double(x), axis, -1), x
    n = np.shape(x)[-1]
    spectrum, m = np.fft.rfft(x), min(num, n)
    scale = np.zeros(num // 2 + 1)
    scale[: m // 2 + 1] = num / n
    if m % 2 == 0 and num != n:
        scale[m // 2] *= 2.0 if num < n else 0.5
    width = num // 2 + 1 - np.shape(spectrum)[-1]
    real, imaginary = [
        np.pad(part, [*[(0, 0)] * (np.ndim(x) - 1), (0, width)]) if width > 0 else part[..., : num // 2 + 1]
        for part in (spectrum.real, spectrum.imag)
    ]
    return as_given(np.moveaxis(np.fft.irfft((real + 1j * imaginary) * scale, num), -1, axis), given)


def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: float = 0) -> Any:
    """As scipy.signal.upfirdn, zero outside."""
    if mode != "constant" or cval:
        raise refuse("scipy.signal.upfirdn with mode or cval is not known to riesz for traced arrays; np.pad first")
    x, given = np.moveaxis(double(x), axis, 0), x
    n = np.shape(x)[0]
    if up > 1:
        apart = np.concatenate([x[:, None], np.zeros((n, up - 1, *np.shape(x)[1:]))], axis=1)
        x = np.reshape(apart, (n * up, *np.shape(x)[1:]))[: (n - 1) * up + 1]
    return as_given(np.moveaxis(along(x, double(h))[::down], 0, axis), h, given)


_BANDED, _LINEAR = (
    "bilinear op convolution, and a banded solve",
    "in x the same on dx; in coefficients that of the solve",
)
_WEIGHTS = "bilinear op convolution with fixed weights"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    **{f.__name__: (f, _BANDED, _LINEAR) for f in (lfilter, filtfilt, sosfilt, sosfiltfilt)},
    **{f.__name__: (f, "a solve", "that of the solve") for f in (lfilter_zi, sosfilt_zi)},
    **{f.__name__: (f, _WEIGHTS, RULE) for f in (savgol_filter, upfirdn)},
    **{f.__name__: (f, "Fourier transforms", "the same on dx") for f in (hilbert, resample)},
}
