"""Containers of every kind as arguments: empty ones, dataclasses however they are declared, dicts with any keys; and arguments with any name."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import keyword
from collections import Counter, OrderedDict, defaultdict
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import riesz as rz
from riesz.backends import common as code

x = np.array([1.0, 2.0, 3.0])
EMPTY: dict[str, Any] = {
    "list": [],
    "tuple": (),
    "dict": {},
    "None": None,
    "nested": [(), {"a": []}, None],
    "ordered": OrderedDict(),
    "array": np.zeros(0),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_empty_trees_are_points_of_the_space_with_one_element(kind: str):
    e = EMPTY[kind]
    for f in (
        rz.grad(lambda e: 1.0),
        rz.compile(rz.grad(lambda e: 1.0)),
        lambda e: rz.value_and_grad(lambda e: 1.0)(e)[1],
        lambda e: rz.function(lambda e: e)(e),
    ):
        assert repr(f(e)) == repr(e)
    assert rz.jacobian(lambda e: 2.0)(e).to_dense().shape == (1, 0)
    assert rz.jacobian(lambda t: e)(1.0).to_dense().shape == (0, 1)
    assert rz.hessian(lambda e: 2.0)(e).to_dense().shape == (0, 0)
    assert "None" in repr(e) or rz.space_of(e).dim == 0
    assert rz.grad(lambda p: p[0] ** 2)([3.0, e])[0] == 6.0


@pytest.mark.parametrize("method", ["auto", "dense", "sparse", "lsmr"])
@pytest.mark.parametrize("e", [np.zeros(0), np.zeros((0, 3)), (), None, []], ids=repr)
def test_empty_components_do_not_disturb_solving(e: Any, method: str):
    for f in (lambda p: (2.0 * p[0] + np.roll(p[0], 1), p[1]), lambda p: (p[0] ** 2, p[1])):
        L = rz.jacobian(f)((x, e))
        np.testing.assert_allclose(L.solve(L((x, e)), method=method)[0], x, rtol=1e-8)
    L = rz.jacobian(lambda v: v * 2.0)(np.zeros(0))
    assert L.solve(np.zeros(0), method=method).shape == (0,)


class Kind(Enum):
    A = 1


@dataclasses.dataclass
class Computed:
    a: Any
    b: float = dataclasses.field(init=False, default=2.0)


@dataclasses.dataclass
class Late:
    a: Any
    b: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.b = self.a * 2.0


@dataclasses.dataclass
class Doubled:
    a: Any
    b: Any = 1.0

    def __post_init__(self) -> None:
        self.a = self.a * 2.0


@dataclasses.dataclass
class Started:
    a: Any
    b: Any = 2.0
    start: dataclasses.InitVar[int] = 3

    def __post_init__(self, start: int) -> None:
        self.a = self.a + start


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: Any
    b: Any = 2.0


@dataclasses.dataclass(kw_only=True)
class Named:
    a: Any
    b: Any = 2.0


@dataclasses.dataclass
class Child(Computed):
    c: Any = 5.0


@dataclasses.dataclass
class Steered:
    a: Any
    b: Any = 2.0
    name: str = "model"
    power: int = 3
    on: bool = True
    kind: Kind = Kind.A
    activation: Any = np.tanh


class Pair(NamedTuple):
    a: Any
    b: Any = 2.0


class Strict(Pair):
    def __new__(cls, a: Any, b: Any) -> Any:
        raise AssertionError("not made again")


MADE: dict[str, Any] = {
    "init=False": Computed(x),
    "set in __post_init__": Late(x),
    "changed in __post_init__": Doubled(x),
    "InitVar": Started(x, 2.0, 4),
    "frozen": Frozen(x),
    "slots": Slotted(x),
    "kw_only": Named(a=x),
    "inherited": Child(x),
    "with words and counts": Steered(x),
    "named tuple": Pair(x),
    "named tuple with a constructor of its own": Strict._make((x, 2.0)),
}


@pytest.mark.parametrize("kind", MADE)
def test_a_gradient_has_the_fields_of_its_argument(kind: str):
    p = MADE[kind]
    f = lambda p: np.sum(p.a**2) * np.sum(p.b)  # noqa: E731
    for g in (rz.grad(f), rz.compile(rz.grad(f))):
        for _ in range(2):
            found = g(p)
            assert type(found) is type(p)
            np.testing.assert_allclose(found.a, 2 * p.a * np.sum(p.b))
            np.testing.assert_allclose(found.b, np.full(np.shape(p.b), np.sum(p.a**2)))
    np.testing.assert_array_equal(rz.function(lambda p: p.a * p.b)(p), p.a * p.b)


def test_fields_that_steer_are_kept_and_are_part_of_the_kind():
    f = lambda p: np.sum(p.activation(p.a) ** p.power) * p.b  # noqa: E731
    for power in (2, 3):
        p = Steered(x, power=power)
        found = rz.grad(f)(p)
        assert (found.name, found.power, found.on, found.kind, found.activation) == (
            "model",
            power,
            True,
            Kind.A,
            np.tanh,
        )
        np.testing.assert_allclose(found.a, 2.0 * power * np.tanh(x) ** (power - 1) / np.cosh(x) ** 2)
    p = Steered(x, activation=np.sin)
    np.testing.assert_allclose(rz.grad(f)(p).b, np.sum(np.sin(x) ** 3))
    assert rz.value_and_grad(f)(p)[0] == f(p)


def test_a_whole_number_where_a_float_is_meant_is_an_error():
    with pytest.raises(rz.VectorError, match="float"):
        rz.grad(lambda p: p.b * 1.0)(Frozen(3, 2.0))


@dataclasses.dataclass
class Beside:
    a: Any

    def __post_init__(self) -> None:
        self.n = len(self.a)
        self.log: list[str] = []

    @functools.cached_property
    def norm(self) -> Any:
        return np.sqrt(np.sum(self.a**2))


@dataclasses.dataclass
class Hidden:
    a: Any

    def __post_init__(self) -> None:
        self.twice = self.a * 2.0


def test_attributes_beside_the_fields():
    p = Beside(x)
    assert p.norm == np.sqrt(14.0)  # computed and kept, but again for traced fields
    np.testing.assert_allclose(rz.grad(lambda p: p.norm * p.n)(p).a, 3 * x / np.sqrt(14.0))
    with pytest.raises(rz.VectorError, match=r"twice.*field"):
        rz.grad(lambda p: np.sum(p.twice))(Hidden(x))


class Params(dict):
    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_dicts_of_every_kind():
    for p in (
        {"a": 1.5, 3: 2.0, (1, 2): 3.0, None: 1.0},
        OrderedDict([("a", 1.5), (3, 2.0)]),
        defaultdict(float, {"a": 1.5, 3: 2.0}),
    ):
        found = rz.grad(lambda p: p["a"] ** 2 * p[3])(p)
        assert type(found) is type(p) and list(found) == list(p)
        assert (found["a"], found[3]) == (6.0, 2.25)
    assert rz.grad(lambda p: p["a"] * (1.0 + p["missing"]))(defaultdict(float, a=1.5))["a"] == 1.0
    assert rz.grad(lambda p: p.a**2)(Params(a=1.5)).a == 3.0
    assert rz.function(lambda p: p["a"] * 2.0)(Counter(a=3)) == 6.0
    assert rz.grad(lambda p: p[True] * p[2])({True: 2.0, 2: 3.0}) == {True: 3.0, 2: 2.0}


# -- names of arguments ----------------------------------------------------------------------------------------------

USED = """np rz jnp jax math numba _ _0 _1 x0 x0_ x_0 x_0_ t1 c1 i1 r1 f self args kwargs OTHER MISSING quick run with_numbers make_0 static_0 k0 v v0
type_float64 dtype_float64 aval_0 own tiles out o0 n0 kind_x keys_x form_x container __x __x__ __name__ __builtins__ é λ 变量 print loops"""
NAMES = sorted(
    {*dir(builtins), *keyword.softkwlist, *USED.split(), *code.NAMES, *code.RULES, *code._CALLED} - {"__debug__"}
)


@pytest.mark.parametrize("part", range(4))
def test_arguments_may_have_any_name(part: int):
    for name in [n for n in NAMES if n.isidentifier() and not keyword.iskeyword(n)][part::4]:
        space: dict[str, Any] = {"sin": np.sin}
        exec(f"def given({name}, other): return {name} * other + of_{name}({name})", {f"of_{name}": np.sin}, space)
        f = space["given"]
        for a, k in ((2.0, 3.0), (x, 2.0)):
            wanted, slope = a * k + np.sin(a), k + np.cos(a)
            for backend in ("numpy",) if np.ndim(a) else ("python", "numpy"):
                g = rz.compile(f, backend=backend)
                for found in (g(a, k), g(a, k), g(**{name: a, "other": k})):
                    np.testing.assert_allclose(found, wanted, rtol=1e-14, err_msg=name)
            np.testing.assert_allclose(rz.function(f)(other=k, **{name: a}), wanted, rtol=1e-14)
            np.testing.assert_allclose(rz.grad(lambda p, q: np.sum(f(p, q)))(a, k), slope, rtol=1e-14)  # noqa: B023
        assert rz.grad(f, (0, 1))(2.0, 3.0)[1] == rz.grad(f, (0, 1))(2.0, 3.0)[1] == 2.0
