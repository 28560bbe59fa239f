"""Functions of scipy.special as primitives. One line each: name, derivative, the derivative in words.

They are ufuncs, so NumPy hands them to us by themselves; `special_rule` finds ours by name. scipy.special is slow to
import and is loaded when one of them is first computed. An argument nobody knows a derivative in (orders, parameters of
distributions) is `UNKNOWN`. Derivatives are written so that they are right at removable singularities: Bessel functions
by their neighbours, not by a quotient with x; densities by densities of neighbouring parameters; quotients such as (eˣ
− 1) / x by hypergeometric functions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...terms import primitives as p
from ...terms.primitives import UNKNOWN, Primitive
from ..registry import NOTES, UFUNCS, by_name
from ..trace import refuse
from ..traced import FLOAT, Traced, convert, primitive_step, tidy
from .scientific.gamma_functions import (
    COMPOSED,
    SPECIAL,
    TEXTS,
    ScipyFunction,
    binom,
    declare,
    family,
    gamma,
    gammaln,
    in_last,
    of_scipy,
    polygamma,
    rgamma,
    rule_named,
    s,
    typed_as,
)

_rule_named = rule_named  # pickles of earlier versions ask for it here
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
_DEGREE = math.pi / 180.0
_LN10 = math.log(10.0)

# -- error functions and the normal distribution ----------------------------------------------------------


def _derivatives(
    x: Any, n: float, sign: float, near: Any, inhomogeneous: float, far: float, large: Callable[[Any], Any]
) -> Any:
    """f⁽ⁿ⁾ of f' = sign·2x·f + inhomogeneous, f ~ far/x · Σₖ (−sign)ᵏ (2k−1)!!/(2x²)ᵏ: by recurrence, and by the series
    where x is large. The recurrence subtracts numbers that agree in ever more digits as x grows; the series is exact to
    rounding from 7 on."""
    order, z = int(n), np.asarray(x, float)
    before, value = np.zeros_like(z), np.asarray(near(z))
    for m in range(order):
        before, value = value, sign * 2.0 * (z * value + m * before) + (inhomogeneous if m == 0 else 0.0)
    t = 1.0 / np.where(large(z), z, 1.0)
    series = np.zeros_like(z)
    for k in range(30, -1, -1):
        falling = math.prod([float(-(2 * k + 1 + i)) for i in range(order)])  # d^n x^(−2k−1) = falling · x^(−2k−1−n)
        double = math.prod([float(i) for i in range(1, 2 * k, 2)])
        series = series * t * t + falling * double * (-sign * 0.5) ** k
    return typed_as(np.where(large(z), far * series * t ** (order + 1), value), x)


def _erfcx_derivative(x: Any, n: float) -> Any:
    return _derivatives(x, n, 1.0, ScipyFunction("erfcx"), -2.0 / _ROOT_PI, 1.0 / _ROOT_PI, lambda z: z > 7.0)


def _dawsn_derivative(x: Any, n: float) -> Any:
    return _derivatives(x, n, -1.0, ScipyFunction("dawsn"), 1.0, 0.5, lambda z: np.abs(z) > 7.0)


erfcx_derivative = family("erfcx_derivative", _erfcx_derivative)
dawsn_derivative = family("dawsn_derivative", _dawsn_derivative)
erf = declare("erf", lambda x, y: (2.0 / _ROOT_PI) * p.exp(-(x * x)), "2/√π · exp(−x²) · dx")
erfc = declare("erfc", lambda x, y: (-2.0 / _ROOT_PI) * p.exp(-(x * x)), "−2/√π · exp(−x²) · dx")
erfi = declare("erfi", lambda x, y: (2.0 / _ROOT_PI) * p.exp(x * x), "2/√π · exp(x²) · dx")
erfcx = declare("erfcx", lambda x, y: erfcx_derivative(1)(x), "(2x·erfcx x − 2/√π) · dx")
dawsn = declare("dawsn", lambda x, y: dawsn_derivative(1)(x), "(1 − 2x·dawsn x) · dx")
erfinv = declare("erfinv", lambda x, y: (0.5 * _ROOT_PI) * p.exp(y * y), "√π/2 · exp(y²) · dx", domain="−1 < x < 1")
erfcinv = declare("erfcinv", lambda x, y: (-0.5 * _ROOT_PI) * p.exp(y * y), "−√π/2 · exp(y²) · dx", domain="0 < x < 2")


def _hazard(x: Any) -> Any:
    """φ(x) / Φ(x), without underflow on either side."""
    left = (2.0 / _ROOT_2PI) / s.erfcx(np.maximum(-x, 0.0) / math.sqrt(2.0))
    right = np.exp(-0.5 * np.square(x)) / (_ROOT_2PI * s.ndtr(np.maximum(x, 0.0)))
    return typed_as(np.where(np.less(x, 0), left, right), x)


def _hazard_gap(x: Any) -> Any:
    """φ(x) / Φ(x) + x: with z = −x/√2 it is −erfcx'(z) / (√2 erfcx(z)), where nothing cancels."""
    z = np.maximum(-np.asarray(x, float) / math.sqrt(2.0), 0.0)
    left = -_erfcx_derivative(z, 1.0) / (math.sqrt(2.0) * s.erfcx(z))
    return typed_as(np.where(np.less(x, 0), left, _hazard(x) + x), x)


