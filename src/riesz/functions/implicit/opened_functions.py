"""Functions given to a solver inside a trace, as functions of all that they depend on: one step runs the solver with
numbers, and its differential calls them in other traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.opaque import Get, Ruled, Smooth
from ...tracing.argument_trees import flatten
from ...tracing.trace import Trace, current_level
from ...tracing.traced import Traced, innermost, slot_of, tidy
from ..control.bodies import Body
from ..traces.records import Aval, Record, evaluated


class Opened:
    """Functions of the same arguments, traced there; `closed` are the same as functions of the first argument, the
    arrays in the others, and all arrays of outer traces that they use (`rest`)."""

    def __init__(self, bodies: list[Body], captured: list[Traced], home: Trace) -> None:
        given = bodies[0].given
        self.bodies, self.home, self.avals = bodies, home, given.avals
        pairs = [*zip(given.arrays, given.avals, strict=True), *[(x, x) for x in captured]]
        self.slots = [slot_of(home, tidy(x), a.dtype) for x, a in pairs]
        self.closed = [_closed(_record(b, captured), len(captured)) for b in bodies]

    def step(self, name: str, run: Any, shapes: tuple[Any, ...], differential: Any, kinds: Sequence[Any]) -> list[Any]:
        """A step on all that the functions depend on, and its first results, of some kinds."""
        op = Ruled(Smooth(name, run, lambda *_: shapes, differential, batched=False, ours=False))
        slot = self.home.step(op, self.slots)
        gets = [self.home.step(Get(i), (slot,)) for i in range(len(kinds))]
        return [Traced(self.home, s, a.dtype, a.weak) for s, a in zip(gets, kinds, strict=True)]


def opened(name: str, functions: Sequence[Callable[..., Any]], args: tuple[Any, ...]) -> Opened | None:
    """None where nothing is traced."""
    if not current_level():
        return None
    bodies = [Body(f, args, f"the function of {name}") for f in functions]
    captured = list({(x.home, x.slot): x for b in bodies for x in b.record.captured}.values())
    home = innermost((*bodies[0].given.arrays, *captured))
    return None if home is None else Opened(bodies, captured, home)


def _record(body: Body, captured: list[Traced]) -> Record:
    avals = [*[Aval(x.shape, x.dtype, x.weak) for x in captured], *body.given.avals]
    return Record(body.record.name, body.program(captured), [], avals, body.record.results, body.record.tree)


def _closed(record: Record, captured: int) -> Callable[..., Any]:
    def closed(x: Any, *rest: Any) -> Any:
        split = len(rest) - captured
        return record.wrap(evaluated(record, [*rest[split:], *flatten(x)[0], *rest[:split]]))

    return closed
