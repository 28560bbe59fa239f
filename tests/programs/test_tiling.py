"""Loops over tiles of a long axis compute what the program computes, in the interpreter and as generated code, with less memory."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.backends.numpy.array_code import ArrayValue
from riesz.backends.numpy.tiled_code import TiledArrays
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Elementwise, Reshape, contraction
from riesz.ops.opaque import Put, Take
from riesz.programs.axis.axis_labels import axis_labels
from riesz.programs.axis.slices import Tiled
from riesz.programs.axis.tiling import tiled
from riesz.programs.passes.fusing import ready
from riesz.programs.program import outputs
from riesz.runtime import buffers, tuning
from riesz.runtime import pool as threads
from riesz.spaces.formal_vectors import dense
from riesz.terms.primitives import tanh
from riesz.tracing.argument_trees import flatten, numbers_of


def traced(f, args):
    """A function's program, ready to run, and its inputs."""
    g = rz.function(f)
    given = g.given(tuple(args), {})
    return ready(g.record(given).settled().program), numbers_of(given.arrays)


def loops(program):
    """The loops over tiles of a program."""
    return [op for op in program.ops if isinstance(op, Tiled)]


def generated(program, xs):
    """The outputs by generated code."""
    kinds = [float if type(x) is float else np.asarray(x).dtype for x in xs]
    code = TiledArrays(
        program, [ArrayValue(f"a{i}_", np.shape(x), k) for i, (x, k) in enumerate(zip(xs, kinds, strict=True))]
    )
    wide = [code.array(v).text for v in code.outputs]
    space = dict(code.names) | {f"a{i}_": x for i, x in enumerate(xs)}
    exec("\n".join(code.lines), space)
    return [eval(text, space) for text in wide]


