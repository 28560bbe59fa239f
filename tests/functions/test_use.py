"""Code as it comes: in-place operators, changing surroundings, random numbers, odd containers, derivatives of one's own, printing."""

import functools
import gc
import inspect
import tracemalloc
from collections import OrderedDict

import numpy as np
import pytest
import scipy.special
from scipy.special import logsumexp

import riesz as rz

X = np.array([0.3, -1.2, 2.0])


# -- in place --------------------------------------------------------------------------------------------------------


def halve(a):
    a /= 2.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: _then(np.exp(x), halve),
        lambda x: _then(x * 2.0, lambda h: h.__iadd__(1.0)),
        lambda x: np.sum(functools.reduce(lambda a, b: a.__imul__(b), [x * 1.0, x, x])),
    ],
)
def test_in_place_operators_change_the_array_for_all_who_hold_it(f):
    np.testing.assert_allclose(rz.function(f)(X), f(X.copy()), rtol=1e-15)


def _then(a, change):
    b = a
    change(b)
    return np.sum(a**2)


def test_every_in_place_operator():
    def f(x):
        y = np.abs(x) + 1.0
        y += 1.0
        y -= x
        y *= 2.0
        y /= 3.0
        y **= 2
        y %= 5.0
        y @= np.eye(3)
        n = np.argsort(x)
        n += 1
        t = 0.0
        t += np.sum(y)
        return t + np.sum(y * n)

    np.testing.assert_allclose(rz.function(f)(X), f(X), rtol=1e-15)
    assert rz.check(f, X)


@pytest.mark.parametrize(
    "view",
    [lambda a: a[:2], lambda a: a[None].T, lambda a: a.reshape(3, 1), lambda a: np.ravel(a[None]), lambda a: a[::-1]],
)
def test_in_place_operators_change_what_looks_into_an_array(view):
    def f(x):
        a = x * 2.0
        b = view(a)
        b += 1.0
        return np.sum(a)

    def g(x):
        a = x * 2.0
        b = view(a)
        a += 1.0
        return np.sum(b)

    for h in (f, g):
        np.testing.assert_allclose(rz.function(h)(X), h(X), rtol=1e-15)
        assert rz.check(h, X)


def test_what_functions_do_inside_makes_no_views():
    def f(x):
        h = x * 2.0
        s = np.prod(h) + np.linalg.norm(h) + h.std() + np.sort(h)[0]
        h += 1.0
        return np.sum(h) * s

    np.testing.assert_allclose(rz.function(f)(X), f(X), rtol=1e-14)


def test_in_place_operators_keep_shape_and_type():
    def grow(x):
        y = x * 1.0
        y += np.ones((2, 3))
        return y

    def turn(x):
        n = np.argsort(x)
        n += 0.5
        return n

    with pytest.raises(ValueError, match="broadcast"):
        rz.function(grow)(X)
    with pytest.raises(TypeError, match="cast"):
        rz.function(turn)(X)

    def keep(x):
        y = x * 2
        y += np.ones(3)
        return y

    assert rz.function(keep)(X.astype(np.float32)).dtype == np.float32


# -- surroundings that change ----------------------------------------------------------------------------------------


def test_closed_over_containers_are_watched():
    settings, weights, deep = {"k": 2.0}, [np.ones(3)], {"a": [{"b": 1.0}]}

    def f(x):
        return np.sum(x * weights[0]) * settings["k"] * deep["a"][0]["b"]

    g = rz.grad(f)
    assert g(X)[0] == 2.0
    settings["k"] = 3.0
    assert g(X)[0] == 3.0
    weights[0] = np.full(3, 2.0)
    assert g(X)[0] == 6.0
    deep["a"][0]["b"] = 10.0
    assert g(X)[0] == 60.0
    weights[0][:] = 1.0  # a small array, written to
    assert g(X)[0] == 30.0


def test_class_attributes_are_watched():
    class Settings:
        k = 2.0

    g = rz.grad(lambda x: Settings.k * x)
    assert g(1.0) == 2.0
    Settings.k = 5.0
    assert g(1.0) == 5.0


def test_what_a_function_writes_itself_is_no_reason_to_trace_again():
    log, count = [], {"n": 0}

    def f(x):
        log.append(x.shape)
        count["n"] += 1
        return np.sum(x**2)

    g = rz.grad(f)
    for n in (3, 4, 3, 4, 3):
        g(np.ones(n))
    assert len(log) == count["n"] == 2


