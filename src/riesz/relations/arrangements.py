"""Which device has which elements of the sets of a relation: sets in a new order, so that each device's part is a
block of equal length."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ..errors import RelationError
from .base import Relation, freeze
from .index_sets import Array, Indices, Set, seg
from .kinds import Function

KINDS = "'contiguous', 'degree', 'metis', or the device of each element as an array"


class Arrangement(NamedTuple):
    """Sets of a relation in the order of devices, made by `R.arranged(devices, by=…)`. `relation` is R between the sets
    in the new order, filled up to blocks of equal length; `sources` and `targets` go from the old order to the new one.

    >>> import numpy as np, riesz as rz
    >>> R = rz.relation(rz.seg(4), rz.seg(4), [(0, 2), (2, 0), (1, 3), (3, 1)])
    >>> parts = R.arranged(2, by=[0, 1, 0, 1])
    >>> v = np.arange(4.0)
    >>> parts.placed(v).tolist(), parts.back(parts.relation.plan()(parts.placed(v))).tolist()
    ([0.0, 2.0, 1.0, 3.0], [2.0, 3.0, 0.0, 1.0])
    """

    devices: int
    sources: Relation
    targets: Relation
    relation: Relation

    def placed(self, v: Any) -> Any:
        """Values at the sources, in the new order; zeros where blocks are filled up."""
        return self.sources.plan()(v)

    def back(self, w: Any) -> Any:
        """Values at the targets, in the old order."""
        return self.targets.converse.plan()(w)


def arranged(relation: Relation, devices: int, by: Any) -> Arrangement:
    """The sets of a relation as devices are to have them; where it goes from a set to itself, both in one order."""
    X, Y = relation.source, relation.target
    if isinstance(cast(Any, devices), bool) or int(devices) != devices or devices < 1:
        raise RelationError(f"devices is how many there are, 1 or more; got {devices!r}")
    owners = _owners(relation, int(devices), by)
    sources = _order(X, owners[0], devices)
    targets = sources if X is Y and owners[0] is owners[1] else _order(Y, owners[1], devices)
    return Arrangement(devices, sources, targets, sources.converse.then(relation).then(targets))


def _order(index: Set, owner: Array, devices: int) -> Relation:
    """From a set to the blocks of devices; within a block elements keep their order."""
    counts = np.bincount(owner, minlength=devices)
    block = max(1, int(counts.max(initial=0)))
    order = np.argsort(owner, kind="stable")
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = owner[order] * block + rank
    return Function(index, seg(devices * block), freeze(place))


def _owners(relation: Relation, devices: int, by: Any) -> tuple[Array, Array]:
    """The device of each source and of each target."""
    same = relation.source is relation.target
    m, n = relation.source.size, relation.target.size
    if isinstance(by, str):
        match by:
            case "contiguous":
                first = np.arange(m) // max(1, -(-m // devices))
                return (first, first) if same else (first, np.arange(n) // max(1, -(-n // devices)))
            case "degree":
                if same:
                    both = _dealt(relation.out_degrees + relation.in_degrees, devices)
                    return both, both
                return _dealt(relation.out_degrees, devices), _dealt(relation.in_degrees, devices)
            case "metis":
                return _by_metis(relation, devices)
            case _:
                raise RelationError(f"by is {KINDS}; got {by!r}")
    if isinstance(by, tuple) and len(cast("tuple[Any, ...]", by)) == 2:
        first, second = cast("tuple[Any, Any]", by)
        return _given(first, relation.source, devices), _given(second, relation.target, devices)
    if not same:
        raise RelationError(
            f"the relation goes from {relation.source} to {relation.target}: give the devices of both, "
            "by=(devices of the sources, devices of the targets)"
        )
    owner = _given(by, relation.source, devices)
    return owner, owner


def _given(by: Any, index: Set, devices: int) -> Array:
    owner = np.asarray(by)
    if owner.shape != (index.size,) or (owner.size and owner.dtype.kind not in "iu"):
        what = f"an array of shape {owner.shape} and type {owner.dtype}"
        raise RelationError(f"by has a device for each of {index.size} elements of {index}, or is {KINDS}; got {what}")
    if owner.size and (owner.min() < 0 or owner.max() >= devices):
        raise RelationError(f"devices are 0 to {devices - 1}; by has {owner.min()} to {owner.max()}")
    return owner.astype(np.intp)


def _dealt(degrees: Indices, devices: int) -> Array:
    """Elements dealt to devices in turn, to and fro, those with most pairs first: hubs are apart."""
    order = np.argsort(-degrees, kind="stable")
    turn, place = np.divmod(np.arange(len(order)), devices)
    owner = np.empty(len(order), dtype=np.intp)
    owner[order] = np.where(turn % 2, devices - 1 - place, place)
    return owner


def _by_metis(relation: Relation, devices: int) -> tuple[Array, Array]:
    """Parts with few pairs between them: of the set, or of sources and targets together."""
    try:
        import pymetis  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RelationError("by='metis' needs pymetis: pip install pymetis, or take by='degree'") from None
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    same, m = relation.source is relation.target, relation.source.size
    rows, cols, _ = relation.pairs()
    ends = cols if same else m + cols
    size = m if same else m + relation.target.size
    kept = rows != ends
    one = np.ones(int(kept.sum()), dtype=np.int32)
    graph = cast(Any, sparse).csr_array((one, (rows[kept], ends[kept])), shape=(size, size))
    graph = (graph + graph.T).tocsr()
    module = cast(Any, pymetis)
    adjacency = module.CSRAdjacency(graph.indptr.astype(np.intp), graph.indices.astype(np.intp))
    _, found = module.part_graph(devices, adjacency=adjacency)
    owner = np.asarray(found, dtype=np.intp)
    return (owner, owner) if same else (owner[:m], owner[m:])
