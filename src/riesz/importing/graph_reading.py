"""A graph of torch.export, node by node, as NumPy code on traced arrays.

What depends on no argument is computed by PyTorch while it is read.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import TraceError
from .aten.aten_registry import DRAWS, OWN, REFUSED, AtenStep, arguments, load, named, numpy_type
from .jaxpr_reading import typed
from .lax.lax_registry import is_traced


class _Kind(NamedTuple):
    """What is known of a result."""

    dtype: Any


def user_line(node: Any) -> str:
    """Where in the user's code a node comes from."""
    import torch

    own = os.path.dirname(torch.__file__) + os.sep
    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', node.meta.get("stack_trace") or "")
    for file, line, place in reversed(found):
        if not file.startswith(own):
            return f"{file}:{line} ({place})"
    return "a line of PyTorch's own"


class GraphReader:
    """Reads a graph and those inside."""

    def __init__(self) -> None:
        self.rules = load()
        self.factored: dict[int, Any] = {}  # the matrices that packed LU factors belong to

    def read(self, module: Any, args: Sequence[Any]) -> list[Any]:
        """The results of a graph at the values of its placeholders."""
        known: dict[Any, Any] = {}
        rest = iter(args)
        last = {v: node for node in module.graph.nodes for v in node.all_input_nodes}
        for node in module.graph.nodes:
            match node.op:
                case "placeholder":
                    known[node] = next(rest)
                case "get_attr":
                    known[node] = _attribute(module, node.target)
                case "output":
                    found = _filled(node.args[0], known)
                    return list(found) if isinstance(found, (list, tuple)) else [found]
                case _ if not node.users:
                    continue  # a check of what torch.export assumed
                case _:
                    known[node] = self.step(node, _filled(node.args, known), _filled(node.kwargs, known))
            for v in node.all_input_nodes:
                if last[v] is node:
                    known.pop(v, None)
        return []

    def step(self, node: Any, args: Any, given: dict[str, Any]) -> Any:
        """The result of one node."""
        import torch

        op = node.target
        short, full = named(op)
        own = OWN.get(full) or OWN.get(short)
        entry = self.rules.get(full) or self.rules.get(short)
        aten, traced = isinstance(op, torch._ops.OpOverload), any(map(is_traced, _leaves([args, given])))
        kinds, several = _kinds(node)
        if own is not None:
            found = own(*args, **given)
        elif short == "with_effects":
            return [None]  # a check of numbers, in order
        elif entry is None and aten and torch.Tag.nondeterministic_seeded in op.tags:
            raise TraceError(f"PyTorch's {short} ({user_line(node)}) is not taken by rz.from_torch: {DRAWS}")
        elif not traced and (aten or entry is None):
            return _computed(op, args, given)
        elif short in REFUSED:
            raise TraceError(f"PyTorch's {short} ({user_line(node)}) is not taken by rz.from_torch: {REFUSED[short]}")
        elif entry is not None:
            args, given = arguments(op, args, given) if aten else (args, given)
            given = {k: v for k, v in given.items() if k not in _PLACES}
            found = self._ruled(entry.rule, node, AtenStep(short, kinds, node, self), args, given)
        elif aten:
            raise TraceError(
                f"rz.from_torch does not know PyTorch's {short}, used at {user_line(node)}. Say what it is in NumPy "
                f"code: @rz.torch_rule('{short}') above a function of its arguments "
                f"({', '.join([a.name for a in op._schema.arguments])}); docs/torch.md lists what is known"
            )
        elif isinstance(op, torch._ops.HigherOrderOperator):
            raise TraceError(f"rz.from_torch does not know PyTorch's {short}, used at {user_line(node)}")
        else:
            return op(*args, **given)  # Python's: items of results, sizes
        if not several:
            return found if found is None or not kinds else _in_type(found, kinds[0])
        return [x if k is None else _in_type(x, k) for x, k in zip(found, [*kinds, *[None] * len(found)], strict=False)]

    def _ruled(self, rule: Any, node: Any, step: AtenStep, args: Any, given: dict[str, Any]) -> Any:
        try:
            return rule(step, *args, **given)
        except TraceError as problem:
            said = str(problem)
            raise (
                problem
                if " of PyTorch's" in said
                else TraceError(f"{said}; in {step.name} of PyTorch's at {user_line(node)}")
            ) from None


_PLACES = ("layout", "device", "pin_memory", "memory_format", "non_blocking")
"""Arguments that say where numbers are kept."""


def _kinds(node: Any) -> tuple[list[Any], bool]:
    """The types of the results, None where they are no tensors; and whether there are several."""
    import torch

    found = node.meta.get("val")
    several = isinstance(found, (tuple, list))
    parts = list(found) if several else [found]
    return [numpy_type(x.dtype) if isinstance(x, torch.Tensor) else None for x in parts], several


def _in_type(x: Any, dtype: Any) -> Any:
    return x if dtype is None else typed(x if is_traced(x) else np.asarray(x), _Kind(dtype))


def _attribute(module: Any, path: str) -> Any:
    import torch

    for name in path.split("."):
        module = getattr(module, name)
    return numbers(module) if isinstance(module, torch.Tensor) else module


def numbers(x: Any) -> Any:
    """A tensor's numbers."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(x, FakeTensor):
        raise TraceError(
            "torch.export lost what depends on what: derivatives inside the function (torch.func.grad, vjp, jacrev) "
            "cannot be exported. Import the function itself and write rz.grad, rz.vjp, rz.jacobian"
        )
    numpy_type(x.dtype)
    return x.detach().cpu().resolve_conj().resolve_neg().numpy()


def _leaves(found: Any) -> list[Any]:
    leaves: list[Any] = []
    stack = [found]
    while stack:
        x = stack.pop()
        if isinstance(x, (list, tuple)):
            stack.extend(x)
        elif isinstance(x, dict):
            stack.extend(x.values())
        else:
            leaves.append(x)
    return leaves


def _filled(given: Any, known: dict[Any, Any]) -> Any:
    """Arguments with values for nodes."""
    import torch

    return torch.fx.node.map_arg(given, lambda node: known[node])


def _computed(op: Any, args: Any, given: dict[str, Any]) -> Any:
    """What PyTorch itself computes of numbers."""
    import torch
    from torch.utils import _pytree as trees

    def tensor(x: Any) -> Any:
        return torch.tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x

    with torch.no_grad():
        found = op(*trees.tree_map(tensor, args), **trees.tree_map(tensor, given))
    return trees.tree_map(lambda x: numbers(x) if isinstance(x, torch.Tensor) else x, found)
