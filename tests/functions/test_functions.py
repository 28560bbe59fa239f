"""Python functions as programs: caches, trees, arguments, static values, closures, nesting, types."""

import dataclasses
import functools
import threading
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import riesz as rz
from riesz.functions.function import as_function

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(1)


class Params(NamedTuple):
    W: np.ndarray
    b: np.ndarray


@dataclasses.dataclass
class Model:
    weights: np.ndarray
    bias: float


def counted(f):
    """The function, and a list that grows with each run of its Python code."""
    runs = []

    def g(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return g, runs


# -- caches ----------------------------------------------------------------------------------------------------------


def test_traced_once_per_shape_type_tree_and_static_value():
    f, runs = counted(lambda x, k=2: np.sum(x**k))
    g = rz.grad(f)
    for _ in range(3):
        g(np.ones(3))
    assert len(runs) == 1
    g(np.ones(4))
    g(np.ones(3, np.float32))
    g(np.ones(3), k=3)
    g(np.ones(3), k=2)
    assert len(runs) == 5
    g(np.zeros(3), k=3)
    rz.hessian(f)(np.ones(3)), rz.function(f)(np.ones(3)), rz.jacobian(f)(np.ones(4))
    assert len(runs) == 5  # one cache for all that is asked of a function


def test_static_arguments_by_value():
    f, runs = counted(lambda x, mode, n: np.sin(x) if mode == "sin" else x * len(range(n)))
    g = rz.function(f, static_argnums=(1,), static_argnames=("n",))
    assert g(1.0, "sin", n=3) == np.sin(1.0)
    assert g(2.0, "other", n=3) == 6.0 and g(2.0, "other", n=4) == 8.0
    assert g(5.0, "other", n=4) == 20.0 and len(runs) == 3
    assert rz.grad(g)(2.0, "other", n=5) == 5.0


def test_whole_numbers_and_texts_are_static():
    assert rz.grad(lambda x, n: x**n)(2.0, 3) == 12.0
    assert rz.grad(lambda x, flag: x * 2.0 if flag else x)(2.0, True) == 2.0
    assert rz.grad(lambda x, op: getattr(np, op)(x))(0.0, "sin") == 1.0
    assert rz.grad(lambda x, f: f(x))(0.0, np.sin) == 1.0


def test_rebinding_a_closed_over_name_traces_again():
    scale = 2.0
    data = np.array([1.0, 2.0])

    def f(x):
        return np.sum(x * data) * scale

    g = rz.grad(f)
    assert g(np.ones(2)).tolist() == [2.0, 4.0]
    scale = 3.0
    assert g(np.ones(2)).tolist() == [3.0, 6.0]
    data = np.array([5.0, 5.0])
    assert g(np.ones(2)).tolist() == [15.0, 15.0]
    assert as_function(f).traces == 1


CONSTANT = 2.0


def helper(x):
    return x * CONSTANT


def test_rebinding_a_global_of_a_helper_traces_again():
    global CONSTANT
    g = rz.grad(lambda x: helper(x))
    assert g(1.0) == 2.0
    try:
        CONSTANT = 7.0
        assert g(1.0) == 7.0
    finally:
        CONSTANT = 2.0


def test_methods_see_their_attributes():
    class Scale:
        def __init__(self, k):
            self.k = k

        def apply(self, x):
            return self.k * x

        @rz.function
        def declared(self, x):
            return self.k * x

    s = Scale(2.0)
    g = rz.grad(s.apply)
    assert g(1.0) == 2.0
    s.k = 5.0
    assert rz.grad(s.apply)(1.0) == 5.0 and g(1.0) == 5.0
    assert s.declared(2.0) == 10.0
    s.k = 6.0
    assert s.declared(2.0) == 12.0

    class Callable:
        k = 1.0

        def __call__(self, x):
            return self.k * x

    c = Callable()
    g = rz.grad(c)
    assert g(1.0) == 1.0
    c.k = 4.0
    assert g(1.0) == 4.0
    assert rz.grad(functools.partial(lambda a, x: a * x, 3.0))(1.0) == 3.0


def test_many_kinds_of_arguments_do_not_pile_up():
    f = rz.function(lambda x, n: x * n)
    for n in range(300):
        assert f(1.0, n) == n
    assert f.traces <= 128
    f.clear()
    assert f.traces == 0


def test_closed_over_arrays_are_not_copied():
    big = np.ones(1000)
    f = rz.function(lambda x: np.sum(big * x))
    f(np.ones(1000))
    record, _ = f.at((np.ones(1000),))
    assert any(x is big for x in record.captured) and id(big) not in record.held


def test_threads():
    f = lambda x: np.sum(np.array([x[0], x[1] ** 2]) * np.asarray(x))  # noqa: E731
    found, problems = [], []

    def work():
        try:
            for n in range(2, 20):
                found.append(rz.grad(f)(np.ones(2) * n)[0] == 2.0 * n)
                rz.grad(lambda x: np.sum(np.asarray(x) ** 2))(np.ones(n))
        except Exception as problem:
            problems.append(problem)

    original = np.asarray
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems and all(found) and np.asarray is original


# -- arguments and results -------------------------------------------------------------------------------------------


def test_trees_as_arguments():
    def f(np):
        def loss(p, xs, extra):
            h = np.tanh(p.W @ xs["a"] + p.b)
            return np.sum(h**2) + extra[0] * xs["list"][1] + np.sum(extra[1].weights) * extra[1].bias

        return loss

    p = Params(RNG.normal(size=(2, 3)), RNG.normal(size=2))
    xs = {"a": RNG.normal(size=3), "list": [1.0, 2.0]}
    extra = (3.0, Model(np.ones(2), 0.5))
    got = rz.grad(f(np), (0, 1, 2))(p, xs, extra)
    assert type(got[0]) is Params and type(got[1]["list"]) is list and type(got[2][1]) is Model
    want = jax.grad(lambda p, a: jnp.sum(jnp.tanh(p.W @ a + p.b) ** 2), (0, 1))(p, xs["a"])
    assert np.allclose(got[0].W, want[0].W, rtol=1e-13) and np.allclose(got[1]["a"], want[1], rtol=1e-13)
    assert (
        got[1]["list"] == [0.0, 3.0]
        and got[2][0] == 2.0
        and got[2][1].weights.tolist() == [0.5, 0.5]
        and got[2][1].bias == 2.0
    )


def test_trees_as_results():
    f = lambda x: {"a": x * 2.0, "b": (np.sum(x), [x[0], 3.0])}  # noqa: E731
    x = np.array([1.0, 2.0])
    value, L = rz.linearize(f, x)
    assert value["b"][1] == [1.0, 3.0] and value["a"].tolist() == [2.0, 4.0]
    dy = L(np.array([1.0, 0.0]))
    assert dy["a"].tolist() == [2.0, 0.0] and dy["b"] == (1.0, [1.0, 0.0])
    assert L.H({"a": np.ones(2), "b": (1.0, [1.0, 5.0])}).tolist() == [4.0, 3.0]
    assert L.shape == (5, 2)


def test_none_in_trees():
    f = lambda t: t["x"] * 2.0 if t["y"] is None else t["y"]  # noqa: E731
    assert rz.grad(f)({"x": 1.0, "y": None}) == {"x": 2.0, "y": None}


def test_argnums_and_keywords():
    f = lambda x, y, z=1.0: x * y**2 * z  # noqa: E731
    assert rz.grad(f)(2.0, 3.0) == 9.0
    assert rz.grad(f, 1)(2.0, 3.0, z=2.0) == 24.0
    assert rz.grad(f, (0, 1))(2.0, 3.0) == (9.0, 12.0)
    assert rz.grad(f, -1)(2.0, 3.0) == 12.0
    assert rz.value_and_grad(f, argnums=(1,))(2.0, 3.0) == (18.0, (12.0,))
    assert rz.jacobian(f, 1)(2.0, 3.0).to_dense().tolist() == [[12.0]]
    assert rz.hessian(f, (0, 1))(2.0, 3.0).to_dense().tolist() == [[0.0, 6.0], [6.0, 4.0]]
    with pytest.raises(rz.SpaceError, match="2 arguments"):
        rz.grad(f, 2)(2.0, 3.0)
    with pytest.raises(rz.SpaceError, match="argnums"):
        rz.grad(f, "x")(2.0, 3.0)


def test_linearize_of_several_arguments_is_on_their_direct_sum():
    _, L = rz.linearize(lambda x, y: x * y, 2.0, np.array([3.0, 4.0]))
    assert L(1.0, np.ones(2)).tolist() == L((1.0, np.ones(2))).tolist() == [5.0, 6.0]
    back = L.H(np.array([1.0, 1.0]))
    assert isinstance(back, tuple) and back[0] == 7.0 and back[1].tolist() == [2.0, 2.0]
    assert str(L.domain) == "ℝ ⊕ ℝ^2"


def test_vjp_and_jvp_as_in_jax():
    f = lambda np: lambda x, y: np.sin(x) * y  # noqa: E731
    x, y = RNG.normal(size=3), RNG.normal(size=3)
    value, back = rz.vjp(f(np), x, y)
    want, jback = jax.vjp(f(jnp), x, y)
    assert np.allclose(value, want, rtol=1e-14)
    for a, b in zip(back(np.ones(3)), jback(jnp.ones(3)), strict=True):
        assert np.allclose(a, b, rtol=1e-14)
    one = rz.vjp(lambda x: x**2, 3.0)[1](1.0)
    assert one == (6.0,)
    assert rz.jvp(lambda x: x**2, (3.0,), (1.0,)) == (9.0, 6.0)
    with pytest.raises(rz.VectorError, match="tuple"):
        rz.jvp(lambda x: x, 1.0, 1.0)


def test_has_aux():
    f = lambda x: (np.sum(x**2), {"twice": 2.0 * x, "name": "here", "n": np.argmax(x)})  # noqa: E731
    x = np.array([1.0, 3.0])
    g, aux = rz.grad(f, has_aux=True)(x)
    assert g.tolist() == [2.0, 6.0] and aux["twice"].tolist() == [2.0, 6.0] and aux["name"] == "here" and aux["n"] == 1
    (value, aux), g = rz.value_and_grad(f, has_aux=True)(x)
    assert value == 10.0 and aux["name"] == "here" and g.tolist() == [2.0, 6.0]
    L, aux = rz.jacobian(f, has_aux=True)(x)
    assert L.to_dense().tolist() == [[2.0, 6.0]] and aux["n"] == 1
    H, aux = rz.hessian(f, has_aux=True)(x)
    assert H.to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]] and aux["n"] == 1
    y, back, aux = rz.vjp(f, x, has_aux=True)
    assert y == 10.0 and back(1.0)[0].tolist() == [2.0, 6.0] and aux["n"] == 1
    with pytest.raises(rz.SpaceError, match="pair"):
        rz.grad(lambda x: x, has_aux=True)(1.0)


