"""What steps do to numbers, where `programs/axis/along.py` does not say: extrema, shares, choices, small matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...ops.op import Shape
from ...ops.opaque import Discrete, Ruled, Strongly, anywhere
from ...programs.axis.scalars import ONE, ZERO, Fixed, Operation, convert
from ...terms.primitives import RULES
from ...tracing.rules.reductions import shares
from ..python.unrolled import WholeNodes
from .computed_positions import argument, order
from .small_matrices import MATRICES
from .statements import Blocked

NAMES = {"ln": "log", "root": "sqrt", "pow": "power", "convert": "number", "abs": "absolute"}
PLAIN = (
    *("add", "subtract", "multiply", "divide", "negative", "sqrt", "power", "absolute", "maximum", "minimum", "number"),
    *("exp", "log", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
    *("arctanh", "expm1", "log1p", "exp2", "log2", "log10", "cbrt", "arctan2", "hypot", "erf", "erfc", "gammaln"),
    *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isfinite", "where", "plus"),
    *("logical_and", "logical_or", "logical_not", "logical_xor", "floor", "ceil", "trunc", "rint", "fmod", "copysign"),
)
"""What both targets can print."""
_KNOWN = {*PLAIN}
_BITS = {
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
    "invert": "logical_not",
}
_WHOLE = {
    *("add", "subtract", "maximum", "minimum", "clip", "_number", "_same", "where", "as_type", "absolute", "negative"),
    *("multiply", "remainder", "floor_divide", "_wrap", "max", "amax", "min", "amin", "argmax", "argmin", "_argsort"),
    *("sum", "count_nonzero", "_order_or_nan", "power", "square"),
}
"""What whole numbers stay whole numbers under, as floats of 64 bits too."""
_PLACES = ("argmax", "argmin", "_argsort", "_order_or_nan", "_find", "_interval", "sum", "count_nonzero")
"""What gives positions, or counts."""
EXACT = 1 << 53
"""Floats hold whole numbers up to this one exactly."""


def form_name(op: Operation) -> str:
    """The name of an operation that both targets can print."""
    name = NAMES.get(op.name, op.name)
    rule = RULES.get(op.name)
    ours = rule is not None and op.function in (rule.array, rule.scalar)
    numpy = getattr(np, name, None) is op.function or name in ("where", "number")
    special = name in ("erf", "erfc", "gammaln", "plus")
    if name not in _KNOWN or op.named or (op.more and name != "number") or not (ours or numpy or special):
        raise Blocked(f"the function {op.name}")
    return name


def exact(x: Any) -> bool:
    """Whether floats hold whole numbers exactly."""
    return bool(np.max(x, initial=0) <= EXACT and np.min(x, initial=0) >= -EXACT)


def _op(name: str) -> Operation:
    return Operation(name, getattr(np, name))


class NumberForms(WholeNodes):
    """Nodes of steps on numbers. `letters`: the kinds of slots, f, i or b; `at`: the slot that is written."""

    letters: list[Any]
    at: int

    def numbers(self, x: Any) -> Any:
        """Anything as nodes."""
        return x

    def unrolled(self, op: Any, xs: list[Any], shape: Shape) -> Any:
        """The nodes of a step."""
        if isinstance(op, Strongly):
            return self._strongly(op, xs, shape)
        if type(op) is Discrete and (op.shaped is not None or "axis" in dict(op.parameters)):
            return self._discrete(op, xs, shape)
        return super().unrolled(op, xs, shape)

    # -- functions of numbers ----------------------------------------------------------------------------

    def apply(self, name: str, *nodes: int) -> int:
        """A function by its name in NumPy."""
        return self.graph.apply(_op(name), nodes)

    def either(self, nodes: Sequence[int]) -> int:
        """Whether one of some truths holds."""
        found = nodes[0]
        for x in nodes[1:]:
            found = self.apply("logical_or", found, x)
        return found

    def _function(self, op: Any) -> Callable[[tuple[int, ...]], int]:
        if type(op) is not Discrete:
            return super()._function(op)
        graph, name, parameters = self.graph, op.function.__name__, dict(op.parameters)
        match name:
            case "_same":
                return lambda nodes: nodes[0]
            case "_number":
                return lambda nodes: graph.select(nodes[0], graph.fixed(0.0), ONE)
            case "as_type":
                return self._converted(np.dtype(parameters["dtype"]))
            case "_wrap":
                n = graph.fixed(float(parameters["n"]))
                return lambda nodes: graph.select(
                    self.apply("less", nodes[0], ZERO), graph.add(nodes[0], n), nodes[0])  # fmt: skip
            case "remainder":
                return lambda nodes: self._remainder(*nodes)
            case "floor_divide":
                return lambda nodes: self._quotient(*nodes)
            case "add" if self.letters[self.at] == "b":
                return lambda nodes: self.apply("logical_or", *nodes)
            case "add":
                return lambda nodes: self._held_exactly(graph.add(*nodes))
            case "subtract":
                return lambda nodes: self._held_exactly(graph.subtract(*nodes))
            case "multiply":
                return lambda nodes: self._held_exactly(graph.product(nodes))
            case "power" if self.letters[self.at] == "i":
                return lambda nodes: self._whole_power(*nodes)
            case "square" if self.letters[self.at] == "i":
                return lambda nodes: self._whole_power(nodes[0], graph.fixed(2))
            case "sign":
                return lambda nodes: self._sign(nodes[0])
            case "isclose" if not parameters["equal_nan"]:
                return lambda nodes: self._close(nodes[0], nodes[1], parameters["rtol"], parameters["atol"])
            case "round" if not parameters.get("decimals"):
                return lambda nodes: self.apply("rint", nodes[0])
            case "isinf":
                return lambda nodes: self.apply("equal", self.apply("absolute", nodes[0]), graph.fixed(math.inf))
            case "signbit":
                return lambda nodes: self.apply("less", self.apply("copysign", ONE, nodes[0]), ZERO)
            case "heaviside":
                return lambda nodes: self._rise(nodes[0], nodes[1])
            case "clip" if not parameters:
                return lambda nodes: self.apply("minimum", self.apply("maximum", *nodes[:2]), nodes[2])
            case _ if name in _BITS:
                return lambda nodes: graph.apply(_op(_BITS[name]), nodes)
            case _:
                return super()._function(op)

    def _remainder(self, a: int, b: int) -> int:
        """x − y·⌊x / y⌋, with the sign of y."""
        self.failing(self.apply("equal", b, ZERO))
        graph, rest = self.graph, self.apply("fmod", a, b)
        other = self.apply("logical_xor", self.apply("less", rest, ZERO), self.apply("less", b, ZERO))
        moved = graph.select(other, graph.add(rest, b), rest)
        return graph.select(self.apply("equal", rest, ZERO), self.apply("copysign", graph.fixed(0.0), b), moved)

    def _quotient(self, a: int, b: int) -> int:
        """⌊x / y⌋: a whole number, which (x − rest) / y may miss by a rounding."""
        return self.apply("rint", self.graph.divide(self.graph.subtract(a, self._remainder(a, b)), b))

    def _whole_power(self, x: int, exponent: int) -> int:
        op, found = self.graph.ops[exponent], ONE
        if type(op) is not Fixed or not 0 <= op.value <= 8:
            raise Blocked("a power of whole numbers")
        for _ in range(int(op.value)):
            found = self._held_exactly(self.graph.product((found, x)))
        return found

    def _close(self, a: int, b: int, rtol: float, atol: float) -> int:
        graph = self.graph
        bound = graph.combination((1.0, rtol), (graph.fixed(float(atol)), self.apply("absolute", b)))
        near = self.apply("less_equal", self.apply("absolute", graph.subtract(a, b)), bound)
        return self.either([self.apply("logical_and", near, self.apply("isfinite", b)), self.apply("equal", a, b)])

    def _held_exactly(self, x: int) -> int:
        """A whole number that a float holds exactly; with a larger one, or nan, the ordinary way is taken."""
        inside = self.apply("less_equal", self.apply("absolute", x), self.graph.fixed(float(EXACT)))
        self.failing(self.apply("logical_not", inside))
        return x

    def failing(self, node: int) -> None:
        """Where a node holds, the ordinary way is to be taken."""
        raise NotImplementedError

    def _converted(self, dtype: Any) -> Callable[[tuple[int, ...]], int]:
        graph = self.graph
        if dtype == np.dtype(float):
            return lambda nodes: graph.apply(convert(dtype), nodes) if graph.truth(nodes[0]) else nodes[0]
        if dtype.kind == "b":
            return lambda nodes: nodes[0] if graph.truth(nodes[0]) else self.apply("not_equal", nodes[0], ZERO)
        if dtype == np.dtype(np.int64):
            return lambda nodes: self._whole_number(nodes[0])
        raise Blocked(f"conversion to {dtype}")

    def _whole_number(self, x: int) -> int:
        if self.graph.truth(x):
            return self.graph.select(x, ONE, self.graph.fixed(0.0))
        whole = self._held_exactly(self.apply("trunc", x))
        return self.apply("add", whole, self.graph.fixed(0.0))  # not −0

    def _sign(self, x: int) -> int:
        return self._rise(x, x, -1.0)

    def _rise(self, x: int, at: int, below: float = 0.0) -> int:
        """1 for positive numbers, `below` for negative ones, `at` for 0; nan is nan."""
        graph = self.graph
        rest = graph.select(self.apply("less", x, ZERO), graph.fixed(below), graph.select(
            self.apply("equal", x, ZERO), at, x))  # fmt: skip
        return graph.select(self.apply("greater", x, ZERO), ONE, rest)

    def _larger(self, a: int, b: int) -> int:
        graph = self.graph
        equal = graph.select(self.apply("equal", a, b), graph.fixed(0.5), ZERO)
        return graph.select(self.apply("greater", a, b), ONE, equal)

    def _larger_number(self, a: int, b: int) -> int:
        alone = self.apply("logical_and", self.apply("isnan", b), self.apply("logical_not", self.apply("isnan", a)))
        return self.graph.select(alone, ONE, self._larger(a, b))

    def _primitive(self, p: Any, nodes: tuple[int, ...]) -> int:
        graph, x = self.graph, nodes[0]
        match p.name if RULES.get(p.name) is p.rule else None:
            case "sign":
                return self._sign(x)
            case "larger":
                return self._larger(*nodes)
            case "step":
                return self._rise(x, graph.fixed(0.0))
            case "logaddexp":
                return self._logaddexp(*nodes)
            case "remainder":
                return self._remainder(*nodes)
            case "fmax" | "fmin" as name:
                (a, b), larger = nodes, self.apply("maximum" if name == "fmax" else "minimum", *nodes)
                return graph.select(self.apply("isnan", a), b, graph.select(self.apply("isnan", b), a, larger))
            case "larger_number":
                return self._larger_number(*nodes)
            case "smaller_number":
                return self._larger_number(*[graph.scale(-1.0, node) for node in nodes])
            case "power_slope":
                a, b = nodes
                none = self.apply("equal", b, ZERO)
                slope = graph.product([b, self.apply("power", graph.select(none, ONE, a), graph.subtract(b, ONE))])
                return graph.select(none, graph.fixed(0.0), slope)
            case _:
                return super()._primitive(p, nodes)

    def _logaddexp(self, a: int, b: int) -> int:
        graph = self.graph
        high, low = self.apply("maximum", a, b), self.apply("minimum", a, b)
        inner = graph.add(high, self.apply("log1p", self.apply("exp", graph.subtract(low, high))))
        return graph.select(self.apply("equal", a, b), graph.add(a, graph.fixed(math.log(2.0))), inner)

    # -- along axes --------------------------------------------------------------------------------------

    def _discrete(self, op: Discrete, xs: list[Any], shape: Shape) -> Any:
        name, parameters = op.function.__name__, dict(op.parameters)
        if op.function is anywhere:
            found = self.graph.select(self.either(xs[0].reshape(-1).tolist()), self.graph.fixed(0.0), ONE)
            return np.asarray(found, np.intp)
        if op.function is shares:
            return self._shares(xs[0], xs[1], parameters["axis"], shape)
        if name in ("argmax", "argmin"):
            found = argument(self, _rows(xs[0], parameters.get("axis")), name == "argmax")
            return np.array(found, np.intp).reshape(shape)
        if name in ("_argsort", "_order_or_nan"):
            return np.array(order(self, xs[0].reshape(-1, xs[0].shape[-1])), np.intp).reshape(shape)
        if name in ("max", "amax", "min", "amin", "_top"):
            return self._extremum(xs[0], parameters["axis"], name not in ("min", "amin"), shape)
        if name in ("sum", "count_nonzero"):
            return self._counted(xs[0], parameters["axis"], shape, name == "sum")
        if name in ("any", "all"):
            rows = _rows(xs[0], parameters["axis"])
            joined = "logical_or" if name == "any" else "logical_and"
            return self._folded(rows, lambda a, b: self.apply(joined, a, b)).reshape(shape)
        if name == "_share":
            return self._mirror_shares(xs[0], parameters["lower"])
        raise Blocked(f"the function {name}")

    def _counted(self, x: Any, axis: Any, shape: Shape, every: bool) -> Any:
        """Sums of truth values and whole numbers; how many are not 0 unless `every` one counts as what it is."""
        graph, none = self.graph, self.graph.fixed(0.0)
        found: list[int] = []
        for node in x.reshape(-1).tolist():
            node = node if every or graph.truth(node) else self.apply("not_equal", node, ZERO)
            found.append(graph.select(node, ONE, none) if graph.truth(node) else node)
        rows = _rows(np.array(found, np.intp).reshape(x.shape), axis)
        return self._folded(rows, lambda a, b: self._held_exactly(graph.add(a, b))).reshape(shape)

    def _folded(self, rows: Any, join: Callable[[int, int], int]) -> Any:
        found: list[int] = []
        for row in rows.tolist():
            total = row[0]
            for x in row[1:]:
                total = join(total, x)
            found.append(total)
        return np.array(found, np.intp)

    def _extremum(self, x: Any, axis: Any, largest: bool, shape: Shape) -> Any:
        if not x.size:
            raise Blocked("an extremum of nothing")
        name = "maximum" if largest else "minimum"
        return self._folded(_rows(x, axis), lambda a, b: self.apply(name, a, b)).reshape(shape)

    def _shares(self, x: Any, peak: Any, axis: Any, shape: Shape) -> Any:
        graph, wide = self.graph, np.broadcast_to(peak, shape)
        pairs = zip(x.reshape(-1).tolist(), wide.reshape(-1).tolist(), strict=True)
        equal = np.array([self.apply("equal", a, b) for a, b in pairs], np.intp).reshape(shape)
        order, _ = _order(len(shape), axis)
        none, found = graph.fixed(0.0), list[list[int]]()
        for row in _rows(equal, axis).tolist():
            count = graph.combination([1.0] * len(row), [graph.select(a, ONE, none) for a in row])
            share = graph.divide(ONE, self.apply("maximum", count, ONE))
            found.append([graph.select(a, share, none) for a in row])
        return np.transpose(np.array(found, np.intp).reshape([shape[k] for k in order]), np.argsort(order))

    def _mirror_shares(self, a: Any, lower: bool) -> Any:
        """`_share` of matrix_ops.py."""
        n = a.shape[-1]
        if a.ndim != 2:
            raise Blocked("stacks of matrices")
        graph = self.graph
        entries = [[int(x) for x in row] for row in a.tolist()]
        sizes = [self.apply("absolute", x) for row in entries for x in row]
        gaps = [
            self.apply("absolute", graph.subtract(entries[i][j], entries[j][i])) for i in range(n) for j in range(i)
        ]
        rows = [self._folded(np.array([xs or [ZERO]], np.intp), lambda p, q: self.apply("maximum", p, q))[0]
                for xs in (gaps, sizes)]  # fmt: skip
        bound = graph.scale(float(np.sqrt(np.finfo(float).eps)), int(rows[1]))
        symmetric = self.apply("less_equal", int(rows[0]), bound)
        read = np.tri(n) - np.eye(n) / 2
        read = read if lower else read.T
        found = [graph.select(symmetric, graph.fixed(0.5), graph.fixed(float(x))) for x in read.reshape(-1)]
        return np.array(found, np.intp).reshape(n, n)

    # -- functions with a differential -------------------------------------------------------------------

    def ruled(self, op: Ruled, xs: list[Any], shape: Any) -> Any:
        """Extrema, and functions of small matrices."""
        name, parameters = op.smooth.name, dict(op.parameters)
        given: list[Any] = [self.numbers(x) for x in xs]
        if name == "extremum":
            return self._extremum(given[0], parameters["axis"], parameters["title"] == "max", shape)
        if name == "mirrored" and given[0].ndim == 2:
            read = np.tri(given[0].shape[-1], dtype=bool)
            found: Any = cast(Any, np.where)(read if parameters["lower"] else read.T, given[0], given[0].T)
            return found
        if name not in MATRICES:
            raise Blocked(f"the function {op.title}")
        if any([x.ndim != 2 for x in given]):
            raise Blocked(f"{name} of stacks of matrices")
        return MATRICES[name](self, *given, **parameters)

    def _strongly(self, op: Strongly, xs: list[Any], shape: Shape) -> Any:
        """0 where argument k is 0 throughout, whatever the rest is."""
        graph = self.graph
        flags = [self.apply("not_equal", x, ZERO) for x in xs[op.k].reshape(-1).tolist()]
        inner = self.ruled(op.op, xs, shape) if isinstance(op.op, Ruled) else self.unrolled(op.op, xs, shape)
        some = self.either(flags)
        found = [graph.select(some, x, graph.fixed(0.0)) for x in inner.reshape(-1).tolist()]
        return np.array(found, np.intp).reshape(inner.shape)

    def discrete_letter(self, op: Discrete, given: list[Any]) -> str:
        """The kind of what a discrete function gives."""
        name, parameters = op.function.__name__, dict(op.parameters)
        if name == "as_type":
            kind = np.dtype(parameters["dtype"])
            return {"f": "f", "b": "b", "i": "i"}.get(kind.kind, "") or self._refused(str(kind))
        if op.function is anywhere or name in _PLACES:
            return "i"
        if name in ("any", "all", "isclose"):
            return "b"
        return given[0]

    def whole(self, op: Discrete, given: list[Any]) -> None:
        """Refuse arithmetic of whole numbers that floats do not have."""
        name = op.function.__name__
        compared = name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isclose")
        if "i" in given and not compared and name not in _WHOLE and op.function is not anywhere:
            self._refused(f"{name} of whole numbers")

    def _refused(self, what: str) -> str:
        raise Blocked(what)


def _order(rank: int, axis: Any) -> tuple[list[int], list[int]]:
    gone = range(rank) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    gone = [k % rank for k in gone]
    kept = [k for k in range(rank) if k not in gone]
    return [*kept, *gone], kept


def _rows(x: Any, axis: Any) -> Any:
    """The axes that go as rows."""
    order, kept = _order(x.ndim, axis)
    return np.transpose(x, order).reshape(math.prod([x.shape[k] for k in kept]), -1)
