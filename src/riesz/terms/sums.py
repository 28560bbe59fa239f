"""Direct sums and copowers: ι, π, Π, Δ, ⟨⟩, [], red_R, f^X, rep, Σ, +, dup, scan   (§2.2.2, §2.2.3)."""

from __future__ import annotations

from ..errors import RelationError, SpaceError
from ..relations import Relation, Triangular, full, pairs
from ..relations.index_sets import Seg, Set
from ..spaces.space import Copower, DirectSum, Form, Space
from .term import Compose, Derived, Term, Undoing, Unitary, inverses, require_linear


def components(space: Space) -> tuple[Space, ...]:
    """The summands of a direct sum or copower."""
    match space:
        case DirectSum():
            return space.summands
        case Copower():
            return (space.base,) * space.index.size
        case _:
            raise SpaceError(f"{space} is not a direct sum: it has no components")


class Project(Term):
    """π_y : ⊕_{x∈X} V_x ⊸ V_y, by the position of y."""

    space: Space
    position: int

    def check(self) -> None:
        self._type(self.space, components(self.space)[self.position], True)


class Inject(Term):
    """ι_y : V_y ⊸ ⊕_{x∈X} V_x, by the position of y."""

    space: Space
    position: int

    def check(self) -> None:
        self._type(components(self.space)[self.position], self.space, True)


class _Parallel(Term):
    terms: tuple[Term, ...]
    index: Set
    form: Form | None

    def check(self) -> None:
        domain = DirectSum(self.index, tuple([t.domain for t in self.terms]), self.form)
        codomain = DirectSum(self.index, tuple([t.codomain for t in self.terms]), self.form)
        self._type(domain, codomain, all([t.linear for t in self.terms]))


class Par(_Parallel):
    """Π_{x∈X} f_x : ⊕ V_x → ⊕ W_x, zipped apply; f × g for two   (§2.2.2)."""


class BlockDiag(_Parallel):
    """Δ(⊕ f_x) : ⊕ V_x ⊸ ⊕ W_x for a family of linear maps   (§2.2.2)."""

    def check(self) -> None:
        for t in self.terms:
            require_linear(t, "Δ (block_diag)")
        super().check()


class Map(Term):
    """f^X = Π_{x∈X} f : V^X → W^X   (§2.2.3)."""

    term: Term
    index: Set

    def check(self) -> None:
        self._type(Copower(self.term.domain, self.index), Copower(self.term.codomain, self.index), self.term.linear)


class Reduce(Term):
    """red_R : V^X ⊸ V^Y,  (red_R v)_y = Σ_{(x,y)∈R} v_x   (§2.2.3)."""

    relation: Relation
    base: Space

    def check(self) -> None:
        self._type(Copower(self.base, self.relation.source), Copower(self.base, self.relation.target), True)


class Fold(Term):
    """max_R : V^X → V^Y,  (max_R v)_y = max_{(x,y)∈R} v_x at each place of V; so min, prod, logsumexp, mean (`how`)."""

    relation: Relation
    base: Space
    how: str

    def check(self) -> None:
        self._type(Copower(self.base, self.relation.source), Copower(self.base, self.relation.target), False)


class Unpack(Unitary):
    """V^X ⊸ ⊕_{x∈X} V, unitary: an array as a tuple. The paper's V × V = V^2."""

    base: Space
    index: Set

    def check(self) -> None:
        self._type(Copower(self.base, self.index), DirectSum(self.index, (self.base,) * self.index.size, None), True)


class Pack(Undoing):
    """⊕_{x∈X} V ⊸ V^X, unitary: the inverse of Unpack."""

    base: Space
    index: Set


class Fork(Derived):
    """⟨f_y⟩_{y∈Y} : U → ⊕ V_y,  = Π f_y ∘ rep_Y."""

    terms: tuple[Term, ...]

    def check(self) -> None:
        if not self.terms:
            raise SpaceError("a fork ⟨⟩ of no functions has no domain; use the zero map into 0")
        f, domain = self.terms[0], self.terms[0].domain
        for g in self.terms:
            if g.domain is not domain:
                starts = f"f starts at {domain}, g starts at {g.domain}"
                raise SpaceError(f"cannot fork ⟨f, g⟩: {starts}   (f = {f}, g = {g})")
        codomain = DirectSum(Seg(len(self.terms)), tuple([t.codomain for t in self.terms]), None)
        self._type(domain, codomain, all([t.linear for t in self.terms]))

    @property
    def definition(self) -> Term:
        index = Seg(len(self.terms))
        return Compose(Compose(Par(self.terms, index, None), Unpack(self.domain, index)), Rep(index, self.domain, None))


class Join(Derived):
    """[g_x]_{x∈X} : ⊕ V_x ⊸ W,  = Σ_X • Π g_x."""

    terms: tuple[Term, ...]

    def check(self) -> None:
        if not self.terms:
            raise SpaceError("a join [] of no maps has no codomain; use the zero map from 0")
        f, codomain = self.terms[0], self.terms[0].codomain
        for g in self.terms:
            require_linear(g, "a join []")
            if g.codomain is not codomain:
                ends = f"f ends in {codomain}, g ends in {g.codomain}"
                raise SpaceError(f"cannot join [f, g]: {ends}   (f = {f}, g = {g})")
        domain = DirectSum(Seg(len(self.terms)), tuple([t.domain for t in self.terms]), None)
        self._type(domain, codomain, True)

    @property
    def definition(self) -> Term:
        index = Seg(len(self.terms))
        packed = Compose(Pack(self.codomain, index), Par(self.terms, index, None))
        return Compose(Total(index, self.codomain, None), packed)


