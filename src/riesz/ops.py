"""The operations a program's steps are made of. Each knows its result's shape, how it runs, and its transpose.

What an op means for differentiation is its kind: a `Linear` op is linear in all its arguments together, a `Multilinear` one
in each of them apart, an `Elementwise` one is a named primitive p^X. Nothing else is ever needed.
"""

from __future__ import annotations

import math
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .contractions import charge, number, pair, single
from .errors import RelationError
from .interning import Node
from .relations import Relation
from .vectors import Formal, Product, add_leaves, contract_formal, dense, weak

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]
Labels = tuple[int, ...]


class Op(Node):
    """An operation on leaves."""

    def shape_of(self, shapes: tuple[Shape, ...]) -> Any:
        """The shape of the result, remembered."""
        known: dict[Any, Any] = cast(Any, self.__dict__).setdefault("_shapes", {})
        shape = known.get(shapes)
        if shape is None:
            shape = known[shapes] = self.result(shapes)
        return shape

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        """The shape of the result."""
        raise NotImplementedError

    def run(self, *xs: Any) -> Any:
        """The result on numbers."""
        raise NotImplementedError


class Linear(Op):
    """Linear in all arguments together: a map from their direct sum."""

    def only(self, which: tuple[int, ...]) -> Op:
        """The op on some of its arguments, the others being zero."""
        raise NotImplementedError


class Multilinear(Op):
    """Linear in each argument while the others stay fixed."""

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        """The adjoint of the op as a function of argument k, which takes the cotangent in its place."""
        raise NotImplementedError


class Elementwise(Op):
    """p^X: a named primitive at every index; arguments broadcast as in NumPy."""

    primitive: Any

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)

    def run(self, *xs: Any) -> Any:
        if len(xs) == 1:
            return self.primitive.run(dense(xs[0]))
        whole = [weak(x) for x in xs]
        return self.primitive.run(*whole) if any([np.ndim(x) for x in whole]) else self.primitive.run(*[dense(x) for x in xs])


class Contraction(Multilinear):
    """Σ over labels of a product: one tuple of labels per argument, the labels of the result, and the sizes of
    labels that occur in the result only (axes of ones)."""

    labels: tuple[Labels, ...]
    out: Labels
    extra: tuple[tuple[int, int], ...] = ()

    def check(self) -> None:
        lost = [label for label, _ in self.extra if label not in self.out or any([label in ls for ls in self.labels])]
        if lost:
            raise ValueError(f"contraction: the extra labels {lost} must occur in the result and in no argument")

    def sizes(self, shapes: tuple[Shape, ...]) -> dict[int, int]:
        """The size of each label."""
        sizes = dict(self.extra)
        for labels, shape in zip(self.labels, shapes, strict=True):
            for label, n in zip(labels, shape, strict=True):
                if sizes.setdefault(label, n) != n:
                    raise ValueError(f"contraction {self}: label {label} has sizes {sizes[label]} and {n}")
        return sizes

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        sizes = self.sizes(shapes)
        return tuple([sizes[label] for label in self.out])

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        known: dict[Any, Op] = cast(Any, self.__dict__).setdefault("_transposes", {})
        if (k, shapes) not in known:
            known[k, shapes] = self._transpose(k, shapes)
        return known[k, shapes]

    def _transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        sizes = self.sizes(shapes)
        labels = (*self.labels[:k], self.out, *self.labels[k + 1 :])
        out = self.labels[k]
        extra = {label: sizes[label] for label in out if not any(label in ls for ls in labels)}
        return contraction(labels, out, extra)

    @cached_property
    def trivial(self) -> bool:
        """Whether this is the identity."""
        return self.labels == (self.out,) and not self.extra and len(set(self.out)) == len(self.out)

    @cached_property
    def swapped(self) -> Contraction:
        """The same product with its two arguments exchanged."""
        return contraction(self.labels[::-1], self.out, dict(self.extra))

    @cached_property
    def _kernel(self) -> Callable[..., Any]:
        """The array code for this pattern of labels."""
        labels, out = self.labels, self.out
        simple = all(len(set(ls)) == len(ls) for ls in (*labels, out)) and not self.extra
        match labels:
            case (_,):
                return self._single
            case (la, lb) if simple and la == lb == out:
                return _product
            case ((), ()) if simple and not out:
                return _product
            case (la, lb) if simple and set(out) <= {*la, *lb}:
                return self._pair
            case _:
                return lambda *xs: dense(self._formal(xs))

    def _single(self, a: Any) -> Any:
        if type(a) is float and len(set(self.out)) == len(self.out) > 0:  # a number repeated stays a number: it has no type of its own
            return Formal(self.result(((),)), (Product(a, ()),))
        return single(np.asarray(a), self.labels[0], self.out, self.sizes((np.shape(a),)))

    def _pair(self, a: Any, b: Any) -> Any:
        return pair(a, self.labels[0], b, self.labels[1], self.out)

    def run(self, *xs: Any) -> Any:
        for x in xs:
            if type(x) is Formal:
                return self._formal(xs)
        if self._expands:
            shapes = [np.shape(x) for x in xs]
            total = sum([math.prod(s) for s in shapes if s])
            if math.prod(self.result(tuple(shapes))) >= total and total:
                return self._formal(xs)
        return self._kernel(*xs) if self.out else number(self._kernel(*xs))

    @cached_property
    def _expands(self) -> bool:
        """Whether this is an outer product or a scaling, which may stay formal."""
        flat = [label for ls in self.labels for label in ls]
        apart = len(set(flat)) == len(flat) and set(flat) == set(self.out) and len(self.out) == len(flat)
        return len(self.labels) > 1 and apart and bool(flat)

    def _formal(self, xs: tuple[Any, ...]) -> Any:
        if len(set(self.out)) < len(self.out):
            distinct = tuple(dict.fromkeys(self.out))
            inner = contract_formal(list(xs), self.labels, distinct, self.sizes(_shapes(xs)))
            return single(dense(inner), distinct, self.out, self.sizes(_shapes(xs)))
        return contract_formal(list(xs), self.labels, self.out, self.sizes(_shapes(xs)))


