"""Derivatives and adjoints of sub-programs: a branch's derivative is a branch, a loop's a loop, its adjoint the loop
backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..ops.domain import Leaf
from ..ops.op import Combination, Contraction
from ..ops.opaque import Get
from ..programs.program import Constant, Program, outputs, run
from ..programs.sub_programs import Block, Call, Loop
from ..spaces.formal_vectors import dense
from .affine import AffineDomain, Pair
from .reached import ZEROS

Flags = tuple[bool, ...]


def differential(program: Program, moving: Flags, strong: bool = False) -> tuple[Program, list[int], set[int]]:
    """(x, dx) ↦ dy for the inputs that move and the outputs that do: the program, the numbers of those outputs, and of
    those with places that nothing reaches. `strong`: nothing reaches the zeros of dx."""
    joint = Program()
    xs = [joint.input(program.shapes[s]) for s in program.inputs]
    dxs = [joint.input(program.shapes[s]) if m else None for s, m in zip(program.inputs, moving, strict=True)]
    domain = AffineDomain(joint, joint, lambda slot: slot)
    if strong:
        domain.reach.update({dx: ZEROS for dx in dxs if dx is not None})
    slots = run(program, domain, [Pair(x, dx) for x, dx in zip(xs, dxs, strict=True)])
    wires = [slots[s].wire for s in program.outputs]
    live = [i for i, w in enumerate(wires) if w is not None]
    partly = {i for i in live if wires[i] in domain.reach}
    return joint.prune([*xs, *[dx for dx in dxs if dx is not None]], [wires[i] for i in live]), live, partly


def affine_block(
    domain: AffineDomain[Leaf], op: Block, args: Sequence[Pair[Leaf]], live: tuple[int, ...]
) -> Pair[Leaf]:
    """f^[1] of a call or a loop: its value, and the block of its differential on the tape."""
    moving = tuple([i in live for i in range(len(args))])
    values = [a.value for a in args]
    wires = [a.wire for a in args if a.wire is not None]
    if isinstance(op, Call):
        return _affine_call(domain, op, values, wires, moving)
    assert isinstance(op, Loop)
    return _affine_loop(domain, op, values, args, moving)


def _affine_call(
    domain: AffineDomain[Leaf], op: Call, values: list[Leaf], wires: list[int], moving: Flags
) -> Pair[Leaf]:
    y = domain.base.step(op, values)
    strong = any([w in domain.reach for w in wires])
    key = ("d", moving, strong)
    if key not in op.known:
        found = [differential(branch, moving[op.fixed :], strong) for branch in op.branches]
        live = sorted({i for _, alive, _ in found for i in alive})
        partly = {i for i in live if any([i in some or i not in alive for _, alive, some in found])}
        shapes = op.result(())
        op.known[key] = (
            Call(tuple([_with_zeros(p, alive, live, shapes) for p, alive, _ in found]), op.adjoint),
            live,
            partly,
        )
    derivative, live, partly = op.known[key]
    if not live:
        return Pair(y, None)
    wire = domain.tape.step(derivative, [*[domain.lift(v) for v in values], *wires])
    return Pair(y, {i: domain.part(wire, j, i in partly) for j, i in enumerate(live)})


def _with_zeros(program: Program, have: list[int], wanted: list[int], shapes: Any) -> Program:
    """The same program with zeros for the outputs it lacks."""
    if have == wanted:
        return program
    whole = Program()
    slots = [whole.input(program.shapes[s]) for s in program.inputs]
    found = dict(zip(have, outputs(program, whole, slots), strict=True))
    whole.inputs, whole.outputs = slots, [found[i] if i in found else whole.zeros(shapes[i]) for i in wanted]
    return whole


def _affine_loop(
    domain: AffineDomain[Leaf], op: Loop, values: list[Leaf], args: Sequence[Pair[Leaf]], moving: Flags
) -> Pair[Leaf]:
    base, tape = domain.base, domain.tape
    strong = any([a.wire in domain.reach for a in args if a.wire is not None])
    key = ("d", moving, strong)
    if key not in op.known:
        op.known[key] = _loop_differential(op, moving, strong)
    found: tuple[Loop, list[int], list[int], bool] = op.known[key]
    derivative, carried, live, strong = found
    m, c = op.carries, op.consts
    y = base.step(Loop(op.body, c, m, op.length, op.reverse, True, op.adjoint), values)
    stacked = [base.step(Get(m + op.results + i), (y,)) for i in range(m)]
    wires = [a.wire for a in args]
    start = [wires[c + i] if wires[c + i] is not None else tape.zeros(base.shape(values[c + i])) for i in carried]
    fixed = [domain.lift(v) for v in values[:c]], [domain.lift(v) for v in [*stacked, *values[c + m :]]]
    wire = tape.step(
        derivative,
        [
            *fixed[0],
            *[w for w in wires[:c] if w is not None],
            *start,
            *fixed[1],
            *[w for w in wires[c + m :] if w is not None],
        ],
    )
    kept = [m + op.results + i for i in carried] if op.keep else []  # the carries that came in move too
    places = [*carried, *[m + i for i in live], *kept]
    return Pair(y, {at: domain.part(wire, j, strong) for j, at in enumerate(places)})


def _loop_differential(op: Loop, moving: Flags, strong: bool) -> tuple[Loop, list[int], list[int], bool]:
    """The loop of the body's differential, over the carries that came in. A carry moves if it moves at first or in any
    round.

    `strong`: nothing reaches the zeros of what it is applied to; that holds in all rounds if there is a selection in
    one.
    """
    c, m = op.consts, op.carries
    consts, carries, xs = moving[:c], list(moving[c : c + m]), moving[c + m :]
    while True:
        inner, live, partly = differential(op.body, (*consts, *carries, *xs), strong)
        grown = [was or i in live for i, was in enumerate(carries)]
        if grown == carries and bool(partly) <= strong:
            break
        carries, strong = grown, strong or bool(partly)
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
    return (
        Loop(body, c + len(d_consts), len(carried), op.length, op.reverse, op.keep, op.adjoint),
        carried,
        stacked,
        strong,
    )


class TransposedBlock:
    """The transpose of a linear block: an op on the fixed arguments and the cotangents of the results, and what its
    results belong to."""

    def __init__(
        self, op: Block, fixed: list[int], zeros: list[Any], rest: list[int], targets: list[int], strong: list[bool]
    ) -> None:
        self.op = op
        self.fixed = fixed  # arguments that go first
        self.zeros = zeros  # shapes of accumulators, after the cotangents of the carries
        self.rest = rest  # arguments that go after them
        self.targets = targets  # the arguments whose cotangents come out
        self.strong = strong  # which of these have strong zeros


def transpose_block(op: Block, moving: Flags, strong: bool) -> TransposedBlock:
    """The transpose of a call or loop that is linear in the arguments that move (a loop: and in its carries)."""
    key = ("T", moving, strong)
    if key not in op.known:
        op.known[key] = _turned_call(op, moving, strong) if isinstance(op, Call) else _turned_loop(op, moving, strong)
    return op.known[key]


def _turned_call(op: Call, moving: Flags, strong: bool) -> TransposedBlock:
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
    return TransposedBlock(
        Call(tuple(turned), not op.adjoint),
        [*first, *[i + op.fixed for i in still]],
        [],
        [],
        [i + op.fixed for i in moved],
        strongly,
    )


def _selects(program: Program, moving: Any) -> bool:
    """Whether some product has a coefficient with strong zeros."""
    steps = zip(program.ops, program.args, strict=True)
    return any([type(op) is Contraction and any([not moving[args[i]] for i in op.strong]) for op, args in steps])


def narrowed(op: Block, wanted: Sequence[int]) -> tuple[Block, list[int], list[int]]:
    """The block with no more results than are wanted, and the carries that these need; the numbers of its results and
    arguments in the old one."""
    key = ("only", tuple(sorted(wanted)))
    if key not in op.known:
        small, left, args = (
            _narrowed_loop(op, set(wanted)) if isinstance(op, Loop) else _narrowed_call(cast(Call, op), sorted(wanted))
        )
        op.known[key] = (op if len(left) == len(op.result(())) else small), left, args
    return op.known[key]


def _narrowed_call(op: Call, wanted: list[int]) -> tuple[Block, list[int], list[int]]:
    branches = [p.prune(p.inputs, [p.outputs[i] for i in wanted]) for p in op.branches]
    return Call(tuple(branches), op.adjoint), wanted, list(range(op.fixed + len(op.branches[0].inputs)))


def _narrowed_loop(op: Loop, wanted: set[int]) -> tuple[Block, list[int], list[int]]:
    body, c, m, n = op.body, op.consts, op.carries, op.carries + op.results
    keep = any([i >= n for i in wanted])
    need = {*wanted, *range(m)} if keep else wanted
    while True:  # a carry is needed if something that is needed reads it
        live = body.needed([body.outputs[i] for i in need if i < n])
        more = need | {i for i in range(m) if live[body.inputs[c + i]]}
        if more == need:
            break
        need = more
    carries, results = [i for i in range(m) if i in need], [i for i in range(m, n) if i in need]
    args = [*range(c), *[c + i for i in carries], *range(c + m, len(body.inputs))]
    small = body.prune([body.inputs[i] for i in args], [body.outputs[i] for i in (*carries, *results)])
    kept = range(n, n + m) if keep else ()
    return Loop(small, c, len(carries), op.length, op.reverse, keep, op.adjoint), [*carries, *results, *kept], args


def _is_zero(program: Program, slot: int) -> bool:
    """Whether a slot holds zeros whatever the inputs are."""
    op = program.ops[slot]
    return type(op) is Constant and not np.any(dense(op.value))


def _turned_loop(op: Block, moving: Flags, strong: bool) -> TransposedBlock:
    from .derive import transpose_linear

    assert isinstance(op, Loop)
    c, m, n = op.consts, op.carries, len(moving)
    still_c, moved_c = [i for i in range(c) if not moving[i]], [i for i in range(c) if moving[i]]
    still_x, moved_x = [i for i in range(c + m, n) if not moving[i]], [i for i in range(c + m, n) if moving[i]]
    order = [*still_c, *still_x, *moved_c, *range(c, c + m), *moved_x]
    straight = op.body.prune([op.body.inputs[i] for i in order], op.body.outputs)
    marks: list[bool] = []
    inner = transpose_linear(straight, len(still_c) + len(still_x), strong=strong, marks=marks)
    strongly = (
        strong or any(marks) or _selects(straight, straight.dependent(straight.inputs[len(still_c) + len(still_x) :]))
    )
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
    ends = [
        *inner.outputs[len(moved_c) : len(moved_c) + m],
        *inner.outputs[: len(moved_c)],
        *inner.outputs[len(moved_c) + m :],
    ]
    nothing = [i >= m and _is_zero(inner, s) for i, s in enumerate(ends)]
    return TransposedBlock(
        back, still_c, [shapes[i] for i in moved_c], still_x, targets, [strongly or none for none in nothing]
    )