def test_integer_arguments_are_parameters():
    def f(table, rows, cols):
        return np.sum(table[rows, cols] ** 2)

    table = RNG.normal(size=(3, 4))
    rows, cols = np.array([0, 2, 2]), np.array([1, 3, 3])
    want = np.zeros((3, 4))
    np.add.at(want, (rows, cols), 2 * table[rows, cols])
    g = rz.grad(f)
    assert np.allclose(g(table, rows, cols), want, rtol=1e-15)
    assert np.allclose(g(table, rows[::-1].copy(), cols), rz.grad(lambda t: f(t, rows[::-1], cols))(table), rtol=1e-15)
    assert as_function(f).traces == 1
    L = rz.linearize(f, table, rows, cols)[1]
    assert str(L.domain) == "ℝ^(3×4)"


@pytest.mark.parametrize(
    ("f", "args", "error", "words"),
    [
        (lambda x: x, (3,), rz.VectorError, ("int 3",)),
        (lambda x: x, (np.arange(3),), rz.VectorError, ("int64", "astype(float)")),
        (lambda x: x, (np.ones(2, complex),), rz.VectorError, ("complex128", "real and imaginary")),
        (lambda x: x, (1j,), rz.VectorError, ("complex",)),
        (lambda x: x, (np.array([1.0, None]),), rz.VectorError, ("object",)),
        (lambda x: x, ("text",), rz.VectorError, ("text",)),
        (lambda x: x, (np.ones(2),), rz.SpaceError, ("into ℝ", "ℝ^2", "jacobian")),
        (lambda x: np.argmax(x), (np.ones(2),), rz.SpaceError, ("int64",)),
        (lambda x: "no", (1.0,), rz.SpaceError, ("'no'",)),
        (lambda x: None, (1.0,), rz.SpaceError, ("into ℝ",)),
        (lambda: 1.0, (), rz.SpaceError, ("0 arguments",)),
    ],
)
def test_bad_arguments_and_results(f, args, error, words):
    with pytest.raises(error) as problem:
        rz.grad(f)(*args)
    for word in words:
        assert word in str(problem.value), problem.value


