"""The table of JAX's primitives: what each is in NumPy code."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import TraceError
from ...tracing.traced import TRACED, Traced, lifted

Rule = Callable[..., Any]
"""rule(reader, equation, *arrays): the results, in a list where the primitive has several."""


class LaxRule(NamedTuple):
    """A rule, and its line in the table of docs/jax.md."""

    rule: Rule
    what: str


RULES: dict[str, LaxRule] = {}
REFUSED: dict[str, str] = {}
"""Primitives that have no meaning here, and why."""

_FILES = ("lax_elementwise", "lax_shapes", "lax_indexing", "lax_products", "lax_control", "lax_linalg")


def lax(what: str, *names: str) -> Callable[[Rule], Rule]:
    """Enter a rule under the names of primitives."""

    def entered(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, LaxRule(rule, what)))
        return rule

    return entered


def load() -> dict[str, LaxRule]:
    """All rules."""
    for file in _FILES:
        importlib.import_module(f".{file}", __package__)
    return RULES


def is_traced(x: Any) -> bool:
    """Whether an array belongs to a trace."""
    return type(x) in TRACED


def beside(x: Any, *others: Any) -> Any:
    """x as an array of the trace that one of the others belongs to, if any does."""
    home = next((v.home for v in others if is_traced(v)), None)
    return x if home is None or is_traced(x) else lifted(np.asarray(x), home)


def real(x: Any) -> Traced | None:
    """A real array of a trace; None for others."""
    return x if type(x) is Traced else None


OWN: dict[str, Callable[..., Any]] = {}
"""Rules of users, by the name of the primitive."""


def jax_rule(primitive: Any, rule: Any = None) -> Any:
    """Say what a primitive of JAX is, for `rz.from_jax`: rule(*arrays, **params) in NumPy code, where params are those
    of the equation; a list of arrays where the primitive has several results. Also a decorator.

    >>> import riesz as rz
    >>> @rz.jax_rule("my_square")
    ... def _(x, **params):
    ...     return x * x
    """
    name = primitive if isinstance(primitive, str) else getattr(primitive, "name", None)
    if not isinstance(name, str):
        raise TraceError(f"rz.jax_rule takes a primitive of JAX or its name, such as 'my_square'; got {primitive!r}")
    if rule is None:
        return lambda given: jax_rule(name, given)
    OWN[name] = rule
    return rule
