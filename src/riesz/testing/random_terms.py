"""Random functions: primitives, products, constants and their compositions, with sharing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..relations.index_sets import Seg
from ..spaces.space import Copower, DirectSum, R, Space, Tensor, Weighted, direct_sum
from ..terms import primitives as prim
from ..terms.bilinear import Bilinear, Contract, Hadamard, Inner, MatMul, MatVec, Outer, ScalarMul
from ..terms.declared import declare_bilinear
from ..terms.sums import Dup, Fold, Fork, Map, Par
from ..terms.term import Combine, Compose, Const, Id, Term
from ..terms.weights import Equip, Forget
from .random_linear import LinearBuilder, multiply
from .random_spaces import Moves


@cache
def smooth_functions() -> tuple[Term, ...]:
    """Functions ℝ → ℝ that are smooth everywhere, made of every smooth primitive. tanh stays near 0: far out, tanh' = 1
    − tanh² loses digits, and two ways of computing its argument are two derivatives."""
    p = prim
    tanh, half, more = p.tanh @ p.sin, 0.5 * p.sin, p.cos + 2.0
    return (
        *(p.sin, p.cos, tanh, p.sigmoid, p.arctan, p.arcsinh, p.exp @ p.sin, p.power(2) @ p.sin, p.power(3) @ tanh),
        *(p.ln @ more, p.sqrt @ (p.sin + 2.0), p.log1p @ p.power(2), p.expm1 @ p.sin, p.tan @ half),
        *(p.sinh @ (0.5 * p.cos), p.cosh @ p.cos, p.arcsin @ half, p.arccos @ (0.5 * p.cos)),
        *(p.arccosh @ (p.sin + 3.0), p.arctanh @ (0.5 * tanh), p.reciprocal @ more, p.power(1), p.power(0)),
        *(p.power(-2) @ (p.sin + 3.0), p.power(0.5) @ more, p.sin / more),
    )


class Builder(LinearBuilder):
    """Builds random things of dimension at most `most`; `pick(n)` chooses a number below n, and 0 leads to the
    simplest."""

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
            lambda: _multiply(array) if array.index.box else Hadamard(array),
            lambda: self._trilinear((Copower(R, Seg(n)), Copower(R, Seg(m)), Copower(R, Seg(k)))),
        ]
        if V.plain and not self.mapped:
            options.append(lambda: self._trilinear((V, self.plain_space(4), self.plain_space(4))))
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
                lambda: self.fork(self.function, V, depth - 1),
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
        options: list[Callable[[], Any]] = [lambda: f + g, lambda: f - self.toward(V, W)]
        options.append(lambda: self.among((0.5, -1.0, -1.3)) * f)
        options.append(lambda: Combine((1.0, 1.0), (f, Const(V, W, self.leaves(W)))))
        if W is R or (isinstance(W, Copower) and W.base is R):
            sines = Compose(Map(prim.sin, W.index) if isinstance(W, Copower) else prim.sin, g)
            options += [lambda: f * g, lambda: f / (sines + 2.0), lambda: f**2, lambda: 1.0 - f]
        if W.plain:
            options.append(lambda: f * self.toward(V, R))
        return self.among(options)()

    def _families(self, V: Space, depth: int) -> Moves:
        match V:
            case DirectSum(summands=parts):
                return [lambda: Par(tuple([self.function(p, depth) for p in parts]), V.index, V.form)]
            case Copower() if V.plain:
                fold = lambda: Fold(self.relation(V.index, self.index_set()), V.base, "prod")  # noqa: E731
                return [*[lambda: Map(self.inside(self.function, V.base, depth), V.index)] * 2, fold]
            case Copower():
                return [lambda: Map(self.inside(self.function, V.base, depth), V.index)] * 2
            case _:
                return []


def _multiply(array: Space) -> Bilinear:
    return declare_bilinear(multiply, multiply, multiply, (array, array, array), "multiply", True)