def _shapes(xs: tuple[Any, ...]) -> tuple[Shape, ...]:
    return tuple([x.shape if type(x) is Formal else np.shape(x) for x in xs])


def _product(a: Any, b: Any) -> Any:
    charge(int(np.size(a)))
    return a * b


def contraction(labels: tuple[Labels, ...], out: Labels, extra: dict[int, int] | None = None) -> Contraction:
    """A contraction with its labels renamed in order of appearance."""
    return _contraction(labels, out, tuple(extra.items()) if extra else ())


@lru_cache(maxsize=4096)
def _contraction(labels: tuple[Labels, ...], out: Labels, extra: tuple[tuple[int, int], ...]) -> Contraction:
    names: dict[int, int] = {}
    renamed = tuple([tuple([names.setdefault(label, len(names)) for label in ls]) for ls in labels])
    result = tuple([names.setdefault(label, len(names)) for label in out])
    rest = tuple(sorted([(names.setdefault(label, len(names)), n) for label, n in extra]))
    return Contraction(renamed, result, rest)


@cache
def times(ndim: int) -> Contraction:
    """The pointwise product of two arrays of one shape."""
    axes = tuple(range(ndim))
    return Contraction((axes, axes), axes, ())


class Combination(Linear):
    """Σ kᵢ · xᵢ with fixed numbers kᵢ."""

    coefficients: tuple[float, ...]

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)

    def only(self, which: tuple[int, ...]) -> Op:
        return Combination(tuple([self.coefficients[i] for i in which]))

    def run(self, *xs: Any) -> Any:
        total: Any = None
        for k, x in zip(self.coefficients, xs, strict=True):
            if k == 1.0:
                total = x if total is None else add_leaves(total, x)
            elif k == -1.0:
                total = -x if total is None else total - x
            else:
                charge(int(np.size(x)) if type(x) is not Formal else 0)
                total = k * x if total is None else add_leaves(total, k * x)
        return total


