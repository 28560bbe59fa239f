"""One trace of a function as it is kept, and how it is run.

A `Record` is a program from all array leaves of the arguments (and what it captured of outer traces) to all array
leaves of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...calculus.domain_check import guard
from ...errors import SpaceError
from ...ops.number_domains import MULTIPLIED, NUMBERS
from ...programs.passes.fusing import runnable
from ...programs.program import Program, outputs
from ...relations.base import freeze, frozen
from ...runtime import buffers
from ...spaces.formal_vectors import dense
from ...spaces.layout import describe, hint
from ...spaces.space import Space, real_space
from ...tracing.argument_trees import Tree, flatten, numbers_of, tree_space, unflatten
from ...tracing.classes import INTEGER
from ...tracing.surroundings.contents import contents_of
from ...tracing.surroundings.outside import OUTSIDE, Outside
from ...tracing.traced import BOOL, FLOAT, Trace, Traced, innermost, slot_of, typed


class Aval:
    """What is known of an array leaf before its numbers are: shape, type, whether it is a Python float (None: an array
    without axes). A leaf itself, so no dataclass."""

    __slots__ = ("dtype", "shape", "weak")

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak: int | None) -> None:
        self.shape, self.dtype, self.weak = shape, dtype, weak

    def given(self, array: Any) -> Any:
        """An array of this kind as it would be given: a number may be one of Python's or of NumPy's."""
        return array if self.shape or self.weak is None else float(array) if self.weak else array[()]

    @property
    def moving(self) -> Aval:
        """What is known of a differential: that of an integer is a float."""
        return Aval((), FLOAT, True) if self.weak == INTEGER else self


class Record:
    """One trace of a function."""

    def __init__(
        self, name: str, program: Program, captured: list[Any], avals: list[Aval], results: list[Any], tree: Tree
    ) -> None:
        self.name, self.program = name, program
        self.captured = captured  # further inputs: Traced arrays of outer traces, large arrays from outside
        self.avals = avals  # of the array leaves of the arguments
        self.results, self.tree = results, tree  # per leaf of the result, an Aval or a `Static`; its tree
        self._outside: Outside | None = None  # what its steps were computed from besides
        self._copies: dict[int, tuple[Any, Any]] = {}  # what stands for arrays from outside, by their identity
        self.transforms = False  # whether derivatives or maps of other functions were taken inside
        self.seconds = 0.0  # how long the function ran
        self.derived: dict[Any, Any] = {}  # programs made from this one
        self.guards: Program | None = None  # the conditions that were asked, and the answers: Note [Guards]
        self.answers: tuple[bool, ...] = ()

    def depending(self, outside: Outside | None, copies: dict[int, tuple[Any, Any]]) -> Record:
        """Itself; what it depends on besides its arguments."""
        self._outside, self._copies = outside, copies
        return self

    def wrap(self, leaves: Sequence[Any]) -> Any:
        """Leaves of the outputs → the function's result."""
        return unflatten(self.tree, filled(self.results, leaves))

    @cached_property
    def held(self) -> set[int]:
        """The identities of the arrays the program keeps."""
        return self.program.held

    @property
    def outputs(self) -> list[Aval]:
        """The array leaves of the result."""
        return [r for r in self.results if isinstance(r, Aval)]

    def noted(self) -> Record:
        """Itself; used while another function is traced it passes on what it depends on."""
        around = OUTSIDE.get()
        if around is not None and self._outside is not None:
            around.include(self._outside)
        return self

    # Note [Guards]: `if x > 0:` in a function that is traced at a point gets the answer it has there. The trace holds
    # where all such conditions have the same answers, and for each set of answers there is another. They are computed
    # whenever a trace is looked up, and a trace that does not hold is passed over. In a trace around, a guard becomes
    # one of its own. Where there is no point (spaces, code for a kind of arguments, bodies of loops) none is decided.
    def holds(self, arrays: Sequence[Any]) -> bool:
        """Whether all that was decided while the function was traced is decided alike at some arguments."""
        if self.guards is None:
            return True
        home = home_of(self, arrays)
        if home is None:
            with np.errstate(all="ignore"):
                try:
                    found = outputs(self.guards, NUMBERS, numbers_of([*arrays, *self.captured]))
                except Exception:  # the function itself will say it
                    return False
            return all([bool(dense(x)) == wanted for x, wanted in zip(found, self.answers, strict=True)])
        slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*arrays, *self.captured)]
        found = outputs(self.guards, home, slots)
        answers = zip(found, self.answers, strict=True)
        return all(bool(Traced(home, s, BOOL)) == wanted for s, wanted in answers)  # in turn: each may need the others

    def conditions(self) -> Record:
        """The conditions that were asked, as a function of the arguments."""
        assert self.guards is not None
        count = len(self.answers)
        tree = flatten([0.0] * count)[1]
        found = Record(self.name, self.guards, self.captured, self.avals, [Aval((), BOOL, False)] * count, tree)
        return found.depending(self._outside, self._copies)

    def copy_of(self, x: Any) -> Any:
        """What stands in the program for an array from outside, or for an index array; None for others."""
        if x.dtype.kind in "iub" and not frozen(x) and id(x) not in self._copies:
            self._copies[id(x)] = x, freeze(x)
        return x if frozen(x) else self._copies.get(id(x), (None, None))[1]

    def reordered(self, order: tuple[int, ...]) -> Record:
        """The same with its arguments' leaves in another order."""
        key = ("reordered", order)
        if key not in self.derived:
            inputs, count = self.program.inputs, len(order)
            program = self.program.prune([*[inputs[k] for k in order], *inputs[count:]], self.program.outputs)
            avals = [self.avals[k] for k in order]
            found = Record(self.name, program, self.captured, avals, self.results, self.tree)
            self.derived[key] = found.depending(self._outside, self._copies)
        return self.derived[key]

    def settled(self) -> Record:
        """The same with the numbers that arrays from outside have now; the same one while nobody writes to them."""
        if not self.captured:
            return self
        known = self.derived.get("settled")
        compared = self._outside is not None and self._outside.made  # when this trace was looked up
        if known is None or not (compared or all([c.get() is c for c in known[1]])):
            contents = [contents_of(x) for x in self.captured]
            program = Program()
            given = [program.input(a.shape) for a in self.avals]
            program.outputs = outputs(self.program, program, [*given, *[program.const(c.frozen) for c in contents]])
            found = Record(self.name, program, [], self.avals, self.results, self.tree)
            found.depending(None, self._copies | {id(c.array): (c.array, c.frozen) for c in contents})
            known = self.derived["settled"] = found, contents
        return known[0]


