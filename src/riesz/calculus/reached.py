"""Which places of a tangent or cotangent anything reaches at all   (Note [Strong] in ops/op.py).

A slice, a selection, a triangle leave places that nothing reaches: zeros that are no numbers. What such a place meets,
inf or nan, leaves no trace. A number that happens to be 0 is another matter: 0 · ∞ is nan. So places are known by
masks, apart from the numbers: truth values of the shape of the vector, made by the same steps as the vector itself, and
only when a product asks for them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..ops.discrete_fourier import Transform, mixed_axes
from ..ops.domain import Domain, Leaf
from ..ops.op import Cast, Combination, Contraction, Elementwise, Op, Reduction, Reshape, contraction
from ..ops.opaque import Discrete, Put, Ruled, Select, Take
from ..programs.axis.scalars import TRUTHS
from ..programs.program import Constant, Program
from ..relations import Relation
from ..spaces.formal_vectors import Formal, dense
from ..terms.primitives import larger, larger_number, smaller_number

Shape = tuple[int, ...]

NONZERO = Discrete(np.not_equal)
BOTH = Discrete(np.logical_and)
EITHER = Discrete(np.logical_or)


class Reach:
    """A mask made when it is first asked for, from other masks; None stands for a mask that is true everywhere."""

    __slots__ = ("found", "make", "parts")

    def __init__(self, make: Callable[[list[Any]], Any], parts: Sequence[Reach | None] = ()) -> None:
        self.make: Callable[[list[Any]], Any] | None = make
        self.parts = tuple(parts)
        self.found: Any = None

    @property
    def mask(self) -> Any:
        """The mask; None where everything is reached."""
        stack: list[Reach] = [self]
        while stack:  # programs are longer than Python's stack
            top = stack[-1]
            waiting = [p for p in top.parts if p is not None and p.make is not None] if top.make is not None else []
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if top.make is not None:
                top.found = top.make([None if p is None else p.found for p in top.parts])
                top.make, top.parts = None, ()
        return self.found


ZEROS = Reach(lambda _: None)
"""Of a vector whose zeros are the places that nothing reaches: what comes out of a sub-program, of which no more is
known. A mask made of the vector would not be linear."""


def truth(domain: Domain[Leaf], leaf: Leaf) -> bool:
    """Whether a leaf is known to hold truth values: they only select, and are finite."""
    if not isinstance(domain, Program):
        return np.asarray(leaf).dtype.kind == "b"
    op = domain.ops[cast(int, leaf)]
    return type(op) is Discrete and op.function in TRUTHS


def known_finite(domain: Domain[Leaf], leaf: Leaf) -> bool:
    """Whether a coefficient is known to be finite: numbers, a constant of a program, or shares of a choice."""
    if not isinstance(domain, Program):
        return type(leaf) is not tuple and bool(np.isfinite(dense(leaf)).all())
    op = domain.ops[cast(int, leaf)]
    if type(op) is Constant:
        return type(op.value) is not Formal and bool(np.isfinite(op.value).all())
    shares = type(op) is Elementwise and op.primitive in (larger, larger_number, smaller_number)
    return shares or truth(domain, cast(int, leaf))


def nonzero(domain: Domain[Leaf], leaf: Leaf) -> Leaf:
    """Where a leaf is not 0."""
    return leaf if truth(domain, leaf) else domain.step(NONZERO, (leaf, domain.const(0.0)))


def _counted(domain: Domain[Any], mask: Any, shape: Shape = ()) -> Any:
    """A mask as numbers, to be added up; ones where everything is reached."""
    if mask is None:
        return domain.const(np.broadcast_to(1.0, shape) if shape else 1.0)
    return domain.step(Select(), (mask, domain.const(1.0), domain.const(0.0)))


Reaches = Sequence["Reach | None"]


def of_step(
    domain: Domain[Any], op: Any, reach: Reaches, shapes: Sequence[Shape], shape: Shape, more: Sequence[Any] = ()
) -> Reach | None:
    """What a linear step reaches, from what its arguments reach; `more` are arguments that are no vectors."""
    if type(op) is Combination:
        return union(domain, reach, shapes, shape)
    if type(op) in (Reduction, Contraction, Put) or (isinstance(op, (Reshape, Take)) and reach[0] is not None):
        return after(domain, op, reach, shapes, more)
    return reach[0] if isinstance(op, (Cast, Reshape, Take)) else somewhere(domain, reach[0], shapes[0], shape, op)


def after(
    domain: Domain[Leaf], op: Op, reach: Reaches, shapes: Sequence[Shape], more: Sequence[Leaf] = ()
) -> Reach | None:
    """What a step that moves and adds numbers reaches; `more` are arguments that are no vectors."""
    if ZEROS in reach:
        return ZEROS
    if not more and all([r is None for r in reach]) and _places(op, tuple(shapes)) is None:
        return None

    def make(masks: list[Any]) -> Any:
        if not more and all([m is None for m in masks]):
            found = _places(op, tuple(shapes))
            return None if found is None else domain.const(found)
        counts = [_counted(domain, m, s) for m, s in zip(masks, shapes, strict=True)]
        return nonzero(domain, domain.step(op, [*counts, *more]))

    return Reach(make, reach)


def _places(op: Op, shapes: tuple[Shape, ...]) -> Any:
    """The places of the result that a step reaches, None if these are all: remembered with the step."""
    if type(op) is not Reduction and not (type(op) is Contraction and op.repeats):
        return None
    known: dict[Any, Any] = cast(Any, op.__dict__).setdefault("_places", {})
    if shapes not in known:
        if type(op) is Reduction and any([_counts_only(r) for r in op.relations]):
            known[shapes] = None  # nobody knows better
        elif type(op) is Reduction:
            flat, whole = Reduction(op.relations, 0), op.shape_of(shapes)
            hit = np.asarray(flat.run(*[np.ones(r.source.box or ()) for r in op.relations])) != 0
            shown = hit.reshape((*(1,) * op.axis, *hit.shape, *(1,) * (len(whole) - op.axis - hit.ndim)))
            known[shapes] = None if hit.all() else np.array(np.broadcast_to(shown, whole), order="C")
        else:
            hit = np.asarray(op.run(*[np.ones(s) for s in shapes])) != 0
            known[shapes] = None if hit.all() else hit
    return known[shapes]


def _counts_only(relation: Relation) -> bool:
    """Whether nobody knows which pairs a relation has."""
    return relation.counted or any([isinstance(part, Relation) and part.counted for part in relation.parts()])


def union(domain: Domain[Any], parts: Reaches, shapes: Sequence[Shape], shape: Shape) -> Reach | None:
    """What a sum reaches."""
    if any([r is None and s == shape for r, s in zip(parts, shapes, strict=True)]) or all([r is None for r in parts]):
        return None
    if ZEROS in parts:
        return ZEROS

    def make(masks: list[Any]) -> Any:
        if any([m is None and s == shape for m, s in zip(masks, shapes, strict=True)]):
            return None
        found: Any = None
        for m, s in zip(masks, shapes, strict=True):
            one = domain.const(np.broadcast_to(True, s) if s else True) if m is None else m
            found = one if found is None else domain.step(EITHER, (found, one))
        return found

    return parts[0] if len(parts) == 1 and shapes[0] == shape else Reach(make, parts)


def through(
    domain: Domain[Leaf],
    op: Contraction,
    k: int,
    before: Reach | None,
    masks: Sequence[tuple[int, Leaf]],
    shapes: Sequence[Shape],
) -> Reach | None:
    """What a product reaches, whose argument k is a vector: where the selecting arguments let its sums through."""
    if not masks and before is None and not op.repeats:
        return None
    which = (k, *[i for i, _ in masks])
    have, sizes = {label for i in which for label in op.labels[i]}, op.sizes(tuple(shapes))
    extra = {label: sizes[label] for label in op.out if label not in have}
    joint = contraction(tuple([op.labels[i] for i in which]), op.out, extra)  # the sum over the labels that go
    if not masks or before is ZEROS:
        return ZEROS if before is ZEROS else after(domain, joint, [before], [shapes[k]])

    def make(found: list[Any]) -> Any:
        weights = [nonzero(domain, m) for _, m in masks]
        if all([op.labels[i] == op.out for i in which]) and not op.repeats:
            chosen = weights if found[0] is None else [*weights, found[0]]
            return functools.reduce(lambda total, w: domain.step(BOTH, (total, w)), chosen)
        counts = [_counted(domain, found[0], shapes[k]), *[_counted(domain, w) for w in weights]]
        return nonzero(domain, domain.step(joint, counts))

    return Reach(make, (before,))


def somewhere(domain: Domain[Any], before: Reach | None, source: Shape, target: Shape, op: Any = None) -> Reach | None:
    """What a map that mixes everything reaches: all places or none, in each part of a step that acts on parts."""
    if before is None or before is ZEROS:
        return before
    n, m = len(source), len(target)
    apart: list[int] = []
    if isinstance(op, Transform):
        rank, mixed = mixed_axes(op, source, target)
        apart = [i for i in range(rank) if i not in mixed]
    elif isinstance(op, Ruled) and op.smooth.mixes is not None:
        apart = [i for i in range(n) if i - n not in op.smooth.mixes]
    out = [i if i in apart else n + i for i in range(m)]
    extra = {k: size for k, size in zip(out, target, strict=True) if k >= n}
    count = contraction((tuple(range(n)),), tuple(out), extra)
    return after(domain, count, [before], [source]) if math.prod(source) else None


def guarded(op: Contraction, k: int) -> Contraction:
    """The product with a mask as one more argument: where argument k is reached (Note [Strong] in ops/op.py)."""
    return contraction((*op.labels, op.labels[k]), op.out, dict(op.extra), (*op.strong, len(op.labels)), k)
