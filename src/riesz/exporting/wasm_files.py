"""The C files as a WebAssembly module, with a small module of JavaScript around it."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import TraceError
from .c_files import identifier, write_c


def _compiler() -> list[str]:
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    if (zig := shutil.which("zig")) is not None:
        return [zig, "cc"]
    raise TraceError("export('wasm', …) needs the compiler zig: pip install ziglang")


def write_wasm(path: Any, exported: Any, precision: str) -> list[Path]:
    """Write name.wasm and name.mjs beside the C they are made of."""
    compiler = _compiler()
    files = write_c(path, exported, precision)
    folder, name = Path(path), files[0].stem
    sizes = _sizes(files[0].read_text(), name, len(exported.inputs), exported)
    lines = [f'#include "{name}.h"', ""]
    for n, size in sizes:
        lines += [f"static real {n}_[{size}];", f"real *{n}_at(void);", f"real *{n}_at(void) {{ return {n}_; }}"]
    call = ", ".join([f"{n}_" for n, _ in sizes])
    lines += ["void run(void);", f"void run(void) {{ {name}({call}); }}"]
    (folder / "wasm.c").write_text("\n".join(lines) + "\n")
    exports = [f"-Wl,--export={n}" for n in ("run", *[f"{n}_at" for n, _ in sizes])]
    target = folder / f"{name}.wasm"
    command = [*compiler, "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c99", "-O2", "wasm.c", f"{name}.c"]
    done = subprocess.run([*command, "-o", target.name, *exports], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise TraceError(f"the compiler zig says: {done.stderr[-500:]}")
    script = folder / f"{name}.mjs"
    script.write_text(_script(name, sizes, len(exported.inputs), precision))
    return [target, script, *files]


def _sizes(header: str, name: str, inputs: int, exported: Any) -> list[tuple[str, int]]:
    """The names of inputs and outputs, as the header declares them, and their sizes."""
    head = next(line for line in header.splitlines() if line.startswith(f"void {name}("))
    names = [part.split("*")[-1].strip() for part in head[head.index("(") + 1 : head.rindex(")")].split(",")]
    shapes = [*exported.inputs, *[exported.program.shapes[s] for s in exported.program.outputs]]
    return [(n, max(math.prod(s), 1)) for n, s in zip(names, shapes, strict=True)]


def _script(name: str, sizes: list[tuple[str, int]], inputs: int, precision: str) -> str:
    kind = "Float64Array" if precision == "double" else "Float32Array"
    given, found = sizes[:inputs], sizes[inputs:]
    sets = "\n".join([f"    view(wasm.{n}_at(), {k}).set({n});" for n, k in given])
    gives = ", ".join([f"view(wasm.{n}_at(), {k}).slice()" for n, k in found])
    return f"""// {name}: load(bytes of {name}.wasm) gives a function of arrays, which gives a list of arrays.
export async function load(bytes) {{
  const {{ instance }} = await WebAssembly.instantiate(bytes, {{}});
  const wasm = instance.exports;
  if (wasm._initialize) wasm._initialize();
  const view = (at, size) => new {kind}(wasm.memory.buffer, at, size);
  return function {identifier(name, "f")}({", ".join([n for n, _ in given])}) {{
{sets}
    wasm.run();
    return [{gives}];
  }};
}}
"""