hazard = declare("hazard", lambda x, y: -y * hazard_gap(x), array=_hazard)
hazard_gap = declare("hazard_gap", lambda x, y: 1.0 - hazard(x) * y, array=_hazard_gap)
ndtr = declare("ndtr", lambda x, y: (1.0 / _ROOT_2PI) * p.exp(-0.5 * (x * x)), "φ(x) · dx")
log_ndtr = declare("log_ndtr", lambda x, y: hazard(x), "φ(x)/Φ(x) · dx")
ndtri = declare("ndtri", lambda x, y: _ROOT_2PI * p.exp(0.5 * (y * y)), "dx / φ(y)", domain="0 < x < 1")
ndtri_exp = declare("ndtri_exp", lambda x, y: p.reciprocal(hazard(y)), "Φ(y)/φ(y) · dx", domain="x < 0")


def _owens_slopes(h: Any, a: Any, y: Any) -> Any:
    square = 1.0 + a * a
    in_h = (-0.5 / _ROOT_2PI) * (p.exp(-0.5 * (h * h)) * erf(math.sqrt(0.5) * (a * h)))
    return in_h, (0.5 / math.pi) * (p.exp(-0.5 * (h * h * square)) * p.reciprocal(square))


owens_t = declare("owens_t", _owens_slopes, "−½ φ(h)·erf(ah/√2) · dh + exp(−½h²(1+a²)) / (2π(1+a²)) · da")

# -- logistic functions, entropies ------------------------------------------------------------------------


def _ratio(a: Any, b: Any) -> Any:
    return typed_as(np.where(np.equal(a, 0), 0.0, np.divide(a, np.where(np.equal(a, 0), 1.0, b))), a, b)


# a / b, and 0 where a = 0
ratio = declare("ratio", lambda a, b, y: (p.reciprocal(b), -ratio(y, b)), array=_ratio)
log_expit = declare("log_expit", lambda x, y: p.sigmoid(-x), "sigmoid(−x) · dx")
logit = declare("logit", lambda x, y: p.reciprocal(x * (1.0 - x)), "dx / (x(1−x))", "0 < x < 1")
_XLOG1PY = "ln(1+y) · dx + x/(1+y) · dy (0 where x = 0)"
xlogy = declare("xlogy", lambda x, b, y: (p.ln(b), ratio(x, b)), "ln y · dx + x/y · dy (0 where x = 0)")
xlog1py = declare("xlog1py", lambda x, b, y: (p.log1p(b), ratio(x, 1.0 + b)), _XLOG1PY)
entr = declare("entr", lambda x, y: -1.0 - p.ln(x), "−(1 + ln x) · dx", "x ≥ 0")


def _log_ratio(a: Any, b: Any) -> Any:
    return p.ln(p.divide(a, b))