class Reduction(Linear):
    """[red_R₁, …, red_Rₙ]: Σᵢ red_{Rᵢ}(xᵢ), each along the axes from `axis` on. The cotangents of many pieces of one array meet here."""

    relations: tuple[Relation, ...]
    axis: int

    def check(self) -> None:
        target = self.relations[0].target
        for r in self.relations:
            if r.target is not target or r.source.box is None or target.box is None:
                raise RelationError(f"a reduction joins relations between boxes into one target; got {self.relations}")

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        source, target = self.relations[0].source.box, self.relations[0].target.box
        assert source is not None and target is not None
        return (*shapes[0][: self.axis], *target, *shapes[0][self.axis + len(source) :])

    def only(self, which: tuple[int, ...]) -> Op:
        return Reduction(tuple([self.relations[i] for i in which]), self.axis)

    def _lead(self, x: Any, relation: Relation) -> Any:
        shape = np.shape(x)
        box = relation.source.box or ()
        a = math.prod(shape[: self.axis])
        b = math.prod(shape[self.axis + len(box) :])
        return np.reshape(x, (a, relation.source.size, b))

    def run(self, *xs: Any) -> Any:
        xs = tuple([dense(x) for x in xs])
        shape = self.result((np.shape(xs[0]),))
        first = self.relations[0].reduce(self._lead(xs[0], self.relations[0])) if len(xs) == 1 else None
        if first is None:
            wide = self._lead(xs[0], self.relations[0])
            first = np.zeros((wide.shape[0], self.relations[0].target.size, wide.shape[2]), np.result_type(*xs))
            for r, x in zip(self.relations, xs, strict=True):
                r.reduce_into(first, self._lead(x, r))
        return first.reshape(shape) if shape else number(first.reshape(()))


class Form(Node):
    """A user's linear or bilinear function by its form: ⟨f(v), w⟩, or ⟨u ⋄ v, w⟩. `solve[i]` computes leg i from the others.

    The legs of a bilinear function are u, v, w; those of a linear one v, w. All transposes are other legs of the same form.
    """

    name: str
    legs: tuple[Any, ...]  # one space per leg
    solve: tuple[Any, ...]  # one Python function per leg (None: cannot be computed)
    batched: bool  # whether the functions accept leading axes


class Declared(Op):
    """Leg `target` of a declared form as a function of the others; its leaves are fetched with `Get`."""

    form: Form
    target: int

    @property
    def sources(self) -> tuple[int, ...]:
        """The legs given as arguments."""
        return tuple([i for i in range(len(self.form.legs)) if i != self.target])

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        lead = self.lead(shapes)
        return tuple([(*lead, *leaf.shape) for leaf in self.form.legs[self.target].leaves])

    def lead(self, shapes: tuple[Shape, ...]) -> Shape:
        """The leading axes of the arguments."""
        leaves = [leaf for leg in self.sources for leaf in self.form.legs[leg].leaves]
        return shapes[0][: len(shapes[0]) - len(leaves[0].shape)] if shapes else ()

    def leg_slices(self) -> list[tuple[int, slice]]:
        """Which of the flat arguments belong to which leg."""
        found: list[tuple[int, slice]] = []
        at = 0
        for leg in self.sources:
            n = len(self.form.legs[leg].leaves)
            found.append((leg, slice(at, at + n)))
            at += n
        return found

    def run(self, *xs: Any) -> Any:
        solve = self.form.solve[self.target]
        if solve is None:
            raise TypeError(f"{self.form.name} was declared without what its adjoint needs: give the adjoints of both sections")
        flat = [dense(x) for x in xs]
        given = [_shape_free(self.form.legs[leg], flat[where]) for leg, where in self.leg_slices()]
        lead = self.lead(tuple([np.shape(x) for x in flat]))
        target = self.form.legs[self.target]
        space = target if not lead else _lifted(target, lead)
        return tuple(space.open(solve(*given)))


def _shape_free(space: Any, leaves: list[Any]) -> Any:
    from .layout import build

    return build(space.code, leaves, lambda branch, parts: branch.make(parts))


def _lifted(space: Any, lead: Shape) -> Any:
    from .spaces import Copower, real_index

    return Copower(space, real_index(lead))


class Get(Op):
    """One leaf of a declared function's result."""

    at: int

    def result(self, shapes: tuple[Any, ...]) -> Shape:
        return shapes[0][self.at]

    def run(self, *xs: Any) -> Any:
        return xs[0][self.at]
