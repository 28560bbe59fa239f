"""What `derive` gives: value, derivative and adjoint of a function as programs, for every point at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..calculus.derive import Derivative, derive_program, lower, weighted_adjoint
from ..calculus.domains import NUMBERS
from ..calculus.linear import specialised
from ..programs.fusing import ready
from ..programs.program import Program, outputs
from ..spaces import Space
from ..terms.core import Term
from ..terms.makers import frozen
from .linear_map import LinearMap, as_element

Names = tuple[str, ...] | None


class Family:
    """A linear map that depends on a point: x ↦ f'(x). `family(x)` is the LinearMap there; `len` counts steps."""

    def __init__(self, program: Program, point: Space, domain: Space, codomain: Space, names: Names = None) -> None:
        self.program = program
        self.names = names  # of the arguments, in print
        self.point = point
        self.domain = domain
        self.codomain = codomain

    def __call__(self, *args: Any) -> LinearMap:
        leaves = self.point.open(as_element(args, self.point))
        return LinearMap(self.domain, self.codomain, specialised(self.program, frozen(leaves)))

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.program)

    def __repr__(self) -> str:
        from ..show.programs import show_family

        return show_family(self)

    def latex(self) -> str:
        """The family in LaTeX."""
        from ..show.programs import latex_family

        return latex_family(self)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


class Value:
    """A function as a program. `value(x)` evaluates it; `len` counts steps."""

    def __init__(self, program: Program, domain: Space, codomain: Space, names: Names = None) -> None:
        self.program = program
        self.names = names
        self.domain = domain
        self.codomain = codomain

    def __call__(self, *args: Any) -> Any:
        leaves = self.domain.open(as_element(args, self.domain))
        return self.codomain.wrap(outputs(ready(self.program), NUMBERS, leaves), self.program.held | {id(x) for x in leaves})

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.program)

    def __repr__(self) -> str:
        from ..show.programs import show_value

        return show_value(self)


class Derivation:
    """The symbolic derivative of a function: `function`, `value`, `derivative`, `adjoint`, `size`. Printing shows all with their lets.

    `D.derivative(x)` and `D.adjoint(x)` are the LinearMaps f'(x) and f'(x)*; `D(x)` is (f(x), f'(x)).
    """

    def __init__(self, term: Term, names: Names = None) -> None:
        self.function = term
        self.names = names
        self.programs: Derivative = derive_program(lower(term))

    @cached_property
    def value(self) -> Value:
        """f as a program."""
        return Value(self.programs.value, self.function.domain, self.function.codomain, self.names)

    @cached_property
    def derivative(self) -> Family:
        """x ↦ f'(x)."""
        V, W = self.function.domain, self.function.codomain
        return Family(self.programs.derivative, V, V, W, self.names)

    @cached_property
    def adjoint(self) -> Family:
        """x ↦ f'(x)*."""
        V, W = self.function.domain, self.function.codomain
        transpose = self.programs.adjoint
        return Family(transpose if V.plain and W.plain else weighted_adjoint(transpose, len(V.leaves), V, W), V, W, V, self.names)

    @property
    def size(self) -> int:
        """The number of steps of value, derivative and adjoint together."""
        return len(self.value) + len(self.derivative) + len(self.adjoint)

    def __call__(self, *args: Any) -> tuple[Any, LinearMap]:
        return self.value(*args), self.derivative(*args)

    def __repr__(self) -> str:
        from ..show.programs import show_derivation

        return show_derivation(self)

    def latex(self) -> str:
        """The derivation in LaTeX."""
        from ..show.programs import latex_derivation

        return latex_derivation(self)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"
