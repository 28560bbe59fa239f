"""A derivation step by step, rule by rule: which equation of the paper gives which part of the derivative and of its
adjoint."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ..maps.derivation import Derivation
from ..maps.structured import Shown
from ..ops.discrete_fourier import Transform
from ..ops.op import Combination, Contraction, Multilinear, Op, Reduction, Single
from ..ops.opaque import Declared, Discrete, Ruled, Select
from ..programs.program import Program
from ..programs.sub_programs import Block
from ..runtime import later
from ..runtime.interning import children, postorder
from ..terms.bilinear import Applied, Bilinear
from ..terms.primitives import Primitive
from ..terms.sums import Fold, Fork, Map, Par, Reduce
from ..terms.term import Combine, Compose, Const, Term
from .face import PRINTERS
from .notation import ATOM, COMPOSE, UNICODE, Notation, Text
from .program_text import Writer, derivation_text, wires
from .term_text import call, combination, op_title, term_text, term_texts

LIMIT = 60


class Explanation(Shown):
    """A derivation told step by step: `rules` and `adjoints` are (equation, reason) pairs with the equations of the
    paper, `steps` lead from the definition to the closed form in matrix notation. A step has `rule`, `where`, `before`
    and `after`."""

    def __init__(self, derivation: Any) -> None:
        self.derivation = derivation
        self.rules = _differentiation(derivation.function)
        self.adjoints = _adjoints(derivation)

    @cached_property
    def steps(self) -> list[Any]:
        """Equations in the arguments, each with its rule; the last one is the closed form. None where a derivative has
        no closed form.

        >>> import numpy as np, riesz as rz
        >>> for step in rz.explain(lambda x: np.sum(x**2), rz.R ** 3).steps:
        ...     print(step, "|", step.rule)
        f = ‖x‖² | definition
        dy1 = x ∘ dx | product and chain rule
        dy2 = 2 dy1 = 2(x ∘ dx) | linear: scaled
        dy3 = Σ(dy2) = 2 xᵀ dx | linear: summed or turned
        ∇f = 2x | the gradient: f'(x) dx = ⟨∇f, dx⟩
        """
        return later.form_steps(self.derivation)


def explanation_text(n: Notation, e: Explanation) -> str:
    """Rules and steps in two columns; in LaTeX and MathML the steps, or the derivation where there are none."""
    rows = [(step.text(n), step.rule) for step in e.steps]
    if not n.flat:
        shown = [n.spaced(equation, n.prose(f" ({rule})")) for equation, rule in rows]
        return n.lines(shown) if rows else derivation_text(n, e.derivation)
    f = e.derivation.function
    lines = [f"f = {_short(f)} : {f.domain} → {f.codomain}", ""]
    lines += ["Differentiate (v, u stand for the points where the parts are evaluated)", *_columns(e.rules), ""]
    lines += ["Take adjoints", *_columns(e.adjoints), "", "Together", derivation_text(n, e.derivation)]
    if rows:
        closed = str(e.derivation.show("matrix"))
        lines += ["", "In matrix notation", *_columns([(rule, equation) for equation, rule in rows])]
        lines += [] if lines[-1].endswith(closed) else ["  that is", *[f"  {line}" for line in closed.splitlines()]]
    return "\n".join(lines)


PRINTERS[Explanation] = explanation_text


def _short(t: Term) -> str:
    text = term_text(UNICODE, t)[0]
    return text if len(text) <= LIMIT else text[: LIMIT - 2] + " …"


def _columns(rows: list[tuple[str, str]]) -> list[str]:
    shown = rows if len(rows) <= 60 else [*rows[:40], (f"… {len(rows) - 50} more", ""), *rows[-10:]]
    width = min(max([len(a) for a, _ in shown], default=0), 88)
    return [f"  {a.ljust(width)}   {b}".rstrip() for a, b in shown] or ["  (nothing to do)"]


def _differentiation(f: Term) -> list[tuple[str, str]]:
    """One equation per subterm that is not linear, and per linear one inside it; a term before its parts."""
    n, texts = UNICODE, term_texts(UNICODE, f)

    def part(t: Term) -> str:
        text = texts[t]
        return n.within(text if len(text[0]) <= LIMIT else (text[0][: LIMIT - 2] + " …", COMPOSE), ATOM)

    if f.linear:
        return [(f"{part(f)}'(v) = {part(f)}", "linear function, rule (3): its own derivative")]
    curved = [t for t in postorder(f) if isinstance(t, Term) and not t.linear]
    rows: list[tuple[str, str]] = []
    told: set[Any] = set()
    for t in reversed(curved):
        rows.append(_rule(t, part))
        for c in children(t):
            if isinstance(c, Term) and c.linear and c not in told:
                told.add(c)
                rows.append((f"{part(c)}'(v) = {part(c)}", "linear, rule (3)"))
    return rows


def _rule(t: Term, part: Callable[[Term], str]) -> tuple[str, str]:
    n = UNICODE
    left = f"{part(t)}'(v)"
    match t:
        case Compose(outer=g, inner=h):
            return f"{left} = {part(g)}'({part(h)} v) • {part(h)}'(v)", "chain rule (1)"
        case Const():
            return f"{left} = 0", "constant function, rule (2)"
        case Bilinear():
            symbol = part(t)[1:-1]
            return f"{part(t)}'(u, v) = (u {symbol}) • π₁ + ({symbol} v) • π₀", "bilinear function, rule (4)"
        case Map(term=h):
            return f"{left} = Δ(({part(h)}')^{t.index} v)", "parallel composition, rule (5)"
        case Par(terms=hs):
            inside = ", ".join([f"{part(h)}'({n.sub('v', i)})" for i, h in enumerate(hs[:6])])
            return f"{left} = Δ({inside})", "parallel composition, rule (5)"
        case Fork(terms=hs):
            inside = ", ".join([f"{part(h)}'(v)" for h in hs[:6]])
            return f"{left} = ⟨{inside}⟩", "⟨f, g⟩ = (f × g) ∘ dup: rules (1), (3), (5)"
        case Combine(coefficients=ks, terms=hs):
            right = combination(n, ks, [(f"{part(h)}'(v)", ATOM) for h in hs])[0]
            return f"{left} = {right}", "sum: + is linear, rules (1), (3)"
        case Primitive():
            return f"{part(t)}'(v) = {_slope(t)}", "primitive function"
        case Applied(product=Contraction()):
            right = f"{part(t)} with all but one argument fixed, summed"
            return f"{part(t)}'(u, v, …) = {right}", "multilinear function, rule (4)"
        case Applied():
            return _applied(t.op, part(t))
        case Fold(relation=r, how=how):
            weight = {"prod": "others(v)", "logsumexp": "softmax(v)", "mean": "1 / n"}.get(how, "shares(v)")
            return f"{left} = {term_text(n, Reduce(r, t.base))[0]} • Δ({weight} ·)", "fold along a relation"
        case _:
            return f"{left} = (see {type(t).__name__})", "derived function"


def _applied(op: Op, name: str) -> tuple[str, str]:
    match op:
        case Discrete():
            return f"{name}'(v) = 0", "constant between jumps"
        case Select():
            return f"{name}'(c, u, v) = (c ⊛) • π₁ + (¬c ⊛) • π₂", "selection: linear in what is chosen"
        case Multilinear() if not isinstance(op, Ruled):
            return f"{name}'(u, v) = ({name} with one argument fixed) • π, summed", "multilinear function, rule (4)"
        case _:
            return f"{name}'(v) = its own differential", "a function with a known differential"


def _slope(p: Primitive) -> str:
    """p' as a section, from its rule evaluated on symbols."""
    from ..calculus.derive import derive_program, lower

    program = derive_program(lower(p)).derivative
    count = len(p.domain.leaves)
    names: list[Text] = [("v", ATOM)] if count == 1 else [(UNICODE.sub("v", i), ATOM) for i in range(count)]
    writer = Writer(UNICODE, program, program.dependent(program.inputs[count:]), [*names, *wires(UNICODE, p.domain)])
    text = writer.outputs()[0]
    for name, definition in reversed(writer.lets):
        text = text.replace(name, f"({definition})")  # the names of lets are theirs alone until they are shown
    return text


