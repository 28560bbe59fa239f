"""Terms: functions in combinatory form, typed by spaces   (§3). Composition, constants, identity, zero, pointwise
sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from ..errors import LinearityError, SpaceError
from ..relations.index_sets import Set
from ..runtime import displayed, later
from ..runtime.interning import Node, derived
from ..spaces.space import Copower, Space

if TYPE_CHECKING:
    from ..maps.linear_map import LinearMap


class Arrow(Node):
    """What terms and open combinators have in common: the operators that build larger ones.

    `g @ f` composes; `+ - * /` and `** number` act pointwise; `f ** X` maps f over an index set; `f(x)` evaluates.
    """

    __array_ufunc__ = None  # array + f comes to f, whole

    @overload
    def __matmul__(self, other: Term) -> Term: ...
    @overload
    def __matmul__(self, other: Arrow) -> Arrow: ...
    @overload
    def __matmul__(self, other: LinearMap) -> LinearMap: ...
    def __matmul__(self, other: Any) -> Any:
        from .open import compose

        return compose(self, other)

    def __call__(self, *args: Any) -> Any:
        return later.evaluate(self, *args)

    def __add__(self, other: Any) -> Arrow:
        return _pointwise().add(self, other, 1.0)

    def __radd__(self, other: Any) -> Arrow:
        return _pointwise().add(other, self, 1.0)

    def __sub__(self, other: Any) -> Arrow:
        return _pointwise().add(self, other, -1.0)

    def __rsub__(self, other: Any) -> Arrow:
        return _pointwise().add(other, self, -1.0)

    def __neg__(self) -> Arrow:
        return _pointwise().scale(-1.0, self)

    def __mul__(self, other: Any) -> Arrow:
        return _pointwise().multiply(self, other)

    def __rmul__(self, other: Any) -> Arrow:
        return _pointwise().multiply(other, self)

    def __truediv__(self, other: Any) -> Arrow:
        return _pointwise().divide(self, other)

    def __rtruediv__(self, other: Any) -> Arrow:
        return _pointwise().divide(other, self)

    def __pow__(self, exponent: Any) -> Arrow:
        from .open import mapped

        return mapped(self, exponent) if isinstance(exponent, Set) else _pointwise().raised(self, exponent)

    def at(self, space: Space) -> Term:
        """This function as a term with the given domain."""
        from .open import fit

        return fit(self, space)

    def __repr__(self) -> str:
        return later.text(self)

    _repr_mimebundle_ = displayed.mimebundle
    _repr_html_ = displayed.html

    def latex(self) -> str:
        """The function in LaTeX."""
        return later.latex(self)

    def mathml(self, ids: bool = False) -> str:
        """The same in MathML; with `ids`, parts have an attribute data-id."""
        return later.mathml(self, ids)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def diagram(self, limit: int = 120) -> Any:
        """A string diagram of the term: wires are index sets, boxes arrays; `limit`: draw at most so many steps."""
        return later.diagram(self, limit=limit)


def _pointwise() -> Any:
    from . import pointwise

    return pointwise


class Term(Arrow):
    """A function V → W in combinatory form: closed, immutable, interned; `t.domain`, `t.codomain`, `t.linear`."""

    domain: Space = derived()
    codomain: Space = derived()
    linear: bool = derived()
    uses: int = derived()  # how many terms were built with this one inside: one is no sharing

    def _type(self, domain: Space, codomain: Space, linear: bool) -> None:
        self._set(domain=domain, codomain=codomain, linear=linear, uses=0)

    def adopt(self) -> None:
        for part in self.parts():
            for child in cast("tuple[Any, ...]", part) if type(part) is tuple else (part,):
                if isinstance(child, Term):
                    child._set(uses=child.uses + 1)

    if TYPE_CHECKING:  # with a term on the left, or a number or a vector on the other side, the spaces are known

        def __add__(self, other: Any) -> Term: ...
        def __radd__(self, other: Any) -> Term: ...
        def __sub__(self, other: Any) -> Term: ...
        def __rsub__(self, other: Any) -> Term: ...
        def __mul__(self, other: Any) -> Term: ...
        def __rmul__(self, other: Any) -> Term: ...
        def __truediv__(self, other: Any) -> Term: ...
        def __rtruediv__(self, other: Any) -> Term: ...
        def __pow__(self, other: Any) -> Term: ...
        def __neg__(self) -> Term: ...

    @property
    def H(self) -> Term:
        """The adjoint of a linear term, by the rules of the adjoint theorem (§6.1)."""
        return later.adjoint(self)

    def remember(self, adjoint: Term) -> None:
        """Keep the adjoint, so that t.H is t.H and t.H.H is t."""
        if "adjoint_term" not in self.__dict__:
            self._set(adjoint_term=adjoint)

    def adjoint(self) -> Term:
        """The same as `.H`, in SciPy's spelling."""
        return self.H

    def simplify(self) -> Term:
        """The same function, with the same spaces, made smaller by the laws (`rz.laws()`); never larger, and simple
        terms stay as they are."""
        if "simple" not in self.__dict__:
            found = later.simplified(self)
            self._set(simple=None if found is self else found)
        return self.__dict__["simple"] or self

    def as_map(self) -> LinearMap:
        """This linear term as a LinearMap, to apply, transpose and turn into a matrix."""
        return later.LinearMap.of(self)


