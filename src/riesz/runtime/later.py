"""What methods of earlier rooms call in later ones: `print(f)` is written in show/, `f(x)` runs in functions/.

Imports go one way, from later rooms to earlier ones, also inside functions (tests/test_layout.py counts all of them). A
method that must reach the other way calls `later.NAME(…)`. These names are the only exceptions, and this table is their
list.
"""

from __future__ import annotations

import importlib
from typing import Any

TABLE = {
    # how things look
    "text": "show.face",
    "latex": "show.face",
    "html": "show.face",
    "spy": "show.face",
    # derivatives as a textbook writes them
    "closed_form": "forms.closed_form",
    "product_with_hessian": "forms.closed_form",
    # what a term can be asked for
    "evaluate": "functions.calling",
    "adjoint": "calculus.adjoint",
    "simplified": "simplify.engine",
    "LinearMap": "maps.linear_map",
    # the inner product of a weighted space
    "weighed": "calculus.interpretation.product_rules",
    # rules written in NumPy code: they are traced when a derivative asks for them
    "rule_program": "tracing.differentials",
    "mapped_rule": "tracing.differentials",
    "primitive_named": "tracing.rules.special",
    "load_rules": "tracing.rules.all_rules",
    # functions of one matrix on stacks of them
    "vmap": "functions.control",
    # small functions and maps run as generated code
    "called": "backends.small_functions",
    "graded": "backends.small_functions",
    "applied": "backends.small_maps",
}
"""The room and file of each name."""


def __getattr__(name: str) -> Any:
    if name not in TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"...{TABLE[name]}", __name__), name)
    globals()[name] = found
    return found
