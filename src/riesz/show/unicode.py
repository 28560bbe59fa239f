"""Everything in Unicode."""

from __future__ import annotations

from ..relations import Relation
from ..sets import Set
from ..spaces import Space
from ..terms.core import Arrow
from ..vectors import Formal, TensorValue
from .notation import UNICODE
from .terms import relation_text, set_text, space_text, term_text


def show_set(index: Set) -> str:
    """An index set."""
    return set_text(UNICODE, index)[0]


def show_relation(relation: Relation) -> str:
    """A relation."""
    return relation_text(UNICODE, relation)[0]


def show_space(space: Space) -> str:
    """A space."""
    return space_text(UNICODE, space)[0]


def show_term(term: Arrow) -> str:
    """A term or open combinator."""
    return term_text(UNICODE, term)[0]


def show_formal(value: Formal) -> str:
    """A formal vector."""
    return UNICODE.formal(value)[0]


def show_tensor(value: TensorValue) -> str:
    """An element of a tensor product."""
    if len(value.leaves) == 1:
        return UNICODE.leaf(value.leaves[0])[0]
    return f"an element of {show_space(value.space)}, {value.numbers} numbers"
