"""Arguments in containers: generated code opens those it was written for, and all others go the ordinary way with the same results."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import riesz as rz
from riesz.backends.unpacking import opens, unpacked
from riesz.functions.traces.given import Given
from riesz.ops.number_domains import OTHER
from riesz.tracing.argument_trees import flatten

Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Layer:
    W: np.ndarray
    b: np.ndarray


a, b, c = np.arange(3.0), np.ones((2, 2)), 2.5
ARGUMENTS = [
    (a, b),
    ([a, b], c),
    ((a, (b, [c])), a),
    ({"w": a, "b": b}, [c]),
    ({"w": {"inner": (a, b)}, 3: [c, {}]}, a),
    (Pair(a, Pair([b], c)),),
    (Layer(b, a), [Layer(b, a), Layer(a, b)]),
    (OrderedDict(x=a, y=b), []),
    ([[[[a]]]], ((((b,),),),)),
    (a, None, 3),
    ([a, 3, (None, "word")], True, b),
    (3,),
]


def leaves_of(args):
    return flatten(tuple(args))[0]


@pytest.mark.parametrize("args", ARGUMENTS)
def test_leaves_in_order(args):
    given = Given(args, {}, frozenset())
    assert opens(given)
    found = unpacked(given, lambda leaves: leaves)(args)
    assert [id(x) for x in found] == [id(x) for x in leaves_of(args) if isinstance(x, (float, np.ndarray))]


@pytest.mark.parametrize("args", ARGUMENTS[1:])
@pytest.mark.parametrize("other", ARGUMENTS[1:])
def test_other_containers_are_left_alone(args, other):
    if args is not other:
        run = unpacked(Given(args, {}, frozenset()), lambda leaves: leaves)
        found = run(other)
        assert (
            found is OTHER
            or len(found) != len(leaves_of(args))
            or any(isinstance(x, (list, tuple, dict)) for x in found)
        )


@pytest.mark.parametrize(
    "other",
    [
        ({"b": b, "w": a}, [c]),
        ({"w": a}, [c]),
        ({"w": a, "b": b, "x": a}, [c]),
        (OrderedDict(w=a, b=b), [c]),
        ({"w": a, "b": b}, (c,)),
        ({"w": a, "b": b}, [c, c]),
        ({"w": a, "b": b},),
        (a, [c]),
    ],
)
def test_nearly_the_same(other):
    assert unpacked(Given(({"w": a, "b": b}, [c]), {}, frozenset()), lambda leaves: leaves)(other) is OTHER


@pytest.mark.parametrize(
    "other", [(a, [True, None, "x"]), (a, [2, None, "x"]), (a, [1.0, None, "x"]), (a, [1, 0, "x"]), (a, [1, None, "y"])]
)
def test_other_fixed_values(other):
    run = unpacked(Given((a, [1, None, "x"]), {}, frozenset()), lambda leaves: leaves)
    assert run((a, [1, None, "x"])) == (a,)
    assert run(other) is OTHER


@pytest.mark.parametrize("wrap", [lambda g: g, rz.compile])
def test_fixed_arguments(wrap):
    def f(x, n, how=None):
        for _ in range(n):
            x = np.sin(x) if how is None else np.cos(x)
        return np.sum(x)

    g = wrap(rz.grad(f))
    for n, how in ((1, None), (2, None), (1, None), (1, "cos"), (True, None), (0, None)):
        expected = rz.grad(lambda x, n=n, how=how: f(x, n, how))(a)
        np.testing.assert_allclose(g(a, n, how), expected, rtol=1e-12)
        np.testing.assert_allclose(g(a, n, how), expected, rtol=1e-12)


def test_what_is_not_opened():
    assert not opens(Given(([a, object()],), {}, frozenset()))
    assert not opens(Given((a,), {"k": b}, frozenset()))
    assert not opens(Given(([[a]] * 200,), {}, frozenset()))


def loss(params, x):
    for layer in params["layers"]:
        x = np.tanh(layer["W"] @ x + layer["b"])
    return np.sum(x * params["scale"])


@pytest.mark.parametrize("wrap", [lambda g: g, rz.compile])
def test_gradients_of_nested_parameters(wrap):
    rng = np.random.default_rng(0)

    def parameters(kind=float):
        layers = [{"W": rng.normal(size=(3, 3)).astype(kind), "b": rng.normal(size=3).astype(kind)} for _ in range(2)]
        return {"layers": layers, "scale": rng.normal(size=3).astype(kind)}

    g = wrap(rz.grad(loss))
    for kind in (float, np.float32, float):
        p, x = parameters(kind), rng.normal(size=3).astype(kind)
        for _ in range(3):
            found = g(p, x)
            assert list(found) == ["layers", "scale"]
            assert found["layers"][1]["W"].dtype == kind
            moved = loss({"layers": p["layers"], "scale": p["scale"] + 1e-3}, x) - loss(p, x)
            assert moved == pytest.approx(
                1e-3 * np.sum(found["scale"]), rel=1e-8 if kind is float else 1e-2, abs=1e-12 if kind is float else 1e-5
            )
    turned = {"scale": p["scale"], "layers": tuple(p["layers"])}
    again = g(turned, x)
    assert list(again) == ["scale", "layers"]
    assert type(again["layers"]) is tuple
    np.testing.assert_allclose(again["layers"][0]["W"], found["layers"][0]["W"], rtol=1e-12)
    with pytest.raises((ValueError, TypeError, rz.errors.RieszError)):
        g({"scale": p["scale"], "layers": [{"W": np.ones((3, 4)), "b": np.ones(3)}]}, x)
