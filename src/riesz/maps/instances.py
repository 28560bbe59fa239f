"""Instances of families of linear maps: a program of a point and a vector, linear in the vector, and the point.

The program is the same for every point, so what is derived from it (the network, patterns of matrices) is derived once.
Maps are composed, added and transposed as programs; computations they share are found again. The leaves of a point are
numbers, traced arrays or JAX arrays: nothing here looks into them. A linear program with its numbers is an instance
with an empty point.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..calculus.batching import mapped
from ..calculus.derive import transpose_linear, weighted_adjoint
from ..ops.op import Combination, Reshape, product
from ..ops.opaque import Put, Take
from ..programs.program import Constant, Program, outputs
from ..relations.base import freeze, seal
from ..spaces.formal_vectors import Formal
from ..spaces.space import Space

if TYPE_CHECKING:
    from .normal_form.network import Network


class Instance(NamedTuple):
    """A program whose first inputs are the point."""

    program: Program
    point: tuple[Any, ...] = ()
    names: tuple[tuple[str, Any], ...] = ()  # arrays with the names they have outside, for print

    @property
    def known(self) -> dict[Any, Any]:
        """What was made of the program already."""
        return self.program.__dict__.setdefault("_made", {})

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is made of the program once for all points."""
        known = self.known
        if key not in known:
            known[key] = make()
        return known[key]

    def with_program(self, key: Any, make: Callable[[], Program]) -> Instance:
        """The same point and names with a program that is made of this one."""
        return Instance(self.once(key, make), self.point, self.names)

    @property
    def network(self) -> Network:
        """The normal form, derived once for all points."""
        from .normal_form.network import derived

        return self.once("network", lambda: derived(self.program, len(self.point)))

    @property
    def fixed(self) -> bool:
        """Whether the pattern is the same at every point: no positions are computed from it."""
        return self.once("fixed", self._fixed)

    def _fixed(self) -> bool:
        program = self.program
        moving = program.dependent(program.inputs[len(self.point) :])
        steps = [args for op, args in zip(program.ops, program.args, strict=True) if isinstance(op, (Take, Put))]
        return not any([moving[args[0]] and type(program.ops[args[1]]) is not Constant for args in steps])

    @property
    def portable(self) -> bool:
        """Whether the program can be pickled: no step of it is code of the user's own."""
        try:
            pickle.dumps([op for op in self.program.ops if type(op) is not Constant])
        except (TypeError, AttributeError, pickle.PicklingError):
            return False
        return True


def turned(s: Instance) -> Instance:
    """The transpose."""
    return s.with_program("turned", lambda: transpose_linear(s.program, len(s.point)))


def adjoint(transpose: Instance, V: Space, W: Space) -> Instance:
    """The adjoint for the inner products of V and W, from the transpose."""
    make = lambda: weighted_adjoint(transpose.program, len(transpose.point), V, W)  # noqa: E731
    return transpose.with_program(("adjoint", V, W), make)


Write = Callable[[Program, Iterable[Sequence[int]], list[int]], None]


def _together(what: Any, sources: Sequence[Instance], write: Write) -> Instance:
    """A program made of several, at the points of all; remembered with the first where all are there for many points.

    `write` gets the program, for each source the slots of its point, and the slots of the vector."""
    both, first = Program(), sources[0]
    if not any([s.point for s in sources]):
        write(both, repeat(()), [both.input(first.program.shapes[i]) for i in first.program.inputs])
        return Instance(both)
    point: list[Any] = []
    shapes: list[Any] = []
    places: dict[int, int] = {}
    where: list[list[int]] = []  # for each source, which leaves of the joint point are its own
    for s in sources:
        mine: list[int] = []
        for x, slot in zip(s.point, s.program.inputs, strict=False):
            mine.append(places.setdefault(id(x), len(point)))
            if mine[-1] == len(point):
                point.append(x)
                shapes.append(s.program.shapes[slot])
        where.append(mine)
    others = [s.program for s in sources[1:]]
    key = (what, tuple([id(p) for p in others]), tuple([w for mine in where for w in mine]))

    def make() -> Any:
        slots = [both.input(shape) for shape in shapes]
        given = [both.input(first.program.shapes[i]) for i in first.program.inputs[len(first.point) :]]
        write(both, [[slots[w] for w in mine] for mine in where], given)
        return both, others  # the others are kept: their identities are the key

    program = (first.once(key, make) if all([s.point for s in sources]) else make())[0]
    return Instance(program, tuple(point), tuple([name for s in sources for name in s.names]))