def _adjoints(derivation: Any) -> list[tuple[str, str]]:
    """One equation per kind of linear step in the derivative."""
    program: Program = derivation.programs.affine
    flags = program.dependent(program.inputs[derivation.programs.inputs :])
    steps = [slot for slot, args in enumerate(program.args) if flags[slot] and args]
    kinds = {_kind(program.ops[slot]) for slot in steps}
    rows = [row for kind, row in _ADJOINTS.items() if kind in kinds]
    plain = [slot for slot in steps if not _kind(program.ops[slot])]
    own = [slot for slot in plain if isinstance(program.ops[slot], (Single, Multilinear))]
    rows += dict.fromkeys([_own(program, slot, flags) for slot in own[:LIMIT]])
    head = [("(g • f)* = f* • g*", f"composition: the {len(steps)} linear steps in reverse")] if len(steps) > 1 else []
    if len(program.inputs) > derivation.programs.inputs + 1:
        head.append(("π_i* = ι_i", "projections of the argument: the adjoint ends in a fork"))
    return head + rows


def _own(program: Program, slot: int, flags: Any) -> tuple[str, str]:
    """The adjoint of an op that has one of its own: solve(a, _)* = solve(aᵀ, _)."""
    op, given = program.ops[slot], program.args[slot]
    letters = iter("abcghkmnpqrstuvw")
    args = [(UNICODE.hole() if flags[a] else next(letters), ATOM) for a in given]
    shapes = tuple([program.shapes[a] for a in given])
    moving = [bool(flags[a]) for a in given].index(True)
    turned = op.turned(shapes[0]) if isinstance(op, Single) else op.transpose(moving, shapes)
    left, right = [op_title(UNICODE, x) if len(args) == 1 else call(UNICODE, x, args) for x in (op, turned)]
    return f"{left}* = {right}", "an op with an adjoint of its own"


