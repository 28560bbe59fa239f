"""Every row of docs/coverage.md: value, derivative forward and backward, second order, batches, empty arrays, float32.

A row's example is the first line of the other tables that calls its function, or one of those below.
"""

from __future__ import annotations

import re
from typing import Any

import cases_pointwise  # noqa: F401  (the tables enter themselves)
import cases_structure  # noqa: F401
import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats
import test_distributions
import test_linalg
import test_scientific
import test_special
from cases import CASES
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing.rules import coverage
from riesz.tracing.rules.scipy_names import CALLBACKS

pytestmark = [pytest.mark.filterwarnings("ignore")]
SCOPE = {
    **{"np": np, "onp": np, "s": scipy.special, "sl": scipy.linalg, "scipy": scipy, "rz": rz},
    **test_scientific.SCOPE,
    "tiny": lambda x: 1e-10 if x.dtype == np.float64 else 1e-4,
    **{"linalg": scipy.linalg, "sf": scipy.fft, "sparse": scipy.sparse, "ssl": scipy.sparse.linalg},
}
R = np.random.default_rng(7)
V, A, S = R.uniform(0.3, 0.9, 6), R.normal(size=(4, 4)), R.uniform(0.3, 0.9, (4, 5))
A = A @ A.T + np.diag([4.0, 5.0, 6.0, 7.0])
A = (A + A.T) / 2
EXTRA: dict[str, str] = {}


def _enter(block: str) -> None:
    """Lines `text: names`; F in the text is each of the functions."""
    for line in filter(None, [part.strip() for part in block.splitlines()]):
        text, _, names = line.rpartition(" :: ")
        for name in names.split():
            EXTRA[name] = re.sub(r"\bF\b", name, text)


