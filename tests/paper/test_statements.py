"""The paper's definitions, rules, propositions and theorems, each by its name. Indices count from 0 here: the paper's π₁ is π₀."""

import itertools

import numpy as np
import pytest
from scipy.linalg import block_diag

import riesz as rz
from riesz import R, Zero, direct_sum, relations, seg
from riesz.calculus.dual_numbers import forward

RNG = np.random.default_rng(7)
R2, R3, R4 = R ** seg(2), R ** seg(3), R ** seg(4)
A, B = RNG.standard_normal((2, 3)), RNG.standard_normal((4, 2))
x0, x1 = rz.proj(0), rz.proj(1)

f = rz.sin ** seg(2) @ rz.contract_left(A).at(R3)  # ℝ^3 → ℝ^2
g = rz.exp ** seg(4) @ rz.contract_left(B) + rz.const(np.ones(4))  # ℝ^2 → ℝ^4
POINT = RNG.standard_normal(3)

conv = rz.bilinear(
    np.convolve, lambda u, w: np.correlate(w, u, "valid"), lambda v, w: np.correlate(w, v, "valid"), name="conv"
)
BILINEAR = {
    "scalar": (rz.scalar_mul, R, R3),
    "inner": (rz.inner, R3, R3),
    "outer": (rz.outer, R2, R3),
    "hadamard": (rz.hadamard, R3, R3),
    "matrix-vector": (rz.matvec, R ** (seg(2) * seg(3)), R3),
    "matrix-matrix": (rz.matmul, R ** (seg(2) * seg(3)), R ** (seg(3) * seg(2))),
    "contraction": (rz.contract, R2 @ R3, R3 @ R2),
    "contraction of sums": (rz.contract, (R * R2) @ R2, R2 @ R),
    "inner of sums": (rz.inner, R * R2, R * R2),
    "declared": (conv, R3, R4),
}
every_bilinear = pytest.mark.parametrize(("diamond", "U", "V"), BILINEAR.values(), ids=BILINEAR)


def matrix(L):
    """The matrix of a linear map or a linear term."""
    return L.to_dense() if isinstance(L, rz.LinearMap) else L.as_map().to_dense()


def same(L, M, tolerance=1e-12):
    """One linear map: equal spaces, equal matrices."""
    assert L.domain is M.domain and L.codomain is M.codomain
    assert np.allclose(matrix(L), matrix(M), rtol=tolerance, atol=tolerance)
    return True


def affine(f, V, v):
    """f^[1](v) over numbers, and over symbols specialised at v."""
    D = rz.derive(f, V)
    return [rz.linearize(f.at(V), v), (D.value(v), D.derivative(v))]


def reverse(f, V, v):
    """f^[1r](v) over numbers, and over symbols specialised at v."""
    D = rz.derive(f, V)
    return [rz.linearize_adjoint(f.at(V), v), (D.value(v), D.adjoint(v))]


def derivative(f, V, v):
    return rz.linearize(f.at(V), v)[1]


# -- §1.3, §2: derivatives, linear and bilinear functions ----------------------------------------


def test_definition_1_1_frechet_derivative():
    """‖f(v + dv) − f(v) − f'(v)(dv)‖ / ‖dv‖ → 0, linearly in ‖dv‖ here."""
    h = g @ f
    y, L = rz.linearize(h, POINT)
    dv = RNG.standard_normal(3)
    ratios = [R4.norm(h(POINT + t * dv) - y - L(t * dv)) / R3.norm(t * dv) for t in (1e-2, 1e-3, 1e-4)]
    assert ratios[1] < 0.2 * ratios[0] and ratios[2] < 0.2 * ratios[1]


def test_section_2_linear_functions():
    """f(u + v) = f(u) + f(v) and f(k·v) = k·f(v)."""
    L = rz.scan @ rz.contract_left(A).at(R3)
    u, v = R3.random(0), R3.random(1)
    assert L.linear and not f.linear
    assert np.allclose(L(u + v), L(u) + L(v)) and np.allclose(L(2.5 * u), 2.5 * L(u))


@every_bilinear
def test_section_2_bilinear_functions(diamond, U, V):
    """(u ⋄) and (⋄ v) are linear, with (u ⋄)(v) = u ⋄ v = (⋄ v)(u)."""
    u, v = U.random(0), V.random(1)
    left, right, whole = rz.left(diamond, u).at(V), rz.right(diamond, v).at(U), diamond.at(direct_sum(U, V))
    W = whole.codomain
    assert left.linear and right.linear and not whole.linear
    assert W.equal(left(v), whole((u, v))) and W.equal(right(u), whole((u, v)))


