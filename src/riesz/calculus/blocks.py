"""Derivatives and adjoints of sub-programs: a branch's derivative is a branch, a loop's a loop, its adjoint the loop backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..opaque import Get
from ..ops import Combination, Contraction
from ..programs.blocks import Block, Call, Loop
from ..programs.program import Constant, Program, outputs, run
from ..vectors import dense
from .affine import Affine, Pair

Flags = tuple[bool, ...]


def differential(program: Program, moving: Flags) -> tuple[Program, list[int]]:
    """(x, dx) ↦ dy for the inputs that move and the outputs that do: the program and the numbers of those outputs."""
    joint = Program()
    xs = [joint.input(program.shapes[s]) for s in program.inputs]
    dxs = [joint.input(program.shapes[s]) if m else None for s, m in zip(program.inputs, moving, strict=True)]
    slots = run(program, Affine(joint, joint, lambda slot: slot), [Pair(x, dx) for x, dx in zip(xs, dxs, strict=True)])
    wires = [slots[s].wire for s in program.outputs]
    live = [i for i, w in enumerate(wires) if w is not None]
    return joint.prune([*xs, *[dx for dx in dxs if dx is not None]], [wires[i] for i in live]), live


def affine_block(domain: Affine, op: Block, args: Sequence[Pair], live: tuple[int, ...]) -> Pair:
    """f^[1] of a call or a loop: its value, and the block of its differential on the tape."""
    moving = tuple([i in live for i in range(len(args))])
    values = [a.value for a in args]
    wires = [a.wire for a in args if a.wire is not None]
    if isinstance(op, Call):
        return _affine_call(domain, op, values, wires, moving)
    assert isinstance(op, Loop)
    return _affine_loop(domain, op, values, args, moving)


def _affine_call(domain: Affine, op: Call, values: list[Any], wires: list[int], moving: Flags) -> Pair:
    y = domain.base.step(op, values)
    key = ("d", moving)
    if key not in op.known:
        found = [differential(branch, moving[op.fixed :]) for branch in op.branches]
        live = sorted({i for _, alive in found for i in alive})
        shapes = op.result(())
        op.known[key] = Call(tuple([_with_zeros(p, alive, live, shapes) for p, alive in found]), op.adjoint), live
    derivative, live = op.known[key]
    if not live:
        return Pair(y, None)
    wire = domain.tape.step(derivative, [*[domain.lift(v) for v in values], *wires])
    return Pair(y, {i: domain.tape.step(Get(j), (wire,)) for j, i in enumerate(live)})


def _with_zeros(program: Program, have: list[int], wanted: list[int], shapes: Any) -> Program:
    """The same program with zeros for the outputs it lacks."""
    if have == wanted:
        return program
    whole = Program()
    slots = [whole.input(program.shapes[s]) for s in program.inputs]
    found = dict(zip(have, outputs(program, whole, slots), strict=True))
    whole.inputs, whole.outputs = slots, [found[i] if i in found else whole.zeros(shapes[i]) for i in wanted]
    return whole


def _affine_loop(domain: Affine, op: Loop, values: list[Any], args: Sequence[Pair], moving: Flags) -> Pair:
    base, tape = domain.base, domain.tape
    key = ("d", moving)
    if key not in op.known:
        op.known[key] = _loop_differential(op, moving)
    derivative, carried, live = op.known[key]
    m, c = op.carries, op.consts
    y = base.step(Loop(op.body, c, m, op.length, op.reverse, True, op.adjoint), values)
    stacked = [base.step(Get(m + op.results + i), (y,)) for i in range(m)]
    wires = [a.wire for a in args]
    start = [wires[c + i] if wires[c + i] is not None else tape.zeros(base.shape(values[c + i])) for i in carried]
    fixed = [domain.lift(v) for v in values[:c]], [domain.lift(v) for v in [*stacked, *values[c + m :]]]
    wire = tape.step(
        derivative, [*fixed[0], *[w for w in wires[:c] if w is not None], *start, *fixed[1], *[w for w in wires[c + m :] if w is not None]]
    )
    kept = [m + op.results + i for i in carried] if op.keep else []  # the carries that came in move too
    places = [*carried, *[m + i for i in live], *kept]
    return Pair(y, {at: tape.step(Get(j), (wire,)) for j, at in enumerate(places)})


def _loop_differential(op: Loop, moving: Flags) -> tuple[Loop, list[int], list[int]]:
    """The loop of the body's differential, over the carries that came in. A carry moves if it moves at first or in any round."""
    c, m = op.consts, op.carries
    consts, carries, xs = moving[:c], list(moving[c : c + m]), moving[c + m :]
    while True:
        inner, live = differential(op.body, (*consts, *carries, *xs))
        grown = [was or i in live for i, was in enumerate(carries)]
        if grown == carries:
            break
        carries = grown
    carried = [i for i, f in enumerate(carries) if f]
    body = Program()
    shapes = [op.body.shapes[s] for s in op.body.inputs]
    at_consts = [body.input(s) for s in shapes[:c]]
    d_consts = [body.input(s) for s, f in zip(shapes[:c], consts, strict=True) if f]
    d_carry = [body.input(shapes[c + i]) for i in carried]
    at_rest = [body.input(s) for s in shapes[c:]]
    d_xs = [body.input(s) for s, f in zip(shapes[c + m :], xs, strict=True) if f]
    found = dict(zip(live, outputs(inner, body, [*at_consts, *at_rest, *d_consts, *d_carry, *d_xs]), strict=True))
    after = [found[i] if i in found else body.zeros(shapes[c + i]) for i in carried]
    stacked = [i - m for i in live if i >= m]
    body.outputs = [*after, *[found[m + i] for i in stacked]]
    return Loop(body, c + len(d_consts), len(carried), op.length, op.reverse, op.keep, op.adjoint), carried, stacked


