"""Derivatives of incomplete gamma and beta functions, and of Student's distribution, in their parameters; on numbers.

∂ⁿP/∂aⁿ (a, x) = ∫₀ˣ ∂ⁿf/∂aⁿ (a, t) dt with the density f, or minus the integral from x to ∞: on the side of the
smaller tail, so that small numbers have all their digits. The variable is one in which f decays exponentially (ln t,
logit t, arsinh t/√ν), measured from x in widths of f; the double-exponential rule r = exp(s − e⁻ˢ) does the rest, with
an error of about 10⁻¹³. There is one pass over the array for each node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

_S = np.arange(-3.7, 5.2, 0.045)
_NODES = np.exp(_S - np.exp(-_S))
_WEIGHTS = 0.045 * _NODES * (1.0 + np.exp(-_S))


def exponential(first: Any, slopes: Callable[[int, int], Any], i: int, j: int = 0) -> Any:
    """∂ᵢ∂ⱼ of f = eᵍ, from f and slopes(k, r) = ∂ₖ∂ᵣ g: f⁽ⁱʲ⁾ = Σ binom(i−1, k)·binom(j, r)·g⁽ᵏ⁺¹ʳ⁾·f⁽ⁱ⁻¹⁻ᵏ ʲ⁻ʳ⁾."""
    found: dict[tuple[int, int], Any] = {(0, 0): first}
    for m in range(i + 1):
        for n in range(j + 1):
            if m:
                pairs = [(k, r, math.comb(m - 1, k) * math.comb(n, r)) for k in range(m) for r in range(n + 1)]
                terms = [(slopes(k + 1, r), found[m - 1 - k, n - r], float(c)) for k, r, c in pairs]
            elif n:
                terms = [(slopes(0, r + 1), found[0, n - 1 - r], float(math.comb(n - 1, r))) for r in range(n)]
            else:
                continue
            total = terms[0][0] * terms[0][1]
            for slope, rest, c in terms[1:]:
                total = total + c * (slope * rest)
            found[m, n] = total
    return found[i, j]


def gamma_slopes(a: Any, ln_x: Any, psi: Any, polygamma: Any) -> Callable[[int, int], Any]:
    """∂ₐᵏ of ln xᵃ⁻¹e⁻ˣ/Γ(a)."""
    return lambda k, _: ln_x - psi(a) if k == 1 else -polygamma(k - 1.0, a)


def beta_slopes(a: Any, b: Any, ln_x: Any, ln_y: Any, psi: Any, polygamma: Any) -> Callable[[int, int], Any]:
    """∂ₐᵏ∂ᵦʳ of ln xᵃ⁻¹yᵇ⁻¹/B(a, b), y = 1 − x."""

    def slope(k: int, r: int) -> Any:
        def of(c: Any) -> Any:
            return psi(c) if k + r == 1 else polygamma(k + r - 1.0, c)

        if k and r:
            return of(a + b)
        found = of(a + b) - of(a if k else b)
        return found + (ln_x if k else ln_y) if k + r == 1 else found

    return slope


def student_slopes(v: Any, c: Any, order: Callable[[int], Any], log1p: Any, inverse: Any) -> Callable[[int, int], Any]:
    """∂ᵥᵏ of the logarithm of Student's density with v degrees of freedom, c = t²; `order` is `student_order`."""
    apart, near = inverse(v), inverse(v + c)

    def line(k: int) -> Any:  # ∂ᵏ (ln(v + c) − ln v)
        return _log_slope(k) * (_power(near, k) - _power(apart, k)) if k else log1p(c * apart)

    return lambda k, _: order(k) - 0.5 * ((v + 1.0) * line(k) + float(k) * line(k - 1))


def student_order(v: Any, psi: Any, polygamma: Any, inverse: Any, k: int) -> Any:
    """∂ᵥᵏ of its part without t, −ln B(½, v/2) − ½ ln v."""
    up, down = 0.5 * (v + 1.0), 0.5 * v
    found = psi(up) - psi(down) if k == 1 else polygamma(k - 1.0, up) - polygamma(k - 1.0, down)
    return 0.5**k * found - (0.5 * _log_slope(k)) * _power(inverse(v), k)


