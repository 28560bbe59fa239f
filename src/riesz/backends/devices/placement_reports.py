"""What a placement costs, in words and numbers: step by step, and compared with other placements. No devices are
needed for that."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from ...calculus.loop_splitting import apart
from ...functions.traces.records import Record
from ...programs.cost import cost
from ...programs.passes.folding import folded
from ...programs.passes.fusing import ready
from ...programs.program import INPUT, Constant, Program, several
from ...relations.index_sets import Set
from ...runtime import tuning
from .forecasts import Forecast, forecast, sized, timed
from .machines import Machine
from .partition import Moved, Partition, by_sets, spec_text
from .placing import Placing, candidates, checked_mesh


class PlacedCost(NamedTuple):
    """Of one device: operations of one run, numbers held in constants, and bytes that come from other devices."""

    flops: int
    numbers: int
    moved: int


def placed_cost(part: Partition) -> PlacedCost:
    own = cost(part.local)
    held = sum([math.prod(part.local_shape(np.shape(a), s)) for a, s in part.extra])
    return PlacedCost(own.flops, own.numbers + held, sum([m.bytes for m in part.moved]))


def warned(name: str, part: Partition) -> None:
    """Say which steps gather what was placed."""
    forced = [m for m in part.moved if m.forced]
    if forced:
        m = max(forced, key=lambda m: m.bytes)
        more = f" (and {len(forced) - 1} more)" if len(forced) > 1 else ""
        what = f"step {m.slot}, {m.why}: {m.bytes:,} bytes come to each device along {', '.join(m.names)}{more}"
        how = "place another axis of it, or leave it whole; g.explain() lists all steps"
        warnings.warn(f"{name}: {what}. {how}", UserWarning, stacklevel=5)


def explained(part: Partition) -> str:
    """A line for each step, and below it what travels for it."""
    p, rows = part.program, list[str]()
    moved: dict[int, list[Moved]] = {}
    for m in part.moved:
        moved.setdefault(m.slot, []).append(m)
    number = {slot: k for k, slot in enumerate(p.inputs)}
    for slot, op in enumerate(p.ops):
        if len(rows) > tuning.EXPLAINED_STEPS and slot not in moved:
            continue
        if op is INPUT:
            what = f"input {number[slot]}"
        elif type(op) is Constant:
            what = "constant"
        else:
            what = str(op) if type(op) is float else op.title
        spec = part.specs[slot]
        if several(p.shapes[slot]):
            text = ", ".join(map(spec_text, spec)) if spec else "whole"
        else:
            text = spec_text(spec, part.partial[slot])
        args = f" of {', '.join(map(str, p.args[slot]))}" if p.args[slot] else ""
        rows.append(f"{slot:5d}  {what}{args}: {_shape(p.shapes[slot])} {text}")
        rows.extend([f"         {m.kind} over {', '.join(m.names)}: {m.bytes:,} bytes" for m in moved.get(slot, [])])
    total = sum([m.bytes for m in part.moved])
    ends = ", ".join(map(spec_text, part.ends))
    last = f"{total:,} bytes come to each device in {len(part.moved)} communications" if total else "nothing travels"
    return "\n".join([*rows, f"results: {ends}", last])


def _shape(shape: Any) -> str:
    return "several" if several(shape) else "number" if not shape else " × ".join(map(str, shape))


class PlacementPlan(NamedTuple):
    """Placements of one function on so many devices, the cheapest first: axes of the mesh, place, cost, bytes of
    arguments and results; and for each what is forecast, where a machine was given."""

    name: str
    devices: int
    rows: list[tuple[dict[str, int], dict[Set, str], PlacedCost, int]]
    forecasts: tuple[Forecast, ...] = ()

    @property
    def axes(self) -> dict[str, int]:
        """The axes of the mesh that is proposed."""
        return self.rows[0][0]

    @property
    def place(self) -> dict[Set, str]:
        """The placement that is proposed."""
        return self.rows[0][1]

    def __str__(self) -> str:
        head = f"{self.name} on {self.devices} devices, of each device:"
        table = [("place", "operations", "bytes that come", "bytes of arguments and results")]
        for axes, place, one, held in self.rows:
            where = ", ".join([f"{X}: {n!r} ({axes[n]})" for X, n in place.items()]) or "everything everywhere"
            table.append((where, f"{one.flops:,}", f"{one.moved:,}", f"{held:,}"))
        if self.forecasts:
            told = [(timed(f.seconds), sized(f.memory) + ("" if f.fits else ", too much")) for f in self.forecasts]
            table = [(*row, *more) for row, more in zip(table, [("time", "memory"), *told], strict=True)]
        wide = [max([len(row[k]) for row in table]) for k in range(len(table[0]))]
        lines = ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in table]
        return "\n".join([head, *lines])

    __repr__ = __str__


def partition(record: Record, place: Placing) -> Partition:
    """A trace placed on a mesh, of which only the lengths of its axes need be known."""
    return Partition(_program(record), place.specs, checked_mesh(place.mesh), _itemsize(record), sets=place.sets)


def _program(record: Record) -> Program:
    return folded(ready(apart(record.program)))


def _itemsize(record: Record) -> int:
    return max([a.dtype.itemsize for a in record.outputs if a.dtype.kind == "f"], default=8)


def compared(name: str, record: Record, devices: int, machine: Machine | None = None) -> PlacementPlan:
    """Placements of a trace, the cheapest first: what fits and takes least time on a machine; without one a byte that
    comes counts `tuning.BYTE_OPERATIONS` operations."""
    program, size = _program(record), _itemsize(record)
    rows: list[Any] = []
    told: list[Forecast] = []
    for axes, place in candidates([a.shape for a in record.avals], devices):
        sets = {X.box or (): (n,) for X, n in place.items()}
        specs = [by_sets(program.shapes[s], sets) for s in program.inputs]
        part = Partition(program, specs, axes, size, sets=sets)
        ends = zip([*program.inputs, *program.outputs], [*specs, *part.ends], strict=True)
        held = size * sum([math.prod(part.local_shape(program.shapes[s], spec)) for s, spec in ends])
        rows.append((axes, place, placed_cost(part), held))
        if machine is not None:
            told.append(forecast(part, machine))
    if machine is None:
        rows.sort(key=lambda row: row[2].flops + tuning.BYTE_OPERATIONS * row[2].moved)
        return PlacementPlan(name, devices, rows)
    order = sorted(range(len(rows)), key=lambda k: (not told[k].fits, told[k].seconds))
    return PlacementPlan(name, devices, [rows[k] for k in order], tuple([told[k] for k in order]))
