"""Distances, interpolators, filters, images and fits in traced code: SciPy's values, differences for derivatives.

Each line is an expression in NumPy and SciPy and its inputs x, y, z.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.spatial
import scipy.stats
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError

pytestmark = [pytest.mark.filterwarnings("ignore")]
rng = np.random.default_rng(0)
T = np.array([0.0, 0.7, 1.1, 2.0, 2.6, 3.1])
SPLINE = scipy.interpolate.CubicSpline(T, np.sin(T))
Q = np.array([0.2, 0.83, 1.7, 2.9])
M33 = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]])
SCOPE = {
    "np": np,
    "scipy": scipy,
    "T": T,
    "Q": Q,
    "M33": M33,
    "SPLINE": SPLINE,
    "GRID": (np.array([0.0, 0.5, 1.5, 2.0]), np.array([-1.0, 0.0, 2.0])),
    "TABLE": rng.normal(size=(4, 3)),
    "SOS": scipy.signal.butter(4, 0.3, output="sos"),
    **{k: getattr(scipy, k) for k in ("interpolate", "signal", "ndimage", "spatial", "stats", "integrate", "special")},
    "distance": scipy.spatial.distance,
    "square": np.vectorize(lambda t, p=2.0: t**p),
}
N = {(): 0.7}


def n(*shape: int) -> Any:
    """Numbers of both signs, no two alike."""
    count = int(np.prod(shape))
    return (np.linspace(-1.9, 1.8, count) + 0.1 * np.sin(7.0 * np.arange(count)))[rng.permutation(count)].reshape(shape)


def p(*shape: int) -> Any:
    """Positive numbers."""
    return np.abs(n(*shape)) + 0.3


CASES: list[tuple[str, tuple[Any, ...]]] = []


def case(text: str, *xs: Any) -> None:
    CASES.append((text, xs))


def cases(block: str, *xs: Any) -> None:
    for text in block.split(";"):
        if text.strip():
            case(" ".join(text.split()), *xs)


# -- lists ------------------------------------------------------------------------------------------------
cases(
    """np.sin([x[0], x[1]]); np.exp([[x[0], 1], [2, x[1]]]); np.maximum([x[0], 1.0], [1, x[1]]); np.hypot([x[0]], (x[1],));
    np.add.reduce([x[0], x[1]]); np.multiply.outer([x[0], 2.0], [x[1], x[2]]); np.add.accumulate([x[0], x[1], 1.0]);
    np.mean([x, x + 2]); np.concatenate([[x[0]], [x[1]]]); np.dot([x[0], x[1]], [1.0, 2.0]); np.vander([x[0], 1]);
    scipy.special.erf([x[0], x[1]]); np.add([x[0], 1.0], x[:2]); np.where([True, False], [x[0], 1], [2.0, x[1]]);
    np.linalg.det([[x[0], 1], [1, x[1]]]); np.sum([[x[0], x[1]], [1, 2]], axis=0); stats.norm.logpdf([x[0], x[1]])""",
    n(3),
)
# -- polynomials, functions along axes --------------------------------------------------------------------
cases(
    """np.polyadd(x, [1.0, 2.0]); np.polysub([1.0], x); np.polymul(x, [1.0, 2.0]); np.polyint(x); np.polyint(x, 2, [1.0, 2.0]);
    np.polydiv(x, [2.0, 1.0])[0]; np.polydiv([2.0, 1.0, 0.5, 0.3, 0.1], x)[0]; np.poly(x); np.vander(x, 3);
    np.vander(x, 3, increasing=True); np.unwrap(6 * x); np.unwrap(6 * x, period=4.0); np.vectorize(lambda t: t * np.sin(t))(x);
    np.vectorize(lambda t: t * t, otypes=[float])(np.outer(x[:0], x)); np.vectorize(lambda t: (t, t * t), otypes="dd")(x)[1];
    np.vectorize(lambda a, b: a @ b, signature="(m, n),(n)->(m)")(np.multiply.outer(x, np.outer(x[:2], x)), x);
    np.vectorize(lambda a, k: (np.sum(a**2), a[::k]), signature="(n),()->(),(k)", otypes="dd")(np.outer(x, x), 2)[1];
    np.vectorize(lambda a: a[0] * a, signature="(n)->(n)", otypes="d")(np.outer(x[:0], x)); np.vectorize(otypes="d")(np.sin)(x);
    square(x); square(x + 3.0, p=1.5); np.apply_along_axis(lambda r: np.cumsum(r) * r[0], 0, np.outer(x, x));
    np.apply_along_axis(np.sum, 1, np.outer(x, x)); np.apply_over_axes(np.sum, np.outer(x, x), [0, 1]);
    np.polyfit(np.arange(4.0), x, 2); np.polyfit(x, np.arange(4.0), 1); np.polyfit(np.arange(4.0), x, 1, w=[1.0, 2.0, 1.0, 0.5]);
    np.polyfit(np.arange(4.0), x, 1, cov=True)[1]; np.polynomial.polynomial.polyfit(np.arange(4.0), x, 2);
    np.polynomial.chebyshev.chebfit(np.arange(4.0), x, 2); np.polynomial.legendre.legfit(x, np.arange(4.0), 1);
    np.gradient(x); np.gradient(x, T[:4]); np.trapezoid(x, T[:4]); integrate.simpson(x, x=T[:4]);
    integrate.cumulative_trapezoid(x, T[:4], initial=0); integrate.trapezoid(T[:4], x);
    np.piecewise(x, [x < 0, x >= 0], [lambda t: t * t, lambda t: t**3])""",
    n(4),
)
# -- distances --------------------------------------------------------------------------------------------
for metric in [
    "euclidean",
    "sqeuclidean",
    "cityblock",
    "chebyshev",
    "cosine",
    "correlation",
    "canberra",
    "braycurtis",
    "seuclidean",
    "mahalanobis",
    "minkowski",
]:
    case(
        f"distance.cdist(x, y, {metric!r})",
        p(3, 2) if metric != "correlation" else p(3, 4),
        p(4, 2) if metric != "correlation" else p(2, 4),
    )
    case(f"distance.pdist(x, {metric!r})", p(4, 3))
cases(
    """distance.cdist(x, y); distance.cdist(x, y, "minkowski", p=3); distance.cdist(x, y, "mahalanobis", VI=M33);
    distance.cdist(x, y, "seuclidean", V=[1.0, 2.0, 3.0]); distance.cdist(x, y, "euclidean", w=[1.0, 2.0, 3.0]);
    distance.cdist(x, y, lambda u, v: np.sum((u - v) ** 4)); distance.cdist(x, y, distance.cityblock);
    spatial.distance_matrix(x, y); spatial.distance_matrix(x, y, p=3); distance.cdist(x, y, "jensenshannon")""",
    p(3, 3),
    p(2, 3),
)
cases(
    """distance.euclidean(x, y); distance.sqeuclidean(x, y); distance.cityblock(x, y); distance.chebyshev(x, y);
    distance.minkowski(x, y, 3); distance.cosine(x, y); distance.correlation(x, y); distance.mahalanobis(x, y, M33);
    distance.canberra(x, y); distance.braycurtis(x, y); distance.seuclidean(x, y, [1.0, 2.0, 3.0]); distance.jensenshannon(x, y);
    distance.squareform(x); distance.squareform(distance.pdist(np.stack([x, y])))""",
    np.array([0.4, 1.3, 2.2]),
    np.array([1.1, 0.5, 3.1]),
)
# -- interpolation ----------------------------------------------------------------------------------------
cases(
    """SPLINE(x); SPLINE(x, 1); SPLINE.derivative()(x); SPLINE.antiderivative()(x); SPLINE.integrate(0.1, x[0]);
    SPLINE(x, extrapolate=False); interpolate.interp1d(T, np.cos(T))(x); interpolate.interp1d(T, np.cos(T), "cubic")(x);
    interpolate.interp1d(T, np.cos(T), "quadratic")(x); interpolate.interp1d(T, np.cos(T), "nearest")(x) * x;
    interpolate.interp1d(T, np.cos(T), "previous")(x) * x; interpolate.interp1d(T, np.cos(T), "next")(x) * x;
    interpolate.interp1d(T, np.cos(T), fill_value="extrapolate")(x + 2.0); interpolate.interp1d(T, np.cos(T), "next", fill_value="extrapolate")(x - 2.0) * x;
    interpolate.interp1d(T, np.cos(T), "previous", fill_value="extrapolate")(x + 1.6) * x; interpolate.interp1d(T, np.cos(T), "previous", fill_value="extrapolate")(x - 1.6) * x;
    interpolate.interp1d(T, np.cos(T), bounds_error=False, fill_value=(1.0, 2.0))(x + 1.0);
    interpolate.PchipInterpolator(T, np.cos(T))(x); interpolate.Akima1DInterpolator(T, np.cos(T))(x);
    interpolate.make_interp_spline(T, np.cos(T))(x); interpolate.BSpline(np.arange(8.0) - 3.0, [1.0, 2.0, 0.5, 1.0], 3)(x);
    interpolate.splev(x, interpolate.splrep(T, np.cos(T))); interpolate.UnivariateSpline(T, np.cos(T), s=0)(x);
    interpolate.CubicSpline(T, np.stack([np.sin(T), np.cos(T)]), axis=1)(x); np.interp(x, T, np.cos(T));
    interpolate.PPoly(np.ones((3, 5)), T)(x); interpolate.CubicHermiteSpline(T, np.sin(T), np.cos(T))(x)""",
    Q,
)
for bc in ("'not-a-knot'", "'natural'", "'clamped'", "((1, 0.5), (2, 0.3))", "('natural', 'not-a-knot')"):
    case(f"interpolate.CubicSpline(T, x, bc_type={bc})(Q)", n(6))
cases(
    """interpolate.CubicSpline(T, x)(Q, 1); interpolate.CubicSpline(T, x).derivative(2)(Q); interpolate.CubicSpline(T, x)(5.0);
    interpolate.CubicSpline(T, x).integrate(0.2, 2.1); interpolate.CubicSpline(T[:3], x[:3])(Q); interpolate.CubicSpline(T[:2], x[:2])(Q);
    interpolate.CubicSpline(T, np.concatenate([x[:-1], x[:1]]), bc_type="periodic")(Q);
    interpolate.CubicSpline(T[:3], np.stack([x[0], x[1], x[0]]), bc_type="periodic")(Q);
    interpolate.CubicSpline(np.cumsum(np.exp(x)), T)(8.0); interpolate.CubicSpline(T, np.outer(x, x))(Q);
    interpolate.CubicSpline(T, np.outer(x, x), axis=1)(Q); interpolate.PchipInterpolator(T, x)(Q);
    interpolate.PchipInterpolator(T, np.cumsum(np.exp(x)))(Q, 1); interpolate.Akima1DInterpolator(T, x)(Q);
    interpolate.Akima1DInterpolator(T, x, method="makima")(Q); interpolate.make_interp_spline(T, x)(Q);
    interpolate.make_interp_spline(T, x, k=2)(Q); interpolate.make_interp_spline(T, x, k=1)(Q);
    interpolate.make_interp_spline(T, x, k=5)(Q); interpolate.make_interp_spline(T, x)(Q, 1); interpolate.make_interp_spline(T, x).derivative()(Q);
    interpolate.make_interp_spline(T, x).antiderivative()(Q); interpolate.make_interp_spline(T, x).integrate(0.3, 2.0);
    interpolate.BSpline(np.arange(10.0), x, 3)(Q + 2.5); interpolate.BSpline(np.arange(10.0), x, 3, extrapolate=False)(Q + 3.0);
    interpolate.interp1d(T, x)(Q); interpolate.interp1d(T, x, "cubic")(Q); interpolate.interp1d(T, x, "nearest")(Q);
    interpolate.interp1d(T, x, "zero")(Q); interpolate.interp1d(T, np.outer(x, x))(Q); interpolate.interp1d(T[::-1], x)(Q);
    interpolate.interp1d(np.cumsum(np.exp(x)), T)(3.0); interpolate.pchip_interpolate(T, x, Q); np.interp(Q, T, x)""",
    n(6),
)
case("interpolate.CubicSpline(T, y)(x)", Q, n(6))
case("interpolate.CubicSpline(T, y).derivative()(x)", Q, n(6))
case("interpolate.PchipInterpolator(T, y)(x)", Q, n(6))
case("interpolate.BSpline(np.arange(10.0), y, 3)(x + 3.0)", Q, n(6))
XI = np.array([[0.2, -0.3], [1.7, 1.1], [0.9, 0.4]])
cases(
    """interpolate.RegularGridInterpolator(GRID, TABLE)(x); interpolate.RegularGridInterpolator(GRID, TABLE, "nearest")(x) * x[:, 0];
    interpolate.interpn(GRID, TABLE, x); interpolate.RegularGridInterpolator(GRID, TABLE, bounds_error=False, fill_value=None)(2 * x);
    interpolate.RegularGridInterpolator(GRID, TABLE, bounds_error=False, fill_value=0.3)(2 * x);
    interpolate.RegularGridInterpolator(GRID, TABLE)((x[:, 0], x[:, 1]))""",
    XI,
)
case("interpolate.RegularGridInterpolator(GRID, y)(x)", XI, n(4, 3))
case("interpolate.interpn(GRID, y, x)", XI, n(4, 3, 2))
# -- samples ----------------------------------------------------------------------------------------------
cases(
    """stats.zscore(x); stats.skew(x); stats.skew(x, bias=False); stats.kurtosis(x); stats.kurtosis(x, fisher=False, bias=False);
    stats.moment(x, 3); stats.gmean(x); stats.hmean(x); stats.pmean(x, 1.5); stats.sem(x); stats.variation(x); stats.entropy(x);
    stats.entropy(x, T + 1.0, base=2); stats.iqr(x); stats.trim_mean(x, 0.2); stats.pearsonr(x, T)[0]; stats.pearsonr(x, T).pvalue;
    stats.skew(np.outer(x, x + T), axis=1); stats.gmean(np.outer(x, x), axis=0);
    stats.skew(np.outer(x, x + T), axis=(0, 1)); stats.zscore(np.outer(x, x + T), axis=None); stats.sem(np.outer(x, x + T), axis=None);
    stats.kurtosis(np.outer(x, x + T), axis=None, bias=False, keepdims=True); stats.moment(np.outer(x, x), 1, axis=1);
    stats.hmean(np.outer(x, x + T), axis=0, keepdims=True)""",
    p(6),
)
# -- complex matrices -------------------------------------------------------------------------------------
cases(
    """np.linalg.inv(x + 1j * y).imag; np.linalg.solve(x + 1j * y, y[0] + 1j * x[0]).real; np.linalg.solve(x + 1j * y, y).imag;
    np.linalg.solve(x, x + 1j * y).imag; np.linalg.det(x + 1j * y).imag; np.linalg.slogdet(x + 1j * y)[1]; np.linalg.slogdet(x + 1j * y)[0].real;
    np.linalg.matrix_power(x + 1j * y, 3).real; np.linalg.pinv((x + 1j * y)[:2]).real; np.linalg.eigvalsh(x + 1j * y);
    np.linalg.eigvalsh(x + 1j * y, "U"); np.abs(np.linalg.eigh(x + 1j * y)[1]); np.linalg.svd(x + 1j * y, compute_uv=False);
    np.linalg.svdvals((x + 1j * y)[:2]); np.abs(np.linalg.svd((x + 1j * y)[:2], full_matrices=False)[2]); np.abs(np.linalg.svd(x + 1j * y)[0]);
    np.linalg.eigvals(x + 1j * y).imag; np.linalg.eigvals(x @ y + 0j).real; np.abs(np.linalg.eig(x + 1j * y)[1]);
    np.linalg.norm(x + 1j * y, 2); np.linalg.norm(x + 1j * y, -2); np.linalg.norm(x + 1j * y, "nuc"); np.linalg.norm(x + 1j * y, 1);
    np.linalg.norm(x + 1j * y, np.inf); np.linalg.norm(x + 1j * y); np.linalg.det(np.stack([x + 1j * y, y + 2j * x])).real""",
    M33 + n(3, 3) / 5,
    n(3, 3),
)
# -- filters ----------------------------------------------------------------------------------------------
cases(
    """signal.lfilter([1.0, 0.5], [1.0, 0.3], x); signal.lfilter([0.5, 0.2, 0.1], [2.0], x); signal.lfilter([1.0], [2.0, -0.5, 0.2], x);
    signal.lfilter([1.0, 0.5], [1.0, 0.3, 0.1], x, zi=[0.3, 0.2])[0]; signal.lfilter([1.0, 0.5], [1.0, 0.3, 0.1], x, zi=[0.3, 0.2])[1];
    signal.lfilter([1.0, 0.5], [1.0, 0.3], np.outer(x, x), axis=0); signal.sosfilt(SOS, x); signal.filtfilt([1.0, 0.5], [1.0, 0.3], x);
    signal.filtfilt([1.0, 0.5], [1.0, 0.3], x, padtype="even", padlen=3); signal.sosfiltfilt(SOS, np.concatenate([x, x[::-1], x]));
    signal.savgol_filter(x, 5, 2); signal.savgol_filter(x, 5, 2, deriv=1, delta=0.5); signal.savgol_filter(x, 5, 3, mode="nearest");
    signal.savgol_filter(np.outer(x, x[:5]), 5, 2, axis=0); signal.detrend(x); np.imag(signal.hilbert(x)); signal.resample(x, 15);
    signal.resample(x, 7); signal.resample(x, 8); signal.resample(x[:9], 6); signal.upfirdn([1.0, 2.0, 0.5], x, 2, 3);
    signal.resample_poly(x, 3, 2); signal.decimate(np.concatenate([x, x[::-1], x, x]), 2); signal.lfilter_zi([1.0, 0.5], [1.0, x[0] / 5]);
    signal.convolve(np.outer(x, x), np.ones((2, 3)), "same"); signal.fftconvolve(x, [1.0, 2.0]); signal.lfilter([1.0], [1.0, 0.3], x[:0]) + x[:0];
    signal.lfilter([1.0, 0.5], [1.0, 0.3], np.outer(x[:0], x)); signal.upfirdn([1.0, 2.0], np.outer(x[:0], x)); np.gradient([1.0, 3.0, 2.0], x[0]);
    signal.correlate2d(np.outer(x, x[:4]), np.outer(x[:2], x[:3]), "same"); signal.correlate2d(np.outer(x, x[:4]), [[1.0, 2.0]], "valid");
    np.abs(signal.correlate(x * (1 + 2j), np.array([1j, 2.0, x[0] * 1j])))""",
    n(10),
)
case("signal.lfilter(x, y, np.sin(np.arange(9.0)))", n(3), np.array([1.3, 0.4, -0.2]))
case("signal.lfilter(x, y, np.sin(np.arange(9.0)), zi=z)[1]", n(3), np.array([1.3, 0.4, -0.2]), n(2))
case("signal.filtfilt(x, y, np.sin(np.arange(30.0)))", p(3), np.array([1.3, 0.4, -0.2]))
case("signal.sosfilt_zi(np.insert(x, 3, 1.0, axis=1))", n(2, 5) / 4)
case("signal.sosfilt(np.insert(x, 3, 1.0, axis=1), np.sin(np.arange(9.0)))", n(2, 5) / 4)
# -- images -----------------------------------------------------------------------------------------------
cases(
    """ndimage.gaussian_filter(x, 0.7); ndimage.gaussian_filter(x, [0.7, 0.4], order=[0, 1]); ndimage.gaussian_filter(x, 0.7, order=2);
    ndimage.gaussian_filter1d(x, 0.6, axis=0); ndimage.uniform_filter(x, 3); ndimage.uniform_filter(x, [2, 3]); ndimage.uniform_filter1d(x, 4);
    ndimage.laplace(x); ndimage.sobel(x); ndimage.sobel(x, 0, mode="nearest"); ndimage.prewitt(x); ndimage.gaussian_laplace(x, 0.7);
    ndimage.gaussian_gradient_magnitude(x, 0.7); ndimage.spline_filter(x); ndimage.spline_filter1d(x, axis=0);
    ndimage.correlate1d(x, [1.0, 2.0, 0.5, 0.1]); ndimage.convolve1d(x, [1.0, 2.0, 0.5, 0.1]); ndimage.convolve1d(x, [1.0, 2.0, 0.5], origin=1);
    ndimage.map_coordinates(x, [[0.5, 1.2, 7.0], [0.6, 2.9, 1.0]]); ndimage.map_coordinates(x, [[0.5, 1.2, 7.0], [0.6, 2.9, 1.0]], order=1);
    ndimage.map_coordinates(x, [[0.5, 1.2, 7.0], [0.6, 2.9, 1.0]], order=0); ndimage.shift(x, 0.3); ndimage.shift(x, [0.3, -0.6], order=1);
    ndimage.zoom(x, 2.0); ndimage.zoom(x, [1.5, 0.5], order=1); ndimage.rotate(x, 20.0); ndimage.rotate(x, 20.0, reshape=False, order=1); ndimage.rotate(x, 200.0, axes=(0, 1));
    ndimage.affine_transform(x, [1.0, 0.9]); ndimage.affine_transform(x, [[1.0, 0.2], [-0.1, 0.9]], [0.3, 0.1], order=1);
    ndimage.affine_transform(x, [[1.0, 0.2], [-0.1, 0.9]], [0.3, 0.1], (3, 4))""",
    n(4, 5),
)
for mode in ["reflect", "mirror", "nearest", "constant"]:
    case(f"ndimage.convolve(x, y, mode={mode!r})", n(4, 5), n(3, 2))
    case(f"ndimage.correlate(x, y, mode={mode!r}, cval=0.7)", n(4, 5), n(3, 3))
    case(
        f"ndimage.map_coordinates(x, y, mode={mode!r})",
        n(12, 13),
        np.array([[0.53, 1.27, -0.6, 3.4], [0.61, 2.9, 1.3, 4.8]]),
    )
    case(
        f"ndimage.map_coordinates(x, y, order=1, mode={mode!r})",
        n(4, 5),
        np.array([[0.53, 1.27, -0.6, 3.4], [0.61, 2.9, 1.3, 4.8]]),
    )
case("ndimage.convolve(x, y, mode='wrap')", n(4, 5), n(3, 2))
case(
    "ndimage.map_coordinates(x, y, order=1, mode='wrap')",
    n(4, 5),
    np.array([[0.53, 1.27, -0.6, 3.4], [0.61, 2.9, 1.3, 4.8]]),
)
case("ndimage.shift(y, x, order=1)", np.array([0.3, -0.6]), n(4, 5))
case("ndimage.rotate(y, x, reshape=False)", np.float64(20.0), n(4, 4))
case("ndimage.gaussian_filter1d(y, x, radius=3)", np.float64(0.8), n(7))


# -- the tests --------------------------------------------------------------------------------------------


def code(text: str, count: int) -> Any:
    return eval(f"lambda {', '.join('xyz'[:count])}: {text}", SCOPE)


def slope(f: Any, h: float = 1e-4) -> Any:
    total = 0.0
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        total = total + weight / h * (np.asarray(f(k * h)) - np.asarray(f(-k * h)))
    return total


SOME = sampled(CASES, 3, lambda c: c[0])


@pytest.mark.parametrize(("text", "xs"), SOME, ids=[text for text, _ in SOME])
def test_values_and_derivatives(text: str, xs: tuple[Any, ...]) -> None:
    f = code(text, len(xs))
    wanted, found = f(*xs), rz.function(f)(*xs)
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    draws = np.random.default_rng(1)
    dxs = tuple([draws.normal(size=np.shape(x)) for x in xs])
    line = lambda t: f(*[x + t * d for x, d in zip(xs, dxs, strict=True)])  # noqa: E731
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(
        np.where(finite, rz.jvp(f, xs, dxs)[1], 0), np.where(finite, slope(line), 0), rtol=1e-6, atol=1e-6
    )
    total = lambda *xs: np.sum(np.sin(np.where(finite, f(*xs), 0.0)))  # noqa: E731
    gradient = rz.grad(total, tuple(range(len(xs))))
    there = sum([float(np.sum(g * d)) for g, d in zip(gradient(*xs), dxs, strict=True)])
    plain = slope(lambda t: np.sum(np.sin(np.where(finite, line(t), 0.0))))
    np.testing.assert_allclose(there, plain, rtol=1e-6, atol=1e-6)
    second = rz.hvp(total, xs, dxs)
    second = second if len(xs) > 1 else (second,)
    for k in range(len(xs)):
        moved = lambda t: gradient(*[x + t * d for x, d in zip(xs, dxs, strict=True)])[k]  # noqa: B023, E731
        np.testing.assert_allclose(second[k], slope(moved), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("text", "xs"), SOME, ids=[text for text, _ in SOME])
def test_single_precision(text: str, xs: tuple[Any, ...]) -> None:
    f, xs = code(text, len(xs)), tuple([np.asarray(x, np.float32)[()] for x in xs])
    wanted, found = f(*xs), rz.function(f)(*xs)
    assert (np.shape(found), np.asarray(found).dtype) == (np.shape(wanted), np.asarray(wanted).dtype)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)
    gradients = rz.grad(lambda *xs: np.sum(f(*xs)), tuple(range(len(xs))))(*xs)
    assert [g.dtype for g in gradients] == [np.float32] * len(xs)


def test_objects_from_outside_are_followed() -> None:
    spline = scipy.interpolate.CubicSpline(T, np.sin(T))
    holder = type("Holder", (), {})()
    holder.inner = {"spline": spline}
    f = lambda x: holder.inner["spline"](x)  # noqa: E731
    np.testing.assert_allclose(rz.grad(f)(0.9), spline(0.9, 1))
    assert holder.inner["spline"] is spline
    np.testing.assert_allclose(rz.grad(lambda s, x: s(x), 1)(spline, 0.9), spline(0.9, 1))
    spline.c *= 2.0
    np.testing.assert_allclose(rz.grad(f)(0.9), spline(0.9, 1))
    holder.inner["spline"] = scipy.interpolate.CubicSpline(T, np.cos(T))
    np.testing.assert_allclose(rz.grad(f)(0.9), holder.inner["spline"](0.9, 1))


def test_structure_survives() -> None:
    x = np.linspace(0.1, 3.0, 40)
    J = rz.jacobian(lambda x: SPLINE(x) * scipy.stats.norm.pdf(x))(x)
    dense = J.to_dense()
    assert np.count_nonzero(dense - np.diag(np.diag(dense))) == 0
    K = rz.jacobian(lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0))(np.arange(40.0)).to_dense()
    wanted = np.stack([scipy.ndimage.gaussian_filter1d(row, 1.0) for row in np.eye(40)], axis=1)
    np.testing.assert_allclose(K, wanted, atol=1e-14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("signal.remez(5, [0.0, 0.1, 0.2, 0.5], x[:2])", r"scipy\.signal\.remez"),
        ("interpolate.make_smoothing_spline(T, x)(0.5)", r"scipy\.interpolate\.make_smoothing_spline"),
        ("interpolate.UnivariateSpline(T, x)(0.5)", "write s=0"),
        ("interpolate.CubicSpline(T, x).roots()", "roots of scipy.interpolate is not known"),
        ("distance.cdist(x[:, None], x[:, None], 'hamming')", "metric='hamming'"),
        ("ndimage.gaussian_filter(x, x[0])", "needs radius"),
        ("ndimage.shift(x, 0.5, order=2)", "orders 0, 1 and 3"),
    ],
)
def test_what_is_not_known_is_named(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        rz.grad(lambda x: np.sum(code(text, 1)(x)))(p(6))


def test_wrong_calls_are_scipys_errors() -> None:
    outside = (
        "interpolate.interp1d(T, x)(9.0)",
        "interpolate.interp1d(T, x, kind='cubic')([0.5, -1.0])",
        "interpolate.interp1d(T, x, kind='next', fill_value=0.0)([0.5, -1.0])",
        "interpolate.interpn([T], x, [[9.0]])",
        "interpolate.RegularGridInterpolator([T], x)([[0.5], [-0.1]])",
    )
    for text in outside:
        f = code(text, 1)
        for run in (f, rz.function(f)):
            with pytest.raises(ValueError):
                run(p(6))
    with pytest.raises(ValueError, match="same number of columns"):
        rz.grad(lambda x: np.sum(scipy.spatial.distance.cdist(x, np.ones((2, 4)))))(np.ones((2, 3)))
    with pytest.raises(ValueError, match="strictly increasing"):
        rz.grad(lambda y: scipy.interpolate.CubicSpline(T[::-1], y)(0.5))(np.ones(6))
    with pytest.raises(TypeError, match=r"scipy.stats.gamma takes"):
        rz.grad(lambda x: scipy.stats.gamma.logpdf(x))(1.0)
    with pytest.raises(TypeError, match=r"scipy.stats.norm takes x, loc, scale; got 1 arguments, q="):
        rz.grad(lambda x: scipy.stats.norm.pdf(x, q=1.0))(1.0)


def test_scipy_is_loaded_when_it_is_needed() -> None:
    text = "import sys, numpy as np, riesz as rz; rz.grad(lambda x: np.sum(np.sin([x, 1.0])))(1.0);"
    text += (
        "print([m for m in ('scipy.stats', 'scipy.interpolate', 'scipy.ndimage', 'scipy.signal') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_hermitian_matrices_have_hermitian_gradients() -> None:
    a, b = M33, np.array([[0.0, 0.4, -0.1], [-0.4, 0.0, 0.7], [0.1, -0.7, 0.0]])
    for triangle in ("L", "U"):
        f = lambda a, b: np.linalg.eigvalsh(a + 1j * b, triangle)[0]  # noqa: B023, E731
        re, im = rz.grad(f, (0, 1))(a, b)
        v = np.linalg.eigh(a + 1j * b)[1][:, 0]
        np.testing.assert_allclose(re, np.outer(v, v.conj()).real, atol=1e-14)
        np.testing.assert_allclose(im, np.outer(v, v.conj()).imag, atol=1e-14)


def test_scipys_objects_stay_as_they_are() -> None:
    dist = scipy.stats.geom
    before = dict(vars(dist))

    def f(p: Any) -> Any:
        assert all([vars(dist)[k] is v for k, v in before.items()])
        return dist.logpmf(3, p)

    np.testing.assert_allclose(rz.grad(f)(0.3), 1 / 0.3 - 2 / 0.7)


@pytest.mark.parametrize(
    ("signature", "of", "said"),
    [
        ("(n),(n)->()", lambda f, x: f(x), "wrong number of positional arguments"),
        ("(n),(n)->()", lambda f, x: f(x, x[1:]), "inconsistent size for core dimension 'n'"),
        ("(n,n),(n)->()", lambda f, x: f(x, x), "does not have enough"),
        ("(n),(n)->(n)", lambda f, x: f(x, x), "does not have enough"),
        ("(n),(n)->(),()", lambda f, x: f(x, x), "wrong number of outputs"),
        ("(n)(n)", lambda f, x: f(x, x), "signature"),
    ],
)
def test_signatures_that_do_not_fit(signature, of, said):
    for run in (lambda g, x: g(x), lambda g, x: rz.function(g)(x)):
        with pytest.raises((TypeError, ValueError), match=said):
            run(lambda x: of(np.vectorize(lambda a, b: a @ b, signature=signature), x), n(3))
