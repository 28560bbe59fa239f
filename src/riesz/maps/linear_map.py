"""LinearMap: a linear map V ⊸ W given by a linear program; applied, composed, transposed and, on request, made a
matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from ..calculus.batching import mapped
from ..calculus.derive import lower, transpose_linear
from ..calculus.linearity import linear_program
from ..errors import LinearityError, SpaceError, TraceError, VectorError
from ..ops.domain import Domain
from ..ops.number_domains import NUMBERS, OTHER
from ..ops.op import Reduction, Reshape
from ..programs.passes.fusing import large, ready, runnable
from ..programs.program import Program, outputs
from ..relations.constructors import edges
from ..relations.index_sets import Seg, Set
from ..runtime import later, tuning
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import dense
from ..spaces.layout import held
from ..spaces.space import DirectSum, Space, real_space
from ..terms.term import Arrow, Term, require_linear
from ..tracing.trace import forgive, refused
from ..tracing.traced import Traced
from . import instances
from .decomposed import Decomposed
from .instances import Instance
from .leaves import IN_TRACES, Leaves, any_traced, met

if TYPE_CHECKING:
    from .solvers.factorised import Solver


Join = Callable[..., Instance]
Facts = Iterable[str]
Spaces = tuple[Space, Space]


class LinearMap(Decomposed):
    """A linear map between two spaces. `L(v)`, `L.H` (adjoint), `L.T` (transpose), `L @ M`, `L + M`, `k * L`;
    `L.to_dense()` only on request.

    >>> import numpy as np, riesz as rz
    >>> L = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
    >>> L(np.array([1.0, 0.0, 0.0])), L.H(np.array([1.0, 0.0]))
    (array([2., 0.]), array([2., 1., 0.]))
    >>> L.shape, L.structure
    ((2, 3), 2 diagonals, 0 below and 1 above the main one)

    `L.H` follows the inner products of the spaces, L* = M_V⁻¹ Lᵀ M_W; `L.H.H is L`.

    A map is an instance of a family: a program of a point and a vector, and the point (`L.instance`). What `L.leaves`
    says the leaves of the point are decides how it is computed: at numbers (None) by a linear program with numbers for
    coefficients (`L.program`), at traced arrays and JAX arrays by the program of point and vector.
    """

    __array_ufunc__ = None  # k * L with a NumPy scalar k comes to us
    _factors: tuple[LinearMap, ...] = ()  # of a composition, the last first: a long one is written at once
    _summands: tuple[LinearMap, ...] = ()
    _times: tuple[float, ...] = ()  # of the summands after the first
    mirror: LinearMap | None = None  # the map whose transpose it was made as: its picture is the mirror image

    rolled = False  # whether it is the derivative of a function with loops

    def __init__(
        self,
        domain: Space,
        codomain: Space,
        program: Program | Callable[[], Program] | None,
        dtype: Any = float,
        instance: Callable[[], Instance] | None = None,
        facts: Facts = (),
        simplified: bool = False,
        leaves: Leaves | None = None,
    ) -> None:
        """`program`: the linear program with its numbers, or what makes it; None with `leaves` that are no numbers.
        `instance`: the family it is of, and the point. `facts`: what is known beforehand, "symmetric" or "definite" (no
        negative eigenvalues)."""
        self.domain, self.codomain = domain, codomain
        if isinstance(program, Program):
            self.program = linear_program(program)
        else:
            self._written = program
        self.dtype = np.dtype(dtype)  # float32 where the function's arguments and results all were, otherwise float64
        self.facts, self.simplified = frozenset(facts), simplified
        self._instance, self.leaves = instance, leaves
        self._solvers: dict[Any, Solver] = {}
        self._codes = {}
        self._adjoint: LinearMap | None = None
        self._transpose: LinearMap | None = None

    @cached_property
    def program(self) -> Program:
        """The linear program, with numbers for coefficients."""
        if self._written is None:
            raise self._numbers_for("this")
        return linear_program(self._written())

    def released(self) -> None:
        """The numbers of the program are forgotten where they can be computed again."""
        if getattr(self, "_written", None) is not None:
            self.__dict__.pop("program", None)

    def _numbers_for(self, what: str) -> Exception:
        """The error of what needs numbers, for a map whose point has none."""
        assert self.leaves is not None
        return self.leaves.refusal(what)

    def like(self, instance: Instance, **changed: Any) -> LinearMap:
        """A map between the same spaces, at leaves of the same kind."""
        given: dict[str, Any] = {"dtype": self.dtype, "facts": self.facts, "leaves": self.leaves} | changed
        return LinearMap(self.domain, self.codomain, None, instance=lambda: instance, **given)

    @classmethod
    def of(cls, term: Term) -> LinearMap:
        """The map of a linear term.

        >>> import riesz as rz
        >>> rz.LinearMap.of(rz.dup(rz.R)).to_dense()
        array([[1.],
               [1.]])
        """
        if not isinstance(cast(Any, term), Term):
            advice = "; give it a space with .at(V)" if isinstance(cast(Any, term), Arrow) else ""
            raise LinearityError(f"a LinearMap is made of a linear term with known spaces; got {term!r}{advice}")
        require_linear(term, "a LinearMap")
        return cls(term.domain, term.codomain, lower(term))

    # -- use ---------------------------------------------------------------------------------------------

    def __call__(self, *vectors: Any) -> Any:
        """L(v); the components of a direct sum may be given one by one. Of a map from ℝⁿ, L(V) column by column."""
        found = self._small(vectors)
        if found is not OTHER:
            return found
        value = held(as_element(vectors, self.domain))
        array = type(value) is np.ndarray or type(value) is Traced
        if array and value.ndim == 2 and [x.shape for x in self.domain.leaves] == [value.shape[:1]]:
            return self.matmat(value)
        if self.leaves is not None:
            return self.leaves.applied(self, value)
        if type(value) is not np.ndarray and any_traced(value):
            return IN_TRACES.applied(self, value)
        given = self.domain.open(value)
        return self.codomain.wrap(self._typed(self.apply(given), given), self.held | {id(x) for x in given})

    @cached_property
    def _small(self) -> Callable[[tuple[Any, ...]], Any]:
        """Generated code for small maps between arrays, or numbers."""
        arrays = all([len(V.code) == len(V.leaves) == 1 for V in (self.domain, self.codomain)])
        return self._of_leaves if self.leaves is None and arrays else lambda _: OTHER

    @cached_property
    def _of_leaves(self) -> Callable[[tuple[Any, ...]], Any]:
        """Generated code for small maps, on leaves."""
        if self.family is not None:
            return lambda _: OTHER
        return later.applied(self, self._normal or self.program) or (lambda _: OTHER)

    @cached_property
    def held(self) -> set[int]:
        """The identities of the arrays this map keeps."""
        return self.steps.program.held

    def _typed(self, results: list[Any], given: list[Any]) -> list[Any]:
        """Results in the wider type of map and vector: zeros know no type, parts of a wide map may be narrow."""
        wide = self.dtype == float or any([np.asarray(x).dtype == float and type(x) is not float for x in given])
        kind = np.dtype(float) if wide else self.dtype
        return [
            x if leaf.formal or (wide and type(x) is float) else np.asarray(dense(x), kind)[()]
            for x, leaf in zip(results, self.codomain.leaves, strict=True)
        ]

    def apply(self, leaves: list[Any], domain: Domain[Any] = NUMBERS) -> list[Any]:
        """Leaves in, leaves out, over any value domain; formal vectors stay formal."""
        if self.leaves is not None:
            raise self._numbers_for("L.apply()")
        if domain is NUMBERS and self.family is not None:
            found = later.native_program(self.family.program, [*self.family.point, *map(dense, leaves)])
            if found is not None:
                return found
        if domain is NUMBERS and len(leaves) + len(self.codomain.leaves) > 2:
            found = self._of_leaves(tuple(leaves))
            if found is not OTHER:
                return [found] if len(self.codomain.leaves) == 1 else list(found)
        with quietly():  # what a branch not taken does to its coefficients is nobody's business
            return outputs(self._runs if domain is NUMBERS else self.program, domain, leaves)

    @cached_property
    def _runs(self) -> Program:
        """The program that is run on numbers."""
        return runnable(self.program) if self._normal is None else self._normal

    @cached_property
    def _normal(self) -> Program | None:
        """The program of the normal form, where it takes a quarter of the work or less and there is much of it."""
        if self.simplified or not large(self.program, tuning.NORMAL_FORM_OPERATIONS >> 8):
            return None
        from ..programs.cost import cost

        if cost(ready(self.program)).flops < tuning.NORMAL_FORM_OPERATIONS:
            return None
        each = {w.name: w.each for w in self.plan().ways}
        return runnable(self.simplify().program) if 4 * each["in normal form"] < each["step by step"] else None

    @property
    def T(self) -> LinearMap:
        """The transpose in coordinates; the adjoint where both inner products are Euclidean.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> bool(np.allclose(J.T.to_dense(), J.to_dense().T))
        True
        """
        if self._transpose is None:
            turned = None
            if self.domain.plain and self.codomain.plain:
                turned = self if self._adjoint is None and "symmetric" in self.facts else self._adjoint
            if turned is None:
                turned = _made((self.codomain, self.domain), instances.turned, (self,), self.dtype, self.facts)
                turned.mirror, turned.rolled = self, self.rolled
            self._transpose, turned._transpose = turned, self
        return self._transpose

    @property
    def H(self) -> LinearMap:
        """The adjoint: ⟨L v, w⟩ = ⟨v, L.H w⟩.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.H(np.array([1.0, 1.0]))
        array([2., 4., 2.])
        """
        if self._adjoint is None:
            V, W, turned = self.domain, self.codomain, self.T
            if not (V.plain and W.plain):
                turned = _made((W, V), instances.adjoint, (turned,), self.dtype, (), V, W)
            self._adjoint, turned._adjoint = turned, self
        return self._adjoint

    def adjoint(self) -> LinearMap:
        """The same as `.H`, in SciPy's spelling."""
        return self.H

    # -- algebra -----------------------------------------------------------------------------------------

    @overload
    def __matmul__(self, other: LinearMap | Term) -> LinearMap: ...
    @overload
    def __matmul__(self, other: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any:
        """L @ M composes; L @ v applies, and v @ L is L.T(v). A matrix X of shape (dim V, k) holds vectors as columns:
        L @ X is a matrix too; a sparse matrix is composed with. See Note [Vectors and matrices] in as_matrix.py.

        >>> import numpy as np, riesz as rz
        >>> L = rz.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        >>> L @ np.eye(2), np.ones((1, 2)) @ L
        (array([[2., 0.],
               [0., 4.]]), array([[2., 4.]]))
        """
        if isinstance(other, Term):
            other = LinearMap.of(other)
        elif isinstance(other, Arrow):
            missing = "which has no spaces yet: give it one with .at(V)"
            raise SpaceError(f"cannot compose a LinearMap with {other}, {missing}")
        if not isinstance(other, LinearMap):
            return self._product(other)
        if other.codomain is not self.domain:
            raise SpaceError(f"cannot compose L @ M: M ends in {other.codomain}, L starts at {self.domain}")
        facts = ("symmetric", "definite") if self is other.H and other.codomain.plain and other.domain.plain else ()
        factors = (self._factors or (self,)) + (other._factors or (other,))
        found = _made((other.domain, self.codomain), instances.after, factors, _common(self, other), facts)
        found._factors = factors
        return found

    @overload
    def __rmatmul__(self, other: Arrow) -> LinearMap: ...
    @overload
    def __rmatmul__(self, other: Any) -> Any: ...
    def __rmatmul__(self, other: Any) -> Any:
        return (
            LinearMap.of(other.at(self.codomain)) @ self if isinstance(other, Arrow) else self._product_from_left(other)
        )

    def __radd__(self, other: Any) -> LinearMap:
        return self if isinstance(other, int) and other == 0 else self._plus(other, 1.0)  # sum([L, M]) begins with 0

    def _plus(self, other: Any, k: float) -> LinearMap:
        if not isinstance(other, LinearMap):
            other = self.summand(other)
        if other.domain is not self.domain or other.codomain is not self.codomain:
            mine, its = [f"{L.domain} ⊸ {L.codomain}" for L in (self, other)]
            raise SpaceError(f"cannot add L + M: L : {mine}, M : {its}")
        facts = self.facts & other.facts if k > 0 else (self.facts & other.facts) - {"definite"}
        summands = (self._summands or (self,)) + (other._summands or (other,))
        times = (*self._times, k, *[k * t for t in other._times]) if other._times else (*self._times, k)
        join = partial(instances.added, times)
        found = _made((self.domain, self.codomain), join, summands, _common(self, other), facts)
        found._summands, found._times = summands, times
        return found

    def __add__(self, other: Any) -> LinearMap:
        return self._plus(other, 1.0)

    def __sub__(self, other: Any) -> LinearMap:
        return self._plus(other, -1.0)

    def __rsub__(self, other: Any) -> LinearMap:
        return self * -1.0 + other

    def __neg__(self) -> LinearMap:
        return self * -1.0

    def __mul__(self, k: Any) -> LinearMap:
        if isinstance(k, (LinearMap, Arrow)):
            instead = "L @ M composes them, k * L scales"
            raise LinearityError(f"the pointwise product of two linear maps is not linear; {instead}")
        if type(k) is not float and (not isinstance(k, (int, float, np.integer, np.floating)) or isinstance(k, bool)):
            kind = self.leaves or IN_TRACES
            if kind.owns(k):
                return kind.scaled(self, k)
            raise LinearityError(f"a linear map is scaled by a number; got {k!r}")
        times = float(k)  # pyright: ignore[reportUnknownArgumentType]
        facts = self.facts if times > 0 else self.facts - {"definite"}
        return _made((self.domain, self.codomain), instances.scaled, (self,), self.dtype, facts, times)

    __rmul__ = __mul__

    def __pow__(self, X: Any) -> LinearMap:
        """L^X : V^X ⊸ W^X, the same map at every index.

        >>> import riesz as rz, numpy as np
        >>> (rz.jacobian(np.cumsum)(np.zeros(2)) ** rz.seg(3))(np.ones((3, 2))).tolist()
        [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
        """
        if not isinstance(X, Set) or X.box is None:
            due = "an index set that is a box, such as rz.seg(3) or rz.seg(3) * rz.seg(4)"
            raise SpaceError(f"L ** X maps over {due}; got {X!r}")
        facts = self.facts if self.domain.plain and self.codomain.plain else ()
        return _made((self.domain**X, self.codomain**X), instances.over, (self,), self.dtype, facts, X.box)

    def __truediv__(self, k: Any) -> LinearMap:
        return self * (1.0 / k)

    # -- structure ---------------------------------------------------------------------------------------

    @property
    def steps(self) -> Instance:
        """The linear program as it is applied, with the point it still needs: none where its numbers are known."""
        return Instance(self.program) if self.leaves is None else self.instance

    @cached_property
    def instance(self) -> Instance:
        """The family that this map is an instance of, as a program of point and vector, and the point."""
        if self.leaves is not None:
            assert self._instance is not None
            return self._instance()
        refusals = refused()
        try:
            found = Instance(self.program) if self._instance is None else self._instance()
        except TraceError:  # a derivative that is code of its own has numbers, but no program
            forgive(refusals)
            return Instance(self.program)
        return found if found.fixed else Instance(self.program)

    @cached_property
    def family(self) -> Instance | None:
        """The instance of a derivative of a function with loops, at a point of numbers."""
        return self.instance if self.rolled and self.leaves is None and self.instance.point else None

    @property
    def names(self) -> tuple[tuple[str, Any], ...]:
        """Arrays with the names they have outside: arguments, and what the function closes over."""
        return self.instance.names

    def simplify(self) -> LinearMap:
        """The same map in normal form: composed, added up, with products carried out where that makes it smaller; it
        prints as one would write it. Its program is never longer than it was.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(lambda x: x / np.sum(x))(np.ones(3)).simplify()  # doctest: +SKIP
        """
        if self.simplified:
            return self

        def written() -> Program:
            from .normal_form.rebuilt import rebuilt

            short = linear_program(rebuilt(self.values))
            return short if len(short) <= len(self.program) else self.program

        if self.leaves is not None:
            found = self.like(self.leaves.simplified(self), simplified=True)
        else:
            spaces = self.domain, self.codomain
            found = LinearMap(*spaces, written, self.dtype, lambda: self.instance, self.facts, simplified=True)
        found.__dict__["values"] = self.values
        return found

    # -- coordinates ---------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(dim of the codomain, dim of the domain).

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.shape
        (2, 3)
        """
        return self.codomain.dim, self.domain.dim

    def matvec(self, x: Any) -> Any:
        """L on flat coordinates.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> J.matvec(np.ones(3))
        array([3., 5.])
        """
        if self.leaves is not None or (type(x) is not np.ndarray and any_traced(x)):
            return (self.leaves or IN_TRACES).matvec(self, x)
        return self.codomain.flatten(self(self.domain.unflatten(_real(x).reshape(-1))))

    def rmatvec(self, y: Any) -> Any:
        """The transpose on flat coordinates, as SciPy means it; the same as the adjoint where the inner products are
        Euclidean."""
        return self.T.matvec(y)

    def matmat(self, X: Any) -> Any:
        """L on each column of a matrix of flat coordinates, all at once."""
        if self.leaves is not None or (type(X) is not np.ndarray and any_traced(X)):
            return (self.leaves or IN_TRACES).matmat(self, X)
        given = _real(X)
        if given.ndim != 2 or given.shape[0] != self.shape[1]:
            due = f"a matrix with {self.shape[1]} rows"
            raise VectorError(f"matmat of a map of shape {self.shape} needs {due}; got shape {given.shape}")
        if given.shape[1] * self.shape[0] * self.shape[1] >= tuning.PLANNED_PRODUCTS:
            way = self.plan(given.shape[1]).chosen.name
            if way == "as a dense matrix":
                return self.to_dense() @ given
            if way == "as a sparse matrix":
                return self.stored() @ given
            if way == "in normal form":
                return _columns(self.simplify(), given)
        return _columns(self, given)

    def rmatmat(self, Y: Any) -> Any:
        """The transpose on each column of a matrix."""
        return self.T.matmat(Y)

    def _on_coordinates(self, given: Any) -> Any:
        """L on coordinate vectors and their sums: nothing reaches their zeros (Note [Strong] in ops/op.py)."""
        found = self.matmat(given)
        bad = np.isnan(found)
        if not bad.any():
            return found
        from .normal_form.sparsity import reaching

        exact = _columns(self, given, transpose_linear(self.T.program, masked=True))
        wrong: Any = np.isnan(self.matvec(np.ones(self.shape[1], self.dtype)))  # whatever L is applied to
        there = reaching(self._thin.net) @ (given != 0)
        return cast(Any, np.where(bad & wrong[:, None] & there, found, exact))

    def submatrix(self, rows: Any = slice(None), columns: Any = slice(None)) -> LinearMap:
        """The map between some flat coordinates (positions, slices or masks) of domain and codomain.

        >>> import riesz as rz, numpy as np
        >>> rz.jacobian(np.sin)(np.zeros(4)).submatrix([0, 1], slice(2)).to_dense()
        array([[1., 0.],
               [0., 1.]])
        """
        return _selection(self.codomain, rows, "rows") @ self @ _selection(self.domain, columns, "columns").T

    def _selection(self, space: Space, which: Any, what: str) -> LinearMap:
        found = _selection(space, which, what)
        found.dtype = self.dtype
        return found

    def gram(self) -> LinearMap:
        """L*L, with its structure.

        >>> import numpy as np, riesz as rz
        >>> J = rz.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
        >>> G = J.gram()
        >>> str(G.structure), G.to_dense()
        ('tridiagonal', array([[ 4.,  2.,  0.],
               [ 2., 10.,  6.],
               [ 0.,  6.,  4.]]))
        """
        return self.H @ self

    def __getstate__(self) -> Any:
        if self.leaves is not None:
            raise self._numbers_for("pickling")
        names = ("domain", "codomain", "program", "dtype", "facts", "simplified")
        known = {name: getattr(self, name) for name in names}
        portable = self._instance is not None and self.instance.portable
        return known | {"instance": self.instance} if portable else known

    def __setstate__(self, state: Any) -> None:
        if "source" in state:  # as it was called once
            state = {**state, "instance": state["source"]}
        self.__dict__.update(state)
        self._adjoint = self._transpose = self._instance = self.leaves = None
        self._solvers, self._codes = {}, {}


def _made(spaces: Spaces, join: Join, parts: tuple[LinearMap, ...], dtype: Any, facts: Facts, *more: Any) -> LinearMap:
    """The map that `join` makes of others: of their programs with numbers, and of the families these are instances of.
    Where the leaves of one are no numbers, it is made of the programs as they are applied, at the points of all."""
    leaves = met([p.leaves for p in parts])
    if leaves is not None:
        make = lambda: join(*[p.steps for p in parts], *more)  # noqa: E731
        return LinearMap(*spaces, None, dtype, make, facts, leaves=leaves)
    written = lambda: join(*[Instance(p.program) for p in parts], *more).program  # noqa: E731
    return LinearMap(*spaces, written, dtype, lambda: join(*[p.instance for p in parts], *more), facts)


def _common(a: LinearMap, b: LinearMap) -> Any:
    return a.dtype if a.dtype is b.dtype else np.result_type(a.dtype, b.dtype)


def _real(x: Any) -> Any:
    """Coordinates: any real numbers, as floats."""
    given = np.asarray(x)
    if given.dtype.kind not in "fiu":
        raise VectorError(f"coordinates are real numbers; got an array of {given.dtype}")
    return given if given.dtype.kind == "f" else given.astype(float)


def as_element(args: tuple[Any, ...], space: Space) -> Any:
    """One argument is an element of the space; several are the components of one, in order."""
    if not args:
        raise VectorError(f"a function on {space} needs an argument to be evaluated at")
    if len(args) == 1:
        return args[0]
    form = space.form if isinstance(space, DirectSum) and len(space.summands) == len(args) else None
    return tuple(args) if form is None else form.make(list(args))


def _columns(L: LinearMap, given: Any, masked: Program | None = None) -> Any:
    """L on all columns at once, or another program (`masked`) that is told which places are reached."""
    from .matrices.materialise import places

    n, kind = given.shape[1], np.result_type(given.dtype if L.dtype != float else float, L.dtype)
    rows = places(L.domain.leaves)
    leaves: list[Any] = [np.ascontiguousarray(given[p.range].T).reshape((n, *p.shape)) for p in rows]
    if masked is not None:
        leaves += [x != 0 for x in leaves]
    results = None if masked is not None else _in_rounds(L, leaves, n)
    if results is None:
        with quietly():
            results = mapped(masked or L.program, NUMBERS, leaves, [True] * len(leaves), n)
    ends = zip(results, L.codomain.leaves, strict=True)
    columns = [np.asarray(dense(y), kind).reshape(n, leaf.size) for y, leaf in ends]
    return np.concatenate(columns, axis=1).T if columns else np.zeros((0, n))


def _in_rounds(L: LinearMap, leaves: list[Any], n: int) -> list[Any] | None:
    """L on all columns by its family, where that has loops that run as functions of numbers."""
    if L.family is None:
        return None
    program, point = L.family.program, L.family.point
    return later.native_mapped(program, [False] * len(point) + [True] * len(leaves), n, [*point, *leaves])


def _selection(space: Space, which: Any, what: str) -> LinearMap:
    """The linear map that reads some flat coordinates."""
    n = space.dim
    given = np.arange(n)[which] if isinstance(which, slice) else np.asarray(which)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    elif given.shape == (0,):  # an empty list has no type
        given = given.astype(np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and not (-n <= given.min() and given.max() < n)):
        due = f"a slice, a mask of {n} truth values or positions from 0 to {n - 1}"
        raise SpaceError(f"{what} of a matrix are {due}; got {which!r}")
    at = np.where(given < 0, given + n, given).astype(np.intp)
    program = Program()
    pieces: list[int] = []
    relations: list[Any] = []
    from .matrices.materialise import places

    for place in places(space.leaves):
        slot = program.input(place.shape)
        mine = np.flatnonzero((place.start <= at) & (at < place.start + place.size))
        if len(mine):
            pieces.append(program.step(Reshape((place.size,)), (slot,)))
            relations.append(edges(Seg(place.size), Seg(len(at)), at[mine] - place.start, mine))
    program.outputs = [program.step(Reduction(tuple(relations), 0), pieces) if pieces else program.zeros((len(at),))]
    return LinearMap(space, real_space((len(at),)), program)
