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
    "remainder": "({0} - {1} * floor({0} / {1}))",
    "erf": "erf({0})",
    "erfc": "erfc({0})",
    "gammaln": "lgamma({0})",
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
    **{"sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0}", "absolute": "fabs({0})"},
}
"""By the name of a function without a derivative."""


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
