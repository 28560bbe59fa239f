"""The laws of docs/design.md on random terms over random structured spaces. One law, one test."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz.calculus.derive import lower
from riesz.maps.linear_map import LinearMap
from riesz.ops.number_domains import NUMBERS
from riesz.programs.program import INPUT, Constant, Program, outputs, run
from riesz.programs.program_to_term import to_term
from riesz.relations import Beside, Empty, Full, Place, Relation, pairs
from riesz.relations.counts import Counted
from riesz.relations.index_sets import Plus, Seg, Set, unit
from riesz.runtime.interning import postorder
from riesz.spaces.formal_vectors import Formal, dense
from riesz.spaces.space import Copower, R, Space, Tensor, direct_sum
from riesz.terms.bilinear import Bilinear, Contract, Inner, Outer, Section
from riesz.terms.declared import DeclaredBilinear
from riesz.terms.sums import Fork, Inject, Join, Map, Pack, Project, Reduce, Regroup, Unpack, Unzip, Zip
from riesz.terms.term import Combine, Compose, Derived, Id, Term, ZeroMap
from riesz.terms.unitary import Unitary
from riesz.testing import (
    Builder,
    bilinears,
    check_adjoint,
    check_derivative,
    check_taylor,
    functions,
    index_sets,
    linear_terms,
    scalar_functions,
    smooth_functions,
    spaces,
)

seeds = st.integers(0, 2**32 - 1)


def close(a: Any, b: Any, tolerance: float = 1e-12) -> bool:
    """Whether two arrays agree relative to their norms."""
    return bool(np.linalg.norm(a - b) <= tolerance * max(np.linalg.norm(a), np.linalg.norm(b)))


def same(space: Space, *values: Any) -> None:
    """Assert that vectors of a space agree to 1e-12."""
    first, *others = [space.flatten(v) for v in values]
    for other in others:
        assert close(first, other), (first, other)


def gram(space: Space) -> Any:
    """The matrix of the inner product."""
    basis = list(space.basis())
    return np.array([[space.inner(u, v) for v in basis] for u in basis]).reshape(space.dim, space.dim)


def several(space: Space, seed: int, count: int = 10) -> list[Any]:
    """Random vectors."""
    rng = np.random.default_rng(seed)
    return [space.random(rng) for _ in range(count)]


def combined(space: Space, k: float, u: Any, v: Any) -> Any:
    """k·u + v."""
    return space.add(space.scale(k, u), v)


def subterms(t: Term) -> list[Term]:
    """Every term inside a term."""
    return [s for s in postorder(t) if isinstance(s, Term)]


# -- the generators themselves -------------------------------------------------------------------------------------------


def concrete(kind: type) -> set[type]:
    """The classes below a class that have none below them."""
    below = kind.__subclasses__()
    return set().union(*[concrete(k) for k in below]) if below else {kind}


def test_random_terms_reach_every_class_of_term_space_set_and_relation() -> None:
    missing = set().union(*[concrete(kind) for kind in (Term, Space, Set, Relation)])
    missing -= {Place, Counted}  # ι's own relation, inside programs; one without pairs, which is never run
    missing = {kind for kind in missing if kind.__module__.startswith("riesz.")}
    for seed in range(4000):
        numbers = np.random.default_rng(seed).integers
        b = Builder(lambda n, numbers=numbers: int(numbers(n)))
        for t in (b.linear(b.space()), b.function(b.space()), b.relation(b.index_set(), b.index_set())):
            missing -= {type(node) for node in postorder(t)}
        if not missing:
            break
    assert not missing


# -- sets, relations, spaces (§2) ---------------------------------------------------------------------------------------


@given(index_sets(20))
def test_index_sets_enumerate_their_elements(X: Set) -> None:
    elements = list(X)
    assert len(elements) == len(X) == len(set(elements))
    assert [X.position(x) for x in elements] == list(range(len(X)))
    assert all([x in X for x in elements]) and None not in X


@given(st.data())
def test_reduction_of_a_composed_relation_is_the_composition_of_reductions(data: Any) -> None:
    X, Y, Z = [data.draw(index_sets()) for _ in range(3)]
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)))
    first, second, base = b.relation(X, Y), b.relation(Y, Z), b.space(6)
    one, two = Compose(Reduce(second, base), Reduce(first, base)), Reduce(first.then(second), base)
    for v in several(one.domain, 0):
        same(one.codomain, one(v), two(v))
    assert first.converse.converse is first
    assert (first.converse.matrix() != first.matrix().T).nnz == 0
    assert (first.then(second).matrix() != first.matrix() @ second.matrix()).nnz == 0


@given(st.data())
def test_reduction_sums_over_the_pairs_of_the_relation(data: Any) -> None:
    X, Y = data.draw(index_sets()), data.draw(index_sets())
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)))
    relation, V = b.relation(X, Y), b.space(6)
    red = Reduce(relation, V)
    table = relation.matrix().toarray()
    for v in several(red.domain, 0):
        w = red(v)
        parts = [V.flatten(Project(red.domain, i)(v)) for i in range(len(X))]
        for j in range(len(Y)):
            found = V.flatten(Project(red.codomain, j)(w))
            assert close(found, sum([table[i, j] * p for i, p in enumerate(parts)], np.zeros(V.dim)))


@pytest.mark.parametrize("target", [Seg(2), Seg(1) + Seg(1), (Seg(1) + Seg(2)) * Seg(2), Plus(()), unit], ids=str)
@pytest.mark.parametrize("make", [lambda X, Y: Beside(X, Y, ()), Full, Empty, lambda X, Y: pairs(X, Y, [])])
def test_reduction_from_nothing_is_zero_and_so_is_its_adjoint(make: Any, target: Set) -> None:
    red = Reduce(make(Plus(()), target), R)
    assert not red.codomain.flatten(red(red.domain.zero())).any()
    assert not red.domain.flatten(red.H(red.codomain.random(0))).any()
    assert LinearMap.of(red).to_dense().shape == (len(target), 0)


@given(spaces(), seeds)
def test_spaces_are_hilbert_spaces(V: Space, seed: int) -> None:
    assert V.dim == len(list(V.basis())) == sum([int(np.prod(leaf.shape)) for leaf in V.leaves])
    M = gram(V)
    assert np.array_equal(M, M.T) or close(M, M.T)
    assert V.dim == 0 or np.linalg.eigvalsh(M).min() > 0
    assert not V.flatten(V.zero()).any() and V.norm(V.zero()) == 0.0
    u, v, w = several(V, seed, 3)
    for x in (u, v, w, V.zero()):
        assert x in V and same(V, V.unflatten(V.flatten(x)), x) is None
    scale = V.norm(combined(V, 2.0, u, v)) * V.norm(w)
    assert abs(V.inner(combined(V, 2.0, u, v), w) - 2.0 * V.inner(u, w) - V.inner(v, w)) <= 1e-12 * (
        scale + V.norm(u) * V.norm(w)
    )
    assert abs(V.inner(u, w) - V.flatten(u) @ M @ V.flatten(w)) <= 1e-12 * V.norm(u) * V.norm(w)
    assert abs(V.norm(u) ** 2 - V.inner(u, u)) <= 1e-12 * V.inner(u, u)
    assert V.equal(u, u) and (V.dim == 0 or not V.equal(u, v))
    assert pickle.loads(pickle.dumps(V)) is V


@given(spaces(weighted=False), seeds, st.data())
def test_a_weighted_space_has_the_same_vectors(V: Space, seed: int, data: Any) -> None:
    W = Builder(lambda n: data.draw(st.integers(0, n - 1))).weight(V)
    for v in (*several(V, seed, 3), V.zero()):
        assert v in W
        same(V, W.unflatten(V.flatten(v)), v)
    assert type(W.zero()) is type(V.zero())
    u, v = several(V, seed, 2)
    assert abs(W.inner(u, v) - V.flatten(u) @ gram(W) @ V.flatten(v)) <= 1e-12 * W.norm(u) * W.norm(v)


@given(spaces(most=8), spaces(most=8), seeds)
def test_inner_product_of_tensors_is_the_product_of_inner_products(V: Space, W: Space, seed: int) -> None:
    (u1, u2), (v1, v2) = several(V, seed, 2), several(W, seed, 2)
    outer, space = Outer(V, W), Tensor(V, W)
    t, s = outer((u1, v1)), outer((u2, v2))
    size = V.norm(u1) * V.norm(u2) * W.norm(v1) * W.norm(v2)
    assert abs(space.inner(t, s) - V.inner(u1, u2) * W.inner(v1, v2)) <= 1e-12 * size
    assert abs(space.norm(t) - V.norm(u1) * W.norm(v1)) <= 1e-12 * space.norm(t)
    assert space.equal(outer((combined(V, 2.0, u1, u2), v1)), space.add(space.scale(2.0, t), outer((u2, v1))), 1e-11)


# -- linear terms (§3) --------------------------------------------------------------------------------------------------


@given(linear_terms(), seeds)
def test_linear_terms_are_linear(t: Term, seed: int) -> None:
    V, W = t.domain, t.codomain
    for u, v in zip(several(V, seed), several(V, seed + 1), strict=True):
        fu, fv, both = [W.flatten(t(x)) for x in (u, v, combined(V, 2.5, u, v))]
        assert np.linalg.norm(both - 2.5 * fu - fv) <= 1e-12 * (2.5 * np.linalg.norm(fu) + np.linalg.norm(fv))
    assert not W.flatten(t(V.zero())).any()


@given(linear_terms(), seeds)
def test_linear_map_of_a_term_is_the_term(t: Term, seed: int) -> None:
    L = LinearMap.of(t)
    matrix = L.to_dense()
    assert matrix.shape == L.shape == (t.codomain.dim, t.domain.dim)
    for v in several(t.domain, seed):
        same(t.codomain, t(v), L(v), t.codomain.unflatten(matrix @ t.domain.flatten(v)))


@given(linear_terms(), seeds)
def test_derivative_of_a_linear_map_is_the_map_itself(t: Term, seed: int) -> None:
    for x, v in zip(several(t.domain, seed), several(t.domain, seed + 1), strict=True):
        y, L = rz.linearize(t, x)
        same(t.codomain, y, t(x))
        same(t.codomain, L(v), t(v), rz.jvp(t, (x,), (v,))[1])


@given(linear_terms(), seeds)
def test_columns_together_are_columns_one_by_one(t: Term, seed: int) -> None:
    L = LinearMap.of(t)
    X = np.random.default_rng(seed).standard_normal((t.domain.dim, 4))
    assert close(L.matmat(X), np.stack([L.matvec(x) for x in X.T], axis=1))


@given(linear_terms(), seeds)
def test_flat_coordinates_are_the_matrix(t: Term, seed: int) -> None:
    L = LinearMap.of(t)
    A, rng = L.to_dense(), np.random.default_rng(seed)
    X, Y = rng.standard_normal((A.shape[1], 3)), rng.standard_normal((A.shape[0], 3))
    assert close(L.matvec(X[:, 0]), A @ X[:, 0]) and close(L.rmatvec(Y[:, 0]), A.T @ Y[:, 0])
    assert close(L.matmat(X), A @ X) and close(L.rmatmat(Y), A.T @ Y)
    if A.size:
        operator = L.as_operator()
        assert close(operator @ X, A @ X) and close(operator.T @ Y, A.T @ Y)


@given(st.data(), seeds)
def test_formal_vectors_are_the_vectors_they_stand_for(data: Any, seed: int) -> None:
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)))
    t = b.linear(Tensor(b.space(5, 2), b.space(5, 2)))
    v = b.vector(t.domain)
    plain = t.domain.wrap(
        [np.asarray(dense(x)) if leaf.shape else x for x, leaf in zip(t.domain.open(v), t.domain.leaves, strict=True)]
    )
    same(t.codomain, t(v), t(plain), LinearMap.of(t)(v))
    same(t.domain, v, plain)
    w = b.vector(t.codomain)
    same(t.domain, t.H(w), LinearMap.of(t).H(w), t.H(t.codomain.unflatten(t.codomain.flatten(w))))
    assert abs(t.domain.inner(v, v) - t.domain.inner(plain, v)) <= 1e-12 * t.domain.inner(v, v)


# -- adjoints (§6) ------------------------------------------------------------------------------------------------------


@given(linear_terms(), seeds)
def test_adjoint_pushes_across_the_inner_product(t: Term, seed: int) -> None:
    check_adjoint(t, seed=seed)
    check_adjoint(LinearMap.of(t), seed=seed)


@given(linear_terms(), seeds)
def test_four_routes_to_the_adjoint_agree(t: Term, seed: int) -> None:
    V, W = t.domain, t.codomain
    x = V.random(seed)
    by_theorem, by_program, by_tape = t.H, LinearMap.of(t).H, rz.linearize(t, x)[1].H
    matrix = np.linalg.solve(gram(V), LinearMap.of(t).to_dense().T @ gram(W))  # M_V⁻¹ Aᵀ M_W
    for w in several(W, seed):
        same(V, by_theorem(w), by_program(w), by_tape(w), rz.vjp(t, x)[1](w), V.unflatten(matrix @ W.flatten(w)))
    for L in (LinearMap.of(by_theorem), by_program, by_tape, rz.linearize_adjoint(t, x)[1], rz.derive(t).adjoint(x)):
        assert close(L.to_dense(), matrix)


@given(linear_terms(weighted=False))
def test_adjoint_is_the_transpose_on_euclidean_spaces(t: Term) -> None:
    A = LinearMap.of(t).to_dense()
    for back in (LinearMap.of(t.H), LinearMap.of(t).H, LinearMap.of(t).T):
        assert close(back.to_dense(), A.T)


@given(linear_terms())
def test_transpose_is_the_transpose_in_coordinates(t: Term) -> None:
    L = LinearMap.of(t)
    assert close(L.T.to_dense(), L.to_dense().T)
    assert L.T.T is L


@given(linear_terms(), seeds)
def test_adjoint_of_the_adjoint_is_the_map(t: Term, seed: int) -> None:
    for L in (LinearMap.of(t), rz.linearize(t, t.domain.zero())[1]):
        assert L.H.H is L and L.adjoint() is L.H
    again = t.H.H
    assert again.domain is t.domain and again.codomain is t.codomain
    for v in several(t.domain, seed):
        same(t.codomain, again(v), t(v))


@given(st.data(), seeds)
def test_adjoint_of_a_composition_is_the_composition_of_adjoints_reversed(data: Any, seed: int) -> None:
    f = data.draw(linear_terms())
    g = data.draw(linear_terms(f.codomain))
    both, L = Compose(g, f), LinearMap.of(g) @ LinearMap.of(f)
    for w in several(g.codomain, seed):
        same(f.domain, both.H(w), f.H(g.H(w)), L.H(w), LinearMap.of(f).H(LinearMap.of(g).H(w)))


@given(st.data(), seeds)
def test_adjoint_of_a_sum_is_the_sum_of_adjoints(data: Any, seed: int) -> None:
    f = data.draw(linear_terms())
    g = Builder(lambda n: data.draw(st.integers(0, n - 1))).between(f.domain, f.codomain)
    V, W = f.domain, f.codomain
    total, L = Combine((2.0, -0.5), (f, g)), 2.0 * LinearMap.of(f) - LinearMap.of(g) * 0.5
    for v, w in zip(several(V, seed), several(W, seed), strict=True):
        same(W, total(v), L(v), combined(W, 2.0, f(v), W.scale(-0.5, g(v))))
        same(V, total.H(w), L.H(w), combined(V, 2.0, f.H(w), V.scale(-0.5, g.H(w))))
    assert close(L.to_dense(), 2.0 * LinearMap.of(f).to_dense() - 0.5 * LinearMap.of(g).to_dense())


@given(linear_terms(), seeds)
def test_unitary_maps_keep_inner_products_and_their_adjoint_is_their_inverse(t: Term, seed: int) -> None:
    for s in subterms(t):
        if isinstance(s, (Unitary, Zip, Unzip, Pack, Unpack)):
            V, W = s.domain, s.codomain
            assert s.H is s.inverse and s.H.H is s
            for u, v in zip(several(V, seed), several(V, seed + 1), strict=True):
                same(V, s.H(s(u)), u)
                assert abs(W.inner(s(u), s(v)) - V.inner(u, v)) <= 1e-12 * V.norm(u) * V.norm(v)


@given(st.data(), seeds)
def test_fork_and_join_are_adjoint(data: Any, seed: int) -> None:
    f = data.draw(linear_terms())
    g = data.draw(linear_terms(f.domain))
    fork, join = Fork((f, g)), Join((f.H, g.H))
    assert fork.H is join or close(LinearMap.of(fork.H).to_dense(), LinearMap.of(join).to_dense())
    for u, w in zip(several(f.codomain, seed), several(g.codomain, seed), strict=True):
        same(f.domain, fork.H((u, w)), join((u, w)), f.domain.add(f.H(u), g.H(w)))


# -- open combinators --------------------------------------------------------------------------------------------------------


NAMED = [
    *("id", "zero", "dup", "add", "total", "scan", "zip", "unzip"),
    *("bra", "ket", "unbra", "unket", "transpose", "assoc", "unassoc", "distrib", "undistrib"),
    *("contract", "outer", "inner", "scalar_mul", "matvec", "matmul", "hadamard"),
]
OPEN = {
    **{name: getattr(rz, name) for name in NAMED},
    **{
        "proj(0)": rz.proj(0),
        "proj(-1)": rz.proj(-1),
        "proj(a)": rz.proj("a"),
        "inj(1, 3)": rz.inj(1, 3),
        "inj(0, 2)": rz.inj(0, rz.seg(2)),
    },
    **{"rep": rz.rep(rz.seg(2) + rz.seg(1)), "rep some": rz.rep(rz.seg(3), [0, 2]), "total some": rz.total_over([0])},
    **{
        "Π": rz.par(rz.id, rz.dup),
        "[]": rz.join(rz.id, 2.0 * rz.id),
        "⟨⟩": rz.fork(rz.id, rz.dup),
        "Δ": rz.block_diag([rz.dup, rz.id]),
    },
    **{
        "+": rz.id + 2.0 * rz.id,
        "−": rz.id - rz.zero,
        "·": rz.id * rz.id,
        "**": rz.id**2,
        "/": rz.id / (rz.id * rz.id + 1.0),
        "k·": 2.0 * rz.id,
    },
    **{"chain": rz.add @ rz.dup, "pairs": rz.zip @ rz.dup, "swap": rz.fork(rz.proj(1), rz.proj(0)), "K": rz.const(1.0)},
    **{
        "norm": rz.inner @ rz.dup,
        "square": rz.outer @ rz.dup,
        "sin^2": rz.sin ** rz.seg(2),
        "dup^2": rz.dup ** rz.seg(2),
    },
}


@examples(3.0)
@given(spaces(most=8), st.sampled_from(sorted(OPEN)), seeds)
def test_open_combinators_fit_a_space_or_say_why_not(V: Space, name: str, seed: int) -> None:
    f = OPEN[name]
    try:
        t = f.at(V)
    except rz.RieszError as refused:
        assert str(V) in str(refused) or len(str(refused)) > 20
        return
    assert t.domain is V and f.at(V) is t
    x = V.random(seed)
    same(t.codomain, f(x) if V.plain and rz.space_of(x) is V else t(x), t(x))
    check_derivative(t, x, seed=seed)
    if t.linear:
        check_adjoint(t, seed=seed)


# -- definitions (§2, §3) -------------------------------------------------------------------------------------------------


@given(st.one_of(linear_terms(), functions()), seeds)
def test_derived_combinators_equal_their_definitions(t: Term, seed: int) -> None:
    for s in subterms(t):
        if isinstance(s, (Derived, Bilinear)):
            assert s.definition.domain is s.domain and s.definition.codomain is s.codomain
            for v in several(s.domain, seed):
                same(s.codomain, s(v), s.definition(v))


@examples(2.0)
@given(bilinears(), seeds)
def test_bilinear_functions_equal_their_definitions(B: Bilinear, seed: int) -> None:
    assert B.definition.domain is B.domain and B.definition.codomain is B.codomain
    assert B.definition is not B or isinstance(B, (DeclaredBilinear, Contract))
    for v in several(B.domain, seed):
        same(B.codomain, B(v), B.definition(v))


@examples(2.0)
@given(bilinears(), seeds)
def test_bilinear_functions_are_linear_in_each_argument_and_sections_fix_one(B: Bilinear, seed: int) -> None:
    U, V, W = B.left, B.right, B.codomain
    (u, u1), (v, v1) = several(U, seed, 2), several(V, seed + 1, 2)
    left, right = Section(B, 0, tuple(U.open(u))), Section(B, 1, tuple(V.open(v)))
    same(W, B((u, v)), left(v), right(u))
    for moved, parts in (
        ((combined(U, 2.0, u, u1), v), ((u, v), (u1, v))),
        ((u, combined(V, 2.0, v, v1)), ((u, v), (u, v1))),
    ):
        whole, first, second = [W.flatten(B(x)) for x in (moved, *parts)]
        assert np.linalg.norm(whole - 2.0 * first - second) <= 1e-12 * (np.linalg.norm(first) + np.linalg.norm(second))
    for section in (left, right):
        check_adjoint(section, seed=seed)
        check_adjoint(LinearMap.of(section), seed=seed)
    _, L = rz.linearize(B, (u, v))
    same(W, L((u1, v1)), W.add(left(v1), right(u1)))  # the product rule


@given(bilinears(), index_sets(4), seeds)
def test_mapped_bilinear_functions_act_at_every_index(B: Bilinear, X: Set, seed: int) -> None:
    assume(not isinstance(B, DeclaredBilinear) or B.form.batched)
    over = Map(B, X)
    for v in several(over.domain, seed, 3):
        w = over(v)
        for i in range(len(X)):
            same(B.codomain, Project(over.codomain, i)(w), B(Project(over.domain, i)(v)))
    check_derivative(over, over.domain.random(seed))


# -- families (§2.2.2, §2.2.3) -------------------------------------------------------------------------------------------


@given(st.data(), index_sets(4), seeds)
def test_map_is_a_functor(data: Any, X: Set, seed: int) -> None:
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)), most=6)
    b.mapped = True
    f = b.function(b.space())
    g = b.function(f.codomain)
    one, two = Map(Compose(g, f), X), Compose(Map(g, X), Map(f, X))
    for v in several(one.domain, seed):
        same(one.codomain, one(v), two(v))
        for i in range(len(X)):
            same(g.codomain, Project(one.codomain, i)(one(v)), g(f(Project(one.domain, i)(v))))  # π_x ∘ f^X = f ∘ π_x
    v = one.domain.random(seed)
    same(one.domain, Map(Id(f.domain), X)(v), v)


@given(st.data(), index_sets(4), seeds)
def test_map_commutes_with_derivative_and_adjoint(data: Any, X: Set, seed: int) -> None:
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)), most=6)
    b.mapped = True
    f = b.function(b.space())
    over = Map(f, X)
    x, w = over.domain.random(seed), over.codomain.random(seed)
    _, L = rz.linearize(over, x)
    back = L.H(w)
    for i in range(len(X)):
        here = rz.linearize(f, Project(over.domain, i)(x))[1]
        same(f.domain, Project(over.domain, i)(back), here.H(Project(over.codomain, i)(w)))


@given(spaces(most=8), index_sets(4), seeds)
def test_injections_and_projections_are_the_identity_together(V: Space, X: Set, seed: int) -> None:
    space = Copower(V, X)
    v = space.random(seed)
    total = space.zero()
    for i in range(len(X)):
        part = Project(space, i)(v)
        same(V, Project(space, i)(Inject(space, i)(part)), part)  # π_x • ι_x = id
        total = space.add(total, Inject(space, i)(part))
    same(space, total, v)  # Σ ι_x • π_x = id


# -- derivatives (§4, §5) -------------------------------------------------------------------------------------------------


@given(functions(), seeds)
def test_derivative_has_a_taylor_remainder_of_order_two(f: Term, seed: int) -> None:
    check_derivative(f, f.domain.random(seed), draws=10, seed=seed)


@pytest.mark.parametrize("p", smooth_functions(), ids=str)
def test_primitives_have_the_derivative_they_say(p: Term) -> None:
    for x in np.random.default_rng(0).normal(scale=2.0, size=10):
        check_derivative(p, float(x))
        check_derivative(Map(p, rz.seg(3)), np.array([x, -x, 0.3]))
        curvature = rz.hessian(p)(float(x))(1.0)
        check_taylor(lambda h, x=x: rz.grad(p)(float(x) + h), rz.grad(p)(float(x)), curvature, R)


@given(functions(), seeds)
def test_affine_then_adjoint_is_adjoint_affine(f: Term, seed: int) -> None:
    V, W = f.domain, f.codomain
    D = rz.derive(f)
    for x, w in zip(several(V, seed), several(W, seed + 1), strict=True):
        y, L = rz.linearize(f, x)
        z, A = rz.linearize_adjoint(f, x)
        same(W, y, z, f(x))
        same(V, L.H(w), A(w), D.adjoint(x)(w), D.derivative(x).H(w), rz.vjp(f, x)[1](w))


@given(functions(), seeds)
def test_numeric_interpretation_is_symbolic_derivation_at_the_point(f: Term, seed: int) -> None:
    V, W = f.domain, f.codomain
    D = rz.derive(f)
    for x, v in zip(several(V, seed), several(V, seed + 1), strict=True):
        y, L = rz.linearize(f, x)
        same(W, D.value(x), y)
        same(W, D.derivative(x)(v), L(v), rz.jvp(f, (x,), (v,))[1])
    assert close(D.derivative(x).to_dense(), L.to_dense()) and close(D.adjoint(x).to_dense(), L.H.to_dense())


@given(st.data(), seeds)
def test_chain_rule(data: Any, seed: int) -> None:
    f = data.draw(functions())
    g = data.draw(functions(f.codomain))
    x = f.domain.random(seed)
    y, first = rz.linearize(f, x)
    z, second = rz.linearize(g, y)
    whole, L = rz.linearize(Compose(g, f), x)
    same(g.codomain, whole, z)
    for v in several(f.domain, seed):
        same(g.codomain, L(v), (second @ first)(v))


@given(scalar_functions(), seeds)
def test_gradient_is_the_riesz_representative_of_the_derivative(f: Term, seed: int) -> None:
    V = f.domain
    x = V.random(seed)
    value, g = rz.value_and_grad(f)(x)
    same(V, g, rz.grad(f)(x), rz.linearize(f, x)[1].H(1.0), rz.derive(f).adjoint(x)(1.0))
    assert value == f(x)
    for v in several(V, seed):
        slope = rz.jvp(f, (x,), (v,))[1]
        assert abs(V.inner(g, v) - slope) <= 1e-12 * V.norm(g) * V.norm(v)


@given(scalar_functions(), seeds)
def test_hessian_is_self_adjoint_and_the_derivative_of_the_gradient(f: Term, seed: int) -> None:
    V = f.domain
    x, *directions = several(V, seed, 4)
    H, g = rz.hessian(f)(x), rz.grad(f)
    A, back = gram(V) @ H.to_dense(), gram(V) @ H.H.to_dense()
    scale = np.linalg.norm(A) + np.linalg.norm(gram(V)) * V.norm(
        g(x)
    )  # where curvature vanishes, terms as large as the gradient cancel
    assert np.linalg.norm(A - A.T) <= 1e-12 * scale and np.linalg.norm(A - back) <= 1e-12 * scale
    for d in directions:
        d = V.scale(1.0 / max(V.norm(d), 1.0), d)
        same(V, H(d), rz.hvp(f, (x,), (d,)))
        check_taylor(lambda h, d=d: g(V.add(x, V.scale(h, d))), g(x), H(d), V)


@given(spaces(weighted=False), st.data(), seeds)
def test_gradient_and_hessian_follow_the_weight_they_are_given(V: Space, data: Any, seed: int) -> None:
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)), weighted=False)
    f, W = b.scalar(V), b.weight(V)
    x = V.random(seed)
    M = gram(W)
    same(V, V.unflatten(M @ W.flatten(rz.grad(f, space=W)(x))), rz.grad(f)(x))
    H, plain = rz.hessian(f, space=W)(x), rz.hessian(f)(x).to_dense()
    scale = np.linalg.norm(plain) + V.norm(rz.grad(f)(x))
    assert H.domain is H.codomain is W
    assert (
        np.linalg.norm(M @ H.to_dense() - plain) <= 1e-12 * scale
        and np.linalg.norm(M @ H.H.to_dense() - plain) <= 1e-12 * scale
    )


@given(spaces(), seeds)
def test_dual_and_its_inverse_are_riesz_representation(V: Space, seed: int) -> None:
    u, v = several(V, seed, 2)
    covector = rz.dual(v, V)
    assert abs(covector(u) - V.inner(u, v)) <= 1e-12 * V.norm(u) * V.norm(v)
    same(V, rz.undual(covector), v)


@given(functions(), seeds)
def test_a_linear_map_is_linear_by_construction(f: Term, seed: int) -> None:
    if f.linear:
        LinearMap.of(f)
        return
    for make in (LinearMap.of, lambda t: t.H, lambda t: LinearMap.of(Id(f.codomain)) @ t):
        try:
            make(f)
        except rz.LinearityError:
            continue
        raise AssertionError("a function that is not linear became a linear map")


# -- programs --------------------------------------------------------------------------------------------------------------


@given(functions(), seeds)
def test_program_of_a_term_computes_the_term(f: Term, seed: int) -> None:
    program = lower(f)
    for x in several(f.domain, seed):
        leaves = f.domain.open(x)
        same(f.codomain, f(x), f.codomain.wrap(outputs(program, NUMBERS, leaves)), rz.derive(f).value(x))
        again = pickle.loads(pickle.dumps(program))
        same(f.codomain, f(x), f.codomain.wrap(outputs(again, NUMBERS, leaves)))


@given(st.one_of(functions(), linear_terms()), seeds)
def test_program_to_term_and_back_is_the_program(f: Term, seed: int) -> None:
    program = lower(f)
    term = to_term(program)
    again = lower(term)
    assert len(again) == len(program)
    for x in several(f.domain, seed):
        leaves = f.domain.open(x)
        same(f.codomain, f(x), f.codomain.wrap(outputs(again, NUMBERS, leaves)))
        given = leaves[0] if len(leaves) == 1 else tuple(leaves)
        result = term(given)
        same(f.codomain, f(x), f.codomain.wrap([result] if len(program.outputs) == 1 else list(result)))


def flat(value: Any) -> Any:
    """A slot's content as one array; a declared function's slot holds several."""
    parts = value if type(value) is tuple else (value,)
    return np.concatenate([np.ravel(np.asarray(dense(p), float)) for p in parts]) if parts else np.zeros(0)


def wired(relation: Any, slots: list[Any]) -> list[Any]:
    """red_R of an environment of slots."""
    found: list[Any] = [None] * len(relation.target)
    for i, j, times in zip(*relation.pairs(), strict=True):
        assert times == 1 or not isinstance(slots[i], tuple)
        part = slots[i] if times == 1 else times * slots[i]
        found[j] = part if found[j] is None else found[j] + part
    return found


def apply(op: Any, given: list[Any]) -> Any:
    """An op of a program on numbers."""
    return NUMBERS.scale(op, given[0]) if type(op) is float else NUMBERS.step(op, given)


@given(functions(), seeds)
def test_a_step_is_its_op_beside_the_identity_after_reduction_by_its_wiring(f: Term, seed: int) -> None:
    program = lower(f)
    assume(len(program) <= 60)
    given = f.domain.open(f.domain.random(seed))
    expected = run(program, NUMBERS, given)
    slots: list[Any] = []
    for slot, op in enumerate(program.ops):
        relation = program.wiring(slot)
        assert len(relation.source) == slot
        handed = wired(relation, slots)
        count = len(program.args[slot])
        assert len(handed) == count + slot
        made = expected[slot] if op is INPUT or type(op) is Constant else apply(op, handed[:count])
        slots = [*handed[count:], made]  # (op × id), the new slot put last
        assert np.array_equal(flat(made), flat(expected[slot]))
    assert all([np.array_equal(flat(a), flat(b)) for a, b in zip(slots, expected, strict=True)])


@given(functions(), seeds)
def test_adjoint_program_sums_cotangents_by_the_converse_of_the_wiring(f: Term, seed: int) -> None:
    x = f.domain.random(seed)
    _, L = rz.linearize(f, x)
    tape = L.program
    assume(len(tape) <= 40 and f.domain.plain and f.codomain.plain)
    moving = tape.dependent(tape.inputs)
    values = run(tape, NUMBERS, f.domain.open(x))
    w = f.codomain.random(seed + 1)
    cotangents = [np.zeros(flat(v).size) for v in values]
    for slot, c in zip(tape.outputs, f.codomain.open(w), strict=True):
        cotangents[slot] = cotangents[slot] + flat(c)
    for slot in range(len(tape.ops) - 1, -1, -1):
        own = cotangents.pop()
        backwards = [
            transposed(tape, values, slot, i, own) if moving[a] else 0.0 * flat(values[a])
            for i, a in enumerate(tape.args[slot])
        ]
        if slot in tape.inputs:
            assert close(own, flat(f.domain.open(L.H(w))[tape.inputs.index(slot)]))
        cotangents = wired(tape.wiring(slot).converse, [*backwards, *cotangents])


def transposed(tape: Program, values: list[Any], slot: int, at: int, cotangent: Any) -> Any:
    """The transpose of a linear step in one of its arguments, by its matrix."""
    args = tape.args[slot]
    zeros = [zero_like(values[a]) if type(tape.ops[a]) is not Constant else values[a] for a in args]
    columns: list[Any] = []
    for j in range(flat(values[args[at]]).size):
        given = [unit_like(values[a], j) if i == at else z for i, (a, z) in enumerate(zip(args, zeros, strict=True))]
        columns.append(flat(apply(tape.ops[slot], given)) @ cotangent)
    return np.array(columns)


def zero_like(value: Any) -> Any:
    return (
        tuple([zero_like(v) for v in value])
        if type(value) is tuple
        else np.zeros(NUMBERS.shape(value))
        if NUMBERS.shape(value)
        else 0.0
    )


def unit_like(value: Any, j: int) -> Any:
    if type(value) is tuple:
        sizes = np.cumsum([0, *[flat(v).size for v in value]])
        return tuple(
            [
                unit_like(v, j - at) if at <= j < at + flat(v).size else zero_like(v)
                for v, at in zip(value, sizes[:-1], strict=True)
            ]
        )
    if not NUMBERS.shape(value):
        return 1.0
    found = np.zeros(NUMBERS.shape(value))
    found.reshape(-1)[j] = 1.0
    return found


# -- size, memory, determinism, identity ---------------------------------------------------------------------------------------


@given(functions())
def test_value_derivative_and_adjoint_have_linear_size(f: Term) -> None:
    D, n = rz.derive(f), len(lower(f)) + len(f.domain.leaves) + len(f.codomain.leaves)
    assert len(D.value) <= n
    assert len(D.derivative) <= 8 * n and len(D.adjoint) <= 10 * n


@examples(0.3)
@given(st.data())
def test_size_of_an_iterated_function_grows_linearly_however_it_is_shared(data: Any) -> None:
    b = Builder(lambda n: data.draw(st.integers(0, n - 1)), most=6)
    V = b.space()
    f, g = b.toward(V, V), b.toward(V, V)

    def size(k: int) -> int:
        t: Term = Id(V)
        for _ in range(k):
            t = Compose(
                Compose(Join((Id(V), Id(V))), Fork((Compose(f, t), Compose(g, t)))), Id(V)
            )  # t used twice: 2^k paths
        return rz.derive(t).size

    one, two, four = size(8), size(16), size(32)
    assert four - two <= 2 * (two - one) + 8


@examples(0.2)
@given(st.integers(2000, 6000), st.integers(2000, 6000), st.integers(0, 3), seeds)
def test_no_matrix_is_formed_unless_asked_for(m: int, n: int, kind: int, seed: int) -> None:
    A, B = R ** rz.seg(m), R ** rz.seg(n)
    rng = np.random.default_rng(seed)
    a, b = A.random(rng), B.random(rng)
    functions: list[Any] = [
        Outer(A, B),
        Compose(rz.transpose.at(Tensor(A, B)), Outer(A, B)),
        Compose(Compose(Outer(A, B), rz.par(rz.id, rz.sin ** rz.seg(n)).at(direct_sum(A, B))), Id(direct_sum(A, B))),
        Compose(Inner(Tensor(A, B)), Compose(rz.dup(Tensor(A, B)), Outer(A, B))),
    ]
    f = functions[kind]
    tracemalloc.start()
    try:
        _, L = rz.linearize(f, (a, b))
        z = L((a, b))
        back = L.H(z)
        for_all = rz.derive(f).derivative((a, b)) if kind < 3 else L
        for_all((a, b))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 40 * (m + n) + 2_000_000 < 8 * m * n, peak
    if kind == 0:
        assert close(back[0], 2.0 * a * (b @ b)) and close(back[1], 2.0 * b * (a @ a))


@given(functions(), seeds)
def test_the_same_inputs_give_the_same_bits(f: Term, seed: int) -> None:
    x, v, w = f.domain.random(seed), f.domain.random(seed + 1), f.codomain.random(seed + 2)

    def results() -> list[Any]:
        y, L = rz.linearize(f, x)
        D = rz.derive(f)
        return [
            f.codomain.flatten(y),
            f.codomain.flatten(L(v)),
            f.domain.flatten(L.H(w)),
            f.codomain.flatten(D.derivative(x)(v)),
        ]

    assert [r.tobytes() for r in results()] == [r.tobytes() for r in results()]


@given(functions(), seeds)
def test_nothing_changes_its_arguments(f: Term, seed: int) -> None:
    x, w = f.domain.random(seed), f.codomain.random(seed + 1)
    before, after = f.domain.flatten(x).copy(), f.codomain.flatten(w).copy()
    y, L = rz.linearize(f, x)
    first = f.codomain.flatten(y).copy()
    L(x), L.H(w), rz.vjp(f, x)[1](w), rz.derive(f).adjoint(x)(w), f(x)
    assert np.array_equal(f.domain.flatten(x), before) and np.array_equal(f.codomain.flatten(w), after)
    assert np.array_equal(f.codomain.flatten(y), first)


def scribbled(space: Space, value: Any) -> None:
    """Overwrite every array of a vector that lets itself be overwritten."""
    for leaf in space.open(value):
        for array in [f for t in leaf.terms for f, _ in t.factors] if isinstance(leaf, Formal) else [leaf]:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = 99.0


@given(functions(), seeds)
def test_what_is_done_to_a_result_does_not_change_the_function(f: Term, seed: int) -> None:
    V, W = f.domain, f.codomain
    x, w = [lambda s=s, k=k: s.random(seed + k) for k, s in enumerate((V, W))]
    y, L = rz.linearize(f, x())
    dy, dx = L(x()), L.H(w())
    expected = [W.flatten(y).copy(), W.flatten(dy).copy(), V.flatten(dx).copy()]
    for space, value in (
        (W, dy),
        (V, dx),
        (W, f(x())),
        (V, rz.vjp(f, x())[1](w())),
        (V, rz.derive(f).adjoint(x())(w())),
    ):
        scribbled(space, value)
    found = [W.flatten(f(x())), W.flatten(L(x())), V.flatten(L.H(w()))]
    assert all([np.array_equal(a, b) for a, b in zip(expected, found, strict=True)])


@given(spaces(most=6), spaces(most=6), seeds)
def test_what_is_done_to_a_vector_does_not_change_the_terms_made_of_it(A: Space, B: Space, seed: int) -> None:
    u, v = A.random(seed), B.random(seed)
    t, T = Outer(A, B)((u, v)), Tensor(A, B)
    terms = [rz.const(t, T).at(R), rz.left(rz.inner, t, T).at(T), rz.const(u, A).at(R), rz.right(rz.inner, v, B).at(B)]
    points = [f.domain.random(seed + 1) for f in terms]
    expected = [f.codomain.flatten(f(x)).copy() for f, x in zip(terms, points, strict=True)]
    for space, value in ((A, u), (B, v), (T, t)):
        scribbled(space, value)
    assert all([np.array_equal(f.codomain.flatten(f(x)), y) for f, x, y in zip(terms, points, expected, strict=True)])


def holds_arrays(t: Term) -> bool:
    """Whether a term holds numbers that are compared by identity."""
    pending: list[Any] = [p for s in postorder(t) for p in s.parts()]
    while pending:
        part = pending.pop()
        if isinstance(part, (np.ndarray, Formal)):
            return True
        if type(part) is tuple:
            pending.extend(part)
    return False


@given(st.one_of(linear_terms(), functions()), seeds)
def test_pickles_and_copies_of_a_term_are_the_term(t: Term, seed: int) -> None:
    assert copy.copy(t) is t and copy.deepcopy(t) is t
    again = pickle.loads(pickle.dumps(t))
    assert again is t or holds_arrays(t)
    for v in several(again.domain, seed, 3):
        x = t.domain.unflatten(again.domain.flatten(v))
        assert np.array_equal(t.codomain.flatten(t(x)), again.codomain.flatten(again(v)))


@given(functions(), seeds)
def test_pickles_of_a_linear_map_are_the_map(f: Term, seed: int) -> None:
    _, L = rz.linearize(f, f.domain.random(seed))
    again = pickle.loads(pickle.dumps(L))
    assert (
        again.domain.dim == L.domain.dim
        and np.array_equal(again.to_dense(), L.to_dense())
        and close(again.H.to_dense(), L.H.to_dense())
    )


@given(functions(), seeds)
def test_everything_prints(f: Term, seed: int) -> None:
    _, L = rz.linearize(f, f.domain.random(seed))
    D = rz.derive(f)
    for shown in (f, f.domain, f.codomain, L, L.H, D, D.value, D.derivative, D.adjoint, lower(f)):
        assert str(shown) == str(shown) and (str(shown) or not isinstance(shown, Term))
    for shown in (f, f.domain, L, D, D.derivative):
        assert shown.latex()


@examples(0.2)
@given(functions())
def test_every_explanation_prints(f: Term) -> None:
    assert str(rz.explain(f)).startswith("f = ")


@given(functions(), seeds)
def test_components_may_be_given_one_by_one(f: Term, seed: int) -> None:
    both = Compose(f, Project(direct_sum(f.domain, f.domain), 0))
    x, v = both.domain.random(seed), both.domain.random(seed + 1)
    y, L = rz.linearize(both, *x)
    same(f.codomain, y, both(*x), both(x), rz.derive(both).value(*x))
    same(f.codomain, L(*v), L(v), rz.derive(both).derivative(*x)(*v), rz.jvp(both, x, v)[1])
    found = rz.jacobian(both, 0)(*x)
    same(f.codomain, found(v[0]), L(v))


@given(linear_terms(), seeds)
def test_terms_built_twice_are_one_object(t: Term, seed: int) -> None:
    for s in subterms(t):
        assert type(s)(*s.parts()) is s


@given(linear_terms())
def test_regrouping_and_zero_maps_compose_as_they_should(t: Term) -> None:
    V, W = t.domain, t.codomain
    assert not LinearMap.of(Compose(ZeroMap(W, V), t)).to_dense().any()
    assert not LinearMap.of(Compose(t, ZeroMap(W, V))).to_dense().any()
    assert close(LinearMap.of(Combine((1.0, 1.0), (t, ZeroMap(V, W)))).to_dense(), LinearMap.of(t).to_dense())
    for s in subterms(t):
        if isinstance(s, Regroup):
            assert s.H is s.inverse and s.inverse.inverse is s
