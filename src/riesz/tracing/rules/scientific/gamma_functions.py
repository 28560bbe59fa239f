"""How functions of scipy.special are declared, and those of the gamma family: incomplete gamma and beta functions and
distribution functions, with derivatives in their parameters (incomplete.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ....spaces.contraction import number
from ....terms import primitives as p
from ....terms.primitives import UNKNOWN, Primitive, Rule
from .incomplete import (
    beta_derivative,
    beta_slopes,
    exponential,
    gamma_derivative,
    gamma_slopes,
    student_derivative,
    student_order,
    student_slopes,
)

SPECIAL: dict[str, SpecialRule] = {}
"""The rules of all primitives in this file."""

TEXTS: dict[str, str] = {}


class SpecialRule(Rule):
    """The rule of a primitive in this file; pickled by its name. Its name is not taken from the user: his
    `rz.primitive("erf", …)` is another one."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return rule_named, (self.name,)


def rule_named(name: str) -> SpecialRule:
    """The rule of that name, from a pickle: all of them are loaded first."""
    import_module("..special", __package__)
    return SPECIAL[name]


class ScipyFunction:
    """A function of scipy.special (`part`: one of its results), found when it is first called."""

    __slots__ = ("code", "name", "part")

    def __init__(self, name: str, part: int | None = None) -> None:
        self.name = name
        self.part = part
        self.code: Any = None

    def __call__(self, *xs: Any) -> Any:
        if self.code is None:
            self.code = of_scipy(self.name)
        found = self.code(*xs)  # SciPy leaves single precision where a Python float comes along
        return typed_as(found if self.part is None else found[self.part], *xs)


