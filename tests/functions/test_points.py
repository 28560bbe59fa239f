"""A combinator and a Python function at a point mean the same: one protocol, one road to a gradient, the same arguments."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import riesz as rz
from riesz import R, seg
from riesz.errors import SpaceError
from riesz.functions.gradients import Gradient
from riesz.functions.point_protocol import AnyPoint
from riesz.functions.points import FunctionPoint, TermPoint, components
from riesz.tracing.argument_trees import flatten

R3 = R ** seg(3)
X = np.array([0.3, -1.2, 0.7])
A, B = rz.proj(0), rz.proj(1)
TERM = (rz.total @ (rz.sin ** seg(3)) @ A) * B + B * B
"""f(x, y) = y Σ sin x + y², x in ℝ^3, y in ℝ."""
VECTOR = rz.fork((rz.sin ** seg(3)) @ A, B * B)


def code(x, y):
    return np.sum(np.sin(x)) * y + y * y


def vector(x, y):
    return np.sin(x), y * y


ARGNUMS = [None, 0, 1, -1, (0,), (1,), (0, 1), (1, 0)]


def same(a, b):
    assert flatten(a)[1] == flatten(b)[1]
    assert all([np.allclose(x, y, rtol=1e-13, atol=1e-13) for x, y in zip(flatten(a)[0], flatten(b)[0], strict=True)])


@pytest.mark.parametrize("argnums", ARGNUMS)
def test_gradients_are_in_the_same_arguments(argnums):
    for make in (rz.grad, rz.value_and_grad):
        same(make(TERM, argnums)(X, 0.5), make(code, argnums)(X, 0.5))
        same(make(TERM.at(R3 * R), argnums)(X, 0.5), make(code, argnums)(X, 0.5))


@pytest.mark.parametrize("argnums", ARGNUMS)
def test_maps_are_in_the_same_arguments(argnums):
    pairs = [(rz.jacobian, VECTOR, vector), (rz.jacobian, TERM, code), (rz.hessian, TERM, code)]
    for make, term, function in pairs:
        ours, theirs = make(term, argnums)(X, 0.5), make(function, argnums)(X, 0.5)
        assert ours.domain is theirs.domain and ours.codomain is theirs.codomain
        assert np.allclose(ours.to_dense(), theirs.to_dense(), rtol=1e-13, atol=1e-13)
        assert np.allclose(
            make(term, argnums)(X, 0.5).to_dense(), theirs.to_dense()
        )  # the second time it is written later
        assert np.allclose(ours.simplify().to_dense(), theirs.to_dense())


@pytest.mark.parametrize("argnums", ARGNUMS)
def test_in_a_trace_too(argnums):
    def inside(f):
        def flat(x, y):
            parts = flatten(rz.grad(f, argnums)(x, y))[0]
            return sum([np.sum(p * p) for p in parts]) + np.sum(rz.jacobian(f, argnums)(x, y).to_dense() ** 3)

        return rz.grad(flat, (0, 1))(X, 0.5)

    same(inside(TERM), inside(code))


def test_one_argument_is_an_element_of_the_domain():
    assert rz.jacobian(TERM)((X, 0.5)).shape == (1, 4) and rz.hessian(TERM)((X, 0.5)).shape == (4, 4)
    same(rz.grad(TERM)((X, 0.5)), rz.grad(code, (0, 1))(X, 0.5))
    same(rz.grad(TERM, (0,))((X, 0.5)), (rz.grad(code, (0, 1))(X, 0.5),))


@pytest.mark.parametrize(
    "space", [(R3 * R).weighted((np.array([1.0, 2.0, 4.0]), 8.0)), rz.direct_sum(R3.weighted(3.0), R)]
)
def test_components_keep_their_inner_products(space):
    whole = rz.grad(TERM, space=space)((X, 0.5))
    for argnums in (0, 1):
        same(rz.grad(TERM, argnums, space=space)(X, 0.5), whole[argnums])
        L = rz.jacobian(TERM, argnums, space=space)(X, 0.5)
        same(L.H(1.0), whole[argnums])
    same(rz.grad(TERM, (1, 0), space=space)(X, 0.5), whole[::-1])


def test_components_of_a_copower_of_pairs():
    f = rz.total @ ((A * B) ** seg(3))
    pairs = (R * R3) ** seg(3)
    same(rz.grad(f, 1, space=(R * R) ** seg(3))(X, X + 1.0), X)
    weights = np.ones(3), np.full((3, 3), 2.0)
    assert components(pairs, 2) == (R ** seg(3), R3 ** seg(3))
    assert components(pairs.weighted(weights), 2) == (
        (R ** seg(3)).weighted(weights[0]),
        (R3 ** seg(3)).weighted(weights[1]),
    )
    with pytest.raises(SpaceError, match="direct sum of 2"):
        components(R3, 2)


@pytest.mark.parametrize("make", [rz.grad, rz.value_and_grad, rz.jacobian, rz.hessian])
def test_auxiliary_results(make):
    term = rz.fork(TERM, VECTOR)
    ours, theirs = make(term, has_aux=True)(X, 0.5), make(lambda x, y: (code(x, y), vector(x, y)), has_aux=True)(X, 0.5)
    if make in (rz.jacobian, rz.hessian):
        ours, theirs = (ours[0].to_dense(), ours[1]), (theirs[0].to_dense(), theirs[1])
    same(ours, theirs)


def test_auxiliary_results_of_products():
    term = rz.fork(VECTOR, TERM)
    moves = (np.ones(3), 2.0)
    same(
        rz.jvp(term, (X, 0.5), moves, has_aux=True),
        rz.jvp(lambda x, y: (vector(x, y), code(x, y)), (X, 0.5), moves, has_aux=True),
    )
    y, back, aux = rz.vjp(term, X, 0.5, has_aux=True)
    other = rz.vjp(lambda x, y: (vector(x, y), code(x, y)), X, 0.5, has_aux=True)
    same((y, aux, back(y)), (other[0], other[2], other[1](other[0])))


@pytest.mark.parametrize("f", [TERM, code], ids=["combinator", "Python function"])
def test_wrong_choices_are_refused(f):
    for make in (rz.grad, rz.jacobian, rz.hessian):
        for argnums, said in (
            (2, "2 arguments"),
            ((0, 0), "twice"),
            ("x", "number of an argument"),
            (True, "number of an argument"),
        ):
            with pytest.raises(SpaceError, match=said):
                make(f, argnums)(X, 0.5)
    with pytest.raises(SpaceError, match="pair"):
        rz.grad(f, has_aux=True)(X, 0.5)


def test_combinators_have_no_names_for_arguments():
    with pytest.raises(SpaceError, match="by position; got k"):
        rz.grad(TERM)(X, 0.5, k=1.0)


# -- the road to a gradient ----------------------------------------


def test_every_point_answers_what_the_protocol_asks():
    asked = [n for n, v in vars(AnyPoint).items() if not n.startswith("_") and (callable(v) or isinstance(v, property))]
    asked += list(inspect.get_annotations(AnyPoint))
    assert len(asked) > 25
    points = [TermPoint(TERM, (X, 0.5), 0), FunctionPoint(rz.function(code), (X, 0.5), {}, 0)]
    functions = [(n, vars(AnyPoint).get(n)) for n in asked]
    stubs = [n for n, v in functions if inspect.isfunction(v) and ": ..." in inspect.getsource(v)]
    assert len(stubs) > 8
    for at in points:
        assert [n for n in asked if not hasattr(at, n)] == []
        assert [n for n in stubs if getattr(type(at), n) is vars(AnyPoint)[n]] == []


@pytest.mark.parametrize(
    "f", [lambda x: np.sum(np.sin(x) * x), rz.total @ (rz.sin ** seg(3))], ids=["Python function", "combinator"]
)
def test_a_gradient_does_not_go_through_itself(f, monkeypatch):
    runs = []
    both = Gradient.both
    monkeypatch.setattr(Gradient, "both", lambda self, *given: runs.append(self) or both(self, *given))
    g = rz.grad(f)
    g(X)
    assert runs == [g]


def test_code_for_small_functions_follows_the_inner_product():
    V = R3.weighted(np.array([1.0, 2.0, 4.0]))
    f = rz.function(lambda x: np.sum(x * x))
    plain, weighted = rz.grad(f), rz.grad(f, space=V)
    for _ in range(3):
        assert np.array_equal(plain(X), 2 * X)
        assert np.allclose(weighted(X), 2 * X / [1.0, 2.0, 4.0], rtol=1e-15)


def test_code_takes_arguments_in_any_order():
    f = rz.function(lambda x, y: np.sum(x) * y * y)
    g = rz.value_and_grad(f, (1, 0))
    for _ in range(3):
        same(g(X, 2.0), (np.sum(X) * 4.0, (np.sum(X) * 4.0, np.full(3, 4.0))))


def test_an_adjoint_is_transposed_when_it_is_asked_for():
    D = rz.derive(code, R3, R)
    assert D.derivative(X, 0.5).shape == (1, 4)
    assert "reverse" not in vars(D.programs)
    assert np.allclose(D.adjoint(X, 0.5).to_dense(), D.derivative(X, 0.5).to_dense().T)
    assert "reverse" in vars(D.programs)


def test_a_map_of_a_derivation_is_an_instance_of_its_family():
    D = rz.derive(code, R3, R)
    for family in (D.derivative, D.adjoint):
        L = family(X, 0.5)
        assert L.instance.program is family.program
        assert L.domain is family.domain and L.codomain is family.codomain
