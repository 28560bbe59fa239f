"""f^[1] and f^[1r] over numbers and over symbols, from the one interpreter   (§5.1, §5.2, §6.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from ..ops.domain import SlopedDomain
from ..ops.number_domains import MULTIPLIED, NUMBERS
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import NOT, Discrete, Select
from ..programs.passes.deferring import has_nan
from ..programs.program import Constant, Input, Program, outputs, run
from ..programs.sub_programs import Block
from ..relations.base import frozen
from ..runtime.stackless import quiet
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import Formal, dense
from ..spaces.layout import INVERSE, METRIC
from ..spaces.space import Space
from ..terms.term import Term
from .affine import AffineDomain, Pair, over_symbols
from .interpretation.interpret import interpret
from .interpretation.product_rules import metric
from .interpretation.value_trees import leaves_of
from .reverse import pullback


@quiet
def lower(term: Term) -> Program:
    """A term as a program: its interpretation over symbols."""
    program = Program()
    slots = [program.input(leaf.shape) for leaf in term.domain.leaves]
    result = interpret(term, term.domain.tree(slots), program)
    program.outputs = leaves_of(result)
    return program.prune(slots, program.outputs)


def _finite_steps(tape: Program, known: frozenset[int]) -> bool:
    """Whether the coefficients of all steps of a tape are finite."""
    for op in tape.ops:
        kind = op.__class__
        if kind is Contraction or kind is Input:
            continue
        if kind is Constant:
            if id(op.value) not in known and not _finite(op.value):
                return False
        elif kind is float or kind is Combination:
            if not math.isfinite(op if kind is float else sum(op.coefficients)):
                return False
        elif isinstance(op, Block):  # what is inside has coefficients of its own
            return False
    return True


def _finite(x: Any) -> bool:
    """Whether numbers are finite; large ones may count as infinite, which costs time only."""
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind == "f":
        return math.isfinite(x.dot(x))
    if type(x) is float:
        return math.isfinite(x)
    if type(x) is Formal:
        return all([_finite(t.scale) and all([_finite(f) for f, _ in t.factors]) for t in x.terms])
    if not isinstance(x, (np.ndarray, np.generic)):
        return False
    given = cast(Any, x)
    return math.isfinite(np.add.reduce(given, None)) if given.dtype.kind == "f" else given.dtype.kind in "iub"


def _finite_constants(program: Program) -> frozenset[int] | None:
    """The identities of finite arrays nobody can write to, looked at once; None with programs inside."""

    def make() -> frozenset[int] | None:
        if any([isinstance(op, Block) for op in program.ops]):
            return None
        arrays = [op.value for op in program.ops if type(op) is Constant and type(op.value) is np.ndarray]
        with quietly():
            return frozenset([id(x) for x in arrays if frozen(x) and _finite(x)])

    return program.remembered("_finite", len(program.ops), make)


def _owning(tape: Program, leaves: Sequence[Any]) -> Any:
    """Coefficients of a tape; arrays of the caller are copied once, so writing to them later changes nothing."""
    arrays: list[Any] = [x for x in leaves if isinstance(x, np.ndarray)]
    given = {id(x) for x in arrays if x.flags.writeable}
    if not given:
        return tape.const
    copies: dict[int, tuple[Any, Any]] = {}  # the original is kept too: its identity is the key

    def lift(value: Any) -> int:
        root = value
        while isinstance(root, np.ndarray) and id(cast(object, root)) not in given:
            root = cast(Any, root).base
        if not isinstance(root, np.ndarray):
            return tape.const(value)
        if id(value) not in copies:
            copies[id(value)] = (value, value.copy())
        return tape.const(copies[id(value)][1])

    return lift


@quiet
def affine_program(
    program: Program,
    leaves: Sequence[Any],
    moving: Sequence[bool] | None = None,
    base: SlopedDomain[Any] = NUMBERS,
    keep: bool = True,
) -> tuple[list[Any], Program]:
    """f^[1](x) over numbers: the leaves of f(x), and the linear program of f'(x) with numbers for coefficients.

    `moving` says which inputs the derivative is taken in. Without `keep` the linear program is used at once: it refers
    to the caller's arrays.
    """
    flags = [True] * len(leaves) if moving is None else moving

    def attempt(guards: bool) -> tuple[list[Any], Program]:
        tape = Program(share=False)
        domain = AffineDomain(base, tape, _owning(tape, leaves) if keep else tape.const, guards)
        pairs = [Pair(v, tape.input(base.shape(v)) if f else None) for v, f in zip(leaves, flags, strict=True)]
        slots = run(program, domain, pairs)
        tape.outputs = [domain.wire(slots[s]) for s in program.outputs]
        return [slots[s].value for s in program.outputs], tape

    known = _finite_constants(program)
    if known is not None:  # guards only where a coefficient is not finite (Note [Strong] in ops/op.py)
        values, tape = attempt(False)
        with quietly():
            if _finite_steps(tape, known):
                return values, tape
    return attempt(True)


@quiet
def reverse_numbers(tape: Program, seeds: Sequence[Any]) -> list[Any]:
    """The adjoint of a linear program on numbers: cotangents of its inputs (None for zero)."""
    flags, ops = linear_slots(tape), tape.ops
    with quietly():
        return _exact(lambda guards: pullback(tape, flags, seeds, NUMBERS, lambda s: ops[s].value, guards=guards))


def _exact(cotangents: Callable[[bool], list[Any]]) -> list[Any]:
    """Cotangents computed plainly, and with guards if there is a nan among them (Note [Strong] in ops/op.py)."""
    found = cotangents(False)
    return cotangents(True) if any([has_nan(dense(c)) for c in found if c is not None]) else found


def one(shape: tuple[int, ...]) -> Any:
    """The number one, as an array where it has axes."""
    return np.ones(shape) if shape else 1.0


def one_of(value: Any) -> Any:
    """The number one, in the shape and type of a value that is one number."""
    if type(value) is float:
        return 1.0
    x = dense(value)
    return np.ones(x.shape, x.dtype)[()] if getattr(x, "dtype", None) in (np.float32, np.float16) else one(np.shape(x))


def value_and_cotangents(
    program: Program, leaves: Sequence[Any], moving: Sequence[bool]
) -> tuple[list[Any], list[Any], set[int]]:
    """All outputs of a program, f'(x)*(1) of the first, a number, and the identities of the arrays that were
    coefficients.

    Forward through the program and back. Most programs need no linear program between (`swept`). Loops and other
    people's functions have derivatives that are more than one factor for each argument: they write f'(x) as a linear
    program, which is then read from the end.
    """
    found = swept(program, leaves, moving)
    if found is not None:
        return *found, set[int]()
    values, tape = affine_program(program, leaves, moving, keep=False)
    tape.outputs = tape.outputs[:1]
    return values, reverse_numbers(tape, [one_of(values[0])]), tape.held


_PLAIN = {float, Input, Constant, Elementwise, Combination, Contraction, Reduction, Reshape, Cast, Select, Discrete}
"""Steps that are their own derivatives in each argument, have partial derivatives, or none."""


@quiet
def swept(program: Program, leaves: Sequence[Any], moving: Sequence[bool]) -> tuple[list[Any], list[Any]] | None:
    """All outputs, and the gradient of the first, a number: forward through the program and back, without writing the
    linear program between.

    None for programs with steps (loops, other people's functions) whose derivative takes more than a partial derivative
    at each argument.
    """
    if not {type(op) for op in program.ops} <= _PLAIN:
        return None
    ops, args = program.ops, program.args
    values = run(program, NUMBERS, leaves)
    flags = program.dependent([s for s, f in zip(program.inputs, moving, strict=True) if f], Discrete)

    def partials(slot: int) -> Sequence[Any]:
        op, given = ops[slot], args[slot]
        if type(op) is Select:
            chosen = values[given[0]]
            return None, chosen, NOT.run(chosen)
        return op.primitive.slopes([dense(values[a]) for a in given], dense(values[slot]))

    def cotangents(guards: bool) -> list[Any]:
        get = values.__getitem__
        return pullback(program, flags, seeds, MULTIPLIED, get, partials=partials, guards=guards)

    with quietly():
        found = [values[s] for s in program.outputs]
        seeds = [one_of(found[0]), *[None] * (len(found) - 1)]
        return found, [c for c, f in zip(_exact(cotangents), moving, strict=True) if f]


def linear_slots(tape: Program) -> bytearray:
    """In a linear program everything but constants depends on the inputs."""
    return bytearray([type(op) is not Constant for op in tape.ops])


class Derivative:
    """f^[1] and f^[1r] as programs: `affine` from (x, dx) to (y, dy), `reverse` from (x, dy) to (y, x̄).

    Value and derivative share one program, which is what the paper's let is for; `value`, `derivative`, `adjoint` are
    its parts. `reverse`, the transpose of `affine`, is made when it is asked for.
    """

    def __init__(self, affine: Program, inputs: int, outputs: int) -> None:
        self.affine, self.inputs, self.outputs = affine, inputs, outputs

    @cached_property
    def reverse(self) -> Program:
        """(x, dy) ↦ (y, x̄)."""
        return transpose_linear(self.affine, self.inputs, self.outputs)

    @cached_property
    def value(self) -> Program:
        """x ↦ y."""
        return self.affine.prune(self.affine.inputs[: self.inputs], self.affine.outputs[: self.outputs])

    @cached_property
    def derivative(self) -> Program:
        """(x, dx) ↦ dy."""
        return self.affine.prune(self.affine.inputs, self.affine.outputs[self.outputs :])

    @cached_property
    def adjoint(self) -> Program:
        """(x, dy) ↦ x̄."""
        return self.reverse.prune(self.reverse.inputs, self.reverse.outputs[self.outputs :])


@quiet
def derive_program(program: Program, moving: Sequence[bool] | None = None) -> Derivative:
    """f^[1] over symbols: value and derivative of an n-step program, and on request their adjoint, each with O(n)
    steps.

    `moving` says which inputs the derivative is taken in; the others are parameters.
    """
    domain, inputs, results = over_symbols(program, [True] * len(program.inputs) if moving is None else moving)
    ends = [*[r.value for r in results], *[domain.wire(r) for r in results]]
    return Derivative(domain.tape.prune(inputs, ends), len(program.inputs), len(results))


@quiet
def transpose_linear(
    program: Program,
    inputs: int = 0,
    values: int = 0,
    strong: bool = False,
    marks: list[bool] | None = None,
    masked: bool = False,
) -> Program:
    """The adjoint of a program linear in all inputs after the first `inputs`; these, and the first `values` outputs,
    stay.

    `strong`: nothing reaches the zeros of what it is applied to; `marks`, if given, is told which of its results have
    places that nothing reaches. `masked`: as many inputs more, truth values, say which places of what it is applied to
    are reached.
    """
    flags = program.dependent(program.inputs[inputs:])
    back, place = Program(), dict[int, int]()
    back.copy(program, [s for s, moves in enumerate(flags) if not moves], place)
    fixed = list(back.inputs)
    seeds: list[Any] = back.like(program.outputs[values:], program)
    masks: list[Any] = back.like(program.outputs[values:], program) if masked else []
    every, none = list[bool](), [None] * values
    within = none + masks if masked else None
    found = pullback(program, flags, none + seeds, back, place.__getitem__, strong, every, within)[inputs:]
    if marks is not None:
        marks.extend(every[inputs:])
    shapes = [program.shapes[s] for s in program.inputs[inputs:]]
    outs = [back.zeros(shape) if c is None else c for shape, c in zip(shapes, found, strict=True)]
    return back.prune([*fixed, *seeds, *masks], [*[place[s] for s in program.outputs[:values]], *outs])


def weighted_adjoint(transpose: Program, fixed: int, V: Space, W: Space) -> Program:
    """M_V⁻¹ · Lᵀ · M_W from Lᵀ, whose first `fixed` inputs are the point that L depends on."""
    whole = Program()
    slots = whole.like(transpose.inputs, transpose)
    result = outputs(transpose, whole, [*slots[:fixed], *metric(slots[fixed:], W, METRIC, whole)])
    return whole.prune(slots, metric(result, V, INVERSE, whole))
