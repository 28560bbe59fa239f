"""*numba*: groups of steps as compiled loop nests, all other steps as lines of array code between them.

A chain of steps on large arrays passes over memory once, intermediate values are numbers in registers, and sums at the
end of a chain are taken while its terms are computed. Matrix products, relations that add up and whatever has no form
stay what they are in the backend "numpy".
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...ops.op import Cast, Elementwise, unbroadcast
from ...ops.opaque import Discrete, Get, Select
from ...programs.axis.slices import Tiled
from ...programs.axis.tiling import products_in_tiles, tiled
from ...programs.passes.deferring import unguarded
from ...programs.passes.fusing import fused
from ...programs.program import Constant, Program
from ...programs.rewriting import rewritten
from ...relations.cpu.pair_sums import numba_installed
from ...runtime import tuning
from ...terms.primitives import divide
from ...tracing.rules.reductions import shares
from ..common import Code, Task, numbers
from ..numpy.numpy_backend import array_code
from .grouping import SingleStep, StepGroups
from .loop_code import Nest
from .loop_op import Loops

WORTH, EACH = 3 << 20, 1 << 13
"""From how many operations in loop nests on, weighed by what they cost in NumPy, `auto` compiles them: some, and so
many more for each that differs. Loading Numba takes half a second, compiling an operation two milliseconds: a few
hundred calls make up for it."""
MUCH, LESS = 1 << 25, 4
"""From how many bytes of arrays between nests on these run on tiles, if that leaves so many times fewer."""


def written(task: Task) -> Code | str:
    """Code with compiled loops. `auto` takes it where the work is large and there is something to compile."""
    if not task.asked and 8 * sum([numbers(shape) for shape in task.program.shapes]) < WORTH:
        return "it is small"
    if not task.asked and products_in_tiles(task.program):
        return "its matrix products run on tiles"
    casts = any([type(op) is Cast for op in task.program.ops])
    wide = not casts and all([kind is float or kind.char != "f" for kind in task.kinds])
    program = _simpler(task.program) if wide else task.program
    made = _Made(program)
    plain = None if task.asked else unguarded(program)
    judged = made if plain is None else _Made(fused(plain[0]))  # array code does without guards
    if not task.asked and (judged.work < WORTH + EACH * judged.spent or judged.left):
        return f"{judged.work:,} operations in loops are not worth compiling"
    if not numba_installed():
        return "the backend 'numba' needs Numba, one that works with this NumPy: pip install 'riesz[numba]'"
    made = _on_tiles(program, made) or made
    code = array_code(task._replace(program=made.program))
    return Code(task.record, task.program, "numba", made.told, code.run, "\n\n".join([code.source, *made.sources]))


class _Nested(Tiled):
    """Tiles whose steps are loop nests too."""

    @cached_property
    def made(self) -> dict[int, _Made]:
        """The body for tiles of each length, in groups."""
        return {m: _Made(super(_Nested, self).at(m)) for m in self.lengths}

    def at(self, m: int) -> Program:
        return self.made[m].program


def _on_tiles(program: Program, whole: _Made) -> _Made | None:
    """Loop nests inside loops over tiles, where these write much less than nests over whole arrays do."""
    if whole.memory < MUCH:
        return None
    apart = tiled(program)
    found = [slot for slot, op in enumerate(apart.ops) if isinstance(op, Tiled)]
    for slot in found:
        op: Tiled = apart.ops[slot]
        apart.ops[slot] = _Nested(op.body, op.length, op.axes, op.tile)
    made = _Made(apart) if found else whole
    return made if LESS * made.memory <= whole.memory else None


class _Made:
    """A program whose groups are single steps, and what is to be said about it."""

    def __init__(self, program: Program) -> None:
        grouping = StepGroups(program)
        self.sources: list[str] = []
        self.work = 0
        self.left = 0
        self._nests: list[Nest] = []
        self._known: set[str] = set()
        self.spent = 0
        small = self.program = Program(share=False)
        place = {slot: small.input(program.shapes[slot]) for slot in program.inputs}
        for slot, op in enumerate(program.ops):
            if type(op) is Constant:
                place[slot] = small.const(op.value)
        for unit in grouping.ordered():
            if isinstance(unit, SingleStep):
                small.copy(program, program.ancestors([unit.slot], place), place)
                continue
            nest = Nest(grouping, unit)
            if self._compiles(nest):
                found = small.step(Loops(nest), [place[s] for s in nest.loads])  # pyright: ignore
                for j, slot in enumerate(nest.slots):
                    place[slot] = small.step(Get(j), [found])
            else:
                small.copy(program, program.ancestors(nest.slots, place), place)
        small.outputs = [place[s] for s in program.outputs]
        self._steps = len(program)
        self._tiles = [op for op in program.ops if isinstance(op, _Nested)]
        inner = [text for op in self._tiles for made in op.made.values() for text in made.sources]
        self.sources = list(dict.fromkeys([*self.sources, *inner]))

    def _compiles(self, nest: Nest) -> bool:
        steps = len({slot for slot, _ in nest.nodes})
        if nest.work < (tuning.NUMBA_SINGLE_STEP_NUMBERS if steps == 1 else tuning.NUMBA_GROUP_OPERATIONS):
            return False
        code = Loops(nest).code([float] * len(nest.loads))
        if code is None:
            return False
        if code.source not in self._known:
            if self.spent + nest.bulk > tuning.NUMBA_COMPILED_OPERATIONS:
                self.left += 1
                return False
            self.spent += nest.bulk
            self._known.add(code.source)
            self.sources.append(code.source)
        self._nests.append(nest)
        self.work += nest.work_in_numpy
        return True

    @property
    def memory(self) -> int:
        """Bytes of the arrays that groups and single steps write, arguments and results of the program apart."""
        kept = {*self.program.inputs, *self.program.outputs}
        plain = [s for s, op in enumerate(self.program.ops) if s not in kept and type(op) is not Constant]
        return 8 * sum([numbers(self.program.shapes[s]) for s in plain])

    @property
    def told(self) -> str:
        """What was made."""
        on_tiles = [f"{op}: {next(iter(op.made.values())).told}" for op in self._tiles]
        return " ".join([self._own, *on_tiles]) if self._nests or not on_tiles else " ".join(on_tiles)

    @property
    def _own(self) -> str:
        steps, inside = self._steps, len({slot for nest in self._nests for slot, _ in nest.nodes})
        count, kinds = len(self._nests), len(self._known)
        nests = f"{count} compiled loop nest{'s' * (count != 1)}{f' of {kinds} kinds' if 1 < kinds < count else ''}"
        text = f"{inside} of {steps} steps in {nests}{'; the others on arrays, a line for each' * (inside < steps)}."
        if self.left:
            most = tuning.NUMBA_COMPILED_OPERATIONS
            text += f" {self.left} more groups are left to array code: {most:,} operations are compiled at most."
        return text


def _simpler(program: Program) -> Program:
    """The shares that places have in an extremum as steps that loops can do: (x = m) / Σ (x = m), in 64 bits."""
    if not any([type(op) is Discrete and op.function is shares for op in program.ops]):
        return program

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op, shape = program.ops[slot], program.shapes[slot]
        if type(op) is not Discrete or op.function is not shares:
            return None
        along = {k % len(shape) for k in dict(op.parameters)["axis"]}
        kept = tuple([1 if k in along else n for k, n in enumerate(shape)])
        equal = small.step(Select(), [small.step(Discrete(np.equal), given), small.const(1.0), small.const(0.0)])
        count = small.step(unbroadcast(shape, kept), [equal])
        none = small.step(Discrete(np.equal), [count, small.const(0.0)])  # the extremum is nan: no place has a share
        return small.step(Elementwise(divide), [equal, small.step(Select(), [none, small.const(1.0), count])])

    small = rewritten(program, rule)
    return small.prune(small.inputs, small.outputs)
