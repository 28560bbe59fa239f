"""Tasks of practitioners in examples/tasks: code as people write it, against closed forms, differences and JAX."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import riesz as rz

jax.config.update("jax_enable_x64", True)
TASKS = Path(__file__).parent.parent / "examples" / "tasks"
sys.path.insert(0, str(TASKS.parent))


def task(name: str) -> Any:
    return importlib.import_module(f"tasks.{name}")


def slope(f: Any, x: Any, v: Any, h: float = 1e-5) -> Any:
    """The derivative along v, by differences of fourth order."""
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / (12 * h)


def rng() -> Any:
    return np.random.default_rng(5)


def test_least_squares_finds_what_scipy_finds_by_differences():
    fits = task("nonlinear_fits")
    t, y, _ = fits.data(rng())
    start = np.array([1.0, 2.0, 0.5, 1.8, 0.4, 0.0])
    plain = scipy.optimize.least_squares(lambda p: fits.curve(p, t) - y, start, xtol=1e-14, ftol=1e-14)
    assert fits.fit(t, y, start).cost == pytest.approx(plain.cost, rel=1e-5)
    assert fits.fit(t, y, start, loss="soft_l1").success


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg"])
def test_robust_fits(method):
    fits = task("nonlinear_fits")
    t, y, truth = fits.data(rng())
    y[::9] += 1.0
    q = np.array([*truth, -3.0, 1.0])
    found = fits.robust_fit(t, y, q, method)
    f = lambda q: fits.negative_log_likelihood(q, t, y)  # noqa: E731
    v = rng().normal(size=8)
    np.testing.assert_allclose(rz.grad(f)(q) @ v, slope(f, q, v), rtol=1e-7)
    assert found.fun < f(q) and np.max(np.abs(found.jac)) < 1e-2
    assert np.max(np.abs(fits.curve(found.x[:6], t) - fits.curve(truth, t))) < 0.02


def test_constraints_with_sparse_jacobians():
    fits = task("nonlinear_fits")
    found = fits.hanging_chain(8, length=0.4)
    assert np.max(np.abs(fits.chain_lengths(found.x, 3.0, 0.35))) > 1e-3  # another length is another chain
    assert np.max(np.abs(fits.chain_lengths(found.x, 3.0, 0.4))) < 1e-7
    J = rz.jacobian(lambda u: fits.chain_lengths(u, 3.0, 0.4))(found.x)
    assert J.to_sparse().nnz <= 4 * 9
    multipliers = np.linalg.lstsq(J.to_dense().T, rz.grad(fits.chain_energy)(found.x))[0]
    np.testing.assert_allclose(J.to_dense().T @ multipliers, rz.grad(fits.chain_energy)(found.x), atol=1e-5)


def test_pose_graph():
    poses = task("pose_graph")
    start, edges, measured, truth = poses.data(rng(), n=12, loops=6)
    f = lambda u: poses.cost(u, edges, measured)  # noqa: E731
    v = rng().normal(size=start.size)
    np.testing.assert_allclose(rz.grad(f)(start) @ v, slope(f, start, v), rtol=1e-7)
    np.testing.assert_allclose(rz.hvp(f)(start, v), slope(rz.grad(f), start, v), rtol=1e-6, atol=1e-6)
    r = lambda u: poses.residuals(u, edges, measured)  # noqa: E731
    L = rz.jacobian(r)(start)
    np.testing.assert_allclose(L(v), slope(r, start, v), rtol=1e-7, atol=1e-7)
    assert L.to_sparse().nnz <= 2 * 3 * r(start).size
    found = poses.gauss_newton(start, edges, measured)
    assert f(found) < f(start) and np.max(np.abs(found.reshape(-1, 3) - truth[1:])) < 0.2


def test_finite_elements():
    poisson = task("nonlinear_poisson")
    setting = poisson.problem(6)
    free, tri, area, _, _, nodes = setting
    uf = poisson.newton(*setting)
    assert np.max(np.abs(poisson.residual(uf, *setting))) < 1e-12
    J = rz.jacobian(poisson.residual)(uf, *setting)
    by_differences = np.stack([slope(lambda u: poisson.residual(u, *setting), uf, e) for e in np.eye(len(uf))], axis=1)
    np.testing.assert_allclose(J.to_dense(), by_differences, atol=1e-8)
    assert J.to_sparse().nnz <= 7 * len(uf)
    M = poisson.mass_matrix(free, tri, area, nodes)
    g = rz.grad(lambda u: poisson.energy(u, M), space=(rz.R ** len(uf)).weighted(M))(uf)
    np.testing.assert_allclose(M @ g, rz.grad(lambda u: poisson.energy(u, M))(uf), atol=1e-15)


def test_gaussian_process_and_laplace():
    gp = task("gaussian_process_evidence")
    X, y = gp.data(rng(), 15)
    p = np.array([0.1, 0.2, -0.3, -1.5])
    assert gp.negative_log_evidence(p, X, y) == pytest.approx(gp.by_scipy(p, X, y), rel=1e-10)
    for f in (gp.negative_log_evidence, gp.by_scipy, gp.posterior):
        by_differences = [slope(lambda q: f(q, X, y), p, e) for e in np.eye(4)]  # noqa: B023
        np.testing.assert_allclose(rz.grad(f)(p, X, y), by_differences, rtol=1e-6, atol=1e-7)
    mode, H, evidence = gp.laplace(X, y, np.zeros(4))
    g = rz.grad(gp.posterior)
    dense = np.stack([slope(lambda q: g(q, X, y), mode, e) for e in np.eye(4)], axis=1)
    np.testing.assert_allclose(H.to_dense(), dense, rtol=1e-5, atol=1e-5)
    expected = -gp.posterior(mode, X, y) + 2 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(dense)[1]
    assert evidence == pytest.approx(expected, abs=1e-4)


@pytest.mark.long
def test_training_and_gradients_of_examples(monkeypatch):
    training = task("transformer_training")
    p = training.parameters(rng())
    tokens, labels = next(training.batches(rng(), 1, 6))
    ours = rz.grad(training.loss)(p, tokens, labels)
    monkeypatch.setattr(training, "np", jnp)
    traced = jax.tree.map(jnp.asarray, p)
    theirs = jax.jit(jax.grad(training.loss))(traced, jnp.asarray(tokens), jnp.asarray(labels))
    one = jax.grad(lambda p, t, y: training.loss(p, t[None], y[None]))
    rows = jax.jit(jax.vmap(one, (None, 0, 0)))(traced, tokens, labels)
    monkeypatch.setattr(training, "np", np)
    for k in p:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), ours[k], theirs[k])
    norms = np.sqrt(sum([np.sum(np.asarray(a).reshape(6, -1) ** 2, axis=1) for a in jax.tree.leaves(rows)]))
    np.testing.assert_allclose(training.example_norms(p, tokens, labels), norms, rtol=1e-10)
    _, losses = training.adam(training.loss, p, training.batches(rng(), 30))
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


@pytest.mark.long
def test_training_inside_jax_and_torch():
    training = task("transformer_training")
    p = training.parameters(rng())
    tokens, labels = next(training.batches(rng(), 1, 6))
    ours = rz.grad(training.loss)(p, tokens, labels)
    compiled = rz.compile(lambda w: training.loss(p | {"head": w}, tokens, labels), p["head"], backend="jax")
    inside = jax.jit(jax.grad(lambda w: 2.0 * compiled(w)))(jnp.asarray(p["head"]))
    np.testing.assert_allclose(inside, 2 * ours["head"], atol=1e-12)
    torch = pytest.importorskip("torch")
    f = rz.compile(lambda w: training.loss(p | {"head": w}, tokens, labels), p["head"]).to_torch()
    w = torch.tensor(p["head"], requires_grad=True)
    f(w).backward()
    np.testing.assert_allclose(w.grad.numpy(), ours["head"], atol=1e-12)


def test_integrator_and_multiple_shooting():
    shooting = task("multiple_shooting")
    p, y0 = np.array([1.2, 0.3]), np.array([1.0, 0.5])
    final = lambda p: np.sum(shooting.integrate(y0, p, 0.01, 400) ** 2)  # noqa: E731
    by_differences = [slope(final, p, e, 1e-4) for e in np.eye(2)]
    np.testing.assert_allclose(rz.grad(final)(p), by_differences, rtol=1e-6)
    kept = lambda p: shooting.written(y0, p, 0.05, 12)[-1]  # noqa: E731
    whole = lambda p: shooting.integrate(y0, p, 0.05, 12)  # noqa: E731
    np.testing.assert_allclose(rz.jacobian(kept)(p).to_dense(), rz.jacobian(whole)(p).to_dense(), atol=1e-12)
    truth, observed = shooting.data(rng())
    start = np.stack([observed, np.gradient(observed, 0.4)], axis=1)
    s, found = shooting.shoot(start, np.array([1.0, 0.0]), observed, 0.05, 8)
    assert np.max(np.abs(found - [1.2, 0.3])) < 0.02 and np.max(np.abs(s - truth)) < 0.02
    L = rz.jacobian(shooting.residuals, (0, 1))(s, found, observed, 0.05, 8)
    J, r = L.to_dense(), L.codomain.flatten(shooting.residuals(s, found, observed, 0.05, 8))
    np.testing.assert_allclose(J.T @ r, 0.0, atol=1e-7)  # a least-squares solution
    states = J[:, : s.size]
    assert np.all(np.triu((states.T @ states), 4) == 0.0)  # block-tridiagonal


def test_tables():
    prices = task("price_table")
    t = prices.table(rng(), 2000, 20, 7)
    d, e = np.linspace(0.05, 0.2, 7), 1.5
    grouped = np.zeros(7)
    for i in range(2000):  # row by row
        k, price = t["kind"][i], t["price"][i] * (1 - d[t["kind"][i]])
        grouped[k] += price * t["count"][i] * (price / t["price"][i]) ** -e / (1 + t["tax"][t["shop"][i]])
    np.testing.assert_allclose(prices.by_numpy(d, e, t), grouped, rtol=1e-12)
    np.testing.assert_allclose(rz.function(lambda d: prices.by_relations(d, e, t))(d), grouped, rtol=1e-12)
    analytic = np.diag(-(1 - e) * grouped / (1 - d))
    np.testing.assert_allclose(rz.jacobian(prices.by_numpy)(d, e, t).to_dense(), analytic, rtol=1e-12)
    np.testing.assert_allclose(rz.jacobian(lambda d: prices.by_relations(d, e, t))(d).to_dense(), analytic, rtol=1e-12)
    best = prices.best_discounts(2.5, t)
    np.testing.assert_allclose(rz.grad(prices.profit)(best, 2.5, t), 0.0, atol=1e-8)


def test_roots_inside_functions():
    implicit = task("implicit_equilibrium")
    coupons = np.array([5.0] * 9 + [105.0])
    r, years = implicit.yield_to_maturity(95.0, coupons), np.arange(1, 11)
    slope_of_price = -np.sum(years * coupons / (1 + r) ** (years + 1))
    assert rz.grad(implicit.yield_to_maturity)(95.0, coupons) == pytest.approx(1 / slope_of_price, rel=1e-10)
    t = np.array([0.1, 0.4, 0.7])
    E = implicit.kepler(2 * np.pi * t, 0.3)
    dE = np.sin(E) / (1 - 0.3 * np.cos(E))
    found = rz.jacobian(lambda e: implicit.kepler(2 * np.pi * t, e))(0.3).to_dense()[:, 0]
    np.testing.assert_allclose(found, dE, rtol=1e-9)
    setting = implicit.economy(rng())
    f = lambda tax: implicit.welfare(tax, *setting)  # noqa: E731
    assert rz.grad(f)(0.3) == pytest.approx(slope(f, 0.3, 1.0, 1e-3), rel=1e-7)
    assert rz.grad(rz.grad(f))(0.3) == pytest.approx(slope(rz.grad(f), 0.3, 1.0, 1e-3), rel=1e-5)
    A, A_test, b, b_test = *rng().normal(size=(2, 9, 4)), *rng().normal(size=(2, 9))

    def closed(s: float) -> float:
        w = np.linalg.solve(A.T @ A + np.exp(s) * np.eye(4), A.T @ b)
        return np.sum((A_test @ w - b_test) ** 2)

    found = rz.grad(implicit.ridge)(0.2, A, b, A_test, b_test)
    assert found == pytest.approx(rz.grad(closed)(0.2), rel=1e-8)


def test_predictive_control_swings_a_pendulum_up_and_holds_it():
    pytest.importorskip("casadi")
    loop = task("predictive_control")
    states, torques = loop.control(55, "ipopt")
    assert np.abs(states[-5:] - [np.pi, 0.0]).max() < 0.1 and np.abs(torques).max() <= 1.5 * (
        1 + 1e-7
    )  # Ipopt relaxes bounds by 1e-8
    z = loop.program().solve("ipopt", parameters=states[3]).x
    np.testing.assert_allclose(loop.motion(z, states[3])["steps"], 0.0, atol=1e-7)
    np.testing.assert_allclose(z["x"][0], states[3], atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted([f.stem for f in TASKS.glob("*.py")]))
def test_every_task_runs(name, capsys):
    runpy.run_path(str(TASKS / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
