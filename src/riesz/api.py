"""What people call: evaluate, linearize, derive, grad, jvp, vjp, jacobian, hessian, hvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .calculus.derive import affine_numbers, affine_program, derive_program, lower, reverse_numbers
from .calculus.domains import NUMBERS
from .calculus.dual import Dual, DualNumber
from .calculus.interpret import interpret
from .calculus.products import metric
from .calculus.trees import leaves_of
from .errors import SpaceError, VectorError
from .layout import INVERSE
from .maps.derivation import Derivation
from .maps.linear_map import LinearMap, as_element
from .programs.program import Program, outputs
from .spaces import R, Space, direct_sum, space_of
from .terms.bilinear import Inner, Section
from .terms.core import Arrow, Term
from .terms.makers import frozen
from .terms.open import fit
from .terms.sums import Inject


def _arrow(f: Any) -> Arrow:
    if isinstance(f, Arrow):
        return f
    raise SpaceError(f"expected a function in combinatory form, such as rz.sin @ rz.proj(0); got {f!r}")


def _typed(f: Any, args: tuple[Any, ...], space: Space | None = None) -> tuple[Term, list[Any]]:
    """A function at the space of its arguments, and the leaves of the arguments."""
    arrow = _arrow(f)
    if space is None:
        space = arrow.domain if isinstance(arrow, Term) else space_of(args[0] if len(args) == 1 else tuple(args))
    term = fit(arrow, space)
    return term, term.domain.open(as_element(args, term.domain))


def evaluate(f: Any, *args: Any) -> Any:
    """f(x)."""
    term, leaves = _typed(f, args)
    result = interpret(term, term.domain.tree(leaves), NUMBERS)
    return term.codomain.wrap(leaves_of(result))


def linearize(f: Any, *args: Any, space: Space | None = None) -> tuple[Any, LinearMap]:
    """f^[1](x): the value f(x) and the derivative f'(x) as a LinearMap, by affine interpretation (Figure 1).

    >>> import riesz as rz
    >>> y, L = rz.linearize(rz.ln @ rz.sin, 1.0)
    >>> L.H(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    term, leaves = _typed(f, args, space)
    values, tape = affine_numbers(term, leaves)
    return term.codomain.wrap(values), LinearMap(term.domain, term.codomain, tape)


def linearize_adjoint(f: Any, *args: Any, space: Space | None = None) -> tuple[Any, LinearMap]:
    """f^[1r](x): the value f(x) and the adjoint derivative f'(x)* : W ⊸ V (Figure 2): the linear steps f^[1] writes, read from the end."""
    y, L = linearize(f, *args, space=space)
    return y, L.H


def value_and_grad(f: Any, argnums: int | tuple[int, ...] | None = None, *, space: Space | None = None) -> Callable[..., Any]:
    """A function that gives f(x) and ∇f(x) = f'(x)*(1); see `grad`."""
    arrow = _arrow(f)

    def both(*args: Any) -> tuple[Any, Any]:
        term, leaves = _typed(arrow, args, space)
        if term.codomain is not R:
            raise SpaceError(f"a gradient needs a function into ℝ; {term} ends in {term.codomain} (jacobian takes any codomain)")
        values, tape = affine_numbers(term, leaves)
        found = reverse_numbers(tape, [np.float32(1.0) if type(values[0]) is np.float32 else 1.0])
        zeros = [NUMBERS.zeros(leaf.shape) for leaf in term.domain.leaves]
        raised = term.domain.metric([z if c is None else c for c, z in zip(found, zeros, strict=True)], inverse=True)
        gradient = term.domain.wrap(raised)
        return term.codomain.wrap(values), _chosen(gradient, argnums, len(args))

    return both


def _chosen(gradient: Any, argnums: int | tuple[int, ...] | None, count: int) -> Any:
    """The components asked for; with several arguments and no choice, the first, as in JAX."""
    if count == 1:
        if argnums not in (None, 0, (0,)):
            raise SpaceError(f"argnums={argnums!r}, but there is one argument")
        return gradient if argnums != (0,) else (gradient,)
    if argnums is None:
        argnums = 0
    components = cast(Any, tuple(cast("dict[str, Any]", gradient).values()) if isinstance(gradient, dict) else gradient)
    try:
        return tuple([components[i] for i in argnums]) if isinstance(argnums, tuple) else components[int(argnums)]
    except IndexError:
        raise SpaceError(f"argnums={argnums!r}, but there are {count} arguments") from None


def grad(f: Any, argnums: int | tuple[int, ...] | None = None, *, space: Space | None = None) -> Callable[..., Any]:
    """∇f, the gradient of a function into ℝ: the Riesz representative of f'(x) in the inner product of f's domain.

    With several arguments, the gradient in the first (or those in `argnums`); with one, the gradient in all of it.
    `space` gives the domain another inner product.

    >>> import riesz as rz
    >>> x, y = rz.proj(0), rz.proj(1)
    >>> f = rz.ln @ x + x * y - rz.sin @ y
    >>> rz.grad(f)((2.0, 5.0))[0]
    5.5
    """
    both = value_and_grad(f, argnums, space=space)
    return lambda *args: both(*args)[1]


def jvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """f(x) and f'(x)(dx), by dual numbers.

    >>> import riesz as rz
    >>> rz.jvp(rz.power(2), (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if not isinstance(cast(Any, primals), tuple) or not isinstance(cast(Any, tangents), tuple):
        raise VectorError("jvp takes a tuple of arguments and a tuple of differentials: jvp(f, (x,), (dx,))")
    term, leaves = _typed(f, primals)
    moves = term.domain.open(as_element(tangents, term.domain))
    duals = [DualNumber(v, d) for v, d in zip(leaves, moves, strict=True)]
    result = leaves_of(interpret(term, term.domain.tree(duals), Dual()))
    return term.codomain.wrap([r.value for r in result]), term.codomain.wrap([r.differential for r in result])


def vjp(f: Any, *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    """f(x) and the function w ↦ f'(x)*(w)."""
    y, L = linearize(f, *primals)
    return y, lambda w: L.H(w)


def jacobian(f: Any, argnums: int | None = None, *, space: Space | None = None) -> Callable[..., LinearMap]:
    """f', the derivative as a function that gives LinearMaps; with several arguments, in the one at argnums (None: all together).

    >>> import riesz as rz, numpy as np
    >>> x = rz.proj
    >>> f = rz.fork(x(0) + x(1), x(0) * x(2))
    >>> rz.jacobian(f)((4.0, 0.0, -2.0)).to_dense()
    array([[ 1.,  1.,  0.],
           [-2.,  0.,  4.]])
    """
    arrow = _arrow(f)

    def at(*args: Any) -> LinearMap:
        _, L = linearize(arrow, *args, space=space)
        if argnums is None or len(args) == 1:
            return L
        if isinstance(cast(Any, argnums), tuple) or not -len(args) <= argnums < len(args):
            raise SpaceError(f"argnums={argnums!r}: jacobian takes the number of one of {len(args)} arguments, or None for all")
        return L @ Inject(L.domain, int(argnums) % len(args))

    return at


def dual(v: Any, space: Space | None = None) -> LinearMap:
    """dual(v) = (⊙ v) : V ⊸ ℝ, the covector of a vector (§6).

    >>> import riesz as rz, numpy as np
    >>> rz.dual(np.array([1.0, 2.0]))(np.array([3.0, 4.0]))
    11.0
    """
    V = space_of(v) if space is None else space
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


def gradient_program(term: Term) -> Program:
    """∇f as a program, for a function into ℝ with a Euclidean domain: the adjoint program at dy = 1."""
    if term.codomain is not R:
        raise SpaceError(f"a gradient needs a function into ℝ; {term} ends in {term.codomain}")
    parts = derive_program(lower(term))
    fixed = Program()
    xs = [fixed.input(leaf.shape) for leaf in term.domain.leaves]
    slots = outputs(parts.adjoint, fixed, [*xs, fixed.const(1.0)])
    slots = metric(slots, term.domain, INVERSE, fixed)
    return fixed.prune(xs, slots)


def hessian(f: Any, *, space: Space | None = None) -> Callable[..., LinearMap]:
    """∇²f, the derivative of the gradient, as a function that gives LinearMaps V ⊸ V.

    >>> import riesz as rz
    >>> rz.hessian(rz.proj(0) * rz.proj(1))((2.0, 3.0)).to_dense()
    array([[0., 1.],
           [1., 0.]])
    """
    arrow = _arrow(f)

    def at(*args: Any) -> LinearMap:
        term, leaves = _typed(arrow, args, space)
        _, tape = affine_program(gradient_program(term), leaves)
        return LinearMap(term.domain, term.domain, tape)

    return at


def hvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """∇²f(x)(dx)."""
    return hessian(f)(*primals)(*tangents)


def derive(f: Any, *spaces: Space) -> Derivation:
    """The symbolic derivation of f: value, derivative and adjoint for every point at once.

    Several spaces are the spaces of several arguments; none are needed where f has a domain already.

    >>> import riesz as rz
    >>> D = rz.derive(rz.ln @ rz.sin)
    >>> D.derivative(1.0)(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    return Derivation(typed(f, *spaces))


def typed(f: Any, *spaces: Space) -> Term:
    """A function as a term with the given domain."""
    arrow = _arrow(f)
    for s in spaces:
        if not isinstance(cast(Any, s), Space):
            raise SpaceError(f"expected a space, such as rz.R ** rz.seg(3); got {s!r} (rz.space_of(value) is the space of a value)")
    if not spaces:
        if not isinstance(arrow, Term):
            raise SpaceError(f"{arrow} fits many spaces: say which, as in derive(f, rz.R ** rz.seg(3))")
        return arrow
    return fit(arrow, spaces[0] if len(spaces) == 1 else direct_sum(*spaces))
