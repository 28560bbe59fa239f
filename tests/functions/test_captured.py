"""Arrays from outside a function: maps have the numbers of the moment they were made, functions see what is written later, as plain Python does."""

import array
import ctypes
import datetime
import os
import pickle
import time
import types
import warnings
import weakref
from collections import deque
from contextvars import ContextVar
from os import getenv as variable
from time import perf_counter as clock

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse as sparse

import riesz as rz
from riesz.errors import TraceError

SIZES = (3, 300, 5000)
"""Compared at each call, read where they are, too large to be kept twice."""


def maps_of(K, x):
    """Maps, and functions of them, that are made of an array K and a point x: name → what it gives for a vector."""
    n = len(x)

    def f(v):
        return K * v**2

    loss = lambda v: np.sum(K * v**3)  # noqa: E731
    L = rz.jacobian(f)(x)
    H = rz.hessian(loss)(x)
    _, M = rz.linearize(f, x)
    _, back = rz.vjp(f, x)
    _, A = rz.linearize_adjoint(f, x)
    D = rz.derive(f, rz.R ** rz.seg(n))
    G = rz.grad(lambda W: np.sum((K[:, None] * x[:, None] * W) ** 2), factored=True)(np.ones((n, 2)))
    later, solver = rz.jacobian(lambda v: K * np.exp(v) * 0.1)(x), rz.jacobian(f)(x).solver()
    return {
        "jacobian": L,
        "its transpose": lambda v: L.T(v),
        "its adjoint": lambda v: L.H(v),
        "its diagonal": lambda v: L.diagonal() * v,
        "its matrix": lambda v: L.to_dense() @ v,
        "its sparse matrix": lambda v: L.to_sparse() @ v,
        "in normal form": lambda v: L.simplify()(v),
        "gram": lambda v: L.gram()(v),
        "composed": lambda v: (L @ M)(v),
        "sum": lambda v: (L + M)(v),
        "norms": lambda v: L.column_norms(),
        "solved": lambda v: L.solve(v),
        "solver": lambda v: solver.solve(v),
        "hessian": H,
        "hessian's matrix": lambda v: H.to_dense() @ v,
        "linearize": M,
        "vjp": lambda v: back(v)[0],
        "linearize_adjoint": A,
        "derived there": D.derivative(x),
        "derived": lambda v: D.derivative(v)(v),
        "factored": lambda v: G.to_dense(),
        "lazy": lambda v: later.H(v),
        "pickled": lambda v: pickle.loads(pickle.dumps(L))(v),
    }


@pytest.mark.parametrize("n", SIZES[:2])
@pytest.mark.parametrize("used", [False, True])
def test_a_map_has_the_numbers_of_the_moment_it_was_made(n, used):
    K, x, v = 1.0 + np.arange(n) / n, 1.0 + np.sin(np.arange(n)) / 2, np.cos(np.arange(n)) + 2.0
    wanted = {k: np.array(g(v)) for k, g in maps_of(K.copy(), x.copy()).items()}
    found = maps_of(K, x)
    if used:
        for g in found.values():
            g(v)
    K *= 10.0
    x += 1.0
    for k, g in found.items():
        np.testing.assert_allclose(np.asarray(g(v)), wanted[k], rtol=1e-12, atol=1e-12, err_msg=k)


@pytest.mark.parametrize("n", SIZES)
def test_a_map_made_later_and_a_call_see_the_new_numbers(n):
    K, x = np.ones(n), np.full(n, 2.0)
    f = lambda v: K * v**2  # noqa: E731
    J, F, g, H = (
        rz.jacobian(f),
        rz.function(f),
        rz.grad(lambda v: np.sum(K * v**2)),
        rz.hessian(lambda v: np.sum(K * v**3)),
    )
    for k in (1.0, 3.0, 1.0, -2.0):
        K[:] = k
        assert np.array_equal(F(x), k * x**2) and np.array_equal(g(x), 2 * k * x)
        assert np.array_equal(J(x).diagonal(), 2 * k * x) and np.array_equal(H(x).diagonal(), 6 * k * x)
        assert np.array_equal(rz.jvp(f, (x,), (x,))[1], 2 * k * x * x) and np.array_equal(
            rz.vmap(f)(np.stack([x, x]))[1], k * x**2
        )
        assert np.array_equal(rz.hvp(lambda v: np.sum(K * v**2), (x,), (x,)), 2 * k * x)


