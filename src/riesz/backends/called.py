"""Plain calls of small functions and gradients, `rz.function(f)(x)` and `rz.grad(f)(x)`,
as generated code from the first call on: equal arguments give equal bits at every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..programs.blocks import Block
from ..programs.program import Program
from ..syntax.functions import Aval, Function, Given, Record
from ..syntax.traced import FLOAT
from .array_code import numbers
from .code import names_of, while_current
from .compiled import written
from .unpacking import opens, unpacked

MOST = 48
"""Up to how many slots a program is small."""
LARGE = 1 << 20
"""From how many numbers in a slot on the interpreter's time does not count."""
LIGHT = 1 << 12
"""Up to how many numbers any backend may be chosen; beyond, none that takes seconds to compile."""


def called(function: Function, given: Given, record: Record) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function of the arguments that gives f(x), or OTHER; None where f is not small, or its arguments hold more than arrays and numbers."""
    run = _written(function, given, record) if _plain(function, given) and small(record.program) else None
    return None if run is None else while_current(run, function, given)


def graded(function: Function, given: Given, record: Record, both: Callable[..., Any]) -> Quick | None:
    """Code that gives `both(x)`, the value of f and its gradient, or OTHER, and what it depends on; None as for `called`."""
    if not _plain(function, given) or not small(record.program):
        return None
    both.__dict__["__wrapped__"] = function.function  # what it can reach is what f can
    run = _written(function, given, Function(both, name=f"value_and_grad({function.name})").record(given))
    return None if run is None else (run, function.watched(given), function.era, function)


Quick = tuple[Callable[[tuple[Any, ...]], Any], list[Any], object, Function]
"""Generated code; the rows it depends on, as `Function.watched` has them; the era it belongs to, and the function that says which era it is."""


def _written(function: Function, given: Given, record: Record) -> Callable[[tuple[Any, ...]], Any] | None:
    light = _largest(record.program) <= LIGHT
    reads, names = tuple(record.captured), names_of(function, given)
    if reads:  # arrays from outside are arguments too
        avals = [*record.avals, *[Aval(x.shape, FLOAT if x.dtype == FLOAT else x.dtype, False) for x in reads]]
        record = Record(record.name, record.program, [], avals, record.results, record.tree)
        names = [*names, *[f"outside{i}_" for i in range(len(reads))]]
    run: Any = written(record, "auto" if light else "numpy", names).run
    if run is None:
        return None

    def reading(leaves: tuple[Any, ...]) -> Any:
        return run((*leaves, *reads))

    return unpacked(given, reading if reads else run)


def _plain(function: Function, given: Given) -> bool:
    return opens(given) and function.keeps(given)


def small(program: Program) -> bool:
    """Whether running a program is mostly the interpreter's work."""
    return len(program.ops) <= MOST and _largest(program) <= LARGE and not any([isinstance(op, Block) for op in program.ops])


def _largest(program: Program) -> int:
    return max([numbers(s) for s in program.shapes], default=0)
