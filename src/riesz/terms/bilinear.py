"""Bilinear functions: the contraction ⊛ and what it gives (⊗, ⊙, scalar, matrix and Hadamard products), and their
sections   (§3.1, §3.3)."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, pairwise, product
from typing import Any, NamedTuple

from ..errors import SpaceError
from ..ops.op import contraction
from ..relations.index_sets import Seg
from ..runtime.interning import derived
from ..spaces.space import Copower, Leaf, R, Space, Tensor, direct_sum, real_space
from .sums import Map, Par, Regroup, Zip
from .term import Compose, Derived, Term
from .unitary import Bra, Ket, Unbra, Unket

Labels = tuple[int, ...]


class Row(NamedTuple):
    """A leaf of the result gets the contraction of two leaves; `metric` weights the second one's first axes."""

    out: int
    left: int
    right: int
    labels: tuple[Labels, Labels, Labels]
    metric: tuple[Any, ...] = ()


class Bilinear(Term):
    """⋄ : U × V → W, linear in each argument."""

    left: Space = derived()
    right: Space = derived()

    def _bilinear(self, left: Space, right: Space, codomain: Space) -> None:
        self._set(left=left, right=right)
        self._type(direct_sum(left, right), codomain, False)

    @cached_property
    def table(self) -> list[Row]:
        """The function on leaves."""
        raise NotImplementedError

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        """(u ⋄)* for side 0, (⋄ v)* for side 1."""
        raise NotImplementedError

    @property
    def definition(self) -> Term:
        """The function in terms of ⊛; itself where it is given."""
        return self


class Section(Term):
    """(u ⋄) : V ⊸ W, or (⋄ v) : U ⊸ W: a bilinear function with its argument at `side` fixed, given by its leaves."""

    bilinear: Bilinear
    side: int
    leaves: tuple[Any, ...]

    def check(self) -> None:
        free = self.bilinear.left if self.side else self.bilinear.right
        self._type(free, self.bilinear.codomain, True)

    @property
    def value(self) -> Any:
        """The fixed argument."""
        space = self.bilinear.right if self.side else self.bilinear.left
        return space.wrap(list(self.leaves))


def _runs(*shapes: tuple[int, ...]) -> list[Labels]:
    """Labels for the axes of some arrays, one after the other."""
    ends = [0, *accumulate([len(shape) for shape in shapes])]
    return [tuple(range(*run)) for run in pairwise(ends)]


def _leaves(space: Space) -> list[tuple[int, Leaf, Labels]]:
    """The leaves of a space, with their numbers and with labels for their axes."""
    return [(i, leaf, tuple(range(len(leaf.shape)))) for i, leaf in enumerate(space.leaves)]


class Contract(Bilinear):
    """⊛ : (W ⊗ V) × (V ⊗ U) → W ⊗ U,  (w ⊗ v) ⊛ (v' ⊗ u) = (v ⊙ v')·(w ⊗ u)   (§3.1)."""

    first: Space
    middle: Space
    last: Space

    def check(self) -> None:
        W, V, U = self.first, self.middle, self.last
        self._bilinear(Tensor(W, V), Tensor(V, U), Tensor(W, U))

    @cached_property
    def table(self) -> list[Row]:
        ws, vs, us = self.first.leaves, self.middle.leaves, self.last.leaves
        rows: list[Row] = []
        for (i, w), (j, v), (k, u) in product(enumerate(ws), enumerate(vs), enumerate(us)):
            lw, lv, lu = _runs(w.shape, v.shape, u.shape)
            labels = ((*lw, *lv), (*lv, *lu), (*lw, *lu))
            rows.append(Row(i * len(us) + k, i * len(vs) + j, j * len(us) + k, labels, v.weights))
        return rows

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        W, V, U = self.first, self.middle, self.last
        if side == 0:
            return Section(Contract(V, W, U), 0, transposed(leaves, W, V))  # (v⊛)* = (vᵀ⊛)
        return Section(Contract(W, U, V), 1, transposed(leaves, V, U))  # (⊛w)* = (⊛wᵀ)


