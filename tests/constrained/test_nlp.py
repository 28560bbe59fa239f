"""rz.nlp: trees, parameters, warm starts, multipliers, and results that explain themselves."""

from functools import cache

import numpy as np
import pytest
import scipy.optimize

import riesz as rz
from riesz.constrained import ipopt_library, nlp_solvers
from riesz.constrained.nlp_result import FlatSolution, NlpResult
from riesz.errors import SolveError, VectorError

H = 0.1


def cost(z):
    return H * np.sum(z["u"] ** 2)


def motion(z, ends=(0.0, 1.0)):
    x, u = z["x"], z["u"]
    v = np.stack([x[:, 1], u - np.sin(x[:, 0])], axis=1)
    held = x[1:] - x[:-1] - 0.5 * H * (v[1:] + v[:-1])
    return {"steps": held, "ends": np.concatenate([x[0], x[-1]]) - np.array([ends[0], 0.0, ends[1], 0.0])}


def start(n=10):
    return {"x": np.zeros((n + 1, 2)), "u": np.zeros(n + 1)}


@cache
def by_differences():
    """The same optimum by SciPy alone, with finite differences."""
    tree = lambda v: {"x": v[:22].reshape(11, 2), "u": v[22:]}  # noqa: E731
    held = lambda v: np.concatenate([part.ravel() for part in motion(tree(v)).values()])  # noqa: E731
    constraint = {"type": "eq", "fun": held}
    return scipy.optimize.minimize(lambda v: cost(tree(v)), np.zeros(33), method="SLSQP", constraints=constraint).fun


def needs_ipopt():
    if nlp_solvers.ipopt_problem() is None:
        pytest.skip("Ipopt is not installed")


METHODS = ["ipopt", "trust-constr", "slsqp"]


@pytest.mark.parametrize("method", METHODS)
def test_trees_of_unknowns_and_constraints(method):
    if method == "ipopt":
        needs_ipopt()
    problem = rz.nlp(cost, start(), equality=motion, bounds=({"u": -7.0}, {"u": 7.0}))
    found = problem.solve(method, tolerance=1e-8)
    assert found, found
    assert found.x["x"].shape == (11, 2)
    np.testing.assert_allclose(found.x["x"][-1], [1.0, 0.0], atol=1e-6)
    assert set(found.multipliers["equality"]) == {"steps", "ends"}
    assert found.stationarity < 1e-4 and found.violation < 1e-6
    assert np.isclose(found.value, by_differences(), rtol=1e-5)


def test_multipliers_are_the_slopes_of_the_optimum():
    """dV/dp = ∂L/∂p: an equation c(x) = p has the slope −λ, an inequality d(x) ≥ p the slope μ."""
    f = lambda x, p: np.sum((x - 3.0) ** 2) + x[0] * x[1]  # noqa: E731
    problem = rz.nlp(
        f,
        np.zeros(3),
        equality=lambda x, p: x[0] + x[1] - p["a"],
        inequality=lambda x, p: 1.0 - x[2] ** 2 - p["b"],
        parameters={"a": 1.0, "b": 0.0},
    )
    at = problem.solve("slsqp", tolerance=1e-10)
    step = 1e-4
    for name, sign in (("a", -1.0), ("b", 1.0)):
        p = {"a": 1.0, "b": 0.0}
        sides = [
            problem.solve("slsqp", parameters={**p, name: p[name] + s}, tolerance=1e-10).value for s in (step, -step)
        ]
        kind = "equality" if name == "a" else "inequality"
        assert np.isclose((sides[0] - sides[1]) / (2 * step), sign * at.multipliers[kind], atol=1e-3)
    assert at.multipliers["inequality"] > 0


def test_new_parameters_trace_nothing_again():
    calls = []

    def f(x, p):
        calls.append(1)
        return np.sum((x - p) ** 2)

    problem = rz.nlp(f, np.zeros(2), parameters=np.ones(2))
    np.testing.assert_allclose(problem.solve("slsqp").x, 1.0, atol=1e-6)
    before = len(calls)
    np.testing.assert_allclose(problem.solve("slsqp", parameters=np.array([3.0, 4.0])).x, [3.0, 4.0], atol=1e-5)
    assert len(calls) == before
    with pytest.raises(VectorError, match="a tree of arrays of the shapes"):
        problem.solve("slsqp", parameters=np.zeros(3))


def test_warm_starts_take_fewer_iterations():
    needs_ipopt()
    problem = rz.nlp(cost, start(20), equality=motion, inequality=lambda z: 0.9 + z["u"], bounds=({"u": -5.0}, None))
    cold = problem.solve("ipopt")
    warm = problem.solve("ipopt", start=cold)
    assert cold and warm and warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.value, cold.value, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_progress(method, capsys):
    if method == "ipopt":
        needs_ipopt()
    seen = []
    problem = rz.nlp(lambda x: np.sum(x**4 - x), np.ones(3))
    found = problem.solve(method, progress=seen.append)
    assert seen and seen == found.history
    problem.solve(method, progress=True)
    assert "value" in capsys.readouterr().out


