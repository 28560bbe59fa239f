"""Reductions compiled with Numba: loops that add the pairs of a target in their order, so any number of threads gives the same bits.

A row of values that will be needed soon is fetched ahead of time: random rows then arrive at the speed of memory rather than at its latency. They are
fetched into the second cache, which waits for more lines at a time than the first; rows that one thread adds to as pairs come, into the first.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_jitable, register_model

from .. import threads
from ..unlocked import compiled

AHEAD, FAR_AHEAD = 32, 96  # pairs
LINE = 64  # bytes
CHUNK = 16  # bits of a source in its chunk
at = np.uintp  # indices of this type need no check for negative ones
threads.linger()


def _fetching(cache: int) -> Any:
    """Ask for the cache line of one element of a flat array, without waiting."""

    def fetch(_: Any, array: Any, place: Any) -> Any:
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            base = context.make_array(signature.args[0])(context, builder, args[0]).data
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            place = builder.bitcast(builder.gep(base, [args[1]]), byte)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind), [place, word(0), word(4 - cache), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), write

    return intrinsic(fetch)


fetch, fetch_first = _fetching(2), _fetching(1)


@register_jitable
def fetch_row(flat: Any, start: Any, b: int, line: int) -> None:
    """Ask for the lines of b elements, of which `line` are in one."""
    k = 0
    while k < b - 1:
        fetch(flat, np.int64(start) + k)
        k += line
    fetch(flat, np.int64(start) + b - 1)


class Numbers(types.Type):
    """As many numbers as a row has, in registers: loops of a few steps over memory cost more than what they add."""

    def __init__(self, kind: Any, count: int) -> None:
        super().__init__(name=f"Numbers({kind}, {count})")
        self.kind = kind
        self.count = count


@register_model(Numbers)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, numbers: Any) -> None:
        super().__init__(manager, numbers, ir.VectorType(manager[numbers.kind].get_value_type(), numbers.count))


def _place(context: Any, builder: Any, array: Any, value: Any, at: Any, numbers: Any) -> tuple[Any, int]:
    """Where numbers are in a flat array, and how that is aligned."""
    base = context.make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(base, [at]), context.get_value_type(numbers).as_pointer()), context.get_abi_sizeof(base.type.pointee)


@intrinsic
def nothing(_: Any, array: Any, row: Any) -> Any:
    """Zeros, as many as `row` has elements."""
    numbers = Numbers(array.dtype, row.count)
    return numbers(array, row), lambda context, builder, signature, args: ir.Constant(context.get_value_type(numbers), None)


@intrinsic
def load(_: Any, array: Any, at: Any, row: Any) -> Any:
    """array[at], array[at + 1], …, as many as `row` has elements."""
    numbers = Numbers(array.dtype, row.count)

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, size = _place(context, builder, array, args[0], args[1], numbers)
        return builder.load(place, align=size)

    return numbers(array, types.uintp, row), write


@intrinsic
def store(_: Any, array: Any, at: Any, numbers: Any) -> Any:
    """array[at + k] = numbers[k]."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, size = _place(context, builder, array, args[0], args[1], numbers)
        builder.store(args[2], place, align=size)
        return context.get_dummy_value()

    return types.void(array, types.uintp, numbers), write


@intrinsic
def plus(_: Any, total: Any, c: Any, more: Any) -> Any:
    """total + c·more; c None: once."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, factor, second = args
        if not isinstance(c, types.NoneType):
            none, word = ir.Constant(second.type, ir.Undefined), ir.IntType(32)
            one = builder.insert_element(none, factor, word(0))
            second = builder.fmul(builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(word, more.count), [0] * more.count)), second)
        return builder.fadd(first, second)

    return total(total, c, more), write


@register_jitable
def add(z: Any, j: Any, c: Any, x: Any, i: Any, row: Any) -> None:
    """z[j + k] += c·x[i + k] for each element of `row`; c None: once."""
    store(z, j, plus(load(z, j, row), c, load(x, i, row)))


@compiled
def gathered(index: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """y[a, i] = v[a, index[i]], for a from first to last and i from low to high."""
    n, b = v.shape[1], v.shape[2]
    flat = v.reshape(-1)
    step = max(LINE // v.itemsize, 1)
    for a in range(first, last):
        for i in range(low, high):
            near = (a * n + np.int64(index[at(min(i + AHEAD, high - 1))])) * b
            for k in range(0, b, step):
                fetch(flat, near + k)
            j = at(index[at(i)])
            for k in range(b):
                y[at(a), at(i), at(k)] = v[at(a), j, at(k)]


@compiled
def gathered_short(index: Any, v: Any, y: Any, row: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for rows of up to a cache line, of as many numbers as `row` has, each as one vector."""
    n, b, m = v.shape[1], len(row), y.shape[1]
    flat, there = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for i in range(low, high):
            store(there, at(a * m + i) * at(b), load(flat, (at(a * n) + at(index[at(i)])) * at(b), row))


