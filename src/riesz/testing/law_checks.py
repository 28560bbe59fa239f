"""Checks of the laws, on one map or function: they raise with what `rz.check` reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checking.derivative_check import adjoint_error, check, opened
from ..checking.taylor import slopes
from ..maps.linear_map import LinearMap
from ..spaces.space import Space
from ..terms.term import Arrow, Term


def check_adjoint(L: LinearMap | Term, draws: int = 10, tolerance: float = 1e-12, seed: int = 0) -> None:
    """Check ⟨L v, w⟩ = ⟨v, L* w⟩ on random vectors, relative to the norms of the four of them.

    >>> import riesz as rz
    >>> check_adjoint(rz.scan.at(rz.R ** rz.seg(5)))
    """
    rng = np.random.default_rng(seed)
    V, W, back = L.domain, L.codomain, L.H
    if back.domain is not W or back.codomain is not V:
        raise AssertionError(f"the adjoint of L : {V} ⊸ {W} goes from {back.domain} to {back.codomain}")
    for _ in range(draws):
        error, there, here = adjoint_error(L, V.random(rng), W.random(rng))
        if not error <= tolerance:
            sides = f"⟨L v, w⟩ = {there!r} but ⟨v, L* w⟩ = {here!r}"
            raise AssertionError(f"not an adjoint: {sides}, {error:.1e} relative to ‖L v‖‖w‖   (L : {V} ⊸ {W})")


def check_derivatives(f: Any, *args: Any, **options: Any) -> None:
    """Check the derivatives of f at a point, as `rz.check` does with the same arguments; an AssertionError with its
    table if one is wrong.

    >>> import numpy as np
    >>> check_derivatives(lambda x, y: np.sum(np.sin(x) * y), np.ones(3), 2.0)
    """
    __tracebackhide__ = True
    check(f, *args, **options).raise_if_failed()


def check_derivative(f: Arrow, *args: Any, draws: int = 3, seed: int = 0) -> None:
    """Check the first derivative of f at a point: Taylor remainders of order h², the adjoint, and forward mode.

    >>> import riesz as rz
    >>> check_derivative(rz.sin @ rz.exp, 0.3)
    """
    __tracebackhide__ = True
    check_derivatives(f, *args, orders=1, draws=draws, seed=seed)


def check_taylor(f: Callable[[float], Any], y: Any, dy: Any, W: Space) -> None:
    """Check that f(h) − y − h·dy is of order h², where y and dy are in W. See Note [Taylor] in taylor.py."""
    with np.errstate(all="ignore"):
        found = slopes(lambda h: opened(W, f(h)), opened(W, y), opened(W, dy), float(np.finfo(float).eps))
    for slope in found:
        if not slope.ok:
            remainder = "f(x + h·dx) − f(x) − h·f'(x)dx"
            raise AssertionError(f"not the derivative: {remainder} is of {slope}, not of order 2; {slope.note}")
