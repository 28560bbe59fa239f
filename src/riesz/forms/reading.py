"""Programs read as forms: each step of a program becomes an operation of an `Algebra`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.discrete_fourier import Transform
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single
from ..ops.op_rules import OpRules
from ..ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..programs.passes.deferring import Deferred
from ..programs.passes.fusing import SparseProduct
from ..programs.program import Constant, Program
from ..programs.sub_programs import Block
from .exact_numbers import TIES
from .lifting import holds
from .polynomials import Algebra, Atom, Labels, Monomial, Polynomial, Power, SpectralParts, Unreadable, factors_of
from .selections import Selections
from .step_groups import inside_sums, of_places, opened

CUT = 200
"""Programs with more steps are cut into named parts, so that the forms stay small."""
HEAVY = 12
"""How many factors a part of a long program may have before it gets a name."""
DEEP = 40
"""How many steps a part may be deep before it gets a name; a quarter of that in long programs."""
FOLDED = (Discrete, Select, Contraction, Reduction)
"""Steps on fixed arrays whose numbers are known, so that conditions on them are."""
LISTED = 4096
"""Arrays of more numbers are not looked at."""
NICE = 10**4
"""Multiples of captured vectors are fractions with denominators up to this."""
PARTS = {"eigh": ("λμν", "VUW"), "svd": ("UΦ", "sς", "VΨ"), "qr": ("QH", "RT")}
"""Names for the parts of decompositions."""


class Grouped:
    """A form seen under another shape: each axis a group of its axes."""

    def __init__(self, form: Polynomial, groups: list[Labels]) -> None:
        self.form, self.groups = form, groups


class Reader:
    """Reads programs; `parts` are the named parts of long ones, `known` the arrays that constants may be."""

    def __init__(
        self, algebra: Algebra, known: dict[str, Any], taken: Sequence[str], indices: dict[str, Any] | None = None
    ) -> None:
        self.algebra, self.known = algebra, known
        self.parts: list[tuple[str, Polynomial, int]] = []  # with how many axes are rows of a matrix
        self.constants: dict[str, Any] = {}  # arrays without a name of their own
        arrays = {name: np.asarray(v) for name, v in known.items()}
        self._by_numbers = {_numbers(v): name for name, v in reversed(arrays.items())}
        self._whole = {
            name: v.astype(float) for name, v in arrays.items() if v.dtype.kind in "iub"
        }  # labels y, also as 1 − y
        self.decompositions: dict[tuple[str, Polynomial], tuple[str, ...]] = {}  # kind, matrix: names of its parts
        self.taken: set[str] = set(taken)
        self.selections = Selections(algebra, self.fresh_name, indices or {})
        algebra.named = self.named_vector

    def read(self, program: Program, inputs: Sequence[Polynomial], direction: Atom | None = None) -> list[Polynomial]:
        """The outputs of a program at forms; those of a derivative are linear in a direction."""
        program = program.prune(program.inputs, program.outputs)
        values: list[Any] = [None] * len(program.ops)
        for slot, x in zip(program.inputs, inputs, strict=True):
            values[slot] = x
        uses, inside = program.uses(), inside_sums(program)
        cut, depth = len(program.ops) > CUT and not of_places(program), [0] * len(program.ops)
        fixed: list[Any] = [op.value if type(op) is Constant else None for op in program.ops]
        for slot, op in enumerate(program.ops):
            if values[slot] is not None or inside[slot]:
                continue
            op, args = opened(program, slot, inside)
            numbers = [fixed[a] for a in args]
            if type(op) in FOLDED and not any([k is None or np.size(k) > LISTED for k in numbers]):
                fixed[slot] = op.run(*numbers)
                if isinstance(op, Discrete):
                    values[slot] = self.constant(fixed[slot], program.shapes[slot])
            if values[slot] is None:
                x = values[slot] = self.step(op, [values[a] for a in args], program.shapes[slot])
                depth[slot] = 1 + max([depth[a] for a in args], default=0)
                if isinstance(x, Polynomial) and x.products and slot not in program.outputs:
                    weight = sum([1 + len(p.factors) for p in x.products])
                    heavy = cut and (weight > HEAVY or (weight > 2 and uses[slot] > 1))
                    if heavy or depth[slot] > (DEEP // 4 if cut else DEEP):
                        depth[slot] = 0
                        values[slot] = self._part(x, direction)
        found = [values[slot] for slot in program.outputs]
        return [self._flat(x, direction is not None) if isinstance(x, Grouped) else x for x in found]

    def _flat(self, x: Grouped, linear: bool) -> Polynomial:
        """A regrouped result: a map has rows for its entries anyway."""
        if linear:
            return x.form
        shape = [math.prod([x.form.shape[k] for k in group]) for group in x.groups]
        if len(shape) == 1 and x.form.rank == 2:
            return self.algebra.whole("vec", (x.form,), shape)
        return self._shaped(x.form, shape)

    def _shaped(self, x: Polynomial, shape: Sequence[int]) -> Polynomial:
        """An array under another shape, as it is."""
        return self.algebra.whole("reshape", (x, *[self.algebra.constant(n) for n in shape]), shape)

    def _part(self, x: Polynomial, direction: Atom | None) -> Polynomial:
        """A form under a name; of one that is linear in a direction, its matrix has the name."""
        moves = direction is not None and any([f.atom is direction for f in factors_of([x])])
        name = self.fresh_name((), f"{'J' if moves else 'y'}{len(self.parts)}")
        if direction is None or not moves:
            self.parts.append((name, x, 0))
            return self.algebra.array(name, x.shape)
        L = self.algebra.coefficient(x, direction)
        self.parts.append((name, L, x.rank))
        out, columns = tuple(range(x.rank)), tuple(range(x.rank, L.rank))
        vector = self.algebra.of(direction)
        return self.algebra.contracted(((*out, *columns), columns), out, (self.algebra.array(name, L.shape), vector))

    def step(self, op: Any, xs: list[Any], shape: Labels) -> Any:
        """One step."""
        if any([isinstance(x, Grouped) for x in xs]):
            return self._regrouped(op, xs, shape)
        return STEPS[type(op)](self, op, xs, shape)

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
        if square and (half := self._half(array)) is not None:
            return half
        symmetric = square and holds("symmetric", array)
        for turned in (False, True) if array.ndim == 2 else (False,):
            for sign in (1, -1):
                name = self._by_numbers.get(_numbers(sign * (array.T if turned else array)))
                if name is not None:
                    found = self.algebra.array(name, array.shape[::-1] if turned else array.shape, symmetric)
                    found = self.algebra.permuted(found, (1, 0)) if turned else found
                    return self.algebra.scaled(sign, found)
        places = np.flatnonzero(array)
        if array.ndim == 1 and len(places) == 1:
            unit = self.selections.unit(int(places[0]), len(array))
            return self.algebra.scaled(array[places[0]], unit)
        for name, known in self._whole.items():
            if known.shape == array.shape and (line := _multiple_and_shift(known, array)) is not None:
                one = self.algebra.constant(line[1], shape)
                return self.algebra.total([(line[0], self.algebra.array(name, shape, symmetric)), (1, one)], shape)
        if array.ndim == 2 and (array.sum(1) == 1).all() and np.isin(array, (0, 1)).all() and min(array.shape) > 1:
            return self.selections.rows(array.argmax(1), array.shape[1])
        name = self.fresh_name((), f"c{len(self.constants)}")
        self.constants[name] = array
        self._by_numbers[_numbers(array)] = name
        if holds("stochastic", array):
            self.algebra.stochastic.add(name)
        return self.algebra.array(name, shape, symmetric)

    def named_vector(self, numbers: Sequence[Any]) -> Polynomial | None:
        """k · v, or k · v + s for whole numbers v, of a captured vector v; None where there is none."""
        array = np.array([float(k) for k in numbers])
        for name, value in self.known.items():
            v = np.asarray(value)
            if v.shape != array.shape or v.dtype.kind not in "iubf" or not np.isfinite(v := v.astype(float)).all():
                continue
            low, high = int(np.argmin(v)), int(np.argmax(v))
            if v[low] == v[high]:
                continue
            k = Fraction((array[high] - array[low]) / (v[high] - v[low])).limit_denominator(NICE)
            s = Fraction(array[low] - float(k) * v[low]).limit_denominator(NICE) if name in self._whole else Fraction(0)
            if k and np.allclose(float(k) * v + float(s), array, rtol=1e-14, atol=0):
                parts = [(k, self.algebra.array(name, v.shape)), (s, self.algebra.constant(1))]
                return self.algebra.total(parts, v.shape)
        return None

    def _half(self, array: Any) -> Polynomial | None:
        """k times one half of a matrix of ones."""
        n, corner = len(array), array[-1, 0] or array[0, -1]
        for name, half in (("tril", np.tril), ("triu", np.triu)):
            for k in (0, -1 if name == "tril" else 1):
                if (array == corner * half(np.ones((n, n)), k)).all():
                    return self.algebra.scaled(corner, self.algebra.half(name, n, k))
        return None

    def decomposed(self, kind: str, x: Polynomial) -> tuple[Polynomial, ...]:
        """The parts of a decomposition under names: eigenvalues and eigenvectors, singular values and vectors, Q R."""
        if (kind, x) not in self.decompositions:
            self.decompositions[kind, x] = tuple([self.fresh_name(some, f"{some[0]}0") for some in PARTS[kind]])
        names = self.decompositions[kind, x]
        (m, n), k, array = x.shape, min(x.shape), self.algebra.array
        if kind == "eigh":
            self.algebra.spectra[names[1]] = SpectralParts(x, names[0], names[1])
            return array(names[0], (n,)), array(names[1], (n, n))
        if kind == "svd":
            self.algebra.spectra[names[0]] = SpectralParts(x, names[1], names[2])
            right = self.algebra.permuted(array(names[2], (n, k)), (1, 0))
            return array(names[0], (m, k)), array(names[1], (k,)), right
        self.algebra.triangular[names[1]] = "upper"
        return array(names[0], (m, k)), array(names[1], (k, n))

    def fixed(self, *xs: Polynomial) -> bool:
        """Whether forms are made of captured arrays alone."""
        names = {f.atom.name for f in factors_of(xs) if f.atom.kind == "array"}
        return all([name in self.known or name in self.constants or name in self.selections.chosen for name in names])

    def triangle(self, x: Polynomial, lower: bool) -> Polynomial:
        """One half of a matrix, which is the matrix itself where that is known."""
        one = x.single
        if one is not None and one.power == 1:
            lies = "lower" if one.labels == (0, 1) else "upper"
            if one.atom.name == "cholesky" and lower == (lies == "lower"):
                return x
            if one.atom.name in self.algebra.triangular and one.atom.symmetric:  # diagonal
                return x
            if one.atom.name in self.algebra.triangular and lower == (
                (self.algebra.triangular[one.atom.name] == "lower") == (lies == "lower")
            ):
                return x
        return self.algebra.whole("tril" if lower else "triu", (x,), x.shape)

    def fresh_name(self, letters: Sequence[str], otherwise: str) -> str:
        """A name that nobody has: one of the letters, or a word with as many underscores as it takes."""
        name = next((x for x in letters if x not in self.taken), otherwise)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

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
        split: dict[int, Labels] = {}
        for labels, x in zip(op.labels, xs, strict=True):
            for k, label in enumerate(labels):
                if isinstance(x, Grouped):
                    lengths = tuple([x.form.shape[i] for i in x.groups[k]])
                    widths[label] = len(lengths)
                    if split.setdefault(label, lengths) != lengths:
                        raise Unreadable("a reshape")
                else:
                    widths.setdefault(label, 1)
        for i, (labels, x) in enumerate(zip(op.labels, xs, strict=True)):
            if not isinstance(x, Grouped) and any([widths[label] > 1 for label in labels]):
                shape = [n for k, label in enumerate(labels) for n in split.get(label, (x.shape[k],))]
                xs[i] = self.reshaped(x, tuple(shape)) if constant(x) else self._shaped(x, shape)
                ends = [0]
                for label in labels:
                    ends.append(ends[-1] + widths[label])
                xs[i] = Grouped(xs[i], [tuple(range(a, b)) for a, b in pairwise(ends)])
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


def _numbers(array: Any) -> tuple[Any, bytes]:
    """What two arrays of the same numbers have in common."""
    return array.shape, (np.asarray(array, float) + 0.0).tobytes()


def _multiple_and_shift(known: Any, array: Any) -> tuple[int, int] | None:
    """Small k and s of array = k · known + s, as in 1 − y and 2y − 1."""
    low, high = known.flat[np.argmin(known)], known.flat[np.argmax(known)]
    if not np.isfinite([low, high]).all() or low == high:
        return None
    below, above = array.flat[np.argmin(known)], array.flat[np.argmax(known)]
    k = round(float((above - below) / (high - low)), 9)
    shift = round(float(below - k * low), 9)
    small = k and not k % 1 and not shift % 1 and abs(k) < 5 and abs(shift) < 5
    return (int(k), int(shift)) if small and np.array_equal(k * known + shift, array) else None


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


Step = Callable[[Reader, Any, list[Any], Labels], Any]


def _elementwise(reader: Reader, op: Elementwise, xs: list[Polynomial], shape: Labels) -> Polynomial:
    algebra, primitive = reader.algebra, op.primitive
    name = primitive.name
    if name == "power" or name.startswith("(_)"):
        return algebra.power(xs[0], primitive.parameter)
    if name in POWERS:
        return algebra.power(xs[0], POWERS[name])
    if name in ("divide", "(/)", "div", "/", "ratio"):
        return algebra.times(xs[0], algebra.power(xs[1], -1))
    if name == "power_slope":
        less = algebra.total([(1, xs[1]), (-1, algebra.constant(1))], xs[1].shape)
        return algebra.times(xs[1], algebra.call("pow", [xs[0], less], shape))
    if name == "larger":
        return _condition(algebra, name, xs[0], xs[1], shape)
    if name in ("minimum", "maximum"):
        return _bounded(algebra, name, xs, shape)
    return algebra.call(NAMES.get(name) or name, xs, shape)


def _bounded(algebra: Algebra, name: str, xs: list[Polynomial], shape: Labels) -> Polynomial:
    """min(max(u, a), b) = clip(u, a, b) for numbers a < b; min(u, ∞) = u and max(u, −∞) = u."""
    for x, bound in (xs, xs[::-1]):
        if _number(bound) == (np.inf if name == "minimum" else -np.inf):
            return algebra.times(algebra.constant(1, shape), x)
    other = "maximum" if name == "minimum" else "minimum"
    for x, bound in (xs, xs[::-1]):
        one = x.single
        if one is None or one.atom.kind != "call" or one.atom.name != other or not constant(bound):
            continue
        for u, first in (one.atom.args, one.atom.args[::-1]):
            if constant(first) and x.shape == tuple(shape):
                low, high = (first, bound) if name == "minimum" else (bound, first)
                if not low.products or not high.products or low.products[0].scale < high.products[0].scale:
                    inner = algebra.form(shape, [algebra.renamed(p, one.labels) for p in u.products])
                    return algebra.call("clip", [inner, low, high], shape)
    return algebra.call(name, xs, shape)


def _ruled(reader: Reader, op: Ruled, xs: list[Polynomial], shape: Labels) -> Any:
    algebra, parameters = reader.algebra, dict(op.parameters)
    x = xs[0]
    if x.rank > 2 and op.title in ("inv", "det", "cofactors", "solve"):
        return _stacked(algebra, op.title, xs, bool(parameters.get("transposed")))
    match op.title:
        case "inv":
            return algebra.inverse(x)
        case "det":
            return algebra.determinant(x)
        case "cofactors":
            return _cofactors(algebra, *xs)
        case "solve":
            rows = (2, 0) if parameters.get("transposed") else (0, 2)
            rest = tuple(range(3, 2 + xs[1].rank))
            return algebra.contracted((rows, (2, *rest)), (0, *rest), (algebra.inverse(x), xs[1]))
        case "slogdet":
            det = algebra.determinant(x)
            return (algebra.call("sign", (det,), ()), algebra.call("logabs", (det,), ()))
        case "eigh" | "svd" | "qr" if len(xs) == 1 and x.rank == 2 and not parameters.get("full"):
            return reader.decomposed(op.title, x)
        case "solve_sylvester":  # a y + y b = c
            a, b, c = [algebra.permuted(y, (1, 0)) for y in xs[:2]] + xs[2:] if parameters.get("transposed") else xs
            if a is b and _commute(algebra, a, c):
                return algebra.scaled(
                    Fraction(1, 2), algebra.contracted(((0, 2), (2, 1)), (0, 1), (algebra.inverse(a), c))
                )
            raise Unreadable("a Sylvester equation")
        case "solve_triangular" if not parameters.get("unit"):
            lower = bool(parameters.get("lower"))
            inverse = algebra.inverse(reader.triangle(x, lower))
            rows = (2, 0) if parameters.get("transposed") else (0, 2)
            rest = tuple(range(3, 2 + xs[1].rank))
            return algebra.contracted((rows, (2, *rest)), (0, *rest), (inverse, xs[1]))
        case name if name in SLOPES and len(xs) == 2:
            return _slope_of_matrices(algebra, name, x, xs[1], parameters.get("at") == 1)
        case "mirrored":  # of a matrix that is symmetric
            return x
        case "max" | "min" if "axis" in parameters:
            return algebra.whole(op.title + _along(x, parameters["axis"]), xs, shape)
        case "polar" | "cholesky" | "sqrtm" | "pinv" if len(xs) == 1 and x.rank == 2:
            return algebra.whole(op.title, xs, shape)
        case name if name in SLOPES and len(xs) == 1 and x.rank == 2:
            return algebra.whole(name, xs, shape)
        case _:
            raise Unreadable(f"a step {op.title}")


def _cofactors(algebra: Algebra, x: Polynomial, *ms: Polynomial) -> Polynomial:
    """det(x) x⁻ᵀ, or its derivative in one direction m: det(x) (tr(x⁻¹ m) x⁻ᵀ − x⁻ᵀ mᵀ x⁻ᵀ)."""
    det, inverse = algebra.determinant(x), algebra.inverse(x)
    if not ms:
        return algebra.contracted(((), (1, 0)), (0, 1), (det, inverse))
    m, *others = ms
    if others:
        raise Unreadable("the third derivative of a determinant")
    one = algebra.contracted(((), (2, 3), (3, 2), (1, 0)), (0, 1), (det, inverse, m, inverse))
    other = algebra.contracted(((), (2, 0), (3, 2), (1, 3)), (0, 1), (det, inverse, m, inverse))
    return algebra.total([(1, one), (-1, other)], x.shape)


def _stacked(algebra: Algebra, title: str, xs: list[Polynomial], turned: bool) -> Polynomial:
    """Inverses, determinants and solutions of a stack of matrices."""
    x = xs[0]
    stack, n = tuple(range(x.rank - 2)), x.rank
    if title == "det":
        return algebra.whole("det", (x,), x.shape[:-2])
    inverse = algebra.whole("inverse", (x,), x.shape)
    if title == "inv":
        return inverse
    if title == "cofactors":
        det = algebra.whole("det", (x,), x.shape[:-2])
        return algebra.contracted((stack, (*stack, n, n + 1)), (*stack, n + 1, n), (det, inverse))
    if xs[1].rank < n - 1:
        raise Unreadable("a solution for a stack of matrices")
    rows = (n + 1, n) if turned else (n, n + 1)
    rest = (n + 2,) if xs[1].rank == n else ()
    return algebra.contracted(((*stack, *rows), (*stack, n + 1, *rest)), (*stack, n, *rest), (inverse, xs[1]))


SLOPES = {"expm": (1, "expm"), "sinm": (1, "cosm"), "cosm": (-1, "sinm"), "logm": (1, "inverse")}
SLOPES |= {"sinhm": (1, "coshm"), "coshm": (1, "sinhm")}
"""Functions of matrices and their derivatives in directions that commute with the matrix."""


def _slope_of_matrices(algebra: Algebra, name: str, x: Polynomial, d: Polynomial, turned: bool) -> Polynomial:
    """f'(x)[d], or its adjoint: f'(x) d where the two commute."""
    if not _commute(algebra, algebra.permuted(x, (1, 0)) if turned else x, d):
        raise Unreadable(f"the derivative of {name} in a direction that does not commute")
    sign, other = SLOPES[name]
    slope = algebra.inverse(x) if other == "inverse" else algebra.whole(other, (x,), x.shape)
    return algebra.scaled(sign, algebra.contracted(((2, 0) if turned else (0, 2), (2, 1)), (0, 1), (slope, d)))


def _commute(algebra: Algebra, a: Polynomial, b: Polynomial) -> bool:
    """Whether a b = b a, seen in the forms."""
    ab, ba = [algebra.contracted(((0, 2), (2, 1)), (0, 1), pair) for pair in ((a, b), (b, a))]
    return ab is ba or algebra.multiplied_out(ab) is algebra.multiplied_out(ba)


def _discrete(reader: Reader, op: Discrete, xs: list[Polynomial], shape: Labels) -> Polynomial:
    algebra, parameters = reader.algebra, dict(op.parameters)
    match op.title:
        case "top":
            return algebra.whole("max" + _along(xs[0], parameters["axis"]), xs, shape)
        case "shares" if "axis" in parameters:
            along = _along(xs[0], parameters["axis"])
            for peak in ("max", "min"):
                at = algebra.whole(peak + along, xs[:1], xs[1].shape)
                if at is xs[1]:
                    return algebra.whole(f"at {peak}{along}", xs[:1], shape)
            raise Unreadable("a step shares")
        case "greater" | "greater_equal" | "less" | "less_equal" | "equal" | "not_equal" if all(map(constant, xs)):
            one, other = [_number(x) for x in xs]
            return algebra.constant(float(getattr(np, op.title)(one, other)), shape)
        case "greater_equal" | "less_equal" | "equal" if xs[0] is xs[1]:  # x = x asks for nan
            return algebra.constant(1, shape)
        case "greater" | "less" | "not_equal" if xs[0] is xs[1]:
            return algebra.constant(0, shape)
        case "greater" | "greater_equal" | "less" | "less_equal" if any([np.isinf(_number(x)) for x in xs]):
            return algebra.constant(float(getattr(np, op.title)(*[_number(x) for x in xs])), shape)  # other numbers
        case "greater" | "greater_equal":
            return _condition(algebra, "exceeds" if op.title == "greater" else "reaches", xs[0], xs[1], shape)
        case "less" | "less_equal":
            return _condition(algebra, "exceeds" if op.title == "less" else "reaches", xs[1], xs[0], shape)
        case "not_equal" if not xs[1].products and truth(xs[0]):
            return xs[0]
        case "equal" | "not_equal" if not reader.fixed(*xs):  # of numbers that vary: never, where derivatives are
            return algebra.constant(int(op.title == "not_equal"), shape)
        case "equal":
            return algebra.call("equal", xs, shape)
        case "not_equal":
            return algebra.total([(1, algebra.constant(1, shape)), (-1, algebra.call("equal", xs, shape))], shape)
        case "isfinite":
            return algebra.constant(1, shape)
        case "share":  # of the halves of a matrix that is symmetric
            return algebra.constant(Fraction(1, 2), shape)
        case "float":
            return xs[0]
        case "¬" | "invert" if op.title == "¬" or truth(xs[0]):
            return algebra.total([(1, algebra.constant(1, shape)), (-1, xs[0])], shape)
        case "logical_and" | "bitwise_and" if all(map(truth, xs)):
            return algebra.times(*xs)
        case "logical_or" | "bitwise_or" if all(map(truth, xs)):  # 1 − (1 − a) (1 − b)
            one = algebra.constant(1, shape)
            neither = algebra.times(*[algebra.total([(1, one), (-1, x)], shape) for x in xs])
            return algebra.total([(1, one), (-1, neither)], shape)
        case _:
            raise Unreadable(f"a step {op.title}")


def _condition(algebra: Algebra, kind: str, u: Polynomial, v: Polynomial, shape: Labels) -> Polynomial:
    """[u > v], one of TIES: [b > max(z, a)] = [b > z] and [min(z, b) > a] = [z > a] for numbers a < b, [∞ > u] = 1."""
    if np.isinf(_number(u)) or np.isinf(_number(v)):
        return algebra.constant(float(_number(u) > _number(v)), shape)
    for x, other, name, sign in ((v, u, "maximum", 1), (u, v, "minimum", -1)):
        one = x.single
        if one is not None and one.power == 1 and one.atom.name == name and constant(other):
            for z, bound in (one.atom.args, one.atom.args[::-1]):
                if constant(bound) and sign * _number(other) > sign * _number(bound):
                    z = algebra.form(x.shape, [algebra.renamed(p, one.labels) for p in z.products])
                    return _condition(algebra, kind, *((z, other) if name == "minimum" else (other, z)), shape)
    return algebra.call(kind, (u, v), shape)


def _along(x: Polynomial, axis: Any) -> str:
    """What the name of a function along an axis ends with; nothing for all axes."""
    axes = range(x.rank) if axis is None else [axis] if isinstance(axis, int) else axis
    places = sorted({k % x.rank for k in axes})
    if len(places) == x.rank:
        return ""
    if x.rank != 2:
        raise Unreadable("a maximum along some of many axes")
    return str(places[0])


def constant(x: Polynomial) -> bool:
    """Whether a form is one number at every index."""
    return not any([p.factors for p in x.products])


def _number(x: Polynomial) -> float:
    """The number that a form is at every index; 0 where it is none."""
    return float(x.products[0].scale) if constant(x) and x.products else 0.0


def truth(x: Polynomial) -> bool:
    """Whether all numbers of a form are 0 or 1."""
    if len(x.products) == 2:  # 1 − c
        (one,), (other,) = [[p for p in x.products if bool(p.factors) is some] or [None] for some in (False, True)]
        if one is None or other is None or (one.scale, other.scale) != (1, -1):
            return False
        return _conditions(other)
    return all([p.scale == 1 and _conditions(p) for p in x.products]) and len(x.products) < 2


def _conditions(p: Monomial) -> bool:
    """Whether a product is one of conditions."""
    return not p.sizes and all([f.atom.kind == "identity" or f.atom.name in (*TIES, "equal") for f in p.factors])


def _select(reader: Reader, op: Select, xs: list[Polynomial], shape: Labels) -> Polynomial:
    """where(c, a, b) = c a + (1 − c) b."""
    algebra = reader.algebra
    c, a, b = xs
    for one, other in ((a, b), (b, a)):
        if np.isnan(_number(other)):  # where it is defined
            return algebra.times(algebra.constant(1, shape), one)
    parts = [(1, algebra.times(c, a)), (1, b), (-1, algebra.times(c, b))]
    return algebra.total(parts, shape)


POWERS: dict[str, Any] = {"root": Fraction(1, 2), "sqrt": Fraction(1, 2), "inverse": -1, "reciprocal": -1, "square": 2}
NAMES = {"ln": "log", "log0": "log", "absolute": "abs"}
STEPS = OpRules[Step]("forms.reading.STEPS")
"""What a step is in closed forms. Programs with others have none: `Unreadable`."""

STEPS("k · x", float)(lambda r, op, xs, shape: r.algebra.scaled(op, xs[0]))
STEPS("an array with a name", Constant)(lambda r, op, xs, shape: r.constant(op.value, shape))
STEPS("a sum of products", Combination)(
    lambda r, op, xs, shape: (
        r.selections.combined(op.coefficients, xs, shape)
        or r.algebra.total(list(zip(op.coefficients, xs, strict=True)), shape)
    )
)
STEPS("a product over indices", Contraction)(
    lambda r, op, xs, shape: r.algebra.contracted(op.labels, op.out, xs, op.extra)
)
STEPS("axes grouped or split", Reshape)(lambda r, op, xs, shape: r.reshaped(xs[0], shape))
STEPS("nothing", Cast)(lambda r, op, xs, shape: xs[0])
STEPS("a product with a selection", Reduction)(lambda r, op, xs, shape: r.selections.reduced(op, xs, shape))
STEPS("as the op inside", Strongly)(lambda r, op, xs, shape: r.step(op.op, xs, shape))
STEPS("f(x), powers as powers", Elementwise)(_elementwise)
STEPS("inverses, determinants, maxima, functions of matrices, parts of decompositions by name", Ruled)(_ruled)
STEPS("one of several", Get)(lambda r, op, xs, shape: xs[0][op.at])
STEPS("comparisons; shares of a maximum", Discrete)(_discrete)
STEPS("c a + (1 − c) b", Select)(_select)
_NONE = (Single, Transform, Take, Put, Declared, Convolution, ExchangedLeg, Block, Deferred, SparseProduct)


@STEPS("no closed form", *_NONE)
def _unreadable(reader: Reader, op: Any, xs: list[Polynomial], shape: Labels) -> Polynomial:
    raise Unreadable(f"a step {getattr(op, 'title', type(op).__name__)}")
