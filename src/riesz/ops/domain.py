"""Value domains: what a program or a term is computed over.

The same steps give numbers, slots of another program, values with derivatives, or stacks of values.
Each of these is a domain. A leaf is one value of the domain: one array, one slot, one pair.

| domain | leaf | what running a program gives |
|---|---|---|
| `number_domains.Numbers` | a float, an array or a formal vector | its value |
| `programs.program.Program` | a slot, an int | the same steps, written into that program |
| `calculus.affine.AffineDomain` | `Pair` of a leaf and a wire | f^[1]: value and derivative |
| `calculus.batching.Mapped` | `Lane`, a leaf with or without a leading axis | f^X |
| `calculus.dual_numbers.Dual` | `DualNumber` | value and directional derivative |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from .op import Elementwise, Op

Leaf = TypeVar("Leaf")


class Domain(Protocol[Leaf]):
    """What a program needs to be run over: `run(program, domain, inputs)` takes leaves and gives leaves."""

    @property
    def hushes(self) -> bool:
        """Whether steps compute numbers, and so may warn: what a selection reads is then computed without warnings."""
        ...

    def const(self, value: Any, /) -> Leaf:
        """A fixed vector, given as numbers."""
        ...

    def step(self, op: Op, args: Sequence[Leaf], /) -> Leaf:
        """op of the arguments."""
        ...

    def scale(self, k: float, value: Leaf, /) -> Leaf:
        """k · value."""
        ...

    def zeros(self, shape: tuple[int, ...], /) -> Leaf:
        """The zero vector."""
        ...

    def shape(self, value: Leaf, /) -> Any:
        """The shape of a leaf; a tuple of shapes for the result of a step with several."""
        ...


class SlopedDomain(Domain[Leaf], Protocol[Leaf]):
    """A domain that derivatives can be taken over: it knows the slopes of primitives."""

    def linearized(self, op: Elementwise, xs: Sequence[Leaf], /) -> tuple[Leaf, tuple[Any, ...]]:
        """The value of a primitive at xs and its partial derivatives there: leaves, numbers, or None for 0."""
        ...
