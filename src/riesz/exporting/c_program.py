"""A program as C99: one function, static buffers, math.h and nothing else.

Numbers without axes are local variables, arrays are buffers; reshaped arrays are the same buffer. A sum along a
relation goes through a slice where it is one, else through a table of positions. Loops are loops, branches are
branches.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import TraceError
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import ANYWHERE, Discrete, Get, Put, Select, Take
from ..programs.program import INPUT, Constant, Program
from ..programs.sub_programs import Call, Loop
from ..relations.kinds import Triangular
from ..spaces.formal_vectors import dense
from .c_formulas import DISCRETE, HELPERS, formula, number
from .op_writers import OpWriters

Shape = tuple[int, ...]


class Ref(NamedTuple):
    """Where a slot is: a C expression, a number or a pointer to its first number."""

    text: str
    shape: Shape

    def at(self, place: str) -> str:
        """The number at a flat place."""
        return self.text if not self.shape else f"{self.text}[{place}]"


class CProgram:
    """The lines of a program."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.buffers: list[str] = []  # declarations of static arrays
        self.tables: list[str] = []
        self._known: dict[Any, str] = {}
        self._keep: list[Any] = []
        self.depth = 1
        self._count = 0
        self.helpers: set[str] = set()

    def name(self, what: str) -> str:
        """A new name."""
        self._count += 1
        return f"{what}{self._count}"

    def line(self, text: str) -> None:
        """A line at the depth there is."""
        self.lines.append("    " * self.depth + text)

    def loop(self, index: str, count: Any) -> None:
        """The head of a loop."""
        self.line(f"for (int {index} = 0; {index} < {count}; {index}++) {{")
        self.depth += 1

    def close(self, times: int = 1) -> None:
        """Ends of blocks."""
        for _ in range(times):
            self.depth -= 1
            self.line("}")

    def new(self, shape: Shape) -> Ref:
        """A new slot, to be written to."""
        if not shape:
            name = self.name("s")
            self.line(f"real {name};")
            return Ref(name, shape)
        name = self.name("a")
        size = max(math.prod(shape), 1)
        self.buffers.append(f"static real {name}[{size}];")
        return Ref(name, shape)

    def table(self, array: Any, kind: str) -> str:
        """A constant array of numbers."""
        array = np.ascontiguousarray(array)
        key = (kind, array.shape, array.tobytes())
        if key not in self._known:
            name = self._known[key] = self.name("k")
            flat = [str(int(v)) if kind == "int" else number(v) for v in array.ravel()] or ["0"]
            rows = [", ".join(flat[i : i + 8]) for i in range(0, len(flat), 8)]
            self.tables.append(
                f"static const {kind} {name}[{len(flat)}] = {{\n    {(',' + chr(10) + '    ').join(rows)}}};"
            )
        return self._known[key]

    def constant(self, value: Any) -> Ref:
        """A fixed vector."""
        array = np.asarray(dense(value))
        if not array.ndim:
            return Ref(number(array), ())
        return Ref(self.table(array.astype(float), "real"), array.shape)

    # -- steps ---------------------------------------------------------------------------------------------

    def program(self, program: Program, given: Sequence[Ref]) -> list[Ref]:
        """The outputs of a program written here."""
        refs: dict[int, Any] = dict(zip(program.inputs, given, strict=True))
        live = program.needed(program.outputs)
        for slot in scheduled(program, [bool(f) and s not in refs for s, f in enumerate(live)]):
            op, args = program.ops[slot], program.args[slot]
            if type(op) is Constant:
                refs[slot] = self.constant(op.value)
                continue
            refs[slot] = C.of(op)(self, op, [refs[a] for a in args], program.shapes[slot])
        return [refs[s] for s in program.outputs]

    def nest(self, shape: Shape, write: Callable[[list[str]], None]) -> None:
        """Loops over all indices of a shape around what `write` writes."""
        names = [self.name("i") for _ in shape]
        for name, n in zip(names, shape, strict=True):
            self.loop(name, n)
        write(names)
        self.close(len(shape))

    def pointwise(self, xs: Sequence[Ref], shape: Shape, text: Callable[[list[str]], str]) -> Ref:
        """A formula at every index; arguments are broadcast."""
        found = self.new(shape)
        if all([x.shape in ((), shape) for x in xs]):
            if not shape:
                self.line(f"{found.text} = {text([x.text for x in xs])};")
                return found
            i = self.name("i")
            self.loop(i, math.prod(shape))
            self.line(f"{found.text}[{i}] = {text([x.at(i) for x in xs])};")
            self.close()
            return found

        def write(names: list[str]) -> None:
            parts = [x.at(flat(names[len(names) - len(x.shape) :], x.shape, x.shape)) for x in xs]
            self.line(f"{found.at(flat(names, shape, shape))} = {text(parts)};")

        self.nest(shape, write)
        return found

    def copy(self, source: Ref, target: Ref) -> None:
        """Numbers copied."""
        if not source.shape:
            self.line(f"{target.text} = {source.text};")
            return
        i = self.name("i")
        self.loop(i, math.prod(source.shape))
        self.line(f"{target.text}[{i}] = {source.text}[{i}];")
        self.close()


