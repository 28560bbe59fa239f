"""The table of PyTorch's operations: what each is in NumPy code."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import TraceError
from ...tracing.trace import refuse

Rule = Callable[..., Any]
"""rule(step, *arguments, **named): the arguments as PyTorch's schema has them; a list where there are several results.
"""


class AtenRule(NamedTuple):
    """A rule, and its line in the table of docs/torch.md."""

    rule: Rule
    what: str


class AtenStep(NamedTuple):
    """A node of a graph: its name without `aten.`, the types of its results, the node, and who reads it."""

    name: str
    dtypes: list[Any]
    node: Any
    reader: Any

    @property
    def dtype(self) -> Any:
        """The type of the first result."""
        return self.dtypes[0]


RULES: dict[str, AtenRule] = {}
"""By name: `sum`, or `max.dim` for one overload."""
REFUSED: dict[str, str] = {}
"""Operations that have no meaning here, and why."""

DRAWS = (
    "it draws random numbers, anew at each call; call module.eval() before rz.from_torch, or give what is drawn "
    "(a mask, noise) as an argument"
)

_FILES = ("elementwise", "shapes", "indexing", "reductions", "products", "windows", "networks", "linalg", "control")


def aten(what: str, *names: str) -> Callable[[Rule], Rule]:
    """Enter a rule under the names of operations."""

    def entered(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, AtenRule(rule, what)))
        return rule

    return entered


def load() -> dict[str, AtenRule]:
    """All rules."""
    for file in _FILES:
        importlib.import_module(f".aten_{file}", __package__)
    return RULES


def named(op: Any) -> tuple[str, str]:
    """The name of an operation and that of its overload: "sum", "sum.dim_IntList"; "mine::f", "mine::f.default"."""
    schema = getattr(op, "_schema", None)
    if schema is None:
        name = getattr(op, "__name__", str(op))
        return name, name
    name = schema.name.removeprefix("aten::")
    return name, f"{name}.{schema.overload_name or 'default'}"


def known(op: Any) -> bool:
    """Whether an operation has a rule, of ours or of the user's."""
    short, full = named(op)
    return any([n in table for n in (short, full) for table in (RULES, OWN, REFUSED)])


def arguments(op: Any, args: Any, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with those that the schema adds: by position, and by name."""
    rest = dict(given)
    positional, keywords = list(args), dict[str, Any]()
    for i, a in enumerate(op._schema.arguments):
        if a.kwarg_only:
            keywords[a.name] = rest.pop(a.name, a.default_value)
        elif i >= len(args):
            positional.append(rest.pop(a.name, a.default_value))
    return positional, keywords


_TYPES = "float64 float32 float16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool complex128 complex64"


def numpy_type(dtype: Any) -> Any:
    """The type of NumPy's for one of PyTorch's."""
    name = str(dtype).removeprefix("torch.")
    if name not in _TYPES.split():
        raise refuse(f"NumPy has no type for tensors of {dtype}; use .float() or .double() before the import")
    return np.dtype(name)


def torch_type(dtype: Any) -> Any:
    """The type of PyTorch's for one of NumPy's."""
    import torch

    return getattr(torch, np.dtype(dtype).name)


OWN: dict[str, Rule] = {}
"""Rules of users, by the name of the operation."""


def torch_rule(op: Any, rule: Any = None) -> Any:
    """Say what an operation of PyTorch is, for `rz.from_torch`: rule(*args, **named) in NumPy code, with the arguments
    that PyTorch gives the operation; a list of arrays where it has several results. Also a decorator.

    >>> import riesz as rz
    >>> @rz.torch_rule("mine::cubed")
    ... def _(x, factor):
    ...     return factor * x**3
    """
    op = getattr(op, "_opoverload", op)  # of torch.library.custom_op
    name = op if isinstance(op, str) else getattr(op, "_qualified_op_name", None)
    name = named(op)[1] if name is None and hasattr(op, "_schema") else name
    if not isinstance(name, str):
        raise TraceError(f"rz.torch_rule takes an operation of PyTorch or its name, such as 'mine::cubed'; got {op!r}")
    if rule is None:
        return lambda given: torch_rule(name, given)
    OWN[name.removeprefix("aten::")] = rule
    return rule
