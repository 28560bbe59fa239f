"""Plain calls of small functions and gradients, `rz.function(f)(x)` and `rz.grad(f)(x)`,
as generated code from the first call on: equal arguments give equal bits at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functions.function import Aval, Given, Record, TracedFunction
from ..programs.program import Program
from ..programs.sub_programs import Block
from ..runtime import tuning
from ..tracing.traced import FLOAT
from .common import Run, names_of, numbers, while_current
from .entry import written
from .unpacking import opens, unpacked


def called(function: TracedFunction, given: Given, record: Record) -> Run | None:
    """A function of the arguments that gives f(x), or OTHER; None where f is large, or is given more than arrays."""
    run = _written(function, given, record) if _suits(function, given, record) else None
    return None if run is None else while_current(run, function, given)


def graded(function: TracedFunction, given: Given, record: Record, both: Callable[[], Record]) -> Quick | None:
    """Code that gives the value of f and its gradient, or OTHER, and what it depends on; None as for `called`.

    `both` makes the trace of value and gradient, where `record`, that of f, is small."""
    run = _written(function, given, both()) if _suits(function, given, record) else None
    return None if run is None else (run, function.watched(given), function.era, function)


Quick = tuple[Run, list[Any], object, TracedFunction]
"""Generated code; the rows it depends on, as `Function.watched` has them; the era it belongs to, and the function that
says which era it is."""


def _written(function: TracedFunction, given: Given, record: Record) -> Run | None:
    light = _largest(record.program) <= tuning.LIGHT_PROGRAM_NUMBERS
    reads, names = tuple(record.captured), names_of(function, given)
    if reads:  # arrays from outside are arguments too
        avals = [*record.avals, *[Aval(x.shape, FLOAT if x.dtype == FLOAT else x.dtype, False) for x in reads]]
        record = Record(record.name, record.program, [], avals, record.results, record.tree)
        names = [*names, *[f"outside{i}_" for i in range(len(reads))]]
    run: Any = written(record, "auto" if light else "numpy", names).run
    return None if run is None else unpacked(given, (lambda leaves: run((*leaves, *reads))) if reads else run)


def _suits(function: TracedFunction, given: Given, record: Record) -> bool:
    """Whether code can take the arguments, and running the program is mostly the interpreter's work."""
    program = record.program
    if not (opens(given) and function.keeps(given) and len(program.ops) <= tuning.SMALL_PROGRAM_SLOTS):
        return False
    return _largest(program) <= tuning.SMALL_PROGRAM_NUMBERS and not any([isinstance(op, Block) for op in program.ops])


def _largest(program: Program) -> int:
    return max([numbers(s) for s in program.shapes], default=0)
