"""Pointwise arithmetic of functions: f + g, f − g, k·f, f·g, f/g, f ** k   (the paper's lifting, Appendix B).

A number stands for a constant function that is that number in every component; arrays, tuples and dicts are constant
functions too. Products and powers act on coordinates, so they forget the weights of an inner product.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import SpaceError
from ..runtime import later
from ..spaces.formal_vectors import Formal, FormalProduct
from ..spaces.space import Copower, DirectSum, R, Space, direct_sum
from .bilinear import Hadamard, ScalarMul
from .named.named_sums import const
from .open import Combinator, OpenPointwise, connect, zero_at
from .primitives import Primitive, power
from .primitives import divide as quotient
from .sums import Fork, Map, Par, Zip
from .term import Arrow, Combine, Compose, Const, Term, ZeroMap
from .weights import Forget


def _number(k: Any) -> bool:
    return isinstance(k, (int, float, np.integer, np.floating)) and not isinstance(k, bool)


def _operand(f: Any, symbol: str) -> Any:
    if isinstance(f, Arrow) or _number(f):
        return f
    if isinstance(f, (np.ndarray, tuple, list, dict)):
        return const(f)
    rule = "functions combine with functions, numbers and constant vectors"
    raise SpaceError(f"cannot form f {symbol} g with g = {f!r}: {rule}")


def _lift(maker: Any, symbol: str, left: Any, right: Any, *parameters: Any) -> Any:
    """Apply a maker to two operands, either of which may be open, or a number."""
    if symbol in "+−-" and (type(right) is later.LinearMap or hasattr(right, "beside")):
        return NotImplemented  # which adds by itself
    f, g = _operand(left, symbol), _operand(right, symbol)
    if _number(f) or _number(g):
        k, h, first = (float(f), g, True) if _number(f) else (float(g), f, False)
        if isinstance(h, Term):
            return with_number(h, maker, k, first, *parameters)
        return OpenPointwise(symbol, with_number, (h,), (maker, k, first, *parameters))
    if isinstance(f, Term):
        return maker(f, _beside(f, g), *parameters)
    if isinstance(g, Term):
        return maker(_beside(g, f), g, *parameters)
    return OpenPointwise(symbol, maker, (f, g), parameters)


def _beside(f: Term, g: Arrow) -> Term:
    """g at the domain of f; the zero map has the codomain of f too."""
    zero = isinstance(g, Combinator) and g.maker is zero_at
    return ZeroMap(f.domain, f.codomain) if zero else g.at(f.domain)


def with_number(f: Term, maker: Any, k: float, first: bool, *parameters: Any) -> Term:
    """maker(k, f) or maker(f, k), with k as a constant function into f's codomain."""
    leaves = tuple([_filled(k, leaf.shape) for leaf in f.codomain.leaves])
    constant = Const(f.domain, f.codomain, leaves)
    return maker(constant, f, *parameters) if first else maker(f, constant, *parameters)


@lru_cache(maxsize=256)
def _filled(k: float, shape: tuple[int, ...]) -> Any:
    """k in every component, without memory; the same object each time, so that terms with it are the same."""
    return Formal(shape, (FormalProduct(k, ()),)) if shape else k


def unweighted(f: Term) -> Term:
    """f into its codomain without weights."""
    return f if f.codomain.plain else Compose(Forget(f.codomain), f)


def add(f: Any, g: Any, sign: float) -> Any:
    """f + g or f − g."""
    return _lift(_sum, "+" if sign > 0 else "−", f, g, sign)


def _sum(f: Term, g: Term, sign: float) -> Term:
    if f.codomain is not g.codomain:
        f, g = unweighted(f), unweighted(g)
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
    for k, h in ((f, g), (g, f)):
        if hasattr(k, "apply_primitive") and isinstance(h, Arrow) and not getattr(k, "shape", ()):  # a traced number
            return later.multiple(k, h)
    return _lift(_product, "·", f, g)


def _product(f: Term, g: Term) -> Term:
    f, g = unweighted(f), unweighted(g)
    V, W = f.codomain, g.codomain
    if V is R:
        return Compose(ScalarMul(W), Fork((f, g)))
    if W is R:
        return Compose(ScalarMul(V), Fork((g, f)))
    if V is W and _coordinates(V):
        return Compose(Hadamard(V), Fork((f, g)))
    needed = "one of them must be ℝ, or both the same space of arrays"
    raise SpaceError(f"cannot multiply f · g: f ends in {V}, g ends in {W}; {needed}")


def _coordinates(space: Space) -> bool:
    """Whether a space is made of real coordinates alone, tensors apart."""
    return not any([leaf.formal for leaf in space.leaves])


def divide(f: Any, g: Any) -> Any:
    """f / g at every point."""
    if _number(g):
        return scale(1.0 / g, f)
    if hasattr(g, "apply_primitive") and not getattr(g, "shape", ()):  # a traced number
        return later.multiple(1.0 / g, f)
    return _lift(_quotient, "/", f, g)


def _quotient(f: Term, g: Term) -> Term:
    f, g = unweighted(f), unweighted(g)
    V, W = f.codomain, g.codomain
    if V is R and W is R:
        return Compose(quotient, Fork((f, g)))
    if V is W and isinstance(V, Copower) and V.base is R:
        return Compose(Compose(Map(quotient, V.index), Zip(direct_sum(V, V))), Fork((f, g)))
    if W is R or (V is W and _coordinates(V)):
        return _product(Compose(everywhere(power(-1), W), g), f)
    needed = "g must end in ℝ, or both in the same space of arrays"
    raise SpaceError(f"cannot divide f / g: f ends in {V}, g ends in {W}; {needed}")


def raised(f: Arrow, k: Any) -> Any:
    """f ** k at every point, for a number k."""
    if not _number(k):
        rule = "a number gives the pointwise power, an index set maps the function"
        raise SpaceError(f"cannot raise a function to {k!r}: {rule}")
    p = power(k)
    return _raised(f, p) if isinstance(f, Term) else OpenPointwise("**", _raised, (f,), (p,))


def _raised(f: Term, p: Primitive) -> Term:
    f = unweighted(f)
    return connect(everywhere(p, f.codomain), f)


def everywhere(p: Term, space: Space) -> Term:
    """A function ℝ → ℝ in every coordinate of a space."""
    match space:
        case Copower(base=base, index=index):
            return Map(everywhere(p, base), index)
        case DirectSum(summands=parts):
            return Par(tuple([everywhere(p, s) for s in parts]), space.index, space.form)
        case _ if space is R:
            return p
        case _:
            raise SpaceError(f"{p} acts on real coordinates; {space} is not made of them alone")
