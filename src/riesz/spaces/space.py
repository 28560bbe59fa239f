"""Spaces  U, V, W ::= 0 | ℝ | ⊕_{x∈X} V_x | V ⊗ W, copowers V^X = ⊕_{x∈X} V, and weighted inner products   (§2.2).

Every space is laid out as a tree of arrays; see layout.py.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from ..errors import IndexSetError, SpaceError, VectorError
from ..relations import freeze
from ..relations.index_sets import Array, Seg, Set, box_set
from ..runtime import buffers, displayed, later
from ..runtime.interning import Node, derived, documented, each, postorder
from .contraction import number
from .formal_vectors import Formal, FormalProduct, TensorValue, dense, freeze_leaf, leaf_bound, leaf_inner, leaf_norm
from .layout import INVERSE, METRIC, ROOT, Branch, Form, Leaf, build, check_leaf, container, describe, layout, leaf_axes
from .mass import Mass, mass_of


class Space(Node):
    """A finite-dimensional real Hilbert space: `V * W` is ⊕, `V ** X` the copower, `V @ W` the tensor product.

    >>> import numpy as np, riesz as rz
    >>> V = rz.R * rz.R ** rz.seg(2)
    >>> V, V.dim
    (ℝ ⊕ ℝ^2, 3)
    >>> V.inner((1.0, np.ones(2)), (2.0, np.ones(2)))
    4.0
    """

    dim: int = derived()
    plain: bool = derived()  # no weighted inner product anywhere inside

    def __mul__(self, other: object) -> DirectSum:
        """V ⊕ W; `U * V * W` is one sum of three. `direct_sum` nests."""
        if not isinstance(other, Space):
            raise SpaceError(f"cannot form {self} ⊕ {other!r}: the right side is not a space")
        flat = isinstance(self, DirectSum) and self.form is None and self.index is Seg(len(self.summands))
        left = cast(DirectSum, self).summands if flat else (self,)
        return direct_sum(*left, other)

    def __pow__(self, index: Set | int | tuple[int, ...]) -> Copower:
        """V^X, the copower over an index set; a number or a shape stands for its index set.

        >>> import riesz as rz
        >>> rz.R ** 3, rz.R ** (2, 3), rz.R ** rz.seg(2, 3) is rz.R ** (2, 3)
        (ℝ^3, ℝ^(2×3), True)
        """
        if not isinstance(cast(Any, index), Set):
            lengths = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
            if not all([isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in lengths]):
                write = f"write {self} ** 3, {self} ** (2, 3) or {self} ** rz.seg(3)"
                raise SpaceError(
                    f"cannot form {self} ** {index!r}: exponents are index sets, lengths or shapes; {write}"
                )
            index = box_set(tuple([int(n) for n in lengths]))
        return Copower(self, cast(Set, index))

    def __matmul__(self, other: object) -> Tensor:
        """V ⊗ W, the tensor product."""
        if not isinstance(other, Space):
            raise SpaceError(f"cannot form {self} ⊗ {other!r}: the right side is not a space")
        return Tensor(self, other)

    def weighted(self, weight: Any) -> Weighted:
        """The same vectors with another inner product: a positive number, a positive scale per component (an
        element of V), or, on ℝ^X, a symmetric positive definite matrix M: an array, a matrix of scipy.sparse or a
        linear map. Sparse ones stay sparse and are factorised once; a component of a direct sum may have its own.

        >>> import riesz as rz, numpy as np
        >>> V = (rz.R ** rz.seg(2)).weighted(np.array([1.0, 4.0]))
        >>> V.norm(np.array([0.0, 1.0]))
        2.0
        """
        return _weighted(self, weight)

    # -- elements -------------------------------------------------------------------------------------

    def zero(self) -> Any:
        """The zero vector."""
        return self.wrap([_zero(leaf) for leaf in self.leaves])

    def random(self, rng: Any = None) -> Any:
        """A vector with independent standard normal coordinates; rng is a NumPy Generator or a seed."""
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        draws = [generator.standard_normal(leaf.shape) for leaf in self.leaves]
        return self.wrap([d if leaf.shape else float(d) for d, leaf in zip(draws, self.leaves, strict=True)])

    def basis(self) -> Basis:
        """The coordinate vectors in the order of `flatten`, a sequence that makes each when it is asked for.

        >>> import riesz as rz
        >>> list((rz.R * rz.R).basis())
        [(1.0, 0.0), (0.0, 1.0)]
        """
        return Basis(self)

    def add(self, u: Any, v: Any) -> Any:
        """u + v."""
        pairs = zip(self.open(u), self.open(v), strict=True)
        return self.wrap([a + b for a, b in pairs])

    def scale(self, k: float, v: Any) -> Any:
        """k · v."""
        return self.wrap([k * a for a in self.open(v)])

    def inner(self, u: Any, v: Any) -> float:
        """u ⊙ v, the inner product of this space.

        >>> import riesz as rz
        >>> (rz.R * rz.R).inner((1.0, 2.0), (3.0, 4.0))
        11.0
        """
        left, right = self.open(u), self.metric(self.open(v))
        return float(sum([leaf_inner(a, b) for a, b in zip(left, right, strict=True)]))

    def norm(self, v: Any) -> float:
        """√(v ⊙ v)."""
        if not self.plain and any([isinstance(w.arrays[0], Mass) for leaf in self.leaves for w in leaf.weights]):
            return math.sqrt(max(self.inner(v, v), 0.0))
        return math.hypot(*[leaf_norm(a) for a in self._weighed(self.open(v), ROOT)])

    def equal(self, u: Any, v: Any, tolerance: float = 1e-12) -> bool:
        """Whether u and v are the same vector up to rounding; formal tensors are compared modulo bilinearity."""
        scale = max([math.hypot(*[leaf_bound(a) for a in self.open(w)]) for w in (u, v)])
        return self.norm(self.add(u, self.scale(-1.0, v))) <= tolerance * scale

    def __contains__(self, value: object) -> bool:
        try:
            self.open(value)
        except VectorError:
            return False
        return True

    def flatten(self, value: Any) -> Array:
        """The coordinates in one array: components in order, arrays row-major."""
        arrays = [np.ravel(dense(leaf)) for leaf in self.open(value)]
        return np.concatenate(arrays) if arrays else np.zeros(0)

    def unflatten(self, coordinates: Array) -> Any:
        """The vector with the given coordinates."""
        given = np.asarray(coordinates)
        if given.shape != (self.dim,):
            raise VectorError(f"{self} has dimension {self.dim}; got coordinates of shape {given.shape}")
        return self.wrap(self.cut(given))

    def cut(self, coordinates: Array) -> list[Any]:
        """Coordinates → leaves."""
        found: list[Any] = []
        at = 0
        for leaf in self.leaves:
            part = coordinates[at : at + leaf.size].reshape(leaf.shape)
            found.append(part if leaf.shape else number(part))
            at += leaf.size
        return found

    @cached_property
    def unweighted(self) -> Space:
        """The same vectors with the Euclidean inner product: every weight inside is dropped."""
        if self.plain:
            return self
        done: dict[Any, Any] = {}
        for s in postorder(self):
            done[s] = done[s.base] if isinstance(s, Weighted) else type(s)(*each(s.parts(), lambda p: done.get(p, p)))
        return done[self]

    # -- layout ---------------------------------------------------------------------------------------

    @cached_property
    def code(self) -> list[Leaf | Branch]:
        """The layout as postfix code."""
        return layout(self)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The leaves of the layout, in order."""
        return [step for step in self.code if isinstance(step, Leaf)]

    def open(self, value: Any, leaf: Callable[..., Any] = check_leaf) -> list[Any]:
        """A user's value → its leaves, checked, each by `leaf`."""
        stack: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
        found: list[Any] = []
        for step in reversed(self.code):
            v, path = stack.pop()
            if isinstance(step, Leaf):
                found.append(leaf(v, step.shape, self, path))
            else:
                stack.extend([(part, (*path, key)) for key, part in step.take(v, self, path)])
        found.reverse()
        return found

    def wrap(self, leaves: list[Any], held: Iterable[int] = ()) -> Any:
        """Leaves → a user's value, his own: arrays he may write to, tensors that nothing he writes to changes; `held`:
        the identities of arrays that somebody else holds."""
        taken, pairs = set(held), zip(self.leaves, leaves, strict=True)
        shown = [freeze_leaf(x) if leaf.formal else _owned(dense(x), taken) for leaf, x in pairs]
        return build(self.code, shown, Branch.make)

    def tree(self, leaves: list[Any]) -> Any:
        """Leaves → nested plain tuples, the values the interpreter works on."""
        return build(self.code, leaves, Branch.nest)

    def metric(self, leaves: list[Any], inverse: bool = False) -> list[Any]:
        """The Riesz map M : V → V* in coordinates, u ⊙ v = Σ u · metric(v); or its inverse."""
        return self._weighed(leaves, INVERSE if inverse else METRIC)

    def _weighed(self, leaves: list[Any], which: int) -> list[Any]:
        return later.weighed(leaves, self, which)

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html

    def latex(self) -> str:
        """The space in LaTeX."""
        return later.latex(self)

    def mathml(self, ids: bool = False) -> str:
        """The same in MathML; with `ids`, parts have an attribute data-id."""
        return later.mathml(self, ids)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


