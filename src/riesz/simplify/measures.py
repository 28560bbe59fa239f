"""Why rewriting ends: what every law makes less of, the first in this list that it changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..terms.bilinear import Contract, Hadamard, Inner, Labelled, Section
from ..terms.sums import BlockDiag, Fork, Join, Map, Par, Reduce, Regroup
from ..terms.term import Combine, Compose, Term
from ..terms.unitary import Transpose
from .engine import census

MEANING = {
    "nodes": "terms in the DAG",
    "families": "Π, Δ, ⟨⟩, [], f^X and sums",
    "members": "parts of terms, counted as often as they occur",
    "names": "red_R, regroup and labelled contractions, which have better names at times; (⋄ v) for (v ⋄); (v ⊙) and "
    "(v ∗) for (v ·)",
    "scalings": "k · f inside a composition",
    "transposes": "contractions inside of a transpose",
    "between": "dimensions between the factors of compositions",
    "nesting": "(h ∘ g) ∘ f",
}
"""What the measure counts."""


class Measure(NamedTuple):
    """Compared in this order."""

    nodes: int
    families: int
    members: int
    names: int
    scalings: int
    transposes: int
    between: int
    nesting: int


def measure(t: Term, atoms: Collection[Term] = ()) -> Measure:
    """The measure of a term; atoms stand for themselves, whatever is inside."""
    found, counts = census(t, atoms)
    order = [x for x in found if x not in atoms]
    chains = [x for x in order if isinstance(x, Compose)]
    factors = [part for x in chains for part in (x.outer, x.inner) if part not in atoms]
    return Measure(
        nodes=len(found),
        families=sum([isinstance(x, (Par, BlockDiag, Fork, Join, Map, Combine)) for x in order]),
        members=sum(counts.values()),
        names=sum([_unusual(x) for x in order]),
        scalings=sum([isinstance(x, Combine) and len(x.terms) == 1 for x in factors]),
        transposes=sum([_sections(x.inner) for x in chains if isinstance(x.outer, Transpose)]),
        between=sum([x.inner.codomain.dim for x in chains]),
        nesting=sum([isinstance(x.outer, Compose) and x.outer not in atoms for x in chains]),
    )


def _unusual(t: Term) -> int:
    if isinstance(t, Section) and not isinstance(t.bilinear, Contract):
        return t.side + isinstance(t.bilinear, (Inner, Hadamard))
    return int(isinstance(t, (Labelled, Reduce, Regroup)))


def _sections(t: Term) -> int:
    """How many sections of ⊛ a composition has."""
    found = 0
    while isinstance(t, Compose):
        found += isinstance(t.outer, Section)
        t = t.inner
    return found + isinstance(t, Section)