_REL_ENTR, _KL_DIV, _BOTH = "(1 + ln(x/y)) · dx − x/y · dy", "ln(x/y) · dx + (y−x)/y · dy", "x, y > 0, or x = 0"
rel_entr = declare("rel_entr", lambda a, b, y: (1.0 + _log_ratio(a, b), -ratio(a, b)), _REL_ENTR, _BOTH)
kl_div = declare("kl_div", lambda a, b, y: (_log_ratio(a, b), ratio(b - a, b)), _KL_DIV, _BOTH)

# -- Bessel functions -------------------------------------------------------------------------------------


def _order(name: str, slope: Any, text: str, domain: str = "") -> Primitive:
    """A function of an order, in which no derivative is known, and of x."""
    return in_last(name, slope, f"in x: {text} · dx; in the order: not known", domain)


def _difference(f: Any, v: Any, x: Any) -> Any:
    return 0.5 * (f(v - 1.0, x) - f(v + 1.0, x))


def _mean(f: Any, v: Any, x: Any) -> Any:
    return 0.5 * (f(v - 1.0, x) + f(v + 1.0, x))


_HALF, _MINUS_HALF = "½(fᵥ₋₁ − fᵥ₊₁)", "−½(Kᵥ₋₁ + Kᵥ₊₁)"
_IVE, _KVE = "½(fᵥ₋₁ + fᵥ₊₁) − sign x·fᵥ", "fᵥ − ½(fᵥ₋₁ + fᵥ₊₁)"
j0 = declare("j0", lambda x, y: -j1(x), "−J₁ · dx")
j1 = declare("j1", lambda x, y: 0.5 * (j0(x) - jv(2.0, x)), "½(J₀ − J₂) · dx")
jv = _order("jv", lambda v, x, y: _difference(jv, v, x), _HALF)
jve = _order("jve", lambda v, x, y: _difference(jv, v, x), _HALF)
y0 = declare("y0", lambda x, y: -y1(x), "−Y₁ · dx", "x > 0")
y1 = declare("y1", lambda x, y: 0.5 * (y0(x) - yv(2.0, x)), "½(Y₀ − Y₂) · dx", "x > 0")
yn = _order("yn", lambda v, x, y: _difference(yv, v, x), _HALF, "x > 0")
yv = _order("yv", lambda v, x, y: _difference(yv, v, x), _HALF, "x > 0")
yve = _order("yve", lambda v, x, y: _difference(yv, v, x), _HALF, "x > 0")
i0 = declare("i0", lambda x, y: i1(x), "I₁ · dx")
i1 = declare("i1", lambda x, y: 0.5 * (i0(x) + iv(2.0, x)), "½(I₀ + I₂) · dx")
iv = _order("iv", lambda v, x, y: _mean(iv, v, x), "½(Iᵥ₋₁ + Iᵥ₊₁)")
i0e = declare("i0e", lambda x, y: i1e(x) - p.sign(x) * y, "(i1e − sign x·i0e) · dx")
i1e = declare("i1e", lambda x, y: 0.5 * (i0e(x) + ive(2.0, x)) - p.sign(x) * y, "(½(i0e + ive₂) − sign x·i1e) · dx")
ive = _order("ive", lambda v, x, y: _mean(ive, v, x) - p.sign(x) * y, _IVE)
k0 = declare("k0", lambda x, y: -k1(x), "−K₁ · dx", "x > 0")
k1 = declare("k1", lambda x, y: -0.5 * (k0(x) + kv(2.0, x)), "−½(K₀ + K₂) · dx", "x > 0")
kn = _order("kn", lambda v, x, y: -0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x)), _MINUS_HALF, "x > 0")
kv = _order("kv", lambda v, x, y: -0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x)), _MINUS_HALF, "x > 0")
k0e = declare("k0e", lambda x, y: y - k1e(x), "(k0e − k1e) · dx", "x > 0")
k1e = declare("k1e", lambda x, y: y - 0.5 * (k0e(x) + kve(2.0, x)), "(k1e − ½(k0e + kve₂)) · dx", "x > 0")
kve = _order("kve", lambda v, x, y: y - _mean(kve, v, x), _KVE, "x > 0")


