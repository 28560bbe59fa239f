"""The source of one loop nest: every value is a local variable, in the outermost loop that has all the labels it
depends on.

for i in range(low, high):            a part of the axis that threads divide among themselves
    v1 = …                            what depends on i alone
    s2 = 0.0                          a sum over a label of its own, where a row needs it
    for k in range(100): …
    s5 = 0.0
    for j in range(50):
        v4 = …
        Y0[i, j] = v4
        s5 = plus(s5, v4)             a sum that is a result
    Y1[i] = s5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...programs.program import Constant
from ...relations.index_algebra import Affine
from ...runtime import tuning
from ...spaces.formal_vectors import dense, weak
from .accesses import Access, Reads, TableEntry, bulk, in_numpy, labels_in, size_of
from .grouping import Group, Key, StepGroups
from .loop_forms import (
    FLOAT,
    WIDEST,
    Accumulation,
    Kind,
    expression,
    literal,
    result_kind,
    total_of,
    turned,
    typed,
    usual,
)


class Store(NamedTuple):
    """What is written, at which position, and the labels that its value runs over: those not in the position are
    summed."""

    slot: int
    at: tuple[Affine, ...]
    box: tuple[int, ...]


class Target(NamedTuple):
    """An array that a nest writes: its shape and type, whether it is added to, whether each part of the divided axis
    has one of its own."""

    shape: tuple[int, ...]
    dtype: Any
    added: bool
    apart: bool
    total: Accumulation


class Written(NamedTuple):
    """A nest as source, and the arrays it writes."""

    source: str
    targets: list[Target]
    kinds: list[Kind]


class Nest:
    """A group as data: loops from the outermost in, nodes in order, arrays that are read and written, the label that
    threads divide."""

    def __init__(self, grouping: StepGroups, group: Group) -> None:
        self.program = grouping.program
        self.labels = [grouping.known_label(k) for k in group.labels]
        self.sizes = grouping.sizes
        self.stores = [
            Store(slot, grouping.known(at), tuple([grouping.known_label(k) for k in box]))
            for (slot, at), box in group.stores.items()
        ]
        self.slots = list(dict.fromkeys([s.slot for s in self.stores]))
        known: dict[Key, Reads] = {}
        for (slot, index), found in group.nodes.items():
            terms = [tuple([_known_access(grouping, a) for a in term]) for term in found.terms]
            known.setdefault((slot, grouping.known(index)), Reads(tuple(terms), found.sums))
        self.nodes = self._needed(known)
        self.loads: list[int] = []
        self.arrays: list[Any] = []
        numbers: dict[int, int] = {}
        for (slot, index), found in self.nodes.items():
            for a in found.accesses:
                for array in entries_in([*index, *a.at, *[at for at, _ in a.guards]]):
                    if array not in numbers:
                        numbers[array] = len(self.arrays)
                        self.arrays.append(np.ascontiguousarray(grouping.arrays[array], np.intp))
                arg = self.program.args[slot][a.arg]
                there = not a.guards and ((arg, a.at) in self.nodes or self.component(arg, a.at) is not None)
                if not there and arg not in self.loads and self.number(arg) is None:
                    self.loads.append(arg)
        self.numbers = numbers
        self.divided, self.parts = self._divided()

    def _needed(self, known: dict[Key, Reads]) -> dict[Key, Reads]:
        """The nodes that what is stored is made of, arguments first."""
        found: dict[Key, Reads] = {}
        waiting: list[Key] = [(s.slot, s.at) for s in self.stores]
        while waiting:
            key = waiting.pop()
            if key not in found and key in known:
                found[key] = known[key]
                waiting.extend([(self.program.args[key[0]][a.arg], a.at) for a in known[key].accesses if not a.guards])
        return dict(sorted(found.items(), key=lambda item: item[0][0]))

    def number(self, slot: int) -> float | None:
        """The value of a constant that is one number."""
        op = self.program.ops[slot]
        value = weak(op.value) if type(op) is Constant else None
        return value if type(value) is float else None

    def component(self, slot: int, index: tuple[Affine, ...]) -> Any:
        """The number at a known position of a constant; None elsewhere."""
        op = self.program.ops[slot]
        if type(op) is not Constant or any([at.terms for at in index]) or not index:
            return None
        return np.asarray(dense(op.value))[tuple([at.offset for at in index])]

    def _divided(self) -> tuple[int | None, int]:
        """The label whose loop is divided, and into how many parts, which depends on shapes alone."""
        if not self.labels:
            return None, 1
        inner = any([math.prod([n for _, n in found.sums]) > tuning.NEST_INLINE_SUM for found in self.nodes.values()])
        outer = self.labels[0]
        large = [
            k for k in self.labels if self.sizes[k] >= 2 * tuning.NEST_CHUNKS and all([k in s.box for s in self.stores])
        ]
        large = [
            k
            for k in large
            if k == outer or k != self.labels[-1] or self.sizes[k] >= tuning.NEST_CHUNKS * tuning.NEST_VECTOR_NUMBERS
        ]
        candidates = [outer] if inner or not large else large
        divided = min(
            candidates,
            key=lambda k: sum([size_of(self.program.shapes[s.slot]) for s in self.stores if k not in labels_of(s)]),
        )
        apart = sum(
            [
                size_of(self.program.shapes[slot])
                for slot in {s.slot for s in self.stores if divided not in labels_of(s)}
            ]
        )
        box = math.prod([self.sizes[k] for k in self.labels])
        most = min(
            tuning.NEST_CHUNKS,
            self.sizes[divided],
            box // tuning.NEST_CHUNK_NUMBERS,
            len(self.nodes) * box // max(tuning.NEST_COPIED_OPERATIONS * apart, 1),
        )
        return divided, max(most, 1)

    @property
    def bulk(self) -> int:
        """How much a compiler has to do, about."""
        return sum([bulk(self.program.ops[slot]) for slot, _ in self.nodes])

    @property
    def work(self) -> int:
        """How many operations one run takes, about."""
        return len(self.nodes) * math.prod([self.sizes[k] for k in self.labels])

    @property
    def work_in_numpy(self) -> int:
        """The same where NumPy does them."""
        return sum([in_numpy(self.program.ops[slot]) for slot, _ in self.nodes]) * math.prod(
            [self.sizes[k] for k in self.labels]
        )


def labels_of(s: Store) -> set[int]:
    return set() if entries_in(s.at) else {k for at in s.at for k in labels_in(at)}


def _known_access(grouping: StepGroups, a: Access) -> Access:
    return Access(a.arg, grouping.known(a.at), tuple([(grouping.known((at,))[0], n) for at, n in a.guards]))


def entries_in(index: Sequence[Affine]) -> list[int]:
    """The index arrays that a position reads."""
    found: list[int] = []
    waiting = list(index)
    while waiting:
        for atom, _ in waiting.pop().terms:
            if isinstance(atom, TableEntry):
                found.append(atom.array)
                waiting.append(atom.at)
    return found


class _Block:
    """The inside of a loop: lines, the next loop of the nest, and lines after that."""

    def __init__(self, parent: _Block | None, head: str) -> None:
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.head = head
        self.lines: list[str] = []
        self.after: list[str] = []

    def text(self, inner: list[str]) -> list[str]:
        """The loop with what is inside."""
        return [self.head, *[f"    {line}" for line in [*self.lines, *inner, *self.after]]]


class _Writer:
    def __init__(self, nest: Nest, kinds: Sequence[Kind]) -> None:
        self.nest = nest
        self.fails = not all([usual(k) for k in kinds])
        self._arguments = {slot: (f"A{i}", kind) for i, (slot, kind) in enumerate(zip(nest.loads, kinds, strict=True))}
        self._top = _Block(None, "")
        self._blocks: dict[int, _Block] = {}
        self._names: dict[int, str] = {}
        self._main: list[_Block] = []
        self._inner: dict[Key, list[_Block]] = {}
        self._values: dict[Any, tuple[str, Kind]] = {}
        self._entries: dict[TableEntry, str] = {}
        self._count = 0
        self._checks: set[str] = set()
        parent = self._top
        for i, k in enumerate(nest.labels):
            self._names[k] = f"i{i}"
            parent = self._blocks[k] = _Block(
                parent, f"for i{i} in range({'low, high' if k == nest.divided else nest.sizes[k]}):"
            )
            self._main.append(parent)
        for key, found in reversed(nest.nodes.items()):
            if found.sums:
                self._sum_blocks(key, found)

    def _sum_blocks(self, key: Key, found: Reads) -> None:
        parent = self._deepest(key[1])
        self._inner[key] = []
        for k, n in found.sums:
            self._names[k] = f"k{len(self._names)}"
            parent = self._blocks[k] = _Block(parent, f"for {self._names[k]} in range({n}):")
            self._inner[key].append(parent)

    def _deepest(self, index: Sequence[Affine]) -> _Block:
        blocks = [self._blocks[k] for at in index for k in labels_in(at)]
        return max(blocks, key=lambda b: b.depth, default=self._top)

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _at(self, at: Affine) -> str:
        """A position as text."""
        text = ""
        for atom, stride in at.terms:
            name = self._names[atom] if not isinstance(atom, TableEntry) else self._entry(atom)
            one = name if abs(stride) == 1 else f"{abs(stride)} * {name}"
            text = f"{text} {'-' if stride < 0 else '+'} {one}" if text else f"-{one}" if stride < 0 else one
        if not text:
            return str(at.offset)
        return (
            text
            if not at.offset
            else f"{text} {'-' if at.offset < 0 else '+'} {abs(at.offset)}"
            if text[0] != "-"
            else f"{at.offset} {text}"
        )

    def _entry(self, entry: TableEntry) -> str:
        """A number of an index array, read once, outside of inner loops."""
        if entry not in self._entries:
            text = f"I{self.nest.numbers[entry.array]}[{self._place(entry.at)}]"
            self._entries[entry] = self._new("e")
            self._deepest([entry.at]).lines.append(f"{self._entries[entry]} = {text}")
        return self._entries[entry]

    def _place(self, at: Affine) -> str:
        return f"at({self._at(at)})"

    def _element(self, name: str, index: Sequence[Affine], apart: bool = False) -> str:
        places = [*(["at(part)"] if apart else []), *[self._place(at) for at in index]]
        return f"{name}[{', '.join(places)}]" if places else name

    # -- values ------------------------------------------------------------------------------------------

    def _value(self, slot: int, access: Access) -> tuple[str, Kind]:
        """The number that an access reads."""
        arg = self.nest.program.args[slot][access.arg]
        number = self.nest.number(arg)
        if number is not None and not access.guards:
            return literal(number, FLOAT), float
        known = None if access.guards else self.nest.component(arg, access.at)
        if known is not None:
            return (
                (literal(known, FLOAT), known.dtype) if known.dtype.char in "df" else (repr(known.item()), known.dtype)
            )
        key = (arg, access.at, access.guards) if access.guards else (arg, access.at)
        if key not in self._values:
            name, kind = (literal(number, FLOAT), float) if number is not None else self._arguments[arg]
            text = self._element(name, access.at) if number is None else name
            if access.guards:
                inside = " and ".join(
                    [f"{self._at(at)} == 0" if n == 1 else f"0 <= {self._at(at)} < {n}" for at, n in access.guards]
                )
                text = f"{text} if {inside} else {typed('0.0', FLOAT, kind)}"
            elif not access.at:
                self._values[key] = name, kind
                return name, kind
            local = self._new("v")
            self._deepest([*access.at, *[at for at, _ in access.guards]]).lines.append(f"{local} = {text}")
            self._values[key] = local, kind
        return self._values[key]

    def _node(self, key: Key, found: Reads) -> None:
        program, (slot, _) = self.nest.program, key
        op, shape = program.ops[slot], program.shapes[slot]
        terms = [[self._value(slot, a) for a in term] for term in found.terms]
        kinds = {
            a.arg: k for term, xs in zip(found.terms, terms, strict=True) for a, (_, k) in zip(term, xs, strict=True)
        }
        kind = result_kind(op, list(kinds.values()), shape)
        text = expression(op, terms, kind)
        if text is None:
            self.fails = True
            return
        if text.isidentifier() and not found.sums:
            self._values[key] = text, kind
            return
        block = max(
            [self._deepest([*a.at, *[at for at, _ in a.guards]]) for a in found.accesses],
            key=lambda b: b.depth,
            default=self._top,
        )
        name = self._new("s" if found.sums else "v")
        self._values[key] = name, kind
        if not found.sums:
            block.lines.append(f"{name} = {text}")
            if turned(op):
                check = f"wide = wide | (abs({terms[0][0][0]}) > {WIDEST})"
                block.lines.extend([check] if check not in self._checks else [])
                self._checks.add(check)
            return
        blocks = self._inner[key]
        total = total_of(op)
        blocks[-1].lines.append(f"{name} = {total.name}({name}, {text})")
        inner: list[str] = []
        for b in reversed(blocks):
            inner = b.text(inner)
        outer = self._deepest(key[1])
        outer.lines += [f"{name} = {total.start}", *inner]
        if kind is not float and kind != FLOAT:
            self._values[key] = f"{name}_", kind
            outer.lines.append(f"{name}_ = {typed(name, FLOAT, kind)}")

    # -- results -----------------------------------------------------------------------------------------

    def _store(self, s: Store) -> tuple[Target, Kind]:
        nest, j = self.nest, self.nest.slots.index(s.slot)
        value, kind = self._values[s.slot, s.at]
        here = labels_of(s)
        last = max([i for i, k in enumerate(nest.labels) if k in s.box], default=-1)
        deep = last if entries_in(s.at) else max([i for i, k in enumerate(nest.labels) if k in here], default=-1)
        blocks = [self._top, *self._main]
        outer, inner = blocks[deep + 1], blocks[last + 1]
        apart = nest.divided is not None and nest.divided not in here
        added = any([k not in here for k in nest.labels[: deep + 1]])
        shape = nest.program.shapes[s.slot]
        place = self._element(f"Y{j}", s.at, apart)
        if not shape and not apart:
            place = f"Y{j}[at(0)]"
        how = total_of(nest.program.ops[s.slot])
        if outer is not inner:
            total = self._new("s")
            outer.lines.append(f"{total} = {how.start}")
            inner.lines.append(f"{total} = {how.name}({total}, {value})")
            lines, value = outer.after, total
        else:
            lines = inner.lines
        lines.append(f"{place} = {how.name}({place}, {value})" if added else f"{place} = {value}")
        return Target(shape, np.dtype(kind), added, apart, how), kind

    def write(self) -> Written | None:
        for key, found in self.nest.nodes.items():
            if self.fails:
                return None
            self._node(key, found)
        if self.fails:
            return None
        stored: dict[int, tuple[Target, Kind]] = {}
        for s in self.nest.stores:
            target, kind = self._store(s)
            if (
                s.slot not in stored or stored[s.slot][1] is float
            ):  # a component that is a plain number takes the kind of the others
                stored[s.slot] = target, kind
        inner: list[str] = []
        for b in reversed(self._main):
            inner = b.text(inner)
        arguments = ["low", "high", "part", *[a for a, _ in self._arguments.values()]]
        arguments += [f"I{i}" for i in range(len(self.nest.arrays))] + [f"Y{j}" for j in range(len(stored))]
        body = [*self._top.lines, *inner, *self._top.after]
        body = ["wide = False", *body, "return wide"] if self._checks else [*body, "return False"]
        source = "\n".join([f"def loops({', '.join(arguments)}):", *[f"    {line}" for line in body]])
        return Written(source, [t for t, _ in stored.values()], [k for _, k in stored.values()])


def written(nest: Nest, kinds: Sequence[Kind]) -> Written | None:
    """The source of a nest for arrays of some kinds; None where a step has no form for them."""
    return _Writer(nest, kinds).write()
