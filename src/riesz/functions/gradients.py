"""Gradients: grad, value_and_grad, and the one place where the way to a gradient is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from ..calculus.derive import value_and_cotangents
from ..calculus.domain_check import checking, guard
from ..errors import SpaceError
from ..ops.number_domains import NUMBERS, OTHER
from ..programs.passes.fusing import in_order
from ..runtime.stackless import quiet
from ..spaces.space import Space
from ..tracing.surroundings.watching import MISSING
from .calling import differentiable
from .function import other
from .function_types import AnyFunction, Argnums, First, GradientAndAux, GradientFunction, ValueAndGradient
from .point_protocol import AnyPoint, into_reals
from .points import point
from .remade import DerivedFunction


@overload
def grad(
    f: AnyFunction, argnums: First = None, *, has_aux: Literal[False] = False, space: Space | None = None
) -> GradientFunction: ...
@overload
def grad(
    f: AnyFunction, argnums: First = None, *, has_aux: Literal[True], space: Space | None = None
) -> GradientAndAux: ...
@overload
def grad(
    f: AnyFunction,
    argnums: Argnums = None,
    *,
    has_aux: bool = False,
    space: Space | None = None,
    factored: bool = False,
    manifold: Any = None,
) -> Callable[..., Any]: ...
def grad(
    f: Any,
    argnums: Any = None,
    *,
    has_aux: bool = False,
    space: Space | None = None,
    factored: bool = False,
    manifold: Any = None,
) -> Any:
    """∇f, the gradient of a function into ℝ: the Riesz representative of f'(x) in the inner product of f's domain.

    With several arguments, the gradient in the first (or those in `argnums`); with one, the gradient in all of it.
    `space` gives the domain another inner product. With `has_aux`, f gives (value, aux) and ∇f (gradient, aux).
    With `factored`, its arrays are not multiplied out: Σ u ⊗ v for matrices, a few rows for gathers (see `Factored`).
    An array that holds one number, of shape (1,) or (1, 1), is that number; of functions with larger results take
    `jacobian`. With `manifold` (of `rz.manifolds`, or a tree of them like x) it is the Riemannian gradient in the first
    argument, a vector of the tangent space at x.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> x, y = rz.proj(0), rz.proj(1)
    >>> f = rz.ln @ x + x * y - rz.sin @ y
    >>> rz.grad(f)((2.0, 5.0))[0]
    5.5
    """
    if manifold is not None:
        from .on_manifolds import on_manifold

        return on_manifold(grad, f, argnums, manifold, has_aux=has_aux)
    return GradientAlone(f, argnums, has_aux, space, factored)


@overload
def value_and_grad(
    f: AnyFunction, argnums: First = None, *, has_aux: bool = False, space: Space | None = None
) -> ValueAndGradient: ...
@overload
def value_and_grad(
    f: AnyFunction,
    argnums: Argnums = None,
    *,
    has_aux: bool = False,
    space: Space | None = None,
    factored: bool = False,
    manifold: Any = None,
) -> Callable[..., tuple[Any, Any]]: ...
def value_and_grad(
    f: Any,
    argnums: Any = None,
    *,
    has_aux: bool = False,
    space: Space | None = None,
    factored: bool = False,
    manifold: Any = None,
) -> Any:
    """A function that gives f(x) and ∇f(x) = f'(x)*(1); see `grad`. With `has_aux`, f gives (value, aux), and so does
    the first component.

    >>> import riesz as rz
    >>> rz.value_and_grad(lambda x: x**2)(3.0)
    (9.0, 6.0)
    """
    if manifold is not None:
        from .on_manifolds import on_manifold

        return on_manifold(value_and_grad, f, argnums, manifold, has_aux=has_aux)
    return Gradient(f, argnums, has_aux, space, factored)


class Gradient(DerivedFunction):
    """What `value_and_grad` gives."""

    what = "value_and_grad"

    def __init__(self, f: Any, argnums: Any, has_aux: bool, space: Space | None, factored: bool) -> None:
        super().__init__(differentiable(f), argnums, has_aux, space, factored)
        self.argnums, self.has_aux, self.space, self.factored = argnums, has_aux, space, factored
        self.era = object()
        self._quick: Any = other, (), self.era, self  # generated code, for small functions: see `graded`

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        run, watched, era, owner = self._quick
        if not kwargs and owner.era is era:
            for holder, name, value in watched:
                if holder.get(name, MISSING) is not value:
                    break
            else:
                known = run(args)
                if known is not OTHER:
                    return known
        return self.both(args, kwargs)

    @quiet
    def both(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The value and the gradient, the ordinary way."""
        argnums = 0 if self.argnums is None else self.argnums
        at = point(self.function, args, kwargs, argnums, self.space, self.has_aux, "a gradient")
        into_reals(at)
        if self.factored:
            return factored(at)
        code = at.code()
        if code is not None and (known := code[0](args)) is not OTHER:
            self._quick = code
            return known
        return value_and_gradient(at)


