"""Every solver against dense linear algebra on random matrices; singular ones are refused, by name."""

import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from riesz.errors import SolveError, VectorError
from riesz.maps.solvers.composite import Kronecker, KroneckerSum, LowRankPlus, Reordered
from riesz.maps.solvers.factorised import (
    Banded,
    BlockDiagonalSolver,
    Dense,
    DenseLeastSquares,
    DiagonalSolver,
    Permutation,
    TriangularSolver,
)
from riesz.maps.solvers.krylov import Krylov
from riesz.maps.solvers.sparse import ArrowSolver, Sparse, choose_sparse

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(0, 9)
types = st.sampled_from([np.float32, np.float64])


def normal(rng, shape, dtype=float):
    return rng.standard_normal(shape).astype(dtype)


def dominant(rng, n, dtype=float):
    """A well-conditioned matrix that is not symmetric."""
    return (normal(rng, (n, n)) + 3.0 * max(n, 1) * np.diag(rng.choice([-1.0, 1.0], n))).astype(dtype)


def definite(rng, n, dtype=float):
    a = normal(rng, (n, n))
    return (a @ a.T + np.eye(n)).astype(dtype)


def banded_matrix(ab, lower, upper):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for i in range(n):
        for j in range(max(0, i - lower), min(n, i + upper + 1)):
            a[i, j] = ab[upper + i - j, j]
    return a


def same(solver, matrix, rng):
    """The solver is that of the matrix: A⁻¹, A⁻ᵀ, A and Aᵀ, for one and for several right-hand sides."""
    m, n = matrix.shape
    assert solver.shape == (m, n) and solver.name and not solver.flops < 0
    tolerance = 2e-3 if solver.dtype == np.float32 else 1e-9
    exact = np.linalg.pinv(matrix.astype(float))
    for transposed in (False, True):
        A, inverse = (matrix.T, exact.T) if transposed else (matrix, exact)
        for shape in ((A.shape[0],), (A.shape[0], 3), (A.shape[0], 0)):
            b = normal(rng, shape, solver.dtype)
            x = solver.solve(b, transposed=transposed)
            assert x.dtype == solver.dtype and x.shape == (A.shape[1], *shape[1:])
            np.testing.assert_allclose(
                x, inverse @ b, rtol=tolerance, atol=tolerance * (1.0 + np.abs(inverse).max(initial=0.0))
            )
            v = normal(rng, (A.shape[1], *shape[1:]), solver.dtype)
            np.testing.assert_allclose(
                solver.apply(v, transposed=transposed),
                A @ v,
                rtol=tolerance,
                atol=tolerance * (1.0 + np.abs(A).max(initial=0.0)),
            )


# -- one kind each -------------------------------------------------------------


@given(seeds, sizes, types)
def test_diagonal(seed, n, dtype):
    rng = np.random.default_rng(seed)
    d = (normal(rng, n) + 3.0 * rng.choice([-1.0, 1.0], n)).astype(dtype)
    same(DiagonalSolver(d), np.diag(d), rng)


@given(seeds, sizes, st.booleans())
def test_permutation(seed, n, scaled):
    rng = np.random.default_rng(seed)
    index, values = rng.permutation(n), rng.uniform(1.0, 2.0, n) if scaled else np.ones(n)
    same(Permutation(index, values if scaled else None), np.eye(n)[index] * values[:, None], rng)


@given(seeds, st.integers(0, 5), st.integers(1, 5), types)
def test_blocks(seed, count, m, dtype):
    rng = np.random.default_rng(seed)
    blocks = np.array([dominant(rng, m, dtype) for _ in range(count)], dtype).reshape(count, m, m)
    whole = np.zeros((count * m, count * m), dtype)
    for k, block in enumerate(blocks):
        whole[k * m : (k + 1) * m, k * m : (k + 1) * m] = block
    same(BlockDiagonalSolver(blocks), whole, rng)


