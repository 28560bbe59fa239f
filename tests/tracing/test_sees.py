"""Tracing sees what Python saw: types, caught errors, users' own functions, and the value itself."""

import collections.abc
import contextlib
import copy
import functools
import math
import numbers
import random
import typing
from collections import deque

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import riesz as rz
from riesz.errors import TraceError
from riesz.tracing.traced import Traced

X = np.array([1.0, 2.0, 4.0])


# -- what a traced array is said to be ------------------------------------------------------------------------------------------

CLASSES = [
    *(
        np.ndarray,
        (np.ndarray, list),
        float,
        int,
        bool,
        complex,
        list,
        tuple,
        np.generic,
        np.number,
        np.floating,
        np.float64,
        np.float32,
    ),
    *(
        np.integer,
        np.bool_,
        np.complexfloating,
        np.matrix,
        np.ma.MaskedArray,
        numbers.Number,
        numbers.Real,
        numbers.Complex,
        numbers.Integral,
    ),
    *(
        collections.abc.Iterable,
        collections.abc.Sequence,
        collections.abc.Sized,
        collections.abc.Container,
        collections.abc.Collection,
    ),
    *(collections.abc.Hashable, collections.abc.Mapping, collections.abc.Callable, typing.SupportsAbs),
]
QUESTIONS = [
    *[lambda v, kind=kind: isinstance(v, kind) for kind in CLASSES],
    *(
        np.isscalar,
        np.iterable,
        np.ndim,
        np.shape,
        np.size,
        np.isrealobj,
        np.iscomplexobj,
        lambda v: hasattr(v, "__len__"),
    ),
    lambda v: np.issubdtype(np.result_type(v), np.floating),
]

OF_ARRAYS = {
    "x": lambda x: x,
    "x[0]": lambda x: x[0],
    "x.T": lambda x: x.T,
    "np.sum(x)": np.sum,
    "x.mean()": lambda x: x.mean(),
    "np.max(x, axis=0)": lambda x: np.max(x, axis=0),
    "np.dot": lambda x: np.dot(x.ravel(), x.ravel()),
    "np.linalg.norm(x)": np.linalg.norm,
    "x > 1": lambda x: x > 1,
    "(x > 1)[-1]": lambda x: (x > 1).ravel()[-1],
    "np.any": lambda x: np.any(x > 1),
    "np.argsort(x)": np.argsort,
    "np.argmin(x)": np.argmin,
    "x.astype(np.float32)": lambda x: x.astype(np.float32),
    "float32 number": lambda x: x.astype(np.float32).ravel()[0],
    "x + 1j": lambda x: x + 1j,
    "complex number": lambda x: (x * 1j).ravel()[0],
    "x.reshape(())": lambda x: x.ravel()[:1].reshape(()),
    "np.squeeze": lambda x: np.squeeze(x.ravel()[:1]),
    "an element": lambda x: list(x.ravel())[1],
}
OF_NUMBERS = {
    "x": lambda x: x,
    "2 * x": lambda x: 2 * x,
    "-x": lambda x: -x,
    "abs(x)": abs,
    "x ** 2": lambda x: x**2,
    "x // 2": lambda x: x // 2,
    "x % 1.0": lambda x: x % 1.0,
    "x / 3": lambda x: x / 3,
    "x + x": lambda x: x + x,
    "np.sin(x)": np.sin,
    "np.add(x, x)": lambda x: np.add(x, x),
    "np.float64(2) * x": lambda x: np.float64(2) * x,
    "np.asarray(x)": lambda x: np.asarray(x),
    "np.array([x])": lambda x: np.array([x]),
    "np.where": lambda x: np.where(x > 0, x, 0.0),
    "np.atleast_1d(x)": np.atleast_1d,
    "x * 1j": lambda x: x * 1j,
}


def answers(make, x):
    v = make(x)
    return [ask(v) for ask in QUESTIONS]


def traced_answers(make, x):
    found = []

    def f(x):
        found[:] = answers(make, x)
        return np.sum(x)

    rz.function(f).at((x,))
    return found


@pytest.mark.parametrize(
    "x", [X, X.astype(np.float32), X.reshape(3, 1), np.ones((2, 2, 3))], ids=["1-d", "float32", "column", "3-d"]
)
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays_and_what_is_made_of_them_answer_as_their_values(name, x):
    assert traced_answers(OF_ARRAYS[name], x) == answers(OF_ARRAYS[name], x)


@pytest.mark.parametrize(
    "x", [1.5, np.float64(1.5), np.float32(1.5), np.array(1.5)], ids=["float", "float64", "float32", "0-d"]
)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_and_what_is_made_of_them_answer_as_their_values(name, x):
    assert traced_answers(OF_NUMBERS[name], x) == answers(OF_NUMBERS[name], x)


