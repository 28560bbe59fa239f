"""Loops over tiles as NumPy source: a function for a tile, a line of array code for each of its steps, and one that
calls it for all tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.opaque import Get
from ...programs.axis.slices import Tiled, resize
from ...programs.program import Program
from ...programs.sub_programs import Loop
from ...runtime.generated_source import defined
from ..source_text import inside
from .array_code import FLOAT, Arrays, ArrayValue
from .round_code import loop_function


class TiledArrays(Arrays):
    """Statements that run a program with loops over tiles; `tiles` is the source of the functions these call."""

    def __init__(self, program: Program, inputs: Sequence[ArrayValue]) -> None:
        self.tiles: list[str] = []
        self._results: dict[int, list[ArrayValue]] = {}
        super().__init__(program, inputs)

    def _step(self, op: Any, xs: list[ArrayValue]) -> ArrayValue:
        if isinstance(op, Tiled):
            return self._tiled(op, xs)
        if isinstance(op, Loop):
            return self._rounds(op, xs)
        if isinstance(op, Get) and self._args[0] in self._results:
            return self._results[self._args[0]][op.at]
        return super()._step(op, xs)

    def _several(self, name: str, run: Any, given: list[str], values: list[tuple[Any, Any, bool]]) -> ArrayValue:
        """A call that gives several values: shapes, kinds, and whether nobody else holds their memory."""
        slot = self._slot
        found = [ArrayValue(f"t{slot}_{j}", *value) for j, value in enumerate(values)]
        call = f"{self._name(f'{name}_{slot}', run)}({', '.join(given)})"
        self.lines.append(f"{', '.join([v.text for v in found])}, = {call}")
        self._results[slot] = found
        return ArrayValue(f"{name}_{slot}", tuple([v.shape for v in found]), None)

    def _tiled(self, op: Tiled, xs: list[ArrayValue]) -> ArrayValue:
        work: dict[int, Callable[..., Any]] = {}
        kinds: list[Any] = []
        for m in op.lengths:
            first = m == op.lengths[0]
            code, source, work[m] = tile_function(f"tile_{self._slot}{'' if first else f'_{m}'}", op, m, xs)
            kinds = [v.kind for v in code.outputs]
            self.tiles.append(source)
            self.called.extend(code.called if first else [])

        def tiles(*given: Any) -> tuple[Any, ...]:
            return op.loop(given, work)

        values: list[tuple[Any, Any, bool]] = []
        for shape, kind in zip(op.result(()), kinds, strict=True):
            values.append((shape, FLOAT if kind is float and shape else kind, bool(shape) and kind is not None))
        return self._several("tiles", tiles, [x.text for x in xs], values)

    def _rounds(self, op: Loop, xs: list[ArrayValue]) -> ArrayValue:
        gets = zip(self.program.ops, self.program.args, strict=True)
        read = {g.at for g, args in gets if isinstance(g, Get) and args[0] == self._slot}
        if (alone := op.known.get("alone")) is not None:  # the types of what its function of numbers gives
            shapes = op.result(())
            values = [(s, k if s or k != FLOAT else float, bool(s)) for s, k in zip(shapes, alone, strict=True)]
            return self._several("loop", op.run, [self.array(x).text for x in xs], values)
        found = loop_function(f"rounds_{self._slot}", op, xs, read)
        if found is None:
            return self._call(op, xs)
        source, run, kinds, code = found
        self.tiles.append(source)
        self.called.extend(code.called)
        self._shared()  # carries may be handed on as they came
        values = list(enumerate(zip(op.result(()), kinds, strict=True)))
        values = [(shape, kind, bool(shape) and j >= op.carries) for j, (shape, kind) in values]
        return self._several("rounds", run, [self.array(x).text for x in xs], values)


def tile_function(name: str, op: Tiled, m: int, xs: Sequence[ArrayValue]) -> tuple[Arrays, str, Callable[..., Any]]:
    """The code of a tile of m positions, its source, and the function."""
    given = zip(xs, op.body.inputs, strict=True)
    inputs = [ArrayValue(f"x{j}", resize(x.shape, op.axes[s], m), x.kind) for j, (x, s) in enumerate(given)]
    code = Arrays(op.at(m), inputs)
    header = f"def {name}({', '.join([v.text for v in inputs])}):  # {m:,} of {op.length:,} positions"
    end = f"return ({', '.join([code.array(v).text for v in code.outputs])},)"
    source = "\n".join(inside(header, [*code.lines, end]))
    return code, source, defined(source, name, code.names)
