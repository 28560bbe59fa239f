"""Data at scattered points: radial functions, triangles, the nearest point; polynomials through points on a line.

All are linear in the data. Which triangle a point lies in, and which point is the nearest, does not move."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import INT, holds_traced, tidy
from ..elementwise import unmoving
from ..gathering import take
from ..scientific.interpolators import Interp1d
from ..scientific.precision import double

KERNELS: dict[str, Any] = {  # functions of the square s of a distance that is not 0; their value at 0; least degree
    "linear": (lambda s: -np.sqrt(s), 0.0, 0),
    "thin_plate_spline": (lambda s: 0.5 * s * np.log(s), 0.0, 1),
    "cubic": (lambda s: s * np.sqrt(s), 0.0, 1),
    "quintic": (lambda s: -s * s * np.sqrt(s), 0.0, 2),
    "multiquadric": (lambda s: -np.sqrt(s + 1.0), None, 0),
    "inverse_multiquadric": (lambda s: 1.0 / np.sqrt(s + 1.0), None, -1),
    "inverse_quadratic": (lambda s: 1.0 / (s + 1.0), None, -1),
    "gaussian": (lambda s: np.exp(-s), None, -1),
}


def _squares(x: Any, y: Any) -> Any:
    """Squares of all distances."""
    return np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)


class RadialBasis:
    """As scipy.interpolate.RBFInterpolator of all points: Σ c·φ(ε|x − y|) and a polynomial."""

    def __init__(self, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
                 epsilon: Any = None, degree: Any = None) -> None:  # fmt: skip
        if neighbors is not None:
            raise refuse("RBFInterpolator with neighbors=… is not known to riesz for traced arrays; leave it out")
        self.y, data = double(y), double(d)
        if np.ndim(self.y) != 2:
            raise ValueError("`y` must be a 2-dimensional array.")
        n, ndim = np.shape(self.y)
        if np.shape(data)[0] != n:
            raise ValueError(f"Expected the first axis of `d` to have length {n}.")
        self.shape, kernel = np.shape(data)[1:], kernel.lower()
        if kernel not in KERNELS:
            raise ValueError(f"`kernel` must be one of {set(KERNELS)}.")
        self.kernel, self.at_zero, least = KERNELS[kernel]
        if epsilon is None and self.at_zero is None:
            raise ValueError(f"`epsilon` must be specified if `kernel` is not one of {set(list(KERNELS)[:4])}.")
        self.epsilon = 1.0 if epsilon is None else double(epsilon)
        degree = max(least, 0) if degree is None else int(degree)
        self.powers = np.array([p for p in product(range(degree + 1), repeat=ndim) if sum(p) <= degree], int)
        self.powers = self.powers.reshape(-1, ndim)
        low, high = np.min(self.y, axis=0), np.max(self.y, axis=0)
        self.shift, half = 0.5 * (low + high), 0.5 * (high - low)
        self.scale = np.where(half == 0, 1.0, half)
        K = self._radial(self.y) + np.eye(n) * double(smoothing)
        P = self._monomials(self.y)
        m = len(self.powers)
        A = np.concatenate([np.concatenate([K, P], 1), np.concatenate([np.transpose(P), np.zeros((m, m))], 1)])
        right = np.concatenate([np.reshape(data, (n, -1)), np.zeros((m, int(np.prod(self.shape))))])
        self.c = np.linalg.solve(A, right)

    @classmethod
    def of(cls, given: Any) -> RadialBasis:
        """That of one of SciPy's."""
        degree = int(given.powers.sum(axis=1).max(initial=0)) if len(given.powers) else -1
        data = np.reshape(given.d, (-1, *given.d_shape))
        return cls(given.y, data, given.neighbors, given.smoothing, given.kernel, given.epsilon, degree)

    def _radial(self, x: Any) -> Any:
        s = _squares(x, self.y) * (self.epsilon * self.epsilon)
        if self.at_zero is None:
            return self.kernel(s)
        zero = s == 0
        return np.where(zero, self.at_zero, self.kernel(np.where(zero, 1.0, s)))

    def _monomials(self, x: Any) -> Any:
        scaled = (x - self.shift) / self.scale
        return np.prod(scaled[:, None, :] ** self.powers[None], axis=-1)

    def __call__(self, x: Any) -> Any:
        x = double(tidy(x))
        if np.ndim(x) != 2:
            raise ValueError("`x` must be a 2-dimensional array.")
        if np.shape(x)[1] != np.shape(self.y)[1]:
            raise ValueError(f"Expected the second axis of `x` to have length {np.shape(self.y)[1]}.")
        found = np.concatenate([self._radial(x), self._monomials(x)], 1) @ self.c
        return np.reshape(found, (np.shape(x)[0], *self.shape))