def scheduled(program: Program, live: Sequence[bool]) -> list[int]:
    """An order of the steps in which elementwise ones of a shape follow each other where they can: their loops are
    joined later."""
    waits = [sum([live[a] for a in set(args)]) for args in program.args]
    readers: list[list[int]] = [[] for _ in waits]
    ready, alike = list[int](), dict[Any, list[int]]()
    done = bytearray(len(waits))
    order: list[int] = []

    def enter(slot: int) -> None:
        heapq.heappush(ready, slot)
        if (shape := _elementwise_shape(program, slot)) is not None:
            heapq.heappush(alike.setdefault(shape, []), slot)

    for slot, args in enumerate(program.args):
        if live[slot]:
            for a in set(args):
                readers[a].append(slot)
            if not waits[slot] and program.ops[slot] is not INPUT:
                enter(slot)
    last: Any = None
    while ready:
        slot = heapq.heappop(alike[last]) if alike.get(last) else heapq.heappop(ready)
        if done[slot]:
            continue
        done[slot] = 1
        order.append(slot)
        last = _elementwise_shape(program, slot)
        for reader in readers[slot]:
            waits[reader] -= 1
            if not waits[reader]:
                enter(reader)
    return order


def _elementwise_shape(program: Program, slot: int) -> Any:
    """The shape of a step that is elementwise; None for others."""
    op, shape = program.ops[slot], program.shapes[slot]
    if type(op) is Contraction:
        plain = {k for labels in op.labels for k in labels} <= set(op.out) and not op.repeats
    else:
        plain = isinstance(op, (float, Elementwise, Combination, Select)) or (
            type(op) is Discrete and op.shaped is None and op is not ANYWHERE
        )
    return shape if plain and shape else None


def flat(names: Sequence[str], shape: Shape, sizes: Shape) -> str:
    """The flat place of indices in an array; axes of length 1 are broadcast."""
    text = ""
    for name, n in zip(names, shape, strict=True):
        here = "0" if n == 1 else name
        text = here if not text or text == "0" else f"({text}) * {n} + {here}" if here != "0" else f"({text}) * {n}"
    return text or "0"


def strided(names: Sequence[str], shape: Shape) -> str:
    """The flat place of labels in an array."""
    text = ""
    for name, n in zip(names, shape, strict=True):
        text = name if not text else f"({text}) * {n} + {name}"
    return text or "0"


C = OpWriters("C")
"""An op in C: the reference of its result, from those of its arguments."""

ORDERED: dict[str, Callable[..., Ref]] = {}
"""By name, functions without a derivative that are not elementwise."""


@C("`k * x`", float)
def _scaled(c: CProgram, op: float, xs: list[Ref], shape: Shape) -> Ref:
    return c.pointwise(xs, shape, lambda t: f"{number(op)} * {t[0]}")


@C("a sum", Combination)
def _combination(c: CProgram, op: Combination, xs: list[Ref], shape: Shape) -> Ref:
    def text(t: list[str]) -> str:
        parts = [v if k == 1.0 else f"{number(k)} * {v}" for k, v in zip(op.coefficients, t, strict=True)]
        return " + ".join(parts)

    return c.pointwise(xs, shape, text)


@C("the same numbers", Reshape)
def _reshape(c: CProgram, op: Reshape, xs: list[Ref], shape: Shape) -> Ref:
    x = xs[0]
    if not shape:
        return Ref(x.at("0"), ())
    if x.shape:
        return Ref(x.text, shape)
    found = c.new(shape)
    c.line(f"{found.text}[0] = {x.text};")
    return found


