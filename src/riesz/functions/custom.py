"""Functions with a derivative of their own: `custom_derivative`, whose derivative is given as a linear map, its adjoint
derived or given."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, overload

import numpy as np

from ..errors import TraceError
from ..ops.opaque import Get, Ruled, Smooth
from ..runtime import tuning
from ..tracing.argument_trees import ONE_LEAF, Tree, flatten, unflatten
from ..tracing.differentials import plus
from ..tracing.surroundings.outside import OUTSIDE, everything
from ..tracing.surroundings.watching import changed
from ..tracing.traced import Traced, holds_traced, slot_of, trace_of
from .function import Aval, Given
from .remade import Remade


class CustomDerivative(Remade):
    """A function with its derivative; see `custom_derivative`."""

    def __init__(
        self,
        function: Callable[..., Any],
        derivative: Callable[..., Any] | None,
        adjoint: Callable[..., Any] | None,
        result: Any = None,
    ) -> None:
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
        """Give the adjoint: rule(*args) is the linear map dy ↦ dx there (a tuple for several arguments). A
        decorator."""
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
                raise TraceError(
                    f"{self.name} has arguments by keyword only ({', '.join(bound.kwargs)}); custom derivatives go "
                    "by position"
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
        """Forget what was made of the rules once an array or a name they use is another; the function being traced
        depends on those too."""
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
            raise TraceError(
                f"{self.name} has no derivative yet: write @{self.name}.derivative above a function that gives dx ↦ "
                "dy at its arguments"
            )
        leaves, tree = flatten(self._example(given))
        avals = [Aval(np.shape(x), np.asarray(x).dtype, False) for x in leaves]
        shapes = tuple([a.shape for a in avals])

        def array(*xs: Any) -> Any:
            found, form = flatten(self.function(*_numbers(given, xs)))
            if form != tree or tuple([np.shape(x) for x in found]) != shapes:
                here, first = _shown(found, form), _shown(avals, tree)
                raise TraceError(
                    f"{self.name} gives {here} here, but {first} for other arguments of the same shapes; give "
                    "results of one form"
                )
            return tuple([np.asarray(x).astype(a.dtype, copy=False) for x, a in zip(found, avals, strict=True)])

        smooth = Smooth(
            self.name, array, lambda *given: shapes, self._differential(given, tree), batched=False, ours=False
        )
        return Ruled(smooth), avals, tree

    # Note [Examples]: the function is code of its own, so the form of its result is learned by calling it, with
    # numbers. The best numbers are those it will be called with: the values of its arguments at the point where the
    # calling function is traced. Where they are not known (the trace is at a space), or are not those it will get (a
    # branch not taken, a loop's first round), it may fail there; then others are tried.
    def _example(self, given: Given) -> Any:
        """A result at arguments of this kind."""
        if self.result is not None:
            return (
                self.result(*_numbers(given, [np.zeros(a.shape, a.dtype) for a in given.avals]))
                if callable(self.result)
                else self.result
            )
        problems: list[Exception] = []
        for number in (None, 1.0, 0.5, 0.0):
            try:
                found = (
                    [np.full(a.shape, number) for a in given.avals]
                    if number is not None
                    else [_at_point(x) for x in given.arrays]
                )
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

    def _differential(self, given: Given, tree: Tree) -> Callable[..., Any]:
        def differential(dxs: Sequence[Any], ys: Any, *xs: Any) -> Any:
            if self.turned is None:
                moved = [np.zeros(x.shape) if d is None else d for d, x in zip(dxs, xs, strict=True)]
                found = flatten(self._applied(given, xs, moved))[0]
                if [np.shape(d) for d in found] != [y.shape for y in ys]:
                    shapes = [np.shape(d) for d in found], [y.shape for y in ys]
                    raise TraceError(
                        f"the derivative of {self.name} gives arrays of shapes {shapes[0]}, but its value has "
                        f"{shapes[1]}"
                    )
                return tuple(found)
            parts = [self._opaque(given, tree, k, xs, d, len(ys)) for k, d in enumerate(dxs) if d is not None]
            return tuple([plus(*column) for column in zip(*parts, strict=True)])

        return differential

    def _applied(self, given: Given, xs: Sequence[Any], dxs: Sequence[Any]) -> Any:
        """dy, by the user's linear map at traced arguments."""
        assert self.rule is not None
        return _applied(self.rule(*_arguments(given, xs)), _differentials(given, dxs), self.name)

    def _opaque(self, given: Given, tree: Tree, k: int, xs: Sequence[Any], d: Any, count: int) -> list[Any]:
        """One summand dx_k ↦ dy, with the adjoint as given: an op linear in its last argument whose transpose is the
        user's."""
        assert self.rule is not None and self.turned is not None
        rule, turned = self.rule, self.turned

        def forward(*values: Any) -> Any:
            *point, move = values
            moves = [move if j == k else np.zeros(np.shape(x)) for j, x in enumerate(point)]
            return tuple(flatten(_applied(rule(*_arguments(given, point)), _differentials(given, moves), self.name))[0])

        def backward(*values: Any) -> Any:
            *point, cotangent = values
            found = turned(*_arguments(given, point))(unflatten(tree, [cotangent]))
            several = len(given.trees[0]) > 2 or len(point) > 1
            return flatten(found)[0][k] if several else flatten(found)[0][0]

        if count > 1:
            raise TraceError(
                f"{self.name} has several results; with a given adjoint one array is due (leave the adjoint out and "
                "it is derived)"
            )
        own = np.shape(d)

        def second(dxs: Sequence[Any], y: Any, *values: Any) -> Any:
            from .directional import jvp

            moves = [np.zeros(np.shape(v)) if m is None else m for v, m in zip(values, dxs, strict=True)]
            return jvp(lambda *v: forward(*v)[0], tuple(values), tuple(moves))[1]

        def unknown(*given: Any) -> Any:
            raise TraceError(
                f"the adjoint of {self.name} was given as code of its own, so it has no further derivative; leave it "
                "out to have it derived"
            )

        shape = self._ops_shape(given, tree)
        back = Smooth(f"{self.name}*", backward, lambda *shapes: own, unknown, batched=False, ours=False)
        forth = Smooth(
            f"{self.name}'",
            lambda *v: forward(*v)[0],
            lambda *shapes: shape,
            second,
            lambda k: Ruled(back),
            batched=False,
            ours=False,
        )
        back.transpose = lambda k: Ruled(forth)
        trace = trace_of(d, *xs)
        slots = [slot_of(trace, x, x.dtype) for x in (*xs, d)]
        return [Traced(trace, trace.step(Ruled(forth), slots), d.dtype)]

    def _ops_shape(self, given: Given, tree: Tree) -> Any:
        return self._ops[given.key][1][0].shape


