"""The order in which the products of a diagram are contracted, as numbered hulls with what each costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...maps.planning import MapPlan, Way
from ...spaces.contraction_order import path, results
from .reading_programs import ReadProduct
from .svg_drawing import Hull


def shown_way(plan: MapPlan) -> Way:
    """The way a diagram shows: what was chosen, or the normal form in the place of the steps as they are."""
    return next(w for w in plan.ways if w.name == "in normal form") if plan.chosen is plan.ways[0] else plan.chosen


def hulls(products: Sequence[ReadProduct], plan: MapPlan) -> list[Hull]:
    """The steps of all products, in the order of the way that is shown."""
    found: list[Hull] = []
    for p in products:
        vectors = [k for k, n in enumerate(p.nodes) if n is None]
        if len(vectors) == 1:  # linear in what comes in
            found += _steps(p, vectors[0], plan, len(found))
    return found


def _steps(p: ReadProduct, vector: int, plan: MapPlan, before: int) -> list[Hull]:
    labels, sizes = [tuple(ls) for ls in p.op.labels], p.op.sizes(p.shapes)
    count, columns = len(labels), plan.columns
    if plan.chosen.name.startswith("as a "):  # the factors first, then one product with the matrix
        factors = [k for k in range(count) if k != vector]
        held = {k for k in factors for k in labels[k]} & {*p.op.out, *labels[vector]}
        made = path([labels[k] for k in factors], tuple(sorted(held)), sizes).pairs
        moved = {len(factors) + i: count + i for i in range(len(made))} | dict(enumerate(factors))
        pairs = [(moved[a], moved[b]) for a, b in made]
        pairs.append((moved[len(factors) + len(made) - 1] if made else factors[0], vector))
        every, out = labels, tuple(p.op.out)
    else:
        many = max(sizes, default=0) + 1  # right-hand sides are one more index
        every = [(*ls, many) if k == vector else ls for k, ls in enumerate(labels)]
        out, sizes = (*p.op.out, many), {**sizes, many: columns}
        pairs = list(path(every, out, sizes).pairs)
    arrays = results(every, out, tuple(pairs))
    inside: list[frozenset[int]] = [frozenset([k]) for k in range(count)]
    levels = [0] * count
    found: list[Hull] = []
    for k, (a, b) in enumerate(pairs):
        inside.append(inside[a] | inside[b])
        union = {*arrays[a], *arrays[b]}
        flops = math.prod([sizes[i] for i in union]) * (2 if union - {*arrays[count + k]} else 1)
        if vector in inside[-1] and plan.chosen.name.startswith("as a "):
            flops *= columns
        levels.append(1 + max(levels[a], levels[b]))
        nodes = frozenset([n for i in inside[-1] if (n := p.nodes[i]) is not None])
        starts = frozenset([s for i in inside[-1] if (s := p.sources[i]) is not None])
        number = before + k + 1
        words = f"contraction {number}: {flops:,} operations, an array of {_size(arrays[count + k], sizes)} numbers"
        found.append(Hull(nodes, starts, number, levels[-1], f"{flops:,}", words))
    return found


def _size(labels: Sequence[int], sizes: dict[int, int]) -> str:
    return f"{math.prod([sizes[k] for k in labels]):,}"