# -- §2.2: direct sums and copowers ----------------------------------------


def test_section_2_2_1_atomic_spaces():
    assert (Zero.dim, R.dim) == (0, 1) and Zero.zero() == () and R.inner(2.0, 3.0) == 6.0


def test_section_2_2_2_zipped_apply_between_injection_and_projection():
    """π_y ∘ Π f_x ∘ ι_y = f_y, and π_z ∘ Π f_x ∘ ι_y = 0 for y ≠ z."""
    V = direct_sum(R3, R, R2)
    parts = [rz.contract_left(A).at(R3), 2.0 * rz.id(R), rz.rep(seg(2)).at(R2)]
    whole = rz.par(*parts)
    for y, z in itertools.product(range(3), range(3)):
        between = rz.proj(z) @ whole @ rz.inj(y, V).at(V.summands[y])
        same(between, parts[y] if y == z else rz.zero(V.summands[y], parts[z].codomain))


def test_section_2_2_2_delta_gathers_linear_maps():
    """Δ(⊕ f_x)(⊕ v_x) = ⊕ f_x(v_x)."""
    parts = [rz.contract_left(A).at(R3), 2.0 * rz.id(R)]
    v = (R3.random(0), 3.0)
    whole = rz.block_diag(parts)
    assert whole.linear and np.allclose(whole(v)[0], A @ v[0]) and whole(v)[1] == 6.0
    assert np.allclose(matrix(whole), block_diag(A, [[2.0]]))


def test_section_2_2_3_relational_reduction():
    """(red_R v)_y = Σ_{(x,y)∈R} v_x, for any V."""
    pairs = [(0, 1), (2, 1), (2, 0), (1, 3), (2, 0)]
    red = rz.red(relations.pairs(seg(3), seg(4), pairs))
    v = RNG.standard_normal((3, 2))
    expected = np.zeros((4, 2))
    for x, y in pairs:
        expected[y] += v[x]
    assert np.allclose(red.at(R2 ** seg(3))(v), expected)
    scalars, vectors = red.at((R * R2) ** seg(3))((v[:, 0].copy(), v))
    assert np.allclose(scalars, expected[:, 0]) and np.allclose(vectors, expected)


DERIVED = {
    "rep": rz.rep(seg(3)).at(R2),
    "rep of a subset": rz.rep(seg(3), only=[0, 2]).at(R * R2),
    "Σ": rz.total.at(R2 ** seg(3)),
    "Σ of a subset": rz.total_over([0, 2]).at(R2 ** seg(3)),
    "Σ over a union": rz.total.at(R2 ** (seg(2) + seg(3))),
    "+": rz.add.at(R2 * R2),
    "dup": rz.dup.at(R * R2),
    "scan": rz.scan.at(R2 ** seg(4)),
    "⟨⟩": rz.fork(rz.contract_left(A), rz.id).at(R3),
    "[]": rz.join(rz.contract_left(A).at(R3), rz.id.at(R2)),
}


@pytest.mark.parametrize("t", DERIVED.values(), ids=DERIVED)
def test_section_2_2_3_derived_maps_are_their_definitions(t):
    """Defined from red_R, ι, π and Π as in the paper, executed directly, and the same map."""
    assert t.definition is not t
    same(t, t.definition)


def test_section_2_2_3_derived_maps_by_hand():
    v = RNG.standard_normal((4, 2))
    assert np.allclose(rz.rep(seg(4)).at(R2)(v[0]), np.stack([v[0]] * 4))
    assert np.allclose(rz.rep(seg(4), only=[1]).at(R2)(v[0]), np.outer([0.0, 1.0, 0.0, 0.0], v[0]))
    assert np.allclose(rz.total.at(R2 ** seg(4))(v), v.sum(0))
    assert np.allclose(rz.add.at(R2 * R2)((v[0], v[1])), v[0] + v[1])
    assert all(np.array_equal(a, v[0]) for a in rz.dup.at(R2)(v[0]))
    assert np.allclose(rz.scan.at(R2 ** seg(4))(v), np.cumsum(v, axis=0))
    assert np.allclose((rz.contract_left(A) ** seg(5)).at(R3 ** seg(5))(np.ones((5, 3))), np.ones((5, 3)) @ A.T)


# -- §2.2.4, §3.1, §3.2: tensors ----------------------------------------


