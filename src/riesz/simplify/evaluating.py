"""What laws compute with constants: products of vectors, where no weight takes part and the result is no larger than
what it is made of."""

from __future__ import annotations

from typing import Any

from ..ops.op import Contraction, contraction
from ..relations.index_sets import box_set
from ..spaces.formal_vectors import Formal, FormalProduct, add_leaves, freeze_leaf
from ..spaces.space import Space, real_space
from ..terms.bilinear import Bilinear, Hadamard, Inner, MatMul, MatVec, ScalarMul, transposed
from ..terms.sums import Rep, Total
from ..terms.term import Term

Leaves = tuple[Any, ...]
Labels = tuple[int, ...]


def product(b: Bilinear, u: Leaves, v: Leaves) -> Leaves | None:
    """The leaves of u ⋄ v, row by row of the table; None where a weight takes part."""
    found: list[Any] = [None] * len(b.codomain.leaves)
    for row in b.table:
        if row.metric:
            return None
        left, right, out = row.labels
        value = contraction((left, right), out).run(u[row.left], v[row.right])
        found[row.out] = value if found[row.out] is None else add_leaves(found[row.out], value)
    if any([x is None for x in found]):
        return None
    return tuple([freeze_leaf(x) if leaf.shape else float(x) for x, leaf in zip(found, b.codomain.leaves, strict=True)])


def number(leaves: Leaves) -> float | None:
    """The number that a vector of ℝ is; None for anything but a plain float."""
    return leaves[0] if len(leaves) == 1 and type(leaves[0]) is float else None


def formal_product(b: Bilinear, u: Leaves, v: Leaves) -> Leaves | None:
    """u ⋄ v where both are unevaluated products: nothing is multiplied out."""
    return product(b, u, v) if _formal(u) and _formal(v) else None


def _formal(leaves: Leaves) -> bool:
    return all([type(x) is Formal and all([len(t.factors) > 1 for t in x.terms]) for x in leaves])


def rank_one(b: Leaves, a: Leaves, V: Space, W: Space) -> Leaves | None:
    """b ⊗ a as an unevaluated matrix, for arrays b ∈ W and a ∈ V."""
    rows, cols = array_shape(W), array_shape(V)
    if not rows or not cols or type(a[0]) is Formal or type(b[0]) is Formal:
        return None
    left = tuple(range(len(rows)))
    right = tuple(range(len(rows), len(rows) + len(cols)))
    return (Formal((*rows, *cols), (FormalProduct(1.0, ((b[0], left), (a[0], right))),)),)


def array_shape(V: Space) -> tuple[int, ...] | None:
    """The shape where V is a space of real arrays."""
    if len(V.leaves) != 1:
        return None
    shape = V.leaves[0].shape
    return shape if V is real_space(shape) else None


def named_contraction(op: Contraction, shapes: Any) -> Term | None:
    """A contraction of one or two arrays under the name of the product it is, if it has one."""
    labels, out = op.labels, op.out
    if len(labels) == 1:
        return _single(labels[0], out, shapes[0], op.extra)
    if len(labels) != 2 or op.extra or op.strong or any([len(set(ls)) < len(ls) for ls in (*labels, out)]):
        return None
    (a, b), (m, n) = labels, shapes
    V, both = real_space(n), [x for x in a if x in b]
    if a == b == out:
        return Hadamard(V) if out else ScalarMul(V)
    if not a and b == out:
        return ScalarMul(V)
    if a == b and not out:
        return Inner(V)
    k = len(both)
    if not k or tuple(both) != a[-k:] or tuple(both) != b[:k] or out != a[:-k] + b[k:]:
        return None
    if len(b) == k and len(a) > k:
        return MatVec(m[:-k], n)
    return MatMul(m[:-k], n[:k], n[k:]) if len(a) > k else None


def fixed(op: Contraction, shapes: Any, side: int, u: Leaves) -> tuple[Term, int, Leaves] | None:
    """A contraction with the array at `side` fixed as a section of a named product: ⋄, side, leaves."""
    if op.extra or op.strong:
        return None
    labels, turned = op.labels, [(op.labels, shapes, side, u), (op.labels[::-1], shapes[::-1], 1 - side, u)]
    if len(shapes[side]) == 2:
        back = tuple([ls[::-1] if n == side else ls for n, ls in enumerate(labels)])
        sizes = tuple([s[::-1] if n == side else s for n, s in enumerate(shapes)])
        leaves = transposed(u, *[real_space((n,)) for n in shapes[side]])
        turned += [(back, sizes, side, leaves), (back[::-1], sizes[::-1], 1 - side, leaves)]
    for ls, sizes, at, leaves in turned:
        found = named_contraction(contraction(ls, op.out), sizes)
        if isinstance(found, Bilinear):
            return found, at, leaves
    return None


def _single(labels: Labels, out: Labels, shape: tuple[int, ...], extra: Any) -> Term | None:
    if labels and not out and len(set(labels)) == len(labels):
        return Total(box_set(shape), real_space(()), None)
    if out and not labels and tuple([label for label, _ in extra]) == out:
        return Rep(box_set(tuple([n for _, n in extra])), real_space(()), None)
    return None
