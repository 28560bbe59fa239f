"""Linear maps inside a trace: the point of a map may hold traced arrays, of this trace or of others around it.

Which trace computes is seen when something is computed: the innermost one among the leaves of point and vector. Arrays of traces around it are
captured, others are refused (`slot_of`). The algebra is that of `LinearMap`, on programs of a point and a vector (`Source`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import SpaceError
from ..layout import build, check_leaf
from ..maps.linear_map import LinearMap, as_element
from ..maps.matrix_programs import diagonal, matrix, normal
from ..maps.sources import Source, held, times
from ..programs.program import Program, outputs
from ..sets import Seg
from ..spaces import Space, container, real_space
from .functions import numbers_of
from .traced import FLOAT, TRACED, Traced, convert, holds_traced, refuse, slot_of, tidy, trace_of
from .trees import flatten, tree_space, unflatten


class TracedMap(LinearMap):
    """A linear map V ⊸ W at a traced point: all that a LinearMap can but what needs its numbers. Returned, it stands for its matrix."""

    traced = True

    def __init__(
        self,
        domain: Space,
        codomain: Space,
        source: Source | Callable[[], Source],
        dtype: Any = FLOAT,
        facts: Iterable[str] = (),
        simplified: bool = False,
    ) -> None:
        super().__init__(domain, codomain, Program, dtype, (lambda: source) if isinstance(source, Source) else source, facts, simplified)

    @property
    def program(self) -> Program:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Not while tracing."""
        raise no_numbers("this")

    @cached_property
    def source(self) -> Source:
        """The program of point and vector, and the point."""
        assert self._source is not None
        return self._source()

    @property
    def steps(self) -> Source:
        """The program of point and vector, and the point."""
        return self.source

    def __call__(self, *vectors: Any) -> Any:
        """L(v)."""
        given = opened(self.domain, as_element(vectors, self.domain))
        dtype = _joint(self.dtype, given)
        return present(self.codomain, written(self.source.program, self.source.point, given, dtype))

    def times(self, k: Any) -> TracedMap:
        """k·L, for a traced number k."""
        (factor,) = fixed([tidy(k)])
        if np.shape(factor):
            raise SpaceError(f"a linear map is scaled by a number; got an array of shape {np.shape(factor)}")
        facts = self.facts - {"definite"}
        return TracedMap(self.domain, self.codomain, times(self.source, factor), _joint(self.dtype, [factor]), facts)

    # -- coordinates ---------------------------------------------------------------------------------------

    def matvec(self, x: Any) -> Any:
        """L on flat coordinates."""
        return flat(self(present(self.domain, parted(self.domain, tidy(x)))))

    def matmat(self, X: Any) -> Any:
        """L on each column of a matrix of flat coordinates, all at once."""
        given = tidy(X)
        if np.ndim(given) != 2 or np.shape(given)[0] != self.shape[1]:
            raise SpaceError(f"matmat of a map of shape {self.shape} needs a matrix with {self.shape[1]} rows; got shape {np.shape(given)}")
        n = np.shape(given)[1]
        every = self ** Seg(n)
        return flat(every(present(every.domain, parted(self.domain, given.T, (n,)))), (n,)).T

    def to_dense(self) -> Any:
        """The matrix, as a traced array."""
        if not self.domain.dim or not self.codomain.dim:
            return np.zeros(self.shape)
        return self._computed(matrix(self.source))  # from its structure, where it has some

    def diagonal(self) -> Any:
        """The diagonal of the matrix, flat."""
        if self.shape[0] != self.shape[1]:
            raise SpaceError(f"the diagonal of a map needs as many rows as columns; this one has shape {self.shape}")
        if not self.domain.dim:
            return np.zeros(0)
        program = diagonal(self.source)
        return np.diagonal(self.to_dense()) if program is None else self._computed(program)

    def column_norms(self) -> Any:
        """The Euclidean norm of each column of the matrix."""
        gram = self.T @ self
        squares = diagonal(gram.source) if self.domain.dim else None
        return np.sqrt(np.sum(np.square(self.to_dense()), 0) if squares is None else gram.diagonal())

    def _computed(self, program: Program) -> Any:
        """A program of the point, computed."""
        return written(program, self.source.point, [], self.dtype)[0]

    # -- structure -----------------------------------------------------------------------------------------

    def simplify(self) -> LinearMap:
        """The same map in normal form."""
        if self.simplified:
            return self
        short = normal(self.source)
        source = self.source if short is None else Source(short, self.source.point, self.source.names)
        found = TracedMap(self.domain, self.codomain, source, self.dtype, self.facts, simplified=True)
        found.__dict__["values"] = self.values
        return found

    def solve(self, b: Any, method: str = "auto", *, verbose: bool = False, **options: Any) -> Any:
        """L⁻¹(b): by its diagonal where it has no more, by its dense matrix otherwise; in the least-squares sense where it is not square."""
        if verbose:
            print(f"{self.shape[0]:,} × {self.shape[1]:,}, {self.structure}: in a trace")
        columns = type(b) in (Traced, np.ndarray) and b.ndim == 2 and [leaf.shape for leaf in self.codomain.leaves] == [b.shape[:1]]
        right = b if columns else flat(opened(self.codomain, b))
        if self.shape[0] != self.shape[1]:
            x = np.linalg.pinv(self.to_dense()) @ right
        elif self.structure.kind in ("diagonal", "identity"):
            x = (right.T / self.diagonal()).T
        else:
            x = np.linalg.solve(self.to_dense(), right)
        return x if columns else present(self.domain, parted(self.domain, x))

    @cached_property
    def held(self) -> set[int]:
        """The identities of the arrays this map keeps."""
        return self.source.program.held

    def __len__(self) -> int:
        return len(self.source.program)

    def __getstate__(self) -> Any:
        raise no_numbers("pickling")


