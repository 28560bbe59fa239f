"""Why rewriting ends: what every law makes less of, the first in this list that it changes."""

from __future__ import annotations

from typing import NamedTuple

from ..terms.bilinear import Contract, Hadamard, Inner, Labelled, Section
from ..terms.core import Combine, Compose, Term
from ..terms.sums import BlockDiag, Fork, Join, Map, Par
from ..terms.unitary import Transpose
from .engine import census


class Measure(NamedTuple):
    """Compared in this order."""

    nodes: int  # terms in the DAG
    families: int  # Π, Δ, ⟨⟩, [], f^X and sums
    names: int  # labelled contractions; (⋄ v) that could be (v ⋄); (v ⊙), (v ∗) that could be (v ·)
    scalings: int  # k · f inside a composition
    transposes: int  # contractions inside of a transpose
    between: int  # dimensions between the factors of compositions
    nesting: int  # (h ∘ g) ∘ f


def measure(t: Term) -> Measure:
    """The measure of a term."""
    order = census(t)[0]
    chains = [x for x in order if isinstance(x, Compose)]
    return Measure(
        nodes=len(order),
        families=sum([isinstance(x, (Par, BlockDiag, Fork, Join, Map, Combine)) for x in order]),
        names=sum([_unusual(x) for x in order]),
        scalings=sum([isinstance(part, Combine) and len(part.terms) == 1 for x in chains for part in (x.outer, x.inner)]),
        transposes=sum([_sections(x.inner) for x in chains if isinstance(x.outer, Transpose)]),
        between=sum([x.inner.codomain.dim for x in chains]),
        nesting=sum([isinstance(x.outer, Compose) for x in chains]),
    )


def _unusual(t: Term) -> int:
    if isinstance(t, Section) and not isinstance(t.bilinear, Contract):
        return t.side + isinstance(t.bilinear, (Inner, Hadamard))
    return int(isinstance(t, Labelled))


def _sections(t: Term) -> int:
    """How many sections of ⊛ a composition has."""
    found = 0
    while isinstance(t, Compose):
        found += isinstance(t.outer, Section)
        t = t.inner
    return found + isinstance(t, Section)
