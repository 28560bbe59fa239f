"""Derivatives and adjoints of sub-programs: a branch's derivative is a branch, a loop's a loop, its adjoint the loop
backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..ops.domain import Leaf
from ..ops.op import Combination, Contraction
from ..ops.opaque import Get
from ..programs.program import Constant, Program, outputs
from ..programs.sub_programs import Block, Call, Loop, OwnDerivative
from ..spaces.formal_vectors import dense
from .affine import AffineDomain, Pair, over_symbols

Flags = tuple[bool, ...]


def differential(program: Program, moving: Flags, strong: bool = False) -> tuple[Program, list[int], set[int]]:
    """(x, dx) ↦ dy for the inputs that move and the outputs that do: the program, the numbers of those outputs, and of
    those with places that nothing reaches. `strong`: nothing reaches the zeros of dx."""
    domain, inputs, results = over_symbols(program, moving, strong)
    wires = {i: r.wire for i, r in enumerate(results) if r.wire is not None}
    partly = {i for i, wire in wires.items() if wire in domain.reach}
    return domain.tape.prune(inputs, list(wires.values())), list(wires), partly


def affine_block(
    domain: AffineDomain[Leaf], op: Block, args: Sequence[Pair[Leaf]], live: tuple[int, ...]
) -> Pair[Leaf]:
    """f^[1] of a call or a loop: its value, and the block of its differential on the tape."""
    if isinstance(op, Call) and op.rule is not None:
        return _affine_ruled(domain, op, args, live)
    moving = tuple([i in live for i in range(len(args))])
    strong = any([args[i].wire in domain.reach for i in live])
    key = ("d", moving, strong)
    call = isinstance(op, Call)
    if key not in op.known:
        op.known[key] = (_call_differential if call else _loop_differential)(cast(Any, op), moving, strong)
    return (_affine_call if call else _affine_loop)(domain, cast(Any, op), args, op.known[key])


def _affine_ruled(
    domain: AffineDomain[Leaf], op: Call, args: Sequence[Pair[Leaf]], live: tuple[int, ...]
) -> Pair[Leaf]:
    """f^[1] of a call whose derivative is given: the rule written out, at dxs of 0 for what does not move."""
    key = ("rule", live)
    if key not in op.known:
        assert op.rule is not None
        n, rule = len(args), op.rule.program
        moves = [rule.inputs[n + i] for i in live]
        flags, rest = rule.dependent(moves), [rule.inputs[n + i] for i in range(n) if i not in live]
        results = [i for i, slot in enumerate(rule.outputs) if flags[slot]]
        op.known[key] = rule.prune([*rule.inputs[:n], *moves, *rest], [rule.outputs[i] for i in results]), results
    program, results = op.known[key]
    y = domain.base.step(op, [a.value for a in args])
    wires = domain.inline(program, [a.value for a in args], [args[i].wire for i in live])
    return Pair(y, dict(zip(results, wires, strict=True)) or None)


def _affine_call(domain: AffineDomain[Leaf], op: Call, args: Sequence[Pair[Leaf]], known: Any) -> Pair[Leaf]:
    derivative, live, partly = known
    y = domain.base.step(op, [a.value for a in args])
    if not live:
        return Pair(y, None)
    wires = [a.wire for a in args if a.wire is not None]
    wire = domain.tape.step(derivative, [*[domain.lift(a.value) for a in args], *wires])
    return Pair(y, {i: domain.part(wire, j, i in partly) for j, i in enumerate(live)})


def _call_differential(op: Call, moving: Flags, strong: bool) -> tuple[Call, list[int], set[int]]:
    """The call of the differentials, which results move, and which of these have places that nothing reaches."""
    found = [differential(branch, moving[op.fixed :], strong) for branch in op.branches]
    live = sorted({i for _, alive, _ in found for i in alive})
    partly = {i for i in live if any([i in some or i not in alive for _, alive, some in found])}
    return Call(tuple([_with_zeros(p, alive, live, op.result(())) for p, alive, _ in found]), op.adjoint), live, partly


def _with_zeros(program: Program, have: list[int], wanted: list[int], shapes: Any) -> Program:
    """The same program with zeros for the outputs it lacks."""
    if have == wanted:
        return program
    whole = Program()
    found = dict(zip(have, outputs(program, whole, whole.like(program.inputs, program)), strict=True))
    whole.outputs = [found[i] if i in found else whole.zeros(shapes[i]) for i in wanted]
    return whole


def _affine_loop(domain: AffineDomain[Leaf], op: Loop, args: Sequence[Pair[Leaf]], known: Any) -> Pair[Leaf]:
    found: tuple[Loop, list[int], list[int], bool] = known
    derivative, carried, live, strong = found
    base, c, m, n = domain.base, op.consts, op.carries, op.carries + op.results
    y = base.step(op.replaced(keep=True), [a.value for a in args])
    came_in = [base.step(Get(n + i), (y,)) for i in range(m)]
    start = [domain.wire(args[c + i]) for i in carried]
    consts = [domain.lift(a.value) for a in args[:c]]
    rounds = [domain.lift(v) for v in [*came_in, *[a.value for a in args[c + m :]]]]
    d_consts, d_xs = [[a.wire for a in part if a.wire is not None] for part in (args[:c], args[c + m :])]
    wire = domain.tape.step(derivative, [*consts, *d_consts, *start, *rounds, *d_xs])
    kept = [n + i for i in carried] if op.keep else []  # the carries that came in move too
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
    body, slots = Program(), op.body.inputs
    at_consts = body.like(slots[:c], op.body)
    d_consts = body.like([s for s, f in zip(slots[:c], consts, strict=True) if f], op.body)
    d_carry = body.like([slots[c + i] for i in carried], op.body)
    at_rest = body.like(slots[c:], op.body)
    d_xs = body.like([s for s, f in zip(slots[c + m :], xs, strict=True) if f], op.body)
    found = dict(zip(live, outputs(inner, body, [*at_consts, *at_rest, *d_consts, *d_carry, *d_xs]), strict=True))
    after = [found[i] if i in found else body.zeros(op.body.shapes[slots[c + i]]) for i in carried]
    stacked = [i - m for i in live if i >= m]
    body.outputs = [*after, *[found[m + i] for i in stacked]]
    return op.replaced(body=body, consts=c + len(d_consts), carries=len(carried)), carried, stacked, strong


class TransposedBlock(NamedTuple):
    """The transpose of a linear block: an op on fixed arguments and cotangents, and what its results are."""

    op: Block
    fixed: list[int]  # arguments that go first
    zeros: list[Any]  # shapes of accumulators, after the cotangents of the carries
    rest: list[int]  # arguments that go after them
    targets: list[int]  # the arguments whose cotangents come out
    strong: list[bool]  # which of these have strong zeros


def transpose_block(op: Block, moving: Flags, strong: bool) -> TransposedBlock:
    """The transpose of a call or loop that is linear in the arguments that move (a loop: and in its carries)."""
    key = ("T", moving, strong)
    if key not in op.known:
        op.known[key] = (_turned_call if isinstance(op, Call) else _turned_loop)(cast(Any, op), moving, strong)
    return op.known[key]


def _turned_call(op: Call, moving: Flags, strong: bool) -> TransposedBlock:
    from .derive import transpose_linear

    flags = moving[op.fixed :]
    still, moved = [[i for i, f in enumerate(flags) if f == wanted] for wanted in (False, True)]
    turned: list[Program] = []
    strongly = [len(op.branches) > 1] * len(moved)  # a branch not taken is a selection too
    for branch in op.branches:
        slots, marks = [branch.inputs[i] for i in (*still, *moved)], list[bool]()
        turned.append(transpose_linear(branch.prune(slots, branch.outputs), len(still), strong=strong, marks=marks))
        strongly = [a or b for a, b in zip(strongly, marks, strict=True)]
    strongly = [s or all([_is_zero(p, p.outputs[j]) for p in turned]) for j, s in enumerate(strongly)]
    fixed = [*range(op.fixed), *[i + op.fixed for i in still]]
    rule = None if (own := op.rule) is None else OwnDerivative(lambda: _turned_rule(own.program, turned[0], flags))
    return TransposedBlock(
        Call(tuple(turned), not op.adjoint, rule), fixed, [], [], [i + op.fixed for i in moved], strongly
    )


def _few(program: Program, results: Sequence[int]) -> Program:
    """A program with some of its results."""
    return program.prune(program.inputs, [program.outputs[i] for i in results])


def _turned_rule(rule: Program, turned: Program, moving: Flags) -> Program:
    """The derivative of the transpose of a call, v ↦ C(a)v with the rule (a, v, da, dv) ↦ C(a)dv + D(a, da)v: it is
    (a, w, da, dw) ↦ C(a)*dw + D(a, da)*w."""
    from .derive import transpose_linear

    n = len(moving)
    still, moved = [[i for i, f in enumerate(moving) if f == wanted] for wanted in (False, True)]
    straight, xs = Program(), rule.inputs
    at = straight.like([xs[i] for i in still], rule)
    d_at = straight.like([xs[n + i] for i in still], rule)
    v, dv = straight.like([xs[i] for i in moved], rule), straight.like([xs[n + i] for i in moved], rule)
    given = dict(zip(still, at, strict=True)) | dict(zip(moved, v, strict=True))
    moves = dict(zip(still, d_at, strict=True)) | dict(zip(moved, dv, strict=True))  # linear in v and dv together
    straight.outputs = outputs(rule, straight, [*[given[i] for i in range(n)], *[moves[i] for i in range(n)]])
    back = transpose_linear(linear_steps(straight, 2 * len(still)), 2 * len(still))
    whole = Program()
    a, w = whole.like(turned.inputs[: len(still)], turned), whole.like(turned.inputs[len(still) :], turned)
    da, dw = whole.like(turned.inputs[: len(still)], turned), whole.like(turned.inputs[len(still) :], turned)
    parts = zip(outputs(turned, whole, [*a, *dw]), outputs(back, whole, [*a, *da, *w])[: len(moved)], strict=True)
    whole.outputs = [whole.step(Combination((1.0, 1.0)), pair) for pair in parts]
    return whole


def linear_steps(program: Program, still: int) -> Program:
    """A program linear in its inputs after the first `still`, in linear steps of these."""
    whole = Program()
    domain = AffineDomain[int](whole, whole, lambda slot: slot)
    slots = whole.like(program.inputs, program)
    moving = program.dependent(program.inputs[still:])
    small = program.prune(program.inputs, [s for s in program.outputs if moving[s]])
    ends = iter(domain.inline(small, slots[:still], slots[still:]))
    zeros = [None if moving[s] else whole.zeros(program.shapes[s]) for s in program.outputs]
    return whole.prune(slots, [next(ends) if z is None else z for z in zeros])


def _is_zero(program: Program, slot: int) -> bool:
    """Whether a slot holds zeros whatever the inputs are."""
    op = program.ops[slot]
    return type(op) is Constant and not np.any(dense(op.value))


def _turned_loop(op: Loop, moving: Flags, strong: bool) -> TransposedBlock:
    from .derive import transpose_linear

    c, m, slots, ends = op.consts, op.carries, op.body.inputs, op.body.outputs
    still_c, moved_c = [[i for i in range(c) if moving[i] == wanted] for wanted in (False, True)]
    still_x, moved_x = [[i for i in range(c + m, len(moving)) if moving[i] == wanted] for wanted in (False, True)]
    order = [*still_c, *still_x, *moved_c, *range(c, c + m), *moved_x]
    straight, still = op.body.prune([slots[i] for i in order], ends), len(still_c) + len(still_x)
    marks: list[bool] = []
    inner = transpose_linear(straight, still, strong=strong, marks=marks)
    moves, products = straight.dependent(straight.inputs[still:]), zip(straight.ops, straight.args, strict=True)
    chosen = [args[i] for f, args in products if type(f) is Contraction for i in f.strong]
    strongly = strong or any(marks) or not all([moves[a] for a in chosen])  # a coefficient selects
    if strongly and not strong:  # a selection in one round is one for the rounds before it
        inner = transpose_linear(straight, still, strong=True)
    body, add = Program(), Combination((1.0, 1.0))
    fixed = body.like([slots[i] for i in still_c], op.body)
    after = body.like(ends[:m], op.body)
    sums = body.like([slots[i] for i in moved_c], op.body)
    rest = body.like([slots[i] for i in still_x], op.body)
    seeds = body.like(ends[m:], op.body)
    kept = body.like(slots[c : c + m] if op.keep else (), op.body)
    found, k = outputs(inner, body, [*fixed, *rest, *after, *seeds]), len(moved_c)
    grown = [body.step(add, pair) for pair in zip(sums, found[:k], strict=True)]
    before = found[k : k + m]
    if op.keep:  # a carry that was kept when it came in has a cotangent of its own
        before = [body.step(add, pair) for pair in zip(before, kept, strict=True)]
    body.outputs = [*before, *grown, *found[k + m :]]
    back = Loop(body, len(still_c), m + k, op.length, not op.reverse, adjoint=not op.adjoint)
    results = [*inner.outputs[k : k + m], *inner.outputs[:k], *inner.outputs[k + m :]]
    partly = [strongly or (i >= m and _is_zero(inner, s)) for i, s in enumerate(results)]
    shapes = [op.body.shapes[slots[i]] for i in moved_c]
    return TransposedBlock(back, still_c, shapes, still_x, [*range(c, c + m), *moved_c, *moved_x], partly)


def narrowed(op: Block, wanted: Sequence[int]) -> tuple[Block, list[int], list[int]]:
    """The block with no more results than are wanted, and the carries that these need; the numbers of its results and
    arguments in the old one."""
    key = ("only", tuple(sorted(wanted)))
    if key not in op.known:
        if isinstance(op, Call):
            branches = [p.prune(p.inputs, [p.outputs[i] for i in key[1]]) for p in op.branches]
            rule = None if (own := op.rule) is None else OwnDerivative(lambda: _few(own.program, key[1]))
            small, left = Call(tuple(branches), op.adjoint, rule), list(key[1])
            args = list(range(op.fixed + len(op.branches[0].inputs)))
        else:
            small, left, args = _narrowed_loop(cast(Loop, op), key[1])
        op.known[key] = (op if len(left) == len(op.result(())) else small), left, args
    return op.known[key]


def _narrowed_loop(op: Loop, wanted: Sequence[int]) -> tuple[Block, list[int], list[int]]:
    body, c, m, n = op.body, op.consts, op.carries, op.carries + op.results
    keep = any([i >= n for i in wanted])
    need, more = set[int](), {*wanted, *range(m)} if keep else set(wanted)
    while more != need:  # a carry is needed if something that is needed reads it
        need = more
        live = body.needed([body.outputs[i] for i in need if i < n])
        more = need | {i for i in range(m) if live[body.inputs[c + i]]}
    carries, results = [i for i in range(m) if i in need], [i for i in range(m, n) if i in need]
    args = [*range(c), *[c + i for i in carries], *range(c + m, len(body.inputs))]
    small = body.prune([body.inputs[i] for i in args], [body.outputs[i] for i in (*carries, *results)])
    kept = range(n, n + m) if keep else ()
    return op.replaced(body=small, carries=len(carries), keep=keep), [*carries, *results, *kept], args
