"""The numbers of forms: fractions where they are such; conditions, which are numbers 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Number = Fraction | float
ONE = Fraction(1)

TIES = {"larger": "0.5", "exceeds": "0", "reaches": "1"}
"""Conditions [u > v], by what they are where u = v: of the derivative of max(u, v), of u > v, and of u ≥ v."""
BESIDES = {"larger": "larger", "exceeds": "reaches", "reaches": "exceeds"}
"""1 − [u > v] is another one of (v, u)."""


def exact(k: Any) -> Number:
    """A number as a fraction where it is one."""
    if isinstance(k, Fraction):
        return k
    k = float(k)
    if not math.isfinite(k):
        return k
    near = Fraction(k).limit_denominator(2000)
    return near if abs(float(near) - k) <= 1e-15 * abs(k) else k


def added(a: Number, b: Number) -> Number:
    """a + b; 0 where only rounding is left."""
    return a + b if abs(a + b) > 1e-14 * abs(a) else Fraction(0)


def to_power(k: Number, p: Fraction) -> Number:
    """k to a power."""
    if p.denominator == 1 and isinstance(k, Fraction):
        return k ** int(p)
    return exact(float(k) ** float(p))


def common_number(scales: Sequence[Number], factors: Sequence[bool]) -> Number:
    """The number that is taken out of a sum, without a sign, from the numbers of its terms and which of these have
    factors: 6 x + 4 y = 2 (3 x + 2 y)."""
    first: Number = ONE if all([isinstance(k, Fraction) for k in scales]) else abs(scales[0])
    ratios = [k for k in [exact(k / first) for k in scales] if isinstance(k, Fraction)]
    if len(ratios) < len(scales):  # numbers that are no fractions of one another stay where they are
        return ONE
    unit = Fraction(math.gcd(*[k.numerator for k in ratios]), math.lcm(*[k.denominator for k in ratios]))
    common = first * unit * _decimal([abs(int(k / unit)) for k in ratios], factors)
    far = max([abs(k) for k in scales]) > 1000 * abs(common)
    return ONE if far and not all([isinstance(k, Fraction) for k in scales]) else common  # 10⁻⁵ beside 1


def _decimal(whole: Sequence[int], factors: Sequence[bool]) -> int:
    """What the whole numbers of a sum are divided by where decimals are what was written: 10 x − 9 y is x − (9/10) y,
    and 50 x − 1 is x − 1/50."""
    others = {k for k, some in zip(whole, factors, strict=True) if some}
    m = max(others, default=1)
    beside_number = len(others) == 1 and not all(factors)
    return m if m >= 10 and 10**9 % m == 0 and (beside_number or (1 not in whole and m == max(whole))) else 1
