"""Forms laid out as matrix expressions, with few symbols.

A product is a network: arrays are nodes, labels are edges. It is laid out by elimination: a label between a matrix and a
vector becomes a product M v, one that closes a loop a trace, two arrays with the same labels an entrywise product, and
so on, until an expression in the free labels is left. A form that has no matrix expression is written by its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from .polynomials import ONE, Algebra, Atom, Factor, Form, Labels, Number, Product, Unreadable

OWN = {"symbol": 1, "number": 1, "power": 1, "inverse": 1, "call": 1, "norm": 1, "ones": 1, "identity": 1, "commutation": 1}
"""How many symbols a node is beside its parts; for others, one less than it has parts."""
EVERYWHERE = {"exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "sqrt", "abs", "sign", "sinh", "cosh"}
"""Functions of numbers, at every index."""


class Tree:
    """An expression: kind, parts, a name, number or exponent, and its rank (0 a number, 1 a column, 2 a matrix)."""

    __slots__ = ("id", "kids", "kind", "rank", "symmetric", "value", "weight")

    def __init__(self, id: int, kind: str, kids: tuple[Tree, ...], value: Any, rank: int, symmetric: bool) -> None:
        self.id, self.kind, self.kids, self.value, self.rank, self.symmetric = id, kind, kids, value, rank, symmetric
        own = 1 if kind == "transpose" else OWN.get(kind, len(kids) - 1)
        if kind == "sum":
            own += value[0] < 0
        self.weight: int = own + sum([t.weight for t in kids])

    @property
    def row(self) -> bool:
        """Whether this is a vector that lies."""
        return self.rank == 1 and self.kind == "transpose"


Item = tuple[Tree, Labels]


class Layout:
    """Lays out forms of one algebra."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self._trees: dict[Any, Tree] = {}
        self._best: dict[int, Tree] = {}
        self._factored: dict[int, Tree] = {}
        self._steps = 0
        self.rows = 0  # of a form with more than two axes: how many are rows of its matrix

    # -- trees --------------------------------------------------------------------------------------------

    def node(
        self, kind: str, kids: Iterable[Tree] = (), value: Any = None, rank: int = 0, symmetric: bool = False
    ) -> Tree:
        """A tree, the same for the same description."""
        parts = tuple(kids)
        key = kind, tuple([t.id for t in parts]), value, rank
        if key not in self._trees:
            self._trees[key] = Tree(len(self._trees), kind, parts, value, rank, symmetric)
        return self._trees[key]

    def number(self, k: Number) -> Tree:
        """A number."""
        return self.node("number", value=k)

    def ones(self, n: int) -> Tree:
        """A column of ones."""
        return self.node("ones", value=n, rank=1)

    def chain(self, parts: Sequence[Tree], rank: int) -> Tree:
        """A product side by side: numbers first, then matrices and vectors in their order."""
        flat: list[Tree] = []
        for t in parts:
            flat += t.kids if t.kind == "chain" and (t.rank or all([x.rank == 0 for x in t.kids])) else [t]
        flat = [t for t in flat if t.rank == 0] + [t for t in flat if t.rank]
        units = [t for t in flat if t.kind != "identity"]
        flat = units if [t for t in units if t.rank] else flat
        return flat[0] if len(flat) == 1 else self.node("chain", flat, rank=rank, symmetric=_palindrome(self, flat))

    def turned(self, t: Tree) -> Tree:
        """The transpose: the shorter of (A B)ᵀ and Bᵀ Aᵀ."""
        if t.rank == 0 or (t.rank == 2 and t.symmetric):
            return t
        if t.kind == "transpose":
            return t.kids[0]
        if t.kind == "chain":
            numbers = [x for x in t.kids if x.rank == 0]
            return self.chain([*numbers, *[self.turned(x) for x in reversed(t.kids) if x.rank]], t.rank)
        best = self.node("transpose", (t,), rank=t.rank)
        inside = t.kind in ("sum", "hadamard", "quotient") or (t.kind == "call" and t.value in EVERYWHERE)
        if inside and all([x.rank in (0, t.rank) for x in t.kids]) and t.rank == 2:
            other = self.node(t.kind, [self.turned(x) for x in t.kids], t.value, t.rank)
            if other.weight < best.weight:
                return other
        return best

    def hadamard(self, parts: Sequence[Tree], rank: int) -> Tree:
        """A product at every index; quotients among the factors become one."""
        above, below = list[Tree](), list[Tree]()
        for t in parts:
            top, bottom = (t.kids[0], [t.kids[1]]) if t.kind == "quotient" and t.rank == rank else (t, [])
            above += top.kids if top.kind == "hadamard" else [] if _is_number(top, 1) else [top]
            below += bottom
        if rank == 2 and any([t.kind == "identity" for t in above]):
            rest = [t for t in above if t.kind != "identity"]
            if not rest and not below:
                return above[0]
            inside = self._quotient(rest, below, 2)
            return self.diagonal(self.node("call", (inside,), "diag", 1))
        return self._quotient(above, below, rank)

    def _quotient(self, above: Sequence[Tree], below: Sequence[Tree], rank: int) -> Tree:
        top = self.number(ONE) if not above else above[0]
        if len(above) > 1:
            symmetric = all([t.symmetric for t in above])
            top = self.node("hadamard", above, rank=rank, symmetric=symmetric)
        if not below:
            return top
        bottom = below[0] if len(below) == 1 else self.node("hadamard" if rank else "chain", below, rank=rank)
        return self.node("quotient", (top, bottom), rank=rank, symmetric=top.symmetric and bottom.symmetric)

    def diagonal(self, v: Tree) -> Tree:
        """diag(v)."""
        return self.node("call", (v,), "diag", 2, True)

    def dot(self, u: Tree, v: Tree) -> Tree:
        """uᵀv."""
        if u is v:
            return self.node("power", (self.node("norm", (u,)),), Fraction(2))
        return min(
            [self.chain([self.turned(u), v], 0), self.chain([self.turned(v), u], 0)], key=lambda t: (t.weight, t.id)
        )

    def powered(self, t: Tree, e: Fraction) -> Tree:
        """t^e at every index."""
        if e == 1:
            return t
        squared = t.kind == "power" and t.value == 2 and t.kids[0].kind == "norm"
        if squared:
            return self.powered(t.kids[0], 2 * e)
        if e == Fraction(1, 2):
            return self.node("call", (t,), "sqrt", t.rank, t.symmetric)
        if t.rank == 2 and e == 2:
            return self.node("hadamard", (t, t), rank=2, symmetric=t.symmetric)
        return self.node("power", (t,), e, t.rank, t.symmetric)

    # -- forms --------------------------------------------------------------------------------------------

    def tree(self, x: Form) -> Tree:
        """The shortest layout that was found: as built, multiplied out, with 1 − σ(z) for σ(−z); each factored."""
        known = self._best.get(x.id)
        if known is not None:
            return known
        candidates = [x]
        for make in (self.algebra.multiplied_out, self._with_positive_arguments):
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
                    found.append(self.node("transpose", (other,), rank=2))
            except Unreadable as p:
                problem = p
        if not found:
            raise problem or Unreadable("no layout")
        best = self._best[x.id] = min(found, key=lambda t: t.weight)
        if best.rank == 2 and self.algebra.is_symmetric(x):
            best.symmetric = True
        return best

    def _with_positive_arguments(self, x: Form) -> Form:
        """σ(−z) = 1 − σ(z) where both occur, multiplied out."""
        algebra = self.algebra
        atoms = dict.fromkeys([f.atom for p in x.products for f in p.factors])
        other: dict[Atom, Atom] = {}
        for a in atoms:
            if a.kind == "call" and a.name == "sigmoid" and algebra.content(a.args[0])[0] < 0:
                z = algebra.scaled(-1, a.args[0])
                b = algebra.atom("call", "sigmoid", (z,), z.shape, a.symmetric)
                if b in atoms:
                    other[a] = b
        waiting, done = list(x.products), list[Product]()
        while waiting:
            p = waiting.pop()
            for k, f in enumerate(p.factors):
                if f.atom in other and f.power > 0 and f.power.denominator == 1:
                    left = (f._replace(power=f.power - 1),) if f.power > 1 else ()
                    rest = (*p.factors[:k], *p.factors[k + 1 :], *left)
                    turned = Factor(other[f.atom], f.labels)
                    waiting += [Product(p.scale, rest, dict(p.sizes))]
                    waiting += [Product(-p.scale, (*rest, turned), dict(p.sizes))]
                    break
            else:
                done.append(p)
        return algebra.multiplied_out(algebra.form(x.shape, done)) if other else x

    def plain(self, x: Form) -> Tree:
        """Σ of its terms, each laid out."""
        if not x.products:
            return self.number(Fraction(0))
        parts = [self.product(p, x.shape) for p in x.products]
        parts.sort(key=lambda part: part[0] < 0)
        if len(parts) == 1 and parts[0][0] > 0:
            return parts[0][1]
        kids, signs = [t for _, t in parts], tuple([sign for sign, _ in parts])
        rank = min(x.rank, 2)
        return self.node("sum", kids, signs, rank, self.algebra.is_symmetric(x))

    # -- factoring ----------------------------------------------------------------------------------------

    def factored(self, x: Form, depth: int = 0) -> Tree:
        """The layout after common factors were taken out of sums, by steepest descent in the number of symbols."""
        if x.id not in self._factored:
            self._factored[x.id] = self._factor(x, depth)
        return self._factored[x.id]

    def _factor(self, x: Form, depth: int) -> Tree:
        best = self.plain(x)
        if len(x.products) < 2:
            return best
        scales = [p.scale for p in x.products]
        for k in dict.fromkeys([self.algebra.content(x)[0], *map(abs, scales), *[-abs(k) for k in scales]]):
            if abs(k) != 1:
                inner = self.prefixed(abs(k), [], [], self.plain(self.algebra.scaled(1 / k, x)), best.rank)
                found = self.node("sum", (inner,), (-1,), inner.rank) if k < 0 else inner
                best = min(best, found, key=lambda t: t.weight)
        self._steps += 1
        if depth > 6 or len(x.products) > 16 or self._steps > 400:
            return best
        tried: list[tuple[int, int, Form]] = []
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

    def _common_factors(self, x: Form) -> list[Form]:
        """The form with a factor taken out of the terms that share it, for each such factor."""
        rank = x.rank
        groups: dict[Any, dict[int, tuple[Factor, Labels]]] = {}
        for m, p in enumerate(x.products):
            for f in p.factors:
                for labels in {f.labels, f.labels[::-1]} if f.atom.symmetric else {f.labels}:
                    seen = tuple([(0, k) if k < rank else (1, labels.index(k)) for k in labels])
                    groups.setdefault((f.atom.id, f.power, seen), {}).setdefault(m, (f, labels))
        found: list[tuple[int, int, Form]] = []
        for terms in groups.values():
            if len(terms) > 1:
                y = self._taken_out(x, terms)
                if y is not None:
                    found.append((-len(terms), y.id, y))
        for terms in self._common_numbers(x):
            y = self._number_taken_out(x, terms)
            if y is not None:
                found.append((-len(terms), y.id, y))
        return [y for _, _, y in sorted(found, key=lambda t: t[:2])]

    def _common_numbers(self, x: Form) -> list[dict[int, list[Factor]]]:
        """Numbers made of several factors, such as xᵀAx, that several terms have: their factors, by term."""
        seen: dict[int, dict[int, list[Factor]]] = {}
        for m, p in enumerate(x.products):
            for part in _components(p, x.rank):
                if len(part) > 1:
                    sizes = {k: p.sizes[k] for f in part for k in f.labels}
                    number = self.algebra.form((), [Product(ONE, tuple(part), sizes)])
                    seen.setdefault(number.id, {}).setdefault(m, part)
        return [terms for terms in seen.values() if len(terms) > 1]

    def _number_taken_out(self, x: Form, terms: dict[int, list[Factor]]) -> Form | None:
        rest: list[Product] = []
        for m, part in terms.items():
            p = x.products[m]
            gone = {k for f in part for k in f.labels}
            kept = tuple([f for f in p.factors if not any([f is g for g in part])])
            rest.append(Product(p.scale, kept, {k: n for k, n in p.sizes.items() if k not in gone}))
        R = self.algebra.form(x.shape, rest)
        if len(R.products) < 2:
            return None
        scale, factor = self.algebra.together(R)
        m, part = next(iter(terms.items()))
        sizes = {k: x.products[m].sizes[k] for f in part for k in f.labels}
        others = [p for k, p in enumerate(x.products) if k not in terms]
        return self.algebra.form(x.shape, [*others, Product(scale, (*part, factor), sizes)])

    def _taken_out(self, x: Form, terms: dict[int, tuple[Factor, Labels]]) -> Form | None:
        algebra, rank = self.algebra, x.rank
        first, pattern = next(iter(terms.values()))
        summed = list(dict.fromkeys([k for k in pattern if k >= rank]))
        sizes = dict(zip(pattern, first.atom.shape, strict=True))
        rest: list[Product] = []
        for m, (f, labels) in terms.items():
            p = x.products[m]
            mine = list(dict.fromkeys([k for k in labels if k >= rank]))
            kept = list(p.factors)
            kept.remove(f)
            open_ = {label: rank + i for i, label in enumerate(mine)}
            inner = {label: algebra.fresh() for label in p.sizes if label not in open_}
            names = open_ | inner
            factors = tuple([g.at(lambda k, names=names: names.get(k, k)) for g in kept])
            rest.append(Product(p.scale, factors, {inner[k]: p.sizes[k] for k in inner}))
        R = algebra.form([*x.shape, *[sizes[k] for k in summed]], rest)
        if len(R.products) < 2 or not _written_so(R, rank):
            return None
        scale, factor = algebra.together(R)
        names = {label: algebra.fresh() for label in summed}
        outside = first._replace(labels=tuple([names.get(k, k) for k in pattern]))
        inside = factor.at(lambda k: k if k < rank else names[summed[k - rank]])
        term = Product(scale, (outside, inside), {names[k]: sizes[k] for k in summed})
        others = [p for m, p in enumerate(x.products) if m not in terms]
        return algebra.form(x.shape, [*others, term])

    # -- one product --------------------------------------------------------------------------------------

    def product(self, p: Product, shape: Labels) -> tuple[int, Tree]:
        """A term: its sign and its tree."""
        sign, scale, factors = (-1 if p.scale < 0 else 1), abs(p.scale), list(p.factors)
        trees = [self.atom(f.atom) for f in factors]
        for k, f in enumerate(factors if sign < 0 else []):  # −(a − b) = b − a
            if f.atom.kind == "sum" and f.power.denominator == 1 and f.power % 2:
                signs = [q.scale < 0 for q in f.atom.args[0].products]
                if 2 * sum(signs) == len(signs):
                    sign, trees[k] = 1, self.tree(self.algebra.scaled(-1, f.atom.args[0]))
                    break
        work = Elimination(self, dict(p.sizes), len(shape))
        for f, t in zip(factors, trees, strict=True):
            work.add(f, t)
        main = work.result(shape)
        scale, above = self._means(scale, work.above)
        rank = min(len(shape), 2)
        return sign, self.prefixed(scale, above, work.below, main, rank if main is not None else 0)

    def _means(self, scale: Number, numbers: list[Tree]) -> tuple[Number, list[Tree]]:
        """k · Σ x = k n · mean(x)."""
        for k, t in enumerate(numbers):
            n = t.value[1] if t.kind == "call" and isinstance(t.value, tuple) else 1
            if n > 1 and isinstance(scale, Fraction) and (scale * n).denominator < scale.denominator:
                return scale * n, [*numbers[:k], self.node("call", t.kids, "mean"), *numbers[k + 1 :]]
        return scale, numbers

    def prefixed(self, k: Number, above: list[Tree], below: list[Tree], main: Tree | None, rank: int) -> Tree:
        """k · numbers · main / numbers."""
        parts = sorted(above, key=lambda t: t.weight)
        body = [*parts, main] if main is not None else parts
        if main is not None and main.kind == "quotient" and (parts or k != 1):
            top, bottom = main.kids
            lead = [*([self.number(k)] if k != 1 else []), *parts]
            inner = self.chain(lead if _is_number(top, 1) else [*lead, top], rank)
            whole = self.node("quotient", (inner, bottom), rank=rank)
        else:
            body = [self.number(k), *body] if k != 1 or not body else body
            whole = self.folded(self.chain(body, rank)) if len(body) > 1 else body[0]
        if below:
            bottom = below[0] if len(below) == 1 else self.chain(below, 0)
            whole = self.node("quotient", (whole, bottom), rank=rank)
        return whole

    def folded(self, t: Tree) -> Tree:
        """A chain with neighbours drawn together: A A = A², B⁻¹ A⁻¹ = (A B)⁻¹, and (A B)ᵀ where that is shorter."""
        if t.kind != "chain":
            return t
        out: list[Tree] = []
        kids = list(t.kids)
        while kids:
            head = kids[0]
            n = 1
            while n < len(kids) and head.rank == 2 and kids[n] is head and head.kind == "symbol":
                n += 1
            if n > 1:
                out.append(self.node("matrix power", (head,), n, 2, head.symmetric))
            else:
                while n < len(kids) and _inner(head) is not None and _inner(kids[n]) is not None:
                    n += 1
                out += kids[:n]
                if n > 1:
                    inside = [self._uninverted(x) for x in reversed(kids[:n])]
                    whole = self.node("inverse", (self.folded(self.chain(inside, 2)),), rank=2)
                    if whole.weight < sum([x.weight for x in kids[:n]]) + n - 1:
                        out[-n:] = [whole]
            kids = kids[n:]
        t = self.chain(out, t.rank)
        matrices, numbers = [x for x in t.kids if x.rank], [x for x in t.kids if not x.rank]
        if t.rank == 2 and t.kind == "chain" and len(matrices) > 1 and all([x.rank == 2 for x in matrices]):
            other = self.chain([self.turned(x) for x in reversed(matrices)], 2)
            if other.weight + 1 < self.chain(matrices, 2).weight:
                return self.chain([*numbers, self.node("transpose", (self.folded(other),), rank=2)], 2)
        return t

    def _uninverted(self, t: Tree) -> Tree:
        return self.turned(t.kids[0].kids[0]) if t.kind == "transpose" else t.kids[0]

    # -- atoms --------------------------------------------------------------------------------------------

    def atom(self, a: Atom) -> Tree:
        """An atom."""
        rank = len(a.shape)
        match a.kind:
            case "array":
                return self.node("symbol", value=a.name, rank=rank, symmetric=a.symmetric)
            case "identity":
                return self.node("identity", value=a.shape[0], rank=2, symmetric=True)
            case "sum":
                return self.tree(a.args[0])
            case "inverse":
                return self.node("inverse", (self.tree(a.args[0]),), rank=2, symmetric=a.symmetric)
            case "determinant":
                return self.node("call", (self.tree(a.args[0]),), "det")
            case "call" if a.name == "larger":
                return self._comparison(a)
            case "call" if a.name.startswith("softmax"):
                inner = self.tree(a.args[0])
                if rank == 2 and a.name == "softmax0":
                    by_rows = self.node("call", (self.turned(inner),), "softmax", rank)
                    return self.node("transpose", (by_rows,), rank=rank)
                return self.node("call", (inner,), "softmax", rank)
            case _:
                return self.node("call", [self.tree(x) for x in a.args], a.name, rank, a.symmetric)

    def _comparison(self, a: Atom) -> Tree:
        """[u > v], with all terms on the side where they are positive."""
        u, v = a.args
        difference = self.algebra.total([(1, u), (-1, v)], a.shape)
        left = [p for p in difference.products if p.scale > 0]
        right = [p._replace(scale=-p.scale) for p in difference.products if p.scale < 0]
        sides = [self.tree(self.algebra.form(a.shape, side)) for side in (left, right)]
        return self.node("larger", sides, rank=len(a.shape))