def require_linear(t: Term, what: str) -> None:
    """Refuse a term that is not linear."""
    if not t.linear:
        advice = "(its derivative is: linearize it at a point)"
        raise LinearityError(f"{what} needs a linear map; {t} : {t.domain} → {t.codomain} is not linear {advice}")


class Derived(Term):
    """A combinator the paper defines from others; executed directly, and equal to its `definition`."""

    @property
    def definition(self) -> Term:
        """The defining term of the paper."""
        raise NotImplementedError


class Unitary(Term):
    """A linear isometry onto; its inverse is its adjoint."""

    @property
    def inverse(self) -> Term:
        """Of bra it is unbra, with the same fields."""
        return _INVERSES[type(self)](*self.parts())


class Undoing(Unitary):
    """The inverse of an operator that says which spaces it is between."""

    def check(self) -> None:
        there = self.inverse
        self._type(there.codomain, there.domain, True)


_INVERSES: dict[type[Term], type[Term]] = {}


def inverses(*pairs: tuple[type[Unitary], type[Undoing]]) -> None:
    """Which operators undo each other."""
    for there, back in pairs:
        _INVERSES[there], _INVERSES[back] = back, there


class Id(Term):
    """id_V : V ⊸ V   (§3.3)."""

    space: Space

    def check(self) -> None:
        self._type(self.space, self.space, True)


class ZeroMap(Term):
    """0_{V,W} : V ⊸ W   (§3.3)."""

    source: Space
    target: Space

    def check(self) -> None:
        self._type(self.source, self.target, True)


class Const(Term):
    """K_w : V → W,  K_w(v) = w   (§3.4). The leaves of w are frozen."""

    source: Space
    target: Space
    leaves: tuple[Any, ...]

    def check(self) -> None:
        self._type(self.source, self.target, False)


class Compose(Term):
    """g ∘ f : U → W; written • when both are linear   (§3.6)."""

    outer: Term
    inner: Term

    def check(self) -> None:
        g, f = self.outer, self.inner
        if (W := f.codomain) is not g.domain:
            hint = ""
            if isinstance(W, Copower) and W.base is g.domain:
                hint = f"; to apply g at every index write (g ** X) with X = {W.index}"
            raise SpaceError(f"cannot compose g @ f: f ends in {W}, g starts at {g.domain}   (g = {g}, f = {f}){hint}")
        self._type(f.domain, g.codomain, g.linear and f.linear)


class Combine(Derived):
    """Σ kᵢ · fᵢ pointwise; linear when every fᵢ is. `f + g`, `f − g`, `k · f` are its cases."""

    coefficients: tuple[float, ...]
    terms: tuple[Term, ...]

    def check(self) -> None:
        first = self.terms[0]
        for t in self.terms:
            if t.domain is not first.domain or t.codomain is not first.codomain:
                types = f"f : {first.domain} → {first.codomain}, g : {t.domain} → {t.codomain}"
                raise SpaceError(f"cannot add f + g: {types}   (f = {first}, g = {t})")
        self._type(first.domain, first.codomain, all([t.linear for t in self.terms]))

    @property
    def definition(self) -> Term:
        from .bilinear import ScalarMul, Section
        from .sums import Add, Fork

        scalings = [Section(ScalarMul(self.codomain), 0, (float(k),)) for k in self.coefficients]
        scaled = Fork(tuple([Compose(k, t) for k, t in zip(scalings, self.terms, strict=True)]))
        return Compose(Add(scaled.codomain), scaled)
