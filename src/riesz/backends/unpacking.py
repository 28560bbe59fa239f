"""Arguments in containers, for generated code that takes array leaves: lists, tuples, dicts, named tuples and dataclasses are opened by code too."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, cast

from ..calculus.domains import OTHER
from ..syntax.functions import Given
from ..syntax.trees import LEAF, NOTHING, ONE_LEAF, Node, unflatten

MOST = 100
"""Up to how many containers are opened so."""


def opens(given: Given) -> bool:
    """Whether arguments are arrays, numbers and not too many containers of them."""
    entries = [e for tree in given.trees for e in tree if e != LEAF]
    return not given.kwargs and not given.statics and len(entries) <= MOST and NOTHING not in entries


def unpacked(given: Given, run: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """`run`, a function of leaves, as one of arguments like the given ones; it gives OTHER for others."""
    if all([tree == ONE_LEAF for tree in given.trees]):
        return run
    space: dict[str, Any] = {"OTHER": OTHER, "run": run}
    names = [f"x{i}" for i in range(len(given.trees))]
    lines = [f"if len(args) != {len(names)}:", "    return OTHER", f"{', '.join(names)}, = args"]
    leaves: list[str] = []
    nested = [unflatten(tree, [LEAF for e in tree if e == LEAF], lambda node, parts: (node, parts)) for tree in given.trees]
    stack = list(zip(names, nested, strict=True))[::-1]
    while stack:
        name, tree = stack.pop()
        if tree is LEAF:
            leaves.append(name)
            continue
        node, parts = cast("tuple[Node, list[Any]]", tree)
        wrong, inside = _opened(name, node, space)
        lines.extend([f"if {wrong}:", "    return OTHER"])
        if all([part is LEAF for part in parts]):
            leaves.append(f"*{inside}")
            continue
        within = [f"{name}_{k}" for k in range(len(parts))]
        lines.append(f"{', '.join(within)}, = {inside}")
        stack.extend(list(zip(within, parts, strict=True))[::-1])
    source = "\n".join(["def quick(args):", *[f"    {line}" for line in [*lines, f"return run(({', '.join(leaves)},))"]]])
    exec(builtins.compile(source, "<riesz arguments>", "exec"), space)
    return space["quick"]


def _opened(name: str, node: Node, space: dict[str, Any]) -> tuple[str, str]:
    """When a value is another container than this, and what its parts are."""
    form = node.form
    if form is None or form.kind is list:
        return f"type({name}) is not {'tuple' if form is None else 'list'} or len({name}) != {node.arity}", name
    space[f"kind_{name}"], space[f"keys_{name}"] = form.kind, form.names
    wrong = f"type({name}) is not kind_{name}"
    if form.is_mapping:
        return f"{wrong} or tuple({name}) != keys_{name}", f"{name}.values()"
    return wrong, name if issubclass(form.kind, tuple) else f"({', '.join([f'{name}.{n}' for n in form.names or ()])},)"