@given(seeds, sizes, st.integers(0, 3), st.integers(0, 3), st.sampled_from(["any", "definite", "indefinite"]), types)
def test_banded(seed, n, lower, upper, kind, dtype):
    rng = np.random.default_rng(seed)
    upper = upper if kind == "any" else lower
    ab = normal(rng, (lower + upper + 1, n))  # what lies outside of the matrix is noise, and must not matter
    ab[upper] = 8.0 if kind == "definite" else 8.0 * rng.choice([-1.0, 1.0], n)
    if kind != "any":
        for d in range(1, lower + 1):
            ab[upper + d, : max(n - d, 0)] = ab[upper - d, d:]
    ab = ab.astype(dtype)
    same(Banded(ab, lower, upper), banded_matrix(ab, lower, upper), rng)


def test_band_kinds_are_named():
    assert "gttrf" in Banded(np.array([[1.0] * 5, [4.0] * 5, [1.0] * 5]), 1, 1).name
    assert "Cholesky" in Banded(np.array([[1.0] * 5] * 2 + [[9.0] * 5] + [[1.0] * 5] * 2), 2, 2).name
    assert "band LU" in Banded(np.array([[1.0] * 5, [4.0] * 5]), 0, 1).name


def test_a_million_unknowns_in_a_band():
    n = 10**6
    rng = np.random.default_rng(0)
    ab = rng.standard_normal((3, n))
    ab[1] += 6.0
    solver = Banded(ab, 1, 1)
    b = rng.standard_normal(n)
    np.testing.assert_allclose(solver.apply(solver.solve(b)), b, atol=1e-11)


def test_a_band_that_needs_row_exchanges():
    a = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 3.0, 0.0]])
    ab = np.array([[0.0, *np.diag(a, 1)], np.diag(a), [*np.diag(a, -1), 0.0]])
    same(Banded(ab, 1, 1), a, np.random.default_rng(1))


@given(seeds, sizes, st.booleans(), types)
def test_triangular(seed, n, lower, dtype):
    rng = np.random.default_rng(seed)
    a = dominant(rng, n, dtype)
    same(TriangularSolver(a, lower), np.tril(a) if lower else np.triu(a), rng)


@given(seeds, sizes, st.sampled_from([dominant, definite]), types)
def test_dense(seed, n, kind, dtype):
    rng = np.random.default_rng(seed)
    a = kind(rng, n, dtype)
    if kind is definite:
        a = np.tril(a) + np.tril(a, -1).T  # symmetric to the last bit
    solver = Dense(a)
    assert ("Cholesky" in solver.name) == (n > 0 and np.array_equal(a, a.T) and bool((np.linalg.eigvalsh(a) > 0).all()))
    same(solver, a, rng)


@pytest.mark.parametrize("make", [Dense, lambda a: Banded(np.stack([a[0], 3.0 * a[1], a[2], a[3]]), 2, 1)])
def test_threads_may_solve_together(make):
    rng = np.random.default_rng(0)
    solver, b = make(rng.normal(size=(400, 400))), rng.normal(size=(8, 400))
    wanted, wrong = [solver.solve(row) for row in b], []
    start, pause = threading.Barrier(8), sys.getswitchinterval()

    def work(k):
        start.wait()
        for _ in range(150):
            if not np.array_equal(solver.solve(b[k]), wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(pause)
    assert not wrong


def test_a_symmetric_matrix_that_is_not_definite():
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    solver = Dense(a)
    assert "LU" in solver.name
    same(solver, a, np.random.default_rng(0))


@given(seeds, st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), types)
def test_dense_least_squares_is_the_pseudoinverse(seed, m, n, rank, dtype):
    rng = np.random.default_rng(seed)
    k = min(m, n, rank)
    q, _ = np.linalg.qr(normal(rng, (m, m)))
    p, _ = np.linalg.qr(normal(rng, (n, n)))
    a = ((q[:, :k] * rng.uniform(1.0, 3.0, k)) @ p[:k]).astype(dtype)
    solver = DenseLeastSquares(a)
    assert solver.rank == k
    exact = (p[:k].T / np.linalg.norm(q[:, :k].T @ a.astype(float), axis=1)) @ q[:, :k].T if k else np.zeros((n, m))
    b = normal(rng, (m, 2), dtype)
    x = solver.solve(b)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, exact @ b, atol=1e-3 if dtype == np.float32 else 1e-10)


