"""How a thing looks, whatever it is: `text`, `latex`, `html` and `spy`, by its class. Methods of all rooms come
here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..maps.derivation import Derivation, Family, Value
from ..maps.linear_map import LinearMap
from ..programs.program import Program
from ..relations.base import Relation
from ..relations.index_sets import Set
from ..spaces.formal_vectors import Formal, TensorValue
from ..spaces.space import Space
from ..terms.term import Arrow
from .network_text import normal_form_text
from .notation import LATEX, UNICODE, Notation
from .program_text import derivation_text, family_text, map_text, steps_text, value_text
from .term_text import relation_text, set_text, space_text, term_text


def _tensor(n: Notation, value: TensorValue) -> str:
    """An element of a tensor product."""
    if len(value.leaves) == 1:
        return n.leaf(value.leaves[0])[0]
    return f"an element of {text(value.space)}, {value.numbers} numbers"


PRINTERS: dict[type, Callable[[Notation, Any], str]] = {
    Set: lambda n, x: set_text(n, x)[0],
    Relation: lambda n, x: relation_text(n, x)[0],
    Space: lambda n, x: space_text(n, x)[0],
    Formal: lambda n, x: n.formal(x)[0],
    TensorValue: _tensor,
    Arrow: lambda n, x: term_text(n, x)[0],
    Program: steps_text,
    Value: value_text,
    Family: family_text,
    Derivation: derivation_text,
    LinearMap: lambda n, x: normal_form_text(n, x) if x.simplified else map_text(n, x),
}
"""The printer of each class, for both alphabets."""


def _written(n: Notation, thing: Any) -> str:
    for kind in type(thing).__mro__:
        if kind in PRINTERS:
            return PRINTERS[kind](n, thing)
    raise TypeError(f"nothing is known about how a {type(thing).__name__} looks{' in LaTeX' if n.latex else ''}")


def text(thing: Any) -> str:
    """A thing in Unicode."""
    return _written(UNICODE, thing)


def latex(thing: Any) -> str:
    """A thing in LaTeX."""
    return _written(LATEX, thing)


def html(L: LinearMap) -> str | None:
    """A map in a notebook; None where the formula alone is shown."""
    from .notebook import html_map

    return html_map(L)


def spy(L: LinearMap, as_text: bool, ax: Any, markersize: float | None, title: str | None) -> Any:
    """Where the numbers of a map are, as text or on Matplotlib axes."""
    from .spy import spy_axes, spy_text

    return spy_text(L) if as_text else spy_axes(L, ax, markersize, title)
