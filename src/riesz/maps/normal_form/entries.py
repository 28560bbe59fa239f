"""Entries: the summands of a linear map in normal form, and their composition.

An entry says L[out(l), in(l)] += scale · Π factors(l) for every value of its labels l. A label on both sides is a
diagonal direction, a label of factors only is summed over, index maps say where along each axis a number belongs.
Adjoint: exchange the sides. Composition: concatenate factors and solve in₂(l) = out₁(m), axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...relations.index_algebra import Affine, IndexMap, IndexTable, Labels, along, labels_of, renamed, values
from ...relations.spans import lines_meet
from ...runtime import tuning
from .coefficients import Coefficients, Factor, plain
from .index_maps import distinct, radix, refined, size_of, whole


class StaysApart(Exception):
    """Two entries whose composition would be larger than both: they stay two."""


class EntryCost(NamedTuple):
    """How many entries, operations and numbers, positions, and positions that index arrays list on both sides."""

    entries: int
    weight: int
    positions: int
    listed: int

    def plus(self, other: EntryCost, sign: int = 1) -> EntryCost:
        """Both together; the one without the other, if the sign is -1."""
        return EntryCost(*[a + sign * b for a, b in zip(self, other, strict=True)])


NOTHING = EntryCost(0, 0, 0, 0)


class Entry:
    """L[out(l), inn(l)] += scale · Π factors(l)."""

    __slots__ = ("cost", "factors", "inn", "out", "scale")

    def __init__(
        self, out: tuple[IndexMap, ...], inn: tuple[IndexMap, ...], factors: tuple[Factor, ...] = (), scale: float = 1.0
    ) -> None:
        self.out, self.inn, self.factors, self.scale = out, inn, factors, scale
        self.cost: EntryCost | None = None

    @property
    def turned(self) -> Entry:
        """The transpose."""
        return Entry(self.inn, self.out, self.factors, self.scale)

    @property
    def outer(self) -> Labels:
        """The labels of the two sides."""
        return distinct((*self.out, *self.inn))

    @property
    def labels(self) -> Labels:
        """All labels."""
        return tuple(dict.fromkeys([*self.outer, *[k for f in self.factors for k in f.labels]]))

    def scaled(self, c: Coefficients, k: float) -> Entry:
        """k times the entry."""
        if plain(k):
            return Entry(self.out, self.inn, self.factors, k * self.scale)
        return Entry(self.out, self.inn, (*self.factors, Factor(c.program.const(k), ())), self.scale)

    @property
    def strongly(self) -> Entry:
        """The entry of a vector with strong zeros: the zeros of its factors are strong too."""
        return Entry(self.out, self.inn, tuple([f._replace(strong=True) for f in self.factors]), self.scale)

    def changed(self, c: Coefficients, change: dict[int, IndexMap]) -> Entry:
        """Labels replaced by maps of other labels."""
        side = c.tables.substituted
        out = tuple([side(m, change, c.sizes) for m in self.out])
        inn = tuple([side(m, change, c.sizes) for m in self.inn])
        return Entry(out, inn, tuple([c.moved(f, change) for f in self.factors]), self.scale)

    def fresh(self, c: Coefficients) -> Entry:
        """The same entry with labels of its own."""
        names = {k: c.fresh(c.sizes[k]) for k in self.labels}
        factors = tuple([f.renamed(names) for f in self.factors])
        out, inn = [tuple([renamed_in_order(m, names) for m in side]) for side in (self.out, self.inn)]
        return Entry(out, inn, factors, self.scale)


def renamed_in_order(m: IndexMap, names: dict[int, int]) -> IndexMap:
    """The same map with other labels; its terms stay in their order, in which they are printed."""
    return Affine(m.offset, tuple([(names[k], s) for k, s in m.terms])) if type(m) is Affine else renamed(m, names)


def identity(c: Coefficients, shape: Sequence[int]) -> Entry:
    """The identity on arrays of a shape."""
    maps = tuple([Affine(0) if n == 1 else along(c.fresh(n)) for n in shape])
    return Entry(maps, maps)


def composed(c: Coefficients, second: Entry, first: Entry, box: Sequence[int]) -> list[Entry]:
    """second ∘ first as entries, none where they never meet; raises StaysApart where they had better stay two."""
    if 0 in box:  # nothing goes through
        return []
    first = first.fresh(c)
    whole_entry = Entry(second.out, first.inn, (*second.factors, *first.factors), second.scale * first.scale)
    every = frozenset((*second.labels, *first.labels))
    sides = second.inn, first.out
    for mine, yours in (sides, sides[::-1]):  # each label of one side runs through its axis: it becomes the other map
        change: dict[int, IndexMap] = {}
        for m, other, n in zip(mine, yours, box, strict=True):
            if n == 1:
                continue
            if not whole(m, n, c.sizes) or labels_of(m)[0] in change:
                break
            change[labels_of(m)[0]] = other
        else:
            return tidied(c, whole_entry.changed(c, change), _after(every, change))
    return _solved(c, whole_entry, every, sides, box)


def diagonal_entries(c: Coefficients, e: Entry, box: Sequence[int]) -> list[Entry]:
    """The part of an entry on the diagonal, as entries whose two sides agree."""
    patience, c.patience = c.patience, size_of(e.outer, c.sizes)  # as many positions as the entry has are looked at
    try:
        return _solved(c, Entry(e.out, e.out, e.factors, e.scale), frozenset(e.labels), (e.out, e.inn), box)
    finally:
        c.patience = patience


Equation = tuple[IndexMap, IndexMap, int]
Changes = tuple[dict[int, IndexMap], ...]
State = tuple[Changes, frozenset[int], list[Equation]]
"""Changes so far; the labels there are (those in no map and no factor multiply); what is left."""


def _solved(c: Coefficients, e: Entry, every: frozenset[int], sides: Any, box: Sequence[int]) -> list[Entry]:
    """An entry where two sides agree, axis by axis. It is changed once, at the end: between two equations labels are
    not yet tied together, and a factor or an index array along both of two labels would have all their pairs."""
    done: list[Entry] = []
    todo: list[State] = [((), every, [(a, b, n) for a, b, n in zip(*sides, box, strict=True) if n != 1])]
    while todo:
        changes, labels, left = state = todo.pop()
        if left:
            todo.extend(_solve(c, state, e))
            continue
        whole_change: dict[int, IndexMap] = {}
        for change in reversed(changes):
            whole_change.update({k: c.tables.substituted(m, whole_change, c.sizes) for k, m in change.items()})
        done += tidied(c, e.changed(c, whole_change), labels)
    return done


def _solve(c: Coefficients, state: State, e: Entry) -> list[State]:
    """One equation solved: the states that are left; none where no label fits."""
    changes, every, equations = state
    at = next((i for i, (a, b, n) in enumerate(equations) if whole(a, n, c.sizes) or whole(b, n, c.sizes)), 0)
    a, b, n = equations[at]
    rest = [*equations[:at], *equations[at + 1 :]]
    left = (changes, every, rest)
    if type(a) is type(b) and labels_of(a) == labels_of(b) and (a == b if type(a) is Affine else a[0] is b[0]):
        return [left]
    for u, v in ((a, b), (b, a)):
        if whole(u, n, c.sizes) and labels_of(u)[0] not in labels_of(v):
            return [_changed(c, left, {labels_of(u)[0]: v})]
    if type(a) is Affine and type(b) is Affine:
        found = _affine(c, a, b, n, left)
        if found is not None:
            return found
    sides = [set(distinct(side)) for side in (e.out, e.inn)]
    for change in changes:  # the labels that those of the sides have become
        sides = [{q for k in side for q in (labels_of(change[k]) if k in change else (k,))} for side in sides]
    change = _listed(c, a, b, n, sides)
    return [] if change is None else [_changed(c, left, change)]


def _changed(c: Coefficients, state: State, change: dict[int, IndexMap]) -> State:
    changes, every, equations = state
    side = c.tables.substituted
    rest = [(side(a, change, c.sizes), side(b, change, c.sizes), n) for a, b, n in equations]
    return (*changes, change), _after(every, change), rest


def _after(every: frozenset[int], change: dict[int, IndexMap]) -> frozenset[int]:
    """The labels there are after a change."""
    return (every - change.keys()) | frozenset(distinct(change.values()))


def _affine(c: Coefficients, a: Affine, b: Affine, n: int, state: State) -> list[State] | None:
    """An equation of two affine maps; None where labels must be listed."""
    terms = dict(a.terms)
    for k, s in b.terms:
        terms[k] = terms.get(k, 0) - s
    open_ = [(k, s) for k, s in terms.items() if s]
    if not open_:
        return [state] if a.offset == b.offset else []
    if len(open_) == 1:
        ((label, stride),) = open_
        at, left = divmod(b.offset - a.offset, stride)
        return [] if left or not 0 <= at < c.sizes[label] else [_changed(c, state, {label: Affine(at)})]
    if len(a.terms) == len(b.terms) == 1 and a.terms[0][0] != b.terms[0][0]:
        change = _line(c, a, b)
        return [] if change is None else [_changed(c, state, change)]
    ra, rb = radix(a, n, c.sizes), radix(b, n, c.sizes)
    if ra is not None and rb is not None and not set(labels_of(a)) & set(labels_of(b)):
        change = refined(ra, rb, c.sizes, c.fresh)
        if change is not None:
            return [_changed(c, state, change)]
    several = [m for m in (a, b) if len(m.terms) > 1]
    short = min([k for m in several for k, _ in m.terms], key=lambda k: c.sizes[k])
    if c.sizes[short] <= tuning.SPLIT_OFFSETS:  # a window: one state for each of its offsets
        again = (state[0], state[1], [(a, b, n), *state[2]])
        return [_changed(c, again, {short: Affine(at)}) for at in range(c.sizes[short])]
    return None


def _line(c: Coefficients, a: Affine, b: Affine) -> dict[int, IndexMap] | None:
    """offset + s·l = offset' + t·m: all solutions are l = l₀ + (t/g)·k, m = m₀ + (s/g)·k."""
    ((p, s),), ((q, t),) = a.terms, b.terms
    found = lines_meet(s, t, b.offset - a.offset, c.sizes[p], c.sizes[q])
    if found is None:
        return None
    (first, step), (second, jump), count = found
    if count == 1:
        return {p: Affine(first), q: Affine(second)}
    k = c.fresh(count)
    return {p: Affine(first, ((k, step),)), q: Affine(second, ((k, jump),))}