def test_section_2_2_4_universal_property():
    """Every bilinear ⋄ factors through ⊗ by a linear map, here the one with e_i ⊗ e_j ↦ e_i ⋄ e_j."""
    for diamond, U, V in BILINEAR.values():
        whole = diamond.at(direct_sum(U, V))
        table = np.array([[whole.codomain.flatten(whole((a, b))) for b in V.basis()] for a in U.basis()])
        u, v = U.random(0), V.random(1)
        tensor = (U @ V).flatten(rz.outer.at(direct_sum(U, V))((u, v)))
        # ⊗ of structured spaces lists its coordinates leaf by leaf; the outer product of coordinates needs them in that order.
        order = np.concatenate([[i * V.dim + j for i in rows for j in cols] for rows in spans(U) for cols in spans(V)])
        assert np.allclose(tensor, np.outer(U.flatten(u), V.flatten(v)).ravel()[order])
        assert np.allclose(table.reshape(U.dim * V.dim, -1)[order].T @ tensor, whole.codomain.flatten(whole((u, v))))


def spans(V):
    """The coordinates of each leaf."""
    ends = np.cumsum([0, *[int(np.prod(leaf.shape, dtype=int)) for leaf in V.leaves]])
    return [range(a, b) for a, b in itertools.pairwise(ends)]


def test_section_3_1_contraction():
    """(w ⊗ v) ⊛ (v' ⊗ u) = (v ⊙ v')·(w ⊗ u)."""
    w, v, v2, u = R2.random(0), R3.random(1), R3.random(2), R4.random(3)
    got = rz.contract(rz.outer(w, v), rz.outer(v2, u))
    assert got.space is R2 @ R4 and got.space.equal(got, (v @ v2) * rz.outer(w, u))
    assert got.numbers == 2 + 4


UNITARY = {
    "bra": (rz.bra, rz.unbra, R * R2),
    "ket": (rz.ket, rz.unket, R * R2),
    "transpose": (rz.transpose, rz.transpose, R2 @ R3),
    "transpose of sums": (rz.transpose, rz.transpose, (R * R2) @ R3),
    "assoc": (rz.assoc, rz.unassoc, (R2 @ R3) @ R2),
    "assoc of sums": (rz.assoc, rz.unassoc, ((R * R2) @ R2) @ (R2 * R)),
    "distrib over a copower": (rz.distrib, rz.undistrib, (R2 ** seg(3)) @ R2),
    "distrib over a sum": (rz.distrib, rz.undistrib, (R * R2 * Zero) @ (R * R2)),
    "zip of copowers": (rz.zip, rz.unzip, direct_sum(R2 ** seg(3), R ** seg(3))),
    "zip of sums": (rz.zip, rz.unzip, direct_sum(R2 * R, R * R3)),
}


@pytest.mark.parametrize(("there", "back", "V"), UNITARY.values(), ids=UNITARY)
def test_section_3_2_unitary_operators(there, back, V):
    """Isometric isomorphisms; the inverse is the adjoint."""
    u = there.at(V)
    v, w = V.random(0), V.random(1)
    assert u.codomain.inner(u(v), u(w)) == pytest.approx(V.inner(v, w), rel=1e-12)
    same(back.at(u.codomain) @ u, rz.id(V))
    same(u @ back.at(u.codomain), rz.id(u.codomain))
    assert u.H is back.at(u.codomain) and u.H.H is u


def test_section_3_2_defining_equations():
    u, v, w = R2.random(0), R3.random(1), R4.random(2)
    ox = rz.outer
    assert (R @ R3).equal(rz.bra(v), ox(1.0, v)) and np.allclose(rz.unbra(ox(2.0, v)), 2.0 * v)
    assert (R3 @ R).equal(rz.ket(v), ox(v, 1.0)) and np.allclose(rz.unket(ox(v, 2.0)), 2.0 * v)
    assert (R3 @ R2).equal(rz.transpose(ox(u, v)), ox(v, u))
    left, right = (
        rz.outer.at(direct_sum(R2 @ R3, R4))((ox(u, v), w)),
        rz.outer.at(direct_sum(R2, R3 @ R4))((u, ox(v, w))),
    )
    assert right.space.equal(rz.assoc(left), right) and left.space.equal(rz.unassoc(right), left)
    both = rz.outer.at(direct_sum(R2 * R3, R4))(((u, v), w))
    parts = rz.distrib(both)
    assert (R2 @ R4).equal(parts[0], ox(u, w)) and (R3 @ R4).equal(parts[1], ox(v, w))
    assert rz.zip(((1.0, 2.0), (3.0, 4.0))) == ((1.0, 3.0), (2.0, 4.0))


