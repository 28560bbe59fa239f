"""Many arrays of one shape computed one by one, as one step on arrays with an axis more: y[i] = f(x[i]) in a Python
loop is f of a range, r[tri[e]] += f(x[tri[e]]) one scatter.

Slots with one op are one step, if the rows of their arguments are (`calculus/batching.py` says what the op becomes);
elements of one array are a range or a gather; constants are an array. What has no form in common is placed one by one.
Values that need each other (a recurrence) stay as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...calculus.batching import Lane, Mapped
from ...ops.op import Reduction, Reshape, contraction, product
from ...ops.opaque import Get
from ...programs.program import INPUT, Constant
from ...programs.sub_programs import Call, Loop
from ...relations import Function, Gather, Point, Range, freeze
from ...relations.algebra import named
from ...relations.index_algebra import Affine
from ...relations.index_sets import Seg
from ...relations.spans import tidied
from ..trace import Trace

_AXES = 4  # of a box that is no list
_FEW, _DEEP = 8, 64  # shorter rows are placed one by one; so is what lies deeper


def row(trace: Trace, slots: list[int]) -> int:
    """The slot of an array with the values of these slots, of one shape, along a leading axis."""
    if len(slots) >= _FEW and _apart(trace, slots):
        return _Rows(trace, len(slots)).row(slots, _DEEP)
    return _side_by_side(trace, slots)


def _apart(trace: Trace, slots: list[int]) -> bool:
    """Whether none of them needs another."""
    mine, first = set(slots), min(slots)
    stack, seen = list(mine), set[int]()
    while stack:
        for a in trace.args[stack.pop()]:
            if a in mine:
                return False
            if a > first and a not in seen:
                seen.add(a)
                stack.append(a)
    return True


def _side_by_side(trace: Trace, slots: list[int]) -> int:
    n, shape = len(slots), trace.shapes[slots[0]]
    parts = [trace.step(Reshape((1, *shape)), (s,)) for s in slots]
    if n == 1:
        return parts[0]
    return trace.step(Reduction(tuple([Range(Seg(1), Seg(n), i, 1, True) for i in range(n)]), 0), parts)


class _Rows:
    """Rows of n slots that are being put together; `made` are those that were."""

    def __init__(self, trace: Trace, n: int) -> None:
        self.trace = trace
        self.made: dict[tuple[int, ...], int] = {}

    def row(self, slots: list[int], deep: int) -> int:
        """The slot of all of them along a leading axis."""
        key = tuple(slots)
        if key not in self.made:
            self.made[key] = self._row(slots, deep)
        return self.made[key]

    def _row(self, slots: list[int], deep: int) -> int:
        trace, n = self.trace, len(slots)
        if len(set(slots)) == 1:
            return _repeated(trace, slots[0], n)
        for form_of in (_element, _operation) if n >= _FEW and deep else ():
            groups: dict[Any, list[int]] = {}
            for i, s in enumerate(slots):
                groups.setdefault(form_of(trace, s), []).append(i)
                if 4 * len(groups) > n or None in groups:
                    break
            else:
                rows = [self._one_form(form, [slots[i] for i in at], deep) for form, at in groups.items()]
                if len(rows) == 1:
                    return rows[0]
                return trace.step(Reduction(tuple([placed(np.array(at), n) for at in groups.values()]), 0), rows)
        return _side_by_side(trace, slots)

    def _one_form(self, form: Any, slots: list[int], deep: int) -> int:
        trace, ops, n = self.trace, self.trace.ops, len(slots)
        if form[0] is _READ:
            (size,) = flat = (math.prod(trace.shapes[form[1]]),)
            array = form[1] if trace.shapes[form[1]] == flat else trace.step(Reshape(flat), (form[1],))
            assert size or not math.prod(form[2])
            at = np.concatenate([_origin(trace, s)[1] for s in slots])
            return shaped(trace, taken(trace, array, at), (n, *form[2]))
        if form[0] is Constant:
            return trace.const(np.array([ops[s].value for s in slots]))
        lanes = [self._lane([trace.args[s][k] for s in slots], deep) for k in range(len(trace.args[slots[0]]))]
        if form[0] is float:
            by = np.array([ops[s] for s in slots])
            if (by == by[0]).all():
                return trace.scale(float(by[0]), _spread(trace, lanes[0], n))
            lanes = [Lane(trace.const(by), True), *lanes]
            form = (product((), form[1]),)
        if not any([lane.moving for lane in lanes]):
            return _repeated(trace, trace.step(form[0], [lane.value for lane in lanes]), n)
        return _spread(trace, Mapped(trace, n).step(form[0], lanes), n)

    def _lane(self, slots: list[int], deep: int) -> Lane[int]:
        """An argument of n slots: the same one for all, or a row."""
        return Lane(slots[0], False) if len(set(slots)) == 1 else Lane(self.row(slots, deep - 1), True)


def _repeated(trace: Trace, slot: int, n: int) -> int:
    """The same slot n times along a leading axis."""
    labels = tuple(range(1, len(trace.shapes[slot]) + 1))
    return trace.step(contraction((labels,), (0, *labels), {0: n}), (slot,))


def _spread(trace: Trace, lane: Lane[int], n: int) -> int:
    return lane.value if lane.moving else _repeated(trace, lane.value, n)


# -- what slots of a row have in common ---------------------------------------------------------------------

_READ = object()
_ALONE = {type(INPUT), Get, Call, Loop}


def _operation(trace: Trace, slot: int) -> Any:
    """An op and the shapes of its arguments; None: nothing is known."""
    op = trace.ops[slot]
    if type(op) is Constant:
        return Constant, np.asarray(op.value).dtype, trace.shapes[slot]
    if type(op) is float:
        return float, trace.shapes[slot]
    return None if type(op) in _ALONE else (op, *[trace.shapes[a] for a in trace.args[slot]])


def _element(trace: Trace, slot: int) -> Any:
    """The array that elements are read from; for other steps what they do."""
    found = _origin(trace, slot)
    return _operation(trace, slot) if found[0] == slot else (_READ, found[0], trace.shapes[slot])


def _origin(trace: Trace, slot: int) -> tuple[int, Any]:
    """The array that x[i][j] is a part of, and the places of its elements there, by rows."""
    at = np.arange(math.prod(trace.shapes[slot]))
    while True:
        op = trace.ops[slot]
        if type(op) is Reduction and len(op.relations) == 1 and type(op.relations[0]) in _TABLES:
            relation: Any = op.relations[0]
            table = _TABLES[type(relation)](relation)
            if table is None:
                return slot, at
            rows = trace.shapes[slot]
            (slot,) = trace.args[slot]
            inner = math.prod(rows[op.axis + len(relation.target.box) :])
            outer, b = np.divmod(at, relation.target.size * inner)
            t, b = np.divmod(b, inner)
            at = (outer * relation.source.size + table[t]) * inner + b
        elif type(op) is Reshape:
            (slot,) = trace.args[slot]
        else:
            return slot, at


_TABLES: dict[Any, Any] = {
    Point: lambda r: np.array([r.at]),
    Gather: lambda r: r.index,
    Range: lambda r: None if r.turned else r.start + r.step * np.arange(r.target.size),
}
"""Where each element of a reduction that only reads comes from."""


# -- parts of arrays ------------------------------------------------------------------------------------------


def ordered(at: Any, step: int = 1) -> bool:
    """Whether numbers follow each other in steps."""
    return bool((np.diff(at) == step).all())


def shaped(trace: Trace, slot: int, shape: Any) -> int:
    """A slot under another shape."""
    while type(trace.ops[slot]) is Reshape:
        (slot,) = trace.args[slot]
    return slot if trace.shapes[slot] == shape else trace.step(Reshape(shape), (slot,))


def taken(trace: Trace, slot: int, at: Any) -> int:
    """Elements of a slot with one axis: a range where it is one, else a gather."""
    (n,) = trace.shapes[slot]
    step = int(at[1] - at[0]) if len(at) > 1 else 1
    if step and ordered(at, step):
        if step == 1 and len(at) == n:
            return slot
        return trace.step(Reduction((Range(Seg(n), Seg(len(at)), int(at[0]), step, False),), 0), (slot,))
    return trace.step(Reduction((Gather(Seg(n), Seg(len(at)), freeze(np.asarray(at, np.intp))),), 0), (slot,))


def placed(where: Any, n: int) -> Any:
    """The relation that puts elements at positions; where one comes up twice they are added."""
    step = int(where[1] - where[0]) if len(where) > 1 else 1
    if step > 0 and ordered(where, step):
        return Range(Seg(len(where)), Seg(n), int(where[0]), step, True)
    return Function(Seg(len(where)), Seg(n), freeze(np.asarray(where, np.intp)))


def lattice(at: Any, where: Any, m: int, n: int) -> Any:
    """The relation of elements `at` of m with positions `where` of n, both a box of rows and columns, of layers, rows
    and columns, …: no list of pairs. None where they are none, or in one line."""
    heads, sizes, steps = [at, where], list[int](), list[list[int]]()
    while (count := len(heads[0])) > 1:
        jumps = [np.diff(h) for h in heads]
        run = 1 + min([int(np.argmax(np.append(d != d[0], True))) for d in jumps])
        if count % run or len(sizes) == _AXES:
            return None
        blocks = [h.reshape(-1, run) for h in heads]
        if any([(np.diff(b, axis=1) != d[0]).any() for b, d in zip(blocks, jumps, strict=True)]):
            return None
        sizes.append(run)
        steps.append([int(d[0]) for d in jumps])
        heads = [b[:, 0] for b in blocks]
    if len(sizes) < 2:
        return None
    left, right = [(Affine(int(h[0]), tuple([(k, s[i]) for k, s in enumerate(steps)])),) for i, h in enumerate(heads)]
    return named(Seg(m), Seg(n), tidied(dict(enumerate(sizes)), left, right, 1))
