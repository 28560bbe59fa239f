"""Small programs in C without loops: every component of an array is a variable, equal expressions are one.

The nodes are those of the *python* way (backends/python/unrolled.py). Steps without such a form (solves, loops,
branches, computed positions) stay as they are: what they read is written to an array before them.
"""

# pyright: basic, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..backends.python.unrolled import WholeNodes
from ..errors import TraceError
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import Discrete, Ruled, Select
from ..programs.axis import scalars
from ..programs.axis.scalars import ZERO, Fixed, Operation, Scalars, Small, TooMany
from ..programs.program import INPUT, Constant, Program
from ..relations.kinds import Triangular
from ..runtime import tuning
from ..spaces.formal_vectors import dense
from ..terms.primitives import Primitive
from .c_formulas import number
from .c_program import C, CProgram, Ref, mixes, template

_KNOWN = (float, Combination, Contraction, Elementwise, Reduction, Reshape, Select, Cast, Discrete)
_SIGNS = {scalars.ADD: "+", scalars.SUBTRACT: "-", scalars.MULTIPLY: "*", scalars.DIVIDE: "/"}
_SIGNS |= {scalars.EQUAL: "==", scalars.UNEQUAL: "!="}
_FORMS = {op: f"{{0}} {sign} {{1}}" for op, sign in _SIGNS.items()}
_FORMS |= {scalars.NEGATIVE: "-{0}", scalars.SQRT: "sqrt({0})", scalars.POWER: "pow({0}, {1})"}
_FORMS |= {scalars.SELECT: "{0} != 0 ? {1} : {2}"}
_EQUATIONS = 3
"""Systems of up to so many are solved without loops."""
_LARGER = Operation("fabs({0}) > fabs({1})", None)


class CNumbers(WholeNodes):
    """The nodes of the slots of a program; `steps` are the slots that are arrays."""

    def __init__(self, c: CProgram, program: Program) -> None:
        super().__init__(program, tuning.C_OPERATIONS)
        self._c = c
        self.steps: list[int] = []
        live = program.needed(program.outputs)
        for slot, (op, args, shape) in enumerate(zip(program.ops, program.args, program.shapes, strict=True)):
            if not live[slot] or op is INPUT or type(op) is Constant:
                continue
            if type(op) in _KNOWN and not mixes(op):
                if type(op) is Contraction and op.guarded >= 0:
                    op, args = op.unguarded, args[:-1]
                self._small[slot] = self.unrolled(op, [self.small(a) for a in args], shape)
            elif type(op) is Ruled and op.smooth.name == "solve" and program.shapes[args[0]][-1] <= _EQUATIONS:
                self._small[slot] = self._solved(*[self.small(a) for a in args], **dict(op.parameters))
            else:
                self.steps.append(slot)

    def _function(self, op: Any) -> Callable[[tuple[int, ...]], int]:
        graph = self.graph
        if type(op) not in (Elementwise, Cast, Discrete):
            return super()._function(op)
        match getattr(op, "primitive", None):
            case Primitive(name="divide"):
                return lambda nodes: graph.divide(*nodes)
            case Primitive(name="power", parameter=float(k)):
                return lambda nodes: graph.power(nodes[0], k)
            case _:
                what = Operation(text := template(self._c, op), None)
                return lambda nodes: graph.apply(what, nodes) if text != "{0}" else nodes[0]

    def _reduced(self, op: Reduction, xs: list[Any], shape: Any) -> Any:
        first = op.relations[0]
        if type(first) is not Triangular or len(xs) > 1:
            return super()._reduced(op, xs, shape)
        n, found = first.source.size, np.full(shape, ZERO)
        x, sums = [np.moveaxis(y, op.axis, 0) for y in (xs[0], found)]
        total = np.full(x.shape[1:], ZERO)
        for i in range(n) if first.lower else range(n - 1, -1, -1):
            if first.strict:
                sums[i] = total
            nodes = [self.graph.add(s, y) for s, y in zip(total.ravel().tolist(), x[i].ravel().tolist(), strict=True)]
            total = np.array(nodes, np.intp).reshape(total.shape)
            if not first.strict:
                sums[i] = total
        return found

    def _solved(self, a: Any, b: Any, transposed: bool) -> Any:
        """Few equations, as `riesz_solve` solves them: rows are exchanged by selections."""
        graph, n, found = self.graph, a.shape[-1], np.empty(b.shape, np.intp)
        for at in np.ndindex(*b.shape[:-2]):
            rows = np.hstack([a[at].T if transposed else a[at], b[at]]).tolist()
            for j in range(n):
                for i in range(j + 1, n):
                    larger = graph.apply(_LARGER, (rows[i][j], rows[j][j]))
                    pairs = list(zip(rows[j], rows[i], strict=True))
                    rows[j] = [graph.select(larger, y, x) for x, y in pairs]
                    rows[i] = [graph.select(larger, x, y) for x, y in pairs]
                for i in range(j + 1, n):
                    factor = graph.divide(rows[i][j], rows[j][j])
                    self._subtract(rows[i], factor, rows[j], j + 1)
            for j in range(n - 1, -1, -1):
                for i in range(j + 1, n):
                    self._subtract(rows[j], rows[j][i], rows[i], n)
                rows[j][n:] = [graph.divide(x, rows[j][j]) for x in rows[j][n:]]
            found[at] = [row[n:] for row in rows]
        return found

    def _subtract(self, row: list[int], factor: int, other: list[int], start: int) -> None:
        for k in range(start, len(row)):
            row[k] = self.graph.subtract(row[k], self.graph.product([factor, other[k]]))

    def _constants(self, value: Any, shape: Any) -> Any:
        return super()._constants(np.asarray(dense(value), float), shape)


