"""Expressions as code that a person would keep: one short function in NumPy, JAX, PyTorch, Julia or MATLAB, or a text
that `rz.function` reads."""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..errors import ExpressionError
from .exact_numbers import TIES
from .expression_trees import Tree, repeated
from .form_text import written
from .languages.dialect import Dialect
from .languages.dialects import DIALECTS, EVERY_INDEX
from .languages.matrix_languages import decomposed, function_text, spelled, unit_rows
from .selections import Selected

SUM, TIMES, POWER, ATOM = range(4)
LISTED = 400
"""Arrays of up to this many numbers are written out in texts."""
RESERVED = {"softmax", "sigmoid", "at_max", "np", "jnp", "jax", "torch", "scipy", *keyword.kwlist}
"""Names that code uses itself."""
Code = tuple[str, int]
OPENED, NUMBERED, CLOSED = "\ue000", "\ue001", "\ue002"
"""Around a part of code whose place is marked: OPENED, the number of its tree, NUMBERED, the code, CLOSED."""


class CodeWriter:
    """Writes trees as expressions of a dialect; `names` are parts that have a name. With `ids` parts are marked."""

    def __init__(
        self, dialect: Dialect, names: dict[int, str], values: dict[str, Any] | None = None, ids: bool = False
    ) -> None:
        self.dialect, self.names, self.values, self.ids = dialect, names, values or {}, ids
        self.used: set[str] = set()
        self.spelling: dict[str, str] = {}  # of names that the language does not allow
        self.like = ""  # an argument that has the type of the result

    def expression(self, root: Tree, top: bool = False) -> str:
        """A tree as one expression; `top`: a part is written out even if it has a name."""
        named = lambda t: self._marked(t, (self.spelled(self.names[t.id]), ATOM))  # noqa: E731
        return written(root, self.names, top, named, lambda t, done: self._marked(t, self._written(t, done)))[0]

    def _marked(self, t: Tree, code: Code) -> Code:
        if not self.ids or t.kind == "number":
            return code
        return f"{OPENED}{t.id}{NUMBERED}{code[0]}{CLOSED}", code[1]

    def spelled(self, name: str) -> str:
        """A name as the language has it."""
        return self.spelling.get(name, name)

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
        for module in ("scipy.linalg", "scipy.special", "jax.scipy.linalg", "jax.scipy.special"):
            self.used |= {f"import {module}"} if known.startswith(f"{module}.") else set()
        if "{0}" in known:
            return known.format(*args, like=self.like), TIMES if " / " in known else ATOM
        return f"{known}{'.' if dotted and self.dialect.dotted else ''}({', '.join(args)})", ATOM

    def _written(self, t: Tree, done: dict[int, Code]) -> Code:
        d = self.dialect
        kids = [done[x.id] for x in t.kids]
        match t.kind:
            case "number":
                return _number(t.value)
            case "symbol":
                return _listed(self.values[t.value]) if t.value in self.values else self.spelled(t.value), ATOM
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
                    base = self.call("inverse", kids[0][0])[0] if t.value < 0 else _within(kids[0], ATOM)
                    return d.matmul.join([base] * abs(t.value)), TIMES
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
                if d.name == "torch":  # torch.kron refuses views that are not contiguous
                    plain = [x.kind == "symbol" or x.id in self.names for x in t.kids]
                    columns = [c if p else f"({c}).contiguous()" for c, p in zip(columns, plain, strict=True)]
                found = columns[0], ATOM
                for column in columns[1:]:
                    found = self.call("kron", found[0], column)
                return found
            case "condition":
                kids = self._terms(t, done)
                none = t.kids[1].kind == "zeros" or kids[1][0] == "0"
                difference = kids[0][0] if none else f"{kids[0][0]} - {_within(kids[1], TIMES)}"
                return self.call("step", difference, TIES[t.value])
            case "entry":
                places = ", ".join([str(k + d.columns) for k in t.value])
                if "entry" in d.helpers and not (t.kids[0].kind == "symbol" or t.kids[0].id in self.names):
                    return self.call("entry", kids[0][0], places)
                return f"{_within(kids[0], ATOM)}{d.entry.format(places)}", ATOM
            case "entries":
                return self._entries(t, kids)
            case "equal":
                one, other = [_within(k, TIMES) for k in self._terms(t, done)]
                sign = " .== " if d.columns else " == "
                same = f"{one}{sign}{other}"
                return (f"where({same}, 1, 0)", ATOM) if d.name == "text" else (f"1 * ({same})", TIMES)
            case _:
                return self._sum(t, self._terms(t, done))

    def _entries(self, t: Tree, kids: list[Code]) -> Code:
        """np.einsum, as a matrix where it is a map."""
        labels, out, rows, shape = t.value
        if self.dialect.columns:
            raise ExpressionError(f"sums over indices have no counterpart in {self.dialect.name}")
        every = sorted({k for ls in labels for k in ls})
        letters = dict(zip(every, "ijklmnpqrst", strict=False))
        names = [",".join(["".join([letters[k] for k in ls]) for ls in labels]), "".join([letters[k] for k in out])]
        found = self.call("einsum", f'"{"->".join(names)}"', *[k[0] for k in kids])[0]
        if not rows:
            return found, ATOM
        size = f"{math.prod(shape[:rows])}, {math.prod(shape[rows:])}"
        return (f"reshape({found}, [{size}])" if self.dialect.name == "text" else f"{found}.reshape({size})"), ATOM

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
        if self.dialect.columns:
            return self.call("commutation", str(n), str(m))
        eye = self.call("eye", str(n * m))[0]
        return f"{eye}.reshape({n}, {m}, {n * m}).swapaxes(0, 1).reshape({n * m}, {n * m})", ATOM

    def _call(self, t: Tree, kids: list[Code]) -> Code:
        name = t.value[0] if isinstance(t.value, tuple) else t.value
        if name == "reshape" and not self.dialect.columns:
            shape = ", ".join([k[0] for k in kids[1:]])
            if self.dialect.name == "text":
                return f"reshape({kids[0][0]}, [{shape}])", ATOM
            return f"{_within(kids[0], ATOM)}.reshape({shape})", ATOM
        if name == "vec" and not self.dialect.columns:
            return self._suffixed("vec", kids[0], ".reshape(-1)")
        bracketed = self.dialect.columns and name in ("Σ", "mean")
        parts = [_within(k, ATOM) if bracketed else k[0] for k in kids]
        return self.call(name, *parts, dotted=name in EVERY_INDEX and t.rank > 0)

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
        if cut and not any([x.row for x in arrays[:cut]]) and not arrays[-1].row and arrays[-1].rank == 1:
            number, column = [_within(self._product(x, done), POWER) for x in (arrays[cut:], arrays[:cut])]
            product = f"{number}{d.times}{column}", TIMES  # v (wᵀx)
        elif cut:
            product = self.call("outer", self._product(arrays[:cut], done)[0], self._product(arrays[cut:], done)[0])
        else:
            product = self._product(arrays, done)
        return (f"{lead}{d.times}{_within(product, TIMES)}", TIMES) if numbers else product

    def _product(self, arrays: Sequence[Tree], done: dict[int, Code]) -> Code:
        """A @ B @ x, a column on the right first: matrices are not multiplied where vectors do."""
        if len(arrays) == 1:
            return done[arrays[0].id]
        if arrays[-1].kind == "ones" and arrays[-2].rank == 2:
            found = self._suffixed("rows", done[arrays[-2].id], ".sum(1)")
            for x in reversed(arrays[:-2]):
                found = f"{_within(done[x.id], POWER)}{self.dialect.matmul}{_within(found, POWER)}", TIMES
            return found
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
    """What stands in brackets: a place, places, or a slice; nothing for all."""
    if ":" in rows or not rows:
        return slice(*[int(k) if k else None for k in rows.split(":")])
    return json.loads(rows)


