"""Complex arithmetic and functions of one complex number, written with real and imaginary part."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ....terms import primitives as p
from ...differentials import plus
from ...registry import COMPLEX
from ...trace import refuse
from ...traced import holds_traced, is_complex, lifted, primitive_step, trace_of
from ..linalg.matrix_ops import differential_of, taken_apart
from ..linalg.numpy_linalg import whole_power
from ..scientific.gamma_functions import s
from .complex_pairs import each, joined, parts_of


def minus(a: Any, b: Any) -> Any:
    """a − b; None is zero."""
    return a if b is None else -b if a is None else a - b


def _times(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a * b


def _or_zero(z: Any) -> list[Any]:
    """Both parts, with zeros written out."""
    return [0.0 if x is None else x for x in parts_of(z)]


def multiply(a: Any, b: Any) -> Any:
    """a · b."""
    (ar, ai), (br, bi) = parts_of(a), parts_of(b)
    return joined(minus(_times(ar, br), _times(ai, bi)), plus(_times(ar, bi), _times(ai, br)))


def divide(a: Any, b: Any) -> Any:
    """a · b̄ / |b|²."""
    br, bi = parts_of(b)
    if bi is None:
        return each(lambda x: x / br, a)
    size = plus(_times(br, br), bi * bi)
    return each(lambda x: x / size, multiply(a, joined(br, -bi)))


def conjugate(z: Any) -> Any:
    """re − i·im."""
    re, im = parts_of(z)
    return joined(re, None if im is None else -im)


def _power(a: Any, b: Any) -> Any:
    """Products for whole exponents, else through polar form."""
    number = isinstance(b, (int, float, np.integer, np.floating))
    if number and float(cast(Any, b)).is_integer() and abs(cast(Any, b)) < 1024:
        k = int(cast(Any, b))
        found = whole_power(a, abs(k), multiply) if k else np.ones(a.shape, a.dtype)
        return divide(1.0, found) if k < 0 else found
    if is_complex(b):
        return exp(multiply(b, log(a)))
    size, angle = absolute(a), argument(a)
    return joined(size**b * np.cos(b * angle), size**b * np.sin(b * angle))


def absolute(z: Any) -> Any:
    """|z|, with derivative 0 at 0."""
    re, im = parts_of(z)
    if im is None:
        return np.abs(re)
    return np.abs(im) if re is None else np.hypot(re, im)


def argument(z: Any, deg: bool = False) -> Any:
    """The angle of z."""
    re, im = parts_of(z)
    if im is None:
        return np.angle(re, deg)
    angle = np.arctan2(im, 0.0 if re is None else re)
    return angle * (180.0 / np.pi) if deg else angle


def exp(z: Any) -> Any:
    """eʳᵉ · (cos im + i·sin im)."""
    re, im = parts_of(z)
    size = None if re is None else np.exp(re)
    if im is None:
        return joined(size, None)
    return joined(np.cos(im), np.sin(im)) if size is None else joined(size * np.cos(im), size * np.sin(im))


def log(z: Any) -> Any:
    """ln |z| + i·angle z, the angle in (−π, π]."""
    if not holds_traced(z):
        return np.log(np.asarray(z, complex))
    return joined(np.log(absolute(z)), argument(z))


def _sqrt(z: Any) -> Any:
    """√|z| at half the angle: the root with a real part ≥ 0."""
    size, half = np.sqrt(absolute(z)), argument(z) * 0.5
    return joined(size * np.cos(half), size * np.sin(half))


def _crossed(outer: Any, inner: Any, outer2: Any, inner2: Any, turn: float = 1.0) -> Any:
    """f(x + iy) = outer(x)·inner(y) ± i·outer₂(x)·inner₂(y)."""

    def code(z: Any) -> Any:
        re, im = _or_zero(z)
        return joined(outer(re) * inner(im), turn * (outer2(re) * inner2(im)))

    return code


_sin, _cos = _crossed(np.sin, np.cosh, np.cos, np.sinh), _crossed(np.cos, np.cosh, np.sin, np.sinh, -1.0)
_sinh, _cosh = _crossed(np.sinh, np.cos, np.cosh, np.sin), _crossed(np.cosh, np.cos, np.sinh, np.sin)


def _expm1(z: Any) -> Any:
    """eᶻ − 1, exact for small z."""
    re, im = _or_zero(z)
    half = np.sin(im * 0.5)
    return joined(np.expm1(re) * np.cos(im) - 2.0 * half * half, np.exp(re) * np.sin(im))


def _log1p(z: Any) -> Any:
    """ln(1 + z), exact for small z."""
    re, im = _or_zero(z)
    return joined(0.5 * np.log1p(re * (2.0 + re) + im * im), np.arctan2(im, 1.0 + re))


def _arcsinh(z: Any) -> Any:
    """±ln(±z + √(z² + 1)), with the sign for which nothing cancels."""
    re, _ = _or_zero(z)
    sign = np.where(re < 0, -1.0, 1.0)
    return log(z * sign + _sqrt(z * z + 1.0)) * sign


def _arctanh(z: Any) -> Any:
    return (_log1p(z) - _log1p(-z)) * 0.5


def _arccosh(z: Any) -> Any:
    return log(z + _sqrt(z + 1.0) * _sqrt(z - 1.0))


def _product(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **named: Any) -> Any:
    """Half of the numbers times the other half, until one is left."""
    if named or isinstance(axis, tuple):
        raise refuse("np.prod of complex traced arrays takes one axis or none; take one after another")
    z = np.ravel(a) if axis is None else np.moveaxis(a, axis, 0)
    while z.shape[0] > 1:
        half = z.shape[0] // 2
        rest = z[2 * half :]
        z = z[:half] * z[half : 2 * half]
        z = z if not rest.shape[0] else np.concatenate([z[:-1], z[-1:] * rest])
    found = z[0] if z.shape[0] else joined(lifted(np.ones(z.shape[1:]), trace_of(a.re, a.im)), None)
    if keepdims is not True:
        return found
    return np.reshape(found, (1,) * a.ndim if axis is None else np.insert(found.shape, axis % a.ndim, 1).tolist())


def _equal(a: Any, b: Any) -> Any:
    (ar, ai), (br, bi) = _or_zero(a), _or_zero(b)
    return np.logical_and(np.equal(ar, br), np.equal(ai, bi))


def _question(ufunc: Any, both: Any) -> Any:
    return lambda z: both(ufunc(z.real), ufunc(z.imag))


# -- functions of scipy.special ---------------------------------------------------------------------------


def _of_special(name: str, slope: Any) -> Any:
    """A function of scipy.special with a complex derivative, `slope(z, y)`, as an op of both parts."""

    def array(a: Any, b: Any) -> Any:
        found: Any = getattr(s, name)(a + 1j * b)
        return np.array(found.real), np.array(found.imag)

    @differential_of(f"{name}_complex", array, lambda a, b: (a, a))
    def smooth(d: Any, y: Any, a: Any, b: Any) -> Any:
        found = multiply(slope(joined(a, b), joined(*y)), joined(*d))
        return found.real, found.imag

    def rule(z: Any) -> Any:
        re, im = parts_of(z)
        other: Any = im if re is None else re
        return joined(*taken_apart(smooth, *[0.0 * other if x is None else x for x in (re, im)]))

    return rule


_ROOT_PI = float(np.sqrt(np.pi))
_SLOPES: dict[str, Any] = {
    "erf": lambda z, y: exp(-z * z) * (2.0 / _ROOT_PI),
    "erfc": lambda z, y: exp(-z * z) * (-2.0 / _ROOT_PI),
    "erfi": lambda z, y: exp(z * z) * (2.0 / _ROOT_PI),
    "erfcx": lambda z, y: 2.0 * z * y - 2.0 / _ROOT_PI,
    "wofz": lambda z, y: 2j / _ROOT_PI - 2.0 * z * y,
    "dawsn": lambda z, y: 1.0 - 2.0 * z * y,
}
COMPLEX.update({name: _of_special(name, slope) for name, slope in _SLOPES.items()})
COMPLEX.update(
    {
        np.add: lambda a, b: joined(*map(plus, parts_of(a), parts_of(b))),
        np.subtract: lambda a, b: joined(*map(minus, parts_of(a), parts_of(b))),
        np.multiply: multiply,
        np.divide: divide,
        np.reciprocal: lambda z: divide(1.0, z),
        np.negative: lambda z: each(lambda x: -x, z),
        np.positive: lambda z: z,
        np.conjugate: conjugate,
        np.square: lambda z: multiply(z, z),
        np.power: _power,
        np.float_power: _power,
        np.absolute: absolute,
        np.angle: argument,
        np.sign: lambda z: multiply(z, primitive_step(p.inverse, absolute(z))),  # 0 at 0
        np.exp: exp,
        np.log: log,
        np.log2: lambda z: divide(log(z), float(np.log(2.0))),
        np.log10: lambda z: divide(log(z), float(np.log(10.0))),
        np.sqrt: _sqrt,
        np.sin: _sin,
        np.cos: _cos,
        np.tan: lambda z: divide(_sin(z), _cos(z)),
        np.sinh: _sinh,
        np.cosh: _cosh,
        np.tanh: lambda z: divide(_sinh(z), _cosh(z)),
        np.exp2: lambda z: exp(z * float(np.log(2.0))),
        np.expm1: _expm1,
        np.log1p: _log1p,
        np.arcsinh: _arcsinh,
        np.arccosh: _arccosh,
        np.arctanh: _arctanh,
        np.arcsin: lambda z: _arcsinh(z * 1j) * -1j,
        np.arctan: lambda z: _arctanh(z * 1j) * -1j,
        np.prod: _product,
        np.iscomplex: lambda z: np.not_equal(z.imag, 0.0),
        np.isreal: lambda z: np.equal(z.imag, 0.0),
        np.equal: _equal,
        np.not_equal: lambda a, b: np.logical_not(_equal(a, b)),
        np.isfinite: _question(np.isfinite, np.logical_and),
        np.isnan: _question(np.isnan, np.logical_or),
        np.isinf: _question(np.isinf, np.logical_or),
        np.real: lambda z: z.real,
        np.imag: lambda z: z.imag,
    }
)
