"""A derivation as a film: the whole derivative after each rule, with the part that the rule has made marked.

>>> import riesz as rz
>>> from riesz.show.notation import UNICODE
>>> for step in unfolded(rz.derive("x -> sin(x) * x", rz.R), UNICODE):
...     print(step.state, "  ", step.reason)
((sin x) ·) • id′(x) + (x ·) • sin′(x)    product, rule (4)
((sin x) ·) • id + (x ·) • sin′(x)    linear, rule (3): its own derivative
((sin x) ·) • id + (x ·) • (cos x ·)    primitive function
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from ..calculus.derive import derive_program, lower
from ..maps.derivation import Derivation
from ..ops.op import Contraction
from ..runtime.interning import postorder
from ..spaces.space import DirectSum
from ..terms.bilinear import Applied
from ..terms.primitives import Primitive
from ..terms.sums import Fork, Map, Par, Project, Zip
from ..terms.term import Combine, Compose, Const, Id, Term
from .notation import ATOM, COMPOSE, POWER, PRODUCT, SUM, Notation, ProductName, Text, two
from .program_text import Writer, input_names, wires
from .term_text import LIFTED, combination, primitive_text, section, term_texts

NODES, STEPS, LONG = 200, 60, 400
"""Larger terms are not shown in this way; as many steps are; longer texts of values are cut."""

Point = tuple[Any, ...]
"""A value as a `Text`; one of a direct sum as a tuple of its components."""
Combined = Callable[[list[Text]], Text]


class Unfolded(NamedTuple):
    """A step: the rule as an equation, its reason, the whole derivative after it, and the number of the part that it
    made (in MathML, its data-id)."""

    equation: str
    reason: str
    state: str
    part: int


class _Part:
    """t'(p) in the derivative: as it stands, or what a rule has made of it."""

    def __init__(self, term: Term, point: Point) -> None:
        self.term, self.point, self.number = term, point, -1
        self.inside: list[_Part] = []
        self.combined: Combined | None = None


def unfolded(D: Derivation, n: Notation) -> list[Unfolded]:
    """The steps of a derivation; nothing for large terms."""
    f = D.function
    if len(list(postorder(f))) > NODES:
        return []
    writer = _Unfolding(n, f)
    whole = writer.part(f, _point(n, D))
    found: list[Unfolded] = []
    while len(found) < STEPS and (next_one := _first(whole)) is not None:
        left = writer.shown(next_one)[0]
        reason = writer.expand(next_one, len(found))
        equation = f"{left} = {writer.shown(next_one)[0]}"
        found.append(Unfolded(equation, reason, writer.shown(whole)[0], len(found)))
    return found


def _point(n: Notation, D: Derivation) -> Point:
    V, names = D.function.domain, input_names(n.plain, D.function.domain, D.names)
    flat = isinstance(V, DirectSum) and len(V.summands) == len(names)
    return tuple(names) if flat else names[0] if len(names) == 1 else ("v", ATOM)


def _first(whole: _Part) -> _Part | None:
    """The first part from the left to which no rule has been applied."""
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        if part.combined is None:
            return part
        waiting += reversed(part.inside)
    return None