def test_static_arrays_and_lists_count_by_their_contents():
    f = rz.function(lambda x, which: np.sum(x[which]), static_argnums=1)
    mask = np.array([True, False, True])
    assert f(X, mask) == X[0] + X[2]
    mask[1] = True
    assert f(X, mask) == pytest.approx(np.sum(X))
    assert [f(X, [i]) for i in range(3)] == list(X)


def test_random_numbers_are_drawn_anew():
    rng = np.random.default_rng(0)
    for draw in (lambda: np.random.normal(size=3), lambda: rng.normal(size=3)):
        g = rz.grad(lambda x, draw=draw: np.sum(draw() * x))
        assert (g(X) != g(X)).all()


def test_functions_are_not_kept_alive():
    def once():
        a = np.ones(20_000)
        rz.grad(lambda x: np.sum(a * x**2))(a)

    once()
    tracemalloc.start()
    for _ in range(50):
        once()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 3 * 160_000


class Unhashable:
    """A callable in this module's namespace that cannot be hashed."""

    __hash__ = None

    def __call__(self, x):
        return x

    def __eq__(self, other):
        raise TypeError("no comparison")


UNHASHABLE = Unhashable()


def test_odd_things_in_the_module_do_no_harm():
    original = np.array
    assert rz.grad(lambda x: np.sum(UNHASHABLE(x)))(X).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ZeroDivisionError):
        rz.grad(lambda x: 1 / 0)(X)
    assert np.array is original


def test_scipy_functions_given_in_other_ways():
    want = np.exp(X) / np.sum(np.exp(X))
    np.testing.assert_allclose(rz.grad(functools.partial(logsumexp, axis=0))(X), want, rtol=1e-14)
    np.testing.assert_allclose(rz.grad(logsumexp)(X), want, rtol=1e-14)


# -- results ---------------------------------------------------------------------------------------------------------


def test_results_keep_their_types():
    assert rz.function(lambda x: (len(x), x.shape, "name", None, True))(X) == (3, (3,), "name", None, True)
    x = X.astype(np.float32)
    for L in (rz.jacobian(lambda x: 2 * x)(x), rz.hessian(lambda x: np.sum(x))(x), rz.jacobian(lambda x: x * 0)(x)):
        assert L.dtype == L.to_dense().dtype == L(x).dtype == L.H(x).dtype == np.float32
    assert rz.function(lambda x: rz.jvp(np.sin, (x,), (x,))[1])(x).dtype == np.float32


def test_dicts_of_every_kind():
    assert rz.grad(lambda d: d[1] * d[2, 3])({1: 2.0, (2, 3): 5.0}) == {1: 5.0, (2, 3): 2.0}
    got = rz.grad(lambda d: d["a"] ** 2)(OrderedDict(a=2.0))
    assert type(got) is OrderedDict and got["a"] == 4.0


def test_as_in_jax():
    assert rz.grad(lambda x, y: x * y, argnums=[0, 1])(2.0, 3.0) == (3.0, 2.0)
    assert rz.jvp(lambda x: (x**2, "aux"), (2.0,), (1.0,), has_aux=True) == (4.0, 4.0, "aux")
    assert rz.vmap(lambda x: np.ones(2), out_axes=None)(X).tolist() == [1.0, 1.0]
    for bad in (
        lambda: rz.grad(lambda x, y: x, (0, 0))(1.0, 2.0),
        lambda: rz.function(lambda x: x, static_argnames="n"),
        lambda: rz.function(lambda x: x, static_argnums=3),
        lambda: rz.vmap(lambda x: x, out_axes=None)(X),
        lambda: rz.function(lambda x: rz.loop(lambda c, _: (c, c), x, length=9, checkpoint=-1))(1.0),
    ):
        with pytest.raises(rz.SpaceError):
            bad()


@pytest.mark.parametrize("x", [np.ma.array([1.0, 2.0], mask=[0, 1]), np.zeros((1, 2)).view(np.matrix)])
def test_arrays_with_arithmetic_of_their_own_are_refused(x):
    with pytest.raises(rz.VectorError, match="plain array"):
        rz.grad(lambda x: np.sum(x**2))(x)


# -- derivatives of one's own ----------------------------------------------------------------------------------------


