"""Programs that gather, compute element by element, and scatter: their matrices have the right numbers at exactly the right places, in memory that
grows with the numbers they store."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import riesz as rz
from riesz.maps.matrices import matrix_patterns as patterns
from riesz.maps.normal_form import merging
from riesz.runtime import tuning


def mesh(n):
    """The triangles of a square grid."""
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = [corner.ravel() for corner in (i[:-1, :-1], i[1:, :-1], i[:-1, 1:], i[1:, 1:])]
    return n * n, np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)])


def tangled(e, corners=3):
    """Elements between nodes drawn at random."""
    m = max(e // 2, 6)
    return m, np.random.default_rng(0).integers(0, m, (e, corners))


def element(ue, G):
    """Diffusion with a coefficient that depends on the solution."""
    k = 1 + ue.mean(1) ** 2
    return k[:, None] * np.einsum("ej,eaj->ea", np.einsum("ea,eaj->ej", ue, G), G)


def numbers(*shape):
    """Coefficients."""
    return np.random.default_rng(1).normal(size=shape)


def scattered(tri, r, m):
    return np.bincount(tri.ravel(), r.ravel(), m)


def residual(grid, given="bincount"):
    """A residual on the free nodes, the others held fixed."""
    m, tri = grid
    G, free = numbers(*tri.shape, 2), np.arange(m // 5, m)
    P = scipy.sparse.csr_array((np.ones(len(free)), (free, np.arange(len(free)))), shape=(m, len(free)))
    whole = {
        "bincount": lambda uf: np.bincount(free, uf, m),
        "concatenate": lambda uf: np.concatenate([np.ones(m // 5), uf]),
        "matrix": lambda uf: P @ uf,
    }
    part = (lambda r: P.T @ r) if given == "matrix" else (lambda r: r[free])
    return lambda uf: part(scattered(tri, element(whole[given](uf)[tri], G), m)), len(free)


def everywhere(grid):
    m, tri = grid
    G = numbers(*tri.shape, 2)
    return lambda u: scattered(tri, element(u[tri], G), m), m


def elastic(m, tri):
    """Two displacements at each node."""
    G, dofs = numbers(*tri.shape, 2), 2 * tri[:, :, None] + np.arange(2)

    def forces(u):
        F = np.einsum("eai,eaj->eij", u.reshape(m, 2)[tri], G)
        return scattered(dofs, np.einsum("eij,eaj->eai", F + np.einsum("eij,ekj,ekl->eil", F, F, F), G), 2 * m)

    return forces, 2 * m


def numbered(m, tri):
    """The same with the numbers of the unknowns as index array, some of them fixed."""
    G, dofs, free = (
        numbers(*tri.shape, 2),
        (2 * tri[:, :, None] + np.arange(2)).reshape(len(tri), -1),
        np.arange(3, 2 * m),
    )

    def forces(uf):
        F = np.einsum("eai,eaj->eij", np.bincount(free, uf, 2 * m)[dofs].reshape(-1, 3, 2), G)
        return scattered(dofs, np.einsum("eij,eaj->eai", (1 + np.sum(F * F, (1, 2)))[:, None, None] * F, G), 2 * m)[
            free
        ]

    return forces, len(free)


def quadrature(m, tri):
    """Four points in each element."""
    N, w, Q = numbers(4, 3), numbers(4), numbers(len(tri), 4, 3, 2)

    def f(u):
        ue = u[tri]
        uq = ue @ N.T
        flux = np.einsum("q,eq,eqj,eqaj->ea", w, 1 + uq**2, np.einsum("ea,eqaj->eqj", ue, Q), Q)
        return scattered(tri, flux + np.einsum("q,eq,qa->ea", w, np.sin(uq), N), m)

    return f, m


def corners(m, tri):
    """A scatter for each corner."""
    return lambda u: sum(
        [np.bincount(t, (u[t] - u[s]) * u[s], m) for t, s in zip(tri.T, np.roll(tri, 1, 1).T, strict=True)]
    ), m


def edges(n=9, count=20):
    rng = np.random.default_rng(2)
    s = rng.integers(0, n, count)
    return n, s, (s + rng.integers(1, n, count)) % n


def graph():
    n, s, d = edges()

    def f(x):
        t = np.tanh(x[s] - x[d])
        return np.bincount(s, t, n) - np.bincount(d, t, n)

    return f, n


def incidence():
    n, s, d = edges()
    at = np.arange(len(s))
    B = scipy.sparse.csr_array((np.repeat([1.0, -1.0], len(s)), (np.r_[at, at], np.r_[s, d])), shape=(len(s), n))
    return lambda x: B.T @ np.tanh(B @ x), n


def poses():
    n, s, d = edges()

    def f(p):
        a, b = p.reshape(n, 3)[s], p.reshape(n, 3)[d]
        c, t, by = np.cos(a[:, 2]), np.sin(a[:, 2]), b - a
        return np.concatenate([c * by[:, 0] + t * by[:, 1], c * by[:, 1] - t * by[:, 0], by[:, 2] ** 3 + by[:, 2]])

    return f, 3 * n


def grid_positions():
    """Two index arrays for the two axes of a grid."""
    rng = np.random.default_rng(3)
    (A, B), (K, M) = rng.integers(0, 5, (2, 12, 3)), rng.integers(0, 5, (2, 9))
    G = numbers(12, 3, 2)

    def f(u):
        U = u.reshape(5, 5)
        W = scattered(5 * A + B, element(U[A, B], G), 25).reshape(5, 5)
        return np.concatenate([W.ravel(), np.sin(W[K, M]) + U[M, K] ** 2])

    return f, 25


def two_meshes():
    (m, tri), tet = mesh(4), np.random.default_rng(4).integers(0, 16, (7, 4))
    first, _ = everywhere((m, tri))
    G = numbers(7, 4, 2)
    return lambda u: first(u) + scattered(tet, element(u[tet], G), m), m


def twice():
    f, m = everywhere(mesh(4))
    return lambda u: f(np.tanh(f(u))), m


def stepped():
    f, m = residual(mesh(4))
    M = 1 + numbers(m) ** 2
    return lambda u: M * u + 1e-2 * f(u), m


def batch():
    f, m = everywhere(mesh(3))
    return lambda U: np.stack([f(u) for u in U.reshape(3, m)]).reshape(-1), 3 * m


def stiff(ue):
    """A matrix for each element."""
    return 2 * np.eye(ue.shape[1]) + ue[:, :, None] * ue[:, None, :]


ALGEBRA = {
    "solve": lambda ue: np.linalg.solve(stiff(ue), ue[:, :, None])[:, :, 0],
    "solve with one matrix, elements as columns": lambda ue: np.linalg.solve(3 * np.eye(3) + np.tri(3), np.sin(ue).T).T,
    "solve with one matrix, elements as a stack": lambda ue: np.linalg.solve(
        3 * np.eye(3) + np.tri(3), np.sin(ue)[:, :, None]
    )[:, :, 0],
    "solve_triangular": lambda ue: scipy.linalg.solve_triangular(3 * np.eye(3) + np.tri(3), np.sin(ue).T, lower=True).T,
    "solve_banded": lambda ue: (
        scipy.linalg.solve_banded((1, 1), np.array([[1.0], [4.0], [2.0]]) * np.ones(3), np.sin(ue).T).T
    ),
    "vmap of solve": rz.vmap(lambda u: np.linalg.solve(2 * np.eye(3) + np.outer(u, u), u)),
    "cholesky": lambda ue: np.linalg.cholesky(stiff(ue))[:, 2],
    "qr": lambda ue: np.linalg.qr(stiff(ue))[1][:, 0],
    "slope of det": rz.grad(lambda ue: np.sum(np.log(np.linalg.det(stiff(ue))))),
    "expm": lambda ue: scipy.linalg.expm(0.1 * stiff(ue))[:, 0],
    "sqrtm": lambda ue: scipy.linalg.sqrtm(stiff(ue))[:, 0],
    "vmap of solve_sylvester": rz.vmap(
        lambda u: scipy.linalg.solve_sylvester(3 * np.eye(3), np.eye(3), np.outer(u, u))[0]
    ),
}
"""Linear algebra at every element."""


def algebra(name, grid):
    m, tri = grid
    return lambda u: scattered(tri, ALGEBRA[name](u[tri]), m), m


JACOBIANS = {
    **{
        f"fixed nodes by {given}": (lambda given=given: residual(mesh(4), given))
        for given in ("bincount", "concatenate", "matrix")
    },
    "a tangled mesh": lambda: residual(tangled(14)),
    "four corners": lambda: everywhere(tangled(12, 4)),
    "two corners": lambda: everywhere((8, np.stack([np.arange(7), np.arange(1, 8)], 1))),
    "elastic": lambda: elastic(*mesh(3)),
    "numbered unknowns": lambda: numbered(*mesh(3)),
    "quadrature": lambda: quadrature(*mesh(3)),
    "a scatter for each corner": lambda: corners(*mesh(4)),
    "a graph": graph,
    "an incidence matrix": incidence,
    "poses": poses,
    "grid positions": grid_positions,
    "two meshes": two_meshes,
    "one after the other": twice,
    "a time step": stepped,
    "a batch": batch,
}


def dirichlet():
    m, tri = tangled(12)
    G, free = numbers(*tri.shape, 2), np.arange(2, m)

    def f(uf):
        ue = np.bincount(free, uf, m)[tri]
        g = np.einsum("ea,eaj->ej", ue, G)
        return np.sum((1 + ue.mean(1) ** 2) * np.sqrt(1 + np.sum(g * g, 1)))

    return f, len(free)


def stretched():
    m, tri = mesh(3)
    G = numbers(*tri.shape, 2)

    def f(u):
        F = np.einsum("eai,eaj->eij", u.reshape(m, 2)[tri], G) + np.eye(2)
        return np.sum(F * F) + np.sum((F[:, 0, 0] * F[:, 1, 1] - F[:, 0, 1] * F[:, 1, 0] - 1) ** 2)

    return f, 2 * m


def springs():
    n, s, d = edges()

    def f(x):
        X = x.reshape(n, 2)
        return np.sum((np.sqrt(np.sum((X[s] - X[d]) ** 2, 1)) - 1) ** 2)

    return f, 2 * n


def poses_squared():
    f, n = poses()
    return lambda p: np.sum(f(p) ** 2), n


HESSIANS = {"dirichlet": dirichlet, "stretched": stretched, "springs": springs, "poses": poses_squared}
EVERY = [*[(name, rz.jacobian) for name in (*JACOBIANS, *ALGEBRA)], *[(name, rz.hessian) for name in HESSIANS]]


def differences(f, x, h=1e-6):
    """The Jacobian by central differences."""
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))], 1)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("listing", ["entries", "products", "blocks"])
@pytest.mark.parametrize(("name", "derivative"), EVERY, ids=[f"{name}, {d.__name__}" for name, d in EVERY])
def test_matrices_of_element_programs_are_those_of_differences(name, derivative, listing, monkeypatch):
    if listing == "products":  # as large programs do it: no index array is multiplied out
        monkeypatch.setattr(tuning, "HUB_LISTED_RATIO", 0)
    if listing == "blocks":
        monkeypatch.setattr(tuning, "MANY_PARTS_RATIO", 1e-3)  # as many elements do it: a matrix for each
    f, n = (
        algebra(name, tangled(14))
        if name in ALGEBRA
        else JACOBIANS[name]()
        if derivative is rz.jacobian
        else HESSIANS[name]()
    )
    x = np.random.default_rng(5).normal(size=n)
    L = derivative(f)(x)
    D = differences(f if derivative is rz.jacobian else rz.grad(f), x)
    close(L.to_sparse().toarray(), D)
    close(L.T.to_sparse().toarray(), D.T)
    close(L.to_dense(), D)
    close(L.simplify().to_sparse().toarray(), D)
    close(L.column_norms(), np.sqrt((D * D).sum(0)))
    close(L.gram().to_sparse().toarray(), D.T @ D)
    close(L.gram().to_dense(), D.T @ D)
    close(L.gram().diagonal(), (D * D).sum(0))
    if D.shape[0] == D.shape[1]:
        close(L.diagonal(), np.diag(D))
        close(L.trace(), np.trace(D))
        close((L @ L).to_sparse().toarray(), D @ D)
        close((L @ L.T).diagonal(), np.diag(D @ D.T))


@pytest.mark.parametrize("listing", ["entries", "products"])
@pytest.mark.parametrize("name", list(JACOBIANS))
def test_every_position_of_an_element_program_is_one_that_can_be_reached(name, listing, monkeypatch):
    if listing == "products":
        monkeypatch.setattr(tuning, "HUB_LISTED_RATIO", 0)
    f, n = JACOBIANS[name]()
    rng = np.random.default_rng(6)
    L = rz.jacobian(f)(rng.normal(size=n))
    reached = sum([np.abs(rz.jacobian(f)(rng.normal(size=n)).to_dense()) > 1e-12 for _ in range(3)]) > 0
    pattern = L.to_sparse()
    pattern.data[:] = 1
    np.testing.assert_array_equal(pattern.toarray() > 0, reached)
    assert L.sparsity().positions == reached.sum()


@pytest.mark.parametrize("seed", range(12))
def test_random_gathers_elements_and_scatters(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 9))
    steps = []
    for _ in range(int(rng.integers(1, 4))):
        e, a = int(rng.integers(3, 9)), int(rng.integers(1, 4))
        steps.append(
            (
                rng.integers(0, n, (e, a)),
                rng.integers(0, n, (e, a)),
                rng.normal(size=(e, a, a)),
                int(rng.integers(0, 3)),
            )
        )
    kept = np.sort(rng.permutation(n)[: n - 1])

    def f(x):
        u = np.bincount(kept, x, n)
        for there, back, A, kind in steps:
            ue = u[there]
            r = np.einsum("eab,eb->ea", A, np.sin(ue) if kind else ue)
            u = np.bincount(back.ravel(), (r * (1 + ue.mean(1) ** 2)[:, None] if kind == 2 else r).ravel(), n) + (
                u if kind == 1 else 0.0
            )
        return u[kept]

    x = rng.normal(size=n - 1)
    J, D = rz.jacobian(f)(x), differences(f, x)
    close(J.to_sparse().toarray(), D)
    close((J.T @ J).to_sparse().toarray(), D.T @ D)
    close((J @ J).to_sparse().toarray(), D @ D)
    close(J.diagonal(), np.diag(D))


def peak(call):
    """What a call gives, and how many bytes it had at most."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_numbers_stored_not_with_pairs_of_elements():
    f, n = residual(tangled(100_000))
    x = np.random.default_rng(7).normal(size=n)
    L = rz.jacobian(f)(x)
    matrix, bytes_ = peak(L.to_sparse)
    assert matrix.nnz < 600_000 and bytes_ < 500 * matrix.nnz
    v = np.random.default_rng(8).normal(size=n)
    np.testing.assert_allclose(matrix @ v, L(v), rtol=1e-9, atol=1e-9)
    assert peak(L.diagonal)[1] < 250 * matrix.nnz
    assert peak(L.column_norms)[1] < 250 * matrix.nnz