def _struve_slope(f: Any, sign: float, v: Any, x: Any) -> Any:
    """½(fᵥ₋₁ ± fᵥ₊₁ + (x/2)ᵛ/(√π Γ(v+3/2)))."""
    neighbours = f(v - 1.0, x) + f(v + 1.0, x) if sign > 0 else f(v - 1.0, x) - f(v + 1.0, x)
    return 0.5 * (neighbours + (1.0 / _ROOT_PI) * (p.pow(0.5 * x, v) * rgamma(v + 1.5)))


_STRUVE = "½(fᵥ₋₁ − fᵥ₊₁ + (x/2)ᵛ/(√π Γ(v+3/2)))"
struve = _order("struve", lambda v, x, y: _struve_slope(struve, -1.0, v, x), _STRUVE)
modstruve = _order("modstruve", lambda v, x, y: _struve_slope(modstruve, 1.0, v, x), _STRUVE.replace("−", "+"))

# -- hypergeometric functions, integrals ------------------------------------------------------------------


def _expn(n: Any, x: Any) -> Any:
    """Eₙ(x) for all integers n: E₋ₘ(x) = m!/xᵐ⁺¹ · Q(m+1, x)."""
    whole = np.rint(n)
    m = np.maximum(-whole, 0.0)
    below = s.gamma(m + 1.0) * s.gammaincc(m + 1.0, x) / np.power(x, m + 1.0)
    return typed_as(np.where(np.less(n, 0), below, s.expn(np.maximum(whole, 0.0), x)), n, x)


def _kummer(a: Any, b: Any, x: Any) -> Any:
    """₁F₁; at ±∞ its limit, that of Γ(b)/Γ(b−a)·(−x)⁻ᵃ or Γ(b)/Γ(a)·eˣ·xᵃ⁻ᵇ: SciPy has nan there, or hangs."""
    far = np.isinf(x)
    found = s.hyp1f1(a, b, np.where(far, 0.0, x))
    if far.any():
        grows = np.greater(x, 0) & (s.rgamma(a) != 0)
        factor = s.gamma(b) * np.where(grows, s.rgamma(a), s.rgamma(b - a))
        limit = factor * np.where(grows, np.inf, np.power(np.negative(x), np.negative(a)))
        found = np.where(far, np.where(factor == 0, 0.0, limit), found)
    return typed_as(found, a, b, x)


def _upper(f: Any, a: Any, b: Any, *parameters: Any) -> Any:
    """a/b times a hypergeometric function with its parameters one up."""
    *up, x = parameters
    return p.divide(a, b) * f(*[c + 1.0 for c in up], x)


_UP = "in x: the parameters one up, times"
_EXPN = "in x: −Eₙ₋₁(x) · dx; in n: not known"
_SPENCE = "ln x / (1−x) · dx (−1 at 1)"
hyp0f1 = in_last("hyp0f1", lambda b, x, y: _upper(hyp0f1, 1.0, b, b, x), f"{_UP} 1/b; in b: not known")
hyp1f1 = in_last("hyp1f1", lambda a, b, x, y: _upper(kummer, a, b, a, b, x), f"{_UP} a/b; in a, b: not known")
kummer = declare("kummer", hyp1f1.rule.derivative, array=_kummer, arity=3)
hyp2f1 = in_last(
    "hyp2f1", lambda a, b, c, x, y: _upper(hyp2f1, a * b, c, a, b, c, x), f"{_UP} ab/c; in a, b, c: not known"
)
hyperu = in_last("hyperu", lambda a, b, x, y: -a * hyperu(a + 1.0, b + 1.0, x), f"{_UP} −a; in a, b: not known")
exprel = declare("exprel", lambda x, y: 0.5 * kummer(2.0, 3.0, x), "½·₁F₁(2, 3, x) · dx")
spence = declare("spence", lambda x, y: -hyp2f1(1.0, 1.0, 2.0, 1.0 - x), _SPENCE, "x ≥ 0")
ellipk = declare("ellipk", lambda x, y: (math.pi / 8.0) * hyp2f1(1.5, 1.5, 2.0, x), "(E/(1−m) − K) / 2m · dm", "m < 1")
ellipe = declare("ellipe", lambda x, y: (-math.pi / 8.0) * hyp2f1(0.5, 1.5, 2.0, x), "(E − K) / 2m · dm", "m ≤ 1")
exp1 = declare("exp1", lambda x, y: -(p.exp(-x) * p.reciprocal(x)), "−e⁻ˣ/x · dx", "x > 0")
expi = declare("expi", lambda x, y: p.exp(x) * p.reciprocal(x), "eˣ/x · dx", "x ≠ 0")
expn = in_last("expn", lambda n, x, y: -expn_any(n - 1.0, x), _EXPN, "x ≥ 0")
expn_any = in_last("expn_any", lambda n, x, y: -expn_any(n - 1.0, x), array=_expn)


