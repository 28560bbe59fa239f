"""Reductions compiled with Numba: loops that add the pairs of a target in their order, so any number of threads gives
the same bits.

A row of values that will be needed soon is fetched ahead of time: random rows then arrive at the speed of memory rather
than at its latency. They are fetched into the second cache, which waits for more lines at a time than the first; rows
that one thread adds to as pairs come, into the first.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_jitable, register_model

from ...runtime.nogil import compiled

# Compiled into the loops, so they stay in this file: Numba compiles again when it changes (see runtime/tuning.py).
PAIRS_AHEAD = 32
"""pairs: how far ahead rows are fetched. Measured: docs/design.md, "Which way a function is summed"."""
STRIP_PAIRS_AHEAD = 96
"""pairs: the same in strips, which have as many more places at their end. Measured: there too."""
LINE_BYTES = 64
"""bytes: a cache line."""
CHUNK_BITS = 16
"""bits: the place of a source in its chunk, as two bytes hold it."""
at = np.uintp  # indices of this type need no check for negative ones


def _fetching(cache):
    """Ask for the cache line of one element of a flat array, without waiting."""

    def fetch(_, array, place):
        def write(context, builder, signature, args):
            base = context.make_array(signature.args[0])(context, builder, args[0]).data
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            place = builder.bitcast(builder.gep(base, [args[1]]), byte)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
            builder.call(prefetch, [place, word(0), word(4 - cache), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), write

    return intrinsic(fetch)


fetch, fetch_first = _fetching(2), _fetching(1)


@register_jitable
def fetch_row(flat, start, b, line):
    """Ask for the lines of b elements, of which `line` are in one."""
    k = 0
    while k < b - 1:
        fetch(flat, np.int64(start) + k)
        k += line
    fetch(flat, np.int64(start) + b - 1)


class RowVector(types.Type):
    """As many numbers as a row has, in registers: loops of a few steps over memory cost more than what they add."""

    def __init__(self, kind, count):
        super().__init__(name=f"Numbers({kind}, {count})")
        self.kind = kind
        self.count = count


@register_model(RowVector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, numbers):
        super().__init__(manager, numbers, ir.VectorType(manager[numbers.kind].get_value_type(), numbers.count))


def _place(context, builder, array, value, at, numbers):
    """Where numbers are in a flat array, and how that is aligned."""
    base = context.make_array(array)(context, builder, value).data
    place = builder.bitcast(builder.gep(base, [at]), context.get_value_type(numbers).as_pointer())
    return place, context.get_abi_sizeof(base.type.pointee)


def _all(builder, value, count):
    """A vector of one value."""
    none, word = ir.Constant(ir.VectorType(value.type, count), ir.Undefined), ir.IntType(32)
    first = builder.insert_element(none, value, word(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(word, count), [0] * count))


@intrinsic
def nothing(_, array, row):
    """Zeros, as many as `row` has elements."""
    numbers = RowVector(array.dtype, row.count)
    return numbers(array, row), lambda context, *_: ir.Constant(context.get_value_type(numbers), None)


@intrinsic
def load(_, array, at, row):
    """array[at], array[at + 1], …, as many as `row` has elements."""
    numbers = RowVector(array.dtype, row.count)

    def write(context, builder, signature, args):
        place, size = _place(context, builder, array, args[0], args[1], numbers)
        return builder.load(place, align=size)

    return numbers(array, types.uintp, row), write


@intrinsic
def store(_, array, at, numbers):
    """array[at + k] = numbers[k]."""

    def write(context, builder, signature, args):
        place, size = _place(context, builder, array, args[0], args[1], numbers)
        builder.store(args[2], place, align=size)
        return context.get_dummy_value()

    return types.void(array, types.uintp, numbers), write


@intrinsic
def plus(_, total, c, more):
    """total + c·more; c None: once."""

    def write(context, builder, signature, args):
        first, factor, second = args
        if not isinstance(c, types.NoneType):
            second = builder.fmul(_all(builder, factor, more.count), second)
        return builder.fadd(first, second)

    return total(total, c, more), write


@intrinsic
def kept(_, condition, numbers):
    """Numbers, or zeros if not: a mask, for of vectors LLVM chooses by a branch, which would be guessed wrong."""

    def write(context, builder, signature, args):
        if numbers.count == 1:
            return builder.select(args[0], args[1], ir.Constant(args[1].type, None))
        mask = _all(builder, builder.sext(args[0], ir.IntType(numbers.kind.bitwidth)), numbers.count)
        return builder.bitcast(builder.and_(builder.bitcast(args[1], mask.type), mask), args[1].type)

    return numbers(types.boolean, numbers), write


@register_jitable
def weighed(total, times, order, v, e, more):
    """A sum with what pair e adds, times[order[e]]·more; without order, e itself; without times, once."""
    if times is None:
        return plus(total, None, more)
    return plus(total, v.dtype.type(times[at(e if order is None else order[at(e)])]), more)


@register_jitable
def add(z, j, times, e, x, i, row):
    """z[j + k] += times[e]·x[i + k] for each element of `row`; times None: once."""
    store(z, j, weighed(load(z, j, row), times, None, x, e, load(x, i, row)))


@compiled
def gathered(index, v, y, first, last, low, high):
    """y[a, i] = v[a, index[i]], for a from first to last and i from low to high."""
    n, b = v.shape[1], v.shape[2]
    flat = v.reshape(-1)
    step = max(LINE_BYTES // v.itemsize, 1)
    for a in range(first, last):
        for i in range(low, high):
            near = (a * n + np.int64(index[at(min(i + PAIRS_AHEAD, high - 1))])) * b
            fetch_row(flat, near, b, step)
            j = at(index[at(i)])
            for k in range(b):
                y[at(a), at(i), at(k)] = v[at(a), j, at(k)]


@compiled
def gathered_short(index, v, y, row, soon, first, last, low, high):
    """The same for rows of `row` numbers, up to a cache line, each as one vector. `soon`: fetch rows, or None."""
    n, b, m = v.shape[1], len(row), y.shape[1]
    flat, there = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for i in range(low, high):
            if soon is not None:
                near = (a * n + np.int64(index[at(min(i + PAIRS_AHEAD, high - 1))])) * b
                fetch(flat, near)
                fetch(flat, near + b - 1)
            store(there, at(a * m + i) * at(b), load(flat, (at(a * n) + at(index[at(i)])) * at(b), row))


@compiled
def summed(offsets, index, times, order, v, y, row, first, last, low, high):
    """y[a, i] = Σ times[order[e]]·v[a, index[e]] over offsets[i] ≤ e < offsets[i + 1]; without index or order, e
    itself; without times, each once.

    As many numbers at a time as `row` has, the last of them perhaps twice: added up in registers, for what is stored to
    y waits for y.
    """
    n, m, b, wide = v.shape[1], y.shape[1], v.shape[2], len(row)
    x, z = v.reshape(-1), y.reshape(-1)
    end, line = offsets[high] - 1, max(LINE_BYTES // v.itemsize, 1)
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
                        ahead = at(min(e + PAIRS_AHEAD, end))
                        near = (a * n + np.int64(index[ahead])) * b + k
                        fetch_row(x, near, wide, line)
                        if order is not None:
                            fetch(times, np.int64(order[ahead]))
                    total = weighed(total, times, order, v, e, load(x, source * at(b) + at(k), row))
                store(z, at(a * m + i) * at(b) + at(k), total)


@compiled
def chained(targets, offsets, index, times, order, v, y, row, first, last, low, high):
    """The same for short groups and rows as long as `row`: where a group ends is not asked but compared."""
    n, m, b, end = v.shape[1], y.shape[1], len(row), offsets[high]
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for k in range((a * m + low) * b, (a * m + high) * b):
            z[at(k)] = 0
        total, before = nothing(x, row), np.int64(-1)
        for e in range(offsets[low], end):
            source = a * n + e
            if index is not None:
                source = a * n + np.int64(index[at(e)])
                ahead = at(min(e + PAIRS_AHEAD, end - 1))
                near = (a * n + np.int64(index[ahead])) * b
                fetch(x, near)
                fetch(x, near + b - 1)
                if order is not None:
                    fetch(times, np.int64(order[ahead]))
            j, more = np.int64(targets[at(e)]), load(x, at(source * b), row)
            total = weighed(kept(j == before, total), times, order, v, e, more)
            store(z, at((a * m + j) * b), total)
            before = j


@register_jitable
def number(index, times, order, v, a, e):
    """What pair e adds, where values are numbers."""
    x = v[at(a), at(e if index is None else index[at(e)])]
    return x if times is None else v.dtype.type(times[at(e if order is None else order[at(e)])]) * x


@register_jitable
def further(total, index, times, order, v, a, start, stop):
    """A sum with some more pairs."""
    for e in range(start, stop):
        total += number(index, times, order, v, a, e)
    return total


@compiled
def summed_numbers(offsets, index, times, order, v, y, first, last, low, high):
    """The same for long groups of numbers, four side by side: additions wait for those of their own group only."""
    for a in range(first, last):
        for i in range(low, high - 3, 4):
            e0, e1, e2 = offsets[at(i)], offsets[at(i + 1)], offsets[at(i + 2)]
            e3, e4 = offsets[at(i + 3)], offsets[at(i + 4)]
            n = min(min(e1 - e0, e2 - e1), min(e3 - e2, e4 - e3))
            s0 = s1 = s2 = s3 = v.dtype.type(0)
            for k in range(n):
                s0 += number(index, times, order, v, a, e0 + k)
                s1 += number(index, times, order, v, a, e1 + k)
                s2 += number(index, times, order, v, a, e2 + k)
                s3 += number(index, times, order, v, a, e3 + k)
            y[at(a), at(i)] = further(s0, index, times, order, v, a, e0 + n, e1)
            y[at(a), at(i + 1)] = further(s1, index, times, order, v, a, e1 + n, e2)
            y[at(a), at(i + 2)] = further(s2, index, times, order, v, a, e2 + n, e3)
            y[at(a), at(i + 3)] = further(s3, index, times, order, v, a, e3 + n, e4)
        for i in range(high - (high - low) % 4, high):
            y[at(a), at(i)] = further(v.dtype.type(0), index, times, order, v, a, offsets[at(i)], offsets[at(i + 1)])


@compiled
def scattered(index, source, times, v, y, row, first, last):
    """y[a, index[e]] += times[e]·v[a, source[e]], rows as long as `row`; without source, e; without times, once."""
    n, m, b, end = v.shape[1], y.shape[1], len(row), len(index) - 1
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for e in range(end + 1):
            ahead = at(min(e + PAIRS_AHEAD, end))
            here = (a * m + np.int64(index[ahead])) * b
            fetch_first(z, here)
            if b > 4:
                fetch_first(z, here + b - 1)
            if source is not None:
                there = (a * n + np.int64(source[ahead])) * b
                fetch(x, there)
                fetch(x, there + b - 1)
            i, j = at(a * n) + at(e if source is None else source[at(e)]), at(a * m) + at(index[at(e)])
            add(z, j * at(b), times, e, x, i * at(b), row)


@compiled
def dealt(index, owners, lows, starts, near, far):
    """Pairs by strips of targets and chunks of sources: starts[s, c] … starts[s, c + 1], in their order."""
    chunks = starts.shape[1] - 1
    for e in range(len(index)):
        starts[at(owners[at(index[at(e)])]), at(e >> CHUNK_BITS)] += 1
    found = 0
    for s in range(starts.shape[0]):
        for c in range(chunks + 1):
            starts[s, c], found = found, found + starts[s, c]
    places = starts.copy()
    for e in range(len(index)):
        j = at(index[at(e)])
        s, c = at(owners[j]), at(e >> CHUNK_BITS)
        place = at(places[s, c])
        places[s, c] += 1
        near[place], far[place] = e & ((1 << CHUNK_BITS) - 1), j - at(lows[s])


@compiled
def scattered_strip(starts, near, far, lows, source, times, v, y, row, soon, s):
    """y[a, j] = Σ times[e]·v[a, source[e]] for j in strip s; `source` in the order of strips. `soon`: fetch or not."""
    n, m, b, line = v.shape[1], y.shape[1], len(row), max(LINE_BYTES // v.itemsize, 1)
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(v.shape[0]):
        low = at(a * m + lows[s])
        for k in range((a * m + lows[s]) * b, (a * m + lows[s + 1]) * b):
            z[at(k)] = 0
        for c in range(starts.shape[1] - 1):
            base = at(c << CHUNK_BITS)
            for p in range(starts[s, c], starts[s, c + 1]):
                e = base + at(near[at(p)])
                i = at(a * n) + (e if source is None else at(source[at(p)]))
                if soon is not None:
                    ahead = at(p + STRIP_PAIRS_AHEAD)
                    there = base + at(near[ahead]) if source is None else at(source[ahead])
                    fetch_row(z, (low + at(far[ahead])) * at(b), b, line)
                    fetch_row(x, (at(a * n) + there) * at(b), b, line)
                j = low + at(far[at(p)])
                add(z, j * at(b), times, e, x, i * at(b), row)


@compiled
def scattered_wide(index, source, times, v, y, row, first, last):
    """As `scattered`, for wide rows, in steps of `row`."""
    n, m, b, count, step = v.shape[1], y.shape[1], y.shape[2], len(index), len(row)
    x, z = v.reshape(-1), y.reshape(-1)
    whole, line = b - b % step, max(LINE_BYTES // v.itemsize, 1)
    for a in range(first, last):
        for e in range(count):
            if e + PAIRS_AHEAD < count:
                near = (a * m + np.int64(index[at(e + PAIRS_AHEAD)])) * b
                for k in range(0, b, line):
                    fetch_first(z, near + k)
            i = (at(a * n) + at(e if source is None else source[at(e)])) * at(b)
            j = (at(a * m) + at(index[at(e)])) * at(b)
            for k in range(0, whole, step):
                add(z, j + at(k), times, e, x, i + at(k), row)
            for k in range(whole, b):
                z[j + at(k)] += x[i + at(k)] if times is None else times[at(e)] * x[i + at(k)]


@compiled
def thinned(v, offsets, index, values):
    """The numbers of each row that are not zero, and where; false, and no use, where more are than fit."""
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
def scattered_thin(target, source, times, offsets, index, values, y, b):
    """y[target[e]] += times[e] · thinned row source[e]; whether all times are finite: then zeros are nothing."""
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
def repeated(offsets, v, y, first, last, low, high):
    """y[a, e] = v[a, i] for offsets[i] ≤ e < offsets[i + 1]."""
    b = v.shape[2]
    for a in range(first, last):
        for i in range(low, high):
            for e in range(offsets[at(i)], offsets[at(i + 1)]):
                for k in range(b):
                    y[at(a), at(e), at(k)] = v[at(a), at(i), at(k)]


@compiled
def accumulated(v, y, backwards, strict, first, last):
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
