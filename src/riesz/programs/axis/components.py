"""Programs that act pointwise along one long axis, run as code on the components at each position of it.

Steps on arrays of P × 3 × 2 numbers pass over memory once each. Taken apart into scalar expressions they run on tiles
of P that stay in the cache, or as one compiled loop: every number is read once, every result written once. What does
not have the axis is computed beforehand, as usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import VectorError
from ...ops.number_domains import NUMBERS
from ...relations.cpu.pair_sums import numba_installed
from ...runtime import pool as threads
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...spaces.contraction import number
from ...spaces.formal_vectors import dense, weak
from ..program import INPUT, Constant, Program, applied
from . import component_code as code
from .along import AxisRead, ComponentNodes, MixesPositions, followed, kind_of
from .component_code import ComponentTask, TargetPlace, Tiles
from .scalars import Fixed, Load, Small, TooMany
from .slices import shares

Work = Callable[[int, int], None]


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

    def __init__(self, program: Program, outputs: list[int], length: int, axis: int, most: int, exact: bool) -> None:
        self.program, self.outputs, self.length = program, outputs, length
        self.axes, whole = followed(program, outputs, length, axis)
        rows = ComponentNodes(program, self.axes, whole, length, most, exact)
        for slot in sorted(self.axes):  # arguments first: nothing is deep
            rows.row(slot)
        self.graph, self.sources = rows.graph, rows.sources
        self.indices = [np.ascontiguousarray(i, np.intp) for i in rows.indices]
        found = {s: np.squeeze(rows.row(s), self.axes[s]) for s in outputs if s in self.axes}
        self.nodes: list[Any] = [found.get(s) for s in outputs]
        self.varies = bytearray()
        self._see_what_varies()
        read = {s.slot for s in self.sources} | {op.slot for op in self.graph.ops if type(op) is Small}
        live = program.needed([*read, *[s for s in self.outputs if s not in self.axes]])
        self.steps = [slot for slot, op in enumerate(program.ops) if live[slot] and op is not INPUT]
        self._jobs: dict[Any, _Job] = {}
        self._types: dict[Any, list[Any]] = {}

    def _see_what_varies(self) -> None:
        """Which of the nodes that are new depend on the position."""
        for x in range(len(self.varies), len(self.graph.ops)):
            loaded = type(self.graph.ops[x]) is Load
            self.varies.append(loaded or any([self.varies[a] for a in self.graph.args[x]]))

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
            if target is None:
                target = np.empty(shape, kind)
            elif np.shape(target) != shape:
                at = np.shape(target)
                raise VectorError(f"an output of shape {shape} cannot be written to an array of shape {at}")
            if nodes is None:
                target[...] = dense(point.values[slot])
            results.append(target)
        axes = [self.axes.get(s, 0) for s in self.outputs]
        job.run(point, [np.moveaxis(r, k, 0) if np.ndim(r) else r for r, k in zip(results, axes, strict=True)], backend)
        return results

    def write(self, inputs: Sequence[Any], data: Any, columns: Sequence[Any], backend: str = "auto") -> None:
        """Write components into a flat array of shape (length, width): that of output i at `at` into column
        columns[i][at]; −1 leaves it out, components of one column are added up.

        The data of a block-sparse matrix with as many numbers at each position are filled in one pass.
        """
        at = [np.asarray(c, np.intp) for c in columns]
        wanted = [None if nodes is None else nodes.shape for nodes in self.nodes]
        if [c.shape for c in at] != wanted:
            got = [c.shape for c in at]
            raise VectorError(
                f"columns are arrays of the shapes {wanted}, one for each output that has the long axis; got {got}"
            )
        width = 1 + max([int(c.max(initial=-1)) for c in at], default=-1)
        if data.ndim != 2 or data.shape[0] != self.length or data.shape[1] < width:
            last, got = width - 1, data.shape
            raise VectorError(f"data for {self.length} positions and columns up to {last} cannot have shape {got}")
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
        return code.loop_source(self._job(None, self._places).task(None))

    def _places(self) -> list[TargetPlace]:
        """All components of all outputs where they belong."""
        long = [(i, nodes) for i, nodes in enumerate(self.nodes) if nodes is not None]
        return [TargetPlace(int(nodes[at]), i, at) for i, nodes in long for at in np.ndindex(*nodes.shape)]

    def _columns(self, columns: list[Any]) -> list[TargetPlace]:
        found: dict[int, int] = {}
        for nodes, at in zip(self.nodes, columns, strict=True):
            for x, c in zip(nodes.flat, at.flat, strict=True):
                if c >= 0:
                    found[int(c)] = int(x) if int(c) not in found else self.graph.add(found[int(c)], int(x))
        self._see_what_varies()  # sums of components
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
                self.values[slot] = applied(NUMBERS, program.ops[slot], [self.values[a] for a in program.args[slot]])
            self.arrays = [self._array(owner, s) for s in owner.sources]
            self.numbers: dict[int, Any] = {}
            flat: dict[int, Any] = {}
            for x in job.numbers:
                op = owner.graph.ops[x]
                if type(op) is Small:
                    if op.slot not in flat:
                        v = weak(self.values[op.slot])
                        flat[op.slot] = v.reshape(-1) if np.ndim(v) else [v] * math.prod(program.shapes[op.slot])
                    self.numbers[x] = flat[op.slot][op.at]
                elif type(op) is Fixed:
                    self.numbers[x] = op.value
                else:
                    self.numbers[x] = _plain(op, [self.numbers[a] for a in owner.graph.args[x]])

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
        self.owner, self.places = owner, places
        self.order = code.ordered(owner.graph, [p.node for p in places])
        self.numbers = [x for x in self.order if not owner.varies[x]]
        self.size = len(self.order) - len(self.numbers)
        self._codes: dict[Any, Any] = {}

    def task(self, point: _Point | None) -> ComponentTask:
        """What code is written for at a point; None: at one of 64-bit floats."""
        owner, ops = self.owner, self.owner.graph.ops
        key = point and ("task", point.key)
        if key not in self._codes:
            loads, wide = [x for x in self.order if type(ops[x]) is Load], np.dtype(float)
            if point is None:
                given = {x: float if type(ops[x]) is Fixed else wide for x in self.numbers} | dict.fromkeys(loads, wide)
                even = [False] * len(owner.sources)
            else:
                given = {x: _kind(point.numbers[x]) for x in self.numbers}
                given |= {x: point.arrays[ops[x].source].dtype for x in loads}
                even = [_even(x) for x in point.arrays]
            kinds, rows = code.kinds_of(owner.graph, self.order, given, owner.varies), [s.rows for s in owner.sources]
            self._codes[key] = ComponentTask(owner.graph, self.order, kinds, rows, even, owner.varies, self.places)
        return self._codes[key]

    def run(self, point: _Point, targets: list[Any], backend: str) -> None:
        """Fill the targets, in parts for all threads."""
        arrays = [x.copy() if any([np.may_share_memory(x, y) for y in targets]) else x for x in point.arrays]
        task, n = self.task(point), self.owner.length
        parts = threads.worth(n * self.size // tuning.COMPONENT_OPERATIONS_PER_THREAD)
        code_for = self._loop if self._compiles(task, point, backend) else self._tiles
        threads.spread(code_for(task, point, arrays, targets), shares(n, parts))

    def _compiles(self, task: ComponentTask, point: _Point, backend: str) -> bool:
        if backend not in ("auto", "numpy", "numba"):
            raise VectorError(f"a backend is 'auto', 'numpy' or 'numba'; got {backend!r}")
        if backend == "numba" and not numba_installed():
            raise VectorError("the backend 'numba' needs Numba: pip install 'riesz[numba]'; or use 'numpy', or 'auto'")
        work = self.size * self.owner.length
        small = self.size > tuning.COMPONENT_COMPILED_OPERATIONS or work < tuning.COMPONENT_WORK_TO_COMPILE
        if backend == "auto" and (small or not numba_installed()):
            return False
        whole = [int(x) for x in point.numbers.values() if _kind(x) == np.intp]
        exact = all([abs(x) <= 1 << 53 for x in whole])  # numbers are handed over as floats
        possible = backend != "numpy" and exact and code.compilable(task)
        if backend == "numba" and not possible:
            raise VectorError("some function here has no form that Numba compiles; use the backend 'numpy', or 'auto'")
        return possible

    def _tiles(self, task: ComponentTask, point: _Point, arrays: list[Any], targets: list[Any]) -> Work:
        key = ("tiles", point.key)
        if key not in self._codes:
            tiles = Tiles(task)
            self._codes[key] = tiles, tiles.run
        tiles, run = self._codes[key]
        loads: list[Load] = [self.owner.graph.ops[x] for x in tiles.loads]
        columns = [(arrays[op.source][(slice(None), *op.at)], task.rows[op.source] >= 0) for op in loads]
        X = [np.ascontiguousarray(x) if table else x for x, table in columns]
        Y = [targets[p.target][(slice(None), *p.at)] for p in self.places]
        K = list(point.numbers.values())

        def work(low: int, high: int) -> None:
            with quietly():
                run(low, high, max(min(tiles.length, high - low), 1), X, self.owner.indices, K, Y)

        return work

    def _loop(self, task: ComponentTask, point: _Point, arrays: list[Any], targets: list[Any]) -> Work:
        key = ("loop", point.key)
        if key not in self._codes:
            self._codes[key] = code.compiled_loop(code.loop_source(task))
        loop = self._codes[key]
        sources, indices, places = task.arguments
        K = np.array([float(x) for x in point.numbers.values()])
        read = [*[arrays[i] for i in sources], *[self.owner.indices[i] for i in indices]]
        given = [*read, K, *[targets[i] for i in places]]
        return lambda low, high: loop(low, high, *given)


def _plain(op: Any, args: list[Any]) -> Any:
    """A function of numbers; floats without a type stay so."""
    value = op(*args)
    untyped = isinstance(value, np.float64) and all([type(x) is float for x in args])
    return float(value) if untyped else np.asarray(value)[()]


def _kind(x: Any) -> Any:
    return float if type(x) is float else np.asarray(x).dtype


def _even(x: Any) -> bool:
    return x.strides[0] == x.itemsize