def _ufunc(name: str) -> str | None:
    """A function of numbers that NumPy or SciPy has under this name."""
    if isinstance(getattr(np, name, None), np.ufunc):
        return f"np.{name}"
    import scipy.special as special  # pyright: ignore[reportMissingTypeStubs]

    return f"scipy.special.{name}" if isinstance(getattr(special, name, None), np.ufunc) else None


def _within(code: Code, level: int) -> str:
    return code[0] if code[1] >= level else f"({code[0]})"


def _number(k: Any) -> Code:
    if isinstance(k, Fraction) and k.denominator & (k.denominator - 1):
        return f"{k.numerator} / {k.denominator}", TIMES
    value = float(k)
    return (str(int(value)) if value.is_integer() else repr(value)), ATOM if value >= 0 else SUM


def _exponent(e: Fraction) -> str:
    return str(e.numerator) if e.denominator == 1 and e > 0 else f"({float(e)!r})"


class Decomposition(NamedTuple):
    """A matrix and the names of its parts: eigenvalues and eigenvectors ("eigh"), "svd", "qr"."""

    kind: str
    names: tuple[str, ...]
    matrix: Tree


@dataclass
class Definitions:
    """What a form is made of beside its arguments: named parts, rows of identities, eigenvectors."""

    where: Sequence[tuple[str, Tree]]
    chosen: dict[str, Selected]
    decompositions: Sequence[Decomposition]
    places: dict[str, Any]  # index arrays by name


