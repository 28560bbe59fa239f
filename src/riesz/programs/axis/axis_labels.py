"""Which axes of a step have one index: a label for each axis of its result and of its arguments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Shape
from ...ops.opaque import Discrete, Put, Select, Strongly, Take

Labels = tuple[int, ...]


def axis_labels(op: Any, shapes: Sequence[Shape], shape: Shape) -> tuple[Labels, list[Labels]]:
    """Labels of the result and of each argument: axes with the same label run together, others are not known to.

    >>> axis_labels(2.0, [(3, 4)], (3, 4))
    ((0, 1), [(0, 1)])
    """
    rank = len(shape)
    out, fresh = tuple(range(rank)), itertools.count(rank)

    def new(n: int) -> Labels:
        return tuple(itertools.islice(fresh, n))

    match op:
        case Strongly(op=inner):
            return axis_labels(inner, shapes, shape)
        case float() | Elementwise() | Combination() | Cast() | Select() | Discrete(shaped=None):
            return out, [
                tuple([k if n == shape[k] else next(fresh) for k, n in enumerate(s, rank - len(s))]) for s in shapes
            ]
        case Contraction():
            return op.out, list(op.labels)
        case Reduction():  # relations side by side may start at sets of different ranks
            behind = out[op.axis + len(op.relations[0].target.box or ()) :]
            return out, [(*out[: op.axis], *new(len(r.source.box or ())), *behind) for r in op.relations]
        case Reshape():
            at = {_cut(shape, k): k for k in reversed(out)}
            kept = [at.pop(_cut(shapes[0], i), None) for i in range(len(shapes[0]))]
            return out, [tuple([next(fresh) if k is None else k for k in kept])]
        case Take():  # the leading axes of the positions are axes of both
            lead, inner = out[: op.batch], out[op.axis : op.axis + len(shapes[1]) - op.batch]
            return out, [(*out[: op.axis], *new(1), *out[op.axis + len(inner) :]), (*lead, *inner)]
        case Put():
            inner = new(op.rank)
            return out, [(*out[: op.axis], *inner, *out[op.axis + 1 :]), (*out[: op.batch], *inner)]
        case _:
            return out, [new(len(s)) for s in shapes]


def _cut(shape: Shape, k: int) -> tuple[int, int, int]:
    """An axis by its size and by how many numbers are before and after it: reshaping leaves it alone if these stay."""
    return shape[k], math.prod(shape[:k]), math.prod(shape[k + 1 :])