def test_what_is_not_a_function():
    with pytest.raises(rz.SpaceError, match="expected a function"):
        rz.grad(3.0)
    with pytest.raises(rz.SpaceError, match="spaces"):
        rz.derive(lambda x: x)


# -- nesting ---------------------------------------------------------------------------------------------------------


def test_any_order():
    f = lambda np: lambda x: np.sin(x) * np.exp(0.5 * x)  # noqa: E731
    mine, its = f(np), f(jnp)
    for _ in range(5):
        mine, its = rz.grad(mine), jax.grad(its)
        assert abs(mine(0.7) - its(0.7)) <= 1e-13 * abs(its(0.7))


def test_perturbations_are_not_confused():
    assert rz.grad(lambda x: x * rz.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert rz.grad(lambda x: x * rz.grad(lambda y: x * y)(2.0))(3.0) == 6.0
    assert rz.jvp(lambda x: x * rz.jvp(lambda y: x * y, (2.0,), (1.0,))[1], (3.0,), (1.0,))[1] == 6.0


def test_derivatives_inside_functions():
    def newton(np, solve):
        def f(x):
            g = lambda y: np.sum(y**4) + x[0] * np.sum(np.sin(y))  # noqa: E731
            return x - solve(g, x)

        return f

    mine = newton(np, lambda g, x: np.linalg.solve(rz.hessian(g)(x).to_dense(), rz.grad(g)(x)))
    its = newton(jnp, lambda g, x: jnp.linalg.solve(jax.hessian(g)(x), jax.grad(g)(x)))
    x = np.array([0.5, 1.5, -0.8])
    assert np.allclose(rz.jacobian(mine)(x).to_dense(), jax.jacobian(its)(x), rtol=1e-11)


def test_jacobian_of_hessian_and_linear_maps_inside_functions():
    f = lambda np: lambda x: np.sum(np.sin(x) * x[::-1] ** 2)  # noqa: E731
    x = RNG.normal(size=3)
    third = rz.jacobian(rz.hessian(f(np)))(x).to_dense().reshape(3, 3, 3)
    assert np.allclose(third, jax.jacobian(jax.hessian(f(jnp)))(x), rtol=1e-12, atol=1e-13)
    norm = lambda x: np.sum((rz.jacobian(lambda y: np.outer(y, y).ravel())(x).H @ np.ones(9)) ** 2)  # noqa: E731
    want = jax.grad(lambda x: jnp.sum((jax.jacobian(lambda y: jnp.outer(y, y).ravel())(x).T @ jnp.ones(9)) ** 2))(x)
    assert np.allclose(rz.grad(norm)(x), want, rtol=1e-12)
    hvp = lambda x: np.sum(rz.hvp(f(np), (x,), (np.ones(3),)) ** 2)  # noqa: E731
    want = jax.grad(lambda x: jnp.sum((jax.hessian(f(jnp))(x) @ jnp.ones(3)) ** 2))(x)
    assert np.allclose(rz.grad(hvp)(x), want, rtol=1e-12)
    inside = lambda x: np.sum(rz.jvp(f(np), (x,), (x,))[1] * rz.vjp(f(np), x)[1](2.0)[0])  # noqa: E731
    want = jax.grad(lambda x: jnp.sum(jax.jvp(f(jnp), (x,), (x,))[1] * jax.vjp(f(jnp), x)[1](2.0)[0]))(x)
    assert np.allclose(rz.grad(inside)(x), want, rtol=1e-12)


def test_functions_of_functions():
    inner = rz.function(lambda x: np.sin(x) * 2.0)
    assert abs(rz.grad(lambda x: np.sum(inner(x) ** 2))(np.array([0.3]))[0] - 8 * np.sin(0.3) * np.cos(0.3)) < 1e-14


def test_combinators_and_numpy_mix():
    f = lambda x: np.sum(rz.tanh(x) * rz.power(3)(x)) + (rz.total @ rz.sin ** rz.seg(3))(x)  # noqa: E731
    x = RNG.normal(size=3)
    want = jax.grad(lambda x: jnp.sum(jnp.tanh(x) * x**3) + jnp.sum(jnp.sin(x)))(x)
    assert np.allclose(rz.grad(f)(x), want, rtol=1e-13)
    flip = rz.linear(lambda v: v[::-1], lambda w: w[::-1], name="flip")
    assert rz.grad(lambda x: np.sum(flip(x) * np.arange(3.0)))(x).tolist() == [2.0, 1.0, 0.0]
    conv = rz.bilinear(
        np.convolve, lambda u, w: np.correlate(w, u, "valid"), lambda v, w: np.correlate(w, v, "valid"), name="conv"
    )
    assert np.allclose(rz.grad(lambda x: np.sum(conv(x, x)))(x), 2 * np.sum(x) * np.ones(3), rtol=1e-13)
    composed = rz.function(rz.ln @ rz.sin)
    assert rz.grad(composed)(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)


def test_derivation_of_a_python_function():
    f = lambda x, y: np.sin(x) * y  # noqa: E731
    D = rz.derive(f, rz.R ** rz.seg(2), rz.R)
    assert D.derivative(np.ones(2), 2.0).to_dense().shape == (2, 3)
    assert "sin" in str(D) and "cos" in str(D) and str(rz.explain(f, rz.R, rz.R))
    for s in (D.latex(), rz.linearize(f, np.ones(2), 2.0)[1].latex()):
        assert "cos" in s or "0.5403" in s


def test_weighted_gradient_of_a_python_function():
    V = rz.R ** rz.seg(2)
    f = lambda x: np.sum(x**2)  # noqa: E731
    assert rz.grad(f, space=V.weighted(np.array([1.0, 4.0])))(np.ones(2)).tolist() == [2.0, 0.5]
    H = rz.hessian(f, space=V.weighted(np.array([1.0, 4.0])))(np.ones(2))
    assert np.allclose(H.to_dense(), [[2.0, 0.0], [0.0, 0.5]])
    with pytest.raises(rz.SpaceError, match="lies in"):
        rz.grad(f, space=V)(np.ones(3))


# -- types -----------------------------------------------------------------------------------------------------------


def test_float32_stays_and_promotion_is_numpys():
    x = np.ones(3, np.float32)
    assert rz.grad(lambda x: np.sum(np.sin(x) * 2.0 + x**3 / 7.0))(x).dtype == np.float32
    assert rz.grad(lambda x: np.mean(x) * np.float32(2.0))(x).dtype == np.float32
    y = rz.function(lambda x: x * np.ones(3))(x)
    assert y.dtype == np.float64
    g = rz.grad(lambda x: np.sum(x * np.arange(3.0)))(x)
    assert g.dtype == np.float32 and g.tolist() == [0.0, 1.0, 2.0]
    assert rz.function(lambda x: x * np.float64(2.0))(x).dtype == np.float64
    assert rz.function(lambda x, k: x * k)(x, 2.0).dtype == np.float32
    assert rz.function(lambda x: np.sum(x))(x).dtype == np.float32
    assert rz.function(lambda x: x.astype(np.float64) * 2)(x).dtype == np.float64
    assert rz.grad(lambda x, unused: np.sum(x), 1)(x, x).dtype == np.float32
    assert isinstance(rz.grad(lambda x: x * x)(2.0), float)


def test_results_belong_to_the_caller():
    x = np.ones(3)
    f = rz.function(lambda x: (x, np.broadcast_to(x[0], (3,)), np.ones(3)))
    for part in f(x):
        part[:] = 7.0
    assert x.tolist() == [1.0, 1.0, 1.0] and f(x)[2].tolist() == [1.0, 1.0, 1.0]
    _, L = rz.linearize(lambda x: x**2, x)
    x[:] = 5.0
    assert L(np.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_the_linear_map_of_computed_indices_is_a_relation():
    f = lambda x: x[np.argsort(-x)[:2]]  # noqa: E731
    L = rz.linearize(f, np.array([1.0, 5.0, 3.0]))[1]
    assert L.to_dense().tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] and "red" in str(L)


def test_size_stays_linear_in_the_program():
    def f(x):
        for _ in range(50):
            x = np.sin(x) * x
        return np.sum(x)

    sizes = []
    g = f
    for _ in range(3):
        record, _ = as_function(g).at((np.ones(2),))
        sizes.append(len(record.program))
        g = (lambda h: lambda x: np.sum(rz.grad(h)(x)))(g)
    assert sizes[1] <= 8 * sizes[0] and sizes[2] <= 8 * sizes[1]


OUTSIDE = np.linspace(0.5, 1.5, 400)


@pytest.mark.parametrize("order", [(2, 0), (1, 0), (-1, 1), (2, 1, 0), (1, 2, 0), (0, 2), [2, 1]])
def test_derivatives_come_in_the_order_of_argnums(order: Any) -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        return np.sum(a["u"]) * np.sum(np.sin(b)) + np.sum(c**3) * a["v"] + np.mean(OUTSIDE) * np.sum(b) * np.sum(c)

    args: Any = ({"u": np.array([0.3, 0.5]), "v": 0.7}, np.array([0.2, 0.4, 0.6]), np.array([[1.1]]))
    single = [rz.grad(f, i)(*args) for i in order]
    vector = np.concatenate(
        [np.ravel(x) for part in single for x in (part.values() if isinstance(part, dict) else (part,))]
    )

    def same(found: Any) -> None:
        assert len(found) == len(single)
        for x, y in zip(found, single, strict=True):
            for u, v in zip(*[p.values() if isinstance(p, dict) else (p,) for p in (x, y)], strict=True):
                np.testing.assert_allclose(u, v, rtol=1e-12)
                assert np.shape(u) == np.shape(v)

    same(rz.grad(f, order)(*args))
    same(rz.grad(f, order)(*args))
    same(rz.value_and_grad(f, order)(*args)[1])
    same(rz.grad(lambda *args: (f(*args), 1.0), order, has_aux=True)(*args)[0])
    same(rz.compile(rz.grad(f, order))(*args))
    same(rz.function(lambda *args: rz.grad(f, order)(*args))(*args))
    J = rz.jacobian(f, order)(*args)
    np.testing.assert_allclose(J.to_dense(), vector[None], rtol=1e-12)
    np.testing.assert_allclose(
        rz.jacobian(lambda *args: rz.grad(f, order)(*args), order)(*args).to_dense(),
        rz.hessian(f, order)(*args).to_dense(),
    )
    np.testing.assert_allclose(
        rz.hessian(f, order)(*args).to_dense(), rz.hessian(f, order)(*args).T.to_dense(), atol=1e-12
    )
    factored = rz.grad(f, order, factored=True)(*args)
    found = [x for part in factored for x in (part.values() if isinstance(part, dict) else (part,))]
    np.testing.assert_allclose(
        np.concatenate([np.ravel(x.to_dense() if hasattr(x, "to_dense") else x) for x in found]), vector, rtol=1e-12
    )


ONE_NUMBER = {
    "a sum with its axis": lambda x: np.sum(np.sin(x) * x, keepdims=True),
    "a product of matrices": lambda x: x[None] @ np.cos(x)[:, None],
    "a slice": lambda x: x[1:2] ** 3,
    "three axes": lambda x: np.reshape(x[0] * x[1], (1, 1, 1)),
    "a loop": lambda x: rz.fori_loop(0, 3, lambda i, s: s * np.sum(np.sin(x)), np.sum(x, keepdims=True)),
    "a solution": lambda x: np.linalg.solve(2.0 * np.eye(1) + x[:1, None], np.sum(x * x, keepdims=True)),
    "a constant": lambda x: np.ones((1, 1)) + 0.0 * x[0],
}


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_an_array_with_one_number_has_a_gradient(name: str) -> None:
    f, x = ONE_NUMBER[name], np.array([0.3, 0.7, -0.4])

    def g(x: Any) -> Any:
        return np.sum(f(x))

    weights = np.array([1.0, 2.0, 4.0])
    value, found = rz.value_and_grad(f)(x)
    expected, H = rz.grad(g)(x), rz.hessian(g)(x).to_dense()
    np.testing.assert_allclose(value, f(x))
    assert value.shape == f(x).shape
    for gradient in (
        found,
        rz.grad(f)(x),
        rz.grad(f, factored=True)(x).to_dense(),
        rz.grad(lambda x: (f(x), x), has_aux=True)(x)[0],
        rz.grad(f, space=(rz.R ** rz.seg(3)).weighted(weights))(x) * weights,
        rz.compile(rz.grad(f))(x),
        rz.compile(rz.value_and_grad(f), x, backend="jax")(x)[1],
        rz.function(lambda x: 1.0 * rz.grad(f)(x))(x),
    ):
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-12)
    assert rz.grad(f)(x.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(rz.hessian(f)(x).to_dense(), H, atol=1e-12)
    np.testing.assert_allclose(rz.hvp(f, (x,), (weights,)), H @ weights, atol=1e-12)
    np.testing.assert_allclose(rz.function(lambda x: rz.hessian(f)(x).to_dense())(x), H, atol=1e-12)


@pytest.mark.parametrize(
    "f", [lambda x: x, lambda x: x[:0], lambda x: (x[0],), lambda x: [x[0], x[1]], lambda x: x[:2, None]]
)
def test_larger_results_have_no_gradient(f: Any) -> None:
    for derivative in (rz.grad, rz.value_and_grad, rz.hessian):
        with pytest.raises(rz.SpaceError, match=r"into ℝ.*jacobian"):
            derivative(f)(np.ones(3))


def test_combinators_that_end_in_tensors_of_sums_are_traced():
    f = rz.right(rz.outer, 0.5) @ rz.dup
    assert rz.function(f)(2.0) == (1.0, 1.0)
