"""Derivatives as linear maps: linearize, jacobian, hessian, dual, undual."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Literal, cast, overload

import numpy as np

from ..calculus.derive import affine_program, lower
from ..errors import SpaceError
from ..maps.instances import Instance, held, kept
from ..maps.leaves import IN_TRACES, any_traced, fixed, opened, traced_space
from ..maps.linear_map import LinearMap
from ..ops.number_domains import OTHER
from ..programs.program import Program
from ..runtime import later
from ..runtime.warnings_off import quietly
from ..spaces.space import R, Space, space_of
from ..terms.bilinear import Inner, Section
from ..terms.open import frozen
from ..terms.term import Term
from ..tracing.surroundings.outside import OUTSIDE
from ..tracing.surroundings.watching import MISSING
from ..tracing.trace import inmost
from ..tracing.traced import FLOAT
from .calling import differentiable
from .function_types import AnyFunction, Argnums
from .point_protocol import AnyPoint
from .points import FunctionPoint, point
from .remade import DerivedFunction


def linearize(f: AnyFunction, *args: Any, space: Space | None = None, **kwargs: Any) -> tuple[Any, LinearMap]:
    """f^[1](x): the value f(x) and the derivative f'(x) as a LinearMap, by affine interpretation (Figure 1).

    Several arguments are a point of their direct sum; those without floats are parameters.

    >>> import riesz as rz
    >>> y, L = rz.linearize(rz.ln @ rz.sin, 1.0)
    >>> L.H(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    return linearized(point(differentiable(f), args, kwargs, None, space, False, "a derivative"))


def linearize_adjoint(f: AnyFunction, *args: Any, space: Space | None = None, **kwargs: Any) -> tuple[Any, LinearMap]:
    """f^[1r](x): the value f(x) and the adjoint derivative f'(x)* : W ⊸ V (Figure 2): the linear steps f^[1] writes,
    read from the end.

    >>> import riesz as rz
    >>> y, A = rz.linearize_adjoint(lambda x: x**2, 3.0)
    >>> A(1.0)
    6.0
    """
    y, L = linearize(f, *args, space=space, **kwargs)
    return y, L.H


@overload
def jacobian(
    f: AnyFunction,
    argnums: Argnums = None,
    *,
    has_aux: Literal[False] = False,
    space: Space | None = None,
    manifold: Any = None,
    into: Any = None,
) -> Callable[..., LinearMap]: ...
@overload
def jacobian(
    f: AnyFunction, argnums: Argnums = None, *, has_aux: Literal[True], space: Space | None = None
) -> Callable[..., tuple[LinearMap, Any]]: ...
def jacobian(
    f: Any,
    argnums: Argnums = None,
    *,
    has_aux: bool = False,
    space: Space | None = None,
    manifold: Any = None,
    into: Any = None,
) -> Any:
    """f', the derivative as a function that gives LinearMaps.

    Of several arguments it is the derivative in the first, or in those numbered by `argnums`, as in JAX. A combinator
    has one argument, an element of its domain: `f(x, y)` is f((x, y)), given by components, and is differentiated in x;
    `f((x, y))` in all of it.

    With `manifold` (of `rz.manifolds`, or a tree of them) it is a map from the tangent space at x, the derivative of
    f(retract(x, v)) in v; `into`: a manifold that f ends on, then it ends in the tangent space at f(x).

    >>> import riesz as rz, numpy as np
    >>> x = rz.proj
    >>> f = rz.fork(x(0) + x(1), x(0) * x(2))
    >>> rz.jacobian(f)((4.0, 0.0, -2.0)).to_dense()
    array([[ 1.,  1.,  0.],
           [-2.,  0.,  4.]])
    >>> rz.jacobian(f)(4.0, 0.0, -2.0).to_dense()
    array([[ 1.],
           [-2.]])
    """
    if manifold is not None:
        from .on_manifolds import on_manifold

        return on_manifold(jacobian, f, argnums, manifold, into=into, has_aux=has_aux)
    return Maps("jacobian", f, argnums, has_aux, space)


@overload
def hessian(
    f: AnyFunction,
    argnums: Argnums = None,
    *,
    has_aux: Literal[False] = False,
    space: Space | None = None,
    manifold: Any = None,
) -> Callable[..., LinearMap]: ...
@overload
def hessian(
    f: AnyFunction, argnums: Argnums = None, *, has_aux: Literal[True], space: Space | None = None
) -> Callable[..., tuple[LinearMap, Any]]: ...
def hessian(
    f: Any, argnums: Argnums = None, *, has_aux: bool = False, space: Space | None = None, manifold: Any = None
) -> Any:
    """∇²f, the derivative of the gradient, as a function that gives LinearMaps V ⊸ V; `argnums` as for `jacobian`. With
    `manifold`, the Hessian of f(retract(x, v)) in v at 0: the Riemannian Hessian of the connection that
    `manifold.connection` names.

    >>> import riesz as rz
    >>> rz.hessian(rz.proj(0) * rz.proj(1))((2.0, 3.0)).to_dense()
    array([[0., 1.],
           [1., 0.]])
    """
    if manifold is not None:
        from .on_manifolds import on_manifold

        return on_manifold(hessian, f, argnums, manifold, has_aux=has_aux)
    return Maps("hessian", f, argnums, has_aux, space)


def jacfwd(f: AnyFunction, argnums: Argnums = None, *, has_aux: bool = False, space: Space | None = None) -> Any:
    """JAX's name for `jacobian`. The result is a LinearMap, no array: whether its numbers are computed forward, back
    or by colours is chosen by cost when they are asked for; `to_dense()` gives the array.

    >>> import riesz as rz, numpy as np
    >>> rz.jacfwd(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0])).to_dense()
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    return Maps("jacobian", f, argnums, has_aux, space)


def jacrev(f: AnyFunction, argnums: Argnums = None, *, has_aux: bool = False, space: Space | None = None) -> Any:
    """JAX's name for `jacobian`, the same as `jacfwd`: the LinearMap goes both ways.

    >>> import riesz as rz
    >>> L = rz.jacrev(lambda x, y: x * y, argnums=1)(2.0, 3.0)
    >>> L(1.0), L.H(1.0)
    (2.0, 2.0)
    """
    return Maps("jacobian", f, argnums, has_aux, space)


class Maps(DerivedFunction):
    """What `jacobian` and `hessian` give: functions into LinearMaps."""

    gives_maps = True

    def __init__(self, what: str, f: Any, argnums: Any, has_aux: bool, space: Space | None) -> None:
        self.what, self.argnums, self.has_aux, self.space = what, argnums, has_aux, space
        super().__init__(differentiable(f))
        self._again: MapsOfAKind | None = None
        self._met = False  # one that is made for a single call learns nothing

    def recipe(self) -> Any:
        return Maps, (self.what, self.function, self.argnums, self.has_aux, self.space)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        again = self._again
        if again is not None and not kwargs and (found := again.at(args)) is not None:
            return found
        argnums = 0 if self.argnums is None else self.argnums
        jacobian = self.what == "jacobian"
        why = "a derivative" if jacobian else "a Hessian"
        at = point(self.function, args, kwargs, argnums, self.space, self.has_aux, why)
        if not self.has_aux:
            make = derivative_at if jacobian else hessian_at
            steady = not kwargs and isinstance(at, FunctionPoint) and not at.record.captured
            found = make(at)
            known = steady and self._met and isinstance(at, FunctionPoint)
            self._again, self._met = MapsOfAKind.after(cast(FunctionPoint, at), found, make) if known else None, steady
            return found
        if not jacobian:
            return hessian_at(at), at.wrap(at.value())[1]
        y, L = linearized(at)
        return L, y[1]


class MapsOfAKind:
    """The maps of a function at points of one kind, once there is one: another has other numbers, and nothing else."""

    def __init__(self, at: FunctionPoint, first: LinearMap, make: Callable[[AnyPoint], LinearMap], opened: Any) -> None:
        self._at, self._make, self._opened = copy(at), make, opened
        self._watched, self._era = at.function.watched(at.given), at.function.era
        self._at.given = cast(Any, None)  # its arrays are those of the first point
        names = ("domain", "codomain", "dtype", "facts", "simplified", "leaves", "_adjoint", "_transpose")
        self._same = {name: getattr(first, name) for name in names} | {"_codes": {}}

    @classmethod
    def after(cls, at: FunctionPoint, first: LinearMap, make: Callable[[AnyPoint], LinearMap]) -> MapsOfAKind | None:
        """What is learned from the first map; None where another trace may be due at the next point."""
        if first.leaves is not None or at.reordered:
            return None
        known = at.record.derived  # of all functions that do the same
        if "leaves" not in known:
            known["leaves"] = later.leaves_of(at.function, at.given, at.record)
        opened = known["leaves"]
        return None if opened is None else cls(at, first, make, opened)

    def at(self, args: tuple[Any, ...]) -> LinearMap | None:
        """The map at other arguments; None where they are of another kind, or something has changed."""
        owner = self._at.function
        if owner.era is not self._era or inmost() is not None or OUTSIDE.get() is not None:
            return None
        for holder, name, value in self._watched:
            if holder.get(name, MISSING) is not value:
                return None
        leaves = self._opened(args)
        if leaves is OTHER:
            return None
        found = object.__new__(LinearMap)
        mine, parts = tuple(held(leaves)), found.__dict__
        parts.update(self._same)
        parts["_point"], parts["_solvers"] = mine, {}
        parts["_written"] = lambda: self._ordinary(mine).__dict__["_written"]()
        parts["_instance"] = lambda: self._ordinary(mine).__dict__["_instance"]()
        return found

    def _ordinary(self, leaves: tuple[Any, ...]) -> LinearMap:
        at = copy(self._at)
        at.leaves = list(leaves)
        return self._make(at)


def linearized(at: AnyPoint, keep: bool = True) -> tuple[Any, LinearMap]:
    """The value and the derivative at a point; without `keep` the derivative is used at once."""
    at.settle(keep)
    values, tape = at.affine(keep)
    return at.wrap(values, at.held | tape.held), at.linear_map("f'", at.codomain, at.dtype, tape, at.instance)


def derivative_at(at: AnyPoint) -> LinearMap:
    """The derivative alone: its numbers are computed when it is first applied."""
    at.settle()
    return at.linear_map("f'", at.codomain, at.dtype, lambda: at.affine()[1], at.instance)


def hessian_at(at: AnyPoint) -> LinearMap:
    """The derivative of the gradient, in the same way."""
    at.settle()
    gradient = at.gradient()

    def written() -> Program:
        with quietly():
            return kept(affine_program(gradient, at.leaves, at.moving)[1])

    facts = ("symmetric",) if at.domain.plain else ()
    dtype = at.gradient_dtype
    dtype = dtype if dtype is FLOAT else np.result_type(np.float32, dtype)  # as of all maps
    return at.linear_map("∇²f", at.domain, dtype, written, at.second, facts)


def dual(v: Any, space: Space | None = None) -> LinearMap:
    """dual(v) = (⊙ v) : V ⊸ ℝ, the covector of a vector (§6).

    >>> import riesz as rz, numpy as np
    >>> rz.dual(np.array([1.0, 2.0]))(np.array([3.0, 4.0]))
    11.0
    """
    traced = any_traced(v)
    V = space if space is not None else traced_space(v) if traced else space_of(v)
    if traced:
        instance = Instance(lower(Inner(V)), fixed(opened(V, v)))  # ⊙ is symmetric
        return LinearMap(V, R, None, instance=lambda: instance, leaves=IN_TRACES)
    return LinearMap.of(Section(Inner(V), 1, frozen(V.open(v))))


def undual(covector: LinearMap | Term) -> Any:
    """The vector of a covector f : V ⊸ ℝ, its Riesz representative: dual⁻¹(f) = f*(1).

    >>> import riesz as rz
    >>> rz.undual(rz.linearize(rz.power(2), 3.0)[1])
    6.0
    """
    f = LinearMap.of(covector) if isinstance(covector, Term) else covector
    if f.codomain is not R:
        raise SpaceError(f"a covector is a linear map into ℝ; this one ends in {f.codomain}")
    return f.H(1.0)
