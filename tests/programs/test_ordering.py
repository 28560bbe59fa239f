"""Programs with their products in the order of least work: the same values, never more operations, and the counts of known workloads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import riesz as rz
from riesz.calculus.derive import derive_program, lower
from riesz.calculus.linearity import linear_program
from riesz.functions.function import TracedFunction
from riesz.ops.number_domains import NUMBERS
from riesz.ops.op import Combination, Contraction, contraction, product
from riesz.ops.opaque import Discrete
from riesz.programs.cost import cost
from riesz.programs.passes.fusing import in_order, ready
from riesz.programs.passes.ordering import ordered, paired
from riesz.programs.program import INPUT, Constant, Program, outputs
from riesz.runtime import tuning
from riesz.spaces.formal_vectors import dense
from riesz.testing import functions, linear_terms

SIZES = (1, 3, 16)  # products of 16 × 16 matrices are worth writing sums and shared values into


SHAPES = st.one_of(
    st.sampled_from([(16, 16), (16,), (3, 16), ()]), st.lists(st.sampled_from(SIZES), max_size=3).map(tuple)
)


@st.composite
def programs(draw):
    """Random contractions (diagonals, broadcasts, sums, transposes, strong ones), scalings and sums of inputs, constants and each other."""
    p = Program(share=draw(st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    slots = []
    for shape in [(16, 16), (16,), *draw(st.lists(SHAPES, max_size=3))]:
        slots.append(p.input(shape) if draw(st.booleans()) or not shape else p.const(rng.normal(size=shape)))
    for _ in range(draw(st.integers(2, 9))):
        pick = st.one_of(
            st.sampled_from(slots[-2:]), st.sampled_from(slots)
        )  # often what was written last, so that steps have steps inside
        kind = draw(st.sampled_from(["product", "product", "product", "scale", "sum", "one"]))
        a = draw(pick)
        if kind == "scale":
            slots.append(p.scale(draw(st.sampled_from([-1.0, 0.5, 3.0])), a))
        elif kind == "sum":
            same = [s for s in slots if p.shapes[s] == p.shapes[a]]
            slots.append(
                p.step(Combination((1.0, draw(st.sampled_from([1.0, -1.0, 0.5])))), (a, draw(st.sampled_from(same))))
            )
        else:
            slots.append(_contracted(draw, p, [a] if kind == "one" else [a, draw(pick)]))
    p.outputs = [slots[-1], *draw(st.lists(st.sampled_from(slots), max_size=1))]
    return p.prune(p.inputs, p.outputs)


def _contracted(draw, p, args):
    """A contraction; an axis has one of three labels of its size, and the result mostly those that occur once, or any."""
    labels = [tuple([3 * SIZES.index(n) + draw(st.integers(0, 2)) for n in p.shapes[a]]) for a in args]
    flat = [k for ls in labels for k in ls]
    out = [k for k in flat if flat.count(k) == 1]
    if flat and (len(out) > 3 or draw(st.integers(0, 3)) == 0):
        out = draw(st.lists(st.sampled_from(flat), max_size=3))
    extra = {100: draw(st.sampled_from(SIZES))} if draw(st.integers(0, 9)) == 0 else {}
    strong = (0,) if len(args) > 1 and draw(st.integers(0, 19)) == 0 else ()
    return p.step(contraction(tuple(labels), (*out, *extra), extra, strong), args)


def values(program, seed=0):
    """The outputs at random numbers."""
    rng = np.random.default_rng(seed)
    given = [rng.normal(size=program.shapes[s]) if program.shapes[s] else float(rng.normal()) for s in program.inputs]
    return [dense(y) for y in outputs(program, NUMBERS, given)]


def same(first, second):
    assert [first.shapes[s] for s in first.outputs] == [second.shapes[s] for s in second.outputs]
    assert [first.shapes[s] for s in first.inputs] == [second.shapes[s] for s in second.inputs]
    for a, b in zip(values(first), values(second), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(a), initial=0)))


@given(programs(), st.sampled_from([1, 100]))
def test_the_same_values_and_never_more_operations(program, runs):
    found = ordered(program, runs)
    same(program, found)
    assert runs > 1 or cost(found).flops <= cost(program).flops
    assert found is program or runs > 1 or cost(found).flops < cost(program).flops
    assert runs > 1 or cost(ordered(found)).flops <= cost(found).flops


@given(programs())
def test_derivatives_and_adjoints_of_products(program):
    derived = derive_program(program)
    for part in (derived.affine, derived.derivative, derived.reverse, derived.adjoint):
        found = ordered(part)
        same(part, found)
        assert cost(found).flops <= cost(part).flops


@given(st.one_of(linear_terms(weighted=False), functions(weighted=False)))
def test_terms_their_derivatives_and_adjoints(t):
    programs = [lower(t)]
    if not t.linear:
        derived = derive_program(programs[0])
        programs += [derived.derivative, derived.adjoint]
    for program in programs:
        found = ordered(program)
        same(program, found)
        assert cost(found).flops <= cost(program).flops


# -- workloads -------------------------------------------------------------------------------------------------

n = 20
RNG = np.random.default_rng(3)
A, B, C = [RNG.normal(size=(n, n)) for _ in range(3)]
x = RNG.normal(size=n)


def chain(A, B, C, x):
    return A @ B @ C @ x


def of(f, *args):
    return TracedFunction(f).at(args)[0].program


def flops(program):
    found = ordered(program)
    same(program, found)
    return cost(found).flops


def test_a_chain_goes_from_the_right():
    assert cost(of(chain, A, B, C, x)).flops == 4 * n**3 + 2 * n**2
    assert flops(of(chain, A, B, C, x)) == 6 * n**2
    assert flops(of(lambda A, B, C, x: x @ A @ B @ C, A, B, C, x)) == 6 * n**2
    assert flops(of(lambda A, B, C, x: ((A @ B).T @ C).T @ x, A, B, C, x)) == 6 * n**2


def test_scalings_and_sums_inside_a_chain():
    assert flops(of(lambda A, B, x: 2.0 * (3.0 * (A @ B)) @ x, A, B, x)) == 4 * n**2 + n
    assert flops(of(lambda A, B: np.sum(A @ B, axis=1), A, B)) == n**2 + 2 * n**2
    assert flops(of(lambda A, B: np.sum(A @ B), A, B)) == 2 * n**2 + 2 * n
    assert flops(of(lambda A, B, C, x: (A @ B + 2.0 * C) @ x, A, B, C, x)) == 6 * n**2 + 2 * n


def test_an_outer_product_is_not_formed():
    assert flops(of(lambda u, v, x: np.outer(u, v) @ x, x, x, x)) == 2 * n + n
    assert flops(of(lambda u, v: np.sum(np.outer(u, v) ** 2), x, x)) <= 2 * n**2 + n**2


@pytest.mark.parametrize(("rows", "columns", "expected"), [(50, 5, 50 * 5), (5, 50, None)])
def test_a_projection_is_associated_as_is_cheaper(rows, columns, expected):
    D, V = RNG.normal(size=(7, columns)), RNG.normal(size=(rows, columns))
    left, right = 2 * 7 * columns * rows * 2, 2 * rows * columns**2 + 2 * 7 * columns**2
    program = of(lambda D, V: (D @ V.T) @ V, D, V)
    assert flops(program) == min(left, right)
    assert (right < left) == (expected is not None)


def test_the_derivative_of_a_chain_in_everything():
    derived = derive_program(of(chain, A, B, C, x))
    assert cost(derived.derivative).flops > 10 * n**3
    assert flops(derived.derivative) <= 22 * n**2 + 4 * n
    assert cost(derived.adjoint).flops > 10 * n**3
    assert flops(derived.adjoint) == 5 * 2 * n**2 + 3 * n**2  # AᵀY, BᵀAᵀy, CᵀBᵀAᵀy, Cx, BCx, and three outer products


def test_derivatives_in_one_matrix_are_outer_products():
    derived = derive_program(of(chain, A, B, C, x), [False, True, False, False])
    assert flops(derived.derivative) == 6 * n**2
    assert flops(derived.adjoint) == 2 * 2 * n**2 + n**2


def test_a_long_chain():
    matrices = [RNG.normal(size=(8, 8)) / 3 for _ in range(1000)]

    def product_of(*given):
        total = given[0]
        for m in given[1:]:
            total = total @ m
        return total

    assert cost(ordered(of(product_of, *matrices, np.ones(8)))).flops == 1000 * 2 * 64
    assert flops(of(product_of, *matrices[:40], np.ones(8))) == 40 * 2 * 64


def test_products_of_constants_may_count_once():
    p = Program()
    v = p.input((n, 3))
    inner = p.step(contraction(((0, 1), (1, 2)), (0, 2)), (p.const(B), v))
    p.outputs = [p.step(contraction(((0, 1), (1, 2)), (0, 2)), (p.const(A), inner))]
    assert ordered(p) is p
    many = ordered(p, runs=1000)
    same(p, many)
    assert cost(linear_program(many)).flops == 2 * n * n * 3 < cost(p).flops


# -- what stays ---------------------------------------------------------------------------------------------------


def test_a_program_in_order_is_itself():
    program = of(lambda A, B, C, x: A @ (B @ (C @ x)), A, B, C, x)
    assert ordered(program) is program


def test_strong_zeros_stay_where_they_are():
    p = Program()
    mask, a, b, v = p.input((n, n)), p.input((n, n)), p.input((n, n)), p.input((n,))
    chosen = p.step(product((n, n), (n, n), (0,)), (mask, a))
    p.outputs = [
        p.step(contraction(((0, 1), (1,)), (0,)), (p.step(contraction(((0, 1), (1, 2)), (0, 2)), (chosen, b)), v))
    ]
    found = ordered(p)
    assert [op.strong for op in found.ops if type(op) is Contraction] == [(0,), (), ()]
    bad = np.where(np.eye(n) > 0, A, np.nan)
    (y,) = outputs(found, NUMBERS, [np.eye(n), bad, B, x])
    assert np.allclose(y, np.diag(np.diag(A)) @ B @ x)


def test_truth_values_are_not_multiplied_with_each_other():
    p = Program()
    wide, a = p.input((10 * n, n)), p.input((n, n))
    mask = p.step(Discrete(np.greater), (a, p.const(0.0)))
    matrices = contraction(((0, 1), (1, 2)), (0, 2))
    p.outputs = [p.step(matrices, (p.step(matrices, (wide, mask)), mask))]
    assert ordered(p) is p
    p.ops[mask] = INPUT  # numbers would be
    assert ordered(p) is not p


def test_a_value_that_is_an_output_is_kept():
    program = of(lambda A, B, x: (A @ B, A @ B @ x), A, B, x)
    found = ordered(program)
    same(program, found)
    assert cost(found).flops == cost(program).flops


def test_a_repeated_and_summed_axis_keeps_its_factor():
    p = Program()
    a, b = p.input((n,)), p.input((n,))
    wide = p.step(contraction(((0,),), (0, 1), {1: 3}), (a,))
    p.outputs = [p.step(contraction(((0, 1), (0,)), ()), (wide, b))]
    assert flops(p) == 2 * n + 1
    assert math.isclose(values(ordered(p))[0], values(p)[0])


# -- in use ---------------------------------------------------------------------------------------------------------


def test_small_programs_run_as_they_are():
    program = of(chain, A, B, C, x)
    assert in_order(program) is program is ready(program)


def test_calls_gradients_and_maps_use_the_order(monkeypatch):
    monkeypatch.setattr(tuning, "FUSED_NUMBERS", 0)
    program = of(lambda *args: chain(*args), A, B, C, x)  # its own program: orders are kept with programs
    assert cost(ready(program)).flops == 6 * n**2
    assert np.allclose(rz.function(chain)(A, B, C, x), A @ B @ C @ x)

    def half_norm(A, B, C, x):
        y = A @ B @ C @ x
        return 0.5 * np.sum(y * y)

    assert np.allclose(rz.grad(half_norm, argnums=1)(A, B, C, x), np.outer(A.T @ (A @ B @ C @ x), C @ x))
    L = rz.linearize(chain, A, B, C, x)[1]
    assert all([np.ndim(op.value) < 2 or op.value.shape == (n, n) for op in L.program.ops if type(op) is Constant])
    dA, dB, dC, dx = [RNG.normal(size=a.shape) for a in (A, B, C, x)]
    expected = dA @ B @ C @ x + A @ dB @ C @ x + A @ B @ dC @ x + A @ B @ C @ dx
    assert np.allclose(L(dA, dB, dC, dx), expected)
    assert np.allclose(L.H(dx)[1], np.outer(A.T @ dx, C @ x))


def test_a_gradient_does_not_hand_out_arrays_of_the_caller():
    y = RNG.normal(size=(80, 80))
    for f in (lambda x, y: np.sum(x * y), lambda x, y: np.sum(x * y.T), lambda x, y: np.sum(x.T * y)):
        found = rz.grad(f)(np.ones((80, 80)), y)
        assert not np.shares_memory(found, y) and found.flags.writeable


@pytest.mark.parametrize(
    "text", ["ij,ik,i->jk", "ij,ik,i->kj", "ij,jk,kl,l->i", "ij,ij,ij->ij", "i,j,i->j", "i,j,k->kij", ",ij,i->j"]
)
def test_products_of_several_arrays_become_pairs(text):
    """As NumPy's einsum has them; what selects, or has a label twice, stays as it is."""
    rng, n = np.random.default_rng(1), {"i": 5, "j": 4, "k": 3, "l": 2}
    labels, out = text.split("->")
    names = {k: i for i, k in enumerate("ijkl")}
    xs = [rng.normal(size=tuple([n[k] for k in ls])) for ls in labels.split(",")]
    whole = Program()
    slots = [whole.input(x.shape) for x in xs]
    op = contraction(tuple([tuple([names[k] for k in ls]) for ls in labels.split(",")]), tuple([names[k] for k in out]))
    whole.outputs = [whole.step(op, tuple(slots))]
    pairs = paired(whole)
    assert all([len(args) <= 2 for args in pairs.args]) and paired(pairs) is pairs
    np.testing.assert_allclose(dense(outputs(pairs, NUMBERS, xs)[0]), np.einsum(text, *xs), atol=1e-14)


def test_products_that_select_are_not_paired():
    p = Program()
    slots = [p.input((5,)) for _ in range(3)]
    p.outputs = [p.step(contraction(((0,), (0,), (0,)), (0,), {}, (1,)), tuple(slots))]
    assert paired(p) is p
