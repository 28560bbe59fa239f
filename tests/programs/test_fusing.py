"""Fused programs: the same function in fewer steps, nothing with a row for every pair."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz import relations, seg
from riesz.calculus.derive import derive_program, lower
from riesz.functions.function import TracedFunction
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Contraction, Reduction, contraction
from riesz.programs.passes.fusing import SparseProduct, fused, ready
from riesz.programs.program import Program, outputs
from riesz.programs.rewriting import rewritten
from riesz.runtime import tuning
from riesz.spaces.formal_vectors import dense
from riesz.testing import functions, linear_terms

RNG = np.random.default_rng(7)
N, E = 300, 6000
FROM, TO, WEIGHT = RNG.integers(0, N, E), RNG.integers(0, N, E), RNG.normal(size=E)


@pytest.fixture
def every_size(monkeypatch):
    """Small steps are joined too."""
    monkeypatch.setattr(tuning, "FUSED_NUMBERS", 0)


def kinds(program) -> list[type]:
    return [type(op) for op in program.ops if isinstance(op, (Contraction, Reduction, SparseProduct))]


@given(st.one_of(linear_terms(weighted=False), functions(weighted=False)), st.integers(0, 2**32 - 1))
def test_a_fused_program_is_the_same_function(t, seed):
    before, tuning.FUSED_NUMBERS = tuning.FUSED_NUMBERS, 0
    try:
        programs = [lower(t)]
        if not t.linear:
            derived = derive_program(programs[0])
            programs += [derived.derivative, derived.adjoint]
        rng = np.random.default_rng(seed)
        for program in programs:
            small = fused(program)
            assert len(small) <= len(program)
            given = [
                rng.normal(size=program.shapes[s]) if program.shapes[s] else float(rng.normal()) for s in program.inputs
            ]
            for a, b in zip(outputs(program, NUMBERS, given), outputs(small, NUMBERS, given), strict=True):
                assert np.allclose(dense(a), dense(b), rtol=1e-10, atol=1e-10, equal_nan=True)
    finally:
        tuning.FUSED_NUMBERS = before


def scattered(width: int) -> rz.LinearMap:
    """red of TO after any values of the pairs."""
    return rz.LinearMap.of(rz.red(relations.function(seg(E), seg(N), TO)).at(rz.space_of(np.zeros((E, width)))))


@pytest.mark.parametrize("weight", [lambda x: x * WEIGHT[:, None], lambda x: WEIGHT[:, None] * x], ids=["xw", "wx"])
def test_gather_product_scatter_is_a_sparse_product(weight):
    x = RNG.normal(size=(N, 5))
    _, gathered = rz.linearize(lambda x: weight(x[FROM]), x)
    L = scattered(5) @ gathered
    expected = np.zeros((N, 5))
    np.add.at(expected, TO, x[FROM] * WEIGHT[:, None])
    assert kinds(ready(L.program)) == [SparseProduct] == kinds(ready(L.H.program))
    assert np.array_equal(L(x), expected)  # the same sums in the same order
    back = np.zeros((N, 5))
    np.add.at(back, FROM, x[TO] * WEIGHT[:, None])
    assert np.allclose(L.H(x), back, rtol=1e-13)


def test_a_sparse_product_makes_no_row_for_every_pair():
    n, e, width = 2000, 200_000, 32
    rng = np.random.default_rng(0)
    i, j, w = rng.integers(0, n, e), rng.integers(0, n, e), rng.normal(size=e)
    x = rng.normal(size=(n, width))
    _, gathered = rz.linearize(lambda x: x[i] * w[:, None], x)
    S = rz.LinearMap.of(rz.red(relations.function(seg(e), seg(n), j)).at(rz.space_of(np.zeros((e, width)))))
    L = S @ gathered
    L(x)
    tracemalloc.start()
    L(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < e * width * 8 / 4


def test_reductions_in_sequence_are_one():
    x = RNG.normal(size=(N, 50))
    _, L = rz.linearize(lambda x: x[FROM][::2][10:], x)
    assert kinds(ready(L.program)) == [Reduction]
    assert np.array_equal(L(x), x[FROM][::2][10:])


def test_a_composition_with_more_pairs_is_left_as_two():
    first, second = relations.window(seg(300), 7), relations.window(seg(294), 7)
    assert relations.fused(first, second) is None and first.then(second).count == 49 * 288
    there, back = relations.full(seg(200), seg(1)), relations.full(seg(1), seg(200))
    assert relations.fused(there, back) is relations.full(seg(200), seg(200))  # many pairs, little work


def test_a_sum_goes_into_the_product(every_size):
    a = RNG.normal(size=(40, 30))
    f = rz.function(lambda a: np.sum(np.sin(a) * a, axis=0))
    assert np.allclose(f(a), np.sum(np.sin(a) * a, axis=0))
    program = lower_of(lambda a: np.sum(np.sin(a) * a, axis=0), a)
    assert kinds(fused(program)) == [Contraction]
    assert len(fused(program)) == len(program) - 1


def test_a_shared_step_is_not_taken_up(every_size):
    a = RNG.normal(size=(40, 30))
    program = lower_of(lambda a: (np.sum(np.sin(a) * a, axis=0), np.sin(a) * a), a)
    assert fused(program) is program


def test_small_programs_run_as_they_are():
    program = lower_of(lambda a: np.sum(np.sin(a) * a, axis=0), np.ones((4, 3)))
    assert ready(program) is program


def lower_of(f, *args):
    """The program of a NumPy function at some arguments."""
    return TracedFunction(f).at(args)[0].program


def test_gathers_and_scatters_of_several_axes_are_right():
    n, m = 80, 70
    rng = np.random.default_rng(0)
    i, j, t, w = rng.integers(0, n, E), rng.integers(0, n, E), rng.integers(0, m, E), rng.normal(size=E)
    i[-50:] = j[-50:] = n - 1
    x = rng.normal(size=(n, n))
    f = rz.function(lambda x: np.bincount(t, w * x[i, j], m))
    assert np.allclose(f(x), np.bincount(t, w * x[i, j], m))
    L = rz.linearize(lambda x: np.bincount(t, w * x[i, j], m), x)[1]
    assert np.allclose(L(x), np.bincount(t, w * x[i, j], m)) and L.H(np.ones(m)).shape == (n, n)


def _small_program():
    """0: x, 1: y, 2: x + y, 3: 2·(x + y), 4: (x + y)², and 5 that nobody reads; outputs 3 and 4."""
    p = Program(share=False)
    x, y = p.input((3,)), p.input((3,))
    s = p.step(Combination((1.0, 1.0)), (x, y))
    k = p.scale(2.0, s)
    q = p.step(contraction(((0,), (0,)), (0,)), (s, s))
    p.step(Combination((1.0, 1.0)), (y, q))
    p.outputs = [k, q]
    return p


def test_what_is_asked_of_programs():
    p = _small_program()
    assert p.uses() == [1, 2, 3, 1, 2, 0]
    assert p.readers() == [[2], [2, 5], [3, 4, 4], [], [5], []]
    assert list(p.needed([3])) == [1, 1, 1, 1, 0, 0]
    assert list(p.needed([3, 4], [2])) == [0, 0, 1, 1, 1, 0]
    assert p.ancestors([3], ()) == [0, 1, 2, 3]
    assert p.ancestors([4, 3], {2}) == [3, 4]


def test_programs_between_slots():
    """`prune` starts at any slots, not only at inputs."""
    part = _small_program().prune([2], [4, 3])
    assert len(part.inputs) == 1 and len(part) == 2
    s = np.array([1.0, 2.0, 3.0])
    found = outputs(part, NUMBERS, [s])
    assert np.array_equal(found[0], s * s) and np.array_equal(found[1], 2 * s)


@pytest.mark.parametrize("share", [True, False])
def test_programs_are_rewritten_step_by_step(share):
    p, place = _small_program(), []
    p.inputs = p.inputs[::-1]

    def rule(small, slot, given):
        return small.scale(3.0, given[0]) if p.ops[slot] == 2.0 else None

    found = rewritten(p, rule, share, place)
    assert len(place) == len(p.ops) and found.inputs == [place[s] for s in p.inputs]
    x, y = np.arange(3.0), np.ones(3)
    k, q = outputs(found, NUMBERS, [y, x])  # the inputs keep their order
    assert np.array_equal(k, 3 * (x + y)) and np.array_equal(q, (x + y) ** 2)