# -- made of others --------------------------------------------------------------


@given(seeds, st.integers(1, 9), st.integers(0, 3), st.booleans(), types)
def test_low_rank_plus(seed, n, k, symmetric, dtype):
    rng = np.random.default_rng(seed)
    d = rng.uniform(1.0, 2.0, n).astype(dtype)
    U, V = normal(rng, (n, k), dtype) / 4, normal(rng, (n, k), dtype) / 4
    solver = LowRankPlus(DiagonalSolver(d), U) if symmetric else LowRankPlus(DiagonalSolver(d), U, V)
    matrix = np.diag(d) + U @ (U if symmetric else V).T
    if np.linalg.cond(matrix) < 1e3:
        same(solver, matrix, rng)


def test_low_rank_plus_something_small_keeps_its_digits():
    rng = np.random.default_rng(0)
    U, d = rng.standard_normal((50, 3)), np.full(50, 1e-6)
    solver = LowRankPlus(DiagonalSolver(d), U)
    x = rng.standard_normal(50)
    b = solver.apply(x)
    np.testing.assert_allclose(solver.apply(solver.solve(b)), b, rtol=1e-13, atol=1e-13 * np.abs(b).max())


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=3), types)
def test_kronecker(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    factors = [dominant(rng, n, dtype) for n in shape]
    whole = factors[0]
    for a in factors[1:]:
        whole = np.kron(whole, a)
    same(Kronecker(*factors), whole, rng)
    same(
        Kronecker(DiagonalSolver(np.array([2.0, 3.0], dtype)), *factors),
        np.kron(np.diag(np.array([2.0, 3.0], dtype)), whole),
        rng,
    )


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans(), types)
def test_kronecker_sum(seed, shape, symmetric, dtype):
    rng = np.random.default_rng(seed)
    shape = shape if symmetric or len(shape) == 2 else [3, 2]
    matrices = [np.eye(n) * 4 * n + normal(rng, (n, n)) for n in shape]
    matrices = [(a if not symmetric else a + a.T).astype(dtype) for a in matrices]
    eyes = [np.eye(n) for n in shape]
    whole = np.zeros((np.prod(shape),) * 2)
    for i, a in enumerate(matrices):
        part = np.eye(1)
        for j, eye in enumerate(eyes):
            part = np.kron(part, a if i == j else eye)
        whole += part
    same(KroneckerSum(*matrices), whole, rng)


def test_reordered_with_padding():
    rng = np.random.default_rng(0)
    blocks = np.stack([dominant(rng, 2), np.diag([5.0, 1.0])])
    whole = np.zeros((3, 3))
    whole[np.ix_([0, 2], [0, 2])], whole[1, 1] = blocks[0], 5.0
    same(Reordered(BlockDiagonalSolver(blocks), [0, 2, 1]), whole, rng)


# -- sparse ------------------------------------------------------------------------


def scattered(rng, n, density):
    return np.where(rng.random((n, n)) < density, normal(rng, (n, n)), 0.0)


@given(seeds, sizes, st.booleans(), types)
def test_sparse(seed, n, symmetric, dtype):
    rng = np.random.default_rng(seed)
    a = scattered(rng, n, 0.3)
    a = a + a.T if symmetric else a
    a = (a + np.diag(8.0 * rng.choice([1.0, 1.0 if symmetric else -1.0], n))).astype(dtype)
    same(Sparse(sparse.csr_array(a)), a, rng)


