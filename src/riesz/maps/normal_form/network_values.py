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
from ...runtime import tuning
from ...runtime.warnings_off import quietly
from ...spaces.formal_vectors import dense
from .coefficients import Coefficients
from .entries import Entry, sparse_size
from .index_maps import Sizes, size_of
from .network import Network


class Spread:
    """The coefficient of an entry on some labels, broadcast along those it does not depend on, summed over others."""

    def __init__(self, c: Coefficients, e: Entry, labels: Labels) -> None:
        have = {k for f in e.factors for k in f.labels}
        self.entry = e
        self.labels = tuple([k for k in labels if k in have])
        self.box = tuple([c.sizes[k] for k in labels])
        self.thin = tuple([c.sizes[k] if k in have else 1 for k in labels])
        self.slots = [f.slot for f in e.factors]
        strong = tuple([i for i, f in enumerate(e.factors) if f.strong]) if len(e.factors) > 1 else ()
        self.op = contraction(tuple([f.labels for f in e.factors]), self.labels, {}, strong)
        self.halved = _twice(e, self.labels, c.sizes)

    def at(self, v: Values) -> Any:
        """The numbers at a point; not to be written to."""
        if not self.slots:
            return np.broadcast_to(v.dtype.type(self.entry.scale), self.box)
        slots, scale = v.slots, self.entry.scale
        with quietly():
            if self.halved is not None:
                found = _gram(self.entry, self.halved, self.labels, slots, v.dtype)
            else:
                found = np.asarray(dense(self.op.run(*[slots[s] for s in self.slots])), v.dtype)
                found = found if scale == 1.0 else found * v.dtype.type(scale)
        if found.shape != self.thin:
            found = found.reshape(self.thin)
        return found if self.thin == self.box else np.broadcast_to(found, self.box)


class Values:
    """A network and the point its coefficients are taken at."""

    def __init__(self, net: Network, point: Sequence[Any], dtype: Any, slots: dict[int, Any] | None = None) -> None:
        if slots is not None:
            self.slots = slots
        self.net, self.point, self.dtype = net, list(point), dtype
        self._spread: dict[int, Any] = {}

    @cached_property
    def slots(self) -> dict[int, Any]:
        """The numbers of all factors."""
        kept = {a for k in self.net.kept.values() for moves, a in k.args if not moves}
        return self.run(kept | {f.slot for e in self.net.entries for f in e.factors})

    def run(self, slots: set[int]) -> dict[int, Any]:
        """Some slots of the coefficients at this point."""
        wanted = tuple(sorted(slots))
        make = lambda: self.net.c.program.prune(self.net.params, wanted)  # noqa: E731
        program: Program = self.net.known(("run", wanted), make)
        with quietly():
            found = outputs(runnable(program), NUMBERS, self.point)
        return {s: seal(dense(x)) for s, x in zip(wanted, found, strict=True)}

    def spread(self, e: Entry) -> Any:
        """The coefficient of an entry on all its outer labels, broadcast."""
        if id(e) not in self._spread:
            self._spread[id(e)] = Spread(self.net.c, e, e.outer).at(self), e
        return self._spread[id(e)][0]

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


# -- Xᵀ diag(w) X: half of a symmetric product says all of it ---------------------------------------------------------

Split = tuple[int, int, set[int]]


def _twice(e: Entry, labels: Labels, sizes: Sizes) -> Split | None:
    """Two factors that are one array, its labels the same where they are summed and all different where they are not;
    and the summed ones. None where there are none, or the product is small."""
    if any([f.strong for f in e.factors]):
        return None
    outer = set(labels)
    for i, f in enumerate(e.factors):
        for j in range(i + 1, len(e.factors)):
            g = e.factors[j]
            common = {a for a, b in zip(f.labels, g.labels, strict=False) if a == b}
            apart = [k for ls in (f.labels, g.labels) for k in ls if k not in common]
            rest = {k for m, h in enumerate(e.factors) if m not in (i, j) for k in h.labels}
            fits = f.slot == g.slot and not common & outer and len(apart) == len(outer) and set(apart) == outer
            if fits and common and rest <= common and len(set(f.labels)) == len(f.labels):
                work = size_of(labels, sizes) * size_of(common, sizes)
                return (i, j, common) if work >= tuning.SYMMETRIC_MULTIPLICATIONS else None
    return None


def _gram(e: Entry, split: Split, labels: Labels, numbers: dict[int, Any], dtype: Any) -> Any:
    """The product of an entry's factors, one array twice, weighed where it is summed; times its scale."""
    first, second, common = split
    mine, other = e.factors[first].labels, e.factors[second].labels
    out = [i for i, k in enumerate(mine) if k not in common]
    inner = [i for i, k in enumerate(mine) if k in common]
    whole = np.asarray(dense(numbers[e.factors[first].slot]), dtype).transpose([*inner, *out])
    depth, shape = whole.shape[: len(inner)], whole.shape[len(inner) :]
    X = whole.reshape(int(np.prod(depth)), int(np.prod(shape)))
    rest = [f for i, f in enumerate(e.factors) if i not in (first, second)]
    weights: Any = np.full(len(X), e.scale, dtype)
    if rest:
        summed = tuple([mine[i] for i in inner])
        have = {k for f in rest for k in f.labels}
        extra = {k: n for k, n in zip(summed, depth, strict=True) if k not in have}
        op = contraction(tuple([f.labels for f in rest]), summed, extra)
        weights = np.asarray(dense(op.run(*[numbers[f.slot] for f in rest])), dtype).reshape(-1) * weights
    product = _squared(X, weights).reshape([*shape, *shape])
    order = [*[mine[i] for i in out], *[other[i] for i in out]]
    return product.transpose([order.index(k) for k in labels])


def _squared(X: Any, w: Any) -> Any:
    """Xᵀ diag(w) X as ±(√|w| X)ᵀ(√|w| X), by sign: NumPy computes one half of such a product."""
    Y = np.sqrt(np.abs(w))[:, None] * X
    minus = w < 0
    if not minus.any():
        return Y.T @ Y
    if minus.all():
        return -(Y.T @ Y)
    above, below = Y[~minus], Y[minus]
    return above.T @ above - below.T @ below