def test_branches_on_types_are_those_of_plain_python():
    def norm(v):
        match v:
            case np.ndarray():
                return np.sum(v**2)
            case float():
                return v**4

    assert rz.grad(norm)(X).tolist() == [2.0, 4.0, 8.0] and rz.grad(norm)(1.0) == 4.0

    @functools.singledispatch
    def energy(v):
        return np.sum(v) * 0.0

    @energy.register
    def _(v: np.ndarray):
        return np.sum(v**3)

    @energy.register
    def _(v: float):
        return 5.0 * v

    assert rz.grad(lambda x: energy(x))(X).tolist() == [3.0, 12.0, 48.0]
    assert rz.grad(lambda x: energy(x) + energy(np.sum(X) * x))(1.0) == 40.0
    assert rz.grad(lambda x: x**2 if np.isscalar(x) else np.sum(x))(3.0) == 6.0
    assert rz.grad(lambda x: np.sum([v * 2.0 if isinstance(v, np.floating) else v for v in x]))(X).tolist() == [
        2.0,
        2.0,
        2.0,
    ]


def test_a_number_has_no_length_and_an_array_has():
    def f(x):
        try:
            return len(x) * np.sum(x)
        except TypeError:
            return 7.0 * x

    assert rz.grad(f)(2.0) == 7.0 and rz.grad(f)(X).tolist() == [3.0, 3.0, 3.0]
    assert rz.grad(lambda x: np.sum(x) * (2.0 if hasattr(x, "__len__") else 3.0))(1.0) == 3.0


def test_a_number_of_python_has_no_elements():
    def subscripted(x):
        try:
            return x[0] * 2.0
        except TypeError:
            return 7.0 * x

    def unpacked(x):
        try:
            (y,) = x
        except TypeError:
            y = 7.0 * x
        return y

    assert rz.grad(subscripted)(2.0) == rz.grad(unpacked)(2.0) == 7.0
    assert rz.grad(subscripted)(np.ones(1)).tolist() == [2.0]


def summed(x):
    return sum(x) if hasattr(x, "__iter__") else 7.0 * x


@pytest.mark.parametrize(
    "use",
    [
        lambda: rz.grad(summed)(2.0),
        lambda: rz.grad(summed)(np.float32(2.0)),
        lambda: rz.function(lambda x: rz.vmap(summed)(x))(X),
        lambda: rz.compile(summed)(2.0),
        lambda: rz.function(lambda x: rz.fori_loop(0, 2, lambda i, c: summed(c), x))(2.0),
    ],
)
def test_an_error_that_plain_python_does_not_raise_is_explained(use):
    with pytest.raises(TraceError, match=r"gives a result in plain Python, but .*has no len"):
        use()


def test_memory_is_described():
    def f(x):
        assert (
            x.flags["C_CONTIGUOUS"] and x.flags.writeable and x.strides == (24, 8) and x.base is None and x.nbytes == 48
        )
        return np.sum(x)

    assert rz.grad(f)(np.ones((2, 3))).shape == (2, 3)


# -- errors that the function itself caught --------------------------------------------------------------------------------------


def falls_back(x):
    try:
        return np.sum(x) * float(x[0])  # refused
    except Exception:
        return np.sum(x)


def bare(x):
    try:
        if float(x[0]) > 0:  # refused
            return np.sum(x**2)
    except:  # noqa: E722
        pass
    return 0.0


def by_type(x):
    try:
        return np.frexp(x)[0].sum()  # refused
    except TypeError:
        return np.sum(x * 0.0)


def in_a_helper(x):
    return np.sum([falls_back(x * k) for k in (1.0, 2.0)])


def in_an_inner_function(x):
    try:
        return np.sum(rz.grad(lambda y: np.sum(y) * float(y[0]))(x))  # refused
    except TypeError:
        return np.sum(x)


@pytest.mark.parametrize("f", [falls_back, bare, by_type, in_a_helper, in_an_inner_function])
def test_a_refusal_that_was_caught_is_reported_with_its_line(f):
    import inspect

    helper = falls_back if f is in_a_helper else f
    lines, first = inspect.getsourcelines(helper)
    line = first + next(i for i, text in enumerate(lines) if "# refused" in text)
    for use in (
        lambda: rz.grad(f)(X),
        lambda: rz.function(f)(X),
        lambda: rz.compile(f)(X),
        lambda: rz.vmap(f)(np.stack([X, X])),
    ):
        with pytest.raises(TraceError, match=f"caught an error of riesz and went on.*test_sees.py:{line}") as caught:
            use()
        assert "rz.custom_derivative" in str(caught.value)


def test_errors_that_plain_python_raises_too_may_be_caught():
    def f(x):
        with contextlib.suppress(ValueError):
            x @ np.ones(7)
        with contextlib.suppress(AttributeError):
            x.no_such_name  # noqa: B018
        return np.sum(x**2) if getattr(x, "units", None) is None else 0.0

    assert rz.grad(f)(X).tolist() == [2.0, 4.0, 8.0]


