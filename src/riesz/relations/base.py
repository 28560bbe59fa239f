"""Relations R ⊆ X × Y with multiplicities: matrices of natural numbers that know their shape   (§2.2.3).

A relation is used in one way, relational reduction (red_R v)_y = Σ_{(x,y)∈R} v_x, and its converse gives the adjoint.
Each kind says how it reduces (`reduce`), what its converse is and, at the least, which pairs it holds. Most are spans
(spans.py): their algebra is symbolic, and nothing is enumerated until numbers flow.
"""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast, overload

import numpy as np

from ..errors import RelationError
from ..runtime import displayed, later
from ..runtime.interning import Node
from .cpu.groups import Groups, ascending
from .index_sets import Array, Indices, Set
from .spans import Span, positions

if TYPE_CHECKING:
    from .arrangements import Arrangement
    from .jax.mesh_plan import MeshPlan
    from .plans import Plan

Box = tuple[int, ...]


class Relation(Node):
    """R ⊆ source × target. `R.converse`, `R.then(S)`, `R * S` on X × X', `R + S` on X + X', `R | S`; `R.pairs()`,
    `R.matrix()`.

    >>> import riesz as rz
    >>> R = rz.relation(rz.seg(3), rz.seg(2), [(0, 0), (1, 1), (2, 0)])
    >>> R.matrix().toarray().tolist()
    [[1, 0], [0, 1], [1, 0]]
    """

    source: Set
    target: Set
    sliced: ClassVar[bool] = False  # whether red copies one slice
    counted: ClassVar[bool] = False  # whether only counts are known, no pairs

    def adopt(self) -> None:
        for s in (self.source, self.target):
            if not isinstance(cast(Any, s), Set):
                raise RelationError(f"a relation is between index sets; got {s!r}: write seg({s!r})")

    # -- what each kind says -----------------------------------------------------------------------------

    def reduce(self, v: Array) -> Array:
        """red_R along the middle axis of an array of shape (a, |source|, b)."""
        raise NotImplementedError

    def reduce_into(self, total: Array, v: Array) -> None:
        """Add red_R v to an array of shape (a, |target|, b)."""
        total += self.reduce(v)

    def zeros(self, v: Array) -> Array:
        """What red_R v is added to."""
        return np.zeros((v.shape[0], self.target.size, v.shape[2]), v.dtype)

    def between(self, source: Box, target: Box) -> Span | None:
        """The relation as two index maps from one box of labels, its sets seen as boxes; None if it is none."""
        return None

    def _turn(self) -> Relation:
        """The converse, made anew."""
        rest = [not part if name == "turned" else part for name, part in zip(self.fields, self.parts(), strict=True)]
        return type(self)(self.target, self.source, *rest[2:])

    @property
    def tile(self) -> slice | None:
        """The slice of the target that the source is copied to, if that is what red does."""
        return None

    @property
    def patch(self) -> tuple[slice, slice] | None:
        """The slice of the source that is copied to a slice of the target, if that is what red does."""
        return None if self.tile is None else (slice(None), self.tile)

    # -- two forms of it ---------------------------------------------------------------------------------

    @property
    def converse(self) -> Relation:
        """Rᵀ = {(y, x) | (x, y) ∈ R}; the converse of the converse is the relation itself."""
        # It is kept as long as the relation, with all that is prepared for it, and does not keep the relation.
        known: Any = self.__dict__
        found = known.get("_converse") or ("_converse_of" in known and known["_converse_of"]()) or None
        if found is None:
            found = self._turn()
            if found is not self:
                known["_converse"] = found
                cast(Any, found.__dict__)["_converse_of"] = weakref.ref(self)
        return found

    @property
    def span(self) -> Span | None:
        """The relation as two index maps from one box of labels, if it is one."""
        source, target = self.source.box, self.target.box
        return None if source is None or target is None else self.between(source, target)

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        """Positions in source, positions in target, multiplicities."""
        source, target = (self.source.size,), (self.target.size,)
        span = self.between(source, target)
        assert span is not None
        rows, cols = positions(span, span.left, source), positions(span, span.right, target)
        return rows, cols, np.broadcast_to(np.intp(span.times), rows.shape)

    # -- algebra -----------------------------------------------------------------------------------------

    def then(self, other: Relation) -> Relation:
        """R followed by S: multiplicity of (x, z) is Σ_y R(x, y)·S(y, z)."""
        from .algebra import then

        return then(self, other)

    def __mul__(self, other: Any) -> Relation:
        """R × S = {((x, x'), (y, y'))} on X × X' and Y × Y'."""
        from .algebra import product

        return product(self, other)

    def __add__(self, other: Any) -> Relation:
        """R + S on X + X' and Y + Y': side by side, nothing in between."""
        from .algebra import summed

        return summed(self, other)

    def __or__(self, other: Any) -> Relation:
        """R ∪ S as multisets: multiplicities add up."""
        from .algebra import union

        return union(self, other)

    def restrict(self, source: Any = None, target: Any = None) -> Relation:
        """The pairs (x, y) with x and y in the given parts (positions, slices or masks; None: everything); the sets
        stay.

        >>> from riesz import relations, seg
        >>> relations.full(seg(2), seg(3)).restrict(target=[0, 2]).matrix().toarray().tolist()
        [[1, 0, 1], [1, 0, 1]]
        """
        from .algebra import part, then

        found = self if source is None else then(part(self.source, source), self)
        return found if target is None else then(found, part(self.target, target))

    @overload
    def plan(self, backend: str = "auto") -> Plan: ...
    @overload
    def plan(
        self, *, mesh: Any, axis: str | None = None, owner: str = "auto", deterministic: str = "fixed"
    ) -> MeshPlan: ...
    def plan(
        self,
        backend: str = "auto",
        *,
        mesh: Any = None,
        axis: str | None = None,
        owner: str = "auto",
        deterministic: str = "fixed",
    ) -> Plan | MeshPlan:
        """The relation prepared for execution on "numpy", "numba" or "jax"; "auto" chooses by the size and the kind of
        the array.

        >>> from riesz import relations, seg
        >>> relations.triangular(seg(10**8)).plan()
        red_{≤₁₀₀₀₀₀₀₀₀}: running sum, its adjoint: running sum from the end

        On a mesh of JAX devices, for arrays whose first axis is cut along an axis of the mesh: `mesh=`, `axis=`, and
        whether pairs belong to the device of their "target", of their "source", or some to each ("both"); "auto" takes
        that for which fewest rows travel. Results have the same bits on the same number of devices, and with
        `deterministic="any"` on any number.

        >>> import jax, numpy as np
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> plan = relations.gather(seg(6), seg(4), [0, 2, 2, 5]).plan(mesh=mesh, axis="data")
        >>> np.asarray(plan(np.arange(6.0))).tolist(), np.asarray(plan.adjoint(np.ones(4))).tolist()
        ([0.0, 2.0, 2.0, 5.0], [1.0, 0.0, 2.0, 0.0, 0.0, 1.0])
        """
        if mesh is not None:
            from .jax.mesh_plan import MeshPlan

            return MeshPlan(self, mesh, axis, owner, deterministic)
        from .plans import Plan

        return Plan(self, backend)

    def arranged(self, devices: int, by: Any = "degree") -> Arrangement:
        """The sets of the relation as so many devices are to have them: "contiguous"; by "degree", so that all have as
        many pairs; by "metis", so that few pairs are between devices (needs pymetis); or by the device of each element.

        >>> import riesz as rz
        >>> star = rz.relation(rz.seg(6), rz.seg(6), [(0, i) for i in range(6)])
        >>> parts = star.arranged(2, by=[0, 0, 1, 1, 0, 1])
        >>> parts.relation.plan()(parts.placed([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        from .arrangements import arranged

        return arranged(self, devices, by)

    # -- questions ---------------------------------------------------------------------------------------

    @cached_property
    def out_degrees(self) -> Indices:
        """How many pairs each x has, with multiplicity."""
        return self.converse.in_degrees

    @cached_property
    def in_degrees(self) -> Indices:
        """How many pairs each y has, with multiplicity."""
        ones = np.broadcast_to(1.0, (1, self.source.size, 1))
        found = np.rint(self.reduce(ones)[0, :, 0])
        return seal(found if found.max(initial=0) > 2.0**62 else found.astype(np.intp))  # floats hold more

    @property
    def count(self) -> int:
        """How many pairs there are, with multiplicity."""
        span = self.span
        if span is not None:
            return span.times * int(np.prod(span.sizes, dtype=object)) if span.sizes else span.times
        return int(self.in_degrees.sum())

    @property
    def work(self) -> int:
        """How many numbers are added or moved when the relation is reduced: its pairs, unless its kind knows better."""
        return self.count

    @property
    def is_function(self) -> bool:
        """Whether each x is related to exactly one y, once."""
        span = self.span
        surely = span is not None and span.once(span.left)
        return self.count == self.source.size and (surely or bool((self.out_degrees == 1).all()))

    @property
    def is_injective(self) -> bool:
        """Whether no y is related to two x, or twice to one."""
        span = self.span
        surely = span is not None and span.once(span.right)
        return self.count <= self.target.size and (surely or bool((self.in_degrees <= 1).all()))

    def image(self, of: Any = None) -> Indices:
        """The positions of all y related to some x (of the part given, as for `restrict`)."""
        part = self if of is None else self.restrict(source=of)
        return np.unique(part.pairs()[1]) if part.count <= self.target.size else np.flatnonzero(part.in_degrees)

    # -- as a matrix -------------------------------------------------------------------------------------

    def times_matrix(self, other: Relation) -> Any:
        """The product of multiplicities: integers, or floats where they would overflow."""
        rough = self.matrix().astype(float) @ other.matrix().astype(float)
        return rough if rough.nnz and rough.max() > 2.0**53 else self.matrix() @ other.matrix()

    def matrix(self) -> Any:
        """|source| × |target| multiplicities as a SciPy CSR array."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        rows, cols, times = self.pairs()
        return cast(Any, sparse).csr_array((times, (rows, cols)), shape=(self.source.size, self.target.size))

    @cached_property
    def ascending(self) -> bool:
        """Whether the targets of the pairs, in the order of the sources, ascend: they are grouped as they are."""
        return ascending(self.pairs()[1])

    @cached_property
    def groups(self) -> Groups:
        """The pairs grouped by target, made once."""
        rows, cols, times = self.pairs()
        several = None if bool((times == 1).all()) else times
        return Groups.of_pairs(self.source.size, self.target.size, rows, cols, several)

    def weights(self, kind: Any) -> Any:
        """|target| × |source| as a sparse matrix whose product adds in the order of the groups."""
        import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

        g = self.groups
        index = np.arange(g.count, dtype=g.offsets.dtype) if g.index is None else g.index
        data = np.ones(g.count, kind) if g.times is None else g.times.astype(kind)
        return cast(Any, sparse).csr_array((data, index, g.offsets), shape=(g.targets, g.size))

    def sparse_reduce(self, v: Array) -> Array:
        """red_R by a sparse matrix, made once for each type of numbers."""
        a, n, b = v.shape
        kind = v.dtype if v.dtype.char in "fdgFDGilqIL" else np.dtype(float)
        known: dict[Any, Any] = cast(Any, self.__dict__).setdefault("_weights", {})
        if kind not in known:
            known[kind] = self.weights(kind)
        wide = np.moveaxis(v, 1, 0).reshape(n, a * b)
        found = np.moveaxis((known[kind] @ wide).reshape(self.target.size, a, b), 0, 1)
        return found if v.dtype.kind not in "fc" else found.astype(v.dtype, copy=False)

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


