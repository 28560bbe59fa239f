"""What people call: function, evaluate, linearize, derive, grad, jvp, vjp, jacobian, hessian, hvp. Combinators and Python functions alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from .calculus.derive import affine_program, lower, one_of, reverse_numbers
from .calculus.domains import NUMBERS, OTHER
from .calculus.dual import Dual, DualNumber
from .calculus.guard import guard
from .calculus.interpret import interpret
from .calculus.trees import leaves_of
from .errors import SpaceError, VectorError
from .layout import build
from .maps.derivation import Derivation
from .maps.linear_map import LinearMap, as_element
from .maps.sources import Source, held, kept
from .programs.program import Constant, Program
from .spaces import R, Space, direct_sum, space_of
from .stackless import quiet
from .syntax.functions import Function, as_function, numbers_of, other, owned
from .syntax.points import Point, TermPoint, into_reals, named_arrays, point
from .syntax.remade import Derived
from .syntax.symbolic import TracedMap, any_traced, fixed, of_types, opened, traced_space
from .syntax.watching import MISSING
from .terms.bilinear import Inner, Section
from .terms.core import Arrow, Term
from .terms.makers import frozen
from .terms.open import fit
from .terms.sums import Inject


def function(f: Any = None, *, static_argnums: Any = (), static_argnames: Any = (), limit: Any = ...) -> Any:
    """A function riesz can look into: from a Python function (NumPy code inside), a combinator, or a text. Also a decorator.

    It runs once per kind of arguments on arrays that are not known yet; results are computed from the program that leaves behind.
    Arguments named static, and those that are neither floats nor arrays, are part of the kind.

    A text is read, never evaluated. What it takes at given shapes is counted before anything is computed: a text that would take more than `limit`
    is refused, and the error shows which part of it does. `limit=(operations, bytes)`, one number for both, or None; it is (1e9, 2**28)
    unless you say otherwise.

    >>> import numpy as np, riesz as rz
    >>> @rz.function
    ... def f(x):
    ...     return np.sum(np.sin(x) ** 2)
    >>> rz.grad(f)(np.array([0.0, np.pi / 4]))
    array([0., 1.])
    >>> rz.function("x, y -> x * sin(y)")(2.0, 0.0)
    0.0
    """
    if f is None:
        return partial(function, static_argnums=static_argnums, static_argnames=static_argnames, limit=limit)
    if limit is not ... and not isinstance(f, str):
        raise SpaceError(f"limit=… is for functions given as texts, such as 'x -> sin(x)'; got {f!r}")
    if isinstance(f, Function) and not static_argnums and not static_argnames:
        return f
    if isinstance(f, str):
        from .syntax.text import parse
        from .syntax.text_limits import LIMIT, as_limit

        return Function(parse(f, LIMIT if limit is ... else as_limit(limit)), name=f)
    if isinstance(f, Arrow):
        return Function(f, name=str(f))
    if not static_argnums and not static_argnames and static_argnums != 0:
        return as_function(_callable(f))
    _check_static(_callable(f), static_argnums, static_argnames)
    return Function(_callable(f), static_argnums, static_argnames)


def _check_static(f: Any, nums: Any, names: Any) -> None:
    """Static arguments must be arguments."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return
    kinds = {p.kind for p in parameters}
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY, p.POSITIONAL_ONLY)]
    for name in (names,) if isinstance(names, str) else names or ():
        if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise SpaceError(f"static_argnames={names!r}: {getattr(f, '__name__', f)} has no argument {name!r}; it has {', '.join(known) or 'none'}")
    count = len([p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)])
    for k in (nums,) if isinstance(nums, int) else nums or ():
        if not -count <= k < count and inspect.Parameter.VAR_POSITIONAL not in kinds:
            raise SpaceError(f"static_argnums={nums!r}: {getattr(f, '__name__', f)} takes {count} arguments by position")


def _callable(f: Any) -> Any:
    if isinstance(f, str):
        return function(f)
    if not callable(f):
        raise SpaceError(
            f"expected a function: a Python function, a combinator such as rz.sin @ rz.proj(0), or a text such as 'x -> sin(x)'; got {f!r}"
        )
    return f