def test_what_riesz_itself_tries_is_not_reported():
    square = rz.custom_derivative(
        lambda x: x**2, lambda x: lambda d: 2.0 * x * d, lambda x: lambda w: 2.0 * np.asarray(x) * w
    )

    def f(x):
        L = rz.jacobian(square)(x)
        return np.sum(L(x))

    np.testing.assert_allclose(rz.function(f)(X), np.sum(2 * X**2))


# -- functions of users' own are called with numbers -----------------------------------------------------------------------------


def cube_root():
    """A function that finds roots, catches all errors, and says what it was called with."""
    called = []

    @rz.custom_derivative
    def root(a):
        called.append(type(a))
        try:
            return scipy.optimize.brentq(lambda t: t**3 - a, 1.0, 5.0)  # fails for a < 1
        except Exception:
            return np.nan

    @root.derivative
    def _(a):
        return lambda da: da / (3.0 * root(a) ** 2)

    return root, called


def test_a_root_finder_that_catches_everything_has_values_and_derivatives():
    root, called = cube_root()
    assert rz.value_and_grad(lambda a: root(a) ** 2)(8.0) == pytest.approx((4.0, 1.0 / 3.0))
    assert rz.grad(rz.grad(root))(8.0) == pytest.approx(-2.0 / 9.0 * 8.0 ** (-5.0 / 3.0))
    assert rz.hessian(lambda a: root(a * a))(8.0).to_dense() == pytest.approx(-2.0 / 9.0 * 8.0 ** (-4.0 / 3.0))
    assert set(called) <= {float, np.float64}


@pytest.mark.parametrize("backend", ["auto", "numpy", "numba", "jax"])
def test_host_functions_compile_and_map(backend):
    if backend != "numpy":
        pytest.importorskip({"auto": "numpy"}.get(backend, backend))
    root, called = cube_root()
    A = np.array([1.5, 8.0, 27.0])
    f = rz.value_and_grad(lambda A: np.sum(rz.vmap(root)(A) ** 2))
    for g in (f, rz.compile(f, backend=backend)):
        value, slope = g(A)
        np.testing.assert_allclose(value, np.sum(A ** (2 / 3)), rtol=1e-9)
        np.testing.assert_allclose(slope, 2 / 3 * A ** (-1 / 3), rtol=1e-9)
    assert set(called) <= {float, np.float64}


