"""`g.export(kind, path)`: a compiled function as code that runs without riesz."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..backends.common import names_of
from ..backends.entry import CompiledMaps
from ..errors import TraceError
from ..maps.matrices.matrix_programs import sparse_numbers
from ..programs.passes.folding import folded
from ..programs.passes.hoisting import hoisted, written_out
from ..programs.program import Program
from ..tracing.argument_trees import unflatten


class Exported(NamedTuple):
    """What is written: a program, the names and shapes of its inputs, numbers to try it with."""

    name: str
    title: str
    program: Program
    names: list[str]
    inputs: list[tuple[int, ...]]
    example: list[Any]
    shown: str  # what is given, of the outputs `found`
    pattern: Any = None  # of a sparse result: offsets, columns, shape


def opened(compiled: Any) -> Exported:
    """The program of a compiled function, for the kind of arguments that its code was written for last."""
    if isinstance(compiled, CompiledMaps):
        return _matrix(compiled)
    codes = list(compiled._codes.values())
    if not codes or codes[-1].record is None:
        raise TraceError(
            f"{compiled!r} has no code yet: what is exported has fixed shapes; give examples, rz.compile(f, x), or "
            "call it once"
        )
    record = codes[-1].record
    if record.captured:
        record = record.settled()
    if record.guards is not None:
        raise TraceError(
            f"{compiled!r} takes another way at other numbers (a condition on values was decided while it was traced); "
            "write rz.cond or np.where"
        )
    program = folded(hoisted(written_out(record.program)))
    shapes = [a.shape for a in record.avals]
    rng = np.random.default_rng(0)
    example = [np.round(rng.uniform(0.25, 1.0, s), 3) for s in shapes]
    names = [*codes[-1].names] or [f"x{i}" for i in range(len(shapes))]
    return Exported(compiled.name, compiled.name, program, names, shapes, example, _shown(record))


def _matrix(compiled: CompiledMaps) -> Exported:
    """A Jacobian or Hessian: the numbers of its sparse matrix, whose pattern is fixed."""
    given = compiled.example
    if given is None:
        raise TraceError(f"{compiled!r}: give examples of the arguments, rz.compile(rz.hessian(f), x)")
    rng = np.random.default_rng(0)
    example = [np.round(rng.uniform(0.25, 1.0, a.shape), 3) for a in given.avals]
    L = compiled.function.function(*given.rebuilt([x if x.ndim else float(x) for x in example])[0])
    source = L.instance
    found = sparse_numbers(source) if len(source.point) == len(example) else None
    if found is None:
        raise TraceError(f"{compiled!r}: the pattern of its matrix depends on the point, or on large arrays outside")
    program, pattern = found
    names = names_of(compiled.function, given)
    shapes = [a.shape for a in given.avals]
    rule = pattern.indptr, pattern.indices, L.shape
    return Exported(compiled.name, compiled.name, folded(program), names, shapes, example, "found[0]", rule)


def _shown(record: Any) -> str:
    """The result as Python writes it: containers around the outputs."""

    def make(node: Any, parts: list[str]) -> str:
        form = node.form
        if form is not None and form.kind is dict:
            return "{" + ", ".join([f"{k!r}: {p}" for k, p in zip(form.names, parts, strict=True)]) + "}"
        if form is not None and form.kind is list:
            return f"[{', '.join(parts)}]"
        return f"({''.join([f'{p}, ' for p in parts])})"

    numbers = iter(range(len(record.outputs)))
    leaves = [repr(r.value) if hasattr(r, "value") else f"found[{next(numbers)}]" for r in record.results]
    return str(unflatten(record.tree, leaves, make))


def exported(compiled: Any, kind: str, path: Any, dtype: str = "double") -> list[Path]:
    """Write a compiled function as files; see `Compiled.export`."""
    if kind == "c":
        from .c_files import write_c

        return write_c(path, opened(compiled), dtype)
    if kind == "wasm":
        from .wasm_files import write_wasm

        return write_wasm(path, opened(compiled), dtype)
    if kind == "numpy":
        from .numpy_module import write_numpy

        return write_numpy(path, opened(compiled))
    if kind == "stablehlo":
        return _stablehlo(compiled, path)
    raise TraceError(f"export({kind!r}, …): 'c', 'numpy', 'wasm' and 'stablehlo' are known")


def _stablehlo(compiled: Any, path: Any) -> list[Path]:
    import jax

    what = opened(compiled)
    shapes = [jax.ShapeDtypeStruct(s, np.float64) for s in what.inputs]
    with jax.enable_x64(True):
        found = jax.export.export(jax.jit(lambda *xs: compiled(*xs)))(*shapes)
    try:
        content = found.serialize()
    except ImportError as problem:
        raise TraceError(f"export('stablehlo', …) needs what jax.export needs: {problem}") from None
    target = Path(path)
    target.write_bytes(content)
    return [target]
