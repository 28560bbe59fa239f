"""Vectors that stay unevaluated: 0, k·w, w₁ + w₂, u ⊗ v   (§2.2.4).

A leaf of a vector is a float, an array or a `Formal`. A user holds an element of V ⊗ W as a `TensorValue`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..errors import VectorError
from ..relations import freeze
from ..relations.index_sets import Array
from ..runtime import displayed, later
from .contraction import Factor, Labels, charge, network, pair, single

if TYPE_CHECKING:
    from .space import Tensor


class FormalProduct(NamedTuple):
    """k · Π factors: each factor an array on some of the axes 0 … ndim−1; axes in no factor are axes of ones."""

    scale: Any
    factors: tuple[Factor, ...]


class Formal:
    """Σ_r k_r · Π factors, an array that has not been multiplied out.

    It becomes an array with `dense()`, `np.asarray` or where an elementwise function needs the numbers.
    """

    __slots__ = ("shape", "terms")
    __array_ufunc__ = None  # NumPy scalars hand k * formal over to us

    def __init__(self, shape: tuple[int, ...], terms: tuple[FormalProduct, ...]) -> None:
        self.shape = shape
        self.terms = terms

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numbers(self) -> int:
        """How many numbers are stored, scales apart."""
        return sum([f.size for f in {id(f): f for f in self.arrays}.values()])

    @property
    def arrays(self) -> list[Any]:
        """The factors of all products."""
        return [f for t in self.terms for f, _ in t.factors]

    @property
    def worthwhile(self) -> bool:
        """Whether keeping the products apart is smaller than the array."""
        return self.numbers <= math.prod(self.shape)

    def dense(self) -> Array:
        """The array."""
        axes = tuple(range(len(self.shape)))
        sizes = dict(enumerate(self.shape))
        total: Any = None
        for k, factors in self.terms:
            # a number takes the type of the arrays it is added to
            product: Any = multiply_out(factors, axes, sizes) if factors else k
            if factors and not (type(k) is float and k == 1.0):
                charge(product.size)
                product = k * product
            total = product if total is None else total + product
        if total is None:
            return np.zeros(self.shape)
        return total if np.shape(total) == self.shape else np.broadcast_to(total, self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.dense(), dtype)

    def __add__(self, other: Any) -> Any:
        return add_leaves(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return add_leaves(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return add_leaves(other, -self)

    def __neg__(self) -> Formal:
        return self * -1.0

    def __mul__(self, k: Any) -> Any:
        if np.ndim(k):
            return (weak(self) if np.shape(k) == self.shape else self.dense()) * k
        return Formal(self.shape, tuple([FormalProduct(_times(t.scale, k), t.factors) for t in self.terms]))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html


def _times(a: Any, b: Any) -> Any:
    if (type(a) is float and abs(a) == 1.0) or (type(b) is float and abs(b) == 1.0):
        return a * b
    charge(1)
    return a * b


def multiply_out(factors: tuple[Factor, ...], out: tuple[int, ...], sizes: dict[int, int]) -> Array:
    """A product of factors as one array."""
    if not factors:
        return np.broadcast_to(1.0, [sizes[label] for label in out])
    (a, la), *rest = factors
    if len(rest) == 1 and out == (0, 1) and (*la, *rest[0][1]) in ((0, 1), (1, 0)):  # u ⊗ v, the most frequent one
        a, b = (a, rest[0][0]) if la == (0,) else (rest[0][0], a)
        charge(a.size * b.size)
        return a[:, None] * b
    for b, lb in rest:
        after = tuple(sorted({*la, *lb}))
        a, la = pair(a, la, b, lb, after), after
    return a if la == out else single(a, la, out, sizes)


def dense(leaf: Any) -> Any:
    """A leaf as a float or an array."""
    return leaf.dense() if type(leaf) is Formal else leaf


def freeze_leaf(leaf: Any) -> Any:
    """A leaf that nobody can change any more: arrays are copied unless they are read-only."""
    if type(leaf) is Formal:
        terms = [FormalProduct(t.scale, tuple([(freeze(f), axes) for f, axes in t.factors])) for t in leaf.terms]
        return Formal(leaf.shape, tuple(terms))
    return freeze(cast("Array", leaf)) if isinstance(leaf, np.ndarray) else leaf


def weak(leaf: Any) -> Any:
    """A formal vector with one number everywhere as that number, which has no type of its own; anything else dense."""
    if type(leaf) is Formal and len(leaf.terms) == 1:
        scale, factors = leaf.terms[0]
        if not factors and not isinstance(scale, np.generic):
            return scale
    return dense(leaf)


def add_leaves(a: Any, b: Any) -> Any:
    """a + b, kept formal while that is smaller than an array."""
    if type(a) is Formal and type(b) is Formal and a.shape == b.shape:
        total = Formal(a.shape, (*a.terms, *b.terms))
        return total if total.worthwhile else total.dense()
    return weak(a) + weak(b) if np.shape(a) == np.shape(b) else dense(a) + dense(b)


def as_factors(leaf: Any, labels: tuple[int, ...]) -> list[tuple[Any, list[Factor]]]:
    """A leaf under the given axis labels as scale and factors, one pair per summand."""
    if type(leaf) is Formal:
        return [(t.scale, [(f, tuple([labels[i] for i in axes])) for f, axes in t.factors]) for t in leaf.terms]
    return [(1.0, [(leaf, labels)])] if labels else [(leaf, [])]


def contract_formal(leaves: list[Any], labels: tuple[Labels, ...], out: Labels, sizes: dict[int, int]) -> Any:
    """A labelled contraction that carries out the sums and leaves outer products and scales formal."""
    shape = tuple([sizes[label] for label in out])
    place = {label: i for i, label in enumerate(out)}
    partial: list[tuple[Any, list[Factor]]] = [(1.0, [])]
    for leaf, names in zip(leaves, labels, strict=True):
        partial = [(_join(k, k2), fs + fs2) for k, fs in partial for k2, fs2 in as_factors(leaf, names)]
    terms: list[FormalProduct] = []
    for k, factors in partial:
        scale, rest = network(factors, out, sizes)
        placed = tuple([(f, tuple([place[label] for label in ls])) for f, ls in rest])
        terms.append(FormalProduct(_join(k, scale), placed))
    if not shape:
        return sum([t.scale for t in terms[1:]], terms[0].scale) if terms else 0.0
    result = Formal(shape, tuple(terms))
    whole = len(terms) == 1 and len(terms[0].factors) == 1 and terms[0].factors[0][1] == tuple(range(len(shape)))
    if whole and type(terms[0].scale) is float and terms[0].scale == 1.0:
        return terms[0].factors[0][0]
    return result if result.worthwhile else result.dense()


def _join(a: Any, b: Any) -> Any:
    return b if type(a) is float and a == 1.0 else a if type(b) is float and b == 1.0 else _times(a, b)


def leaf_inner(a: Any, b: Any) -> Any:
    """Σ a·b; formal tensors by (u₁⊗v₁)⊙(u₂⊗v₂) = (u₁⊙u₂)·(v₁⊙v₂)."""
    if type(a) is Formal or type(b) is Formal:
        axes = tuple(range(len(a.shape)))
        return contract_formal([a, b], (axes, axes), (), dict(enumerate(a.shape)))
    return float(cast(Any, np.vdot(a, b)))


def leaf_norm(a: Any) -> float:
    """The Euclidean norm. Of Σ uᵣ⊗vᵣ unformed: ‖U Vᵀ‖ = ‖R_U R_Vᵀ‖ with QR factors, exact under cancellation."""
    if type(a) is not Formal:
        return float(np.linalg.norm(np.ravel(a)))
    if not a.terms:
        return 0.0
    first = next((set(axes) for t in a.terms for _, axes in t.factors if len(axes) < a.ndim), None)
    fits = first is not None and all([set(x) <= first or not set(x) & first for t in a.terms for _, x in t.factors])
    if first is None or not fits:
        return float(np.linalg.norm(np.ravel(a.dense())))
    sides: list[Array] = []
    for axes in (sorted(first), [i for i in range(a.ndim) if i not in first]):
        sizes = {i: a.shape[i] for i in axes}
        factors = [tuple([f for f in t.factors if set(f[1]) <= set(axes)]) for t in a.terms]
        columns = [multiply_out(fs, tuple(axes), sizes) for fs in factors]
        sides.append(np.stack([np.ravel(c) for c in columns], axis=1))
    sides[0] = sides[0] * np.array([float(t.scale) for t in a.terms])
    left, right = [cast("Array", np.linalg.qr(s, mode="r")) for s in sides]
    return float(np.linalg.norm(left @ right.T))


def leaf_bound(a: Any) -> float:
    """Σ |kᵣ|·Π‖factor‖: a bound of the norm that does not know of cancellation, the scale for rounding errors."""
    if type(a) is not Formal:
        return leaf_norm(a)
    norms = [[float(np.linalg.norm(np.ravel(f))) for f, _ in t.factors] for t in a.terms]
    return sum([abs(float(t.scale)) * math.prod(n) for t, n in zip(a.terms, norms, strict=True)])


class TensorValue:
    """An element of V ⊗ W (or, with leading axes, of (V ⊗ W)^X) that stays factored.

    `t + s`, `k * t`; `t.dense()` multiplies out; `t.numbers` says how many numbers it holds.
    """

    __array_ufunc__ = None

    def __init__(self, space: Tensor, lead: tuple[int, ...], content: Any) -> None:
        self.space = space
        self.lead = lead
        self.content = content  # nested tuples with leaves inside
        self.leaves: list[Any] = []
        stack = [content]
        while stack:
            part = stack.pop()
            if isinstance(part, tuple):
                stack.extend(reversed(cast("tuple[Any, ...]", part)))
            else:
                self.leaves.append(part)

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        arrays = {id(f): f for leaf in self.leaves for f in (leaf.arrays if type(leaf) is Formal else [leaf])}
        return sum([np.size(f) for f in arrays.values()])

    def dense(self) -> Any:
        """Multiplied out: an array for ℝ^X ⊗ ℝ^Y, otherwise V's containers of W's containers of arrays."""
        return self._built([dense(leaf) for leaf in self.leaves], lambda branch, parts: branch.contain(parts))

    def _built(self, leaves: list[Any], make: Callable[[Any, list[Any]], Any]) -> Any:
        from .layout import build, tensor_code

        return build(tensor_code(self.space, self.lead), leaves, make)

    def _like(self, other: Any) -> TensorValue:
        if not isinstance(other, TensorValue) or other.space is not self.space or other.lead != self.lead:
            raise VectorError(f"cannot add an element of {self.space} and {other!r}")
        return other

    def _same(self, leaves: list[Any]) -> TensorValue:
        return TensorValue(self.space, self.lead, self._built(leaves, lambda _, parts: tuple(parts)))

    def __add__(self, other: Any) -> TensorValue:
        return self._same([add_leaves(a, b) for a, b in zip(self.leaves, self._like(other).leaves, strict=True)])

    def __sub__(self, other: Any) -> TensorValue:
        return self + self._like(other) * -1.0

    def __neg__(self) -> TensorValue:
        return self * -1.0

    def __mul__(self, k: Any) -> TensorValue:
        if not isinstance(k, (int, float, np.floating)) or isinstance(k, bool):
            raise VectorError(f"cannot scale an element of {self.space} by {k!r}: a number is due")
        return self._same([a * float(cast(Any, k)) for a in self.leaves])

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Equal as vectors, modulo bilinearity and rounding."""
        if not isinstance(other, TensorValue) or other.space is not self.space or other.lead != self.lead:
            return NotImplemented
        from .space import space_of

        return space_of(self).equal(self, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        if len(self.leaves) != 1:
            raise VectorError(f"an element of {self.space} is not one array; .dense() gives its parts")
        return np.asarray(dense(self.leaves[0]), dtype)

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html
