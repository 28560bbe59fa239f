"""LaTeX, as KaTeX and MathJax read it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, ClassVar

from .notation import ATOM, DIGITS, Notation, Piece, Text

_SYMBOLS = """
∘ circ • bullet · cdot ⊗ otimes ⊙ odot ⊛ circledast ⋆ star ∗ ast × times ⊕ oplus ⋄ diamond ⟨ langle ⟩ rangle
Σ Sigma Δ Delta Π Pi π pi ι iota → to ← leftarrow ↦ mapsto ⊸ multimap ∅ emptyset ∈ in ⊆ subseteq ∪ cup
≤ leq ≥ geq ≠ neq ∧ land ∨ lor ¬ lnot … ldots ∞ infty
"""
_WORDS = _SYMBOLS.split()
_COMMANDS = {c: f"\\{word}" + " " * (c in "⟨↦∪¬") for c, word in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_OTHERS = {"−": "-", "ℝ": "\\mathbb{R}", "⟦": "[", "⟧": "]", "ᵀ": "^{T}", "M⁻¹": "M^{-1}"}
_CALLS = {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "det", "max", "min"}


class Latex(Notation):
    """Symbols by their commands; superscripts, fractions and roots in two dimensions; lines in aligned columns."""

    symbols: ClassVar[dict[str, str]] = _COMMANDS | _OTHERS
    prime = "'"
    flat = False
    breadth = 3

    def sup(self, base: str, exponent: str) -> str:
        return f"{_group(base, '^')}^{{{exponent}}}"

    def sub(self, base: str, index: Any) -> str:
        return f"{_group(base, '_')}_{{{index}}}"

    def grouped(self, text: str) -> str:
        return f"{{{text}}}"

    def braces(self, text: str) -> str:
        return f"\\{{{text}\\}}"

    def star(self, text: str) -> str:
        return self.sup(text, "*")

    def turned(self, text: Text) -> str:
        return self.sup(self.within(text, ATOM), "T")

    def inverse_turned(self, text: str) -> str:
        return self.sup(text, "-T")

    def everywhere(self, base: str, exponent: str) -> str:
        return self.sup(base, f"\\circ {exponent}")

    def exponent(self, base: str, index: str, simple: bool) -> str:
        return self.sup(base, index)

    def fixed(self, value: str) -> str:
        return f"K_{{{value}}}"

    def segment(self, size: int) -> str:
        return f"\\mathbf{{{size}}}"

    def ones(self) -> str:
        return "\\mathbf{1}"

    def name(self, word: Any) -> str:
        text = str(word)
        bare = text.rstrip("'*") or text
        shown = _escaped(bare) + "'" * text[len(bare) :].count("'")
        return self.star(shown) if "*" in text[len(bare) :] else shown

    def function(self, word: str) -> str:
        if word in _CALLS:
            return f"\\{word}"
        if word in ("σ", "Σ"):
            return "\\sigma" if word == "σ" else "\\textstyle\\sum"
        bare = self.name(word).removeprefix("\\mathrm{").removesuffix("}")
        return f"\\operatorname{{{bare}}}"

    def words(self, text: str) -> str:
        return f"\\text{{{text}}}"

    def prose(self, text: str) -> str:
        return f"\\text{{{''.join([self._said(c) for c in text])}}}"

    def _said(self, c: str) -> str:
        """A character inside words; signs as formulas."""
        decomposed = unicodedata.decomposition(c).split()
        if decomposed[:1] in (["<super>"], ["<sub>"]):
            plain = "".join([chr(int(code, 16)) for code in decomposed[1:]])
            return f"${'^' if decomposed[0] == '<super>' else '_'}{{{plain.replace('−', '-')}}}$"
        known = self.symbols.get(c) or (_escaped(c) if c in _GREEK else None) or _SAID.get(c)
        return f"${known.strip()}$" if known else _character(c)

    def hole(self) -> str:
        return "\\_"

    def spaced(self, a: str, b: str) -> str:
        return f"{a} \\, {b}"

    def parens(self, text: str) -> str:
        return f"\\left({text}\\right)"

    def norm(self, text: str) -> str:
        return f"\\left\\|{text}\\right\\|"

    def absolute(self, text: str) -> str:
        return f"\\left|{text}\\right|"

    def root(self, text: str) -> str:
        return f"\\sqrt{{{text}}}"

    def fraction(self, above: str, below: str) -> str:
        return f"\\frac{{{above}}}{{{below}}}"

    def small_fraction(self, above: str, below: str) -> str:
        return f"\\tfrac{{{above}}}{{{below}}}"

    def partial(self, above: str, below: Sequence[str]) -> str:
        over, power = "".join([f"\\partial {x}" for x in below]), "^2" if len(below) > 1 else ""
        return f"\\frac{{\\partial{power} {above}}}{{{over}}}"

    def clip(self, text: str, limit: int = 1200) -> str:
        return text if len(text) <= limit else "\\cdots"

    def number(self, k: Any) -> str:
        text = self.digits(k).replace("inf", "\\infty")
        mantissa, _, power = text.partition("e")
        return f"{mantissa}\\mathrm{{e}}{{{int(power)}}}" if power else text.replace("nan", "\\mathrm{nan}")

    def pieces(self, text: str) -> Iterable[Piece]:
        return [(m[0], _seen(m[0]), _OPENED.get(m[1] or m[0], 0)) for m in _TOKEN.finditer(text)]

    def rejoined(self, lines: list[list[str]]) -> list[str]:
        """\\left and \\right must meet in one line: a pair that does not becomes \\bigl and \\bigr."""
        pairs: list[tuple[int, int]] = []  # line and place of what is open
        for i, line in enumerate(lines):
            for k, word in enumerate(line):
                if word.startswith("\\left") and word != "\\leftarrow":
                    pairs.append((i, k))
                elif word.startswith("\\right"):
                    a, b = pairs.pop()
                    if a != i:
                        lines[a][b], line[k] = f"\\bigl{lines[a][b][5:]}", f"\\bigr{word[6:]}"
        return super().rejoined(lines)

    def stacked(self, lines: Sequence[str], indent: int) -> str:
        return "\\begin{aligned} & " + " \\\\ & \\quad ".join(lines) + " \\end{aligned}"

    def lines(self, texts: Sequence[str]) -> str:
        body = " \\\\ ".join(map(self.fold, texts))
        return f"\\begin{{gathered}} {body} \\end{{gathered}}" if len(texts) > 1 else body

    def where(self, body: str, rows: Sequence[str]) -> str:
        return body + (" \\quad \\text{where } " + ",\\; ".join(map(self.fold, rows)) if rows else "")

    def let(self, rows: Sequence[str], parts: Sequence[str]) -> str:
        inner = "(" + ",\\; ".join(parts) + ")" if len(parts) > 1 else self.fold(parts[0])
        lets = "\\begin{aligned} \\textbf{let } & " + " \\\\ & ".join(map(self.fold, rows)) + " \\\\ \\textbf{in } & "
        return f"{lets}{inner} \\end{{aligned}}" if rows else inner

    def explained(self, body: str, rows: Sequence[str]) -> str:
        return self.let(rows, [body])

    def equations(self, rows: Sequence[tuple[str, str]]) -> str:
        inside = " \\\\ ".join([f"{left} &= {right}" for left, right in rows])
        return f"\\begin{{aligned}} {inside} \\end{{aligned}}"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        if len(rows) == len(rows[0]) == 1:
            return self.fold(rows[0][0])
        inside = " \\\\ ".join([" & ".join(row) for row in rows])
        return f"\\begin{{pmatrix}} {inside} \\end{{pmatrix}}"


_CALLED = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater"}
_ESCAPES = {c: f"\\text{name}{{}}" for c, name in _CALLED.items()} | {c: f"\\{c}" for c in "&%#$_{}"}
_LETTERS = re.compile("[\u00c0-\u024f\u0400-\u04ff\u0530-\u058f\u0900-\u10ff\u3040-\u30ff\u4e00-\u9faf\uac00-\ud7af]")
"""Scripts that can be set as they are."""
_GREEK = {c: unicodedata.name(c).split()[-1].replace("LAMDA", "LAMBDA") for c in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"}


def _group(base: str, mark: str) -> str:
    """A text in LaTeX that may get one more subscript or superscript."""
    return f"{{{base}}}" if re.search(rf"(?<!\\)\{mark}|'", base) else base


def _escaped(word: str) -> str:
    """A name in LaTeX: upright and escaped, Greek by its commands, characters that it has not by their numbers."""
    shown: list[str] = []
    for kind, run in groupby(word, lambda c: "Greek" if c in _GREEK else "below" if c in DIGITS else ""):
        text = "".join(run)
        if kind == "Greek":
            names = [_GREEK[c].lower() if c.islower() else _GREEK[c].capitalize() for c in text]
            shown.append("".join([f"{{\\{name}}}" for name in names]))
        else:
            shown.append(f"_{{{''.join([DIGITS[c] for c in text])}}}" if kind else _upright(text))
    return shown[0] if len(shown) == 1 and shown[0][0] != "_" else f"{{{''.join(shown)}}}" if shown else "\\text{''}"


def _upright(text: str) -> str:
    if all([c.isascii() and (c.isalnum() or c == "_") for c in text]):
        return "\\mathrm{" + text.replace("_", "\\_") + "}"
    return f"\\text{{{''.join(map(_character, text))}}}"


def _character(c: str) -> str:
    if " " <= c <= "~":
        return _ESCAPES.get(c, c)
    return c if c.isalpha() and _LETTERS.match(c) else f"U+{ord(c):04X}"


_TOKEN = re.compile(r"(\\(?:left|right|bigl|bigr)(?![a-z]))(?:\\[a-z]+|\\.|.)|\\[a-zA-Z]+|\\.|.", re.DOTALL)
"""A command, a bracket with its command, or a character."""
_NEVER = 1000
_BRACES = {"{": _NEVER, "}": -_NEVER, "\\begin": _NEVER, "\\end": -_NEVER, "\\left": 1, "\\right": -1}
_OPENED = _BRACES | {"(": 1, ")": -1, "[": 1, "]": -1, "\\langle": 1, "\\rangle": -1}
_STYLES = ["mathrm", "text", "operatorname", "begin", "end", "mathbf", "mathbb", "frac", "tfrac"]
_HIDDEN = frozenset([*"{}^_", "\\,", *[f"\\{word}" for word in _STYLES]])


def _seen(word: str) -> int:
    return 0 if word in _HIDDEN else 1


_SAID = {
    "‖": "\\|",
    "∇": "\\nabla",
    "∂": "\\partial",
    "½": "\\tfrac{1}{2}",
    "√": "\\surd",
    "𝟏": "\\mathbf{1}",
    "′": "'",
}

LATEX = Latex()