_enter("""
x[F(x, 2)] :: np.argpartition
x[F(x)] ** 2 :: np.argsort
F(np.array([0, 1, 2, 0, 1, 2]), x) :: np.bincount
F(m) :: np.cov np.corrcoef np.median np.nanmedian np.sort
x * F(x, [0.4, 0.6]) :: np.digitize
x * F(np.array([0.4, 0.6]), x) :: np.searchsorted
np.abs(F(m)) ** 2 :: np.fft.fft np.fft.fft2 np.fft.fftn np.fft.ifft np.fft.ihfft np.fft.rfft np.fft.rfftn
F(m) :: np.fft.fftshift np.fft.ifftshift
F(np.fft.rfft(m)) :: np.fft.irfft
F(np.fft.fft(m)) :: np.fft.hfft
F(x, 2.0 + x, 4) :: np.geomspace np.logspace
a * F(a) :: np.linalg.matrix_rank
F(m, 30.0, axis=0) :: np.percentile np.nanpercentile
F(m, 0.3, axis=0) :: np.quantile np.nanquantile
F(m, 2) :: np.partition
F(m, np.argsort(m, axis=1), axis=1) :: np.take_along_axis
F(m, axis=1) :: scipy.special.logsumexp scipy.special.softmax scipy.special.log_softmax
x * F.pmf(3, 0, 6) :: scipy.stats.randint
F(np.array([0, 1, 0, 1, 0, 1]), (x, x**2)) :: np.choose
(lambda y: (F(y, x**2), y)[1])(np.zeros(6)) :: np.copyto
np.sum(F(x > 0.5, x) ** 2) :: np.extract
(lambda y: (F(y, x[:4]), y)[1])(np.ones((4, 4))) :: np.fill_diagonal
(lambda y: (F(y, np.arange(6) % 2 == 0, x[:3]), y)[1])(np.ones(6)) :: np.place
(lambda y: (F(y, np.arange(6) % 2 == 0, x), y)[1])(np.ones(6)) :: np.putmask
(lambda y: (F(y, [1, 3], x[:2]), y)[1])(np.ones(6)) :: np.put
(lambda y: (F(y, np.array([[1], [0]]), x[:2, None], 1), y)[1])(np.ones((2, 3))) :: np.put_along_axis
np.sum(x[F(x > 0.5)] ** 2) :: np.nonzero np.flatnonzero
F(np.arange(6.0), bins=3, weights=x)[0] :: np.histogram
F(np.arange(6.0), np.arange(6.0), bins=2, weights=x)[0] :: np.histogram2d
F((np.arange(6.0), np.arange(6.0)), bins=2, weights=x)[0] :: np.histogramdd
F(np.array([0.0, 5.0]), bins=3, range=(x[0], 2.0 + x[1])) :: np.histogram_bin_edges
x[F((x,))] :: np.lexsort
F(lambda t: np.sin(t * x[:, None]), x[0], 1.0 + x[1])[0] :: scipy.integrate.fixed_quad
F(x, 0.3) :: np.polyval
F(x) :: np.polyder
np.abs(F(x)) :: np.roots
F(x, np.arange(6) - 3) :: np.ldexp
F(m) :: np.nanstd np.nanvar
x[F(x)] ** 2 :: np.nanargmax np.nanargmin
F(x) :: np.nancumsum np.nancumprod
m[F(np.argmax(m), m.shape)] :: np.unravel_index
m.ravel()[F((np.argmax(m, 0), np.arange(5)), m.shape)] :: np.ravel_multi_index
a[F(a)] :: np.diag_indices_from np.tril_indices_from np.triu_indices_from
x * F(x, x) :: np.array_equal
x.astype(F(x)) :: np.common_type
F(m) :: scipy.fft.dct scipy.fft.dctn scipy.fft.dst scipy.fft.dstn scipy.fft.idct scipy.fft.idctn scipy.fft.idst scipy.fft.idstn
np.abs(F(m)) ** 2 :: scipy.fft.fft scipy.fft.fft2 scipy.fft.fftn scipy.fft.ifft scipy.fft.ifft2 scipy.fft.ifftn scipy.fft.rfft
np.abs(F(m)) ** 2 :: scipy.fft.rfft2 scipy.fft.rfftn scipy.fft.ihfft np.fft.ifft2 np.fft.ifftn np.fft.rfft2
F(m) :: scipy.fft.fftshift scipy.fft.ifftshift
F(np.fft.rfft(m)) :: scipy.fft.irfft
F(np.fft.fft(m)) :: scipy.fft.hfft
F(np.fft.rfft2(m)) :: scipy.fft.irfft2 scipy.fft.irfftn np.fft.irfft2 np.fft.irfftn
np.abs(F(a)[0]) :: scipy.linalg.eig
np.abs(F(a)) :: scipy.linalg.eigvals
F(np.stack([np.append(x[1:], 0.0), x + 2.0]), lower=False)[0] :: scipy.linalg.eig_banded
F(np.stack([np.append(0.0, x[1:]), x + 2.0])) :: scipy.linalg.eigvals_banded
F(x, x[1:])[0] :: scipy.linalg.eigh_tridiagonal
F(x, x[1:]) :: scipy.linalg.eigvalsh_tridiagonal
F(0.1 * a, 0.1 * a.T)[1] :: scipy.linalg.expm_frechet
F(a, 0.5) :: scipy.linalg.fractional_matrix_power
a * F(a) :: scipy.linalg.ishermitian scipy.linalg.issymmetric
F(a) :: scipy.linalg.pinvh
F(a) + a :: scipy.linalg.signm
F(x + np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0]), x**2) :: scipy.linalg.solve_circulant
F(a, np.eye(4), np.eye(4), np.eye(4)) :: scipy.linalg.solve_continuous_are
F(np.stack([x, x + 4.0]), x) :: scipy.linalg.solveh_banded
F(m, size=(3, 3)) :: scipy.ndimage.grey_dilation scipy.ndimage.grey_erosion scipy.ndimage.median_filter
F(m, 3) :: scipy.ndimage.maximum_filter scipy.ndimage.maximum_filter1d scipy.ndimage.minimum_filter scipy.ndimage.minimum_filter1d
F(m, 35, 3) :: scipy.ndimage.percentile_filter
F(m, 2, 3) :: scipy.ndimage.rank_filter
F(m, m[:2, :2]) :: scipy.signal.convolve2d scipy.signal.oaconvolve
F(m, 3) :: scipy.signal.medfilt scipy.signal.medfilt2d
F(m, np.ones((3, 3)), 2) :: scipy.signal.order_filter
F(np.tile(x, 4), nperseg=8)[1] :: scipy.signal.welch
F(x)[1] :: scipy.signal.periodogram
np.abs(F(np.tile(x, 4), np.tile(x**2, 4), nperseg=8)[1]) :: scipy.signal.csd
F(np.append(x, x**2), np.append(x**2, x[::-1]), nperseg=4)[1] :: scipy.signal.coherence
F([[a, None], [a, a.T]]).toarray() :: scipy.sparse.block_array scipy.sparse.bmat
F((sparse.csr_array(a), sparse.csr_array(m))).toarray() :: scipy.sparse.block_diag scipy.sparse.hstack
F((sparse.csr_array(a), sparse.csr_array(a))).toarray() :: scipy.sparse.vstack
(F((x, ([0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 1, 2])), shape=(4, 4)) @ np.ones(4)) ** 2 :: scipy.sparse.coo_array scipy.sparse.coo_matrix
(F((x, ([0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 1, 2])), shape=(4, 4)) @ np.ones(4)) ** 2 :: scipy.sparse.csr_array scipy.sparse.csr_matrix
(F((x, ([0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 1, 2])), shape=(4, 4)) @ np.ones(4)) ** 2 :: scipy.sparse.csc_array scipy.sparse.csc_matrix
(F((a, [0, 1, -1, 2]), shape=(4, 4)) @ np.ones(4)) ** 2 :: scipy.sparse.dia_array scipy.sparse.dia_matrix
(F([x, x[1:]], offsets=[0, 1]) @ x) :: scipy.sparse.diags_array scipy.sparse.diags
(F(np.stack([x, x**2]), [0, 1], 6, 6) @ x) :: scipy.sparse.spdiags
x * F(sparse.csr_array(np.eye(2))) :: scipy.sparse.issparse scipy.sparse.isspmatrix
F(sparse.csr_array(a), sparse.csr_array(m)).toarray() :: scipy.sparse.kron
F(sparse.csr_array(a)).toarray() :: scipy.sparse.tril scipy.sparse.triu
F(sparse.csr_array(a), a[0], rtol=tiny(a), atol=0.0)[0] :: scipy.sparse.linalg.bicg scipy.sparse.linalg.bicgstab scipy.sparse.linalg.cg
F(sparse.csr_array(a), a[0], rtol=tiny(a), atol=0.0)[0] :: scipy.sparse.linalg.cgs scipy.sparse.linalg.gcrotmk scipy.sparse.linalg.gmres
F(sparse.csr_array(a), a[0], rtol=tiny(a), atol=0.0)[0] :: scipy.sparse.linalg.lgmres scipy.sparse.linalg.qmr scipy.sparse.linalg.tfqmr
F(sparse.csr_array(a), a[0], rtol=tiny(a))[0] :: scipy.sparse.linalg.minres
F(sparse.csr_array(a), a[0], atol=tiny(a), btol=tiny(a))[0] :: scipy.sparse.linalg.lsqr scipy.sparse.linalg.lsmr
F(sparse.csr_array(a), 2, return_eigenvectors=False) :: scipy.sparse.linalg.eigsh
F(sparse.csr_array(a), 2, return_singular_vectors=False) :: scipy.sparse.linalg.svds
F(0.1 * sparse.csr_array(a), a[0]) :: scipy.sparse.linalg.expm_multiply
F(sparse.csc_array(a))(a[0]) :: scipy.sparse.linalg.factorized
F(sparse.csr_array(a)) :: scipy.sparse.linalg.norm
F(sparse.csc_array(a)).solve(a[0]) :: scipy.sparse.linalg.splu
F(sparse.csc_array(a), a[0]) :: scipy.sparse.linalg.spsolve
F.logpdf(x[:3] / np.sum(x[:3]), x[3:] + 1.0) :: scipy.stats.dirichlet
F.logpmf([2, 1, 3], x[:3], 6) :: scipy.stats.dirichlet_multinomial
F.logpdf(a, 5.5, a + np.eye(4)) :: scipy.stats.invwishart scipy.stats.wishart
F.logpdf(m, m**2, rowcov=np.eye(4)) :: scipy.stats.matrix_normal
F.logpmf([2, 1, 3], 6, x[:3] / np.sum(x[:3])) :: scipy.stats.multinomial
F.logpdf(a[0], a[1], a) :: scipy.stats.multivariate_normal scipy.stats.multivariate_t
interpolate.UnivariateSpline(np.arange(6.0), x, s=0)([0.4, 2.3]) :: scipy.interpolate.UnivariateSpline
F(np.arange(6.0), x)([0.4, 2.3]) :: scipy.interpolate.InterpolatedUnivariateSpline scipy.interpolate.BarycentricInterpolator
F(np.arange(6.0), x)([0.4, 2.3]) :: scipy.interpolate.KroghInterpolator
F(np.arange(6.0), x, [2.5])([0.4, 2.3]) :: scipy.interpolate.LSQUnivariateSpline
F(np.arange(4.0), np.arange(5.0), m)([0.4], [2.3]) :: scipy.interpolate.RectBivariateSpline
F(np.arange(6.0)[:, None], x)([[0.4], [2.3]]) :: scipy.interpolate.RBFInterpolator
F([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.2], [2.0, 0.0], [2.0, 1.0]], x)([[0.4, 0.3]]) :: scipy.interpolate.LinearNDInterpolator
F([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.2], [2.0, 0.0], [2.0, 1.0]], x)([[0.4, 0.3]]) :: scipy.interpolate.NearestNDInterpolator
F([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.2], [2.0, 0.0], [2.0, 1.0]], x, [[0.4, 0.3]]) :: scipy.interpolate.griddata
F(np.arange(6.0), x, [0.4, 2.3]) :: scipy.interpolate.barycentric_interpolate scipy.interpolate.krogh_interpolate
interpolate.splev([0.4, 2.3], F(np.arange(6.0), x)) :: scipy.interpolate.splrep
F(np.arange(6.0), x, [0.0] * 4 + [5.0] * 4)([0.4, 2.3]) :: scipy.interpolate.make_lsq_spline
np.lib.stride_tricks.sliding_window_view(x, 3) :: np.lib.sliding_window_view
scipy.special.zeta(3.0, x) :: scipy.special._zeta
""")
ROWS = {name: (what, rule) for name, what, rule in coverage.rows()}
REFUSED = {name for name, (what, _) in ROWS.items() if what == "refused"}
ELSEWHERE = {f"{home}.{name}" for home, names in CALLBACKS.items() for name in names}
"""Functions that are given functions: tests/functions/implicit."""
_OTHERWISE = """np.polydiv np.polymul np.roots scipy.interpolate.splev scipy.linalg.eigh_tridiagonal scipy.linalg.lu
scipy.linalg.eigvalsh_tridiagonal scipy.linalg.lu_factor scipy.linalg.lu_solve scipy.linalg.solve_continuous_lyapunov
scipy.ndimage.map_coordinates scipy.ndimage.rotate scipy.signal.convolve2d scipy.signal.oaconvolve scipy.signal.sosfilt
scipy.signal.sosfilt_zi scipy.signal.upfirdn scipy.stats.dirichlet scipy.stats.iqr scipy.stats.multinomial"""
EMPTY_OTHERWISE = set(_OTHERWISE.split())
"""Where the example on no numbers is refused, or gives no numbers, and SciPy does the other."""
WIDER = {"scipy.linalg.logm", "scipy.stats.dirichlet"}
"""Where SciPy's type for single precision is another."""


