"""Programs read as forms: each step of a program becomes an operation of an `Algebra`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape
from ..ops.opaque import Discrete, Get, Ruled, Select, Strongly
from ..programs.program import Constant, Program
from ..relations.base import Relation
from ..relations.kinds import Diagonal, Full, Function, Gather, Place, Point, Range
from .lifting import holds
from .polynomials import Algebra, Labels, Monomial, Polynomial, Power, Unreadable

CUT = 200
"""Programs with more steps are cut into named parts, so that the forms stay small."""
HEAVY = 12
"""How many factors a part of a long program may have before it gets a name."""
DEEP = 40
"""How many steps a part may be deep before it gets a name."""
LISTED = 12
"""Index arrays of up to this many places are written out where their matrix is defined."""


class Grouped:
    """A form seen under another shape: each axis a group of its axes."""

    def __init__(self, form: Polynomial, groups: list[Labels]) -> None:
        self.form, self.groups = form, groups


class Reader:
    """Reads programs; `parts` are the named parts of long ones, `known` the arrays that constants may be."""

    def __init__(self, algebra: Algebra, known: dict[str, Any], taken: Sequence[str]) -> None:
        self.algebra, self.known = algebra, known
        self.parts: list[tuple[str, Polynomial]] = []
        self.constants: dict[str, Any] = {}  # arrays without a name of their own
        self.chosen: dict[str, tuple[int, str]] = {}  # matrices that select rows: I_n[rows], by name
        self.spectra: dict[Polynomial, tuple[str, str]] = {}  # names of eigenvalues and eigenvectors
        self._selections: dict[Relation, Polynomial] = {}
        self.taken: set[str] = set(taken)

    def read(self, program: Program, inputs: Sequence[Polynomial]) -> list[Polynomial]:
        """The outputs of a program at forms."""
        program = program.prune(program.inputs, program.outputs)
        values: list[Any] = [None] * len(program.ops)
        for slot, x in zip(program.inputs, inputs, strict=True):
            values[slot] = x
        uses = [0] * len(program.ops)
        for args in program.args:
            for a in args:
                uses[a] += 1
        cut, depth = len(program.ops) > CUT, [0] * len(program.ops)
        for slot, op in enumerate(program.ops):
            if values[slot] is None:
                x = values[slot] = self.step(op, [values[a] for a in program.args[slot]], program.shapes[slot])
                depth[slot] = 1 + max([depth[a] for a in program.args[slot]], default=0)
                if isinstance(x, Polynomial) and x.products and slot not in program.outputs:
                    weight = sum([1 + len(p.factors) for p in x.products])
                    if depth[slot] > DEEP or (cut and (weight > HEAVY or (weight > 2 and uses[slot] > 1))):
                        depth[slot] = 0
                        name = self.fresh_name((), f"y{len(self.parts)}")
                        self.parts.append((name, x))
                        values[slot] = self.algebra.array(name, x.shape)
        found = [values[slot] for slot in program.outputs]
        if any([isinstance(x, Grouped) for x in found]):
            raise Unreadable("a result that is regrouped")
        return found

    def step(self, op: Any, xs: list[Any], shape: Labels) -> Any:
        """One step."""
        if any([isinstance(x, Grouped) for x in xs]):
            return self._regrouped(op, xs, shape)
        for kind in type(op).__mro__:
            if kind in STEPS:
                return STEPS[kind](self, op, xs, shape)
        raise Unreadable(f"a step {getattr(op, 'title', type(op).__name__)}")

    def constant(self, value: Any, shape: Labels) -> Polynomial:
        """A fixed array: one number, a multiple of the identity, an array that has a name, or a new name."""
        array = np.asarray(getattr(value, "value", value), float)
        if not array.size:
            return self.algebra.form(shape, [])
        if (array == array.flat[0]).all():
            return self.algebra.constant(array.flat[0], shape)
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        if square and (array == np.eye(len(array)) * array[0, 0]).all():
            return self.algebra.scaled(array[0, 0], self.algebra.of(self.algebra.identity(len(array))))
        symmetric = square and holds("symmetric", array)
        for name, known in (*self.known.items(), *self.constants.items()):
            known = np.asarray(known)
            if known.shape == array.shape and np.array_equal(known, array):
                return self.algebra.array(name, shape, symmetric)
            if known.ndim == 2 and known.shape[::-1] == array.shape and np.array_equal(known.T, array):
                return self.algebra.permuted(self.algebra.array(name, known.shape, symmetric), (1, 0))
            if known.shape == array.shape and np.array_equal(-known, array):
                return self.algebra.scaled(-1, self.algebra.array(name, shape, symmetric))
        name = self.fresh_name((), f"c{len(self.constants)}")
        self.constants[name] = array
        return self.algebra.array(name, shape, symmetric)

    def eigenvectors(self, x: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Eigenvalues and eigenvectors of a symmetric matrix, under names."""
        if x not in self.spectra:
            self.spectra[x] = self.fresh_name("λμν", "λ0"), self.fresh_name("VUW", "V0")
        values, vectors = self.spectra[x]
        return self.algebra.array(values, x.shape[:1]), self.algebra.array(vectors, x.shape)

    def fresh_name(self, letters: Sequence[str], otherwise: str) -> str:
        """A name that nobody has: one of the letters, or a word with as many underscores as it takes."""
        name = next((x for x in letters if x not in self.taken), otherwise)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def selection(self, R: Relation) -> Polynomial:
        """red_R as a matrix, target by source: rows of an identity, or its transpose."""
        if R in self._selections:
            return self._selections[R]
        if R.converse in self._selections:
            return self.algebra.permuted(self._selections[R.converse], (1, 0))
        n, m = R.target.size, R.source.size
        match R:
            case Diagonal():
                found = self.algebra.of(self.algebra.identity(n))
            case Full(times=k):
                found = self.algebra.constant(k, (n, m))
            case Range(turned=False, start=start, step=step):
                stop = start + step * n
                rows = f"{start or ''}:{stop if 0 <= stop < m else ''}" + (f":{step}" if step != 1 else "")
                found = self._rows(rows, n, m)
            case Gather() if n <= LISTED:
                found = self._rows(str([int(i) for i in np.ravel(R.index)]), n, m)
            case Point(at=at) | Place(at=at):
                place = m * n, str(at)
                name = next((k for k, v in self.chosen.items() if v == place), None) or self.fresh_name((), f"e{at}")
                self.chosen[name] = place
                self.algebra.units.add(name)
                unit = self.algebra.array(name, (m * n,))
                found = self.algebra.contracted(((0,),), (1, 0) if n == 1 else (0, 1), (unit,), {1: 1})
            case Range(turned=True) | Function():
                return self.algebra.permuted(self.selection(R.converse), (1, 0))
            case _:
                raise Unreadable(f"a sum along {type(R).__name__.lower()} pairs")
        self._selections[R] = found
        return found

    def _rows(self, rows: str, n: int, m: int) -> Polynomial:
        name = self.fresh_name("PQDEFGH", f"P{len(self.chosen)}")
        self.chosen[name] = m, rows
        return self.algebra.array(name, (n, m))

    def reduced(self, op: Reduction, xs: list[Polynomial], shape: Labels) -> Polynomial:
        """Σ red_R(x) along one axis."""
        parts: list[tuple[Any, Polynomial]] = []
        for R, x in zip(op.relations, xs, strict=True):
            before, after = R.source.box or (), R.target.box or ()
            if len(before) > 1 or len(after) > 1:
                raise Unreadable("a sum along pairs of several axes")
            kept = [i for i in range(x.rank) if not op.axis <= i < op.axis + len(before)]
            source = 1000
            axes = [source if i == op.axis and before else i for i in range(x.rank)]
            out = [*kept[: op.axis], *([1001] if after else []), *kept[op.axis :]]
            P = self.selection(R)
            parts.append((1, self.algebra.contracted(((1001, source), tuple(axes)), tuple(out), (P, x))))
        return self.algebra.total(parts, shape)

    def reshaped(self, x: Polynomial, shape: Labels) -> Any:
        """Axes of length 1 come and go; others are grouped, or split where identities allow it."""
        a, b = [n for n in x.shape if n != 1], [n for n in shape if n != 1]
        if a == b:
            places = [i for i, n in enumerate(shape) if n != 1]
            labels = [places.pop(0) if n != 1 else 1000 + i for i, n in enumerate(x.shape)]
            return self.algebra.contracted((tuple(labels),), tuple(range(len(shape))), (x,), enumerate(shape))
        groups = _grouping(x.shape, shape)
        if groups is not None:
            return Grouped(x, groups)
        groups = _grouping(shape, x.shape)
        if groups is None:
            raise Unreadable("a reshape")
        return self._split(x, shape, groups)

    def _split(self, x: Polynomial, shape: Labels, groups: list[Labels]) -> Polynomial:
        """An axis split into several: the identity of a product is a product of identities."""
        products: list[Monomial] = []
        for p in x.products:
            p = self.algebra.renamed(p, range(x.rank))
            factors: list[Power] = []
            for f in p.factors:
                free = [label for label in f.labels if label < x.rank]
                if all([len(groups[label]) == 1 for label in free]):
                    factors.append(f.at(lambda label: groups[label][0] if label < x.rank else label))
                    continue
                lengths = [[shape[k] for k in groups[label]] for label in free]
                if f.atom.kind != "identity" or len(free) < 2 or lengths[0] != lengths[1]:
                    raise Unreadable("a reshape")
                pairs = zip(groups[free[0]], groups[free[1]], strict=True)
                factors += [Power(self.algebra.identity(shape[i]), (i, j)) for i, j in pairs]
            products.append(Monomial(p.scale, tuple(factors), p.sizes))
        return self.algebra.form(shape, products)

    def _regrouped(self, op: Any, xs: list[Any], shape: Labels) -> Any:
        """A step on arrays whose axes are groups of axes."""
        first = xs[0]
        if isinstance(op, float):
            return Grouped(self.algebra.scaled(op, first.form), first.groups)
        if isinstance(op, Reshape) and first.form.shape == tuple(shape):
            return first.form
        if isinstance(op, Combination):
            groups = next(x.groups for x in xs if isinstance(x, Grouped))
            if all([isinstance(x, Grouped) and x.groups == groups and x.form.shape == first.form.shape for x in xs]):
                forms = [(k, x.form) for k, x in zip(op.coefficients, xs, strict=True)]
                return Grouped(self.algebra.total(forms, first.form.shape), groups)
        if isinstance(op, Contraction):
            return self._regrouped_product(op, xs)
        raise Unreadable("a reshape")

    def _regrouped_product(self, op: Contraction, xs: list[Any]) -> Any:
        widths: dict[int, int] = {}
        for labels, x in zip(op.labels, xs, strict=True):
            for k, label in enumerate(labels):
                width = len(x.groups[k]) if isinstance(x, Grouped) else 1
                if widths.setdefault(label, width) != width:
                    raise Unreadable("a reshape")
        parts = {label: [(label, k) for k in range(widths.get(label, 1))] for label in {*widths, *op.out}}
        numbers = {part: i for i, part in enumerate([p for ps in parts.values() for p in ps])}
        opened = [tuple([numbers[p] for label in labels for p in parts[label]]) for labels in op.labels]
        out = tuple([numbers[p] for label in op.out for p in parts[label]])
        extra = {numbers[label, 0]: n for label, n in op.extra}
        found = self.algebra.contracted(opened, out, [x.form if isinstance(x, Grouped) else x for x in xs], extra)
        if all([len(parts[label]) == 1 for label in op.out]):
            return found
        at, groups = 0, list[Labels]()
        for label in op.out:
            groups.append(tuple(range(at, at + len(parts[label]))))
            at += len(parts[label])
        return Grouped(found, groups)


