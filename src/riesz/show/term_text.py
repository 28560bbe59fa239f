"""Printing of sets, relations, spaces and terms in the notation of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from .. import relations as kinds
from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.discrete_fourier import Transform
from ..ops.op import Contraction, Reshape
from ..ops.opaque import Declared, Ruled, Strongly
from ..programs.sub_programs import Block, Loop
from ..relations.index_algebra import IndexTable
from ..relations.index_sets import Plus, Product, Seg, Set
from ..relations.spans import Span
from ..runtime.interning import Node, children, postorder
from ..spaces.space import Copower, DirectSum, Real, Space, Tensor, Weighted, Zero
from ..terms import open, sums
from ..terms.bilinear import Applied, Bilinear, Contract, Hadamard, Inner, MatMul, MatVec, Outer, ScalarMul, Section
from ..terms.declared import DeclaredBilinear, DeclaredLinear
from ..terms.open import Combinator, OpenPointwise
from ..terms.primitives import Primitive
from ..terms.term import Arrow, Combine, Compose, Const, ZeroMap
from ..terms.unitary import Transpose
from ..terms.weights import Represent, Weigh
from .notation import ATOM, COMPOSE, POWER, PRODUCT, SUM, Notation, Text, one, two

LIFTED = {Outer: "⊗", Inner: "⊙", ScalarMul: "·", MatVec: "⋆", MatMul: "⋆", Hadamard: "∗"}
BILINEAR: dict[type, str] = {Contract: "⊛", **LIFTED}
_SYMBOLS: dict[type, str] = {ZeroMap: "0", sums.Add: "(+)", Represent: "M⁻¹", Weigh: "M"}
_FAMILIES: dict[type, str] = {sums.Par: "Π", sums.BlockDiag: "Δ", sums.Fork: "⟨⟩", sums.Join: "[]"}


def set_text(n: Notation, index: Set) -> Text:
    """3×4, 2+3."""
    done: dict[Node, Text] = {}
    for x in postorder(index):
        match x:
            case Seg():
                done[x] = n.segment(x.n), ATOM
            case Product(factors=()):
                done[x] = "1", ATOM
            case Product(factors=parts):
                done[x] = n["×"].join([n.within(done[p], POWER) for p in parts]), PRODUCT
            case Plus(summands=parts):
                done[x] = "+".join([n.within(done[p], PRODUCT) for p in parts]), SUM
            case _:
                raise TypeError(x)
        done[x] = n.clip(done[x][0], 200), done[x][1]
    return done[index]


def span_text(n: Notation, span: Span) -> str:
    """2i+k↦i: what each label relates to what."""
    letters = "ijklmpqrst"

    def one(m: Any) -> str:
        if isinstance(m, IndexTable):
            return n.sub("f", letters[m.labels[0] % len(letters)])
        parts = [f"{'' if abs(s) == 1 else abs(s)}{letters[k % len(letters)]}" for k, s in m.terms]
        signs = ["-" if s < 0 else "+" for _, s in m.terms]
        text = "".join([sign + p for sign, p in zip(signs, parts, strict=True)]).lstrip("+")
        return text + (f"{m.offset:+d}" if m.offset and text else str(m.offset) if not text else "")

    sides = [",".join([one(m) for m in maps]) or "()" for maps in (span.left, span.right)]
    return ("" if span.times == 1 else f"{span.times}{n['·']}") + f"{sides[0]}{n['↦']}{sides[1]}"


def relation_text(n: Notation, r: kinds.Relation) -> Text:
    """A relation by its kind and its sets."""
    X, Y = [n.within(set_text(n, s), POWER) for s in (r.source, r.target)]
    match r:
        case kinds.Empty():
            return n["∅"], ATOM
        case kinds.Diagonal():
            return n.sub("=", X), ATOM
        case kinds.Full(times=k):
            return f"{X}{n['×']}{Y}" if k == 1 else f"{k}{n['·']}({X}{n['×']}{Y})", PRODUCT
        case kinds.Function():
            return f"f:{X}{n['→']}{Y}", SUM
        case kinds.Gather():
            return n.turned((f"(f:{Y}{n['→']}{X})", ATOM)), ATOM
        case kinds.Point(at=at):
            return f"({at},())", ATOM
        case kinds.Place(at=at):
            return f"((),{at})", ATOM
        case kinds.Range(start=start, step=step, turned=turned):
            stop = start + step * (r.source.size if turned else r.target.size)
            inside = f"{start}:{stop if stop >= 0 else ''}" + (f":{step}" if step != 1 else "")
            return (n.turned((n.grouped(inside), ATOM)) if turned else inside), ATOM
        case kinds.Triangular(lower=lower, strict=strict):
            return n.sub(("<" if lower else ">") if strict else n["≤"] if lower else n["≥"], X), ATOM
        case kinds.Segments(turned=turned):
            segments = n.words(" segments of ")
            return (n.turned((f"{X}{segments}{Y}", SUM)), ATOM) if turned else (f"{Y}{segments}{X}", SUM)
        case kinds.Through(members=members):
            return _joined(n, "∘", members[::-1], POWER), PRODUCT
        case kinds.Spanned(left=(IndexTable(),), right=(IndexTable(),), times=1):
            return _pairs(n, r, r.sizes[0], X, Y)
        case kinds.Spanned():
            return span_text(n, r.span), ATOM
        case kinds.Both(first=first, second=second):
            return _joined(n, "×", (first, second), POWER), PRODUCT
        case kinds.Sum(members=members):
            return _joined(n, "+", members, PRODUCT), SUM
        case kinds.Union(members=members):
            return _joined(n, "∪", members, PRODUCT), SUM
        case kinds.Beside():
            inside = f"[{', '.join([relation_text(n, p)[0] for p in r.members[:6]])}]"
            return (n.turned((inside, ATOM)) if r.turned else inside), ATOM
        case kinds.Pairs():
            return _pairs(n, r, len(r.rows), X, Y)
        case kinds.Relation(counted=True):
            return _pairs(n, r, r.count, X, Y)
        case _:
            return n.name(type(r).__name__), ATOM


def _joined(n: Notation, symbol: str, members: Sequence[kinds.Relation], level: int) -> str:
    """Up to six relations with a symbol between them."""
    shown = [n.within(relation_text(n, m), level) for m in members[:6]]
    return n[symbol].join([*shown, n["…"]] if len(members) > 6 else shown)


def _pairs(n: Notation, r: kinds.Relation, count: int, X: str, Y: str) -> Text:
    """A relation by its number of pairs; one that was made as the converse of another is written as such."""
    turned = "_converse_of" in r.__dict__
    sets = n["×"].join([Y, X] if turned else [X, Y])
    text: Text = f"{count}{n.words(' pairs ')}{n['⊆']} {sets}", SUM
    return (n.turned(text), ATOM) if turned else text


def space_text(n: Notation, space: Space) -> Text:
    """ℝ^3 ⊕ ℝ, (ℝ ⊕ ℝ)^2, ℝ^2 ⊗ ℝ^3."""
    done: dict[Node, Text] = {}
    for s in postorder(space):
        if not isinstance(s, Space):
            continue
        match s:
            case Zero() | DirectSum(summands=()):
                text: Text = "0", ATOM
            case Real():
                text = n["ℝ"], ATOM
            case DirectSum(summands=parts):
                text = _sum_text(n, s, [done[p] for p in parts])
            case Copower(base=base, index=index):
                text = _powered(n, done[base], index)
            case Tensor(left=left, right=right):
                text = (f"{n.within(done[left], POWER)} {n['⊗']} {n.within(done[right], POWER)}", PRODUCT)
            case Weighted(base=base):
                text = n.sub(n.within(done[base], ATOM), "w"), POWER
            case _:
                raise TypeError(s)
        done[s] = n.clip(text[0], 400), text[1]
    return done[space]


def _powered(n: Notation, base: Text, index: Set) -> Text:
    exponent, level = set_text(n, index)
    return n.exponent(n.within(base, ATOM), exponent, level == ATOM), POWER


def _sum_text(n: Notation, s: DirectSum, parts: list[Text]) -> Text:
    names = s.form.names if s.form else None
    if names:
        inside = ", ".join([f"{n.variable(name)}: {p[0]}" for name, p in list(zip(names, parts, strict=True))[:12]])
        return n.braces(inside), ATOM
    if len(parts) == 1:
        return f"{n['⊕']}({parts[0][0]})", POWER
    shown = parts if len(parts) <= 8 else [*parts[:5], (n["…"], ATOM), *parts[-2:]]
    return f" {n['⊕']} ".join([n.within(p, PRODUCT) for p in shown]), SUM


def term_text(n: Notation, term: Arrow) -> Text:
    """A term or open combinator, clipped where it is very long; any depth."""
    return term_texts(n, term)[term]


def term_texts(n: Notation, term: Arrow) -> dict[Any, Text]:
    """The texts of a term and of everything in it; the k-th of its nodes in postorder is marked k."""
    done: dict[Any, Text] = {}
    for k, t in enumerate(postorder(term)):
        if isinstance(t, Arrow):
            inside = [done[c] for c in children(t) if isinstance(c, Arrow)]
            text, level = _arrow(n, t, inside, done)
            done[t] = n.marked(n.clip(text), k), level
    return done


def _over(n: Notation, word: str, index: Set | None, only: tuple[Any, ...] | None) -> Text:
    """rep_X, or rep_{…} where it is about some places only."""
    if only is None:
        return (word if index is None else n.sub(word, set_text(n, index)[0])), ATOM
    inside = ",".join([str(p) for p in only[:6]]) + ("," + n["…"] if len(only) > 6 else "")
    return n.sub(word, n.braces(inside)), ATOM


def _component(n: Notation, letter: str, space: Space, position: int) -> str:
    names = space.form.names if isinstance(space, DirectSum) and space.form else None
    if names:
        return n.sub(n[letter], n.variable(names[position]))
    index = cast("Copower | DirectSum", space).index
    return n.sub(n[letter], position if isinstance(index, Seg) else str(index.element(position)).replace(" ", ""))


def primitive_text(n: Notation, p: Primitive) -> str:
    """sin, (_)², …."""
    if p.name == "power":
        return n.sup(f"({n.hole()})", _exponent(n, p))
    return {"divide": f"({n['/']})"}.get(p.name, n.name(p.name))


def _exponent(n: Notation, p: Primitive) -> str:
    return n.number(p.parameter).replace("−", "-")


def _arrow(n: Notation, t: Arrow, inside: list[Text], done: dict[Any, Text]) -> Text:
    match t:
        case Const() | open.OpenConst():
            value = n.vector(t.leaves)[0]
            return n.fixed(value), ATOM
        case Compose():
            return _composition(n, t, done)
        case open.OpenCompose():
            return n.infix(inside, "∘", COMPOSE)
        case Combine():
            return combination(n, t.coefficients, inside)
        case OpenPointwise():
            return _pointwise(n, t, inside)
        case Primitive():
            return primitive_text(n, t), ATOM if t.parameter is None else POWER
        case sums.Project() | sums.Inject():
            return _component(n, "π" if isinstance(t, sums.Project) else "ι", t.space, t.position), ATOM
        case open.OpenFamily(kind="Π") | sums.Par(terms=(_, _, *_)):
            return n.infix(inside, "×", PRODUCT)
        case open.OpenFamily() | sums.Par() | sums.BlockDiag() | sums.Fork() | sums.Join():
            kind = t.kind if isinstance(t, open.OpenFamily) else _FAMILIES[type(t)]
            left, right = kind if len(kind) == 2 else (n[kind] + "(", ")")
            return n.listed(left, inside, right)
        case sums.Map() | open.OpenMap():
            return _powered(n, inside[0], t.index)
        case sums.Reduce(relation=r):
            return n.below(n.name("red"), relation_text(n, r)[0]), ATOM
        case sums.Fold(relation=r, how=how):
            return n.below(n.name(how), relation_text(n, r)[0]), ATOM
        case sums.Rep() | sums.Total():
            return _over(n, n.name("rep") if isinstance(t, sums.Rep) else n["Σ"], t.index, t.only)
        case sums.Scan(index=index, suffix=suffix):
            text = n.sub(n.name("scan"), set_text(n, index)[0])
            return (n.star(text) if suffix else text), ATOM
        case Section(bilinear=b, leaves=leaves):
            value = n.vector(leaves)
            if isinstance(b, Contract) and (len(leaves) != 1 or np.ndim(leaves[0]) < 2):
                space = Tensor(b.middle, b.last) if t.side else Tensor(b.first, b.middle)
                value = f"{value[0]} {n['∈']} {space_text(n, space)[0]}", SUM  # does not look like the tensor it is
            return section(n, _symbol(n, b), value, t.side), ATOM
        case Bilinear():
            return n.parens(_symbol(n, t)), ATOM
        case Transpose():
            return n.turned((f"({n.hole()})", ATOM)), ATOM
        case Applied(product=Contraction() as c):
            return single(n, c) if len(c.labels) == 1 else contract(n, c), ATOM
        case DeclaredLinear():
            return declared(n, t), ATOM
        case Applied():
            return op_title(n, t.op), ATOM
        case Combinator():
            return _combinator(n, t), ATOM
        case _:
            known = _SYMBOLS.get(type(t))
            return n.name(type(t).__name__.lower()) if known is None else n[known], ATOM


def op_title(n: Notation, op: Any) -> str:
    """What an op is called: solve, F*, reshape_{2×3}, …; an adjoint has a star where it has no name of its own."""
    match op:
        case Strongly():
            return op_title(n, op.op)
        case Transform():
            return _transform(n, op)
        case Reshape(shape=shape):
            return n.below(n.name("reshape"), n["×"].join(map(str, shape)) or "()")
        case Declared():
            return declared(n, op)
        case Convolution(leg=leg):
            return n.name("convolution") if leg == 2 else n.sub(n.star(n.name("convolution")), leg)
        case Block() | Ruled():
            known = dict(op.parameters) if isinstance(op, Ruled) else {"turned": getattr(op, "adjoint", False)}
            name = n.name("reverse_loop" if isinstance(op, Loop) and op.reverse != op.adjoint else op.title)
            if "relation" in known:
                return n.below(name, relation_text(n, cast(Any, known["relation"]))[0])
            return n.star(name) if known.get("turned", False) else name
        case _:
            return n.name(op.title)


def call(n: Notation, op: Any, args: list[Text]) -> str:
    """An op on its arguments: solve(Aᵀ, b), expm'(A, M) for the derivative of expm at A along M."""
    while isinstance(op, Strongly):
        op = op.op
    if isinstance(op, ExchangedLeg):
        op, args = Convolution(op.leg), args[::-1]
    name = op_title(n, op)
    if isinstance(op, Ruled):
        known = dict(op.parameters)
        if "at" in known:  # directions of a derivative come after the matrix; those beside a cotangent are transposed
            name += "'" * (len(args) - 1)
        last = len(args) - 1 if known.get("transposed") else known.get("at", 0)
        args = [(n.turned(a), POWER) if last and i != last else a for i, a in enumerate(args)]
    return name + n.listed("(", args, ")")[0]


