"""Printing of programs: values as expressions, linear steps as combinators, what is used twice or is long as a let."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..calculus.derive import linear_slots
from ..maps.linear_map import LinearMap
from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.discrete_fourier import Transform
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single
from ..ops.op_rules import OpRules
from ..ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..programs.passes.deferring import Deferred, without_guards
from ..programs.passes.fusing import SparseProduct
from ..programs.program import INPUT, Constant, Program
from ..programs.sub_programs import Block, Call, Loop
from ..relations import Place, Point, Relation
from ..spaces.space import DirectSum, Space, real_space
from ..terms.primitives import Primitive
from .notation import ATOM, COMPOSE, POWER, PRODUCT, SUM, Notation, Text, one, two
from .term_text import call, combination, contract, op_title, relation_text, section, single, space_text, term_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..maps.derivation import Derivation, Family, Value

IDENTITY: Text = ("", ATOM)
FIRST, FILLER = 0xF0000, "\uf8ff"
"""Until all lets are known, each is called by a character of its own, filled up to the length of its name: no text
contains it by chance."""
_COMPARED = {"greater": ">", "greater_equal": "≥", "less": "<", "less_equal": "≤", "equal": "=", "not_equal": "≠"}
INFIX = {**_COMPARED, "logical_and": "∧", "logical_or": "∨"}
_OWN = (Strongly, Ruled, Declared, Convolution, ExchangedLeg, SparseProduct, Deferred)
NAMED = (Single, Transform, Reshape, Cast, Take, Put, *_OWN)
"""Ops that are written as functions."""

VALUES = OpRules[Callable[["Writer", int, Any, list[Text]], Text]]("show.program_text.VALUES")
"""The value of a step, from the texts of its arguments."""
LINEAR = OpRules[Callable[["Writer", int, Any, list[Text], list[int]], Text]]("show.program_text.LINEAR")
"""A linear step as a function: arguments that are flagged are functions before it."""


class Writer:
    """Gives each slot of a program a text; `lets` collects (name, text) in order."""

    def __init__(self, n: Notation, program: Program, flags: Any, inputs: list[Text], others: Iterable[str] = ()):
        """`others`: names that are taken."""
        self.n, self.program, self.flags = n, program, flags
        self.lets: list[tuple[str, str]] = []
        self.constants: list[tuple[str, tuple[int, ...]]] = []
        self.text: list[Text] = [IDENTITY] * len(program.ops)
        taken = {text for text, _ in inputs} | set(others)
        self.letters = [_free(letters, taken, n.prime) for letters in ("yzwst", "dehkl")]  # of values, of linear maps
        self.spare = [c for c in "abcghkmnpqrstuvw" if c not in taken and c not in self.letters]
        self.counts = dict.fromkeys(self.letters, 0)
        self.called: list[tuple[str, int]] = []  # the letter and number of each let
        self.positive: dict[int, Text] = {}  # −f is kept as f here, so that signs come out in front
        self.width = 60 * n.breadth
        uses = program.uses()
        for slot, text in zip(program.inputs, inputs, strict=True):
            self.text[slot] = text if text is IDENTITY else (n.marked(text[0], slot), text[1])
        last = set(program.outputs)
        for slot, op in enumerate(program.ops):
            if op is not INPUT:
                width = 3 * self.width if slot in last else self.width
                self.text[slot] = self._bound(slot, uses[slot], width)

    def _bound(self, slot: int, uses: int, width: int) -> Text:
        """The text of a slot, or the name of a let."""
        op, args = self.program.ops[slot], [self.text[a] for a in self.program.args[slot]]
        if type(op) is Constant:
            text = self._constant(op.value)
        else:
            text = self._linear(slot, op, args) if self.flags[slot] else VALUES[type(op)](self, slot, op, args)
        simple = text is IDENTITY or type(self.program.ops[slot]) in (Constant, Get) or self._length(text) < 3
        if simple or (uses < 2 and self._length(text) <= width):
            return text if text is IDENTITY else (self.n.marked(text[0], slot), text[1])
        self.positive.pop(slot, None)
        letter = self.letters[1 if self.flags[slot] else 0]
        length = self._length((self.n.sub(letter, self.counts[letter]), ATOM))
        name = self.n.marked(chr(FIRST + len(self.called)).ljust(length, FILLER), slot)
        self.called.append((letter, self.counts[letter]))
        self.counts[letter] += 1
        self.lets.append((name, text[0]))
        return name, ATOM

    def _length(self, text: Text) -> int:
        return len(self.n.seen(text[0]))

    def _constant(self, value: Any) -> Text:
        if not getattr(value, "shape", ()):
            return self.n.leaf(value)
        if isinstance(value, np.ndarray):
            array = cast("NDArray[Any]", value)
            if not any(array.strides):
                return self.n.leaf(array.flat[0]) if array.size else ("0", ATOM)
            if array.size <= 4 and array.ndim == 1:
                return self.n.leaf(array)
        at = len(self.constants)
        name = self.spare[at] if at < len(self.spare) else self.n.sub("A", at)
        self.constants.append((name, cast(Any, value).shape))
        return name, ATOM

    # -- values ----------------------------------------------------------------------------------------------

    VALUES("2 · x", float)(lambda self, slot, op, args: combination(self.n, (op,), args))
    VALUES("sin x", Elementwise)(lambda self, slot, op, args: self._application(op.primitive, args))
    VALUES("x + 2 · y", Combination)(lambda self, slot, op, args: combination(self.n, op.coefficients, args))

    @VALUES("π₀ x, red_R x", Reduction)
    def _reduced(self, slot: int, op: Reduction, args: list[Text]) -> Text:
        texts = [self._applied(self._reduction(r, op.axis), a) for r, a in zip(op.relations, args, strict=True)]
        return texts[0] if len(texts) == 1 else self.n.infix(texts, "+", SUM)

    @VALUES("x[0]", Get)
    def _got(self, slot: int, op: Get, args: list[Text]) -> Text:
        return args[0] if self._lonely(slot) else (f"{self.n.within(args[0], ATOM)}[{op.at}]", ATOM)

    @VALUES("name(x, y)", *NAMED, Select)
    def _called(self, slot: int, op: Any, args: list[Text]) -> Text:
        return call(self.n, op, args), ATOM

    @VALUES("x > y, ¬x, name(x, y)", Discrete)
    def _discrete(self, slot: int, op: Discrete, args: list[Text]) -> Text:
        n = self.n
        if op.title in INFIX and len(args) == 2:
            return n.infix([(n.within(a, PRODUCT), ATOM) for a in args], INFIX[op.title], SUM)
        return (n["¬"] + n.within(args[0], ATOM), POWER) if op.title == "¬" else self._called(slot, op, args)

    @VALUES("cond[f | g](x), loop[c ↦ f](x)", Block)
    def _block(self, slot: int, op: Block, args: list[Text]) -> Text:
        inside = self._inside(op, args, [False] * len(args))
        shown = args[:1] if inside and isinstance(op, Call) else args
        return (inside or op_title(self.n, op)) + self.n.listed("(", shown, ")")[0], ATOM

    def _inside(self, op: Block, args: list[Text], moving: list[bool]) -> str | None:
        """What a block does, where that is short: cond[a | b], loop[(c, u) ↦ body]."""
        n = self.n
        if isinstance(op, Call):
            if sum(moving) > 1 or not op.fixed:
                return None
            inputs = [IDENTITY if m else a for a, m in zip(args[1:], moving[1:], strict=True)]
            shown = [self._body(p, inputs, moving[1:]) for p in op.branches]
            return None if None in shown else f"{n.name('cond')}[{' | '.join(cast('list[str]', shown))}]"
        if not isinstance(op, Loop) or any(moving):
            return None
        outside = set(self.letters) | set(re.findall(r"[^\W_]+", " ".join([a for a, _ in args[: op.consts]])))
        c, u = [_free(letters, outside, "'") for letters in ("cezv", "uwqp")]
        carry = [(n.sub(c, i) if op.carries > 1 else c, ATOM) for i in range(op.carries)]
        count = len(args) - op.consts - op.carries
        rows = [(n.sub(u, i) if count > 1 else u, ATOM) for i in range(count)]
        body = self._body(op.body, [*args[: op.consts], *carry, *rows], moving)
        head = f"{op_title(n, op)}[{n.listed('(', [*carry, *rows], ')')[0]}"
        return None if body is None else f"{head} {n['↦'].strip()} {body}]"

    def _body(self, program: Program, inputs: list[Text], moving: list[bool]) -> str | None:
        wires = [s for s, m in zip(program.inputs, moving, strict=True) if m]
        writer = Writer(self.n.plain, program, program.dependent(wires), inputs)
        text = writer.outputs()[0]
        return None if writer.lets or writer.constants or len(self.n.seen(text)) > self.width else text

    def _lonely(self, slot: int) -> bool:
        """Whether a step with a tuple of results has one only."""
        return len(self.program.shapes[self.program.args[slot][0]]) == 1

    def _application(self, p: Primitive, args: list[Text]) -> Text:
        n = self.n
        if p.name == "power":
            return n.sup(n.within(args[0], ATOM), n.number(p.parameter).replace("−", "-")), POWER
        if p.name == "divide":
            return f"{n.within(args[0], POWER)} / {n.within(args[1], ATOM)}", PRODUCT
        if p.name == "pow":
            return n.sup(n.within(args[0], ATOM), n.within(args[1], ATOM) if n.flat else args[1][0]), POWER
        if len(args) > 1:
            return n.name(p.name) + n.listed("(", args, ")")[0], ATOM
        return self._applied(n.name(p.name), args[0])

    def _applied(self, name: str, arg: Text) -> Text:
        return self.n.applied(name, self.n.within(arg, POWER)), COMPOSE

    @VALUES("a ⊛ x, Σ x, contract[…](x, y)", Contraction)
    def _contracted(self, slot: int, op: Contraction, args: list[Text]) -> Text:
        n, given = self.n, self.program.args[slot]
        if len(args) == 1:
            if one(op) == "ᵀ" and len(op.out) == 2:
                return n.turned(args[0]), POWER
            return self._applied(single(n, op), args[0])
        pattern = two(op)
        if pattern is None:
            return contract(n, op) + n.listed("(", args, ")")[0], ATOM
        if pattern.symbol in "·∗" and given[0] == given[1]:
            return n.sup(n.within(args[0], ATOM), "2"), POWER
        shown = [(n.turned(a), POWER) if t else a for a, t in zip(args, pattern.turned, strict=True)]
        constants = [type(self.program.ops[a]) is Constant for a in given]
        alike = pattern.symbol in "·∗⊙" and op.labels[0] == op.labels[1]
        swap = pattern.first == 1 or (alike and constants == [False, True])
        return n.infix(shown[::-1] if swap else shown, pattern.symbol, POWER)[0], PRODUCT

    def _reduction(self, r: Relation, axis: int = 0) -> str:
        """π₀, ι₀, red_R; behind other axes π_{:,0}."""
        n = self.n
        match r:
            case Point(at=at) | Place(at=at):
                letter, index = ("π", r.source) if isinstance(r, Point) else ("ι", r.target)
                inside = str(index.element(at)).replace(" ", "")
                return n.below(n[letter], ":," * axis + inside) if axis else n.sub(n[letter], inside)
            case _:
                return n.below(n.name("red"), ":," * axis + relation_text(n, r)[0])

    # -- linear steps ----------------------------------------------------------------------------------------

    def after(self, outer: str, wire: Text) -> Text:
        """outer • wire."""
        return (outer, ATOM) if wire is IDENTITY else self.n.infix([(outer, ATOM), wire], "•", COMPOSE)

    def _linear(self, slot: int, op: Any, args: list[Text]) -> Text:
        n, given = self.n, self.program.args[slot]
        flags = [self.flags[a] for a in given]
        moving = [a for a, f in zip(given, flags, strict=True) if f]
        if op == -1.0:
            self.positive[slot] = args[0]
            return combination(n, (op,), self._named(args))
        if len(moving) == 1 and moving[0] in self.positive and not isinstance(op, Combination):
            k = flags.index(1)  # f • (−g) = −(f • g)
            inside = [self.positive[moving[0]] if i == k else a for i, a in enumerate(args)]
            self.positive[slot] = LINEAR[type(op)](self, slot, op, inside, flags)
            return combination(n, (-1.0,), [self.positive[slot]])
        if isinstance(op, Combination):
            signs = [-1.0 if a in self.positive else 1.0 for a in given]
            shown = self._named([self.positive.get(a, t) for a, t in zip(given, args, strict=True)])
            return combination(n, tuple([k * s for k, s in zip(op.coefficients, signs, strict=True)]), shown)
        return LINEAR[type(op)](self, slot, op, args, flags)

    LINEAR("(2 ·)", float)(
        lambda self, slot, op, args, flags: self.after(section(self.n, self.n["·"], self.n.leaf(op), 0), args[0])
    )

    @LINEAR("π₀", Get)
    def _projected(self, slot: int, op: Get, args: list[Text], flags: list[int]) -> Text:
        return args[0] if self._lonely(slot) else self.after(self.n.sub(self.n["π"], op.at), args[0])

    @LINEAR("name(a, _)", *NAMED)
    @LINEAR("f + 2 · g, see `_linear`", Combination)
    @LINEAR("none: not linear", Elementwise, Select, Discrete)
    @LINEAR("cond[f | g](x), name(a, _)", Block)
    def _with_hole(self, slot: int, op: Any, args: list[Text], flags: list[int]) -> Text:
        n = self.n
        shown = [(n.hole(), ATOM) if f else a for a, f in zip(args, flags, strict=True)]
        inside = [a for a, f in zip(args, flags, strict=True) if f]
        text = self._inside(op, args, [bool(f) for f in flags]) if isinstance(op, Call) and len(inside) == 1 else None
        if text is not None:
            return self.after(text + n.listed("(", args[:1], ")")[0], inside[0])
        wire = inside[0] if len(inside) == 1 else n.listed("⟨", self._named(inside), "⟩")
        bare = len(args) == 1 and not isinstance(op, Declared)
        return self.after(op_title(n, op) if bare else call(n, op, shown), wire)

    def _named(self, args: list[Text]) -> list[Text]:
        return [(self.n.name("id"), ATOM) if a is IDENTITY else a for a in args]

    @LINEAR("(a ⊛), Σ, contract[…](a, _)", Contraction)
    def _product(self, slot: int, op: Contraction, args: list[Text], flags: list[int]) -> Text:
        n, k = self.n, flags.index(1)
        if len(args) == 1:
            return self.after(single(n, op), args[0])
        pattern = two(op)
        if pattern is None:
            shown = [(n.hole(), ATOM) if i == k else a for i, a in enumerate(args)]
            return self.after(contract(n, op) + n.listed("(", shown, ")")[0], args[k])
        other = (n.turned(args[1 - k]), POWER) if pattern.turned[1 - k] else args[1 - k]
        wire = self.after(n.turned((f"({n.hole()})", ATOM)), args[k]) if pattern.turned[k] else args[k]
        if pattern.symbol == "∗":
            return self.after(n["Δ"] + section(n, n["·"], other, 0), wire)
        scalars = pattern.symbol == "·" and not op.labels[1 - k]  # (k ·) rather than (· k)
        side = 0 if pattern.first == 1 - k or pattern.symbol == "⊙" or scalars else 1
        return self.after(section(n, n[pattern.symbol], other, side), wire)

    @LINEAR("π₀, ι₀, red_R", Reduction)
    def _joined(self, slot: int, op: Reduction, args: list[Text], flags: list[int]) -> Text:
        if len(args) == 1:
            return self.after(self._reduction(op.relations[0], op.axis), args[0])
        places = [r.at if isinstance(r, Place) else -1 for r in op.relations]
        if places == list(range(op.relations[0].target.size)) and not op.axis:
            return self.n.listed("⟨", self._named(args), "⟩")
        parts = [self.after(self._reduction(r, op.axis), a) for r, a in zip(op.relations, args, strict=True)]
        return self.n.infix(parts, "+", SUM)

    # -- the whole -------------------------------------------------------------------------------------------

    def outputs(self, first: int = 0, last: int | None = None) -> Text:
        """Some of the outputs as one text."""
        slots = self.program.outputs[first:last]
        texts = [self.text[s] for s in slots]
        if any([self.flags[s] for s in slots]):
            texts = self._named(texts)
        if len(texts) == 1:
            return texts[0]
        shown = texts if len(texts) <= 12 else [*texts[:8], (self.n["…"], ATOM), *texts[-3:]]
        left, right = ("⟨", "⟩") if any([self.flags[s] for s in slots]) else ("(", ")")
        return self.n.listed(left, shown, right)

    def definitions(self) -> list[str]:
        """The constants and the lets, a line each; the middle of a very long list is left out."""
        fixed = [f"{c} {self.n['∈']} {space_text(self.n, real_space(s))[0]}" for c, s in self.constants]
        lets = [f"{name} = {text}" for name, text in self.lets]
        if len(lets) > 40:
            lets = [*lets[:24], f"{self.n['…']} {self.n.words(f'{len(lets) - 36} more')}", *lets[-12:]]
        return fixed + [line.translate(self._names) for line in lets]

    @cached_property
    def _names(self) -> dict[int, str]:
        """What the lets are called in the end: y₀ is y where there is only one."""
        named = [letter if self.counts[letter] == 1 else self.n.sub(letter, k) for letter, k in self.called]
        return {ord(FILLER): "", **{FIRST + i: name for i, name in enumerate(named)}}

    def tidy(self, text: str) -> str:
        """A text to be shown."""
        return self.n.clip(text.translate(self._names), 4000)


def _free(letters: str, taken: Container[str], prime: str) -> str:
    """The first letter that is no name yet; if all are, the first one with a prime."""
    return next((c for c in letters if c not in taken), letters[0] + prime)


def component_names(space: Space) -> tuple[Any, ...]:
    """The names of the leaves, where each is a component with a name; otherwise their numbers."""
    names, count = space.form.names if isinstance(space, DirectSum) and space.form else None, len(space.leaves)
    return names if names and count == len(names) > 1 else tuple(range(count))


def input_names(n: Notation, space: Space, known: tuple[str, ...] | None = None) -> list[Text]:
    """x, or x₀ … for the components, or their names."""
    names = known if known is not None and len(known) == len(space.leaves) else component_names(space)
    if names == (0,):
        return [("x", ATOM)]
    return [(n.sub("x", name) if isinstance(name, int) else n.variable(name), ATOM) for name in names]


def wires(n: Notation, space: Space) -> list[Text]:
    """The linear inputs: id, or the projections."""
    names = component_names(space)
    return [IDENTITY] if len(names) == 1 else [(n.sub(n["π"], n.variable(i)), ATOM) for i in names]


def _written(writer: Writer) -> str:
    return writer.n.explained(writer.tidy(writer.outputs()[0]), writer.definitions())


def map_text(n: Notation, L: LinearMap) -> str:
    """A linear map as a combination of linear combinators, with numbers for coefficients, or at a traced point."""
    s = L.steps
    program = without_guards(s.program)
    names = {id(x): name for name, x in L.names} if s.point else {}
    point = [(names.get(id(x)) or n.sub("x", i), ATOM) for i, x in enumerate(s.point)]
    flags = program.dependent(program.inputs[len(point) :])
    if not point:
        flags = bytearray([f and m for f, m in zip(linear_slots(program), flags, strict=True)])
    return _written(Writer(n, program, flags, [*point, *wires(n, L.domain)], names.values()))


def family_text(n: Notation, f: Family) -> str:
    """x ↦ f'(x): a linear map that depends on a point x."""
    program = without_guards(f.program)
    flags = program.dependent(program.inputs[len(f.point.leaves) :])
    return _written(Writer(n, program, flags, [*input_names(n, f.point, f.names), *wires(n, f.domain)]))