def _grouping(fine: Labels, coarse: Labels) -> list[Labels] | None:
    """Which runs of the fine axes make each coarse axis."""
    found, k = list[Labels](), 0
    for n in coarse:
        group, size = list[int](), 1
        while size < n and k < len(fine):
            size *= fine[k]
            group.append(k)
            k += 1
        if size != n:
            return None
        found.append(tuple(group))
    return found if k == len(fine) else None


# -- steps ------------------------------------------------------------------------------------------------------------


Step = Callable[[Reader, Any, list[Polynomial], Labels], Any]


def _elementwise(reader: Reader, op: Elementwise, xs: list[Polynomial], shape: Labels) -> Polynomial:
    algebra, primitive = reader.algebra, op.primitive
    name = primitive.name
    if name == "power" or name.startswith("(_)"):
        return algebra.power(xs[0], primitive.parameter)
    if name in POWERS:
        return algebra.power(xs[0], POWERS[name])
    if name in ("divide", "(/)", "div", "/"):
        return algebra.times(xs[0], algebra.power(xs[1], -1))
    if name == "power_slope":
        less = algebra.total([(1, xs[1]), (-1, algebra.constant(1))], xs[1].shape)
        return algebra.times(xs[1], algebra.call("pow", [xs[0], less], shape))
    return algebra.call(NAMES.get(name) or name, xs, shape)