@compiled
def gathered_numbers(index: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for values that are numbers: y[a, i] = v[a, index[i]]."""
    for a in range(first, last):
        for i in range(low, high):
            y[at(a), at(i)] = v[at(a), at(index[at(i)])]


@compiled
def summed(offsets: Any, index: Any, times: Any, order: Any, v: Any, y: Any, row: Any, first: int, last: int, low: int, high: int) -> None:
    """y[a, i] = Σ times[order[e]]·v[a, index[e]] over offsets[i] ≤ e < offsets[i + 1]; without index or order, e itself; without times, each once.

    As many numbers at a time as `row` has, the last of them perhaps twice: added up in registers, for what is stored to y waits for y.
    """
    n, m, b, wide = v.shape[1], y.shape[1], v.shape[2], len(row)
    x, z = v.reshape(-1), y.reshape(-1)
    end, line = offsets[high] - 1, max(LINE // v.itemsize, 1)
    for a in range(first, last):
        for i in range(low, high):
            for part in range(0, b, wide):
                k = min(part, b - wide)
                total = nothing(x, row)
                for e in range(offsets[at(i)], offsets[at(i + 1)]):
                    if index is None:
                        source = at(a * n + e)
                    else:
                        source = at(a * n) + at(index[at(e)])
                        ahead = at(min(e + AHEAD, end))
                        near = (a * n + np.int64(index[ahead])) * b + k
                        for j in range(0, wide, line):
                            fetch(x, near + j)
                        fetch(x, near + wide - 1)
                        if order is not None:
                            fetch(times, np.int64(order[ahead]))
                    more = load(x, source * at(b) + at(k), row)
                    if times is None:
                        total = plus(total, None, more)
                    else:
                        total = plus(total, v.dtype.type(times[at(e if order is None else order[at(e)])]), more)
                store(z, at(a * m + i) * at(b) + at(k), total)


@compiled
def summed_numbers(offsets: Any, index: Any, times: Any, order: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for values that are numbers."""
    for a in range(first, last):
        for i in range(low, high):
            total = v.dtype.type(0)
            for e in range(offsets[at(i)], offsets[at(i + 1)]):
                x = v[at(a), at(e)] if index is None else v[at(a), at(index[at(e)])]
                total += x if times is None else v.dtype.type(times[at(e if order is None else order[at(e)])]) * x
            y[at(a), at(i)] = total


@compiled
def scattered(index: Any, source: Any, times: Any, v: Any, y: Any, row: Any, first: int, last: int) -> None:
    """y[a, index[e]] += times[e]·v[a, source[e]], for a from first to last, rows as long as `row`; without source, e itself; without times, once."""
    n, m, b, end = v.shape[1], y.shape[1], len(row), len(index) - 1
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for e in range(end + 1):
            ahead = at(min(e + AHEAD, end))
            here = (a * m + np.int64(index[ahead])) * b
            fetch_first(z, here)
            if b > 4:
                fetch_first(z, here + b - 1)
            if source is not None:
                there = (a * n + np.int64(source[ahead])) * b
                fetch(x, there)
                fetch(x, there + b - 1)
            i, j = at(a * n) + at(e if source is None else source[at(e)]), at(a * m) + at(index[at(e)])
            if times is None:
                add(z, j * at(b), None, x, i * at(b), row)
            else:
                add(z, j * at(b), times[at(e)], x, i * at(b), row)


@compiled
def dealt(index: Any, owners: Any, lows: Any, starts: Any, near: Any, far: Any) -> None:
    """Pairs by strips of targets and chunks of sources: starts[s, c] … starts[s, c + 1] are those of strip s in chunk c, in their order."""
    chunks = starts.shape[1] - 1
    for e in range(len(index)):
        starts[at(owners[at(index[at(e)])]), at(e >> CHUNK)] += 1
    found = 0
    for s in range(starts.shape[0]):
        for c in range(chunks + 1):
            starts[s, c], found = found, found + starts[s, c]
    places = starts.copy()
    for e in range(len(index)):
        j = at(index[at(e)])
        s, c = at(owners[j]), at(e >> CHUNK)
        place = at(places[s, c])
        places[s, c] += 1
        near[place], far[place] = e & ((1 << CHUNK) - 1), j - at(lows[s])


@compiled
def scattered_strip(starts: Any, near: Any, far: Any, lows: Any, source: Any, times: Any, v: Any, y: Any, row: Any, soon: Any, s: int) -> None:
    """y[a, j] = Σ times[e]·v[a, source[e]] for the targets j of one strip; `source` in the order of the strips. `soon`: fetch rows, or None."""
    n, m, b, line = v.shape[1], y.shape[1], len(row), max(LINE // v.itemsize, 1)
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(v.shape[0]):
        low = at(a * m + lows[s])
        for k in range((a * m + lows[s]) * b, (a * m + lows[s + 1]) * b):
            z[at(k)] = 0
        for c in range(starts.shape[1] - 1):
            base = at(c << CHUNK)
            for p in range(starts[s, c], starts[s, c + 1]):
                e = base + at(near[at(p)])
                i = at(a * n) + (e if source is None else at(source[at(p)]))
                if soon is not None:
                    ahead = at(p + FAR_AHEAD)
                    fetch_row(z, (low + at(far[ahead])) * at(b), b, line)
                    fetch_row(x, (at(a * n) + (base + at(near[ahead]) if source is None else at(source[ahead]))) * at(b), b, line)
                j = low + at(far[at(p)])
                if times is None:
                    add(z, j * at(b), None, x, i * at(b), row)
                else:
                    add(z, j * at(b), times[e], x, i * at(b), row)


@compiled
def scattered_wide(index: Any, source: Any, times: Any, v: Any, y: Any, row: Any, first: int, last: int) -> None:
    """The same for wide rows, in steps of `row`; without source, e itself; without times, once."""
    n, m, b, count, step = v.shape[1], y.shape[1], y.shape[2], len(index), len(row)
    x, z = v.reshape(-1), y.reshape(-1)
    whole, line = b - b % step, max(LINE // v.itemsize, 1)
    for a in range(first, last):
        for e in range(count):
            if e + AHEAD < count:
                near = (a * m + np.int64(index[at(e + AHEAD)])) * b
                for k in range(0, b, line):
                    fetch_first(z, near + k)
            i, j = (at(a * n) + at(e if source is None else source[at(e)])) * at(b), (at(a * m) + at(index[at(e)])) * at(b)
            for k in range(0, whole, step):
                if times is None:
                    add(z, j + at(k), None, x, i + at(k), row)
                else:
                    add(z, j + at(k), times[at(e)], x, i + at(k), row)
            for k in range(whole, b):
                z[j + at(k)] += x[i + at(k)] if times is None else times[at(e)] * x[i + at(k)]


@compiled
def thinned(v: Any, offsets: Any, index: Any, values: Any) -> bool:
    """The numbers of each row that are not zero, and where they are; false, and no use, where there are more than fit."""
    n, b = v.shape
    found, most = 0, len(index) - b
    for i in range(n):
        if found > most:
            return False
        for k in range(b):
            x = v[at(i), at(k)]
            index[at(found)], values[at(found)] = k, x
            found += x != 0
        offsets[at(i + 1)] = found
    return True


@compiled
def scattered_thin(target: Any, source: Any, times: Any, offsets: Any, index: Any, values: Any, y: Any, b: int) -> bool:
    """y[target[e]] += times[e] · row source[e], of thinned rows of b numbers; whether all times are finite: only then are zeros nothing."""
    bad = 0
    for e in range(len(target)):
        c, i, j = times[at(e)], at(source[at(e)]), at(target[at(e)]) * at(b)
        bad |= int(c - c != 0)
        p, last = at(offsets[i]), at(offsets[i + at(1)])
        while p < last:
            y[j + at(index[p])] += c * values[p]
            p += at(1)
    return bad == 0


@compiled
def repeated(offsets: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """y[a, e] = v[a, i] for offsets[i] ≤ e < offsets[i + 1]."""
    b = v.shape[2]
    for a in range(first, last):
        for i in range(low, high):
            for e in range(offsets[at(i)], offsets[at(i + 1)]):
                for k in range(b):
                    y[at(a), at(e), at(k)] = v[at(a), at(i), at(k)]


@compiled
def accumulated(v: Any, y: Any, backwards: bool, strict: bool, first: int, last: int) -> None:
    """y[a, i] = Σ v[a, j] over j ≤ i, j < i if strict; from the other end if backwards."""
    n, b = v.shape[1], v.shape[2]
    edge, step = (n - 1, -1) if backwards else (0, 1)
    skip = 1 if strict else 0
    for a in range(first, last):
        for k in range(b * min(skip, n)):
            y[at(a), at(edge), at(k)] = 0
        if skip < n:
            for k in range(b):
                y[at(a), at(edge + step * skip), at(k)] = v[at(a), at(edge), at(k)]
        if b == 1 and n:
            total = v[at(a), at(edge), at(0)]
            for t in range(skip + 1, n):
                total += v[at(a), at(edge + step * (t - skip)), at(0)]
                y[at(a), at(edge + step * t), at(0)] = total
            continue
        for t in range(skip + 1, n):
            i = edge + step * t
            for k in range(b):
                y[at(a), at(i), at(k)] = y[at(a), at(i - step), at(k)] + v[at(a), at(i - step * skip), at(k)]
