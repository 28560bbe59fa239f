"""The normal form of a linear map as a person would write it: Xᵀ · diag(s) · X, c · (b ⊗ a), 2 · (I ⊗ VᵀV)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..maps.linear_map import LinearMap
from ..maps.normal_form import Coefficients, Entry, Factor, distinct, whole
from ..ops.op import Contraction, Reduction
from ..ops.opaque import Get
from ..programs.program import INPUT, Constant
from ..programs.sub_programs import Call
from ..relations import Function, Gather
from ..relations.index_algebra import Affine, IndexMap, IndexTable, labels_of
from .notation import ATOM, COMPOSE, POWER, PRODUCT, SUM, Notation, Text, two
from .program_text import Writer, wires
from .term_text import call, op_title

Shape = tuple[int, ...]
SHORT = 14
UNIT: Text = ("I", ATOM)
"""The identity; an array of that name is not it."""


class Named(Writer):
    """A writer of coefficients that knows the names of arrays."""

    def __init__(self, n: Notation, L: LinearMap) -> None:
        self.net, self.marks, n = L.values.net, n.marked, n.plain
        net = self.net
        self.names = _names(n, L.names)
        self.unnamed = 0
        indices = [x for _, x in L.names if type(x) is np.ndarray and x.dtype.kind in "iu"]
        self.tables: list[tuple[str, Any]] = [(self.names[id(x)], x) for x in indices]
        steps = {a for k in net.kept.values() for moves, a in k.args if not moves}
        wanted = sorted({f.slot for e in net.entries for f in e.factors} | steps)
        program = net.c.program.prune(net.params, wanted)
        inputs = [(self.names.get(id(x), n.sub("x", i)), ATOM) for i, x in enumerate(L.instance.point)]
        self.taken = {text for text, _ in inputs} | set(self.names.values())
        super().__init__(n, program, bytearray(len(program.ops)), inputs, self.names.values())
        self.taken.update([name for name, _ in self.constants])
        self.spare = [c for c in self.spare if c not in self.taken]
        self.big = [c for c in "ABCDEFGHKLMNPQRSTUVW" if c not in self.taken]
        self.given = dict(zip(wanted, program.outputs, strict=True))
        self.short: dict[int, Text] = {}

    def _constant(self, value: Any) -> Text:
        known = self.names.get(id(value))
        return (known, ATOM) if known is not None else self._made(value) or super()._constant(value)

    def index(self, array: Any) -> str:
        """An index array, by the name it has outside."""
        flat: Any = np.asarray(array)
        for name, x in self.tables:
            if x.shape == flat.shape and bool((x == flat).all()):
                return name
        word = self.n.name("index" if "index" not in self.taken else "indices")
        self.tables.append((self.n.sub(word, self.unnamed) if self.unnamed else word, flat))
        self.unnamed += 1
        return self.tables[-1][0]

    def factor(self, slot: int) -> Text:
        """A factor: by its name, by a short expression, or by a letter that is explained below."""
        here = self.given[slot]
        if here not in self.short:
            text = self._matrices(here) or self.text[here]
            short = SHORT * self.n.breadth
            atom = text[1] == ATOM or (text[1] >= POWER and self._length(text) <= short)
            if not atom or self._length(text) > short:
                letters = self.big if len(self.program.shapes[here]) > 1 else self.spare
                name = letters.pop(0) if letters else self.n.sub("C", len(self.lets))
                self.lets.append((name, text[0]))
                text = name, ATOM
            self.short[here] = self.marks(text[0], slot), text[1]
        return self.short[here]

    def applied(self, op: Any, inside: list[Text], moving: list[bool]) -> str:
        """A step that is no contraction, on its arguments."""
        n = self.n
        if isinstance(op, Call) and sum(moving) == 1 and (text := self._inside(op, inside, moving)) is not None:
            name, inside = text + n.listed("(", inside[:1], ")")[0], [inside[moving.index(True)]]
        elif isinstance(op, Get):
            name = n.sub(n["π"], op.at)
        elif len(inside) > 1:
            return call(n, op, inside)
        else:
            name = self._reduction(op.relations[0], op.axis) if isinstance(op, Reduction) else op_title(n, op)
        return name if inside[0][0] == n.hole() else n.infix([(name, ATOM), inside[0]], "•", COMPOSE)[0]

    def _reduction(self, r: Any, axis: int = 0) -> str:
        known = [name for name, x in self.tables if isinstance(r, (Function, Gather)) and np.array_equal(x, r.index)]
        if known:
            return self.n["π" if isinstance(r, Gather) else "ι"] + f"[{':, ' * axis}{known[0]}]"
        return super()._reduction(r, axis)

    def _matrices(self, slot: int) -> Text | None:
        """A product of two named matrices, side by side."""
        op, args = self.program.ops[slot], self.program.args[slot]
        given = all([self.program.ops[a] is INPUT or type(self.program.ops[a]) is Constant for a in args])
        return self._beside(op, [self.text[a][0] for a in args]) if given else None

    def _beside(self, op: Any, names: list[str]) -> Text | None:
        """VᵀV, for a product of two matrices with short names."""
        pattern = two(op) if type(op) is Contraction else None
        if pattern is None or pattern.symbol != "⋆" or any([len(self.n.seen(name)) > 2 for name in names]):
            return None
        shown = [self.n.turned((name, ATOM)) if t else name for name, t in zip(names, pattern.turned, strict=True)]
        return "".join(shown[::-1] if pattern.first else shown), POWER

    def _made(self, value: Any) -> Text | None:
        """A constant that was computed of two that have names."""
        op, args, _ = self.net.c.origins.get(id(value), (None, (), None))
        values = [getattr(self.net.c.program.ops[a], "value", None) for a in args]
        names: list[Any] = [self.names.get(id(x)) for x in values]
        return self._beside(op, names) if names and None not in names else None


def _names(n: Notation, given: Sequence[tuple[str, Any]]) -> dict[int, str]:
    """The names of arrays by their identity. Two arrays never share one, and none is called as the identity is."""
    names: dict[int, str] = {}
    taken = {UNIT[0]}
    for word, x in given:
        if id(x) in names:
            continue
        name = n.variable(word)
        while name in taken:
            name += n.prime
        names[id(x)] = name
        taken.add(name)
    return names


def entry_text(w: Named, e: Entry, row: Shape, column: Shape) -> Text:
    """One entry."""
    n, c = w.n, w.net.c
    scalars = [w.factor(f.slot) for f in e.factors if not f.labels]
    factors = [f for f in e.factors if f.labels]
    core = _core(w, e, factors)
    letters = _letters(n, e)
    placed, read = _position(w, c, e.out, row, letters), _position(w, c, e.inn, column, letters)
    parts = [_sum(w, e, factors)]
    if core is not None:
        parts = [(n["ι"] + placed, ATOM), core, (n["π"] + read, ATOM)]
        parts = [part for part, there in zip(parts, (placed, core is not UNIT, read), strict=True) if there]
    lead = [(n.number(abs(e.scale)), ATOM), *scalars] if abs(e.scale) != 1.0 else scalars
    body = [*lead, *(parts or [UNIT])]
    text = n.infix(body, "·", COMPOSE) if len(body) > 1 else body[0]
    if text is UNIT and e.scale > 0:
        return UNIT
    return (n["−"] + n.within(text, COMPOSE), SUM) if e.scale < 0 else (text[0], PRODUCT if len(body) > 1 else text[1])


def _position(w: Named, c: Coefficients, maps: Sequence[IndexMap], box: Shape, letters: dict[int, str]) -> str:
    """Which part of an array it is about: [1:], nothing where it is all of it, [i] for labels that are met twice."""
    met = [k for m in maps for k in labels_of(m)]
    everything = all([m == Affine(0) if n == 1 else whole(m, n, c.sizes) for m, n in zip(maps, box, strict=True)])
    if everything and len(met) == len(set(met)):
        return ""
    shown: list[str] = []
    for m, n in zip(maps, box, strict=True):
        if type(m) is IndexTable:
            shown.append(w.index(m.array))
        elif type(m) is Affine and len(m.terms) == 1 and met.count(m.terms[0][0]) == 1:
            ((k, s),) = m.terms
            stop = m.offset + s * (c.sizes[k] - 1) + (1 if s > 0 else -1)
            end = "" if (s > 0 and stop >= n) or stop < 0 else str(stop)
            start = "" if (s > 0 and m.offset == 0) or (s < 0 and m.offset == n - 1) else str(m.offset)
            shown.append(f"{start}:{end}" + (f":{s}" if s != 1 else ""))
        else:
            assert type(m) is Affine
            shown.append(_affine(w.n, m, letters))
    return "[" + ", ".join(shown) + "]"


def _affine(n: Notation, m: Affine, letters: dict[int, str]) -> str:
    """2i+j+1."""
    terms = sorted([(letters[k], s) for k, s in m.terms])
    parts = [("-" if s < 0 else "+") + ("" if abs(s) == 1 else str(abs(s))) + k for k, s in terms]
    parts += [f"{m.offset:+d}"] if m.offset or not parts else []
    return "".join(parts).removeprefix("+").replace("-", n["−"])


def _letters(n: Notation, e: Entry) -> dict[int, str]:
    return {k: "ijklmnpqrstuvw"[i] if i < 14 else n.sub("i", i) for i, k in enumerate(e.labels)}


def _core(w: Named, e: Entry, factors: list[Factor]) -> Text | None:
    """What happens between the two sides, as products of matrices; None where index notation is needed."""
    n = w.n
    out, inn = distinct(e.out), distinct(e.inn)
    groups: list[set[int]] = [{k} for k in dict.fromkeys((*out, *inn))]
    for f in factors:
        touched = [g for g in groups if g & set(f.labels)]
        groups = [g for g in groups if g not in touched] + [set(f.labels).union(*touched)]
    ends = {k: i for i, k in reversed([*enumerate((*out, *inn))])}  # the first place counts
    groups.sort(key=lambda g: min([ends[k] for k in g if k in ends], default=len(out)))
    shown: list[Text] = []
    sides: list[tuple[list[int], list[int]]] = []
    for g in groups:
        mine = [f for f in factors if set(f.labels) <= g]
        rows, columns = [k for k in out if k in g], [k for k in inn if k in g]
        text = _component(w, mine, rows, columns)
        if text is None:
            return None
        sides.append((rows, columns))
        shown.append(text)
    ordered = [k for r, _ in sides for k in r] == list(out) and [k for _, s in sides for k in s] == list(inn)
    lone = [bool(r) != bool(s) for r, s in sides]
    if not shown:
        return UNIT
    if not ordered or (any(lone) and not all(lone)):
        return None
    if all([t is UNIT for t in shown]):
        return UNIT
    if not any(lone):
        return _outer(n, shown)
    # (u ⊗ v) ⊗ w is not u ⊗ (v ⊗ w): one is the other's adjoint
    column, row = [[t for t, s in zip(shown, sides, strict=True) if s[i]] for i in (0, 1)]
    if not column:
        return n.turned(_outer(n, row)), ATOM
    return _outer(n, [_outer(n, side) for side in (column, row) if side])


def _outer(n: Notation, parts: list[Text]) -> Text:
    return parts[0] if len(parts) == 1 else (n.infix(parts, "⊗", POWER)[0], PRODUCT)


def _component(w: Named, factors: list[Factor], rows: list[int], columns: list[int]) -> Text | None:
    """A connected part: the identity, a diagonal, a vector, or a chain of matrices from rows to columns."""
    n = w.n
    if rows == columns:
        if not factors:
            return UNIT
        if all([list(f.labels) == rows for f in factors]):
            parts = [w.factor(f.slot) for f in factors]
            inside = n.infix(parts, "∗", PRODUCT) if len(parts) > 1 else parts[0]
            return n.name("diag") + n.parens(inside[0]), ATOM
    if not columns or not rows:
        if not factors:
            return "1", ATOM
        ends = rows or columns
        if len(factors) == 1 and list(factors[0].labels) == ends:
            return w.factor(factors[0].slot)
        if len(ends) != 1:
            return None
        chain = _chain(w, factors, ends[0], None)
        return None if chain is None else n.infix(chain, "·", COMPOSE)
    if len(rows) == len(columns) == 1 and rows != columns:
        chain = _chain(w, factors, rows[0], columns[0])
        return None if chain is None else (n.infix(chain, "·", COMPOSE) if len(chain) > 1 else chain[0])
    both = [k for k in rows if k in columns]
    if len(factors) != 1:
        return None
    slot, labels, _ = factors[0]
    if not both:
        return w.factor(slot) if labels == (*rows, *columns) else None
    if rows[: len(both)] == columns[: len(both)] == both:  # a column, or a matrix, at every index both sides have
        down, across = rows[len(both) :], columns[len(both) :]
        blocks = n.name("blocks") + n.parens(w.factor(slot)[0]), ATOM
        if down and labels == (*both, *down, *across):
            return blocks
        if labels == (*both, *across, *down):
            return n.turned(blocks), ATOM
    return None


def _chain(w: Named, factors: list[Factor], at: int, end: int | None) -> list[Text] | None:
    """A product of matrices and diagonals along one label after the other."""
    n = w.n
    left = list(factors)
    found: list[Text] = []
    while left:
        here = [f for f in left if f.labels == (at,)]
        if here:
            text = w.factor(here[0].slot)
            if end is None and len(left) == 1:
                return [*found, text]
            left.remove(here[0])
            found.append((n.name("diag") + n.parens(text[0]), ATOM))
            continue
        onward = [f for f in left if len(f.labels) == 2 and at in f.labels and f.labels[0] != f.labels[1]]
        if len(onward) != 1:
            return None
        f = onward[0]
        left.remove(f)
        turned = f.labels[1] == at
        text = w.factor(f.slot)
        found.append((n.turned(text), ATOM) if turned else text)
        at = f.labels[0] if turned else f.labels[1]
    return found if end is None or at == end else None


def _sum(w: Named, e: Entry, factors: list[Factor]) -> Text:
    """In index notation: [i, j ← k] Σ A[i, l] · B[l, k]."""
    n = w.n
    letters = _letters(n, e)

    def side(maps: Sequence[IndexMap]) -> str:
        parts: list[str] = []
        for m in maps:
            if type(m) is IndexTable:
                parts.append(w.index(m.array) + "[" + ", ".join([letters[k] for k in m.labels]) + "]")
            else:
                assert type(m) is Affine
                parts.append(_affine(n, m, letters))
        return ", ".join(parts)

    product = [f"{w.factor(f.slot)[0]}[{', '.join([letters[k] for k in f.labels])}]" for f in factors] or ["1"]
    inner = [letters[k] for k in e.labels if k not in e.outer]
    total = (n.sub(n["Σ"], "".join(inner)) + " " if inner else "") + f" {n['·']} ".join(product)
    return f"[{side(e.out)} {n['←']} {side(e.inn)}] {total}", PRODUCT


def _joined(n: Notation, texts: Sequence[Text]) -> Text:
    """A sum, signs in front."""
    if not texts:
        return "0", ATOM
    if len(texts) == 1:
        return texts[0]
    total = texts[0][0]
    for text, _ in texts[1:]:
        bare = n.unsigned(text)
        total += f" + {text}" if bare is None else f" {n['−']} {bare}"
    return total, SUM


def _rows(w: Named, L: LinearMap) -> list[list[Text]]:
    """The blocks between leaves; hubs become lets."""
    net, n = w.net, w.n
    ends = list(net.inputs)
    hubs: dict[int, str] = {}
    steps = 0
    for node in net.order:
        if node in net.outputs:
            continue
        kept = net.kept.get(node)
        if kept is not None and isinstance(kept.op, Get) and len(net.shapes[kept.args[0][1]]) == 1:
            hubs[node] = hubs[kept.args[0][1]]  # the only result of that step
            continue
        hubs[node] = n.sub("h", steps)
        w.lets.append((hubs[node], _line(w, node, ends, hubs, L)[0]))
        steps += 1
    if steps == 1 and len(net.outputs) == 1:  # nothing but a step
        (last,) = [_line(w, o, ends, hubs, L) for o in net.outputs]
        if last[0] == n.sub("h", 0):
            return [[(w.lets.pop()[1], COMPOSE)]]
    if hubs:
        return [[_line(w, o, ends, hubs, L)] for o in net.outputs]
    return [[_block(w, net.blocks.get(o, {}).get(i, []), o, i) for i in ends] for o in net.outputs]


def _block(w: Named, entries: Sequence[Entry], node: int, end: int) -> Text:
    shapes = w.net.shapes
    return _joined(w.n, [entry_text(w, e, shapes[node], shapes[end]) for e in entries])


def _line(w: Named, node: int, ends: list[int], hubs: dict[int, str], L: LinearMap) -> Text:
    net, n = w.net, w.n
    names = {**{s: t[0] for s, t in zip(ends, wires(n, L.domain), strict=True)}, **hubs}
    if node in net.kept:
        kept = net.kept[node]
        inside = [w.factor(a) if not moves else (names[a] or n.hole(), ATOM) for moves, a in kept.args]
        return w.applied(kept.op, inside, [moves for moves, _ in kept.args]), ATOM
    texts: list[Text] = []
    for a, es in net.blocks.get(node, {}).items():
        body = _block(w, es, node, a)
        if names[a]:
            body = (names[a], ATOM) if body is UNIT else n.infix([body, (names[a], ATOM)], "•", COMPOSE)
        texts.append(body)
    return _joined(n, texts)


def normal_form_text(n: Notation, L: LinearMap) -> str:
    """The normal form, with what its letters mean."""
    w = Named(n, L)
    rows = _rows(w, L) or [[("0", ATOM)]]
    body = n.matrix([[w.tidy(t[0]) for t in row] for row in rows])
    return n.where(body, w.definitions())
