"""Derivatives in one direction: jvp, vjp, hvp."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast, overload

from ..errors import VectorError
from ..ops.number_domains import OTHER
from ..runtime import later, tuning
from ..tracing.traced import innermost
from .calling import differentiable
from .function import TracedFunction
from .function_types import AnyFunction, V
from .jacobians import derivative_at, hessian_at, linearized
from .point_protocol import EACH, AnyPoint
from .points import FunctionPoint, point
from .traces.given import Given


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
    f = differentiable(f)
    if not has_aux and (found := _small(jvp, f, primals, tangents)) is not OTHER:
        return found
    at = point(f, primals, {}, EACH, None, has_aux, "a derivative")
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
    if not has_aux and (quick := _pullback(at)) is not None:
        return cast(FunctionPoint, at).function(*primals), quick
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
    f = differentiable(f)
    if (found := _small(hvp, f, primals, tangents)) is not OTHER:
        return found
    at = point(f, primals, {}, 0 if len(primals) == 1 else EACH, None, False, "a Hessian")
    return at.pushed(hessian_at(at), tangents, arguments=True)


def _pullback(at: AnyPoint) -> Callable[[Any], Any] | None:
    """w ↦ f'(x)*(w) by generated code, at a point as it is now; None where plain calls are interpreted."""
    if not isinstance(at, FunctionPoint) or at.home is not None or not (at.domain.plain and at.codomain.plain):
        return None
    if not all(at.moving[: len(at.leaves)]) or not later.suits(at.function, at.given, at.record):
        return None
    at.settle()
    return CodedPullback(at)


class CodedPullback:
    """w ↦ f'(x)*(w) by generated code; copied and pickled as that of the derivative, which holds no Python function."""

    def __init__(self, at: FunctionPoint) -> None:
        self._at = at

    def __call__(self, w: Any) -> Any:
        at = self._at
        given = Given((w,), {}, frozenset())
        shapes = [leaf.shape for leaf in at.codomain.leaves]
        floats = all([a.dtype.kind == "f" for a in given.avals]) and innermost(given.arrays) is None
        if not floats or given.trees[0] != at.main_tree or [a.shape for a in given.avals] != shapes:
            return self._interpreted()(w)
        code = at.known(("vjp", given.key), lambda: later.code_of(at.pulled(given.avals)))
        return code([*at.leaves, *given.arrays])

    def _interpreted(self) -> Callable[[Any], Any]:
        return self._at.pullback(derivative_at(self._at))

    def __reduce__(self) -> Any:
        return self._interpreted().__reduce__()


class Directed(TracedFunction):
    """(x, …, dx, …) ↦ what `jvp` or `hvp` gives of a small function: traced, and run as generated code, like any
    function."""

    @property
    def slots(self) -> int:
        """It has several times as many as its function."""
        return tuning.DIRECTED_PROGRAM_SLOTS

    def __init__(self, what: Callable[..., Any], f: TracedFunction) -> None:
        super().__init__(partial(_at, what, f), name=f"{what.__name__}({f.name})")


def _at(what: Callable[..., Any], f: TracedFunction, *args: Any) -> Any:
    half = len(args) // 2
    return what(f, args[:half], args[half:])


def _small(what: Callable[..., Any], f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """A derivative in one direction by generated code; OTHER where f is large, or the differentials are not of the
    kinds of the arguments."""
    if not isinstance(f, TracedFunction):
        return OTHER
    args, key = (*primals, *tangents), (what, len(primals))
    known: Directed | None = f.directed.get(key)
    if known is not None and (found := known.quick(args)) is not OTHER:
        return found
    known = known or Directed(what, f)
    given = known.given(args, {})
    if innermost(given.arrays) is not None:
        return OTHER
    if not (known.keeps(given) or known.recalls(given)):
        mine, moved = f.given(primals, {}), f.given(tangents, {})
        floats = all([a.dtype.kind == "f" for a in mine.avals]) and bool(mine.avals)
        if mine.key != moved.key or not floats or not later.suits(f, mine, f.record(mine)):
            return OTHER
    f.directed[key] = known
    return known(*args)


def _product(f: Any, x: Any, dx: Any) -> Any:
    """∇²f(x)(dx), of f with one argument."""
    return hvp(f, (x,), (dx,))
