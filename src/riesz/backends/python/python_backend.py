"""*python*: a small program on Python floats, every component of its arrays a variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from ...functions.traces.records import Aval
from ...programs.axis.scalars import Scalars, Small
from ...runtime import tuning
from ..common import Code, Task, function, result_text
from ..source_text import inside
from .scalar_code import RAISED, ScalarLines, bare
from .unrolled import FLOAT, kinds, unrolled


def written(task: Task) -> Code | str:
    """Code on floats, or why there is none; if nobody asked for it, only where it is faster than arrays are."""
    record, program = task.record, task.program
    single = all([s == () for s in program.shapes])
    most = tuning.PYTHON_OPERATIONS * (10 if task.asked else 1) if not single else tuning.PYTHON_SOURCE_OPERATIONS
    floats = all([a.dtype == FLOAT for a in record.outputs])
    parts = unrolled(program, kinds(program, task.kinds), most) if floats else None
    if parts is None:
        others = "numbers other than float64, or steps without such a form"
        return f"it has more than {most:,} operations on the components of its arrays, {others}"
    outs = [parts.small(s) for s in program.outputs]
    count = parts.graph.count
    if not (single or task.asked or count <= tuning.FLOATS_PER_ARRAY_STEP * len(program)):
        return f"{count} operations on floats take longer than {len(program)} steps on arrays"
    source, run = _function(task, parts.graph, outs)
    what = "All values are numbers" if single else "Its arrays are small enough to be taken apart"
    return Code(record, program, "python", f"{what}: {count} operations on Python floats.", run, source)


def _function(task: Task, graph: Scalars, outs: Sequence[Any]) -> tuple[str, Any]:
    """Source and function for expressions of single numbers: `outs` are arrays of nodes."""
    names, avals = task.names, task.record.avals
    number_of = {slot: k for k, slot in enumerate(task.program.inputs)}

    def leaf(op: Small) -> str:
        k = number_of[op.slot]
        return f"{names[k]}_{op.at}" if avals[k].shape else names[k]

    code = ScalarLines(graph, [int(x) for nodes in outs for x in np.ravel(nodes)], leaf)
    read: list[list[int]] = [[] for _ in avals]
    for op in code.loads:
        read[number_of[op.slot]].append(op.at)
    lines = [line for n, a, at in zip(names, avals, read, strict=True) if at for line in _read(n, a, at)]
    lines.extend(code.lines)
    space: dict[str, Any] = code.names | {"empty": np.empty, "RAISED": RAISED}
    texts: list[str] = []
    for j, nodes in enumerate(outs):
        shape = np.shape(nodes)
        flat = [code.texts[int(x)] for x in np.ravel(nodes)]
        texts.append(f"r{j}" if shape else flat[0])
        if not shape:
            continue
        lines.append(f"r{j} = empty({shape[0] if len(shape) == 1 else shape})")
        if len(flat) <= 2:
            places = [", ".join(map(str, at)) for at in np.ndindex(*shape)]
            lines += [f"r{j}[{at}] = {bare(text)}" for at, text in zip(places, flat, strict=True)]
        else:  # all at once
            space[f"fill_{len(flat)}"] = Struct(f"{len(flat)}d").pack_into
            lines += [*inside(f"fill_{len(flat)}(r{j}, 0,", [f"{bare(text)}," for text in flat]), ")"]
    body = [*lines, f"return {result_text(task.record, texts, space)}"]
    guarded = [*inside("try:", body), "except RAISED:", "    return OTHER"]
    counted = [n for n, a, at in zip(names, avals, read, strict=True) if len(a.shape) == 1 and not _few(a, at)]
    return function(task.record.name, avals, names, guarded, space, counted=counted)


def _read(name: str, aval: Aval, at: list[int]) -> list[str]:
    """The components of an argument as variables."""
    if not aval.shape:
        return [] if aval.weak else [f"{name} = float({name})"]
    if _few(aval, at):
        return [f"{name}_{i} = {name}.item({i})" for i in sorted(at)]
    flat = "" if len(aval.shape) == 1 else ".ravel()"
    return [f"{', '.join([f'{name}_{i}' for i in range(math.prod(aval.shape))])}, = {name}{flat}.tolist()"]


def _few(aval: Aval, at: list[int]) -> bool:
    """Whether the components that are read are few enough to be read one by one."""
    return not at or 2 * len(at) < math.prod(aval.shape)
