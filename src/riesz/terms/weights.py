"""Between a space and the same space with a weighted inner product, whose Riesz map is M: two adjoint pairs."""

from __future__ import annotations

from ..spaces import Space, Weighted
from .core import Term


def base(space: Space) -> Space:
    """V for a weighted V."""
    assert isinstance(space, Weighted)
    return space.base


class Forget(Term):
    """V_w ⊸ V,  v ↦ v.   ⟨v, u⟩_V = ⟨v, M⁻¹u⟩_w, so its adjoint is M⁻¹."""

    space: Space

    def check(self) -> None:
        self._type(self.space, base(self.space), True)


class Represent(Term):
    """V ⊸ V_w,  u ↦ M⁻¹u: the Riesz representative of u; the adjoint of Forget."""

    space: Space

    def check(self) -> None:
        self._type(base(self.space), self.space, True)


class Equip(Term):
    """V ⊸ V_w,  v ↦ v.   ⟨v, w⟩_w = ⟨v, Mw⟩_V, so its adjoint is M."""

    space: Space

    def check(self) -> None:
        self._type(base(self.space), self.space, True)


class Weigh(Term):
    """V_w ⊸ V,  v ↦ Mv; the adjoint of Equip."""

    space: Space

    def check(self) -> None:
        self._type(self.space, base(self.space), True)
