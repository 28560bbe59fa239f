"""A group of steps as one op of a program: compiled with Numba for the kinds of arrays it meets, run by all threads.

Results do not depend on the number of threads: the axis that they divide is cut into parts fixed by shapes, and sums of
parts are added in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ...ops.number_domains import NUMBERS
from ...programs.axis.component_code import numba_names
from ...programs.program import Program, outputs
from ...programs.sub_programs import Call
from ...runtime import buffers, tuning
from ...runtime import pool as threads
from ...runtime.generated_source import defined
from ...spaces.contraction import number
from ...spaces.formal_vectors import dense
from ..numpy.array_code import LINES
from .loop_code import Nest, NestWriter, Written
from .loop_forms import FLOAT, Kind


class Loops:
    """Several results of several arrays, by one loop nest; step by step where it has no form for their kinds."""

    title = "loops"

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.slots = nest.slots
        self._codes: dict[Any, tuple[Written, Any] | None] = {}

    def shape_of(self, shapes: Any) -> Any:
        """The shapes of the results."""
        return tuple([self.nest.program.shapes[s] for s in self.slots])

    def code(self, kinds: Sequence[Kind]) -> Written | None:
        """The source for some kinds; `float` is a number, or an array of 64-bit floats."""
        shapes = [self.nest.program.shapes[s] for s in self.nest.loads]
        return NestWriter(self.nest, [_of_array(*given) for given in zip(kinds, shapes, strict=True)]).write()

    def kinds(self, given: Sequence[Kind]) -> tuple[Kind, ...] | None:
        """The kinds of the results, where those of the arguments are known."""
        code = None if any([k is None for k in given]) else self.code(given)
        return code and tuple([_of_array(t.kind, t.shape) for t in code.targets])

    def run(self, *xs: Any) -> tuple[Any, ...]:
        """The results on numbers."""
        given = [_plain(dense(x)) for x in xs]
        key = tuple([float if type(x) is float else x.dtype for x in given])
        if key not in self._codes:
            code = self.code(key)
            self._codes[key] = None if code is None else (code, compiled(code.source))
        found = self._codes[key]
        if found is None:
            return tuple([dense(x) for x in outputs(self._steps, NUMBERS, given)])
        return self._run(*found, given)

    def _run(self, code: Written, loop: Callable[..., bool], given: list[Any]) -> tuple[Any, ...]:
        made = self._filled(code, loop, given)
        if made is None:  # a sine of something large
            made = self._filled(code, compiled(code.source, True), given, True)
        results: list[Any] = []
        for t, y in zip(code.targets, made, strict=True):
            y = t.total.along(y, axis=0) if t.apart else y
            results.append(number(np.reshape(y, ())[()]) if not t.shape else y)
        return tuple(results)

    def _filled(self, code: Written, loop: Callable[..., bool], given: list[Any], exact: bool = False) -> Any:
        """The arrays that the loops write; None where our own sines are not right, unless the loops are `exact`."""
        nest, parts = self.nest, self.nest.parts
        made: list[Any] = []
        for t in code.targets:
            shape = (parts, *t.shape) if t.apart else t.shape or (1,)
            made.append(buffers.empty(shape, np.dtype(t.kind)))
            if t.added:
                made[-1][...] = float(t.total.start.replace("np.", ""))
        n = nest.sizes[nest.divided] if nest.divided is not None else 1
        several = min(parts, threads.worth(nest.work // tuning.NEST_OPERATIONS_PER_THREAD))
        rest = (*given, *nest.arrays, *made)
        wide: list[bool] = []

        def some(low: int, high: int) -> None:
            for k in range(low, high):
                wide.append(loop(n * k // parts, n * (k + 1) // parts, k, *rest))

        threads.spread(some, [(parts * k // several, parts * (k + 1) // several) for k in range(several)])
        return made if exact or not any(wide) else None

    @cached_property
    def _steps(self) -> Program:
        """From what is read to the results, in time linear in the steps between."""
        program, small = self.nest.program, Program(share=False)
        place = {slot: small.input(program.shapes[slot]) for slot in self.nest.loads}
        small.copy(program, program.ancestors(self.slots, place), place)
        small.outputs = [place[s] for s in self.slots]
        return small


LINES("a loop nest", Loops)(LINES[Call])


def _plain(x: Any) -> Any:
    """An array without gaps, or a number."""
    return x if type(x) is float else np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)[()]


def _of_array(kind: Kind, shape: Any) -> Kind:
    return FLOAT if kind is float and shape else kind


@lru_cache(maxsize=1024)
def compiled(source: str, exact: bool = False) -> Any:
    """A loop nest compiled by Numba; the same text once. `exact`: with sines that are right everywhere."""
    from .vector_math import EXACT, FUNCTIONS, loop

    return loop(defined(source, "loops", {**numba_names(), **(EXACT if exact else FUNCTIONS)}))