def declared(n: Notation, f: DeclaredLinear | DeclaredBilinear | Declared) -> str:
    """The name of somebody's function; its transposes have a star, and the number of the argument they compute."""
    name, last = n.operator(f.form.name), len(f.form.legs) - 1
    return name if f.target == last else n.star(name) if last == 1 else n.sub(n.star(name), f.target)


def _transform(n: Notation, op: Transform) -> str:
    letter, below, inverse, adjoint, factor = op.symbol
    several = "," in below and n.flat
    name = n.sub(letter, f"{{{below}}}" if several else below.replace("ℝ", n["ℝ"])) if below else letter
    name = n.sup(name, "-1") if inverse else name
    name = n.star(name) if adjoint else name
    return name if not factor else f"(n {n['·']} {name})" if factor == "n" else f"({name} / n)"


def _symbol(n: Notation, b: Bilinear) -> str:
    return declared(n, b) if isinstance(b, DeclaredBilinear) else n[BILINEAR[type(b)]]


def section(n: Notation, symbol: str, value: Text, side: int) -> str:
    """(u ⋄) or (⋄ v)."""
    number = n.seen(value[0]).lstrip("−-").replace(".", "").isdigit()
    shown = value[0] if number else n.within(value, COMPOSE)
    return n.parens(n.spaced(symbol, shown) if side else n.spaced(shown, symbol))


