"""Statements as Python source on floats: buffers are lists. Where floats raise, the ordinary way is taken."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from ...runtime.generated_source import defined
from ..python.scalar_code import FORMS, bare
from ..source_text import inside, literal
from .statements import (
    Assign,
    Blocked,
    Fail,
    For,
    If,
    Invoke,
    Lanes,
    Locate,
    Pick,
    Position,
    Read,
    SetNumber,
    Statements,
    Update,
    Value,
)

_TURNED = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_PLAIN = (*_TURNED, "expm1", "log1p", "log2", "log10", "hypot", "erf", "erfc", "fmod", "exp", "log", "sqrt", "cbrt")
_FUNCTIONS: dict[str, Any] = {
    **{f"arc{f}": getattr(math, f"a{f}") for f in _TURNED},
    **{f: getattr(math, f) for f in (*_PLAIN, "exp2", "isfinite", "isnan")},
    **{"arctan2": math.atan2, "gammaln": math.lgamma, "absolute": abs, "copysign": math.copysign},
}
_TEXTS = {"where": "({1} if {0} else {2})", "number": "float({})", "plus": "({} + {})"}
_NAMES: dict[str, Any] = {f: getattr(math, f) for f in ("inf", "nan", "floor", "ceil", "trunc", "copysign")}
_NAMES["round"] = round
LONGEST = 160
"""Expressions of more characters get a variable."""


class Failed(ValueError):
    """What cannot be done on floats."""


def _text(op: str) -> str | None:
    if op in _TEXTS:
        return _TEXTS[op]
    found = FORMS.get(getattr(np, op, None))
    return None if op in _FUNCTIONS else found


class _Lines:
    def __init__(self) -> None:
        self.space: dict[str, Any] = {"Failed": Failed, **_NAMES}
        self._uses: Counter[str] = Counter()
        self._where: dict[str, int] = {}  # the block of a variable's last use
        self._inline: dict[str, str] = {}

    def counted(self, body: list[Any]) -> None:
        """How often each variable is read, and in which block."""
        stack = [body]
        while stack:
            block = stack.pop()
            for s in block:
                read: list[Any] = []
                match s:
                    case Assign():
                        form = _text(s.op) or ""
                        read = [a for i, a in enumerate(s.args) for _ in range(form.count(f"{{{i}}}") or 1)]
                    case SetNumber() | Locate():
                        read = [s.value]
                    case Update():
                        read = list(s.values)
                    case For() | Lanes():
                        stack.append(s.body)
                    case If():
                        read = [s.condition]
                        stack += [s.yes, s.no]
                    case Fail():
                        read = [s.condition]
                    case _:
                        pass
                for name in [x for x in read if isinstance(x, str)]:
                    self._uses[name] += 1
                    self._where[name] = id(block)

    def _value(self, value: Value) -> str:
        if isinstance(value, str):
            return self._inline.pop(value) if value in self._inline else value
        return literal(value)

    def _position(self, at: Position) -> str:
        terms = [name if k == 1 else f"{k}*{name}" for name, k in at.terms]
        return " + ".join([*terms, *([str(at.offset)] if at.offset or not terms else [])])

    def block(self, body: list[Any]) -> list[str]:
        """The lines of some statements."""
        lines: list[str] = []
        for s in body:
            match s:
                case Assign():
                    self._assigned(s, lines, id(body))
                case Read():
                    lines.append(f"{s.name} = {s.buffer.name}[{self._position(s.at)}]")
                case Pick():
                    lines.append(f"{s.name} = {s.table.name}[{self._position(s.at)}]")
                case Locate():
                    lines.append(f"{s.name} = int({self._value(s.value)})")
                    lines += inside(f"if {s.name} < 0:", [f"{s.name} += {s.size}"])
                    lines += inside(f"if not 0 <= {s.name} < {s.size}:", ["raise Failed"])
                case SetNumber():
                    sign = "+=" if s.adds else "="
                    lines.append(f"{s.buffer.name}[{self._position(s.at)}] {sign} {bare(self._value(s.value))}")
                case Update():
                    values = ", ".join([bare(self._value(v)) for v in s.values])
                    lines.append(f"{', '.join(s.names)} = {values}")
                case For():
                    start, stop = self._position(s.start), self._position(s.stop)
                    times = f"{stop} - 1, {start} - 1, -1" if s.reverse else f"{start}, {stop}"
                    lines += inside(f"for {s.name} in range({times}):", self.block(s.body) or ["pass"])
                case Lanes():
                    lines += inside(f"for {s.name} in range({s.times}):", self.block(s.body) or ["pass"])
                case If():
                    lines += inside(f"if {self._value(s.condition)}:", self.block(s.yes) or ["pass"])
                    lines += inside("else:", self.block(s.no)) if s.no else []
                case Fail():
                    lines += inside(f"if {self._value(s.condition)}:", ["raise Failed"])
                case Invoke():
                    lines += self._invoked(s)
                case _:
                    raise Blocked(type(s).__name__)
        return lines

    def _assigned(self, s: Assign, lines: list[str], block: int) -> None:
        form = _text(s.op)
        given = [self._value(a) for a in s.args]
        if form is None:
            self.space[s.op] = _FUNCTIONS[s.op]
            form = f"{s.op}({', '.join(['{}'] * len(given))})"
        text = form.format(*given)
        if self._uses[s.name] == 1 and len(text) <= LONGEST and self._where[s.name] == block:
            self._inline[s.name] = text
        elif self._uses[s.name]:
            lines.append(f"{s.name} = {bare(text)}")

    def _invoked(self, s: Invoke) -> list[str]:
        copies: list[str] = []
        for _, at in s.buffers:
            if at != Position():
                raise Blocked("a helper inside an array")
        copies.append(f"{s.helper}({', '.join([b.name for b, _ in s.buffers])})")
        return copies


def float_function(written: Statements) -> tuple[str, Any]:
    """Source and function: lists of the arguments give lists of the results."""
    code, texts = _Lines(), list[str]()
    for helper in written.helpers.values():
        code.counted(helper.body)
        texts += inside(f"def {helper.name}({', '.join([b.name for b in helper.buffers])}):", code.block(helper.body))
    for b in written.fixed:
        code.space[b.name] = b.numbers.tolist()
    code.counted(written.body)
    begin = [f"{b.name} = [0.0] * {b.size}" for b in (*written.results, *written.own)]
    end = f"return ({''.join([f'{b.name}, ' for b in written.results])})"
    given = ", ".join([b.name for b in written.arguments])
    texts += inside(f"def native({given}):", [*begin, *code.block(written.body), end])
    source = "\n".join(texts)
    return source, defined(source, "native", code.space)