def transposed(leaves: tuple[Any, ...], V: Space, W: Space) -> tuple[Any, ...]:
    """The leaves of tᵀ ∈ W ⊗ V for t ∈ V ⊗ W."""
    found: list[Any] = []
    for (j, w), (i, v) in product(enumerate(W.leaves), enumerate(V.leaves)):
        lv, lw = _runs(v.shape, w.shape)
        leaf = leaves[i * len(W.leaves) + j]
        found.append(contraction((lv + lw,), lw + lv).run(leaf) if lv + lw else leaf)
    return tuple(found)


class Outer(Bilinear):
    """⊗ : V × W → V ⊗ W,  v ⊗ w = ket(v) ⊛ bra(w)."""

    first: Space
    last: Space

    def check(self) -> None:
        self._bilinear(self.first, self.last, Tensor(self.first, self.last))

    @cached_property
    def table(self) -> list[Row]:
        rows: list[Row] = []
        for (i, v), (j, w) in product(enumerate(self.first.leaves), enumerate(self.last.leaves)):
            lv, lw = _runs(v.shape, w.shape)
            rows.append(Row(i * len(self.last.leaves) + j, i, j, (lv, lw, lv + lw)))
        return rows

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        V, W = self.first, self.last
        if side == 0:
            return Compose(Unbra(W), Section(Contract(R, V, W), 0, leaves))  # (u⊗)* = unbra • (bra(u)⊛)
        return Compose(Unket(V), Section(Contract(V, W, R), 1, leaves))  # (⊗w)* = unket • (⊛ket(w))

    @property
    def definition(self) -> Term:
        V, W = self.first, self.last
        return Compose(Contract(V, R, W), Par((Ket(V), Bra(W)), Seg(2), None))


class Inner(Bilinear):
    """⊙ : V × V → ℝ,  v₁ ⊙ v₂ = |bra(v₁) ⊛ ket(v₂)|."""

    space: Space

    def check(self) -> None:
        self._bilinear(self.space, self.space, R)

    @cached_property
    def table(self) -> list[Row]:
        return [Row(0, i, i, (labels, labels, ()), v.weights) for i, v, labels in _leaves(self.space)]

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        return Section(ScalarMul(self.space), 1, leaves)  # (u⊙)* = (·u)

    @property
    def definition(self) -> Term:
        V = self.space
        return Compose(Compose(Unbra(R), Contract(R, V, R)), Par((Bra(V), Ket(V)), Seg(2), None))


class ScalarMul(Bilinear):
    """· : ℝ × V → V,  k · v = |bra(k) ⊛ bra(v)|."""

    space: Space

    def check(self) -> None:
        self._bilinear(R, self.space, self.space)

    @cached_property
    def table(self) -> list[Row]:
        return [Row(i, 0, i, ((), labels, labels)) for i, _, labels in _leaves(self.space)]

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        if side == 0:
            return Section(self, 0, leaves)  # (k·)* = (k·)
        return Section(Inner(self.space), 1, leaves)  # (·v)* = (⊙v)

    @property
    def definition(self) -> Term:
        V = self.space
        return Compose(Compose(Unbra(V), Contract(R, R, V)), Par((Bra(R), Bra(V)), Seg(2), None))


