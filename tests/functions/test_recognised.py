"""Functions written anew at each call are recognised by their code and what they capture; never taken for others."""

import gc
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import riesz as rz
from riesz.functions import function
from riesz.functions.traces import recognised

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """How many traces are made."""
    made = []
    inner = function.trace_function

    def trace(*what, **how):
        made.append(what[2])
        return inner(*what, **how)

    monkeypatch.setattr(function, "trace_function", trace)
    recognised._seen.clear()
    return made


class Model:
    def __init__(self, scale, A):
        self.scale, self.A = scale, A

    def loss(self, x):
        return self.scale * np.sum((self.A @ x) ** 2)

    def step(self, x):
        return rz.grad(self.loss)(x)

    def inner(self, x):
        return rz.hvp(lambda y: self.loss(y) + np.sum(y**3), (x,), (x,))


def nested(x, k):
    def cube(y):
        return k * y**3

    return rz.grad(lambda y: np.sum(cube(y)))(x)


A = np.arange(9.0).reshape(3, 3)
ANEW = {
    "lambda": lambda: rz.grad(lambda x: np.sum(x**3))(X),
    "closing over a number": lambda k=2.5: rz.grad(lambda x: k * np.sum(x**3))(X),
    "closing over an array": lambda M=A: rz.grad(lambda x: np.sum(np.sin(M @ x)))(X),
    "default argument": lambda: rz.grad(lambda x, k=2.0: k * np.sum(x**3))(X),
    "inside another": lambda: nested(X, 2.0),
    "partial": lambda: rz.grad(partial(lambda k, x: k * np.sum(x**3), 2.0))(X),
    "gradient of a gradient": lambda: rz.hessian(lambda x: np.sum(rz.grad(lambda y: np.sum(y**3))(x)))(X).to_dense(),
    "jacobian": lambda: rz.jacobian(lambda x: np.sin(A @ x))(X).to_dense(),
    "hvp": lambda: rz.hvp(lambda x: np.sum(np.sin(A @ x)), (X,), (X,)),
    "vjp": lambda: rz.vjp(lambda x: np.sin(A @ x), X)[1](X)[0],
    "function": lambda: rz.function(lambda x: np.sin(A @ x))(X),
}


@pytest.mark.parametrize("name", ANEW)
def test_the_second_one_is_not_traced(name, counted):
    first = ANEW[name]()
    count = len(counted)
    assert count
    for _ in range(3):
        assert np.array_equal(ANEW[name](), first)
    assert len(counted) == count


def test_methods_of_one_object_are_recognised_and_of_another_are_not(counted):
    a, b = Model(1.0, A), Model(2.0, A)
    ga, gb = a.step(X), b.step(X)
    assert np.allclose(gb, 2 * ga)
    assert np.allclose(a.inner(X), 2 * A.T @ (A @ X) + 6 * X**2)
    assert np.array_equal(a.step(X), ga) and np.array_equal(b.step(X), gb)  # what comes again is kept
    count = len(counted)
    assert np.array_equal(a.step(X), ga) and np.array_equal(b.step(X), gb)
    a.inner(X)
    assert len(counted) == count
    a.scale = 3.0
    assert np.allclose(a.step(X), 3 * ga)
    a.A = A.T.copy()
    assert np.allclose(a.step(X), 6 * A @ (A.T @ X))
    a.A[0, 0] = 7.0
    assert np.allclose(a.step(X), 6 * a.A.T @ (a.A @ X))


def test_other_captured_values_are_other_functions():
    pairs = [(1, 1.0), (0.0, -0.0), (True, 1), (2.0, 2), ("a", "b"), ((1.0, 2.0), (1.0, 2)), (None, 0)]

    def closing(k, a):
        return lambda x: x * (3.0 if repr(k) == repr(a) else 5.0)

    for a, b in pairs:
        found = [rz.function(lambda x, k=k, a=a: x * (3.0 if repr(k) == repr(a) else 5.0))(2.0) for k in (a, b)]
        assert found == [6.0, 10.0]
        assert [rz.grad(closing(k, a))(2.0) for k in (a, b, a, b, a, b)] == [3.0, 5.0] * 3


def test_a_name_that_changes_later_is_seen_by_the_new_function_only():
    def made(k):
        def set_k(value):
            nonlocal k
            k = value

        return rz.grad(lambda x: k * x**2), set_k

    f, set_f = made(2.0)
    assert f(1.0) == 4.0
    g, set_g = made(2.0)
    assert g(1.0) == 4.0
    set_g(5.0)
    assert (f(1.0), g(1.0)) == (4.0, 10.0)
    set_f(7.0)
    assert (f(1.0), g(1.0)) == (14.0, 10.0)
    h, _ = made(2.0)
    assert h(1.0) == 4.0
    called = [rz.function(lambda x, k=k: k * x) for k in (2.0, 2.0)]
    assert [c(1.0) for c in called] == [2.0, 2.0]


def test_cells_that_are_one_are_not_taken_for_two():
    def pair(shared):
        a = b = 2.0
        if shared:
            first, second = (lambda: a), (lambda: a)
        else:
            first, second = (lambda: a), (lambda: b)

        def change(value):
            nonlocal a
            a = value

        return rz.grad(lambda x: x * first() + x * second()), change

    for shared in (True, False, True):
        g, change = pair(shared)
        assert g(1.0) == 4.0
        change(3.0)
        assert g(1.0) == (6.0 if shared else 5.0)


def test_globals_and_lists_that_change_are_seen(counted):
    scales = [1.0]
    make = lambda: rz.grad(lambda x: scales[0] * x)  # noqa: E731
    assert make()(1.0) == 1.0
    scales[0] = 4.0
    assert make()(1.0) == 4.0
    K = np.array([2.0])
    make = lambda: rz.grad(lambda x: np.sum(K * x))  # noqa: E731
    assert make()(1.0) == 2.0
    K[0] = 3.0
    assert make()(1.0) == 3.0


def test_functions_that_draw_or_write_are_traced_each_time():
    rng = np.random.default_rng(0)
    draws = [rz.grad(lambda x: x * rng.normal())(1.0) for _ in range(3)]
    assert len(set(draws)) == 3
    log = []

    def noted(x):
        log.append(1)
        return x * 2.0

    for k in range(1, 4):
        rz.grad(lambda x: noted(x))(1.0)
        assert len(log) >= k


def test_a_function_that_refers_to_itself_is_recognised(counted):
    def power(x, n):
        def go(m):
            return x if m == 1 else x * go(m - 1)

        return go(n)

    fourth = lambda: rz.grad(lambda x: power(x, 4))(2.0)  # noqa: E731
    first, count = fourth(), len(counted)
    assert first == fourth() == 32.0 and len(counted) == count

    def looped():
        def f(x, n=3):
            return x if n == 0 else x * f(x, n - 1)

        return rz.grad(lambda x: f(x))(1.0)

    assert looped() == looped() == 4.0


def test_arrays_and_functions_are_let_go():
    held = []
    for _ in range(20):
        a = np.ones(20_000)
        rz.grad(lambda x, a=a: np.sum(a * x))(a)
        held.append(weakref.ref(a))
    del a
    gc.collect()
    assert sum(r() is not None for r in held) <= 1
    assert len(recognised._seen) <= 128
    for k in range(300):
        rz.grad(eval(f"lambda x: x * {k}.0"))(1.0)
    assert len(recognised._seen) <= 128


def test_many_threads_write_functions_anew():
    problems = []

    def work(k):
        try:
            for i in range(40):
                c = float(k * 100 + i % 5)
                assert rz.grad(lambda x, c=c: c * x**2)(1.0) == 2 * c
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
