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
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...programs.program import Constant
from ...relations.index_algebra import Affine
from ...runtime import tuning
from ...spaces.formal_vectors import dense, weak
from ..common import numbers
from ..source_text import inside
from . import loop_forms as forms
from .accesses import Access, Reads, TableEntry, atoms_in, bulk, in_numpy, labels_in
from .grouping import Group, Key, StepGroups
from .loop_forms import FLOAT, Accumulation, Kind, literal, typed


class Store(NamedTuple):
    """What is written, where, and the labels that its value runs over: those not in the position are summed."""

    slot: int
    at: tuple[Affine, ...]
    box: tuple[int, ...]

    @property
    def labels(self) -> set[int]:
        """The labels of the position; none where index arrays say where it is."""
        return set() if entries_in(self.at) else set(labels_in(self.at))


class Target(NamedTuple):
    """An array that a nest writes: whether it is added to, whether each part of the divided axis has one of its own."""

    shape: tuple[int, ...]
    kind: Kind
    added: bool
    apart: bool
    total: Accumulation


class Written(NamedTuple):
    """A nest as source, and the arrays it writes."""

    source: str
    targets: list[Target]


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
            terms = tuple([tuple([grouping.known_access(a) for a in term]) for term in found.terms])
            known.setdefault((slot, grouping.known(index)), Reads(terms, found.sums))
        self.nodes = self._needed(known)
        self.loads: list[int] = []
        self.numbers: dict[int, int] = {}  # of index arrays, from those of the grouping
        for (slot, index), found in self.nodes.items():
            for a in found.accesses:
                for array in entries_in([*index, *a.places]):
                    self.numbers.setdefault(array, len(self.numbers))
                arg = self.program.args[slot][a.arg]
                there = not a.guards and ((arg, a.at) in self.nodes or self.component(arg, a.at) is not None)
                if not there and arg not in self.loads and self.number(arg) is None:
                    self.loads.append(arg)
        self.arrays = [np.ascontiguousarray(grouping.arrays[k], np.intp) for k in self.numbers]
        self.box = math.prod([self.sizes[k] for k in self.labels])
        self.divided, self.parts = self._divided()
        ops = [self.program.ops[slot] for slot, _ in self.nodes]
        self.bulk = sum([bulk(op) for op in ops])  # about how much a compiler has to do
        self.work = len(ops) * self.box  # operations of one run, about
        self.work_in_numpy = sum([in_numpy(op) for op in ops]) * self.box  # the same where NumPy does them

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
        outer, sizes, chunks = self.labels[0], self.sizes, tuning.NEST_CHUNKS
        large = [k for k in self.labels if sizes[k] >= 2 * chunks and all([k in s.box for s in self.stores])]
        if self.labels[-1] != outer and sizes[self.labels[-1]] < chunks * tuning.NEST_VECTOR_NUMBERS:
            large = [k for k in large if k != self.labels[-1]]
        divided = min([outer] if inner or not large else large, key=lambda k: self._size(self._copied(k)))
        copied = max(tuning.NEST_COPIED_OPERATIONS * self._size(set(self._copied(divided))), 1)
        most = min(chunks, sizes[divided], self.box // tuning.NEST_CHUNK_NUMBERS, len(self.nodes) * self.box // copied)
        return divided, max(most, 1)

    def _copied(self, k: int) -> list[int]:
        """The slots of which each part of a label has an array of its own."""
        return [s.slot for s in self.stores if k not in s.labels]

    def _size(self, slots: Iterable[int]) -> int:
        return sum([numbers(self.program.shapes[slot]) for slot in slots])


def entries_in(index: Sequence[Affine]) -> list[int]:
    """The index arrays that a position reads."""
    return [atom.array for atom in atoms_in(index) if isinstance(atom, TableEntry)]


class _Block:
    """The inside of a loop: lines, the next loop of the nest, and lines after that."""

    def __init__(self, depth: int, head: str = "") -> None:
        self.depth, self.head = depth, head
        self.lines: list[str] = []
        self.after: list[str] = []


def _nested(blocks: Sequence[_Block]) -> list[str]:
    """Loops inside each other, from the outermost in."""
    lines: list[str] = []
    for block in reversed(blocks):
        lines = inside(block.head, [*block.lines, *lines, *block.after])
    return lines


class NestWriter:
    """Writes a nest for arrays of some kinds."""

    def __init__(self, nest: Nest, kinds: Sequence[Kind]) -> None:
        self.nest = nest
        self._fails = not all([forms.usual(k) for k in kinds])
        self._arguments = {slot: (f"A{i}", kind) for i, (slot, kind) in enumerate(zip(nest.loads, kinds, strict=True))}
        self._top = _Block(0)
        self._blocks: dict[int, _Block] = {}
        self._names: dict[int, str] = {}
        self._inner: dict[Key, list[_Block]] = {}
        self._values: dict[Any, tuple[str, Kind]] = {}
        self._entries: dict[TableEntry, str] = {}
        self._count = 0
        self._checks: set[str] = set()
        ranges = ["low, high" if k == nest.divided else f"{nest.sizes[k]}" for k in nest.labels]
        self._main = self._loops(0, [(k, f"i{i}", ranges[i]) for i, k in enumerate(nest.labels)])
        for key, found in reversed(nest.nodes.items()):
            if found.sums:
                names = range(len(self._names), len(self._names) + len(found.sums))
                sums = [(k, f"k{i}", f"{n}") for i, (k, n) in zip(names, found.sums, strict=True)]
                self._inner[key] = self._loops(self._deepest(key[1]).depth, sums)

    def _loops(self, depth: int, labels: list[tuple[int, str, str]]) -> list[_Block]:
        """Loops over labels, by names and ranges."""
        self._names |= {k: name for k, name, _ in labels}
        made = [_Block(depth + 1 + i, f"for {name} in range({to}):") for i, (_, name, to) in enumerate(labels)]
        self._blocks |= {k: block for (k, _, _), block in zip(labels, made, strict=True)}
        return made

    def _deepest(self, index: Sequence[Affine]) -> _Block:
        return max([self._blocks[k] for k in labels_in(index)], key=lambda b: b.depth, default=self._top)

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
        if not text or not at.offset:
            return text or str(at.offset)
        return f"{at.offset} {text}" if text[0] == "-" else f"{text} {'-' if at.offset < 0 else '+'} {abs(at.offset)}"

    def _entry(self, entry: TableEntry) -> str:
        """A number of an index array, read once, outside of inner loops."""
        if entry not in self._entries:
            text = f"I{self.nest.numbers[entry.array]}[at({self._at(entry.at)})]"
            self._entries[entry] = self._new("e")
            self._deepest([entry.at]).lines.append(f"{self._entries[entry]} = {text}")
        return self._entries[entry]

    def _element(self, name: str, index: Sequence[Affine], apart: bool = False) -> str:
        places = [*(["at(part)"] if apart else []), *[f"at({self._at(at)})" for at in index]]
        return f"{name}[{', '.join(places)}]" if places else name

    # -- values ------------------------------------------------------------------------------------------

    def _value(self, slot: int, access: Access) -> tuple[str, Kind]:
        """The number that an access reads."""
        arg = self.nest.program.args[slot][access.arg]
        number = self.nest.number(arg)
        name, kind = (literal(number, FLOAT), float) if number is not None else self._arguments.get(arg, ("", None))
        known = None if access.guards else self.nest.component(arg, access.at)
        if number is not None and not access.guards:
            return name, kind
        if known is not None:
            return literal(known, FLOAT) if known.dtype.char in "df" else repr(known.item()), known.dtype
        key = (arg, access.at, access.guards) if access.guards else (arg, access.at)
        if key not in self._values and not access.guards and not access.at:
            self._values[key] = name, kind
        if key not in self._values:
            text = self._element(name, access.at) if number is None else name
            if access.guards:
                looked = [(self._at(at), n) for at, n in access.guards]
                there = " and ".join([f"{at} == 0" if n == 1 else f"0 <= {at} < {n}" for at, n in looked])
                text = f"{text} if {there} else {typed('0.0', FLOAT, kind)}"
            local = self._new("v")
            self._deepest(access.places).lines.append(f"{local} = {text}")
            self._values[key] = local, kind
        return self._values[key]

    def _node(self, key: Key, found: Reads) -> None:
        program, (slot, _) = self.nest.program, key
        op, shape = program.ops[slot], program.shapes[slot]
        terms = [[self._value(slot, a) for a in term] for term in found.terms]
        pairs = [pair for given in zip(found.terms, terms, strict=True) for pair in zip(*given, strict=True)]
        kind = forms.result_kind(op, list({a.arg: k for a, (_, k) in pairs}.values()), shape)
        text = forms.expression(op, terms, kind)
        if text is None:
            self._fails = True
            return
        if text.isidentifier() and not found.sums:
            self._values[key] = text, kind
            return
        block = self._deepest([at for a in found.accesses for at in a.places])
        name = self._new("s" if found.sums else "v")
        self._values[key] = name, kind
        if not found.sums:
            block.lines.append(f"{name} = {text}")
            if forms.turned(op):
                check = f"wide = wide | (abs({terms[0][0][0]}) > {forms.WIDEST})"
                block.lines.extend([check] if check not in self._checks else [])
                self._checks.add(check)
            return
        blocks = self._inner[key]
        total = forms.total_of(op)
        blocks[-1].lines.append(f"{name} = {total.name}({name}, {text})")
        outer = self._deepest(key[1])
        outer.lines += [f"{name} = {total.start}", *_nested(blocks)]
        if kind is not float and kind != FLOAT:
            self._values[key] = f"{name}_", kind
            outer.lines.append(f"{name}_ = {typed(name, FLOAT, kind)}")

    # -- results -----------------------------------------------------------------------------------------

    def _store(self, s: Store) -> Target:
        nest, j = self.nest, self.nest.slots.index(s.slot)
        value, kind = self._values[s.slot, s.at]
        here, labels = s.labels, nest.labels
        last = max([i for i, k in enumerate(labels, 1) if k in s.box], default=0)
        deep = last if entries_in(s.at) else max([i for i, k in enumerate(labels, 1) if k in here], default=0)
        blocks = [self._top, *self._main]
        outer, inner = blocks[deep], blocks[last]
        apart = nest.divided is not None and nest.divided not in here
        added = any([k not in here for k in labels[:deep]])
        shape = nest.program.shapes[s.slot]
        place = self._element(f"Y{j}", s.at, apart) if shape or apart else f"Y{j}[at(0)]"
        how = forms.total_of(nest.program.ops[s.slot])
        if outer is not inner:
            total = self._new("s")
            outer.lines.append(f"{total} = {how.start}")
            inner.lines.append(f"{total} = {how.name}({total}, {value})")
            value = total
        lines = inner.lines if outer is inner else outer.after
        lines.append(f"{place} = {how.name}({place}, {value})" if added else f"{place} = {value}")
        return Target(shape, kind, added, apart, how)

    def write(self) -> Written | None:
        """The source; None where a step has no form for arrays of these kinds."""
        for key, found in self.nest.nodes.items():
            if not self._fails:
                self._node(key, found)
        if self._fails:
            return None
        stored: dict[int, Target] = {}
        for s in self.nest.stores:
            target = self._store(s)
            if s.slot not in stored or stored[s.slot].kind is float:  # a plain number takes the kind of others
                stored[s.slot] = target
        arguments = ["low", "high", "part", *[a for a, _ in self._arguments.values()]]
        arguments += [f"I{i}" for i in range(len(self.nest.arrays))] + [f"Y{j}" for j in range(len(stored))]
        body = [*self._top.lines, *_nested(self._main), *self._top.after]
        body = ["wide = False", *body, "return wide"] if self._checks else [*body, "return False"]
        source = "\n".join(inside(f"def loops({', '.join(arguments)}):", body))
        return Written(source, list(stored.values()))