def test_section_3_2_matrices_are_tensors():
    """ℝ^m ⊗ ℝ^n ≅ ℝ^(m×n), by distrib and unbra: unitary, and on coordinates the identity."""
    iso = rz.unbra ** seg(2) @ rz.distrib.at(R2 @ R3)
    assert iso.codomain is R3 ** seg(2)
    assert np.array_equal(matrix(iso), np.eye(6)) and np.array_equal(matrix(iso.H), np.eye(6))
    u, v = R2.random(0), R3.random(1)
    assert np.allclose(iso(rz.outer(u, v)), np.outer(u, v))


def test_section_3_2_products_from_contraction():
    """v ⊗ w = ket(v) ⊛ bra(w) and v₁ ⊙ v₂ = |bra(v₁) ⊛ ket(v₂)|; the other products come from ⊛ too."""
    v, w, v2 = R2.random(0), R3.random(1), R2.random(2)
    assert (R2 @ R3).equal(rz.contract(rz.ket(v), rz.bra(w)), rz.outer(v, w))
    assert rz.unbra(rz.contract(rz.bra(v), rz.ket(v2))) == pytest.approx(v @ v2)
    for diamond, U, V in BILINEAR.values():
        whole = diamond.at(direct_sum(U, V))
        u, v = U.random(0), V.random(1)
        assert whole.codomain.equal(whole.definition((u, v)), whole((u, v)))


# -- §3.3 – §3.6: functions ----------------------------------------


def test_section_3_3_linear_functions():
    """Every row of the table is a linear term of the type it has there."""
    t, s = rz.outer(R2.random(0), R3.random(1)), rz.outer(R3.random(2), R4.random(3))
    table = [
        (rz.contract_left(t).at(R3 @ R4), R3 @ R4, R2 @ R4),
        (rz.contract_right(s).at(R2 @ R3), R2 @ R3, R2 @ R4),
        (rz.zero(R2, R3), R2, R3),
        (rz.inj(1, R * R2).at(R2), R2, R * R2),
        (rz.proj(1).at(R * R2), R * R2, R2),
        (rz.par(rz.id(R), rz.rep(seg(2)).at(R)), R * R, R * R2),
        (rz.block_diag([rz.id(R), rz.rep(seg(2)).at(R)]), R * R, R * R2),
        (rz.fork(rz.id, rz.rep(seg(2))).at(R), R, R * R2),
        (rz.red(relations.full(seg(2), seg(3))).at(R2), R2, R3),
        ((rz.total ** seg(2)).at(R3 ** seg(2)), R3 ** seg(2), R2),
        (rz.id(R2), R2, R2),
        (rz.rep(seg(2)).at(R) @ rz.total.at(R3), R3, R2),
    ]
    for term, V, W in table:
        assert term.linear and term.domain is V and term.codomain is W


def test_section_3_4_constant_functions():
    assert rz.const((1.0, 2.0)).at(R3)(POINT) == (1.0, 2.0) and not rz.const(1.0).at(R).linear


PRIMITIVE = {
    "power 3": (rz.power(3), lambda x: 3 * x**2),
    "power -2": (rz.power(-2), lambda x: -2 * x**-3),
    "power 1": (rz.power(1), lambda x: 1.0),
    "power 2": (rz.power(2), lambda x: 2 * x),
    "power 0.5": (rz.power(0.5), lambda x: 0.5 * x**-0.5),
    "ln": (rz.ln, lambda x: 1 / x),
    "sin": (rz.sin, np.cos),
    "cos": (rz.cos, lambda x: -np.sin(x)),
    "tanh": (rz.tanh, lambda x: 1 - np.tanh(x) ** 2),
}


@pytest.mark.parametrize(("p", "slope"), PRIMITIVE.values(), ids=PRIMITIVE)
@pytest.mark.parametrize("x", [0.3, 1.7, 4.0])
def test_section_3_5_primitive_functions(p, slope, x):
    """p'(x) = (slope ·) : ℝ ⊸ ℝ, in both modes, over numbers and over symbols."""
    for _, L in (*affine(p, R, x), *reverse(p, R, x)):
        assert L(1.0) == pytest.approx(slope(x), rel=1e-14) and L(2.0) == pytest.approx(2 * slope(x), rel=1e-14)


def test_section_3_6_composition():
    assert np.allclose((g @ f)(POINT), g(f(POINT)))
    assert rz.par(rz.sin, rz.exp)((1.0, 2.0)) == (np.sin(1.0), np.exp(2.0))


# -- §4: the five differentiation rules ----------------------------------------


def test_rule_1_chain():
    """(g ∘ f)'(v) = g'(f(v)) • f'(v)."""
    for _, L in affine(g @ f, R3, POINT):
        same(L, derivative(g, R2, f(POINT)) @ derivative(f, R3, POINT))