COMPUTED = {
    "a product": lambda x, K: x * (2 * K),
    "the negative": lambda x, K: -K * x,
    "a mean": lambda x, K: x * K.mean(),
    "a sum": lambda x, K: x * np.sum(K),
    "a component": lambda x, K: x * K[0],
    "a slice": lambda x, K: x[1:] * K[1:],
    "a view": lambda x, K: x * K[::-1],
    "a copy": lambda x, K: x * K.copy(),
    "another type": lambda x, K: x * K.astype(np.float32),
    "a Python number": lambda x, K: x * float(K.sum()),
    "an item": lambda x, K: x * K[1].item(),
    "a list": lambda x, K: x * np.array(K.tolist()),
    "a branch": lambda x, K: x if K[0] > 1.5 else 2.0 * x,
    "an index": lambda x, K: x[K.astype(int) % 3],
    "a mask": lambda x, K: np.where(K > 1.5, x, 0.0),
    "selected by a mask": lambda x, K: np.sum(x[K > 1.5]),
    "a norm": lambda x, K: x / np.linalg.norm(K),
    "itself twice": lambda x, K: x * K + x * (K * K),
    "a loop": lambda x, K: rz.fori_loop(0, 2, lambda i, h: h + K, x),
    "a result beside it": lambda x, K: (x * 1.0, K * 2.0)[1],
    "the order": lambda x, K: x[np.argsort(K)],
    "a matrix product": lambda x, K: np.outer(K, K) @ x,
    "joined": lambda x, K: np.concatenate([x, K]),
    "a count": lambda x, K: x * len(np.unique(K)),
    "clipped": lambda x, K: np.clip(x, 0.0, K),
    "inside a derivative": lambda x, K: rz.grad(lambda y: np.sum(y * (2 * K)))(x),
}


@pytest.mark.parametrize("n", (3, 300))
@pytest.mark.parametrize("name", COMPUTED)
def test_what_numpy_computed_from_an_array_while_tracing_is_computed_again_when_it_changes(name, n):
    K, x, g = np.ones(n), np.linspace(0.5, 2.0, n), COMPUTED[name]
    F = rz.function(lambda x: g(x, K))
    J = rz.jacobian(lambda x: g(x, K) * 1.0)
    for change in (
        lambda: None,
        lambda: K.__setitem__(slice(None), 2.0),
        lambda: K.__setitem__(n - 1, 7.0),
        lambda: K.__setitem__(0, 1.0),
    ):
        change()
        np.testing.assert_allclose(F(x), g(x, K), rtol=1e-6, err_msg=name)
        fresh = rz.jacobian(lambda x: g(x, K) * 1.0)
        assert np.array_equal(np.asarray(J(x).to_dense()), fresh(x).to_dense()), name


class Holder:
    def __init__(self, K):
        self.K = K


class Slots:
    __slots__ = ("K",)

    def __init__(self, K):
        self.K = K


def places(K):
    """Where a function can find an array."""
    default = lambda x, K=K: x * (K * 2)  # noqa: E731
    named, pair, deep, simple, holder, slots = (
        {"a": [K]},
        (1, K),
        [{"b": (K,)}],
        types.SimpleNamespace(K=K),
        Holder(K),
        Slots(K),
    )
    matrix = sparse.csr_array(np.diag(K))
    view = K[:]
    return {
        "a default": default,
        "a dict": lambda x: x * (named["a"][0] * 2),
        "a tuple": lambda x: x * (pair[1] * 2),
        "nested": lambda x: x * (deep[0]["b"][0] * 2),
        "a namespace": lambda x: x * (simple.K * 2),
        "an object": lambda x: x * (holder.K * 2),
        "slots": lambda x: x * (slots.K * 2),
        "a view": lambda x: x * (view * 2),
        "a function it calls": (lambda inner: lambda x: inner(x) + 0.0 * x)(lambda x: x * (K * 2)),
        "a gradient it calls": (lambda inner: lambda x: inner(x) * 1.0)(rz.grad(lambda x: np.sum(K * x * x))),
        "a sparse matrix": lambda x: (matrix * 2) @ x,
        "a sparse matrix itself": lambda x: matrix @ (2 * x),
    }


