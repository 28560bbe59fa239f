"""*jax*: a line of jnp for each step, compiled by XLA for the CPU or the GPU. NumPy arrays in, NumPy arrays out; JAX
arrays by jax_primitive.py.

float64 stays float64: where JAX's 64-bit types are off, they are on while this code is written and run.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...functions.traces.records import own
from ...programs.program import Program
from ...runtime.generated_source import defined
from ..common import Code, Task, function, result_text
from ..source_text import inside, tupled


def written(task: Task) -> Code | str:
    """Code for XLA, or why there is none."""
    if find_spec("jax") is None:
        return "JAX is not installed (pip install 'riesz[jax]')"
    from .jax_ops import NoJaxCode, TooLong

    record, names = task.record, task.names
    try:
        given, kinds = [a.dtype for a in record.avals], [a.dtype for a in record.outputs]
        code = InJax(task.program, given, kinds, record.name, names)
    except TooLong as problem:
        return Code(record, task.program, "steps", f"It is run step by step: {problem}.")
    except NoJaxCode as problem:
        return str(problem)
    space: dict[str, Any] = {f"aval_{j}": a for j, a in enumerate(record.outputs)}
    space.update(found=code.run, own=own)
    texts = [f"own(results[{j}], aval_{j})" for j in range(len(record.outputs))]
    lines = [f"results = found({', '.join(names)})", f"return {result_text(record, texts, space)}"]
    _, run = function(record.name, record.avals, names, lines, space)
    return Code(record, task.program, "jax", code.why, run, code.source)


class InJax:
    """A program as a function on JAX arrays. `given` and `kinds` are the types of its inputs and outputs.

    What is compiled (`function`) takes the inputs that are used by themselves, stacks of inputs that are used as such,
    and the arrays the program holds; it gives arrays, of which some outputs are rows.
    """

    def __init__(
        self, program: Program, given: Sequence[Any], kinds: Sequence[Any], title: str, names: Sequence[str] = ()
    ) -> None:
        from .jax_lines import JaxLines, result
        from .jax_ops import JaxValue, Shared

        self.program, self.given, self.kinds, self.title = program, tuple(given), tuple(kinds), title
        names = names or [f"x{i}" for i in range(len(given))]
        names = [f"{n}_" if n in ("jnp", "inf", "nan", "result") else n for n in names]
        shared, p = Shared(), program
        shared.names.update(dict.fromkeys(names) | {"result": result})
        known = zip(names, p.inputs, given, strict=True)
        lines = JaxLines(p, [JaxValue(n, p.shapes[s], False, np.dtype(k)) for n, s, k in known], shared)
        lines.written()
        texts, self._places = lines.given_back(kinds)
        number = {slot: i for i, slot in enumerate(p.inputs)}
        self._single = [number[s] for s in p.inputs if s in lines.used]
        self._packs = [tuple([number[s] for s in slots]) for slots in shared.packs.values()]
        name = "f_" + "".join([c if c.isalnum() and c.isascii() else "_" for c in title]).strip("_")
        head = f"def {name}({', '.join([*[names[i] for i in self._single], *shared.packs, *shared.arrays])}):"
        body = [*lines.lines, f"return {tupled(texts)}"]
        self.source = "\n".join(inside(head, body))
        self.plain = defined(self.source, name, shared.names)
        self._held = list(shared.arrays.values())
        self._cut = [shared.cut.get(name, ()) for name in shared.arrays]
        self._arrays: dict[bool, list[Any]] = {}
        strong = [a for name, a in shared.arrays.items() if name not in shared.weak]
        self.wide = any([isinstance(a, np.ndarray) and a.dtype == np.float64 for a in strong])
        called = f" Called back on the host: {', '.join(dict.fromkeys(shared.called))}." if shared.called else ""
        rolled = self.source.count("def layer_")
        loops = f" Repeated steps are {rolled} loop{'s' if rolled > 1 else ''}." if rolled else ""
        arrays = f"{len(self._held)} arrays are arguments of what is compiled."
        self.why = f"{len(p)} steps as {len(body):,} lines for XLA; {arrays}{loops}{called}"

    @cached_property
    def function(self) -> Any:
        """The compiled function. On a GPU products are those of cuBLAS: they are in full precision, where XLA's own are
        no faster, and looking for the best of these takes seconds for each shape."""
        import jax

        own = jax.default_backend() == "gpu"
        return jax.jit(self.plain, compiler_options={"xla_gpu_enable_triton_gemm": False} if own else None)

    @cached_property
    def nested(self) -> Any:
        """The function inside code that is compiled as a whole, which has no options of its own."""
        import jax

        return jax.jit(self.plain)

    def taken(self, xs: Sequence[Any], stack: Any) -> list[Any]:
        """The arguments of the compiled function, held arrays apart, from the inputs."""
        return [*[xs[i] for i in self._single], *[stack([xs[i] for i in pack]) for pack in self._packs]]

    def presented(self, found: Sequence[Any]) -> list[Any]:
        """The outputs from what the compiled function gives."""
        return [found[k] if row is None else found[k][row] for k, row in self._places]

    def arrays(self) -> list[Any]:
        """The arrays the program holds, on the device; made once for each setting of 64-bit types."""
        import jax
        import jax.numpy as jnp

        wide = bool(jax.config.jax_enable_x64)
        if wide not in self._arrays:
            with jax.ensure_compile_time_eval():
                self._arrays[wide] = [jax.tree.map(jnp.asarray, a) for a in self._held]
        return self._arrays[wide]

    def run(self, *xs: Any) -> list[Any]:
        """The outputs at NumPy arrays, as NumPy arrays."""
        import jax

        with jax.enable_x64(True):
            found = self.function(*self.taken(xs, np.stack), *self.arrays())
        return self.presented([np.asarray(y) for y in found])
