"""The coefficients of a linear map as slots of one program: products, sums, slices and gathers of factors, computed
when numbers are wanted.

Equal computations are one slot, so factors are equal when their slots are. For each slot it is known along which axes
it can vary at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, NamedTuple, cast

import numpy as np

from ...ops.op import Combination, Contraction, Elementwise, Reduction, Reshape, contraction
from ...ops.opaque import Discrete, Select
from ...programs.program import INPUT, Constant, Program
from ...relations import Gather, Point, Range, Relation, named
from ...relations.base import freeze, seal
from ...relations.index_algebra import Affine, IndexMap, IndexTable, Labels, along, labels_of, renamed
from ...relations.index_sets import Seg, box_set, unit
from ...relations.spans import Span
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import Formal
from .index_maps import Sizes, Tables, all_positions, distinct, whole


def plain(k: float) -> bool:
    """Whether a number may be multiplied at any time: it is neither 0 nor inf nor nan. Others stay factors."""
    return k != 0.0 and math.isfinite(k)


_FINITE = {
    *("absolute", "arcsinh", "arctan", "arctan2", "cos", "floor", "larger", "larger_number", "maximum", "minimum"),
    *("relu", "sigmoid", "sign", "sin", "sinc", "sinc_derivative", "smaller_number", "step", "tanh", "trunc"),
}
"""Primitives that are finite wherever their arguments are, and do not overflow."""


def _is_finite(op: Any) -> bool:
    """Whether a step gives finite numbers if its arguments are finite, as far as is known."""
    if type(op) is Constant:
        return type(op.value) is not Formal and bool(np.isfinite(op.value).all())
    if type(op) is Elementwise:
        name, k = op.primitive.name, op.primitive.parameter
        return name in _FINITE or (name == "power" and isinstance(k, (int, float)) and k >= 0 and k == int(k))
    if type(op) is Combination:
        return all(map(math.isfinite, op.coefficients))
    known = op is INPUT or isinstance(op, (Contraction, Reduction, Reshape, Select))
    return math.isfinite(op) if type(op) is float else known


class Factor(NamedTuple):
    """A slot with one label per axis; `strong`: its zeros annihilate what they meet (Note [Strong] in ops/op.py)."""

    slot: int
    labels: Labels
    strong: bool = False

    def renamed(self, names: dict[int, int]) -> Factor:
        """The same factor with other labels."""
        return self._replace(labels=tuple([names[k] for k in self.labels]))


class SlotFacts(NamedTuple):
    """Along which axes the numbers of a slot can differ; whether they are there anyway, being an argument or a constant
    or a part of one; the number they all are, if known; whether all are finite at every finite point."""

    varies: tuple[bool, ...]
    given: bool
    number: float | None
    finite: bool


class Room(NamedTuple):
    """How many positions an entry may reach; if it stays a product, how many it may have on its two sides together."""

    size: int
    product: bool


class Coefficients:
    """A program of coefficients, with the labels and the tables of the entries that use them."""

    hushes = False  # it writes steps, as a domain does, and computes no numbers

    def __init__(self) -> None:
        self.program = Program()
        self.const, self.scale = self.program.const, self.program.scale
        self.tables = Tables()
        self.sizes: Sizes = {}  # of all labels ever made
        self._about: list[SlotFacts] = []
        self._constants: dict[Any, tuple[Any, Any]] = {}  # those made of others, which are kept for their identity
        self._folded: dict[Any, int] = {}
        self.origins: dict[int, tuple[Any, tuple[int, ...], Any]] = {}  # what folded constants were made of, for print
        self.lock = RLock()  # maps at different points share this
        self.patience = 4  # how many times longer than what it is made of a list of positions may be
        self.room: Room | None = None  # how long it may be in any case

    def fresh(self, n: int) -> int:
        """A new label."""
        label = len(self.sizes)
        self.sizes[label] = n
        return label

    def shape(self, slot: int) -> tuple[int, ...]:
        """The shape of a slot."""
        return self.program.shapes[slot]

    def size(self, slot: int) -> int:
        """How many numbers a slot has."""
        return math.prod(self.program.shapes[slot])

    # -- what is known of a slot -------------------------------------------------------------------------

    def about(self, slot: int) -> SlotFacts:
        """What is known of a slot."""
        ops, shapes = self.program.ops, self.program.shapes
        for at in range(len(self._about), slot + 1):
            op, args, shape = ops[at], self.program.args[at], shapes[at]
            known = [self._about[a] for a in args]
            vary = _varying(op, shape, [(shapes[a], k.varies) for a, k in zip(args, known, strict=True)])
            part = type(op) is Reshape
            if type(op) is Reduction:
                part = len(op.relations) == 1 and shape != () and self.size(at) <= self.size(args[0])
            elif type(op) is Contraction:
                part = len(args) == 1 and not op.extra and len(op.out) == len(op.labels[0])
            given = op is INPUT or type(op) is Constant or (part and known[0].given)
            finite = _is_finite(op) and all([k.finite for k in known])
            self._about.append(SlotFacts(vary, given, _known(op, vary, [k.number for k in known]), finite))
        return self._about[slot]

    def number(self, slot: int) -> float | None:
        """The value of a slot that is one known number everywhere."""
        return self.about(slot).number

    # -- writing -----------------------------------------------------------------------------------------

    def step(self, op: Any, args: Sequence[int]) -> int:
        """A step, without factors of one and transposes inside products; of small constants, the constant it gives."""
        if type(op) is Contraction and not op.strong:
            return self._contracted(op, args)
        if type(op) is Combination:
            live = [i for i, a in enumerate(args) if self.number(a) != 0.0]
            shape = op.shape_of(tuple([self.shape(a) for a in args]))
            if 0 < len(live) < len(args) and any([self.shape(args[i]) == shape for i in live]):
                op, args = op.only(tuple(live)), [args[i] for i in live]
        return self._plain(op, args)

    def _contracted(self, op: Contraction, args: Sequence[int]) -> int:
        """A product of what its factors are made of: numbers go into a scale, transposes into the labels."""
        sizes = op.sizes(tuple([self.shape(a) for a in args]))
        scale = 1.0
        factors: list[tuple[int, tuple[int, ...]]] = []
        for a, labels in zip(args, op.labels, strict=True):
            k, a, labels = self.peeled(a, labels)
            scale *= k
            number = None if labels else self.number(a)
            if number is None or not plain(number):
                factors.append((a, labels))
            else:
                scale *= number
        have = {k for _, labels in factors for k in labels}
        for label, n in sizes.items():
            if label not in have and label not in op.out:
                scale *= n
        extra = {label: sizes[label] for label in op.out if label not in have}
        if not factors:
            factors = [(self.program.const(1.0), ())]
        slot = self._plain(contraction(tuple([ls for _, ls in factors]), op.out, extra), [a for a, _ in factors])
        return slot if scale == 1.0 else self.program.scale(scale, slot)

    def peeled(self, slot: int, labels: Labels) -> tuple[float, int, Labels]:
        """A slot with labels as a scale, what it is a transpose, multiple or broadcast of, and the labels of that."""
        scale = 1.0
        while True:
            op = self.program.ops[slot]
            if type(op) is float and plain(op):
                scale, slot = scale * op, self.program.args[slot][0]
            elif type(op) is Contraction and len(op.labels) == 1 and _pointwise(op):
                if len(set(op.labels[0])) < len(op.labels[0]):
                    return scale, slot, labels
                names = dict(zip(op.out, labels, strict=True))
                slot, labels = self.program.args[slot][0], tuple([names[k] for k in op.labels[0]])
            elif labels and (number := self.number(slot)) is not None:
                times, rest = (number, 1.0) if plain(number) else (1.0, number)
                return scale * times, self.program.const(rest), ()
            else:
                return scale, slot, labels

    def _plain(self, op: Any, args: Sequence[int]) -> int:
        known = [self.program.ops[a] for a in args]
        if all([type(k) is Constant and type(k.value) is not Formal for k in known]):
            shape = op.shape_of(tuple([self.program.shapes[a] for a in args]))
            several = any([type(n) is tuple for n in shape])  # a step with several results stays a step
            if not several and math.prod(shape) <= max([1, *[self.size(a) for a in args]]):
                key = (op, tuple(args))
                if key not in self._folded:
                    with quietly():
                        value = seal(op.run(*[k.value for k in known]))
                    self._folded[key] = self.program.const(value)
                    self.origins[id(value)] = (op, tuple(args), value)
                return self._folded[key]
        return self.program.step(op, args)

    def factor(self, slot: int, labels: Sequence[int], strong: bool = False) -> Factor:
        """A factor without the labels along which it is constant, and without axes of size 1."""
        labels = tuple(labels)
        vary, shape = self.about(slot).varies, self.shape(slot)
        kept = [i for i, v in enumerate(vary) if v or not shape[i]]
        if len(kept) < len(shape):
            op = self.program.ops[slot]
            if type(op) is Contraction and op.labels == (tuple([op.out[i] for i in kept]),):  # it is only broadcast
                slot = self.program.args[slot][0]
            else:
                slot = self._first(slot, [i for i in range(len(shape)) if i not in kept])
        return Factor(slot, tuple([labels[i] for i in kept]), strong)

    def _first(self, slot: int, axes: list[int]) -> int:
        """A slot at position 0 of some axes."""
        op = self.program.ops[slot]
        if type(op) is Constant and type(op.value) is not Formal:
            at = tuple([0 if i in axes else slice(None) for i in range(len(self.shape(slot)))])
            return self._remade(("first", *axes), op.value, lambda: np.asarray(op.value)[at])
        for axis in reversed(axes):
            n = self.shape(slot)[axis]
            slot = self.step(Reduction((Point(Seg(n), unit, 0),), axis), (slot,))
        return slot

    def as_float(self, slot: int) -> int:
        """A constant of integers or truth values as floats."""
        value = self.program.ops[slot].value
        return self._remade(("float",), value, lambda: np.asarray(value, float))

    def _remade(self, how: tuple[Any, ...], value: Any, make: Callable[[], Any]) -> int:
        """A constant made of another one, once."""
        key = (*how, id(value))
        if key not in self._constants:
            found = make()
            self._constants[key] = (seal(found) if found.ndim else float(found), value)
        return self.program.const(self._constants[key][0])

    def product(self, factors: Sequence[Factor], out: Labels) -> Factor:
        """The product of factors, summed over the labels that are not in `out`."""
        if len(factors) == 1 and factors[0].labels == out:
            return factors[0]
        strong = tuple([i for i, f in enumerate(factors) if f.strong]) if len(factors) > 1 else ()
        have = {k for f in factors for k in f.labels}
        extra = {k: self.sizes[k] for k in out if k not in have}
        op = contraction(tuple([f.labels for f in factors]), out, extra, strong)
        slot = self.step(op, [f.slot for f in factors])
        return Factor(slot, out, any([f.strong for f in factors]))

    def total(self, parts: Sequence[tuple[float, Factor]], out: Labels) -> Factor:
        """Σ kᵢ·fᵢ, each spread to the labels `out`."""
        slots = [self.product([f], out).slot for _, f in parts]
        return Factor(self.step(Combination(tuple([k for k, _ in parts])), slots), out)

    def moved(self, f: Factor, change: dict[int, IndexMap]) -> Factor:
        """A factor with labels replaced by maps of other labels: renamed, sliced, gathered, or its diagonal taken."""
        if not any([k in change for k in f.labels]):
            return f
        maps: list[IndexMap] = [change.get(k) or along(k) for k in f.labels]
        shape = self.shape(f.slot)
        labels = distinct(maps)
        if all([whole(m, n, self.sizes) for m, n in zip(maps, shape, strict=True)]):
            named = f._replace(labels=tuple([labels_of(m)[0] for m in maps]))
            return named if len(labels) == len(maps) else self.product([named], labels)
        if 0 in shape:  # nothing is read
            return Factor(self.program.zeros(tuple([self.sizes[k] for k in labels])), labels, f.strong)
        if sum([len(labels_of(m)) for m in maps]) == len(labels):
            slot = f.slot
            for axis in range(len(maps) - 1, -1, -1):
                m, n = maps[axis], shape[axis]
                if not whole(m, n, self.sizes):
                    slot = self.step(Reduction((self.reading([m], (n,), labels_of(m)),), axis), (slot,))
            return Factor(slot, labels, f.strong)
        return Factor(self.step(Reduction((self.reading(maps, shape, labels),), 0), (f.slot,)), labels, f.strong)

    def reading(self, maps: Sequence[IndexMap], box: tuple[int, ...], labels: Labels) -> Relation:
        """The relation that reads an array on a box at the maps, into an array on the labels."""
        sizes = tuple([self.sizes[k] for k in labels])
        source, target = box_set(box), box_set(sizes)
        if all([type(m) is Affine for m in maps]):
            names = {k: i for i, k in enumerate(labels)}
            sides = tuple([renamed(m, names) for m in maps]), tuple([along(i) for i in range(len(sizes))])
            return named(source, target, Span(sizes, *sides))
        m = maps[0]
        if len(maps) == 1 and type(m) is IndexTable and m.labels == labels and m.array.ndim == 1:
            return Gather(source, target, freeze(np.asarray(m.array, np.intp)))

        def make() -> Any:
            return freeze(np.ascontiguousarray(all_positions(maps, box, labels, self.sizes)).reshape(-1))

        return Gather(source, target, self.tables.remembered(("flat", box, sizes), maps, labels, make))

    def placed(self, f: Factor, axis: int, start: int, n: int) -> Factor:
        """A factor in a longer axis of zeros, from `start` on; its label there is renamed by the caller."""
        size = self.shape(f.slot)[axis]
        relation = Range(Seg(size), Seg(n), start, 1, True)
        return Factor(self.step(Reduction((relation,), axis), (f.slot,)), f.labels, f.strong)


def _pointwise(op: Contraction) -> bool:
    """Whether a product sums over nothing and takes no diagonal apart."""
    return len(set(op.out)) == len(op.out) and all([set(ls) <= set(op.out) for ls in op.labels])


def _varying(op: Any, shape: Any, args: list[tuple[Any, tuple[bool, ...]]]) -> tuple[bool, ...]:
    """Along which axes the result of a step can vary."""
    if type(op) is Constant:
        return _varying_constant(op.value)
    if type(op) is float:
        return args[0][1]
    longer = tuple([n != 1 for n in shape]) if all([type(n) is int for n in shape]) else ()
    match op:
        case Elementwise() | Combination() | Select() | Discrete(shaped=None):
            found = [False] * len(shape)
            for s, vary in args:
                for i, v in enumerate(vary):
                    found[len(shape) - len(s) + i] |= v
            return tuple(found)
        case Contraction() if len(set(op.out)) == len(op.out):
            every = [zip(ls, vary, strict=True) for ls, (_, vary) in zip(op.labels, args, strict=True)]
            moving = {k for pairs in every for k, v in pairs if v}
            return tuple([k in moving and n for k, n in zip(op.out, longer, strict=True)])
        case _:
            return longer


def _known(op: Any, vary: tuple[bool, ...], args: list[float | None]) -> float | None:
    """The number that a step gives everywhere, if that is known."""
    if type(op) is Constant:
        one = type(op.value) is not Formal and np.size(op.value) and not any(vary)
        return float(np.asarray(op.value).flat[0]) if one else None
    if not args or any([k is None for k in args]):
        return None
    known = cast("list[float]", args)
    if type(op) is float:
        return op * known[0]
    if type(op) is Combination:
        return sum([k * x for k, x in zip(op.coefficients, known, strict=True)])
    return math.prod(known) if type(op) is Contraction and _pointwise(op) else None


def _varying_constant(value: Any) -> tuple[bool, ...]:
    if type(value) is Formal:
        return tuple([n != 1 for n in value.shape])
    array = np.asarray(value)
    found: list[bool] = []
    for axis, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        same = n == 1 or stride == 0
        if not same and n and 0 < array.size <= tuning.COMPARED_CONSTANT_NUMBERS:
            same = bool((array == array.take([0], axis)).all())
        found.append(not same)
    return tuple(found)
