"""Expressions as code that a person would keep: one short function in NumPy, JAX, PyTorch, Julia or MATLAB, or a text
that `rz.function` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]

from ..errors import ExpressionError
from .expression_trees import Tree, repeated

SUM, TIMES, POWER, ATOM = range(4)
LISTED = 400
"""Arrays of up to this many numbers are written out in texts."""
RESERVED = {"softmax", "sigmoid", "at_max", "np", "jnp", "jax", "torch", "scipy"}
"""Names that code uses itself."""
Code = tuple[str, int]


@dataclass(frozen=True)
class Dialect:
    """How a language writes what the languages write differently."""

    name: str
    calls: dict[str, str]
    helpers: dict[str, str] = field(default_factory=dict)
    matmul: str = " @ "
    times: str = " * "  # at every index
    over: str = " / "
    raised: str = " ** "
    turned: str = ".T"
    header: str = ""
    columns: bool = False  # vectors are columns: outer and inner products are products
    dotted: bool = False  # functions of numbers take a dot at every index


_SAME = "exp log sin cos tan tanh sinh cosh sqrt abs sign log1p expm1 maximum minimum mean arcsin arccos arctan hypot"
_OTHERS = {"zeros": "zeros", "pow": "power", "Σ": "sum", "tr": "trace", "larger": "heaviside"}
_OTHERS |= {"outer": "outer", "diag": "diag", "kron": "kron"}
_LINALG = {"det": "det", "inverse": "inv", "norm": "norm", "power": "matrix_power", "eigh": "eigh"}
_SOFTMAX = """def softmax(z):
    e = {0}.exp(z - {0}.max(z, axis=-1, keepdims=True))
    return e / {0}.sum(e, axis=-1, keepdims=True)
"""
_AT_MAX = """def at_max(z, axis=None):
    e = z == {0}.max(z, axis=axis, keepdims=True)
    return e / {0}.sum(e, axis=axis, keepdims=True)
"""
_SIGMOID = "def sigmoid(z):\n    return 1 / (1 + {0}.exp(-z))\n"


def _python(prefix: str, linalg: str = "linalg.", **more: str) -> dict[str, str]:
    """The functions of a library with NumPy's names."""
    plain = {name: name for name in _SAME.split()} | _OTHERS | {"ones": "ones", "eye": "eye"}
    found = {k: f"{prefix}{v}" for k, v in plain.items()}
    for name in ("max", "min"):
        found[name] = f"{prefix}{name}({{0}})"
        sign = "-" if name == "min" else ""
        found[f"at {name}"] = f"at_max({sign}({{0}}))" if sign else "at_max({0})"
        for axis in (0, 1):
            found[f"{name}{axis}"] = f"{prefix}{'a' if prefix == 'torch.' else ''}{name}({{0}}, {axis})"
            found[f"at {name}{axis}"] = f"{found[f'at {name}'][:-1]}, {axis})"
    return found | {k: f"{prefix}{linalg}{v}" for k, v in _LINALG.items()} | more


_TEXT = _python("", "", logabs="log(abs({0}))", sigmoid="sigmoid", softmax="softmax({0}, -1)")
_TEXT |= {"turned": "transpose({0})", "rows": "sum({0}, 1)", "columns": "sum({0}, 0)", "vec": "ravel({0})"}
_TEXT |= {f"{name}{axis}": f"{name}({{0}}, axis={axis})" for name in ("max", "min") for axis in (0, 1)}
_TEXT = {k: v for k, v in _TEXT.items() if k not in ("power", "eigh", "zeros") and not k.startswith("at ")}
_TEXT |= {"erf": "erf", "hypot": "hypot", "cbrt": "cbrt", "psi": "digamma", "erfc": "erfc", "gammaln": "gammaln"}
for _peak in ("max", "min"):
    _TEXT[f"at {_peak}"] = "where({0} == PEAK({0}), 1, 0) / sum(where({0} == PEAK({0}), 1, 0))".replace("PEAK", _peak)
