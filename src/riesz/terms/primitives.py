"""Named primitive functions of scalars   (§3.5). One line each: name, function on arrays, function on floats,
derivative.

The derivative is written with the argument x and the value y = p(x), in terms of other primitives and arithmetic. It is
evaluated on numbers, and on symbols when derivatives are derived; `None` means zero. At a kink the derivative is one of
the one-sided ones or their middle: |x|' = sign(x) is 0 at 0, relu' is 0 at 0.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, cast, overload

import numpy as np

from ..errors import SpaceError, TraceError
from ..ops.op import Elementwise
from ..runtime.interning import documented
from ..runtime.warnings_off import quietly
from ..spaces.space import R, direct_sum
from .term import Term

__all__: list[str] = ["absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh"]
__all__ += ["divide", "exp", "expm1", "ln", "log", "log1p", "power", "primitive", "reciprocal", "relu", "sigmoid"]
__all__ += ["sign", "sin", "sinh", "sqrt", "step", "tan", "tanh"]


F = Callable[..., Any]


class Rule:
    """What is known about a primitive. A primitive keeps its rule; declaring the name again makes another primitive.

    `selects`: its partial derivatives choose between the arguments, so their zeros are strong. `domain`: where it is
    defined, in words; empty: everywhere."""

    __slots__ = ("arity", "array", "derivative", "domain", "name", "scalar", "selects")

    def __init__(
        self, name: str, array: F, scalar: F | None, derivative: F, arity: int, selects: bool = False, domain: str = ""
    ) -> None:
        self.name, self.array, self.scalar, self.derivative = name, array, scalar, derivative
        self.arity, self.selects, self.domain = arity, selects, domain

    def __reduce__(self) -> Any:
        if RULES.get(self.name) is self:
            return _own_rule, (self.name,)
        return Rule, (self.name, self.array, self.scalar, self.derivative, self.arity, self.selects, self.domain)


def _own_rule(name: str) -> Rule:
    return RULES[name]


class _Unknown:
    """The partial derivative in an argument that nobody knows a derivative in."""

    def __repr__(self) -> str:
        return "unknown"

    def __reduce__(self) -> Any:
        return "UNKNOWN"


UNKNOWN = _Unknown()
RULES: dict[str, Rule] = {}
"""The rules of riesz's own primitives."""

_NUMBERS = {np.float64, np.float32, np.float16, np.ndarray}


