"""scipy.ndimage: filters as padding and convolution; interpolation at coordinates as gathers and B-spline weights.

Padding and gathers are relations, weights are fixed unless they are traced: the derivative in the image is the same
operation on its differential. Splines are prefiltered by a tridiagonal solve along each axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce, wraps
from itertools import product
from operator import add
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


def padded(x: Any, widths: list[tuple[int, int]], mode: str, cval: float) -> Any:
    """An image with more at its ends, by SciPy's modes."""
    if mode not in _PADS:
        raise RuntimeError("boundary mode not supported")
    named: dict[str, Any] = {"constant_values": cval} if _PADS[mode] == "constant" else {}
    return np.pad(x, widths) if not np.size(x) else np.pad(x, widths, mode=_PADS[mode], **named)


def per_axis(value: Any, count: int) -> list[Any]:
    """One value for each axis."""
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * count


def _correlated(x: Any, weights: Any, axes: list[int], modes: list[str], cval: float, origins: list[int]) -> Any:
    """Σ wⱼ x[i + j − centre], with weights along some axes."""
    given = x
    for size, axis, mode, origin in zip(np.shape(weights), axes, modes, origins, strict=True):
        before = size // 2 + origin
        if not 0 <= before < max(size, 1):
            raise ValueError("invalid origin")
        widths = [(0, 0)] * np.ndim(x)
        widths[axis] = (before, size - 1 - before)
        x = padded(x, widths, mode, cval)
    if not np.size(given):
        return given
    shape = [1] * np.ndim(x)
    for size, axis in zip(np.shape(weights), axes, strict=True):
        shape[axis] = size
    kernel = np.flip(np.reshape(weights, shape))
    return convolved(x, kernel, "valid") if holds_traced((x, kernel)) else _by_scipy(x, kernel)


def _by_scipy(x: Any, kernel: Any) -> Any:
    from importlib import import_module

    return import_module("scipy.signal").convolve(x, kernel, "valid", method="direct")


def _of_image(code: Callable[..., Any]) -> Any:
    """A function of an image, in double precision; its result has the type of the image, or goes to `output`. It is
    called as SciPy's is and hears of all its other arguments (`registry.as_called`)."""

    @wraps(code)
    def rule(input: Any, *args: Any, output: Any = None, **named: Any) -> Any:
        return _typed_as(code(double(input), *args, **named), input, output)

    return rule


@_of_image
def correlate1d(input: Any, weights: Any, axis: int, mode: str, cval: float, origin: int = 0) -> Any:
    """As scipy.ndimage.correlate1d."""
    return _correlated(input, double(weights), [axis % np.ndim(input)], [mode], cval, [origin])


@_of_image
def convolve1d(input: Any, weights: Any, axis: int, mode: str, cval: float, origin: int) -> Any:
    """As scipy.ndimage.convolve1d."""
    weights = np.flip(double(weights))
    return correlate1d(input, weights, axis, mode, cval, -origin - (1 - np.shape(weights)[0] % 2))


def in_axes(x: Any, axes: Any) -> list[int]:
    """Which axes are filtered: all of them, where nothing is said."""
    return list(range(np.ndim(x))) if axes is None else [a % np.ndim(x) for a in per_axis(axes, 1)]


@_of_image
def correlate(input: Any, weights: Any, mode: Any, cval: float, origin: Any, axes: Any) -> Any:
    """As scipy.ndimage.correlate."""
    at = in_axes(input, axes)
    return _correlated(input, double(weights), at, per_axis(mode, len(at)), cval, per_axis(origin, len(at)))


@_of_image
def convolve(input: Any, weights: Any, mode: Any, cval: float, origin: Any, axes: Any) -> Any:
    """As scipy.ndimage.convolve."""
    weights = np.flip(double(weights))
    origins = [
        -o - (1 - size % 2) for o, size in zip(per_axis(origin, np.ndim(weights)), np.shape(weights), strict=True)
    ]
    return correlate(input, weights, mode, cval, origins, axes)


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


@_of_image
def gaussian_filter1d(
    input: Any, sigma: Any, axis: int, order: int, mode: str, cval: float, truncate: float, radius: Any
) -> Any:
    """As scipy.ndimage.gaussian_filter1d."""
    if radius is None:
        if holds_traced(sigma):
            raise refuse(
                "scipy.ndimage.gaussian_filter with a traced sigma needs radius=…: how far it reaches is fixed"
            )
        radius = int(truncate * float(sigma) + 0.5)
    return correlate1d(input, np.flip(gaussian_kernel(double(sigma), order, int(radius))), axis, mode, cval)


@_of_image
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any,
    mode: Any,
    cval: float,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """As scipy.ndimage.gaussian_filter."""
    at = in_axes(input, axes)
    for axis, width, *rest, reach in zip(
        at, *[per_axis(v, len(at)) for v in (sigma, order, mode, radius)], strict=True
    ):
        if holds_traced(width) or width > 1e-15:
            input = gaussian_filter1d(input, width, axis, *rest, cval, truncate, reach)
    return input


@_of_image
def uniform_filter1d(input: Any, size: int, axis: int, mode: str, cval: float, origin: int) -> Any:
    """As scipy.ndimage.uniform_filter1d."""
    return correlate1d(input, np.full(int(size), 1.0 / int(size)), axis, mode, cval, origin)