def object_of(name: str) -> Any:
    """What a row is about."""
    found: Any = {"np": np, "scipy": scipy}[name.split(".")[0]]
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def _called(text: str) -> set[int]:
    """The functions that a line names."""
    found: set[int] = set()
    for words in re.findall(r"\b([A-Za-z_]\w*(?:\.\w+)+)", text):
        head, *parts = words.split(".")
        x = SCOPE.get(head)
        for part in parts:
            x = getattr(x, part, None)
            found.add(id(x))
    return found


def _lines() -> dict[int, tuple[Any, list[Any], str]]:
    """Function → the first line that calls it, as code, and its inputs."""
    found: dict[int, tuple[Any, list[Any], str]] = {}

    def enter(text: str, f: Any, xs: Any) -> None:
        for key in _called(text):
            found.setdefault(key, (f, xs, text))

    for c in CASES:
        enter(c.text, lambda *xs, c=c: c.function(np, *xs), c.sample)
    for line in test_special.LINED:
        enter(line.text, line.f, lambda line=line: list(line.points()))
    for c in test_linalg.CASES:
        enter(c.text, test_linalg.written(c), lambda c=c: list(c.inputs))
    for text, xs in test_scientific.CASES:
        enter(text, test_scientific.code(text, len(xs)), lambda xs=xs: list(xs))
    return found


