"""Interpolators of scipy.interpolate: piecewise polynomials, B-splines, tables on grids.

Each finds its piece by a search (which does not move), gathers its coefficients and evaluates them. Splines are linear
in their data: coefficients solve a banded system. Outside of the data, where SciPy would raise, so do points that are
known; the value at traced ones is nan, since what is traced cannot raise.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...trace import refuse
from ...traced import holds_traced, tidy
from ..gathering import take
from ..linalg.scipy_linalg import COUNTERPARTS as LINALG
from .precision import as_given, double


def _gathered(x: Any, at: Any) -> Any:
    """x[at] along the first axis."""
    return take(x, at, 0) if holds_traced((x, at)) else np.take(x, at, axis=0)


def solve_banded(widths: tuple[int, int], bands: Any, right: Any) -> Any:
    """The solution of a banded system, traced or not."""
    if holds_traced((bands, right)):
        return LINALG["solve_banded"][0](l_and_u=widths, ab=bands, b=right)
    from importlib import import_module

    return import_module("scipy.linalg").solve_banded(widths, bands, right)


def _columns(x: Any, like: Any) -> Any:
    """A vector beside arrays with more axes."""
    return np.reshape(x, (*np.shape(x), *(1,) * (np.ndim(like) - 1)))


def _finished(found: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Values with the axes of the points in front, moved to where the data had theirs."""
    n, order = len(shape), list(range(np.ndim(found)))
    return np.transpose(found, [*order[n : n + axis], *order[:n], *order[n + axis :]]) if axis else found


