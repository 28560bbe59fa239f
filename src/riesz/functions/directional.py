"""Derivatives in one direction: jvp, vjp, hvp."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast, overload

from ..errors import VectorError
from .calling import differentiable
from .function_types import AnyFunction, V
from .jacobians import hessian_at, linearized
from .point_protocol import EACH
from .points import point


@overload
def jvp(
    f: AnyFunction, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: Literal[False] = False
) -> tuple[Any, Any]: ...
@overload
def jvp(
    f: AnyFunction, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: Literal[True]
) -> tuple[Any, Any, Any]: ...
def jvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    """f(x) and f'(x)(dx); with `has_aux`, f gives (value, aux), and aux comes third.

    >>> import riesz as rz
    >>> rz.jvp(rz.power(2), (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if not isinstance(cast(Any, primals), tuple) or not isinstance(cast(Any, tangents), tuple):
        raise VectorError("jvp takes a tuple of arguments and a tuple of differentials: jvp(f, (x,), (dx,))")
    if len(primals) != len(tangents):
        counts = f"{len(primals)} arguments and {len(tangents)} differentials"
        raise VectorError(f"jvp: {counts}; one differential per argument is due")
    at = point(differentiable(f), primals, {}, EACH, None, has_aux, "a derivative")
    y, L = linearized(at, keep=False)
    moved = at.pushed(L, tangents)
    return (y[0], moved, y[1]) if has_aux else (y, moved)


@overload
def vjp(f: AnyFunction, *primals: Any, has_aux: Literal[False] = False) -> tuple[Any, Callable[[Any], Any]]: ...
@overload
def vjp(f: AnyFunction, *primals: Any, has_aux: Literal[True]) -> tuple[Any, Callable[[Any], Any], Any]: ...
def vjp(f: Any, *primals: Any, has_aux: bool = False) -> Any:
    """f(x) and the function w ↦ f'(x)*(w); of a Python function it gives one cotangent per argument, as a tuple, as in
    JAX.

    >>> import riesz as rz
    >>> y, back = rz.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> y, back(1.0)
    (6.0, (3.0, 2.0))
    """
    at = point(differentiable(f), primals, {}, EACH, None, has_aux, "a derivative")
    y, L = linearized(at)  # the arguments may change before `back` is called
    back = at.pullback(L)
    return (y[0], back, y[1]) if has_aux else (y, back)


@overload
def hvp(f: AnyFunction) -> Callable[[V, Any], V]: ...
@overload
def hvp(f: AnyFunction, primals: tuple[V], tangents: tuple[Any]) -> V: ...
@overload
def hvp(f: AnyFunction, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any: ...
def hvp(f: Any, primals: tuple[Any, ...] | None = None, tangents: tuple[Any, ...] | None = None) -> Any:
    """∇²f(x)(dx); with several arguments, that of f on their direct sum, as a tuple. hvp(f) is x, dx ↦ ∇²f(x)(dx).

    >>> import riesz as rz
    >>> rz.hvp(lambda x: x**3, (2.0,), (1.0,)), rz.hvp(lambda x: x**3)(2.0, 1.0)
    (12.0, 12.0)
    """
    if primals is None and tangents is None:
        return partial(_product, f)
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents):
        raise VectorError("hvp takes a tuple of arguments and a tuple of as many differentials: hvp(f, (x,), (dx,))")
    at = point(differentiable(f), primals, {}, 0 if len(primals) == 1 else EACH, None, False, "a Hessian")
    return at.pushed(hessian_at(at), tangents, arguments=True)


def _product(f: Any, x: Any, dx: Any) -> Any:
    """∇²f(x)(dx), of f with one argument."""
    return hvp(f, (x,), (dx,))