def test_custom_derivatives_map_index_by_index():
    share = rz.custom_derivative(lambda x: x / np.max(x), lambda x: lambda d: d / np.max(x))
    A = np.array([[1.0, 2.0], [3.0, 8.0]])
    assert rz.vmap(share)(A).tolist() == [[0.5, 1.0], [0.375, 1.0]]
    assert rz.vmap(rz.grad(lambda v: np.sum(share(v) ** 2)))(A).tolist() == [[0.5, 1.0], [0.09375, 0.25]]
    twice = rz.vmap(rz.vmap(rz.custom_derivative(lambda x: float(x) ** 2, lambda x: lambda d: 2 * x * d)))
    np.testing.assert_allclose(rz.function(twice)(A), A**2)
    np.testing.assert_allclose(rz.grad(lambda A: np.sum(twice(A)))(A), 2 * A)


def test_custom_derivatives_with_keywords_steering_arguments_and_methods():
    @rz.custom_derivative
    def power(x, n, scale=1.0):
        return scale * x**n

    @power.derivative
    def _(x, n, scale):
        return lambda dx, ds: scale * n * x ** (n - 1) * dx + ds * x**n

    np.testing.assert_allclose(rz.grad(lambda x: np.sum(power(x, 3, scale=2.0)))(X), 6 * X**2, rtol=1e-14)
    np.testing.assert_allclose(rz.grad(lambda s: np.sum(power(X, 3, s)))(2.0), np.sum(X**3), rtol=1e-14)

    class Layer:
        k = 2.0

        @rz.custom_derivative
        def f(self, x):
            return self.k * x

        @f.derivative
        def _(self, x):
            return lambda dx: self.k * dx

    assert rz.grad(lambda x: np.sum(Layer().f(x)))(X).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda x: lambda d: np.cos(x) * d + 1, "adds something"),
        (lambda x: lambda d: d**2, "multiplies them"),
        (lambda x: lambda d: np.sin(d), "sin"),
        (lambda x: lambda d: d[:1], "shapes"),
    ],
)
def test_derivatives_that_are_none_are_refused(rule, words):
    f = rz.custom_derivative(lambda x: np.sin(x), rule)
    for use in (lambda: rz.grad(lambda x: np.sum(f(x)))(X), lambda: rz.jvp(lambda x: f(x), (X,), (X,))):
        with pytest.raises(rz.RieszError, match=words):
            use()


def test_primitives_may_use_numpy_and_special_functions():
    @rz.primitive
    def lg(x):
        return scipy.special.gammaln(x)

    @lg.derivative
    def _(x, y):
        return scipy.special.psi(x) * np.square(1.0) + np.sin(x) * 0.0

    at = np.array([1.0, 2.5])
    np.testing.assert_allclose(rz.grad(lambda x: np.sum(lg(x)))(at), scipy.special.psi(at), rtol=1e-14)
    np.testing.assert_allclose(
        rz.hessian(lambda x: np.sum(lg(x)))(at).to_dense().diagonal(), scipy.special.polygamma(1, at), rtol=1e-12
    )


# -- what people see -------------------------------------------------------------------------------------------------


def test_names_and_bodies_in_print():
    assert rz.grad(np.sin).__name__ == "grad(sin)"
    shown = str(rz.derive(lambda x: rz.cond(x > 0, np.sin, np.cos, x), rz.R))
    assert "cond[sin x | cos x]" in shown and "cond[(cos x ·) | ((−sin x) ·)]" in shown
    assert "loop[(c, u) ↦ (tanh (c · u), c)]" in str(
        rz.derive(lambda x: rz.loop(lambda c, u: (np.tanh(c * u), c), 1.0, x)[0], rz.R ** rz.seg(4))
    )
    assert str(rz.derive(lambda y: 1 - y, rz.R ** rz.seg(5)).function) == "K(1) − id"
    assert str(rz.derive(lambda x: np.fft.irfft(np.fft.rfft(x)), rz.R ** rz.seg(6)).function) == "F_ℝ⁻¹ • F_ℝ"
    assert inspect.signature(rz.function(lambda a, b=1: a)).parameters.keys() == {"a", "b"}


def test_error_lines_in_code_without_a_file():
    space = {"np": np}
    exec("def f(x):\n    y = x[1:]\n    y[0] = 1.0\n    return y", space)
    with pytest.raises(rz.TraceError, match="<string>:3, in f"):
        rz.grad(space["f"])(X)
