"""Laws of functions in products. Each is oriented: what it gives has fewer functions, or is what a textbook writes.

A law takes an algebra, a product and the place of a factor, and gives the product that is equal to it, or None. They
hold where both sides are defined; numbers are computed by programs, not by forms.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .polynomials import ONE, Algebra, Atom, Labels, Monomial, Polynomial, Power

Law = Callable[[Algebra, Monomial, int], Monomial | None]
LAWS: list[Law] = []


def law(f: Law) -> Law:
    """Enters a law."""
    LAWS.append(f)
    return f


def applied(algebra: Algebra, product: Monomial, rank: int) -> Monomial | None:
    """The first law that applies."""
    for k in range(len(product.factors)):
        for f in LAWS:
            found = f(algebra, product, k)
            if found is not None:
                return found
    return None


def _without(product: Monomial, *places: int) -> tuple[Power, ...]:
    return tuple([f for k, f in enumerate(product.factors) if k not in places])


def _left(f: Power, used: Fraction) -> tuple[Power, ...]:
    """What is left of a factor when some of its power is used."""
    return (f._replace(power=f.power - used),) if f.power != used else ()


def _place(product: Monomial, atom: Atom, labels: Labels) -> int | None:
    """Where a factor with a positive power stands."""
    for k, f in enumerate(product.factors):
        if f.atom is atom and f.labels == labels and f.power > 0:
            return k
    return None


def called(atom: Atom, name: str) -> Polynomial | None:
    """The argument of a function of this name."""
    return atom.args[0] if atom.kind == "call" and atom.name == name else None


def sigmoid(algebra: Algebra, z: Polynomial) -> Atom:
    """σ(z)."""
    return algebra.atom("call", "sigmoid", (z,), z.shape, algebra.is_symmetric(z))


def _one_beside(algebra: Algebra, atom: Atom, name: str, scale: int) -> Power | None:
    """f(z) of the sum 1 + scale · f(z)."""
    if atom.kind != "sum" or len(atom.args[0].products) != 2:
        return None
    number, function = None, None
    for p in atom.args[0].products:
        if not p.factors and p.scale == 1:
            number = p
        elif p.scale == scale and len(p.factors) == 1 and not p.sizes and p.factors[0].power == 1:
            function = p.factors[0] if called(p.factors[0].atom, name) is not None else None
    return function if number is not None else None


@law
def exponential_over_one_plus(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """exp(z) / (1 + exp(z)) = σ(z) and 1 / (1 + exp(z)) = σ(−z)."""
    f = product.factors[k]
    if f.power >= 0 or f.power.denominator != 1:
        return None
    e = _one_beside(algebra, f.atom, "exp", 1)
    if e is None:
        return None
    labels = tuple([f.labels[i] for i in e.labels])
    z = e.atom.args[0]
    rest = list(_without(product, k))
    times = Fraction(0)
    for i, g in enumerate(rest):
        if g.atom is e.atom and g.labels == labels and g.power > 0:
            times = min(g.power, -f.power)
            rest[i : i + 1] = _left(g, times)
            break
    if times:
        rest.append(Power(sigmoid(algebra, z), labels, times))
    if -f.power - times:
        rest.append(Power(sigmoid(algebra, algebra.scaled(-1, z)), labels, -f.power - times))
    return product._replace(factors=tuple(rest))


@law
def exponential_times_sigmoid(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """σ(z) exp(−z) = σ(−z)."""
    f = product.factors[k]
    z = called(f.atom, "sigmoid")
    if z is None or f.power <= 0:
        return None
    minus = algebra.scaled(-1, z)
    at = _place(product, algebra.atom("call", "exp", (minus,), z.shape, algebra.is_symmetric(z)), f.labels)
    if at is None or product.factors[at].power.denominator != 1:
        return None
    times = min(f.power, product.factors[at].power)
    kept = (*_left(f, times), *_left(product.factors[at], times))
    return product._replace(factors=(*_without(product, k, at), *kept, Power(sigmoid(algebra, minus), f.labels, times)))


@law
def one_minus_sigmoid(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """1 − σ(z) = σ(−z), inside products."""
    f = product.factors[k]
    s = _one_beside(algebra, f.atom, "sigmoid", -1)
    if s is None or len(product.factors) == 1:
        return None
    labels = tuple([f.labels[i] for i in s.labels])
    other = sigmoid(algebra, algebra.scaled(-1, s.atom.args[0]))
    return product._replace(factors=(*_without(product, k), Power(other, labels, f.power)))


@law
def softmax(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """exp(z) / Σ exp(z) = softmax(z) along the axis that is summed; what is constant along it drops out of z."""
    f = product.factors[k]
    if f.power >= 0 or f.atom.kind != "sum" or len(f.atom.args[0].products) != 1:
        return None
    scale, inner, sizes = f.atom.args[0].products[0]
    if scale != 1 or len(inner) != 1 or len(sizes) != 1 or inner[0].power != 1 or called(inner[0].atom, "exp") is None:
        return None
    e, places = inner[0].atom, inner[0].labels
    (summed,) = sizes
    if places.count(summed) != 1:
        return None
    axis = places.index(summed)
    for at, g in enumerate(product.factors):
        if g.atom is not e or g.power < 1:
            continue
        if all([g.labels[i] == f.labels[p] for i, p in enumerate(places) if i != axis]):
            z = e.args[0]
            moving = [p for p in z.products if any([axis in q.labels for q in p.factors])]
            atom = algebra.atom("call", f"softmax{axis}", (algebra.form(z.shape, moving),), z.shape)
            kept = (*_left(g, ONE), *((f._replace(power=f.power + 1),) if f.power != -1 else ()))
            return product._replace(factors=(*_without(product, k, at), *kept, Power(atom, g.labels)))
    return None


@law
def rows_that_sum_to_one(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """Σ softmax(z) = 1, and the same for arrays whose rows sum to 1."""
    f = product.factors[k]
    if f.power != 1 or not f.labels:
        return None
    if f.atom.kind == "call" and f.atom.name.startswith("softmax"):
        axis = int(f.atom.name[7:])
    elif f.atom.kind == "array" and f.atom.name in algebra.stochastic:
        axis = len(f.labels) - 1
    else:
        return None
    label = f.labels[axis]
    if label not in product.sizes or sum([g.labels.count(label) for g in product.factors]) != 1:
        return None
    sizes = {key: n for key, n in product.sizes.items() if key != label}
    return Monomial(product.scale, _without(product, k), sizes)


@law
def orthogonal(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """QᵀQ = I and Q Qᵀ = I."""
    f = product.factors[k]
    if f.atom.kind != "array" or f.atom.name not in algebra.orthogonal:
        return None
    for at, g in enumerate(product.factors):
        if at != k and g.atom is f.atom and f.power == g.power == 1:
            for i in (0, 1):
                label = f.labels[i]
                if g.labels[i] == label in product.sizes and sum([label in h.labels for h in product.factors]) == 2:
                    unit = Power(algebra.identity(f.atom.shape[0]), (f.labels[1 - i], g.labels[1 - i]))
                    sizes = {key: n for key, n in product.sizes.items() if key != label}
                    return Monomial(product.scale, (*_without(product, k, at), unit), sizes)
    return None


@law
def unit_vectors(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """Σ e[k] a[k] b[k] = (Σ e[k] a[k]) (Σ e[k] b[k]) for a unit vector e, and e[k]² = e[k]."""
    f = product.factors[k]
    if f.atom.kind != "array" or f.atom.name not in algebra.units:
        return None
    if f.power != 1:
        return product._replace(factors=(*_without(product, k), f._replace(power=ONE)))
    (label,) = f.labels
    on = [g for g in product.factors if label in g.labels and g is not f]
    if label not in product.sizes or len(on) < 2:
        return None
    other = algebra.fresh()
    moved = on[0].at(lambda i: other if i == label else i)
    rest = tuple([moved if g is on[0] else g for g in product.factors])
    return Monomial(product.scale, (*rest, Power(f.atom, (other,))), product.sizes | {other: f.atom.shape[0]})


@law
def steps(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """[u > 0]² = [u > 0] and max(0, u) [u > 0] = max(0, u)."""
    f = product.factors[k]
    if f.atom.kind != "call" or f.atom.name != "larger":
        return None
    if f.power > 1:
        return product._replace(factors=(*_without(product, k), f._replace(power=ONE)))
    u, v = f.atom.args
    difference = algebra.total([(1, u), (-1, v)], f.atom.shape)
    for g in product.factors:
        if g.atom.kind == "call" and g.atom.name == "maximum" and g.labels == f.labels and g.power > 0:
            a, b = g.atom.args
            if (not a.products and b is difference) or (not b.products and a is difference):
                return product._replace(factors=_without(product, k))
    return None


@law
def hyperbolic(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """sinh(z) / cosh(z) = tanh(z), sin(z) / cos(z) = tan(z)."""
    f = product.factors[k]
    pairs = {"cosh": ("sinh", "tanh"), "cos": ("sin", "tan")}
    if f.atom.kind != "call" or f.atom.name not in pairs or f.power >= 0:
        return None
    above, quotient = pairs[f.atom.name]
    at = _place(product, algebra.atom("call", above, f.atom.args, f.atom.shape, f.atom.symmetric), f.labels)
    if at is None:
        return None
    times = min(product.factors[at].power, -f.power)
    rest = (*_left(product.factors[at], times), *((f._replace(power=f.power + times),) if f.power + times else ()))
    atom = algebra.atom("call", quotient, f.atom.args, f.atom.shape, f.atom.symmetric)
    return product._replace(factors=(*_without(product, k, at), *rest, Power(atom, f.labels, times)))


@law
def inverse_times_matrix(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """M⁻¹ M = I and M M⁻¹ = I."""
    f = product.factors[k]
    if f.atom.kind != "inverse" or f.power != 1 or f.labels[0] == f.labels[1]:
        return None
    inner = f.atom.args[0]
    one = inner.single
    if one is not None and one.power != 1:
        return None
    atom, flipped = (one.atom, one.labels == (1, 0)) if one is not None else (algebra.together(inner)[1].atom, False)
    for at, g in enumerate(product.factors):
        if g.atom is not atom or g.power != 1 or at == k:
            continue
        rows = g.labels[::-1] if flipped else g.labels
        turns = ((f.labels, rows), (f.labels[::-1], rows)) if f.atom.symmetric else ((f.labels, rows),)
        for (i, j), (p, q) in (*turns, *[(a, b[::-1]) for a, b in turns if g.atom.symmetric]):
            for summed, left, right in ((j, i, q), (i, p, j)):
                meets = j == p if summed == j else i == q
                if meets and summed in product.sizes and sum([summed in h.labels for h in product.factors]) == 2:
                    sizes = {key: n for key, n in product.sizes.items() if key != summed}
                    unit = Power(algebra.identity(f.atom.shape[0]), (left, right))
                    return Monomial(product.scale, (*_without(product, k, at), unit), sizes)
    return None
