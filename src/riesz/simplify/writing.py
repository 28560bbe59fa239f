"""Patterns in the notation of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..terms.bilinear import Applied, Contract, Hadamard, Inner, MatVec, Outer, ScalarMul, Section
from ..terms.sums import Add, BlockDiag, Dup, Fork, Inject, Join, Map, Par, Project, Reduce, Regroup, Rep, Total
from ..terms.term import Combine, Compose, Const, Id, Term, ZeroMap
from .term_patterns import Calc, Each, Head, Var

Words = Callable[..., str]
_PRODUCTS: dict[type[Term], str] = {Contract: "⊛", Outer: "⊗", Inner: "⊙", ScalarMul: "·", MatVec: "⋆", Hadamard: "∗"}
_ATOMS: dict[type[Term], Words] = {
    Id: lambda *_: "id",
    ZeroMap: lambda *_: "0",
    Const: lambda source, target, w: f"K_{w}",
    Project: lambda space, i: "π" + _below(i),
    Inject: lambda space, i: "ι" + _below(i),
    Fork: lambda fs: f"⟨{fs}⟩",
    Join: lambda gs: f"[{gs}]",
    Par: lambda fs, *_: f"Π({fs})",
    BlockDiag: lambda fs, *_: f"Δ({fs})",
    Reduce: lambda R, base: f"red_{R}",
    Rep: lambda X, *_: f"rep_{X}",
    Total: lambda X, *_: f"Σ_{X}",
    Add: lambda *_: "(+)",
    Dup: lambda *_: "dup",
    Regroup: lambda V, W: f"regroup_{{{V}→{W}}}",
    Applied: lambda op, shapes: op,
}


def _below(i: str) -> str:
    return i if i in "₁ₙ" else f"_{i}"


def text(p: Any, tight: bool = False) -> str:
    """A pattern; `tight` puts parentheses around what holds together loosely."""
    if isinstance(p, Var):
        return f"{p.name}₁ … {p.name}ₙ" if p.family and not tight else p.name
    if isinstance(p, Each):
        return f"{_member(p.member, '₁')} … {_member(p.member, 'ₙ')}"
    if isinstance(p, Calc):
        return p.text.format(*[text(q, True) for q in p.parts])
    if isinstance(p, Head):
        return _node(p, tight)
    if type(p) is tuple:
        return ", ".join([text(q) for q in cast("tuple[Any, ...]", p)])
    return f"{p:g}" if isinstance(p, float) else str(p)


def _node(p: Head, tight: bool) -> str:
    f = p.fields
    if p.head is Compose:
        written = " ∘ ".join([text(q, isinstance(q, Head) and q.head in (Compose, Combine)) for q in f])
    elif p.head is Combine:
        written = _sum(*f)
    elif p.head is Map:
        return f"{text(f[0], True)}^{text(f[1])}"
    elif p.head is Section:
        b, u = text(f[0]).strip("()"), text(f[2], True)
        return f"({b} {u})" if f[1] == 1 else f"({u} {b})"
    elif p.head in _PRODUCTS:
        return f"({_PRODUCTS[p.head]})"
    else:
        return _ATOMS.get(p.head, lambda *_: p.head.__name__.lower())(*[text(q) for q in f])
    return f"({written})" if tight else written


def _sum(coefficients: Any, terms: Any) -> str:
    if isinstance(terms, Each):
        return f"{_member(terms.member, '₁')} + … + {_member(terms.member, 'ₙ')}"
    if isinstance(terms, Var):
        return f"{terms.name}₁ + … + {terms.name}ₙ"
    several = len(terms) > 1
    lead = ["" if type(k) is float and several else f"{text(k, True)} · " for k in coefficients]
    return " + ".join([k + text(t, True) for k, t in zip(lead, terms, strict=True)])


def _member(p: Any, index: str) -> str:
    """One member of a family: its variables for families get the index."""
    if isinstance(p, Var):
        return p.name + index if p.family else p.name
    if isinstance(p, Head):
        return _node(Head(p.head, *[_indexed(q, index) for q in p.fields]), False)
    return text(_indexed(p, index))


def _indexed(p: Any, index: str) -> Any:
    if isinstance(p, Var):
        return Var(p.name + index) if p.family else p
    if isinstance(p, Head):
        return Head(p.head, *[_indexed(q, index) for q in p.fields])
    return Calc(p.text, p.function, *[_indexed(q, index) for q in p.parts]) if isinstance(p, Calc) else p
