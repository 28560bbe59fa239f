"""Passes over programs preserve values, and a count of operations for each kind of work: what timings cannot show."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function
from sampling import examples

import riesz as rz
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Elementwise, contraction
from riesz.programs.cost import cost
from riesz.programs.passes.collecting import collected
from riesz.programs.passes.fusing import fused, in_order, ready
from riesz.programs.passes.hoisting import hoisted
from riesz.programs.program import Program, outputs
from riesz.programs.sub_programs import Loop
from riesz.runtime import tuning
from riesz.spaces.formal_vectors import dense
from riesz.terms.primitives import tanh
from riesz.tracing.argument_trees import flatten, numbers_of

RNG = np.random.default_rng(0)


def traced(f, args):
    """A function's program as it was traced, and its inputs."""
    g = rz.function(f)
    given = g.given(tuple(args), {})
    return g.record(given).program, numbers_of(given.arrays)


def total(f):
    return lambda *xs: sum([np.sum(np.cos(y)) for y in flatten(f(*xs))[0]]) + 0.0 * np.sum(xs[0])


def same(program, other, xs, tolerance=1e-9):
    """Two programs have the same outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in zip(outputs(program, NUMBERS, xs), outputs(other, NUMBERS, xs), strict=True):
            a, b = dense(a), dense(b)
            assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
            assert np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


# -- every pass preserves values ---------------------------------------------------------------------------


@examples(0.6)
@given(st.integers(0, 10**6), st.booleans())
def test_passes_on_random_programs(seed, narrow):

    f, args = random_function(
        seed, inputs=1 + seed % 2, single=True, without=("segments", "fourier", "sort") if narrow else ()
    )
    args = [np.asarray(a, np.float32) if np.ndim(a) else np.float32(a) for a in args] if narrow else args
    kept = tuning.FUSED_NUMBERS, tuning.COLLECTED_NUMBERS
    tuning.FUSED_NUMBERS = tuning.COLLECTED_NUMBERS = 1  # small programs are looked at too
    try:
        for g in (f, rz.value_and_grad(total(f), argnums=tuple(range(len(args))))):
            program, xs = traced(g, args)
            for run in (hoisted, in_order, fused, collected, lambda p: collected(fused(in_order(hoisted(p))))):
                found = run(program)
                same(program, found, xs, 1e-4 if narrow else 1e-9)
                assert cost(found).flops <= cost(program).flops
    finally:
        tuning.FUSED_NUMBERS, tuning.COLLECTED_NUMBERS = kept


# -- a map common to all summands -------------------------------------------------------------------------


def test_a_map_of_all_points_summed_over_them_is_one_map_of_the_sum():
    p = Program()
    A, x = p.input((30, 40)), p.input((500, 40))
    y = p.step(contraction(((0, 1), (2, 1)), (2, 0)), (A, x))
    p.outputs = [p.step(contraction(((0, 1),), (1,)), (y,))]
    found = collected(fused(p))
    assert cost(found).flops <= 500 * 40 + 2 * 30 * 40
    same(p, found, [RNG.normal(size=(30, 40)), RNG.normal(size=(500, 40))])


@pytest.mark.parametrize("strong", [(), (1,)])
def test_also_behind_a_selection(strong):
    p = Program()
    A, x = p.input((30, 40)), p.input((500, 40))
    y = p.step(contraction(((0, 1), (2, 1)), (2, 0), None, strong), (A, x))
    p.outputs = [p.step(contraction(((0, 1),), (2, 1), {2: 1}), (y,))]
    found = collected(fused(p))
    assert cost(found).flops <= 500 * 40 + 2 * 30 * 40
    xs = [RNG.normal(size=(30, 40)), RNG.normal(size=(500, 40))]
    same(p, found, xs)
    xs[0][3, 5], xs[1][:, 5] = np.nan, 0.0  # what a strong zero meets leaves no trace
    same(p, found, xs)
    assert bool(strong) == bool(np.isfinite(outputs(found, NUMBERS, xs)[0]).all())


def test_products_with_a_common_factor_are_one():
    p = Program()
    A, *xs = p.input((50, 60)), *[p.input((60, 70)) for _ in range(3)]
    products = [p.step(contraction(((0, 1), (1, 2)), (0, 2)), (A, x)) for x in xs]
    other = p.step(Elementwise(tanh), (products[0],))  # the first has another reader
    p.outputs = [p.step(Combination((2.0, -1.0, 0.5, 1.0)), (*products, other))]
    found = collected(p)
    assert sum([type(op).__name__ == "Contraction" for op in found.ops]) == 2
    assert cost(found).flops < cost(p).flops - 2 * 50 * 60 * 70 + 2 * 60 * 70
    same(p, found, [RNG.normal(size=s) for s in ((50, 60), *[(60, 70)] * 3)])


def test_products_of_different_sizes_are_not_added_up_first():
    """Σ over j of A·x with one j, and of A·y with five: their sum would repeat x."""
    p = Program()
    A, x, y = p.input((50, 60)), p.input((60, 1)), p.input((60, 5))
    products = [p.step(contraction(((0, 1), (1, 2)), (0,)), (A, v)) for v in (x, y)]
    p.outputs = [p.step(Combination((1.0, 1.0)), products)]
    same(p, collected(p), [RNG.normal(size=s) for s in ((50, 60), (60, 1), (60, 5))])


def test_a_common_factor_stays_where_its_sum_is_larger():
    p = Program()
    A, x, y = p.input((2, 500)), p.input((500, 40)), p.input((500, 40))
    products = [p.step(contraction(((0, 1), (1, 2)), (0,)), (A, v)) for v in (x, y)]
    p.outputs = [p.step(Combination((1.0, 3.0)), products)]
    found = collected(p)
    assert cost(found).flops <= cost(p).flops
    same(p, found, [RNG.normal(size=s) for s in ((2, 500), (500, 40), (500, 40))])


# -- loops ------------------------------------------------------------------------------------------------


def test_what_is_the_same_in_every_round_is_computed_once():
    body = Program()
    W, c, t = body.input((20, 20)), body.input((20,)), body.input(())
    square = body.step(contraction(((0, 1), (1, 2)), (0, 2)), (W, W))
    bent = body.step(Elementwise(tanh), (square,))
    body.outputs = [
        body.step(contraction(((0, 1), (1,)), (0,)), (bent, c)),
        body.step(contraction(((), (0, 1)), ()), (t, square)),
    ]
    p = Program()
    W, c, ts = p.input((20, 20)), p.input((20,)), p.input((9,))
    p.outputs = [p.step(Loop(body, 1, 1, 9), (W, c, ts))]
    found = hoisted(p)
    assert cost(found).flops < cost(p).flops - 7 * 2 * 20**3
    xs = [RNG.normal(size=(20, 20)) / 9, RNG.normal(size=20), RNG.normal(size=9)]
    for a, b in zip(outputs(p, NUMBERS, xs)[0], outputs(found, NUMBERS, xs)[0], strict=True):
        assert np.array_equal(a, b)
    assert hoisted(found) is found


def test_a_loop_that_runs_no_round_computes_nothing_before():
    body = Program()
    W, c = body.input((3, 3)), body.input((3,))
    bent = body.step(Elementwise(tanh), (W,))
    body.outputs = [body.step(contraction(((0, 1), (1,)), (0,)), (bent, c))]
    p = Program()
    p.outputs = [p.step(Loop(body, 1, 1, 0), (p.input((3, 3)), p.input((3,))))]
    assert hoisted(p) is p


def test_value_and_gradient_share_one_loop():
    def f(W, x):
        carry, rows = rz.loop(lambda c, t: (np.tanh(W @ c) * t, np.sum(c)), x, np.linspace(0.1, 1.0, 8))
        return np.sum(carry) + np.sum(rows)

    program, xs = traced(rz.value_and_grad(f, argnums=(0, 1)), [RNG.normal(size=(5, 5)), RNG.normal(size=5)])
    found = ready(program)
    assert sum([isinstance(op, Loop) for op in found.ops]) == 2 == sum([isinstance(op, Loop) for op in program.ops]) - 1
    same(program, found, xs, 0.0)


# -- a count of operations for each kind of work ------------------------------------------------------------


def flops(f, *args):
    """The operations of a compiled function."""
    return rz.compile(f, *args).cost.flops


@pytest.mark.parametrize("stable", [True, False])
def test_mixture_of_gaussians(stable):
    """Two matrix products at each point for each Gaussian, not three."""
    n, d, K = 700, 24, 30
    x = RNG.normal(size=(n, d))

    def f(w, mu, Q):
        y = np.einsum("kij,nkj->nki", Q, x[:, None, :] - mu)
        q = w - 0.5 * np.sum(y**2, axis=2)
        top = np.max(q, axis=1, keepdims=True) if stable else 0.0
        return np.sum(np.log(np.sum(np.exp(q - top), axis=1)) + np.sum(top))

    hand = 2 * (2 * n * K * d * d) + 6 * n * K * d
    assert (
        flops(rz.grad(f, argnums=(0, 1, 2)), RNG.normal(size=K), RNG.normal(size=(K, d)), RNG.normal(size=(K, d, d)))
        < 1.1 * hand
    )


def test_k_means():
    n, d, K = 2000, 20, 15
    x = RNG.normal(size=(n, d))

    def f(c):
        return np.sum(np.min(np.sum(x * x, axis=1)[:, None] - 2 * x @ c.T + np.sum(c * c, axis=1), axis=1))

    assert flops(rz.grad(f), RNG.normal(size=(K, d))) < 1.25 * (2 * (2 * n * K * d) + 8 * n * K)


def test_logistic_regression():
    n, d = 3000, 40
    X, y = RNG.normal(size=(n, d)), RNG.integers(2, size=n) * 2.0 - 1.0
    f = lambda w: np.sum(np.log1p(np.exp(-y * (X @ w)))) + np.sum(w * w)  # noqa: E731
    assert flops(rz.grad(f), RNG.normal(size=d)) < 1.1 * (2 * 2 * n * d + 10 * n)


def test_hessian_vector_product_of_a_factorisation():
    n, m, k = 400, 300, 5
    T, U, V = RNG.normal(size=(n, m)), RNG.normal(size=(n, k)), RNG.normal(size=(m, k))
    f = lambda U: np.sum((T - U @ V.T) ** 2)  # noqa: E731
    g = lambda U, D: rz.hvp(f, (U,), (D,))[-1]  # noqa: E731
    assert flops(g, U, RNG.normal(size=(n, k))) < 1.3 * (2 * n * k * k + 2 * m * k * k)


def test_gradient_of_a_chain():
    n = 200
    A, B, C = RNG.normal(size=(3, n, n))
    x = RNG.normal(size=n)
    f = lambda B: 0.5 * np.sum((A @ B @ C @ x) ** 2)  # noqa: E731
    assert flops(rz.grad(f), B) < 1.1 * (4 * 2 * n * n + n * n)


def test_squared_norms_of_outer_products():
    b, i, j = 64, 80, 90
    f = lambda a, d: np.sum(np.einsum("bi,bj->bij", a, d) ** 2, axis=(1, 2))  # noqa: E731
    assert flops(f, RNG.normal(size=(b, i)), RNG.normal(size=(b, j))) < 3 * b * (i + j)


def test_layers():
    """A network: three products a layer, less the first one's into the data."""
    n, d = 64, 50
    X = RNG.normal(size=(n, d))

    def f(weights):
        h = X
        for W in weights:
            h = np.tanh(h @ W)
        return np.sum(h * h)

    hand = (3 * 4 - 1) * 2 * n * d * d + 4 * 6 * n * d
    assert flops(rz.grad(f), [RNG.normal(size=(d, d)) for _ in range(4)]) < 1.1 * hand
