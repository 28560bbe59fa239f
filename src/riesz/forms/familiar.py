"""Laws on a function before it is differentiated, where the derivative is the wrong place for them.

With M = L Lᵀ by Cholesky: Σ log diag L = ½ log det M, L⁻ᵀ L⁻¹ y = M⁻¹ y, ‖L⁻¹ y‖² = yᵀ M⁻¹ y.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..functions.function import as_function
from ..ops.op import Contraction, Elementwise, Reshape
from ..ops.opaque import Ruled, Select
from ..programs.program import Program, outputs
from ..programs.rewriting import rewritten
from ..spaces.space import space_of


class Triangle(NamedTuple):
    """L of M = L Lᵀ, or its transpose."""

    matrix: int
    transposed: bool


class Half(NamedTuple):
    """L⁻¹ y or L⁻ᵀ y."""

    triangle: Triangle
    vector: int


class FactorDiagonal(NamedTuple):
    """diag L, or its logarithm."""

    matrix: int
    logarithm: bool


class _Known:
    """What is known of the slots of the new program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.facts: dict[int, Any] = {}

    def rule(self, small: Program, slot: int, given: list[int]) -> int | None:
        """One step: a fact about its result, or another step."""
        op, facts = self.program.ops[slot], self.facts
        fact = facts.get(given[0]) if given else None
        new: Any = None
        match op, fact:
            case Ruled(), _ if _is(op, "cholesky") and len(small.shapes[given[0]]) == 2:
                new = Triangle(given[0], False)
            case Contraction(labels=((0, 1),), out=(1, 0)), Triangle():
                new = fact._replace(transposed=not fact.transposed)
            case Select(), _ if isinstance(facts.get(given[1]), Triangle):
                new = facts[given[1]]  # triangular solves read one half only
            case Contraction(labels=((0, 0),), out=(0,)), Triangle():
                new = FactorDiagonal(fact.matrix, False)
            case Elementwise(), FactorDiagonal(logarithm=False) if op.primitive.name in ("ln", "log"):
                new = fact._replace(logarithm=True)
            case Contraction(labels=((0,),), out=()), FactorDiagonal(logarithm=True):
                return self._traced(small, lambda M: 0.5 * np.linalg.slogdet(M)[1], fact.matrix)
            case float(), Half():
                new = fact._replace(vector=small.scale(op, fact.vector))
            case Reshape(), Half():
                shape = small.shapes[fact.vector]
                if len(shape) == 2 and shape[1] == 1 and op.shape == shape[:1]:
                    new = fact._replace(vector=small.step(op, (fact.vector,)))
            case Ruled(), Triangle() if op.title in ("solve", "solve_triangular"):
                turned = fact._replace(transposed=fact.transposed != dict(op.parameters).get("transposed", False))
                before = self._half(small, given[1])
                if before is not None and before.triangle == (turned.matrix, False) and turned.transposed:
                    return self._traced(small, np.linalg.solve, turned.matrix, before.vector)
                new = Half(turned, given[1])
            case Contraction(labels=((0,), (0,)), out=()), Half(triangle=Triangle(transposed=False)):
                other = facts.get(given[1])
                if isinstance(other, Half) and other.triangle == fact.triangle:
                    solved = self._traced(small, np.linalg.solve, fact.triangle.matrix, other.vector)
                    return small.step(op, (fact.vector, solved))
            case _:
                pass
        if new is None:
            return None
        at = small.take(self.program, slot, given)
        facts[at] = new
        return at

    def _half(self, small: Program, slot: int) -> Half | None:
        """A fact about a column, also where it was a vector in between."""
        fact = self.facts.get(slot)
        if isinstance(fact, Half):
            return fact
        if isinstance(small.ops[slot], Reshape):
            inner = self.facts.get(small.args[slot][0])
            if isinstance(inner, Half):
                return inner._replace(vector=small.step(small.ops[slot], (inner.vector,)))
        return None

    @staticmethod
    def _traced(small: Program, f: Any, *slots: int) -> int:
        spaces = tuple([space_of(np.zeros(small.shapes[s])) for s in slots])
        record = as_function(f).record_at(spaces)[0].settled()
        return outputs(record.program, small, list(slots))[0]


def mirrored(program: Program) -> list[int]:
    """The inputs that are read as symmetric matrices: one half counts for both."""
    found = [args[0] for op, args in zip(program.ops, program.args, strict=True) if _is(op, "mirrored")]
    return [k for k, slot in enumerate(program.inputs) if slot in found]


def _is(op: Any, title: str) -> bool:
    return isinstance(op, Ruled) and op.title == title


def familiar(program: Program) -> Program:
    """A program with what is known of Cholesky factors written by determinants and solutions."""
    if not any([_is(op, "cholesky") for op in program.ops]):
        return program
    found = rewritten(program, _Known(program).rule)
    return found.prune(found.inputs, found.outputs)
