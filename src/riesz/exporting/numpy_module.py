"""A program as a Python module that imports NumPy, and SciPy where its functions are needed, and nothing else."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import ast
import inspect
import keyword
import math
import re
import string
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from ..errors import TraceError
from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import ANYWHERE, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..programs.program import INPUT, Constant, Program
from ..programs.sub_programs import Call, Loop
from ..relations.kinds import Triangular
from ..spaces.formal_vectors import dense
from ..tracing.rules.linalg import scipy_linalg
from .op_writers import OpWriters

_SAME = "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log2 log10 log1p sqrt"
_SAME += (
    " cbrt sign absolute floor trunc sinc arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin remainder fmod"
)
FORMULAS: dict[str, str] = {
    **{name: f"np.{name}({{0}})" for name in _SAME.split()},
    **{name: f"np.{name}({{0}}, {{1}})" for name in _SAME.split()[-12:]},
    **{"ln": "np.log({0})", "root": "np.sqrt({0})", "divide": "{0} / {1}", "pow": "{0} ** {1}"},
    "floor": "np.floor({0})",
    "sinc": "np.sinc({0})",
    "trunc": "np.trunc({0})",
    "absolute": "np.abs({0})",
    "sigmoid": "1.0 / (1.0 + np.exp(-{0}))",
    "relu": "np.maximum({0}, 0.0)",
    "step": "np.heaviside({0}, 0.0)",
    "inverse": "np.where({0} == 0, 0.0, 1 / np.where({0} == 0, 1.0, {0}))",
    "log0": "np.log(np.where({0} == 0, 1.0, {0}))",
    "larger": "np.where({0} == {1}, 0.5, np.where({0} > {1}, 1.0, 0.0))",
    "power_slope": "np.where({1} == 0, 0.0, {1} * np.power(np.where({1} == 0, 1.0, {0}), {1} - 1.0))",
    "ratio": "np.where({0} == 0, 0.0, {0} / np.where({0} == 0, 1.0, {1}))",
}
_DISCRETE = "less less_equal greater greater_equal equal not_equal logical_not logical_and logical_or logical_xor isnan"
_DISCRETE += (
    " isfinite floor ceil trunc rint sign absolute negative add subtract multiply minimum maximum argsort argmax"
)
_DISCRETE += " argmin floor_divide remainder fmod power square copysign arctan2 clip round isinf isposinf isneginf fmax"
_DISCRETE += " cumsum cumprod"
_DISCRETE += " fmin where max min sum prod any all isclose invert bitwise_and bitwise_or bitwise_xor count_nonzero"


class NumpyModule:
    """The lines of a module."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self.functions: list[list[str]] = []
        self._count = 0
        self._known: dict[int, tuple[str, Any]] = {}
        self._embedded: dict[int, str] = {}

    def name(self, what: str) -> str:
        """A new name."""
        self._count += 1
        return f"{what}{self._count}"

    def array(self, value: Any) -> str:
        """A constant."""
        value = np.asarray(value)
        if not value.ndim:
            return repr(value.item()) if np.isfinite(value) else f"float('{float(value)!r}')"
        if id(value) in self._known:
            return self._known[id(value)][0]
        name = self.name("_k")
        text = np.array2string(value, separator=", ", threshold=value.size + 1, floatmode="unique", max_line_width=110)
        text = re.sub(r"\bnan\b", "np.nan", re.sub(r"\binf\b", "np.inf", text))
        self.constants.append(f"{name} = np.array({text}, np.{value.dtype.name}).reshape({value.shape})")
        self._known[id(value)] = name, value
        return name

    def function(self, program: Program, names: Sequence[str], title: str) -> str:
        """A function of a program; what it gives is a tuple."""
        lines: list[str] = []
        refs: dict[int, str] = dict(zip(program.inputs, names, strict=True))
        live = program.needed(program.outputs)
        for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
            if slot in refs or not live[slot] or op is INPUT:
                continue
            if type(op) is Constant:
                refs[slot] = self.array(dense(op.value))
                continue
            rule = LINE.of(op)
            refs[slot] = self.name("s")
            shapes = [program.shapes[a] for a in args]
            lines.append(f"{refs[slot]} = {rule(self, op, [refs[a] for a in args], shapes, program.shapes[slot])}")
        lines.append(f"return ({''.join([refs[s] + ', ' for s in program.outputs])})")
        self.functions.append([f"def {title}({', '.join(names)}):", *[f"    {line}" for line in lines]])
        return title

    def embedded(self, function: Any) -> str | None:
        """The name of a function that is plain NumPy, whose source goes into the module; None for others."""
        code = getattr(function, "__code__", None)
        if code is None or code.co_freevars:
            return None
        if id(function) not in self._embedded:
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & set(function.__globals__)
            if not isinstance(node, ast.FunctionDef) or not names <= {"np", "math", "Any"}:
                return None
            node.decorator_list, node.name = [], self.name("_f")
            self._embedded[id(function)] = node.name
            self.functions.append(ast.unparse(node).splitlines())
        return self._embedded[id(function)]

    def inner(self, program: Program) -> str:
        """A program inside a step as a function."""
        return self.function(program, [self.name("x") for _ in program.inputs], self.name("_f"))


