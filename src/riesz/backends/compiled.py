"""`rz.compile`: a function as generated Python source, one for each kind of arguments.

    function ──► Program ── ordered, fused, folded ──►  "python"  numbers one by one: floats and `math`
                                                        "numpy"   a line of array code for each step; tiles along a long axis where that pays
                                                        "steps"   run step by step: programs too long to be worth a compiler's time

Generated code looks at the types and shapes of its arguments first. It gives OTHER where they are not the ones it was written for, or where Python's
floats raise and NumPy's do not; then the ordinary way is taken.
"""

from __future__ import annotations

import builtins
import keyword
import linecache
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calculus.guard import checking
from ..errors import SpaceError, VectorError
from ..programs.components import Components, components
from ..programs.cost import Cost, cost
from ..programs.fusing import ready
from ..programs.program import Program
from ..programs.scalars import Scalars
from ..spaces import Space
from ..stackless import quiet
from ..syntax.functions import KEPT, Aval, Function, Given, Record, Static, as_function, evaluated, home_of, numbers_of, own, stand_in
from ..syntax.points import argument_names
from ..syntax.trees import ONE_LEAF, unflatten
from ..terms.primitives import RULES
from .array_code import Arrays, Value, numbers
from .folded import folded
from .profile import Profile, profiled
from .scalar_code import NAMES, RAISED, Lines
from .unrolled import FLOAT, kinds, unrolled

BACKENDS = ("auto", "python", "numpy", "steps")
UNROLLED = 200
"""Up to so many operations arrays are taken apart into numbers."""
WORTH = 12
"""So many operations on floats take about the time of one on arrays."""
LONGEST = 20_000
"""Programs with more steps are run step by step: source takes some 30 µs to compile for each."""
TILED = 1 << 22
"""From how many operations on numbers in all on a program is run on tiles of a long axis."""
OTHER = object()
"""What generated code gives where it does not apply."""


class Code:
    """Generated code for one kind of arguments: `run(leaves)` gives the result, or OTHER."""

    def __init__(
        self, record: Record, program: Program, backend: str, why: str, run: Callable[[tuple[Any, ...]], Any] | None = None, source: str = ""
    ) -> None:
        self.record = record
        self.program = program
        self.backend = backend
        self.run = run
        self.source = source
        self.why = why

    @property
    def cost(self) -> Cost:
        """Operations of one run, and numbers kept."""
        return cost(self.program)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The result at array leaves of the kind this was written for."""
        if self.run is not None:
            found = self.run(tuple([_exact(x, a) for x, a in zip(leaves, self.record.avals, strict=True)]))
            if found is not OTHER:
                return found
        return self.record.wrap(evaluated(self.record, leaves))


def _exact(x: Any, aval: Aval) -> Any:
    """A leaf in the type that generated code expects."""
    if aval.shape:
        return np.asarray(x)
    return float(x) if aval.weak else aval.dtype.type(x)


class Compiled:
    """A function with generated code. Called like the function; arrays and names it closes over are taken as they were when the code was written."""

    def __init__(self, function: Function, backend: str) -> None:
        self.function = function
        self.name = self.__name__ = function.name
        self._asked = backend
        self._codes: OrderedDict[Any, Code] = OrderedDict()
        self._first: Callable[[tuple[Any, ...]], Any] = lambda args: OTHER  # of the last code written for plain arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            found = self._first(args)
            if found is not OTHER:
                return found
        given = self.function.given(args, kwargs)
        code = self._codes.get(given.key)
        if code is None:
            record = self.function.record(given)
            if home_of(record, given.arrays) is not None or not self.function.keeps(given):  # inside a function that is traced; random numbers
                return record.wrap(evaluated(record, given.arrays))
            code = self.prepare(given, record)
        return code(given.arrays)

    def start(self, given: Given) -> None:
        """Write code for arguments of a kind before they are there."""
        self.prepare(given, self.function.record(given))

    def prepare(self, given: Given, record: Record) -> Code:
        """Write code for arguments of a kind, of which there is a trace."""
        code = written(record, self._asked, names_of(self.function, given))
        self._codes[given.key] = code
        if len(self._codes) > KEPT:
            self._codes.popitem(last=False)
        if code.run is not None and not given.kwargs and not given.statics and all([t == ONE_LEAF for t in given.trees]):
            self._first = code.run
        return code

    @property
    def code(self) -> Code:
        """The code written last."""
        if not self._codes:
            raise SpaceError(f"nothing is compiled yet: call {self.name}, or give spaces or arguments, as in rz.compile(f, rz.R ** rz.seg(3))")
        return next(reversed(self._codes.values()))

    @property
    def source(self) -> str:
        """The generated source."""
        return self.code.source

    @property
    def backend(self) -> str:
        """What runs it."""
        return self.code.backend

    @property
    def cost(self) -> Cost:
        """Operations of one run, and numbers kept."""
        return self.code.cost

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """Where the time goes at some arguments: time, operations, bytes and share of the machine's peak of each step."""
        self(*args, **kwargs)
        given = self.function.given(args, kwargs)
        code = self._codes.get(given.key) or self.code
        return profiled(self.name, code.backend, code.program, numbers_of(given.arrays), lambda: self(*args, **kwargs))

    def explain(self) -> str:
        """What was chosen, and why."""
        return f"{self.name}: backend {self.code.backend!r}. {self.code.why}"

    def __repr__(self) -> str:
        return f"rz.compile({self.name})"


