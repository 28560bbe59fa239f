"""Types and shapes of what traced functions of SciPy give are those SciPy gives: every line of the coverage table, and stacks of matrices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import test_every_row
import test_linalg
import test_special

import riesz as rz
from riesz.tracing.rules.coverage import rows
from riesz.tracing.rules.scientific import distributions

pytestmark = [pytest.mark.filterwarnings("ignore")]
MODULES = {
    **test_every_row.SCOPE,
    **{"np": np, "onp": np, "s": scipy.special, "sl": scipy.linalg, "sf": scipy.fft, "sg": scipy.signal},
    **{"so": scipy.optimize, "si": scipy.integrate, "loose": {"epsabs": 1e-2, "epsrel": 1e-2}},
}
A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
v = np.array([3.0, 1.0, 0.5])

MATRICES = """
    sl.det(x); sl.inv(x); sl.cholesky(x); sl.cho_factor(x); sl.lu(x); sl.lu_factor(x); sl.eigh(x); sl.eigvalsh(x); sl.svd(x); sl.svdvals(x); sl.qr(x);
    sl.polar(x); sl.pinv(x); sl.expm(x); sl.sqrtm(x); sl.logm(x); sl.sinm(x); sl.cosm(x); sl.tanm(x); sl.sinhm(x); sl.coshm(x); sl.tanhm(x);
    sl.norm(x); sl.norm(x, 1); sl.norm(x, np.inf); sl.norm(x, 2); sl.norm(x, "nuc"); sl.norm(x, 1, axis=0); sl.norm(x, 1, keepdims=True);
    sl.norm(x[0]); sl.norm(x[0], 1); sl.norm(x[:1], 1); sl.block_diag(x, x); sl.block_diag(x, 1.0); sl.circulant(x); sf.irfft2(x); sf.irfftn(x);
    sf.fft2(x).real; sf.fftn(x).real; sf.ifft2(x).real; sf.ifftn(x).real; sf.rfft2(x).real; sf.rfftn(x).real; sg.convolve2d(x, x);
    s.logsumexp(x, axis=0)
"""
VECTORS = """
    sl.toeplitz(x); sl.hankel(x); sl.circulant(x); sf.fft(x).real; sf.ifft(x).imag; sf.rfft(x).real; sf.irfft(x); sf.hfft(x); sf.ihfft(x).real;
    sf.fftshift(x); sf.ifftshift(x); sg.convolve(x, x); sg.correlate(x, x); sg.fftconvolve(x, x); sg.oaconvolve(x, x); s.logsumexp(x); s.softmax(x);
    s.log_softmax(x); s.logsumexp(x, b=2.0); sl.solve_toeplitz(x, x); sl.solve_toeplitz((x, x), x)
"""
PAIRS = """
    sl.solve(x, y); sl.solve_triangular(x, y); sl.solve_banded((1, 1), x, y); sl.lstsq(x, y); sl.cho_solve(sl.cho_factor(x), y);
    sl.lu_solve(sl.lu_factor(x), y); sl.solve_sylvester(x, x, x * y); sl.solve_continuous_lyapunov(x, x * y); sl.solve_discrete_lyapunov(x, x * y);
    sl.eigh(x, x + 0 * y)[0]
"""
SOLVERS = """
    si.dblquad(lambda t, u: x[0] * t * u, 0, 1, 0, 1, **loose)[0]; si.quad_vec(lambda t: x * t, 0, 1, **loose)[0];
    si.nquad(lambda t, u: x[0] * t * u, [[0, 1], [0, 1]], opts=loose)[0]; si.quad(lambda t: x[0] * t, 0, 1, **loose)[0];
    si.tplquad(lambda t, u, w: x[0] * t * u * w, 0, 1, 0, 1, 0, 1, **loose)[0];
    F(lambda t: x - t, np.zeros(3)) :: anderson broyden1 broyden2 diagbroyden excitingmixing linearmixing newton_krylov;
    F(lambda t: (t - x[0].astype(float)) ** 2 + t**4, brack=(0.0, 1.0)) :: brent golden;
    F(lambda t: (t - x[0]) ** 2, -9.0, 9.0) :: fminbound;
    F(lambda t: np.sum((t - x) ** 2), np.zeros(3), disp=False) :: fmin fmin_bfgs fmin_cg fmin_powell;
    F(lambda t: np.sum((t - x) ** 2), np.zeros(3), lambda t: 2 * (t - x), disp=False) :: fmin_ncg;
    F(lambda t: np.sum((t - x) ** 2), np.zeros(3), approx_grad=True)[0] :: fmin_l_bfgs_b;
    F(lambda t: np.sum((t - x[:1]) ** 2), [(-5.0, 5.0)]).x :: differential_evolution direct dual_annealing shgo;
    F(lambda t, a, b: a * t + b, np.arange(3.0), x)[0] :: curve_fit; F(lambda t: t + t**3 - x, np.zeros(3)).x :: least_squares;
    F(lambda t: t + t**3 - x, np.zeros(3))[0] :: leastsq; F(np.eye(3), x).x :: lsq_linear; F(np.eye(3), x)[0] :: nnls
