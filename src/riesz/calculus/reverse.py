"""The adjoint of a linear program: its steps in reverse, each op transposed, the wiring's relation converted   (§6).

(s_n • … • s_1)* = s_1* • … • s_n*, and red_R* = red_{Rᵀ} for the wiring: the cotangents of a slot read twice are added up.
Over numbers this computes; over symbols (a Program) it writes the adjoint program.
A program that is not linear is read back the same way, with `partials` for its primitives: each step's derivative at the point, transposed.
A cotangent that came through a selection has strong zeros from there on (Note [Strong] in ops.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from ..errors import TraceError
from ..opaque import Declared, Get, Put, Select, Strongly, Take
from ..ops import Combination, Contraction, Elementwise, Multilinear, Reduction, Shape, Single, product, unbroadcast
from ..programs.blocks import Block
from ..programs.program import Program
from ..terms.primitives import UNKNOWN
from ..vectors import Formal


def pullback(
    program: Program,
    flags: Sequence[int],
    seeds: Sequence[Any],
    domain: Any,
    value: Callable[[int], Any],
    strongly: bool = False,
    marks: list[bool] | None = None,
    partials: Callable[[int], Sequence[Any]] | None = None,
) -> list[Any]:
    """The cotangents of all slots that `flags` marks as linear, from those of the outputs; `value` gives the coefficients.

    `strongly`: the seeds have strong zeros; `marks`, if given, is told which inputs' cotangents have.
    `partials` gives the partial derivatives of a step that is not linear, None for arguments it does not depend on.
    """
    ops, args, shapes = program.ops, program.args, program.shapes
    strong = bytearray(len(ops))
    whole: list[Any] = [None] * len(ops)  # a cotangent, or a list of cotangents to be added
    pieces: dict[int, dict[Any, list[Any]]] = {}  # cotangents of parts of a slot

    def give(slot: int, cotangent: Any) -> None:
        held = whole[slot]
        if held is None:
            whole[slot] = cotangent
        elif type(held) is list:
            cast("list[Any]", held).append(cotangent)
        else:
            whole[slot] = [held, cotangent]

    def collect(slot: int) -> Any:
        """Everything a slot was given, added up: the converse of the wiring."""
        for key, parts in pieces.pop(slot, {}).items():
            axis, _ = key
            op = Reduction(tuple([r for r, _ in parts]), axis)
            give(slot, domain.step(op, [c for _, c in parts]))
        held = whole[slot]
        if type(held) is list:
            summands = cast("list[Any]", held)
            held = whole[slot] = domain.step(Combination((1.0,) * len(summands)), summands)
        return held

    for slot, seed in zip(program.outputs, seeds, strict=True):
        if flags[slot] and seed is not None:
            give(slot, seed)
            strong[slot] = strongly
    for slot in range(len(ops) - 1, -1, -1):
        if not flags[slot] or not args[slot]:
            continue
        op, given = ops[slot], args[slot]
        kind = op.__class__
        if strong[slot]:
            for a in given:
                strong[a] = 1
        if kind is Declared or isinstance(op, Block):
            parts = pieces.pop(slot, None)
            if parts is not None:
                cotangents = _gathered(parts, shapes[slot], domain)
                if isinstance(op, Declared):
                    _declared(op, given, cotangents, flags, domain, value, give)
                else:
                    for a in _block(op, given, cotangents, flags, domain, value, give, bool(strong[slot])):
                        strong[a] = 1
            continue
        c = whole[slot] if slot not in pieces and type(whole[slot]) is not list else collect(slot)
        if c is None:
            continue
        whole[slot] = None  # free as soon as it is used
        if kind is float:  # (k·)* = (k·)
            if strong[slot] and not math.isfinite(op):
                give(given[0], domain.step(product((), shapes[slot], (1,)), (domain.const(op), c)))
            else:
                give(given[0], domain.scale(op, c))
        elif kind is Combination:  # (Σ kᵢ xᵢ)* = ⟨(kᵢ·)⟩
            for k, a in zip(op.coefficients, given, strict=True):
                if flags[a]:
                    part = c if shapes[a] == shapes[slot] else domain.step(unbroadcast(shapes[slot], shapes[a]), (c,))
                    give(a, part if k == 1.0 else domain.scale(k, part))
        elif kind is Contraction:  # linear in each argument
            read = tuple([shapes[a] for a in given])
            for k, a in enumerate(given):
                if not flags[a]:
                    continue
                turned = op.transpose(k, read)
                if turned.strong:
                    strong[a] = 1
                if strong[slot]:
                    turned = turned.strongly(k)
                found = domain.step(turned, _with(c, k, given, value))
                if k == 0 and len(given) == 2 and given[1] == a and op.swapped is op:  # u ⋄ u, symmetric: 2·(u⋄)
                    give(a, domain.scale(2.0, found))
                    break
                give(a, found)
        elif kind is Elementwise or kind is Select:
            assert partials is not None
            selects = kind is Select or op.primitive.rule.selects
            for a, d in zip(given, partials(slot), strict=True):
                if d is None or not flags[a]:
                    continue
                if d is UNKNOWN:
                    raise unknown(op, given.index(a))
                if selects:
                    strong[a] = 1
                give(a, _scaled(c, d, shapes[slot], shapes[a], _STRONG[selects][strong[slot]], domain))
        elif kind is Reduction:  # [red_Rᵢ]* = ⟨red_{Rᵢᵀ}⟩; parts of one array meet in one step
            if type(c) is Formal and len(given) > 1:
                c = c.dense()  # multiplied out once, not once for each part
            for r, a in zip(op.relations, given, strict=True):
                if flags[a]:
                    back = r.converse
                    pieces.setdefault(a, {}).setdefault((op.axis, back.target), []).append((back, c))
        elif isinstance(op, Single):  # a map with an adjoint of its own
            give(given[0], domain.step(op.turned(shapes[given[0]]), (c,)))
        elif isinstance(op, Multilinear):
            for k, a in enumerate(given):
                if not flags[a]:
                    continue
                turned = op.transpose(k, tuple([shapes[b] for b in given]))
                if strong[slot] and isinstance(turned, Multilinear) and not isinstance(turned, (Take, Put)):
                    turned = Strongly(turned, k)
                give(a, domain.step(turned, _with(c, k, given, value)))
        elif kind is Get:
            pieces.setdefault(given[0], {}).setdefault(op.at, []).append(c)
        else:
            raise AssertionError(f"not a linear step: {op}")
    if marks is not None:
        marks.extend([bool(strong[slot]) for slot in program.inputs])
    return [collect(slot) for slot in program.inputs]


_STRONG = (((), (1,)), ((0,), (0, 1)))
"""Which of the factors d ⊛ c have strong zeros: by whether the step selects, and whether c came through a selection."""


def _with(c: Any, k: int, given: tuple[int, ...], value: Callable[[int], Any]) -> Sequence[Any]:
    """The arguments of a transposed step: the cotangent in place k, the coefficients elsewhere."""
    if len(given) == 2:
        return (value(given[0]), c) if k else (c, value(given[1]))
    return [c if i == k else value(b) for i, b in enumerate(given)]


def unknown(op: Elementwise, at: int) -> TraceError:
    """What to say of a derivative nobody knows."""
    where = f" in its argument {at}" if op.primitive.rule.arity > 1 else ""
    return TraceError(f"the derivative of {op.primitive.name}{where} is not known" + ("; keep that argument fixed" if where else ""))


def _scaled(c: Any, d: Any, shape: Shape, target: Shape, strong: tuple[int, ...], domain: Any) -> Any:
    """d ⊛ c, summed over what broadcasting repeated: the adjoint of (d ⊛), whose argument has the shape `target`."""
    if type(d) is float and (not strong or math.isfinite(d)):
        scaled = domain.scale(d, c)
        return scaled if shape == target else domain.step(unbroadcast(shape, target), (scaled,))
    first, back = _ways(domain.shape(d), shape, target, strong)
    return domain.step(back, (d, c if first is None else domain.step(first, (c,))))


@lru_cache(maxsize=4096)
def _ways(factor: Shape, shape: Shape, target: Shape, strong: tuple[int, ...]) -> tuple[Contraction | None, Any]:
    """The sum over axes that neither factor nor argument has, if there are any, and the adjoint of their product."""
    joint = np.broadcast_shapes(factor, target)
    back = cast(Contraction, product(factor, target, (0,) if 0 in strong else ()).transpose(1, (factor, target)))
    return None if joint == shape else unbroadcast(shape, joint), back.strongly(1) if 1 in strong else back


def _gathered(parts: dict[Any, list[Any]], shapes: Any, domain: Any) -> list[Any]:
    """The cotangents of the results of a step with several, zeros included."""
    found: list[Any] = []
    for i, shape in enumerate(shapes):
        held = parts.get(i, [])
        found.append(domain.zeros(shape) if not held else held[0] if len(held) == 1 else domain.step(Combination((1.0,) * len(held)), held))
    return found


def _block(
    op: Block,
    given: tuple[int, ...],
    cotangents: list[Any],
    flags: Sequence[int],
    domain: Any,
    value: Callable[[int], Any],
    give: Callable[[int, Any], None],
    strong: bool,
) -> list[int]:
    """The transpose of a block is a block. The arguments whose cotangents have strong zeros are returned."""
    from .blocks import transpose_block

    turned = transpose_block(op, tuple([bool(flags[a]) for a in given]), strong)
    carries = getattr(op, "carries", 0)
    zeros = [domain.zeros(shape) for shape in turned.zeros]
    fixed, rest = [value(given[i]) for i in turned.fixed], [value(given[i]) for i in turned.rest]
    result = domain.step(turned.op, [*fixed, *cotangents[:carries], *zeros, *rest, *cotangents[carries:]])
    for j, i in enumerate(turned.targets):
        if flags[given[i]]:
            give(given[i], domain.step(Get(j), (result,)))
    return [given[i] for i, s in zip(turned.targets, turned.strong, strict=True) if s]


def _declared(
    op: Declared,
    given: tuple[int, ...],
    cotangents: list[Any],
    flags: Sequence[int],
    domain: Any,
    value: Callable[[int], Any],
    give: Callable[[int, Any], None],
) -> None:
    """The transpose of a declared function is another leg of its form."""
    leg, where = next((leg, where) for leg, where in op.leg_slices() if any([flags[a] for a in given[where]]))
    turned = Declared(op.form, leg)
    arguments: list[Any] = []
    for source in turned.sources:
        if source == op.target:
            arguments.extend(cotangents)
        else:
            arguments.extend([value(a) for a in given[next(w for g, w in op.leg_slices() if g == source)]])
    result = domain.step(turned, arguments)
    for i, a in enumerate(given[where]):
        if flags[a]:
            give(a, domain.step(Get(i), (result,)))
