"""Vectors that stay unevaluated: 0, k·w, w₁ + w₂, u ⊗ v   (§2.2.4)."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import riesz as rz
from riesz import R, VectorError, seg
from riesz.calculus.interpretation.interpret import interpret
from riesz.ops.number_domains import Counting
from riesz.spaces.contraction import metered
from riesz.spaces.formal_vectors import (
    Formal,
    FormalProduct,
    TensorValue,
    add_leaves,
    contract_formal,
    dense,
    leaf_inner,
    leaf_norm,
)

RNG = np.random.default_rng(2)
M, N = 7, 5
V, W = R ** seg(M), R ** seg(N)


def vectors(*sizes):
    return [RNG.standard_normal(n) for n in sizes]


def rank_one(u, v, k=1.0):
    return Formal((len(u), len(v)), (FormalProduct(k, ((u, (0,)), (v, (1,)))),))


# -- u ⊗ v as a user holds it ----------------------------------------


def test_a_rank_one_tensor_takes_m_plus_n_numbers():
    u, v = vectors(M, N)
    t = rz.outer(u, v)
    assert isinstance(t, TensorValue) and t.space is V @ W and t in V @ W
    assert t.numbers == M + N
    assert (2.0 * t).numbers == M + N
    assert (t + rz.outer(*vectors(M, N))).numbers == 2 * (M + N)


def test_dense_on_request():
    u, v = vectors(M, N)
    t = rz.outer(u, v)
    assert np.allclose(t.dense(), np.outer(u, v), rtol=1e-15)
    assert np.allclose(np.asarray(t), np.outer(u, v), rtol=1e-15)
    assert np.allclose((V @ W).flatten(t), np.outer(u, v).ravel(), rtol=1e-15)


def test_a_million_by_a_million():
    u, v = np.ones(10**6), np.full(10**6, 2.0)
    tracemalloc.start()
    t = rz.outer(u, v)
    s = 3.0 * t - 0.5 * t
    inner = t.space.inner(t, s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert t.numbers == 2 * 10**6 and peak < 10 * u.nbytes
    assert inner == pytest.approx(2.5 * 10**6 * 4 * 10**6, rel=1e-14)


def test_sums_turn_dense_when_that_is_smaller():
    t = (V @ W).zero()
    for _ in range(10):
        t = t + rz.outer(*vectors(M, N))
    assert t.numbers == M * N


def test_tensor_algebra_is_that_of_matrices():
    a, b = [rz.outer(*vectors(M, N)) for _ in range(2)]
    for got, expected in [
        (a + b, a.dense() + b.dense()),
        (a - b, a.dense() - b.dense()),
        (-a, -a.dense()),
        (2.5 * a, 2.5 * a.dense()),
        (a * np.float64(2.5), 2.5 * a.dense()),
        (np.float64(2.5) * a, 2.5 * a.dense()),
        (3 * a, 3 * a.dense()),
        (a + (V @ W).zero(), a.dense()),
    ]:
        assert isinstance(got, TensorValue) and np.allclose(got.dense(), expected, rtol=1e-14)


# -- identified modulo bilinearity ----------------------------------------


def test_equality_modulo_bilinearity():
    u, u2, v, v2 = vectors(M, M, N, N)
    T, ox = V @ W, rz.outer
    assert T.equal(ox(2.5 * u, v), 2.5 * ox(u, v)) and T.equal(2.5 * ox(u, v), ox(u, 2.5 * v))
    assert T.equal(ox(u + u2, v), ox(u, v) + ox(u2, v))
    assert T.equal(ox(u, v + v2), ox(u, v) + ox(u, v2))
    assert T.equal(ox(u, v), np.outer(u, v))  # a matrix is an element too
    assert not T.equal(ox(u, v), ox(u, v2))
    assert not T.equal(ox(u, v), (1 + 1e-9) * ox(u, v))


def test_equality_under_cancellation():
    u, u2, v, v2 = vectors(M, M, N, N)
    T, ox = V @ W, rz.outer
    assert T.equal(ox(u, v) - ox(u, v), T.zero())
    four = ox(u + u2, v + v2) - ox(u, v) - ox(u, v2) - ox(u2, v)
    assert T.equal(four, ox(u2, v2), 1e-11)
    assert T.norm(ox(u, v) - ox(u, v)) <= 1e-14 * T.norm(ox(u, v))


def test_formal_zeros_are_equal_however_they_came_about():
    u, u2, v, v2 = vectors(50, 50, 40, 40)
    T, ox = R ** seg(50) @ R ** seg(40), rz.outer
    nothing = [
        ox(u, v) - ox(u, v),
        0.0 * ox(u2, v2),
        ox(u, v) + ox(-1.0 * u, v),
        ox(u + u2, v) - ox(u, v) - ox(u2, v),
        T.zero(),
    ]
    for a in nothing:
        for b in nothing:
            assert T.equal(a, b)


def test_the_norm_is_accurate_under_cancellation():
    """‖(u + εa) ⊗ v − u ⊗ v‖ = ε‖a‖‖v‖, though √(w ⊙ w) would lose it in rounding for ε = 1e-10."""
    u, a, v = vectors(400, 400, 300)
    near = u + 1e-10 * a
    difference = rz.outer(near, v) - rz.outer(u, v)
    assert difference.numbers < 400 * 300
    expected = np.linalg.norm(near - u) * np.linalg.norm(v)
    assert difference.space.norm(difference) == pytest.approx(expected, rel=1e-4)


def test_zero_is_zero():
    T = V @ W
    assert T.norm(T.zero()) == 0.0
    assert T.equal(0.0 * rz.outer(*vectors(M, N)), T.zero())


# -- the inner product ----------------------------------------


def test_inner_product_rule():
    """(u₁ ⊗ v₁) ⊙ (u₂ ⊗ v₂) = (u₁ ⊙ u₂)·(v₁ ⊙ v₂), without the m·n products."""
    u1, v1, u2, v2 = vectors(M, N, M, N)
    with metered() as meter:
        inner = (V @ W).inner(rz.outer(u1, v1), rz.outer(u2, v2))
    assert inner == pytest.approx((u1 @ u2) * (v1 @ v2), rel=1e-14)
    assert meter.multiplications == M + N + 1


def test_inner_product_is_that_of_matrices():
    a, b = [rz.outer(*vectors(M, N)) + 2.0 * rz.outer(*vectors(M, N)) for _ in range(2)]
    assert (V @ W).inner(a, b) == pytest.approx(np.vdot(a.dense(), b.dense()), rel=1e-12)
    assert (V @ W).inner(a, b.dense()) == pytest.approx(np.vdot(a.dense(), b.dense()), rel=1e-12)
    assert (V @ W).norm(a) == pytest.approx(np.linalg.norm(a.dense()), rel=1e-12)


def test_tensors_of_structured_spaces():
    A, B = R * (R ** seg(3)), rz.direct_sum(x=R ** seg(2), y=R)
    a, b, c, d = A.random(0), B.random(1), A.random(2), B.random(3)
    T = A @ B
    t, s = rz.outer.at(rz.direct_sum(A, B))((a, b)), rz.outer.at(rz.direct_sum(A, B))((c, d))
    assert T.inner(t, s) == pytest.approx(A.inner(a, c) * B.inner(b, d), rel=1e-12)
    assert T.norm(t) == pytest.approx(A.norm(a) * B.norm(b), rel=1e-12)
    multiplied = t.dense()
    assert np.allclose(multiplied[1]["x"], np.outer(a[1], b["x"])) and multiplied[0]["y"] == pytest.approx(
        a[0] * b["y"]
    )
    assert np.allclose(
        T.flatten(t), np.concatenate([[a[0]] * b["x"], [a[0] * b["y"]], np.outer(a[1], b["x"]).ravel(), a[1] * b["y"]])
    )
    with pytest.raises(VectorError, match="not one array"):
        np.asarray(t)


def test_families_of_tensors_have_leading_axes():
    us, vs = RNG.standard_normal((4, M)), RNG.standard_normal((4, N))
    ts = (rz.outer ** seg(4) @ rz.zip.at(rz.direct_sum(V ** seg(4), W ** seg(4))))((us, vs))
    assert ts.lead == (4,) and ts in (V @ W) ** seg(4)
    assert np.allclose(ts.dense(), us[:, :, None] * vs[:, None, :])
    assert rz.space_of(ts) is (V @ W) ** seg(4)


# -- refusals ----------------------------------------


@pytest.mark.parametrize(
    "other", [1.0, np.ones((M, N)), rz.outer(np.ones(N), np.ones(M))], ids=["number", "array", "other space"]
)
def test_tensors_add_to_tensors_of_their_space(other):
    t = rz.outer(*vectors(M, N))
    with pytest.raises(VectorError, match=r"cannot add an element of ℝ\^7 ⊗ ℝ\^5 and"):
        _ = t + other


@pytest.mark.parametrize("k", [True, 1j, "2", np.ones(2), None], ids=repr)
def test_tensors_are_scaled_by_numbers(k):
    with pytest.raises(VectorError, match=r"cannot scale an element of ℝ\^7 ⊗ ℝ\^5 by .*a number is due"):
        _ = rz.outer(*vectors(M, N)) * k


def test_an_element_of_another_tensor_product_is_refused():
    t = rz.outer(*vectors(M, N))
    assert t not in W @ V
    with pytest.raises(VectorError, match=r"expected an element of ℝ\^5 ⊗ ℝ\^7, got one of ℝ\^7 ⊗ ℝ\^5"):
        (W @ V).norm(t)


def test_copies_and_pickles():
    t = rz.outer(*vectors(M, N)) + rz.outer(*vectors(M, N))
    for other in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert t.space.equal(t, other) and other.numbers == t.numbers


# -- formal arrays underneath ----------------------------------------


def test_formal_arithmetic_is_that_of_arrays():
    u, v, u2, v2 = vectors(M, N, M, N)
    f, g, a = rank_one(u, v, 3.0), rank_one(u2, v2), RNG.standard_normal((M, N))
    F, G = 3.0 * np.outer(u, v), np.outer(u2, v2)
    for got, expected, formal in [
        (f + g, F + G, True),
        (f - g, F - G, True),
        (-f, -F, True),
        (2.0 * f, 2.0 * F, True),
        (np.float64(2.0) * f, 2.0 * F, True),
        (f * 2.0, 2.0 * F, True),
        (f + a, F + a, False),
        (a + f, a + F, False),
        (f - a, F - a, False),
        (a - f, a - F, False),
        (f * a, F * a, False),
        (a * f, a * F, False),
    ]:
        assert isinstance(got, Formal) is formal
        assert np.allclose(dense(got), expected, rtol=1e-14)


def test_axes_without_a_factor_are_axes_of_ones():
    u = vectors(M)[0]
    assert np.array_equal(dense(Formal((2, M), (FormalProduct(3.0, ((u, (1,)),)),))), np.broadcast_to(3.0 * u, (2, M)))
    assert np.array_equal(dense(Formal((2, 3), (FormalProduct(3.0, ()),))), np.full((2, 3), 3.0))
    assert np.array_equal(dense(Formal((2, 3), ())), np.zeros((2, 3)))


def test_float32_is_kept():
    u, v = [x.astype(np.float32) for x in vectors(M, N)]
    f = rank_one(u, v, 3.0)
    assert dense(f).dtype == dense(2.0 * f + f).dtype == np.float32
    assert np.asarray(leaf_inner(f, f)).dtype == np.float32
    assert rz.outer(u, v).dense().dtype == np.float32
    assert dense(add_leaves(f, np.ones((M, N), np.float32))).dtype == np.float32


def test_norms_of_formal_arrays():
    u, v = vectors(M, N)
    cube = Formal(
        (M, N, 3),
        (
            FormalProduct(2.0, ((u, (0,)), (v, (1,)), (np.ones(3), (2,)))),
            FormalProduct(1.0, ((np.outer(u, v), (0, 1)),)),
        ),
    )
    overlapping = Formal(
        (M, N), (FormalProduct(1.0, ((u, (0,)), (np.outer(u, v), (0, 1)))), FormalProduct(-2.0, ((v, (1,)),)))
    )
    for f in (cube, overlapping, rank_one(u, v), Formal((M, N), ()), Formal((M, N), (FormalProduct(2.0, ()),))):
        assert leaf_norm(f) == pytest.approx(np.linalg.norm(dense(f)), rel=1e-12)
        assert leaf_inner(f, f) == pytest.approx(np.linalg.norm(dense(f)) ** 2, rel=1e-12)
    assert leaf_norm(np.array([3.0, 4.0])) == 5.0 and leaf_norm(-2.0) == 2.0


def test_numbers_counts_shared_factors_once():
    u, v = vectors(M, N)
    f = rank_one(u, v)
    assert f.numbers == (f + f).numbers == M + N
    assert f.worthwhile and not rank_one(np.ones(1), np.ones(5)).worthwhile


def test_contract_formal_leaves_outer_products_alone():
    u, v, x = vectors(M, N, N)
    applied = contract_formal([rank_one(u, v, 2.0), x], ((0, 1), (1,)), (0,), {0: M, 1: N})
    assert isinstance(applied, Formal) and applied.numbers == M
    assert np.allclose(dense(applied), 2.0 * u * (v @ x))


# -- counting multiplications ----------------------------------------


def counted(term, *args):
    """Multiplications spent, and the result, a single leaf."""
    counter = Counting()
    point = args[0] if len(args) == 1 else args
    result = interpret(term, term.domain.tree(term.domain.open(point)), counter)
    return counter.multiplications, result


def test_counting_by_hand():
    u, v, x = vectors(M, N, N)
    pair_space = rz.direct_sum(V, W)
    assert counted(rz.inner.at(rz.direct_sum(W, W)), v, x)[0] == N
    assert counted(rz.outer.at(pair_space), u, v)[0] == 0
    assert counted(rz.matvec.at(rz.direct_sum(R ** (seg(M) * seg(N)), W)), RNG.standard_normal((M, N)), x)[0] == M * N
    assert (
        counted(
            rz.matmul.at(rz.direct_sum(R ** (seg(2) * seg(3)), R ** (seg(3) * seg(4)))),
            np.ones((2, 3)),
            np.ones((3, 4)),
        )[0]
        == 24
    )
    assert counted(rz.hadamard.at(rz.direct_sum(W, W)), v, x)[0] == N
    assert counted((2.5 * rz.id).at(W), x)[0] == N
    assert counted((rz.id - rz.id).at(W), x)[0] == 0
    assert counted(rz.total.at(W), x)[0] == 0


def test_a_matrix_takes_mn_multiplications_and_its_decomposition_n_plus_a_scale():
    """Applying u ⊗ v to x is v ⊙ x, n multiplications, and an unevaluated (v ⊙ x)·u   (§3.2)."""
    u, v, x = vectors(M, N, N)
    spent, result = counted(rz.contract_left(rz.outer(u, v)).at(W), x)
    assert spent == N and isinstance(result, Formal) and result.numbers == M
    assert np.allclose(dense(result), np.outer(u, v) @ x)
    spent, result = counted(rz.contract_left(np.outer(u, v)).at(W), x)
    assert spent == M * N and np.allclose(result, np.outer(u, v) @ x)


def test_counting_gives_the_same_values():
    f = rz.sin ** seg(N) @ rz.contract_left(RNG.standard_normal((N, N))) + 3.0 * rz.id
    x = vectors(N)[0]
    assert np.array_equal(dense(counted(f.at(W), x)[1]), f(x))
