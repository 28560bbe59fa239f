"""From the definition of a function to the closed form of its derivative, step by step: differentials by the rules of
the calculus, the derivative read off, then one law after the other. Every step is an equation of two expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calculus.derive import derive_program
from ...functions.point_protocol import one_number
from ...maps.derivation import Derivation
from ...maps.structured import Shown
from ...ops.op import Combination, Contraction, Elementwise, Reduction
from ...ops.opaque import Ruled
from ...programs.passes.deferring import without_guards
from ...programs.program import Constant, Program
from ...show.face import PRINTERS
from ...show.notation import UNICODE, Notation
from ..closed_form import WrittenForm, closed_form
from ..expression_trees import Tree
from ..familiar import familiar
from ..form_code import DIALECTS, CodeWriter
from ..form_text import FormText
from ..laws.form_laws import laws_on
from ..laws.sum_laws import SUM_LAWS
from ..polynomials import Algebra, Monomial, Polynomial, Unreadable

LONGEST = 80
"""Programs with more steps are not told step by step."""
_RULES: dict[type, str] = {Combination: "sum rule", Reduction: "linear: selected or summed", float: "linear: scaled"}


@dataclass(repr=False)
class FormStep(Shown):
    """where = before = after, by a rule. `before` may use what earlier steps define; `after` is in the arguments."""

    rule: str
    where: str
    before: Tree
    after: Tree

    def text(self, n: Notation) -> str:
        """The equation in an alphabet."""
        sides = list(dict.fromkeys([FormText(n).text(t) for t in (self.before, self.after)]))
        return " = ".join([n.variable(self.where), *sides] if self.where else sides)

    def sides(self) -> tuple[str, str]:
        """Both sides as NumPy expressions."""
        before, after = [CodeWriter(DIALECTS["numpy"], {}).expression(t) for t in (self.before, self.after)]
        return before, after


PRINTERS[FormStep] = lambda n, step: step.text(n)


class _Limited(WrittenForm):
    """A closed form by some of the laws; `fired` are those that were used."""

    def __init__(self, kind: str, of: Derivation, allowed: Sequence[Any] | None) -> None:
        self._allowed = allowed
        self.fired: dict[Any, None] = {}
        super().__init__(kind, of)

    def made_algebra(self) -> Algebra:
        """The algebra, with laws that say when they are used."""
        found = Algebra()
        found.laws, found.sum_laws = self._law, self._sum_law
        return found

    def _law(self, algebra: Algebra, product: Monomial, rank: int) -> Monomial | None:
        for k, f in enumerate(product.factors):
            for law in laws_on(f.atom):
                if self._allowed is None or law in self._allowed:
                    found = law(algebra, product, k)
                    if found is not None:
                        self.fired[law] = None
                        return found
        return None

    def _sum_law(self, algebra: Algebra, shape: Any, products: list[Monomial]) -> Polynomial | None:
        for law in SUM_LAWS:
            if self._allowed is None or law in self._allowed:
                found = law(algebra, shape, products)
                if found is not None:
                    self.fired[law] = None
                    return found
        return None


class _Told(_Limited):
    """A derivative without laws, with the steps that gave it."""

    def __init__(self, kind: str, of: Derivation) -> None:
        self.lines: list[FormStep] = []
        self.count = 0  # of lines with names of ours
        self.name = "f"  # of the function, where no array is called so
        super().__init__(kind, of, ())

    def _forms(self) -> list[tuple[tuple[Polynomial, ...], int]]:
        at, inputs = self.function.at, self._inputs()
        program = familiar(at.plain)
        for name, t in self._definitions(program, inputs):
            self.lines.append(FormStep("definition", name, t, t))
        derivative: Program = derive_program(program, at.moving).derivative
        directions = [
            self.algebra.array(f"d{name}", np.shape(v))
            for name, v, moves in zip(self.arguments, at.leaves, at.moving, strict=False)
            if moves
        ]
        if not directions:
            raise Unreadable("it has no argument to differentiate in")
        self._tell_all(without_guards(derivative), [*inputs, *directions], len(directions))
        columns: list[list[tuple[tuple[Polynomial, ...], int]]] = []
        for direction in directions:
            given = [d if d is direction else self.algebra.form(d.shape, []) for d in directions]
            one = direction.single
            assert one is not None
            found = self._read(derivative, [*inputs, *given], one.atom)
            columns.append([((self.algebra.coefficient(y, one.atom),), y.rank) for y in found])
        return [column[i] for i in range(len(columns[0])) for column in columns]

    def _definitions(self, program: Program, inputs: list[Polynomial]) -> list[tuple[str, Tree]]:
        try:
            trees = [self._tree(x) for x in self._read(program, inputs)]
        except Unreadable:
            return []
        f = self.name = next((x for x in "fghFGH" if x not in self.function.names), self.reader.fresh_name((), "f"))
        return list(zip([f] if len(trees) == 1 else [f"{f}{i}" for i in range(len(trees))], trees, strict=True))

    def _tell_all(self, program: Program, inputs: list[Polynomial], directions: int) -> None:
        program = program.prune(program.inputs, program.outputs)
        if len(program.ops) > LONGEST:
            raise Unreadable("a long program")
        moving = program.dependent(program.inputs[len(inputs) - directions :])
        whole: list[Any] = [None] * len(program.ops)
        for slot, x in zip(program.inputs, inputs, strict=True):
            whole[slot] = x
        named = list(whole)
        for slot, op in enumerate(program.ops):
            if whole[slot] is None:
                args, shape = program.args[slot], program.shapes[slot]
                whole[slot] = named[slot] = self.reader.step(op, [whole[a] for a in args], shape)
                self._tell(slot, op, [named[a] for a in args], shape, whole, named, bool(moving[slot]))

    def _tell(
        self, slot: int, op: Any, args: list[Any], shape: Any, whole: list[Any], named: list[Any], moves: bool
    ) -> None:
        """A line for a step whose result is more than a name; it has a name from then on."""
        if type(op) is Constant or not isinstance(whole[slot], Polynomial) or not whole[slot].products:
            return
        try:
            after = self._tree(whole[slot])
            if after.weight < 3:
                return
            before = self._tree(self.reader.step(op, args, shape))
        except (Unreadable, AttributeError, AssertionError):  # under another shape, or with axes that matrices have not
            return
        self.count += 1
        name = self.reader.fresh_name((), f"{'dy' if moves else 'y'}{self.count}")
        self.lines.append(FormStep(_rule(op, moves), name, before, after))
        named[slot] = self.algebra.array(name, whole[slot].shape)


def _rule(op: Any, moves: bool) -> str:
    if not moves:
        return "value" if not isinstance(op, Elementwise) else f"value: {op.primitive.name}"
    if isinstance(op, Contraction):
        return "linear: summed or turned" if len(op.labels) == 1 else "product and chain rule"
    if isinstance(op, Ruled):
        return f"derivative of {op.title}"
    return next((_RULES[kind] for kind in type(op).__mro__ if kind in _RULES), "linear")


def form_steps(of: Derivation) -> list[FormStep]:
    """The steps from the definition to the closed form; none where there is no closed form."""
    scalar = one_number(of.function.codomain)
    kind = "gradient" if scalar else "jacobian"
    final = closed_form(kind, of).written()
    told = _Told(kind, of)
    if final.problem or told.problem or len(final.heads) != len(told.heads):
        return []
    lines = list(told.lines)
    f = told.name
    names = [f"∂{f}{t[2:]}" if t else f"∇{f}" if scalar else f"{f}′" for t in final.titles()]
    reason = f"the gradient: {f}'(x) dx = ⟨∇{f}, dx⟩" if scalar else "the derivative: what stands before dx"
    lines += [FormStep(reason, name, t, t) for name, t in zip(names, told.heads, strict=True)]
    before = told.heads
    for allowed, reason in _one_after_the_other(kind, of):
        after = _Limited(kind, of, allowed)
        if not after.problem and len(after.heads) == len(before):
            lines += _changed(names, before, after.heads, reason)
            before = after.heads
    return lines + _changed(names, before, final.heads, "the shortest layout")


def _one_after_the_other(kind: str, of: Derivation) -> list[tuple[list[Any], str]]:
    """More and more laws, each with what it says; first none, for the adjoint program."""
    fired = list(_Limited(kind, of, None).fired)
    shown: list[tuple[list[Any], str]] = [([], "products put together, common factors taken out")]
    return shown + [(fired[: k + 1], _first_line(law)) for k, law in enumerate(fired)]


def _first_line(law: Callable[..., Any]) -> str:
    return (law.__doc__ or law.__name__).strip().splitlines()[0]


def _changed(names: list[str], before: list[Tree], after: list[Tree], reason: str) -> list[FormStep]:
    texts = [[FormText(UNICODE).text(t) for t in trees] for trees in (before, after)]
    rows = zip(names, before, after, *texts, strict=True)
    return [FormStep(reason, name, a, b) for name, a, b, s, t in rows if s != t]
