"""scipy.special against SciPy (values) and JAX, Cauchy's integral or finite differences (derivatives): every function with a rule.

Each line is an expression in `s` (scipy.special or jax.scipy.special), the intervals its arguments are drawn from, and who knows the derivatives:
JAX; "circle": Cauchy's formula over SciPy's function of a complex argument, exact to rounding, where JAX has no such function or is less
accurate (gamma, digamma, erfcx, dawsn, exp1, expi, sici, hyp1f1, spence); "steps": central differences, where SciPy knows real arguments only.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import cache
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import pytest
import scipy.special
from sampling import sampled

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing import traced
from riesz.tracing.rules import special
from riesz.tracing.rules.scientific import gamma_functions

jax.config.update("jax_enable_x64", True)
pytestmark = [pytest.mark.filterwarnings("ignore")]

LINES = [
    ("s.gamma(x)", [(0.3, 4.0)], "circle"),
    ("s.gamma(x - 3.0)", [(0.2, 0.8)], "circle"),
    ("s.gammaln(x)", [(0.3, 6.0)], "jax"),
    ("s.loggamma(x)", [(0.3, 6.0)], "circle"),
    ("s.digamma(x)", [(0.3, 6.0)], "circle"),
    ("s.psi(x)", [(0.3, 6.0)], "circle"),
    ("s.polygamma(1, x)", [(0.5, 6.0)], "steps"),
    ("s.polygamma(0, x)", [(0.5, 6.0)], "steps"),
    ("s.rgamma(x)", [(-2.7, 4.0)], "circle"),
    ("s.multigammaln(x, 3)", [(1.5, 6.0)], "jax"),
    ("s.beta(x, y)", [(0.5, 3.0), (0.5, 3.0)], "jax"),
    ("s.betaln(x, y)", [(0.5, 3.0), (0.5, 3.0)], "jax"),
    ("s.betainc(1.5, 2.5, x)", [(0.1, 0.9)], "jax"),
    ("s.betaincc(1.5, 2.5, x)", [(0.1, 0.9)], "steps"),
    ("s.betaincinv(1.5, 2.5, x)", [(0.1, 0.9)], "steps"),
    ("s.betainccinv(1.5, 2.5, x)", [(0.1, 0.9)], "steps"),
    ("s.gammainc(1.5, x)", [(0.2, 4.0)], "jax"),
    ("s.gammaincc(1.5, x)", [(0.2, 4.0)], "jax"),
    ("s.gammaincinv(1.5, x)", [(0.1, 0.9)], "steps"),
    ("s.gammainccinv(1.5, x)", [(0.1, 0.9)], "steps"),
    ("s.betainc(x, y, z)", [(0.5, 3.0), (0.4, 2.0), (0.1, 0.9)], "steps"),
    ("s.betaincc(x, y, z)", [(0.5, 3.0), (0.4, 2.0), (0.1, 0.9)], "steps"),
    ("s.betaincinv(x, y, z)", [(0.8, 3.0), (0.8, 2.0), (0.2, 0.8)], "steps"),
    ("s.betainccinv(x, y, z)", [(0.8, 3.0), (0.8, 2.0), (0.2, 0.8)], "steps"),
    ("s.gammainc(x, y)", [(0.5, 5.0), (0.2, 6.0)], "steps"),
    ("s.gammaincc(x, y)", [(0.5, 5.0), (0.2, 6.0)], "steps"),
    ("s.gammaincinv(x, y)", [(0.8, 5.0), (0.1, 0.9)], "steps"),
    ("s.gammainccinv(x, y)", [(0.8, 5.0), (0.1, 0.9)], "steps"),
    ("s.stdtr(x, y)", [(0.7, 9.0), (-2.0, 2.0)], "steps"),
    ("s.stdtrit(x, y)", [(1.5, 9.0), (0.2, 0.8)], "steps"),
    ("s.chdtr(x, y)", [(0.7, 9.0), (0.3, 6.0)], "steps"),
    ("s.chdtrc(x, y)", [(0.7, 9.0), (0.3, 6.0)], "steps"),
    ("s.chdtri(x, y)", [(1.5, 9.0), (0.2, 0.8)], "steps"),
    ("s.pdtr(2, x)", [(0.3, 6.0)], "steps"),
    ("s.pdtrc(2, x)", [(0.3, 6.0)], "steps"),
    ("s.pdtri(2, x)", [(0.2, 0.8)], "steps"),
    ("s.gdtr(x, y, 1.3)", [(0.7, 3.0), (0.7, 3.0)], "steps"),
    ("s.gdtrc(x, y, 1.3)", [(0.7, 3.0), (0.7, 3.0)], "steps"),
    ("s.gdtria(0.3, x, y)", [(0.7, 3.0), (0.7, 3.0)], "steps"),
    ("s.gdtrix(x, y, 0.3)", [(0.7, 3.0), (0.7, 3.0)], "steps"),
    ("s.bdtr(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.bdtrc(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.bdtri(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.nbdtr(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.nbdtrc(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.nbdtri(2, 5, x)", [(0.2, 0.8)], "steps"),
    ("s.fdtr(x, y, 1.3)", [(1.7, 6.0), (1.7, 6.0)], "steps"),
    ("s.fdtrc(x, 4.0, y)", [(1.7, 6.0), (0.7, 3.0)], "steps"),
    ("s.fdtri(x, 4.0, y)", [(1.7, 6.0), (0.2, 0.8)], "steps"),
    ("s.nrdtrimn(x, y, 0.4)", [(0.2, 0.4), (0.5, 2.0)], "steps"),
    ("s.nrdtrisd(x, y, 2.4)", [(0.2, 0.4), (0.6, 0.9)], "steps"),
    ("s.eval_jacobi(3, 0.5, 1.5, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_gegenbauer(3, 1.5, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_legendre(4, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_legendre(0, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_chebyt(4, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_chebyu(4, x)", [(-0.9, 0.9)], "steps"),
    ("s.eval_genlaguerre(3, 0.5, x)", [(0.1, 3.0)], "steps"),
    ("s.eval_hermite(3, x)", [(-2.0, 2.0)], "steps"),
    ("s.eval_hermitenorm(3, x)", [(-2.0, 2.0)], "steps"),
    ("s.eval_laguerre(3, x)", [(0.1, 3.0)], "steps"),
    ("s.ellipkinc(x, y)", [(0.2, 1.4), (0.2, 0.8)], "steps"),
    ("s.ellipeinc(x, y)", [(0.2, 1.4), (0.2, 0.8)], "steps"),
    ("s.poch(x, y)", [(0.5, 3.0), (0.5, 3.0)], "jax"),
    ("s.binom(x, y)", [(3.1, 5.0), (0.5, 2.0)], "steps"),
    ("s.factorial(x)", [(0.5, 4.0)], "steps"),
    ("s.comb(x, y)", [(3.1, 5.0), (0.5, 2.0)], "steps"),
    ("s.comb(x, y, repetition=True)", [(3.1, 5.0), (0.5, 2.0)], "steps"),
    ("s.zeta(2.5, x)", [(0.5, 4.0)], "steps"),
    ("s.erf(x)", [(-2.0, 2.0)], "jax"),
    ("s.erfc(x)", [(-2.0, 2.0)], "jax"),
    ("s.erfi(x)", [(-2.0, 2.0)], "circle"),
    ("s.erfcx(x)", [(-2.0, 3.0)], "circle"),
    ("s.erfcx(x)", [(7.5, 12.0)], "circle"),
    ("s.dawsn(x)", [(-3.0, 3.0)], "circle"),
    ("s.dawsn(x)", [(-12.0, -7.5)], "circle"),
    ("s.erfinv(x)", [(-0.9, 0.9)], "jax"),
    ("s.erfcinv(x)", [(0.1, 1.9)], "steps"),
    ("s.ndtr(x)", [(-2.0, 2.0)], "jax"),
    ("s.log_ndtr(x)", [(-3.0, 3.0)], "circle"),
    ("s.ndtri(x)", [(0.1, 0.9)], "jax"),
    ("s.ndtri_exp(x)", [(-3.0, -0.2)], "steps"),
    ("s.owens_t(x, y)", [(-2.0, 2.0), (-2.0, 2.0)], "steps"),
    ("s.expit(x)", [(-3.0, 3.0)], "jax"),
    ("s.log_expit(x)", [(-3.0, 3.0)], "steps"),
    ("s.logit(x)", [(0.1, 0.9)], "jax"),
    ("s.xlogy(x, y)", [(-2.0, 2.0), (0.5, 3.0)], "jax"),
    ("s.xlog1py(x, y)", [(-2.0, 2.0), (-0.5, 3.0)], "jax"),
    ("s.entr(x)", [(0.2, 3.0)], "jax"),
    ("s.rel_entr(x, y)", [(0.2, 3.0), (0.2, 3.0)], "jax"),
    ("s.kl_div(x, y)", [(0.2, 3.0), (0.2, 3.0)], "jax"),
    ("s.j0(x)", [(-4.0, 9.0)], "steps"),
    ("s.j1(x)", [(-4.0, 9.0)], "steps"),
    ("s.jn(2, x)", [(0.3, 9.0)], "circle"),
    ("s.jv(1.5, x)", [(0.5, 9.0)], "circle"),
    ("s.jve(1.5, x)", [(0.5, 9.0)], "steps"),
    ("s.y0(x)", [(0.5, 9.0)], "steps"),
    ("s.y1(x)", [(0.5, 9.0)], "steps"),
    ("s.yn(2, x)", [(0.7, 9.0)], "steps"),
    ("s.yv(1.5, x)", [(0.7, 9.0)], "circle"),
    ("s.yve(1.5, x)", [(0.7, 9.0)], "steps"),
    ("s.i0(x)", [(-3.0, 3.0)], "jax"),
    ("s.i1(x)", [(-3.0, 3.0)], "jax"),
    ("s.iv(1.5, x)", [(0.5, 5.0)], "circle"),
    ("s.i0e(x)", [(-3.0, 3.0)], "jax"),
    ("s.i1e(x)", [(-3.0, 3.0)], "jax"),
    ("s.ive(1.5, x)", [(0.5, 5.0)], "steps"),
    ("s.k0(x)", [(0.5, 5.0)], "steps"),
    ("s.k1(x)", [(0.5, 5.0)], "steps"),
    ("s.kn(2, x)", [(0.7, 5.0)], "steps"),
    ("s.kv(1.5, x)", [(0.7, 5.0)], "circle"),
    ("s.k0e(x)", [(0.5, 5.0)], "steps"),
    ("s.k1e(x)", [(0.5, 5.0)], "steps"),
    ("s.kve(1.5, x)", [(0.7, 5.0)], "circle"),
    ("s.struve(1.5, x)", [(0.5, 9.0)], "steps"),
    ("s.modstruve(1.5, x)", [(0.5, 5.0)], "steps"),
    ("s.hyp0f1(1.5, x)", [(-3.0, 3.0)], "circle"),
    ("s.hyp1f1(1.5, 2.5, x)", [(-3.0, 3.0)], "circle"),
    ("s.hyp2f1(1.5, 0.5, 2.5, x)", [(-0.8, 0.6)], "circle"),
    ("s.hyperu(1.5, 2.5, x)", [(0.5, 4.0)], "steps"),
    ("s.exprel(x)", [(-3.0, 3.0)], "steps"),
    ("s.spence(x)", [(0.3, 3.0)], "circle"),
    ("s.ellipk(x)", [(-2.0, 0.8)], "steps"),
    ("s.ellipe(x)", [(-2.0, 0.8)], "steps"),
    ("s.exp1(x)", [(0.3, 4.0)], "circle"),
    ("s.expi(x)", [(0.3, 4.0)], "circle"),
    ("s.expn(1, x)", [(0.5, 4.0)], "steps"),
    ("s.sici(x)[0]", [(-3.0, 4.0)], "circle"),
    ("s.sici(x)[1]", [(0.3, 4.0)], "circle"),
    ("s.shichi(x)[0]", [(-3.0, 3.0)], "circle"),
    ("s.shichi(x)[1]", [(0.3, 4.0)], "circle"),
    ("s.fresnel(x)[0]", [(-2.0, 2.0)], "circle"),
    ("s.fresnel(x)[1]", [(-2.0, 2.0)], "circle"),
    ("s.airy(x)[0]", [(-2.0, 2.0)], "circle"),
    ("s.airy(x)[1]", [(-2.0, 2.0)], "circle"),
    ("s.airy(x)[2]", [(-2.0, 2.0)], "circle"),
    ("s.airy(x)[3]", [(-2.0, 2.0)], "circle"),
    ("s.boxcox(x, y)", [(0.5, 3.0), (-1.5, 1.5)], "steps"),
    ("s.boxcox1p(x, y)", [(-0.5, 3.0), (-1.5, 1.5)], "steps"),
    ("s.inv_boxcox(x, y)", [(0.2, 1.0), (0.3, 1.5)], "steps"),
    ("s.inv_boxcox1p(x, y)", [(0.2, 1.0), (0.3, 1.5)], "steps"),
    ("s.powm1(x, y)", [(0.5, 3.0), (-1.5, 1.5)], "steps"),
    ("s.cbrt(x)", [(0.5, 3.0)], "steps"),
    ("s.exp2(x)", [(-2.0, 2.0)], "steps"),
    ("s.exp10(x)", [(-2.0, 1.0)], "steps"),
    ("s.expm1(x)", [(-2.0, 2.0)], "circle"),
    ("s.log1p(x)", [(-0.5, 2.0)], "circle"),
    ("s.cosm1(x)", [(-2.0, 2.0)], "steps"),
    ("s.sindg(50.0 * x)", [(-2.0, 2.0)], "steps"),
    ("s.cosdg(50.0 * x)", [(-2.0, 2.0)], "steps"),
    ("s.tandg(20.0 * x)", [(-2.0, 2.0)], "steps"),
    ("s.cotdg(20.0 * x)", [(0.5, 3.0)], "steps"),
    ("s.radian(x, y, z)", [(-2.0, 2.0), (-2.0, 2.0), (-2.0, 2.0)], "steps"),
    ("s.huber(x, y)", [(0.5, 0.9), (1.2, 2.0)], "steps"),
    ("s.huber(x, -y)", [(2.5, 2.9), (1.2, 2.0)], "steps"),
    ("s.pseudo_huber(x, y)", [(0.5, 2.0), (-2.0, 2.0)], "steps"),
    ("s.gammasgn(x)", [(-1.9, -1.1)], "steps"),
]
TOLERANCE = {"jax": 1e-12, "circle": 1e-12, "steps": 1e-8}
POINTS = 4


class Line:
    """An expression and where its derivatives are known from."""

    def __init__(self, text: str, intervals: list[tuple[float, float]], source: str) -> None:
        self.text = text
        self.intervals = intervals
        self.source = source
        self.code = eval(f"lambda s, {', '.join('xyz'[: len(intervals)])}: {text}")

    def __repr__(self) -> str:
        return f"{self.text} {self.intervals}"

    def f(self, *xs: Any) -> Any:
        """With SciPy."""
        return self.code(scipy.special, *xs)

    @property
    def arity(self) -> int:
        """The number of arguments that move."""
        return len(self.intervals)

    def points(self, shape: tuple[int, ...] = (POINTS,)) -> list[Any]:
        """Arguments within the intervals."""
        rng = np.random.default_rng(1)
        n = int(np.prod(shape))
        return [
            (a + (b - a) * (rng.permutation(n) + rng.uniform(0.1, 0.9, n)) / max(n, 1)).reshape(shape)
            for a, b in self.intervals
        ]


LINED = [Line(*line) for line in LINES]
every = pytest.mark.parametrize("line", sampled(LINED, 3), ids=repr)


def steps(f: Any, xs: list[Any], i: int, h: float = 2e-3) -> Any:
    """∂f/∂xᵢ by central differences of sixth order."""
    total: Any = 0.0
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        up, down = [[x + sign * k * h if j == i else x for j, x in enumerate(xs)] for sign in (1, -1)]
        total = total + weight / h * (np.asarray(f(*up)) - np.asarray(f(*down)))
    return total


def circle(f: Any, x: Any, n: int, count: int = 64) -> Any:
    """f⁽ⁿ⁾ by Cauchy's formula on a small circle, whose radius keeps it away from 0 and 1; exact but for rounding."""
    radius = 0.25 * np.minimum(np.where(np.abs(x) < 0.5, np.abs(x - np.rint(x)) + 0.1, 0.5), 0.5)
    turns = np.exp(2j * np.pi * np.arange(count) / count)
    values = f(x[:, None] + radius[:, None] * turns)
    return np.real(np.mean(values * turns**-n, axis=1)) * [1.0, 1.0, 2.0, 6.0][n] / radius**n


