"""How a thing looks, whatever it is: `text`, `latex`, `html` and `spy`, by its class. Methods of all rooms come
here."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ..maps.derivation import Derivation, Family, Value
from ..maps.linear_map import LinearMap
from ..programs.program import Program
from ..relations.base import Relation
from ..relations.index_sets import Set
from ..spaces.formal_vectors import Formal, TensorValue
from ..spaces.space import Space
from ..terms.term import Arrow
from .network_text import latex_network, show_network
from .notation import LATEX, UNICODE
from .program_text import (
    latex_derivation,
    latex_family,
    latex_map,
    show_derivation,
    show_family,
    show_map,
    show_program,
    show_value,
)
from .term_text import relation_text, set_text, space_text, term_text


@singledispatch
def text(thing: Any) -> str:
    """A thing in Unicode."""
    raise TypeError(f"nothing is known about how a {type(thing).__name__} looks")


@singledispatch
def latex(thing: Any) -> str:
    """A thing in LaTeX."""
    raise TypeError(f"nothing is known about how a {type(thing).__name__} looks in LaTeX")


def html(L: LinearMap) -> str | None:
    """A map in a notebook; None where the formula alone is shown."""
    from .notebook import html_map

    return html_map(L)


def spy(L: LinearMap, as_text: bool, ax: Any, markersize: float | None, title: str | None) -> Any:
    """Where the numbers of a map are, as text or on Matplotlib axes."""
    from .spy import spy_axes, spy_text

    return spy_text(L) if as_text else spy_axes(L, ax, markersize, title)


@text.register
def _(value: TensorValue) -> str:
    """An element of a tensor product."""
    if len(value.leaves) == 1:
        return UNICODE.leaf(value.leaves[0])[0]
    return f"an element of {text(value.space)}, {value.numbers} numbers"


@text.register
def _(x: Set) -> str:
    return set_text(UNICODE, x)[0]


@text.register
def _(x: Relation) -> str:
    return relation_text(UNICODE, x)[0]


@text.register
def _(x: Space) -> str:
    return space_text(UNICODE, x)[0]


@text.register
def _(x: Arrow) -> str:
    return term_text(UNICODE, x)[0]


@text.register
def _(x: Formal) -> str:
    return UNICODE.formal(x)[0]


@text.register
def _(x: LinearMap) -> str:
    return show_network(x) if x.simplified else show_map(x)


@latex.register
def _(x: Space) -> str:
    return space_text(LATEX, x)[0]


@latex.register
def _(x: Arrow) -> str:
    return term_text(LATEX, x)[0]


@latex.register
def _(x: LinearMap) -> str:
    return latex_network(x) if x.simplified else latex_map(x)


text.register(Program, show_program)
text.register(Value, show_value)
text.register(Family, show_family)
text.register(Derivation, show_derivation)
latex.register(Family, latex_family)
latex.register(Derivation, latex_derivation)
