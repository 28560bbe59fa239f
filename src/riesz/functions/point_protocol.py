"""A function at a point, whatever it was written in: what `grad`, `jacobian`, … ask of it.

The arguments are numbers, or arrays of a trace (`home`). Both answer the same questions: a value, a map or a gradient
is computed at numbers, and written into the trace at traced arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..calculus.derive import Derivative, affine_program, derive_program, one
from ..calculus.domain_check import guard
from ..calculus.interpretation.product_rules import metric
from ..calculus.linearity import linear_program
from ..errors import SpaceError
from ..maps.instances import Instance, held, kept
from ..maps.leaves import IN_TRACES
from ..maps.linear_map import LinearMap
from ..programs.passes.fusing import in_order
from ..programs.program import Constant, Program, outputs
from ..programs.sub_programs import Loop
from ..spaces.layout import INVERSE
from ..spaces.space import Copower, R, Space
from ..tracing.traced import Trace

EACH = "each"
"""As argnums: all arguments, each for itself, as in `jvp` and `vjp`. None stands for all of them together."""


class AnyPoint(Protocol):
    """A function at a point: `TermPoint` of a combinator, `FunctionPoint` of a Python function."""

    domain: Space
    """Of the arguments differentiated in."""
    codomain: Space
    leaves: list[Any]
    """The array leaves of all arguments."""
    home: Trace | None
    """The innermost trace among the leaves, None where all are numbers."""
    moving: list[bool]
    """Which inputs of the program are differentiated in."""
    main: int
    """How many outputs of the program are the value; the others are auxiliary."""

    # -- what each kind of function says for itself --------------------------------------------------------

    @property
    def name(self) -> str: ...  # the function's, for errors
    @property
    def derived(self) -> dict[Any, Any]: ...  # what was made of the program already; it lives as long as the program
    @property
    def inputs(self) -> list[Any]: ...  # what the program is run on: the leaves, and arrays from outside
    @property
    def held(self) -> set[int]: ...  # the identities of arrays that somebody else holds: as results they are copied
    @property
    def dtype(self) -> Any: ...  # that of f': float32 where arguments and results are, or less
    @property
    def gradient_dtype(self) -> Any: ...  # that of the arguments differentiated in: a gradient has their types
    @property
    def gradient_dtypes(self) -> list[Any]: ...  # the same for each leaf of the domain

    def program(self) -> Program: ...  # f as a program of `inputs`, with its auxiliary outputs
    def value(self) -> list[Any]: ...  # the outputs, auxiliary ones included
    def gradient_value(self) -> Any: ...  # ∇f(x) as the user sees it, in the trace
    # f(x), or (f(x), aux), for the caller; `held` (`self.held` if None): numbers that are copied
    def wrap(self, values: list[Any], held: set[int] | None = None) -> Any: ...
    def main_value(self, leaves: Sequence[Any]) -> Any: ...  # leaves of the codomain → the containers of the value
    def presented(self, leaves: Sequence[Any]) -> Any: ...  # leaves of the domain → the containers of the arguments
    def vector(self, leaves: list[Any], held: set[int]) -> Any: ...  # the same for numbers that the caller may keep
    # L(dx) for a map from the domain to the codomain, or (`arguments`) to the domain itself
    def pushed(self, L: LinearMap, tangents: tuple[Any, ...], arguments: bool = False) -> Any: ...
    def pullback(self, L: LinearMap) -> Callable[[Any], Any]: ...  # w ↦ L*(w), which can be pickled, for such a map
    def at(self, program: Program) -> Instance: ...  # a program of the leaves and a vector, at this point

    def code(self) -> Any:
        """Generated code for value and gradient, and what it depends on; None where there is none."""
        return None

    # -- what follows from it ------------------------------------------------------------------------------

    def settle(self, keep: bool = True) -> None:
        """From now on with the numbers that arrays have now: a map is made, and they may change later. Without `keep`
        it is used at once.

        Traced arrays are settled when a map takes them (`leaves.fixed`)."""
        if keep and self.home is None:
            self.leaves = held(self.leaves)

    @property
    def plain(self) -> Program:
        """The program of the value alone."""
        program = self.program()
        if self.main == len(program.outputs):
            return program
        return program.prune(program.inputs, program.outputs[: self.main])

    def known(self, what: Any, make: Callable[[], Any]) -> Any:
        """What is made once for each program and choice of arguments."""
        key, derived = (what, tuple(self.moving), self.main), self.derived
        if key not in derived:
            derived[key] = make()
        return derived[key]

    def affine(self, keep: bool = True) -> tuple[list[Any], Program]:
        """f^[1]: the outputs, and f'(x) as a linear program with its numbers. In a trace that is empty: maps are
        computed by their family.

        Without `keep` the linear program is used at once."""
        if self.home is not None:
            return self.value(), Program()
        values, tape = affine_program(in_order(self.program()), self.inputs, self.moving, keep=keep)
        tape.outputs = tape.outputs[: self.main]
        guard(self.program, self.inputs, [*values, *[op.value for op in tape.ops if type(op) is Constant]])
        return values, kept(tape) if keep else tape

    def both(self) -> Program:
        """x ↦ (f(x), ∇f(x)) as a program: derived, transposed, at dy = 1, in the inner product of the domain."""
        into_reals(self)
        make = lambda: at_one(derive_program(in_order(self.plain), self.moving), self.domain)  # noqa: E731
        return self.known(("f, ∇f", self.domain), make)

    def gradient(self) -> Program:
        """∇f as a program."""

        def made() -> Program:
            both = self.both()
            return both.prune(both.inputs, both.outputs[self.main :])

        return self.known(("∇f", self.domain), made)

    def instance(self) -> Instance:
        """f' at this point, as an instance of its family."""
        return self.at(self.known("f'", lambda: derive_program(self.plain, self.moving).derivative))

    def second(self) -> Instance:
        """∇²f at this point, as an instance of its family."""
        make = lambda: derive_program(self.gradient(), self.moving).derivative  # noqa: E731
        return self.at(self.known(("∇²f", self.domain), make))

    def linear_map(
        self,
        what: str,
        codomain: Space,
        dtype: Any,
        written: Program | Callable[[], Program],
        instance: Callable[[], Instance],
        facts: Iterable[str] = (),
    ) -> LinearMap:
        """A linear map at this point: at numbers by a linear program, at traced arrays by the family it is an instance
        of.

        What writes the program is asked at once the first time, so that what has no derivative says so; at later points
        when the map is first applied, and where an array stands for a shape only (one number, everywhere). `what` says
        which family it is."""
        if self.home is not None:
            now = instance()  # at the point as it is now
            return LinearMap(self.domain, codomain, None, dtype, lambda: now, facts, leaves=IN_TRACES)
        tried, key = self.derived.setdefault("tried", set()), (what, tuple(self.moving))
        known = [isinstance(x, np.ndarray) and _shape_only(x) for x in self.leaves]
        first = None if isinstance(written, Program) or key in tried or any(known) else written()
        found = LinearMap(self.domain, codomain, written, dtype, instance, facts)
        if first is not None:
            found.program = linear_program(first)
            tried.add(key)
        found.rolled = any([isinstance(op, Loop) for op in self.program().ops])
        return found


