"""Functions with a derivative of their own: `custom_derivative`, whose derivative is given as a linear map, its adjoint
derived or given."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, cast, overload

import numpy as np

from ..errors import TraceError
from ..ops.opaque import Get, Ruled, Smooth
from ..runtime import tuning
from ..tracing.argument_trees import ONE_LEAF, Tree, flatten, unflatten
from ..tracing.differentials import plus
from ..tracing.surroundings.outside import OUTSIDE, everything
from ..tracing.surroundings.watching import changed
from ..tracing.traced import Traced, holds_traced, slot_of, trace_of
from .remade import Remade
from .traces.given import Given
from .traces.records import Aval


class CustomDerivative(Remade):
    """A function with its derivative; see `custom_derivative`."""

    def __init__(self, function: Callable[..., Any], derivative: Any, adjoint: Any, result: Any = None) -> None:
        update_wrapper(self, function)
        self.function = function
        self.result = result
        self.name: str = getattr(function, "__name__", "f")
        self.rule: Callable[..., Any] | None = derivative
        self.turned: Callable[..., Any] | None = adjoint
        self._ops: dict[Any, Any] = {}
        self._rows: list[Any] = []  # what they depend on

    def derivative(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the derivative: rule(*args) is the linear map dx ↦ dy there. A decorator."""
        self.rule = rule
        self._ops.clear()
        return rule

    def adjoint(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the adjoint: rule(*args) is the linear map dy ↦ dx there, a tuple for several. A decorator."""
        self.turned = rule
        self._ops.clear()
        return rule

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                names = ", ".join(bound.kwargs)
                raise TraceError(
                    f"{self.name} has arguments by keyword only ({names}); custom derivatives go by position"
                )
            args = bound.args
        leaves, _ = flatten(args)
        if not any([holds_traced(x) for x in leaves]):
            return self.function(*args)
        given = Given((args,), {}, frozenset())
        self._look()
        if given.key not in self._ops:
            self._ops[given.key] = self._op(given)
            if len(self._ops) > tuning.TRACES_KEPT:
                del self._ops[next(iter(self._ops))]
        op, avals, result = self._ops[given.key]
        trace = trace_of(*leaves)
        slot = trace.step(op, [slot_of(trace, x, a.dtype) for x, a in zip(given.arrays, given.avals, strict=True)])
        found = [Traced(trace, trace.step(Get(i), (slot,)), a.dtype) for i, a in enumerate(avals)]
        return unflatten(result, list(found))

    def _look(self) -> None:
        """Forget what was made of the rules once something they use is another; the trace around depends on it too."""
        around = OUTSIDE.get()
        if around is not None:
            around.made = True
        if not self._ops or changed(self._rows):
            self._ops.clear()
            self._rows = everything(*[f for f in (self.function, self.rule, self.turned) if f is not None])

    def recipe(self) -> Any:
        return CustomDerivative, (self.function, self.rule, self.turned, self.result)

    def __repr__(self) -> str:
        return f"rz.custom_derivative({self.name})"

    # -- the op ------------------------------------------------------------------------------------------

    def _op(self, given: Given) -> tuple[Ruled, list[Aval], Tree]:
        """The function at arguments of this kind as one op with several results."""
        if self.rule is None:
            above = f"write @{self.name}.derivative above a function that gives dx ↦ dy at its arguments"
            raise TraceError(f"{self.name} has no derivative yet: {above}")
        leaves, tree = flatten(self._example(given))
        avals = [Aval(np.shape(x), np.asarray(x).dtype, False) for x in leaves]
        shapes = tuple([a.shape for a in avals])

        def array(*xs: Any) -> Any:
            found, form = flatten(self.function(*_numbers(given, xs)))
            if form != tree or tuple([np.shape(x) for x in found]) != shapes:
                forms = f"{_shown(found, form)} here, but {_shown(avals, tree)} for other arguments of the same shapes"
                raise TraceError(f"{self.name} gives {forms}; give results of one form")
            return tuple([np.asarray(x).astype(a.dtype, copy=False) for x, a in zip(found, avals, strict=True)])

        differential = partial(self._differential, given, tree)
        return Ruled(_opaque(self.name, array, shapes, differential)), avals, tree

    # Note [Examples]: the function is code of its own, so the form of its result is learned by calling it, with
    # numbers. The best numbers are those it will be called with: the values of its arguments at the point where the
    # calling function is traced. Where they are not known (the trace is at a space), or are not those it will get (a
    # branch not taken, a loop's first round), it may fail there; then others are tried.
    def _example(self, given: Given) -> Any:
        """A result at arguments of this kind."""
        if callable(self.result):
            return self.result(*_numbers(given, [np.zeros(a.shape, a.dtype) for a in given.avals]))
        if self.result is not None:
            return self.result
        problems: list[Exception] = []
        for number in (None, 1.0, 0.5, 0.0):
            found = [np.full(a.shape, 0.0 if number is None else number) for a in given.avals]
            if number is None:
                try:
                    found = [x.home.number(x.slot) if type(x) is Traced else np.asarray(x) for x in given.arrays]
                except Exception:  # not known
                    continue
            try:
                with np.errstate(all="ignore"):
                    return self.function(*_numbers(given, found))
            except Exception as problem:
                problems.append(problem)
        raise TraceError(
            f"{self.name} fails wherever it was tried, so the shapes of its result are not known "
            f"({type(problems[0]).__name__}: {problems[0]}); "
            f"say what it gives: rz.custom_derivative({self.name}, result=0.0), or result=lambda x: np.zeros(len(x))"
        ) from problems[0]

    def _differential(self, given: Given, tree: Tree, dxs: Sequence[Any], ys: Any, *xs: Any) -> Any:
        if self.turned is not None:
            parts = [self._turned(given, tree, k, xs, d, ys) for k, d in enumerate(dxs) if d is not None]
            return (plus(*parts),)
        moves = [np.zeros(x.shape) if d is None else d for d, x in zip(dxs, xs, strict=True)]
        found = self._moved(self.rule, given, xs, moves)
        shapes = [np.shape(d) for d in found], [y.shape for y in ys]
        if shapes[0] != shapes[1]:
            gives = f"gives arrays of shapes {shapes[0]}, but its value has {shapes[1]}"
            raise TraceError(f"the derivative of {self.name} {gives}")
        return tuple(found)

    def _moved(self, rule: Any, given: Given, xs: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        """The leaves of dy, by the user's linear map at some arguments."""
        linear, moves = rule(*_arguments(given, xs)), _differentials(given, dxs)
        if callable(linear):
            if isinstance(linear, types.FunctionType):
                try:
                    inspect.signature(linear).bind(*moves)
                except TypeError as problem:
                    due = "for each argument that holds floats (integers, texts and the like only steer and have none)"
                    raise TraceError(
                        f"the derivative of {self.name} takes a differential {due}: {len(moves)} here; its function "
                        f"does not ({problem})"
                    ) from None
            return flatten(linear(*moves))[0]
        if len(moves) == 1 and hasattr(linear, "shape") and np.ndim(linear) == 2:
            return flatten(linear @ moves[0])[0]
        kinds = "a function, a LinearMap, a combinator or a matrix"
        raise TraceError(f"the derivative of {self.name} must be a linear map dx ↦ dy: {kinds}; got {linear!r}")

    def _turned(self, given: Given, tree: Tree, k: int, xs: Sequence[Any], d: Any, ys: Any) -> Any:
        """dx_k ↦ dy, with the adjoint as given: an op linear in its last argument whose transpose is the user's."""
        if len(ys) > 1:
            one = "with a given adjoint one array is due (leave the adjoint out and it is derived)"
            raise TraceError(f"{self.name} has several results; {one}")
        rule, turned = self.rule, cast(Any, self.turned)

        def forward(*values: Any) -> Any:
            *point, move = values
            moves = [move if j == k else np.zeros(np.shape(x)) for j, x in enumerate(point)]
            return self._moved(rule, given, point, moves)[0]

        def backward(*values: Any) -> Any:
            *point, cotangent = values
            found = flatten(turned(*_arguments(given, point))(unflatten(tree, [cotangent])))[0]
            return found[k] if len(given.trees[0]) > 2 or len(point) > 1 else found[0]

        def second(dxs: Sequence[Any], y: Any, *values: Any) -> Any:
            from .directional import jvp

            moves = [np.zeros(np.shape(v)) if m is None else m for v, m in zip(values, dxs, strict=True)]
            return jvp(forward, tuple(values), tuple(moves))[1]

        def unknown(*given: Any) -> Any:
            own = "was given as code of its own, so it has no further derivative; leave it out to have it derived"
            raise TraceError(f"the adjoint of {self.name} {own}")

        back = _opaque(f"{self.name}*", backward, np.shape(d), unknown)
        forth = _opaque(f"{self.name}'", forward, ys[0].shape, second)
        back.transpose, forth.transpose = lambda k: Ruled(forth), lambda k: Ruled(back)
        trace = trace_of(d, *xs)
        slots = [slot_of(trace, x, x.dtype) for x in (*xs, d)]
        return Traced(trace, trace.step(Ruled(forth), slots), d.dtype)


def _opaque(name: str, array: Callable[..., Any], shapes: Any, differential: Any) -> Smooth:
    """A user's own code as an op: called with numbers, one at a time."""
    return Smooth(name, array, lambda *given: shapes, differential, batched=False, ours=False)


def _numbers(given: Given, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with other numbers, of the types given, and the function's own: it may write to them."""
    return _arguments(given, [a.given(np.array(x, a.dtype)) for x, a in zip(arrays, given.avals, strict=True)])


def _shown(leaves: Sequence[Any], tree: Tree) -> str:
    shapes = [np.shape(x) if type(x) is not Aval else x.shape for x in leaves]
    return f"an array of shape {shapes[0]}" if tree == ONE_LEAF else f"{len(leaves)} arrays of shapes {shapes}"


def _arguments(given: Given, arrays: Sequence[Any]) -> tuple[Any, ...]:
    return given.rebuilt(list(arrays))[0][0]


def _differentials(given: Given, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The differentials of the arguments that hold arrays; those that only steer have none."""
    rest = iter(arrays)
    found: list[Any] = []
    for argument in _arguments(given, given.avals):
        leaves, tree = flatten(argument)
        if any([type(x) is Aval for x in leaves]):
            found.append(unflatten(tree, [next(rest) if type(x) is Aval else x for x in leaves]))
    return tuple(found)


@overload
def custom_derivative(
    function: Callable[..., Any], derivative: Any = None, adjoint: Any = None, result: Any = None
) -> CustomDerivative: ...
@overload
def custom_derivative(
    function: None = None, derivative: Any = None, adjoint: Any = None, result: Any = None
) -> Callable[[Callable[..., Any]], CustomDerivative]: ...
def custom_derivative(function: Any = None, derivative: Any = None, adjoint: Any = None, result: Any = None) -> Any:
    """A function with a derivative of its own, given as a linear map: derivative(*args) is the map dx ↦ dy there, a
    Python function of the differentials (traced, so its adjoint is derived), a LinearMap, a combinator or a matrix.
    `adjoint`, if given, is used as it is. Also a decorator.

    The function itself is always called with numbers, whatever it is called from: it may loop, branch, catch errors and
    call compiled code. The shapes of its result are learned by calling it once; where that cannot work, `result` is an
    example of it, or a function of the arguments that gives one.

    >>> import numpy as np, riesz as rz
    >>> @rz.custom_derivative
    ... def safe_sqrt(x):
    ...     return np.sqrt(x)
    >>> @safe_sqrt.derivative
    ... def _(x):
    ...     return lambda dx: 0.5 * dx / np.sqrt(x + 1e-3)
    >>> bool(rz.grad(lambda x: safe_sqrt(x))(0.0) < 20.0)
    True
    """
    if function is None:
        return partial(CustomDerivative, derivative=derivative, adjoint=adjoint, result=result)
    return CustomDerivative(function, derivative, adjoint, result)
