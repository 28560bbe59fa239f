"""Derivatives inside a trace: linear maps whose coefficients are traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calculus.derive import transpose_linear, weighted_adjoint
from ..errors import SpaceError
from ..maps.linear_map import as_element
from ..maps.sources import Source
from ..programs.program import Program, outputs
from ..spaces import Space
from .traced import FLOAT, Trace, Traced, slot_of, tidy, trace_of
from .trees import flatten, tree_space, unflatten


class SymbolicMap:
    """A linear map V ⊸ W at a traced point: `L(v)`, `L.H`, `L.T`, `L @ M`, `L.to_dense()`, as for a LinearMap. Returned, it stands for its matrix."""

    __array_ufunc__ = None

    def __init__(self, domain: Space, codomain: Space, program: Program, home: Trace, fixed: list[int], dtype: Any = FLOAT) -> None:
        self.domain = domain
        self.codomain = codomain
        self.program = program  # (coefficients, v) → L(v)
        self.home = home
        self.fixed = fixed
        self.dtype = FLOAT if dtype == FLOAT else dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(dim of the codomain, dim of the domain)."""
        return self.codomain.dim, self.domain.dim

    def __call__(self, *vectors: Any) -> Any:
        """L(v)."""
        slots = self.open(as_element(vectors, self.domain))
        found = outputs(self.program, self.home, [*self.fixed, *slots])
        return present(self.codomain, [Traced(self.home, s, self.dtype) for s in found])

    def open(self, value: Any) -> list[int]:
        """A value of the domain as slots."""
        leaves, _ = flatten(value)
        given = [tidy(x) for x in leaves]
        shapes = [np.shape(x) for x in given]
        if shapes != [leaf.shape for leaf in self.domain.leaves]:
            raise SpaceError(f"not an element of {self.domain}: got arrays of shapes {shapes}")
        return [slot_of(self.home, x, self.dtype) for x in given]

    @property
    def T(self) -> SymbolicMap:
        """The transpose."""
        turned = transpose_linear(self.program, len(self.fixed))
        return SymbolicMap(self.codomain, self.domain, turned, self.home, self.fixed, self.dtype)

    @property
    def H(self) -> SymbolicMap:
        """The adjoint."""
        if self.domain.plain and self.codomain.plain:
            return self.T
        turned = weighted_adjoint(self.T.program, len(self.fixed), self.domain, self.codomain)
        return SymbolicMap(self.codomain, self.domain, turned, self.home, self.fixed, self.dtype)

    def adjoint(self) -> SymbolicMap:
        """The same as `.H`."""
        return self.H

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, SymbolicMap):
            return self(other)
        if other.codomain is not self.domain:
            raise SpaceError(f"cannot compose L @ M: M ends in {other.codomain}, L starts at {self.domain}")
        both = Program()
        mine, its = [both.input(self.program.shapes[s]) for s in self.program.inputs[: len(self.fixed)]], len(other.fixed)
        given = [both.input(other.program.shapes[s]) for s in other.program.inputs]
        both.outputs = outputs(self.program, both, [*mine, *outputs(other.program, both, given)])
        return SymbolicMap(other.domain, self.codomain, both, self.home, [*self.fixed, *other.fixed[:its]], self.dtype)

    def to_dense(self) -> Any:
        """The matrix, as a traced array."""
        from ..maps.matrix_programs import matrix

        if not self.domain.dim or not self.codomain.dim:
            return np.zeros(self.shape)
        program = matrix(Source(self.program, tuple(self.fixed)))  # from its structure, where it has some
        return Traced(self.home, outputs(program, self.home, self.fixed)[0], self.dtype)

    def solve(self, *vectors: Any) -> Any:
        """L⁻¹(b), by the dense matrix."""
        if self.domain.dim != self.codomain.dim:
            raise SpaceError(f"solve takes a map between spaces of one dimension; {self!r} has {self.domain.dim} and {self.codomain.dim}")
        leaves, _ = flatten(as_element(vectors, self.codomain))
        shapes = [np.shape(x) for x in leaves]
        if shapes != [leaf.shape for leaf in self.codomain.leaves]:
            raise SpaceError(f"not an element of {self.codomain}: got arrays of shapes {shapes}")
        x = np.linalg.solve(self.to_dense(), np.concatenate([np.reshape(leaf, (-1,)) for leaf in leaves]))
        ends = np.cumsum([0, *[leaf.size for leaf in self.domain.leaves]])
        parts = [np.reshape(x[a:b], leaf.shape) for a, b, leaf in zip(ends[:-1], ends[1:], self.domain.leaves, strict=True)]
        return present(self.domain, parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no {name!r}: its numbers are not known while a function is traced. "
            "What works here: L(v), L.T, L.H, L @ M, L.solve(b), L.to_dense()"
        )

    def __repr__(self) -> str:
        return f"a traced linear map {self.domain} ⊸ {self.codomain}"


def written_map(L: Any, value: Any) -> Any:
    """A linear map with numbers for coefficients on a traced vector: its steps are written into the trace."""
    leaves, _ = flatten(value)
    home = trace_of(*leaves)
    kinds = [x.dtype for x in leaves if isinstance(x, Traced)]
    dtype = np.result_type(L.dtype, *kinds)
    slots = SymbolicMap(L.domain, L.codomain, L.program, home, [], dtype).open(value)
    return present(L.codomain, [Traced(home, s, FLOAT if dtype == FLOAT else dtype) for s in outputs(L.program, home, slots)])


def present(space: Space, leaves: list[Any]) -> Any:
    """Traced leaves in the containers of a space."""
    from ..layout import build

    return build(space.code, leaves, lambda branch, parts: branch.contain(parts) if branch.tensor is None else parts[0])


def traced_element(args: tuple[Any, ...]) -> tuple[Any, Space, Trace]:
    """Arguments that hold traced arrays as an element: its tree of slots, its space and the trace."""
    from ..spaces import real_space

    leaves, tree = flatten(args[0] if len(args) == 1 else args)
    home = trace_of(*leaves)
    given = [tidy(x) for x in leaves]
    slots = [slot_of(home, x, FLOAT if not isinstance(x, Traced) else x.dtype) for x in given]
    space = tree_space(tree, [real_space(np.shape(x)) for x in given])
    return unflatten(tree, slots, lambda node, parts: tuple(parts)), space, home
