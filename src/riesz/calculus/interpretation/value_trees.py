"""Values of the interpreter: trees of a domain's leaves."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from ...ops.domain import Domain, Leaf
from ...ops.op import contraction
from ...spaces.space import Space

Shape = tuple[int, ...]
Tree: TypeAlias = "Leaf | tuple[Tree[Leaf], ...]"


def leaves_of(tree: Tree[Leaf]) -> list[Leaf]:
    """The leaves of a tree, in order."""
    if type(tree) is not tuple:
        return [cast(Leaf, tree)]
    found: list[Leaf] = []
    stack: list[Any] = [tree]
    while stack:
        part = stack.pop()
        if type(part) is tuple:
            stack.extend(reversed(cast("tuple[Any, ...]", part)))
        else:
            found.append(part)
    return found


def zero_tree(space: Space, lead: Shape, D: Domain[Leaf]) -> Tree[Leaf]:
    """Zeros in the shape of a space."""
    return space.tree([D.zeros((*lead, *leaf.shape)) for leaf in space.leaves])


def repeated(value: Leaf, shape: Shape, lead: Shape, new: Shape, D: Domain[Leaf]) -> Leaf:
    """A leaf repeated along new axes, behind its leading ones."""
    if not new:
        return value
    a, b, c = len(lead), len(lead) + len(new), len(lead) + len(new) + len(shape)
    front, added, back = tuple(range(a)), tuple(range(a, b)), tuple(range(b, c))
    op = contraction(((*front, *back),), (*front, *added, *back), dict(zip(added, new, strict=True)))
    return D.step(op, (value,))
