"""Sums over stored pairs and gathers on the processor: Numba where it is installed and the work is worth it, NumPy and
SciPy otherwise.

Every way adds the pairs of a target in one order, in parts cut between targets: the same bits from all of them, run
after run.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import buffers, tuning
from ...runtime import pool as threads
from ..index_sets import Array
from .groups import Groups, kind_for, short
from .strips import Strips

if TYPE_CHECKING:
    from ..base import Relation
    from ..kinds import Function, Gather


@cache
def numba_installed() -> bool:
    """Whether compiled loops can be had: Numba is there, takes this NumPy, may compile. Asked last: it is imported."""
    try:
        import numba  # pyright: ignore
    except ImportError:
        return False
    return not numba.config.DISABLE_JIT  # pyright: ignore


backend: ContextVar[str] = ContextVar("backend", default="auto")
"""Whether compiled loops are used: always (numba), never (numpy), or by size."""


def loops_for(v: Array, numbers: int) -> Any:
    """The compiled loops, if they pay for so many numbers of this kind."""
    chosen = backend.get()
    if chosen == "numpy" or (chosen != "numba" and numbers < tuning.COMPILED_PAIR_LOOPS_FROM):
        return None
    return _loops() if v.dtype.char in "fdFD" and v.dtype.isnative and numba_installed() else None


@cache
def _loops() -> Any:
    from . import numba_loops as compiled

    return compiled


def gather(relation: Gather, v: Array) -> Array:
    """v[a, index[i]]."""
    a, _, b = v.shape
    m = relation.target.size
    loops = loops_for(v, a * m * b)
    if loops is None:
        return np.take(v, relation.index, axis=1)
    y = buffers.empty((a, m, b), v.dtype)
    if not y.size:
        return y
    x, z = _real(v), _real(y)
    if x.shape[2] * x.itemsize <= tuning.CACHE_LINE_BYTES:
        soon = None if x[0].nbytes <= 2 * tuning.CORE_CACHE_BYTES or relation.in_order else ()
        work, given = loops.gathered_short, (relation.short, x, z, (0,) * x.shape[2], soon)
    else:
        work, given = loops.gathered, (relation.short, x, z)
    threads.spread(lambda *part: work(*given, *part), _parts(a, m, y.size))
    return y


def repeat(offsets: Array, v: Array) -> Array:
    """v[a, i] in the places offsets[i] … offsets[i + 1]."""
    a, _, b = v.shape
    count = int(offsets[-1])
    loops = loops_for(v, a * count * b)
    if loops is None:
        return np.repeat(v, np.diff(offsets), axis=1)
    y = buffers.empty((a, count, b), v.dtype)
    v = np.ascontiguousarray(v)
    threads.spread(lambda *part: loops.repeated(offsets, v, y, *part), _parts(a, len(offsets) - 1, y.size, offsets))
    return y


def running_sum(v: Array, backwards: bool, strict: bool) -> Array:
    """Prefix sums, or suffix sums, along the middle axis; `strict`, without the element itself."""
    loops = loops_for(v, v.size)
    y = buffers.empty(v.shape, v.dtype)
    if loops is not None:
        v = np.ascontiguousarray(v)
        parts = _cuts(v.shape[0], _threads_for(v.size))
        threads.spread(lambda *part: loops.accumulated(v, y, backwards, strict, *part), parts)
        return y
    given, out = (v[:, ::-1], y[:, ::-1]) if backwards else (v, y)
    skip = int(strict)
    out[:, :skip] = 0
    np.cumsum(given[:, : v.shape[1] - skip], axis=1, out=out[:, skip:])
    return y


def pair_sum(relation: Relation, v: Array) -> Array:
    """red of a relation by its pairs."""
    loops = loops_for(v, v.shape[0] * relation.groups.count * v.shape[2])
    return relation.sparse_reduce(v) if loops is None else group_sum(loops, relation.groups, v)


def scatter(relation: Function, v: Array) -> Array:
    """red of a function: v[a, e] added at index[e], as `_way` says."""
    m = relation.target.size
    loops = loops_for(v, v.size)
    if loops is None:
        plain = v.shape[0] == v.shape[2] == 1 and v.dtype == float and v.size
        return np.bincount(relation.index, v.reshape(-1), m).reshape(1, m, 1) if plain else relation.sparse_reduce(v)
    match _way(relation, v, False):
        case "strips", count:
            return _in_strips(loops, _strips(loops, relation, count), m, v)
        case "groups", _:
            return group_sum(loops, relation.groups, v)
        case _:
            return _scattered(loops, relation.short, m, v)


def _way(relation: Function, v: Array, weighed: bool) -> tuple[str, int]:
    """How pairs are summed, and in how many strips: by one thread, or each of several along the leading axis, as they
    come, unless rows are long or far; by several in strips of targets, unless these are few, or by groups if rows are
    longer. What is used once is not prepared for."""
    row, numbers = v.shape[2] * v.itemsize, v.shape[2] * (2 if v.dtype.kind == "c" else 1)
    again, relation.known["used"] = "used" in relation.known, True
    if relation.ascending:
        return "groups", 0
    most = threads.count()
    if _threads_for(v.shape[0] * relation.source.size * v.shape[2], most) <= v.shape[0] or not again or not row:
        far = relation.target.size * row > tuning.SHARED_CACHE_BYTES
        longest = tuning.STRIP_ROW_BYTES if far else tuning.SCATTERED_ROW_BYTES
        return "as they come" if row <= longest else "groups", 0
    if relation.target.size * row <= (tuning.GROUPED_TARGET_BYTES if numbers == 1 else tuning.ONE_THREAD_TARGET_BYTES):
        return "groups" if numbers == 1 else "as they come", 0
    strips = max(_threads_for(relation.source.size, most), 2)  # whatever the values are
    # Rows that are not whole cache lines share some with their neighbours, which come from memory again unless rows
    # come in order.
    in_lines = not (v.ctypes.data | row) % tuning.CACHE_LINE_BYTES
    longer = strips == 2 and not weighed and not in_lines
    fits = row <= (tuning.STRIP_ROW_BYTES if longer else tuning.CACHE_LINE_BYTES)
    return "strips" if fits and numbers <= tuning.UNROLLED_ROW_NUMBERS else "groups", strips


def _strips(loops: Any, relation: Function, count: int) -> Strips:
    """The strips of a function, kept until another number of them is asked for."""
    found = relation.known.get("strips")
    if found is None or len(found.starts) != count:
        found = relation.known["strips"] = Strips(loops, relation.short, relation.target.size, count)
    return found


def _in_strips(loops: Any, strips: Strips, m: int, v: Array, source: Any = None, weights: Any = None) -> Array:
    """weights[e]·v[a, source[e]] summed at each target, a strip for each thread; complex numbers as two."""
    y = buffers.empty((v.shape[0], m, v.shape[2]), v.dtype)
    x, z = _real(v), _real(y)
    near = z.nbytes <= tuning.CORE_CACHE_BYTES * len(strips.starts)
    soon = None if near and v.shape[2] * v.itemsize < tuning.CACHE_LINE_BYTES // 2 else ()
    given = strips.starts, strips.near, strips.far, strips.lows, source, weights, x, z, (0,) * x.shape[2], soon
    threads.spread(lambda *strip: loops.scattered_strip(*given, *strip), [(s,) for s in range(len(strips.starts))])
    return y


def add_rows(index: Array, size: int, rows: Array) -> Array:
    """Rows added up at positions that are known only now: nothing is prepared."""
    loops = loops_for(rows, rows.size)
    if loops is None:
        y = buffers.zeros((size, rows.shape[1]), rows.dtype)
        np.add.at(y, index, rows)
        return y
    if index.size and not 0 <= int(index.min()) <= int(index.max()) < size:
        raise IndexError(f"a position is outside 0 to {size - 1}")
    return _scattered(loops, index, size, rows[None])[0]


def _scattered(loops: Any, index: Array, m: int, v: Array, source: Any = None, weights: Any = None) -> Array:
    """weights[e]·v[a, source[e]] added at index[e], in the order of the pairs; complex numbers as two."""
    y = buffers.zeros((v.shape[0], m, v.shape[2]), v.dtype)
    x, z = _real(v), _real(y)
    b = x.shape[2]
    if not x.size:
        return y
    work, step = loops.scattered, b
    if b > tuning.UNROLLED_ROW_NUMBERS:
        work, step = loops.scattered_wide, tuning.SCATTERED_STEP_NUMBERS
    given = index, source, weights, x, z, (0,) * step
    threads.spread(lambda *part: work(*given, *part), _cuts(v.shape[0], _threads_for(v.size)))
    return y


def group_sum(loops: Any, groups: Groups, v: Array, weights: Array | None = None, order: Array | None = None) -> Array:
    """The sum of v over each group; with `weights`, pair e counts so much, or weights[order[e]] with `order`."""
    a, _, b = v.shape
    y = buffers.empty((a, groups.targets, b), v.dtype)
    if not y.size:
        return y
    parts = _parts(a, groups.targets, a * groups.count * b, groups.offsets)
    x, z = _real(v), _real(y)
    of = groups.offsets, groups.index, groups.times if weights is None else weights, order
    if x.shape[2] <= tuning.CHAINED_ROW_NUMBERS and groups.count < tuning.CHAINED_PAIRS_PER_TARGET * groups.targets:
        work, given = loops.chained, (groups.owners, *of, x, z, _row(x.shape[2]))
    elif x.shape[2] == 1:
        work, given = loops.summed_numbers, (*of, x[..., 0], z[..., 0])
    else:
        work, given = loops.summed, (*of, x, z, _row(x.shape[2]))
    threads.spread(lambda *part: work(*given, *part), parts)
    return y


def weighed_sum(gather: Gather, scatter: Function, known: dict[Any, Any], weights: Array, v: Array) -> Array:
    """Σ weights[e]·v[gather(e)] over scatter(e) = y: what a gather, a product and a sum come to; no array has a row per
    pair.

    What is prepared for the two relations is kept in `known`.
    """
    a, n, b = v.shape
    loops = loops_for(v, a * scatter.count * b) if weights.dtype == v.dtype and v.dtype.kind == "f" else None
    thin = None if loops is None else _thin_sum(loops, gather, scatter, weights, v)
    if thin is not None:
        return thin
    way, count = ("", 0) if loops is None else _way(scatter, v, True)
    if way == "as they come":
        return _scattered(loops, scatter.short, scatter.target.size, v, gather.short, weights)
    if way == "strips":
        strips, sources = known.get("strips", (None, None))
        if strips is None or len(strips.starts) != count:
            strips = _strips(loops, scatter, count)
            sources = gather.short[strips.order]
            known["strips"] = strips, sources
        return _in_strips(loops, strips, scatter.target.size, v, sources, weights)
    if "groups" not in known:  # the pairs (gather(e), scatter(e)) by target, and their order where it is not their own
        order = scatter.groups.index
        index = short(gather.index if order is None else gather.index[order], gather.source.size)
        known["groups"] = Groups(gather.source.size, scatter.groups.offsets, index), order
    groups, order = known["groups"]
    if loops is not None:
        return group_sum(loops, groups, v, weights, order)
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    numbers = weights if order is None else weights[order]
    matrix: Any = sparse.csr_array((numbers, groups.index, groups.offsets), shape=(groups.targets, n))
    return np.moveaxis((matrix @ np.moveaxis(v, 1, 0).reshape(n, a * b)).reshape(groups.targets, a, b), 0, 1)


def _thin_sum(loops: Any, gather: Gather, scatter: Function, weights: Array, v: Array) -> Array | None:
    """The same where most numbers are zero, as after an extremum: only the others count. None where they are many."""
    a, n, b = v.shape
    several = max(threads.count() // tuning.THREADS_PER_THIN_SUM, 1)  # many threads do as well with whole rows
    if a > 1 or b < tuning.THIN_ROW_RATIO * several or scatter.count < 4 * n:
        return None
    most = n * b // tuning.THIN_ROW_RATIO + b
    offsets, index, values = np.zeros(n + 1, kind_for(most)), np.empty(most, kind_for(b)), np.empty(most, v.dtype)
    if not loops.thinned(np.ascontiguousarray(v[0]), offsets, index, values):
        return None
    y = buffers.zeros((1, scatter.target.size, b), v.dtype)
    given = scatter.short, gather.short, weights, offsets, index, values, y.reshape(-1), b
    return y if loops.scattered_thin(*given) else None


def _real(v: Array) -> Array:
    """Rows in memory, complex numbers as two."""
    return np.ascontiguousarray(v).view(np.dtype(v.dtype.char.lower()))


def _row(b: int) -> tuple[int, ...]:
    """As many elements as numbers are added at a time: a length that the compiler knows."""
    wide = tuning.WIDE_ROW_STEP_NUMBERS
    return (0,) * (wide if b >= wide else min(b, tuning.UNROLLED_ROW_NUMBERS))


def _parts(a: int, targets: int, numbers: int, offsets: Array | None = None) -> list[tuple[int, int, int, int]]:
    """The work in parts (first, last, low, high): along a long leading axis, or by targets with equally many pairs."""
    most = _threads_for(numbers)
    if a >= most:
        return [(first, last, 0, targets) for first, last in _cuts(a, most)]
    if offsets is None:
        return [(0, a, low, high) for low, high in _cuts(targets, most)]
    inner = np.searchsorted(offsets, [int(offsets[-1]) * k // most for k in range(1, most)]).tolist()
    return [(0, a, low, high) for low, high in itertools.pairwise([0, *inner, targets])]


def _threads_for(numbers: int, most: int | None = None) -> int:
    """How many threads, of `most`, are worth it for moving so many numbers."""
    return threads.worth(numbers // tuning.PAIR_NUMBERS_PER_THREAD, most)


def _cuts(n: int, parts: int) -> list[tuple[int, int]]:
    cuts = [n * k // parts for k in range(parts + 1)]
    return [(low, high) for low, high in itertools.pairwise(cuts) if low < high] or [(0, 0)]