def one_number(W: Space) -> bool:
    """Whether a space is ℝ, or of arrays that hold one number, of shape (1,) or (1, 1)."""
    return W is R or (W.dim == 1 and W.plain and isinstance(W, Copower) and W.base is R)


def into_reals(at: AnyPoint) -> None:
    """Gradients are of functions into ℝ."""
    W = at.codomain
    if not one_number(W):
        advice = "jacobian takes any codomain, np.sum makes one number"
        raise SpaceError(f"a gradient needs a function into ℝ; {at.name} ends in {W} ({advice})")


def at_one(parts: Derivative, domain: Space) -> Program:
    """x ↦ (f(x), f'(x)*(1)), the second in the inner product of the domain."""
    fixed, reverse = Program(), parts.reverse
    xs = [fixed.input(reverse.shapes[s]) for s in reverse.inputs[:-1]]
    found = outputs(reverse, fixed, [*xs, fixed.const(one(reverse.shapes[reverse.inputs[-1]]))])
    values, slots = found[: parts.outputs], found[parts.outputs :]
    return fixed.prune(xs, [*values, *metric(slots, domain, INVERSE, fixed)])


def argument_numbers(argnums: Any, count: int, f: Any) -> list[int]:
    """The positions of the arguments that argnums names."""
    several: Any = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    if len(set(several)) < len(several):
        raise SpaceError(f"argnums={argnums!r} names an argument twice")
    for a in several:
        if isinstance(a, bool) or not isinstance(a, (int, np.integer)):
            raise SpaceError(f"argnums={argnums!r}: the number of an argument, or a tuple of them, is due")
        if not -count <= a < count:
            arguments = f"{count} argument{'s' if count != 1 else ''}"
            raise SpaceError(f"argnums={argnums!r}, but {f} was called with {arguments} by position")
    return [int(a) % count for a in several]


def in_turn(moving: Sequence[int], count: int) -> tuple[int, ...]:
    """argnums=(1, 0): leaves in an order in which those differentiated in come as asked for."""
    order = list(range(count))
    for at, k in zip(sorted(moving), moving, strict=True):
        order[at] = k
    return tuple(order)


def _shape_only(x: Any) -> bool:
    return x.size > 1 and not any(x.strides)