def after(*sources: Instance) -> Instance:
    """The last first, then the one before it, and so on: after(g, f) is g ∘ f."""
    order = sources[::-1]

    def write(both: Program, points: Iterable[Sequence[int]], given: list[int]) -> None:
        for s, mine in zip(order, points, strict=False):
            given = outputs(s.program, both, [*mine, *given])
        both.outputs = given

    return _together("after", order, write)


def added(times: tuple[float, ...], *sources: Instance) -> Instance:
    """The sum of sources, each after the first times a number."""

    def write(both: Program, points: Iterable[Sequence[int]], given: list[int]) -> None:
        total: list[int] | None = None
        for s, mine, k in zip(sources, points, (1.0, *times), strict=False):
            row = outputs(s.program, both, [*mine, *given])
            if total is not None:
                row = [both.step(Combination((1.0, k)), pair) for pair in zip(total, row, strict=True)]
            total = row
        both.outputs = total or []

    return _together(("plus", times), sources, write)


def scaled(s: Instance, k: float) -> Instance:
    """k·s."""
    both = Program()
    slots = [both.input(s.program.shapes[i]) for i in s.program.inputs]
    both.outputs = [both.scale(k, slot) for slot in outputs(s.program, both, slots)]
    return Instance(both, s.point, s.names)


def times(s: Instance, k: Any) -> Instance:
    """k·s, where the number k is one more leaf of the point."""

    def make() -> Program:
        both, fixed = Program(), len(s.point)
        slots = [both.input(s.program.shapes[i]) for i in s.program.inputs[:fixed]]
        factor = both.input(())
        slots += [both.input(s.program.shapes[i]) for i in s.program.inputs[fixed:]]
        both.outputs = [both.step(product((), both.shapes[y]), (factor, y)) for y in outputs(s.program, both, slots)]
        return both

    return s.with_program("times", make)._replace(point=(*s.point, k))


def over(s: Instance, lead: tuple[int, ...]) -> Instance:
    """The map at every index of a box: the program under leading axes."""

    def make() -> Program:
        whole, n, fixed = Program(), math.prod(lead), len(s.point)
        shapes = [s.program.shapes[i] for i in s.program.inputs]
        point = [whole.input(shape) for shape in shapes[:fixed]]
        vector = [whole.input((*lead, *shape)) for shape in shapes[fixed:]]

        def shaped(slots: Sequence[int], front: tuple[int, ...], rests: Sequence[Any]) -> list[int]:
            if len(lead) == 1:
                return list(slots)
            return [whole.step(Reshape((*front, *rest)), (x,)) for x, rest in zip(slots, rests, strict=True)]

        given = [*point, *shaped(vector, (n,), shapes[fixed:])]
        found = mapped(s.program, whole, given, [False] * fixed + [True] * len(vector), n)
        whole.outputs = shaped(found, lead, [s.program.shapes[o] for o in s.program.outputs])
        return whole

    return s.with_program(("over", lead), make)


def kept(program: Program) -> Program:
    """A program whose numbers belong to a map: nobody can write to them."""
    for op in program.ops:
        if type(op) is Constant:
            seal([f for t in op.value.terms for f, _ in t.factors] if type(op.value) is Formal else op.value)
    return program


def held(leaves: Sequence[Any]) -> list[Any]:
    """Leaves that nobody can write to: arrays that can be changed are copied."""
    return [freeze(cast(Any, x)) if isinstance(x, np.ndarray) else x for x in leaves]
