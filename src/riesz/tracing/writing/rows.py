"""Many numbers computed one by one, as one step on arrays: y[i] = f(x[i]) in a Python loop is f of a range.

Slots with one op are one step, if the rows of their arguments are; elements of one array are a range or a gather;
constants are an array. What has no form in common is placed number by number. Numbers that need each other (a
recurrence) stay as they are.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ...ops.op import Combination, Contraction, Elementwise, Reduction, Reshape, broadcast, product
from ...ops.opaque import Discrete, Select
from ...programs.program import Constant
from ...relations import Function, Gather, Point, Range, freeze
from ...relations.index_sets import Seg
from ..trace import Trace

_FEW, _DEEP = 8, 12  # shorter rows are placed number by number; so is what lies deeper


def row(trace: Trace, slots: list[int]) -> int:
    """The slot of an array with the numbers of these slots."""
    mine, level = set(slots), set(slots)
    for _ in range(_DEEP):
        level = {a for s in level for a in trace.args[s] if not trace.shapes[a]}
        if not mine.isdisjoint(level):  # one needs another
            return _side_by_side(trace, slots)
    return _row(trace, slots, _DEEP)


def _side_by_side(trace: Trace, slots: list[int]) -> int:
    n, parts = len(slots), [trace.step(Reshape((1,)), (s,)) for s in slots]
    return (
        parts[0]
        if n == 1
        else trace.step(Reduction(tuple([Range(Seg(1), Seg(n), i, 1, True) for i in range(n)]), 0), parts)
    )


def _row(trace: Trace, slots: list[int], deep: int) -> int:
    n = len(slots)
    if all([s == slots[0] for s in slots]):
        return trace.step(broadcast((), (n,)), (slots[0],))
    groups: dict[Any, list[int]] = {}
    for i, s in enumerate(slots if n >= _FEW and deep else ()):
        groups.setdefault(_form(trace, s), []).append(i)
    if not groups or None in groups or 4 * len(groups) > n:
        return _side_by_side(trace, slots)
    rows = [_one_form(trace, form, [slots[i] for i in at], deep) for form, at in groups.items()]
    if len(rows) == 1:
        return rows[0]
    return trace.step(Reduction(tuple([placed(np.array(at), n) for at in groups.values()]), 0), rows)


def _form(trace: Trace, slot: int) -> Any:
    """What the steps of a row must have in common; None: nothing is known."""
    op = trace.ops[slot]
    if type(op) is Constant:
        return Constant, np.asarray(op.value).dtype
    if type(op) is float:
        return float
    if _is_point(op):
        return Point, _origin(trace, slot)[0]
    if isinstance(op, (Elementwise, Combination, Select)) or (type(op) is Discrete and op.shaped is None):
        return op
    if type(op) is Contraction and op.labels == ((), ()) and not op.strong:
        return op
    return None


def _is_point(op: Any) -> bool:
    return type(op) is Reduction and op.axis == 0 and len(op.relations) == 1 and type(op.relations[0]) is Point


def _origin(trace: Trace, slot: int) -> tuple[int, int]:
    """The array that x[i][j] is an element of, and the place of the element in it, by rows."""
    place = 0
    while _is_point(trace.ops[slot]):
        at = trace.ops[slot].relations[0].at
        (slot,) = trace.args[slot]
        place += at * math.prod(trace.shapes[slot][1:])
    return slot, place


def _one_form(trace: Trace, form: Any, slots: list[int], deep: int) -> int:
    ops, args, n = trace.ops, trace.args, len(slots)
    if type(form) is tuple and form[0] is Constant:
        return trace.const(np.array([ops[s].value for s in slots]))
    if type(form) is tuple:
        flat = (math.prod(trace.shapes[form[1]]),)
        array = form[1] if trace.shapes[form[1]] == flat else trace.step(Reshape(flat), (form[1],))
        return taken(trace, array, np.array([_origin(trace, s)[1] for s in slots]))
    rows = [_row(trace, [args[s][k] for s in slots], deep - 1) for k in range(len(args[slots[0]]))]
    if form is float:
        by = [ops[s] for s in slots]
        return (
            trace.scale(by[0], rows[0]) if len(set(by)) == 1 else _product(trace, trace.const(np.array(by)), rows[0], n)
        )
    return _product(trace, rows[0], rows[1], n) if type(form) is Contraction else trace.step(cast(Any, form), rows)


def _product(trace: Trace, left: int, right: int, n: int) -> int:
    return trace.step(product((n,), (n,)), (left, right))


def ordered(at: Any, step: int = 1) -> bool:
    """Whether numbers follow each other in steps."""
    return bool((np.diff(at) == step).all())


def shaped(trace: Trace, slot: int, shape: Any) -> int:
    """A slot under another shape."""
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
    """The relation that puts elements at positions, each at another one."""
    step = int(where[1] - where[0]) if len(where) > 1 else 1
    if step > 0 and ordered(where, step):
        return Range(Seg(len(where)), Seg(n), int(where[0]), step, True)
    return Function(Seg(len(where)), Seg(n), freeze(np.asarray(where, np.intp)))