@pytest.mark.parametrize(
    "name", [n for n in ALGEBRA if n not in ("expm", "sqrtm", "vmap of solve_sylvester")]
)  # SciPy takes one at a time
def test_linear_algebra_at_every_element_is_a_matrix_for_each(name):
    f, n = algebra(name, tangled(20_000))
    x = np.random.default_rng(7).normal(size=n)
    L = rz.jacobian(f)(x)
    matrix, bytes_ = peak(L.to_sparse)
    assert matrix.nnz < 150_000 and bytes_ < 1000 * matrix.nnz
    v = np.random.default_rng(8).normal(size=n)
    np.testing.assert_allclose(matrix @ v, L(v), rtol=1e-9, atol=1e-9 * np.abs(matrix.data).max())


def test_declared_functions_of_elements_take_no_dense_matrix():
    m, tri = tangled(600)
    R3 = rz.space_of(np.ones(3))
    turn = rz.linear(
        lambda v: np.array([v[1], 2.0 * v[0], v[2]]),
        lambda w: np.array([2.0 * w[1], w[0], w[2]]),
        domain=R3,
        codomain=R3,
    )
    cube = rz.custom_derivative(
        lambda u: u**3, derivative=lambda u: lambda du: 3.0 * u**2 * du, adjoint=lambda u: lambda w: 3.0 * u**2 * w
    )
    for at in (turn, cube):
        L = rz.jacobian(lambda u, at=at: scattered(tri, rz.vmap(at)(u[tri]), m))(
            np.random.default_rng(7).normal(size=m)
        )
        assert L.to_sparse().nnz <= 9 * len(tri)
        np.testing.assert_allclose(L.to_sparse().toarray(), L.to_dense(), atol=1e-12)


