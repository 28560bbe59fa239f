"""Bilinear functions: the contraction ⊛ and what it gives (⊗, ⊙, scalar, matrix and Hadamard products), their sections
(§3.1, §3.3), and any step of a program as a term."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import accumulate, pairwise, product
from typing import Any, ClassVar, NamedTuple

from ..errors import SpaceError
from ..ops.op import Contraction, Op, Single, contraction
from ..relations.index_sets import Seg
from ..runtime.interning import derived
from ..spaces.space import Copower, R, Space, Tensor, direct_sum, real_space
from .sums import Map, Par, Regroup, Zip
from .term import Compose, Term
from .unitary import Bra, Ket, Unbra, Unket

Labels = tuple[int, ...]


class Row(NamedTuple):
    """A leaf of the result gets the contraction of two leaves; `metric` weights the second one's first axes."""

    out: int
    left: int
    right: int
    labels: tuple[Labels, Labels, Labels]
    metric: tuple[Any, ...]


class Bilinear(Term):
    """⋄ : U × V → W, linear in each argument. `legs`: ⋄ as a contraction of what its arguments and its result are
    tensors of, a letter for each of its fields."""

    legs: ClassVar[tuple[str, str, str]]
    left: Space = derived()
    right: Space = derived()

    def check(self) -> None:
        fields = dict(zip(self._letters, self.parts(), strict=True))
        self._bilinear(*[_tensor([fields[k] for k in leg]) for leg in self.legs])

    def _bilinear(self, left: Space, right: Space, codomain: Space) -> None:
        self._set(left=left, right=right)
        self._type(direct_sum(left, right), codomain, False)

    @property
    def _letters(self) -> list[str]:
        return list(dict.fromkeys("".join(self.legs)))

    @cached_property
    def table(self) -> list[Row]:
        """The function on leaves: a row for each choice of a leaf for each letter."""
        spaces = {k: _tensor([x]) for k, x in zip(self._letters, self.parts(), strict=True)}
        summed = [k for k in self.legs[0] if k in self.legs[1] and k not in self.legs[2]]
        rows: list[Row] = []
        for chosen in product(*[enumerate(space.leaves) for space in spaces.values()]):
            labels = dict(zip(spaces, _runs(*[leaf.shape for _, leaf in chosen]), strict=True))
            leaves = dict(zip(spaces, chosen, strict=True))
            # a tensor product has its leaves row by row
            places = [reduce(lambda at, k: at * len(spaces[k].leaves) + leaves[k][0], leg, 0) for leg in self.legs]
            left, right, out = [tuple([x for k in leg for x in labels[k]]) for leg in self.legs]
            metric = tuple([weight for k in summed for weight in leaves[k][1].weights])
            rows.append(Row(places[2], places[0], places[1], (left, right, out), metric))
        return rows

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        """(u ⋄)* for side 0, (⋄ v)* for side 1."""
        raise NotImplementedError

    @property
    def definition(self) -> Term:
        """The function in terms of ⊛; itself where it is given."""
        return self


def _tensor(parts: Sequence[Any]) -> Space:
    """The tensor product of up to two spaces; of shapes of arrays, the arrays with all their axes."""
    if parts and isinstance(parts[0], tuple):
        return real_space(sum(parts, ()))
    return Tensor(*parts) if len(parts) == 2 else parts[0] if parts else R


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


class Contract(Bilinear):
    """⊛ : (W ⊗ V) × (V ⊗ U) → W ⊗ U,  (w ⊗ v) ⊛ (v' ⊗ u) = (v ⊙ v')·(w ⊗ u)   (§3.1)."""

    legs = "wv", "vu", "wu"
    first: Space
    middle: Space
    last: Space

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        W, V, U = self.first, self.middle, self.last
        if side == 0:
            return Section(Contract(V, W, U), 0, transposed(leaves, W, V))  # (v⊛)* = (vᵀ⊛)
        return Section(Contract(W, U, V), 1, transposed(leaves, V, U))  # (⊛w)* = (⊛wᵀ)


