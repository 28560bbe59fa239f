"""Functions from text, "x, W, b -> tanh(W @ x + b)": a small grammar, read by Python's parser and never evaluated by
Python.

    text       ::= parameters "->" result        parameters: names, with or without parentheses around them
    result     ::= value | result "," …          several results are a tuple
    value      ::= parameter | number | pi | e | inf | [value, …] | value[index] | function(value, …, option=constant)
                 | value + - * / // % ** @ value | + - value | value < <= > >= == != value …
                 | value and or value | not value

Each part of the text becomes a `Step`: a NumPy function and where its arguments are. What may be written is what
`_Reader` has a case for and what is in the table of functions; anything else is an `ExpressionError` that shows the
place. Numbers are computed when the text is read.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import keyword
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Generator, Sequence
from functools import reduce
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from ..errors import ExpressionError
from ..runtime.stackless import solve
from .text_limits import LIMIT, MOST_AXES, Limit, TextMeter
from .text_table import CONSTANTS, FUNCTIONS, NO_NODE, NO_OPERATOR, OPERATORS, TextFunction

Function = Callable[..., Any]
Options = dict[str, Any] | None
Place = tuple[int, int]
"""Where in the text: the first character, and the one after the last."""

_MODULES = {"np", "numpy", "jnp", "math", "scipy", "rz", "riesz", "torch", "jax"}
_LARGEST = 2**63


class Known(NamedTuple):
    """A value known when the text is read."""

    value: Any


Operand = int | Known
"""What a step works on: the number of an earlier value (the parameters come first), or a known one."""


class TextStep(NamedTuple):
    """One operation: a function, what it works on, its options, and where it is written."""

    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    options: dict[str, Any]
    place: Place


class Expression:
    """The function of a text. It works on NumPy arrays, floats and traced arrays, by position or by name.

    Traced, every step is counted from shapes alone, as soon as it is written; a text that would exceed its limit stops
    there, before anything is computed. Traced first is how `rz.function` runs a text.
    """

    def __init__(
        self, text: str, parameters: Sequence[str], steps: list[TextStep], result: Operand, limit: Limit | None = LIMIT
    ) -> None:
        self.text, self.limit, self.parameters = text, limit, tuple(parameters)
        self._steps, self._result = steps, result
        self.__name__ = self.__qualname__ = " ".join(text.split())
        self.__doc__ = f"The function {self.__name__}."
        named = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters]
        self.__signature__ = inspect.Signature(named)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        values = self._bound(args, named)
        meter = None if self.limit is None else TextMeter(self.limit, values)
        for step in self._steps:
            try:
                values.append(step.function(*[_value(o, values) for o in step.operands], **step.options))
            except Exception as problem:
                problem.add_note("in the text\n" + shown(self.text, step.place))
                raise
            if meter is not None and (excess := meter.excess(values[-1])):
                _refuse(self.text, step.place, excess)
        return _value(self._result, values)

    def _bound(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """One value per parameter."""
        names = self.parameters
        rest = names[len(args) :]
        if len(args) <= len(names) and sorted(rest) == sorted(named):
            return [*args, *[named[p] for p in rest]]
        takes = ", ".join([f"takes {len(names)} argument{'s' if len(names) != 1 else ''}", *names])
        given = ", ".join([*([f"{len(args)} by position"] if args or not named else []), *[f"{k}=…" for k in named]])
        raise TypeError(f"{self.__name__}: {takes}; got {given}")

    def __repr__(self) -> str:
        return f"<the function {self.__name__}>"

    def __reduce__(self) -> Any:
        return parse, (self.text, self.limit)


def _value(operand: Operand, values: list[Any]) -> Any:
    return operand.value if type(operand) is Known else values[cast(int, operand)]


# -- errors that show the place -----------------------------------------------------------------------------


def shown(text: str, place: Place) -> str:
    """The line of the text that a place is in, and carets under it."""
    start = min(max(place[0], 0), len(text))
    lines = text.splitlines(keepends=True) or [""]
    while len(lines) > 1 and start >= len(lines[0]):
        start -= len(lines.pop(0))
    line = lines[0].rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    start = min(start, len(line))
    count = max(min(place[1] - place[0], len(line) - start), 1)
    first, last = max(start - 60, 0), start + 80
    before = "…" if first else ""
    clipped = before + line[first:last] + ("…" if last < len(line) else "")
    pad = "".join([c if c == "\t" else " " * _width(c) for c in before + line[first:start]])
    carets = "".join(["^" * _width(c) for c in line[start : min(start + count, last)]]) or "^"
    return f"    {''.join([c if c.isprintable() or c == chr(9) else '�' for c in clipped])}\n    {pad}{carets}"


def _width(c: str) -> int:
    """How many columns a character takes."""
    return 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _refuse(text: str, place: Place, message: str) -> NoReturn:
    raise ExpressionError(f"{message}\n{shown(text, place)}") from None


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:37] + "…"


def _closest(name: str, known: Sequence[str]) -> str:
    if len(name) > 40 or len(known) > 1000:
        return ""
    swapped = [k for k in known if sorted(k) == sorted(name)]
    found = swapped or difflib.get_close_matches(name, known, 1, 0.65)
    return f"; did you mean {found[0]}?" if found else ""


# -- reading ----------------------------------------------------------------------------------------------


def parse(text: str, limit: Limit | None = LIMIT) -> Expression:
    """The function a text stands for.

    >>> parse("x, y -> x ** 2 + y")(3.0, 0.0)
    9.0
    >>> parse("x -> sine(x)")
    Traceback (most recent call last):
        ...
    riesz.errors.ExpressionError: unknown function sine; did you mean sin?
        x -> sine(x)
             ^^^^
    """
    for character, what in (("#", "comments are not part of a text"), ("\0", "a null character is not part of a text")):
        if character in text:
            _refuse(text, (text.index(character), text.index(character) + 1), what)
    arrow = text.find("->")
    if arrow < 0:
        usage = "a function in text names its parameters and gives an expression, as in 'x, y -> x * sin(y)'"
        _refuse(text, (0, len(text)), f"{usage}; there is no -> here")
    parameters = _parameters(text, arrow)
    reader = _Reader(text, parameters, arrow + 2)
    result = solve((reader.tree, "result"), reader.read)
    return Expression(text, parameters, reader.steps, result, limit)


def _parameters(text: str, end: int) -> list[str]:
    """The names before the arrow."""
    start = len(text[:end]) - len(text[:end].lstrip())
    end = len(text[:end].rstrip()) if text[:end].strip() else start
    if text[start:end].startswith("(") and text[start:end].endswith(")"):
        start, end = start + 1, end - 1
    inside = text[start:end]
    if not inside.strip():
        return []
    found: dict[str, None] = {}
    at = start
    parts = inside.split(",")
    for part in parts if parts[-1].strip() else parts[:-1]:
        name = unicodedata.normalize("NFKC", part.strip())
        first = at + len(part) - len(part.lstrip())
        place = (first, first + max(len(part.strip()), 1))
        if not name.isidentifier() or keyword.iskeyword(name):
            what = "a parameter is a name such as x or W_1" if name else "a parameter is missing"
            what = f"{name} is a word of Python" if keyword.iskeyword(name) else what
            _refuse(text, place, f"{what}; before -> there are names with commas between them")
        if name in found:
            _refuse(text, place, f"there are two parameters {_short(name)}")
        found[name] = None
        at += len(part) + 1
    return list(found)


class _Reader:
    """Reads the tree of an expression into steps. Its `read` is a rule for `solve`, so depth costs no stack."""

    def __init__(self, text: str, parameters: list[str], start: int) -> None:
        self.text = text
        self.parameters = {name: i for i, name in enumerate(parameters)}
        self.steps: list[TextStep] = []
        source = text[start:].translate({10: " ", 13: " "})  # one expression, on as many lines as one likes
        self.start = start + len(source) - len(source.lstrip())
        self.source = source.strip()
        self._columns: list[int] | None = None
        if not self.source:
            _refuse(text, (start, start), "there is no expression after ->")
        self.tree = self._tree()

    def _tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.source, mode="eval").body
        except SyntaxError as problem:
            if "nested" in problem.msg:
                self._too_deep()
            if problem.msg == "invalid syntax" and not 0 < (problem.offset or 0) <= len(self.source):
                message, first, last = "it ends too early", len(self.source), len(self.source)
            else:
                message, first, last = problem.msg, max((problem.offset or 1) - 1, 0), (problem.end_offset or 0) - 1
            place = (self.start + first, self.start + max(last, first + 1))
        except (RecursionError, MemoryError):
            self._too_deep()
        except UnicodeEncodeError as problem:
            message, place = "a character that is none", (self.start + problem.start, self.start + problem.end)
        _refuse(self.text, place, f"not an expression: {message}")

    def _too_deep(self) -> NoReturn:
        advice = "this expression is nested too deeply for Python's parser; write it as a Python function"
        _refuse(self.text, (self.start, self.start + 1), advice)

    def place(self, node: Any) -> Place:
        """Where a node is written: Python counts bytes, people count characters."""
        first, last = int(node.col_offset), int(node.end_col_offset)
        if not self.source.isascii():
            if self._columns is None:
                self._columns = [i for i, c in enumerate(self.source) for _ in c.encode()] + [len(self.source)]
            first, last = self._columns[first], self._columns[last]
        return self.start + first, self.start + last

    def refuse(self, node: Any, message: str) -> NoReturn:
        """An error at a node."""
        _refuse(self.text, self.place(node), message)

    def step(self, node: Any, function: Function, operands: Sequence[Operand], options: Options = None) -> Operand:
        """Write one step; its value is the next."""
        self.steps.append(TextStep(function, tuple(operands), options or {}, self.place(node)))
        return len(self.parameters) + len(self.steps) - 1

    def computed(self, node: Any, function: Function, operands: Sequence[Operand], options: Options = None) -> Operand:
        """A step, or its value where all numbers are known."""
        known = [o.value for o in operands if isinstance(o, Known)]
        if len(known) < len(operands):
            return self.step(node, function, operands, options)
        whole = function is OPERATORS[ast.Pow] and all([isinstance(k, int) for k in known])
        if whole and known[0].bit_length() * known[1] > 80 and known[0] not in (-1, 0, 1):
            self._too_large(node)
        try:
            with np.errstate(all="ignore"):
                value = function(*known, **(options or {}))
        except OverflowError:
            self._too_large(node)
        except ZeroDivisionError:
            self.refuse(node, "division by zero")
        except Exception as problem:
            self.refuse(node, f"this cannot be computed: {problem}")
        single = isinstance(value, (np.generic, np.ndarray)) and value.size == 1
        return self.number(node, value.item() if single else value)

    def number(self, node: Any, value: Any) -> Known:
        """A real number, not too large for an integer of NumPy."""
        if isinstance(value, complex) or not isinstance(value, (bool, int, float)):
            self.refuse(node, "this is not a real number")
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            self._too_large(node)
        return Known(value)

    def _too_large(self, node: Any) -> NoReturn:
        self.refuse(node, "this number is too large; write it as a float, such as 1e30")

    # -- the cases ------------------------------------------------------------------------------------

    def read(self, node: Any, role: str) -> Generator[Any, Any, Any]:
        """The operand of a node. Its role: a value, a result (tuples too), an option (a constant), an index, the parts
        of a display."""
        match node:
            case ast.Tuple() | ast.List() if role == "parts":
                return self.step(node, _parts, (yield from self._each(node.elts)))
            case ast.Tuple(elts=[_, *_]) if role == "result":
                return self.step(node, _together, (yield from self._each(node.elts, "result")))
            case _ if role == "option":
                return (yield from self._option(node))
            case _ if role == "index":
                return (yield from self._index(node))
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                return self._constant(node)
            case ast.BinOp():
                left: Operand = yield node.left, "value"
                right: Operand = yield node.right, "value"
                return self.computed(node, self._operator(node, node.op), (left, right))
            case ast.UnaryOp():
                inside: Operand = yield node.operand, "value"
                return self.computed(node, self._operator(node, node.op), (inside,))
            case ast.BoolOp():
                found: list[Operand] = yield from self._each(node.values)
                return self.computed(node, _Chain((self._operator(node, node.op),) * (len(found) - 1), False), found)
            case ast.Compare():
                functions = tuple([self._operator(node, op) for op in node.ops])
                found = yield from self._each([node.left, *node.comparators])
                return self.computed(node, functions[0] if len(functions) == 1 else _Chain(functions, True), found)
            case ast.Subscript():
                inside = yield node.value, "value"
                key: Known = yield node.slice, "index"
                if isinstance(inside, Known):
                    self.refuse(node, "a number has no components")
                return self.step(node, operator.getitem, (inside, key))
            case ast.List():
                return (yield from self._list(node))
            case ast.Call():
                return (yield from self._call(node))
            case ast.Attribute(attr="T") if not self._is_module(node.value):
                inside = yield node.value, "value"
                if isinstance(inside, Known):
                    self.refuse(node, "a number has no transpose")
                return self.step(node, np.transpose, (inside,))
            case ast.Attribute():
                self._attribute(node)
            case _:
                self.refuse(node, NO_NODE.get(cast(Any, type(node)), f"{type(node).__name__} is not known here"))

    def _each(self, nodes: Sequence[Any], role: str = "value") -> Generator[Any, Any, list[Any]]:
        """What some nodes are, one after the other."""
        found: list[Any] = []
        for node in nodes:
            found.append((yield node, role))
        return found

    def _operator(self, node: Any, op: ast.AST) -> Callable[..., Any]:
        if type(op) not in OPERATORS:
            self.refuse(node, NO_OPERATOR.get(type(op), f"the operator {type(op).__name__} is not known here"))
        return OPERATORS[type(op)]

    def _name(self, node: ast.Name) -> Operand:
        name = node.id
        if name in self.parameters:
            return self.parameters[name]
        if name in CONSTANTS:
            return Known(CONSTANTS[name])
        if name in FUNCTIONS:
            self.refuse(node, f"{name} is a function: write {name}(…)")
        known = [*self.parameters, *CONSTANTS]
        shown = known if len(known) <= 12 else [*known[:8], "…", *CONSTANTS]
        guess = _closest(name, known) or f"; known here are {', '.join(shown)} and functions such as sin(…)"
        self.refuse(node, f"unknown name {_short(name)}{guess}")

    def _constant(self, node: ast.Constant) -> Known:
        value: Any = node.value
        if isinstance(value, (str, bytes)):
            self.refuse(node, 'strings are not known here; the labels of einsum("ij,j->i", A, x) are the only one')
        if value is Ellipsis:
            self.refuse(node, "… belongs inside x[…]")
        if value is None or isinstance(value, bool):
            self.refuse(node, f"{value} is not a number; it can be the value of an option, as in keepdims=True")
        if isinstance(value, complex):
            self.refuse(node, "complex numbers are not supported: use the real and imaginary parts as two parameters")
        return self.number(node, value)

    def _list(self, node: ast.List) -> Generator[Any, Any, Operand]:
        """[a, b] is np.stack; its numbers are floats."""
        if not node.elts:
            self.refuse(node, "an empty list has no shape; write the numbers inside")
        return self.step(node, _stacked, _floats((yield from self._each(node.elts))))

    def _option(self, node: Any) -> Generator[Any, Any, Known]:
        """A constant: a number, True, False, None, or a tuple of them."""
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool)):
            return Known(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            self._axes(node, node.elts)
            return Known(tuple([part.value for part in (yield from self._each(node.elts, "option"))]))
        operand: Operand = yield node, "value"
        if not isinstance(operand, Known):
            self.refuse(node, "an option of a function is a constant, such as axis=0 or keepdims=True")
        return operand

    def _index(self, node: Any) -> Generator[Any, Any, Known]:
        """An integer, a slice, …, None, a list of integers, or a tuple of those."""
        match node:
            case ast.Slice():
                ends: list[Any] = []
                for part in (node.lower, node.upper, node.step):
                    absent = part is None or (isinstance(part, ast.Constant) and part.value is None)
                    ends.append(None if absent else self._integer(part, (yield part, "value")))
                if ends[2] == 0:
                    self.refuse(node.step, "the step of a slice cannot be 0")
                return Known(slice(*ends))
            case ast.Constant(value=value) if value is None or value is Ellipsis:
                return Known(value)
            case ast.Tuple():
                self._axes(node, node.elts)
                return Known(tuple([key.value for key in (yield from self._each(node.elts, "index"))]))
            case ast.List(elts=[_, *_]):
                places = yield from self._each(node.elts)
                return Known([self._integer(part, place) for part, place in zip(node.elts, places, strict=True)])
            case _:
                return Known(self._integer(node, (yield node, "value")))

    def _integer(self, node: Any, operand: Operand) -> int:
        if not isinstance(operand, Known) or type(operand.value) is not int:
            kinds = "an integer, a slice such as 1:, …, None, a list of integers, or several with commas between them"
            self.refuse(node, f"an index is a constant: {kinds}")
        return operand.value

    def _is_module(self, node: ast.expr) -> bool:
        """Whether this is np or another module, which texts do not name."""
        return isinstance(node, ast.Name) and node.id in _MODULES and node.id not in self.parameters

    def _attribute(self, node: ast.Attribute) -> NoReturn:
        name = node.attr
        if self._is_module(node.value):
            hint = "functions are written without the name of a module"
            hint = f"write {name}" if name in FUNCTIONS or name in CONSTANTS else hint
        elif name == "mT":
            hint = "write x.T, or transpose(x, axes)"
        else:
            hint = "what can be done with a value is written as a function of it, such as sum(x)"
            hint = f"write {name}(x)" if name in FUNCTIONS else hint
        self.refuse(node, f"attributes (.{_short(name)}) are not known here; {hint}")

    def _call(self, node: ast.Call) -> Generator[Any, Any, Operand]:
        row = self._function(node)
        name = cast(ast.Name, node.func).id
        for part in node.args:
            if isinstance(part, ast.Starred):
                self.refuse(part, NO_NODE[ast.Starred])
        given, leading = list(node.args), []
        if row.labels:
            leading = [self._labels(given.pop(0) if given else node)]
        count = min(len(given), row.most)
        extra = given[count:]
        if count < row.least or len(extra) > (len(row.options) if row.by_position else 0):
            self.refuse(node, f"{name} is written {row.usage(name)}{row.advice}")
        found: list[Operand] = [*leading]
        for i, part in enumerate(given[:count]):
            several = row.sequence and i == 0 and isinstance(part, (ast.List, ast.Tuple))
            found.append((yield part, "parts" if several else "value"))
        options: dict[str, Any] = {}
        for key, part in (*zip(row.options, extra, strict=False), *[(k.arg, k.value) for k in node.keywords]):
            if key is None:
                self.refuse(part, "** before an argument is not known here; write the options one by one")
            if key not in row.options or key in options:
                what = f"{name} has no option {_short(key)}{_closest(key, row.options)}"
                what = f"{name} is given {key} twice" if key in options else what
                self.refuse(part, f"{what}; it is written {row.usage(name)}")
            options[key] = (yield part, "option").value
            if key in ("axis", "axes") and isinstance(options[key], int) and abs(options[key]) > MOST_AXES:
                self.refuse(part, f"an array has at most {MOST_AXES} axes; {key} is more here")
        for key in row.options[: row.required]:
            if key not in options:
                self.refuse(node, f"{name} needs {key}: {row.usage(name)}")
        if not row.elementwise:
            return self.step(node, row.function, found, options)
        known = all([isinstance(o, Known) for o in found])
        return self.computed(node, row.function, _floats(found) if known else found, options)

    def _function(self, node: ast.Call) -> TextFunction:
        function = node.func
        if isinstance(function, ast.Attribute):
            self._attribute(function)
        if not isinstance(function, ast.Name):
            self.refuse(function, "only functions by name can be called, such as sin(x)")
        name = function.id
        if name in self.parameters or name in CONSTANTS:
            what = "a parameter" if name in self.parameters else "a number"
            self.refuse(function, f"{name} is {what}, not a function; a product is written {name} * (…)")
        if name not in FUNCTIONS:
            guess = _closest(name, list(FUNCTIONS))
            guess = guess or "; docs/coverage.md lists what riesz knows, as Python functions do"
            self.refuse(function, f"unknown function {_short(name)}{guess}")
        return FUNCTIONS[name]

    def _labels(self, node: Any) -> Known:
        """The labels of einsum."""
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z., ]*(->[A-Za-z. ]*)?", text):
            self.refuse(node, 'einsum starts with a string of labels, as in einsum("ij,j->i", A, x)')
        for labels in re.split(",|->", text):
            self._axes(node, labels.strip())
        return Known(text)

    def _axes(self, node: Any, entries: Sequence[Any]) -> None:
        """Entries that stand for axes: there are not more of them than an array can have."""
        if len(entries) > MOST_AXES:
            self.refuse(node, f"there are {len(entries)} entries here, but an array has at most {MOST_AXES} axes")


# -- what steps do that is not a function of NumPy ----------------------------------------------------------


class _Chain:
    """a < b < c, or a and b and c: neighbours compared, and all of it together."""

    def __init__(self, functions: tuple[Function, ...], pairs: bool) -> None:
        self.functions, self.pairs = functions, pairs

    def __call__(self, *xs: Any) -> Any:
        if self.pairs:
            return reduce(np.logical_and, (f(xs[i], xs[i + 1]) for i, f in enumerate(self.functions)))
        return reduce(lambda found, step: step[0](found, step[1]), zip(self.functions, xs[1:], strict=True), xs[0])


def _floats(operands: Sequence[Operand]) -> list[Operand]:
    """The numbers among some operands as floats."""
    return [Known(float(o.value)) if isinstance(o, Known) else o for o in operands]


def _parts(*xs: Any) -> list[Any]:
    return list(xs)


def _together(*xs: Any) -> tuple[Any, ...]:
    return xs


def _stacked(*xs: Any) -> Any:
    return np.stack(xs)
