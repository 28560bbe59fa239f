"""SQL as engines speak it: which functions they have, and how they read numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_SAME = "sin cos tan sinh cosh tanh exp log2 log10 sqrt cbrt"
FORMULAS: dict[str, str] = {
    **{name: f"{name}({{0}})" for name in _SAME.split()},
    **{"arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})", "arctan2": "atan2({0}, {1})"},
    **{"arcsinh": "asinh({0})", "arccosh": "acosh({0})", "arctanh": "atanh({0})"},
    **{"ln": "ln({0})", "absolute": "abs({0})", "root": "sqrt({0})", "divide": "({0} / {1})"},
    **{"pow": "power({0}, {1})", "exp2": "power(2, {0})"},
    "expm1": "CASE WHEN abs({0}) < 1 THEN 2 * exp({0} / 2) * sinh({0} / 2) ELSE exp({0}) - 1 END",
    "log1p": "CASE WHEN abs({0}) < 0.5 THEN 2 * atanh({0} / (2 + {0})) ELSE ln(1 + {0}) END",
    **{"hypot": "sqrt({0} * {0} + {1} * {1})", "sigmoid": "(1 / (1 + exp(-{0})))", "sign": "sign({0})"},
    **{"relu": "greatest({0}, 0)", "maximum": "greatest({0}, {1})", "minimum": "least({0}, {1})"},
    "step": "CASE WHEN {0} > 0 THEN 1 ELSE 0 END",
    "inverse": "CASE WHEN {0} = 0 THEN 0 ELSE 1 / {0} END",
    "log0": "CASE WHEN {0} = 0 THEN 0 ELSE ln({0}) END",
    "larger": "CASE WHEN {0} > {1} THEN 1 WHEN {0} = {1} THEN 0.5 ELSE 0 END",
    "power_slope": "CASE WHEN {1} = 0 THEN 0 ELSE {1} * power({0}, {1} - 1) END",
    "gammaln": "lgamma({0})",
}
"""Primitives by their names."""

DISCRETE: dict[str, str] = {
    **{"less": "({0} < {1})", "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "greater_equal": "({0} >= {1})"},
    **{"equal": "({0} = {1})", "not_equal": "({0} <> {1})"},
    **{"add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "negative": "(-{0})"},
    **{"floor_divide": "floor({0} / {1})", "remainder": "({0} - {1} * floor({0} / {1}))"},
    **{"floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "rint": "round_even({0}, 0)"},
    **{"minimum": "least({0}, {1})", "maximum": "greatest({0}, {1})", "absolute": "abs({0})", "sign": "sign({0})"},
    "_same": "{0}",
}
LOGIC: dict[str, str] = {
    **{"logical_and": "({0} AND {1})", "bitwise_and": "({0} AND {1})", "logical_or": "({0} OR {1})"},
    **{"bitwise_or": "({0} OR {1})", "logical_not": "(NOT {0})", "invert": "(NOT {0})"},
    **{"logical_xor": "({0} <> {1})", "bitwise_xor": "({0} <> {1})"},
}
"""Functions without a derivative, of numbers and of truth values."""

TRUTHS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isfinite", *LOGIC)
"""What has a truth value."""


def number(x: Any) -> str:
    """A number as SQL reads it."""
    x = float(x)
    if math.isfinite(x):
        return f"{int(x)}" if x == int(x) and abs(x) < 1 << 53 else f"{x!r}"
    return f"CAST('{'nan' if x != x else 'inf' if x > 0 else '-inf'}' AS DOUBLE)"


def _float(x: Any) -> str:
    """A number as Polars reads it: 0.5 would be a decimal there, and "--" begins a comment."""
    x = float(x)
    text = f"{x!r}" if "e" in f"{x!r}" else f"{x!r}e0"
    return number(x) if not math.isfinite(x) else f"({text})" if text.startswith("-") else text


class SqlDialect(NamedTuple):
    """What differs between engines. `names`: whether a query may use names that it gives itself, and parameters."""

    engine: str
    formulas: dict[str, str]
    discrete: dict[str, str]
    number: Callable[[Any], str]
    names: bool


_NOT_IN_POLARS = ["sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "gammaln", "expm1", "log1p", "rint"]


def _of_polars(formulas: dict[str, str], **others: str) -> dict[str, str]:
    return {k: v for k, v in formulas.items() if k not in _NOT_IN_POLARS} | others


DIALECTS = {
    "duckdb": SqlDialect("DuckDB", FORMULAS, DISCRETE, number, True),
    "polars": SqlDialect(
        "Polars",
        _of_polars(
            FORMULAS,
            pow="power(CAST({0} AS DOUBLE), {1})",
            exp2="power(2e0, {0})",
            cosh="((exp({0}) + exp(-{0})) / 2)",
            larger="CASE WHEN {0} > {1} THEN 1e0 WHEN {0} = {1} THEN 5e-1 ELSE 0e0 END",
            power_slope="CASE WHEN {1} = 0 THEN 0e0 ELSE {1} * power(CAST({0} AS DOUBLE), {1} - 1) END",
        ),
        _of_polars(DISCRETE),
        _float,
        False,
    ),
}
"""By the engine's name."""
