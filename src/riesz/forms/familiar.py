"""Laws on a function before it is differentiated, where the derivative is the wrong place for them.

With M = L Lᵀ by Cholesky: Σ log diag L = ½ log det M, L⁻ᵀ L⁻¹ y = M⁻¹ y, ‖L⁻¹ y‖² = yᵀ M⁻¹ y. With M = Q R, and with
P M = L U: Σ log |diag R| = log |det M| and |Π diag R| = |det M|; U⁻¹ L⁻¹ P b = M⁻¹ b. A product of all entries is
det diag(x). A value that is nan or infinite elsewhere is taken where it is finite: where(c, a, nan) = a, and c holds
everywhere. A stable log(1 + exp(u)) is that again: a max(0, u) + b |u| + c log(1 + exp(−|u|)) = c log(1 + exp(u)) − b u
where a + 2b = c.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..functions.function import as_function
from ..ops.op import Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import Discrete, Get, Ruled, Select
from ..programs.program import Constant, Program, outputs
from ..programs.rewriting import rewritten
from ..spaces.space import space_of
from .selections import rows_of

TERMS = 8
"""Sums of more terms are left as they are."""
LONGEST = 256
"""Products of more entries are left as they are."""


class Triangle(NamedTuple):
    """L of M = L Lᵀ, or its transpose."""

    matrix: int
    transposed: bool


class Half(NamedTuple):
    """L⁻¹ y or L⁻ᵀ y."""

    triangle: Triangle
    vector: int


class FactorDiagonal(NamedTuple):
    """diag L, or its logarithm."""

    matrix: int
    logarithm: bool


class OtherFactor(NamedTuple):
    """R of M = Q R, U of P M = L U; then its diagonal, |…| and log |…| of that, and the product of the diagonal."""

    matrix: int
    stage: str


class RowsExchanged(NamedTuple):
    """The exchanges of rows P of P M = L U, and what is solved with them, step by step: P, P b, L⁻¹ P b; Pᵀ, U⁻ᵀ b,
    L⁻ᵀ U⁻ᵀ b."""

    matrix: int
    stage: str
    vector: int = -1


SOLVED = {
    ("P b", True, False): "L⁻¹ P b",
    ("L⁻¹ P b", False, False): "M⁻¹ b",
    ("b", False, True): "U⁻ᵀ b",
    ("U⁻ᵀ b", True, True): "L⁻ᵀ U⁻ᵀ b",
}
"""What a triangular solve makes of it: with L or not, transposed or not."""


class Products(NamedTuple):
    """Each number a product of some entries of a vector."""

    source: int
    groups: tuple[tuple[int, ...], ...]


class _Known:
    """What is known of the slots of the new program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.facts: dict[int, Any] = {}
        self.finite = _finite(program)

    def rule(self, small: Program, slot: int, given: list[int]) -> int | None:
        """One step: a fact about its result, or another step."""
        op, facts = self.program.ops[slot], self.facts
        fact = facts.get(given[0]) if given else None
        new: Any = self._products(small, op, given)
        if isinstance(new, Products) and len(new.groups) == 1 and not self.program.shapes[slot]:
            return self._whole_product(small, slot, given, new)
        match op, fact:
            case Combination(), _:
                return _softplus(small, [*zip(op.coefficients, given, strict=True)], self.program.shapes[slot])
            case Select(), _ if (branch := self.finite.get(self.program.args[slot][0])) is not None:
                if small.shapes[given[branch]] == self.program.shapes[slot]:
                    return given[branch]
            case Get(at=1), _ if _is(small.ops[given[0]], "qr") and _square(small, small.args[given[0]][0]):
                new = OtherFactor(small.args[given[0]][0], "matrix")
            case Get(at=0), _ if _is(small.ops[given[0]], "lu") and len(small.shapes[small.args[given[0]][0]]) == 2:
                new = OtherFactor(small.args[given[0]][0], "matrix")
            case Select(), _ if isinstance(facts.get(given[1]), OtherFactor):
                new = facts[given[1]] if _keeps_diagonal(small, given) else None
            case Discrete(title="exchange"), OtherFactor(stage="matrix"):
                new = RowsExchanged(fact.matrix, "P")
            case Contraction(labels=((0, 1),), out=(1, 0)), RowsExchanged(stage="P"):
                new = fact._replace(stage="Pᵀ")
            case Contraction(labels=(_, _)), _ if (pair := self._rows_exchanged(op, given)) is not None:
                rows, b = pair
                turned = facts.get(b)
                if rows.stage == "P":
                    new = rows._replace(stage="P b", vector=b)
                elif isinstance(turned, RowsExchanged) and turned[:2] == (rows.matrix, "L⁻ᵀ U⁻ᵀ b"):
                    return self._traced(small, lambda M, b: np.linalg.solve(M.T, b), rows.matrix, turned.vector)
            case Ruled(title="solve_triangular"), OtherFactor(stage="matrix"):
                new = self._exchanged(op, fact, given[1])
                if new is not None and new.stage == "M⁻¹ b":
                    return self._traced(small, np.linalg.solve, new.matrix, new.vector)
            case Contraction(labels=((0, 0),), out=(0,)), OtherFactor(stage="matrix"):
                new = fact._replace(stage="diagonal")
            case Elementwise(), OtherFactor(stage="diagonal") if op.primitive.name == "absolute":
                new = fact._replace(stage="absolute")
            case Elementwise(), OtherFactor(stage="absolute") if op.primitive.name in ("ln", "log"):
                new = fact._replace(stage="logarithm")
            case Contraction(labels=((0,),), out=()), OtherFactor(stage="logarithm"):
                return self._traced(small, lambda M: np.linalg.slogdet(M)[1], fact.matrix)
            case Elementwise(), OtherFactor(stage="product") if op.primitive.name == "absolute":
                return self._traced(small, lambda M: np.abs(np.linalg.det(M)), fact.matrix)
            case Ruled(), _ if _is(op, "cholesky") and len(small.shapes[given[0]]) == 2:
                new = Triangle(given[0], False)
            case Contraction(labels=((0, 1),), out=(1, 0)), Triangle():
                new = fact._replace(transposed=not fact.transposed)
            case Select(), _ if isinstance(facts.get(given[1]), Triangle):
                new = facts[given[1]]  # triangular solves read one half only
            case Contraction(labels=((0, 0),), out=(0,)), Triangle():
                new = FactorDiagonal(fact.matrix, False)
            case Elementwise(), FactorDiagonal(logarithm=False) if op.primitive.name in ("ln", "log"):
                new = fact._replace(logarithm=True)
            case Contraction(labels=((0,),), out=()), FactorDiagonal(logarithm=True):
                return self._traced(small, lambda M: 0.5 * np.linalg.slogdet(M)[1], fact.matrix)
            case float(), Half():
                new = fact._replace(vector=small.scale(op, fact.vector))
            case Reshape(), Half():
                shape = small.shapes[fact.vector]
                if len(shape) == 2 and shape[1] == 1 and op.shape == shape[:1]:
                    new = fact._replace(vector=small.step(op, (fact.vector,)))
            case Ruled(), Triangle() if op.title in ("solve", "solve_triangular"):
                turned = fact._replace(transposed=fact.transposed != dict(op.parameters).get("transposed", False))
                before = self._half(small, given[1])
                if before is not None and before.triangle == (turned.matrix, False) and turned.transposed:
                    return self._traced(small, np.linalg.solve, turned.matrix, before.vector)
                new = Half(turned, given[1])
            case Contraction(labels=((0,), (0,)), out=()), Half(triangle=Triangle(transposed=False)):
                other = facts.get(given[1])
                if isinstance(other, Half) and other.triangle == fact.triangle:
                    solved = self._traced(small, np.linalg.solve, fact.triangle.matrix, other.vector)
                    return small.step(op, (fact.vector, solved))
            case _:
                pass
        if new is None:
            return None
        at = small.take(self.program, slot, given)
        facts[at] = new
        return at

    def _rows_exchanged(self, op: Contraction, given: list[int]) -> tuple[RowsExchanged, int] | None:
        """P or Pᵀ of a matrix product, and what it is multiplied with."""
        for k in (0, 1):
            rows, one, other = self.facts.get(given[k]), op.labels[k], op.labels[1 - k]
            product = len(one) == len(other) == 2 and one[1] == other[0] and op.out == (one[0], other[1])
            if isinstance(rows, RowsExchanged) and rows.stage in ("P", "Pᵀ") and product:
                return rows, given[1 - k]
        return None

    def _exchanged(self, op: Ruled, factors: OtherFactor, b: int) -> RowsExchanged | None:
        """One of the two triangular solves with L and U in one array."""
        before, how = self.facts.get(b), dict(op.parameters)
        if not isinstance(before, RowsExchanged) or before.matrix != factors.matrix:
            before = RowsExchanged(factors.matrix, "b", b)
        lower = bool(how.get("lower"))
        stage = SOLVED.get((before.stage, lower, bool(how.get("transposed"))))
        return before._replace(stage=stage) if stage and lower == bool(how.get("unit")) else None

    def _whole_product(self, small: Program, slot: int, given: list[int], products: Products) -> int | None:
        """The product of all entries of a vector, each once."""
        n = small.shapes[products.source][0]
        if sorted(products.groups[0]) != list(range(n)):
            return None
        diagonal = self.facts.get(products.source)
        if isinstance(diagonal, OtherFactor) and diagonal.stage in ("diagonal", "absolute"):
            at = small.take(self.program, slot, given)
            self.facts[at] = diagonal._replace(stage="product")
            return at
        return self._traced(small, lambda v: np.linalg.det(np.diag(v)), products.source)

    def _products(self, small: Program, op: Any, given: list[int]) -> Products | None:
        """Slices of a vector, products of such, and these put side by side: as np.prod halves a vector."""
        match op:
            case Reduction(axis=0) if len(given) == 1:
                index, shape = rows_of(op.relations[0]), small.shapes[given[0]]
                if index is None or len(shape) != 1 or shape[0] > LONGEST:
                    return None
                before = self.facts.get(given[0])
                if not isinstance(before, Products):
                    before = Products(given[0], tuple([(i,) for i in range(shape[0])]))
                return before._replace(groups=tuple([before.groups[i] for i in index]))
            case Reduction(axis=0):
                parts = [self.facts.get(a) for a in given]
                places = [rows_of(R.converse) for R in op.relations]
                first = parts[0]
                groups: dict[int, tuple[int, ...]] = {}
                for part, place in zip(parts, places, strict=True):
                    if not isinstance(part, Products) or not isinstance(first, Products) or place is None:
                        return None
                    if part.source != first.source:
                        return None
                    groups |= dict(zip(map(int, place), part.groups, strict=True))
                if sorted(groups) != list(range(op.relations[0].target.size)):
                    return None
                return first and first._replace(groups=tuple([groups[i] for i in sorted(groups)]))
            case Contraction(labels=((0,), (0,)), out=(0,)):
                a, b = [self.facts.get(x) for x in given]
                if isinstance(a, Products) and isinstance(b, Products) and a.source == b.source:
                    pairs = zip(a.groups, b.groups, strict=True)
                    return a._replace(groups=tuple([(*x, *y) for x, y in pairs]))
            case Reshape(shape=()):
                fact = self.facts.get(given[0])
                return fact if isinstance(fact, Products) else None
            case _:
                return None
        return None

    def _half(self, small: Program, slot: int) -> Half | None:
        """A fact about a column, also where it was a vector in between."""
        fact = self.facts.get(slot)
        if isinstance(fact, Half):
            return fact
        if isinstance(small.ops[slot], Reshape):
            inner = self.facts.get(small.args[slot][0])
            if isinstance(inner, Half):
                return inner._replace(vector=small.step(small.ops[slot], (inner.vector,)))
        return None

    @staticmethod
    def _traced(small: Program, f: Any, *slots: int) -> int:
        spaces = tuple([space_of(np.zeros(small.shapes[s])) for s in slots])
        record = as_function(f).record_at(spaces)[0].settled()
        return outputs(record.program, small, list(slots))[0]


