"""A relation of every kind, from random numbers: others of the same kind have the same sizes."""

import numpy as np

from riesz import relations, seg
from riesz.relations import (
    Beside,
    Both,
    Function,
    Gather,
    Pairs,
    Relation,
    Segments,
    Spanned,
    Sum,
    Through,
    Union,
)


def function(rng, n: int = 31, m: int = 13) -> Relation:
    return relations.function(seg(n), seg(m), rng.integers(0, m, n))


def edges(rng, several: bool = False) -> Relation:
    """The same graph with other names for its vertices: groups of the same sizes, in another order."""
    rows, cols = np.array([0, 0, 1, 2, 3, 3, 3, 5, 6, 6]), np.array([4, 1, 4, 4, 0, 1, 2, 4, 4, 3])
    rows, cols = rng.permutation(7)[rows], rng.permutation(5)[cols]
    if not several:
        return relations.edges(seg(7), seg(5), rows, cols)
    order = np.lexsort((cols, rows))
    return Pairs(seg(7), seg(5), *[relations.freeze(a) for a in (rows[order], cols[order], rng.integers(1, 5, 10))])


def segments(rng) -> Relation:
    return relations.segments(np.concatenate([[0], np.cumsum(rng.permutation([0, 1, 1, 2, 5, 9, 70]))]))


KINDS = {
    "function": (Function, function),
    "gather": (Gather, lambda rng: function(rng).converse),
    "segments": (Segments, segments),
    "segments repeated": (Segments, lambda rng: segments(rng).converse),
    "pairs": (Pairs, lambda rng: edges(rng, several=True)),
    "span with arrays": (Spanned, edges),
    "product": (Both, lambda rng: relations.triangular_strict(seg(4)) * function(rng, 9, 5)),
    "sum": (Sum, lambda rng: function(rng, 9, 5) + edges(rng)),
    "union": (Union, lambda rng: function(rng, 9, 9) | relations.shift(seg(9), 2)),
    "side by side": (Beside, lambda rng: Beside(seg(9) + seg(7), seg(5), (function(rng, 9, 5), edges(rng)))),
    "in turn": (Through, lambda rng: Through(seg(7), seg(3), (edges(rng), function(rng, 5, 3)))),
}
