"""Affine interpretation f^[1]: the value of a function and its derivative, together   (§5, Figure 1).

A leaf of this domain is a pair of a value and a wire. A wire is a linear map from the domain of f, given by the step of the linear
program that ends in it; `None` is the zero map. The chain rule and the parallel rule are the interpreter; the other rules are here.
Over numbers the linear program has numbers for coefficients; over symbols its coefficients are slots of the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ops import Combination, Declared, Elementwise, Get, Linear, Multilinear, Op, times
from ..programs.program import Program, broadcast


class Pair:
    """(f(x), f'(x)) for one leaf."""

    __slots__ = ("value", "wire")

    def __init__(self, value: Any, wire: Any) -> None:
        self.value = value
        self.wire = wire


class Affine:
    """The domain of pairs over a base domain; wires are slots of `tape`, and `lift` brings a base value there as a coefficient."""

    def __init__(self, base: Any, tape: Program, lift: Callable[[Any], int]) -> None:
        self.base = base
        self.tape = tape
        self.lift = lift

    def const(self, value: Any) -> Pair:
        """K_w^[1](x) = (w, 0)."""
        return Pair(self.base.const(value), None)

    def zeros(self, shape: tuple[int, ...]) -> Pair:
        """The zero vector, a constant."""
        return Pair(self.base.zeros(shape), None)

    def shape(self, pair: Pair) -> Any:
        """The shape of a leaf."""
        return self.base.shape(pair.value)

    def scale(self, k: float, x: Pair) -> Pair:
        """(k·), a linear map."""
        return Pair(self.base.scale(k, x.value), None if x.wire is None else self.tape.scale(k, x.wire))

    def step(self, op: Op, args: Sequence[Pair]) -> Pair:
        """One operation, by its kind."""
        if type(op) is Elementwise:
            return self._primitive(op, args)
        values = [a.value for a in args]
        y = self.base.step(op, values)
        live = tuple([i for i, a in enumerate(args) if a.wire is not None])
        if not live:
            return Pair(y, None)  # a constant function of x
        if isinstance(op, Linear):
            return Pair(y, self._linear(op, y, args, live))
        if isinstance(op, Multilinear):
            return Pair(y, self._multilinear(op, values, args, live))
        if isinstance(op, Get):
            return Pair(y, self._sum([self.tape.step(op, (wire,)) for wire in args[0].wire]))
        assert isinstance(op, Declared)
        return Pair(y, self._declared(op, values, args))

    def _linear(self, op: Linear, y: Any, args: Sequence[Pair], live: tuple[int, ...]) -> int:
        """h^[1](x) = (h(x), h)."""
        small = op if len(live) == len(args) else op.only(live)
        wire = self.tape.step(small, [args[i].wire for i in live])
        shape = self.base.shape(y)
        return wire if self.tape.shape(wire) == shape else self.tape.step(broadcast(self.tape.shape(wire), shape), (wire,))

    def _multilinear(self, op: Multilinear, values: list[Any], args: Sequence[Pair], live: tuple[int, ...]) -> int:
        """⋄^[1](u, v) = (u ⋄ v, (u⋄) • π₁ + (⋄v) • π₀), for any number of arguments."""
        wires: list[int] = []
        for i in live:
            wires.append(self.tape.step(op, [args[i].wire if j == i else self.lift(v) for j, v in enumerate(values)]))
        return self._sum(wires)

    def _primitive(self, op: Elementwise, args: Sequence[Pair]) -> Pair:
        """p^[1](x) = (p(x), (p'(x)·)), at every index: Δ of the family."""
        if len(args) == 1:
            x = args[0]
            y, (slope,) = self.base.linearized(op, (x.value,))
            return Pair(y, None if x.wire is None or slope is None else self._times(slope, x.wire))
        y, partials = self.base.linearized(op, [a.value for a in args])
        wires = [self._times(d, a.wire) for d, a in zip(partials, args, strict=True) if a.wire is not None and d is not None]
        return Pair(y, self._sum(wires))

    def _times(self, partial: Any, wire: int) -> int:
        if type(partial) is float:
            return self.tape.scale(partial, wire)
        return self.tape.step(times(len(self.tape.shape(wire))), (self.lift(partial), wire))

    def _declared(self, op: Declared, values: list[Any], args: Sequence[Pair]) -> tuple[int, ...]:
        """A declared function is linear in each of its arguments: one summand per argument that moves."""
        wires: list[int] = []
        for _, where in op.leg_slices():
            moving = args[where]
            if all([a.wire is None for a in moving]):
                continue
            mixed = [self.lift(v) for v in values] if len(op.sources) > 1 else [0] * len(values)
            mixed[where] = [self.tape.zeros(self.base.shape(a.value)) if a.wire is None else a.wire for a in moving]
            wires.append(self.tape.step(op, mixed))
        return tuple(wires)

    def _sum(self, wires: list[int]) -> Any:
        if len(wires) < 2:
            return wires[0] if wires else None
        return self.tape.step(Combination((1.0,) * len(wires)), wires)