def _result(name: str, function: str, part: int, slope: Any, domain: str = "") -> Primitive:
    """One of the results of a function of scipy.special."""
    return declare(name, slope, domain=domain, array=ScipyFunction(function, part))


sine_integral = _result("sine_integral", "sici", 0, lambda x, y: p.sinc((1.0 / math.pi) * x))
cosine_integral = _result("cosine_integral", "sici", 1, lambda x, y: p.cos(x) * p.reciprocal(x), "x > 0")
sinh_integral = _result("sinh_integral", "shichi", 0, lambda x, y: 0.5 * (exprel(x) + exprel(-x)))
cosh_integral = _result("cosh_integral", "shichi", 1, lambda x, y: p.cosh(x) * p.reciprocal(x), "x > 0")
fresnel_sine = _result("fresnel_sine", "fresnel", 0, lambda x, y: p.sin((0.5 * math.pi) * (x * x)))
fresnel_cosine = _result("fresnel_cosine", "fresnel", 1, lambda x, y: p.cos((0.5 * math.pi) * (x * x)))
airy_ai = _result("airy_ai", "airy", 0, lambda x, y: airy_ai_slope(x))
airy_ai_slope = _result("airy_ai_slope", "airy", 1, lambda x, y: x * airy_ai(x))
airy_bi = _result("airy_bi", "airy", 2, lambda x, y: airy_bi_slope(x))
airy_bi_slope = _result("airy_bi_slope", "airy", 3, lambda x, y: x * airy_bi(x))

# -- orthogonal polynomials, elliptic integrals -----------------------------------------------------------


def _at_degree(name: str) -> Any:
    """A family of orthogonal polynomials, zero where the degree is negative."""

    def code(n: Any, *xs: Any) -> Any:
        below, whole = np.less(n, 0), np.rint(n)
        degree = np.where(below, 0, n)
        degree = degree.astype(np.int64) if np.all(np.equal(whole, n)) else degree  # SciPy has code for whole numbers
        return typed_as(np.where(below, 0.0, getattr(s, name)(degree, *xs)), n, *xs)

    return code


def _polynomial(name: str, slope: Any, text: str) -> Primitive:
    """In the degree and in parameters no derivative is known. `slope` uses the family with degree one less."""
    count = slope.__code__.co_argcount
    TEXTS[name] = f"in x: {text} · dx; in the others: not known"
    derivative = lambda *xs: (*(UNKNOWN,) * (count - 1), slope(*xs[:-1]))  # noqa: E731
    return declare(name, derivative, array=_at_degree(name), arity=count)


