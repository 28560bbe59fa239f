"""The collection of Hock and Schittkowski, by every solver."""

import numpy as np
import pytest
from support.hock_schittkowski import PROBLEMS

import riesz as rz
from riesz.constrained.nlp_solvers import ipopt_problem

OTHER_OPTIMA = {
    2: (4.94122932,), 16: (23.1446604,), 20: (40.1987298,), 25: (32.835,), 33: (-4.0,), 44: (-13.0,), 55: (20 / 3,), 97: (4.07124636,),
    98: (4.07124636,), 108: (-0.6749814, -0.5),
}  # fmt: skip
"""Local minima that a method may end in from the published start."""


def solved(number, method):
    f, start, optimum, more = PROBLEMS[number]
    return rz.nlp(f, np.array(start, float), **more).solve(method), optimum


def near(number, value):
    optima = PROBLEMS[number][2], *OTHER_OPTIMA.get(number, ())
    return any([np.isclose(value, v, rtol=1e-5, atol=1e-5) for v in optima])


@pytest.mark.parametrize("number", PROBLEMS)
def test_interior_points(number):
    if ipopt_problem() is None:
        pytest.skip("Ipopt is not installed")
    found, optimum = solved(number, "ipopt")
    assert found, found
    assert near(number, found.value), (found.value, optimum)
    assert found.violation <= 1e-6 and found.stationarity <= 1e-4


@pytest.mark.parametrize("number", PROBLEMS)
def test_without_ipopt(number):
    """SLSQP fails on a few (dependent equations, a singular start), and the result says so."""
    found, optimum = solved(number, "slsqp")
    if number in (37, 55, 61, 93, 95, 98) and not found:
        assert found.explanation and "NOT converged" in repr(found)
        return
    assert found and near(number, found.value), (found, optimum)
    assert found.violation <= 1e-6


@pytest.mark.parametrize("number", [6, 10, 12, 21, 22, 28, 35, 43, 48, 71, 76])
def test_by_trust_regions(number):
    found, optimum = solved(number, "trust-constr")
    assert found and np.isclose(found.value, optimum, rtol=1e-6, atol=1e-6), found
    assert found.complementarity <= 1e-6
