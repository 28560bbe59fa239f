"""What each op means in each interpretation of programs, as a page: `python -m riesz.checking.op_table >
docs/ops.md`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from ..calculus.affine import DIFFERENTIALS
from ..calculus.batching import BATCHED
from ..calculus.reverse import TRANSPOSES
from ..forms.reading import STEPS
from ..maps.normal_form import ENTRIES, PATTERNS
from ..ops.op import Op
from ..ops.op_rules import OpRules
from ..programs.axis.along import AXES, NODES
from ..programs.cost import FLOPS
from ..programs.program_to_term import TERMS
from ..show.diagrams.reading_programs import BOXES
from ..show.program_text import LINEAR, VALUES

HEAD = """# What each op means

Generated from the code by `python -m riesz.checking.op_table`. A row is an op, a column is an interpretation of
programs. A cell says what the op becomes there, or what is done instead. Each column is a table of rules, an
`OpRules`. The tables have no default: a new op needs a rule, or a word why it has none, in every column. The op
`float` is a scaling (k·). Ops that are made to run (`Op.made_to_run`) come after derivatives and normal forms, which
refuse them.
"""


def tables() -> dict[str, dict[str, OpRules[Any]]]:
    """The tables of rules, by headings."""
    from ..backends.jax.jax_ops import LINES as JAX
    from ..backends.native.scope import CODE
    from ..backends.numba.accesses import READS
    from ..backends.numpy.array_code import LINES

    return {
        "Calculus": {"derivative": DIFFERENTIALS, "transpose": TRANSPOSES, "under a leading axis": BATCHED},
        "Axes and cost": {"axes that run along": AXES, "operations": FLOPS},
        "Linear maps": {"entries": ENTRIES, "pattern": PATTERNS},
        "Printing": {"a value": VALUES, "a linear step": LINEAR, "a diagram": BOXES},
        "Expressions": {"a term": TERMS, "a closed form": STEPS},
        "Code": {"numbers, one by one": NODES, "NumPy": LINES, "Numba reads": READS, "loops": CODE, "JAX": JAX},
    }


def ops() -> list[type]:
    """All classes of ops that run, found from their parents: those of all modules. A scaling is a float."""
    package = importlib.import_module("riesz")
    for module in pkgutil.walk_packages(package.__path__, "riesz."):
        importlib.import_module(module.name)
    found: list[type[Op]] = [Op]
    for kind in found:
        found.extend([c for c in kind.__subclasses__() if c not in found])
    ours = [c for c in found if c.run is not Op.run and c.__module__.startswith("riesz.") and c.__name__[0] != "_"]
    named = {c.__name__: c for c in ours}
    return [float, *[named[name] for name in sorted(named)]]


def lacking(kinds: list[type]) -> list[str]:
    """What is to be written, for each cell that would be empty."""
    every = [rules for group in tables().values() for rules in group.values()]
    return [rules.lacking(kind) for kind in kinds for rules in every if not rules.word(kind)]


def page() -> str:
    """The page."""
    kinds, lines = ops(), [HEAD]
    for title, group in tables().items():
        lines += [f"## {title}", "", *[f"- {name}: `{rules.where}`" for name, rules in group.items()], ""]
        lines += [f"| op | {' | '.join(group)} |", "|---" * (len(group) + 1) + "|"]
        for kind in kinds:
            cells = [rules.word(kind) or "" for rules in group.values()]
            lines.append(" | ".join([f"| `{kind.__name__}`", *[c.replace("|", "\\|") for c in cells]]) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
