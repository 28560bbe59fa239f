"""Primitives and comparisons as C expressions of math.h."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from ..errors import TraceError

_SAME = "sin cos tan sinh cosh tanh exp exp2 log2 log10 expm1 log1p sqrt cbrt floor trunc hypot fmod"
FORMULAS: dict[str, str] = {
    **{name: f"{name}({'{0}, {1}' if name in ('hypot', 'fmod') else '{0}'})" for name in _SAME.split()},
    **{"arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})", "arcsinh": "asinh({0})"},
    **{"arccosh": "acosh({0})", "arctanh": "atanh({0})", "ln": "log({0})", "absolute": "fabs({0})"},
    **{"arctan2": "atan2({0}, {1})", "root": "sqrt({0})", "divide": "{0} / {1}", "pow": "pow({0}, {1})"},
    "sigmoid": "1 / (1 + exp(-{0}))",
    "sign": "({0} > 0 ? 1 : {0} < 0 ? -1 : {0} + 0)",
    "relu": "({0} > 0 ? {0} : {0} != {0} ? {0} : 0)",
    "step": "({0} > 0 ? 1 : {0} != {0} ? {0} : 0)",
    "inverse": "({0} == 0 ? 0 : 1 / {0})",
    "ratio": "({0} == 0 ? 0 : {0} / {1})",
    "log0": "({0} == 0 ? 0 : log({0}))",
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "fmax": "fmax({0}, {1})",
    "fmin": "fmin({0}, {1})",
    "larger": "({0} > {1} ? 1 : {0} == {1} ? (real)0.5 : 0)",
    "larger_number": "({0} > {1} || ({1} != {1} && {0} == {0}) ? 1 : {0} == {1} ? (real)0.5 : 0)",
    "smaller_number": "({0} < {1} || ({1} != {1} && {0} == {0}) ? 1 : {0} == {1} ? (real)0.5 : 0)",
    "power_slope": "({1} == 0 ? 0 : {1} * pow({0}, {1} - 1))",
    "logaddexp": "({0} == {1} ? {0} + (real)0.69314718055994530942 : "
    "({0} > {1} ? {0} : {1}) + log1p(exp(-fabs({0} - {1}))))",
    "remainder": "(fmod({0}, {1}) != 0 && ({1} < 0) != (fmod({0}, {1}) < 0) ? fmod({0}, {1}) + {1} : fmod({0}, {1}))",
    "logaddexp2": "({0} == {1} ? {0} + 1 : ({0} > {1} ? {0} : {1}) + log2(1 + exp2(-fabs({0} - {1}))))",
    "sinc": "({0} == 0 ? 1 : sin((real)3.14159265358979323846 * {0}) / ((real)3.14159265358979323846 * {0}))",
    "erf": "erf({0})",
    "erfc": "erfc({0})",
    "gammaln": "lgamma({0})",
    "gamma": "tgamma({0})",
    "psi": "riesz_psi({0})",
    "xlogy": "({0} == 0 && {1} == {1} ? 0 : {0} * log({1}))",
    "xlog1py": "({0} == 0 && {1} == {1} ? 0 : {0} * log1p({1}))",
    "ndtr": "erfc(-{0} * (real)0.70710678118654752440) / 2",
}
"""By the name of a primitive."""

DISCRETE: dict[str, str] = {
    **{"less": "{0} < {1}", "less_equal": "{0} <= {1}", "greater": "{0} > {1}", "greater_equal": "{0} >= {1}"},
    **{"equal": "{0} == {1}", "not_equal": "{0} != {1}", "logical_not": "{0} == 0", "isnan": "{0} != {0}"},
    **{"logical_and": "{0} != 0 && {1} != 0", "logical_or": "{0} != 0 || {1} != 0"},
    **{"logical_xor": "({0} != 0) != ({1} != 0)", "isfinite": "({0}) - ({0}) == 0"},
    **{"_number": "{0} != 0 ? 0 : 1", "_same": "{0}", "add": "{0} + {1}", "subtract": "{0} - {1}"},
    **{"multiply": "{0} * {1}", "minimum": "{0} < {1} ? {0} : {1}", "maximum": "{0} > {1} ? {0} : {1}"},
    **{"floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "rint": "rint({0})", "negative": "-{0}"},
    **{"sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0}", "absolute": "fabs({0})", "square": "{0} * {0}"},
    **{"remainder": FORMULAS["remainder"], "fmod": "fmod({0}, {1})", "floor_divide": "riesz_floor_divide({0}, {1})"},
    **{"isinf": "{0} == {0} && {0} - {0} != 0", "isposinf": "{0} > 0 && {0} - {0} != 0", "power": "pow({0}, {1})"},
    **{"isneginf": "{0} < 0 && {0} - {0} != 0", "round": "rint({0})", "where": "{0} != 0 ? {1} : {2}"},
    **{"copysign": "copysign({0}, {1})", "arctan2": "atan2({0}, {1})", "fmax": "fmax({0}, {1})"},
    **{f"bitwise_{n}": f"(real)((long){{0}} {k} (long){{1}})" for n, k in {"and": "&", "or": "|", "xor": "^"}.items()},
    **{"clip": "{0} < {1} ? {1} : {0} > {2} ? {2} : {0}", "fmin": "fmin({0}, {1})"},
}
"""By the name of a function without a derivative."""


HELPERS: dict[str, str] = {
    "riesz_floor_divide": """static real riesz_floor_divide(real a, real b)
{
    real m = fmod(a, b), d = (a - m) / b, f;
    if (b == 0) return a / b;
    if (m != 0 && (b < 0) != (m < 0)) d -= 1;
    f = floor(d);
    return d - f > (real)0.5 ? f + 1 : f;
}
""",
    "riesz_psi": """/* the derivative of ln Gamma: reflection, recurrence, asymptotic series */