def test_products_of_large_element_programs_add_before_they_multiply():
    f, n = residual(mesh(120))
    x = np.random.default_rng(7).normal(size=n)
    L = rz.jacobian(f)(x)
    v = np.random.default_rng(8).normal(size=n)
    for product in (L.gram(), L @ L):
        matrix, bytes_ = peak(product.to_sparse)
        assert matrix.nnz <= 19 * n and bytes_ < 500 * matrix.nnz
        np.testing.assert_allclose(matrix @ v, product(v), rtol=1e-9, atol=1e-9 * np.abs(product(v)).max())
        assert f"{matrix.nnz:,}" in str(product.structure)
    assert "SuperLU" in L.gram().solver().name or "sparse" in L.gram().solver().name.lower()


def running(m, tri):
    """Running sums along the corners: a step without entries."""
    G = numbers(*tri.shape, 2)
    return lambda u: scattered(tri, np.cumsum(element(u[tri], G), axis=1), m), m


def rounds(m, tri):
    """A loop inside each element."""
    G = numbers(*tri.shape, 2)
    return lambda u: scattered(
        tri, rz.fori_loop(0, 3, lambda i, y: y - 0.1 * np.sin(y) * element(u[tri], G), u[tri]), m
    ), m


@pytest.mark.parametrize("make", [running, rounds], ids=["running sums", "loops"])
def test_steps_without_entries_take_no_dense_matrix(make):
    f, n = make(*mesh(50))
    x = 0.1 * np.random.default_rng(7).normal(size=n)
    L = rz.jacobian(f)(x)
    matrix, bytes_ = peak(L.to_sparse)
    assert matrix.nnz <= 7 * n and bytes_ < 8 * n * n
    V = np.random.default_rng(8).normal(size=(n, 3))
    np.testing.assert_allclose(matrix @ V, L.matmat(V), atol=1e-9 * np.abs(matrix.data).max())