Terms = list[tuple[float, int]]


def _softplus(small: Program, terms: Terms, shape: Any) -> int | None:
    """a max(0, u) + b |u| + c log(1 + exp(−|u|)) + … with a + 2b = c."""
    terms = _opened(small, terms)
    if len(terms) > TERMS or any([small.shapes[x] != shape for _, x in terms]):
        return None
    for c, x in terms:
        absolute = _log1p_exp_minus(small, x)
        (u,) = _called(small, absolute, "absolute") or (None,)
        if u is None:
            continue
        size = {y: k for k, y in terms if y == absolute}
        part = {y: k for k, y in terms if _positive_part(small, y) == u}
        if sum(part.values()) + 2 * sum(size.values()) == c:
            b = sum(size.values())
            whole = _Known._traced(small, lambda v: np.logaddexp(0, v), u)  # pyright: ignore[reportPrivateUsage]
            rest = [(k, y) for k, y in terms if y != x and y not in part and y not in size]
            kept = [(c, whole), *([(-b, u)] if b else []), *rest]
            if kept == [(1.0, whole)]:
                return whole
            return small.step(Combination(tuple([k for k, _ in kept])), [y for _, y in kept])
    return None


def _opened(small: Program, terms: Terms) -> Terms:
    """The terms of a sum, those of sums and multiples among them too; zeros left out."""
    found, waiting = Terms(), terms[::-1]
    while waiting:
        k, x = waiting.pop()
        op = small.ops[x]
        if isinstance(op, Combination) and len(found) + len(waiting) < TERMS:
            waiting += [(k * c, a) for c, a in zip(op.coefficients, small.args[x], strict=True)][::-1]
        elif isinstance(op, float):
            waiting.append((k * op, small.args[x][0]))
        elif not _is_constant(small, x, 0.0):
            found.append((k, x))
    return found


