"""Forward mode by dual numbers, the Gateaux view of the appendix: (v, dv) ↦ (f(v), f'(v)(dv)).

A small interpreter of its own, to compare affine interpretation with: it needs the differential before it can start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..ops.number_domains import NUMBERS
from ..ops.op import Combination, Elementwise, Linear, Op
from ..ops.opaque import Declared, Get, Ruled
from ..programs.program import Program, outputs, several
from ..runtime import later
from ..spaces.formal_vectors import dense
from ..terms.term import Term
from .interpretation.interpret import interpret
from .interpretation.value_trees import leaves_of


class DualNumber(NamedTuple):
    """v + ε·dv with ε² = 0."""

    value: Any
    differential: Any


class Dual:
    """The domain of dual numbers and arrays."""

    hushes = False

    def const(self, value: Any) -> DualNumber:
        """A constant does not move."""
        return DualNumber(value, self._still(value))

    def zeros(self, shape: tuple[int, ...]) -> DualNumber:
        """Zero, unmoved."""
        return self.const(NUMBERS.zeros(shape))

    def shape(self, x: DualNumber) -> Any:
        """The shape of a leaf."""
        return NUMBERS.shape(x.value)

    def _still(self, value: Any) -> Any:
        return NUMBERS.zeros(NUMBERS.shape(value))

    def scale(self, k: float, x: DualNumber) -> DualNumber:
        """k · x."""
        return DualNumber(k * x.value, k * x.differential)

    def step(self, op: Op, args: Sequence[DualNumber]) -> DualNumber:
        """op on values, and its directional derivative along the differentials."""
        values, moves = [a.value for a in args], [a.differential for a in args]
        y = op.run(*values)
        if isinstance(op, (Linear, Get)):
            return DualNumber(y, op.run(*moves))
        if isinstance(op, Elementwise):
            slopes = op.primitive.partials(tuple([dense(v) for v in values]), y)
            terms = [s * dense(m) for s, m in zip(slopes, moves, strict=True) if s is not None]
            return DualNumber(y, sum(terms[1:], terms[0]) if terms else self._still(y))
        if isinstance(op, Ruled):
            shapes = tuple([NUMBERS.shape(v) for v in values])
            rule: tuple[Program, list[int | None]] = later.rule_program(op, shapes, tuple(range(len(args))))
            program, results = rule
            many = several(op.shape_of(shapes))
            ys: list[Any] = list(y) if many else [y]
            found = outputs(program, NUMBERS, [*values, *ys, *moves])
            parts = [self._still(v) if r is None else found[r] for v, r in zip(ys, results, strict=True)]
            return DualNumber(y, tuple(parts) if many else parts[0])
        groups = [slice(i, i + 1) for i in range(len(args))]
        if isinstance(op, Declared):
            groups = [where for _, where in op.leg_slices()]
        mixed = [[*values[: w.start], *moves[w], *values[w.stop :]] for w in groups]
        return DualNumber(y, _total([op.run(*xs) for xs in mixed]))


def forward(term: Term, leaves: Sequence[Any], moves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """f(v) and f'(v)(dv) of a term, leaf by leaf."""
    duals = [DualNumber(v, d) for v, d in zip(leaves, moves, strict=True)]
    result = leaves_of(interpret(term, term.domain.tree(duals), Dual()))
    return [r.value for r in result], [r.differential for r in result]


def _total(summands: list[Any]) -> Any:
    if type(summands[0]) is tuple:
        return tuple([_total(list(column)) for column in zip(*summands, strict=True)])
    return Combination((1.0,) * len(summands)).run(*summands)
