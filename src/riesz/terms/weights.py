"""Between a space V_w with weighted inner products, anywhere inside, and the same space V without: M is the Riesz map
of V_w. Two adjoint pairs."""

from __future__ import annotations

from ..spaces.space import Space
from .term import Term


class _FromWeighted(Term):
    space: Space

    def check(self) -> None:
        self._type(self.space, self.space.unweighted, True)


class _ToWeighted(Term):
    space: Space

    def check(self) -> None:
        self._type(self.space.unweighted, self.space, True)


class Forget(_FromWeighted):
    """V_w ⊸ V,  v ↦ v.   ⟨v, u⟩_V = ⟨v, M⁻¹u⟩_w, so its adjoint is M⁻¹."""


class Represent(_ToWeighted):
    """V ⊸ V_w,  u ↦ M⁻¹u: the Riesz representative of u; the adjoint of Forget."""


class Equip(_ToWeighted):
    """V ⊸ V_w,  v ↦ v.   ⟨v, w⟩_w = ⟨v, Mw⟩_V, so its adjoint is M."""


class Weigh(_FromWeighted):
    """V_w ⊸ V,  v ↦ Mv; the adjoint of Equip."""
