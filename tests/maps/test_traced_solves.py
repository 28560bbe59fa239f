"""A(p).solve(b) inside a traced function keeps the structure of A: values and derivatives against dense JAX."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz
from riesz.programs.program import Program

jax.config.update("jax_enable_x64", True)
N = 40
rng = np.random.default_rng(3)
B, P, U = rng.normal(size=N), rng.uniform(0.5, 1.0, N), rng.normal(size=N)
LOW = rng.normal(size=(N, 2)) / 8


def tridiagonal(u: Any, p: Any, xp: Any = np) -> Any:
    zero = xp.zeros(1)
    side = xp.concatenate([p[1:] * u[1:], zero]) + 2 * xp.concatenate([zero, xp.sin(p[:-1]) * u[:-1]])
    return (4 + p**2) * u + u**3 / 3 - side


def grid(u: Any, p: Any, xp: Any = np) -> Any:
    v = xp.reshape(u, (5, 8))
    return xp.ravel((5 + xp.reshape(p, (5, 8)) ** 2) * v - xp.roll(v, 1, 0) - xp.roll(v, -1, 1) + p[0] * v**2)


def low_rank(u: Any, p: Any, xp: Any = np) -> Any:
    return (2 + p) * u + (LOW * p[:, None]) @ (LOW.T @ xp.sin(u))


def blocks(u: Any, p: Any, xp: Any = np) -> Any:
    w, v = xp.reshape(p, (10, 4)), xp.reshape(u, (10, 4))
    return xp.ravel(3 * v + w * xp.sum(w * v, 1, keepdims=True) ** 3)


FAMILIES = {"tridiagonal": tridiagonal, "grid": grid, "low rank": low_rank, "blocks": blocks}
families = pytest.mark.parametrize("name", FAMILIES)


def solution(name: str, p: Any, b: Any, **how: Any) -> Any:
    return rz.jacobian(lambda u: FAMILIES[name](u, p))(U).solve(b, **how)


def expected(name: str, p: Any, b: Any) -> Any:
    return jnp.linalg.solve(jax.jacobian(lambda u: FAMILIES[name](u, p, jnp))(U), b)


def loss(name: str, p: Any, b: Any = B) -> Any:
    return np.sum(np.sin(solution(name, p, b * p)) * p)


def reference(name: str, p: Any, b: Any = B) -> Any:
    return jnp.sum(jnp.sin(expected(name, p, b * p)) * p)


def steps(f: Any, *args: Any) -> list[str]:
    """The titles of the steps that a function is traced to."""
    program: Program = rz.derive(f, *args).value.program
    return [op.title for op in program.ops if hasattr(op, "title")]


@families
def test_value_gradient_and_second_order_are_those_of_the_dense_system(name: str) -> None:
    f = lambda p: loss(name, p)  # noqa: E731
    np.testing.assert_allclose(f(P), reference(name, P), rtol=1e-12)
    np.testing.assert_allclose(rz.grad(f)(P), jax.grad(lambda p: reference(name, p))(P), rtol=1e-9, atol=1e-12)
    H = jax.hessian(lambda p: reference(name, p))(P)
    np.testing.assert_allclose(rz.hessian(f)(P).to_dense(), H, rtol=1e-8, atol=1e-10)
    v = np.cos(np.arange(N))
    np.testing.assert_allclose(rz.jvp(f, (P,), (v,))[1], jax.grad(lambda p: reference(name, p))(P) @ v, rtol=1e-9)


def test_third_order(name: str = "tridiagonal") -> None:
    v = np.cos(np.arange(N))
    along = lambda f, d: lambda t: d(d(d(f)))(t)  # noqa: E731
    ours = along(lambda t: loss(name, P + t * v), rz.grad)(0.1)
    theirs = along(lambda t: reference(name, P + t * v), jax.grad)(0.1)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)


@families
def test_the_jacobian_of_a_solution_in_both(name: str) -> None:
    J = rz.jacobian(lambda p, b: solution(name, p, b), argnums=(0, 1))(P, B)
    dp, db = jax.jacobian(lambda p, b: expected(name, p, b), argnums=(0, 1))(P, B)
    np.testing.assert_allclose(J.to_dense(), np.hstack([dp, db]), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(J.T.to_dense(), np.hstack([dp, db]).T, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", ["tridiagonal", "low rank"])
@pytest.mark.parametrize("backend", ["auto", "numpy", "numba", "jax"])
def test_compiled(name: str, backend: str) -> None:
    f = rz.compile(rz.value_and_grad(lambda p: loss(name, p)), backend=backend)
    value, gradient = f(P)
    np.testing.assert_allclose(value, reference(name, P), rtol=1e-9)
    np.testing.assert_allclose(gradient, jax.grad(lambda p: reference(name, p))(P), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", ["tridiagonal", "low rank"])
def test_mapped(name: str) -> None:
    many = np.stack([P, P**2, P + 0.1])
    theirs = jax.vmap(jax.grad(lambda p: reference(name, p)))(many)
    np.testing.assert_allclose(rz.vmap(rz.grad(lambda p: loss(name, p)))(many), theirs, rtol=1e-9, atol=1e-12)
    sides = rng.normal(size=(3, N))
    ours = rz.vmap(lambda b: solution(name, P, b))
    np.testing.assert_allclose(ours(sides), jax.vmap(lambda b: expected(name, P, b))(sides), rtol=1e-9)
    both = rz.grad(lambda p: np.sum(rz.vmap(lambda b: solution(name, p, b) ** 2)(sides)))(P)
    dense = jax.grad(lambda p: jnp.sum(jax.vmap(lambda b: expected(name, p, b) ** 2)(sides)))(P)
    np.testing.assert_allclose(both, dense, rtol=1e-8, atol=1e-11)


@families
def test_columns_transposes_sums_and_products_of_maps(name: str) -> None:
    C = rng.normal(size=(N, 3))

    def ours(p: Any, solve: Any = lambda M, b: M.solve(b), xp: Any = np, jac: Any = None) -> Any:
        J = rz.jacobian(lambda u: FAMILIES[name](u, p))(U)
        M = J.T @ J + p[0] * J
        return np.sum(J.solve(C) ** 2) + np.sum(J.T.solve(p) ** 3) + np.sum(M.solve(B) ** 2)

    def theirs(p: Any) -> Any:
        J = jax.jacobian(lambda u: FAMILIES[name](u, p, jnp))(U)
        M = J.T @ J + p[0] * J
        solve = jnp.linalg.solve
        return jnp.sum(solve(J, C) ** 2) + jnp.sum(solve(J.T, p) ** 3) + jnp.sum(solve(M, B) ** 2)

    np.testing.assert_allclose(ours(P), theirs(P), rtol=1e-10)
    np.testing.assert_allclose(rz.grad(ours)(P), jax.grad(theirs)(P), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", ["dense", "sparse", "gmres", "iterative"])
def test_methods_are_passed_on(method: str) -> None:
    f = lambda p: np.sum(solution("tridiagonal", p, B, method=method) ** 2)  # noqa: E731
    theirs = jax.grad(lambda p: jnp.sum(expected("tridiagonal", p, B) ** 2))(P)
    np.testing.assert_allclose(rz.grad(f)(P), theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)], ids=["tall", "wide"])
def test_least_squares_differentiate_to_second_order(shape: tuple[int, int]) -> None:
    m, n = shape
    b = rng.normal(size=m)

    def matrix(u: Any, p: Any, xp: Any) -> Any:
        w = xp.concatenate([u, u])[:m]
        return w * (2 + p[0] * xp.cos(xp.arange(m) * p[1])) + xp.roll(w, 1) * p[2]

    def ours(p: Any) -> Any:
        return np.sum(rz.jacobian(lambda u: matrix(u, p, np))(np.ones(n)).solve(b * p[0]) ** 3)

    def theirs(p: Any) -> Any:
        return jnp.sum((jnp.linalg.pinv(jax.jacobian(lambda u: matrix(u, p, jnp))(np.ones(n))) @ (b * p[0])) ** 3)

    at = np.array([0.7, 1.3, 0.4])
    assert "solve_map" in steps(ours, at)
    np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-9)
    np.testing.assert_allclose(rz.grad(ours)(at), jax.grad(theirs)(at), rtol=1e-8)
    np.testing.assert_allclose(rz.hessian(ours)(at).to_dense(), jax.hessian(theirs)(at), rtol=1e-7)


def test_single_precision_stays_single() -> None:
    p, b, u = [x.astype(np.float32) for x in (P, B, U)]
    f = lambda p: np.sum(rz.jacobian(lambda u: tridiagonal(u, p))(u).solve(b) ** 2)  # noqa: E731
    g = rz.grad(f)(p)
    assert g.dtype == np.float32
    theirs = jax.grad(lambda p: jnp.sum(expected("tridiagonal", p, B) ** 2))(P)
    np.testing.assert_allclose(g, theirs, rtol=2e-3, atol=1e-4)


def test_trees_of_unknowns_and_parameters() -> None:
    def f(p: Any) -> Any:
        def residual(u: Any) -> Any:
            return {"x": p["a"] * u["x"] * 3 + u["y"][0], "y": u["y"] * p["c"] + u["x"][:, None].T}

        J = rz.jacobian(residual)({"x": np.zeros(N), "y": np.zeros((1, N))})
        z = J.solve({"x": B, "y": p["c"] * np.ones((1, N))})
        return np.sum(z["x"] ** 2) + np.sum(z["y"] ** 3)

    def g(p: Any) -> Any:
        M = jnp.block([[jnp.diag(3 * p["a"]), jnp.eye(N)], [jnp.eye(N), p["c"] * jnp.eye(N)]])
        z = jnp.linalg.solve(M, jnp.concatenate([B, p["c"] * jnp.ones(N)]))
        return jnp.sum(z[:N] ** 2) + jnp.sum(z[N:] ** 3)

    at = {"a": P, "c": 2.5}
    ours, theirs = rz.grad(f)(at), jax.grad(g)(at)
    np.testing.assert_allclose(ours["a"], theirs["a"], rtol=1e-9)
    np.testing.assert_allclose(ours["c"], theirs["c"], rtol=1e-9)


def test_in_loops_and_newton_by_hand() -> None:
    def ours(p: Any) -> Any:
        def step(u: Any) -> Any:
            return u - rz.jacobian(lambda v: tridiagonal(v, p))(u).solve(tridiagonal(u, p) - B)

        return np.sum(rz.fori_loop(0, 4, lambda i, u: step(u), np.zeros(N)) ** 2)

    def theirs(p: Any) -> Any:
        u = jnp.zeros(N)
        for _ in range(4):
            u = u - jnp.linalg.solve(jax.jacobian(lambda v: tridiagonal(v, p, jnp))(u), tridiagonal(u, p, jnp) - B)
        return jnp.sum(u**2)

    np.testing.assert_allclose(ours(P), theirs(P), rtol=1e-10)
    np.testing.assert_allclose(rz.grad(ours)(P), jax.grad(theirs)(P), rtol=1e-8, atol=1e-10)


def test_singular_at_the_point_is_an_error() -> None:
    f = rz.grad(lambda p: np.sum(rz.jacobian(lambda u: p * u + np.roll(p * u, 1))(U).solve(B)))
    with pytest.raises(rz.errors.SolveError, match="singular"):
        f(np.ones(N))


def test_one_factorisation_for_value_and_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    honest = rz.LinearMap.factorised
    count = lambda self, *how: made.append(self) or honest(self, *how)  # noqa: E731
    monkeypatch.setattr(rz.LinearMap, "factorised", count)
    g = rz.grad(lambda p: loss("tridiagonal", p))
    for p in (P, P * 1.1, P * 1.2):
        made.clear()
        g(p)
        assert len(made) == 1


def test_arrays_that_are_used_again_for_other_numbers() -> None:
    g = rz.grad(lambda p: loss("grid", p))
    p = P.copy()
    first = g(p)
    p *= 1.3
    np.testing.assert_allclose(g(p), jax.grad(lambda p: reference("grid", p))(1.3 * P), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(g(P), first, rtol=1e-14)


def test_programs_with_solves_are_pickled() -> None:
    D = rz.derive(lambda p: loss("tridiagonal", p), P)
    again = pickle.loads(pickle.dumps(D))
    np.testing.assert_allclose(again.adjoint(P)(1.0), D.adjoint(P)(1.0), rtol=1e-12)


def test_small_systems_are_written_out_and_large_ones_are_one_step() -> None:
    J = lambda n: lambda p: rz.jacobian(lambda u: p * u + np.cumsum(u)[::-1])(np.ones(n)).solve(p)  # noqa: E731
    assert "solve_map" not in steps(J(5), np.ones(5))
    assert steps(lambda p: solution("tridiagonal", p, B), P).count("solve_map") == 1


def tridiagonal_loss(n: int) -> Any:
    b, u = np.cos(np.arange(n)), np.sin(np.arange(n))
    return lambda p: np.sum(rz.jacobian(lambda v: tridiagonal(v, p))(u).solve(b) ** 2)


def peak(f: Any, *args: Any) -> int:
    tracemalloc.start()
    f(*args)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@pytest.mark.long
@pytest.mark.parametrize("order", [1, 2])
def test_memory_grows_with_the_structure(order: int) -> None:
    used: list[float] = []
    for n in (10_000, 100_000):
        f, p = tridiagonal_loss(n), np.linspace(0.5, 1.0, n)
        g = rz.grad(f) if order == 1 else lambda p, f=f: rz.hvp(f)(p, np.ones_like(p))
        g(p)
        used.append(peak(g, 1.1 * p) / n)
    assert used[1] < 8 * 200 and used[1] < 1.5 * used[0] + 100  # numbers for each unknown


@pytest.mark.long
def test_a_grid_of_ninety_thousand_unknowns() -> None:
    m = 300
    source = np.ones((m, m))

    def f(k: Any) -> Any:
        def residual(u: Any) -> Any:
            v = np.pad(u, 1)
            return k * (4 * u - v[2:, 1:-1] - v[:-2, 1:-1] - v[1:-1, 2:] - v[1:-1, :-2]) + u**3

        return np.sum(rz.jacobian(residual)(np.zeros((m, m))).solve(source) ** 2) / m**2

    k = 1.0 + 0.1 * np.random.default_rng(0).uniform(size=(m, m))
    g = rz.grad(f)(k)
    assert peak(rz.grad(f), k) < 400e6  # SuperLU's own numbers are not counted; a dense matrix has 65e9 bytes
    d = np.zeros_like(k)
    d[m // 2, m // 3] = 1e-3
    np.testing.assert_allclose((f(k + d) - f(k - d)) / 2e-3, g[m // 2, m // 3], rtol=1e-4)


@pytest.mark.parametrize("symmetric", [True, False])
def test_tridiagonal_solves_are_jaxs_own_there(symmetric):
    n = 60
    rng = np.random.default_rng(5)
    p, u, b = rng.uniform(0.5, 1.0, n), rng.normal(size=n), rng.normal(size=n)

    def loss(p):
        def residual(u):
            flow = p[1:] * (u[1:] - u[:-1])
            back = flow if symmetric else flow * p[:-1]
            return u + u**3 / 3 - np.concatenate([flow, [0.0]]) + np.concatenate([[0.0], back])

        return np.sum(rz.jacobian(residual)(u).solve(b) ** 2)

    g = rz.grad(loss)
    compiled = rz.compile(g, p, backend="jax")
    np.testing.assert_allclose(compiled(p), g(p), rtol=1e-11)
    assert "solve_tridiagonal" in compiled.source and "call" not in compiled.explain()
    v = rng.normal(size=n)
    second = rz.compile(lambda p: rz.hvp(loss, (p,), (v,)), p, backend="jax")
    np.testing.assert_allclose(second(p), rz.hvp(loss, (p,), (v,)), rtol=1e-10)
