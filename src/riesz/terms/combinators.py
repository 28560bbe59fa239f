"""The combinators by their public names. Each docstring gives type and defining equation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from ..errors import SpaceError
from ..relations import Relation, freeze
from ..sets import Seg, Set
from ..spaces import Copower, DirectSum, R, Space, Tensor, Weighted, direct_sum, real_space, space_of
from .core import Arrow, Compose, Term
from .declared import declare_bilinear, declare_linear
from .open import Combinator, OpenConst, coerce, fit, identity_at, make_family, zero_at
from .sums import Add, Dup, Inject, Project, Reduce, Rep, Scan, Total, Unzip, Zip
from .tensors import (
    Assoc,
    Bilinear,
    Bra,
    Contract,
    Distrib,
    Hadamard,
    Inner,
    Ket,
    MatMul,
    MatVec,
    Outer,
    ScalarMul,
    Section,
    Transpose,
    Unassoc,
    Unbra,
    Undistrib,
    Unket,
)
from .weights import Forget

MakerT = Callable[..., Term]


def frozen(leaves: Iterable[Any]) -> tuple[Any, ...]:
    """Leaves that nobody can change any more."""
    return tuple([freeze(cast(Any, x)) if isinstance(x, np.ndarray) else x for x in leaves])


def _past_weight(maker: MakerT) -> MakerT:
    """A maker that enters a weighted space through Forget."""

    def made(space: Space, *parameters: Any) -> Term:
        if isinstance(space, Weighted):
            return Compose(maker(space.base, *parameters), Forget(space))
        return maker(space, *parameters)

    made.__name__ = maker.__name__
    made.__qualname__ = maker.__qualname__
    return made


class _Maker:
    """A picklable maker: found again by its name."""

    def __init__(self, name: str, maker: MakerT) -> None:
        self.name, self.maker = name, maker
        _makers[name] = self

    def __call__(self, space: Space, *parameters: Any) -> Term:
        return self.maker(space, *parameters)

    def __reduce__(self) -> Any:
        return _find_maker, (self.name,)


_makers: dict[str, _Maker] = {}


def _find_maker(name: str) -> _Maker:
    return _makers[name]


def _needs(what: str, wanted: str, space: Space) -> SpaceError:
    return SpaceError(f"{what} needs {wanted}; got {space}")


def _open(name: str, maker: MakerT) -> Combinator:
    return Combinator(name, _Maker(name, _past_weight(maker)), ())


# -- sums --------------------------------------------------------------------------------------------------


def _project(space: Space, which: Any) -> Term:
    match space:
        case DirectSum():
            return Project(space, space.position(which))
        case Copower():
            whole = isinstance(which, (int, np.integer)) and isinstance(space.index, Seg)
            at = which + space.index.size if whole and -space.index.size <= which < 0 else which
            if at not in space.index:
                raise SpaceError(f"there is no component {which!r} in {space}: {which!r} is not an element of {space.index}")
            return Project(space, space.index.position(at))
        case _:
            raise SpaceError(f"there is no component {which!r} in {space}: it is not a direct sum")


_projection = _Maker("proj", _past_weight(_project))


def proj(which: Any) -> Combinator:
    """π_y : ⊕V_x ⊸ V_y; `which` is a position, a name, or an element of the index set.

    >>> import riesz as rz
    >>> rz.proj(1)((2.0, 3.0))
    3.0
    """
    return Combinator(f"proj({which!r})", _projection, (which,))


def _inject(space: Space, which: Any, into: Any) -> Term:
    match into:
        case int():
            target: Space = direct_sum(*[space] * into)
            return Inject(target, cast(DirectSum, target).position(which))
        case Set():
            return Inject(Copower(space, into), into.position(which))
        case DirectSum():
            found = Inject(into, into.position(which))
        case Copower():
            found = Inject(into, into.index.position(which))
        case _:
            raise SpaceError(f"inj(i, n) takes a number of copies, an index set or a direct sum to inject into; got {into!r}")
    if found.domain is not space:
        raise SpaceError(f"cannot inject {space} as component {which!r} of {into}: that component is {found.domain}")
    return found


_injection = _Maker("inj", _inject)


def inj(which: Any, into: Any) -> Combinator:
    """ι_y : V_y ⊸ ⊕V_x; `into` is a number of copies of V, an index set (for V^X), or the direct sum itself.

    >>> import riesz as rz
    >>> rz.inj(1, 3)(5.0)
    (0.0, 5.0, 0.0)
    """
    return Combinator(f"inj({which!r})", _injection, (which, int(into) if isinstance(into, np.integer) else into))


def par(*terms: Any) -> Arrow:
    """Π f_x : ⊕V_x → ⊕W_x, each function on its component: f × g for two.

    >>> import riesz as rz
    >>> rz.par(rz.exp, rz.id)((0.0, 2.0))
    (1.0, 2.0)
    """
    return make_family("Π", _members(terms))


def fork(*terms: Any) -> Arrow:
    """⟨f_y⟩ : U → ⊕V_y, all functions on one argument.

    >>> import riesz as rz
    >>> rz.fork(rz.id, rz.exp)(0.0)
    (0.0, 1.0)
    """
    return make_family("⟨⟩", _members(terms))


def join(*terms: Any) -> Arrow:
    """[g_x] : ⊕V_x ⊸ W, the sum of linear maps of the components.

    >>> import riesz as rz
    >>> rz.join(rz.id, 2.0 * rz.id)((1.0, 3.0))
    7.0
    """
    return make_family("[]", _members(terms))


def block_diag(terms: Sequence[Any]) -> Arrow:
    """Δ(f_x) : ⊕V_x ⊸ ⊕W_x, a family of linear maps as one."""
    return make_family("Δ", _members(tuple(terms)))


def _members(terms: tuple[Any, ...]) -> tuple[Any, ...]:
    if not terms:
        raise SpaceError("a family needs at least one function")
    return terms


def _reduce(space: Space, relation: Relation) -> Term:
    if not isinstance(space, Copower) or space.index is not relation.source:
        raise SpaceError(f"red_R with R ⊆ {relation.source} × {relation.target} starts at V^({relation.source}), but is used at {space}")
    return Reduce(relation, space.base)


_reduction = _Maker("red", _past_weight(_reduce))


def red(relation: Relation) -> Combinator:
    """red_R : V^X ⊸ V^Y,  (red_R v)_y = Σ_{(x,y)∈R} v_x.

    >>> import riesz as rz, numpy as np
    >>> R = rz.relations.function(rz.seg(3), rz.seg(2), [0, 1, 0])
    >>> rz.red(R)(np.array([1.0, 2.0, 3.0]))
    array([4., 2.])
    """
    if not isinstance(cast(Any, relation), Relation):
        raise SpaceError(f"red(R) takes a relation; got {relation!r} (see riesz.relations)")
    return Combinator("red", _reduction, (relation,))


def _rep(space: Space, index: Set, only: Any) -> Term:
    return Rep(index, space, only)


_replication = _Maker("rep", _rep)


def _some(index: Set, only: Any) -> tuple[int, ...] | None:
    return None if only is None else tuple(sorted({index.position(x) for x in only}))


def rep(index: Set, only: Iterable[Any] | None = None) -> Combinator:
    """rep_Y : V ⊸ V^X, v at every index in Y ⊆ X (`only`; all of X by default), zero elsewhere."""
    if not isinstance(cast(Any, index), Set):
        raise SpaceError(f"rep(X) takes an index set; got {index!r}: write seg({index!r})")
    return Combinator("rep", _replication, (index, _some(index, only)))


def _total(space: Space, only: Any) -> Term:
    if not isinstance(space, Copower):
        raise _needs("Σ (total)", "a copower V^X", space)
    return Total(space.index, space.base, _some(space.index, only))


_summation = _Maker("total", _past_weight(_total))


def total_over(only: Iterable[Any]) -> Combinator:
    """Σ_Y : V^X ⊸ V, the sum over the elements of Y ⊆ X alone."""
    return Combinator("total", _summation, (tuple(only),))


def _add(space: Space) -> Term:
    match space:
        case DirectSum():
            return Add(space)
        case Copower():
            return Total(space.index, space.base, None)
        case _:
            raise _needs("+ (add)", "a direct sum of equal spaces", space)


def _scan(space: Space) -> Term:
    if not isinstance(space, Copower) or not isinstance(space.index, Seg):
        raise _needs("scan", "a copower V^n over a segment", space)
    return Scan(space.index, space.base)


def _zip(space: Space) -> Term:
    if not isinstance(space, DirectSum):
        raise _needs("zip", "a direct sum of sums over one index set", space)
    return Zip(space)


def _unzip(space: Space) -> Term:
    match space:
        case Copower(base=DirectSum() as row):
            return Unzip(DirectSum(row.index, tuple([Copower(s, space.index) for s in row.summands]), row.form))
        case DirectSum(summands=(DirectSum() as row, *_)) if all([_alike(s, row) for s in space.summands]):
            columns = zip(*[cast(DirectSum, s).summands for s in space.summands], strict=True)
            parts = [DirectSum(space.index, column, space.form) for column in columns]
            return Unzip(DirectSum(row.index, tuple(parts), row.form))
        case _:
            raise _needs("unzip", "a sum ⊕(V_x ⊕ W_x)", space)


def _alike(s: Space, row: DirectSum) -> bool:
    return isinstance(s, DirectSum) and s.index is row.index and s.form is row.form


id = Combinator("id", _Maker("id", identity_at), ())
zero = Combinator("zero", zero_at, ())
total = Combinator("total", _summation, (None,))
add = _open("add", _add)
dup = Combinator("dup", _Maker("dup", Dup), ())
scan = _open("scan", _scan)
zip = _open("zip", _zip)  # noqa: A001
unzip = _open("unzip", _unzip)


def const(value: Any) -> OpenConst:
    """K_w : V → W,  K_w(v) = w. The vector is copied unless it is read-only.

    >>> import riesz as rz
    >>> rz.const((1.0, 2.0))(0.5)
    (1.0, 2.0)
    """
    space = space_of(value)
    return OpenConst(space, frozen(space.open(value)))


# -- products ----------------------------------------------------------------------------------------------


def _two(space: Space, what: str) -> tuple[Space, Space, Term | None]:
    """The two components of a bilinear function's domain, and the map that takes a vector apart into them."""
    if isinstance(space, Copower) and space.index.size == 2:
        return space.base, space.base, coerce(space, direct_sum(space.base, space.base))
    if isinstance(space, DirectSum) and len(space.summands) == 2:
        plain = direct_sum(*space.summands)
        from .sums import Regroup

        return (*space.summands, None if plain is space else Regroup(space, plain))
    raise _needs(what, "a direct sum of two spaces", space)


