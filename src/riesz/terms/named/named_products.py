"""Products by their public names: ⊛, ⊗, ⊙, ·, ⋆, ∗ and their sections (u ⋄), (⋄ v)   (§3.1, §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import SpaceError
from ...spaces.space import Copower, DirectSum, R, Space, Tensor, direct_sum, real_space, space_of
from ..bilinear import Bilinear, Contract, Hadamard, Inner, MatMul, MatVec, Outer, ScalarMul, Section
from ..open import Combinator, bridged, fit, frozen, maker, needs
from ..sums import Regroup, Unpack
from ..term import Arrow, Compose, Term

__all__: list[str] = ["contract", "contract_left", "contract_right", "hadamard", "inner", "left", "matmul", "matvec"]
__all__ += ["outer", "right", "scalar_mul"]


def two_components(space: Space, what: str) -> tuple[Space, Space, Term | None]:
    """The two components of a bilinear function's domain, and the map that takes a vector apart into them."""
    if isinstance(space, Copower) and space.index.size == 2:
        unpack, plain = Unpack(space.base, space.index), direct_sum(space.base, space.base)
        bridge = unpack if unpack.codomain is plain else Compose(Regroup(unpack.codomain, plain), unpack)
        return space.base, space.base, bridge
    if isinstance(space, DirectSum) and len(space.summands) == 2:
        plain = direct_sum(*space.summands)
        return (*space.summands, None if plain is space else Regroup(space, plain))
    raise needs(what, "a direct sum of two spaces", space)


def _bilinear(name: str, make: Callable[[Space, Space], Bilinear], weights: bool = False) -> Combinator:
    """A bilinear combinator; unless it uses `weights`, its arguments are taken without theirs."""

    def made(space: Space) -> Term:
        left, right, bridge = two_components(space, name)
        kept = weights and (name != "inner" or left is right)
        term = make(left, right) if kept else make(left.unweighted, right.unweighted)
        return _after(term, direct_sum(left, right), bridge)

    made.__doc__ = make.__doc__
    return Combinator(name, maker(name)(made), ())


def _after(term: Bilinear, given: Space, bridge: Term | None) -> Term:
    """term ∘ bridge, forgetting weights and renaming indices on the way."""
    step = None if term.domain is given else bridged(given, term.domain)
    inner = bridge if step is None else step if bridge is None else Compose(step, bridge)
    return term if inner is None else Compose(term, inner)


def _contract(left: Space, right: Space) -> Bilinear:
    """⊛ : (W ⊗ V) ⊕ (V ⊗ U) → W ⊗ U, the contraction over V: (w ⊗ v) ⊛ (v' ⊗ u) = (v ⊙ v')·(w ⊗ u).

    >>> import numpy as np, riesz as rz
    >>> x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> np.asarray(rz.contract(rz.outer(x, y), rz.outer(y, x)))
    array([[ 25.,  50.],
           [ 50., 100.]])
    """
    if isinstance(left, Tensor) and isinstance(right, Tensor) and left.right is right.left:
        return Contract(left.left, left.right, right.right)
    raise SpaceError(f"⊛ (contract) needs (W ⊗ V) ⊕ (V ⊗ U) with one V in the middle; got {left} and {right}")


def _outer(left: Space, right: Space) -> Bilinear:
    """⊗ : V ⊕ W → V ⊗ W, the outer product; it is not multiplied out before somebody asks.

    >>> import numpy as np, riesz as rz
    >>> t = rz.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> t, np.asarray(t).tolist()
    ([1, 2] ⊗ [3, 4], [[3.0, 4.0], [6.0, 8.0]])
    """
    return Outer(left, right)


