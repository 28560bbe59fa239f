"""The laws of the simplifier: data, both sides patterns, oriented from left to right.

Why rewriting ends: every law makes less of something (`MEANING` in page.py), and a test measures it. Most have fewer
nodes on the right; each other says what becomes less. Why nothing grows: the engine counts what a law makes against
what it is sure to drop, so shared parts are paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..ops.op import Contraction
from ..relations import Diagonal, Empty, Full, Function, Segments, fused
from ..spaces.space import DirectSum, R
from ..terms import bilinear, sums, unitary
from ..terms.bilinear import Applied, Contract, Hadamard, Inner, MatMul, Outer, ScalarMul, transposed
from ..terms.term import Combine, Const, Id, Term, Unitary, ZeroMap
from ..terms.weights import Equip, Forget, Represent, Weigh
from .evaluating import array_shape, fixed, formal_product, named_contraction, number, product, rank_one
from .term_patterns import Calc, Each, Found, Head, Missing, Pattern, Var
from .writing import text

When = Callable[[Found], bool] | None


@dataclass(frozen=True, eq=False)
class Law:
    """left = right, used from left to right where `when` holds; `less` says what there is less of on the right."""

    group: str
    name: str
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


_laws: list[Law] = []


def group(name: str) -> Callable[..., None]:
    """What enters the laws of a group: name, left, right, and what else a `Law` has."""
    return lambda *parts, **named: _laws.append(Law(name, *parts, **named))


# -- variables, and what patterns are made with ------------------------------------------------------------------------

WHOLE = Var("t", Term)  # the left side itself, for its spaces
f, g, h = [Var(x, Term) for x in "fgh"]
L = Var("L", Term, linear=True)
fs, gs = [Var(x, Term, family=True) for x in "fg"]
ls, ms = [Var(x, Term, linear=True, family=True) for x in "LM"]
i, j, X, Y, V, W, U, form, index = [Var(x) for x in ("i", "j", "X", "Y", "V", "W", "U", "form", "index")]
ns, Vs, Ws = [Var(x, family=True) for x in ("", "V", "W")]
relation, later = Var("R"), Var("S")
u, v, w, us = Var("u"), Var("v"), Var("w"), Var("w", family=True)
b = Var("⋄", bilinear.Bilinear)
turn, back = Var("u", Unitary), Var("u⁻¹", Unitary)
contracted, shapes = Var("contract[…→…]", Contraction), Var("shapes")
one, two, p, q = [Var(x, float) for x in "kmpq"]


def maker(kind: type[Term], *last: Any) -> Callable[..., Pattern]:
    """What makes a pattern of a class from its fields; the last ones may be given."""
    return lambda *fields: Head(kind, *fields, *last)


identity, zeros, const, combine = map(maker, (Id, ZeroMap, Const, Combine))
proj, inj, fork, join, add, dup = map(maker, (sums.Project, sums.Inject, sums.Fork, sums.Join, sums.Add, sums.Dup))
par, block = [maker(kind, index, form) for kind in (sums.Par, sums.BlockDiag)]
rep, total = [maker(kind, None) for kind in (sums.Rep, sums.Total)]  # at every index
red, zipped, unzipped, pack, unpack = map(maker, (sums.Reduce, sums.Zip, sums.Unzip, sums.Pack, sums.Unpack))
bra, ket, unbra, unket = map(maker, (unitary.Bra, unitary.Ket, unitary.Unbra, unitary.Unket))
transpose, regroup = map(maker, (unitary.Transpose, sums.Regroup))
forget, equip, weigh, represent = map(maker, (Forget, Equip, Weigh, Represent))
contract, outer, inner, times, hadamard = map(maker, (Contract, Outer, Inner, ScalarMul, Hadamard))
matvec, applied, section = map(maker, (bilinear.MatVec, Applied, bilinear.Section))


def left(product: Pattern, value: Any) -> Pattern:
    """(u ⋄)."""
    return section(product, 0, value)


def right(product: Pattern, value: Any) -> Pattern:
    """(⋄ v)."""
    return section(product, 1, value)


def dom(p: Pattern) -> Pattern:
    """The domain of what p stands for."""
    return Calc("", lambda t: t.domain, p)


def cod(p: Pattern) -> Pattern:
    """The codomain of what p stands for."""
    return Calc("", lambda t: t.codomain, p)


def some(which: Pattern, at: Pattern) -> Pattern:
    """Summand number `at` of a direct sum or copower."""
    return Calc("", lambda s, n: s.summands[n] if isinstance(s, DirectSum) else s.base, which, at)


def scaled(coefficient: Any, t: Pattern) -> Pattern:
    """k · t."""
    return combine((coefficient,), (t,))


def scaling(coefficient: Any, space: Any) -> Pattern:
    """(k ·)."""
    return left(times(space), (coefficient,))


def ones(family: Pattern) -> Pattern:
    """1, as often as a family has members."""
    return Calc("", lambda t: (1.0,) * len(t), family)


def both(x: Pattern, y: Pattern) -> Pattern:
    """The product of two numbers."""
    return Calc("({0}{1})", lambda k, m: k * m, x, y)


def made(symbol: str, kind: Any, x: Pattern, y: Pattern, *spaces: Any, by: Callable[..., Any] = product) -> Pattern:
    """x ⋄ y, computed."""
    return Calc(f"({{0}} {symbol} {{1}})", lambda s, t, *fields: by(kind(*fields), s, t), x, y, *spaces)


def where(test: Callable[[Any], bool], of: Var = relation) -> When:
    """Whether something holds of what a variable stands for."""
    return lambda x: test(x[of])


ident, zero, pi, iota = identity(V), zeros(V, W), proj(V, i), inj(V, i)
whole, nothing, all_zero = identity(dom(WHOLE)), zeros(dom(WHOLE), cod(WHOLE)), Each(zeros(Vs, Ws))

# -- category ----------------------------------------------------------------------------------------------------------

law = group("category")
law("id-after", ident @ f, f)
law("id-before", f @ ident, f)
law("assoc", (h @ g) @ f, h @ (g @ f), "nesting")
law("id-map", ident**X, whole)
law("id-par", par(Each(identity(Vs))), whole)
law("id-block", block(Each(identity(Vs))), whole)

# -- zeros and constants -----------------------------------------------------------------------------------------------

law = group("zero")
law("zero-after", zero @ f, zeros(dom(f), W))
law("zero-before", L @ zero, zeros(V, cod(L)))
law("const-after", const(V, W, w) @ f, const(dom(f), W, w))
law("zero-fork", fork(all_zero), nothing)
law("zero-join", join(all_zero), nothing)
law("zero-par", par(all_zero), nothing)
law("zero-block", block(all_zero), nothing)
law("zero-map", zero**X, nothing)
law("zero-sum", combine((one, two), (f, zero)), scaled(one, f))
together = Calc("({0}₁ … {0}ₙ)", lambda t: tuple([x for leaves in t for x in leaves]), us)
law("const-fork", fork(Each(const(Vs, Ws, us))), const(dom(WHOLE), cod(WHOLE), together))

# -- biproducts --------------------------------------------------------------------------------------------------------


def _in_order(x: Found) -> bool:
    return isinstance(x[V], DirectSum) and x[ns] == tuple(range(len(x[V].summands)))


law = group("biproduct")
law("proj-fork", pi @ fork(fs), fs[i])
law("proj-inj", pi @ iota, identity(some(V, i)))
law("proj-other", pi @ inj(V, j), zeros(some(V, j), some(V, i)), note="i ≠ j", when=lambda x: x[i] != x[j])
law("join-inj", join(ls) @ iota, ls[i])
law("proj-par", pi @ par(fs), fs[i] @ proj(dom(par(fs)), i))
law("proj-block", pi @ block(fs), fs[i] @ proj(dom(block(fs)), i))
law("par-inj", par(ls) @ iota, inj(cod(par(ls)), i) @ ls[i])
law("block-inj", block(ls) @ iota, inj(cod(block(ls)), i) @ ls[i])
law("proj-dup", pi @ dup(V), identity(some(V, i)))
law("add-inj", add(V) @ iota, identity(some(V, i)))
law("add-fork", add(V) @ fork(fs), combine(ones(fs), fs))
law("add-par", add(V) @ par(ls), join(ls))
law("add-block", add(V) @ block(ls), join(ls))
law("par-dup", par(fs) @ dup(V), fork(fs))
law("block-dup", block(ls) @ dup(V), fork(ls))
law("join-dup", join(ls) @ dup(V), combine(ones(ls), ls))
ordered: Any = {"note": "all of them, in order", "when": _in_order}
same: Any = {**ordered, "when": lambda x: _in_order(x) and x[f].codomain is x[WHOLE].codomain}
law("fork-projs", fork(Each(proj(V, ns))), ident, **ordered)
law("fork-eta", fork(Each(proj(V, ns) @ f)), f, **same)
law("join-injs", join(Each(inj(V, ns))), ident, **ordered)
law("par-par", par(gs) @ par(fs), par(Each(gs @ fs)), "families", "n ≤ 2, or enough identities")
law("block-block", block(ms) @ block(ls), block(Each(ms @ ls)), "families", "likewise")
law("par-fork", par(gs) @ fork(fs), fork(Each(gs @ fs)), "families", "likewise")
law("block-fork", block(gs) @ fork(fs), fork(Each(gs @ fs)), "families", "likewise")
law("join-par", join(ms) @ par(ls), join(Each(ms @ ls)), "families", "likewise")
law("join-block", join(ms) @ block(ls), join(Each(ms @ ls)), "families", "likewise")
law("join-fork", join(gs) @ fork(fs), combine(ones(fs), Each(gs @ fs)), "families", "likewise")

# -- copowers ----------------------------------------------------------------------------------------------------------

law = group("copower")
law("map-map", g**X @ f**X, (g @ f) ** X)
law("map-rep", f**X @ rep(X, V), rep(X, cod(f)) @ f)
law("total-map", total(X, V) @ L**X, L @ total(X, dom(L)))
law("proj-map", pi @ f**X, f @ proj(dom(f**X), i))
law("map-inj", L**X @ iota, inj(cod(L**X), i) @ L)
law("proj-rep", proj(U, i) @ rep(X, V), ident)
law("total-inj", total(X, V) @ inj(U, i), ident)
law("total-rep", total(X, V) @ rep(X, V), scaling(Calc("|{0}|", lambda s: float(s.size), X), V))
law("zip-maps", zipped(V) @ fork(Each(fs**X)), fork(fs) ** X)
rows = Calc("", lambda s: getattr(sums.Zip(s).codomain, "base", None), V)
columns = Calc("X", lambda s, n: getattr(s.summands[n], "index", None), V, i)
law("proj-unzip", pi @ unzipped(V), proj(rows, i) ** columns)

# -- relational reduction ----------------------------------------------------------------------------------------------


def _full(r: Any) -> bool:
    return type(r) is Full and r.times == 1


def _function(r: Any) -> bool:
    return type(r) in (Function, Diagonal) or (type(r) is Segments and not r.turned)


law = group("relations")
reduced = red(relation, V)
source, target = Calc("X", lambda r: r.source, relation), Calc("Y", lambda r: r.target, relation)
then, square = Calc("({0};{1})", fused, relation, later), Calc("({0}×{1})", lambda s, t: Full(s, t, 1), X, Y)
equal, full = where(lambda r: type(r) is Diagonal and r.source is r.target), where(_full)
law("red-red", red(later, V) @ reduced, red(then, V), note="R;S symbolic, and no more work than R and S")
law("red-id", reduced, whole, "names", "R is = on X", equal)
law("red-empty", reduced, nothing, "names", "R is ∅", where(lambda r: type(r) is Empty))
law("total-red", total(Y, V) @ reduced, total(source, V), note="R a function X → Y", when=where(_function))
backwards = where(lambda r: _function(r.converse))
law("red-rep", reduced @ rep(X, V), rep(target, V), note="Rᵀ a function Y → X", when=backwards)
law("rep-total", rep(Y, V) @ total(X, V), red(square, V))
law("proj-full", pi @ red(relation, W), total(source, W), note="R is X × Y", when=full)
law("full-inj", red(relation, W) @ iota, rep(target, W), note="R is X × Y", when=full)

# -- unitary maps ------------------------------------------------------------------------------------------------------


def _same_sum(x: Found) -> bool:
    return isinstance(x[V], DirectSum) and isinstance(x[W], DirectSum) and x[V].summands == x[W].summands


law = group("unitary")
plain = identity(Calc("", lambda s: s.unweighted, V))
some_index: Any = {"note": "X not empty", "when": where(lambda s: s.size > 0, X)}
renamed: Any = {"note": "V and W the same sum under two names", "when": _same_sum}
law("inverse", back @ turn, identity(dom(turn)), when=lambda x: x[back] is x[turn].inverse)
law("regroup-regroup", regroup(V, W) @ regroup(U, V), regroup(U, W))
law("regroup-id", regroup(V, V), ident, "names")
law("forget-equip", forget(V) @ equip(V), plain)
law("equip-forget", equip(V) @ forget(V), ident)
law("weigh-represent", weigh(V) @ represent(V), plain)
law("represent-weigh", represent(V) @ weigh(V), ident)
law("transpose-bra", transpose(U, W) @ bra(V), ket(V))
law("transpose-ket", transpose(U, W) @ ket(V), bra(V))
law("unbra-transpose", unbra(V) @ transpose(U, W), unket(V))
law("unket-transpose", unket(V) @ transpose(U, W), unbra(V))
law("proj-unpack", pi @ unpack(W, X), proj(dom(unpack(W, X)), i))
law("pack-inj", pack(W, X) @ iota, inj(cod(pack(W, X)), i))
law("total-pack", total(X, V) @ pack(V, X), add(dom(pack(V, X))), **some_index)
law("unpack-rep", unpack(V, X) @ rep(X, V), dup(cod(unpack(V, X))), **some_index)
law("proj-regroup", proj(W, i) @ regroup(V, W), proj(V, i), **renamed)

# -- scaling -----------------------------------------------------------------------------------------------------------

law = group("scaling")
law("scale-after", scaling(one, V) @ f, scaled(one, f))
law("scale-before", L @ scaling(one, V), scaled(one, L))
law("scale-left", scaled(one, g) @ f, scaled(one, g @ f), "scalings")
law("scale-right", L @ scaled(one, f), scaled(one, L @ f), "scalings")
law("scale-scale", scaled(one, scaled(two, f)), scaled(both(one, two), f))
law("scale-one", scaled(1.0, f), f)
law("one", scaling(1.0, V), ident)
law("scale-id", scaled(one, ident), scaling(one, V), "families", "id not used elsewhere")
plus = Calc("({0}+{1})", lambda k, m: k + m, one, two)
law("like-terms", combine((one, two), (f, f)), scaled(plus, f), "members")
nested = combine((one, two), (combine((p, q), (f, g)), h))
law("sum-sum", nested, combine((both(one, p), both(one, q), two), (f, g, h)))

# -- products and contractions -----------------------------------------------------------------------------------------

law = group("contraction")
constant = const(V, W, u)
law("fix-left", b @ fork((constant, f)), left(b, u) @ f)
law("fix-right", b @ fork((f, const(V, W, v))), right(b, v) @ f)
product_of = applied(contracted, shapes)
for place, side, given in ((0, "left", (constant, f)), (1, "right", (f, constant))):
    known = Calc("", fixed, contracted, shapes, place, u)
    parts = [Calc(name, lambda x, at=at: x[at], known, new=at == 0) for at, name in enumerate(("⋄", "", "u"))]
    note = "⋄ one of ·, ∗, ⊙, ⋆; matrices may be transposed"
    law(f"name-{side}", product_of @ fork(given), section(*parts) @ f, note=note)
called = Calc("⋄", named_contraction, contracted, shapes)
law("named", product_of, called, "names", "⋄ one of ·, ∗, ⊙, ⋆, Σ, rep")
law("inner-symmetric", right(inner(V), v), left(inner(V), v), "names")
law("product-symmetric", right(hadamard(V), v), left(hadamard(V), v), "names")
law("scale-number", right(times(R), v), left(times(R), v), "names", "on ℝ")
law("inner-number", left(inner(R), v), left(times(R), v), "names", "on ℝ")
law("product-number", left(hadamard(R), v), left(times(R), v), "names", "on ℝ")
products = left(hadamard(V), made("∗", Hadamard, u, v, V))
law("product-product", left(hadamard(V), u) @ left(hadamard(V), v), products)
number_of = made("⊙", Inner, u, v, V, by=lambda *given: number(product(*given) or ()))
law("inner-scale", left(inner(V), u) @ right(times(V), v), scaling(number_of, R))
matrix = matvec(Calc("", array_shape, W), Calc("", array_shape, V))
dyad, unevaluated = Calc("({0} ⊗ {1})", rank_one, v, u, V, W), "u and v unevaluated products"
arrays = "V and W arrays; v ⊗ u is not multiplied out"
law("rank-one", right(times(W), v) @ left(inner(V), u), left(matrix, dyad), note=arrays)
formal = partial(made, by=formal_product)
matrices = left(matvec(X, U), formal("⋆", MatMul, u, v, X, Y, U))
law("matrices", left(matvec(X, Y), u) @ left(matvec(Y, U), v), matrices, note=unevaluated)
lefts = left(contract(W, X, U), formal("⊛", Contract, u, v, W, V, X))
law("left-left", left(contract(W, V, U), u) @ left(contract(V, X, U), v), lefts, note=unevaluated)
rights = right(contract(W, X, U), formal("⊛", Contract, u, v, X, V, U))
law("right-right", right(contract(W, V, U), v) @ right(contract(W, X, V), u), rights, note=unevaluated)
first = left(contract(W, V, U), u) @ right(contract(V, X, U), v)
last = right(contract(W, X, U), v) @ left(contract(W, V, X), u)
kronecker = "the Kronecker product u ⊗ vᵀ; where W ⊗ X is smaller than V ⊗ U"
law("left-right", first, last, "between", kronecker, lambda x: x[W].dim * x[X].dim < x[V].dim * x[U].dim)
smaller = "where V ⊗ U is smaller than W ⊗ X"
law("right-left", last, first, "between", smaller, lambda x: x[V].dim * x[U].dim < x[W].dim * x[X].dim)
lefts = left(outer(W, U), made("⊛", Contract, u, v, W, V, R))
law("left-outer", left(contract(W, V, U), u) @ left(outer(V, U), v), lefts)
rights = right(outer(W, U), made("⊛", Contract, v, u, R, V, U))
law("right-outer", right(contract(W, V, U), u) @ right(outer(W, V), v), rights)
turned = right(contract(U, V, W), Calc("{0}ᵀ", transposed, v, W, V)) @ transpose(V, U)
law("transpose-left", transpose(W, U) @ left(contract(W, V, U), v), turned, "transposes")
turned = left(contract(U, V, W), Calc("{0}ᵀ", transposed, v, V, U)) @ transpose(W, V)
law("transpose-right", transpose(W, U) @ right(contract(W, V, U), v), turned, "transposes")

LAWS: tuple[Law, ...] = tuple(_laws)
"""Every law."""


def laws(group: str | None = None) -> list[Law]:
    """The laws of the simplifier, of one group or all.

    >>> import riesz as rz
    >>> print(rz.laws("biproduct")[0])
    proj-fork:  π_i ∘ ⟨f₁ … fₙ⟩ = f_i
    """
    return [x for x in LAWS if group in (None, x.group)]
