"""String diagrams as users hold them, and what each kind of thing is drawn as.

>>> import numpy as np, riesz as rz
>>> d = rz.jacobian(lambda x: x[1:] * x[:-1])(np.ones(4)).diagram()
>>> d.svg()[:4], d.json()["kind"]
('<svg', 'diagram')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ...calculus.derive import lower
from ...errors import SpaceError
from ...maps.derivation import Derivation, Family, Value
from ...maps.instances import Instance
from ...maps.linear_map import LinearMap
from ...maps.normal_form import Network
from ...maps.normal_form import laid_out as steps_of_network
from ...programs.passes.deferring import without_guards
from ...programs.program import Constant, Program
from ...spaces.space import Space
from ...terms.term import Arrow, Term
from ..display.display_objects import Display
from ..network_text import Named
from ..notation import ATOM, UNICODE
from ..program_text import Writer, component_names, input_names
from ..term_text import space_text
from .hulls import hulls, shown_way
from .layered import DiagramLayout, laid_out
from .reading_programs import ArrayName, Names, ReadProgram, read_program
from .svg_drawing import Hull, Panel, written
from .wire_graph import KINDS, WireGraph

STEPS = 400
"""Longer programs are not taken to normal form for the sake of a picture."""
LIMIT = 120
"""So many steps are drawn; the middle of longer programs is left out."""
SENTENCES, LINES, WIDE = 40, 8, 110
"""Of the words; of what the letters mean, and how long these lines are."""


class Diagram(Display):
    """A string diagram: wires are index sets, boxes arrays, dots equal indices, hexagons relations, triangles copies
    and sums. `svg()` is the picture, `json()` all that is in it, `words` what it shows; a notebook shows the picture.

    >>> import numpy as np, riesz as rz
    >>> A = np.arange(6.0).reshape(2, 3)
    >>> rz.jacobian(lambda x: A @ x)(np.ones(3)).diagram()
    A linear map from ℝ^3 to ℝ^2, from left to right.
    Input v: out i (3).
    Array A: in i (3), out j (2).
    Output w: in j (2).
    """

    kind = "diagram"

    def __init__(self, panels: Sequence[Panel], title: str) -> None:
        self.panels, self.title = list(panels), title

    @property
    def words(self) -> str:
        """The diagram in sentences, for those who do not see it."""
        lines = [f"{self.title}, from left to right."]
        for p in self.panels:
            lines += [f"{p.heading}:"] if p.heading else []
            lines += _sentences(p)
        return "\n".join(lines)

    @property
    def mirrored(self) -> Diagram:
        """The mirror image: the diagram of the adjoint."""
        panels = [p._replace(layout=p.layout.mirrored, mirrored=not p.mirrored) for p in self.panels]
        return Diagram(panels, self.title)

    def called(self, title: str) -> Diagram:
        """The same diagram under another title."""
        return Diagram(self.panels, title)

    def svg(self, alone: bool = False) -> str:
        """The picture, in the colour of the text around it; `alone`: for a file, dark or light as the reader's screen
        is."""
        return written(self.panels, self.title, self.words, alone)

    def save(self, path: Any) -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg(alone=True), encoding="utf-8")

    def json(self) -> dict[str, Any]:
        """Everything in the picture: nodes with their places and ids, wires with their points, frames and hulls."""
        return {"kind": self.kind, "title": self.title, "words": self.words, "panels": [_data(p) for p in self.panels]}

    def unicode(self) -> str:
        return self.words

    def body(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def _repr_svg_(self) -> str:
        return self.svg(alone=True)


def _role(p: Panel, kind: str) -> str:
    turned = {"copy": "sum", "sum": "copy", "input": "output", "output": "input"}
    return turned.get(kind, kind) if p.mirrored else kind


def _data(p: Panel) -> dict[str, Any]:
    g, letters = p.graph, p.graph.letters()
    places = [
        {"id": n.number, "kind": _role(p, n.kind), "label": n.label, "data": n.data, **at._asdict()}
        for n, at in zip(g.nodes, p.layout.nodes, strict=True)
    ]
    wires = [
        {
            "from": w.last if p.mirrored else w.first,
            "to": w.first if p.mirrored else w.last,
            "size": w.size,
            "name": letters.get(g.same(w.name), ""),
            "axes": w.axes[:: -1 if p.mirrored else 1],
            "times": w.times,
            "points": points,
        }
        for w, points in zip(g.wires, p.layout.wires, strict=True)
    ]
    return {
        "heading": p.heading,
        "width": p.layout.width,
        "height": p.layout.height,
        "nodes": places,
        "wires": wires,
        "frames": [{"nodes": sorted(f.nodes), "times": f.times, "words": f.words} for f in g.frames],
        "where": list(p.where),
        "hulls": [{**h._asdict(), "nodes": sorted(h.nodes), "starts": sorted(h.starts)} for h in p.hulls],
    }


def _sentences(p: Panel) -> list[str]:
    """A sentence for each node, from left to right."""
    g, letters = p.graph, p.graph.letters()
    sides = g.neighbours()[:: -1 if p.mirrored else 1]
    order = sorted([n for n in g.nodes if n.kind != "dot" or n.data], key=lambda n: p.layout.nodes[n.number][:2])
    found: list[str] = []

    def wires(which: Sequence[int]) -> str:
        shown = [f"{letters.get(g.same(g.wires[k].name), 'a number')} ({g.wires[k].size:,})" for k in which[:6]]
        shown = [s.replace("a number (1)", "a number") for s in shown]
        return ", ".join([*shown, f"{len(which) - 6} more"] if len(which) > 6 else shown)

    for n in order[:SENTENCES]:
        ends = [
            f"{word} {wires(side[n.number])}" for word, side in zip(("in", "out"), sides, strict=True) if side[n.number]
        ]
        name = KINDS[_role(p, n.kind)] + (f" {n.label}" if n.label else "")
        found.append(f"{name[0].upper()}{name[1:]}{': ' if ends else ''}{', '.join(ends)}.")
    if len(order) > SENTENCES:
        found.append(f"{len(order) - SENTENCES} more.")
    found += [f"Where {line}." for line in p.where]
    found += [f"A part is done {f.words}." for f in g.frames]
    return found + [f"{h.words[0].upper()}{h.words[1:]}." for h in p.hulls]


# -- what is drawn -------------------------------------------------------------------------------------------------


def diagram_of(thing: Any, columns: int | None = None, form: str = "auto", limit: int = LIMIT) -> Diagram:
    """The diagram of a map, a term, a program or a derivation. `columns`: with the order of contraction for so many
    right-hand sides; `form`: of a map, "normal", "steps" or "auto"; `limit`: draw at most so many steps."""
    if form not in ("auto", "normal", "steps"):
        raise SpaceError(f"diagram(form={form!r}): a map is drawn as 'normal' (its normal form), 'steps' or 'auto'")
    if limit < 3:
        raise SpaceError(f"diagram(limit={limit}): at least 3 steps are drawn")
    if columns is not None and not isinstance(thing, LinearMap):
        raise SpaceError(
            f"diagram(columns={columns}): only a linear map has a plan for right-hand sides; write D(x)[1]"
        )
    if isinstance(thing, LinearMap):
        return _map(thing, columns, form, limit)
    if isinstance(thing, Family):
        return _family(thing, limit)
    if isinstance(thing, Derivation):
        return _derivation(thing, limit)
    if isinstance(thing, Value):
        names = [name for name, _ in input_names(UNICODE, thing.domain, thing.names)]
        title = f"A function {_spaces(thing.domain, thing.codomain)}"
        return _program(thing.program, names, _ends("y", thing.codomain), title, limit)
    if isinstance(thing, Term):
        names = [name for name, _ in input_names(UNICODE, thing.domain)]
        title = f"A {'linear map' if thing.linear else 'function'} {_spaces(thing.domain, thing.codomain)}"
        return _program(lower(thing), names, _ends("y", thing.codomain), title, limit)
    if isinstance(thing, Program):
        names = [UNICODE.sub("x", k) for k in range(len(thing.inputs))]
        ends = [UNICODE.sub("y", k) for k in range(len(thing.outputs))]
        return _program(thing, names, ends, f"A program of {len(thing):,} steps", limit)
    if isinstance(thing, Arrow):
        raise SpaceError(f"{thing} has no spaces yet: give it one with .at(V), as in f.at(rz.R ** 3).diagram()")
    raise TypeError(f"nothing is known about how to draw a {type(thing).__name__}; give rz.derive(f, …) or a map")


def _spaces(V: Space, W: Space) -> str:
    return f"from {space_text(UNICODE, V)[0]} to {space_text(UNICODE, W)[0]}"


def _ends(letter: str, space: Space) -> list[str]:
    """The names of the components of a space; a letter where they have none."""
    names = component_names(space)
    if names == (0,):
        return [letter]
    return [UNICODE.sub(letter, k) if isinstance(k, int) else UNICODE.variable(k) for k in names]


def _panel(read: ReadProgram, where: Sequence[str], given: Sequence[Hull] = ()) -> Panel:
    g = read.graph
    levels = max([min(h.level, 6) for h in given], default=0)
    labels = _labels(g, laid_out(g, {}, levels))
    return Panel(g, laid_out(g, labels, levels), False, labels, given, "", _meanings(g, where))


def _labels(g: WireGraph, layout: DiagramLayout) -> dict[int, str]:
    """What is written on wires: each index once, where its wire goes straight, rather at an input."""
    letters, best, found = g.letters(), dict[int, tuple[Any, int]](), dict[int, str]()
    for k, (w, points) in enumerate(zip(g.wires, layout.wires, strict=True)):
        bend = abs(points[1][1] - points[0][1])
        mark = (bend > 8.0, g.nodes[w.first].kind != "input", bend), k
        if (i := g.same(w.name)) in letters:
            best[i] = min(best.get(i, mark), mark)
        if w.times > 1:
            found[k] = f"×{w.times:,}"
    for i, (_, k) in best.items():
        found[k] = f"{letters[i]}∈{g.wires[k].size} {found.get(k, '')}".rstrip()
    return found


def _meanings(g: WireGraph, where: Sequence[str]) -> list[str]:
    """Of the lines that say what letters mean, those that the boxes need."""
    known = {re.split("[ (]", line, maxsplit=1)[0]: line for line in where}
    needed, waiting = dict[str, None](), [n.label for n in g.nodes if n.kind in ("array", "scale")]
    while waiting and len(needed) <= LINES:
        for word in re.findall(r"[^\W\d][^\W²³⁰¹⁴-⁹]*[′']*", waiting.pop(0)):
            if word in known and word not in needed:
                needed[word] = None
                waiting.append(known[word].partition("=")[2])
    shown = [line for name, line in known.items() if name in needed]
    if len(shown) > LINES:
        shown = [*shown[: LINES - 1], "…"]
    return [line if len(line) <= WIDE else line[: WIDE - 1] + "…" for line in shown]


def _program(
    program: Program, names: Sequence[str], outputs: Sequence[str], title: str, limit: int, fixed: int = 0
) -> Diagram:
    """A program by its steps; constants have the names they have in print. `fixed`: so many inputs are a point, and
    what depends on them alone is an array."""
    program = without_guards(program)
    flags = program.dependent(program.inputs[fixed:])
    writer = Writer(UNICODE, program, flags if fixed else bytearray(len(flags)), [(name, ATOM) for name in names])
    boxes = {
        s: ArrayName(writer.tidy(writer.text[s][0]), str(s))
        for s, op in enumerate(program.ops)
        if type(op) is Constant or not flags[s]
    }
    moving = list(zip(program.inputs, names, strict=True))[fixed:]
    read = read_program(program, boxes, moving, outputs, limit)
    return Diagram([_panel(read, writer.definitions() if fixed else [])], title)


def _map(L: LinearMap, columns: int | None, form: str, limit: int) -> Diagram:
    title = f"A linear map {_spaces(L.domain, L.codomain)}"
    if (mirror := L.mirror) is not None and columns is None:
        return _map(mirror, columns, form, limit).mirrored.called(title)
    quick = L.leaves is None and ("network" in L.instance.known or len(L.instance.program) <= STEPS)
    if form == "normal" or columns is not None or (form == "auto" and quick):
        names = Named(UNICODE, L)
        used = {*names.taken, *names.letters}
        ends = [next((c for c in letters if c not in used), letters[0]) for letters in ("vuhp", "wzrq")]
        read = _network(L.values.net, names, _ends(ends[0], L.domain), _ends(ends[1], L.codomain), limit)
        plan = None if columns is None else L.plan(columns)
        found = [] if plan is None else hulls(read.products, plan)
        if plan is not None:
            way, sides = shown_way(plan), f"{columns:,} right-hand side{'s' if columns != 1 else ''}"
            title += f"; for {sides} {way.name}, {way.total(plan.columns):,} operations"
            if way is not plan.chosen:
                title += f" ({plan.chosen.name} {plan.flops:,})"
        return Diagram([_panel(read, names.definitions(), found)], title)
    program = L.steps.program
    fixed = len(program.inputs) - len(L.domain.leaves)
    point = [UNICODE.sub("p", k) for k in range(fixed)]
    return _program(program, [*point, *_ends("v", L.domain)], _ends("w", L.codomain), title, limit, fixed)


def _network(net: Network, names: Named, inputs: Sequence[str], outputs: Sequence[str], limit: int) -> ReadProgram:
    """A normal form: its entries as products, coefficients as boxes."""
    program, boxes = Program(share=False), dict[int, ArrayName]()

    def factor(slot: int) -> int:
        here = program.input(net.c.program.shapes[slot])
        boxes[here] = ArrayName(names.tidy(names.factor(slot)[0]), str(slot))
        return here

    with net.c.lock:
        steps_of_network(net, program, factor)
    moving = [s for s in program.inputs if s not in boxes]

    def constant(value: Any) -> str:
        return names.names.get(id(value)) or UNICODE.leaf(value)[0]

    known = Names(names.index, constant)
    return read_program(program, boxes, list(zip(moving, inputs, strict=True)), outputs, limit, known, "s")


def _family(f: Family, limit: int) -> Diagram:
    title = f"A linear map {_spaces(f.domain, f.codomain)} at each point of {space_text(UNICODE, f.point)[0]}"
    if f.mirror is not None:
        return _family(f.mirror, limit).mirrored.called(title)
    program, fixed = f.program, len(f.point.leaves)
    names = [name for name, _ in input_names(UNICODE, f.point, f.names)]
    own = f.domain is f.point
    moving = [f"d{name}" for name in names] if own else _ends("v", f.domain)
    ends = [f"d{name}" for name in _ends("f", f.codomain)] if own else _ends("w", f.codomain)
    if len(program) > STEPS:
        return _program(program, [*names, *moving], ends, title, limit, fixed)
    instance = Instance(program, tuple([object() for _ in range(fixed)]))
    given = [*zip(names, instance.point, strict=True), *f.captured(instance.point)]
    values = SimpleNamespace(net=instance.network)
    writer = Named(UNICODE, cast(Any, SimpleNamespace(values=values, names=tuple(given), instance=instance)))
    read = _network(instance.network, writer, moving, ends, limit)
    return Diagram([_panel(read, writer.definitions())], title)


def _derivation(D: Derivation, limit: int) -> Diagram:
    """The derivative beside its mirror image, the adjoint."""
    there = _family(D.derivative, limit)
    plain = D.function.domain.plain and D.function.codomain.plain
    back = there.mirrored if plain else _family(D.adjoint, limit)
    panels = [p._replace(heading=name) for d, name in ((there, "f′"), (back, "f′*")) for p in d.panels]
    spaces = _spaces(D.function.domain, D.function.codomain)
    return Diagram(panels, f"The derivative and the adjoint of a function {spaces}")
