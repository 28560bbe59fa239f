"""Reductions compiled with Numba: loops that add the pairs of a target in their order, so any number of threads gives the same bits.

A row of values that will be needed soon is fetched ahead of time: random rows then arrive at the speed of memory rather than at its latency.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false
from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

AHEAD = 24  # pairs
LINE = 64  # bytes
at = np.uintp  # indices of this type need no check for negative ones


def compiled(loop: Any) -> Any:
    """Compiled on first use for each kind of array, kept on disk where that is possible; runs without the interpreter's lock."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # nowhere to keep it
        return numba.njit(nogil=True)(loop)


def _fetch(_: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line of one element of a flat array, without waiting."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(base, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind), [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), write


fetch: Any = intrinsic(_fetch)


def _add(_: Any, y: Any, j: Any, c: Any, v: Any, i: Any, row: Any) -> Any:
    """y[j + k] += c·v[i + k] for k < len(row), of flat arrays, as one vector; c None: once. Loops of a few steps cost more than what they add."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here, there = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 3)]
        number = here.type.pointee
        kind, size = ir.VectorType(number, row.count), context.get_abi_sizeof(number)
        total = builder.bitcast(builder.gep(here, [args[1]]), kind.as_pointer())
        more = builder.load(builder.bitcast(builder.gep(there, [args[4]]), kind.as_pointer()), align=size)
        if not isinstance(c, types.NoneType):
            nothing, word = ir.Constant(kind, ir.Undefined), ir.IntType(32)
            first = builder.insert_element(nothing, args[2], word(0))
            more = builder.fmul(builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(word, row.count), [0] * row.count)), more)
        builder.store(builder.fadd(builder.load(total, align=size), more), total, align=size)
        return context.get_dummy_value()

    return types.void(y, types.uintp, c, v, types.uintp, row), write


add: Any = intrinsic(_add)


@compiled
def gathered(index: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """y[a, i] = v[a, index[i]], for a from first to last and i from low to high."""
    n, b = v.shape[1], v.shape[2]
    flat = v.reshape(-1)
    step = max(LINE // v.itemsize, 1)
    for a in range(first, last):
        for i in range(low, high):
            if i + AHEAD < high:
                near = (a * n + np.int64(index[at(i + AHEAD)])) * b
                for k in range(0, b, step):
                    fetch(flat, near + k)
            j = at(index[at(i)])
            for k in range(b):
                y[at(a), at(i), at(k)] = v[at(a), j, at(k)]


def _copy(_: Any, y: Any, j: Any, v: Any, i: Any, row: Any) -> Any:
    """y[j + k] = v[i + k] for k < len(row), of flat arrays, as one vector."""

    def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here, there = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2)]
        number = here.type.pointee
        kind, size = ir.VectorType(number, row.count).as_pointer(), context.get_abi_sizeof(number)
        moved = builder.load(builder.bitcast(builder.gep(there, [args[3]]), kind), align=size)
        builder.store(moved, builder.bitcast(builder.gep(here, [args[1]]), kind), align=size)
        return context.get_dummy_value()

    return types.void(y, types.int64, v, types.int64, row), write


copy: Any = intrinsic(_copy)


@compiled
def gathered_short(index: Any, v: Any, y: Any, row: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for rows of up to a cache line, of as many numbers as `row` has, each as one vector."""
    n, b, m = v.shape[1], len(row), y.shape[1]
    flat, there = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for i in range(low, high):
            copy(there, (a * m + i) * b, flat, (a * n + np.int64(index[at(i)])) * b, row)


@compiled
def gathered_numbers(index: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for values that are numbers: y[a, i] = v[a, index[i]]."""
    for a in range(first, last):
        for i in range(low, high):
            y[at(a), at(i)] = v[at(a), at(index[at(i)])]


@compiled
def summed(offsets: Any, index: Any, times: Any, order: Any, v: Any, y: Any, first: int, last: int, low: int, high: int) -> None:
    """y[a, i] = Σ times[order[e]]·v[a, index[e]] over offsets[i] ≤ e < offsets[i + 1]; without index or order, e itself; without times, each once."""
    n, b = v.shape[1], v.shape[2]
    end = offsets[high]
    flat = v.reshape(-1)
    step = max(LINE // v.itemsize, 1)
    for a in range(first, last):
        for i in range(low, high):
            for k in range(b):
                y[at(a), at(i), at(k)] = 0
            for e in range(offsets[at(i)], offsets[at(i + 1)]):
                if index is None:
                    j = at(e)
                else:
                    j = at(index[at(e)])
                    if e + AHEAD < end:
                        near = (a * n + np.int64(index[at(e + AHEAD)])) * b
                        for k in range(0, b, step):
                            fetch(flat, near + k)
                        if order is not None:
                            fetch(times, np.int64(order[at(e + AHEAD)]))
                if times is None:
                    for k in range(b):
                        y[at(a), at(i), at(k)] += v[at(a), j, at(k)]
                else:
                    c = v.dtype.type(times[at(e if order is None else order[at(e)])])
                    for k in range(b):
                        y[at(a), at(i), at(k)] += c * v[at(a), j, at(k)]


@compiled
def summed_short(offsets: Any, index: Any, times: Any, order: Any, v: Any, y: Any, row: Any, first: int, last: int, low: int, high: int) -> None:
    """The same for short rows; `row` has an element for each number of a row: a length the compiler knows."""
    n, m, b = v.shape[1], y.shape[1], len(row)
    x, z = v.reshape(-1), y.reshape(-1)
    end = offsets[high] - 1
    for a in range(first, last):
        for i in range(low, high):
            j = at(a * m + i) * at(b)
            for k in range(b):
                z[j + at(k)] = 0
            for e in range(offsets[at(i)], offsets[at(i + 1)]):
                ahead = at(min(e + AHEAD, end))  # without a branch the row stays in registers
                if index is None:
                    source = at(a * n + e) * at(b)
                else:
                    source = (at(a * n) + at(index[at(e)])) * at(b)
                    near = (a * n + np.int64(index[ahead])) * b
                    fetch(x, near)
                    fetch(x, near + b - 1)
                    if order is not None:
                        fetch(times, np.int64(order[ahead]))
                if times is None:
                    add(z, j, None, x, source, row)
                else:
                    add(z, j, v.dtype.type(times[at(e if order is None else order[at(e)])]), x, source, row)


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
def scattered(index: Any, v: Any, y: Any, row: Any, first: int, last: int) -> None:
    """y[a, index[e]] += v[a, e], for a from first to last; `row` has an element for each number of a row: a length the compiler knows."""
    m, b, count = y.shape[1], len(row), len(index)
    x, z = v.reshape(-1), y.reshape(-1)
    most = max(count - AHEAD, 0)
    for a in range(first, last):
        for e in range(most):
            near = (a * m + np.int64(index[at(e + AHEAD)])) * b
            fetch(z, near)
            if b > 4:
                fetch(z, near + b - 1)
            add(z, (at(a * m) + at(index[at(e)])) * at(b), None, x, at(a * count + e) * at(b), row)
        for e in range(most, count):
            add(z, (at(a * m) + at(index[at(e)])) * at(b), None, x, at(a * count + e) * at(b), row)


@compiled
def scattered_times(index: Any, source: Any, times: Any, v: Any, y: Any, row: Any, first: int, last: int) -> None:
    """y[a, index[e]] += times[e]·v[a, source[e]], for short rows."""
    n, m, b, end = v.shape[1], y.shape[1], len(row), len(index) - 1
    x, z = v.reshape(-1), y.reshape(-1)
    for a in range(first, last):
        for e in range(end + 1):
            ahead = at(min(e + AHEAD, end))
            here, there = (a * m + np.int64(index[ahead])) * b, (a * n + np.int64(source[ahead])) * b
            fetch(z, here)
            fetch(z, here + b - 1)
            fetch(x, there)
            fetch(x, there + b - 1)
            add(z, (at(a * m) + at(index[at(e)])) * at(b), times[at(e)], x, (at(a * n) + at(source[at(e)])) * at(b), row)


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
                    fetch(z, near + k)
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
