"""Polynomials of contraction networks: Σ coefficient · Π atom[labels]^exponent, labels free or summed.

Transposes, brackets, the order of factors, diagonals, traces and outer products are not in this language: two texts
that differ in them only are one form. Exponents are rational, so y · y⁻¹ and √y · √y cancel by addition. A sum inside a
product is an atom: nothing is multiplied out unless it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .exact_numbers import ONE, Number, added, common_number, exact, to_power

Labels = tuple[int, ...]
SERIES = {"expm", "sinm", "cosm", "logm", "sqrtm", "sinhm", "coshm", "pinv"}
"""Functions of matrices."""
MANY = 32
"""Products of sums are multiplied out up to this many terms."""


class Unreadable(Exception):
    """A step that has no closed form."""


class Atom:
    """A named array, an identity, a function of other forms, or a sum that stays together.

    kind: "array", "identity", "sum", "call" (at every index), "whole" (of whole arrays), "inverse", "determinant".
    """

    __slots__ = ("args", "id", "kind", "name", "shape", "symmetric")

    def __init__(
        self, id: int, kind: str, name: str, args: tuple[Polynomial, ...], shape: Labels, symmetric: bool
    ) -> None:
        self.id, self.kind, self.name, self.args, self.shape = id, kind, name, args, shape
        self.symmetric = symmetric


class Power(NamedTuple):
    """atom[labels]^power."""

    atom: Atom
    labels: Labels
    power: Fraction = ONE

    def at(self, labels: Callable[[int], int]) -> Power:
        """The same with other labels."""
        return Power(self.atom, tuple([labels(label) for label in self.labels]), self.power)


class Monomial(NamedTuple):
    """scale · Π factors, summed over the labels in `sizes`."""

    scale: Number
    factors: tuple[Power, ...]
    sizes: dict[int, int]


class Polynomial:
    """A sum of products with free labels 0, …, rank − 1. Equal forms of one algebra are one object."""

    __slots__ = ("id", "products", "shape")

    def __init__(self, id: int, shape: Labels, products: tuple[Monomial, ...]) -> None:
        self.id, self.shape, self.products = id, shape, products

    @property
    def rank(self) -> int:
        """The number of free labels."""
        return len(self.shape)

    @property
    def used(self) -> list[int]:
        """The free labels that it depends on."""
        every = {label for p in self.products for f in p.factors for label in f.labels}
        return [label for label in range(self.rank) if label in every]

    @property
    def single(self) -> Power | None:
        """Its one factor, where it is one factor and nothing else."""
        if len(self.products) == 1:
            scale, factors, sizes = self.products[0]
            if scale == 1 and len(factors) == 1 and not sizes:
                return factors[0]
        return None


class SpectralParts(NamedTuple):
    """matrix = left diag(values) rightᵀ; left and right are one for eigenvectors of a symmetric matrix."""

    matrix: Polynomial
    values: str
    right: str


class Algebra:
    """Forms and how they are built; each is interned here."""

    def __init__(self) -> None:
        self._atoms: dict[Any, Atom] = {}
        self._forms: dict[Any, Polynomial] = {}
        self._symmetric: dict[int, bool] = {}
        self._together: dict[Any, tuple[Number, Power]] = {}
        self._fresh = 10**6
        self.stochastic: set[str] = set()  # arrays whose rows sum to 1
        self.orthogonal: set[str] = set()
        self.positive: set[str] = set()  # arrays and numbers
        self.masks: set[str] = set()  # arrays of zeros and ones
        self.units: dict[str, int] = {}  # unit vectors: where their 1 is
        self.rows: dict[str, tuple[tuple[int, Any], ...]] = {}  # matrices Σ k I[index]
        self.memo: dict[Any, Any] = {}  # what laws have found, by their name and what they looked at
        self.selected: Any = None  # who makes such matrices, and unit vectors
        self.named: Callable[[Sequence[Number]], Polynomial | None] = lambda numbers: None  # numbers as a known vector
        self.triangular: dict[str, str] = {}  # "lower" or "upper"
        self.spectra: dict[str, SpectralParts] = {}  # by the name of left vectors
        self.laws: Callable[[Algebra, Monomial, int], Monomial | None] = lambda algebra, product, rank: None
        self.sum_laws: Callable[[Algebra, Labels, list[Monomial]], Polynomial | None] = lambda algebra, shape, ps: None

    # -- interning ----------------------------------------------------------------------------------------

    def atom(
        self, kind: str, name: str, args: Sequence[Polynomial], shape: Iterable[int], symmetric: bool = False
    ) -> Atom:
        """An atom, the same for the same description."""
        key = kind, name, tuple([a.id for a in args]), tuple(shape)
        if key not in self._atoms:
            self._atoms[key] = Atom(len(self._atoms), kind, name, tuple(args), key[3], symmetric)
        return self._atoms[key]

    def identity(self, n: int) -> Atom:
        """δ[i, j]."""
        return self.atom("identity", "I", (), (n, n), True)

    def fresh(self) -> int:
        """A label that nobody has."""
        self._fresh += 1
        return self._fresh

    def form(self, shape: Sequence[int], products: Iterable[Monomial]) -> Polynomial:
        """Σ of products: each simplified, like ones collected."""
        shape = tuple(shape)
        rank, total = len(shape), dict[Any, Monomial]()
        waiting = list(products)[::-1]
        while waiting:
            product = self._simplified(waiting.pop(), rank)
            if product is None:
                continue
            scale, factors, _ = product
            if len(factors) == 1 and self._opens(factors[0], rank):
                inner = factors[0].atom.args[0]
                for p in inner.products[::-1]:
                    waiting.append(self.renamed(p._replace(scale=scale * p.scale), factors[0].labels))
                continue
            product = self._canonical(product, rank)
            key = tuple([(f.atom.id, f.labels, f.power) for f in product.factors])
            before = total.get(key)
            total[key] = product if before is None else product._replace(scale=added(before.scale, scale))
        kept = [p._replace(scale=exact(p.scale)) for _, p in sorted(total.items()) if p.scale]
        numbers = [
            (p.scale, tuple([(f.atom.id, f.labels, f.power) for f in p.factors]), tuple(p.sizes.items())) for p in kept
        ]
        key = shape, tuple(numbers)
        if key not in self._forms:
            known = self.sum_laws(self, shape, kept) if len(kept) > 1 else None
            self._forms[key] = known or Polynomial(len(self._forms), shape, tuple(kept))
        return self._forms[key]

    @staticmethod
    def _opens(f: Power, rank: int) -> bool:
        """Whether a term is a sum alone, at free labels: then it is no product."""
        distinct = len(set(f.labels)) == len(f.labels)
        return f.atom.kind == "sum" and f.power == 1 and distinct and all([label < rank for label in f.labels])

    def renamed(self, p: Monomial, labels: Sequence[int]) -> Monomial:
        """A product with its free labels renamed and its summed ones fresh."""
        names = dict(enumerate(labels))
        sizes: dict[int, int] = {}
        for label, n in p.sizes.items():
            names[label] = self.fresh()
            sizes[names[label]] = n
        return Monomial(p.scale, tuple([f.at(names.__getitem__) for f in p.factors]), sizes)

    def _simplified(self, product: Monomial, rank: int) -> Monomial | None:
        """A product by the laws of all products, then by the laws of functions; None where it is zero."""
        scale, factors, sizes = product.scale, list(product.factors), dict(product.sizes)
        if scale == 0:
            return None
        while True:
            opened: list[Power] = []
            for f in factors:  # sums of one product
                if f.atom.kind == "sum" and len(f.atom.args[0].products) == 1 and f.power == 1:
                    p = self.renamed(f.atom.args[0].products[0], f.labels)
                    scale, sizes = scale * p.scale, sizes | p.sizes
                    opened += p.factors
                elif f.atom.kind == "sum" and not f.atom.args[0].products:
                    return None
                else:
                    opened.append(f)
            merged: dict[Any, Fraction] = {}
            for atom, labels, power in self._without_identities(opened, sizes):
                key = atom, tuple(sorted(labels)) if atom.symmetric else labels
                merged[key] = merged.get(key, Fraction(0)) + power
            factors = [Power(atom, labels, power) for (atom, labels), power in merged.items() if power]
            found = self.laws(self, Monomial(scale, tuple(factors), sizes), rank)
            if found is None:
                if not any(
                    [f.atom.kind == "sum" and len(f.atom.args[0].products) < 2 and f.power == 1 for f in factors]
                ):
                    break
            else:
                scale, factors, sizes = found.scale, list(found.factors), dict(found.sizes)
        on = {label for f in factors for label in f.labels}
        for label in [label for label in sizes if label not in on]:
            scale = scale * sizes.pop(label)
        return Monomial(scale, tuple(factors), sizes)

    @staticmethod
    def _without_identities(factors: list[Power], sizes: dict[int, int]) -> list[Power]:
        """δ[i, j] with one of its labels summed renames that label."""
        while True:
            for k, (atom, labels, _) in enumerate(factors):
                if atom.kind != "identity":
                    continue
                i, j = labels
                gone = i if i in sizes else j if j in sizes else None
                if i == j or gone is not None:
                    rest = factors[:k] + factors[k + 1 :]
                    if i != j:
                        kept = j if gone == i else i
                        rest = [f.at(lambda label, a=gone, b=kept: b if label == a else label) for f in rest]
                        del sizes[gone]  # type: ignore[arg-type]
                    factors = rest
                    break
            else:
                return factors

    @staticmethod
    def _canonical(p: Monomial, rank: int) -> Monomial:
        """The same product with its summed labels numbered by where they stand, whatever they were called."""
        bound = [label for label in p.sizes if any([label in f.labels for f in p.factors])]
        on = {label: [f for f in p.factors if label in f.labels] for label in bound}
        colour = {label: label for label in range(rank)} | dict.fromkeys(bound, rank)

        def seen(label: int) -> Any:
            rows: list[Any] = []
            for atom, labels, power in on[label]:
                row = [-1 if k == label else colour[k] for k in labels]
                rows.append((atom.id, power, tuple(sorted(row) if atom.symmetric else row)))
            return colour[label], p.sizes[label], sorted(rows)

        def refined() -> int:
            count = 0
            while True:
                views = {label: seen(label) for label in bound}
                order = sorted([views[label] for label in bound])
                numbers: dict[int, int] = {}
                for label in bound:
                    numbers[label] = rank + order.index(views[label])
                colour.update(numbers)
                if len(set(numbers.values())) == count:
                    return count
                count = len(set(numbers.values()))

        while bound and refined() < len(bound):
            shared = min([c for c in colour.values() if c >= rank and list(colour.values()).count(c) > 1])
            first = min([label for label in bound if colour[label] == shared])
            for label in bound:
                colour[label] = 2 * colour[label] + (label != first and colour[label] == shared)
            lowest = min([colour[label] for label in bound])
            for label in bound:
                colour[label] += rank - min(lowest, rank)
        places = {label: rank + k for k, label in enumerate(sorted(bound, key=colour.__getitem__))}
        factors: list[Power] = []
        for f in p.factors:
            f = f.at(lambda label: places.get(label, label))
            factors.append(Power(f.atom, tuple(sorted(f.labels)), f.power) if f.atom.symmetric else f)
        factors.sort(key=lambda f: (f.atom.id, f.labels, f.power))
        sizes = {place: p.sizes[label] for label, place in places.items()}
        return Monomial(p.scale, tuple(factors), sizes)

    # -- building -----------------------------------------------------------------------------------------

    def constant(self, k: Any, shape: Sequence[int] = ()) -> Polynomial:
        """One number at every index."""
        return self.form(shape, [Monomial(exact(k), (), {})])

    def array(self, name: str, shape: Sequence[int], symmetric: bool = False) -> Polynomial:
        """A named array."""
        return self.of(self.atom("array", name, (), shape, symmetric))

    def of(self, atom: Atom) -> Polynomial:
        """An atom as a form."""
        return self.form(atom.shape, [Monomial(ONE, (Power(atom, tuple(range(len(atom.shape)))),), {})])

    def total(self, parts: Sequence[tuple[Any, Polynomial]], shape: Sequence[int]) -> Polynomial:
        """Σ k · x, broadcast as in NumPy."""
        products: list[Monomial] = []
        for k, x in parts:
            shift = len(shape) - x.rank
            single = [i for i in range(x.rank) if x.shape[i] == 1 and shape[shift + i] != 1]
            for p in x.products:
                labels = [self.fresh() if i in single else shift + i for i in range(x.rank)]
                p = self.renamed(p._replace(scale=exact(k) * p.scale), labels)
                products.append(p._replace(sizes=p.sizes | {labels[i]: 1 for i in single}))
        return self.form(shape, products)

    def scaled(self, k: Any, x: Polynomial) -> Polynomial:
        """k · x."""
        return self.form(x.shape, [p._replace(scale=exact(k) * p.scale) for p in x.products])

    def contracted(
        self, labels: Sequence[Labels], out: Labels, xs: Sequence[Polynomial], extra: Any = ()
    ) -> Polynomial:
        """Σ of a product, with labels for each factor and for the result."""
        sizes: dict[int, int] = dict(extra)
        for ls, x in zip(labels, xs, strict=True):
            sizes |= dict(zip(ls, x.shape, strict=True))
        names: dict[int, int] = {}
        factors: list[Power] = []
        for k, label in enumerate(out):
            if label in names:  # a diagonal
                factors.append(Power(self.identity(sizes[label]), (names[label], k)))
            names.setdefault(label, k)
        bound = {label: self.fresh() for label in sizes if label not in names}
        names |= bound
        summed = {new: sizes[label] for label, new in bound.items()}
        scale: Number = ONE
        for ls, x in zip(labels, xs, strict=True):
            here = [names[label] for label in ls]
            if len(x.products) == 1:
                p = self.renamed(x.products[0], here)
                scale, summed = scale * p.scale, summed | p.sizes
                factors += p.factors
            else:
                content, f = self.together(x)
                scale = scale * content
                factors.append(f.at(here.__getitem__))
        return self.form([sizes[label] for label in out], [Monomial(scale, tuple(factors), summed)])

    def times(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """a · b at every index, broadcast."""
        shape = np.broadcast_shapes(a.shape, b.shape)

        def labels(x: Polynomial, own: int) -> Labels:
            shift = len(shape) - x.rank
            return tuple([shift + i if n == shape[shift + i] else own + i for i, n in enumerate(x.shape)])

        return self.contracted((labels(a, 100), labels(b, 200)), tuple(range(len(shape))), (a, b), enumerate(shape))

    def permuted(self, x: Polynomial, order: Sequence[int]) -> Polynomial:
        """x with axis k of the result being axis order[k]."""
        back = [list(order).index(i) for i in range(x.rank)]
        return self.form([x.shape[i] for i in order], [self.renamed(p, back) for p in x.products])

    def is_symmetric(self, x: Polynomial) -> bool:
        """Whether a square form is its own transpose."""
        if x.rank != 2 or x.shape[0] != x.shape[1]:
            return False
        if x.id not in self._symmetric:
            self._symmetric[x.id] = self.permuted(x, (1, 0)) is x or self._symmetric_inside(x)
        return self._symmetric[x.id]

    def _symmetric_inside(self, x: Polynomial) -> bool:
        """The same after squares of sums were multiplied out: (a − b)² = (b − a)²."""
        if not any([f.atom.kind == "sum" and f.power == 2 for p in x.products for f in p.factors]):
            return False
        try:
            opened = self.multiplied_out(x)
        except Unreadable:
            return False
        return self.permuted(opened, (1, 0)) is opened

    def content(self, x: Polynomial) -> tuple[Number, Polynomial]:
        """(k, x / k): the common number of a sum, with the sign that most of its terms have."""
        if not x.products:
            return Fraction(0), x
        scales = [_as_mean(p) for p in x.products]
        common = common_number(scales, [bool(p.factors) for p in x.products])
        negative = sum([k < 0 for k in scales])
        if 2 * negative > len(scales) or (2 * negative == len(scales) and scales[0] < 0):
            common = -common
        return (ONE, x) if common == 1 else (common, self.scaled(1 / common, x))

    def narrowed(self, x: Polynomial) -> tuple[list[int], Polynomial]:
        """The labels that x depends on, and x as a form of these alone."""
        used = x.used
        if len(used) == x.rank:
            return used, x
        places = [used.index(label) if label in used else -1 for label in range(x.rank)]
        return used, self.form([x.shape[k] for k in used], [self.renamed(p, places) for p in x.products])

    def together(self, x: Polynomial, power: Fraction = ONE) -> tuple[Number, Power]:
        """x^power as a number and one factor."""
        if (x.id, power) not in self._together:
            self._together[x.id, power] = self._one_factor(x, power)
        return self._together[x.id, power]

    def _one_factor(self, x: Polynomial, power: Fraction) -> tuple[Number, Power]:
        common, rest = self.content(x)
        if power.denominator != 1 and len(x.products) == 1:  # the root of a mean
            scale, _, sizes = x.products[0]
            mean = scale * math.prod(sizes.values())
            if isinstance(mean, Fraction) and scale.denominator > 1 and mean.denominator == 1 and mean:  # type: ignore[union-attr]
                common, rest = abs(mean), self.scaled(1 / abs(mean), x)
        if common < 0 and power.denominator != 1:  # a root keeps the sign inside
            common, rest = -common, self.scaled(-1, rest)
        used, small = self.narrowed(rest)
        atom = self.atom("sum", "", (small,), small.shape, self.is_symmetric(small))
        return common, Power(atom, tuple(used), power)

    def power(self, x: Polynomial, p: Any) -> Polynomial:
        """x^p at every index."""
        p = Fraction(exact(p))
        whole = p.denominator == 1
        if not x.products:
            return x
        if len(x.products) == 1 and not x.products[0].sizes:
            scale, factors, _ = x.products[0]
            alone = scale > 0 and len(factors) <= 1 and all([f.power == 1 or f.power.denominator > 1 for f in factors])
            if whole or alone:
                raised = tuple([f._replace(power=f.power * p) for f in factors])
                return self.form(x.shape, [Monomial(to_power(scale, p), raised, {})])
            if scale > 0 and factors and all([f.labels and f.power > 0 and f.power % 2 == 0 for f in factors]):
                root = self.form(x.shape, [Monomial(ONE, tuple([f._replace(power=f.power / 2) for f in factors]), {})])
                return self.scaled(to_power(scale, p), self.power(self.call("abs", (root,), x.shape), 2 * p))
        if len(x.products) == 1 and not whole:
            kept, apart = self._positive_apart(x)
            if apart:
                powers = [self.power(y, p) for y in (*apart, kept) if y is not None]
                found = powers[0]
                for y in powers[1:]:
                    found = self.times(found, y)
                return found
        common, factor = self.together(x, p)
        return self.form(x.shape, [Monomial(to_power(common, p), (factor,), {})])

    def _positive_apart(self, x: Polynomial) -> tuple[Polynomial | None, list[Polynomial]]:
        """A product as sums of squares, whose roots may be taken alone, and the rest; none where it is only one."""
        (p,) = x.products
        apart: list[Polynomial] = []
        rest, sizes = list(p.factors), dict(p.sizes)
        for f in p.factors:
            bound = [k for k in f.labels if k in p.sizes]
            alone = bound and len(bound) == len(f.labels) and f.power % 2 == 0
            if alone and not any([k in g.labels for k in bound for g in p.factors if g is not f]):
                apart.append(self.form((), [Monomial(ONE, (f,), {k: sizes.pop(k) for k in dict.fromkeys(bound)})]))
                rest.remove(f)
        if not apart or (len(apart) == 1 and not rest and p.scale == 1):
            return None, []
        if p.scale != 1 and len(apart) == 1 and not rest:
            return None, []
        left = self.form(x.shape, [Monomial(p.scale, tuple(rest), sizes)]) if rest or p.scale != 1 or x.rank else None
        return left, apart

    def call(self, name: str, xs: Sequence[Polynomial], shape: Sequence[int]) -> Polynomial:
        """A function of numbers at every index."""
        rank = len(shape)
        shifts = [rank - x.rank for x in xs]
        used = sorted({label + shift for x, shift in zip(xs, shifts, strict=True) for label in x.used})
        small = [shape[k] for k in used]
        args: list[Polynomial] = []
        for x, shift in zip(xs, shifts, strict=True):
            labels = [used.index(k + shift) if k + shift in used else -1 for k in range(x.rank)]
            args.append(self.form(small, [self.renamed(p, labels) for p in x.products]))
        symmetric = all([self.is_symmetric(x) for x in args])
        atom = self.atom("call", name, args, small, symmetric)
        return self.form(shape, [Monomial(ONE, (Power(atom, tuple(used)),), {})])

    def whole(
        self, name: str, xs: Sequence[Polynomial], shape: Sequence[int], symmetric: bool | None = None
    ) -> Polynomial:
        """A function of whole arrays; those of symmetric matrices are symmetric for functions by power series."""
        kept = tuple([i for i, n in enumerate(shape) if n != 1])
        if symmetric is None:
            symmetric = name in SERIES and len(xs) == 1 and self.is_symmetric(xs[0])
        atom = self.atom("whole", name, xs, [shape[i] for i in kept], symmetric)
        return self.form(shape, [Monomial(ONE, (Power(atom, kept),), {})])

    def half(self, name: str, n: int, k: int = 0) -> Polynomial:
        """One half of a matrix of ones, "tril" or "triu"; k: without the diagonal."""
        ones = self.constant(1, (n, n))
        return self.whole(name, (ones, self.constant(k)) if k else (ones,), (n, n))

    def inverse(self, x: Polynomial) -> Polynomial:
        """x⁻¹ of a matrix: (k M)⁻¹ = M⁻¹ / k, (M⁻¹)⁻¹ = M, (Mᵀ)⁻¹ = (M⁻¹)ᵀ, (A B)⁻¹ = B⁻¹ A⁻¹ for square factors."""
        common, rest = self.content(x)
        if not x.products:
            raise Unreadable("the inverse of 0")
        number, rest = self._numbers_apart(rest)
        if number is not None:
            return self.times(self.power(number, -1), self.scaled(1 / common, self.inverse(rest)))
        one, n = rest.single, x.shape[0]
        if one is not None and one.power == 1:
            if one.atom.kind == "identity":
                return self.scaled(1 / common, rest)
            if one.atom.kind == "inverse":
                inner = one.atom.args[0]
                return self.scaled(1 / common, inner if one.labels == (0, 1) else self.permuted(inner, (1, 0)))
            if one.atom.kind == "array" and one.atom.name in self.orthogonal:
                return self.scaled(1 / common, self.permuted(rest, (1, 0)))
            if one.labels == (1, 0):
                return self.scaled(1 / common, self.permuted(self.inverse(self.permuted(rest, (1, 0))), (1, 0)))
        elif len(rest.products) == 1 and len(rest.products[0].factors) > 1:
            factors = rest.products[0].factors
            diagonal = self.diagonal(rest)
            if diagonal is not None:
                return self.scaled(1 / common, self.contracted(((0,),), (0, 0), (self.power(diagonal, -1),)))
            square = all([f.power == 1 and f.atom.shape == (n, n) for f in factors])
            links = chained(factors, 0, 1) if square else None
            if links is not None and rest.products[0].scale == 1:
                parts = [(self.inverse(self.of(atom)), flipped) for atom, flipped in reversed(links)]
                labels = [(k + 1, k) if flipped else (k, k + 1) for k, (_, flipped) in enumerate(parts)]
                return self.scaled(1 / common, self.contracted(labels, (0, len(parts)), [y for y, _ in parts]))
        atom = self.atom("inverse", "", (rest,), x.shape, self.is_symmetric(rest))
        return self.scaled(1 / common, self.of(atom))

    def _numbers_apart(self, x: Polynomial) -> tuple[Polynomial | None, Polynomial]:
        """k and M of a product k M of numbers and matrices; no k where there are none."""
        numbers = [f for f in x.products[0].factors if not f.labels] if len(x.products) == 1 else []
        if not numbers:
            return None, x
        p = x.products[0]
        rest = self.form(x.shape, [p._replace(factors=tuple([f for f in p.factors if f.labels]))])
        return self.form((), [Monomial(ONE, tuple(numbers), {})]), rest

    def diagonal(self, x: Polynomial) -> Polynomial | None:
        """v of diag(v), where x is that: a product with δ[i, j]."""
        (p,) = x.products
        units = [f for f in p.factors if f.atom.kind == "identity" and sorted(f.labels) == [0, 1]]
        if len(units) != 1:
            return None
        p = self.renamed(p, (0, 0))
        kept = tuple([f for f in p.factors if not (f.atom.kind == "identity" and f.labels == (0, 0))])
        return self.form(x.shape[:1], [p._replace(factors=kept)])

    def determinant(self, x: Polynomial) -> Polynomial:
        """det x: det(k M) = kⁿ det M, det M⁻¹ = 1 / det M, det Mᵀ = det M."""
        common, rest = self.content(x)
        number, rest = self._numbers_apart(rest)
        if number is not None:
            inner = self.determinant(self.scaled(common, rest))
            return self.times(self.power(number, x.shape[0]), inner)
        one = rest.single
        if one is not None and one.power == 1 and one.atom.kind == "inverse":
            return self.scaled(
                to_power(common, Fraction(x.shape[0])), self.power(self.determinant(one.atom.args[0]), -1)
            )
        if one is not None and one.labels == (1, 0):
            rest = self.permuted(rest, (1, 0))
        if len(x.products) == 1 and (v := self.diagonal(x)) is not None:
            values = v.single
            for spectrum in self.spectra.values() if values is not None and values.power == 1 else ():
                if spectrum.values == values.atom.name and spectrum.right in self.spectra:  # type: ignore[union-attr]
                    return self.determinant(spectrum.matrix)
            return self.whole("prod", (v,), ())
        atom = self.atom("determinant", "det", (rest,), ())
        return self.form((), [Monomial(to_power(common, Fraction(x.shape[0])), (Power(atom, ()),), {})])

    def multiplied_out(self, x: Polynomial, only: Atom | None = None) -> Polynomial:
        """Products of sums written as sums; those that contain an atom, or all."""
        waiting, done = list(x.products), list[Monomial]()
        most = MANY if only is None else 10 * MANY
        while waiting:
            p = waiting.pop()
            for k, (atom, labels, power) in enumerate(p.factors):
                if atom.kind != "sum" or power.denominator != 1 or power <= 0:
                    continue
                if (power <= 2) if only is None else contains(atom, only):
                    inner = atom.args[0]
                    left = (Power(atom, labels, power - 1),) if power > 1 else ()
                    rest = p.factors[:k] + p.factors[k + 1 :] + left
                    if len(inner.products) + len(waiting) + len(done) > most:
                        raise Unreadable("a product of too many sums")
                    for q in inner.products:
                        q = self.renamed(q, labels)
                        waiting.append(Monomial(p.scale * q.scale, rest + q.factors, p.sizes | q.sizes))
                    break
            else:
                done.append(p)
        return self.form(x.shape, done)

    def coefficient(self, x: Polynomial, vector: Atom) -> Polynomial:
        """L of x = L v, for a form that is linear in v: axes of x, then axes of v."""
        x = self.multiplied_out(x, vector)
        products: list[Monomial] = []
        for p in x.products:
            here = [f for f in p.factors if f.atom is vector]
            if len(here) != 1 or here[0].power != 1:
                raise Unreadable("a derivative that is not linear in its direction")
            p = self.renamed(p, range(x.rank))
            (v,) = [f for f in p.factors if f.atom is vector]
            rest = tuple([f for f in p.factors if f is not v])
            units = [Power(self.identity(n), (v.labels[k], x.rank + k)) for k, n in enumerate(vector.shape)]
            products.append(Monomial(p.scale, (*rest, *units), p.sizes))
        return self.form((*x.shape, *vector.shape), products)


def contains(atom: Atom, what: Atom) -> bool:
    """Whether an atom is made of another."""
    return atom is what or any([f.atom is what for f in factors_of(atom.args)])


def factors_of(forms: Iterable[Polynomial]) -> list[Power]:
    """The factors of forms, and those of the forms that these are made of; each atom once."""
    seen, found, waiting = set[int](), list[Power](), list(forms)
    while waiting:
        for p in waiting.pop().products:
            for f in p.factors:
                if f.atom.id not in seen:
                    seen.add(f.atom.id)
                    found.append(f)
                    waiting += f.atom.args
    return found


def chained(factors: Sequence[Power], start: int, end: int) -> list[tuple[Atom, bool]] | None:
    """Matrices that follow one another from one label to another, each with whether it is transposed."""
    left, at, found = list(factors), start, list[tuple[Atom, bool]]()
    while left:
        here = [f for f in left if at in f.labels]
        if len(here) != 1 or len(set(here[0].labels)) != 2:
            return None
        f = here[0]
        left.remove(f)
        flipped = f.labels[0] != at
        found.append((f.atom, flipped))
        at = f.labels[0] if flipped else f.labels[1]
    return found if at == end else None


def _as_mean(p: Monomial) -> Number:
    """The number of a term, read as a mean where that is simpler: Σ x / n = mean(x)."""
    k = p.scale
    for label, n in p.sizes.items():
        on = [f for f in p.factors if label in f.labels]
        if len(on) == 1 and on[0].power != 2 and isinstance(k, Fraction) and (k * n).denominator < k.denominator:
            k = k * n
    return k
