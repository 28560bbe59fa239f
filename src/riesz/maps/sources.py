"""Where the structure of a linear map comes from: a program of a point and a vector, linear in the vector, and the point.

The program does not depend on the point, so what is derived from it (the network, patterns of matrices) is derived once and used at every point.
Maps are composed, added and transposed as programs; computations they share are found again.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..calculus.derive import transpose_linear, weighted_adjoint
from ..calculus.mapped import mapped
from ..opaque import Put, Take
from ..ops import Combination, Reshape
from ..programs.program import Constant, Program, outputs
from ..relations.core import freeze
from ..spaces import Space

if TYPE_CHECKING:
    from .network import Network


class Source(NamedTuple):
    """A program whose first inputs are the point."""

    program: Program
    point: tuple[Any, ...] = ()
    names: tuple[tuple[str, Any], ...] = ()  # arrays with the names they have outside, for print

    @property
    def known(self) -> dict[Any, Any]:
        """What was made of the program already."""
        return self.program.__dict__.setdefault("_made", {})

    @property
    def network(self) -> Network:
        """The normal form, derived once for all points."""
        from .network import derived

        known = self.known
        if "network" not in known:
            known["network"] = derived(self.program, len(self.point))
        return known["network"]

    @property
    def fixed(self) -> bool:
        """Whether the pattern is the same at every point: no positions are computed from it."""
        program, known = self.program, self.known
        if "fixed" not in known:
            moving = program.dependent(program.inputs[len(self.point) :])
            known["fixed"] = not any(
                [
                    isinstance(op, (Take, Put)) and moving[args[0]] and type(program.ops[args[1]]) is not Constant
                    for op, args in zip(program.ops, program.args, strict=True)
                ]
            )
        return known["fixed"]

    @property
    def portable(self) -> bool:
        """Whether the program can be pickled: no step of it is code of the user's own."""
        try:
            pickle.dumps([op for op in self.program.ops if type(op) is not Constant])
        except (TypeError, AttributeError, pickle.PicklingError):
            return False
        return True


def turned(s: Source) -> Source:
    """The transpose."""
    known = s.known
    if "turned" not in known:
        known["turned"] = transpose_linear(s.program, len(s.point))
    return Source(known["turned"], s.point, s.names)


def adjoint(transpose: Source, V: Space, W: Space) -> Source:
    """The adjoint for the inner products of V and W, from the transpose."""
    known = transpose.known
    if ("adjoint", V, W) not in known:
        known["adjoint", V, W] = weighted_adjoint(transpose.program, len(transpose.point), V, W)
    return Source(known["adjoint", V, W], transpose.point, transpose.names)


def _shared(a: Source, b: Source) -> tuple[tuple[Any, ...], list[int]]:
    """The points of two sources together, and where those of the second are."""
    point = list(a.point)
    places = {id(x): i for i, x in enumerate(point)}
    where: list[int] = []
    for x in b.point:
        where.append(places.setdefault(id(x), len(point)))
        if where[-1] == len(point):
            point.append(x)
    return tuple(point), where


def _together(what: str, a: Source, b: Source, write: Any) -> Source:
    """A program made of two, remembered with the first."""
    point, where = _shared(a, b)
    key = (what, id(b.program), tuple(where))
    known = a.known
    if key not in known:
        both = Program()
        shapes = [a.program.shapes[s] for s in a.program.inputs[: len(a.point)]]
        shapes += [b.program.shapes[s] for s, w in zip(b.program.inputs, where, strict=False) if w >= len(a.point)]
        slots = [both.input(s) for s in shapes[: len(point)]]
        write(both, slots[: len(a.point)], [slots[w] for w in where])
        known[key] = (both, b.program)  # b's program is kept: its identity is the key
    return Source(known[key][0], point, (*a.names, *b.names))


def after(second: Source, first: Source) -> Source:
    """second ∘ first."""

    def write(both: Program, mine: list[int], yours: list[int]) -> None:
        given = [both.input(first.program.shapes[s]) for s in first.program.inputs[len(first.point) :]]
        middle = outputs(first.program, both, [*mine, *given])
        both.outputs = outputs(second.program, both, [*yours, *middle])

    return _together("after", first, second, write)


def added(a: Source, b: Source, k: float) -> Source:
    """a + k·b."""

    def write(both: Program, mine: list[int], yours: list[int]) -> None:
        given = [both.input(a.program.shapes[s]) for s in a.program.inputs[len(a.point) :]]
        rows = zip(outputs(a.program, both, [*mine, *given]), outputs(b.program, both, [*yours, *given]), strict=True)
        both.outputs = [both.step(Combination((1.0, k)), row) for row in rows]

    return _together(f"plus {k!r}", a, b, write)


def scaled(s: Source, k: float) -> Source:
    """k·s."""
    both = Program()
    slots = [both.input(s.program.shapes[i]) for i in s.program.inputs]
    both.outputs = [both.scale(k, slot) for slot in outputs(s.program, both, slots)]
    return Source(both, s.point, s.names)


def over(s: Source, lead: tuple[int, ...]) -> Source:
    """The map at every index of a box: the program under leading axes."""
    known = s.known
    if ("over", lead) not in known:
        whole, n, fixed = Program(), math.prod(lead), len(s.point)
        shapes = [s.program.shapes[i] for i in s.program.inputs]
        point = [whole.input(shape) for shape in shapes[:fixed]]
        given = [whole.input((*lead, *shape)) for shape in shapes[fixed:]]
        flat = [whole.step(Reshape((n, *shape)), (x,)) if len(lead) != 1 else x for x, shape in zip(given, shapes[fixed:], strict=True)]
        found = mapped(s.program, whole, [*point, *flat], [False] * fixed + [True] * len(flat), n)
        ends = [(*lead, *s.program.shapes[o]) for o in s.program.outputs]
        whole.outputs = [whole.step(Reshape(shape), (y,)) if len(lead) != 1 else y for y, shape in zip(found, ends, strict=True)]
        known["over", lead] = whole
    return Source(known["over", lead], s.point, s.names)


def held(leaves: Sequence[Any]) -> list[Any]:
    """Leaves that nobody can write to: arrays that can be changed are copied."""
    return [freeze(cast(Any, x)) if isinstance(x, np.ndarray) else x for x in leaves]