def test_rule_2_constant():
    """K_w'(v) = 0."""
    for _, L in affine(rz.const(np.ones(2)), R3, POINT):
        same(L, rz.zero(R3, R2))


@pytest.mark.parametrize("h", DERIVED.values(), ids=DERIVED)
def test_rule_3_linear(h):
    """h'(v) = h, at every v."""
    for v in (h.domain.zero(), h.domain.random(0)):
        for _, L in affine(h, h.domain, v):
            same(L, h)


@every_bilinear
def test_rule_4_bilinear(diamond, U, V):
    """⋄'(u, v) = (u ⋄) • π₁ + (⋄ v) • π₀, the generalized product rule."""
    both, u, v = direct_sum(U, V), U.random(0), V.random(1)
    expected = rz.left(diamond, u) @ x1.at(both) + rz.right(diamond, v) @ x0.at(both)
    for _, L in affine(diamond, both, (u, v)):
        same(L, expected)


def test_rule_5_parallel():
    """(Π f_x)'(v) = Δ((Π f_x')(v)), for different f_x."""
    V = direct_sum(R3, R, R2)
    parts, v = (f, rz.ln, g), (POINT, 2.0, R2.random(1))
    blocks = [matrix(derivative(p, W, w)) for p, W, w in zip(parts, V.summands, v, strict=True)]
    for _, L in affine(rz.par(*parts), V, v):
        assert np.allclose(matrix(L), block_diag(*blocks), rtol=1e-12)


def test_rule_5_on_a_copower():
    """(f^X)'(v) = Δ(f'^X(v)), also where X is a sum of products."""
    for X in (seg(4), seg(2) * seg(2), seg(2) + seg(3), (seg(1) + seg(2)) * seg(2)):
        V = R3**X
        v = V.random(0)
        points = V.flatten(v).reshape(-1, 3)  # one leaf after the other, each with X's axes first
        blocks = [matrix(derivative(f, R3, p)) for p in points]
        for _, L in affine(f**X, V, v):
            assert np.allclose(matrix(L), block_diag(*blocks), rtol=1e-12)


# -- §5: affine interpretation ----------------------------------------


def test_proposition_5_1_the_affine_approximation_is_unique():
    """f(v) + A(dv) approximates to first order for A = f'(v) and for no other A."""
    y, L = rz.linearize(f, POINT)
    dv = RNG.standard_normal(3)
    other = L + 1e-3 * rz.contract_left(A).at(R3)

    def ratio(A, t):
        return R2.norm(f(POINT + t * dv) - y - A(t * dv)) / R3.norm(t * dv)

    assert ratio(L, 1e-6) < 1e-5 < 1e-4 < ratio(other, 1e-6)


def test_figure_1_composition():
    for y, L in affine(g @ f, R3, POINT):
        fx, df = rz.linearize(f, POINT)
        gfx, dg = rz.linearize(g.at(R2), fx)
        assert np.allclose(y, gfx, rtol=1e-14) and same(L, dg @ df)


def test_figure_1_constant():
    w = np.array([1.0, 2.0])
    for y, L in affine(rz.const(w), R3, POINT):
        assert np.array_equal(y, w) and same(L, rz.zero(R3, R2))


@pytest.mark.parametrize("h", DERIVED.values(), ids=DERIVED)
def test_figure_1_linear(h):
    v = h.domain.random(0)
    for y, L in affine(h, h.domain, v):
        assert h.codomain.equal(y, h(v)) and same(L, h)


@every_bilinear
def test_figure_1_bilinear(diamond, U, V):
    both, u, v = direct_sum(U, V), U.random(0), V.random(1)
    for y, L in affine(diamond, both, (u, v)):
        assert L.codomain.equal(y, diamond.at(both)((u, v)))
        assert same(L, rz.left(diamond, u) @ x1.at(both) + rz.right(diamond, v) @ x0.at(both))


def test_figure_1_parallel():
    """(f₀ × f₁)^[1](x₀, x₁) = ((f₀x₀, f₁x₁), Δ(f₀'x₀, f₁'x₁)), and f^X alike."""
    for y, L in affine(rz.par(rz.sin, f), R * R3, (0.5, POINT)):
        assert y[0] == pytest.approx(np.sin(0.5)) and np.allclose(y[1], f(POINT))
        assert np.allclose(matrix(L), block_diag(np.cos(0.5), matrix(derivative(f, R3, POINT))))
    points = RNG.standard_normal((4, 3))
    for y, L in affine(f ** seg(4), R3 ** seg(4), points):
        assert np.allclose(y, [f(p) for p in points])
        assert np.allclose(matrix(L), block_diag(*[matrix(derivative(f, R3, p)) for p in points]))


