"""Small linear maps as generated code. A map at another point has another program with the same steps: one code for all
of them.

The numbers of a linear program are its constants and scalings. Without them it is a `Skeleton`, known by its steps:
what it makes of its numbers alone is computed once for each map, the rest is a function of these and the vector. Code
is written when a map of a kind is applied for the first time, so that the same map gives the same bits at every call.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..functions.traces.records import Aval
from ..maps.linear_map import LinearMap
from ..ops.number_domains import NUMBERS
from ..ops.op import contraction, product
from ..programs.axis.tiling import tiled
from ..programs.passes.folding import folded
from ..programs.passes.fusing import fused
from ..programs.passes.ordering import ordered
from ..programs.program import INPUT, Constant, Program, outputs
from ..programs.sub_programs import Block
from ..runtime import tuning
from ..runtime.warnings_off import quietly
from ..spaces.formal_vectors import Formal, dense, weak
from .common import Run, function
from .numpy.array_code import ArrayValue
from .numpy.tiled_code import TiledArrays
from .python.unrolled import FLOAT
from .source_text import inside

_known: OrderedDict[Any, Skeleton] = OrderedDict()
_DOT = re.compile(r"t\d+ = dot\([\w.]+, [\w.]+\)")


def applied(L: LinearMap, program: Program) -> Run | None:
    """A function of the leaves of v that gives the leaf of L(v), or a tuple of its leaves, or OTHER, by a program of L;
    None for large ones."""
    if L.dtype != FLOAT or len(program.ops) > tuning.SMALL_PROGRAM_SLOTS:
        return None
    found = _abstract(program)
    if found is None or any([leaf.formal for V in (L.domain, L.codomain) for leaf in V.leaves]):
        return None
    key, numbers = found
    skeleton = _known.get(key)
    if skeleton is None:
        skeleton = _known[key] = _skeleton(program, numbers)
        if len(_known) > tuning.SMALL_MAPS_KEPT:
            _known.popitem(last=False)
    return skeleton.at(numbers)


def _abstract(program: Program) -> tuple[Any, list[Any]] | None:
    """What a program is known by, and its numbers: constants, and scalings other than by ±1."""
    numbers: list[Any] = []
    key: list[Any] = [tuple(program.inputs), tuple(program.outputs)]
    for op, args, shape in zip(program.ops, program.args, program.shapes, strict=True):
        kind, several = op, shape and type(shape[0]) is tuple
        if type(op) is Constant:
            factors = _factors(op.value)
            kind = ("k", shape, tuple([(_kind(x), np.shape(x), axes) for x, axes in factors]))
            numbers.extend([x for x, _ in factors])
        elif type(op) is float:
            kind = ("k", op) if abs(op) == 1.0 else "k"
            numbers.extend([] if abs(op) == 1.0 else [op])
        elif op is INPUT:
            kind = ("x", shape)
        elif isinstance(op, Block) or several or math.prod(shape) > tuning.SMALL_PROGRAM_NUMBERS:
            return None
        key.append((kind, args))
    return tuple(key), numbers


def _factors(value: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """A constant as a product of arrays, with the axes each has: an outer product stays one."""
    if type(value) is Formal and len(value.terms) == 1:
        (term,) = value.terms
        scale = [] if type(term.scale) is float and term.scale == 1.0 and term.factors else [(term.scale, ())]
        return [*scale, *term.factors]
    found = dense(value)
    return [(found, tuple(range(np.ndim(found))))]


class Skeleton(NamedTuple):
    """A linear program without its numbers: `before` gives what is needed of them, `make` a function of the vector."""

    before: Program
    make: Callable[..., Run]
    source: str

    def at(self, numbers: Sequence[Any]) -> Run:
        """The map with these numbers."""
        with quietly():
            return self.make(*[weak(x) for x in outputs(self.before, NUMBERS, numbers)])


def _skeleton(program: Program, numbers: Sequence[Any]) -> Skeleton:
    """The steps in the order of least work, cut where the vector comes in."""
    whole = Program()
    rest = iter([whole.input(np.shape(k)) for k in numbers])
    given = iter([whole.input(program.shapes[s]) for s in program.inputs])
    place: list[int] = []
    for op, args, shape in zip(program.ops, program.args, program.shapes, strict=True):
        xs = [place[a] for a in args]
        if op is INPUT:
            place.append(next(given))
        elif type(op) is Constant:
            axes = tuple([axes for _, axes in _factors(op.value)])
            missing = {k: n for k, n in enumerate(shape) if not any([k in ls for ls in axes])}
            joint = contraction(axes, tuple(range(len(shape))), missing)
            place.append(whole.step(joint, [next(rest) for _ in axes]))
        elif type(op) is float:
            unit = abs(op) == 1.0
            place.append(whole.scale(op, xs[0]) if unit else whole.step(product((), shape), (next(rest), xs[0])))
        else:
            place.append(whole.step(op, xs))
    whole.outputs = [place[s] for s in program.outputs]
    return _cut(folded(fused(ordered(whole))), len(numbers), numbers)


def _cut(whole: Program, fixed: int, numbers: Sequence[Any]) -> Skeleton:
    """A program of numbers and a vector as one of the numbers alone, and code for the rest."""
    moving = whole.dependent(whole.inputs[fixed:])
    ends = {*whole.outputs, *[a for slot, args in enumerate(whole.args) if moving[slot] for a in args]}
    needed = [s for s in sorted(ends) if not moving[s] and type(whole.ops[s]) is not Constant]
    before = whole.prune(whole.inputs[:fixed], needed)
    with quietly():
        kinds = [_kind(weak(x)) for x in outputs(before, NUMBERS, numbers)]
    after = whole.prune([*needed, *whole.inputs[fixed:]], whole.outputs)
    names = [f"k{i}" for i in range(len(needed))]
    values = [ArrayValue(n, whole.shapes[s], kind) for n, s, kind in zip(names, needed, kinds, strict=True)]
    given = [Aval(whole.shapes[s], FLOAT, not whole.shapes[s]) for s in whole.inputs[fixed:]]
    vectors = ["v"] if len(given) == 1 else [f"v{i}" for i in range(len(given))]
    values += [ArrayValue(v, a.shape, FLOAT if a.shape else float) for v, a in zip(vectors, given, strict=True)]
    code = TiledArrays(tiled(after), values)
    space = code.names
    texts = code.given_back([Aval(out.shape, FLOAT, not out.shape) for out in code.outputs])
    lines = [*code.lines, f"return {texts[0]}" if len(texts) == 1 else f"return ({', '.join(texts)})"]
    if not all([_DOT.fullmatch(line) for line in code.lines]):  # NumPy warns of nothing in matrix products
        space["errstate"] = np.errstate
        lines = inside('with errstate(all="ignore"):', lines)
    source, make = function("map", given, vectors, lines, space, names)
    return Skeleton(before, make, "\n\n".join([*code.tiles, source]))


def _kind(x: Any) -> Any:
    return float if type(x) is float else np.asarray(x).dtype
