"""scipy.ndimage: filters as padding and convolution; interpolation at coordinates as gathers and B-spline weights.

Padding and gathers are relations, weights are fixed unless they are traced: the derivative in the image is the same
operation on its differential. Splines are prefiltered by a tridiagonal solve along each axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import as_array, convert, holds_traced
from ..array_products import convolved
from ..gathering import take
from .interpolators import solve_banded
from .precision import double

_PADS: dict[str, Any] = {
    "reflect": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "constant": "constant",
    "grid-mirror": "symmetric",
    "grid-constant": "constant",
    "grid-wrap": "wrap",
}


def _typed_as(found: Any, given: Any, output: Any) -> Any:
    """A result in the type of the image; written into an array, where one is given."""
    given = as_array(given)
    if output is not None and hasattr(output, "shape"):
        output[...] = found
        return output
    kind = np.dtype(output) if output is not None else given.dtype if given.dtype.kind == "f" else None
    if kind is None or kind.kind != "f":
        raise refuse("scipy.ndimage rounds to whole numbers for images of integers; write image.astype(float)")
    return found if np.dtype(found.dtype) == kind else convert(found, kind)


def _padded(x: Any, widths: list[tuple[int, int]], mode: str, cval: float) -> Any:
    if mode not in _PADS:
        raise RuntimeError("boundary mode not supported")
    named: dict[str, Any] = {"constant_values": cval} if _PADS[mode] == "constant" else {}
    return np.pad(x, widths, mode=_PADS[mode], **named)


def _each(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * count


def _correlated(x: Any, weights: Any, axes: list[int], modes: list[str], cval: float, origins: list[int]) -> Any:
    """Σ wⱼ x[i + j − centre], with weights along some axes."""
    for size, axis, mode, origin in zip(np.shape(weights), axes, modes, origins, strict=True):
        before = size // 2 + origin
        if not 0 <= before < max(size, 1):
            raise ValueError("invalid origin")
        widths = [(0, 0)] * np.ndim(x)
        widths[axis] = (before, size - 1 - before)
        x = _padded(x, widths, mode, cval)
    shape = [1] * np.ndim(x)
    for size, axis in zip(np.shape(weights), axes, strict=True):
        shape[axis] = size
    kernel = np.flip(np.reshape(weights, shape))
    return convolved(x, kernel, "valid") if holds_traced((x, kernel)) else _by_scipy(x, kernel)


def _by_scipy(x: Any, kernel: Any) -> Any:
    from importlib import import_module

    return import_module("scipy.signal").convolve(x, kernel, "valid", method="direct")


def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """As scipy.ndimage.correlate1d."""
    x = double(input)
    return _typed_as(_correlated(x, double(weights), [axis % np.ndim(x)], [mode], cval, [origin]), input, output)


def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """As scipy.ndimage.convolve1d."""
    weights = np.flip(double(weights))
    return correlate1d(input, weights, axis, output, mode, cval, -origin - (1 - np.shape(weights)[0] % 2))


def _in_axes(x: Any, axes: Any) -> list[int]:
    return list(range(np.ndim(x))) if axes is None else [a % np.ndim(x) for a in _each(axes, 1)]


def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """As scipy.ndimage.correlate."""
    x, weights = double(input), double(weights)
    at = _in_axes(x, axes)
    found = _correlated(x, weights, at, _each(mode, len(at)), cval, _each(origin, len(at)))
    return _typed_as(found, input, output)


def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """As scipy.ndimage.convolve."""
    weights = np.flip(double(weights))
    origins = [-o - (1 - size % 2) for o, size in zip(_each(origin, np.ndim(weights)), np.shape(weights), strict=True)]
    return correlate(input, weights, output, mode, cval, origins, axes=axes)


def gaussian_kernel(sigma: Any, order: int, radius: int) -> Any:
    """The weights of a Gaussian, or of its derivative."""
    x = np.arange(-radius, radius + 1)
    phi = np.exp(-0.5 / (sigma * sigma) * x**2)
    phi = phi / np.sum(phi)
    if order == 0:
        return phi
    slope, curve = -x / (sigma * sigma), -1.0 / (sigma * sigma)
    before, q = np.ones(2 * radius + 1), slope  # derivatives of φ over φ: qₙ₊₁ = −x/σ²·qₙ − n/σ²·qₙ₋₁
    for n in range(1, order):
        before, q = q, slope * q + n * curve * before
    return q * phi


def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
) -> Any:
    """As scipy.ndimage.gaussian_filter1d."""
    if radius is None:
        if holds_traced(sigma):
            raise refuse(
                "scipy.ndimage.gaussian_filter with a traced sigma needs radius=…: how far it reaches is fixed"
            )
        radius = int(truncate * float(sigma) + 0.5)
    weights = np.flip(gaussian_kernel(double(sigma), order, int(radius)))
    return correlate1d(input, weights, axis, output, mode, cval)


def _one_by_one(x: Any, output: Any, axes: list[int], filtered: Callable[[Any, int], Any]) -> Any:
    found = double(x)
    for i in range(len(axes)):
        found = filtered(found, i)
    return _typed_as(found, x, output)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """As scipy.ndimage.gaussian_filter."""
    at = _in_axes(input, axes)
    widths, orders, modes, reach = [_each(v, len(at)) for v in (sigma, order, mode, radius)]

    def filtered(x: Any, i: int) -> Any:
        if not holds_traced(widths[i]) and widths[i] <= 1e-15:
            return x
        return gaussian_filter1d(x, widths[i], at[i], orders[i], None, modes[i], cval, truncate, radius=reach[i])

    return _one_by_one(input, output, at, filtered)


def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """As scipy.ndimage.uniform_filter1d."""
    return correlate1d(input, np.full(int(size), 1.0 / int(size)), axis, output, mode, cval, origin)


def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """As scipy.ndimage.uniform_filter."""
    at = _in_axes(input, axes)
    sizes, modes, origins = [_each(v, len(at)) for v in (size, mode, origin)]
    step = lambda x, i: uniform_filter1d(x, sizes[i], at[i], None, modes[i], cval, origins[i])  # noqa: E731
    return _one_by_one(input, output, at, step)


def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, *, axes: Any = None) -> Any:
    """As scipy.ndimage.laplace."""
    x, at = double(input), _in_axes(input, axes)
    modes = _each(mode, len(at))
    parts = [correlate1d(x, [1.0, -2.0, 1.0], a, None, m, cval) for a, m in zip(at, modes, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return _typed_as(total, input, output)


def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, **named: Any
) -> Any:
    """As scipy.ndimage.gaussian_laplace."""
    x, total = double(input), 0.0
    for axis in range(np.ndim(x)):
        order = [2 * (a == axis) for a in range(np.ndim(x))]
        total = total + gaussian_filter(x, sigma, order, None, mode, cval, **named)
    return _typed_as(total, input, output)


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: float = 0.0, **named: Any
) -> Any:
    """As scipy.ndimage.gaussian_gradient_magnitude."""
    x, total = double(input), 0.0
    for axis in range(np.ndim(x)):
        order = [int(a == axis) for a in range(np.ndim(x))]
        total = total + gaussian_filter(x, sigma, order, None, mode, cval, **named) ** 2
    return _typed_as(np.sqrt(total), input, output)


def _edges(across: list[float]) -> Callable[..., Any]:
    def edges(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: float = 0.0) -> Any:
        x = double(input)
        at, modes = axis % np.ndim(x), _each(mode, np.ndim(x))
        x = correlate1d(x, [-1.0, 0.0, 1.0], at, None, modes[at], cval)
        for a in range(np.ndim(x)):
            x = x if a == at else correlate1d(x, across, a, None, modes[a], cval)
        return _typed_as(x, input, output)

    return edges


# -- at coordinates ---------------------------------------------------------------------------------------


def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = None, mode: str = "mirror") -> Any:
    """As scipy.ndimage.spline_filter1d for cubic splines: the coefficients, by a tridiagonal solve."""
    x = double(input)
    if order in (0, 1):
        return x
    if order != 3 or mode not in ("mirror", "constant", "nearest", "reflect", "grid-mirror", "grid-constant"):
        raise refuse(
            f"scipy.ndimage splines of order {order} with mode={mode!r} are not known to riesz for traced arrays; "
            "there are orders 0, 1 and 3 with modes constant, nearest, mirror and reflect"
        )
    n = np.shape(x)[axis]
    if n < 2:
        return x
    if n < 12 and mode in ("reflect", "grid-mirror"):  # SciPy's coefficients are off by more than rounding there
        raise refuse(
            "scipy.ndimage splines with mode='reflect' are known to riesz from 12 pixels on; write mode='mirror'"
        )
    x = np.moveaxis(x, axis, 0)
    bands = np.full((3, n), 1.0 / 6.0)
    bands[1] = 4.0 / 6.0
    if mode in ("reflect", "grid-mirror"):
        bands[1, [0, -1]] = 5.0 / 6.0
    else:
        bands[0, 1] = bands[2, -2] = 2.0 / 6.0
    found = solve_banded((1, 1), bands, np.reshape(x, (n, -1)))
    return np.moveaxis(np.reshape(found, np.shape(x)), 0, axis)


def spline_filter(input: Any, order: int = 3, output: Any = None, mode: str = "mirror") -> Any:
    """As scipy.ndimage.spline_filter."""
    x = double(input)
    for axis in range(np.ndim(x)):
        x = spline_filter1d(x, order, axis, None, mode)
    return x


def _folded(at: Any, n: int, mode: str) -> Any:
    """Whole numbers of places, brought back into the image."""
    if mode in ("reflect", "grid-mirror"):
        at = np.mod(at, 2 * n)
        return np.where(at >= n, 2 * n - 1 - at, at)
    if mode in ("grid-wrap",):
        return np.mod(at, n)
    if n == 1:
        return 0 * at
    at = np.mod(at, 2 * (n - 1))
    return np.where(at >= n, 2 * (n - 1) - at, at)


def _turned(x: Any, n: int, mode: str) -> Any:
    """Coordinates, brought back into the image."""
    if mode == "nearest":
        return np.clip(x, 0.0, n - 1.0)
    if mode == "mirror" and n > 1:
        x = np.mod(x, 2.0 * (n - 1))
        return np.where(x > n - 1, 2.0 * (n - 1) - x, x)
    if mode in ("reflect", "grid-mirror"):
        x = np.mod(x + 0.5, 2.0 * n)
        return np.where(x > n, 2.0 * n - x, x) - 0.5
    if mode == "wrap" and n > 1:
        return np.where((x < 0) | (x > n - 1), np.mod(x, n - 1.0), x)
    return x


def _weights(x: Any, order: int) -> tuple[Any, list[Any]]:
    """The first place that counts, and B-spline weights from there on."""
    if order == 0:
        return np.floor(x + 0.5), [0.0 * x + 1.0]
    low = np.floor(x)
    t = x - low
    if order == 1:
        return low, [1.0 - t, t]
    u = 1.0 - t
    inner = [(4.0 - 6.0 * v * v + 3.0 * v * v * v) / 6.0 for v in (t, u)]
    return low - 1.0, [u * u * u / 6.0, *inner, t * t * t / 6.0]


def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """As scipy.ndimage.map_coordinates with orders 0, 1 and 3."""
    x, places = double(input), double(coordinates)
    if (
        order not in (0, 1, 3)
        or mode in ("grid-wrap", "grid-constant")
        or mode not in _PADS
        or (mode == "wrap" and order > 1)
    ):
        raise refuse(
            f"scipy.ndimage at coordinates with order={order} and mode={mode!r} is not known to riesz for traced "
            "arrays; there are orders 0, 1 and 3 with modes constant, nearest, mirror and reflect (wrap up to order 1)"
        )
    shape, pad = np.shape(x), 0
    if order > 1 and prefilter:
        if mode == "nearest":
            pad = 12
            x = np.pad(x, pad, mode="edge")
        x = spline_filter(x, order, None, mode)
    sizes = np.shape(x)
    inside, firsts, weights = True, [], []
    for d, size in enumerate(sizes):
        at = places[d]
        if mode == "constant":
            inside = inside & (at >= 0) & (at <= shape[d] - 1)
        at = _turned(at + pad, size, mode)
        first, parts = _weights(at, order)
        firsts.append(first.astype(int))
        weights.append(parts)
    flat, found = np.ravel(x), 0.0
    for steps in product(range(len(weights[0])), repeat=len(sizes)):
        place, weight = 0, 1.0
        for d, step in enumerate(steps):
            place = place * sizes[d] + _folded(firsts[d] + step, sizes[d], mode)
            weight = weight * weights[d][step]
        found = found + weight * (take(flat, place) if holds_traced((flat, place)) else flat[place])
    found = np.where(inside, found, cval) if mode == "constant" else found
    return _typed_as(found, input, output)


def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """As scipy.ndimage.affine_transform."""
    x, matrix = double(input), double(matrix)
    d = np.ndim(x)
    shape = np.shape(x) if output_shape is None else tuple(output_shape)
    if np.ndim(matrix) == 2 and np.shape(matrix)[1] == d + 1:
        matrix, offset = matrix[:d, :d], matrix[:d, d]
    grid = np.indices(shape, dtype=float).reshape(d, -1)
    moved = matrix @ grid if np.ndim(matrix) == 2 else matrix[:, None] * grid
    start = double(offset)
    moved = moved + (np.reshape(start, (-1, 1)) if np.ndim(start) else start)
    found = map_coordinates(x, np.reshape(moved, (d, *shape)), None, order, mode, cval, prefilter)
    return _typed_as(found, input, output)


def _at_points(input: Any, lines: list[Any], output: Any, options: tuple[Any, ...]) -> Any:
    """At the points of a grid that has these coordinates along its axes."""
    grid = np.stack(np.meshgrid(*lines, indexing="ij"))
    return _typed_as(map_coordinates(double(input), grid, None, *options), input, output)


def shift(
    input: Any,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """As scipy.ndimage.shift."""
    steps = [shift] * np.ndim(input) if np.ndim(shift) == 0 else [double(shift)[i] for i in range(np.ndim(input))]
    lines = [np.arange(float(n)) - s for n, s in zip(np.shape(input), steps, strict=True)]
    return _at_points(input, lines, output, (order, mode, cval, prefilter))


def zoom(
    input: Any,
    zoom: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Any:
    """As scipy.ndimage.zoom."""
    if grid_mode:
        raise refuse("scipy.ndimage.zoom with grid_mode=True is not known to riesz for traced arrays; leave it out")
    sizes = [round(n * z) for n, z in zip(np.shape(input), _each(zoom, np.ndim(input)), strict=True)]
    lines = [np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0) for n, m in zip(np.shape(input), sizes, strict=True)]
    return _at_points(
        input,
        [np.minimum(line, n - 1.0) for line, n in zip(lines, np.shape(input), strict=True)],
        output,
        (order, mode, cval, prefilter),
    )


def rotate(
    input: Any,
    angle: Any,
    axes: Any = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """As scipy.ndimage.rotate, of images with two axes."""
    x = double(input)
    if np.ndim(x) != 2:
        raise refuse("scipy.ndimage.rotate is known to riesz for images with two axes; np.stack those of others")
    if reshape and holds_traced(angle):
        raise refuse("scipy.ndimage.rotate by a traced angle needs reshape=False: the shape of the result is fixed")
    turn = double(angle) * (math.pi / 180.0)
    c, s = np.cos(turn), np.sin(turn)
    matrix = np.stack([np.stack([c, s]), np.stack([-s, c])])
    shape = np.array(np.shape(x))
    if reshape:
        n, m = shape
        corners = matrix @ np.array([[0, 0, n, n], [0, m, 0, m]])
        size = (np.ptp(corners, axis=1) + 0.5).astype(int)
    else:
        size = shape
    centre = (shape - 1) / 2.0 - matrix @ ((size - 1) / 2.0)
    return affine_transform(input, matrix, centre, tuple(size), output, order, mode, cval, prefilter)


_FILTER, _LINEAR = "padding and bilinear op convolution", "in the image the same on dx"
_SAMPLED, _SLOPES = (
    "a banded solve for order 3, gathers, products",
    "in the image the same on dx; in coordinates that of the spline",
)
_FILTERS = (correlate1d, convolve1d, correlate, convolve, gaussian_filter1d, gaussian_filter, uniform_filter1d)
_MORE = (uniform_filter, laplace, gaussian_laplace, gaussian_gradient_magnitude)
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    **{f.__name__: (f, _FILTER, _LINEAR) for f in (*_FILTERS, *_MORE)},
    "sobel": (_edges([1.0, 2.0, 1.0]), _FILTER, _LINEAR),
    "prewitt": (_edges([1.0, 1.0, 1.0]), _FILTER, _LINEAR),
    **{f.__name__: (f, "tridiagonal solves", _LINEAR) for f in (spline_filter1d, spline_filter)},
    **{f.__name__: (f, _SAMPLED, _SLOPES) for f in (map_coordinates, affine_transform, shift, zoom, rotate)},
}
