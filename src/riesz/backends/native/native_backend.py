"""*native*: a program with loops on small states as one function of numbers, machine code or Python on floats."""

from __future__ import annotations

from typing import Any

from ...functions.traces.records import Aval
from ...programs.sub_programs import Loop
from ...runtime import tuning
from ..common import Code, Task, function, numbers, result_text
from .fused_loops import fuse
from .native_function import DTYPES, NativeFunction, machine_code_here
from .native_loops import chosen, prepared, work, worth
from .statements import Blocked


def written(task: Task) -> Code | str:
    """Code for a program with loops; why there is none otherwise."""
    if not any([isinstance(op, Loop) for op in task.program.ops]):
        return "it has no loops"
    record, program = task.record, task.program
    program = prepared(program)
    if others := [a for a in (*record.avals, *record.outputs) if a.dtype not in DTYPES.values()]:
        return f"it has numbers of the type {others[0].dtype}"
    steps = work(program, longest=task.asked)
    if not worth(program, steps):
        return "its loops are short"
    try:
        made = NativeFunction(program, [_letter(a) for a in record.avals])
        run, machine = chosen(made, steps)
    except Blocked as reason:
        return f"{reason} has no form on numbers"
    if run is None:
        return "it is faster on arrays"
    source, called = _function(task, run)
    what = "machine code" if machine else "Python on floats"
    why = f"Its loops run on numbers: {made.written.count} statements as {what}."
    return Code(record, task.program, "native", why, called, f"{source}\n\n{made.text(machine)}")


def straight(task: Task) -> Code | None:
    """A program without loops on small arrays as machine code, for what is called often; None where there is none."""
    record, program = task.record, task.program
    sizes = [numbers(s) for s in program.shapes]
    small = max(sizes, default=0) <= tuning.NATIVE_STRAIGHT_NUMBERS
    kinds = [a.dtype for a in (*record.avals, *record.outputs)]
    if not small or not machine_code_here() or any([d not in DTYPES.values() for d in kinds]):
        return None
    try:
        made = NativeFunction(program, [_letter(a) for a in record.avals], tuning.NATIVE_STRAIGHT_STATEMENTS)
    except Blocked:
        return None
    fuse(made.written)
    source, called = _function(task, made.machine(keeps=True))
    why = f"{made.written.count} statements as machine code."
    return Code(record, program, "native", why, called, f"{source}\n\n{made.text(True)}")


def _letter(aval: Aval) -> str:
    return next(name for name, dtype in DTYPES.items() if dtype == aval.dtype)


def _function(task: Task, run: Any) -> tuple[str, Any]:
    record, names = task.record, task.names
    space: dict[str, Any] = {"native_": run}
    lines = [f"found = native_([{', '.join(names)}])", "if found is None:", "    return OTHER"]
    texts = [f"found[{j}]" for j in range(len(record.outputs))]
    lines.append(f"return {result_text(record, texts, space)}")
    return function(record.name, record.avals, names, lines, space)
