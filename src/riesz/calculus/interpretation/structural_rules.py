"""Interpretation of the combinators of direct sums and copowers: mostly wiring; red_R, Σ and rep are steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...ops.domain import Domain
from ...ops.op import Combination, Reduction, contraction
from ...programs.program import outputs
from ...relations import Empty, Place, Point, blocks
from ...relations.index_sets import Plus, Product, Seg, Set, boxes, unit
from ...runtime import later
from ...runtime.stackless import Rule
from ...spaces.space import Copower, DirectSum, Space
from ...terms import sums
from ...terms.sums import BlockDiag, Fork, Inject, Join, Map, Pack, Par, Project, Reduce, Regroup, Rep, Scan, Total, Zip
from ...terms.term import Combine, Const, Id, ZeroMap
from ...terms.unitary import Assoc, Bra, Distrib, Ket, Unassoc, Unbra, Undistrib, Unket
from ...terms.weights import Equip, Forget
from .value_trees import Shape, Tree, leaves_of, repeated, zero_tree


def _const(t: Const, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    held = [repeated(D.const(v), leaf.shape, (), lead, D) for v, leaf in zip(t.leaves, t.target.leaves, strict=True)]
    return t.target.tree(held)


def _parts(t: Par | BlockDiag | Join, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Rule:
    """Π f_x, and [f_x], the sum of what it gives."""
    done: list[Tree[Any]] = []
    for f, part in zip(t.terms, x, strict=True):
        done.append((yield f, part, lead))
    return combine((1.0,) * len(done), done, t.codomain, D) if type(t) is Join else tuple(done)


def _each(t: Fork | Combine, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Rule:
    """⟨f_y⟩, and Σ kᵢ·fᵢ, the combination of what it gives."""
    done: list[Tree[Any]] = []
    for f in t.terms:
        done.append((yield f, x, lead))
    return combine(t.coefficients, done, t.codomain, D) if isinstance(t, Combine) else tuple(done)


def combine(coefficients: tuple[float, ...], trees: list[Tree[Any]], space: Space, D: Domain[Any]) -> Tree[Any]:
    """Σ kᵢ · treeᵢ, leaf by leaf."""
    op = Combination(coefficients)
    return space.tree([D.step(op, row) for row in zip(*[leaves_of(x) for x in trees], strict=True)])


def _map(t: Map, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Rule:
    """f^X by the structure of X: a segment is an axis, × curries, + is a family."""
    match t.index:
        case Seg(n=n):
            return (yield t.term, x, (*lead, n))
        case Set(box=tuple() as box):
            return (yield t.term, x, (*lead, *box))
        case Plus(summands=parts):
            done: list[Tree[Any]] = []
            for part, inside in zip(parts, x, strict=True):
                done.append((yield Map(t.term, part), inside, lead))
            return tuple(done)
        case Product(factors=(first, *rest)):
            return (yield Map(Map(t.term, Product(tuple(rest))), first), x, lead)
        case _:
            raise TypeError(f"not an index set: {t.index!r}")


def _zip(t: Zip, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    """Component by component, each over X → over X, each a row of components: a permutation of leaves."""
    first = t.space.summands[0]
    if not isinstance(first, Copower):
        return tuple(zip(*x, strict=True))
    given, order = leaves_of(x), _zipped_order(t.space, first.index)
    return t.codomain.tree([given[i] for i in order])


def _unzip(t: sums.Unzip, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    first, count = t.space.summands[0], len(t.space.summands)
    if not isinstance(first, Copower):
        return tuple(zip(*x, strict=True)) if x else ((),) * count
    given, order = leaves_of(x), _zipped_order(t.space, first.index)
    return t.codomain.tree([given[i] for i in sorted(range(len(order)), key=order.__getitem__)])


def _zipped_order(space: DirectSum, index: Set) -> list[int]:
    """Where each leaf of the zipped value comes from: box by box instead of component by component."""
    widths = [len(cast(Copower, s).base.leaves) for s in space.summands]
    parts = len(boxes(index))
    starts = [parts * sum(widths[:i]) for i in range(len(widths))]
    return [starts[i] + box * w + j for box in range(parts) for i, w in enumerate(widths) for j in range(w)]


def _project(t: Project, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    at = t.position
    return x[at] if isinstance(t.space, DirectSum) else component(cast(Copower, t.space), x, at, lead, D)


def component(space: Copower, x: Tree[Any], position: int, lead: Shape, D: Domain[Any]) -> Tree[Any]:
    """The component of an element of V^X at one position."""
    which, box, local = _place(space.index, position)
    count = len(space.base.leaves)
    op = Reduction((Point(box, unit, local),), len(lead))
    return space.base.tree([D.step(op, (leaf,)) for leaf in leaves_of(x)[which * count : (which + 1) * count]])


def _place(index: Set, position: int) -> tuple[int, Set, int]:
    """Which box of an index set a position lies in, and where in it."""
    for which, (box, at) in enumerate(boxes(index)):
        if at is None:
            return which, box, position
        found = (at == position).nonzero()[0]
        if len(found):
            return which, box, int(found[0])
    raise IndexError(position)


def _inject(t: Inject, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    if isinstance(t.space, DirectSum):
        parts = t.space.summands
        return tuple([x if i == t.position else zero_tree(s, lead, D) for i, s in enumerate(parts)])
    space = cast(Copower, t.space)
    which, box, local = _place(space.index, t.position)
    op = Reduction((Place(unit, box, local),), len(lead))
    placed = [D.step(op, (leaf,)) for leaf in leaves_of(x)]
    others = [D.zeros((*lead, *leaf.shape)) for leaf in space.leaves]
    others[which * len(placed) : (which + 1) * len(placed)] = placed
    return space.tree(others)


def _unpack(t: sums.Unpack, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    return tuple([component(Copower(t.base, t.index), x, i, lead, D) for i in range(t.index.size)])


def _pack(t: Pack, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    pieces = [leaves_of(part) for part in x]
    made: list[Any] = []
    for box, at in boxes(t.index):
        members = range(t.index.size) if at is None else [int(p) for p in at]
        places = tuple([Place(unit, box, i) for i in range(box.size)])
        for j, leaf in enumerate(t.base.leaves):
            empty = D.zeros((*lead, *(box.box or ()), *leaf.shape))
            made.append(D.step(Reduction(places, len(lead)), [pieces[p][j] for p in members]) if places else empty)
    return Copower(t.base, t.index).tree(made)


def _reduce(t: Reduce, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    """red_R, box by box: the blocks that reach one box of Y are joined."""
    given, count = leaves_of(x), len(t.base.leaves)
    made: list[Any] = []
    for row, (box, _) in zip(blocks(t.relation), boxes(t.relation.target), strict=True):
        for j, leaf in enumerate(t.base.leaves):
            parts = [(r, given[i * count + j]) for i, r in enumerate(row) if not isinstance(r, Empty)]
            if parts:
                made.append(D.step(Reduction(tuple([r for r, _ in parts]), len(lead)), [v for _, v in parts]))
            else:
                made.append(D.zeros((*lead, *(box.box or ()), *leaf.shape)))
    return t.codomain.tree(made)


def _fold(t: sums.Fold, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    """max_R and its kin, at each place of V: NumPy code, as a program."""
    given, count = leaves_of(x), len(t.base.leaves)
    programs = [later.fold_program(t.relation, t.how, lead, leaf.shape) for leaf in t.base.leaves]
    columns = [outputs(p, D, given[j::count]) for j, p in enumerate(programs)]
    return t.codomain.tree([leaf for row in zip(*columns, strict=True) for leaf in row])


def _rep(t: Rep, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Any:
    if t.only is not None:
        return _by_definition(t, x, lead, D)
    given = list(zip(leaves_of(x), t.base.leaves, strict=True))
    every = [(value, leaf.shape, box.box or ()) for box, _ in boxes(t.index) for value, leaf in given]
    return t.codomain.tree([repeated(value, shape, lead, sizes, D) for value, shape, sizes in every])


def _total(t: Total, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Any:
    if t.only is not None:
        return _by_definition(t, x, lead, D)
    given, count, rows = leaves_of(x), len(t.base.leaves), list[Any]()
    for i, (box, _) in enumerate(boxes(t.index)):
        first, behind = len(lead), len(lead) + len(box.box or ())
        row: list[Any] = []
        for value, leaf in zip(given[i * count : (i + 1) * count], t.base.leaves, strict=True):
            labels = tuple(range(behind + len(leaf.shape)))
            row.append(D.step(contraction((labels,), (*labels[:first], *labels[behind:])), (value,)))
        rows.append(tuple(row))
    if len(rows) < 2:
        return t.base.tree(leaves_of(rows[0])) if rows else zero_tree(t.base, lead, D)
    return combine((1.0,) * len(rows), rows, t.base, D)


def _by_definition(t: Any, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Rule:
    return (yield t.definition, x, lead)


def _same(t: Any, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    return x


STRUCTURE: dict[type, Callable[[Any, Tree[Any], Shape, Domain[Any]], Any]] = {
    **dict.fromkeys((Id, Forget, Equip, Bra, Unbra, Ket, Unket, Assoc, Unassoc, Distrib, Undistrib), _same),
    Regroup: lambda t, x, lead, D: t.codomain.tree(leaves_of(x)),
    Const: _const,
    ZeroMap: lambda t, x, lead, D: zero_tree(t.target, lead, D),
    **dict.fromkeys((Par, BlockDiag, Join), _parts),
    **dict.fromkeys((Fork, Combine), _each),
    sums.Add: lambda t, x, lead, D: combine((1.0,) * len(x), list(x), t.codomain, D),
    sums.Dup: lambda t, x, lead, D: (x,) * len(t.space.summands),
    Map: _map,
    Zip: _zip,
    sums.Unzip: _unzip,
    Project: _project,
    Inject: _inject,
    sums.Unpack: _unpack,
    Pack: _pack,
    Reduce: _reduce,
    sums.Fold: _fold,
    Rep: _rep,
    Total: _total,
    Scan: _by_definition,
}
