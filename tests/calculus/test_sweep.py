"""Gradients in two sweeps over the program: the same as through the linear program, on every kind of step they are for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from random_programs import random_function

import riesz as rz
from riesz.calculus.derive import affine_program, reverse_numbers, swept
from riesz.errors import TraceError
from riesz.functions.function import TracedFunction
from riesz.spaces.formal_vectors import dense
from riesz.tracing.argument_trees import numbers_of


def both_ways(f, *args):
    """(values, cotangents) by sweeps and by way of the linear program; None where there are no sweeps."""
    record, leaves = TracedFunction(f).at(args)
    moving = [True] * len(leaves)
    numbers = numbers_of(leaves)
    found = swept(record.program, numbers, moving)
    values, tape = affine_program(record.program, numbers, moving)
    cotangents = reverse_numbers(tape, [np.float32(1.0) if type(values[0]) is np.float32 else 1.0])
    return found, (values, cotangents)


def agree(f, *args, rtol=1e-12):
    found, expected = both_ways(f, *args)
    assert found is not None
    for x, y in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(dense(x), dense(y), rtol=rtol)
    for x, y, a in zip(found[1], expected[1], args, strict=True):
        x, y = [np.zeros(np.shape(a)) if c is None else np.asarray(dense(c)) for c in (x, y)]
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)
        assert x.dtype == y.dtype or np.ndim(a) == 0


@given(st.integers(0, 10**6))
def test_random_functions(seed):
    f, args = random_function(
        seed, inputs=1 + seed % 2, single=True, without=("loop", "cond", "fourier", "sort", "segments")
    )

    def g(*xs):
        return np.sum(np.sin(f(*xs)))

    found, expected = both_ways(g, *args)
    if found is None:
        return
    for x, y, a in zip(found[1], expected[1], args, strict=True):
        x, y = [np.zeros(np.shape(a)) if c is None else dense(c) for c in (x, y)]
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12 * (1.0 + np.max(np.abs(y), initial=0.0)))


def test_most_random_functions_are_swept():
    swept_ones = 0
    for seed in range(60):
        f, args = random_function(seed, single=True, without=("loop", "cond", "fourier", "sort", "segments"))
        swept_ones += both_ways(lambda *xs, f=f: np.sum(np.sin(f(*xs))), *args)[0] is not None
    assert swept_ones > 30


rng = np.random.default_rng(0)
A, B, u, v = rng.normal(size=(3, 4)), rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: np.sum(x * x), (u,)),
        (lambda x: x @ x, (u,)),
        (lambda x: np.sum(x @ x), (B @ A,)),
        (lambda a, b: np.sum(np.tanh(a @ b) ** 3), (A, B)),
        (lambda a, x: np.sum(np.arctan2(a, x)), (A[:, :1], u)),
        (lambda a, x: np.sum(np.hypot(a[0, 0], x) * a), (A, u)),
        (lambda a, x: np.sum(np.maximum(a, x)), (A, u)),
        (lambda x: np.sum(np.maximum(x, x[::-1])), (np.array([1.0, 2.0, 1.0]),)),
        (lambda x: np.sum(np.where(x > 0, np.log(x), x)), (u,)),
        (lambda x: np.sum(np.where(x > 0, np.sqrt(x - x), 3.0 * x)), (u,)),
        (lambda x, y: np.sum(np.outer(x, y) @ y), (u, v)),
        (lambda x: np.sum(np.concatenate([x[1:], x[:2]]) * np.cumsum(x)[:1]), (u,)),
        (lambda x: np.sum(np.reshape(x, (2, 2)) @ np.ones((2, 5))), (u,)),
        (lambda x, y: np.sum(x) + 0.0 * np.sum(y), (u, v)),
        (lambda x: scipy.special.logsumexp(x) + np.var(x), (u,)),
        (lambda x: np.linalg.norm(np.clip(x, -0.5, 0.5)) * np.prod(x), (u,)),
    ],
)
def test_kinds_of_steps(f, args, kind):
    agree(f, *[x.astype(kind) for x in args], rtol=1e-12 if kind is np.float64 else 1e-6)


def test_a_branch_not_taken_leaves_no_trace():
    (found, _) = both_ways(lambda x: np.sum(np.where(x > 0, np.log(x), 2.0 * x)), np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(dense(found[1][0]), [2.0, 2.0, 0.5])


@pytest.mark.parametrize(
    "f", [lambda x: rz.fori_loop(0, 3, lambda i, y: np.sin(y) * x, x)[0], lambda x: np.max(x), lambda x: np.sort(x)[1]]
)
def test_other_steps_go_the_other_way(f):
    found, expected = both_ways(f, u)
    assert found is None
    assert expected[1][0] is not None


def test_a_derivative_nobody_knows():
    record, leaves = TracedFunction(lambda a: np.sum(scipy.special.jv(a, 2.0))).at((np.array([1.0, 2.0]),))
    with pytest.raises(TraceError, match="jv in its argument 0 is not known"):
        swept(record.program, leaves, [True])


def test_long_programs_through_the_public_door():
    def f(ws, x):
        for i, w in enumerate(ws):
            x = np.tanh(w @ x) if i % 3 else np.maximum(w @ x, 0.1 * x) + x
        return np.sum(x)

    ws = [rng.normal(size=(4, 4)) / 2 for _ in range(300)]
    x = rng.normal(size=4)
    found = rz.grad(f)(ws, x)
    before = [w.copy() for w in found]
    direction = [rng.normal(size=(4, 4)) for _ in ws]
    up, down = [f([w + s * 1e-6 * d for w, d in zip(ws, direction, strict=True)], x) for s in (1.0, -1.0)]
    assert sum([np.sum(g * d) for g, d in zip(found, direction, strict=True)]) == pytest.approx(
        (up - down) / 2e-6, rel=1e-5, abs=1e-9
    )
    rz.grad(f)(ws, 2.0 * x)
    for g, b in zip(found, before, strict=True):
        np.testing.assert_array_equal(g, b)
        g[:] = 0.0
