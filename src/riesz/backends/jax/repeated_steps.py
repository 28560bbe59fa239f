"""Repetitions in a straight program: the same steps on other values, round after round, to be written as one loop.

Two steps are alike if their ops, shapes and the types of what they are given are; a stretch of steps repeats with
period p if each is like the one p before. Windows of 1, 2, 4, … steps get numbers, equal ones the same; the distance to
the window before with the same number is the period, once the window is as long as that. What a round takes is then
sorted into four: made in this round, in the round before (a carry), by somebody else and always the same, or different
each time (stacked).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ...runtime import tuning


class Stretch(NamedTuple):
    """Steps from `start` on that repeat `rounds` times with a period."""

    start: int
    period: int
    rounds: int

    @property
    def saved(self) -> int:
        """How many steps need not be written."""
        return (self.rounds - 1) * self.period


def stretches(kinds: Sequence[Hashable]) -> list[Stretch]:
    """Repetitions in a sequence, apart from each other, in order; of those that overlap the one that saves most."""
    found: list[Stretch] = []
    names: dict[Hashable, int] = {}
    windows = [names.setdefault(k, len(names)) for k in kinds]
    width = 1
    while windows and width <= tuning.REPEATED_PERIOD:
        found.extend(_repeated(windows, width))
        pairs: dict[tuple[int, int], int] = {}
        windows = [pairs.setdefault((a, b), len(pairs)) for a, b in zip(windows, windows[width:], strict=False)]
        width *= 2
    taken = bytearray(len(kinds))
    kept: list[Stretch] = []
    for one in sorted(found, key=lambda s: (-s.saved, s.period)):
        end = one.start + one.rounds * one.period
        if not any(taken[one.start : end]):
            taken[one.start : end] = b"\1" * (end - one.start)
            kept.append(one)
    return sorted(kept)


def _repeated(windows: list[int], width: int) -> list[Stretch]:
    """Maximal intervals in which the distance to the equal window before is one number, no more than the width."""
    last: dict[int, int] = {}
    found: list[Stretch] = []
    begin, period = 0, 0
    for i, window in enumerate([*windows, -1]):
        distance = i - last[window] if window in last else 0
        last[window] = i
        if distance != period:
            start = begin - period
            rounds = (i - 1 + width - start) // period if period else 0
            saved = (rounds - 1) * period
            if 0 < period <= width and rounds >= tuning.REPEATED_ROUNDS and saved >= tuning.REPEATED_STEPS_SAVED:
                found.append(Stretch(start, period, rounds))
            begin, period = i, distance
    return found


class Round(NamedTuple):
    """What the steps of a round take: for each step and argument ("here", j), ("before", k), ("same", slot) or ("each",
    k).

    `before` lists (j, first): the result of step j in the round before, in the first round the slot `first`. `each`
    lists slots, round by round.
    """

    rounds: int
    takes: list[list[tuple[str, int]]]
    before: list[tuple[int, int]]
    each: list[tuple[int, ...]]


def sorted_out(
    args: Sequence[Sequence[int]], steps: Sequence[int], place: dict[int, int], start: int, period: int, rounds: int
) -> Round | None:
    """The arguments of a stretch, for as many rounds as they fit; step i has args[i] and makes steps[i]; `place` is the
    step a slot is made by."""

    def at(r: int, j: int, k: int) -> tuple[str, int]:
        slot = args[start + r * period + j][k]
        step = place.get(slot, -1) - start
        if step < 0:
            return "other", 0
        back = r - step // period if steps[start + step] == slot else -1
        return {0: "here", 1: "before"}.get(back, "far"), step % period

    def takes(r: int) -> list[list[tuple[str, int]]]:
        return [[at(r, j, k) for k in range(len(args[start + j]))] for j in range(period)]

    first, kinds = takes(0), takes(1)
    outside = [[take if take[0] == "here" else ("other", 0) for take in row] for row in kinds]
    if first != outside or any([kind == "far" for row in kinds for kind, _ in row]):
        return None
    rounds = next((r for r in range(2, rounds) if takes(r) != kinds), rounds)
    before: dict[tuple[int, int], int] = {}
    each: dict[tuple[int, ...], int] = {}

    def sorted_take(j: int, k: int) -> tuple[str, int]:
        kind, which = kinds[j][k]
        if kind == "before":
            return kind, before.setdefault((which, args[start + j][k]), len(before))
        if kind == "here":
            return kind, which
        slots = tuple([args[start + r * period + j][k] for r in range(rounds)])
        return ("same", slots[0]) if len(set(slots)) == 1 else ("each", each.setdefault(slots, len(each)))

    found = [[sorted_take(j, k) for k in range(len(row))] for j, row in enumerate(kinds)]
    return Round(rounds, found, list(before), list(each))