LINE = OpWriters("plain NumPy")
"""An op as an expression of plain NumPy."""
LINE("`k * x`", float)(lambda m, op, xs, shapes, shape: f"{m.array(op)} * {xs[0]}")
LINE("a reshape", Reshape)(lambda m, op, xs, shapes, shape: f"np.reshape({xs[0]}, {shape})")
LINE("another type", Cast)(lambda m, op, xs, shapes, shape: f"np.asarray({xs[0]}).astype(np.{op.target.name})")
LINE("one of several", Get)(lambda m, op, xs, shapes, shape: f"{xs[0]}[{op.at}]")
LINE("`np.where`", Select)(lambda m, op, xs, shapes, shape: f"np.where({', '.join(xs)})")


@LINE("a function of NumPy's", Elementwise)
def _elementwise(m: NumpyModule, op: Any, xs: list[str], shapes: Any, shape: Any) -> str:
    name, k = op.primitive.name, op.primitive.parameter
    if name == "power":
        return f"{xs[0]} * {xs[0]}" if k == 2.0 else f"np.power({xs[0]}, {k!r})"
    if name not in FORMULAS and k is None and hasattr(special, name):
        return f"special.{name}({', '.join(xs)})"
    if name not in FORMULAS or k is not None:
        raise TraceError(f"the primitive {name} is not known in plain NumPy")
    return FORMULAS[name].format(*xs)


@LINE("a sum", Combination)
def _combination(m: NumpyModule, op: Combination, xs: list[str], shapes: Any, shape: Any) -> str:
    return " + ".join([x if k == 1.0 else f"{m.array(k)} * {x}" for k, x in zip(op.coefficients, xs, strict=True)])


@LINE("a comparison", Discrete)
def _discrete(m: NumpyModule, op: Discrete, xs: list[str], shapes: Any, shape: Any) -> str:
    name = getattr(op.function, "__name__", "")
    if op is ANYWHERE:
        return f"0 if np.any({xs[0]}) else 1"
    if name == "_number":
        return f"np.where({xs[0]}, 0, 1)"
    if name == "_same":
        return xs[0]
    named = dict(op.parameters)
    if name == "as_type":
        return f"np.asarray({xs[0]}).astype(np.{np.dtype(named['dtype']).name})"
    if name in ("_find", "_interval") and len(shapes[0]) == 1:
        found = f"np.searchsorted({xs[0]}, {xs[1]}, {named.get('side', 'right')!r})"
        return found if name == "_find" else f"np.clip({found} - 1, 0, {named['last']})"
    own = f"np.{name}" if getattr(np, name, None) is op.function and name in _DISCRETE.split() else None
    if (own := own or m.embedded(op.function)) is not None:
        return f"{own}({', '.join([*xs, *[f'{k}={v!r}' for k, v in named.items()]])})"
    raise TraceError(f"{name or op.title} is not known in plain NumPy")