def test_a_second_point_needs_no_new_pattern(monkeypatch):
    f, n = residual(mesh(40))
    x = np.random.default_rng(7).normal(size=n)
    jacobian = rz.jacobian(f)
    for make in (lambda x: jacobian(x), lambda x: jacobian(x).gram()):
        first = make(x).to_sparse()
        with monkeypatch.context() as m:
            m.setattr(patterns, "_sorted", None)
            second = make(2 * x).to_sparse()
        np.testing.assert_array_equal(first.indices, second.indices)
        v = np.random.default_rng(8).normal(size=n)
        np.testing.assert_allclose(second @ v, make(2 * x)(v), rtol=1e-9, atol=1e-9 * np.abs(second @ v).max())


STACKED = {
    "stacked": lambda n: lambda x: np.stack([x[i] * x[i] for i in range(n)]),
    "an array of a list": lambda n: lambda x: np.array([np.sin(x[i]) * x[i - 1] for i in range(n)]),
    "concatenated": lambda n: lambda x: np.concatenate([x[i : i + 1] * x[i - 1] for i in range(n)]),
    "pieces": lambda n: lambda x: np.concatenate([x[i : i + 2] * x[i : i + 2].sum() for i in range(0, n, 2)]),
    "nested": lambda n: lambda x: np.stack([np.stack([x[i], x[i] * x[i - 1]]) for i in range(n)]).reshape(-1),
}
SUMMED = {
    "neighbours": lambda n: lambda x: sum([x[i] * x[i + 1] for i in range(n - 1)]),
    "rosenbrock": lambda n: lambda x: sum([100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n - 1)]),
    "a sum of a stack": lambda n: lambda x: np.sum(np.stack([x[i] * x[i + 1] ** 2 for i in range(n - 1)])),
}


@pytest.mark.parametrize(
    ("make", "derivative"),
    [*[(f, rz.jacobian) for f in STACKED.values()], *[(f, rz.hessian) for f in SUMMED.values()]],
    ids=[*STACKED, *SUMMED],
)
def test_work_grows_with_the_number_of_stacked_numbers(make, derivative, monkeypatch):
    looked_at = [0]
    frame = merging._frame

    def counting(*args):
        looked_at[0] += 1
        return frame(*args)

    monkeypatch.setattr(merging, "_frame", counting)
    counts = []
    for n in (64, 256):
        looked_at[0] = 0
        f, x = make(n), np.random.default_rng(9).normal(size=n)
        L = derivative(f)(x)
        matrix = L.to_sparse()
        counts.append(looked_at[0])
        v = np.random.default_rng(8).normal(size=n)
        np.testing.assert_allclose(matrix @ v, L(v), atol=1e-9)
        np.testing.assert_allclose(L.to_dense(), matrix.toarray(), atol=1e-9)
    assert counts[1] < 6 * counts[0]
