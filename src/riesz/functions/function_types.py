"""The types of what users call, for editors and type checkers: what `rz.grad(f)` and its relatives take and give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

AnyFunction: TypeAlias = Callable[..., Any] | str
"""A function riesz can look into: a Python function, a combinator, what `rz.grad` gives, or a text ("x -> sin(x)")."""

Argnums: TypeAlias = int | tuple[int, ...] | None
"""The number of an argument, or those of several; None: the first."""
First: TypeAlias = Literal[0] | None

V = TypeVar("V")


class GradientFunction(Protocol):
    """∇f. The gradient has the type of the argument it is taken in: a number, an array, or a tree of them."""

    @overload
    def __call__(self, x: V, /, *args: Any, **kwargs: Any) -> V: ...
    @overload
    def __call__(self, /, **kwargs: Any) -> Any: ...


class GradientAndAux(Protocol):
    """∇f of an f that gives (value, aux): the gradient and aux."""

    @overload
    def __call__(self, x: V, /, *args: Any, **kwargs: Any) -> tuple[V, Any]: ...
    @overload
    def __call__(self, /, **kwargs: Any) -> tuple[Any, Any]: ...


class ValueAndGradient(Protocol):
    """f and ∇f: the value, and the gradient in the type of the argument. With `has_aux` the value is (value, aux)."""

    @overload
    def __call__(self, x: V, /, *args: Any, **kwargs: Any) -> tuple[Any, V]: ...
    @overload
    def __call__(self, /, **kwargs: Any) -> tuple[Any, Any]: ...