def central_differences(f, V, v, step=1e-6):
    """The matrix of f'(v), column by column."""
    W = f.at(V).codomain
    moved = [(V.add(v, V.scale(step, e)), V.add(v, V.scale(-step, e))) for e in V.basis()]
    return np.array([(W.flatten(f.at(V)(a)) - W.flatten(f.at(V)(b))) / (2 * step) for a, b in moved]).T


def test_theorem_5_2_affine_interpretation_gives_value_and_derivative():
    for h, V in [
        (g @ f, R3),
        (rz.par(rz.ln @ rz.exp, f), R * R3),
        (rz.contract @ rz.par(rz.outer, rz.outer), direct_sum(R2 * R3, R3 * R2)),
    ]:
        v = V.random(3)
        for y, L in affine(h, V, v):
            assert L.codomain.equal(y, h.at(V)(v))
            assert np.allclose(matrix(L), central_differences(h, V, v), atol=1e-8)


def test_section_5_1_the_derivative_is_a_value_before_any_differential():
    """eval^[1] needs v alone and returns a linear map, to be applied later and more than once."""
    _, L = rz.linearize(g @ f, POINT)
    assert isinstance(L, rz.LinearMap)
    for dv in np.eye(3):
        assert np.allclose(L(dv), rz.jvp(g @ f, (POINT,), (dv,))[1], rtol=1e-12)


def test_section_5_2_the_let_avoids_expression_swell():
    """x ↦ x·x sixteen times nested: the symbolic derivative is linear in the size of the function, not 2^16."""
    sizes = {}
    for n in (8, 16):
        power = rz.id.at(R)
        for _ in range(n):
            power = power * power
        sizes[n] = rz.derive(power)
        assert sizes[n].derivative(1.0)(1.0) == 2.0**n
    assert sizes[16].size <= 2 * sizes[8].size + 2
    assert len(sizes[16].value) == 16


# -- §6: adjoints ----------------------------------------


WEIGHTED = R3.weighted(np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]))


@pytest.mark.parametrize(
    "V", [R, R3, R * R2, R2 @ R3, direct_sum(W=R2, b=R), R2 ** (seg(2) + seg(1)), WEIGHTED, Zero], ids=repr
)
def test_section_6_dual_and_its_inverse(V):
    """dual(v) = (⊙ v), an isomorphism V ⊸ V*; its inverse is f ↦ f*(1)."""
    v, u, w = V.random(0), V.random(1), V.random(2)
    covector = rz.dual(v, space=V)
    assert covector.domain is V and covector.codomain is R
    assert covector(u) == pytest.approx(V.inner(u, v), rel=1e-12)
    assert V.equal(rz.undual(covector), v) and V.equal(covector.H(1.0), v)
    functional = rz.dual(v, space=V) + 2.5 * rz.dual(w, space=V)
    assert V.equal(rz.undual(functional), V.add(v, V.scale(2.5, w)))
    assert rz.dual(rz.undual(functional), space=V)(u) == pytest.approx(functional(u), rel=1e-12)


def test_section_6_only_covectors_have_a_dual_vector():
    with pytest.raises(rz.RieszError, match="ℝ\\^2"):
        rz.undual(rz.contract_left(A).at(R3).as_map())
    with pytest.raises(rz.LinearityError):
        rz.undual(rz.sin)


def test_section_6_the_transpose_is_continuation_passing():
    """f†(κ) = κ • f, represented by f*: f*(w) = v where f†(⊙ w) = (⊙ v)."""
    L, w = derivative(f, R3, POINT), R2.random(0)
    composed = rz.right(rz.inner, w).at(R2) @ L
    assert np.allclose(composed.H(1.0), L.H(w), rtol=1e-14)


def test_definition_6_1_adjoint():
    """f†(⊙ w) = (⊙ v) ⇔ f*(w) = v: as functionals, and the representing vector is the only one."""
    L, w, u = derivative(f, R3, POINT), R2.random(0), R3.random(1)
    v = L.H(w)
    assert R2.inner(L(u), w) == pytest.approx(R3.inner(u, v), rel=1e-12)
    assert R2.inner(L(u), w) != pytest.approx(R3.inner(u, v + 1e-6), rel=1e-12)