def evaluate(f: Any, *args: Any) -> Any:
    """f(x)."""
    if not isinstance(f, Arrow):
        return as_function(_callable(f))(*args)
    at = TermPoint(f, args, None)
    if at.home is not None:
        return at.wrap(at.value())
    result = leaves_of(interpret(at.term, at.domain.tree(at.leaves), NUMBERS))
    guard(at.program, at.leaves, result)
    return at.wrap(result)


def _point(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any, space: Space | None, has_aux: bool, what: str) -> TermPoint | Point:
    return point(f if isinstance(f, Arrow) else _callable(f), args, kwargs, argnums, space, has_aux, what)


def linearize(f: Any, *args: Any, space: Space | None = None, **kwargs: Any) -> tuple[Any, LinearMap]:
    """f^[1](x): the value f(x) and the derivative f'(x) as a LinearMap, by affine interpretation (Figure 1).

    Several arguments are a point of their direct sum; those without floats are parameters.

    >>> import riesz as rz
    >>> y, L = rz.linearize(rz.ln @ rz.sin, 1.0)
    >>> L.H(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    return _linearized(_point(f, args, kwargs, None, space, False, "a derivative"))


def _linearized(at: TermPoint | Point, keep: bool = True) -> tuple[Any, Any]:
    """The value and the derivative there; `keep`: with what its structure is derived from."""
    if at.home is not None:
        return at.wrap(at.value()), TracedMap(at.domain, at.codomain, at.source(), at.dtype)
    at.settle()
    if keep:
        at.leaves = held(at.leaves)
    values, tape = at.affine()
    guard(at.program, at.leaves, [*values, *[op.value for op in tape.ops if type(op) is Constant]])
    values = _owned(at, values, tape)
    if keep:
        kept(tape)
    return at.wrap(values), LinearMap(at.domain, at.codomain, tape, at.dtype, at.source if keep else None)


def _derivative(at: TermPoint | Point) -> LinearMap:
    """The derivative alone: its numbers are computed when it is first applied."""
    at.settle()
    at.leaves = held(at.leaves)

    def written() -> Program:
        values, tape = at.affine()
        guard(at.program, at.leaves, [*values, *[op.value for op in tape.ops if type(op) is Constant]])
        return kept(tape)

    return LinearMap(at.domain, at.codomain, _tried(at, "f'", written), at.dtype, at.source)


def _tried(at: TermPoint | Point, what: str, written: Callable[[], Program]) -> Any:
    """A linear program to be written when it is needed; the first time for a trace it is written at once, so that what has no derivative says so."""
    key = ("tried", what, tuple(at.moving or ()))
    if isinstance(at, Point) and key in at.record.derived:
        return written
    program = written()
    if isinstance(at, Point):
        at.record.derived[key] = True
    return program


def _owned(at: TermPoint | Point, values: list[Any], tape: Program) -> list[Any]:
    """The values for the caller: the linear map keeps its own."""
    if isinstance(at, TermPoint):
        return [x.copy() if isinstance(x, np.ndarray) and id(cast(object, x)) in tape.held else x for x in values]
    return owned(values, at.record.outputs, at.record.held | tape.held, at.leaves)


def linearize_adjoint(f: Any, *args: Any, space: Space | None = None, **kwargs: Any) -> tuple[Any, LinearMap]:
    """f^[1r](x): the value f(x) and the adjoint derivative f'(x)* : W ⊸ V (Figure 2): the linear steps f^[1] writes, read from the end.

    >>> import riesz as rz
    >>> y, A = rz.linearize_adjoint(lambda x: x**2, 3.0)
    >>> A(1.0)
    6.0
    """
    y, L = linearize(f, *args, space=space, **kwargs)
    return y, L.H


def value_and_grad(
    f: Any, argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, space: Space | None = None, factored: bool = False
) -> Callable[..., Any]:
    """A function that gives f(x) and ∇f(x) = f'(x)*(1); see `grad`. With `has_aux`, f gives (value, aux), and so does the first component.

    >>> import riesz as rz
    >>> rz.value_and_grad(lambda x: x**2)(3.0)
    (9.0, 6.0)
    """
    return Gradient(f, argnums, has_aux, space, factored)


class Gradient(Derived):
    """What `value_and_grad` gives."""

    what = "value_and_grad"

    def __init__(self, f: Any, argnums: Any, has_aux: bool, space: Space | None, factored: bool) -> None:
        f = f if isinstance(f, Arrow) else as_function(_callable(f))
        super().__init__(self.what, f)
        self.argnums, self.has_aux, self.space, self.factored = argnums, has_aux, space, factored
        self.era = object()
        self._quick: Any = other, (), self.era, self  # generated code, for small functions: see `graded`

    def recipe(self) -> Any:
        return type(self), (self.function, self.argnums, self.has_aux, self.space, self.factored)

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
        f, argnums, space, has_aux = self.function, self.argnums, self.space, self.has_aux
        at = _point(f, args, kwargs, 0 if argnums is None else argnums, space, has_aux, "a gradient")
        into_reals(at.codomain, at.name)
        if self.factored:
            return _factored(at, argnums, len(args))
        if at.home is not None:
            found = at.gradient_value()
            return at.wrap(at.value()), _chosen(found, argnums, len(args)) if isinstance(at, TermPoint) else found
        code = _small(at, f, lambda *args, **kwargs: self.both(args, kwargs)) if isinstance(at, Point) and space is None else None
        if code is not None and (known := code[0](args)) is not OTHER:
            self._quick = code
            return known
        values, found, kept = _both(at)
        known = [NUMBERS.zeros(leaf.shape) if c is None else c for c, leaf in zip(found, at.domain.leaves, strict=True)]
        raised = at.domain.metric(known, inverse=True)
        given = at.inputs
        guard(at.program, given, [*values, *raised])
        if isinstance(at, TermPoint):
            return at.wrap(values), _chosen(at.domain.wrap(raised, [id(x) for x in (*at.leaves, *values)]), argnums, len(args))
        held = at.record.held | kept
        given = [*at.leaves, *given]
        return at.wrap(owned(values, at.record.outputs, held, given)), at.presented(owned(raised, at.avals, held, given))


class GradientAlone(Gradient):
    """What `grad` gives."""

    what = "grad"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # once more, not a call of the other: a call of half a microsecond has no room for two
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


def _both(at: TermPoint | Point) -> tuple[list[Any], list[Any], set[int]]:
    """f(x), f'(x)*(1), and the identities of the arrays that were coefficients on the way."""
    if isinstance(at, Point) and (found := at.swept()) is not None:
        return *found, set[int]()
    values, tape = at.affine() if isinstance(at, TermPoint) else at.affine(keep=False)
    return values, reverse_numbers(tape, [one_of(values[0])]), tape.held


