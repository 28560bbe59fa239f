"""The adjoint of a linear program: its steps in reverse, each op transposed, the wiring's relation converted   (§6).

(s_n • … • s_1)* = s_1* • … • s_n*, and red_R* = red_{Rᵀ} for the wiring: the cotangents of a slot read twice are added
up. Over numbers this computes; over symbols (a Program) it writes the adjoint program. A program that is not linear is
read back the same way, with `partials` for its primitives: each step's derivative at the point, transposed. A cotangent
may have places that nothing reaches; what it meets there leaves no trace (reached.py, Note [Strong] in ops/op.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..errors import TraceError
from ..ops.domain import Domain, Leaf
from ..ops.number_domains import NUMBERS
from ..ops.op import (
    Cast,
    Combination,
    Contraction,
    Elementwise,
    Multilinear,
    Reduction,
    Reshape,
    Shape,
    Single,
    product,
    unbroadcast,
)
from ..ops.op_rules import OpRules
from ..ops.opaque import Declared, Discrete, Get, Put, Select, Strongly, Take
from ..programs.program import Program
from ..programs.sub_programs import Block, Call, Loop
from ..spaces.formal_vectors import Formal
from ..terms.primitives import UNKNOWN
from .reached import ZEROS, Reach, after, guarded, known_finite, somewhere, through, union


def pullback(
    program: Program,
    flags: Sequence[int],
    seeds: Sequence[Leaf | None],
    domain: Domain[Leaf],
    value: Callable[[int], Leaf],
    strongly: bool = False,
    marks: list[bool] | None = None,
    within: Sequence[Leaf | None] | None = None,
    partials: Callable[[int], Sequence[Any]] | None = None,
    guards: bool = True,
) -> list[Leaf | None]:
    """The cotangents of all slots that `flags` marks as linear, from those of the outputs; `value` gives the
    coefficients.

    `strongly`: nothing reaches the zeros of the seeds; `within`: masks of the places of each that are reached.
    `marks`, if given, is told which inputs' cotangents have places that nothing reaches.
    `partials` gives the partial derivatives of a step that is not linear, None for arguments it does not depend on.
    Without `guards` everything is multiplied plainly: right where no nan comes out.
    """
    ops, args, shapes = program.ops, program.args, program.shapes
    reach: list[Any] = [_NOTHING] * len(ops)
    whole: list[Any] = [None] * len(ops)  # a cotangent, or a list of cotangents to be added
    pieces: dict[int, dict[Any, list[Any]]] = {}  # cotangents of parts of a slot

    def give(slot: int, cotangent: Leaf, reached: Reach | None = None) -> None:
        if guards:
            before = reach[slot]
            if before is _NOTHING:
                reach[slot] = reached
            elif before is not None:
                reach[slot] = (
                    None if reached is None else union(domain, (before, reached), (shapes[slot],) * 2, shapes[slot])
                )
        held = whole[slot]
        if held is None:
            whole[slot] = cotangent
        elif type(held) is list:
            cast("list[Any]", held).append(cotangent)
        else:
            whole[slot] = [held, cotangent]

    def collect(slot: int) -> Leaf | None:
        """Everything a slot was given, added up: the converse of the wiring."""
        for key, parts in pieces.pop(slot, {}).items():
            axis, _ = key
            op = Reduction(tuple([r for r, _, _, _ in parts]), axis)
            found = domain.step(op, [c for _, c, _, _ in parts])
            give(
                slot,
                found,
                after(domain, op, [r for _, _, r, _ in parts], [s for _, _, _, s in parts]) if guards else None,
            )
        held = whole[slot]
        if type(held) is list:
            summands = cast("list[Any]", held)
            held = whole[slot] = domain.step(Combination((1.0,) * len(summands)), summands)
        return held

    def times(op: Contraction, k: int, given: Sequence[Leaf], reached: Reach | None) -> Leaf:
        """A product with a cotangent, its argument k, of which some places may not be reached."""
        if reached is None or len(given) == 1 or all([known_finite(domain, x) for i, x in enumerate(given) if i != k]):
            return domain.step(op, given)
        if reached is ZEROS:
            return domain.step(op.strongly(k), given)
        mask = reached.mask
        return domain.step(op, given) if mask is None else domain.step(guarded(op, k), [*given, mask])

    def scaled(k: float, c: Leaf, shape: Shape, reached: Reach | None) -> Leaf:
        return (
            domain.scale(k, c)
            if reached is None or math.isfinite(k)
            else times(product((), shape), 1, (domain.const(k), c), reached)
        )

    for slot, seed, mask in zip(program.outputs, seeds, within or [None] * len(seeds), strict=True):
        if flags[slot] and seed is not None:
            partly = ZEROS if strongly else None if mask is None else Reach(lambda _, mask=mask: mask)
            give(slot, seed, partly if guards else None)
    for slot in range(len(ops) - 1, -1, -1):
        if not flags[slot] or not args[slot]:
            continue
        op, given = ops[slot], args[slot]
        kind = op.__class__
        if kind is Declared or isinstance(op, Block):
            parts = pieces.pop(slot, None)
            if parts is not None:
                if isinstance(op, Declared):
                    _declared(
                        op,
                        given,
                        _gathered(parts, range(len(shapes[slot])), shapes[slot], domain),
                        flags,
                        domain,
                        value,
                        give,
                    )
                else:
                    from .block_rules import narrowed

                    small, left, read = narrowed(op, list(parts))
                    seeded = (
                        len(parts) == len(left) or domain is not NUMBERS
                    )  # in programs a carry that is not read costs no guards
                    partly = (guards and not seeded) or any([r is not None for held in parts.values() for _, r in held])
                    _block(
                        small,
                        tuple([given[i] for i in read]),
                        _gathered(parts, left, shapes[slot], domain),
                        flags,
                        domain,
                        value,
                        give,
                        partly,
                    )
            continue
        c = whole[slot] if slot not in pieces and type(whole[slot]) is not list else collect(slot)
        if c is None:
            continue
        whole[slot] = None  # free as soon as it is used
        r: Reach | None = reach[slot] if guards else None
        if kind is float:  # (k·)* = (k·)
            give(given[0], scaled(op, c, shapes[slot], r), r)
        elif kind is Combination:  # (Σ kᵢ xᵢ)* = ⟨(kᵢ·)⟩
            for k, a in zip(op.coefficients, given, strict=True):
                if flags[a]:
                    part, left = c, r
                    if shapes[a] != shapes[slot]:
                        sums = unbroadcast(shapes[slot], shapes[a])
                        part, left = (
                            domain.step(sums, (c,)),
                            None if r is None else after(domain, sums, [r], [shapes[slot]]),
                        )
                    give(a, part if k == 1.0 else scaled(k, part, shapes[a], left), left)
        elif kind is Contraction:  # linear in each argument
            read = tuple([shapes[a] for a in given])
            for k, a in enumerate(given):
                if not flags[a]:
                    continue
                one, others, shown = (
                    (op, given, read) if op.guarded != k else (op.unguarded, given[:-1], read[:-1])
                )  # see Note [Back]
                turned = one.transpose(k, shown)
                arguments = _with(c, k, others, value)
                found = domain.step(turned, arguments) if r is None else times(turned, k, arguments, r)
                left = None
                if guards and (r is not None or turned.strong or turned.repeats):
                    masks = [(i, arguments[i]) for i in turned.strong]
                    left = through(domain, turned, k, r, masks, [*shown[:k], shapes[slot], *shown[k + 1 :]])
                if k == 0 and len(given) == 2 and given[1] == a and op.swapped is op:  # u ⋄ u, symmetric: 2·(u⋄)
                    give(a, domain.scale(2.0, found), left)
                    break
                give(a, found, left)
        elif kind is Elementwise or kind is Select:
            assert partials is not None
            selects = kind is Select or op.primitive.rule.selects
            for a, d in zip(given, partials(slot), strict=True):
                if d is None or not flags[a]:
                    continue
                if d is UNKNOWN:
                    raise unknown(op, given.index(a))
                found, left = _scaled(c, d, shapes[slot], shapes[a], selects, r, domain, times, guards)
                give(a, found, left)
        elif kind is Reduction:  # [red_Rᵢ]* = ⟨red_{Rᵢᵀ}⟩; parts of one array meet in one step
            if type(c) is Formal and len(given) > 1:
                c = c.dense()  # multiplied out once, not once for each part
            for relation, a in zip(op.relations, given, strict=True):
                if flags[a]:
                    back = relation.converse
                    pieces.setdefault(a, {}).setdefault((op.axis, back.target), []).append((back, c, r, shapes[slot]))
        elif isinstance(op, Single):  # a map with an adjoint of its own
            turned = op.turned(shapes[given[0]])
            give(given[0], domain.step(turned, (c,)), _alone(domain, turned, r, shapes[slot], shapes[given[0]]))
        elif isinstance(op, Multilinear):
            read = tuple([shapes[b] for b in given])
            for k, a in enumerate(given):
                if not flags[a]:
                    continue
                turned = op.transpose(k, read)
                arguments = _with(c, k, given, value)
                if isinstance(turned, (Take, Put)):
                    left = (
                        after(domain, turned, [r], [shapes[slot]], arguments[1:])
                        if guards and (r is not None or type(turned) is Put)
                        else None
                    )
                else:
                    left = somewhere(domain, r, shapes[slot], shapes[a], turned)
                    turned = Strongly(turned, k) if r is not None and isinstance(turned, Multilinear) else turned
                give(a, domain.step(turned, arguments), left)
        elif kind is Get:
            pieces.setdefault(given[0], {}).setdefault(op.at, []).append((c, r))
        else:
            raise AssertionError(f"not a linear step: {op}")
    found = [collect(slot) for slot in program.inputs]
    if marks is not None:
        marks.extend([reach[slot] is not None and reach[slot] is not _NOTHING for slot in program.inputs])
    return found


TRANSPOSES = OpRules[Callable[..., Any]]("calculus.reverse.TRANSPOSES")
"""What `pullback` does for each op, in words: its branches."""
TRANSPOSES("`turned`", Single)(pullback)
TRANSPOSES("`transpose`, one for each argument", Multilinear)(pullback)
TRANSPOSES("itself", float)(pullback)
TRANSPOSES("k · w for each argument", Combination)(pullback)
TRANSPOSES("the converse of each relation", Reduction)(pullback)
TRANSPOSES("products with `partials`", Elementwise, Select)(pullback)
TRANSPOSES("put beside the other results", Get)(pullback)
TRANSPOSES("another leg of its form", Declared)(pullback)
TRANSPOSES("a block of transposes, see `transpose_block`", Call, Loop)(pullback)
TRANSPOSES("none: no derivative", Discrete)(pullback)

# Note [Back]: the adjoint of a product with a guarded vector needs no guard. What it makes of the places that the
# vector does not reach goes, on the way back, to places that are not reached either, until the selection or slice that
# left them out leaves it out again.
_NOTHING = object()
"""What reaches a slot that was given no cotangent yet."""


def _alone(domain: Domain[Any], op: Any, r: Reach | None, source: Shape, target: Shape) -> Reach | None:
    if r is None:
        return None
    return (
        after(domain, op, [r], [source])
        if isinstance(op, Reshape)
        else r
        if isinstance(op, Cast)
        else somewhere(domain, r, source, target, op)
    )


def _with(c: Leaf, k: int, given: tuple[int, ...], value: Callable[[int], Leaf]) -> Sequence[Leaf]:
    """The arguments of a transposed step: the cotangent in place k, the coefficients elsewhere."""
    if len(given) == 2:
        return (value(given[0]), c) if k else (c, value(given[1]))
    return [c if i == k else value(b) for i, b in enumerate(given)]


def unknown(op: Elementwise, at: int) -> TraceError:
    """What to say of a derivative nobody knows."""
    where = f" in its argument {at}" if op.primitive.rule.arity > 1 else ""
    return TraceError(
        f"the derivative of {op.primitive.name}{where} is not known" + ("; keep that argument fixed" if where else "")
    )


def _scaled(
    c: Leaf,
    d: Any,
    shape: Shape,
    target: Shape,
    selects: bool,
    r: Reach | None,
    domain: Domain[Leaf],
    times: Callable[..., Leaf],
    guards: bool,
) -> tuple[Leaf, Reach | None]:
    """d ⊛ c, summed over what broadcasting repeated: the adjoint of (d ⊛), whose argument has the shape `target`; and
    what it reaches."""
    sums = None if shape == target else unbroadcast(shape, target)
    if type(d) is float:
        if math.isfinite(d) or (r is None and not selects):
            scaled = domain.scale(d, c)
            left = r if sums is None or r is None else after(domain, sums, [r], [shape])
            return scaled if sums is None else domain.step(sums, (scaled,)), left
        d = domain.const(d)
    factor = domain.shape(d)
    first, back, joint = _ways(factor, shape, target, (0,) if selects else ())
    if first is not None:
        c, r = domain.step(first, (c,)), None if r is None else after(domain, first, [r], [shape])
    left = through(domain, back, 1, r, [(0, d)] if selects else [], (factor, joint)) if guards else None
    return domain.step(back, (d, c)) if r is None else times(back, 1, (d, c), r), left


@lru_cache(maxsize=4096)
def _ways(factor: Shape, shape: Shape, target: Shape, strong: tuple[int, ...]) -> tuple[Contraction | None, Any, Shape]:
    """The sum over axes that neither factor nor argument has, if there are any, the adjoint of their product, and its
    shape."""
    joint = np.broadcast_shapes(factor, target)
    back = cast(Contraction, product(factor, target, strong).transpose(1, (factor, target)))
    return None if joint == shape else unbroadcast(shape, joint), back, joint


def _gathered(parts: dict[Any, list[Any]], which: Sequence[int], shapes: Any, domain: Domain[Leaf]) -> list[Leaf]:
    """The cotangents of some results of a step with several, zeros included."""
    found: list[Leaf] = []
    for i in which:
        held = [c for c, _ in parts.get(i, [])]
        found.append(
            domain.zeros(shapes[i])
            if not held
            else held[0]
            if len(held) == 1
            else domain.step(Combination((1.0,) * len(held)), held)
        )
    return found


def _block(
    op: Block,
    given: tuple[int, ...],
    cotangents: list[Leaf],
    flags: Sequence[int],
    domain: Domain[Leaf],
    value: Callable[[int], Leaf],
    give: Callable[..., None],
    strong: bool,
) -> None:
    """The transpose of a block is a block. Which of its results are not reached everywhere it knows; where, their zeros
    say."""
    from .block_rules import transpose_block

    turned = transpose_block(op, tuple([bool(flags[a]) for a in given]), strong)
    carries = getattr(op, "carries", 0)
    zeros = [domain.zeros(shape) for shape in turned.zeros]
    fixed, rest = [value(given[i]) for i in turned.fixed], [value(given[i]) for i in turned.rest]
    result = domain.step(turned.op, [*fixed, *cotangents[:carries], *zeros, *rest, *cotangents[carries:]])
    for j, (i, partly) in enumerate(zip(turned.targets, turned.strong, strict=True)):
        if flags[given[i]]:
            give(given[i], domain.step(Get(j), (result,)), ZEROS if partly else None)


def _declared(
    op: Declared,
    given: tuple[int, ...],
    cotangents: list[Leaf],
    flags: Sequence[int],
    domain: Domain[Leaf],
    value: Callable[[int], Leaf],
    give: Callable[..., None],
) -> None:
    """The transpose of a declared function is another leg of its form."""
    leg, where = next((leg, where) for leg, where in op.leg_slices() if any([flags[a] for a in given[where]]))
    turned = Declared(op.form, leg)
    arguments: list[Leaf] = []
    for source in turned.sources:
        if source == op.target:
            arguments.extend(cotangents)
        else:
            arguments.extend([value(a) for a in given[next(w for g, w in op.leg_slices() if g == source)]])
    result = domain.step(turned, arguments)
    for i, a in enumerate(given[where]):
        if flags[a]:
            give(a, domain.step(Get(i), (result,)))