_COLUMNS = "exp log sin cos tan tanh sinh cosh sqrt abs sign log1p expm1 diag kron det expm"
_MATLAB = {name: name for name in _COLUMNS.split()}
_MATLAB |= {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "maximum": "max", "minimum": "min", "inverse": "inv"}
_MATLAB |= {"tr": "trace", "eye": "eye", "ones": "ones({0}, 1)", "Σ": "sum({0}(:))", "mean": "mean({0}(:))"}
_MATLAB |= {"norm": "norm({0}(:))", "power": "({0})^({1})", "max": "max({0})", "min": "min({0})", "pow": "power"}
_MATLAB |= {"vec": "reshape(({0}).', [], 1)", "logabs": "log(abs({0}))", "larger": "(({0} > 0) + 0.5 * ({0} == 0))"}
_JULIA = {**_MATLAB, "tr": "tr", "eye": "Matrix(I, {0}, {0})", "ones": "ones({0})", "Σ": "sum", "mean": "mean"}
_JULIA |= {"max": "maximum", "min": "minimum", "maximum": "max", "minimum": "min", "expm": "exp", "norm": "norm"}
_JULIA |= {"vec": "vec(permutedims({0}))", "larger": "((({0}) .> 0) .+ 0.5 .* (({0}) .== 0))"}
for _calls, _zeros in ((_MATLAB, "zeros({0}, {1})"), (_JULIA, "zeros")):
    _calls["zeros"] = _zeros
_TORCH = {"softmax": "torch.softmax({0}, -1)", "sigmoid": "torch.sigmoid", "pow": "torch.pow"}
_TORCH |= {"expm": "torch.linalg.matrix_exp", "logabs": "torch.log(torch.abs({0}))"}
_TORCH |= {"larger": "torch.heaviside({0}, torch.tensor({1}))"}
_TORCH_AT_MAX = """def at_max(z, axis=None):
    e = z == (z.max() if axis is None else z.amax(axis, keepdim=True))
    return e / (e.sum() if axis is None else e.sum(axis, keepdim=True))
"""
_MATLAB_SOFTMAX = """function s = softmax(z)
  d = 2 - (size(z, 2) == 1);
  e = exp(z - max(z, [], d));
  s = e ./ sum(e, d);
end
"""
_JULIA_SOFTMAX = """function softmax(z)
    d = ndims(z)
    e = exp.(z .- maximum(z; dims=d))
    return e ./ sum(e; dims=d)
end
"""


def _numpy(name: str, prefix: str, header: str, expm: str) -> Dialect:
    """A library that has NumPy's functions."""
    given = {"softmax": _SOFTMAX, "sigmoid": _SIGMOID, "at_max": _AT_MAX}
    helpers = {k: v.format(prefix[:-1]) for k, v in given.items()}
    calls = _python(prefix, logabs=f"{prefix}log({prefix}abs({{0}}))", expm=expm)
    if name == "numpy":
        calls |= {f"{k}m": f"scipy.linalg.{k}m" for k in ("sin", "cos", "log", "sqrt")}
        calls["polar"] = "scipy.linalg.polar({0})[0]"
    return Dialect(name, calls, helpers, header=header)


def _matrices(name: str, calls: dict[str, str], helpers: dict[str, str], header: str = "") -> Dialect:
    """A language of matrices."""
    return Dialect(name, calls, helpers, " * ", " .* ", " ./ ", " .^ ", "'", header, True, name == "julia")


DIALECTS = {
    "numpy": _numpy("numpy", "np.", "import numpy as np", "scipy.linalg.expm"),
    "jax": _numpy("jax", "jnp.", "import jax.numpy as jnp", "jax.scipy.linalg.expm"),
    "torch": Dialect("torch", _python("torch.") | _TORCH, {"at_max": _TORCH_AT_MAX}, header="import torch"),
    "text": Dialect("text", _TEXT),
    "matlab": _matrices(
        "matlab",
        _MATLAB,
        {"softmax": _MATLAB_SOFTMAX, "sigmoid": "function s = sigmoid(z)\n  s = 1 ./ (1 + exp(-z));\nend\n"},
    ),
    "julia": _matrices(
        "julia",
        _JULIA,
        {"softmax": _JULIA_SOFTMAX, "sigmoid": "sigmoid(z) = 1 / (1 + exp(-z))\n"},
        "using LinearAlgebra, Statistics",
    ),
}
_EVERYWHERE = {*_SAME.split(), "sigmoid", "pow"} - {"mean"}
"""Functions of numbers, at every index."""


