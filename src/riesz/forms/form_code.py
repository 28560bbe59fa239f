"""Expressions as code that a person would keep: one short function in plain NumPy, JAX, PyTorch, Julia or MATLAB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..errors import ExpressionError
from .expression_trees import Tree

SUM, TIMES, POWER, ATOM = range(4)
Code = tuple[str, int]


@dataclass(frozen=True)
class Dialect:
    """How a language writes what the languages write differently."""

    name: str
    calls: dict[str, str]
    columns: bool  # whether vectors are columns, as in MATLAB and Julia
    matmul: str = " @ "
    times: str = " * "
    over: str = " / "
    raised: str = " ** "
    turned: str = ".T"
    helpers: dict[str, str] = field(default_factory=dict)

    def softmax(self, rank: int) -> str:
        """The name of softmax along the last axis."""
        return "softmax"


_SHARED = {
    **{
        name: name
        for name in ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "diag")
    },
    **{"log1p": "log1p", "expm1": "expm1", "maximum": "maximum", "minimum": "minimum", "mean": "mean"},
    **{"arcsin": "arcsin", "arccos": "arccos", "arctan": "arctan", "max": "max", "min": "min", "pow": "power"},
}
_LINALG = {
    "det": "linalg.det",
    "inverse": "linalg.inv",
    "norm": "linalg.norm",
    "power": "linalg.matrix_power",
    "eigh": "linalg.eigh",
}
_NUMPY = {
    **{k: f"np.{v}" for k, v in (_SHARED | _LINALG).items()},
    "Σ": "np.sum",
    "tr": "np.trace",
    "larger": "np.heaviside",
}
_NUMPY |= {"kron": "np.kron", "outer": "np.outer", "ones": "np.ones", "eye": "np.eye", "expm": "scipy.linalg.expm"}
_SOFTMAX = """def softmax(z):
    e = {0}.exp(z - {0}.max(z, axis=-1, keepdims=True))
    return e / {0}.sum(e, axis=-1, keepdims=True)
