"""Open combinators: functions that fit many spaces and become terms when they meet one.

`fit(f, V)` is f as a term with domain V. A composition whose inner part is typed is typed at once, so errors appear
where the term is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from importlib import import_module
from typing import Any, cast, overload

from ..errors import SpaceError
from ..relations.index_sets import Seg, Set
from ..runtime import later
from ..runtime.interning import derived, documented
from ..runtime.stackless import Rule, quiet, solve
from ..spaces.formal_vectors import freeze_leaf
from ..spaces.space import Copower, DirectSum, R, Space, Weighted, real_space
from .sums import BlockDiag, Fork, Join, Map, Pack, Par, Regroup, Unpack
from .term import Arrow, Compose, Const, Id, Term, ZeroMap, require_linear
from .weights import Forget


class Open(Arrow):
    """A function without a fixed domain; `f.at(V)` is the term. `known` is the codomain where it is certain already."""

    known: Space | None = derived()

    def check(self) -> None:
        self._set(known=None)


class Combinator(Open):
    """A named open combinator: maker(V, *parameters) is the term at V."""

    name: str
    maker: Callable[..., Term]
    parameters: tuple[Any, ...]

    def check(self) -> None:
        super().check()
        documented(self, getattr(self.maker, "__doc__", None))

    @overload
    def __call__(self, *args: Space) -> Term: ...
    @overload
    def __call__(self, *args: Any) -> Any: ...
    def __call__(self, *args: Any) -> Any:
        if args and all([isinstance(a, Space) for a in args]):
            return self._typed(*args)
        return super().__call__(*args)

    def _typed(self, *spaces: Space) -> Term:
        if self.maker is zero_at and len(spaces) == 2:
            return ZeroMap(spaces[0], spaces[1])
        if len(spaces) != 1:
            raise SpaceError(f"{self.name} is typed by its domain, one space; got {len(spaces)}")
        return fit(self, spaces[0])


class OpenConst(Open):
    """K_w, waiting for its domain."""

    target: Space
    leaves: tuple[Any, ...]

    def check(self) -> None:
        self._set(known=self.target)


class OpenCompose(Open):
    """g ∘ f, waiting for f's domain."""

    outer: Arrow
    inner: Arrow

    def check(self) -> None:
        middle = codomain_of(self.inner)
        self._set(known=codomain_of(self.outer) if middle is None else fit(self.outer, middle).codomain)


class OpenFamily(Open):
    """A family Π, ⟨⟩, [] or Δ with open members."""

    kind: str
    terms: tuple[Arrow, ...]

    def check(self) -> None:
        parts = [codomain_of(t) for t in self.terms]
        ready = self.kind != "[]" and parts and None not in parts
        self._set(known=DirectSum(Seg(len(parts)), cast("tuple[Space, ...]", tuple(parts)), None) if ready else None)


class OpenMap(Open):
    """f^X, waiting for f's domain."""

    term: Arrow
    index: Set


class OpenPointwise(Open):
    """f + g, f · g, f / g, f ** k with open members: maker(*terms, *parameters) once they are typed."""

    symbol: str
    maker: Callable[..., Term]
    terms: tuple[Arrow, ...]
    parameters: tuple[Any, ...]


def codomain_of(f: Arrow) -> Space | None:
    """The codomain, where it is known."""
    return f.codomain if isinstance(f, Term) else cast(Open, f).known


def compose(g: Any, f: Any) -> Arrow:
    """g ∘ f."""
    if not isinstance(f, Arrow):
        if isinstance(f, later.LinearMap):
            return NotImplemented
        raise SpaceError(f"cannot compose g @ f: f must be a function, got {f!r}; to apply g to a vector write g(v)")
    if not isinstance(f, Term):
        return OpenCompose(g, f)
    if not isinstance(g, Term):
        return connect(fit(g, f.codomain), f)
    return Compose(g, f) if f.codomain is g.domain else connect(g, f)


def connect(g: Term, f: Term) -> Term:
    """g ∘ f, through the identification of V × V with V^2 or the forgetting of a weight where need be."""
    if isinstance(f, Id):
        return _fit_term(g, f.space)
    if g.domain is not f.codomain:
        bridge = coerce(f.codomain, g.domain)
        if bridge is not None:
            return Compose(g, Compose(bridge, f))
    return Compose(g, f)


