"""Plain `rz.grad(f)` of a function of a few numbers, called again and again: the interpreter's own operations as one generated function.

The gradient is computed once over a domain that writes down every operation on floats instead of carrying it out (`Recording`). The function made of
them does the same operations in the same order, so its results have the same bits; where that is not certain (sums of arrays, array code on numbers),
nothing is recorded and the interpreter goes on as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calculus.derive import affine_program, linear_slots, tape_value
from ..calculus.reverse import pullback
from ..opaque import Discrete, Select
from ..ops import Combination, Contraction, Elementwise, Reduction
from ..programs.along import Unfit
from ..programs.fusing import in_order
from ..programs.scalars import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT, TRUTHS, Operation, Scalars, Small, TooMany
from ..relations.kinds import Place, Point, Range
from ..spaces import R
from ..syntax.functions import Function
from ..syntax.points import Point as FunctionPoint
from ..syntax.trees import ONE_LEAF
from ..terms.primitives import RULES
from .code import names_of, while_current
from .number_code import scalar_function
from .unrolled import FLOAT

MOST = 200
"""Up to how many operations are recorded."""


class Cells:
    """Numbers that are not known yet: nodes of a graph, in the shape of a leaf. Single ones have the arithmetic of floats."""

    __slots__ = ("home", "nodes", "shape")

    def __init__(self, home: Recording, nodes: Any) -> None:
        self.home = home
        self.nodes = np.asarray(nodes, np.intp)
        self.shape: tuple[int, ...] = self.nodes.shape

    def apply_primitive(self, primitive: Any, args: Sequence[Any]) -> Cells:
        """p(args)."""
        return self.home.step(primitive.op, args)

    def __add__(self, other: Any) -> Cells:
        return self.home.apply(ADD, (self, other))

    def __radd__(self, other: Any) -> Cells:
        return self.home.apply(ADD, (other, self))

    def __sub__(self, other: Any) -> Cells:
        return self.home.apply(SUBTRACT, (self, other))

    def __rsub__(self, other: Any) -> Cells:
        return self.home.apply(SUBTRACT, (other, self))

    def __mul__(self, other: Any) -> Cells:
        return self.home.apply(MULTIPLY, (self, other))

    def __rmul__(self, other: Any) -> Cells:
        return self.home.apply(MULTIPLY, (other, self))

    def __truediv__(self, other: Any) -> Cells:
        return self.home.apply(DIVIDE, (self, other))

    def __rtruediv__(self, other: Any) -> Cells:
        return self.home.apply(DIVIDE, (other, self))

    def __neg__(self) -> Cells:
        return self.home.apply(NEGATIVE, (self,))

    def _refused(self, *args: Any) -> Any:
        raise Unfit

    __pow__ = __rpow__ = __bool__ = __float__ = __array__ = __lt__ = __gt__ = __le__ = __ge__ = _refused
    __array_ufunc__ = _refused


class Recording:
    """The value domain of `Cells`: `Numbers`, written down. A step whose bits are not certain to be the same raises Unfit."""

    def __init__(self) -> None:
        self.graph = Scalars(MOST)

    def cells(self, value: Any) -> Cells:
        """A fixed float, or cells."""
        if type(value) is Cells:
            return value
        if type(value) is not float:
            raise Unfit
        return Cells(self, self.graph.fixed(value))

    const = cells

    def apply(self, op: Operation, args: Sequence[Any]) -> Cells:
        """An operation on single floats, or on arrays of one shape index by index."""
        given = [self.cells(a) for a in args]
        shape = given[0].shape
        if any([g.shape != shape for g in given]):
            raise Unfit
        flat = [g.nodes.reshape(-1).tolist() for g in given]
        return Cells(self, np.array([self.graph.apply(op, nodes) for nodes in zip(*flat, strict=True)], np.intp).reshape(shape))

    def scale(self, k: float, x: Cells) -> Cells:
        """k · x."""
        return self.apply(MULTIPLY, (Cells(self, np.full(x.shape, self.graph.fixed(k))), x))

    def zeros(self, shape: tuple[int, ...]) -> Cells:
        """Zeros."""
        return Cells(self, np.full(shape, self.graph.fixed(0.0)))

    def shape(self, x: Any) -> Any:
        """The shape of a leaf."""
        return self.cells(x).shape

    def linearized(self, op: Elementwise, xs: Sequence[Cells]) -> tuple[Cells, tuple[Any, ...]]:
        """The value of a primitive and its partial derivatives."""
        y = self.step(op, xs)
        partials = op.primitive.partials(tuple(xs), y)
        if any([d is not None and type(d) is not float and type(d) is not Cells for d in partials]):
            raise Unfit
        return y, partials

    def step(self, op: Any, args: Sequence[Any]) -> Cells:
        """A step of a program."""
        xs = [self.cells(a) for a in args]
        match op:
            case Elementwise(primitive=p) if p.rule.scalar is not None and RULES.get(p.name) is p.rule and all([x.shape == () for x in xs]):
                return self.apply(Operation(p.name, p.rule.scalar, () if p.parameter is None else (p.parameter,)), xs)
            case Combination():
                return self._combination(op.coefficients, xs)
            case Contraction(labels=((), ()), out=(), extra=(), strong=()):
                return self.apply(MULTIPLY, xs)
            case Reduction() if all([isinstance(r, (Point, Place, Range)) for r in op.relations]):
                return self._moved(op, xs)
            case Select() if all([x.shape == () for x in xs]):
                return self.apply(Operation("where", None), xs)
            case Discrete(function=function, parameters=(), shaped=None) if function in TRUTHS and all([x.shape == () for x in xs]):
                return self.apply(Operation(function.__name__, function), xs)
            case _:
                raise Unfit

    def _combination(self, coefficients: Sequence[float], xs: list[Cells]) -> Cells:
        total: Any = None
        for k, x in zip(coefficients, xs, strict=True):
            if k == 1.0:
                total = x if total is None else self.apply(ADD, (total, x))
            elif k == -1.0:
                total = -x if total is None else self.apply(SUBTRACT, (total, x))
            else:
                total = self.scale(k, x) if total is None else self.apply(ADD, (total, self.scale(k, x)))
        return total

    def _moved(self, op: Reduction, xs: list[Cells]) -> Cells:
        """Numbers put to other places, or added to 0 there."""
        shape = op.result(tuple([x.shape for x in xs]))
        box = op.relations[0].target.box or ()
        lead, trail = int(np.prod(shape[: op.axis])), int(np.prod(shape[op.axis + len(box) :]))
        total = np.full((lead, op.relations[0].target.size, trail), self.graph.fixed(0.0))
        for relation, x in zip(op.relations, xs, strict=True):
            rows, cols, _ = relation.pairs()
            moved = x.nodes.reshape(lead, relation.source.size, trail)[:, rows]
            added = len(xs) > 1 and not op.covers
            total[:, cols] = self.apply(ADD, (Cells(self, total[:, cols]), Cells(self, moved))).nodes if added else moved
        return Cells(self, total.reshape(shape))


def recorded(at: FunctionPoint, function: Function) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function of the arguments that gives (f(x), ∇f(x)), or OTHER; None where there is none with the same bits."""
    record, given = at.record, at.given
    plain = all([t == ONE_LEAF for t in given.trees]) and not given.kwargs and not given.statics and at.domain.plain and at.main_tree == ONE_LEAF
    fits = plain and at.codomain is R and not at.has_aux and len(record.outputs) == 1 and function.keeps(given)
    if not fits or any([a.dtype != FLOAT or not a.dtype.isnative for a in (*given.avals, *record.outputs)]):
        return None
    home = Recording()
    leaf = home.graph.leaf
    try:
        xs = [
            Cells(home, np.array([leaf(Small(k, i)) for i in range(int(np.prod(a.shape)))], np.intp).reshape(a.shape))
            for k, a in enumerate(given.avals)
            if home.graph.room(int(np.prod(a.shape))) is None
        ]
        values, tape = affine_program(in_order(record.program), xs, at.moving, base=home, keep=False)
        found = pullback(tape, linear_slots(tape), [home.cells(1.0)], home, tape_value(tape, home))
    except (Unfit, TooMany):
        return None
    shapes = [part.shape for part in at.domain.leaves]
    gradients = [home.zeros(shape) if c is None else c for c, shape in zip(found, shapes, strict=True)]
    outs = [home.cells(values[0]).nodes, *[g.nodes for g in gradients]]

    def present(texts: list[str], space: dict[str, Any]) -> str:
        gradient = texts[1] if at.single else f"({', '.join(texts[1:])},)"
        return f"({texts[0]}, {gradient})"

    _, run = scalar_function(f"grad({at.name})", given.avals, names_of(function, given), home.graph, outs, present)
    return while_current(run, function, given)