@pytest.mark.parametrize("name", ["<lambda>", "class", "2 x", "jnp"])
def test_host_functions_of_any_name_run_under_jit(name):
    jax = pytest.importorskip("jax")
    enabled = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:

        def square(x):
            return float(x) ** 2

        square.__name__ = name
        own = rz.custom_derivative(square, lambda x: lambda d: 2.0 * x * d)
        f = rz.compile(lambda a: 3.0 * own(a), backend="jax")
        assert jax.jit(lambda a: f(a))(2.0) == 12.0 and jax.grad(lambda a: f(a))(2.0) == 12.0
        assert jax.vmap(f)(jax.numpy.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
    finally:
        jax.config.update("jax_enable_x64", enabled)


def test_arrays_of_other_libraries_beside_traced_ones():
    jnp = pytest.importorskip("jax.numpy")
    ones = jnp.ones(3)
    assert rz.grad(lambda x: np.sum(ones * x) + np.sum(x * ones))(X).tolist() == [2.0, 2.0, 2.0]


def test_copies_by_the_copy_module():
    assert rz.grad(lambda x: np.sum(copy.copy(x) * copy.deepcopy(x)))(X).tolist() == [2.0, 4.0, 8.0]


def test_shapes_are_learned_at_the_point_where_the_function_is_traced():
    def far(x):
        if np.any(np.asarray(x) < 100.0):
            raise ValueError("only defined from 100 on")
        return np.array([np.sum(x), 1.0])

    f = rz.custom_derivative(far, lambda x: lambda d: np.stack([np.sum(d), 0.0 * np.sum(d)]))
    assert rz.grad(lambda x: np.sum(f(x * 50.0)))(np.array([4.0, 5.0])).tolist() == [50.0, 50.0]
    assert rz.grad(lambda x: np.sum(rz.vmap(f)(x * 50.0)))(np.full((3, 2), 4.0)).tolist() == [[50.0, 50.0]] * 3
    total = lambda x: rz.loop(lambda c, k: (c + np.sum(f(x * k)), None), 0.0, np.array([200.0, 300.0]))[0]  # noqa: E731
    assert rz.grad(total)(np.ones(2)).tolist() == [500.0, 500.0]
    with pytest.raises(TraceError, match=r"only defined from 100 on.*result="):
        rz.derive(lambda x: f(x), rz.R ** rz.seg(5))
    stated = rz.custom_derivative(
        far, lambda x: lambda d: np.stack([np.sum(d), 0.0 * np.sum(d)]), result=lambda x: np.zeros(2)
    )
    assert "far" in str(rz.derive(lambda x: stated(x), rz.R ** rz.seg(5)))


def test_a_host_function_gets_arrays_of_its_own_in_the_types_given():
    seen = []

    def scaled(x, k):
        seen.append((type(x), x.dtype, type(k)))
        x *= k  # its own array
        return x

    f = rz.custom_derivative(scaled, lambda x, k: lambda dx, dk: k * dx + dk * x)
    x = np.ones(3, np.float32)
    assert rz.function(lambda x: f(x, 2.0) + x)(x).tolist() == [3.0, 3.0, 3.0] and x.tolist() == [1.0, 1.0, 1.0]
    assert set(seen) == {(np.ndarray, np.dtype(np.float32), float)}


def test_results_of_another_form_are_refused():
    f = rz.custom_derivative(lambda x: x if x[0] > 0 else np.zeros(1), lambda x: lambda d: d)
    g = rz.function(lambda x: f(x))
    assert g(X).tolist() == X.tolist()
    with pytest.raises(TraceError, match=r"shape \(1,\) here, but an array of shape \(3,\)"):
        g(-X)


def test_given_adjoints_are_mapped_one_by_one():
    def both(x):
        return np.array([2.0 * float(x[0]), 3.0 * float(x[1])])

    f = rz.custom_derivative(both, lambda x: both, lambda x: both)
    A = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(rz.vmap(f)(A), A * [2.0, 3.0])
    np.testing.assert_allclose(rz.grad(lambda A: np.sum(rz.vmap(f)(A) ** 2))(A), 2 * A * [4.0, 9.0])
    np.testing.assert_allclose(rz.vmap(rz.grad(lambda x: np.sum(f(x) ** 2)))(A), 2 * A * [4.0, 9.0])


@pytest.mark.parametrize("backend", ["auto", "numpy", "jax"])
def test_declared_functions_for_single_vectors_are_mapped_one_by_one(backend):
    if backend == "jax":
        pytest.importorskip("jax")
    V = rz.space_of(np.ones(2))
    weights = np.array([1.0, 2.0])

    def scaled(v):
        assert type(v) is np.ndarray and v.shape == (2,)
        return weights * v

    def paired(u, v):
        assert type(u) is type(v) is np.ndarray and u.shape == v.shape == (2,)
        return u * v[::-1]

    L = rz.linear(scaled, scaled, domain=V, codomain=V)
    B = rz.bilinear(paired, lambda u, w: (u * w)[::-1], lambda v, w: v[::-1] * w, spaces=(V, V), codomain=V)
    A = np.arange(6.0).reshape(3, 2) + 1.0

    def f(A):
        return np.sum(rz.vmap(lambda v: L(v) + B(v, v))(A) ** 2)

    def plain(A):
        return np.sum((weights * A + A * A[:, ::-1]) ** 2)

    g = rz.compile(rz.value_and_grad(f), backend=backend)
    np.testing.assert_allclose(g(A)[0], plain(A))
    np.testing.assert_allclose(g(A)[1], rz.grad(plain)(A))


# -- values are compared ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "words"),
    [
        (lambda x: x**2 if type(x) is float else x**3, 2.0, "is 4 in plain Python, 8 traced"),
        (lambda x: np.sum(x) if type(x) == np.ndarray else np.sum(x) * 2, X, "is 7 in plain Python, 14 traced"),  # noqa: E721
        (lambda x: np.sin(x) if hasattr(x, "dtype") else np.cos(x), 0.0, "is 1 in plain Python, 0 traced"),
        (
            lambda x: np.stack([np.sum(x), np.sum(x) if type(x) is np.ndarray else 0.0]),
            X,
            r"at \[1\] is 7 in plain Python, 0 traced",
        ),
        (
            lambda x: (x, x) if type(x) is np.ndarray else x,
            X,
            "another structure: a container of 2 in plain Python, one value traced",
        ),
        (lambda x: x[:1] if type(x) is np.ndarray else x, X, r"shape \(1,\) in plain Python, \(3,\) traced"),
        (lambda x: {"a": x, "n": 1 if type(x) is np.ndarray else 2}, X, "is 1 in plain Python, 2 traced"),
        (lambda x: np.sum(x) * (np.nan if type(x) is np.ndarray else 1.0), X, "is nan in plain Python, 7 traced"),
    ],
)
def test_a_trace_that_computes_something_else_is_refused(f, x, words):
    for use in (lambda: rz.function(f)(x), lambda: rz.linearize(f, x), lambda: rz.compile(f)(x)):
        with pytest.raises(TraceError, match=f"does not compute the same.*{words}"):
            use()


def asks(x):
    return np.sum(x**2) if type(x) is np.ndarray else np.sum(x**4)