"""


def parted(text: str) -> list[str]:
    """The lines of a text; F is each of the functions of scipy.optimize that are named after `::`."""
    lines = [" ".join(part.split()).partition(" :: ") for part in text.split(";")]
    return [re.sub(r"\bF\(", f"so.{name}(", line) for line, _, names in lines for name in names.split() or [""]]


LINES = [(text, [np.linspace(*i, 3) for i in intervals]) for text, intervals, _ in test_special.LINES]
LINES += [(c.text, list(c.inputs)) for c in test_linalg.CASES if "sl." in c.text]
LINES += (
    [(text, [A]) for text in parted(MATRICES)]
    + [(text, [v]) for text in parted(VECTORS)]
    + [(text, [A, v]) for text in parted(PAIRS)]
    + [(text, [v]) for text in parted(SOLVERS)]
)
ROWS: dict[str, Any] = {
    text: test_every_row.example(name)
    for name, text in test_every_row.EXTRA.items()
    if name.startswith("scipy.") and name in text and not name.startswith("scipy.stats.")
}
"""Lines with full names → code, inputs."""
LINES += [(text, xs) for text, (_, xs) in ROWS.items()]
KINDS = {
    "float32": "ffff",
    "float32 first": "fddd",
    "float64 first": "dfff",
    "float32 and integers": "flll",
    "integers": "llll",
    "float16": "eeee",
}


def leaves(value: Any) -> list[Any]:
    return (
        [leaf for part in value for leaf in leaves(part)]
        if isinstance(value, (list, tuple))
        else []
        if value is None
        else [value]
    )


def function_of(text: str, count: int) -> Any:
    return ROWS[text][0] if text in ROWS else eval(f"lambda {', '.join('xyzu'[:count])}: {text}", MODULES)


def given(xs: list[Any], kinds: str) -> list[Any]:
    return [(np.ceil(x) if k == "l" else x).astype(k) for x, k in zip(xs, kinds, strict=False)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text, xs", LINES, ids=[text for text, _ in LINES])
def test_types_are_those_of_scipy(text: str, xs: list[Any], kind: str) -> None:
    if len(xs) == 1 and kind in ("float32 first", "float64 first", "float32 and integers"):
        return
    f, point = function_of(text, len(xs)), given(xs, KINDS[kind])
    try:
        expected = [
            np.asarray(y).real.dtype for y in leaves(f(*point))
        ]  # logm of float32 has imaginary parts that are rounding
    except Exception:  # a singular matrix, a point outside the domain
        return
    try:
        found = [np.asarray(y).dtype for y in leaves(rz.function(f)(*point))]
    except rz.RieszError:
        assert "integers" in kind  # singular matrices
        return
    assert found == expected


def test_every_function_of_scipy_in_the_coverage_table_is_among_the_lines() -> None:
    short = {"special": "s", "linalg": "sl", "fft": "sf", "signal": "sg", "optimize": "so", "integrate": "si"}
    texts = " ".join([text for text, _ in LINES])
    others = ("test_special.py", "test_scientific.py", "test_distributions.py", "test_sparse_arrays.py")
    others += ("test_linalg.py", "../functions/implicit/test_scipy_callbacks.py")  # they look at types, too
    elsewhere = " ".join([(Path(__file__).parent / name).read_text() for name in others])
    called = {"_zeta": "zeta"}
    missing = []
    for name, *_ in rows():
        if name.startswith("scipy.") and name.removeprefix("scipy.stats.") not in distributions.rows():
            module, function = name.split(".")[1], name.split(".")[-1]
            line = rf"\b({short.get(module, module)}\.{called.get(function, function)}|{re.escape(name)})\("
            if not re.search(line, texts) and not re.search(rf"\b{called.get(function, function)}\b", elsewhere):
                missing.append(name)
    assert not missing


@pytest.mark.parametrize(
    "text", ["s.gammainc(1.5, x)", "s.yn(2, x)", "sl.norm(x)", "s.polygamma(1, x)", "sl.solve_toeplitz(x, x)"]
)
def test_gradients_keep_the_type_of_the_argument(text: str) -> None:
    f, x = function_of(text, 1), v.astype(np.float32)
    single, double = rz.grad(lambda x: np.sum(f(x)))(x), rz.grad(lambda x: np.sum(f(x)))(x.astype(float))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=1e-4)


# -- stacks of matrices -----------------------------------------------------------------------------------

STACK = np.stack([A, A + np.diag([1.0, 0.0, 2.0])])
RIGHT = np.arange(12.0).reshape(2, 3, 2)
STACKS = [
    *[
        (f"sl.{name}(x)", [STACK])
        for name in ("svd", "qr", "cho_factor", "lu_factor", "polar", "toeplitz", "block_diag", "eigvalsh", "circulant")
    ],
    *[
        ("sl.lstsq(x, y)", [x, y])
        for x in (STACK, A, STACK[:, :, :2])
        for y in (v, RIGHT, RIGHT[:1], RIGHT[0])
        if np.ndim(x) + np.ndim(y) > 4
    ],
    *[
        ("sl.solve_toeplitz(0.1 * x + [3.0, 1.0, 0.5], y)", [x, y])
        for x in (A, STACK[:, 0], v)
        for y in (v, RIGHT[0], np.stack([RIGHT[0]] * len(x)))
    ][:5],
    *[("sl.solve_banded((1, 1), x, y)", [x, y]) for x in (STACK, A) for y in (v, RIGHT)][:3],
    *[
        (f"sl.{name}(0.1 * x, y)", [x, y])
        for name in ("solve_discrete_lyapunov", "solve_continuous_lyapunov")
        for x, y in ((STACK, A), (A, STACK))
    ],
    ("sl.solve_sylvester(x, x, y)", [A, STACK]),
    ("sl.eigh(x, y)[0]", [A, STACK]),
    ("sl.eigh(x, y)[0]", [STACK, A]),
    ("sl.cho_solve(sl.cho_factor(x), y)", [STACK, v]),
    ("sl.block_diag(x, y)", [A, STACK]),
    ("sl.toeplitz(x, y)", [A, v]),
    ("sl.cholesky(x)", [np.array(2.0)]),
    ("sl.sqrtm(x)", [np.zeros((2, 0, 0))]),
]


@pytest.mark.parametrize("text, xs", STACKS, ids=[f"{text} {[np.shape(x) for x in xs]}" for text, xs in STACKS])
def test_stacks_are_taken_as_scipy_takes_them(text: str, xs: list[Any]) -> None:
    if np.lib.NumpyVersion(scipy.__version__) < "1.17.0":
        pytest.skip("older versions of SciPy take fewer stacks")
    f = function_of(text, len(xs))
    expected, found = f(*xs), rz.function(f)(*xs)
    assert type(found) is type(expected) or not isinstance(expected, (list, tuple))
    assert [np.shape(y) for y in leaves(found)] == [np.shape(y) for y in leaves(expected)]
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    moving = [i for i, y in enumerate(leaves(expected)) if np.asarray(y).dtype.kind == "f"]
    d = [np.cos(np.arange(np.size(x))).reshape(np.shape(x)) for x in xs]
    d = [e + np.swapaxes(e, -1, -2) if np.ndim(e) > 1 and e.shape[-1] == e.shape[-2] else e for e in d]
    ahead, behind = [leaves(f(*[x + h * e for x, e in zip(xs, d, strict=True)])) for h in (1e-6, -1e-6)]
    slopes = rz.jvp(lambda *xs: [leaves(f(*xs))[i] for i in moving], tuple(xs), tuple(d))[1]
    for i, slope in zip(moving, slopes, strict=True):
        np.testing.assert_allclose(slope, (ahead[i] - behind[i]) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "y", [np.array(1.0), np.ones((4, 2)), np.ones((2, 4))], ids=["a number", "other rows", "a stack of other rows"]
)
def test_right_hand_sides_that_do_not_fit_are_named(y: Any) -> None:
    with pytest.raises(ValueError, match="right-hand side with as many rows"):
        rz.function(lambda x: scipy.linalg.lstsq(x, y)[0])(A)