class CodeWriter:
    """Writes trees as expressions of a dialect; `names` are parts that have a name."""

    def __init__(self, dialect: Dialect, names: dict[int, str], values: dict[str, Any] | None = None) -> None:
        self.dialect, self.names, self.values = dialect, names, values or {}
        self.used: set[str] = set()

    def expression(self, root: Tree, top: bool = False) -> str:
        """A tree as one expression, without recursion; `top`: a part is written out even if it has a name."""
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

    def call(self, name: str, *args: str, dotted: bool = False) -> Code:
        """A function call."""
        known = self.dialect.calls.get(name) or (name if name in self.dialect.helpers else None)
        if known is None and self.dialect.name == "numpy":
            known = _ufunc(name)
        if known is not None and known.split("(")[0] in self.dialect.helpers:
            self.used.add(known.split("(")[0])
        if known is None:
            elsewhere = "code('numpy') has the most functions"
            raise ExpressionError(f"{name} has no counterpart in {self.dialect.name}; {elsewhere}")
        for module in ("scipy.linalg", "scipy.special", "jax.scipy.linalg"):
            self.used |= {f"import {module}"} if known.startswith(f"{module}.") else set()
        if "{0}" in known:
            return known.format(*args), TIMES if " / " in known else ATOM
        return f"{known}{'.' if dotted and self.dialect.dotted else ''}({', '.join(args)})", ATOM

    def _written(self, t: Tree, done: dict[int, Code]) -> Code:
        d = self.dialect
        kids = [done[x.id] for x in t.kids]
        match t.kind:
            case "number":
                return _number(t.value)
            case "symbol":
                return _listed(self.values[t.value]) if t.value in self.values else t.value, ATOM
            case "zeros" | "ones" | "identity" if d.name == "text":
                lengths = t.value if t.kind == "zeros" else (t.value,)
                found = _listed(np.zeros(lengths) if t.kind == "zeros" else np.ones(lengths))
                return f"diag({found})" if t.kind == "identity" else found, ATOM
            case "zeros":
                several = [str(n) for n in t.value]
                shape = ", ".join(several) if t.rank == 1 or d.columns else f"({', '.join(several)})"
                return self.call("zeros", *([*several, "1"][:2] if d.name == "matlab" else [shape]))
            case "ones":
                return self.call("ones", str(t.value))
            case "identity":
                return self.call("eye", str(t.value))
            case "commutation":
                return self._commutation(*t.value)
            case "transpose":
                if t.rank == 1 and not d.columns:
                    return kids[0]
                return self._suffixed("turned", kids[0], d.turned)
            case "inverse" | "norm":
                return self.call(t.kind, kids[0][0] if not d.columns else _within(kids[0], ATOM))
            case "matrix power":
                if d.name == "text":
                    return d.matmul.join([_within(kids[0], ATOM)] * t.value), TIMES
                return self.call("power", kids[0][0], str(t.value))
            case "power":
                raised = d.raised if t.rank or not d.columns else "^"
                return f"{_within(kids[0], ATOM)}{raised}{_exponent(t.value)}", POWER
            case "call":
                return self._call(t, self._terms(t, done) if len(kids) > 1 else kids)
            case "chain":
                return self._chain(t.kids, done)
            case "hadamard":
                return d.times.join([_within(k, TIMES if i == 0 else POWER) for i, k in enumerate(kids)]), TIMES
            case "quotient":
                return f"{_within(kids[0], TIMES)}{d.over}{_within(kids[1], POWER)}", TIMES
            case "kronecker":
                upright = [x.rank == 1 and not x.row and not d.columns for x in t.kids]
                columns = [f"{_within(k, ATOM)}[:, None]" if u else k[0] for k, u in zip(kids, upright, strict=True)]
                return self.call("kron", *columns)
            case "larger":
                kids = self._terms(t, done)
                difference = kids[0][0] if kids[1][0] == "0" else f"{kids[0][0]} - {_within(kids[1], TIMES)}"
                return self.call("larger", difference, "0.5")
            case _:
                return self._sum(t, self._terms(t, done))

    def _terms(self, t: Tree, done: dict[int, Code]) -> list[Code]:
        """The terms of a sum; numbers that are the same at every index are left to broadcasting."""
        found: list[Code] = [done[x.id] for x in t.kids]
        numbers = [repeated(x) for x in t.kids]
        if self.dialect.dotted or not any([x.rank and ks is None for x, ks in zip(t.kids, numbers, strict=True)]):
            return found
        for k, ks in enumerate(numbers):
            if ks is not None and t.kids[k].id not in self.names:
                found[k] = self._chain(ks, done) if ks else ("1", ATOM)
        return found

    def _suffixed(self, name: str, code: Code, suffix: str) -> Code:
        """A method, or a function where the language has none."""
        if name in self.dialect.calls:
            return self.call(name, code[0])
        return f"{_within(code, ATOM)}{suffix}", ATOM

    def _sum(self, t: Tree, kids: list[Code]) -> Code:
        text = ""
        for k, (sign, part) in enumerate(zip(t.value, kids, strict=True)):
            mark = ("-" if sign < 0 else "") if k == 0 else " - " if sign < 0 else " + "
            text += mark + _within(part, TIMES)
        return text, SUM

    def _commutation(self, n: int, m: int) -> Code:
        if self.dialect.name == "text":
            eye = f"reshape(diag({_listed(np.ones(n * m))}), [{n}, {m}, {n * m}])"
            return f"reshape(swapaxes({eye}, 0, 1), [{n * m}, {n * m}])", ATOM
        eye = self.call("eye", str(n * m))[0]
        if self.dialect.columns:
            raise ExpressionError(f"the commutation matrix has no counterpart in {self.dialect.name}")
        return f"{eye}.reshape({n}, {m}, {n * m}).swapaxes(0, 1).reshape({n * m}, {n * m})", ATOM

    def _call(self, t: Tree, kids: list[Code]) -> Code:
        name = t.value[0] if isinstance(t.value, tuple) else t.value
        if name == "vec" and not self.dialect.columns:
            return self._suffixed("vec", kids[0], ".reshape(-1)")
        bracketed = self.dialect.columns and name in ("Σ", "mean")
        parts = [_within(k, ATOM) if bracketed else k[0] for k in kids]
        return self.call(name, *parts, dotted=name in _EVERYWHERE and t.rank > 0)

    def _chain(self, kids: Sequence[Tree], done: dict[int, Code]) -> Code:
        """Numbers times a product of matrices and vectors; a column before a row is an outer product."""
        d = self.dialect
        numbers = [_within(done[x.id], POWER) for x in kids if x.rank == 0]
        arrays = [x for x in kids if x.rank]
        if d.columns:
            return " * ".join([*numbers, *[_within(done[x.id], POWER) for x in arrays]]), TIMES
        lead = d.times.join(numbers)
        if not arrays:
            return lead, TIMES
        meet = [k for k in range(1, len(arrays)) if arrays[k].row and arrays[k - 1].rank == 1 and not arrays[k - 1].row]
        cut = meet[0] if meet else 0
        if cut:
            product = self.call("outer", self._product(arrays[:cut], done)[0], self._product(arrays[cut:], done)[0])
        else:
            product = self._product(arrays, done)
        return (f"{lead}{d.times}{_within(product, TIMES)}", TIMES) if numbers else product

    def _product(self, arrays: Sequence[Tree], done: dict[int, Code]) -> Code:
        """A @ B @ x, a column on the right first: matrices are not multiplied where vectors do."""
        if len(arrays) == 1:
            return done[arrays[0].id]
        if arrays[-1].kind == "ones" and arrays[-2].rank == 2:
            return self._suffixed("rows", self._product(arrays[:-1], done), ".sum(1)")
        if arrays[0].row and arrays[0].kids[0].kind == "ones" and arrays[1].rank == 2:
            return self._suffixed("columns", self._product(arrays[1:], done), ".sum(0)")
        if arrays[-1].rank == 1 and not arrays[-1].row and not arrays[0].row and len(arrays) > 2:
            right = self._product(arrays[1:], done)
            return f"{_within(done[arrays[0].id], POWER)}{self.dialect.matmul}{_within(right, POWER)}", TIMES
        return self.dialect.matmul.join([_within(done[x.id], POWER) for x in arrays]), TIMES


