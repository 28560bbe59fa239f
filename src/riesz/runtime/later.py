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
    "mathml": "show.face",
    "View": "show.face",
    "spy": "show.face",
    "diagram": "show.face",
    "bundle": "show.display.displays",
    "MapPicture": "show.display.map_picture",
    # derivatives as a textbook writes them
    "closed_form": "forms.closed_form",
    "product_with_hessian": "forms.closed_form",
    "form_steps": "forms.steps.form_steps",
    # what a term can be asked for
    "evaluate": "functions.calling",
    "adjoint": "calculus.adjoint",
    "simplified": "simplify.engine",
    "LinearMap": "maps.linear_map",
    "multiple": "maps.multiples",
    "red": "terms.named.named_sums",
    # the inner product of a weighted space
    "weighed": "calculus.interpretation.product_rules",
    # rules written in NumPy code: they are traced when a derivative asks for them
    "rule_program": "tracing.differentials",
    "mapped_rule": "tracing.differentials",
    "primitive_named": "tracing.rules.special",
    "load_rules": "tracing.rules.all_rules",
    "fold_program": "tracing.rules.relational.folds",
    # functions of one matrix on stacks of them
    "vmap": "functions.control",
    # sparse matrices with traced data as linear maps
    "map_of_entries": "maps.derivation",
    "ScipyIterations": "maps.solvers.krylov",
    # functions of SciPy that are given functions
    "solver_called": "functions.implicit.scipy_callbacks",
    # small functions and maps run as generated code
    "called": "backends.small_functions",
    "code_of": "backends.small_functions",
    "graded": "backends.small_functions",
    "suits": "backends.small_functions",
    "leaves_of": "backends.small_functions",
    "applied": "backends.small_maps",
    "coded": "backends.point_functions",
    # long work in files, to go on from
    "Checkpoint": "files.checkpoints",
    # compiled functions as code that runs alone
    "exported": "exporting.exporters",
    # tables larger than memory
    "RowTable": "queries.table",
    "Source": "queries.sources",
    # functions of JAX's
    "from_jax": "importing.from_jax",
    # loops on small states run as functions of numbers
    "native_rounds": "backends.native.native_loops",
    "native_mapped": "backends.native.native_loops",
    "native_program": "backends.native.native_loops",
}
"""The room and file of each name."""


def __getattr__(name: str) -> Any:
    if name not in TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"...{TABLE[name]}", __name__), name)
    globals()[name] = found
    return found
