"""PyTorch's elementwise operations."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...functions.control.branches import stop_gradient
from ...tracing.rules.special import PYTHON_FUNCTIONS
from ...tracing.trace import refuse
from ..lax.lax_registry import is_traced
from .aten_registry import DRAWS, aten, numpy_type

_SAME = (
    "sin cos tan sinh cosh tanh exp exp2 log log1p log2 log10 expm1 sqrt square abs sign floor ceil trunc reciprocal"
)
_UNARY: dict[str, Any] = {
    **{name: getattr(np, name) for name in _SAME.split()},
    **{
        "neg": np.negative,
        "_neg_view": np.negative,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "asinh": np.arcsinh,
    },
    **{"acosh": np.arccosh, "atanh": np.arctanh, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite},
    **{"logical_not": np.logical_not, "signbit": np.signbit, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg},
    **{"real": np.real, "imag": np.imag, "conj_physical": np.conj, "_conj": np.conj},
    **{"erf": sp.erf, "erfc": sp.erfc, "erfinv": sp.erfinv, "lgamma": sp.gammaln, "digamma": sp.digamma},
    **{"sigmoid": sp.expit, "special_i0": sp.i0, "special_i0e": sp.i0e, "special_i1": sp.i1, "special_i1e": sp.i1e},
    **{"i0": sp.i0, "special_ndtr": sp.ndtr, "special_log_ndtr": sp.log_ndtr, "special_ndtri": sp.ndtri},
    **{"special_entr": sp.entr, "special_erfcx": sp.erfcx, "sinc": np.sinc},
    **{"special_bessel_j0": sp.j0, "special_bessel_j1": sp.j1},
}
_BINARY: dict[str, Any] = {
    **{"mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin},
    **{"atan2": np.arctan2, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
    **{"eq": np.equal, "ne": np.not_equal, "logical_and": np.logical_and, "logical_or": np.logical_or},
    **{"logical_xor": np.logical_xor, "fmod": np.fmod, "remainder": np.remainder, "hypot": np.hypot},
    **{"logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "copysign": np.copysign, "xlogy": sp.xlogy},
    **{"special_xlog1py": sp.xlog1py, "floor_divide": np.floor_divide, "igamma": sp.gammainc},
    **{"igammac": sp.gammaincc, "special_zeta": sp.zeta, "heaviside": np.heaviside},
    **{"bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift},
}
for table, count in ((_UNARY, 1), (_BINARY, 2)):
    for name, f in table.items():
        module = "np" if getattr(np, f.__name__, None) is f else "scipy.special"
        aten(f"`{module}.{f.__name__}`", name)(lambda e, *xs, f=f, count=count: f(*xs[:count]))


@aten("`a + 1j * b`", "complex", "view_as_complex", "polar")
def _complex(e: Any, a: Any, b: Any = None) -> Any:
    if e.name == "view_as_complex":
        a, b = a[..., 0], a[..., 1]
    return a * np.cos(b) + 1j * (a * np.sin(b)) if e.name == "polar" else a + 1j * b


@aten("real and imaginary part", "view_as_real")
def _parts(e: Any, z: Any) -> Any:
    return np.stack([np.real(z), np.imag(z)], -1)


@aten("`x + a * y`", "add")
def _add(e: Any, x: Any, y: Any, alpha: Any = 1) -> Any:
    return np.add(x, y if alpha == 1 else alpha * y)


@aten("`x - a * y`", "sub")
def _sub(e: Any, x: Any, y: Any, alpha: Any = 1) -> Any:
    return np.subtract(x, y if alpha == 1 else alpha * y)


@aten("`y - a * x`", "rsub")
def _rsub(e: Any, x: Any, y: Any, alpha: Any = 1) -> Any:
    return np.subtract(y, x if alpha == 1 else alpha * x)


@aten("`x / y`, `np.floor`, `np.trunc` of it", "div", "divide", "true_divide")
def _div(e: Any, x: Any, y: Any, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return np.true_divide(x, y)
    if rounding_mode == "floor":
        return np.floor_divide(x, y)
    if e.dtype.kind in "iu":
        whole = np.floor_divide(np.abs(x), np.abs(y))
        return np.where(np.not_equal(np.less(x, 0), np.less(y, 0)), -whole, whole)
    return np.trunc(np.true_divide(x, y))


@aten("`x ** y`", "pow", "float_power")
def _pow(e: Any, x: Any, y: Any) -> Any:
    x, y = [v if is_traced(v) or np.ndim(v) else np.asarray(v)[()].item() for v in (x, y)]
    return np.power(x.astype(e.dtype) if e.dtype.kind == "f" and is_traced(x) and x.dtype.kind != "f" else x, y)


@aten("`1 / np.sqrt`", "rsqrt")
def _rsqrt(e: Any, x: Any) -> Any:
    return 1.0 / np.sqrt(x)


@aten("`np.round`", "round")
def _round(e: Any, x: Any, *, decimals: int = 0) -> Any:
    return np.round(x, decimals)


@aten("`x - np.trunc(x)`", "frac")
def _frac(e: Any, x: Any) -> Any:
    return x - np.trunc(x)


@aten("logical or bitwise", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _bits(e: Any, *xs: Any) -> Any:
    if e.dtype.kind == "b":
        return getattr(np, e.name.replace("bitwise", "logical"))(*xs)
    return (np.invert if e.name == "bitwise_not" else getattr(np, e.name))(*xs)


@aten("`scipy.special.polygamma`", "polygamma", "special_polygamma")
def _polygamma(e: Any, n: Any, x: Any) -> Any:
    return PYTHON_FUNCTIONS["polygamma"][0](n, x)


@aten("`np.where`", "where", "where.self")
def _where(e: Any, which: Any, x: Any = None, y: Any = None) -> Any:
    return np.where(which, x, y)


@aten("`np.where`", "masked_fill")
def _masked_fill(e: Any, x: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, value, x)


@aten("`np.where`: numbers at the bounds move", "clamp", "clamp_min", "clamp_max", "hardtanh")
def clamped(e: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    """x between bounds; where it is equal to one, it moves (hardtanh: it does not)."""
    if e.name == "clamp_max":
        low, high = None, low
    if e.name == "hardtanh":
        return np.where(np.greater(x, low), np.where(np.less(x, high), x, high), low)
    x = x if low is None else np.where(np.less(x, low), low, x)
    return x if high is None else np.where(np.greater(x, high), high, x)


@aten("`np.where(x <= 0, 0, x)`", "relu")
def _relu(e: Any, x: Any) -> Any:
    return np.where(np.less_equal(x, 0), 0, x)


@aten("`np.where`", "leaky_relu", "threshold")
def _leaky(e: Any, x: Any, slope: Any = 0.01, value: Any = None) -> Any:
    if e.name == "threshold":
        return np.where(np.less_equal(x, slope), value, x)
    return np.where(np.greater(x, 0), x, slope * x)


@aten("`np.where`", "prelu", "_prelu_kernel")
def _prelu(e: Any, x: Any, slope: Any) -> Any:
    if e.name == "prelu" and np.size(slope) > 1:
        slope = np.reshape(slope, (-1, *(1,) * (x.ndim - 2)))
    return np.where(np.greater(x, 0), x, slope * x)


@aten("`np.where`; refused where it draws", "rrelu_with_noise_functional", "rrelu_with_noise", "rrelu")
def _rrelu(e: Any, x: Any, *given: Any, **named: Any) -> Any:
    low, high, training = given[:3] if e.name == "rrelu" else given[1:4]
    if training:
        raise refuse(f"rrelu is not taken: {DRAWS}")
    y = np.where(np.greater(x, 0), x, 0.5 * (low + high) * x)
    return [y, given[0]] if e.name.endswith("functional") else y


@aten("`np.where`, `np.expm1`", "elu")
def _elu(e: Any, x: Any, alpha: Any = 1.0, scale: Any = 1.0, inner: Any = 1.0) -> Any:
    below = np.where(np.less_equal(x, 0), x, 0)
    return scale * np.where(np.greater(x, 0), x, alpha * np.expm1(inner * below))


@aten("`x * scipy.special.ndtr(x)`, or with tanh", "gelu")
def _gelu(e: Any, x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1.0 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1.0 + sp.erf(x * float(np.sqrt(0.5))))


@aten("`x * scipy.special.expit(x)`", "silu")
def _silu(e: Any, x: Any) -> Any:
    return x * sp.expit(x)


@aten("`np.logaddexp(0, b * x) / b`", "softplus")
def _softplus(e: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    soft = np.logaddexp(0.0, beta * x) / beta
    return np.where(np.greater(beta * x, threshold), x, soft)


@aten("`x * np.tanh(np.logaddexp(0, x))`", "mish")
def _mish(e: Any, x: Any) -> Any:
    return x * np.tanh(np.logaddexp(0.0, x))


@aten("`-np.logaddexp(0, -x)`", "log_sigmoid", "log_sigmoid_forward")
def _log_sigmoid(e: Any, x: Any) -> Any:
    found = -np.logaddexp(0.0, -x)
    return [found, np.zeros(0)] if e.name == "log_sigmoid_forward" else found


@aten("`np.log(x / (1 - x))`", "logit")
def _logit(e: Any, x: Any, eps: Any = None) -> Any:
    x = x if eps is None else clamped(e, x, eps, 1 - eps)
    return np.log(x / (1 - x))


@aten("`scipy.special.gammaln`, a sum of them", "mvlgamma")
def _mvlgamma(e: Any, x: Any, p: int) -> Any:
    lines = np.asarray([-0.5 * j for j in range(p)])
    return np.sum(sp.gammaln(x[..., None] + lines), axis=-1) + p * (p - 1) / 4 * float(np.log(np.pi))


@aten("`x.astype`", "_to_copy", "to.dtype", "to.dtype_layout", "type_as")
def _convert(e: Any, x: Any, *rest: Any, **named: Any) -> Any:
    if x.dtype.kind == "f" and e.dtype.kind == "b":
        return np.not_equal(x, 0)
    return x if x.dtype == e.dtype else x.astype(e.dtype)


@aten("the array itself", "clone", "alias", "contiguous", "lift_fresh_copy", "positive", "resolve_conj", "resolve_neg")
def _same(e: Any, x: Any, *rest: Any, **named: Any) -> Any:
    return x


@aten("`rz.stop_gradient`", "detach", "detach_", "_local_scalar_dense")
def _stop(e: Any, x: Any) -> Any:
    return stop_gradient(x)


@aten("`np.broadcast_to`", "copy", "fill")
def _copy(e: Any, x: Any, source: Any, non_blocking: bool = False) -> Any:
    return np.broadcast_to(source, np.shape(x))


@aten("constants", "full_like", "zeros_like", "ones_like", "empty_like", "new_full", "new_zeros", "new_ones")
def _like(e: Any, x: Any, *given: Any, **named: Any) -> Any:
    new = e.name.startswith("new")
    shape = given[0] if new else np.shape(x)
    value = {"full": lambda: given[-1], "ones": lambda: 1}
    kind = e.name.removeprefix("new_").removesuffix("_like")
    return np.broadcast_to(np.asarray(value.get(kind, lambda: 0)(), e.dtype), shape)


def typed(dtype: Any, x: Any) -> Any:
    """x in a type of PyTorch's, if one is asked for."""
    return x if dtype is None or x.dtype == numpy_type(dtype) else x.astype(numpy_type(dtype))
