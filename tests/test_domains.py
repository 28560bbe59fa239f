"""Value domains (ops/domain.py): one program over each of them, leaf by leaf; all have what the protocol asks for."""

import inspect
import math

import numpy as np
import pytest

from riesz.calculus.affine import AffineDomain, Pair
from riesz.calculus.batching import Lane, Mapped
from riesz.calculus.dual_numbers import Dual, DualNumber
from riesz.calculus.reverse import pullback
from riesz.ops.domain import Domain, SlopedDomain
from riesz.ops.number_domains import MULTIPLIED, NUMBERS, Counting
from riesz.ops.op import Elementwise, product
from riesz.programs.program import Program, outputs
from riesz.terms.primitives import sin
from riesz.tracing.trace import Trace


def sine_times_two() -> Program:
    program = Program()
    x = program.input((3,))
    program.outputs = [program.scale(2.0, program.step(Elementwise(sin), (x,)))]
    return program


X = np.array([0.1, 0.2, 0.3])
TAPE = Program()
WIRE = TAPE.input((3,))
WHOLE = Program()
SLOT = WHOLE.input((3,))

CASES = {
    "numbers": (NUMBERS, X, lambda y: y),
    "multiplied": (MULTIPLIED, X, lambda y: y),
    "counting": (Counting(), X, lambda y: y),
    "symbols": (WHOLE, SLOT, lambda y: outputs(WHOLE.prune([SLOT], [y]), NUMBERS, [X])[0]),
    "trace": (Trace(), None, None),
    "affine": (AffineDomain(NUMBERS, TAPE, TAPE.const), Pair(X, WIRE), lambda y: y.value),
    "mapped": (Mapped(NUMBERS, 3), Lane(X, True), lambda y: y.value),
    "dual": (Dual(), DualNumber(X, np.ones(3)), lambda y: y.value),
}


def members(protocol: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")]


@pytest.mark.parametrize("case", CASES)
def test_every_domain_has_what_the_protocol_asks_for(case):
    domain, _, _ = CASES[case]
    assert set(members(Domain)) == {"const", "hushes", "scale", "shape", "step", "zeros"}
    assert all(hasattr(domain, name) for name in members(Domain))
    assert isinstance(domain.hushes, bool)
    for name in set(members(Domain)) - {"hushes"}:
        wanted = len(inspect.signature(getattr(Domain, name)).parameters) - 1
        assert len(inspect.signature(getattr(domain, name)).parameters) == wanted, name


def test_domains_with_slopes():
    assert set(members(SlopedDomain)) - set(members(Domain)) == {"linearized"}
    assert [name for name, (d, _, _) in CASES.items() if hasattr(d, "linearized")] == [
        *("numbers", "multiplied", "counting", "symbols", "trace")
    ]


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][1] is not None])
def test_one_program_over_every_domain(case):
    domain, leaf, read = CASES[case]
    (found,) = outputs(sine_times_two(), domain, [leaf])
    assert type(found) is type(leaf)
    assert np.allclose(read(found), 2 * np.sin(X))
    assert domain.shape(found) == (() if case == "mapped" else (3,))


def test_an_infinite_slope_of_a_choice_is_a_constant_of_the_program():
    """Over symbols a slope that is a number has no slot until it is written as a constant."""
    whole = Program()
    x = whole.input((3,))
    dx = whole.input((3,))
    wire = AffineDomain(whole, whole, lambda slot: slot)._times(math.inf, dx, (0,))
    value = outputs(whole.prune([x, dx], [wire]), NUMBERS, [X, np.array([1.0, 0.0, 2.0])])[0]
    assert value[0] == value[2] == math.inf


def test_pullback_gives_leaves_of_the_domain():
    program = Program()
    a, x = program.input((3,)), program.input((3,))
    program.outputs = [program.step(product((3,), (3,)), (a, x))]
    back = Program()
    coefficient, seed = back.input((3,)), back.input((3,))
    found = pullback(program, program.dependent([x]), [seed], back, {a: coefficient}.__getitem__)
    assert found[0] is None and type(found[1]) is int
    numbers = pullback(program, program.dependent([x]), [np.ones(3)], NUMBERS, {a: X}.__getitem__)
    assert np.array_equal(numbers[1], X)