def _small(at: Point, f: Function, both: Callable[..., Any]) -> Any:
    """Generated code for value and gradient of a small function, once for each trace; None where there is none."""
    key, known = ("small", tuple(at.moving), at.single, at.has_aux), at.record.derived
    if key not in known:
        from .backends.called import graded

        known[key] = None if at.has_aux or not at.leaves else graded(f, at.given, at.record, both)
    return known[key]


def _factored(at: TermPoint | Point, argnums: Any, count: int) -> tuple[Any, Any]:
    """The value and the gradient, whose arrays are `Factored`; numbers stay numbers."""
    if at.home is not None:
        raise SpaceError(f"factored=True inside a function that is being traced: the gradient of {at.name} is an array there; leave it out")
    at.settle()
    term = isinstance(at, TermPoint)
    leaves = at.leaves if term else numbers_of(at.leaves)
    dtypes = [at.dtype] * len(at.domain.leaves) if term else [a.dtype for a in at.avals]
    from .maps.factoring import planned

    values, found = planned(at.gradient(), at.program()).at(leaves, dtypes)
    factors = [a for G in found for t in G.terms for a, _ in t.factors]
    guard(at.program, at.leaves, [*values, *factors])
    shown = [G if G.shape else float(G.to_dense()) if G.dtype == float else G.to_dense()[()] for G in found]
    if term:
        return at.wrap(values), _chosen(build(at.domain.code, shown, lambda branch, parts: branch.make(parts)), argnums, count)
    return at.wrap(owned(values, at.record.outputs, at.record.held, [*at.leaves, *factors])), at.presented(shown)


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