jacobi = _polynomial(
    "eval_jacobi",
    lambda n, a, b, x: 0.5 * ((n + a + b + 1.0) * jacobi(n - 1.0, a + 1.0, b + 1.0, x)),
    "½(n+a+b+1)·P with n−1, a+1, b+1",
)
gegenbauer = _polynomial(
    "eval_gegenbauer", lambda n, a, x: 2.0 * (a * gegenbauer(n - 1.0, a + 1.0, x)), "2a·C with n−1, a+1"
)
legendre = _polynomial("eval_legendre", lambda n, x: 0.5 * ((n + 1.0) * jacobi(n - 1.0, 1.0, 1.0, x)), "P′ₙ")
chebyu = _polynomial("eval_chebyu", lambda n, x: 2.0 * gegenbauer(n - 1.0, 2.0, x), "U′ₙ")
chebyt = _polynomial("eval_chebyt", lambda n, x: n * chebyu(n - 1.0, x), "n·Uₙ₋₁")
genlaguerre = _polynomial("eval_genlaguerre", lambda n, a, x: -genlaguerre(n - 1.0, a + 1.0, x), "−L with n−1, a+1")
hermite = _polynomial("eval_hermite", lambda n, x: 2.0 * (n * hermite(n - 1.0, x)), "2n·Hₙ₋₁")
hermitenorm = _polynomial("eval_hermitenorm", lambda n, x: n * hermitenorm(n - 1.0, x), "n·Heₙ₋₁")
laguerre = _polynomial("eval_laguerre", lambda n, x: -genlaguerre(n - 1.0, 1.0, x), "−L with n−1, a = 1")


def _elliptic(phi: Any, m: Any) -> Any:
    return 1.0 - m * (p.sin(phi) * p.sin(phi))


def _ellipkinc_slopes(phi: Any, m: Any, y: Any) -> Any:
    root = p.sqrt(_elliptic(phi, m))
    half = 0.5 * p.reciprocal(m)
    below = p.reciprocal(1.0 - m)
    in_m = half * (ellipeinc(phi, m) * below - y) - 0.5 * (p.sin(phi) * p.cos(phi) * below * p.reciprocal(root))
    return p.reciprocal(root), in_m


_KINC, _EINC = "dφ/√(1−m sin²φ) + ∂F/∂m · dm (m ≠ 0)", "√(1−m sin²φ) · dφ + (E − F)/2m · dm (m ≠ 0)"
ellipkinc = declare("ellipkinc", _ellipkinc_slopes, _KINC, "m < 1")
ellipeinc = declare(
    "ellipeinc",
    lambda phi, m, y: (p.sqrt(_elliptic(phi, m)), 0.5 * ((y - ellipkinc(phi, m)) * p.reciprocal(m))),
    _EINC,
    "m ≤ 1",
)

# -- elementary functions ---------------------------------------------------------------------------------


def _boxcox(base: Any, log: Any, k: Any) -> Any:
    """x^(λ−1), and ln² x times the derivative of (e^t − 1)/t at t = λ ln x, which is ½ at 0."""
    return p.pow(base, k - 1.0), log * log * (0.5 * kummer(2.0, 3.0, k * log))


def _inv_boxcox(x: Any, k: Any, y: Any) -> Any:
    """In λ: y·x² times the derivative of ln(1+u)/u at u = λx, which is −½ at 0."""
    return y * p.reciprocal(1.0 + k * x), y * (x * x) * (-0.5 * hyp2f1(2.0, 2.0, 3.0, -(k * x)))


_BOXCOX, _INV_BOXCOX = "x^(λ−1) · dx + ∂y/∂λ · dλ (½ ln² x at λ = 0)", "y / (1+λx) · dx + ∂y/∂λ · dλ"
_RADIAN, _HUBER = "π/180 · (dd + dm/60 + ds/3600)", "max(|r| − δ, 0) · dδ + clip(r, −δ, δ) · dr"
_INV_BOXCOX1P = "(1+y) / (1+λx) · dx + ∂y/∂λ · dλ"
_PSEUDO_HUBER = "(h−δ)²/h · dδ + δr/h · dr, h = hypot(δ, r)"
boxcox = declare("boxcox", lambda x, k, y: _boxcox(x, p.ln(x), k), _BOXCOX, "x > 0")
boxcox1p = declare("boxcox1p", lambda x, k, y: _boxcox(1.0 + x, p.log1p(x), k), "that of boxcox at 1 + x", "x > −1")
inv_boxcox = declare("inv_boxcox", _inv_boxcox, _INV_BOXCOX)
inv_boxcox1p = declare("inv_boxcox1p", lambda x, k, y: _inv_boxcox(x, k, 1.0 + y), _INV_BOXCOX1P)
powm1 = declare("powm1", lambda a, b, y: (p.power_slope(a, b), (1.0 + y) * p.log0(a)), "that of x^y")
exp10 = declare("exp10", lambda x, y: _LN10 * y, "ln 10 · 10ˣ · dx")
cosm1 = declare("cosm1", lambda x, y: -p.sin(x), "−sin x · dx")
sindg = declare("sindg", lambda x, y: _DEGREE * cosdg(x), "π/180 · cosdg x · dx")
cosdg = declare("cosdg", lambda x, y: -_DEGREE * sindg(x), "−π/180 · sindg x · dx")
tandg = declare("tandg", lambda x, y: _DEGREE * (1.0 + y * y), "π/180 · (1 + y²) · dx")
cotdg = declare("cotdg", lambda x, y: -_DEGREE * (1.0 + y * y), "−π/180 · (1 + y²) · dx")
radian = declare("radian", lambda d, m, s, y: (_DEGREE, _DEGREE / 60.0, _DEGREE / 3600.0), _RADIAN)


