"""Maps as matrices inside traced functions: shifts, pairs, pseudoinverses, determinants; SciPy's functions of maps."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg as linalg

import riesz as rz
from riesz.maps.leaves import Leaves

rng = np.random.default_rng(0)
N = 40
b = rng.normal(size=N)
u0 = np.linspace(0.0, 1.0, N)
p0 = rng.uniform(0.5, 1.5, N)


def tridiagonal(p):
    def residual(u):
        flow = p[1:] * (u[1:] - u[:-1])
        return (2 + 0.3 * p) * u + u**3 / 3 - np.concatenate([flow, [0.0]]) + np.concatenate([[0.0], flow])

    return rz.jacobian(residual)(u0)


def diagonal(p):
    return rz.jacobian(lambda u: np.sin(p * u) + u)(u0)


def low_rank(p):
    return rz.jacobian(lambda u: p * u + p * np.dot(p, u))(u0)


def tall(p):
    return rz.jacobian(lambda u: np.concatenate([p * u, u[1:] * u[:-1] * p[0]]))(u0 + 1.0)


def kronecker(p):
    A, B = np.diag(p[:5]) + 0.1, np.diag(p[5:13]) + 0.2
    return rz.jacobian(lambda u: (A @ u.reshape(5, 8) @ B.T).ravel())(u0)


def dense(L):
    return np.asarray(L.to_dense())


def check(f, reference, atol=1e-9):
    """Value against the dense form, gradient and Hessian along a direction against differences."""
    np.testing.assert_allclose(rz.function(f)(p0), reference(p0), atol=atol)
    w = np.cos(np.arange(np.size(reference(p0)))).reshape(np.shape(reference(p0)))
    total = lambda p: np.sum(w * f(p))  # noqa: E731
    v, h = rng.normal(size=N), 1e-5
    slope = (np.sum(w * reference(p0 + h * v)) - np.sum(w * reference(p0 - h * v))) / (2 * h)
    g = rz.grad(total)
    np.testing.assert_allclose(g(p0) @ v, slope, rtol=1e-5, atol=1e-6)
    second = (g(p0 + h * v) - g(p0 - h * v)) / (2 * h)
    np.testing.assert_allclose(rz.hessian(total)(p0)(v), second, rtol=1e-4, atol=1e-5)


def signed(V):
    return V * np.sign(np.take_along_axis(V, np.abs(V).argmax(0)[None], 0))


FAMILIES = [tridiagonal, diagonal, low_rank, kronecker]


@pytest.mark.parametrize("A", FAMILIES, ids=lambda f: f.__name__)
def test_traced_multiples_of_the_identity(A):
    check(lambda p: (A(p) + p[0] * rz.id).solve(b), lambda p: np.linalg.solve(dense(A(p)) + p[0] * np.eye(N), b))
    check(lambda p: (p[1] * rz.id - A(p) / 2 + rz.id * p[0]) @ b, lambda p: (p[0] + p[1]) * b - dense(A(p)) @ b / 2)
    check(
        lambda p: (A(p) + (2 * p[0] * rz.id + rz.id) / 3).logdet(),
        lambda p: np.linalg.slogdet(dense(A(p)) + (2 * p[0] + 1) / 3 * np.eye(N))[1],
    )


@pytest.mark.parametrize("A", FAMILIES, ids=lambda f: f.__name__)
def test_some_eigenvalues(A):
    def reference(p):
        w, V = np.linalg.eigh(dense(A(p)))
        return np.concatenate([w[-3:], 0.1 * signed(V[:, -3:]).ravel()])

    def f(p):
        w, V = A(p).eigh(3, "LA")
        return np.concatenate([w, 0.1 * V.to_dense().ravel()])

    check(f, reference)


@pytest.mark.parametrize("A", [*FAMILIES, tall], ids=lambda f: f.__name__)
def test_some_singular_values(A):
    check(lambda p: A(p).svd(2).values, lambda p: np.linalg.svd(dense(A(p)))[1][:2])
    check(lambda p: A(p).norm(2), lambda p: np.linalg.svd(dense(A(p)))[1][0])


@pytest.mark.parametrize("A", [*FAMILIES, tall], ids=lambda f: f.__name__)
def test_least_squares_and_pseudoinverse(A):
    right = np.resize(b, len(A(p0)))
    check(lambda p: A(p).lstsq(right), lambda p: np.linalg.lstsq(dense(A(p)), right)[0])
    check(lambda p: A(p).pinv() @ right, lambda p: np.linalg.lstsq(dense(A(p)), right)[0])


def test_least_squares_of_a_singular_map():
    def A(p):
        return rz.jacobian(lambda u: np.concatenate([p[1:] * (u[1:] - u[:-1]), [0.0]]))(u0)

    check(lambda p: A(p).lstsq(b), lambda p: np.linalg.pinv(dense(A(p))) @ b)


def test_spectra_of_diagonals_are_not_dense():
    n = 10**5
    p = np.linspace(1.0, 2.0, n)

    def f(p):
        L = rz.jacobian(lambda u: p * u**2)(np.ones(n))
        w, V = L.eigh()
        return np.sum(w * np.arange(n)) + np.sum(L.sqrt() @ np.ones(n)) + np.sum(L.cholesky() @ np.ones(n)) + (V @ p)[0]

    g = rz.grad(f)(p)
    np.testing.assert_allclose(g[1:], 2.0 * np.arange(1, n) + 2 * np.sqrt(0.5 / p[1:]))


def grid(m):
    def residual(u, p):
        U, q = np.pad(u.reshape(m, m), 1), p.reshape(m, m)
        middle = (4 + q) * U[1:-1, 1:-1] + 0.1 * U[1:-1, 1:-1] ** 3
        return (middle - U[2:, 1:-1] - U[:-2, 1:-1] - U[1:-1, 2:] - (1 + 0.1 * q) * U[1:-1, :-2]).ravel()

    return residual


def test_determinants_of_sparse_maps_to_third_order(monkeypatch):
    m = 9
    residual, u = grid(m), rng.normal(size=m * m)
    p, v, h = rng.uniform(0.5, 1.0, m * m), rng.normal(size=m * m), 1e-5
    A = lambda p: rz.jacobian(lambda u: residual(u, p))(u)  # noqa: E731
    f = lambda p: A(p).logdet()  # noqa: E731
    np.testing.assert_allclose(rz.function(f)(p), np.linalg.slogdet(dense(A(p)))[1])
    monkeypatch.setattr(Leaves, "to_dense", None)  # no dense matrix from here on
    g, H = rz.grad(f), lambda p: rz.hessian(f)(p)(v)
    np.testing.assert_allclose(g(p) @ v, (f(p + h * v) - f(p - h * v)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(H(p), (g(p + h * v) - g(p - h * v)) / (2 * h), atol=1e-8)
    third = rz.jvp(lambda p: rz.hessian(f)(p)(v) @ v, (p,), (v,))[1]
    np.testing.assert_allclose(third, (H(p + h * v) - H(p - h * v)) @ v / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(rz.compile(g, p, backend="jax")(p), g(p), atol=1e-13)


def test_elements_of_the_inverse_block_by_block_and_column_by_column():
    from riesz.maps.matrices.sparse_determinants import EntryPattern

    a = scipy.sparse.random_array((150, 150), density=0.02, rng=rng).tocoo() + 3 * scipy.sparse.eye_array(150)
    a = a.tocoo()
    pattern = EntryPattern(a.coords[0], a.coords[1], 150)
    wanted = np.linalg.inv(a.toarray())[a.coords[1], a.coords[0]]
    np.testing.assert_allclose(pattern.inverse(a.data), wanted, atol=1e-12)
    np.testing.assert_allclose(pattern.chained(a.data, ()), wanted, atol=1e-12)


SOLVERS = ["cg", "gmres", "bicgstab", "minres", "bicg", "cgs", "qmr", "lgmres", "lsqr", "lsmr"]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["map", "sparse"])
def test_scipys_solvers(name, kind):
    given = {"atol": 1e-13, "btol": 1e-13} if name.startswith("ls") else {"rtol": 1e-13}

    def matrix(p):
        if kind == "map":
            return tridiagonal(p)
        return scipy.sparse.diags_array([-p[1:], 4 + p, -p[1:]], offsets=[-1, 0, 1]).tocsr()

    def reference(p):
        A = matrix(p)
        return np.linalg.solve(A.toarray(), b)

    check(lambda p: getattr(linalg, name)(matrix(p), b, **given)[0], reference, 1e-8)


def test_scipys_functions_of_maps():
    A = tridiagonal
    check(lambda p: linalg.spsolve(A(p), b), lambda p: np.linalg.solve(dense(A(p)), b))
    check(lambda p: linalg.splu(A(p)).solve(b), lambda p: np.linalg.solve(dense(A(p)), b))
    check(lambda p: linalg.eigsh(A(p), 2)[0], lambda p: np.linalg.eigvalsh(dense(A(p)))[-2:])
    check(lambda p: linalg.svds(A(p), 2)[1], lambda p: np.linalg.svd(dense(A(p)))[1][1::-1])
    check(lambda p: linalg.expm_multiply(-A(p), b), lambda p: scipy.linalg.expm(-dense(A(p))) @ b)
    check(lambda p: scipy.linalg.solve(A(p), b), lambda p: np.linalg.solve(dense(A(p)), b))
    check(lambda p: scipy.linalg.cholesky(A(p), lower=True) @ b, lambda p: np.linalg.cholesky(dense(A(p))) @ b)


# -- arrays that the traced function makes ----------------------------------------------------------------------


def written(p):
    y = np.zeros((6, 2))
    y[:, 0] = p
    y[1, 1] = p[0] ** 2
    return y


def bent(p):
    return rz.hessian(lambda u: np.sum(u**4 * p) + np.sum(u[1:] * u[:-1]))(np.linspace(1.0, 2.0, 6))


FIXED = bent(np.ones(6))
SMALL = rng.uniform(0.5, 1.5, 6)


@pytest.mark.parametrize("plain", [True, False], ids=["map of numbers", "map at a traced point"])
@pytest.mark.parametrize(
    "use",
    [
        lambda L, p: L @ np.ones(6),
        lambda L, p: np.ones(6) @ L,
        lambda L, p: L(np.full(6, 2.0)),
        lambda L, p: L @ np.eye(6),
        lambda L, p: np.arange(12.0).reshape(2, 6) @ L,
        lambda L, p: L.H @ np.ones((6, 3)),
        lambda L, p: L(np.ones((6, 2))),
        lambda L, p: L.dot(np.ones((6, 2))),
        lambda L, p: L.solve(np.ones(6)),
        lambda L, p: L.solve(np.eye(6)),
        lambda L, p: L.inv() @ np.eye(6),
        lambda L, p: L.lstsq(np.arange(6.0)),
        lambda L, p: L.pinv() @ np.ones((6, 2)),
        lambda L, p: (L + 2 * rz.id)(np.ones(6)),
        lambda L, p: np.linalg.solve(L, np.ones((6, 2))),
        lambda L, p: L @ written(p),
        lambda L, p: L(written(p)),
        lambda L, p: written(p).T @ L,
        lambda L, p: L.solve(written(p)),
        lambda L, p: L.solve(written(p)[:, 0]),
        lambda L, p: L.lstsq(written(p)[:, 1]),
    ],
)
def test_maps_meet_arrays_made_in_the_function(use, plain):
    f = lambda p: use(FIXED if plain else bent(p), p) * np.sum(p)  # noqa: E731
    np.testing.assert_allclose(rz.function(f)(SMALL), f(SMALL), rtol=1e-12)
    d = 1e-5 * np.eye(6)
    slopes = np.stack([(f(SMALL + e) - f(SMALL - e)) / 2e-5 for e in d], axis=-1).reshape(-1, 6)
    np.testing.assert_allclose(rz.jacobian(f)(SMALL).to_dense(), slopes, rtol=1e-6, atol=1e-7 * np.abs(slopes).max())
