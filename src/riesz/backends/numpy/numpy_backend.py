"""*numpy*: a line of array code for each step; on tiles of a long axis where the program acts pointwise along it and is
large."""

from __future__ import annotations

from typing import Any

from numpy import vdot

from ...functions.traces.records import own
from ...ops.op import Contraction
from ...programs.axis.components import Components, components
from ...programs.axis.slices import Tiled
from ...programs.axis.tiling import tiled
from ...programs.passes.deferring import unguarded
from ...programs.passes.fusing import fused
from ...programs.passes.ordering import paired
from ...programs.program import Program
from ...programs.sub_programs import Block
from ...runtime import tuning
from ...runtime.warnings_off import hush, restore
from ..common import Code, Task, function, numbers, result_text
from ..python.unrolled import FLOAT
from ..source_text import inside
from .array_code import ArrayValue
from .tiled_code import TiledArrays


def written(task: Task) -> Code | str:
    """Code on arrays: there always is some."""
    parts = _long(task.program)
    return array_code(task) if parts is None else _tiled_code(task, parts)


def array_code(task: Task) -> Code:
    """A line for each step; loops over tiles where these save large temporaries."""
    record, names = task.record, task.names
    plain = unguarded(task.program)
    joined = paired(task.program if plain is None else fused(plain[0]))  # without guards more can be joined
    program = tiled(joined.hushed_first)
    inputs = [ArrayValue(n, a.shape, kind) for n, a, kind in zip(names, record.avals, task.kinds, strict=True)]
    code = TiledArrays(program, inputs)
    floats = [not a.shape and a.dtype == FLOAT and not a.weak for a in record.avals]
    lines = [f"{n} = float({n})" for n, is_float in zip(names, floats, strict=True) if is_float]
    calm = record.program.hushed is not None  # there are branches not taken: nobody is warned of what happens there
    cut = 0 if not calm else code.calm if program.hushed is not None and plain is None else len(code.lines)
    lines.extend(_hushed(code.names, code.lines, len(code.lines) if _all_calm(record.program) else cut))
    looked = [] if plain is None else [code.outputs[i].text for i in plain[1]]
    for v in dict.fromkeys(looked):  # the interpreter has the guards
        code.names["vdot"] = vdot
        lines.extend([f"found = vdot({v}, {v})", "if found != found:", "    return OTHER"])  # as in has_nan
    space = code.names
    lines.append(f"return {result_text(record, code.given_back(record.outputs), space)}")
    source, run = function(record.name, record.avals, names, lines, space)
    ops = ", ".join(dict.fromkeys(code.called))
    called = f" {len(code.called)} run as in the interpreter: {ops}." if code.called else ""
    loops = "".join([f" {op}." for op in program.ops if isinstance(op, Tiled)])
    why = f"{len(task.program)} steps on arrays, a line for each.{loops}{called}"
    return Code(record, task.program, "numpy", why, run, "\n\n".join([*code.tiles, source]))


def _all_calm(program: Program) -> bool:
    """Whether all of it is to run without warnings: derivatives, and loops with branches not taken inside."""
    stack, found = [program], program.calm
    while stack and not found:
        inner = stack.pop()
        found = inner is not program and inner.hushed is not None
        stack.extend([p for op in inner.ops if isinstance(op, Block) for p in op.programs])
    return found


def _hushed(names: dict[str, Any], lines: list[str], cut: int) -> list[str]:
    """Lines of code, the first of them without NumPy's warnings."""
    if not cut:
        return lines
    names |= {"hush": hush, "restore": restore}
    calm = [*inside("try:", lines[:cut]), "finally:", "    restore(token)"]
    return ["token = hush()", *calm, *lines[cut:]]


def _long(program: Program) -> Components | None:
    """The program on tiles of a long axis, where it is large and has several steps to keep in the cache."""
    known = program.__dict__
    if "_tiled" not in known:
        large = max([numbers(s) for s in program.shapes], default=0)
        many = len(program) >= 4 and large * len(program) >= tuning.NUMPY_TILED_OPERATIONS
        worth = many and all([program.shapes[s] for s in program.outputs])
        found = components(program, exact=True) if worth and program.outputs else None
        known["_tiled"] = found if found is not None and found.size >= 6 and not _matrix(program, found) else None
    return known["_tiled"]


def _matrix(program: Program, parts: Components) -> bool:
    """Whether something along the axis is multiplied by a matrix that is the same all along it, and not small."""
    for op, args in zip(program.ops, program.args, strict=True):
        if type(op) is not Contraction or {k for ls in op.labels for k in ls} <= set(op.out):
            continue
        fixed = [program.shapes[a] for a in args if a not in parts.axes]
        if len(fixed) < len(args) and any([len(s) > 1 and numbers(s) >= tuning.NUMPY_MATRIX_NUMBERS for s in fixed]):
            return True
    return False


def _tiled_code(task: Task, parts: Components) -> Code:
    record, names = task.record, task.names

    def tiles(*xs: Any) -> list[Any]:
        return parts.run(xs, backend="numpy")

    space: dict[str, Any] = {f"aval_{j}": a for j, a in enumerate(record.outputs)}
    space.update(tiles=tiles, own=own)
    texts = [f"own(found[{j}], aval_{j})" for j in range(len(record.outputs))]
    computed = [f"found = tiles({', '.join(names)})"]
    lines = [*_hushed(space, computed, _all_calm(record.program)), f"return {result_text(record, texts, space)}"]
    source, run = function(record.name, record.avals, names, lines, space)
    where = f"at each of {parts.length:,} positions of a long axis"
    why = f"{parts.size} operations {where}: run on tiles that stay in the cache."
    return Code(record, task.program, "numpy", why, run, f"{source}\n# on tiles:\n{parts.source}")