def _listed(c: Coefficients, a: IndexMap, b: IndexMap, n: int, sides: Sequence[set[int]]) -> dict[int, IndexMap] | None:
    """All labels at which two maps agree, listed; None where there are none. `sides`: the labels of the entry."""
    la, lb = labels_of(a), labels_of(b)
    if set(la) & set(lb):
        every = tuple(dict.fromkeys((*la, *lb)))
        box = [c.sizes[k] for k in every]
        if math.prod(box) > max(1 << 24, c.patience):
            raise StaysApart
        hits = np.nonzero(np.broadcast_to(values(a, every, c.sizes) == values(b, every, c.sizes), box))
        return _names(c, every, hits)
    va = np.broadcast_to(values(a, la, c.sizes), [c.sizes[k] for k in la]).reshape(-1)
    vb = np.broadcast_to(values(b, lb, c.sizes), [c.sizes[k] for k in lb]).reshape(-1)
    degrees = np.bincount(vb, minlength=n)
    per = degrees[va]
    count = int(per.sum())
    if count > c.patience * max(len(va) + len(vb), 1024) or not _fits(c, count, {*la, *lb}, sides):
        raise StaysApart

    def make() -> dict[int, IndexMap] | None:
        order = np.argsort(vb, kind="stable")
        starts = np.concatenate([[0], np.cumsum(degrees)])
        left = np.repeat(np.arange(len(va)), per)
        within = np.arange(count) - np.repeat(np.cumsum(per) - per, per)
        right = order[starts[va[left]] + within]
        sides = [(at, [c.sizes[k] for k in labels]) for at, labels in ((left, la), (right, lb)) if labels]
        hits = [h for at, box in sides for h in np.unravel_index(at, box)]
        return _names(c, tuple(range(len(la) + len(lb))), hits, count)

    every = (*la, *lb)
    known = c.tables.remembered(("meet", n, tuple([c.sizes[k] for k in every])), (a, b), every, make)
    if known is None:
        return None
    t = {k: c.fresh(count) for k in distinct(known.values())}
    return {k: renamed(m, t) for k, m in zip(every, known.values(), strict=True)}


