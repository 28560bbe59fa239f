"""What the leaves of a map's point can be: numbers, traced arrays, JAX arrays. A map at numbers has a linear program of
numbers; at other leaves it is computed by `Leaves`, as a program of point and vector.

Traced arrays may belong to several traces. The innermost one among the leaves of point and vector computes; arrays of
traces around it are captured, others are refused (`slot_of`).
"""

# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SpaceError
from ..programs.program import Program, outputs
from ..relations.index_sets import Seg
from ..runtime import later
from ..spaces.layout import build, check_leaf
from ..spaces.space import Space, container, real_space
from ..tracing import traced
from ..tracing.argument_trees import flatten, numbers_of, tree_space, unflatten
from ..tracing.traced import FLOAT, TRACED, WRITTEN, Traced, slot_of, tidy, typed
from .instances import Instance, held
from .instances import times as times_number

if TYPE_CHECKING:
    from .linear_map import LinearMap


class Leaves:
    """Leaves of a point that are no numbers, and what a map at such a point can do. A subclass says what such arrays
    are: `arrays` (NumPy or its like), `owns`, `opened`, `computed`, `taken`, `kept` and `refusal`."""

    arrays: Any = np

    # Whether a value holds such an array; the leaves of an element of a space; the outputs of a program of point and
    # vector; an array of coordinates; a leaf of a point, which no writing changes; the error of what needs numbers.
    def owns(self, value: Any) -> bool: ...
    def opened(self, space: Space, value: Any) -> list[Any]: ...
    def computed(self, program: Program, point: Sequence[Any], vector: Sequence[Any], dtype: Any) -> list[Any]: ...
    def taken(self, x: Any) -> Any: ...
    def kept(self, x: Any) -> Any: ...
    def refusal(self, what: str) -> Exception: ...

    def presented(self, space: Space, leaves: list[Any]) -> Any:
        """Leaves in the containers of a space."""
        return contained(space, leaves)

    def applied(self, L: LinearMap, value: Any) -> Any:
        """L(v)."""
        given = self.opened(L.domain, value)
        dtype = _joint(L.dtype, given)
        steps = L.steps
        return self.presented(L.codomain, self.computed(steps.program, steps.point, given, dtype))

    def scaled(self, L: LinearMap, k: Any) -> LinearMap:
        """k·L, for a number k that is one more leaf of the point."""
        factor = self.kept(k)
        if np.shape(factor):
            raise SpaceError(f"a linear map is scaled by a number; got an array of shape {np.shape(factor)}")
        instance, dtype = times_number(L.steps, factor), _joint(L.dtype, [factor])
        return L.like(instance, dtype=dtype, facts=L.facts - {"definite"}, leaves=self)

    def matvec(self, L: LinearMap, x: Any) -> Any:
        """L on flat coordinates."""
        return self.flat(L(contained(L.domain, self.parted(L.domain, self.taken(x)))))

    def matmat(self, L: LinearMap, X: Any) -> Any:
        """L on each column of a matrix of flat coordinates, all at once."""
        given = self.taken(X)
        shape = np.shape(given)
        if len(shape) != 2 or shape[0] != L.shape[1]:
            due = f"a matrix with {L.shape[1]} rows"
            raise SpaceError(f"matmat of a map of shape {L.shape} needs {due}; got shape {shape}")
        n = shape[1]
        every = L ** Seg(n)
        return self.flat(every(contained(every.domain, self.parted(L.domain, given.T, (n,)))), (n,)).T

    def to_dense(self, L: LinearMap) -> Any:
        """The matrix, from its structure where it has some."""
        if not L.domain.dim or not L.codomain.dim:
            return np.zeros(L.shape)
        from .matrices.matrix_programs import matrix

        return self.computed(matrix(L.instance), L.instance.point, [], L.dtype)[0]

    def diagonal(self, L: LinearMap) -> Any:
        """The diagonal of the matrix, flat."""
        if not L.domain.dim:
            return np.zeros(0)
        from .matrices.matrix_programs import diagonal

        program = diagonal(L.instance)
        if program is None:
            return self.arrays.diagonal(self.to_dense(L))
        return self.computed(program, L.instance.point, [], L.dtype)[0]

    def column_norms(self, L: LinearMap) -> Any:
        """The Euclidean norm of each column of the matrix."""
        from .matrices.matrix_programs import diagonal

        gram, xp = L.T @ L, self.arrays
        squares = diagonal(gram.instance) if L.domain.dim else None
        return xp.sqrt(xp.sum(xp.square(L.to_dense()), 0) if squares is None else gram.diagonal())

    def simplified(self, L: LinearMap) -> Instance:
        """The program of the normal form, where there is one."""
        from .matrices.matrix_programs import normal

        short = normal(L.instance)
        return L.instance if short is None else Instance(short, L.instance.point, L.instance.names)

    def solved(self, L: LinearMap, b: Any, method: str, options: dict[str, Any]) -> Any:
        """L⁻¹(b), or by least squares if not square."""
        columns = several_sides(L, b)
        right: Any = b if columns else self.flat(self.opened(L.codomain, b))
        x = self.inverted(L, right, method, options)
        return x if columns else self.presented(L.domain, self.parted(L.domain, x))

    def inverted(self, L: LinearMap, right: Any, method: str, options: dict[str, Any]) -> Any:
        """L⁻¹ of flat coordinates: by its diagonal where it has no more, by its dense matrix otherwise."""
        if L.shape[0] != L.shape[1]:
            return self.arrays.linalg.pinv(L.to_dense()) @ right
        if L.structure.kind in ("diagonal", "identity"):
            return (right.T / L.diagonal()).T
        return self.arrays.linalg.solve(L.to_dense(), right)

    def pseudoinverse(self, L: LinearMap) -> Any:
        """x ↦ L⁺x on coordinates, as code."""
        matrix = self.arrays.linalg.pinv(L.to_dense())
        return lambda x: matrix @ x

    def some_pairs(self, L: LinearMap, what: str, k: int, which: str) -> tuple[Any, Any]:
        """k eigenvalues or singular values, and vectors as columns; of svd left above right, both divided by √2."""
        raise self.refusal(f"L.{what}(k)")

    def flat(self, value: Any, lead: tuple[int, ...] = ()) -> Any:
        """The coordinates of a value on one axis, after leading ones."""
        xp = self.arrays
        rows = [xp.reshape(x, (*lead, int(np.prod(np.shape(x)[len(lead) :])))) for x in flatten(value)[0]]
        return rows[0] if len(rows) == 1 else xp.concatenate(rows, -1)

    def parted(self, space: Space, x: Any, lead: tuple[int, ...] = ()) -> list[Any]:
        """Coordinates on the last axis as the leaves of a space."""
        if np.shape(x) != (*lead, space.dim):
            raise SpaceError(f"coordinates of {space} have shape {(space.dim,)}; got {np.shape(x)[len(lead) :]}")
        ends = np.cumsum([0, *[leaf.size for leaf in space.leaves]])
        rows = zip(ends[:-1], ends[1:], space.leaves, strict=True)
        return [self.arrays.reshape(x[..., a:b], (*lead, *leaf.shape)) for a, b, leaf in rows]


