"""`g.profile(x)`: where the time of a compiled function goes, step by step, beside what the machine could do.

The program runs through the interpreter, each step timed; the generated code runs as a whole. A step's share of the
peak is the time its operations or its memory would take at best, whichever is longer, over the time it took; steps that
stay in the cache can beat the copy of a large array.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ..ops.number_domains import NUMBERS
from ..ops.op import Combination, Contraction, Elementwise, Reduction
from ..programs.cost import cost, flops
from ..programs.program import INPUT, Constant, Program, applied
from ..programs.sub_programs import Block, Loop
from ..runtime.displayed import Displayed
from ..spaces.formal_vectors import Formal
from ..tracing.argument_trees import flatten, numbers_of
from .common import Code

SHOWN = 25
"""How many steps are printed, the longest; the others together."""
LONG = 0.5
"""Seconds of repeated runs."""


class Peak(NamedTuple):
    """What the machine does at best: operations and bytes a second."""

    flops: float
    bandwidth: float


class Step(NamedTuple):
    """A step: median seconds, operations, bytes of its arguments and its result, share of the machine's peak."""

    slot: int
    title: str
    shape: Any
    seconds: float
    flops: int
    bytes: int
    share: float


@lru_cache
def peak(single: bool = False) -> Peak:
    """Measured once: a product of matrices in double or single precision, and a copy too large for the cache."""
    a = np.ones((512, 512), np.float32 if single else np.float64)
    b, c = np.ones(1 << 22), np.empty(1 << 22)
    product = min([_seconds(lambda: a @ a) for _ in range(7)])
    copied = min([_seconds(lambda: np.copyto(c, b)) for _ in range(7)])
    return Peak(2 * 512**3 / product, 2 * b.nbytes / copied)


def _seconds(work: Callable[[], Any], done: Callable[[Any], Any] = lambda result: result) -> float:
    start = time.perf_counter()
    done(work())
    return time.perf_counter() - start


def waited(result: Any) -> None:
    """Until arrays that are computed elsewhere, as JAX's, are there."""
    for leaf in flatten(result)[0]:
        getattr(leaf, "block_until_ready", lambda: None)()


@dataclass(eq=False)
class Profile(Displayed):
    """The steps of a compiled function with their times; `whole` is that of the generated code. Prints as a table."""

    name: str
    backend: str
    steps: list[Step]
    whole: float

    @property
    def seconds(self) -> float:
        """All steps one after the other."""
        return sum([s.seconds for s in self.steps])

    @property
    def flops(self) -> int:
        """Operations of one run."""
        return sum([s.flops for s in self.steps])

    @property
    def bytes(self) -> int:
        """Read and written by all steps."""
        return sum([s.bytes for s in self.steps])

    def table(self) -> list[tuple[str, ...]]:
        """The rows of the table as text: the longest steps in order, the others, the total."""
        longest = {s.slot for s in sorted(self.steps, key=lambda s: -s.seconds)[:SHOWN]}
        rows = [self._row(f"{s.title} → {_shape(s.shape)}", [s]) for s in self.steps if s.slot in longest]
        rest = [s for s in self.steps if s.slot not in longest]
        if rest:
            rows.append(self._row(f"{len(rest):,} other steps", rest))
        return [*rows, self._row("all steps", self.steps)]

    def _row(self, name: str, steps: list[Step]) -> tuple[str, ...]:
        seconds = sum([s.seconds for s in steps])
        peak = sum([s.share * s.seconds for s in steps]) / seconds if seconds else 0.0
        part = f"{seconds / self.seconds:.0%}" if self.seconds else "–"
        counts = _scaled(sum([s.flops for s in steps]), ""), _scaled(sum([s.bytes for s in steps]), "B")
        return name, _time(seconds), part, *counts, f"{peak:.0%}"

    def __str__(self) -> str:
        rows = [HEAD, *self.table()]
        widths = [max([len(row[k]) for row in rows]) for k in range(len(HEAD))]
        text = [f"{row[0]:{widths[0]}}  {'  '.join(map(str.rjust, row[1:], widths[1:]))}".rstrip() for row in rows]
        rule = "─" * max([len(line) for line in text])
        return "\n".join([self._title(), text[0], rule, *text[1:-1], rule, text[-1]])

    __repr__ = __str__

    def _title(self) -> str:
        times = f"takes {_time(self.whole)}; its steps one by one in the interpreter {_time(self.seconds)}"
        return f"{self.name}: backend {self.backend!r} {times}"

    def displayed(self) -> Any:
        """What a notebook shows."""
        from ..show.display.display_objects import FactTable

        return FactTable("profile", str(self), self.table(), HEAD, self._title())