def test_sparse_symmetric_with_small_pivots_is_exchanged():
    a = np.array([[1e-17, 1.0, 2.0], [1.0, 1e-17, 1.0], [2.0, 1.0, 1e-17]])
    solver = Sparse(sparse.csr_array(a))
    assert "partial pivoting" in solver.name
    same(solver, a, np.random.default_rng(0))


@given(seeds, st.integers(0, 4), st.integers(0, 4), st.integers(1, 3), st.booleans())
def test_arrow(seed, p, count, m, shuffled):
    rng = np.random.default_rng(seed)
    n = p + count * m
    J = np.concatenate([scattered(rng, n, 0.5)[: 3 * n], np.eye(n)])
    H = J.T @ J
    keep = np.zeros((n, n), bool)
    keep[:p], keep[:, :p] = True, True
    for k in range(count):
        keep[p + k * m : p + (k + 1) * m, p + k * m : p + (k + 1) * m] = True
    H = np.where(keep, H, 0.0) + n * np.eye(n)
    order = rng.permutation(n) if shuffled else np.arange(n)
    gone = np.flatnonzero(order >= p) if shuffled else p
    H = H[np.ix_(order, order)]
    same(ArrowSolver(sparse.csr_array(H), gone), H, rng)


def test_arrow_with_many_cameras_stays_sparse():
    rng = np.random.default_rng(0)
    points, p = 400, 300
    B = np.zeros((p, 2 * points))
    for k in range(points):
        B[rng.integers(0, p), 2 * k : 2 * k + 2] = rng.standard_normal(2)
    C = np.kron(np.eye(points), np.array([[4.0, 1.0], [1.0, 3.0]]))
    H = sparse.csr_array(np.block([[20.0 * np.eye(p), B], [B.T, C]]))
    solver = ArrowSolver(H, p)
    assert "400 blocks of at most 2 × 2; the other 300 unknowns sparse" in solver.name
    same(solver, H.toarray(), rng)


def choice(a, **options):
    return choose_sparse(sparse.csr_array(a), **options)


@pytest.mark.parametrize(
    ("matrix", "kind", "part"),
    [
        (np.diag([1.0, 2.0, 3.0]), DiagonalSolver, "diagonal"),
        (np.eye(4)[[2, 0, 3, 1]] * 2.0, Permutation, "permutation"),
        (np.kron(np.eye(4), [[2.0, 1.0], [0.0, 3.0]]), BlockDiagonalSolver, "4 blocks of 2 × 2"),
        (np.kron([[2.0, 1.0], [0.0, 3.0]], np.eye(4)), Reordered, "4 blocks of 2 × 2"),
        (np.diag([4.0] * 9) + np.diag([1.0] * 8, 1) + np.diag([2.0] * 8, -1), Banded, "1 below and 1 above"),
        (
            np.diag([4.0] * 90) + np.diag([1.0] * 89, 1) + np.diag([1.0], 89) + np.diag([1.0], -89),
            Reordered,
            "Cuthill–McKee",
        ),
        (np.zeros((0, 0)), DiagonalSolver, "diagonal"),
        (np.array([[3.0]]), DiagonalSolver, "diagonal"),
    ],
)
def test_what_is_chosen(matrix, kind, part):
    solver = choice(matrix)
    assert type(solver) is kind and part in solver.name
    same(solver, matrix, np.random.default_rng(0))


def test_what_is_chosen_among_large_ones():
    rng = np.random.default_rng(0)
    n = 400
    a = sparse.random_array((n, n), density=0.02, rng=rng) + 10.0 * sparse.eye_array(n)
    for matrix, part in (
        (a, "partial pivoting"),
        (a + a.T, "symmetric LU"),
        (sparse.tril(a), "triangular"),
        (a.toarray() + 1.0, "dense"),
    ):
        solver = choice(matrix)
        assert part in solver.name
        b = rng.standard_normal((n, 2))
        np.testing.assert_allclose(matrix @ solver.solve(b), b, atol=1e-10)
        np.testing.assert_allclose(matrix.T @ solver.solve(b, transposed=True), b, atol=1e-10)


