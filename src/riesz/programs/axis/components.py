"""Programs that act pointwise along one long axis, run as code on the components at each position of it.

Steps on arrays of P × 3 × 2 numbers pass over memory once each. Taken apart into scalar expressions they run on tiles
of P that stay in the cache, or as one compiled loop: every number is read once, every result written once. What does
not have the axis is computed beforehand, as usual.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import VectorError
from ...relations.cpu.pair_sums import numba_installed
from ...runtime import pool as threads
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...spaces.contraction import number
from ...spaces.formal_vectors import dense, weak
from ..program import INPUT, Constant, Program
from .along import AxisRead, ComponentNodes, MixesPositions, followed, kind_of
from .component_code import (
    ComponentTask,
    TargetPlace,
    Tiles,
    compilable,
    compiled_loop,
    kinds_of,
    loop_source,
    ordered,
)
from .scalars import Fixed, Load, Small, TooMany


def components(
    program: Program,
    outputs: Sequence[int] | None = None,
    axis: int | None = None,
    most: int = tuning.COMPONENT_OPERATIONS,
    exact: bool = False,
) -> Components | None:
    """The program as code along a long axis, or None where a step mixes positions, or there are too many operations.

    The longest axis of the outputs that fits is taken, or `axis`. `exact`: products with 0 are computed, for the other
    factor may be inf.
    """
    slots = list(program.outputs if outputs is None else outputs)
    shapes = [program.shapes[s] for s in slots]
    sizes = [(n, k) for shape in shapes for k, n in enumerate(shape) if axis is None or k == axis % len(shape)]
    for n, k in sorted(dict.fromkeys(sizes), key=lambda found: (-found[0], found[1])):
        try:
            return Components(program, slots, n, k, most, exact)
        except (MixesPositions, TooMany):
            continue
    return None


class Components:
    """A program taken apart along an axis of `length` positions."""

    def __init__(
        self,
        program: Program,
        outputs: Sequence[int],
        length: int,
        axis: int,
        most: int = tuning.COMPONENT_OPERATIONS,
        exact: bool = False,
    ) -> None:
        self.program = program
        self.outputs = list(outputs)
        self.length = length
        self.axes, self._whole = followed(program, outputs, length, axis)
        rows = ComponentNodes(program, self.axes, self._whole, length, most, exact)
        for slot in sorted(self.axes):  # arguments first: nothing is deep
            rows.row(slot)
        self.graph = rows.graph
        self.sources = rows.sources
        self.indices = [np.ascontiguousarray(i, np.intp) for i in rows.indices]
        self.nodes: list[Any] = [
            np.squeeze(rows.row(s), self.axes[s]) if s in self.axes else None for s in self.outputs
        ]
        self.varies = bytearray([type(op) is Load for op in self.graph.ops])
        for x, args in enumerate(self.graph.args):
            if any([self.varies[a] for a in args]):
                self.varies[x] = 1
        read = {s.slot for s in self.sources} | {op.slot for op in self.graph.ops if type(op) is Small}
        live = program.needed([*read, *[s for s in self.outputs if s not in self.axes]])
        self.steps = [slot for slot, op in enumerate(program.ops) if live[slot] and op is not INPUT]
        self._jobs: dict[Any, _Job] = {}
        self._types: dict[Any, list[Any]] = {}

    @property
    def size(self) -> int:
        """How many scalar operations there are at each position, loads included."""
        return self._job(None, self._places).size

    def run(self, inputs: Sequence[Any], out: Sequence[Any] | None = None, backend: str = "auto") -> list[Any]:
        """The outputs, in arrays of their shapes, or in those given as `out` (any strides; None: a new one)."""
        given = [None] * len(self.outputs) if out is None else list(out)
        if len(given) != len(self.outputs):
            raise VectorError(f"{len(self.outputs)} outputs need as many arrays to be written to; got {len(given)}")
        job = self._job(None, self._places)
        point = _Point(self, job, inputs)
        results: list[Any] = []
        for slot, nodes, target, kind in zip(self.outputs, self.nodes, given, self._kinds(point), strict=True):
            shape = self.program.shapes[slot]
            if target is not None and np.shape(target) != shape:
                raise VectorError(
                    f"an output of shape {shape} cannot be written to an array of shape {np.shape(target)}"
                )
            if target is None:
                target = np.empty(shape, kind)
            if nodes is None:
                target[...] = dense(point.values[slot])
            results.append(target)
        job.run(
            point,
            [
                np.moveaxis(r, self.axes[s], 0) if s in self.axes else r
                for r, s in zip(results, self.outputs, strict=True)
            ],
            backend,
        )
        return results

    def write(self, inputs: Sequence[Any], data: Any, columns: Sequence[Any], backend: str = "auto") -> None:
        """Write components into a flat array of shape (length, width): that of output i at `at` into column
        columns[i][at]; −1 leaves it out, components of one column are added up.

        The data of a block-sparse matrix with as many numbers at each position are filled in one pass.
        """
        at = [np.asarray(c, np.intp) for c in columns]
        wanted = [None if nodes is None else nodes.shape for nodes in self.nodes]
        if [c.shape for c in at] != wanted:
            raise VectorError(
                f"columns are arrays of the shapes {wanted}, one for each output that has the long axis; got "
                f"{[c.shape for c in at]}"
            )
        width = 1 + max([int(c.max(initial=-1)) for c in at], default=-1)
        if data.ndim != 2 or data.shape[0] != self.length or data.shape[1] < width:
            raise VectorError(
                f"data for {self.length} positions and columns up to {width - 1} cannot have shape {data.shape}"
            )
        job = self._job(tuple([c.tobytes() for c in at]), lambda: self._columns(at))
        job.run(_Point(self, job, inputs), [data], backend)

    def _kinds(self, point: _Point) -> list[Any]:
        """The types of the outputs, as they are step by step."""
        if point.key not in self._types:
            ops, kinds = self.program.ops, dict[int, Any]()

            def kind(slot: int) -> Any:
                if slot in kinds or type(ops[slot]) is Constant:
                    return kinds[slot] if slot in kinds else _kind(weak(ops[slot].value))
                return _kind(weak(point.values[slot])) if slot in point.values else float  # nothing of it is read

            for slot in sorted(self.axes):
                given = slot in point.values or type(ops[slot]) is Constant
                kinds[slot] = kind(slot) if given else kind_of(ops[slot], [kind(a) for a in self.program.args[slot]])
            self._types[point.key] = [kind(slot) for slot in self.outputs]
        return self._types[point.key]

    @property
    def source(self) -> str:
        """The code on tiles, for numbers of 64 bits."""
        return Tiles(self._job(None, self._places).task(None)).source

    @property
    def loop(self) -> str:
        """The code of the compiled loop, for numbers of 64 bits."""
        return loop_source(self._job(None, self._places).task(None))

    def _places(self) -> list[TargetPlace]:
        """All components of all outputs where they belong."""
        return [
            TargetPlace(int(nodes[at]), i, at)
            for i, nodes in enumerate(self.nodes)
            if nodes is not None
            for at in np.ndindex(*nodes.shape)
        ]

    def _columns(self, columns: list[Any]) -> list[TargetPlace]:
        found: dict[int, int] = {}
        for nodes, at in zip(self.nodes, columns, strict=True):
            for x, c in zip(nodes.flat, at.flat, strict=True):
                if c >= 0:
                    found[int(c)] = int(x) if int(c) not in found else self.graph.add(found[int(c)], int(x))
        for args in self.graph.args[len(self.varies) :]:  # sums of components
            self.varies.append(int(any([self.varies[a] for a in args])))
        return [TargetPlace(x, 0, (c,)) for c, x in found.items()]

    def _job(self, key: Any, places: Callable[[], list[TargetPlace]]) -> _Job:
        if key not in self._jobs:
            self._jobs[key] = _Job(self, places())
        return self._jobs[key]


class _Point:
    """What the inputs make of everything that is read: slots without the axis, arrays along it, numbers."""

    def __init__(self, owner: Components, job: _Job, inputs: Sequence[Any]) -> None:
        program = owner.program
        shapes = [program.shapes[s] for s in program.inputs]
        if [np.shape(x) for x in inputs] != shapes:
            raise VectorError(f"inputs have the shapes {shapes}; got {[np.shape(x) for x in inputs]}")
        given = [np.asarray(x) if np.ndim(x) else number(x) for x in inputs]
        self.values: dict[int, Any] = dict(zip(program.inputs, given, strict=True))
        with quietly():
            for slot in owner.steps:
                op, args = program.ops[slot], [self.values[a] for a in program.args[slot]]
                self.values[slot] = (
                    op.value if type(op) is Constant else op * args[0] if type(op) is float else op.run(*args)
                )
            self.arrays = [self._array(owner, s) for s in owner.sources]
            self.numbers: dict[int, Any] = {}
            small = {
                op.slot: weak(self.values[op.slot]) for x in job.numbers if type(op := owner.graph.ops[x]) is Small
            }
            flat = {
                slot: v.reshape(-1) if np.ndim(v) else [v] * math.prod(program.shapes[slot])
                for slot, v in small.items()
            }
            for x in job.numbers:
                op = owner.graph.ops[x]
                if type(op) is Small:
                    self.numbers[x] = flat[op.slot][op.at]
                else:
                    self.numbers[x] = (
                        op.value if type(op) is Fixed else _plain(op, [self.numbers[a] for a in owner.graph.args[x]])
                    )

    def _array(self, owner: Components, source: AxisRead) -> Any:
        """A source with the long axis, or the rows of its table, in front."""
        x = np.asarray(dense(self.values[source.slot]))
        x = np.moveaxis(x, source.axes, range(len(source.axes)))
        if source.rows >= 0:
            return x.reshape((-1, *x.shape[len(source.axes) :]))
        end = source.start + source.step * owner.length
        return x[source.start : None if end < 0 else end : source.step] if owner.length else x[:0]

    @cached_property
    def key(self) -> Any:
        """What code depends on: the types of arrays and numbers, and whether components lie without gaps."""
        return tuple([(x.dtype, _even(x)) for x in self.arrays]), tuple([_kind(x) for x in self.numbers.values()])


class _Job:
    """Nodes on their way to places; code is written for each kind of inputs."""

    def __init__(self, owner: Components, places: list[TargetPlace]) -> None:
        self.owner = owner
        self.places = places
        self.order = ordered(owner.graph, [p.node for p in places])
        self.numbers = [x for x in self.order if not owner.varies[x]]
        self.size = len(self.order) - len(self.numbers)
        self._codes: dict[Any, Any] = {}

    def task(self, point: _Point | None) -> ComponentTask:
        """What code is written for at a point; None: at one of 64-bit floats."""
        owner, ops = self.owner, self.owner.graph.ops
        key = point and ("task", point.key)
        if key not in self._codes:
            loads = [x for x in self.order if type(ops[x]) is Load]
            wide = np.dtype(float)
            given = {
                x: _kind(point.numbers[x]) if point else float if type(ops[x]) is Fixed else wide for x in self.numbers
            }
            given |= {x: point.arrays[ops[x].source].dtype if point else wide for x in loads}
            even = [_even(x) for x in point.arrays] if point else [False] * len(owner.sources)
            kinds = kinds_of(owner.graph, self.order, given, owner.varies)
            self._codes[key] = ComponentTask(
                owner.graph, self.order, kinds, [s.rows for s in owner.sources], even, owner.varies, self.places
            )
        return self._codes[key]

    def run(self, point: _Point, targets: list[Any], backend: str) -> None:
        """Fill the targets, in parts for all threads."""
        arrays = [x.copy() if any([np.may_share_memory(x, y) for y in targets]) else x for x in point.arrays]
        task, n = self.task(point), self.owner.length
        parts = threads.worth(n * self.size // tuning.COMPONENT_OPERATIONS_PER_THREAD)
        cuts = [n * k // parts for k in range(parts + 1)]
        work = (
            self._loop(task, point, arrays, targets)
            if self._compiles(task, point, backend)
            else self._tiles(task, point, arrays, targets)
        )
        threads.spread(work, list(itertools.pairwise(cuts)))

    def _compiles(self, task: ComponentTask, point: _Point, backend: str) -> bool:
        if backend not in ("auto", "numpy", "numba"):
            raise VectorError(f"a backend is 'auto', 'numpy' or 'numba'; got {backend!r}")
        if backend == "numba" and not numba_installed():
            raise VectorError("the backend 'numba' needs Numba: pip install 'riesz[numba]'; or use 'numpy', or 'auto'")
        if backend == "auto" and (
            self.size > tuning.COMPONENT_COMPILED_OPERATIONS
            or self.size * self.owner.length < tuning.COMPONENT_WORK_TO_COMPILE
            or not numba_installed()
        ):
            return False
        exact = all(
            [_kind(x) != np.intp or abs(int(x)) <= 1 << 53 for x in point.numbers.values()]
        )  # numbers are handed over as floats
        possible = backend != "numpy" and exact and compilable(task)
        if backend == "numba" and not possible:
            raise VectorError("some function here has no form that Numba compiles; use the backend 'numpy', or 'auto'")
        return possible

    def _tiles(
        self, task: ComponentTask, point: _Point, arrays: list[Any], targets: list[Any]
    ) -> Callable[[int, int], None]:
        key = ("tiles", point.key)
        if key not in self._codes:
            tiles = Tiles(task)
            self._codes[key] = tiles, tiles.run
        tiles, run = self._codes[key]
        loads: list[Load] = [self.owner.graph.ops[x] for x in tiles.loads]
        X = [_column(arrays[op.source], op.at, task.rows[op.source] >= 0) for op in loads]
        Y = [targets[p.target][(slice(None), *p.at)] for p in self.places]
        K = list(point.numbers.values())

        def work(low: int, high: int) -> None:
            with quietly():
                run(low, high, max(min(tiles.length, high - low), 1), X, self.owner.indices, K, Y)

        return work

    def _loop(
        self, task: ComponentTask, point: _Point, arrays: list[Any], targets: list[Any]
    ) -> Callable[[int, int], None]:
        key = ("loop", point.key)
        if key not in self._codes:
            self._codes[key] = compiled_loop(loop_source(task))
        loop = self._codes[key]
        sources, indices, places = task.arguments
        K = np.array([float(x) for x in point.numbers.values()])
        given = [
            *[arrays[i] for i in sources],
            *[self.owner.indices[i] for i in indices],
            K,
            *[targets[i] for i in places],
        ]
        return lambda low, high: loop(low, high, *given)


def _plain(op: Any, args: list[Any]) -> Any:
    """A function of numbers; floats without a type stay so."""
    value = op(*args)
    return (
        float(value)
        if isinstance(value, np.float64) and all([type(x) is float for x in args])
        else np.asarray(value)[()]
    )


def _column(x: Any, at: tuple[int, ...], table: bool) -> Any:
    """A component along the axis; of a table, in one piece."""
    column = x[(slice(None), *at)]
    return np.ascontiguousarray(column) if table else column


def _kind(x: Any) -> Any:
    return float if type(x) is float else np.asarray(x).dtype


def _even(x: Any) -> bool:
    return x.strides[0] == x.itemsize
