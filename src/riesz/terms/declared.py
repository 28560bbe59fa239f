"""Linear and bilinear functions declared by users: a name, an implementation and the adjoints   (§3.1, §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import SpaceError
from ..ops.opaque import DeclaredForm
from ..spaces.space import Space
from .bilinear import Bilinear, Section
from .term import Term

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


class DeclaredLinear(Term):
    """A declared linear function V ⊸ W: leg `target` of the form ⟨f(v), w⟩ from the other leg."""

    form: DeclaredForm
    target: int

    def check(self) -> None:
        _plain(self.form)
        self._type(self.form.legs[1 - self.target], self.form.legs[self.target], True)


class DeclaredBilinear(Bilinear):
    """A declared bilinear function: leg `target` of the form ⟨u ⋄ v, w⟩ from the two others."""

    form: DeclaredForm
    target: int

    def check(self) -> None:
        _plain(self.form)
        left, right = [leg for i, leg in enumerate(self.form.legs) if i != self.target]
        self._bilinear(left, right, self.form.legs[self.target])

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        # Fixing leg a and transposing exchanges the free leg and the target: ⟨u ⋄ v, w⟩ = ⟨v, (u⋄)*w⟩.
        sources = [i for i in range(3) if i != self.target]
        fixed, free = sources[side], sources[1 - side]
        after = [i for i in range(3) if i != free]
        return Section(DeclaredBilinear(self.form, free), after.index(fixed), leaves)


def _plain(form: DeclaredForm) -> None:
    for leg in form.legs:
        if not leg.plain:
            weighted = f"{leg} is weighted (weights are added with space=…)"
            raise SpaceError(f"declare {form.name} on plain spaces, with their Euclidean adjoints; {weighted}")


def declare_linear(f: Unary, adjoint: Unary, domain: Space, codomain: Space, name: str, batched: bool) -> Term:
    """A linear function from its implementation and that of its adjoint."""
    return DeclaredLinear(DeclaredForm(name, (domain, codomain), (adjoint, f), batched), 1)


def declare_bilinear(
    f: Binary, left: Binary | None, right: Binary | None, spaces: tuple[Space, ...], name: str, batched: bool
) -> Bilinear:
    """A bilinear function from its implementation and those of its sections' adjoints: left(u, w) = (u ⋄)* w ∈ V and
    right(v, w) = (⋄ v)* w ∈ U."""
    return DeclaredBilinear(DeclaredForm(name, spaces, (right, left, f), batched), 2)