def test_groups_give_the_schur_complement():
    rng = np.random.default_rng(0)
    p, points = 12, 100
    J = sparse.lil_array((3 * points, p + 3 * points))
    for k in range(points):
        J[3 * k : 3 * k + 3, p + 3 * k : p + 3 * k + 3] = rng.standard_normal((3, 3)) + 3.0 * np.eye(3)
        J[3 * k : 3 * k + 3, 4 * (k % 3) : 4 * (k % 3) + 4] = rng.standard_normal((3, 4))
    H = sparse.csr_array(J.T @ J) + 0.1 * sparse.eye_array(p + 3 * points)
    solver = choose_sparse(H, symmetric=True, groups=[p, 3 * points])
    assert "Schur complement of 100 blocks of at most 3 × 3" in solver.name
    b = rng.standard_normal(H.shape[0])
    np.testing.assert_allclose(H @ solver.solve(b), b, atol=1e-9)


@given(seeds, sizes, st.sampled_from([0.1, 0.3, 0.8]), st.booleans())
def test_whatever_is_chosen_solves(seed, n, density, symmetric):
    rng = np.random.default_rng(seed)
    a = scattered(rng, n, density)
    a = (a + a.T if symmetric else a) + np.diag(9.0 * rng.choice([-1.0, 1.0], n))
    same(choice(a), a, rng)


# -- iterations ------------------------------------------------------------------------


@given(
    seeds,
    st.integers(1, 8),
    st.sampled_from(["definite", "symmetric", "any"]),
    st.sampled_from([None, "diagonal", "blocks"]),
)
def test_krylov_square(seed, n, kind, helped):
    rng = np.random.default_rng(seed)
    a = definite(rng, n) if kind == "definite" else dominant(rng, n)
    a = a + a.T if kind == "symmetric" else a
    P = {
        None: None,
        "diagonal": DiagonalSolver(np.abs(np.diag(a))),
        "blocks": BlockDiagonalSolver(np.abs(np.diag(a))[:, None, None]),
    }[helped]
    solver = Krylov(
        lambda x: a @ x,
        lambda y: a.T @ y,
        n,
        symmetric=kind != "any",
        definite=kind == "definite",
        preconditioner=P,
        tolerance=1e-12,
    )
    assert {"definite": "conjugate gradients", "symmetric": "MINRES", "any": "GMRES"}[kind] in solver.name
    b = rng.standard_normal((n, 2))
    x = solver.solve(b)
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-7)
    np.testing.assert_allclose(solver.solve(b, transposed=True), np.linalg.solve(a.T, b), atol=1e-7)
    assert solver.residual <= 1e-11 and not solver.solve(np.zeros(n)).any()


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_krylov_least_squares(seed, m, n, helped):
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.standard_normal((m, m)))
    a = q[:, : min(m, n)] @ (rng.uniform(1.0, 3.0, min(m, n))[:, None] * np.eye(min(m, n), n))
    scale = DiagonalSolver(rng.uniform(1.0, 2.0, n)) if helped and m >= n else None
    solver = Krylov(lambda x: a @ x, lambda y: a.T @ y, n, m, method="lsmr", preconditioner=scale, tolerance=1e-13)
    b = rng.standard_normal((m, 2))
    np.testing.assert_allclose(solver.solve(b), np.linalg.pinv(a) @ b, atol=1e-6)


def test_krylov_keeps_float32():
    a = np.diag(np.array([1.0, 2.0, 3.0], np.float32))
    x = Krylov(lambda v: a @ v, None, 3, symmetric=True, definite=True, dtype=np.float32).solve(np.ones(3, np.float32))
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, [1.0, 0.5, 1.0 / 3.0], rtol=1e-4)


