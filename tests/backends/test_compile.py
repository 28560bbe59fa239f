"""Generated code computes what the interpreter computes, on every backend, for every kind of function and argument."""

from __future__ import annotations

import inspect
import pickle
import threading
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.errors import DomainError, SpaceError, VectorError
from riesz.runtime import tuning
from riesz.spaces.formal_vectors import TensorValue
from riesz.tracing.argument_trees import flatten

BACKENDS = ("auto", "numpy", "steps")


def agree(found, wanted, tolerance=1e-10):
    """The same tree of the same types, shapes and numbers."""
    (a, tree_a), (b, tree_b) = flatten(found), flatten(wanted)
    assert tree_a == tree_b
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
        rough = max(tolerance, 1e-5) if np.asarray(x).dtype == np.float32 else tolerance
        assert np.allclose(x, y, rtol=rough, atol=rough, equal_nan=True)


def total(f):
    """A function into ℝ from one into arrays."""
    return lambda *xs: sum([np.sum(np.cos(y)) for y in flatten(f(*xs))[0]]) + 0.0 * np.sum(xs[0])


def compare(f, args, backends=BACKENDS, tolerance=1e-10):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = rz.function(f)(*args)
        for backend in backends:
            g = rz.compile(f, *args, backend=backend)
            agree(g(*args), wanted, tolerance)
            agree(g(*args), wanted, tolerance)  # nothing was written over
            assert g.backend in ("python", "native", "numpy", "steps") and g.explain()
    return g


# -- random programs --------------------------------------------------------------------------------------


@examples(0.8)
@given(st.integers(0, 10**6), st.booleans())
def test_random_values(seed, single):
    f, args = random_function(seed, inputs=1 + seed % 2, single=single)
    compare(f, args)


@examples(0.6)
@given(st.integers(0, 10**6))
def test_random_gradients(seed):
    f, args = random_function(seed, inputs=1 + seed % 2, single=True)
    compare(rz.grad(total(f)), args)
    compare(rz.value_and_grad(total(f), argnums=tuple(range(len(args)))), args)


@examples(0.3)
@given(st.integers(0, 10**6))
def test_random_programs_in_single_precision(seed):
    f, args = random_function(seed, single=True, without=("segments", "fourier", "sort"))
    args = [np.asarray(a, np.float32) if np.ndim(a) else np.float32(a) for a in args]
    compare(f, args, tolerance=1e-4)
    compare(rz.grad(total(f)), args, tolerance=1e-4)


@examples(0.25)
@given(st.integers(0, 10**6))
def test_random_programs_on_large_arrays(seed):
    """With memory written over: the limit is lowered so that all arrays count as large."""

    f, args = random_function(seed, single=True)
    kept, tuning.OVERWRITTEN_NUMBERS = tuning.OVERWRITTEN_NUMBERS, 1
    try:
        compare(f, args, ("numpy",))
        compare(rz.grad(total(f)), args, ("numpy",))
    finally:
        tuning.OVERWRITTEN_NUMBERS = kept


def test_large_sums_products_and_functions_reuse_memory():
    def f(x, y):
        z = np.sin(x) * y + 2.0 * x - y
        w = np.exp(-z) + z * z - 3.0
        return w / (1.0 + w * w), x + y, z.reshape(2, -1), x

    x, y = np.random.default_rng(0).normal(size=(2, 20_000))
    before = x.copy(), y.copy()
    g = compare(f, (x, y), ("numpy",))
    assert "out=t" in g.source
    assert np.array_equal(x, before[0]) and np.array_equal(y, before[1])


@examples(0.4)
@given(st.data())
def test_random_terms(data):
    from riesz.testing import functions

    f = data.draw(functions())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        x = f.domain.wrap(
            [rng.normal(size=leaf.shape) if leaf.shape else float(rng.normal()) for leaf in f.domain.leaves]
        )
        assume(not any([isinstance(v, TensorValue) for v in flatten(x)[0]]) and rz.space_of(x) is f.domain)
        wanted = rz.function(f)(x)
        assume(not any([isinstance(v, TensorValue) for v in flatten(wanted)[0]]))
        for backend in BACKENDS:
            agree(rz.compile(f, x, backend=backend)(x), wanted)