def frozen(a: Array) -> bool:
    """Whether nobody can write into an array, not through what it is a view of either.

    >>> import numpy as np
    >>> frozen(np.ones(2)), frozen(freeze(np.ones(2)))
    (False, True)
    """
    owner: Any = a
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = cast(Any, owner).base
    return owner is None


def freeze(a: Array) -> Array:
    """An array nobody can write into: itself, or a read-only copy, whose repeated axes stay repeated.

    >>> import numpy as np
    >>> freeze(np.ones(2)).flags.writeable
    False
    """
    if frozen(a):
        return a
    thin = a
    if 0 in a.strides:
        thin = a[tuple([slice(0, 1) if s == 0 and n else slice(None) for s, n in zip(a.strides, a.shape, strict=True)])]
    found = np.array(thin, order="K")
    found.flags.writeable = False
    return found if thin is a else np.broadcast_to(found, a.shape)


def seal(x: Any) -> Any:
    """Arrays of the library's own, also in containers and sparse matrices, made read-only where they lie."""
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    elif isinstance(x, (list, tuple, dict)):
        for part in cast("list[Any]", list(cast(Any, x).values()) if isinstance(x, dict) else x):
            seal(part)
    elif hasattr(x, "indptr"):
        seal([x.data, x.indices, x.indptr])
    return cast(Any, x)


def within(at: Array, where: Set, what: str) -> None:
    if at.size and not (at.min() >= 0 and at.max() < where.size):
        first = int(np.flatnonzero((at < 0) | (at >= where.size))[0])
        inside = f"its positions are 0 to {where.size - 1} (first at {first})"
        raise RelationError(f"{what} holds {at[first]}, which is outside {where}: {inside}")
