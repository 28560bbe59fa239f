"""Ufuncs: arithmetic is combinations and products, functions of numbers are primitives, comparisons and rounding have
no derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Combination, product
from ...ops.opaque import Discrete, Select
from ...terms import primitives as p
from ..traced import (
    BOOL,
    FLOAT,
    FUNCTIONS,
    UFUNCS,
    Traced,
    answers,
    as_array,
    call_ufunc,
    convert,
    holds_traced,
    lifted,
    of_types,
    operands,
    primitive_step,
    refuse,
    result_dtype,
    several,
    tidy,
    typed,
)
from .rearranging import written_to


def is_discrete(x: Any) -> bool:
    """Whether a value is of integers or truth values."""
    if type(x) is Traced:
        return x.dtype.kind != "f"
    if isinstance(x, (list, tuple)):
        x = tidy(x)
        return x.dtype.kind in "iub"
    return isinstance(x, (bool, int)) or (getattr(x, "dtype", None) is not None and x.dtype.kind in "iub")


def discrete(ufunc: Any, *xs: Any, dtype: Any = None) -> Traced:
    """A ufunc without a derivative."""
    given = [tidy(x) for x in xs]
    if dtype is None:
        kinds = [
            type(x)
            if type(x) in (int, float)
            else float
            if type(x) is Traced and x.weak
            else x.dtype
            if hasattr(x, "dtype")
            else np.dtype(type(x))
            for x in given
        ]
        dtype = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[-1]
    return several(Discrete(ufunc), dtype, *[x if type(x) is Traced else _plain(x) for x in given])


def _plain(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, (bool, int)) else x


def _sum_rule(ufunc: Any, sign: float) -> None:
    @answers(ufunc, what="combination x ± y", rule="dx ± dy")
    def rule(a: Any, b: Any) -> Traced:
        if is_discrete(a) and is_discrete(b):
            return discrete(ufunc, a, b)
        trace, slots, dtype, weak = operands(a, b)
        return Traced(trace, trace.step(Combination((1.0, sign)), slots), dtype, weak)


_sum_rule(np.add, 1.0)
_sum_rule(np.subtract, -1.0)


def _is_number(x: Any) -> bool:
    return type(x) is float or type(x) is int


def scaled(k: float, x: Traced) -> Traced:
    """k · x for a Python number."""
    trace, slots, dtype, weak = operands(x)
    return Traced(trace, trace.scale(float(k), slots[0]), dtype, weak)


@answers(np.multiply, what="product ∗, a contraction", rule="y · dx + x · dy")
def multiply(a: Any, b: Any) -> Any:
    """a · b."""
    if is_discrete(a) and is_discrete(b):
        return discrete(np.multiply, a, b)
    if _is_number(a):
        return scaled(a, b)
    if _is_number(b):
        return scaled(b, a)
    trace, slots, dtype, weak = operands(a, b)
    return Traced(trace, trace.step(product(trace.shapes[slots[0]], trace.shapes[slots[1]]), slots), dtype, weak)


@answers(np.divide, what="primitive x / y", rule="dx / y − (x / y²) · dy")
def divide(a: Any, b: Any) -> Any:
    """a / b."""
    if _is_number(b) and b != 0 and type(a) is Traced and a.dtype.kind == "f":
        return scaled(1.0 / b, a)
    trace, slots, dtype, weak = operands(a, b)
    return Traced(trace, trace.step(p.divide.op, slots), dtype, weak)


POWER_RULE = "k·xᵏ⁻¹ · dx; for traced y also x^y · ln x · dy (0 where x = 0)"


@answers(np.float_power, what="primitive xᵏ, or x^y, in float64", rule=POWER_RULE)
def float_power(a: Any, b: Any) -> Any:
    """a ** b in float64."""
    return power(_in_float64(a), _in_float64(b))


def _in_float64(x: Any) -> Any:
    x = tidy(x)
    return x if isinstance(x, (int, float)) else convert(x, FLOAT)


@answers(np.power, what="primitive xᵏ, or x^y", rule=POWER_RULE)
def power(a: Any, b: Any) -> Any:
    """a ** b."""
    if is_discrete(a) and is_discrete(b) and (type(a) is Traced or type(b) is Traced):
        return discrete(np.power, a, b)
    if isinstance(b, (int, float)) and not isinstance(b, (bool, np.generic)):
        trace, slots, dtype, weak = operands(a)
        if b == 2:
            shape = trace.shapes[slots[0]]
            return Traced(trace, trace.step(product(shape, shape), (slots[0], slots[0])), dtype, weak)
        return Traced(trace, trace.step(p.power(float(b)).op, slots), dtype, weak)
    return primitive_step(p.pow, a, b)


@answers(np.square, what="product x ∗ x", rule="2x · dx")
def square(x: Any) -> Any:
    """x²."""
    return discrete(np.square, x) if is_discrete(x) else multiply(x, x)


@answers(np.negative, what="scaling (−1 ·)", rule="−dx")
def negative(x: Any) -> Any:
    """−x."""
    return discrete(np.negative, x) if is_discrete(x) else scaled(-1.0, x)


@answers(np.positive, what="identity", rule="dx")
def positive(x: Any) -> Any:
    """x."""
    return x


@answers(np.conjugate, what="identity", rule="dx")
def conjugate(x: Any) -> Any:
    """x; of truth values, numbers."""
    return discrete(np.conjugate, x) if x.dtype.kind == "b" else x


def _unary(ufunc: Any, primitive: Any, rule: str) -> None:
    @answers(ufunc, what=f"primitive {primitive.name}", rule=rule)
    def code(x: Any) -> Any:
        if ufunc in (np.absolute, np.sign, np.reciprocal) and is_discrete(x):
            return discrete(ufunc, x)
        return primitive_step(primitive, x)


for _u, _q, _r in (
    (np.sin, p.sin, "cos x · dx"),
    (np.cos, p.cos, "−sin x · dx"),
    (np.tan, p.tan, "(1 + tan² x) · dx"),
    (np.arcsin, p.arcsin, "dx / √(1 − x²)"),
    (np.arccos, p.arccos, "−dx / √(1 − x²)"),
    (np.arctan, p.arctan, "dx / (1 + x²)"),
    (np.sinh, p.sinh, "cosh x · dx"),
    (np.cosh, p.cosh, "sinh x · dx"),
    (np.tanh, p.tanh, "(1 − tanh² x) · dx"),
    (np.arcsinh, p.arcsinh, "dx / √(1 + x²)"),
    (np.arccosh, p.arccosh, "dx / √(x² − 1)"),
    (np.arctanh, p.arctanh, "dx / (1 − x²)"),
    (np.exp, p.exp, "exp x · dx"),
    (np.exp2, p.exp2, "ln 2 · 2ˣ · dx"),
    (np.expm1, p.expm1, "exp x · dx"),
    (np.log, p.ln, "dx / x"),
    (np.log2, p.log2, "dx / (x · ln 2)"),
    (np.log10, p.log10, "dx / (x · ln 10)"),
    (np.log1p, p.log1p, "dx / (1 + x)"),
    (np.sqrt, p.sqrt, "dx / (2 √x)"),
    (np.cbrt, p.cbrt, "dx / (3 ∛x²)"),
    (np.reciprocal, p.reciprocal, "−dx / x²"),
    (np.absolute, p.absolute, "sign x · dx (0 at 0)"),
    (np.fabs, p.absolute, "sign x · dx (0 at 0)"),
    (np.sign, p.sign, "0"),
):
    _unary(_u, _q, _r)


def _factor(ufunc: Any, k: float) -> None:
    @answers(ufunc, what="scaling", rule="the same scaling of dx")
    def code(x: Any) -> Any:
        return scaled(k, lifted(x))


_factor(np.deg2rad, np.pi / 180.0)
_factor(np.radians, np.pi / 180.0)
_factor(np.rad2deg, 180.0 / np.pi)
_factor(np.degrees, 180.0 / np.pi)


def _binary(ufunc: Any, primitive: Any, rule: str) -> None:
    @answers(ufunc, what=f"primitive {primitive.name}", rule=rule)
    def code(a: Any, b: Any) -> Any:
        if is_discrete(a) and is_discrete(b) and ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
            return discrete(ufunc, a, b)
        return primitive_step(primitive, a, b)


for _u, _q, _r in (
    (np.arctan2, p.arctan2, "(x · dy − y · dx) / (x² + y²)"),
    (np.hypot, p.hypot, "(x · dx + y · dy) / hypot(x, y) (0 at 0)"),
    (np.logaddexp, p.logaddexp, "softmax of (x, y) on (dx, dy)"),
    (np.logaddexp2, p.logaddexp2, "softmax in base 2 of (x, y) on (dx, dy)"),
    (np.maximum, p.maximum, "of the larger; ties: ½ each"),
    (np.minimum, p.minimum, "of the smaller; ties: ½ each"),
    (np.fmax, p.fmax, "of the larger; ties: ½ each"),
    (np.fmin, p.fmin, "of the smaller; ties: ½ each"),
):
    _binary(_u, _q, _r)


def _flat(ufunc: Any) -> None:
    @answers(ufunc, what="discrete", rule="0: constant between jumps")
    def code(*xs: Any) -> Any:
        return discrete(ufunc, *xs)


for _u in (
    *(
        np.floor,
        np.ceil,
        np.rint,
        np.trunc,
        np.floor_divide,
        np.heaviside,
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.equal,
    ),
    *(
        np.not_equal,
        np.logical_and,
        np.logical_or,
        np.logical_not,
        np.logical_xor,
        np.isnan,
        np.isfinite,
        np.isinf,
        np.signbit,
    ),
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift, np.gcd, np.lcm),
):
    _flat(_u)


@answers(np.remainder, what="x − y·⌊x / y⌋", rule="dx − ⌊x / y⌋ · dy")
def remainder(a: Any, b: Any) -> Any:
    """a % b."""
    return discrete(np.remainder, a, b) if is_discrete(a) and is_discrete(b) else primitive_step(p.remainder, a, b)


@answers(np.fmod, what="x − y·trunc(x / y)", rule="dx − trunc(x / y) · dy")
def fmod(a: Any, b: Any) -> Any:
    """The remainder with the sign of a."""
    return discrete(np.fmod, a, b) if is_discrete(a) and is_discrete(b) else primitive_step(p.fmod, a, b)


@answers(np.copysign, what="|x| · sign y", rule="sign x · sign y · dx")
def copysign(a: Any, b: Any) -> Any:
    """|a| with the sign of b."""
    a, b = tidy(a), tidy(b)
    if type(b) is Traced:
        return abs(a) * typed(discrete(np.copysign, 1.0, b), bool(b.weak))
    sign = np.copysign(1.0, b)
    return abs(a) * (float(sign) if isinstance(b, (int, float)) else sign)


@answers(np.modf, what="x − trunc x, trunc x", rule="dx, 0")
def modf(x: Any) -> Any:
    """Fractional and integral part."""
    x = lifted(x)
    x = x if x.dtype.kind == "f" else convert(x, FLOAT)
    whole = discrete(np.trunc, x)
    return where(discrete(np.isinf, x), 0.0, x - whole), whole


@answers(np.divmod, what="⌊x / y⌋ and x − y·⌊x / y⌋", rule="0, dx − ⌊x / y⌋ · dy")
def divmod_(a: Any, b: Any) -> Any:
    """a // b and a % b."""
    return discrete(np.floor_divide, a, b), remainder(a, b)


