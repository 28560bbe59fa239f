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
    """What code is written for: nodes and the order to compute them in, their kinds, which sources are tables, which
    nodes vary, where nodes go."""

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
    done: set[int] = set()
    order: list[int] = []
    stack = [(x, False) for x in reversed(ends)]
    while stack:
        x, ready = stack.pop()
        if x in done:
            continue
        if ready:
            done.add(x)
            order.append(x)
            continue
        stack.append((x, True))
        stack.extend([(a, False) for a in reversed(graph.args[x]) if a not in done])
    return order


def kinds_of(graph: Scalars, order: Sequence[int], given: dict[int, Kind], varies: bytearray) -> dict[int, Kind]:
    """The kind of each node, which is what NumPy makes of empty arrays."""
    found: dict[int, Kind] = {}
    known: dict[Any, Kind] = {}
    for x in order:
        if x in given:
            found[x] = given[x]
            continue
        key = (graph.ops[x], tuple([(found[a], varies[a]) for a in graph.args[x]]))
        if key not in known:
            known[key] = np.asarray(graph.ops[x](*[_sample(found[a], varies[a]) for a in graph.args[x]])).dtype
        found[x] = known[key]
    return found


def _sample(kind: Kind, varies: int) -> Any:
    return 1.0 if kind is float else np.empty(0, kind) if varies else kind.type(1)


def literal(op: Any) -> str | None:
    """A number as it is written in code; numbers with a type of their own are handed over."""
    return repr(op.value) if type(op) is Fixed and type(op.value) is float and np.isfinite(op.value) else None


_LOCAL = re.compile(r"low|high|step|[a-zA-Z]\d*")
"""Names that tiles have for themselves."""


# -- NumPy ------------------------------------------------------------------------------------------------


class Tiles:
    """Calls of NumPy's functions on tiles. Numbers at work live in registers, rows of one array per type, taken up
    again after their last use."""

    def __init__(self, task: ComponentTask) -> None:
        self.task = task
        self.names: dict[str, Any] = {
            "copyto": np.copyto,
            "empty": np.empty,
            "take": np.take,
            "min": min,
            "range": range,
        }
        self.loads: list[int] = []
        self._left = task.uses()
        self._free: dict[Any, list[str]] = {}
        self._count: dict[Any, int] = {}
        self._text: dict[int, str] = {}
        self._held: dict[int, tuple[Any, str]] = {}
        self._body: list[str] = []
        places: dict[int, list[int]] = {}
        for i, p in enumerate(task.places):
            places.setdefault(p.node, []).append(i)
        self._places = places
        before = self._before()
        for x in task.order:
            if task.varies[x]:
                self._write(x)
        self.width = sum([np.dtype(kind).itemsize * n for kind, n in self._count.items()])
        self.length = min(max(tuning.COMPONENT_TILE_BYTES // max(self.width, 1), SHORTEST), LONGEST) // 64 * 64
        self.source = "\n".join(
            ["def tiles(low, high, step, X, I, K, Y):", *[f"    {line}" for line in [*before, *self._loop()]]]
        )

    def _before(self) -> list[str]:
        task = self.task
        lines: list[str] = []
        for i, x in enumerate(task.scalars):
            self._text[x] = literal(task.graph.ops[x]) or f"k{i}"
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

    def _register(self, kind: Any) -> str:
        free = self._free.setdefault(kind, [])
        if not free:
            self._count[kind] = self._count.get(kind, 0) + 1
            return _register(kind, self._count[kind] - 1)
        return free.pop()

    def _release(self, x: int) -> None:
        self._left[x] -= 1
        if not self._left[x] and x in self._held:
            kind, name = self._held.pop(x)
            self._free[kind].append(name)

    def _hold(self, x: int) -> str:
        name = self._register(self.task.kinds[x])
        self._held[x] = self.task.kinds[x], name
        self._text[x] = name
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
        if (
            op is SELECT
            and self._left[args[2]] == 1
            and args[2] in self._held
            and self._held[args[2]][0] == self.task.kinds[x]
        ):
            self._held[x] = self._held.pop(args[2])  # what is chosen where the condition fails stays where it is
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
        base = (
            op.name
            if op.name.isidentifier() and not keyword.iskeyword(op.name) and not _LOCAL.fullmatch(op.name)
            else "function"
        )
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

FORMS: dict[Any, str] = {
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}",
    np.negative: "-{0}",
    np.power: "{0} ** {1}",
    np.absolute: "abs({0})",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
    np.logical_not: "not {0}",
    np.logical_and: "bool({0}) and bool({1})",
    np.logical_or: "bool({0}) or bool({1})",
    np.arctan2: "math.atan2({0}, {1})",
    np.hypot: "math.hypot({0}, {1})",
    np.log: "math.log({0})",
    np.isnan: "math.isnan({0})",
    np.isinf: "math.isinf({0})",
    np.isfinite: "math.isfinite({0})",
    **{
        f: f"math.{f.__name__}({{0}})"
        for f in (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.exp, np.expm1, np.sqrt)
    },
    **{f: f"math.{f.__name__}({{0}})" for f in (np.log1p, np.log2, np.log10)},
    **{getattr(np, f"arc{name}"): f"math.a{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f: f"np.{f.__name__}({{0}})" for f in (np.sign, np.floor, np.ceil, np.trunc, np.rint, np.exp2, np.cbrt)},
    **{
        f: f"np.{f.__name__}({{0}}, {{1}})"
        for f in (np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.remainder, np.fmod)
    },
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
    if not all(map(usual, task.kinds.values())):
        return False
    return all([_has_form(task.graph.ops[x], task.kinds[x]) for x in task.order if task.varies[x]])


def _has_form(op: Any, kind: Any) -> bool:
    if type(op) is Load or op is SELECT or op.name == "convert":
        return True
    return op.function in FORMS and not op.more and not op.named and (kind.kind in "fb" or op.function in WHOLE)


def loop_source(task: ComponentTask) -> str:
    """One loop over the positions, every expression a local variable."""
    graph, kinds = task.graph, task.kinds
    text: dict[int, str] = {}
    before: list[str] = []
    sources, indices, targets = task.arguments
    for i, x in enumerate(task.scalars):
        text[x] = literal(graph.ops[x]) or f"k{i}"
        if text[x] == f"k{i}":
            before.append(f"k{i} = {typed(f'K[{i}]', np.dtype(float), kinds[x])}")
    body: list[str] = []
    for x in task.order:
        if not task.varies[x]:
            continue
        op = graph.ops[x]
        if type(op) is Load:
            index = task.rows[op.source]
            body.append(
                f"v{len(body)} = A{op.source}[{', '.join([f'i{index}' if index >= 0 else 'p', *map(str, op.at)])}]"
            )
        else:
            body.append(f"v{len(body)} = {_expression(op, [(text[a], kinds[a]) for a in graph.args[x]], kinds[x])}")
        text[x] = f"v{len(body) - 1}"
    for p in task.places:
        body.append(f"Y{p.target}[{', '.join(['p', *map(str, p.at)])}] = {text[p.node]}")
    rows = [f"i{j} = at(I{j}[p])" for j in indices]
    named = [*[f"A{s}" for s in sources], *[f"I{j}" for j in indices], "K", *[f"Y{t}" for t in targets]]
    head = [
        f"def loop(low, high, {', '.join(named)}):",
        *[f"    {line}" for line in before],
        "    for q in range(low, high):",
        "        p = at(q)",
    ]
    return "\n".join([*head, *[f"        {line}" for line in [*rows, *body]]])


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
