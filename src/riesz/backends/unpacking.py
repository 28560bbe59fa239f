"""Arguments in containers, for generated code that takes array leaves: lists, tuples, dicts, named tuples and
dataclasses are opened by code too."""

from __future__ import annotations

from typing import Any, cast

from ..functions.traces.given import Given
from ..functions.traces.records import Aval
from ..ops.number_domains import OTHER
from ..runtime import tuning
from ..runtime.generated_source import defined
from ..spaces.layout import container
from ..tracing.argument_trees import LEAF, ONE_LEAF, Container, unflatten
from .common import Run
from .source_text import inside


def opens(given: Given) -> bool:
    """Whether arguments are arrays, numbers, words, None and not too many containers of them."""
    if given.kwargs or sum([e != LEAF for tree in given.trees for e in tree]) > tuning.UNPACKED_CONTAINERS:
        return False
    return all([type(x) in (int, bool, str) for x in given.statics])


def unpacked(given: Given, run: Run) -> Run:
    """`run`, a function of array leaves, as one of arguments like the given ones; it gives OTHER for others."""
    if not given.statics and all([tree == ONE_LEAF for tree in given.trees]):
        return run
    space: dict[str, Any] = {"OTHER": OTHER, "run": run}
    names = [f"x{i}" for i in range(len(given.trees))]
    lines = [f"if len(args) != {len(names)}:", "    return OTHER", f"{', '.join(names)}, = args"]
    leaves: list[str] = []
    pairs = zip(given.trees, given.leaves, strict=True)
    nested = [unflatten(*pair, lambda node, parts: (node, parts)) for pair in pairs]
    stack = list(zip(names, nested, strict=True))[::-1]
    while stack:
        name, tree = stack.pop()
        if type(tree) is Aval:
            leaves.append(name)
        elif type(tree) is not tuple:  # fixed: a number that says how many, a name, None
            space[f"fixed_{name}"] = tree
            other = f"type({name}) is not {type(tree).__name__} or {name} != fixed_{name}"
            lines += [f"if {f'{name} is not None' if tree is None else other}:", "    return OTHER"]
        else:
            node, parts = cast("tuple[Container, list[Any]]", tree)
            wrong, opened = _opened(name, node, space)
            lines += [f"if {wrong}:", "    return OTHER"]
            if all([type(part) is Aval for part in parts]):
                leaves.append(f"*{opened}")
                continue
            within = [f"{name}_{k}" for k in range(len(parts))]
            lines.append(f"{', '.join(within)}, = {opened}")
            stack.extend(list(zip(within, parts, strict=True))[::-1])
    lines.append(f"return run(({', '.join(leaves)}{',' * bool(leaves)}))")
    return defined("\n".join(inside("def quick(args):", lines)), "quick", space)


def _opened(name: str, node: Container, space: dict[str, Any]) -> tuple[str, str]:
    """When a value is another container than this, and what its parts are."""
    form = node.form
    if form is None or form.kind is list:
        return f"type({name}) is not {'tuple' if form is None else 'list'} or len({name}) != {node.arity}", name
    space[f"kind_{name}"], space[f"keys_{name}"] = form.kind, form.names
    wrong = f"type({name}) is not kind_{name}"
    if form.fixed:
        space[f"form_{name}"], space["container"] = form, container
        wrong = f"{wrong} or container({name})[0] is not form_{name}"
    if form.is_mapping:
        return f"{wrong} or tuple({name}) != keys_{name}", f"{name}.values()"
    return wrong, name if issubclass(form.kind, tuple) else f"({', '.join([f'{name}.{n}' for n in form.names or ()])},)"
