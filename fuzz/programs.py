"""Random NumPy programs: lines of code over arguments, made so that plain NumPy runs them at a given point.

A program is a list of lines (an expression, the names it reads, functions defined for it) and a result. It is one text for every library
(`libraries.py`); the same seed and number give the same program.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .libraries import PLAIN, leaves, mapped
from .templates import Given, Template, templates

LARGE = 30
"""Arrays have no more numbers than that."""
SHAPES = {
    (): 8, (1,): 3, (2,): 4, (3,): 14, (4,): 10, (5,): 6, (6,): 3, (2, 2): 4, (2, 3): 10, (3, 2): 4, (3, 3): 9, (3, 4): 13, (4, 3): 4, (1, 4): 2,
    (3, 1): 3, (1, 1): 1, (2, 3, 4): 4, (2, 2, 3): 2, (2, 1, 3): 1, (0,): 1, (0, 3): 1, (3, 0): 1, (5, 2): 2, (2, 4): 2,
}  # fmt: skip
LAYOUTS = {"": 80, "F": 4, "strided": 4, "reversed": 4, "transposed": 4, "read-only": 4}
MODES = {"smooth": 76, "float32": 8, "ties": 12, "not finite": 4}
FAMILIES = {
    "elementwise": 12, "special functions": 4, "products": 12, "reductions": 12, "choosing": 6, "rearranging": 14, "indexing": 12,
    "sorting and statistics": 7, "linear algebra": 8, "fourier": 4, "computed and mixed": 7, "branches not taken": 3,
}  # fmt: skip


# -- what a program is -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Body:
    """A function inside a program."""

    name: str
    params: tuple[str, ...]
    lines: tuple[Line, ...]
    result: str  # an expression with {0}, {1}, … for the names in `args`
    args: tuple[str, ...]

    def returned(self) -> str:
        return self.result.format(*self.args)


@dataclass(frozen=True)
class Line:
    """name = text, with {0}, {1}, … for the names in `args` and {f}, {g}, {h} for the functions defined before it. `after`: lines that write
    into it, as {w}."""

    name: str
    text: str
    args: tuple[str, ...]
    family: str
    jax: str | None = ""  # what it is in JAX: "" the same, None nothing
    bodies: tuple[Body, ...] = ()
    after: tuple[str, ...] = ()

    def expression(self, jax: bool = False) -> str:
        text = self.jax if jax and self.jax else self.text
        return text.format(*self.args, **dict(zip("fgh", [b.name for b in self.bodies], strict=False)))

    def code(self, indent: str = "", jax: bool = False) -> str:
        found = []
        for body in self.bodies:
            found.append(f"{indent}def {body.name}({', '.join(body.params)}):")
            found += [line.code(indent + "    ", jax) for line in body.lines]
            found.append(f"{indent}    return {body.returned()}")
        found.append(f"{indent}{self.name} = {self.expression(jax)}")
        found += [indent + text.format(*self.args, w=self.name) for text in self.after]
        return "\n".join(found)

    def known_to_jax(self) -> bool:
        return self.jax is not None and all([line.known_to_jax() for b in self.bodies for line in b.lines])


@dataclass(frozen=True)
class Program:
    """Arguments by name, lines, a result (a tree of names), and how the arguments lie in memory."""

    args: dict[str, Any]
    lines: tuple[Line, ...]
    result: Any
    mode: str = "smooth"
    layout: str = ""

    def source(self, jax: bool = False) -> str:
        lines = [line.code("    ", jax) for line in self.lines]
        return "\n".join([f"def f({', '.join(self.args)}):", *lines, f"    return {tree_code(self.result, str)}", ""])

    def function(self, library: dict[str, Any]) -> Any:
        names = dict(library)
        exec(compile(self.source(library["np"] is not np), "<random program>", "exec"), names)
        return names["f"]

    def values(self) -> tuple[Any, ...]:
        """The arguments, newly made, lying in memory as they should."""
        return tuple([mapped(lambda x: laid(x, self.layout), a) for a in self.args.values()])

    @property
    def moving(self) -> tuple[int, ...]:
        """The arguments that are floats."""
        return tuple([i for i, a in enumerate(self.args.values()) if is_float(leaves(a)[0])])

    def all_lines(self) -> Iterator[Line]:
        stack = list(self.lines)
        while stack:
            line = stack.pop()
            yield line
            stack += [inner for b in line.bodies for inner in b.lines]

    def known_to_jax(self) -> bool:
        return all([line.known_to_jax() for line in self.lines])


def is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def tree_code(tree: Any, leaf: Any) -> str:
    """A tree as Python code."""
    if isinstance(tree, dict):
        return "{" + ", ".join([f"{k!r}: {tree_code(v, leaf)}" for k, v in tree.items()]) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join([tree_code(v, leaf) for v in tree]) + "]"
    if isinstance(tree, tuple):
        return "(" + ", ".join([tree_code(v, leaf) for v in tree]) + ("," if len(tree) == 1 else "") + ")"
    return leaf(tree)


LAID = {  # how an array is laid in memory, as code
    "": "{0}",
    "F": "np.asfortranarray({0})",
    "strided": "np.repeat({0}, 2, axis=-1)[..., ::2]",
    "reversed": "{0}[::-1].copy()[::-1]",
    "transposed": "{0}.T.copy().T",
    "read-only": "np.frombuffer({0}.tobytes(), {0}.dtype).reshape({0}.shape)",
}


def laid(x: Any, layout: str) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    return eval(LAID[layout].format("x"), {"np": np, "x": x.copy()}) if x.ndim and x.size else x.copy()


def literal(x: Any, layout: str = "") -> str:
    """A leaf as code."""
    if not isinstance(x, (np.ndarray, np.generic)):
        return repr(x) if x == x and abs(x) != math.inf else f"float({str(x)!r})"
    text = np.array2string(
        np.asarray(x), separator=", ", threshold=10**6, floatmode="unique", max_line_width=10**6
    ).replace("\n", "")
    text = " ".join(text.split()).replace("nan", "np.nan").replace("inf", "np.inf")
    if isinstance(x, np.generic):
        return f"np.{x.dtype.name}({text})"
    kind = "" if x.dtype in (np.float64, np.int64, np.bool_) and x.size else f", dtype=np.{x.dtype.name}"
    made = f"np.array({text}{kind})" if x.size else f"np.zeros({x.shape}{kind})"
    return LAID[layout].format(made) if x.ndim and x.size and layout else made


def shown(program: Program) -> str:
    """A program as complete code."""
    args = [
        f"{name} = {tree_code(value, lambda x: literal(x, program.layout))}" for name, value in program.args.items()
    ]
    text = program.source().replace("onp.", "np.")
    imports = ["import numpy as np", "import riesz as rz"]
    imports += ["import scipy.special as s"] if "s." in text.replace("np.", "").replace("rz.", "") else []
    imports += ["import scipy.linalg as sl"] if "sl." in text else []
    return "\n".join([*imports, "", "", text, "", *args])


# -- making one --------------------------------------------------------------------------------------------------


class NotPossibleError(Exception):
    """A line that plain NumPy does not run here, or whose result is too large."""


@dataclass
class Scope:
    """Names that may be read, with their values at the point."""

    rng: np.random.Generator
    mode: str
    counter: list[int]
    env: dict[str, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # names that some line reads

    def fresh(self, letter: str = "v") -> str:
        self.counter[0] += 1
        return f"{letter}{self.counter[0]}"

    def let(self, name: str, value: Any) -> None:
        self.names.append(name)
        self.values[name] = value
        if name.isidentifier():
            self.env[name] = value

    def inner(self) -> Scope:
        return Scope(self.rng, self.mode, self.counter, dict(self.env), list(self.names), dict(self.values), self.read)

    def pick(self, kind: str = "f", fits: Any = None) -> str | None:
        """A name, rather a recent one."""
        good = [
            n
            for n in self.names
            if np.asarray(self.values[n]).dtype.kind == kind and (fits is None or fits(self.values[n]))
        ]
        if not good:
            return None
        idle = [n for n in good if n not in self.read]
        if idle and self.rng.random() < 0.5:
            return idle[int(self.rng.integers(len(idle)))]
        at = (
            len(good) - 1 - min(int(self.rng.geometric(0.4)) - 1, len(good) - 1)
            if self.rng.random() < 0.6
            else int(self.rng.integers(len(good)))
        )
        return good[at]

    def evaluate(self, line: Line) -> Any:
        """The value of a line."""
        if re.search(FACTORS, line.text) and not all([separated(self.values.get(a)) for a in line.args]):
            raise NotPossibleError
        if any(
            [
                re.search(pattern, line.text) and unfit(self.values.get(a))
                for pattern, unfit in NOT_FOR.items()
                for a in line.args
            ]
        ):
            raise NotPossibleError
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(line.code(), self.env)
            except Exception as problem:
                raise NotPossibleError from problem
        return self.env[line.name]

    def add(self, line: Line) -> Line:
        """The line, which becomes readable; of several results one is taken."""
        value = self.evaluate(line)
        if isinstance(value, (list, tuple)) and value:
            k = int(self.rng.integers(len(value)))
            jax = line.jax if not line.jax else f"({line.jax})[{k}]"
            line = replace(line, text=f"({line.text})[{k}]", jax=jax)
            value = self.env[line.name] = value[k]
        if isinstance(value, (list, tuple, dict)) or value is None:
            raise NotPossibleError
        v = np.asarray(value)
        if v.dtype.kind not in "fib" or v.dtype == np.longdouble or v.size > LARGE or v.ndim > 4:
            raise NotPossibleError
        if (
            v.dtype.kind != "b"
            and self.mode != "not finite"
            and not (np.isfinite(v).all() and np.abs(v).max(initial=0.0) < 40.0)
        ):
            raise NotPossibleError
        self.let(line.name, value)
        self.read.update(line.args)
        return line


NOT_FOR: dict[str, Callable[[Any], bool]] = {
    r"fft\.(irfft|hfft)": lambda x: np.size(x) == 0,  # NumPy gives memory that nobody has written to
    r"\bs\.hyp1f1": lambda x: not bool(np.isfinite(x).all()),  # SciPy does not come back
    r"~": lambda x: isinstance(x, bool),  # a number in Python: ~True is −2
}
"""Functions that plain Python, NumPy or SciPy do not answer as they should, and for what."""
FACTORS = r"svd|eig|polar|qr|lu|pinv|lstsq|cond\(|sqrtm|logm|'nuc'|, -?2[,)]"
"""Functions of matrices whose factors have no derivative where singular values are equal or 0."""


def separated(x: Any) -> bool:
    """Whether singular values differ clearly from each other and from 0."""
    x = np.asarray(x)
    if x.ndim < 2 or x.dtype.kind != "f" or not x.size or not np.isfinite(x).all():
        return x.ndim < 2
    s = np.linalg.svd(x, compute_uv=False)
    return bool((s > 0.03).all() and (np.diff(s, axis=-1) < -0.03).all())


def replayed(program: Program) -> None:
    """Raises NotPossibleError where a program would not have been made as it is."""
    scope = Scope(np.random.default_rng(0), program.mode, [0], dict(PLAIN))
    for name, value in program.args.items():
        scope.let(name, value)
        for key in ("['w']", "['b']", "[0]", "[1]", "['w'][0]", "['b'][1]['c']"):
            try:
                scope.values[name + key] = eval("value" + key, {"value": value})
            except (KeyError, IndexError, TypeError):
                continue
    for line in program.lines:
        scope.let(line.name, scope.evaluate(line))


def chosen(rng: np.random.Generator, weights: dict[Any, float]) -> Any:
    keys = list(weights)
    p = np.array([weights[k] for k in keys], float)
    return keys[int(rng.choice(len(keys), p=p / p.sum()))]


def simple_lines(scope: Scope, template: Template) -> list[Line]:
    """A template filled with names of the scope; where shapes or intervals do not fit, lines before it make them fit."""
    found: list[Line] = []
    args: list[str] = []
    strict = scope.rng.random() < 0.35 or re.search(SHAPED, template.text) is not None
    for given in template.given:
        name = scope.pick(given.kind) or discrete(scope, found, given.kind)
        args.append(fitted(scope, found, name, given, strict))
    line = Line(
        scope.fresh(),
        template.text,
        tuple(args),
        template.family,
        "" if template.jax == template.text else template.jax,
    )
    found.append(scope.add(line))
    return found


SHAPED = r"sl\.(toeplitz|hankel|circulant|solve_toeplitz)"
"""Functions that mean something else by arrays of other shapes in other versions of SciPy."""
DISCRETE = {
    "i": ("np.argsort({0}, axis=-1)", "np.argmax({0}, axis=0)", "np.floor({0}).astype(int)", "np.sum({0} > 0, axis=0)"),
    "b": ("{0} > 0.2", "({0} > -0.5) & ({0} < 1.0)", "np.isfinite({0})", "{0} <= np.mean({0})"),
}


def discrete(scope: Scope, before: list[Line], kind: str) -> str:
    """An array of integers or truth values, computed from floats."""
    name = scope.pick("f")
    if name is None or kind not in DISCRETE:
        raise NotPossibleError
    made = scope.add(Line(scope.fresh(), DISCRETE[kind][int(scope.rng.integers(4))], (name,), "computed and mixed"))
    before.append(made)
    return made.name


def fitted(scope: Scope, before: list[Line], name: str, given: Given, strict: bool) -> str:
    """A name for an array as a template wants it."""

    def line(text: str, family: str) -> str:
        made = scope.add(Line(scope.fresh(), text, (name,), family))
        before.append(made)
        return made.name

    value = np.asarray(scope.values[name])
    if given.shape is not None and value.shape != given.shape and (strict or given.matrix):
        same = scope.pick(given.kind, lambda v: np.shape(v) == given.shape)
        if same is not None and scope.rng.random() < 0.7:
            name = same
        elif value.size == math.prod(given.shape):
            name = line(f"np.reshape({{0}}, {given.shape})", "rearranging")
        elif value.size:
            name = line(f"np.resize({{0}}, {given.shape})", "rearranging")
        else:
            raise NotPossibleError
        value = np.asarray(scope.values[name])
    if (
        given.kind == "f"
        and (given.low > -1.5 or given.high < 1.5)
        and not (value > given.low).all() & (value < given.high).all()
    ):
        middle, half = (given.low + given.high) / 2, 0.9 * (given.high - given.low) / 2
        name = line(f"{middle:.4g} + {half:.4g} * np.tanh({{0}})", "elementwise")
    if given.matrix:
        n = given.shape[-1] if given.shape else 1
        if given.matrix == "regular":
            name = line(f"np.tanh({{0}}) + 3.0 * onp.eye({n})", "elementwise")
        else:
            name = line("np.tanh({0})", "elementwise")
            name = line(f"{{0}} @ np.swapaxes({{0}}, -1, -2) + onp.diag(onp.arange(1.0, {n + 1}.0))", "products")
    return name


# -- control flow and derivatives inside ----------------------------------------------------------------------------


def body(scope: Scope, params: dict[str, Any], count: int, depth: int, result: Any) -> Body:
    """A function of some parameters with these values; `result(scope, name of the last float)` says what it returns."""
    inner = scope.inner()
    for name, value in params.items():
        inner.let(name, value)
    lines = random_lines(inner, count, depth + 1)
    last = inner.pick("f", lambda v: np.size(v) > 0)
    if last is None:
        raise NotPossibleError
    text, args = result(inner, last)
    return Body(scope.fresh("f"), tuple(params), tuple(lines), text, args)


def like(name: str) -> Any:
    """A result of the shape of a parameter."""

    def result(scope: Scope, last: str) -> tuple[str, tuple[str, ...]]:
        if np.shape(scope.values[last]) == np.shape(scope.values[name]):
            return "np.tanh({0}) + 0.5 * {1}", (last, name)
        return "0.5 * {1} + 0.1 * np.sum(np.sin({0}))", (last, name)

    return result


def number(scope: Scope, last: str) -> tuple[str, tuple[str, ...]]:
    return "np.sum(np.sin({0}))", (last,)


def anything(scope: Scope, last: str) -> tuple[str, tuple[str, ...]]:
    return "{0}", (last,)


def both(first: Any, second: Any) -> Any:
    def result(scope: Scope, last: str) -> tuple[str, tuple[str, ...]]:
        (a, xs), (b, ys) = first(scope, last), second(scope, last)
        shifted = b.format(*[f"{{{len(xs) + i}}}" for i in range(len(ys))])
        return f"{a}, {shifted}", (*xs, *ys)

    return result


def constant(scope: Scope, n: int) -> str:
    return f"onp.array({[float(v) for v in np.round(scope.rng.normal(size=n), 2)]})"


def control_line(scope: Scope, depth: int) -> Line:
    """Control flow around random lines."""
    rng = scope.rng
    kind = str(rng.choice(CONTROL))
    a = scope.pick("f", lambda v: np.size(v) > 0)
    if a is None:
        raise NotPossibleError
    x = scope.values[a]
    u, w = scope.fresh("u"), scope.fresh("w")
    n = int(rng.integers(1, 3))

    def f(result: Any, **params: Any) -> Body:
        return body(scope, params, n, depth, result)

    def made(text: str, bodies: list[Body], *args: str) -> Line:
        return scope.add(Line(scope.fresh(), text, (a, *args), kind, "", tuple(bodies)))

    match kind:
        case "checkpoint":
            return made("rz.checkpoint({f})({0})", [f(anything, **{u: x})])
        case "cond":
            predicate = str(rng.choice(["np.sum({0}) > 0.1", "np.max({0}) < 1.0", "np.any({0} > 0.5)"]))
            return made(f"rz.cond({predicate}, {{f}}, {{g}}, {{0}})", [f(like(u), **{u: x}), f(like(w), **{w: x})])
        case "switch":
            return made(
                "rz.switch(np.argmax({0}), [{f}, {g}, {h}], {0})",
                [f(like(u), **{u: x}), f(like(w), **{w: x}), f(like(u), **{u: x})],
            )
        case "loop":
            over = scope.pick("f", lambda v: np.ndim(v) > 0 and 0 < len(v) < 4)
            rest = str(rng.choice(["", ", reverse=True", ", checkpoint=True", ", checkpoint=2"]))
            end = str(rng.choice(["[0]", "[1]"]))
            result = both(like(u), anything if rng.random() < 0.5 else number)
            if over is None or rng.random() < 0.4:
                return made(
                    f"rz.loop({{f}}, {{0}}, {constant(scope, 3)}{rest}){end}", [f(result, **{u: x, w: np.float64(0.5)})]
                )
            return made(
                f"rz.loop({{f}}, {{0}}, {{1}}{rest}){end}", [f(result, **{u: x, w: scope.values[over][0]})], over
            )
        case "loop, no inputs":
            return made(
                "rz.loop(lambda c, _: ({f}(c), np.sum(c)), {0}, length=3)" + str(rng.choice(["[0]", "[1]"])),
                [f(like(u), **{u: x})],
            )
        case "fori_loop":
            return made("rz.fori_loop(0, 3, {f}, {0})", [f(like(u), **{w: 1, u: x})])
        case "vmap":
            if np.ndim(x) == 0 or np.shape(x)[0] > 4:
                raise NotPossibleError
            axis = int(rng.integers(np.ndim(x)))
            inner = f(anything, **{u: np.take(x, 0, axis)})
            return made(
                f"rz.vmap({{f}}, {axis}, {int(rng.integers(2))})({{0}})"
                if axis or rng.random() < 0.3
                else "rz.vmap({f})({0})",
                [inner],
            )
        case "vmap of two":
            other = scope.pick("f", lambda v: np.ndim(v) > 0 and np.ndim(x) > 0 and len(v) == len(x) < 5)
            if other is None:
                raise NotPossibleError
            inner = f(anything, **{u: x[0], w: scope.values[other][0]})
            return made("rz.vmap({f})({0}, {1})", [inner], other)
        case "vmap with one fixed":
            if np.ndim(x) == 0 or len(x) > 4:
                raise NotPossibleError
            other = scope.pick("f") or a
            return made("rz.vmap({f}, (0, None))({0}, {1})", [f(anything, **{u: x[0], w: scope.values[other]})], other)
        case "vmap of cond":
            if np.ndim(x) == 0 or len(x) > 4:
                raise NotPossibleError
            inner = [f(like(u), **{u: x[0]}), f(like(w), **{w: x[0]})]
            return made("rz.vmap(lambda t: rz.cond(np.sum(t) > 0.2, {f}, {g}, t))({0})", inner)
        case "vmap of grad":
            if np.ndim(x) == 0 or len(x) > 4:
                raise NotPossibleError
            return made("rz.vmap(rz.grad({f}))({0})", [f(number, **{u: x[0]})])
        case "grad" | "value_and_grad":
            return made(f"rz.{kind}({{f}})({{0}})", [f(number, **{u: x})])
        case "grad of grad":
            return made("rz.grad(lambda t: np.sum(np.cos(rz.grad({f})(t))))({0})", [f(number, **{u: x})])
        case "hvp":
            return made("rz.hvp({f}, ({0},), (np.sin({0}),))", [f(number, **{u: x})])
        case "jvp":
            return made("rz.jvp({f}, ({0},), (np.cos({0}),))[1]", [f(anything, **{u: x})])
        case "vjp":
            return made("(lambda y, back: back(np.sin(y))[0])(*rz.vjp({f}, {0}))", [f(anything, **{u: x})])
        case "jacobian":
            end = str(rng.choice(["(np.sin({0}))", ".to_dense()", ".H({f}({0}))"]))
            return made("rz.jacobian({f})({0})" + end, [f(anything, **{u: x})])
        case _:
            return made("rz.function({f})({0})", [f(anything, **{u: x})])


CONTROL = (
    "checkpoint", "cond", "switch", "loop", "loop", "loop, no inputs", "fori_loop", "vmap", "vmap of two", "vmap with one fixed", "vmap of cond",
    "vmap of grad", "grad", "value_and_grad", "grad of grad", "hvp", "jvp", "vjp", "jacobian", "function",
)  # fmt: skip


MADE = (
    "{0}.copy()",
    "{0} * 1.0",
    "np.zeros_like({0})",
    "np.array({0})",
    "np.ones({shape})",
    "np.sin({0})",
)
WRITES: dict[int, tuple[str, ...]] = {
    0: (
        "{w}[{i}] = {v}", "{w}[{i}] {op}= {v}", "{w}[{a}::{s}] = {v}", "{w}[{a}::{s}] {op}= {v}", "{w}[...] {op}= {v}", "{w}.T[...] = {v}",
        "{w}[{at}] = {v}", "{w}[{at}] {op}= {v}", "np.add.at({w}, {at}, {v})", "np.subtract.at({w}, {at}, {v})", "{w}[::-1][{i}] = {v}",
        "{w}[{w} > 0.1] {op}= 2.0", "{w}[{w} < 0.2] = {n}", "{w}[np.abs({w}) > 0.7] /= 2.0", "{w}[{w} > 0.3] -= np.sum({w}[{w} > 0.3])",
        "{w}[{w} <= 0.4] = np.sin({w}[{w} <= 0.4]) * {n}", "np.multiply({w}, {v}, out={w})", "np.copyto({w}, {v})", "np.put({w}, [0, -1], {n})",
        "{w}.flat[::2] = {n}", "{w}_r = {w}[{i}:]; {w}_r -= {v}", "{w}_r = {w}.reshape(-1); {w}_r[{i}] {op}= {n}", "{w}.fill({n})",
        "np.putmask({w}, {w} > 0.2, {n})", "{w}[{a}:] = {w}[: {w}.shape[0] - {a}] * {n}", "{w}[np.argmax({w}.ravel()) % {w}.shape[0]] = {n}",
        "for {w}_i in range({w}.shape[0]): {w}[{w}_i] = {w}[{w}_i] * {n} + {w}[{w}_i - 1]",
    ),
    1: ("{w}[np.argsort({w})] = {v}", "np.add.at({w}, np.argsort({w}), {v})", "{w}[np.floor({w}).astype(int) % {w}.shape[0]] = {n}", "{w}.sort()"),
    2: ("np.fill_diagonal({w}, {n})", "{w}[:, {j}] {op}= {n}", "{w}[{w}[:, 0] > 0.1] *= {n}", "np.einsum('ij->ji', {w})[{j}] = {n}"),
}  # fmt: skip
"""What writes into an array, by its number of axes; 0: any."""


def write_line(scope: Scope) -> Line:
    """An array of its own that later lines write into, and those lines."""
    a = scope.pick("f", lambda x: isinstance(x, np.ndarray) and x.ndim > 0 and x.size > 0)
    b = scope.pick("f")
    if a is None or b is None:
        raise NotPossibleError
    rng, shape = scope.rng, np.shape(scope.values[a])
    one = lambda of: of[int(rng.integers(len(of)))]  # noqa: E731
    number = lambda: one(("0.5", "np.sum({1})", "np.tanh(np.mean({0}))", "-1.5", "2"))  # noqa: E731
    line = Line(scope.fresh(), one(MADE).replace("{shape}", str(shape)), (a, b), "writes", None)
    scope.evaluate(line)
    for _ in range(int(rng.integers(1, 6))):
        text = one((*WRITES[0], *WRITES.get(len(shape), ())))
        at = rng.integers(0, shape[0], int(rng.integers(1, 4))).tolist()
        value = one((number(), number(), "{1}", "{0}", "np.resize({1}, " + str(shape[1:] or (1,)) + ")"))
        fills = {
            "i": int(rng.integers(shape[0])),
            "j": int(rng.integers(shape[-1])),
            "a": int(rng.integers(shape[0])),
            "at": at,
            "op": one("+-*"),
        }
        fills |= {"s": int(rng.integers(1, 3)), "v": value, "n": number()}
        for key, fill in fills.items():
            text = text.replace("{" + key + "}", str(fill))
        longer = replace(line, after=(*line.after, text))
        try:
            scope.evaluate(longer)
        except NotPossibleError:
            continue
        line = longer
    if not line.after:
        raise NotPossibleError
    return scope.add(line)


def random_lines(scope: Scope, count: int, depth: int) -> list[Line]:
    """So many instructions that plain NumPy can run; each may bring lines that prepare its arguments."""
    found: list[Line] = []
    table = templates()
    for _ in range(12 * count):
        if count == 0:
            break
        before = list(scope.names), dict(scope.values), dict(scope.env)
        try:
            if scope.rng.random() < (0.2, 0.1, 0.0)[min(depth, 2)]:
                found.append(control_line(scope, depth))
            elif scope.rng.random() < 0.12:
                found.append(write_line(scope))
            else:
                family = chosen(scope.rng, FAMILIES)
                if scope.mode == "not finite" and family in (
                    "fourier",
                    "linear algebra",
                ):  # where nan ends up is the algorithm's affair
                    continue
                group = table[family]
                template = group[int(scope.rng.integers(len(group)))]
                if template.jax is None and scope.rng.random() < 0.5:
                    continue
                found += simple_lines(scope, template)
            count -= 1
        except NotPossibleError:
            scope.names, scope.values, scope.env = before
    return found


# -- arguments, result -------------------------------------------------------------------------------------------------


def numbers(rng: np.random.Generator, shape: tuple[int, ...], mode: str) -> Any:
    """Numbers no two of which are close, none close to a whole number; or with ties, zeros, infinities."""
    n = math.prod(shape)
    spread = (rng.permutation(n) + rng.uniform(0.2, 0.8, n)) / max(n, 1)
    x = -2.0 + 4.0 * spread
    x = np.where(np.abs(x - np.rint(x)) < 0.02, x + 0.037, x)
    if mode in ("ties", "not finite"):
        pool = [0.0, -0.0, 1.0, 1.0, -1.0, 0.5, 2.0] + [math.inf, -math.inf, math.nan] * (mode == "not finite")
        x = np.where(rng.random(n) < 0.5, rng.choice(pool, n), x)
    return x.reshape(shape)


def argument(rng: np.random.Generator, mode: str) -> Any:
    """An array, a number, or a tree of them."""
    shape = chosen(rng, SHAPES)
    x = numbers(rng, shape, mode)
    if mode == "float32":
        x = x.astype(np.float32)
    if shape == ():
        return (
            [float(x), x[()], x][int(rng.integers(3))]
            if mode != "float32"
            else [float(x), np.float32(x)][int(rng.integers(2))]
        )
    return x


def random_program(seed: int, k: int) -> Program:
    """Program k of a seed."""
    rng = np.random.default_rng((seed, k))
    mode = chosen(rng, MODES)
    scope = Scope(rng, mode, [0], dict(PLAIN))
    args: dict[str, Any] = {}
    for name in "xyz"[: chosen(rng, {1: 50, 2: 35, 3: 15})]:
        kind = chosen(
            rng,
            {"array": 85, "dict": 5, "tuple": 3, "nested": 2, "integers": 3, "truths": 2}
            if args
            else {"array": 90, "dict": 6, "tuple": 4},
        )
        match kind:
            case "array":
                args[name] = argument(rng, mode)
                scope.let(name, args[name])
            case "dict" | "tuple" | "nested":
                parts = [argument(rng, mode) for _ in range(2)]
                keys = (
                    ["['w']", "['b']"]
                    if kind == "dict"
                    else ["[0]", "[1]"]
                    if kind == "tuple"
                    else ["['w'][0]", "['b'][1]['c']"]
                )
                args[name] = {"w": parts[0], "b": parts[1]} if kind == "dict" else tuple(parts)
                if kind == "nested":
                    args[name] = {"w": [parts[0]], "b": (0.5, {"c": parts[1]})}
                scope.env[name] = args[name]
                for key, value in zip(keys, parts, strict=True):
                    scope.let(name + key, value)
            case _:
                shape = chosen(rng, SHAPES)
                args[name] = rng.integers(-3, 6, shape) if kind == "integers" else rng.random(shape) < 0.5
                scope.let(name, args[name])
    lines = random_lines(scope, int(rng.integers(1, 7)), 0)
    return Program(args, tuple(lines), random_result(scope, lines), mode, chosen(rng, LAYOUTS))


def random_result(scope: Scope, lines: list[Line]) -> Any:
    """The last float, or those that nothing reads, in a tuple or dict."""
    made = [line.name for line in lines if is_float(scope.values[line.name])]
    good = made or [n for n in scope.names if is_float(scope.values[n])]
    idle = [n for n in made if n not in scope.read] or good[-1:]
    last, other, third = good[-1], idle[0], idle[len(idle) // 2]
    form = chosen(scope.rng, {"one": 60, "tuple": 20, "list": 6, "dict": 8, "nested": 6})
    every = {
        "tuple": (last, other),
        "list": [last, other, third],
        "dict": {"u": last, "a": other},
        "nested": {"u": [last, (other,)], "a": third},
    }
    return last if form == "one" or (len(idle) == 1 and form != "nested") else every[form]
