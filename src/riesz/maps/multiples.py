"""k · rz.id with a traced number k: a term has no place for one, so it stays a multiple until a map is near."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SpaceError
from ..terms.term import Arrow
from .leaves import IN_TRACES

if TYPE_CHECKING:
    from .linear_map import LinearMap


class Multiple:
    """Σ kᵢ · fᵢ with traced numbers kᵢ and functions fᵢ such as rz.id. Added to a linear map, it is one.

    >>> import numpy as np, riesz as rz
    >>> def f(k):
    ...     L = rz.jacobian(lambda x: x[::-1] * 2.0)(np.ones(2))
    ...     return (L + k * rz.id).solve(np.array([1.0, 0.0]))
    >>> rz.function(f)(3.0)
    array([ 0.6, -0.4])
    """

    __array_ufunc__ = None
    __slots__ = ("parts",)

    def __init__(self, parts: tuple[tuple[Any, Arrow], ...]) -> None:
        self.parts = parts

    def __mul__(self, k: Any) -> Any:
        return Multiple(tuple([(k * times, f) for times, f in self.parts]))

    __rmul__ = __mul__

    def __truediv__(self, k: Any) -> Any:
        return self * (1.0 / k)

    def __neg__(self) -> Any:
        return self * -1.0

    def __add__(self, other: Any) -> Any:
        found = _parts(other)
        return NotImplemented if found is None else Multiple((*self.parts, *found))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if _parts(other) is None else self + -other

    def __rsub__(self, other: Any) -> Any:
        return NotImplemented if _parts(other) is None else -self + other

    def __call__(self, *args: Any) -> Any:
        return sum([k * f(*args) for k, f in self.parts])

    def beside(self, L: Any) -> LinearMap:
        """As a map between the spaces of L."""
        return sum([L.summand(f) * k for k, f in self.parts])  # pyright: ignore[reportReturnType]

    def __repr__(self) -> str:
        return " + ".join([f"{k!r} * {f}" for k, f in self.parts])


def _parts(other: Any) -> Any:
    if isinstance(other, Multiple):
        return other.parts
    return ((1.0, other),) if isinstance(other, Arrow) else None


def multiple(k: Any, f: Any) -> Multiple:
    """k · f, with a traced number k."""
    if not IN_TRACES.owns(k) or getattr(k, "shape", ()):
        raise SpaceError(f"cannot form k * {f}: k is a number; got {k!r}")
    return Multiple(((k, f),))
