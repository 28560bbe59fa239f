"""Forms laid out as matrix expressions, with few symbols.

A product is a network: arrays are nodes, labels are edges. It is laid out by elimination. A label between a matrix and
a vector becomes a product M v, one that closes a loop a trace, two arrays with the same labels an entrywise product,
and so on, until an expression in the free labels is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .elimination import Elimination
from .exact_numbers import BESIDES, ONE, TIES, Number
from .expression_trees import Tree, Trees
from .laws.form_laws import components
from .laws.selection_laws import lists_of_places
from .polynomials import MANY, Algebra, Atom, Labels, Monomial, Polynomial, Power, Unreadable

WORK = 3000
"""How many factors are laid out with a search for what is shorter; forms of long programs are laid out as they are."""


class Layout:
    """Lays out forms of one algebra."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.trees = Trees()
        self.trees.units = algebra.units
        self._best: dict[tuple[int, int], Tree] = {}
        self._factored: dict[tuple[int, int], Tree] = {}
        self._work = 0
        self._steps = 0
        self.preferred: set[int] = set()  # forms that the user has a name for
        self.indices = False  # whether sums over indices may be written
        self.rows = 0  # of a form with more than two axes: how many are rows of its matrix

    # -- forms --------------------------------------------------------------------------------------------

    def tree(self, x: Polynomial) -> Tree:
        """The shortest layout that was found: as built, multiplied out, with 1 − σ(z) for σ(−z), over a common
        denominator; each factored."""
        key = x.id, self.rows if x.rank > 2 else 0
        known = self._best.get(key)
        if known is not None:
            return known
        candidates, makers = [x], [self.algebra.multiplied_out, self._with_one_of_two, self._over_one_denominator]
        if self.algebra.units:
            makers += [lambda y: lists_of_places(self.algebra, y), self._lists_inside]
        self._work += sum([1 + len(p.factors) for p in x.products])
        for make in makers if self._work < WORK else []:
            for y in list(candidates):
                try:
                    z = make(y)
                    candidates += [z] if len(z.products) <= 24 else []
                except Unreadable:
                    pass
        found: list[Tree] = []
        problem: Unreadable | None = None
        for y in dict.fromkeys(candidates):
            try:
                found.append(self.factored(y))
                if y.rank == 2 and not self.algebra.is_symmetric(y) and len(y.products) > 1:
                    other = self.factored(self.algebra.permuted(y, (1, 0)))  # Pᵀ − Qᵀ = (P − Q)ᵀ
                    if other.kind == "sum" and len(other.kids) == 1:  # the sign stays outside
                        continue
                    numbers = [t for t in other.kids if not t.rank] if other.kind == "chain" else []
                    rest = self.trees.chain([t for t in other.kids if t.rank], 2) if numbers else other
                    found.append(self.trees.chain([*numbers, self.trees.node("transpose", (rest,), rank=2)], 2))
            except Unreadable as p:
                problem = p
        if x.rank == 2 and len(x.used) == 1 and len(x.products) > 1:  # (a − b)𝟏ᵀ
            (at,), y = self.algebra.narrowed(x)
            sides = [self.factored(y), self.trees.ones(x.shape[1 - at])]
            found.append(self.trees.chain([sides[at], self.trees.turned(sides[1 - at])], 2))
        if not found:
            raise problem or Unreadable("no layout")
        best = self._best[key] = min(found, key=lambda t: t.weight)
        if best.rank == 2 and self.algebra.is_symmetric(x):
            best.symmetric = True
        return best

    def _lists_inside(self, x: Polynomial) -> Polynomial:
        """Lists of places where sums beside unit vectors are multiplied out, but not the sums inside of these."""
        opened: list[Monomial] = []
        for p in x.products:
            sums = {f.atom for f in p.factors if f.atom.kind == "sum" and f.power == 1}
            opened += _opened_once(self.algebra, p, sums)
        return lists_of_places(self.algebra, self.algebra.form(x.shape, opened))

    def _complements(self, atoms: list[Atom]) -> dict[Atom, Atom]:
        """Pairs of atoms that are 1 together: σ(−z) and σ(z), [v ≥ u] and [u > v]."""
        algebra, found, steps = self.algebra, dict[Atom, Atom](), dict[tuple[str, int], Atom]()
        for a in atoms:
            if a.kind == "call" and a.name == "sigmoid" and algebra.content(a.args[0])[0] < 0:
                z = algebra.scaled(-1, a.args[0])
                b = algebra.atom("call", "sigmoid", (z,), z.shape, a.symmetric)
                if b in atoms:
                    found[a] = b
            elif a.kind == "call" and a.name in TIES:
                u, v = a.args
                difference = algebra.total([(1, u), (-1, v)], a.shape)
                b = steps.get((BESIDES[a.name], algebra.scaled(-1, difference).id))
                if b is not None:
                    found[a] = b
                steps[a.name, difference.id] = a
        return found

    def _over_one_denominator(self, x: Polynomial) -> Polynomial:
        """1 / e − u / e² = (e − u) / e², with the terms of e above."""
        algebra = self.algebra
        lowest: dict[tuple[Atom, Labels], Fraction] = {}
        for p in x.products:
            for f in p.factors:
                if f.atom.kind == "sum" and f.power < 0 and all([k < x.rank for k in f.labels]):
                    key = f.atom, f.labels
                    lowest[key] = min(lowest.get(key, f.power), f.power)
        if not lowest or len(x.products) > 6:
            return x
        above: list[Monomial] = []
        for p in x.products:
            kept = [f for f in p.factors if (f.atom, f.labels) not in lowest]
            mine = {(f.atom, f.labels): f.power for f in p.factors}
            raised = [Power(*key, mine.get(key, Fraction(0)) - power) for key, power in lowest.items()]
            above.append(Monomial(p.scale, (*kept, *[f for f in raised if f.power]), p.sizes))
        top = algebra.form(x.shape, [q for p in above for q in _opened_once(algebra, p, {a for a, _ in lowest})])
        below = tuple([Power(*key, power) for key, power in lowest.items()])
        return algebra.form(x.shape, [p._replace(factors=(*p.factors, *below)) for p in top.products])

    def _with_one_of_two(self, x: Polynomial) -> Polynomial:
        """1 − σ(z) for σ(−z) and 1 − [u > v] for [v > u] where both occur, multiplied out."""
        algebra = self.algebra
        other = self._complements(list(dict.fromkeys([f.atom for p in x.products for f in p.factors])))
        waiting, done = list(x.products), list[Monomial]()
        while waiting:
            p = waiting.pop()
            for k, f in enumerate(p.factors):
                if f.atom in other and f.power > 0 and f.power.denominator == 1:
                    left = (f._replace(power=f.power - 1),) if f.power > 1 else ()
                    rest = (*p.factors[:k], *p.factors[k + 1 :], *left)
                    turned = Power(other[f.atom], f.labels)
                    waiting += [Monomial(p.scale, rest, dict(p.sizes))]
                    waiting += [Monomial(-p.scale, (*rest, turned), dict(p.sizes))]
                    break
            else:
                done.append(p)
        return algebra.multiplied_out(algebra.form(x.shape, done)) if other else x

    def plain(self, x: Polynomial) -> Tree:
        """Σ of its terms, each laid out."""
        if not x.products:
            shape = x.shape if x.rank < 3 else (math.prod(x.shape[: self.rows]), math.prod(x.shape[self.rows :]))
            return self.trees.node("zeros", value=shape, rank=len(shape)) if shape else self.trees.number(Fraction(0))
        parts = [self.product(p, x.shape) for p in x.products]
        parts.sort(key=lambda part: part[0] < 0)
        if len(parts) == 1 and parts[0][0] > 0:
            return parts[0][1]
        kids, signs = [t for _, t in parts], tuple([sign for sign, _ in parts])
        rank = min(x.rank, 2)
        return self.trees.node("sum", kids, signs, rank, self.algebra.is_symmetric(x))

    # -- factoring ----------------------------------------------------------------------------------------

    def factored(self, x: Polynomial, depth: int = 0) -> Tree:
        """The layout after common factors were taken out of sums, by steepest descent in the number of symbols."""
        key = x.id, self.rows if x.rank > 2 else 0
        if key not in self._factored:
            self._factored[key] = self._factor(x, depth)
        return self._factored[key]

    def _factor(self, x: Polynomial, depth: int) -> Tree:
        best = self.plain(x)
        if len(x.products) < 2:
            return best
        scales = [p.scale for p in x.products] if self._work < WORK else []
        for k in dict.fromkeys([self.algebra.content(x)[0], *map(abs, scales), *[-abs(k) for k in scales]]):
            broken = [isinstance(j, Fraction) and j.denominator == 1 and (j / k) % Fraction(1, 2) != 0 for j in scales]
            if abs(k) != 1 and not any(broken):
                inner = self.trees.prefixed(abs(k), [], [], self.plain(self.algebra.scaled(1 / k, x)), best.rank)
                found = self.trees.node("sum", (inner,), (-1,), inner.rank) if k < 0 else inner
                best = min(best, found, key=lambda t: t.weight)
        self._steps += 1
        if depth > 6 or len(x.products) > 16 or self._steps > 120 or self._work >= WORK:
            return best
        tried: list[tuple[int, int, Polynomial]] = []
        for y in self._common_factors(x)[:8]:
            try:
                tried.append((self.plain(y).weight, y.id, y))
            except Unreadable:
                continue
        for _, _, y in sorted(tried, key=lambda t: t[:2])[:1]:
            try:
                best = min(best, self.factored(y, depth + 1), key=lambda t: t.weight)
            except Unreadable:
                continue
        return best

    def _common_factors(self, x: Polynomial) -> list[Polynomial]:
        """The form with a factor taken out of the terms that share it, for each such factor."""
        rank = x.rank
        groups: dict[Any, dict[int, tuple[Monomial, Power, Labels]]] = {}
        products = [*enumerate(x.products), *_with_identities(self.algebra, x)]
        for m, p in products:
            for f in p.factors:
                for labels in {f.labels, f.labels[::-1]} if f.atom.symmetric else {f.labels}:
                    seen = tuple([(0, k) if k < rank else (1, labels.index(k)) for k in labels])
                    groups.setdefault((f.atom.id, f.power, seen), {}).setdefault(m, (p, f, labels))
        found: list[tuple[int, int, Polynomial]] = []
        for terms in groups.values():
            if len(terms) > 1:
                y = self._taken_out(x, terms)
                if y is not None:
                    found.append((-len(terms), y.id, y))
        for k, (terms, gone) in enumerate(_sums_inside(self.algebra, x)):
            y = self._taken_out(x, terms, gone)
            if y is not None:
                found.append((-len(gone), k, y))
        for terms in self._common_numbers(x):
            y = self._number_taken_out(x, terms)
            if y is not None:
                found.append((-len(terms), y.id, y))
        return [y for _, _, y in sorted(found, key=lambda t: t[:2])]

    def _common_numbers(self, x: Polynomial) -> list[dict[int, list[Power]]]:
        """Numbers made of several factors, such as xᵀAx, that several terms have: their factors, by term."""
        seen: dict[int, dict[int, list[Power]]] = {}
        for m, p in enumerate(x.products):
            for part in components(p, set(p.sizes)):
                if len(part) > 1:
                    sizes = {k: p.sizes[k] for f in part for k in f.labels}
                    number = self.algebra.form((), [Monomial(ONE, tuple(part), sizes)])
                    seen.setdefault(number.id, {}).setdefault(m, part)
        return [terms for terms in seen.values() if len(terms) > 1]

    def _number_taken_out(self, x: Polynomial, terms: dict[int, list[Power]]) -> Polynomial | None:
        rest: list[Monomial] = []
        for m, part in terms.items():
            p = x.products[m]
            gone = {k for f in part for k in f.labels}
            kept = tuple([f for f in p.factors if not any([f is g for g in part])])
            rest.append(Monomial(p.scale, kept, {k: n for k, n in p.sizes.items() if k not in gone}))
        R = self.algebra.form(x.shape, rest)
        if len(R.products) < 2:
            return None
        scale, factor = self.algebra.together(R)
        m, part = next(iter(terms.items()))
        sizes = {k: x.products[m].sizes[k] for f in part for k in f.labels}
        others = [p for k, p in enumerate(x.products) if k not in terms]
        return self.algebra.form(x.shape, [*others, Monomial(scale, (*part, factor), sizes)])

    def _taken_out(
        self, x: Polynomial, terms: dict[int, tuple[Monomial, Power, Labels]], gone: Sequence[int] = ()
    ) -> Polynomial | None:
        algebra, rank = self.algebra, x.rank
        _, first, pattern = next(iter(terms.values()))
        summed = list(dict.fromkeys([k for k in pattern if k >= rank]))
        sizes = dict(zip(pattern, first.atom.shape, strict=True))
        rest: list[Monomial] = []
        for p, f, labels in terms.values():
            mine = list(dict.fromkeys([k for k in labels if k >= rank]))
            kept = list(p.factors)
            kept.remove(f)
            open_ = {label: rank + i for i, label in enumerate(mine)}
            inner = {label: algebra.fresh() for label in p.sizes if label not in open_}
            names = open_ | inner
            factors = tuple([g.at(lambda k, names=names: names.get(k, k)) for g in kept])
            rest.append(Monomial(p.scale, factors, {inner[k]: p.sizes[k] for k in inner}))
        R = algebra.form([*x.shape, *[sizes[k] for k in summed]], rest)
        if len(R.products) < 2 or not _written_so(R, rank):
            return None
        scale, factor = algebra.together(R)
        names = {label: algebra.fresh() for label in summed}
        outside = first._replace(labels=tuple([names.get(k, k) for k in pattern]))
        inside = factor.at(lambda k: k if k < rank else names[summed[k - rank]])
        term = Monomial(scale, (outside, inside), {names[k]: sizes[k] for k in summed})
        others = [p for m, p in enumerate(x.products) if m not in terms and m not in gone]
        return algebra.form(x.shape, [*others, term])

    # -- one product --------------------------------------------------------------------------------------

    def product(self, p: Monomial, shape: Labels) -> tuple[int, Tree]:
        """A term: its sign and its tree."""
        sign, scale, factors = (-1 if p.scale < 0 else 1), abs(p.scale), list(p.factors)
        rows, self.rows = self.rows, 0  # of the product, not of its factors
        try:
            trees = [self.atom(f.atom) for f in factors]
        finally:
            self.rows = rows
        minus = [t.kind == "sum" and t.value == (-1,) for t in trees]
        for k, f in enumerate(factors):
            if minus[k] and f.power.denominator == 1:
                sign, trees[k] = sign * (-1) ** int(f.power), trees[k].kids[0]
        for k, f in enumerate(factors):
            once = sum([g.atom is f.atom for g in factors]) == 1 and not minus[k]
            if f.atom.kind == "sum" and f.power.denominator == 1 and f.power % 2 and once:
                inner = f.atom.args[0]
                signs = [q.scale < 0 for q in inner.products]
                turned = self.algebra.scaled(-1, inner)
                liked = (turned.id in self.preferred) - (inner.id in self.preferred)
                if liked > 0 or (sign < 0 and not liked and 2 * sum(signs) == len(signs)):  # −(a − b) = b − a
                    sign, trees[k] = -sign, self.tree(turned)
                if trees[k].kind == "sum" and trees[k].value == (-1,):
                    sign, trees[k] = -sign, trees[k].kids[0]
                if liked <= 0 and sign > 0:
                    break
        work = Elimination(self.trees, dict(p.sizes), len(shape), self.rows, self.indices)
        for f, t in zip(factors, trees, strict=True):
            work.add(f, t)
        main = work.result(shape)
        scale, above = self._means(scale, work.above)
        rank = min(len(shape), 2)
        return sign, self.trees.prefixed(scale, above, work.below, main, rank if main is not None else 0)

    def _means(self, scale: Number, numbers: list[Tree]) -> tuple[Number, list[Tree]]:
        """k · Σ x = k n · mean(x), and the same for ‖x‖²."""
        for k, t in enumerate(numbers):
            if t.kind == "power" and t.value == 2 and t.kids[0].kind == "norm" and isinstance(scale, Fraction):
                n = t.kids[0].value
                if n > 1 and scale.denominator > 1 and (scale * n).denominator == 1:
                    return scale * n, [*numbers[:k], self.trees.mean_square(t.kids[0]), *numbers[k + 1 :]]
            n = t.value[1] if t.kind == "call" and isinstance(t.value, tuple) else 1
            if n > 1 and isinstance(scale, Fraction) and (scale * n).denominator < scale.denominator:
                return scale * n, [*numbers[:k], self.trees.node("call", t.kids, "mean"), *numbers[k + 1 :]]
        return scale, numbers

    # -- atoms --------------------------------------------------------------------------------------------

    def atom(self, a: Atom) -> Tree:
        """An atom."""
        rank = len(a.shape)
        match a.kind:
            case "array":
                return self.trees.node("symbol", value=a.name, rank=rank, symmetric=a.symmetric)
            case "identity":
                return self.trees.node("identity", value=a.shape[0], rank=2, symmetric=True)
            case "sum":
                return self.tree(a.args[0])
            case "inverse":
                return self.trees.node("inverse", (self.tree(a.args[0]),), rank=2, symmetric=a.symmetric)
            case "determinant":
                return self.trees.node("call", (self.trees.folded(self.tree(a.args[0])),), "det")
            case "call" if a.name in TIES:
                return self._comparison(a)
            case "call" if a.name == "equal":
                return self.trees.node("equal", [self.tree(x) for x in a.args], rank=rank)
            case "call" if a.name.startswith("softmax"):
                inner = self.tree(a.args[0])
                if rank == 2 and a.name == "softmax0":
                    by_rows = self.trees.node("call", (self.trees.turned(inner),), "softmax", rank)
                    return self.trees.node("transpose", (by_rows,), rank=rank)
                return self.trees.node("call", (inner,), "softmax", rank)
            case _:
                return self.trees.node("call", [self.tree(x) for x in a.args], a.name, rank, a.symmetric)

    def _comparison(self, a: Atom) -> Tree:
        """[u > v], with all terms on the side where they are positive and no common number."""
        u, v = a.args
        difference = self.algebra.total([(1, u), (-1, v)], a.shape)
        common, rest = self.algebra.content(difference)
        difference = rest if common > 0 else self.algebra.scaled(-1, rest)
        left = [p for p in difference.products if p.scale > 0]
        right = [p._replace(scale=-p.scale) for p in difference.products if p.scale < 0]
        sides = [self.tree(self.algebra.form(a.shape, side)) for side in (left, right)]
        return self.trees.node("condition", sides, a.name, rank=len(a.shape))