def _data(x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    """Knots, and data along the first axis."""
    x, y = double(x), double(y)
    axis = axis % max(np.ndim(y), 1)
    if np.ndim(x) != 1 or np.shape(y)[axis] != np.shape(x)[0]:
        raise ValueError(f"knots of shape {np.shape(x)} and data of shape {np.shape(y)} do not fit along axis {axis}")
    if not holds_traced(x) and (np.diff(x) <= 0).any():
        raise ValueError("`x` must be strictly increasing sequence.")
    return x, np.moveaxis(y, axis, 0), axis


class PiecewisePolynomial:
    """As scipy.interpolate.PPoly: Σ c[m]·(x − x[i])^(k−m) on the i-th piece."""

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
        self.c, self.x, self.axis = double(c), double(x), axis
        self.extrapolate = True if extrapolate is None else extrapolate

    @classmethod
    def of(cls, given: Any) -> PiecewisePolynomial:
        """That of one of SciPy's."""
        return PiecewisePolynomial(given.c, given.x, given.extrapolate, given.axis)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x, knots, rest = double(x), self.x, self.c
        first, last = knots[0], knots[-1]
        if extrapolate == "periodic":
            x = first + np.mod(x - first, last - first)
        at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, np.shape(knots)[0] - 2)
        shape = np.shape(x)
        step = np.reshape(x - _gathered(knots, at), (*shape, *(1,) * (np.ndim(rest) - 2)))
        found = _gathered(rest[0], at)
        for m in range(1, np.shape(rest)[0]):
            found = found * step + _gathered(rest[m], at)
        if not extrapolate:
            inside = np.reshape((x >= first) & (x <= last), np.shape(step))
            found = np.where(inside, found, np.nan)
        return _finished(found, shape, self.axis)

    def derivative(self, nu: int = 1) -> PiecewisePolynomial:
        """The derivative of order nu; an integral where nu is negative."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            k = np.shape(c)[0]
            c = c[:-1] * _columns(np.arange(k - 1.0, 0.0, -1.0), c) if k > 1 else 0.0 * c
        return PiecewisePolynomial(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PiecewisePolynomial:
        """The integral from the first knot, nu times."""
        c = self.c
        for _ in range(nu):
            k = np.shape(c)[0]
            c = c / _columns(np.arange(float(k), 0.0, -1.0), c)
            widths = _columns(np.diff(self.x), c[0])
            ends = 0.0 * c[0]
            for m in range(k):
                ends = (ends + c[m]) * widths
            start = np.concatenate([0.0 * ends[:1], np.cumsum(ends, axis=0)[:-1]])
            c = np.concatenate([c, start[None]])
        return PiecewisePolynomial(c, self.x, False if self.extrapolate == "periodic" else self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """∫ₐᵇ."""
        if extrapolate == "periodic" or (extrapolate is None and self.extrapolate == "periodic"):
            raise refuse(
                "integrals of periodic splines are not known to riesz for traced arrays; integrate within a period"
            )
        whole = self.antiderivative()
        return whole(b, 0, extrapolate) - whole(a, 0, extrapolate)

    def __getattr__(self, name: str) -> Any:
        return _no_method(self, name)


def _no_method(spline: Any, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    what = f"{type(spline).__name__}.{name} of scipy.interpolate"
    raise refuse(f"{what} is not known to riesz for traced arrays; values, derivatives and integrals are")


def _hermite(x: Any, y: Any, slopes: Any) -> Any:
    """The coefficients of cubic pieces from values and derivatives at the knots."""
    width = _columns(np.diff(x), y)
    rise = np.diff(y, axis=0) / width
    bend = (slopes[:-1] + slopes[1:] - 2.0 * rise) / width
    return np.stack([bend / width, (rise - slopes[:-1]) / width - bend, slopes[:-1], y[:-1]])


class HermiteSpline(PiecewisePolynomial):
    """As scipy.interpolate.CubicHermiteSpline."""

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        slopes = np.moveaxis(double(dydx), axis, 0)
        x, y, axis = _data(x, y, axis)
        super().__init__(_hermite(x, y, slopes), x, extrapolate, axis)


class Pchip(PiecewisePolynomial):
    """As scipy.interpolate.PchipInterpolator: slopes are harmonic means, 0 where the data turn."""

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x, y, axis = _data(x, y, axis)
        super().__init__(_hermite(x, y, _monotone(x, y)), x, extrapolate, axis)


def _monotone(x: Any, y: Any) -> Any:
    h = _columns(np.diff(x), y)
    m = np.diff(y, axis=0) / h
    if np.shape(x)[0] == 2:
        return np.concatenate([m, m])
    turns = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    low, high = [np.where(turns, 1.0, part) for part in (m[:-1], m[1:])]
    inner = np.where(turns, 0.0, (w1 + w2) / (w1 / low + w2 / high))
    ends = [_edge(h[:1], h[1:2], m[:1], m[1:2]), _edge(h[-1:], h[-2:-1], m[-1:], m[-2:-1])]
    return np.concatenate([ends[0], inner, ends[1]])


def _edge(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    d = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
    return np.where(np.sign(d) != np.sign(m0), 0.0, np.where(steep, 3.0 * m0, d))


class Akima(PiecewisePolynomial):
    """As scipy.interpolate.Akima1DInterpolator."""

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        x, y, axis = _data(x, y, axis)
        m = np.diff(y, axis=0) / _columns(np.diff(x), y)
        if np.shape(x)[0] == 2:
            slopes = np.concatenate([m, m])
        else:
            low, high = 2.0 * m[:1] - m[1:2], 2.0 * m[-1:] - m[-2:-1]
            m = np.concatenate([2.0 * low - m[:1], low, m, high, 2.0 * high - m[-1:]])
            change = np.abs(np.diff(m, axis=0))
            if method == "makima":
                change = change + 0.5 * np.abs(m[1:] + m[:-1])
            after, before = change[2:], change[:-2]
            total = after + before
            clear = total > 1e-9 * np.max(total)
            weight = before / np.where(clear, total, 1.0)
            slopes = np.where(clear, m[1:-2] + weight * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))
        super().__init__(_hermite(x, y, slopes), x, bool(extrapolate), axis)


class Cubic(PiecewisePolynomial):
    """As scipy.interpolate.CubicSpline: slopes solve a tridiagonal system."""

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        x, y, axis = _data(x, y, axis)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        slopes = _periodic_slopes(x, y) if periodic else _cubic_slopes(x, y, bc_type, axis)
        extrapolate = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        super().__init__(_hermite(x, y, slopes), x, extrapolate, axis)


_WORDS = {"clamped": (1, 0.0), "natural": (2, 0.0)}


def _cubic_slopes(x: Any, y: Any, bc_type: Any, axis: int) -> Any:
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    ends = tuple([_WORDS.get(e, e) if isinstance(e, str) else (e[0], e[1]) for e in ends])
    n = np.shape(x)[0]
    wanted = [e for e in ends if e != "not-a-knot" and not isinstance(e, tuple)]
    if len(ends) != 2 or wanted:
        raise ValueError(
            f"bc_type is 'not-a-knot', 'clamped', 'natural', 'periodic' or a pair of these; got {bc_type!r}"
        )
    h = np.diff(x)
    hy, rise = _columns(h, y), np.diff(y, axis=0) / _columns(h, y)
    if n == 3 and ends == ("not-a-knot", "not-a-knot"):  # a parabola
        bend = (rise[1:] - rise[:1]) / (hy[:1] + hy[1:])
        return np.concatenate([rise[:1] - hy[:1] * bend, rise[:1] + hy[:1] * bend, rise[1:] + hy[1:] * bend])
    if n == 2:  # not-a-knot at an end is then the slope of the line
        ends = tuple([(1, rise[0]) if e == "not-a-knot" else e for e in ends])
    one = h[:1] * 0.0 + 1.0
    rows = [_end(e, h, hy, rise, side, y, one) for e, side in zip(ends, (0, -1), strict=True)]
    (d0, u0, r0), (d1, l1, r1) = rows
    diagonal = np.concatenate([d0, 2.0 * (h[:-1] + h[1:]), d1])
    upper = np.concatenate([0.0 * one, u0, h[:-1]])
    lower = np.concatenate([h[1:], l1, 0.0 * one])
    inner = 3.0 * (hy[1:] * rise[:-1] + hy[:-1] * rise[1:])
    return solve_banded((1, 1), np.stack([upper, diagonal, lower]), np.concatenate([r0, inner, r1]))


def _end(condition: Any, h: Any, hy: Any, rise: Any, side: int, y: Any, one: Any) -> Any:
    """The equation at an end: its entry on the diagonal, the one beside it, the right side."""
    i, j = (slice(0, 1), slice(1, 2)) if side == 0 else (slice(-1, None), slice(-2, -1))
    if condition == "not-a-knot":
        both, across = h[i] + h[j], hy[i] + hy[j]
        right = ((hy[i] + 2.0 * across) * hy[j] * rise[i] + hy[i] ** 2 * rise[j]) / across
        return h[j], both, right
    order, value = condition
    value = double(value) + 0.0 * y[:1]
    if order == 1:
        return one, 0.0 * one, value
    if order != 2:
        raise ValueError("The specified derivative order must be 1 or 2.")
    sign = -0.5 if side == 0 else 0.5
    return 2.0 * h[i], h[i], sign * value * hy[i] ** 2 + 3.0 * hy[i] * rise[i]


def _periodic_slopes(x: Any, y: Any) -> Any:
    """Those of a periodic spline: two tridiagonal systems, for the inner slopes and for how they follow the first."""
    n = np.shape(x)[0]
    if not holds_traced(y) and not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
        raise ValueError("The first and last `y` point along axis must be identical when bc_type='periodic'.")
    h = np.diff(x)
    hy, rise = _columns(h, y), np.diff(y, axis=0) / _columns(h, y)
    if n == 2:
        return np.zeros(np.shape(y))
    before, after = np.concatenate([hy[-1:], hy[:-1]]), hy
    right = 3.0 * (after * np.concatenate([rise[-1:], rise[:-1]]) + before * rise)  # at knots 0 … n−2
    if n == 3:
        total = h[0] + h[1]
        bend = np.stack([np.stack([2.0 * total, total]), np.stack([total, 2.0 * total])])
        found = np.reshape(np.linalg.solve(bend, np.reshape(right, (2, -1))), np.shape(right))
        return np.concatenate([found, found[:1]])
    prior = np.concatenate([h[-1:], h[:-1]])
    diagonal = 2.0 * (prior + h)  # row i: h[i]·s[i−1] + diagonal·s[i] + h[i−1]·s[i+1]
    bands = np.stack(
        [
            np.concatenate([0.0 * h[:1], prior[1:-1]]),
            diagonal[1:],
            np.concatenate([h[2:], 0.0 * h[:1]]),
        ]
    )
    flat = np.reshape(right, (n - 1, -1))
    corner = np.concatenate([h[1:2], np.zeros(n - 4), prior[-1:]])[:, None]
    solved = solve_banded((1, 1), bands, np.concatenate([flat[1:], corner], axis=1))
    plain, follow = solved[:, :-1], solved[:, -1:]
    top = flat[:1] - prior[0] * plain[:1] - h[0] * plain[-1:]
    first = top / (diagonal[0] - prior[0] * follow[0] - h[0] * follow[-1])
    rest = np.concatenate([first, plain - follow * first])
    return np.reshape(np.concatenate([rest, first]), np.shape(y))


class Bsplines:
    """As scipy.interpolate.BSpline: by de Boor's scheme on the coefficients around each point."""

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.k, self.axis, self.extrapolate = double(t), int(k), axis, extrapolate
        self.c = np.moveaxis(double(c), axis, 0) if axis else double(c)

    @classmethod
    def of(cls, given: Any) -> Bsplines:
        """That of one of SciPy's."""
        return Bsplines._made(given.t, given.c, given.k, given.extrapolate, given.axis)

    @staticmethod
    def _made(t: Any, c: Any, k: int, extrapolate: Any, axis: int) -> Bsplines:
        found = Bsplines(t, c, k, extrapolate)  # the data are along the first axis already
        found.axis = axis
        return found

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        if nu:
            return self.derivative(nu)(x, 0, self.extrapolate if extrapolate is None else extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        t, k, x = self.t, self.k, double(x)
        n = np.shape(t)[0] - k - 1
        first, last = t[k], t[n]
        if extrapolate == "periodic":
            x = first + np.mod(x - first, last - first)
        at = np.clip(np.searchsorted(t, x, side="right") - 1, k, n - 1)
        shape, more = np.shape(x), np.ndim(self.c) - 1
        parts = [_gathered(self.c, at - k + j) for j in range(k + 1)]
        for r in range(1, k + 1):
            for j in range(k, r - 1, -1):
                low, high = _gathered(t, at - k + j), _gathered(t, at + 1 + j - r)
                weight = np.reshape((x - low) / (high - low), (*shape, *(1,) * more))
                parts[j] = parts[j - 1] + weight * (parts[j] - parts[j - 1])
        found = parts[k]
        if not extrapolate:
            found = np.where(np.reshape((x >= first) & (x <= last), (*shape, *(1,) * more)), found, np.nan)
        return _finished(found, shape, self.axis)

    def derivative(self, nu: int = 1) -> Bsplines:
        """The derivative of order nu."""
        t, c, k = self.t, self.c[: np.shape(self.t)[0] - self.k - 1], self.k
        for _ in range(nu):
            if k == 0:
                return self._made(t, 0.0 * c, 0, self.extrapolate, self.axis)
            n = np.shape(t)[0] - k - 1
            width = t[k + 1 : n + k] - t[1:n]
            none = width == 0
            c = _columns(np.where(none, 0.0, k / np.where(none, 1.0, width)), c) * np.diff(c, axis=0)
            t, k = t[1:-1], k - 1
        return self._made(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Bsplines:
        """The integral from the first knot, nu times."""
        t, c, k = self.t, self.c[: np.shape(self.t)[0] - self.k - 1], self.k
        for _ in range(nu):
            n = np.shape(t)[0] - k - 1
            parts = c * _columns((t[k + 1 : n + k + 1] - t[:n]) / (k + 1.0), c)
            c = np.concatenate([0.0 * parts[:1], np.cumsum(parts, axis=0)])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        return self._made(t, c, k, False if self.extrapolate == "periodic" else self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """∫ₐᵇ, within the knots."""
        whole = self.antiderivative()
        return whole(b) - whole(a)

    def __getattr__(self, name: str) -> Any:
        return _no_method(self, name)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """The spline through data: its coefficients solve a banded system, whose matrix is known if the knots are."""
    from importlib import import_module

    interpolate = import_module("scipy.interpolate")
    x, y, axis = _data(x, y, axis)
    if holds_traced(x) or bc_type not in (None, (None, None), "not-a-knot"):
        raise refuse(
            "make_interp_spline at traced knots, or with bc_type=…, is not known to riesz; write "
            "CubicSpline(x, y, bc_type=…) for a cubic one"
        )
    like = interpolate.make_interp_spline(x, np.zeros(np.shape(x)), k, t)
    t, k, n = like.t, like.k, len(x)
    if k == 0:
        return Bsplines._made(t, np.concatenate([y, y[-1:]])[: len(t) - 1], 0, True, axis)  # pyright: ignore[reportPrivateUsage]
    rows = interpolate.BSpline.design_matrix(x, t, k).tocoo()
    below, above = int(np.max(rows.row - rows.col)), int(np.max(rows.col - rows.row))
    bands = np.zeros((below + above + 1, n))
    bands[above + rows.row - rows.col, rows.col] = rows.data
    c = solve_banded((max(below, 0), max(above, 0)), bands, y)
    return Bsplines._made(t, c, k, True, axis)  # pyright: ignore[reportPrivateUsage]


_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


def _raise_outside(outside: Any) -> None:
    if not holds_traced(outside) and np.any(outside):
        raise ValueError("a point is outside of the data; bounds_error=False and fill_value=… say what holds there")


class Interp1d:
    """As scipy.interpolate.interp1d."""

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: Any = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        x, y, given = double(x), double(y), y
        if not assume_sorted:
            order = np.argsort(x, kind="mergesort")
            x, y = x[order], (take if holds_traced(order) else np.take)(y, order, axis)
        self.given = given
        self.x, self.y, self.axis = _data(x, y, axis)
        self.kind: Any = _ORDERS.get(kind, kind)
        self.fill_value = fill_value
        self.outside = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self.outside and kind in ("previous", "next"):  # nothing comes before the first, or after the last
            self.fill_value = (np.nan, self.y[-1]) if kind == "previous" else (self.y[0], np.nan)
            self.outside, bounds_error = False, bounds_error or False
        self.bounds_error = not self.outside if bounds_error is None else bounds_error
        self.spline = make_interp_spline(self.x, self.y, self.kind) if isinstance(self.kind, int) else None

    @classmethod
    def of(cls, given: Any) -> Interp1d:
        """That of one of SciPy's."""
        kind = given._kind if given._kind != "spline" else given._spline.k
        return cls(given.x, given.y, kind, given.axis, False, given.bounds_error, given.fill_value, True)

    def __call__(self, x: Any) -> Any:
        x = double(x)
        shape, more, n = np.shape(x), np.ndim(self.y) - 1, np.shape(self.x)[0]
        if self.spline is not None:
            found = self.spline(x)
        elif self.kind == "linear":
            at = np.clip(np.searchsorted(self.x, x) - 1, 0, n - 2)
            low, high = _gathered(self.x, at), _gathered(self.x, at + 1)
            below, above = _gathered(self.y, at), _gathered(self.y, at + 1)
            found = below + (above - below) * np.reshape((x - low) / (high - low), (*shape, *(1,) * more))
        else:
            found = _gathered(self.y, np.clip(self._nearest(x), 0, n - 1))
            return _finished(as_given(self._ended(found, x), self.given), shape, self.axis)
        return _finished(self._ended(found, x), shape, self.axis)

    def _ended(self, found: Any, x: Any) -> Any:
        """With what is said of points outside the data."""
        if self.outside:
            return found
        fill, wide = self.fill_value, (*np.shape(x), *(1,) * (np.ndim(self.y) - 1))
        below, above = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
        low, high = x < self.x[0], x > self.x[-1]
        if self.bounds_error:
            _raise_outside(low | high)
        found = np.where(np.reshape(low, wide), double(below), found)
        return np.where(np.reshape(high, wide), double(above), found)

    def _nearest(self, x: Any) -> Any:
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        found = {
            "nearest": lambda: np.searchsorted(middle, x, side="left"),
            "nearest-up": lambda: np.searchsorted(middle, x, side="right"),
            "previous": lambda: np.searchsorted(self.x, x, side="right") - 1,
            "next": lambda: np.searchsorted(self.x, x, side="left"),
        }.get(self.kind)
        if found is None:
            raise refuse(
                f"interp1d with kind={self.kind!r} is not known to riesz for traced arrays; write kind='linear'"
            )
        return found()


class Grid:
    """As scipy.interpolate.RegularGridInterpolator, linear or nearest."""

    def __init__(
        self,
        points: Any,
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = np.nan,
        **named: Any,
    ) -> None:
        self.grid, self.values, self.method = tuple([double(p) for p in points]), double(values), method
        turned = [not holds_traced(p) and len(p) > 1 and p[0] > p[-1] for p in self.grid]
        self.grid = tuple([np.flip(p) if turn else p for p, turn in zip(self.grid, turned, strict=True)])
        self.values = (
            np.flip(self.values, tuple([i for i, turn in enumerate(turned) if turn])) if any(turned) else self.values
        )
        self.bounds_error, self.fill_value = bounds_error, np.nan if bounds_error else fill_value

    @classmethod
    def of(cls, given: Any) -> Grid:
        """That of one of SciPy's."""
        return cls(given.grid, given.values, given.method, given.bounds_error, given.fill_value)

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        method = method or self.method
        if method not in ("linear", "nearest") or nu is not None:
            raise refuse(
                f"RegularGridInterpolator with method={method!r} or nu=… is not known to riesz for traced arrays; "
                "there are 'linear' and 'nearest'"
            )
        if isinstance(xi, tuple):
            xi = np.stack(np.broadcast_arrays(*[double(x) for x in xi]), axis=-1)
        xi, d = double(tidy(xi)), len(self.grid)
        xi = xi[:, None] if d == 1 and np.ndim(xi) == 1 else np.reshape(xi, (1, -1)) if np.ndim(xi) == 1 else xi
        if np.shape(xi)[-1] != d:
            raise ValueError(
                f"The requested sample points xi have dimension {np.shape(xi)[-1]} but this interpolator has {d}"
            )
        shape, places, weights, inside = np.shape(xi)[:-1], [], [], True
        for i, knots in enumerate(self.grid):
            x = xi[..., i]
            at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, np.shape(knots)[0] - 2)
            low, high = _gathered(knots, at), _gathered(knots, at + 1)
            places.append(at)
            weights.append((x - low) / (high - low))
            inside = inside & (x >= knots[0]) & (x <= knots[-1])
        if self.bounds_error:
            _raise_outside(np.logical_not(inside))
        more = np.ndim(self.values) - d
        flat = np.reshape(self.values, (-1, *np.shape(self.values)[d:]))
        sizes = np.shape(self.values)[:d]

        def corner(picked: Any) -> Any:
            place = picked[0]
            for at, size in zip(picked[1:], sizes[1:], strict=True):
                place = place * size + at
            return _gathered(flat, place)

        if method == "nearest":
            found = corner([np.where(w <= 0.5, at, at + 1) for at, w in zip(places, weights, strict=True)])
        else:
            found = 0.0
            for up in product((0, 1), repeat=d):
                weight = 1.0
                for w, u in zip(weights, up, strict=True):
                    weight = weight * (w if u else 1.0 - w)
                part = corner([at + u for at, u in zip(places, up, strict=True)])
                found = found + np.reshape(weight, (*shape, *(1,) * more)) * part
        if self.fill_value is not None:
            found = np.where(np.reshape(inside, (*shape, *(1,) * more)), found, self.fill_value)
        return found


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """As scipy.interpolate.interpn."""
    return Grid(points, values, method, bounds_error, fill_value)(xi)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """As scipy.interpolate.splev, which extrapolates."""
    if ext != 0:
        raise refuse(
            "splev with ext=… is not known to riesz for traced arrays; write np.where(inside, splev(x, tck), 0.0)"
        )
    if isinstance(tck, (tuple, list)):
        t, c, k = tck
        return Bsplines(t, double(c)[: np.shape(t)[0] - k - 1], k)(x, der)
    spline = tck if isinstance(tck, Bsplines) else Bsplines.of(tck)
    return spline(x, der)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """As scipy.interpolate.pchip_interpolate."""
    return Pchip(xi, yi, axis)(x, der)


_SAME = "that of the pieces"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "make_interp_spline": (make_interp_spline, "a banded solve", _SAME),
    "interpn": (interpn, "gathers and products", _SAME),
    "splev": (splev, "gathers and products", _SAME),
    "pchip_interpolate": (pchip_interpolate, "gathers and products", _SAME),
}
CLASSES: dict[str, Any] = {
    "PPoly": PiecewisePolynomial,
    "CubicHermiteSpline": HermiteSpline,
    "PchipInterpolator": Pchip,
    "Akima1DInterpolator": Akima,
    "CubicSpline": Cubic,
    "BSpline": Bsplines,
    "interp1d": Interp1d,
    "RegularGridInterpolator": Grid,
}