def contract(n: Notation, c: Any) -> str:
    """contract[ij,j→i]; labels of the result alone have their sizes beside them."""
    letters = "ijklmnopqrstuvwxyzabcdefgh"
    spell = ["".join([letters[x % 26] for x in ls]) for ls in (*c.labels, c.out)]
    sizes = "".join([f", {letters[x % 26]}={size}" for x, size in c.extra])
    arrow = n["→"] if n.flat else n["→"] + " "
    return f"{n.name('contract')}[{','.join(spell[:-1])}{arrow}{spell[-1]}{sizes}]"


def single(n: Notation, c: Any) -> str:
    """A contraction of one argument as a function: Σ, rep, (_)ᵀ."""
    known = one(c)
    if known == "ᵀ":
        return n.turned((f"({n.hole()})", ATOM)) if len(c.out) == 2 else contract(n, c)
    if known == "Σ":  # along some axes: Σ₀
        (labels,) = c.labels
        summed = ",".join([str(k) for k, label in enumerate(labels) if label not in c.out])
        return n.sub(n["Σ"], summed) if c.out else n["Σ"]
    return contract(n, c) if known is None else n.name(known)


def combination(n: Notation, coefficients: tuple[float, ...], parts: list[Text]) -> Text:
    """f + g − 2·h."""
    text = ""
    for k, part in zip(coefficients, parts, strict=True):
        sign = ("−" if not text else " − ") if k < 0 else "" if not text else " + "
        sign = sign.replace("−", n["−"])
        size = abs(k)
        tight = len(parts) == 1 or k < 0 or size != 1.0
        body = n.within(part, PRODUCT if tight or part[1] > SUM else SUM)
        if sign == " + " and size == 1.0 and (bare := n.unsigned(body)) is not None:
            sign, body = f" {n['−']} ", bare
        text += sign + (body if size == 1.0 else f"{n.number(size)} {n['·']} {n.within(part, PRODUCT)}")
    negative = coefficients[0] < 0
    return text, SUM if len(parts) > 1 or negative else PRODUCT if coefficients[0] != 1.0 else parts[0][1]