class Basis(Sequence[Any]):
    """The coordinate vectors of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def __len__(self) -> int:
        return self.space.dim

    def __getitem__(self, j: Any) -> Any:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        at: int = range(len(self))[int(j)]
        found: list[Any] = []
        for leaf in self.space.leaves:
            found.append(_unit(leaf, at) if 0 <= at < leaf.size else _zero(leaf))
            at -= leaf.size
        return self.space.wrap(found)


def _owned(x: Any, taken: set[int]) -> Any:
    """A float, or an array the caller may write to, which is taken then."""
    if isinstance(x, np.ndarray) and (array := cast(Array, x)).ndim:
        found = buffers.handed(array, id(array) in taken)
        taken.add(id(found))
        return found
    return number(x)


def _zero(leaf: Leaf) -> Any:
    return Formal(leaf.shape, ()) if leaf.formal and leaf.shape else np.zeros(leaf.shape) if leaf.shape else 0.0


def _unit(leaf: Leaf, at: int) -> Any:
    """One at one position; e_i ⊗ e_j in a tensor."""
    if not leaf.shape:
        return 1.0
    places = np.unravel_index(at, leaf.shape)
    if leaf.formal:
        axes = [(np.arange(n) == int(i)).astype(float) for n, i in zip(leaf.shape, places, strict=True)]
        return Formal(leaf.shape, (FormalProduct(1.0, tuple([(a, (k,)) for k, a in enumerate(axes)])),))
    array = np.zeros(leaf.shape)
    array[places] = 1.0
    return array


class Zero(Space):
    """0, the space with one element."""

    def check(self) -> None:
        self._set(dim=0, plain=True)


class Real(Space):
    """ℝ."""

    def check(self) -> None:
        self._set(dim=1, plain=True)


class DirectSum(Space):
    """⊕_{x∈X} V_x, one space per element of X in its order; values are tuples unless `form` says otherwise."""

    index: Set
    summands: tuple[Space, ...]
    form: Form | None

    def check(self) -> None:
        if len(self.summands) != self.index.size:
            raise SpaceError(f"a direct sum over {self.index} needs {self.index.size} spaces, got {len(self.summands)}")
        self._set(dim=sum([s.dim for s in self.summands]), plain=all([s.plain for s in self.summands]))

    def position(self, which: Any) -> int:
        """The place of a component, by index (negative counts from the end), by name, or by element of X."""
        names = self.form.names if self.form else None
        if names and which in names and (isinstance(which, str) or not isinstance(which, int)):
            return names.index(which)
        n = len(self.summands)
        if isinstance(which, int) and isinstance(self.index, Seg) and -n <= which < 0:
            return which + n
        try:
            return self.index.position(which)
        except IndexSetError:
            have = "components " + (f"0 to {n - 1}" if n else "none")
            have = f"the names {', '.join(map(str, names))}" if names else have
            raise SpaceError(f"there is no component {which!r} in {self}: it has {have}") from None


class Copower(Space):
    """V^X = ⊕_{x∈X} V."""

    base: Space
    index: Set

    def check(self) -> None:
        self._set(dim=self.base.dim * self.index.size, plain=self.base.plain)


class Tensor(Space):
    """V ⊗ W."""

    left: Space
    right: Space

    def check(self) -> None:
        self._set(dim=self.left.dim * self.right.dim, plain=self.left.plain and self.right.plain)


class Weighted(Space):
    """V with another inner product. `weights` holds one positive array per leaf of V, or one matrix."""

    base: Space
    weights: tuple[Any, ...]
    matrix: bool

    def check(self) -> None:
        self._set(dim=self.base.dim, plain=False)

    @classmethod
    def rebuilt(cls, base: Space, weights: tuple[Any, ...], matrix: bool) -> Weighted:
        """From pickled parts: equal weights are one array again."""
        return cls(base, tuple([_canonical(w) for w in weights]), matrix)

    @cached_property
    def arrays(self) -> list[tuple[Any, Any, Any]]:
        """M, M⁻¹ and a root of M for each leaf."""
        la: Any = np.linalg
        if self.matrix:
            return [(m, freeze(la.inv(m)), freeze(la.cholesky(m).T)) for m in self.weights]
        found: list[tuple[Any, Any, Any]] = []
        for w in self.weights:
            whole = isinstance(w, Mass)  # it has all three
            found.append((w, w, w) if whole else (w, freeze(np.asarray(1.0 / w)), freeze(np.asarray(np.sqrt(w)))))
        return found


R: Real = documented(
    Real(),
    """ℝ, the space of real numbers; its elements are floats. Other spaces are built from it.

    `R ** X` are arrays with the index set X, `V * W` pairs, `V @ W` tensors.
    `rz.space_of(value)` is the space of a value.

    >>> import riesz as rz
    >>> rz.R ** rz.seg(3), rz.R * rz.R, rz.R ** (rz.seg(2) * rz.seg(3))
    (ℝ^3, ℝ ⊕ ℝ, ℝ^(2×3))
    >>> 2.0 in rz.R
    True
    """,
)
zero_space: Zero = documented(
    Zero(),
    """The space with one element, written (); its dimension is 0.

    >>> import riesz as rz
    >>> rz.Zero.dim, rz.space_of(()) is rz.Zero
    (0, True)
    """,
)


def space_of(value: Any) -> Space:
    """The space a value belongs to: floats, float arrays, formal vectors; tuples, lists, dicts, named tuples and
    dataclasses of them.

    >>> import riesz as rz, numpy as np
    >>> rz.space_of((1.0, np.zeros((2, 3))))
    ℝ ⊕ ℝ^(2×3)
    """
    done: list[Space] = []
    stack: list[Any] = [value]
    while stack:
        v = stack.pop()
        if isinstance(v, Branch):
            parts = tuple(done[len(done) - v.arity :])
            del done[len(done) - v.arity :]
            done.append(DirectSum(Seg(v.arity), parts, v.form) if parts or v.form else zero_space)
        elif (form_parts := container(v)) is not None:
            form, parts = form_parts
            stack.append(Branch(len(parts), form))
            stack.extend(reversed(parts))
        else:
            done.append(_leaf_space(v))
    return done[0]


def _leaf_space(v: Any) -> Space:
    if isinstance(v, TensorValue):
        return Copower(v.space, box_set(v.lead)) if v.lead else v.space
    return real_space(leaf_axes(v))


@lru_cache(maxsize=4096)
def real_space(shape: tuple[int, ...]) -> Space:
    """ℝ^(n₁×…×nₖ), the space of arrays of one shape; ℝ for ()."""
    return Copower(R, box_set(shape)) if shape else R


def direct_sum(*spaces: Space, index: Set | None = None, **named: Space) -> DirectSum:
    """⊕ of any spaces, nested as given; over `index`, one space per element; named components make dicts.

    >>> import riesz as rz
    >>> rz.direct_sum(rz.R * rz.R, rz.R)
    (ℝ ⊕ ℝ) ⊕ ℝ
    >>> rz.direct_sum(W=rz.R, b=rz.R).zero()
    {'W': 0.0, 'b': 0.0}
    """
    if spaces and named:
        raise SpaceError("direct_sum takes spaces by position or by name, not both")
    for s in (*spaces, *named.values()):
        if not isinstance(cast(Any, s), Space):
            raise SpaceError(f"direct_sum takes spaces; got {s!r}")
    if index is None and not named and all([s.plain for s in spaces]):
        return _tuples(spaces)
    parts = (*spaces, *named.values())
    form = Form(dict, tuple(named), ()) if named else None
    return DirectSum(Seg(len(parts)) if index is None else index, parts, form)


@lru_cache(maxsize=1024)
def _tuples(spaces: tuple[Space, ...]) -> DirectSum:
    """The space of tuples, kept for the next call with such arguments; weights would keep their arrays."""
    return DirectSum(Seg(len(spaces)), spaces, None)


def _weighted(space: Space, weight: Any) -> Weighted:
    if not space.plain:
        raise SpaceError(f"{space} has a weighted inner product already; weight the plain space")
    n = space.dim
    matrix = isinstance(weight, np.ndarray) and cast(Array, weight).shape == (n, n) and len(space.leaves) == 1
    if not matrix or space.leaves[0].shape == (n, n):
        return _positive(space, _scales(space, weight))
    if cast(Array, weight).dtype.kind != "f":
        raise SpaceError(f"the weight of {space} must be a matrix of floats; got {describe(weight)}")
    given = _canonical(np.asarray(weight, float))
    if not np.allclose(given, given.T, rtol=1e-12, atol=0.0):
        raise SpaceError(f"the weight of {space} must be symmetric: the matrix given is not")
    try:
        np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        raise SpaceError(f"the weight of {space} must be positive definite: the matrix given is not") from None
    return Weighted(space, (given,), True)


def _scales(space: Space, weight: Any) -> list[Any]:
    """A weight per leaf; a number stands for a whole component."""
    stack: list[Any] = [weight]
    found: list[Any] = []
    for step in reversed(space.code):
        w = stack.pop()
        number_given = isinstance(w, (int, float)) and not isinstance(w, bool)
        if isinstance(step, Leaf):
            mass = None if number_given else mass_of(w)
            if mass is not None and mass.shape != (step.size, step.size):
                due = f"a matrix of shape {(step.size, step.size)} for the {step.size} numbers of a component"
                raise SpaceError(f"the weight of {space} must be {due}; got one of shape {mass.shape}")
            plain = np.full(step.shape, float(w)) if number_given else None
            found.append(mass or (check_leaf(w, step.shape, space) if plain is None else plain))
        else:
            stack.extend([w] * step.arity if number_given else [part for _, part in step.take(w, space, ())])
    return found[::-1]


def _positive(space: Space, weights: list[Any]) -> Weighted:
    arrays = [_canonical(w if isinstance(w, Mass) else np.array(w, float)) for w in weights]
    for w in arrays:
        if isinstance(w, Mass) and (due := w.wrong()) is not None:
            raise SpaceError(f"the weight of {space} must be {due}: the matrix given is not")
        if not isinstance(w, Mass) and not bool(((w > 0) & np.isfinite(w)).all()):
            raise SpaceError(f"the weight of {space} must be positive and finite in every component")
    return Weighted(space, tuple(arrays), False)


_weights: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def _canonical(weight: Any) -> Any:
    """Equal weights are one array, so that weighting a space twice gives one space."""
    if isinstance(weight, Mass):
        return _weights.setdefault((weight.shape, weight.key), weight)
    return _weights.setdefault((weight.shape, weight.tobytes()), freeze(weight))
