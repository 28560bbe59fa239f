"""Functions of riesz where libraries of JAX want functions of JAX: optimisers, solvers, modules, sparse matrices."""

import numpy as np
import pytest

import riesz as rz
from riesz.errors import SpaceError, TraceError

jax = pytest.importorskip("jax")
jnp = jax.numpy
rng = np.random.default_rng(0)
t = np.linspace(0.0, 1.0, 20)
wanted = np.array([2.0, 1.5])
data = wanted[0] * np.exp(-wanted[1] * t)


@pytest.fixture(autouse=True)
def _in_64_bits():
    with jax.enable_x64(True):
        yield


def residual(p, args=None):
    return p[0] * np.exp(-p[1] * t) - data


def loss(p):
    return np.sum(residual(p) ** 2)


def chain(x, np=np):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def test_optax():
    optax = pytest.importorskip("optax")
    f = jax.value_and_grad(rz.to_jax(loss))
    how = optax.adam(0.1)

    def step(carry, _):
        p, state = carry
        value, g = f(p)
        moved, state = how.update(g, state)
        return (optax.apply_updates(p, moved), state), value

    p = jnp.ones(2)
    (p, _), values = jax.jit(lambda p: jax.lax.scan(step, (p, how.init(p)), None, 300))(p)
    np.testing.assert_allclose(p, wanted, atol=1e-3)
    assert values[-1] < 1e-5 < values[0]


def test_optimistix():
    optx = pytest.importorskip("optimistix")
    how = optx.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    found = optx.least_squares(rz.to_jax(residual), how, jnp.ones(2))
    np.testing.assert_allclose(found.value, wanted, rtol=1e-8)
    root = optx.root_find(
        rz.to_jax(lambda y, a: y**3 + y - a), optx.Newton(rtol=1e-12, atol=1e-12), jnp.ones(3), jnp.arange(3.0)
    )
    np.testing.assert_allclose(root.value**3 + root.value, np.arange(3.0), atol=1e-10)


def test_jaxopt():
    jaxopt = pytest.importorskip("jaxopt")
    found = jaxopt.LBFGS(rz.to_jax(loss), maxiter=50, tol=1e-10).run(jnp.ones(2))
    np.testing.assert_allclose(found.params, wanted, rtol=1e-6)


def test_lineax():
    lx = pytest.importorskip("lineax")
    x = rng.normal(size=6)
    H = rz.hessian(chain)(x)
    b = jnp.ones(6)
    found = lx.linear_solve(H.as_lineax(), b, lx.AutoLinearSolver(well_posed=True)).value
    np.testing.assert_allclose(found, H.solve(np.ones(6)), rtol=1e-8)
    operator = lx.JacobianLinearOperator(rz.to_jax(lambda x, _: x**3 + np.roll(x, 1)), b)
    np.testing.assert_allclose(operator.mv(b), 4.0 * np.ones(6))


def test_shard_map_keeps_derivatives():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("a",))
    spec = jax.sharding.PartitionSpec("a")
    A = rng.normal(size=(4, 4))
    inner = rz.to_jax(lambda x: np.sin(x) * (A @ x))
    f = jax.shard_map(inner, mesh=mesh, in_specs=spec, out_specs=spec)
    x = rng.normal(size=4)
    due = np.cos(x) * (A @ x) + A.T @ np.sin(x)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(x), due, rtol=1e-12)


def test_flax_and_equinox_modules():
    nn = pytest.importorskip("flax.linen")

    class Small(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.LayerNorm()(nn.tanh(nn.Dense(5)(x)))
            return nn.Dense(1)(x)

    model, x = Small(), rng.normal(size=(3, 4))
    params = jax.tree.map(lambda v: v.astype(float), model.init(jax.random.key(0), x))
    loss = lambda p, x: jnp.mean(model.apply(p, x) ** 2)  # noqa: E731
    mine, theirs = rz.grad(rz.from_jax(loss, params, x))(params, x), jax.grad(loss)(params, x)
    assert jax.tree.structure(mine) == jax.tree.structure(theirs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), mine, theirs)


@pytest.mark.parametrize("make", ["function", "jitted", "read", "NumPy code"])
def test_sparse_hessians_of_jax_functions(make):
    f = {
        "function": lambda x: chain(x, jnp),
        "jitted": jax.jit(lambda x: chain(x, jnp)),
        "read": rz.from_jax(lambda x: chain(x, jnp)),
        "NumPy code": chain,
    }[make]
    x, n = rng.normal(size=8), 8
    wanted = np.asarray(jax.hessian(lambda x: chain(x, jnp))(x))
    S = rz.sparse_hessian(f)
    with pytest.raises(SpaceError, match=r"no positions yet.*call it once"):
        S.pattern  # noqa: B018
    found = jax.jit(S)(jnp.asarray(x))
    assert type(found).__name__ == "BCOO"
    assert found.nse == 3 * n - 2 == S.pattern.nnz
    np.testing.assert_allclose(found.todense(), wanted, atol=1e-10)
    np.testing.assert_allclose(S(jnp.asarray(x)).todense(), wanted, atol=1e-10)
    np.testing.assert_allclose(S(x).toarray(), wanted, atol=1e-10)
    np.testing.assert_allclose(rz.sparse_hessian(f, x).values(x), S.values(x))
    both = jax.vmap(S.values)(jnp.stack([x, 2.0 * x]))
    np.testing.assert_allclose(both[1], S.values(2.0 * x), rtol=1e-12)
    slope = jax.grad(lambda x: jnp.sum(S.values(x) ** 2))(jnp.asarray(x))
    theirs = jax.grad(lambda x: jnp.sum(jax.hessian(lambda x: chain(x, jnp))(x) ** 2))(x)
    np.testing.assert_allclose(slope, theirs, rtol=1e-10)


def test_sparse_jacobians_of_trees_and_parameters():
    f = lambda p, k: p["a"][1:] * p["b"] * k  # noqa: E731
    p = {"a": rng.normal(size=4), "b": rng.normal(size=3)}
    S = rz.sparse_jacobian(f)
    found = jax.jit(S)(jax.tree.map(jnp.asarray, p), 2.0)
    np.testing.assert_allclose(found.todense(), S(p, 2.0).toarray(), rtol=1e-14)
    np.testing.assert_allclose(S(p, 2.0).toarray()[:, 4:], np.diag(2.0 * p["a"][1:]))
    lower = rz.sparse_hessian(lambda x: jnp.sum(x[1:] * x[:-1] ** 2), lower=True)
    assert not np.triu(lower(jnp.ones(4)).todense(), 1).any()
    with pytest.raises(SpaceError, match="no form in JAX"):
        rz.sparse_jacobian(jnp.sort)(jnp.ones(3))


def test_sparse_derivatives_in_32_bits():
    with jax.enable_x64(False):
        S = rz.sparse_hessian(lambda x: jnp.sum((x[1:] - x[:-1]) ** 4))
        found = jax.jit(S)(jnp.arange(5.0))
        assert found.data.dtype == np.float32
        wanted = jax.hessian(lambda x: jnp.sum((x[1:] - x[:-1]) ** 4))(jnp.arange(5.0))
        np.testing.assert_allclose(found.todense(), wanted, rtol=1e-5)


def test_jax_code_where_numpy_code_is_due_is_told_so():
    for f in (lambda x: jnp.sum(x**2), jax.jit(lambda x: x @ x), lambda x: jax.lax.sin(x[0])):
        with pytest.raises(TraceError, match=r"rz\.from_jax\("):
            rz.grad(f)(np.ones(3))