def _composition(n: Notation, t: Compose, done: dict[Any, Text]) -> Text:
    g, f = t.outer, t.inner
    if isinstance(f, sums.Fork):
        parts, symbol = [done[x] for x in f.terms], LIFTED.get(cast(Any, type(g)))
        if symbol:
            return n.infix(parts, symbol, PRODUCT if symbol in "·∗" else POWER)[0], PRODUCT
        pattern = two(g.product) if isinstance(g, Applied) and g.product is not None else None
        if pattern is not None:
            shown = [(n.turned(x), POWER) if t else x for x, t in zip(parts, pattern.turned, strict=True)]
            return n.infix(shown[::-1] if pattern.first else shown, pattern.symbol, POWER)[0], PRODUCT
        if isinstance(g, Primitive) and g.name == "divide":
            return " / ".join([n.within(x, POWER) for x in parts]), PRODUCT
    if isinstance(g, Primitive) and g.name == "power" and not isinstance(f, Primitive):  # sin⁻¹ would be read as arcsin
        return n.sup(n.within(done[f], ATOM), _exponent(n, g)), POWER
    return n.infix([done[g], done[f]], "•" if t.linear else "∘", COMPOSE)


def _pointwise(n: Notation, t: OpenPointwise, inside: list[Text]) -> Text:
    if t.symbol == "**" and isinstance(t.terms[0], Primitive):
        return n.infix([(primitive_text(n, t.parameters[0]), ATOM), inside[0]], "∘", COMPOSE)
    if t.symbol == "**":
        return n.sup(n.within(inside[0], ATOM), _exponent(n, t.parameters[0])), POWER
    if len(inside) == 1 and t.symbol == "·" and isinstance(t.parameters[0], float):
        return combination(n, (t.parameters[0],), inside)
    if len(inside) == 1:  # with a number
        _, k, first, *_ = t.parameters
        inside = [n.leaf(k), *inside] if first else [*inside, n.leaf(k)]
    if t.symbol in "+−":
        return combination(n, (1.0, 1.0 if t.symbol == "+" else -1.0), inside)
    if t.symbol == "/":
        return f"{n.within(inside[0], PRODUCT)} / {n.within(inside[1], POWER)}", PRODUCT
    return n.infix(inside, t.symbol, PRODUCT)