class Scipy:
    """scipy.special, which is slow to import: loaded when one of its functions is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.special"), name)


s: Any = Scipy()


def of_scipy(name: str) -> Any:
    """The function of that name, None where this SciPy has none."""
    return getattr(s, name, None) or getattr(getattr(s, "_ufuncs", None), name, None)


def declare(
    name: str, derivative: Any, text: str = "", domain: str = "", array: Any = None, arity: int | None = None
) -> Primitive:
    """Declare a primitive: its derivative takes the arguments and the value. Without array code it is the function of
    scipy.special of that name, with a line in the coverage table."""
    code = ScipyFunction(name) if array is None else array

    def scalar(*xs: Any) -> Any:
        return number(code(*xs))

    count = derivative.__code__.co_argcount - 1 if arity is None else arity
    SPECIAL[name] = SpecialRule(name, code, scalar, derivative, count, domain=domain)
    if array is None:
        TEXTS[name] = text
    return Primitive(SPECIAL[name])


def in_last(name: str, slope: Any, text: str = "", domain: str = "", array: Any = None) -> Primitive:
    """A primitive with a derivative in its last argument; in the others none is known."""
    count = slope.__code__.co_argcount - 1

    def derivative(*xs: Any) -> Any:
        return (*(UNKNOWN,) * (count - 1), slope(*xs))

    return declare(name, derivative, text, domain, array, count)


def family(name: str, array: Any, slopes: Any = None, arity: int = 1) -> Callable[[int], Primitive]:
    """Functions numbered by n: by default the n-th derivatives of a function, each the derivative of the one before."""

    def member(n: int) -> Primitive:
        return Primitive(SPECIAL[name], float(n))

    def slope(x: Any, y: Any, n: Any) -> Any:
        return member(int(n) + 1)(x)

    declare(name, slopes or slope, array=array, arity=arity)
    return member


def typed_as(found: Any, *xs: Any) -> Any:
    """A result in the type of the arguments; Python floats have none."""
    kinds = [x.dtype for x in xs if type(x) is not float]
    return np.asarray(found).astype(np.result_type(*kinds), copy=False)[()] if kinds else np.float64(found)


_POLES = "x not 0, −1, −2, …"

# -- the gamma function -----------------------------------------------------------------------------------


def _polygamma(n: Any, x: Any) -> Any:
    order = np.where(np.equal(n, 0), 1.0, n)
    above = (-1.0) ** (order + 1.0) * s.gamma(order + 1.0) * s.zeta(order + 1.0, x)
    return typed_as(np.where(np.equal(n, 0), s.psi(x), above), n, x)


def _rgamma_slope(n: Any, x: Any) -> Any:
    """The n-th derivative of 1/Γ. Left of ½ that of Γ(1−x)·sin(πx)/π, which knows no poles."""
    right = np.greater_equal(x, 0.5)
    u = np.where(right, x, 1.0 - np.asarray(x))
    turn = np.fmod(x, 2.0)
    last = int(np.max(n, initial=0))
    slopes = [_polygamma(np.float64(k), u) for k in range(last)]
    direct, mirrored = _exponential(s.rgamma(u), [-y for y in slopes]), _exponential(s.gamma(u), slopes)
    found: Any = np.nan
    for order in range(last + 1):
        waves = [math.pi ** (k - 1) * s.sindg(180.0 * turn + 90.0 * k) for k in range(order, -1, -1)]
        left = sum([math.comb(order, j) * (-1) ** j * mirrored[j] * waves[j] for j in range(order + 1)])
        found = np.where(np.equal(n, order), np.where(right, direct[order], left), found)
    return typed_as(found, n, x)


def _exponential(first: Any, slopes: list[Any]) -> list[Any]:
    """The derivatives of f = eᵍ from f and the derivatives of g: f⁽ᵏ⁾ = Σⱼ binom(k−1, j)·g⁽ʲ⁺¹⁾·f⁽ᵏ⁻¹⁻ʲ⁾."""
    found = [first]
    for k in range(1, len(slopes) + 1):
        found.append(sum([math.comb(k - 1, j) * slopes[j] * found[k - 1 - j] for j in range(k)]))
    return found


def _beta_slopes(a: Any, b: Any) -> Any:
    return psi(a) - psi(a + b), psi(b) - psi(a + b)


def _binom_slopes(n: Any, k: Any, y: Any) -> Any:
    return y * (psi(n + 1.0) - psi(n - k + 1.0)), y * (psi(n - k + 1.0) - psi(k + 1.0))


_BETALN = "(ψ(a) − ψ(a+b)) · da, and in b alike"
_POCH = "y·(ψ(z+m) − ψ(z)) · dz + y·ψ(z+m) · dm"
_BINOM = "y·(ψ(n+1) − ψ(n−k+1)) · dn + y·(ψ(n−k+1) − ψ(k+1)) · dk"
gamma = declare("gamma", lambda x, y: y * psi(x), "Γ(x)·ψ(x) · dx", _POLES)
gammaln = declare("gammaln", lambda x, y: psi(x), "ψ(x) · dx", _POLES)
loggamma = declare("loggamma", lambda x, y: psi(x), "ψ(x) · dx", "x > 0")
psi = declare("psi", lambda x, y: polygamma(1.0, x), "ψ₁(x) · dx", _POLES)
polygamma = in_last("polygamma", lambda n, x, y: polygamma(n + 1.0, x), domain=_POLES, array=_polygamma)
rgamma = declare("rgamma", lambda x, y: rgamma_slope(1.0, x), "−ψ(x)/Γ(x) · dx; (−1)ⁿ n! · dx at −n")
rgamma_slope = in_last("rgamma_slope", lambda n, x, y: rgamma_slope(n + 1.0, x), array=_rgamma_slope)
gammasgn = declare("gammasgn", lambda x, y: None, "0")
beta = declare("beta", lambda a, b, y: tuple([y * d for d in _beta_slopes(a, b)]), f"B·{_BETALN}")
betaln = declare("betaln", lambda a, b, y: _beta_slopes(a, b), _BETALN)
poch = declare("poch", lambda z, m, y: (y * (psi(z + m) - psi(z)), y * psi(z + m)), _POCH)
binom = declare("binom", _binom_slopes, _BINOM)
zeta = in_last("_zeta", lambda s, q, y: -s * zeta(s + 1.0, q), "in q: −s·ζ(s+1, q) · dq; in s: not known")


def _gamma_density(a: Any, x: Any) -> Any:
    """xᵃ⁻¹ e⁻ˣ / Γ(a) for all a: 0 where 1/Γ(a) is."""
    found = s.gammasgn(a) * np.exp(s.xlogy(a - 1.0, x) - x - s.gammaln(a))
    return typed_as(np.where(s.rgamma(a) == 0.0, 0.0, found), a, x)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """xᵃ⁻¹ (1−x)ᵇ⁻¹ / B(a, b) for all a and b: 0 where 1/B(a, b) is."""
    sign = s.gammasgn(a) * s.gammasgn(b) * s.gammasgn(a + b)
    found = sign * np.exp(s.xlogy(a - 1.0, x) + s.xlog1py(b - 1.0, -x) - s.betaln(a, b))
    return typed_as(np.where((s.rgamma(a) == 0.0) | (s.rgamma(b) == 0.0), 0.0, found), a, b, x)


def _beta_density_slope(a: Any, b: Any, x: Any, y: Any) -> Any:
    return (a + b - 1.0) * (beta_density(a - 1.0, b, x) - beta_density(a, b - 1.0, x))


# Their derivatives are densities of neighbouring parameters: (a−1)/Γ(a) = 1/Γ(a−1), (a−1)/B(a, b) = (a+b−1)/B(a−1, b).
def _gamma_density_slopes(a: Any, x: Any, y: Any) -> Any:
    return y * (p.log0(x) - psi(a)), gamma_density(a - 1.0, x) - y


def _beta_density_slopes(a: Any, b: Any, x: Any, y: Any) -> Any:
    in_a, in_b = _beta_slopes(a, b)
    return y * (p.log0(x) - in_a), y * (p.log1p(-x) - in_b), _beta_density_slope(a, b, x, y)


gamma_density = declare("gamma_density", _gamma_density_slopes, domain="x ≥ 0", array=_gamma_density)
beta_density = declare("beta_density", _beta_density_slopes, domain="0 ≤ x ≤ 1", array=_beta_density)


def _gamma_order(a: Any, x: Any, y: Any, n: float) -> Any:
    """∂ⁿ⁺¹P/∂aⁿ⁺¹, and ∂ⁿf/∂aⁿ with the density f."""
    slopes = gamma_slopes(a, p.log0(x), psi, polygamma)
    return gammainc_in_a(int(n) + 1)(a, x), exponential(gamma_density(a, x), slopes, int(n))


def _beta_order(a: Any, b: Any, x: Any, y: Any, n: float) -> Any:
    i, j = divmod(int(n), _ORDERS)
    slopes = beta_slopes(a, b, p.log0(x), p.log1p(-x), psi, polygamma)
    up = betainc_in_ab(int(n) + _ORDERS)(a, b, x), betainc_in_ab(int(n) + 1)(a, b, x)
    return *up, exponential(beta_density(a, b, x), slopes, i, j)


_ORDERS = 64  # ∂ⁱ∂ʲ/∂aⁱ∂bʲ is the member 64·i + j
gammainc_in_a = family(
    "gammainc_in_a", lambda a, x, n: typed_as(gamma_derivative(s, a, x, int(n)), a, x), _gamma_order, 2
)
betainc_in_ab = family(
    "betainc_in_ab",
    lambda a, b, x, n: typed_as(beta_derivative(s, a, b, x, *divmod(int(n), _ORDERS)), a, b, x),
    _beta_order,
    3,
)


def _gamma_slopes(a: Any, x: Any, sign: float = 1.0) -> Any:
    return sign * gammainc_in_a(1)(a, x), sign * gamma_density(a, x)


def _beta_cdf_slopes(a: Any, b: Any, x: Any, sign: float = 1.0) -> Any:
    return sign * betainc_in_ab(_ORDERS)(a, b, x), sign * betainc_in_ab(1)(a, b, x), sign * beta_density(a, b, x)


def _inverted(slopes: Any) -> Any:
    """The derivatives of an inverse at its value, from those of the function there: −∂f/∂a / f′, …, 1/f′."""
    turned = p.reciprocal(slopes[-1])
    return *[-(slope * turned) for slope in slopes[:-1]], turned


_IN_A, _IN_AB = "∂y/∂a · da (an integral)", "∂y/∂a · da + ∂y/∂b · db (integrals)"
_G, _B = f"{_IN_A} + xᵃ⁻¹e⁻ˣ/Γ(a) · dx", f"{_IN_AB} + xᵃ⁻¹(1−x)ᵇ⁻¹/B(a, b) · dx"
_G_DOMAIN, _B_DOMAIN = "a > 0, x ≥ 0", "a, b > 0, 0 ≤ x ≤ 1"
_INVERSE = "dx / density − the derivatives in parameters / density"
gammainc = declare("gammainc", lambda a, x, y: _gamma_slopes(a, x), _G, _G_DOMAIN)
gammaincc = declare("gammaincc", lambda a, x, y: _gamma_slopes(a, x, -1.0), "minus that of gammainc", _G_DOMAIN)
gammaincinv = declare("gammaincinv", lambda a, x, y: _inverted(_gamma_slopes(a, y)), _INVERSE)
gammainccinv = declare("gammainccinv", lambda a, x, y: _inverted(_gamma_slopes(a, y, -1.0)), _INVERSE)
betainc = declare("betainc", lambda a, b, x, y: _beta_cdf_slopes(a, b, x), _B, _B_DOMAIN)
betaincc = declare("betaincc", lambda a, b, x, y: _beta_cdf_slopes(a, b, x, -1.0), "minus that of betainc", _B_DOMAIN)
betaincinv = declare("betaincinv", lambda a, b, x, y: _inverted(_beta_cdf_slopes(a, b, y)), _INVERSE)
betainccinv = declare("betainccinv", lambda a, b, x, y: _inverted(_beta_cdf_slopes(a, b, y, -1.0)), _INVERSE)

# -- Student's distribution -------------------------------------------------------------------------------


def _student_density(v: Any, t: Any) -> Any:
    power = p.log1p(t * t * p.reciprocal(v)) * (0.5 * (v + 1.0))
    return p.exp(-(0.5 * p.ln(v)) - betaln(0.5, 0.5 * v) - power)


def _student_order(v: Any, t: Any, y: Any, n: float) -> Any:
    order = partial(student_order, v, psi, polygamma, p.reciprocal)
    slopes = student_slopes(v, t * t, order, p.log1p, p.reciprocal)
    return stdtr_in_df(int(n) + 1)(v, t), exponential(_student_density(v, t), slopes, int(n))


def _student_slopes(v: Any, t: Any) -> Any:
    return stdtr_in_df(1)(v, t), _student_density(v, t)


stdtr_in_df = family(
    "stdtr_in_df", lambda v, t, n: typed_as(student_derivative(s, v, t, int(n)), v, t), _student_order, 2
)
stdtr = declare("stdtr", lambda v, t, y: _student_slopes(v, t), "∂y/∂df · ddf (an integral) + density · dt", "df > 0")
stdtrit = declare("stdtrit", lambda v, q, y: _inverted(_student_slopes(v, y)), _INVERSE, "df > 0, 0 < q < 1")

# Distribution functions that are incomplete gamma and beta functions of other arguments.
COMPOSED: dict[str, tuple[Callable[..., Any], str]] = {
    "chdtr": (lambda v, x: s.gammainc(v / 2, x / 2), "gammainc(v/2, x/2)"),
    "chdtrc": (lambda v, x: s.gammaincc(v / 2, x / 2), "gammaincc(v/2, x/2)"),
    "chdtri": (lambda v, q: 2 * s.gammainccinv(v / 2, q), "2·gammainccinv(v/2, q)"),
    "pdtr": (lambda k, m: s.gammaincc(np.floor(k) + 1, m), "gammaincc(⌊k⌋+1, m)"),
    "pdtrc": (lambda k, m: s.gammainc(np.floor(k) + 1, m), "gammainc(⌊k⌋+1, m)"),
    "pdtri": (lambda k, q: s.gammainccinv(np.floor(k) + 1, q), "gammainccinv(⌊k⌋+1, q)"),
    "gdtr": (lambda a, b, x: s.gammainc(b, a * x), "gammainc(b, ax)"),
    "gdtrc": (lambda a, b, x: s.gammaincc(b, a * x), "gammaincc(b, ax)"),
    "gdtria": (lambda q, b, x: s.gammaincinv(b, q) / x, "gammaincinv(b, q)/x"),
    "gdtrix": (lambda a, b, q: s.gammaincinv(b, q) / a, "gammaincinv(b, q)/a"),
    "bdtr": (lambda k, n, q: s.betaincc(np.floor(k) + 1, n - np.floor(k), q), "betaincc(⌊k⌋+1, n−⌊k⌋, p)"),
    "bdtrc": (lambda k, n, q: s.betainc(np.floor(k) + 1, n - np.floor(k), q), "betainc(⌊k⌋+1, n−⌊k⌋, p)"),
    "bdtri": (lambda k, n, y: s.betainccinv(np.floor(k) + 1, n - np.floor(k), y), "betainccinv(⌊k⌋+1, n−⌊k⌋, y)"),
    "nbdtr": (lambda k, n, q: s.betainc(n, np.floor(k) + 1, q), "betainc(n, ⌊k⌋+1, p)"),
    "nbdtrc": (lambda k, n, q: s.betaincc(n, np.floor(k) + 1, q), "betaincc(n, ⌊k⌋+1, p)"),
    "nbdtri": (lambda k, n, y: s.betaincinv(n, np.floor(k) + 1, y), "betaincinv(n, ⌊k⌋+1, y)"),
    "fdtr": (lambda n, m, x: s.betainc(n / 2, m / 2, n * x / (m + n * x)), "betainc(n/2, m/2, nx/(m+nx))"),
    "fdtrc": (lambda n, m, x: s.betainc(m / 2, n / 2, m / (m + n * x)), "betainc(m/2, n/2, m/(m+nx))"),
    "fdtri": (lambda n, m, q: _odds(s.betaincinv(n / 2, m / 2, q)) * m / n, "betaincinv(n/2, m/2, q), as odds"),
    "nrdtrimn": (lambda q, d, x: x - d * s.ndtri(q), "x − σ·ndtri(p)"),
    "nrdtrisd": (lambda m, q, x: (x - m) / s.ndtri(q), "(x − μ)/ndtri(p)"),
}


def _odds(q: Any) -> Any:
    return q / (1 - q)
