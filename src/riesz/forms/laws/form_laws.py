"""Laws of functions in products. Each is oriented: what it gives has fewer functions, or is what a textbook writes.

A law takes an algebra, a product and the place of a factor, and gives the product that is equal to it, or None. They
hold where both sides are defined; numbers are computed by programs, not by forms.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..exact_numbers import BESIDES, ONE, TIES, exact, to_power
from ..polynomials import Algebra, Atom, Labels, Monomial, Polynomial, Power

Law = Callable[[Algebra, Monomial, int], Monomial | None]
LAWS: list[Law] = []
LAWS_ON: dict[str, list[Law]] = {}
"""Laws by the kind of factor, or the name of the function, whose place they are given."""


def law(*factors: str) -> Callable[[Law], Law]:
    """Enters a law that looks at some factors."""

    def enter(f: Law) -> Law:
        LAWS.append(f)
        for kind in factors:
            LAWS_ON.setdefault(kind, []).append(f)
        return f

    return enter


def laws_on(atom: Atom) -> list[Law]:
    """The laws that look at a factor."""
    name = "softmax" if atom.name.startswith("softmax") else atom.name
    return LAWS_ON.get(name if atom.kind in ("call", "whole") else atom.kind, [])


def without(product: Monomial, *places: int) -> tuple[Power, ...]:
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


def as_factor(algebra: Algebra, z: Polynomial, labels: Labels) -> Power | None:
    """A form as one factor at labels; None where it is a product of several."""
    one = z.single
    if one is not None:
        return one.at(labels.__getitem__)
    if len(z.products) < 2:
        return None
    scale, factor = algebra.together(z)
    return factor.at(labels.__getitem__) if scale == 1 else None


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


@law("sum")
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
    rest = list(without(product, k))
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


@law("sigmoid")
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
    return product._replace(factors=(*without(product, k, at), *kept, Power(sigmoid(algebra, minus), f.labels, times)))


@law("exp")
def exponentials(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """exp(z) exp(−z) = 1, exp(p log(u)) = uᵖ, and exp(z − log(u)) = exp(z) / u where u has fewer axes than z."""
    f = product.factors[k]
    (z,) = f.atom.args
    minus = algebra.scaled(-1, z)
    at = _place(product, algebra.atom("call", "exp", (minus,), z.shape, algebra.is_symmetric(z)), f.labels)
    if at is not None and f.power > 0:
        times = min(f.power, product.factors[at].power)
        kept = (*_left(f, times), *_left(product.factors[at], times))
        return product._replace(factors=(*without(product, k, at), *kept))
    for p in z.products:
        u = called(p.factors[0].atom, "log") if len(p.factors) == 1 and not p.sizes else None
        if u is None or p.factors[0].power != 1 or not (len(z.products) == 1 or len(u.shape) < z.rank):
            continue
        raised = algebra.power(u, exact(p.scale * f.power))
        if len(raised.products) != 1:
            continue
        q = algebra.renamed(raised.products[0], tuple([f.labels[i] for i in p.factors[0].labels]))
        rest = algebra.form(z.shape, [other for other in z.products if other is not p])
        if not rest.products:
            e: tuple[Power, ...] = ()
        else:
            scale, one = algebra.together(algebra.call("exp", (rest,), rest.shape))
            if scale != 1:
                continue
            e = (Power(one.atom, tuple([f.labels[i] for i in one.labels]), one.power * f.power),)
        return Monomial(product.scale * q.scale, (*without(product, k), *e, *q.factors), product.sizes | q.sizes)
    return None


@law("sum")
def one_minus_sigmoid(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """1 − σ(z) = σ(−z), inside products."""
    f = product.factors[k]
    s = _one_beside(algebra, f.atom, "sigmoid", -1)
    if s is None or len(product.factors) == 1:
        return None
    labels = tuple([f.labels[i] for i in s.labels])
    other = sigmoid(algebra, algebra.scaled(-1, s.atom.args[0]))
    return product._replace(factors=(*without(product, k), Power(other, labels, f.power)))


@law("sum")
def softmax(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """exp(z) / Σ exp(z) = softmax(z) along the axis that is summed; what is constant along it drops out of z."""
    f = product.factors[k]
    if f.power >= 0 or f.atom.kind != "sum" or len(f.atom.args[0].products) != 1:
        return None
    scale, inner, sizes = f.atom.args[0].products[0]
    if len(inner) != 1 or len(sizes) != 1 or inner[0].power != 1 or called(inner[0].atom, "exp") is None:
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
            factors = (*without(product, k, at), *kept, Power(atom, g.labels))
            return Monomial(product.scale / scale, factors, product.sizes)
    return None


@law("sum")
def shifts(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """w exp(z − m) / Σ w exp(z − m) = w exp(z) / Σ w exp(z), where m is constant along the axis that is summed."""
    f = product.factors[k]
    if f.power >= 0 or f.atom.kind != "sum" or len(f.atom.args[0].products) != 1:
        return None
    p = f.atom.args[0].products[0]
    within = [e for e in p.factors if e.power == 1 and called(e.atom, "exp") is not None]
    if len(within) != 1 or not p.sizes or len(p.factors) == 1:
        return None
    (e,) = within
    summed = {i for i, label in enumerate(e.labels) if label in p.sizes}
    z = e.atom.args[0]
    moving = [q for q in z.products if summed & {label for g in q.factors for label in g.labels}]
    above = [at for at, g in enumerate(product.factors) if g.atom is e.atom and g.power > 0]
    fits = [
        all([i in summed or product.factors[at].labels[i] == f.labels[e.labels[i]] for i in range(len(e.labels))])
        for at in above
    ]
    if not moving or len(moving) == len(z.products) or not all(fits):
        return None
    if sum([product.factors[at].power for at in above]) != -f.power:
        return None
    less = algebra.form(z.shape, moving)
    atom = algebra.atom("call", "exp", (less,), less.shape, algebra.is_symmetric(less))
    new = tuple([g._replace(atom=atom) if g is e else g for g in p.factors])
    scale, below = algebra.together(algebra.form(f.atom.shape, [p._replace(factors=new)]))
    if scale != 1:
        return None
    lowered = Power(below.atom, tuple([f.labels[i] for i in below.labels]), f.power)
    raised = [product.factors[at]._replace(atom=atom) for at in above]
    return product._replace(factors=(*without(product, k, *above), *raised, lowered))


@law("softmax", "array")
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
    return Monomial(product.scale, without(product, k), sizes)


@law("array")
def unit_vectors(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """Σ e[k] a[k] b[k] = (Σ e[k] a[k]) (Σ e[k] b[k]) and e[k] a[k] = e[k] Σ e a for a unit vector e, e[k]² = e[k],
    Σ e = 1; 0 for two of them."""
    f = product.factors[k]
    if f.atom.kind != "array" or f.atom.name not in algebra.units:
        return None
    if f.power != 1:
        return product._replace(factors=(*without(product, k), f._replace(power=ONE)))
    (label,) = f.labels
    on = [g for g in product.factors if label in g.labels and g is not f]
    if any([g.atom.name in algebra.units and g.atom.kind == "array" for g in on]):
        return Monomial(Fraction(0), (), {})
    if label in product.sizes and not on:
        sizes = {key: n for key, n in product.sizes.items() if key != label}
        return Monomial(product.scale, without(product, k), sizes)
    if len(on) < 1 + (label in product.sizes):
        return None
    other = algebra.fresh()
    moved = on[0].at(lambda i: other if i == label else i)
    rest = tuple([moved if g is on[0] else g for g in product.factors])
    return Monomial(product.scale, (*rest, Power(f.atom, (other,))), product.sizes | {other: f.atom.shape[0]})


@law("array")
def zeros_and_ones(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """mask² = mask for an array of zeros and ones."""
    f = product.factors[k]
    if f.atom.name not in algebra.masks or f.power <= 1:
        return None
    return product._replace(factors=(*without(product, k), f._replace(power=ONE)))


@law("tril", "triu", "array")
def halves(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """Halves of matrices of ones and rows of identities, squared, are themselves; the diagonal of a half is 1 or 0."""
    f = product.factors[k]
    half = f.atom.kind == "whole" and f.atom.name in ("tril", "triu")
    half = half and not any([p.factors for p in f.atom.args[0].products])
    if half and f.labels[0] == f.labels[1]:
        strict = len(f.atom.args) > 1 and f.atom.args[1].products[0].scale * (1 if f.atom.name == "triu" else -1) > 0
        return Monomial(product.scale * (not strict), without(product, k), product.sizes)
    rows = algebra.rows.get(f.atom.name, ()) if f.atom.kind == "array" else ()
    if f.power <= 1 or not (half or len(rows) == 1):
        return None
    return product._replace(factors=(*without(product, k), f._replace(power=ONE)))


def _difference(algebra: Algebra, atom: Atom) -> Polynomial:
    """u − v of [u > v]."""
    key = "difference", atom
    if key not in algebra.memo:
        algebra.memo[key] = algebra.total([(1, atom.args[0]), (-1, atom.args[1])], atom.shape)
    return algebra.memo[key]


@law(*TIES)
def steps(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """[u > 0]² = [u > 0] and max(0, u) [u > 0] = max(0, u)."""
    f = product.factors[k]
    if f.atom.kind != "call" or f.atom.name not in TIES:
        return None
    if f.power > 1:
        return product._replace(factors=(*without(product, k), f._replace(power=ONE)))
    difference = _difference(algebra, f.atom)
    for g in product.factors:
        if g.atom.kind == "call" and g.atom.name == "maximum" and g.labels == f.labels and g.power > 0:
            a, b = g.atom.args
            if (not a.products and b is difference) or (not b.products and a is difference):
                return product._replace(factors=without(product, k))
    return None


@law("sum")
def other_condition(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """1 − [u > v] = [v ≥ u], inside products."""
    f = product.factors[k]
    c = next((c for name in TIES if (c := _one_beside(algebra, f.atom, name, -1)) is not None), None)
    if c is None or len(product.factors) == 1 or f.power <= 0:
        return None
    other = algebra.atom("call", BESIDES[c.atom.name], c.atom.args[::-1], c.atom.shape)
    return product._replace(factors=(*without(product, k), Power(other, tuple([f.labels[i] for i in c.labels]))))


@law(*TIES)
def positive_parts(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """(u − v) [u > v] = max(0, u − v)."""
    f = product.factors[k]
    if f.atom.kind != "call" or f.atom.name not in TIES or f.power != 1:
        return None
    difference = _difference(algebra, f.atom)
    for sign in (1, -1):  # max(0, −z) = −z [0 > z]
        scale, part = algebra.together(difference if sign > 0 else algebra.scaled(-1, difference))
        part = difference.single or part
        if part.power != 1:
            continue
        for at, g in enumerate(product.factors):
            if g.atom is part.atom and g.labels == tuple([f.labels[i] for i in part.labels]) and g.power >= 1:
                zero = algebra.form(f.atom.shape, [])
                atom = algebra.atom(
                    "call", "maximum", (zero, difference), f.atom.shape, algebra.is_symmetric(difference)
                )
                rest = (*without(product, k, at), *_left(g, ONE), Power(atom, f.labels))
                return Monomial(product.scale / scale * sign, rest, product.sizes)
    return None


@law("minimum", "maximum")
def bounds_where_known(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """min(u, v) [v > u] = u [v > u], and the same for the other side and for max."""
    f = product.factors[k]
    if f.power < 1 or len(f.atom.args) != 2:
        return None
    u, v = f.atom.args if f.atom.name == "minimum" else f.atom.args[::-1]
    for side, other in ((u, v), (v, u)):
        less = algebra.total([(1, other), (-1, side)], f.atom.shape)
        for g in product.factors:
            if g.atom.name in TIES and g.labels == f.labels and _difference(algebra, g.atom) is less:
                left = algebra.power(side, f.power)
                if len(left.products) > 1:
                    left = algebra.form(left.shape, [Monomial(ONE, (algebra.together(left)[1],), {})])
                    if algebra.together(side)[0] != 1:
                        return None
                if not left.products:
                    return Monomial(Fraction(0), (), {})
                (p,) = left.products
                p = algebra.renamed(p, f.labels[len(f.labels) - side.rank :])
                return Monomial(product.scale * p.scale, (*without(product, k), *p.factors), product.sizes | p.sizes)
    return None


@law("cosh", "cos")
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
    return product._replace(factors=(*without(product, k, at), *rest, Power(atom, f.labels, times)))


@law("sign", "abs")
def signs_of_positive(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """sign(t z) = sign(z) and |t z| = t |z| for t > 0."""
    f = product.factors[k]
    z = f.atom.args[0]
    if len(z.products) != 1 or z.products[0].scale <= 0 or f.power != 1:
        return None
    p = z.products[0]
    sure = [g for g in p.factors if g.atom.kind == "array" and g.atom.name in algebra.positive]
    rest = tuple([g for g in p.factors if not any([g is t for t in sure])])
    if not sure or any([i in p.sizes for g in sure for i in g.labels]):
        return None
    outside = tuple([g.at(f.labels.__getitem__) for g in sure]) if f.atom.name == "abs" else ()
    scale = product.scale * (p.scale if f.atom.name == "abs" else 1)
    if not rest:
        return Monomial(scale, (*without(product, k), *outside), product.sizes)
    inner = algebra.call(f.atom.name, (algebra.form(z.shape, [Monomial(ONE, rest, p.sizes)]),), z.shape)
    q = algebra.renamed(inner.products[0], f.labels)
    return Monomial(scale * q.scale, (*without(product, k), *outside, *q.factors), product.sizes | q.sizes)


@law("sign", "abs")
def numbers_of_signs(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """|c z| = |c| |z| and sign(c z) = sign(c) sign(z) for a number c; sums keep their sign."""
    f = product.factors[k]
    number, _ = algebra.content(f.atom.args[0])
    number = number if len(f.atom.args[0].products) == 1 else abs(number)
    if number in (0, 1):
        return None
    z = algebra.scaled(1 / number, f.atom.args[0])
    atom = algebra.atom("call", f.atom.name, (z,), z.shape, algebra.is_symmetric(z))
    scale = product.scale * to_power(abs(number), f.power if f.atom.name == "abs" else Fraction(0))
    if number < 0 and f.atom.name == "sign" and f.power % 2:
        scale = -scale
    return Monomial(scale, (*without(product, k), f._replace(atom=atom)), product.sizes)


@law("sign", "abs")
def signs(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """zᵃ |z|ᵇ sign(z)ᶜ = zᵃ⁺ᵇ where b + c is even; else |z|, sign(z) or z |z| and powers of z."""
    f = product.factors[k]
    if f.atom.kind != "call" or f.atom.name not in ("sign", "abs"):
        return None
    z = f.atom.args[0]
    if f.atom.name == "sign" and f.power.denominator == 1 and not 0 <= f.power <= 1:
        left = (f._replace(power=ONE),) if f.power % 2 else ()
        return product._replace(factors=(*without(product, k), *left))
    one = as_factor(algebra, z, f.labels)
    if one is None or one.power != 1:
        return None
    marks = [algebra.atom("call", name, (z,), z.shape, algebra.is_symmetric(z)) for name in ("abs", "sign")]
    at = {
        i: g
        for i, g in enumerate(product.factors)
        if g[:2] in ((one.atom, one.labels), *[(m, f.labels) for m in marks])
    }
    powers = [sum([g.power for g in at.values() if g.atom is atom], Fraction(0)) for atom in (one.atom, *marks)]
    if any([p.denominator != 1 for p in powers]):
        return None
    degree, odd = powers[0] + powers[1], (powers[0] + powers[2]) % 2
    if odd == degree % 2:
        wanted = [degree, Fraction(0), Fraction(0)]
    elif odd:
        wanted = [degree, Fraction(0), ONE] if degree <= 0 else [ONE, degree - 1, Fraction(0)]
    else:
        wanted = [Fraction(0), degree, Fraction(0)]
    if wanted == powers:
        return None
    places = ((one.atom, one.labels), *[(m, f.labels) for m in marks])
    new = [Power(*place, p) for place, p in zip(places, wanted, strict=True) if p]
    return product._replace(factors=(*without(product, *at), *new))


@law("sum")
def nested_fractions(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """1 / (c (1 + z / c)) = 1 / (c + z), and the same for powers."""
    f = product.factors[k]
    if f.atom.kind != "sum" or f.power >= 0 or len(set(f.labels)) < len(f.labels):
        return None
    inner = f.atom.args[0]
    for at, c in enumerate(product.factors):
        times = c.power / f.power
        sure = f.power.denominator == 1 or c.atom.name in algebra.positive
        if at == k or times <= 0 or times.denominator != 1 or not {*c.labels} <= {*f.labels} or not sure:
            continue
        labels = tuple([f.labels.index(i) for i in c.labels])
        below = [
            -sum([g.power for g in p.factors if g.atom is c.atom and g.labels == labels], Fraction(0))
            for p in inner.products
        ]
        if max(below) != times or 2 * sum([b > 0 for b in below]) < len(below):
            continue
        raised = [p._replace(factors=(*p.factors, Power(c.atom, labels, times))) for p in inner.products]
        scale, new = algebra.together(algebra.form(inner.shape, raised), f.power)
        new = new.at(f.labels.__getitem__)
        return Monomial(product.scale * to_power(scale, f.power), (*without(product, k, at), new), product.sizes)
    return None


@law("sum")
def sums_to_a_power(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """‖x‖² ‖x‖ᵖ = ‖x‖ᵖ⁺²: a sum beside a power of itself."""
    f = product.factors[k]
    if f.atom.kind != "sum" or len(f.atom.args[0].products) != 1 or not f.atom.args[0].products[0].sizes:
        return None
    scale, inner, sizes = f.atom.args[0].products[0]
    if len(product.factors) <= len(inner):
        return None
    if not f.labels:
        for members in components(product, set(product.sizes)):
            if len(members) == len(inner):
                bound = {i: product.sizes[i] for g in members for i in g.labels}
                if algebra.form((), [Monomial(scale, tuple(members), bound)]) is f.atom.args[0]:
                    rest = tuple([g for g in product.factors if not any([g is m for m in (f, *members)])])
                    left = (f._replace(power=f.power + 1),) if f.power != -1 else ()
                    kept = {i: n for i, n in product.sizes.items() if i not in bound}
                    return Monomial(product.scale / scale, (*rest, *left), kept)
        return None
    if len(inner) != 1:
        return None
    for at, g in enumerate(product.factors):
        if g.atom is inner[0].atom and g.power == inner[0].power and at != k:
            names = dict(zip(inner[0].labels, g.labels, strict=True))
            fits = all([names[i] == f.labels[i] for i in names if i not in sizes])
            alone = [i for i in sizes if names[i] in product.sizes and _count(product, names[i]) == 1]
            if fits and len(alone) == len(sizes):
                left = (f._replace(power=f.power + 1),) if f.power != -1 else ()
                kept = {i: n for i, n in product.sizes.items() if i not in [names[j] for j in sizes]}
                return Monomial(product.scale / scale, (*without(product, k, at), *left), kept)
    return None


def _count(product: Monomial, label: int) -> int:
    """How often a label stands in a product."""
    return sum([g.labels.count(label) for g in product.factors])


def components(p: Monomial, bound: set[int]) -> list[list[Power]]:
    """The factors that hang together by labels, where all of these are summed."""
    groups: list[tuple[set[int], list[Power]]] = []
    for f in p.factors:
        if not f.labels:
            continue
        labels, members = set(f.labels), [f]
        for group in [g for g in groups if g[0] & labels]:
            groups.remove(group)
            labels, members = labels | group[0], [*group[1], *members]
        groups.append((labels, members))
    return [members for labels, members in groups if labels <= bound]