def function_code(
    target: str,
    name: str,
    arguments: Sequence[str],
    heads: Sequence[Tree],
    given: Definitions,
    formula: str,
    ids: bool = False,
) -> str:
    """A function of its own in a language: imports, helpers, named parts, the result; with `ids`, parts are marked."""
    if target not in DIALECTS:
        known = ", ".join([repr(k) for k in (*DIALECTS, "latex")])
        raise ExpressionError(f"code({target!r}): the targets are {known}")
    dialect = DIALECTS[target]
    if target == "text":
        return _text(dialect, arguments, heads, given, ids)
    writer = CodeWriter(dialect, {t.id: part for part, t in given.where}, ids=ids)
    if target == "torch" and any([r.endswith(":-1") for selected in given.chosen.values() for _, r in selected.parts]):
        raise ExpressionError("slices that run backwards are not written in torch; code('numpy') has them")
    if dialect.columns:
        parts = [*given.chosen, *[x for d in given.decompositions for x in d.names], *[part for part, _ in given.where]]
        writer.spelling = spelled(dialect, [name, *arguments, *parts])
    say, writer.like = writer.spelled, arguments[0]
    body: list[str] = []
    for part, (n, rows) in given.chosen.items():
        body.append(f"{say(part)} = {_signed([(k, _rows(writer, n, r)) for k, r in rows])}")
    for kind, names, matrix in given.decompositions:
        shown = writer.expression(matrix)
        if dialect.columns:
            body += decomposed(dialect, kind, [say(x) for x in names], shown)
        else:
            more = ", full_matrices=False" if kind == "svd" else ""
            body.append(f"{', '.join(names)} = {writer.call(kind, shown + more)[0]}")
            body += [f"{names[2]} = {names[2]}.T"] if kind == "svd" else []
    body += [f"{say(part)} = {writer.expression(t, top=True)}" for part, t in given.where]
    results = [writer.expression(t) for t in heads]
    helpers = [dialect.helpers[u] for u in sorted(writer.used) if u in dialect.helpers]
    if dialect.columns:
        text = function_text(dialect, name, [say(a) for a in arguments], body, results, formula)
        around = [dialect.header, *helpers, text] if target == "julia" else [text, *helpers]
        return "\n".join(around)
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    doc = f'"""{formula}"""' if "\n" not in formula else f'"""{formula}\n"""'.replace("\n", "\n    ")
    lines = [f"    {line}" for line in (doc, *body, f"return {result}")]
    imports = [dialect.header, *sorted([u for u in writer.used if u.startswith("import")])]
    return "\n".join(
        [*imports, "", "", *[f"{h}\n" for h in helpers], f"def {name}({', '.join(arguments)}):", *lines, ""]
    )


def _rows(writer: CodeWriter, n: int, rows: str) -> str:
    """I_n[rows]."""
    dialect = writer.dialect
    if not rows:
        return writer.call("eye", str(n))[0]
    if dialect.columns:
        writer.used.add("unit_rows")
        return unit_rows(dialect, n, writer.spelled(rows), None if rows.isidentifier() else _index(rows))
    rows = f"jnp.array({rows})" if dialect.name == "jax" and rows.startswith("[") else rows
    return f"{writer.call('eye', str(n))[0]}[{rows}]"


def _signed(parts: Sequence[tuple[int, str]]) -> str:
    """a - 2 * b."""
    text = ""
    for k, part in parts:
        mark = "" if not text and k > 0 else "-" if not text else " + " if k > 0 else " - "
        text += f"{mark}{f'{abs(k)} * ' if abs(k) != 1 else ''}{part}"
    return text


def _text(dialect: Dialect, arguments: Sequence[str], heads: Sequence[Tree], given: Definitions, ids: bool) -> str:
    """A text for `rz.function`: names for parts are put in their places, and matrices that select rows are listed."""
    if given.decompositions:
        raise ExpressionError("eigenvectors are not written as text; code('numpy') has them")
    places = {r: given.places.get(r) for _, parts in given.chosen.values() for _, r in parts if r.isidentifier()}
    selected = {
        name: sum([k * np.eye(n)[places[r] if r in places else _index(r)] for k, r in parts])
        for name, (n, parts) in given.chosen.items()
    }
    results = [CodeWriter(dialect, {}, selected, ids).expression(t) for t in heads]
    return f"{', '.join(arguments)} -> {', '.join(results)}"