def _ruled(reader: Reader, op: Ruled, xs: list[Polynomial], shape: Labels) -> Any:
    algebra, parameters = reader.algebra, dict(op.parameters)
    x = xs[0]
    if x.rank > 2 and op.title in ("inv", "det", "cofactors", "solve"):
        raise Unreadable("matrices in stacks")
    match op.title:
        case "inv":
            return algebra.inverse(x)
        case "det":
            return algebra.determinant(x)
        case "cofactors":
            return algebra.contracted(((), (1, 0)), (0, 1), (algebra.determinant(x), algebra.inverse(x)))
        case "solve":
            rows = (2, 0) if parameters.get("transposed") else (0, 2)
            rest = tuple(range(3, 2 + xs[1].rank))
            return algebra.contracted((rows, (2, *rest)), (0, *rest), (algebra.inverse(x), xs[1]))
        case "expm" | "sinm" | "cosm" if len(xs) == 2:
            one = xs[1].single
            scale = xs[1].products[0].scale if len(xs[1].products) == 1 else 0
            plain = one is not None or (len(xs[1].products) == 1 and len(xs[1].products[0].factors) == 1)
            if plain and xs[1].products[0].factors[0].atom.kind == "identity":
                name = {"expm": "expm", "sinm": "cosm", "cosm": "sinm"}[op.title]
                sign = -1 if op.title == "cosm" else 1
                return algebra.scaled(sign * scale, algebra.permuted(algebra.whole(name, (x,), shape), (1, 0)))
            raise Unreadable(f"the derivative of {op.title}")
        case "slogdet":
            det = algebra.determinant(x)
            return (algebra.call("sign", (det,), ()), algebra.call("logabs", (det,), ()))
        case "eigh" if len(xs) == 1 and x.rank == 2:
            return reader.eigenvectors(x)
        case "mirrored":  # of a matrix that is symmetric
            return x
        case "max" | "min":
            return algebra.whole(op.title + _along(x, parameters["axis"]), xs, shape)
        case "polar" | "cholesky" | "expm" | "sinm" | "cosm" | "logm" | "sqrtm" if len(xs) == 1:
            return algebra.whole(op.title, xs, shape)
        case _:
            raise Unreadable(f"a step {op.title}")


