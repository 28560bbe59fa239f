"""A function of arrays that goes through the rows of a table, as one step of a program: its derivatives are such
functions again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..calculus.derive import derive_program, transpose_linear
from ..ops.op import Op
from ..ops.opaque import Ruled, Smooth
from ..programs.program import Program
from ..spaces.formal_vectors import dense
from ..tracing.differentials import plus
from ..tracing.traced import Traced, trace_of
from .scans import RowPass, RowPasses
from .sources import Source

Shape = tuple[int, ...]


class Rows:
    """The columns that a program reads, in the order of its inputs, and how: by batches, or by SQL."""

    def __init__(self, source: Source, columns: list[str], engine: str) -> None:
        self.source, self.columns, self.engine = source, columns, engine

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.source.count

    def passes(self, scans: RowPasses) -> Callable[[RowPass, dict[int, Any]], list[Any]]:
        """What goes through the rows for one pass of a program."""
        if self.engine != "stream":
            from .sql_text import by_sql

            return lambda scan, known: by_sql(self, scans, scan, known)
        return lambda scan, known: scans.by_batches(scan, known, self.batches)

    def batches(self, numbers: list[int]) -> Iterator[list[Any]]:
        """Some of the columns, batch by batch."""
        return self.source.batches([self.columns[i] for i in numbers])


class TableForm:
    """(x₀, …, xₙ₋₁) ↦ y, arrays with one axis each, from a program of these and of columns; linear in some of them.

    `moved(k)` is its derivative in argument k, which is one more argument, the last; `turned(k)` its transpose in an
    argument in which it is linear: there the cotangent is given.
    """

    def __init__(self, rows: Rows, program: Program, count: int, linear: frozenset[int] = frozenset()) -> None:
        self.rows, self.program, self.count, self.linear = rows, program, count, linear
        self._made: dict[Any, TableForm] = {}

    @property
    def shapes(self) -> list[Shape]:
        """Of the arguments."""
        return [self.program.shapes[s] for s in self.program.inputs[: self.count]]

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return self.program.shapes[self.program.outputs[0]]

    @cached_property
    def scans(self) -> RowPasses:
        """The passes over the rows."""
        return RowPasses(self.program, len(self.program.inputs) - self.count, self.rows.count)

    def moved(self, k: int) -> TableForm:
        """(xs, dxₖ) ↦ dy."""
        if ("d", k) not in self._made:
            flags = [i == k for i in range(len(self.program.inputs))]
            found, n = derive_program(self.program, flags).derivative, self.count
            inputs = [*found.inputs[:n], found.inputs[-1], *found.inputs[n:-1]]
            linear = (self.linear - {k}) | {n}
            self._made["d", k] = TableForm(self.rows, found.prune(inputs, found.outputs), n + 1, linear)
        return self._made["d", k]

    def turned(self, k: int) -> TableForm:
        """The transpose in argument k, of the same arguments with the cotangent in its place."""
        if ("T", k) not in self._made:
            own, n = self.program.inputs, self.count
            others = [s for i, s in enumerate(own) if i != k]
            back = transpose_linear(self.program.prune([*others, own[k]], self.program.outputs), len(others))
            inputs = [*back.inputs[:k], back.inputs[-1], *back.inputs[k:-1]]
            self._made["T", k] = TableForm(self.rows, back.prune(inputs, back.outputs), n, self.linear)
        return self._made["T", k]

    def run(self, *xs: Any) -> Any:
        """The result on numbers."""
        given = [np.asarray(x, float) for x in xs]
        return dense(self.scans.run(given, self.rows.passes(self.scans))[0])


def _array(*xs: Any, form: TableForm) -> Any:
    return form.run(*xs)


def _shapes(*shapes: Shape, form: TableForm) -> Shape:
    return form.shape


def _differential(d: Any, y: Any, *xs: Any, form: TableForm) -> Any:
    """dy, one pass more over the rows for each argument that moves."""
    home = trace_of(*xs)

    def part(k: int) -> Any:
        slots = [x.slot for x in xs]
        if k in form.linear:
            return through(home, form, [*slots[:k], d[k].slot, *slots[k + 1 :]])
        return through(home, form.moved(k), [*slots, d[k].slot])

    return plus(*[part(k) for k, dx in enumerate(d) if dx is not None])


def _transpose(k: int, *, form: TableForm) -> Op:
    return Ruled(TABLE, (("form", form.turned(k)),))


def through(home: Any, form: TableForm, slots: list[int]) -> Traced:
    """The step of a form."""
    return Traced(home, home.step(Ruled(TABLE, (("form", form),)), slots))


TABLE = Smooth("table", _array, _shapes, _differential, _transpose, batched=False, linear_time=True)