# -- numbers ----------------------------------------------------------------------------------------------


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def test_scalars_are_python_floats():
    g = rz.compile(rz.grad(rosenbrock), np.zeros(2))
    assert g.backend == "python" and "x.tolist()" in g.source
    x = np.array([1.5, -0.3])
    assert np.allclose(g(x), rz.grad(rosenbrock)(x), rtol=1e-14)
    assert g.cost.flops > 0


class Sub(np.ndarray):
    pass


def test_code_on_numbers_is_for_arguments_of_its_kind_only():
    """Other lengths, axes, types, layouts and ways to call take the ordinary way: what the function itself gives, or its error."""

    def f(x, y, k=2.0):
        return (x[0] + x[1]) * y + k * np.sum(x)

    g = rz.compile(f, np.ones(3), 1.0, 3.0)
    assert g.backend == "python"
    x, wide = np.array([1.0, 2.0, -4.0]), np.arange(12.0).reshape(6, 2)
    calls = [
        ((x, 2.0, 3.0), {}),
        ((x, 2.0), {}),
        ((x,), {"y": 2.0}),
        ((), {"y": 2.0, "x": x, "k": 1.5}),
        ((wide[::2, 1], 2.0, 3.0), {}),
        ((np.ones(4), 2.0, 3.0), {}),
        ((np.ones(2), 2.0, 3.0), {}),
        ((wide[:3], 2.0, 3.0), {}),
        ((x.astype(np.float32), 2.0, 3.0), {}),
        ((x.view(Sub), 2.0, 3.0), {}),
        ((x.astype(">f8"), 2.0, 3.0), {}),
        ((x, np.float64(2.0), 3.0), {}),
        ((x, np.array(2.0), 3), {}),
    ]
    for args, kwargs in calls * 2:
        wanted, found = f(*args, **kwargs), g(*args, **kwargs)
        assert np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=1e-6)
    for args, kwargs in [((), {}), ((x,), {}), ((x, 1.0, 2.0, 3.0), {}), ((x, 1.0), {"z": 1.0}), ((x, 1.0), {"x": x})]:
        with pytest.raises(TypeError):
            g(*args, **kwargs)
    with pytest.raises(IndexError):
        g(np.ones(1), 2.0, 3.0)


def test_domains_are_checked_only_where_that_is_asked():
    g = rz.compile(lambda x: np.log(x[0]) + np.inf - x[1], np.ones(2))
    x = np.array([2.0, np.inf])
    for _ in range(2):
        assert np.isnan(g(x))
        with rz.check_domain(), pytest.raises(DomainError):
            g(x)
        with rz.check_domain(False):
            assert np.isnan(g(x))


def test_arguments_may_have_any_name():
    h = rz.compile(lambda self, kwargs, args: self * kwargs - args, 1.0, 1.0, 1.0)
    assert h(5.0, 2.0, 3.0) == 7.0 and h(5.0, 2.0, np.float64(3.0)) == 7.0
    assert [rz.compile(lambda: 3.0)() for _ in range(2)] == [3.0, 3.0]


