"""A program as what each device of a mesh does with its parts of the values: which axis of each value is cut along
which axes of the mesh follows from those of the inputs.

Every axis of a step has a label (programs/axis/axis_labels.py). A label that an argument has cut is cut in the step; if
several could be, the one for which least must travel. Summed labels that are cut make parts of a sum, which are added
up when somebody needs the sum. What depends on no cut value is written only when it is needed, and then only the part
that is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import SpaceError
from ...ops.op import Cast, Combination, Contraction, Reduction, Reshape, contraction
from ...ops.opaque import Get
from ...programs.passes.fusing import SparseProduct
from ...programs.program import INPUT, Constant, Program, several
from ...programs.rewriting import rewritten
from ...programs.sub_programs import Call, Loop
from ...relations import Both, Diagonal, Relation, Triangular
from ...runtime.stackless import Rule, solve
from ...spaces.formal_vectors import Formal, FormalProduct, dense, weak
from .communication import Communication, Exchange, Names, Rims, block, listed, shared_rims, without_lists
from .step_labels import Labels, Shape, labels_of

Spec = tuple[Names, ...]
"""The axes of the mesh along which each axis of a value is cut."""


FORCED = "needs it whole"
"""How the reason for a gather ends, where there is no other way."""


class Moved(NamedTuple):
    """Something that travels: in which step, what, along which axes of the mesh, how many bytes each device gets in
    all, and for whom. `forced`: because a step does not run on parts."""

    slot: int
    kind: str
    names: Names
    bytes: int
    why: str = ""
    forced: bool = False


def whole(shape: Shape) -> Spec:
    """The placement of a value that every device has."""
    return ((),) * len(shape)


def by_sets(shape: Shape, sets: Mapping[Shape, Names]) -> Spec:
    """The placement of a value by the index sets of its axes; an axis of the mesh cuts one axis, the first over its
    set. A product of sets is as many axes, of which the first is cut."""
    taken: set[str] = set()
    found = [*whole(shape)]
    for k in range(len(shape)):
        for box, names in sets.items():
            if shape[k : k + len(box)] == box and not found[k] and not taken & {*names}:
                found[k] = names
                taken.update(names)
    return tuple(found)


def spec_text(spec: Spec, partial: Iterable[str] = ()) -> str:
    """A placement in words: (data, ·), or with "sum over data" behind it."""
    one = [" and ".join(names) or "·" for names in spec]
    text = f"({', '.join(one)})" if any(spec) else "whole"
    rest = ", ".join(partial)
    return f"{text}, parts of a sum over {rest}" if rest else text


class Partition:
    """A program on a mesh, `sizes` devices along each of its axes, from the placement of its inputs (and of constants,
    where `placed` says one). `local` is what each device runs: its inputs are those of the program and `extra`, arrays
    cut as said. `moved` is what travels, `times` so often."""

    def __init__(
        self,
        program: Program,
        specs: Sequence[Spec],
        sizes: Mapping[str, int],
        itemsize: int = 8,
        wanted: Sequence[Spec] | None = None,
        sets: Mapping[Shape, Names] | None = None,
    ) -> None:
        self.program = _as_rows(_sparse_products_apart(program))
        self.sizes, self.itemsize, self._sets = sizes, itemsize, dict(sets or {})
        self.local, self.given = Program(), list(specs)
        self.extra: list[tuple[Any, Spec]] = []
        self.moved: list[Moved] = []
        self.specs: list[Any] = []  # of each slot, as it is computed; of several results, one each
        self.partial: list[Names] = []  # the axes of the mesh over which a slot is a part of a sum
        self._at: dict[tuple[int, Spec], int] = {}  # where a slot is, placed as said
        self._parts: dict[int, int] = {}  # parts of sums
        self._blocks: dict[int, int] = {}  # steps with several results
        self._now = -1
        p = self.program
        self._bases: list[tuple[int, float]] = []  # of each slot what it is a multiple of
        self._reduced: dict[tuple[int, int], list[Relation]] = {}  # along an axis of a slot, or of its multiples
        for slot, op in enumerate(p.ops):
            of, times = self._bases[p.args[slot][0]] if isinstance(op, float) else (slot, 1.0)
            self._bases.append((of, times * op if isinstance(op, float) else times))
            if isinstance(op, Reduction):
                for a, r in zip(p.args[slot], op.relations, strict=True):
                    self._reduced.setdefault((self._bases[a][0], op.axis), []).append(r)
        self._rims: dict[tuple[int, int], tuple[Any, int]] = {}
        self._uses = Counter([a for args in p.args for a in args] + p.outputs)
        given = dict(zip(p.inputs, specs, strict=True))
        for slot, spec in given.items():
            self._at[slot, spec] = self.local.input(self.local_shape(p.shapes[slot], spec))
        for slot, op in enumerate(p.ops):
            self._now = slot
            self.specs.append(given[slot] if op is INPUT else whole(() if several(p.shapes[slot]) else p.shapes[slot]))
            self.partial.append(())
            if type(op) is Constant and self._sets and type(weak(op.value)) is not float:
                self.specs[slot] = spec = by_sets(p.shapes[slot], self._sets)
                if any(spec):
                    self._at[slot, spec] = self._constant(op.value, spec)
            if op is not INPUT and type(op) is not Constant:
                self._step(slot)
        self.ends: list[Spec] = []
        found: list[int] = []
        for k, slot in enumerate(p.outputs):
            self._now = slot
            end = self._even(p.shapes[slot], self.specs[slot]) if wanted is None else wanted[k]
            self.ends.append(end)
            shape = (
                "" if end == self.specs[slot] else f"a result of shape {p.shapes[slot]}, which devices do not divide, "
            )
            found.append(self.get(slot, end, shape and shape + FORCED))
        inputs = self.local.inputs
        self.local = self.local.prune(inputs, found)

    # -- shapes -----------------------------------------------------------------------------------------------------

    def count(self, names: Iterable[str]) -> int:
        """How many devices lie along some axes of the mesh."""
        return math.prod([self.sizes[n] for n in names])

    def local_shape(self, shape: Shape, spec: Spec) -> Shape:
        """The shape of a part."""
        return tuple([block(n, self.count(names)) for n, names in zip(shape, spec, strict=True)])

    def _even(self, shape: Shape, spec: Spec) -> Spec:
        """A placement whose blocks are not filled up, as JAX's arrays are."""
        return tuple([() if n % self.count(names) else names for n, names in zip(shape, spec, strict=True)])

    def _write(self, op: Any, args: Sequence[int], why: str = "") -> int:
        """A step on each device; what travels is noted."""
        before = len(self.local.ops)
        slot = self.local.scale(op, args[0]) if type(op) is float else self.local.step(op, args)
        if slot >= before and isinstance(op, (Communication, Exchange, Rims)):
            numbers = op.numbers(self.local.shapes[args[0]], self.local.shapes[slot])
            if numbers:
                forced = op.title == "all-gather" and why.endswith(FORCED)
                self.moved.append(Moved(self._now, op.title, op.names, self.itemsize * numbers, why, forced))
        return slot

    # -- a value, placed in some way ----------------------------------------------------------------------------------

    def get(self, slot: int, spec: Spec, why: str = "") -> int:
        """Where a value is, placed as asked; it is moved if it is not there."""
        found = self._at.get((slot, spec))
        if found is not None:
            return found
        if self._uncut(slot):
            return solve((slot, spec), self._on_demand)
        own = self.specs[slot]
        if self.partial[slot]:
            found, own = self._summed(slot, spec, why)
        else:
            found = self._at[slot, own]
        found = self._at[slot, spec] = self._moved(found, self.program.shapes[slot], own, spec, why)
        return found

    def _uncut(self, slot: int) -> bool:
        """Whether every device has a value: then it is written when it is needed."""
        return not self.partial[slot] and not any(self.specs[slot])

    def _summed(self, slot: int, spec: Spec, why: str) -> tuple[int, Spec]:
        """Parts of a sum added up; where a block of it is asked for, each device gets its block only."""
        names, own, shape = self.partial[slot], self.specs[slot], self.program.shapes[slot]
        part = self._parts[slot]
        for axis, asked in enumerate(spec):
            fits = not own[axis] and asked == names and shape[axis] % self.count(names) == 0
            if fits:
                op = Communication("reduce-scatter", names, self.count(names), axis, shape[axis])
                return self._write(op, (part,), why), (*own[:axis], names, *own[axis + 1 :])
        if (slot, own) not in self._at:
            self._at[slot, own] = self._write(Communication("all-reduce", names, self.count(names)), (part,), why)
        return self._at[slot, own], own

    def _moved(self, slot: int, shape: Shape, own: Spec, spec: Spec, why: str) -> int:
        """A value placed in another way."""
        for i, (names, asked) in enumerate(zip(own, spec, strict=True)):
            n, even = shape[i], not shape[i] % self.count(names)
            if not names or (names == asked[: len(names)] and (even or names == asked)):
                continue
            to = next((j for j, b in enumerate(spec) if b == names and not own[j]), None)
            if to is not None and not asked and shape[to] % self.count(names) == 0:
                op = Communication("all-to-all", names, self.count(names), i, n, to)
                slot, own = self._write(op, (slot,), why), _changed(_changed(own, i, ()), to, names)
                continue
            kept = asked if even and names[: len(asked)] == asked else ()
            rest = names[len(kept) :]
            op = Communication("all-gather", rest, self.count(rest), i, block(n, self.count(kept)))
            slot, own = self._write(op, (slot,), why), _changed(own, i, kept)
        for i, (have, names) in enumerate(zip(own, spec, strict=True)):
            if have == names:
                continue
            rest, n = names[len(have) :], block(shape[i], self.count(have))
            slot = self._write(Communication("part", rest, self.count(rest), i, n), (slot,))
        return slot

    def _on_demand(self, slot: int, spec: Spec) -> Rule:
        """A value that depends on no cut one, where it is needed: of each of its arguments only what that needs."""
        known = self._at.get((slot, spec))
        if known is not None:
            return known
        p = self.program
        op, args = p.ops[slot], p.args[slot]
        if type(op) is Constant:
            found = self._constant(op.value, spec) if any(spec) else self.local.const(op.value)
        elif any(spec):
            found = yield from self._part(slot, spec)
        else:
            given: list[int] = []
            for a in args:
                given.append((yield a, () if several(p.shapes[a]) else whole(p.shapes[a])))
            found = self._write(op, given)
        self._at[slot, spec] = found
        return found

    def _part(self, slot: int, spec: Spec) -> Rule:
        """A part of a value whose arguments every device has."""
        p = self.program
        op, args, shape = p.ops[slot], p.args[slot], p.shapes[slot]
        done = (slot, whole(shape)) in self._at
        if not done and type(op) is Reduction and (cut := self._cut_targets(op, spec)) is not None:
            names, rest = cut
            parts: list[int] = []
            for a, r in zip(args, op.relations, strict=True):
                source = len(r.source.box or ())
                behind = op.axis + len(r.target.box or ())
                asked = (*rest[: op.axis], *((),) * source, *rest[behind:])
                x = yield a, asked
                parts.append(self._write(Exchange("targets", r, op.axis, names, self.count(names)), (x,)))
            return parts[0] if len(parts) == 1 else self._write(Combination((1.0,) * len(parts)), parts)
        labels = None if done or op is INPUT else self._labels(op, args, shape, spec)
        if labels is None:
            x = yield slot, whole(shape)
            return self._moved(x, shape, whole(shape), spec, "")
        cut_labels = {k: names for k, names in zip(labels.out, spec, strict=True) if names and k in labels.free}
        given: list[int] = []
        for a, ls in zip(args, labels.given, strict=True):
            given.append((yield a, tuple([cut_labels.get(k, ()) for k in ls])))
        reached = tuple([cut_labels.get(k, ()) for k in labels.out])
        found = self._write(self._resized(op, shape, reached), given)
        return self._moved(found, shape, reached, spec, "")

    def _constant(self, value: Any, spec: Spec) -> int:
        """A part of a fixed array: one number for all, or an array that is an input of what devices run."""
        shape = np.shape(dense(value)) if type(value) is not Formal else value.shape
        small = self.local_shape(shape, spec)
        number = weak(value)
        if type(number) is float:
            return self.local.const(Formal(small, (FormalProduct(number, ()),)))
        array = np.asarray(dense(value))
        more = [(0, block(n, c) * c - n) for n, c in zip(shape, map(self.count, spec), strict=True)]
        if any([k for _, k in more]):
            array = np.pad(array, more)
        self.extra.append((array, spec))
        return self.local.input(small)

    # -- labels -------------------------------------------------------------------------------------------------------

    def _labels(self, op: Any, args: Sequence[int], shape: Shape, spec: Spec | None = None) -> Labels | None:
        """The labels of a step, whose result is wanted in a placement, or whose arguments have theirs."""
        shapes = [self._shape(a) for a in args]
        counts = [self.count(names) for names in (self.specs[args[0]] if spec is None else spec)] if args else []
        return labels_of(op, shapes, shape, counts, spec is not None)

    def _resized(self, op: Any, shape: Shape, spec: Spec) -> Any:
        """An op that knows lengths of its result, for a part of it."""
        if type(op) is Contraction and op.extra:
            names = dict(zip(op.out, spec, strict=True))
            extra = {k: block(n, self.count(names[k])) for k, n in op.extra}
            return contraction(op.labels, op.out, extra, op.strong, op.guarded)
        return Reshape(self.local_shape(shape, spec)) if type(op) is Reshape else op

    # -- steps --------------------------------------------------------------------------------------------------------

    def _step(self, slot: int) -> None:
        """Decide how a step is placed by what its arguments are; it is written, unless none of them is cut."""
        p = self.program
        op, args, shape = p.ops[slot], p.args[slot], p.shapes[slot]
        if type(op) is Get and args[0] in self._blocks:
            spec = self.specs[args[0]][op.at]
            self.specs[slot] = spec
            self._at[slot, spec] = self._write(op, (self._blocks[args[0]],))
            return
        if all([self._uncut(a) for a in args]):
            return
        if isinstance(op, Loop):
            return self._loop(slot, op, args)
        if isinstance(op, Call):
            return self._call(slot, op, args)
        if any([self.partial[a] for a in args]) and self._postponed(slot, op, args, shape):
            return
        if type(op) is Reduction and self._reduction(slot, op, args, shape):
            return
        self._by_labels(slot, op, args, shape)

    def _done(self, slot: int, found: int, spec: Spec, partial: Names = ()) -> None:
        self.specs[slot], self.partial[slot] = spec, partial
        if partial:
            self._parts[slot] = found
        else:
            self._at[slot, spec] = found

    def _by_labels(self, slot: int, op: Any, args: Sequence[int], shape: Shape) -> None:
        labels = self._labels(op, args, shape)
        if labels is None or several(shape):
            given = [self.get(a, whole(self.program.shapes[a]), f"{_title(op)} {FORCED}") for a in args]
            found = self._write(op, given)
            if several(shape):
                self._blocks[slot] = found
                self.specs[slot] = tuple([whole(s) for s in self.program.shapes[slot]])
            else:
                self._done(slot, found, whole(shape))
            return
        cut = self._chosen(op, args, labels, shape)
        sizes = {
            k: n for a, ls in zip(args, labels.given, strict=True) for k, n in zip(ls, self._shape(a), strict=True)
        }
        summed = [k for k in cut if k not in labels.out]
        given: list[int] = []
        for a, ls in zip(args, labels.given, strict=True):
            spec = tuple([cut.get(k, ()) for k in ls])
            mixed = any([names and k not in labels.free for k, names in zip(ls, self.specs[a], strict=True)])
            x = self.get(a, spec, f"{_title(op)} {FORCED if mixed else 'needs it so'}")
            for axis, k in enumerate(ls):
                if k in summed and sizes[k] % self.count(cut[k]):
                    x = self._clear(x, axis, cut[k], sizes[k])
            given.append(x)
        spec = tuple([cut.get(k, ()) for k in labels.out])
        found = self._write(self._resized(op, shape, spec), given)
        if self.local.shapes[found] != self.local_shape(shape, spec):
            raise SpaceError(f"step {slot}, {_title(op)}, does not run on parts placed {spec_text(spec)}")
        self._done(slot, found, spec, tuple([n for n in self.sizes if any([n in cut[k] for k in summed])]))

    def _shape(self, slot: int) -> Shape:
        return self.program.shapes[slot]

    def _clear(self, x: int, axis: int, names: Names, n: int) -> int:
        return self._write(Communication("clear", names, self.count(names), axis, n), (x,))

    def _chosen(self, op: Any, args: Sequence[int], labels: Labels, shape: Shape) -> dict[int, Names]:
        """The labels of a step that are cut: along each axis of the mesh the one for which least must travel."""
        cut: dict[int, Names] = {}
        for name in self.sizes:
            options: dict[int, int] = {}
            for a, ls in zip(args, labels.given, strict=True):
                if not self.partial[a] or name not in self.partial[a]:
                    options.update({k: 0 for k, names in zip(ls, self.specs[a], strict=True) if name in names})
            options = {k: self._travels(name, k, args, labels, shape) for k in options if k in labels.free}
            if not options:
                continue
            best = min(options, key=lambda k: (options[k], labels.out.index(k) if k in labels.out else len(labels.out)))
            if options[best] <= self._travels(name, None, args, labels, shape) or best in labels.out:
                cut[best] = (*cut.get(best, ()), name)
        for a, ls in zip(args, labels.given, strict=True):  # the order in which an argument has them
            for k, names in zip(ls, self.specs[a], strict=True):
                if k in cut and set(names) == set(cut[k]):
                    cut[k] = names
        return cut

    def _travels(self, name: str, label: int | None, args: Sequence[int], labels: Labels, shape: Shape) -> int:
        """How many numbers a device gets if a label is the one that is cut along an axis of the mesh."""
        total, d = 0, self.sizes[name]
        for a, ls in zip(args, labels.given, strict=True):
            at = [k for k, names in zip(ls, self.specs[a], strict=True) if name in names]
            if at and at[0] != label:
                size = math.prod(self.local_shape(self._shape(a), self.specs[a]))
                total += size if label in ls else size * d
        if label is not None and label not in labels.out:
            given = zip(args, labels.given, strict=True)
            cut = {k: names for a, ls in given for k, names in zip(ls, self.specs[a], strict=True) if names}
            total += math.prod([block(n, self.count(cut.get(k, ()))) for k, n in zip(labels.out, shape, strict=True)])
        return total

    # -- parts of sums ------------------------------------------------------------------------------------------------

    def _postponed(self, slot: int, op: Any, args: Sequence[int], shape: Shape) -> bool:
        """A linear step on parts of a sum, if that makes no more to add up; whether it was written."""
        linear = type(op) in (float, Cast, Reshape) or (type(op) is Contraction and len(args) == 1)
        if type(op) is Combination and len(args) > 1:
            return self._sum_of_parts(slot, op, args, shape)
        a = next(a for a in args if self.partial[a])
        if self._uses[a] > 1 or not (linear or self._product_with_whole(op, args, a)):
            return False
        labels = self._labels(op, args, shape)
        if labels is None:
            return False
        own = dict(zip(labels.given[list(args).index(a)], self.specs[a], strict=True))
        cut = {k: names for k, names in own.items() if names and k in labels.free and k in labels.out}
        if sum(map(bool, own.values())) != len(cut):
            return False
        spec = tuple([cut.get(k, ()) for k in labels.out])
        if math.prod(self.local_shape(shape, spec)) > self._local_size(a):
            return False
        given = [
            self._parts[a] if b == a else self.get(b, tuple([cut.get(k, ()) for k in ls]))
            for b, ls in zip(args, labels.given, strict=True)
        ]
        self._done(slot, self._write(self._resized(op, shape, spec), given), spec, self.partial[a])
        return True

    def _local_size(self, slot: int) -> int:
        """How many numbers a device has of a value."""
        return math.prod(self.local_shape(self._shape(slot), self.specs[slot]))

    def _product_with_whole(self, op: Any, args: Sequence[int], a: int) -> bool:
        """Whether a step is a product of parts of a sum with what is whole along its axes."""
        if type(op) is not Contraction or op.strong or list(args).count(a) > 1:
            return False
        others = [b for b in args if b != a]
        used = {n for b in others for names in self.specs[b] for n in names} | {
            n for b in others for n in self.partial[b]
        }
        return not used & set(self.partial[a])

    def _sum_of_parts(self, slot: int, op: Combination, args: Sequence[int], shape: Shape) -> bool:
        """Parts of sums over the same devices are added before they travel."""
        kinds = {(self.partial[a], self.specs[a], self._shape(a)) for a in args}
        if len(kinds) > 1 or self._shape(args[0]) != shape:
            return False
        partial, spec, _ = kinds.pop()
        self._done(slot, self._write(op, [self._parts[a] for a in args]), spec, partial)
        return True

    # -- sums along relations -----------------------------------------------------------------------------------------

    def _cut_targets(self, op: Reduction, spec: Spec) -> tuple[Names, Spec] | None:
        """The axes of the mesh along which the targets of a reduction are asked for, and the placement besides; None
        where that is no step on pairs."""
        box = op.relations[0].target.box or ()
        asked = spec[op.axis : op.axis + len(box)]
        if not box or not asked[0] or any(asked[1:]):
            return None
        if (len(box) > 1 and box[0] % self.count(asked[0])) or not all(map(listed, op.relations)):
            return None
        if any([type(r) is Triangular for r in op.relations]):  # one running sum, of which each device has its part
            return None
        return asked[0], _changed(spec, op.axis, ())

    def _reduction(self, slot: int, op: Reduction, args: Sequence[int], shape: Shape) -> bool:
        """A reduction along an axis that is cut: whether it was written."""
        boxes = [r.source.box or () for r in op.relations]
        inner: list[Spec] = [self.specs[a][op.axis : op.axis + len(b)] for a, b in zip(args, boxes, strict=True)]
        found = {names for spec in inner for names in spec if names}
        if not found:
            return False
        names, d = next(iter(found)), self.count(next(iter(found)))
        target, box = op.relations[0].target, op.relations[0].target.box or ()
        regular = len(found) == 1 and not any([any(spec[1:]) for spec in inner])
        regular = regular and all([len(b) < 2 or not b[0] % d for b, s in zip(boxes, inner, strict=True) if any(s)])
        if not regular or not all([listed(r) or without_lists(r, d) for r in op.relations]):
            return False
        lists = all(map(listed, op.relations))
        outer = [
            (self.specs[a][: op.axis], self.specs[a][op.axis + len(b) :]) for a, b in zip(args, boxes, strict=True)
        ]
        front, back = outer[next(i for i, s in enumerate(inner) if any(s))]
        even = len(box) < 2 or not box[0] % d
        plans = [Exchange("exchange", r, op.axis, names, d) for r, s in zip(op.relations, inner, strict=True) if any(s)]
        exchanged = even and bool(box) and sum([e.room for e in plans]) < target.size
        if not lists and (not exchanged or len(plans) < len(op.relations)):
            return False
        pieces: list[int] = []
        for a, r, b, s in zip(args, op.relations, boxes, inner, strict=True):
            how = "exchange" if exchanged and any(s) else "targets" if exchanged else "sources"
            mine = names if any(s) or not exchanged else ()
            spec = (*front, *([mine] if b else []), *((),) * (len(b) - 1), *back)
            if how == "sources" and not any(s) and (not b or (len(b) > 1 and b[0] % d)):
                return False
            piece = self._by_rims(a, r, op.axis, names, spec) if how == "exchange" else None
            if piece is not None:
                pieces.append(piece)
                continue
            x = self.get(a, spec, "red needs it so")
            pieces.append(self._write(Exchange(how, r, op.axis, names, d), (x,), f"{r.count:,} pairs"))
        total = pieces[0] if len(pieces) == 1 else self._write(Combination((1.0,) * len(pieces)), pieces)
        middle = [names if exchanged and not k else () for k in range(len(box))]
        self._done(slot, total, (*front, *middle, *back), () if exchanged else names)
        return True

    def _by_rims(self, slot: int, relation: Relation, axis: int, names: Names, spec: Spec) -> int | None:
        """A shift along an axis that is cut: rims are exchanged once for all shifts of a value and of its multiples.
        None where it is none."""
        of, times = self._bases[slot]
        if self.specs[of] != spec or self.partial[of] or len(relation.source.box or ()) != 1:
            return None
        count = self.count(names)
        if shared_rims(relation, (), count) is None:
            return None
        if (of, axis) not in self._rims:
            rims = shared_rims(relation, self._reduced[of, axis], count)
            if not rims:
                return None
            size = self._shape(of)[axis]
            rows = self._write(Rims(rims, size, axis, names, count), (self.get(of, spec),), "rims of blocks")
            self._rims[of, axis] = rims, rows
        rims, rows = self._rims[of, axis]
        op = Exchange("exchange", relation, axis, names, count, rims)
        found = self._write(op, (self.get(of, spec), rows))
        return found if times == 1.0 else self._write(times, (found,))

    # -- programs inside ----------------------------------------------------------------------------------------------

    def _inside(self, body: Program, specs: Sequence[Spec], wanted: Sequence[Spec] | None = None) -> Partition:
        return Partition(body, specs, self.sizes, self.itemsize, wanted, self._sets)

    def _taken_in(self, slot: int, part: Partition, times: int) -> list[int]:
        """What travels in a program inside is noted; its arrays are inputs here."""
        self.moved.extend([m._replace(slot=slot, bytes=m.bytes * times) for m in part.moved])
        found: list[int] = []
        for array, spec in part.extra:
            self.extra.append((array, spec))
            shape = np.shape(array)
            found.append(self.local.input(self.local_shape(shape, spec)))
        return found

    def _call(self, slot: int, op: Call, args: Sequence[int]) -> None:
        specs = [self.specs[a] for a in args]
        parts = [self._inside(b, specs[op.fixed :]) for b in op.branches]
        ends = [one[0] if len(set(one)) == 1 else None for one in zip(*[part.ends for part in parts], strict=True)]
        shapes = self.program.shapes[slot]
        wanted = [whole(s) if end is None else end for s, end in zip(shapes, ends, strict=True)]
        parts = [self._inside(b, specs[op.fixed :], wanted) for b in op.branches]
        given = [self.get(a, whole(self._shape(a)) if i < op.fixed else specs[i]) for i, a in enumerate(args)]
        count, more, bodies = len(args) - op.fixed, list[int](), list[Program]()
        widths = [len(part.extra) for part in parts]
        for part in parts:
            more.extend(self._taken_in(slot, part, 1))
        for k, part in enumerate(parts):
            bodies.append(_with_inputs(part.local, count, sum(widths[:k]), sum(widths[k + 1 :]), self.local, more))
        self._blocks[slot] = self._write(Call(tuple(bodies), op.adjoint), [*given, *more])
        self.specs[slot] = tuple(wanted)

    def _loop(self, slot: int, op: Loop, args: Sequence[int]) -> None:
        c, m, p = op.consts, op.carries, self.program
        given = [self._even(self._shape(a), self.specs[a]) for a in args]
        consts, rows = given[:c], [spec[1:] for spec in given[c + m :]]
        starts = args[c : c + m]
        carry = list(given[c : c + m])
        ends: list[Spec] = []
        settled: set[int] = set()
        while True:  # a carry is placed as a round leaves it, if rounds agree
            ends = self._inside(op.body, [*consts, *carry, *rows]).ends
            other = [i for i in range(m) if carry[i] != ends[i]]
            if not other:
                break
            for i in other:
                first = i not in settled and not any(carry[i])
                carry[i] = ends[i] if first and self._uncut(starts[i]) else whole(p.shapes[starts[i]])
                if i in settled or not first:
                    ends[i] = carry[i]
            if settled >= {*other}:
                break
            settled.update(other)
        part = self._inside(op.body, [*consts, *carry, *rows], [*carry, *ends[m:]])
        more = self._taken_in(slot, part, op.length)
        asked = [*consts, *carry, *[((), *spec) for spec in rows]]
        xs = [self.get(a, spec, "the loop needs it so") for a, spec in zip(args, asked, strict=True)]
        body = part.local
        first = body.inputs[: c + m + len(rows)]
        body.inputs = [*first[:c], *body.inputs[len(first) :], *first[c:]]
        new_op = op.replaced(body=body, consts=c + len(more))
        self._blocks[slot] = self._write(new_op, [*xs[:c], *more, *xs[c:]])
        stacked = [((), *spec) for spec in part.ends[m:]]
        kept = [((), *spec) for spec in carry] if op.keep else []
        self.specs[slot] = (*carry, *stacked, *kept)


