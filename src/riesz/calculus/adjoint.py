"""The adjoint theorem: one line per equation   (§6.1). Linear terms in, linear terms out; no recursion, no matrices."""

from __future__ import annotations

from typing import Any

from ..ops.op import contraction
from ..runtime.interning import children, postorder
from ..runtime.stackless import quiet
from ..terms import sums
from ..terms.applied_op import Applied
from ..terms.bilinear import Labelled, Section
from ..terms.declared import DeclaredLinear
from ..terms.sums import BlockDiag, Fork, Inject, Join, Map, Par, Project, Reduce, Rep, Scan, Total
from ..terms.term import Combine, Compose, Id, Term, ZeroMap, require_linear
from ..terms.unitary import Unitary
from ..terms.weights import Equip, Forget, Represent, Weigh


@quiet
def adjoint(term: Term) -> Term:
    """f* with f(v) ⊙ w = v ⊙ f*(w)."""
    require_linear(term, "an adjoint")
    known = term.__dict__.get("adjoint_term")
    if known is not None:
        return known
    for t in postorder(term):
        if isinstance(t, Term) and t.linear and "adjoint_term" not in t.__dict__:
            inside = [c.__dict__["adjoint_term"] for c in children(t) if isinstance(c, Term) and c.linear]
            turned = _rule(t, inside)
            t.remember(turned)
            turned.remember(t)  # f** = f, the same object
    return term.__dict__["adjoint_term"]


def _rule(f: Term, inside: list[Term]) -> Term:
    """The adjoint of a term, given those of its children."""
    match f:
        case Id():
            return f  # id* = id
        case ZeroMap():
            return ZeroMap(f.target, f.source)  # 0* = 0
        case Compose():
            return Compose(inside[1], inside[0])  # (g • f)* = f* • g*
        case Section():
            return f.bilinear.section_adjoint(f.side, f.leaves)  # (v⊛)* = (vᵀ⊛), (⊛w)* = (⊛wᵀ), and what follows
        case Inject():
            return Project(f.space, f.position)  # ι_x* = π_x
        case Project():
            return Inject(f.space, f.position)  # π_x* = ι_x, for ι_x** = ι_x
        case Par():
            return Par(tuple(inside), f.index, f.form)  # (Π f_x)* = Π f_x*
        case BlockDiag():
            return BlockDiag(tuple(inside), f.index, f.form)  # Δ(f_x)* = Δ(f_x*), for Δ is Π on linear maps
        case Map():
            return Map(inside[0], f.index)  # (f^X)* = (f*)^X, for f^X = Π f
        case Reduce():
            return Reduce(f.relation.converse, f.base)  # red_R* = red_{Rᵀ}
        case Unitary() | sums.Zip() | sums.Unzip() | sums.Pack() | sums.Unpack() | sums.Regroup():
            return f.inverse  # u* = u⁻¹
        case Combine():
            return Combine(f.coefficients, tuple(inside))  # (Σ kᵢ·fᵢ)* = Σ kᵢ·fᵢ*, for ⊙ is bilinear
        case Fork():
            return Join(tuple(inside))  # ⟨f_y⟩* = (Π f_y • rep)* = Σ • Π f_y* = [f_y*]
        case Join():
            return Fork(tuple(inside))  # [g_x]* = (Σ • Π g_x)* = Π g_x* • rep = ⟨g_x*⟩
        case Rep():
            return Total(f.index, f.base, f.only)  # rep_Y* = (red_{1×Y} • ι)* = π • red_{Y×1} = Σ_Y
        case Total():
            return Rep(f.index, f.base, f.only)  # Σ_Y* = rep_Y
        case sums.Add():
            return sums.Dup(f.space)  # +* = dup: (Σ • pack)* = unpack • rep
        case sums.Dup():
            return sums.Add(f.space)  # dup* = +
        case Scan():
            return Scan(f.index, f.base, not f.suffix)  # scan* = red_{≤ᵀ} = red_≥, the suffix sum
        case Labelled():
            return _labelled(f)
        case Applied():
            return f.turned  # an op with an adjoint of its own
        case DeclaredLinear():
            return DeclaredLinear(f.form, 1 - f.target)  # as declared
        case Forget():
            return Represent(f.space)  # ⟨v, u⟩_V = ⟨v, M⁻¹u⟩_w
        case Represent():
            return Forget(f.space)
        case Equip():
            return Weigh(f.space)  # ⟨v, w⟩_w = ⟨v, Mw⟩_V
        case Weigh():
            return Equip(f.space)
        case _:
            raise AssertionError(f"a linear term without an adjoint rule: {type(f).__name__}")


def _labelled(f: Labelled) -> Term:
    op = contraction(f.labels, f.out, dict(f.extra))
    turned: Any = op.transpose(0, f.shapes)
    return Labelled(turned.labels, turned.out, (op.result(f.shapes),), turned.extra)