@pytest.mark.parametrize("n", [1, 2, 8, 9, 20])
def test_vectors_taken_apart(n):
    g = rz.compile(lambda x, y: (np.cumsum(x) * y, x * x[::-1], np.sum(x)), np.zeros(n), 1.0, backend="python")
    x = np.random.default_rng(n).normal(size=2 * n)[::2]
    agree(g(x, 0.5), (np.cumsum(x) * 0.5, x * x[::-1], float(np.sum(x))))


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, -2.5, 0.5, 1e308, -1e308, 1e-320, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.log(x),
        lambda x: np.sqrt(x) * 2.0,
        lambda x: 1.0 / x,
        lambda x: x**-2,
        lambda x: x ** (1 / 3),
        lambda x: np.exp(x) - np.expm1(x),
        lambda x: np.maximum(x, 0.5) + np.minimum(x, -x),
        lambda x: np.fmax(x, 0.5) * np.fmin(x, 1.0),
        lambda x: np.floor(x) + np.trunc(x),
        lambda x: np.sin(x) + np.tanh(x),
        lambda x: np.where(x > 0.0, np.log(x), x * x),
        lambda x: np.logaddexp(x, 1.0),
        lambda x: np.arctan2(x, 2.0) + np.hypot(x, 1.0),
        lambda x: np.abs(x) + np.sign(x) + np.cbrt(x) + np.exp2(-x),
        lambda x: np.arcsin(x) + np.arccosh(x) + np.log1p(x),
        lambda x: np.power(2.0, x) + x % 3.0,
        lambda x: np.heaviside(x, 0.0) + np.clip(x, -1.0, 1.0),
        lambda x: np.sinc(x) * (x == x),
    ],
)
def test_conventions_at_the_edges(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for g in (f, rz.grad(f)):
            code = rz.compile(g, 1.0, backend="python")
            found, wanted = code(x), rz.function(g)(x)
            assert type(found) is float
            assert np.allclose(found, wanted, rtol=1e-13, atol=0, equal_nan=True)


def test_products_with_zero_are_computed():
    def f(x):
        return np.array([0.0, 1.0]) * x[:2] + np.pad(x[:1], (0, 1)) * x[0]

    x = np.array([np.inf, 1.0])
    with np.errstate(all="ignore"):
        agree(rz.compile(f, x, backend="python")(x), f(x))


def test_products_with_zero_are_computed_on_tiles():
    def f(x):
        y = np.sin(x) * np.array([0.0, 1.0]) + np.exp(x) * x
        return y / x * np.array([1.0, 0.0])

    x = np.full((1 << 19, 2), 0.5)
    x[7] = np.inf, 0.0
    with np.errstate(all="ignore"):
        g = rz.compile(f, x, backend="numpy")
        agree(g(x), f(x))
        agree(rz.compile(f, x)(x), f(x))
    assert "tiles" in g.explain()


def test_results_that_are_no_floats():
    compare(lambda x: (x > 0.1, np.argmax(x), np.floor(x).astype(int), x.sum() > 0.0), (np.array([0.1, 0.7, -0.2]),))
    compare(lambda k, x: x[k] * k, (np.array([1, 0, 1]), np.array([0.5, 2.0])))


def test_numbers_one_by_one_only_where_that_is_faster():
    f = rz.grad(lambda x: np.sum(np.sin(x) ** 2))
    assert rz.compile(f, np.zeros(3)).backend == "python" and rz.compile(f, np.zeros(50)).backend == "numpy"


def test_numpy_and_python_scalars():
    def f(x, y):
        return x * y + y

    g = rz.compile(f, 1.0, 2.0)
    for x in (2.0, np.float64(2.0), np.float32(2.0)):
        for y in (3.0, np.float32(3.0), np.ones(3, np.float32), np.ones((2, 2))):
            agree(g(x, y), rz.function(f)(x, y))


def test_scalars_with_single_precision_arrays():
    def f(k, x):
        return np.sin(k) * x + k * np.mean(x)

    x = np.arange(3, dtype=np.float32)
    for k in (0.5, np.float64(0.5), np.float32(0.5)):
        compare(f, (k, x))
        compare(rz.grad(lambda k, x, f=f: np.sum(f(k, x))), (k, x))


@pytest.mark.parametrize("kind", [">f8", ">f4", "<f8", "<f4"])
def test_byte_orders(kind):
    x = np.array([1.0, 3.0, 3.0, 2.0]).astype(kind)
    g = rz.compile(rz.grad(lambda x: np.max(x) * np.prod(x) - np.min(x)), x)
    assert g(x).tolist() == [53.0, 27.0, 27.0, 27.0]
    assert ("byte order" in g.explain()) == (not x.dtype.isnative)


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 1), (3, 0)])
def test_sizes_zero_and_one(shape):
    x = np.ones(shape)
    compare(lambda x: (np.sin(x), np.sum(x), x @ x.T if x.ndim > 1 else x @ x), (x,))
    compare(rz.value_and_grad(lambda x: np.sum(np.sin(x) ** 2)), (x,))