def asks_late(x):
    for _ in range(150):
        x = np.sin(x) + 0.1
    return asks(x)


def asks_beside_a_derivative(x):
    return np.sum(rz.grad(lambda y: np.sum(y**3))(x)) * asks(x)


def asks_beside_a_logarithm(x):
    return np.sum(np.log(x)) * (1.0 if type(x) is np.ndarray else 2.0)


def gives_up(x):
    try:
        return np.sum(np.linalg.inv(np.outer(x, 0.0 * x)))
    except np.linalg.LinAlgError:
        return np.sum(x)


NESTED = {
    "twice": lambda: rz.grad(lambda x: np.sum(rz.grad(asks)(x)))(X),
    "jacobian of a gradient": lambda: rz.jacobian(rz.grad(asks))(X),
    "hessian product": lambda: rz.hvp(asks, (X,), (X,)),
    "vmap": lambda: rz.vmap(asks)(np.stack([X, X])),
    "vmap of a gradient": lambda: rz.vmap(rz.grad(asks))(np.stack([X, X])),
    "compiled": lambda: rz.compile(rz.grad(asks))(X),
    "checkpoint": lambda: rz.grad(rz.checkpoint(asks))(X),
    "at a space": lambda: rz.derive(asks, rz.R ** rz.seg(3)),
    "called": lambda: rz.grad(lambda x: 2.0 * rz.function(asks)(x))(X),
    "a branch": lambda: rz.grad(lambda x: rz.cond(x[0] > 0.0, asks, np.sum, x))(X),
    "many steps": lambda: rz.grad(asks_late)(X),
    "many numbers": lambda: rz.grad(asks)(np.full(200_000, 2.0)),
    "a derivative beside": lambda: rz.grad(asks_beside_a_derivative)(X),
    "a logarithm beside": lambda: rz.grad(asks_beside_a_logarithm)(X),
    "what is a view": lambda: rz.grad(lambda x: np.sum(x[:2].flags.owndata) + np.sum(x))(X),
    "an error caught": lambda: rz.function(gives_up)(X),
}


@pytest.mark.parametrize("name", NESTED)
def test_what_computes_something_else_is_refused_wherever_it_is_traced(name):
    with pytest.raises(TraceError, match="does not compute the same"):
        NESTED[name]()


def test_a_wrong_rule_would_be_found(monkeypatch):
    from riesz.tracing.traced import FUNCTIONS

    monkeypatch.setitem(FUNCTIONS, np.trace, lambda a, *args, **named: np.sum(a))
    with pytest.raises(TraceError, match="is 2 in plain Python, 4 traced"):
        rz.grad(lambda x: np.trace(x))(np.ones((2, 2)))


def test_check_compares_at_any_size():
    report = rz.check(lambda x: np.sum(x[:1000]) if type(x) is np.ndarray else np.sum(x), np.ones(100_000), orders=1)
    assert not report and "where it is derived" in str(report)
    report = rz.check(lambda x: x[:3] if type(x) is np.ndarray else x, np.ones(100_000), orders=1)
    assert not report and "shapes" in str(report)


def test_rounding_jumps_and_ill_conditioned_values_are_no_difference():
    assert np.isfinite(rz.grad(lambda x: np.floor(x / 0.1) * x)(0.3))
    assert rz.grad(lambda x: np.sum((x / 3.0) * 3.0 - x))(np.linspace(0.1, 1.0, 9)).shape == (9,)
    rz.function(lambda x: 1.0 / (x * 3.0 / 3.0 - x + 1e-300))(0.7)
    assert rz.grad(lambda x: np.sum(np.log(x)))(np.array([0.0, 1.0, -1.0])).shape == (3,)
    assert rz.function(lambda x: x / 0.0 - x / 0.0)(1.0) != 0.0


def test_functions_with_effects_run_once():
    state = {"count": 0}
    log, seen, bag = [], set(), {}

    class Model:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return np.sum(x**2)

    def counted(x):
        state["count"] += 1
        return np.sum(x)

    def logged(x):
        log.append(x.shape)
        return np.sum(x)

    def noted(x):
        seen.add(len(seen))
        return np.sum(x)

    def filled(x):
        bag[len(bag)] = 1
        return np.sum(x)

    numbers_left = iter(range(5))

    def fed(x):
        return np.sum(x) * next(numbers_left)

    fed_from = [iter(range(5)), deque([iter(range(5))])]

    def fed_by_a_list(x):
        return np.sum(x) * fed_from[0].__next__() * fed_from[1][0].__next__()

    model = Model()
    for f in (counted, logged, noted, filled, fed, fed_by_a_list, model):
        rz.function(f)(X)
    assert fed_from[0].__next__() == fed_from[1][0].__next__() == 1
    assert state["count"] == len(log) == len(seen) == len(bag) == model.calls == 1 and next(numbers_left) == 1


