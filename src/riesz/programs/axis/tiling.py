"""Programs with large arrays along one axis, as loops over tiles of it: no temporary is longer than a tile.

Each step is assigned a mode, along or sum (slices.py), by following the axis back from where it ends. Steps then fall
into levels:

    what is computed whole ──► loop 0 ──► what needs its results ──► loop 1 ──► …

A step is in the loop of an argument if it reads the very slice that is made there; else it comes after that loop and
slices the whole array. So any assignment of modes gives the right numbers (x · x[::-1], x − Σx, (Σx)² become two
loops); it is chosen for the arrays that are never made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...ops.op import Contraction
from ...ops.opaque import Get
from ...runtime import tuning
from ...runtime.stackless import quiet
from ...spaces.formal_vectors import weak
from ..program import INPUT, Constant, Program, several
from .along import Axes, MixesPositions
from .slices import Mode, Tiled, slices

NUMBER = 8
"""Bytes of a number."""


@quiet
def tiled(program: Program, tile: int | None = None, worth: int = tuning.TILE_SAVED_BYTES) -> Program:
    """The same function with loops over tiles where these save `worth` bytes; the program itself where none does."""
    for _ in range(tuning.TILE_CANDIDATES):
        found = [_Plan(program, n, worth) for n in _lengths(program, 2 if tile else 4 * tuning.TILE_ROWS)]
        best = max(found, key=lambda plan: (plan.saved, plan.n), default=None)
        if best is None or not best.loops:
            break
        program = best.written(tile)
    return program


def products_in_tiles(program: Program) -> bool:
    """Whether a program has loops over tiles with matrix products inside: arrays between these are made whole by
    whatever does not tile.

    >>> products_in_tiles(Program())
    False
    """
    return any([_is_product(op) for loop in tiled(program).ops if isinstance(loop, Tiled) for op in loop.body.ops])


def _is_product(op: Any) -> bool:
    if type(op) is not Contraction or len(op.labels) != 2:
        return False
    left, right = [set(ls) for ls in op.labels]
    kept = [(a - b) & set(op.out) for a, b in ((left, right), (right, left))]
    return bool((left & right) - set(op.out)) and all(kept)


def _lengths(program: Program, least: int) -> list[int]:
    """The axes with the most numbers in steps that have them."""
    total: dict[int, int] = {}
    for op, shape in zip(program.ops, program.shapes, strict=True):
        if op is not INPUT and type(op) is not Constant and not several(shape):
            for n in set(shape):
                total[n] = total.get(n, 0) + math.prod(shape)
    return sorted([n for n in total if n >= least], key=lambda n: (-total[n], -n))[: tuning.TILE_CANDIDATES]


class TileLoop(NamedTuple):
    """Steps of one loop, what it reads with the axis it is sliced along, and which of its slots are read elsewhere."""

    steps: list[int]
    reads: dict[tuple[int, int | None], int]  # how often
    shown: list[int]


class _Plan:
    """Modes, levels and loops for an axis of n positions."""

    def __init__(self, program: Program, n: int, worth: int) -> None:
        self.program, self.n, self.worth = program, n, worth
        self.readers, self.shown = program.readers(), set(program.outputs)
        self.modes: dict[int, Mode] = {}
        self.axes: dict[int, Axes] = {}
        self._assign()
        for _ in range(tuning.TILE_ROUNDS):
            self._levels()
            self.loops = self._loops()
            poor = [level for level, loop in self.loops.items() if len(loop.steps) < 2 or self.gain(loop) < worth]
            if not poor:
                break
            for level in poor:
                for slot in self.loops.pop(level).steps:
                    del self.modes[slot]
        else:
            self.loops = {}
        self.saved = sum(map(self.gain, self.loops.values()))

    # -- modes and levels --------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Modes from the end to the beginning, along the axis that readers slice; then those of contractions into much
        smaller arrays, which can run along any axis of their arguments: the one these have."""
        program, wanted = self.program, list[list[int]]([] for _ in self.program.ops)
        free: list[int] = []
        for slot in range(len(program.ops) - 1, -1, -1):
            op = program.ops[slot]
            if op is INPUT or type(op) is Constant or several(program.shapes[slot]):
                continue
            sizes = list(map(self._size, program.args[slot])) if type(op) is Contraction else []
            if sizes and tuning.TILE_RESULT_RATIO * self._size(slot) <= max(sizes):
                free.append(slot)
            elif self._fits(slot, self._possible(slot, wanted[slot])):
                for a, k in zip(program.args[slot], self.axes[slot], strict=True):
                    if k is not None:
                        wanted[a].append(k)
        for slot in reversed(free):
            self._fits(slot, [*self._given(slot), *self._possible(slot, wanted[slot])])

    def _fits(self, slot: int, modes: Iterable[Mode]) -> bool:
        """Take the first mode that a step can have."""
        program = self.program
        op, given = program.ops[slot], [program.shapes[a] for a in program.args[slot]]
        for mode in modes:
            try:
                axes = slices(op, given, program.shapes[slot], mode)
            except MixesPositions:
                continue
            self.modes[slot], self.axes[slot] = mode, axes
            return True
        return False

    def _possible(self, slot: int, wanted: list[int]) -> Iterable[Mode]:
        op, shapes = self.program.ops[slot], self.program.shapes
        if wanted:
            return [Mode(k) for k in dict.fromkeys(wanted)]
        labels = zip(op.labels, self.program.args[slot], strict=True) if type(op) is Contraction else ()
        sizes = [(k, n) for ls, a in labels for k, n in zip(ls, shapes[a], strict=True)]
        sums = [Mode(None, k) for k, n in sizes if n == self.n and k not in op.out]
        return [*sums, *[Mode(k) for k, n in enumerate(shapes[slot]) if n == self.n]]

    def _given(self, slot: int) -> Iterable[Mode]:
        """The modes of a contraction along the axes of its arguments, the largest first."""
        op = self.program.ops[slot]
        found = sorted(zip(self.program.args[slot], op.labels, strict=True), key=lambda arg: -self._size(arg[0]))
        labels = [ls[k] for a, ls in found if (k := self._axis(a)) is not None]
        return [Mode(op.out.index(k)) if k in op.out else Mode(None, k) for k in labels]

    def _levels(self) -> None:
        """The number of the loop each step is in; a step that is in none comes before the loop of its number."""
        level = self.level = [0] * len(self.program.ops)
        for slot, args in enumerate(self.program.args):
            after = [level[a] if self._beside(a, i, slot) else self._after(a) for i, a in enumerate(args)]
            level[slot] = max(after, default=0)
        for slot in range(len(level) - 1, -1, -1):  # what only later loops read is made there, unless that keeps more
            readers = self.readers[slot] if slot not in self.shown else []
            if readers and self._axis(slot) is not None and all([self._all_beside(slot, r) for r in readers]):
                inside = [a for i, a in enumerate(self.program.args[slot]) if self._inside(a, i, slot)]
                if sum(map(self._size, inside)) <= self._size(slot):
                    level[slot] = min([level[r] for r in readers])

    def _after(self, slot: int) -> int:
        return self.level[slot] + (slot in self.modes)

    def _beside(self, a: int, i: int, slot: int) -> bool:
        """Whether a step reads the slice of its argument i that is made in the loop of that."""
        axis = self._axis(a)
        return slot in self.modes and axis is not None and axis == self.axes[slot][i]

    def _axis(self, slot: int) -> int | None:
        """The axis along which a step runs; None where it sums it, or runs in no loop."""
        return self.modes[slot].axis if slot in self.modes else None

    def _size(self, slot: int) -> int:
        return NUMBER * math.prod(self.program.shapes[slot])

    def _loops(self) -> dict[int, TileLoop]:
        found: dict[int, TileLoop] = {}
        for slot in sorted(self.modes):
            level = self.level[slot]
            loop = found.setdefault(level, TileLoop([], {}, []))
            loop.steps.append(slot)
            for i, a in enumerate(self.program.args[slot]):
                if not self._inside(a, i, slot):
                    key = a, self.axes[slot][i]
                    loop.reads[key] = loop.reads.get(key, 0) + 1
            within = [self.level[r] == level and self._all_beside(slot, r) for r in self.readers[slot]]
            if slot in self.shown or self.modes[slot].axis is None or not all(within):
                loop.shown.append(slot)
        return found

    def _inside(self, a: int, i: int, slot: int) -> bool:
        return self._beside(a, i, slot) and self.level[a] == self.level[slot]

    def _all_beside(self, a: int, reader: int) -> bool:
        return all([self._beside(a, i, reader) for i, b in enumerate(self.program.args[reader]) if b == a])

    def gain(self, loop: TileLoop) -> int:
        """The bytes of large arrays that are not made, and of those that are read once for all."""
        shown = set(loop.shown)
        unmade = [self._size(slot) for slot in loop.steps if slot not in shown]
        again = [(self._size(slot), times - 1) for (slot, k), times in loop.reads.items() if k is not None]
        saved = sum([size for size in unmade if size >= self.worth])
        return saved + sum([times * size for size, times in again if size >= 4 * self.worth])

    # -- the result --------------------------------------------------------------------------------------

    def written(self, tile: int | None) -> Program:
        """The program with a step for each loop."""
        program, whole = self.program, Program(share=False)
        place: dict[int, int] = {slot: whole.input(program.shapes[slot]) for slot in program.inputs}
        plain: dict[int, list[int]] = {}
        for slot in range(len(program.ops)):
            if slot not in place and slot not in self.modes:
                plain.setdefault(self.level[slot], []).append(slot)
        for level in range(max([*plain, *self.loops], default=-1) + 1):
            whole.copy(program, plain.get(level, ()), place)
            if level in self.loops:
                loop = self.loops[level]
                op, reads = self._tiled(loop, tile)
                made = whole.step(op, [place[a] for a in reads])
                place.update({slot: whole.step(Get(j), (made,)) for j, slot in enumerate(loop.shown)})
        whole.outputs = [place[s] for s in program.outputs]
        return whole

    def _tiled(self, loop: TileLoop, tile: int | None) -> tuple[Tiled, list[int]]:
        program, body = self.program, Program(share=False)
        axes, reads = list[int | None](), list[int]()
        given: dict[tuple[int, int | None], int] = {}
        for a, k in loop.reads:
            op = program.ops[a]
            number = weak(op.value) if type(op) is Constant else None
            if type(number) is float:
                given[a, k] = body.const(number if not program.shapes[a] else op.value)
            else:
                given[a, k] = body.input(program.shapes[a])
                reads.append(a)
            axes.append(k)
        place: dict[int, int] = {}
        for slot in loop.steps:
            own = self.axes[slot]
            pairs = list(enumerate(program.args[slot]))
            args = [place[a] if self._inside(a, i, slot) else given[a, own[i]] for i, a in pairs]
            place[slot] = body.take(program, slot, args)
            axes.append(self.modes[slot].axis)
        body.outputs = [place[s] for s in loop.shown]
        return Tiled(body, self.n, tuple(axes), tile or length_of_tiles(body, axes, self.n)), reads


def length_of_tiles(body: Program, axes: Axes, n: int) -> int:
    """How many positions have their arrays in the cache, but enough to outweigh what each tile goes through."""
    last = {a: slot for slot, args in enumerate(body.args) for a in args if type(body.ops[a]) is not Constant}
    gone = [0] * len(body.ops)
    row = [0 if k is None else NUMBER * math.prod(body.shapes[s]) // n for s, k in enumerate(axes)]
    for a, slot in last.items():
        gone[slot] += row[a]
    held = peak = 0
    for slot, op in enumerate(body.ops):
        held += row[slot] if type(op) is not Constant else 0
        peak = max(peak, held)
        held -= gone[slot]
    through = sum([NUMBER * math.prod(body.shapes[s]) for s in (*body.inputs, *body.outputs) if axes[s] is None])
    return min(max(tuning.TILE_BYTES // max(peak, 1), tuning.TILE_ROWS, through // max(sum(row), 1)), n)