# -- functions that choose --------------------------------------------------------------------------------


@answers(np.where, what="selection", rule="the differential of the branch taken; the other leaves no trace")
def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """a where the condition holds, b elsewhere."""
    if a is None or b is None:
        raise refuse("np.where(c) with one argument gives indices that depend on the numbers; write np.where(c, a, b)")
    c = tidy(condition)
    if type(c) is not Traced and not holds_traced((a, b)):
        return np.where(c, a, b)
    if is_discrete(tidy(a)) and is_discrete(tidy(b)):
        given = [tidy(a), tidy(b)]
        dtype = np.result_type(*[x.dtype if type(x) is Traced else x for x in given])
        return typed(several(Discrete(np.where), dtype, _truth(c), *[_plain(x) for x in given]), None)
    trace, slots, dtype, weak = operands(a, b) if holds_traced((a, b)) else _both(c, a, b)
    flag = _truth(c)
    both = Traced(trace, slots[0], dtype, weak), Traced(trace, slots[1], dtype, weak)
    return typed(several(Select(), dtype, flag, *both), None)


def _both(c: Traced, a: Any, b: Any) -> Any:
    given = [tidy(a), tidy(b)]
    dtype, weak = result_dtype(given)
    from ..traced import slot_of

    return c.home, [slot_of(c.home, x, dtype) for x in given], dtype, weak


