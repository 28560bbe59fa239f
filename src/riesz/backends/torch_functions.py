"""Compiled functions inside PyTorch: an autograd function on tensors, whose backward pass is the adjoint that riesz
derives, compiled too.

The adjoint is a function of the arguments and the cotangents, made a function on tensors in the same way: so it can be
differentiated again.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import VectorError
from ..functions.function import TracedFunction
from ..tracing.argument_trees import flatten, unflatten

if TYPE_CHECKING:
    from .entry import Compiled


def on_tensors(compiled: Compiled) -> Callable[..., Any]:
    """A compiled function on tensors."""
    try:
        import torch
    except ImportError:
        raise VectorError("to_torch needs PyTorch, which is not installed (pip install 'riesz[torch]')") from None
    node = TensorFunction(compiled)

    def function(*args: Any) -> Any:
        leaves, tree = flatten(args)
        tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        for i in tensors:
            if leaves[i].device.type != "cpu":
                given = f"a tensor on {leaves[i].device} was given: move it with .cpu()"
                raise VectorError(f"{compiled.name} as a torch function runs on the CPU; {given}")
            if leaves[i].dtype == torch.bfloat16:
                advice = "NumPy has no such type; pass x.float() or x.double()"
                raise VectorError(f"an argument of {compiled.name} is a tensor of torch.bfloat16: {advice}")
        return node(leaves, tree, tensors)

    function.__name__ = compiled.name
    # torch.compile would look into riesz itself
    return torch.compiler.disable(function, reason=f"{compiled.name} is code that riesz compiled")


class TensorFunction:
    """One function of tensors, and its adjoint."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self._adjoints: dict[Any, TensorFunction] = {}

    def __call__(self, leaves: list[Any], tree: Any, tensors: list[int]) -> Any:
        """The result, in its containers, as tensors that know where they come from."""
        call = TensorCall(self, leaves, tree, tensors)
        rest = iter(self._autograd.apply(call, *[leaves[i] for i in tensors]))
        return unflatten(call.form, [next(rest) if _is_array(v) else v for v in call.values])

    @cached_property
    def _autograd(self) -> Any:
        import torch

        class Run(torch.autograd.Function):
            @staticmethod
            def forward(call: TensorCall, *xs: Any) -> Any:
                given = _put(call.leaves, call.tensors, [x.detach().resolve_neg().numpy() for x in xs])
                call.values, call.form = flatten(call.node.compiled(*unflatten(call.tree, given)))
                return tuple([_tensor(v) for v in call.values if _is_array(v)])

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                ctx.call = inputs[0]
                ctx.save_for_backward(*inputs[1:])

            @staticmethod
            def backward(ctx: Any, *cotangents: Any) -> Any:
                call = ctx.call
                given = _put(call.leaves, call.tensors, ctx.saved_tensors)
                needed = [i for i, need in zip(call.tensors, ctx.needs_input_grad[1:], strict=True) if need]
                moving = tuple([i for i in needed if given[i].dtype.is_floating_point])
                arrays = [_is_array(v) for v in call.values]
                found = iter(call.node.adjoint(given, call.tree, moving, arrays, cotangents) if moving else ())
                return None, *[next(found) if i in moving else None for i in call.tensors]

        return Run

    def adjoint(self, leaves: list[Any], tree: Any, moving: tuple[int, ...], arrays: list[bool], seeds: Any) -> Any:
        """The cotangents of some leaves: a function of tensors again."""
        import torch

        key = tree, moving, tuple([None if isinstance(x, torch.Tensor) else repr(x) for x in leaves])
        if key not in self._adjoints:
            self._adjoints[key] = TensorFunction(_adjoint(self.compiled, list(leaves), tree, moving, arrays))
        tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        given, form = flatten((tuple([leaves[i] for i in tensors]), tuple(seeds)))
        return self._adjoints[key](given, form, list(range(len(given))))


class TensorCall:
    """One call: the function, the leaves and the tree of its arguments, which leaves are tensors, and its results."""

    def __init__(self, node: TensorFunction, leaves: list[Any], tree: Any, tensors: list[int]) -> None:
        self.node, self.leaves, self.tree, self.tensors = node, leaves, tree, tensors
        self.values: list[Any] = []
        self.form: Any = None


def _adjoint(compiled: Compiled, leaves: list[Any], tree: Any, moving: tuple[int, ...], arrays: list[bool]) -> Compiled:
    """(leaves, cotangents) ↦ the cotangents of the leaves that move, compiled."""
    import torch

    from ..functions.derivatives import vjp
    from .entry import Compiled as Code

    tensors = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    fixed = [None if i in tensors else x for i, x in enumerate(leaves)]

    def back(xs: tuple[Any, ...], seeds: tuple[Any, ...]) -> Any:
        def forth(*moved: Any) -> Any:
            given = _put(_put(fixed, tensors, xs), moving, moved)
            values = flatten(compiled.function(*unflatten(tree, given)))[0]
            return tuple([v for v, array in zip(values, arrays, strict=True) if array])

        at = dict(zip(tensors, xs, strict=True))
        return vjp(forth, *[at[i] for i in moving])[1](tuple(seeds))

    return Code(TracedFunction(back, name=f"{compiled.name}*"), "auto")


def _put(leaves: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Leaves with other values at some places."""
    at = dict(zip(places, values, strict=True))
    return [at.get(i, x) for i, x in enumerate(leaves)]


def _is_array(x: Any) -> bool:
    return isinstance(x, (float, np.ndarray, np.generic))


def _tensor(x: Any) -> Any:
    import torch

    if isinstance(x, np.ndarray):
        return torch.from_numpy(x)
    return torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else None)
