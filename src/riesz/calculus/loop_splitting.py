"""Loops with less inside them: what does not wait for the round before is computed for all rounds at once.

    before   steps of the body that no carry reaches: one array operation with an axis for the rounds
    loop     steps on the way from carries to carries
    after    steps that no carry needs; sums that a carry collects (c ← c + u) are sums over the axis of the rounds

The derivative of a loop collects the gradient of what all rounds share: T products of small matrices, c ← c + aᵀb,
become one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ops.op import Combination, Contraction, Elementwise, contraction
from ..ops.opaque import Get, Ruled
from ..programs.passes.hoisting import hoisted
from ..programs.program import INPUT, Constant, Program, several
from ..programs.rewriting import rewritten
from ..programs.sub_programs import Loop
from ..runtime import tuning
from ..runtime.stackless import quiet
from .batching import mapped


@quiet
def apart(program: Program) -> Program:
    """The same function with its loops taken apart, but for those that run as functions of numbers; the program itself
    where nothing changes."""
    program = hoisted(program)
    read = {a for s, args in enumerate(program.args) if not isinstance(program.ops[s], Get) for a in args}
    long = [s for s, op in enumerate(program.ops) if isinstance(op, Loop) and op.length >= tuning.SPLIT_LOOP_ROUNDS]
    long = [s for s in long if "alone" not in program.ops[s].known]
    loops: dict[int, Loop] = {s: program.ops[s] for s in long if s not in read and s not in program.outputs}
    parts = {s: p for s, op in loops.items() if (p := _Parts(op)).worth}
    if not parts:
        return program
    kept = {s: again for s, part in parts.items() if (again := _computed_already(program, loops, s, part))}
    more: dict[int, dict[int, None]] = {first: {} for first in loops}  # slots to be stacked, of each loop
    for first, a in [found for again in kept.values() for found in again.values()]:
        more[first][a] = None
    for s in [s for s, slots in more.items() if slots]:
        body = loops[s].body
        parts[s] = _Parts(loops[s].replaced(body=body.prune(body.inputs, [*body.outputs, *more[s]])))
    results: dict[int, list[int]] = {}
    inside: dict[tuple[int, int], int] = {}  # slots of loops, for all rounds

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        op, args = program.ops[slot], program.args[slot]
        if slot not in parts:
            return results[args[0]][op.at] if isinstance(op, Get) and args[0] in results else None
        known = {s: inside[at] for s, at in kept.get(slot, {}).items()}
        found = parts[slot].written(whole, given, known)
        first = parts[slot].loop.carries + loops[slot].results  # where the further outputs begin
        inside.update({(slot, s): found[first + i] for i, s in enumerate(more[slot])})
        results[slot] = [*found[:first], *found[first + len(more[slot]) :]]
        return -1

    return rewritten(program, rule).pruned


class _Parts:
    """A loop whose steps are sorted into before, inside and after."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        body = self.body = loop.body
        n, k = loop.consts, loop.carries
        self.consts, self.carries, self.stacked = body.inputs[:n], body.inputs[n : n + k], body.inputs[n + k :]
        uses = body.uses()
        self.sums = {} if loop.keep else {j: s for j in range(k) if (s := self._collected(j, uses)) is not None}
        self.kept = [j for j in range(k) if j not in self.sums]
        waits = body.dependent([self.carries[j] for j in self.kept])
        ends = [body.outputs[j] for j in self.kept]
        needed = body.needed(ends)
        self.inside = {s for s in range(len(body.ops)) if waits[s] and needed[s] and body.ops[s] is not INPUT}
        last = [*body.outputs[k:], *[a for terms in self.sums.values() for a, _ in terms]]
        wanted = body.needed([*last, *ends])
        steps = [s for s, op in enumerate(body.ops) if wanted[s] and op is not INPUT and type(op) is not Constant]
        free = [s for s in steps if s not in self.inside]
        self.before = {s for s in free if not waits[s]}
        self.after = {s for s in free if waits[s]}
        inward = self.inward = {a for s in self.inside for a in body.args[s]} | set(ends)
        self.given = sorted(inward & self.before)  # computed before, read inside
        outward = {a for s in self.after for a in body.args[s]} | set(last)
        self.early = [s for s in sorted(self.before) if s in inward or s in outward]
        self.taken = sorted(outward & (self.inside | {self.carries[j] for j in self.kept}))  # inside, read after
        self.last = last

    def _collected(self, j: int, uses: list[int]) -> list[tuple[int, float]] | None:
        """The summands that a carry collects; None for a carry that does more than that."""
        body = self.body
        end, start = body.outputs[j], self.carries[j]
        op, args = body.ops[end], body.args[end]
        if type(op) is not Combination or uses[end] != 1 or uses[start] != 1 or start not in args:
            return None
        terms = [(a, c) for a, c in zip(args, op.coefficients, strict=True) if a != start]
        whole = all([body.shapes[a] == body.shapes[end] for a, _ in terms])
        return terms if whole and op.coefficients[args.index(start)] == 1.0 else None

    @property
    def worth(self) -> bool:
        """Whether something leaves the loop, not too much is kept, and no step has several results."""
        shapes = self.body.shapes
        if any(map(several, shapes)):
            return False
        stored = sum([math.prod(shapes[s]) for s in (*self.early, *self.taken)])
        return bool(self.before or self.after or self.sums) and stored * self.loop.length <= tuning.SPLIT_LOOP_NUMBERS

    def written(self, whole: Program, args: Sequence[int], known: dict[int, int]) -> list[int]:
        """The results of the loop, in a program; some slots of the body are known for all rounds."""
        loop, body = self.loop, self.body
        n, k = loop.consts, loop.carries
        consts, first, stacked = list(args[:n]), list(args[n : n + k]), list(args[n + k :])
        found = self._all_rounds(whole, self.early, known, consts, stacked)
        results, kept = [-1] * k, list[int]()
        if self.kept:
            rows = [(s, slot) for s, slot in zip(self.stacked, stacked, strict=True) if s in self.inward]
            starts = [*self.consts, *[self.carries[j] for j in self.kept], *[s for s, _ in rows], *self.given]
            inner = body.prune(starts, [*[body.outputs[j] for j in self.kept], *self.taken])
            small = loop.replaced(body=inner, carries=len(self.kept))
            carried, given = [first[j] for j in self.kept], [found[s] for s in self.given]
            ends = whole.step(small, [*consts, *carried, *[slot for _, slot in rows], *given])
            gets = [whole.step(Get(i), (ends,)) for i in range(len(small.result(())))]
            for i, j in enumerate(self.kept):
                results[j] = gets[i]
            found.update(zip(self.taken, gets[len(self.kept) :], strict=False))
            kept = gets[len(self.kept) + len(self.taken) :]
        late = self._all_rounds(whole, self.last, found, consts, stacked)
        for j, terms in self.sums.items():
            labels = tuple(range(1 + len(body.shapes[self.carries[j]])))
            total = [whole.step(contraction((labels,), labels[1:]), (late[a],)) for a, _ in terms]
            results[j] = whole.step(Combination((1.0, *[c for _, c in terms])), [first[j], *total])
        return [*results, *[late[s] for s in body.outputs[k:]], *kept]

    def _all_rounds(
        self, whole: Program, wanted: list[int], known: dict[int, int], consts: list[int], stacked: list[int]
    ) -> dict[int, int]:
        """Some slots of the body for all rounds, from those that are known already."""
        body = self.body
        known = known | dict(zip(self.stacked, stacked, strict=True))
        ask = [s for s in dict.fromkeys(wanted) if s not in known]
        part, moving = body.prune([*self.consts, *known], ask), [False] * len(consts) + [True] * len(known)
        found = mapped(part, whole, [*consts, *known.values()], moving, self.loop.length)
        return known | dict(zip(ask, found, strict=True))