_OPEN = {"add": "(+)", "total": "Σ", "contract": "(⊛)", "outer": "(⊗)", "inner": "(⊙)", "scalar_mul": "(·)"}
_OPEN.update({"matvec": "(⋆)", "matmul": "(⋆)", "hadamard": "(∗)", "zero": "0"})


def _combinator(n: Notation, t: Combinator) -> str:
    if getattr(t.maker, "name", "") in ("linear", "bilinear"):  # somebody's own, whatever it is called
        return n.name(t.name)
    head = t.name.split("(")[0]
    match head, t.parameters:
        case (("proj" | "inj"), (which, *_)):  # a component, by its place or name
            place = n.variable(which) if isinstance(which, str) else str(which).replace(" ", "")
            return n.sub(n["π" if head == "proj" else "ι"], place)
        case "red", (r, *how):
            return n.below(n.name(how[0] if how else "red"), relation_text(n, r)[0])
        case "rep", (index, only):
            return _over(n, n.name("rep"), index, only)[0]
        case "total", (only,):
            return _over(n, n["Σ"], None, only)[0]
        case "section", (b, side, _, leaves):
            name = _OPEN.get(b.name, b.name).strip("()") if isinstance(b, Combinator) else str(b)
            return section(n, _symbol(n, b) if isinstance(b, Bilinear) else n.operator(name), n.vector(leaves), side)
        case (("contract_left" | "contract_right"), (side, _, leaves)):
            return section(n, n["⊛"], n.vector(leaves), side)
        case _ if head in _OPEN:
            text = _OPEN[head]
            return f"({n[text[1:-1]]})" if text.startswith("(") else n[text]
        case _:
            return n.name(t.name)
