"""What NumPy and SciPy functions riesz knows, as a table: `python -m riesz.tracing.rules.coverage >
docs/coverage.md`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from ..registry import PARTS
from ..traced import FUNCTIONS, NOTES, UFUNCS
from .all_rules import load_rules
from .scientific import distributions, interpolators, multivariate
from .scipy_names import counterparts, solvers
from .special import enter

HEAD = """# What is supported

Generated from the code by `python -m riesz.tracing.rules.coverage`. In a function given to riesz, these functions of
NumPy and SciPy, under their own names, become what the second column says; the third is the derivative. Operators
(`+ - * / // % ** @`, comparisons), indexing and assignment (integers, slices, `None`, `...`, integer arrays, fixed
masks, computed integers) and the methods of arrays of the same names are included. So are `reduce`, `accumulate` and
`outer` of ufuncs, `reduceat` of `np.add`, `np.multiply`, `np.maximum`, `np.minimum` and `np.logaddexp`, and `at` of
these, `np.subtract` and `np.divide` (of other ufuncs where no position comes up twice). Functions of your own:
`rz.primitive`, `rz.custom_derivative`, `rz.linear`, `rz.bilinear`.
"""


def name_of(function: Any) -> str:
    """np.sum, np.linalg.solve, scipy.special.erf."""
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", str(function))
    if isinstance(function, np.ufunc):
        numpys = getattr(np, name, None) is function or name in ("absolute", "conjugate", "divide", "remainder")
        return f"{'np' if numpys else 'scipy.special'}.{name}"
    if module.startswith("scipy"):
        public = [*takewhile(lambda part: part[0] != "_", module.split("."))]
        return ".".join([*(public if len(public) > 1 else ["scipy", "sparse"]), name])
    part = module.split(".")
    return "np." + ".".join([*[p for p in part[1:2] if not p.startswith("_")], name])


def rows() -> list[tuple[str, str, str]]:
    """(function, what it becomes, derivative rule), sorted by name."""
    load_rules()
    for module in PARTS:
        importlib.import_module(module)
    counterparts()
    solvers()
    enter()
    found = {name_of(f): note for f, note in NOTES.items()} | dict(_objects())
    return [(name, *found[name]) for name in sorted(found, key=lambda name: (name.split(".")[:-1], name.lower()))]


def _objects() -> Iterator[tuple[str, tuple[str, str]]]:
    """Distributions and interpolators: objects whose methods have formulas."""
    for name, row in distributions.rows().items():
        methods = [m for m in distributions.METHODS if row.has(m)]
        yield f"scipy.stats.{name}", (f"formulas: {', '.join(methods)}", "that of the formula, in parameters too")
    for name in dict.fromkeys([key.split(".")[0] for key in multivariate.METHODS]):
        methods = [key.split(".")[1] for key in multivariate.METHODS if key.startswith(f"{name}.")]
        yield f"scipy.stats.{name}", (f"formulas: {', '.join(methods)}", "that of the formula, in parameters too")
    for name in interpolators.CLASSES:
        yield f"scipy.interpolate.{name}", ("gathers and products; splines solve a banded system", "in points and data")
    yield "np.vectorize", ("the function at every index, stacked", "that of the function")


def table() -> str:
    """The page."""
    lines = [HEAD, "| function | becomes | derivative |", "|---|---|---|"]
    cells = [[f"`{name}`", *[text.replace("|", r"\|") for text in texts]] for name, *texts in rows()]
    return "\n".join([*lines, *[f"| {' | '.join(row)} |" for row in cells]]) + "\n"


def unnoted() -> list[Any]:
    """Public functions that are answered without a line in the table: none."""
    return [f for f in (*UFUNCS, *FUNCTIONS) if f not in NOTES and not f.__name__.startswith("_")]


if __name__ == "__main__":
    print(table(), end="")