def _huber(d: Any, r: Any, y: Any) -> Any:
    return p.relu(p.absolute(r) - d), p.minimum(p.maximum(r, -d), d)


huber = declare("huber", _huber, _HUBER, "δ ≥ 0")


def _pseudo_huber(d: Any, r: Any, y: Any) -> Any:
    h = p.hypot(d, r)
    gap = r * r * p.inverse(h + d)  # h − δ
    return gap * gap * p.inverse(h), d * r * p.inverse(h)


pseudo_huber = declare("pseudo_huber", _pseudo_huber, _PSEUDO_HUBER, "δ ≥ 0")

# -- entering them ----------------------------------------------------------------------------------------

_SAME = {"cbrt": p.cbrt, "exp2": p.exp2, "expm1": p.expm1, "log1p": p.log1p}
_OTHERS: dict[str, tuple[tuple[Primitive, ...], str]] = {
    "expit": ((p.sigmoid,), "y·sigmoid(−x) · dx"),
    "sici": ((sine_integral, cosine_integral), "sin x / x · dx, cos x / x · dx"),
    "shichi": ((sinh_integral, cosh_integral), "sinh x / x · dx, cosh x / x · dx"),
    "fresnel": ((fresnel_sine, fresnel_cosine), "sin(πx²/2) · dx, cos(πx²/2) · dx"),
    "airy": ((airy_ai, airy_ai_slope, airy_bi, airy_bi_slope), "Ai′ · dx, x·Ai · dx, Bi′ · dx, x·Bi · dx"),
}
"""Functions that are primitives under another name, or several."""


def _weak(x: Any) -> bool:
    """Whether x is a number of Python, traced or not."""
    return bool(x.weak) if type(x) is Traced else type(x) in (int, float)


def _two(x: Any) -> Any:
    """A number of Python where x is one; else an array with as many axes as x, or a number of NumPy where x is one."""
    if _weak(x):
        return 2.0 if type(x) is Traced else type(x)(2)
    two = np.full((1,) * np.ndim(x), 2, x.dtype)
    return two[()] if type(x) is Traced and x.weak is False else two


def _widened(function: Any, *xs: Any) -> list[Any]:
    """The arguments in the type that SciPy's function computes in: it is asked, at 2. Some leave single precision where
    a number of Python comes along."""
    given = [np.asarray(x) if type(x) is bool else x for x in [tidy(x) for x in xs]]
    if all([_weak(x) or x.dtype == FLOAT for x in given]):
        return given
    with np.errstate(all="ignore"):
        found = function(*[_two(x) for x in given])
    dtype = np.asarray(found[-1] if type(found) is tuple else found).dtype
    return [x if _weak(x) else convert(x, dtype) for x in given]


def _rule(primitives: tuple[Primitive, ...], ufunc: Any) -> Any:
    def rule(*xs: Any) -> Any:
        given = _widened(ufunc, *xs)
        found: Any = [primitive_step(q, *given) for q in primitives]
        return tuple(found) if len(found) > 1 else found[0]

    return rule


def _composed(code: Callable[..., Any], ufunc: Any) -> Callable[..., Any]:
    def rule(*xs: Any) -> Any:
        given = _widened(ufunc, *xs)
        kinds = [x.dtype for x in given if not _weak(x)]
        found = code(*given)
        return convert(found, np.result_type(*kinds)) if kinds else found

    return rule