def _truth(c: Any) -> Any:
    if type(c) is Traced:
        return c if c.dtype.kind == "b" else discrete(np.not_equal, c, 0.0 if c.dtype.kind == "f" else 0, dtype=BOOL)
    return np.asarray(c, bool)


@answers(np.select, what="nested selections", rule="the differential of the branch taken")
def select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    """The first choice whose condition holds."""
    result = float(default) if type(default) is int and not all([is_discrete(x) for x in choices]) else default
    for c, x in reversed(list(zip(conditions, choices, strict=True))):
        result = where(c, x, result)
    return result


@answers(
    np.clip,
    what="minimum of maximum",
    rule="dx inside the interval; at its ends ½ with the bound, whose differential takes the rest",
)
def clip(
    x: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    dtype: Any = None,
) -> Any:
    """x within bounds."""
    x = x if dtype is None else convert(tidy(x), np.dtype(dtype))
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    x = of_types(x, low if low is not None else 0.0, high if high is not None else 0.0)[0]
    result = x if low is None else np.maximum(x, low)
    return result if high is None else np.minimum(result, high)


@answers(np.piecewise, what="nested selections", rule="the differential of the branch taken")
def piecewise(x: Traced, condlist: Any, funclist: Any, *args: Any, **named: Any) -> Any:
    """The function whose condition holds."""
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    values = [f(x, *args, **named) if callable(f) else f for f in funclist]
    result: Any = values[len(conditions)] if len(values) > len(conditions) else 0.0
    for c, v in zip(conditions, values, strict=False):
        result = where(c, v, result)
    return convert(lifted(result, x.home), x.dtype)