@LINE("`np.einsum`", Contraction)
def _contraction(m: NumpyModule, op: Contraction, xs: list[str], shapes: Any, shape: Any) -> str:
    if op.guarded >= 0:
        return _contraction(m, op.unguarded, xs[:-1], shapes[:-1], shape)
    sizes = op.sizes(tuple([tuple(s) for s in shapes]))
    letters = {k: string.ascii_letters[i] for i, k in enumerate(sizes)}
    out = list(dict.fromkeys(op.out))
    extra = [k for k, _ in op.extra]
    terms = [*zip(xs, op.labels, strict=True), *[(f"np.ones({sizes[k]})", (k,)) for k in extra]]
    if op.strong:  # zeros that annihilate: multiplied out, then chosen from
        every = [*out, *[k for k in sizes if k not in out]]
        shown = [
            f"np.einsum('{_text(ls, letters)}->{_text(_of(every, ls), letters)}', {x})[{_axes(every, ls)}]"
            for x, ls in terms
        ]
        zero = " | ".join([f"({shown[i]} == 0)" for i in op.strong])
        total = f"np.where({zero}, 0.0, {' * '.join(shown)})"
        text = f"np.sum({total}, axis={tuple(range(len(out), len(every)))})" if len(every) > len(out) else total
        terms, out_labels = [(text, tuple(out))], op.out
    else:
        out_labels = op.out
    if len(out) < len(out_labels):
        subscripts = ",".join([_text(ls, letters) for _, ls in terms])
        inner = f"np.einsum('{subscripts}->{_text(out, letters)}', {', '.join([x for x, _ in terms])})"
        ones = [f"np.eye({sizes[k]})" for k in out if out_labels.count(k) == 2]
        fresh = iter(string.ascii_letters[len(sizes) :])
        seen: set[int] = set()
        names: list[str] = []
        eyes: list[str] = []
        for k in out_labels:
            names.append(next(fresh) if k in seen else letters[k])
            if k in seen:
                eyes.append(letters[k] + names[-1])
            seen.add(k)
        return f"np.einsum('{','.join([_text(out, letters), *eyes])}->{''.join(names)}', {', '.join([inner, *ones])})"
    if len(terms) == 1 and terms[0][1] == tuple(out_labels):
        return terms[0][0]
    subscripts = ",".join([_text(ls, letters) for _, ls in terms])
    return f"np.einsum('{subscripts}->{_text(out_labels, letters)}', {', '.join([x for x, _ in terms])})"


def _text(labels: Sequence[int], letters: dict[int, str]) -> str:
    return "".join([letters[k] for k in labels])


def _of(every: Sequence[int], labels: Sequence[int]) -> list[int]:
    return [k for k in every if k in labels]


def _axes(every: Sequence[int], labels: Sequence[int]) -> str:
    return ", ".join([":" if k in labels else "None" for k in every]) or "()"


@LINE("`np.add.at`", Reduction)
def _reduction(m: NumpyModule, op: Reduction, xs: list[str], shapes: Any, shape: Any) -> str:
    parts: list[str] = []
    for relation, x, s in zip(op.relations, xs, shapes, strict=True):
        if type(relation) is Triangular:
            sizes = math.prod(s[: op.axis]), s[op.axis], math.prod(s[op.axis + 1 :])
            parts.append(f"_running({x}, {sizes}, {relation.lower}, {relation.strict})")
            continue
        rows, cols, times = [np.asarray(v) for v in relation.pairs()]
        a, n = int(np.prod(s[: op.axis], dtype=int)), relation.source.size
        rest = int(np.prod(s[op.axis + len(relation.source.box or ()) :], dtype=int))
        weight = "None" if (times == 1).all() else m.array(times)
        sizes = f"({a}, {n}, {rest}), {relation.target.size}"
        parts.append(f"_reduced({x}, {sizes}, {m.array(rows)}, {m.array(cols)}, {weight})")
    return f"np.reshape({' + '.join(parts)}, {shape})"


