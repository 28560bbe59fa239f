"""What the code of every backend has: the task it is written for, arguments that are looked at first, results in their
containers.

Generated code looks at the types and shapes of its arguments. It gives OTHER where they are not the ones it was written
for, or where Python's floats raise and NumPy's do not; then the ordinary way is taken.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from ..calculus.domain_check import checked, checking
from ..functions.function import TracedFunction
from ..functions.points import argument_names
from ..functions.traces.given import Given
from ..functions.traces.records import Aval, Record, Static, evaluated
from ..ops.number_domains import OTHER
from ..programs.cost import Cost, cost
from ..programs.program import Program
from ..runtime.generated_source import defined
from ..terms.primitives import RULES
from ..tracing.argument_trees import unflatten
from ..tracing.classes import INTEGER
from ..tracing.surroundings.watching import MISSING
from ..tracing.traced import Traced
from .python.scalar_code import NAMES
from .source_text import inside, tupled

Run = Callable[[tuple[Any, ...]], Any]


class Task(NamedTuple):
    """A trace to write code for: its program, ready to run; names of its arguments; their kinds (`float`: a Python
    float); if it was asked for."""

    record: Record
    program: Program
    names: list[str]
    kinds: list[Any]
    asked: bool


@dataclass(eq=False)
class Code:
    """Generated code for one kind of arguments: `run(leaves)` gives the result, or OTHER."""

    record: Record
    program: Program
    backend: str
    why: str
    run: Run | None = None
    source: str = ""
    names: Sequence[str] = ()  # of the arrays
    owners: Sequence[Sequence[int]] = ()  # which arrays belong to which argument

    @property
    def cost(self) -> Cost:
        """Operations of one run, and numbers kept."""
        return cost(self.program)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The result at array leaves of the kind this was written for."""
        if self.run is not None and not any([type(x) is Traced for x in leaves]):
            found = self.run(tuple([exact(x, a) for x, a in zip(leaves, self.record.avals, strict=True)]))
            if found is not OTHER:
                return found
        return self.record.wrap(evaluated(self.record, leaves))


def exact(x: Any, aval: Aval) -> Any:
    """A leaf in the type that generated code expects."""
    if aval.shape:
        return np.asarray(x)
    return float(x) if aval.weak else aval.dtype.type(x)


def names_of(function: TracedFunction, given: Given) -> list[str]:
    """A name for each array leaf."""
    known = argument_names(function.function, len(given.owners))
    found: list[str] = []
    for i, owned in enumerate(given.owners):
        name = known[i] if i < len(known) and known[i].isidentifier() else f"x{i}"
        name = f"{name}_" if name in _TAKEN or _made(name) else name
        found.extend([name] if len(owned) == 1 else [f"{name}_{k}_" for k in range(len(owned))])
    return found if len(set(found)) == len(found) else [f"x{k}_" for k in range(len(found))]


def _made(name: str) -> bool:
    """Whether a name is like those that code makes: t3, x_0, __x."""
    _, line, tail = name.rpartition("_")
    return name.startswith("__") or (tail.isdecimal() if line else name[0] in "tcir" and name[1:].isdecimal())


_CALLED = "MISSING OTHER RAISED checked checking dense empty float found has_nan hush len ndarray number own restore"
_TAKEN = {*NAMES, *RULES, *_CALLED.split(), "args", "kwargs", "self", "tiles", "token", "tuple", "type"}


def numbers(shape: Any) -> int:
    """How many numbers an array has; 0 for steps with several results."""
    return 0 if shape and type(shape[0]) is tuple else math.prod(shape)


def result_text(record: Record, texts: Sequence[str], space: dict[str, Any]) -> str:
    """The result in its containers."""
    rest = iter(texts)

    def named(base: str, value: Any) -> str:
        name = f"{base}_{len(space)}"
        space[name] = value
        return name

    def make(node: Any, parts: list[Any]) -> str:
        texts = [str(p) for p in parts]
        return tupled(texts) if node.form is None else f"{named('make', node.form.make)}([{', '.join(texts)}])"

    def given_back(aval: Aval) -> str:
        return f"{named('whole', int)}({next(rest)})" if aval.weak == INTEGER else next(rest)

    leaves = [named("static", r.value) if isinstance(r, Static) else given_back(r) for r in record.results]
    return str(unflatten(record.tree, leaves, make))


def function(
    title: str,
    avals: Sequence[Aval],
    names: list[str],
    body: list[str],
    space: dict[str, Any],
    fixed: Sequence[str] | None = None,
    counted: Sequence[str] = (),
) -> tuple[str, Any]:
    """A function that checks its arguments and runs some lines. With `fixed`, what makes such a function for values of
    these names. `counted`: vectors whose numbers the body takes apart, which fails where there are more or fewer."""
    name = "".join([c if c.isalnum() and c.isascii() else "_" for c in title]).strip("_")
    space |= {"OTHER": OTHER, "checked": checked, "checking": checking, "ndarray": np.ndarray}
    lines = [f"if len(args) != {len(names)} or (checked and checking()):", "    return OTHER"]
    if names:
        lines.append(f"{', '.join(names)}, = args" if len(names) == 1 else f"{', '.join(names)} = args")
    for n, a in zip(names, avals, strict=True):
        kind = "float" if a.weak else f"type_{a.dtype.name}"
        space[f"type_{a.dtype.name}"], space[f"dtype_{a.dtype.name}"] = a.dtype.type, np.dtype(a.dtype.name)
        wrong = f"type({n}) is not {kind}"
        if a.shape:
            size = f"{n}.ndim != 1" if n in counted else f"{n}.shape != {a.shape}"
            dtype = f"dtype_{a.dtype.name}"
            while dtype in names:
                dtype += "_"
            space[dtype] = np.dtype(a.dtype.name)
            other = f"({n}.dtype is not {dtype} and {n}.dtype != {dtype})"  # those of pickles are not NumPy's own
            wrong = f"type({n}) is not ndarray or {other} or {size}"
        lines.extend([f"if {wrong}:", "    return OTHER"])
    taken = {*keyword.kwlist, *_TAKEN, *space, *(fixed or ())}  # what the lines call keeps its name
    while not name.isidentifier() or name in taken:
        name = f"f_{name}"
    whole = inside(f"def {name}(args):", [*lines, *body])
    if fixed is not None:
        whole = inside(f"def with_numbers({', '.join(fixed)}):", [*whole, f"return {name}"])
    source = "\n".join(whole)
    return source, defined(source, name if fixed is None else "with_numbers", space)


def method(code: Code, names: Sequence[str]) -> Callable[..., Any]:
    """Generated code for some arguments as `__call__` of a class that has `otherwise`: one frame of Python for a call.
    Arguments have names of their own, which is faster than a tuple; those that are left out are MISSING."""
    text, run = code.source, cast(Any, code.run)
    given, rest = "args", "(self, *args, **kwargs):"
    if names:
        given = f"tuple([x for x in ({', '.join(names)}, *args) if x is not MISSING])"
        rest = f"(self, {', '.join([f'{n}=MISSING' for n in names])}, /, *args, **kwargs):"
        wrong = "    if args or kwargs or (checked and checking()):\n        return OTHER"
        text = f"def {run.__name__}(args):\n{wrong}\n" + text.partition(" = args\n")[2]
    text = text.replace("(args):", rest, 1).replace("if len(args) != 0", "if args or kwargs", 1)
    text = text.replace("return OTHER", f"return self.otherwise({given}, kwargs)")
    return defined(text, run.__name__, {**run.__globals__, "MISSING": MISSING})