def test_krylov_says_when_it_has_not_arrived():
    a = np.diag(np.logspace(0.0, 9.0, 60))
    with pytest.raises(
        SolveError, match=r"conjugate gradients .* after 3 iterations, ‖b − A x‖ / ‖b‖ = .*try a preconditioner"
    ):
        Krylov(lambda v: a @ v, None, 60, symmetric=True, definite=True, max_iterations=3).solve(np.ones(60))
    with pytest.raises(SolveError, match=r"GMRES"):
        Krylov(lambda v: 0.0 * v, lambda v: 0.0 * v, 4).solve(np.ones(4))
    with pytest.raises(SolveError, match=r"LSMR .* after 1 iterations"):
        Krylov(lambda v: a @ v, lambda v: a.T @ v, 60, method="lsmr", max_iterations=1).solve(np.ones(60))


# -- what is refused ---------------------------------------------------------------------

CORNER = np.block([[np.eye(2), np.ones((2, 4))], [np.ones((4, 2)), np.kron(np.diag([1.0, 0.0]), np.eye(2))]])
RANK_TWO = np.arange(9.0).reshape(3, 3) + np.array([[0.0], [0.1], [0.2]])


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda: DiagonalSolver([1.0, 0.0, 2.0]), "entry 1 is 0"),
        (lambda: DiagonalSolver([1.0, np.nan]), "entry nan at [1]"),
        (lambda: Permutation([0, 0, 2]), "unknown 1 is never read"),
        (lambda: Permutation([1, 0], [1.0, 0.0]), "row 1 is 0"),
        (lambda: BlockDiagonalSolver(np.stack([np.eye(2), np.ones((2, 2)), np.eye(2)])), "block 1 is singular"),
        (lambda: BlockDiagonalSolver(np.stack([np.eye(3), RANK_TWO])), "block 1 is singular"),
        (
            lambda: Banded([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], 1, 1),
            "column 1 depends on those before it",
        ),
        (lambda: Banded([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]], 1, 1), "column 1 is 0"),
        (lambda: Banded([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]], 0, 1), "row 2 is 0"),
        (lambda: Banded([[2.0] * 60, [1.0] * 60], 0, 1), "singular to working precision"),
        (lambda: TriangularSolver([[1.0, 0.0], [3.0, 0.0]]), "diagonal is 0 at 1"),
        (lambda: Dense([[1.0, 2.0], [2.0, 4.0]]), "dense: singular, column 1"),
        (lambda: Dense(RANK_TWO), "singular"),
        (lambda: Dense(np.zeros((3, 3))), "column 0"),
        (lambda: Dense([[1.0, np.inf], [2.0, 4.0]]), "entry inf at [0, 1]"),
        (lambda: LowRankPlus(DiagonalSolver([1.0, 1.0]), [[1.0], [0.0]], [[-1.0], [0.0]]), "I + VᵀA⁻¹U (1 × 1)"),
        (lambda: Kronecker(np.eye(2), np.ones((2, 2))), "factor 1 is singular"),
        (lambda: KroneckerSum(np.diag([1.0, 2.0]), np.diag([3.0, -2.0])), "the eigenvalues 2 + -2"),
        (lambda: KroneckerSum([[1.0, 1.0], [0.0, 2.0]], [[-1.0, 3.0], [0.0, 5.0]]), "add up to 0"),
        (lambda: Sparse(sparse.csr_array([[1.0, 0.0], [0.0, 0.0]])), "row 1 is 0"),
        (lambda: Sparse(sparse.csr_array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])), "structural rank"),
        (lambda: Sparse(sparse.csr_array([[4.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])), "not determined"),
        (lambda: Sparse(sparse.csr_array([[1.0, np.nan], [0.0, 1.0]])), "nan"),
        (lambda: ArrowSolver(sparse.csr_array(CORNER), 2), "the eliminated part is singular"),
        (lambda: ArrowSolver(sparse.csr_array([[1.0, 1.0], [1.0, 1.0]]), 1), "Schur complement of the unknowns kept"),
    ],
)
def test_singular_matrices_are_refused_by_name(build, part):
    with pytest.raises(SolveError) as caught:
        build()
    assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda: Dense(np.ones((2, 3))), "must be square; got shape (2, 3); DenseLeastSquares"),
        (lambda: Dense(np.ones((2, 2), complex)), "real numbers"),
        (lambda: Banded(np.ones((2, 4)), 1, 1), "3 rows"),
        (lambda: DiagonalSolver([1.0, 2.0]).solve(np.ones(3)), "(2,) or (2, k)"),
        (lambda: DiagonalSolver([1.0, 2.0]).solve(np.ones((2, 2, 2))), "(2, 2, 2)"),
        (lambda: LowRankPlus(DiagonalSolver([1.0]), np.ones((2, 1))), "A is 1 × 1"),
        (lambda: KroneckerSum(*[np.array([[1.0, 2.0], [0.0, 1.0]])] * 3), "two of any kind"),
        (lambda: Kronecker(), "at least one"),
        (lambda: Sparse(sparse.csr_array(np.ones((2, 3)))), "square"),
        (lambda: ArrowSolver(sparse.csr_array(np.ones((90, 90))), 10), "blocks of 32"),
        (lambda: Permutation([0, 5]), "0 to 1"),
        (lambda: Krylov(np.negative, None, 3, 2), "apply_transpose"),
        (lambda: Krylov(np.negative, np.negative, 3, 2, method="cg"), "lsmr"),
    ],
)
def test_what_does_not_fit_is_refused(build, part):
    with pytest.raises(VectorError) as caught:
        build()
    assert part in str(caught.value), str(caught.value)


