"""How a thing looks, whatever it is: `text`, `latex`, `mathml`, `spy` and `diagram`, by its class. Methods of all
rooms come here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functions.point_protocol import one_number
from ..maps.derivation import Derivation, Family, Value
from ..maps.linear_map import LinearMap
from ..maps.structured import Shown
from ..programs.program import Program
from ..relations.base import Relation
from ..relations.index_sets import Set
from ..spaces.formal_vectors import Formal, TensorValue
from ..spaces.space import Space
from ..terms.term import Arrow
from .chosen_notation import CHOICE, known
from .latex_alphabet import LATEX
from .mathml_alphabet import MathML, typeset
from .network_text import normal_form_text
from .notation import UNICODE, Notation
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
"""The printer of each class, for every alphabet."""
NOTATIONS: dict[str | None, dict[type, Callable[[Notation, Any], str]]] = {
    None: {},
    "paper": {LinearMap: map_text},
    "matrix": {
        LinearMap: lambda n, x: normal_form_text(n, x.simplify()),
        Derivation: lambda n, x: written(n, x.gradient if one_number(x.function.codomain) else x.jacobian),
    },
}
"""What is printed in another way where a notation was chosen."""


class View(Shown):
    """A thing in one of the two notations, whatever was chosen for others."""

    def __init__(self, thing: Any, kind: str) -> None:
        self.thing, self.kind = thing, known(kind)

    def show(self, notation: str = "matrix") -> View:
        """The same in another notation."""
        return View(self.thing, notation)


PRINTERS[View] = lambda n, x: written(n, x.thing, x.kind)


def written(n: Notation, thing: Any, notation: str | None = None) -> str:
    """A thing in an alphabet, and in a notation: "matrix", "paper", or what was chosen."""
    special = NOTATIONS[notation or CHOICE.kind]
    for kind in type(thing).__mro__:
        if kind in special or kind in PRINTERS:
            return (special.get(kind) or PRINTERS[kind])(n, thing)
    raise TypeError(f"nothing is known about how a {type(thing).__name__} looks")


def text(thing: Any) -> str:
    """A thing in Unicode."""
    return written(UNICODE, thing)


def latex(thing: Any) -> str:
    """A thing in LaTeX."""
    return written(LATEX, thing)


def mathml(thing: Any, ids: bool = False) -> str:
    """A thing in MathML. With `ids` its parts have an attribute data-id: the place of a subterm in `postorder`, the
    slot of a step in a program, the slot of a factor in a normal form."""
    return typeset(written(MathML(ids), thing))


def spy(L: LinearMap, as_text: bool, ax: Any, markersize: float | None, title: str | None) -> Any:
    """Where the numbers of a map are, as text or on Matplotlib axes."""
    from .spy import spy_axes, spy_text

    return spy_text(L) if as_text else spy_axes(L, ax, markersize, title)


def diagram(thing: Any, columns: int | None = None, form: str = "auto", limit: int = 120) -> Any:
    """A map, term, program or derivation as a string diagram."""
    from .diagrams.diagram import diagram_of

    return diagram_of(thing, columns, form, limit)