def _inner(left: Space, right: Space) -> Bilinear:
    """⊙ : V ⊕ V → ℝ, the inner product of V.

    >>> import numpy as np, riesz as rz
    >>> rz.inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if left is not right:
        raise SpaceError(f"⊙ (inner) needs two vectors of one space; got {left} and {right}")
    return Inner(left)


def _scalar(left: Space, right: Space) -> Bilinear:
    """· : ℝ ⊕ V → V, a number times a vector.

    >>> import numpy as np, riesz as rz
    >>> rz.scalar_mul(2.0, np.array([3.0, 4.0]))
    array([6., 8.])
    """
    if left is not R:
        raise SpaceError(f"· (scalar_mul) needs a number and a vector, ℝ ⊕ V; got {left} and {right}")
    return ScalarMul(right)


def _hadamard(left: Space, right: Space) -> Bilinear:
    """The Hadamard product ℝ^X ⊕ ℝ^X → ℝ^X: the products of entries at the same index.

    >>> import numpy as np, riesz as rz
    >>> rz.hadamard(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 8.])
    """
    if left is not right:
        raise SpaceError(f"the Hadamard product needs two arrays of one shape; got {left} and {right}")
    return Hadamard(left)


def _array(space: Space, what: str) -> tuple[int, ...]:
    if isinstance(space, Copower) and space.base is R and space.index.box is not None:
        return space.index.box
    raise needs(what, "arrays ℝ^X", space)


def _matvec(left: Space, right: Space) -> Bilinear:
    """⋆ : ℝ^(X×Y) ⊕ ℝ^Y → ℝ^X, a matrix times a vector. `rz.left(rz.matvec, A)` is the linear map of the matrix A.

    >>> import numpy as np, riesz as rz
    >>> A, v = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([1.0, 1.0])
    >>> rz.matvec(A, v)
    array([3., 1.])
    """
    a, x = _array(left, "⋆ (matvec)"), _array(right, "⋆ (matvec)")
    if len(a) <= len(x) or a[len(a) - len(x) :] != x:
        raise SpaceError(f"⋆ (matvec) needs a matrix ℝ^(X×Y) and a vector ℝ^Y; got {left} and {right}")
    return MatVec(a[: len(a) - len(x)], x)


def _matmul(left: Space, right: Space) -> Bilinear:
    """The matrix product ℝ^(X×Y) ⊕ ℝ^(Y×Z) → ℝ^(X×Z).

    >>> import numpy as np, riesz as rz
    >>> rz.matmul(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [1.0]]))
    array([[3.],
           [1.]])
    """
    a, b = _array(left, "matmul"), _array(right, "matmul")
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise SpaceError(f"matmul needs matrices ℝ^(X×Y) and ℝ^(Y×Z); got {left} and {right}")
    return MatMul((a[0],), (a[1],), (b[1],))


contract = _bilinear("contract", _contract, weights=True)
outer = _bilinear("outer", _outer, weights=True)
inner = _bilinear("inner", _inner, weights=True)
scalar_mul = _bilinear("scalar_mul", _scalar)
matvec = _bilinear("matvec", _matvec)
matmul = _bilinear("matmul", _matmul)
hadamard = _bilinear("hadamard", _hadamard)


@maker("section", weights=True)
def _sections(space: Space, bilinear: Any, side: int, own: Space, leaves: tuple[Any, ...]) -> Term:
    both = direct_sum(space, own) if side else direct_sum(own, space)
    whole = fit(bilinear, both)
    core = whole.outer if isinstance(whole, Compose) else whole
    if not isinstance(core, Bilinear):
        raise SpaceError(f"{bilinear} is not bilinear at {both}: only bilinear functions have sections")
    section = Section(core, side, leaves)
    return section if section.domain is space else Compose(section, bridged(space, section.domain))


def left(bilinear: Any, u: Any, space: Space | None = None) -> Arrow:
    """(u ⋄) : V ⊸ W, a bilinear function with its first argument fixed (an element of `space`, by default of the space
    of u).

    >>> import riesz as rz, numpy as np
    >>> rz.left(rz.inner, np.array([1.0, 2.0]))(np.array([3.0, 4.0]))
    11.0
    """
    return _fixed(bilinear, 0, u, space)


def right(bilinear: Any, v: Any, space: Space | None = None) -> Arrow:
    """(⋄ v) : U ⊸ W, a bilinear function with its second argument fixed.

    >>> import numpy as np, riesz as rz
    >>> rz.right(rz.matvec, np.array([1.0, 1.0])).at(rz.R ** (rz.seg(1) * rz.seg(2)))(np.array([[3.0, 4.0]]))
    array([7.])
    """
    return _fixed(bilinear, 1, v, space)


def _fixed(bilinear: Any, side: int, value: Any, space: Space | None) -> Arrow:
    if isinstance(bilinear, Term) and not isinstance(bilinear, Bilinear):
        raise SpaceError(f"only bilinear functions have sections; {bilinear} is not bilinear")
    own = space_of(value) if space is None else space
    section = Combinator("section", _sections, (bilinear, side, own, frozen(own.open(value))))
    free = _certain(bilinear, side, own)
    return section if free is None else section.at(free)


def _certain(bilinear: Any, side: int, own: Space) -> Space | None:
    """The space of the free argument, where the fixed one leaves no doubt about it."""
    if isinstance(bilinear, Bilinear):
        return bilinear.left if side else bilinear.right
    if bilinear in (inner, hadamard) and (own is R or isinstance(own, Copower)):
        return own
    if bilinear is matvec and side == 0 and len(own.leaves) == 1 and len(own.leaves[0].shape) == 2:
        return real_space(own.leaves[0].shape[1:])
    return None


@maker("contract_side")
def _contractions(space: Space, side: int, own: Space, leaves: tuple[Any, ...]) -> Term:
    """(v ⊛) and (⊛ w); a matrix acts on plain arrays as well."""
    if isinstance(space, Tensor):
        if not isinstance(own, Tensor):
            sizes = _array(own, "⊛")
            if len(sizes) != 2:
                advice = f"an array with {len(sizes)} axes does not say which are V's: use a tensor"
                raise SpaceError(f"⊛ takes elements of V ⊗ W; {advice}")
            own = Tensor(real_space(sizes[:1]), real_space(sizes[1:]))
        both = (space, own) if side else (own, space)
        return Section(_contract(*both), side, leaves)
    shape = _array(own, "⊛") if not isinstance(own, Tensor) else (*own.leaves[0].shape,)
    x = _array(space, "⊛")
    rows, cols = (x, shape) if side else (shape, x)
    if len(shape) == 2 and len(x) == 2 and rows[1] == cols[0]:
        return Section(MatMul(rows[:1], rows[1:], cols[1:]), side, leaves)
    if len(shape) == 2 and len(x) == 1 and side == 0 and shape[1:] == x:
        return Section(MatVec(shape[:1], x), 0, leaves)
    where = "right" if side else "left"
    raise SpaceError(f"cannot contract {own} with {space}: the middle spaces differ (side {where})")


def _contraction(name: str, side: int, value: Any) -> Combinator:
    space = space_of(value)
    return Combinator(name, _contractions, (side, space, frozen(space.open(value))))


def contract_left(v: Any) -> Combinator:
    """(v ⊛) : V ⊗ U ⊸ W ⊗ U for v ∈ W ⊗ V; a matrix is taken as an element of ℝ^m ⊗ ℝ^n and acts on arrays too.

    >>> import riesz as rz, numpy as np
    >>> rz.contract_left(np.array([[1.0, 2.0], [0.0, 1.0]]))(np.array([1.0, 1.0]))
    array([3., 1.])
    """
    return _contraction("contract_left", 0, v)


def contract_right(w: Any) -> Combinator:
    """(⊛ w) : W ⊗ V ⊸ W ⊗ U for w ∈ V ⊗ U; a matrix acts on arrays too, from the right.

    >>> import numpy as np, riesz as rz
    >>> rz.contract_right(np.array([[1.0, 2.0], [0.0, 1.0]]))(np.array([[1.0, 1.0]]))
    array([[1., 3.]])
    """
    return _contraction("contract_right", 1, w)
