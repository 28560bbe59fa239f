"""MathML Core, read by browsers and screen readers without a script.

# Note [Marks]
Printers put strings side by side, and MathML is a tree. So a text in this alphabet is a string with marks: characters
of Unicode's private areas that open a superscript, a fraction or a table, part it, and end it. `typeset` reads such a
text once, at the end, with a stack: letters become <mi>, digits <mn>, signs <mo>, brackets that match a row. No name
contains a mark: characters that cannot be printed are written by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Any, ClassVar

from .notation import ATOM, DIGITS, Notation, Piece, Text

SUP, SUB, OVER, ROOT, NAME, WORDS, BOLD, NORM, ABSOLUTE, BLOCKS, ALIGNED, LINES, NEXT, ROW, END = map(
    chr, range(0xE000, 0xE00F)
)
PARTS = 0x100000
"""PARTS + k opens part number k of what is shown."""
QUAD, THIN, APPLY, TIMES = "\u2003", "\u2009", "\u2061", "\u2062"
"""A wide and a thin space, function application, and a product without a sign."""
_MARKS = re.compile(f"[{SUP}-{END}{QUAD}{THIN}{APPLY}{TIMES}{chr(PARTS)}-\U0010ffff]")
_SIGNED = re.compile(f"([{chr(PARTS)}-\U0010ffff]*)−")
_TOKEN = re.compile(rf"[{NAME}{WORDS}{BOLD}][^{END}]*{END}|\d+(?:\.\d+)?|[^ \n]")
_TAG = re.compile(r"<\w+(?! data-id)\b")
_INDEXED = re.compile("(.*[^₀-₉])([₀-₉]+)", re.DOTALL)
_CLOSING = dict(zip("([{⟨⟦", ")]}⟩⟧", strict=True))
_FENCES = {NORM: "‖", ABSOLUTE: "|"}
_LEAVES = {NAME: "mi", WORDS: "mtext", BOLD: 'mn mathvariant="bold" style="font-weight:bold"'}
_TALL = {SUP: "msup", SUB: "msub", OVER: "mfrac", ROOT: "msqrt"}
_ALIGNED = {BLOCKS: ("", ""), ALIGNED: ("right", "left"), LINES: ("left", "left")}
"""How the columns of a table are set."""
_OPENING = frozenset([*_CLOSING, *_FENCES, *_TALL, *_ALIGNED])
_TREES = frozenset([*_FENCES, *_LEAVES, *_TALL, *_ALIGNED])
_NEVER = 1000
_UPRIGHT = "ΔΠℝ𝟏"
_MOVED = {"-": "−", "'": "′"}


class MathML(Notation):
    """Texts with marks; `typeset` makes them MathML. With `parts`, every part of a term, program or form has an
    attribute data-id with its number."""

    symbols: ClassVar[dict[str, str]] = {"M⁻¹": f"{SUP}M{NEXT}−1{END}"}
    flat = False

    def __init__(self, parts: bool = False) -> None:
        self.parts = parts

    @property
    def plain(self) -> Notation:
        return MATHML

    def seen(self, text: str) -> str:
        return _MARKS.sub("", text)

    def marked(self, text: str, key: int) -> str:
        return f"{chr(PARTS + key)}{text}{END}" if self.parts and key < 0xFFFE else text

    def unsigned(self, text: str) -> str | None:
        sign = _SIGNED.match(text)
        return sign[1] + text[sign.end() :] if sign else None

    def sup(self, base: str, exponent: str) -> str:
        return f"{SUP}{base}{NEXT}{exponent}{END}"

    def sub(self, base: str, index: Any) -> str:
        return f"{SUB}{base}{NEXT}{index}{END}"

    def star(self, text: str) -> str:
        return self.sup(text, "*")

    def turned(self, text: Text) -> str:
        return self.sup(self.within(text, ATOM), "⊤")

    def inverse_turned(self, text: str) -> str:
        return self.sup(text, "−⊤")

    def everywhere(self, base: str, exponent: str) -> str:
        return self.sup(base, f"∘{exponent}")

    def exponent(self, base: str, index: str, simple: bool) -> str:
        return self.sup(base, index)

    def fixed(self, value: str) -> str:
        return self.sub("K", value)

    def segment(self, size: int) -> str:
        return f"{BOLD}{size}{END}"

    def name(self, word: Any) -> str:
        text = str(word)
        bare = text.rstrip("'*") or text
        below = _INDEXED.fullmatch(bare)
        shown = self.sub(_leaf(below[1]), "".join([DIGITS[c] for c in below[2]])) if below else _leaf(bare or "''")
        ending = text[len(bare) :]
        shown += "′" * ending.count("'")
        return self.star(shown) if "*" in ending else shown

    def function(self, word: str) -> str:
        return "Σ" if word == "Σ" else self.name(word)

    def words(self, text: str) -> str:
        return f"{WORDS}{text}{END}"

    def spaced(self, a: str, b: str) -> str:
        return f"{a}{THIN}{b}"

    def applied(self, f: str, x: str) -> str:
        return f"{f}{APPLY}{THIN}{x}"

    def beside(self, parts: Sequence[str]) -> str:
        text = parts[0]
        for before, after in pairwise(parts):
            text += (TIMES + THIN if NAME in before + after else TIMES) + after
        return text

    def norm(self, text: str) -> str:
        return f"{NORM}{text}{END}"

    def absolute(self, text: str) -> str:
        return f"{ABSOLUTE}{text}{END}"

    def root(self, text: str) -> str:
        return f"{ROOT}{text}{END}"

    def fraction(self, above: str, below: str) -> str:
        return f"{OVER}{above}{NEXT}{below}{END}"

    def small_fraction(self, above: str, below: str) -> str:
        return self.fraction(above, below)

    def partial(self, above: str, below: Sequence[str]) -> str:
        lead = self.sup("∂", "2") if len(below) > 1 else "∂"
        return self.fraction(f"{lead}{above}", "".join([f"∂{x}" for x in below]))

    def clip(self, text: str, limit: int = 1200) -> str:
        return text if len(self.seen(text)) <= limit else "⋯"

    def number(self, k: Any) -> str:
        mantissa, _, power = super().number(k).partition("e")
        if power:
            return f"{mantissa}×{self.sup('10', str(int(power.replace('−', '-'))))}"
        return self.name(mantissa) if mantissa == "nan" else mantissa

    def pieces(self, text: str) -> Iterable[Piece]:
        opened: list[int] = []  # by the marks; numbered parts can be broken, others not
        for c in text:
            if c in _TREES or ord(c) >= PARTS:
                opened.append(_NEVER if c in _TREES else 0)
                yield c, 0, opened[-1]
            else:
                nested = -opened.pop() if c == END else (c in "(⟨[") - (c in ")⟩]")
                yield c, int(not _MARKS.match(c)), nested

    def rejoined(self, lines: list[list[str]]) -> list[str]:
        """Numbered parts are closed at the end of a line and opened again in the next."""
        shown: list[str] = []
        opened: list[str] = []  # marks
        for line in lines:
            again = "".join(opened)
            for c in line:
                if c == END:
                    opened.pop()
                elif c in _TREES or ord(c) >= PARTS:
                    opened.append(c)
            shown.append(again + "".join(line) + END * len(opened))
        return shown

    def stacked(self, lines: Sequence[str], indent: int) -> str:
        return _lines([lines[0], *[f"{QUAD}{line}" for line in lines[1:]]])

    def lines(self, texts: Sequence[str]) -> str:
        shown = list(map(self.fold, texts))
        return _lines(shown) if len(texts) > 1 else shown[0]

    def where(self, body: str, rows: Sequence[str]) -> str:
        return _lines([body, _table(["where ", *[""] * (len(rows) - 1)], rows)]) if rows else body

    def let(self, rows: Sequence[str], parts: Sequence[str]) -> str:
        inner = f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
        if not rows:
            return self.fold(inner)
        return _table(["let ", *[""] * (len(rows) - 1), "in "], [*rows, inner])

    def equations(self, rows: Sequence[tuple[str, str]]) -> str:
        return f"{ALIGNED}{ROW.join([f'{left}{NEXT}={right}' for left, right in rows])}{END}"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        if len(rows) == len(rows[0]) == 1:
            return self.fold(rows[0][0])
        return f"({BLOCKS}{ROW.join([NEXT.join(row) for row in rows])}{END})"


MATHML = MathML()


def _table(words: list[str], rows: Sequence[str]) -> str:
    """Words beside rows."""
    shown = [f"{MATHML.words(w) if w else ''}{NEXT}{MATHML.fold(row)}" for w, row in zip(words, rows, strict=True)]
    return _lines(shown)


def _lines(texts: Sequence[str]) -> str:
    return f"{LINES}{ROW.join(texts)}{END}"


def _leaf(word: str) -> str:
    """A name as one letter would be."""
    return NAME + "".join([c if c.isprintable() else f"U+{ord(c):04X}" for c in word]) + END


def typeset(text: str) -> str:
    """A text with marks as MathML. See Note [Marks]."""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{_row(_elements(text))}</math>'


class _Open:
    """A mark or bracket that is open: its rows of cells of elements, the last one being written."""

    __slots__ = ("mark", "rows")

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.rows: list[list[list[str]]] = [[[]]]

    @property
    def last(self) -> list[str]:
        """The cell that is being written."""
        return self.rows[-1][-1]


def _elements(text: str) -> list[str]:
    stack = [_Open("")]
    for token in _TOKEN.findall(text):
        top = stack[-1]
        if token in (NEXT, ROW, END):
            _close_brackets(stack)
            if token == END:
                done = stack.pop()
                stack[-1].last.append(_built(done))
            elif token == NEXT:
                stack[-1].rows[-1].append([])
            else:
                stack[-1].rows.append([[]])
        elif _CLOSING.get(top.mark) == token:
            stack.pop()
            stack[-1].last.append(f"<mrow>{_sign(top.mark)}{_row(top.last)}{_sign(token)}</mrow>")
        elif token in _OPENING or ord(token[0]) >= PARTS:
            stack.append(_Open(token))
        else:
            top.last.append(_simple(token))
    _close_brackets(stack)
    return stack[0].last


def _close_brackets(stack: list[_Open]) -> None:
    """Brackets that nothing closes are signs like others."""
    while stack[-1].mark in _CLOSING:
        loose = stack.pop()
        stack[-1].last.extend([f'<mo stretchy="false">{loose.mark}</mo>', *loose.last])


def _built(done: _Open) -> str:
    mark, rows = done.mark, done.rows
    if mark in _TALL:
        return f"<{_TALL[mark]}>{''.join([_row(cell) for cell in rows[0]])}</{_TALL[mark]}>"
    if mark in _FENCES:
        left, right = [f'<mo form="{form}" fence="true">{_FENCES[mark]}</mo>' for form in ("prefix", "postfix")]
        return f"<mrow>{left}{_row(done.last)}{right}</mrow>"
    if mark in _ALIGNED:
        cells = [[_cell(cell, _ALIGNED[mark][k % 2]) for k, cell in enumerate(row)] for row in rows]
        inside = "".join([f"<mtr>{''.join(row)}</mtr>" for row in cells])
        return f'<mtable displaystyle="true">{inside}</mtable>'
    inside, key = done.last, f' data-id="{ord(mark) - PARTS}"'
    tag = _TAG.match(inside[0]) if len(inside) == 1 else None
    return f"{tag[0]}{key}{inside[0][tag.end() :]}" if tag else f"<mrow{key}>{''.join(inside)}</mrow>"


def _cell(elements: list[str], side: str) -> str:
    style = f' style="text-align:{side}"' if side else ""
    return f"<mtd{style}>{''.join(elements)}</mtd>"


def _row(elements: list[str]) -> str:
    """As one element: the first sign of a row is a prefix, the last one a postfix."""
    return elements[0] if len(elements) == 1 else f"<mrow>{''.join(elements)}</mrow>"


def _sign(sign: str) -> str:
    return f"<mo>{escape(sign)}</mo>"


def _simple(token: str) -> str:
    """A letter, number, sign or name."""
    first = token[0]
    if first in _LEAVES:
        return f"<{_LEAVES[first]}>{escape(token[1:-1], quote=False)}</{_LEAVES[first].split()[0]}>"
    if first.isdigit():
        return f"<mn>{token}</mn>"
    if first in (THIN, QUAD):
        return f'<mspace width="{0.17 if first == THIN else 2}em"/>'
    if first == "Σ":
        return '<mo largeop="false">∑</mo>'
    if first in _UPRIGHT:
        return f'<mi mathvariant="normal">{first}</mi>'
    if first.isalpha():
        return f"<mi>{first}</mi>"
    sign = _MOVED.get(first, first)
    return f'<mo stretchy="false">{sign}</mo>' if first in "|)]}⟩⟧" else _sign(sign)
