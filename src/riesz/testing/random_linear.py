"""Random linear terms, of every kind there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..ops.op import Reshape, contraction
from ..relations.index_sets import Product, Seg, Set
from ..spaces.space import Copower, DirectSum, R, Space, Tensor, Weighted, real_space
from ..terms import sums, unitary
from ..terms.bilinear import Applied, Bilinear, Contract, Hadamard, Inner, MatMul, MatVec, Outer, ScalarMul, Section
from ..terms.declared import declare_bilinear, declare_linear
from ..terms.sums import Fork, Map, Regroup, Rep, Zip
from ..terms.term import Combine, Compose, Id, Term, ZeroMap
from ..terms.weights import Equip, Forget, Represent, Weigh
from .random_spaces import Moves, SpaceBuilder


@dataclass(frozen=True)
class RandomForm:
    """A random function to declare, by the array of its form: `leg` of ⟨f(v), w⟩ or ⟨u ⋄ v, w⟩ from the other legs.
    `batched` is for legs ℝ^n: the functions accept leading axes."""

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


class LinearBuilder(SpaceBuilder):
    """Builds linear terms from a given space on, one fitting step after another."""

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
            lambda: sums.Dup(self.sum_of([V] * self.among((2, 3, 1)))),
            lambda: self._inject(V),
            lambda: Rep(self.index_set(room), V, None),
            lambda: Rep(index := self.index_set(room), V, self._some(index)),
            lambda: unitary.Bra(V),
            lambda: unitary.Ket(V),
            lambda: self._declared(V),
            lambda: self._reshaped(V),
            *([lambda: self.among((Equip, Represent))(self.weight(V))] if V.plain and self.weighted else []),
        ]

    def _inject(self, V: Space) -> Term:
        if self.maybe():
            index = self.some_set(self.most // max(V.dim, 1))
            return sums.Inject(Copower(V, index), self.pick(index.size))
        others = [self.space(self.most - V.dim, 1) for _ in range(self.pick(3))]
        at = self.pick(len(others) + 1)
        return sums.Inject(self.sum_of([*others[:at], V, *others[at:]]), at)

    def _some(self, index: Set) -> tuple[int, ...]:
        return tuple([p for p in range(index.size) if self.maybe()])

    def _reshaped(self, V: Space) -> Term:
        if len(V.leaves) != 1 or V is not real_space(V.leaves[0].shape):
            return Id(V)
        shape = V.leaves[0].shape
        return Applied(Reshape(self.among(((V.dim,), (V.dim, 1), (1, *shape[::-1])))), (shape,))

    def _declared(self, V: Space) -> Term:
        batched = _is_vector(V)
        if not batched and (self.mapped or not V.plain):
            return Id(V)
        return self._matrix(V, Copower(R, Seg(self.pick(4))) if batched else self.plain_space(6), batched)

    def _matrix(self, V: Space, W: Space, batched: bool) -> Term:
        seed = self.pick(100)
        there, back = [RandomForm((V, W), leg, seed, batched) for leg in (1, 0)]
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
        u, v, w = [RandomForm(spaces, leg, seed, batched) for leg in range(3)]
        return declare_bilinear(w, v, u, spaces, "trilinear", batched)

    def _array_section(self, V: Space, shape: tuple[int, ...]) -> Term:
        cut, n = self.pick(len(shape) + 1), (self.pick(4),)
        head, tail = shape[:cut], shape[cut:]
        matrices = [(MatMul(n, head, tail), 0), (MatMul(head, tail, n), 1)]
        bilinear, side = self.among([(MatVec(n, shape), 0), (MatVec(head, tail), 1), *matrices])
        return _at(self.section(bilinear, side), V)

    def _labelled(self, V: Space, shape: tuple[int, ...]) -> Term:
        labels: list[int] = []
        for i, n in enumerate(shape):
            same = [labels[j] for j in range(i) if shape[j] == n]
            labels.append(self.among(same) if same and self.maybe(3) else i)
        out = [label for label in labels if not self.maybe(3)]
        out = out[::-1] if self.maybe() else out
        extra = ((9, self.pick(3)),) if self.maybe(3) else ()
        out = [9, *out] if extra else out
        return _at(Applied(contraction((tuple(labels),), tuple(out), dict(extra)), (shape,)), V)

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
            found.append(lambda: sums.Project(V, self.pick(len(parts))))
        if parts and all([p is parts[0] for p in parts]):
            found.append(lambda: sums.Add(V))
            if V.form is None:
                found.append(lambda: sums.Pack(parts[0], V.index))
        first = getattr(parts[0], "index", 0) if parts else 0
        same = [isinstance(p, type(parts[0])) and getattr(p, "index", p) is first for p in parts]
        if parts and all(same):
            found += [lambda: Zip(V)] * 2
        rows = [p for p in parts if isinstance(p, DirectSum)]
        alike = len(rows) == len(parts) and all([p.index is rows[0].index and p.form is rows[0].form for p in rows])
        if rows and alike:
            columns = [DirectSum(V.index, column, V.form) for column in zip(*[p.summands for p in rows], strict=True)]
            if columns:
                found.append(lambda: sums.Unzip(DirectSum(rows[0].index, tuple(columns), rows[0].form)))
        tensors = [p for p in parts if isinstance(p, Tensor)]
        if tensors and len(tensors) == len(parts) and all([p.right is tensors[0].right for p in tensors]):
            left = DirectSum(V.index, tuple([p.left for p in tensors]), V.form)
            found.append(lambda: unitary.Undistrib(left, tensors[0].right))
        return found

    def _on_copower(self, V: Copower) -> Moves:
        X, base = V.index, V.base
        found: Moves = [
            lambda: sums.Reduce(self.relation(X, X), base),
            *[lambda: sums.Reduce(self.relation(X, self.index_set(self.most // max(base.dim, 1))), base)] * 2,
            lambda: sums.Total(X, base, None),
            lambda: sums.Total(X, base, self._some(X)),
            lambda: self._regroup(V),
        ]
        if X.size:
            found.append(lambda: sums.Project(V, self.pick(X.size)))
        if X.size <= 4:
            found.append(lambda: sums.Unpack(base, X))
        if isinstance(X, Seg):
            found.append(lambda: sums.Scan(X, base, self.maybe()))
        if isinstance(base, Tensor):
            found.append(lambda: unitary.Undistrib(Copower(base.left, X), base.right))
        if isinstance(base, DirectSum) and base.summands:
            columns = tuple([Copower(s, X) for s in base.summands])
            found += [lambda: sums.Unzip(DirectSum(base.index, columns, base.form))] * 2
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
        found: Moves = [lambda: unitary.Transpose(A, B)]
        if A is R:
            found.append(lambda: unitary.Unbra(B))
        if B is R:
            found.append(lambda: unitary.Unket(A))
        if isinstance(A, Tensor):
            found.append(lambda: unitary.Assoc(A.left, A.right, B))
        if isinstance(B, Tensor):
            found.append(lambda: unitary.Unassoc(A, B.left, B.right))
        if isinstance(A, (DirectSum, Copower)):
            found += [lambda: unitary.Distrib(A, B)] * 2
        return found

    def _composite(self, V: Space, depth: int) -> Moves:
        found: Moves = [
            lambda: self._combine(V, depth),
            lambda: self.fork(self.linear, V, depth),
            lambda: self._zipped(V, depth),
            lambda: self.between(V, self.space(), depth),
        ]
        match V:
            case DirectSum(summands=parts) if parts:
                family = self.among((sums.Par, sums.BlockDiag))
                found.append(lambda: family(tuple([self.linear(p, depth) for p in parts]), V.index, V.form))
                found.append(lambda: self.between(V, self.space(), depth))
            case Copower():
                found += [lambda: Map(self.inside(self.linear, V.base, depth), V.index)] * 3
            case _:
                pass
        return found

    def inside(self, build: Callable[[Space, int], Term], V: Space, depth: int) -> Term:
        """A term to be mapped."""
        mapped, self.mapped = self.mapped, True
        try:
            return build(V, depth)
        finally:
            self.mapped = mapped

    def _combine(self, V: Space, depth: int) -> Term:
        # Coefficients of one term have one sign: what cancels to rounding errors has no relative precision.
        f = self.linear(V, depth)
        parts = [(self.among((1.0, 0.5, 2.0, 0.0)), f)]
        for _ in range(self.pick(3)):
            other = self.among((-1.0, 1.0, 0.7, -0.3)), self.between(V, f.codomain, depth)
            parts.append(self.among([(2.5, f), other]))
        return Combine(tuple([k for k, _ in parts]), tuple([t for _, t in parts]))

    def fork(self, build: Callable[[Space, int], Term], V: Space, depth: int) -> Term:
        """⟨f, …⟩, sometimes with f again."""
        f = build(V, depth)
        return Fork((f, *[f if self.maybe(3) else build(V, depth) for _ in range(self.pick(3))]))

    def _zipped(self, V: Space, depth: int) -> Term:
        """zip • ⟨f^X, g^X⟩ • rep_X."""
        index = self.index_set(self.most // max(V.dim, 1))
        both = Fork((Map(self.inside(self.linear, V, depth), index), Map(Id(V), index)))
        return Compose(Zip(both.codomain), Compose(both, Rep(index, V, None)))

    def between(self, V: Space, W: Space, depth: int = 2) -> Term:
        """A linear term from V to W."""
        options: Moves = [
            lambda: Compose(self.section(ScalarMul(W), 1), self.section(Inner(V), 1)),
            lambda: ZeroMap(V, W),
        ]
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
            options += [lambda: _at(sums.Join(joined), V)] * 2
        if isinstance(W, DirectSum) and W.summands:
            forked = Fork(tuple([self.between(V, p, depth) for p in W.summands]))
            options.append(lambda: forked if forked.codomain is W else Compose(Regroup(forked.codomain, W), forked))
        if isinstance(W, Copower):
            options.append(lambda: Compose(Rep(W.index, W.base, None), self.between(V, W.base, depth)))
        if isinstance(V, Copower):
            options.append(lambda: Compose(self.between(V.base, W, depth), sums.Total(V.index, V.base, None)))
        return options


def _at(t: Term, V: Space) -> Term:
    return t if t.domain is V else Compose(t, Regroup(V, t.domain))


def _is_vector(V: Space) -> bool:
    """Whether V is ℝ^n."""
    return isinstance(V, Copower) and V.base is R and isinstance(V.index, Seg)
