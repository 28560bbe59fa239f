"""Rewriting by the laws: bottom-up, pass after pass until nothing changes.

A pass is linear in the DAG, and every shared term is rewritten once. Compositions and sums that only one parent holds
are taken as a whole, however they are bracketed: a composition is read from its inner end, each factor meeting the one
before it; scalings are carried outwards on the way. A law is found by the heads of the two factors that meet, or by the
one head it starts from.

Never larger: a law that fires makes some nodes and drops others. Only those that nobody else holds are sure to go
(`free`), so a law fires if it makes no more nodes than it is sure to drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

from ..runtime.stackless import quiet
from ..spaces.space import Space
from ..terms.bilinear import ScalarMul, Section
from ..terms.sums import BlockDiag, Fork, Join, Map, Par
from ..terms.term import Combine, Compose, Id, Term, ZeroMap
from .laws import LAWS, WHOLE, Law
from .term_patterns import Found, Head, Var

IN_THE_ENGINE = {
    *("assoc", "zero-sum", "scale-after", "scale-before", "scale-left", "scale-right", "scale-scale", "scale-one"),
    *("scale-id", "like-terms", "sum-sum"),
}
"""Laws of compositions and sums of any length."""

Piece = float | tuple[Term, int]  # a scaling, or a factor and how many nodes are sure to go with it
_ANY = object


def _heads(p: Any) -> Iterable[type]:
    """The classes of terms a pattern may match."""
    if isinstance(p, Head):
        return [p.head]
    kinds: Any = cast(Var, p).kind
    found = kinds if isinstance(kinds, tuple) else (kinds,)
    return [k for kind in found for k in ([_ANY] if kind is Term else _concrete(kind))]


def _concrete(kind: type) -> list[type]:
    below = kind.__subclasses__()
    return [k for b in below for k in _concrete(b)] if below else [kind]


def _tables() -> tuple[dict[type, list[Law]], dict[tuple[type, type], list[Law]]]:
    singles: dict[type, list[Law]] = {}
    pairs: dict[tuple[type, type], list[Law]] = {}
    for law in LAWS:
        left = cast(Head, law.left)
        if law.name in IN_THE_ENGINE:
            continue
        if left.head is not Compose:
            singles.setdefault(left.head, []).append(law)
            continue
        for g in _heads(left.fields[0]):
            for f in _heads(left.fields[1]):
                pairs.setdefault((g, f), []).append(law)
    return singles, pairs


SINGLES, PAIRS = _tables()


def parts(t: Term) -> tuple[Term, ...]:
    """The terms a term is made of."""
    match t:
        case Compose():
            return t.outer, t.inner
        case Fork() | Join() | Par() | BlockDiag() | Combine():
            return t.terms
        case Map():
            return (t.term,)
        case _:
            return (t.bilinear,) if isinstance(t, Section) else ()


def census(root: Term) -> tuple[list[Term], dict[Term, int]]:
    """The terms of a DAG, parts first, and how often each is part of another."""
    counts: dict[Term, int] = {}
    order: list[Term] = []
    stack: list[Any] = [root]
    while stack:
        t = stack.pop()
        if type(t) is tuple:
            order.append(cast(Any, t)[0])
        elif t not in counts:
            counts[t] = 0
            stack.append((t,))
            stack.extend(reversed(parts(t)))
    for t in order:
        for part in parts(t):
            counts[part] += 1
    return order, counts


@quiet
def simplified(term: Term) -> Term:
    """The term that no law makes smaller any more."""
    while True:
        found = _Pass(term).run(term)
        if found is term:
            return term
        term = found


class _Pass:
    """One pass over a term."""

    def __init__(self, root: Term) -> None:
        self.order, self.counts = census(root)
        self.done: dict[Term, Term] = {}
        self.inside: dict[Term, type] = {}  # terms that belong to the composition, or the sum, of their only parent
        weights: dict[Term, float] = {}  # in that sum
        for t in reversed(self.order):
            kind = self.inside.get(t) or (Compose if _is_scaled(t) else type(t))
            if kind is Compose:
                for part in parts(t):
                    if self.counts[part] == 1 and (type(part) is Compose or _is_scaled(part)):
                        self.inside[part] = Compose
            elif kind is Combine:
                whole = weights.get(t, 1.0)
                for k, part in zip(cast(Combine, t).coefficients, parts(t), strict=True):
                    if self.counts[part] == 1 and type(part) is Combine and _all_exact(whole * k, part):
                        self.inside[part], weights[part] = Combine, whole * k

    def run(self, root: Term) -> Term:
        """The root, rewritten."""
        for t in self.order:
            if t not in self.inside:
                self.done[t] = self.image(t)
        return self.done[root]

    def image(self, t: Term) -> Term:
        """A term whose parts are rewritten already, rewritten."""
        kind = type(t)
        if kind is Compose or _is_scaled(t):
            return self.composition(t)
        if kind is Combine:
            return self.sum(cast(Combine, t))
        given = parts(t)
        found = tuple([self.done[p] for p in given])
        if any([a is not b for a, b in zip(given, found, strict=True)]):
            match t:
                case Par() | BlockDiag():
                    t = type(t)(found, t.index, t.form)
                case Fork() | Join():
                    t = type(t)(found)
                case Map():
                    t = Map(found[0], t.index)
                case _:
                    raise AssertionError(f"a term whose parts nobody rewrites: {kind.__name__}")
        return self.single(t)

    def single(self, t: Term) -> Term:
        """A term rewritten by the laws that start from its head."""
        for law in SINGLES.get(type(t), ()):
            found: Found = {WHOLE: t}
            drops = 1 + (type(t) is Section and self.counts.get(t.bilinear) == 1)
            if law.left.match(t, found) and (right := self.applied(law, found, t.domain, t.codomain, drops)):
                return self.single(right)
        return t

    def applied(self, law: Law, found: Found, domain: Space, codomain: Space, budget: int) -> Term | None:
        """The right side, if it has the same spaces and makes no more nodes than the budget, apart from shared ones."""
        made: list[Term] = []
        right = law.apply(found, made)
        if right is None or right.domain is not domain or right.codomain is not codomain:
            return None
        return right if sum([self.counts.get(t, 0) < 2 for t in made]) <= budget else None

    def free(self, t: Term) -> int:
        """How many nodes are sure to go with a part."""
        return 0 if self.counts[t] != 1 else 1 + (type(t) is Section and self.counts[t.bilinear] == 1)

    # -- compositions --------------------------------------------------------------------------------------------------

    def composition(self, t: Term) -> Term:
        """f₁ ∘ … ∘ fₙ, however bracketed, with scalings in between."""
        pieces = self.pieces(t)
        long = len(pieces) > 2
        stack: list[tuple[Term, int]] = []
        k = 1.0
        while pieces:
            piece = pieces.pop()
            scale = _scale(piece)
            if k != 1.0 and (not cast(Any, piece)[0].linear if scale is None else not _exact(k, scale)):
                stack, k = [(self.scaled(k, _nested(stack, t.domain)), 1)], 1.0
            if scale is not None:
                k *= scale  # (k·) ∘ f = k·f, and outwards through linear maps
                continue
            g, free = cast("tuple[Term, int]", piece)
            right = self.meet(g, free, stack) if stack else None
            if right is None:
                stack.append((g, free))
            else:  # what the law gives comes next, and the scaling after it
                pieces += [k, *right] if k != 1.0 else right
                k = 1.0
        return self.scaled(k, _nested(stack, t.domain), long)

    def scaled(self, k: float, t: Term, paid: bool = False) -> Term:
        """k · t; (k·) for id where its two nodes are paid for."""
        if k == 1.0 or type(t) is ZeroMap:
            return t
        if type(t) is Id and (paid or self.counts.get(t) == 1 or ScalarMul(t.space) in self.counts):
            return Section(ScalarMul(t.space), 0, (k,))
        if type(t) is Combine and _all_exact(k, t):
            return Combine(tuple([k * c for c in t.coefficients]), t.terms)
        return Combine((k,), (t,))

    def pieces(self, t: Term) -> list[Piece]:
        """The factors and scalings of a composition, outermost first."""
        found: list[Piece] = []
        stack: list[Any] = [t]
        while stack:
            x = stack.pop()
            if x is not t and self.inside.get(x) is not Compose:
                found.append((self.done[x], self.free(x)))
            elif type(x) is Compose:
                stack += [x.inner, x.outer]
            else:
                found.append(x.coefficients[0])
                stack.append(x.terms[0])
        return found

    def meet(self, g: Term, free: int, stack: list[tuple[Term, int]]) -> list[Piece] | None:
        """What a law makes of g ∘ f, for f the top of the stack or the first factor of it, which is then taken off."""
        f, own = stack[-1]
        right = self.pair(g, f, 1 + free + own)
        if right is not None:
            stack.pop()
        elif type(f) is Compose:
            right = self.pair(g, f.outer, free + min(own, 1))  # less one: what is left of f is composed anew
            if right is not None:
                stack[-1] = (f.inner, 0)
        return right

    def pair(self, g: Term, f: Term, budget: int) -> list[Piece] | None:
        """What a law makes of g ∘ f, outermost first, if it makes no more nodes than the budget."""
        a, b = type(g), type(f)
        for key in ((a, b), (a, _ANY), (_ANY, b)):
            for law in PAIRS.get(key, ()):
                left = cast(Head, law.left)
                found: Found = {}
                if not (left.fields[0].match(g, found) and left.fields[1].match(f, found)):
                    continue
                right = self.applied(law, found, f.domain, g.codomain, budget)
                if right is not None:
                    split = isinstance(law.right, Head) and law.right.head is Compose and type(right) is Compose
                    return [(x, int(x not in self.counts)) for x in (parts(right) if split else (right,))]
        return None

    # -- sums ----------------------------------------------------------------------------------------------------------

    def sum(self, t: Combine) -> Term:
        """Σ kᵢ · fᵢ, flat, each f once, zeros left out."""
        found: dict[Term, float] = {}
        stack: list[tuple[float, Any]] = [(1.0, t)]
        while stack:
            k, x = stack.pop()
            if x is t or x in self.inside:
                stack += [(k * c, y) for c, y in zip(x.coefficients, x.terms, strict=True)][::-1]
                continue
            f: Any = self.done[x]
            if _is_scaled(f) and self.counts[x] == 1 and _exact(k, f.coefficients[0]):
                k, f = k * f.coefficients[0], f.terms[0]
            if type(f) is not ZeroMap:
                found[f] = found[f] + k if f in found else k
        if not found:
            return ZeroMap(t.domain, t.codomain)
        if len(found) == 1:
            ((f, k),) = found.items()
            return self.scaled(k, f)
        return Combine(tuple(found.values()), tuple(found))


def _is_scaled(t: Term) -> bool:
    """Whether a term is k · f."""
    return type(t) is Combine and len(t.terms) == 1


def _scale(piece: Piece) -> float | None:
    """The number k of a piece that is (k·)."""
    if not isinstance(piece, tuple):
        return piece
    t = piece[0]
    if type(t) is Section and type(t.bilinear) is ScalarMul and t.side == 0 and type(t.leaves[0]) is float:
        return t.leaves[0]
    return None


def _exact(k: float, m: float) -> bool:
    """Whether k·m is no more than rounded: neither too large nor too small for a number."""
    both = k * m
    return math.isfinite(both) and bool(both or not k or not m)


def _all_exact(k: float, t: Combine) -> bool:
    return all([_exact(k, c) for c in t.coefficients])


def _nested(stack: list[tuple[Term, int]], domain: Any) -> Term:
    """f₁ ∘ (f₂ ∘ …) of the factors, innermost first."""
    if not stack:
        return Id(domain)
    found = stack[0][0]
    for g, _ in stack[1:]:
        found = Compose(g, found)
    return found