def test_what_cannot_be_solved_says_which_constraint_does_not_hold():
    problem = rz.nlp(
        lambda z: np.sum(z["a"] ** 2),
        {"a": np.ones(3)},
        equality=lambda z: {"far": z["a"][1:] ** 2 + np.array([1.0, 5.0])},
    )
    found = problem.solve("trust-constr", max_iterations=50)
    assert not found
    assert "equality['far'][1]" in found.explanation
    assert "NOT converged" in repr(found)


@pytest.mark.parametrize("method", ["trust-constr", "slsqp"])
def test_an_objective_without_a_minimum_has_not_converged(method):
    problem = rz.nlp(lambda x: -(x[0] ** 3) - x[1], np.ones(2), inequality=lambda x: x[0])
    with np.errstate(all="ignore"):
        found = problem.solve(method, max_iterations=100)
    assert not found and "falls without end" in found.explanation, found


def test_multipliers_of_what_is_not_active_are_told():
    problem = rz.nlp(lambda x: (x[0] - 2.0) ** 2, np.ones(1), inequality=lambda x: 1.0 - x[0])
    x, multiplier = np.array([0.5]), np.array([-3.0])
    flat = FlatSolution(x, multiplier, np.zeros(1), np.zeros(1))
    found = NlpResult(problem, flat, True, "", "by hand", 1, [], 0.0)
    assert found.stationarity == found.violation == 0.0  # but the constraint is 0.5 away
    assert not found and found.complementarity == 1.5 and "not active have multipliers" in found.explanation
    assert problem.solve("slsqp").complementarity <= 1e-8


def test_displays():
    problem = rz.nlp(lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), inequality=lambda x: 1.0 - x[0], bounds=(0.0, None))
    assert repr(problem) == "rz.nlp: 2 unknowns, 1 inequality, 2 bounds"
    assert "Hessian" in problem._repr_mimebundle_()["text/html"]
    found = problem.solve("slsqp")
    html = found._repr_mimebundle_()["text/html"]
    assert "violation" in html and "1 inequality" in found.explanation


def test_derivatives_are_asked_for_once_at_a_point():
    needs_ipopt()
    found = rz.nlp(cost, start(), equality=motion).solve("ipopt")
    assert found.evaluations["Jacobians"] <= found.iterations + 2
    assert found.evaluations["values"] <= 2 * found.iterations + 3


def test_refusals(monkeypatch):
    f = lambda x: np.sum(x**2)  # noqa: E731
    with pytest.raises(VectorError, match="equality: a function of x is due"):
        rz.nlp(f, np.ones(2), equality=np.ones(2))
    with pytest.raises(VectorError, match="the objective is one number"):
        rz.nlp(lambda x: x**2, np.ones(2))
    with pytest.raises(VectorError, match="no floats"):
        rz.nlp(f, np.ones(2, int))
    with pytest.raises(VectorError, match="method='newton'"):
        rz.nlp(f, np.ones(2)).solve("newton")
    with pytest.raises(VectorError, match="made without parameters"):
        rz.nlp(f, np.ones(2)).solve("slsqp", parameters=1.0)
    monkeypatch.setattr(nlp_solvers, "ipopt_problem", lambda: None)
    with pytest.raises(SolveError, match="needs Ipopt: pip install"):
        rz.nlp(f, np.ones(2)).solve("ipopt")
    assert rz.nlp(f, np.ones(2)).solve().method == "slsqp"


@pytest.mark.parametrize("door", ["library", "cyipopt"])
def test_both_doors_to_ipopt(door, monkeypatch):
    """The C interface of a library, and cyipopt."""
    if door == "cyipopt":
        pytest.importorskip("cyipopt")
        monkeypatch.setattr(nlp_solvers, "library", lambda: None)
    elif ipopt_library.library() is None:
        pytest.skip("no library of Ipopt is found")
    calls = []

    def f(z):
        return cost(z) + np.sum(z["x"][3:6, 1] ** 4)

    problem = rz.nlp(f, start(), equality=motion, inequality=lambda z: 6.5 + z["u"], bounds=({"u": -7.0}, {"u": 7.0}))
    found, other = problem.solve("ipopt"), problem.solve("trust-constr")
    assert found and found.iterations == found.history[-1].number
    np.testing.assert_allclose(found.value, other.value, rtol=1e-6)
    for a, b in zip(found.multipliers["equality"].values(), other.multipliers["equality"].values(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert not problem.solve("ipopt", max_iterations=2)
    with pytest.raises(TypeError):
        problem.solve("ipopt", no_such_option=3)
    free = rz.nlp(lambda x: np.sum((x - 1.0) ** 4), np.zeros(3)).solve("ipopt")
    np.testing.assert_allclose(free.x, 1.0, atol=1e-2)

    def told(step):
        calls.append(step)
        raise KeyError("told")

    with pytest.raises(KeyError, match="told"):
        problem.solve("ipopt", progress=told)
    assert len(calls) == 1
