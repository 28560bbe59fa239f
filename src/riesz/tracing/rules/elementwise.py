"""Ufuncs: arithmetic is combinations and products, functions of numbers are primitives, comparisons and rounding have
no derivative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.op import Combination, product
from ...ops.opaque import Discrete, Select
from ...terms import primitives as p
from .. import traced as t
from ..calls import call_ufunc
from ..classes import INTEGER, is_integer
from ..layouts import like
from ..registry import BY_NAME, FUNCTIONS, UFUNCS, answer_rows, answers, answers_called, by_name
from ..trace import refuse
from ..traced import BOOL, FLOAT, Traced, convert, holds_traced, lifted, operands, primitive_step, several, tidy, typed
from .rearranging import kept_shape, reduced_axes, written_to


def is_discrete(*xs: Any) -> bool:
    """Whether values are of integers or truth values, all of them."""
    for x in xs:
        if type(x) is Traced:
            kind = "i" if x.weak == INTEGER else x.dtype.kind
        else:
            x = tidy(x) if isinstance(x, (list, tuple)) else x
            kind = "i" if isinstance(x, int) else getattr(getattr(x, "dtype", None), "kind", "f")
        if kind not in "iub":
            return False
    return True


def floating(a: Any) -> Traced:
    """An array of floats."""
    x = lifted(a)
    return x if x.dtype.kind == "f" else convert(x, FLOAT)


def unmoving(function: Any, dtype: Any, /, *xs: Any, shaped: Any = None, **parameters: Any) -> Traced:
    """A step without a derivative; `shaped` gives the shape of its result, None: elementwise."""
    return several(Discrete(function, tuple(parameters.items()), shaped), dtype, *xs)


def discrete(ufunc: Any, *xs: Any, dtype: Any = None) -> Traced:
    """A ufunc without a derivative."""
    given = [tidy(x) for x in xs]
    if dtype is None:
        kinds = [_kind(x) for x in given]
        dtype = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))[-1]
        if ufunc is np.add and dtype == BOOL:
            ufunc = np.logical_or  # the sum of truth values, in code that takes them for numbers too
    return unmoving(ufunc, dtype, *[_plain(x) for x in given])


def _kind(x: Any) -> Any:
    """The type of an argument of a ufunc; Python's numbers take that of what they meet."""
    if type(x) in (int, float) or (type(x) is Traced and x.weak):
        return int if type(x) is int or is_integer(x) else float
    return x.dtype if hasattr(x, "dtype") else np.dtype(type(x))


def _plain(x: Any) -> Any:
    if type(x) is Traced:
        return convert(x, t.INT) if x.weak == INTEGER else x
    return np.asarray(x) if isinstance(x, (bool, int)) else x


# -- arithmetic -------------------------------------------------------------------------------------------


def _sum_rule(ufunc: Any, sign: float) -> None:
    @answers(ufunc, what="combination x ± y", rule="dx ± dy")
    def rule(a: Any, b: Any) -> Traced:
        if is_discrete(a, b):
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
    if trace.marked:
        BY_NAME["refuse_number"](k)
    return Traced(trace, trace.scale(float(k), slots[0]), dtype, weak)


@answers(np.multiply, what="product ∗, a contraction", rule="y · dx + x · dy")
def multiply(a: Any, b: Any) -> Any:
    if is_discrete(a, b):
        return discrete(np.multiply, a, b)
    if _is_number(a):
        return scaled(a, b)
    if _is_number(b):
        return scaled(b, a)
    trace, slots, dtype, weak = operands(a, b)
    return Traced(trace, trace.step(product(trace.shapes[slots[0]], trace.shapes[slots[1]]), slots), dtype, weak)


@answers(np.divide, what="primitive x / y", rule="dx / y − (x / y²) · dy")
def divide(a: Any, b: Any) -> Any:
    if _is_number(b) and b != 0 and type(a) is Traced and a.dtype.kind == "f":
        return scaled(1.0 / b, a)
    trace, slots, dtype, weak = operands(a, b)
    return Traced(trace, trace.step(p.divide.op, slots), dtype, weak)


POWER_RULE = "k·xᵏ⁻¹ · dx; for traced y also x^y · ln x · dy (0 where x = 0)"