def _is_constant(small: Program, x: int, number: float) -> bool:
    op = small.ops[x]
    return type(op) is Constant and bool(np.all(np.asarray(op.value, float) == number))


def _called(small: Program, x: int | None, *names: str) -> tuple[int, ...] | None:
    """The arguments of a function of numbers by one of these names; x − 0 is x."""
    if x is None:
        return None
    op = small.ops[x]
    if not isinstance(op, Elementwise) or op.primitive.name not in names:
        return None
    bare = [_opened(small, [(1.0, a)]) for a in small.args[x]]
    return tuple([b[0][1] if len(b) == 1 and b[0][0] == 1 else a for a, b in zip(small.args[x], bare, strict=True)])


def _positive_part(small: Program, x: int) -> int | None:
    """u of max(0, u)."""
    args = _called(small, x, "maximum")
    numbers = [_is_constant(small, a, 0.0) for a in args or ()]
    return args[numbers.index(False)] if args and sorted(numbers) == [False, True] else None


def _log1p_exp_minus(small: Program, x: int) -> int | None:
    """v of log(1 + exp(−v))."""
    inside = _called(small, x, "log1p")
    plain = _called(small, x, "ln", "log")
    if plain is not None:
        terms = _opened(small, [(1.0, plain[0])])
        rest = [y for k, y in terms if k == 1 and not _is_constant(small, y, 1.0)]
        inside = (rest[0],) if len(terms) == 2 and len(rest) == 1 else None
    above = _called(small, inside[0], "exp") if inside else None
    terms = _opened(small, [(1.0, above[0])]) if above else []
    return terms[0][1] if len(terms) == 1 and terms[0][0] == -1 else None


