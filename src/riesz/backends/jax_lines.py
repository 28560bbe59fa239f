"""A program as the source of a function on JAX arrays: a line for each step; a loop where rounds of steps repeat.

Arrays that the program holds, and those of relations, are arguments of the function (`arrays`); numbers are literals.
"""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..convolution import Convolution, Turned
from ..opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..ops import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..programs.blocks import Call, Loop
from ..programs.fusing import SparseProduct
from ..programs.program import INPUT, Constant, Program
from ..relations.in_jax import prepared
from ..relations.kinds import Diagonal, Gather, Place, Point, Range
from ..terms.primitives import RULES
from ..vectors import weak
from . import jax_functions, jax_steps
from .array_code import _placed, _word  # pyright: ignore[reportPrivateUsage]
from .rolled import ROUNDS, SAVED, Round, sorted_out, stretches

MOST = 3_000
"""Programs with more lines than this, loops written once, are not given to XLA: it would take minutes."""
PACKED = 16
"""From so many on inputs are stacked, and outputs taken apart, outside of the compiled function."""
DEEPEST = 12
"""How many loops and branches may be inside each other."""


class Unfit(Exception):
    """There is no JAX code for a program; the reason."""


class Value(NamedTuple):
    """A slot in generated code: an expression, its shape, whether it is a number that stands for an array of them; of an input, its type."""

    text: str
    shape: Any
    number: bool = False
    kind: Any = None