def _subset(index: Set, only: tuple[int, ...] | None) -> tuple[int, ...]:
    if only is None:
        return tuple(range(index.size))
    outside = [p for p in only if not 0 <= p < index.size]
    if outside:
        raise RelationError(f"position {outside[0]} is outside {index}: its positions are 0 to {index.size - 1}")
    return only


def _selection(index: Set, only: tuple[int, ...] | None) -> Relation:
    """1 × Y ⊆ 1 × X."""
    one = Seg(1)
    if only is None:
        return full(one, index)
    return pairs(one, index, [(0, index.element(p)) for p in _subset(index, only)])


class Rep(Derived):
    """rep_Y : V ⊸ V^X,  = red_{1×Y} • ι_0; zero outside Y ⊆ X (None: Y = X)."""

    index: Set
    base: Space
    only: tuple[int, ...] | None

    def check(self) -> None:
        _subset(self.index, self.only)
        self._type(self.base, Copower(self.base, self.index), True)

    @property
    def definition(self) -> Term:
        return Compose(Reduce(_selection(self.index, self.only), self.base), Inject(Copower(self.base, Seg(1)), 0))


class Total(Derived):
    """Σ_Y : V^X ⊸ V,  = π_0 • red_{Y×1}; the sum over Y ⊆ X (None: Y = X)."""

    index: Set
    base: Space
    only: tuple[int, ...] | None

    def check(self) -> None:
        _subset(self.index, self.only)
        self._type(Copower(self.base, self.index), self.base, True)

    @property
    def definition(self) -> Term:
        relation = _selection(self.index, self.only).converse
        return Compose(Project(Copower(self.base, Seg(1)), 0), Reduce(relation, self.base))


class Add(Derived):
    """+ : V^n ⊸ V,  = Σ_n, on a direct sum of n copies of V (a copower is summed by Σ)."""

    space: DirectSum

    def check(self) -> None:
        parts = self.space.summands
        if not parts or any([p is not parts[0] for p in parts]):
            raise SpaceError(f"+ adds vectors of one space; the components of {self.space} differ")
        self._type(self.space, parts[0], True)

    @property
    def definition(self) -> Term:
        base, index = self.space.summands[0], self.space.index
        pack = Pack(base, index)
        plain = pack if pack.domain is self.space else Compose(pack, Regroup(self.space, pack.domain))
        return Compose(Total(index, base, None), plain)


class Dup(Derived):
    """dup : V ⊸ V^n,  = rep_n, into a direct sum of n copies of V (two, unless it is the adjoint of a longer +)."""

    space: DirectSum

    def check(self) -> None:
        self._type(Add(self.space).codomain, self.space, True)

    @property
    def definition(self) -> Term:
        base, index = self.space.summands[0], self.space.index
        copies = Compose(Unpack(base, index), Rep(index, base, None))
        return copies if copies.codomain is self.space else Compose(Regroup(copies.codomain, self.space), copies)


class Scan(Derived):
    """scan_n : V^n ⊸ V^n,  = red_{(i,j) | i ≤ j}: prefix sums; `suffix`: its adjoint, red_{(i,j) | i ≥ j}."""

    index: Seg
    base: Space
    suffix: bool = False

    def check(self) -> None:
        self._type(Copower(self.base, self.index), Copower(self.base, self.index), True)

    @property
    def definition(self) -> Term:
        return Reduce(Triangular(self.index, self.index, not self.suffix), self.base)


class Zip(Unitary):
    """zip : (⊕V_x) ⊕ (⊕W_x) ⊸ ⊕(V_x ⊕ W_x), of any number of sums over one index set; unitary   (§3.2)."""

    space: DirectSum

    def check(self) -> None:
        parts = self.space.summands
        same = parts and all([getattr(p, "index", None) is getattr(parts[0], "index", 0) for p in parts])
        alike = same and len({type(p) for p in parts}) == 1
        if not alike:
            raise SpaceError(f"zip needs a direct sum of sums over one index set; got {self.space}")
        self._type(self.space, _zipped(self.space), True)


def _zipped(space: DirectSum) -> Space:
    first = space.summands[0]
    if isinstance(first, Copower):
        base = DirectSum(space.index, tuple([p.base for p in space.summands if isinstance(p, Copower)]), space.form)
        return Copower(base, first.index)
    families = [p for p in space.summands if isinstance(p, DirectSum)]
    rows = [DirectSum(space.index, row, space.form) for row in zip(*[f.summands for f in families], strict=True)]
    return DirectSum(families[0].index, tuple(rows), families[0].form)


class Unzip(Undoing):
    """unzip : ⊕(V_x ⊕ W_x) ⊸ (⊕V_x) ⊕ (⊕W_x), the inverse of zip; `space` is its codomain."""

    space: DirectSum


inverses((Unpack, Pack), (Zip, Unzip))


class Regroup(Unitary):
    """V^X ⊸ V^Y along the order-preserving bijection of index sets, unitary: (V^Y)^X and V^(X×Y), renamed indices."""

    source: Space
    target: Space

    def check(self) -> None:
        if [leaf.shape for leaf in self.source.leaves] != [leaf.shape for leaf in self.target.leaves]:
            raise SpaceError(f"cannot regroup {self.source} as {self.target}: their arrays differ in shape")
        self._type(self.source, self.target, True)

    @property
    def inverse(self) -> Term:
        return Regroup(self.target, self.source)
