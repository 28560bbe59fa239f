"""Expressions as trees: how products, transposes, powers and quotients are put together with few symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from .exact_numbers import ONE, Number

OWN = {
    "symbol": 1,
    "number": 1,
    "power": 1,
    "inverse": 1,
    "matrix power": 1,
    "call": 1,
    "norm": 1,
    "ones": 1,
    "identity": 1,
    "zeros": 1,
    "commutation": 1,
    "entry": 1,
    "entries": 100,  # only where nothing else fits
}
"""How many symbols a node is beside its parts; for others, one less than it has parts."""
EVERYWHERE = {"exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "sqrt", "abs", "sign", "sinh", "cosh"}
"""Functions of numbers, at every index."""


class Tree:
    """An expression: kind, parts, a name, number or exponent, and its rank (0 a number, 1 a column, 2 a matrix)."""

    __slots__ = ("id", "kids", "kind", "rank", "symmetric", "value", "weight")

    def __init__(self, id: int, kind: str, kids: tuple[Tree, ...], value: Any, rank: int, symmetric: bool) -> None:
        self.id, self.kind, self.kids, self.value, self.rank, self.symmetric = id, kind, kids, value, rank, symmetric
        own = 1 if kind == "transpose" else OWN.get(kind, len(kids) - 1)
        if kind == "sum":
            own += value[0] < 0
        self.weight: int = own + sum([t.weight for t in kids])

    @property
    def row(self) -> bool:
        """Whether this is a vector that lies."""
        if self.kind == "chain":
            return self.rank == 1 and any([t.row for t in self.kids])
        return self.rank == 1 and self.kind == "transpose"


class Trees:
    """Makes trees, each once."""

    def __init__(self) -> None:
        self.units: dict[str, int] = {}  # unit vectors: where their 1 is
        self.column: Callable[[str, str], str | None] = lambda matrix, unit: None  # a name for V e₃
        self._trees: dict[Any, Tree] = {}
        self._turned: dict[Any, Tree] = {}

    def node(
        self, kind: str, kids: Iterable[Tree] = (), value: Any = None, rank: int = 0, symmetric: bool = False
    ) -> Tree:
        """A tree, the same for the same description."""
        parts = tuple(kids)
        key = kind, tuple([t.id for t in parts]), value, rank
        if key not in self._trees:
            self._trees[key] = Tree(len(self._trees), kind, parts, value, rank, symmetric)
        return self._trees[key]

    def number(self, k: Number) -> Tree:
        """A number."""
        return self.node("number", value=k)

    def ones(self, n: int) -> Tree:
        """A column of ones."""
        return self.node("ones", value=n, rank=1)

    def chain(self, parts: Sequence[Tree], rank: int) -> Tree:
        """A product side by side: numbers first, then matrices and vectors in their order."""
        flat: list[Tree] = []
        for t in parts:
            flat += t.kids if t.kind == "chain" and (t.rank or all([x.rank == 0 for x in t.kids])) else [t]
        flat = [t for t in flat if t.rank == 0] + [t for t in flat if t.rank]
        units = [t for t in flat if t.kind != "identity"]
        flat = units if [t for t in units if t.rank] else flat
        if self.units:
            flat = self._with_columns(flat)
        if rank == 0 and self.units:
            flat = self._entry(flat)
        return flat[0] if len(flat) == 1 else self.node("chain", flat, rank=rank, symmetric=_palindrome(self, flat))

    def _with_columns(self, flat: list[Tree]) -> list[Tree]:
        """V e₃ as a vector with a name."""
        out: list[Tree] = []
        for t in flat:
            before = out[-1] if out else t
            M, e = (t, before) if before.row else (before, t)
            if before.row and M.kind == "transpose" and e.kind == "transpose":
                M, e = M.kids[0], e.kids[0]
            name = None
            if M.kind == e.kind == "symbol" and (M.rank, e.rank) == (2, 1) and e.value in self.units:
                name = self.column(M.value, e.value)
            if name is None:
                out.append(t)
                continue
            v = self.node("symbol", value=name, rank=1)
            out[-1] = self.node("transpose", (v,), rank=1) if before.row else v
        return out

    def _entry(self, flat: list[Tree]) -> list[Tree]:
        """e₀ᵀ v = v₀ and e₀ᵀ A e₁ = A₀₁ at the end of a product."""
        numbers, arrays = [t for t in flat if not t.rank], [t for t in flat if t.rank]
        first, last = [self._unit(t) for t in (arrays[0], arrays[-1])] if len(arrays) > 1 else (None, None)
        if first is not None and last is not None and len(arrays) == 2:
            return flat
        if first is not None and last is not None:
            return [*numbers, self.node("entry", (self.chain(arrays[1:-1], 2),), (first, last))]
        if first is not None:
            return [*numbers, self.node("entry", (self.chain(arrays[1:], 1),), (first,))]
        if last is not None:
            turned = self.chain([self.turned(t) for t in arrays[-2::-1]], 1)
            return [*numbers, self.node("entry", (turned,), (last,))]
        return flat

    def _unit(self, t: Tree) -> int | None:
        """Where the 1 of a unit vector is."""
        symbol = t.kids[0] if t.kind == "transpose" and t.rank == 1 else t
        return self.units.get(symbol.value) if symbol.kind == "symbol" else None

    def turned(self, t: Tree) -> Tree:
        """The transpose: the shorter of (A B)ᵀ and Bᵀ Aᵀ."""
        key = t.id, t.symmetric
        if key not in self._turned:
            self._turned[key] = self._transposed(t)
        return self._turned[key]

    def _transposed(self, t: Tree) -> Tree:
        if t.rank == 0 or (t.rank == 2 and t.symmetric):
            return t
        if t.kind == "transpose":
            return t.kids[0]
        if t.kind == "call" and t.value in ("tril", "triu") and t.rank == 2:
            other = "triu" if t.value == "tril" else "tril"
            more = [k.kids[0] if k.kind == "sum" else self.node("sum", (k,), (-1,)) for k in t.kids[1:]]
            return self.node("call", (self.turned(t.kids[0]), *more), other, 2)
        if t.kind == "chain":
            numbers = [x for x in t.kids if x.rank == 0]
            return self.chain([*numbers, *[self.turned(x) for x in reversed(t.kids) if x.rank]], t.rank)
        best = self.node("transpose", (t,), rank=t.rank)
        inside = t.kind in ("sum", "hadamard", "quotient") or (t.kind == "call" and t.value in EVERYWHERE)
        if inside and all([x.rank in (0, t.rank) for x in t.kids]) and t.rank == 2:
            other = self.node(t.kind, [self.turned(x) for x in t.kids], t.value, t.rank)
            if other.weight < best.weight:
                return other
        return best

    def hadamard(self, parts: Sequence[Tree], rank: int) -> Tree:
        """A product at every index; quotients among the factors become one."""
        above, below = list[Tree](), list[Tree]()
        for t in parts:
            top, bottom = (t.kids[0], [t.kids[1]]) if t.kind == "quotient" and t.rank == rank else (t, [])
            above += top.kids if top.kind == "hadamard" else [] if is_number(top, 1) else [top]
            below += bottom
        halves = [t for t in above if t.kind == "call" and t.value in ("tril", "triu") and repeated(t.kids[0]) == []]
        if rank == 2 and len(halves) == 1 and len(above) > 1:
            inside = self._quotient([t for t in above if t is not halves[0]], below, 2)
            return self.node("call", (inside, *halves[0].kids[1:]), halves[0].value, 2)
        if rank == 2 and any([t.kind == "identity" for t in above]):
            rest = [t for t in above if t.kind != "identity"]
            if not rest and not below:
                return above[0]
            inside = self._quotient(rest, below, 2)
            return self.diagonal(self.node("call", (inside,), "diag", 1))
        return self._quotient(above, below, rank)

    def _quotient(self, above: Sequence[Tree], below: Sequence[Tree], rank: int) -> Tree:
        if rank == 1:  # u ∘ u = u²
            above, below = [[self._repeated(t, side.count(t)) for t in dict.fromkeys(side)] for side in (above, below)]
        numbers = [t for t in above if not t.rank and rank]
        above = [t for t in above if t.rank or not rank]
        top = self.number(ONE) if not above else above[0]
        if len(above) > 1:
            symmetric = all([t.symmetric for t in above])
            top = self.node("hadamard", above, rank=rank, symmetric=symmetric)
        if numbers:
            top = self.chain([*numbers, *([top] if above else [])], rank if above else 0)
        if not below:
            return top
        bottom = below[0] if len(below) == 1 else self.node("hadamard" if rank else "chain", below, rank=rank)
        return self.node("quotient", (top, bottom), rank=rank, symmetric=top.symmetric and bottom.symmetric)

    def _repeated(self, t: Tree, times: int) -> Tree:
        base, power = (t.kids[0], t.value) if t.kind == "power" else (t, ONE)
        return self.powered(base, power * times) if times > 1 else t

    def diagonal(self, v: Tree) -> Tree:
        """diag(v)."""
        return self.node("call", (v,), "diag", 2, True)

    def dot(self, u: Tree, v: Tree, n: int = 0) -> Tree:
        """uᵀv of vectors of length n, where that is known."""
        if u is v:
            return self.squared_norm(u, n)
        return min(
            [self.chain([self.turned(u), v], 0), self.chain([self.turned(v), u], 0)], key=lambda t: (t.weight, t.id)
        )

    def squared_norm(self, t: Tree, n: int) -> Tree:
        """‖t‖² of an array of n numbers."""
        return self.node("power", (self.node("norm", (t,), n),), Fraction(2))

    def mean_square(self, t: Tree) -> Tree:
        """mean(t²), of a norm t; var(u) where it is that of u − mean(u)."""
        (inner,) = t.kids
        if inner.kind == "sum" and inner.value == (1, -1) and inner.rank == 1:
            u, mean = inner.kids[0], repeated(inner.kids[1])
            if mean is not None and [*mean] == [self.node("call", (u,), "mean")]:
                return self.node("call", (u,), "var")
        return self.node("call", (self.powered(inner, Fraction(2)),), "mean")

    def powered(self, t: Tree, e: Fraction) -> Tree:
        """t^e at every index."""
        if e == 1:
            return t
        if t.kind == "call" and t.value == "var" and e.denominator == 2:
            return self.powered(self.node("call", t.kids, "std"), 2 * e)
        squared = t.kind == "power" and t.value == 2 and t.kids[0].kind == "norm"
        if squared:
            return self.powered(t.kids[0], 2 * e)
        if e == Fraction(1, 2):
            return self.node("call", (t,), "sqrt", t.rank, t.symmetric)
        if t.rank > 1 and e == 2:
            return self.node("hadamard", (t, t), rank=t.rank, symmetric=t.symmetric)
        return self.node("power", (t,), e, t.rank, t.symmetric)

    def prefixed(self, k: Number, above: list[Tree], below: list[Tree], main: Tree | None, rank: int) -> Tree:
        """k · numbers · main / numbers."""
        parts = sorted(above, key=lambda t: t.weight)
        over = below or (main is not None and main.kind == "quotient")
        if over and isinstance(k, Fraction) and k.denominator > 2:  # (1/4) u / v = u / (4v)
            k, bottom = Fraction(k.numerator), self.number(Fraction(k.denominator))
            if below:
                below = [bottom, *below]
            elif main is not None:
                top = main.kids[0]
                main = self.node("quotient", (top, self.chain([bottom, main.kids[1]], main.kids[1].rank)), rank=rank)
        body = [*parts, main] if main is not None else parts
        if main is not None and main.kind == "quotient" and (parts or k != 1):
            top, bottom = main.kids
            lead = [*([self.number(k)] if k != 1 else []), *parts]
            inner = self.chain(lead if is_number(top, 1) else [*lead, top], rank)
            whole = self.node("quotient", (inner, bottom), rank=rank)
        else:
            body = [self.number(k), *body] if k != 1 or not body else body
            whole = self.folded(self.chain(body, rank) if len(body) > 1 else body[0])
        if below:
            bottom = below[0] if len(below) == 1 else self.chain(below, 0)
            whole = self.node("quotient", (whole, bottom), rank=rank)
        return whole

    def folded(self, t: Tree) -> Tree:
        """A chain with neighbours drawn together: A A = A², B⁻¹ A⁻¹ = (A B)⁻¹, and (A B)ᵀ where that is shorter."""
        if t.kind != "chain":
            return t
        out: list[Tree] = []
        kids = list(t.kids)
        while kids:
            head = kids[0]
            n = 1
            while n < len(kids) and head.rank == 2 and kids[n] is head and head.kind != "identity":
                n += 1
            if n > 1:
                out.append(self._matrix_power(head, n))
            else:
                while n < len(kids) and inner_matrix(head) is not None and inner_matrix(kids[n]) is not None:
                    n += 1
                out += kids[:n]
                if n > 1:
                    inside = [self._uninverted(x) for x in reversed(kids[:n])]
                    whole = self.node("inverse", (self.folded(self.chain(inside, 2)),), rank=2)
                    if whole.weight < sum([x.weight for x in kids[:n]]) + n - 1:
                        out[-n:] = [whole]
            kids = kids[n:]
        t = self.chain(out, t.rank)
        matrices, numbers = [x for x in t.kids if x.rank], [x for x in t.kids if not x.rank]
        if t.rank == 2 and t.kind == "chain" and len(matrices) > 1 and all([x.rank == 2 for x in matrices]):
            other = self.chain([self.turned(x) for x in reversed(matrices)], 2)
            if other.weight + 1 < self.chain(matrices, 2).weight:
                return self.chain([*numbers, self.node("transpose", (self.folded(other),), rank=2)], 2)
        return t

    def _matrix_power(self, t: Tree, n: int) -> Tree:
        """tⁿ of a matrix: (M⁻¹)ⁿ = M⁻ⁿ and (M⁻ᵀ)ⁿ = (M⁻ⁿ)ᵀ."""
        if t.kind == "transpose":
            return self.node("transpose", (self._matrix_power(t.kids[0], n),), rank=2)
        base, n = (t.kids[0], -n) if t.kind == "inverse" else (t, n)
        return self.node("matrix power", (base,), n, 2, t.symmetric)

    def _uninverted(self, t: Tree) -> Tree:
        return self.turned(t.kids[0].kids[0]) if t.kind == "transpose" else t.kids[0]


def symbols_of(roots: Iterable[Tree]) -> set[str]:
    """The names of arrays in trees."""
    seen, found, waiting = set[int](), set[str](), list(roots)
    while waiting:
        t = waiting.pop()
        if t.id not in seen:
            seen.add(t.id)
            found |= {t.value} if t.kind == "symbol" else set()
            waiting += t.kids
    return found


def repeated(t: Tree) -> Sequence[Tree] | None:
    """The factors of a number that stands at every index: k of k 𝟏 and of k 𝟏 𝟏ᵀ; none for 𝟏 itself."""
    parts = t.kids if t.kind == "chain" else (t,)
    arrays = [x.kids[0] if x.row else x for x in parts if x.rank]
    return [x for x in parts if not x.rank] if arrays and all([x.kind == "ones" for x in arrays]) else None


def is_number(t: Tree, k: int) -> bool:
    return t.kind == "number" and t.value == k


def inner_matrix(t: Tree) -> Tree | None:
    """M of M⁻¹ or M⁻ᵀ."""
    inverse = t.kids[0] if t.kind == "transpose" and t.rank == 2 else t
    return inverse.kids[0] if inverse.kind == "inverse" else None


def _palindrome(trees: Trees, kids: Sequence[Tree]) -> bool:
    """Whether a chain is its own transpose, as XᵀSX is."""
    matrices = [t for t in kids if t.rank]
    back = [trees.turned(t) for t in reversed(matrices)]
    return bool(matrices) and all([a is b for a, b in zip(matrices, back, strict=True)])
