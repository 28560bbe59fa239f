"""Ops with programs inside: calls that are not written out (branches, recomputation) and loops. Their results are
tuples, read with `Get`."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from ..ops.number_domains import NUMBERS
from ..ops.op import Op, Shape
from ..spaces.formal_vectors import dense
from .program import Program, outputs


class Block(Op):
    """An op with programs inside."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs inside."""
        raise NotImplementedError

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What was derived from this block: differentials and transposes."""
        return {}

    def replaced(self, **changes: Any) -> Self:
        """The same with other fields."""
        return type(self)(*[changes.get(f, getattr(self, f)) for f in self.fields])


class Call(Block):
    """A program as one step; with several, the first argument is the number of the one that runs."""

    branches: tuple[Program, ...]
    adjoint: bool = False  # whether it was made as the transpose of another, for people to see

    @property
    def title(self) -> str:
        return "cond" if len(self.branches) > 1 else "again"

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        first = self.branches[0]
        return tuple([first.shapes[s] for s in first.outputs])

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
    def programs(self) -> tuple[Program, ...]:
        return (self.body,)

    @property
    def results(self) -> int:
        """How many stacked outputs there are."""
        return len(self.body.outputs) - self.carries

    @property
    def times(self) -> range:
        """The rounds, in the order in which they run."""
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def run(self, *xs: Any) -> Any:
        consts, carry = list(xs[: self.consts]), list(xs[self.consts : self.consts + self.carries])
        stacked = [dense(x) for x in xs[self.consts + self.carries :]]
        rounds: list[list[Any]] = []
        for t in self.times:
            found = outputs(self.body, NUMBERS, [*consts, *carry, *[_at(x, t) for x in stacked]])
            rounds.append([dense(v) for v in found[self.carries :]] + (carry if self.keep else []))
            carry = [dense(v) for v in found[: self.carries]]
        rounds = rounds[::-1] if self.reverse else rounds
        shapes = self.result(())[self.carries :]
        columns: list[list[Any]] = [list(c) for c in zip(*rounds, strict=True)] if rounds else [[] for _ in shapes]
        return (*carry, *[np.stack(c) if c else np.zeros(s) for c, s in zip(columns, shapes, strict=True)])


def _at(x: Any, t: int) -> Any:
    part = x[t]
    return float(part) if type(part) is np.float64 else part
