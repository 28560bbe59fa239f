"""The adjoint of a linear program: its steps in reverse, each op transposed, the wiring's relation converted   (§6).

(s_n • … • s_1)* = s_1* • … • s_n*, and red_R* = red_{Rᵀ} for the wiring: the cotangents of a slot read twice are added up.
Over numbers this computes; over symbols (a Program) it writes the adjoint program.
A cotangent that came through a selection has strong zeros from there on (Note [Strong] in ops.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..opaque import Declared, Get, Put, Strongly, Take
from ..ops import Combination, Contraction, Multilinear, Reduction, Single, product, unbroadcast
from ..programs.blocks import Block
from ..programs.program import Program
from ..vectors import Formal


def pullback(
    program: Program,
    flags: Sequence[int],
    seeds: Sequence[Any],
    domain: Any,
    value: Callable[[int], Any],
    strongly: bool = False,
    marks: list[bool] | None = None,
) -> list[Any]:
    """The cotangents of all slots that `flags` marks as linear, from those of the outputs; `value` gives the coefficients.

    `strongly`: the seeds have strong zeros; `marks`, if given, is told which inputs' cotangents have.
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
        kind = cast(Any, type(op))
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
        elif kind is Contraction:  # linear in exactly one argument
            k = next(i for i, a in enumerate(given) if flags[a])
            turned = op.transpose(k, tuple([shapes[a] for a in given]))
            if turned.strong:
                strong[given[k]] = 1
            if strong[slot]:
                turned = turned.strongly(k)
            give(given[k], domain.step(turned, [c if i == k else value(a) for i, a in enumerate(given)]))
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
            k = next(i for i, a in enumerate(given) if flags[a])
            turned = op.transpose(k, tuple([shapes[a] for a in given]))
            if strong[slot] and isinstance(turned, Multilinear) and not isinstance(turned, (Take, Put)):
                turned = Strongly(turned, k)
            give(given[k], domain.step(turned, [c if i == k else value(a) for i, a in enumerate(given)]))
        elif kind is Get:
            pieces.setdefault(given[0], {}).setdefault(op.at, []).append(c)
        else:
            raise AssertionError(f"not a linear step: {op}")
    if marks is not None:
        marks.extend([bool(strong[slot]) for slot in program.inputs])
    return [collect(slot) for slot in program.inputs]


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
