"""Pointwise arithmetic of functions: f + g, f − g, k·f, f·g, f/g, f ** k   (the paper's lifting, Appendix B)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..errors import SpaceError, VectorError
from ..spaces import Copower, R, Space, direct_sum
from .bilinear import Hadamard, ScalarMul
from .core import Arrow, Combine, Compose, Const, Term
from .makers import frozen
from .open import Combinator, OpenPointwise, connect, zero_at
from .primitives import Primitive, power
from .primitives import divide as quotient
from .sums import Fork, Map, Zip


def _number(k: Any) -> bool:
    return isinstance(k, (int, float, np.integer, np.floating)) and not isinstance(k, bool)


def _is_zero(f: Any) -> bool:
    return isinstance(f, Combinator) and f.maker is zero_at


def _lift(maker: Any, symbol: str, f: Any, g: Any, *parameters: Any) -> Any:
    """Apply a maker to two functions, either of which may be open, or a constant."""
    arrows = [x for x in (f, g) if isinstance(x, Arrow)]
    if len(arrows) < 2:
        function, value = arrows[0], g if isinstance(f, Arrow) else f
        if not (_number(value) or isinstance(value, (np.ndarray, tuple, list, dict))):
            raise SpaceError(f"cannot form f {symbol} g with g = {value!r}: functions combine with functions and constant vectors")
        swap = not isinstance(f, Arrow)
        wrap = _with_constant if not swap else _constant_with
        if isinstance(function, Term):
            return wrap(function, maker, _freeze(value), *parameters)
        return OpenPointwise(symbol, wrap, (function,), (maker, _freeze(value), *parameters))
    if _is_zero(f) or _is_zero(g):
        return maker(*_typed_zeros(f, g), *parameters) if _one_typed(f, g) else OpenPointwise(symbol, maker, (f, g), parameters)
    match isinstance(f, Term), isinstance(g, Term):
        case True, True:
            return maker(f, g, *parameters)
        case True, False:
            return maker(f, g.at(f.domain), *parameters)
        case False, True:
            return maker(f.at(g.domain), g, *parameters)
        case _:
            return OpenPointwise(symbol, maker, (f, g), parameters)


def _one_typed(f: Any, g: Any) -> bool:
    return isinstance(f, Term) or isinstance(g, Term)


def _typed_zeros(f: Any, g: Any) -> tuple[Term, Term]:
    from .core import ZeroMap

    t = cast(Term, f if isinstance(f, Term) else g)
    zero = ZeroMap(t.domain, t.codomain)
    return (zero, t) if _is_zero(f) else (t, zero)


def _freeze(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        from ..relations import freeze

        return freeze(cast(Any, value))
    return (cast(Any, value),) if isinstance(value, (list, dict)) else value


@lru_cache(maxsize=256)
def _filled(value: float, shape: tuple[int, ...]) -> Any:
    """A constant array without memory, the same each time, so that terms with it are the same."""
    return np.broadcast_to(value, shape) if shape else value


def _constant(value: Any, domain: Space, codomain: Space) -> Term:
    """A constant function into the codomain; a number fills every component of it."""
    if _number(value):
        leaves = [_filled(float(value), leaf.shape) for leaf in codomain.leaves]
    else:
        parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()
        given = cast(Any, parts[0] if len(parts) == 1 and isinstance(parts[0], (list, dict)) else value)
        leaves = codomain.open(given)
    return Const(domain, codomain, frozen(leaves))


def _with_constant(f: Term, maker: Any, value: Any, *parameters: Any) -> Term:
    return maker(f, _constant(value, f.domain, _room(f, value)), *parameters)


def _constant_with(f: Term, maker: Any, value: Any, *parameters: Any) -> Term:
    return maker(_constant(value, f.domain, _room(f, value)), f, *parameters)


def _room(f: Term, value: Any) -> Space:
    """Where a constant lives: in f's codomain, or, next to a scalar function, in its own space."""
    if _number(value) or value is None:
        return f.codomain
    from ..spaces import space_of

    try:
        own = space_of(value)
    except VectorError:
        return f.codomain
    return own if f.codomain is R or own is R else f.codomain


def add(f: Any, g: Any, sign: float) -> Any:
    """f + g or f − g."""
    return _lift(_sum, "+" if sign > 0 else "−", f, g, sign)


def _sum(f: Term, g: Term, sign: float) -> Term:
    return Combine((1.0, sign), (f, g))


def scale(k: float, f: Arrow) -> Any:
    """k · f."""
    return _scaled(f, float(k)) if isinstance(f, Term) else OpenPointwise("·", _scaled, (f,), (float(k),))


def _scaled(f: Term, k: float) -> Term:
    return Combine((k,), (f,))


def multiply(f: Any, g: Any) -> Any:
    """f · g: a number scales; otherwise the product at every point."""
    if _number(f):
        return scale(f, g)
    if _number(g):
        return scale(g, f)
    return _lift(_product, "·", f, g)


def _product(f: Term, g: Term) -> Term:
    V, W = f.codomain, g.codomain
    if V is R:
        return Compose(ScalarMul(W), Fork((f, g)))
    if W is R:
        return Compose(ScalarMul(V), Fork((g, f)))
    if V is W and isinstance(V, Copower) and V.base is R:
        return Compose(Hadamard(V), Fork((f, g)))
    raise SpaceError(f"cannot multiply f · g: f ends in {V}, g ends in {W}; one of them must be ℝ, or both the same ℝ^X")


def divide(f: Any, g: Any) -> Any:
    """f / g at every point."""
    if _number(g):
        return scale(1.0 / g, f)
    return _lift(_quotient, "/", f, g)


def _quotient(f: Term, g: Term) -> Term:
    V, W = f.codomain, g.codomain
    if V is R and W is R:
        return Compose(quotient, Fork((f, g)))
    if W is R:
        return Compose(ScalarMul(V), Fork((Compose(power(-1), g), f)))
    if V is W and isinstance(V, Copower) and V.base is R:
        return Compose(Compose(Map(quotient, V.index), Zip(direct_sum(V, V))), Fork((f, g)))
    raise SpaceError(f"cannot divide f / g: f ends in {V}, g ends in {W}; g must end in ℝ, or both in the same ℝ^X")


def raised(f: Arrow, k: Any) -> Any:
    """f ** k at every point, for a number k."""
    if not _number(k):
        raise SpaceError(f"cannot raise a function to {k!r}: a number gives the pointwise power, an index set maps the function")
    p = power(k)
    return _raised(f, p) if isinstance(f, Term) else OpenPointwise("**", _raised, (f,), (p,))


def _raised(f: Term, p: Primitive) -> Term:
    V = f.codomain
    if isinstance(V, Copower) and V.base is R:
        return connect(Map(p, V.index), f)
    return connect(p, f)
