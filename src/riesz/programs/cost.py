"""What one run of a program costs: operations on numbers, and how many numbers it keeps. Both follow from shapes;
nothing is run.

What each op costs is the table `FLOPS`, shown in docs/ops.md. A contraction costs its path: one multiplication for
each index of a pair, two operations where something is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.discrete_fourier import Fourier, RealFourier, Transform
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single
from ..ops.op_rules import OpRules
from ..ops.opaque import ANYWHERE, Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..runtime import displayed
from ..runtime.stackless import Rule, solve
from ..spaces.contraction_order import path
from .program import INPUT, Constant, Program, several
from .sub_programs import Block, Call, Loop

Shape = tuple[int, ...]


class Cost(NamedTuple):
    """`flops`: operations of one run. `numbers`: numbers kept in constants, each array once and repeated axes once;
    positions are not counted."""

    flops: int
    numbers: int

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


def cost(program: Program, since: int = 0) -> Cost:
    """The cost of a program, or of its steps from number `since` on; a while loop counts as one of up to 32 rounds.

    >>> from riesz.ops.op import contraction
    >>> p = Program()
    >>> p.outputs = [p.step(contraction(((0, 1), (1,)), (0,)), (p.const(np.ones((3, 4))), p.input((4,))))]
    >>> cost(p)
    Cost(flops=24, numbers=12)
    """
    kept: dict[int, int] = {}

    def rule(of: Program, first: int) -> Rule:
        total = 0
        for slot in range(first, len(of.ops)):
            op, args = of.ops[slot], of.args[slot]
            if type(op) is Constant:
                kept.update({id(a): _stored(a) for a in op.arrays})
            elif isinstance(op, Block):
                skipped = isinstance(op, Call) and op.fixed and of.ops[args[0]] is ANYWHERE
                if skipped and any([isinstance(f, Loop) for f in op.programs[0].ops]):
                    continue  # a later stage of a while loop: how many rounds there are is not known
                inside: list[int] = []
                for part in op.programs:
                    inside.append((yield part, 0))
                total += max(inside) * (op.length if isinstance(op, Loop) else 1)
            elif op is not INPUT:
                total += flops(op, [of.shapes[a] for a in args], of.shapes[slot])
        return total

    found = solve((program, since), rule)
    return Cost(found, sum(kept.values()))


def result_bytes(program: Program, since: int = 0) -> int:
    """The bytes of all results together, of the steps from number `since` on, each written out in double precision."""
    kept = [s for s in range(since, len(program.ops)) if type(program.ops[s]) is not Reshape]
    return sum([8 * _numbers(program.shapes[slot]) for slot in kept])


def _stored(a: Any) -> int:
    """How many numbers of an array lie in memory."""
    return math.prod([n for n, s in zip(a.shape, a.strides, strict=True) if s or not n]) if np.ndim(a) else 1


FLOPS = OpRules[Callable[[Any, Sequence[Any], Any], int]]("programs.cost.FLOPS")
"""The operations of one step: a function of the op, the shapes of its arguments and the shape of its result."""


def flops(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    """The operations of one step, from the shapes of its arguments and its result. Blocks are not looked into."""
    return FLOPS[type(op)](op, shapes, shape)


FLOPS("one per number", float, Elementwise, Take)(lambda op, shapes, shape: math.prod(shape))
FLOPS("one per number put", Put)(lambda op, shapes, shape: math.prod(shapes[0]))
FLOPS("nothing", Reshape, Cast, Get)(lambda op, shapes, shape: 0)
FLOPS("its path", Contraction)(lambda op, shapes, shape: path(op.labels, op.out, op.sizes(tuple(shapes))).flops)
FLOPS("as the op inside", Strongly)(lambda op, shapes, shape: flops(op.op, shapes, shape))


@FLOPS("one per number and sum, or factor but ±1", Combination)
def _combination(op: Combination, shapes: Sequence[Any], shape: Any) -> int:
    scaled = sum([math.prod(s) for k, s in zip(op.coefficients, shapes, strict=True) if abs(k) != 1.0])
    return scaled + (len(shapes) - 1) * math.prod(shape)


@FLOPS("what the relations add or move", Reduction)
def _reduction(op: Reduction, shapes: Sequence[Any], shape: Any) -> int:
    return sum([r.work * math.prod(s) // max(r.source.size, 1) for r, s in zip(op.relations, shapes, strict=True)])


@FLOPS("its own `flops`", Single)
def _single(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    return op.flops(shapes) if hasattr(op, "flops") else math.prod(shape)


@FLOPS("5/2 · n log₂ n", Transform)
def _transform(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    real = shapes[0] if type(op) is RealFourier else shape
    n = math.prod([shape[:-1][a] for a in op.axes]) if type(op) is Fourier else real[op.axis]
    return int(2.5 * math.prod(real) * math.log2(max(n, 1)))


@FLOPS("two per product", Convolution, ExchangedLeg)
def _convolution(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    return 2 * math.prod(shape[:-1]) * math.prod(sorted([shapes[0][-1], shapes[1][-1], shape[-1]])[:2])


@FLOPS("one per number of its largest array", Select, Discrete, Declared)
@FLOPS("dearest branch × rounds, see `cost`", Block)
def _largest(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    """What somebody else's code does with its numbers is not known."""
    return max([_numbers(s) for s in (*shapes, shape)])


@FLOPS("one per number of its largest array; linear algebra: times the order of the matrices", Ruled)
def _ruled(op: Ruled, shapes: Sequence[Any], shape: Any) -> int:
    order = max([min(s[-2:]) for s in shapes if len(s) > 1], default=1)
    return _largest(op, shapes, shape) * (order if op.smooth.ours and not op.smooth.linear_time else 1)


def _numbers(shape: Any) -> int:
    """How many numbers a result has; of several results, together."""
    return sum(map(math.prod, shape)) if several(shape) else math.prod(shape)
