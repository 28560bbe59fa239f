"""Hypothesis strategies for everything a Builder builds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ..relations import Relation
from ..relations.index_sets import Set
from ..spaces.space import Space
from ..terms.bilinear import Bilinear
from ..terms.term import Term
from .random_terms import Builder

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def index_sets(most: int = 6) -> SearchStrategy[Set]:
    """Index sets of at most `most` elements: segments, products and sums, nested; empty ones too."""
    return _strategy(lambda b: b.index_set(most))


def relations(source: Set, target: Set) -> SearchStrategy[Relation]:
    """Relations between two sets, of every kind, with multiplicities."""
    return _strategy(lambda b: b.relation(source, target))


def spaces(most: int = 30, weighted: bool = True) -> SearchStrategy[Space]:
    """Spaces of dimension at most `most`: 0, ℝ, sums of different spaces, named or not, copowers, tensor products,
    weights."""
    return _strategy(lambda b: b.space(most), weighted=weighted)


def vectors(space: Space) -> SearchStrategy[Any]:
    """Elements of a space; tensors may be unevaluated."""
    return _strategy(lambda b: b.vector(space))


def linear_terms(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Linear terms of every class, from the given space or a random one."""
    return _strategy(lambda b: b.linear(b.space() if domain is None else domain), weighted=weighted)


def bilinears(weighted: bool = True) -> SearchStrategy[Bilinear]:
    """Bilinear functions of every class."""
    return _strategy(lambda b: b.bilinear(), weighted=weighted)


def functions(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Smooth functions: primitives, products, constants, arithmetic, families, compositions, with sharing."""
    return _strategy(lambda b: b.function(b.space() if domain is None else domain), weighted=weighted)


def scalar_functions(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Smooth functions into ℝ."""
    return _strategy(lambda b: b.scalar(b.space() if domain is None else domain), weighted=weighted)


def _strategy(build: Callable[[Builder], T], weighted: bool = True) -> SearchStrategy[T]:
    from hypothesis import strategies as st

    below = cache(lambda n: st.integers(0, n - 1))  # pyright: ignore

    @st.composite
    def drawn(draw: Any) -> T:
        return build(Builder(lambda n: draw(below(n)), weighted=weighted))

    return drawn()
