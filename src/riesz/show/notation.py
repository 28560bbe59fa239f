"""The two alphabets, Unicode and LaTeX. The printers are written once, in terms of a Notation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..vectors import Formal

SUM, PRODUCT, COMPOSE, POWER, ATOM = range(5)
"""How tightly a text holds together."""

Text = tuple[str, int]

_SUPER = str.maketrans("0123456789-.+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻·⁺")
_SUB = str.maketrans("0123456789-", "₀₁₂₃₄₅₆₇₈₉₋")


@dataclass(frozen=True)
class Notation:
    """Symbols and the few ways of combining them."""

    latex: bool
    symbols: dict[str, str] = field(default_factory=lambda: cast("dict[str, str]", {}))

    def __getitem__(self, symbol: str) -> str:
        """A symbol, given in Unicode."""
        return self.symbols.get(symbol, symbol)

    def sup(self, base: str, exponent: str) -> str:
        """base with a superscript."""
        if self.latex:
            return f"{base}^{{{exponent}}}"
        plain = all([c in "0123456789-" for c in exponent])
        return base + (exponent.translate(_SUPER) if plain else f"^{exponent}")

    def sub(self, base: str, index: Any) -> str:
        """base with a subscript."""
        text = str(index)
        if self.latex:
            return f"{base}_{{{text}}}"
        return base + (text.translate(_SUB) if text.lstrip("-").isdigit() else f"_{text}")

    def exponent(self, base: str, index: str, simple: bool) -> str:
        """base^X for an index set."""
        return f"{base}^{{{index}}}" if self.latex else f"{base}^{index}" if simple else f"{base}^({index})"

    def name(self, word: str) -> str:
        """A function's name."""
        return f"\\mathrm{{{word}}}" if self.latex else word

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
        """A number, short."""
        k = float(k)
        text = f"{int(k)}" if k.is_integer() and abs(k) < 1e15 else f"{k:.4g}"
        return text.replace("-", "−") if not self.latex else text

    def shape(self, shape: tuple[int, ...]) -> str:
        """An array by its shape."""
        inside = self["×"].join(map(str, shape))
        return f"[{inside}]" if self.latex else f"⟦{inside}⟧"

    def leaf(self, value: Any) -> Text:
        """A leaf of a vector: numbers are written out, small arrays too, large ones by shape."""
        if type(value) is Formal:
            return self.formal(value)
        if np.ndim(value) == 0:
            k = float(value)
            return self.number(k), ATOM if k >= 0 else SUM
        array = np.asarray(value)
        if array.size and not any(array.strides):  # one number, repeated
            k = float(array.flat[0])
            return self.number(k), ATOM if k >= 0 else SUM
        if array.ndim == 1 and array.size <= 4:
            return "[" + ", ".join([self.number(v) for v in array]) + "]", ATOM
        return self.shape(array.shape), ATOM

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
        shown = [self._product(t.scale, [self.leaf(f) for f, _ in t.factors]) for t in value.terms[:4]]
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


UNICODE = Notation(False)
LATEX = Notation(
    True,
    {
        "∘": "\\circ",
        "•": "\\bullet",
        "·": "\\cdot",
        "⊗": "\\otimes",
        "⊙": "\\odot",
        "⊛": "\\circledast",
        "⋆": "\\star",
        "∗": "\\ast",
        "×": "\\times",
        "⊕": "\\oplus",
        "−": "-",
        "⟨": "\\langle ",
        "⟩": "\\rangle",
        "ℝ": "\\mathbb{R}",
        "Σ": "\\Sigma",
        "Δ": "\\Delta",
        "Π": "\\Pi",
        "π": "\\pi",
        "ι": "\\iota",
        "→": "\\to",
        "⊸": "\\multimap",
        "∅": "\\emptyset",
        "≤": "\\leq",
        "≥": "\\geq",
        "∈": "\\in",
        "⊆": "\\subseteq",
        "…": "\\ldots",
        "⟦": "[",
        "⟧": "]",
        "ᵀ": "^{T}",
        "M⁻¹": "M^{-1}",
    },
)
