"""root, fixed_point, argmin: values and derivatives against unrolled iterations, formulas, JAX and SciPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz

B = np.array([[3.0, 0.5, 0.0], [0.5, 4.0, 0.3], [0.0, 0.3, 5.0]])


def equations(x: Any, a: Any, xp: Any = np) -> Any:
    return B @ x + xp.tanh(x) * a[0] - a[1:] ** 2


def solved(a: Any, **how: Any) -> Any:
    return rz.root(equations, np.zeros(3), a, **how)


def unrolled(a: Any) -> Any:
    """A quasi-Newton iteration, written out in JAX."""
    fixed = np.linalg.inv(B + 0.5 * np.eye(3))
    return jax.lax.scan(lambda x, _: (x - fixed @ equations(x, a, jnp), None), jnp.zeros(3), length=60)[0]


A = np.array([0.7, 1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def _double() -> Any:  # pyright: ignore[reportUnusedFunction]
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("solver", [None, "newton", "hybr", "lm", "krylov", "broyden1", "anderson", "df-sane"])
def test_roots_and_their_derivatives_are_those_of_the_unrolled_iteration(solver: Any) -> None:
    f = lambda a: solved(a, solver=solver)  # noqa: E731
    np.testing.assert_allclose(f(A), unrolled(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rz.jacobian(f)(A).to_dense(), jax.jacobian(unrolled)(A), rtol=1e-9, atol=1e-12)
    total = lambda x, xp=np: xp.sum(x**2)  # noqa: E731
    gradient = jax.grad(lambda a: total(unrolled(a), jnp))(A)
    np.testing.assert_allclose(rz.grad(lambda a: total(f(a)))(A), gradient, rtol=1e-9, atol=1e-12)


def test_second_and_third_order() -> None:
    total = lambda x, xp=np: xp.sum(x**2 + xp.sin(x))  # noqa: E731
    f, g = (lambda a: total(solved(a))), (lambda a: total(unrolled(a), jnp))
    np.testing.assert_allclose(rz.hessian(f)(A).to_dense(), jax.hessian(g)(A), rtol=1e-9, atol=1e-9)
    v = np.array([1.0, -0.5, 0.3, 2.0])
    third = rz.jvp(lambda a: rz.jvp(lambda a: rz.jvp(f, (a,), (v,))[1], (a,), (v,))[1], (A,), (v,))[1]
    along = lambda t: g(A + t * v)  # noqa: E731
    np.testing.assert_allclose(third, jax.grad(jax.grad(jax.grad(along)))(0.0), rtol=1e-8)


def test_what_is_closed_over_and_where_it_starts() -> None:
    f = lambda a: rz.root(lambda x: x**3 + x - a, 1.0)  # noqa: E731
    x = f(10.0)
    assert abs(x - 2.0) < 1e-14
    np.testing.assert_allclose(rz.grad(f)(10.0), 1.0 / 13.0, rtol=1e-13)
    assert rz.grad(lambda s: rz.root(lambda x: x**3 + x - 10.0, s))(1.0) == 0.0
    np.testing.assert_allclose(rz.grad(lambda s: rz.root(lambda x: x**3 + x - s, s))(10.0), 1.0 / 13.0, rtol=1e-13)
    assert rz.root(lambda x: x - 1, 0) == 1.0


def test_trees() -> None:
    def f(p: Any) -> Any:
        found = rz.root(
            lambda x, p: {"u": x["u"] ** 2 - p["a"], "v": (x["v"][0] * x["u"] - p["b"],)},
            {"u": np.ones(2), "v": (np.ones(2),)},
            p,
        )
        return found["u"] + 3.0 * found["v"][0]

    p = {"a": np.array([4.0, 9.0]), "b": np.array([1.0, 2.0])}
    plain = lambda v: jnp.sqrt(v[:2]) + 3.0 * v[2:] / jnp.sqrt(v[:2])  # noqa: E731
    v = np.array([4.0, 9.0, 1.0, 2.0])
    np.testing.assert_allclose(f(p), plain(v), rtol=1e-12)
    np.testing.assert_allclose(rz.jacobian(f)(p).to_dense(), jax.jacobian(plain)(v), rtol=1e-10, atol=1e-12)


def test_maps_compiled_and_in_other_traces() -> None:
    f = lambda a: rz.root(lambda x, a: x**3 + x - a, 1.0, a)  # noqa: E731
    a = np.array([2.0, 10.0, 30.0])
    x = np.array([1.0, 2.0, 3.0])
    slope = 1.0 / (3.0 * x**2 + 1.0)
    second = -6.0 * x * slope**3
    np.testing.assert_allclose(rz.vmap(f)(a), x, rtol=1e-13)
    np.testing.assert_allclose(rz.vmap(rz.grad(f))(a), slope, rtol=1e-12)
    J = rz.jacobian(rz.vmap(f))(a)
    np.testing.assert_allclose(J.to_dense(), np.diag(slope), rtol=1e-12)
    for backend in ("numpy", "numba", "jax"):
        np.testing.assert_allclose(rz.compile(rz.grad(f), 2.0, backend=backend)(10.0), slope[1], rtol=1e-6)
        g = rz.compile(rz.vmap(rz.grad(rz.grad(f))), a, backend=backend)
        np.testing.assert_allclose(g(a), second, rtol=1e-6)
    inner = lambda y: (y**3 + y) / 2.0  # noqa: E731
    loop = lambda a: rz.fori_loop(0, 2, lambda i, y: f(2.0 * y), a)  # noqa: E731
    np.testing.assert_allclose(inner(inner(loop(3.0))), 3.0, rtol=1e-12)
    eps = 1e-6
    np.testing.assert_allclose(rz.grad(loop)(3.0), (loop(3.0 + eps) - loop(3.0 - eps)) / (2 * eps), rtol=1e-7)
    nested = lambda a: rz.root(lambda x: x - 0.5 * f(x + a), 0.5)  # noqa: E731
    np.testing.assert_allclose(rz.grad(nested)(2.0), (nested(2.0 + eps) - nested(2.0 - eps)) / (2 * eps), rtol=1e-7)
    assert rz.grad(lambda a: rz.cond(a > 0.0, f, lambda a: a, a))(2.0) == 0.25


def test_in_jax() -> None:
    f = rz.compile(lambda a: rz.root(lambda x, a: x**3 + x - a, 1.0, a), backend="jax")
    np.testing.assert_allclose(jax.grad(f)(jnp.array(10.0)), 1.0 / 13.0, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(jnp.array(10.0)), 2.0, rtol=1e-6)


def test_float32_and_nothing() -> None:
    f = lambda a: rz.root(lambda x: x**3 + x - a, np.ones(2, np.float32))  # noqa: E731
    a = np.array([2.0, 10.0], np.float32)
    found = rz.function(f)(a)
    assert found.dtype == f(a).dtype == np.float32
    np.testing.assert_allclose(found, [1.0, 2.0], rtol=1e-6)
    g = rz.grad(lambda a: np.sum(f(a)))(a)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, [0.25, 1.0 / 13.0], rtol=1e-5)
    assert rz.root(lambda x: x, np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("solver", ["brentq", "bisect", "ridder", "toms748", "brenth"])
def test_brackets(solver: str) -> None:
    f = lambda a: rz.root(lambda x: np.cos(x) - a * x, 0.5, solver=solver, bracket=(0.0, 2.0))  # noqa: E731
    x = f(1.0)
    assert abs(np.cos(x) - x) < 1e-15
    np.testing.assert_allclose(rz.grad(f)(1.0), -x / (np.sin(x) + 1.0), rtol=1e-12)


def test_a_solver_of_the_users_gets_numbers_only() -> None:
    kinds: list[Any] = []

    def mine(f: Any, x: Any) -> Any:
        kinds.append((type(x), type(f(x))))
        for _ in range(60):
            x = x - 0.2 * f(x)
        return x

    g = lambda a: rz.root(lambda x: x**3 + x - a, 1.0, solver=mine)  # noqa: E731
    np.testing.assert_allclose(rz.grad(g)(2.0), 0.25, rtol=1e-12)
    np.testing.assert_allclose(rz.vmap(rz.grad(g))(np.array([2.0, 3.0])), [0.25, rz.grad(g)(3.0)], rtol=1e-12)
    assert set(kinds) == {(float, float)}


def test_a_root_that_is_not_found_is_an_error() -> None:
    none = lambda x: x**2 + 1.0  # noqa: E731
    for how in ({}, {"solver": "hybr"}, {"solver": "krylov"}, {"solver": lambda f, x: 0.3}):
        with pytest.raises(rz.SolveError, match=r"residual is .* after \d+ evaluations"):
            rz.root(none, 1.0, **how)
        with pytest.raises(rz.SolveError, match="residual is"):
            rz.grad(lambda a, how=how: rz.root(lambda x: x**2 + a, 1.0, **how))(1.0)
    with pytest.raises(rz.SolveError, match="not finite"), np.errstate(all="ignore"):
        rz.root(lambda x: np.log(x), -1.0)
    with pytest.raises(rz.SpaceError, match="as many equations"):
        rz.root(lambda x: x[:1], np.ones(2))
    with pytest.raises(rz.SpaceError, match="solver='no'"):
        rz.root(none, 1.0, solver="no")
    with pytest.raises(rz.SolveError, match="repel"):
        rz.fixed_point(lambda x: 2.0 * x + 1.0, 1.0)
    with pytest.raises(rz.SolveError, match="saddle"):
        rz.argmin(lambda x: x[0] ** 2 - x[1] ** 2, np.zeros(2))
    with pytest.raises(rz.SolveError):
        rz.argmin(lambda x: -np.sum(x**2), np.ones(2))


def test_structure_is_used_for_steps() -> None:
    n = 3000

    def f(u: Any, k: Any) -> Any:
        w = np.concatenate([np.zeros(1), u, np.zeros(1)])
        return w[2:] - 2.0 * w[1:-1] + w[:-2] - k * u**3 + 1e-4

    u = rz.root(f, np.zeros(n), 1.0)
    assert np.max(np.abs(f(u, 1.0))) < 1e-14


def test_fixed_points() -> None:
    def g(x: Any, a: Any, xp: Any = np) -> Any:
        return xp.tanh(0.3 * B @ x * a[0] / 5.0 + a[1:])

    def plain(a: Any) -> Any:
        x, _ = jax.lax.scan(lambda x, _: (g(x, a, jnp), None), jnp.zeros(3), length=200)
        return jnp.sum(x**3)

    f = lambda a: np.sum(rz.fixed_point(g, np.zeros(3), a) ** 3)  # noqa: E731
    np.testing.assert_allclose(f(A), plain(A), rtol=1e-12)
    np.testing.assert_allclose(rz.grad(f)(A), jax.grad(plain)(A), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rz.hessian(f)(A).to_dense(), jax.hessian(plain)(A), rtol=1e-8, atol=1e-9)
    assert rz.fixed_point(lambda x: 2.0 * x + 1.0, 1.0, solver="newton") == -1.0
    with pytest.raises(rz.SpaceError, match="same shapes"):
        rz.fixed_point(lambda x: x[:1], np.ones(2))


@pytest.mark.parametrize("solver", [None, "BFGS", "Nelder-Mead", "trust-exact", "L-BFGS-B"])
def test_minima(solver: Any) -> None:
    def f(x: Any, a: Any) -> Any:
        return 0.5 * x @ B @ x + np.sum(np.cosh(x - a[1:])) + a[0] * np.sum(x)

    def plain(a: Any) -> Any:
        fixed, slope = np.linalg.inv(B + 2.0 * np.eye(3)), lambda x: B @ x + jnp.sinh(x - a[1:]) + a[0]
        x, _ = jax.lax.scan(lambda x, _: (x - fixed @ slope(x), None), jnp.zeros(3), length=80)
        return jnp.sum(jnp.sin(x))

    g = lambda a: np.sum(np.sin(rz.argmin(f, np.zeros(3), a, solver=solver)))  # noqa: E731
    np.testing.assert_allclose(g(A), plain(A), rtol=1e-9)
    np.testing.assert_allclose(rz.grad(g)(A), jax.grad(plain)(A), rtol=1e-9, atol=1e-12)
    if solver is None:
        np.testing.assert_allclose(rz.hessian(g)(A).to_dense(), jax.hessian(plain)(A), rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore:delta_grad")
@pytest.mark.parametrize("solver", [None, "SLSQP", "trust-constr"])
def test_minima_on_a_surface(solver: Any) -> None:
    q = np.array([1.0, 2.0, 4.0])

    def f(c: Any) -> Any:
        return rz.argmin(
            lambda x, c: 0.5 * np.sum(q * x**2) - np.sum(x),
            np.ones(3),
            c,
            equality=lambda x, c: np.sum(x) - c,
            solver=solver,
        )

    multiplier = lambda c: (1.0 / q) * (1.0 - (np.sum(1.0 / q) - c) / np.sum(1.0 / q))  # noqa: E731
    np.testing.assert_allclose(f(0.5), multiplier(0.5), rtol=1e-9)
    np.testing.assert_allclose(rz.jacobian(f)(0.5).to_dense()[:, 0], (1.0 / q) / np.sum(1.0 / q), rtol=1e-9)
    on_circle = lambda a: rz.argmin(  # noqa: E731
        lambda x: -x @ a, np.array([0.6, 0.8]), equality=lambda x: x @ x - 1.0, solver=solver
    )
    a = np.array([1.0, 2.0])
    unit = lambda a: a / jnp.sqrt(a @ a)  # noqa: E731
    np.testing.assert_allclose(on_circle(a), unit(a), rtol=1e-9)
    np.testing.assert_allclose(rz.jacobian(on_circle)(a).to_dense(), jax.jacobian(unit)(a), rtol=1e-8, atol=1e-10)


def test_rosenbrock_and_far_starts() -> None:
    f = lambda x, a: (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    g = lambda a: rz.argmin(f, np.array([-1.2, 1.0]), a)  # noqa: E731
    np.testing.assert_allclose(g(1.5), [1.5, 2.25], rtol=1e-10)
    np.testing.assert_allclose(rz.jacobian(g)(1.5).to_dense()[:, 0], [1.0, 3.0], rtol=1e-9)
    np.testing.assert_allclose(rz.argmin(lambda x: np.cosh(x - 1.0), 30.0), 1.0, rtol=1e-12)
    ridge = lambda k: rz.argmin(lambda x: np.sum((x - 1.0) ** 2) + k * np.sum(x**2), np.zeros(2))  # noqa: E731
    np.testing.assert_allclose(rz.vmap(ridge)(np.array([1.0, 3.0])), [[0.5, 0.5], [0.25, 0.25]], rtol=1e-12)