@pytest.mark.parametrize("n", (4, 400))
@pytest.mark.parametrize("name", places(np.ones(4)))
def test_arrays_are_found_wherever_a_function_can_reach_them(name, n):
    K, x = np.ones(n), np.arange(1.0, n + 1.0)
    f = places(K)[name]
    F = rz.function(f)
    assert np.allclose(F(x), 2 * x)
    if name.startswith("a sparse matrix"):
        matrix = next(c.cell_contents for c in f.__closure__)
        matrix.data[:] = 5.0
    else:
        K[:] = 5.0
    assert np.allclose(F(x), 10 * x), name


def test_read_only_arrays_are_taken_as_they_are():
    K = np.random.default_rng(0).normal(size=5000)
    K.flags.writeable = False
    L = rz.jacobian(lambda x: K * x)(np.ones(5000))
    assert any(a is K for _, a in L.names)


def test_frozen_copies_are_shared_between_maps_until_somebody_writes():
    K = np.ones(1000)
    J = rz.jacobian(lambda x: K * x**2)
    first, second = [dict(J(np.ones(1000)).names)["K"] for _ in range(2)]
    assert first is second and not first.flags.writeable and not np.shares_memory(first, K)
    K[3] = 2.0
    third = dict(J(np.ones(1000)).names)["K"]
    assert third is not first and first[3] == 1.0 and third[3] == 2.0


@pytest.mark.parametrize("n", (3, 1000))
def test_constants_are_those_of_the_moment_they_are_used(n):
    def f(x):
        c, index, mask, whole = np.zeros(n), np.arange(n), np.ones(n, bool), np.zeros(n, int)
        part = c[1:]
        a = x * 1.0 + c, x[1:] + part, x[index], np.where(mask, x, 0.0), x + whole, np.stack([x, c])
        c[:], index[:], mask[:], whole[:] = 5.0, 0, False, 7
        return *a, x + c, x[1:] + part, x[index], np.where(mask, x, 0.0), x + whole

    x = np.arange(1.0, n + 1.0)
    for found, wanted in zip(rz.function(f)(x), f(x), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("n", (3, 1000))
def test_a_function_that_writes_into_what_it_computes_with_is_refused(n):
    c = np.zeros(n)

    def after(x):
        z = x + c
        c[0] += 1.0
        return z

    def before(x):
        c[0] += 1.0
        return x + c

    def through_a_view(x):
        view = c[:2]
        z = x * c
        np.add(view, 1.0, out=view)
        return z

    def between(x):
        z = x * c
        c[:] += 1.0
        w = x * c
        c[:] -= 1.0
        return z + w

    for f in (after, before, through_a_view, between):
        with pytest.raises(TraceError, match=r"written to inside.*copy"):
            rz.function(f)(np.ones(n))


def test_a_function_may_count_its_calls_in_an_array():
    calls = np.zeros(1000)

    def f(x):
        calls[0] += 1.0
        return 2.0 * x

    F = rz.function(f)
    assert F(1.0) == F(1.0) == 2.0 and calls[0] == 1.0


@pytest.mark.parametrize("backend", ["auto", "numpy", "steps"])
@pytest.mark.parametrize("n", (3, 300))
def test_compiled_functions_have_the_numbers_of_the_moment_their_code_was_written(n, backend):
    K, x = np.ones(n), np.arange(1.0, n + 1.0)
    for f in (lambda x: K * x, lambda x: (2 * K) * x / 2, rz.grad(lambda x: np.sum(K * x * x) / 2)):
        K[:] = 1.0
        g = rz.compile(f, backend=backend)
        assert np.allclose(g(x), x)
        K[:] = 3.0
        assert np.allclose(g(x), x) and np.allclose(rz.compile(f, backend=backend)(x), 3 * x)


def test_relations_and_combinators_are_made_of_copies():
    at, w = np.array([0, 1, 1, 2]), np.array([1.0, 2.0, 3.0])
    r = rz.relations.function(rz.seg(4), rz.seg(3), at)
    e = rz.relations.edges(rz.seg(4), rz.seg(3), np.arange(4), at)
    t = rz.left(rz.hadamard, w)
    at[:], w[:] = 0, 0.0
    for found in (r, e):
        assert found.plan()(np.ones(4)).tolist() == [1.0, 2.0, 1.0]
    assert rz.function(t)(np.ones(3)).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("n", (3, 300))
def test_functions_with_a_derivative_of_their_own_see_what_is_written_later(n):
    K, M = np.ones(n), np.ones(n)

    @rz.custom_derivative
    def f(x):
        return K * x

    @f.derivative
    def slope(x):
        return lambda dx: M * dx

    F, g = rz.function(lambda x: f(x) * 1.0), rz.grad(lambda x: np.sum(f(x)))
    x = np.ones(n)
    assert F(x)[0] == 1.0 and g(x)[0] == 1.0
    K *= 10.0
    assert F(x)[0] == 10.0 and g(x)[0] == 1.0
    M *= 5.0
    assert F(x)[0] == 10.0 and g(x)[0] == 5.0 and rz.jacobian(lambda x: f(x) * 1.0)(x).diagonal()[0] == 5.0


FACTOR = 1.0


class Base:
    def inherited(self, x):
        return np.sum(x) * FACTOR


class Thing(Base):
    def __init__(self, inner=None):
        self.inner = inner

    def method(self, x):
        return np.sum(x) * FACTOR

    def helped(self, x):
        return self.method(x)

    @property
    def factor(self):
        return FACTOR

    @staticmethod
    def alone(x):
        return np.sum(x) * FACTOR

    @classmethod
    def of_class(cls, x):
        return np.sum(x) * FACTOR

    def __matmul__(self, x):
        return np.sum(x) * FACTOR

    def __getitem__(self, i):
        return FACTOR


THING, HOLDER = Thing(), Thing(Thing())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: THING.method(x),
        lambda x: THING.inherited(x),
        lambda x: THING.helped(x),
        lambda x: THING.factor * np.sum(x),
        lambda x: THING.alone(x),
        lambda x: THING.of_class(x),
        lambda x: THING @ x,
        lambda x: THING[0] * np.sum(x),
        lambda x: HOLDER.inner.helped(x),
        lambda x: Thing().inherited(x),
    ],
)
def test_what_methods_of_an_object_mention_is_noticed(f, monkeypatch):
    g = rz.grad(f)
    np.testing.assert_array_equal(g(np.ones(2)), np.ones(2))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_array_equal(g(np.ones(2)), np.full(2, 3.0))