@quiet
def kept_over(program: Program) -> Program:
    """The same function, whose loops backward are given what is dear in the body of a loop forward; the program itself
    where nothing changes. Arithmetic is cheaper again than from memory. See Note [Already]."""
    loops: dict[int, Loop] = {s: op for s, op in enumerate(program.ops) if isinstance(op, Loop)}
    more: dict[int, dict[int, None]] = {first: {} for first in loops}
    taken: dict[int, dict[int, tuple[int, int]]] = {}
    for second, loop in loops.items():
        body, known = loop.body, dict[int, tuple[int, int]]()
        for first in _sources(program, loops, second):
            same = _alike(program, first, loops[first], program.args[second], loop)
            known |= {s: (first, at) for s, at in same.items() if _dear(body, s)}
        live = body.needed(body.outputs, known)
        known = {s: found for s, found in known.items() if live[s]}
        numbers = loop.length * sum([math.prod(body.shapes[s]) for s in known])
        if known and numbers <= tuning.SPLIT_LOOP_NUMBERS and second not in program.outputs:
            taken[second] = known
            for first, at in known.values():
                more[first][at] = None
    if not taken:
        return program
    stacked: dict[int, dict[int, int]] = {}

    def rule(whole: Program, slot: int, given: list[int]) -> int | None:
        op, args = program.ops[slot], program.args[slot]
        if isinstance(op, Get) and more.get(args[0]):
            shift = op.at >= loops[args[0]].carries + loops[args[0]].results
            return whole.step(Get(op.at + shift * len(more[args[0]])), given)
        if slot not in loops or not (more[slot] or slot in taken):
            return None
        loop = loops[slot]
        known, body = taken.get(slot, {}), loop.body
        rows = [stacked[first][at] for first, at in known.values()]
        body = body.prune([*body.inputs, *known], [*body.outputs, *more[slot]])
        found = whole.step(loop.replaced(body=body), [*given, *rows])
        begin = loop.carries + loop.results
        stacked[slot] = {s: whole.step(Get(begin + i), (found,)) for i, s in enumerate(more[slot])}
        return found

    return rewritten(program, rule).pruned


