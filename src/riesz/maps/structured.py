"""What a linear map tells about itself and gives away because of its structure: words, cost, matrices, diagonals,
blocks, solutions, pictures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast, overload

import numpy as np

from ..errors import SpaceError
from ..ops.number_domains import OTHER
from ..runtime import displayed, later
from ..runtime.displayed import Displayed
from ..spaces.space import Space
from .leaves import Leaves, any_traced, several_sides, solved

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import coo_array, csc_array, csr_array  # pyright: ignore[reportMissingTypeStubs]
    from scipy.sparse.linalg import LinearOperator  # pyright: ignore[reportMissingTypeStubs]

    from ..programs.cost import Cost
    from ..show.diagrams.diagram import Diagram
    from ..show.face import View
    from .instances import Instance
    from .linear_map import LinearMap
    from .matrices.materialise import Blocks
    from .normal_form.network_values import Values
    from .normal_form.structure import Structure
    from .planning import MapPlan
    from .solvers.factorised import Solver


class Sparsity(NamedTuple):
    """Stored positions, those among them that are 0 at this point, all positions; `derived`: whether the positions are
    those of every point."""

    positions: int
    surplus: int
    size: int
    derived: bool

    def __repr__(self) -> str:
        known = "" if self.derived else "; some are computed from the point: at another there may be others"
        return f"{self.positions:,} positions of {self.size:,}, {self.surplus:,} of them 0 here{known}"

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


Method = TypeVar("Method", bound=Callable[..., Any])


def of_numbers(method: Method) -> Method:
    """A method that needs the numbers of a map: where the leaves of its point are none, it says so."""

    @wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        if self.leaves is not None:
            raise self._numbers_for(f"L.{method.__name__}()")
        return method(self, *args, **named)

    return cast(Any, checked)


class Shown(Displayed):
    """What is printed as text, LaTeX and MathML; true however many steps it has."""

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return later.text(self)

    def latex(self) -> str:
        """The same in LaTeX."""
        return later.latex(self)

    def diagram(self, columns: int | None = None, form: str = "auto", limit: int = 120) -> Diagram:
        """A string diagram: wires are index sets, boxes arrays, dots equal indices; the adjoint is the mirror image.

        `columns`: with the order of contraction that `L.plan(columns)` chose; `form`: of a map, its "normal" form or
        its "steps"; `limit`: draw at most so many steps.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(np.sin)(np.zeros(3)).diagram().svg()[:4]
        '<svg'
        """
        return later.diagram(self, columns, form, limit)

    def show(self, notation: str = "matrix") -> View:
        """In "matrix" notation, as a textbook writes it, or in the combinators of the "paper"; see `rz.notation`."""
        return later.View(self, notation)

    def mathml(self, ids: bool = False) -> str:
        """The same in MathML; with `ids`, parts have an attribute data-id."""
        return later.mathml(self, ids)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


class Structured(Shown):
    """The part of a LinearMap that needs its normal form."""

    domain: Space
    codomain: Space
    dtype: Any
    facts: frozenset[str]
    _instance: Any
    leaves: Leaves | None
    _transpose: Any
    _solvers: dict[Any, Solver]
    _point: tuple[Any, ...] = ()  # the numbers it is at, where that was known beforehand
    _codes: dict[bool, Any]  # of the matrix, dense or not; the same for all maps of a kind

    if TYPE_CHECKING:  # what LinearMap has

        @property
        def T(self) -> LinearMap: ...
        @property
        def shape(self) -> tuple[int, int]: ...
        @cached_property
        def instance(self) -> Instance: ...
        @cached_property
        def program(self) -> Any: ...
        def matvec(self, x: Any) -> Any: ...
        def matmat(self, X: Any) -> Any: ...
        def _on_coordinates(self, given: Any) -> Any: ...

    @cached_property
    def values(self) -> Values:
        """The normal form of this map, with its numbers."""
        from .normal_form.network_values import Values

        other = self._transpose
        if other is not None and "values" in other.__dict__ and other.values.net.simple:
            numbers = other.values.slots if self.leaves is None else None
            return Values(other.values.net.turned, other.values.point, self.dtype, numbers)
        return Values(self.instance.network, self.instance.point, self.dtype)

    @cached_property
    def flat(self) -> Values | None:
        """The values of the network without hubs, for matrices; None where there is none."""
        v = self._thin
        return v if v.net.simple else None

    @cached_property
    def _thin(self) -> Values:
        """The values of the network with no more hubs than a sparse matrix needs."""
        from .normal_form.network import thinned
        from .normal_form.network_values import Values

        v = self.values
        net = thinned(v.net)
        return v if net is v.net else Values(net, v.point, self.dtype)

    @property
    def positions(self) -> int | None:
        """How many positions of the matrix are reached, some counted twice; None where only a dense one would tell."""
        from .normal_form.sparsity import few

        v = self._thin
        return v.positions() if v.net.simple else few(v.net)

    @property
    def structure(self) -> Structure:
        """What this map is, in words: derived, not measured.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(lambda x: x - np.mean(x))(np.ones(5)).structure
        identity + rank 1
        """
        from .normal_form.structure import structure

        rows, columns = [[leaf.shape for leaf in V.leaves] for V in (self.codomain, self.domain)]
        return structure(self.values, rows, columns)

    @of_numbers
    def plan(self, columns: int = 1) -> MapPlan:
        """The ways of applying this map to some right-hand sides with their operations, and the one that takes the
        fewest.

        >>> import riesz as rz, numpy as np
        >>> A, B = np.arange(300.0).reshape(100, 3), np.arange(300.0).reshape(3, 100)
        >>> rz.jacobian(lambda x: A @ (B @ x))(np.ones(100)).plan(columns=10)
        rank 3; 10 right-hand sides
                                     once        each    together     numbers
        → step by step                  0       1,200       12.0k         600
          in normal form                0       1,200       12.0k         600
          as a dense matrix         70.0k       20.0k      270.0k       10.0k
        """
        from .planning import plan_of

        return plan_of(cast(Any, self), columns)

    @of_numbers
    def cost(self, columns: int = 1) -> Cost:
        """`.flops`, the operations for some right-hand sides, and `.numbers`, the numbers kept, by the cheapest way of
        `L.plan(columns)`."""
        from .planning import cost_of

        return cost_of(cast(Any, self), columns)

    @of_numbers
    def solver(self, method: str = "auto", **options: Any) -> Solver:
        """What solves with this map, factorised, to be used again; `solver.name` tells what was chosen by structure.

        `method` forces a choice: "dense", "sparse", "iterative", "cg", "minres", "gmres", "lsmr"; iterations take
        `tolerance`, `max_iterations`, `preconditioner`.

        >>> import riesz as rz, numpy as np
        >>> L = rz.jacobian(lambda x: np.exp(x) + np.sum(x))(np.zeros(1000))
        >>> print(L.solver().name)
        diagonal: one division per unknown; plus rank 1: Woodbury
        """
        from .solvers.factorised import sealed

        return sealed(self.factorised(method, options))

    def factorised(self, method: str, options: dict[str, Any]) -> Solver:
        """The solver, which nobody else holds yet."""
        from ..runtime.progress import working
        from .solvers.choice import solver_of

        key = (method, *sorted(options.items(), key=lambda o: o[0]))
        if key not in self._solvers:
            make = cast(Any, method) if callable(method) else partial(solver_of, method=method)
            with working(f"factorising a {self.shape[0]:,} × {self.shape[1]:,} map"):
                self._solvers[key] = make(cast(Any, self), **options)
        return self._solvers[key]

    def solve(self, b: Any, method: str = "auto", *, verbose: bool = False, **options: Any) -> Any:
        """The x with L x = b, or, of a map into ℝⁿ, with L X = B column by column.

        For a map that is not square, or a singular one with method="lsmr", in the least-squares sense. What does the
        work is chosen by structure (`L.solver().name`); `verbose` prints it. `checkpoint=` names a file that "cg" and
        "lsmr" write `every` so many iterations and go on from.

        >>> import riesz as rz, numpy as np
        >>> L = rz.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        >>> L.solve(np.array([2.0, 8.0]))
        array([1., 2.])
        """
        if self.leaves is not None:
            if verbose:
                print(f"{self.shape[0]:,} × {self.shape[1]:,}, {self.structure}: in a trace")
            return self.leaves.solved(cast(Any, self), b, method, options)
        if type(b) is not np.ndarray and any_traced(b):
            return solved(cast(Any, self), b, method, options)
        chosen = self.factorised(method, options)
        if verbose:
            print(f"{self.shape[0]:,} × {self.shape[1]:,}, {self.structure}: {chosen.name}")
        if isinstance(b, np.ndarray) and several_sides(cast(Any, self), b):
            return chosen.solve(cast(Any, b))
        return self.domain.unflatten(chosen.solve(np.asarray(self.codomain.flatten(b))))

    def to_dense(self) -> NDArray[Any]:
        """The matrix, shape (dim W, dim V): components flattened row-major, in order.

        >>> import riesz as rz, numpy as np
        >>> _, L = rz.linearize(rz.sin ** rz.seg(2), np.array([0.0, 0.0]))
        >>> L.to_dense()
        array([[1., 0.],
               [0., 1.]])
        """
        if self.leaves is not None:
            return self.leaves.to_dense(cast(Any, self))
        code = self._code(True)
        if code is not None and (found := code.run(self._point or self.instance.point)) is not OTHER:
            return found.reshape(self.shape)
        from .matrices.materialise import full, places, product

        v = self.flat
        if v is not None and v.positions() <= 4 * self.shape[0] * self.shape[1]:
            return full(v, places(self.codomain.leaves), places(self.domain.leaves), self.shape)
        if self._thin.net.listed:
            found = product(self._thin, places(self.domain.leaves), self.shape)
            if found is not None:
                return found.toarray()
        if self.shape[0] < self.shape[1]:
            return cast(Structured, self.T)._on_coordinates(np.eye(self.shape[0], dtype=self.dtype)).T
        return self._on_coordinates(np.eye(self.shape[1], dtype=self.dtype))

    @overload
    def to_sparse(self, format: Literal["csr"] = "csr") -> csr_array: ...
    @overload
    def to_sparse(self, format: Literal["csc"]) -> csc_array: ...
    @overload
    def to_sparse(self, format: Literal["coo"]) -> coo_array: ...
    @overload
    def to_sparse(self, format: str) -> Any: ...
    @of_numbers
    def to_sparse(self, format: str = "csr") -> Any:
        """The matrix as a SciPy sparse array, with its exact pattern: every position that some coefficient reaches, at
        this point or another.

        >>> import riesz as rz, numpy as np
        >>> L = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> L.to_sparse().toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
        """
        found = self.stored()
        if format != "csr":
            return found.asformat(format, copy=True)
        # the caller's own: SciPy's methods change them in place
        found.indices, found.indptr = found.indices.copy(), found.indptr.copy()
        return found

    def _code(self, dense: bool) -> Any:
        """Code for the numbers of the matrix, from the first point on; None where there is none. Maps of a kind have it
        in common."""
        if dense not in self._codes:
            from .matrices.matrix_numbers import coded

            self._codes[dense] = coded(self, dense)
        return self._codes[dense]

    def stored(self) -> Any:
        """The matrix as a SciPy sparse array to be read: its index arrays are those of every point."""
        code = self._code(False)
        if code is not None and (data := code.run(self._point or self.instance.point)) is not OTHER:
            return code.matrix(data)
        from .matrices.materialise import places, product, sparse
        from .normal_form.sparsity import apart, filled, reached, together

        v = self.flat
        if v is not None:
            return sparse(v, places(self.codomain.leaves), places(self.domain.leaves), self.shape)
        pattern = reached(self._thin.net)
        found = product(self._thin, places(self.domain.leaves), self.shape)
        if found is None and (groups := apart(self._thin.net)) is not None:
            return together(pattern, groups, self._on_coordinates, self.dtype)
        return filled(pattern, self.to_dense() if found is None else found)

    @of_numbers
    def sparsity(self) -> Sparsity:
        """How many positions `to_sparse` stores, and how many of them are 0 at this point all the same.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 0.0, 3.0])).sparsity()
        4 positions of 6, 2 of them 0 here
        """
        matrix = self.stored()
        zeros = int(matrix.nnz - np.count_nonzero(matrix.data))
        derived = self.instance.program is not self.program or self._instance is None
        return Sparsity(matrix.nnz, zeros, self.shape[0] * self.shape[1], derived)

    def diagonal(self) -> NDArray[Any]:
        """The diagonal of the matrix of a map V ⊸ V, flat.

        >>> import numpy as np, riesz as rz
        >>> H = rz.hessian(lambda x: np.sum(x**3) + x[0] * x[1])(np.ones(3))
        >>> H.diagonal()
        array([6., 6., 6.])
        """
        if self.shape[0] != self.shape[1]:
            raise SpaceError(f"the diagonal of a map needs as many rows as columns; this one has shape {self.shape}")
        if self.leaves is not None:
            return self.leaves.diagonal(cast(Any, self))
        from .matrices.materialise import diagonal, places

        v, leaves = self.flat, places(self.domain.leaves)
        if v is not None and leaves == places(self.codomain.leaves):
            return diagonal(v, leaves, self.shape[0])
        return self.stored().diagonal()

    @of_numbers
    def blocks(self) -> Blocks:
        """The small dense matrices a block-diagonal or block-sparse map between two arrays is made of.

        >>> import riesz as rz, numpy as np
        >>> L = rz.jacobian(lambda x: x @ np.array([[1.0, 2.0], [0.0, 1.0]]) * x)(np.ones((3, 2)))
        >>> L.blocks().values.shape, L.blocks().values[0].tolist()
        ((3, 2, 2), [[2.0, 0.0], [2.0, 4.0]])
        """
        v = self.flat
        if v is not None and len(self.domain.leaves) == len(self.codomain.leaves) == 1:
            from .matrices.materialise import blocks_of

            found = blocks_of(v, v.net.block(0, 0), self.codomain.leaves[0].shape, self.domain.leaves[0].shape)
            if found is not None:
                return found
        instead = "L.to_sparse() or L.to_dense() give its matrix"
        raise SpaceError(f"this map has no blocks of one shape ({self.structure}); {instead}")

    def column_norms(self) -> NDArray[Any]:
        """The Euclidean norm of each column of the matrix.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.column_norms().round(3)
        array([2.   , 3.162, 2.   ])
        """
        if self.leaves is not None:
            return self.leaves.column_norms(cast(Any, self))
        from .normal_form.entries import costs

        v = self.flat
        many = v is not None and v.positions() >= 32 * sum(self.shape) and not costs(v.net.c, v.net.entries).listed
        if many or self.positions is None:
            gram = self.T @ self
            if gram.flat is not None:
                return np.sqrt(np.maximum(gram.diagonal(), 0))
        return np.sqrt(np.asarray(self.stored().power(2).sum(axis=0)).reshape(-1))

    def row_norms(self) -> NDArray[Any]:
        """The Euclidean norm of each row of the matrix.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.row_norms().round(3)
        array([2.236, 3.606])
        """
        return self.T.column_norms()

    def trace(self) -> float:
        """The sum of the diagonal.

        >>> import numpy as np, riesz as rz
        >>> float(rz.hessian(lambda x: np.sum(x**3))(np.ones(3)).trace())
        18.0
        """
        return self.diagonal().sum()

    @of_numbers
    def as_operator(self) -> LinearOperator:
        """A SciPy LinearOperator on flat coordinates; its adjoint is the transpose.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.as_operator() @ np.ones(3)
        array([3., 5.])
        """

        import scipy.sparse.linalg as linalg  # pyright: ignore[reportMissingTypeStubs]

        turned = self.T
        operations = {"matvec": self.matvec, "rmatvec": turned.matvec, "matmat": self.matmat, "rmatmat": turned.matmat}
        return cast(Any, linalg).LinearOperator(self.shape, dtype=self.dtype, **operations)

    def to_jax(self) -> Callable[[Any], Any]:
        """L as a function of a flat JAX array, for jit and grad: a product with its matrix, sparse or dense; call-backs
        where that would be huge. A map at JAX arrays is such a function itself, and what is on a mesh stays there."""
        if self.leaves is not None and self.leaves.arrays is not np:
            return self.matvec
        if self.leaves is not None:
            raise cast(Any, self)._numbers_for("L.to_jax()")
        from .bridges import jax_function

        return jax_function(cast(Any, self))

    @of_numbers
    def as_lineax(self) -> Any:
        """A lineax operator on flat JAX arrays, with its transpose; tagged symmetric or positive semidefinite where
        that is known."""
        from .bridges import lineax_operator

        return lineax_operator(cast(Any, self))

    @of_numbers
    def picture(self, cells: int = 64, side: int = 160) -> Any:
        """Where the numbers of the matrix are, as a picture that needs nothing else: `L.picture().svg()`, and
        `L.picture().save(path)`. `cells` and `side`: how fine, and how large in pixels."""
        return later.MapPicture(self, cells, side)

    @of_numbers
    def spy(
        self,
        text: bool = False,
        ax: Any = None,
        markersize: float | None = None,
        title: str | None = None,
        svg: bool = False,
    ) -> Any:
        """A picture of where the numbers of the matrix are, on Matplotlib axes, as text, or as SVG.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(lambda x: x[1:] - x[:-1])(np.ones(5)).spy(text=True)
        4 × 5, 2 diagonals, 0 below and 1 above the main one
        ┌───────────┐
        │ ■ ■ · · · │
        │ · ■ ■ · · │
        │ · · ■ ■ · │
        │ · · · ■ ■ │
        └───────────┘
        """
        return self.picture(320, 480).svg() if svg else later.spy(self, text, ax, markersize, title)