static real riesz_psi(real x)
{
    static const real b[8] = {
        (real)0.083333333333333333333, (real)-0.0083333333333333333333, (real)0.003968253968253968254,
        (real)-0.0041666666666666666667, (real)0.0075757575757575757576, (real)-0.021092796092796092796,
        (real)0.083333333333333333333, (real)-0.44325980392156862745};
    const real pi = (real)3.14159265358979323846;
    real s = 0, t, u = 0;
    if (x <= 0) {
        if (x == floor(x)) return (real)NAN;
        return riesz_psi(1 - x) - pi / tan(pi * (x - floor(x)));
    }
    for (; x < 10; x += 1) s -= 1 / x;
    t = 1 / (x * x);
    for (int i = 7; i >= 0; i--) u = t * (b[i] + u);
    return s + log(x) - 1 / (2 * x) - u;
}
""",
}
"""Functions that formulas call, by name."""


def formula(op: Any, xs: list[str]) -> str:
    """A primitive of expressions."""
    name, k = op.primitive.name, op.primitive.parameter
    if name == "power" and k is not None:
        x = xs[0]
        short = {-1.0: f"1 / {x}", 0.0: "1", 1.0: x, 2.0: f"{x} * {x}", 3.0: f"{x} * {x} * {x}", 0.5: f"sqrt({x})"}
        if k in short:
            return short[k]
        return f"1 / ({x} * {x})" if k == -2.0 else f"pow({x}, {number(k)})"
    if name not in FORMULAS or k is not None:
        raise TraceError(
            f"the primitive {name} has no formula in C; write the function with others, or export to numpy"
        )
    return FORMULAS[name].format(*xs)


def number(x: Any) -> str:
    """A number as C reads it, with all its digits."""
    x = float(x)
    if x != x:
        return "(real)NAN"
    if x in (float("inf"), float("-inf")):
        return "(real)INFINITY" if x > 0 else "(-(real)INFINITY)"
    if x == int(x) and abs(x) < 1 << 53:
        return f"{int(x)}." if x >= 0 and str(x)[0] != "-" else f"(-{abs(int(x))}.)"
    return f"{x!r}" if x > 0 else f"({x!r})"