@answers(np.nan_to_num, what="selection", rule="dx where x is finite")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Finite numbers in place of nan and ±∞."""
    x = lifted(x)
    if is_discrete(x):
        return x.copy()
    high = np.finfo(x.dtype).max if posinf is None else posinf
    low = np.finfo(x.dtype).min if neginf is None else neginf
    result = where(discrete(np.isnan, x), float(nan), x)
    result = where(discrete(np.equal, x, np.inf), float(high), result)
    return where(discrete(np.equal, x, -np.inf), float(low), result)


@answers(np.sinc, what="primitive sinc", rule="(cos πx − sinc x) / x · dx")
def sinc(x: Any) -> Any:
    """sin(πx) / πx."""
    return primitive_step(p.sinc, x)


@answers(np.i0, what="primitive i0", rule="i1(x) · dx")
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    from .special import i0 as primitive

    return primitive_step(primitive, x)


@answers(np.fix, what="discrete", rule="0: constant between jumps")
def fix(x: Any, out: Any = None) -> Any:
    """x rounded towards zero."""
    return discrete(np.trunc, x)


@answers(np.round, np.around, what="discrete", rule="0: constant between jumps")
def rounded(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """x rounded."""
    x = lifted(x)
    if x.dtype.kind == "b":
        if decimals:
            raise TypeError("truth values have no decimals")
        x = convert(x, np.dtype(np.float16))
    return several(Discrete(np.round, (("decimals", decimals),)), x.dtype, x)


@answers(np.real, np.real_if_close, what="identity", rule="dx")
def real(x: Any, tol: Any = None) -> Any:
    """The real part."""
    return x.real


@answers(np.imag, what="zero", rule="0")
def imag(x: Any) -> Any:
    """The imaginary part."""
    return lifted(np.zeros(x.shape, x.dtype), x.home)


@answers(np.angle, what="discrete: 0 or π", rule="0")
def angle(x: Any, deg: bool = False) -> Any:
    """The argument of a real number."""
    found = discrete(np.arctan2, 0.0, convert(lifted(x), np.arctan2.resolve_dtypes((int, x.dtype, None))[-1]))
    return found * (180.0 / np.pi) if deg else found


@answers(np.isclose, what="discrete", rule="no derivative")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether two arrays are nearly equal, element by element."""
    return several(Discrete(np.isclose, (("rtol", rtol), ("atol", atol), ("equal_nan", equal_nan))), BOOL, a, b)


