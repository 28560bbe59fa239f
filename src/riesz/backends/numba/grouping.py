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
from collections.abc import Iterator
from typing import Any

from ...ops.op import Contraction, Reduction, Reshape
from ...ops.opaque import Get
from ...programs.program import INPUT, Constant, Program
from ...relations.index_algebra import ORIGIN, Affine, along
from ...runtime import tuning
from .accesses import (
    Access,
    Reads,
    TableEntry,
    bulk,
    labels_in,
    plain,
    reads,
    renamed,
    scattered,
    size_of,
    terms_of,
    unrolled,
    weight,
)
from .loop_forms import has_form

Key = tuple[int, tuple[Affine, ...]]
Outline = tuple[Affine | None, ...]
"""A position without the numbers in it, which say which component of a short axis is read."""


class Group:
    """The labels of a loop nest from the outermost in, what it computes, and what it writes."""

    def __init__(self, labels: list[int]) -> None:
        self.labels = labels
        self.nodes: dict[Key, Reads] = {}
        self.bulk = 0
        self.stores: dict[
            Key, tuple[int, ...]
        ] = {}  # what is written, and the labels it runs over: those not in the position are summed
        self.loads: set[int] = set()
        self.after: set[int] = set()  # units that read what this one writes
        self.low = 0
        self.high = 0
        self.inner = False  # whether it has sums inside its outermost loop


