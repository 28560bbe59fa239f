"""A program as a graph of wires: each step as what it does to index sets.

Products are wires that meet, in dots where there are more than two. Arrays that are there already are boxes, drawn
where they are used. What moves numbers is a relation, what else is done a box with a name. Sums and copies are bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...ops.op import Cast, Combination, Contraction, Elementwise, Linear, Reduction, Reshape
from ...ops.op_rules import OpRules
from ...ops.opaque import Discrete, Get, Put, Select, Take
from ...programs.program import Constant, Program, several
from ...programs.sub_programs import Block, Loop
from ...relations import Full, Gather, Place, Point, Relation
from ...relations import Function as FunctionRelation
from ...relations.index_algebra import Affine, IndexTable, labels_of
from ..notation import UNICODE
from ..program_text import NAMED
from ..term_text import op_title, primitive_text, relation_text
from .repeats import DrawnRun, drawn
from .wire_graph import Bundle, End, Operand, WiredProduct, WireGraph

INSIDE = 40
"""Bodies of loops with more steps are drawn as one box."""
LONG = 28
"""Labels are cut to this."""


class ArrayName(NamedTuple):
    """How an array is called, and the id of where it comes from."""

    label: str
    data: str


def _unnamed(value: Any) -> str:
    """An array without a name."""
    return UNICODE.leaf(value)[0]


class Names(NamedTuple):
    """How arrays in the middle of a program are called: index arrays, and constants."""

    table: Callable[[Any], str] = lambda _: "index"
    constant: Callable[[Any], str] = _unnamed


class ReadProgram(NamedTuple):
    """A graph and, for each product in it, its operands: the node of each (None for what comes in), with labels."""

    graph: WireGraph
    products: list[ReadProduct]


class ReadProduct(NamedTuple):
    """A product as it was read, for the order in which it is contracted."""

    op: Contraction
    shapes: tuple[Any, ...]
    nodes: list[int | None]  # of each operand, if it is a box
    sources: list[int | None]  # of each other operand, the node it comes from
    inside: range  # all nodes made for it


def short(text: str) -> str:
    """A label of bearable length."""
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def read_program(
    program: Program,
    boxes: Mapping[int, ArrayName],
    inputs: Sequence[tuple[int, str]],
    outputs: Sequence[str],
    limit: int,
    names: Names | None = None,
    prefix: str = "",
) -> ReadProgram:
    """The graph of a program. `boxes`: the slots that are arrays, with their names; `inputs`: the other inputs, with
    theirs; `outputs`: the names of the outputs; `limit`: draw at most so many steps; `names`: those of other arrays;
    `prefix`: of the ids of slots."""
    graph, products = WireGraph(), list[ReadProduct]()
    reader = _Reader(graph, products, program, boxes, prefix, limit, names or Names())
    for slot, name in inputs:
        reader.start(slot, graph.ends(graph.node("input", name, f"{prefix}{slot}"), program.shapes[slot]))
    reader.steps()
    for slot, name in zip(program.outputs, outputs, strict=True):
        bundle = reader.value(slot)
        graph.taken(graph.node("output", name, f"{prefix}{slot}"), bundle)
    return ReadProgram(graph, products)


BOXES = OpRules[Callable[["_Reader", int, Any, Any, str], Any]]("show.diagrams.reading_programs.BOXES")
"""A step as a picture: the wires of its result."""


class _Reader:
    """Reads the steps of one program; bodies of loops have readers of their own."""

    def __init__(
        self,
        graph: WireGraph,
        products: list[ReadProduct],
        program: Program,
        boxes: Mapping[int, ArrayName],
        prefix: str,
        limit: int,
        names: Names,
    ) -> None:
        self.g, self.products, self.program, self.boxes, self.prefix = graph, products, program, boxes, prefix
        self.names = names
        self.plan = drawn(program, set(boxes), limit)
        self.ready: dict[int, list[Any]] = {}  # what is left of each value, one for each reader
        self.gone = set(self.plan.left_out)
        self.uses: dict[int, int] = {}
        self.parts: dict[int, set[int]] = {}  # of a tuple of results, those that are read
        for slot in self.plan.slots:
            if isinstance(op := program.ops[slot], Get):
                self.parts.setdefault(self._stand(program.args[slot][0]), set()).add(op.at)
            for a in self._distinct(slot):
                self.uses[a] = self.uses.get(a, 0) + 1
        for a in dict.fromkeys([self._stand(a) for s in self.plan.left_out for a in program.args[s]]):
            if a not in self.gone:
                self.uses[a] = self.uses.get(a, 0) + 1
        for slot in program.outputs:
            a = self._stand(slot)
            self.uses[a] = self.uses.get(a, 0) + 1

    def _stand(self, slot: int) -> int:
        return self.plan.stands.get(slot, slot)

    def _distinct(self, slot: int) -> list[int]:
        """The arguments of a step as they are drawn: of many that are drawn as one, one."""
        given = [self._stand(a) for a in self.program.args[slot]]
        many = len(given) > 2 and isinstance(self.program.ops[slot], (Combination, Reduction))
        return list(dict.fromkeys(given)) if many else given

    # -- values ------------------------------------------------------------------------------------------------

    def start(self, slot: int, bundle: Any) -> None:
        """A value is there: for each reader a copy."""
        n = self.uses.get(slot, 0)
        if n == 0:
            self._dropped(bundle)
        elif n == 1 or several(self.program.shapes[slot]):
            self.ready[slot] = [bundle] * n
        else:
            copy = self.g.node("copy", "", f"{self.prefix}{slot}")
            like = self.g.taken(copy, bundle)
            self.ready[slot] = [self.g.ends(copy, [e.size for e in bundle], like) for _ in range(n)]

    def _dropped(self, bundle: Any) -> None:
        """Nobody reads it: the wires end in a dot."""
        for part in bundle if bundle and isinstance(bundle[0], list) else [bundle]:
            if part:
                self.g.taken(self.g.node("dot", "", ""), part)

    def value(self, slot: int) -> Any:
        """A copy of a value, or the array in a box."""
        slot = self._stand(slot)
        op = self.program.ops[slot]
        if slot in self.boxes or type(op) is Constant:
            return self._box(slot)
        if slot in self.gone:
            return self.g.ends(self.rest, self.program.shapes[slot])
        left = self.ready[slot]
        return left.pop() if len(left) > 1 else left[0]

    def _box(self, slot: int) -> Bundle:
        name = self._name(slot)
        label = short(name.label) + (", …" if slot in self.plan.varying else "")
        return self.g.ends(self.g.node("array", label, name.data), self.program.shapes[slot])

    def _name(self, slot: int) -> ArrayName:
        known = self.boxes.get(slot)
        return known or ArrayName(self.names.constant(self.program.ops[slot].value), f"{self.prefix}{slot}")

    def own(self, slot: int) -> bool:
        """Whether a slot is drawn as a box."""
        return self._stand(slot) in self.boxes or type(self.program.ops[self._stand(slot)]) is Constant

    # -- steps -------------------------------------------------------------------------------------------------

    def steps(self) -> None:
        """All steps, runs in frames, what is left out as one box."""
        first = {run.slots[0]: run for run in self.plan.runs}
        ends: dict[int, tuple[int, DrawnRun]] = {}
        left = min(self.plan.left_out, default=-1)
        for slot in self.plan.slots:
            if 0 <= left < slot:
                self._left_out()
                left = -1
            if slot in first:
                ends[first[slot].slots[-1]] = len(self.g.nodes), first[slot]
            self.start(slot, self.step(slot))
            if slot in ends:
                start, run = ends[slot]
                how = "each on what the one before gave" if run.in_turn else "side by side"
                self.g.framed(start, run.times, f"{run.times:,} times, {how}")

    def _left_out(self) -> None:
        self.rest = self.g.node("rest", f"… {len(self.plan.left_out):,} more steps")
        given = dict.fromkeys([self._stand(a) for s in self.plan.left_out for a in self.program.args[s]])
        for a in given:
            if a not in self.gone and not self.own(a):
                self.g.taken(self.rest, self.value(a))

    def step(self, slot: int) -> Any:
        """What a step gives."""
        op, data, shape = self.program.ops[slot], f"{self.prefix}{slot}", self.program.shapes[slot]
        return BOXES[type(op)](self, slot, op, shape, data)

    BOXES("a triangle with its number", float)(
        lambda self, slot, op, shape, data: self._scaled(op, self.value(self.program.args[slot][0]), data)
    )
    BOXES("wires that meet", Contraction)(lambda self, slot, op, shape, data: self._product(slot, op, data))
    BOXES("a bar", Combination)(
        lambda self, slot, op, shape, data: self._sum(slot, op.coefficients, [None] * len(op.coefficients), 0, data)
    )
    BOXES("a bar; a box for each relation", Reduction)(
        lambda self, slot, op, shape, data: self._sum(slot, (1.0,) * len(op.relations), op.relations, op.axis, data)
    )
    BOXES("one of several wires", Get)(
        lambda self, slot, op, shape, data: self.value(self.program.args[slot][0])[op.at]
    )

    @BOXES("its body in a frame, where that is short; else a box with a name", Loop)
    def _rounds(self, slot: int, op: Loop, shape: Any, data: str) -> Any:
        inside = len(op.body) <= INSIDE and not _nested(op.body)
        return self._loop(slot, op, data) if inside else self._named(slot, op, shape, data)

    @BOXES("a box with a name", Elementwise, Discrete, Select, Block, *NAMED)
    def _named(self, slot: int, op: Any, shape: Any, data: str) -> Any:
        """A step that is a box with a name."""
        linear = isinstance(op, (Linear, Reshape, Cast))
        moves = isinstance(op, (Take, Put))
        if isinstance(op, Elementwise):
            label = "÷" if op.primitive.name == "divide" else primitive_text(UNICODE, op.primitive)
        else:
            label = op_title(UNICODE, op)
        if isinstance(op, Loop):
            label = f"{label} ×{op.length:,}"
        given = [self.value(a) for a in self.program.args[slot]]
        node = self.g.node("relation" if moves else "linear" if linear else "function", short(label), data)
        likes = [self.g.taken(node, part) for bundle in given for part in _parts(bundle)]
        if several(shape):
            return [self.g.ends(node, part) for part in shape]
        like = max(likes, key=len, default=list[int]())
        alike = isinstance(op, Elementwise) and len(like) == max(len(shape), 1)
        return self.g.ends(node, shape, like if alike else ())

    def _scaled(self, k: float, bundle: Bundle, data: str) -> Bundle:
        if k == 1.0:
            return bundle
        node = self.g.node("scale", UNICODE.number(k) if k != -1.0 else "−1", data)
        first = bundle[0]
        self.g.wire(first, End(node, first.size, first.name))
        return [End(node, first.size, first.name), *bundle[1:]]

    def _product(self, slot: int, op: Contraction, data: str) -> Bundle:
        given = self.program.args[slot]
        start = len(self.g.nodes)
        bundles = [self.value(a) for a in given]
        own = [self.own(a) for a in given]
        shapes = tuple([self.program.shapes[a] for a in given])
        operands = [Operand(b, ls, mine) for b, ls, mine in zip(bundles, op.labels, own, strict=True)]
        found = WiredProduct(self.g, operands, op.out, op.sizes(shapes), data).result
        nodes = [b[0].node if mine else None for b, mine in zip(bundles, own, strict=True)]
        sources = [None if mine else b[0].node for b, mine in zip(bundles, own, strict=True)]
        if len(given) > 1:
            self.products.append(ReadProduct(op, shapes, nodes, sources, range(start, len(self.g.nodes))))
        return found

    def _sum(
        self, slot: int, coefficients: Sequence[float], relations: Sequence[Relation | None], axis: int, data: str
    ) -> Bundle:
        """Σ kᵢ · red_{Rᵢ} xᵢ."""
        given = [self._stand(a) for a in self.program.args[slot]]
        counts = {a: given.count(a) for a in dict.fromkeys(given)} if len(given) > 2 else {}
        terms = list(zip(given, coefficients, relations, strict=True))
        if counts:
            terms = [(a, *next((k, r) for b, k, r in terms if b == a)) for a in counts]
        found: list[tuple[Bundle, int]] = []
        for a, k, r in terms:
            times = counts.get(a, 1)
            bundle = self._scaled(k, self.value(a), data)
            if r is not None:
                many = times > 1 or slot in self.plan.varying
                bundle = self._related(r, bundle, axis, len(self.program.shapes[a]), data, many)
            found.append((bundle, times))
        if len(found) == 1 and found[0][1] == 1:
            return found[0][0]
        node = self.g.node("sum", "", data)
        likes = [self.g.taken(node, bundle, times) for bundle, times in found]
        return self.g.ends(node, self.program.shapes[slot], max(likes, key=len))

    # -- relations ---------------------------------------------------------------------------------------------

    def _related(self, r: Relation, bundle: Bundle, axis: int, rank: int, data: str, many: bool) -> Bundle:
        """red_R along some axes of an array: axes that R leaves alone pass by."""
        source, target = r.source.box or (), r.target.box or ()
        before = bundle[:axis] if rank else []
        mine = bundle[axis : axis + len(source)] if rank else bundle
        after = bundle[axis + len(source) :] if rank else []
        made: dict[int, End] = {}
        wired = set[int]()
        for left, right, label in _split(r, self.names.table):
            if not label:
                made[right[0]] = mine[left[0]]
                wired.add(left[0])
                continue
            node = self.g.node("relation", short(label) + (", …" if many else ""), data)
            self.g.taken(node, [mine[i] for i in left])
            if not left and rank == 0:
                self.g.taken(node, mine)
            for j in right:
                made[j] = End(node, target[j], self.g.index())
            if not right:
                made.setdefault(-1, End(node, 1, self.g.index()))
        middle = [made[j] for j in range(len(target))]
        found = [*before, *middle, *after]
        return found or [made[-1]]

    # -- loops -------------------------------------------------------------------------------------------------

    def _loop(self, slot: int, op: Loop, data: str) -> Any:
        """A loop: its body once, in a frame; stacked arrays are read and written at index t."""
        args, c, m = self.program.args[slot], op.consts, op.carries
        used = self.parts.get(slot, set[int]())
        every = [*op.body.outputs, *(op.body.inputs[c : c + m] if op.keep else [])]
        wanted = [k for k in range(len(every)) if k < m or k in used]
        body = op.body.prune(op.body.inputs, [every[k] for k in wanted])
        boxes: dict[int, ArrayName] = {}
        outside: list[tuple[int, Any]] = []
        for k, (s, a) in enumerate(zip(body.inputs, args, strict=True)):
            here = self._stand(a)
            if k < c and self.own(a):
                boxes[s] = self._name(here)
            else:
                outside.append((k, self.value(a)))
        inner = _Reader(self.g, self.products, body, boxes, f"{data}.", INSIDE, self.names)
        start = len(self.g.nodes)
        for k, bundle in outside:
            s = body.inputs[k]
            inner.start(s, bundle if k < c + m else self._row(bundle, "[t]", body.shapes[s], data))
        inner.steps()
        found: list[Any] = [[]] * len(every)
        for k, s in zip(wanted, body.outputs, strict=True):
            bundle = inner.value(s)
            if k < m and k not in used:
                self.g.taken(self.g.node("next", "↻", data), bundle)
            found[k] = bundle if k < m else self._row(bundle, "t ↦", (op.length, *body.shapes[s]), data)
        self.g.framed(start, op.length, f"{op.length:,} rounds" + (", from the last" if op.reverse else ""))
        return found

    def _row(self, bundle: Bundle, label: str, shape: Sequence[int], data: str) -> Bundle:
        """An entry of a stacked array, or a stacked array of entries."""
        node = self.g.node("relation", label, data)
        self.g.taken(node, bundle)
        return self.g.ends(node, shape)


def _parts(bundle: Any) -> list[Bundle]:
    """The arrays of a value: one, or those of a tuple."""
    return bundle if bundle and isinstance(bundle[0], list) else [bundle]


def _nested(program: Program) -> bool:
    return any([isinstance(op, Block) for op in program.ops])


Split = tuple[list[int], list[int], str]


def _split(r: Relation, table: Callable[[Any], str]) -> list[Split]:
    """A relation as relations between some axes each: those of the source, of the target, and how it is called; the
    identity between two axes has no name."""
    span = r.span
    source, target = r.source.box or (), r.target.box or ()
    sides = list(range(len(source))), list(range(len(target)))
    if span is None or span.times != 1 or isinstance(r, Full):
        return [(*sides, _called(r, table))]
    if len(source) <= 1 and len(target) <= 1:
        one = _slice((list(span.left), list(span.right)), source[0], span.sizes) if source and target else ""
        return [(*sides, one or _called(r, table))]
    groups: list[tuple[set[int], tuple[list[int], list[int]]]] = []  # labels, axes of both sides
    for side, maps in enumerate((span.left, span.right)):
        for axis, m in enumerate(maps):
            mine = set(labels_of(m))
            touched = [g for g in groups if g[0] & mine]
            axes = tuple([sorted([x for g in touched for x in g[1][i]]) for i in (0, 1)])
            axes[side].append(axis)
            labels = mine.union(*[g[0] for g in touched])
            groups = [*[g for g in groups if g not in touched], (labels, (axes[0], axes[1]))]
    found: list[Split] = []
    for _, (left, right) in groups:
        maps = [span.left[i] for i in left], [span.right[j] for j in right]
        plain = len(left) == len(right) == 1 and all([_whole(m) for side in maps for m in side])
        if plain and source[left[0]] == target[right[0]]:
            found.append((left, right, ""))
        else:
            one = _slice(maps, source[left[0]], span.sizes) if len(left) == len(right) == 1 else ""
            found.append((left, right, one or _maps_text(*maps, table)))
    loose = [k for k in range(len(span.sizes)) if not any([k in g[0] for g in groups])]
    return [(*sides, _called(r, table))] if loose else found


def _slice(maps: tuple[list[Any], list[Any]], length: int, sizes: Sequence[int]) -> str:
    """[1:9:2], where a whole axis is read from a part of another."""
    (left,), (right,) = maps
    if type(left) is not Affine or len(left.terms) != 1 or not _whole(right) or left.terms[0][0] != right.terms[0][0]:
        return ""
    ((k, step),) = left.terms
    stop = left.offset + step * (sizes[k] - 1) + (1 if step > 0 else -1)
    start = str(left.offset) if left.offset else ""
    return f"[{start}:{'' if stop in (length, -1) else stop}{f':{step}' if step != 1 else ''}]"


def _whole(m: Any) -> bool:
    return type(m) is Affine and not m.offset and len(m.terms) == 1 and m.terms[0][1] == 1


def _called(r: Relation, table: Callable[[Any], str]) -> str:
    """A relation by a short name."""
    match r:
        case Point(at=at):
            return f"[{at}]"
        case Place(at=at):
            return f"{at} ↦"
        case Gather():
            return f"[{table(r.index)}]"
        case FunctionRelation():
            return f"{table(r.index)} ↦"
        case _:
            return relation_text(UNICODE, r)[0]


def _maps_text(left: Sequence[Any], right: Sequence[Any], table: Callable[[Any], str]) -> str:
    """Where numbers go, axis by axis: 2i+j ↦ i, j."""
    letters: dict[int, str] = {}

    def one(m: Any) -> str:
        for k in labels_of(m):
            letters.setdefault(k, "ijklmnpq"[len(letters) % 8])
        if isinstance(m, IndexTable):
            return f"{table(m.array)}[{', '.join([letters[k] for k in m.labels])}]"
        parts = [("−" if s < 0 else "+") + ("" if abs(s) == 1 else str(abs(s))) + letters[k] for k, s in m.terms]
        parts += [f"{m.offset:+d}".replace("-", "−")] if m.offset or not parts else []
        return "".join(parts).removeprefix("+")

    ends = [", ".join([one(m) for m in side]) for side in (right, left)]
    if not right:
        return f"[{ends[1]}]"
    if not left:
        return f"{ends[0]} ↦"
    return f"{ends[1]} ↦ {ends[0]}"