@LINE("`np.take`, `np.add.at`", Take, Put)
def _taken(m: NumpyModule, op: Any, xs: list[str], shapes: Any, shape: Any) -> str:
    if not op.batch and not isinstance(op, Put):
        return f"np.take({xs[0]}, np.asarray({xs[1]}).astype(np.intp), axis={op.axis})"
    wide = shape if isinstance(op, Put) else shapes[0]
    parts = wide[: op.batch], wide[op.batch : op.axis], wide[op.axis : op.axis + 1], wide[op.axis + 1 :]
    name = "_put" if isinstance(op, Put) else "_taken"
    return f"np.reshape({name}({xs[0]}, {xs[1]}, {tuple([math.prod(part) for part in parts])}), {shape})"


@LINE("a function, or one of several", Call)
def _call(m: NumpyModule, op: Call, xs: list[str], shapes: Any, shape: Any) -> str:
    names = [m.inner(p) for p in op.branches]
    if not op.fixed:
        return f"{names[0]}({', '.join(xs)})"
    return f"({', '.join(names)})[int({xs[0]})]({', '.join(xs[1:])})"


@LINE("a loop of Python's", Loop)
def _loop(m: NumpyModule, op: Loop, xs: list[str], shapes: Any, shape: Any) -> str:
    c, k = op.consts, op.carries
    parts = [f"({''.join([v + ', ' for v in part])})" for part in (xs[:c], xs[c : c + k], xs[c + k :])]
    return f"_loop({m.inner(op.body)}, {', '.join(parts)}, {op.length}, {op.reverse}, {op.keep}, {shape[k:]!r})"


_RULED: dict[str, str] = {
    **{name: f"np.linalg.{name}({{0}})" for name in ("inv", "det", "slogdet", "cholesky")},
    "extremum": "np.{title}({0}, axis={axis}, keepdims={keepdims})",
    "solve": "np.linalg.solve({0}, {1})",
    "solve_triangular": "linalg.solve_triangular({0}, {1}, lower={lower}, trans={transposed:d}, unit_diagonal={unit})",
    "solve_banded": "linalg.solve_banded(({below}, {above}), {0}, {1})",
    "eigh": "tuple(np.linalg.eigh({0}))",
    "svd": "tuple(np.linalg.svd({0}, full_matrices={full}))",
    "qr": "tuple(np.linalg.qr({0}, {mode!r}))",
    **{name: f"linalg.{name}({{0}})" for name in ("expm", "sqrtm")},
}
"""By the name of a function with a differential."""
_SINGLE = ("solve_triangular", "solve_banded", "expm", "sqrtm")
"""Of one matrix, in SciPy."""


@LINE("a function of np.linalg or scipy.linalg, an extremum", Ruled)
def _ruled(m: NumpyModule, op: Ruled, xs: list[str], shapes: Any, shape: Any) -> str:
    name, named = op.smooth.name, dict(op.parameters)
    if name == "solve" and named["transposed"]:
        xs = [f"np.swapaxes({xs[0]}, -1, -2)", xs[1]]
    if name == "solve_banded" and named["turned"]:
        below, above = named["below"], named["above"]
        xs = [f"{m.embedded(scipy_linalg._turned_band)}({xs[0]}, {below}, {above})", xs[1]]
        named |= {"below": above, "above": below}
    usual = name != "eigh" or (named["driver"] == "numpy" and named["subset"] is None)
    if name in _RULED and usual and not (name in _SINGLE and (len(shapes[0]) > 2 or named.get("at"))):
        mode = "complete" if named.get("full") else "reduced"
        return _RULED[name].format(*xs, **{"mode": mode, **named})
    if (own := m.embedded(op.smooth.array)) is not None:
        return f"{own}({', '.join([*xs, *[f'{k}={v!r}' for k, v in named.items()]])})"
    raise TraceError(f"{name} is not known in plain NumPy")


@LINE("the op; a zero annihilates what is nan", Strongly)
def _strongly(m: NumpyModule, op: Strongly, xs: list[str], shapes: Any, shape: Any) -> str:
    found = LINE.of(op.op)(m, op.op, xs, shapes, shape)
    return f"_strongly({found}, {xs[op.k]}, {op.op.smooth.mixes if isinstance(op.op, Ruled) else None})"


