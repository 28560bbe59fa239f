"""Plain calls of small functions and gradients, `rz.function(f)(x)` and `rz.grad(f)(x)`, and of those with loops on
small states, as generated code from the first call on: equal arguments give equal bits at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functions.function import TracedFunction
from ..functions.traces.given import Given
from ..functions.traces.records import Aval, Record
from ..programs.program import Program
from ..programs.sub_programs import Block, Loop
from ..runtime import tuning
from ..runtime.settings import settings
from ..tracing.traced import FLOAT
from .common import Code, Run, function, names_of, numbers
from .entry import written
from .unpacking import opens, unpacked


def called(owner: TracedFunction, given: Given, record: Record) -> Run | None:
    """A function of the arguments that gives f(x), or OTHER; None where f is large, or is given more than arrays."""
    return _written(owner, given, record) if suits(owner, given, record) else None


def graded(owner: TracedFunction, given: Given, record: Record, both: Callable[[], Record]) -> Run | None:
    """Code that gives the value of f and its gradient, or OTHER; None as for `called`.

    `both` makes the trace of value and gradient, where `record`, that of f, is small."""
    return _written(owner, given, both()) if suits(owner, given, record) else None


def leaves_of(owner: TracedFunction, given: Given, record: Record) -> Run | None:
    """A function of the arguments that gives their array leaves, or OTHER where they are of another kind than these;
    None where there may be another trace for arguments of this kind."""
    if not (opens(given) and owner.keeps(given)) or record.captured or not given.arrays:
        return None
    names = names_of(owner, given)
    run = function("leaves", record.avals, names, [f"return ({', '.join(names)},)"], {})[1]
    return unpacked(given, run)


def _written(owner: TracedFunction, given: Given, record: Record) -> Run | None:
    reads, names = tuple(record.captured), names_of(owner, given)
    if reads:  # arrays from outside are arguments too
        avals = [*record.avals, *[Aval(x.shape, FLOAT if x.dtype == FLOAT else x.dtype, False) for x in reads]]
        record = Record(record.name, record.program, [], avals, record.results, record.tree)
        names = [*names, *[f"outside{i}_" for i in range(len(reads))]]
    run: Any = _code(record, names)
    return None if run is None else unpacked(given, (lambda leaves: run((*leaves, *reads))) if reads else run)


def _code(record: Record, names: list[str]) -> Any:
    return code_of(record, names).run


def code_of(record: Record, names: list[str] | None = None) -> Code:
    """Code for a trace, as plain calls have it."""
    light = _loops(record.program) or _largest(record.program) <= tuning.LIGHT_PROGRAM_NUMBERS
    called = names or [f"x{i}_" for i in range(len(record.avals))]
    return written(record, "auto" if light or settings.plain == "auto" else "numpy", called)


def _loops(program: Program) -> bool:
    return any([isinstance(op, Loop) for op in program.ops])


# Note [Plain]: the code of a plain call is chosen at the first call for arguments of a kind, from the program alone,
# and kept: equal arguments give equal bits at every call. A step takes a third of a millisecond to write; the
# interpreter takes some 12 µs for it, and a nanosecond for each number. So code pays within a few calls where steps are
# large. Where they are small it pays after two dozen, which is milliseconds: up to `owner.slots` steps are written.
def suits(owner: TracedFunction, given: Given, record: Record) -> bool:
    """Whether a plain call runs generated code, from the first call on."""
    if settings.plain == "steps" or not (opens(given) and owner.keeps(given)):
        return False
    program = record.program
    if _loops(program):
        return True
    if any([isinstance(op, Block) for op in program.ops]):
        return False
    most = max(owner.slots, sum(map(numbers, program.shapes)) // tuning.PLAIN_NUMBERS_PER_STEP)
    return len(program.ops) <= min(most, tuning.COMPILED_STEPS)


def _largest(program: Program) -> int:
    return max([numbers(s) for s in program.shapes], default=0)
