"""The combinators of direct sums and copowers by their public names: π, ι, Π, ⟨⟩, [], Δ, red, rep, Σ, +, dup, scan,
zip."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ...errors import SpaceError
from ...relations import Relation, diagonal
from ...relations.index_sets import Product, Seg, Set, boxes, remaining
from ...spaces.space import Copower, DirectSum, Space, direct_sum, space_of
from ..bilinear import Hadamard, Section
from ..open import Combinator, Maker, OpenConst, frozen, identity_at, make_family, maker, needs, opened, zero_at
from ..sums import Add, Dup, Fold, Inject, Project, Reduce, Rep, Scan, Total, Unzip, Zip
from ..term import Arrow, Compose, Term

__all__: list[str] = ["add", "block_diag", "const", "dup", "fork", "id", "inj", "join", "par", "proj", "red", "rep"]
__all__ += ["scan", "total", "total_over", "unzip", "zero", "zip"]

ArrowT = TypeVar("ArrowT", Term, Arrow)


@maker("proj")
def _projection(space: Space, which: Any) -> Term:
    match space:
        case DirectSum():
            return Project(space, space.position(which))
        case Copower():
            index, number = space.index, isinstance(which, (int, np.integer))
            from_end = number and isinstance(index, Seg) and -index.size <= which < 0
            at = which + index.size if from_end else which
            if at not in index:
                raise SpaceError(f"there is no component {which!r} in {space}: {which!r} is not an element of {index}")
            return Project(space, index.position(at))
        case _:
            raise SpaceError(f"there is no component {which!r} in {space}: it is not a direct sum")


def proj(which: Any) -> Combinator:
    """π_y : ⊕V_x ⊸ V_y; `which` is a position, a name, or an element of the index set.

    >>> import riesz as rz
    >>> rz.proj(1)((2.0, 3.0))
    3.0
    """
    if isinstance(which, (list, dict, set, np.ndarray)):
        wanted = "a position, a name or an element of an index set (a tuple for X×Y)"
        raise SpaceError(f"proj takes {wanted}; got {which!r}")
    return Combinator(f"proj({which!r})", _projection, (which,))


@maker("inj", weights=True)
def _injection(space: Space, which: Any, into: Any) -> Term:
    match into:
        case int():
            target = direct_sum(*[space] * into)
            return Inject(target, target.position(which))
        case Set():
            return Inject(Copower(space, into), into.position(which))
        case DirectSum():
            found = Inject(into, into.position(which))
        case Copower():
            found = Inject(into, into.index.position(which))
        case _:
            wanted = "a number of copies, an index set or a direct sum to inject into"
            raise SpaceError(f"inj(i, n) takes {wanted}; got {into!r}")
    if found.domain is not space:
        raise SpaceError(f"cannot inject {space} as component {which!r} of {into}: that component is {found.domain}")
    return found


def inj(which: Any, into: Any) -> Combinator:
    """ι_y : V_y ⊸ ⊕V_x; `into` is a number of copies of V, an index set (for V^X), or the direct sum itself.

    >>> import riesz as rz
    >>> rz.inj(1, 3)(5.0)
    (0.0, 5.0, 0.0)
    """
    target = int(cast(Any, into)) if isinstance(into, np.integer) else into
    count = target if isinstance(target, int) else None
    if count is not None and isinstance(which, int) and not -count <= which < count:
        raise SpaceError(f"there is no component {which} among {count}: they are 0 to {count - 1}")
    if isinstance(target, Set):
        target.position(which)
    return Combinator(f"inj({which!r})", _injection, (which, target))


def par(*terms: ArrowT) -> ArrowT:
    """Π f_x : ⊕V_x → ⊕W_x, each function on its component: f × g for two.

    >>> import riesz as rz
    >>> rz.par(rz.exp, rz.id)((0.0, 2.0))
    (1.0, 2.0)
    """
    return cast(ArrowT, make_family("Π", terms))


def fork(*terms: ArrowT) -> ArrowT:
    """⟨f_y⟩ : U → ⊕V_y, all functions on one argument.

    >>> import riesz as rz
    >>> rz.fork(rz.id, rz.exp)(0.0)
    (0.0, 1.0)
    """
    return cast(ArrowT, make_family("⟨⟩", terms))


def join(*terms: ArrowT) -> ArrowT:
    """[g_x] : ⊕V_x ⊸ W, the sum of linear maps of the components.

    >>> import riesz as rz
    >>> rz.join(rz.id, 2.0 * rz.id)((1.0, 3.0))
    7.0
    """
    return cast(ArrowT, make_family("[]", terms))


def block_diag(terms: Sequence[Any]) -> Arrow:
    """Δ(f_x) : ⊕V_x ⊸ ⊕W_x, a family of linear maps as one, each on its component.

    >>> import riesz as rz
    >>> rz.block_diag([rz.id, 2.0 * rz.id])((1.0, 3.0))
    (1.0, 6.0)
    """
    return make_family("Δ", tuple(terms))


@maker("red")
def _reduction(space: Space, relation: Relation, how: str = "sum") -> Term:
    if isinstance(space, Copower) and space.index is not relation.source:
        rest = remaining(space.index, relation.source)
        for axis in () if rest is None else rest.factors if isinstance(rest, Product) else (rest,):
            relation = relation * diagonal(axis)  # V^(X×Z) is (V^Z)^X: an array with more axes than X has
    if not isinstance(space, Copower) or space.index is not relation.source:
        X, Y = relation.source, relation.target
        raise SpaceError(f"red_R with R ⊆ {X} × {Y} starts at V^({X}), but is used at {space}")
    if how == "sum":
        return Reduce(relation, space.base)
    count, W = relation.in_degrees, Copower(space.base, relation.target)
    if how == "mean" and count.all() and W.plain and not any([leaf.formal for leaf in W.leaves]):  # linear
        weights: list[Any] = []
        for box, at in boxes(relation.target):
            part, shape = 1.0 / (count if at is None else count[at]), box.box or ()
            for leaf in space.base.leaves:
                weights.append(np.broadcast_to(part.reshape(*shape, *(1,) * len(leaf.shape)), (*shape, *leaf.shape)))
        return Compose(Section(Hadamard(W), 0, frozen(weights)), Reduce(relation, space.base))
    return Fold(relation, space.base, how)


HOW = ("sum", "mean", "max", "min", "prod", "logsumexp")


def red(relation: Relation | Any, how: str = "sum") -> Combinator:
    """red_R : V^X ⊸ V^Y,  (red_R v)_y = Σ_{(x,y)∈R} v_x; `how`: "sum", or "mean", "max", "min", "prod", "logsumexp".

    >>> import riesz as rz, numpy as np
    >>> R = rz.relations.function(rz.seg(3), rz.seg(2), [0, 1, 0])
    >>> rz.red(R)(np.array([1.0, 2.0, 3.0]))
    array([4., 2.])

    An array with more axes is reduced along those of X, which come first.

    >>> rz.red(R)(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([[6., 8.],
           [3., 4.]])

    What `group_by` gives stands for its relation. The others are max_R, min_R, …, taken at each place of V. Sources
    that attain a maximum share its derivative equally, pair by pair. A pair that counts twice is squared in a product
    and adds ln 2 in ln Σ exp. A target without pairs has −inf, inf, 1, −inf, and nan as a mean.

    >>> rz.red(R, "max")(np.array([1.0, 2.0, 3.0])), rz.grad(rz.total @ rz.red(R, "max"))(np.array([3.0, 2.0, 3.0]))
    (array([3., 2.]), array([0.5, 1. , 0.5]))
    """
    if not isinstance(cast(Any, relation), Relation):
        relation = getattr(relation, "relation", relation)  # of group_by
    if not isinstance(cast(Any, relation), Relation):
        raise SpaceError(f"red(R) takes a relation; got {relation!r} (see riesz.relations)")
    if how not in HOW:
        raise SpaceError(f"red(R, how) takes one of {', '.join(map(repr, HOW))}; got {how!r}")
    return Combinator("red", _reduction, (relation,) if how == "sum" else (relation, how))


@maker("rep", weights=True)
def _replication(space: Space, index: Set, only: Any) -> Term:
    return Rep(index, space, only)


def _some(index: Set, only: Any) -> tuple[int, ...] | None:
    return None if only is None else tuple(sorted({index.position(x) for x in only}))


def rep(index: Set, only: Iterable[Any] | None = None) -> Combinator:
    """rep_Y : V ⊸ V^X, v at every index in Y ⊆ X (`only`; all of X by default), zero elsewhere.

    >>> import riesz as rz
    >>> rz.rep(rz.seg(3))(2.0), rz.rep(rz.seg(3), only=[1])(2.0)
    (array([2., 2., 2.]), array([0., 2., 0.]))
    """
    if not isinstance(cast(Any, index), Set):
        raise SpaceError(f"rep(X) takes an index set; got {index!r}: write seg({index!r})")
    return Combinator("rep", _replication, (index, _some(index, only)))


@maker("total")
def _summation(space: Space, only: Any) -> Term:
    """Σ : V^X ⊸ V, the sum of all components. Its adjoint is rep, which repeats a vector at every index.

    >>> import numpy as np, riesz as rz
    >>> rz.total(np.array([1.0, 2.0, 3.0]))
    6.0
    >>> rz.grad(rz.total @ rz.sin ** rz.seg(2))(np.zeros(2))
    array([1., 1.])
    """
    if not isinstance(space, Copower):
        raise needs("Σ (total)", "a copower V^X", space)
    return Total(space.index, space.base, _some(space.index, only))


def total_over(only: Iterable[Any]) -> Combinator:
    """Σ_Y : V^X ⊸ V, the sum over the elements of Y ⊆ X alone.

    >>> import numpy as np, riesz as rz
    >>> rz.total_over([0, 2])(np.array([1.0, 2.0, 4.0]))
    5.0
    """
    return Combinator("total", _summation, (tuple(only),))


@opened
def add(space: Space) -> Term:
    """+ : V ⊕ … ⊕ V ⊸ V, the sum of components that are all in one space. Its adjoint is dup.

    >>> import riesz as rz
    >>> rz.add((1.0, 2.0))
    3.0
    """
    match space:
        case DirectSum():
            return Add(space)
        case Copower():
            return Total(space.index, space.base, None)
        case _:
            raise needs("+ (add)", "a direct sum of equal spaces", space)


def _dup(space: Space) -> Term:
    """dup : V ⊸ V ⊕ V, a vector twice. Its adjoint is +.

    >>> import riesz as rz
    >>> rz.dup(3.0)
    (3.0, 3.0)
    """
    return Dup(direct_sum(space, space))


@opened
def scan(space: Space) -> Term:
    """scan : V^n ⊸ V^n, the running sums.

    >>> import numpy as np, riesz as rz
    >>> rz.scan(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    if not isinstance(space, Copower) or not isinstance(space.index, Seg):
        raise needs("scan", "a copower V^n over a segment", space)
    return Scan(space.index, space.base)


@opened
def zip(space: Space) -> Term:
    """zip : (⊕V_x) ⊕ (⊕W_x) ⊸ ⊕(V_x ⊕ W_x), two families as one family of pairs.

    >>> import riesz as rz
    >>> rz.zip(((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
    ((1.0, 4.0), (2.0, 5.0), (3.0, 6.0))
    """
    if not isinstance(space, DirectSum):
        raise needs("zip", "a direct sum of sums over one index set", space)
    return Zip(space)


@opened
def unzip(space: Space) -> Term:
    """unzip : ⊕(V_x ⊕ W_x) ⊸ (⊕V_x) ⊕ (⊕W_x), the inverse of zip.

    >>> import riesz as rz
    >>> rz.unzip(((1.0, 4.0), (2.0, 5.0), (3.0, 6.0)))
    ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    """
    match space:
        case Copower(base=DirectSum() as row):
            return Unzip(DirectSum(row.index, tuple([Copower(s, space.index) for s in row.summands]), row.form))
        case DirectSum(summands=(DirectSum() as row, *_)) if all([_alike(s, row) for s in space.summands]):
            columns = builtins.zip(*[cast(DirectSum, s).summands for s in space.summands], strict=True)
            parts = [DirectSum(space.index, column, space.form) for column in columns]
            return Unzip(DirectSum(row.index, tuple(parts), row.form))
        case _:
            raise needs("unzip", "a sum ⊕(V_x ⊕ W_x)", space)


def _alike(s: Space, row: DirectSum) -> bool:
    return isinstance(s, DirectSum) and s.index is row.index and s.form is row.form


id: Combinator = Combinator("id", Maker("id", identity_at), ())
zero: Combinator = Combinator("zero", zero_at, ())
total: Combinator = Combinator("total", _summation, (None,))
dup: Combinator = Combinator("dup", Maker("dup", _dup), ())


def const(value: Any, space: Space | None = None) -> OpenConst:
    """K_w : V → W,  K_w(v) = w. The vector is copied unless it is read-only; `space` says which space it is from, where
    the value does not.

    >>> import riesz as rz
    >>> rz.const((1.0, 2.0))(0.5)
    (1.0, 2.0)
    """
    target = space_of(value) if space is None else space
    return OpenConst(target, frozen(target.open(value)))