HEAD = ("step", "time", "of all", "operations", "bytes", "of peak")


def profiled(name: str, code: Code, arrays: Sequence[Any], whole: Callable[[], Any], repeat: int = 7) -> Profile:
    """The profile of a program at array leaves; `whole` runs the generated code. Half a second of runs, or `repeat`."""
    program, leaves = code.program, numbers_of(arrays)
    start = time.perf_counter()
    runs = [_run(program, leaves), _run(program, leaves)]  # the first warms caches up
    while len(runs) <= repeat and time.perf_counter() - start < LONG:
        runs.append(_run(program, leaves))
    times = {slot: statistics.median([run[slot].seconds for run in runs[1:]]) for slot in runs[0]}
    steps = [_step(program, slot, times[slot], ran) for slot, ran in runs[0].items()]
    calls = [_seconds(whole, waited)]
    while len(calls) <= repeat and sum(calls) < LONG:
        calls.append(_seconds(whole, waited))
    return Profile(name, code.backend, steps, statistics.median(calls[1:] or calls))


class Ran(NamedTuple):
    """One run of a step: seconds, bytes of its arguments and result, whether they are float32."""

    seconds: float
    bytes: int
    single: bool


def _run(program: Program, leaves: Sequence[Any]) -> dict[int, Ran]:
    """One run of all steps, by slot. What nobody needs any more is let go."""
    found: dict[int, Ran] = {}
    last = {a: slot for slot, args in enumerate(program.args) for a in args} | dict.fromkeys(program.outputs, -1)
    slots = dict(zip(program.inputs, leaves, strict=True))
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if type(op) is Constant:
            slots[slot] = op.value
        elif op is not INPUT:
            given = [slots[a] for a in args]
            start = time.perf_counter()
            slots[slot] = applied(NUMBERS, op, given)
            seconds = time.perf_counter() - start
            made, read = _arrays(slots[slot]), [x for a in set(args) for x in _arrays(slots[a])]
            view = any([np.may_share_memory(x, y) for x in made for y in read])
            moved = 0 if view else sum([_stored(x) for x in (*made, *read)])
            found[slot] = Ran(seconds, moved, any([x.dtype == np.float32 for x in (*made, *read)]))
            for a in set(args):
                if last[a] == slot:
                    del slots[a]
    return found


def _step(program: Program, slot: int, seconds: float, ran: Ran) -> Step:
    op, shape = program.ops[slot], program.shapes[slot]
    if isinstance(op, Block):
        count = max([cost(p).flops for p in op.programs]) * (op.length if isinstance(op, Loop) else 1)
    else:
        count = flops(op, [program.shapes[a] for a in program.args[slot]], shape)
    top = peak(ran.single)
    best = max(count / top.flops, ran.bytes / top.bandwidth)
    return Step(slot, title(op), shape, seconds, count, ran.bytes, best / max(seconds, 1e-9))


def title(op: Any) -> str:
    """A step in a few words."""
    from ..show.notation import UNICODE
    from ..show.term_text import contract, op_title

    match op:
        case float():
            return f"({op:g} ·)"
        case Elementwise():
            name, parameter = op.primitive.name, op.primitive.parameter
            return name if parameter is None else f"{name}({parameter:g})"
        case Contraction():
            return contract(UNICODE, op).removeprefix("contract[").removesuffix("]")
        case Combination():
            return f"sum of {len(op.coefficients)}"
        case Reduction():
            return "reduction"
        case Loop():
            return f"{op_title(UNICODE, op)}, {op.length:,} rounds"
        case _:
            return op_title(UNICODE, op)


def _arrays(value: Any) -> list[Any]:
    """The arrays a value is made of."""
    if type(value) is tuple:
        return [a for part in cast("tuple[Any, ...]", value) for a in _arrays(part)]
    return [np.asarray(f) for t in value.terms for f, _ in t.factors] if type(value) is Formal else [np.asarray(value)]


def _stored(a: Any) -> int:
    """Bytes of an array, repeated axes once."""
    return a.itemsize * int(np.prod([n for n, s in zip(a.shape, a.strides, strict=True) if s or not n]))


def _time(seconds: float) -> str:
    scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (0.0, "µs")) if seconds >= s)
    return f"{seconds / (scale or 1e-6):.3g} {unit}"


def _scaled(count: int, unit: str) -> str:
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**4, "k")):
        if count >= size:
            return f"{count / (size if letter != 'k' else 1000):.3g} {letter}{unit}"
    return f"{count} {unit}".rstrip()


def _shape(shape: Any) -> str:
    if shape and type(shape[0]) is tuple:
        return ", ".join([_shape(s) for s in shape])
    return "×".join([str(n) for n in shape]) or "ℝ"
