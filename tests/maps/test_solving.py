"""L.solve: what is chosen for which structure, and that it solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import OPAQUE, random_function
from sampling import examples

import riesz as rz

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
seeds = st.integers(0, 10**6)
rng = np.random.default_rng(0)


def applied(L: Any) -> Any:
    return L.matmat(np.eye(L.shape[1]))


def around(n: int, k: float) -> Any:
    """A matrix near k·I."""
    return rng.normal(size=(n, n)) / np.sqrt(n) + k * np.eye(n)


x = rng.normal(size=50)
X = rng.normal(size=(20, 30))
A, B = around(20, 4.0), around(30, 5.0)
S, T = A + A.T, B + B.T
C = around(4, 3.0)
U, V = rng.normal(size=(400, 5)), rng.normal(size=(5, 400)) / 50
TO, FROM = np.random.default_rng(1).integers(0, 3000, (2, 6000))


def laplacian(u: Any) -> Any:
    p = np.pad(u, 1)
    return 4.1 * u - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]


CHOICES: dict[str, tuple[Any, Any, str]] = {
    "diagonal": (np.tanh, x, "diagonal: one division"),
    "times the identity": (lambda x: 3 * x, x, "diagonal: one division"),
    "tridiagonal": (
        lambda u: 4 * u + np.concatenate([u[1:], u[:1] * 0]) + np.concatenate([0 * u[:1], u[:-1] ** 2]),
        x,
        "LAPACK gttrf",
    ),
    "bidiagonal": (lambda u: 4 * u + np.concatenate([u[1:], u[:1] * 0]), x, "banded, 0 below and 1 above"),
    "block-diagonal": (
        lambda X: np.tanh(X @ C) + 3 * X,
        rng.normal(size=(100, 4)),
        "block-diagonal, 100 blocks of 4 × 4",
    ),
    "blocks that lie apart": (
        lambda X: np.tanh(C @ X) + 3 * X,
        rng.normal(size=(4, 100)),
        "reordered, block-diagonal, 100 blocks of 4 × 4",
    ),
    "diagonal + rank 1": (
        lambda x: np.exp(x) + np.sum(x),
        x,
        "diagonal: one division per unknown; plus rank 1: Woodbury",
    ),
    "identity + rank 5": (lambda x: x + U @ np.tanh(V @ x), rng.normal(size=400), "plus rank 5: Woodbury"),
    "tridiagonal + rank 1": (
        lambda u: 4 * u + np.concatenate([u[1:], u[:1] * 0]) + 0.1 * u.mean(),
        x,
        "plus rank 1: Woodbury",
    ),
    "Kronecker": (lambda X: A @ X @ B, X, "Kronecker product, factor by factor: 20 × 20 dense"),
    "Kronecker, turned": (lambda X: (A @ X @ B).T, X, "Kronecker product, factor by factor: 30 × 30 dense"),
    "Kronecker with the identity": (lambda X: X @ B, X, "Kronecker product, factor by factor: 20 × 20 diagonal"),
    "Kronecker sum": (lambda X: A @ X + X @ B, X, "Kronecker sum of 20 × 20 + 30 × 30: Sylvester"),
    "symmetric Kronecker sum": (lambda X: S @ X + X @ T, X, "Kronecker sum of 20 × 20 + 30 × 30: eigenvectors"),
    "Laplacian": (laplacian, rng.normal(size=(12, 15)), "Kronecker sum of 12 × 12 + 15 × 15: eigenvectors"),
    "Laplacian with a coefficient": (
        lambda u: laplacian(u) + np.sin(u) + u,
        rng.normal(size=(12, 40)),
        "banded, 40 below and 40 above",
    ),
    "sparse": (
        lambda u: 9 * u + np.bincount(TO, weights=np.sin(u[FROM]), minlength=3000),
        rng.normal(size=3000),
        "sparse, ",
    ),
    "dense": (lambda x: around_x @ np.tanh(x) + 9 * x, x, "dense: LU"),
    "Krylov": (lambda x: 2 * x + np.cumsum(x) / 3000, rng.normal(size=3000), "GMRES"),
}
around_x = around(50, 2.0)


@pytest.mark.parametrize("name", CHOICES)
def test_the_solver_is_chosen_by_structure(name):
    f, at, expected = CHOICES[name]
    L = rz.jacobian(f)(at)
    assert expected in L.solver().name
    y = rng.normal(size=L.shape[0])
    tolerance = 1e-6 if "GMRES" in L.solver().name else 1e-9
    for M in (L, L.T):
        found = M.domain.flatten(M.solve(M.codomain.unflatten(y)))
        assert np.abs(M.matvec(found) - y).max() <= tolerance * np.abs(y).max() * 10
    if "GMRES" not in expected:
        turned = L.solver().solve(y, transposed=True)
        assert np.abs(L.rmatvec(turned) - y).max() <= 1e-8 * np.abs(y).max()


def test_components_that_do_not_touch_are_solved_one_by_one():
    L = rz.jacobian(lambda x, y: (np.sin(x) + 3 * x, y + y.sum()), (0, 1))(x, x)
    assert (
        L.solver().name
        == "block by block: diagonal: one division per unknown; diagonal: one division per unknown; plus rank 1: Woodbury"
    )
    a, b = L.solve(L((x, 2 * x)))
    assert np.allclose(a, x) and np.allclose(b, 2 * x)


def test_a_million_unknowns_on_three_diagonals():
    n = 10**6
    u = np.linspace(0, 1, n)
    L = rz.jacobian(lambda u: 4 * u + np.concatenate([u[1:], u[:1] * 0]) + np.concatenate([u[:1] * 0, np.sin(u[:-1])]))(
        u
    )
    assert "O(n)" in L.solver().name
    assert np.abs(L.solve(L(u)) - u).max() < 1e-9


SINGULAR: dict[str, tuple[Any, Any]] = {
    "a mean taken away": (lambda x: x - x.mean(), x),
    "zero": (lambda x: x * 0, x),
    "a zero on the diagonal": (lambda x: x * np.arange(50.0), x),
    "a zero in a block": (lambda x: x[::-1] * np.arange(50.0), x),
    "differences": (lambda u: u - np.roll(u, 1), x),
    "rank 1": (lambda x: np.sum(np.sin(x)) * np.arange(50.0), x),
    "factors that are not square": (lambda X: np.ones((3, 2)) @ X @ np.ones((3, 2)), rng.normal(size=(2, 3))),
    "a singular factor": (lambda X: A @ X @ np.ones((30, 30)), X),
    "all in one row": (lambda x: np.concatenate([x[:1] * 0, np.sum(x) * np.ones(49)]), x),
    "never read": (lambda x: x[np.minimum(np.arange(50), 48)], x),
    "edges only": (
        lambda u: np.bincount(TO, weights=np.sin(u[FROM]) - np.sin(u[TO]), minlength=3000),
        rng.normal(size=3000),
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_maps_are_refused(name):
    f, at = SINGULAR[name]
    L = rz.jacobian(f)(at)
    with pytest.raises(rz.SolveError):
        L.solve(L.codomain.unflatten(rng.normal(size=L.shape[0])))


def test_a_singular_base_plus_low_rank_may_be_regular():
    at = np.linspace(0, 2, 30)
    L = rz.jacobian(lambda x: x**2 + np.sum(x))(at)
    assert np.allclose(L.solve(L(at)), at)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (7, 1), (1, 7)])
def test_maps_that_are_not_square_are_solved_in_the_least_squares_sense(shape):
    M, b = rng.normal(size=shape), rng.normal(size=shape[0])
    L = rz.jacobian(lambda x: M @ np.sin(x))(np.linspace(0, 1, shape[1]))
    assert "least squares" in L.solver().name
    assert np.allclose(L.solve(b), np.linalg.lstsq(L.to_dense(), b)[0])
    if shape[0] > shape[1]:
        assert np.allclose(L.solve(b, method="lsmr", tolerance=1e-13), np.linalg.lstsq(L.to_dense(), b)[0], atol=1e-7)


@pytest.mark.parametrize("method", ["dense", "sparse", "cg", "minres", "gmres", "iterative"])
def test_methods_can_be_asked_for(method):
    H = rz.hessian(lambda u: np.sum(u**4) + np.sum((u[1:] - u[:-1]) ** 2) + np.sum(u**2))(x)
    assert np.allclose(H.solve(H(x), method=method), x, atol=1e-6)
    with pytest.raises(rz.SpaceError, match="expected one of"):
        H.solve(x, method="magic")


@given(seeds)
@examples(0.6)
def test_whatever_the_structure_what_is_solved_is_solved(seed):
    """L*L + D is well-conditioned; L itself is solved or refused, for a reason."""
    f, (at,) = random_function(seed, 1, without=OPAQUE if seed % 2 else ())
    L = rz.jacobian(f)(at)
    if not np.isfinite(applied(L)).all() or not L.shape[1] or np.abs(applied(L)).max(initial=0) > 1e3:
        return
    plus = rz.jacobian(lambda v: 2.0 * v + 0.2 * v * v)(np.abs(at))
    for M in (L.gram() + plus, L):
        dense = applied(M)
        condition = np.linalg.cond(dense) if dense.size else np.inf
        b = dense @ rng.normal(size=dense.shape[1])
        try:
            found = M.domain.flatten(M.solve(M.codomain.unflatten(b)))
        except rz.SolveError:
            assert condition > 1e8
            continue
        if condition < 1e8:
            assert np.abs(dense @ found - b).max(initial=0) <= 1e-6 * (1 + np.abs(b).max(initial=0))


def test_one_axis_for_all_is_a_kronecker_product():
    at = rng.normal(size=(300, 40))
    L = rz.jacobian(lambda u: 3.0 * u - np.diff(np.pad(u, ((1, 1), (0, 0))), 2, axis=0))(at)
    assert L.solver().name.startswith("Kronecker product") and "gttrf" in L.solver().name
    assert np.allclose(L.solve(L(at)), at)
    with pytest.raises(
        rz.SolveError
    ):  # a matrix whose 0 is a multiple eigenvalue: far from exact, however it is computed
        rz.jacobian(lambda u: np.gradient(u, axis=1))(rng.normal(size=(5, 6))).solve(np.ones((5, 6)))


def test_a_kronecker_sum_of_defective_matrices_is_refused():
    from riesz.maps.solvers.composite import KroneckerSum

    T = np.triu(rng.normal(size=(8, 8)), 1)
    Q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    with pytest.raises(rz.SolveError, match="singular"):
        KroneckerSum(Q @ T @ Q.T, np.triu(np.ones((3, 3)), 1))


def test_tall_and_wide_sparse_maps_are_solved_by_their_normal_equations():
    n = 3000
    at = 0.3 * rng.normal(size=n)
    L = rz.jacobian(lambda p: np.concatenate([10.0 * (p[1:] - p[:-1] ** 2), 1.0 - p]))(at)
    b = rng.normal(size=L.shape[0])
    assert "least squares" in L.solver().name and "gttrf" in L.solver().name
    assert np.abs(L.T.matvec(L.matvec(L.solve(b)) - b)).max() < 1e-9
    assert np.allclose(L.solve(L(at)), at, atol=1e-10)
    wide = L.T  # the shortest solution is in the range of its transpose
    found = wide.solve(at)
    assert "shortest" in wide.solver().name and np.allclose(wide(found), at)
    assert np.abs(found - L(L.solve(found))).max() < 1e-9
    t = np.linspace(0, 1, 30)
    blocks = rz.jacobian(lambda p: p[:, :1] * np.exp(-p[:, 1:] * t))(1.0 + rng.random(size=(400, 2)))
    b = rng.normal(size=(400, 30))
    each = np.stack([np.linalg.lstsq(m, r)[0] for m, r in zip(blocks.blocks().values, b, strict=True)])
    assert np.allclose(blocks.solve(b), each) and "block-diagonal" in blocks.solver().name


def test_least_squares_of_lower_rank_iterates():
    L = rz.jacobian(lambda p: np.concatenate([p[1:] - p[:-1], p[2:] - p[:-2]]))(rng.normal(size=3000))
    b = L(rng.normal(size=3000))
    assert "LSMR" in L.solver().name and np.allclose(L(L.solve(b, tolerance=1e-12)), b, atol=1e-5)


def test_what_elimination_would_fill_is_iterated():
    """The Laplacian of a random graph has no small separators; that of a grid has, whatever the order of its nodes."""
    n = 30_000
    i, j = rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n)
    H = rz.hessian(lambda u: np.sum(np.log(np.cosh(u[i] - u[j]))) + 0.5 * np.sum(u**2))(rng.normal(size=n))
    b = rng.normal(size=n)
    assert "MINRES" in H.solver().name and np.abs(H(H.solve(b)) - b).max() < 1e-8
    order = rng.permutation(40_000).reshape(200, 200)
    grid = rz.hessian(
        lambda u: np.sum(np.diff(u[order], axis=0) ** 2) + np.sum(np.diff(u[order], axis=1) ** 2) + np.sum(u**4 + u**2)
    )
    G = grid(rng.normal(size=40_000))
    b = rng.normal(size=40_000)
    assert "SuperLU" in G.solver().name and np.abs(G(G.solve(b)) - b).max() < 1e-9


def test_iterations_that_lead_nowhere_end():
    """A cyclic shift is the worst map for GMRES: nothing is gained before as many steps as unknowns."""
    from riesz.maps.solvers.krylov import Krylov

    solver = Krylov(lambda v: np.roll(v, 1), lambda v: np.roll(v, -1), 5000)
    with pytest.raises(rz.SolveError, match="not there after"):
        solver.solve(np.eye(5000)[0])
    assert solver.iterations <= 1000


@pytest.mark.parametrize(
    "f",
    [
        lambda u: np.cumsum(np.sinh(u)),
        lambda u: np.tanh(np.cumsum(u) / 40) * 3.0,
        lambda u: np.cumsum(np.cumsum(u)),
        lambda u: np.cumsum(np.cumsum(u.reshape(5, 10) ** 3 + u.reshape(5, 10), axis=0), axis=1),
    ],
)
def test_running_sums_are_undone_step_by_step(f):
    L = rz.jacobian(f)(x)
    assert "running sums: differences" in L.solver().name
    for M in (L, L.T):
        b = M(M.domain.unflatten(x))
        assert np.allclose(M.domain.flatten(M.solve(b)), x) and np.allclose(M.solver().apply(x), M.matvec(x))
    assert np.allclose(L.solver().solve(x, transposed=True), np.linalg.solve(applied(L).T, x))
    n = 10**6
    big = rz.jacobian(lambda u: np.cumsum(np.exp(u)))(np.zeros(n))
    assert np.allclose(big.solve(np.arange(1.0, n + 1)), 1.0)


def test_several_right_hand_sides():
    L = rz.jacobian(lambda x: np.exp(x) + np.sum(x))(np.linspace(0.0, 1.0, 7))
    B = np.random.default_rng(0).normal(size=(7, 3))
    assert np.allclose(L.to_dense() @ L.solve(B), B)
    tall = rz.jacobian(lambda x: np.stack([x, 2 * x], axis=1).reshape(-1))(np.ones(4))
    C = np.random.default_rng(1).normal(size=(8, 2))
    assert np.allclose(tall.solve(C), np.linalg.lstsq(tall.to_dense(), C)[0])
