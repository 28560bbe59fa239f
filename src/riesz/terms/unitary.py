"""Unitary operators: bra, ket, transpose, assoc, distrib and their inverses, which are their adjoints   (§3.2)."""

from __future__ import annotations

from ..errors import SpaceError
from ..spaces.space import Copower, DirectSum, R, Space, Tensor
from .term import Term, Undoing, Unitary, inverses


class Bra(Unitary):
    """bra : V ⊸ ℝ ⊗ V,  bra(v) = 1 ⊗ v.

    >>> import riesz as rz
    >>> rz.bra.at(rz.R ** rz.seg(2)).codomain
    ℝ ⊗ ℝ^2
    """

    space: Space

    def check(self) -> None:
        self._type(self.space, Tensor(R, self.space), True)


class Unbra(Undoing):
    """unbra : ℝ ⊗ V ⊸ V,  |k ⊗ v| = k · v."""

    space: Space


class Ket(Unitary):
    """ket : V ⊸ V ⊗ ℝ,  ket(v) = v ⊗ 1.

    >>> import riesz as rz
    >>> rz.ket.at(rz.R ** rz.seg(2)).codomain
    ℝ^2 ⊗ ℝ
    """

    space: Space

    def check(self) -> None:
        self._type(self.space, Tensor(self.space, R), True)


class Unket(Undoing):
    """unket : V ⊗ ℝ ⊸ V,  |v ⊗ k| = k · v."""

    space: Space


class Transpose(Unitary):
    """(_)ᵀ : V ⊗ W ⊸ W ⊗ V,  (v ⊗ w)ᵀ = w ⊗ v."""

    first: Space
    last: Space

    def check(self) -> None:
        self._type(Tensor(self.first, self.last), Tensor(self.last, self.first), True)

    @property
    def inverse(self) -> Term:
        return Transpose(self.last, self.first)


class Assoc(Unitary):
    """assoc : (U ⊗ V) ⊗ W ⊸ U ⊗ (V ⊗ W)."""

    first: Space
    middle: Space
    last: Space

    def check(self) -> None:
        U, V, W = self.first, self.middle, self.last
        self._type(Tensor(Tensor(U, V), W), Tensor(U, Tensor(V, W)), True)


class Unassoc(Undoing):
    """unassoc : U ⊗ (V ⊗ W) ⊸ (U ⊗ V) ⊗ W."""

    first: Space
    middle: Space
    last: Space


class Distrib(Unitary):
    """distrib : (⊕V_x) ⊗ W ⊸ ⊕(V_x ⊗ W)."""

    sums: Space
    last: Space

    def check(self) -> None:
        self._type(Tensor(self.sums, self.last), _distributed(self.sums, self.last), True)


class Undistrib(Undoing):
    """undistrib : ⊕(V_x ⊗ W) ⊸ (⊕V_x) ⊗ W."""

    sums: Space
    last: Space


inverses((Bra, Unbra), (Ket, Unket), (Assoc, Unassoc), (Distrib, Undistrib))


def _distributed(sums: Space, right: Space) -> Space:
    match sums:
        case DirectSum():
            return DirectSum(sums.index, tuple([Tensor(s, right) for s in sums.summands]), sums.form)
        case Copower():
            return Copower(Tensor(sums.base, right), sums.index)
        case _:
            raise SpaceError(f"distrib needs a direct sum or copower on the left of ⊗; got {sums} ⊗ {right}")