@answers(np.power, what="primitive xᵏ, or x^y", rule=POWER_RULE)
def power(a: Any, b: Any) -> Any:
    if is_discrete(a, b) and (type(a) is Traced or type(b) is Traced):
        return discrete(np.power, a, b)
    if isinstance(b, (int, float)) and not isinstance(b, (bool, np.generic)):
        trace, slots, dtype, weak = operands(a)
        if b == 2:
            shape = trace.shapes[slots[0]]
            return Traced(trace, trace.step(product(shape, shape), (slots[0], slots[0])), dtype, weak)
        return Traced(trace, trace.step(p.power(float(b)).op, slots), dtype, weak)
    return primitive_step(p.pow, a, b)


def in_double(x: Any) -> Any:
    """In float64; Python's numbers as they are."""
    x = tidy(x)
    return x if isinstance(x, (int, float)) else convert(x, FLOAT)


def _copysign(a: Any, b: Any) -> Any:
    a, b = tidy(a), tidy(b)
    if type(b) is Traced:
        return abs(a) * typed(discrete(np.copysign, 1.0, b), bool(b.weak))
    sign = np.copysign(1.0, b)
    return abs(a) * (float(sign) if isinstance(b, (int, float)) else sign)


def _modf(x: Any) -> Any:
    x = floating(x)
    whole = discrete(np.trunc, x)
    return where(discrete(np.isinf, x), 0.0, x - whole), whole


def _divmod(a: Any, b: Any) -> Any:
    return discrete(np.floor_divide, a, b), UFUNCS[np.remainder](a, b)


def _angle(x: Any, deg: bool = False) -> Any:
    found = discrete(np.arctan2, 0.0, convert(lifted(x), np.arctan2.resolve_dtypes((int, x.dtype, None))[-1]))
    return found * (180.0 / np.pi) if deg else found


def _i0(x: Any) -> Any:
    from .special import i0

    return primitive_step(i0, x)


def _factor(k: float) -> Any:
    return lambda x: scaled(k, lifted(x))


_FLAT = "0: constant between jumps"
_SCALES = "the same scaling of dx"
answer_rows(
    (np.float_power, "primitive xᵏ, or x^y, in float64", POWER_RULE, lambda a, b: power(in_double(a), in_double(b))),
    (np.square, "product x ∗ x", "2x · dx", lambda x: discrete(np.square, x) if is_discrete(x) else multiply(x, x)),
    (np.negative, "scaling (−1 ·)", "−dx", lambda x: discrete(np.negative, x) if is_discrete(x) else scaled(-1.0, x)),
    (np.positive, "identity", "dx", lambda x: x),
    (np.conjugate, "identity", "dx", lambda x: discrete(np.conjugate, x) if x.dtype.kind == "b" else x),
    ((np.deg2rad, np.radians), "scaling", _SCALES, _factor(np.pi / 180.0)),
    ((np.rad2deg, np.degrees), "scaling", _SCALES, _factor(180.0 / np.pi)),
    (np.copysign, "|x| · sign y", "sign x · sign y · dx", _copysign),
    (np.modf, "x − trunc x, trunc x", "dx, 0", _modf),
    (np.divmod, "⌊x / y⌋ and x − y·⌊x / y⌋", "0, dx − ⌊x / y⌋ · dy", _divmod),
    (np.i0, "primitive i0", "i1(x) · dx", _i0),
    (np.fix, "discrete", _FLAT, lambda x, out=None: discrete(np.trunc, x)),
    ((np.real, np.real_if_close), "identity", "dx", lambda x, tol=None: x.real),
    (np.imag, "zero", "0", lambda x: lifted(np.zeros(x.shape, x.dtype), x.home)),
    (np.angle, "discrete: 0 or π", "0", _angle),
)


# -- functions of numbers ---------------------------------------------------------------------------------

WHOLE = {np.absolute, np.sign, np.reciprocal, np.maximum, np.minimum, np.fmax, np.fmin, np.remainder, np.fmod}
"""Functions that take integers to integers."""


def _primitive(function: Any, primitive: Any, rule: str, what: str = "") -> None:
    @answers(function, what=what or f"primitive {primitive.name}", rule=rule)
    def code(*xs: Any) -> Any:
        return discrete(function, *xs) if function in WHOLE and is_discrete(*xs) else primitive_step(primitive, *xs)