def no_numbers(what: str) -> Exception:
    """The error of what needs the numbers of a map at a traced point."""
    return refuse(
        f"{what} needs the numbers of a linear map, which are not known while a function is traced. What works here: L(v), L.T, L.H, L @ M, L + M, "
        "k * L, L.gram(), L.diagonal(), L.trace(), L.solve(b), L.to_dense(), L.column_norms(), L.submatrix(rows, columns), L.structure, L.simplify()"
    )


def _refusing(name: str) -> Any:
    def method(self: TracedMap, *args: Any, **named: Any) -> Any:
        raise no_numbers(f"L.{name}()")

    method.__name__, method.__doc__ = name, "Not while tracing: it needs numbers."
    return method


for _name in ("apply", "to_sparse", "sparsity", "blocks", "solver", "plan", "cost", "spy", "as_operator", "to_jax", "as_lineax"):
    setattr(TracedMap, _name, _refusing(_name))


def traced_map(L: LinearMap) -> TracedMap:
    """A linear map with numbers for coefficients, as one of a trace."""
    return L if isinstance(L, TracedMap) else TracedMap(L.domain, L.codomain, L.steps, L.dtype, L.facts)


def solved(L: LinearMap, b: Any, method: str, options: dict[str, Any]) -> Any:
    """L⁻¹(b) for a map with numbers and a traced b: a linear step of its own, whose transpose solves with the transpose."""
    from ..api import evaluate
    from ..terms.declared import declare_linear

    spaces = L.codomain.unweighted, L.domain.unweighted
    if type(b) is Traced and b.ndim == 2 and [leaf.shape for leaf in L.codomain.leaves] == [b.shape[:1]]:  # several right-hand sides
        spaces = real_space(b.shape), real_space((L.shape[1], b.shape[1]))
    step = declare_linear(lambda b: L.solve(b, method, **options), lambda x: L.T.solve(x, method, **options), *spaces, "solve", False)
    return evaluate(step, b)


# -- leaves -----------------------------------------------------------------------------------------------


