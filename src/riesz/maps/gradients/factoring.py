"""A gradient as sums of products that are not multiplied out: the last sums of its program are left to whoever uses it.

Each output is followed back through what only moves and adds numbers (sums, slices, gathers, scatters, reshapes) to
products, Σ over labels of factors, and to plain arrays. The derivation depends on shapes only: it is made once for a
program and used at every point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.number_domains import NUMBERS
from ...ops.op import Cast, Combination, Contraction, Reduction, Reshape
from ...ops.opaque import Put, Strongly
from ...programs.axis.axis_labels import axis_labels
from ...programs.passes.fusing import ready
from ...programs.program import Constant, Program, outputs, run
from ...relations.base import seal
from ...relations.index_algebra import IndexMap, IndexTable, Labels, along, labels_of
from ...runtime import tuning
from ...runtime.stackless import quiet
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import dense
from ..instances import Instance
from ..normal_form.coefficients import Coefficients, Factor, plain
from ..normal_form.edges import edges
from ..normal_form.entries import Entry, StaysApart, composed
from ..normal_form.index_maps import axis_map, distinct, size_of, whole
from ..normal_form.merging import merged
from .factored import Factored
from .placed import PlacedTerm


class Computed(NamedTuple):
    """Positions that are computed along with the factors: slot[labels]."""

    slot: int
    labels: Labels


class FactoringPlan:
    """What is to be computed for a factored gradient: entries of each output, and the slots of the value."""

    def __init__(self, gradient: Program, value: Program) -> None:
        self.c = c = Coefficients()
        self.inputs = [c.program.input(gradient.shapes[s]) for s in gradient.inputs]
        steps: Any = c  # writes steps as a domain does, and makes no zeros of its own
        place = run(gradient, steps, self.inputs)
        self.values = outputs(value, steps, self.inputs)
        self.leaves = _expanded(c, gradient, place)
        self.shapes = [gradient.shapes[s] for s in gradient.outputs]
        indices = {m.slot for es in self.leaves for e in es for m in _computed(e)}
        self.wanted = sorted({*self.values, *indices, *[f.slot for es in self.leaves for e in es for f in e.factors]})
        self.program = c.program.prune(self.inputs, self.wanted)
        self.axes = _axes(c.program)
        constants = [op.value for op in self.program.ops if type(op) is Constant]
        self.constants: list[Any] = [x for x in constants if isinstance(x, np.ndarray) and x.flags.writeable]

    def at(self, point: Sequence[Any], dtypes: Sequence[Any]) -> tuple[list[Any], list[Factored]]:
        """The value and the gradient at a point. Factors that are arguments, or closed over, are copied: those may be
        changed in place."""
        with quietly():
            found = [dense(x) for x in outputs(ready(self.program), NUMBERS, point)]
        given = [*[x for x in point if np.ndim(x)], *self.constants]
        shared = [np.ndim(x) and any([np.may_share_memory(x, y) for y in given]) for x in found]
        mine = [seal(x.copy() if both else x) for x, both in zip(found, shared, strict=True)]
        slots = dict(zip(self.wanted, mine, strict=True))
        token = object()  # axes of two evaluations are never the same
        leaves = zip(self.leaves, self.shapes, dtypes, strict=True)
        terms = [(shape, dtype, [self._term(e, slots, shape, token) for e in es]) for es, shape, dtype in leaves]
        return [slots[s] for s in self.values], [Factored(*one) for one in terms]

    def _term(self, e: Entry, slots: dict[int, Any], shape: tuple[int, ...], token: Any) -> PlacedTerm:
        index: list[IndexMap] = []
        axes: dict[int, Any] = {}
        used = [(f.slot, f.labels) for f in e.factors]
        for m, n in zip(cast(Any, e.out), shape, strict=True):
            if type(m) is Computed:
                used.append((m.slot, m.labels))
                array = np.asarray(slots[m.slot])
                index.append(IndexTable(seal(np.where(array < 0, array + n, array)), m.labels))
            else:
                index.append(m)
        for slot, labels in used:
            axes.update({k: (token, a) for k, a in zip(labels, self.axes[slot], strict=True)})
        sizes = {k: self.c.sizes[k] for k in (*distinct(index), *[k for _, labels in used for k in labels])}
        factors = tuple([(np.asarray(slots[f.slot]), f.labels) for f in e.factors])
        term = PlacedTerm(e.scale, factors, tuple(index), sizes, axes)
        strong = tuple([i for i, f in enumerate(e.factors) if f.strong])
        if strong and not all([bool(np.isfinite(a).all()) for a, _ in factors]):  # See Note [Strong] in ops/op.py
            term = term.evaluated(strong)
        return term


@quiet
def planned(gradient: Program, value: Program) -> FactoringPlan:
    """The plan of a gradient program and that of the value, made once."""
    return Instance(gradient).once("factored", lambda: FactoringPlan(gradient, value))


# -- outputs as entries --------------------------------------------------------------------------------------


def _followed(op: Any, args: Sequence[int]) -> Sequence[int]:
    """The arguments that an op only moves and adds up."""
    inner = op.op if type(op) is Strongly else op
    follows = type(inner) in (float, Combination, Cast, Reshape, Reduction, Put)
    if not follows and not (type(inner) is Contraction and len(inner.labels) == 1):
        return ()
    return args[:1] if type(op) in (Put, Strongly) else args


def _expanded(c: Coefficients, program: Program, place: Sequence[int]) -> list[list[Entry]]:
    """The entries of each output."""
    needed: set[int] = set()
    stack = list(program.outputs)
    while stack:
        slot = stack.pop()
        if slot not in needed:
            needed.add(slot)
            stack.extend(_followed(program.ops[slot], program.args[slot]))
    expand = _Expansion(c, program, place)
    for slot in sorted(needed):
        expand.add(slot)
    every: list[list[Entry]] = []
    for entries in [expand.found[slot] for slot in program.outputs]:  # where positions are known, equal ones are added
        known = [e for e in entries if not _computed(e)]
        few = len(known) <= tuning.FACTORED_COMPARED_TERMS
        every.append([*merged(c, known), *[e for e in entries if _computed(e)]] if few else list(entries))
    return every


def _computed(e: Entry) -> list[Computed]:
    """The computed positions of an entry: its maps are not composed with others."""
    return [m for m in cast("tuple[Any, ...]", e.out) if type(m) is Computed]


class _Expansion:
    def __init__(self, c: Coefficients, program: Program, place: Sequence[int]) -> None:
        self.c, self.program, self.place = c, program, place
        self.found: dict[int, list[Entry]] = {}
        self.moving = bytearray(b"\x01") * len(program.ops)

    def own(self, slot: int) -> list[Entry]:
        """A slot as it is: one factor."""
        shape = self.program.shapes[slot]
        labels = tuple([self.c.fresh(n) for n in shape])
        out = tuple([axis_map(k, n) for k, n in zip(labels, shape, strict=True)])
        scale, factor = self._factor(slot, labels)
        return [Entry(out, (), (factor,), scale)]

    def _factor(self, slot: int, labels: Labels, strong: bool = False) -> tuple[float, Factor]:
        """A slot as a number and what it is a multiple of."""
        at, scale = self.place[slot], 1.0
        program = self.c.program
        while type(program.ops[at]) is float and plain(program.ops[at]):
            at, scale = program.args[at][0], scale * program.ops[at]
        return scale, Factor(at, labels, strong)

    def add(self, slot: int) -> None:
        """The entries of a slot, from those of its arguments."""
        zero = self.c.number(self.place[slot]) == 0.0
        entries = [] if zero else self._entries(slot)
        self.found[slot] = self.own(slot) if entries is None or len(entries) > tuning.FACTORED_TERMS else entries

    def _entries(self, slot: int) -> list[Entry] | None:
        op, args, shapes = self.program.ops[slot], list(self.program.args[slot]), self.program.shapes
        if type(op) is float:
            return [e.scaled(self.c, op) for e in self.found[args[0]]]
        op = op.op if type(op) is Strongly else op
        match op:
            case Cast():
                return self.found[args[0]]
            case Contraction() if len(args) > 1:
                return self._product(op, slot)
            case Contraction():
                made = self._summed(op, self.found[args[0]])
                return self._summed(op, self.own(args[0])) if made is None else made
            case Put():
                made = None if self._larger(args[0]) else self._put(op, args, self.found[args[0]])
                return self._put(op, args, self.own(args[0])) if made is None else made
            case Combination() if all([shapes[a] == shapes[slot] for a in args]):
                pairs = [(k, e) for k, a in zip(op.coefficients, args, strict=True) for e in self.found[a]]
                return [e if k == 1.0 else e.scaled(self.c, k) for k, e in pairs]
            case Combination() | Reduction() | Reshape():
                return self._moved(slot)
            case _:
                return None

    def _size(self, slot: int) -> int:
        return self.c.size(self.place[slot])

    def _product(self, op: Contraction, slot: int) -> list[Entry] | None:
        """A product that sums, or spreads, is left alone; one that does neither is an array."""
        shapes, args = self.program.shapes, self.program.args[slot]
        sizes = op.sizes(tuple([shapes[a] for a in args]))
        summed = [k for k, n in sizes.items() if k not in op.out and n != 1]
        if not summed and self._size(slot) <= sum([self._size(a) for a in args]):
            return None
        if any([len(set(ls)) < len(ls) for ls in op.labels]):
            return None
        names = {k: self.c.fresh(n) for k, n in sizes.items()}
        labels = [tuple([names[k] for k in ls]) for ls in op.labels]
        kept = len(args) - (op.guarded >= 0)  # where the cotangent is not reached its zeros say as well
        strong = [i in op.strong or i == op.guarded for i in range(kept)]
        found = [self._factor(*one) for one in zip(args, labels, strong, strict=False)]
        out = tuple([axis_map(names[k], sizes[k]) for k in op.out])
        return [Entry(out, (), tuple([f for _, f in found]), math.prod([k for k, _ in found]))]

    def _summed(self, op: Contraction, entries: Sequence[Entry]) -> list[Entry] | None:
        """Axes summed, permuted and repeated in the maps. None where one factor of a product would be summed alone."""
        (labels,) = op.labels
        if len(set(labels)) < len(labels):
            return None
        new: dict[int, IndexMap] = {k: axis_map(self.c.fresh(n), n) for k, n in op.extra}
        made: list[Entry] = []
        for e in entries:
            maps = dict(zip(labels, e.out, strict=True)) | new
            out = tuple([maps[k] for k in op.out])
            if _computed(e) and not set(labels) <= set(op.out):
                return None
            lost = [] if _computed(e) else [k for k in distinct(e.out) if k not in distinct(out)]
            often = [sum([k in f.labels for f in e.factors]) for k in lost]
            if len(e.factors) > 1 and 1 in often:
                return None
            times = size_of([k for k, n in zip(lost, often, strict=True) if not n], self.c.sizes)
            made.append(Entry(out, (), e.factors, e.scale * times))
        return made

    def _moved(self, slot: int) -> list[Entry] | None:
        """The maps of a linear step after those of its arguments."""
        found = edges(self.c, self.program, slot, self.moving, self.place.__getitem__)
        if found is None:
            return None
        made: list[Entry] = []
        for a, steps in found:
            known = self.found[a]
            listed = any([type(m) is IndexTable for s in steps for m in (*s.out, *s.inn)])
            if any([_computed(e) for e in known]) or (listed and self._larger(a)):
                known = self.own(a)
            try:
                made.extend([e for s in steps for k in known for e in self._after(s, k, self.program.shapes[a])])
            except StaysApart:
                return None
            if len(made) > tuning.FACTORED_TERMS:
                return None
        return made

    def _larger(self, a: int) -> bool:
        """Whether the factors of a slot are more numbers than the slot itself."""
        factors = {f.slot for e in self.found[a] for f in e.factors if len(e.factors) > 1}
        return bool(factors) and self._size(a) <= sum([self.c.size(s) for s in factors])

    def _after(self, step: Entry, e: Entry, box: Sequence[int]) -> list[Entry]:
        """A step after an entry. Only maps are composed: its labels are carried along, no sum is carried out."""
        labels = e.labels
        carried = Entry(e.out, tuple([along(k) for k in labels]))
        made: list[Entry] = []
        for m in composed(self.c, step, carried, box):
            change = dict(zip(labels, m.inn, strict=True))
            factors = (*[self.c.moved(f, change) for f in e.factors], *m.factors)
            seen = {*distinct(m.out), *[k for f in factors for k in f.labels]}
            times = size_of([k for k in distinct(m.inn) if k not in seen], self.c.sizes)
            made.append(Entry(m.out, (), factors, e.scale * m.scale * times))
        return made

    def _put(self, op: Put, args: Sequence[int], entries: Sequence[Entry]) -> list[Entry] | None:
        """Numbers added at positions that are computed; None where those are not along whole axes of the entries."""
        c, box = self.c, self.program.shapes[args[0]]
        axes = [*range(op.batch), *range(op.axis, op.axis + op.rank)]
        made: list[Entry] = []
        for e in entries:
            if _computed(e) or not all([box[i] == 1 or whole(e.out[i], box[i], c.sizes) for i in axes]):
                return None
            labels = tuple([c.fresh(1) if box[i] == 1 else labels_of(e.out[i])[0] for i in axes])
            at: Any = Computed(self.place[args[1]], labels)
            made.append(Entry((*e.out[: op.axis], at, *e.out[op.axis + op.rank :]), (), e.factors, e.scale))
        return made


# -- which axes run together ---------------------------------------------------------------------------------


def _axes(program: Program) -> list[tuple[int, ...]]:
    """A number for each axis of each slot: the same for axes that run together, as those of examples do."""
    start: list[int] = []
    parent: list[int] = []
    for shape in program.shapes:
        start.append(len(parent))
        parent.extend(range(len(parent), len(parent) + len(shape)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        out, given = axis_labels(op, [program.shapes[a] for a in args], program.shapes[slot])
        first: dict[int, tuple[int, int]] = {}
        for s, labels in ((slot, out), *zip(args, given, strict=True)):
            for i, k in enumerate(labels):
                t, j = first.setdefault(k, (s, i))
                if program.shapes[s][i] == program.shapes[t][j] != 1:
                    parent[root(start[s] + i)] = root(start[t] + j)
    return [tuple([root(start[s] + i) for i in range(len(shape))]) for s, shape in enumerate(program.shapes)]
