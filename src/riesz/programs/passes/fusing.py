"""Steps made one where that saves passes over memory: values stay what they are, up to the order of sums.

    red_S ∘ red_R                        one reduction, where the composed relation has no more pairs than both
    red_S ∘ (w ⊙) ∘ red_R                a sparse product: no array with a row for every pair (Note [Sparse])
    Σ ∘ (a ⊙ b),  (broadcast a) ⊙ b      one contraction: a sum inside the product, a broadcast that is never written

Only a step with a single use is taken up into its user, so nothing is computed twice and the program gets shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np

from ...ops.op import Contraction, Op, Reduction, Reshape, contraction
from ...relations import Both, Diagonal, Function, Gather, Relation
from ...relations import fused as composed
from ...relations.cpu.pair_sums import weighed_sum
from ...runtime import tuning
from ...spaces.formal_vectors import dense
from ..axis.along import AXES, mixing
from ..cost import FLOPS
from ..program import Constant, Program, several
from ..rewriting import rewritten
from .collecting import collected
from .hoisting import hoisted, written_out

Shape = tuple[int, ...]


# Note [Sparse]: (gather x)_e = x_{g(e)}, times w_e, summed over s(e) = y is y_y = Σ_{s(e)=y} w_e·x_{g(e)}: the matrix
# with w_e at (s(e), g(e)). It is run from the pairs (g(e), s(e)) grouped by s(e), in the order of e: the same sums in
# the same order as in three steps.
class SparseProduct(Op):
    """Σ over s(e) = y of w_e · x_{g(e)}, of x and w."""

    gather: Gather
    scatter: Function
    made_to_run = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return (self.scatter.target.size, *shapes[0][1:])

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def run(self, *xs: Any) -> Any:
        x, w = [np.asarray(dense(a)) for a in xs]
        wide = x.reshape(1, x.shape[0], math.prod(x.shape[1:]))
        total = weighed_sum(self.gather, self.scatter, self._known, w.reshape(-1), wide)
        return total.reshape((self.scatter.target.size, *x.shape[1:]))


AXES("refused: mixes positions", SparseProduct)(mixing)
FLOPS("two per pair and number there", SparseProduct)(
    lambda op, shapes, shape: 2 * op.scatter.count * math.prod(shapes[0][1:])
)


def once(make: Callable[[Program], Program]) -> Callable[[Program], Program]:
    """A pass whose result is remembered with the program."""
    name = f"_{make.__name__}"

    @wraps(make)
    def found(program: Program) -> Program:
        known = program.__dict__
        if name not in known:
            made = make(program)
            known[name] = None if made is program else made
        return known[name] or program

    return found


@once
def ready(program: Program) -> Program:
    """A program as it is run on numbers: invariants before loops, products in order, fused, common maps collected."""
    found = fused(in_order(hoisted(written_out(program))))
    return collected(found) if large(found) else found


@once
def runnable(program: Program) -> Program:
    """A program as the interpreter runs it: ready, and with masks computed only where they are wanted."""
    from .deferring import deferred

    found = deferred(ready(program))
    found.calm = program.calm
    return found


@once
def in_order(program: Program) -> Program:
    """A program with its products in the order of least work; the program itself where they are small."""
    products = sum([type(op) is Contraction for op in program.ops])
    if products < 2 or not large(program):
        return program
    from .ordering import ordered

    return ordered(program)


def large(program: Program, numbers: int | None = None) -> bool:
    """Whether some slot of a program has so many numbers; `WORTH`, if nothing is said."""
    least = tuning.FUSED_NUMBERS if numbers is None else numbers
    return any([not several(s) and math.prod(s) >= least for s in program.shapes])


def fused(program: Program) -> Program:
    """The same function in fewer steps; the program itself where nothing large can be joined."""
    if not any([type(op) is Reduction or type(op) is Contraction for op in program.ops]) or not large(program):
        return program
    uses = program.uses()

    def rule(small: Program, slot: int, given: list[int]) -> int | None:
        op = program.ops[slot]
        new, taken = _joined(small, op, given, [uses[a] == 1 for a in program.args[slot]])
        return None if new is op else small.step(new, taken)

    small = rewritten(program, rule, share=False)
    return program if small is program else small.pruned


def _joined(program: Program, op: Any, args: list[int], alone: Sequence[bool]) -> tuple[Any, list[int]]:
    """An op with what it can take up of the steps before it."""
    if type(op) is Reduction:
        return _reduction(program, op, args, alone)
    if type(op) is Contraction:
        if len(op.strong) == 1 and all([i in op.strong or _finite(program.ops[a]) for i, a in enumerate(args)]):
            op = contraction(op.labels, op.out, dict(op.extra))  # zeros annihilate what is finite anyway
        return _contraction(program, op, args, alone)
    return op, args


def _finite(op: Any) -> bool:
    """Whether a step is an array of finite numbers."""
    value: Any = op.value if type(op) is Constant else None
    return type(value) is np.ndarray and value.dtype.kind == "f" and bool(np.isfinite(value).all())


def _reduction(program: Program, op: Reduction, args: list[int], alone: Sequence[bool]) -> tuple[Any, list[int]]:
    relations, given = list(op.relations), list(args)
    for i, slot in enumerate(args):
        inner = program.ops[slot]
        if not alone[i] or math.prod(program.shapes[slot]) < tuning.FUSED_NUMBERS:
            continue
        if type(inner) is Reduction and len(inner.relations) == 1 and inner.axis == op.axis:
            one = composed(inner.relations[0], relations[i])
            if one is not None:
                relations[i], given[i] = one, program.args[slot][0]
        elif len(args) == 1 and type(inner) is Contraction:
            found = _sparse(program, op, slot)
            if found is not None:
                return found
    return (op, args) if given == list(args) else (Reduction(tuple(relations), op.axis), given)


def _sparse(program: Program, op: Reduction, slot: int) -> tuple[Any, list[int]] | None:
    """red_S ∘ (w ⊙) ∘ red_R with S a function and R a gather, along the first axis, w a number for each pair."""
    inner: Contraction = program.ops[slot]
    scatter = _core(op.relations[0])
    plain = len(inner.labels) == 2 and not inner.strong and not inner.extra
    if op.axis or not plain or type(scatter) is not Function or not _one_axis(scatter):
        return None
    for which in (0, 1):
        gathered, weight = program.args[slot][which], program.args[slot][1 - which]
        labels, theirs = inner.labels[which], inner.labels[1 - which]
        before = program.ops[gathered]
        aligned = labels == inner.out and len(set(labels)) == len(labels) and theirs[:1] == labels[:1]
        if aligned and type(before) is Reduction and not before.axis and len(before.relations) == 1:
            gather = _core(before.relations[0])
            one_number = math.prod(program.shapes[weight][1:]) == 1  # for each pair
            if type(gather) is Gather and _one_axis(gather) and one_number:
                return SparseProduct(gather, scatter), [program.args[gathered][0], weight]
    return None


def _one_axis(relation: Relation) -> bool:
    return [len(s.box or ()) for s in (relation.source, relation.target)] == [1, 1]


def _core(relation: Relation) -> Relation:
    """R of R × =_Z: axes that are only passed through are part of the values."""
    while isinstance(relation, Both) and isinstance(relation.second, Diagonal):
        relation = relation.first
    return relation


def _contraction(program: Program, op: Contraction, args: list[int], alone: Sequence[bool]) -> tuple[Any, list[int]]:
    """Sums of a product into the product; broadcasts and transposes of a factor into its labels."""
    for i, slot in enumerate(args):
        inner = program.ops[slot]
        if not alone[i] or type(inner) is not Contraction or math.prod(program.shapes[slot]) < tuning.FUSED_NUMBERS:
            continue
        counts, sums = (len(op.labels), len(inner.labels)), not set(op.labels[0]) <= set(op.out)
        if counts == (1, 2) and sums and all([n == 1 for _, n in op.extra]):
            return _merged_sum(program, op, inner, args)
        if counts == (2, 1) and set(inner.labels[0]) <= set(inner.out):
            return _merged(program, op, inner, args, i)
    return op, args


def _merged_sum(program: Program, op: Contraction, inner: Contraction, args: list[int]) -> tuple[Any, list[int]]:
    """The sum of a product as one contraction; axes of size 1 that the sum keeps are put in again."""
    plain = contraction(op.labels, tuple([k for k in op.out if k not in dict(op.extra)]))
    found, taken = _merged(program, plain, inner, args, 0)
    if found is plain:
        return op, args
    if not op.extra:
        return found, taken
    return Reshape(op.shape_of((program.shapes[args[0]],))), [program.step(found, taken)]


def _merged(program: Program, op: Contraction, inner: Contraction, args: list[int], i: int) -> tuple[Any, list[int]]:
    """One contraction for two: the labels of the inner result are those of the outer argument."""
    outer = op.labels[i]
    if len(set(inner.out)) < len(inner.out) or len(set(outer)) < len(outer):
        return op, args
    names = dict(zip(inner.out, outer, strict=True))
    fresh = 1 + max([k for ls in (*op.labels, op.out) for k in ls], default=0)
    for k in dict.fromkeys([k for ls in inner.labels for k in ls]):
        if k not in names:
            names[k], fresh = fresh, fresh + 1
    labels = (*op.labels[:i], *[tuple([names[k] for k in ls]) for ls in inner.labels], *op.labels[i + 1 :])
    have = {k for ls in labels for k in ls}
    if any([k not in have and k not in op.out for k in names.values()]):
        return op, args  # a broadcast that is summed again: a factor, left alone
    sizes = dict(op.extra) | {names[k]: n for k, n in inner.extra if k in names}
    extra = {k: n for k, n in sizes.items() if k in op.out and k not in have}
    taken = [*args[:i], *program.args[args[i]], *args[i + 1 :]]
    return contraction(labels, op.out, extra, op.strong or inner.strong), taken  # one of the two has a single argument
