"""The unitary operators by their public names: bra, ket, transpose, assoc, distrib and their inverses   (§3.2)."""

from __future__ import annotations

from ..spaces import Copower, DirectSum, R, Space, Tensor
from .core import Term
from .makers import Maker, needs, opened
from .open import Combinator
from .unitary import Assoc, Bra, Distrib, Ket, Transpose, Unassoc, Unbra, Undistrib, Unket


def _tensor(space: Space, what: str, wanted: str) -> Tensor:
    if not isinstance(space, Tensor):
        raise needs(what, wanted, space)
    return space


def _unbra(space: Space) -> Term:
    t = _tensor(space, "unbra", "ℝ ⊗ V")
    if t.left is not R:
        raise needs("unbra", "ℝ ⊗ V", space)
    return Unbra(t.right)


def _unket(space: Space) -> Term:
    t = _tensor(space, "unket", "V ⊗ ℝ")
    if t.right is not R:
        raise needs("unket", "V ⊗ ℝ", space)
    return Unket(t.left)


def _transpose(space: Space) -> Term:
    t = _tensor(space, "transpose", "V ⊗ W")
    return Transpose(t.left, t.right)


def _assoc(space: Space) -> Term:
    t = _tensor(space, "assoc", "(U ⊗ V) ⊗ W")
    inside = _tensor(t.left, "assoc", "(U ⊗ V) ⊗ W")
    return Assoc(inside.left, inside.right, t.right)


def _unassoc(space: Space) -> Term:
    t = _tensor(space, "unassoc", "U ⊗ (V ⊗ W)")
    inside = _tensor(t.right, "unassoc", "U ⊗ (V ⊗ W)")
    return Unassoc(t.left, inside.left, inside.right)


def _distrib(space: Space) -> Term:
    t = _tensor(space, "distrib", "(⊕V_x) ⊗ W")
    return Distrib(t.left, t.right)


def _undistrib(space: Space) -> Term:
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


bra = Combinator("bra", Maker("bra", Bra), ())
ket = Combinator("ket", Maker("ket", Ket), ())
unbra = opened("unbra", _unbra)
unket = opened("unket", _unket)
transpose = opened("transpose", _transpose)
assoc = opened("assoc", _assoc)
unassoc = opened("unassoc", _unassoc)
distrib = opened("distrib", _distrib)
undistrib = opened("undistrib", _undistrib)
