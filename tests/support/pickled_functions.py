"""Functions at the top of a module, for test_pickles.py: they are found again by name, in another process too."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import riesz as rz

MATRIX = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])
x = np.array([1.0, 2.0, 3.0])


def loss(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def powers(x: Any, n: int) -> Any:
    return np.sum(x**n)


def neighbours(x: Any) -> Any:
    return x[1:] * x[:-1]


def solved(x: Any) -> Any:
    return np.linalg.solve(MATRIX + np.diag(x), x)


def with_aux(x: Any) -> Any:
    return np.sum(x**2), {"x": x}


@rz.function
def declared(x: Any) -> Any:
    return np.sum(x**3)


@rz.compile
def compiled(x: Any) -> Any:
    return np.sum(x**3)


@rz.compile
@rz.grad
def slope(x: Any) -> Any:
    return np.sum(x**3)


@rz.custom_derivative
def root(x: Any) -> Any:
    return np.sqrt(x)


@root.derivative
def root_derivative(x: Any) -> Any:
    return lambda dx: 0.5 * dx / np.sqrt(x)


def rooted(x: Any) -> Any:
    return np.sum(root(x))


def cubed(x: Any) -> Any:
    return x**3


def cubed_slope(x: Any, y: Any) -> Any:
    return 3 * x**2


def scaled_by(x: Any, k: Any) -> Any:
    return x * k


def doubled(x: Any) -> Any:
    return 2 * x


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    def loss(self, x: Any) -> Any:
        return np.sum(self.k * x**2)

    def __call__(self, x: Any) -> Any:
        return np.sum(self.k * x**2)


@dataclasses.dataclass
class Weights:
    w: Any
    name: str = "w"


def of_weights(p: Weights) -> Any:
    return np.sum(p.w**2)


cube = rz.primitive("cube of one's own", cubed, None, cubed_slope)
V = rz.R ** rz.seg(3)

CALLED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "function": (rz.function(loss), (x,)),
    "function with a static argument": (rz.function(powers, static_argnums=1), (x, 3)),
    "decorated function": (declared, (x,)),
    "decorated and compiled": (compiled, (x,)),
    "decorated twice": (slope, (x,)),
    "text": (rz.function("x -> x*sin(x)"), (2.0,)),
    "grad": (rz.grad(loss), (x,)),
    "value_and_grad": (rz.value_and_grad(loss), (x,)),
    "grad with aux": (rz.grad(with_aux, has_aux=True), (x,)),
    "grad of a text": (rz.grad("x -> x*sin(x)"), (2.0,)),
    "grad in another inner product": (rz.grad(loss, space=V.weighted(2.0)), (x,)),
    "factored grad": (rz.grad(loss, factored=True), (x,)),
    "grad of a method": (rz.grad(Model(3.0).loss), (x,)),
    "grad of an object": (rz.grad(Model(3.0)), (x,)),
    "grad in a dataclass": (rz.grad(of_weights), (Weights(x),)),
    "jacobian": (rz.jacobian(neighbours), (x,)),
    "jacobian of a ufunc": (rz.jacobian(np.sin), (x,)),
    "hessian": (rz.hessian(loss), (x,)),
    "vmap": (rz.vmap(rz.grad(loss)), (np.stack([x, x]),)),
    "checkpoint": (rz.checkpoint(loss), (x,)),
    "nested": (rz.jacobian(rz.grad(rz.checkpoint(loss))), (x,)),
    "compile": (rz.compile(loss), (x,)),
    "compile of grad": (rz.compile(rz.grad(loss), backend="numpy"), (x,)),
    "compile of a text": (rz.compile(rz.function("x -> x*2.0")), (x,)),
    "compile of jacobian": (rz.compile(rz.jacobian(neighbours)), (x,)),
    "compile of a combinator": (rz.compile(rz.grad(rz.sin @ rz.power(2))), (2.0,)),
    "custom derivative": (root, (x,)),
    "grad through a custom derivative": (rz.grad(rooted), (x,)),
    "primitive": (cube, (2.0,)),
    "grad of a primitive": (rz.grad(cube), (2.0,)),
    "combinator": (rz.sin @ rz.power(2), (2.0,)),
    "declared linear map": (rz.linear(doubled, doubled, domain=V, codomain=V), (x,)),
    "LinearMap": (rz.jacobian(neighbours)(x), (x,)),
    "adjoint": (rz.jacobian(neighbours)(x).H, (x[:2],)),
    "LinearMap with linear algebra inside": (rz.jacobian(solved)(x), (x,)),
    "value of a derivation": (rz.derive(solved, V).value, (x,)),
    "pullback": (rz.vjp(neighbours, x)[1], (x[:2],)),
    "pullback of two arguments": (rz.vjp(scaled_by, x, 2.0)[1], (x,)),
    "pullback in a dataclass": (rz.vjp(of_weights, Weights(x))[1], (1.0,)),
    "pullback with aux": (rz.vjp(with_aux, x, has_aux=True)[1], (1.0,)),
    "pullback of a combinator": (rz.vjp(rz.sin @ rz.power(2), 2.0)[1], (1.0,)),
    "Hessian products": (rz.hvp(loss), (x, x)),
    "derivative of a derivation": (rz.derive(solved, V).derivative, (x,)),
}

HELD: dict[str, Any] = {
    "Derivation": rz.derive(loss, V),
    "solver": rz.jacobian(lambda v: v * 2.0 + np.roll(v, 1))(x).solver(),
    "sparse solver": rz.jacobian(lambda v: v * 2.0 + np.roll(v, 1))(x).solver("sparse"),
    "iterative solver": rz.jacobian(solved)(x).solver("gmres"),
    "plan": rz.jacobian(neighbours)(x).plan(),
    "relation": rz.relations.edges(rz.seg(3), rz.seg(2), [0, 1], [1, 0])
    if hasattr(rz.relations, "edges")
    else rz.seg(3),
    "Factored": rz.grad(lambda W: np.sum(np.outer(x, x) * W), factored=True)(np.ones((3, 3))),
    "space": rz.space_of((Weights(x), {"a": x, 1: 2.0})),
}
