"""A program as the source of a function on JAX arrays: a line for each step; one loop where rounds of steps repeat."""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...ops.op import Reduction
from ...programs.program import INPUT, Constant, Program
from ...programs.sub_programs import Call, Loop
from ...relations.kinds import Place, Point
from ...runtime import tuning
from ...spaces.formal_vectors import weak
from ..source_text import inside, literal, tupled
from .jax_ops import JaxSteps, JaxValue, NoJaxCode, Shared
from .repeated_steps import Round, sorted_out, stretches


class JaxLines(JaxSteps):
    """The statements of one function: a program, given what its inputs are called."""

    def __init__(self, program: Program, inputs: Sequence[JaxValue], shared: Shared, depth: int = 0) -> None:
        super().__init__(shared, depth)
        if depth > tuning.JAX_NESTING:
            deep = f"it has loops or branches more than {tuning.JAX_NESTING} deep"
            raise NoJaxCode(f"{deep}, as rz.while_loop has without a bound: give it one, max_steps=1000")
        self._program = program
        self._values: dict[int, JaxValue] = dict(zip(program.inputs, inputs, strict=True))
        self._rows: dict[int, tuple[str, int]] = {}  # slots that are rows of an array: its name, and which
        self.used: set[int] = set()
        self._of = self._rows_taken()

    def written(self) -> None:
        """Write all steps."""
        program = self._program
        given = [op is INPUT or type(op) is Constant for op in program.ops]
        steps = [s for s, known in enumerate(given) if not known and s not in self._of]
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
            while (end - at) // period >= tuning.REPEATED_ROUNDS and at <= start + period:
                found = sorted_out(args, steps, place, at, period, (end - at) // period)
                least = max(tuning.REPEATED_ROUNDS, tuning.REPEATED_STEPS_SAVED / period)
                if found is None or found.rounds < least:
                    at += 1
                    continue
                if found.rounds > least and self._starts_apart(
                    [steps[at + i * period : at + (i + 1) * period] for i in range(3)]
                ):
                    at += period
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
        return [self.array(self.value(s)) for s in self._program.outputs]

    # -- values -------------------------------------------------------------------------------------------------------

    def _rows_taken(self) -> dict[int, int]:
        """Steps x[i] along the first axis, where there are many, and what x is: they are written where used."""
        found: dict[int, int] = {}
        for slot, (op, args) in enumerate(zip(self._program.ops, self._program.args, strict=True)):
            relation = op.relations[0] if type(op) is Reduction and len(args) == 1 and not op.axis else None
            if isinstance(relation, Point) and len(relation.source.box or ()) == 1:
                found[slot] = args[0]
        count = Counter(found.values())
        return {slot: x for slot, x in found.items() if count[x] >= tuning.REPEATED_ROUNDS and x not in found}

    def _like(self, slot: int) -> Any:
        """What steps of the same kind have in common."""
        program = self._program
        op = program.ops[slot]
        given = [(program.shapes[a], self._kind(a)) for a in program.args[slot]]
        return "scale" if type(op) is float else op, program.shapes[slot], tuple(given)

    def _starts_apart(self, rounds: Sequence[Sequence[int]]) -> bool:
        """Whether only the first of three rounds has numbers of its own, which it would give all of them."""
        first, second, third = [
            [op for op in map(self._program.ops.__getitem__, slots) if type(op) is float] for slots in rounds
        ]
        return first != second == third

    def _kind(self, slot: int) -> Any:
        op = self._program.ops[slot]
        if type(op) is not Constant:
            return self._values[slot].kind if op is INPUT else None
        value = weak(op.value)
        return ("number", float(value).hex()) if type(value) is float else np.asarray(value).dtype.str

    def value(self, slot: int) -> JaxValue:
        """What a slot is called; constants and rows are written down when they are first used."""
        found = self._values.get(slot)
        self.used.add(slot)
        if found is None:
            op, shape = self._program.ops[slot], self._program.shapes[slot]
            if type(op) is Constant:
                found = self._constant(op.value, shape)
            else:
                base, at = self._row(slot)
                found = JaxValue(self.set(f"{base}[{at}]"), shape)
            self._values[slot] = found
        return found

    def _row(self, slot: int) -> tuple[str, int]:
        """The array a row belongs to, and which row it is."""
        if slot not in self._rows:
            x = self.array(self.value(self._program.args[slot][0]))
            self._rows[slot] = x, int(self._program.ops[slot].relations[0].at)
        return self._rows[slot]

    def _constant(self, value: Any, shape: Any) -> JaxValue:
        one = weak(value)
        if type(one) is float or type(one) is int or type(one) is bool:
            return JaxValue(literal(one), shape, True)
        array = np.asarray(one)
        if array.ndim and array.size and not any(array.strides):
            name = array.dtype.name
            kind = {"float64": "float", "int64": "int"}.get(name, repr(name))  # 32 bits where JAX has 64 off
            return JaxValue(self.set(f"jnp.full({array.shape}, {literal(array.flat[0].item())}, {kind})"), shape)
        if not array.ndim and array.dtype.name in ("float64", "int64", "bool"):
            return JaxValue(literal(array.item()), shape, True)
        return JaxValue(self.shared.array(one), shape)

    def _stacked(self, slots: Sequence[int]) -> str:
        """Slots of one shape as the rows of an array: slices of arrays that are there where it goes."""
        for s in slots:
            if s not in self._values and type(self._program.ops[s]) is not Constant:
                self._row(s)
        pieces: list[tuple[str, list[int]]] = []  # an array and its rows in arithmetic progression; "": slots
        for s in slots:
            base, at = self._rows.get(s, ("", s))
            last, rows = pieces[-1] if pieces else (None, [])
            if last == base and (not base or len(rows) == 1 or at - rows[-1] == rows[-1] - rows[-2]):
                rows.append(at)
            else:
                pieces.append((base, [at]))
        if len(pieces) > 4:
            return self._stack(slots)
        texts = [self._slice(base, at) if base else self._stack(at) for base, at in pieces]
        return texts[0] if len(texts) == 1 else f"jnp.concatenate([{', '.join(texts)}])"

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
            values = [weak(ops[s].value) for s in slots]
            name = self.shared.array(np.stack([np.asarray(v) for v in values]))
            if all([type(v) is float for v in values]):
                self.shared.weak.add(name)
        elif not self.depth and len(slots) >= tuning.JAX_STACKED_INPUTS and all([ops[s] is INPUT for s in slots]):
            name = self.shared.fresh()
            self.shared.packs[name] = tuple(slots)
        else:
            name = self.set(f"jnp.stack([{', '.join([self.array(self.value(s)) for s in slots])}])")
        for i, s in enumerate(slots):
            self._rows.setdefault(s, (name, i))
        return name

    def given_back(self, kinds: Sequence[Any]) -> tuple[list[str], list[tuple[int, int | None]]]:
        """The arrays to give back, and for each output which of them it is, or which row of which."""
        outs = self._program.outputs
        count = Counter([self._rows[s][0] for s in outs if s in self._rows])
        texts: dict[str, int] = {}
        places: list[tuple[int, int | None]] = []
        for slot, kind in zip(outs, kinds, strict=True):
            base, row = self._rows.get(slot, ("", 0))
            alone = count[base] < tuning.JAX_STACKED_INPUTS
            text, shape = (self.value(slot).text, f", {self._program.shapes[slot]}") if alone else (base, "")
            text = f"result({text}, {np.dtype(kind).name!r}{shape})"
            places.append((texts.setdefault(text, len(texts)), None if alone else row))
        return list(texts), places

    # -- loops --------------------------------------------------------------------------------------------------------

    def _loop_of(self, steps: list[int], start: int, period: int, found: Round, users: dict[int, int]) -> None:
        """Rounds of steps as one loop."""
        program, rounds = self._program, found.rounds
        each = [[steps[start + r * period + j] for r in range(rounds)] for j in range(period)]  # slots, round by round
        end = start + rounds * period
        wanted = [[r for r, slot in enumerate(slots) if users.get(slot, -1) >= end] for slots in each]
        carried = [j for j, _ in found.before]
        stacked = [j for j, rows in enumerate(wanted) if rows and not (rows == [rounds - 1] and j in carried)]
        inner = JaxSteps(self.shared, self.depth + 1)
        fresh = self.shared.fresh
        carry = [JaxValue(fresh(), program.shapes[slot]) for _, slot in found.before]
        given = [JaxValue(fresh(), program.shapes[slots[0]]) for slots in found.each]
        scales = {j: [program.ops[slot] for slot in slots] for j, slots in enumerate(each)}
        factors = {j: fresh() for j, ks in scales.items() if type(ks[0]) is float and len(set(ks)) > 1}
        xs = [self._stacked(slots) for slots in found.each]
        numbers = [self.shared.array(np.array(scales[j])) for j in factors]
        self.shared.weak.update(numbers)
        xs += numbers
        start_values = [self.array(self.value(slot)) for _, slot in found.before]
        same = {slot: self.value(slot) for row in found.takes for kind, slot in row if kind == "same"}
        done: list[JaxValue] = []
        values: dict[str, Any] = {"here": done, "before": carry, "each": given, "same": same}
        for j, slots in enumerate(each):
            taken, shape = [values[kind][k] for kind, k in found.takes[j]], program.shapes[slots[0]]
            if j in factors:
                done.append(JaxValue(inner.set(f"{factors[j]} * {inner.array(taken[0])}"), shape))
            else:
                done.append(inner.step(program.ops[slots[0]], taken, shape))
        after, ys = [inner.array(done[j]) for j in carried], [inner.array(done[j]) for j in stacked]
        inputs = [c.text for c in carry], [*[g.text for g in given], *factors.values()]
        body = _function(self, "layer", inputs, inner.lines, (after, ys))
        names = [fresh() for _ in (*after, *stacked)]
        weak_ones = tuple([i for i, x in enumerate(xs) if x in self.shared.weak])
        times = f"{rounds}, at_once={_rounds_at_once(inner)}{f', weak={weak_ones}' if weak_ones else ''}"
        call = f"{self.shared.helper('loop')}({body}, {tupled(start_values)}, {tupled(xs)}, {times})"
        self.lines.append(f"{tupled(names)} = {call}")
        for j, name in zip(carried, names, strict=False):
            last = each[j][-1]
            self._values.setdefault(last, JaxValue(name, program.shapes[last]))
        for j, name in zip(stacked, names[len(after) :], strict=True):
            self._rows.update({slot: (name, r) for r, slot in enumerate(each[j])})

    # -- steps --------------------------------------------------------------------------------------------------------

    def _one(self, slot: int) -> None:
        found = self._put_rows(slot)
        if found is None:
            program = self._program
            found = self.step(program.ops[slot], [self.value(a) for a in program.args[slot]], program.shapes[slot])
        self._values[slot] = found

    def _put_rows(self, slot: int) -> JaxValue | None:
        """Values put to different places of one axis: a stack of them, which may be there already."""
        op, slots = self._program.ops[slot], self._program.args[slot]
        if type(op) is not Reduction or len(slots) == 1:
            return None
        box, shape = op.relations[0].target.box or (), self._program.shapes[slot]
        places = [r.at for r in op.relations if isinstance(r, Place)]
        like = len({self._program.shapes[s] for s in slots}) == 1
        if len(box) != 1 or not like or not len(slots) == len(places) == len(set(places)):
            return None
        rows = self._stacked([s for _, s in sorted(zip(places, slots, strict=True))])
        if len(places) == box[0]:
            return JaxValue(self.set(f"jnp.moveaxis({rows}, 0, {op.axis})" if op.axis else rows), shape)
        at = self.shared.array(np.array(sorted(places)))
        return JaxValue(self.set(f"{self.shared.helper('put_rows')}({rows}, {at}, {shape}, {op.axis})"), shape)


def _function(home: JaxSteps, title: str, inputs: Any, lines: Sequence[str], results: Any) -> str:
    """A function of (carry, what a round gets), to (carry, what it leaves behind), written inside another; its name."""
    name = home.shared.fresh(f"{title}_")
    opened = [f"{tupled(names)} = {what}" for names, what in zip(inputs, ("carry", "xs"), strict=True) if names]
    end = f"return {tupled(results[0])}, {tupled(results[1])}"
    home.lines.extend(inside(f"def {name}(carry, xs):", [*opened, *lines, end]))
    return name


def block(home: JaxSteps, op: Any, xs: list[JaxValue]) -> str:
    """A call or a loop: the functions it needs are written; an expression for the tuple of its results."""
    if isinstance(op, Loop):
        return _loop(home, op, xs)
    if op.fixed:
        return _branches(home, op, xs)
    arrays = [x for x in xs if not x.number]
    fresh = [JaxValue(home.shared.fresh(), x.shape) for x in arrays]
    if fresh:
        again = f"{home.shared.helper('again')}({', '.join([x.text for x in arrays])})"
        home.lines.append(f"{tupled([v.text for v in fresh])} = {again}")
    rest = iter(fresh)
    inner = JaxLines(op.branches[0], [x if x.number else next(rest) for x in xs], home.shared, home.depth + 1)
    found = inner.outputs()
    home.lines.extend(inner.lines)
    return tupled(found)


def _rounds_at_once(round_: JaxSteps) -> int:
    """How many rounds may be written out where that pays: XLA compiles them fast."""
    return tuning.JAX_UNROLLED_LINES // (len(round_.lines) + 32 * round_.products) if round_.light else 1


def _loop(home: JaxSteps, op: Loop, xs: list[JaxValue]) -> str:
    body, c, m = op.body, op.consts, op.carries
    names = [JaxValue(home.shared.fresh(), body.shapes[s]) for s in body.inputs[c:]]
    inner = JaxLines(body, [*xs[:c], *names], home.shared, home.depth + 1)
    found = inner.outputs()
    carry, rows = [n.text for n in names[:m]], [n.text for n in names[m:]]
    left = [*found[m:], *(carry if op.keep else [])]
    name = _function(home, "round", (carry, rows), inner.lines, (found[:m], left))
    given = [home.array(x) for x in xs[c:]]
    times = f"{op.length}{', True' if op.reverse else ''}, at_once={_rounds_at_once(inner)}"
    return f"{home.shared.helper('loop')}({name}, {tupled(given[:m])}, {tupled(given[m:])}, {times})"


def _branches(home: JaxSteps, op: Call, xs: list[JaxValue]) -> str:
    branches: list[str] = []
    for branch in op.branches:
        inner = JaxLines(branch, xs[1:], home.shared, home.depth + 1)
        found = inner.outputs()
        branches.append(home.shared.fresh("branch_"))
        home.lines.extend(inside(f"def {branches[-1]}():", [*inner.lines, f"return {tupled(found)}"]))
    return f"{home.shared.helper('choose')}({xs[0].text}, {', '.join(branches)})"


def result(x: Any, kind: str, shape: tuple[int, ...] | None = None) -> Any:
    """An output in its type and shape."""
    y = jnp.asarray(x, kind)
    return y if shape is None else jnp.broadcast_to(y, shape)