C("one of several results", Get)(lambda c, op, xs, shape: xs[0][op.at])


@C("`c ? a : b`", Select)
def _select(c: CProgram, op: Select, xs: list[Ref], shape: Shape) -> Ref:
    return c.pointwise(xs, shape, lambda t: f"{t[0]} != 0 ? {t[1]} : {t[2]}")


_WHOLE = {"int8": "signed char", "int16": "short", "int32": "int"}
_WHOLE |= {"uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int"}


@C("a formula of math.h", Elementwise)
@C("a cast", Cast)
@C("a comparison", Discrete)
def _elementwise(c: CProgram, op: Any, xs: list[Ref], shape: Shape) -> Ref:
    if op is ANYWHERE:
        found = c.new(())
        c.line(f"{found.text} = 1;")
        i = c.name("i")
        c.loop(i, max(math.prod(xs[0].shape), 1))
        c.line(f"if ({xs[0].at(i)} != 0) {found.text} = 0;")
        c.close()
        return found
    if mixes(op):
        return ORDERED[op.function.__name__](c, xs, shape, **dict(op.parameters))
    text = template(c, op)
    return xs[0] if text == "{0}" else c.pointwise(xs, shape, lambda t: text.format(*t))


def mixes(op: Any) -> bool:
    """Whether a function without a derivative is not one of numbers."""
    return op is ANYWHERE or (type(op) is Discrete and getattr(op.function, "__name__", "") in ORDERED)


def template(c: CProgram, op: Any) -> str:
    """An elementwise step as C, {0}, {1}, … for its arguments."""
    if isinstance(op, Cast):
        return "(float){0}" if np.dtype(op.target).itemsize == 4 else "{0}"
    if isinstance(op, Elementwise):
        if op.primitive.name == "psi":
            c.helpers.add("riesz_psi")
        return formula(op, ["{0}", "{1}"])
    name, named = getattr(op.function, "__name__", ""), dict(op.parameters)
    if name == "as_type":
        kind = np.dtype(named["dtype"])
        if kind.kind in "iu" and kind.itemsize < 8:
            return f"({_WHOLE[kind.name]})(long long){{0}}"
        return {"f": "(float){0}" if kind.itemsize == 4 else "{0}", "b": "{0} != 0"}.get(kind.kind, "trunc({0})")
    if name == "_wrap":
        return f"{{0}} < 0 ? {{0}} + {named['n']} : {{0}}"
    if name == "round" and named.get("decimals"):
        k = number(10.0 ** named["decimals"])
        return f"rint({{0}} * {k}) / {k}"
    if op.shaped is not None or name not in DISCRETE or (named and name != "round"):
        raise TraceError(f"{name or op.title} is not known in C; export to numpy")
    c.helpers.update([helper for helper in HELPERS if helper in DISCRETE[name]])
    return DISCRETE[name]


@C("loops over its labels", Contraction)
def _contraction(c: CProgram, op: Contraction, xs: list[Ref], shape: Shape) -> Ref:
    if op.guarded >= 0:
        return _contraction(c, op.unguarded, xs[:-1], shape)
    sizes = op.sizes(tuple([x.shape for x in xs]))
    out = list(dict.fromkeys(op.out))
    summed = [k for k in dict.fromkeys([k for ls in op.labels for k in ls]) if k not in op.out]
    names = {k: c.name("i") for k in (*out, *summed)}
    found = c.new(shape)
    if op.repeats:
        i = c.name("i")
        c.loop(i, math.prod(shape))
        c.line(f"{found.text}[{i}] = 0;")
        c.close()
    for k in out:
        c.loop(names[k], sizes[k])
    parts = [x.at(strided([names[k] for k in ls], x.shape)) for x, ls in zip(xs, op.labels, strict=True)]
    value = " * ".join(parts) if parts else "1"
    for i in op.strong:
        value = f"({parts[i]} != 0 ? {value} : 0)"
    place = found.at(strided([names[k] for k in op.out], shape))
    if summed:
        total = c.name("t")
        c.line(f"real {total} = 0;")
        for k in summed:
            c.loop(names[k], sizes[k])
        c.line(f"{total} += {value};")
        c.close(len(summed))
        c.line(f"{place} = {total};")
    else:
        c.line(f"{place} = {value};")
    c.close(len(out))
    return found


