"""Loops as NumPy source, a line of array code for each step of the body: over tiles, a function for a tile and one that
calls it for all; over the rounds of a loop of the program, a function with a `for`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ops.opaque import Get
from ...programs.axis.slices import Tiled, resize
from ...programs.program import Program
from ...programs.sub_programs import Loop
from ...runtime import buffers
from ...runtime.generated_source import defined
from ...spaces.formal_vectors import dense
from ..source_text import inside
from .array_code import FLOAT, Arrays, ArrayValue


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


# -- the rounds of a loop ----------------------------------------------------------------------------------

Found = tuple[str, Callable[..., Any], tuple[Any, ...], Arrays]


def loop_function(name: str, op: Loop, xs: Sequence[ArrayValue], read: set[int]) -> Found | None:
    """Source and function of a loop, the types of its results, and the code of its body; None where carries change
    their type, or have none. What the rounds leave behind is kept where it is `read`, and None otherwise."""
    body, n, k = op.body, op.consts, op.carries
    shapes = [body.shapes[s] for s in body.inputs]
    letters = ["c"] * n + ["k"] * k + ["x"] * (len(shapes) - n - k)
    names = [f"{letter}{i - letters.index(letter)}_" for i, letter in enumerate(letters)]
    kinds = [
        float if not shape and (x.kind is float or x.kind == FLOAT) else _stored(x.kind)
        for x, shape in zip(xs, shapes, strict=True)
    ]
    code = None if any([kind is None for kind in kinds]) else type_checked(op, names, shapes, kinds)
    if code is None:
        return None
    texts = [code.array(v).text for v in code.outputs]
    carries = list(zip(names[n : n + k], shapes[n : n + k], kinds[n : n + k], strict=True))
    rows = list(zip(names[n + k :], shapes[n + k :], kinds[n + k :], strict=True))
    results = op.result(())[k:]
    stacked = [*[v.kind for v in code.outputs[k:]], *[kind for _, _, kind in carries if op.keep]]
    stacked = [_stored(kind) for kind in stacked]
    written = [*texts[k:], *[c for c, _, _ in carries if op.keep]]
    kept = [i for i in range(len(results)) if k + i in read]
    space = code.names | {f"kind{i}_": kind for i, kind in enumerate(stacked)}
    space |= {"empty_": buffers.empty, "as_array_": as_array}
    lines = [f"{c} = as_array_({c})" for c, shape, _ in carries if shape]
    lines += [f"{x} = as_array_({x})" for x, _, _ in rows]
    lines += [f"{c} = float({c})" for c, shape, kind in carries if not shape and kind is float]
    lines += [f"y{i}_ = empty_({results[i]}, kind{i}_)" for i in kept]
    inner = [f"{x}t = {x}.item(t_)" if not shape and kind is float else f"{x}t = {x}[t_]" for x, shape, kind in rows]
    inner += [*code.lines, *[f"y{i}_[t_] = {written[i]}" for i in kept]]
    if k:
        inner.append(f"{', '.join(names[n : n + k])}, = {', '.join(texts[:k])},")
    times = f"{op.length - 1}, -1, -1" if op.reverse else f"{op.length}"
    lines += inside(f"for t_ in range({times}):", inner or ["pass"])
    ends = ", ".join([*names[n : n + k], *[f"y{i}_" if i in kept else "None" for i in range(len(results))]])
    source = "\n".join(inside(f"def {name}({', '.join(names)}):", [*lines, f"return ({ends},)"]))
    return source, defined(source, name, space), (*kinds[n : n + k], *stacked), code


def _stored(kind: Any) -> Any:
    """The type of an array of such numbers."""
    return FLOAT if kind is float else kind


def type_checked(op: Loop, names: list[str], shapes: Sequence[Any], kinds: Sequence[Any]) -> Arrays | None:
    """The code of the body, where each carry comes out as it went in."""
    n, k = op.consts, op.carries
    called = [f"{x}t" if i >= n + k else x for i, x in enumerate(names)]
    code = Arrays(op.body, [ArrayValue(*value) for value in zip(called, shapes, kinds, strict=True)])
    same = [
        v.kind is kind
        or (v.repeated and kind == FLOAT)
        or (v.kind is not float and kind is not float and v.kind == kind)
        for v, kind in zip(code.outputs[:k], kinds[n:], strict=False)
    ]
    return code if all(same) and not any([v.kind is None for v in code.outputs]) else None


def as_array(x: Any) -> Any:
    """What a step of the interpreter gives, as an array."""
    return np.asarray(dense(x))
