"""Programs of a point as generated code: the numbers of a matrix at point after point.

Plain calls (`J(x).to_sparse()`) get code that costs as much to write as a few calls take. What is made to be called
often (`rz.sparse_jacobian`) gets machine code where it can be had and the arrays are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..functions.traces.records import Aval, Record
from ..programs.program import Program
from ..programs.sub_programs import Block
from ..runtime import tuning
from ..runtime.stackless import quiet
from ..tracing.argument_trees import flatten
from ..tracing.traced import FLOAT
from .common import Code, Task, numbers
from .entry import written

PointFunction = Callable[[tuple[Any, ...]], Any]


@quiet
def coded(program: Program, point: Sequence[Any], often: bool) -> Code | None:
    """Code for a program with one output, for points like this one; None where the interpreter does as well.

    `often`: it will be called many times, so it may take a second to write."""
    avals = [_aval(x) for x in point]
    if any([a is None for a in avals]) or any([isinstance(op, Block) for op in program.ops]):
        return None
    given = [a for a in avals if a is not None]
    results, tree = flatten(0.0)
    results = [Aval(program.shapes[program.outputs[0]], FLOAT, False)]
    record = Record("numbers", program, [], given, results, tree)
    names = [f"x{i}_" for i in range(len(given))]
    tiny = sum([numbers(s) for s in program.shapes]) <= tuning.PYTHON_OPERATIONS  # floats: a microsecond
    if often and not tiny:
        from .native.native_backend import straight  # with all that writes machine code

        if (code := straight(Task(record, program, names, [], True))) is not None:
            return code
    light = max([numbers(s) for s in program.shapes], default=0) <= tuning.LIGHT_PROGRAM_NUMBERS
    code = written(record, "auto" if often or light else "numpy", names)
    return None if code.run is None else code


def _aval(x: Any) -> Aval | None:
    """What is known of a leaf; None for those that code is not written for."""
    if type(x) is float:
        return Aval((), FLOAT, True)
    kind = getattr(x, "dtype", None)
    if kind is None or kind.kind not in "fib" or kind not in (np.dtype(float), np.dtype(np.int64), np.dtype(bool)):
        return None
    return Aval(x.shape, FLOAT if kind == FLOAT else kind, False)