def _log_slope(k: int) -> float:
    """The factor in ∂ᵏ ln x = (−1)ᵏ⁻¹ (k−1)! x⁻ᵏ."""
    return float((-1) ** (k - 1) * math.factorial(k - 1))


def _power(x: Any, n: int) -> Any:
    found = x
    for _ in range(n - 1):
        found = found * x
    return found


def _integral(density: Callable[[Any], Any], shape: Any) -> Any:
    """∫₀^∞ of a function of the distance from the start."""
    total: Any = np.zeros(shape)
    with np.errstate(all="ignore"):
        for r, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
            part = density(r)
            total = total + np.where(np.isfinite(part), weight * part, 0.0)
    return total


def _arrays(*xs: Any) -> Sequence[Any]:
    return np.broadcast_arrays(*[np.asarray(x, float) for x in xs])


def _kept(slopes: Callable[[int, int], Any]) -> Callable[..., Callable[[int, int], Any]]:
    """Slopes at every node, from those with zero in the place of ln x and ln(1 − x), which are computed once."""
    known = lru_cache(64)(slopes)
    first = {(1, 0): 0, (0, 1): 1}

    def at(*logs: Any) -> Callable[[int, int], Any]:
        return lambda k, r: known(k, r) + logs[first[k, r]] if (k, r) in first else known(k, r)

    return at


def _polygamma(s: Any) -> Callable[[float, Any], Any]:
    return lambda n, x: s.polygamma(int(n), x)


def gamma_derivative(s: Any, a: Any, x: Any, n: int) -> Any:
    """∂ⁿ/∂aⁿ of the lower incomplete gamma function, regularised."""
    a, x = _arrays(a, x)
    lower = x < a + 1.0
    width = np.where(lower, 1.0 / np.minimum(a, np.sqrt(a)), 1.0 / np.sqrt(np.maximum(x, 1.0)))
    step, start, log_gamma = np.where(lower, -width, width), np.log(x), s.gammaln(a)
    slopes = _kept(gamma_slopes(a, 0.0, s.psi, _polygamma(s)))

    def density(r: float) -> Any:
        v = start + step * r
        first = np.exp(a * v - np.exp(v) - log_gamma)
        return exponential(first, slopes(v), n) * step

    return np.where((x <= 0.0) | np.isinf(x), np.where(np.isnan(a + x), np.nan, 0.0), -_integral(density, a.shape))


def beta_derivative(s: Any, a: Any, b: Any, x: Any, i: int, j: int) -> Any:
    """∂ⁱ∂ʲ/∂aⁱ∂bʲ of the incomplete beta function, regularised."""
    a, b, x = _arrays(a, b, x)
    lower = x * (a + b) < a
    size = a * b / (a + b)
    width = np.maximum(1.0 / np.where(lower, a, b), 1.0 / np.sqrt(size))
    start, step, log_beta = np.log(x) - np.log1p(-x), np.where(lower, -width, width), s.betaln(a, b)
    slopes = _kept(beta_slopes(a, b, 0.0, 0.0, s.psi, _polygamma(s)))

    def density(r: float) -> Any:
        v = start + step * r
        ln_x, ln_y = -np.logaddexp(0.0, -v), -np.logaddexp(0.0, v)
        first = np.exp(a * ln_x + b * ln_y - log_beta)
        return exponential(first, slopes(ln_x, ln_y), i, j) * step

    return np.where((x <= 0.0) | (x >= 1.0), 0.0, -_integral(density, a.shape))


def student_derivative(s: Any, v: Any, t: Any, n: int) -> Any:
    """∂ⁿ/∂vⁿ of Student's distribution function."""
    v, t = _arrays(v, t)
    width, root = np.maximum(1.0 / v, 1.0 / np.sqrt(v)), np.sqrt(v)
    start, log_beta = np.arcsinh(np.abs(t) / root), s.betaln(0.5, 0.5 * v)
    order = lru_cache(64)(partial(student_order, v, s.psi, _polygamma(s), np.reciprocal))

    def density(r: float) -> Any:
        w = start + width * r
        c = v * np.sinh(w) ** 2
        log_cosh = w + np.log1p(np.exp(-2.0 * w)) - math.log(2.0)
        return (
            exponential(np.exp(-v * log_cosh - log_beta), student_slopes(v, c, order, np.log1p, np.reciprocal), n)
            * width
        )

    return -np.sign(t) * _integral(density, v.shape)
