"""What L.structure says is true of the matrix, at every point; and what it says of maps one meets."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from random_programs import OPAQUE, random_function
from sampling import examples

import riesz as rz
from riesz.maps.normal_form.structure import parts as label_groups
from riesz.relations.index_algebra import labels_of
from riesz.runtime import tuning

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
seeds = st.integers(0, 10**6)
rng = np.random.default_rng(0)


def applied(L: Any) -> Any:
    return L.matmat(np.eye(L.shape[1]))


def rank(matrix: Any) -> int:
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


# -- what is claimed holds -----------------------------------------------------------------------------------------


def holds(kind: str, words: str, matrix: Any, scale: float) -> None:
    """Check the claim a sentence makes about one matrix, between two arrays."""
    i, j = np.nonzero(matrix)
    small = 1e-9 * (1.0 + scale)
    if words == "zero":
        assert not matrix.any()
    if m := re.fullmatch(r"(?:(\S+) times the )?identity", words):
        assert np.abs(matrix - float(m[1] or 1) * np.eye(len(matrix))).max(initial=0) <= 1e-3 * abs(float(m[1] or 1))
    if words == "diagonal":
        assert (i == j).all()
    if words == "tridiagonal":
        assert matrix.shape[0] == matrix.shape[1] and (np.abs(i - j) <= 1).all()
    if words == "bidiagonal":
        assert (
            matrix.shape[0] == matrix.shape[1]
            and ((i - j >= 0).all() or (i - j <= 0).all())
            and (np.abs(i - j) <= 1).all()
        )
    if m := re.fullmatch(r"one diagonal, at ([+-]\d+)", words):
        assert (j - i == int(m[1])).all()
    if m := re.fullmatch(r"(\d+) diagonals, (\d+) below and (\d+) above the main one", words):
        assert (i - j <= int(m[2])).all() and (j - i <= int(m[3])).all() and len(np.unique(j - i)) <= int(m[1])
    if kind == "permutation":
        assert (np.count_nonzero(matrix, axis=0) == 1).all() and (np.count_nonzero(matrix, axis=1) == 1).all()
        assert len(np.unique(matrix[i, j])) == 1
    if re.fullmatch(r"rank \d+", words):
        assert int(words.split()[1]) >= rank(matrix)
    if m := re.fullmatch(r"(?:\S+ times a )?(gather|scatter) of (\d+) numbers", words):
        assert np.count_nonzero(matrix) <= int(m[2])
        assert (np.count_nonzero(matrix, axis=1 if m[1] == "gather" else 0) <= 1).all()
    if m := re.fullmatch(r"(diagonal|identity|\S+ times the identity) \+ rank (\d+)", words):
        base = matrix - np.diag(
            np.diagonal(matrix)
        )  # off the diagonal: what rank r leaves, in blocks that do not meet it
        half = len(matrix) // 2
        assert max(rank(base[:half, half:]), rank(base[half:, :half])) <= int(m[2])
        assert np.abs(base).max(initial=0) <= small or int(m[2]) > 0


def blocks_hold(L: Any, words: str, matrix: Any) -> None:
    """Nothing outside the blocks, which are as many and as large as it says; all the same where it is a product with the identity."""
    blocks = L.blocks()
    n, shape = (
        re.search(r"block-diagonal: ([\d,]+) blocks of (\d+×\d+)", words)
        or re.search(r"identity on ([\d,]+) and one (\d+×\d+) block", words)
    ).groups()  # pyright: ignore[reportOptionalMemberAccess]
    assert blocks.values.shape == (int(n.replace(",", "")), *map(int, shape.split("×")))
    assert len(np.unique(blocks.rows)) == matrix.shape[0] and len(np.unique(blocks.columns)) == matrix.shape[1]
    total = np.zeros_like(matrix)
    total[blocks.rows[:, :, None], blocks.columns[:, None, :]] = blocks.values
    assert np.allclose(total, matrix)
    if "Kronecker" in words:
        assert np.allclose(blocks.values, blocks.values[:1])


def kronecker_holds(L: Any, words: str, matrix: Any) -> None:
    """A product of k factors: with the axes of one factor on one side and the rest on the other, the numbers are a matrix of rank 1."""
    (e,) = L.values.net.entries
    row, column = L.codomain.leaves[0].shape, L.domain.leaves[0].shape
    groups = label_groups(e)
    assert len(groups) == int(words.split()[-1])
    tensor = matrix.reshape((*row, *column))
    for g in groups:
        mine = [k for k, m in enumerate((*e.out, *e.inn)) if set(labels_of(m)) & g]
        rest = [k for k in range(tensor.ndim) if k not in mine]
        assert rank(tensor.transpose([*mine, *rest]).reshape(math.prod([tensor.shape[k] for k in mine]), -1)) <= 1


def check(L: Any) -> str:
    matrix = applied(L)
    if not np.isfinite(matrix).all():
        return ""
    s = L.structure
    assert s.nonzeros >= np.count_nonzero(matrix)
    assert s.rank >= rank(matrix)
    if s.kind == "zero":
        assert not matrix.any()
    if len(L.domain.leaves) == len(L.codomain.leaves) == 1:
        holds(s.kind, s.words, matrix, np.abs(matrix).max(initial=0))
        if s.words.startswith(("block-diagonal:", "Kronecker product of the identity")):
            blocks_hold(L, s.words, matrix)
        elif s.kind == "Kronecker":
            kronecker_holds(L, s.words, matrix)
        return s.kind
    for at, words in re.findall(r"(?:^|; )\((\d+, \d+)\): ([^;]*)", s.words.split("blocks; ")[-1]):
        i, j = map(int, at.split(", "))
        rows, columns = [np.cumsum([0, *[leaf.size for leaf in V.leaves]]) for V in (L.codomain, L.domain)]
        block = matrix[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]
        holds("permutation" if "permutation" in words else "", words, block, np.abs(matrix).max(initial=0))
    if s.kind == "block-diagonal":
        rows, columns = [np.cumsum([0, *[leaf.size for leaf in V.leaves]]) for V in (L.codomain, L.domain)]
        for i, j in itertools.product(range(len(rows) - 1), range(len(columns) - 1)):
            assert i == j or not matrix[rows[i] : rows[i + 1], columns[j] : columns[j + 1]].any()
    return s.kind


def elsewhere(args: Any, seed: int) -> list[Any]:
    fresh = np.random.default_rng(seed)
    return [fresh.normal(size=np.shape(x)) if np.ndim(x) else float(fresh.normal()) for x in args]


@given(seeds)
@examples(1.2)
def test_structure_is_never_wrong(seed):
    count = 1 + seed % 2
    f, args = random_function(seed, count, without=OPAQUE if seed % 3 else ())
    D = rz.jacobian(f) if count == 1 else rz.jacobian(f, (0, 1))
    for again in range(3):
        L = D(*(args if again == 0 else elsewhere(args, again)))
        check(L)
        check(L.T)
    check(L.gram())
    check(L.T @ D(*args) + 2.0 * L.gram())


small = st.integers(2, 5)


@given(small, small, small, seeds)
def test_structure_of_maps_made_to_have_it(m, n, k, seed):
    """Products and sums that random programs seldom hit, at random sizes."""
    fresh = np.random.default_rng(seed)
    A, B, w = fresh.normal(size=(m, m)), fresh.normal(size=(n, n)), fresh.normal(size=n)
    X, Y = fresh.normal(size=(m, n)), fresh.normal(size=(k, m, n))
    found = [
        check(rz.jacobian(lambda X: A @ X @ B)(X)),
        check(rz.jacobian(lambda X: (A @ X @ B).T)(X)),
        check(rz.jacobian(lambda X: A @ X)(X)),
        check(rz.jacobian(lambda X: X * w)(X)),
        check(rz.jacobian(lambda X: np.sin(X) @ B)(X)),
        check(rz.jacobian(lambda X: np.outer(X.sum(1), w))(X)),
        check(rz.jacobian(lambda Y: np.einsum("ab,kbc,cd->kad", A, Y, B))(Y)),
        check(rz.jacobian(lambda Y: np.einsum("ab,kbc,kc->kac", A, Y, np.ones((k, n))))(Y)),
        check(rz.jacobian(lambda Y: np.transpose(Y, (2, 0, 1)))(Y)),
        check(rz.jacobian(lambda X: X[::-1, ::-1])(X)),
        check(rz.jacobian(lambda X: A @ X + X @ B)(X)),
    ]
    assert found[0] == found[1] == "Kronecker" and found[8] in ("permutation", "identity") and found[9] == "permutation"


# -- by name -------------------------------------------------------------------------------------------------------


def count(L: Any) -> int:
    return len(L.values.net.entries)


def laplacian(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


def normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def attention(Q: Any, K: Any, V: Any) -> Any:
    scores = Q @ K.T / np.sqrt(K.shape[1])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)) @ V


def energy(P: Any) -> Any:
    D = P[:, None, :] - P[None, :, :]
    return np.sum(1 / np.sqrt(np.sum(D * D, -1) + 1e-2))


x, X, P = rng.normal(size=16), rng.normal(size=(10, 16)), rng.normal(size=(12, 3))
TO, FROM = rng.integers(0, 200, (2, 300))
A, B = rng.normal(size=(5, 5)), rng.normal(size=(6, 6))
softmax = lambda x: np.exp(x) / np.sum(np.exp(x))  # noqa: E731

NAMED: dict[str, tuple[Any, tuple[Any, ...], str, str, int]] = {  # function, point, kind, words, entries at most
    "identity": (lambda x: x * 1.0, (x,), "identity", "identity", 1),
    "3x": (lambda x: 3 * x, (x,), "identity", "3 times the identity", 1),
    "sin": (np.sin, (x,), "diagonal", "diagonal", 1),
    "zero": (lambda x: np.sign(x), (x,), "zero", "zero", 0),
    "softmax": (softmax, (x,), "diagonal + low rank", "diagonal + rank 1", 2),
    "x + mean(x)": (lambda x: x + np.mean(x), (x,), "identity + low rank", "identity + rank 1", 2),
    "layer norm": (normalised, (X,), "block-diagonal", "block-diagonal: 10 blocks of 16×16, each diagonal + rank 2", 4),
    "convolution": (lambda x: np.convolve(x, [1.0, 2.0, 3.0], "same"), (x,), "banded", "tridiagonal", 3),
    "differences": (lambda x: x[1:] - x[:-1], (x,), "banded", "2 diagonals, 0 below and 1 above the main one", 2),
    "5-point Laplacian": (
        laplacian,
        (rng.normal(size=(9, 9)),),
        "sparse",
        "stencil of 5 points, at most 245 of 3,969 numbers",
        5,
    ),
    "reversal": (lambda x: x[::-1], (x,), "permutation", "permutation", 1),
    "transposition": (lambda X: X.T, (X,), "permutation", "permutation", 1),
    "gather": (lambda u: u[TO], (rng.normal(size=200),), "sparse", "gather of 300 numbers", 1),
    "segment sums": (
        lambda u: np.bincount(FROM, weights=u, minlength=200),
        (rng.normal(size=300),),
        "sparse",
        "scatter of 300 numbers",
        1,
    ),
    "cumsum": (np.cumsum, (x,), "product", "running sums", 1),
    "I + UV": (lambda x: x + X[:3].T @ (X[3:6] @ x), (x,), "identity + low rank", "identity + rank 3", 2),
    "A X B": (lambda Y: A @ Y @ B, (rng.normal(size=(5, 6)),), "Kronecker", "Kronecker product of 2", 1),
    "X B": (
        lambda Y: Y @ B,
        (rng.normal(size=(5, 6)),),
        "Kronecker",
        "Kronecker product of the identity on 5 and one 6×6 block (dense)",
        1,
    ),
    "a row of tanh": (
        lambda Y: np.tanh(Y @ B),
        (rng.normal(size=(5, 6)),),
        "block-diagonal",
        "block-diagonal: 5 blocks of 6×6, each dense, a product of 2 factors",
        1,
    ),
    "attention, queries": (
        lambda Q: attention(Q, P, P),
        (P,),
        "block-diagonal",
        "block-diagonal: 12 blocks of 3×3, each dense",
        1,
    ),
    "attention, values": (
        lambda V: attention(P, P, V),
        (P,),
        "Kronecker",
        "Kronecker product of the identity on 3 and one 12×12 block (dense)",
        1,
    ),
    "multilayer": (lambda x: np.tanh(X @ x), (x,), "dense", "dense, a product of 2 factors", 1),
}
HESSIANS: dict[str, tuple[Any, tuple[Any, ...], str, str, int]] = {
    "sum of squares": (lambda x: np.sum(x**2), (x,), "identity", "2 times the identity", 1),
    "total variation": (lambda u: np.sum(np.sqrt(1e-3 + (u[1:] - u[:-1]) ** 2)), (x,), "banded", "tridiagonal", 3),
    "graph energy": (
        lambda u: np.sum(np.sqrt(1 + (u[TO] - u[FROM]) ** 2)),
        (rng.normal(size=200),),
        "sparse",
        "sparse, at most 800 of 40,000 numbers",
        3,
    ),
    "logistic": (
        lambda w: np.sum(np.logaddexp(0, X.T @ w)),
        (rng.normal(size=10),),
        "dense",
        "dense, a product of 3 factors",
        1,
    ),
    "chain of springs": (
        lambda u: np.sum((u[2:] - 2 * u[1:-1] + u[:-2]) ** 2),
        (x,),
        "banded",
        "5 diagonals, 2 below and 2 above the main one",
        5,
    ),
}


@pytest.mark.parametrize("name", [*NAMED, *HESSIANS])
def test_structure_by_name(name):
    f, at, kind, words, entries = {**NAMED, **HESSIANS}[name]
    L = (rz.jacobian if name in NAMED else rz.hessian)(f)(*at)
    assert (L.structure.kind, L.structure.words) == (kind, words)
    assert count(L) <= entries
    check(L)
    assert np.allclose(L.to_dense(), applied(L))


def test_the_hessian_of_many_bodies_has_a_handful_of_entries():
    H = rz.hessian(energy)(P)
    assert count(H) <= 12 and H.values.numbers <= 4 * 12 * 12 * 3
    assert np.allclose(H.to_dense(), applied(H))
    check(H)


def test_blocks_of_direct_sums_are_named_one_by_one():
    L = rz.jacobian(lambda x, y: (np.sin(x), y + y.sum()), (0, 1))(x, x)
    assert L.structure.kind == "block-diagonal"
    assert str(L.structure) == "2×2 blocks; (0, 0): diagonal; (1, 1): identity + rank 1"


def test_a_sparse_product_is_described_by_its_matrix():
    """Two rounds on a graph are better left unmultiplied, yet their matrix is sparse."""
    n = 400
    i, j = rng.integers(0, n, (2, 3 * n))
    step = lambda u: np.bincount(i, weights=np.tanh(u[j]), minlength=n)  # noqa: E731
    L = rz.jacobian(lambda u: step(step(u)))(rng.normal(size=n))
    assert L.structure.kind == "sparse" and L.structure.nonzeros < n * n // 4
    check(L)


def test_a_step_around_which_something_goes_does_not_bound_the_rank():
    W1, W2 = rng.normal(size=(3, 40)), rng.normal(size=(40, 3))
    L = rz.jacobian(lambda x: np.cumsum(x) + W2 @ (W1 @ x))(rng.normal(size=40))
    assert L.structure.rank == 40
    check(L)
    check(rz.jacobian(lambda x: x + W2 @ np.cumsum(W1 @ x))(rng.normal(size=40)))


def test_different_things_print_differently():
    at = rng.normal(size=13)
    edges = rz.jacobian(lambda u: np.pad(u, 1, mode="edge")[2:] + np.pad(u, 1, mode="edge")[:-2])(at)
    assert str(edges.simplify()) == "π[index] + π[index₁]"
    diagonal = rz.jacobian(np.diag)(rng.normal(size=(4, 4)))
    assert str(diagonal.simplify()) == "π[i, i]"
    kernel = rz.jacobian(lambda p: np.exp(-np.sum((p[:, None] - p[None]) ** 2, -1)))(rng.normal(size=(7, 2)))
    first = str(kernel.simplify()).splitlines()[0]
    assert first == "−2 · blocks(A) + 2 · ([i, j ← j, k] A[i, j, k])"


def test_numbers_of_columns_and_options_are_checked():
    L = rz.jacobian(np.sin)(rng.normal(size=4))
    with pytest.raises(rz.SpaceError, match="columns=-1"):
        L.cost(columns=-1)
    with pytest.raises(rz.SpaceError, match="takes no tol"):
        L.solve(np.ones(4), tol=1e-3)


def test_names_outside_are_not_used_for_something_else():
    X, y = rng.normal(size=(300, 20)), rng.normal(size=300)
    H = rz.hessian(lambda w: np.sum(np.maximum(0.0, 1.0 - y * (X @ w)) ** 2))(np.ones(20))
    text = str(H.simplify())
    assert "y ∗ (X ⋆ w)" in text and "y = " not in text
    many = rz.jacobian(lambda y, z, w, s, t: np.sin(y * z) * np.exp(np.sin(y * z)) + w * s * t, argnums=(0, 1, 2, 3, 4))
    assert "y′₀ = " in str(many(*rng.normal(size=(5, 3))).simplify())


@pytest.mark.parametrize("sign", ["positive", "negative", "mixed"])
@pytest.mark.parametrize("n", [5, 180])
def test_one_half_of_a_symmetric_product(n, sign):
    """Xᵀ diag(w) X of either sign, two axes summed as well as one; symmetric to the last bit where it is large."""
    rng = np.random.default_rng(3)
    X, x = rng.normal(size=(150, 2, n)), rng.normal(size=n)
    w = {"positive": 1.0, "negative": -1.0, "mixed": 0.0}[sign] + 0.5 * rng.uniform(-1, 1, size=(150, 2))
    for scale in (1.0, -3.0):
        H = rz.hessian(lambda x, scale=scale: scale * np.sum(w * (X @ x) ** 2))(x)
        D = H.to_dense()
        assert np.allclose(D, 2 * scale * np.einsum("abi,ab,abj->ij", X, w, X), rtol=1e-10, atol=1e-10)
        assert n < 100 or np.array_equal(D, D.T)


def test_a_matrix_of_one_entry_belongs_to_the_caller():
    A = np.arange(6.0).reshape(2, 3)
    L = rz.jacobian(lambda x: A @ x)(np.ones(3))
    D = L.to_dense()
    D += 1.0
    assert np.array_equal(A, np.arange(6.0).reshape(2, 3)) and np.array_equal(L.to_dense(), A)


@pytest.mark.parametrize("together", [1, 40, 10**6])
@pytest.mark.parametrize("meet", ["never", "sometimes", "often"])
def test_positions_are_the_same_however_many_are_sorted_at_a_time(together, meet):
    rng = np.random.default_rng(together)
    n, m = 30 + together % 7, {"never": 40, "sometimes": 60, "often": 400}[meet]
    i, j = rng.integers(0, n, (2, m))
    k = np.arange(m) if meet == "never" else rng.integers(0, n, m)
    x, rows = rng.standard_normal(n), m if meet == "never" else n

    def f(x):
        return np.bincount(k, x[i] * x[j] ** 2, rows)

    with tuning.override(SORTED_TOGETHER=together, CODED_NUMBERS=0, GATHERED_NUMBERS=100):
        A = rz.jacobian(f)(x).to_sparse()
        again = rz.jacobian(f)(2.0 * x).to_sparse()
    numbers = np.concatenate([x[j] ** 2, 2.0 * x[i] * x[j]])
    exact = scipy.sparse.coo_array((numbers, (np.tile(k, 2), np.concatenate([i, j]))), shape=(rows, n)).tocsr()
    exact.sort_indices()
    for mine, theirs in ((A.indptr, exact.indptr), (A.indices, exact.indices)):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(A.data, exact.data, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(again.data, 4.0 * exact.data, rtol=1e-13, atol=1e-15)


def test_a_map_may_forget_its_numbers_and_compute_them_again():
    rng = np.random.default_rng(0)
    A, x, v = rng.standard_normal((5, 4)), rng.standard_normal(4), rng.standard_normal(4)
    J = rz.jacobian(lambda x: np.sin(A @ x) ** 2)(x)
    exact = (np.sin(2.0 * (A @ x))[:, None] * A) @ v
    np.testing.assert_allclose(J(v), exact, rtol=1e-13)
    J.released()
    assert "program" not in vars(J)
    np.testing.assert_allclose(J(v), exact, rtol=1e-13)
    _, L = rz.linearize(lambda x: np.sin(A @ x) ** 2, x)
    L.released()
    np.testing.assert_allclose(L(v), exact, rtol=1e-13)
