"""Splines of FITPACK: through data, or the best in the least-squares sense for given knots. Both are linear in the
data: coefficients solve a banded system."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import holds_traced
from ..scientific.interpolators import Bsplines, make_interp_spline, solve_banded
from ..scientific.precision import double


def _known(*knots: Any) -> None:
    if holds_traced(knots):
        raise refuse(
            "splines of FITPACK at traced points of the data are not known to riesz; "
            "scipy.interpolate.CubicSpline(x, y) takes a traced x"
        )


class FitpackSpline(Bsplines):
    """As scipy.interpolate.UnivariateSpline, and its kin, that extrapolate."""

    def __init__(self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
                 check_finite: bool = False) -> None:  # fmt: skip
        if s is None or holds_traced(s) or s != 0:
            raise refuse(
                "UnivariateSpline chooses its knots by the numbers unless s=0; for traced data write s=0, or "
                "LSQUnivariateSpline(x, y, t) with knots t"
            )
        self._through(x, y, k, ext, bbox)

    def _through(self, x: Any, y: Any, k: int, ext: Any, bbox: Any) -> None:
        _known(x)
        _check(ext, bbox)
        found = make_interp_spline(x, y, k)
        super().__init__(found.t, found.c, found.k)

    @classmethod
    def of(cls, given: Any) -> Bsplines:
        """That of one of SciPy's."""
        _check(given.ext, None)
        t, c, k = given._eval_args
        found = cls.__new__(cls)
        Bsplines.__init__(found, t, c[: len(t) - k - 1], k)
        return found

    def integral(self, a: Any, b: Any) -> Any:
        """∫ₐᵇ, within the knots."""
        return self.integrate(a, b)

    def get_coeffs(self) -> Any:
        """The coefficients."""
        return self.c


def _check(ext: Any, bbox: Any) -> None:
    if ext not in (0, "extrapolate") or (bbox is not None and any([b is not None for b in bbox])):
        raise refuse("splines of FITPACK with ext other than 0, or with bbox, are not known to riesz for traced arrays")


class SplineThrough(FitpackSpline):
    """As scipy.interpolate.InterpolatedUnivariateSpline."""

    def __init__(self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
                 check_finite: bool = False) -> None:  # fmt: skip
        self._through(x, y, k, ext, bbox)


class SplineFitted(FitpackSpline):
    """As scipy.interpolate.LSQUnivariateSpline: inner knots are given."""

    def __init__(self, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
                 check_finite: bool = False) -> None:  # fmt: skip
        _known(x, t)
        _check(ext, bbox)
        x = np.asarray(x, float)
        found = make_lsq_spline(x, y, np.concatenate([[x[0]] * (k + 1), t, [x[-1]] * (k + 1)]), k, w)
        Bsplines.__init__(self, found.t, found.c, k)


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> Any:
    """The spline with given knots that is nearest to the data: BᵀW²B c = BᵀW²y, a banded system."""
    _known(x, t, w)
    x, t, y = np.asarray(x, float), np.asarray(t, float), np.moveaxis(double(y), axis, 0)
    design = import_module("scipy.interpolate").BSpline.design_matrix(x, t, k).tocsr()
    weighted = (design if w is None else design.multiply(np.square(np.asarray(w, float))[:, None])).tocsr()
    normal, n = (design.T @ weighted).tocsr(), design.shape[1]
    width = min(k, n - 1)
    bands = np.zeros((2 * width + 1, n))
    for d in range(-width, width + 1):
        bands[width - d, max(d, 0) : n + min(d, 0)] = normal.diagonal(d)
    right = weighted.T @ np.reshape(y, (np.shape(y)[0], -1))
    c = np.reshape(solve_banded((width, width), bands, right), (n, *np.shape(y)[1:]))
    return Bsplines._made(t, c, k, True, axis)  # pyright: ignore[reportPrivateUsage]


def splrep(x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
           t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1) -> Any:  # fmt: skip
    """Knots, coefficients and degree of the spline through the data."""
    if (s is None and w is not None) or (s is not None and s != 0) or t is not None or task or per or full_output:
        raise refuse("splrep of traced data is known to riesz for splines through the data: splrep(x, y, k=k, s=0)")
    found = SplineThrough(x, y, None, (xb, xe), k)
    return found.t, np.concatenate([found.c, np.zeros(k + 1)]), k


class TensorSpline:
    """As scipy.interpolate.RectBivariateSpline through its data."""

    def __init__(self, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0,
                 maxit: int = 20) -> None:  # fmt: skip
        _known(x, y)
        if holds_traced(s) or s != 0:
            raise refuse("RectBivariateSpline of traced data is known to riesz for s=0")
        _check(0, bbox)
        rows = make_interp_spline(x, z, kx)
        both = make_interp_spline(y, np.transpose(rows.c), ky)
        self.knots, self.degrees, self.c = (rows.t, both.t), (rows.k, both.k), np.transpose(both.c)

    @classmethod
    def of(cls, given: Any) -> TensorSpline:
        """That of one of SciPy's."""
        found = cls.__new__(cls)
        tx, ty, c = given.tck
        found.knots, found.degrees = (tx, ty), given.degrees
        found.c = np.reshape(c, (len(tx) - given.degrees[0] - 1, len(ty) - given.degrees[1] - 1))
        return found

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        (tx, ty), (kx, ky) = self.knots, self.degrees
        if not grid:
            x, y = np.broadcast_arrays(double(x), double(y))
            rows = Bsplines(tx, self.c, kx)(np.reshape(x, -1), dx)
            columns = Bsplines(ty, np.eye(np.shape(self.c)[1]), ky)(np.reshape(y, -1), dy)
            return np.reshape(np.sum(rows * columns, axis=1), np.shape(x))
        rows = Bsplines(tx, self.c, kx)(np.atleast_1d(double(x)), dx)
        return np.transpose(Bsplines(ty, np.transpose(rows), ky)(np.atleast_1d(double(y)), dy))

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """At points, one by one."""
        return self(xi, yi, dx, dy, grid=False)


_SAME = "the same of the data's differential; that of the pieces"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "splrep": (splrep, "a banded solve", _SAME),
    "make_lsq_spline": (make_lsq_spline, "a product with a sparse matrix, a banded solve", _SAME),
}
CLASSES: dict[str, Any] = {
    "UnivariateSpline": FitpackSpline,
    "InterpolatedUnivariateSpline": SplineThrough,
    "LSQUnivariateSpline": SplineFitted,
    "RectBivariateSpline": TensorSpline,
}