def test_what_does_not_depend_on_the_arguments_is_computed_once():
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(40, 40)), rng.normal(size=(40, 40)), rng.normal(size=40)

    def f(x):
        return 2.0 * (1.0 * ((a @ b @ v) * x)) * 3.0 + np.log(v - 10.0) * 0.0 * np.sum(np.ones(3))

    compare(f, (v,))
    g = rz.compile(f, v, backend="numpy")
    assert "dot" not in g.source and g.cost.flops < 200
    compare(rz.grad(lambda x: np.sum(f(x))), (v,))


def test_errors_of_constant_parts_are_raised_when_called():
    g = rz.compile(lambda x: np.linalg.inv(np.zeros((2, 2)) * x[0]) @ x, np.ones(2), backend="numpy")
    with pytest.raises(np.linalg.LinAlgError):
        g(np.ones(2))


# -- calls ------------------------------------------------------------------------------------------------


def test_keyword_and_static_arguments():
    @rz.function(static_argnames="n")
    def f(x, n=2, *, scale=1.0):
        return scale * x**n

    g = rz.compile(f)
    with pytest.raises(SpaceError, match="nothing is compiled yet"):
        g.source  # noqa: B018
    assert g(3.0) == 9.0 and g(3.0, n=3) == 27.0 and g(2.0, 4) == 16.0
    assert g(3.0, scale=2.0) == 18.0 and g(x=3.0) == 9.0
    assert f.traces == 5
    assert g(5.0, n=3) == 125.0 and f.traces == 5


def test_names_do_not_meet():
    def f(dot, x, x_0, t3, where, args, sin, cube, c2):
        h = np.where(x > 0.0, np.sin(x) @ dot, x[0] * x_0)
        return np.sum(h * t3) + where * args * sin * cube(c2)

    cube = rz.primitive("x", lambda x: x**3, None, lambda x, y: 3.0 * x * x)
    x = np.array([0.3, -0.7])
    for backend in BACKENDS:
        given = (np.array([[1.0, 2.0], [3.0, 4.0]]), x, 0.5, 2.0, 0.1, 0.2, 0.3)
        g = rz.compile(
            lambda dot, x, x_0, t3, where, args, sin, c2: f(dot, x, x_0, t3, where, args, sin, cube, c2),
            backend=backend,
        )
        agree(g(*given, x), rz.function(g.function.function)(*given, x))
        agree(g(*given, 0.4), rz.function(g.function.function)(*given, 0.4))


def test_arguments_keep_their_names():
    def energy(x, W):
        """½‖Wx‖²"""
        return 0.5 * np.sum((W @ x) ** 2)

    x, W = np.ones(300), np.ones((2, 300))
    for g in (rz.compile(energy, x, W), rz.compile(rz.grad(energy), x, W), rz.compile(rz.value_and_grad(energy), x, W)):
        assert "x, W = args" in g.source and list(inspect.signature(g).parameters) == ["x", "W"]
    assert rz.compile(energy).__doc__ == energy.__doc__
    assert list(inspect.signature(rz.jacobian(energy)).parameters) == ["x", "W"]


def test_trees():
    def f(p):
        return {"loss": np.sum(p["w"] @ p["b"][0]) * p["b"][1], "parts": [p["w"], None, (p["b"][1],)], "name": "f"}

    p = {"w": np.ones((2, 3)), "b": (np.arange(3.0), 2.0)}
    for backend in BACKENDS:
        found = rz.compile(f, p, backend=backend)(p)
        assert found["loss"] == 12.0 and found["parts"][1] is None and found["name"] == "f"
        assert found["parts"][0] is not p["w"] and np.array_equal(found["parts"][0], p["w"])
        agree(rz.compile(rz.grad(lambda p: f(p)["loss"]), p, backend=backend)(p), rz.grad(lambda p: f(p)["loss"])(p))


