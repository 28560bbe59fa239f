"""*jax*: a line of jnp for each step, compiled by XLA for the CPU or the GPU. NumPy arrays in, NumPy arrays out; JAX arrays by jax_citizen.py.

float64 stays float64: where JAX's 64-bit types are off, they are on while this code is written and run.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

import builtins
import linecache
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..programs.fusing import ready
from ..programs.program import Program
from ..syntax.functions import own
from .code import Code, Task, function, result_text
from .folded import folded


def written(task: Task) -> Code | str:
    """Code for XLA, or why there is none."""
    if find_spec("jax") is None:
        return "JAX is not installed (pip install 'riesz[jax]')"
    from .jax_lines import Unfit

    record, names = task.record, task.names
    try:
        code = InJax(task.program, [a.dtype for a in record.avals], [a.dtype for a in record.outputs], record.name, names)
    except Unfit as problem:
        return str(problem)
    space: dict[str, Any] = {f"aval_{j}": a for j, a in enumerate(record.outputs)}
    space.update(found=code.run, own=own)
    texts = [f"own(results[{j}], aval_{j})" for j in range(len(record.outputs))]
    lines = [f"results = found({', '.join(names)})", f"return {result_text(record, texts, space)}"]
    _, run = function(record.name, record.avals, names, lines, space)
    return Code(record, task.program, "jax", code.why, run, code.source)


class InJax:
    """A program as a function on JAX arrays: `function(*inputs, *arrays)`, compiled; `kinds` are the types of inputs and outputs."""

    def __init__(self, program: Program, given: Sequence[Any], kinds: Sequence[Any], title: str, names: Sequence[str] = ()) -> None:
        self.program = program
        self.given = tuple(given)
        self.kinds = tuple(kinds)
        self.title = title
        self._names = list(names) or [f"x{i}" for i in range(len(given))]
        self.why, self.source, self.plain, self._held = self._written()
        self._arrays: dict[bool, list[Any]] = {}

    def _written(self) -> Any:
        from .jax_lines import Lines, Shared, Value, result

        shared, p = Shared(), self.program
        shared.names.update({n: None for n in self._names} | {"result": result})
        lines = Lines(p, [Value(n, p.shapes[s], False, k) for n, s, k in zip(self._names, p.inputs, self.given, strict=True)], shared)
        found = lines.written()
        texts = [f"result({v.text}, {v.shape}, {np.dtype(k).name!r})" for v, k in zip(found, self.kinds, strict=True)]
        name = "".join([c if c.isalnum() and c.isascii() else "_" for c in self.title]).strip("_")
        head = f"def f_{name}({', '.join([*self._names, *shared.arrays])}):"
        source = "\n".join([head, *[f"    {line}" for line in [*lines.lines, f"return ({', '.join(texts)}{',' if texts else ''})"]]])
        file = f"<riesz jax {name} {id(self)}>"
        exec(builtins.compile(source, file, "exec"), shared.names)
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        called = f" On the host, called back: {', '.join(dict.fromkeys(shared.called))}." if shared.called else ""
        rolled = source.count("def layer_")
        loops = f" Repeated steps are {rolled} loop{'s' if rolled > 1 else ''}." if rolled else ""
        why = f"{len(p)} steps as {shared.count:,} lines for XLA; {len(shared.arrays)} arrays are arguments of the compiled function.{loops}{called}"
        return why, source, shared.names[f"f_{name}"], list(shared.arrays.values())

    @cached_property
    def function(self) -> Any:
        """The compiled function."""
        import jax

        return jax.jit(self.plain)

    def arrays(self) -> list[Any]:
        """The arrays that come after the inputs, on the device; made once for each setting of 64-bit types."""
        import jax
        import jax.numpy as jnp

        wide = bool(jax.config.jax_enable_x64)
        if wide not in self._arrays:
            with jax.ensure_compile_time_eval():
                self._arrays[wide] = [jax.tree.map(jnp.asarray, a) for a in self._held]
        return self._arrays[wide]

    @property
    def wide(self) -> bool:
        """Whether it holds arrays of float64."""
        return any([isinstance(a, np.ndarray) and a.dtype == np.float64 for a in self._held])

    def run(self, *xs: Any) -> list[Any]:
        """The outputs at NumPy arrays, as NumPy arrays."""
        import jax

        with jax.enable_x64(True):
            return [np.asarray(y) for y in self.function(*xs, *self.arrays())]


def prepared(program: Program, given: Sequence[Any], kinds: Sequence[Any], title: str) -> InJax:
    """Code for a program as it was derived: put in order first."""
    return InJax(folded(ready(program)), given, kinds, title)
