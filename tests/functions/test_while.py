"""Loops that end when values say so: while_loop, loop with until, fori_loop with traced bounds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz


def heron(a: Any, max_steps: int | None = None) -> Any:
    """√a, by as many rounds as it takes."""
    return rz.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0, max_steps)


def unrolled(a: Any, rounds: int) -> Any:
    x = 1.0
    for _ in range(rounds):
        x = 0.5 * (x + a / x)
    return x


def rounds_of(a: float) -> int:
    x, n = 1.0, 0
    while abs(x * x - a) > 1e-12:
        x, n = 0.5 * (x + a / x), n + 1
    return n


@pytest.mark.parametrize("a", [1.0, 4.0, 2.0, 300.0])
@pytest.mark.parametrize("max_steps", [None, 12, 40, 2000])
def test_derivatives_are_those_of_the_rounds_that_ran(a: float, max_steps: int | None) -> None:
    f, n = (lambda a: heron(a, max_steps)), rounds_of(a)
    assert heron(a, max_steps) == rz.function(f)(a) == unrolled(a, n)
    once = lambda a: unrolled(a, n) + 0.0 * a  # noqa: E731
    np.testing.assert_allclose(rz.grad(f)(a), rz.grad(once)(a), rtol=1e-13)
    np.testing.assert_allclose(rz.jvp(f, (a,), (1.0,))[1], rz.grad(once)(a), rtol=1e-13)
    np.testing.assert_allclose(rz.hessian(f)(a).to_dense(), rz.hessian(once)(a).to_dense(), rtol=1e-10, atol=1e-14)


def test_it_ends_after_max_steps() -> None:
    for most in (0, 1, 5, 32, 33, 100, 1057):
        f = lambda x, most=most: rz.while_loop(lambda y: y > -1.0, lambda y: y + x, x, most)  # noqa: E731
        assert f(1.0) == rz.function(f)(1.0) == most + 1
        assert rz.grad(f)(1.0) == most + 1
    with pytest.raises(rz.SpaceError, match="max_steps"):
        rz.while_loop(lambda x: x > 0, lambda x: x - 1, 1.0, "many")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("n", [31, 32, 33, 1056, 1057, 3000])
def test_long_loops_go_on_over_all_stages(n: int) -> None:
    def f(a: Any) -> Any:
        return rz.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1.0, s[1] * (1.0 - a / n)), (0.0, a))[1]

    expected = jax.grad(lambda a: a * (1.0 - a / n) ** n)
    with jax.enable_x64(True):
        np.testing.assert_allclose(rz.grad(f)(2.0), expected(2.0), rtol=1e-10)
    np.testing.assert_allclose(rz.function(f)(2.0), 2.0 * (1.0 - 2.0 / n) ** n, rtol=1e-11)


def test_states_are_trees_and_close_over_anything() -> None:
    A = np.array([[0.5, 0.2], [0.1, 0.4]])

    def f(p: Any) -> Any:
        def body(s: Any) -> Any:
            return {"x": A @ s["x"] + p["b"], "n": s["n"] + 1, "sum": s["sum"] + np.sum(s["x"])}

        start = {"x": np.zeros(2), "n": 0, "sum": 0.0}
        end = rz.while_loop(lambda s: np.sum(np.abs(A @ s["x"] + p["b"] - s["x"])) > 1e-3, body, start)
        return np.sum(end["x"] ** 2) + end["sum"] * p["k"]

    p = {"b": np.array([1.0, -2.0]), "k": 0.3}
    steps = 0
    x = np.zeros(2)
    while np.sum(np.abs(A @ x + p["b"] - x)) > 1e-3:
        x, steps = A @ x + p["b"], steps + 1

    def plain(p: Any) -> Any:
        x, total = jnp.zeros(2), 0.0
        for _ in range(steps):
            total = total + jnp.sum(x)
            x = A @ x + p["b"]
        return jnp.sum(x**2) + total * p["k"]

    with jax.enable_x64(True):
        expected = jax.grad(plain)({k: jnp.asarray(v) for k, v in p.items()})
        found = rz.grad(f)(p)
        for k in p:
            np.testing.assert_allclose(found[k], expected[k], rtol=1e-12)
        H = rz.hessian(f)(p).to_dense()
        full = jax.hessian(lambda v: plain({"b": v[:2], "k": v[2]}))(jnp.array([1.0, -2.0, 0.3]))
        np.testing.assert_allclose(H, full, rtol=1e-10, atol=1e-10)


def test_each_index_has_its_own_number_of_rounds() -> None:
    a = np.array([1.0, 2.0, 4.0, 300.0, 1e6])
    np.testing.assert_allclose(rz.vmap(heron)(a), [heron(v) for v in a], rtol=1e-15)
    each = [rz.grad(heron)(v) for v in a.tolist()]
    np.testing.assert_allclose(rz.vmap(rz.grad(heron))(a), each, rtol=1e-12)
    J = rz.jacobian(rz.vmap(heron))(a)
    np.testing.assert_allclose(J.to_dense(), np.diag(each), rtol=1e-12)
    assert J.to_sparse().nnz == 5
    grid = np.array([[2.0, 3.0], [4.0, 50.0]])
    np.testing.assert_allclose(rz.vmap(rz.vmap(heron))(grid), np.sqrt(grid), rtol=1e-12)
    np.testing.assert_array_equal(rz.vmap(heron)(np.zeros(0)), np.zeros(0))


@pytest.mark.parametrize("backend", ["numpy", "numba", "jax"])
def test_compiled(backend: str) -> None:
    f = lambda a: heron(a, 40)  # noqa: E731
    g = rz.compile(rz.grad(f), 4.0, backend=backend)
    for a in (4.0, 1.0, 90.0):
        np.testing.assert_allclose(g(a), rz.grad(f)(a), rtol=1e-12)
    a = np.array([1.0, 2.0, 300.0])
    np.testing.assert_allclose(rz.compile(rz.vmap(f), a, backend=backend)(a), rz.vmap(f)(a), rtol=1e-12)


def test_its_cost_is_that_of_the_first_stage() -> None:
    n = rz.compile(heron, 4.0, backend="numpy").cost.flops
    assert 32 <= n <= 32 * 20
    assert rz.compile(rz.grad(heron), 4.0, backend="numpy").cost.flops < 20 * n


def test_jax_asks_for_a_bound() -> None:
    with pytest.raises(rz.VectorError, match="max_steps"):
        rz.compile(heron, 4.0, backend="jax")


def test_inside_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        inner = lambda i, y: y + heron(x * (i + 1.0))  # noqa: E731
        return rz.cond(x > 0.0, lambda x: rz.fori_loop(0, 3, inner, x), lambda x: x, x)

    expected = 1.0 + sum([0.5 * np.sqrt((i + 1.0) / 2.0) for i in range(3)])
    np.testing.assert_allclose(rz.grad(f)(2.0), expected, rtol=1e-10)
    g = lambda x: rz.while_loop(lambda y: heron(y) < 4.0, lambda y: y * x, x)  # noqa: E731
    np.testing.assert_allclose(rz.grad(g)(2.0), 4 * 2.0**3, rtol=1e-12)


def test_types_stay() -> None:
    f = lambda x: rz.while_loop(lambda y: np.sum(y) < 10.0, lambda y: 2.0 * y, x)  # noqa: E731
    found = rz.grad(lambda x: np.sum(f(x)))(np.ones(2, np.float32))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [8.0, 8.0])
    with pytest.raises(rz.TraceError, match="one truth value"):
        rz.function(lambda x: rz.while_loop(lambda y: y < 10.0, lambda y: 2.0 * y, x))(np.ones(2))


def test_a_loop_ends_early() -> None:
    def f(x: Any, reverse: bool = False) -> Any:
        return rz.loop(lambda c, k: (c * x, c * k), 1.0, np.arange(1.0, 7.0), until=lambda c: c > 7.0, reverse=reverse)

    for reverse in (False, True):
        plain, traced = f(2.0, reverse), rz.function(lambda x, r=reverse: f(x, r))(2.0)
        assert plain[0] == traced[0] == 8.0
        np.testing.assert_array_equal(traced[1], plain[1])
    np.testing.assert_array_equal(f(2.0)[1], [1.0, 4.0, 12.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(f(2.0, True)[1], [0.0, 0.0, 0.0, 16.0, 10.0, 6.0])
    g = lambda x: f(x)[0] + np.sum(f(x)[1])  # noqa: E731
    assert rz.grad(g)(2.0) == 3 * 4.0 + 2.0 + 3.0 * 4.0
    assert rz.grad(g)(3.0) == 2 * 3.0 + 2.0
    np.testing.assert_array_equal(rz.vmap(rz.grad(g))(np.array([2.0, 3.0])), [26.0, 8.0])
    assert rz.loop(lambda c, _: (c, c), 1.0, length=2, until=lambda c: True)[0] == 1.0


def test_bounds_of_a_for_loop_may_be_traced() -> None:
    f = lambda x, n: rz.fori_loop(0, n, lambda i, y: y * x, 1.0)  # noqa: E731
    for n in (0, 3, 40):
        assert rz.function(f)(2.0, np.array(n)) == 2.0**n
        assert rz.grad(f)(2.0, np.array(n)) == n * 2.0 ** (n - 1)
    found = rz.vmap(lambda n: f(2.0, n))(np.array([0, 1, 5]))
    np.testing.assert_array_equal(found, [1.0, 2.0, 32.0])
