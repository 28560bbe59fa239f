"""Checks of the laws, on one map or function: adjoint and Taylor tests with readable failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import api
from ..maps.linear_map import LinearMap
from ..spaces import Space
from ..terms.core import Arrow, Term


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
        v, w = V.random(rng), W.random(rng)
        Lv, Lw = L(v), back(w)
        there, here = W.inner(Lv, w), V.inner(v, Lw)
        scale = max(W.norm(Lv) * W.norm(w), V.norm(v) * V.norm(Lw))
        if not abs(there - here) <= tolerance * scale:
            raise AssertionError(
                f"not an adjoint: ⟨L v, w⟩ = {there!r} but ⟨v, L* w⟩ = {here!r}, "
                f"{abs(there - here) / scale:.1e} relative to ‖L v‖‖w‖   (L : {V} ⊸ {W})"
            )


def check_derivative(f: Arrow, *args: Any, draws: int = 3, seed: int = 0) -> None:
    """Check the derivative of f at a point: the Taylor remainder ‖f(x + h·dx) − f(x) − h·f'(x)dx‖ is of order h², forward mode
    gives the same f'(x)dx, and the adjoint is one.

    >>> import riesz as rz
    >>> check_derivative(rz.sin @ rz.exp, 0.3)
    """
    y, L = api.linearize(f, *args)
    V, W = L.domain, L.codomain
    x = args[0] if len(args) == 1 else args
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        dx = V.random(rng)
        dx = V.scale(1.0 / max(V.norm(dx), 1.0), dx)
        dy = L(dx)
        value, forward = api.jvp(f, (x,), (dx,))
        if not (W.equal(value, y) and W.equal(forward, dy)):
            raise AssertionError(f"linearize and jvp disagree: f'(x)dx = {dy!r} by the one, {forward!r} by the other   (f : {V} → {W})")
        check_taylor(lambda h, dx=dx: f(V.add(x, V.scale(h, dx))), y, dy, W)
    check_adjoint(L, draws)


def check_taylor(f: Callable[[float], Any], y: Any, dy: Any, W: Space) -> None:
    """Check that f(h) − y − h·dy is of order h²: divided by h² it stays bounded as h is halved, down to where rounding begins.

    A wrong dy makes the quotient double with every halving, so it may not be 4 times larger than at all h at least 16 times as large.
    """
    quotients: list[float] = []
    for h in [2.0**-k for k in range(2, 26)]:
        there = f(h)
        remainder = W.norm(W.add(W.add(there, W.scale(-1.0, y)), W.scale(-h, dy)))
        if not remainder > 1e4 * np.finfo(float).eps * (1.0 + W.norm(there) + W.norm(y)):
            break
        quotients.append(remainder / h**2)
    # Fewer than nine: f is as linear as its rounding shows, and dy right to nine digits.
    if len(quotients) > 8 and not quotients[-1] <= 4.0 * max(quotients[:-4]):
        grown = ", ".join([f"{q:.1e}" for q in quotients[-5:]])
        raise AssertionError(
            f"not the derivative: f(x + h·dx) − f(x) − h·f'(x)dx is not of order h²; divided by h², as h is halved, it grows: {grown}"
        )
