"""`rz.sparse_jacobian` and `rz.sparse_hessian`: the positions of a sparse matrix once, its numbers by one function.

What solvers ask for at every iteration (Ipopt's callbacks, Newton steps, factors of a graph) is a row of numbers in an
order agreed upon beforehand. The order is that of the pattern, row by row; the numbers are written by generated code,
machine code where it can be had. No linear map and no sparse matrix is made at a point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import SpaceError, TraceError
from ..functions.calling import differentiable
from ..functions.jacobians import derivative_at, hessian_at
from ..functions.point_protocol import AnyPoint
from ..functions.points import FunctionPoint, point
from ..functions.traces.comparing import asks_jax
from ..functions.traces.given import Given
from ..maps.linear_map import LinearMap
from ..maps.matrices.matrix_numbers import lines, matrix_program
from ..ops.number_domains import NUMBERS, OTHER
from ..programs.passes.fusing import runnable
from ..programs.program import Program, outputs
from ..relations.base import seal
from ..runtime import later
from ..runtime.displayed import Displayed
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import dense
from ..tracing.argument_trees import numbers_of
from .common import exact
from .point_functions import coded
from .small_functions import leaves_of


def sparse_jacobian(f: Any, *args: Any, argnums: Any = None) -> SparseDerivative:
    """The Jacobian of f as numbers: `S.pattern`, the positions that hold at every point; `S.values(x)`, the numbers
    there, by one compiled function; `S(x)`, the SciPy matrix.

    `args` are example arguments: their kinds and shapes count. Without them those of the first call do. The derivative
    is in the first argument, or in those of `argnums`; the others are parameters, which `S.values` takes too. Trees are
    flattened as in `to_dense`.

    f may be a function of JAX. At JAX arrays the numbers are JAX arrays and the matrix is a BCOO of
    `jax.experimental.sparse`; both work under `jax.jit`, `vmap` and `grad`.

    >>> import numpy as np, riesz as rz
    >>> S = rz.sparse_jacobian(lambda x: x[1:] * x[:-1], np.ones(3))
    >>> S.pattern.rows, S.pattern.columns
    (array([0, 0, 1, 1], dtype=int32), array([0, 1, 1, 2], dtype=int32))
    >>> S.values(np.array([1.0, 2.0, 3.0]))
    array([2., 1., 3., 2.])
    """
    return SparseDerivative(f, args, argnums, False, False)


def sparse_hessian(f: Any, *args: Any, argnums: Any = None, lower: bool = False) -> SparseDerivative:
    """The Hessian of f as numbers, as `sparse_jacobian` gives them; with `lower`, its lower triangle.

    Of a Lagrangian, multipliers and parameters are further arguments.

    >>> import numpy as np, riesz as rz
    >>> S = rz.sparse_hessian(lambda x, k: k * x[0] * x[1] ** 2, np.ones(2), 1.0, lower=True)
    >>> S.pattern.rows, S.pattern.columns, S.values(np.array([3.0, 5.0]), 10.0)
    (array([1, 1], dtype=int32), array([0, 1], dtype=int32), array([100.,  60.]))
    """
    return SparseDerivative(f, args, argnums, True, lower)


@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Positions of a matrix, row by row. `rows, columns = S.pattern` takes them apart."""

    shape: tuple[int, int]
    indptr: Any
    columns: Any

    @property
    def rows(self) -> Any:
        """The row of each position."""
        return lines(self.indptr).astype(self.columns.dtype)

    @property
    def nnz(self) -> int:
        """How many positions there are."""
        return len(self.columns)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.rows, self.columns))

    def matrix(self, values: Any) -> Any:
        """The SciPy matrix (CSR) with these numbers.

        >>> import numpy as np, riesz as rz
        >>> S = rz.sparse_jacobian(lambda x: x[1:] * x[:-1], np.ones(3))
        >>> S.pattern.matrix(np.arange(4.0)).toarray()
        array([[0., 1., 0.],
               [0., 2., 3.]])
        """
        import scipy.sparse as scipy_sparse  # pyright: ignore[reportMissingTypeStubs]

        parts = values, self.columns.copy(), self.indptr.copy()
        return cast(Any, scipy_sparse).csr_array(parts, shape=self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.matrix(np.ones(self.nnz, bool)).toarray().astype(bool if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"{self.nnz:,} positions of {self.shape[0]:,} × {self.shape[1]:,}"


def _of_jax(args: tuple[Any, ...]) -> bool:
    """Whether arrays of JAX's are among the arguments."""
    jax = sys.modules.get("jax")
    if jax is None or all([type(x) is np.ndarray or type(x) is float for x in args]):
        return False
    return any([isinstance(x, jax.Array) for x in jax.tree_util.tree_leaves(args)])


def _like(x: Any) -> Any:
    """An example for an argument that may be an array of JAX's, without its numbers where JAX is tracing. Floats are
    examples in 64 bits: the numbers in JAX have the type of its arrays."""
    if not _of_jax((x,)):
        return x
    dtype = np.dtype(float) if x.dtype.kind == "f" else x.dtype
    return np.ones(x.shape, dtype) if isinstance(x, sys.modules["jax"].core.Tracer) else np.asarray(x, dtype)


class SparseDerivative(Displayed):
    """What `sparse_jacobian` and `sparse_hessian` give: `pattern`, `values(x)`, and, called, the matrix.

    Arrays that f closes over are taken as they are now."""

    def __init__(self, f: Any, args: tuple[Any, ...], argnums: Any, second: bool, lower: bool) -> None:
        self.name = f"{'sparse_hessian' if second else 'sparse_jacobian'}({getattr(f, '__name__', f)})"
        self._make: Callable[[AnyPoint], LinearMap] = hessian_at if second else derivative_at
        self._function, self._argnums, self._lower = f, argnums, lower
        self._pattern: SparsePattern | None = None
        self._code: Any = None
        self._opened: Any = None
        if args:
            self._made_at(args)

    def _made_at(self, args: tuple[Any, ...]) -> None:
        """The positions and the code, for arguments like these."""
        self._args = len(args)
        try:
            at = self._point(self._function, args)
        except (TypeError, TraceError) as problem:
            if not asks_jax(problem):
                raise
            at = self._point(later.from_jax(self._function), args)
        if at.home is not None:
            raise TraceError(f"{self.name} inside a function that is being traced: make it before, or use rz.jacobian")
        if isinstance(at, FunctionPoint):
            self._given, self._record = at.given, at.record
            if not (at.given.kwargs or at.record.captured or at.reordered or at.record.guards is not None):
                self._opened = leaves_of(at.function, at.given, at.record)
        at.settle()
        self._at = at
        L = self._make(at)
        self._keep: Any = None
        self._program: Program | None = None
        source = L.instance
        if source.point or not at.leaves:
            written = matrix_program(L, self._lower)
            if written is not None:
                self._program = written.program
                self._code = coded(written.program, source.point, True)
                self._values = self._written
                self._pattern = SparsePattern(L.shape, written.indptr, written.indices)
                return
        self._pattern = self._by_matrix(L, bool(source.point))

    def _point(self, f: Any, args: tuple[Any, ...]) -> AnyPoint:
        argnums = 0 if self._argnums is None else self._argnums
        return point(differentiable(f), args, {}, argnums, None, False, self.name)

    @property
    def pattern(self) -> SparsePattern:
        """The positions, which hold at every point."""
        if self._pattern is None:
            name, _, f = self.name.partition("(")
            write = f"give examples, rz.{name}({f[:-1]}, x), or call it once"
            raise SpaceError(f"{self.name} has no positions yet: {write}")
        return self._pattern

    def _by_matrix(self, L: LinearMap, fixed: bool) -> SparsePattern:
        """The pattern of a map whose numbers have no program: those of its matrix, at each point."""
        self._values = self._stored if fixed else self._dense
        if fixed:
            matrix = L.stored()
            indptr, indices = matrix.indptr, matrix.indices
        else:  # positions are computed from the point: at another there may be any
            if L.shape[0] * L.shape[1] > 1 << 24:
                where = "has positions that are computed from the point (sorting, the largest of some numbers)"
                raise SpaceError(f"{self.name} {where}: its pattern is all of {L.shape}; use rz.jacobian(f)(x)")
            indptr, indices = np.arange(L.shape[0] + 1) * L.shape[1], np.tile(np.arange(L.shape[1]), L.shape[0])
        if self._lower:
            self._keep = np.flatnonzero(lines(indptr) >= indices)
            ends = np.append(0, np.cumsum(lines(indptr) >= indices))
            indptr, indices = ends[indptr], indices[self._keep]
        return SparsePattern(L.shape, seal(np.array(indptr)), seal(np.array(indices)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.pattern.shape

    @property
    def backend(self) -> str:
        """What computes the numbers."""
        return "steps" if self._code is None else self._code.backend

    @property
    def source(self) -> str:
        """The generated code."""
        return "" if self._code is None else self._code.source

    def values(self, /, *args: Any) -> Any:
        """The numbers of the matrix at a point, in the order of the pattern.

        >>> import numpy as np, riesz as rz
        >>> S = rz.sparse_jacobian(lambda x: x[1:] * x[:-1], np.ones(3))
        >>> S.values(np.array([1.0, 2.0, 3.0]))
        array([2., 1., 3., 2.])
        """
        if _of_jax(args):
            return self._in_jax(args)
        if self._pattern is None:
            self._made_at(args)
        leaves: Any = OTHER if self._opened is None else self._opened(args)
        return self._values(self._leaves(args) if leaves is OTHER else leaves)

    def __call__(self, /, *args: Any) -> Any:
        """The matrix at a point, as SciPy's CSR; as JAX's BCOO at JAX arrays."""
        values = self.values(*args)
        if isinstance(values, np.ndarray):
            return self.pattern.matrix(values)
        from jax.experimental.sparse import BCOO  # pyright: ignore

        places = np.stack(list(self.pattern), 1)
        made: Any = BCOO
        return made((values, places), shape=self.shape, indices_sorted=True, unique_indices=True)

    def _in_jax(self, args: tuple[Any, ...]) -> Any:
        """The numbers at JAX arrays, also where JAX is tracing."""
        import jax  # pyright: ignore

        if self._pattern is None:
            self._made_at(cast(Any, jax).tree_util.tree_map(_like, args))
        if self._program is None or not isinstance(self._at, FunctionPoint):
            raise SpaceError(
                f"{self.name}: its numbers have no program, so no form in JAX; give NumPy arrays, or no examples"
            )
        from .jax.jax_maps import JaxLeaves

        given = self._fitting(self._at.function.given(args, {}))
        leaves = [given.arrays[k] for k in self._at.order]
        dtype = np.result_type(*[x.dtype for x in leaves if isinstance(x, jax.Array) and x.dtype.kind == "f"])
        return JaxLeaves(self.name).computed(self._program, leaves, (), dtype)[0]

    def _leaves(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The numbers of arguments like the examples."""
        if not isinstance(self._at, FunctionPoint):
            space = None if self._argnums is not None else self._at.domain
            return tuple(point(self._at.term, args, {}, self._argnums or 0, space, False, self.name).leaves)  # type: ignore
        given = self._fitting(self._at.function.given(args, {}))
        leaves = tuple([exact(x, a) for x, a in zip(given.arrays, self._given.avals, strict=True)])
        return tuple([leaves[k] for k in self._at.order])

    def _fitting(self, given: Given) -> Given:
        """Arguments, where they are like the examples."""
        mine: Given = self._given
        kinds = [(a.shape, a.dtype.kind) for a in given.avals], [(a.shape, a.dtype.kind) for a in mine.avals]
        floats = all([b == "f" or a == b for (_, a), (_, b) in zip(*kinds, strict=False)])
        if given.trees != mine.trees or not floats or [s for s, _ in kinds[0]] != [s for s, _ in kinds[1]]:
            shown = [", ".join([f"{a.dtype}{list(a.shape)}" for a in g.avals]) for g in (mine, given)]
            raise SpaceError(
                f"{self.name} is for arguments like those it was made with ({shown[0]}); got {shown[1]}. "
                f"Make another one for these"
            )
        if not self._record.holds(given.arrays):
            raise SpaceError(
                f"{self.name}: a condition on values (if x > 0: …) comes out differently here than at the point it was "
                f"made at, so the pattern is another one: write np.where or rz.cond, or make another one here"
            )
        return given

    def _written(self, leaves: tuple[Any, ...]) -> Any:
        found = OTHER if self._code is None else self._code.run(leaves)
        if found is OTHER:
            with quietly():
                found = np.array(
                    dense(outputs(runnable(cast(Program, self._program)), NUMBERS, numbers_of(leaves))[0]), float
                )
        return found

    def _map(self, leaves: tuple[Any, ...]) -> LinearMap:
        at = copy(self._at)
        at.leaves = list(leaves)
        at.settle()
        return self._make(at)

    def _stored(self, leaves: tuple[Any, ...]) -> Any:
        found = self._map(leaves).stored().data
        return found if self._keep is None else found[self._keep]

    def _dense(self, leaves: tuple[Any, ...]) -> Any:
        found = self._map(leaves).to_dense().reshape(-1)
        return found if self._keep is None else found[self._keep]

    def __repr__(self) -> str:
        have = "no positions yet" if self._pattern is None else f"{self.pattern!r}, {self.backend}"
        return f"rz.{self.name}: {have}"

    def displayed(self) -> Any:
        """What a notebook shows: the size, how the numbers are computed, and the code."""
        from ..show.display.display_objects import FactTable

        rows = [("positions", repr(self._pattern or "none yet")), ("numbers by", self.backend)]
        return FactTable("sparse derivative", repr(self), rows, title=f"rz.{self.name}", code=[("code", self.source)])