def test_a_solution_too_large_is_an_error():
    with pytest.raises(SolveError, match="too large for float64 at index 1"):
        DiagonalSolver([1.0, 1e-300]).solve([1.0, 1e300])


@given(
    seeds,
    st.integers(1, 6),
    st.sampled_from([Dense, lambda a: Sparse(sparse.csr_array(a)), lambda a: BlockDiagonalSolver(a[None])]),
)
def test_units_do_not_make_a_matrix_singular(seed, n, kind):
    """Rows and columns scaled by anything between 1e-40 and 1e40: still solved, to the digits of the well-scaled system."""
    rng = np.random.default_rng(seed)
    a = dominant(rng, n)
    rows, columns = np.exp2(rng.integers(-130, 130, (2, n)).astype(float))
    x = kind(rows[:, None] * a * columns).solve(rows * (a @ np.ones(n)))
    np.testing.assert_allclose(x * columns, 1.0, rtol=1e-10)


@given(
    seeds,
    st.integers(2, 6),
    st.sampled_from([Dense, lambda a: Sparse(sparse.csr_array(a)), lambda a: BlockDiagonalSolver(a[None])]),
)
def test_rank_deficient_matrices_are_found(seed, n, kind):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n - 1)) @ rng.standard_normal((n - 1, n))
    with pytest.raises(SolveError, match="singular"):
        kind(a)


def test_nan_in_a_right_hand_side_stays_there():
    assert np.isnan(DiagonalSolver([1.0, 2.0]).solve([np.nan, 2.0])).tolist() == [True, False]


@pytest.mark.parametrize("small", 10.0 ** -np.arange(0.0, 18.0, 1.5))
def test_a_base_that_is_nearly_singular_costs_the_sum_no_digits(small: float) -> None:
    draw = np.random.default_rng(int(-np.log10(small) * 10))
    for _ in range(8):
        d, (U, V) = draw.normal(size=12), draw.normal(size=(2, 12, 2))
        d[draw.integers(12)] = small
        L = rz.jacobian(lambda x, d=d, U=U, V=V: d * x + U @ (V.T @ x))(np.ones(12))
        b = draw.normal(size=12)
        for M in (L, L.T):
            dense = M.to_dense()
            np.testing.assert_allclose(dense @ M.solve(b), b, atol=1e-10 * np.linalg.cond(dense))