def test_printing_happens_once(capsys):
    def f(x):
        print("here")
        return np.sum(x)

    def helped(x):
        return f(x) * 2.0

    rz.grad(f)(X)
    rz.grad(helped)(X)
    assert capsys.readouterr().out == "here\nhere\n"


def test_a_function_that_writes_to_its_argument_in_plain_python_leaves_the_callers_alone():
    def f(x):
        if type(x) is np.ndarray:
            x[:] = 0.0
        return np.sum(x) * 0.0

    x = X.copy()
    rz.function(f)(x)
    assert x.tolist() == X.tolist()


def test_what_fails_in_plain_python_is_not_compared():
    assert rz.grad(lambda x: x.sum() * 2.0)(3.0) == 2.0  # a float has no sum


def test_draws_are_new_at_each_call():
    legacy, own = np.random.RandomState(1), random.Random(1)
    for f in (
        lambda x: x + np.random.randn(),
        lambda x: x + np.random.standard_normal(),
        lambda x: x + legacy.normal(),
        lambda x: x + random.gauss(0.0, 1.0),
        lambda x: x + random.random(),
        lambda x: x + own.random(),
    ):
        g = rz.function(f)
        assert len({g(0.0) for _ in range(6)}) == 6


# -- masks and Python's truth values ---------------------------------------------------------------------------------------------

MASKS = """
(x > 1) & True; True & (x > 1); (x > 1) | np.True_; (x > 1) ^ False; (x > 1) == True; False != (x > 1); ~(x > 1); True < x; x >= False;
np.True_ > x; (x > 1) & [True, False, True]; [True, True, False] | (x > 1); (x > 1).sum(); (x > 1) * 1.0; (x > 1) + (x > 2); (x > 1) * (x < 3);
(x > 1) + True; True + (x > 1); (x > 1) * 2; (x > 1) / True; x * True; x + np.True_; x ** True; x % True; (x > 1) // True; (x > 1) << 2;
1 << (x > 1); (x > 1) >> 1; np.logical_and(x > 1, True); np.logical_or(False, x > 1); np.bitwise_xor(x > 1, True); np.maximum(x > 1, False);
np.where(True, x, 0.0); np.where((x > 1) & True, x, True); np.argmax(x) == True; x.astype(int) & True; np.any(x > 1) & True; True ^ np.all(x > 1);
(x[0] > 0) * x; np.minimum(x, True); np.clip(x, False, True); np.nan_to_num(x > 1); np.select([x > 2, True], [x, -x]); np.hypot(x, True)
"""


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("text", [" ".join(t.split()) for t in MASKS.split(";")])
def test_masks_with_truth_values(text, dtype):
    f = eval(f"lambda x: {text}", {"np": np})
    x = np.array([-1.0, 2.0, 1.5], dtype)
    want, found = f(x), rz.function(f)(x)
    np.testing.assert_array_equal(found, want)
    assert np.asarray(found).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("text", ["-(x > 1)", "(x > 1) - (x > 2)", "(x > 1) & 1.0", "x & True"])
def test_what_numpy_refuses_of_masks_is_refused(text):
    f = eval(f"lambda x: {text}")
    with pytest.raises(TypeError):
        f(X)
    with pytest.raises(TypeError):
        rz.function(f)(X)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x -> 1 < 2 < x", [False, False, True]),
        ("x -> 2 > 1 >= x", [True, False, False]),
        ("x -> where(1 < 2 < 3, x, -x)", [1.0, 2.0, 4.0]),
        ("x -> where(2 < 1 < x, x, -x)", [-1.0, -2.0, -4.0]),
        ("x -> where(1 < 2 and x > 1, x, 0)", [0.0, 2.0, 4.0]),
        ("x -> (1 < 2) * x", [1.0, 2.0, 4.0]),
    ],
)
def test_comparisons_of_constants_in_texts(text, want):
    assert rz.function(text)(X).tolist() == want


# -- np.r_, np.c_ and lists ------------------------------------------------------------------------------------------------------

