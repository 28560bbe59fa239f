"""Displays: data with a rendering for each use: Unicode, LaTeX, MathML, HTML, SVG, JSON.

HTML is a fragment that is well-formed XML, without scripts, style sheets and colours: it looks like the text around it,
dark or light. What is large is folded. Dollar signs are written as entities, and the fragment is marked for MathJax to
leave alone: no name is ever typeset.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from ..diagrams.svg_drawing import xml_text

FORMULA, LINES = 4000, 24
"""Formulas of more characters are folded and shown as text, those of more lines are folded."""
SMALL = "font-size:90%;opacity:0.8"
CELL = "text-align:left;padding:0.1em 0.8em 0.1em 0"


def fragment(body: str) -> str:
    """HTML to be shown: marked as ours, and nothing in it for MathJax."""
    return f'<div class="riesz tex2jax_ignore mathjax_ignore">{body.replace("$", "&#36;")}</div>'


def folded(title: str, body: str) -> str:
    """A part that is opened by a click."""
    return f'<details><summary style="cursor:pointer">{xml_text(title)}</summary>{body}</details>'


def preformatted(text: str) -> str:
    """A text with its lines as they are."""
    return f'<pre style="overflow-x:auto;margin:0.3em 0">{xml_text(text)}</pre>'


class Display:
    """Something to look at. `unicode()`, `latex()`, `mathml()`, `html()`, `svg()` and `json()` are the same thing for
    different readers; those that make no sense are None. `kind` says what it is.

    >>> import numpy as np, riesz as rz
    >>> d = rz.display(rz.R ** 3)
    >>> d, d.latex(), d.kind
    (ℝ^3, '\\\\mathbb{R}^{\\\\mathbf{3}}', 'formula')
    """

    kind = "text"

    def unicode(self) -> str:
        """As text."""
        raise NotImplementedError

    def latex(self) -> str | None:
        """In LaTeX."""
        return None

    def mathml(self, ids: bool = False) -> str | None:
        """In MathML; with `ids`, parts have an attribute data-id."""
        return None

    def svg(self, alone: bool = False) -> str | None:
        """As a picture; `alone`: for a file."""
        return None

    def body(self) -> str:
        """The inside of the HTML."""
        return preformatted(self.unicode())

    def html(self) -> str:
        """In HTML, with MathML and SVG inside.

        >>> import numpy as np, riesz as rz
        >>> rz.display(rz.sin).html()[:5]
        '<div '
        """
        return fragment(self.body())

    def json(self) -> dict[str, Any]:
        """As data.

        >>> import numpy as np, riesz as rz
        >>> sorted(rz.display(rz.R**3).json())
        ['kind', 'latex', 'mathml', 'unicode']
        """
        found = {"kind": self.kind, "unicode": self.unicode(), "latex": self.latex(), "mathml": self.mathml()}
        return {key: value for key, value in found.items() if value is not None}

    def __repr__(self) -> str:
        return self.unicode()

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None, **_: Any
    ) -> dict[str, Any]:
        return bundle_of(self, include, exclude)

    def _repr_html_(self) -> str:
        return self.html()


def bundle_of(d: Display, include: Container[str] | None, exclude: Container[str] | None) -> dict[str, Any]:
    """The renderings of a display by MIME type; only those that are asked for are made."""
    makers: dict[str, Callable[[], str | None]] = {
        "text/plain": d.unicode,
        "text/html": d.html,
        "text/latex": lambda: _dollars(d.latex()),
        "image/svg+xml": lambda: d.svg(alone=True),
    }
    wanted = [key for key in makers if (include is None or key in include) and (exclude is None or key not in exclude)]
    made = {key: makers[key]() for key in wanted}
    return {key: value for key, value in made.items() if value is not None}


def _dollars(latex: str | None) -> str | None:
    return None if latex is None else f"$${latex}$$"


class Formula(Display):
    """A formula in three alphabets, each written when it is asked for."""

    kind = "formula"

    def __init__(
        self, unicode: Callable[[], str], latex: Callable[[], str] | None, mathml: Callable[[bool], str] | None
    ) -> None:
        self._unicode, self._latex, self._mathml = unicode, latex, mathml

    def unicode(self) -> str:
        return self._unicode()

    def latex(self) -> str | None:
        return None if self._latex is None else self._latex()

    def mathml(self, ids: bool = False) -> str | None:
        return None if self._mathml is None else self._mathml(ids)

    def body(self) -> str:
        text = self.unicode()
        if len(text) > FORMULA:
            return folded(f"a formula of {len(text):,} characters", preformatted(text[: 16 * FORMULA]))
        found = self.mathml()
        if found is None:
            return preformatted(text)
        whole = f'<div style="overflow-x:auto"><div style="width:max-content">{found}</div></div>'
        lines = text.count("\n") + 1
        return folded(f"a formula of {lines:,} lines", whole) if lines > LINES else whole


class FactTable(Display):
    """Facts in rows: plans, costs, explanations, reports. `text` is how it prints; `code`: something to be folded."""

    def __init__(
        self,
        kind: str,
        text: str,
        rows: Sequence[Sequence[str]],
        head: Sequence[str] = (),
        title: str = "",
        code: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.kind, self.text, self.rows, self.head, self.title, self.code = kind, text, rows, head, title, code

    def unicode(self) -> str:
        return self.text

    def body(self) -> str:
        title = f'<div style="margin-bottom:0.3em">{xml_text(self.title)}</div>' if self.title else ""
        head = "".join([f'<th scope="col" style="{CELL}">{xml_text(c)}</th>' for c in self.head])
        cells = [[f'<td style="{CELL}">{xml_text(c)}</td>' for c in row] for row in self.rows]
        rows = [f"<tr>{''.join(row)}</tr>" for row in cells]
        first = f"<thead><tr>{head}</tr></thead>" if head else ""
        table = f"<table>{first}<tbody>{''.join(rows)}</tbody></table>" if rows else ""
        return title + table + "".join([folded(name, preformatted(text)) for name, text in self.code])

    def json(self) -> dict[str, Any]:
        rows = [list(row) for row in self.rows]
        return {"kind": self.kind, "title": self.title, "head": list(self.head), "rows": rows, "unicode": self.text}


class DisplayGroup(Display):
    """A thing with its parts: the first is its formula, others are beside it or folded under a title."""

    def __init__(
        self,
        kind: str,
        text: Callable[[], str],
        formula: Display,
        facts: Sequence[str] = (),
        picture: Display | None = None,
        folds: Sequence[tuple[str, Display]] = (),
    ) -> None:
        self.kind, self._text, self.formula, self.facts, self.picture, self.folds = (
            kind,
            text,
            formula,
            facts,
            picture,
            folds,
        )

    def unicode(self) -> str:
        return self._text()

    def latex(self) -> str | None:
        return self.formula.latex()

    def mathml(self, ids: bool = False) -> str | None:
        return self.formula.mathml(ids)

    def svg(self, alone: bool = False) -> str | None:
        return None if self.picture is None else self.picture.svg(alone)

    def body(self) -> str:
        words = f'<div style="{SMALL}">{xml_text(" · ".join(self.facts))}</div>' if self.facts else ""
        main = self.formula.body() + words
        if (picture := self.svg()) is not None:
            main = (
                f'<div style="display:flex;flex-wrap:wrap;align-items:center;gap:1.5em">{picture}'
                f'<div style="min-width:0;overflow-x:auto">{main}</div></div>'
            )
        return main + "".join([folded(title, part.body()) for title, part in self.folds])

    def json(self) -> dict[str, Any]:
        parts = {title: part.json() for title, part in self.folds}
        picture = {} if self.picture is None else {"picture": self.picture.json()}
        return {**super().json(), "facts": list(self.facts), **picture, "parts": parts}