def _with_identities(algebra: Algebra, x: Polynomial) -> list[tuple[int, Monomial]]:
    """M as M I and I M, for terms of a matrix beside products with M: M N + M = M (N + I)."""
    inside = {f.atom for p in x.products for f in p.factors if sum([k >= x.rank for k in f.labels]) == 1}
    found: list[tuple[int, Monomial]] = []
    for m, p in enumerate(x.products if x.rank == 2 else ()):
        for f in p.factors:
            if f.atom in inside and f.power == 1 and sorted(f.labels) == [0, 1]:
                rest = tuple([g for g in p.factors if g is not f])
                for k in (0, 1):
                    new, n = algebra.fresh(), f.atom.shape[k]
                    moved = f.at(lambda i, k=k, new=new, f=f: new if i == f.labels[k] else i)
                    unit = Power(algebra.identity(n), (new, f.labels[k]))
                    found.append((m, Monomial(p.scale, (*rest, moved, unit), p.sizes | {new: n})))
    return found


def _sums_inside(algebra: Algebra, x: Polynomial) -> list[tuple[dict[int, tuple[Monomial, Power, Labels]], list[int]]]:
    """M r + k r = (M + k I) r, where the terms of k r stand alone: what has r in it, and which terms are k r."""
    at = {_key(p): m for m, p in enumerate(x.products)}
    found: list[tuple[dict[int, tuple[Monomial, Power, Labels]], list[int]]] = []
    for m, p in enumerate(x.products if x.rank in (1, 2) else ()):
        for f in p.factors:
            moved = [k for k in f.labels if k >= x.rank]
            if f.atom.kind != "sum" or f.power != 1 or len(f.labels) != x.rank or len(moved) != 1:
                continue
            free = [k for k in range(x.rank) if k not in f.labels]
            if len(free) != 1 or x.shape[free[0]] != p.sizes[moved[0]]:
                continue
            alone = tuple([free[0] if k == moved[0] else k for k in f.labels])
            places = algebra.form(x.shape, [algebra.renamed(q, alone) for q in f.atom.args[0].products]).products
            gone = [at.get(_key(q), -1) for q in places]
            if -1 in gone or m in gone:
                continue
            k = x.products[gone[0]].scale / places[0].scale
            if any([x.products[i].scale != k * q.scale for i, q in zip(gone, places, strict=True)]):
                continue
            new = algebra.fresh()
            one = f.at(lambda i, a=moved[0], new=new: new if i == a else i)
            unit = Power(algebra.identity(x.shape[free[0]]), (new, free[0]))
            other = Monomial(k, (one, unit), {new: p.sizes[moved[0]]})
            found.append(({m: (p, f, f.labels), gone[0]: (other, one, one.labels)}, gone))
    return found