_OWN_KINDS = {Declared: "declared", Block: "block", Transform: "Fourier"}
_KINDS: dict[type, str] = {float: "scale", Combination: "sum", Reduction: "reduce", **_OWN_KINDS}


def _kind(op: Any) -> str:
    if not isinstance(op, Contraction):
        return next((_KINDS[k] for k in type(op).__mro__ if k in _KINDS), "")
    if len(op.labels) == 1:
        return "labelled"
    a, *rest = op.labels
    pair = len(rest) == 1 and ((a == rest[0] and op.out in (a, ())) or not a or not rest[0])
    return "product" if pair else "contract"


_ADJOINTS = {
    "scale": ("(k ·)* = (k ·)", "scaling"),
    "product": ("(k ·)* = (k ·),  Δ(v ·)* = Δ(v ·),  (· v)* = (⊙ v)", "scalar, diagonal and inner products"),
    "contract": ("(v ⊛)* = (vᵀ ⊛),  (⊛ w)* = (⊛ wᵀ)", "tensor contraction: matrix products, ⊗"),
    "labelled": ("Σ* = rep,  (_)ᵀ* = (_)ᵀ", "sums, broadcasts and transposes"),
    "sum": ("(f + g)* = f* + g*", "sum; a value used twice gets both cotangents"),
    "reduce": ("red_R* = red_{Rᵀ}", "relational reduction"),
    "declared": ("(u ⋄)* and (⋄ v)* as declared", "declared functions"),
    "Fourier": (
        "F* = n · F⁻¹,  U* = U⁻¹",
        "Fourier transforms, unitary up to scale; F_ℝ* counts what stands for two numbers once",
    ),
    "block": ("loop* goes through the adjoints of the rounds in reverse", "loops, branches and what is computed again"),
}


def explain(f: Any, *spaces: Any) -> Explanation:
    """The derivation of f' and its adjoint, rule by rule: with the equations of the paper, then in matrix notation from
    the definition to the closed form. `f` is a function with its spaces or examples, as for derive, or a derivation.

    >>> import riesz as rz
    >>> rz.explain(rz.ln @ rz.sin).rules[0]
    ("(ln ∘ sin)'(v) = ln'(sin v) • sin'(v)", 'chain rule (1)')
    """
    from ..functions.derivatives import derive

    return Explanation(f if isinstance(f, Derivation) and not spaces else derive(f, *spaces))