class _Settings:
    pass


def held(name):
    """A function of numbers that something holds, and what changes them: name → (f, change)."""
    K, settings = np.array([1.0, 2.0, 3.0]), _Settings()
    objects, empty, numbers = np.array([K, None], object), {}, [float(i) for i in range(12_000)]
    buffer, plain, entries = array.array("d", [1.0, 2.0]), bytearray(K.tobytes()), {"a": 1.0}
    queue, chosen, none, flat, memory = deque([2.0]), {1.0, 2.0}, deque[float](), K.flat, memoryview(K)
    seen, weak, variable = types.MappingProxyType({"a": K}), weakref.ref(settings), ContextVar("variable", default=K)
    polynomial, spline = (
        np.polynomial.Polynomial([1.0, 2.0, 3.0]),
        scipy.interpolate.CubicSpline(np.arange(4.0), np.arange(4.0) ** 2),
    )
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, False, True])
    many, large = [[float(i)] for i in range(12_000)], np.array([float(i) for i in range(2_000)], object)

    def write():
        K[0] = 7.0

    return {
        "object array": (lambda x: objects[0] * x, write),
        "mapping proxy": (lambda x: seen["a"] * x, write),
        "iterator of an array": (lambda x: flat[:] * x, write),
        "memoryview": (lambda x: np.asarray(memory) * x, write),
        "context variable": (lambda x: variable.get() * x, write),
        "behind many numbers": (lambda x: numbers[3] * K * x, write),
        "an entry of an object array": (lambda x: objects[0] * x, lambda: objects.__setitem__(0, 2.0 * K)),
        "an entry of a large object array": (lambda x: large[5] * x, lambda: large.__setitem__(5, 7.0)),
        "masked array": (lambda x: masked.filled(0.5) * x, lambda: masked.__setitem__(0, 7.0)),
        "its mask": (lambda x: masked.filled(0.5) * x, lambda: masked.__setitem__(1, np.ma.masked)),
        "buffer": (lambda x: buffer[0] * x, lambda: buffer.__setitem__(0, 7.0)),
        "bytes": (lambda x: np.frombuffer(plain) * x, lambda: plain.__setitem__(slice(8), np.array([7.0]).tobytes())),
        "deque": (lambda x: queue[0] * x, lambda: queue.__setitem__(0, 7.0)),
        "set": (lambda x: sum(chosen) * x, lambda: chosen.add(7.0)),
        "empty deque": (lambda x: (1.0 + len(none)) * x, lambda: none.append(1.0)),
        "empty dictionary": (lambda x: empty.get("a", 1.0) * x, lambda: empty.update(a=7.0)),
        "another entry": (lambda x: sum(entries.values()) * x, lambda: entries.update(b=7.0)),
        "another attribute": (lambda x: getattr(settings, "k", 1.0) * x, lambda: setattr(settings, "k", 7.0)),
        "behind a weak reference": (
            lambda x: getattr(weak(), "k", 1.0) * x + 0.0 * len(vars(settings)),
            lambda: setattr(settings, "k", 7.0),
        ),
        "polynomial": (lambda x: polynomial(x), lambda: polynomial.coef.__setitem__(2, 7.0)),
        "spline": (lambda x: spline.c[2, 0] * x, lambda: spline.c.__setitem__((2, 0), 7.0)),
        "one of very many lists": (lambda x: many[5][0] * x, lambda: many[5].__setitem__(0, 7.0)),
    }[name]


