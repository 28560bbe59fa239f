"""The normal form of linear maps against dense matrices: on random programs, at scale by counts, and as it is printed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import OPAQUE, random_function
from sampling import examples

import riesz as rz
from riesz.runtime import tuning

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
seeds = st.integers(0, 10**6)
kinds = st.sampled_from(["jacobian", "hessian"])
rng = np.random.default_rng(0)


def applied(L: Any) -> Any:
    """The matrix of a map through its program: what everything else is compared with."""
    return L.matmat(np.eye(L.shape[1]))


def close(a: Any, b: Any, tolerance: float = 1e-9) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert (np.abs(a - b) <= tolerance * (1.0 + np.abs(b).max(initial=0))).all(), np.abs(a - b).max()


def finite(*matrices: Any) -> bool:
    """Infinite derivatives are compared nowhere."""
    return all([np.isfinite(m).all() for m in matrices])


def elsewhere(args: Any, seed: int) -> list[Any]:
    """Another point of the same shapes."""
    fresh = np.random.default_rng(seed)
    return [fresh.normal(size=np.shape(x)) if np.ndim(x) else float(fresh.normal()) for x in args]


def parts(y: Any) -> list[Any]:
    return list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, tuple) else [y]


def number(f: Any) -> Any:
    return lambda *xs: sum([np.sum(np.sin(v)) for v in parts(f(*xs))])


def derivative(seed: int, kind: str, inputs: int | None = None) -> tuple[Any, list[Any]]:
    """x ↦ J(x) or H(x) of a random program, and a point; every other one has fixed positions only."""
    count = 1 + seed % 3 if inputs is None else inputs
    f, args = random_function(seed, count, without=OPAQUE if seed % 2 else ())
    every = tuple(range(count)) if inputs != 1 else None
    return (rz.jacobian(f, every) if kind == "jacobian" else rz.hessian(number(f), every)), args


# -- random programs -----------------------------------------------------------------------------------------------


@given(seeds, kinds)
@examples(0.6)
def test_matrices_are_what_the_program_does(seed, kind):
    D, args = derivative(seed, kind)
    L = D(*args)
    dense = applied(L)
    if not finite(dense):
        return
    close(L.to_dense(), dense)
    close(L.to_sparse().toarray(), dense)
    close(L.to_sparse("csc").toarray(), dense)
    close(L.T.to_dense(), dense.T)
    close(L.H.to_sparse().toarray(), dense.T)
    close(applied(L.T), dense.T)
    close(L.column_norms(), np.linalg.norm(dense, axis=0), 1e-7)
    close(L.row_norms(), np.linalg.norm(dense, axis=1), 1e-7)
    if L.shape[0] == L.shape[1]:
        close(L.diagonal(), np.diagonal(dense))
        close(L.trace(), np.trace(dense))


@given(seeds, kinds)
@examples(0.6)
def test_simplified_maps_are_the_same_and_never_longer(seed, kind):
    D, args = derivative(seed, kind)
    L = D(*args)
    dense = applied(L)
    if not finite(dense):
        return
    M = L.simplify()
    assert M.simplify() is M
    assert len(M.program) <= len(L.program)
    close(applied(M), dense)
    close(applied(M.T), dense.T)
    close(M.to_dense(), dense)
    assert str(M) and M.latex()
    assert str(L.simplify()) == str(M)


@given(seeds, kinds)
@examples(0.6)
def test_the_pattern_at_one_point_holds_the_nonzeros_at_every_other(seed, kind):
    D, args = derivative(2 * seed + 1, kind)
    L = D(*args)
    assert L.flat is not None or L.values.net.hubs or L.values.net.kept
    pattern = L.to_sparse() if L.flat is not None else None
    for again in range(3):
        M = D(*elsewhere(args, again))
        dense = applied(M)
        if not finite(dense):
            continue
        found = M.to_sparse()
        close(found.toarray(), dense)
        close(M.to_dense(), dense)
        if pattern is not None:
            assert np.array_equal(found.indices, pattern.indices) and np.array_equal(found.indptr, pattern.indptr)
            reached = np.zeros(dense.shape, bool)
            reached[np.repeat(np.arange(dense.shape[0]), np.diff(pattern.indptr)), pattern.indices] = True
            assert not dense[~reached].any()


@given(seeds)
@examples(0.6)
def test_sums_products_and_parts_of_maps(seed):
    D, args = derivative(seed, "jacobian", 1)
    L, M = D(*args), D(*elsewhere(args, seed))
    A, B = applied(L), applied(M)
    if not finite(A, B):
        return
    close((L + M).to_dense(), A + B)
    close((2.5 * L - M).to_sparse().toarray(), 2.5 * A - B)
    close((L + M).T.to_dense(), (A + B).T)
    close((L.T @ M).to_dense(), A.T @ B)
    close((L @ M.T).simplify().to_sparse().toarray(), A @ B.T)
    close(applied((L.T @ M).simplify()), A.T @ B)
    close((L.T @ M).trace(), np.trace(A.T @ B))
    close((L @ M.T).diagonal(), np.diagonal(A @ B.T))
    close(L.gram().to_dense(), A.T @ A)
    close(L.gram().diagonal(), np.diagonal(A.T @ A))
    fresh = np.random.default_rng(seed)
    rows, columns = fresh.integers(0, 2, A.shape[0]).astype(bool), np.flatnonzero(fresh.integers(0, 2, A.shape[1]))
    close(L.submatrix(rows, columns).to_dense(), A[rows][:, columns])
    close(L.submatrix(slice(None, None, -2)).to_sparse().toarray(), A[::-2])
    close(L.submatrix([-1] if A.shape[0] else []).to_dense(), A[-1:])


LIMITS = [
    ("FILLED_LABEL", 2),
    ("GATHERED_NUMBERS", 0),
    ("COMPARED_CONSTANT_NUMBERS", 0),
    ("SPLIT_OFFSETS", 0),
    ("ENTRY_FACTORS", 2),
    ("HUB_COMPOSITIONS", 1),
    ("UNMULTIPLIED_PRODUCTS", 0),
]


@pytest.mark.parametrize(("limit", "value"), LIMITS)
def test_limits_decide_the_form_and_not_the_map(limit, value, monkeypatch):
    """The ways that are meant for large maps, or kept for hard ones, on small ones."""
    monkeypatch.setattr(tuning, limit, value)
    for seed in range(4000, 4012):
        for kind in ("jacobian", "hessian"):
            D, args = derivative(seed, kind)
            for point in (args, elsewhere(args, seed)):
                L = D(*point)
                dense = applied(L)
                if finite(dense):
                    close(L.to_dense(), dense)
                    close(L.to_sparse().toarray(), dense)
                    close(applied(L.simplify()), dense)


def flat(y: Any) -> Any:
    return np.concatenate([np.ravel(p) for p in parts(y)])


@given(seeds, seeds)
@examples(0.4)
def test_maps_of_different_functions_and_points_compose(one, two):
    D, (x,) = derivative(one, "jacobian", 1)
    g, (y,) = random_function(two, 1)
    if not np.ndim(x):
        return
    fresh = np.random.default_rng(one)
    into = fresh.normal(size=(np.size(y), np.size(x)))
    back = fresh.normal(size=(np.size(x), flat(g(y)).size))
    E = rz.jacobian(lambda v: (back @ flat(g((into @ np.ravel(v)).reshape(np.shape(y))))).reshape(v.shape))
    L, M = D(x), E(elsewhere([x], two)[0])
    A, B = applied(L), applied(M)
    if not finite(A, B):
        return
    close((L @ M).to_dense(), A @ B, 1e-8)
    close((L @ M @ M).T.to_sparse().toarray(), (A @ B @ B).T, 1e-7)
    close((L @ (M + 2.0 * M.T)).simplify().to_dense(), A @ (B + 2.0 * B.T), 1e-8)


@given(seeds)
@examples(0.6)
def test_blocks_together_are_the_matrix(seed):
    D, args = derivative(seed, "jacobian", 1)
    L = D(*args)
    dense = applied(L)
    try:
        blocks = L.blocks()
    except rz.SpaceError:
        return
    total = np.zeros_like(dense)
    np.add.at(total, (blocks.rows[:, :, None], blocks.columns[:, None, :]), np.asarray(blocks))
    close(total, dense)


@given(seeds, kinds)
@examples(0.25)
def test_pickled_maps_are_the_same(seed, kind):
    D, args = derivative(seed, kind)
    L = D(*args)
    dense = applied(L)
    if not finite(dense):
        return
    M = pickle.loads(pickle.dumps(L))
    close(M.to_dense(), dense)
    close(M.T.to_sparse().toarray(), dense.T)
    N = pickle.loads(pickle.dumps(L.simplify()))
    close(applied(N), dense)
    assert str(N)


@given(seeds)
@examples(0.25)
def test_adjoints_between_weighted_spaces(seed):
    """L* = M_V⁻¹ Lᵀ M_W, and the structure of it."""
    D, (x,) = derivative(seed, "jacobian", 1)
    V = rz.space_of(np.zeros(np.shape(x)))
    if not np.ndim(x) or not np.size(x):
        return
    w = np.random.default_rng(seed).uniform(0.5, 2.0, np.shape(x))
    f, _ = random_function(seed, 1, without=OPAQUE if seed % 2 else ())
    L = rz.jacobian(f, space=V.weighted(w))(x)
    dense = applied(L)
    if not finite(dense):
        return
    close(L.to_dense(), applied(D(x)))
    close(L.T.to_dense(), dense.T)
    expected = dense.T / w.reshape(-1, 1)
    close(applied(L.H), expected)
    close(L.H.to_dense(), expected)
    close(L.H.to_sparse().toarray(), expected)
    close(L.gram().to_dense(), expected @ dense, 1e-8)
    assert L.H.H is L


@given(seeds)
@examples(0.25)
def test_float32_programs_have_float32_matrices(seed):
    f, args = random_function(
        seed, 1, without=("fourier", "scale", "matrix", "segments", "convolve", "loop", "difference")
    )
    if not np.ndim(args[0]):
        return
    x = args[0].astype(np.float32)
    L = rz.jacobian(f)(x)
    dense = L.matmat(np.eye(L.shape[1], dtype=np.float32))
    if not finite(dense) or L.dtype != np.float32:
        return
    assert L.to_dense().dtype == L.to_sparse().dtype == np.float32
    close(L.to_dense(), dense, 1e-3)
    close(L.to_sparse().toarray(), dense, 1e-3)


def test_the_same_array_twice_is_two_arguments():
    x = rng.normal(size=5)
    L = rz.jacobian(lambda x, y: x * np.sin(y), (0, 1))(x, x)
    close(L.to_dense(), np.hstack([np.diag(np.sin(x)), np.diag(x * np.cos(x))]))


@pytest.mark.parametrize(
    "f", [lambda x: x[:0], lambda x: x[:0].sum() + x, lambda x: x[2:2] * 3.0, lambda x: np.concatenate([x[:0], x])]
)
def test_arrays_without_numbers(f):
    x = rng.normal(size=4)
    L = rz.jacobian(f)(x)
    close(L.to_dense(), applied(L))
    close(L.to_sparse().toarray(), applied(L))
    assert str(L.structure) and str(L.simplify())
    none = rz.jacobian(lambda x: np.outer(x, x) * 2.0)(np.zeros(0))
    assert none.to_dense().shape == (0, 0) and none.to_sparse().shape == (0, 0)


GUARDED = [
    lambda x: np.where(x > 0.1, np.sqrt(x) * x, 0.0),
    lambda x: np.where(x > 0.1, np.log(x), x),
    lambda x: np.maximum(x, 0.1) * np.where(x < -0.1, 1 / np.sqrt(-x), 1.0),
    lambda x: np.sum(np.where(x > 0.1, np.sqrt(x), 0.0)) * x[::-1],
    lambda x: np.where(x > 0.1, np.sqrt(x), 0.0)[1:] * np.where(x > 0.1, np.sqrt(x), 0.0)[:-1],
]


@pytest.mark.parametrize("f", GUARDED)
@pytest.mark.parametrize("kind", ["jacobian", "hessian"])
def test_what_a_branch_not_taken_does_is_not_seen(f, kind):
    x = np.array([0.5, -0.3, 0.2, -1.0, 0.0])
    L = rz.jacobian(f)(x) if kind == "jacobian" else rz.hessian(number(f))(x)
    dense = applied(L)
    assert finite(dense)
    for M in (L, L.T.T, L.simplify()):
        close(M.to_dense(), dense)
        close(M.to_sparse().toarray(), dense)
        close(applied(M), dense)
    close(L.gram().to_dense(), dense.T @ dense)
    if kind == "hessian":
        close(L.diagonal(), np.diagonal(dense))


def test_a_place_without_a_number_takes_no_notice_of_nan():
    """Two diagonals with a gap between them, then a coefficient that is infinite in the gap."""
    scale = np.array([1.0, 2.0, np.inf, 3.0, 4.0])
    L = rz.jacobian(lambda x: np.concatenate([x[:2], 0.0 * x[2:3], x[3:]]))(np.ones(5))
    M = rz.jacobian(lambda x: np.concatenate([np.sin(x[:2]), np.zeros(1), x[3:] ** 2]) * scale)(np.ones(5))
    assert finite(L.to_dense())
    close(M.to_dense(), np.diag([np.cos(1.0), 2 * np.cos(1.0), 0.0, 6.0, 8.0]))


# -- at scale, by counts -------------------------------------------------------------------------------------------


def count(L: Any) -> int:
    return len(L.values.net.entries)


def test_griewank_stores_two_vectors_and_a_number():
    n = 10**5
    b = rng.normal(size=n)
    L = rz.jacobian(lambda x: np.cos(np.sum(x**2)) * b)(rng.normal(size=n))
    assert L.values.numbers <= 2 * n + 1 and count(L) == 1


def test_a_mapped_function_stores_its_blocks():
    W = rng.normal(size=(4, 3))
    X = rng.normal(size=(1000, 3))
    for f in (
        rz.vmap(lambda x: np.tanh(W @ x) * np.sum(x * x)),
        lambda X: np.tanh(X @ W.T) * np.sum(X * X, 1, keepdims=True),
    ):
        L = rz.jacobian(f)(X)
        assert L.values.numbers == 1000 * 4 * 3 and count(L) == 1
        assert L.blocks().values.shape == (1000, 4, 3)


def test_the_logistic_hessian_stores_the_data_and_one_vector():
    X = rng.normal(size=(500, 40))
    L = rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(rng.normal(size=40))
    assert L.values.numbers == X.size + 500 and count(L) == 1


def test_the_matrix_factorisation_hessian_stores_a_small_matrix():
    T, V = rng.normal(size=(300, 200)), rng.normal(size=(200, 5))
    L = rz.hessian(lambda U: np.sum((T - U @ V.T) ** 2))(rng.normal(size=(300, 5)))
    assert L.values.numbers <= 25 + 1


def test_a_long_stencil_has_three_entries():
    n = 10**6
    L = rz.jacobian(lambda u: u[2:] * np.sin(u[1:-1]) - 2 * u[1:-1] + u[:-2])(np.linspace(0, 1, n))
    assert count(L) == 3 and L.values.numbers <= 2 * n
    assert L.structure.nonzeros == 3 * (n - 2)


def projected(cameras, points):
    """Which camera sees which point: a residual with 28 dependencies an observation."""
    observations = len(cameras)
    features = np.random.default_rng(1).normal(size=(observations, 2))

    def residual(cams, pts, w):
        c, X = cams[cameras], pts[points]
        rot, C, f, x0, k1, k2 = c[:, :3], c[:, 3:6], c[:, 6:7], c[:, 7:9], c[:, 9], c[:, 10]
        angle = np.sqrt(np.sum(rot * rot, 1))
        cos, sin, axis = np.cos(angle), np.sin(angle), rot / angle[:, None]
        Y = X - C
        across = np.stack([axis[:, i] * Y[:, j] - axis[:, j] * Y[:, i] for i, j in ((1, 2), (2, 0), (0, 1))], 1)
        R = Y * cos[:, None] + across * sin[:, None] + axis * (np.sum(axis * Y, 1) * (1 - cos))[:, None]
        p = R[:, :2] / R[:, 2:3]
        r2 = np.sum(p * p, 1)
        return w[:, None] * (f * p * (1 + k1 * r2 + k2 * r2 * r2)[:, None] + x0 - features)

    return residual


@pytest.mark.parametrize("observations", [60, 3000])
def test_bundle_adjustment_has_28_nonzeros_an_observation(observations):
    cameras, points = rng.integers(0, 4, observations), rng.integers(0, 12, observations)
    D = rz.jacobian(projected(cameras, points), (0, 1, 2))
    for again in range(3):
        fresh = np.random.default_rng(again)
        point = (
            fresh.normal(size=(4, 11)) * 0.3,
            fresh.normal(size=(12, 3)) + np.array([0, 0, 5]),
            fresh.uniform(0.5, 1, observations),
        )
        L = D(*point)
        found = L.to_sparse()
        assert found.nnz == 28 * observations
        if observations < 100:
            close(found.toarray(), applied(L))
        else:
            v = fresh.normal(size=L.shape[1])
            close(found @ v, L.matvec(v))


@pytest.mark.parametrize("width", [6, 60])
def test_deep_residual_networks_stay_linear(width):
    sizes = []
    for depth in (100, 200):
        W1, W2 = rng.normal(size=(depth, width // 2, width)) * 0.1, rng.normal(size=(depth, width, width // 2)) * 0.1

        def f(x, depth=depth, W1=W1, W2=W2):
            for k in range(depth):
                x = x + W2[k] @ np.tanh(W1[k] @ x)
            return x

        L = rz.jacobian(f)(rng.normal(size=width))
        sizes.append((count(L), len(L.values.net.hubs), len(L.values.net.c.program)))
        close(L.to_dense(), applied(L))
        assert len(L.simplify().program) <= len(L.program)
    assert all([b <= 2 * a + 32 for a, b in zip(*sizes, strict=True)])


def test_a_thousand_layers_have_a_normal_form():
    W1, W2 = rng.normal(size=(1000, 3, 6)) * 0.1, rng.normal(size=(1000, 6, 3)) * 0.1

    def f(x):
        for k in range(1000):
            x = x + W2[k] @ np.tanh(W1[k] @ x)
        return x

    L = rz.jacobian(f)(rng.normal(size=6))
    assert count(L) <= 8 and L.values.numbers <= 100
    close(L.to_dense(), applied(L))


TO, FROM = np.random.default_rng(3).integers(0, 30, (2, 90))
SHARED = [
    lambda y: np.sin(y) + np.tanh(y),
    lambda y: 0.5 * np.sin(y) + 0.1 * np.sum(y) + 0.2 * y[::-1],
    lambda y: 0.5 * np.sin(y) + 0.1 * np.bincount(TO, weights=np.tanh(y[FROM]), minlength=30),
]


@pytest.mark.parametrize("step", SHARED)
def test_values_used_twice_sixty_times_do_not_explode(step):
    def f(y):
        for _ in range(60):
            y = step(y)
        return y

    L = rz.jacobian(f)(rng.normal(size=30))
    assert count(L) <= 4 * 60
    close(L.to_dense(), applied(L))
    close(L.to_sparse().toarray(), applied(L))


def test_a_long_chain_of_elementwise_functions_is_one_diagonal():
    def f(x):
        for _ in range(500):
            x = np.tanh(np.sin(x) * 1.01) + x
        return x

    L = rz.jacobian(f)(rng.normal(size=4))
    assert count(L) == 1 and L.values.numbers == 4 and L.structure.kind == "diagonal"
    close(L.diagonal(), applied(L).sum(0))


# -- print ---------------------------------------------------------------------------------------------------------


def lines(L: Any) -> tuple[str, str]:
    text = str(L.simplify())
    return text.split("\n  where ")[0], text


def test_griewank_prints_as_an_outer_product():
    b, x = rng.normal(size=12), rng.normal(size=12)
    L = rz.jacobian(lambda x: np.cos(np.sum(x**2)) * b)(x)
    assert lines(L)[0] == "−2 · a · (b ⊗ x)"
    assert "a = sin (Σ x²)" in lines(L)[1]
    assert "\\otimes" in L.simplify().latex()


def test_logistic_regression_prints_as_a_product_of_three():
    X = rng.normal(size=(40, 12))
    L = rz.hessian(lambda w: np.sum(np.logaddexp(0, X @ w)))(rng.normal(size=12))
    assert lines(L)[0] == "Xᵀ · diag(a) · X"
    assert "X^{T} \\cdot" in L.simplify().latex()


def test_matrix_factorisation_prints_as_a_kronecker_product():
    T, U, V = rng.normal(size=(7, 8)), rng.normal(size=(7, 3)), rng.normal(size=(8, 3))
    H = rz.hessian(lambda U, V: np.sum((T - U @ V.T) ** 2))(U, V)
    assert str(H.simplify()) == "2 · (I ⊗ VᵀV)"
    assert H.simplify().latex() == "2 \\cdot \\left(I \\otimes V^{T}V\\right)"


def test_sums_of_identities_diagonals_and_outer_products_print_as_such():
    x = rng.normal(size=16)
    assert str(rz.jacobian(lambda x: x + np.mean(x))(x).simplify()) == "I + 0.0625 · (1 ⊗ 1)"
    softmax = rz.jacobian(lambda x: (lambda e: e / e.sum())(np.exp(x)))(x)
    assert lines(softmax)[0] == "diag(a) + b ⊗ y₀"
    assert str(rz.jacobian(lambda x: 3 * x)(x).simplify()) == "3 · I"
    assert str(rz.jacobian(lambda x: x[2:] - 2 * x[1:-1] + x[:-2])(x).simplify()) == "π[:14] + π[2:] − 2 · π[1:15]"
    assert str(rz.jacobian(lambda x: x[::-1])(x).simplify()) == "π[::-1]"
    assert str(rz.jacobian(np.sum)(x).simplify()) == "1ᵀ"
    assert str(rz.jacobian(lambda x: 0 * x)(x).simplify()) == "0"
    assert str(rz.jacobian(lambda x, y: x * y, (0, 1))(x, x + 1).simplify()) == "[ diag(y)   diag(x) ]"


def test_a_matrix_between_two_others_prints_as_a_kronecker_product():
    A, B = rng.normal(size=(5, 5)), rng.normal(size=(6, 6))
    L = rz.jacobian(lambda X: A @ X @ B)(rng.normal(size=(5, 6)))
    assert str(L.simplify()) == "A ⊗ Bᵀ"
    assert L.simplify().latex() == "A \\otimes B^{T}"


def test_positions_print_as_slices_and_with_letters_where_a_label_is_met_twice():
    X = rng.normal(size=(4, 6))
    assert str(rz.jacobian(lambda X: np.diagonal(X, 1))(X).simplify()) == "π[i, i+1]"
    assert str(rz.jacobian(lambda X: X[1:, ::2])(X).simplify()) == "π[1:, :5:2]"
    assert str(rz.jacobian(lambda X: X[::-1, 3])(X).simplify()) == "π[::-1, 3]"
    assert str(rz.jacobian(lambda X: X.T)(X).simplify()) == "[i, j ← j, i] 1"
    assert str(rz.jacobian(lambda x: np.tile(x, 3))(X[0]).simplify()) == "[6i+j ← j] 1"


def test_gathers_and_graph_energies_print_their_index_arrays():
    i, j = rng.integers(0, 12, (2, 20))
    x = rng.normal(size=12)
    assert str(rz.jacobian(lambda x: x[i])(x).simplify()) == "π[i]"
    H = rz.hessian(lambda u: np.sum(np.sqrt(1 + (u[i] - u[j]) ** 2)))(x)
    assert lines(H)[0] == "diag(a) − ι[i] · diag(y₃) · π[j] − ι[j] · diag(y₃) · π[i]"
    assert "y₀ = π[i] u − π[j] u" in lines(H)[1]
    assert "\\iota[i]" in H.simplify().latex()


def test_too_many_entries_to_multiply_out_still_give_a_sparse_matrix():
    """A 5 × 5 convolution has 25 diagonals, its normal equations 81: more than are kept apart, and far from a full matrix."""
    K = rng.normal(size=(5, 5))

    def blurred(u):
        p = np.pad(u, 2)
        return sum(K[a, b] * p[a : a + u.shape[0], b : b + u.shape[1]] for a in range(5) for b in range(5))

    def energy(u):
        return np.sum(np.cos(blurred(u)))

    H = rz.hessian(energy)(rng.normal(size=(40, 45)))
    assert H.flat is None
    probes = rng.normal(size=(1800, 3))
    S = H.to_sparse()
    assert S.nnz <= 81 * 1800 and np.allclose(S @ probes, H.matmat(probes))
    assert np.allclose(H.diagonal(), S.diagonal()) and np.allclose(H.column_norms() ** 2, (S * S).sum(axis=0))
    big = rz.hessian(energy)(rng.normal(size=(250, 250)))  # its matrix would be 31 GB
    assert big.to_sparse().nnz < 81 * 62500 and big.diagonal().shape == big.row_norms().shape == (62500,)
    assert rz.jacobian(blurred)(rng.normal(size=(250, 250))).column_norms().shape == (62500,)


def test_a_map_at_every_index():
    L = rz.jacobian(lambda x: np.tanh(ROWS @ x) * x[0])(rng.normal(size=4))
    for X, n in ((rz.seg(5), 5), (rz.seg(2) * rz.seg(3), 6), (rz.seg(1), 1)):
        M = L**X
        assert np.allclose(M.to_dense(), np.kron(np.eye(n), L.to_dense()))
        assert np.allclose(M.matmat(np.eye(M.shape[1])), M.to_dense()) and np.allclose(M.T.to_dense(), M.to_dense().T)
    with pytest.raises(rz.SpaceError, match="index set"):
        L**2


ROWS = np.arange(12.0).reshape(3, 4) / 12
