"""A program cut into groups, each of which is one loop nest: values inside a group are numbers, values between groups
are arrays.

Slots are placed from the last to the first, so everybody who reads a slot is known. A slot is computed where it is read
if that does not take more than writing it down would; groups that read the same slot at every position of their boxes
become one; all else is written to memory.

    reads of a slot                                  it is
    one position in one group                        a number in that group
    several positions, but little work               computed again at each
    the whole box of a group, and by others          stored by that group, read by the others
    anything else                                    stored by a group of its own

Note [Order]: groups are joined, and slots stored in a group, only where no way leads from the one through other groups
back into the other.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...ops.op import Contraction, Reduction, Reshape
from ...ops.opaque import Get
from ...programs.program import INPUT, Constant, Program
from ...relations.index_algebra import ORIGIN, Affine, along
from ...runtime import tuning
from ..common import numbers
from . import accesses
from .accesses import READS, Access, Asked, Reads, TableEntry, bulk, labels_in, plain, terms_of, unrolled
from .loop_forms import has_form

Key = tuple[int, tuple[Affine, ...]]
Outline = tuple[Affine | None, ...]
"""A position without the numbers in it, which say which component of a short axis is read."""
Wants = Sequence[tuple[int, Any]]
"""Units that read a slot, and where; None: all of it, from memory."""


@dataclass(eq=False)
class Unit:
    """A group or a step by itself; units in `after` read what it writes, of slots from `low` to `high`."""

    slot: int
    after: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.low = self.high = self.slot


class SingleStep(Unit):
    """A step that is no part of a group."""


@dataclass(eq=False)
class Group(Unit):
    """The labels of a loop nest from the outermost in, what it computes, and what it writes. A stored key has the
    labels it runs over: those not in the position are summed. `inner`: it has sums inside its outermost loop."""

    labels: list[int] = field(default_factory=list[int])
    nodes: dict[Key, Reads] = field(default_factory=dict[Key, Reads])
    stores: dict[Key, tuple[int, ...]] = field(default_factory=dict[Key, tuple[int, ...]])
    loads: set[int] = field(default_factory=set[int])
    bulk: int = 0
    inner: bool = False


class StepGroups:
    """The groups of a program, and the steps between them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.units: list[Any] = []
        self.sizes: list[int] = []
        self.arrays: list[Any] = []
        self._same_label: list[int] = []
        self._same_unit: list[int] = []
        self._numbers: dict[int, int] = {}
        self._path: dict[int, int] = {}
        self._wanted: list[dict[tuple[int, Any], None]] = [{} for _ in program.ops]
        self._uses = program.uses()
        self._makes = bytearray(len(program.ops))  # which steps compute something, and do not only move numbers
        self._fits = bytearray(len(program.ops))  # which steps are large and can be part of a loop nest
        self._effort = [0.0] * len(program.ops)  # of one number of a slot, if all it is made of is computed with it
        for slot in range(len(program.ops)):
            if self._fitting(slot):
                op, args, shapes = self._step(slot)
                moves = type(op) in (Reduction, Reshape)
                self._fits[slot], self._makes[slot] = 1, not moves or any([self._makes[a] for a in args])
                inside = max(terms_of(op, shapes), 1) * sum([self._effort[a] for a in args])
                self._effort[slot] = min(accesses.weight(op, shapes) + inside, 1e9)
        for slot in program.outputs:
            self._wanted[slot][-1, None] = None
        for slot in range(len(program.ops) - 1, -1, -1):
            if self._wanted[slot]:
                self._place(slot)

    # -- what is known beforehand ------------------------------------------------------------------------

    def _step(self, slot: int) -> tuple[Any, tuple[int, ...], list[Any]]:
        """The op of a slot, its arguments and their shapes."""
        args = self.program.args[slot]
        return self.program.ops[slot], args, [self.program.shapes[a] for a in args]

    def _fitting(self, slot: int) -> bool:
        (op, args, shapes), shape = self._step(slot), self.program.shapes[slot]
        if not args or isinstance(op, Get) or any([s and type(s[0]) is tuple for s in (*shapes, shape)]):
            return False
        if max([numbers(s) for s in (*shapes, shape)]) < tuning.NEST_NUMBERS or not has_form(op):
            return False
        if type(op) is Contraction and self._multiplies(op, args, shapes, shape):
            return False
        return READS[type(op)](op, Asked(shapes, shape, _dummies(shape), _no_name, _no_name)) is not None

    def _multiplies(self, op: Contraction, args: tuple[int, ...], shapes: list[Any], shape: Any) -> bool:
        """Whether a contraction is left to matrix products: its numbers are used often, or lie in memory as they are
        and no two factors have an axis of the result in common."""
        sizes = op.sizes(tuple(shapes))
        if len(args) == 1 or all([n == 1 or k in op.out for k, n in sizes.items()]):
            return False
        common = [k for k in op.out if sizes[k] > 1 and sum([k in ls for ls in op.labels]) > 1]
        largest = max([numbers(s) for s in (*shapes, shape)])
        often = math.prod(sizes.values()) > tuning.NEST_PRODUCT_REUSE * largest
        return often or not (common or any([self._makes[a] for a in args]))

    # -- names -------------------------------------------------------------------------------------------

    def _fresh(self, size: int) -> int:
        self.sizes.append(size)
        self._same_label.append(len(self._same_label))
        return len(self.sizes) - 1

    def _array(self, array: Any) -> int:
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[id(array)]

    def known_label(self, k: int) -> int:
        """The label that a label has become."""
        return _found(self._same_label, k)

    def known(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """A position under the names that labels have now."""
        if all([self._same_label[k] == k for k in labels_in(index)]):
            return index
        return tuple([accesses.renamed(at, self.known_label) for at in index])

    def known_access(self, a: Access) -> Access:
        """An access under the names that labels have now."""
        return Access(a.arg, self.known(a.at), tuple([(self.known((at,))[0], n) for at, n in a.guards]))

    def unit(self, u: int) -> int:
        """The unit that a unit has become part of."""
        return u if u < 0 else _found(self._same_unit, u)

    def _unit(self, made: Unit, wants: Wants = ()) -> int:
        made.after = {u for u, _ in wants if u >= 0}
        self.units.append(made)
        self._same_unit.append(len(self._same_unit))
        return len(self.units) - 1

    # -- placing -----------------------------------------------------------------------------------------

    def _wants(self, slot: int) -> Wants:
        """Who reads a slot and where, by the names of now."""
        wants = [(self.unit(u), index if index is None else self.known(index)) for u, index in self._wanted[slot]]
        return list(dict.fromkeys(wants))

    def _place(self, slot: int) -> None:
        op, args = self.program.ops[slot], self.program.args[slot]
        wants = self._wants(slot)
        given = op is INPUT or type(op) is Constant
        if self._fits[slot] or (given and numbers(self.program.shapes[slot]) >= tuning.NEST_NUMBERS):
            wants = self._joined(slot, wants)
        if not given and not self._fits[slot] and self._scatters(slot):
            self._scatter(slot, wants)
        elif given or not self._fits[slot]:
            if not given:
                u = self._unit(SingleStep(slot), wants)
                for a in args:
                    self._wanted[a][u, None] = None
            self._loaded(slot, wants)
        elif self._computed_again(slot, wants):
            for u, index in wants:
                self._compute(u, slot, index)
        else:
            u, outline = self._home(slot, wants) or self._made(slot)
            group = self.units[u]
            for index in self._indices(slot, outline):
                self._compute(u, slot, index)
                group.stores.setdefault((slot, index), tuple(dict.fromkeys(labels_in(index))))
            others = [(v, i) for v, i in wants if v != u]
            group.after |= {v for v, _ in others if v >= 0}
            group.low, group.high = min(group.low, slot), max(group.high, slot)
            self._loaded(slot, others)

    def _loaded(self, slot: int, wants: Wants) -> None:
        for u, _ in wants:
            if u >= 0 and isinstance(self.units[u], Group):
                self.units[u].loads.add(slot)

    def _node(self, u: int, slot: int, index: tuple[Affine, ...], fresh: Callable[[int], int]) -> Reads:
        """What a group reads to compute a slot at a position."""
        op, args, shapes = self._step(slot)
        found = READS[type(op)](op, Asked(shapes, self.program.shapes[slot], index, fresh, self._array))
        assert found is not None
        self.units[u].bulk += bulk(op)
        self._read(u, args, found)
        return found

    def _compute(self, u: int, slot: int, index: tuple[Affine, ...]) -> None:
        """Let a group compute a slot at a position."""
        group = self.units[u]
        if (slot, index) not in group.nodes:
            group.nodes[slot, index] = found = self._node(u, slot, index, self._fresh)
            path = self._evaluations(u, index)
            for k, n in found.sums:
                self._path[k] = path = path * n
                group.inner = True

    def _read(self, u: int, args: tuple[int, ...], found: Reads) -> None:
        for access in found.accesses:
            whole = bool(access.guards) or any([_nested(at) for at in access.at])
            self._wanted[args[access.arg]][u, None if whole else access.at] = None

    def _scatters(self, slot: int) -> bool:
        """Whether the terms of a reduction are added up where they are computed."""
        (op, args, shapes), size = self._step(slot), numbers(self.program.shapes[slot])
        if type(op) is not Reduction or len(args) != 1 or not self._makes[args[0]]:
            return False
        if tuning.NEST_SCATTER_RATIO * size > numbers(shapes[0]) or size > tuning.NEST_SCATTER_NUMBERS:
            return False
        place = accesses.scattered(op, _dummies(shapes[0]), _no_name)
        return place is not None and any([isinstance(atom, TableEntry) for at in place for atom, _ in at.terms])

    def _scatter(self, slot: int, wants: Wants) -> None:
        """A new group over the positions of a reduction's argument."""
        op, (a,), (given,) = self._step(slot)
        moved = range(op.axis, op.axis + len(op.relations[0].source.box or ()))  # components of these may meet
        outline = self._outline(given, [k for k in unrolled(given) if k not in moved])
        group = Group(slot, labels=_labels(outline))
        u = self._unit(group, wants)
        for index in self._indices(a, outline):
            place = accesses.scattered(op, index, self._array)
            assert place is not None
            group.nodes[slot, place] = Reads(((Access(0, index),),))
            group.stores[slot, place] = tuple(group.labels)
            self._read(u, (a,), group.nodes[slot, place])
        self._loaded(slot, wants)

    def _outline(self, shape: Any, short: list[int]) -> Outline:
        """A new label for each axis, short ones apart."""
        return tuple([None if n == 1 or k in short else along(self._fresh(n)) for k, n in enumerate(shape)])

    def _indices(self, slot: int, outline: Outline) -> list[tuple[Affine, ...]]:
        """The positions of all components of a slot."""
        shape = self.program.shapes[slot]
        ways = [[at] if at is not None else [Affine(i) for i in range(n)] for at, n in zip(outline, shape, strict=True)]
        return list(itertools.product(*ways))

    def _made(self, slot: int) -> tuple[int, Outline]:
        """A new group that computes a slot; the labels of its largest argument decide the order of loops where there is
        a sum."""
        shape = self.program.shapes[slot]
        outline = self._outline(shape, unrolled(shape))
        labels = _labels(outline)
        sums: list[int] = []  # the same ones for all components
        group = Group(slot, labels=labels)
        u = self._unit(group)
        for index in self._indices(slot, outline):
            found = self._node(u, slot, index, partial(self._again, iter(list(sums)), sums))
            group.nodes[slot, index] = Reads(found.terms)
            if sums and group.labels is labels:
                largest = max(found.accesses, key=lambda a: len(set(labels_in(a.at)))).at
                order = list(dict.fromkeys(labels_in(largest)))
                group.labels = [*[k for k in (*labels, *sums) if k not in order], *order]
            group.stores[slot, index] = tuple(group.labels)
        return u, outline

    def _again(self, known: Iterator[int], sums: list[int], n: int) -> int:
        """The next label of a sum, made when it is first asked for."""
        found = next(known, None)
        if found is None:
            found = self._fresh(n)
            sums.append(found)
        return found

    # -- where -------------------------------------------------------------------------------------------

    def _evaluations(self, u: int, index: tuple[Affine, ...]) -> int:
        """How often a group computes a number that depends on the labels of a position."""
        total, found = 1, 1
        here = set(labels_in(index))
        for k in [self.known_label(k) for k in self.units[u].labels]:
            total *= self.sizes[k]
            if k in here:
                found = total
        return max([found, *[self._path[k] for k in here if k in self._path]])

    def _computed_again(self, slot: int, wants: Wants) -> bool:
        """Whether a slot is computed wherever it is read."""
        if any([index is None for _, index in wants]):
            return False
        places = _outlines(wants)
        more = len(wants) * bulk(self.program.ops[slot])
        if len(places) > (4 if self._effort[slot] else 8):
            return False
        if any([self.units[u].bulk + more > tuning.NEST_BODY_OPERATIONS for u, _ in places]):
            return False
        if not self._short(slot) and not (len(wants) == 1 and self._inside(slot, *wants[0])):
            return False
        size = max(numbers(self.program.shapes[slot]), 1)
        again = sum([self._evaluations(u, index) for u, index in wants]) - size
        return self._effort[slot] * again <= tuning.NEST_STORE_COST * size

    def _short(self, slot: int) -> bool:
        """Whether a slot is no sum, or one over few numbers."""
        op, _, shapes = self._step(slot)
        return terms_of(op, shapes) <= tuning.NEST_INLINE_SUM

    def _inside(self, slot: int, u: int, index: Any) -> bool:
        """Whether a long sum can be a loop inside the outermost loop of a group: nobody else needs its terms."""
        first = [self.known_label(k) for k in self.units[u].labels[:1]]
        alone = all([self._uses[a] == 1 or not self._fits[a] for a in self.program.args[slot]])
        return bool(first) and first[0] in labels_in(index) and alone

    def _home(self, slot: int, wants: Wants) -> tuple[int, Outline] | None:
        """A group that computes a slot at every position of its box once, and may store it   (see Note [Order])."""
        shape = self.program.shapes[slot]
        short = unrolled(shape)
        places = _outlines(wants)
        for u, outline in places:
            if outline is None or u < 0 or not isinstance(self.units[u], Group) or sum([v == u for v, _ in places]) > 1:
                continue
            group = self.units[u]
            axes = [k for k, n in enumerate(shape) if outline[k] is not None or not (n == 1 or k in short)]
            here = [None if (at := outline[k]) is None else plain(at) for k in axes]
            if not here or any([k is None or self.sizes[k] != shape[i] for k, i in zip(here, axes, strict=True)]):
                continue  # x[:2] is a part of x
            if len(set(here)) < len(here) or set(here) != {self.known_label(k) for k in group.labels[: len(here)]}:
                continue
            fits = self._short(slot) or self._inside(slot, u, [at for at in outline if at is not None])
            if group.bulk >= tuning.NEST_BODY_OPERATIONS or not fits:
                continue
            if not any([v >= 0 and v != u and self._reaches(v, u) for v, _ in wants]):
                return u, outline
        return None

    # -- joining -----------------------------------------------------------------------------------------

    def _joined(self, slot: int, wants: Wants) -> Wants:
        """Who reads a slot, after groups that read it all at the same positions have become one."""
        places = _outlines(wants)
        groups = [u for u, outline in places if outline is not None and sum([v == u for v, _ in places]) == 1]
        if len(groups) < 2:
            return wants
        first = groups[0]
        for u in groups[1:]:
            at = {v: outline for v, outline in _outlines(self._wants(slot)) if outline is not None}
            a, b = self.unit(first), self.unit(u)
            if a != b and not self._join(a, at[a], b, at[b]) and self._join(b, at[b], a, at[a]):
                first = b
        return self._wants(slot)

    def _join(self, a: int, at: Outline, b: int, other: Outline) -> bool:
        """Make group b part of group a, if the loops of b are the outer loops of a or all of them."""
        one, two = self.units[a], self.units[b]
        arrays = len(one.loads | two.loads) + len({slot for slot, _ in (*one.stores, *two.stores)})
        if one.bulk + two.bulk > tuning.NEST_BODY_OPERATIONS or arrays > tuning.NEST_ARRAYS:
            return False
        names: dict[int, int] = {}
        for x, y in zip(at, other, strict=True):
            if x is None and y is None:
                continue
            k, m = None if x is None else plain(x), None if y is None else plain(y)
            if k is None or m is None or names.setdefault(m, k) != k or self.sizes[k] != self.sizes[m]:
                return False
        mine, its = [self.known_label(k) for k in one.labels], [self.known_label(k) for k in two.labels]
        moved = set(names.values())
        if not names or set(names) != set(its) or len(moved) < len(names) or not moved <= set(mine):
            return False
        boxes = [{names[self.known_label(k)] for k in box} for box in two.stores.values()]
        if any([box != set(mine[: len(box)]) for box in [*boxes, moved]]):
            return False
        if (two.inner and names[its[0]] != mine[0]) or self._reaches(a, b) or self._reaches(b, a):
            return False
        for m, k in names.items():
            self._same_label[m] = k
        self._same_unit[b] = a
        for part in ("nodes", "stores", "loads", "after", "inner"):
            setattr(one, part, getattr(one, part) | getattr(two, part))
        one.bulk += two.bulk
        one.low, one.high = min(one.low, two.low), max(one.high, two.high)
        self.units[b] = None
        return True

    def _reaches(self, start: int, end: int) -> bool:
        """Whether what a unit writes is needed, through others, by another; also where that takes long to find out."""
        high = self.units[end].high
        seen, waiting = {start}, [start]
        while waiting:
            if len(seen) > tuning.NEST_GROUPS_LOOKED_AT:
                return True
            for v in {self.unit(v) for v in self.units[waiting.pop()].after}:
                if v == end:
                    return True
                if v not in seen and self.units[v].low <= high:
                    seen.add(v)
                    waiting.append(v)
        return False

    def ordered(self) -> list[Any]:
        """The groups and steps in an order in which they can be run."""
        after = {u: {self.unit(v) for v in made.after} - {u} for u, made in enumerate(self.units) if made is not None}
        before = dict.fromkeys(after, 0)
        for found in after.values():
            for v in found:
                before[v] += 1
        ready = [(self.units[u].high, u) for u, n in before.items() if not n]
        heapq.heapify(ready)
        order: list[Any] = []
        while ready:
            u = heapq.heappop(ready)[1]
            order.append(self.units[u])
            for v in after[u]:
                before[v] -= 1
                if not before[v]:
                    heapq.heappush(ready, (self.units[v].high, v))
        assert len(order) == len(after), "groups depend on each other in a circle"
        return order


def _found(same: list[int], k: int) -> int:
    while same[k] != k:
        same[k] = same[same[k]]
        k = same[k]
    return k


def _no_name(_: Any) -> int:
    return -1


def _dummies(shape: Any) -> tuple[Affine, ...]:
    """Any position of an array."""
    return tuple([along(k) if n != 1 else ORIGIN for k, n in enumerate(shape)])


def _labels(outline: Outline) -> list[int]:
    return labels_in([at for at in outline if at is not None])


def _outlines(wants: Wants) -> dict[tuple[int, Outline | None], None]:
    """Who reads a slot and where, all components of a short axis as one."""
    places = [(u, None if index is None else tuple([at if at.terms else None for at in index])) for u, index in wants]
    return dict.fromkeys(places)


def _nested(at: Affine) -> bool:
    """Whether an index array is read at positions that index arrays give."""
    entries = [atom for atom, _ in at.terms if isinstance(atom, TableEntry)]
    return any([isinstance(atom, TableEntry) for entry in entries for atom, _ in entry.at.terms])