@C("sums through slices or tables of positions", Reduction)
def _reduction(c: CProgram, op: Reduction, xs: list[Ref], shape: Shape) -> Ref:
    part = _slice(op, xs, shape)
    if part is not None:
        return part
    found, size = c.new(shape), math.prod(shape)
    alone = op.covers or (len(xs) == 1 and type(op.relations[0]) is Triangular)
    piece = None if alone else _piece(op, xs)  # what the first part writes to; the rest is 0
    rest_of = [] if alone else [(0, size)] if piece is None else [(0, piece[0]), (piece[1], size)]

    def zeros() -> None:
        for begin, end in rest_of:
            if not shape:
                c.line(f"{found.text} = 0;")
            elif begin < end:
                i = c.name("i")
                c.loop(i, end - begin)
                c.line(f"{found.text}[{f'({i} + {begin})' if begin else i}] = 0;")
                c.close()

    if piece is None:
        zeros()
    fresh = len(xs) if alone else int(piece is not None)
    for k, (relation, x) in enumerate(zip(op.relations, xs, strict=True)):
        if k == 1 and piece is not None:
            zeros()
        sign = "=" if k < fresh else "+="
        n, m, a = relation.source.size, relation.target.size, math.prod(x.shape[: op.axis])
        b = math.prod(x.shape[op.axis + len(relation.source.box or ()) :])
        if type(relation) is Triangular:
            running(c, relation, x, found, (a, n, b), sign)
            continue
        rows, cols, times = [np.asarray(v) for v in relation.pairs()]
        if not len(rows) or not a * b:
            continue
        lead, pair, rest = c.name("i"), c.name("p"), c.name("j")
        texts = [_progression(c, v, pair) for v in (rows, cols)]
        weight = "" if (times == 1).all() else f"{c.table(times, 'int')}[{pair}] * "
        if a > 1:
            c.loop(lead, a)
        c.loop(pair, len(rows))
        if b > 1:
            c.loop(rest, b)
        source, target = [
            _place(lead if a > 1 else "", size, text, b, rest) for size, text in ((n, texts[0]), (m, texts[1]))
        ]
        c.line(f"{found.at(target)} {sign} {weight}{x.at(source)};")
        c.close((a > 1) + 1 + (b > 1))
    if piece is not None and len(xs) == 1:
        zeros()
    return found


def running(c: CProgram, relation: Triangular, x: Ref, found: Ref, sizes: tuple[int, int, int], sign: str) -> None:
    """Sums of what stands before or behind."""
    a, n, b = sizes
    lead, rest, j, t = c.name("i"), c.name("j"), c.name("p"), c.name("t")
    c.loop(lead, a)
    c.loop(rest, b)
    c.line(f"real {t} = 0;")
    c.loop(j, n)
    along = j if relation.lower else f"({n - 1} - {j})"
    place = f"({lead} * {n} + {along}) * {b} + {rest}"
    lines = [f"{t} += {x.at(place)};", f"{found.at(place)} {sign} {t};"]
    for line in reversed(lines) if relation.strict else lines:
        c.line(line)
    c.close(3)


def _piece(op: Reduction, xs: list[Ref]) -> tuple[int, int] | None:
    """The places that the first of several parts writes to, where they are in one piece and written to once."""
    if op.axis or not xs[0].shape or type(op.relations[0]) is Triangular:
        return None
    _, cols, times = [np.asarray(v) for v in op.relations[0].pairs()]
    if not len(cols) or not (times == 1).all() or not (cols == cols[0] + np.arange(len(cols))).all():
        return None
    b = math.prod(xs[0].shape[len(op.relations[0].source.box or ()) :])
    return int(cols[0]) * b, (int(cols[-1]) + 1) * b


def _slice(op: Reduction, xs: list[Ref], shape: Shape) -> Ref | None:
    """A part of an array that is in one piece, where it stands."""
    if len(xs) > 1 or not op.covers or op.axis or not xs[0].shape or type(op.relations[0]) is Triangular:
        return None
    rows, cols, times = [np.asarray(v) for v in op.relations[0].pairs()]
    places = np.arange(len(rows))
    if not len(rows) or not ((times == 1).all() and (cols == places).all() and (rows == places + rows[0]).all()):
        return None
    start = int(rows[0]) * math.prod(xs[0].shape[len(op.relations[0].source.box or ()) :])
    return Ref(f"({xs[0].text} + {start})" if start else xs[0].text, shape) if shape else Ref(xs[0].at(f"{start}"), ())