def _key(p: Monomial) -> Any:
    """A product without its number."""
    return p.factors, tuple(p.sizes.items())


def _opened_once(algebra: Algebra, p: Monomial, sums: set[Atom]) -> list[Monomial]:
    """A product with these sums multiplied out."""
    waiting, done = [p], list[Monomial]()
    while waiting:
        p = waiting.pop()
        f = next((f for f in p.factors if f.atom in sums and f.power > 0 and f.power.denominator == 1), None)
        if f is None:
            done.append(p)
            continue
        left = (f._replace(power=f.power - 1),) if f.power > 1 else ()
        rest = (*[g for g in p.factors if g is not f], *left)
        if len(waiting) + len(done) > MANY:
            raise Unreadable("a product of too many sums")
        for q in f.atom.args[0].products:
            q = algebra.renamed(q, f.labels)
            waiting.append(Monomial(p.scale * q.scale, rest + q.factors, p.sizes | q.sizes))
    return done


def _written_so(R: Polynomial, rank: int) -> bool:
    """Whether a sum is one that a textbook would write: every term has all labels, and outer products stay apart from
    matrices."""
    used = set(R.used)
    kinds = set[bool]()
    for p in R.products:
        mine = {k for f in p.factors for k in f.labels if k < R.rank}
        if mine and mine != used:
            return False
        if len(used) > 1 and mine:
            parts = {k: {k} for f in p.factors for k in f.labels}
            for f in p.factors:
                joined = set().union(*[parts[k] for k in f.labels]) if f.labels else set[int]()
                for k in joined:
                    parts[k] = joined
            kinds.add(len({min(parts[k]) for k in mine}) > 1)
    return len(kinds) < 2 or R.rank == rank