def _is_number(t: Tree, k: int) -> bool:
    return t.kind == "number" and t.value == k


def _inner(t: Tree) -> Tree | None:
    """M of M⁻¹ or M⁻ᵀ."""
    inverse = t.kids[0] if t.kind == "transpose" and t.rank == 2 else t
    return inverse.kids[0] if inverse.kind == "inverse" else None


def _palindrome(layout: Layout, kids: Sequence[Tree]) -> bool:
    """Whether a chain is its own transpose, as XᵀSX is."""
    matrices = [t for t in kids if t.rank]
    back = [layout.turned(t) for t in reversed(matrices)]
    return bool(matrices) and all([a is b for a, b in zip(matrices, back, strict=True)])


def _written_so(R: Form, rank: int) -> bool:
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


def _components(p: Product, rank: int) -> list[list[Factor]]:
    """The factors that hang together by labels, where none of these is free."""
    groups: list[tuple[set[int], list[Factor]]] = []
    for f in p.factors:
        if not f.labels:
            continue
        labels, members = set(f.labels), [f]
        for group in [g for g in groups if g[0] & labels]:
            groups.remove(group)
            labels, members = labels | group[0], [*group[1], *members]
        groups.append((labels, members))
    return [members for labels, members in groups if all([k >= rank for k in labels])]


