"""Filters that choose by rank, of scipy.ndimage and scipy.signal: maximum, minimum, median, percentiles of windows.

A window is a gather; what is chosen of it has the derivative 1, equal numbers share it as np.max and np.sort have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import as_array, convert
from .images import in_axes, padded, per_axis
from .precision import double


def _footprint(ndim: int, size: Any, footprint: Any, axes: list[int]) -> Any:
    """Which places of a window count, with an axis for each of the image's."""
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        shape = [1] * ndim
        for axis, n in zip(axes, per_axis(size, len(axes)), strict=True):
            shape[axis] = int(n)
        return np.ones(shape, bool)
    mask = np.asarray(footprint, bool)
    if mask.ndim != len(axes):
        raise RuntimeError("footprint array has incorrect shape.")
    return np.expand_dims(mask, tuple([k for k in range(ndim) if k not in axes]))


def _windows(x: Any, mask: Any, modes: list[str], cval: float, origins: list[int], axes: list[int]) -> Any:
    """The numbers of each window in a last axis."""
    for axis, mode, origin in zip(axes, modes, origins, strict=True):
        n = mask.shape[axis]
        before = n // 2 + origin
        if not 0 <= before < max(n, 1):
            raise ValueError("invalid origin")
        widths = [(0, 0)] * np.ndim(x)
        widths[axis] = (before, n - 1 - before)
        x = padded(x, widths, mode, cval)
    shape = [n - m + 1 for n, m in zip(np.shape(x), mask.shape, strict=True)]
    places = np.argwhere(mask)
    return np.stack([x[tuple([slice(p, p + n) for p, n in zip(at, shape, strict=True)])] for at in places], axis=-1)


def _filtered(
    chosen: Any, input: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: float, origin: Any, axes: Any
) -> Any:
    x, given = double(input), as_array(input)
    along = in_axes(x, axes)
    mask = _footprint(np.ndim(x), size, footprint, along)
    count = len(along)
    modes, origins = per_axis(mode, count), [int(k) for k in per_axis(origin, count)]
    found = chosen(_windows(x, mask, modes, cval, origins, along))
    if output is not None and hasattr(output, "shape"):
        output[...] = found
        return output
    kind = given.dtype if output is None else np.dtype(output)
    return found if np.dtype(found.dtype) == kind else convert(found, kind)


def _ranked(rank: int) -> Any:
    return lambda w: np.sort(w, axis=-1)[..., rank]


def _median(w: Any) -> Any:
    return np.sort(w, axis=-1)[..., np.shape(w)[-1] // 2]


def _extreme(f: Any, name: str) -> Any:
    def code(
        input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
        cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        chosen = lambda w: f(w, axis=-1)  # noqa: E731
        return _filtered(chosen, input, size, footprint, output, mode, cval, origin, axes)

    code.__name__ = code.__qualname__ = name
    return code


def _extreme_along(f: Any, name: str) -> Any:
    def code(
        input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: float = 0.0,
        origin: int = 0,
    ) -> Any:  # fmt: skip
        chosen = lambda w: f(w, axis=-1)  # noqa: E731
        return _filtered(chosen, input, size, None, output, mode, cval, origin, (axis,))

    code.__name__ = code.__qualname__ = name
    return code


def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """As scipy.ndimage.median_filter."""
    return _filtered(_median, input, size, footprint, output, mode, cval, origin, axes)


def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """As scipy.ndimage.rank_filter."""
    return _filtered(_ranked(rank), input, size, footprint, output, mode, cval, origin, axes)


def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """As scipy.ndimage.percentile_filter: a rank, not an interpolation."""
    part = percentile + 100.0 if percentile < 0 else percentile

    def chosen(w: Any) -> Any:
        n = np.shape(w)[-1]
        return _ranked(n - 1 if part == 100.0 else int(n * part / 100.0))(w)

    return _filtered(chosen, input, size, footprint, output, mode, cval, origin, axes)


def _morphology(name: str, f: Any, sign: int) -> Any:
    def code(
        input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
        mode: Any = "reflect", cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
    ) -> Any:  # fmt: skip
        if structure is not None or origin != 0 or np.any([n % 2 == 0 for n in per_axis(size or 1, 1)]):
            raise refuse(f"scipy.ndimage.{name} with structure, origin or an even size is not known for traced arrays")
        turned = footprint if footprint is None or sign < 0 else np.flip(np.asarray(footprint))
        chosen = lambda w: f(w, axis=-1)  # noqa: E731
        return _filtered(chosen, input, size, turned, output, mode, cval, 0, axes)

    code.__name__ = code.__qualname__ = name
    return code


# -- scipy.signal ---------------------------------------------------------------------------------------------------


def _odd(kernel_size: Any, ndim: int) -> list[int]:
    sizes = [int(n) for n in per_axis(3 if kernel_size is None else kernel_size, ndim)]
    if any([n % 2 == 0 for n in sizes]):
        raise ValueError("Each element of kernel_size should be odd.")
    return sizes


def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """As scipy.signal.medfilt: zeros outside."""
    x = np.atleast_1d(volume)
    return _filtered(_median, x, _odd(kernel_size, np.ndim(x)), None, None, "constant", 0.0, 0, None)


def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """As scipy.signal.order_filter: zeros outside."""
    mask = np.asarray(domain) != 0
    return _filtered(_ranked(rank), a, None, mask, None, "constant", 0.0, 0, None)


_CHOSEN, _RULE = "gathers of windows, and a choice by rank", "dx of what is chosen; equal numbers share"
_EXTREMES = (("maximum", np.max), ("minimum", np.min))
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    **{f"{name}_filter": (_extreme(f, f"{name}_filter"), _CHOSEN, _RULE) for name, f in _EXTREMES},
    **{f"{name}_filter1d": (_extreme_along(f, f"{name}_filter1d"), _CHOSEN, _RULE) for name, f in _EXTREMES},
    **{f.__name__: (f, _CHOSEN, _RULE) for f in (median_filter, rank_filter, percentile_filter)},
    "grey_erosion": (_morphology("grey_erosion", np.min, -1), _CHOSEN, _RULE),
    "grey_dilation": (_morphology("grey_dilation", np.max, 1), _CHOSEN, _RULE),
}
SIGNAL: dict[str, tuple[Any, str, str]] = {
    **{f.__name__: (f, _CHOSEN, _RULE) for f in (medfilt, order_filter)},
    "medfilt2d": (medfilt, _CHOSEN, _RULE),
}