def _applied(linear: Any, moves: tuple[Any, ...], name: str) -> Any:
    """A user's linear map of differentials."""
    if callable(linear):
        if isinstance(linear, types.FunctionType):
            try:
                inspect.signature(linear).bind(*moves)
            except TypeError as problem:
                raise TraceError(
                    f"the derivative of {name} takes a differential for each argument that holds floats (integers, "
                    f"texts and the like only steer and have none): {len(moves)} here; its function does not "
                    f"({problem})"
                ) from None
        return linear(*moves)
    if len(moves) == 1 and hasattr(linear, "shape") and np.ndim(linear) == 2:
        return linear @ moves[0]
    raise TraceError(
        f"the derivative of {name} must be a linear map dx ↦ dy: a function, a LinearMap, a combinator or a matrix; "
        f"got {linear!r}"
    )


def _at_point(x: Any) -> Any:
    """The number at which an argument is traced."""
    return x.home.number(x.slot) if type(x) is Traced else np.asarray(x)


def _numbers(given: Given, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with other numbers, each of the type it was given in, and the function's own: it may write to
    them."""
    return _arguments(given, [_number(x, a) for x, a in zip(arrays, given.avals, strict=True)])


def _number(x: Any, a: Aval) -> Any:
    array = np.array(x, a.dtype)
    return array if a.shape or a.weak is None else float(array) if a.weak else array[()]


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
