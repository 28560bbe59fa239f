"""What printers are written in terms of: an alphabet of symbols with the few ways of combining them, and the names of
products. This file has Unicode; `latex_alphabet.py` and `mathml_alphabet.py` say what is different there."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..spaces.contraction import Labels
from ..spaces.formal_vectors import Formal
from .chosen_notation import CHOICE

SUM, PRODUCT, COMPOSE, POWER, ATOM = range(5)
"""How tightly a text holds together."""

Text = tuple[str, int]
Piece = tuple[str, int, int]
"""Part of a text, how many characters of it are seen, how many brackets it opens."""

_SUPER = str.maketrans("0123456789-.+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻·⁺")
_SUB = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")
DIGITS = dict(zip("₀₁₂₃₄₅₆₇₈₉", string.digits, strict=True))
SYMBOLS = frozenset("∘•·⊗⊙⊛⋆∗×⊕⋄⟨⟩ΣΔΠπι→←↦⊸∅∈⊆∪≤≥≠∧∨¬…∞−ℝ⟦⟧")
"""Signs of ours: what is called like one of them looks like it."""
_LOOSE = re.compile(r"[\s,:;(){}\[\]⟨⟩\"\\]")
"""What would be read as part of the text around a name."""


class Notation:
    """Symbols and the few ways of combining them, in Unicode: one line after the other. A text is a string in every
    alphabet, so printers put texts side by side; what is more than that is a method here."""

    symbols: ClassVar[dict[str, str]] = {}
    prime = "′"
    flat = True
    """Whether exponents, subscripts and fractions stand on the line, so that they need brackets."""
    breadth = 1
    """About how many characters of a text make one that is seen."""

    def __getitem__(self, symbol: str) -> str:
        """A symbol, given in Unicode."""
        return self.symbols.get(symbol, symbol)

    def seen(self, text: str) -> str:
        """A text without marks that are not shown."""
        return text

    def marked(self, text: str, key: int) -> str:
        """A text that stands for part number `key` of what is shown; only MathML can say so."""
        return text

    @property
    def plain(self) -> Notation:
        """The same without numbers of parts."""
        return self

    def unsigned(self, text: str) -> str | None:
        """What follows a leading minus; None where there is none."""
        minus = self["−"]
        return text[len(minus) :] if text.startswith(minus) else None

    # -- small parts -----------------------------------------------------------------------------------------

    def sup(self, base: str, exponent: str) -> str:
        """base with a superscript."""
        plain = all([c in "0123456789-" for c in exponent])
        return base + (exponent.translate(_SUPER) if plain else f"^{exponent}")

    def sub(self, base: str, index: Any) -> str:
        """base with a subscript."""
        text = str(index)
        digits = text.lstrip("-").replace(",", "")
        return base + (text.translate(_SUB) if digits.isascii() and digits.isdigit() else f"_{text}")

    def below(self, base: str, inside: str) -> str:
        """base_{inside}: an expression as a subscript."""
        return self.sub(base, f"{{{inside}}}" if self.flat else inside)

    def grouped(self, text: str) -> str:
        """{text} in LaTeX, where it looks the same."""
        return text

    def braces(self, text: str) -> str:
        """{text}, a set."""
        return f"{{{text}}}"

    def star(self, text: str) -> str:
        """text*, an adjoint."""
        return f"{text}*"

    def turned(self, text: Text) -> str:
        """textᵀ."""
        return f"{self.within(text, ATOM)}ᵀ"

    def inverse_turned(self, text: str) -> str:
        """text⁻ᵀ."""
        return f"{text}⁻ᵀ"

    def everywhere(self, base: str, exponent: str) -> str:
        """base^(∘2), a power at every index of a matrix."""
        return f"{base}^(∘{exponent})"

    def exponent(self, base: str, index: str, simple: bool) -> str:
        """base^X for an index set."""
        return f"{base}^{index}" if simple else f"{base}^({index})"

    def fixed(self, value: str) -> str:
        """K(value), a constant function."""
        return f"K({value})"

    def segment(self, size: int) -> str:
        """The index set 0 … size − 1."""
        return str(size)

    def ones(self) -> str:
        """A vector of ones."""
        return "𝟏"

    def name(self, word: Any) -> str:
        """A name, whatever is in it; an ending of primes and stars says derivative and adjoint."""
        text = str(word)
        loose = isinstance(word, str) and (not text or text.isdigit() or _LOOSE.search(text))
        return repr(text) if loose or not text.isprintable() else text

    def variable(self, word: Any) -> str:
        """The name of an argument or array: a letter stands for itself."""
        text = str(word)
        letter = len(text) == 1 and text.isascii() and text.isalpha()
        return text if letter or isinstance(word, int) else self.name(word)

    def operator(self, symbol: str) -> str:
        """A symbol of ours, or the name of somebody's function."""
        return self[symbol] if symbol in SYMBOLS else self.name(symbol)

    def function(self, word: str) -> str:
        """The name of a function that is called with brackets."""
        return word

    def words(self, text: str) -> str:
        """Words between symbols."""
        return text

    def prose(self, text: str) -> str:
        """A sentence with signs in it."""
        return self.words(text)

    def hole(self) -> str:
        """Where an argument goes."""
        return "_"

    def within(self, text: Text, level: int) -> str:
        """A text as part of something that holds together more tightly."""
        return text[0] if text[1] >= level else self.parens(text[0])

    def spaced(self, a: str, b: str) -> str:
        """Two texts side by side."""
        return f"{a} {b}"

    def applied(self, f: str, x: str) -> str:
        """f x."""
        return self.spaced(f, x)

    def beside(self, parts: Sequence[str]) -> str:
        """Factors without a sign between them."""
        return " ".join(parts)

    def parens(self, text: str) -> str:
        """(text)."""
        return f"({text})"

    def norm(self, text: str) -> str:
        """‖text‖."""
        return f"‖{text}‖"

    def absolute(self, text: str) -> str:
        """|text|."""
        return f"|{text}|"

    def root(self, text: str) -> str:
        """√text, a function of it on one line."""
        return f"sqrt({text})"

    def fraction(self, above: str, below: str) -> str:
        """above / below; on one line both have the brackets they need."""
        return f"{above} / {below}"

    def small_fraction(self, above: str, below: str) -> str:
        """A number such as 2/3."""
        return "½" if (above, below) == ("1", "2") else f"{above}/{below}"

    def partial(self, above: str, below: Sequence[str]) -> str:
        """∂f/∂x, ∂²f/∂x∂y."""
        return ("∂²" if len(below) > 1 else "∂") + above + "/" + "".join([f"∂{x}" for x in below])

    def infix(self, parts: Sequence[Text], symbol: str, level: int) -> Text:
        """a ∘ b ∘ c."""
        return f" {self[symbol]} ".join([self.within(p, level) for p in parts]), level

    def listed(self, left: str, parts: Sequence[Text], right: str) -> Text:
        """⟨a, b⟩."""
        return self[left] + ", ".join([p[0] for p in parts]) + self[right], ATOM

    def clip(self, text: str, limit: int = 1200) -> str:
        """A text of bearable length."""
        return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 4 :]}"

    def number(self, k: Any) -> str:
        """A number, to four digits; what is not whole does not look so."""
        return self.digits(k).replace("inf", "∞").replace("-", "−")

    def digits(self, k: Any) -> str:
        """The digits of a number as Python writes them."""
        k = float(k)
        text = f"{int(k)}" if k.is_integer() and abs(k) < 1e15 else f"{k:.4g}"
        return repr(k) if text.lstrip("-").isdigit() and float(text) != k else text

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

    # -- several lines ---------------------------------------------------------------------------------------

    def fold(self, text: str, indent: int = 0) -> str:
        """A long line broken before + and −, after • and commas, where no bracket is open, or one if need be."""
        room = CHOICE.width - indent
        if len(text) <= room:
            return text
        pieces = list(self.pieces(text))
        for depth in (0, 1):
            lines = _cut(pieces, room, depth)
            if len(lines) > 1:
                return self.stacked([line.strip() for line in self.rejoined(lines)], indent)
        return text

    def pieces(self, text: str) -> Iterable[Piece]:
        """What a text is made of, for breaking lines."""
        return [(c, 1, (c in "(⟨[") - (c in ")⟩]")) for c in text]

    def rejoined(self, lines: list[list[str]]) -> list[str]:
        """The pieces of each line as a text."""
        return ["".join(line) for line in lines]

    def stacked(self, lines: Sequence[str], indent: int) -> str:
        """The lines of one long text."""
        return ("\n" + " " * (indent + 2)).join(lines)

    def lines(self, texts: Sequence[str]) -> str:
        """One below the other."""
        return "\n".join(map(self.fold, texts))

    def where(self, body: str, rows: Sequence[str]) -> str:
        """A text, and below it what its letters mean."""
        shown = [self.fold(row, 8) for row in rows]
        return "\n".join([body, *[("        " if i else "  where ") + line for i, line in enumerate(shown)]])

    def let(self, rows: Sequence[str], parts: Sequence[str]) -> str:
        """What the letters mean, and then a pair, or one text."""
        lead = "  in  (" if rows else "  ("
        inner = [self.fold(b, len(lead)) for b in parts]
        shown = [("      " if i else "  let ") + self.fold(row, 6) for i, row in enumerate(rows)]
        return "\n".join([*shown, lead + (",\n" + " " * len(lead)).join(inner) + ")"])

    def explained(self, body: str, rows: Sequence[str]) -> str:
        """A program: its result, and what the letters mean."""
        return self.where(self.fold(body), rows)

    def equations(self, rows: Sequence[tuple[str, str]]) -> str:
        """left = right, line by line."""
        return "\n".join([f"{left} =\n{right}" for left, right in rows])

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        """Blocks in rows; one block is itself."""
        if len(rows) == 1 and len(rows[0]) == 1:
            return self.fold(rows[0][0])
        if len(rows) > 12 or len(rows[0]) > 12:
            return f"{len(rows)} × {len(rows[0])} blocks"
        widths = [max([len(row[j]) for row in rows]) for j in range(len(rows[0]))]
        left, right = ("⎡⎢⎣", "⎤⎥⎦") if len(rows) > 1 else ("[[[", "]]]")
        lines = ["   ".join([t.ljust(k) for t, k in zip(row, widths, strict=True)]) for row in rows]
        at = [0, *[1] * (len(rows) - 2), 2]
        return "\n".join([f"{left[k]} {line} {right[k]}" for k, line in zip(at, lines, strict=False)])


def _cut(pieces: Sequence[Piece], room: int, depth: int) -> list[list[str]]:
    """Lines that fit, broken where at most `depth` brackets are open."""
    words = [p[0] for p in pieces]
    lines: list[list[str]] = []
    start, last, level, width, before = 0, 0, 0, 0, 0  # of the line, of the break, and what is seen up to each
    for i, (word, seen, opened) in enumerate(pieces):
        level += opened
        follows = words[i + 1 : i + 3]
        if level <= depth and ((word == " " and follows in _SIGNED) or (word in _COMMAS and follows[:1] == [" "])):
            last, before = (i, width) if word == " " else (i + 1, width + seen)
        width += seen
        if width > room and last > start:
            lines.append(words[start:last])
            start, width = last, width - before
    return [*lines, words[start:]]


_SIGNED = [["+", " "], ["−", " "], ["-", " "]]
_COMMAS = ("•", "\\bullet", ",")

UNICODE = Notation()


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