class TracedLeaves(Leaves):
    """Arrays of traces."""

    def owns(self, value: Any) -> bool:
        return any_traced(value)

    def opened(self, space: Space, value: Any) -> list[Any]:
        return opened(space, value)

    def presented(self, space: Space, leaves: list[Any]) -> Any:
        return present(space, leaves)

    def computed(self, program: Program, point: Sequence[Any], vector: Sequence[Any], dtype: Any) -> list[Any]:
        return written(program, point, vector, dtype)

    def taken(self, x: Any) -> Any:
        return tidy(x)

    def kept(self, x: Any) -> Any:
        return fixed((tidy(x),))[0]

    def inverted(self, L: LinearMap, right: Any, method: str, options: dict[str, Any]) -> Any:
        from .solvers.traced_solves import solve, structured

        plain = L.shape[0] == L.shape[1] and L.structure.kind in ("diagonal", "identity")
        if method == "auto" and (plain or not structured(L)):
            return super().inverted(L, right, method, options)
        x = solve(L, right if np.ndim(right) == 2 else np.reshape(right, (L.shape[0], 1)), method, options)
        return x if np.ndim(right) == 2 else x[:, 0]

    def pseudoinverse(self, L: LinearMap) -> Any:
        from .solvers.traced_solves import PSEUDO, structured

        if not structured(L):
            return super().pseudoinverse(L)
        return lambda x: self.inverted(L, x, PSEUDO, {})

    def some_pairs(self, L: LinearMap, what: str, k: int, which: str) -> tuple[Any, Any]:
        from .solvers.traced_pairs import pairs

        return pairs(L, what, k, which)

    def refusal(self, what: str) -> Exception:
        return traced.refuse(
            f"{what} needs the numbers of a linear map, which are not known while a function is traced. What works "
            "here: L(v), L.T, L.H, L @ M, L + M, k * L, L.gram(), L.diagonal(), L.trace(), L.solve(b), L.to_dense(), "
            "L.column_norms(), L.submatrix(rows, columns), L.structure, L.simplify()"
        )


