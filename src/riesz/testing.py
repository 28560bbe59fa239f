"""Tools for tests, ours and yours: random sets, spaces, vectors, linear terms and functions, and checks of the laws.

The checks need NumPy alone. The strategies are for Hypothesis (`pip install riesz[test]`), imported when one is asked for:

    @given(linear_terms())
    def test_adjoint(t):
        check_adjoint(t)

Everything random is built by a `Builder`, which only ever asks its `pick` for a number below n. Small numbers stand for simple things,
so Hypothesis shrinks what it finds, and `Builder(np.random.default_rng(0).integers)` works without Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from . import api
from .maps.linear_map import LinearMap
from .relations import Diagonal, Empty, Full, Point, Relation, freeze, function, pairs, triangular
from .sets import Plus, Product, Seg, Set, unit
from .spaces import Copower, DirectSum, Form, Leaf, R, Space, Tensor, Weighted, direct_sum, zero_space
from .terms import primitives as prim
from .terms.bilinear import Bilinear, Contract, Hadamard, Inner, Labelled, MatMul, MatVec, Outer, ScalarMul, Section
from .terms.core import Arrow, Combine, Compose, Const, Id, Term, ZeroMap
from .terms.declared import declare_bilinear, declare_linear
from .terms.sums import Add, BlockDiag, Dup, Fork, Inject, Join, Map, Pack, Par, Project, Reduce, Regroup, Rep, Scan, Total, Unpack, Unzip, Zip
from .terms.unitary import Assoc, Bra, Distrib, Ket, Transpose, Unassoc, Unbra, Undistrib, Unket
from .terms.weights import Equip, Forget, Represent, Weigh
from .vectors import Formal
from .vectors import Product as FormalProduct

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
Pick = Callable[[int], int]
Moves = list[Callable[[], Term]]


# -- checks of the laws -----------------------------------------------------------------------------------------------


def check_adjoint(L: LinearMap | Term, draws: int = 10, tolerance: float = 1e-12, seed: int = 0) -> None:
    """Check ⟨L v, w⟩ = ⟨v, L* w⟩ on random vectors, relative to the norms of the four of them.

    >>> import riesz as rz
    >>> check_adjoint(rz.scan.at(rz.R ** rz.seg(5)))
    """
    rng = np.random.default_rng(seed)
    V, W, back = L.domain, L.codomain, L.H
    if back.domain is not W or back.codomain is not V:
        raise AssertionError(f"the adjoint of L : {V} ⊸ {W} goes from {back.domain} to {back.codomain}")
    for _ in range(draws):
        v, w = V.random(rng), W.random(rng)
        Lv, Lw = L(v), back(w)
        there, here = W.inner(Lv, w), V.inner(v, Lw)
        scale = max(W.norm(Lv) * W.norm(w), V.norm(v) * V.norm(Lw))
        if not abs(there - here) <= tolerance * scale:
            raise AssertionError(
                f"not an adjoint: ⟨L v, w⟩ = {there!r} but ⟨v, L* w⟩ = {here!r}, "
                f"{abs(there - here) / scale:.1e} relative to ‖L v‖‖w‖   (L : {V} ⊸ {W})"
            )


def check_derivative(f: Arrow, *args: Any, draws: int = 3, seed: int = 0) -> None:
    """Check the derivative of f at a point: the Taylor remainder ‖f(x + h·dx) − f(x) − h·f'(x)dx‖ is of order h², forward mode
    gives the same f'(x)dx, and the adjoint is one.

    >>> import riesz as rz
    >>> check_derivative(rz.sin @ rz.exp, 0.3)
    """
    y, L = api.linearize(f, *args)
    V, W = L.domain, L.codomain
    x = args[0] if len(args) == 1 else args
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        dx = V.random(rng)
        dx = V.scale(1.0 / max(V.norm(dx), 1.0), dx)
        dy = L(dx)
        value, forward = api.jvp(f, (x,), (dx,))
        if not (W.equal(value, y) and W.equal(forward, dy)):
            raise AssertionError(f"linearize and jvp disagree: f'(x)dx = {dy!r} by the one, {forward!r} by the other   (f : {V} → {W})")
        check_taylor(lambda h, dx=dx: f(V.add(x, V.scale(h, dx))), y, dy, W)
    check_adjoint(L, draws)


def check_taylor(f: Callable[[float], Any], y: Any, dy: Any, W: Space) -> None:
    """Check that f(h) − y − h·dy is of order h²: divided by h² it stays bounded as h is halved, down to where rounding begins.

    A wrong dy makes the quotient double with every halving, so it may not be 4 times larger than at all h at least 16 times as large.
    """
    quotients: list[float] = []
    for h in [2.0**-k for k in range(2, 26)]:
        there = f(h)
        remainder = W.norm(W.add(W.add(there, W.scale(-1.0, y)), W.scale(-h, dy)))
        if not remainder > 1e4 * np.finfo(float).eps * (1.0 + W.norm(there) + W.norm(y)):
            break
        quotients.append(remainder / h**2)
    # Fewer than nine: f is as linear as its rounding shows, and dy right to nine digits.
    if len(quotients) > 8 and not quotients[-1] <= 4.0 * max(quotients[:-4]):
        grown = ", ".join([f"{q:.1e}" for q in quotients[-5:]])
        raise AssertionError(
            f"not the derivative: f(x + h·dx) − f(x) − h·f'(x)dx is not of order h²; divided by h², as h is halved, it grows: {grown}"
        )


# -- strategies -------------------------------------------------------------------------------------------------------


def index_sets(most: int = 6) -> SearchStrategy[Set]:
    """Index sets of at most `most` elements: segments, products and sums, nested; empty ones too."""
    return _strategy(lambda b: b.index_set(most))


def relations(source: Set, target: Set) -> SearchStrategy[Relation]:
    """Relations between two sets, of every kind, with multiplicities."""
    return _strategy(lambda b: b.relation(source, target))


def spaces(most: int = 30, weighted: bool = True) -> SearchStrategy[Space]:
    """Spaces of dimension at most `most`: 0, ℝ, sums of different spaces, named or not, copowers, tensor products, weights."""
    return _strategy(lambda b: b.space(most), weighted=weighted)


def vectors(space: Space) -> SearchStrategy[Any]:
    """Elements of a space; tensors may be unevaluated."""
    return _strategy(lambda b: b.vector(space))


def linear_terms(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Linear terms of every class, from the given space or a random one."""
    return _strategy(lambda b: b.linear(b.space() if domain is None else domain), weighted=weighted)