def _fits(c: Coefficients, count: int, listed: set[int], sides: Sequence[set[int]]) -> bool:
    """Whether an entry is small enough if so many values of some labels are listed."""
    if c.room is None:
        return True
    both = sides if c.room.product else [sides[0] | sides[1]]
    sizes = [(count if labels & listed else 1) * size_of(labels - listed, c.sizes) for labels in both]
    return sum(sizes) <= c.room.size


def _names(c: Coefficients, labels: Labels, hits: Any, count: int | None = None) -> dict[int, IndexMap] | None:
    m = len(hits[0]) if count is None else count
    if not m:
        return None
    if m == 1:
        return {k: Affine(int(h[0])) for k, h in zip(labels, hits, strict=True)}
    t = c.fresh(m)
    return {k: c.tables.table(np.asarray(h, np.intp), (t,)) for k, h in zip(labels, hits, strict=True)}


# -- one entry made tidy -------------------------------------------------------------------------------------


def tidied(c: Coefficients, e: Entry, every: frozenset[int]) -> list[Entry]:
    """An entry, if it is not zero, with sums carried out that concern one factor only, products carried out that make
    things smaller, numbers in the scale. A label of `every` that is in no map and no factor multiplies."""
    scale = e.scale
    for k in every.difference(e.labels):
        scale *= c.sizes[k]
    factors: list[Factor] = []
    zeros: list[Factor] = []  # they stay apart: in the end it is seen whether they meet anything that may be infinite
    for f in e.factors:
        k = c.number(f.slot) if not f.labels else None
        if k == 0.0 and f.strong:
            return []
        if k == 0.0:
            zeros = [f]
        elif k is None or not plain(k):
            factors.append(f)
        else:
            scale *= k
    if scale == 0.0 or any([not c.sizes[k] for k in every]):
        return []
    return [Entry(e.out, e.inn, (*_multiplied(c, factors, set(e.outer)), *zeros), scale)]