def test_proposition_6_2_the_adjoint_exists_and_is_unique():
    L = derivative(g @ f, R3, POINT)
    assert L.H.H is L and np.allclose(matrix(L.H), matrix(L).T, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_proposition_6_3_the_adjoint_pushes_across_the_inner_product(weighted):
    """f(v) ⊙ w = v ⊙ f*(w), in the inner products of the two spaces."""
    V = R3.weighted(np.array([1.0, 2.0, 5.0])) if weighted else R3
    for _ in range(10):
        _, L = rz.linearize(f, RNG.standard_normal(3), space=V)
        v, w = V.random(RNG), R2.random(RNG)
        assert R2.inner(L(v), w) == pytest.approx(V.inner(v, L.H(w)), rel=1e-12)


def test_proposition_6_4_gradient():
    """∇f(v) = (f'(v))*(1), the representative of f'(v)."""
    h = rz.total @ g @ f
    gradient = rz.grad(h)(POINT)
    _, L = rz.linearize(h, POINT)
    assert np.allclose(gradient, L.H(1.0), rtol=1e-14)
    for dv in np.eye(3):
        assert R3.inner(gradient, dv) == pytest.approx(L(dv), rel=1e-12)
    mass = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    assert np.allclose(rz.grad(h, space=R3.weighted(mass))(POINT), np.linalg.solve(mass, gradient), rtol=1e-12)


t32, t24 = (
    rz.outer(R3.random(0), R2.random(1)) + rz.outer(R3.random(2), R2.random(3)),
    rz.outer(R2.random(4), R4.random(5)),
)
L32, M24 = rz.contract_left(A.T).at(R2), rz.contract_left(B).at(R2)
THEOREM_6_5 = {  # each equation: both sides
    "id* = id": (rz.id(R3).H, rz.id(R3)),
    "(g • f)* = f* • g*": ((M24 @ L32.H).H, L32 @ M24.H),
    "0* = 0": (rz.zero(R2, R3).H, rz.zero(R3, R2)),
    "(v⊛)* = (vᵀ⊛)": (rz.contract_left(t32).at(R2 @ R4).H, rz.contract_left(rz.transpose(t32)).at(R3 @ R4)),
    "(⊛w)* = (⊛wᵀ)": (rz.contract_right(t24).at(R3 @ R2).H, rz.contract_right(rz.transpose(t24)).at(R3 @ R4)),
    "ι* = π": (rz.inj(1, R * R2).at(R2).H, rz.proj(1).at(R * R2)),
    "(Π f)* = Π f*": (rz.par(L32, M24).H, rz.par(L32.H, M24.H)),
    "red_R* = red_Rᵀ": (
        rz.red(relations.pairs(seg(3), seg(2), [(0, 1), (2, 1), (2, 1)])).at(R3).H,
        rz.red(relations.pairs(seg(2), seg(3), [(1, 0), (1, 2), (1, 2)])).at(R2),
    ),
    # what the theorem leaves to the reader
    "π* = ι": (rz.proj(1).at(R * R2).H, rz.inj(1, R * R2).at(R2)),
    "Δ(f)* = Δ(f*)": (rz.block_diag([L32, M24]).H, rz.block_diag([L32.H, M24.H])),
    "(f^X)* = (f*)^X": ((L32 ** seg(3)).H, L32.H ** seg(3)),
    "⟨f⟩* = [f*]": (rz.fork(L32, M24).H, rz.join(L32.H, M24.H)),
    "[g]* = ⟨g*⟩": (rz.join(L32, rz.id(R3)).H, rz.fork(L32.H, rz.id(R3))),
    "(f + g)* = f* + g*": ((L32 + L32).H, L32.H + L32.H),
    "(k·f)* = k·f*": ((3.0 * L32).H, 3.0 * L32.H),
    "rep* = Σ": (rz.rep(seg(3)).at(R2).H, rz.total.at(R2 ** seg(3))),
    "Σ* = rep": (rz.total.at(R2 ** seg(3)).H, rz.rep(seg(3)).at(R2)),
    "dup* = +": (rz.dup.at(R2).H, rz.add.at(R2 * R2)),
    "+* = dup": (rz.add.at(R2 * R2).H, rz.dup.at(R2)),
    "scan* = red_{i≥j}": (rz.scan.at(R4).H, rz.red(relations.triangular(seg(4)).converse).at(R4)),
}


@pytest.mark.parametrize(("got", "stated"), THEOREM_6_5.values(), ids=THEOREM_6_5)
def test_theorem_6_5_adjoint_rules(got, stated):
    same(got, stated)
    assert np.allclose(matrix(got.H), matrix(stated).T, rtol=1e-12)


EXACT = [
    "id* = id",
    "(g • f)* = f* • g*",
    "0* = 0",
    "ι* = π",
    "(Π f)* = Π f*",
    "π* = ι",
    "Δ(f)* = Δ(f*)",
    "(f^X)* = (f*)^X",
]
EXACT += ["⟨f⟩* = [f*]", "[g]* = ⟨g*⟩", "rep* = Σ", "Σ* = rep", "dup* = +", "+* = dup"]


@pytest.mark.parametrize("rule", EXACT)
def test_theorem_6_5_on_terms(rule):
    """The rules are equations of terms: both sides are one object."""
    got, stated = THEOREM_6_5[rule]
    assert got is stated


def test_theorem_6_5_derived_adjoints_of_scaling():
    """(k·)* = (k·) and (·v)* = (⊙ v)."""
    v = R3.random(0)
    k = rz.left(rz.scalar_mul, 2.5).at(R3)
    assert k.H is k
    same(rz.right(rz.scalar_mul, v).at(R).H, rz.right(rz.inner, v).at(R3))
    same(rz.right(rz.inner, v).at(R3).H, rz.right(rz.scalar_mul, v).at(R))


def test_figure_2_composition():
    for y, L in reverse(g @ f, R3, POINT):
        fx, df = rz.linearize_adjoint(f, POINT)
        gfx, dg = rz.linearize_adjoint(g.at(R2), fx)
        assert np.allclose(y, gfx, rtol=1e-14) and same(L, df @ dg)


def test_figure_2_constant():
    w = np.array([1.0, 2.0])
    for y, L in reverse(rz.const(w), R3, POINT):
        assert np.array_equal(y, w) and same(L, rz.zero(R2, R3))


@pytest.mark.parametrize("h", DERIVED.values(), ids=DERIVED)
def test_figure_2_linear(h):
    v = h.domain.random(0)
    for y, L in reverse(h, h.domain, v):
        assert h.codomain.equal(y, h(v)) and same(L, h.H)


@every_bilinear
def test_figure_2_bilinear(diamond, U, V):
    """ι₁ • (u ⋄)* + ι₀ • (⋄ v)*."""
    both, u, v = direct_sum(U, V), U.random(0), V.random(1)
    left, right = rz.left(diamond, u).at(V).H, rz.right(diamond, v).at(U).H
    for y, L in reverse(diamond, both, (u, v)):
        assert L.domain.equal(y, diamond.at(both)((u, v)))
        assert same(L, rz.inj(1, both) @ left + rz.inj(0, both) @ right)


def test_figure_2_parallel():
    for y, L in reverse(rz.par(rz.sin, f), R * R3, (0.5, POINT)):
        assert y[0] == pytest.approx(np.sin(0.5)) and np.allclose(y[1], f(POINT))
        assert np.allclose(matrix(L), block_diag(np.cos(0.5), matrix(derivative(f, R3, POINT)).T))


def test_section_6_2_two_ways_to_the_adjoint_derivative():
    """Affine interpretation then the adjoint = adjoint affine interpretation, over numbers and over symbols."""
    h = rz.total @ g @ f
    L = derivative(h, R3, POINT)
    for _, M in reverse(h, R3, POINT):
        same(L.H, M)
    assert np.allclose(rz.grad(h)(POINT), L.H(1.0), rtol=1e-14)


# -- Appendix A ----------------------------------------


def test_definition_a_4_gateaux_derivative_is_the_frechet_derivative_applied():
    h, dv = g @ f, RNG.standard_normal(3)
    y, dy = rz.jvp(h, (POINT,), (dv,))
    assert np.allclose(y, h(POINT)) and np.allclose(dy, derivative(h, R3, POINT)(dv), rtol=1e-12)
    t = 1e-6
    assert np.allclose(dy, (h(POINT + t * dv) - h(POINT - t * dv)) / (2 * t), atol=1e-7)


def test_appendix_a_5_dual_numbers_preserve_composition():
    """(g ∘ f)^fad = g^fad ∘ f^fad, and it is what the derivative gives."""
    dv, first = RNG.standard_normal(3), f.at(R3)
    second = g.at(first.codomain)
    (y,), (dy,) = forward(first, [POINT], [dv])
    (z,), (dz,) = forward(second, [y], [dy])
    whole = forward(second @ first, [POINT], [dv])
    assert np.allclose(whole[0][0], z, rtol=1e-14) and np.allclose(whole[1][0], dz, rtol=1e-14)
    assert np.allclose(rz.jvp(g @ f, (POINT,), (dv,))[1], dz, rtol=1e-12)
