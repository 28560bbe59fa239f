"""Sums of entries: those with equal index maps become one, bands of one diagonal too, R·D·Rᵀ becomes block-diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ops.op import Reduction
from ...relations import Function
from ...relations.base import freeze
from ...relations.index_algebra import Affine, IndexMap, IndexTable, Labels, along, labels_of
from ...relations.index_sets import Seg
from ...runtime import tuning
from .coefficients import Coefficients, Factor, plain
from .entries import Entry, EntryCost, costs, evaluated, renamed_in_order
from .index_maps import distinct, size_of


class Frame(NamedTuple):
    """An entry but for where its diagonals begin: `key` must agree, `starts` are beginnings (None: not movable)."""

    entry: Entry
    key: Any
    labels: Labels
    starts: list[int | None]


def _frame(c: Coefficients, e: Entry) -> Frame:
    maps = (*e.out, *e.inn)
    labels = distinct(maps)
    names = {k: i for i, k in enumerate(labels)}
    movable = dict.fromkeys(labels, True)
    for m in maps:
        for k in labels_of(m):
            movable[k] = movable[k] and type(m) is Affine and len(m.terms) == 1 and m.terms[0][1] == 1
    starts: dict[int, int] = {}
    for m in maps:
        for k in labels_of(m):
            if isinstance(m, Affine) and movable[k]:
                starts[k] = min(starts.get(k, m.offset), m.offset)
    parts: list[Any] = [len(e.out)]
    for m in maps:
        if type(m) is IndexTable:
            parts.append(("t", id(m.array), tuple([names[k] for k in m.labels])))
        else:
            assert type(m) is Affine
            shift = starts.get(m.terms[0][0], 0) if len(m.terms) == 1 else 0
            parts.append((m.offset - shift, tuple(sorted([(names[k], s) for k, s in m.terms]))))
    parts.append(tuple([None if movable[k] else c.sizes[k] for k in labels]))
    return Frame(e, tuple(parts), labels, [starts.get(k) for k in labels])


Groups = dict[Any, list[Entry]]  # by frame
ALONE = None
"""The frame of an only entry, for there is nothing to compare it with."""


class EntrySum:
    """Entries between two arrays by frame, and their cost: another is compared with those of its frame only."""

    def __init__(self, c: Coefficients, entries: Sequence[Entry] = ()) -> None:
        self._start: Sequence[Entry] = entries  # not yet looked at: they have been added already
        self._groups: Groups = {}
        self.cost = costs(c, entries)

    @property
    def entries(self) -> Sequence[Entry]:
        """All of them."""
        return self._start or [e for g in self._groups.values() for e in g]

    def plus(self, c: Coefficients, entries: Sequence[Entry]) -> Groups:
        """The groups that change when entries are added."""
        if len(entries) == 1 and not self._start and not self._groups and _regrouped(c, entries[0]) is entries[0]:
            return {ALONE: _some(c, entries)}
        if self._start:
            self._groups = {key: [f.entry for f in frames] for key, frames in self._framed(c, self._start).items()}
            self._start = ()
        changed: Groups = {}
        while entries:
            moved: list[Entry] = []
            for key, frames in self._framed(c, entries).items():
                both = [*[_frame(c, e) for e in changed.get(key, self._groups.get(key, ()))], *frames]
                found = _added(c, both) if len(both) > 1 else [both[0].entry]
                found = [(e, _regrouped(c, e)) for e in _some(c, found)]
                changed[key] = [e for e, again in found if again is e]
                for again in [again for e, again in found if again is not e]:
                    moved.append(again)
                    (other,) = self._framed(c, [again])
                    changed.setdefault(other, list(self._groups.get(other, ())))  # it takes the place of what it was
            entries = moved
        return changed

    def _framed(self, c: Coefficients, entries: Sequence[Entry]) -> dict[Any, list[Frame]]:
        """Entries by frame; where many of one frame lie apart, by place as well."""
        groups: dict[Any, list[Frame]] = {}
        for e in entries:
            f = _frame(c, e)
            key = f.key if len(self._groups.get(f.key, ())) < tuning.COMPARED_DIAGONALS else (f.key, *_place(c, f))
            groups.setdefault(key, []).append(f)
        return groups

    def change(self, c: Coefficients, changed: Groups) -> EntryCost:
        """By how much some changed groups cost more."""
        old = costs(c, [e for key in changed for e in self._groups.get(key, ())])
        return costs(c, [e for g in changed.values() for e in g]).plus(old, -1)

    def take(self, c: Coefficients, changed: Groups) -> None:
        """Put changed groups in place."""
        self.cost = self.cost.plus(self.change(c, changed))
        if ALONE in changed:
            self._start = changed[ALONE]
            return
        self._groups.update(changed)
        for key in [key for key, g in changed.items() if not g]:
            del self._groups[key]


def _some(c: Coefficients, entries: Sequence[Entry]) -> list[Entry]:
    """Those that are not zero."""
    return [e for e in entries if e.scale != 0.0 and all([c.sizes[k] for k in e.labels])]


def merged(c: Coefficients, entries: Sequence[Entry]) -> list[Entry]:
    """The same sum with fewer entries."""
    return [e for g in EntrySum(c).plus(c, entries).values() for e in g]


def _added(c: Coefficients, group: list[Frame]) -> list[Entry]:
    """The entries of a frame with fewer of them: those of one factor as one, those of several that are alike."""
    single = [len(f.entry.factors) <= 1 and {*f.entry.labels} == {*f.labels} for f in group]
    simple = [f for f, one in zip(group, single, strict=True) if one]
    others = _like(c, [f for f, one in zip(group, single, strict=True) if not one])
    if len(others) > tuning.UNMULTIPLIED_PRODUCTS:
        numbers = sum([c.size(g.slot) for f in others for g in f.entry.factors])
        if numbers > 2 * size_of(group[0].labels, c.sizes):
            simple, others = [*simple, *[f._replace(entry=evaluated(c, f.entry)) for f in others]], []
    made = _one(c, simple) if len(simple) > 1 else None
    return [*(made if made is not None else [f.entry for f in simple]), *[f.entry for f in others]]


def _one(c: Coefficients, group: list[Frame]) -> list[Entry] | None:
    """Entries with at most one factor as one, over the union of their ranges; None where that is mostly empty."""
    first = group[0]
    rank = len(first.labels)
    low = [None if s is None else min([f.starts[i] or 0 for f in group]) for i, s in enumerate(first.starts)]
    sizes: list[int] = []
    for i in range(rank):
        ends = [(f.starts[i] or 0) + c.sizes[f.labels[i]] for f in group]
        sizes.append(c.sizes[first.labels[i]] if low[i] is None else max(ends) - (low[i] or 0))
    ragged = [i for i in range(rank) if any([c.sizes[f.labels[i]] != sizes[i] for f in group])]
    needed = sorted({f.labels.index(k) for f in group for g in f.entry.factors for k in g.labels} | set(ragged))
    there = sum([math.prod([c.sizes[f.labels[i]] for i in needed]) for f in group])
    if math.prod([sizes[i] for i in needed]) > 4 * there + 64:
        return None
    labels = tuple([k if c.sizes[k] == sizes[i] else c.fresh(sizes[i]) for i, k in enumerate(first.labels)])
    parts: list[tuple[float, Factor]] = []
    bare = 0.0
    out = tuple([labels[i] for i in needed])
    for f in group:
        if not f.entry.factors and all([c.sizes[f.labels[i]] == sizes[i] for i in needed]):
            bare += f.entry.scale
            continue
        one = f.entry.factors[0] if f.entry.factors else Factor(c.program.const(1.0), ())
        names = dict(zip(f.labels, labels, strict=True))
        at = [i for i in needed if f.labels[i] in one.labels or i in ragged]
        factor = c.product([one], tuple([f.labels[i] for i in at]))
        for axis, i in enumerate(at):
            if c.sizes[f.labels[i]] != sizes[i]:
                factor = c.placed(factor, axis, (f.starts[i] or 0) - (low[i] or 0), sizes[i])
        parts.append((f.entry.scale, factor.renamed(names)))
    if bare:
        parts.append((bare, Factor(c.program.const(1.0), ())))
    names = dict(zip(first.labels, labels, strict=True))
    shift = {k: (low[i] or 0) - (first.starts[i] or 0) for i, k in enumerate(first.labels)}

    def moved(m: IndexMap) -> IndexMap:
        if type(m) is Affine and len(m.terms) == 1 and low[first.labels.index(m.terms[0][0])] is not None:
            m = Affine(m.offset + shift[m.terms[0][0]], m.terms)
        return renamed_in_order(m, names)

    sides = tuple([moved(m) for m in first.entry.out]), tuple([moved(m) for m in first.entry.inn])
    if not parts:
        return []
    if len(parts) == 1 and parts[0][1].labels == out:
        k, factor = parts[0]
        number = c.number(factor.slot) if not factor.labels else None
        if number is not None and plain(number):
            return [Entry(*sides, (), k * number)]
        return [Entry(*sides, (c.factor(factor.slot, factor.labels, factor.strong),), k)]
    if all([not f.labels and (k := c.number(f.slot)) is not None and plain(k) for _, f in parts]):
        return [Entry(*sides, (), sum([k * (c.number(f.slot) or 0.0) for k, f in parts]))]
    total = c.total(parts, out)
    strong = any([f.strong for _, f in parts]) or _gaps(c, group, ragged)
    return [Entry(*sides, (c.factor(total.slot, out, strong),), 1.0)]


def _gaps(c: Coefficients, group: list[Frame], axes: list[int]) -> bool:
    """Whether the ranges of some diagonals leave out a part of their union, a place without a number."""
    ends = [[((f.starts[i] or 0), (f.starts[i] or 0) + c.sizes[f.labels[i]]) for i in axes] for f in group]
    cuts = [np.unique([e[k] for e in ends]) for k in range(len(axes))]
    covered = np.zeros([len(cut) - 1 for cut in cuts], bool)
    for e in ends:
        covered[tuple([slice(*np.searchsorted(cut, pair)) for cut, pair in zip(cuts, e, strict=True)])] = True
    return not covered.all()


def _like(c: Coefficients, group: list[Frame]) -> list[Frame]:
    """Entries of several factors: those that agree in all factors, or in all but one, are added."""
    places: dict[Any, list[Frame]] = {}
    for f in group:
        kept = places.setdefault((len(f.entry.factors), *_place(c, f)), [])
        for i, g in enumerate(kept):
            both = _sum(c, g, f)
            if both is not None:
                kept[i] = g._replace(entry=both)
                break
        else:
            kept.append(f)
    return [f for kept in places.values() for f in kept]


def _place(c: Coefficients, f: Frame) -> Any:
    """Where the diagonals of a frame begin, and how long they are."""
    return tuple(f.starts), tuple([c.sizes[k] for k in f.labels])


def _sum(c: Coefficients, a: Frame, b: Frame) -> Entry | None:
    """The sum of two entries at one place with as many factors; None where they differ in two factors or more."""
    x, y = a.entry, b.entry
    names = dict(zip(b.labels, a.labels, strict=True))
    left = list(range(len(x.factors)))
    open_: list[int] = []
    for j, g in enumerate(y.factors):
        for i in left:
            f = x.factors[i]
            if f.slot == g.slot and f.strong == g.strong and _matches(f.labels, g.labels, names):
                left.remove(i)
                break
        else:
            open_.append(j)
    if not left:
        return Entry(x.out, x.inn, x.factors, x.scale + y.scale)
    if len(left) > 1 or len(open_) > 1:
        return None
    f, g = x.factors[left[0]], y.factors[open_[0]]
    if f.strong or g.strong or sorted([names.get(k, -1) for k in g.labels]) != sorted(f.labels):
        return None
    total = c.total([(x.scale, f), (y.scale, g.renamed(names))], f.labels)
    return Entry(x.out, x.inn, tuple([total if i == left[0] else h for i, h in enumerate(x.factors)]), 1.0)


def _matches(mine: Labels, yours: Labels, names: dict[int, int]) -> bool:
    """Whether two factors run along the same labels; inner labels are matched as they come."""
    if len(mine) != len(yours):
        return False
    trial = dict(names)
    for k, q in zip(mine, yours, strict=True):
        if q in trial:
            if trial[q] != k:
                return False
        elif k in trial.values():
            return False
        else:
            trial[q] = k
    names.update(trial)
    return True


def _regrouped(c: Coefficients, e: Entry) -> Entry:
    """R·D·Rᵀ with one index array is block-diagonal: coefficients are summed over what it sends to one place."""
    if len(e.factors) > 1:
        return e
    for i, m in enumerate(e.out):
        if type(m) is not IndexTable or len(m.labels) != 1:
            continue
        t = m.labels[0]
        others = [j for j, q in enumerate(e.inn) if type(q) is IndexTable and q[0] is m.array and q.labels == m.labels]
        f = e.factors[0] if e.factors else Factor(c.program.const(np.ones(c.sizes[t])), (t,))
        if len(others) != 1 or t not in f.labels or f.strong or sum([t in labels_of(q) for q in (*e.out, *e.inn)]) != 2:
            continue
        n = int(m.array.max()) + 1
        if n > c.sizes[t]:
            continue
        k = c.fresh(n)
        relation = Function(Seg(c.sizes[t]), Seg(n), freeze(m.array))
        slot = c.step(Reduction((relation,), f.labels.index(t)), (f.slot,))
        labels = tuple([k if q == t else q for q in f.labels])
        out, inn = [
            tuple([along(k) if j == at else q for j, q in enumerate(side)])
            for side, at in ((e.out, i), (e.inn, others[0]))
        ]
        return Entry(out, inn, (c.factor(slot, labels),), e.scale)
    return e
