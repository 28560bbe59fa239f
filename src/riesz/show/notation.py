"""The two alphabets, Unicode and LaTeX, and the names of products. The printers are written once, in terms of a
Notation."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..spaces.contraction import Labels
from ..spaces.formal_vectors import Formal

SUM, PRODUCT, COMPOSE, POWER, ATOM = range(5)
"""How tightly a text holds together."""

Text = tuple[str, int]

_SUPER = str.maketrans("0123456789-.+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻·⁺")
_SUB = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")
_DIGITS = dict(zip("₀₁₂₃₄₅₆₇₈₉", string.digits, strict=True))


@dataclass(frozen=True)
class Notation:
    """Symbols and the few ways of combining them."""

    latex: bool
    symbols: dict[str, str]

    def __getitem__(self, symbol: str) -> str:
        """A symbol, given in Unicode."""
        return self.symbols.get(symbol, symbol)

    def sup(self, base: str, exponent: str) -> str:
        """base with a superscript."""
        if self.latex:
            return f"{_group(base, '^')}^{{{exponent}}}"
        plain = all([c in "0123456789-" for c in exponent])
        return base + (exponent.translate(_SUPER) if plain else f"^{exponent}")

    def sub(self, base: str, index: Any) -> str:
        """base with a subscript."""
        text = str(index)
        if self.latex:
            return f"{_group(base, '_')}_{{{text}}}"
        digits = text.lstrip("-")
        return base + (text.translate(_SUB) if digits.isascii() and digits.isdigit() else f"_{text}")

    def below(self, base: str, inside: str) -> str:
        """base_{inside}: an expression as a subscript."""
        return self.sub(base, inside if self.latex else f"{{{inside}}}")

    def grouped(self, text: str) -> str:
        """{text} in LaTeX, where it looks the same."""
        return f"{{{text}}}" if self.latex else text

    def braces(self, text: str) -> str:
        """{text}, a set."""
        return f"\\{{{text}\\}}" if self.latex else f"{{{text}}}"

    def star(self, text: str) -> str:
        """text*, an adjoint."""
        return self.sup(text, "*") if self.latex else f"{text}*"

    def turned(self, text: Text) -> str:
        """textᵀ."""
        inside = self.within(text, ATOM)
        return self.sup(inside, "T") if self.latex else f"{inside}ᵀ"

    def exponent(self, base: str, index: str, simple: bool) -> str:
        """base^X for an index set."""
        return self.sup(base, index) if self.latex else f"{base}^{index}" if simple else f"{base}^({index})"

    def name(self, word: Any) -> str:
        """A name, whatever is in it; an ending of primes and stars says derivative and adjoint."""
        text = str(word)
        if not self.latex:
            loose = isinstance(word, str) and (not text or text.isdigit() or _LOOSE.search(text))
            return repr(text) if loose or not text.isprintable() else text
        bare = text.rstrip("'*") or text
        shown = _escaped(bare) + "'" * text[len(bare) :].count("'")
        return self.star(shown) if "*" in text[len(bare) :] else shown

    def variable(self, word: Any) -> str:
        """The name of an argument or array: a letter stands for itself."""
        text = str(word)
        letter = len(text) == 1 and text.isascii() and text.isalpha()
        return text if letter or isinstance(word, int) else self.name(word)

    def operator(self, symbol: str) -> str:
        """A symbol of ours, or the name of somebody's function."""
        return self[symbol] if symbol in LATEX.symbols else self.name(symbol)

    def words(self, text: str) -> str:
        """Words between symbols."""
        return f"\\text{{{text}}}" if self.latex else text

    def hole(self) -> str:
        """Where an argument goes."""
        return "\\_" if self.latex else "_"

    def within(self, text: Text, level: int) -> str:
        """A text as part of something that holds together more tightly."""
        return text[0] if text[1] >= level else self.parens(text[0])

    def spaced(self, a: str, b: str) -> str:
        """Two texts side by side."""
        return f"{a} \\, {b}" if self.latex else f"{a} {b}"

    def parens(self, text: str) -> str:
        """(text)."""
        return f"\\left({text}\\right)" if self.latex else f"({text})"

    def infix(self, parts: Sequence[Text], symbol: str, level: int) -> Text:
        """a ∘ b ∘ c."""
        return f" {self[symbol]} ".join([self.within(p, level) for p in parts]), level

    def listed(self, left: str, parts: Sequence[Text], right: str) -> Text:
        """⟨a, b⟩."""
        return self[left] + ", ".join([p[0] for p in parts]) + self[right], ATOM

    def clip(self, text: str, limit: int = 1200) -> str:
        """A text of bearable length."""
        if len(text) <= limit:
            return text
        return "\\cdots" if self.latex else f"{text[: limit // 2]} … {text[-limit // 4 :]}"

    def number(self, k: Any) -> str:
        """A number, to four digits; what is not whole does not look so."""
        k = float(k)
        text = f"{int(k)}" if k.is_integer() and abs(k) < 1e15 else f"{k:.4g}"
        if text.lstrip("-").isdigit() and float(text) != k:
            text = repr(k)
        text = text.replace("inf", self["∞"])
        if not self.latex:
            return text.replace("-", "−")
        mantissa, _, power = text.partition("e")
        return f"{mantissa}\\mathrm{{e}}{{{int(power)}}}" if power else text.replace("nan", "\\mathrm{nan}")

    def leaf(self, value: Any) -> Text:
        """A leaf of a vector: numbers are written out, small arrays too, large ones by shape."""
        if type(value) is Formal:
            return self.formal(value)
        array = np.asarray(value)
        if array.size and not any(array.strides):  # one number, repeated perhaps
            k = float(array.flat[0])
            return self.number(k), ATOM if k >= 0 else SUM
        if array.ndim == 1 and array.size <= 4:
            return "[" + ", ".join([self.number(v) for v in array]) + "]", ATOM
        inside = self["×"].join(map(str, array.shape))
        return f"{self['⟦']}{inside}{self['⟧']}", ATOM

    def vector(self, leaves: Sequence[Any]) -> Text:
        """A vector by its leaves."""
        if len(leaves) == 1:
            return self.leaf(leaves[0])
        shown = [self.leaf(v) for v in leaves[:6]] + ([("…", ATOM)] if len(leaves) > 6 else [])
        return self.listed("(", shown, ")")

    def formal(self, value: Formal) -> Text:
        """k · (u ⊗ v) + …."""
        if not value.terms:
            return "0", ATOM
        factors = [[self.leaf(f) for f, _ in sorted(t.factors, key=lambda f: f[1])] for t in value.terms[:4]]
        shown = [self._product(t.scale, parts) for t, parts in zip(value.terms, factors, strict=False)]
        shown += [("…", ATOM)] if len(value.terms) > 4 else []
        return shown[0] if len(shown) == 1 else self.infix(shown, "+", SUM)

    def _product(self, scale: Any, factors: list[Text]) -> Text:
        if not factors:
            return self.number(scale), ATOM if float(scale) >= 0 else SUM
        outer = self.infix(factors, "⊗", POWER) if len(factors) > 1 else factors[0]
        if float(scale) == 1.0:
            return outer
        wrapped = self.parens(outer[0]) if len(factors) > 1 else outer[0]
        return f"{self.number(scale)} {self['·']} {wrapped}", PRODUCT