@_of_image
def uniform_filter(input: Any, size: Any, mode: Any, cval: float, origin: Any, axes: Any) -> Any:
    """As scipy.ndimage.uniform_filter."""
    at = in_axes(input, axes)
    for axis, n, way, start in zip(at, *[per_axis(v, len(at)) for v in (size, mode, origin)], strict=True):
        input = uniform_filter1d(input, n, axis, way, cval, start)
    return input


@_of_image
def laplace(input: Any, mode: Any, cval: float, axes: Any) -> Any:
    """As scipy.ndimage.laplace."""
    at = in_axes(input, axes)
    ways = zip(at, per_axis(mode, len(at)), strict=True)
    return reduce(add, [correlate1d(input, [1.0, -2.0, 1.0], axis, way, cval) for axis, way in ways])


def _derivatives(x: Any, n: int, sigma: Any, mode: Any, cval: float, named: Any) -> list[Any]:
    """Derivatives of order n of a smoothed image, one for each axis."""
    orders = n * np.eye(np.ndim(x), dtype=int)
    return [gaussian_filter(x, sigma, order.tolist(), mode, cval, **named) for order in orders]


@_of_image
def gaussian_laplace(input: Any, sigma: Any, mode: Any, cval: float, **named: Any) -> Any:
    """As scipy.ndimage.gaussian_laplace."""
    return reduce(add, _derivatives(input, 2, sigma, mode, cval, named))


@_of_image
def gaussian_gradient_magnitude(input: Any, sigma: Any, mode: Any, cval: float, **named: Any) -> Any:
    """As scipy.ndimage.gaussian_gradient_magnitude."""
    return np.sqrt(reduce(add, [part**2 for part in _derivatives(input, 1, sigma, mode, cval, named)]))


def _edges(across: list[float]) -> Callable[..., Any]:
    @_of_image
    def edges(input: Any, axis: int, mode: Any, cval: float) -> Any:
        at, modes = axis % np.ndim(input), per_axis(mode, np.ndim(input))
        x = correlate1d(input, [-1.0, 0.0, 1.0], at, modes[at], cval)
        for a in range(np.ndim(x)):
            x = x if a == at else correlate1d(x, across, a, modes[a], cval)
        return x

    return edges


# -- at coordinates ---------------------------------------------------------------------------------------


def spline_filter1d(input: Any, order: int, axis: int, output: Any, mode: str) -> Any:
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


def spline_filter(input: Any, order: int, output: Any, mode: str) -> Any:
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


@_of_image
def map_coordinates(input: Any, coordinates: Any, order: int, mode: str, cval: float, prefilter: bool) -> Any:
    """As scipy.ndimage.map_coordinates with orders 0, 1 and 3."""
    x, places = input, double(coordinates)
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
    return np.where(inside, found, cval) if mode == "constant" else found


@_of_image
def affine_transform(
    input: Any, matrix: Any, offset: Any, output_shape: Any, order: int, mode: str, cval: float, prefilter: bool
) -> Any:
    """As scipy.ndimage.affine_transform."""
    x, matrix = input, double(matrix)
    d = np.ndim(x)
    shape = np.shape(x) if output_shape is None else tuple(output_shape)
    if np.ndim(matrix) == 2 and np.shape(matrix)[1] == d + 1:
        matrix, offset = matrix[:d, :d], matrix[:d, d]
    grid = np.indices(shape, dtype=float).reshape(d, -1)
    moved = matrix @ grid if np.ndim(matrix) == 2 else matrix[:, None] * grid
    start = double(offset)
    moved = moved + (np.reshape(start, (-1, 1)) if np.ndim(start) else start)
    return map_coordinates(x, np.reshape(moved, (d, *shape)), order, mode, cval, prefilter)


def _at_points(input: Any, lines: list[Any], *options: Any) -> Any:
    """At the points of a grid that has these coordinates along its axes."""
    return map_coordinates(input, np.stack(np.meshgrid(*lines, indexing="ij")), *options)


@_of_image
def shift(input: Any, shift: Any, order: int, mode: str, cval: float, prefilter: bool) -> Any:
    """As scipy.ndimage.shift."""
    steps = [shift] * np.ndim(input) if np.ndim(shift) == 0 else [double(shift)[i] for i in range(np.ndim(input))]
    lines = [np.arange(float(n)) - s for n, s in zip(np.shape(input), steps, strict=True)]
    return _at_points(input, lines, order, mode, cval, prefilter)


@_of_image
def zoom(input: Any, zoom: Any, order: int, mode: str, cval: float, prefilter: bool, grid_mode: bool) -> Any:
    """As scipy.ndimage.zoom."""
    if grid_mode:
        raise refuse("scipy.ndimage.zoom with grid_mode=True is not known to riesz for traced arrays; leave it out")
    sizes = [round(n * z) for n, z in zip(np.shape(input), per_axis(zoom, np.ndim(input)), strict=True)]
    lines = [np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 1.0) for n, m in zip(np.shape(input), sizes, strict=True)]
    inside = [np.minimum(line, n - 1.0) for line, n in zip(lines, np.shape(input), strict=True)]
    return _at_points(input, inside, order, mode, cval, prefilter)


@_of_image
def rotate(
    input: Any, angle: Any, axes: Any, reshape: bool, order: int, mode: str, cval: float, prefilter: bool
) -> Any:
    """As scipy.ndimage.rotate, of images with two axes."""
    x = input
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
    return affine_transform(input, matrix, centre, tuple(size), order, mode, cval, prefilter)


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
