"""Relations between index sets, with multiplicities, compact and algebraic   (§2.2.3).

>>> import numpy as np, riesz as rz
>>> rz.red(rz.relations.shift(rz.seg(3), 1))(np.array([1.0, 2.0, 3.0]))
array([0., 1., 2.])
"""

from typing import TYPE_CHECKING, Any

from .algebra import blocks, fused, named
from .base import Relation, freeze, frozen
from .compound import Beside, Both, Sum, Through, Union
from .constructors import (
    diagonal,
    edges,
    empty,
    full,
    function,
    gather,
    pairs,
    permutation,
    point,
    relation,
    segments,
    shift,
    sliced,
    stride,
    triangular,
    triangular_strict,
    window,
)
from .kinds import Diagonal, Empty, Full, Function, Gather, Pairs, Place, Point, Range, Segments, Triangular
from .spanned import Spanned

if TYPE_CHECKING:
    from .counts import Counted, Lattice, Near, Uniform, counted
    from .tables import Grouping, group_by, join, table


__all__ = [
    "Beside",
    "Both",
    "Counted",
    "Diagonal",
    "Empty",
    "Full",
    "Function",
    "Gather",
    "Grouping",
    "Lattice",
    "Near",
    "Pairs",
    "Place",
    "Point",
    "Range",
    "Relation",
    "Segments",
    "Spanned",
    "Sum",
    "Through",
    "Triangular",
    "Uniform",
    "Union",
    "blocks",
    "counted",
    "diagonal",
    "edges",
    "empty",
    "freeze",
    "frozen",
    "full",
    "function",
    "fused",
    "gather",
    "group_by",
    "join",
    "named",
    "pairs",
    "permutation",
    "point",
    "relation",
    "segments",
    "shift",
    "sliced",
    "stride",
    "table",
    "triangular",
    "triangular_strict",
    "window",
]


if not TYPE_CHECKING:  # type checkers flag names that are not there

    def __getattr__(name: str) -> Any:
        """Tables, and relations that are only counted, are loaded when they are asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import counts, tables

        return getattr(counts if hasattr(counts, name) else tables, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
