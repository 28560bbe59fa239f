"""Results belong to the caller: memory that nobody else holds is handed over as it is, all other is copied."""

import numpy as np
import pytest

import riesz as rz
from riesz import buffers, relations, seg
from riesz.relations import running

COUNT, SIZE = running.WORTH, 500
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
    for f in (lambda x: x, lambda x: x.reshape(2, -1), lambda x: x.T, lambda x: held, lambda x: held.reshape(-1), lambda x: x[::2], lambda x: x[:]):
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
