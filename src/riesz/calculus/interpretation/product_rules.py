"""Interpretation of products, weights, primitives and declared functions: each a step or a few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops.domain import Domain, Leaf
from ...ops.number_domains import NUMBERS
from ...ops.op import Combination, contraction
from ...ops.opaque import Declared, Get
from ...spaces.layout import INVERSE, METRIC, Weight
from ...spaces.space import Space
from ...terms import bilinear
from ...terms.bilinear import Applied, Bilinear, Section, transposition
from ...terms.declared import DeclaredBilinear, DeclaredLinear
from ...terms.primitives import Primitive
from ...terms.unitary import Transpose
from ...terms.weights import Represent, Weigh
from ..batching import Lane, Mapped
from .value_trees import Shape, Tree, leaves_of, repeated


def _bilinear(t: Bilinear, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    return products(t, leaves_of(x[0]), lead, leaves_of(x[1]), lead, D)


def _section(t: Section, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    fixed = [D.const(v) for v in t.leaves]
    if isinstance(t.bilinear, DeclaredBilinear):
        form = t.bilinear.form
        legs = [leg for i, leg in enumerate(form.legs) if i != t.bilinear.target]
        held = [repeated(v, leaf.shape, (), lead, D) for v, leaf in zip(fixed, legs[t.side].leaves, strict=True)]
        both = (leaves_of(x), held) if t.side else (held, leaves_of(x))
        return _declared(Declared(form, t.bilinear.target), [*both[0], *both[1]], D)
    if t.side:
        return products(t.bilinear, leaves_of(x), lead, fixed, (), D)
    return products(t.bilinear, fixed, (), leaves_of(x), lead, D)


def products(t: Bilinear, us: list[Any], lead_u: Shape, vs: list[Any], lead_v: Shape, D: Domain[Any]) -> Tree[Any]:
    """A bilinear function on leaves, by its table; either side may lack the leading axes."""
    if isinstance(t, DeclaredBilinear):
        return _declared(Declared(t.form, t.target), [*us, *vs], D)
    lead = lead_u or lead_v
    head = tuple(range(-len(lead), 0))
    made: list[list[Any]] = [[] for _ in t.codomain.leaves]
    for row in t.table:
        left, right, out = row.labels
        u, v = us[row.left], vs[row.right]
        if row.metric:
            v = weigh(v, row.metric, len(lead_v), len(right), METRIC, D)
        labels = ((*(head if lead_u else ()), *left), (*(head if lead_v else ()), *right))
        made[row.out].append(D.step(contraction(labels, (*head, *out)), (u, v)))
    sums = [m[0] if len(m) == 1 else D.step(Combination((1.0,) * len(m)), m) if m else None for m in made]
    shapes = [(*lead, *leaf.shape) for leaf in t.codomain.leaves]
    return t.codomain.tree([D.zeros(s) if x is None else x for x, s in zip(sums, shapes, strict=True)])


def weigh(value: Leaf, weights: tuple[Weight, ...], lead: int, ndim: int, which: int, D: Domain[Leaf]) -> Leaf:
    """Apply the weights of a leaf (or their inverses, or roots) along their axes, as steps."""
    axes = tuple(range(lead + ndim))
    for weight in weights:
        where = slice(lead + weight.first, lead + weight.first + weight.arity)
        at, array = axes[where], weight.arrays[which]
        if weight.matrix:
            new = tuple([a + len(axes) for a in at])
            shaped = array.reshape(D.shape(value)[where] * 2)
            out = (*axes[: where.start], *new, *axes[where.stop :])
            value = D.step(contraction(((*new, *at), axes), out), (D.const(shaped), value))
        else:
            value = D.step(contraction((at, axes), axes), (D.const(array), value))
    return value


def metric(leaves: list[Leaf], space: Space, which: int, D: Domain[Leaf], lead: int = 0) -> list[Leaf]:
    """The Riesz map of a space (or its inverse, or root) on leaves, as steps; none if it is Euclidean."""
    if space.plain:
        return leaves
    rows = zip(leaves, space.leaves, strict=True)
    return [weigh(x, leaf.weights, lead, len(leaf.shape), which, D) for x, leaf in rows]


def weighed(leaves: list[Any], space: Space, which: int) -> list[Any]:
    """The same over numbers."""
    return metric(leaves, space, which, NUMBERS)


def _transpose(t: Transpose, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    given, turned = leaves_of(x), transposition(t.first, t.last, len(lead))
    return t.codomain.tree([D.step(op, (given[i],)) for i, op in turned])


def _applied(t: Applied, x: Tree[Any], lead: Shape, D: Domain[Any]) -> Tree[Any]:
    """An op at every index of the leading axes: one mapped domain inside the other."""
    domain: Any = D
    leaves: list[Any] = leaves_of(x)
    for n in lead:
        domain, leaves = Mapped(domain, n), [Lane[Any](v, True) for v in leaves]
    result = domain.step(t.op, leaves)
    found = [domain.step(Get(i), (result,)) for i in range(len(t.codomain.leaves))] if t.several else [result]
    for _ in lead:
        found = [lane.value for lane in found]
    return t.codomain.tree(found)


def _declared(op: Declared, leaves: list[Any], D: Domain[Any]) -> Tree[Any]:
    result = D.step(op, leaves)
    target = op.form.legs[op.target]
    return target.tree([D.step(Get(i), (result,)) for i in range(len(target.leaves))])


PRODUCTS: dict[type, Callable[[Any, Tree[Any], Shape, Domain[Any]], Any]] = {
    **dict.fromkeys((bilinear.Contract, bilinear.Outer, bilinear.Inner, bilinear.ScalarMul), _bilinear),
    **dict.fromkeys((bilinear.MatVec, bilinear.MatMul, bilinear.Hadamard, DeclaredBilinear), _bilinear),
    Section: _section,
    Represent: lambda t, x, lead, D: t.codomain.tree(metric(leaves_of(x), t.space, INVERSE, D, len(lead))),
    Weigh: lambda t, x, lead, D: t.codomain.tree(metric(leaves_of(x), t.space, METRIC, D, len(lead))),
    Transpose: _transpose,
    Primitive: lambda t, x, lead, D: D.step(t.op, leaves_of(x)),
    Applied: _applied,
    DeclaredLinear: lambda t, x, lead, D: _declared(Declared(t.form, t.target), leaves_of(x), D),
}
