"""Paths: the least work of all orders for few arrays, close to it and quick for many."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riesz.runtime import tuning
from riesz.spaces.contraction import network
from riesz.spaces.contraction_order import path, results
from riesz.spaces.formal_vectors import Formal, FormalProduct, contract_formal


@st.composite
def networks(draw, most=5):
    """Labels of a few arrays, of the result, and sizes: repeated labels, hyperedges, all-ones, scalars, sizes 0 and 1."""
    sizes = dict(enumerate(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 7]), min_size=1, max_size=6))))
    some = st.lists(st.sampled_from(sorted(sizes)), max_size=3).map(tuple)
    return draw(st.lists(some, min_size=1, max_size=most)), draw(some), sizes


def work_of(labels, out, sizes, pairs, fixed=(), runs=1):
    """The work along a path, counted array by array."""
    live = {i: set(ls) for i, ls in enumerate(labels)}
    stays, total = set(fixed), 0

    def trim(i):
        others = set(out).union(*[ls for j, ls in live.items() if j != i])
        return live[i] & others

    for i in list(live):
        kept = trim(i)
        if math.prod([sizes[k] for k in live[i]]) != math.prod([sizes[k] for k in kept]) or any(
            sizes[k] == 0 for k in live[i] - kept
        ):
            total += (1 if i in stays else runs) * math.prod([sizes[k] for k in live[i]])
        live[i] = kept
    for n, (i, j) in enumerate(pairs, start=len(labels)):
        both = live.pop(i) | live.pop(j)
        live[n] = both
        live[n] = trim(n)
        if i in stays and j in stays:
            stays.add(n)
        summed = any([sizes[k] != 1 for k in both - live[n]])
        total += (1 if n in stays else runs) * math.prod([sizes[k] for k in both]) * (2 if summed else 1)
    assert len(live) == 1
    return total


def every_path(live, fresh):
    """All orders of pairs."""
    if len(live) == 1:
        yield ()
        return
    for a in range(len(live)):
        for b in range(a + 1, len(live)):
            rest = [x for n, x in enumerate(live) if n not in (a, b)]
            for later in every_path([*rest, fresh], fresh + 1):
                yield ((live[a], live[b]), *later)


@given(networks(), st.integers(1, 5), st.data())
def test_no_order_is_less_work(problem, runs, data):
    labels, out, sizes = problem
    fixed = data.draw(st.sets(st.integers(0, len(labels) - 1)))
    found = path(labels, out, sizes, fixed, runs)
    works = [work_of(labels, out, sizes, p, fixed, runs) for p in every_path(list(range(len(labels))), len(labels))]
    assert found.flops == work_of(labels, out, sizes, found.pairs, fixed, runs) == min(works)


@given(networks(most=14), st.sampled_from([1, 3]), st.data())
def test_long_paths_are_paths_and_their_work_is_counted(problem, runs, data):
    labels, out, sizes = problem
    fixed = data.draw(st.sets(st.integers(0, len(labels) - 1)))
    found = path(labels, out, sizes, fixed, runs)
    assert sorted([i for p in found.pairs for i in p]) == list(range(2 * len(labels) - 2))
    assert all([i < j < len(labels) + k for k, (i, j) in enumerate(found.pairs)])
    assert found.flops == work_of(labels, out, sizes, found.pairs, fixed, runs)


@given(networks(), st.integers(0, 2**32 - 1))
def test_results_are_the_labels_einsum_needs(problem, seed):
    labels, out, sizes = problem
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=[sizes[k] for k in ls]) for ls in labels]
    kept = tuple(dict.fromkeys([k for k in out if any(k in ls for ls in labels)]))
    pairs = path(labels, out, sizes).pairs
    held = results(labels, kept, pairs)
    made = list(arrays)
    for n, (i, j) in enumerate(pairs, start=len(labels)):
        made.append(np.einsum(made[i], list(held[i]), made[j], list(held[j]), list(held[n])))
    whole = np.einsum(*[part for a, ls in zip(arrays, labels, strict=True) for part in (a, list(ls))], list(kept))
    assert np.allclose(np.einsum(made[-1], list(held[-1]), list(kept)), whole)


def chain(dims):
    """The best parentheses of a chain of matrices, the textbook way."""
    n = len(dims) - 1
    best = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i][j] = min(
                [
                    best[i][k] + best[k + 1][j] + (2 if dims[k + 1] > 1 else 1) * dims[i] * dims[k + 1] * dims[j + 1]
                    for k in range(i, j)
                ]
            )
    return best[0][-1]


@pytest.mark.parametrize("n", [3, 8, 9, 20, tuning.ORDER_CHAIN_ARRAYS])
@pytest.mark.parametrize("seed", range(5))
def test_chains_are_in_their_best_order_however_they_are_given(n, seed):
    rng = random.Random(seed)
    dims = [rng.randint(2, 50) for _ in range(n + 1)]
    matrices = [(i, i + 1) if rng.random() < 0.5 else (i + 1, i) for i in range(n)]
    rng.shuffle(matrices)
    assert path(matrices, (0, n), dict(enumerate(dims))).flops == chain(dims)


@pytest.mark.parametrize("seed", range(5))
def test_long_chains_are_close_to_their_best_order(seed):
    rng = random.Random(seed)
    dims = [rng.randint(2, 1000) for _ in range(101)]
    found = path([(i, i + 1) for i in range(100)], (0, 100), dict(enumerate(dims)))
    assert chain(dims) <= found.flops <= 1.2 * chain(dims)


def test_a_chain_on_a_vector_goes_from_the_vector():
    n = 10_000
    sizes = dict.fromkeys(range(n + 1), 30)
    assert path([(i, i + 1) for i in range(n)] + [(n,)], (0,), sizes).flops == 2 * 900 * n


def test_a_label_of_very_many_arrays():
    assert path([(0,)] * 2000, (0,), {0: 5}).flops == 5 * 1999
    assert path([(0, k) for k in range(1, 2000)], (0,), dict.fromkeys(range(2000), 5)).flops == 1999 * 25 + 5 * 1998


def test_what_stays_the_same_is_multiplied_once():
    labels, sizes = [(0, 1), (1, 2), (2,)], {0: 10, 1: 10, 2: 10}
    assert path(labels, (0,), sizes, (0, 1), 5).pairs == ((1, 2), (0, 3))
    assert path(labels, (0,), sizes, (0, 1), 50) == (((0, 1), (2, 3)), 2000 + 50 * 200)


def test_outer_products_come_last_and_the_small_one_first():
    sizes = {0: 100, 1: 3, 2: 4}
    assert path([(0,), (1,), (2,)], (0, 1, 2), sizes).pairs[0] == (1, 2)
    assert path([(0, 1), (2,), (0, 1)], (2,), sizes).pairs == ((0, 2), (1, 3))
    assert path([(0,), (1,), (0, 1, 2)], (2,), {0: 2, 1: 2, 2: 1000}).pairs[0] == (0, 1)  # an outer product, cheaper


def test_factors_with_the_same_labels_are_multiplied_before_they_are_summed():
    a, b, labels = np.array([1.0, 2.0]), np.array([3.0, 4.0]), (0,)
    assert network([(a, labels), (b, labels)], (), {0: 2}) == (11.0, [])
    ones = Formal((2,), (FormalProduct(1.0, ()),))
    assert contract_formal([ones, a, b], (labels, labels, labels), (), {0: 2}) == 11.0


@given(networks(), st.integers(0, 2**32 - 1))
def test_networks_carry_out_sums_and_leave_outer_products(problem, seed):
    labels, out, sizes = problem
    rng = np.random.default_rng(seed)
    out = tuple(dict.fromkeys(out))
    factors = [(rng.normal(size=[sizes[k] for k in ls]), ls) for ls in labels if ls]
    scale, rest = network(factors, out, sizes)
    assert all([set(ls) <= set(out) and len(set(ls)) == len(ls) for _, ls in rest])
    ones = [(np.ones(sizes[k]), (k,)) for k in sizes]
    whole = np.einsum(*[part for a, ls in (*factors, *ones) for part in (a, list(ls))], list(out))
    parts = [part for a, ls in (*rest, *[o for o in ones if o[1][0] in out]) for part in (a, list(ls))]
    assert np.allclose(scale * (np.einsum(*parts, list(out)) if parts else 1.0), whole)