def compare(f, args, tile, tolerance=1e-9):
    """Tiled, interpreted and generated, against the program as it is; how many loops there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program, xs = traced(f, args)
        wanted = [dense(v) for v in outputs(program, NUMBERS, xs)]
        found = tiled(program, tile=tile, worth=-1)
        for results in (outputs(found, NUMBERS, xs), generated(found, xs)):
            for x, y in zip(map(dense, results), wanted, strict=True):
                assert np.shape(x) == np.shape(y) and np.asarray(x).dtype == np.asarray(y).dtype
                assert np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
    return loops(found)


def total(f):
    return lambda *xs: sum([np.sum(np.cos(y)) for y in flatten(f(*xs))[0]]) + 0.0 * np.sum(xs[0])


# -- random programs --------------------------------------------------------------------------------------


@examples(0.6)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]))
def test_random_values_and_gradients(seed, tile):
    f, args = random_function(seed, inputs=1 + seed % 2, single=True)
    compare(f, args, tile)
    compare(rz.value_and_grad(total(f), argnums=tuple(range(len(args)))), args, tile)


@examples(0.3)
@given(st.integers(0, 10**6))
def test_random_programs_in_single_precision(seed):
    f, args = random_function(seed, single=True, without=("segments", "fourier", "sort"))
    args = [np.asarray(a, np.float32) if np.ndim(a) else np.float32(a) for a in args]
    compare(f, args, 2, 1e-4)
    compare(rz.grad(total(f)), args, 2, 1e-4)


def test_random_programs_do_have_loops():
    found = 0
    for seed in range(30):
        f, args = random_function(seed, single=True)
        found += len(compare(f, args, 2))
    assert found > 15


# -- what must not be tiled as one loop -------------------------------------------------------------------

N = 23
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.sin(x) * np.sin(x)[::-1]),
        lambda x: np.sin(x) - np.sum(np.cos(x), axis=0),
        lambda x: np.sum((np.sin(x) - np.mean(np.sin(x), axis=0)) ** 2),
        lambda x: np.sum(np.tanh(x)) ** 2 * np.sum(x * x),
        lambda x: np.sin(x)[3:] * np.cos(x)[:-3],
        lambda x: np.cumsum(np.sin(x), axis=0) * x,
        lambda x: np.sin(x)[:, None] - np.cos(x)[None, :],
        lambda x: np.sum(np.exp(-((np.sin(x)[:, None] - np.sin(x)[None, :]) ** 2)) @ np.tanh(x)),
        lambda x: np.sin(x) @ np.sin(x).T,
        lambda x: np.sort(np.sin(x), axis=0) * np.max(x, axis=0),
        lambda x: np.max(np.sin(x), axis=1) - np.max(np.cos(x)),
        lambda x: np.sin(x).reshape(-1) * 2.0,
        lambda x: np.sin(x).T @ np.cos(x) + np.sum(x),
        lambda x: np.sum(np.where(x > 0.3, np.log(x), np.sin(x)) * x),
        lambda x: np.sin(x)[np.array([5, 5, 0, 3])] * 2.0,
    ],
)
@pytest.mark.parametrize("shape", [(N, 4), (N, N), (1, 4), (0, 4), (4, 0), (2, 1)])
def test_positions_that_meet(f, shape):
    x = RNG.normal(size=shape)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f(x)
    except (ValueError, IndexError):  # extrema of nothing, places that are not there
        return
    for tile in (1, 4, 7):
        compare(f, [x], tile)
        compare(rz.grad(total(f)), [x], tile)


def test_a_sum_and_what_reads_it_are_two_loops():
    x = RNG.normal(size=(N, 3))
    program, _ = traced(lambda x: np.sum(np.exp(np.sin(x) - np.sum(np.cos(np.tanh(x))))), [x])
    found = loops(tiled(program, tile=4, worth=-1))
    assert len([op for op in found if op.length == N]) == 2


def test_a_product_of_points_is_one_loop():
    """Matrix products along the points, and one that sums over them."""
    x, w = RNG.normal(size=(N, 3)), RNG.normal(size=(3, 5))
    f = rz.value_and_grad(lambda w: np.sum(np.tanh(x @ w) ** 2))
    found = compare(f, [w], 4)
    assert [op.length for op in found] == [N]
    program, _ = traced(f, [w])
    assert len(tiled(program, tile=4, worth=-1)) <= 6


# -- mixtures of Gaussians ----------------------------------------------------------------------------------


def mixture(x):
    """Minus the log-likelihood, with full precision factors."""

    def f(w, mu, Q):
        y = np.einsum("kij,nkj->nki", Q, x[:, None, :] - mu[None])
        q = w - 0.5 * np.sum(y * y, axis=2)
        top = np.max(q, axis=1, keepdims=True)
        return -np.sum(top[:, 0] + np.log(np.sum(np.exp(q - top), axis=1)))

    return f


def parameters(n, d, K, kind=float):
    return [
        a.astype(kind)
        for a in (RNG.normal(size=(n, d)), RNG.normal(size=K), RNG.normal(size=(K, d)), RNG.normal(size=(K, d, d)) / d)
    ]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 37])
def test_a_mixture_in_ragged_tiles(n, kind):
    x, *args = parameters(n, 3, 4, kind)
    found = compare(rz.value_and_grad(mixture(x), argnums=(0, 1, 2)), args, 5, 1e-4 if kind is np.float32 else 1e-9)
    assert n < 3 or any([op.length == n and len(op.body) > 15 for op in found])


def test_nan_of_a_branch_not_taken_stays_out_of_tiles():
    x = np.concatenate([RNG.normal(size=40), [0.0, -1.0]])
    f = rz.grad(lambda a: np.sum(np.where(x > 0, np.log(x * a), x * a)))
    program, xs = traced(f, [2.0])
    with np.errstate(all="ignore"):
        found = outputs(tiled(program, tile=5, worth=-1), NUMBERS, xs)
        assert np.isfinite(found[0]) and np.isclose(found[0], rz.function(f)(2.0))


def test_the_compiled_gradient_of_a_mixture_says_that_it_runs_on_tiles():
    x, *args = parameters(3000, 8, 30)
    f = rz.grad(mixture(x), argnums=(0, 1, 2))
    g = rz.compile(f, *args)
    assert "tiles" in g.explain() and "3,000 positions" in g.explain()
    assert "def tile_" in g.source and "matmul" in g.source
    first, wanted = g(*args), f(*args)
    for a, b in zip(first, wanted, strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9) and type(a) is np.ndarray and a.dtype == b.dtype
    again = g(*args)
    assert all([np.array_equal(a, b) for a, b in zip(first, again, strict=True)])
    assert not any([np.shares_memory(a, b) for a, b in zip(first, again, strict=True)])


def test_memory_of_a_compiled_mixture(monkeypatch):
    x, *args = parameters(4000, 8, 40)
    f = rz.grad(mixture(x), argnums=(0, 1, 2))
    peaks = []
    for worth in (tuning.TILE_SAVED_BYTES, 1 << 60):
        with monkeypatch.context() as patch:
            patch.setattr("riesz.backends.numpy.numpy_backend.tiled", lambda p, w=worth: tiled(p, worth=w))
            g = rz.compile(f, *args)
        g(*args)
        buffers.forget()
        tracemalloc.start()
        g(*args)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < peaks[1] / 6
    assert peaks[0] < 8 << 20 < peaks[1]  # 10 MiB for one array over all points


def test_the_number_of_threads_does_not_change_the_bits(monkeypatch):
    x, *args = parameters(3000, 6, 20)
    program, xs = traced(rz.grad(mixture(x), argnums=(0, 1, 2)), args)
    found = tiled(program, tile=64, worth=0)
    assert loops(found)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "count", lambda n=count: n)
        results.append(outputs(found, NUMBERS, xs))
    for other in results[1:]:
        assert all([np.array_equal(a, b) for a, b in zip(results[0], other, strict=True)])


def test_small_programs_are_left_alone():
    program, _ = traced(rz.grad(mixture(RNG.normal(size=(50, 2))), argnums=(0, 1, 2)), parameters(50, 2, 3)[1:])
    assert tiled(program) is program


def test_work_inside_spread_work_is_not_spread():
    done = []
    threads.spread(lambda i: threads.spread(lambda j: done.append((i, j)), [(0,), (1,)]), [(0,), (1,), (2,)])
    assert sorted(done) == [(i, j) for i in range(3) for j in range(2)]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_part_that_fails(bad):
    """Its error is the caller's, once all other parts are over; the threads go on to serve."""
    done = []

    def work(i):
        if i == bad:
            raise ValueError(f"part {i}")
        done.append(i)

    with pytest.raises(ValueError, match=f"part {bad}"):
        threads.spread(work, [(0,), (1,), (2,)])
    assert sorted(done) == [i for i in range(3) if i != bad]
    threads.spread(done.append, [(3,), (4,), (5,)])
    assert sorted(done)[-3:] == [3, 4, 5]


