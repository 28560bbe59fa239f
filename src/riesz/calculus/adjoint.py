"""The adjoint theorem: one line per equation   (§6.1). Linear terms in, linear terms out; no recursion, no matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.interning import children, postorder
from ..runtime.stackless import quiet
from ..terms import sums
from ..terms.bilinear import Applied, Section
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
            rule = next((ADJOINTS[kind] for kind in type(t).__mro__ if kind in ADJOINTS), None)
            if rule is None:
                raise AssertionError(f"a linear term without an adjoint rule: {type(t).__name__}")
            turned = rule(t, inside)
            t.remember(turned)
            turned.remember(t)  # f** = f, the same object
    return term.__dict__["adjoint_term"]


ADJOINTS: dict[type, Callable[[Any, list[Term]], Term]] = {
    Id: lambda f, inside: f,  # id* = id
    ZeroMap: lambda f, inside: ZeroMap(f.target, f.source),  # 0* = 0
    Compose: lambda f, inside: Compose(inside[1], inside[0]),  # (g • f)* = f* • g*
    Section: lambda f, inside: f.bilinear.section_adjoint(f.side, f.leaves),  # (v⊛)* = (vᵀ⊛), (⊛w)* = (⊛wᵀ), …
    Inject: lambda f, inside: Project(f.space, f.position),  # ι_x* = π_x
    Project: lambda f, inside: Inject(f.space, f.position),  # π_x* = ι_x, for ι_x** = ι_x
    Par: lambda f, inside: Par(tuple(inside), f.index, f.form),  # (Π f_x)* = Π f_x*
    BlockDiag: lambda f, inside: BlockDiag(tuple(inside), f.index, f.form),  # Δ(f_x)* = Δ(f_x*), Π on linear maps
    Map: lambda f, inside: Map(inside[0], f.index),  # (f^X)* = (f*)^X, for f^X = Π f
    Reduce: lambda f, inside: Reduce(f.relation.converse, f.base),  # red_R* = red_{Rᵀ}
    Unitary: lambda f, inside: f.inverse,  # u* = u⁻¹
    **dict.fromkeys((sums.Zip, sums.Unzip, sums.Pack, sums.Unpack, sums.Regroup), lambda f, inside: f.inverse),
    Combine: lambda f, inside: Combine(f.coefficients, tuple(inside)),  # (Σ kᵢ·fᵢ)* = Σ kᵢ·fᵢ*, for ⊙ is bilinear
    Fork: lambda f, inside: Join(tuple(inside)),  # ⟨f_y⟩* = (Π f_y • rep)* = Σ • Π f_y* = [f_y*]
    Join: lambda f, inside: Fork(tuple(inside)),  # [g_x]* = (Σ • Π g_x)* = Π g_x* • rep = ⟨g_x*⟩
    Rep: lambda f, inside: Total(f.index, f.base, f.only),  # rep_Y* = (red_{1×Y} • ι)* = π • red_{Y×1} = Σ_Y
    Total: lambda f, inside: Rep(f.index, f.base, f.only),  # Σ_Y* = rep_Y
    sums.Add: lambda f, inside: sums.Dup(f.space),  # +* = dup: (Σ • pack)* = unpack • rep
    sums.Dup: lambda f, inside: sums.Add(f.space),  # dup* = +
    Scan: lambda f, inside: Scan(f.index, f.base, not f.suffix),  # scan* = red_{≤ᵀ} = red_≥, the suffix sum
    Applied: lambda f, inside: f.turned,  # an op with an adjoint of its own
    DeclaredLinear: lambda f, inside: DeclaredLinear(f.form, 1 - f.target),  # as declared
    Forget: lambda f, inside: Represent(f.space),  # ⟨v, u⟩_V = ⟨v, M⁻¹u⟩_w
    Represent: lambda f, inside: Forget(f.space),
    Equip: lambda f, inside: Weigh(f.space),  # ⟨v, w⟩_w = ⟨v, Mw⟩_V
    Weigh: lambda f, inside: Equip(f.space),
}
"""The adjoint of a term, given those of its children."""
