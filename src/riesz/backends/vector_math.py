"""Functions of numbers without branches, which a compiler turns into vector instructions; right to a few units in the last place.

The usual reductions: eˣ = 2ᵏ·eʳ with |r| ≤ ½ ln 2, ln x = k·ln 2 + ln m with m near 1, and polynomials there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

ROUND = 6755399441055744.0
"""1.5·2⁵²: added to a number it rounds it to a whole one, which is then in the lowest bits."""
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = [1.0 / math.factorial(n) for n in range(2, 14)]
L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = [2.0 / (2 * n + 1) for n in range(1, 11)]


@lru_cache(maxsize=1)
def functions() -> dict[str, Any]:
    """The compiled functions by name; `plus` is a sum whose terms may be taken in any order."""
    import numba  # pyright: ignore
    from llvmlite import ir  # pyright: ignore
    from numba.core import types  # pyright: ignore
    from numba.extending import intrinsic  # pyright: ignore

    jit: Any = numba.njit(nogil=True, error_model="numpy", forceinline=True)  # pyright: ignore
    reassociated: Any = numba.njit(nogil=True, fastmath={"reassoc"}, forceinline=True)  # pyright: ignore
    made: Any = intrinsic
    kinds: Any = types
    llvm: Any = ir

    @made
    def bits(context: Any, x: Any) -> Any:
        return kinds.int64(kinds.float64), lambda context, builder, signature, args: builder.bitcast(args[0], llvm.IntType(64))

    @made
    def number(context: Any, n: Any) -> Any:
        return kinds.float64(kinds.int64), lambda context, builder, signature, args: builder.bitcast(args[0], llvm.DoubleType())

    @jit
    def power_of_two(k: Any) -> Any:
        return number((k + 1023) << 52)

    @jit
    def tail(r: Any) -> Any:  # (eʳ − 1 − r) / r²
        high = E8 + r * (E9 + r * (E10 + r * (E11 + r * (E12 + r * E13))))
        return E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * (E7 + r * high)))))

    @jit
    def exp(x: Any) -> Any:
        c = 710.0 if x > 710.0 else -746.0 if x < -746.0 else x
        s = c * LOG2_E + ROUND
        k = s - ROUND
        r = (c - k * LN2_HIGH) - k * LN2_LOW
        y = 1.0 + (r + r * r * tail(r))
        n = (bits(s) << 32) >> 32
        h = n >> 1
        y = y * power_of_two(h) * power_of_two(n - h)
        return y if x == x else x

    @jit
    def expm1(x: Any) -> Any:
        c = 710.0 if x > 710.0 else -40.0 if x < -40.0 else x
        s = c * LOG2_E + ROUND
        k = s - ROUND
        high = c - k * LN2_HIGH
        low = k * LN2_LOW
        r = high - low
        lost = (high - r) - low
        n = (bits(s) << 32) >> 32
        h = n >> 1
        first, second = power_of_two(h), power_of_two(n - h)
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
        high, low, f = ln_parts(x)
        y = high + (f + low)
        y = y if x > 0.0 else -math.inf if x == 0.0 else math.nan
        return y if x < math.inf else x  # nan too

    @jit
    def log1p(x: Any) -> Any:
        u = 1.0 + x
        high, low, f = ln_parts(u)
        lost = (x - (u - 1.0) if x < 1e16 else 0.0) / u
        y = high + (f + (low + lost))
        y = y if u > 0.0 else -math.inf if u == 0.0 else math.nan
        y = y if abs(x) > 1e-300 else x
        return y if x < math.inf else x

    @jit
    def tanh(x: Any) -> Any:
        a = abs(x)
        t = expm1(-2.0 * (a if a < 30.0 else 30.0))
        y = (0.0 - t) / (t + 2.0)
        y = y if x > 0.0 else -y if x < 0.0 else x
        return y if x == x else x

    @jit
    def sigmoid(x: Any) -> Any:
        e = exp(-abs(x))
        return (1.0 if x >= 0.0 else e) / (1.0 + e)

    @jit
    def logaddexp(a: Any, b: Any) -> Any:
        d = a - b
        top = a if a > b else b
        y = top + log1p(exp(-abs(d)))
        y = y if a != b else a + 0.6931471805599453
        return y if a == a and b == b else a + b

    @reassociated
    def plus(a: Any, b: Any) -> Any:
        return a + b

    return {"exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "tanh": tanh, "sigmoid": sigmoid, "logaddexp": logaddexp, "plus": plus}