def _riemann_zeta(*xs: Any) -> Any:
    raise refuse("the derivative of Riemann's ζ(s) in s is not known; scipy.special.zeta(s, q) has one in q")


def enter() -> None:
    """Enter the functions of scipy.special into the tables of rules and of coverage; loads scipy.special."""
    entries: dict[str, tuple[tuple[Primitive, ...], str]] = {
        **{name: ((Primitive(SPECIAL[name]),), text) for name, text in TEXTS.items()},
        **{name: ((q,), NOTES[getattr(np, name)][1]) for name, q in _SAME.items()},
        **_OTHERS,
    }
    for name, (primitives, text) in entries.items():
        ufunc = of_scipy(name)
        if ufunc is not None:
            UFUNCS[ufunc] = _rule(primitives, ufunc)
            names = ", ".join([q.name for q in primitives])
            NOTES[ufunc] = (f"primitive{'s' if len(primitives) > 1 else ''} {names}", text)
    for name, (code, text) in COMPOSED.items():
        ufunc = of_scipy(name)
        UFUNCS[ufunc] = _composed(code, ufunc)
        NOTES[ufunc] = (text, "that of the formula")
    UFUNCS[of_scipy("_riemann_zeta")] = _riemann_zeta


def primitive_named(name: str) -> Primitive | None:
    """The primitive of a ufunc of scipy.special, if it is one."""
    if name in SPECIAL:
        return Primitive(SPECIAL[name])
    primitives, _ = _OTHERS.get(name, ((), ""))
    return primitives[0] if len(primitives) == 1 else None


@by_name
def special_rule(ufunc: Any) -> Callable[..., Any] | None:
    """The rule of a ufunc of scipy.special, if it is known."""
    if "scipy.special" not in sys.modules:
        return None
    enter()
    return UFUNCS.get(ufunc)


# -- functions of scipy.special written in Python ---------------------------------------------------------


def _multigammaln(a: Any, d: Any) -> Any:
    total: Any = 0.25 * d * (d - 1) * np.log(np.pi)  # of float64, as in SciPy
    for j in range(int(d)):
        total = total + primitive_step(gammaln, a - 0.5 * j)
    return total


def _factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    if exact or extend != "zero":
        raise refuse(
            "scipy.special.factorial with exact=True or extend=… is not known to riesz; scipy.special.gamma(n + 1.0) "
            "extends it"
        )
    (n,) = _widened(s.factorial, n)
    return np.where(n < 0, 0.0, primitive_step(gamma, np.where(n < 0, 0.0, n) + 1.0))


def _comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    if exact:
        raise refuse("scipy.special.comb(exact=True) is for integers; leave exact out")
    if repetition:
        n, m = _widened(s.comb, N, k)
        if not s.comb(0.5, 2.0, repetition=True):  # SciPy before 1.17
            return _comb(n + m - 1.0, m)
        return np.where(np.logical_and(m == 0, n >= 0), 1.0, primitive_step(binom, n + m - 1.0, m))
    n, m = _widened(s.comb, N, k)
    inside = np.logical_and(np.logical_and(m <= n, n >= 0), m >= 0)
    return np.where(inside, primitive_step(binom, n, m), 0.0)


def _polygamma_of(n: Any, x: Any) -> Any:
    return primitive_step(polygamma, *_widened(s.polygamma, n, x))


PYTHON_FUNCTIONS: dict[str, tuple[Any, str, str]] = {
    "polygamma": (_polygamma_of, "primitive polygamma", "in x: ψ₍ₙ₊₁₎(x) · dx; in n: not known"),
    "multigammaln": (_multigammaln, "Σ of gammaln", "Σⱼ ψ(a − j/2) · da"),
    "factorial": (_factorial, "primitive gamma at n + 1", "Γ(n+1)·ψ(n+1) · dn; 0 where n < 0"),
    "comb": (_comb, "primitive binom", "that of binom; 0 outside 0 ≤ k ≤ N"),
}