def _points(args: tuple[Any, ...]) -> Any:
    """Points along the last axis, of one array or of one for each coordinate."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if len(args) == 1:
        return double(tidy(args[0]))
    return np.stack(np.broadcast_arrays(*[double(tidy(x)) for x in args]), axis=-1)


def _gathered(x: Any, at: Any) -> Any:
    return take(x, at, 0) if holds_traced((x, at)) else np.take(x, at, axis=0)


def _found(function: Any, x: Any) -> Any:
    """What a search at points gives, traced or not."""
    return unmoving(function, INT, x, shaped=_one_less) if holds_traced(x) else function(x)


def _one_less(shapes: Any, parameters: dict[str, Any]) -> tuple[int, ...]:
    return shapes[0][:-1]


def _fixed(points: Any, rescale: bool, name: str) -> Any:
    if holds_traced(points) or rescale:
        raise refuse(
            f"{name} at traced points of the data, or with rescale=True, is not known to riesz; values and the points "
            "where it is evaluated may be traced"
        )
    return _points((points,))


class OnTriangles:
    """As scipy.interpolate.LinearNDInterpolator."""

    def __init__(self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False) -> None:
        spatial = import_module("scipy.spatial")
        whole = isinstance(points, spatial.Delaunay)
        self.triangles = points if whole else spatial.Delaunay(_fixed(points, rescale, "LinearNDInterpolator"))
        self.values, self.fill_value = double(values), fill_value

    @classmethod
    def of(cls, given: Any) -> OnTriangles:
        """That of one of SciPy's."""
        if given.scale is not None:
            raise refuse("LinearNDInterpolator with rescale=True is not known to riesz for traced arrays")
        values = np.reshape(given.values, (len(given.values), *given.values_shape))
        return cls(given.tri, values, given.fill_value)

    def __call__(self, *args: Any) -> Any:
        x, t = _points(args), self.triangles
        at = _found(t.find_simplex, x)
        inside, safe, d = at >= 0, np.maximum(at, 0), np.shape(x)[-1]
        matrix = _gathered(t.transform, safe)
        first = np.einsum("...ij,...j->...i", matrix[..., :d, :], x - matrix[..., d, :])
        weights = np.concatenate([first, 1.0 - np.sum(first, axis=-1, keepdims=True)], axis=-1)
        corners = _gathered(self.values, _gathered(t.simplices.astype(np.intp), safe))
        more = np.ndim(self.values) - 1
        wide = np.reshape(weights, (*np.shape(weights), *(1,) * more))
        found = np.sum(wide * corners, axis=np.ndim(weights) - 1)
        return np.where(np.reshape(inside, (*np.shape(inside), *(1,) * more)), found, self.fill_value)


