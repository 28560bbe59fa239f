"""Interpretation of a term over any value domain, eval⟦t⟧ : V → W   (§5).

The interpreter knows composition, families and the layout of spaces; everything else it asks of the domain, one step at a time.
A value is a tree: nested tuples with the domain's leaves inside. Under f^X the leaves have leading axes, given by `lead`.
No recursion: a rule that needs subterms is a generator. A subterm with several parents is interpreted once per argument.
"""

from __future__ import annotations

from types import GeneratorType
from typing import Any, cast

from ..interning import children
from ..terms.core import Combine, Compose, Term
from ..terms.sums import BlockDiag, Fork, Join, Map, Par
from .products import PRODUCTS
from .structure import STRUCTURE
from .trees import Shape, Tree

RULES = {**STRUCTURE, **PRODUCTS}
COMPOSITE = {Compose, Par, BlockDiag, Fork, Join, Combine, Map}
_STORE, _THEN, _RESUME = 0, 1, 2


def interpret(term: Term, value: Tree, domain: Any, lead: Shape = ()) -> Tree:
    """The value of a term over a domain."""
    shared = shared_subterms(term)
    memo: dict[Any, tuple[Tree, Tree]] = {}
    stack: list[tuple[int, Any, Any]] = []
    while True:
        # -- go down: the value of `term` at `value`
        hit = False
        if shared and term in shared:
            key = (term, value, lead) if type(value) is int else (term, id(value), lead, None)
            if key in memo:
                value, hit = memo[key][1], True
            else:
                stack.append((_STORE, key, value))
        if not hit:
            if type(term) is Compose:
                stack.append((_THEN, term.outer, lead))
                term = term.inner
                continue
            answer = RULES[type(term)](term, value, lead, domain)
            if type(answer) is GeneratorType:
                stack.append((_RESUME, cast(Any, answer), lead))
                answer = None
            value = answer
        # -- go up: hand the value to whoever waits for it
        while stack:
            action, what, saved = stack[-1]
            if action == _THEN:
                stack.pop()
                term, lead = what, saved
                break
            if action == _STORE:
                stack.pop()
                memo[what] = (saved, value)
                continue
            try:
                asked = what.send(value)
            except StopIteration as done:
                stack.pop()
                value = done.value
                continue
            term, value, lead = asked
            break
        else:
            return value


def shared_subterms(term: Term) -> set[Term]:
    """The subterms with several parents that contain other terms."""
    seen: set[Term] = {term}
    shared: set[Term] = set()
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        inside: Any = (node.outer, node.inner) if type(node) is Compose else [c for c in children(node) if isinstance(c, Term)]
        for child in inside:
            if child not in seen:
                seen.add(child)
                stack.append(child)
            elif type(child) in COMPOSITE:
                shared.add(child)
    return shared
