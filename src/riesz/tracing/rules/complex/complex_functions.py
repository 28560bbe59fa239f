"""Complex arithmetic and functions of one complex number, written with real and imaginary part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ....terms import primitives as p
from ...differentials import plus
from ...traced import holds_traced, is_complex, primitive_step
from .complex_pairs import complex_answers, each, joined, parts_of


def minus(a: Any, b: Any) -> Any:
    return a if b is None else -b if a is None else a - b


def _times(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a * b


def _or_zero(a: Any) -> Any:
    return 0.0 if a is None else a


# -- arithmetic -------------------------------------------------------------------------------------------


@complex_answers(np.add, what="sums of parts")
def add(a: Any, b: Any) -> Any:
    """a + b."""
    (ar, ai), (br, bi) = parts_of(a), parts_of(b)
    return joined(plus(ar, br), plus(ai, bi))


@complex_answers(np.subtract, what="differences of parts")
def subtract(a: Any, b: Any) -> Any:
    """a − b."""
    (ar, ai), (br, bi) = parts_of(a), parts_of(b)
    return joined(minus(ar, br), minus(ai, bi))


@complex_answers(np.multiply, what="four products")
def multiply(a: Any, b: Any) -> Any:
    """a · b."""
    (ar, ai), (br, bi) = parts_of(a), parts_of(b)
    return joined(minus(_times(ar, br), _times(ai, bi)), plus(_times(ar, bi), _times(ai, br)))


@complex_answers(np.divide, what="a · b̄ / |b|²")
def divide(a: Any, b: Any) -> Any:
    """a / b."""
    br, bi = parts_of(b)
    if bi is None:
        return each(lambda x: x / br, a)
    size = plus(_times(br, br), bi * bi)
    return each(lambda x: x / size, multiply(a, joined(br, -bi)))


@complex_answers(np.reciprocal, what="b̄ / |b|²")
def reciprocal(z: Any) -> Any:
    """1 / z."""
    return divide(1.0, z)


@complex_answers(np.negative, what="parts negated")
def negative(z: Any) -> Any:
    """−z."""
    return each(lambda x: -x, z)


@complex_answers(np.positive, what="identity")
def positive(z: Any) -> Any:
    """z."""
    return z


@complex_answers(np.conjugate, what="imaginary part negated")
def conjugate(z: Any) -> Any:
    """re − i·im."""
    re, im = parts_of(z)
    return joined(re, None if im is None else -im)


@complex_answers(np.square, what="products of parts")
def square(z: Any) -> Any:
    """z²."""
    return multiply(z, z)


@complex_answers(np.power, np.float_power, what="products for whole exponents, else through polar form")
def power(a: Any, b: Any) -> Any:
    """a ** b."""
    if (
        isinstance(b, (int, float, np.integer, np.floating))
        and float(cast(Any, b)).is_integer()
        and abs(cast(Any, b)) < 1024
    ):
        return _whole_power(a, int(cast(Any, b)))
    if is_complex(b):
        return exp(multiply(b, log(a)))
    size, angle = absolute(a), argument(a)
    return joined(size**b * np.cos(b * angle), size**b * np.sin(b * angle))


def _whole_power(z: Any, k: int) -> Any:
    if k < 0:
        return divide(1.0, _whole_power(z, -k))
    if k == 0:
        return np.ones(z.shape, z.dtype)
    result: Any = None
    while k:
        if k % 2:
            result = z if result is None else multiply(result, z)
        k //= 2
        z = multiply(z, z) if k else z
    return result


# -- functions --------------------------------------------------------------------------------------------


@complex_answers(np.absolute, what="primitive hypot; derivative 0 at 0")
def absolute(z: Any) -> Any:
    """|z|."""
    re, im = parts_of(z)
    if im is None:
        return np.abs(re)
    return np.abs(im) if re is None else np.hypot(re, im)


@complex_answers(np.angle, what="primitive arctan2")
def argument(z: Any, deg: bool = False) -> Any:
    """The angle of z."""
    re, im = parts_of(z)
    if im is None:
        return np.angle(re, deg)
    angle = np.arctan2(im, _or_zero(re))
    return angle * (180.0 / np.pi) if deg else angle


@complex_answers(np.sign, what="z / |z|, 0 at 0")
def sign(z: Any) -> Any:
    """z on the unit circle."""
    return multiply(z, primitive_step(p.inverse, absolute(z)))


@complex_answers(np.exp, what="eʳᵉ · (cos im + i·sin im)")
def exp(z: Any) -> Any:
    """e^z."""
    re, im = parts_of(z)
    size = None if re is None else np.exp(re)
    if im is None:
        return joined(size, None)
    return joined(np.cos(im), np.sin(im)) if size is None else joined(size * np.cos(im), size * np.sin(im))


@complex_answers(np.log, what="ln |z| + i·angle z")
def log(z: Any) -> Any:
    """The logarithm with its imaginary part in (−π, π]."""
    if not holds_traced(z):
        return np.log(np.asarray(z, complex))
    return joined(np.log(absolute(z)), argument(z))


@complex_answers(np.sqrt, what="√|z| at half the angle")
def sqrt(z: Any) -> Any:
    """The root with a real part ≥ 0."""
    size, half = np.sqrt(absolute(z)), argument(z) * 0.5
    return joined(size * np.cos(half), size * np.sin(half))


def _crossed(outer: Any, inner: Any, outer2: Any, inner2: Any, turn: float) -> Callable[[Any], Any]:
    """f(x + iy) = outer(x)·inner(y) ± i·outer₂(x)·inner₂(y)."""

    def code(z: Any) -> Any:
        re, im = [_or_zero(x) for x in parts_of(z)]
        return joined(outer(re) * inner(im), turn * (outer2(re) * inner2(im)))

    return code


sin = complex_answers(np.sin, what="sin x · cosh y + i·cos x · sinh y")(_crossed(np.sin, np.cosh, np.cos, np.sinh, 1.0))
cos = complex_answers(np.cos, what="cos x · cosh y − i·sin x · sinh y")(
    _crossed(np.cos, np.cosh, np.sin, np.sinh, -1.0)
)
sinh = complex_answers(np.sinh, what="sinh x · cos y + i·cosh x · sin y")(
    _crossed(np.sinh, np.cos, np.cosh, np.sin, 1.0)
)
cosh = complex_answers(np.cosh, what="cosh x · cos y + i·sinh x · sin y")(
    _crossed(np.cosh, np.cos, np.sinh, np.sin, 1.0)
)


@complex_answers(np.tan, what="sin / cos")
def tan(z: Any) -> Any:
    """The tangent."""
    return divide(sin(z), cos(z))


@complex_answers(np.tanh, what="sinh / cosh")
def tanh(z: Any) -> Any:
    """The hyperbolic tangent."""
    return divide(sinh(z), cosh(z))


@complex_answers(np.log2, what="log z / log 2")
def log2(z: Any) -> Any:
    """The logarithm in base 2."""
    return divide(log(z), float(np.log(2.0)))


@complex_answers(np.log10, what="log z / log 10")
def log10(z: Any) -> Any:
    """The logarithm in base 10."""
    return divide(log(z), float(np.log(10.0)))


# -- questions --------------------------------------------------------------------------------------------


@complex_answers(np.equal, what="discrete")
def equal(a: Any, b: Any) -> Any:
    """Whether both parts are equal."""
    (ar, ai), (br, bi) = [[_or_zero(x) for x in parts_of(v)] for v in (a, b)]
    return np.logical_and(np.equal(ar, br), np.equal(ai, bi))


@complex_answers(np.not_equal, what="discrete")
def not_equal(a: Any, b: Any) -> Any:
    """Whether a part differs."""
    return np.logical_not(equal(a, b))


def _question(ufunc: Any, both: Any) -> None:
    @complex_answers(ufunc, what="discrete")
    def code(z: Any) -> Any:
        return both(ufunc(z.real), ufunc(z.imag))


_question(np.isfinite, np.logical_and)
_question(np.isnan, np.logical_or)
_question(np.isinf, np.logical_or)


@complex_answers(np.real, what="the real part")
def real(z: Any) -> Any:
    """The real part."""
    return z.real


@complex_answers(np.imag, what="the imaginary part")
def imag(z: Any) -> Any:
    """The imaginary part."""
    return z.imag