def _bilinear(name: str, make: Callable[[Space, Space], Bilinear]) -> Combinator:
    def maker(space: Space) -> Term:
        left, right, bridge = _two(space, name)
        term = make(left, right)
        inner = bridge if term.left is left and term.right is right else _bridge(term, left, right, bridge)
        return term if inner is None else Compose(term, inner)

    return _open(name, maker)


def _bridge(term: Bilinear, left: Space, right: Space, bridge: Term | None) -> Term:
    from .sums import Regroup

    regroup = Regroup(direct_sum(left, right), term.domain)
    return regroup if bridge is None else Compose(regroup, bridge)


def _contract(left: Space, right: Space) -> Bilinear:
    if isinstance(left, Tensor) and isinstance(right, Tensor) and left.right is right.left:
        return Contract(left.left, left.right, right.right)
    raise SpaceError(f"⊛ (contract) needs (W ⊗ V) ⊕ (V ⊗ U) with one V in the middle; got {left} and {right}")


def _inner(left: Space, right: Space) -> Bilinear:
    if left is not right:
        raise SpaceError(f"⊙ (inner) needs two vectors of one space; got {left} and {right}")
    return Inner(left)


def _scalar(left: Space, right: Space) -> Bilinear:
    if left is not R:
        raise SpaceError(f"· (scalar_mul) needs a number and a vector, ℝ ⊕ V; got {left} and {right}")
    return ScalarMul(right)


