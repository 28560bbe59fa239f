"""Linear maps in the hands of others: SciPy's operators, sparse matrices and optimisers, JAX, lineax."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize as optimize
import scipy.sparse.linalg as linalg
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function

import riesz as rz
from riesz.runtime import tuning

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


def chain(x: Any) -> Any:
    """An energy whose Hessian is tridiagonal and positive definite."""
    return np.sum(np.cosh(x[1:] - x[:-1])) + 0.5 * x @ x


def rosenbrock(x: Any) -> Any:
    """The residuals of the extended Rosenbrock function: two for each pair of neighbours."""
    return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])


def cost(x: Any) -> Any:
    return 0.5 * np.sum(rosenbrock(x) ** 2)


H = rz.hessian(chain)(rng.normal(size=60))
TALL = rz.jacobian(rosenbrock)(np.linspace(0.1, 0.5, 12))

# -- SciPy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cg", "minres", "gmres", "bicgstab", "lgmres", "qmr", "tfqmr"])
@pytest.mark.parametrize("form", ["operator", "sparse"])
def test_scipy_iterations_solve_with_it(name: str, form: str):
    A = H.as_operator() if form == "operator" else H.to_sparse()
    b = rng.normal(size=60)
    x, info = getattr(linalg, name)(A, b, rtol=1e-11)
    assert info == 0 and np.allclose(x, H.solve(b), atol=1e-7)


def test_scipy_least_squares_of_operators():
    b = rng.normal(size=22)
    best = np.linalg.lstsq(TALL.to_dense(), b)[0]
    for A in (TALL.as_operator(), TALL.to_sparse()):
        assert np.allclose(linalg.lsqr(A, b, atol=1e-14, btol=1e-14)[0], best, atol=1e-8)
        assert np.allclose(linalg.lsmr(A, b, atol=1e-14, btol=1e-14)[0], best, atol=1e-8)


def test_scipy_eigenvalues_and_singular_values():
    values = np.linalg.eigvalsh(H.to_dense())
    for A in (H.as_operator(), H.to_sparse()):
        assert np.allclose(np.sort(linalg.eigsh(A, k=3, which="LA", return_eigenvectors=False)), values[-3:])
        assert np.allclose(np.sort(linalg.svds(A, k=3, return_singular_vectors=False, random_state=0)), values[-3:])
    norm = np.abs(H.to_dense()).sum(0).max()
    np.random.seed(0)  # onenormest draws from the global generator
    assert 0.3 * norm <= linalg.onenormest(H.as_operator()) <= norm * (1 + 1e-12)
    v = rng.normal(size=60)
    assert np.allclose(linalg.expm_multiply(-0.1 * H.to_sparse(), v), linalg.expm(-0.1 * H.to_dense()) @ v)


def test_scipy_direct_solvers_take_the_sparse_matrix():
    b = rng.normal(size=60)
    assert np.allclose(linalg.spsolve(H.to_sparse(), b), H.solve(b))
    assert np.allclose(linalg.splu(H.to_sparse("csc")).solve(b), H.solve(b))


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_operators_agree_with_the_matrix_both_ways(seed: int, inputs: int):
    f, args = random_function(seed, inputs)
    L = rz.jacobian(f, tuple(range(inputs)))(*args)
    A, D = L.as_operator(), L.to_dense()
    V, W = rng.normal(size=(L.shape[1], 2)), rng.normal(size=(L.shape[0], 2))
    assert A.shape == D.shape
    for left, right in (
        (A @ V, D @ V),
        (A @ V[:, 0], D @ V[:, 0]),
        (A.H @ W, D.T @ W),
        (A.T @ W[:, 0], D.T @ W[:, 0]),
        (L.to_sparse() @ V, D @ V),
    ):
        assert np.allclose(left, right, atol=1e-9 * (1 + np.abs(D).max(initial=0)))


@pytest.mark.parametrize("form", ["to_sparse", "to_dense", "as_operator"])
def test_least_squares_takes_the_jacobian(form: str):
    """The sparse Jacobian of a chain of unknowns: the same pattern at every point, no finite differences."""
    seen: list[Any] = []

    def jac(x: Any) -> Any:
        seen.append(getattr(rz.jacobian(rosenbrock)(x), form)())
        return seen[-1]

    found = optimize.least_squares(rosenbrock, np.full(12, -1.2), jac=jac, max_nfev=500)
    assert found.success and np.allclose(found.x, 1.0, atol=1e-5)
    if form == "to_sparse":
        assert len(seen) > 2 and all([np.array_equal(S.indices, seen[0].indices) and S.nnz == 33 for S in seen])


@pytest.mark.parametrize("form", ["to_sparse", "to_dense", "as_operator"])
def test_trust_constr_takes_the_hessian(form: str):
    hess = rz.hessian(cost)
    bounds = optimize.Bounds(-2.0, 0.8)
    found = optimize.minimize(
        cost,
        np.full(5, -0.5),
        jac=rz.grad(cost),
        hess=lambda x: getattr(hess(x), form)(),
        method="trust-constr",
        bounds=bounds,
        options={"gtol": 1e-8},
    )
    same = optimize.minimize(
        cost, found.x, jac=rz.grad(cost), method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10}
    )
    assert found.fun == pytest.approx(same.fun, rel=1e-4)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_minimize_takes_products_with_the_hessian(method: str):
    hess = rz.hessian(cost)
    for product in (lambda x, p: hess(x).matvec(p), lambda x, p: rz.hvp(cost, (x,), (np.asarray(p, float),))):
        found = optimize.minimize(
            cost, np.full(5, 0.7), jac=rz.grad(cost), hessp=product, method=method, options={"maxiter": 1000}
        )
        assert np.allclose(found.x, 1.0, atol=1e-3)


@pytest.mark.parametrize("method", ["dogleg", "trust-exact", "Newton-CG"])
def test_minimize_takes_dense_hessians(method: str):
    found = optimize.minimize(
        chain, np.full(6, 2.0), jac=rz.grad(chain), hess=lambda x: rz.hessian(chain)(x).to_dense(), method=method
    )
    assert np.allclose(found.x, 0.0, atol=1e-4)


def test_root_takes_the_jacobian():
    f = lambda x: x + 0.1 * np.sin(x[::-1]) - 1.0  # noqa: E731
    assert optimize.root(f, np.zeros(4), jac=lambda x: rz.jacobian(f)(x).to_dense()).success


# -- JAX and lineax ------------------------------------------------------------------------------------------


@pytest.fixture(params=["matrix", "calls"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With a matrix, and without one."""
    if request.param == "calls":
        monkeypatch.setattr(tuning, "JAX_MATRIX_NUMBERS", -1)
    return request.param


