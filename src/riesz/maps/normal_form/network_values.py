"""A network at a point: its coefficients as numbers, computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...ops.number_domains import NUMBERS
from ...ops.op import contraction
from ...programs.passes.fusing import runnable
from ...programs.program import Constant, Program, outputs
from ...relations.base import seal
from ...relations.index_algebra import Labels
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import dense
from .entries import Entry, sparse_size
from .index_maps import size_of
from .network import Network
from .symmetric_products import gram


def multiplied_out(e: Entry, outer: Labels, numbers: dict[int, Any], dtype: Any) -> tuple[Any, Labels]:
    """The product of the factors of an entry, times its scale, summed to those of some labels that it depends on; and
    these labels."""
    have = {k for f in e.factors for k in f.labels}
    labels = tuple([k for k in outer if k in have])
    if not e.factors:
        return np.asarray(e.scale, dtype), ()
    with quietly():
        found = gram(e, labels, numbers, dtype)
    if found is not None:
        return found, labels
    strong = tuple([i for i, f in enumerate(e.factors) if f.strong]) if len(e.factors) > 1 else ()
    op = contraction(tuple([f.labels for f in e.factors]), labels, {}, strong)
    with quietly():
        found = np.asarray(dense(op.run(*[numbers[f.slot] for f in e.factors])), dtype)
    return found if e.scale == 1.0 else found * found.dtype.type(e.scale), labels


class Values:
    """A network and the point its coefficients are taken at."""

    def __init__(self, net: Network, point: Sequence[Any], dtype: Any, slots: dict[int, Any] | None = None) -> None:
        if slots is not None:
            self.slots = slots
        self.net = net
        self.point = list(point)
        self.dtype = dtype
        self._whole: dict[Any, Any] = {}

    @cached_property
    def slots(self) -> dict[int, Any]:
        """The numbers of all factors."""
        kept = {a for k in self.net.kept.values() for moves, a in k.args if not moves}
        wanted = sorted(kept | {f.slot for e in self.net.entries for f in e.factors})
        return dict(zip(wanted, self.run(wanted), strict=True))

    def run(self, wanted: Sequence[int]) -> list[Any]:
        """Some slots of the coefficients at this point."""
        key = ("run", tuple(wanted))
        known: dict[Any, Program] = self.net.made
        if key not in known:
            known[key] = self.net.c.program.prune(self.net.params, wanted)
        with quietly():
            return [seal(dense(x)) for x in outputs(runnable(known[key]), NUMBERS, self.point)]

    def coefficient(self, e: Entry) -> tuple[Any, Labels]:
        """Σ over inner labels of the product of the factors, times the scale, on those of the outer labels that it
        depends on."""
        key = id(e)
        if key not in self._whole:
            self._whole[key] = (*multiplied_out(e, e.outer, self.slots if e.factors else {}, self.dtype), e)
        return self._whole[key][:2]

    def spread(self, e: Entry, labels: Labels | None = None) -> Any:
        """The coefficient on all outer labels, broadcast."""
        labels = e.outer if labels is None else labels
        array, have = self.coefficient(e)
        sizes = self.net.c.sizes
        order = [have.index(k) for k in labels if k in have]
        shown = array.transpose(order).reshape([sizes[k] if k in have else 1 for k in labels])
        return np.broadcast_to(shown, [sizes[k] for k in labels])

    @property
    def numbers(self) -> int:
        """How many numbers are stored: each factor once."""
        seen: dict[int, int] = {}
        for slot, value in self.slots.items():
            op = self.net.c.program.ops[slot]
            array = np.asarray(op.value if type(op) is Constant else value)
            seen[id(value)] = int(np.prod([n for n, s in zip(array.shape, array.strides, strict=True) if s], dtype=int))
        return sum(seen.values())

    def positions(self) -> int:
        """How many positions of the matrix the entries reach."""
        return sum([sparse_size(self.net.c, e) for e in self.net.entries])

    def size_of(self, labels: Labels) -> int:
        """How many values some labels have."""
        return size_of(labels, self.net.c.sizes)