class Elimination:
    """The factors of one product, drawn together until free labels are left."""

    def __init__(self, layout: Layout, sizes: dict[int, int], rank: int) -> None:
        self.layout, self.sizes, self.rank = layout, sizes, rank
        self.above: list[Tree] = []  # numbers
        self.below: list[Tree] = []
        self._groups: dict[Labels, tuple[list[Tree], list[Tree]]] = {}
        self._squares: dict[Labels, Tree] = {}
        self.items: list[Item] = []

    def add(self, f: Factor, t: Tree) -> None:
        """One factor."""
        labels = f.labels
        if not labels:
            (self.above if f.power > 0 else self.below).append(self.layout.powered(t, abs(f.power)))
            return
        if len(labels) == 2 and labels[0] > labels[1]:
            labels, t = labels[::-1], self.layout.turned(t)
        if len(labels) > 2 and (f.power != 1 or len(set(labels)) < len(labels)):
            raise Unreadable("an array of three axes")
        group = self._groups.setdefault(labels, ([], []))
        group[0 if f.power > 0 else 1].append(self.layout.powered(t, abs(f.power)))
        if f.power == 2:
            self._squares[labels] = t

    def result(self, shape: Labels) -> Tree | None:
        """What is left in the free labels; None for a number."""
        layout = self.layout
        for labels, (above, below) in self._groups.items():
            summed = all([k in self.sizes and self.degree(k, self._groups) == 1 for k in labels])
            if summed and len(set(labels)) == len(labels) and not below:
                if len(above) == 1 and labels in self._squares:  # Σ x²
                    t = self._squares[labels]
                    t = min(t, layout.turned(t), key=lambda x: x.weight) if t.rank == 2 else t
                    self.above.append(layout.node("power", (layout.node("norm", (t,)),), Fraction(2)))
                    continue
                if len(labels) == 1 and len(above) == 2:
                    self.above.append(layout.dot(*above))
                    continue
            self.items.append((layout.hadamard([*above, *[self._over(b) for b in below]], len(labels)), labels))
        while any(rule(self) for rule in RULES):  # the first that applies
            pass
        return self._final(shape)

    def _over(self, below: Tree) -> Tree:
        one = self.layout.number(ONE)
        return self.layout.node("quotient", (one, below), rank=below.rank, symmetric=below.symmetric)

    @staticmethod
    def degree(k: int, items: Iterable[Labels]) -> int:
        """How many arrays have a label."""
        return sum([k in labels for labels in items])

    def on(self, k: int) -> list[Item]:
        """The arrays that have a label."""
        return [item for item in self.items if k in item[1]]

    def replace(self, old: Sequence[Item], *new: Item) -> bool:
        """Some arrays replaced by what they make."""
        self.items = [item for item in self.items if not any([item is o for o in old])] + list(new)
        return True

    def towards(self, item: Item, k: int) -> tuple[Tree, int]:
        """A matrix with label k as its columns, and its other label."""
        t, (a, b) = item
        return (t, a) if b == k else (self.layout.turned(t), b)

    def _final(self, shape: Labels) -> Tree | None:
        layout = self.layout
        left = {labels: t for t, labels in self.items}
        if len(left) < len(self.items):
            raise Unreadable("a product without a matrix form")
        keys = sorted(left)
        ones = [layout.ones(n) for n in shape]
        match self.rank, keys:
            case 0, []:
                return None
            case 1, [(0,)]:
                return left[0,]
            case 2, [(0, 1)]:
                return left[0, 1]
            case 1, []:
                return ones[0]
            case 2, []:
                return layout.chain([ones[0], layout.turned(ones[1])], 2)
            case 2, [(0,), (1,)]:
                return layout.chain([left[0,], layout.turned(left[1,])], 2)
            case 2, [(1,)]:
                return layout.chain([ones[0], layout.turned(left[1,])], 2)
            case 2, [(0,)]:
                return layout.chain([left[0,], layout.turned(ones[1])], 2)
            case 3 | 4, _:
                return self._kronecker(left, shape)
            case _:
                raise Unreadable(f"labels {keys} of {len(shape)} axes")


    def _kronecker(self, left: dict[Labels, Tree], shape: Labels) -> Tree:
        """A map between arrays as a matrix of their entries, row by row: A ⊗ B, M ⊗ vᵀ, v ⊗ M, with K for a transpose."""
        layout, rows = self.layout, self.layout.rows
        fold = layout.folded
        ones = lambda k: left.get((k,), layout.ones(shape[k]))  # noqa: E731
        row = lambda k: layout.turned(ones(k))  # noqa: E731
        pairs = [labels for labels in left if len(labels) == 2]
        match rows, len(shape), pairs:
            case 2, 4, [(0, 2), (1, 3)] | [(1, 3), (0, 2)]:
                parts = [left[0, 2], left[1, 3]]
            case 2, 4, [(0, 3), (1, 2)] | [(1, 2), (0, 3)]:
                product = layout.node("kronecker", [fold(left[0, 3]), fold(left[1, 2])], rank=2)
                return layout.chain([product, layout.node("commutation", value=(shape[2], shape[3]), rank=2)], 2)
            case 2, 4, [(0, 1), (2, 3)] | [(2, 3), (0, 1)]:
                column = layout.node("call", (fold(left[0, 1]),), "vec", 1)
                return layout.chain([column, layout.turned(layout.node("call", (fold(left[2, 3]),), "vec", 1))], 2)
            case 1, 3, [(0, 1)]:
                parts = [left[0, 1], row(2)]
            case 1, 3, [(0, 2)]:
                parts = [row(1), left[0, 2]]
            case 2, 3, [(0, 2)]:
                parts = [left[0, 2], ones(1)]
            case 2, 3, [(1, 2)]:
                parts = [ones(0), left[1, 2]]
            case _:
                raise Unreadable(f"labels {sorted(left)} of {len(shape)} axes")
        shown = [fold(t) for t in parts]
        return layout.node("kronecker", shown, rank=2, symmetric=all([t.symmetric for t in shown]))


