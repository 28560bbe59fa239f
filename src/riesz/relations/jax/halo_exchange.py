"""red_R on devices without lists: shifts, windows and stencils exchange the rims of blocks; running sums the totals.

A relation of shifts is y_t = Σ_j x_{s·t + o_j}, each shift for a range of targets. Where blocks of sources are about s
times those of targets, each device needs the rows s·t + o_j around its own block: its own part, and rims from the
devices before and behind, which are the same slices of the block everywhere. A running sum is one of the block and the
total of all blocks before it, which is found in log₂ D rounds of one row.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...runtime import tuning
from ..base import Relation
from ..compound import Union
from ..index_algebra import Affine
from ..kinds import Triangular
from .exchange_lists import ExchangeRound


class Shift(NamedTuple):
    """y_t = x_{s·t + by} for low ≤ t < high."""

    by: int
    low: int
    high: int


class Rim(NamedTuple):
    """Rows `low` to `high` of the block of the device `ahead` places further; who gives them to whom."""

    ahead: int
    low: int
    high: int
    pairs: tuple[tuple[int, int], ...]


class Surroundings(NamedTuple):
    """Shifts that read rows `first` to `last` of those around a block, behind the first target's, and the rims they
    need, in order."""

    first: int
    last: int
    shifts: tuple[Shift, ...]
    rims: tuple[Rim, ...]


class Halo(NamedTuple):
    """Shifts between blocks of `sources` and of `targets` on `devices`; `size` and `count` are those of the sets."""

    stride: int
    devices: int
    size: int
    count: int
    sources: int
    targets: int
    reaches: tuple[Surroundings, ...]

    @property
    def drift(self) -> int:
        """How much farther from the begin of its block each device reads than the one before."""
        return self.stride * self.targets - self.sources

    @property
    def arrays(self) -> Any:
        """Nothing differs between devices."""
        return ()

    @property
    def rounds(self) -> tuple[ExchangeRound, ...]:
        """What travels."""
        rims = [rim for reach in self.reaches for rim in reach.rims if rim.ahead and rim.pairs]
        return tuple([ExchangeRound(rim.pairs, rim.high - rim.low) for rim in rims])


class BlockTotals(NamedTuple):
    """Σ over all before (or behind) of `size` elements, in blocks on `devices`."""

    devices: int
    size: int
    sources: int
    lower: bool
    strict: bool

    @property
    def targets(self) -> int:
        return self.sources

    @property
    def arrays(self) -> Any:
        """Nothing differs between devices."""
        return ()

    @property
    def rounds(self) -> tuple[ExchangeRound, ...]:
        """What travels: one row in each round."""
        D, found = self.devices, list[ExchangeRound]()
        steps = [1, *[2**k for k in range(max(0, math.ceil(math.log2(max(D - 1, 1)))))]] if D > 1 else []
        for k in steps:
            pairs = [(p, p + k) for p in range(D - k)]
            found.append(ExchangeRound(tuple(pairs if self.lower else [(q, p) for p, q in pairs]), 1))
        return tuple(found)


def without_lists(relation: Relation, devices: int) -> Halo | BlockTotals | None:
    """How devices apply a relation if no lists are needed."""
    if type(relation) is Triangular:
        n = relation.source.size
        return BlockTotals(devices, n, max(1, -(-n // devices)), relation.lower, relation.strict)
    found = _shifts(relation)
    size, count = relation.source.size, relation.target.size
    if found is None or not size or not count:
        return None
    stride, shifts = found
    halo = Halo(stride, devices, size, count, -(-size // devices), -(-count // devices), ())
    sources = halo.sources
    if abs(halo.drift) * devices > sources:
        return None
    shifts.sort()
    groups: list[list[Shift]] = []
    for one in shifts:
        if groups and one.by - groups[-1][-1].by < sources:
            groups[-1].append(one)
        else:
            groups.append([one])
    halo = halo._replace(reaches=tuple([_reach(halo, tuple(group)) for group in groups]))
    return halo if len(halo.rounds) <= 2 * tuning.EXCHANGED_SHIFTS else None


def _reach(halo: Halo, shifts: tuple[Shift, ...]) -> Surroundings:
    """The rims that some shifts need: of the rows around the block those that somebody reads."""
    D, S, T, stride = halo.devices, halo.sources, halo.targets, halo.stride
    away = (D - 1) * halo.drift
    first, last = shifts[0].by + min(away, 0), shifts[-1].by + max(away, 0)
    rims: list[Rim] = []
    for ahead in range(first // S, (last + stride * (T - 1)) // S + 1):
        needs: list[tuple[int, int, tuple[int, int]]] = []
        for q in range(D):
            if not 0 <= q + ahead < D:
                continue
            begin, end = (q + ahead) * S, min((q + ahead + 1) * S, halo.size)
            rows = [_rows(one, max(q * T, one.low), min((q + 1) * T, one.high), stride, begin, end) for one in shifts]
            rows = [r for r in rows if r[0] < r[1]]
            if rows:
                low, high = min([a for a, _ in rows]) - begin, max([b for _, b in rows]) - begin
                needs.append((low, high, (q + ahead, q)))
        if needs:
            low, high = min([a for a, _, _ in needs]), max([b for _, b, _ in needs])
            rims.append(Rim(ahead, low, high, tuple([pair for _, _, pair in needs])))
    return Surroundings(first, last, shifts, tuple(rims))


def _rows(one: Shift, low: int, high: int, stride: int, begin: int, end: int) -> tuple[int, int]:
    """The sources from `begin` to `end` that a shift reads for targets from `low` to `high`."""
    low, high = max(low, -((one.by - begin) // stride)), min(high, -((one.by - end) // stride))
    return (stride * low + one.by, stride * (high - 1) + one.by + 1) if low < high else (0, 0)


def _shifts(relation: Relation) -> tuple[int, list[Shift]] | None:
    """A relation as shifts with one stride."""
    strides, found = set[int](), list[Shift]()
    for member in relation.members if type(relation) is Union else (relation,):
        span = member.span
        if span is None or not span.affine or span.times != 1 or not span.left or not span.right:
            return None
        rest: Any = (span.left[1:], span.right[1:])
        wide = math.prod((member.source.box or ())[1:])
        if rest[0] != rest[1] or (member.source.box or ())[1:] != (member.target.box or ())[1:]:
            return None
        kept = {k for m in rest[0] for k, _ in m.terms}
        whole = [m == Affine(0, ((k, 1),)) for m, k in zip(rest[0], sorted(kept), strict=False)]
        sides: Any = (span.left[0], span.right[0])
        if len(kept) != len(rest[0]) or not all(whole) or any([k in kept for m in sides for k, _ in m.terms]):
            return None
        if any([span.sizes[k] != n for k, n in zip(sorted(kept), (member.source.box or ())[1:], strict=True)]):
            return None
        left, right = [dict(m.terms) for m in sides]
        others = [k for k in range(len(span.sizes)) if k not in kept]
        along = next((k for k in others if right.get(k) == 1 and left.get(k, 0) >= 1), None)
        if along is None and others:
            return None
        stride = 1 if along is None else left[along]
        if wide != 1 and stride != 1:
            return None
        others = [k for k in others if k != along]
        if math.prod([span.sizes[k] for k in others]) > tuning.HALO_SHIFTS:
            return None
        length = 1 if along is None else span.sizes[along]
        for at in product(*[range(span.sizes[k]) for k in others]):
            to = sides[1].offset + sum([right.get(k, 0) * i for k, i in zip(others, at, strict=True)])
            read = sides[0].offset + sum([left.get(k, 0) * i for k, i in zip(others, at, strict=True)])
            found.append(Shift(wide * (read - stride * to), wide * to, wide * (to + length)))
        if length > 1:
            strides.add(stride)
    if len(strides) > 1 or len(found) > tuning.HALO_SHIFTS:
        return None
    stride = strides.pop() if strides else 1
    if stride != 1:  # shifts of single elements were counted with stride 1
        found = [one._replace(by=one.by - (stride - 1) * one.low) if one.high - one.low == 1 else one for one in found]
    return stride, found


# -- on one device -----------------------------------------------------------------------------------------------------


def shared(halos: list[Halo]) -> tuple[Rim, ...]:
    """The rims that several relations of one set of sources need."""
    found: dict[int, Rim] = {}
    for one in [rim for halo in halos for reach in halo.reaches for rim in reach.rims if rim.ahead]:
        known = found.get(one.ahead, one)
        low, high = min(known.low, one.low), max(known.high, one.high)
        found[one.ahead] = Rim(one.ahead, low, high, tuple(sorted({*known.pairs, *one.pairs})))
    return tuple([found[k] for k in sorted(found)])


def rims_given(rims: tuple[Rim, ...], size: int, axis: Any, x: Any) -> Any:
    """The rims that come to a device, one behind the other."""
    x = _cleared(x, size, axis)
    return jnp.concatenate([jax.lax.ppermute(x[one.low : one.high], axis, one.pairs) for one in rims])


def _cleared(x: Any, size: int, axis: Any) -> Any:
    """Zeros where the last block is filled up."""
    if not size % len(x):
        return x
    mine = jax.lax.axis_index(axis) * len(x) + jnp.arange(len(x)) < size
    return jnp.where(mine[:, None], x, jnp.zeros((), x.dtype))


def halo_applied(halo: Halo, axis: Any, x: Any, rims: tuple[Rim, ...] = (), came: Any = None) -> Any:
    """Rims come (or are among those that `came`), then each shift is a slice."""
    x = _cleared(x, halo.size, axis)
    begins, begin = dict[int, int](), 0
    for one in rims:
        begins[one.ahead], begin = begin - one.low, begin + one.high - one.low

    def rows(rim: Rim) -> Any:
        if not rim.ahead:
            return x[rim.low : rim.high]
        if rims:
            return came[begins[rim.ahead] + rim.low : begins[rim.ahead] + rim.high]
        return jax.lax.ppermute(x[rim.low : rim.high], axis, rim.pairs)

    T, stride, total, at = halo.targets, halo.stride, None, jax.lax.axis_index(axis)
    t = at * T + jnp.arange(T)
    for reach in halo.reaches:
        wide = _around(halo, reach, x, rows)
        for one in reach.shifts:
            begin, length = one.by - reach.first, stride * (T - 1) + 1
            if halo.drift:
                y = jax.lax.dynamic_slice_in_dim(wide, begin + halo.drift * at, length)[::stride]
            else:
                y = jax.lax.slice_in_dim(wide, begin, begin + length, stride)
            before = one.low > 0 and stride * (one.low - 1) + one.by >= 0
            behind = one.high < halo.count and stride * one.high + one.by < halo.size
            if before or behind:
                y = jnp.where(((t >= one.low) & (t < one.high))[:, None], y, jnp.zeros((), y.dtype))
            total = y if total is None else total + y
    return total


def _around(halo: Halo, reach: Surroundings, x: Any, given: Any) -> Any:
    """The rows that a device reads, from the first to the last; zeros where there are none, or nobody reads."""
    S, end = halo.sources, reach.last + halo.stride * (halo.targets - 1) + 1
    parts, at = [], reach.first
    for rim in reach.rims:
        low, high = rim.ahead * S + rim.low, rim.ahead * S + rim.high
        cut = max(reach.first - low, 0), min(end, high) - low
        rows = given(rim)[cut[0] : cut[1]]
        low, high = low + cut[0], low + cut[1]
        if low > at:
            parts.append(jnp.zeros((low - at, x.shape[1]), x.dtype))
        parts.append(rows)
        at = high
    if end > at:
        parts.append(jnp.zeros((end - at, x.shape[1]), x.dtype))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def running_sums_applied(form: BlockTotals, axis: Any, x: Any) -> Any:
    """A running sum of the block, behind the total of all blocks before it."""
    x = _cleared(x, form.size, axis)
    y = jax.lax.cumsum(x, axis=0, reverse=not form.lower)
    before = None
    for one in form.rounds:
        given = (y[-1:] if form.lower else y[:1]) if before is None else before
        came = jax.lax.ppermute(given, axis, one.pairs)
        before = came if before is None else before + came
    if form.strict:
        none = jnp.zeros_like(x[:1])
        y = jnp.concatenate([none, y[:-1]] if form.lower else [y[1:], none])
    return y if before is None else y + before
