"""Computed positions: what is read there, what is added up there, and where extrema and places in an order stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...ops.op import Combination, Shape
from ...ops.opaque import Put, Take
from ...programs.axis.scalars import ONE, ZERO, Fixed
from ...programs.program import Program
from ...runtime import tuning
from .statements import Blocked, Buffer, Locate, Position, SetNumber, counter
from .writer import Arrayed, Element, Slot

if TYPE_CHECKING:
    from .number_forms import NumberForms
    from .scope import Scope


# -- reading ----------------------------------------------------------------------------------------------


def taken(scope: Scope, op: Take, x: Slot, index: Slot, shape: Shape) -> Slot:
    """x at computed positions of an axis."""
    buffer, base = _memory(scope, x)
    b, k, n = op.batch, op.axis, x.shape[op.axis]
    strides = [math.prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
    inner = len(index.shape) - b

    def at(positions: Sequence[Position], place: Position) -> Position:
        rest = [*positions[:k], place, *positions[k + inner :]]
        total = base
        for p, stride in zip(rest, strides, strict=True):
            total = total.plus(p, stride)
        return total

    if math.prod(shape) <= tuning.NATIVE_SLOT_NUMBERS and type(index) is not Arrayed:
        places = {node: _place(scope, scope.value(node), n) for node in dict.fromkeys(index.reshape(-1).tolist())}
        found: list[int] = []
        for positions in np.ndindex(*shape):
            node = int(index[(*positions[:b], *positions[k : k + inner])])
            read = Element(buffer, at([Position(i) for i in positions], places[node]))
            found.append(scope.graph.leaf(read))  # pyright: ignore
        return np.array(found, np.intp).reshape(shape)
    where = scope.array(index)

    def value(positions: Sequence[Position]) -> Any:
        place = _place(scope, where.at([*positions[:b], *positions[k : k + inner]]), n)
        return scope.writer.read(buffer, at(positions, place))

    return scope.lazy(value, shape)


def _place(scope: Scope, value: Any, n: int) -> Position:
    name = scope.writer.fresh("n")
    scope.writer.emit(Locate(name, value, n))
    return counter(name)


def _memory(scope: Scope, x: Slot) -> tuple[Buffer, Position]:
    """Where an array stands: where it was read from, among fixed numbers, or in memory of its own."""
    if type(x) is not Arrayed:
        ops = [scope.graph.ops[node] for node in x.reshape(-1).tolist()]
        if all([type(op) is Fixed for op in ops]):
            return scope.writer.fixed(np.array([float(op.value) for op in ops])), Position()
        first = ops[0]
        if type(first) is Element and ops == [Element(first.buffer, first.at.moved(i)) for i in range(len(ops))]:
            return first.buffer, first.at
    place = scope.stored(x).place
    assert place is not None
    return place


def looked_up(body: Program) -> set[int]:
    """The inputs of a program that are read at computed positions."""
    found = {args[0] for op, args in zip(body.ops, body.args, strict=True) if type(op) is Take}
    return {i for i, slot in enumerate(body.inputs) if slot in found}


# -- adding up --------------------------------------------------------------------------------------------


class Scattered(NamedTuple):
    """Numbers to be added at computed positions of a carry, where that is."""

    op: Put
    y: Slot
    index: Slot
    shape: Shape


class Collected(NamedTuple):
    """A sum with some of these: the rest of it, and factors of them."""

    rest: Slot
    parts: list[tuple[float, Scattered]]


def scattered(body: Program, ends: Sequence[int]) -> set[int]:
    """The sums at computed positions that only carries collect."""
    uses, found = body.uses(), set[int]()
    for end in ends:
        if type(body.ops[end]) is Combination and uses[end] == 1:
            found |= {a for a in body.args[end] if type(body.ops[a]) is Put and uses[a] == 1}
    return found


def added(scope: Scope, target: Arrayed, part: Scattered, factor: float = 1.0) -> None:
    """Add numbers at computed positions of an array in memory."""
    op, n = part.op, part.op.size
    b, k = op.batch, op.axis
    y, where = scope.array(part.y), scope.array(part.index)
    place = target.place
    assert place is not None
    buffer, base = place
    strides = [math.prod(target.shape[i + 1 :]) for i in range(len(target.shape))]
    with scope.nest(y.shape) as at:
        spot = _place(scope, where.at([*at[:b], *at[k : k + op.rank]]), n)
        total = base
        for p, stride in zip([*at[:k], spot, *at[k + op.rank :]], strides, strict=True):
            total = total.plus(p, stride)
        value = y.at(at)
        value = value if factor == 1.0 else scope.writer.assigned("multiply", (factor, value))
        scope.writer.emit(SetNumber(buffer, total, value, adds=True))


def put(scope: Scope, op: Put, y: Slot, index: Slot, shape: Shape) -> Slot:
    """Numbers added up at computed positions of zeros."""
    size = math.prod(y.shape) * op.size
    if (
        type(y) is not Arrayed
        and type(index) is not Arrayed
        and size <= tuning.NATIVE_CHOICES
        and math.prod(shape) <= tuning.NATIVE_SLOT_NUMBERS
    ):
        return _chosen(scope, op, y, index, shape)
    found = scope.writer.placed(shape, scope.writer.buffer(math.prod(shape)))
    scope.store(found, Arrayed(shape, lambda at: 0.0))
    added(scope, found, Scattered(op, y, index, shape))
    return found if math.prod(shape) > tuning.NATIVE_SLOT_NUMBERS else scope.numbers(found)


def _chosen(scope: Scope, op: Put, y: Any, index: Any, shape: Shape) -> Any:
    graph, k = scope.graph, op.axis
    total = np.full(shape, graph.fixed(0.0), np.intp)
    places = np.empty(index.shape, np.intp)
    for at in np.ndindex(*index.shape):
        x = int(index[at])
        low = scope.apply("less", x, ZERO)
        places[at] = graph.select(low, graph.add(x, graph.fixed(float(op.size))), x)
    for at in np.ndindex(*y.shape):
        spot = int(places[(*at[: op.batch], *at[k : k + op.rank])])
        for j in range(op.size):
            where = (*at[:k], j, *at[k + op.rank :])
            one = graph.select(scope.apply("equal", spot, graph.fixed(float(j))), int(y[at]), ZERO)
            total[where] = one if graph.ops[total[where]] == Fixed(0.0) else graph.add(int(total[where]), one)
    return total


# -- places ------------------------------------------------------------------------------------------------


def argument(forms: NumberForms, rows: Any, largest: bool) -> list[int]:
    """The place of the first extremum in each row. With a nan the ordinary way is taken."""
    graph, better = forms.graph, "greater" if largest else "less"
    found: list[int] = []
    for row in rows.tolist():
        forms.failing(forms.either([forms.apply("isnan", x) for x in row]))
        best, at = row[0], graph.fixed(0.0)
        for j, x in enumerate(row[1:], 1):
            wins = forms.apply(better, x, best)
            best, at = graph.select(wins, x, best), graph.select(wins, graph.fixed(float(j)), at)
        found.append(at)
    return found


def order(forms: NumberForms, rows: Any) -> list[list[int]]:
    """The places of the numbers in each row in their order, equal ones as they stand."""
    graph, found = forms.graph, list[list[int]]()
    for row in rows.tolist():
        if len(row) > tuning.NATIVE_SORTED_NUMBERS:
            raise Blocked(f"an order of {len(row)} numbers")
        forms.failing(forms.either([forms.apply("isnan", x) for x in row]))
        none = graph.fixed(0.0)
        ranks: list[int] = []
        for i, x in enumerate(row):
            before = [forms.apply("less_equal" if j < i else "less", y, x) for j, y in enumerate(row) if j != i]
            ranks.append(graph.combination([1.0] * len(before), [graph.select(c, ONE, none) for c in before]))
        places = range(len(row))
        same = [[forms.apply("equal", rank, graph.fixed(float(k))) for rank in ranks] for k in places]
        found.append([_sum(graph, [graph.select(c, graph.fixed(float(i)), none) for i, c in enumerate(row_)])
                      for row_ in same])  # fmt: skip
    return found


def _sum(graph: Any, nodes: Sequence[int]) -> int:
    return graph.combination([1.0] * len(nodes), list(nodes)) if nodes else graph.fixed(0.0)


def found_places(scope: Scope, knots: Slot, x: Any, side: str) -> Any:
    """Where numbers belong among sorted ones: how many of these come before, by halving."""
    if len(knots.shape) != 1 or type(x) is Arrayed:
        raise Blocked("places among sorted numbers of arrays")
    n, (buffer, base), graph = knots.shape[0], _memory(scope, knots), scope.graph
    test, found = "less" if side == "left" else "less_equal", list[int]()
    for value in x.reshape(-1).tolist():
        scope.failing(scope.apply("isnan", value))
        at = graph.fixed(0.0)
        for step in [1 << i for i in reversed(range(n.bit_length()))]:
            last = graph.add(at, graph.fixed(float(step - 1)))
            inside = scope.apply("less", last, graph.fixed(float(n)))
            place = _place(scope, scope.value(scope.apply("minimum", last, graph.fixed(float(n - 1)))), n)
            knot = graph.leaf(Element(buffer, base.plus(place)))  # pyright: ignore
            comes = scope.apply("logical_and", inside, scope.apply(test, knot, value))
            at = graph.select(comes, graph.add(at, graph.fixed(float(step))), at)
        found.append(at)
    return np.array(found, np.intp).reshape(x.shape)
