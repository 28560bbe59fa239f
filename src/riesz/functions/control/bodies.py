"""Bodies of branches and loops: Python functions traced apart. What they use of the world around them becomes arguments
of the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import TraceError
from ...ops.op import Cast
from ...ops.opaque import Get
from ...programs.program import Program, outputs
from ...programs.sub_programs import Call
from ...tracing.argument_trees import Tree, unflatten
from ...tracing.trace import Trace
from ...tracing.traced import FLOAT, Traced, slot_of, tidy
from ..function import trace_function
from ..traces.given import Given
from ..traces.records import Aval, Record, Static


class Body:
    """A Python function traced apart: a program from (captured arrays, arguments) to results."""

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], name: str, branch: bool = False, always: bool = False
    ) -> None:
        self.given = Given(args, {}, frozenset())
        self.given.point = always  # it runs once, at these arguments
        self.record: Record = trace_function(f, self.given, name, whole_numbers=True, branch=branch)
        statics = [r.value for r in self.record.results if isinstance(r, Static)]
        if statics:
            raise TraceError(f"{name} returns {statics[0]!r}, which is no array; return arrays and numbers only")
        self.record.holds(self.given.arrays)
        self.results: list[Aval] = self.record.outputs
        self.tree: Tree = self.record.tree

    def program(self, captured: Sequence[Traced]) -> Program:
        """The program with the captured arrays first, in the given order (a superset of its own)."""
        own = self.record.program
        whole = Program()
        outside = [whole.input(x.shape) for x in captured]
        inside = [whole.input(a.shape) for a in self.given.avals]
        places = {(x.home, x.slot): i for i, x in enumerate(captured)}
        mine = [outside[places[x.home, x.slot]] for x in self.record.captured]
        whole.outputs = outputs(own, whole, [*inside, *mine])
        return whole


def union(*bodies: Body) -> list[Traced]:
    return list({(x.home, x.slot): x for body in bodies for x in body.record.captured}.values())


def value_slot(home: Trace, x: Any) -> int:
    x = tidy(x)
    return slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT)


def gets(program: Program, slot: int, count: int) -> list[int]:
    """All results of a step that has several."""
    return [program.step(Get(i), (slot,)) for i in range(count)]


def call_step(home: Trace, bodies: Sequence[Body], kinds: Sequence[Any], which: Sequence[int] = ()) -> Any:
    """A step that runs one of some bodies on their arguments, and gives results of some types."""
    first, captured = bodies[0], union(*bodies)
    programs = tuple([_cast(b.program(captured), b.results, kinds) for b in bodies])
    given = zip(first.given.arrays, first.given.avals, strict=True)
    slots = [*[slot_of(home, x, x.dtype) for x in captured], *[slot_of(home, tidy(x), a.dtype) for x, a in given]]
    found = gets(home, home.step(Call(programs), [*which, *slots]), len(kinds))
    return unflatten(first.tree, [Traced(home, s, kind) for s, kind in zip(found, kinds, strict=True)])


def _cast(program: Program, results: Sequence[Aval], kinds: Sequence[Any]) -> Program:
    for i, (a, kind) in enumerate(zip(results, kinds, strict=True)):
        if a.dtype.kind == kind.kind == "f" and a.dtype != kind and not a.weak:
            program.outputs[i] = program.step(Cast(a.dtype, kind), (program.outputs[i],))
    return program


def element(x: Any) -> Any:
    """What stands for one round's input while the body is traced: the first, where there is one."""
    dtype = x.dtype
    if len(x):
        return x.copy()[0] if type(x) is Traced else np.asarray(x[0]) if dtype.kind != "f" else x[0]
    return np.zeros(x.shape[1:], dtype) if np.ndim(x) > 1 or dtype.kind != "f" else dtype.type(0.0)
