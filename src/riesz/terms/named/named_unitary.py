"""The unitary operators by their public names: bra, ket, transpose, assoc, distrib and their inverses   (§3.2)."""

from __future__ import annotations

from ...spaces.space import Copower, DirectSum, R, Space, Tensor
from ..open import Combinator, Maker, needs, opened
from ..term import Term
from ..unitary import Assoc, Bra, Distrib, Ket, Transpose, Unassoc, Unbra, Undistrib, Unket

__all__: list[str] = ["assoc", "bra", "distrib", "ket", "transpose", "unassoc", "unbra", "undistrib", "unket"]


bra: Combinator = Combinator("bra", Maker("bra", Bra), ())
ket: Combinator = Combinator("ket", Maker("ket", Ket), ())


def _tensor(space: Space, what: str, wanted: str) -> Tensor:
    if not isinstance(space, Tensor):
        raise needs(what, wanted, space)
    return space


@opened
def unbra(space: Space) -> Term:
    """unbra : ℝ ⊗ V ⊸ V, the inverse of bra: unbra(k ⊗ v) = k·v.

    >>> import riesz as rz
    >>> rz.unbra.at(rz.R @ rz.R ** rz.seg(2))
    unbra
    """
    if not isinstance(space, Tensor) or space.left is not R:
        raise needs("unbra", "ℝ ⊗ V", space)
    return Unbra(space.right)


@opened
def unket(space: Space) -> Term:
    """unket : V ⊗ ℝ ⊸ V, the inverse of ket: unket(v ⊗ k) = k·v.

    >>> import riesz as rz
    >>> rz.unket.at(rz.R ** rz.seg(2) @ rz.R).codomain
    ℝ^2
    """
    if not isinstance(space, Tensor) or space.right is not R:
        raise needs("unket", "V ⊗ ℝ", space)
    return Unket(space.left)


@opened
def transpose(space: Space) -> Term:
    """transpose : V ⊗ W ⊸ W ⊗ V,  v ⊗ w ↦ w ⊗ v.

    >>> import riesz as rz
    >>> rz.transpose.at(rz.R ** rz.seg(2) @ rz.R ** rz.seg(3)).codomain
    ℝ^3 ⊗ ℝ^2
    """
    t = _tensor(space, "transpose", "V ⊗ W")
    return Transpose(t.left, t.right)


@opened
def assoc(space: Space) -> Term:
    """assoc : (U ⊗ V) ⊗ W ⊸ U ⊗ (V ⊗ W).

    >>> import riesz as rz
    >>> V, W = rz.R ** rz.seg(2), rz.R ** rz.seg(3)
    >>> rz.assoc.at((V @ W) @ rz.R).codomain
    ℝ^2 ⊗ (ℝ^3 ⊗ ℝ)
    """
    t = _tensor(space, "assoc", "(U ⊗ V) ⊗ W")
    inside = _tensor(t.left, "assoc", "(U ⊗ V) ⊗ W")
    return Assoc(inside.left, inside.right, t.right)


@opened
def unassoc(space: Space) -> Term:
    """unassoc : U ⊗ (V ⊗ W) ⊸ (U ⊗ V) ⊗ W, the inverse of assoc.

    >>> import riesz as rz
    >>> V, W = rz.R ** rz.seg(2), rz.R ** rz.seg(3)
    >>> rz.unassoc.at(V @ (W @ rz.R)).codomain
    (ℝ^2 ⊗ ℝ^3) ⊗ ℝ
    """
    t = _tensor(space, "unassoc", "U ⊗ (V ⊗ W)")
    inside = _tensor(t.right, "unassoc", "U ⊗ (V ⊗ W)")
    return Unassoc(t.left, inside.left, inside.right)


@opened
def distrib(space: Space) -> Term:
    """distrib : (⊕V_x) ⊗ W ⊸ ⊕(V_x ⊗ W).

    >>> import riesz as rz
    >>> V, W = rz.R ** rz.seg(2), rz.R ** rz.seg(3)
    >>> rz.distrib.at((rz.R * V) @ W).codomain
    ℝ ⊗ ℝ^3 ⊕ ℝ^2 ⊗ ℝ^3
    """
    t = _tensor(space, "distrib", "(⊕V_x) ⊗ W")
    return Distrib(t.left, t.right)


@opened
def undistrib(space: Space) -> Term:
    """undistrib : ⊕(V_x ⊗ W) ⊸ (⊕V_x) ⊗ W, the inverse of distrib.

    >>> import riesz as rz
    >>> V, W = rz.R ** rz.seg(2), rz.R ** rz.seg(3)
    >>> rz.undistrib.at((rz.R @ W) * (V @ W)).codomain
    (ℝ ⊕ ℝ^2) ⊗ ℝ^3
    """
    match space:
        case Copower(base=Tensor() as t):
            return Undistrib(Copower(t.left, space.index), t.right)
        case DirectSum(summands=(Tensor() as first, *_)):
            parts = [s for s in space.summands if isinstance(s, Tensor) and s.right is first.right]
            if len(parts) == len(space.summands):
                return Undistrib(DirectSum(space.index, tuple([s.left for s in parts]), space.form), first.right)
        case _:
            pass
    raise needs("undistrib", "a sum ⊕(V_x ⊗ W) with one W", space)