LINES = _lines()


def example(name: str) -> tuple[Any, list[Any]] | None:
    """A function that calls that of the row, and its arguments."""
    last = name.split(".")[-1]
    if name in EXTRA:
        text = EXTRA[name]
        names = [k for k in "xma" if re.search(rf"\b{k}\b", text)]
        inputs = {"x": V, "m": S, "a": A}
        return eval(f"lambda {', '.join(names)}: {text}", SCOPE), [inputs[k] for k in names]
    if name.startswith("scipy.stats.") and last in test_distributions.NAMES:
        method = test_distributions.known(last)[0]
        xs = test_distributions.arguments(last, method)
        moving = [i for i, x in enumerate(xs) if i == 0 or not np.ndim(x)]
        discrete = test_distributions.rows()[last].discrete
        if discrete:  # the parameters that are no whole numbers
            whole = test_distributions.WHOLE.get(last, 0)
            moving = [i for i in moving if i > whole and i < len(xs) - 1] or [len(xs) - 2]
        fixed = test_distributions.FIXED.get(last)
        moving = [i for i in moving if fixed is None or i != fixed + 1]

        def f(*given: Any) -> Any:
            every = list(xs)
            for i, x in zip(moving, given, strict=True):
                every[i] = x
            return getattr(getattr(scipy.stats, last), method)(*every)

        return f, [np.asarray(xs[i], float)[()] for i in moving]
    try:
        found = LINES.get(id(object_of(name)))
    except AttributeError:
        return None
    return None if found is None else (found[0], [np.asarray(x)[()] for x in found[1]()])


