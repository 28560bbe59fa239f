"""What NumPy and SciPy functions riesz knows, as a table: `python -m riesz.syntax.coverage > docs/coverage.md`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .traced import FUNCTIONS, NOTES, UFUNCS

HEAD = """# What is supported

Generated from the code by `python -m riesz.syntax.coverage`. In a function given to riesz, these functions of NumPy and SciPy, under their own names,
become what the second column says; the third is the derivative. Operators (`+ - * / // % ** @`, comparisons), indexing (integers, slices, `None`, `...`,
integer arrays, fixed masks, computed integers) and the methods of arrays of the same names are included. Functions of your own: `rz.primitive`,
`rz.custom_derivative`, `rz.linear`, `rz.bilinear`.
"""


def name_of(function: Any) -> str:
    """np.sum, np.linalg.solve, scipy.special.erf."""
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", str(function))
    if isinstance(function, np.ufunc):
        return f"np.{name}" if getattr(np, name, None) is function or name in ("absolute", "conjugate", "divide", "remainder") else f"scipy.special.{name}"
    if module.startswith("scipy"):
        return ".".join([*module.split(".")[:2], name])
    part = module.split(".")
    return "np." + ".".join([*[p for p in part[1:2] if not p.startswith("_")], name])


def rows() -> list[tuple[str, str, str]]:
    """(function, what it becomes, derivative rule), sorted by name."""
    from .scipy_names import everything

    known = {**NOTES, **everything()}
    found = {name_of(f) if not isinstance(f, str) else f: note for f, note in known.items()}
    return [(name, *note) for name, note in sorted(found.items(), key=lambda row: (row[0].count("."), row[0]))]


def table() -> str:
    """The page."""
    lines = [HEAD, "| function | becomes | derivative |", "|---|---|---|"]
    lines += [f"| `{name}` | {what.replace('|', chr(92) + '|')} | {rule.replace('|', chr(92) + '|')} |" for name, what, rule in rows()]
    return "\n".join(lines) + "\n"


def unnoted() -> list[Any]:
    """Functions that are answered without a line in the table: none."""
    return [f for f in (*UFUNCS, *FUNCTIONS) if f not in NOTES]


if __name__ == "__main__":
    print(table(), end="")
