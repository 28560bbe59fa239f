"""What one run of a program costs: operations on numbers, and how many numbers it keeps. Both follow from shapes; nothing is run.

contraction                its path: one multiplication for each index of a pair, two operations where something is summed
Σ kᵢ·xᵢ, (k·), p^X         one for each number and each multiplication, addition or primitive
red_R                      the numbers R adds or moves
transforms                 5/2 · n log₂ n for n real numbers
reshaping, types, Get      nothing
call, loop                 its dearest branch, its rounds
linear algebra             the numbers of its largest array, times the order of the matrices
anything else              one for each number of its largest array: what somebody else's code does with them is not known
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..convolution import Convolution, Turned
from ..fourier import Fourier, HermitianFourier, RealFourier
from ..opaque import Get, Put, Ruled, Strongly, Take
from ..ops import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..paths import path
from ..stackless import Rule, solve
from ..vectors import Formal
from .blocks import Block, Loop
from .program import INPUT, Constant, Program

Shape = tuple[int, ...]


class Cost(NamedTuple):
    """`flops`: operations of one run. `numbers`: numbers kept in constants, each array once and repeated axes once; positions are not counted."""

    flops: int
    numbers: int


def cost(program: Program, since: int = 0) -> Cost:
    """The cost of a program, or of its steps from number `since` on.

    >>> from riesz.ops import contraction
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
                kept.update(_arrays(op.value))
            elif isinstance(op, Block):
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
    return sum([8 * _numbers(program.shapes[slot]) for slot in range(since, len(program.ops)) if type(program.ops[slot]) is not Reshape])


def _arrays(value: Any) -> dict[int, int]:
    """The numbers of each array of a constant, by identity."""
    arrays: list[Any] = [f for t in value.terms for f, _ in t.factors] if type(value) is Formal else [value]
    return {id(a): _stored(a) for a in arrays}


def _stored(a: Any) -> int:
    if not np.ndim(a):
        return 1
    return math.prod([n for n, s in zip(a.shape, a.strides, strict=True) if s or not n])


def flops(op: Any, shapes: Sequence[Any], shape: Any) -> int:
    """The operations of one step, from the shapes of its arguments and its result. Blocks are not looked into."""
    match op:
        case float():
            return math.prod(shape)
        case Contraction():
            return path(op.labels, op.out, op.sizes(tuple(shapes))).flops
        case Combination():
            scaled = sum([math.prod(s) for k, s in zip(op.coefficients, shapes, strict=True) if abs(k) != 1.0])
            return scaled + (len(shapes) - 1) * math.prod(shape)
        case Elementwise() | Take():
            return math.prod(shape)
        case Put():
            return math.prod(shapes[0])
        case Reduction():
            return sum([r.work * math.prod(s) // max(r.source.size, 1) for r, s in zip(op.relations, shapes, strict=True)])
        case Reshape() | Cast() | Get():
            return 0
        case Strongly():
            return flops(op.op, shapes, shape)
        case Fourier():
            return _transform(math.prod(shape), [shape[:-1][a] for a in op.axes])
        case RealFourier():
            return _transform(math.prod(shapes[0]), [shapes[0][op.axis]])
        case HermitianFourier():
            return _transform(math.prod(shape), [op.n])
        case Convolution() | Turned():
            return 2 * math.prod(shape[:-1]) * math.prod(sorted([shapes[0][-1], shapes[1][-1], shape[-1]])[:2])
        case _:
            known = getattr(op, "flops", None)
            if known is not None:
                return known(shapes)
            most = max([_numbers(s) for s in (*shapes, shape)])
            dense = isinstance(op, Ruled) and op.smooth.ours and not op.smooth.linear_time
            return most * max([min(s[-2:]) for s in shapes if len(s) > 1], default=1) if dense else most


def _transform(numbers: int, lengths: list[int]) -> int:
    return int(2.5 * numbers * math.log2(max(math.prod(lengths), 1)))


def _numbers(shape: Any) -> int:
    """How many numbers a result has; of several results, together."""
    return sum([math.prod(s) for s in shape]) if shape and type(shape[0]) is tuple else math.prod(shape)
