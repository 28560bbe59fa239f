"""A folder of C: the function, its header with sizes, an example that prints what it gives, a CMake file."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TraceError
from .c_formulas import DISCRETE, FORMULAS, number
from .c_fusion import fused
from .c_linalg import HELPERS
from .c_numbers import CSmallPrograms
from .c_program import Ref

_WORDS = "auto break case char const continue default do double else enum extern float for goto if inline int long main"
_WORDS += " register restrict return short signed sizeof static struct switch typedef union unsigned void volatile"
_WORDS += " while real pattern main "
MATH = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fmax fmin"
MATH += " fmod hypot ldexp lgamma log log10 log1p log2 nearbyint pow remainder rint round sin sinh sqrt tan tanh tgamma"
MATH += " trunc"
"""Functions of math.h. Those for float have an f behind."""


def identifier(text: str, default: str) -> str:
    """A name that C allows."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    return found if found and not found[0].isdigit() and found not in (_WORDS + MATH).split() else default


_SCRIPT = "arguments await bytes catch class debugger delete eval export function import instance instanceof let memory"
_SCRIPT += " new null run super this throw try typeof var view wasm with yield true false"
_USED = {*re.findall(r"[a-z]\w+", " ".join([*FORMULAS.values(), *DISCRETE.values()])), *_SCRIPT.split(), "I"}
"""Functions that formulas call, words of JavaScript and of the files for WebAssembly, and a macro of complex.h."""


def argument(text: str, default: str) -> str:
    """The name of an argument; t1, a2, out0 and the like are names of the function itself."""
    found = identifier(text, default)
    return default if found in _USED or re.fullmatch(r"[a-z]+\d+|_\w*", found) else found


def write_c(path: Any, exported: Any, precision: str) -> list[Path]:
    """Write the files; `exported` is what the exporting entry knows of a function."""
    if precision not in ("double", "float"):
        raise TraceError(f"dtype={precision!r}: C has double and float here")
    name = identifier(exported.name, "function")
    c, names = CSmallPrograms(), [argument(n, f"x{i}") for i, n in enumerate(exported.names)]
    names = names if len({*names, name}) == len(names) + 1 else [f"x{i}" for i in range(len(names))]
    given = [Ref(n if s else f"{n}[0]", s) for n, s in zip(names, exported.inputs, strict=True)]
    found = c.program(exported.program, given)
    outs = [f"out{i}" for i in range(len(found))]
    uses = Counter([x.text for x in found])
    direct = {x.text: out for x, out in zip(found, outs, strict=True) if _is_buffer(x) and uses[x.text] == 1}
    for source, out in zip(found, outs, strict=True):
        if source.text not in direct:
            c.copy(source, Ref(out if source.shape else f"{out}[0]", source.shape))
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    parts = [*[f"const real *{n}" for n in names], *[f"real *{n}" for n in outs]]
    head = f"void {name}({', '.join(parts) or 'void'})"
    guard = f"{name.upper()}_H"
    shapes = [*exported.inputs, *[x.shape for x in found]]
    sizes = [(n, max(math.prod(s), 1)) for n, s in zip((*names, *outs), shapes, strict=True)]
    defines = [f"#define {name.upper()}_{n.upper()}_SIZE {k}" for n, k in sizes]
    patterns, extern = _patterns(name, exported)
    lines = [re.sub(r"\ba\d+\b", lambda m: direct.get(m[0], m[0]), line) for line in fused(c.lines, direct)]
    used, code = read_names(lines)
    buffers = [text for text in c.buffers if _declared(text) in used]
    numbers = sum([int(text[text.index("[") + 1 : -2]) for text in buffers])
    header = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"/* {exported.title.replace('*/', '* /')}: no allocation, {numbers} numbers in static buffers.",
        "   Arrays are row-major and must not overlap. Not to be called by two threads at once. */",
        "",
        f"typedef {precision} real;",
        "",
        *defines,
        *extern,
        "",
        f"{head};",
        "",
        "#endif",
    ]
    helpers = [HELPERS[h] for h in sorted(c.helpers)]
    unused = [f"    (void){n};" for n in names]
    body = [
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
        "",
        *[text for text in c.tables if _declared(text) in used],
        *patterns,
        *buffers,
        "",
        *helpers,
        head,
        "{",
    ]
    source = "\n".join([*body, *unused, *code, "}"]) + "\n"
    if precision == "float":
        source = re.sub(rf"\b({MATH.replace(' ', '|')})(?=\()", r"\1f", source)
        source = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])", _single, source)
    files = {
        f"{name}.h": "\n".join(header) + "\n",
        f"{name}.c": source,
        "main.c": _main(name, names, outs, sizes, exported),
    }
    files["CMakeLists.txt"] = _cmake(name)
    for file, text in files.items():
        (folder / file).write_text(text)
    return [folder / file for file in files]