_CHEAP = ("power", "divide", "absolute", "sign", "relu", "step", "maximum", "minimum", "larger", "floor", "trunc")


def _dear(body: Program, slot: int) -> bool:
    """Whether a step costs more than reading its result."""
    op, shape = body.ops[slot], body.shapes[slot]
    if several(shape):
        return False
    if isinstance(op, Get):
        return isinstance(body.ops[body.args[slot][0]], Ruled)
    if type(op) is Contraction:
        products = math.prod(op.sizes(tuple([body.shapes[a] for a in body.args[slot]])).values())
        return products >= 4 * math.prod(shape)
    if type(op) is Elementwise:
        p = op.primitive
        return p.name not in _CHEAP or (p.name == "power" and p.parameter not in (-2.0, -1.0, 2.0, 3.0, 4.0))
    return isinstance(op, Ruled)


def _sources(program: Program, loops: dict[int, Loop], second: int) -> list[int]:
    """The loops whose carries a loop is given, round by round."""
    loop = loops[second]
    found = {program.args[a][0] for a in program.args[second] if isinstance(program.ops[a], Get)}
    right = [f for f in sorted(found & set(loops)) if loops[f].keep and loops[f].length == loop.length]
    return [first for first in right if first not in program.outputs]


# Note [Already]: the derivative of a loop begins with the body again, at the carries that the first loop kept. What
# both compute alike the first loop stacks for the second: it takes as much memory as computing it again for all rounds.
def _computed_already(program: Program, loops: dict[int, Loop], second: int, part: _Parts) -> dict[int, Any]:
    """Slots of a loop's body, needed before the loop, that are slots of an earlier loop's body: its slot and theirs."""
    body, loop = part.body, part.loop
    given = program.args[second]
    found: dict[int, tuple[int, int]] = {}
    for first in _sources(program, loops, second):
        other = loops[first]
        if any(map(several, other.body.shapes)):
            continue
        same = _alike(program, first, other, given, loop)
        stack, seen = list(part.early), set(found)
        while stack:
            s = stack.pop()
            if s not in seen and s in part.before:
                seen.add(s)
                if s in same:
                    found[s] = first, same[s]
                else:
                    stack.extend(body.args[s])
    return found


def _alike(program: Program, first: int, other: Loop, given: Sequence[int], loop: Loop) -> dict[int, int]:
    """Which slots of a loop's body are which of another's, that of a loop whose carries it is given."""
    body = loop.body
    mine, theirs = program.args[first], other.body.inputs
    n, k = other.consts, other.carries
    shared = dict(zip(mine[:n], theirs, strict=False))
    rows = dict(zip(mine[n + k :], theirs[n + k :], strict=True))
    for a in given:
        op = program.ops[a]
        if isinstance(op, Get) and program.args[a][0] == first and op.at >= k + other.results:
            rows[a] = theirs[n + op.at - k - other.results]
    joint, there, here = Program(), dict[int, int](), dict[int, int]()  # what is written twice is found again
    joint.copy(other.body, range(len(other.body.ops)), there)
    for i, (slot, a) in enumerate(zip(body.inputs, given, strict=True)):
        found = shared.get(a) if i < loop.consts else rows.get(a) if i >= loop.consts + loop.carries else None
        here[slot] = joint.input(body.shapes[slot]) if found is None else there[found]
    joint.copy(body, [s for s in range(len(body.ops)) if s not in here], here)
    back = {at: s for s, at in reversed(there.items())}
    return {s: back[at] for s, at in here.items() if at in back}
