"""What `derive` gives: value, derivative and adjoint of a function as programs, for every point at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..calculus.derive import Derivative, derive_program, lower, weighted_adjoint
from ..calculus.domains import NUMBERS
from ..calculus.linear import specialised
from ..programs.fusing import runnable
from ..programs.program import Program, outputs
from ..spaces import Space
from ..terms.core import Term
from ..terms.makers import frozen
from .linear_map import LinearMap, as_element
from .sources import Source, kept

Names = tuple[str, ...] | None
Arrays = Callable[[Sequence[Any]], tuple[tuple[str, Any], ...]] | None


class Family:
    """A linear map that depends on a point: x ↦ f'(x). `family(x)` is the LinearMap there; `len` counts steps."""

    def __init__(self, program: Program, point: Space, domain: Space, codomain: Space, at: Callable[..., LinearMap], names: Names = None) -> None:
        self.program = program
        self.names = names  # of the arguments, in print
        self.point = point
        self.domain = domain
        self.codomain = codomain
        self._at = at

    def __call__(self, *args: Any) -> LinearMap:
        return self._at(*args)

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
        from ..syntax.symbolic import any_traced, opened, present, written

        value = as_element(args, self.domain)
        if any_traced(value):
            return present(self.codomain, written(self.program, [], opened(self.domain, value), np.dtype(float)))
        leaves = self.domain.open(value)
        return self.codomain.wrap(outputs(runnable(self.program), NUMBERS, leaves), self.program.held | {id(x) for x in leaves})

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

    def __init__(self, term: Term, names: Names = None, arrays: Arrays = None) -> None:
        self.function = term
        self.names = names
        self._arrays = arrays
        self.programs: Derivative = derive_program(lower(term))

    @cached_property
    def value(self) -> Value:
        """f as a program."""
        return Value(self.programs.value, self.function.domain, self.function.codomain, self.names)

    @cached_property
    def derivative(self) -> Family:
        """x ↦ f'(x)."""
        V, W = self.function.domain, self.function.codomain
        return Family(self.programs.derivative, V, V, W, self._at, self.names)

    @cached_property
    def adjoint(self) -> Family:
        """x ↦ f'(x)*."""
        V, W = self.function.domain, self.function.codomain
        transpose = self.programs.adjoint
        program = transpose if V.plain and W.plain else weighted_adjoint(transpose, len(V.leaves), V, W)
        return Family(program, V, W, V, self._adjoint_at, self.names)

    def _adjoint_at(self, *args: Any) -> LinearMap:
        """f'(x)*."""
        return self._at(*args).H

    def _at(self, *args: Any) -> LinearMap:
        """f'(x): an instance of the derivative."""
        from ..syntax.symbolic import TracedMap, any_traced, fixed, opened

        V, W, value = self.function.domain, self.function.codomain, as_element(args, self.function.domain)
        traced = any_traced(value)
        leaves = fixed(opened(V, value)) if traced else frozen(V.open(value))
        program = self.programs.derivative

        def source() -> Source:
            return Source(program, leaves, () if self._arrays is None else self._arrays(leaves))

        return TracedMap(V, W, source()) if traced else LinearMap(V, W, lambda: kept(specialised(program, leaves)), source=source)

    def __getstate__(self) -> Any:
        return {"function": self.function, "names": self.names, "programs": self.programs, "_arrays": None}  # captured arrays lose their names

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