def _hadamard(left: Space, right: Space) -> Bilinear:
    if left is not right:
        raise SpaceError(f"the Hadamard product needs two arrays of one shape; got {left} and {right}")
    return Hadamard(left)


def _array(space: Space, what: str) -> tuple[int, ...]:
    if isinstance(space, Copower) and space.base is R and space.index.box is not None:
        return space.index.box
    raise _needs(what, "arrays ℝ^X", space)


def _matvec(left: Space, right: Space) -> Bilinear:
    a, x = _array(left, "⋆ (matvec)"), _array(right, "⋆ (matvec)")
    if len(a) <= len(x) or a[len(a) - len(x) :] != x:
        raise SpaceError(f"⋆ (matvec) needs a matrix ℝ^(X×Y) and a vector ℝ^Y; got {left} and {right}")
    return MatVec(a[: len(a) - len(x)], x)


def _matmul(left: Space, right: Space) -> Bilinear:
    a, b = _array(left, "matmul"), _array(right, "matmul")
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        raise SpaceError(f"matmul needs matrices ℝ^(X×Y) and ℝ^(Y×Z); got {left} and {right}")
    return MatMul((a[0],), (a[1],), (b[1],))


contract = _bilinear("contract", _contract)
outer = _bilinear("outer", lambda left, right: Outer(left, right))
inner = _bilinear("inner", _inner)
scalar_mul = _bilinear("scalar_mul", _scalar)
matvec = _bilinear("matvec", _matvec)
matmul = _bilinear("matmul", _matmul)
hadamard = _bilinear("hadamard", _hadamard)