class Static:
    """A leaf of a result that is no array."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def filled(results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The leaves of a result, given those that are arrays."""
    rest = iter(values)
    return [r.value if isinstance(r, Static) else next(rest) for r in results]


def presented(result: Any) -> Any:
    """Linear maps in a result stand for their matrices."""
    return result.to_dense() if hasattr(result, "to_dense") and hasattr(result, "codomain") else result


def evaluated(record: Record, leaves: Sequence[Any]) -> list[Any]:
    """The outputs of a trace at array leaves, traced where an argument or something captured is."""
    home = home_of(record, leaves)
    if home is None:
        given = numbers_of([*leaves, *record.captured])
        found = outputs(runnable(record.program), MULTIPLIED, given)
        guard(lambda: record.program, given, found)
        return owned(found, record.outputs, record.held, [*leaves, *given])
    return written(record.program, record, leaves, home, record.outputs)


def own(x: Any, aval: Aval, shared: bool = False) -> Any:
    """A result in its type, which the caller may keep and write to; `shared` says that somebody else holds it."""
    value = dense(x)
    if not aval.shape:
        scalar = np.asarray(value, aval.dtype)[()]
        if aval.weak == INTEGER:
            return int(scalar)
        return float(scalar) if aval.weak or aval.dtype is FLOAT else scalar
    return buffers.handed(np.asarray(value, aval.dtype), shared)


def owned(values: Sequence[Any], avals: Sequence[Aval], held: set[int], given: Sequence[Any] = ()) -> list[Any]:
    """Results for the caller: what an argument, a constant, a coefficient or another result is too is copied."""
    taken = held | {id(x if isinstance(x, (np.ndarray, float)) else np.asarray(x)) for x in given}
    found: list[Any] = []
    for x, a in zip(values, avals, strict=True):
        value = dense(x)
        found.append(own(value, a, id(value) in taken))
        taken.add(id(found[-1]))
    return found


def home_of(record: Record, leaves: Sequence[Any]) -> Trace | None:
    """The trace that a computation belongs to, if any."""
    return innermost((*leaves, *record.captured))


def written(program: Program, record: Record, leaves: Sequence[Any], home: Trace, avals: Sequence[Aval]) -> list[Any]:
    """A program written into a trace: its outputs as traced arrays. See Note [Numbers] in symbolic.py."""
    slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in (*leaves, *record.captured)]
    found = outputs(program, home, slots)
    kinds = [a.weak if a.weak == INTEGER else True for a in avals]
    return [typed(Traced(home, s, a.dtype, a.weak), k) for s, a, k in zip(found, avals, kinds, strict=True)]


def result_space(name: str, results: Sequence[Any], tree: Tree, what: str) -> Space:
    """The space of a function's result; integers and the like have none."""
    for r in results:
        if isinstance(r, Static):
            aux = f"{what} needs real numbers (has_aux=True lets f return more)"
            raise SpaceError(f"{name} returns {describe(r.value)}, which is not a vector; {aux}")
        if r.dtype.kind != "f":
            real = f"{what} needs real numbers{hint(np.zeros(1, r.dtype))}"
            raise SpaceError(f"{name} returns an array of {r.dtype}; {real}")
    return tree_space(tree, [real_space(r.shape) for r in results])