def _square(small: Program, slot: int) -> bool:
    shape = small.shapes[slot]
    return len(shape) == 2 and shape[0] == shape[1]


def _finite(program: Program) -> dict[int, int]:
    """The conditions c of where(c, a, b) with one branch that is nan or infinite everywhere: which is the other."""
    found: dict[int, int] = {}
    for op, args in zip(program.ops, program.args, strict=True):
        for kept, other in ((1, 2), (2, 1)) if isinstance(op, Select) else ():
            fixed = program.ops[args[other]]
            if type(fixed) is Constant and not np.isfinite(np.asarray(fixed.value, float)).any():
                found[args[0]] = kept
    return found


def _keeps_diagonal(small: Program, given: list[int]) -> bool:
    """Whether where(mask, x, 0) leaves the diagonal as it is."""
    mask = small.ops[given[0]]
    value = np.asarray(getattr(mask, "value", False))
    return value.ndim == 2 and bool(np.diag(value).all())


def mirrored(program: Program) -> list[int]:
    """The inputs that are read as symmetric matrices: one half counts for both."""
    found = [args[0] for op, args in zip(program.ops, program.args, strict=True) if _is(op, "mirrored")]
    return [k for k, slot in enumerate(program.inputs) if slot in found]


def _is(op: Any, title: str) -> bool:
    return isinstance(op, Ruled) and op.title == title


def familiar(program: Program) -> Program:
    """A program with what is known of factors of matrices written by determinants and solutions."""
    telling = ("cholesky", "qr", "lu", "absolute")
    names = {
        op.title if isinstance(op, Ruled) else op.primitive.name if isinstance(op, Elementwise) else ""
        for op in program.ops
    }
    if names.isdisjoint(telling) and not any([isinstance(op, (Reduction, Select)) for op in program.ops]):
        return program
    found = rewritten(program, _Known(program).rule)
    return found.prune(found.inputs, found.outputs)