# -- rules of elimination, in this order ------------------------------------------------------------------------------


def diagonals(e: Elimination) -> bool:
    """M[i, i]: tr M where i is summed, else diag M."""
    for item in e.items:
        t, labels = item
        if len(labels) == 2 and labels[0] == labels[1]:
            k, folded = labels[0], e.layout.folded(t)
            e.replace([item])
            if k in e.sizes and not e.on(k):
                e.above.append(e.layout.node("call", (folded,), "tr"))
            else:
                e.items.append((e.layout.node("call", (folded,), "diag", 1), (k,)))
            return True
    return False


def equal_vectors(e: Elimination) -> bool:
    """u[i] v[i] = (u ∘ v)[i]."""
    for a, b in combinations(e.items, 2):
        if a[1] == b[1] and len(a[1]) == 1:
            k = a[1][0]
            if k not in e.sizes or len(e.on(k)) > 2:
                return e.replace([a, b], (e.layout.hadamard([a[0], b[0]], 1), (k,)))
    return False


def dots(e: Elimination) -> bool:
    """Σ u[i] v[i] = uᵀv."""
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 2 and all([len(labels) == 1 for _, labels in on]):
            e.above.append(e.layout.dot(on[0][0], on[1][0]))
            return e.replace(on)
    return False


def matrix_vector(e: Elimination) -> bool:
    """Σ M[i, k] v[k] = M v."""
    for k in sorted(e.sizes):
        on = sorted(e.on(k), key=lambda item: len(item[1]))
        if [len(labels) for _, labels in on] == [1, 2] and on[1][1][0] != on[1][1][1]:
            M, i = e.towards(on[1], k)
            return e.replace(on, (e.layout.chain([M, on[0][0]], 1), (i,)))
    return False