def _section(space: Space, bilinear: Any, side: int, own: Space, leaves: tuple[Any, ...]) -> Term:
    both = direct_sum(space, own) if side else direct_sum(own, space)
    whole = fit(bilinear, both)
    core, bridge = (whole.outer, whole.inner) if isinstance(whole, Compose) else (whole, None)
    if not isinstance(core, Bilinear):
        raise SpaceError(f"{bilinear} is not bilinear at {both}: only bilinear functions have sections")
    section = Section(core, side, leaves)
    if bridge is None:
        return section
    from .sums import Regroup

    return Compose(section, Regroup(space, section.domain))


_sections = _Maker("section", _past_weight(_section))


def left(bilinear: Any, u: Any) -> Combinator:
    """(u ⋄) : V ⊸ W, a bilinear function with its first argument fixed.

    >>> import riesz as rz, numpy as np
    >>> rz.left(rz.inner, np.array([1.0, 2.0]))(np.array([3.0, 4.0]))
    11.0
    """
    return _fixed(bilinear, 0, u)


def right(bilinear: Any, v: Any) -> Combinator:
    """(⋄ v) : U ⊸ W, a bilinear function with its second argument fixed."""
    return _fixed(bilinear, 1, v)


def _fixed(bilinear: Any, side: int, value: Any) -> Combinator:
    space = space_of(value)
    return Combinator("section", _sections, (bilinear, side, space, frozen(space.open(value))))


def _contract_side(space: Space, side: int, own: Space, leaves: tuple[Any, ...]) -> Term:
    """(v ⊛) and (⊛ w); a matrix acts on plain arrays as well."""
    if isinstance(space, Tensor):
        if not isinstance(own, Tensor):
            own = _as_tensor(own)
        both = (space, own) if side else (own, space)
        return Section(_contract(*both), side, leaves)
    shape = _array(own, "⊛") if not isinstance(own, Tensor) else (*own.leaves[0].shape,)
    x = _array(space, "⊛")
    if side == 0 and len(x) == 1 and len(shape) == 2 and shape[1] == x[0]:
        return Section(MatVec((shape[0],), x), 0, leaves)
    if side == 0 and len(x) == 2 and len(shape) == 2 and shape[1] == x[0]:
        return Section(MatMul((shape[0],), (shape[1],), (x[1],)), 0, leaves)
    if side == 1 and len(x) == 2 and len(shape) == 2 and x[1] == shape[0]:
        return Section(MatMul((x[0],), (x[1],), (shape[1],)), 1, leaves)
    raise SpaceError(f"cannot contract {own} with {space}: the middle spaces differ (side {'right' if side else 'left'})")


def _as_tensor(space: Space) -> Tensor:
    shape = _array(space, "⊛")
    if len(shape) != 2:
        raise SpaceError(f"⊛ takes elements of V ⊗ W; an array with {len(shape)} axes does not say which are V's: use a tensor")
    return Tensor(real_space(shape[:1]), real_space(shape[1:]))


_contractions = _Maker("contract_side", _past_weight(_contract_side))


def _tensor_leaves(value: Any) -> tuple[Space, tuple[Any, ...]]:
    space = space_of(value)
    return space, frozen(space.open(value))


def contract_left(v: Any) -> Combinator:
    """(v ⊛) : V ⊗ U ⊸ W ⊗ U for v ∈ W ⊗ V; a matrix is taken as an element of ℝ^m ⊗ ℝ^n and acts on arrays too.

    >>> import riesz as rz, numpy as np
    >>> rz.contract_left(np.array([[1.0, 2.0], [0.0, 1.0]]))(np.array([1.0, 1.0]))
    array([3., 1.])
    """
    return Combinator("contract_left", _contractions, (0, *_tensor_leaves(v)))


