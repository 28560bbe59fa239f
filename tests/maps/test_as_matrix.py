"""Linear maps as matrices: every operation against dense NumPy, for every kind of structure, and where a dense matrix would not fit."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import riesz as rz
from riesz.errors import IndexSetError, LinearityError, SolveError, SpaceError, VectorError

rng = np.random.default_rng(5)
R8 = rng.normal(size=(8, 8))
SPD = R8 @ R8.T + 8 * np.eye(8)
S4, S6 = SPD[:4, :4].copy(), SPD[:6, :6].copy()
T6 = rng.normal(size=(6, 6))
T4 = rng.normal(size=(4, 4))
U = rng.normal(size=(24, 2))
BLOCKS = np.stack([SPD[i : i + 3, i : i + 3] + i * np.eye(3) for i in range(5)])
GRID = sp.csr_array(sp.random_array((40, 40), density=0.06, rng=rng) + sp.eye_array(40) * 3)
GRID = sp.csr_array(GRID @ GRID.T)


def code(f, shape, facts=()):
    return rz.jacobian(f)(np.zeros(shape))


def tridiagonal(x):
    return 4.0 * x - np.concatenate([x[1:], [0.0]]) - np.concatenate([[0.0], x[:-1]])


SYMMETRIC = {
    "identity": code(lambda x: 1.0 * x, 5),
    "diagonal": code(lambda x: x * np.array([3.0, 1.0, 2.0, 7.0]), 4),
    "tridiagonal": code(tridiagonal, 30),
    "pentadiagonal": code(lambda x: tridiagonal(tridiagonal(x)), 30),
    "blocks": code(lambda x: np.einsum("nij,nj->ni", BLOCKS, x), (5, 3)),
    "blocks across": code(lambda x: np.einsum("nij,jn->in", BLOCKS, x), (3, 5)),
    "Kronecker": code(lambda x: S6 @ x @ S4, (6, 4)),
    "Kronecker with the identity": code(lambda x: S6 @ x, (6, 4)),
    "Kronecker sum": code(lambda x: S6 @ x + x @ S4, (6, 4)),
    "rank plus a multiple": code(lambda x: 2.0 * x + U @ (U.T @ x), 24),
    "rank plus a diagonal": code(lambda x: np.arange(1.0, 25.0) * x + U @ (U.T @ x), 24),
    "sparse": code(lambda x: GRID @ x, 40),
    "dense": code(lambda x: SPD @ x, 8),
    "tree": rz.jacobian(lambda p: {"a": tridiagonal(p["a"]), "b": S6 @ p["b"]})({"a": np.zeros(9), "b": np.zeros(6)}),
    "scalar": rz.jacobian(lambda x: 3.0 * x)(1.0),
    "Hessian": rz.hessian(lambda x: np.sum(np.cosh(x)) + np.sum(x) ** 2)(rng.normal(size=7)),
    "sum with matrices": code(tridiagonal, 30) + 0.5 * rz.id + 2 * np.eye(30) + sp.eye_array(30),
}
SQUARE = {
    "permutation": code(lambda x: x[np.array([2, 0, 3, 1, 4])], 5),
    "odd permutation": code(lambda x: x[np.array([1, 0, 2, 3])], 4),
    "scaled permutation": code(lambda x: x[::-1] * np.array([1.0, -2.0, 3.0]), 3),
    "transposition": code(lambda x: x.T, (3, 4)),
    "negative diagonal": code(lambda x: x * np.array([3.0, -1.0, 2.0]), 3),
    "bidiagonal": code(lambda x: 2.0 * x + np.concatenate([[0.0], x[:-1]]), 20),
    "band that exchanges rows": code(lambda x: 1e-9 * x + 2 * np.concatenate([x[1:], x[:1] * 0]) + tridiagonal(x), 20),
    "wide band": code(lambda x: x + sum(np.concatenate([x[k:], np.zeros(k)]) for k in (1, 2, 3)) - tridiagonal(x), 20),
    "Kronecker of any": code(lambda x: T6 @ x @ T4, (6, 4)),
    "Kronecker turned": code(lambda x: (T6 @ x @ T4).T, (6, 4)),
    "Sylvester": code(lambda x: T6 @ x + x @ T4, (6, 4)),
    "rank plus": code(lambda x: x * np.linspace(-1, 2, 24) + U @ (T4[:2, :2] @ (U.T @ x)), 24),
    "running sums": code(np.cumsum, 9),
    "a chain": code(lambda x: np.cumsum(2.0 * x)[::-1], 9),
    "sparse of any": code(lambda x: sp.csr_array(GRID + sp.diags_array(np.ones(39), offsets=1)) @ x, 40),
    "dense of any": code(lambda x: T6 @ x, 6),
    "blocks of any": code(lambda x: np.einsum("nij,nj->ni", BLOCKS * np.array([1.0, -2.0, 0.3]), x), (5, 3)),
    "tree of any": rz.jacobian(lambda p: (p[0] * 2, T6 @ p[1]))((1.0, np.zeros(6))),
    "tall and wide": rz.jacobian(lambda p: (p[0][:1], np.concatenate([p[0][1:], p[1]])))((np.zeros(3), np.zeros(2))),
    **SYMMETRIC,
}
ANY = {
    "tall": code(lambda x: T6[:, :4] @ x, 4),
    "wide": code(lambda x: T6[:4] @ x, 6),
    "differences": code(lambda x: x[1:] - x[:-1], 9),
    "gather": code(lambda x: x[np.array([0, 3, 3, 1, 0])], 6),
    "low rank": code(lambda x: U @ (U.T @ x), 24),
    "zero": code(lambda x: 0.0 * x, 4),
    "singular diagonal": code(lambda x: x * np.array([3.0, 0.0, 2.0]), 3),
    "singular blocks": code(lambda x: np.einsum("nij,nj->ni", np.ones((5, 3, 3)), x), (5, 3)),
    "singular Kronecker": code(lambda x: np.ones((6, 6)) @ x @ T4, (6, 4)),
    "singular band": code(lambda x: tridiagonal(x) - 2 * x - np.eye(20)[0] * x[0] - np.eye(20)[-1] * x[-1], 20),
    "singular tree": rz.jacobian(lambda p: (p[0] * 2, np.ones((6, 6)) @ p[1]))((1.0, np.zeros(6))),
    **SQUARE,
}


def each(kinds):
    return pytest.mark.parametrize("L", kinds.values(), ids=kinds.keys())


def close(a, b, tolerance=1e-9):
    assert np.shape(a) == np.shape(b)
    assert np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(b), initial=0.0))))


# -- arrays ---------------------------------------------------------------------------------------------------


@each(ANY)
def test_arrays(L):
    A = L.to_dense()
    close(np.asarray(L), A)
    close(np.array(L), A)
    assert np.asarray(L, np.float32).dtype == np.float32
    assert (L.ndim, L.size, len(L), np.shape(L), np.ndim(L), np.size(L)) == (2, A.size, len(A), A.shape, 2, A.size)
    close(np.stack(list(L)), A)
    close(L.toarray(), A)
    close(np.sum(L, axis=0), A.sum(0))
    close(np.vstack([L, L]), np.vstack([A, A]))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(L, copy=False)


@each(ANY)
def test_products(L):
    A, (m, n) = L.to_dense(), L.shape
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(3, m))
    close(L @ X, A @ X)
    close(Y @ L, Y @ A)
    close(L.dot(X), A @ X)
    close(np.dot(L, X), A @ X)
    if n > 1:
        close(np.asarray(L.codomain.flatten(L @ L.domain.unflatten(X[:, 0]))), A @ X[:, 0])
    close(np.ravel(L.matvec(X[:, 0])), A @ X[:, 0])
    S, Q = sp.random_array((n, 5), density=0.5, rng=rng), sp.random_array((5, m), density=0.5, rng=rng)
    for M in (S, S.tocsr(), sp.csc_matrix(S)):
        close((L @ M).to_dense(), A @ M.toarray())
    for M in (Q, Q.tocsr(), sp.csc_matrix(Q)):
        assert isinstance(M @ L, rz.LinearMap)
        close((M @ L).to_dense(), M.toarray() @ A)
    assert (L @ np.zeros((n, 0))).shape == (m, 0)
    with pytest.raises(VectorError, match=r"L @ X: X is an element of .* got shape"):
        L @ np.ones((n + 1, 2))
    with pytest.raises(VectorError, match=r"X @ L: X is an element of .* got shape"):
        np.ones((2, m + 1)) @ L
    with pytest.raises(VectorError, match="got shape"):
        L @ np.ones((2, n, 3))


def test_elements_of_matrix_spaces_are_told_from_arrays_of_vectors():
    L = SYMMETRIC["Kronecker"]
    A, X = L.to_dense(), rng.normal(size=(6, 4))
    close(L @ X, (A @ X.reshape(-1)).reshape(6, 4))  # an element
    close(L @ X.reshape(-1), A @ X.reshape(-1))  # its coordinates
    close(L @ X.reshape(-1)[:, None], A @ X.reshape(-1)[:, None])  # one column
    close(X @ L, (X.reshape(-1) @ A).reshape(6, 4))
    column = code(lambda x: 2.0 * x, (3, 1))
    assert (column @ np.ones((3, 1))).shape == (3, 1)


def test_pandas():
    pd = pytest.importorskip("pandas")
    L = SQUARE["band that exchanges rows"]
    A, X = L.to_dense(), rng.normal(size=(20, 3))
    s, D = pd.Series(X[:, 0]), pd.DataFrame(X)
    close(np.asarray(L @ s), A @ X[:, 0])
    close(np.asarray(s @ L), X[:, 0] @ A)
    close(np.asarray(L @ D), A @ X)
    close(np.asarray(D.T @ L), X.T @ A)
    close((L + pd.DataFrame(A)).to_dense(), 2 * A)
    close((pd.DataFrame(A) - L).to_dense(), 0 * A)
    with pytest.raises(LinearityError, match=r"np\.diag"):
        s + L


@each(SQUARE)
def test_sums_with_matrices(L):
    A, n = L.to_dense(), len(L)
    D = rng.normal(size=(n, n))
    S = sp.random_array((n, n), density=0.3, rng=rng)
    eye = np.eye(n)
    if L.domain is L.codomain:
        close((L + 0.3 * rz.id).to_dense(), A + 0.3 * eye)
        close((L - 0.3 * rz.id).to_dense(), A - 0.3 * eye)
        close((0.3 * rz.id + L).to_dense(), A + 0.3 * eye)
    for M in (D, S, S.tocsr(), sp.csc_matrix(S), 2 * eye, sp.eye_array(n), np.zeros((n, n)), np.ones((n, n), int)):
        full = M.toarray() if sp.issparse(M) else M
        close((L + M).to_dense(), A + full)
        close((L - M).to_dense(), A - full)
        close((M + L).to_dense(), A + full)
        close((M - L).to_dense(), full - A)
        close((L + M).T.to_dense(), (A + full).T)


def test_sums_keep_structure_and_facts():
    L = SYMMETRIC["tridiagonal"]
    for M in (0.1 * rz.id, np.eye(30), np.diag(np.arange(30.0)), sp.eye_array(30), 2 * L.to_dense(), 2 * L.to_sparse()):
        assert str((L + M).structure) == "tridiagonal"
        assert "gttrf" in (L - 7 * np.eye(30) + M).solver().name or "Cholesky" in (L + M).solver().name
    H = SYMMETRIC["Hessian"]
    assert (H + 0.1 * rz.id).facts >= {"symmetric"} and (H + np.eye(7)).facts >= {"symmetric"}
    assert "symmetric" not in (H + T6.repeat(2, 0).repeat(2, 1)[:7, :7]).facts
    narrow = rz.jacobian(lambda x: x**2)(np.ones(3, np.float32))
    assert (narrow + 0.1 * rz.id).dtype == np.float32 and (narrow + np.eye(3, dtype=np.float32)).dtype == np.float32
    assert (narrow + np.eye(3)).dtype == float


def test_what_does_not_add_is_refused():
    L = SYMMETRIC["dense"]
    for other, error, words in (
        (np.ones(8), LinearityError, "np.diag"),
        (3.0, LinearityError, "k \\* rz.id"),
        (np.ones((2, 2)), SpaceError, r"\(8, 8\) is due; got shape \(2, 2\)"),
        (1j * np.eye(8), LinearityError, "complex"),
        ("a", LinearityError, "real"),
    ):
        with pytest.raises(error, match=words):
            L + other
        with pytest.raises(error, match=words):
            L - other


# -- rows, columns, blocks --------------------------------------------------------------------------------------


@each(ANY)
def test_rows_and_columns(L):
    A, (m, n) = L.to_dense(), L.shape
    close(L[m - 1, 0], A[m - 1, 0])
    close(L[-1, -1], A[-1, -1])
    close(L[0], A[0])
    close(L[-1, :], A[-1])
    close(L[:, n // 2], A[:, n // 2])
    close(L[0, ::2], A[0, ::2])
    close(L[np.arange(m)[::-1], 0], A[::-1, 0])
    mask = np.arange(m) % 2 == 0
    rows, columns = [0, m - 1], np.array([n - 1, 0, 0])
    close(L[mask].to_dense(), A[mask])
    close(L[rows, columns].to_dense(), A[np.ix_(rows, columns)])
    close(L[np.ix_(rows, columns)].to_dense(), A[np.ix_(rows, columns)])
    close(L[1:, : n - 1].to_dense(), A[1:, : n - 1])
    close(L[...].to_dense(), A)
    close(L[:, :].to_dense(), A)
    for bad in (m, -m - 1):
        with pytest.raises(IndexSetError, match="numbered 0 to"):
            L[bad]
    with pytest.raises(SpaceError, match="two indices"):
        L[0, 0, 0]
    with pytest.raises(SpaceError):
        L[[m]]


def test_blocks_by_name():
    def f(p):
        return {"u": p["a"] * p["b"], "v": (p["b"] ** 2, np.sum(p["a"]))}

    p = {"a": rng.normal(size=3), "b": 2.0, "c": (np.ones((2, 2)), np.ones(2))}
    J = rz.jacobian(f)(p)
    A = J.to_dense()
    close(J["u", "a"].to_dense(), A[:3, :3])
    assert str(J["u", "a"].structure) == "diagonal"
    close(J["u"].to_dense(), A[:3])
    close(J[:, "b"].to_dense(), A[:, 3:4])
    close(J["v", "b"].to_dense(), A[3:, 3:4])
    close(J[("v", 1), "a"].to_dense(), A[4:5, :3])
    close(J[("v", 0), ("c", 1)].to_dense(), A[3:4, 8:10])
    close(J["u", 2:5].to_dense(), A[:3, 2:5])
    close(J["u", ("c", 0)].T.to_dense(), A[:3, 4:8].T)
    assert J["u", "a"].domain is rz.R ** rz.seg(3) and J["v"].codomain is J.codomain.summands[1]
    K = rz.jacobian(lambda x, y: {"s": x * y}, argnums=(0, 1))(np.ones(2), np.arange(2.0))
    close(K["s", 0].to_dense(), np.diag(np.arange(2.0)))
    close(K["s", 1].to_dense(), np.eye(2))
    with pytest.raises(SpaceError, match="no component 'w'"):
        J["w"]
    with pytest.raises(SpaceError, match="no tuple, dict or dataclass"):
        J["u", ("a", "x")]
    traced = rz.grad(
        lambda t: np.sum(rz.jacobian(f)({**p, "a": t})["v", "b"](3.0)[0] * rz.jacobian(f)({**p, "a": t})["u", "b"](1.0))
    )
    close(traced(p["a"]), np.full(3, 2 * 2.0 * 3.0))


# -- inverse, determinant, least squares ------------------------------------------------------------------------


@each(SQUARE)
def test_determinants_and_inverses(L):
    A, n = L.to_dense(), len(L)
    sign, size = L.slogdet()
    want = np.linalg.slogdet(A)
    assert sign == want.sign
    close(size, want.logabsdet)
    close(L.det(), np.linalg.det(A))
    if sign > 0:
        close(L.logdet(), want.logabsdet)
    else:
        with pytest.raises(SolveError, match="slogdet"):
            L.logdet()
    inverse, dense = L.inv(), np.linalg.inv(A)
    X = rng.normal(size=(n, 2))
    close(inverse @ X, dense @ X)
    close(inverse.to_dense(), dense)
    close(inverse.T.to_dense(), dense.T)
    close(X.T @ inverse, X.T @ dense)
    assert inverse.inv() is L and L.inv() is inverse
    assert inverse.domain is L.codomain and inverse.codomain is L.domain
    close(inverse.slogdet(), (want.sign, -want.logabsdet))
    b = L.codomain.random(3)
    close(L.codomain.flatten(inverse.solve(L.domain.random(3))), A @ L.domain.flatten(L.domain.random(3)))
    close(L.domain.flatten(L.lstsq(b)), dense @ L.codomain.flatten(b))
    close(L.pinv().to_dense(), dense)
    close((inverse @ L).to_dense(), np.eye(n))
    close(pickle.loads(pickle.dumps(inverse)).to_dense(), dense)


SINGULAR = {k: L for k, L in ANY.items() if L.shape[0] == L.shape[1] and k not in SQUARE}


@each(SINGULAR)
def test_singular_maps(L):
    assert np.linalg.matrix_rank(L.to_dense()) < len(L)
    with pytest.raises(SolveError):
        L.inv()
    sign, size = L.slogdet()
    assert (sign, size) == (0.0, -np.inf) or size < -25  # a pivot that is rounding


@each(ANY)
def test_least_squares_and_pseudoinverses(L):
    A, b = L.to_dense(), L.codomain.random(1)
    want = np.linalg.pinv(A)
    close(L.pinv().to_dense(), want, 1e-7)
    close(L.domain.flatten(L.lstsq(b)), want @ L.codomain.flatten(b), 1e-7)
    if len(L.codomain.leaves) == 1 and len(L.codomain.leaves[0].shape) == 1 and len(L.domain.leaves) == 1:
        B = rng.normal(size=(L.shape[0], 2))
        close(np.asarray(L.lstsq(B)).reshape(L.shape[1], 2), want @ B, 1e-7)


def test_determinants_of_what_is_nearly_singular_are_finite():
    hilbert = scipy.linalg.hilbert(14)
    L = code(lambda x: hilbert @ x, 14)
    with pytest.raises(SolveError):
        L.solve(np.ones(14))
    assert abs(L.slogdet().logabsdet / np.linalg.slogdet(hilbert)[1] - 1) < 0.05
    close(code(lambda x: x * np.logspace(0, -300, 50), 50).logdet(), np.log(np.logspace(0, -300, 50)).sum())
    with pytest.raises(SolveError, match="nan"):
        code(lambda x: x * np.array([1.0, np.nan]), 2).slogdet()
    assert code(lambda x: x, 0).slogdet() == (1.0, 0.0)
    assert code(lambda x: x, 0).det() == 1.0


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "logdet", "eigh", "eigvalsh", "cholesky", "sqrt"])
def test_squares_are_needed(name):
    with pytest.raises(SpaceError, match="as many rows as columns"):
        getattr(ANY["tall"], name)()


# -- spectra ----------------------------------------------------------------------------------------------------


def semidefinite(k):
    return k in ("zero", "singular diagonal", "singular blocks", "low rank", "singular band", "singular tree")


@each({k: L for k, L in ANY.items() if k in SYMMETRIC or semidefinite(k)})
def test_eigenvalues(L):
    A, n = L.to_dense(), len(L)
    want = np.linalg.eigvalsh(A)
    close(L.eigvalsh(), want)
    w, V = L.eigh()
    close(w, want)
    close(V @ np.diag(w) @ V.T, A)
    close((V.T @ V).to_dense(), np.eye(n))
    close(np.linalg.eigvalsh(L), want)
    k = max(n // 3, 1)
    for which, order in {"LM": -np.abs(want), "SM": np.abs(want), "LA": -want, "SA": want}.items():
        w, V = L.eigh(k, which)
        close(w, np.sort(want[np.argsort(order, kind="stable")[:k]]))
        assert V.shape == (n, k) and V.codomain is L.domain
        close(A @ V.to_dense(), V.to_dense() * w)
    root = L.sqrt()
    close((root @ root).to_dense(), A, 1e-7)
    close(root.T.to_dense(), root.to_dense(), 1e-7)


def test_which_and_k_are_checked():
    L = SYMMETRIC["dense"]
    for k in (0, 9, 1.5):
        with pytest.raises(SpaceError, match="k counts eigenvalues, 1 to 8"):
            L.eigh(k)
    with pytest.raises(SpaceError, match="LM, SM, LA, SA"):
        L.eigh(2, "BE")
    with pytest.raises(SpaceError, match="symmetric part"):
        SQUARE["dense of any"].eigh()
    skew = np.array([[0.0, 1.0], [-1.0, 0.0]])
    twice = code(lambda x: skew @ x @ skew, (2, 2))  # symmetric, though its factors are not
    close(twice.eigvalsh(), np.linalg.eigvalsh(twice.to_dense()))


@each(ANY)
def test_singular_values(L):
    A = L.to_dense()
    want = np.linalg.svd(A, compute_uv=False)
    U, s, Vt = L.svd()
    close(s, want)
    close(U @ np.diag(s) @ Vt, A)
    close((U.T @ U).to_dense(), np.eye(len(s)))
    close((Vt @ Vt.T).to_dense(), np.eye(len(s)))
    U, s, Vt = L.svd(2) if min(L.shape) > 1 else L.svd(1)
    close(s, want[: len(s)])
    close(U.T @ A, np.diag(s) @ Vt)
    close(L.norm(), np.linalg.norm(A))
    for ord in (1, 2, np.inf):
        close(L.norm(ord), np.linalg.norm(A, ord))
    if want[-1] > 1e-10 * want[0]:
        close(L.cond(), want[0] / want[-1])


@each(SYMMETRIC)
def test_cholesky(L):
    close(L.cholesky().to_dense(), np.linalg.cholesky(L.to_dense()))


def test_roots_of_what_is_not_positive_are_refused():
    for L in (
        code(lambda x: -x, 3),
        code(lambda x: tridiagonal(x) - 4 * x, 9),
        code(lambda x: -SPD @ x, 8),
        -1.0 * SYMMETRIC["blocks"],
        -1.0 * SYMMETRIC["sparse"],
    ):
        with pytest.raises(SolveError, match="not positive definite"):
            L.cholesky()
        with pytest.raises(SolveError, match="negative eigenvalues"):
            L.sqrt()


def test_structure_of_results():
    assert str(SYMMETRIC["tridiagonal"].cholesky().structure) == "bidiagonal"
    assert SYMMETRIC["diagonal"].sqrt().structure.kind == "diagonal"
    assert SYMMETRIC["blocks"].cholesky().structure.kind == "block-diagonal"
    assert SYMMETRIC["Kronecker"].cholesky().structure.kind == "Kronecker"


# -- float32, weights, NumPy, SciPy -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tridiagonal", "diagonal", "dense", "Kronecker", "blocks", "rank plus a diagonal"])
def test_narrow_types_stay(kind):
    wide = SYMMETRIC[kind]
    shape = wide.domain.leaves[0].shape
    S, B = SPD.astype(np.float32), BLOCKS.astype(np.float32)
    f = {
        "tridiagonal": lambda x: np.float32(4) * x * x + x * np.concatenate([x[1:], x[:1] * 0]),
        "diagonal": lambda x: x * x * x,
        "dense": lambda x: S @ x,
        "Kronecker": lambda x: S[:6, :6] @ x @ S[:4, :4],
        "blocks": lambda x: np.einsum("nij,nj->ni", B, x),
        "rank plus a diagonal": lambda x: np.float32(2) * x + U.astype(np.float32) @ (U.T.astype(np.float32) @ x),
    }[kind]
    L = rz.jacobian(f)(np.full(shape, 1.5, np.float32))
    A = L.to_dense()
    assert L.dtype == A.dtype == np.asarray(L).dtype == np.float32
    assert L.inv().dtype == np.float32 and L.inv().to_dense().dtype == np.float32
    close(L.slogdet().logabsdet, np.linalg.slogdet(A.astype(float))[1], 1e-4)
    G = L.gram()
    w, V = G.eigh()
    assert w.dtype == V.dtype == np.float32 and G.eigvalsh().dtype == np.float32
    close(w, np.linalg.eigvalsh(G.to_dense().astype(float)), 1e-3)
    assert L.svd()[1].dtype == np.float32 and G.cholesky().dtype == np.float32 and (L @ A).dtype == np.float32


def test_weighted_spaces_have_the_matrices_of_their_coordinates():
    V = (rz.R ** rz.seg(3)).weighted(np.array([1.0, 4.0, 9.0]))
    L = rz.jacobian(lambda x: x * x + np.sum(x), space=V)(np.array([1.0, 2.0, 3.0]))
    A = L.to_dense()
    assert L.domain is V and not np.allclose(L.H.to_dense(), A.T)
    close(np.asarray(L), A)
    close(L.inv().to_dense(), np.linalg.inv(A))
    close(L.inv().T.to_dense(), np.linalg.inv(A).T)
    close(L.logdet(), np.linalg.slogdet(A)[1])
    close((L.inv().H @ L.H).to_dense(), np.eye(3))
    close(L.svd()[1], np.linalg.svd(A)[1])
    close((L + 2 * rz.id).to_dense(), A + 2 * np.eye(3))
    close((L + np.eye(3)).H.to_dense(), np.diag([1, 1 / 4, 1 / 9]) @ (A + np.eye(3)).T)
    close(L[:2, 1].tolist(), A[:2, 1])


@each(SYMMETRIC)
def test_numpys_functions(L):
    A, n = L.to_dense(), len(L)
    la = np.linalg
    b, B = rng.normal(size=n), rng.normal(size=(n, 2))
    for f in (la.inv, la.det, la.norm, la.cond, la.pinv, la.cholesky, la.matrix_rank, la.eigvalsh, np.trace, np.diag):
        close(f(L), f(A), 1e-8)
    for f in (la.slogdet, la.eigh, la.svd, la.qr):
        close(f(L)[1] if f is not la.eigh else f(L)[0], f(A)[1] if f is not la.eigh else f(A)[0])
    close(la.norm(L, 1), la.norm(A, 1))
    close(la.norm(L, axis=0), la.norm(A, axis=0))
    close(la.solve(L, b), la.solve(A, b))
    close(la.solve(L, B), la.solve(A, B))
    close(la.lstsq(L, b)[0], la.solve(A, b))
    close(la.matrix_power(L, 2), A @ A)
    close(scipy.linalg.expm(np.asarray(L) / 100), scipy.linalg.expm(A / 100))
    close(scipy.linalg.solve(L, b), la.solve(A, b))


def test_scipys_iterations():
    L = SYMMETRIC["tridiagonal"]
    A, b = L.to_dense(), rng.normal(size=30)
    for solve in (sla.cg, sla.gmres, sla.minres, sla.bicgstab):
        x, info = solve(L, b, rtol=1e-12)
        assert info == 0
        close(x, np.linalg.solve(A, b), 1e-8)
    close(sla.lsmr(L, b, atol=1e-14, btol=1e-14)[0], np.linalg.solve(A, b), 1e-7)
    close(sla.lsqr(L, b, atol=1e-14, btol=1e-14)[0], np.linalg.solve(A, b), 1e-7)
    close(np.sort(sla.eigsh(L, 3)[0]), np.linalg.eigvalsh(A)[-3:])
    close(np.sort(sla.svds(L, 3)[1]), np.linalg.eigvalsh(A)[-3:])
    close(sla.aslinearoperator(L) @ b, A @ b)
    close(sla.cg(L, b, M=L.inv(), rtol=1e-12)[0], np.linalg.solve(A, b), 1e-8)
    w = sla.lobpcg(L, rng.normal(size=(30, 3)), largest=True, maxiter=200, tol=1e-10)[0]
    close(np.sort(w), np.linalg.eigvalsh(A)[-3:], 1e-6)


T, Y = np.linspace(0, 3, 40), 2.0 * np.exp(-1.3 * np.linspace(0, 3, 40)) + 0.5


def residual(p):
    return p[0] * np.exp(-p[1] * T) + p[2] - Y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "lm"},
        {"method": "dogbox"},
        {"tr_solver": "lsmr"},
        {"tr_solver": "exact"},
        {"x_scale": "jac"},
        {"loss": "soft_l1"},
        {"bounds": ([0, 0, 0], [5, 5, 5])},
    ],
    ids=str,
)
def test_scipys_least_squares(options):
    found = scipy.optimize.least_squares(
        residual, np.ones(3), jac=rz.jacobian(residual), xtol=1e-12, gtol=1e-12, **options
    )
    close(found.x, [2.0, 1.3, 0.5], 1e-6)
    x, _ = scipy.optimize.curve_fit(
        lambda t, a, b, c: a * np.exp(-b * t) + c,
        T,
        Y,
        np.ones(3),
        jac=lambda t, a, b, c: rz.jacobian(lambda p: p[0] * np.exp(-p[1] * t) + p[2])(np.array([a, b, c])),
    )
    close(x, [2.0, 1.3, 0.5], 1e-6)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr", "dogleg"])
def test_scipys_minimize(method):
    start = np.full(6, 1.2) if method != "dogleg" else np.full(6, 1.02)
    found = scipy.optimize.minimize(
        rosenbrock, start, jac=rz.grad(rosenbrock), hess=rz.hessian(rosenbrock), method=method
    )
    close(found.x, np.ones(6), 1e-4)


def test_scipys_constraints():
    constraint = scipy.optimize.NonlinearConstraint(
        lambda x: np.array([x @ x]),
        1.0,
        1.0,
        jac=rz.jacobian(lambda x: np.stack([x @ x])),
        hess=lambda x, v: 2 * v[0] * np.eye(6),
    )
    for method in ("trust-constr", "SLSQP"):
        given = {} if method == "SLSQP" else {"hess": rz.hessian(rosenbrock)}
        found = scipy.optimize.minimize(
            rosenbrock, np.full(6, 0.3), jac=rz.grad(rosenbrock), method=method, constraints=constraint, **given
        )
        assert abs(found.x @ found.x - 1) < 1e-6


def test_roots_by_scipy():
    def f(x):
        return x**3 + np.roll(x, 1) - 2.0

    for method in ("hybr", "lm"):
        found = scipy.optimize.root(f, np.full(4, 0.7), jac=rz.jacobian(f), method=method)
        close(found.x, np.ones(4), 1e-8)


def test_huge_maps_are_operators_to_scipy():
    n = 5000

    def f(x):
        return np.concatenate([x**3 - 1.0, x[1:] - x[:-1]])

    J = rz.jacobian(f)(np.full(n, 1.5))
    assert isinstance(J, sla.LinearOperator) and isinstance(J, rz.LinearMap) and type(J) is rz.LinearMap
    assert not isinstance(SYMMETRIC["dense"], sla.LinearOperator)
    found = scipy.optimize.least_squares(f, np.full(n, 1.5), jac=rz.jacobian(f), max_nfev=30)
    close(found.x, np.ones(n), 1e-5)
    found = scipy.optimize.minimize(
        rosenbrock,
        np.full(n, 1.05),
        jac=rz.grad(rosenbrock),
        hess=rz.hessian(rosenbrock),
        method="trust-ncg",
        options={"maxiter": 60},
    )
    assert found.fun < 1.0
    assert pickle.loads(pickle.dumps(J)).shape == J.shape


# -- inside traced functions --------------------------------------------------------------------------------------


def family(kind, n):
    """A map that depends on x, of n unknowns."""
    B = rng.normal(size=(n, 2)) / np.sqrt(n)
    m = max(n // 5, 1)
    K = S4 / 4
    return {
        "diagonal": lambda x: rz.jacobian(lambda y: np.exp(y) + y**3)(x),
        "tridiagonal": lambda x: rz.hessian(lambda y: np.sum(np.cosh(y)) + np.sum((y[1:] - y[:-1]) ** 2 * y[1:] ** 2))(
            x
        ),
        "unsymmetric band": lambda x: rz.jacobian(
            lambda y: (
                4.0 * y
                + np.sin(y)
                + np.concatenate([y[1:] * y[:-1], y[:1]]) * 0.3
                + np.concatenate([[0.0, 0.0], y[:-2] ** 2])
            )
        )(x),
        "blocks": lambda x: rz.jacobian(
            lambda y: (y.reshape(m, 5) * (1 + np.sum(y.reshape(m, 5) ** 2, 1))[:, None]).reshape(-1)
        )(x),
        "Kronecker": lambda x: rz.jacobian(lambda X: (np.diag(np.exp(x[:3])) + 0.1) @ X @ (K + x[0] ** 2 * np.eye(4)))(
            np.zeros((3, 4))
        ),
        "low rank": lambda x: rz.jacobian(lambda y: y * np.exp(x) + B @ (B.T @ y) * x[0])(x),
        "dense": lambda x: rz.jacobian(lambda y: np.tanh(T6[:5, :5] @ y[:5]) + 3 * y[:5] ** 3)(x[:5]),
        "plus a matrix": lambda x: rz.jacobian(lambda y: y**3)(x) + np.outer(x, x) + 2 * rz.id + x[0] * np.eye(n),
    }[kind]


KINDS = ["diagonal", "tridiagonal", "unsymmetric band", "blocks", "Kronecker", "low rank", "dense", "plus a matrix"]


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_determinants_in_traces(kind, n):
    F = family(kind, n)
    x = rng.uniform(0.5, 1.0, size=n)

    def dense(x):
        return np.linalg.slogdet(F(x).to_dense())[1]

    def f(x):
        return F(x).logdet()

    close(rz.function(f)(x), np.linalg.slogdet(F(x).to_dense())[1])
    close(f(x), dense(x))
    g = rz.grad(f)(x)
    close(g, rz.grad(dense)(x))
    v = rng.normal(size=n)
    h = 1e-6
    close(g @ v, (f(x + h * v) - f(x - h * v)) / (2 * h), 1e-5)
    if n == 10:
        close(rz.hessian(f)(x).to_dense(), rz.hessian(dense)(x).to_dense())
        close(rz.vmap(f)(np.stack([x, x + 0.1])), [f(x), f(x + 0.1)])
        close(rz.compile(rz.grad(f))(x), g)
    sign = rz.function(lambda x: F(x).slogdet()[0])(x)
    assert sign == np.linalg.slogdet(F(x).to_dense())[0]
    close(rz.grad(lambda x: F(x).det())(x) / F(x).det(), g)


@pytest.mark.parametrize("kind", KINDS)
def test_operations_in_traces(kind):
    F = family(kind, 10)
    x = rng.uniform(0.5, 1.0, size=10)
    m = len(F(x))
    b, B = rng.normal(size=m), rng.normal(size=(m, 3))
    S = sp.csr_array(sp.random_array((m, m), density=0.4, rng=rng))

    def sym(x):
        return 0.5 * (F(x) + F(x).T)

    operations = {
        "inv": (lambda x: F(x).inv() @ b.reshape(-1, 1), lambda A: np.linalg.solve(A, b.reshape(-1, 1))),
        "inv.T": (lambda x: F(x).inv().T @ B, lambda A: np.linalg.solve(A.T, B)),
        "lstsq": (lambda x: F(x).pinv() @ B, lambda A: np.linalg.solve(A, B)),
        "L @ X": (lambda x: F(x) @ B, lambda A: A @ B),
        "X @ L": (lambda x: B.T @ F(x), lambda A: B.T @ A),
        "L + matrix": (lambda x: (F(x) + S + np.eye(m)).to_dense(), lambda A: A + S.toarray() + np.eye(m)),
        "matrix - L": (lambda x: (S - F(x)).to_dense(), lambda A: S.toarray() - A),
        "S @ L": (lambda x: (S @ F(x)).to_dense(), lambda A: S.toarray() @ A),
        "L[i, j]": (lambda x: F(x)[1, 2] + F(x)[0, 0], lambda A: A[1, 2] + A[0, 0]),
        "L[rows]": (lambda x: F(x)[1:3, [0, 2]].to_dense(), lambda A: A[1:3][:, [0, 2]]),
        "eigvalsh": (lambda x: sym(x).eigvalsh(), lambda A: np.linalg.eigvalsh(0.5 * (A + A.T))),
        "eigh": (lambda x: sym(x).eigh()[0], lambda A: np.linalg.eigvalsh(0.5 * (A + A.T))),
        "svd": (lambda x: F(x).svd()[1], lambda A: np.linalg.svd(A)[1]),
        "norm": (lambda x: F(x).norm(), lambda A: np.linalg.norm(A)),
        "np.linalg.inv": (lambda x: np.linalg.inv(F(x)), lambda A: np.linalg.inv(A)),
        "np.linalg.solve": (lambda x: np.linalg.solve(F(x), b), lambda A: np.linalg.solve(A, b)),
        "np.linalg.slogdet": (lambda x: np.linalg.slogdet(F(x))[1], lambda A: np.linalg.slogdet(A)[1]),
        "cholesky": (lambda x: F(x).gram().cholesky().to_dense(), lambda A: np.linalg.cholesky(A.T @ A)),
        "sqrt": (lambda x: (F(x).gram().sqrt() @ F(x).gram().sqrt()).to_dense(), lambda A: A.T @ A),
    }
    v = rng.normal(size=10)
    for name, (op, plain) in operations.items():
        want = plain(F(x).to_dense())
        close(np.asarray(rz.function(op)(x)), want, 1e-7), name
        _, dy = rz.jvp(op, (x,), (v,))
        reference = rz.jvp(lambda x, plain=plain: plain(F(x).to_dense()), (x,), (v,))[1]
        if name not in ("svd", "sqrt"):
            close(np.asarray(dy), np.asarray(reference), 1e-6)
            w = rng.normal(size=np.shape(want))
            g = rz.grad(lambda x, op=op, w=w: np.sum(w * op(x)))(x)
            close(g @ v, np.sum(w * np.asarray(dy)), 1e-6)


def test_structured_determinants_in_traces_at_size():
    n = 20_000

    def f(p):
        return rz.hessian(lambda y: np.sum(np.cosh(y) * np.exp(p)) + np.sum((y[1:] - y[:-1]) ** 2))(
            np.linspace(0, 1, n)
        ).logdet()

    p = np.linspace(-1, 1, n)
    g = rz.grad(f)(p)
    H = rz.hessian(lambda y: np.sum(np.cosh(y) * np.exp(p)) + np.sum((y[1:] - y[:-1]) ** 2))(np.linspace(0, 1, n))
    close(f(p), H.logdet())
    for i in (0, n // 2, n - 1):
        unit = np.zeros(n)
        unit[i] = 1.0
        close(g[i], H.solve(unit)[i] * np.cosh(i / (n - 1)) * np.exp(p[i]))


# -- sizes where a dense matrix would not fit ---------------------------------------------------------------------


def test_a_million_by_a_million_in_bands():
    n = 10**6
    L = code(tridiagonal, n)
    sign, size = L.slogdet()
    q = 2 + np.sqrt(3.0)  # det Tₙ = (qⁿ⁺¹ − q⁻ⁿ⁻¹) / (q − 1/q)
    assert sign == 1 and abs(size - ((n + 1) * np.log(q) - np.log(q - 1 / q))) < 1e-6 * n * 1e-3
    b = np.ones(n)
    close(L.inv()(b), L.solve(b))
    C = L.cholesky()
    v = rng.normal(size=n)
    close(C(C.T(v)), L(v))
    assert L[n - 1, n - 2] == -1.0 and L[10:13, 10:13].shape == (3, 3)
    close((L + 0.5 * rz.id).inv()(L(b) + 0.5 * b), b)
    close(np.linalg.slogdet(L)[1], size)
    S = sp.eye_array(n, format="csr")
    assert (S @ L).shape == (n, n)


def kronecker(n):
    A, B = [np.diag(np.linspace(1, top, n)) + 1e-3 for top in (2, 3)]
    return A, B, code(lambda x: A @ x @ B.T, (n, n))


def test_kronecker_products_of_thousands():
    A, B, L = kronecker(1000)
    close(L.logdet(), 1000 * (np.linalg.slogdet(A)[1] + np.linalg.slogdet(B)[1]), 1e-10)
    v = rng.normal(size=(1000, 1000))
    close(L.inv()(L(v)), v, 1e-9)


def test_spectra_of_kronecker_products():
    A, B, L = kronecker(200)
    v = rng.normal(size=(200, 200))
    w, V = L.eigh()
    close(V(w * V.T(v)), L(v), 1e-9)
    C, S = L.cholesky(), L.sqrt()
    close(C(C.T(v)), L(v), 1e-9)
    close(S(S(v)), L(v), 1e-9)
    want = np.sort(np.outer(np.linalg.eigvalsh(A), np.linalg.eigvalsh(B)).reshape(-1))
    close(L.eigvalsh(), want)
    close(L.eigh(2)[0], want[-2:])
    close(L.svd(2)[1], want[:-3:-1])
    close(L.cond(), want[-1] / want[0])


def test_low_rank_plus_a_diagonal_of_many():
    n = 10**5
    P = rng.normal(size=(n, 3)) / np.sqrt(n)
    d = np.linspace(1, 2, n)
    L = code(lambda x: d * x + P @ (P.T @ x), n)
    want = np.log(d).sum() + np.linalg.slogdet(np.eye(3) + P.T @ (P / d[:, None]))[1]
    close(L.logdet(), want, 1e-10)
    v = rng.normal(size=n)
    close(L.inv()(L(v)), v)
    M = code(lambda x: 2.0 * x + P @ (P.T @ x), n)
    S = M.sqrt()
    close(S(S(v)), M(v), 1e-9)
    close(M.eigvalsh()[-3:], 2 + np.linalg.eigvalsh(P.T @ P), 1e-9)
    w, _ = M.eigh(2)
    close(w, 2 + np.linalg.eigvalsh(P.T @ P)[-2:], 1e-8)
    with pytest.raises(SolveError, match="ask for k of them"):
        L.eigh()


def test_low_rank_of_many():
    n = 30_000
    P, Q = rng.normal(size=(n, 3)), rng.normal(size=(3, n - 1))
    L = code(lambda x: P @ (Q @ x), n - 1)
    U, s, Vt = L.svd()
    v = rng.normal(size=n - 1)
    close(U(s * Vt(v)), L(v))
    close(L.svd(2)[1], s[:2])
    close(s**2, np.sort(np.linalg.eigvals(P.T @ P @ Q @ Q.T).real)[::-1])
    close(L.norm(2), s[0])
    b = P @ np.array([1.0, 2.0, 3.0])
    close(L(L.lstsq(b)), b, 1e-7)


def test_few_of_many():
    n = 40_000
    L = code(lambda x: tridiagonal(x) - 2.0 * x, n)
    want = 2 - 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1))
    for which, order in {"LM": want[-2:], "SM": want[:2], "LA": want[-2:], "SA": want[:2]}.items():
        w, V = L.eigh(2, which)
        assert np.abs(w - order).max() < 1e-10
        assert np.abs(L.matmat(V.to_dense()) - V.to_dense() * w).max() < 1e-9
    T60 = code(tridiagonal, 60).to_dense()
    grid = code(lambda x: (T60 @ x + x @ T60) * np.linspace(1, 2, 60)[:, None] ** 4, (60, 60))
    U, s, Vt = grid.svd(2)
    close(U.T @ (grid @ Vt.T.to_dense()), np.diag(s), 1e-7)
    assert abs(s[0] - sla.svds(grid.to_sparse(), 1)[1][0]) < 1e-6 * s[0]
    w, V = (grid.T @ grid).eigh(2, "LA")
    close(w, s[::-1] ** 2, 1e-8)
    v = V[:, 0]
    close((grid.T @ grid) @ v, w[0] * v, 1e-6)
    wide = code(lambda x: x[: n // 2] * np.linspace(1, 5, n // 2) ** 8 + 0.1 * x[n // 2 :], n)
    with pytest.raises(SolveError, match="ask for k of them"):
        wide.svd()


def test_sparse_matrices_with_traced_data_beside_maps() -> None:
    n, one = 200, np.cos(np.arange(200))

    def system(p, dense):
        L = rz.hessian(lambda x: np.sum(x**4) + np.sum((x[1:] - x[:-1]) ** 2))(p[0] * np.ones(n))
        if dense:
            return np.asarray(L) + p[1] * np.eye(n) + np.diag(p[0] * one)
        k = p[1] * rz.jacobian(lambda v: v)(np.ones(n))
        found = L + k + p[0] * sp.diags_array(one)
        assert str(found.structure) == "tridiagonal"
        return found

    f = lambda p: np.sum(system(p, False).solve(one) ** 2)  # noqa: E731
    g = lambda p: np.sum(np.linalg.solve(system(p, True), one) ** 2)  # noqa: E731
    p, h = np.array([2.0, 3.0]), 1e-5
    np.testing.assert_allclose(f(p), g(p), rtol=1e-12)
    slope = [(g(p + h * e) - g(p - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(rz.grad(f)(p), slope, rtol=1e-7)
    product = lambda p: np.asarray(system(p, False) @ (p[0] * sp.eye_array(n)))  # noqa: E731
    np.testing.assert_allclose(rz.jvp(product, (p,), (np.array([0.0, 1.0]),))[1], p[0] * np.eye(n), atol=1e-12)
    shifted = lambda k: (rz.hessian(lambda x: np.sum(x**4))(np.ones(2)) + k * rz.id).logdet()  # noqa: E731
    np.testing.assert_allclose(rz.grad(shifted)(1.0), 2 / 13)


def test_what_is_no_index_and_no_condition_number() -> None:
    L = rz.jacobian(lambda x: x**2)(np.ones(3))
    for key in (None, True, (slice(None), None), (np.True_, 0)):
        with pytest.raises(rz.SpaceError, match="numbers, a slice, positions"):
            L[key]
    with pytest.raises(rz.SpaceError, match="no condition number"):
        rz.jacobian(lambda x: x**2)(np.zeros(0)).cond()
    with pytest.raises(rz.SpaceError, match=r"shape \(4, 3\) is due; got shape \(4, 4\)"):
        sp.eye_array(4) @ L