class Primitive(Term):
    """p : ℝ → ℝ (or ℝ × ℝ → ℝ), a named function with a known derivative; called on an array it acts at every index."""

    rule: Rule
    parameter: float | None = None

    def check(self) -> None:
        arity = self.rule.arity
        self._type(R if arity == 1 else direct_sum(*[R] * arity), R, False)

    @property
    def name(self) -> str:
        """The name."""
        return self.rule.name

    @cached_property
    def op(self) -> Elementwise:
        """This primitive as the op of a program's step."""
        return Elementwise(self)

    def run(self, *xs: Any) -> Any:
        """The value on numbers; floats stay floats, and NumPy's rules hold outside the domain."""
        given = xs if self.parameter is None else (*xs, self.parameter)
        scalar, array = self.rule.scalar, self.rule.array
        if scalar is not None and type(xs[0]) is float and type(xs[-1]) is float:
            try:
                return scalar(*given)
            except (ValueError, OverflowError, ZeroDivisionError):
                return float(array(*[np.float64(x) for x in given]))
        return array(*given)

    def partials(self, xs: Sequence[Any], y: Any) -> tuple[Any, ...]:
        """The partial derivatives at xs, where the value is y."""
        if type(xs[0]) is not np.ndarray:
            return self.slopes(xs, y)
        with quietly():  # an infinite derivative speaks for itself, and may belong to a branch not taken
            return self.slopes(xs, y)

    def slopes(self, xs: Sequence[Any], y: Any) -> tuple[Any, ...]:
        """The same where NumPy's warnings are off already."""
        rule = self.rule
        given = (*xs, y) if self.parameter is None else (*xs, y, self.parameter)
        try:
            found = rule.derivative(*given)
        except (ZeroDivisionError, OverflowError, ValueError):  # Python's floats raise where NumPy gives inf or nan
            with quietly():
                found = rule.derivative(*[np.float64(x) if type(x) is float else x for x in given])
        if rule.arity > 1:
            return found
        return (float(found),) if type(found) is int else (found,)

    def derivative(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the derivative of a primitive of your own: a function of its arguments and its value. A decorator."""
        if RULES.get(self.rule.name) is self.rule:
            raise SpaceError(f"the primitive {self.rule.name!r} belongs to riesz; its derivative cannot be changed")
        self.rule.derivative = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if len(args) == 1 and type(args[0]) is float:
            return self.run(args[0])
        plain = len(args) == self.rule.arity
        for a in args:
            kind = cast(Any, type(a))
            if kind is float:
                continue
            if hasattr(kind, "apply_primitive"):
                return a.apply_primitive(self, args)
            plain = plain and kind in _NUMBERS and a.dtype.kind == "f"
        return self.run(*args) if plain else super().__call__(*args)


Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
Ternary = Callable[[Any, Any, Any], Any]


@overload
def primitive(name: Callable[..., Any], *, derivative: Callable[..., Any] | None = None) -> Primitive: ...
@overload
def primitive(
    name: None = None, *, derivative: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Primitive]: ...
@overload
def primitive(
    name: str, array: Callable[..., Any], scalar: Callable[..., Any] | None, derivative: Callable[..., Any]
) -> Primitive: ...
def primitive(name: Any = None, array: Any = None, scalar: Any = None, derivative: Any = None) -> Any:
    """Declare a primitive: a function of numbers, applied at every index of arrays, with its derivative.

    As a decorator of the array code, with the derivative given below it (or as `derivative=`): it takes the arguments
    and the value y and returns p'(x), or a tuple of partial derivatives, using arithmetic and NumPy's or riesz's
    functions of numbers.

    >>> import numpy as np, riesz as rz
    >>> @rz.primitive
    ... def cube(x):
    ...     return x**3
    >>> @cube.derivative
    ... def _(x, y):
    ...     return 3.0 * x * x
    >>> rz.grad(lambda x: np.sum(cube(x)))(np.array([1.0, 2.0]))
    array([ 3., 12.])

    Or by its name, its function on arrays, its function on floats (or None) and its derivative.

    >>> cube = rz.primitive("cube", lambda x: x**3, None, lambda x, y: 3.0 * x * x)
    >>> rz.grad(cube)(2.0)
    12.0
    """
    if name is None:
        return partial(primitive, derivative=derivative)
    if callable(name):
        title = getattr(name, "__name__", "p")
        return _declare(Rule(title, name, None, derivative or _underived(title), _arity(name)))
    if array is None or derivative is None:
        usage = "rz.primitive(name, array, None, derivative)"
        raise SpaceError(f"primitive {name!r}: give its function on arrays and its derivative, as in {usage}")
    return _declare(Rule(name, array, scalar, derivative, _arity(array)))


def _arity(function: Any) -> int:
    try:
        given = inspect.signature(function).parameters.values()
        return max(1, len([p for p in given if p.default is p.empty and p.kind in (0, 1)]))
    except (TypeError, ValueError):
        return getattr(function, "nin", 1)


def _underived(name: str) -> Callable[..., Any]:
    def rule(*args: Any) -> Any:
        advice = f"write @{name}.derivative above a function of its arguments and its value"
        raise TraceError(f"the primitive {name} has no derivative yet: {advice}")

    return rule


def _declare(rule: Rule) -> Primitive:
    if rule.name in RULES and _closed:
        raise SpaceError(f"the primitive {rule.name!r} belongs to riesz and cannot be redefined; choose another name")
    if not _closed:
        RULES[rule.name] = rule
    return Primitive(rule)


_closed: list[bool] = []  # set when riesz's own primitives are all there


def _unary(name: str, array: Unary, scalar: Unary | None, derivative: Binary) -> Primitive:
    return _declare(Rule(name, array, scalar, derivative, 1))


def _binary(name: str, array: Binary, scalar: Binary | None, derivative: Ternary, selects: bool = False) -> Primitive:
    return _declare(Rule(name, array, scalar, derivative, 2, selects))


def _larger(a: Any, b: Any) -> Any:
    kind = np.result_type(a, b)
    found = np.add(a > b, a >= b, dtype=kind if kind.kind == "f" else float)
    return np.multiply(found, 0.5, out=found) if type(found) is np.ndarray else found * found.dtype.type(0.5)


def _larger_number(a: Any, b: Any) -> Any:
    return np.where(np.isnan(b) & ~np.isnan(a), 1.0, _larger(a, b)).astype(np.result_type(a, b), copy=False)[()]


def _inverse(x: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.where(x == 0, 0, 1 / np.where(x == 0, 1, x))[()]


def _power_slope(a: Any, b: Any) -> Any:
    return np.where(b == 0, 0, b * np.power(np.where(b == 0, 1, a), b - 1))[()]


def _less_one(b: Any) -> Any:
    """b − 1, and 0 where b = 0: there the power is constant, and all its slopes are 0."""
    return b - 1.0 + 2.0 * larger(0.0, absolute(b))


def _quotient(a: Any, b: Any, rest: Any) -> Any:
    """The whole number (a − rest) / b; a / b itself may be rounded to another one."""
    return floor((a - rest) / b + 0.5)


_LN2, _LN10 = math.log(2.0), math.log(10.0)


def _sinc_derivative(x: Any, n: float) -> Any:
    """sinc⁽ⁿ⁾(x), from ∫₀¹ cos(πxt) dt: by its Taylor series near 0 and by recurrence elsewhere."""
    z = np.asarray(np.pi * np.asarray(x, float))
    order = int(n)
    small = np.abs(z) < 1.0 + order
    series = np.zeros_like(z)
    for k in range((order + 1) // 2, 30 + order):  # sinc(z/π) = Σ (−1)^k z^2k / (2k+1)!
        j = 2 * k - order
        if j >= 0:
            series = series + (-1.0) ** k * z**j / (math.factorial(j) * (2 * k + 1)) if 2 * k + 1 < 170 else series
    far = np.where(small, 1.0, z)
    value = np.sin(far) / far
    for m in range(1, order + 1):  # z·s⁽ᵐ⁾ + m·s⁽ᵐ⁻¹⁾ = sin⁽ᵐ⁾
        value = (np.sin(far + m * np.pi / 2) - m * value) / far
    result = np.where(small, series, value) * np.pi**order
    return result.astype(np.result_type(x))[()]


def sinc_derivative(n: int) -> Primitive:
    """The n-th derivative of sinc."""
    return Primitive(RULES["sinc_derivative"], float(n))


def _next_sinc(x: Any, y: Any, n: float) -> Any:
    return sinc_derivative(int(n) + 1)(x)


def power(k: float) -> Primitive:
    """x ↦ x^k for a fixed number k, with derivative k·x^(k−1).

    >>> import riesz as rz
    >>> rz.power(3)(2.0)
    8.0
    """
    if isinstance(k, bool) or not isinstance(cast(Any, k), (int, float, np.integer, np.floating)):
        raise SpaceError(f"power(k) takes a number; got {k!r}")
    return Primitive(RULES["power"], float(k))


def _power(x: Any, k: float) -> Any:
    return x**k


def _power_derivative(x: Any, y: Any, k: float) -> Any:
    match k:
        case 0.0:
            return None
        case 1.0:
            return 1.0
        case 2.0:
            return 2.0 * x
        case _:
            return k * power(k - 1.0)(x)


RULES["power"] = Rule("power", _power, math.pow, _power_derivative, 1)
RULES["sinc_derivative"] = Rule("sinc_derivative", _sinc_derivative, None, _next_sinc, 1)


def _sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ), in one buffer; e⁻ˣ may be infinite."""
    with np.errstate(over="ignore"):
        t = np.negative(x)
        if type(t) is not np.ndarray:
            return 1.0 / (1.0 + np.exp(t))
        return np.divide(1.0, np.add(np.exp(t, out=t), 1.0, out=t), out=t)


sin = _unary("sin", np.sin, math.sin, lambda x, y: cos(x))
cos = _unary("cos", np.cos, math.cos, lambda x, y: -sin(x))
tan = _unary("tan", np.tan, math.tan, lambda x, y: 1.0 + y * y)
arcsin = _unary("arcsin", np.arcsin, math.asin, lambda x, y: 1.0 / sqrt(1.0 - x * x))
arccos = _unary("arccos", np.arccos, math.acos, lambda x, y: -1.0 / sqrt(1.0 - x * x))
arctan = _unary("arctan", np.arctan, math.atan, lambda x, y: 1.0 / (1.0 + x * x))
exp = _unary("exp", np.exp, math.exp, lambda x, y: y)
ln = _unary("ln", np.log, math.log, lambda x, y: power(-1)(x))
expm1 = _unary("expm1", np.expm1, math.expm1, lambda x, y: 1.0 + y)
log1p = _unary("log1p", np.log1p, math.log1p, lambda x, y: 1.0 / (1.0 + x))
sqrt = _unary("sqrt", np.sqrt, math.sqrt, lambda x, y: 0.5 / y)
sinh = _unary("sinh", np.sinh, math.sinh, lambda x, y: cosh(x))
cosh = _unary("cosh", np.cosh, math.cosh, lambda x, y: sinh(x))
tanh = _unary("tanh", np.tanh, math.tanh, lambda x, y: 1.0 - y * y)
arcsinh = _unary("arcsinh", np.arcsinh, math.asinh, lambda x, y: 1.0 / sqrt(1.0 + x * x))
arccosh = _unary("arccosh", np.arccosh, math.acosh, lambda x, y: 1.0 / sqrt(x * x - 1.0))
arctanh = _unary("arctanh", np.arctanh, math.atanh, lambda x, y: 1.0 / (1.0 - x * x))
sigmoid = _unary("sigmoid", _sigmoid, lambda x: 1.0 / (1.0 + math.exp(-x)), lambda x, y: y * sigmoid(-x))
absolute = _unary("absolute", np.abs, abs, lambda x, y: sign(x))
sign = _unary("sign", np.sign, lambda x: 1.0 if x > 0.0 else -1.0 if x < 0.0 else x + 0.0, lambda x, y: None)
relu = _unary("relu", lambda x: np.maximum(x, 0.0), None, lambda x, y: step(x))
relu.rule.selects = True
step = _unary("step", lambda x: np.heaviside(x, 0.0), None, lambda x, y: None)
exp2 = _unary("exp2", np.exp2, None, lambda x, y: _LN2 * y)
log2 = _unary("log2", np.log2, math.log2, lambda x, y: (1.0 / _LN2) * power(-1)(x))
log10 = _unary("log10", np.log10, math.log10, lambda x, y: (1.0 / _LN10) * power(-1)(x))
cbrt = _unary("cbrt", np.cbrt, None, lambda x, y: (1.0 / 3.0) / (y * y))
sinc = _unary("sinc", np.sinc, None, lambda x, y: sinc_derivative(1)(x))
# √ of a sum of squares: a norm, with derivative 0 at 0; 1/x and ln x, both 0 at 0
root = _unary("root", np.sqrt, math.sqrt, lambda x, y: 0.5 * inverse(y))
inverse = _unary("inverse", _inverse, None, lambda x, y: -y * y)
log0 = _unary("log0", lambda x: np.log(np.where(x == 0, 1, x))[()], None, lambda x, y: inverse(x))
divide = _binary("divide", np.divide, lambda a, b: a / b, lambda a, b, y: (power(-1)(b), -y / b))
pow = _binary("pow", np.power, math.pow, lambda a, b, y: (power_slope(a, b), y * log0(a)))
power_slope = _binary(
    "power_slope", _power_slope, None, lambda a, b, y: (b * power_slope(a, _less_one(b)), pow(a, b - 1.0) + y * log0(a))
)
arctan2 = _binary(
    "arctan2", np.arctan2, math.atan2, lambda a, b, y: (b * inverse(a * a + b * b), -a * inverse(a * a + b * b))
)
hypot = _binary("hypot", np.hypot, math.hypot, lambda a, b, y: (a * inverse(y), b * inverse(y)))
logaddexp = _binary("logaddexp", np.logaddexp, None, lambda a, b, y: (sigmoid(a - b), sigmoid(b - a)))
logaddexp2 = _binary(
    "logaddexp2", np.logaddexp2, None, lambda a, b, y: (sigmoid(_LN2 * (a - b)), sigmoid(_LN2 * (b - a)))
)
remainder = _binary("remainder", np.remainder, None, lambda a, b, y: (1.0, -_quotient(a, b, y)))
fmod = _binary("fmod", np.fmod, math.fmod, lambda a, b, y: (1.0, -_quotient(a, b, y)))
floor = _unary("floor", np.floor, None, lambda x, y: None)
trunc = _unary("trunc", np.trunc, None, lambda x, y: None)
larger = _binary("larger", _larger, None, lambda a, b, y: (None, None))  # 1 where a > b, ½ where a = b, 0 elsewhere
maximum = _binary("maximum", np.maximum, None, lambda a, b, y: (larger(a, b), larger(b, a)), True)
minimum = _binary("minimum", np.minimum, None, lambda a, b, y: (larger(b, a), larger(a, b)), True)
# 1 where only b is nan, too
larger_number = _binary("larger_number", _larger_number, None, lambda a, b, y: (None, None))
smaller_number = _binary("smaller_number", lambda a, b: _larger_number(-a, -b), None, lambda a, b, y: (None, None))
fmax = _binary("fmax", np.fmax, None, lambda a, b, y: (larger_number(a, b), larger_number(b, a)), True)
fmin = _binary("fmin", np.fmin, None, lambda a, b, y: (smaller_number(a, b), smaller_number(b, a)), True)
log = ln
reciprocal = power(-1)
_closed.append(True)
for _where, _names in {
    "x > 0": ("ln", "log2", "log10"),
    "x > −1": ("log1p",),
    "x ≥ 0": ("sqrt",),
    "x ≥ 1": ("arccosh",),
    "−1 ≤ x ≤ 1": ("arcsin", "arccos"),
    "−1 < x < 1": ("arctanh",),
    "y ≠ 0": ("divide", "remainder", "fmod"),
    "x ≥ 0, or k a whole number; x ≠ 0 where k < 0": ("power",),
    "x ≥ 0, or y a whole number; x ≠ 0 where y < 0": ("pow",),
}.items():
    for _name in _names:
        RULES[_name].domain = _where

for _p, _what, _call, _value in (
    (sin, "the sine; sin' = cos", "sin(0.0)", 0.0),
    (cos, "the cosine; cos' = −sin", "cos(0.0)", 1.0),
    (tan, "the tangent; tan' = 1 + tan²", "tan(0.0)", 0.0),
    (arcsin, "the inverse of sin, for −1 ≤ x ≤ 1; its derivative is 1/√(1 − x²)", "arcsin(0.0)", 0.0),
    (arccos, "the inverse of cos, for −1 ≤ x ≤ 1; its derivative is −1/√(1 − x²)", "arccos(1.0)", 0.0),
    (arctan, "the inverse of tan; its derivative is 1/(1 + x²)", "arctan(0.0)", 0.0),
    (exp, "eˣ, its own derivative", "exp(0.0)", 1.0),
    (expm1, "eˣ − 1, exact near 0; its derivative is eˣ", "expm1(0.0)", 0.0),
    (ln, "the natural logarithm, for x > 0; its derivative is 1/x. `rz.log` is the same", "ln(1.0)", 0.0),
    (log1p, "ln(1 + x), exact near 0, for x > −1; its derivative is 1/(1 + x)", "log1p(0.0)", 0.0),
    (sqrt, "the square root, for x ≥ 0; its derivative is 1/(2√x)", "sqrt(4.0)", 2.0),
    (sinh, "the hyperbolic sine; sinh' = cosh", "sinh(0.0)", 0.0),
    (cosh, "the hyperbolic cosine; cosh' = sinh", "cosh(0.0)", 1.0),
    (tanh, "the hyperbolic tangent; tanh' = 1 − tanh²", "tanh(0.0)", 0.0),
    (arcsinh, "the inverse of sinh; its derivative is 1/√(1 + x²)", "arcsinh(0.0)", 0.0),
    (arccosh, "the inverse of cosh, for x ≥ 1; its derivative is 1/√(x² − 1)", "arccosh(1.0)", 0.0),
    (arctanh, "the inverse of tanh, for −1 < x < 1; its derivative is 1/(1 − x²)", "arctanh(0.0)", 0.0),
    (sigmoid, "1/(1 + e⁻ˣ); its derivative is σ(x)·σ(−x)", "sigmoid(0.0)", 0.5),
    (absolute, "|x|; its derivative is sign x, 0 at 0", "absolute(-3.0)", 3.0),
    (sign, "−1, 0 or 1; its derivative is 0", "sign(-3.0)", -1.0),
    (relu, "max(x, 0); its derivative is 1 for x > 0 and 0 elsewhere", "relu(-3.0)", 0.0),
    (step, "1 for x > 0 and 0 elsewhere; its derivative is 0", "step(3.0)", 1.0),
    (reciprocal, "1/x, the same as `rz.power(-1)`; its derivative is −1/x²", "reciprocal(4.0)", 0.25),
    (divide, "the quotient of two numbers; `f / g` divides functions", "divide(1.0, 4.0)", 0.25),
):
    _type = "ℝ → ℝ" if _p.rule.arity == 1 else "ℝ ⊕ ℝ → ℝ"
    _use = "On arrays it acts at every index; `p @ f` composes it with another function."
    _example = f">>> import riesz as rz\n>>> float(rz.{_call})\n{_value}\n"
    documented(_p, f"{_call.split('(')[0]} : {_type}, {_what}.\n\n{_use}\n\n{_example}")
