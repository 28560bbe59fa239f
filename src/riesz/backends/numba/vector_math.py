"""Functions of numbers without branches, which a compiler turns into vector instructions; right to a few units in the
last place.

The usual reductions: eˣ = 2ᵏ·eʳ with |r| ≤ ½ ln 2, ln x = k·ln 2 + ln m with m near 1, and polynomials there.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

ROUND = 6755399441055744.0
"""1.5·2⁵²: added to a number it rounds it to a whole one, which is then in the lowest bits."""
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = [1.0 / math.factorial(n) for n in range(2, 14)]
P1, P2 = 1.57079632673412561417e00, 6.07710050630396597660e-11  # π/2, in 33 bits each
P3 = 2.02226624879595063154e-21
S1, S2, S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
S4, S5, S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
C1, C2, C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
C4, C5, C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = [2.0 / (2 * n + 1) for n in range(1, 11)]


jit = numba.njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})


def _bits(_: Any, x: Any) -> Any:
    """The bits of a number as an integer."""
    return types.int64(types.float64), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(64))


def _number(_: Any, n: Any) -> Any:
    """The number that has some bits."""
    return types.float64(types.int64), lambda _, builder, __, args: builder.bitcast(args[0], ir.DoubleType())


bits: Any = intrinsic(_bits)
number: Any = intrinsic(_number)


@jit
def power_of_two(k: Any) -> Any:
    """2ᵏ."""
    return number((k + 1023) << 52)


@jit
def tail(r: Any) -> Any:
    """(eʳ − 1 − r) / r²."""
    high = E8 + r * (E9 + r * (E10 + r * (E11 + r * (E12 + r * E13))))
    return E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * (E7 + r * high)))))


@jit
def reduced(c: Any) -> Any:
    """c = n·ln 2 + high − low, with a whole number n."""
    s = c * LOG2_E + ROUND
    k = s - ROUND
    return c - k * LN2_HIGH, k * LN2_LOW, (bits(s) << 32) >> 32


@jit
def exp(x: Any) -> Any:
    """eˣ."""
    high, low, n = reduced(710.0 if x > 710.0 else -746.0 if x < -746.0 else x)
    r, h = high - low, n >> 1
    y = (1.0 + (r + r * r * tail(r))) * power_of_two(h) * power_of_two(n - h)
    return y if x == x else x


@jit
def expm1(x: Any) -> Any:
    """eˣ − 1."""
    high, low, n = reduced(710.0 if x > 710.0 else -40.0 if x < -40.0 else x)
    r, h = high - low, n >> 1
    first, second = power_of_two(h), power_of_two(n - h)
    lost = (high - r) - low
    y = (r + (r * r * tail(r) + lost)) * first * second + (first * second - 1.0)
    y = y if x < 709.8 else math.inf
    y = y if abs(x) > 1e-300 else x
    return y if x == x else x


@jit
def ln_parts(x: Any) -> Any:
    """ln x = high + low for 0 < x < inf."""
    tiny = x < 2.2250738585072014e-308
    b = bits(x * 18014398509481984.0 if tiny else x)
    e = (b - 0x3FE6A09E667F3BCD) >> 52  # m is between √½ and √2
    m = number(b - (e << 52))
    k = float(e) - (54.0 if tiny else 0.0)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    high = L5 + z * (L6 + z * (L7 + z * (L8 + z * (L9 + z * L10))))
    series = z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * high))))
    half = 0.5 * f * f
    return k * LN2_HIGH, k * LN2_LOW - (half - s * (half + series)), f


@jit
def log(x: Any) -> Any:
    """ln x."""
    high, low, f = ln_parts(x)
    y = high + (f + low)
    y = y if x > 0.0 else -math.inf if x == 0.0 else math.nan
    return y if x < math.inf else x  # nan too


@jit
def log1p(x: Any) -> Any:
    """ln(1 + x)."""
    u = 1.0 + x
    high, low, f = ln_parts(u)
    lost = (x - (u - 1.0) if x < 1e16 else 0.0) / u
    y = high + (f + (low + lost))
    y = y if u > 0.0 else -math.inf if u == 0.0 else math.nan
    y = y if abs(x) > 1e-300 else x
    return y if x < math.inf else x


@jit
def tanh(x: Any) -> Any:
    """tanh x = −t / (t + 2) with t = e⁻²ˣ − 1."""
    a = abs(x)
    high, low, n = reduced(-2.0 * a if a < 20.0 else -40.0)
    r, two = high - low, power_of_two(n)
    t = (r + r * r * tail(r)) * two + (two - 1.0)  # e⁻²ᵃ − 1
    y = (0.0 - t) / (t + 2.0)
    y = -y if x < 0.0 else y
    return y if a > 1e-300 else x  # nan too


@jit
def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@jit
def logaddexp(a: Any, b: Any) -> Any:
    """ln(eᵃ + eᵇ)."""
    d = a - b
    top = a if a > b else b
    y = top + log1p(exp(-abs(d)))
    y = y if a != b else a + 0.6931471805599453
    return y if a == a and b == b else a + b


@jit
def turn(x: Any, quarters: Any) -> Any:
    """sin(x + quarters·π/2)."""
    s = x * 0.6366197723675814 + ROUND
    k = s - ROUND
    t = x - k * P1
    u = t - k * P2
    low = k * P3 - ((t - u) - k * P2)
    r = u - low
    low = (u - r) - low
    z = r * r
    high = S2 + z * (S3 + z * (S4 + z * (S5 + z * S6)))
    sine = r - ((z * (0.5 * low - z * r * high) - low) - z * r * S1)
    w = 1.0 - 0.5 * z
    tail = z * (z * (C1 + z * (C2 + z * (C3 + z * (C4 + z * (C5 + z * C6))))))
    cosine = w + (((1.0 - w) - 0.5 * z) + (tail - r * low))
    n = bits(s) + quarters
    y = cosine if n & 1 else sine
    return -y if n & 2 else y


@jit
def sin(x: Any) -> Any:
    """sin x, for |x| ≤ WIDEST."""
    y = turn(x, 0)
    return y if x != 0.0 else x


@jit
def cos(x: Any) -> Any:
    """cos x, for |x| ≤ WIDEST."""
    return turn(x, 1)


@numba.njit(nogil=True, fastmath={"reassoc"}, forceinline=True)
def plus(a: Any, b: Any) -> Any:
    """a + b, in a sum whose terms may be taken in any order."""
    return a + b


@jit
def larger(a: Any, b: Any) -> Any:
    """The larger number, or nan."""
    return a if a > b or a != a else b


@jit
def smaller(a: Any, b: Any) -> Any:
    """The smaller number, or nan."""
    return a if a < b or a != a else b


def loop(function: Any) -> Any:
    """A function on arrays, compiled for those it meets; it runs without the interpreter's lock."""
    return numba.njit(nogil=True, error_model="numpy")(function)


_ALL = (exp, expm1, log, log1p, tanh, sigmoid, logaddexp, sin, cos, plus, larger, smaller)
FUNCTIONS: dict[str, Any] = {f.__name__: f for f in _ALL}
EXACT: dict[str, Any] = {**FUNCTIONS, "sin": jit(lambda x: math.sin(x)), "cos": jit(lambda x: math.cos(x))}
"""The same with sines and cosines that are right everywhere."""