def equal_matrices(e: Elimination) -> bool:
    """A[i, j] B[i, j]: tr(AᵀB) where both are summed, diag(A Bᵀ) where one is, else A ∘ B."""
    layout = e.layout
    for a, b in combinations(e.items, 2):
        if len(a[1]) == 2 and set(a[1]) == set(b[1]):
            A, B = a[0], b[0] if a[1] == b[1] else layout.turned(b[0])
            summed = [k for k in a[1] if k in e.sizes and len(e.on(k)) == 2]
            if len(summed) == 2:
                e.above.append(_inner_product(layout, A, B))
                return e.replace([a, b])
            if len(summed) == 1 and "chain" in (A.kind, B.kind):
                k = summed[0]
                left, i = e.towards((A, a[1]), k)
                right, _ = e.towards((B, a[1]), k)
                return e.replace([a, b], (layout.chain([left, layout.turned(right)], 2), (i, i)))
            return e.replace([a, b], (layout.hadamard([A, B], 2), a[1]))
    return False


def _inner_product(layout: Layout, A: Tree, B: Tree) -> Tree:
    if A is B:
        return layout.node("power", (layout.node("norm", (A,)),), Fraction(2))
    turns = [(layout.turned(A), B), (A, layout.turned(B)), (B, layout.turned(A)), (layout.turned(B), A)]
    return layout.node("call", (min([layout.chain(t, 2) for t in turns], key=lambda t: t.weight),), "tr")