def value_text(n: Notation, f: Value) -> str:
    """x ↦ f(x)."""
    program = without_guards(f.program)
    return _written(Writer(n, program, bytearray(len(program.ops)), input_names(n, f.domain, f.names)))


def steps_text(n: Notation, p: Program) -> str:
    """Any program: one line per step."""
    inputs = [(n.sub("x", i), ATOM) for i in range(len(p.inputs))]
    return _written(Writer(n, p, bytearray(len(p.ops)), inputs))


def derivation_text(n: Notation, D: Derivation) -> str:
    """f^[1] and f^[1r], each a let around value and derivative together; in Unicode, the function first."""
    V, W = D.function.domain, D.function.codomain
    arguments, values = input_names(n, V, D.names), D.programs.outputs
    x = ", ".join([a[0] for a in arguments[:8]]) + (f", {n['…']}" if len(arguments) > 8 else "")
    lines: list[tuple[str, str]] = []
    for name, given, space in (("[1]", D.programs.affine, V), ("[1r]", D.programs.reverse, W)):
        program = without_guards(given)
        flags = program.dependent(program.inputs[D.programs.inputs :])
        writer = Writer(n, program, flags, [*arguments, *wires(n, space)])
        pair = [writer.tidy(text[0]) for text in (writer.outputs(0, values), writer.outputs(values))]
        lines.append((f"{n.exponent('f', name, True)}({x})", n.let(writer.definitions(), pair)))
    shown = n.equations(lines)
    if not n.flat:
        return shown
    head = [f"f = {term_text(n, D.function)[0]}", f"  : {space_text(n, V)[0]} → {space_text(n, W)[0]}"]
    note = "(in coordinates: the adjoint is M⁻¹ • f^[1r] • M with the Riesz maps M of the weighted spaces)"
    return "\n".join([*head, shown, *([] if V.plain and W.plain else [note])])
