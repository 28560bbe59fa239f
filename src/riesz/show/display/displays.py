"""What each kind of thing is shown as."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import VectorError
from ...maps.derivation import Derivation, Family, Value
from ...maps.gradients.factored import Factored
from ...maps.linear_map import LinearMap
from ...maps.normal_form import Structure
from ...maps.planning import MapPlan
from ...maps.structured import Shown, Sparsity
from ...programs.cost import Cost
from ...programs.program import Program
from ...relations.base import Relation
from ...relations.index_sets import Set
from ...relations.plans import Plan as RelationPlan
from ...spaces.formal_vectors import Formal, TensorValue
from ...spaces.space import R, Space
from ...terms.named.named_sums import red
from ...terms.term import Arrow, Term
from ..diagrams.diagram import diagram_of
from ..explain import Explanation
from ..face import latex, mathml, text
from ..notation import UNICODE
from .display_objects import Display, DisplayGroup, FactTable, Formula, bundle_of
from .map_picture import MapPicture

if TYPE_CHECKING:
    from ...maps.solvers.factorised import Solver

STEPS = 400
"""Longer programs are not taken to normal form for the sake of a display, nor are as many blocks shown."""
HUBS, DRAWN, PAIRED = 64, 5000, 20_000
"""Nor are more hubs; programs of more steps are not drawn unasked, nor relations of larger sets."""


def display(thing: Any) -> Display:
    """What a notebook shows of a thing, as data with a rendering for each use: `unicode()`, `latex()`, `mathml()`,
    `html()`, `svg()`, `json()`.

    >>> import numpy as np, riesz as rz
    >>> d = rz.display(rz.jacobian(np.sin)(np.zeros(3)))
    >>> d.kind, "<math" in d.html(), d.svg()[:4]
    ('map', True, '<svg')
    """
    if isinstance(thing, Display):
        return thing
    for kind in type(thing).__mro__:
        if (maker := DISPLAYS.get(kind) or UNLOADED.get(f"{kind.__module__}.{kind.__name__}")) is not None:
            return maker(thing)
    own = getattr(thing, "displayed", None)  # of rooms behind this one
    if own is not None:
        return own()
    raise TypeError(f"rz.display takes what riesz made: maps, derivations, plans, …; got a {type(thing).__name__}")


def bundle(thing: Any, include: Container[str] | None, exclude: Container[str] | None) -> dict[str, Any]:
    """What a notebook asks for, by MIME type."""
    return bundle_of(display(thing), include, exclude)


def formula_of(thing: Any) -> Formula:
    """A thing in the three alphabets."""
    return Formula(lambda: text(thing), lambda: latex(thing), lambda ids: mathml(thing, ids))


def _with_diagram(kind: str, thing: Any, steps: int) -> Display:
    folds: list[tuple[str, Display]] = [("diagram", diagram_of(thing))] if steps <= DRAWN else []
    return DisplayGroup(kind, lambda: text(thing), formula_of(thing), folds=folds)


def _term(t: Arrow) -> Display:
    facts = [f"{text(t.domain)} → {text(t.codomain)}"] if isinstance(t, Term) else []
    return DisplayGroup("formula", lambda: text(t), formula_of(t), facts)


def _map(L: LinearMap) -> Display:
    """Formula, structure in words, and where the numbers are; the formula alone where structure could take long."""
    quick = L.leaves is None and ("network" in L.instance.known or len(L.instance.program) <= STEPS)
    if not quick or len(L.domain.leaves) * len(L.codomain.leaves) > STEPS or len(L.values.net.hubs) > HUBS:
        return DisplayGroup("map", lambda: text(L), formula_of(L), [f"{L.shape[0]:,} × {L.shape[1]:,}"])
    net = L.values.net
    stored = sum([net.c.size(slot) for slot in {f.slot for e in net.entries for f in e.factors}])
    symmetric = ["symmetric"] if "symmetric" in L.facts else []
    facts = [f"{L.shape[0]:,} × {L.shape[1]:,}", *symmetric, str(L.structure), f"{stored:,} numbers stored"]
    picture = MapPicture(L) if all(L.shape) else None
    folds: list[tuple[str, Display]] = [("diagram", diagram_of(L))]
    return DisplayGroup("map", lambda: text(L), formula_of(L.simplify()), facts, picture, folds)


def _relation(r: Relation) -> Display:
    """Formula, and which pairs it has: a picture of the sum along it."""
    known = r.span is not None
    facts = [f"from {text(r.source)} to {text(r.target)}", *([f"{r.count:,} pairs"] if known else [])]
    if not known or not 0 < min(r.source.size, r.target.size) <= max(r.source.size, r.target.size) <= PAIRED:
        return DisplayGroup("formula", lambda: text(r), formula_of(r), facts)
    summed = red(r).at(R**r.source)
    L = Derivation(summed).derivative(np.zeros(summed.domain.leaves[0].shape))
    return DisplayGroup("formula", lambda: text(r), formula_of(r), facts, MapPicture(L), [("diagram", diagram_of(L))])


def _explanation(e: Explanation) -> Display:
    head = ("equation", "reason")
    whole = formula_of(e.derivation)
    rules = FactTable("explanation", repr(e), e.rules, head, "Differentiate")
    adjoints = FactTable("explanation", "", e.adjoints, head, "Take adjoints")
    return _Explained(rules, adjoints, whole)


class _Explained(Display):
    """Rules, adjoints, and the derivation they give together."""

    kind = "explanation"

    def __init__(self, rules: FactTable, adjoints: FactTable, together: Formula) -> None:
        self.rules, self.adjoints, self.together = rules, adjoints, together

    def unicode(self) -> str:
        return self.rules.unicode()

    def body(self) -> str:
        return self.rules.body() + self.adjoints.body() + "<div>Together</div>" + self.together.body()

    def json(self) -> dict[str, Any]:
        rows = {"rules": [list(r) for r in self.rules.rows], "adjoints": [list(r) for r in self.adjoints.rows]}
        return {"kind": self.kind, **rows, "together": self.together.json(), "unicode": self.unicode()}


def _plan(p: MapPlan) -> Display:
    counts = [(w, (w.once, w.each, w.total(p.columns), w.numbers)) for w in p.ways]
    rows = [(("→ " if w is p.chosen else "") + w.name, *[f"{n:,}" for n in found]) for w, found in counts]
    sides = f"{p.columns:,} right-hand side{'s' if p.columns != 1 else ''}"
    head = ("way", "once", "each", "together", "numbers")
    return FactTable("plan", repr(p), rows, head, f"{p.words}; {sides}; the arrow marks the cheapest way")


def _cost(c: Cost) -> Display:
    return FactTable("cost", repr(c), [("operations", f"{c.flops:,}"), ("numbers kept", f"{c.numbers:,}")])


def _structure(s: Structure) -> Display:
    rows = [("kind", s.kind), ("nonzeros, at most", f"{s.nonzeros:,}"), ("rank, at most", f"{s.rank:,}")]
    return FactTable("structure", repr(s), rows, title=s.words)


def _solver(s: Solver) -> Display:
    rows = [("size", f"{s.shape[0]:,} × {s.shape[1]:,}"), ("way", s.name)]
    for label, value in (("operations, about", getattr(s, "flops", None)), ("1 / condition, about", s.rcond)):
        rows += [(label, f"{value:.3g}")] if isinstance(value, (int, float)) else []
    return FactTable("solver", repr(s), rows, title="a solver")


def _factored(G: Factored) -> Display:
    rows = [("size", " × ".join([f"{n:,}" for n in G.shape])), ("rank, at most", f"{G.rank:,}")]
    with contextlib.suppress(VectorError):  # others are not sums of outer products
        for k, (U, V) in enumerate(G.factors):
            left, right = [f"{UNICODE.sub(c, k)}" for c in "UV"]
            sizes = [" × ".join(map(str, a.shape)) for a in (U, V)]
            rows.append((f"{left}ᵀ {right}", f"{left} {sizes[0]}, {right} {sizes[1]}"))
    return FactTable("gradient", repr(G), rows, title=repr(G))


def _lines(kind: str) -> Callable[[Any], Display]:
    """A thing that is words."""
    return lambda x: FactTable(kind, repr(x), [], title=repr(x))


def _running(p: RelationPlan) -> Display:
    rows = [tuple(line.split(": ", 1)) for line in p.explain().splitlines()]
    return FactTable("plan", repr(p), rows)


DISPLAYS: dict[type, Callable[[Any], Display]] = {
    Set: formula_of,
    Space: formula_of,
    Formal: formula_of,
    TensorValue: formula_of,
    Arrow: _term,
    Relation: _relation,
    Program: lambda p: _with_diagram("program", p, len(p)),
    Value: lambda f: _with_diagram("program", f, len(f)),
    Family: lambda f: _with_diagram("map", f, len(f)),
    Derivation: lambda D: _with_diagram("derivation", D, len(D.derivative)),
    LinearMap: _map,
    Shown: formula_of,  # closed forms, and views in one notation
    Explanation: _explanation,
    MapPlan: _plan,
    RelationPlan: _running,
    Cost: _cost,
    Sparsity: _lines("sparsity"),
    Structure: _structure,
    Factored: _factored,
}
"""The display of each class; classes of later rooms have a method `displayed`."""
UNLOADED: dict[str, Callable[[Any], Display]] = {"riesz.maps.solvers.factorised.Solver": _solver}
"""Those whose modules wait until they are needed, by name."""