def _single(found: re.Match[str]) -> str:
    """A number as one of float; those that are too large or too small for it as it rounds them."""
    with np.errstate(over="ignore"):
        x = np.float32(found[1])
    return f"{found[1]}f" if np.isfinite(x) and (x or not float(found[1])) else "(real)INFINITY" if x else "0.f"


def _is_buffer(x: Ref) -> bool:
    """Whether a slot is an array of its own, which an output can be instead."""
    return bool(x.shape) and re.fullmatch(r"a\d+", x.text) is not None


def _declared(line: str) -> str:
    """The name that a declaration of an array is of."""
    return line[: line.index("[")].split()[-1]


def read_names(lines: list[str]) -> tuple[set[str], list[str]]:
    """The names that appear in lines; and the lines, where a number that nothing reads is marked as such."""
    appear = Counter([word for line in lines for word in re.findall(r"\b[a-z]+\d+\b", line)])
    set_only = Counter([m[1] for line in lines if (m := re.match(r"\s*(s\d+) = ", line))])
    never = {f"real {n};" for n, k in appear.items() if k == set_only[n] + 1}
    return set(appear), [f"{line} (void){line.split()[-1]}" if line.strip() in never else line for line in lines]


def _patterns(name: str, exported: Any) -> tuple[list[str], list[str]]:
    """The rows and columns of a sparse result as constants."""
    if exported.pattern is None:
        return [], []
    offsets, columns, shape = exported.pattern
    lines: list[str] = []
    extern = [f"#define {name.upper()}_ROWS {shape[0]}", f"#define {name.upper()}_COLUMNS {shape[1]}"]
    for title, array in (("offsets", offsets), ("columns", columns)):
        text = ", ".join(map(str, np.asarray(array).tolist())) or "0"
        lines.append(f"const int {name}_{title}[{max(len(array), 1)}] = {{{text}}};")
        extern.append(f"extern const int {name}_{title}[{max(len(array), 1)}];")
    return lines, extern


def _main(name: str, names: list[str], outs: list[str], sizes: Any, exported: Any) -> str:
    lines = [f'#include "{name}.h"', "", "#include <stdio.h>", ""]
    values = dict(zip(names, exported.example, strict=True))
    for n, size in sizes:
        if n in values:
            flat = [number(v) for v in np.ravel(values[n])] or ["0."]
            text = ", ".join([v.replace("(real)", "") for v in flat])
            lines.append(f"static const real {n}[{size}] = {{{text}}};")
        else:
            lines.append(f"static real {n}[{size}];")
    lines += ["", "int main(void)", "{", f"    {name}({', '.join([*names, *outs])});"]
    for n, size in sizes:
        if n in outs:
            lines.append(f'    for (int i = 0; i < {size}; i++) printf("%.17g\\n", (double){n}[i]);')
    return "\n".join([*lines, "    return 0;", "}"]) + "\n"


def _cmake(name: str) -> str:
    return f"""cmake_minimum_required(VERSION 3.10)
project({name} C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
add_executable({name}_example main.c)
target_link_libraries({name}_example {name} m)
"""