_LOOSE = re.compile(r"[\s,:;(){}\[\]⟨⟩\"\\]")
"""What would be read as part of the text around a name."""
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
    for kind, run in groupby(word, lambda c: "Greek" if c in _GREEK else "below" if c in _DIGITS else ""):
        text = "".join(run)
        if kind == "Greek":
            names = [_GREEK[c].lower() if c.islower() else _GREEK[c].capitalize() for c in text]
            shown.append("".join([f"{{\\{name}}}" for name in names]))
        else:
            shown.append(f"_{{{''.join([_DIGITS[c] for c in text])}}}" if kind else _upright(text))
    return shown[0] if len(shown) == 1 and shown[0][0] != "_" else f"{{{''.join(shown)}}}" if shown else "\\text{''}"


def _upright(text: str) -> str:
    if all([c.isascii() and (c.isalnum() or c == "_") for c in text]):
        return "\\mathrm{" + text.replace("_", "\\_") + "}"
    return f"\\text{{{''.join(map(_character, text))}}}"


def _character(c: str) -> str:
    if " " <= c <= "~":
        return _ESCAPES.get(c, c)
    return c if c.isalpha() and _LETTERS.match(c) else f"U+{ord(c):04X}"


_SYMBOLS = """
∘ circ • bullet · cdot ⊗ otimes ⊙ odot ⊛ circledast ⋆ star ∗ ast × times ⊕ oplus ⋄ diamond ⟨ langle ⟩ rangle
Σ Sigma Δ Delta Π Pi π pi ι iota → to ← leftarrow ↦ mapsto ⊸ multimap ∅ emptyset ∈ in ⊆ subseteq ∪ cup
≤ leq ≥ geq ≠ neq ∧ land ∨ lor ¬ lnot … ldots ∞ infty
"""
_WORDS = _SYMBOLS.split()
_COMMANDS = {c: f"\\{word}" + " " * (c in "⟨↦∪¬") for c, word in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_OTHERS = {"−": "-", "ℝ": "\\mathbb{R}", "⟦": "[", "⟧": "]", "ᵀ": "^{T}", "M⁻¹": "M^{-1}"}
UNICODE = Notation(False, {})
LATEX = Notation(True, _COMMANDS | _OTHERS)


# -- contractions by the names people use for them ---------------------------------------------------------------------


class ProductName(NamedTuple):
    """A product of two arguments: its symbol, which argument is written first, and which of the two are transposed."""

    symbol: str
    first: int
    turned: tuple[bool, bool]


def two(c: Any) -> ProductName | None:
    """The name of a contraction of two arguments, if it has one."""
    if len(c.labels) != 2 or c.extra:
        return None
    (la, lb), out, plain = c.labels, c.out, (False, False)
    if la == lb == out:
        return ProductName("∗" if out else "·", 0, plain)
    if not la and lb == out:
        return ProductName("·", 0, plain)
    if not lb and la == out:
        return ProductName("·", 1, plain)
    if la == lb and not out:
        return ProductName("⊙", 0, plain)
    if not set(la) & set(lb):
        return ProductName("⊗", 0, plain) if out == la + lb else ProductName("⊗", 1, plain) if out == lb + la else None
    found = [p for p in (_matrix(la, lb, out, 0), _matrix(lb, la, out, 1)) if p is not None]
    # A matrix before a vector, then as few transposes as possible.
    return min(found, key=lambda p: (len((la, lb)[p.first]) < len((la, lb)[1 - p.first]), sum(p.turned)), default=None)


def _matrix(la: Labels, lb: Labels, out: Labels, first: int) -> ProductName | None:
    """A ⋆ B, with either transposed."""
    shared = tuple([x for x in la if x in lb and x not in out])
    rows, cols = tuple([x for x in la if x not in shared]), tuple([x for x in lb if x not in shared])
    if not shared or out != rows + cols or len(set(out)) < len(out):
        return None
    for inner in {shared, tuple([x for x in lb if x in shared])}:
        a = None if not rows and la != inner else False if la == rows + inner else True if la == inner + rows else None
        b = False if lb == inner + cols else True if lb == cols + inner else None
        if a is not None and b is not None and (rows or cols):
            turned = (a, b) if first == 0 else (b, a)
            return ProductName("⋆", first, turned)
    return None


def one(c: Any) -> str | None:
    """The name of a contraction of one argument, if it has one: Σ, rep or a transpose."""
    (labels,), out = c.labels, c.out
    if c.extra:
        return "rep" if labels == tuple([x for x in out if x in labels]) and len(set(out)) == len(out) else None
    if len(set(labels)) < len(labels):
        return None
    return "ᵀ" if sorted(labels) == sorted(out) else "Σ" if out == tuple([x for x in labels if x in out]) else None
