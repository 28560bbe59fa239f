"""Inner products by sparse matrices and linear maps, against the same as dense matrices."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import riesz as rz
from riesz.spaces.mass import MapMass, Mass

N = 120
rng = np.random.default_rng(5)
V = rz.R ** rz.seg(N)
M: Any = sp.diags_array([4.0 + rng.uniform(size=N), np.ones(N - 1), np.ones(N - 1)], offsets=[0, 1, -1]).tocsr()
FAR: Any = sp.random_array((N, N), density=0.02, rng=rng)
FAR = (FAR @ FAR.T + sp.eye_array(N)).tocsr()
U = rng.normal(size=(N, 2))
WEIGHTS: dict[str, tuple[Any, Any]] = {
    "tridiagonal": (M, M.toarray()),
    "by diagonals": (M.todia(), M.toarray()),
    "csc_matrix": (sp.csc_matrix(FAR), FAR.toarray()),
    "a map with few entries": (rz.jacobian(lambda x: M @ x)(np.zeros(N)), M.toarray()),
    "a map": (rz.jacobian(lambda x: 3 * x + U @ (U.T @ x))(np.zeros(N)), 3 * np.eye(N) + U @ U.T),
}
weights = pytest.mark.parametrize("name", WEIGHTS)
u, v = rng.normal(size=(2, N))
A = rng.normal(size=(5, N))


def f(x: Any) -> Any:
    return np.sum(np.sin(x) * x**2)


def spaces(name: str) -> tuple[Any, Any, Any]:
    given, dense = WEIGHTS[name]
    return V.weighted(given), V.weighted(dense), dense


@weights
def test_inner_products_and_norms(name: str) -> None:
    W, plain, dense = spaces(name)
    np.testing.assert_allclose(W.inner(u, v), u @ dense @ v, rtol=1e-12)
    np.testing.assert_allclose(W.norm(u), np.sqrt(u @ dense @ u), rtol=1e-12)
    for S, T in (
        (W @ rz.R ** rz.seg(3), plain @ rz.R ** rz.seg(3)),
        (W ** rz.seg(2), plain ** rz.seg(2)),
        (W * W, plain * plain),
    ):
        a, b = rng.normal(size=(2, S.dim))
        np.testing.assert_allclose(
            S.inner(S.unflatten(a), S.unflatten(b)), T.inner(T.unflatten(a), T.unflatten(b)), rtol=1e-10
        )


@weights
def test_gradients_hessians_and_adjoints(name: str) -> None:
    W, plain, dense = spaces(name)
    np.testing.assert_allclose(rz.grad(f, space=W)(u), np.linalg.solve(dense, rz.grad(f)(u)), rtol=1e-10, atol=1e-12)
    J, K = [rz.jacobian(lambda x: A @ np.sin(x), space=S)(u) for S in (W, plain)]
    np.testing.assert_allclose(J.H.to_dense(), K.H.to_dense(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(J.gram().to_dense(), K.gram().to_dense(), rtol=1e-9, atol=1e-12)
    assert J.H.H is J
    for x, y in ((u, A @ v), (v, A @ u)):
        np.testing.assert_allclose(W.inner(J.H(y), x), J(x) @ y, rtol=1e-10)
    mine, wanted = [rz.hessian(f, space=S)(u).to_dense() for S in (W, plain)]
    np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)


@weights
@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_compiled(name: str, backend: str) -> None:
    W, plain, _ = spaces(name)
    found = rz.compile(rz.grad(f, space=W), backend=backend)(u)
    np.testing.assert_allclose(found, rz.grad(f, space=plain)(u), rtol=1e-9, atol=1e-12)


def test_matrices_in_several_axes_and_components() -> None:
    W = rz.R ** (rz.seg(10) * rz.seg(12))
    S, T = [W.weighted(k) for k in (M, M.toarray())]
    x, y = rng.normal(size=(2, 10, 12))
    np.testing.assert_allclose(S.inner(x, y), T.inner(x, y), rtol=1e-12)
    g = lambda x: np.sum(x**3)  # noqa: E731
    np.testing.assert_allclose(rz.grad(g, space=S)(x), rz.grad(g, space=T)(x), rtol=1e-10)
    both = (V * rz.R ** rz.seg(3)).weighted((M, np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(both.inner((u, np.ones(3)), (v, np.ones(3))), u @ M @ v + 6.0, rtol=1e-12)


def test_a_weight_is_one_space_and_can_be_pickled() -> None:
    W = V.weighted(M)
    assert V.weighted(M.copy()) is W and V.weighted(M.tocoo()) is W and V.weighted(2 * M) is not W
    assert pickle.loads(pickle.dumps(W)) is W
    again = pickle.loads(pickle.dumps(V.weighted(WEIGHTS["a map"][0])))
    np.testing.assert_allclose(again.inner(u, v), u @ WEIGHTS["a map"][1] @ v)
    assert str(W) == str(V.weighted(M.toarray()))


def test_the_matrix_given_may_be_changed_afterwards() -> None:
    mine = M.copy()
    W = V.weighted(mine)
    mine.data *= 5
    np.testing.assert_allclose(W.inner(u, v), u @ M @ v)


def test_maps_stay_maps_where_their_matrix_is_full() -> None:
    large = rz.jacobian(lambda x: 3 * x + np.mean(x))(np.zeros(100_000))
    W = (rz.R ** rz.seg(100_000)).weighted(large)
    kinds = [type(W.weights[0]), type(V.weighted(WEIGHTS["a map with few entries"][0]).weights[0])]
    assert kinds == [MapMass, Mass]
    x = np.arange(100_000.0)
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(x * x) / 2, space=W)(x), large.solve(x), rtol=1e-12)


@pytest.mark.parametrize(
    "bad, due",
    [
        (M - 10 * sp.eye_array(N), "positive definite"),
        (M - 5 * sp.diags_array(np.eye(N)[7]), "positive definite"),
        (0 * M, "positive definite"),
        (M + sp.diags_array([np.ones(N - 1)], offsets=[1]), "symmetric"),
        (sp.eye_array(3), "shape"),
        (M * np.nan, "finite"),
        (rz.jacobian(lambda x: x - U @ (U.T @ x))(np.zeros(N)), "positive definite"),
        (rz.jacobian(lambda x: x + np.sum(x) * np.arange(N))(np.zeros(N)), "symmetric"),
    ],
)
def test_what_is_no_inner_product_is_refused(bad: Any, due: str) -> None:
    with pytest.raises(rz.errors.SpaceError, match=due):
        V.weighted(bad)


def test_a_sparse_weight_has_a_sparse_root() -> None:
    root = V.weighted(FAR).weights[0].products[2]
    R = sp.coo_array((root.data, (root.summed.index, root.taken.index)), shape=(N, N)).toarray()
    np.testing.assert_allclose(R.T @ R, FAR.toarray(), atol=1e-12)


@pytest.mark.long
def test_gradients_by_a_mass_matrix_of_a_hundred_thousand_unknowns() -> None:
    m = 317
    line = sp.diags_array([np.full(m, 4.0), np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1, -1])
    mass = sp.kron(line, line).tocsr()
    W = (rz.R ** rz.seg(m * m)).weighted(mass)
    x = rng.normal(size=m * m)
    g = rz.grad(lambda x: np.sum(x**2), space=W)
    g(x)
    tracemalloc.start()
    y = g(x)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(mass @ y, 2 * x, atol=1e-10)
    assert used < 200 * m * m


def test_complex_weights_are_refused() -> None:
    with pytest.raises(rz.SpaceError, match="real numbers; got one of complex128"):
        (rz.R**2).weighted(sp.csr_array(np.array([[2, 1j], [-1j, 2]])))
