"""The simplifier: every law on random instances, and random terms simplified. One law, one instance."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz import R, seg
from riesz.calculus.derive import lower
from riesz.ops.op import Contraction, contraction
from riesz.programs.program_to_term import to_term
from riesz.relations import Diagonal, Empty, Full, Segments, freeze, function
from riesz.relations.index_sets import Seg
from riesz.runtime.interning import postorder
from riesz.simplify.engine import parts, simplified
from riesz.simplify.laws import LAWS, Law
from riesz.simplify.page import MEANING, page
from riesz.simplify.term_patterns import Found
from riesz.spaces.formal_vectors import Formal
from riesz.spaces.formal_vectors import FormalProduct as FormalProduct
from riesz.spaces.space import Copower, DirectSum, Space, direct_sum, real_space
from riesz.terms.bilinear import Applied, Contract, Hadamard, Inner, MatVec, Outer, ScalarMul, Section
from riesz.terms.sums import (
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
from riesz.terms.term import Combine, Compose, Const, Id, Term, Unitary, ZeroMap
from riesz.terms.unitary import Bra, Ket, Transpose, Unbra, Unket
from riesz.terms.weights import Equip, Forget, Represent, Weigh
from riesz.testing import Builder, functions, linear_terms

Make = Callable[[Builder], Term]


def close(space: Space, a: Any, b: Any, tolerance: float = 1e-9) -> None:
    x, y = space.flatten(a), space.flatten(b)
    assert np.allclose(
        x, y, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(x).max(initial=0.0))), equal_nan=True
    ), (x, y)


def same(t: Term, s: Term) -> None:
    """The same spaces, the same values; linear terms stay linear and have the same adjoint."""
    assert s.domain is t.domain and s.codomain is t.codomain
    assert s.linear or not t.linear
    for seed in range(2):
        x, y = t.domain.random(seed), t.codomain.random(seed)
        with np.errstate(all="ignore"):
            close(t.codomain, t(x), s(x))
            if t.linear:
                close(t.domain, t.H(y), s.H(y))


# -- an instance of the left side of every law ------------------------------------------------------------------------------


def V(b: Builder) -> Space:
    return b.space(5, 1)


def lin(b: Builder, space: Space | None = None) -> Term:
    return b.linear(V(b) if space is None else space, 1)


def inside(b: Builder) -> Builder:
    """The builder, in f^X."""
    b.mapped = True
    return b


def fun(b: Builder, space: Space | None = None) -> Term:
    return b.function(V(b) if space is None else space, 1)


def into(b: Builder, W: Space) -> Term:
    """A function that ends in W."""
    return b.toward(V(b), W)


def several(b: Builder, make: Make, least: int = 1) -> tuple[Term, ...]:
    return tuple([make(b) for _ in range(least + b.pick(3))])


def forked(b: Builder) -> Fork:
    space = V(b)
    return Fork(several(b, lambda b: fun(b, space)))


def family(kind: Any, terms: tuple[Term, ...]) -> Any:
    return kind(terms, Seg(len(terms)), None)


def joined(b: Builder) -> Join:
    W = V(b)
    return Join(several(b, lambda b: b.between(V(b), W, 1)))


def copies(b: Builder) -> DirectSum:
    return b.sum_of([V(b)] * (1 + b.pick(3)))


def index(b: Builder) -> Any:
    return b.some_set(4)


def at(b: Builder, space: Space, kind: Any) -> Term:
    """π or ι at a random position."""
    count = len(space.summands) if isinstance(space, DirectSum) else space.index.size  # pyright: ignore
    return kind(space, b.pick(count))


def sum_space(b: Builder) -> DirectSum:
    return b.sum_of([V(b) for _ in range(1 + b.pick(3))])


def scaling(b: Builder, space: Space) -> Term:
    return Section(ScalarMul(space), 0, (b.among((2.0, -1.0, 0.5)),))


def vector(n: int, b: Builder) -> Any:
    return freeze(b.rng().standard_normal(n))


def formal(b: Builder, n: int, m: int) -> Formal:
    return Formal((n, m), (FormalProduct(1.5, ((vector(n, b), (0,)), (vector(m, b), (1,)))),))


def array(b: Builder) -> Space:
    return real_space((1 + b.pick(3),))


def on(b: Builder, f: Term) -> Term:
    return fun(b, f.codomain)


def lin_on(b: Builder, f: Term) -> Term:
    return lin(b, f.codomain)


def fused(kind: Any, inner: Any, make: Make, after: Callable[[Builder, Term], Term]) -> Make:
    def made(b: Builder) -> Term:
        members = tuple([make(b) for _ in range(1 + b.pick(2))])
        outer = tuple([after(b, t) for t in members])
        return Compose(family(kind, outer), family(inner, members))

    return made


def on_fork(kind: Any, after: Callable[[Builder, Term], Term]) -> Make:
    def made(b: Builder) -> Term:
        space = V(b)
        members = tuple([fun(b, space) for _ in range(1 + b.pick(2))])
        return Compose(family(kind, tuple([after(b, t) for t in members])), Fork(members))

    return made


def from_join(inner: Any) -> Make:
    def made(b: Builder) -> Term:
        members, W = tuple([lin(b) for _ in range(1 + b.pick(2))]), V(b)
        return Compose(Join(tuple([b.between(t.codomain, W, 1) for t in members])), family(inner, members))

    return made


def join_fork(b: Builder) -> Term:
    space, W = V(b), V(b)
    members = tuple([fun(b, space) for _ in range(1 + b.pick(2))])
    return Compose(Join(tuple([b.between(t.codomain, W, 1) for t in members])), Fork(members))


def zeros(b: Builder, kind: Any) -> Term:
    space, W = V(b), V(b)
    made = [ZeroMap(V(b) if kind is not Fork else space, V(b) if kind is not Join else W) for _ in range(1 + b.pick(3))]
    return kind(tuple(made)) if kind in (Fork, Join) else family(kind, tuple(made))


def unitary_pair(b: Builder) -> Term:
    while True:
        t = b.step(b.space(), 0)
        if isinstance(t, Unitary):
            return Compose(t.inverse, t)  # pyright: ignore


def red(b: Builder, relation: Any) -> Reduce:
    return Reduce(relation, V(b))


def function_between(b: Builder) -> Any:
    n, m = 1 + b.pick(4), 1 + b.pick(4)
    cuts = np.sort(b.rng().integers(0, n + 1, m - 1))
    segments = Segments(Seg(n), Seg(m), freeze(np.concatenate([[0], cuts, [n]]).astype(np.intp)))
    return segments if b.maybe() else function(Seg(n), Seg(m), b.rng().integers(0, m, n))


def red_red(b: Builder) -> Term:
    n, m, k = [2 + b.pick(4) for _ in range(3)]
    base, ways = V(b), b.rng()
    if b.maybe():
        return Compose(Reduce(Full(Seg(m), Seg(k), 2), base), Reduce(Full(Seg(n), Seg(m), 3), base))
    R, S = function(Seg(n), Seg(m), ways.integers(0, m, n)), function(Seg(m), Seg(k), ways.integers(0, k, m))
    return Compose(Reduce(S, base), Reduce(R, base))


def weighed(b: Builder) -> Space:
    return b.weight(b.plain_space(5, 1))


def contract(b: Builder, W: Space, M: Space, U: Space, side: int) -> Section:
    return b.section(Contract(W, M, U), side)


def tensors(b: Builder) -> list[Space]:
    return [b.space(3, 1) for _ in range(4)]


def labelled(b: Builder) -> Applied:
    n, m, k = 1 + b.pick(3), 1 + b.pick(3), 1 + b.pick(3)
    rows = [
        (((0,), (0,)), (0,), ((n,), (n,))),
        (((), (0,)), (0,), ((), (n,))),
        (((0,), (0,)), (), ((n,), (n,))),
        (((0, 1), (1,)), (0,), ((n, m), (m,))),
        (((0, 1), (1, 2)), (0, 2), ((n, m), (m, k))),
    ]
    labels, out, shapes = b.among(rows)
    return Applied(contraction(labels, out), shapes)


def named(b: Builder) -> Term:
    single = [Applied(contraction(((0, 1),), ()), ((2, 3),)), Applied(contraction(((),), (0,), {0: 3}), ((),))]
    return b.among([labelled(b), *single])


def fixed(b: Builder, side: int) -> Term:
    t = labelled(b)
    if b.maybe():  # the arguments the other way round
        assert t.product is not None
        t = Applied(contraction(t.product.labels[::-1], t.product.out), t.shapes[::-1])
    spaces = [real_space(s) for s in t.shapes]
    constant = Const(domain := V(b), spaces[side], b.leaves(spaces[side]))
    other = b.toward(domain, spaces[1 - side])
    return Compose(t, Fork((constant, other) if side == 0 else (other, constant)))


def curried(b: Builder, side: int) -> Term:
    bilinear, domain = b.bilinear(), V(b)
    spaces = (bilinear.left, bilinear.right)
    constant, other = Const(domain, spaces[side], b.leaves(spaces[side])), b.toward(domain, spaces[1 - side])
    return Compose(bilinear, Fork((constant, other) if side == 0 else (other, constant)))


def smaller_between(b: Builder, left: bool) -> Term:
    small, large = real_space((1,)), real_space((3,))
    W, M, X, U = (small, large, small, large) if left else (large, small, large, small)
    if left:
        return Compose(contract(b, W, M, U, 0), contract(b, M, X, U, 1))
    return Compose(contract(b, W, X, U, 1), contract(b, W, M, X, 0))


def formals(b: Builder, which: str) -> Term:
    n, m, k, j = [1 + b.pick(3) for _ in range(4)]
    N, M, K, J = [real_space((x,)) for x in (n, m, k, j)]
    match which:
        case "matrices":
            return Compose(
                Section(MatVec((n,), (m,)), 0, (formal(b, n, m),)), Section(MatVec((m,), (k,)), 0, (formal(b, m, k),))
            )
        case "left":
            return Compose(
                Section(Contract(N, M, J), 0, (formal(b, n, m),)), Section(Contract(M, K, J), 0, (formal(b, m, k),))
            )
        case _:
            return Compose(
                Section(Contract(J, M, N), 1, (formal(b, m, n),)), Section(Contract(J, K, M), 1, (formal(b, k, m),))
            )


def zip_maps(b: Builder) -> Term:
    space, X = V(b), index(b)
    maps = Fork(several(b, lambda b: Map(fun(inside(b), space), X)))
    return Compose(Zip(maps.codomain), maps)  # pyright: ignore


def unzipped(b: Builder) -> Term:
    X = index(b)
    space = b.sum_of([Copower(V(b), X) for _ in range(1 + b.pick(3))])
    return Compose(at(b, space, Project), Unzip(space))


def projections(b: Builder, after: bool) -> Term:
    space = direct_sum(*[V(b) for _ in range(1 + b.pick(3))])
    f = into(b, space)
    positions = range(len(space.summands))
    return Fork(tuple([Compose(Project(space, i), f) if after else Project(space, i) for i in positions]))


def compose_at(b: Builder, outer: Any, f: Term) -> Term:
    return Compose(at(b, f.codomain, outer), f)


def regroups(b: Builder) -> Term:
    parts = [V(b) for _ in range(1 + b.pick(3))]
    A, B, C = [b.sum_of(parts) for _ in range(3)]
    return Compose(Regroup(B, C), Regroup(A, B))


def regrouped_projection(b: Builder) -> Term:
    parts = [V(b) for _ in range(1 + b.pick(3))]
    A, B = b.sum_of(parts), b.sum_of(parts)
    return Compose(at(b, B, Project), Regroup(A, B))


def after_inject(b: Builder, t: Term) -> Term:
    return Compose(t, at(b, t.domain, Inject))


def other_component(b: Builder) -> Term:
    space = b.sum_of([V(b) for _ in range(2 + b.pick(2))])
    i = b.pick(len(space.summands))
    return Compose(Project(space, i), Inject(space, (i + 1) % len(space.summands)))


def same_component(b: Builder) -> Term:
    space = sum_space(b)
    i = b.pick(len(space.summands))
    return Compose(Project(space, i), Inject(space, i))


def injections(space: DirectSum) -> Term:
    return Join(tuple([Inject(space, i) for i in range(len(space.summands))]))


def added(b: Builder, how: Any) -> Term:
    """+ after a fork, given its domain, or after a family."""
    space = direct_sum(*[V(b)] * (1 + b.pick(3)))
    if isinstance(how, Space):
        return Compose(Add(space), Fork(tuple([b.toward(how, p) for p in space.summands])))
    return Compose(Add(space), family(how, tuple([b.between(V(b), p, 1) for p in space.summands])))


def duplicated(b: Builder, kind: Any, make: Callable[[Builder, Space], Term]) -> Term:
    space = direct_sum(*[V(b)] * (1 + b.pick(3)))
    members = tuple([make(b, p) for p in space.summands])
    return Compose(kind(members) if kind is Join else family(kind, members), Dup(space))


INSTANCES: dict[str, Make] = {
    "id-after": lambda b: Compose(Id((f := fun(b)).codomain), f),
    "id-before": lambda b: Compose(fun(b, s := V(b)), Id(s)),
    "assoc": lambda b: Compose(Compose(fun(b, (g := fun(b, (f := fun(b)).codomain)).codomain), g), f),
    "id-map": lambda b: Map(Id(V(b)), index(b)),
    "id-par": lambda b: family(Par, several(b, lambda b: Id(V(b)))),
    "id-block": lambda b: family(BlockDiag, several(b, lambda b: Id(V(b)))),
    "zero-after": lambda b: Compose(ZeroMap((f := fun(b)).codomain, V(b)), f),
    "zero-before": lambda b: Compose((f := lin(b)), ZeroMap(V(b), f.domain)),
    "const-after": lambda b: Compose(Const((f := fun(b)).codomain, W := V(b), b.leaves(W)), f),
    "zero-fork": lambda b: zeros(b, Fork),
    "zero-join": lambda b: zeros(b, Join),
    "zero-par": lambda b: zeros(b, Par),
    "zero-block": lambda b: zeros(b, BlockDiag),
    "zero-map": lambda b: Map(ZeroMap(V(b), V(b)), index(b)),
    "zero-sum": lambda b: Combine((2.0, 3.0), (f := fun(b), ZeroMap(f.domain, f.codomain))),
    "const-fork": lambda b: Fork(several(b, (lambda s: lambda b: Const(s, W := V(b), b.leaves(W)))(V(b)))),
    "proj-fork": lambda b: compose_at(b, Project, forked(b)),
    "proj-inj": same_component,
    "proj-other": other_component,
    "join-inj": lambda b: after_inject(b, joined(b)),
    "proj-par": lambda b: compose_at(b, Project, family(Par, several(b, fun))),
    "proj-block": lambda b: compose_at(b, Project, family(BlockDiag, several(b, lin))),
    "par-inj": lambda b: after_inject(b, family(Par, several(b, lin))),
    "block-inj": lambda b: after_inject(b, family(BlockDiag, several(b, lin))),
    "proj-dup": lambda b: compose_at(b, Project, Dup(copies(b))),
    "add-inj": lambda b: after_inject(b, Add(copies(b))),
    "add-fork": lambda b: added(b, V(b)),
    "add-par": lambda b: added(b, Par),
    "add-block": lambda b: added(b, BlockDiag),
    "par-dup": lambda b: duplicated(b, Par, fun),
    "block-dup": lambda b: duplicated(b, BlockDiag, lin),
    "join-dup": lambda b: duplicated(b, Join, (lambda W: lambda b, s: b.between(s, W, 1))(V(b))),
    "fork-projs": lambda b: projections(b, False),
    "fork-eta": lambda b: projections(b, True),
    "join-injs": lambda b: injections(direct_sum(*[V(b) for _ in range(1 + b.pick(3))])),
    "par-par": fused(Par, Par, fun, on),
    "block-block": fused(BlockDiag, BlockDiag, lin, lin_on),
    "par-fork": on_fork(Par, on),
    "block-fork": on_fork(BlockDiag, lin_on),
    "join-par": from_join(Par),
    "join-block": from_join(BlockDiag),
    "join-fork": join_fork,
    "map-map": lambda b: Compose(Map(on(b, f := fun(inside(b))), X := index(b)), Map(f, X)),
    "map-rep": lambda b: Compose(Map(f := fun(inside(b)), X := index(b)), Rep(X, f.domain, None)),
    "total-map": lambda b: Compose(Total(X := index(b), (f := lin(inside(b))).codomain, None), Map(f, X)),
    "proj-map": lambda b: compose_at(b, Project, Map(fun(inside(b)), index(b))),
    "map-inj": lambda b: after_inject(b, Map(lin(inside(b)), index(b))),
    "proj-rep": lambda b: compose_at(b, Project, Rep(index(b), V(b), None)),
    "total-inj": lambda b: after_inject(b, Total(index(b), V(b), None)),
    "total-rep": lambda b: Compose(Total(X := b.index_set(4), W := V(b), None), Rep(X, W, None)),
    "zip-maps": zip_maps,
    "proj-unzip": unzipped,
    "red-red": red_red,
    "red-id": lambda b: red(b, Diagonal(X := index(b), X)),
    "red-empty": lambda b: red(b, Empty(index(b), index(b))),
    "total-red": lambda b: Compose(Total((r := red(b, function_between(b))).relation.target, r.base, None), r),
    "red-rep": lambda b: Compose(r := red(b, function_between(b).converse), Rep(r.relation.source, r.base, None)),
    "rep-total": lambda b: Compose(Rep(index(b), W := V(b), None), Total(index(b), W, None)),
    "proj-full": lambda b: compose_at(b, Project, red(b, Full(index(b), index(b), 1))),
    "full-inj": lambda b: after_inject(b, red(b, Full(index(b), index(b), 1))),
    "inverse": unitary_pair,
    "regroup-regroup": regroups,
    "regroup-id": lambda b: Regroup(W := V(b), W),
    "forget-equip": lambda b: Compose(Forget(s := weighed(b)), Equip(s)),
    "equip-forget": lambda b: Compose(Equip(s := weighed(b)), Forget(s)),
    "weigh-represent": lambda b: Compose(Weigh(s := weighed(b)), Represent(s)),
    "represent-weigh": lambda b: Compose(Represent(s := weighed(b)), Weigh(s)),
    "transpose-bra": lambda b: Compose(Transpose(R, s := V(b)), Bra(s)),
    "transpose-ket": lambda b: Compose(Transpose(s := V(b), R), Ket(s)),
    "unbra-transpose": lambda b: Compose(Unbra(s := V(b)), Transpose(s, R)),
    "unket-transpose": lambda b: Compose(Unket(s := V(b)), Transpose(R, s)),
    "proj-unpack": lambda b: compose_at(b, Project, Unpack(V(b), index(b))),
    "pack-inj": lambda b: after_inject(b, Pack(V(b), index(b))),
    "total-pack": lambda b: Compose(Total(X := index(b), W := V(b), None), Pack(W, X)),
    "unpack-rep": lambda b: Compose(Unpack(W := V(b), X := index(b)), Rep(X, W, None)),
    "proj-regroup": regrouped_projection,
    "scale-after": lambda b: Compose(scaling(b, (f := fun(b)).codomain), f),
    "scale-before": lambda b: Compose(f := lin(b), scaling(b, f.domain)),
    "scale-left": lambda b: Compose(Combine((2.0,), (on(b, f := fun(b)),)), f),
    "scale-right": lambda b: Compose(lin_on(b, f := fun(b)), Combine((2.0,), (f,))),
    "scale-scale": lambda b: Combine((2.0,), (Combine((-0.5,), (fun(b),)),)),
    "scale-one": lambda b: Combine((1.0,), (fun(b),)),
    "one": lambda b: Section(ScalarMul(V(b)), 0, (1.0,)),
    "scale-id": lambda b: Combine((2.0,), (Id(V(b)),)),
    "like-terms": lambda b: Combine((2.0, 0.5), (f := fun(b), f)),
    "sum-sum": lambda b: Combine((2.0, -1.0), (Combine((0.5, 3.0), (f := fun(b), b.toward(f.domain, f.codomain))), f)),
    "fix-left": lambda b: curried(b, 0),
    "fix-right": lambda b: curried(b, 1),
    "name-left": lambda b: fixed(b, 0),
    "name-right": lambda b: fixed(b, 1),
    "named": named,
    "inner-symmetric": lambda b: b.section(Inner(V(b)), 1),
    "product-symmetric": lambda b: b.section(Hadamard(array(b)), 1),
    "scale-number": lambda b: b.section(ScalarMul(R), 1),
    "inner-number": lambda b: b.section(Inner(R), 0),
    "product-number": lambda b: b.section(Hadamard(R), 0),
    "product-product": lambda b: Compose(b.section(Hadamard(s := array(b)), 0), b.section(Hadamard(s), 0)),
    "inner-scale": lambda b: Compose(
        b.section(Inner(s := b.among((array(b), direct_sum(array(b), R)))), 0), b.section(ScalarMul(s), 1)
    ),
    "rank-one": lambda b: Compose(b.section(ScalarMul(array(b)), 1), b.section(Inner(array(b)), 0)),
    "matrices": lambda b: formals(b, "matrices"),
    "left-left": lambda b: formals(b, "left"),
    "right-right": lambda b: formals(b, "right"),
    "left-right": lambda b: smaller_between(b, True),
    "right-left": lambda b: smaller_between(b, False),
    "left-outer": lambda b: Compose(
        contract(b, array(b), s := direct_sum(array(b), R), u := V(b), 0), b.section(Outer(s, u), 0)
    ),
    "right-outer": lambda b: Compose(
        contract(b, w := V(b), s := direct_sum(array(b), R), array(b), 1), b.section(Outer(w, s), 1)
    ),
    "transpose-left": lambda b: Compose(
        Transpose((t := contract(b, *tensors(b)[:3], 0)).codomain.left, t.codomain.right), t
    ),  # pyright: ignore
    "transpose-right": lambda b: Compose(
        Transpose((t := contract(b, *tensors(b)[:3], 1)).codomain.left, t.codomain.right), t
    ),  # pyright: ignore
}


def test_every_law_has_instances_and_a_name_of_its_own():
    assert list(INSTANCES) == [law.name for law in LAWS]
    assert tuple(MEANING) == Measure._fields and {law.less for law in LAWS} <= set(MEANING)


seeds = st.integers(0, 2**32 - 1)
ALL = pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])


def instance(law: Law, seed: int) -> Term:
    numbers = np.random.default_rng(seed).integers
    return INSTANCES[law.name](Builder(lambda n: int(numbers(n))))


@ALL
@examples(0.2)
@given(seed=seeds)
def test_law(law: Law, seed: int):
    """Both sides are one function; the right side measures less, and the law says in what."""
    left = instance(law, seed)
    right = law.rewrite(left)
    assert right is not None
    same(left, right)
    before, after = measured(law, left)
    assert after < before


class Measure(NamedTuple):
    """Compared in this order."""

    nodes: int
    families: int
    members: int
    names: int
    scalings: int
    transposes: int
    between: int
    nesting: int


def measure(t: Term, atoms: Collection[Term] = ()) -> Measure:
    """The measure of a term; atoms stand for themselves, whatever is inside."""
    found, members, stack = {t}, 0, [t]
    while stack:
        inside = parts(x) if (x := stack.pop()) not in atoms else ()
        members += len(inside)
        new = set(inside) - found
        found |= new
        stack += new
    order = [x for x in found if x not in atoms]
    chains = [x for x in order if isinstance(x, Compose)]
    factors = [part for x in chains for part in (x.outer, x.inner) if part not in atoms]
    return Measure(
        nodes=len(found),
        families=sum([isinstance(x, (Par, BlockDiag, Fork, Join, Map, Combine)) for x in order]),
        members=members,
        names=sum([_unusual(x) for x in order]),
        scalings=sum([isinstance(x, Combine) and len(x.terms) == 1 for x in factors]),
        transposes=sum([_sections(x.inner) for x in chains if isinstance(x.outer, Transpose)]),
        between=sum([x.inner.codomain.dim for x in chains]),
        nesting=sum([isinstance(x.outer, Compose) and x.outer not in atoms for x in chains]),
    )


def _unusual(t: Term) -> int:
    if isinstance(t, Section) and not isinstance(t.bilinear, Contract):
        return t.side + isinstance(t.bilinear, (Inner, Hadamard))
    return int(isinstance(t, (Reduce, Regroup)) or (isinstance(t, Applied) and isinstance(t.op, Contraction)))


def _sections(t: Term) -> int:
    """How many sections of ⊛ a composition has."""
    found = 0
    while isinstance(t, Compose):
        found += isinstance(t.outer, Section)
        t = t.inner
    return found + isinstance(t, Section)


def measured(law: Law, left: Term) -> tuple[Measure, Measure]:
    """The measures of both sides; what variables stand for counts as one node."""
    found: Found = {}
    assert law.left.match(left, found)
    atoms = {
        t for value in found.values() for t in (value if type(value) is tuple else (value,)) if isinstance(t, Term)
    }
    right = law.rewrite(left)
    assert right is not None
    return measure(left, atoms), measure(right, atoms)


@ALL
def test_the_engine_knows_the_law_and_the_law_what_it_makes_less(law: Law):
    instances = [instance(law, seed) for seed in range(40)]
    assert any(t.simplify() is not t and str(t.simplify()) == str(simplified(law.rewrite(t) or t)) for t in instances)
    changed = [
        next(name for name, x, y in zip(Measure._fields, *measured(law, t), strict=True) if x != y) for t in instances
    ]
    assert law.less in changed


@pytest.mark.parametrize(
    "t",
    [
        Compose(Map(rz.cos, seg(2)), Rep(seg(2), R, (0,))),  # cos 0 is not 0
        Compose(Map(rz.cos, seg(2)), Inject(R ** seg(2), 0)),
        Compose(Total(seg(2), R, None), Map(rz.cos, seg(2))),
        Compose(Par((rz.cos, rz.cos), seg(2), None), Inject(R * R, 0)),
        Compose(rz.cos, ZeroMap(R, R)),
        Compose(rz.cos, Section(ScalarMul(R), 0, (2.0,))),
        Combine((0.0,), (rz.ln,)),
    ],
    ids=str,
)
def test_laws_of_linear_maps_are_not_for_other_functions(t: Term):
    assert t.simplify() is t


# -- random terms -----------------------------------------------------------------------------------------------------------


def nodes(t: Term) -> int:
    return len([s for s in postorder(t) if isinstance(s, Term)])


def check_simplified(t: Term) -> None:
    s = t.simplify()
    same(t, s)
    assert simplified(s) is s and t.simplify() is s and s.simplify() is s
    assert nodes(s) <= nodes(t)


@given(linear_terms())
def test_linear_terms_simplified(t: Term):
    check_simplified(t)
    check_simplified(t.H)


@given(functions())
def test_functions_simplified(t: Term):
    check_simplified(t)


@pytest.mark.long
@given(functions(weighted=False), functions(weighted=False))
def test_shared_terms_simplified(f: Term, g: Term):
    """Programs as terms share what programs share; so do sums of them and what is made of them."""
    t = to_term(lower(f))
    check_simplified(t)
    W = t.codomain
    check_simplified(Combine((1.0, -0.5, 2.0), (t, Compose(Id(W), t), Compose(Section(ScalarMul(W), 0, (3.0,)), t))))
    check_simplified(
        Fork((t, Compose(Project(direct_sum(W, W), 1), Fork((t, t))), to_term(lower(g)) if g.domain is f.domain else t))
    )


def web(b: Builder) -> Term:
    """Terms made of each other at random: almost everything has several users."""
    pool: list[Term] = [Id(b.space(5, 1))]
    for _ in range(b.pick(16)):
        f = b.among(pool)
        W = f.codomain
        beside = [g for g in pool if g.domain is f.domain]
        after = [g for g in pool if g.domain is W] or [Id(W)]
        moves: list[Callable[[], Term]] = [
            lambda f=f, W=W: Compose(b.step(W, 1), f),
            lambda beside=beside: Fork((b.among(beside), b.among(beside))),
            lambda f=f, beside=beside, W=W: Combine(
                (1.0, b.among((1.0, 2.0))), (f, b.among([g for g in beside if g.codomain is W]))
            ),
            lambda f=f, W=W: Compose(Section(ScalarMul(W), 0, (b.among((2.0, 0.5)),)), f),
            lambda f=f, W=W: compose_at(b, Project, f) if isinstance(W, DirectSum) and W.summands else f,
            lambda f=f, W=W, after=after: Compose(b.among(after), f),
        ]
        t = b.among(moves)()
        pool += [t] if t.codomain.dim <= 40 else []
    return Fork(tuple([t for t in pool if t.domain is pool[-1].domain][-8:]))


@given(seeds)
def test_webs_of_terms_simplified(seed: int):
    numbers = np.random.default_rng(seed).integers
    check_simplified(web(Builder(lambda n: int(numbers(n)))))


@given(functions())
def test_the_derivative_of_a_simplified_function(t: Term):
    s, x = t.simplify(), t.domain.random(0)
    (y, L), (z, M) = rz.linearize(t, x), rz.linearize(s, x)
    close(t.codomain, y, z)
    dx, dy = t.domain.random(1), t.codomain.random(2)
    close(t.codomain, L(dx), M(dx), 1e-7)
    close(t.domain, L.H(dy), M.H(dy), 1e-7)


# -- size ---------------------------------------------------------------------------------------------------------------------

LONG = 100_000


@pytest.mark.long
def test_a_long_chain_bracketed_either_way():
    space = R ** seg(2)
    left = right = Id(space)
    for i in range(LONG // 2):
        f = Map(rz.sin, seg(2)) if i % 2 else Section(ScalarMul(space), 0, (2.0,))
        left, right = Compose(left, f), Compose(f, right)
    assert nodes(left.simplify()) <= nodes(left)
    assert nodes(right.simplify()) <= nodes(right)
    t = Id(R)
    for _ in range(LONG):
        t = Compose(Compose(Unbra(R), Bra(R)), Compose(t, Id(R)))
    assert t.simplify() is Id(R)


def test_a_long_sum():
    t: Term = rz.sin
    for i in range(LONG):
        t = Combine((1.0, 0.5), (t, rz.cos if i % 2 else rz.sin))
    assert t.simplify() is Combine((1.0 + LONG / 4, LONG / 4), (rz.sin, rz.cos))


def test_shared_chains_stay_shared():
    """2^1000 paths, 2,000 nodes."""
    t: Term = rz.sin
    for _ in range(1000):
        t = Compose(rz.cos, Compose(rz.scalar_mul.at(R * R), Fork((t, t))))
    assert nodes(t.simplify()) == nodes(t)
    for _ in range(1000):
        t = Compose(Project(R * R, 0), Fork((Compose(rz.cos, t), t)))
    assert nodes(t.simplify()) <= nodes(t) - 2000


def test_scalings_do_not_overflow():
    big = Section(ScalarMul(R), 0, (1e200,))
    t = Compose(Compose(big, big), Section(ScalarMul(R), 0, (1e-300,)))
    assert math.isclose(t.simplify()(1.0), 1e100)
    doubled, summed = rz.sin, rz.sin
    for _ in range(5000):
        doubled, summed = Combine((2.0,), (doubled,)), Combine((2.0, 1.0), (summed, rz.sin))
    for s in (doubled, summed, Combine((math.inf,), (rz.cos,)), Combine((math.nan, 1.0), (rz.cos, rz.sin))):
        check_simplified(s)
    assert doubled.simplify()(0.0) == summed.simplify()(0.0) == 0.0  # not 0 · inf


# -- what people see ------------------------------------------------------------------------------------------------------------

a3, b4 = freeze(np.array([1.0, 2.0, -1.0])), freeze(np.array([1.0, 0.0, 0.5, 2.0]))
x, y = rz.proj(0), rz.proj(1)


def derivative(f: Any, V: Space, at: Any) -> Term:
    """f'(v) as the term of its linear program."""
    return to_term(rz.linearize(f.at(V), at)[1].program)


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (
            derivative(rz.right(rz.scalar_mul, b4) @ rz.exp @ rz.left(rz.inner, a3), R ** seg(3), np.zeros(3)),
            "([1, 0, 0.5, 2] ⊗ [1, 2, −1] ⋆)",
        ),
        (
            rz.right(rz.scalar_mul, b4) @ (0.5 * rz.id(R)) @ rz.left(rz.inner, a3),
            "0.5 · ([1, 0, 0.5, 2] ⊗ [1, 2, −1] ⋆)",
        ),
        (derivative(rz.ln @ x + x * y - rz.sin @ y, R * R, (2.0, 0.0)), "0.5 · π₀ + π₁"),
        (derivative(rz.fork(x + y, x * rz.proj(2)), R * R * R, (4.0, 0.0, -2.0)), "⟨π₀ + π₁, −2 · π₀ + 4 · π₂⟩"),
        (
            (rz.add @ rz.par(rz.add, (-rz.id) @ rz.sin) @ rz.fork(rz.fork(rz.ln @ x, rz.scalar_mul), y)).at(R * R),
            "ln ∘ π₀ + (·) − sin ∘ π₁",
        ),
        (rz.fork(rz.sin, rz.cos).definition, "⟨sin, cos⟩"),
        (rz.rep(seg(3)).at(R).definition, "rep₃"),
        (rz.add.at(R * R).definition, "(+)"),
        (rz.total @ rz.rep(seg(4)).at(R), "(4 ·)"),
        (
            derivative(rz.tanh ** seg(4) @ rz.contract_left(np.ones((4, 3))), R ** seg(3), np.zeros(3)),
            "([1, 1, 1, 1] ∗) • (⟦4×3⟧ ⋆)",
        ),
    ],
)
def test_examples_print_as_people_write_them(t: Any, text: str):
    assert str(t.simplify()) == text


def test_laws_print_and_are_listed():
    assert "proj-fork:  π_i ∘ ⟨f₁ … fₙ⟩ = f_i" in map(str, rz.laws())
    assert {law.group for law in rz.laws()} == {
        "category",
        "zero",
        "biproduct",
        "copower",
        "relations",
        "unitary",
        "scaling",
        "contraction",
    }
    assert all(law.less == "nodes" for law in rz.laws("zero"))


def test_the_page_of_laws_is_up_to_date():
    assert (Path(__file__).parents[2] / "docs" / "laws.md").read_text() == page()
