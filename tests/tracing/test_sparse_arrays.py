"""scipy.sparse with traced data: what NumPy code does with sparse matrices, against dense JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from jax.scipy.linalg import block_diag
from numpy.linalg import norm

import riesz as rz

jax.config.update("jax_enable_x64", True)
N = 40
rng = np.random.default_rng(0)
b, bb, X = rng.normal(size=N), rng.normal(size=2 * N), rng.normal(size=(N, 3))
S: Any = (sp.random_array((N, N), density=0.1, rng=rng).tocsr() + 5 * sp.eye_array(N)).tocsr()
S.sort_indices()
AT = S.tocoo()
DATA = S.data
E = sp.eye_array(N)
P = np.array([[1.0, 2.0], [0.0, 3.0]])
solve = jnp.linalg.solve


def A(d: Any) -> Any:
    return sp.csr_array((d, S.indices, S.indptr), shape=(N, N))


def D(d: Any) -> Any:
    return jnp.zeros((N, N)).at[AT.row, AT.col].add(d)


def squares(*xs: Any) -> Any:
    return sum([(x**2).sum() for x in xs])


def double(d: Any) -> Any:
    """Each position twice, and mirrored."""
    rows, columns = np.r_[AT.row, AT.col, AT.row], np.r_[AT.col, AT.row, AT.col]
    return sp.coo_array((np.concatenate([d, d, d**2]), (rows, columns)), shape=(N, N))


def tridiagonal(d: Any) -> Any:
    return sp.diags([d[:N] + 9, d[1:N], 1.0], [0, 1, -1], shape=(N, N), format="csc")


def blocks(d: Any) -> Any:
    return sp.block_array([[A(d), None], [E, A(d).T]], format="csc")


ZERO = jnp.zeros((N, N))
CASES: dict[str, tuple[Any, Any]] = {
    "A @ v": (lambda d: squares(A(d) @ b, A(d) @ d[:N]), lambda d: squares(D(d) @ b, D(d) @ d[:N])),
    "A @ X": (lambda d: squares(A(d) @ X), lambda d: squares(D(d) @ X)),
    "v @ A": (lambda d: squares(b @ A(d), X.T @ A(d)), lambda d: squares(b @ D(d), X.T @ D(d))),
    "traced @ A": (lambda d: squares(d[:N] @ A(d)), lambda d: squares(d[:N] @ D(d))),
    "A.T": (lambda d: squares(A(d).T @ b, A(d).dot(b)), lambda d: squares(D(d).T @ b, D(d) @ b)),
    "sums": (
        lambda d: squares((A(d) + 2 * E - A(d).T / 3) @ b, (E + A(d)) @ b, (S - A(d)) @ X),
        lambda d: squares((D(d) + 2 * jnp.eye(N) - D(d).T / 3) @ b, (jnp.eye(N) + D(d)) @ b, (S.toarray() - D(d)) @ X),
    ),
    "A + dense": (lambda d: squares(A(d) + np.ones((N, N))), lambda d: squares(D(d) + 1)),
    "products": (
        lambda d: squares(A(d) @ A(d) @ b, (A(d) @ A(d).T).diagonal(), (S @ A(d)).toarray(), (A(d) @ S) @ b),
        lambda d: squares(D(d) @ D(d) @ b, jnp.diag(D(d) @ D(d).T), S.toarray() @ D(d), D(d) @ S.toarray() @ b),
    ),
    "entry by entry": (
        lambda d: squares(A(d).multiply(A(d).T).toarray(), (A(d) * b).sum(axis=0), (d[0] * A(d)).sum(axis=1)),
        lambda d: squares(D(d) * D(d).T, (D(d) * b).sum(0), (d[0] * D(d)).sum(1)),
    ),
    "with numbers": (
        lambda d: squares(A(d).multiply(S).data, A(d).power(3).data, (-A(d)).diagonal(1), A(d).multiply(X[:, :1]).data),
        lambda d: squares(d * DATA, d**3, jnp.diag(D(d), 1), D(d) * X[:, :1]),
    ),
    "coo with duplicates": (
        lambda d: squares(double(d) @ b, double(d).tocsr() @ X, double(d).tocsc().toarray()),
        lambda d: squares(*[(D(d) + D(d).T + D(d**2)) @ Y for Y in (b, X, jnp.eye(N))]),
    ),
    "csc_matrix": (
        lambda d: squares(sp.csc_matrix((d, S.indices, S.indptr), shape=(N, N)) * b),
        lambda d: squares(D(d).T @ b),
    ),
    "csr by rows and columns": (
        lambda d: squares(sp.csr_matrix((d, (AT.row // 2, AT.col)), shape=(N, N)) * X),
        lambda d: squares(ZERO.at[AT.row // 2, AT.col].add(d) @ X),
    ),
    "from a dense one": (
        lambda d: squares(sp.csr_array(np.reshape(d[:20], (4, 5))) @ b[:5]),
        lambda d: squares(jnp.reshape(d[:20], (4, 5)) @ b[:5]),
    ),
    "diags": (
        lambda d: squares(tridiagonal(d) @ b, sp.diags(d[:N]) @ X, sp.spdiags(d[:N], [2], N, N) @ b),
        lambda d: squares(T(d) @ b, d[:N, None] * X, jnp.diag(d[2:N], 2) @ b),
    ),
    "diags_array": (
        lambda d: squares(sp.diags_array(d[:N]) @ b, sp.diags_array([d[1:N]], offsets=[-1]) @ b),
        lambda d: squares(d[:N] * b, jnp.diag(d[1:N], -1) @ b),
    ),
    "blocks": (lambda d: squares(blocks(d) @ bb), lambda d: squares(BLOCKS(d) @ bb)),
    "bmat of dense": (
        lambda d: squares(sp.bmat([[A(d), d[:N, None]], [d[None, :N], None]]) @ bb[: N + 1]),
        lambda d: squares(jnp.block([[D(d), d[:N, None]], [d[None, :N], jnp.zeros((1, 1))]]) @ bb[: N + 1]),
    ),
    "block_diag": (
        lambda d: squares(sp.block_diag([A(d), P, A(d)], format="csr") @ np.r_[bb, 1.0, 2.0]),
        lambda d: squares(block_diag(D(d), P, D(d)) @ np.r_[bb, 1.0, 2.0]),
    ),
    "kron": (
        lambda d: squares(sp.kron(A(d), P) @ bb, sp.kron(sp.eye_array(2), A(d)) @ bb),
        lambda d: squares(jnp.kron(D(d), P) @ bb, jnp.kron(jnp.eye(2), D(d)) @ bb),
    ),
    "slices": (
        lambda d: squares(A(d)[3:20][:, [1, 5, 7]] @ bb[:3], A(d)[[2, 1, 2]] @ b) + A(d)[2, 2] ** 2,
        lambda d: squares(D(d)[3:20][:, np.array([1, 5, 7])] @ bb[:3], D(d)[np.array([2, 1, 2])] @ b) + D(d)[2, 2] ** 2,
    ),
    "stacks and triangles": (
        lambda d: squares(sp.vstack([A(d), S]) @ b, sp.hstack([A(d), A(d)]).tocsr() @ bb, sp.tril(A(d)) @ b),
        lambda d: squares(jnp.vstack([D(d), S.toarray()]) @ b, jnp.hstack([D(d), D(d)]) @ bb, jnp.tril(D(d)) @ b),
    ),
    "sums of entries": (
        lambda d: squares(A(d).sum(axis=0), A(d).mean(axis=1)) + A(d).sum() ** 2 + A(d).trace() + sl.norm(A(d)),
        lambda d: squares(D(d).sum(0), D(d).mean(1)) + D(d).sum() ** 2 + jnp.trace(D(d)) + jnp.linalg.norm(D(d)),
    ),
    "spsolve": (lambda d: squares(sl.spsolve(A(d), b)), lambda d: squares(solve(D(d), b))),
    "spsolve of columns": (lambda d: squares(sl.spsolve(A(d), X * d[0])), lambda d: squares(solve(D(d), X * d[0]))),
    "spsolve, A with numbers": (lambda d: squares(sl.spsolve(S, d[:N])), lambda d: squares(solve(S.toarray(), d[:N]))),
    "spsolve of bands": (lambda d: squares(sl.spsolve(tridiagonal(d), b)), lambda d: squares(solve(T(d), b))),
    "spsolve of blocks": (lambda d: squares(sl.spsolve(blocks(d), bb)), lambda d: squares(solve(BLOCKS(d), bb))),
    "splu": (
        lambda d: squares(sl.splu(A(d).tocsc()).solve(b, trans="T"), sl.splu(A(d).tocsc()).solve(X)),
        lambda d: squares(solve(D(d).T, b), solve(D(d), X)),
    ),
    "factorized": (lambda d: squares(sl.factorized(A(d).tocsc())(d[:N])), lambda d: squares(solve(D(d), d[:N]))),
    "gmres": (lambda d: squares(sl.gmres(A(d), b, rtol=1e-11)[0]), lambda d: squares(solve(D(d), b))),
    "cg": (
        lambda d: squares(sl.cg(A(d).T @ A(d), b, rtol=1e-11, maxiter=999)[0]),
        lambda d: squares(solve(D(d).T @ D(d), b)),
    ),
}


def T(d: Any) -> Any:
    return jnp.diag(d[:N] + 9) + jnp.diag(d[1:N], 1) + jnp.eye(N, k=-1)


def BLOCKS(d: Any) -> Any:
    return jnp.block([[D(d), ZERO], [jnp.eye(N), D(d).T]])


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_dense_matrices(name: str) -> None:
    ours, theirs = CASES[name]
    np.testing.assert_allclose(rz.value_and_grad(ours)(DATA)[0], theirs(DATA), rtol=1e-8)
    np.testing.assert_allclose(rz.grad(ours)(DATA), jax.grad(theirs)(DATA), rtol=1e-7, atol=1e-8)


SOME = ["products", "coo with duplicates", "spsolve of blocks"]


@pytest.mark.parametrize("name", SOME)
def test_second_order_and_mapped(name: str) -> None:
    ours, theirs = CASES[name]
    v = np.cos(np.arange(len(DATA)))
    second = jax.jvp(jax.grad(theirs), (DATA,), (v,))[1]
    np.testing.assert_allclose(rz.hvp(ours)(DATA, v), second, rtol=1e-7, atol=1e-7 * norm(second))
    many = np.stack([DATA, DATA * 1.1])
    wanted = jax.vmap(jax.grad(theirs))(many)
    np.testing.assert_allclose(rz.vmap(rz.grad(ours))(many), wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
@pytest.mark.parametrize("name", ["products", "spsolve"])
def test_compiled(name: str, backend: str) -> None:
    ours, theirs = CASES[name]
    found = rz.compile(rz.grad(ours), backend=backend)(DATA)
    np.testing.assert_allclose(found, jax.grad(theirs)(DATA), rtol=1e-7, atol=1e-8)


def test_questions_are_answered_as_scipy_would() -> None:
    heard: list[Any] = []

    def f(d: Any) -> Any:
        M = A(d)
        heard.append([sp.issparse(M), isinstance(M, sp.csr_array), isinstance(M, sp.sparray), sp.isspmatrix(M)])
        heard.append([isinstance(M, sp.csc_array), isinstance(M.T, sp.csc_array)])
        heard.append([sp.issparse(d), sp.issparse(S), isinstance(S, sp.csr_array)])
        heard.append([M.format, M.nnz, M.shape, M.ndim, M.dtype, sp.csr_matrix(M).sum(axis=0).shape])
        heard.append([np.array_equal(M.indices, S.indices), np.array_equal(M.indptr, S.indptr)])
        return np.sum(M.data**2) + np.sum(M.tocsc().data ** 3)

    f(DATA)
    plain, heard = heard, []
    np.testing.assert_allclose(rz.grad(f)(DATA), 2 * DATA + 3 * DATA**2)
    assert heard and all([heard[i : i + 5] == plain for i in range(0, len(heard), 5)])


def test_the_map_of_a_matrix_has_structure() -> None:
    seen: list[str] = []

    def f(d: Any) -> Any:
        L = tridiagonal(d).linear_map
        seen.append(str(L.structure))
        return np.sum(L.T.solve(b))

    np.testing.assert_allclose(rz.grad(f)(DATA), jax.grad(lambda d: jnp.sum(solve(T(d).T, b)))(DATA), atol=1e-10)
    assert seen and "dense" not in seen[0]


def test_what_is_not_known_is_refused_with_a_sentence() -> None:
    with pytest.raises(rz.errors.TraceError, match="not known to riesz"):
        rz.grad(lambda d: A(d).maximum(S).sum())(DATA)
    with pytest.raises(rz.errors.TraceError, match="positions of a sparse matrix are fixed"):
        rz.grad(lambda d: sp.coo_array((d[:3], (np.argsort(d)[:3], np.arange(3))), shape=(3, 3)).sum())(np.ones(3))


def test_shapes_that_do_not_fit() -> None:
    for wrong in (lambda d: A(d) @ np.ones(3), lambda d: A(d) + sp.eye_array(3), lambda d: A(d) @ sp.eye_array(3)):
        with pytest.raises(ValueError):
            rz.grad(lambda d, wrong=wrong: wrong(d).sum())(DATA)


def test_single_precision() -> None:
    g = rz.grad(lambda d: squares(sl.spsolve(A(d), b.astype(np.float32))))(DATA.astype(np.float32))
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, jax.grad(CASES["spsolve"][1])(DATA), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    "made",
    [
        lambda d: sp.coo_matrix((d, (AT.row, AT.col)), shape=(N, N)),
        lambda d: sp.dia_array((d[: 2 * N].reshape(2, N), [0, 1]), shape=(N, N)),
        lambda d: sp.dia_matrix((d[: 2 * N].reshape(2, N), [-1, 2]), shape=(N, N)),
    ],
)
def test_other_makers_give_the_matrix_of_scipy(made: Any, kind: Any) -> None:
    d = DATA.astype(kind)
    found = rz.function(lambda d: made(d).toarray())(d)
    np.testing.assert_array_equal(found, made(d).toarray())
    assert found.dtype == kind
    v = np.arange(1.0, N + 1).astype(kind)
    g = rz.grad(lambda d: np.sum(made(d) @ v))(d)
    ones = [made(e).toarray().astype(float) @ v for e in np.eye(len(d))[: 2 * N]]
    assert g.dtype == kind
    np.testing.assert_allclose(g[: 2 * N], np.sum(ones, 1), rtol=1e-5)


@pytest.mark.parametrize("method", [sl.bicgstab, sl.minres])
def test_other_iterations_solve_and_their_gradients_too(method: Any) -> None:
    def f(d: Any) -> Any:
        return np.sum(method(sp.diags([d, 0.5, 0.5], [0, 1, -1], shape=(N, N), format="csr"), b, rtol=1e-12)[0])

    d = np.linspace(3.0, 5.0, N)
    dense = lambda d: jnp.sum(solve(jnp.diag(d) + 0.5 * (jnp.eye(N, k=1) + jnp.eye(N, k=-1)), b))  # noqa: E731
    np.testing.assert_allclose(rz.grad(f)(d), jax.grad(dense)(d), rtol=1e-8)


def test_an_iteration_that_did_not_get_there_is_an_error() -> None:
    with pytest.raises(rz.errors.SolveError, match="not there"):
        rz.grad(lambda d: sl.cg(A(d).T @ A(d), b, rtol=1e-12, maxiter=2)[0].sum())(DATA)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_symmetric_bands(lower: bool, columns: tuple[int, ...]) -> None:
    ab = rng.uniform(0.1, 0.5, (3, 9))
    ab[0 if lower else 2] += 4
    right = rng.normal(size=(9, *columns))

    def theirs(ab: Any, right: Any) -> Any:
        half = sum([jnp.diag(ab[k if lower else 2 - k][slice(0, 9 - k) if lower else slice(k, 9)], k) for k in (1, 2)])
        return solve(jnp.diag(ab[0 if lower else 2]) + half + half.T, right)

    f = lambda ab, right: squares(scipy.linalg.solveh_banded(ab, right, lower=lower))  # noqa: E731
    g = lambda ab, right: squares(theirs(ab, right))  # noqa: E731
    np.testing.assert_allclose(f(ab, right), g(ab, right), rtol=1e-12)
    for mine, wanted in zip(rz.grad(f, (0, 1))(ab, right), jax.grad(g, (0, 1))(ab, right), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-10, atol=1e-13)
    both = lambda t: f(ab * t, right)  # noqa: E731
    np.testing.assert_allclose(rz.grad(rz.grad(both))(1.1), jax.grad(jax.grad(lambda t: g(ab * t, right)))(1.1))


def test_circulant_systems() -> None:
    c = rng.normal(size=9) + 8 * np.eye(9)[0]
    right = rng.normal(size=(9, 2))
    index = (np.arange(9)[:, None] - np.arange(9)) % 9
    f = lambda c, right: squares(scipy.linalg.solve_circulant(c, right))  # noqa: E731
    g = lambda c, right: squares(solve(c[index], right))  # noqa: E731
    for mine, wanted in zip(rz.grad(f, (0, 1))(c, right), jax.grad(g, (0, 1))(c, right), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.long
def test_a_diffusion_problem_assembled_from_sparse_factors() -> None:
    m = 120
    step = sp.diags_array([np.ones(m), -np.ones(m)], offsets=[0, -1], shape=(m, m))
    G = sp.vstack([sp.kron(step, sp.eye_array(m)), sp.kron(sp.eye_array(m), step)]).tocsr()

    def f(k: Any) -> Any:
        K = (G.T @ sp.diags_array(k) @ G + 0.1 * sp.eye_array(m * m)).tocsc()
        return np.sum(sl.spsolve(K, np.ones(m * m)) ** 2) / m**2

    k = 1 + np.random.default_rng(0).uniform(size=2 * m * m)
    g, d = rz.grad(f)(k), np.zeros_like(k)
    d[m * m // 2] = 1e-3
    np.testing.assert_allclose((f(k + d) - f(k - d)) / 2e-3, g[m * m // 2], rtol=1e-4)


# -- matrices of numbers beside traced numbers, entries as they were given -----------------------------------

K = np.array([[4.0, 1.0, 0.0], [2.0, 5.0, 0.0], [1.0, 0.0, 6.0]])
W = np.array([1.0, -2.0, 0.5])
POINT = np.array([1.3, 0.7, 2.1, -0.4, 1.9, 0.6, 1.1])
ROWS, COLUMNS = np.array([2, 0, 1, 1, 0, 2, 2]), np.array([1, 0, 2, 2, 0, 0, 1])
INDICES, STARTS = np.array([2, 0, 1, 0, 2, 0, 2]), np.array([0, 2, 4, 7])  # unsorted, one position twice
KINDS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.dia_array, sp.bsr_array, sp.lil_array, sp.csr_matrix]
FACTORS, SOLVE = sl.splu(sp.csc_array(K)), sl.factorized(sp.csc_array(K))


def agrees(f: Any, x: Any = POINT) -> None:
    """Value, Jacobian and a second derivative against differences of the plain function."""
    d, h = np.cos(np.arange(x.size)), 1e-6
    g = lambda x: np.sum(np.sin(f(x)))  # noqa: E731
    np.testing.assert_allclose(rz.function(f)(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(rz.jvp(f, (x,), (d,))[1], (f(x + h * d) - f(x - h * d)) / (2 * h), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(rz.grad(g)(x) @ d, (g(x + h * d) - g(x - h * d)) / (2 * h), rtol=1e-6, atol=1e-7)
    slopes = [rz.grad(g)(x + s * h * d) for s in (1, -1)]
    np.testing.assert_allclose(rz.hvp(g)(x, d), (slopes[0] - slopes[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("numbers", [float, int, np.float32], ids=lambda k: k.__name__)
def test_a_matrix_of_numbers_scaled_by_traced_ones(kind: Any, numbers: Any) -> None:
    given = kind(sp.csr_array(K.astype(numbers)))
    agrees(lambda x: (given * x[0]).toarray() + (x[1] * given).toarray() + (given / x[2]).toarray())
    agrees(lambda x: np.asarray(given + np.outer(x[:3], x[:3])) - np.asarray(np.outer(x[:3], x[:3]) * 2 - given))
    agrees(lambda x: sl.spsolve((x[0] * given + x[1] * sp.eye_array(3)).tocsc(), W * x[2]))


def test_a_matrix_of_numbers_times_a_traced_array() -> None:
    given = sp.csr_array(K)
    agrees(lambda x: (given * x[:3]).toarray() + (np.outer(x[:3], x[1:4]) * given).toarray())
    agrees(lambda x: sp.csr_matrix(K) * x[:3] + x[:3] * sp.csr_matrix(K))
    with pytest.raises(rz.TraceError, match=r"csr_array\(A\) \* x"):
        rz.jacobian(lambda x: given.multiply(x[:3]).sum(axis=0))(POINT)
    for f in (lambda x: (x**given).sum(), lambda x: (x * (given * 1j)).sum()):
        with pytest.raises(rz.TraceError, match="sparse matrix"):
            rz.grad(f)(2.0)


def written(A: Any) -> Any:
    before, copied = sl.spsolve(A, W), A.copy()
    A.data[0] += 5.0
    copied.data[:3] *= 2.0
    return before + sl.spsolve(A, W) + copied @ W


def in_order(A: Any) -> Any:
    A.sum_duplicates()
    return A.data * A.indices


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix], ids=lambda k: k.__name__)
def test_entries_stay_as_they_are_given(kind: Any) -> None:
    def A(x: Any) -> Any:
        return kind((x.copy(), INDICES.copy(), STARTS.copy()), shape=(3, 3))  # SciPy sorts what it is given

    agrees(lambda x: A(x).data * np.arange(7) + A(x).T.data * A(x).indices)
    agrees(lambda x: (lambda a: a.asformat(a.format).data)(A(x)))
    agrees(lambda x: in_order(A(x)))
    agrees(lambda x: abs(A(x)).sum() + (A(x) ** 2).sum() + A(x**2).sqrt().sum() + sl.norm(A(x)))
    agrees(lambda x: (A(x) @ A(x).T + A(x) * x[0]).toarray())
    agrees(lambda x: written(A(x)))
    listed = lambda x: sp.coo_array((x, (ROWS, COLUMNS)), shape=(3, 3))  # noqa: E731
    agrees(lambda x: sl.spsolve((listed(x) + 9 * sp.eye_array(3)).tocsc(), W) + listed(x) @ W)


def test_diagonals_by_a_list_of_two_offsets() -> None:
    rows = lambda x: np.stack([x[:3], 2 * x[3:6]])  # noqa: E731
    agrees(lambda x: sp.dia_array((rows(x), [0, -1]), shape=(3, 3)).toarray())
    agrees(lambda x: sp.spdiags(rows(x), [0, 1], 3, 3).toarray())


def test_writing_into_sparse_matrices_is_refused_with_the_way_out() -> None:
    def fill(x: Any, A: Any) -> Any:
        A[0, 1] = x[0]
        return A.sum()

    for make in (lambda x: sp.lil_array((3, 3)), lambda x: sp.csr_array((x, INDICES, STARTS), shape=(3, 3))):
        with pytest.raises(rz.TraceError, match="coo_array"):
            rz.grad(lambda x, make=make: fill(x, make(x)), 0)(POINT)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_factors_of_numbers_solve_for_traced_arrays(trans: str) -> None:
    agrees(lambda x: FACTORS.solve(x[:3], trans) * FACTORS.nnz)
    agrees(lambda x: FACTORS.solve(np.outer(x[:3] ** 2, x[:5]), trans=trans))
    agrees(lambda x: sl.splu(sp.csc_array(K)).solve(np.sin(FACTORS.solve(x[:3])), trans))


def test_functions_that_solve_by_factors_of_numbers() -> None:
    agrees(lambda x: SOLVE(x[:3]) + sl.factorized(sp.csc_array(K))(x[1:4] ** 2))
    X = np.stack([POINT, 2 * POINT])
    np.testing.assert_allclose(rz.vmap(lambda x: SOLVE(x[:3]))(X), np.linalg.solve(K, X[:, :3].T).T)
    for backend in ("numpy", "numba", "jax"):
        compiled = rz.compile(lambda x: FACTORS.solve(x[:3]), backend=backend)
        np.testing.assert_allclose(compiled(POINT), np.linalg.solve(K, POINT[:3]))
    imaginary = sl.splu(sp.csc_array(K * 1j))
    with pytest.raises(rz.TraceError, match="complex"):
        rz.jacobian(lambda x: imaginary.solve(x[:3]).real)(POINT)
