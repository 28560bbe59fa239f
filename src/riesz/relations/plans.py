"""A relation prepared for execution: `plan(v)` is red_R v, `plan.adjoint(w)` its adjoint; one preparation serves
both."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RelationError
from ..runtime import tuning
from ..runtime.displayed import Displayed
from .compound import Both, Compound, Through
from .cpu import pair_sums as running
from .cpu.groups import Groups
from .cpu.strips import Strips
from .index_algebra import IndexTable
from .kinds import Copied, Diagonal, Empty, Full, Function, Gather, Pairs, Segments, Triangular
from .spanned import Spanned

if TYPE_CHECKING:
    from .base import Relation

BACKENDS = ("auto", "numpy", "numba", "jax")


class Plan(Displayed):
    """red_R ready to run, made by `R.plan()`. Arrays have the axes of X first, those of their values behind.

    >>> import riesz as rz, numpy as np
    >>> plan = rz.relations.segments([0, 2, 5]).plan()
    >>> plan(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 3., 12.])
    >>> plan.adjoint(np.array([1.0, 2.0]))
    array([1., 1., 2., 2., 2.])
    >>> plan
    red_{2 segments of 5}: segmented sum, its adjoint: repetition
    """

    def __init__(self, relation: Relation, backend: str = "auto") -> None:
        if backend not in BACKENDS:
            raise RelationError(f"a plan runs on one of {', '.join(BACKENDS)}; got {backend!r}")
        if backend == "numba" and not running.numba_installed():
            other = "or leave the choice to backend='auto'"
            raise RelationError(f"Numba is not installed: pip install 'riesz[numba]', {other}")
        self.relation = relation
        self.backend = backend
        self._shapes: dict[Any, tuple[tuple[int, int, int], tuple[int, ...]]] = {}

    def __call__(self, v: Any) -> Any:
        """red_R v."""
        given: Any = v if hasattr(v, "dtype") else np.asarray(v)
        shape = tuple(given.shape)
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = shaped(self.relation, shape)
        seen, result = found
        theirs = self.backend == "auto" and type(given).__module__.partition(".")[0] in ("jax", "jaxlib")
        if theirs or self.backend == "jax":
            from .jax.reduction_in_jax import apply

            return apply(self.relation, given if given.dtype.kind not in "biu" else given.astype(float), seen, result)
        given = np.asarray(given, given.dtype if given.dtype.kind in "fc" else float)
        token = running.backend.set(self.backend)
        try:
            y = self.relation.reduce(given.reshape(seen)).reshape(result)
        finally:
            running.backend.reset(token)
        return y if y.flags.writeable and not np.may_share_memory(y, given) else y.copy()

    @cached_property
    def adjoint(self) -> Plan:
        """The plan of the converse; what was prepared is shared."""
        return self.relation.converse.plan(self.backend)

    def explain(self) -> str:
        """What runs, in words, with sizes.

        >>> import riesz as rz
        >>> print(rz.relations.window(rz.seg(100), 12).plan().explain())
        red : V^100 ⊸ V^89, 1,068 pairs, 0 bytes stored
        forward: a window in stages: (3 slices in tiles) then (4 slices in tiles)
        adjoint: a window in stages: (4 slices in tiles) then (3 slices in tiles)
        on: NumPy
        """
        R = self.relation
        first = f"red : V^{R.source} ⊸ V^{R.target}, {R.count:,} pairs, {stored(R):,} bytes stored"
        return f"{first}\nforward: {words(R)}\nadjoint: {words(R.converse)}\non: {self._where()}"

    def _where(self) -> str:
        if self.backend == "jax":
            return "JAX"
        if self.backend == "numpy" or not looped(self.relation):
            return "NumPy"
        if self.backend == "numba":
            return "Numba"
        if not running.numba_installed():
            return "NumPy and SciPy; pip install 'riesz[numba]' for compiled loops"
        return f"Numba; NumPy below {tuning.COMPILED_PAIR_LOOPS_FROM:,} numbers; JAX for JAX arrays"

    def __repr__(self) -> str:
        return f"red_{{{self.relation!r}}}: {words(self.relation)}, its adjoint: {words(self.relation.converse)}"


def shaped(relation: Relation, shape: tuple[int, ...]) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """The three axes that values of a shape are seen with, and the shape of the result."""
    X, Y = relation.source, relation.target
    axes = len(X.box) if X.box is not None and shape[: len(X.box)] == X.box else 1
    if shape[:axes] not in (X.box, (X.size,)):
        due = f"not {X.box or (X.size,)} followed by axes of the values"
        raise RelationError(f"this plan reduces values over {X}; got an array of shape {shape}, {due}")
    rest = shape[axes:]
    lead = Y.box if Y.box is not None and (axes != 1 or len(Y.box) <= 1 or X.box == (X.size,)) else (Y.size,)
    return (1, X.size, math.prod(rest)), (*lead, *rest)


def words(relation: Relation) -> str:
    """How a relation is reduced."""
    match relation:
        case Full():
            return "one sum, repeated" if relation.target.size > 1 else "one sum"
        case Function() | Segments(turned=False):
            return "segmented sum"
        case Segments():
            return "repetition"
        case Copied(tile=tile):
            return "a slice" if tile is None else "a slice put into zeros"
        case Triangular(lower=lower):
            return "running sum" if lower else "running sum from the end"
        case Both(first=first, second=second):
            return f"({words(first)}) along the first axes, ({words(second)}) along the others"
        case Through(members=members):
            return " then ".join([f"({words(r)})" for r in members])
        case Compound(members=members):
            return " and ".join(dict.fromkeys([f"{words(r)}" for r in members])) or "zeros"
        case Spanned(stages=stages) if stages is not None:
            return f"a window in stages: {words(stages)}"
        case Spanned() if relation.span.affine:
            return f"{len(relation.pieces)} slices in tiles" if len(relation.pieces) != 1 else "a slice to a slice"
        case _:
            known: dict[type, str] = {Empty: "zeros", Diagonal: "nothing to do", Gather: "gather"}
            return known.get(type(relation), "sparse product")


def looped(relation: Relation) -> bool:
    """Whether compiled loops are of use: for sums over pairs, gathers and running sums, not for slices."""
    looping = (Function, Gather, Pairs, Segments, Triangular)
    parts = parts_of(relation)
    return any([isinstance(r, looping) or (isinstance(r, Spanned) and not r.span.affine) for r in parts])


def parts_of(relation: Relation) -> list[Relation]:
    """A relation and those it is made of."""
    members = [getattr(relation, name) for name in ("first", "second") if hasattr(relation, name)]
    return [relation, *[r for m in (*members, *getattr(relation, "members", ())) for r in parts_of(m)]]


def stored(relation: Relation) -> int:
    """How many bytes the pairs of a relation take, with what its plan added."""
    total = 0
    for r in parts_of(relation):
        maps = [m for m in (*r.left, *r.right) if isinstance(m, IndexTable)] if isinstance(r, Spanned) else []
        arrays = [*r.parts(), *[m.array for m in maps]]
        made: list[Any] = [r.__dict__.get("groups"), *(r.known.values() if isinstance(r, Function) else ())]
        total += sum([a.nbytes for a in arrays if getattr(a, "strides", (0,)) != (0,)])
        total += sum([g.bytes for g in made if isinstance(g, (Groups, Strips))])
    return total