JOINS = """
np.r_[x, x]; np.r_[x]; np.c_[x]; np.c_[x, x]; np.c_[x, 2 * x, x]; np.r_[x, 1.0, 2]; np.r_[0:3, x]; np.r_[0:1:4j, x]; np.r_[x, 6:0:-2];
np.r_["-1", x, x]; np.r_["0", x, x]; np.r_["0,2", x, x]; np.r_["1,2,0", x, x]; np.r_["0,2,0", x, x]; np.r_["0,3", x, x]; np.r_["0,3,1", x, x];
np.r_["-1,3,0", x, x]; np.r_["1,3", x, x]; np.r_[np.sum(x), np.mean(x), 3]; np.c_[np.sum(x), 1.0]; np.r_[0:np.sum(x):5j]; np.r_[[x, x]];
np.c_[1 : len(x) + 1, x]; np.c_[x, np.ones(np.shape(x))]; np.r_[x > 1, True]; np.r_[x > 1, x]; np.r_[x, np.float32(1)];
np.r_[x.astype(np.float32), 2.0]; np.r_[x.astype(np.float32), np.float64(2.0)]; np.r_[x.astype(np.float32), [1.0]]; np.c_[x[0], x[-1]]
"""


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2), (1,), (0,)])
@pytest.mark.parametrize("text", [" ".join(t.split()) for t in JOINS.split(";")])
def test_joins_follow_the_rules_of_numpy(text, shape):
    f = eval(f"lambda x: {text}", {"np": np})
    x = np.arange(float(np.prod(shape))).reshape(shape) + 0.5
    try:
        with np.errstate(all="ignore"):
            want = f(x)
    except (ValueError, IndexError, TypeError) as problem:
        with pytest.raises(type(problem)):
            rz.function(f)(x)
        return
    found = rz.function(f)(x)
    np.testing.assert_allclose(found, want, rtol=1e-15)
    assert found.dtype == want.dtype and found.shape == want.shape


def test_joins_as_matrices_are_refused():
    with pytest.raises(TraceError, match="matrix"):
        rz.function(lambda x: np.r_["c", x])(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.mean([x, x + 2]),
        lambda x: np.max([x, 2 * x, 1.0]),
        lambda x: np.std((x, 2 * x, 0.0)),
        lambda x: np.sum([[x, 1.0], [2.0, x * x]], axis=0)[1],
        lambda x: np.prod([x, x, 2]),
        lambda x: np.dot([x, 1.0], [2.0, x]),
        lambda x: np.linalg.norm([x, 2 * x]),
        lambda x: np.linalg.det([[x, 1.0], [2.0, x]]),
        lambda x: np.linalg.solve([[x, 1.0], [1.0, 3.0]], [1.0, x])[0],
        lambda x: np.average([x, 2.0], weights=[x, 1.0]),
        lambda x: x ** np.ndim([x, x]) * np.size([x, x, x]),
    ],
)
def test_lists_of_traced_numbers(f):
    h = 1e-6
    assert rz.grad(f)(2.0) == pytest.approx((f(2.0 + h) - f(2.0 - h)) / (2 * h), rel=1e-6)


def test_tables_by_function_find_it_while_tracing():
    table = {np.sum: 2.0, np.mean: 3.0}
    assert rz.grad(lambda x: table[np.sum] * np.sum(x) + table[np.mean] * np.mean(x))(X).tolist() == [3.0, 3.0, 3.0]


# -- what values have and traced arrays have not -----------------------------------------------------------------------------------


MISSING = {
    "x.is_integer()": 1.5,
    "x.hex()": 1.5,
    "x.as_integer_ratio()[0]": 1.5,
    "hasattr(x, 'is_integer')": 1.5,
    "{x: 1.0}[x]": 1.5,
    "len({x, x})": 1.5,
    "lru_cache(lambda a: a)(x)": 1.5,
    "hash(x)": np.float64(1.5),
    "len(x.tobytes())": X,
    "x.ctypes.data": X,
    "x.nonzero()[0].size": X,
    "next(np.nditer(x))": X,
    "scipy.linalg.rq(np.outer(x, x))[0]": X,
    "scipy.linalg.schur(np.outer(x, x))[0]": X,
}


@pytest.mark.parametrize("text", MISSING)
def test_what_needs_the_numbers_is_refused_with_a_sentence_also_if_it_was_caught(text):
    f = eval(
        f"lambda x: np.sum({text}) * x", {"np": np, "math": math, "scipy": scipy, "lru_cache": functools.lru_cache}
    )

    def caught(x):
        try:
            return f(x)
        except Exception:
            return x

    for g in (f, caught):
        with pytest.raises(TraceError):
            rz.function(g)(MISSING[text])


def test_what_values_have_not_is_missing_as_in_plain_python():
    for x in (1.5, X, np.float64(1.5), 1.5 + 2j * X):
        assert rz.function(lambda y, x=x: np.sum(y * hasattr(x, "nothing")))(1.0) == 0.0
    assert rz.function(lambda x: getattr(x, "nothing", 3.0) * x)(2.0) == 6.0
    with pytest.raises(AttributeError, match="'ndarray' object has no attribute 'nothing'"):
        rz.function(lambda x: x.nothing)(X)
    with pytest.raises(AttributeError, match="'float' object has no attribute 'tobytes'"):
        rz.function(lambda x: x.tobytes())(1.5)
    with pytest.raises(TypeError, match="unhashable type: 'ndarray'"):
        rz.function(lambda x: {x: 1.0})(X)


