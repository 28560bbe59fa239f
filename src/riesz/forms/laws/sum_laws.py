"""Laws of sums: several terms that a textbook writes as one function."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..exact_numbers import ONE, TIES
from ..polynomials import Algebra, Labels, Monomial, Polynomial, Power
from .form_laws import called, sigmoid, without

SumLaw = Callable[[Algebra, Labels, list[Monomial]], Polynomial | None]
SUM_LAWS: list[SumLaw] = []


def sum_law(f: SumLaw) -> SumLaw:
    """Enters a law of sums."""
    SUM_LAWS.append(f)
    return f


@sum_law
def clipped(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """u where |u| < d, d sign(u) elsewhere: clip(u, −d, d)."""
    for c in dict.fromkeys([f for p in products for f in p.factors if f.atom.kind == "call" and f.atom.name in TIES]):
        if c.power != 1 or c.labels != tuple(range(len(shape))):
            continue
        difference = algebra.total([(1, c.atom.args[0]), (-1, c.atom.args[1])], c.atom.shape)
        sides = [p for p in difference.products if len(p.factors) == 1 and called(p.factors[0].atom, "abs") is not None]
        if len(sides) != 1 or abs(sides[0].scale) != 1 or sides[0].factors[0].power != 1:
            continue
        (u,) = sides[0].factors[0].atom.args
        near = sides[0].scale < 0  # [d > |u|]
        rest = [p._replace(scale=p.scale if near else -p.scale) for p in difference.products if p is not sides[0]]
        d = algebra.form(shape, rest)
        there = [p._replace(factors=tuple([f for f in p.factors if f != c])) for p in products if c in p.factors]
        elsewhere = [p for p in products if c not in p.factors]
        one, other = algebra.form(shape, there + elsewhere), algebra.form(shape, elsewhere)
        inside, outside = (one, other) if near else (other, one)
        if not inside.products or not u.products:
            continue
        ratio = inside.products[0].scale / u.products[0].scale
        edge = algebra.times(d, algebra.call("sign", (u,), shape))
        if inside is algebra.scaled(ratio, u) and outside is algebra.scaled(ratio, edge):
            return algebra.scaled(ratio, algebra.call("clip", (u, algebra.scaled(-1, d), d), shape))
    return None


@sum_law
def hyperbolic_sums(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """exp(z) + exp(−z) = 2 cosh(z) and exp(z) − exp(−z) = 2 sinh(z)."""
    known: dict[object, tuple[int, Power]] = {}
    for m, p in enumerate(products):
        for k, f in enumerate(p.factors):
            z = called(f.atom, "exp")
            if z is None or f.power != 1:
                continue
            rest = algebra.form(shape, [Monomial(ONE, without(p, k), p.sizes)])
            other = known.get((rest, algebra.scaled(-1, z), f.labels, abs(p.scale)))
            known[rest, z, f.labels, abs(p.scale)] = m, f
            if other is None or other[0] == m:
                continue
            n, _ = other
            flip = algebra.content(z)[0] < 0  # of sinh(−z)
            z, first = (algebra.scaled(-1, z), n) if flip else (z, m)
            name = "cosh" if products[n].scale == p.scale else "sinh"
            atom = algebra.atom("call", name, (z,), z.shape, algebra.is_symmetric(z))
            new = Monomial(2 * products[first].scale, (*without(p, k), Power(atom, f.labels)), p.sizes)
            return algebra.form(shape, [*[q for i, q in enumerate(products) if i not in (m, n)], new])
    return None


@sum_law
def tanh_of_half(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """1 + tanh(z / 2) = 2 σ(z) and 1 − tanh(z / 2)² = 4 σ(z) σ(−z)."""
    for m, p in enumerate(products):
        for k, f in enumerate(p.factors):
            u = called(f.atom, "tanh")
            if u is None or f.power not in (1, 2) or abs(algebra.content(u)[0]) != Fraction(1, 2):
                continue
            rest = Monomial(ONE, without(p, k), p.sizes)
            alone = algebra.form(shape, [rest]).products
            other = next((i for i, q in enumerate(products) if alone == (q._replace(scale=ONE),)), None)
            if (
                other is None
                or (f.power == 2 and products[other].scale != -p.scale)
                or abs(products[other].scale) != abs(p.scale)
            ):
                continue
            scale = products[other].scale
            signs = (1, -1) if f.power == 2 else (1,) if scale == p.scale else (-1,)
            both = [Power(sigmoid(algebra, algebra.scaled(2 * sign, u)), f.labels) for sign in signs]
            new = Monomial(scale * 2 ** len(both), (*rest.factors, *both), p.sizes)
            return algebra.form(shape, [*[q for i, q in enumerate(products) if i not in (m, other)], new])
    return None
