"""Arguments and results of Python functions: nested containers with leaves inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..relations.index_sets import Seg
from ..spaces.layout import Form, container, held
from ..spaces.space import DirectSum, Space, zero_space


class Container(NamedTuple):
    """A container of a tree: how many parts, and which kind (None: a tuple)."""

    arity: int
    form: Form | None


LEAF, NOTHING = "leaf", "none"
Tree = tuple[Any, ...]
"""A tree in postfix order: LEAF, NOTHING (None) or a Node after its parts."""

ONE_LEAF: Tree = (LEAF,)


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """The leaves of nested tuples, lists, dicts, named tuples and dataclasses, in order, and the tree around them."""
    if type(value) is np.ndarray or type(value) is float:
        return [value], ONE_LEAF
    leaves: list[Any] = []
    code: list[Any] = []
    stack: list[Any] = [value]
    while stack:
        v = stack.pop()
        if type(v) is Container:
            code.append(v)
            continue
        parts = None if v is None else container(v)
        if v is None:
            code.append(NOTHING)
        elif parts is None:
            code.append(LEAF)
            written = isinstance(v, np.ndarray) and hasattr(cast(Any, v), "put_traced")
            leaves.append(cast(Any, v).now() if written else v)
        else:
            form, inside = parts
            stack.append(Container(len(inside), form))
            stack.extend(reversed(inside))
    return leaves, tuple(code)


def unflatten(tree: Tree, leaves: list[Any], make: Callable[[Container, list[Any]], Any] | None = None) -> Any:
    """The value with the given leaves; `make` says what is made of a container and its parts."""
    if tree is ONE_LEAF or tree == ONE_LEAF:
        return leaves[0]
    done: list[Any] = []
    rest = iter(leaves)
    for entry in tree:
        if entry is LEAF or entry == LEAF:
            done.append(next(rest))
        elif entry == NOTHING:
            done.append(None)
        else:
            node = cast(Container, entry)
            parts = done[len(done) - node.arity :]
            del done[len(done) - node.arity :]
            plain = node.form.make if node.form is not None else tuple
            done.append(plain(parts) if make is None else make(node, parts))
    return done[0]


def tree_space(tree: Tree, spaces: list[Space]) -> Space:
    """The space of values with this tree, given those of the leaves; None is the space with one element."""
    found = unflatten(tree, spaces, _sum_of)
    return zero_space if found is None else found


def _sum_of(node: Container, parts: list[Any]) -> Space:
    spaces = tuple([zero_space if V is None else V for V in parts])
    return DirectSum(Seg(node.arity), spaces, node.form) if spaces or node.form else zero_space


def first_part(tree: Tree) -> int:
    """Where the first of the two parts of a pair ends."""
    at, due = len(tree) - 1, 1  # the second part, read from its end
    while due:
        at -= 1
        due += (tree[at].arity if type(tree[at]) is Container else 0) - 1
    return at


def numbers_of(leaves: Sequence[Any]) -> list[Any]:
    """Array leaves as the interpreter likes them: float64 numbers are floats, anything with __array__ an array."""
    found: list[Any] = []
    for x in leaves:
        if type(x) is np.ndarray or type(x) is float:
            found.append(x if type(x) is float or cast(Any, x).ndim else _number(x))
        else:
            array = np.asarray(held(x))
            found.append(array if array.ndim else _number(array))
    return found


def _number(x: Any) -> Any:
    scalar: Any = np.asarray(x)[()]
    return float(scalar) if type(scalar) is np.float64 else scalar