def _listed(a: Any) -> str:
    """A small array of whole numbers, written out."""
    if a.size > LISTED:
        raise ExpressionError(f"an array of {a.size} numbers is too long for a text; code('numpy') has it")
    return str(a.astype(int).tolist())


def _index(rows: str) -> Any:
    """What stands in brackets: a place, places, or a slice."""
    if ":" in rows:
        return slice(*[int(k) if k else None for k in rows.split(":")])
    return json.loads(rows)


def _ufunc(name: str) -> str | None:
    """A function of numbers that NumPy or SciPy has under this name."""
    for module, prefix in ((np, "np"), (scipy.special, "scipy.special")):
        if isinstance(getattr(module, name, None), np.ufunc):
            return f"{prefix}.{name}"
    return None


def _within(code: Code, level: int) -> str:
    return code[0] if code[1] >= level else f"({code[0]})"


def _number(k: Any) -> Code:
    if isinstance(k, Fraction) and k.denominator & (k.denominator - 1):
        return f"{k.numerator} / {k.denominator}", TIMES
    value = float(k)
    return (str(int(value)) if value.is_integer() else repr(value)), ATOM if value >= 0 else SUM


def _exponent(e: Fraction) -> str:
    return str(e.numerator) if e.denominator == 1 and e > 0 else f"({float(e)!r})"


