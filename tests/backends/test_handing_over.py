"""Results belong to the caller: memory that nobody else holds is handed over as it is, all other is copied."""

import os
import subprocess
import sys

import numpy as np
import pytest

import riesz as rz
from riesz import relations, seg
from riesz.relations.cpu import pair_sums as running
from riesz.runtime import buffers, tuning

COUNT, SIZE = tuning.COMPILED_PAIR_LOOPS_FROM, 500
RNG = np.random.default_rng(0)
INDEX = RNG.integers(0, SIZE, COUNT)


def test_who_holds_memory():
    a = buffers.empty((1 << 17,), float)
    assert buffers.sole(a)
    b = a.reshape(2, -1)
    assert not buffers.sole(a) and not buffers.sole(b)
    del a
    assert buffers.sole(b) and buffers.sole(b.T) is False
    own, view, part = np.zeros(9), np.zeros(9).reshape(3, 3), np.zeros(1 << 12)[:3]
    assert buffers.sole(own) and buffers.sole(view)
    assert not buffers.sole(part)  # would keep far more than it needs
    c = np.zeros(9)
    assert not buffers.sole(c.reshape(3, 3)) and not buffers.sole(memoryview_of(c))


def memoryview_of(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(memoryview(x), x.dtype)


def written_to(f, *args):
    """The results of two calls, the first written over in between; nothing else changes."""
    before = [np.array(a) for a in args]
    first = f(*args)
    kept = np.array(first)
    first[...] = 7.0
    second = f(*args)
    assert all(np.array_equal(a, b) for a, b in zip(args, before, strict=True))
    assert np.array_equal(second, kept) and not np.shares_memory(first, second)
    return second


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("view", [False, True])
def test_arguments_and_constants_stay(view, backend):
    x = RNG.normal(size=2 * COUNT)
    x = x[:COUNT].reshape(-1, 2) if view else x.reshape(-1, 2).copy()
    held = RNG.normal(size=x.shape)
    for f in (
        lambda x: x,
        lambda x: x.reshape(2, -1),
        lambda x: x.T,
        lambda x: held,
        lambda x: held.reshape(-1),
        lambda x: x[::2],
        lambda x: x[:],
    ):
        before = held.copy()
        assert np.array_equal(written_to(rz.compile(f, backend=backend), x), f(x)) and np.array_equal(held, before)
        assert np.array_equal(written_to(rz.function(f), x), f(x)) and np.array_equal(held, before)


@pytest.mark.parametrize("width", [(), (1,), (3,)])
def test_gathers_and_sums_are_handed_over(width):
    x, y = RNG.normal(size=(SIZE, *width)), RNG.normal(size=(COUNT, *width))
    L = rz.linearize(lambda x: x[INDEX], x)[1]
    assert np.array_equal(written_to(L, x), x[INDEX])
    want = np.zeros_like(x)
    np.add.at(want, INDEX, y)
    assert np.array_equal(written_to(L.H, y), want)
    assert np.array_equal(written_to(rz.compile(lambda x: x[INDEX]), x), x[INDEX])


def test_a_large_result_is_not_copied(monkeypatch):
    x, made = RNG.normal(size=(SIZE, 3)), list[int]()
    gather = running.gather

    def spied(relation, v):
        y = gather(relation, v)
        made.append(y.ctypes.data)
        return y

    monkeypatch.setattr("riesz.relations.kinds.gather", spied)
    for f in (rz.linearize(lambda x: x[INDEX], x)[1], rz.compile(lambda x: x[INDEX]), rz.function(lambda x: x[INDEX])):
        made.clear()
        results = [f(x) for _ in range(3)]
        assert [y.ctypes.data for y in results] == made[-3:] and len(set(made)) == 3


def test_two_results_never_share():
    x = RNG.normal(size=(SIZE, 2))

    def f(x):
        y = x[INDEX]
        return y, y, y.reshape(-1), y.T

    for g in (rz.compile(f), rz.function(f)):
        results = g(x)
        assert all(np.array_equal(a, b) for a, b in zip(results, f(x), strict=True))
        assert not any(np.shares_memory(a, b) for i, a in enumerate(results) for b in results[:i])


def test_a_broadcast_behind_a_gather_can_be_written_to():
    """Sums repeated along a new axis are read-only views; what follows must not write into them."""
    R = relations.gather(seg(SIZE), seg(COUNT), INDEX) * relations.full(seg(2), seg(3))
    x = RNG.normal(size=(SIZE, 2))
    L = rz.LinearMap.of(rz.red(R).at(rz.space_of(x)))
    want = np.repeat(x.sum(1)[INDEX][:, None], 3, axis=1)
    assert np.allclose(written_to(L, x), want)
    assert np.allclose(written_to(2.0 * L, x), 2 * want)


@pytest.mark.parametrize("columns", [3, 1 << 20])
def test_views_of_the_argument_of_a_map(columns):
    x = RNG.normal(size=(2, columns))
    for f in (lambda x: x, lambda x: x.T, lambda x: x.reshape(-1), lambda x: x[:, ::-1]):
        L = rz.linearize(f, x)[1]
        assert np.array_equal(written_to(L, x), f(x))
    a, b = rz.linearize(lambda x: (2 * x, (2 * x).T), x)[1](x)
    assert not np.shares_memory(a, b) and np.array_equal(a.T, b)


@pytest.mark.parametrize("n", [6, 1 << 17])
def test_results_of_combinators(n):
    x = RNG.normal(size=n)
    assert np.array_equal(written_to(rz.id, x), x)
    assert np.array_equal(written_to(lambda x: rz.proj(0)((x, x)), x), x)
    a, b = rz.dup(x)
    assert not np.shares_memory(a, b) and not np.shares_memory(a, x) and not np.shares_memory(b, x)
    y, L = rz.linearize(rz.exp ** rz.seg(n), x)
    want = L(x)
    y[...] = 7.0  # exp x is also its own slope
    assert np.array_equal(L(x), want)
    value, moved = rz.jvp(rz.id, (x,), (x,))
    assert not np.shares_memory(value, moved) and not np.shares_memory(value, x) and not np.shares_memory(moved, x)


class Box:
    """Something with an array inside, as other libraries have."""

    def __init__(self, d):
        self.d = d

    @property
    def shape(self):
        return self.d.shape

    @property
    def dtype(self):
        return self.d.dtype

    def __array__(self, dtype=None, copy=None):
        return self.d


@pytest.mark.parametrize("d", [np.zeros(6), np.zeros(6).reshape(2, 3)])
def test_arrays_inside_other_things_stay(d):
    y = rz.function(lambda x: x)(Box(d))
    y[...] = 7.0
    assert not d.any()


@pytest.mark.parametrize("n", [6, 1 << 21])
@pytest.mark.parametrize("view", [False, True])
def test_a_work_array_used_again_by_a_users_function(n, view):
    scratch = np.empty(n).reshape(2, -1) if view else np.empty(n)

    @rz.custom_derivative
    def twice(x):
        if type(x) is not np.ndarray:
            raise TypeError("not NumPy code")  # riesz cannot look into it
        np.multiply(x, 2.0, out=scratch)
        return scratch

    twice.derivative(lambda x: lambda dx: 2.0 * dx)
    twice.adjoint(lambda x: lambda dy: 2.0 * dy)
    x = np.ones(scratch.shape)

    def linear(v):
        np.multiply(v, 2.0, out=scratch)
        return scratch

    L = rz.LinearMap.of(rz.linear(linear, linear, domain=rz.space_of(x), codomain=rz.space_of(x)))
    for f in (
        rz.function(lambda x: twice(x)),
        rz.compile(lambda x: twice(x)),
        lambda x: rz.linearize(lambda x: twice(x), x)[0],
        L,
    ):
        first = f(x)
        kept = first.copy()
        f(3 * x)
        assert np.array_equal(first, kept) and np.array_equal(first, 2 * x)


AT_THE_END = """
import os, numpy as np, riesz as rz
plan, v = rz.relations.window(rz.seg(1 << 20), 5).plan(), np.ones(1 << 20)
plan(v)

class Last:
    def __del__(self, plan=plan, v=v, write=os.write):
        write(1, b"right" if plan(v)[7] == 5.0 else b"wrong")

last = Last()
"""


def test_work_when_the_interpreter_ends():
    ran = subprocess.run(
        [sys.executable, "-c", AT_THE_END],
        env={**os.environ, "RIESZ_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0 and ran.stdout == "right", ran.stderr