def test_shares_of_an_extremum_along_the_long_axis():
    """They look at a whole axis: no code on single positions."""
    x = RNG.normal(size=(60_000, 3))
    f = rz.grad(lambda x: np.sum(np.cos(np.sin(x) * np.exp(-x * x) - np.max(x, axis=0))))
    assert np.allclose(rz.compile(f, x)(x), f(x))


def test_a_long_program_is_tiled_in_linear_time():
    def f(x):
        for _ in range(2000):
            x = np.tanh(x) * 0.5 + x
        return np.sum(x)

    program, xs = traced(rz.grad(f), [RNG.normal(size=(50, 2))])
    found = tiled(program, tile=16, worth=-1)
    assert loops(found) and np.allclose(outputs(found, NUMBERS, xs)[0], outputs(program, NUMBERS, xs)[0])


@pytest.mark.parametrize(
    ("op", "shapes", "wanted"),
    [
        (Elementwise(tanh), [(3, 4)], [(0, 1)]),
        (Combination((1.0, 1.0)), [(4,), (3, 1)], [(1,), (0, None)]),
        (contraction(((5, 6), (6, 7)), (5, 7)), [(3, 2), (2, 4)], [(0, "sum"), ("sum", 1)]),
        (Reshape((6, 5, 2)), [(2, 3, 5, 2)], [(None, None, 1, 2)]),
        (Reshape((3, 2)), [(2, 3)], [(None, None)]),
        (Take(1, 2), [(2, 3, 9), (2, 4, 5)], [(0, 1, None), (0, 2, 3)]),
        (Put(1, 2, 2, 9), [(2, 3, 4, 5), (2, 4, 5)], [(0, 1, "a", "b"), (0, "a", "b")]),
    ],
)
def test_axes_with_one_index_have_one_label(op, shapes, wanted):
    """Numbers are axes of the result, words are the same label, None is a label of its own."""
    out, labels = axis_labels(op, shapes, op.shape_of(tuple(shapes)))
    flat, wanted = [k for ls in labels for k in ls], [k for ls in wanted for k in ls]
    place = {k: i for i, k in enumerate(out)}
    assert [place.get(k) for k in flat] == [k if type(k) is int else None for k in wanted]
    for i, k in enumerate(wanted):
        assert [flat[i] == other for other in flat] == [
            i == j or (k is not None and k == other) for j, other in enumerate(wanted)
        ]
