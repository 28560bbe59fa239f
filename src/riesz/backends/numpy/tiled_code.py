"""Loops over tiles as NumPy source: a function for a tile, a line of array code for each of its steps, and one that
calls it for all tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ...ops.opaque import Get
from ...programs.axis.slices import Tiled, resize
from ...programs.program import Program
from ...programs.sub_programs import Loop
from ...runtime.generated_source import defined
from .array_code import FLOAT, Arrays, ArrayValue
from .round_code import loop_function


class TiledArrays(Arrays):
    """Statements that run a program with loops over tiles; `tiles` is the source of the functions these call."""

    def __init__(self, program: Program, inputs: Sequence[ArrayValue]) -> None:
        self.tiles: list[str] = []
        self._results: dict[int, list[ArrayValue]] = {}
        super().__init__(program, inputs)

    @cached_property
    def _read(self) -> dict[int, set[int]]:
        """Which results of a step with several are read, by the program as it is written down."""
        found: dict[int, set[int]] = {}
        for op, args in zip(self._program.ops, self._program.args, strict=True):
            if isinstance(op, Get):
                found.setdefault(args[0], set()).add(op.at)
        return found

    def _step(self, op: Any, xs: list[ArrayValue]) -> ArrayValue:
        if isinstance(op, Tiled):
            return self._tiled(op, xs)
        if isinstance(op, Loop):
            return self._rounds(op, xs)
        if isinstance(op, Get) and self._program.args[self._slot][0] in self._results:
            return self._results[self._program.args[self._slot][0]][op.at]
        return super()._step(op, xs)

    def _tiled(self, op: Tiled, xs: list[ArrayValue]) -> ArrayValue:
        slot, work = self._slot, dict[int, Callable[..., Any]]()
        kinds: list[Any] = []
        for m in op.lengths:
            name = f"tile_{slot}" if m == op.lengths[0] else f"tile_{slot}_{m}"
            code, source, work[m] = tile_function(name, op, m, xs)
            kinds = [v.kind for v in code.outputs]
            self.tiles.append(source)
            self.called.extend(code.called if m == op.lengths[0] else [])

        def tiles(*given: Any) -> tuple[Any, ...]:
            return op.loop(given, work)

        names = [f"t{slot}_{j}" for j in range(len(kinds))]
        self.lines.append(
            f"{', '.join(names)}, = {self._name(f'tiles_{slot}', tiles)}({', '.join([x.text for x in xs])})"
        )
        shapes, whole = op.result(()), [FLOAT if kind is float else kind for kind in kinds]
        self._results[slot] = [
            ArrayValue(name, shape, k if shape else kind, bool(shape) and k is not None)
            for name, shape, kind, k in zip(names, shapes, kinds, whole, strict=True)
        ]
        return ArrayValue(f"tiles_{slot}", shapes, None)

    def _rounds(self, op: Loop, xs: list[ArrayValue]) -> ArrayValue:
        slot = self._slot
        found = loop_function(f"rounds_{slot}", op, xs, self._read.get(slot, set()))
        if found is None:
            return self._call(op, xs)
        source, run, kinds, code = found
        self.tiles.append(source)
        self.called.extend(code.called)
        shapes = op.result(())
        names = [f"t{slot}_{j}" for j in range(len(kinds))]
        given = ", ".join([self._array(x).text for x in xs])
        self.lines.append(f"{', '.join(names)}, = {self._name(f'rounds_{slot}', run)}({given})")
        self._results[slot] = [
            ArrayValue(name, shape, kind, bool(shape) and j >= op.carries)
            for j, (name, shape, kind) in enumerate(zip(names, shapes, kinds, strict=True))
        ]
        for a in self._program.args[slot]:  # carries may be handed on as they came
            self._values[a] = self._values[a].shared
        return ArrayValue(f"rounds_{slot}", shapes, None)


def tile_function(name: str, op: Tiled, m: int, xs: Sequence[ArrayValue]) -> tuple[Arrays, str, Callable[..., Any]]:
    """The code of a tile of m positions, its source, and the function."""
    body = op.body
    inputs = [
        ArrayValue(f"x{j}", resize(x.shape, op.axes[s], m), x.kind)
        for j, (x, s) in enumerate(zip(xs, body.inputs, strict=True))
    ]
    code = Arrays(op.at(m), inputs)
    texts = [v.text if not v.repeated else f"{code.wide}({v.text}, {v.shape})" for v in code.outputs]
    header = f"def {name}({', '.join([v.text for v in inputs])}):  # {m:,} of {op.length:,} positions"
    source = "\n".join([header, *[f"    {line}" for line in code.lines], f"    return ({', '.join(texts)},)"])
    return code, source, defined(source, name, code.names)
