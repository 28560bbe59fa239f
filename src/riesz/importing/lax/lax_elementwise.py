"""JAX's elementwise primitives."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from ...functions.control.branches import stop_gradient
from ...tracing.rules.elementwise import discrete, unmoving
from ...tracing.rules.special import PYTHON_FUNCTIONS
from ...tracing.trace import refuse
from .lax_registry import is_traced, lax

_UNARY: dict[str, Any] = {
    **{
        name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "log", "log1p")
    },
    **{name: getattr(np, name) for name in ("expm1", "sqrt", "cbrt", "abs", "sign", "floor", "ceil", "square")},
    **{"neg": np.negative, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh},
    **{"acosh": np.arccosh, "atanh": np.arctanh, "is_finite": np.isfinite, "real": np.real, "imag": np.imag},
    **{"conj": np.conj, "logistic": sp.expit, "erf": sp.erf, "erfc": sp.erfc, "erf_inv": sp.erfinv},
    **{"lgamma": sp.gammaln, "digamma": sp.digamma, "bessel_i0e": sp.i0e, "bessel_i1e": sp.i1e},
}
_BINARY: dict[str, Any] = {
    **{"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum},
    **{"atan2": np.arctan2, "lt": np.less, "le": np.less_equal, "gt": np.greater},
    **{"ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "lt_to": np.less, "le_to": np.less_equal},
    **{"eq_to": np.equal, "igamma": sp.gammainc, "igammac": sp.gammaincc, "zeta": sp.zeta},
    **{"shift_left": np.left_shift, "shift_right_arithmetic": np.right_shift},
}


def _entered(table: dict[str, Any], title: Callable[[Any], str]) -> None:
    for name, f in table.items():
        module = "np" if getattr(np, f.__name__, None) is f else "scipy.special"
        lax(f"`{module}.{f.__name__}`", name)(lambda reader, e, *xs, f=f: f(*xs))


_entered(_UNARY, str)
_entered(_BINARY, str)


def kind_of(e: Any) -> str:
    """The kind of the first result: f, i, u, b or c."""
    return np.dtype(e.outvars[0].aval.dtype).kind


@lax("the array itself", "copy", "copy_p", "optimization_barrier", "pvary", "sharding_constraint", "device_put")
@lax("the array itself", "reshard", "layout_constraint")
def _same(reader: Any, e: Any, *xs: Any, **named: Any) -> Any:
    return list(xs) if e.primitive.multiple_results else xs[0]


@lax("rounded to fewer bits; the derivative is that of the array itself", "reduce_precision")
def _reduce_precision(reader: Any, e: Any, x: Any) -> Any:
    bits = np.finfo(x.dtype)
    if e.params["exponent_bits"] >= bits.nexp and e.params["mantissa_bits"] >= bits.nmant:
        return x
    named = {k: e.params[k] for k in ("exponent_bits", "mantissa_bits")}
    return x + unmoving(less_precise, x.dtype, x, **named)


def less_precise(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """How much numbers change when they are rounded to fewer bits."""
    import jax

    x = np.asarray(x)
    with jax.enable_x64(True):
        return np.asarray(jax.lax.reduce_precision(x, exponent_bits, mantissa_bits)) - x


@lax("`1 / np.sqrt`", "rsqrt")
def _rsqrt(reader: Any, e: Any, x: Any) -> Any:
    return 1.0 / np.sqrt(x)


@lax("`x ** k`", "integer_pow")
def _integer_pow(reader: Any, e: Any, x: Any) -> Any:
    return x ** int(e.params["y"])


@lax("`x ** y`", "pow")
def _pow(reader: Any, e: Any, x: Any, y: Any) -> Any:
    return np.power(x, y if is_traced(y) or np.ndim(y) else np.asarray(y)[()].item())


@lax("`rz.stop_gradient`", "stop_gradient")
def _stop(reader: Any, e: Any, x: Any) -> Any:
    return stop_gradient(x)


@lax("`x.astype`", "convert_element_type")
def _convert(reader: Any, e: Any, x: Any) -> Any:
    dtype = np.dtype(e.outvars[0].aval.dtype)
    if x.dtype.kind == "f" and dtype.kind == "b":
        return np.not_equal(x, 0)
    return x if x.dtype == dtype else x.astype(dtype)


@lax("`np.round`, half to even or away from zero", "round")
def _round(reader: Any, e: Any, x: Any) -> Any:
    if int(e.params["rounding_method"]) == 1:
        return np.round(x)
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), np.zeros((), x.dtype))


@lax("logical or bitwise", "and", "or", "xor", "not")
def _logic(reader: Any, e: Any, *xs: Any) -> Any:
    name = e.primitive.name
    if kind_of(e) == "b":
        return getattr(np, f"logical_{name}")(*xs)
    return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}[name](*xs)


@lax("`x / y`; whole numbers towards zero", "div")
def _div(reader: Any, e: Any, x: Any, y: Any) -> Any:
    kind = kind_of(e)
    if kind == "i":
        whole = np.floor_divide(np.abs(x), np.maximum(np.abs(y), 1))
        return np.where(np.not_equal(x < 0, y < 0), -whole, whole)
    return np.floor_divide(x, np.maximum(y, 1)) if kind == "u" else x / y


@lax("`np.fmod`", "rem")
def _rem(reader: Any, e: Any, x: Any, y: Any) -> Any:
    if kind_of(e) in "iu":
        whole = np.remainder(np.abs(x), np.maximum(np.abs(y), 1))
        return np.where(x < 0, -whole, whole)
    return np.fmod(x, y)


@lax("`np.clip`", "clamp")
def _clamp(reader: Any, e: Any, low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


@lax("`np.where`", "select_n")
def _select(reader: Any, e: Any, which: Any, *cases: Any) -> Any:
    if np.dtype(e.invars[0].aval.dtype).kind == "b":
        if not is_traced(which) and np.size(which) and which.all() | (not which.any()):
            return cases[int(which.flat[0] if np.ndim(which) else which)]
        return np.where(which, cases[1], cases[0])
    found = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        found = np.where(np.less_equal(which, k), cases[k], found)
    return found


@lax("`scipy.special.betainc`", "regularized_incomplete_beta")
def _betainc(reader: Any, e: Any, a: Any, b: Any, x: Any) -> Any:
    return sp.betainc(a, b, x)


@lax("`scipy.special.polygamma`", "polygamma")
def _polygamma(reader: Any, e: Any, n: Any, x: Any) -> Any:
    return PYTHON_FUNCTIONS["polygamma"][0](n, x)


@lax("discrete", "nextafter")
def _nextafter(reader: Any, e: Any, x: Any, y: Any) -> Any:
    return discrete(np.nextafter, x, y)


@lax("the same bits, without a derivative", "bitcast_convert_type")
def _bits(reader: Any, e: Any, x: Any) -> Any:
    source, target = np.dtype(e.invars[0].aval.dtype), np.dtype(e.params["new_dtype"])
    if source.itemsize != target.itemsize:
        raise refuse("lax.bitcast_convert_type is known between types of one size")
    return unmoving(bits_of, target, x, source=source, target=target)


def bits_of(x: Any, source: Any, target: Any) -> Any:
    """Numbers read as another type."""
    return np.asarray(x, source).view(target)


@lax("`x * y + z`", "mul_add", "fma")
def _fma(reader: Any, e: Any, x: Any, y: Any, z: Any) -> Any:
    return x * y + z
