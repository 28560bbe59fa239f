"""The laws of the simplifier: data, both sides patterns, oriented from left to right.

Why rewriting ends: every law makes the measure smaller (`measures.py`). Most have fewer nodes on the right; each other
says what becomes less. Why nothing grows: the engine counts what a law makes against what it is sure to drop, so shared
parts are paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..relations import Diagonal, Empty, Full, Function, Segments, fused
from ..spaces.space import DirectSum, R
from ..terms.bilinear import (
    Bilinear,
    Contract,
    Hadamard,
    Inner,
    Labelled,
    MatMul,
    MatVec,
    Outer,
    ScalarMul,
    Section,
    transposed,
)
from ..terms.sums import (
    Add,
    BlockDiag,
    Dup,
    Fork,
    Inject,
    Join,
    Map,
    Pack,
    Par,
    Project,
    Reduce,
    Regroup,
    Rep,
    Total,
    Unpack,
    Unzip,
    Zip,
)
from ..terms.term import Combine, Const, Id, Term, ZeroMap
from ..terms.unitary import Assoc, Bra, Distrib, Ket, Transpose, Unassoc, Unbra, Undistrib, Unket
from ..terms.weights import Equip, Forget, Represent, Weigh
from .evaluating import array_shape, fixed, formal_product, named_contraction, number, product, rank_one
from .term_patterns import Found, Missing, Pattern, Var, calc, each, node
from .writing import text

UNITARY = (Bra, Unbra, Ket, Unket, Transpose, Assoc, Unassoc, Distrib, Undistrib, Zip, Unzip, Pack, Unpack, Regroup)
When = Callable[[Found], bool] | None


@dataclass(frozen=True, eq=False)
class Law:
    """left = right, used from left to right where `when` holds; `less` says what there is less of on the right."""

    name: str
    group: str
    left: Pattern
    right: Pattern
    less: str = "nodes"
    note: str = ""
    when: When = None

    def apply(self, found: Found, made: list[Term] | None = None) -> Term | None:
        """The right side for what the variables stand for; None where the law says nothing."""
        if self.when is not None and not self.when(found):
            return None
        try:
            return self.right.build(found, [] if made is None else made)
        except Missing:
            return None

    def rewrite(self, term: Term) -> Term | None:
        """The right side for a term of the form of the left side, None for others."""
        found: Found = {WHOLE: term}
        return self.apply(found) if self.left.match(term, found) else None

    def __repr__(self) -> str:
        return f"{self.name}:  {text(self.left)} = {text(self.right)}" + (f"   ({self.note})" if self.note else "")


# -- variables ---------------------------------------------------------------------------------------------------------

WHOLE = Var("t", Term)  # the left side itself, for its spaces
f, g, h = [Var(x, Term) for x in "fgh"]
L = Var("L", Term, linear=True)
fs, gs = [Var(x, Term, family=True) for x in "fg"]
ls, ms = [Var(x, Term, linear=True, family=True) for x in "LM"]
i, j, X, Y, V, W, U, form, index = [Var(x) for x in ("i", "j", "X", "Y", "V", "W", "U", "form", "index")]
ns, Vs, Ws = [Var(x, family=True) for x in ("", "V", "W")]
relation, later = Var("R"), Var("S")
u, v, w, us = Var("u"), Var("v"), Var("w"), Var("w", family=True)
b = Var("⋄", Bilinear)
turn, back = Var("u", UNITARY), Var("u⁻¹", UNITARY)
labels, out, shapes, extra = Var("…"), Var("…"), Var("shapes"), Var("extra")


def dom(p: Pattern) -> Pattern:
    """The domain of what p stands for."""
    return calc("", lambda t: t.domain, p)


def cod(p: Pattern) -> Pattern:
    """The codomain of what p stands for."""
    return calc("", lambda t: t.codomain, p)


def term(kind: type[Term], *fields: Pattern) -> Pattern:
    """A term of the left side, for its spaces."""
    return calc("", kind, *fields)


def some(which: Pattern, at: Pattern) -> Pattern:
    """Summand number `at` of a direct sum or copower."""
    return calc("", lambda s, n: s.summands[n] if isinstance(s, DirectSum) else s.base, which, at)


def scaled(coefficient: Any, t: Pattern) -> Pattern:
    """k · t."""
    return node(Combine, (coefficient,), (t,))


def scaling(coefficient: Any, space: Any) -> Pattern:
    """(k ·)."""
    return node(Section, node(ScalarMul, space), 0, (coefficient,))


def ones(family: Pattern) -> Pattern:
    """1, as often as a family has members."""
    return calc("", lambda t: (1.0,) * len(t), family)


def size(p: Pattern) -> Pattern:
    """The number of elements of a set."""
    return calc("|{0}|", lambda s: float(s.size), p)


ident, zero = node(Id, V), node(ZeroMap, V, W)
project, inject = node(Project, V, i), node(Inject, V, i)
par, block, block_l = node(Par, fs, index, form), node(BlockDiag, fs, index, form), node(BlockDiag, ls, index, form)
fork, join = node(Fork, fs), node(Join, ls)
rep, total = node(Rep, X, V, None), node(Total, X, V, None)
one, two, p, q = [Var(x, float) for x in "kmpq"]

_laws: list[Law] = []


def law(
    name: str, group: str, left: Pattern, right: Pattern, less: str = "nodes", note: str = "", when: When = None
) -> None:
    """Enter a law."""
    _laws.append(Law(name, group, left, right, less, note, when))


# -- category ----------------------------------------------------------------------------------------------------------

law("id-after", "category", ident @ f, f)
law("id-before", "category", f @ ident, f)
law("assoc", "category", (h @ g) @ f, h @ (g @ f), "nesting")
law("id-map", "category", ident**X, node(Id, dom(WHOLE)))
law("id-par", "category", node(Par, each(node(Id, Vs)), index, form), node(Id, dom(WHOLE)))
law("id-block", "category", node(BlockDiag, each(node(Id, Vs)), index, form), node(Id, dom(WHOLE)))

# -- zeros and constants -----------------------------------------------------------------------------------------------

law("zero-after", "zero", zero @ f, node(ZeroMap, dom(f), W))
law("zero-before", "zero", L @ zero, node(ZeroMap, V, cod(L)))
law("const-after", "zero", node(Const, V, W, w) @ f, node(Const, dom(f), W, w))
law("zero-fork", "zero", node(Fork, each(node(ZeroMap, Vs, Ws))), node(ZeroMap, dom(WHOLE), cod(WHOLE)))
law("zero-join", "zero", node(Join, each(node(ZeroMap, Vs, Ws))), node(ZeroMap, dom(WHOLE), cod(WHOLE)))
law("zero-par", "zero", node(Par, each(node(ZeroMap, Vs, Ws)), index, form), node(ZeroMap, dom(WHOLE), cod(WHOLE)))
law(
    "zero-block",
    "zero",
    node(BlockDiag, each(node(ZeroMap, Vs, Ws)), index, form),
    node(ZeroMap, dom(WHOLE), cod(WHOLE)),
)
law("zero-map", "zero", zero**X, node(ZeroMap, dom(WHOLE), cod(WHOLE)))
law("zero-sum", "zero", node(Combine, (one, two), (f, zero)), scaled(one, f))
law(
    "const-fork",
    "zero",
    node(Fork, each(node(Const, Vs, Ws, us))),
    node(
        Const, dom(WHOLE), cod(WHOLE), calc("({0}₁ … {0}ₙ)", lambda t: tuple([x for leaves in t for x in leaves]), us)
    ),
)

# -- biproducts --------------------------------------------------------------------------------------------------------

law("proj-fork", "biproduct", project @ fork, fs[i])
law("proj-inj", "biproduct", project @ inject, node(Id, some(V, i)))
law(
    "proj-other",
    "biproduct",
    project @ node(Inject, V, j),
    node(ZeroMap, some(V, j), some(V, i)),
    note="i ≠ j",
    when=lambda x: x[i] != x[j],
)
law("join-inj", "biproduct", join @ inject, ls[i])
law("proj-par", "biproduct", project @ par, fs[i] @ node(Project, dom(term(Par, fs, index, form)), i))
law("proj-block", "biproduct", project @ block, fs[i] @ node(Project, dom(term(BlockDiag, fs, index, form)), i))
law(
    "par-inj",
    "biproduct",
    node(Par, ls, index, form) @ inject,
    node(Inject, cod(term(Par, ls, index, form)), i) @ ls[i],
)
law("block-inj", "biproduct", block_l @ inject, node(Inject, cod(term(BlockDiag, ls, index, form)), i) @ ls[i])
law("proj-dup", "biproduct", project @ node(Dup, V), node(Id, some(V, i)))
law("add-inj", "biproduct", node(Add, V) @ inject, node(Id, some(V, i)))
law("add-fork", "biproduct", node(Add, V) @ fork, node(Combine, ones(fs), fs))
law("add-par", "biproduct", node(Add, V) @ node(Par, ls, index, form), node(Join, ls))
law("add-block", "biproduct", node(Add, V) @ block_l, node(Join, ls))
law("par-dup", "biproduct", par @ node(Dup, V), fork)
law("block-dup", "biproduct", block_l @ node(Dup, V), node(Fork, ls))
law("join-dup", "biproduct", join @ node(Dup, V), node(Combine, ones(ls), ls))
law(
    "fork-projs",
    "biproduct",
    node(Fork, each(node(Project, V, ns))),
    node(Id, V),
    note="all of them, in order",
    when=lambda x: _in_order(x, x[V]),
)
law(
    "fork-eta",
    "biproduct",
    node(Fork, each(node(Project, V, ns) @ f)),
    f,
    note="all of them, in order",
    when=lambda x: _in_order(x, x[V]) and x[f].codomain is x[WHOLE].codomain,
)
law(
    "join-injs",
    "biproduct",
    node(Join, each(node(Inject, V, ns))),
    node(Id, V),
    note="all of them, in order",
    when=lambda x: _in_order(x, x[V]),
)
law(
    "par-par",
    "biproduct",
    node(Par, gs, index, form) @ par,
    node(Par, each(gs @ fs), index, form),
    "families",
    "n ≤ 2, or enough identities",
)
law(
    "block-block",
    "biproduct",
    node(BlockDiag, ms, index, form) @ block_l,
    node(BlockDiag, each(ms @ ls), index, form),
    "families",
    "likewise",
)
law("par-fork", "biproduct", node(Par, gs, index, form) @ fork, node(Fork, each(gs @ fs)), "families", "likewise")
law(
    "block-fork",
    "biproduct",
    node(BlockDiag, gs, index, form) @ fork,
    node(Fork, each(gs @ fs)),
    "families",
    "likewise",
)
law(
    "join-par",
    "biproduct",
    node(Join, ms) @ node(Par, ls, index, form),
    node(Join, each(ms @ ls)),
    "families",
    "likewise",
)
law("join-block", "biproduct", node(Join, ms) @ block_l, node(Join, each(ms @ ls)), "families", "likewise")
law("join-fork", "biproduct", node(Join, gs) @ fork, node(Combine, ones(fs), each(gs @ fs)), "families", "likewise")


def _in_order(x: Found, space: Any) -> bool:
    return isinstance(space, DirectSum) and x[ns] == tuple(range(len(space.summands)))


# -- copowers ----------------------------------------------------------------------------------------------------------

law("map-map", "copower", g**X @ f**X, (g @ f) ** X)
law("map-rep", "copower", f**X @ rep, node(Rep, X, cod(f), None) @ f)
law("total-map", "copower", total @ L**X, L @ node(Total, X, dom(L), None))
law("proj-map", "copower", project @ f**X, f @ node(Project, dom(term(Map, f, X)), i))
law("map-inj", "copower", L**X @ inject, node(Inject, cod(term(Map, L, X)), i) @ L)
law("proj-rep", "copower", node(Project, U, i) @ rep, ident)
law("total-inj", "copower", total @ node(Inject, U, i), ident)
law("total-rep", "copower", total @ rep, scaling(size(X), V))
law("zip-maps", "copower", node(Zip, V) @ node(Fork, each(fs**X)), node(Fork, fs) ** X)
rows = calc("", lambda s: getattr(Zip(s).codomain, "base", None), V)
columns = calc("X", lambda s, n: getattr(s.summands[n], "index", None), V, i)
law("proj-unzip", "copower", project @ node(Unzip, V), node(Project, rows, i) ** columns)

# -- relational reduction ----------------------------------------------------------------------------------------------

then = calc("({0};{1})", fused, relation, later)
law(
    "red-red",
    "relations",
    node(Reduce, later, V) @ node(Reduce, relation, V),
    node(Reduce, then, V),
    note="R;S symbolic, and no more work than R and S",
)
law(
    "red-id",
    "relations",
    node(Reduce, relation, V),
    node(Id, dom(WHOLE)),
    "names",
    "R is = on X",
    when=lambda x: _kind(x, Diagonal) and _square(x),
)
law(
    "red-empty",
    "relations",
    node(Reduce, relation, V),
    node(ZeroMap, dom(WHOLE), cod(WHOLE)),
    "names",
    "R is ∅",
    when=lambda x: _kind(x, Empty),
)
law(
    "total-red",
    "relations",
    node(Total, Y, V, None) @ node(Reduce, relation, V),
    node(Total, calc("X", lambda r: r.source, relation), V, None),
    note="R a function X → Y",
    when=lambda x: _function(x[relation]),
)
law(
    "red-rep",
    "relations",
    node(Reduce, relation, V) @ rep,
    node(Rep, calc("Y", lambda r: r.target, relation), V, None),
    note="Rᵀ a function Y → X",
    when=lambda x: _function(x[relation].converse),
)
law(
    "rep-total",
    "relations",
    node(Rep, Y, V, None) @ total,
    node(Reduce, calc("({0}×{1})", lambda s, t: Full(s, t, 1), X, Y), V),
)
law(
    "proj-full",
    "relations",
    project @ node(Reduce, relation, W),
    node(Total, calc("X", lambda r: r.source, relation), W, None),
    note="R is X × Y",
    when=lambda x: _full(x[relation]),
)
law(
    "full-inj",
    "relations",
    node(Reduce, relation, W) @ inject,
    node(Rep, calc("Y", lambda r: r.target, relation), W, None),
    note="R is X × Y",
    when=lambda x: _full(x[relation]),
)


def _kind(x: Found, kind: type) -> bool:
    return type(x[relation]) is kind


def _square(x: Found) -> bool:
    return x[relation].source is x[relation].target


def _full(r: Any) -> bool:
    return type(r) is Full and r.times == 1


def _function(r: Any) -> bool:
    return type(r) in (Function, Diagonal) or (type(r) is Segments and not r.turned)


# -- unitary maps ------------------------------------------------------------------------------------------------------

law("inverse", "unitary", back @ turn, node(Id, dom(turn)), when=lambda x: x[back] is x[turn].inverse)
law("regroup-regroup", "unitary", node(Regroup, V, W) @ node(Regroup, U, V), node(Regroup, U, W))
law("regroup-id", "unitary", node(Regroup, V, V), ident, "names")
law("forget-equip", "unitary", node(Forget, V) @ node(Equip, V), node(Id, calc("", lambda s: s.unweighted, V)))
law("equip-forget", "unitary", node(Equip, V) @ node(Forget, V), ident)
law("weigh-represent", "unitary", node(Weigh, V) @ node(Represent, V), node(Id, calc("", lambda s: s.unweighted, V)))
law("represent-weigh", "unitary", node(Represent, V) @ node(Weigh, V), ident)
law("transpose-bra", "unitary", node(Transpose, U, W) @ node(Bra, V), node(Ket, V))
law("transpose-ket", "unitary", node(Transpose, U, W) @ node(Ket, V), node(Bra, V))
law("unbra-transpose", "unitary", node(Unbra, V) @ node(Transpose, U, W), node(Unket, V))
law("unket-transpose", "unitary", node(Unket, V) @ node(Transpose, U, W), node(Unbra, V))
law("proj-unpack", "unitary", project @ node(Unpack, W, X), node(Project, dom(term(Unpack, W, X)), i))
law("pack-inj", "unitary", node(Pack, W, X) @ inject, node(Inject, cod(term(Pack, W, X)), i))
law(
    "total-pack",
    "unitary",
    total @ node(Pack, V, X),
    node(Add, dom(term(Pack, V, X))),
    note="X not empty",
    when=lambda x: x[X].size > 0,
)
law(
    "unpack-rep",
    "unitary",
    node(Unpack, V, X) @ rep,
    node(Dup, cod(term(Unpack, V, X))),
    note="X not empty",
    when=lambda x: x[X].size > 0,
)
law(
    "proj-regroup",
    "unitary",
    node(Project, W, i) @ node(Regroup, V, W),
    node(Project, V, i),
    note="V and W the same sum under two names",
    when=lambda x: isinstance(x[V], DirectSum) and isinstance(x[W], DirectSum) and x[V].summands == x[W].summands,
)

# -- scaling -----------------------------------------------------------------------------------------------------------

law("scale-after", "scaling", scaling(one, V) @ f, scaled(one, f))
law("scale-before", "scaling", L @ scaling(one, V), scaled(one, L))
law("scale-left", "scaling", scaled(one, g) @ f, scaled(one, g @ f), "scalings")
law("scale-right", "scaling", L @ scaled(one, f), scaled(one, L @ f), "scalings")
law("scale-scale", "scaling", scaled(one, scaled(two, f)), scaled(calc("({0}{1})", lambda p, q: p * q, one, two), f))
law("scale-one", "scaling", scaled(1.0, f), f)
law("one", "scaling", scaling(1.0, V), ident)
law("scale-id", "scaling", scaled(one, ident), scaling(one, V), "families", "id not used elsewhere")
law(
    "like-terms",
    "scaling",
    node(Combine, (one, two), (f, f)),
    scaled(calc("({0}+{1})", lambda p, q: p + q, one, two), f),
    "members",
)
law(
    "sum-sum",
    "scaling",
    node(Combine, (one, two), (node(Combine, (p, q), (f, g)), h)),
    node(
        Combine,
        (calc("({0}{1})", lambda x, y: x * y, one, p), calc("({0}{1})", lambda x, y: x * y, one, q), two),
        (f, g, h),
    ),
)

# -- products and contractions -----------------------------------------------------------------------------------------

law("fix-left", "contraction", b @ node(Fork, (node(Const, V, W, u), f)), node(Section, b, 0, u) @ f)
law("fix-right", "contraction", b @ node(Fork, (f, node(Const, V, W, v))), node(Section, b, 1, v) @ f)
for place in (0, 1):
    constant = node(Const, V, W, u)
    known = calc("", fixed, labels, out, shapes, extra, place, u)
    section = node(
        Section,
        calc("⋄", lambda x: x[0], known, new=True),
        calc("", lambda x: x[1], known),
        calc("u", lambda x: x[2], known),
    )
    law(
        "name-right" if place else "name-left",
        "contraction",
        node(Labelled, labels, out, shapes, extra) @ node(Fork, (f, constant) if place else (constant, f)),
        section @ f,
        note="⋄ one of ·, ∗, ⊙, ⋆; matrices may be transposed",
    )
law(
    "named",
    "contraction",
    node(Labelled, labels, out, shapes, extra),
    calc("⋄", named_contraction, labels, out, shapes, extra),
    "names",
    "⋄ one of ·, ∗, ⊙, ⋆, Σ, rep",
)
law("inner-symmetric", "contraction", node(Section, node(Inner, V), 1, v), node(Section, node(Inner, V), 0, v), "names")
law(
    "product-symmetric",
    "contraction",
    node(Section, node(Hadamard, V), 1, v),
    node(Section, node(Hadamard, V), 0, v),
    "names",
)
law(
    "scale-number",
    "contraction",
    node(Section, node(ScalarMul, R), 1, v),
    node(Section, node(ScalarMul, R), 0, v),
    "names",
    "on ℝ",
)
law(
    "inner-number",
    "contraction",
    node(Section, node(Inner, R), 0, v),
    node(Section, node(ScalarMul, R), 0, v),
    "names",
    "on ℝ",
)
law(
    "product-number",
    "contraction",
    node(Section, node(Hadamard, R), 0, v),
    node(Section, node(ScalarMul, R), 0, v),
    "names",
    "on ℝ",
)
law(
    "product-product",
    "contraction",
    node(Section, node(Hadamard, V), 0, u) @ node(Section, node(Hadamard, V), 0, v),
    node(Section, node(Hadamard, V), 0, calc("({1} ∗ {2})", lambda s, p, q: product(Hadamard(s), p, q), V, u, v)),
)
law(
    "inner-scale",
    "contraction",
    node(Section, node(Inner, V), 0, u) @ node(Section, node(ScalarMul, V), 1, v),
    scaling(calc("({1} ⊙ {2})", lambda s, p, q: number(product(Inner(s), p, q) or ()), V, u, v), R),
)
law(
    "rank-one",
    "contraction",
    node(Section, node(ScalarMul, W), 1, v) @ node(Section, node(Inner, V), 0, u),
    node(
        Section,
        node(MatVec, calc("", array_shape, W), calc("", array_shape, V)),
        0,
        calc("({0} ⊗ {1})", rank_one, v, u, V, W),
    ),
    note="V and W arrays; v ⊗ u is not multiplied out",
)
law(
    "matrices",
    "contraction",
    node(Section, node(MatVec, X, Y), 0, u) @ node(Section, node(MatVec, Y, U), 0, v),
    node(
        Section,
        node(MatVec, X, U),
        0,
        calc("({0} ⋆ {1})", lambda p, q, x, y, z: formal_product(MatMul(x, y, z), p, q), u, v, X, Y, U),
    ),
    note="u and v unevaluated products",
)
law(
    "left-left",
    "contraction",
    node(Section, node(Contract, W, V, U), 0, u) @ node(Section, node(Contract, V, X, U), 0, v),
    node(
        Section,
        node(Contract, W, X, U),
        0,
        calc("({0} ⊛ {1})", lambda p, q, x, y, z: formal_product(Contract(x, y, z), p, q), u, v, W, V, X),
    ),
    note="u and v unevaluated products",
)
law(
    "right-right",
    "contraction",
    node(Section, node(Contract, W, V, U), 1, v) @ node(Section, node(Contract, W, X, V), 1, u),
    node(
        Section,
        node(Contract, W, X, U),
        1,
        calc("({0} ⊛ {1})", lambda p, q, x, y, z: formal_product(Contract(x, y, z), p, q), u, v, X, V, U),
    ),
    note="u and v unevaluated products",
)
law(
    "left-right",
    "contraction",
    node(Section, node(Contract, W, V, U), 0, u) @ node(Section, node(Contract, V, X, U), 1, v),
    node(Section, node(Contract, W, X, U), 1, v) @ node(Section, node(Contract, W, V, X), 0, u),
    "between",
    "the Kronecker product u ⊗ vᵀ; where W ⊗ X is smaller than V ⊗ U",
    lambda x: x[W].dim * x[X].dim < x[V].dim * x[U].dim,
)
law(
    "right-left",
    "contraction",
    node(Section, node(Contract, W, X, U), 1, v) @ node(Section, node(Contract, W, V, X), 0, u),
    node(Section, node(Contract, W, V, U), 0, u) @ node(Section, node(Contract, V, X, U), 1, v),
    "between",
    "where V ⊗ U is smaller than W ⊗ X",
    lambda x: x[V].dim * x[U].dim < x[W].dim * x[X].dim,
)
law(
    "left-outer",
    "contraction",
    node(Section, node(Contract, W, V, U), 0, u) @ node(Section, node(Outer, V, U), 0, v),
    node(
        Section,
        node(Outer, W, U),
        0,
        calc("({0} ⊛ {1})", lambda p, q, x, y: product(Contract(x, y, R), p, q), u, v, W, V),
    ),
)
law(
    "right-outer",
    "contraction",
    node(Section, node(Contract, W, V, U), 1, u) @ node(Section, node(Outer, W, V), 1, v),
    node(
        Section,
        node(Outer, W, U),
        1,
        calc("({1} ⊛ {0})", lambda p, q, x, y: product(Contract(R, x, y), q, p), u, v, V, U),
    ),
)
law(
    "transpose-left",
    "contraction",
    node(Transpose, W, U) @ node(Section, node(Contract, W, V, U), 0, v),
    node(Section, node(Contract, U, V, W), 1, calc("{0}ᵀ", transposed, v, W, V)) @ node(Transpose, V, U),
    "transposes",
)
law(
    "transpose-right",
    "contraction",
    node(Transpose, W, U) @ node(Section, node(Contract, W, V, U), 1, v),
    node(Section, node(Contract, U, V, W), 0, calc("{0}ᵀ", transposed, v, V, U)) @ node(Transpose, W, V),
    "transposes",
)

LAWS: tuple[Law, ...] = tuple(_laws)
"""Every law."""


def laws(group: str | None = None) -> list[Law]:
    """The laws of the simplifier, of one group or all.

    >>> import riesz as rz
    >>> print(rz.laws("biproduct")[0])
    proj-fork:  π_i ∘ ⟨f₁ … fₙ⟩ = f_i
    """
    return [x for x in LAWS if group in (None, x.group)]
