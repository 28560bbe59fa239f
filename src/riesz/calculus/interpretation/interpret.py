"""Interpretation of a term over any value domain, eval⟦t⟧ : V → W   (§5).

The interpreter knows composition, families and the layout of spaces; everything else it asks of the domain, one step at
a time. A value is a tree: nested tuples with the domain's leaves inside. Under f^X the leaves have leading axes, given
by `lead`. No recursion: a rule that needs subterms is a generator. A subterm with several parents is interpreted once
per argument.
"""

from __future__ import annotations

from types import GeneratorType
from typing import Any, cast

from ...ops.domain import Domain, Leaf
from ...terms.sums import BlockDiag, Fork, Join, Map, Par
from ...terms.term import Combine, Compose, Term
from .product_rules import PRODUCTS
from .structural_rules import STRUCTURE
from .value_trees import Shape, Tree

RULES = {**STRUCTURE, **PRODUCTS}
COMPOSITE = {Compose, Par, BlockDiag, Fork, Join, Combine, Map}


def interpret(term: Term, value: Tree[Leaf], domain: Domain[Leaf], lead: Shape = ()) -> Tree[Leaf]:
    """The value of a term over a domain.

    The stack holds what waits for a value: a term to apply to it, a generator to resume with it, a list of the key to
    remember it under and the argument (whose identity is in the key), or a tuple of leading axes to go back to.
    """
    memo: dict[Any, tuple[Tree[Any], Tree[Any]]] = {}
    stack: list[Any] = []
    while True:
        # -- go down: the value of `term` at `value`
        kind = type(term)
        known = None
        if term.uses > 1 and kind in COMPOSITE:
            key = (term, value, lead) if type(value) is int else (term, id(value), lead, None)
            known = memo.get(key)
            if known is None:
                stack.append([key, value])
        if known is not None:
            value = known[1]
        elif kind is Compose:
            stack.append(cast(Compose, term).outer)
            term = cast(Compose, term).inner
            continue
        else:
            value = RULES[kind](term, value, lead, domain)
            if type(value) is GeneratorType:
                stack.append(lead)
                stack.append(cast(Any, value))
                value = cast(Any, None)
        # -- go up: hand the value to whoever waits for it
        while stack:
            waiting = stack.pop()
            if isinstance(waiting, Term):
                term = waiting
                break
            if type(waiting) is GeneratorType:
                try:
                    term, value, lead = cast(Any, waiting).send(value)
                except StopIteration as done:
                    value = done.value
                    continue
                stack.append(cast(Any, waiting))
                break
            if type(waiting) is list:
                memo[waiting[0]] = (waiting[1], value)
            else:
                lead = waiting
        else:
            return value
