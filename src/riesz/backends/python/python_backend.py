"""*python*: a small program on Python floats, every component of its arrays a variable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import numpy as np

from ...functions.function import Aval
from ...programs.axis.scalars import Scalars
from ...runtime import tuning
from ..common import Code, Task, function, result_text
from .scalar_code import RAISED, ScalarLines, bare
from .unrolled import FLOAT, kinds, unrolled


def written(task: Task) -> Code | str:
    """Code on floats, or why there is none; if nobody asked for it, only where it is faster than arrays are."""
    record, program = task.record, task.program
    single = all([s == () for s in program.shapes])
    most = (
        tuning.PYTHON_SOURCE_OPERATIONS
        if single
        else 10 * tuning.PYTHON_OPERATIONS
        if task.asked
        else tuning.PYTHON_OPERATIONS
    )
    parts = (
        unrolled(program, kinds(program, task.kinds), most) if all([a.dtype == FLOAT for a in record.outputs]) else None
    )
    if parts is None:
        return (
            f"it has more than {most:,} operations on the components of its arrays, numbers other than float64, "
            "or steps without such a form"
        )
    outs = [parts.small(s) for s in program.outputs]
    count = parts.graph.count
    if not (single or task.asked or count <= tuning.FLOATS_PER_ARRAY_STEP * len(program)):
        return f"{count} operations on floats take longer than {len(program)} steps on arrays"
    number_of = {slot: k for k, slot in enumerate(program.inputs)}
    source, run = scalar_function(
        record.name,
        record.avals,
        task.names,
        parts.graph,
        outs,
        lambda texts, space: result_text(record, texts, space),
        number_of.__getitem__,
    )
    what = "All values are numbers" if single else "Its arrays are small enough to be taken apart"
    return Code(record, program, "python", f"{what}: {count} operations on Python floats.", run, source)


def scalar_function(
    title: str,
    avals: Sequence[Aval],
    names: list[str],
    graph: Scalars,
    outs: Sequence[Any],
    present: Callable[[list[str], dict[str, Any]], str],
    number_of: Callable[[int], int] = int,
) -> tuple[str, Any]:
    """Source and function for expressions of single numbers: `outs` are arrays of nodes; `number_of`: the argument a
    leaf is read from."""
    code = ScalarLines(
        graph,
        [int(x) for nodes in outs for x in np.ravel(nodes)],
        lambda op: (
            f"{names[number_of(op.slot)]}_{op.at}" if avals[number_of(op.slot)].shape else names[number_of(op.slot)]
        ),
    )
    read: list[list[int]] = [[] for _ in avals]
    for op in code.loads:
        read[number_of(op.slot)].append(op.at)
    lines = [line for n, a, at in zip(names, avals, read, strict=True) if at for line in _read(n, a, at)]
    lines.extend(code.lines)
    texts: list[str] = []
    packed: dict[str, Any] = {}
    for j, nodes in enumerate(outs):
        shape = np.shape(nodes)
        flat = [code.text(int(x)) for x in np.ravel(nodes)]
        if not shape:
            texts.append(flat[0])
            continue
        lines.append(f"r{j} = empty({shape[0] if len(shape) == 1 else shape})")
        if len(flat) <= 2:
            lines.extend(
                [
                    f"r{j}[{', '.join(map(str, at))}] = {bare(text)}"
                    for at, text in zip(np.ndindex(*shape), flat, strict=True)
                ]
            )
        else:  # all at once
            packed[f"fill_{len(flat)}"] = Struct(f"{len(flat)}d").pack_into
            lines.extend([f"fill_{len(flat)}(r{j}, 0,", *[f"    {bare(text)}," for text in flat], ")"])
        texts.append(f"r{j}")
    space = code.names | packed | {"empty": np.empty, "RAISED": RAISED}
    body = [*lines, f"return {present(texts, space)}"]
    guarded = ["try:", *[f"    {line}" for line in body], "except RAISED:", "    return OTHER"]
    counted = [n for n, a, at in zip(names, avals, read, strict=True) if len(a.shape) == 1 and not _few(a, at)]
    return function(title, avals, names, guarded, space, counted=counted)


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