class GradientAlone(Gradient):
    """What `grad` gives."""

    what = "grad"

    # once more, not a call of the other: a call of half a microsecond has no room for two
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        run, watched, era, owner = self._quick
        if not kwargs and owner.era is era:
            for holder, name, value in watched:
                if holder.get(name, MISSING) is not value:
                    break
            else:
                known = run(args)
                if known is not OTHER:
                    return known[1]
        value, found = self.both(args, kwargs)
        return (found, value[1]) if self.has_aux else found


def value_and_gradient(at: AnyPoint) -> tuple[Any, Any]:
    """f(x) and ∇f(x) = f'(x)*(1) at a point. This is where the way is chosen, for combinators and Python functions
    alike.

    The road is: trace (`AnyPoint.program`) → derive → transpose (`AnyPoint.both`) → optimise → compile → run. Where a
    function is small, all of it is gone: `AnyPoint.code` is asked before this function, and gives generated code from
    the first call on. The interpreter would take longer to run 48 steps than NumPy takes for their numbers. What is
    left are two ways:

    - In a trace, the program of ∇f is written into it. Derivatives of derivatives need nothing of their own, each order
      is linear in size, and the trace around optimises and compiles.
    - At numbers, the program of f is run forward and back (`derive.value_and_cotangents`): the derivative is taken and
      transposed step by step on the way, and no program of it is written. For 1,000 layers that takes half of the time
      that deriving, transposing and running would. Programs with loops or other people's functions write f'(x) down as
      a linear program first, because the derivative of such a step is a program itself.
    """
    if at.home is not None:
        return at.wrap(at.value()), at.gradient_value()
    values, found, coefficients = value_and_cotangents(in_order(at.program()), at.inputs, at.moving)
    zeros = [NUMBERS.zeros(leaf.shape) if c is None else c for c, leaf in zip(found, at.domain.leaves, strict=True)]
    gradient = at.domain.metric(zeros, inverse=True)
    if checking():
        guard(at.program, at.inputs, [*values, *gradient])
    held = at.held | coefficients
    return at.wrap(values, held), at.vector(gradient, held | {id(x) for x in values})


def factored(at: AnyPoint) -> tuple[Any, Any]:
    """The value and the gradient, whose arrays are `Factored`; numbers stay numbers."""
    if at.home is not None:
        inside = "factored=True inside a function that is being traced"
        raise SpaceError(f"{inside}: the gradient of {at.name} is an array there; leave it out")
    from ..maps.gradients.factoring import planned

    at.settle(keep=False)
    values, found = planned(at.gradient(), at.program()).at(at.leaves, at.gradient_dtypes)
    factors = [a for G in found for t in G.terms for a, _ in t.factors]
    guard(at.program, at.leaves, [*values, *factors])
    shown = [G if G.shape else float(G.to_dense()) if G.dtype == float else G.to_dense()[()] for G in found]
    return at.wrap(values, at.held | {id(x) for x in factors}), at.presented(shown)