class Turned:
    """The transpose of a linear block: an op on the fixed arguments and the cotangents of the results, and what its results belong to."""

    def __init__(self, op: Block, fixed: list[int], zeros: list[Any], rest: list[int], targets: list[int], strong: list[bool]) -> None:
        self.op = op
        self.fixed = fixed  # arguments that go first
        self.zeros = zeros  # shapes of accumulators, after the cotangents of the carries
        self.rest = rest  # arguments that go after them
        self.targets = targets  # the arguments whose cotangents come out
        self.strong = strong  # which of these have strong zeros


def transpose_block(op: Block, moving: Flags, strong: bool) -> Turned:
    """The transpose of a call or loop that is linear in the arguments that move (a loop: and in its carries)."""
    key = ("T", moving, strong)
    if key not in op.known:
        op.known[key] = _turned_call(op, moving, strong) if isinstance(op, Call) else _turned_loop(op, moving, strong)
    return op.known[key]


def _turned_call(op: Call, moving: Flags, strong: bool) -> Turned:
    from .derive import transpose_linear

    flags = moving[op.fixed :]
    still = [i for i, f in enumerate(flags) if not f]
    moved = [i for i, f in enumerate(flags) if f]
    turned: list[Program] = []
    strongly = [len(op.branches) > 1] * len(moved)  # a branch not taken is a selection too
    for branch in op.branches:
        slots, marks = [branch.inputs[i] for i in (*still, *moved)], list[bool]()
        turned.append(transpose_linear(branch.prune(slots, branch.outputs), len(still), strong=strong, marks=marks))
        strongly = [a or b for a, b in zip(strongly, marks, strict=True)]
    nothing = [all([_is_zero(p, p.outputs[j]) for p in turned]) for j in range(len(moved))]
    strongly = [a or b for a, b in zip(strongly, nothing, strict=True)]
    first = [0] if op.fixed else []
    return Turned(Call(tuple(turned), not op.adjoint), [*first, *[i + op.fixed for i in still]], [], [], [i + op.fixed for i in moved], strongly)


def _is_zero(program: Program, slot: int) -> bool:
    """Whether a slot holds zeros whatever the inputs are."""
    op = program.ops[slot]
    return type(op) is Constant and not np.any(dense(op.value))


def _turned_loop(op: Block, moving: Flags, strong: bool) -> Turned:
    from .derive import transpose_linear

    assert isinstance(op, Loop)
    c, m, n = op.consts, op.carries, len(moving)
    still_c, moved_c = [i for i in range(c) if not moving[i]], [i for i in range(c) if moving[i]]
    still_x, moved_x = [i for i in range(c + m, n) if not moving[i]], [i for i in range(c + m, n) if moving[i]]
    order = [*still_c, *still_x, *moved_c, *range(c, c + m), *moved_x]
    straight = op.body.prune([op.body.inputs[i] for i in order], op.body.outputs)
    marks: list[bool] = []
    inner = transpose_linear(straight, len(still_c) + len(still_x), strong=strong, marks=marks)
    strongly = strong or any(marks) or any([type(step) is Contraction and bool(step.strong) for step in straight.ops])
    if strongly and not strong:  # a selection in one round is one for the rounds before it
        inner = transpose_linear(straight, len(still_c) + len(still_x), strong=True)
    shapes = [op.body.shapes[s] for s in op.body.inputs]
    body = Program()
    fixed = [body.input(shapes[i]) for i in still_c]
    after = [body.input(op.body.shapes[s]) for s in op.body.outputs[:m]]
    sums = [body.input(shapes[i]) for i in moved_c]
    rest = [body.input(shapes[i]) for i in still_x]
    seeds = [body.input(op.body.shapes[s]) for s in op.body.outputs[m:]]
    kept = [body.input(shapes[c + i]) for i in range(m)] if op.keep else []
    found = outputs(inner, body, [*fixed, *rest, *after, *seeds])
    grown = [body.step(Combination((1.0, 1.0)), (a, b)) for a, b in zip(sums, found[: len(moved_c)], strict=True)]
    before = found[len(moved_c) : len(moved_c) + m]
    if op.keep:  # a carry that was kept when it came in has a cotangent of its own
        before = [body.step(Combination((1.0, 1.0)), (a, b)) for a, b in zip(before, kept, strict=True)]
    body.outputs = [*before, *grown, *found[len(moved_c) + m :]]
    back = Loop(body, len(still_c), m + len(moved_c), op.length, not op.reverse, adjoint=not op.adjoint)
    targets = [*range(c, c + m), *moved_c, *moved_x]
    return Turned(back, still_c, [shapes[i] for i in moved_c], still_x, targets, [strongly] * len(targets))