class MatVec(Bilinear):
    """⋆ : ℝ^(X×Y) × ℝ^Y → ℝ^X, matrix times vector,  A ⋆ x = unket(A ⊛ ket(x)). Row and column axes by their sizes."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]

    def check(self) -> None:
        self._bilinear(real_space((*self.rows, *self.cols)), real_space(self.cols), real_space(self.rows))

    @cached_property
    def table(self) -> list[Row]:
        lx, ly = _runs(self.rows, self.cols)
        return [Row(0, 0, 0, ((*lx, *ly), ly, lx))]

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        X, Y = real_space(self.rows), real_space(self.cols)
        if side == 0:
            return Section(MatVec(self.cols, self.rows), 0, transposed(leaves, X, Y))  # (A⋆)* = (Aᵀ⋆)
        return Compose(Regroup(Tensor(X, Y), self.left), Section(Outer(X, Y), 1, leaves))  # (⋆x)* = (⊗x)

    @property
    def definition(self) -> Term:
        X, Y = real_space(self.rows), real_space(self.cols)
        arguments = Par((Regroup(self.left, Tensor(X, Y)), Ket(Y)), Seg(2), None)
        return Compose(Compose(Unket(X), Contract(X, Y, R)), arguments)


class MatMul(Bilinear):
    """ℝ^(X×Y) × ℝ^(Y×Z) → ℝ^(X×Z), matrix times matrix: ⊛ through ℝ^X ⊗ ℝ^Y ≅ ℝ^(X×Y)."""

    rows: tuple[int, ...]
    inner: tuple[int, ...]
    cols: tuple[int, ...]

    def check(self) -> None:
        X, Y, Z = self.rows, self.inner, self.cols
        self._bilinear(real_space((*X, *Y)), real_space((*Y, *Z)), real_space((*X, *Z)))

    @cached_property
    def table(self) -> list[Row]:
        lx, ly, lz = _runs(self.rows, self.inner, self.cols)
        return [Row(0, 0, 0, ((*lx, *ly), (*ly, *lz), (*lx, *lz)))]

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        X, Y, Z = real_space(self.rows), real_space(self.inner), real_space(self.cols)
        if side == 0:
            return Section(MatMul(self.inner, self.rows, self.cols), 0, transposed(leaves, X, Y))
        return Section(MatMul(self.rows, self.cols, self.inner), 1, transposed(leaves, Y, Z))

    @property
    def definition(self) -> Term:
        X, Y, Z = real_space(self.rows), real_space(self.inner), real_space(self.cols)
        arguments = Par((Regroup(self.left, Tensor(X, Y)), Regroup(self.right, Tensor(Y, Z))), Seg(2), None)
        return Compose(Compose(Regroup(Tensor(X, Z), self.codomain), Contract(X, Y, Z)), arguments)


class Hadamard(Bilinear):
    """∗ : V × V → V, the product in every coordinate; on ℝ^X it is (·)^X ∘ zip."""

    space: Space

    def check(self) -> None:
        if not self.space.plain or any([leaf.formal for leaf in self.space.leaves]):
            raise SpaceError(f"the Hadamard product multiplies real coordinates; {self.space} has weights or tensors")
        self._bilinear(self.space, self.space, self.space)

    @cached_property
    def table(self) -> list[Row]:
        return [Row(i, i, i, (labels, labels, labels)) for i, _, labels in _leaves(self.space)]

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        return Section(self, side, leaves)  # (u∗)* = (u∗)

    @property
    def definition(self) -> Term:
        if not isinstance(self.space, Copower) or self.space.base is not R:
            return self
        return Compose(Map(ScalarMul(R), self.space.index), Zip(direct_sum(self.space, self.space)))


class Labelled(Derived):
    """A labelled contraction of any number of arrays, Σ over labels of their product: a program's step as a term."""

    labels: tuple[Labels, ...]
    out: Labels
    shapes: tuple[tuple[int, ...], ...]
    extra: tuple[tuple[int, int], ...]

    def check(self) -> None:
        spaces = [real_space(s) for s in self.shapes]
        domain = spaces[0] if len(spaces) == 1 else direct_sum(*spaces)
        op = contraction(self.labels, self.out, dict(self.extra))
        self._type(domain, real_space(op.result(self.shapes)), len(spaces) == 1)

    @property
    def definition(self) -> Term:
        return self
