"""`linear` and `bilinear`: functions of one's own, declared with their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spaces.space import Space, direct_sum, space_of
from ..declared import declare_bilinear, declare_linear
from ..open import Combinator, maker
from ..term import Arrow, Compose, Term
from .named_products import two_components


def _linear(space: Space, function: Any, adjoint: Any, codomain: Any, name: str, batched: bool) -> Term:
    target = codomain or space_of(function(space.zero()))
    return declare_linear(function, adjoint, space, target, name, batched)


_linears = maker("linear")(_linear)


def linear(
    function: Callable[[Any], Any],
    adjoint: Callable[[Any], Any],
    *,
    domain: Space | None = None,
    codomain: Space | None = None,
    name: str | None = None,
    batched: bool = False,
) -> Arrow:
    """A linear function of your own, with its adjoint. Without spaces it fits any; `batched` says both accept leading
    axes.

    >>> import riesz as rz, numpy as np
    >>> flip = rz.linear(lambda v: v[::-1], lambda w: w[::-1], name="flip")
    >>> rz.grad(rz.left(rz.inner, np.array([1.0, 2.0])) @ flip)(np.zeros(2))
    array([2., 1.])
    """
    title = name or getattr(function, "__name__", "linear")
    parameters = (function, adjoint, codomain, title, batched)
    return Combinator(title, _linears, parameters) if domain is None else _linear(domain, *parameters)


@maker("bilinear")
def _bilinears(space: Space, function: Any, adjoints: Any, codomain: Any, name: str, batched: bool) -> Term:
    u, v, bridge = two_components(space, name)
    target = codomain or space_of(function(u.zero(), v.zero()))
    made = declare_bilinear(function, adjoints[0], adjoints[1], (u, v, target), name, batched)
    return made if bridge is None else Compose(made, bridge)


def bilinear(
    function: Callable[[Any, Any], Any],
    left_adjoint: Callable[[Any, Any], Any] | None = None,
    right_adjoint: Callable[[Any, Any], Any] | None = None,
    *,
    spaces: tuple[Space, Space] | None = None,
    codomain: Space | None = None,
    name: str | None = None,
    batched: bool = False,
) -> Arrow:
    """A bilinear function u ⋄ v of your own: left_adjoint(u, w) = (u⋄)*w and right_adjoint(v, w) = (⋄v)*w.

    >>> import riesz as rz, numpy as np
    >>> back = lambda u, w: np.correlate(w, u, "valid")
    >>> conv = rz.bilinear(np.convolve, back, back, name="conv")
    >>> conv(np.array([1.0, 2.0]), np.array([1.0, 0.0, 1.0]))
    array([1., 2., 1., 2.])
    """
    title = name or getattr(function, "__name__", "bilinear")
    parameters = (function, (left_adjoint, right_adjoint), codomain, title, batched)
    return Combinator(title, _bilinears, parameters) if spaces is None else _bilinears(direct_sum(*spaces), *parameters)
