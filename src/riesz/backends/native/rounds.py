"""Loops, branches and programs called inside programs, as statements.

Carries of up to 64 numbers are variables, larger ones memory. What the rounds leave behind goes into arrays with an
axis for the rounds. New carries are assigned when all that a round gives is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops.op import Combination
from ...ops.opaque import Get
from ...programs.program import Program
from ...programs.sub_programs import Call, Loop
from ...runtime import tuning
from .computed_positions import Collected, added, looked_up, scattered
from .statements import Blocked, Buffer, For, If, Lanes, Position, Update, counter
from .writer import Arrayed, Slot

if TYPE_CHECKING:
    from .scope import Scope


def rounds(scope: Scope, op: Loop, args: tuple[int, ...], xs: list[Slot]) -> list[Slot]:
    """The results of a loop; None where nobody reads them."""
    if (one := op.body.__dict__.get("_one")) is not None:
        return _at_each_index(scope, op, one, args, xs)
    body, n, k, length = op.body, op.consts, op.carries, op.length
    shapes = [body.shapes[s] for s in body.inputs]
    letters = [scope.letters[a] for a in args]
    w, t = scope.writer, scope.writer.fresh("t")
    tables = looked_up(body)
    inputs = [scope.stored(x) if i in tables else scope.handed(x) for i, x in enumerate(xs[:n])]
    carries = [_begun(scope, x, shape) for x, shape in zip(xs[n : n + k], shapes[n : n + k], strict=True)]
    inputs += carries
    for x, shape in zip(xs[n + k :], shapes[n + k :], strict=True):
        inputs.append(_row(scope, x, shape, counter(t)))
    with w.inside() as block:
        inner = scope.inner(body, inputs, letters, None, scattered(body, _collecting(body, n, k)))
        found = [inner.values[s] for s in body.outputs]
        after = [inner.letters[s] for s in body.outputs]
        if after[:k] != letters[n : n + k]:
            raise Blocked("a carry that changes its type")
        read = _read(scope)
        kept = [inner.taken(c) for c in carries] if op.keep else []
        stacked: list[Slot] = [None] * (len(found) - k + len(kept))
        for i, y in enumerate([*found[k:], *kept]):
            if k + i in read:
                row = body.shapes[body.outputs[k + i]] if k + i < len(found) else shapes[n + k + i - len(found)]
                stacked[i] = _stacked(inner, y, row, length, counter(t), scope.targets.get(k + i))
        _carried(inner, carries, found[:k], body, n)
    w.emit(For(t, Position(), Position(length), op.reverse, block))
    ends = [c if type(c) is Arrayed else scope.taken(c) for c in carries]
    scope.letters[scope.at] = (*after, *(letters[n : n + k] if op.keep else []))
    return [*ends, *stacked]


def _read(scope: Scope) -> set[int]:
    """Which results of the step that is being written are read."""
    program, slot = scope.program, scope.at
    return {
        op.at for op, args in zip(program.ops, program.args, strict=True) if isinstance(op, Get) and args[0] == slot
    }


def _begun(scope: Scope, x: Slot, shape: Any) -> Slot:
    """The first value of a carry: variables, or memory."""
    if math.prod(shape) > tuning.NATIVE_SLOT_NUMBERS:
        buffer = scope.writer.buffer(math.prod(shape))
        found = scope.writer.placed(shape, buffer)
        scope.store(found, x)
        return found
    nodes = np.broadcast_to(scope.numbers(x), shape).reshape(-1).tolist()
    names = np.array([scope.writer.fresh("k") for _ in nodes], object)
    if len(names):
        scope.writer.emit(Update(tuple(names), tuple([scope.value(node) for node in nodes])))
    return names.reshape(shape)


def _row(scope: Scope, x: Slot, shape: Any, t: Position) -> Arrayed:
    """Entry t along the first axis."""
    size = math.prod(shape)
    if type(x) is Arrayed and x.place is None and size <= tuning.NATIVE_SLOT_NUMBERS:
        at = x.at
        return Arrayed(shape, lambda positions: at([t, *positions]))
    place = scope.stored(x).place
    assert place is not None
    return scope.writer.placed(shape, place[0], place[1].plus(t, size))


def _stacked(inner: Scope, y: Slot, shape: Any, length: int, t: Position, target: Target | None) -> Arrayed:
    """The array of what the rounds give; this round's part is stored. `target`: memory for it, where it begins, and how
    far apart the rounds are."""
    size = math.prod(shape)
    buffer, base, stride = target or (inner.writer.buffer(length * size), Position(), size)
    inner.store(inner.writer.placed(shape, buffer, base.plus(t, stride)), y)
    return inner.writer.placed((length, *shape), buffer)


Target = tuple[Buffer, Position, int]


def _at_each_index(
    scope: Scope, op: Loop, one: tuple[Program, Sequence[bool], int], args: tuple[int, ...], xs: list[Slot]
) -> list[Slot]:
    """The results of a loop that rz.vmap has mapped: the loop as it was, at every index."""
    body, flags, n = one
    w, c, m, length = scope.writer, op.consts, op.carries, op.length
    name = w.fresh("i")
    index, read = counter(name), _read(scope)
    shapes = [body.shapes[s] for s in body.inputs]
    rows = [shape if i < c + m else (length, *shape) for i, shape in enumerate(shapes)]
    alone, places = Program(), sorted(read)
    step = alone.step(op.replaced(body=body), [alone.input(shape) for shape in rows])
    alone.outputs = [alone.step(Get(i), (step,)) for i in places]
    given = [_of_index(scope, x, s, moves, n, index, i >= c + m) for i, (x, s, moves) in
             enumerate(zip(xs, shapes, flags, strict=True))]  # fmt: skip
    results, targets, ends = list[Slot]([None] * len(op.result(()))), dict[int, Target](), dict[int, Any]()
    for i in places:
        shape = op.replaced(body=body).result(())[i]
        size = math.prod(shape if i < m else shape[1:])
        buffer = w.buffer((1 if i < m else length) * n * size)
        results[i] = w.placed((n, *shape) if i < m else (length, n, *shape[1:]), buffer)
        if i < m:
            ends[i] = w.placed(shape, buffer, Position().plus(index, size))
        else:
            targets[i] = buffer, Position().plus(index, size), n * size
    with w.inside() as block:
        inner = scope.inner(alone, given, [scope.letters[a] for a in args], targets)
        for i, slot in zip(places, alone.outputs, strict=True):
            if i in ends:
                inner.store(ends[i], inner.values[slot])
    w.emit(Lanes(name, n, block))
    scope.letters[scope.at] = inner.letters[step]
    return results


def _of_index(scope: Scope, x: Slot, shape: Any, moves: bool, n: int, index: Position, stacked: bool) -> Slot:
    """An argument of a mapped loop at one index."""
    if not moves:
        return x if type(x) is Arrayed and x.place is not None and x.shape else scope.handed(x)
    w, size, place = scope.writer, math.prod(shape), scope.stored(x).place
    assert place is not None
    buffer, base = place[0], place[1].plus(index, size)
    if not stacked:
        return w.placed(shape, buffer, base)

    def at(positions: Sequence[Position]) -> Any:
        total = base.plus(positions[0], n * size)
        for i, p in enumerate(positions[1:]):
            total = total.plus(p, math.prod(shape[i + 1 :]))
        return w.read(buffer, total)

    return Arrayed((len_of(x, n, size), *shape), at)


def len_of(x: Slot, n: int, size: int) -> int:
    """How many rounds a stack of all indices has."""
    return math.prod(x.shape) // max(n * size, 1)


def _carried(inner: Scope, carries: Sequence[Slot], found: Sequence[Slot], body: Program, n: int) -> None:
    """The carries for the next round: all are computed first."""
    own = {id(c.place[0]) for c in carries if type(c) is Arrayed and c.place is not None}
    names, values, copies, sums = list[Any](), list[Any](), list[tuple[Arrayed, Any]](), list[tuple[Arrayed, Any]]()
    for j, (c, y) in enumerate(zip(carries, found, strict=True)):
        shape = body.shapes[body.outputs[j]]
        if type(c) is not Arrayed:
            nodes = np.broadcast_to(inner.numbers(y), shape).reshape(-1).tolist()
            pairs = zip(c.reshape(-1).tolist(), [inner.value(node) for node in nodes], strict=True)
            for name, value in [pair for pair in pairs if pair[0] != pair[1]]:
                names.append(name)
                values.append(value)
        elif type(y) is Collected:
            sums.append((c, y))
        elif type(y) is not Arrayed:
            copies.append((c, inner.stored(y)))
        elif y.place is None and _in_place(body, body.inputs[n + j], body.outputs[j]):
            sums.append((c, y))
        elif y.place is None:
            copies.append((c, inner.stored(y)))
        elif y.place != c.place:
            copies.append((c, inner.stored(y, fresh=id(y.place[0]) in own)))
    for c, y in sums:  # before another carry changes that is read here
        rest = y.rest if type(y) is Collected else y
        if type(rest) is not Arrayed or rest.place != c.place:
            inner.store(c, rest)
        for factor, part in y.parts if type(y) is Collected else ():
            added(inner, c, part, factor)
    for c, y in copies:
        inner.store(c, y)
    if names:
        inner.writer.emit(Update(tuple(names), tuple(values)))


def _collecting(body: Program, n: int, k: int) -> list[int]:
    """The ends of carries that can be added to where they are."""
    return [body.outputs[j] for j in range(k) if _in_place(body, body.inputs[n + j], body.outputs[j])]


def _in_place(body: Program, start: int, end: int) -> bool:
    """Whether a carry is collected, c ← c + u, and nothing else reads it: it can be added to where it is."""
    op, args = body.ops[end], body.args[end]
    alone = sum([a == start for given in (*body.args, body.outputs) for a in given]) == 1
    return type(op) is Combination and start in args and alone and body.shapes[start] == body.shapes[end]


def branches(scope: Scope, op: Call, args: tuple[int, ...], xs: list[Slot]) -> list[Slot]:
    """The results of one of some programs."""
    given, letters = xs[op.fixed :], [scope.letters[a] for a in args[op.fixed :]]
    handed = [scope.handed(x) for x in given]
    if not op.fixed:
        inner = scope.inner(op.branches[0], handed, letters)
        scope.letters[scope.at] = tuple([inner.letters[s] for s in op.branches[0].outputs])
        return [_out(scope, inner, inner.values[s]) for s in op.branches[0].outputs]
    first, w = op.branches[0], scope.writer
    shapes = [first.shapes[s] for s in first.outputs]
    ends: list[Slot] = []
    for shape in shapes:
        size = math.prod(shape)
        if size > tuning.NATIVE_SLOT_NUMBERS:
            ends.append(scope.writer.placed(shape, w.buffer(size)))
        else:
            ends.append(np.array([w.fresh("k") for _ in range(size)], object).reshape(shape))
    which = int(scope.numbers(xs[0]).reshape(-1)[0])
    tests = [scope.value(scope.apply("equal", which, scope.graph.fixed(float(i)))) for i in range(len(op.branches) - 1)]
    blocks, kinds = list[list[Any]](), set[Any]()
    for branch in op.branches:
        with w.inside() as block:
            inner = scope.inner(branch, handed, letters)
            kinds.add(tuple([inner.letters[s] for s in branch.outputs]))
            _settled(inner, ends, [inner.values[s] for s in branch.outputs])
        blocks.append(block)
    if len(kinds) != 1:
        raise Blocked("branches of different types")
    scope.letters[scope.at] = kinds.pop()
    rest = blocks[-1]
    for test, block in zip(reversed(tests), reversed(blocks[:-1]), strict=True):
        rest = [If(test, block, rest)]
    for statement in rest:
        w.emit(statement)
    return [e if type(e) is Arrayed else scope.taken(e) for e in ends]


def _out(scope: Scope, inner: Scope, x: Slot) -> Slot:
    """A value of a scope inside, where its statements stand here too."""
    return inner.stored(x) if type(x) is Arrayed else scope.taken(inner.handed(x))


def _settled(inner: Scope, ends: Sequence[Slot], found: Sequence[Slot]) -> None:
    names, values = list[Any](), list[Any]()
    for end, x in zip(ends, found, strict=True):
        if type(end) is Arrayed:
            inner.store(end, x)
        else:
            nodes = np.broadcast_to(inner.numbers(x), end.shape).reshape(-1).tolist()
            names += end.reshape(-1).tolist()
            values += [inner.value(node) for node in nodes]
    if names:
        inner.writer.emit(Update(tuple(names), tuple(values)))