def test_attributes_of_traced_arrays_are_found_at_full_speed():
    """Python looks up every attribute of a class with `__getattr__` the slow way, ten times as long."""
    assert not hasattr(Traced, "__getattr__")
    assert not [k for k in dir(np.ndarray) if k[0] != "_" and k not in dir(Traced)]


def test_blocks_and_elements_with_indices():
    def f(x):
        whole = np.block([[np.eye(2), np.zeros((2, 3))], [np.zeros((3, 2)), np.diag(x)]])
        return (
            np.sum(whole**3)
            + sum(v**2 * (1 + i[0]) for i, v in np.ndenumerate(x))
            + divmod(5.0, x[0])[1]
            + np.asfortranarray(x[0])[0]
        )

    np.testing.assert_allclose(rz.function(f)(X), f(X))
    np.testing.assert_allclose(
        rz.grad(f)(X), 3 * X**2 + 2 * X * np.arange(1, 4) + np.array([-np.floor(5.0 / X[0]) + 1.0, 0.0, 0.0])
    )
    np.testing.assert_allclose(rz.grad(lambda c: np.sum(scipy.linalg.circulant(c)))(1.5), 1.0)


def test_arguments_that_only_steer_have_no_differential():
    f = rz.custom_derivative(lambda a, n: a ** int(n), lambda a, n: lambda da: n * a ** (n - 1) * da)
    assert rz.grad(lambda a: f(a, 3))(2.0) == 12.0
    g = rz.custom_derivative(lambda a, n: a ** int(n), lambda a, n: lambda da, dn: n * a ** (n - 1) * da)
    with pytest.raises(TraceError, match=r"a differential for each argument that holds floats.*: 1 here.*'dn'"):
        rz.grad(lambda a: g(a, 3))(2.0)


# -- Python's integers --------------------------------------------------------------------------------------------------------------

NUMBERS = [2.6, -2.5, 3.5, np.float64(7.2), np.float32(2.6), 1e30]
INTEGERS = {
    "round": round,
    "round None": lambda s: round(s, None),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sum": lambda s: round(s) + 1,
    "difference": lambda s: 3 - round(s),
    "product": lambda s: round(s) * round(s),
    "quotient": lambda s: round(s) / 4,
    "whole quotient": lambda s: round(s) // 4,
    "remainder": lambda s: round(s) % 4,
    "power": lambda s: round(s) ** 2,
    "negative": lambda s: -round(s),
    "magnitude": lambda s: abs(round(s)),
    "pair": lambda s: divmod(round(s), 4),
    "again": lambda s: round(round(s)),
    "with a float": lambda s: round(s) * 0.5,
    "digits": lambda s: round(s, 0),
    "fraction": lambda s: s - math.floor(s),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("s", NUMBERS)
def test_rounded_numbers_are_integers_as_in_python(name, s):
    f = INTEGERS[name]
    if name == "trunc" and type(s) is np.float32:
        pytest.skip("NumPy's float32 has no __trunc__")
    wanted, found = f(s), rz.function(f)(s)
    flat = lambda v: v if isinstance(v, tuple) else (v,)  # noqa: E731
    assert [isinstance(a, int) for a in flat(wanted)] == [isinstance(a, int) for a in flat(found)]
    np.testing.assert_allclose(np.array(flat(found), float), np.array(flat(wanted), float), rtol=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: round(x[0]) * x,
        lambda x: np.add(round(x[0]), 1),
        lambda x: np.array([round(x[0]), 2]),
        lambda x: np.stack([math.floor(x[0]), 2]),
        lambda x: np.full(2, round(x[0])),
        lambda x: np.where(x > 2, round(x[0]), x),
        lambda x: np.arange(4) * round(x[0]),
        lambda x: np.arange(4.0)[round(x[0])],
        lambda x: np.sqrt(round(x[0])),
        lambda x: np.sum([round(x[0]), 1]),
        lambda x: np.maximum(round(x[0]), np.arange(3)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_numbers_meet_arrays_as_integers_do(f, dtype):
    x = np.array([1.5, 2.6], dtype)
    wanted, found = f(x), rz.function(f)(x)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["python", "numpy", "numba", "jax"])
def test_rounded_numbers_compile_and_have_no_slope(backend):
    f = lambda s: (round(s), s - math.floor(s))  # noqa: E731
    whole, rest = rz.compile(f, backend=backend)(2.6)
    assert type(whole) is int and whole == 3 and rest == 2.6 - 2
    assert rz.grad(lambda s: s * round(s))(2.6) == 3.0 and rz.grad(round)(2.6) == 0.0
    assert rz.jvp(round, (2.6,), (1.0,)) == (3, 0.0)
    np.testing.assert_array_equal(rz.vmap(lambda s: round(s) * s)(np.array([1.2, 2.7])), [1.2, 3 * 2.7])


def test_rounding_an_array_is_refused_as_by_python():
    with pytest.raises((TypeError, TraceError)):
        rz.function(lambda x: math.floor(x))(X)