def _discrete(reader: Reader, op: Discrete, xs: list[Polynomial], shape: Labels) -> Polynomial:
    algebra = reader.algebra
    match op.title:
        case "top":
            return algebra.whole("max" + _along(xs[0], dict(op.parameters)["axis"]), xs, shape)
        case "shares":
            along = _along(xs[0], dict(op.parameters)["axis"])
            for peak in ("max", "min"):
                at = algebra.whole(peak + along, xs[:1], xs[1].shape)
                if at is xs[1]:
                    return algebra.whole(f"at {peak}{along}", xs[:1], shape)
            raise Unreadable("a step shares")
        case "greater" | "greater_equal":
            return algebra.call("larger", xs, shape)
        case "less" | "less_equal":
            return algebra.call("larger", xs[::-1], shape)
        case "not_equal" if not xs[1].products and truth(xs[0]):
            return xs[0]
        case "isfinite":
            return algebra.constant(1, shape)
        case "share":  # of the halves of a matrix that is symmetric
            return algebra.constant(Fraction(1, 2), shape)
        case "float":
            return xs[0]
        case "¬":
            return algebra.total([(1, algebra.constant(1, shape)), (-1, xs[0])], shape)
        case "logical_and":
            return algebra.times(*xs)
        case _:
            raise Unreadable(f"a step {op.title}")


def _along(x: Polynomial, axis: Any) -> str:
    """What the name of a function along an axis ends with; nothing for all axes."""
    axes = range(x.rank) if axis is None else [axis] if isinstance(axis, int) else axis
    places = sorted({k % x.rank for k in axes})
    if len(places) == x.rank:
        return ""
    if x.rank != 2:
        raise Unreadable("a maximum along some of many axes")
    return str(places[0])


def truth(x: Polynomial) -> bool:
    """Whether all numbers of a form are 0 or 1."""
    return all([p.scale == 1 and not p.sizes for p in x.products]) and all(
        [f.atom.kind == "identity" or f.atom.name == "larger" for p in x.products for f in p.factors]
    )


def _select(reader: Reader, op: Select, xs: list[Polynomial], shape: Labels) -> Polynomial:
    """where(c, a, b) = c a + (1 − c) b."""
    algebra = reader.algebra
    c, a, b = xs
    parts = [(1, algebra.times(c, a)), (1, b), (-1, algebra.times(c, b))]
    return algebra.total(parts, shape)


POWERS: dict[str, Any] = {"root": Fraction(1, 2), "sqrt": Fraction(1, 2), "inverse": -1, "reciprocal": -1, "square": 2}
NAMES = {"ln": "log", "log0": "log", "absolute": "abs"}
STEPS: dict[type, Step] = {
    float: lambda r, op, xs, shape: r.algebra.scaled(op, xs[0]),
    Constant: lambda r, op, xs, shape: r.constant(op.value, shape),
    Combination: lambda r, op, xs, shape: r.algebra.total(list(zip(op.coefficients, xs, strict=True)), shape),
    Contraction: lambda r, op, xs, shape: r.algebra.contracted(op.labels, op.out, xs, op.extra),
    Reshape: lambda r, op, xs, shape: r.reshaped(xs[0], shape),
    Cast: lambda r, op, xs, shape: xs[0],
    Reduction: lambda r, op, xs, shape: r.reduced(op, xs, shape),
    Strongly: lambda r, op, xs, shape: r.step(op.op, xs, shape),
    Elementwise: _elementwise,
    Ruled: _ruled,
    Get: lambda r, op, xs, shape: xs[0][op.at],  # type: ignore[index]
    Discrete: _discrete,
    Select: _select,
}
