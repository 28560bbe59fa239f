"""Expressions as text, in Unicode and LaTeX, with names for parts that occur more than once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..show.notation import ATOM as TIGHT
from ..show.notation import Notation
from .expression_trees import Tree, repeated

Written = TypeVar("Written")
SUM, TIMES, CHAIN, ATOM = range(4)
LEVELS = {"sum": SUM, "hadamard": TIMES, "quotient": TIMES, "kronecker": TIMES, "chain": CHAIN}
_CLOSE = re.compile(r"[^\W\d_][⁻¹ᵀ²³⁴⁵₀-₉]*|\(.*\)[⁻¹ᵀ²³₀-₉]*|[\d.]+|‖.*‖[⁻¹²³⁴]*|𝟏ᵀ?|½")
"""Texts that stand side by side without a space between them."""
_SHOWN = {"sigmoid": "σ", "max0": "colmax", "max1": "rowmax", "min0": "colmin", "min1": "rowmin"}
_SHOWN |= {"maximum": "max", "minimum": "min"}
_SUBSCRIPTS = str.maketrans("ijklmnprst", "ᵢⱼₖₗₘₙₚᵣₛₜ")


def written(
    root: Tree,
    names: Container[int],
    top: bool,
    named: Callable[[Tree], Written],
    write: Callable[[Tree, dict[int, Written]], Written],
) -> Written:
    """A tree written from its leaves up, without recursion. Parts with names are not looked into; `top`: the whole is
    written out even if it has a name."""
    done: dict[int, Written] = {}
    stack: list[tuple[Tree, bool]] = [(root, False)]
    while stack:
        t, ready = stack.pop()
        if t.id in done:
            continue
        if t.id in names and not (top and t is root):
            done[t.id] = named(t)
        elif ready:
            done[t.id] = write(t, done)
        else:
            stack += [(t, True), *[(x, False) for x in t.kids]]
    return done[root.id]


class FormText:
    """Writes trees in a notation; `names` are parts that have a name, `taken` the names of the user's arrays: an
    identity is I, and I₃ beside an array that is called I."""

    def __init__(self, notation: Notation, names: dict[int, str] | None = None, taken: Iterable[str] = ()) -> None:
        self.notation, self.names, self._taken = notation, names or {}, {*taken}

    def text(self, root: Tree, top: bool = False) -> str:
        """A tree as text; `top`: a part is written out even if it has a name."""
        self._root = root.id
        return written(root, self.names, top, self._named, self._marked)

    def _named(self, t: Tree) -> str:
        return self.notation.marked(self.notation.variable(self.names[t.id]), t.id)

    def _marked(self, t: Tree, done: dict[int, str]) -> str:
        return self.notation.marked(self._written(t, done), t.id)

    def _within(self, t: Tree, level: int, done: dict[int, str]) -> str:
        named = t.id in self.names
        low = not named and LEVELS.get(t.kind, ATOM) < level
        if (
            t.kind == "number"
            and level > SUM
            and (t.value < 0 or (isinstance(t.value, Fraction) and t.value.denominator > 1))
        ):
            low = level > TIMES and (t.value < 0 or (self.notation.flat and t.value != Fraction(1, 2)))
        if t.kind == "number" and not isinstance(t.value, Fraction):
            low = level > TIMES and self.notation.flat and " " in re.sub(r"\(.*\)", "", done[t.id])
        return self.notation.parens(done[t.id]) if low else done[t.id]

    def _written(self, t: Tree, done: dict[int, str]) -> str:
        n = self.notation
        inside = lambda x, level=SUM: self._within(x, level, done)  # noqa: E731
        match t.kind:
            case "number":
                return self._number(t.value)
            case "zeros":
                return "0"
            case "symbol":
                return n.variable(t.value)
            case "ones":
                return n.ones()
            case "identity":
                return self._apart("I", t.value)
            case "commutation":
                rows, columns = t.value
                return self._apart("K", rows if rows == columns else f"{rows},{columns}")
            case "transpose" if t.kids[0].kind == "inverse" and t.kids[0].id not in self.names:
                return n.inverse_turned(inside(t.kids[0].kids[0], ATOM))
            case "transpose":
                return n.turned((self._bracketed(t.kids[0], inside(t.kids[0], ATOM)), TIGHT))
            case "inverse" | "matrix power" | "power":
                exponent = "-1" if t.kind == "inverse" else str(t.value)
                if t.kind == "power" and t.value.denominator > 1000:
                    exponent = n.number(float(t.value))
                base = self._bracketed(t.kids[0], inside(t.kids[0], ATOM))
                if t.kind == "power" and t.rank == 2:  # at every index
                    return n.everywhere(base, exponent)
                return n.sup(base, f"({exponent})" if "/" in exponent and n.flat else exponent)
            case "norm":
                return n.norm(inside(t.kids[0]))
            case "call":
                return self._call(t, [self._term(x, done, SUM) if len(t.kids) > 1 else done[x.id] for x in t.kids])
            case "chain":
                return self._chain([self._link(t, x, done) for x in t.kids])
            case "hadamard":
                return f" {n['∘']} ".join([inside(x, CHAIN) for x in t.kids])
            case "kronecker":
                return f" {n['⊗']} ".join([inside(x, CHAIN) for x in t.kids])
            case "quotient":
                first = TIMES if t.kids[0].kind == "hadamard" else CHAIN  # (x ∘ y) / z is x ∘ (y / z)
                levels = (first, ATOM) if n.flat else (SUM, SUM)
                return n.fraction(*[inside(x, level) for x, level in zip(t.kids, levels, strict=True)])
            case "condition":
                sign = n["≥"] if t.value == "reaches" else ">"
                return f"[{self._term(t.kids[0], done, SUM)} {sign} {self._term(t.kids[1], done, SUM)}]"
            case "equal":
                return f"[{self._term(t.kids[0], done, SUM)} = {self._term(t.kids[1], done, SUM)}]"
            case "entry":
                base = self._bracketed(t.kids[0], inside(t.kids[0], ATOM))
                places = [str(k) for k in t.value]
                return n.sub(base, ("" if max(map(len, places)) == 1 else ",").join(places))
            case "entries":
                return self._entries(t, [self._within(x, ATOM, done) for x in t.kids])
            case _:  # a sum
                # at the top, 𝟏 says that this is a vector
                alike = t.id == self._root and all([repeated(x) is not None for x in t.kids])
                return self._sum(t.value, [inside(x, TIMES) if alike else self._term(x, done) for x in t.kids])

    def _entries(self, t: Tree, parts: list[str]) -> str:
        """(Σₖ Aᵢₖ Tₖⱼₗ)ᵢⱼₗ; rows and columns of a map are apart."""
        n, (labels, out, rows, _) = self.notation, t.value
        every = [*out, *sorted({k for ls in labels for k in ls} - {*out})]
        letters = dict(zip(every, "ijklmnprst", strict=False))

        def indexed(base: str, ks: Sequence[int], comma: int = 0) -> str:
            names = [letters[k] for k in ks]
            if not names:
                return base
            if n.flat:
                under = ",".join(["".join(names[:comma]), "".join(names[comma:])]) if comma else "".join(names)
                return base + under.translate(_SUBSCRIPTS)
            return n.below(base, " ".join([*names[:comma], ",", *names[comma:]]) if comma else " ".join(names))

        body = self._chain([indexed(part, ks) for part, ks in zip(parts, labels, strict=True)])
        summed = [k for k in every if k not in out]
        body = f"{indexed(n['Σ'], summed)} {body}" if summed else body
        return indexed(n.parens(body), out, rows) if out else n.parens(body)

    def _term(self, t: Tree, done: dict[int, str], level: int = TIMES) -> str:
        """A term of a sum; what is the same at every index of a vector is written as a number."""
        numbers = repeated(t) if t.rank == 1 and t.id not in self.names else None
        if numbers and len(numbers) == 1:
            return self._within(numbers[0], level, done)
        if numbers:
            return self._chain([self._link(t, x, done) for x in numbers])
        return "1" if numbers is not None else self._within(t, level, done)

    def _apart(self, name: str, size: Any) -> str:
        return self.notation.sub(name, size) if name in self._taken else name

    def _bracketed(self, kid: Tree, text: str) -> str:
        marked = kid.kind in ("power", "transpose", "inverse", "matrix power", "entry") and kid.id not in self.names
        return self.notation.parens(text) if marked else text

    def _link(self, chain: Tree, t: Tree, done: dict[int, str]) -> str:
        """A factor of a product side by side. One that is itself such a product keeps its brackets, but for a number at
        the end of a product of numbers."""
        last = t.kind == "chain" and chain.rank == 0 and t is chain.kids[-1]
        return self._within(t, CHAIN if last else ATOM, done)

    def _chain(self, parts: list[str]) -> str:
        if not self.notation.flat:
            return self.notation.beside(parts)
        text = parts[0]
        for before, after in pairwise(parts):
            close = _CLOSE.fullmatch(before) and _CLOSE.fullmatch(after) and after[0] not in "0123456789"
            text += after if close else f" {after}"
        return text

    def _sum(self, signs: Sequence[int], parts: Iterable[str]) -> str:
        minus, text = self.notation["−"], ""
        for k, (sign, part) in enumerate(zip(signs, parts, strict=True)):
            mark = (f"{minus}" if sign < 0 else "") if k == 0 else f" {minus} " if sign < 0 else " + "
            text += mark + part
        return text

    def _call(self, t: Tree, parts: list[str]) -> str:
        n = self.notation
        name: str = t.value[0] if isinstance(t.value, tuple) else t.value
        if name == "sqrt":
            return n.root(parts[0])
        if name in ("abs", "logabs"):
            inside = n.absolute(parts[0])
            return inside if name == "abs" else f"{n.function('log')} {inside}"
        if name.startswith("at "):  # [x = max(x)]
            peak = self._call(Tree(-1, "call", t.kids, name[3:], t.rank, False), parts)
            return f"[{parts[0]} = {peak}]"
        shown = _SHOWN.get(name, name)
        return f"{n.function(name if shown in self._taken else shown)}{n.parens(', '.join(parts))}"

    def _number(self, k: Any) -> str:
        n = self.notation
        if isinstance(k, Fraction):
            if 1 < k.denominator <= 64:
                return n.small_fraction(n.number(k.numerator), n.number(k.denominator))
            short = float(n.digits(float(k))) == float(k) or k.denominator == 1
            return self._digits(float(k)) if short else n.small_fraction(n.number(k.numerator), n.number(k.denominator))
        sign, k = ("" if k > 0 else n["−"]), abs(k)
        for j in (0, 1, -1, 2, -2):  # k² = q πʲ
            q = _simple(k * k / np.pi**j)
            whole = q is not None and all([math.isqrt(i) ** 2 == i for i in (q.numerator, q.denominator)])
            if q is not None and (whole or j % 2 or not j):
                return sign + self._root_of(q, j)
        for base in (2, 10):
            log = f"{n.function('log')}{n.parens(str(base))}"
            for power in (1, -1):
                q = _simple(k / np.log(base) ** power)
                if q is not None:
                    top = n.number(q.numerator) if q.numerator > 1 or power < 0 else ""
                    above, below = [top, log] if power > 0 else [top], [log] if power < 0 else []
                    below = [*([n.number(q.denominator)] if q.denominator > 1 else []), *below]
                    return sign + self._over(self._chain([x for x in above if x]), self._chain(below) if below else "")
        return sign + self._digits(k)

    def _root_of(self, q: Fraction, j: int) -> str:
        """√(q πʲ), a multiple of π where it is one."""
        n, π = self.notation, [self.notation.variable("π")]
        numbers = [q.numerator, q.denominator]
        outside = j in (2, -2)
        numbers = [math.isqrt(k) for k in numbers] if outside else numbers
        above, below = [[n.number(k)] if k > 1 else [] for k in numbers]
        above, below = above + (π if j > 0 else []), below + (π if j < 0 else [])
        if outside or (above and below):
            text = self._over(self._chain(above or ["1"]), self._chain(below) if below else "")
            return text if outside else n.root(text)
        return n.root(self._chain(above)) if above else self._over("1", n.root(self._chain(below)))

    def _over(self, above: str, below: str) -> str:
        tight = re.fullmatch(r"\w|\d+|\w+\(.*\)", below) or not self.notation.flat
        return self.notation.fraction(above, below if tight else self.notation.parens(below)) if below else above

    def _digits(self, k: float) -> str:
        """All digits where four do not say it."""
        short = self.notation.digits(k)
        return (short if float(short) == k else repr(k)).replace("inf", "∞").replace("-", self.notation["−"])


def _simple(x: float) -> Fraction | None:
    """A number as a fraction of small numbers, where it is one to all digits."""
    near = Fraction(x if math.isfinite(x) else 0).limit_denominator(64)
    return near if near and near.numerator <= 400 and abs(float(near) - x) <= 4e-16 * x else None


def shared_parts(roots: Sequence[Tree], taken: Iterable[str], given: dict[int, str]) -> list[tuple[str, Tree]]:
    """Names for the parts of trees that occur more than once and are worth it, parts of parts first."""
    used = {*taken, *given.values()}
    free = [x for x in "esuvzpqrghkESUVZPQRGH" if x not in used]
    references: dict[int, int] = {}
    order, seen = list[Tree](), set[int]()
    stack = [(t, False) for t in roots]
    for t in roots:
        references[t.id] = references.get(t.id, 0) + 1
    while stack:
        t, ready = stack.pop()
        if ready:
            order.append(t)
        elif t.id not in seen:
            seen.add(t.id)
            stack.append((t, True))
            for x in t.kids:
                references[x.id] = references.get(x.id, 0) + 1
                stack.append((x, False))
    named: dict[int, str] = {}
    found: list[tuple[str, Tree]] = []
    size: dict[int, int] = {}
    for t in order:
        weight = t.weight - sum([x.weight for x in t.kids]) + sum([1 if x.id in named else size[x.id] for x in t.kids])
        size[t.id], k = weight, references[t.id]
        if t.row or (t.kind == "transpose" and t.rank == 1) or repeated(t) == []:
            continue
        if k > 1 and weight > 2 and k * (weight - 1) - weight - 1 >= 1 and t.kind != "number":
            name = given.get(t.id) or next((x for x in free if x.isupper() == (t.rank == 2)), None)
            name = name or f"e{len(found)}"
            free = [x for x in free if x != name]
            named[t.id] = name
            found.append((name, t))
    return found
