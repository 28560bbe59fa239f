"""Program → term: T_j = op_j ∘ ⟨T_a, T_b⟩, one term per slot, π_i for the inputs. Shared slots are shared subterms, so
the DAG is as large as the program, and lowering it gives the program again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.convolution import Convolution, ExchangedLeg
from ..ops.discrete_fourier import Transform
from ..ops.op import Cast, Combination, Contraction, Elementwise, Reduction, Reshape, Single, broadcast
from ..ops.op_rules import OpRules
from ..ops.opaque import Declared, Discrete, Get, Put, Ruled, Select, Strongly, Take
from ..relations import Beside
from ..relations.index_sets import Plus, box_set
from ..spaces.space import Copower, DirectSum, Space, direct_sum, real_space, zero_space
from ..terms.bilinear import Applied
from ..terms.declared import DeclaredBilinear, DeclaredLinear
from ..terms.sums import Fork, Map, Project, Reduce, Regroup, Zip
from ..terms.term import Combine, Compose, Const, Id, Term, ZeroMap
from .program import INPUT, Constant, Program
from .sub_programs import Block

Shape = tuple[int, ...]


def to_term(program: Program) -> Term:
    """A program as a term on the direct sum of its inputs (or its only one), into that of its outputs."""
    spaces = [real_space(program.shapes[s]) for s in program.inputs]
    domain = spaces[0] if len(spaces) == 1 else direct_sum(*spaces)
    terms: list[Any] = [None] * len(program.ops)
    for i, slot in enumerate(program.inputs):
        terms[slot] = Id(domain) if len(spaces) == 1 else Project(domain, i)
    for slot, (op, args) in enumerate(zip(program.ops, program.args, strict=True)):
        if type(op) is Constant:
            terms[slot] = Const(domain, real_space(program.shapes[slot]), (op.value,))
        elif op is not INPUT:
            shapes = [program.shapes[a] for a in args]
            terms[slot] = TERMS[type(op)](op, [terms[a] for a in args], shapes, program.shapes[slot], domain)
    results = tuple([terms[s] for s in program.outputs])
    if not results:
        return ZeroMap(domain, zero_space)
    return results[0] if len(results) == 1 else Fork(results)


def _after(g: Term, f: Term) -> Term:
    """g ∘ f, and g itself after an identity."""
    return g if isinstance(f, Id) else Compose(g, f)


def _both(terms: list[Term]) -> Term:
    return terms[0] if len(terms) == 1 else Fork(tuple(terms))


def _widened_all(terms: list[Term], shapes: list[Shape], shape: Shape) -> list[Term]:
    return [_widened(t, s, shape) for t, s in zip(terms, shapes, strict=True)]


def _widened(t: Term, own: Shape, shape: Shape) -> Term:
    if own == shape:
        return t
    if isinstance(t, Const):
        return Const(t.source, real_space(shape), (np.broadcast_to(t.leaves[0], shape),))
    op = broadcast(own, shape)
    return _after(Applied(op, (own,)), t)


def _mapped(op: Elementwise, terms: list[Term], shape: Shape) -> Term:
    return _after(Map(op.primitive, box_set(shape)), _zipped(terms)) if shape else _after(op.primitive, _both(terms))


def _zipped(terms: list[Term]) -> Term:
    """Arguments side by side at each index."""
    if len(terms) == 1:
        return terms[0]
    return _after(Zip(direct_sum(*[t.codomain for t in terms])), Fork(tuple(terms)))


def _regrouped(t: Term, space: Space) -> Term:
    return t if t.codomain is space else _after(Regroup(t.codomain, space), t)


def _reduced(op: Reduction, terms: list[Term], own: Shape, shape: Shape) -> Term:
    """[red_R₁, …, red_Rₙ] = red_R for the relations side by side; under leading axes it is mapped."""
    first, *others = op.relations
    whole = Plus(tuple([r.source for r in op.relations]))
    relation = Beside(whole, first.target, op.relations, False) if others else first
    reduce: Term = Reduce(relation, real_space(own[op.axis + len(first.source.box or ()) :]))
    if op.axis:
        reduce = Map(reduce, box_set(own[: op.axis]))
    return _regrouped(_after(reduce, _regrouped(_both(terms), reduce.domain)), real_space(shape))


def _declared(op: Declared, terms: list[Term], shapes: list[Shape], domain: Space) -> Term:
    legs = op.form.legs
    lead = op.lead(tuple(shapes))
    function: Term = DeclaredLinear(op.form, op.target) if len(legs) == 2 else DeclaredBilinear(op.form, op.target)
    arguments: list[Term] = []
    for leg, where in op.leg_slices():
        space = Copower(legs[leg], box_set(lead)) if lead else legs[leg]
        arguments.append(_regrouped(_both(terms[where]), space) if space.leaves else ZeroMap(domain, space))
    return _after(Map(function, box_set(lead)), _zipped(arguments)) if lead else _after(function, _both(arguments))


def _leaf(t: Term, at: int, shape: Shape) -> Term:
    if isinstance(t.codomain, DirectSum) and t.codomain.leaves == t.codomain.code[:-1]:
        return _after(Project(t.codomain, at), t)
    leaves = [real_space(leaf.shape) for leaf in t.codomain.leaves]
    if len(leaves) == 1:
        return _regrouped(t, real_space(shape))
    flat = direct_sum(*leaves)
    return _after(Project(flat, at), _regrouped(t, flat))


TERMS = OpRules[Callable[[Any, list[Term], list[Shape], Any, Space], Term]]("programs.program_to_term.TERMS")
"""A step as a term, from the terms of its arguments, their shapes, its own shape and the domain of all."""

TERMS("k · f", float)(lambda op, terms, shapes, shape, domain: Combine((op,), (terms[0],)))
TERMS("a sum", Combination)(
    lambda op, terms, shapes, shape, domain: Combine(op.coefficients, tuple(_widened_all(terms, shapes, shape)))
)
TERMS("fⁿ ∘ zip", Elementwise)(
    lambda op, terms, shapes, shape, domain: _mapped(op, _widened_all(terms, shapes, shape), shape)
)
TERMS("red_R", Reduction)(lambda op, terms, shapes, shape, domain: _reduced(op, terms, shapes[0], shape))
TERMS("as declared", Declared)(lambda op, terms, shapes, shape, domain: _declared(op, terms, shapes, domain))
TERMS("πᵢ", Get)(lambda op, terms, shapes, shape, domain: _leaf(terms[0], op.at, shape))

_APPLIED = (Contraction, Discrete, Select, Reshape, Cast, Single, Transform, Take, Put, Strongly, Ruled)


@TERMS("the op itself, as a term", *_APPLIED, Convolution, ExchangedLeg, Block)
def _applied(op: Any, terms: list[Term], shapes: list[Shape], shape: Any, domain: Space) -> Term:
    if not terms:
        return Const(domain, real_space(shape), (op.run(),))
    return _after(Applied(op, tuple(shapes)), _both(terms))