def bilinears(weighted: bool = True) -> SearchStrategy[Bilinear]:
    """Bilinear functions of every class."""
    return _strategy(lambda b: b.bilinear(), weighted=weighted)


def functions(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Smooth functions: primitives, products, constants, arithmetic, families, compositions, with sharing."""
    return _strategy(lambda b: b.function(b.space() if domain is None else domain), weighted=weighted)


def scalar_functions(domain: Space | None = None, weighted: bool = True) -> SearchStrategy[Term]:
    """Smooth functions into ℝ."""
    return _strategy(lambda b: b.scalar(b.space() if domain is None else domain), weighted=weighted)


def _strategy(build: Callable[[Builder], T], weighted: bool = True) -> SearchStrategy[T]:
    from hypothesis import strategies as st

    below = cache(lambda n: st.integers(0, n - 1))  # pyright: ignore

    @st.composite
    def drawn(draw: Any) -> T:
        return build(Builder(lambda n: draw(below(n)), weighted=weighted))

    return drawn()


# -- builders ---------------------------------------------------------------------------------------------------------


class Couple(NamedTuple):
    """A named tuple of two components."""

    first: Any
    second: Any


@dataclass
class Duo:
    """A dataclass of two components."""

    one: Any
    two: Any


@dataclass(frozen=True)
class Multilinear:
    """A random linear or bilinear function to declare, by the array of its form: `leg` of ⟨f(v), w⟩ or ⟨u ⋄ v, w⟩ from the other legs.

    `batched` is for legs ℝ^n: the functions accept leading axes.
    """

    spaces: tuple[Space, ...]
    leg: int
    seed: int
    batched: bool

    def __call__(self, *given: Any) -> Any:
        entries = np.random.default_rng(self.seed).standard_normal([V.dim for V in self.spaces])
        legs = [i for i in range(len(self.spaces)) if i != self.leg]
        arrays = given if self.batched else [self.spaces[i].flatten(v) for i, v in zip(legs, given, strict=True)]
        operands: list[Any] = [entries, list(range(len(self.spaces)))]
        for i, a in zip(legs, arrays, strict=True):
            operands += [a, [..., i]]
        result = cast(Any, np.einsum)(*operands, [..., self.leg])
        return result if self.batched else self.spaces[self.leg].unflatten(result)


def multiply(u: Any, v: Any) -> Any:
    """The product of two arrays."""
    return u * v


@cache
def smooth_functions() -> tuple[Term, ...]:
    """Functions ℝ → ℝ that are smooth everywhere, made of every smooth primitive."""
    p = prim
    return (
        *(p.sin, p.cos, p.tanh, p.sigmoid, p.arctan, p.arcsinh, p.exp @ p.sin, p.power(2) @ p.sin, p.power(3) @ p.tanh),
        *(
            p.ln @ (p.cos + 2.0),
            p.sqrt @ (p.sin + 2.0),
            p.log1p @ p.power(2),
            p.expm1 @ p.sin,
            p.tan @ (0.5 * p.sin),
            p.sinh @ (0.5 * p.cos),
            p.cosh @ p.cos,
        ),
        *(p.arcsin @ (0.5 * p.sin), p.arccos @ (0.5 * p.cos), p.arccosh @ (p.sin + 3.0), p.arctanh @ (0.5 * p.tanh), p.reciprocal @ (p.cos + 2.0)),
        *(p.power(1), p.power(0), p.power(-2) @ (p.sin + 3.0), p.power(0.5) @ (p.cos + 2.0), p.sin / (p.cos + 2.0)),
    )


class Builder:
    """Builds random things of dimension at most `most`; `pick(n)` chooses a number below n, and 0 leads to the simplest."""

    def __init__(self, pick: Pick, most: int = 24, weighted: bool = True) -> None:
        self.pick = pick
        self.most = most
        self.weighted = weighted
        self.mapped = False  # inside f^X, where declared functions must accept leading axes

    def among(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self.pick(len(options)))]

    def maybe(self, one_in: int = 2) -> bool:
        """True, once in a while."""
        return self.pick(one_in) == one_in - 1

    def rng(self) -> np.random.Generator:
        """A source of numbers."""
        return np.random.default_rng(int(self.pick(1 << 16)))

    # -- sets and relations --------------------------------------------------------------------------------------------

    def index_set(self, most: int = 6, depth: int = 2) -> Set:
        """An index set of at most `most` elements."""
        kind = self.pick(7) if depth else 0
        if kind < 3:
            return Seg(min(self.among((2, 1, 3, 2, 4, 2, 3, 1, 2, 3, 2, 3, 0)), most))
        if kind == 3 and most > 2:  # (X + Y) × Z, whose elements do not lie in one box
            n = self.among((2, 1, 3))
            return Product((Plus((Seg(1), Seg(max(most // n - 1, 0)))), Seg(n)))
        parts: list[Set] = []
        for _ in range(self.among((2, 3, 1, 2, 2, 3, 2, 0))):
            parts.append(self.index_set(most, depth - 1))
            most = most // max(parts[-1].size, 1) if kind < 6 else most - parts[-1].size
        found = Product(tuple(parts)) if kind < 6 else Plus(tuple(parts))
        return found if parts or found.size <= most else Seg(0)

    def some_set(self, most: int = 6) -> Set:
        """An index set with an element."""
        found = self.index_set(max(most, 1))
        return found if found.size else Seg(1)

    def relation(self, source: Set, target: Set, depth: int = 1) -> Relation:
        """A relation between two sets."""
        n, m, rng = source.size, target.size, self.rng()
        options: list[Callable[[], Relation]] = [
            lambda: pairs(source, target, [(source.element(i), target.element(j)) for i, j in rng.integers(0, (n, m), (n + m, 2))] if n * m else []),
            lambda: Full(source, target, 1 + self.pick(2)),
            lambda: Empty(source, target),
        ]
        if m or not n:
            options.append(lambda: function(source, target, rng.integers(0, max(m, 1), n)))
        if n or not m:
            options.append(lambda: function(target, source, rng.integers(0, max(n, 1), m)).converse)
        if n == m:
            options.append(lambda: Diagonal(source, target))
        if source is target and isinstance(source, Seg):
            options.append(lambda: triangular(source))
        if target is unit and n:
            options.append(lambda: Point(source, target, self.pick(n)))
        if depth:
            options.append(lambda: self.relation(target, source, depth - 1).converse)
            options.append(lambda: self._then(source, self.index_set(4), target))
        return self.among(options)()

    def _then(self, source: Set, middle: Set, target: Set) -> Relation:
        return self.relation(source, middle, 0).then(self.relation(middle, target, 0))

    # -- spaces and vectors --------------------------------------------------------------------------------------------

    def space(self, most: int | None = None, depth: int = 3) -> Space:
        """A space of dimension at most `most`."""
        room = self.most if most is None else most
        if room < 1:
            return self.among((zero_space, Copower(R, Seg(0))))
        if self.maybe(16):
            return zero_space
        kinds: list[Callable[[], Space]] = [lambda: R, lambda: Copower(R, self.index_set(min(room, 6)))]
        if depth:
            kinds += [
                lambda: self._sum(room, depth - 1),
                lambda: self._copower(room, depth - 1),
                lambda: self._tensor(room, depth - 1),
                lambda: self._sum(room, depth - 1),
                *([lambda: self.weight(self.space(room, depth - 1))] if self.weighted else []),
            ]
        return self.among(kinds)()

    def plain_space(self, most: int, depth: int = 2) -> Space:
        """A space with its Euclidean inner product."""
        weighted, self.weighted = self.weighted, False
        try:
            return self.space(most, depth)
        finally:
            self.weighted = weighted

    def _sum(self, room: int, depth: int) -> Space:
        parts: list[Space] = []
        for _ in range(self.among((2, 3, 1, 2, 2, 3, 2, 0))):
            parts.append(self.space(room, depth))
            room -= parts[-1].dim
        return self.sum_of(parts)

    def sum_of(self, parts: Sequence[Space]) -> DirectSum:
        """A direct sum of the given spaces, held in some container, over some index set of that size."""
        n = len(parts)
        forms = [None, None, Form(dict, tuple("abcdef"[:n])), Form(list, None)]
        if n == 2:
            forms += [Form(Couple, ("first", "second")), Form(Duo, ("one", "two"))]
        index = self.index_set(n) if self.maybe(4) else Seg(n)
        return DirectSum(index if index.size == n else Seg(n), tuple(parts), self.among(forms))

    def _copower(self, room: int, depth: int) -> Space:
        index = self.index_set(min(room, 6))
        return Copower(self.space(room // max(index.size, 1), depth), index)

    def _tensor(self, room: int, depth: int) -> Space:
        left = R if self.maybe(4) else self.space(min(room, 6), depth)
        return Tensor(left, self.space(room // max(left.dim, 1), depth))

    def weight(self, space: Space) -> Space:
        """A plain space with some inner product."""
        if not space.plain:
            return space
        rng = self.rng()
        scales = [0.5 + rng.random(leaf.shape) if leaf.shape else 0.5 + float(rng.random()) for leaf in space.leaves]
        n = space.dim
        match self.pick(3):
            case 0:
                return space.weighted(2.0)
            case 1 if len(space.leaves) == 1 and space.leaves[0].shape != (n, n):
                half = rng.standard_normal((n, n)) / (n + 1.0)
                return space.weighted(half @ half.T + np.eye(n))
            case _:
                return space.weighted(space.wrap(scales))

    def vector(self, space: Space) -> Any:
        """An element of a space."""
        return space.wrap(list(self.leaves(space)))

    def leaves(self, space: Space) -> tuple[Any, ...]:
        """The leaves of an element, read-only; some of a tensor's unevaluated."""
        rng, formal = self.rng(), self.maybe(3)
        return tuple([_leaf(leaf, rng, formal) for leaf in space.leaves])

    # -- linear terms --------------------------------------------------------------------------------------------------

    def linear(self, V: Space, depth: int = 3) -> Term:
        """A linear term from V."""
        t = self.step(V, depth)
        if depth and not self.maybe(3):
            t = self.after(self.linear(t.codomain, depth - 1), t)
        return t

    def after(self, g: Term, f: Term) -> Term:
        """g • f, bracketed one way or the other."""
        if isinstance(g, Compose) and self.maybe():
            return Compose(g.outer, Compose(g.inner, f))
        return Compose(g, f)

    def step(self, V: Space, depth: int) -> Term:
        """One combinator from V; anything too large is left out."""
        groups = [self._anywhere(V), self._sections(V), self._by_shape(V), self._by_shape(V)]
        if depth:
            groups.append(self._composite(V, depth - 1))
        t = self.among(self.among([g for g in groups if g]))()
        return t if self.fits(t.codomain) else Id(V)

    def fits(self, W: Space) -> bool:
        """Whether a space is small."""
        return W.dim <= self.most and len(W.leaves) <= 12

    def _anywhere(self, V: Space) -> Moves:
        room = self.most // max(V.dim, 1)
        return [
            lambda: Id(V),
            lambda: ZeroMap(V, self.space()),
            lambda: Dup(self.sum_of([V] * self.among((2, 3, 1)))),
            lambda: self._inject(V),
            lambda: Rep(self.index_set(room), V, None),
            lambda: self._rep_only(V, self.index_set(room)),
            lambda: Bra(V),
            lambda: Ket(V),
            lambda: self._declared(V),
            *([lambda: self.among((Equip, Represent))(self.weight(V))] if V.plain and self.weighted else []),
        ]

    def _inject(self, V: Space) -> Term:
        if self.maybe():
            index = self.some_set(self.most // max(V.dim, 1))
            return Inject(Copower(V, index), self.pick(index.size))
        others = [self.space(self.most - V.dim, 1) for _ in range(self.pick(3))]
        at = self.pick(len(others) + 1)
        return Inject(self.sum_of([*others[:at], V, *others[at:]]), at)

    def _rep_only(self, V: Space, index: Set) -> Term:
        return Rep(index, V, self._some(index))

    def _some(self, index: Set) -> tuple[int, ...]:
        return tuple([p for p in range(index.size) if self.maybe()])

    def _declared(self, V: Space) -> Term:
        batched = _is_vector(V)
        if not batched and (self.mapped or not V.plain):
            return Id(V)
        return self._matrix(V, Copower(R, Seg(self.pick(4))) if batched else self.plain_space(6), batched)

    def _matrix(self, V: Space, W: Space, batched: bool) -> Term:
        seed = self.pick(100)
        there, back = [Multilinear((V, W), leg, seed, batched) for leg in (1, 0)]
        return declare_linear(there, back, V, W, "matrix", batched)

    def _sections(self, V: Space) -> Moves:
        room = self.most // max(V.dim, 1)
        found: Moves = [
            lambda: self.section(Inner(V), self.pick(2)),
            lambda: self.section(ScalarMul(V), 0),
            lambda: self.section(Outer(V, self.space(room, 1)), 1),
            lambda: self.section(Outer(self.space(room, 1), V), 0),
        ]
        if V is R:
            found.append(lambda: self.section(ScalarMul(self.space()), 1))
        if isinstance(V, Tensor):
            found += [lambda: self.section(Contract(self.space(6, 1), V.left, V.right), 0)] * 2
            found += [lambda: self.section(Contract(V.left, V.right, self.space(6, 1)), 1)] * 2
        if isinstance(V, Copower) and V.base is R:
            found.append(lambda: self.section(Hadamard(V), self.pick(2)))
            if V.index.box is not None:
                found.append(lambda: self._array_section(V, V.index.box or ()))
                found += [lambda: self._labelled(V, V.index.box or ())] * 2
        if _is_vector(V) or (V.plain and not self.mapped):
            found.append(lambda: self._declared_section(V, self.pick(2)))
        return found

    def section(self, bilinear: Bilinear, side: int) -> Section:
        """(u ⋄) or (⋄ v) with a random argument at `side`."""
        return Section(bilinear, side, self.leaves(bilinear.right if side else bilinear.left))

    def _declared_section(self, V: Space, side: int) -> Term:
        U, W = [Copower(R, Seg(self.pick(4))) if _is_vector(V) else self.plain_space(4, 1) for _ in range(2)]
        return self.section(self._trilinear((V, U, W) if side else (U, V, W)), side)

    def _trilinear(self, spaces: tuple[Space, Space, Space]) -> Bilinear:
        batched, seed = all([_is_vector(V) for V in spaces]), self.pick(100)
        u, v, w = [Multilinear(spaces, leg, seed, batched) for leg in range(3)]
        return declare_bilinear(w, v, u, spaces, "trilinear", batched)

    def _array_section(self, V: Space, shape: tuple[int, ...]) -> Term:
        cut, n = self.pick(len(shape) + 1), self.pick(4)
        head, tail = shape[:cut], shape[cut:]
        options = [(MatVec((n,), shape), 0), (MatVec(head, tail), 1), (MatMul((n,), head, tail), 0), (MatMul(head, tail, (n,)), 1)]
        bilinear, side = self.among(options)
        section = self.section(bilinear, side)
        return section if section.domain is V else Compose(section, Regroup(V, section.domain))

    def _labelled(self, V: Space, shape: tuple[int, ...]) -> Term:
        labels: list[int] = []
        for i, n in enumerate(shape):
            same = [labels[j] for j in range(i) if shape[j] == n]
            labels.append(self.among(same) if same and self.maybe(3) else i)
        out = [label for label in labels if not self.maybe(3)]
        out = out[::-1] if self.maybe() else out
        extra = ((9, self.pick(3)),) if self.maybe(3) else ()
        out = [9, *out] if extra else out
        t = Labelled((tuple(labels),), tuple(out), (shape,), extra)
        return t if t.domain is V else Compose(t, Regroup(V, t.domain))

    def _by_shape(self, V: Space) -> Moves:
        match V:
            case DirectSum():
                return self._on_sum(V)
            case Copower():
                return self._on_copower(V)
            case Tensor():
                return self._on_tensor(V)
            case Weighted():
                return [lambda: Forget(V), lambda: Weigh(V)]
            case _:
                return []

    def _on_sum(self, V: DirectSum) -> Moves:
        parts = V.summands
        found: Moves = [lambda: Regroup(V, self.sum_of(parts))]
        if parts:
            found.append(lambda: Project(V, self.pick(len(parts))))
        if parts and all([p is parts[0] for p in parts]):
            found.append(lambda: Add(V))
            if V.form is None:
                found.append(lambda: Pack(parts[0], V.index))
        if parts and all([isinstance(p, type(parts[0])) and getattr(p, "index", p) is getattr(parts[0], "index", 0) for p in parts]):
            found += [lambda: Zip(V)] * 2
        rows = [p for p in parts if isinstance(p, DirectSum)]
        if rows and len(rows) == len(parts) and all([p.index is rows[0].index and p.form is rows[0].form for p in rows]):
            columns = [DirectSum(V.index, column, V.form) for column in zip(*[p.summands for p in rows], strict=True)]
            if columns:
                found.append(lambda: Unzip(DirectSum(rows[0].index, tuple(columns), rows[0].form)))
        tensors = [p for p in parts if isinstance(p, Tensor)]
        if tensors and len(tensors) == len(parts) and all([p.right is tensors[0].right for p in tensors]):
            left = DirectSum(V.index, tuple([p.left for p in tensors]), V.form)
            found.append(lambda: Undistrib(left, tensors[0].right))
        return found

    def _on_copower(self, V: Copower) -> Moves:
        X, base = V.index, V.base
        found: Moves = [
            lambda: Reduce(self.relation(X, X), base),
            *[lambda: Reduce(self.relation(X, self.index_set(self.most // max(base.dim, 1))), base)] * 2,
            lambda: Total(X, base, None),
            lambda: Total(X, base, self._some(X)),
            lambda: self._regroup(V),
        ]
        if X.size:
            found.append(lambda: Project(V, self.pick(X.size)))
        if X.size <= 4:
            found.append(lambda: Unpack(base, X))
        if isinstance(X, Seg):
            found.append(lambda: Scan(X, base, self.maybe()))
        if isinstance(base, Tensor):
            found.append(lambda: Undistrib(Copower(base.left, X), base.right))
        if isinstance(base, DirectSum) and base.summands:
            found += [lambda: Unzip(DirectSum(base.index, tuple([Copower(s, X) for s in base.summands]), base.form))] * 2
        return found

    def _regroup(self, V: Copower) -> Term:
        """(V^Y)^X and V^(X×Y), one index set under two names."""
        match V.index, V.base:
            case Product(factors=(first, *rest)), _:
                return Regroup(V, Copower(Copower(V.base, Product(tuple(rest))), first))
            case _, Copower(base=base, index=inner):
                return Regroup(V, Copower(base, Product((V.index, inner))))
            case _:
                return Regroup(V, Copower(V.base, Product((V.index,))))

    def _on_tensor(self, V: Tensor) -> Moves:
        A, B = V.left, V.right
        found: Moves = [lambda: Transpose(A, B)]
        if A is R:
            found.append(lambda: Unbra(B))
        if B is R:
            found.append(lambda: Unket(A))
        if isinstance(A, Tensor):
            found.append(lambda: Assoc(A.left, A.right, B))
        if isinstance(B, Tensor):
            found.append(lambda: Unassoc(A, B.left, B.right))
        if isinstance(A, (DirectSum, Copower)):
            found += [lambda: Distrib(A, B)] * 2
        return found

    def _composite(self, V: Space, depth: int) -> Moves:
        found: Moves = [
            lambda: self._combine(V, depth),
            lambda: self._fork(V, depth),
            lambda: self._zipped(V, depth),
            lambda: self.between(V, self.space(), depth),
        ]
        match V:
            case DirectSum(summands=parts) if parts:
                family = self.among((Par, BlockDiag))
                found.append(lambda: family(tuple([self.linear(p, depth) for p in parts]), V.index, V.form))
                found.append(lambda: self.between(V, self.space(), depth))
            case Copower():
                found += [lambda: Map(self._inside(V.base, depth), V.index)] * 3
            case _:
                pass
        return found

    def _inside(self, V: Space, depth: int) -> Term:
        mapped, self.mapped = self.mapped, True
        try:
            return self.linear(V, depth)
        finally:
            self.mapped = mapped

    def _combine(self, V: Space, depth: int) -> Term:
        # Coefficients of one term have one sign: what cancels to rounding errors has no relative precision.
        f = self.linear(V, depth)
        parts = [(self.among((1.0, 0.5, 2.0, 0.0)), f)]
        for _ in range(self.pick(3)):
            parts.append(self.among([(2.5, f), (self.among((-1.0, 1.0, 0.7, -0.3)), self.between(V, f.codomain, depth))]))
        return Combine(tuple([k for k, _ in parts]), tuple([t for _, t in parts]))

    def _fork(self, V: Space, depth: int) -> Term:
        f = self.linear(V, depth)
        rest = [f if self.maybe(3) else self.linear(V, depth) for _ in range(self.pick(3))]
        return Fork((f, *rest))

    def _zipped(self, V: Space, depth: int) -> Term:
        """zip • ⟨f^X, g^X⟩ • rep_X."""
        index = self.index_set(self.most // max(V.dim, 1))
        both = Fork((Map(self._inside(V, depth), index), Map(Id(V), index)))
        return Compose(Zip(both.codomain), Compose(both, Rep(index, V, None)))

    def between(self, V: Space, W: Space, depth: int = 2) -> Term:
        """A linear term from V to W."""
        options: Moves = [lambda: Compose(self.section(ScalarMul(W), 1), self.section(Inner(V), 1)), lambda: ZeroMap(V, W)]
        if V is W:
            options += [lambda: Id(V), lambda: self.section(ScalarMul(V), 0)]
        if V.plain and W.plain and not self.mapped:
            options.append(lambda: self._matrix(V, W, False))
        if depth:
            options += self._between_parts(V, W, depth - 1)
        return self.among(options)()

    def _between_parts(self, V: Space, W: Space, depth: int) -> Moves:
        options: Moves = []
        if isinstance(V, DirectSum) and V.summands:
            joined = tuple([self.between(p, W, depth) for p in V.summands])
            options += [lambda: self._at(Join(joined), V)] * 2
        if isinstance(W, DirectSum) and W.summands:
            forked = Fork(tuple([self.between(V, p, depth) for p in W.summands]))
            options.append(lambda: forked if forked.codomain is W else Compose(Regroup(forked.codomain, W), forked))
        if isinstance(W, Copower):
            options.append(lambda: Compose(Rep(W.index, W.base, None), self.between(V, W.base, depth)))
        if isinstance(V, Copower):
            options.append(lambda: Compose(self.between(V.base, W, depth), Total(V.index, V.base, None)))
        return options

    def _at(self, t: Term, V: Space) -> Term:
        return t if t.domain is V else Compose(t, Regroup(V, t.domain))

    # -- functions -----------------------------------------------------------------------------------------------------

    def bilinear(self) -> Bilinear:
        """A bilinear function of any class."""
        V = self.space(8, 2)
        n, m, k = self.pick(4), self.pick(4), self.pick(4)
        array = Copower(R, self.index_set())
        options: list[Callable[[], Bilinear]] = [
            lambda: Inner(V),
            lambda: ScalarMul(V),
            lambda: Outer(V, self.space(self.most // max(V.dim, 1), 2)),
            *[lambda: self._contract()] * 4,
            lambda: MatVec((n,), (m,)),
            lambda: MatVec((n, 2), (m,)),
            lambda: MatMul((n,), (m,), (k,)),
            lambda: Hadamard(array),
            lambda: declare_bilinear(multiply, multiply, multiply, (array, array, array), "multiply", True) if array.index.box else Hadamard(array),
            lambda: self._trilinear((Copower(R, Seg(n)), Copower(R, Seg(m)), Copower(R, Seg(k)))),
            *([lambda: self._trilinear((V, self.plain_space(4), self.plain_space(4)))] if V.plain and not self.mapped else []),
        ]
        return self.among(options)()

    def _contract(self) -> Bilinear:
        W, V, U = [self._sum(4, 1) if self.maybe() else self.space(4, 2) for _ in range(3)]
        return Contract(W, V, U)

    def function(self, V: Space, depth: int = 2) -> Term:
        """A smooth function from V."""
        options: Moves = [lambda: self.smooth(V), lambda: self.linear(V, 1)]
        if depth:
            options += [
                lambda: self.chain(V, depth - 1),
                lambda: self.product(V, depth - 1),
                lambda: self.arithmetic(V, depth - 1),
                lambda: self._forked(V, depth - 1),
                lambda: Const(V, W := self.space(6, 1), self.leaves(W)),
                *self._families(V, depth - 1),
            ]
        f = self.among(options)()
        return f if self.fits(f.codomain) else Id(V)

    def scalar(self, V: Space, depth: int = 2) -> Term:
        """A smooth function into ℝ."""
        f = self.function(V, depth)
        W = f.codomain
        ends: Moves = [lambda: Compose(self.section(Inner(W), 1), f), lambda: Compose(Inner(W), Fork((f, f)))]
        return f if W is R else Compose(self.smooth(R), self.among(ends)())

    def smooth(self, V: Space) -> Term:
        """A smooth function V → V by the structure of V."""
        match V:
            case Copower():
                return Map(self.smooth(V.base), V.index)
            case DirectSum():
                return Par(tuple([self.smooth(p) for p in V.summands]), V.index, V.form)
            case Weighted():
                return Compose(Equip(V), Compose(self.smooth(V.base), Forget(V)))
            case Tensor():
                size = Compose(prim.tanh, Compose(Inner(V), Dup(direct_sum(V, V))))
                return Compose(ScalarMul(V), Fork((size, Id(V))))
            case _ if V is R:
                return self.among(smooth_functions())
            case _:
                return Id(V)

    def toward(self, V: Space, W: Space) -> Term:
        """A smooth function from V to W."""
        f = self.between(V, W, 1)
        return Compose(self.smooth(W), f) if self.maybe() else f

    def chain(self, V: Space, depth: int) -> Term:
        """g ∘ f, sometimes with f used twice."""
        f = self.function(V, depth)
        if self.maybe(3) and 2 * f.codomain.dim <= self.most:
            f = Compose(Fork((Id(f.codomain), self.function(f.codomain, 0))), f)
        return Compose(self.function(f.codomain, depth), f)

    def product(self, V: Space, depth: int) -> Term:
        """f ⋄ g for a bilinear ⋄."""
        B = self.bilinear()
        return Compose(B, Fork((self.toward(V, B.left), self.toward(V, B.right))))

    def arithmetic(self, V: Space, depth: int) -> Term:
        """f + g, f − g, k·f, f·g, f / g, f², f + w."""
        f = self.function(V, depth)
        W = f.codomain
        g = f if self.maybe(3) else self.toward(V, W)
        options: list[Callable[[], Any]] = [lambda: f + g, lambda: f - self.toward(V, W), lambda: self.among((0.5, -1.0, -1.3)) * f]
        options.append(lambda: Combine((1.0, 1.0), (f, Const(V, W, self.leaves(W)))))
        if W is R or (isinstance(W, Copower) and W.base is R):
            sines = Compose(Map(prim.sin, W.index) if isinstance(W, Copower) else prim.sin, g)
            options += [lambda: f * g, lambda: f / (sines + 2.0), lambda: f**2, lambda: 1.0 - f]
        if W.plain:
            options.append(lambda: f * self.toward(V, R))
        return self.among(options)()

    def _forked(self, V: Space, depth: int) -> Term:
        f = self.function(V, depth)
        return Fork((f, *[f if self.maybe(3) else self.function(V, depth) for _ in range(self.pick(3))]))

    def _families(self, V: Space, depth: int) -> Moves:
        match V:
            case DirectSum(summands=parts):
                return [lambda: Par(tuple([self.function(p, depth) for p in parts]), V.index, V.form)]
            case Copower():
                return [lambda: Map(self._function_inside(V.base, depth), V.index)] * 2
            case _:
                return []

    def _function_inside(self, V: Space, depth: int) -> Term:
        mapped, self.mapped = self.mapped, True
        try:
            return self.function(V, depth)
        finally:
            self.mapped = mapped


def _is_vector(V: Space) -> bool:
    """Whether V is ℝ^n."""
    return isinstance(V, Copower) and V.base is R and isinstance(V.index, Seg)


def _leaf(leaf: Leaf, rng: np.random.Generator, formal: bool) -> Any:
    """Random numbers in the shape of a leaf, read-only; or an unevaluated sum of two products."""
    shape = leaf.shape
    if not shape:
        return float(rng.standard_normal())
    if not (formal and leaf.formal and len(shape) > 1):
        return freeze(rng.standard_normal(shape))
    rest = tuple(range(1, len(shape)))
    products = [((rng.standard_normal(shape[0]), (0,)), (rng.standard_normal(shape[1:]), rest)) for _ in range(1 + rng.integers(2))]
    return Formal(shape, tuple([FormalProduct(float(rng.standard_normal()), p) for p in products]))
