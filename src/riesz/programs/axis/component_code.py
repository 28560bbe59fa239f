"""Code for scalar expressions along a long axis: NumPy calls on tiles that stay in the cache, or one loop compiled with
Numba.

Both are written as text, run without the interpreter's lock where NumPy or Numba lets it go, and take a part (low …
high) of the axis.
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...runtime import tuning
from ...runtime.generated_source import defined
from ...terms.primitives import RULES
from .scalars import SELECT, Fixed, Load, Operation, Scalars

SHORTEST, LONGEST = 2048, 8192
"""The lengths of tiles."""

Kind = Any  # a dtype; the type float for Python's floats, which take the type of what they meet


class TargetPlace(NamedTuple):
    """Where a node goes: component `at` of a target."""

    node: int
    target: int
    at: tuple[int, ...]


class ComponentTask(NamedTuple):
    """What code is written for: nodes, their order and kinds, which of them vary, and where they go."""

    graph: Scalars
    order: list[int]
    kinds: dict[int, Kind]
    rows: list[int]  # per source: the number of its index array, or -1
    even: list[bool]  # per source: whether its components lie without gaps
    varies: bytearray
    places: list[TargetPlace]

    @property
    def scalars(self) -> list[int]:
        """The nodes that are numbers, in the order in which they are handed over."""
        return [x for x in self.order if not self.varies[x]]

    @property
    def arguments(self) -> tuple[list[int], list[int], list[int]]:
        """The sources, index arrays and targets that are used."""
        sources = sorted({op.source for x in self.order if type(op := self.graph.ops[x]) is Load})
        return sources, sorted({self.rows[s] for s in sources} - {-1}), sorted({p.target for p in self.places})

    def uses(self) -> dict[int, int]:
        """How often each node is needed."""
        found = dict.fromkeys(self.order, 0)
        arguments = [a for x in self.order if self.varies[x] for a in self.graph.args[x]]
        for x in [*arguments, *[p.node for p in self.places]]:
            found[x] += 1
        return found


def ordered(graph: Scalars, ends: Sequence[int]) -> list[int]:
    """What the ends need, each after its arguments, close to where it is used."""
    done: dict[int, None] = {}
    stack = [(x, False) for x in reversed(ends)]
    while stack:
        x, ready = stack.pop()
        if ready:
            done[x] = None
        elif x not in done:
            stack.append((x, True))
            stack.extend([(a, False) for a in reversed(graph.args[x]) if a not in done])
    return list(done)


def kinds_of(graph: Scalars, order: Sequence[int], given: dict[int, Kind], varies: bytearray) -> dict[int, Kind]:
    """The kind of each node, which is what NumPy makes of empty arrays."""
    found: dict[int, Kind] = {}
    known: dict[Any, Kind] = {}

    def sample(x: int) -> Any:
        return 1.0 if found[x] is float else np.empty(0, found[x]) if varies[x] else found[x].type(1)

    for x in order:
        if x in given:
            found[x] = given[x]
            continue
        op, args = graph.ops[x], graph.args[x]
        key = (op, tuple([(found[a], varies[a]) for a in args]))
        if key not in known:
            known[key] = np.asarray(op(*map(sample, args))).dtype
        found[x] = known[key]
    return found


def literal(op: Any) -> str | None:
    """A number as it is written in code; numbers with a type of their own are handed over."""
    return repr(op.value) if type(op) is Fixed and type(op.value) is float and np.isfinite(op.value) else None


_LOCAL = re.compile(r"low|high|step|[a-zA-Z]\d*")
"""Names that tiles have for themselves."""


# -- NumPy ------------------------------------------------------------------------------------------------


class Tiles:
    """Calls of NumPy's functions on tiles. Numbers at work live in registers, taken up again after their last use."""

    def __init__(self, task: ComponentTask) -> None:
        self.task = task
        self.names: dict[str, Any] = {"min": min, "range": range}
        self.names |= {name: getattr(np, name) for name in ("copyto", "empty", "take")}
        self.loads: list[int] = []
        self._left = task.uses()
        self._free: dict[Any, list[str]] = {}
        self._count: dict[Any, int] = {}
        self._text: dict[int, str] = {}
        self._held: dict[int, tuple[Any, str]] = {}
        self._body: list[str] = []
        self._places: dict[int, list[int]] = {}
        for i, p in enumerate(task.places):
            self._places.setdefault(p.node, []).append(i)
        before = self._before()
        for x in task.order:
            if task.varies[x]:
                self._write(x)
        width = sum([np.dtype(kind).itemsize * n for kind, n in self._count.items()])
        self.length = min(max(tuning.COMPONENT_TILE_BYTES // max(width, 1), SHORTEST), LONGEST) // 64 * 64
        lines = [f"    {line}" for line in [*before, *self._loop()]]
        self.source = "\n".join(["def tiles(low, high, step, X, I, K, Y):", *lines])

    def _before(self) -> list[str]:
        lines: list[str] = []
        for i, x in enumerate(self.task.scalars):
            self._text[x] = literal(self.task.graph.ops[x]) or f"k{i}"
            if self._text[x] == f"k{i}" and self._left[x]:
                lines.append(f"k{i} = K[{i}]")
            lines += [f"Y[{j}][low:high] = {self._text[x]}" for j in self._places.get(x, ())]
        return lines

    def _loop(self) -> list[str]:
        task = self.task
        pools = [(np.dtype(kind), n) for kind, n in self._count.items() if n]
        names = [", ".join([_register(kind, i) for i in range(n)]) + "," for kind, n in pools]
        lines = [f"x{i} = X[{i}]" for i in range(len(self.loads))]
        lines += [f"y{i} = Y[{i}]" for i, p in enumerate(task.places) if task.varies[p.node]]
        lines += [f"W{j} = empty(({n}, step), {kind.name!r})" for j, (kind, n) in enumerate(pools)]
        lines += ["n = -1", "for t in range(low, high, step):", "    u = min(t + step, high)"]
        if pools:
            lines += ["    if u - t != n:", "        n = u - t"]
            lines += [f"        {name} = W{j}[:, :n]" for j, name in enumerate(names)]
        lines += [f"    i{j} = I[{j}][t:u]" for j in task.arguments[1]]
        return [*lines, *[f"    {line}" for line in self._body]]

    def _release(self, x: int) -> None:
        self._left[x] -= 1
        if not self._left[x] and x in self._held:
            kind, name = self._held.pop(x)
            self._free[kind].append(name)

    def _hold(self, x: int) -> str:
        kind = self.task.kinds[x]
        free = self._free.setdefault(kind, [])
        if not free:
            free.append(_register(kind, self._count.get(kind, 0)))
            self._count[kind] = self._count.get(kind, 0) + 1
        name = self._text[x] = free.pop()
        self._held[x] = kind, name
        return name

    def _write(self, x: int) -> None:
        op, args = self.task.graph.ops[x], self.task.graph.args[x]
        if type(op) is Load:
            self._load(x, op)
        else:
            given = [self._text[a] for a in args]
            if isinstance(op.function, np.ufunc) and not op.more and not op.named:
                for a in args:
                    self._release(a)
                self._body.append(f"{self._name(op)}({', '.join(given)}, out={self._hold(x)})")
            else:
                self._other(x, op, given)
        for j in self._places.get(x, ()):
            self._body.append(f"y{j}[t:u] = {self._text[x]}")
            self._release(x)

    def _other(self, x: int, op: Operation, given: list[str]) -> None:
        """What is no function with a place for its result."""
        args = self.task.graph.args[x]
        last = args[2] if op is SELECT else -1  # what is chosen where the condition fails
        if last in self._held and self._left[last] == 1 and self._held[last][0] == self.task.kinds[x]:
            self._held[x] = self._held.pop(last)  # it stays where it is
            self._text[x] = given[2]
            self._body.append(f"copyto({given[2]}, {given[1]}, where={given[0]})")
        else:
            out = self._hold(x)
            if op is SELECT:
                self._body += [f"copyto({out}, {given[2]})", f"copyto({out}, {given[1]}, where={given[0]})"]
            elif op.name == "convert":
                self._body.append(f"copyto({out}, {given[0]}, casting='unsafe')")
            else:
                self._body.append(f"{out}[:] = {self._name(op)}({', '.join(given)})")
        for a in args:
            self._release(a)

    def _load(self, x: int, op: Load) -> None:
        task, i = self.task, len(self.loads)
        self.loads.append(x)
        index = task.rows[op.source]
        if index >= 0:
            self._body.append(f"take(x{i}, i{index}, out={self._hold(x)}, mode='clip')")
        elif self._left[x] > 1 and not task.even[op.source]:
            self._body.append(f"copyto({self._hold(x)}, x{i}[t:u])")
        else:
            self._text[x] = f"v{i}"
            self._body.append(f"v{i} = x{i}[t:u]")

    def _name(self, op: Operation) -> str:
        fits = op.name.isidentifier() and not keyword.iskeyword(op.name) and not _LOCAL.fullmatch(op.name)
        base = op.name if fits else "function"
        called = op.function if not op.more and not op.named else op
        names = itertools.chain([base], (f"{base}_{i}" for i in itertools.count(1)))
        return next(name for name in names if self.names.setdefault(name, called) == called)

    @property
    def run(self) -> Callable[..., None]:
        """The function."""
        return defined(self.source, "tiles", dict(self.names))


def _register(kind: Any, i: int) -> str:
    name = np.dtype(kind).name
    return {"float64": "d", "float32": "f", "bool": "b"}.get(name, f"{name}_") + str(i)


# -- Numba ------------------------------------------------------------------------------------------------

_OPERATORS = {
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "equal": "==", "not_equal": "!="},
    **{"greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<="},
}
_MATH = "sin cos tan sinh cosh tanh exp expm1 sqrt log log1p log2 log10 isnan isinf isfinite"
_PAIRS = "maximum minimum fmax fmin logaddexp logaddexp2 remainder fmod"
FORMS: dict[Any, str] = {
    **{getattr(np, name): f"{{0}} {sign} {{1}}" for name, sign in _OPERATORS.items()},
    **{getattr(np, name): f"math.{name}({{0}})" for name in _MATH.split()},
    **{getattr(np, f"arc{name}"): f"math.a{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{getattr(np, name): f"np.{name}({{0}})" for name in ["sign", "floor", "ceil", "trunc", "rint", "exp2", "cbrt"]},
    **{getattr(np, name): f"np.{name}({{0}}, {{1}})" for name in _PAIRS.split()},
    np.negative: "-{0}",
    np.absolute: "abs({0})",
    np.logical_not: "not {0}",
    np.logical_and: "bool({0}) and bool({1})",
    np.logical_or: "bool({0}) or bool({1})",
    np.arctan2: "math.atan2({0}, {1})",
    np.hypot: "math.hypot({0}, {1})",
    RULES["step"].array: "(1.0 if {0} > 0.0 else 0.0 if {0} <= 0.0 else {0})",
    RULES["larger"].array: "(0.5 if {0} == {1} else 1.0 if {0} > {1} else 0.0)",
    RULES["larger_number"].array: "(0.5 if {0} == {1} else 1.0 if {0} > {1} or ({1} != {1} and {0} == {0}) else 0.0)",
    RULES["smaller_number"].array: "(0.5 if {0} == {1} else 1.0 if {0} < {1} or ({1} != {1} and {0} == {0}) else 0.0)",
    RULES["power_slope"].array: "(0.0 if {1} == 0.0 else {1} * {0} ** ({1} - 1.0))",
}
"""Functions of numbers as Numba compiles them."""
WHOLE = (np.add, np.subtract, np.multiply, np.negative, np.absolute, np.maximum, np.minimum)
"""Those that are the same for integers."""


def usual(kind: Kind) -> bool:
    """Whether Numba computes with numbers of a kind as NumPy does."""
    return kind is float or kind.char in "fd?l"


def compilable(task: ComponentTask) -> bool:
    """Whether every function has a form for one number, of the kinds that Numba computes as NumPy does."""
    for x in [x for x in task.order if task.varies[x]]:
        op, kind = task.graph.ops[x], task.kinds[x]
        if type(op) is not Load and op is not SELECT and op.name != "convert":
            plain = op.function in FORMS and not op.more and not op.named
            if not plain or (kind.kind not in "fb" and op.function not in WHOLE):
                return False
    return all(map(usual, task.kinds.values()))


def loop_source(task: ComponentTask) -> str:
    """One loop over the positions, every expression a local variable."""
    graph, kinds = task.graph, task.kinds
    text, before, body = dict[int, str](), list[str](), list[str]()
    sources, indices, targets = task.arguments
    for i, x in enumerate(task.scalars):
        text[x] = literal(graph.ops[x]) or f"k{i}"
        if text[x] == f"k{i}":
            before.append(f"k{i} = {typed(f'K[{i}]', np.dtype(float), kinds[x])}")
    for x in [x for x in task.order if task.varies[x]]:
        op, text[x] = graph.ops[x], f"v{len(body)}"
        if type(op) is Load:
            index = task.rows[op.source]
            at = [f"i{index}" if index >= 0 else "p", *map(str, op.at)]
            body.append(f"{text[x]} = A{op.source}[{', '.join(at)}]")
        else:
            body.append(f"{text[x]} = {_expression(op, [(text[a], kinds[a]) for a in graph.args[x]], kinds[x])}")
    body += [f"Y{p.target}[{', '.join(['p', *map(str, p.at)])}] = {text[p.node]}" for p in task.places]
    rows = [f"i{j} = at(I{j}[p])" for j in indices]
    named = [*[f"A{s}" for s in sources], *[f"I{j}" for j in indices], "K", *[f"Y{t}" for t in targets]]
    head = [f"def loop(low, high, {', '.join(named)}):", *[f"    {line}" for line in before]]
    inside = [f"        {line}" for line in ["p = at(q)", *rows, *body]]
    return "\n".join([*head, "    for q in range(low, high):", *inside])


def _expression(op: Operation, given: list[tuple[str, Kind]], kind: Any) -> str:
    if op.name == "convert":
        return typed(*given[0], kind)
    return selection(given, kind) if op is SELECT else formed(FORMS[op.function], given, kind)


def typed(text: str, have: Kind, want: Kind) -> str:
    """An expression in another type."""
    dtype = np.dtype(want)
    return text if np.dtype(have) == dtype else f"{'bool_' if dtype.kind == 'b' else dtype.name}({text})"


def selection(xs: Sequence[tuple[str, Kind]], kind: Any) -> str:
    """One of two expressions, by a condition."""
    c, a, b = xs
    return f"{typed(*a, kind)} if {c[0]} else {typed(*b, kind)}"


def formed(form: str, xs: Sequence[tuple[str, Kind]], kind: Any) -> str:
    """A function of expressions, in the type NumPy computes it in."""
    common = kind if kind.kind == "f" else np.result_type(*[1.0 if k is float else k for _, k in xs])
    value = form.format(*[typed(t, k, common) for t, k in xs])
    return f"float32({value})" if kind.char == "f" else value


def numba_names() -> dict[str, Any]:
    """What a compiled loop may call."""
    types = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "bool_": np.bool_}
    return {"math": math, "np": np, "at": np.uintp, **types}


@lru_cache(maxsize=256)
def compiled_loop(source: str) -> Callable[..., None]:
    """A loop compiled for the arrays it meets; the same text is compiled once."""
    import numba  # pyright: ignore

    return numba.njit(nogil=True, error_model="numpy")(defined(source, "loop", numba_names()))  # pyright: ignore