def grad(
    f: Any, argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, space: Space | None = None, factored: bool = False
) -> Callable[..., Any]:
    """∇f, the gradient of a function into ℝ: the Riesz representative of f'(x) in the inner product of f's domain.

    With several arguments, the gradient in the first (or those in `argnums`); with one, the gradient in all of it.
    `space` gives the domain another inner product. With `has_aux`, f gives (value, aux) and ∇f (gradient, aux).
    With `factored`, its arrays are not multiplied out: Σ u ⊗ v for matrices, a few rows for gathers (see `Factored`).
    An array that holds one number, of shape (1,) or (1, 1), is that number; of functions with larger results take `jacobian`.

    >>> import numpy as np, riesz as rz
    >>> rz.grad(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> x, y = rz.proj(0), rz.proj(1)
    >>> f = rz.ln @ x + x * y - rz.sin @ y
    >>> rz.grad(f)((2.0, 5.0))[0]
    5.5
    """
    return GradientAlone(f, argnums, has_aux, space, factored)


class Maps(Derived):
    """What `jacobian` and `hessian` give: functions into LinearMaps."""

    gives_maps = True

    def __init__(self, what: str, f: Any, argnums: Any, has_aux: bool, space: Space | None) -> None:
        super().__init__(what, f if isinstance(f, Arrow) else as_function(_callable(f)))
        self.what, self.argnums, self.has_aux, self.space = what, argnums, has_aux, space

    def recipe(self) -> Any:
        return Maps, (self.what, self.function, self.argnums, self.has_aux, self.space)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        at = _jacobian_at if self.what == "jacobian" else _hessian_at
        return at(self.function, args, kwargs, self.argnums, self.has_aux, self.space)


def jvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    """f(x) and f'(x)(dx); with `has_aux`, f gives (value, aux), and aux comes third.

    >>> import riesz as rz
    >>> rz.jvp(rz.power(2), (3.0,), (1.0,))
    (9.0, 6.0)
    """
    if not isinstance(cast(Any, primals), tuple) or not isinstance(cast(Any, tangents), tuple):
        raise VectorError("jvp takes a tuple of arguments and a tuple of differentials: jvp(f, (x,), (dx,))")
    if isinstance(f, Arrow) and not any_traced((primals, tangents)):
        return _dual(f, primals, tangents)
    if len(primals) != len(tangents):
        raise VectorError(f"jvp: {len(primals)} arguments and {len(tangents)} differentials; one differential per argument is due")
    at = _point(f, primals, {}, tuple(range(len(primals))), None, has_aux, "a derivative")
    y, L = _linearized(at, keep=False)
    if isinstance(at, TermPoint):
        moved = L(*tangents)
    elif L.traced or any_traced(tangents):
        moved = of_types(L(tuple(tangents)), at.record.outputs[: at.main])
    else:
        given = at.domain.open(tuple(tangents))
        moved = at.main_value(owned(L.apply(given), at.record.outputs[: at.main], L.held, given))
    return (y[0], moved, y[1]) if has_aux else (y, moved)