@LINE("`np.convolve`, `np.correlate`", Convolution, ExchangedLeg)
def _convolved(m: NumpyModule, op: Any, xs: list[str], shapes: Any, shape: Any) -> str:
    if len(shapes[0]) > 1 or len(shapes[1]) > 1:
        raise TraceError("convolutions of several rows are not known in plain NumPy")
    x, y = xs[::-1] if isinstance(op, ExchangedLeg) else xs
    if op.leg == 2:
        return f"np.convolve({x}, {y})"
    return f"np.correlate({x}, {y}, 'valid')" if op.leg == 0 else f"np.correlate({y}, {x}, 'valid')"


_HELPERS = """
def _reduced(x, sizes, size, rows, cols, times):
    taken = np.reshape(x, sizes)[:, rows]
    if times is not None:
        taken = taken * times[:, None]
    total = np.zeros((sizes[0], size, sizes[2]), np.result_type(x))
    np.add.at(total, (slice(None), cols), taken)
    return total


def _running(x, sizes, lower, strict):
    step = 1 if lower else -1
    total = np.cumsum(np.reshape(x, sizes)[:, ::step], 1)
    if strict:
        total = np.concatenate([np.zeros_like(total[:, :1]), total[:, :-1]], 1)
    return total[:, ::step]


def _places(at, sizes):
    b, p, n, q = sizes
    at = np.reshape(np.asarray(at).astype(np.intp), (b, 1, -1, 1))
    at = np.clip(np.where(at < 0, at + n, at), 0, n - 1)
    return np.arange(b)[:, None, None, None], np.arange(p)[:, None, None], at, np.arange(q)


def _taken(x, at, sizes):
    return np.reshape(x, sizes)[_places(at, sizes)]


def _put(x, at, sizes):
    total, places = np.zeros(sizes, np.result_type(x)), _places(at, sizes)
    np.add.at(total, places, np.reshape(x, np.broadcast_shapes(*[v.shape for v in places])))
    return total


def _strongly(found, given, axes):
    some = np.any(given) if axes is None else np.any(given, axis=axes, keepdims=True)
    return np.where(np.isnan(found) & ~some, 0.0, found)


def _loop(body, consts, carry, rows, length, reverse, keep, shapes):
    count, found = len(carry), []
    for t in range(length)[:: -1 if reverse else 1]:
        given = body(*consts, *carry, *[x[t] for x in rows])
        found.append((*given[count:], *(carry if keep else ())))
        carry = given[:count]
    found = found[::-1] if reverse else found
    return (*carry, *[np.stack(c) if found else np.zeros(s) for c, s in zip(list(zip(*found)) or shapes, shapes)])
"""


def write_numpy(path: Any, exported: Any) -> list[Path]:
    """Write a module with one function."""
    name = re.sub(r"\W+", "_", exported.name, flags=re.ASCII).strip("_") or "function"
    name = f"{name}_" if keyword.iskeyword(name) or name[0].isdigit() else name
    m = NumpyModule()
    names = [
        n if n.isidentifier() and not keyword.iskeyword(n) and n != "np" else f"x{i}"
        for i, n in enumerate(exported.names)
    ]
    body = m.function(exported.program, names, "_value")
    flat = [f"np.asarray({n}, float)" for n in names]
    scipy = [
        n for n in ("linalg", "special") if any([re.search(rf"(?<!\.)\b{n}\.", t) for f in m.functions for t in f])
    ]
    lines = [
        f'"""{exported.title}, for arrays of shapes {exported.inputs}."""',
        "",
        "from __future__ import annotations",
        "",
        *(["import math", ""] if any(["math." in line for f in m.functions for line in f]) else []),
        "import numpy as np",
        *([f"from scipy import {', '.join(scipy)}"] if scipy else []),
        "",
        *m.constants,
        _HELPERS,
        *["\n".join(["", *f, ""]) for f in m.functions],
        "",
        f"def {name}({', '.join(names)}):",
        f'    """{exported.title}."""',
        f"    found = {body}({', '.join(flat)})",
        f"    return {exported.shown}",
    ]
    target = Path(path)
    target = target / f"{name}.py" if target.is_dir() else target
    target.write_text("\n".join(lines) + "\n")
    return [target]