class _Unfolding:
    """Applies rules, and writes what is there."""

    def __init__(self, n: Notation, f: Term) -> None:
        self.n, self.texts = n, term_texts(n.plain, f)
        self._parts: dict[Any, _Part] = {}
        self._values: dict[Any, Point] = {}

    def part(self, t: Term, p: Point) -> _Part:
        """t'(p); the same for the same term and point."""
        return self._parts.setdefault((t, p), _Part(t, p))

    def shown(self, whole: _Part) -> Text:
        """A part as a text, its parts first."""
        done: dict[_Part, Text] = {}
        waiting = [(whole, False)]
        while waiting:
            part, ready = waiting.pop()
            if part in done:
                continue
            if part.combined is None:
                done[part] = self._unopened(part), ATOM
            elif ready:
                text, level = part.combined([done[x] for x in part.inside])
                done[part] = self.n.marked(text, part.number), level
            else:
                waiting += [(part, True), *[(x, False) for x in part.inside]]
        return done[whole]

    def _unopened(self, part: _Part) -> str:
        n, at = self.n, self._one(part.point)[0]
        shown = at if not isinstance(part.point[0], str) and _bare(n, at) is not None else n.parens(at)
        return f"{n.within(self.texts[part.term], ATOM)}{n.prime}{shown}"

    def _one(self, p: Point) -> Text:
        """A value as one text."""
        text: Text = cast(Text, p) if isinstance(p[0], str) else self.n.listed("(", [self._one(x) for x in p], ")")
        return text if len(self.n.seen(text[0])) <= LONG else (self.n["…"], ATOM)

    # -- values ------------------------------------------------------------------------------------------------

    def value(self, t: Term, p: Point) -> Point:
        """t(p) as a text."""
        if (t, p) not in self._values:
            self._values[t, p] = self._value(t, p)
        return self._values[t, p]

    def _value(self, t: Term, p: Point) -> Point:
        n = self.n.plain
        match t:
            case Id():
                return p
            case Zip() if not isinstance(p[0], str):
                return p
            case Project(position=k) if not isinstance(p[0], str):
                return p[k]
            case Fork(terms=ts):
                return tuple([self.value(x, p) for x in ts])
            case Const(leaves=leaves):
                return n.vector(leaves)
            case Combine(coefficients=ks, terms=ts):
                return combination(n, ks, [self._one(self.value(x, p)) for x in ts])
            case Compose(outer=g, inner=Fork(terms=ts)) if (named := _product(g)) is not None:
                return self._infix(named, [self._one(self.value(x, p)) for x in ts])
            case Compose(outer=g, inner=h):
                return self.value(g, self.value(h, p))
            case Primitive() | Map(term=Primitive()):
                return self._called(t if isinstance(t, Primitive) else cast(Primitive, t.term), p)
            case _:
                return n.applied(n.within(self.texts[t], ATOM), n.within(self._one(p), ATOM)), PRODUCT

    def _called(self, t: Primitive, p: Point) -> Text:
        n = self.n.plain
        if t.name == "power":
            return n.sup(n.within(self._one(p), ATOM), n.number(t.parameter).replace("−", "-")), POWER
        if t.name == "divide" and not isinstance(p[0], str):
            return " / ".join([n.within(self._one(x), POWER) for x in p]), PRODUCT
        return n.applied(primitive_text(n, t), n.within(self._one(p), ATOM)), PRODUCT

    def _infix(self, named: ProductName, values: Sequence[Text]) -> Text:
        n = self.n.plain
        given = [(n.turned(v), POWER) if turned else v for v, turned in zip(values, named.turned, strict=True)]
        return n.infix(given[::-1] if named.first else given, named.symbol, POWER)[0], PRODUCT

    # -- rules -------------------------------------------------------------------------------------------------

    def expand(self, part: _Part, number: int) -> str:
        """Apply the rule for a part; the reason."""
        part.number = number
        reason, part.inside, part.combined = self._rule(part.term, part.point)
        return reason

    def _rule(self, t: Term, p: Point) -> tuple[str, list[_Part], Combined]:
        n = self.n
        if t.linear:
            return "linear, rule (3): its own derivative", [], lambda _: self.texts[t]
        match t:
            case Const():
                return "constant function, rule (2)", [], lambda _: ("0", ATOM)
            case Compose(outer=g, inner=Fork(terms=(a, b))) if (named := _product(g)) is not None:
                return self._product_rule(named, a, b, p)
            case Compose(outer=g, inner=h):
                parts = [self.part(g, self.value(h, p)), self.part(h, p)]
                return "chain rule (1)", parts, lambda ts: n.infix(ts, "•", COMPOSE)
            case Map(term=Primitive() as h):
                slope = self._slope(h, p)[0]
                text = _bare(n, slope) or slope
                return "primitive at every index, rule (5)", [], lambda _: self._diagonal([(text, ATOM)])
            case Map(term=h):
                return "at every index, rule (5)", [self.part(h, p)], self._diagonal
            case Par(terms=hs) if not isinstance(p[0], str):
                parts = [self.part(h, x) for h, x in zip(hs, p, strict=True)]
                return "parallel composition, rule (5)", parts, self._diagonal
            case Fork(terms=hs):
                parts = [self.part(h, p) for h in hs]
                return "⟨f, g⟩ = (f × g) ∘ dup: rules (1), (3), (5)", parts, lambda ts: n.listed("⟨", ts, "⟩")
            case Combine(coefficients=ks, terms=hs):
                parts = [self.part(h, p) for h in hs]
                return "sum: + is linear, rules (1), (3)", parts, lambda ts: combination(n, ks, ts)
            case Primitive():
                return "primitive function", [], lambda _: self._slope(t, p)
            case _:
                text = self._unopened(_Part(t, p))
                return "a function with a derivative of its own", [], lambda _: (text, ATOM)

    def _diagonal(self, inside: list[Text]) -> Text:
        return f"{self.n['Δ']}{self.n.listed('(', inside, ')')[0]}", ATOM

    def _product_rule(self, named: ProductName, a: Term, b: Term, p: Point) -> tuple[str, list[_Part], Combined]:
        n, values = self.n, [self._one(self.value(x, p)) for x in (a, b)]
        alike = named.symbol == "·" and a.codomain is b.codomain  # numbers

        def around(moving: int, text: Text) -> Text:
            """The product with the other argument fixed, after the derivative of this one."""
            fixed = 1 - moving
            value = (n.turned(values[fixed]), POWER) if named.turned[fixed] else values[fixed]
            side = 0 if alike else fixed if not named.first else 1 - fixed
            if named.symbol == "∗":
                links = [self._diagonal([(n.spaced(n.within(value, COMPOSE), n["·"]), ATOM)])]
            else:
                links: list[Text] = [(section(n, n[named.symbol], value, side), ATOM)]
            links += [(n.turned((f"({n.hole()})", ATOM)), ATOM)] if named.turned[moving] else []
            return n.infix([*links, text], "•", COMPOSE)

        if a is b and named.symbol in "∗·⊙":  # u ⋆ v and u ⊗ v are not v ⋆ u and v ⊗ u
            square: Combined = lambda ts: combination(n, (2.0,), [around(0, ts[0])])  # noqa: E731
            return "square, rule (4)", [self.part(a, p)], square
        moving = [k for k, x in enumerate((a, b)) if not isinstance(x, Const)]
        parts = [self.part((a, b)[k], p) for k in moving]
        ones = (1.0,) * len(moving)
        return (
            "product, rule (4)",
            parts,
            lambda ts: combination(n, ones, [around(k, x) for k, x in zip(moving, ts, strict=True)]),
        )

    def _slope(self, t: Primitive, p: Point) -> Text:
        """The derivative of a primitive at a value, from its rule evaluated on symbols."""
        n, program = self.n.plain, derive_program(lower(t)).derivative
        count = len(t.domain.leaves)
        names = [self._one(p)] if count == 1 else [self._one(x) for x in p] if not isinstance(p[0], str) else []
        if len(names) != count:
            names = [(n.sub(n.within(self._one(p), ATOM), i), ATOM) for i in range(count)]
        writer = Writer(n, program, program.dependent(program.inputs[count:]), [*names, *wires(n, t.domain)])
        text = writer.outputs()[0]
        for name, definition in reversed(writer.lets):
            text = text.replace(name, n.parens(definition))
        return text, ATOM if count == 1 and _bare(n, text) is not None else SUM


def _bare(n: Notation, text: str) -> str | None:
    """A text without the brackets that are around all of it; None where there are none."""
    left, right = n.parens("\0").split("\0")
    if not (text.startswith(left) and text.endswith(right)):
        return None
    inside, depth = text[len(left) : len(text) - len(right)], 0
    for c in inside:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return None
    return inside


def _product(g: Term) -> ProductName | None:
    """The name of a product of two arguments."""
    if isinstance(g, Applied) and isinstance(g.product, Contraction):
        return two(g.product) if len(g.product.labels) == 2 else None
    symbol = LIFTED.get(cast(Any, type(g)))
    return None if symbol is None else ProductName(symbol, 0, (False, False))