@cache
def reference(line: Line) -> tuple[Any, Any]:
    """First partial derivatives, one array per argument, and second ones, a table of arrays."""
    xs, every_ = line.points(), range(line.arity)
    if line.source == "circle":
        return [circle(line.f, xs[0], 1)], [[circle(line.f, xs[0], 2)]]
    if line.source == "steps":
        own = rz.grad(lambda *v: np.sum(line.f(*v)), tuple(every_))
        return [steps(line.f, xs, i) for i in every_], [
            [steps(lambda *v, i=i: own(*v)[i], xs, j) for j in every_] for i in every_
        ]
    gradient = jax.grad(lambda *v: jnp.sum(line.code(jax.scipy.special, *v)), tuple(every_))
    given = tuple([jnp.asarray(x) for x in xs])
    ones = [tuple([jnp.ones(POINTS) if i == j else jnp.zeros(POINTS) for i in every_]) for j in every_]
    columns = [jax.jvp(gradient, given, ones[j])[1] for j in every_]
    return gradient(*given), [[columns[j][i] for j in every_] for i in every_]


def close(found: Any, wanted: Any, line: Line, what: str, tolerance: float | None = None) -> None:
    """The same shape, and the same numbers relative to the largest of them."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    tolerance = TOLERANCE[line.source] if tolerance is None else tolerance
    assert found.shape == wanted.shape
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@every
def test_value_is_scipys(line: Line) -> None:
    xs = line.points()
    close(rz.function(line.f)(*xs), line.f(*xs), line, "value", 1e-15)


@every
def test_derivatives_of_first_and_second_order(line: Line) -> None:
    rng = np.random.default_rng(2)
    xs, (first, second), every_ = line.points(), reference(line), range(line.arity)
    dxs, w = [rng.normal(size=POINTS) for _ in every_], rng.normal(size=POINTS)
    close(
        rz.jvp(line.f, tuple(xs), tuple(dxs))[1], sum([d * dx for d, dx in zip(first, dxs, strict=True)]), line, "jvp"
    )
    back = rz.vjp(line.f, *xs)[1](w)
    turned = rz.hvp(lambda *v: np.sum(w * line.f(*v)), tuple(xs), tuple(dxs))
    again = rz.jvp(rz.grad(lambda *v: np.sum(w * line.f(*v)), tuple(every_)), tuple(xs), tuple(dxs))[1]
    for i in every_:
        close((back if isinstance(back, tuple) else (back,))[i], w * first[i], line, "vjp")
        wanted = w * sum([second[i][j] * dxs[j] for j in every_])
        close(
            turned if line.arity == 1 else turned[i],
            wanted,
            line,
            "Hessian",
            None if line.source != "circle" else 1e-11,
        )
        close(again[i], turned if line.arity == 1 else turned[i], line, "derivative of the gradient", 1e-11)


@every
def test_third_derivative_is_the_slope_of_the_second(line: Line) -> None:
    xs = [float(x[1]) for x in line.points()]
    for i in range(line.arity):
        second = rz.grad(rz.grad(line.f, i), i)
        wanted = steps(second, xs, i)
        assert rz.grad(second, i)(*xs) == pytest.approx(float(wanted), rel=1e-6, abs=1e-6)


@every
def test_single_precision_stays(line: Line) -> None:
    xs = [x.astype(np.float32) for x in line.points()]
    value, back = rz.vjp(line.f, *xs)
    found = back(np.ones(POINTS, value.dtype))
    assert value.dtype == line.f(*xs).dtype  # where a Python number comes along, SciPy leaves single precision
    close(value, line.f(*line.points()), line, "value", 1e-4)
    for i, g in enumerate(found if isinstance(found, tuple) else (found,)):
        assert g.dtype == np.float32 or not np.any(g)
        close(g, reference(line)[0][i], line, "vjp", 5e-3)


@every
def test_numbers_empty_arrays_and_arrays_of_one(line: Line) -> None:
    for shape in ((0,), (1,), (2, 0), (1, 1), ()):
        xs = line.points(shape)
        value, back = rz.vjp(line.f, *xs)
        found = back(np.ones(shape))
        assert np.shape(value) == shape
        np.testing.assert_allclose(value, line.f(*xs), rtol=1e-15)
        assert all([np.shape(g) == shape for g in (found if isinstance(found, tuple) else (found,))])


@pytest.mark.parametrize("line", [line for line in LINED if line.arity > 1], ids=repr)
def test_broadcasting(line: Line) -> None:
    wide = line.points((3, 2))
    xs = [wide[0][:, :1], wide[1][0], *[w[:1, :1] for w in wide[2:]]]
    spread = np.broadcast_arrays(*xs)
    argnums = tuple(range(line.arity))
    close(rz.function(line.f)(*xs), line.f(*xs), line, "value", 1e-15)
    full = rz.grad(lambda *v: np.sum(line.f(*v)), argnums)(*[np.array(x) for x in spread])
    found = rz.grad(lambda *v: np.sum(line.f(*v)), argnums)(*xs)
    sums = [full[0].sum(1, keepdims=True), full[1].sum(0), *[g.sum(keepdims=True) for g in full[2:]]]
    for a, b in zip(found, sums, strict=True):
        close(a, b, line, "gradient", 1e-14)


def test_orders_broadcast_too() -> None:
    x = np.array([0.5, 2.0, 3.5])
    orders = np.arange(3)[:, None]
    np.testing.assert_allclose(
        rz.function(lambda x: scipy.special.jv(orders, x))(x), scipy.special.jv(orders, x), rtol=1e-15
    )
    np.testing.assert_allclose(
        rz.grad(lambda x: np.sum(scipy.special.jv(orders, x)))(x), scipy.special.jvp(orders, x).sum(0), rtol=1e-13
    )


# -- special points ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "wanted"),
    [
        ("s.xlogy(0.0, x)", 0.0, 0.0),
        ("s.xlogy(x, 2.0)", 0.0, np.log(2.0)),
        ("s.xlog1py(0.0, x)", -1.0, 0.0),
        ("s.entr(x)", 0.0, np.inf),
        ("s.entr(x)", 1.0, -1.0),
        ("s.rel_entr(0.0, x)", 0.0, 0.0),
        ("s.kl_div(0.0, x)", 0.0, 0.0),
        ("s.kl_div(0.0, x)", 2.0, 1.0),
        ("s.spence(x)", 1.0, -1.0),
        ("s.exprel(x)", 0.0, 0.5),
        ("s.ellipk(x)", 0.0, np.pi / 8),
        ("s.ellipe(x)", 0.0, -np.pi / 8),
        ("s.rgamma(x)", 0.0, 1.0),
        ("s.rgamma(x)", -3.0, -6.0),
        ("s.j1(x)", 0.0, 0.5),
        ("s.i1(x)", 0.0, 0.5),
        ("s.jv(2, x)", 0.0, 0.0),
        ("s.sici(x)[0]", 0.0, 1.0),
        ("s.shichi(x)[0]", 0.0, 1.0),
        ("s.betainc(1.0, 2.0, x)", 0.0, 2.0),
        ("s.gammainc(1.0, x)", 0.0, 1.0),
        ("s.boxcox(2.0, x)", 0.0, 0.5 * np.log(2.0) ** 2),
        ("s.inv_boxcox(1.5, x)", 0.0, -0.5 * 1.5**2 * np.exp(1.5)),
        ("s.pseudo_huber(1.0, x)", 0.0, 0.0),
        ("s.log_ndtr(x)", -40.0, 40.02496884720726),
        ("s.log_ndtr(x)", 60.0, 0.0),
        ("s.erfcx(x)", 1e6, -1e-12 / np.sqrt(np.pi)),
        ("s.dawsn(x)", -1e6, -0.5e-12),
        ("s.expit(x)", 800.0, 0.0),
    ],
)
def test_derivative_at_special_points(text: str, at: float, wanted: float) -> None:
    f = eval(f"lambda x: {text}", {"s": scipy.special, "__name__": __name__})
    assert rz.grad(f)(at) == pytest.approx(wanted, rel=1e-11, abs=1e-300)
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(f(x)))(np.array([at])), [wanted], rtol=1e-11)


def test_second_derivatives_at_the_ends_of_an_interval() -> None:
    s = scipy.special
    assert rz.grad(rz.grad(lambda x: s.betainc(2.0, 3.0, x)))(0.0) == pytest.approx(12.0)  # 12 x (1−x)² differentiated
    assert rz.grad(rz.grad(lambda x: s.gammainc(2.0, x)))(0.0) == pytest.approx(1.0)  # x e⁻ˣ differentiated
    assert rz.grad(rz.grad(s.log_ndtr))(-40.0) == pytest.approx(-1 + 1 / 1600 - 6 / 1600**2, rel=1e-6)
    assert rz.grad(rz.grad(s.log_ndtr))(50.0) == 0.0


def test_arguments_without_a_known_derivative() -> None:
    s = scipy.special
    for f in (
        lambda v: s.jv(v, 1.0),
        lambda a: s.zeta(a, 2.0),
        lambda a: s.hyp1f1(a, 1.0, 0.5),
    ):
        assert rz.function(f)(1.5) == pytest.approx(f(1.5), rel=1e-15)
        with pytest.raises(TraceError, match=r"not known; keep that argument fixed"):
            rz.grad(f)(1.5)
    with pytest.raises(TraceError, match="Riemann"):
        rz.grad(s.zeta)(2.0)


# -- as primitives ----------------------------------------------------------------------------------------


def test_np_i0_is_the_same_primitive() -> None:
    x = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(np.i0(x)))(x), scipy.special.i1(x), rtol=1e-15)


def test_mapped_over_an_axis() -> None:
    x = np.array([[0.5, 1.5], [2.5, 3.5]])
    found = rz.vmap(rz.grad(lambda x: np.sum(scipy.special.gammaln(x) * scipy.special.jv(1, x))))(x)
    wanted = [rz.grad(lambda x: np.sum(scipy.special.gammaln(x) * scipy.special.jv(1, x)))(row) for row in x]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_pickled_by_name() -> None:
    for primitive in (special.gamma, special.erfcx_derivative(2), gamma_functions.betainc, special.sine_integral):
        assert pickle.loads(pickle.dumps(primitive)) is primitive


def test_names_stay_free_for_users() -> None:
    erf = rz.primitive("erf", lambda x: x, None, lambda x, y: 1.0)
    assert erf(2.0) == 2.0
    assert special.erf(2.0) == scipy.special.erf(2.0)


def test_every_rule_has_a_line_and_stands_in_the_table() -> None:
    special.enter()
    known = [f for f in traced.NOTES if isinstance(f, np.ufunc) and f not in vars(np).values()]
    names = {f.__name__.removeprefix("_") for f in known}
    missing = [name for name in names if not any([f"s.{name}(" in line.text for line in LINED])]
    assert len(known) > 90
    assert not missing
    assert not [name for name in special.PYTHON_FUNCTIONS if not any([f"s.{name}(" in line.text for line in LINED])]


def test_importing_riesz_does_not_load_scipy_special() -> None:
    code = "import sys, riesz; print('scipy.special' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    "line", ["return scipy.linalg.lu_factor(x)[0]", "import scipy.special; return scipy.special.logsumexp(x)"]
)
def test_a_traced_function_may_be_the_first_to_load_a_part_of_scipy(line: str) -> None:
    code = f"import numpy as np, scipy, riesz as rz\ndef f(x): {line}\nx = np.eye(3) + 1.0\nprint(np.allclose(rz.function(f)(x), f(x)))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.stdout.strip() == "True"