HELD = """object array; masked array; its mask; mapping proxy; iterator of an array; memoryview; context variable; behind many numbers; buffer; bytes;
an entry of an object array; an entry of a large object array;
deque; set; empty deque; empty dictionary; another entry; another attribute; behind a weak reference;
polynomial; spline; one of very many lists"""


@pytest.mark.parametrize("name", [" ".join(t.split()) for t in HELD.split(";")])
def test_numbers_are_found_whatever_holds_them(name):
    f, change = held(name)
    seen_later(f, change)


def seen_later(f, change):
    """What is made before a change keeps its numbers; what is made later has those plain Python sees."""
    x, v = np.array([0.5, 1.5, 2.0]), np.array([1.0, -2.0, 0.25])
    moved = lambda: (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6  # noqa: E731
    value, gradient = rz.function(f), rz.grad(lambda x: np.sum(f(x)))
    L, before = rz.jacobian(f)(x), moved()
    value(x), gradient(x)
    change()
    assert not np.allclose(moved(), before)
    np.testing.assert_allclose(L(v), before, rtol=1e-6)
    np.testing.assert_allclose(rz.jacobian(f)(x)(v), moved(), rtol=1e-6)
    np.testing.assert_allclose(gradient(x) @ v, np.sum(moved()), rtol=1e-6)
    np.testing.assert_array_equal(value(x), f(x))


@pytest.mark.parametrize("form", ["csr", "csc", "lil", "dok", "coo", "dia", "bsr"])
@pytest.mark.parametrize("used", ["M @ x", "its matrix"])
def test_sparse_matrices_may_get_other_entries(form, used):
    M = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 6.0]])).asformat(form)

    def change():
        if form in ("coo", "dia", "bsr"):
            M.data = 2.0 * M.data
        else:
            with warnings.catch_warnings(action="ignore"):
                M[0, 2] = 7.0

    seen_later((lambda x: M @ x) if used == "M @ x" else (lambda x: M.toarray() @ x), change)


def test_a_function_may_write_into_what_holds_other_things():
    log, cache = deque[int](), {}

    def f(x):
        log.append(1)
        cache.setdefault("k", 2.0)
        return cache["k"] * x

    g = rz.function(f)
    assert [g(1.0), g(2.0), g(3.0)] == [2.0, 4.0, 6.0]
    assert len(log) < 4