class SingleStep:
    """A step that is no part of a group."""

    def __init__(self, slot: int) -> None:
        self.slot = self.low = self.high = slot
        self.after: set[int] = set()


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
        self._fits = self._fitting()
        self._effort = self._efforts()
        for slot in program.outputs:
            self._wanted[slot][-1, None] = None
        for slot in range(len(program.ops) - 1, -1, -1):
            if self._wanted[slot]:
                self._place(slot)

    # -- what is known beforehand ------------------------------------------------------------------------

    def _fitting(self) -> bytearray:
        """Which steps are large and can be part of a loop nest."""
        program = self.program
        fits = bytearray(len(program.ops))
        for slot, (op, args, shape) in enumerate(zip(program.ops, program.args, program.shapes, strict=True)):
            if (
                op is INPUT
                or type(op) is Constant
                or isinstance(op, Get)
                or not args
                or (shape and type(shape[0]) is tuple)
            ):
                continue
            shapes = [program.shapes[a] for a in args]
            if (
                max([size_of(s) for s in (*shapes, shape)]) < tuning.NEST_NUMBERS
                or any([s and type(s[0]) is tuple for s in shapes])
                or not has_form(op)
            ):
                continue
            if type(op) is Contraction and self._multiplies(op, args, shapes, shape):
                continue
            dummies = tuple([along(k) if n != 1 else ORIGIN for k, n in enumerate(shape)])
            fits[slot] = reads(op, shapes, shape, dummies, lambda _: -1, lambda _: 0) is not None
            moves = type(op) in (Reduction, Reshape)
            self._makes[slot] = fits[slot] and (not moves or any([self._makes[a] for a in args]))
        return fits

    def _multiplies(self, op: Contraction, args: tuple[int, ...], shapes: list[Any], shape: Any) -> bool:
        """Whether a contraction is left to matrix products: its numbers are used often, or lie in memory as they are
        and no two factors have an axis of the result in common."""
        sizes = op.sizes(tuple(shapes))
        if len(args) == 1 or all([n == 1 or k in op.out for k, n in sizes.items()]):
            return False
        made = any([self._makes[a] for a in args])
        common = [k for k in op.out if sizes[k] > 1 and sum([k in ls for ls in op.labels]) > 1]
        return not (made or common) or math.prod(sizes.values()) > tuning.NEST_PRODUCT_REUSE * max(
            [size_of(s) for s in (*shapes, shape)]
        )

    def _efforts(self) -> list[float]:
        """What one number of each slot costs if all it is made of is computed with it."""
        program = self.program
        found = [0.0] * len(program.ops)
        for slot, args in enumerate(program.args):
            if self._fits[slot]:
                op, shapes = program.ops[slot], [program.shapes[a] for a in args]
                found[slot] = min(
                    weight(op, shapes) + max(terms_of(op, shapes), 1) * sum([found[a] for a in args]), 1e9
                )
        return found

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
        if all([self._same_label[k] == k for at in index for k in labels_in(at)]):
            return index
        return tuple([renamed(at, self.known_label) for at in index])

    def unit(self, u: int) -> int:
        """The unit that a unit has become part of."""
        return u if u < 0 else _found(self._same_unit, u)

    def _unit(self, made: Any) -> int:
        self.units.append(made)
        self._same_unit.append(len(self._same_unit))
        return len(self.units) - 1

    # -- placing -----------------------------------------------------------------------------------------

    def _wants(self, slot: int) -> list[tuple[int, Any]]:
        """Who reads a slot and where; None: all of it, from memory."""
        return list(
            dict.fromkeys(
                [(self.unit(u), index if index is None else self.known(index)) for u, index in self._wanted[slot]]
            )
        )

    def _place(self, slot: int) -> None:
        op, args = self.program.ops[slot], self.program.args[slot]
        wants = self._wants(slot)
        given = op is INPUT or type(op) is Constant
        if self._fits[slot] or (given and size_of(self.program.shapes[slot]) >= tuning.NEST_NUMBERS):
            wants = self._joined(slot, wants)
        if not given and not self._fits[slot] and self._scatters(slot):
            self._scatter(slot, wants)
        elif given or not self._fits[slot]:
            if not given:
                made = SingleStep(slot)
                made.after = {u for u, _ in wants if u >= 0}
                u = self._unit(made)
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
                box = tuple(dict.fromkeys([k for at in index for k in labels_in(at)]))
                group.stores.setdefault((slot, index), box)
            others = [(v, i) for v, i in wants if v != u]
            group.after |= {v for v, _ in others if v >= 0}
            group.low, group.high = min(group.low, slot), max(group.high, slot)
            self._loaded(slot, others)

    def _loaded(self, slot: int, wants: list[tuple[int, Any]]) -> None:
        for u, _ in wants:
            if u >= 0 and isinstance(self.units[u], Group):
                self.units[u].loads.add(slot)

    def _compute(self, u: int, slot: int, index: tuple[Affine, ...]) -> None:
        """Let a group compute a slot at a position."""
        group, program = self.units[u], self.program
        if (slot, index) in group.nodes:
            return
        args = program.args[slot]
        found = reads(
            program.ops[slot], [program.shapes[a] for a in args], program.shapes[slot], index, self._fresh, self._array
        )
        assert found is not None
        group.nodes[slot, index] = found
        group.bulk += bulk(program.ops[slot])
        path = self._evaluations(u, index)
        for k, n in found.sums:
            self._path[k] = path = path * n
            group.inner = True
        self._read(u, slot, found)

    def _read(self, u: int, slot: int, found: Reads) -> None:
        for access in found.accesses:
            whole = bool(access.guards) or any([_nested(at) for at in access.at])
            self._wanted[self.program.args[slot][access.arg]][u, None if whole else access.at] = None

    def _scatters(self, slot: int) -> bool:
        """Whether the terms of a reduction are added up where they are computed."""
        program = self.program
        op, args, shape = program.ops[slot], program.args[slot], program.shapes[slot]
        if type(op) is not Reduction or len(args) != 1 or not self._makes[args[0]]:
            return False
        given = program.shapes[args[0]]
        if tuning.NEST_SCATTER_RATIO * size_of(shape) > size_of(given) or size_of(shape) > tuning.NEST_SCATTER_NUMBERS:
            return False
        dummies = tuple([along(k) if n != 1 else ORIGIN for k, n in enumerate(given)])
        place = scattered(op, dummies, lambda _: 0)
        return place is not None and any([isinstance(atom, TableEntry) for at in place for atom, _ in at.terms])

    def _scatter(self, slot: int, wants: list[tuple[int, Any]]) -> None:
        """A new group over the positions of a reduction's argument."""
        (a,), op = self.program.args[slot], self.program.ops[slot]
        given = self.program.shapes[a]
        moved = range(
            op.axis, op.axis + len(op.relations[0].source.box or ())
        )  # components of these may meet in one place
        short = [k for k in unrolled(given) if k not in moved]
        outline = tuple([None if n == 1 or k in short else along(self._fresh(n)) for k, n in enumerate(given)])
        group = Group([k for at in outline if at is not None for k in labels_in(at)])
        u = self._unit(group)
        group.low = group.high = slot
        for index in self._indices(a, outline):
            place = scattered(op, index, self._array)
            assert place is not None
            group.nodes[slot, place] = Reads(((Access(0, index),),))
            group.stores[slot, place] = tuple(group.labels)
            self._read(u, slot, group.nodes[slot, place])
        group.after = {v for v, _ in wants if v >= 0}
        self._loaded(slot, wants)

    def _indices(self, slot: int, outline: Outline) -> list[tuple[Affine, ...]]:
        """The positions of all components of a slot."""
        shape = self.program.shapes[slot]
        ways = [[at] if at is not None else [Affine(i) for i in range(n)] for at, n in zip(outline, shape, strict=True)]
        return list(itertools.product(*ways))

    def _made(self, slot: int) -> tuple[int, Outline]:
        """A new group that computes a slot; the labels of its largest argument decide the order of loops where there is
        a sum."""
        program = self.program
        shape, args = program.shapes[slot], program.args[slot]
        short = unrolled(shape)
        outline = tuple([None if n == 1 or k in short else along(self._fresh(n)) for k, n in enumerate(shape)])
        labels = [k for at in outline if at is not None for k in labels_in(at)]
        sums: list[int] = []  # the same ones for all components
        group = Group(labels)
        u = self._unit(group)
        group.low = group.high = slot
        for index in self._indices(slot, outline):
            again = iter(list(sums))
            found = reads(
                program.ops[slot],
                [program.shapes[a] for a in args],
                shape,
                index,
                lambda n, i=again: self._again(i, sums, n),
                self._array,
            )
            assert found is not None
            group.nodes[slot, index] = Reads(found.terms)
            group.bulk += bulk(program.ops[slot])
            if sums and group.labels is labels:
                largest = max(found.accesses, key=lambda a: len({k for at in a.at for k in labels_in(at)})).at
                order = list(dict.fromkeys([k for at in largest for k in labels_in(at)]))
                group.labels = [*[k for k in (*labels, *sums) if k not in order], *order]
            group.stores[slot, index] = tuple(group.labels)
            self._read(u, slot, found)
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
        labels = [self.known_label(k) for k in self.units[u].labels]
        total, found = 1, 1
        here = {k for at in index for k in labels_in(at)}
        for k in labels:
            total *= self.sizes[k]
            if k in here:
                found = total
        return max([found, *[self._path[k] for k in here if k in self._path]])

    def _computed_again(self, slot: int, wants: list[tuple[int, Any]]) -> bool:
        """Whether a slot is computed wherever it is read."""
        if any([index is None for _, index in wants]):
            return False
        places = self._outlines(wants)
        more = len(wants) * bulk(self.program.ops[slot])
        if len(places) > (4 if self._effort[slot] else 8) or any(
            [self.units[u].bulk + more > tuning.NEST_BODY_OPERATIONS for u, _ in places]
        ):
            return False
        if not self._short(slot) and not (len(wants) == 1 and self._inside(slot, *wants[0])):
            return False
        size = max(size_of(self.program.shapes[slot]), 1)
        again = sum([self._evaluations(u, index) for u, index in wants]) - size
        return self._effort[slot] * again <= tuning.NEST_STORE_COST * size

    def _outlines(self, wants: list[tuple[int, Any]]) -> dict[tuple[int, Outline | None], None]:
        """Who reads a slot and where, all components of a short axis as one."""
        return dict.fromkeys([(u, None if index is None else _outline(index)) for u, index in wants])

    def _short(self, slot: int) -> bool:
        """Whether a slot is no sum, or one over few numbers."""
        return (
            terms_of(self.program.ops[slot], [self.program.shapes[a] for a in self.program.args[slot]])
            <= tuning.NEST_INLINE_SUM
        )

    def _inside(self, slot: int, u: int, index: Any) -> bool:
        """Whether a long sum can be a loop inside the outermost loop of a group: nobody else needs its terms."""
        first = self.units[u].labels[:1]
        here = {k for at in index for k in labels_in(at)}
        return (
            bool(first)
            and self.known_label(first[0]) in here
            and all([self._uses[a] == 1 or not self._fits[a] for a in self.program.args[slot]])
        )

    def _home(self, slot: int, wants: list[tuple[int, Any]]) -> tuple[int, Outline] | None:
        """A group that computes a slot at every position of its box once, and may store it   (see Note [Order])."""
        shape = self.program.shapes[slot]
        short = unrolled(shape)
        places = self._outlines(wants)
        for u, outline in places:
            if outline is None or u < 0 or not isinstance(self.units[u], Group) or sum([v == u for v, _ in places]) > 1:
                continue
            group = self.units[u]
            index = [
                (at, n)
                for k, (at, n) in enumerate(zip(outline, shape, strict=True))
                if at is not None or not (n == 1 or k in short)
            ]
            here = [None if at is None else plain(at) for at, _ in index]
            if not here or any(
                [k is None or self.sizes[k] != n for k, (_, n) in zip(here, index, strict=True)]
            ):  # x[:2] is a part of x
                continue
            if len(set(here)) < len(here) or set(here) != {self.known_label(k) for k in group.labels[: len(here)]}:
                continue
            if group.bulk >= tuning.NEST_BODY_OPERATIONS or not (
                self._short(slot) or self._inside(slot, u, [at for at in outline if at is not None])
            ):
                continue
            if not any([v >= 0 and v != u and self._reaches(v, u) for v, _ in wants]):
                return u, outline
        return None

    # -- joining -----------------------------------------------------------------------------------------

    def _joined(self, slot: int, wants: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """Who reads a slot, after groups that read it all at the same positions have become one."""
        places = self._outlines(wants)
        groups = [u for u, outline in places if outline is not None and sum([v == u for v, _ in places]) == 1]
        if len(groups) < 2:
            return wants
        first = groups[0]
        for u in groups[1:]:
            at = {v: outline for v, outline in self._outlines(self._wants(slot)) if outline is not None}
            a, b = self.unit(first), self.unit(u)
            if a != b and not self._join(a, at[a], b, at[b]) and self._join(b, at[b], a, at[a]):
                first = b
        return self._wants(slot)

    def _join(self, a: int, at: Outline, b: int, other: Outline) -> bool:
        """Make group b part of group a, if the loops of b are the outer loops of a or all of them."""
        one, two = self.units[a], self.units[b]
        written = len({slot for slot, _ in (*one.stores, *two.stores)})
        if (
            one.bulk + two.bulk > tuning.NEST_BODY_OPERATIONS
            or len(one.loads | two.loads) + written > tuning.NEST_ARRAYS
        ):
            return False
        names: dict[int, int] = {}
        for x, y in zip(at, other, strict=True):
            if x is None and y is None:
                continue
            k, m = None if x is None else plain(x), None if y is None else plain(y)
            if k is None or m is None or names.setdefault(m, k) != k or self.sizes[k] != self.sizes[m]:
                return False
        mine, its = [self.known_label(k) for k in one.labels], [self.known_label(k) for k in two.labels]
        if (
            not names
            or set(names) != set(its)
            or len(set(names.values())) < len(names)
            or not set(names.values()) <= set(mine)
        ):
            return False
        place = {k: i for i, k in enumerate(mine)}
        boxes = [tuple([names[self.known_label(k)] for k in box]) for box in two.stores.values()]
        if any([{place[k] for k in box} != set(range(len(box))) for box in [*boxes, tuple(names.values())]]):
            return False
        if two.inner and names[its[0]] != mine[0]:
            return False
        if self._reaches(a, b) or self._reaches(b, a):
            return False
        for m, k in names.items():
            self._same_label[m] = k
        self._same_unit[b] = a
        one.nodes |= two.nodes
        one.bulk += two.bulk
        one.stores |= two.stores
        one.loads |= two.loads
        one.after |= two.after
        one.inner = one.inner or two.inner
        one.low, one.high = min(one.low, two.low), max(one.high, two.high)
        self.units[b] = None
        return True

    def _reaches(self, start: int, end: int) -> bool:
        """Whether what a unit writes is needed, through others, by another one; also where that would take long to find
        out."""
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


def _outline(index: tuple[Affine, ...]) -> Outline:
    return tuple([at if at.terms else None for at in index])


def _nested(at: Affine) -> bool:
    """Whether an index array is read at positions that index arrays give."""
    return any(
        [isinstance(a, TableEntry) and any([isinstance(b, TableEntry) for b, _ in a.at.terms]) for a, _ in at.terms]
    )
