"""Loops taken apart: the same numbers, with less inside; and loops as generated code."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import examples

import riesz as rz
from riesz.calculus.loop_splitting import apart
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Elementwise
from riesz.programs.program import outputs
from riesz.programs.sub_programs import Loop
from riesz.spaces.formal_vectors import dense

RNG = np.random.default_rng(5)
ROUNDS, SIZE = 6, 3
W, XS = RNG.normal(size=(SIZE, SIZE)), RNG.normal(size=(ROUNDS, SIZE))


def loops(program):
    return [op for op in program.ops if isinstance(op, Loop)]


def traced(f, *args):
    return rz.function(f).at(args)[0].program


def same(f, *args):
    """Taken apart and whole, step by step; gives the program taken apart."""
    program = traced(f, *args)
    changed = apart(program)
    for a, b in zip(outputs(program, NUMBERS, args), outputs(changed, NUMBERS, args), strict=True):
        assert np.allclose(dense(a), dense(b), rtol=1e-9, atol=1e-12)
    return changed


def parts(x):
    return x if isinstance(x, tuple) else (x,)


PAIR = (np.ones(SIZE), np.zeros(SIZE))
BODIES = {
    "recurrent": (lambda W, c, x: (np.tanh(W @ c + W @ x), c * x), np.zeros(SIZE)),
    "only a sum": (lambda W, c, x: (c + np.sin(W @ x), c), np.zeros(SIZE)),
    "a sum of a carry": (lambda W, c, x: ((np.tanh(c[0] + W @ x), c[1] + c[0] * x - x**2), c[1]), PAIR),
    "a sum nobody else sees": (lambda W, c, x: ((np.cos(W @ c[0]) + x, c[1] + c[0] * x), x * c[0]), PAIR),
    "nothing carried": (lambda W, c, x: (c, np.exp(W @ x)), 0.5),
    "handed on": (lambda W, c, x: (x, c), np.zeros(SIZE)),
    "exchanged": (lambda W, c, x: ((c[1], np.sin(c[0]) * x), c[0]), PAIR),
    "numbers": (lambda W, c, x: (0.5 * c + x[0], c * x[1]), 1.5),
    "a number collected": (lambda W, c, x: (c + np.sum(W @ x), None), 0.25),
    "twice its own": (lambda W, c, x: (c + c * 0.1 + x, None), np.zeros(SIZE)),
    "where": (lambda W, c, x: (np.where(x > 0, c, x * c), np.maximum(c, W @ x)), np.ones(SIZE)),
    "shared in all rounds": (lambda W, c, x: (c * np.sin(W.sum(0)), W @ W.T @ x), np.ones(SIZE)),
}


@pytest.mark.parametrize("name", BODIES)
def test_values_and_derivatives(name):
    step, start = BODIES[name]

    def whole(W, xs):
        end, out = rz.loop(lambda c, x: step(W, c, x), start, xs)
        ends = end if isinstance(end, tuple) else (end,)
        return sum([np.sum(e**2) for e in ends]) + (0.0 if out is None else np.sum(np.sin(out)))

    same(lambda W, xs: rz.loop(lambda c, x: step(W, c, x), start, xs), W, XS)
    same(lambda W, xs: rz.grad(whole, (0, 1))(W, xs), W, XS)
    same(lambda W, xs: rz.hvp(whole, (W, xs), (xs[:SIZE], xs)), W, XS)
    for f in (whole, rz.grad(whole, (0, 1))):
        g = rz.compile(f, W, XS)
        for a, b in zip(parts(f(W, XS)), parts(g(W, XS)), strict=True):
            assert np.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_what_is_left_inside():
    """A gradient's products with the shared matrix are one product after the loop; a loop that carries nothing is none."""

    def loss(W, xs):
        return np.sum(rz.loop(lambda c, x: (np.tanh(W @ c + x), c), np.zeros(SIZE), xs)[1] ** 2)

    before = loops(traced(rz.grad(loss), W, XS))
    after = loops(same(rz.grad(loss), W, XS))
    assert [op.carries for op in before] == [1, 2] and [op.carries for op in after] == [1, 1]
    assert len(after[1].body) < len(before[1].body)
    assert not loops(same(lambda xs: rz.loop(lambda c, x: (c, np.sin(x)), 0.0, xs)[1], XS))


def names(program):
    return [op.primitive.name for op in program.ops if type(op) is Elementwise]


def test_what_both_loops_need_is_computed_once():
    def loss(W, xs):
        return np.sum(rz.loop(lambda c, x: (np.tanh(W @ c + x), np.exp(c)), np.zeros(SIZE), xs)[1] ** 2)

    program = traced(rz.grad(loss), W, XS)
    assert [names(op.body).count("tanh") for op in loops(program)] == [1, 1]
    changed = same(rz.grad(loss), W, XS)
    assert [names(op.body).count("tanh") for op in loops(changed)] == [1, 0] and "tanh" not in names(changed)


def test_short_loops_stay():
    program = traced(lambda xs: rz.loop(lambda c, x: (c + np.sin(x), None), np.zeros(SIZE), xs)[0], XS[:2])
    assert loops(apart(program))


@examples(0.6)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([np.float64, np.float32]))
def test_random_bodies(seed, reverse, dtype):
    rng = np.random.default_rng(seed)
    unary, binary = (
        [np.sin, np.tanh, lambda a: a * 0.5, lambda a: a[::-1], lambda a: a - a.mean()],
        [np.add, np.subtract, np.multiply, np.maximum],
    )
    picks = rng.integers(0, 10**6, size=40).tolist()

    def step(W, c, x):
        values, at = [*c, x, W @ x], iter(picks)
        for _ in range(7):
            k = next(at)
            a, b = values[next(at) % len(values)], values[next(at) % len(values)]
            values.append(unary[k % 5](a) if k % 3 == 0 else W @ a if k % 3 == 1 else binary[k % 4](a, b))
        ends = tuple(
            [old + values[next(at) % len(values)] if next(at) % 2 else values[-1 - i] for i, old in enumerate(c)]
        )
        return ends, values[next(at) % len(values)]

    start = tuple([np.asarray(v, dtype) for v in rng.normal(size=(2, SIZE))])
    given_ = [np.asarray(a, dtype) for a in (0.3 * W, XS[::-1] if reverse else XS)]

    def whole(W, xs):
        ends, out = rz.loop(lambda c, x: step(W, c, x), start, xs)
        return sum([np.sum(e * e) for e in ends]) + np.sum(np.cos(out))

    tolerance = 1e-8 if dtype is np.float64 else 2e-3
    for f in (whole, rz.grad(whole, (0, 1))):
        wanted, found = f(*given_), rz.compile(f, *given_)(*given_)
        for a, b in zip(parts(wanted), parts(found), strict=True):
            scale = max(1.0, float(np.abs(a).max()))
            assert np.asarray(a).dtype == np.asarray(b).dtype and np.allclose(
                a, b, rtol=tolerance, atol=tolerance * scale
            )