def lone_sums(e: Elimination) -> bool:
    """Σ over a label that nothing else has: Σ v, M 𝟏, Mᵀ𝟏."""
    layout = e.layout
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 1 and len(on[0][1]) <= 2:
            t, labels = on[0]
            if len(labels) == 1:
                e.above.append(layout.node("call", (t,), ("Σ", e.sizes[k])))
                return e.replace(on)
            M, i = e.towards(on[0], k)
            if i in e.sizes and len(e.on(i)) == 1:
                e.above.append(layout.node("call", (t,), ("Σ", e.sizes[k] * e.sizes[i])))
                return e.replace(on)
            return e.replace(on, (layout.chain([M, layout.ones(e.sizes[k])], 1), (i,)))
    return False


def matrix_matrix(e: Elimination) -> bool:
    """Σ A[i, k] B[k, j] = A B."""
    layout = e.layout
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 2 and all([len(labels) == 2 for _, labels in on]):
            A, i = e.towards(on[0], k)
            B, j = e.towards(on[1], k)
            if i > j:
                A, i, B, j = B, j, A, i
            return e.replace(on, (layout.chain([A, layout.turned(B)], 2), (i, j)))
    return False


def scaled_rows(e: Elimination) -> bool:
    """u[i] M[i, j] = diag(u) M; with v[j] too, M ∘ (u vᵀ) where both labels stay."""
    layout = e.layout
    for item in e.items:
        t, labels = item
        if len(labels) != 2:
            continue
        beside = {k: v for k in labels for v in e.items if v[1] == (k,)}
        if len(beside) == 2 and all([k < e.rank for k in labels]) and t.kind != "chain":
            u, v = [beside[k] for k in labels]
            outer = layout.chain([u[0], layout.turned(v[0])], 2)
            return e.replace([item, u, v], (layout.hadamard([t, outer], 2), labels))
        for k, v in beside.items():
            D = layout.diagonal(v[0])
            M = layout.chain([D, t] if k == labels[0] else [t, D], 2)
            return e.replace([item, v], (M, labels))
    return False


RULES = [diagonals, equal_vectors, dots, matrix_vector, equal_matrices, lone_sums, matrix_matrix, scaled_rows]
