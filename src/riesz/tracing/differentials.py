"""Functions with a differential: the rule, NumPy code on traced arrays, becomes a program once per shape."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from ..calculus.batching import mapped
from ..ops.op import product
from ..ops.opaque import Ruled
from ..programs.program import Program
from ..runtime.stackless import quiet
from .traced import Shape, Trace, Traced, refuse, slot_of, tidy, trace_of


@quiet
def rule_program(op: Ruled, shapes: tuple[Shape, ...], live: tuple[int, ...]) -> tuple[Program, list[int | None]]:
    """The differential as a program from (xs, ys, dxs that move) to the dys that move, and the number of each result's
    output (None: 0)."""
    key = (shapes, live)
    if key in op.rules:
        return op.rules[key]
    found = op.shape_of(shapes)
    several = bool(found) and type(found[0]) is tuple
    with Trace(op.smooth.name) as trace:
        xs = [Traced(trace, trace.input(s)) for s in shapes]
        ys = [Traced(trace, trace.input(s)) for s in (found if several else [found])]
        dxs = [Traced(trace, trace.input(shapes[i])) if i in live else None for i in range(len(shapes))]
        result = op.smooth.differential(dxs, tuple(ys) if several else ys[0], *xs, **dict(op.parameters))
        trace.no_refusals()
    if trace.captured:
        raise refuse(
            f"the derivative of {op.smooth.name} uses a traced array of {trace.captured[0].home.name}: such a rule "
            "is kept for later and sees its arguments only; pass the array as an argument"
        )
    given, flags = list(trace.inputs), trace.dependent([d.slot for d in dxs if d is not None])
    results = [slot_of(trace, r, r.dtype) if isinstance(r, Traced) else None for r in (result if several else [result])]
    moving = [s if s is not None and flags[s] else None for s in results]
    program, places = trace.prune(given, [s for s in moving if s is not None]), iter(range(len(moving)))
    op.rules[key] = program, [None if s is None else next(places) for s in moving]
    return op.rules[key]


def mapped_rule(op: Ruled, n: int, dxs: Any, y: Any, xs: Any) -> Any:
    """The differential of an op at each index of a leading axis of length n, on traced arrays."""
    shapes = tuple([x.shape[1:] for x in xs])
    live = tuple([i for i, d in enumerate(dxs) if d is not None])
    program, results = rule_program(op, shapes, live)
    several = type(y) is tuple
    given = [*xs, *(y if several else (y,)), *[d for d in dxs if d is not None]]
    trace = trace_of(*given)
    found = mapped(program, trace, [slot_of(trace, v, v.dtype) for v in given], [True] * len(given), n)
    parts = [None if r is None else Traced(trace, found[r]) for r in results]
    return tuple(parts) if several else parts[0]


def chosen(weight: Any, x: Any) -> Traced:
    """weight · x where a zero weight takes no notice of x: a selection (Note [Strong] in ops/op.py)."""
    given = [tidy(weight), tidy(x)]
    trace = trace_of(*given)
    slots = [slot_of(trace, v, v.dtype) for v in given]
    op = product(trace.shapes[slots[0]], trace.shapes[slots[1]], (0,))
    return Traced(trace, trace.step(op, slots), given[1].dtype)


def plus(*parts: Any) -> Any:
    """The sum of what is there; None is zero."""
    found = [x for x in parts if x is not None]
    return reduce(operator.add, found) if found else None