NAMES = sorted(ROWS.keys() - REFUSED - ELSEWHERE)
SOME = pytest.mark.parametrize("name", sampled(NAMES, 8, str))


def leaves(y: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(y, dict):
        return [leaf for k in y for leaf in leaves(y[k])]
    return [leaf for part in y for leaf in leaves(part)] if isinstance(y, (list, tuple)) else [y]


def moving(f: Any, xs: list[Any]) -> Any:
    """The floats of a result, as a tuple; None where there are none."""
    at = [i for i, y in enumerate(leaves(f(*xs))) if np.asarray(y).dtype.kind == "f"]
    return (lambda *xs: tuple([leaves(f(*xs))[i] for i in at])) if at else None


def slope(f: Any, xs: list[Any], dxs: list[Any], h: float = 1e-4) -> list[Any]:
    """Differences of fourth order."""
    at = lambda t: [np.asarray(y) for y in f(*[x + t * d for x, d in zip(xs, dxs, strict=True)])]  # noqa: E731
    return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)]


def close(found: Any, wanted: Any, tolerance: float) -> None:
    """Alike where the numbers are finite, relative to the largest."""
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a, float), np.asarray(b, float)
        assert a.shape == b.shape
        good = np.isfinite(b)
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0, where=good)))
        np.testing.assert_allclose(a[good], b[good], rtol=tolerance, atol=tolerance * scale)


def test_every_row_has_an_example() -> None:
    assert [name for name in NAMES if example(name) is None] == []