_PRIMITIVES: Any = (
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
    (np.sinc, p.sinc, "(cos πx − sinc x) / x · dx"),
    (np.arctan2, p.arctan2, "(x · dy − y · dx) / (x² + y²)"),
    (np.hypot, p.hypot, "(x · dx + y · dy) / hypot(x, y) (0 at 0)"),
    (np.logaddexp, p.logaddexp, "softmax of (x, y) on (dx, dy)"),
    (np.logaddexp2, p.logaddexp2, "softmax in base 2 of (x, y) on (dx, dy)"),
    (np.maximum, p.maximum, "of the larger; ties: ½ each"),
    (np.minimum, p.minimum, "of the smaller; ties: ½ each"),
    (np.fmax, p.fmax, "of the larger; ties: ½ each"),
    (np.fmin, p.fmin, "of the smaller; ties: ½ each"),
    (np.remainder, p.remainder, "dx − ⌊x / y⌋ · dy", "x − y·⌊x / y⌋"),
    (np.fmod, p.fmod, "dx − trunc(x / y) · dy", "x − y·trunc(x / y)"),
)
for _row in _PRIMITIVES:
    _primitive(*_row)


def _flat(ufunc: Any) -> None:
    answers(ufunc, what="discrete", rule=_FLAT)(lambda *xs: discrete(ufunc, *xs))


for _u in (
    *(np.floor, np.ceil, np.rint, np.trunc, np.floor_divide, np.heaviside, np.signbit, np.gcd, np.lcm),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isfinite, np.isinf),
    *(np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.left_shift, np.right_shift),
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor),
):
    _flat(_u)


@answers(np.invert, what="discrete", rule=_FLAT)
def _inverted(x: Any) -> Any:
    return discrete(np.logical_not if type(x) is Traced and x.dtype.kind == "b" else np.invert, x)


# -- functions that choose --------------------------------------------------------------------------------


@answers(np.where, what="selection", rule="the differential of the branch taken; the other leaves no trace")
def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    if a is None or b is None:
        return np.nonzero(condition)
    c, given = tidy(condition), [tidy(a), tidy(b)]
    if type(c) is not Traced and not holds_traced((a, b)):
        return np.where(c, a, b)
    if is_discrete(*given):
        dtype = np.result_type(*[x.dtype if type(x) is Traced else x for x in given])
        return typed(unmoving(np.where, dtype, _truth(c), *[_plain(x) for x in given]), None)
    if holds_traced((a, b)):
        trace, slots, dtype, weak = operands(a, b)
    else:
        trace, (dtype, weak) = c.home, t.result_dtype(given)
        slots = [t.slot_of(trace, x, dtype) for x in given]
    flag = _truth(c)
    return typed(several(Select(), dtype, flag, *[Traced(trace, slot, dtype, weak) for slot in slots]), None)


def _truth(c: Any) -> Any:
    if type(c) is Traced:
        return c if c.dtype.kind == "b" else discrete(np.not_equal, c, 0.0 if c.dtype.kind == "f" else 0, dtype=BOOL)
    return np.asarray(c, bool)


@answers(np.select, what="nested selections", rule="the differential of the branch taken")
def select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = float(default) if type(default) is int and not is_discrete(*choices) else default
    for c, x in reversed(list(zip(conditions, choices, strict=True))):
        result = where(c, x, result)
    return result


_CLIPPED = "dx inside the interval; at its ends ½ with the bound, whose differential takes the rest"


@answers_called(np.clip, what="minimum of maximum", rule=_CLIPPED)
def clip(a: Any, a_min: Any, a_max: Any, min: Any = None, max: Any = None, dtype: Any = None) -> Any:
    x = a if dtype is None else convert(tidy(a), np.dtype(dtype))
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    x = t.of_types(x, *[bound for bound in (low, high) if bound is not None])[0]
    result = x if low is None else np.maximum(x, low)
    return result if high is None else np.minimum(result, high)


@answers(np.piecewise, what="nested selections", rule="the differential of the branch taken")
def piecewise(x: Traced, condlist: Any, funclist: Any, *args: Any, **named: Any) -> Any:
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    values = [f(x, *args, **named) if callable(f) else f for f in funclist]
    result: Any = values[len(conditions)] if len(values) > len(conditions) else 0.0
    for c, v in zip(conditions, values, strict=False):
        result = where(c, v, result)
    return convert(lifted(result, x.home), x.dtype)