def any_traced(value: Any) -> bool:
    """Whether a leaf of a value is traced."""
    stack = [value]
    while stack:
        x = stack.pop()
        kind = type(x)
        if kind is float:
            continue
        if kind is np.ndarray:
            if x.dtype.kind == "O" and holds_traced(x):
                return True
        elif kind in TRACED:
            return True
        elif kind is tuple or kind is list:
            stack.extend(x)
        elif kind is dict:
            stack.extend(x.values())
        elif x is not None and (parts := container(x)) is not None:
            stack.extend(parts[1])
    return False


def fixed(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The leaves of a point as they are now: neither in-place operators nor writing to arrays changes them any more."""
    return tuple([_handle(x) if type(x) is Traced else held(numbers_of([x]))[0] for x in leaves])


def _handle(x: Traced) -> Traced:
    """A traced array for itself, one for each slot: points that share an array share its handle."""
    key = (x.slot, x.dtype, x.weak)
    if key not in x.home.handles:
        x.home.handles[key] = x.copy()
    return x.home.handles[key]


def opened(space: Space, value: Any) -> list[Any]:
    """The leaves of a value that may be traced, as those of an element of a space."""
    return space.open(value, _leaf)


def _leaf(value: Any, shape: tuple[int, ...], space: Space, path: tuple[Any, ...]) -> Any:
    given = tidy(value)
    return given if np.shape(given) == shape else check_leaf(given, shape, space, path)


def written(program: Program, point: Sequence[Any], vector: Sequence[Any], dtype: Any) -> list[Any]:
    """A program of point and vector, written into the innermost trace among their leaves."""
    home = trace_of(*point, *vector)
    slots = [slot_of(home, x, x.dtype if hasattr(x, "dtype") else FLOAT) for x in point]
    slots += [slot_of(home, x, dtype) for x in vector]
    return [Traced(home, s, dtype) for s in outputs(program, home, slots)]


def _joint(dtype: Any, leaves: Sequence[Any]) -> Any:
    """The type of a result: float32 where the map and what it is given are."""
    if dtype == FLOAT:
        return FLOAT
    kinds = [x.dtype for x in leaves if hasattr(x, "dtype") and x.dtype.kind == "f" and not getattr(x, "weak", False)]
    found = np.result_type(dtype, *kinds)
    return FLOAT if found == FLOAT else found


def flat(value: Any, lead: tuple[int, ...] = ()) -> Any:
    """The coordinates of a value on one axis, after leading ones."""
    rows = [np.reshape(x, (*lead, int(np.prod(np.shape(x)[len(lead) :])))) for x in flatten(value)[0]]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, -1)


def parted(space: Space, x: Any, lead: tuple[int, ...] = ()) -> list[Any]:
    """Coordinates on the last axis as the leaves of a space."""
    if np.shape(x) != (*lead, space.dim):
        raise SpaceError(f"coordinates of {space} have shape {(space.dim,)}; got {np.shape(x)[len(lead) :]}")
    ends = np.cumsum([0, *[leaf.size for leaf in space.leaves]])
    return [np.reshape(x[..., a:b], (*lead, *leaf.shape)) for a, b, leaf in zip(ends[:-1], ends[1:], space.leaves, strict=True)]


def present(space: Space, leaves: list[Any]) -> Any:
    """Traced leaves in the containers of a space."""
    return build(space.code, leaves, lambda branch, parts: branch.contain(parts) if branch.tensor is None else parts[0])


def of_types(value: Any, avals: Sequence[Any]) -> Any:
    """A value with traced arrays in the types of arguments or results; what belongs to Python's numbers takes the type of what it meets."""
    leaves, tree = flatten(value)
    found = [x if a.weak or a.dtype.kind != "f" else convert(x, a.dtype) for x, a in zip(leaves, avals, strict=True)]
    return unflatten(tree, found)


def traced_space(value: Any) -> Space:
    """The space of a value that holds traced arrays."""
    leaves, tree = flatten(value)
    return tree_space(tree, [real_space(np.shape(tidy(x))) for x in leaves])