def coerce(source: Space, target: Space) -> Term | None:
    """The map that changes nothing but the way a vector is held, if there is one."""
    if not source.plain and source.unweighted is not source and target.plain:
        if source.unweighted is target:
            return Forget(source)
        rest = coerce(source.unweighted, target)
        return None if rest is None else Compose(rest, Forget(source))
    match source, target:
        case Copower(), DirectSum() if target is Unpack(source.base, source.index).codomain:
            return Unpack(source.base, source.index)
        case DirectSum(), Copower() if source is Pack(target.base, target.index).domain:
            return Pack(target.base, target.index)
        case Copower(), Copower() if source.plain and target.plain and source.code == target.code:
            return Regroup(source, target)  # (ℝ^3)^4 and ℝ^(4×3) are one array
        case _:
            return None


def bridged(source: Space, target: Space) -> Term:
    """The map from a space to another with the same arrays: weights forgotten, indices renamed."""
    found = coerce(source, target)
    if found is None:
        found = Regroup(source.unweighted, target)
    return found if found.domain is source else Compose(found, Forget(source))


@quiet
def fit(f: Arrow, space: Space) -> Term:
    """f as a term with the given domain."""
    if isinstance(f, Term):
        return _fit_term(f, space)
    return solve((f, space), _fit)


def _fit_term(f: Term, space: Space) -> Term:
    if f.domain is space:
        return f
    bridge = coerce(space, f.domain)
    if bridge is None:
        hint = ""
        if isinstance(space, Copower) and space.base is f.domain:
            hint = f"; write f ** X with X = {space.index} to apply it at every index"
        raise SpaceError(f"cannot use f = {f} at {space}: f starts at {f.domain}{hint}")
    return Compose(f, bridge)


def _fit(f: Arrow, space: Space) -> Rule:
    match f:
        case Term():
            return _fit_term(f, space)
        case OpenConst():
            return Const(space, f.target, f.leaves)
        case Combinator():
            return f.maker(space, *f.parameters)
        case OpenCompose():
            first = yield f.inner, space
            second = yield f.outer, first.codomain
            return connect(second, first)
        case OpenFamily():
            inside, bridge = (None, None) if f.kind == "⟨⟩" else family(space, len(f.terms), f.kind)
            typed: list[Term] = []
            for i, t in enumerate(f.terms):
                typed.append((yield t, space if inside is None else inside.summands[i]))
            made = Fork(tuple(typed)) if inside is None else _family_term(f.kind, tuple(typed), inside)
            return made if bridge is None else Compose(made, bridge)
        case OpenMap():
            inside = _over(space, f.index)
            if inside is None:
                raise SpaceError(f"a function mapped over {f.index} starts at V^{f.index}, but is used at {space}")
            body = yield f.term, inside.base
            return connect(Map(body, f.index), Id(space))
        case OpenPointwise():
            members: list[Term] = []
            for t in f.terms:
                members.append((yield t, space))
            return f.maker(*members, *f.parameters)
        case _:
            raise TypeError(f"not a function: {f!r}")


def _over(space: Space, index: Set) -> Copower | None:
    """V^X as a space over X: itself, or ℝ^(X×Y) regrouped as (ℝ^Y)^X."""
    if isinstance(space, Copower) and space.index is index:
        return space
    plain = space.unweighted
    if isinstance(plain, Copower) and plain.base is R and plain.index.box is not None and index.box is not None:
        head, tail = plain.index.box[: len(index.box)], plain.index.box[len(index.box) :]
        return Copower(real_space(tail), index) if head == index.box and tail else None
    return None


def family(space: Space, count: int, kind: str) -> tuple[DirectSum, Term | None]:
    """The direct sum of `count` components that a family acts on, and the map into it."""
    inside, bridge = space, None
    if isinstance(inside, Weighted):
        inside, bridge = inside.base, Forget(inside)
    if isinstance(inside, Copower) and inside.index.size == count:
        unpack = Unpack(inside.base, inside.index)
        bridge = unpack if bridge is None else Compose(unpack, bridge)
        inside = unpack.codomain
    if not isinstance(inside, DirectSum) or len(inside.summands) != count:
        raise SpaceError(f"a family {kind} of {count} functions needs a direct sum of {count} spaces; got {space}")
    return inside, bridge