def _dual(f: Arrow, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Forward mode of a combinator, by dual numbers."""
    at = TermPoint(f, primals, None)
    moves = at.domain.open(as_element(tangents, at.domain))
    duals = [DualNumber(v, d) for v, d in zip(at.leaves, moves, strict=True)]
    result = leaves_of(interpret(at.term, at.domain.tree(duals), Dual()))
    values, moved = [r.value for r in result], [r.differential for r in result]
    return at.wrap(values), at.codomain.wrap(moved, [id(x) for x in (*at.leaves, *moves, *values)])


def vjp(f: Any, *primals: Any, has_aux: bool = False) -> Any:
    """f(x) and the function w ↦ f'(x)*(w); of a Python function it gives one cotangent per argument, as a tuple, as in JAX.

    >>> import riesz as rz
    >>> y, back = rz.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> y, back(1.0)
    (6.0, (3.0, 2.0))
    """
    every = None if isinstance(f, Arrow) else tuple(range(len(primals)))
    at = _point(f, primals, {}, every, None, has_aux, "a derivative")
    if at.home is None:
        at.leaves = held(at.leaves)  # the arguments may change before `back` is called
    y, L = _linearized(at, keep=False)

    def back(w: Any) -> Any:
        if isinstance(at, TermPoint):
            return L.H(w)
        if L.traced or any_traced(w):
            return of_types(L.H(w), at.avals)
        given = at.codomain.open(w)
        return at.presented(owned(L.H.apply(given), at.avals, L.H.held, given))

    return (y[0], back, y[1]) if has_aux else (y, back)


def jacobian(f: Any, argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, space: Space | None = None) -> Callable[..., Any]:
    """f', the derivative as a function that gives LinearMaps.

    Of a Python function of several arguments, the derivative in the first, or those in `argnums`, as in JAX; of a combinator in all together.

    >>> import riesz as rz, numpy as np
    >>> x = rz.proj
    >>> f = rz.fork(x(0) + x(1), x(0) * x(2))
    >>> rz.jacobian(f)((4.0, 0.0, -2.0)).to_dense()
    array([[ 1.,  1.,  0.],
           [-2.,  0.,  4.]])
    """
    return Maps("jacobian", f, argnums, has_aux, space)


def _jacobian_at(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any, has_aux: bool, space: Space | None) -> Any:
    if isinstance(f, Arrow):
        return _term_jacobian(f, args, argnums, space)
    here = _point(f, args, kwargs, 0 if argnums is None else argnums, space, has_aux, "a derivative")
    if not has_aux and here.home is None:
        return _derivative(here)
    y, L = _linearized(here)
    return (L, y[1]) if has_aux else L


def _term_jacobian(f: Arrow, args: tuple[Any, ...], argnums: Any, space: Space | None) -> Any:
    _, L = linearize(f, *args, space=space)
    if argnums is None or len(args) == 1:
        return L
    if isinstance(argnums, tuple) or not -len(args) <= argnums < len(args):
        raise SpaceError(f"argnums={argnums!r}: jacobian takes the number of one of {len(args)} arguments, or None for all")
    return L @ Inject(L.domain, int(argnums) % len(args))


def dual(v: Any, space: Space | None = None) -> LinearMap:
    """dual(v) = (⊙ v) : V ⊸ ℝ, the covector of a vector (§6).

    >>> import riesz as rz, numpy as np
    >>> rz.dual(np.array([1.0, 2.0]))(np.array([3.0, 4.0]))
    11.0
    """
    traced = any_traced(v)
    V = space if space is not None else traced_space(v) if traced else space_of(v)
    if traced:
        return TracedMap(V, R, Source(lower(Inner(V)), fixed(opened(V, v))))  # ⊙ is symmetric
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


def hessian(f: Any, argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, space: Space | None = None) -> Callable[..., Any]:
    """∇²f, the derivative of the gradient, as a function that gives LinearMaps V ⊸ V; `argnums` as for `jacobian`.

    >>> import riesz as rz
    >>> rz.hessian(rz.proj(0) * rz.proj(1))((2.0, 3.0)).to_dense()
    array([[0., 1.],
           [1., 0.]])
    """
    return Maps("hessian", f, argnums, has_aux, space)


def _hessian_at(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any, has_aux: bool, space: Space | None) -> Any:
    here = _point(f, args, kwargs, 0 if argnums is None else argnums, space, has_aux, "a Hessian")
    L = _second(here)
    return (L, here.wrap(here.value())[1]) if has_aux and isinstance(here, Point) else L


def _second(at: TermPoint | Point) -> Any:
    """The derivative of the gradient."""
    if at.home is None:
        at.settle()
    gradient = at.gradient()
    facts = ("symmetric",) if at.domain.plain else ()
    if at.home is not None:
        return TracedMap(at.domain, at.domain, at.derived_from(gradient), at.gradient_dtype, facts)
    at.leaves = held(at.leaves if isinstance(at, TermPoint) else numbers_of(at.leaves))

    def written() -> Program:
        with np.errstate(all="ignore"):
            return kept(affine_program(gradient, at.leaves, at.moving)[1])

    return LinearMap(at.domain, at.domain, _tried(at, "∇²f", written), at.gradient_dtype, lambda: at.derived_from(gradient), facts)


def hvp(f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """∇²f(x)(dx); with several arguments, that of f on their direct sum, as a tuple.

    >>> import riesz as rz
    >>> rz.hvp(lambda x: x**3, (2.0,), (1.0,))
    12.0
    """
    if isinstance(f, Arrow):
        return hessian(f)(*primals)(*tangents)
    if not isinstance(cast(Any, primals), tuple) or not isinstance(cast(Any, tangents), tuple) or len(primals) != len(tangents):
        raise VectorError("hvp takes a tuple of arguments and a tuple of as many differentials: hvp(f, (x,), (dx,))")
    at = _point(f, primals, {}, 0 if len(primals) == 1 else tuple(range(len(primals))), None, False, "a Hessian")
    assert isinstance(at, Point)
    L = _second(at)
    if L.traced or any_traced(tangents):
        return of_types(L(*tangents), at.avals)
    given = at.domain.open(as_element(tangents, at.domain))
    return at.presented(owned(L.apply(given), at.avals, L.held, given))


def derive(f: Any, *spaces: Space) -> Derivation:
    """The symbolic derivation of f: value, derivative and adjoint for every point at once.

    Several spaces are the spaces of several arguments; none are needed where f has a domain already.

    >>> import riesz as rz
    >>> D = rz.derive(rz.ln @ rz.sin)
    >>> D.derivative(1.0)(1.0) == rz.grad(rz.ln @ rz.sin)(1.0)
    True
    """
    term = typed(f, *spaces)
    if isinstance(f, Arrow):
        return Derivation(term)
    python = as_function(_callable(f))
    record, given = python.record_at(spaces)
    settled = record.settled()
    return Derivation(term, argument_names(python.function), lambda leaves: named_arrays(python.function, given.owners, leaves, settled))


def argument_names(f: Any) -> tuple[str, ...] | None:
    """The names of a Python function's arguments, where they can be known."""
    try:
        return tuple([p.name for p in inspect.signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
    except (TypeError, ValueError):
        return None


def typed(f: Any, *spaces: Space) -> Term:
    """A function as a term with the given domain; a Python function is traced there."""
    for s in spaces:
        if not isinstance(cast(Any, s), Space):
            raise SpaceError(f"expected a space, such as rz.R ** rz.seg(3); got {s!r} (rz.space_of(value) is the space of a value)")
    if not isinstance(f, Arrow):
        return _term_of(as_function(_callable(f)), spaces)
    if not spaces:
        if not isinstance(f, Term):
            raise SpaceError(f"{f} fits many spaces: say which, as in derive(f, rz.R ** rz.seg(3))")
        return f
    return fit(f, spaces[0] if len(spaces) == 1 else direct_sum(*spaces))


def _term_of(f: Function, spaces: tuple[Space, ...]) -> Term:
    """A Python function in combinatory form."""
    from .programs.terms import to_term
    from .syntax.functions import result_space
    from .terms.open import bridged

    if not spaces:
        raise SpaceError(f"{f.name} is a Python function: say at which spaces, as in derive(f, rz.R ** rz.seg(3))")
    record = f.record_at(spaces)[0].settled()
    codomain = result_space(record, "a derivative")
    term = to_term(record.program)
    domain = spaces[0] if len(spaces) == 1 else direct_sum(*spaces)
    inner = term if term.domain is domain else bridged(domain, term.domain)
    whole = term if inner is term else term @ inner
    return whole if whole.codomain is codomain else bridged(whole.codomain, codomain) @ whole
