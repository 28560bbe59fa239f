"""Interpretation of a term over any value domain, eval⟦t⟧ : V → W   (§5).

The interpreter knows composition, families and the layout of spaces; everything else it asks of the domain, one step at a time.
A value is a tree: nested tuples with the domain's leaves inside. Under f^X the leaves have leading axes, given by `lead`.
No recursion: a rule that needs subterms is a generator. A subterm with several parents is interpreted once per argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, cast

from ..errors import SpaceError
from ..interning import children
from ..ops import Combination, Declared, Elementwise, Get, Reduction, contraction
from ..relations import Empty, Place, Point, blocks
from ..sets import Plus, Product, Seg, Set, boxes, unit
from ..spaces import Copower, DirectSum, Space
from ..terms.core import Combine, Compose, Const, Id, Term, ZeroMap
from ..terms.declared import DeclaredBilinear, DeclaredLinear
from ..terms.primitives import Primitive
from ..terms.sums import Add, BlockDiag, Dup, Fork, Inject, Join, Map, Pack, Par, Project, Reduce, Regroup, Rep, Scan, Total, Unpack, Unzip, Zip
from ..terms.tensors import (
    Assoc,
    Bilinear,
    Bra,
    Contract,
    Distrib,
    Hadamard,
    Inner,
    Ket,
    Labelled,
    MatMul,
    MatVec,
    Outer,
    ScalarMul,
    Section,
    Transpose,
    Unassoc,
    Unbra,
    Undistrib,
    Unket,
)
from ..terms.weights import Equip, Forget, Represent, Weigh

Shape = tuple[int, ...]
Tree = Any

_STORE, _THEN, _RESUME = 0, 1, 2


def interpret(term: Term, value: Tree, domain: Any, lead: Shape = ()) -> Tree:
    """The value of a term over a domain."""
    shared = shared_subterms(term)
    memo: dict[Any, tuple[Tree, Tree]] = {}
    stack: list[tuple[int, Any, Any]] = []
    while True:
        # -- go down: the value of `term` at `value`
        hit = False
        if term in shared:
            key = (term, value, lead) if type(value) is int else (term, id(value), lead, None)
            if key in memo:
                value, hit = memo[key][1], True
            else:
                stack.append((_STORE, key, value))
        if not hit:
            if type(term) is Compose:
                stack.append((_THEN, term.outer, lead))
                term = term.inner
                continue
            answer = RULES[type(term)](term, value, lead, domain)
            if type(answer) is GeneratorType:
                stack.append((_RESUME, answer, lead))
                answer = None
            value = answer
        # -- go up: hand the value to whoever waits for it
        while stack:
            action, what, saved = stack[-1]
            if action == _THEN:
                stack.pop()
                term, lead = what, saved
                break
            if action == _STORE:
                stack.pop()
                memo[what] = (saved, value)
                continue
            try:
                asked = what.send(value)
            except StopIteration as done:
                stack.pop()
                value = done.value
                continue
            term, value, lead = asked
            break
        else:
            return value


def shared_subterms(term: Term) -> set[Term]:
    """The subterms with several parents that contain other terms."""
    seen: set[Term] = {term}
    shared: set[Term] = set()
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        inside: Any = (node.outer, node.inner) if type(node) is Compose else [c for c in children(node) if isinstance(c, Term)]
        for child in inside:
            if child not in seen:
                seen.add(child)
                stack.append(child)
            elif type(child) in COMPOSITE:
                shared.add(child)
    return shared


def leaves_of(tree: Tree) -> list[Any]:
    """The leaves of a tree, in order."""
    if type(tree) is not tuple:
        return [tree]
    found: list[Any] = []
    stack: list[Any] = [tree]
    while stack:
        part = stack.pop()
        if type(part) is tuple:
            stack.extend(reversed(cast("tuple[Any, ...]", part)))
        else:
            found.append(part)
    return found


# -- families and structure: generators where subterms are needed ---------------------------------------------------


def _keep(t: Any, x: Tree, lead: Shape, D: Any) -> Tree:
    return x


def _rebuild(t: Term, x: Tree, lead: Shape, D: Any) -> Tree:
    return t.codomain.tree(leaves_of(x))


def _const(t: Const, x: Tree, lead: Shape, D: Any) -> Tree:
    held = [_spread(D.const(v), leaf.shape, lead, D) for v, leaf in zip(t.leaves, t.target.leaves, strict=True)]
    return t.target.tree(held)


def _spread(value: Any, shape: Shape, lead: Shape, D: Any) -> Any:
    """A leaf repeated along new leading axes."""
    if not lead:
        return value
    labels = tuple(range(len(lead), len(lead) + len(shape)))
    new = tuple(range(len(lead)))
    return D.step(contraction((labels,), (*new, *labels), dict(zip(new, lead, strict=True))), (value,))


def _zero(t: ZeroMap, x: Tree, lead: Shape, D: Any) -> Tree:
    return zero_tree(t.target, lead, D)


def zero_tree(space: Space, lead: Shape, D: Any) -> Tree:
    """Zeros in the shape of a space."""
    return space.tree([D.zeros((*lead, *leaf.shape)) for leaf in space.leaves])


def _par(t: Par, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    done: list[Tree] = []
    for f, part in zip(t.terms, x, strict=True):
        done.append((yield f, part, lead))
    return tuple(done)


def _fork(t: Fork, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    done: list[Tree] = []
    for f in t.terms:
        done.append((yield f, x, lead))
    return tuple(done)


def _join(t: Join, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    done: list[Tree] = []
    for f, part in zip(t.terms, x, strict=True):
        done.append((yield f, part, lead))
    return combine((1.0,) * len(done), done, t.codomain, D)


def _combine(t: Combine, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    done: list[Tree] = []
    for f in t.terms:
        done.append((yield f, x, lead))
    return combine(t.coefficients, done, t.codomain, D)


def combine(coefficients: tuple[float, ...], trees: list[Tree], space: Space, D: Any) -> Tree:
    """Σ kᵢ · treeᵢ, leaf by leaf."""
    op = Combination(coefficients)
    return space.tree([D.step(op, row) for row in zip(*[leaves_of(x) for x in trees], strict=True)])


def _add(t: Add, x: Tree, lead: Shape, D: Any) -> Tree:
    return combine((1.0,) * len(x), list(x), t.codomain, D)


def _dup(t: Dup, x: Tree, lead: Shape, D: Any) -> Tree:
    return (x, x)


def _map(t: Map, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    """f^X by the structure of X: a segment is an axis, × curries, + is a family."""
    match t.index:
        case Seg(n=n):
            return (yield t.term, x, (*lead, n))
        case Set(box=tuple() as box):
            return (yield t.term, x, (*lead, *box))
        case Plus(summands=parts):
            done: list[Tree] = []
            for part, inside in zip(parts, x, strict=True):
                done.append((yield Map(t.term, part), inside, lead))
            return tuple(done)
        case Product(factors=(first, *rest)):
            return (yield Map(Map(t.term, Product(tuple(rest))), first), x, lead)
        case _:
            raise TypeError(f"not an index set: {t.index!r}")


def _transposed(rows: tuple[Tree, ...], index: Set) -> Tree:
    """A tuple of trees over X → the tree over X of tuples."""
    if index.box is not None:
        return rows
    if isinstance(index, Plus):
        return tuple([_transposed(tuple([r[i] for r in rows]), s) for i, s in enumerate(index.summands)])
    first, *rest = cast(Product, index).factors
    if first.box is not None:
        return _transposed(rows, Product(tuple(rest)))
    after = Product(tuple(rest))
    match first:
        case Plus(summands=parts):
            return tuple([_transposed(tuple([r[i] for r in rows]), Product((s, after))) for i, s in enumerate(parts)])
        case _:
            return _transposed(rows, Product((*cast(Product, first).factors, *rest)))


def _untransposed(tree: Tree, index: Set, count: int) -> tuple[Tree, ...]:
    """The inverse of `_transposed`."""
    if index.box is not None:
        return tree
    if isinstance(index, Plus):
        columns = [_untransposed(x, s, count) for x, s in zip(tree, index.summands, strict=True)]
        return tuple([tuple([c[i] for c in columns]) for i in range(count)])
    first, *rest = cast(Product, index).factors
    if first.box is not None:
        return _untransposed(tree, Product(tuple(rest)), count)
    after = Product(tuple(rest))
    match first:
        case Plus(summands=parts):
            columns = [_untransposed(x, Product((s, after)), count) for x, s in zip(tree, parts, strict=True)]
            return tuple([tuple([c[i] for c in columns]) for i in range(count)])
        case _:
            return _untransposed(tree, Product((*cast(Product, first).factors, *rest)), count)


def _zip(t: Zip, x: Tree, lead: Shape, D: Any) -> Tree:
    first = t.space.summands[0]
    return _transposed(x, first.index) if isinstance(first, Copower) else tuple(zip(*x, strict=True))


def _unzip(t: Unzip, x: Tree, lead: Shape, D: Any) -> Tree:
    first, count = t.space.summands[0], len(t.space.summands)
    if isinstance(first, Copower):
        return _untransposed(x, first.index, count)
    return tuple(zip(*x, strict=True)) if x else ((),) * count


def _project(t: Project, x: Tree, lead: Shape, D: Any) -> Tree:
    return x[t.position] if isinstance(t.space, DirectSum) else component(cast(Copower, t.space), x, t.position, lead, D)


def component(space: Copower, x: Tree, position: int, lead: Shape, D: Any) -> Tree:
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


def _inject(t: Inject, x: Tree, lead: Shape, D: Any) -> Tree:
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


def _unpack(t: Unpack, x: Tree, lead: Shape, D: Any) -> Tree:
    space = Copower(t.base, t.index)
    return tuple([component(space, x, i, lead, D) for i in range(t.index.size)])


def _pack(t: Pack, x: Tree, lead: Shape, D: Any) -> Tree:
    pieces = [leaves_of(part) for part in x]
    made: list[Any] = []
    for box, at in boxes(t.index):
        members = range(t.index.size) if at is None else [int(p) for p in at]
        places = tuple([Place(unit, box, i) for i in range(box.size)])
        for j, leaf in enumerate(t.base.leaves):
            empty = D.zeros((*lead, *(box.box or ()), *leaf.shape))
            made.append(D.step(Reduction(places, len(lead)), [pieces[p][j] for p in members]) if places else empty)
    return Copower(t.base, t.index).tree(made)


# -- relational reduction ---------------------------------------------------------------------------------------------


def _reduce(t: Reduce, x: Tree, lead: Shape, D: Any) -> Tree:
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


def _rep(t: Rep, x: Tree, lead: Shape, D: Any) -> Any:
    if t.only is not None:
        return _by_definition(t, x, lead, D)
    made: list[Any] = []
    given = leaves_of(x)
    for box, _ in boxes(t.index):
        sizes = box.box or ()
        for value, leaf in zip(given, t.base.leaves, strict=True):
            a = tuple(range(len(lead)))
            b = tuple(range(len(lead), len(lead) + len(sizes)))
            c = tuple(range(len(lead) + len(sizes), len(lead) + len(sizes) + len(leaf.shape)))
            made.append(D.step(contraction(((*a, *c),), (*a, *b, *c), dict(zip(b, sizes, strict=True))), (value,)))
    return t.codomain.tree(made)


def _total(t: Total, x: Tree, lead: Shape, D: Any) -> Any:
    if t.only is not None:
        return _by_definition(t, x, lead, D)
    given, count = leaves_of(x), len(t.base.leaves)
    parts: list[list[Any]] = []
    for i, (box, _) in enumerate(boxes(t.index)):
        row: list[Any] = []
        for value, leaf in zip(given[i * count : (i + 1) * count], t.base.leaves, strict=True):
            labels = tuple(range(len(lead) + len(box.box or ()) + len(leaf.shape)))
            kept = (*labels[: len(lead)], *labels[len(lead) + len(box.box or ()) :])
            row.append(D.step(contraction((labels,), kept), (value,)))
        parts.append(row)
    if not parts:
        return zero_tree(t.base, lead, D)
    if len(parts) == 1:
        return t.base.tree(parts[0])
    op = Combination((1.0,) * len(parts))
    return t.base.tree([D.step(op, column) for column in zip(*parts, strict=True)])


def _by_definition(t: Any, x: Tree, lead: Shape, D: Any) -> Iterator[Any]:
    return (yield t.definition, x, lead)


# -- products -----------------------------------------------------------------------------------------------------------


def _bilinear(t: Bilinear, x: Tree, lead: Shape, D: Any) -> Tree:
    return products(t, leaves_of(x[0]), lead, leaves_of(x[1]), lead, D)


def _section(t: Section, x: Tree, lead: Shape, D: Any) -> Tree:
    fixed = [D.const(v) for v in t.leaves]
    if isinstance(t.bilinear, DeclaredBilinear):
        form = t.bilinear.form
        legs = [leg for i, leg in enumerate(form.legs) if i != t.bilinear.target]
        held = [_spread(v, leaf.shape, lead, D) for v, leaf in zip(fixed, legs[t.side].leaves, strict=True)]
        both = (leaves_of(x), held) if t.side else (held, leaves_of(x))
        return _declared(Declared(form, t.bilinear.target), [*both[0], *both[1]], lead, D)
    if t.side:
        return products(t.bilinear, leaves_of(x), lead, fixed, (), D)
    return products(t.bilinear, fixed, (), leaves_of(x), lead, D)


def products(t: Bilinear, us: list[Any], lead_u: Shape, vs: list[Any], lead_v: Shape, D: Any) -> Tree:
    """A bilinear function on leaves, by its table; either side may lack the leading axes."""
    if isinstance(t, DeclaredBilinear):
        return _declared(Declared(t.form, t.target), [*us, *vs], lead_u, D)
    lead = lead_u or lead_v
    head = tuple(range(-len(lead), 0))
    made: list[list[Any]] = [[] for _ in t.codomain.leaves]
    for row in t.table:
        left, right, out = row.labels
        u, v = us[row.left], vs[row.right]
        if row.metric:
            v = metric_step(v, row.metric, len(lead_v), len(right), False, D)
        labels = ((*(head if lead_u else ()), *left), (*(head if lead_v else ()), *right))
        made[row.out].append(D.step(contraction(labels, (*head, *out)), (u, v)))
    leaves = [
        D.zeros((*lead, *leaf.shape)) if not m else m[0] if len(m) == 1 else D.step(Combination((1.0,) * len(m)), m)
        for m, leaf in zip(made, t.codomain.leaves, strict=True)
    ]
    return t.codomain.tree(leaves)


def metric_step(value: Any, weights: tuple[Any, ...], lead: int, ndim: int, inverse: bool, D: Any) -> Any:
    """Apply the weights of a leaf (or their inverses) along their axes, as steps."""
    axes = tuple(range(lead + ndim))
    for first, count, weight, reciprocal, matrix in weights:
        w = reciprocal if inverse else weight
        at = axes[lead + first : lead + first + count]
        if matrix:
            new = tuple([a + len(axes) for a in at])
            shaped = w.reshape(D.shape(value)[lead + first : lead + first + count] * 2)
            out = tuple([a + len(axes) if a in at else a for a in axes])
            value = D.step(contraction(((*new, *at), axes), out), (D.const(shaped), value))
        else:
            value = D.step(contraction((at, axes), axes), (D.const(w), value))
    return value


def _metric(inverse: bool) -> Callable[..., Tree]:
    def rule(t: Any, x: Tree, lead: Shape, D: Any) -> Tree:
        rows = zip(leaves_of(x), t.space.leaves, strict=True)
        return t.codomain.tree([metric_step(v, leaf.weights, len(lead), len(leaf.shape), inverse, D) for v, leaf in rows])

    return rule


def _transpose(t: Transpose, x: Tree, lead: Shape, D: Any) -> Tree:
    rows, cols, given = t.first.leaves, t.last.leaves, leaves_of(x)
    made: list[Any] = []
    for j, w in enumerate(cols):
        for i, v in enumerate(rows):
            a = tuple(range(len(lead)))
            b = tuple(range(len(lead), len(lead) + len(v.shape)))
            c = tuple(range(len(lead) + len(v.shape), len(lead) + len(v.shape) + len(w.shape)))
            made.append(D.step(contraction(((*a, *b, *c),), (*a, *c, *b)), (given[i * len(cols) + j],)))
    return t.codomain.tree(made)


def _labelled(t: Labelled, x: Tree, lead: Shape, D: Any) -> Tree:
    head = tuple(range(-len(lead), 0))
    labels = tuple([(*head, *ls) for ls in t.labels])
    return D.step(contraction(labels, (*head, *t.out), dict(t.extra)), leaves_of(x))


# -- primitives and declared functions ---------------------------------------------------------------------------------


def _primitive(t: Primitive, x: Tree, lead: Shape, D: Any) -> Tree:
    op = t.__dict__.get("op")
    if op is None:
        op = t.__dict__["op"] = Elementwise(t)
    return D.step(op, x if type(x) is tuple else (x,))


def _declared_linear(t: DeclaredLinear, x: Tree, lead: Shape, D: Any) -> Tree:
    return _declared(Declared(t.form, t.target), leaves_of(x), lead, D)


def _declared(op: Declared, leaves: list[Any], lead: Shape, D: Any) -> Tree:
    if lead and not op.form.batched:
        raise SpaceError(
            f"{op.form.name} is mapped over an index set, but was declared for single vectors; "
            "if its functions accept leading axes, declare it with batched=True"
        )
    result = D.step(op, leaves)
    target = op.form.legs[op.target]
    return target.tree([D.step(Get(i), (result,)) for i in range(len(target.leaves))])


RULES: dict[type, Callable[..., Any]] = {
    **dict.fromkeys((Id, Forget, Equip, Bra, Unbra, Ket, Unket, Assoc, Unassoc, Distrib, Undistrib), _keep),
    **dict.fromkeys((Contract, Outer, Inner, ScalarMul, MatVec, MatMul, Hadamard, DeclaredBilinear), _bilinear),
    Regroup: _rebuild,
    Const: _const,
    ZeroMap: _zero,
    Par: _par,
    BlockDiag: _par,
    Fork: _fork,
    Join: _join,
    Combine: _combine,
    Add: _add,
    Dup: _dup,
    Map: _map,
    Zip: _zip,
    Unzip: _unzip,
    Project: _project,
    Inject: _inject,
    Unpack: _unpack,
    Pack: _pack,
    Reduce: _reduce,
    Rep: _rep,
    Total: _total,
    Scan: _by_definition,
    Section: _section,
    Represent: _metric(True),
    Weigh: _metric(False),
    Transpose: _transpose,
    Labelled: _labelled,
    Primitive: _primitive,
    DeclaredLinear: _declared_linear,
}

COMPOSITE = {Compose, Par, BlockDiag, Fork, Join, Combine, Map}