@answers(np.allclose, what="discrete", rule="no derivative")
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether two arrays are nearly equal everywhere."""
    return np.all(isclose(a, b, rtol, atol, equal_nan))


for _h, _known in ((np.isreal, True), (np.iscomplex, False)):  # all of a real array's numbers are real
    answers(_h, what="static", rule="no derivative")(lambda x, _known=_known: np.full(np.shape(x), _known)[()])
for _h in (np.isposinf, np.isneginf):
    answers(_h, what="discrete", rule="no derivative")(lambda x, out=None, _h=_h: several(Discrete(_h), BOOL, x))


def _shaped(value: float | None) -> Any:
    def code(x: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **named: Any) -> Any:
        size = x.shape if shape is None else shape
        return np.full(size, 0.0 if value is None else value, dtype or x.dtype)

    return code


for _g, _v in ((np.zeros_like, 0.0), (np.ones_like, 1.0), (np.empty_like, None)):
    answers(_g, what="a constant", rule="0")(_shaped(_v))


@answers(np.full_like, what="broadcast of the value", rule="broadcast of its differential")
def full_like(
    x: Any, fill: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **named: Any
) -> Any:
    """An array of one number."""
    size = np.shape(x) if shape is None else shape
    if type(fill) is not Traced:
        return np.full(size, fill, dtype or x.dtype)
    return convert(written_to(fill, size), np.dtype(dtype or (x.dtype if type(x) is Traced else np.asarray(x).dtype)))


@answers(np.full, what="broadcast of the value", rule="broadcast of its differential")
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    """An array of one number, or of copies of one array."""
    x = tidy(fill_value)
    return written_to(x if dtype is None else convert(x, np.dtype(dtype)), shape)


@answers(np.linspace, what="combination of the two ends", rule="linspace of their differentials")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    **named: Any,
) -> Any:
    """Evenly spaced numbers between two."""
    start, stop = [tidy(x) * 1.0 if is_discrete(x) else x for x in (start, stop)]
    _, _, kind, _ = operands(start, stop)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    gaps = num - 1 if endpoint else num
    rank = max(np.ndim(tidy(start)), np.ndim(tidy(stop)))
    t = (np.arange(num) / max(gaps, 1)).astype(kind).reshape((num, *(1,) * rank))
    found = tidy(start) + (tidy(stop) - tidy(start)) * t
    found = np.moveaxis(np.where(t == 1, tidy(stop), found) if endpoint and num > 1 else found, 0, axis)
    found = found if dtype is None else convert(found, np.dtype(dtype))
    return (found, (tidy(stop) - tidy(start)) * (1.0 / gaps if gaps else np.nan)) if retstep else found


# -- methods of ufuncs ------------------------------------------------------------------------------------


def ufunc_method(ufunc: Any, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """np.add.reduce and its kin are the functions of that name."""
    known = {
        (np.add, "reduce"): np.sum,
        (np.multiply, "reduce"): np.prod,
        (np.maximum, "reduce"): np.max,
        (np.minimum, "reduce"): np.min,
        (np.logical_and, "reduce"): np.all,
        (np.logical_or, "reduce"): np.any,
        (np.add, "accumulate"): np.cumsum,
        (np.multiply, "accumulate"): np.cumprod,
    }
    given = _options(ufunc, method, args[1:], named) if method in ("reduce", "accumulate") else {}
    if method == "accumulate" and given["axis"] is None:
        if np.ndim(args[0]) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        given["axis"] = 0
    function = known.get((ufunc, method))
    if function is not None:
        return FUNCTIONS[function](args[0], **given)
    if method == "outer":
        a, b = map(as_array, args)
        wide = np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b)))
        return call_ufunc(ufunc, (wide, b), {})
    if method in ("reduce", "accumulate") and ufunc in ASSOCIATIVE:
        return (_folded if method == "reduce" else _accumulated)(ufunc, args[0], **given)
    if method == "at":
        sums = (
            "; numbers added up at positions are np.bincount(index, w, n), or rz.red of a relation"
            if ufunc is np.add
            else ""
        )
        raise refuse(
            f"np.{ufunc.__name__}.at writes into its first argument; build the new array: np.where(mask, new, x) or "
            f"np.concatenate{sums}"
        )
    raise refuse(
        f"np.{ufunc.__name__}.{method} is not known to riesz for traced arrays; write it with np.sum, np.cumsum, "
        "np.prod or indexing"
    )


OPTIONS = {  # what a method takes besides the axis; the others: their start, and whether axes stay
    (np.add, "reduce"): ("dtype", "keepdims", "initial", "where"),
    (np.multiply, "reduce"): ("dtype", "keepdims", "initial", "where"),
    (np.maximum, "reduce"): ("keepdims", "initial", "where"),
    (np.minimum, "reduce"): ("keepdims", "initial", "where"),
    (np.logical_and, "reduce"): ("keepdims", "where"),
    (np.logical_or, "reduce"): ("keepdims", "where"),
    (np.add, "accumulate"): ("dtype",),
    (np.multiply, "accumulate"): ("dtype",),
}


def _options(ufunc: Any, method: str, rest: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """What was said besides the array; an option that is not known is refused, never passed over."""
    said = {**dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False)), **named}
    usual = {"dtype": None, "out": None, "keepdims": False, "initial": np._NoValue, "where": True}  # pyright: ignore
    found = {k: v for k, v in said.items() if k not in usual or not (v is usual[k] or v is None)}
    known = ("axis", *OPTIONS.get((ufunc, method), ("keepdims", "initial") if method == "reduce" else ()))
    for k in found:
        if k not in known:
            raise refuse(
                f"np.{ufunc.__name__}.{method}(…, {k}=…) is not known to riesz for traced arrays; write it with "
                "np.where, astype or np.sum"
            )
    found.setdefault("axis", 0)
    return found


ASSOCIATIVE = (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot)


def _as_given_back(ufunc: Any, x: Traced) -> Traced:
    """An array in the type that a ufunc of two of its elements has."""
    return convert(x, ufunc.resolve_dtypes((x.dtype, x.dtype, None))[-1])


def _folded(ufunc: Any, x: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None) -> Any:
    """An associative ufunc over axes, halving the number of arguments at each step."""
    from .reductions import reduced_axes

    y: Any = _as_given_back(ufunc, lifted(x))
    gone = reduced_axes(axis, y.ndim)
    kept = [n for i, n in enumerate(y.shape) if i not in gone]
    y = np.reshape(np.moveaxis(y, gone, tuple(range(len(gone)))), (math.prod([y.shape[i] for i in gone]), *kept))
    if initial is not None:
        y = np.concatenate([np.full((1, *kept), initial, y.dtype), y])
    if not y.shape[0]:
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        y = np.full((1, *kept), ufunc.identity, y.dtype)
    while y.shape[0] > 1:
        n = y.shape[0]
        pairs = UFUNCS[ufunc](y[0 : n - n % 2 : 2], y[1:n:2])
        y = np.concatenate([pairs, y[n - 1 :]]) if n % 2 else pairs
    return np.reshape(y, tuple([1 if i in gone else n for i, n in enumerate(x.shape)]) if keepdims else tuple(kept))


def _accumulated(ufunc: Any, x: Any, axis: int = 0) -> Any:
    """An associative ufunc over all prefixes, doubling their length at each step."""
    y: Any = _as_given_back(ufunc, lifted(x))
    y = np.moveaxis(y, axis, 0)
    shift = 1
    while shift < y.shape[0]:
        y = np.concatenate([y[:shift], UFUNCS[ufunc](y[shift:], y[:-shift])])
        shift *= 2
    return np.moveaxis(y, 0, axis)