def contract_right(w: Any) -> Combinator:
    """(⊛ w) : W ⊗ V ⊸ W ⊗ U for w ∈ V ⊗ U."""
    return Combinator("contract_right", _contractions, (1, *_tensor_leaves(w)))


# -- unitary operators ---------------------------------------------------------------------------------------


def _tensor(space: Space, what: str, wanted: str) -> Tensor:
    if not isinstance(space, Tensor):
        raise _needs(what, wanted, space)
    return space


def _unbra(space: Space) -> Term:
    t = _tensor(space, "unbra", "ℝ ⊗ V")
    if t.left is not R:
        raise _needs("unbra", "ℝ ⊗ V", space)
    return Unbra(t.right)


def _unket(space: Space) -> Term:
    t = _tensor(space, "unket", "V ⊗ ℝ")
    if t.right is not R:
        raise _needs("unket", "V ⊗ ℝ", space)
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
    raise _needs("undistrib", "a sum ⊕(V_x ⊗ W) with one W", space)


bra = Combinator("bra", _Maker("bra", Bra), ())
ket = Combinator("ket", _Maker("ket", Ket), ())
unbra = _open("unbra", _unbra)
unket = _open("unket", _unket)
transpose = _open("transpose", _transpose)
assoc = _open("assoc", _assoc)
unassoc = _open("unassoc", _unassoc)
distrib = _open("distrib", _distrib)
undistrib = _open("undistrib", _undistrib)


# -- declared functions ----------------------------------------------------------------------------------------


def _declared_linear(space: Space, function: Any, adjoint: Any, codomain: Space | None, name: str, batched: bool) -> Term:
    target = codomain or space_of(function(space.zero()))
    return declare_linear(function, adjoint, space, target, name, batched)


_linears = _Maker("linear", _past_weight(_declared_linear))


def linear(
    function: Callable[[Any], Any],
    adjoint: Callable[[Any], Any],
    *,
    domain: Space | None = None,
    codomain: Space | None = None,
    name: str | None = None,
    batched: bool = False,
) -> Arrow:
    """A linear function of your own, with its adjoint. Without spaces it fits any; `batched` says both accept leading axes.

    >>> import riesz as rz, numpy as np
    >>> flip = rz.linear(lambda v: v[::-1], lambda w: w[::-1], name="flip")
    >>> rz.grad(rz.left(rz.inner, np.array([1.0, 2.0])) @ flip)(np.zeros(2))
    array([2., 1.])
    """
    title = name or getattr(function, "__name__", "linear")
    if domain is None:
        return Combinator(title, _linears, (function, adjoint, codomain, title, batched))
    return _declared_linear(domain, function, adjoint, codomain, title, batched)


def _declared_bilinear(space: Space, function: Any, adjoints: Any, codomain: Any, name: str, batched: bool) -> Term:
    u, v, bridge = _two(space, name)
    target = codomain or space_of(function(u.zero(), v.zero()))
    made = declare_bilinear(function, *adjoints, (u, v, target), name, batched)
    return made if bridge is None else Compose(made, bridge)


_bilinears = _Maker("bilinear", _past_weight(_declared_bilinear))


def bilinear(
    function: Callable[[Any, Any], Any],
    left_adjoint: Callable[[Any, Any], Any] | None = None,
    right_adjoint: Callable[[Any, Any], Any] | None = None,
    *,
    spaces: tuple[Space, Space] | None = None,
    codomain: Space | None = None,
    name: str | None = None,
    batched: bool = False,
) -> Arrow:
    """A bilinear function u ⋄ v of your own: left_adjoint(u, w) = (u⋄)*w and right_adjoint(v, w) = (⋄v)*w.

    >>> import riesz as rz, numpy as np
    >>> conv = rz.bilinear(np.convolve, lambda u, w: np.correlate(w, u, "valid"), lambda v, w: np.correlate(w, v, "valid"), name="conv")
    >>> conv(np.array([1.0, 2.0]), np.array([1.0, 0.0, 1.0]))
    array([1., 2., 1., 2.])
    """
    title = name or getattr(function, "__name__", "bilinear")
    parameters = (function, (left_adjoint, right_adjoint), codomain, title, batched)
    if spaces is None:
        return Combinator(title, _bilinears, parameters)
    return _declared_bilinear(direct_sum(*spaces), *parameters)


