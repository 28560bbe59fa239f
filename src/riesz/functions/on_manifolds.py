"""Derivatives on manifolds: those of f(retract(x, v)) in v at 0, the point of the tangent space that x is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import SpaceError
from ..manifolds.manifold import as_manifold


def on_manifold(
    derive: Callable[..., Any], f: Any, argnums: Any, manifold: Any, into: Any = None, **options: Any
) -> Any:
    """A function of x (and further arguments) that gives what `derive` gives in the tangent space at x. With `into`, f
    ends on a manifold too, and values are tangent vectors at f(x)."""
    if argnums not in (None, 0):
        raise SpaceError(f"on a manifold derivatives are in the first argument; got argnums={argnums!r}")
    M = as_manifold(manifold)
    N: Any = None if into is None else as_manifold(into)

    def pulled(v: Any, x: Any, *args: Any) -> Any:
        return f(M.retract(x, v), *args)

    def between(v: Any, y: Any, x: Any, *args: Any) -> Any:
        return N.local(y, f(M.retract(x, v), *args))

    weighted, inner = hasattr(M, "space"), pulled if N is None else between
    usual = None if weighted else derive(inner, 0, **options)

    def derived(x: Any, *args: Any) -> Any:
        found = usual or derive(inner, 0, **options, space=M.space(x))
        return found(M.tangent(x), x, *args) if N is None else found(M.tangent(x), f(x, *args), x, *args)

    return derived
