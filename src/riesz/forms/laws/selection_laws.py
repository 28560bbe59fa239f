"""Laws of unit vectors and of matrices that select: sums over all of them, sums and products of such matrices.

Each has fewer terms or fewer factors after it than before.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np

from ..exact_numbers import ONE, to_power
from ..polynomials import Algebra, Atom, Labels, Monomial, Polynomial, Power, Unreadable, factors_of
from .form_laws import called, law, sigmoid, without
from .sum_laws import sum_law

MOST = 4096
"""Sums over more unit vectors stay as they are written."""
TOGETHER = 3
"""Products of more unit vectors stay as they are written."""
WORK = 20
"""How many terms with unit vectors are looked at, for each such vector."""
_ALONG = -1  # the label of a place that is opened


@law("array")
def rows_of_rows(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """I[i] I[j] = I[j[i]]: rows of rows are rows."""
    f = product.factors[k]
    left, units = algebra.rows.get(f.atom.name), algebra.units.get(f.atom.name)
    if f.atom.kind != "array" or not (left or units is not None):
        return None
    label = f.labels[-1]
    if label not in product.sizes or f.power != 1 or sum([g.labels.count(label) for g in product.factors]) != 2:
        return None
    for at, g in enumerate(product.factors):
        right = algebra.rows.get(g.atom.name) if g.atom.kind == "array" and at != k else None
        if not right or g.labels[0] != label or g.power != 1 or (units is not None and len(right) > 1):
            continue
        m = g.atom.shape[1]
        if units is not None:
            found: Polynomial = algebra.selected.unit(int(next(iter(right))[1][units]), m)
        else:
            found = algebra.selected.combined_rows([(a * b, j[i]) for a, i in left or () for b, j in right], m)
        if not found.products:
            return Monomial(Fraction(0), (), {})
        sizes = {key: n for key, n in product.sizes.items() if key != label}
        p = algebra.renamed(found.products[0], (*f.labels[:-1], g.labels[1]))
        return Monomial(product.scale * p.scale, (*without(product, k, at), *p.factors), sizes | p.sizes)
    return None


@law("sum")
def picked_entries(algebra: Algebra, product: Monomial, k: int) -> Monomial | None:
    """P[i, j] / Σₖ P[i, k] X[i, k] = P[i, j] / X[i, j], for rows P of an identity."""
    f = product.factors[k]
    inner = f.atom.args[0].products
    if len(inner) != 1 or len(inner[0].sizes) != 1 or f.power.denominator != 1:
        return None
    ((p,), (summed,)) = inner, inner[0].sizes
    for P in p.factors:
        if not _picks(algebra, P) or P.labels[1] != summed or P.labels[0] == summed:
            continue
        for g in product.factors:
            if g.atom is P.atom and g.power == 1 and g.labels[0] == f.labels[P.labels[0]]:
                places = {summed: g.labels[1]} | dict(enumerate(f.labels))
                rest = [q.at(places.__getitem__) for q in p.factors if q is not P]
                raised = [q._replace(power=q.power * f.power) for q in rest]
                scale = product.scale * to_power(p.scale, f.power)
                return Monomial(scale, (*without(product, k), *raised), product.sizes)
    return None


def _picks(algebra: Algebra, P: Power) -> bool:
    """Whether a factor is a matrix whose rows are rows of an identity."""
    if P.atom.kind != "array" or P.power != 1 or len(P.labels) != 2:
        return False
    name = P.atom.name
    rows = algebra.rows.get(name, ())
    return (len(rows) == 1 and rows[0][0] == 1) or (name in algebra.masks and name in algebra.stochastic)


@sum_law
def sums_of_rows(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """a I[i] x + b I[j] x = (a I[i] + b I[j]) x."""
    every = {f.atom for p in products for f in p.factors if f.atom.kind == "array"} if algebra.rows else set[Atom]()
    shapes = [a.shape for a in every if a.name in algebra.rows]
    groups: dict[Any, list[tuple[int, int]]] = {}
    for m, p in enumerate(products if len({*shapes}) < len(shapes) else ()):
        for k, f in enumerate(p.factors):
            if f.atom.kind == "array" and f.atom.name in algebra.rows and f.power == 1:
                rest = _opened(algebra, shape, p, f)
                groups.setdefault((rest[0], rest[1].id, f.atom.shape), []).append((m, k))
    for (_, _, size), members in groups.items():
        scales = [products[m].scale for m, _ in members]
        if len({m for m, _ in members}) < max(2, len(members)) or not all([isinstance(s, Fraction) for s in scales]):
            continue
        least = min(map(abs, scales))
        times = [s / least for s in scales]
        if any([t % 1 for t in times]):
            continue
        rows = [
            (int(t) * a, i)
            for t, (m, k) in zip(times, members, strict=True)
            for a, i in algebra.rows[products[m].factors[k].atom.name]
        ]
        found = algebra.selected.combined_rows(rows, size[1])
        (m, k), taken = members[0], {m for m, _ in members}
        kept = [p for i, p in enumerate(products) if i not in taken]
        p, labels = products[m], products[m].factors[k].labels
        new = [
            Monomial(least * q.scale, (*without(p, k), *q.factors), p.sizes | q.sizes)
            for q in [algebra.renamed(q, labels) for q in found.products]
        ]
        return algebra.form(shape, [*kept, *new])
    return None


def _opened(algebra: Algebra, shape: Labels, p: Monomial, *fs: Power) -> tuple[Labels, Polynomial]:
    """A product without some factors and without its number: where those factors stand (a free label, or −1 − which
    summed one), and the rest as a form with an axis more for each summed label of them."""
    rank, labels = len(shape), [i for f in fs for i in f.labels]
    summed = list(dict.fromkeys([i for i in labels if i >= rank]))
    places = tuple([i if i < rank else -1 - summed.index(i) for i in labels])
    names = {i: rank + j for j, i in enumerate(summed)}
    names |= {i: algebra.fresh() for i in p.sizes if i not in names}
    rest = tuple([g.at(lambda i: names.get(i, i)) for g in p.factors if not any([g is f for f in fs])])
    sizes = {names[i]: n for i, n in p.sizes.items() if i not in summed}
    return places, algebra.form([*shape, *[p.sizes[i] for i in summed]], [Monomial(ONE, rest, sizes)])


@sum_law
def all_unit_vectors(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """Σᵢ t(eᵢ) over all unit vectors eᵢ: what t is at each place, summed. Σᵢ eᵢ eᵢᵀ = I, Σᵢ eᵢ = 𝟏."""
    inside = [_units(algebra, p) for p in products] if algebra.units else []
    counts: dict[int, set[int]] = {}
    for atom in [atom for atoms in inside for atom in atoms]:
        counts.setdefault(atom.shape[0], set()).add(atom.id)
    full = {n: algebra.of(algebra.identity(n)) for n, atoms in counts.items() if len(atoms) == n <= MOST and n > 1}
    groups: dict[Any, dict[int, int]] = {}
    alike = _alike(algebra, products, (min(full) + 1) // 2) if full else list[int]()
    for m in alike:
        p = products[m]
        for atom in inside[m] if len(inside[m]) <= TOGETHER else ():
            if atom.shape[0] in full:
                each = _each(algebra, shape, p, {atom: full[atom.shape[0]]})
                if each is not None:
                    groups.setdefault((each, p.scale), {})[algebra.units[atom.name]] = m
    for (each, scale), members in groups.items():
        missing = sorted({*range(each.shape[0])} - {*members})
        kept: list[Monomial] | None = [p for m, p in enumerate(products) if m not in members.values()]
        for at in missing if 2 * len(members) >= each.shape[0] else ():  # among others, where its vectors meet others
            kept = None if kept is None else _without_one(algebra, shape, kept, each, scale, at)
        if kept is not None and 2 * len(members) >= each.shape[0]:
            return _summed(algebra, shape, kept, scale, each)
    return None


@sum_law
def numbers_at_places(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """Σᵢ vᵢ eᵢ = v for the numbers of a captured vector v, or of a multiple of it."""
    groups: dict[Any, dict[int, int]] = {}
    for m, p in enumerate(products) if len(algebra.units) > 1 else ():
        for f in p.factors:
            if f.atom.kind == "array" and f.atom.name in algebra.units and f.power == 1:
                key = *_opened(algebra, shape, p, f), f.atom.shape[0]
                groups.setdefault(key, {})[algebra.units[f.atom.name]] = m
    for ((place,), rest, n), members in groups.items():
        if 1 < len(members) == len({*members.values()}) and n <= MOST:
            v = algebra.named([products[members[i]].scale if i in members else Fraction(0) for i in range(n)])
            if v is not None:
                kept = [p for m, p in enumerate(products) if m not in members.values()]
                labels = tuple(range(rest.rank)), (place if place >= 0 else len(shape),)
                whole = algebra.contracted(labels, tuple(range(len(shape))), (rest, v))
                return algebra.total([(1, algebra.form(shape, kept)), (1, whole)], shape)
    return None


@sum_law
def sigmoids_of_both_signs(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """σ(zᵢ) eᵢ for some i and −σ(−zᵢ) eᵢ = (σ(zᵢ) − 1) eᵢ for all others: σ of the same sign for all."""
    at: dict[int, dict[bool, dict[int, tuple[int, Power]]]] = {}
    for m, p in enumerate(products) if len(algebra.units) > 1 else ():
        units = [f for f in p.factors if f.atom.kind == "array" and f.atom.name in algebra.units and f.power == 1]
        curves = [f for f in p.factors if called(f.atom, "sigmoid") is not None and f.power == 1]
        if len(units) == len(curves) == 1:
            place, n = algebra.units[units[0].atom.name], units[0].atom.shape[0]
            minus = algebra.content(curves[0].atom.args[0])[0] < 0
            at.setdefault(n, {}).setdefault(minus, {})[place] = m, curves[0]
    for n, both in at.items():
        plus, minus = both.get(False, {}), both.get(True, {})
        if not plus or not minus or {*plus} & {*minus} or len(plus) + len(minus) != n:
            continue
        new = [p for m, p in enumerate(products) if m not in {m for m, _ in minus.values()}]
        for m, f in minus.values():
            p, z = products[m], f.atom.args[0]
            rest = tuple([g for g in p.factors if g is not f])
            turned = f._replace(atom=sigmoid(algebra, algebra.scaled(-1, z)))
            new += [p._replace(factors=rest), p._replace(scale=-p.scale, factors=(*rest, turned))]
        return algebra.form(shape, new)
    return None


@sum_law
def pairs_of_unit_vectors(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """Σᵢ eᵢ e_j[i]ᵀ = I[j]: outer products of unit vectors, one for each i."""
    groups: dict[Any, dict[int, tuple[int, int]]] = {}
    for m, p in enumerate(products) if len(algebra.units) > 2 else ():
        units = [f for f in p.factors if f.atom.kind == "array" and f.atom.name in algebra.units and f.power == 1]
        for u, v in permutations(units, 2) if len(units) <= TOGETHER else ():
            places, rest = _opened(algebra, shape, p, u, v)
            key = places, rest, p.scale, u.atom.shape[0], v.atom.shape[0]
            groups.setdefault(key, {})[algebra.units[u.atom.name]] = m, algebra.units[v.atom.name]
    for (places, rest, scale, n, width), members in groups.items():
        terms = {m for m, _ in members.values()}
        if len(terms) == len(members) == n <= MOST and len({j for _, j in members.values()}) > 1:
            rows = algebra.selected.rows(np.array([members[i][1] for i in range(n)]), width)
            kept = [p for m, p in enumerate(products) if m not in terms]
            labels = tuple([i if i >= 0 else len(shape) - 1 - i for i in places])
            together = algebra.contracted((tuple(range(rest.rank)), labels), tuple(range(len(shape))), (rest, rows))
            return algebra.total([(1, algebra.form(shape, kept)), (scale, together)], shape)
    return None


def _without_one(
    algebra: Algebra, shape: Labels, products: list[Monomial], each: Polynomial, scale: Any, at: int
) -> list[Monomial] | None:
    """Products without one that is t(e) at a place, or less of it; None where there is none, or not so much."""
    unit = algebra.selected.unit(at, each.shape[0])
    there = algebra.contracted([(_ALONG,), (_ALONG, *range(len(shape)))], tuple(range(len(shape))), [unit, each])
    for m, p in enumerate(products):
        if p.scale / scale >= 1 and algebra.form(shape, [p._replace(scale=ONE)]) is there:
            return [*products[:m], p._replace(scale=p.scale - scale), *products[m + 1 :]]
    return None


@sum_law
def neighbours(algebra: Algebra, shape: Labels, products: list[Monomial]) -> Polynomial | None:
    """Σᵢ t(eᵢ, eᵢ₊₁, …) over a run of places: the same with the rows of I[a:b], I[a + 1:b + 1], …"""
    inside = [_units(algebra, p) for p in products] if len(algebra.units) > 2 else []
    groups: dict[Any, dict[int, int]] = {}
    for m in _alike(algebra, products, 3) if inside else list[int]():
        p, atoms = products[m], inside[m]
        if 0 < len(atoms) <= TOGETHER and len({a.shape for a in atoms}) == 1:
            places = [algebra.units[a.name] for a in atoms]
            n, first = atoms[0].shape[0], min(places)
            stand_ins = {a: algebra.array(f"·{i - first}", (n, n)) for a, i in zip(atoms, places, strict=True)}
            each = _each(algebra, shape, p, stand_ins)
            if each is not None:
                groups.setdefault(each, {})[first] = m
    for members in groups.values():
        run = _run({place: products[m].scale for place, m in members.items()})
        if run:
            p = products[members[run[0]]]
            rows = {
                a: algebra.selected.combined_rows([(1, np.array(run) + algebra.units[a.name] - run[0])], a.shape[0])
                for a in _units(algebra, p)
            }
            each = _each(algebra, shape, p, rows)
            used = {members[i] for i in run}
            kept = [q._replace(scale=q.scale - p.scale * (m in used)) for m, q in enumerate(products)]
            return each and _summed(algebra, shape, kept, p.scale, each)
    return None


def lists_of_places(algebra: Algebra, x: Polynomial) -> Polynomial:
    """Σ t(eᵢ, eⱼ) over a list of pairs i, j, as of the edges of a graph: the same with the rows of I[i] and I[j]."""
    while len(algebra.units) > 2:
        groups: dict[Any, dict[Labels, tuple[int, tuple[Atom, ...]]]] = {}
        for m in _alike(algebra, list(x.products), 3):
            p = x.products[m]
            atoms = _units(algebra, p)
            for order in permutations(atoms) if 0 < len(atoms) <= TOGETHER else ():
                places = tuple([algebra.units[a.name] for a in order])
                stand_ins = {a: algebra.array(f"·{k}", (2, *a.shape)) for k, a in enumerate(order)}
                each = _each(algebra, x.shape, p, stand_ins)
                if each is not None:
                    sign = -1 if each.products and each.products[0].scale < 0 else 1
                    key = algebra.scaled(sign, each), sign * p.scale
                    groups.setdefault(key, {})[places] = m, order
        several = [found for found in groups.values() if len({m for m, _ in found.values()}) == len(found) > 2]
        if not several:
            break
        members = max(several, key=len)
        m, order = next(iter(members.values()))
        p, ends = x.products[m], _both_ways(members)
        rest = [i for i in range(len(order)) if i not in ends]
        one_way = [i for i in members if not ends or i[ends[0]] < i[ends[1]]]
        lists = np.array(sorted(one_way, key=lambda i: (tuple([i[k] for k in rest if ends]), sorted(i)))).T
        turned = dict(zip(ends, ends[::-1], strict=True))
        ways = [order, tuple([order[turned.get(k, k)] for k in range(len(order))])]
        kept = [q for i, q in enumerate(x.products) if i not in {m for m, _ in members.values()}]
        for atoms in ways[: 1 + bool(ends)]:
            rows = {a: algebra.selected.rows(i, a.shape[0]) for a, i in zip(atoms, lists, strict=True)}
            each = _each(algebra, x.shape, p, rows)
            if each is None:
                return x
            kept = list(_summed(algebra, x.shape, kept, p.scale, each).products)
        x = algebra.form(x.shape, kept)
    return x


def _both_ways(members: Iterable[Labels]) -> tuple[int, ...]:
    """Two places such that every list is there also with these two exchanged, as edges are from either end."""
    known = set(members)
    for i, j in permutations(range(len(next(iter(known)))), 2) if known else ():
        turned = {tuple([p[{i: j, j: i}.get(k, k)] for k in range(len(p))]) for p in known}
        if i < j and turned == known and not any([p[i] == p[j] for p in known]):
            return i, j
    return ()


def _run(scales: dict[int, Any]) -> list[int]:
    """The longest run of places, at least three, whose terms are left alike when the number of the first is taken from
    all of them: 1, 101, 101, 100 is three times 1, then three times 100."""
    places = sorted(scales)
    if len(places) < 3 or len({b - a for a, b in pairwise(places)}) > 1:
        return []
    for count in range(len(places), 2, -1):
        left = {scales[i] - scales[places[0]] * (k < count) for k, i in enumerate(places)} - {0}
        if len(left) < 2:
            return places[:count]
    return []


def _alike(algebra: Algebra, products: list[Monomial], least: int) -> list[int]:
    """Which products there are at least so many of, if all unit vectors are alike."""
    groups: dict[Any, list[int]] = {}
    for m, p in enumerate(products):
        groups.setdefault(_skeleton(algebra, p.factors), []).append(m)
    return sorted([m for members in groups.values() if len(members) >= least for m in members])


def _skeleton(algebra: Algebra, factors: tuple[Power, ...]) -> Any:
    """Factors without labels and with all unit vectors alike; how often each comes up does not count."""
    known, waiting = algebra.memo, [f.atom for f in factors]
    while waiting:
        atom = waiting[-1]
        terms = [(p.scale, [("skeleton", g.atom) for g in p.factors]) for a in atom.args for p in a.products]
        later = [key[1] for _, keys in terms for key in keys if key not in known]
        waiting += later
        if not later:
            unit = atom.kind == "array" and atom.name in algebra.units
            inner = sorted([hash((k, *sorted({known[key] for key in keys}))) for k, keys in terms])
            known["skeleton", atom] = hash((atom.kind, "" if unit else atom.name, *inner))
            waiting.pop()
    return tuple(sorted({known["skeleton", f.atom] for f in factors}))


def _summed(algebra: Algebra, shape: Labels, kept: list[Monomial], scale: Any, each: Polynomial) -> Polynomial:
    out = tuple(range(1, each.rank))
    whole = algebra.contracted([tuple(range(each.rank))], out, [each])
    return algebra.total([(1, algebra.form(shape, kept)), (scale, whole)], shape)


def _units(algebra: Algebra, p: Monomial) -> list[Atom]:
    """The unit vectors in a product, also inside of functions."""
    every = [f.atom for f in p.factors]
    every += [f.atom for f in factors_of([a for f in p.factors for a in f.atom.args])]
    return list(dict.fromkeys([a for a in every if a.kind == "array" and a.name in algebra.units]))


def _each(algebra: Algebra, shape: Labels, p: Monomial, rows: dict[Atom, Polynomial]) -> Polynomial | None:
    """A product with rows of matrices in the place of unit vectors; None where that is not known."""
    x = algebra.form(shape, [p._replace(scale=ONE)])
    key = "rows", x, *rows.items()
    if key not in algebra.memo:
        done = algebra.memo["each"] = algebra.memo.get("each", 0) + 1
        try:
            algebra.memo[key] = everywhere(algebra, x, rows) if done < WORK * (10 + len(algebra.units)) else None
        except Unreadable:
            algebra.memo[key] = None
    return algebra.memo[key]


def everywhere(algebra: Algebra, x: Polynomial, rows: dict[Atom, Polynomial]) -> Polynomial:
    """A form with rows of matrices in the place of vectors: a first axis more, for the row."""
    n = next(iter(rows.values())).shape[0]
    parts: list[tuple[Any, Polynomial]] = []
    for p in x.products:
        labels: list[Labels] = [(_ALONG,)]
        factors: list[Polynomial] = [algebra.constant(1, (n,))]
        for f in p.factors:
            y, along = _factor(algebra, f, rows)
            labels.append((_ALONG, *f.labels) if along else f.labels)
            factors.append(y)
        sizes = p.sizes | dict(enumerate(x.shape)) | {_ALONG: n}
        parts.append((p.scale, algebra.contracted(labels, (_ALONG, *range(x.rank)), factors, sizes)))
    return algebra.total(parts, (n, *x.shape))


def _factor(algebra: Algebra, f: Power, rows: dict[Atom, Polynomial]) -> tuple[Polynomial, bool]:
    """A factor as a form, and whether it has an axis for the row."""
    atom = f.atom
    if atom in rows:
        return rows[atom], True
    if not any([_has(a, rows) for a in atom.args]):
        alone = f._replace(labels=tuple(range(len(atom.shape))))
        return algebra.form(atom.shape, [Monomial(ONE, (alone,), {})]), False
    if atom.kind == "sum":
        inside = everywhere(algebra, atom.args[0], rows)
    elif atom.kind == "call":
        n = next(iter(rows.values())).shape[0]
        found = [everywhere(algebra, a, rows) if _has(a, rows) else a for a in atom.args]
        inside = algebra.call(_one_axis_on(atom), found, (n, *atom.shape))
    else:
        raise Unreadable("a place inside of a function of whole arrays")
    return algebra.power(inside, f.power), True


def _one_axis_on(atom: Atom) -> str:
    """The name of a function where its argument has a first axis more: softmax1 for softmax0."""
    return f"softmax{int(atom.name[7:]) + 1}" if atom.name.startswith("softmax") else atom.name


def _has(x: Polynomial, rows: dict[Atom, Polynomial]) -> bool:
    return any([f.atom in rows for f in factors_of([x])])
