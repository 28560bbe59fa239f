"""Repetition in a program: steps that are done again and again on what came out of them are drawn once.

A run is a stretch of steps in which each step does what the step one period before it did, on the same arguments or on
those one period later. Runs are found by comparing a list of small numbers with itself, shifted by each period in turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ops.op import Combination, Contraction, Elementwise, Reduction
from ...programs.program import INPUT, Constant, Program

PERIODS, WORK = 256, 1 << 22
"""Longer layers are not looked for, nor are periods compared for longer than WORK numbers."""
TIMES, MANY, SHORT = 3, 8, 32
"""What is done fewer than TIMES is drawn as it is; in programs of fewer than SHORT steps, what is not done MANY
times."""


class Repeat(NamedTuple):
    """Steps, by their positions among those that are drawn: the first period, and how often it is done."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """Behind the last step."""
        return self.start + self.period * self.times


class Drawn(NamedTuple):
    """What of a program is drawn: the slots in order, the slot that stands for each slot, the runs, the slots that are
    left out in the middle, and those (steps and arrays) that differ from round to round."""

    slots: list[int]
    stands: dict[int, int]
    runs: list[DrawnRun]
    left_out: list[int]
    varying: set[int]


class DrawnRun(NamedTuple):
    """The slots of the first round, how many rounds there are, and whether each goes on from the one before."""

    slots: list[int]
    times: int
    in_turn: bool


def drawn(program: Program, boxes: set[int], limit: int) -> Drawn:
    """The steps of a program to be drawn, runs once, at most `limit` of them; `boxes`: slots that are arrays."""
    live = program.needed(program.outputs)
    steps = [
        s
        for s, op in enumerate(program.ops)
        if live[s] and op is not INPUT and type(op) is not Constant and s not in boxes
    ]
    repeats = _repeats(program, steps)
    stands: dict[int, int] = {}
    runs: list[DrawnRun] = []
    varying: set[int] = set()
    kept, at = list[int](), 0
    for r in [*repeats, Repeat(len(steps), 0, 0)]:
        kept += steps[at : r.start]
        first, second = [steps[r.start + k * r.period : r.start + (k + 1) * r.period] for k in (0, 1)]
        stands.update([(steps[k], first[(k - r.start) % r.period]) for k in range(r.start + r.period, r.stop)])
        if first:
            inside = set(first)
            runs.append(DrawnRun(first, r.times, any([a in inside for s in second for a in program.args[s]])))
            for s, t in zip(first, second, strict=True):
                varying |= {s} if program.ops[s] != program.ops[t] else set()
                pairs = zip(program.args[s], program.args[t], strict=True)
                varying |= {a for a, b in pairs if a != b and (a in boxes or type(program.ops[a]) is Constant)}
        kept += first
        at = r.stop
    if len(kept) <= limit:
        return Drawn(kept, stands, runs, [], varying)
    head = 2 * limit // 3
    middle = kept[head : len(kept) - (limit - head)]
    gone = set(middle)
    runs = [run for run in runs if not gone & set(run.slots)]
    return Drawn([s for s in kept if s not in gone], stands, runs, middle, varying)


def _repeats(program: Program, steps: list[int]) -> list[Repeat]:
    """The runs, the longest first, none inside another; in order."""
    place = {s: k for k, s in enumerate(steps)}
    kinds: dict[Any, int] = {}
    tokens = np.array([kinds.setdefault(_token(program, s), len(kinds)) for s in steps], np.int64)
    phase: dict[int, tuple[int, int]] = {}  # of a step in a run: the run, and its place in the period
    found: list[Repeat] = []
    free = np.ones(len(steps), bool)
    while len(found) < 16:
        best = _longest(program, steps, place, tokens, free, phase)
        if best is None:
            break
        for k in range(best.start, best.stop):
            phase[k] = len(found), (k - best.start) % best.period
        found.append(best)
        free[best.start : best.stop] = False
    return sorted(found)


def _token(program: Program, slot: int) -> Any:
    """What a step does, but for its arguments and for the numbers in it."""
    op, shapes = program.ops[slot], tuple([program.shapes[a] for a in program.args[slot][:8]])
    match op:
        case Contraction():
            what: Any = op
        case Elementwise():
            what = op.primitive.name
        case Combination():
            what = len(op.coefficients)
        case Reduction():
            what = op.axis, tuple([type(r) for r in op.relations[:8]]), len(op.relations)
        case _:
            what = getattr(op, "title", "")
    return type(op), what, shapes, program.shapes[slot]


def _longest(
    program: Program, steps: list[int], place: dict[int, int], tokens: Any, free: Any, phase: dict[int, tuple[int, int]]
) -> Repeat | None:
    """The run that saves the most steps."""
    n = len(steps)
    candidates: list[tuple[int, int, int]] = []
    for p in range(1, min(PERIODS, n // TIMES, WORK // max(n, 1) + 1) + 1):
        equal = (tokens[p:] == tokens[:-p]) & free[p:] & free[:-p]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], equal.astype(np.int8), [0]])))
        for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if b - a >= (TIMES - 1) * p:
                candidates.append((-(b - a), p, a))
    best: Repeat | None = None
    for minus, p, a in sorted(candidates)[:24]:
        if best is not None and -minus <= best.period * (best.times - 1):
            break
        run = _checked(program, steps, place, phase, (a, a - minus + p, p))
        if run is not None and (best is None or run.period * (run.times - 1) > best.period * (best.times - 1)):
            best = run
    return best


def _checked(
    program: Program, steps: list[int], place: dict[int, int], phase: Any, given: tuple[int, int, int]
) -> Repeat | None:
    """The longest part of a stretch of like steps in which arguments move along too."""
    start, stop, p = given
    fits = [_alike(program, steps, place, phase, k, p) for k in range(start + p, stop)]
    best, at = None, 0
    while at < len(fits):
        if not fits[at]:
            at += 1
            continue
        end = at
        while end < len(fits) and fits[end]:
            end += 1
        first, last = start + at, start + p + end
        # the first round may take what was there before in the place of what the round before gave
        early = range(max(start, first - p), first)
        first = next((k for k in early if _follows(program, steps, place, k, first, p)), first)
        times = (last - first) // p
        if times >= (TIMES if len(steps) >= SHORT else MANY) and (best is None or times > best.times):
            best = Repeat(first, p, times)
        at = end
    return best


def _alike(program: Program, steps: list[int], place: dict[int, int], phase: Any, k: int, p: int) -> bool:
    """Whether a step and the one a period before it have corresponding arguments."""
    mine, before = program.args[steps[k]], program.args[steps[k - p]]
    return len(mine) == len(before) and all(
        [_corresponds(program, place, phase, a, b, p) for a, b in zip(mine, before, strict=True)]
    )


def _corresponds(program: Program, place: dict[int, int], phase: Any, a: int, b: int, p: int) -> bool:
    if a == b:
        return True
    x, y = place.get(a), place.get(b)
    if x is None or y is None:  # arrays that are there
        return x is None and y is None and program.shapes[a] == program.shapes[b]
    return x - y == p or (x in phase and phase[x] == phase.get(y))


def _follows(program: Program, steps: list[int], place: dict[int, int], early: int, first: int, p: int) -> bool:
    """Whether a run can begin earlier, with steps that do the same on arguments from before it."""
    for k in range(early, first):
        mine, later = program.args[steps[k]], program.args[steps[k + p]]
        for a, b in zip(mine, later, strict=True):
            x, y = place.get(a, -1), place.get(b, -1)
            inside = y - p == x and x >= early
            carried = x < early <= y < early + p and program.shapes[a] == program.shapes[b]
            if not (inside or carried or a == b or (x < 0 and y < 0 and program.shapes[a] == program.shapes[b])):
                return False
    return True
