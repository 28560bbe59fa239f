"""Values of the interpreter: trees of a domain's leaves."""

from __future__ import annotations

from typing import Any, cast

from ..ops import contraction
from ..spaces import Space

Shape = tuple[int, ...]
Tree = Any


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


def zero_tree(space: Space, lead: Shape, D: Any) -> Tree:
    """Zeros in the shape of a space."""
    return space.tree([D.zeros((*lead, *leaf.shape)) for leaf in space.leaves])


def spread(value: Any, shape: Shape, lead: Shape, D: Any) -> Any:
    """A leaf repeated along new leading axes."""
    if not lead:
        return value
    labels = tuple(range(len(lead), len(lead) + len(shape)))
    new = tuple(range(len(lead)))
    return D.step(contraction((labels,), (*new, *labels), dict(zip(new, lead, strict=True))), (value,))