def _progression(c: CProgram, places: Any, index: str) -> str:
    """Positions as a formula of their number, or a table."""
    step = int(places[1] - places[0]) if len(places) > 1 else 0
    if (np.diff(places) == step).all():
        start = int(places[0])
        text = "0" if step == 0 else index if step == 1 else f"{step} * {index}"
        return text if start == 0 else f"{start}" if step == 0 else f"({text} + {start})"
    return f"{c.table(places, 'int')}[{index}]"


def _place(lead: str, size: int, text: str, b: int, rest: str) -> str:
    whole = f"{lead} * {size} + {text}" if lead else text
    return whole if b == 1 else f"({whole}) * {b} + {rest}"


@C("numbers at computed positions", Take, Put)
def _taken(c: CProgram, op: Any, xs: list[Ref], shape: Shape) -> Ref:
    x, index = xs
    put = isinstance(op, Put)
    wide = shape if put else x.shape  # the array with the axis that is indexed
    outer, before = math.prod(wide[: op.batch]), math.prod(wide[op.batch : op.axis])
    n, after = wide[op.axis], math.prod(wide[op.axis + 1 :])
    count = math.prod(index.shape[op.batch :])
    found = c.new(shape)
    if put:
        c.nest((math.prod(shape),), lambda i: c.line(f"{found.at(i[0])} = 0;"))
    names = [c.name("i") for _ in range(4)]
    for name, size in zip(names, (outer, before, count, after), strict=True):
        c.loop(name, size)
    o, p, k, q = names
    at = c.name("at")
    c.line(f"int {at} = (int)({index.at(f'{o} * {count} + {k}')});")
    c.line(f"{at} = {at} < 0 ? {at} + {n} : {at};")
    c.line(f"{at} = {at} < 0 ? 0 : {at} < {n} ? {at} : {n - 1};")
    narrow = f"(({o} * {before} + {p}) * {count} + {k}) * {after} + {q}"
    broad = f"(({o} * {before} + {p}) * {n} + {at}) * {after} + {q}"
    c.line(f"{found.at(broad)} += {x.at(narrow)};" if put else f"{found.at(narrow)} = {x.at(broad)};")
    c.close(4)
    return found


@C("one program, or one of several", Call)
def _call(c: CProgram, op: Call, xs: list[Ref], shapes: Any) -> list[Ref]:
    if not op.fixed:
        return c.program(op.branches[0], xs)
    targets = [c.new(s) for s in shapes]
    for i, branch in enumerate(op.branches):
        head = f"if ((int)({xs[0].text}) == {i}) {{" if i < len(op.branches) - 1 else "{"
        c.line(head if not i else f"else {head}")
        c.depth += 1
        for source, target in zip(c.program(branch, xs[1:]), targets, strict=True):
            c.copy(source, target)
        c.close()
    return targets


@C("a loop", Loop)
def _loop(c: CProgram, op: Loop, xs: list[Ref], shapes: Any) -> list[Ref]:
    consts, start, rows = xs[: op.consts], xs[op.consts : op.consts + op.carries], xs[op.consts + op.carries :]
    carry, stacked = [c.new(x.shape) for x in start], [c.new(s) for s in shapes[op.carries :]]
    for source, target in zip(start, carry, strict=True):
        c.copy(source, target)
    t = c.name("t")
    order = f"int {t} = {op.length - 1}; {t} >= 0; {t}--" if op.reverse else f"int {t} = 0; {t} < {op.length}; {t}++"
    c.line(f"for ({order}) {{")
    c.depth += 1
    given = [*consts, *carry, *[_row(x, t) for x in rows]]
    kept = stacked[op.results :] if op.keep else []
    for source, target in zip(carry, kept, strict=False):
        c.copy(source, _row(target, t))
    found = c.program(op.body, given)
    held: list[Ref] = []
    for x in found[: op.carries]:  # all are read before one is written
        held.append(c.new(x.shape))
        c.copy(x, held[-1])
    for x, target in zip(found[op.carries :], stacked, strict=False):
        c.copy(x, _row(target, t))
    for x, target in zip(held, carry, strict=True):
        c.copy(x, target)
    c.close()
    return [*carry, *stacked]


def _row(x: Ref, t: str) -> Ref:
    rest = x.shape[1:]
    return Ref(f"({x.text} + {t} * {math.prod(rest)})", rest) if rest else Ref(f"{x.text}[{t}]", ())
