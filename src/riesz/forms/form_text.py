"""Expressions as text, in Unicode and LaTeX, with names for parts that occur more than once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ..show.notation import Notation
from .expression_trees import Tree, repeated

SUM, TIMES, CHAIN, ATOM = range(4)
LEVELS = {"sum": SUM, "hadamard": TIMES, "quotient": TIMES, "kronecker": TIMES, "chain": CHAIN}
_CLOSE = re.compile(r"[^\W\d_][⁻¹ᵀ²³⁴⁵]*|\(.*\)[⁻¹ᵀ²³]*|[\d.]+|‖.*‖[⁻¹²³⁴]*|𝟏ᵀ?|½")
"""Texts that stand side by side without a space between them."""
_LATEX_CALLS = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "det", "max", "min"}
_SHOWN = {"sigmoid": "σ", "max0": "colmax", "max1": "rowmax", "min0": "colmin", "min1": "rowmin"}
_SHOWN |= {"maximum": "max", "minimum": "min"}


class FormText:
    """Writes trees in a notation; `names` are parts that have a name."""

    def __init__(self, notation: Notation, names: dict[int, str] | None = None) -> None:
        self.notation, self.names = notation, names or {}

    def text(self, root: Tree, top: bool = False) -> str:
        """A tree as text, without recursion; `top`: a part is written out even if it has a name."""
        done: dict[int, str] = {}
        self._root = root.id
        stack: list[tuple[Tree, bool]] = [(root, False)]
        while stack:
            t, ready = stack.pop()
            if t.id in done:
                continue
            if t.id in self.names and not (top and t is root):
                done[t.id] = self.notation.variable(self.names[t.id])
            elif ready:
                done[t.id] = self._written(t, done)
            else:
                stack += [(t, True), *[(x, False) for x in t.kids]]
        return done[root.id]

    def _within(self, t: Tree, level: int, done: dict[int, str]) -> str:
        named = t.id in self.names
        low = not named and LEVELS.get(t.kind, ATOM) < level
        if (
            t.kind == "number"
            and level > SUM
            and (t.value < 0 or (isinstance(t.value, Fraction) and t.value.denominator > 1))
        ):
            low = level > TIMES and t.value != Fraction(1, 2)
        return self.notation.parens(done[t.id]) if low else done[t.id]

    def _written(self, t: Tree, done: dict[int, str]) -> str:
        n = self.notation
        inside = lambda x, level=SUM: self._within(x, level, done)  # noqa: E731
        match t.kind:
            case "number":
                return self._number(t.value)
            case "zeros":
                return "0"
            case "symbol":
                return n.variable(t.value)
            case "ones":
                return "\\mathbf{1}" if n.latex else "𝟏"
            case "identity":
                return "I"
            case "commutation":
                return "K"
            case "transpose" if t.kids[0].kind == "inverse" and t.kids[0].id not in self.names:
                base = inside(t.kids[0].kids[0], ATOM)
                return n.sup(base, "-T") if n.latex else f"{base}⁻ᵀ"
            case "transpose":
                base = inside(t.kids[0], ATOM)
                base = self._bracketed(t.kids[0], base)
                return n.sup(base, "T") if n.latex else f"{base}ᵀ"
            case "inverse" | "matrix power" | "power":
                exponent = "-1" if t.kind == "inverse" else str(t.value)
                if t.kind == "power" and t.value.denominator > 1000:
                    exponent = n.number(float(t.value))
                base = self._bracketed(t.kids[0], inside(t.kids[0], ATOM))
                if t.kind == "power" and t.rank == 2:  # at every index
                    return n.sup(base, f"\\circ {exponent}") if n.latex else f"{base}^(∘{exponent})"
                return n.sup(base, exponent if "/" not in exponent or n.latex else f"({exponent})")
            case "norm":
                return f"\\left\\|{inside(t.kids[0])}\\right\\|" if n.latex else f"‖{inside(t.kids[0])}‖"
            case "call":
                return self._call(t, [self._term(x, done, SUM) if len(t.kids) > 1 else done[x.id] for x in t.kids])
            case "chain":
                return self._chain([self._link(t, x, done) for x in t.kids])
            case "hadamard":
                return f" {n['∘']} ".join([inside(x, CHAIN) for x in t.kids])
            case "kronecker":
                return f" {n['⊗']} ".join([inside(x, CHAIN) for x in t.kids])
            case "quotient":
                if n.latex:
                    return f"\\frac{{{inside(t.kids[0])}}}{{{inside(t.kids[1])}}}"
                return f"{inside(t.kids[0], CHAIN)} / {inside(t.kids[1], ATOM)}"
            case "larger":
                return f"[{self._term(t.kids[0], done, SUM)} > {self._term(t.kids[1], done, SUM)}]"
            case _:  # a sum
                # at the top, 𝟏 says that this is a vector
                alike = t.id == self._root and all([repeated(x) is not None for x in t.kids])
                return self._sum(t.value, [inside(x, TIMES) if alike else self._term(x, done) for x in t.kids])

    def _term(self, t: Tree, done: dict[int, str], level: int = TIMES) -> str:
        """A term of a sum; what is the same at every index of a vector is written as a number."""
        numbers = repeated(t) if t.rank == 1 and t.id not in self.names else None
        if numbers:
            return self._chain([self._link(t, x, done) for x in numbers])
        return "1" if numbers is not None else self._within(t, level, done)

    def _bracketed(self, kid: Tree, text: str) -> str:
        marked = kid.kind in ("power", "transpose", "inverse", "matrix power") and kid.id not in self.names
        return self.notation.parens(text) if marked else text

    def _link(self, chain: Tree, t: Tree, done: dict[int, str]) -> str:
        """A factor of a product side by side; a number that is itself such a product keeps its brackets."""
        loose = t.rank == 0 and t.kind == "chain" and chain.rank > 0 and t.id not in self.names
        return self.notation.parens(done[t.id]) if loose else self._within(t, ATOM, done)

    def _chain(self, parts: list[str]) -> str:
        if self.notation.latex:
            return " ".join(parts)
        text = parts[0]
        for before, after in pairwise(parts):
            close = _CLOSE.fullmatch(before) and _CLOSE.fullmatch(after) and after[0] not in "0123456789"
            text += after if close else f" {after}"
        return text

    def _sum(self, signs: Sequence[int], parts: Iterable[str]) -> str:
        minus, text = self.notation["−"], ""
        for k, (sign, part) in enumerate(zip(signs, parts, strict=True)):
            mark = (f"{minus}" if sign < 0 else "") if k == 0 else f" {minus} " if sign < 0 else " + "
            text += mark + part
        return text

    def _call(self, t: Tree, parts: list[str]) -> str:
        n = self.notation
        name = t.value[0] if isinstance(t.value, tuple) else t.value
        if name == "sqrt" and n.latex:
            return f"\\sqrt{{{parts[0]}}}"
        if name in ("abs", "logabs"):
            inside = f"\\left|{parts[0]}\\right|" if n.latex else f"|{parts[0]}|"
            return inside if name == "abs" else f"{n['log']} {inside}" if not n.latex else f"\\log {inside}"
        if name.startswith("at "):  # [x = max(x)]
            peak = self._call(Tree(-1, "call", t.kids, name[3:], t.rank, False), parts)
            return f"[{parts[0]} = {peak}]"
        shown = _SHOWN.get(name, name)
        if n.latex:
            word = "\\sigma" if shown == "σ" else "\\textstyle\\sum" if shown == "Σ" else f"\\{shown}"
            known = shown in _LATEX_CALLS or shown in "σΣ"
            shown = (
                word
                if known
                else f"\\operatorname{{{n.name(shown).removeprefix(chr(92) + 'mathrm{').removesuffix('}')}}}"
            )
        return f"{shown}{n.parens(', '.join(parts))}"

    def _number(self, k: Any) -> str:
        n = self.notation
        if isinstance(k, Fraction) and k.denominator > 1 and k.denominator <= 64:
            top, bottom = n.number(k.numerator), n.number(k.denominator)
            return f"\\tfrac{{{top}}}{{{bottom}}}" if n.latex else "½" if k == Fraction(1, 2) else f"{top}/{bottom}"
        return n.number(k)


def shared_parts(roots: Sequence[Tree], taken: Iterable[str], given: dict[int, str]) -> list[tuple[str, Tree]]:
    """Names for the parts of trees that occur more than once and are worth it, parts of parts first."""
    used = {*taken, *given.values()}
    free = [x for x in "esuvzpqrghkESUVZPQRGHK" if x not in used]
    references: dict[int, int] = {}
    order, seen = list[Tree](), set[int]()
    stack = [(t, False) for t in roots]
    for t in roots:
        references[t.id] = references.get(t.id, 0) + 1
    while stack:
        t, ready = stack.pop()
        if ready:
            order.append(t)
        elif t.id not in seen:
            seen.add(t.id)
            stack.append((t, True))
            for x in t.kids:
                references[x.id] = references.get(x.id, 0) + 1
                stack.append((x, False))
    named: dict[int, str] = {}
    found: list[tuple[str, Tree]] = []
    size: dict[int, int] = {}
    for t in order:
        weight = t.weight - sum([x.weight for x in t.kids]) + sum([1 if x.id in named else size[x.id] for x in t.kids])
        size[t.id], k = weight, references[t.id]
        if t.row or (t.kind == "transpose" and t.rank == 1):
            continue
        if k > 1 and weight > 2 and k * (weight - 1) - weight - 1 >= 1 and t.kind != "number":
            name = given.get(t.id) or next((x for x in free if x.isupper() == (t.rank == 2)), None)
            name = name or f"e{len(found)}"
            free = [x for x in free if x != name]
            named[t.id] = name
            found.append((name, t))
    return found