IN_TRACES = TracedLeaves()


def met(kinds: Sequence[Leaves | None]) -> Leaves | None:
    """The leaves of a map made of others."""
    found = [k for k in kinds if k is not None]
    if len({type(k) for k in found}) > 1:
        where = "one of these linear maps is in JAX, the other inside a function that riesz traces"
        raise SpaceError(f"{where}: take both in one of them")
    return found[0] if found else None


def solved(L: LinearMap, b: Any, method: str, options: dict[str, Any]) -> Any:
    """L⁻¹(b) for a map with numbers and a traced b: a linear step of its own, whose transpose solves with the
    transpose."""
    from ..terms.declared import declare_linear

    spaces = L.codomain.unweighted, L.domain.unweighted
    if several_sides(L, b):
        spaces = real_space(b.shape), real_space((L.shape[1], b.shape[1]))
    solve, turned = [partial(M.solve, method=method, **options) for M in (L, L.T)]
    return later.evaluate(declare_linear(solve, turned, *spaces, "solve", False), b)


def several_sides(L: LinearMap, b: Any) -> bool:
    """Whether b holds several right-hand sides of a map into ℝⁿ, as columns."""
    return hasattr(b, "shape") and len(b.shape) == 2 and [leaf.shape for leaf in L.codomain.leaves] == [b.shape[:1]]


# -- leaves -----------------------------------------------------------------------------------------------


def any_traced(value: Any) -> bool:
    """Whether a leaf of a value is traced."""
    stack: list[Any] = [value]
    while stack:
        x = stack.pop()
        kind: Any = type(x)
        if kind is float:
            continue
        if kind is np.ndarray:
            if x.dtype.kind == "O" and traced.holds_traced(x):
                return True
        elif kind in TRACED or (kind in WRITTEN and x.memory is not None):
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
    found: list[Any] = []
    for x in leaves:
        if type(x) is Traced:  # one handle for each slot: points that share an array share it
            handles, key = x.home.handles, (x.slot, x.dtype, x.weak)
            if key not in handles:
                handles[key] = x.as_it_is()
            found.append(handles[key])
        else:
            found.append(held(numbers_of([x]))[0])
    return tuple(found)


def opened(space: Space, value: Any) -> list[Any]:
    """The leaves of a value that may be traced, as those of an element of a space."""

    def leaf(value: Any, shape: tuple[int, ...], space: Space, path: tuple[Any, ...]) -> Any:
        given = tidy(value)
        return given if np.shape(given) == shape else check_leaf(given, shape, space, path)

    return space.open(value, leaf)


def written(program: Program, point: Sequence[Any], vector: Sequence[Any], dtype: Any) -> list[Any]:
    """A program of point and vector, written into the innermost trace among their leaves."""
    home = traced.trace_of(*point, *vector)
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


# Note [Numbers]: one number of float64 that riesz gives back is a Python float, whatever it was computed from. So it is
# in a trace: there it takes the type of what it meets, as a Python float would.
def present(space: Space, leaves: list[Any]) -> Any:
    """Traced leaves in the containers of a space. See Note [Numbers]."""
    return contained(space, [typed(x, True) for x in leaves])


def contained(space: Space, leaves: list[Any]) -> Any:
    """Leaves in the containers of a space."""
    return build(space.code, leaves, lambda branch, parts: branch.contain(parts) if branch.tensor is None else parts[0])


def of_types(value: Any, avals: Sequence[Any]) -> Any:
    """A value with traced arrays in the types of arguments or results. See Note [Numbers]."""
    leaves, tree = flatten(value)
    pairs = zip(leaves, avals, strict=True)
    found = [x if a.weak or a.dtype.kind != "f" else typed(traced.convert(x, a.dtype), True) for x, a in pairs]
    return unflatten(tree, found)


def traced_space(value: Any) -> Space:
    """The space of a value that holds traced arrays."""
    leaves, tree = flatten(value)
    return tree_space(tree, [real_space(np.shape(tidy(x))) for x in leaves])