class Shared:
    """What all functions of one source have in common: names they refer to, arrays that are arguments, a count of lines."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"jax": jax, "jnp": jnp, "inf": math.inf, "nan": math.nan}
        self.arrays: dict[str, Any] = {}
        self.packs: dict[str, tuple[int, ...]] = {}  # arguments that are stacks of inputs, made outside: XLA takes long to stack a thousand arrays
        self.called: list[str] = []
        self.count = 0
        self._held: dict[int, tuple[str, Any]] = {}

    def name(self, base: str, value: Any) -> str:
        """A name for something the code refers to."""
        if self.names.setdefault(base, value) is value:
            return base
        name = f"{base}_{len(self.names)}"
        self.names[name] = value
        return name

    def array(self, value: Any) -> str:
        """The name of an argument: an array, or the arrays of a relation; the same for the same object."""
        found = self._held.get(id(value))
        if found is None:
            found = self._held[id(value)] = f"c{len(self._held)}", value
            self.arrays[found[0]] = value
        return found[0]

    def fresh(self, letter: str = "t") -> str:
        """A name that was not used."""
        self.count += 1
        if self.count > MOST:
            raise Unfit(f"it has more than {MOST:,} lines that do not repeat, which would take XLA minutes")
        return f"{letter}{self.count}"


class Lines:
    """The statements of one function: a program, given what its inputs are called."""

    def __init__(self, program: Program, inputs: Sequence[Value], shared: Shared, depth: int = 0) -> None:
        if depth > DEEPEST:
            raise Unfit(f"it has loops or branches more than {DEEPEST} deep")
        self.lines: list[str] = []
        self._program, self._shared, self._depth = program, shared, depth
        self._values: dict[int, Value] = dict(zip(program.inputs, inputs, strict=True))
        self._rows: dict[int, tuple[str, int]] = {}  # slots that are rows of an array: its name, and which
        self.used: set[int] = set()
        self._of = self._rows_taken()
        self._slot = 0

    def written(self) -> None:
        """Write all steps."""
        program = self._program
        steps = [s for s, op in enumerate(program.ops) if op is not INPUT and type(op) is not Constant and s not in self._of]
        place = {slot: i for i, slot in enumerate(steps)}
        place.update({s: place[root] for s, root in self._of.items() if root in place})  # rows of a step
        last: dict[int, int] = {}  # the last step that uses a slot
        for i, slot in enumerate(steps):
            last.update(dict.fromkeys([self._of.get(a, a) for a in program.args[slot]], i))
        last.update({self._of.get(slot, slot): len(steps) for slot in program.outputs})
        args = [program.args[slot] for slot in steps]
        done = 0
        for start, period, rounds in stretches([self._like(slot) for slot in steps]):
            at, end = start, start + rounds * period
            while (end - at) // period >= ROUNDS and at <= start + period:
                found = sorted_out(args, steps, place, at, period, (end - at) // period)
                if found is None or found.rounds < ROUNDS or found.rounds * period < SAVED:
                    at += 1
                    continue
                for i in range(done, at):
                    self._one(steps[i])
                self._loop_of(steps, at, period, found, last)
                done = start = at = at + found.rounds * period
        for i in range(done, len(steps)):
            self._one(steps[i])

    def outputs(self) -> list[str]:
        """Write all steps; the outputs as arrays."""
        self.written()
        return [self._array(self.value(s)) for s in self._program.outputs]

    # -- values -------------------------------------------------------------------------------------------------------

    def _rows_taken(self) -> dict[int, int]:
        """x[i] along the first axis, where there are many: no steps, but written where they are used, and stacks of them are slices. With what x is."""
        found: dict[int, int] = {}
        for slot, (op, args) in enumerate(zip(self._program.ops, self._program.args, strict=True)):
            if type(op) is Reduction and len(args) == 1 and not op.axis and isinstance(op.relations[0], Point) and len(op.relations[0].source.box or ()) == 1:
                found[slot] = args[0]
        count = Counter(found.values())
        return {slot: x for slot, x in found.items() if count[x] >= ROUNDS and x not in found}

    def _like(self, slot: int) -> Any:
        """What steps of the same kind have in common."""
        program = self._program
        op = program.ops[slot]
        given = [(program.shapes[a], self._kind(a)) for a in program.args[slot]]
        return "scale" if type(op) is float else op, program.shapes[slot], tuple(given)

    def _kind(self, slot: int) -> Any:
        op = self._program.ops[slot]
        if type(op) is not Constant:
            return self._values[slot].kind if op is INPUT else None
        value = weak(op.value)
        return ("number", float(value).hex()) if type(value) is float else np.asarray(value).dtype.str

    def value(self, slot: int) -> Value:
        """What a slot is called; constants and rows are written down when they are first used."""
        found = self._values.get(slot)
        self.used.add(slot)
        if found is None:
            op, shape = self._program.ops[slot], self._program.shapes[slot]
            if type(op) is Constant:
                found = self._constant(op.value, shape)
            else:
                base, at = self._rows.get(slot) or self._row(slot)
                found = Value(self._set(f"{base}[{at}]"), shape)
            self._values[slot] = found
        return found

    def _row(self, slot: int) -> tuple[str, int]:
        """The array a row belongs to, and which row it is."""
        relation = self._program.ops[slot].relations[0]
        x = self.value(self._program.args[slot][0])
        self._rows[slot] = self._array(x), int(relation.at)
        return self._rows[slot]

    def _constant(self, value: Any, shape: Any) -> Value:
        one = weak(value)
        if type(one) is float or type(one) is int or type(one) is bool:
            return Value(_literal(one), shape, True)
        array = np.asarray(one)
        if array.ndim and array.size and not any(array.strides):
            return Value(self._set(f"jnp.full({array.shape}, {_literal(array.flat[0].item())}, {array.dtype.name!r})"), shape)
        if not array.ndim and array.dtype.name in ("float64", "int64", "bool"):
            return Value(_literal(array.item()), shape, True)
        return Value(self._shared.array(one), shape)

    def _array(self, v: Value) -> str:
        """The text of an array of the value's shape."""
        return f"jnp.full({v.shape}, {v.text})" if v.number else v.text

    def _set(self, text: str) -> str:
        name = self._shared.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def _stacked(self, slots: Sequence[int]) -> str:
        """Slots of one shape as the rows of an array: slices of arrays that are there where it goes."""
        for s in slots:
            if s not in self._rows and s not in self._values and type(self._program.ops[s]) is not Constant:
                self._row(s)
        pieces: list[tuple[str, list[int]]] = []  # an array and its rows in arithmetic progression; "": slots by themselves
        for s in slots:
            base, at = self._rows.get(s, ("", s))
            last = pieces[-1] if pieces else None
            joins = last is not None and last[0] == base and (not base or len(last[1]) == 1 or at - last[1][-1] == last[1][-1] - last[1][-2])
            if joins and last is not None:
                last[1].append(at)
            else:
                pieces.append((base, [at]))
        if len(pieces) <= 4:
            texts = [self._slice(base, at) if base else self._stack(at) for base, at in pieces]
            return texts[0] if len(texts) == 1 else f"jnp.concatenate([{', '.join(texts)}])"
        return self._stack(slots)

    def _slice(self, base: str, at: list[int]) -> str:
        step = at[1] - at[0] if len(at) > 1 else 1
        if step == 0:
            return f"{base}[jnp.array({at})]"
        end = at[-1] + step
        return f"{base}[{at[0]}:{end if end >= 0 else ''}{f':{step}' if step != 1 else ''}]"

    def _stack(self, slots: Sequence[int]) -> str:
        """A stack written down; its rows are known from then on."""
        ops = self._program.ops
        if all([type(ops[s]) is Constant for s in slots]):
            name = self._shared.array(np.stack([np.asarray(weak(ops[s].value)) for s in slots]))
        elif not self._depth and len(slots) >= PACKED and all([ops[s] is INPUT for s in slots]):
            name = self._shared.fresh("p")
            self._shared.packs[name] = tuple(slots)
        else:
            name = self._set(f"jnp.stack([{', '.join([self._array(self.value(s)) for s in slots])}])")
        for i, s in enumerate(slots):
            self._rows.setdefault(s, (name, i))
        return name

    def given_back(self, kinds: Sequence[Any]) -> tuple[list[str], list[tuple[int, int | None]]]:
        """The arrays to give back, and for each output which of them it is, or which row of which: where many are rows of one, it is not taken apart."""
        outs = self._program.outputs
        count = Counter([self._rows[s][0] for s in outs if s in self._rows])
        texts: dict[str, int] = {}
        places: list[tuple[int, int | None]] = []
        for slot, kind in zip(outs, kinds, strict=True):
            base, row = self._rows.get(slot, ("", 0))
            whole = count[base] < PACKED
            text = f"result({self.value(slot).text}, {np.dtype(kind).name!r}, {self._program.shapes[slot]})" if whole else f"result({base}, {np.dtype(kind).name!r})"
            places.append((texts.setdefault(text, len(texts)), None if whole else row))
        return list(texts), places

    # -- loops --------------------------------------------------------------------------------------------------------

    def _loop_of(self, steps: list[int], start: int, period: int, found: Round, users: dict[int, int]) -> None:
        """Rounds of steps as one loop."""
        program, end = self._program, start + found.rounds * period
        wanted = [[r for r in range(found.rounds) if users.get(steps[start + r * period + j], -1) >= end] for j in range(period)]
        carried = [j for j, _ in found.before]
        stacked = [j for j, rows in enumerate(wanted) if rows and not (rows == [found.rounds - 1] and j in carried)]
        first = [steps[start + j] for j in range(period)]
        scales = [j for j in range(period) if type(program.ops[first[j]]) is float and self._varies(steps, start, period, found.rounds, j)]
        inner = Lines(program, [self._values[s] for s in program.inputs], self._shared, self._depth + 1)
        fresh = self._shared.fresh
        carry = [Value(fresh(), program.shapes[slot]) for _, slot in found.before]
        given = [Value(fresh(), program.shapes[slots[0]]) for slots in found.each]
        factors = {j: fresh() for j in scales}
        xs = [self._stacked(slots) for slots in found.each]
        xs += [self._shared.array(np.array([program.ops[steps[start + r * period + j]] for r in range(found.rounds)])) for j in scales]
        start_values = [self._array(self.value(slot)) for _, slot in found.before]
        same = {slot: self.value(slot) for row in found.takes for kind, slot in row if kind == "same"}
        done: list[Value] = []
        for j, slot in enumerate(first):
            taken = [{"here": done, "before": carry, "each": given}[kind][k] if kind != "same" else same[k] for kind, k in found.takes[j]]
            inner._slot = slot
            op = program.ops[slot]
            if j in factors:
                done.append(Value(inner._set(f"{factors[j]}.astype({taken[0].text}.dtype) * {taken[0].text}"), program.shapes[slot]))
            else:
                done.append(inner._step(op, taken))
        after = [inner._array(done[j]) for j in carried]
        body = self._function("layer", [c.text for c in carry], [*[g.text for g in given], *factors.values()], inner.lines, after, [inner._array(done[j]) for j in stacked])
        names = [fresh() for _ in (*after, *stacked)]
        self.lines.append(f"{_tuple(names)} = {self._helper('loop')}({body}, {_tuple(start_values)}, {_tuple(xs)}, {found.rounds})")
        last = start + (found.rounds - 1) * period
        for j, name in zip(carried, names, strict=False):
            self._values.setdefault(steps[last + j], Value(name, program.shapes[steps[last + j]]))
        for j, name in zip(stacked, names[len(after) :], strict=True):
            for r in range(found.rounds):
                self._rows[steps[start + r * period + j]] = name, r

    def _varies(self, steps: list[int], start: int, period: int, rounds: int, j: int) -> bool:
        return len({self._program.ops[steps[start + r * period + j]] for r in range(rounds)}) > 1

    def _function(self, title: str, carry: Sequence[str], xs: Sequence[str], lines: Sequence[str], after: Sequence[str], ys: Sequence[str]) -> str:
        """A function inside this one: of a carry and what a round gets, or of nothing; its name."""
        name = self._shared.fresh(f"{title}_")
        self.lines.append(f"def {name}(carry, xs):")
        self.lines.extend([f"    {_tuple(names)} = {what}" for names, what in ((carry, "carry"), (xs, "xs")) if names])
        self.lines.extend([f"    {line}" for line in lines])
        self.lines.append(f"    return {_tuple(after)}, {_tuple(ys)}")
        return name

    def _loop(self, op: Loop, xs: list[Value]) -> Value:
        body, c, m = op.body, op.consts, op.carries
        shapes = [body.shapes[s] for s in body.inputs]
        names = [Value(self._shared.fresh(), s) for s in shapes[c:]]
        inner = Lines(body, [*xs[:c], *names], self._shared, self._depth + 1)
        found = inner.outputs()
        carry = [n.text for n in names[:m]]
        kept = carry if op.keep else []
        name = self._function("round", carry, [n.text for n in names[m:]], inner.lines, found[:m], [*found[m:], *kept])
        start, rest = [self._array(x) for x in xs[c : c + m]], [self._array(x) for x in xs[c + m :]]
        turned = ", True" if op.reverse else ""
        return self._tuple_value(f"{self._helper('loop')}({name}, {_tuple(start)}, {_tuple(rest)}, {op.length}{turned})")

    def _call(self, op: Call, xs: list[Value]) -> Value:
        if not op.fixed:
            if any([not x.number for x in xs]):
                names = [self._shared.fresh() for x in xs if not x.number]
                self.lines.append(f"{_tuple(names)} = {self._helper('again')}({', '.join([x.text for x in xs if not x.number])})")
                rest = iter(names)
                xs = [x if x.number else Value(next(rest), x.shape) for x in xs]
            inner = Lines(op.branches[0], xs, self._shared, self._depth + 1)
            found = inner.outputs()
            self.lines.extend(inner.lines)
            return self._tuple_value(_tuple(found))
        branches: list[str] = []
        for branch in op.branches:
            inner = Lines(branch, xs[1:], self._shared, self._depth + 1)
            found = inner.outputs()
            name = self._shared.fresh("branch_")
            self.lines.extend([f"def {name}():", *[f"    {line}" for line in inner.lines], f"    return {_tuple(found)}"])
            branches.append(name)
        return self._tuple_value(f"{self._helper('choose')}({xs[0].text}, {', '.join(branches)})")

    def _tuple_value(self, text: str) -> Value:
        return Value(self._set(text), self._program.shapes[self._slot])

    # -- steps --------------------------------------------------------------------------------------------------------

    def _one(self, slot: int) -> None:
        self._slot = slot
        op, args = self._program.ops[slot], self._program.args[slot]
        rows = self._put_rows(op, args) if type(op) is Reduction and len(args) > 1 else None
        self._values[slot] = rows or self._step(op, [self.value(a) for a in args])

    def _helper(self, name: str) -> str:
        return self._shared.name(name, getattr(jax_steps, name))

    def _value(self, text: str) -> Value:
        return Value(self._set(text), self._program.shapes[self._slot])

    def _applied(self, name: str, function: Any, xs: Sequence[Value]) -> Value:
        return self._value(f"{self._shared.name(_word(name), function)}({', '.join([self._array(x) for x in xs])})")

    def _step(self, op: Any, xs: list[Value]) -> Value:
        shape = self._program.shapes[self._slot]
        match op:
            case float():
                return self._combination((op,), xs)
            case Combination():
                return self._combination(op.coefficients, xs)
            case Elementwise():
                return self._elementwise(op, xs)
            case Contraction():
                return self._contraction(op, xs)
            case Reduction():
                return self._reduction(op, xs)
            case Reshape():
                return xs[0]._replace(shape=shape) if xs[0].number else self._value(f"{xs[0].text}.reshape({shape})")
            case Cast():
                return self._value(f"jnp.asarray({self._array(xs[0])}).astype({op.target.name!r})")
            case Select():
                return self._value(f"jnp.where({', '.join([x.text for x in self._spread(xs)])})")
            case Get():
                return Value(f"{xs[0].text}[{op.at}]", shape)
            case Take():
                return self._applied("take", jax_steps.take(op), xs)
            case Put():
                return self._applied("put", jax_steps.put(op), xs)
            case Convolution() | Turned():
                return self._applied("convolution", jax_steps.convolution(op), xs)
            case SparseProduct():
                return self._sparse(op, xs)
            case Strongly():
                y = self._step(op.op, xs)
                return self._value(f"jnp.where(jnp.any({self._array(xs[op.k])} != 0), {self._array(y)}, 0)")
            case Loop():
                return self._loop(op, xs)
            case Call():
                return self._call(op, xs)
            case _:
                return self._other(op, xs, shape)

    def _other(self, op: Any, xs: list[Value], shape: Any) -> Value:
        found = jax_steps.transform(op) or jax_functions.found(op)
        if found is not None:
            return self._applied(op.title, found, xs)
        if isinstance(op, (Ruled, Declared)) and not (isinstance(op, Ruled) and op.smooth.name in ("lu", "eigh_pair")):
            self._shared.called.append(op.title)
            return self._applied(op.title, jax_functions.called_back(op, shape, False), xs)
        title = op.title if isinstance(op, (Discrete, Ruled)) else type(op).__name__
        raise Unfit(f"{title} has no form in JAX")

    def _spread(self, xs: Sequence[Value]) -> list[Value]:
        """Arguments of a step that broadcasts: numbers stay numbers if the others have the shape of the result."""
        shape = self._program.shapes[self._slot]
        full = np.broadcast_shapes(*[x.shape for x in xs if not x.number]) == shape
        return [x if full or not x.number else Value(self._array(x), x.shape) for x in xs]

    def _combination(self, coefficients: Sequence[float], xs: list[Value]) -> Value:
        text, given = "", self._spread(xs)
        for i, (k, x) in enumerate(zip(coefficients, given, strict=True)):
            if i % 50 == 49:  # Python's parser does not like long sums
                text = self._set(text)
            if abs(k) == 1.0:
                text = f"{text} {'+' if k > 0 else '-'} {x.text}" if text else x.text if k > 0 else f"-{x.text}"
            else:
                text = f"{text} + {_literal(k)} * {x.text}" if text else f"{_literal(k)} * {x.text}"
        return self._value(text)

    def _elementwise(self, op: Elementwise, xs: list[Value]) -> Value:
        p, given = op.primitive, self._spread(xs)
        if p.rule is RULES["power"]:
            return self._value(_power(given[0].text, p.parameter))
        if p.rule is RULES["divide"]:
            return self._value(f"jnp.divide({given[0].text}, {given[1].text})")
        function = jax_functions.primitive(p)
        if function is None:
            self._shared.called.append(p.name)
            return self._applied(p.name, jax_functions.called_back(op, self._program.shapes[self._slot], True), xs)
        more = [] if p.parameter is None else [_literal(p.parameter)]
        named = getattr(jnp, function.__name__, None) is function
        name = f"jnp.{function.__name__}" if named else self._shared.name(_word(p.name), function)
        return self._value(f"{name}({', '.join([*[x.text for x in given], *more])})")

    # -- products and sums --------------------------------------------------------------------------------------------

    def _contraction(self, op: Contraction, xs: list[Value]) -> Value:
        labels, out, shape = op.labels, op.out, self._program.shapes[self._slot]
        distinct = all([len(set(ls)) == len(ls) for ls in (*labels, out)])
        inside = {k for ls in labels for k in ls}
        sizes = op.sizes(tuple([x.shape for x in xs]))
        if op.strong:
            given = _tuple([self._array(x) for x in xs])
            return self._value(f"{self._helper('strong_product')}({given}, {labels}, {out}, {op.strong}, {sizes})")
        if not distinct:
            return self._value(f"{self._helper('product')}({_tuple([self._array(x) for x in xs])}, {labels}, {out}, {sizes})")
        if len(xs) == 1:
            return self._single(op, xs[0])
        if inside <= set(out):
            numbers = [x.number and set(ls) <= {k for j, other in enumerate(labels) if j != i for k in other} for i, (x, ls) in enumerate(zip(xs, labels, strict=True))]
            plain = sum(numbers) < len(xs) and inside == {k for n, ls in zip(numbers, labels, strict=True) if not n for k in ls}
            texts = [x.text if n and plain else _placed(self._array(x), ls, out) for x, n, ls in zip(xs, numbers, labels, strict=True)]
            text = " * ".join(texts)
            return self._value(text if inside == set(out) else f"jnp.broadcast_to({text}, {shape})")
        kept = tuple([k for k in out if k in inside])
        text = f"{self._helper('einsum')}({jax_steps.letters(labels, kept)!r}, {', '.join([self._array(x) for x in xs])})"
        return self._value(text if kept == out else f"jnp.broadcast_to({_placed(text, kept, out)}, {shape})")

    def _single(self, op: Contraction, x: Value) -> Value:
        labels, out, shape = op.labels[0], op.out, self._program.shapes[self._slot]
        if x.number and set(labels) <= set(out):
            return Value(x.text, shape, True)
        gone = tuple([i for i, k in enumerate(labels) if k not in out])
        kept = tuple([k for k in labels if k in out])
        text = self._array(x)
        if gone:
            text = f"{text}.sum({gone[0] if len(gone) == 1 else gone})"
        text = _placed(text, kept, out)
        return self._value(f"jnp.broadcast_to({text}, {shape})" if len(kept) < len(out) else text)

    def _reduction(self, op: Reduction, xs: list[Value]) -> Value:
        shape = self._program.shapes[self._slot]
        if len(xs) == 1:
            return self._value(self._red(op, op.relations[0], xs[0], shape))
        box = op.relations[0].target.box or ()
        tiles = [r.tile for r in op.relations]
        starts = [-1 if t is None else t.start or 0 for t in tiles]
        lead, size, trail = math.prod(shape[: op.axis]), op.relations[0].target.size, math.prod(shape[op.axis + len(box) :])
        flat = [f"{self._array(x)}.reshape({(lead, r.source.size, trail)})" for x, r in zip(xs, op.relations, strict=True)]
        if op.covers and all([t is not None and t.step in (None, 1) for t in tiles]):
            order = sorted([i for i, r in enumerate(op.relations) if r.source.size], key=lambda i: starts[i])
            return self._value(f"jnp.concatenate([{', '.join([flat[i] for i in order])}], 1).reshape({shape})")
        kinds = ", ".join([self._array(x) for x in xs])
        total = self._set(f"jnp.zeros({(lead, size, trail)}, jnp.result_type({kinds}))")
        for r, tile, x, text in zip(op.relations, tiles, xs, flat, strict=True):
            if tile is not None:
                total = self._set(f"{total}.at[:, {_slice_text(tile)}].add({text})")
            else:
                total = self._set(f"{total} + {self._red(op, r, x, (lead, size, trail))}")
        return self._value(f"{total}.reshape({shape})")

    def _put_rows(self, op: Reduction, slots: Sequence[int]) -> Value | None:
        """Values put to different places of one axis: a stack of them, which may be there already."""
        box, shape = op.relations[0].target.box or (), self._program.shapes[self._slot]
        places = [r.at for r in op.relations if isinstance(r, Place)]
        if len(places) < len(slots) or len(box) != 1 or len(set(places)) < len(places) or len({self._program.shapes[s] for s in slots}) > 1:
            return None
        rows = self._stacked([s for _, s in sorted(zip(places, slots, strict=True))])
        if len(places) == box[0]:
            return self._value(f"jnp.moveaxis({rows}, 0, {op.axis})" if op.axis else rows)
        at = self._shared.array(np.array(sorted(places)))
        return self._value(f"{self._helper('put_rows')}({rows}, {at}, {shape}, {op.axis})")

    def _red(self, op: Reduction, relation: Any, x: Value, shape: Any) -> str:
        """red_R of one value."""
        source, target, text = relation.source.box or (), relation.target.box or (), self._array(x)
        head = ":, " * op.axis
        match relation:
            case Diagonal():
                return f"{text}.reshape({shape})"
            case Point():
                at = ", ".join([str(int(i)) for i in np.unravel_index(relation.at, source)]) if source else "()"
                return f"{text}[{head}{at}].reshape({shape})" if source else f"{text}.reshape({shape})"
            case Range(turned=False) if len(source) == 1 and len(target) == 1:
                return f"{text}[{head}{_slice_text(relation.slice(relation.target.size))}].reshape({shape})"
            case Gather() if len(source) == 1:
                index = self._shared.array(prepared(relation)[1])
                return f"jnp.take({text}, {index}, {op.axis}, mode='clip').reshape({shape})"
        code, arrays = prepared(relation)
        lead = math.prod(x.shape[: op.axis])
        wide = (lead, relation.source.size, math.prod(x.shape[op.axis + len(source) :]))
        return f"{self._helper('red')}({self._shared.name(f'R_{_word(code.how)}', code)}, {self._shared.array(arrays)}, {text}, {wide}, {shape})"

    def _sparse(self, op: SparseProduct, xs: list[Value]) -> Value:
        """Gathered, weighed, summed up: three steps for XLA to fuse."""
        x, w = [self._array(v) for v in xs]
        shape = self._program.shapes[self._slot]
        count, trail = op.gather.target.size, math.prod(shape[1:])
        index = self._shared.array(prepared(op.gather)[1])
        rows = self._set(f"jnp.take({x}, {index}, 0, mode='clip').reshape({(1, count, trail)}) * {w}.reshape(({count}, 1))")
        code, arrays = prepared(op.scatter)
        return self._value(f"{self._helper('red')}({self._shared.name('R_sum', code)}, {self._shared.array(arrays)}, {rows}, {(1, count, trail)}, {shape})")


def _power(x: str, k: float) -> str:
    if k == 0.5:
        return f"jnp.sqrt({x})"
    if k == -1.0:
        return f"1.0 / {x}"
    return f"{x} ** {_literal(int(k) if k == int(k) and abs(k) <= 64 else k)}" if math.isfinite(k) else f"jnp.power({x}, {_literal(k)})"


def _literal(k: Any) -> str:
    text = repr(k)
    return f"({text})" if text[0] == "-" else text


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _slice_text(s: slice) -> str:
    step = f":{s.step}" if s.step not in (None, 1) else ""
    return f"{'' if s.start is None else s.start}:{'' if s.stop is None else s.stop}{step}"


def result(x: Any, kind: str, shape: tuple[int, ...] | None = None) -> Any:
    """An output in its type and shape."""
    y = jnp.asarray(x, kind)
    return y if shape is None else jnp.broadcast_to(y, shape)
