"""The operations a program's steps are made of. Each knows its result's shape, how it runs, and its transpose.

What an op means for differentiation is its kind: a `Linear` op is linear in all its arguments together, a `Multilinear`
one in each of them apart, an `Elementwise` one is a named primitive p^X. Ops that hide a function of somebody else are
in opaque.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, cast

import numpy as np

from ..errors import RelationError
from ..relations import Relation
from ..runtime.interning import Node
from ..runtime.warnings_off import quietly
from ..spaces.contraction import charge, matrix_kernel, number, pair, product_kernel, single
from ..spaces.contraction import spread as _spread
from ..spaces.formal_vectors import Formal, FormalProduct, add_leaves, contract_formal, dense, weak

Shape = tuple[int, ...]
Labels = tuple[int, ...]


class Op(Node):
    """An operation on leaves."""

    made_to_run = False
    """Whether it is made only when a program is made ready to run: derivatives, batches and normal forms never meet
    it."""

    @property
    def title(self) -> str:
        """What it is called in print."""
        return type(self).__name__.lower()

    def shape_of(self, shapes: tuple[Shape, ...]) -> Any:
        """The shape of the result, remembered."""
        known: dict[Any, Any] = cast(Any, self.__dict__).setdefault("_shapes", {})
        shape = known.get(shapes)
        if shape is None:
            shape = known[shapes] = self.result(shapes)
        return shape

    def result(self, shapes: tuple[Shape, ...]) -> Any:
        """The shape of the result: where an op does not say, that of its arguments together, broadcast as in NumPy."""
        return shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)

    def run(self, *xs: Any) -> Any:
        """The result on numbers."""
        raise NotImplementedError


class Linear(Op):
    """Linear in all arguments together: a map from their direct sum."""

    def only(self, which: tuple[int, ...]) -> Op:
        """The op on some of its arguments, the others being zero."""
        raise NotImplementedError


class Single(Linear):
    """Linear in one argument, with an adjoint that is an op again."""

    def turned(self, shape: Shape) -> Op:
        """The adjoint, into arrays of the given shape."""
        raise NotImplementedError

    def only(self, which: tuple[int, ...]) -> Op:
        return self

    def lifted(self, n: int) -> Op:
        """The same op under one more leading axis of length n."""
        raise NotImplementedError


class Multilinear(Op):
    """Linear in each argument while the others stay fixed."""

    def transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        """The adjoint of the op as a function of argument k, which takes the cotangent in its place."""
        raise NotImplementedError


class Elementwise(Op):
    """p^X: a named primitive at every index; arguments broadcast as in NumPy."""

    primitive: Any

    def run(self, *xs: Any) -> Any:
        if len(xs) == 1:
            return self.primitive.run(dense(xs[0]))
        whole = [weak(x) for x in xs]
        # One number stands for an array only beside another that has the shape of the result.
        if not all(map(operator.is_, whole, xs)) and _together(whole) != _together(xs):
            whole = [dense(x) for x in xs]
        return self.primitive.run(*whole)


def _together(xs: Sequence[Any]) -> Shape:
    return np.broadcast_shapes(*map(np.shape, xs))


# Note [Strong]: a selection (where, max, clip) is a product with zeros that annihilate whatever they meet, nan and inf
# included. `strong` lists the arguments with such zeros: where one of them is 0 the product is 0. Truth values among
# them only select. After a selection, a slice or a triangle a tangent or cotangent has places that nothing reaches
# (calculus/reached.py). A product with such a vector is `guarded`: its last argument is a mask, false at these places,
# and the vector is 0 there. So the mask matters only if some number is not finite, and a number that happens to be 0
# stays one: 0 · ∞ is nan.
class Contraction(Multilinear):
    """Σ over labels of a product: one tuple of labels per argument, the labels of the result, the sizes of labels that
    occur in the result only (axes of ones), the arguments whose zeros are strong, and the one that the last one
    guards."""

    labels: tuple[Labels, ...]
    out: Labels
    extra: tuple[tuple[int, int], ...] = ()
    strong: tuple[int, ...] = ()
    guarded: int = -1

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
        found = known.get((k, shapes))
        if found is None:
            found = known[k, shapes] = self._transpose(k, shapes)
        return found

    def _transpose(self, k: int, shapes: tuple[Shape, ...]) -> Op:
        sizes = self.sizes(shapes)
        labels = (*self.labels[:k], self.out, *self.labels[k + 1 :])
        out = self.labels[k]
        extra = {label: sizes[label] for label in out if not any(label in ls for ls in labels)}
        strong = tuple([i for i in self.strong if i != k])
        return contraction(labels, out, extra, strong, self.guarded if k != self.guarded else -1)

    def strongly(self, k: int) -> Contraction:
        """The same with strong zeros in argument k."""
        if k in self.strong or len(self.labels) == 1:
            return self
        return contraction(self.labels, self.out, dict(self.extra), (*self.strong, k))

    @cached_property
    def repeats(self) -> bool:
        """Whether the result has a label twice: a diagonal, with nothing beside it."""
        return len(set(self.out)) < len(self.out)

    @cached_property
    def unguarded(self) -> Contraction:
        """The same without its guard."""
        strong = tuple([i for i in self.strong if i != len(self.labels) - 1])
        return contraction(self.labels[:-1], self.out, dict(self.extra), strong)

    @cached_property
    def trivial(self) -> bool:
        """Whether this is the identity."""
        return self.labels == (self.out,) and not self.extra and not self.repeats

    @cached_property
    def swapped(self) -> Contraction:
        """The same product with its two arguments exchanged."""
        return contraction(self.labels[::-1], self.out, dict(self.extra), tuple([1 - i for i in self.strong]))

    @cached_property
    def kernel(self) -> Callable[..., Any]:
        """The array code for this pattern of labels."""
        labels, out = self.labels, self.out
        simple = all(len(set(ls)) == len(ls) for ls in (*labels, out)) and not self.extra
        match labels:
            case (_,):
                return self._single
            case (la, lb) if simple and la == lb == out:
                return _product
            case (la, lb) if simple and set(out) <= {*la, *lb}:
                return matrix_kernel(la, lb, out) or product_kernel(la, lb, out) or partial(_pair, la, lb, out)
            case _:
                return lambda *xs: dense(self._formal(xs))

    def _single(self, a: Any) -> Any:
        if type(a) is float and self.out and not self.repeats:  # a number repeated stays one: it has no type of its own
            return Formal(self.result(((),)), (FormalProduct(a, ()),))
        return single(np.asarray(a), self.labels[0], self.out, self.sizes((np.shape(a),)))

    def run(self, *xs: Any) -> Any:
        if self.strong:
            if self.guarded >= 0:
                with quietly():
                    found = self.unguarded.run(*[dense(x) for x in xs[:-1]])
                    if np.isfinite(np.sum(dense(found))):
                        return found
            return self._selected([dense(x) for x in xs])
        for x in xs:
            if type(x) is Formal:
                return self._formal(xs)
        if self.expands:
            shapes = [np.shape(x) for x in xs]
            total = sum([math.prod(s) for s in shapes if s])
            shape = self.result(tuple(shapes))
            if math.prod(shape) >= total and total:
                return self._outer(xs, shape)
        return self.kernel(*xs) if self.out else number(self.kernel(*xs))

    def _selected(self, xs: list[Any]) -> Any:
        """With strong zeros: a mask selects from one factor; several are multiplied plainly where all is finite."""
        labels, strong = list(self.labels), list(self.strong)
        masks = [i for i in strong if np.asarray(xs[i]).dtype.kind == "b"]
        numbers = [i for i in range(len(xs)) if i not in masks]
        kind: Any = np.result_type(*[xs[i] for i in numbers] or [1.0])  # Python floats take the type of the others
        if len(numbers) == 1:
            (one,) = numbers
            plain = len(set(labels[one])) == len(labels[one])
            for i in [i for i in masks if plain and set(labels[i]) <= set(labels[one])]:
                taken = kind.type(xs[one]) if type(xs[one]) is float else xs[one]
                xs[one] = np.where(_spread(np.asarray(xs[i]), labels[i], labels[one]), taken, 0)
                labels[i], xs[i] = (), 1.0
                strong.remove(i)
        xs = [np.asarray(x, kind) if i in masks and i in strong else x for i, x in enumerate(xs)]
        kept = [i for i, x in enumerate(xs) if not (type(x) is float and x == 1.0 and not labels[i])] or [0]
        plain = contraction(tuple([labels[i] for i in kept]), self.out, dict(self.extra))
        if not strong or all([bool(np.isfinite(x).all()) for x in xs]):
            result = plain.run(*[xs[i] for i in kept])
            return number(result) if not self.out else result
        every = tuple(dict.fromkeys([label for ls in labels for label in ls]))
        sizes = dict(self.extra)
        for ls, x in zip(labels, xs, strict=True):
            sizes |= dict(zip(ls, np.shape(x), strict=True))
        shown: list[Any] = []
        for x, ls in zip(xs, labels, strict=True):
            distinct = tuple([label for label in every if label in ls])
            shown.append(_spread(single(np.asarray(x), ls, distinct, sizes), distinct, every))
        dead = np.logical_or.reduce(np.broadcast_arrays(*[shown[i] == 0 for i in strong]))
        with quietly():
            product = shown[0]
            for x in shown[1:]:
                product = product * x
            total = single(np.where(dead, 0, product), every, self.out, sizes)
        return total if self.out else number(total)

    @cached_property
    def expands(self) -> bool:
        """Whether this is an outer product or a scaling, which may stay formal."""
        flat = [label for ls in self.labels for label in ls]
        apart = len(set(flat)) == len(flat) and set(flat) == set(self.out) and len(self.out) == len(flat)
        return len(self.labels) > 1 and apart and bool(flat)

    def _outer(self, xs: tuple[Any, ...], shape: Shape) -> Any:
        """An outer product of arrays, with at most one number among them, that is not multiplied out."""
        if len(xs) != 2 or any([type(x) is not np.ndarray and type(x) is not float for x in xs]):
            return self._formal(xs)
        pairs = list(zip(xs, self._places, strict=True))
        scale = next((number(x) for x, axes in pairs if not axes), 1.0)
        return Formal(shape, (FormalProduct(scale, tuple([(x, axes) for x, axes in pairs if axes])),))

    @cached_property
    def _places(self) -> tuple[Labels, ...]:
        """The axes of the result that the labels of each argument are."""
        return tuple([tuple([self.out.index(k) for k in ls]) for ls in self.labels])

    def _formal(self, xs: tuple[Any, ...]) -> Any:
        sizes = self.sizes(tuple([x.shape if type(x) is Formal else np.shape(x) for x in xs]))
        distinct = tuple(dict.fromkeys(self.out))
        inner = contract_formal(list(xs), self.labels, distinct, sizes)
        return single(dense(inner), distinct, self.out, sizes) if self.repeats else inner


def _pair(la: Labels, lb: Labels, out: Labels, a: Any, b: Any) -> Any:
    return pair(a, la, b, lb, out)


def _product(a: Any, b: Any) -> Any:
    charge(int(np.size(a)))
    return a * b


def contraction(
    labels: tuple[Labels, ...], out: Labels, extra: Any = None, strong: Labels = (), guarded: int = -1
) -> Contraction:
    """A contraction with its labels renamed in order of appearance."""
    return _contraction(labels, out, tuple(extra.items()) if extra else (), strong, guarded)


@lru_cache(maxsize=4096)
def _contraction(
    labels: tuple[Labels, ...], out: Labels, extra: tuple[tuple[int, int], ...], strong: tuple[int, ...], guarded: int
) -> Contraction:
    names: dict[int, int] = {}
    renamed = tuple([tuple([names.setdefault(label, len(names)) for label in ls]) for ls in labels])
    result = tuple([names.setdefault(label, len(names)) for label in out])
    rest = tuple(sorted([(names.setdefault(label, len(names)), n) for label, n in extra]))
    return Contraction(renamed, result, rest, tuple(sorted(set(strong))), guarded)


@lru_cache(maxsize=4096)
def product(left: Shape, right: Shape, strong: tuple[int, ...] = ()) -> Contraction:
    """The pointwise product, broadcast as in NumPy: an axis of size 1 against a longer one has a label of its own."""
    shape = np.broadcast_shapes(left, right)
    labels = (_aligned(left, shape, len(shape)), _aligned(right, shape, 2 * len(shape)))
    used = {label for ls in labels for label in ls}
    return contraction(labels, tuple(range(len(shape))), {i: n for i, n in enumerate(shape) if i not in used}, strong)


def _aligned(small: Shape, big: Shape, fresh: int) -> Labels:
    shift = len(big) - len(small)
    return tuple([i + shift if n == big[i + shift] else fresh + i for i, n in enumerate(small)])


def broadcast(small: Shape, big: Shape) -> Contraction:
    """The contraction that broadcasts an array as NumPy does."""
    labels = _aligned(small, big, len(big))
    return contraction((labels,), tuple(range(len(big))), {i: n for i, n in enumerate(big) if i not in labels})


def unbroadcast(big: Shape, small: Shape) -> Contraction:
    """The adjoint of broadcasting: sum over what was repeated."""
    labels = _aligned(small, big, len(big))
    return contraction((tuple(range(len(big))),), labels, {label: 1 for label in labels if label >= len(big)})


class Combination(Linear):
    """Σ kᵢ · xᵢ with fixed numbers kᵢ."""

    coefficients: tuple[float, ...]

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
    """[red_R₁, …, red_Rₙ]: Σᵢ red_{Rᵢ}(xᵢ), along the axes from `axis` on; cotangents of pieces of one array meet."""

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
        """The three axes that a relation reduces."""
        a, b = math.prod(x.shape[: self.axis]), math.prod(x.shape[self.axis + len(relation.source.box or ()) :])
        return x.reshape(a, relation.source.size, b)

    def run(self, *xs: Any) -> Any:
        given = [dense(x) for x in xs]
        xs = tuple([np.asarray(x) for x in given])
        shape = self.result((xs[0].shape,))
        first = self.relations[0]
        if len(xs) == 1:
            total = first.reduce(self._lead(xs[0], first))
        else:
            wide = [self._lead(x, r) for x, r in zip(xs, self.relations, strict=True)]
            patches, size = self._patches, (wide[0].shape[0], first.target.size, wide[0].shape[2])
            total = (np.zeros if patches is None else np.empty)(
                size, np.result_type(*given)
            )  # floats of Python are weak
            for k, (r, x) in enumerate(zip(self.relations, wide, strict=True)):
                if patches is None:
                    r.reduce_into(total, x)
                else:
                    total[:, patches[k][1]] = x[:, patches[k][0]]
        return total.reshape(shape) if shape else number(total.reshape(()))

    @property
    def covers(self) -> bool:
        """Whether the pieces fill the target without overlap, so that they are copied, not added."""
        return self._patches is not None

    @cached_property
    def joined(self) -> list[tuple[int, slice]] | None:
        """The pieces, by number and slice, in the order in which they follow one another along one axis, if this is
        np.concatenate."""
        patches = self._patches
        boxes = [s.box or () for r in self.relations for s in (r.source, r.target)]
        if patches is None or any([len(b) != 1 for b in boxes]):
            return None
        if any([p.step not in (None, 1) for both in patches for p in both]):
            return None
        order = sorted(range(len(patches)), key=lambda i: patches[i][1].start or 0)
        return [(i, patches[i][0]) for i in order]

    @cached_property
    def _patches(self) -> list[tuple[slice, slice]] | None:
        """Which slice of each piece goes where, if they fill the target without overlap (as np.stack): nothing is
        added."""
        patches = [r.patch for r in self.relations]
        target = self.relations[0].target.size
        hit = np.zeros(target, np.intp)
        for p in patches:
            if p is None:
                return None
            hit[p[1]] += 1
        return [p for p in patches if p is not None] if (hit == 1).all() else None


class Reshape(Single):
    """The same numbers in row-major order under another shape: a regrouping of indices, unitary."""

    shape: Shape

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        return self.shape

    def run(self, *xs: Any) -> Any:
        return np.reshape(dense(xs[0]), self.shape) if self.shape else number(np.reshape(dense(xs[0]), ()))

    def turned(self, shape: Shape) -> Op:
        return Reshape(shape)

    def lifted(self, n: int) -> Op:
        return Reshape((n, *self.shape))


class Cast(Single):
    """The same numbers in another floating-point type, and back."""

    source: Any  # dtypes
    target: Any

    def run(self, *xs: Any) -> Any:
        x: Any = dense(xs[0])
        return x.astype(self.target, copy=False) if np.ndim(x) else number(self.target.type(x))

    def turned(self, shape: Shape) -> Op:
        return Cast(self.target, self.source)

    def lifted(self, n: int) -> Op:
        return self
