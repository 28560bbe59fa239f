"""Everything in LaTeX."""

from __future__ import annotations

from ..spaces import Space
from ..terms.core import Arrow
from .notation import LATEX
from .terms import space_text, term_text


def latex_space(space: Space) -> str:
    """A space."""
    return space_text(LATEX, space)[0]


def latex_term(term: Arrow) -> str:
    """A term or open combinator."""
    return term_text(LATEX, term)[0]
