"""What a manifold is to the calculus: a tangent space at each point, and a way into the manifold along it.

A manifold of one's own is any object with three methods, for arrays with leading axes or without:

    tangent(x)      the zero tangent vector at x: an array of the tangent space's shape
    retract(x, v)   the point reached from x along v; retract(x, 0) is x, and its derivative at 0 is the identity
    local(x, y)     the v with retract(x, v) = y, for y near x

in NumPy code. Coordinates of the tangent space are orthonormal unless it has a method `space(x)`, whose weighted space
is the tangent space then.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..errors import VectorError
from ..tracing.argument_trees import flatten, unflatten
from .prefix_trees import spread


class Manifold(ABC):
    """A manifold of points with some trailing axes; any leading axes are points beside each other.

    >>> import numpy as np, riesz as rz
    >>> class Line(rz.manifolds.Manifold):
    ...     "Positive numbers, in the logarithm."
    ...
    ...     axes = 0
    ...     tangent = staticmethod(np.zeros_like)
    ...     retract = staticmethod(lambda x, v: x * np.exp(v))
    ...     local = staticmethod(lambda x, y: np.log(y / x))
    ...     contains = staticmethod(lambda x: bool(np.all(x > 0)))
    >>> rz.grad(lambda x: np.sum(x**2), manifold=Line())(np.array([1.0, 2.0]))
    array([2., 8.])
    """

    axes: int = 1
    """How many trailing axes a point has."""
    connection: str = "Levi-Civita: retractions are geodesics"
    """What second derivatives of f(retract(x, v)) in v at 0 are the Hessian of."""

    @abstractmethod
    def tangent(self, x: Any) -> Any:
        """The zero tangent vector at x."""

    @abstractmethod
    def retract(self, x: Any, v: Any) -> Any:
        """The point reached from x along v."""

    @abstractmethod
    def local(self, x: Any, y: Any) -> Any:
        """The tangent vector at x that leads to y."""

    @abstractmethod
    def contains(self, x: Any) -> bool:
        """Whether x is a point, but for rounding."""

    def __repr__(self) -> str:
        return f"rz.manifolds.{type(self).__name__.removesuffix('Manifold')}"


class Euclidean(Manifold):
    """Arrays; retractions add.

    >>> import numpy as np, riesz as rz
    >>> rz.manifolds.Euclidean().retract(np.ones(2), np.array([1.0, 2.0]))
    array([2., 3.])
    """

    axes = 0

    def tangent(self, x: Any) -> Any:
        return np.zeros(np.shape(x))

    def retract(self, x: Any, v: Any) -> Any:
        return x + v

    def local(self, x: Any, y: Any) -> Any:
        return y - x

    def contains(self, x: Any) -> bool:
        return True


class ProductManifold:
    """A manifold of trees: `product({"q": rz.manifolds.SO3, "t": None})`. None is flat, and so is what is not named.

    >>> import numpy as np, riesz as rz
    >>> M = rz.manifolds.product([rz.manifolds.SO3, rz.manifolds.Euclidean()])
    >>> [v.shape for v in M.tangent([np.eye(3), np.zeros(2)])]
    [(3,), (2,)]
    """

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def _each(self, x: Any) -> tuple[list[Any], list[Any], Any]:
        leaves, tree = flatten(x)
        return [M or FLAT for M in spread(self.parts, tree, len(leaves), "manifold")], leaves, tree

    def tangent(self, x: Any) -> Any:
        """The zero tangent vector at x, a tree."""
        manifolds, leaves, tree = self._each(x)
        return unflatten(tree, [M.tangent(a) for M, a in zip(manifolds, leaves, strict=True)])

    def retract(self, x: Any, v: Any) -> Any:
        """The point reached from x along v."""
        manifolds, leaves, tree = self._each(x)
        return unflatten(tree, [M.retract(a, s) for M, a, s in zip(manifolds, leaves, flatten(v)[0], strict=True)])

    def local(self, x: Any, y: Any) -> Any:
        """The tangent vector at x that leads to y."""
        manifolds, leaves, tree = self._each(x)
        return unflatten(tree, [M.local(a, b) for M, a, b in zip(manifolds, leaves, flatten(y)[0], strict=True)])

    def __repr__(self) -> str:
        return f"rz.manifolds.product({self.parts!r})"


def product(parts: Any) -> ProductManifold:
    """The manifold of trees whose parts are on manifolds.

    >>> import numpy as np, riesz as rz
    >>> M = rz.manifolds.product({"q": rz.manifolds.SO3})
    >>> x = {"q": np.array([0.0, 0.0, 0.0, 1.0]), "t": np.zeros(2)}
    >>> M.tangent(x)["q"].shape, M.tangent(x)["t"].shape
    ((3,), (2,))
    """
    return ProductManifold(parts)


def as_manifold(given: Any) -> Any:
    """A manifold, or the product of a tree of them."""
    if all([hasattr(given, name) for name in ("tangent", "retract")]):
        return given
    if isinstance(given, (dict, tuple, list)):
        return ProductManifold(given)
    raise VectorError(f"manifold: {given!r} has no methods tangent(x) and retract(x, v)")


FLAT = Euclidean()