@pytest.mark.parametrize(
    "L", [H, TALL, rz.jacobian(lambda x: x / np.sum(x))(np.ones(5)), rz.jacobian(np.cumsum)(np.ones(4))]
)
def test_jax_functions_are_linear_for_jax(L: rz.LinearMap, way: str):
    f, D = L.to_jax(), L.to_dense()
    v, w = [jnp.asarray(rng.normal(size=n)) for n in reversed(L.shape)]
    near = {"rtol": 1e-11}
    assert np.allclose(jax.jit(f)(v), D @ v, **near)
    if way == "matrix":
        assert np.allclose(jax.vmap(f)(jnp.stack([v, 2 * v])), np.stack([D @ v, 2 * D @ v]), **near)
    assert np.allclose(jax.grad(lambda v: w @ f(jnp.sin(v)))(v), np.cos(v) * (D.T @ w), **near)
    assert np.allclose(jax.jvp(f, (v,), (2 * v,))[1], 2 * D @ v, **near)
    assert np.allclose(jax.linear_transpose(f, v)(w)[0], D.T @ w, **near)


def test_jax_gets_a_sparse_matrix_where_there_is_one():
    n = 20_000
    f = rz.hessian(chain)(np.zeros(n)).to_jax()
    sizes = [c.size for c in jax.make_jaxpr(f)(jnp.ones(n)).consts]
    assert sizes and max(sizes) <= 2 * 3 * n


def test_lineax_operators(way: str):
    lineax = pytest.importorskip("lineax")
    op = H.as_lineax()
    v = jnp.asarray(rng.normal(size=60))
    assert np.allclose(op.mv(v), H.to_dense() @ v) and np.allclose(op.T.mv(v), H.to_dense().T @ v)
    assert lineax.is_symmetric(op) and not lineax.is_positive_semidefinite(op)
    assert (op.in_size(), op.out_size()) == H.shape
    normal = TALL.gram() + rz.LinearMap.of(rz.id.at(TALL.domain)).gram()
    op = normal.as_lineax()
    assert lineax.is_positive_semidefinite(op)
    b = rng.normal(size=12)
    found = lineax.linear_solve(op, jnp.asarray(b), lineax.CG(rtol=1e-8, atol=1e-8)).value
    assert np.allclose(found, normal.solve(b))
    tall = TALL.as_lineax()
    assert not lineax.is_symmetric(tall) and (tall.in_size(), tall.out_size()) == (12, 22)


def test_weighted_spaces_are_not_tagged():
    lineax = pytest.importorskip("lineax")
    L = rz.hessian(chain, space=(rz.R ** rz.seg(3)).weighted(np.array([1.0, 2.0, 3.0])))(np.ones(3))
    assert not lineax.is_symmetric(L.as_lineax())


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_jax", "jax.experimental.sparse", r"riesz\[jax\]"), ("as_lineax", "lineax", "lineax")],
)
def test_what_is_missing_is_named(method: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(rz.errors.RieszError, match=f"pip install '?{extra}"):
        getattr(H, method)()