def _changed(spec: Spec, axis: int, names: Names) -> Spec:
    return (*spec[:axis], names, *spec[axis + 1 :])


def _title(op: Any) -> str:
    return "scaling" if type(op) is float else str(op.title)


def _with_inputs(body: Program, count: int, before: int, after: int, like: Program, more: Sequence[int]) -> Program:
    """A branch that is given the arrays of the other branches too."""
    own = body.inputs[count:]
    first = [body.input(like.shapes[s]) for s in more[:before]]
    last = [body.input(like.shapes[s]) for s in more[len(more) - after :]]
    body.inputs = [*body.inputs[:count], *first, *own, *last]
    return body


def _sparse_products_apart(program: Program) -> Program:
    """Gather, product and sum where they were one step."""

    def apart(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        if type(op) is not SparseProduct:
            return None
        rows = small.step(Reduction((op.gather,), 0), given[:1])
        weights = small.step(Reshape((op.gather.target.size,)), given[1:])
        axes = tuple(range(len(small.shapes[rows])))
        return small.step(Reduction((op.scatter,), 0), (small.step(contraction((axes, (0,)), axes), (rows, weights)),))

    return rewritten(program, apart)


def _as_rows(program: Program) -> Program:
    """Sums along R × = as sums of rows along R, so that lists are of rows."""

    def rows(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        if type(op) is not Reduction or not all([type(r) is Both for r in op.relations]):
            return None
        relations: Any = op.relations
        pairs: list[Any] = [(r.first, r.second) for r in relations]
        for kept in (1, 0):  # the axes behind, or before
            if all([type(pair[kept]) is Diagonal and pair[kept].source is pair[kept].target for pair in pairs]):
                before = 0 if kept else len(pairs[0][0].target.box or ())
                return small.step(Reduction(tuple([pair[1 - kept] for pair in pairs]), op.axis + before), given)
        return None

    return rewritten(program, rows)
