"""A program with an axis of rows, as passes over the rows.

Each slot either has the axis of rows, or is small. Rows are never all there: what is computed for each of them is
computed for a batch, and only sums over rows are kept.

    small steps ──► pass 1 over the rows: sums ──► small steps ──► pass 2 ──► …

A sum belongs to the first pass that has all it needs. What a later pass needs for each row it computes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import TraceError
from ..ops.number_domains import NUMBERS
from ..ops.op import Contraction, Shape
from ..ops.opaque import Discrete, Put, Ruled
from ..programs.axis.axis_labels import axis_labels
from ..programs.axis.slices import Tiled
from ..programs.passes.fusing import ready
from ..programs.program import INPUT, Constant, Program, applied, outputs, several
from ..spaces.formal_vectors import dense, weak


class RowPass(NamedTuple):
    """One pass: the steps for a batch, the slots that are given (a column, or an array of the function), and the slots
    that come out."""

    body: Tiled
    given: list[int]
    results: list[int]


def constant(op: Constant, shape: Shape) -> Any:
    """A fixed array; one number for all rows takes the room of one."""
    value = weak(op.value)
    return np.broadcast_to(value, shape) if shape and not np.ndim(value) else dense(value)


class RowPasses:
    """The passes of a program whose last inputs are columns."""

    def __init__(self, program: Program, columns: int, rows: int) -> None:
        first = len(program.inputs) - columns
        self.program, self.rows = ready(program), rows
        self.columns = dict(zip(self.program.inputs[first:], range(columns), strict=True))
        self.axis = self._axes()
        self._check()
        self._levels()
        self.scans = [self._scan(level) for level in range(1, self.depth + 1)]

    # -- which slots have the axis ---------------------------------------------------------------------------

    def _axes(self) -> list[int | None]:
        """The axis of rows of each slot: the axes that run together with those of the columns."""
        program, parent = self.program, dict[tuple[int, int], tuple[int, int]]()

        def find(x: tuple[int, int]) -> tuple[int, int]:
            root = x
            while (up := parent.get(root, root)) != root:
                root = up
            while (up := parent.get(x, x)) != root:
                parent[x], x = root, up
            return root

        def join(x: tuple[int, int], y: tuple[int, int]) -> None:
            parent[find(x)] = find(y)

        live = program.needed(program.outputs)
        for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
            if not args or not live[slot] or any([several(program.shapes[s]) for s in (slot, *args)]):
                continue
            seen: dict[int, tuple[int, int]] = {}
            out, given = axis_labels(op, [program.shapes[a] for a in args], program.shapes[slot])
            for at, labels in ((slot, out), *zip(args, given, strict=True)):
                for k, label in enumerate(labels):
                    join((at, k), seen.setdefault(label, (at, k)))
        self.live = live
        slots = list(self.columns)
        for a in slots[1:]:
            join((a, 0), (slots[0], 0))
        root = find((slots[0], 0)) if slots else None
        found = list[int | None]()
        for slot, shape in enumerate(program.shapes):
            axes = [] if several(shape) else [k for k in range(len(shape)) if find((slot, k)) == root]
            if len(axes) > 1 and live[slot]:
                raise self._refused(slot, "it would have a number for each pair of rows")
            found.append(axes[0] if axes else None)
        return found

    def _refused(self, slot: int, why: str) -> TraceError:
        op = self.program.ops[slot]
        name = getattr(op, "title", "a scaling")
        return TraceError(
            f"{name} cannot be computed from one row after another: {why}. What is computed for each row may use the "
            "numbers of that row and arrays of the function, price[row.product]; rows meet in np.sum, np.mean, "
            "row.sum(values, by='column') and np.add.at"
        )

    def _check(self) -> None:
        """Every step is along the rows, sums them, or has nothing to do with them."""
        program, axis = self.program, self.axis
        for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
            if not self.live[slot] or all([axis[a] is None for a in args]):
                continue
            if isinstance(op, Ruled) or (isinstance(op, Discrete) and "axis" in dict(op.parameters)):
                raise self._refused(slot, "it looks at all rows together")
            if several(program.shapes[slot]):
                raise self._refused(slot, "it is a loop or a branch")
            shapes, shape = [program.shapes[a] for a in args], program.shapes[slot]
            out, given = axis_labels(op, shapes, shape)
            labels = {ls[k] for a, ls in zip(args, given, strict=True) if (k := axis[a]) is not None}
            k = axis[slot]
            if k is None and not isinstance(op, (Contraction, Put)):
                raise self._refused(slot, "it looks at all rows together")
            if len(labels) != 1 or (k is not None and out[k] not in labels):
                raise self._refused(slot, "its rows do not belong together")

    # -- passes ----------------------------------------------------------------------------------------------

    def _levels(self) -> None:
        """The pass after which each slot is known; of what rows have, the pass after which it can be computed."""
        program, level = self.program, [0] * len(self.program.ops)
        for slot, args in enumerate(program.args):
            summed = self.axis[slot] is None and any([self.axis[a] is not None for a in args])
            level[slot] = max([level[a] for a in args], default=0) + summed
        self.level = level
        ends = [level[s] + (self.axis[s] is not None) for s in program.outputs]
        self.depth = max(ends, default=0)

    def _ends(self, level: int) -> list[int]:
        """The slots that come out of a pass."""
        program, axis = self.program, self.axis
        sums = [
            slot
            for slot, args in enumerate(program.args)
            if self.live[slot] and axis[slot] is None and self.level[slot] == level
            if any([axis[a] is not None for a in args])
        ]
        shown = [s for s in dict.fromkeys(program.outputs) if axis[s] is not None and self.level[s] == level - 1]
        return sums + shown

    def _scan(self, level: int) -> RowPass:
        program, axis, results = self.program, self.axis, self._ends(level)
        body, place, given, kept = Program(share=False), dict[int, int](), list[int](), list[int | None]()
        inside, stack = set[int](), list(results)
        while stack:
            slot = stack.pop()
            if slot not in inside:
                inside.add(slot)
                if slot in results or (axis[slot] is not None and program.ops[slot] is not INPUT):
                    stack.extend(program.args[slot])
        for slot in sorted(inside):
            op = program.ops[slot]
            row = slot in results or axis[slot] is not None
            if op is INPUT or type(op) is Constant or not row:
                place[slot] = body.input(program.shapes[slot])
                given.append(slot)
            else:
                place[slot] = applied(body, op, [place[a] for a in program.args[slot]])
            kept.append(axis[slot])
        body.outputs = [place[s] for s in results]
        return RowPass(Tiled(body, self.rows, tuple(kept), self.rows), given, results)

    # -- running ---------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Any], through: Any) -> list[Any]:
        """The outputs from the arrays of the function; `through(scan, known)` goes through the rows and gives what
        comes out."""
        program = self.program
        known: dict[int, Any] = dict(zip(program.inputs, arrays, strict=False))
        known |= {
            slot: constant(op, program.shapes[slot]) for slot, op in enumerate(program.ops) if type(op) is Constant
        }
        for level in range(self.depth + 1):
            if level:
                scan = self.scans[level - 1]
                known |= dict(zip(scan.results, through(scan, known), strict=True))
            for slot in self.small:
                if self.level[slot] == level:
                    op, args = program.ops[slot], [known[a] for a in program.args[slot]]
                    known[slot] = op * args[0] if type(op) is float else op.run(*args)
        return [known.get(s) for s in program.outputs]

    @cached_property
    def small(self) -> list[int]:
        """The steps that have nothing to do with rows."""
        axis, args = self.axis, self.program.args
        ours = [s for s, a in enumerate(args) if self.live[s] and a and axis[s] is None]
        return [s for s in ours if all([axis[a] is None for a in args[s]])]

    def by_batches(self, scan: RowPass, known: dict[int, Any], batches: Any, emit: Any = None) -> list[Any]:
        """What comes out of a pass. Results that have rows are kept whole, or given to `emit` batch by batch."""
        axis = self.axis
        columns = [self.columns[s] for s in scan.given if s in self.columns]
        bodies: dict[int, Program] = {}
        totals: list[Any] = [None] * len(scan.results)
        start = 0
        for rows in batches(columns):
            m = len(rows[0])
            if m not in bodies:
                bodies[m] = scan.body.at(m)
            taken, leaves = iter(rows), list[Any]()
            for slot in scan.given:
                x = next(taken) if slot in self.columns else known[slot]
                k = None if slot in self.columns else axis[slot]
                leaves.append(x if k is None else x[(slice(None),) * k + (slice(start, start + m),)])
            found = [dense(y) for y in outputs(bodies[m], NUMBERS, leaves)]
            if emit is not None:
                emit(found)
                continue
            for i, (slot, y) in enumerate(zip(scan.results, found, strict=True)):
                if axis[slot] is not None:
                    totals[i] = [] if totals[i] is None else totals[i]
                    totals[i].append(np.array(y))
                elif totals[i] is None:
                    totals[i] = np.array(y, float)
                else:
                    totals[i] += y
            start += m
        return [self._whole(slot, total) for slot, total in zip(scan.results, totals, strict=True)]

    def _whole(self, slot: int, total: Any) -> Any:
        shape, k = self.program.shapes[slot], self.axis[slot]
        if total is None:
            return np.zeros(shape) if shape else 0.0
        return np.concatenate(total, axis=k) if k is not None else total if shape else float(total)