class Maps(Compiled):
    """What `jacobian` and `hessian` give: functions into LinearMaps, whose programs and structure are kept by the trace of f."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.function(*args, **kwargs)

    def start(self, given: Given) -> None:
        """Nothing is written."""

    @property
    def code(self) -> Code:
        raise SpaceError(f"{self.name} gives LinearMaps, each with its own program; there is no code, nor a cost, for all of them")

    @property
    def backend(self) -> str:
        return "steps"

    def explain(self) -> str:
        return f"{self.name}: backend 'steps'. It gives LinearMaps, whose programs and structure are derived once."


def compile(f: Any, *spaces_or_arguments: Any, backend: str = "auto") -> Compiled:
    """A function as generated code: f is a Python function, a combinator, or what grad, value_and_grad, … give.

    Code is written at once for the kind of arguments given, as spaces or as examples, and for other kinds when they turn up.
    `g.source` is the code, `g.explain()` says what was chosen and why.

    >>> import riesz as rz
    >>> g = rz.compile(rz.grad(lambda x, y: x * y + y**2), 1.0, 2.0)
    >>> g(3.0, 5.0), g.backend
    (5.0, 'python')
    """
    if backend not in BACKENDS:
        raise VectorError(f"a backend is one of {', '.join(map(repr, BACKENDS))}; got {backend!r}")
    if not callable(f):
        raise SpaceError(f"compile takes a function: a Python function, a combinator, or what rz.grad(f) gives; got {f!r}")
    g = (Maps if getattr(f, "gives_maps", False) else Compiled)(f.function if isinstance(f, Compiled) else as_function(f), backend)
    if spaces_or_arguments:
        given = g.function.given(tuple([stand_in(s) if isinstance(s, Space) else s for s in spaces_or_arguments]), {})
        g.start(given)
    return g


def names_of(function: Function, given: Given) -> list[str]:
    """A name for each array leaf."""
    known = argument_names(function.function, len(given.owners))
    found: list[str] = []
    for i, owned in enumerate(given.owners):
        name = known[i] if i < len(known) and known[i].isidentifier() else f"x{i}"
        name = f"{name}_" if name in _TAKEN or re.search(r"^[tcir]\d+$|_\d+$", name) else name  # t3, x_0 are names that code makes
        found.extend([name] if len(owned) == 1 else [f"{name}_{k}_" for k in range(len(owned))])
    return found if len(set(found)) == len(found) else [f"x{k}_" for k in range(len(found))]


_CALLED = {"OTHER", "RAISED", "args", "array", "checking", "dense", "empty", "float", "found", "len", "ndarray", "number", "own", "tiles", "type"}
_TAKEN = {*NAMES, *RULES, *_CALLED}


@quiet
def written(record: Record, asked: str, names: list[str]) -> Code:
    """Code for a trace, by the backend asked for."""
    program = ready(record.program)
    steps = len(program)
    native = all([a.dtype.isnative for a in (*record.avals, *record.outputs)])
    if asked == "steps" or steps > LONGEST or record.captured or not native:
        why = f"{steps:,} steps are more than the {LONGEST:,} that source is written for." if steps > LONGEST else "It is run step by step."
        return Code(record, program, "steps", why)
    program = folded(program)
    given = [float if not a.shape and a.dtype == FLOAT else a.dtype for a in record.avals]
    single = all([s == () for s in program.shapes])
    if asked in ("auto", "python"):
        found = _scalar_code(record, program, given, names, LONGEST if single else UNROLLED if asked == "auto" else 10 * UNROLLED)
        if found is not None and (single or asked == "python" or found[0] <= WORTH * steps):
            return found[1]
        if asked == "python":
            raise VectorError(
                f"{record.name} has no code on single numbers: it has more than {10 * UNROLLED:,} operations on the components of its arrays, "
                "numbers other than float64, or steps without such a form; use backend='numpy' or 'auto'"
            )
    return _tiled_code(record, program, names) if _long(program) else _array_code(record, program, given, names)


# -- numbers one by one -----------------------------------------------------------------------------------


def _scalar_code(record: Record, program: Program, given: list[Any], names: list[str], most: int) -> tuple[int, Code] | None:
    """How many operations on floats there are, and the code."""
    if any([a.dtype != FLOAT for a in record.outputs]):
        return None
    parts = unrolled(program, kinds(program, given), most)
    if parts is None:
        return None
    outs = [parts.small(s) for s in program.outputs]
    number_of = {slot: k for k, slot in enumerate(program.inputs)}
    source, run = scalar_function(
        record.name, record.avals, names, parts.graph, outs, lambda texts, space: _result(record, texts, space), number_of.__getitem__
    )
    what = "All values are numbers" if all([s == () for s in program.shapes]) else "Its arrays are small enough to be taken apart"
    count = parts.graph.count
    return count, Code(record, program, "python", f"{what}: {count} operations on Python floats.", run, source)


def scalar_function(
    title: str,
    avals: Sequence[Aval],
    names: list[str],
    graph: Scalars,
    outs: Sequence[Any],
    present: Callable[[list[str], dict[str, Any]], str],
    number_of: Callable[[int], int] = int,
) -> tuple[str, Any]:
    """Source and function for expressions of single numbers: `outs` are arrays of nodes; `number_of`: the argument a leaf is read from."""
    code = Lines(
        graph,
        [int(x) for nodes in outs for x in np.ravel(nodes)],
        lambda op: f"{names[number_of(op.slot)]}_{op.at}" if avals[number_of(op.slot)].shape else names[number_of(op.slot)],
    )
    read: list[list[int]] = [[] for _ in avals]
    for op in code.loads:
        read[number_of(op.slot)].append(op.at)
    lines = [line for n, a, at in zip(names, avals, read, strict=True) if at for line in _read(n, a, at)]
    lines.extend(code.lines)
    texts: list[str] = []
    for j, nodes in enumerate(outs):
        shape = np.shape(nodes)
        flat = [code.text(int(x)) for x in np.ravel(nodes)]
        if not shape:
            texts.append(flat[0])
            continue
        if len(flat) <= 8:
            lines.append(f"r{j} = empty({shape})")
            lines.extend([f"r{j}[{', '.join(map(str, at))}] = {text}" for at, text in zip(np.ndindex(*shape), flat, strict=True)])
        else:
            lines.append(f"r{j} = array([{', '.join(flat)}]){'' if len(shape) == 1 else f'.reshape({shape})'}")
        texts.append(f"r{j}")
    space = code.names | {"empty": np.empty, "array": np.array, "RAISED": RAISED}
    body = [*lines, f"return {present(texts, space)}"]
    guarded = ["try:", *[f"    {line}" for line in body], "except RAISED:", "    return OTHER"]
    return _function(title, avals, names, guarded, space)


def _read(name: str, aval: Aval, at: list[int]) -> list[str]:
    """The components of an argument as variables."""
    if not aval.shape:
        return [] if aval.weak else [f"{name} = float({name})"]
    if 2 * len(at) < math.prod(aval.shape):
        return [f"{name}_{i} = {name}.item({i})" for i in sorted(at)]
    flat = "" if len(aval.shape) == 1 else ".ravel()"
    return [f"{', '.join([f'{name}_{i}' for i in range(math.prod(aval.shape))])}, = {name}{flat}.tolist()"]


# -- arrays -----------------------------------------------------------------------------------------------


def _array_code(record: Record, program: Program, given: list[Any], names: list[str]) -> Code:
    inputs = [Value(n, a.shape, kind) for n, a, kind in zip(names, record.avals, given, strict=True)]
    code = Arrays(program, inputs)
    lines = [f"{n} = float({n})" for n, a in zip(names, record.avals, strict=True) if not a.shape and a.dtype == FLOAT and not a.weak]
    lines.extend(code.lines)
    texts: list[str] = []
    space, seen = code.names, set[str]()
    for j, (v, aval) in enumerate(zip(code.outputs, record.outputs, strict=True)):
        if v.kind is float and not aval.shape and aval.dtype == FLOAT:
            texts.append(v.text)
        elif v.fresh and v.kind == aval.dtype and v.text not in seen and aval.shape:
            texts.append(v.text)
            seen.add(v.text)
        else:
            space[f"aval_{j}"], space["own"] = aval, own
            wide = v.text if not v.repeated else f"{code.wide}({v.text}, {v.shape})"
            texts.append(f"own({wide}, aval_{j}, True)")
    source, run = _function(record.name, record.avals, names, [*lines, f"return {_result(record, texts, space)}"], space)
    called = f" {len(code.called)} run as in the interpreter: {', '.join(dict.fromkeys(code.called))}." if code.called else ""
    return Code(record, program, "numpy", f"{len(program)} steps on arrays, a line for each.{called}", run, source)


def _long(program: Program) -> Components | None:
    """The program on tiles of a long axis, where it is large and has several steps to keep in the cache."""
    known = program.__dict__
    if "_tiled" not in known:
        large = max([numbers(s) for s in program.shapes], default=0)
        worth = len(program) >= 4 and large * len(program) >= TILED and all([program.shapes[s] for s in program.outputs])
        found = components(program, exact=True) if worth and program.outputs else None
        known["_tiled"] = found if found is not None and found.size >= 6 else None
    return known["_tiled"]


def _tiled_code(record: Record, program: Program, names: list[str]) -> Code:
    parts = _long(program)
    assert parts is not None

    def tiles(*xs: Any) -> list[Any]:
        return parts.run(xs, backend="numpy")

    space: dict[str, Any] = {f"aval_{j}": a for j, a in enumerate(record.outputs)}
    space.update(tiles=tiles, own=own)
    texts = [f"own(found[{j}], aval_{j})" for j in range(len(record.outputs))]
    lines = [f"found = tiles({', '.join(names)})", f"return {_result(record, texts, space)}"]
    source, run = _function(record.name, record.avals, names, lines, space)
    why = f"{parts.size} operations at each of {parts.length:,} positions of a long axis: run on tiles that stay in the cache."
    return Code(record, program, "numpy", why, run, f"{source}\n# on tiles:\n{parts.source}")


# -- what all code begins and ends with -------------------------------------------------------------------


def _result(record: Record, texts: Sequence[str], space: dict[str, Any]) -> str:
    """The result in its containers."""
    rest = iter(texts)
    leaves: list[str] = []
    for r in record.results:
        if isinstance(r, Static):
            name = f"static_{len(space)}"
            space[name] = r.value
            leaves.append(name)
        else:
            leaves.append(next(rest))

    def make(node: Any, parts: list[Any]) -> str:
        inside = ", ".join([str(p) for p in parts])
        if node.form is None:
            return f"({inside},)" if len(parts) == 1 else f"({inside})"
        name = f"make_{len(space)}"
        space[name] = node.form.make
        return f"{name}([{inside}])"

    return str(unflatten(record.tree, leaves, make))


def _function(title: str, avals: Sequence[Aval], names: list[str], body: list[str], space: dict[str, Any]) -> tuple[str, Any]:
    """A function that checks its arguments and runs some lines."""
    name = "".join([c if c.isalnum() and c.isascii() else "_" for c in title]).strip("_")
    name = name if name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN else f"f_{name}"
    space |= {"OTHER": OTHER, "checking": checking, "ndarray": np.ndarray}
    lines = [f"if len(args) != {len(names)} or checking():", "    return OTHER"]
    if names:
        lines.append(f"{', '.join(names)}, = args" if len(names) == 1 else f"{', '.join(names)} = args")
    for n, a in zip(names, avals, strict=True):
        kind = "float" if a.weak else f"type_{a.dtype.name}"
        space[f"type_{a.dtype.name}"], space[f"dtype_{a.dtype.name}"] = a.dtype.type, np.dtype(a.dtype.name)
        wrong = (
            f"type({n}) is not ndarray or {n}.dtype is not dtype_{a.dtype.name} or {n}.shape != {a.shape}" if a.shape else f"type({n}) is not {kind}"
        )
        lines.extend([f"if {wrong}:", "    return OTHER"])
    source = "\n".join([f"def {name}(args):", *[f"    {line}" for line in [*lines, *body]]])
    file = f"<riesz {name} {id(space)}>"
    exec(builtins.compile(source, file, "exec"), space)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return source, space[name]
