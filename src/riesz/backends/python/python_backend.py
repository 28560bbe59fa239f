"""*python*: a small program on Python floats, every component of its arrays a variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from ...functions.function import Aval
from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape
from ...ops.opaque import Discrete, Select
from ...programs.axis.along import ComponentNodes, kind_of
from ...programs.axis.scalars import ZERO, Scalars, Small, TooMany
from ...programs.program import INPUT, Constant, Program
from ...runtime import tuning
from ...spaces.formal_vectors import weak
from ...tracing.traced import FLOAT
from ..common import Code, Task, function, result_text
from ..source_text import inside
from .scalar_code import RAISED, ScalarLines, bare


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


# -- a program as expressions of single numbers, equal ones once ------------------------------------------------------

KNOWN = (float, Combination, Contraction, Elementwise, Reduction, Reshape, Select, Cast, Discrete)
"""The steps that have a form on single numbers."""


class Unrolled(ComponentNodes):
    """The nodes of all slots: arrays of node numbers in the shapes of the slots."""

    def __init__(self, program: Program, most: int) -> None:
        super().__init__(program, {}, (), 1, most, exact=True)
        for slot, op in enumerate(program.ops):
            if op is not INPUT and type(op) is not Constant:
                self._small[slot] = self._unrolled(slot)
            else:
                self.small(slot)

    def _unrolled(self, slot: int) -> Any:
        op, shape = self.program.ops[slot], self.program.shapes[slot]
        self.graph.room(math.prod(shape))
        xs = [self._small[a] for a in self.program.args[slot]]
        return self._reduced(op, xs, shape) if type(op) is Reduction else self._step(op, xs, shape)

    def _reduced(self, op: Reduction, xs: list[Any], shape: Shape) -> Any:
        box = op.relations[0].target.box or ()
        lead, trail = math.prod(shape[: op.axis]), math.prod(shape[op.axis + len(box) :])
        total = np.full((lead, math.prod(box), trail), ZERO)
        for relation, x in zip(op.relations, xs, strict=True):
            self.graph.room(relation.count)
            wide = np.asarray(x).reshape(lead, relation.source.size, trail)
            for r, c, t in zip(*[a.tolist() for a in relation.pairs()], strict=True):
                for i, j in np.ndindex(lead, trail):
                    total[i, c, j] = self.graph.combination((1.0, float(t)), (int(total[i, c, j]), int(wide[i, r, j])))
        return total.reshape(shape)

    def _constants(self, value: Any, shape: Shape) -> Any:
        """Numbers as nodes; all of them Python floats, so that arithmetic of numbers is carried out at once."""
        self.graph.room(math.prod(shape))
        numbers = np.broadcast_to(np.asarray(value), shape).reshape(-1).tolist()
        return np.array([self.graph.fixed(x) for x in numbers], np.intp).reshape(shape)


def kinds(program: Program, given: Sequence[Any]) -> list[Any]:
    """The types of all slots; `float` for numbers that take any other's type, None where it is not known."""
    found: list[Any] = [None] * len(program.ops)
    for slot, kind in zip(program.inputs, given, strict=True):
        found[slot] = kind
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if type(op) is Constant:
            value = weak(op.value)
            found[slot] = float if type(value) is float else np.asarray(value).dtype
        elif type(op) in KNOWN and all([found[a] is not None for a in args]) and getattr(op, "shaped", None) is None:
            kind = kind_of(op, [found[a] for a in args])
            found[slot] = float if kind == FLOAT and not program.shapes[slot] else kind  # float64 numbers are floats
    return found


def unrolled(program: Program, kinds: Sequence[Any], most: int) -> Unrolled | None:
    """The program on single numbers; None if it has more than `most` operations, or numbers other than float64."""
    for slot, (op, kind) in enumerate(zip(program.ops, kinds, strict=True)):
        truth = kind is not None and kind == np.dtype(bool) and (type(op) is Discrete or type(op) is Constant)
        if kind is None or not (kind == FLOAT or truth) or math.prod(program.shapes[slot]) > 4 * most:
            return None
    try:
        return Unrolled(program, most)
    except TooMany:
        return None
