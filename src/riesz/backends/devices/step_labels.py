"""Which axes of a step may be cut together: labels of its result and arguments, and those for which the step on parts
is a part of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ops.convolution import Convolution, ExchangedLeg
from ...ops.discrete_fourier import Fourier, Transform
from ...ops.op import Contraction, Reduction, Reshape
from ...ops.opaque import Put, Take
from ...programs.axis.along import MixesPositions
from ...programs.axis.axis_labels import axis_labels
from ...programs.axis.slices import Mode, slices
from ...programs.program import several
from ...programs.sub_programs import Block

Shape = tuple[int, ...]


class Labels(NamedTuple):
    """A label for each axis of a step's result and of its arguments; `free`: those that may be cut. A free label that
    is not in the result is summed."""

    out: tuple[int, ...]
    given: list[tuple[int, ...]]
    free: set[int]


def labels_of(
    op: Any, shapes: Sequence[Shape], shape: Any, counts: Sequence[int], backwards: bool = False
) -> Labels | None:
    """The labels of a step; None where it is not known to run on parts. `counts`: how many devices cut each axis of its
    first argument (`backwards`: of its result)."""
    if several(shape) or isinstance(op, Block) or any([several(s) for s in shapes]):
        return None
    if type(op) is Contraction:
        every = [op.out, *op.labels]
        return Labels(op.out, list(op.labels), {k for ls in every for k in ls if all([o.count(k) < 2 for o in every])})
    if type(op) is Reshape:
        return _reshaped(shapes[0], shape, counts, backwards)
    if isinstance(op, (Take, Put, Reduction)):
        out, given = axis_labels(op, shapes, shape)
        free = {*out} & {k for ls in given for k in ls}
        return Labels(out, given, free | {*given[1]} if isinstance(op, (Take, Put)) else free)
    out, found, free = tuple(range(len(shape))), [[-1] * len(s) for s in shapes], set[int]()
    for k in out:
        axes = _along(op, shapes, shape, k)
        if axes is None or all([a is None for a in axes]):
            continue
        free.add(k)
        for ls, a in zip(found, axes, strict=True):
            if a is not None:
                ls[a] = k
    return Labels(out, [tuple(ls) for ls in found], free)


def _along(op: Any, shapes: Sequence[Shape], shape: Shape, k: int) -> list[int | None] | None:
    """The axis of each argument that runs along with axis k of the result; None where the step mixes positions."""
    if isinstance(op, (Transform, Convolution, ExchangedLeg)):
        return _beside(op, shapes, shape, k)
    try:
        return slices(op, shapes, shape, Mode(k))
    except MixesPositions:
        return None


def _reshaped(small: Shape, shape: Shape, counts: Sequence[int], backwards: bool) -> Labels:
    """The labels of a reshape: axes that are kept, and the first ones of those that are joined or split."""
    out, given, free = [-1] * len(shape), [-2] * len(small), set[int]()
    i = j = 0
    while i < len(small) and j < len(shape):
        a, b, m, n = i + 1, j + 1, small[i], shape[j]
        while m != n and (a < len(small) or b < len(shape)):
            if (m < n and a < len(small)) or b == len(shape):
                m, a = m * small[a], a + 1
            else:
                n, b = n * shape[b], b + 1
        first = next((k for k in range(i, a) if small[k] != 1), None)
        then = next((k for k in range(j, b) if shape[k] != 1), None)
        if m == n and first is not None and then is not None:
            count = counts[then if backwards else first]
            if m == small[first] == shape[then] or not (small[first] % count or shape[then] % count):
                out[then] = given[first] = then
                free.add(then)
        i, j = a, b
    return Labels(tuple(out), [tuple(given)], free)


def _beside(op: Any, shapes: Sequence[Shape], shape: Shape, k: int) -> list[int | None] | None:
    """Transforms and convolutions run along all other axes."""
    rank = len(shape)
    if isinstance(op, (Convolution, ExchangedLeg)):
        taken = {rank - 1}
    elif isinstance(op, Fourier):
        taken = {*[a % (rank - 1) for a in op.axes], rank - 1}
    else:
        axis: int = op.axis
        taken = {axis % max(rank, 1), axis % max(len(shapes[0]), 1), rank - 1, len(shapes[0]) - 1}
    if k in taken:
        return None
    found = [k - rank + len(s) for s in shapes]
    return [a if a >= 0 and s[a] == shape[k] else None for a, s in zip(found, shapes, strict=True)]