@answers(np.nan_to_num, what="selection", rule="dx where x is finite")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = lifted(x)
    if is_discrete(x):
        return x.copy()
    high = np.finfo(x.dtype).max if posinf is None else posinf
    low = np.finfo(x.dtype).min if neginf is None else neginf
    result = where(discrete(np.isnan, x), float(nan), x)
    result = where(discrete(np.equal, x, np.inf), float(high), result)
    return where(discrete(np.equal, x, -np.inf), float(low), result)


def _rounded(x: Any, decimals: int = 0, out: Any = None) -> Any:
    x = lifted(x)
    if x.dtype.kind == "b":
        if decimals:
            raise TypeError("truth values have no decimals")
        x = convert(x, np.dtype(np.float16))
    return unmoving(np.round, x.dtype, x, decimals=decimals)


@answers(np.isclose, what="discrete", rule="no derivative")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return unmoving(np.isclose, BOOL, a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a, b = tidy(a1), tidy(a2)
    if np.shape(a) != np.shape(b):
        return False
    same = np.equal(a, b)
    return np.all(np.logical_or(same, np.logical_and(np.isnan(a), np.isnan(b))) if equal_nan else same)


def _common(*arrays: Any) -> Any:
    kinds = [np.dtype(getattr(x, "dtype", None) or np.asarray(x).dtype) for x in arrays]
    return np.common_type(*[np.empty(0, kind) for kind in kinds])


def _ldexp(x: Any, i: Any) -> Any:
    if is_discrete(x):
        x = floating(x)
    return x * np.exp2(convert(i, x.dtype) if holds_traced(i) else np.asarray(i).astype(x.dtype))


def _shaped(value: float) -> Any:
    def code(x: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **named: Any) -> Any:
        return np.full_like(like(x, order, shape), value, dtype or x.dtype)

    return code


@answers_called(np.full_like, what="broadcast of the value", rule="broadcast of its differential")
def full_like(a: Any, fill_value: Any, dtype: Any, order: Any, shape: Any) -> Any:
    size = np.shape(a) if shape is None else shape
    if type(fill_value) is not Traced:
        return np.full_like(like(a, order, shape), fill_value, dtype or a.dtype)
    kind = np.dtype(dtype or (a.dtype if type(a) is Traced else np.asarray(a).dtype))
    return convert(written_to(fill_value, size), kind)


@answers(np.full, what="broadcast of the value", rule="broadcast of its differential")
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    x = tidy(fill_value)
    return written_to(x if dtype is None else convert(x, np.dtype(dtype)), shape)


answer_rows(
    ((np.round, np.around), "discrete", _FLAT, _rounded),
    (np.allclose, "discrete", "no derivative", lambda *args, **named: np.all(isclose(*args, **named))),
    (np.array_equal, "discrete", "no derivative", _equal),
    (np.common_type, "static", "no derivative", _common),
    (np.ldexp, "scaling by 2ⁱ", "2ⁱ · dx", _ldexp),
    (np.isreal, "static", "no derivative", lambda x: np.full(np.shape(x), True)[()]),
    (np.iscomplex, "static", "no derivative", lambda x: np.full(np.shape(x), False)[()]),
    (np.isposinf, "discrete", "no derivative", lambda x, out=None: unmoving(np.isposinf, BOOL, x)),
    (np.isneginf, "discrete", "no derivative", lambda x, out=None: unmoving(np.isneginf, BOOL, x)),
    ((np.zeros_like, np.empty_like), "a constant", "0", _shaped(0.0)),
    (np.ones_like, "a constant", "0", _shaped(1.0)),
)


@answers_called(np.linspace, what="combination of the two ends", rule="linspace of their differentials")
def linspace(start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> Any:
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


METHODS: dict[Any, tuple[Any, tuple[str, ...]]] = {
    (np.add, "reduce"): (np.sum, ("dtype", "keepdims", "initial", "where")),
    (np.multiply, "reduce"): (np.prod, ("dtype", "keepdims", "initial", "where")),
    (np.maximum, "reduce"): (np.max, ("keepdims", "initial", "where")),
    (np.minimum, "reduce"): (np.min, ("keepdims", "initial", "where")),
    (np.logical_and, "reduce"): (np.all, ("keepdims", "where")),
    (np.logical_or, "reduce"): (np.any, ("keepdims", "where")),
    (np.add, "accumulate"): (np.cumsum, ("dtype",)),
    (np.multiply, "accumulate"): (np.cumprod, ("dtype",)),
}
"""The function that a method is, and what it takes besides the axis."""


@by_name
def ufunc_method(ufunc: Any, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """np.add.reduce and its kin are the functions of that name."""
    name = f"np.{ufunc.__name__}.{method}"
    if method == "outer":
        a, b = map(t.as_array, args)
        return call_ufunc(ufunc, (np.reshape(a, (*np.shape(a), *(1,) * np.ndim(b))), b), {})
    if method == "reduceat":
        return BY_NAME["reduceat"](ufunc, *args, **named)
    if method in ("reduce", "accumulate"):
        function, options = METHODS.get((ufunc, method), (None, ("keepdims", "initial") if method == "reduce" else ()))
        given = _options(name, options, args[1:], named)
        if method == "accumulate" and given["axis"] is None:
            if np.ndim(args[0]) != 1:
                raise ValueError("accumulate does not allow multiple axes")
            given["axis"] = 0
        if function is not None:
            return FUNCTIONS[function](args[0], **given)
        if ufunc in ASSOCIATIVE:
            return (_folded if method == "reduce" else _accumulated)(ufunc, args[0], **given)
    if method == "at":
        sums = "; numbers added up at positions are np.bincount(index, w, n), or rz.red of a relation"
        raise refuse(
            f"{name} writes into its first argument; build the new array: np.where(mask, new, x) or "
            f"np.concatenate{sums if ufunc is np.add else ''}"
        )
    raise refuse(
        f"{name} is not known to riesz for traced arrays; write it with np.sum, np.cumsum, np.prod or indexing"
    )


def _options(name: str, known: tuple[str, ...], rest: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """What was said besides the array; an option that is not known is refused, never passed over."""
    said = {**dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False)), **named}
    usual = {"dtype": None, "out": None, "keepdims": False, "initial": np._NoValue, "where": True}  # pyright: ignore
    found = {k: v for k, v in said.items() if k not in usual or not (v is usual[k] or v is None)}
    for k in found:
        if k not in ("axis", *known):
            raise refuse(
                f"{name}(…, {k}=…) is not known to riesz for traced arrays; write it with np.where, astype or np.sum"
            )
    found.setdefault("axis", 0)
    return found


ASSOCIATIVE = (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot)


def axes_in_front(x: Any, gone: tuple[int, ...]) -> Any:
    """An array with some of its axes merged into a first one."""
    rest = [n for i, n in enumerate(x.shape) if i not in gone]
    return np.reshape(np.moveaxis(x, gone, tuple(range(len(gone)))), (math.prod([x.shape[i] for i in gone]), *rest))


def folded(combine: Any, y: Any) -> Any:
    """An associative function of the entries along the first axis, halving their number at each step."""
    while (n := y.shape[0]) > 1:
        pairs = combine(y[0 : n - n % 2 : 2], y[1:n:2])
        y = np.concatenate([pairs, y[n - 1 :]]) if n % 2 else pairs
    return y


def accumulated(combine: Any, y: Any) -> Any:
    """An associative function of all prefixes along the first axis, doubling their length at each step."""
    shift = 1
    while shift < y.shape[0]:
        y = np.concatenate([y[:shift], combine(y[shift:], y[:-shift])])
        shift *= 2
    return y


def _as_given_back(ufunc: Any, x: Any) -> Any:
    """An array in the type that a ufunc of two of its elements has."""
    x = lifted(x)
    return convert(x, ufunc.resolve_dtypes((x.dtype, x.dtype, None))[-1])


def _folded(ufunc: Any, x: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None) -> Any:
    y = _as_given_back(ufunc, x)
    if ufunc is np.logaddexp and initial is None and y.ndim and y.size:
        return BY_NAME["logsumexp"](y, axis, keepdims=keepdims)
    gone = reduced_axes(axis, y.ndim)
    y = axes_in_front(y, gone)
    kept = y.shape[1:]
    if initial is not None:
        y = np.concatenate([np.full((1, *kept), initial, y.dtype), y])
    if not y.shape[0]:
        if ufunc.identity is None:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        y = np.full((1, *kept), ufunc.identity, y.dtype)
    y = folded(UFUNCS[ufunc], y)
    return np.reshape(y, kept_shape(x.shape, gone) if keepdims else kept)


def _accumulated(ufunc: Any, x: Any, axis: int = 0) -> Any:
    y = _as_given_back(ufunc, x)
    return np.moveaxis(accumulated(UFUNCS[ufunc], np.moveaxis(y, axis, 0)), 0, axis)