@dataclass
class Definitions:
    """What a form is made of beside its arguments: named parts, rows of identities, eigenvectors."""

    where: Sequence[tuple[str, Tree]]
    chosen: dict[str, tuple[int, str]]
    spectra: Sequence[tuple[str, str, Tree]]


def function_code(
    target: str, name: str, arguments: Sequence[str], heads: Sequence[Tree], given: Definitions, formula: str
) -> str:
    """A function of its own in a language: imports, helpers, named parts, the result."""
    if target not in DIALECTS:
        known = ", ".join([repr(k) for k in (*DIALECTS, "latex")])
        raise ExpressionError(f"code({target!r}): the targets are {known}")
    dialect = DIALECTS[target]
    if target == "text":
        return _text(dialect, arguments, heads, given)
    writer = CodeWriter(dialect, {t.id: part for part, t in given.where})
    if dialect.columns and (given.chosen or given.spectra):
        raise ExpressionError(f"slices and eigenvectors are not written in {target}; code('numpy') has them")
    if target == "torch" and any([rows.endswith(":-1") for _, rows in given.chosen.values()]):
        raise ExpressionError("slices that run backwards are not written in torch; code('numpy') has them")
    body: list[str] = []
    for part, (n, rows) in given.chosen.items():
        rows = f"jnp.array({rows})" if target == "jax" and rows.startswith("[") else rows
        body.append(f"{part} = {writer.call('eye', str(n))[0]}[{rows}]")
    body += [f"{a}, {b} = {writer.call('eigh', writer.expression(t))[0]}" for a, b, t in given.spectra]
    body += [f"{part} = {writer.expression(t, top=True)}" for part, t in given.where]
    results = [writer.expression(t) for t in heads]
    helpers = [dialect.helpers[u] for u in sorted(writer.used) if u in dialect.helpers]
    if dialect.columns:
        return _matrix_language(target, name, arguments, body, results, helpers, formula)
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    doc = f'"""{formula}"""' if "\n" not in formula else f'"""{formula}\n"""'.replace("\n", "\n    ")
    lines = [f"    {line}" for line in (doc, *body, f"return {result}")]
    imports = [dialect.header, *sorted([u for u in writer.used if u.startswith("import")])]
    return "\n".join(
        [*imports, "", "", *[f"{h}\n" for h in helpers], f"def {name}({', '.join(arguments)}):", *lines, ""]
    )


def _matrix_language(
    target: str,
    name: str,
    arguments: Sequence[str],
    body: list[str],
    results: list[str],
    helpers: list[str],
    formula: str,
) -> str:
    mark, given = "%" if target == "matlab" else "#", ", ".join(arguments)
    shown = [f"{mark} {line}" for line in formula.splitlines()]
    if target == "julia":
        lines = [f"    {line}" for line in (*body, f"return {', '.join(results)}")]
        head = [DIALECTS["julia"].header, "", *helpers, *shown]
        return "\n".join([*head, f"function {name}({given})", *lines, "end", ""])
    outputs = [f"g{k + 1}" for k in range(len(results))]
    steps = [*body, *[f"{g} = {r}" for g, r in zip(outputs, results, strict=True)]]
    lines = [f"  {line}" for line in (*shown, *[f"{step};" for step in steps])]
    return "\n".join([f"function [{', '.join(outputs)}] = {name}({given})", *lines, "end", "", *helpers])


def _text(dialect: Dialect, arguments: Sequence[str], heads: Sequence[Tree], given: Definitions) -> str:
    """A text for `rz.function`: names for parts are put in their places, and matrices that select rows are listed."""
    if given.spectra:
        raise ExpressionError("eigenvectors are not written as text; code('numpy') has them")
    selected = {name: np.eye(n)[_index(rows)] for name, (n, rows) in given.chosen.items()}
    results = [CodeWriter(dialect, {}, selected).expression(t) for t in heads]
    return f"{', '.join(arguments)} -> {', '.join(results)}"