@SOME
def test_value_forward_backward_and_second_order(name: str) -> None:
    f, xs = example(name)  # type: ignore[misc]
    wanted, found = leaves(f(*xs)), leaves(rz.function(f)(*xs))
    assert [np.asarray(y).dtype for y in found] == [np.asarray(y).dtype for y in wanted]
    close([np.abs(y) for y in found], [np.abs(y) for y in wanted], 1e-9)
    g = moving(f, xs)
    if g is None:
        return
    rng = np.random.default_rng(3)
    dxs = [rng.normal(size=np.shape(x)) for x in xs]
    dxs = [d + d.mT if np.ndim(x) > 1 and np.shape(x) == np.shape(x.mT) and np.allclose(x, x.mT) else d
           for x, d in zip(xs, dxs, strict=True)]  # fmt: skip
    forward = rz.jvp(g, tuple(xs), tuple(dxs))[1]
    close(forward, slope(g, xs, dxs), 2e-5)
    ws = [np.where(np.isfinite(y), rng.normal(size=np.shape(y)), 0.0)[()] for y in g(*xs)]
    back = rz.vjp(g, *xs)[1](tuple(ws))
    there = sum([float(np.sum(w * np.where(w == 0, 0.0, y))) for w, y in zip(ws, forward, strict=True)])
    here = sum([float(np.sum(b * d)) for b, d in zip(back, dxs, strict=True)])
    assert here == pytest.approx(there, rel=1e-8, abs=1e-8)

    def loss(*xs: Any) -> Any:
        return sum([np.sum(np.where(w == 0, 0.0, w * np.tanh(y))) for w, y in zip(ws, g(*xs), strict=True)])

    gradient = rz.grad(loss, tuple(range(len(xs))))
    second = rz.hvp(loss, tuple(xs), tuple(dxs))
    close(second if len(xs) > 1 else (second,), slope(gradient, xs, dxs), 1e-4)


@SOME
def test_a_batch_is_one_call_for_each(name: str) -> None:
    f, xs = example(name)  # type: ignore[misc]
    if (g := moving(f, xs)) is None:
        return
    several = [np.stack([x, x, x]) for x in xs]
    try:
        found = rz.vmap(g)(*several)
    except TraceError as problem:  # what needs the point cannot have several
        assert re.search("vmap|known|decide|agree", str(problem)), problem
        return
    close([y[1] for y in found], g(*xs), 1e-9)
    mapped = rz.grad(lambda *xs: sum([np.sum(np.where(np.isfinite(y), y, 0.0)) for y in rz.vmap(g)(*xs)]), 0)(*several)
    alone = rz.grad(lambda *xs: sum([np.sum(np.where(np.isfinite(y), y, 0.0)) for y in g(*xs)]), 0)(*xs)
    close([mapped[2]], [alone], 1e-8)


@SOME
def test_empty_arrays_give_what_numpy_gives(name: str) -> None:
    f, xs = example(name)  # type: ignore[misc]
    empty = [x[:0] if np.ndim(x) else x for x in xs]
    if name in EMPTY_OTHERWISE or not any([np.ndim(x) for x in xs]):
        return
    try:
        wanted = leaves(f(*[np.array(x)[()] for x in empty]))
    except Exception:
        with pytest.raises(Exception):  # noqa: B017
            rz.function(f)(*empty)
        return
    found = leaves(rz.function(f)(*empty))
    assert [(np.shape(y), np.asarray(y).dtype) for y in found] == [(np.shape(y), np.asarray(y).dtype) for y in wanted]


@SOME
def test_single_precision(name: str) -> None:
    f, xs = example(name)  # type: ignore[misc]
    small = [np.asarray(x, np.float32)[()] for x in xs]
    wanted = leaves(f(*small))
    found = leaves(rz.function(f)(*small))
    assert name in WIDER or [(np.shape(y), np.asarray(y).dtype) for y in found] == [
        (np.shape(y), np.asarray(y).dtype) for y in wanted
    ]
    close([np.abs(y) for y in found], [np.abs(y) for y in wanted], 5e-3)
    if (g := moving(f, small)) is not None:
        gradient = rz.grad(lambda *xs: sum([np.sum(y) for y in g(*xs)]), tuple(range(len(xs))))(*small)
        assert [np.asarray(d).dtype for d in gradient] == [np.float32] * len(xs)


@pytest.mark.parametrize("name", sampled(sorted(REFUSED), 2, str))
def test_what_is_refused_says_so(name: str) -> None:
    with pytest.raises(TraceError, match=re.escape(ROWS[name][1][:30])):
        rz.grad(lambda x: np.sum(object_of(name)(x, x[:2]) if "diff" in name or "1d" in name else object_of(name)(x)))(
            V
        )
