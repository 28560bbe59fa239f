"""The cost of programs, step by step and together."""

from __future__ import annotations

import numpy as np
import pytest

import riesz as rz
from riesz import relations, seg
from riesz.functions.function import TracedFunction
from riesz.ops.op import Cast, Combination, Reduction, Reshape, contraction
from riesz.programs.cost import Cost, cost
from riesz.programs.passes.fusing import SparseProduct, fused
from riesz.programs.program import Program
from riesz.programs.sub_programs import Call, Loop
from riesz.spaces.formal_vectors import Formal, FormalProduct

M, N, K = 5, 7, 11


def program_of(op, *shapes):
    """One step on inputs."""
    p = Program()
    p.outputs = [p.step(op, [p.input(s) for s in shapes])]
    return p


def of(f, *args):
    """The cost of a NumPy function."""
    return cost(TracedFunction(f).at(args)[0].program).flops


@pytest.mark.parametrize(
    ("op", "shapes", "expected"),
    [
        (contraction(((0, 1), (1, 2)), (0, 2)), [(M, N), (N, K)], 2 * M * N * K),
        (contraction(((0, 1), (1,)), (0,)), [(M, N), (N,)], 2 * M * N),
        (contraction(((0,), (1,)), (0, 1)), [(M,), (N,)], M * N),
        (contraction(((0, 1), (0, 1)), (0, 1)), [(M, N), (M, N)], M * N),
        (contraction(((0, 1),), (1, 0)), [(M, N)], 0),
        (contraction(((0, 1),), (1,)), [(M, N)], M * N),
        (contraction(((0,),), (0, 0)), [(M,)], 0),
        (contraction(((0,),), (0, 1), {1: N}), [(M,)], 0),
        (contraction(((0, 1), (1, 2)), (0,)), [(M, N), (N, K)], N * K + 2 * M * N),
        (contraction(((0, 1), (1, 2), (2,)), (0,)), [(M, N), (N, K), (K,)], 2 * N * K + 2 * M * N),
        (contraction(((0, 1), (1,)), (0,)), [(M, 0), (0,)], 0),
        (Combination((1.0, -1.0, 2.0)), [(M, N)] * 3, 3 * M * N),
        (Reshape((N * M,)), [(M, N)], 0),
        (Cast(np.dtype(float), np.dtype(np.float32)), [(M, N)], 0),
        (Reduction((relations.triangular(seg(N)),), 1), [(M, N, K)], M * N * K),
        (Reduction((relations.function(seg(N), seg(K), np.arange(N)),), 0), [(N, M)], N * M),
        (Reduction((relations.function(seg(N), seg(K), np.arange(N)),) * 2, 0), [(N, M)] * 2, 2 * N * M),
    ],
)
def test_steps(op, shapes, expected):
    assert cost(program_of(op, *shapes)) == Cost(expected, 0)


def test_numpy_code():
    x, A = np.ones(N), np.ones((M, N))
    assert of(np.sin, x) == N
    assert of(lambda x: np.sin(x) * 3.0 + x, x) == 3 * N
    assert of(lambda A, x: A @ x, A, x) == 2 * M * N
    assert of(lambda A: np.sum(A * A), A) == 2 * M * N
    assert of(lambda A: A.T.reshape(-1), A) == 0
    assert of(lambda x: np.fft.fft(x).real, np.ones(16)) >= 2.5 * 16 * 4
    assert of(np.convolve, x, np.ones(3)) == 2 * 3 * N


def test_a_loop_costs_its_rounds_and_a_call_its_dearest_branch():
    body = program_of(contraction(((0, 1), (1,)), (0,)), (N, N), (N,))
    loop = program_of(Loop(body, 1, 1, 10), (N, N), (N,))
    assert cost(loop).flops == 10 * 2 * N * N
    cheap = program_of(contraction(((0, 1),), (0,)), (N, N))
    dear = program_of(contraction(((0, 1), (1, 0)), (0,)), (N, N), (N, N))
    both = Program()
    A = both.input((N, N))
    twice = Program()
    a = twice.input((N, N))
    twice.outputs = [twice.step(dear.ops[-1], (a, a))]
    both.outputs = [both.step(Call((cheap, twice)), (both.const(0), A))]
    assert cost(both).flops == 2 * N * N


def test_blocks_in_blocks_without_end():
    inner = program_of(contraction(((0,), (0,)), (0,)), (N,), (N,))
    for _ in range(3000):
        inner = program_of(Call((inner,)), (N,), (N,))
    assert cost(inner).flops == N


def test_numbers_are_those_that_are_stored():
    p = Program(share=False)
    a, u = np.ones((M, N)), np.ones(K)
    for value in (a, a, np.broadcast_to(np.ones(N), (M, N)), np.broadcast_to(2.0, (M, N)), 3.0):
        p.const(value)
    assert cost(p).numbers == M * N + N + 1 + 1
    p.const(Formal((K, K), (FormalProduct(1.0, ((u, (0,)), (u, (1,)))),)))
    assert cost(p).numbers == M * N + N + 1 + 1 + K
    assert cost(p).flops == 0


def test_a_sparse_product_costs_two_operations_for_each_pair():
    rng = np.random.default_rng(0)
    n, e = 50, 5000
    i, j, w = rng.integers(0, n, e), rng.integers(0, n, e), rng.normal(size=e)
    x = rng.normal(size=(n, 3))
    S = rz.LinearMap.of(rz.red(relations.function(seg(e), seg(n), j)).at(rz.space_of(np.zeros((e, 3)))))
    L = S @ rz.linearize(lambda x: x[i] * w[:, None], x)[1]
    small = fused(L.program)
    assert [type(op) for op in small.ops if type(op) is SparseProduct]
    assert cost(small) == Cost(2 * e * 3, e)
    scatter = next(op.relations[0] for op in reversed(L.program.ops) if type(op) is Reduction)
    assert cost(L.program).flops == 2 * e * 3 + scatter.work  # gathered, multiplied, added up


def test_the_cost_of_a_derivative_follows_from_its_program():
    A, x = np.ones((M, N)), np.ones(N)
    L = rz.linearize(lambda x: np.sin(A @ x), x)[1]
    assert cost(L.program) == Cost(2 * M * N + M, M * N + M) == cost(L.H.program)