def of_a_table(name):
    """A function that reads a table of pandas, and what changes the table."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3, 2, 1]})
    column, named = pd.Series([1.0, 2.0, 3.0]), pd.Series([2.0], index=["k"])
    held = types.SimpleNamespace(tables=[table])
    return {
        "a new column": (lambda x: table["a"].to_numpy() * x, lambda: table.__setitem__("a", 7.0)),
        "by loc": (lambda x: table["a"].to_numpy() * x, lambda: table.loc.__setitem__((0, "a"), 7.0)),
        "by iloc": (lambda x: table.a * x, lambda: table.iloc.__setitem__((0, 0), 7.0)),
        "a mean": (lambda x: table["a"].mean() * x, lambda: table.__setitem__("a", 7.0)),
        "another first column": (lambda x: table.iloc[:, 0].to_numpy() * x, lambda: table.insert(0, "c", 7.0)),
        "in a list in an object": (lambda x: held.tables[0].b.to_numpy() * x, lambda: table.__setitem__("b", 7)),
        "a series": (lambda x: column * x, lambda: column.__setitem__(slice(None), 7.0)),
        "one number of a series": (lambda x: named["k"] * x, lambda: named.__setitem__("k", 7.0)),
    }[name]


TABLES = ["a new column", "by loc", "by iloc", "a mean", "another first column", "in a list in an object"]


@pytest.mark.parametrize("name", [*TABLES, "a series", "one number of a series"])
def test_tables_may_get_other_numbers(name):
    seen_later(*of_a_table(name))


def test_attributes_of_functions_and_numbers_of_c_may_change():
    def scaled(x):
        return scaled.k * x

    scaled.k, number = 2.0, ctypes.c_double(2.0)
    seen_later(scaled, lambda: setattr(scaled, "k", 7.0))
    seen_later(lambda x: number.value * x, lambda: setattr(number, "value", 7.0))


def environment(x):
    return x * float(os.environ.get("RIESZ_TEST_FACTOR", "1"))


def aliased_environment(x):
    return x * float(variable("RIESZ_TEST_FACTOR", "1"))


def imported_environment(x):
    from os import environ

    return x * float(environ.get("RIESZ_TEST_FACTOR", 1))


@pytest.mark.parametrize("f", [environment, aliased_environment, imported_environment])
def test_variables_of_the_process_may_change(f, monkeypatch):
    g = rz.grad(f)
    monkeypatch.delenv("RIESZ_TEST_FACTOR", raising=False)
    assert (rz.function(f)(1.0), g(1.0)) == (1.0, 1.0)
    monkeypatch.setenv("RIESZ_TEST_FACTOR", "3")
    assert (rz.function(f)(1.0), g(1.0), g(2.0)) == (3.0, 3.0, 3.0)
    monkeypatch.delenv("RIESZ_TEST_FACTOR")
    assert (rz.function(f)(1.0), g(1.0)) == (1.0, 1.0)


def local_clock(x):
    import time as ticks

    return x * ticks.perf_counter()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * time.perf_counter(),
        lambda x: x * clock(),
        lambda x: x * time.time_ns(),
        lambda x: x * (datetime.datetime.now() - datetime.datetime(2020, 1, 1)).total_seconds(),
        local_clock,
    ],
)
def test_clocks_are_asked_at_each_call(f):
    g = rz.grad(f)
    first = g(1.0)
    time.sleep(1e-5)
    assert first < g(1.0) < rz.function(f)(1e6)


def test_files_are_read_at_each_call(tmp_path):
    file = tmp_path / "factor.txt"

    def opened(x):
        with open(file) as lines:
            return x * float(lines.read())

    for read in (opened, lambda x: x * np.loadtxt(file)):
        g = rz.grad(read)
        for number in (2.0, 3.0):
            file.write_text(str(number))
            assert g(1.0) == number


def test_attributes_named_like_clocks_cost_no_new_trace():
    state = types.SimpleNamespace(time=2.0, load=3.0, now=1.0)
    traced = []

    def f(x):
        traced.append(1)
        return np.sin(x) * state.time * state.load + state.now

    g = rz.grad(f)
    g(1.0)
    before = len(traced)
    g(1.0)
    assert len(traced) == before


def test_tables_that_stay_as_they_are_cost_no_new_trace(monkeypatch):
    from riesz.functions import function

    f, _ = of_a_table("a new column")
    value, x, traced = rz.function(f), np.ones(3), []
    value(x)
    monkeypatch.setattr(function, "_traced", lambda *args: traced.append(args))
    value(x), value(x)
    assert not traced


def test_a_value_of_a_class_that_a_subclass_computes_is_not_read():
    from riesz.tracing.surroundings.watching import reached

    class Base:
        size = 1.0

    class Sized(Base):
        made = 0

        @property
        def size(self):
            Sized.made += 1
            return Sized()

    held = Sized()
    assert len(list(reached(lambda x: x * held.made))) < 9 and not Sized.made
