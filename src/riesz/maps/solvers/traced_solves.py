"""A(p)⁻¹b inside a traced function: one step, whose arguments are the leaves of the point p and the right-hand sides.

    x = A⁻¹b         dx = A⁻¹(db − dA·x)         b̄ = A⁻ᵀx̄,  p̄ = −(dA·x)ᵀb̄

A is never written as a matrix of the program. When the step runs, the map at the numbers of p chooses its solver as
`L.solve` does. dA·x is the derivative of the family's program in the point. The transpose is the same step with A
transposed. All of them meet in one `Solving`, which keeps the last factorisations: a gradient factorises once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calculus.batching import mapped
from ...calculus.derive import derive_program, transpose_linear
from ...calculus.linearity import specialised
from ...ops.op import Reduction, Reshape, Shape, contraction
from ...ops.opaque import Op, Ruled, Smooth
from ...programs.program import Program, outputs
from ...relations.index_sets import Seg
from ...relations.kinds import Range
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...tracing.differentials import plus
from ...tracing.surroundings.contents import equal
from ...tracing.traced import FLOAT, Traced, slot_of, trace_of
from ..instances import Instance, held, kept
from ..leaves import IN_TRACES
from .factorised import Solver

if TYPE_CHECKING:
    from ..linear_map import LinearMap


PSEUDO = "pseudoinverse"
"""The way of solving that takes singular maps too."""


class PseudoInverse(Solver):
    """The pseudoinverse of a map, as a solver."""

    def __init__(self, L: LinearMap) -> None:
        super().__init__(L.shape, L.dtype, "pseudoinverse")
        self._map = L.pinv()

    def solve(self, b: Any, *, transposed: bool = False) -> Any:
        return (self._map.T if transposed else self._map).matmat(b)


class Solving:
    """A family of maps that systems are solved with, and how: its programs, and the last solvers by the point."""

    def __init__(self, L: LinearMap, method: str, options: dict[str, Any]) -> None:
        self.kind, self.spaces, self.dtype, self.facts = type(L), (L.domain, L.codomain), L.dtype, L.facts
        self.program, self.fixed = L.instance.program, len(L.instance.point)
        self.method, self.options = method, options
        self._made: dict[Any, Program] = {}
        self._kept: list[tuple[list[Any], Solver]] = []

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_made": {}, "_kept": []}

    @property
    def shape(self) -> Shape:
        """(rows, columns)."""
        return self.spaces[1].dim, self.spaces[0].dim

    def at(self, point: Sequence[Any]) -> Solver:
        """The solver at a point. Who calls may use its arrays for other numbers later, so points are compared."""
        for there, solver in self._kept:
            if all([a is b or equal(np.asarray(a), np.asarray(b)) for a, b in zip(point, there, strict=True)]):
                return solver
        there, L = held(point), self.map_at(point)
        solver = PseudoInverse(L) if self.method == PSEUDO else L.factorised(self.method, self.options)
        self._kept = [(there, solver), *self._kept[: tuning.KEPT_SOLVERS - 1]]
        return solver

    def map_at(self, point: Sequence[Any]) -> LinearMap:
        """The map at the numbers of a point."""
        there = held(point)

        def written() -> Program:
            with quietly():
                return kept(specialised(self.program, there))

        make = lambda: Instance(self.program, tuple(there))  # noqa: E731
        return self.kind(*self.spaces, written, self.dtype, make, self.facts)

    def traced_at(self, point: Sequence[Any]) -> LinearMap:
        """The map at traced arrays."""
        make = lambda: Instance(self.program, tuple(point))  # noqa: E731
        return self.kind(*self.spaces, None, self.dtype, make, self.facts, leaves=IN_TRACES)

    def bands(self) -> tuple[Program, int, int] | None:
        """point ↦ the diagonals of a square band matrix in LAPACK's order, how many are below and above; None for
        other matrices."""
        from ..matrices.matrix_programs import part_program
        from ..normal_form.network import multiplied
        from ..normal_form.structure import offsets
        from .choice import band_part

        (row,), (column,) = [[leaf.shape for leaf in s.leaves] or [None] for s in self.spaces[::-1]]
        if row is None or column is None or self.shape[0] != self.shape[1] or self.method != "auto":
            return None
        shapes = [self.program.shapes[s] for s in self.program.inputs[: self.fixed]]
        source = Instance(self.program, tuple([np.ones(s) for s in shapes]))
        net = multiplied(source.network) if source.fixed else None
        entries = [] if net is None else net.block(0, 0)
        lines = offsets(net.c, entries, row, column) if net is not None and entries else None
        if net is None or lines is None:
            return None
        part, lower, upper = band_part(net, entries, lines, row, column)
        return part_program(source, net, part), lower, upper

    def product(self, transposed: bool, n: int) -> Program:
        """(point, X) ↦ A·X, column by column of n, in flat coordinates."""

        def make() -> Program:
            program = self.program
            if transposed:
                program = transpose_linear(program, self.fixed)
            whole = Program()
            shapes = [program.shapes[s] for s in program.inputs]
            point = [whole.input(s) for s in shapes[: self.fixed]]
            rows, columns = self.shape[::-1] if transposed else self.shape
            X = whole.input((columns, n))
            turned = (
                whole.step(contraction(((0, 1),), (1, 0)), (X,)) if n != 1 else whole.step(Reshape((columns,)), (X,))
            )
            lead = (n,) if n != 1 else ()
            vector: list[int] = []
            for (start, stop), shape in zip(_bounds(shapes[self.fixed :]), shapes[self.fixed :], strict=True):
                part = turned
                if stop - start != columns:
                    op = Reduction((Range(Seg(stop - start), Seg(columns), start, 1, True).converse,), len(lead))
                    part = whole.step(op, (turned,))
                vector.append(whole.step(Reshape((*lead, *shape)), (part,)))
            if lead:
                flags = [False] * self.fixed + [True] * len(vector)
                found = mapped(program, whole, [*point, *vector], flags, n)
            else:
                found = outputs(program, whole, [*point, *vector])
            ends = _bounds([program.shapes[s] for s in program.outputs])
            flat = [whole.step(Reshape((*lead, b - a)), (y,)) for y, (a, b) in zip(found, ends, strict=True)]
            if len(flat) != 1:
                places = tuple([Range(Seg(b - a), Seg(rows), a, 1, True) for a, b in ends])
                flat = [whole.step(Reduction(places, len(lead)), flat) if flat else whole.zeros((*lead, rows))]
            last = contraction(((0, 1),), (1, 0)) if lead else Reshape((rows, 1))
            return whole.prune([*point, X], [whole.step(last, flat)])

        return self._once((transposed, n), make)

    def moved(self, transposed: bool, n: int, live: tuple[int, ...]) -> Program:
        """(point, X, dp for the leaves that move) ↦ dA·X."""
        flags = [i in live for i in range(self.fixed + 1)]
        make = lambda: derive_program(self.product(transposed, n), flags).derivative  # noqa: E731
        return self._once((transposed, n, live), make)

    def _once(self, key: Any, make: Callable[[], Program]) -> Program:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _bounds(shapes: Sequence[Any]) -> list[tuple[int, int]]:
    """Where each of some arrays begins and ends among the coordinates of all."""
    return list(pairwise(accumulate([math.prod(s) for s in shapes], initial=0)))


def solving(L: LinearMap, method: str, options: dict[str, Any]) -> Solving:
    """What solves with the maps of a family: one for each program and way of solving."""
    how = tuple(sorted(options.items(), key=lambda o: o[0]))
    key = ("solving", L.domain, L.codomain, L.dtype, L.facts, method, how)
    return L.instance.once(key, lambda: Solving(L, method, options))


def solve(L: LinearMap, b: Any, method: str, options: dict[str, Any]) -> Traced:
    """A⁻¹B for a matrix B of flat coordinates, as a step; least squares where A is not square."""
    point = L.instance.point
    home = trace_of(*point, b)
    slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in point]
    slots.append(slot_of(home, b, L.dtype))
    op = Ruled(SOLVED, (("family", solving(L, method, options)), ("transposed", False)))
    return Traced(home, home.step(op, slots), L.dtype)


# -- the step ---------------------------------------------------------------------------------------------


class _Solved(Smooth):
    """Pickled by its name in this file."""

    def __reduce__(self) -> Any:
        return "SOLVED"


def _array(*xs: Any, family: Solving, transposed: bool) -> Any:
    *point, b = xs
    return family.at(point).solve(np.asarray(b), transposed=transposed)


def _shapes(*shapes: Shape, family: Solving, transposed: bool) -> Shape:
    return family.shape[0 if transposed else 1], shapes[-1][1]


def _differential(d: Any, x: Any, *xs: Any, family: Solving, transposed: bool) -> Any:
    """dx = A⁻¹(db − dA·x). Where A is not square and its rank is constant: dx = A⁺(db − dA·x) + A⁺A⁺ᵀdAᵀ(b − A·x) +
    (1 − A⁺A)dAᵀA⁺ᵀx."""
    *point, b = xs
    live = tuple([i for i, dp in enumerate(d[:-1]) if dp is not None])
    home = trace_of(*xs)

    def solved(b: Any, turned: bool = False) -> Any:
        op = Ruled(SOLVED, (("family", family), ("transposed", transposed != turned)))
        return Traced(home, home.step(op, [p.slot for p in point] + [b.slot]))

    def written(program: Program, v: Traced, *more: Any) -> Traced:
        return Traced(home, outputs(program, home, [a.slot for a in (*point, v, *more)])[0])

    def moved(v: Traced, turned: bool = False) -> Any:
        program = family.moved(transposed != turned, v.shape[1], live)
        return written(program, v, *[d[i] for i in live])

    def times(v: Traced) -> Any:
        return written(family.product(transposed, v.shape[1]), v)

    if not live:
        return solved(d[-1])
    dx = solved(plus(d[-1], -moved(x)))
    if family.shape[0] == family.shape[1] and family.method not in ("lsmr", PSEUDO):
        return dx
    rest = moved(solved(x, True), True)
    return dx + solved(solved(moved(b - times(x), True), True)) + rest - solved(times(rest))


def _transpose(k: int, *, family: Solving, transposed: bool) -> Op:
    return Ruled(SOLVED, (("family", family), ("transposed", not transposed)))


SOLVED = _Solved("solve_map", _array, _shapes, _differential, _transpose, batched=False, linear_time=True, mixes=(-2,))


# -- the choice -------------------------------------------------------------------------------------------


def structured(L: LinearMap) -> bool:
    """Whether a solver can be better than one for dense matrices; small systems are as well solved by one."""
    n, few = max(L.shape), L.positions
    if n <= tuning.WRITTEN_UNKNOWNS or n > tuning.DENSE_UNKNOWNS or few is None:
        return n > tuning.WRITTEN_UNKNOWNS
    if few <= L.shape[0] * L.shape[1] // 8:
        return True
    from .choice import ways_of

    return L.shape[0] == L.shape[1] and bool(ways_of(L))