def test_spaces_stand_for_arguments():
    g = rz.compile(lambda x, y: np.sin(x) * y, rz.R ** rz.seg(3), rz.R)
    assert np.allclose(g(np.ones(3), 2.0), 2.0 * np.sin(1.0))
    h = rz.compile(rz.fork(rz.proj(0) * rz.proj(1), rz.sin @ rz.proj(0)), rz.R * rz.R)
    assert h((2.0, 3.0)) == (6.0, np.sin(2.0)) and h.backend == "python"


def test_other_arguments_get_code_of_their_own_and_wrong_ones_an_error():
    g = rz.compile(lambda a, x: a @ x, np.ones((2, 3)), np.ones(3))
    assert g(np.ones((4, 2)), np.ones(2)).shape == (4,)
    assert g(np.ones((2, 3)), np.arange(3)).tolist() == [3.0, 3.0]
    assert g([[1.0, 2.0]][0][0] * np.ones((2, 3)), np.asfortranarray(np.ones(3))).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError):
        g(np.ones((2, 3)), np.ones(4))
    with pytest.raises(TypeError):
        g(np.ones((2, 3)))
    with pytest.raises(VectorError, match="backend"):
        rz.compile(np.sin, 1.0, backend="cuda")
    with pytest.raises(SpaceError, match="compile takes a function"):
        rz.compile(3.0)
    with pytest.raises(VectorError, match=r"backend=.python.: it has more than 2,000 operations"):
        rz.compile(np.sin, np.zeros(10_000), backend="python")


def test_results_belong_to_the_caller():
    table = np.arange(4.0)
    for f in (
        lambda x: x,
        lambda x: (x, x),
        lambda x: table + 0.0 * x,
        lambda x: table,
        lambda x: x.reshape(2, 2),
        lambda x: x[1:],
        lambda x: x.T,
    ):
        for backend in BACKENDS:
            x = np.ones(4)
            g = rz.compile(f, x, backend=backend)
            wanted = [np.array(a) for a in flatten(f(x))[0]]
            for a in flatten(g(x))[0]:
                a += 7.0
            agree(flatten(g(x))[0], wanted)
            assert x.tolist() == [1.0] * 4 and table.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_compiled_functions_are_differentiated_and_traced():
    g = rz.compile(lambda x: np.sum(np.sin(x) ** 2), np.zeros(3))
    x = np.array([0.1, 0.2, 0.3])
    assert np.allclose(rz.grad(g)(x), np.sin(2 * x))
    assert np.allclose(rz.compile(rz.grad(g), x)(x), np.sin(2 * x))
    assert np.allclose(rz.vmap(g)(np.stack([x, x])), g(x))


def test_derivatives_of_all_kinds():
    def f(x):
        return np.stack([np.sin(x[0]) * x[1], x[0] * x[1]])

    x, v = np.array([0.3, 0.7]), np.array([1.0, -2.0])
    _, back = rz.vjp(f, x)
    compare(back, (v,))
    compare(lambda x, v: rz.jvp(f, (x,), (v,)), (x, v))
    compare(lambda x, v: rz.vjp(f, x)[1](v), (x, v))
    compare(lambda x, v: rz.hvp(rosenbrock, (x,), (v,)), (x, v))


def test_linear_maps_stay_linear_maps():
    x = np.array([1.2, 0.4])
    for made in (rz.jacobian(lambda x: np.sin(x) * x[0]), rz.hessian(rosenbrock)):
        g = rz.compile(made, x)
        assert isinstance(g(x), rz.LinearMap)
        assert np.allclose(g(x).to_dense(), made(x).to_dense())
        assert "LinearMap" in g.explain() and g.backend == "steps"
        with pytest.raises(SpaceError, match="LinearMaps"):
            g.source  # noqa: B018