def _family_term(kind: str, terms: tuple[Term, ...], space: DirectSum) -> Term:
    match kind:
        case "Π":
            return Par(terms, space.index, space.form)
        case "Δ":
            return BlockDiag(terms, space.index, space.form)
        case "[]":
            joined = Join(terms)
            return joined if joined.domain is space else Compose(joined, Regroup(space, joined.domain))
        case _:
            raise TypeError(f"not a family: {kind}")


def make_family(kind: str, terms: tuple[Any, ...]) -> Arrow:
    """Π, ⟨⟩, [] or Δ of functions: a term where all are typed, open otherwise."""
    if not terms:
        raise SpaceError("a family needs at least one function")
    for t in terms:
        if not isinstance(t, Arrow):
            raise SpaceError(f"{kind} takes functions in combinatory form; got {t!r}")
        if kind in ("Δ", "[]") and isinstance(t, Term):
            require_linear(t, "Δ (block_diag)" if kind == "Δ" else "a join []")
    if not all([isinstance(t, Term) for t in terms]):
        return OpenFamily(kind, terms)
    if kind == "⟨⟩":
        return Fork(terms)
    return _family_term(kind, terms, DirectSum(Seg(len(terms)), tuple([t.domain for t in terms]), None))


def mapped(f: Arrow, index: Set) -> Arrow:
    """f^X."""
    return Map(f, index) if isinstance(f, Term) else OpenMap(f, index)


def identity_at(space: Space) -> Term:
    """id : V ⊸ V, the identity.

    >>> import riesz as rz
    >>> rz.id(3.0)
    3.0
    """
    return Id(space)


def zero_at(space: Space) -> Term:
    """0 : V ⊸ V, the zero map; `zero(V, W)` has another codomain.

    >>> import riesz as rz
    >>> rz.zero(3.0)
    0.0
    >>> rz.zero(rz.R, rz.R ** rz.seg(2))(3.0)
    array([0., 0.])
    """
    return ZeroMap(space, space)


# -- makers that can be pickled, and that enter a weighted space by forgetting its weight -----------------------------

MakerT = Callable[..., Term]


def frozen(leaves: Iterable[Any]) -> tuple[Any, ...]:
    """Leaves that nobody can change any more."""
    return tuple([freeze_leaf(x) for x in leaves])


def past_weight(maker: MakerT) -> MakerT:
    """A maker that enters a weighted space through Forget."""

    @wraps(maker)
    def made(space: Space, *parameters: Any) -> Term:
        if isinstance(space, Weighted):
            return Compose(maker(space.base, *parameters), Forget(space))
        return maker(space, *parameters)

    return made


class Maker:
    """A picklable maker: found again by its name."""

    def __init__(self, name: str, maker: MakerT) -> None:
        self.name, self.maker, self.__doc__ = name, maker, maker.__doc__
        _makers[name] = self

    def __call__(self, space: Space, *parameters: Any) -> Term:
        return self.maker(space, *parameters)

    def __reduce__(self) -> Any:
        return _find_maker, (self.name,)


_makers: dict[str, Maker] = {}


def _find_maker(name: str) -> Maker:
    if name not in _makers:  # its file is loaded when its public name is asked for
        getattr(import_module("riesz"), name)
    return _makers[name]


def maker(name: str, weights: bool = False) -> Callable[[MakerT], Maker]:
    """A function as a maker of that name; unless it knows `weights`, it enters a weighted space through Forget."""
    return lambda function: Maker(name, function if weights else past_weight(function))


def opened(function: MakerT) -> Combinator:
    """The combinator that a function makes, called as the function is."""
    name = function.__name__
    return Combinator(name, maker(name)(function), ())


def needs(what: str, wanted: str, space: Space) -> SpaceError:
    return SpaceError(f"{what} needs {wanted}; got {space}")