class NearestPoint:
    """As scipy.interpolate.NearestNDInterpolator."""

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        points = _fixed(x, rescale, "NearestNDInterpolator")
        self.tree, self.values = import_module("scipy.spatial").cKDTree(points, **(tree_options or {})), double(y)

    @classmethod
    def of(cls, given: Any) -> NearestPoint:
        """That of one of SciPy's."""
        if given.scale is not None:
            raise refuse("NearestNDInterpolator with rescale=True is not known to riesz for traced arrays")
        found = cls.__new__(cls)
        found.tree, found.values = given.tree, double(given.values)
        return found

    def __call__(self, *args: Any, **query_options: Any) -> Any:
        return _gathered(self.values, _found(lambda x: self.tree.query(x)[1], _points(args)))


def griddata(points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan,
             rescale: bool = False) -> Any:  # fmt: skip
    """As scipy.interpolate.griddata, linear or nearest."""
    given = _points((points,))
    if np.ndim(given) == 1 or np.shape(given)[-1] == 1:
        x = _points((xi,))
        x = x[..., 0] if np.ndim(given) > 1 and np.shape(x)[-1:] == (1,) else x
        fill = "extrapolate" if method == "nearest" else fill_value
        return Interp1d(np.reshape(given, -1), values, method, 0, False, False, fill)(x)
    if method not in ("linear", "nearest"):
        raise refuse(f"griddata with method={method!r} is not known to riesz for traced arrays; write method='linear'")
    kind: Any = OnTriangles(given, values, fill_value, rescale) if method == "linear" else NearestPoint(given, values)
    return kind(_points((xi,)))


class ThroughPoints:
    """As scipy.interpolate.BarycentricInterpolator and KroghInterpolator of distinct points: Lagrange's polynomials."""

    def __init__(self, xi: Any, yi: Any, axis: int = 0, **named: Any) -> None:
        self.xi, self.axis = double(xi), axis
        self.yi = np.moveaxis(double(yi), axis, 0)

    @classmethod
    def of(cls, given: Any) -> ThroughPoints:
        """That of one of SciPy's."""
        data = np.reshape(given.yi, (len(given.xi), *given._y_extra_shape))
        found = cls(given.xi, data)
        found.axis = given._y_axis
        return found

    def __call__(self, x: Any) -> Any:
        x, n = double(tidy(x)), np.shape(self.xi)[0]
        away = np.reshape(x, (-1, 1)) - self.xi  # points × nodes
        one = np.ones((np.shape(away)[0], 1))
        before = np.concatenate([one, np.cumprod(away, axis=1)[:, :-1]], axis=1)
        after = np.flip(np.concatenate([one, np.cumprod(np.flip(away, 1), axis=1)[:, :-1]], axis=1), 1)
        apart = self.xi[:, None] - self.xi[None, :] + np.eye(n)
        basis = before * after / np.prod(apart, axis=1)
        found = np.tensordot(basis, self.yi, 1)
        found = np.reshape(found, (*np.shape(x), *np.shape(self.yi)[1:]))
        order = list(range(np.ndim(found)))
        k = np.ndim(x)
        return np.transpose(found, [*order[k : k + self.axis], *order[:k], *order[k + self.axis :]])


def _through(xi: Any, yi: Any, x: Any, axis: int = 0, der: Any = 0, **named: Any) -> Any:
    if not isinstance(der, int) or der != 0:
        raise refuse("derivatives of polynomials through points are not known to riesz for traced arrays; use rz.jvp")
    return ThroughPoints(xi, yi, axis)(x)


def _krogh(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    return _through(xi, yi, x, axis, der)


_LINEAR = "the same of the data's differential; that of the formula in points"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "griddata": (griddata, "gathers and products", _LINEAR),
    "barycentric_interpolate": (_through, "products of differences", _LINEAR),
    "krogh_interpolate": (_krogh, "products of differences", _LINEAR),
}
CLASSES: dict[str, Any] = {
    "RBFInterpolator": RadialBasis,
    "LinearNDInterpolator": OnTriangles,
    "NearestNDInterpolator": NearestPoint,
    "BarycentricInterpolator": ThroughPoints,
    "KroghInterpolator": ThroughPoints,
}