def test_checked_domains_are_checked():
    g = rz.compile(rz.grad(lambda x: np.log(x) * x), 1.0)
    with rz.check_domain(), pytest.raises(DomainError), np.errstate(all="ignore"):
        g(-1.0)
    assert g(1.0) == 1.0


def test_random_draws_are_not_frozen_silently():
    rng = np.random.default_rng(0)
    g = rz.compile(lambda x: x + rng.normal())
    assert g(1.0) != g(1.0)


def test_threads_may_call_it_together():
    x = np.random.default_rng(0).normal(size=(4, 30_000))
    g = rz.compile(rz.value_and_grad(lambda x: np.sum(np.sin(x) * np.exp(-x * x) + x)), x[0])
    h = rz.compile(rz.grad(rosenbrock), np.zeros(2))
    wanted = [g(row) for row in x], [h(row[:2]) for row in x]
    wrong = []

    def work(k):
        for _ in range(20):
            (a, b), c = g(x[k]), h(x[k, :2])
            if a != wanted[0][k][0] or not np.array_equal(b, wanted[0][k][1]) or not np.array_equal(c, wanted[1][k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- long programs ----------------------------------------------------------------------------------------


def chain(n, x):
    for _ in range(n):
        x = np.sin(x)
    return x


@pytest.mark.parametrize("x", [0.7, np.linspace(0.1, 1.0, 300)])
def test_long_chains(x):
    g = rz.compile(lambda x: chain(10_000, x), x)
    agree(g(x), float(chain(10_000, x)) if type(x) is float else chain(10_000, x))
    assert g.backend == ("python" if type(x) is float else "numpy") and g.source.count("sin(") == 10_000


def test_longer_programs_run_step_by_step(monkeypatch):
    monkeypatch.setattr(tuning, "COMPILED_STEPS", 100)
    g = rz.compile(rz.grad(lambda x: chain(150, x)), 0.5)
    assert g.backend == "steps" and "more than the 100" in g.explain()
    assert np.isclose(g(0.5), rz.grad(lambda x: chain(150, x))(0.5))


def test_pointwise_programs_run_on_tiles():
    def f(x, w):
        y = np.sin(x) * np.exp(-w * x) + x**3
        return y / (1.0 + y * y) + np.tanh(y - w)

    x = np.random.default_rng(0).normal(size=1 << 20)
    g = rz.compile(f, x, 0.5, backend="numpy")
    assert "tiles" in g.explain() and "def tiles" in g.source
    agree(g(x, 0.5), f(x, 0.5))
    assert rz.compile(f, x, 0.5).backend == "numba"
    assert rz.compile(f, x[:1000], 0.5).backend == "numpy"
    agree(rz.compile(rz.grad(lambda x: np.sum(f(x, 0.5))), x)(x), rz.grad(lambda x: np.sum(f(x, 0.5)))(x))


def test_matrix_products_are_not_taken_apart():
    rng = np.random.default_rng(0)
    for n, d, k in ((1000, 5, 1000), (40_000, 20, 10), (20_000, 60, 3)):
        X, W, M = rng.normal(size=(n, d)), rng.normal(size=(d, k)), rng.normal(size=(1, k))
        f = lambda X, W, M: 2.0 * ((np.tanh(X @ W) * M) @ W.T) - X  # noqa: E731
        g = rz.compile(f, X, W, M, backend="numpy")
        assert "steps on arrays" in g.explain() and len(g.source.splitlines()) < 100
        agree(g(X, W, M), f(X, W, M))


# -- plain gradients of a few numbers ---------------------------------------------------------------------

SMALL = [
    (rosenbrock, (np.array([1.2, 0.7]),)),
    (lambda x: x**3 - 2.0 * x, (0.3,)),
    (lambda x, y: np.sin(x * y) / (1.0 + y * y) - np.exp(-x), (0.3, 0.9)),
    (lambda x, y: np.sqrt(x) * np.arcsin(y / 3.0) + np.cosh(x) / np.tan(y) + np.log1p(x) * np.expm1(y), (0.4, 0.8)),
    (lambda x: x[1:][0] * x[0] * x[2] + x[3], (np.array([0.4, 0.3, 2.0, 1.0]),)),
    (lambda x: x[0, 1] * x[1, 0] ** 2.5, (np.array([[0.4, 0.3], [2.0, 1.0]]),)),
    (lambda x: 3.0 + 0.0 * x, (1.0,)),
    (lambda x, y: (x / y) ** 2 + 1.0 / x + np.abs(y) * np.tanh(x), (-0.7, 1.1)),
    (lambda x: np.where(x[0] > x[1], np.log(x[0]) * x[1], x[0] * x[2]), (np.array([0.4, 0.3, 2.0]),)),
    (lambda x, y: x**y + np.hypot(x, y) + np.maximum(x, y), (0.4, 0.8)),
    (lambda x: np.sum(x * x), (np.arange(3.0),)),
]


def bits(x):
    return [np.asarray(v).tobytes() for v in flatten(x)[0]]


@pytest.mark.parametrize("case", range(len(SMALL)))
def test_plain_gradients_have_the_same_bits_at_every_call(case, monkeypatch):
    f, args = SMALL[case]
    rng = np.random.default_rng(case)
    points = [
        tuple(
            [
                a * rng.uniform(0.5, 1.5, size=np.shape(a)) if np.ndim(a) else float(a * rng.uniform(0.5, 1.5))
                for a in args
            ]
        )
        for _ in range(40)
    ]
    points += [tuple([a * k for a in args]) for k in (0.0, -1.0, 1e200)] + [
        tuple([a + k for a in args]) for k in (np.inf, np.nan)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for argnums in (0, tuple(range(len(args)))):
            small = rz.value_and_grad(rz.function(lambda *xs: f(*xs)), argnums)
            found = [small(*p) for p in points]
            assert all([bits(small(*p)) == bits(a) for p, a in zip(points, found, strict=True)])
            with monkeypatch.context() as patch:
                patch.setattr("riesz.functions.points.FunctionPoint.code", lambda _: None)
                plain = rz.value_and_grad(rz.function(lambda *xs: f(*xs)), argnums)
                wanted = [plain(*p) for p in points]
            for a, b in zip(found, wanted, strict=True):
                assert flatten(a)[1] == flatten(b)[1] and [type(x) for x in flatten(a)[0]] == [
                    type(x) for x in flatten(b)[0]
                ]
                assert all(
                    [
                        np.allclose(x, y, rtol=1e-12, atol=1e-12, equal_nan=True)
                        for x, y in zip(flatten(a)[0], flatten(b)[0], strict=True)
                    ]
                )


@examples(0.6)
@given(st.integers(0, 10**6))
def test_repeated_gradients_of_random_functions(seed):
    f, args = random_function(seed, inputs=2, single=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g = rz.grad(total(f), argnums=(0, 1))
        first = bits(g(*args))
        for _ in range(4):
            assert bits(g(*args)) == first


def test_repeated_gradients_see_what_changes():
    scale = {"k": 2.0}

    def f(x):
        return scale["k"] * x * x

    g = rz.grad(f)
    assert [g(1.0) for _ in range(6)] == [4.0] * 6
    scale["k"] = 3.0
    assert g(1.0) == 6.0
    assert [g(2.0) for _ in range(6)] == [12.0] * 6
    assert g(np.float64(2.0)) == 12.0 and np.array_equal(rz.grad(lambda x: np.sum(f(x)))(np.ones(2)), [6.0, 6.0])
    with pytest.raises(VectorError):
        g(2)
    rz.function(f).clear()
    assert g(2.0) == 12.0
    with rz.check_domain(), pytest.raises(DomainError), np.errstate(all="ignore"):
        h = rz.grad(np.log)
        [h(1.0) for _ in range(5)]
        h(np.nan)


# -- compiled functions as objects -------------------------------------------------------------------------


def test_compiled_functions_are_pickled_by_what_they_are_of():
    g = rz.compile(np.sin, 1.0, backend="numpy")
    again = pickle.loads(pickle.dumps(g))
    assert again(1.0) == g(1.0) and again.backend == "numpy"


def test_a_compiled_method_knows_its_object():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @rz.compile
        def times(self, x):
            return self.factor * np.sin(x)

    for factor in (3.0, 4.0):
        agree(Scaled(factor).times(np.ones(2)), factor * np.sin(np.ones(2)))
    assert isinstance(Scaled.times, type(rz.compile(np.sin)))


def test_solving_inside_a_compiled_function():
    def f(p):
        return np.sum(np.exp(p[0])) + p[1] ** 2 * p[0][0] ** 2 + np.sum(p[0] ** 2)

    def newton(p, b):
        return rz.hessian(f)(p).solve(b)

    at, b = (np.arange(3.0) + 1.0, 2.0), (np.ones(3), 0.5)
    for found, expected in zip(rz.compile(newton)(at, b), newton(at, b), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(rz.TraceError, match="to_sparse"):
        rz.function(lambda p: rz.hessian(f)(p).to_sparse())(at)
    with pytest.raises(
        rz.VectorError, match=r"expected an array of floats of shape \(2,\), got a traced array of shape \(3,\)$"
    ):
        rz.function(lambda x: rz.jacobian(lambda x: x[:2])(x).solve(x))(np.ones(3))


def where(x):
    return np.where(x > 0, x, 0.0)


def dot(x):
    return x @ x


def greater(x):
    return x > 1


def dtype_int8(x):
    return np.square(x > 1)


@pytest.mark.parametrize("f", [where, dot, greater, dtype_int8, np.logical_not, np.square, np.floor])
@pytest.mark.parametrize("x", [np.array([0.5, 2.0]), np.array([0.5, 2.0], np.float32), np.array([1, 2])])
def test_a_function_may_have_the_name_of_what_it_calls(f, x):
    for g in (rz.function(f), rz.compile(f), rz.compile(f, backend="numpy")):
        found = g(x)
        np.testing.assert_array_equal(found, f(x))
        assert np.asarray(found).dtype == np.asarray(f(x)).dtype


def test_hessians_of_generalised_linear_models_have_a_line_for_each_step():
    """Products of three arrays, numbers put into zeros, numbers added up at pairs: none runs as in the interpreter."""
    A, x = np.random.default_rng(3).normal(size=(20, 5)), np.linspace(-0.5, 0.7, 5)
    loss = lambda w: np.sum(np.tanh(A @ w) ** 2) + 0.3 * np.sum(w * w)  # noqa: E731
    g = rz.compile(lambda w: rz.hessian(loss)(w).to_dense(), x, backend="numpy")
    t = np.tanh(A @ x)
    slopes = 2.0 * (1.0 - t * t) * (1.0 - 3.0 * t * t)
    wanted = A.T @ (slopes[:, None] * A) + 0.6 * np.eye(5)
    for found in (g(x), rz.hessian(loss)(x).to_dense(), rz.hessian(loss)(x).to_sparse().toarray()):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert "as in the interpreter" not in g.explain()


@pytest.mark.parametrize("kind", [float, np.float32])
def test_numbers_put_into_zeros(kind):
    """Slices turned round: with strides, backwards, behind other axes, of whole numbers and of single precision."""
    x, m = np.linspace(0.5, 2.0, 7).astype(kind), np.arange(1.0, 22.0).reshape(3, 7).astype(kind)
    for f in (
        lambda x: np.pad(x, 3) * 2.0,
        lambda x: np.pad(np.cos(x), (0, 2)) + 1.0,
        lambda x: np.sum(x[::2] ** 3) + np.sum(np.sin(x[5:1:-1])),
    ):
        for g in (f, rz.grad(total(f))):
            compare(g, (x,), ("numpy", "steps"), 1e-12)
    compare(rz.grad(lambda m: np.sum(m[:, 1:6:2] ** 3) + np.sum(np.exp(-m[2]))), (m,), ("numpy", "steps"), 1e-12)