def _multiplied(c: Coefficients, factors: list[Factor], outer: set[int]) -> list[Factor]:
    """Sums over labels of one factor; then products, the smallest first, as long as they are no larger."""
    while True:
        count: dict[int, int] = {}
        for f in factors:
            for k in set(f.labels):
                count[k] = count.get(k, 0) + 1
        for i, f in enumerate(factors):
            kept = tuple([k for k in dict.fromkeys(f.labels) if k in outer or count[k] > 1])
            if kept != f.labels:
                made = c.product([f], kept)
                factors[i] = c.factor(made.slot, kept, f.strong)
        best: tuple[int, int, int, Labels] | None = None
        for i, f in enumerate(factors):
            for j in range(i + 1, len(factors)):
                g = factors[j]
                if f.labels and g.labels and not set(f.labels).intersection(g.labels):
                    continue  # an outer product
                union = tuple(dict.fromkeys((*f.labels, *g.labels)))
                others = outer.union(*[h.labels for n, h in enumerate(factors) if n not in (i, j)])
                kept = tuple([k for k in union if k in others])
                result = size_of(kept, c.sizes)
                if _worth(c, f, g, result, size_of(union, c.sizes)) and (best is None or result < best[0]):
                    best = (result, i, j, kept)
        if best is None:
            return factors
        _, i, j, kept = best
        made = c.product([factors[i], factors[j]], kept)
        factors = [*[h for n, h in enumerate(factors) if n not in (i, j)], c.factor(made.slot, kept, made.strong)]


def _worth(c: Coefficients, f: Factor, g: Factor, result: int, work: int) -> bool:
    """Whether two factors are better multiplied: hardly more than what was computed anyway, or less than either."""
    small, large = sorted([c.size(f.slot), c.size(g.slot)])
    computed = max([c.size(h.slot) for h in (f, g) if not c.about(h.slot).given], default=0)
    if work > 64 * large:
        return work <= 1024 * large and 8 * result <= small
    copied = any([c.about(h.slot).given and result >= c.size(h.slot) > computed for h in (f, g)])  # diag(s)·X
    return result <= small or (result <= 4 * computed and not copied)


def evaluated(c: Coefficients, e: Entry) -> Entry:
    """An entry with one factor."""
    have = {k for f in e.factors for k in f.labels}
    made = c.product(e.factors, tuple([k for k in e.outer if k in have]))
    return Entry(e.out, e.inn, (c.factor(made.slot, made.labels, made.strong),), e.scale)


def work(c: Coefficients, e: Entry) -> int:
    """About how many operations it takes to apply an entry: factors one after the other, beginning at the input."""
    sizes = c.sizes
    current = set(distinct(e.inn))
    out = set(distinct(e.out))
    total = size_of(current, sizes)
    left = list(e.factors)
    while left:
        current &= out.union(*[f.labels for f in left])
        left.sort(key=lambda f: (not current & set(f.labels), size_of(current | set(f.labels), sizes)))
        current |= set(left.pop(0).labels)
        total += size_of(current, sizes)
    return total + size_of(out, sizes)


def costs(c: Coefficients, entries: Iterable[Entry]) -> EntryCost:
    """What some entries cost."""
    return total([_cost(c, e) for e in entries])


def total(found: Sequence[EntryCost]) -> EntryCost:
    """All together."""
    if len(found) == 1:
        return found[0]
    return EntryCost(*[sum(column) for column in zip(*found, strict=True)]) if found else NOTHING


def _cost(c: Coefficients, e: Entry) -> EntryCost:
    if e.cost is None:
        reached = sparse_size(c, e)
        listed = all([any([type(m) is IndexTable for m in side]) for side in (e.out, e.inn)])
        computed = sum([c.size(f.slot) for f in e.factors if not c.about(f.slot).given])
        e.cost = EntryCost(1, work(c, e) + computed, reached, reached if listed else 0)
    return e.cost


def sparse_size(c: Coefficients, e: Entry) -> int:
    """How many positions of the matrix an entry reaches, positions met twice counted twice."""
    return size_of(e.outer, c.sizes)
