"""All laws, and how they are applied: the first that fits."""

from __future__ import annotations

from ..polynomials import Algebra, Labels, Monomial, Polynomial
from . import matrix_laws as matrix_laws  # enters its laws
from . import selection_laws as selection_laws
from .form_laws import laws_on
from .sum_laws import SUM_LAWS


def applied(algebra: Algebra, product: Monomial, rank: int) -> Monomial | None:
    """What the first law of products that applies gives."""
    for k, factor in enumerate(product.factors):
        for f in laws_on(factor.atom):
            found = f(algebra, product, k)
            if found is not None:
                return found
    return None


def applied_to_sums(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """What the first law of sums that applies gives."""
    for f in SUM_LAWS:
        found = f(algebra, shape, products)
        if found is not None:
            return found
    return None
