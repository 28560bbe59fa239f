"""Expressions of numbers as Python source: plain floats and `math`.

Where Python raises and NumPy gives inf or nan (ln 0, 1/0, overflow) the generated function raises, and the program is
run the ordinary way.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...programs.axis.scalars import Fixed, Operation, Scalars, Small
from ...runtime import tuning
from ...terms.primitives import RULES
from ..source_text import literal

RAISED = (ValueError, OverflowError, ZeroDivisionError)
"""What floats raise where arrays give inf or nan."""


def logaddexp(a: float, b: float) -> float:
    """ln(exp a + exp b), as NumPy computes it."""
    if a == b:
        return a + 0.6931471805599453
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


_ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "==": np.equal, "!=": np.not_equal}
_ORDER = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
_CALLS = ("sqrt", "isfinite", "isnan", "exp", "log", "cbrt", "exp2")
# How NumPy's functions are written on floats. Arguments are names or literals where they occur twice.
FORMS: dict[Any, str] = {
    **{function: f"({{}} {sign} {{}})" for sign, function in (_ARITHMETIC | _ORDER).items()},
    **{getattr(np, name): f"{name}({{}})" for name in _CALLS},
    np.negative: "(-{})",
    np.power: "pow({}, {})",
    np.logical_not: "(not {})",
    np.logical_and: "(True if {} and {} else False)",
    np.logical_or: "(True if {} or {} else False)",
    np.bitwise_and: "(True if {} and {} else False)",  # of truth values: there are no integers here
    np.bitwise_or: "(True if {} or {} else False)",
    np.bitwise_xor: "({} != {})",
    np.logical_xor: "(bool({}) != bool({}))",
    np.invert: "(not {})",
    np.logaddexp: "logaddexp({}, {})",
    np.floor: "copysign(floor({0}), {0})",
    np.ceil: "copysign(ceil({0}), {0})",
    np.trunc: "copysign(trunc({0}), {0})",
    np.rint: "copysign(round({0}), {0})",
    np.maximum: "({0} if {0} >= {1} or {0} != {0} else {1})",
    np.minimum: "({0} if {0} <= {1} or {0} != {0} else {1})",
    np.fmax: "({0} if {0} >= {1} or {1} != {1} else {1})",
    np.fmin: "({0} if {0} <= {1} or {1} != {1} else {1})",
}
_MATH = (*_CALLS, "pow", "floor", "ceil", "trunc", "copysign", "inf", "nan")
NAMES: dict[str, Any] = {**{name: getattr(math, name) for name in _MATH}, "logaddexp": logaddexp, "round": round}
"""What generated code may call."""
_TWICE = {f for f, form in FORMS.items() if "{0}" in form}


class ScalarLines:
    """The statements that compute some nodes; `texts[x]`: a node's expression; `leaf` names numbers that are read."""

    def __init__(self, graph: Scalars, ends: Sequence[int], leaf: Callable[[Small], str]) -> None:
        self.graph = graph
        self.names: dict[str, Any] = dict(NAMES)
        self.lines: list[str] = []
        self._leaf = leaf
        self.texts: dict[int, str] = {}
        self._uses = Counter(ends)
        for x in range(len(graph.ops) - 1, -1, -1):
            self._uses.update(graph.args[x] if self._uses[x] else ())
        self.loads: list[Small] = [op for x, op in enumerate(graph.ops) if self._uses[x] and type(op) is Small]
        for x, op in enumerate(graph.ops):
            if self._uses[x]:
                self._write(x, op)

    def _write(self, x: int, op: Any) -> None:
        if type(op) is Small:
            self.texts[x] = self._leaf(op)
        elif type(op) is Fixed:
            self.texts[x] = literal(op.value if isinstance(op.value, bool) else float(op.value))
        else:
            given = [self.texts[a] for a in self.graph.args[x]]
            if op.function in _TWICE or op.name == "step":
                given = [self._named(g) for g in given]
            text = self._expression(op, given)
            self.texts[x] = text if self._uses[x] == 1 and len(text) <= tuning.INLINE_CHARACTERS else self._named(text)

    def _named(self, text: str) -> str:
        """An expression as a variable of its own."""
        if text.isidentifier() or text.replace(".", "").isalnum():
            return text
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {bare(text)}")
        return name

    def _expression(self, op: Operation, given: list[str]) -> str:
        if op.name == "where":
            return f"({given[1]} if {given[0]} else {given[2]})"
        if op.name == "convert":
            return f"float({given[0]})"
        rule = RULES.get(op.name)
        if rule is not None and op.function in (rule.array, rule.scalar):
            if op.name == "step":
                return f"(0.0 if {given[0]} <= 0.0 else 1.0 if {given[0]} > 0.0 else {given[0]})"
            if rule.array in FORMS:
                return FORMS[rule.array].format(*given)
            if rule.scalar is not None:
                self.names[op.name] = rule.scalar
                return f"{op.name}({', '.join([*given, *[repr(p) for p in op.more]])})"
        if op.function in FORMS and not op.more and not op.named:
            return FORMS[op.function].format(*given)
        name = f"{op.name if op.name.isidentifier() else 'function'}_{len(self.names)}"
        self.names[name] = _of_floats(op)
        return f"{name}({', '.join(given)})"


def _of_floats(op: Operation) -> Callable[..., Any]:
    """Array code on floats."""

    def call(*xs: Any) -> Any:
        found = np.asarray(op(*[np.bool_(x) if x is True or x is False else np.float64(x) for x in xs]))[()]
        return bool(found) if found.dtype == bool else float(found)

    return call


def bare(text: str) -> str:
    """An expression without the parentheses around all of it."""
    depths = list(itertools.accumulate([(c == "(") - (c == ")") for c in text]))
    return text[1:-1] if text.startswith("(") and depths.index(0) == len(text) - 1 else text