"""
_SIGMOID = "def sigmoid(z):\n    return 1 / (1 + {0}.exp(-z))\n"
_TORCH = {**{k: f"torch.{v}" for k, v in (_SHARED | _LINALG).items()}, "Σ": "torch.sum", "tr": "torch.trace"}
_TORCH |= {
    "larger": "torch.heaviside",
    "kron": "torch.kron",
    "outer": "torch.outer",
    "ones": "torch.ones",
    "eye": "torch.eye",
}
_TORCH |= {
    "softmax": "torch.softmax",
    "sigmoid": "torch.sigmoid",
    "expm": "torch.linalg.matrix_exp",
    "pow": "torch.pow",
}
_MATLAB = {
    k: k for k in ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sqrt", "abs", "sign", "diag", "det")
}
_MATLAB |= {
    "log1p": "log1p",
    "expm1": "expm1",
    "maximum": "max",
    "minimum": "min",
    "kron": "kron",
    "expm": "expm",
    "inverse": "inv",
}
_MATLAB |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "tr": "trace", "eye": "eye", "ones": "ones"}
_JULIA = {**_MATLAB, "eye": "I", "tr": "tr"}

DIALECTS = {
    "numpy": Dialect(
        "numpy", _NUMPY, False, helpers={"softmax": _SOFTMAX.format("np"), "sigmoid": _SIGMOID.format("np")}
    ),
    "jax": Dialect(
        "jax",
        {k: v.replace("np.", "jnp.").replace("scipy.", "jax.scipy.") for k, v in _NUMPY.items()},
        False,
        helpers={"softmax": _SOFTMAX.format("jnp"), "sigmoid": _SIGMOID.format("jnp")},
    ),
    "torch": Dialect("torch", _TORCH, False),
}
_IMPORTS = {"numpy": "import numpy as np", "jax": "import jax.numpy as jnp", "torch": "import torch"}


class CodeWriter:
    """Writes trees as expressions of a dialect; `names` are parts that have a name."""

    def __init__(self, dialect: Dialect, names: dict[int, str]) -> None:
        self.dialect, self.names = dialect, names
        self.used: set[str] = set()

    def expression(self, root: Tree, top: bool = False) -> str:
        """A tree as one expression."""
        done: dict[int, Code] = {}
        stack: list[tuple[Tree, bool]] = [(root, False)]
        while stack:
            t, ready = stack.pop()
            if t.id in done:
                continue
            if t.id in self.names and not (top and t is root):
                done[t.id] = self.names[t.id], ATOM
            elif ready:
                done[t.id] = self._written(t, done)
            else:
                stack += [(t, True), *[(x, False) for x in t.kids]]
        return done[root.id][0]

    def call(self, name: str, *args: str) -> Code:
        """A function call."""
        known = self.dialect.calls.get(name)
        if known is None and name in self.dialect.helpers:
            self.used.add(name)
            known = name
        if known is None:
            raise ExpressionError(
                f"{name} has no counterpart in {self.dialect.name}; D.gradient.code('numpy') may know it"
            )
        if known.startswith("scipy."):
            self.used.add("import scipy.linalg")
        elif known.startswith("jax.scipy."):
            self.used.add("import jax.scipy.linalg")
        return f"{known}({', '.join(args)})", ATOM

    def _written(self, t: Tree, done: dict[int, Code]) -> Code:
        d = self.dialect
        inside = lambda x, level: _within(done[x.id], level)  # noqa: E731
        kids = [done[x.id] for x in t.kids]
        match t.kind:
            case "number":
                return _number(t.value)
            case "symbol":
                return t.value, ATOM
            case "ones":
                return self.call("ones", str(t.value))
            case "identity":
                return self.call("eye", str(t.value))
            case "commutation":
                n, m = t.value
                eye = self.call("eye", str(n * m))[0]
                return f"{eye}.reshape({n}, {m}, {n * m}).swapaxes(0, 1).reshape({n * m}, {n * m})", ATOM
            case "transpose":
                return kids[0] if t.rank == 1 else (f"{_within(kids[0], ATOM)}{d.turned}", ATOM)
            case "inverse" | "norm":
                return self.call(t.kind, kids[0][0])
            case "matrix power":
                return self.call("power", kids[0][0], str(t.value))
            case "power":
                return f"{_within(kids[0], ATOM)}{d.raised}{_exponent(t.value)}", POWER
            case "call":
                return self._call(t, [k[0] for k in kids])
            case "chain":
                return self._chain(t, done)
            case "hadamard":
                return d.times.join(
                    [inside(x, TIMES) if k == 0 else inside(x, POWER) for k, x in enumerate(t.kids)]
                ), TIMES
            case "quotient":
                return f"{_within(kids[0], TIMES)}{d.over}{_within(kids[1], POWER)}", TIMES
            case "kronecker":
                return self.call("kron", *[k[0] for k in kids])
            case "larger":
                return self.call("larger", self._difference(*kids), "0.5")
            case _:
                text = ""
                for k, (sign, part) in enumerate(zip(t.value, kids, strict=True)):
                    mark = ("-" if sign < 0 else "") if k == 0 else " - " if sign < 0 else " + "
                    text += mark + _within(part, TIMES)
                return text, SUM

    @staticmethod
    def _difference(a: Code, b: Code) -> str:
        return a[0] if b[0] == "0" else f"{a[0]} - {_within(b, TIMES)}"

    def _call(self, t: Tree, parts: list[str]) -> Code:
        name = t.value[0] if isinstance(t.value, tuple) else t.value
        if name == "vec":
            return f"{parts[0] if parts[0].isidentifier() else f'({parts[0]})'}.reshape(-1)", ATOM
        if name == "softmax" and self.dialect.name == "torch":
            return self.call("softmax", parts[0], "-1")
        return self.call(name, *parts)

    def _chain(self, t: Tree, done: dict[int, Code]) -> Code:
        """Numbers times a product of matrices and vectors; a column before a row is an outer product."""
        numbers = [x for x in t.kids if x.rank == 0]
        arrays = [x for x in t.kids if x.rank]
        lead = self.dialect.times.join([_within(done[x.id], POWER) for x in numbers])
        if not arrays:
            return lead, TIMES
        cut = next((k for k in range(1, len(arrays)) if _column(arrays[k - 1]) and arrays[k].row), None)
        if cut is not None:
            left, right = self._product(arrays[:cut], done), self._product(arrays[cut:], done)
            outer = self.call("outer", left[0], right[0])
            return (f"{lead}{self.dialect.times}{outer[0]}", TIMES) if numbers else outer
        product = self._product(arrays, done)
        if not numbers:
            return product
        return f"{lead}{self.dialect.times}{product[0] if product[1] >= TIMES else _within(product, POWER)}", TIMES

    def _product(self, arrays: Sequence[Tree], done: dict[int, Code]) -> Code:
        """A @ B @ x, a column on the right first: matrices are not multiplied where vectors do."""
        if len(arrays) == 1:
            return done[arrays[0].id]
        if arrays[-1].kind == "ones" and arrays[-2].rank == 2:
            rows = _within(self._product(arrays[:-1], done), ATOM)
            return f"{rows}.sum(1)", ATOM
        if arrays[0].row and arrays[0].kids[0].kind == "ones" and arrays[1].rank == 2:
            return f"{_within(self._product(arrays[1:], done), ATOM)}.sum(0)", ATOM
        if arrays[-1].rank == 1 and not arrays[-1].row and not arrays[0].row and len(arrays) > 2:
            right = self._product(arrays[1:], done)
            return f"{_within(done[arrays[0].id], POWER)}{self.dialect.matmul}{_within(right, POWER)}", TIMES
        return self.dialect.matmul.join([_within(done[x.id], POWER) for x in arrays]), TIMES


def _column(t: Tree) -> bool:
    return t.rank == 1 and not t.row


def _within(code: Code, level: int) -> str:
    return code[0] if code[1] >= level else f"({code[0]})"


def _number(k: Any) -> Code:
    if isinstance(k, Fraction) and k.denominator & (k.denominator - 1):
        return f"{k.numerator} / {k.denominator}", TIMES
    value = float(k)
    return (str(int(value)) if value.is_integer() else repr(value)), ATOM if value >= 0 else SUM


def _exponent(e: Fraction) -> str:
    return str(e.numerator) if e.denominator == 1 and e > 0 else f"({float(e):g})"


def function_code(
    target: str,
    name: str,
    arguments: Sequence[str],
    heads: Sequence[Tree],
    where: Sequence[tuple[str, Tree]],
    formula: str,
    chosen: dict[str, tuple[int, str]],
    spectra: Sequence[tuple[str, str, Tree]],
) -> str:
    """A function of its own in a language: imports, helpers, named parts, the result."""
    if target not in DIALECTS:
        known = ", ".join([repr(k) for k in (*DIALECTS, "latex")])
        raise ExpressionError(f"code({target!r}): the targets are {known}")
    dialect = DIALECTS[target]
    writer = CodeWriter(dialect, {t.id: part for part, t in where})
    body = [f"    {part} = {writer.expression(t, top=True)}" for part, t in where]
    results = [writer.expression(t) for t in heads]
    body = [f"    {a}, {b} = {writer.call('eigh', writer.expression(t))[0]}" for a, b, t in spectra] + body
    body = [f"    {part} = {writer.call('eye', str(n))[0]}[{rows}]" for part, (n, rows) in chosen.items()] + body
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    imports = [_IMPORTS[target], *sorted([u for u in writer.used if u.startswith("import")])]
    helpers = [dialect.helpers[u] for u in sorted(writer.used) if u in dialect.helpers]
    doc = f'    """{formula}"""' if "\n" not in formula else '    """' + formula.replace("\n", "\n    ") + '\n    """'
    function = [f"def {name}({', '.join(arguments)}):", doc, *body, f"    return {result}", ""]
    return "\n".join(["\n".join(imports), "", "", *[f"{h}\n" for h in helpers], "\n".join(function)])
