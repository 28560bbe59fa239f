"""The numbers of forms: fractions where they are such; conditions, which are numbers 0 and 1."""

from __future__ import annotations

import math
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