class CSmallPrograms(CProgram):
    """The lines of a program, where small parts of it have no loops."""

    def program(self, program: Program, given: Sequence[Ref]) -> list[Ref]:
        """The outputs of a program written here."""
        try:
            numbers = CNumbers(self, program)
        except (TooMany, TraceError):
            return super().program(program, given)
        refs: dict[int, Any] = dict(zip(program.inputs, given, strict=True))
        texts: dict[int, str] = {}

        def array(slot: int) -> Any:
            op = program.ops[slot]
            if slot not in refs and type(op) is Constant:
                refs[slot] = self.constant(op.value)
            elif slot not in refs:
                nodes = numbers.small(slot)
                found = refs[slot] = self.new(nodes.shape) if nodes.shape else None
                for place, node in enumerate(nodes.ravel().tolist()):
                    self._numbers(numbers.graph, node, refs, texts)
                    if found is not None:
                        self.line(f"{found.text}[{place}] = {texts[node]};")
                if found is None:
                    refs[slot] = Ref(texts[int(nodes)], ())
            return refs[slot]

        for slot in numbers.steps:
            op, xs = program.ops[slot], [array(a) for a in program.args[slot]]
            refs[slot] = C.of(op)(self, op, xs, program.shapes[slot])
        return [array(s) for s in program.outputs]

    def _numbers(self, graph: Scalars, end: int, refs: dict[int, Any], texts: dict[int, str]) -> None:
        """Lines for a node and those that it is made of, where there are none yet."""
        stack = [end]
        while stack:
            node = stack[-1]
            waits = [a for a in graph.args[node] if a not in texts]
            if node not in texts and waits:
                stack.extend(reversed(waits))
                continue
            stack.pop()
            if node in texts:
                continue
            op = graph.ops[node]
            if type(op) is Fixed:
                texts[node] = number(op.value)
                continue
            given = [texts[a] for a in graph.args[node]]
            if type(op) is Small:
                text: str = refs[op.slot].at(f"{op.at}")
            else:
                form: Any = _FORMS.get(op, op.name)
                text = form.format(*given)
            texts[node] = text if text.isidentifier() else self.name("t")
            if texts[node] != text:
                self.line(f"const real {texts[node]} = {text};")
