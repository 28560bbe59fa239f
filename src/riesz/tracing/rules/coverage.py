"""What NumPy and SciPy functions riesz knows, as a table: `python -m riesz.tracing.rules.coverage >
docs/coverage.md`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from ..registry import PARTS, public_name
from ..traced import FUNCTIONS, NOTES, UFUNCS
from .all_rules import load_rules
from .interpolation import fitpack_splines, scattered_data
from .scientific import distributions, interpolators, multivariate
from .scipy_names import counterparts, solvers
from .special import enter

HEAD = """# What is supported

Generated from the code by `python -m riesz.tracing.rules.coverage`. In a function given to riesz, these functions of
NumPy and SciPy, under their own names, become what the second column says; the third is the derivative. Operators
(`+ - * / // % ** @`, comparisons), indexing and assignment (integers, slices, `None`, `...`, integer arrays, fixed
masks, computed integers) and the methods of arrays of the same names are included. So are `reduce`, `accumulate` and
`outer` and `at` of ufuncs, and `reduceat` of `np.add`, `np.multiply`, `np.maximum`, `np.minimum` and `np.logaddexp`.
Functions of your own: `rz.primitive`, `rz.custom_derivative`, `rz.linear`, `rz.bilinear`.
"""


def rows() -> list[tuple[str, str, str]]:
    """(function, what it becomes, derivative rule), sorted by name."""
    load_rules()
    for module in PARTS:
        importlib.import_module(module)
    counterparts()
    solvers()
    enter()
    found = {public_name(f): note for f, note in NOTES.items()} | dict(_objects())
    return [(name, *found[name]) for name in sorted(found, key=lambda name: (name.split(".")[:-1], name.lower()))]


def _objects() -> Iterator[tuple[str, tuple[str, str]]]:
    """Distributions and interpolators: objects whose methods have formulas."""
    for name, row in distributions.rows().items():
        methods = [m for m in distributions.METHODS if row.has(m)]
        yield f"scipy.stats.{name}", (f"formulas: {', '.join(methods)}", "that of the formula, in parameters too")
    for name in dict.fromkeys([key.split(".")[0] for key in multivariate.METHODS]):
        methods = [key.split(".")[1] for key in multivariate.METHODS if key.startswith(f"{name}.")]
        yield f"scipy.stats.{name}", (f"formulas: {', '.join(methods)}", "that of the formula, in parameters too")
    for name in interpolators.CLASSES | fitpack_splines.CLASSES | scattered_data.CLASSES:
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
