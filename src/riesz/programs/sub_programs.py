"""Ops with programs inside: calls that are not written out (branches, recomputation) and loops. Their results are
tuples, read with `Get`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from ..ops.number_domains import NUMBERS
from ..ops.op import Op, Shape
from ..runtime import later
from ..spaces.formal_vectors import dense
from .program import Program, outputs


class Block(Op):
    """An op with programs inside."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs inside."""
        return (cast(Any, self).body,)

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        first = self.programs[0]
        return tuple([first.shapes[s] for s in first.outputs])

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What was derived from this block: differentials and transposes."""
        return {}

    def replaced(self, **changes: Any) -> Self:
        """The same with other fields."""
        return type(self)(*[changes.get(f, getattr(self, f)) for f in self.fields])


class OwnDerivative:
    """A derivative that is given: a program from (xs, dxs) to dys, linear in the dxs, one for each argument and result.
    It is made when somebody asks, because a rule may call the function it belongs to."""

    def __init__(self, make: Callable[[], Program]) -> None:
        self._make = make

    @cached_property
    def program(self) -> Program:
        """The rule."""
        return self._make()


class Call(Block):
    """A program as one step; with several, the first argument is the number of the one that runs.

    `rule`, of a single program: its derivative as somebody gives it.
    """

    branches: tuple[Program, ...]
    adjoint: bool = False  # whether it was made as the transpose of another, for people to see
    rule: OwnDerivative | None = None

    @property
    def title(self) -> str:
        return "cond" if len(self.branches) > 1 else "again"

    @property
    def programs(self) -> tuple[Program, ...]:
        return self.branches

    @property
    def fixed(self) -> int:
        """How many arguments come before those of the programs."""
        return int(len(self.branches) > 1)

    def run(self, *xs: Any) -> Any:
        branch = self.branches[int(xs[0])] if self.fixed else self.branches[0]
        return tuple(outputs(branch, NUMBERS, xs[self.fixed :]))


class Loop(Block):
    """carry ← body(consts, carry, xs[t]) for each t, with the outputs of all rounds stacked; `keep` adds the carries
    that came in.

    Arguments: consts, first carry, stacked xs. Results: last carry, stacked ys, and with `keep` the stacked carries.
    """

    body: Program
    consts: int
    carries: int
    length: int
    reverse: bool = False
    keep: bool = False
    adjoint: bool = False  # as in `Call`

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        found = [self.body.shapes[s] for s in self.body.outputs]
        kept = [(self.length, *s) for s in found[: self.carries]] if self.keep else []
        return (*found[: self.carries], *[(self.length, *s) for s in found[self.carries :]], *kept)

    @property
    def results(self) -> int:
        """How many stacked outputs there are."""
        return len(self.body.outputs) - self.carries

    def rounds(self, xs: Sequence[Any]) -> Iterator[tuple[int, list[Any], list[Any]]]:
        """Round by round: its number, what the body is given, and what it gives."""
        consts, carry = list(xs[: self.consts]), list(xs[self.consts : self.consts + self.carries])
        stacked = [dense(x) for x in xs[self.consts + self.carries :]]
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            given = [*consts, *carry, *[entry(x, t) for x in stacked]]
            found = outputs(self.body, NUMBERS, given)
            yield t, given, found
            carry = [dense(v) for v in found[: self.carries]]

    def run(self, *xs: Any) -> Any:
        found = later.native_rounds(self, xs)
        return self.interpreted(*xs) if found is None else found

    def interpreted(self, *xs: Any) -> Any:
        """The results by the interpreter, round by round."""
        c, m, rounds = self.consts, self.carries, list[list[Any]]()
        carry = list(xs[c : c + m])
        for _, given, found in self.rounds(xs):
            rounds.append([dense(v) for v in found[m:]] + (given[c : c + m] if self.keep else []))
            carry = [dense(v) for v in found[:m]]
        rounds = rounds[::-1] if self.reverse else rounds
        shapes = self.result(())[self.carries :]
        columns: list[list[Any]] = [list(c) for c in zip(*rounds, strict=True)] if rounds else [[] for _ in shapes]
        return (*carry, *[np.stack(c) if c else np.zeros(s) for c, s in zip(columns, shapes, strict=True)])


def entry(x: Any, t: int) -> Any:
    """One entry along the first axis; numbers of 64 bits as Python's."""
    part = x[t]
    return float(part) if type(part) is np.float64 else part
