"""How long a placed program takes on a machine, and how much memory: from the local program alone, nothing is run.

A compiler writes the steps of a program as fewer kernels: what has one reader and mixes no positions is computed where
it is read. A kernel takes the longest of its products, its other operations, and its way through memory. What is
communicated comes on top; nothing is assumed to go on at the same time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...ops.op import Cast, Combination, Contraction, Elementwise, Reshape
from ...ops.opaque import Discrete, Get, Select, Strongly
from ...programs.cost import flops
from ...programs.program import INPUT, Constant, Program, several
from ...programs.sub_programs import Block, Loop
from ...runtime.stackless import Rule, solve
from .communication import Communication, Exchange, Names, Rims
from .machines import Machine
from .partition import Partition

INDEX_BYTES = 4
"""bytes of a position in the lists of an exchange."""


class Forecast(NamedTuple):
    """Of one device: seconds of a run, how many of them it computes and how many it communicates; the bytes that come
    to it; the bytes it holds at once, arguments, results and lists included; and whether it has room for them."""

    seconds: float
    computing: float
    moving: float
    moved: int
    memory: int
    fits: bool

    def __str__(self) -> str:
        parts = f"{timed(self.computing)} computing, {timed(self.moving)} communicating"
        fits = "" if self.fits else ", more than a device has"
        return f"{timed(self.seconds)} ({parts}), {sized(self.memory)} on each device{fits}"

    __repr__ = __str__


def timed(seconds: float) -> str:
    """3.1 ms."""
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {name}"
    return "0 s" if not seconds else f"{seconds * 1e6:.2g} µs"


def sized(count: float) -> str:
    """2.4 GB."""
    for size, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:.0f} B"


def forecast(part: Partition, machine: Machine) -> Forecast:
    """What a run of a placed program takes."""

    def rule(program: Program) -> Rule:
        told = _Walk(program, part.itemsize)
        computing = moving = 0.0
        inner = 0
        for slot, op in enumerate(program.ops):
            if isinstance(op, Block):
                found: list[tuple[float, float, int]] = []
                for body in op.programs:
                    found.append((yield (body,)))
                times = op.length if isinstance(op, Loop) else 1
                slow = max(found, key=lambda t: t[0] + t[1])
                computing, moving = computing + times * slow[0], moving + times * slow[1]
                inner = max(inner, *[t[2] for t in found])
            elif isinstance(op, (Communication, Exchange, Rims)):
                moving += _moved(op, told.shape(program.args[slot][0]), program.shapes[slot], part, machine)
            if told.kept[slot] and op is not INPUT and type(op) is not Constant and not isinstance(op, Block):
                computing += told.kernel(slot, machine)
        return computing, moving, told.peak() + inner

    computing, moving, memory = solve((part.local,), rule)
    memory += sum([lists_bytes(op) for op in {op for op in part.local.ops if isinstance(op, Exchange)}])
    moved = sum([m.bytes for m in part.moved])
    return Forecast(computing + moving, computing, moving, moved, memory, memory <= machine.memory)


def lists_bytes(op: Exchange) -> int:
    """The lists of an exchange on each device: two positions for each pair, both ways, and for the rows that travel."""
    pairs = -(-op.relation.work // op.count)
    if op.how != "exchange":
        return 2 * INDEX_BYTES * pairs
    return INDEX_BYTES * (4 * pairs + 3 * op.room) if op.listed else 0


def _moved(op: Communication | Exchange | Rims, shape: Any, result: Any, part: Partition, machine: Machine) -> float:
    """Seconds of a communication."""
    numbers = op.numbers(shape, result)
    if not numbers:
        return 0.0
    messages = None if isinstance(op, Communication) else op.messages
    inside = max(1, machine.together // _stride(op.names, part))
    return machine.collective(op.title, part.itemsize * numbers, op.count, inside, messages)


def _stride(names: Names, part: Partition) -> int:
    """How far apart devices along axes of the mesh are numbered: the last axis of a mesh varies fastest."""
    axes = list(part.sizes)
    last = max([axes.index(n) for n in names])
    return math.prod([part.sizes[n] for n in axes[last + 1 :]])


class _Walk:
    """Which steps of a program are written to memory, and what is read for each."""

    def __init__(self, program: Program, itemsize: int) -> None:
        self.program, self.itemsize = program, itemsize
        uses, ends = program.uses(), {*program.outputs}
        self.kept = [slot in ends or uses[slot] != 1 or not _fuses(op) for slot, op in enumerate(program.ops)]
        self.work: list[tuple[int, int]] = []  # of a step and those fused into it: products, other operations
        self.read: list[tuple[int, ...]] = []  # the slots in memory that it reads
        for slot, op in enumerate(program.ops):
            self._step(slot, op)

    def _step(self, slot: int, op: Any) -> None:
        p = self.program
        args = p.args[slot]
        products = numbers = 0
        if op is not INPUT and type(op) is not Constant and not isinstance(op, (Block, Communication, Exchange)):
            n = flops(op, [p.shapes[a] for a in args], p.shapes[slot])
            products, numbers = (n, 0) if _multiplies(op) else (0, n)
        read: dict[int, None] = {}
        for a in args:
            if self.kept[a]:
                read[a] = None
            else:
                products, numbers = products + self.work[a][0], numbers + self.work[a][1]
                read.update(dict.fromkeys(self.read[a]))
        self.work.append((products, numbers))
        self.read.append(tuple(read))

    def shape(self, slot: int) -> Any:
        """The shape of a value."""
        return self.program.shapes[slot]

    def bytes(self, slot: int) -> int:
        """The bytes of a value in memory."""
        op, shape = self.program.ops[slot], self.program.shapes[slot]
        if type(op) is Get or type(op) is Reshape:
            return 0
        if type(op) is Constant:
            return self.itemsize * sum([math.prod(getattr(a, "shape", ())) for a in op.arrays])
        return self.itemsize * (sum(map(math.prod, shape)) if several(shape) else math.prod(shape))

    def kernel(self, slot: int, machine: Machine) -> float:
        """Seconds of a kernel."""
        op = self.program.ops[slot]
        if type(op) in (Get, Reshape, Rims) or (isinstance(op, Communication) and op.kind not in ("part", "clear")):
            return 0.0
        products, numbers = self.work[slot]
        passed = self.bytes(slot) + sum([self.bytes(a) for a in self.read[slot]])
        if isinstance(op, Exchange) and op.listed:  # each pair reads a row, and where it lies
            width = self.itemsize * op.width(self.program.shapes[self.program.args[slot][0]])
            pairs = -(-op.relation.work // op.count)
            passed += pairs * (max(width, machine.sector) + 2 * INDEX_BYTES) + 2 * self.gathered(slot)
        return machine.start + max(products / machine.products, numbers / machine.numbers, passed / machine.bandwidth)

    def gathered(self, slot: int) -> int:
        """The bytes of rows that are gathered, one for each pair, before they are added up."""
        op = self.program.ops[slot]
        if not isinstance(op, Exchange) or not op.listed or op.relation.count <= op.relation.target.size:
            return 0
        width = op.width(self.program.shapes[self.program.args[slot][0]])
        return self.itemsize * width * -(-op.relation.work // op.count)

    def peak(self) -> int:
        """The bytes held at once: arguments and results all the time, other values until they are read last."""
        p = self.program
        last = [-1] * len(p.ops)
        for slot in range(len(p.ops)):
            if self.kept[slot]:
                for a in self.read[slot]:
                    last[a] = slot
        always = {*p.inputs, *p.outputs, *[s for s, op in enumerate(p.ops) if type(op) is Constant]}
        held = sum([self.bytes(s) for s in always])
        now = most = 0
        freed: dict[int, list[int]] = {}
        for slot in range(len(p.ops)):
            if self.kept[slot] and slot not in always:
                now += self.bytes(slot)
                freed.setdefault(last[slot], []).append(slot)
            most = max(most, now + self.gathered(slot))
            now -= sum([self.bytes(s) for s in freed.get(slot, ())])
        return held + most


def _fuses(op: Any) -> bool:
    """Whether a step with one reader is computed there."""
    if type(op) in (float, Elementwise, Combination, Cast, Reshape, Select, Discrete, Constant):
        return True
    return (type(op) is Contraction and not _sums(op)) or isinstance(op, Strongly)


def _sums(op: Contraction) -> bool:
    return any([k not in op.out for labels in op.labels for k in labels])


def _multiplies(op: Any) -> bool:
    """Whether a step is a product of matrices: both factors have labels of their own."""
    if type(op) is not Contraction or len(op.labels) < 2 or not _sums(op):
        return False
    every = [{*ls} for ls in op.labels]
    return all([ls.difference(*every[:i], *every[i + 1 :]) for i, ls in enumerate(every)])