def transposition(V: Space, W: Space, lead: int = 0) -> list[tuple[int, Contraction]]:
    """The leaves of tᵀ ∈ W ⊗ V for t ∈ V ⊗ W: which leaf of t each is, and how its axes change, behind leading ones."""
    found: list[tuple[int, Contraction]] = []
    for (j, w), (i, v) in product(enumerate(W.leaves), enumerate(V.leaves)):
        head, lv, lw = _runs((0,) * lead, v.shape, w.shape)
        found.append((i * len(W.leaves) + j, contraction((head + lv + lw,), head + lw + lv)))
    return found


def transposed(leaves: tuple[Any, ...], V: Space, W: Space) -> tuple[Any, ...]:
    """The leaves of tᵀ ∈ W ⊗ V for t ∈ V ⊗ W."""
    return tuple([op.run(leaves[i]) if op.out else leaves[i] for i, op in transposition(V, W)])


class Outer(Bilinear):
    """⊗ : V × W → V ⊗ W,  v ⊗ w = ket(v) ⊛ bra(w)."""

    legs = "v", "w", "vw"
    first: Space
    last: Space

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

    legs = "v", "v", ""
    space: Space

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        return Section(ScalarMul(self.space), 1, leaves)  # (u⊙)* = (·u)

    @property
    def definition(self) -> Term:
        V = self.space
        return Compose(Compose(Unbra(R), Contract(R, V, R)), Par((Bra(V), Ket(V)), Seg(2), None))


class ScalarMul(Bilinear):
    """· : ℝ × V → V,  k · v = |bra(k) ⊛ bra(v)|."""

    legs = "", "v", "v"
    space: Space

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

    legs = "xy", "y", "x"
    rows: tuple[int, ...]
    cols: tuple[int, ...]

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

    legs = "xy", "yz", "xz"
    rows: tuple[int, ...]
    inner: tuple[int, ...]
    cols: tuple[int, ...]

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

    legs = "v", "v", "v"
    space: Space

    def check(self) -> None:
        if not self.space.plain or any([leaf.formal for leaf in self.space.leaves]):
            raise SpaceError(f"the Hadamard product multiplies real coordinates; {self.space} has weights or tensors")
        super().check()

    def section_adjoint(self, side: int, leaves: tuple[Any, ...]) -> Term:
        return Section(self, side, leaves)  # (u∗)* = (u∗)

    @property
    def definition(self) -> Term:
        if not isinstance(self.space, Copower) or self.space.base is not R:
            return self
        return Compose(Map(ScalarMul(R), self.space.index), Zip(direct_sum(self.space, self.space)))


# -- a step of a program as a term: how what NumPy code does beyond the paper appears in combinatory form -------------


class Applied(Term):
    """op : ⊕ ℝ^Xᵢ → ⊕ ℝ^Yⱼ, an operation on arrays of the given shapes; linear where the op is, or a contraction of one
    array."""

    op: Op
    shapes: tuple[tuple[int, ...], ...]

    def check(self) -> None:
        found: Any = self.op.shape_of(self.shapes)
        target: Space = direct_sum(*[real_space(s) for s in found]) if self.several else real_space(found)
        spaces = [real_space(s) for s in self.shapes]
        linear = isinstance(self.op, Single) or (self.product is not None and len(spaces) == 1)
        self._type(spaces[0] if len(spaces) == 1 else direct_sum(*spaces), target, linear)

    @property
    def product(self) -> Contraction | None:
        """The op, if it is a contraction and nothing more: Σ over labels of the product of its arguments."""
        return self.op if isinstance(self.op, Contraction) and not self.op.strong else None

    @property
    def several(self) -> bool:
        """Whether the op has a tuple of results."""
        found: Any = self.op.shape_of(self.shapes)
        return bool(found) and type(found[0]) is tuple

    @property
    def turned(self) -> Term:
        """The adjoint, of a linear op with one argument."""
        op: Any = self.op
        turned = op.turned(self.shapes[0]) if isinstance(op, Single) else op.transpose(0, self.shapes)
        return Applied(turned, (op.result(self.shapes),))


def Labelled(labels: tuple[Labels, ...], out: Labels, shapes: Any, extra: tuple[tuple[int, int], ...]) -> Term:
    """A class in pickles of 0.1.0: a contraction as a term."""
    return Applied(contraction(labels, out, dict(extra)), shapes)
