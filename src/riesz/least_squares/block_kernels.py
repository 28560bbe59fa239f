"""Loops of the block Cholesky factorisation, compiled with Numba. See block_cholesky.py for what the arrays are.

A *panel* holds the columns of one supernode, one after the other, over its rows: its own columns first, then the rows
below. Rows below are listed as *runs* of neighbouring unknowns, each in one supernode.
"""

# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
from __future__ import annotations

import numpy as np

from ..relations.cpu.numba_loops import load, plus, store
from ..runtime.nogil import compiled

FOUR = (0.0, 0.0, 0.0, 0.0)

at = np.uintp  # indices of this type need no check for negative ones


@compiled
def elimination_tree(start, adjacent):
    """The parent of each node, and how many nodes its column of the factor reaches below it."""
    n = len(start) - 1
    parent, mark, count = np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64)
    for i in range(n):
        mark[i] = i
        for a in range(start[i], start[i + 1]):
            j = adjacent[a]
            if j >= i:
                continue
            while mark[j] != i:
                if parent[j] < 0:
                    parent[j] = i
                count[j] += 1
                mark[j] = i
                j = parent[j]
    return parent, count


@compiled
def reached_below(start, adjacent, parent, first):
    """The nodes that each column of the factor reaches below it, ascending; those of j begin at first[j]."""
    n = len(start) - 1
    place, mark, found = first[:-1].copy(), np.full(n, -1), np.empty(first[-1], np.int64)
    for i in range(n):
        mark[i] = i
        for a in range(start[i], start[i + 1]):
            j = adjacent[a]
            if j >= i:
                continue
            while mark[j] != i:
                found[place[j]] = i
                place[j] += 1
                mark[j] = i
                j = parent[j]
    return found


@compiled
def supernodes(parent, count, size):
    """Nodes that follow each other, with nearly the same rows below: where each supernode begins. A few zeros are
    stored where that makes panels wider."""
    n = len(parent)
    begins = np.ones(n, np.bool_)
    width, zeros = 0, 0
    for j in range(n):
        if j and parent[j - 1] == j:
            more = (count[j] + 1 - count[j - 1]) * width * size[j]
            full = (width + size[j]) * (width + size[j] * (count[j] + 1))
            if zeros + more <= (0.3 if width < 16 else 0.1) * full:
                begins[j] = False
                width += size[j]
                zeros += more
                continue
        width, zeros = size[j], 0
    return np.flatnonzero(begins)


@compiled
def targets(run_first, run_node, run_at, of_node, node_at, column, rows, panel, run_start, run_unknown, run_row):
    """For each pair of runs of a factor, the first of them not above the second in the order of elimination, where the
    block begins in the panels, and how far apart its columns are."""
    total = 0
    for f in range(len(run_first) - 1):
        k = run_first[f + 1] - run_first[f]
        total += k * (k + 1) // 2
    place, stride = np.empty(total, np.int64), np.empty(total, np.int64)
    q = 0
    for f in range(len(run_first) - 1):
        for a in range(run_first[f], run_first[f + 1]):
            for b in range(run_first[f], a + 1):
                s = of_node[run_node[b]]
                unknown = node_at[run_node[a]]
                if of_node[run_node[a]] == s:
                    row = unknown - column[s]
                else:
                    low, high = run_start[s], run_start[s + 1]
                    while high - low > 1:
                        middle = (low + high) // 2
                        if run_unknown[middle] <= unknown:
                            low = middle
                        else:
                            high = middle
                    row = run_row[low] + unknown - run_unknown[low]
                line = node_at[run_node[b]] + run_at[b] - column[s]
                place[q] = panel[s] + line * rows[s] + row + run_at[a]
                stride[q] = rows[s]
                q += 1
    return place, stride


@compiled
def assemble(panels, data, line_first, line, run_first, run_column, run_width, place, stride):
    """Add JᵀJ, factor by factor; line[k] is where a row of a factor begins in the data of J."""
    q = 0
    for f in range(len(run_first) - 1):
        for a in range(run_first[f], run_first[f + 1]):
            wide, other = at(run_width[a]), run_column[a]
            whole = wide & ~at(3)
            for b in range(run_first[f], a + 1):
                for c in range(run_width[b]):
                    to, own = at(place[q] + c * stride[q]), run_column[b] + c
                    for i in range(at(0), whole, at(4)):
                        total = load(panels, to + i, FOUR)
                        for k in range(line_first[f], line_first[f + 1]):
                            total = plus(total, data[at(line[k] + own)], load(data, at(line[k] + other) + i, FOUR))
                        store(panels, to + i, total)
                    for i in range(whole, wide):
                        value = panels[to + i]
                        for k in range(line_first[f], line_first[f + 1]):
                            value += data[at(line[k] + own)] * data[at(line[k] + other) + i]
                        panels[to + i] = value
                q += 1


@compiled
def _less(x, to, length, source, apart, first, count):
    """x[to:] −= Σ_k x[first + k·apart] · x[source + k·apart:], over the columns k of a panel; four numbers at a time,
    in registers: whether memory overlaps need not be asked."""
    to, length, s, f, apart, left = at(to), at(length), at(source), at(first), at(apart), at(count)
    whole = length & ~at(3)
    while left >= at(3):
        a, b, c = -x[f], -x[f + apart], -x[f + at(2) * apart]
        s1, s2 = s + apart, s + at(2) * apart
        for i in range(at(0), whole, at(4)):
            total = plus(load(x, to + i, FOUR), a, load(x, s + i, FOUR))
            total = plus(total, b, load(x, s1 + i, FOUR))
            store(x, to + i, plus(total, c, load(x, s2 + i, FOUR)))
        for i in range(whole, length):
            x[to + i] += a * x[s + i] + b * x[s1 + i] + c * x[s2 + i]
        s += at(3) * apart
        f += at(3) * apart
        left -= at(3)
    while left > at(0):
        a = -x[f]
        for i in range(at(0), whole, at(4)):
            store(x, to + i, plus(load(x, to + i, FOUR), a, load(x, s + i, FOUR)))
        for i in range(whole, length):
            x[to + i] += a * x[s + i]
        s += apart
        f += apart
        left -= at(1)


@compiled
def _less_block(x, to, stride, length, wide, source, apart, first, count):
    """x[to + c·stride:] −= Σ_k x[first + c + k·apart] · x[source + k·apart:] for `wide` columns c, three at a time:
    sums over k stay in registers."""
    to, stride, length, s, f, apart = at(to), at(stride), at(length), at(source), at(first), at(apart)
    whole, count, wide, c = length & ~at(3), at(count), at(wide), at(0)
    while wide - c >= at(3):
        for i in range(at(0), whole, at(4)):
            t1, t2 = to + stride, to + at(2) * stride
            a, b, d = load(x, to + i, FOUR), load(x, t1 + i, FOUR), load(x, t2 + i, FOUR)
            for k in range(count):
                g = f + k * apart
                v = load(x, s + k * apart + i, FOUR)
                a, b, d = plus(a, -x[g], v), plus(b, -x[g + at(1)], v), plus(d, -x[g + at(2)], v)
            store(x, to + i, a)
            store(x, t1 + i, b)
            store(x, t2 + i, d)
        for i in range(whole, length):
            a, b, d = x[to + i], x[to + stride + i], x[to + at(2) * stride + i]
            for k in range(count):
                g = f + k * apart
                v = x[s + k * apart + i]
                a, b, d = a - x[g] * v, b - x[g + at(1)] * v, d - x[g + at(2)] * v
            x[to + i], x[to + stride + i], x[to + at(2) * stride + i] = a, b, d
        to, f, c = to + at(3) * stride, f + at(3), c + at(3)
    while c < wide:
        _less(x, to, length, s, apart, f, count)
        to, f, c = to + stride, f + at(1), c + at(1)


@compiled
def factorise(x, panel, column, width, rows, run_start, run_unknown, run_size, run_row, of_run, least, last):
    """Cholesky, supernode by supernode: each gathers what those before it take away. The unknown at whose pivot less
    than `least` of its diagonal is left, or −1. From the supernode `last` on only updates are made."""
    n = len(panel)
    head, following, next_run = np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64)
    place = np.empty(column[n - 1] + width[n - 1], np.int64)
    for t in range(n):
        here, high, wide = panel[t], rows[t], width[t]
        for k in range(wide):
            place[column[t] + k] = k
        for r in range(run_start[t], run_start[t + 1]):
            for i in range(run_size[r]):
                place[run_unknown[r] + i] = run_row[r] + i
        diagonal = np.empty(wide)
        for k in range(wide):
            diagonal[k] = x[here + k * high + k]
        d = head[t]
        while d >= 0:
            after = following[d]
            end = next_run[d]
            while end < run_start[d + 1] and of_run[end] == t:
                end += 1
            for j in range(next_run[d], end):
                to = here + (run_unknown[j] - column[t]) * high
                first = panel[d] + run_row[j]
                for i in range(j, run_start[d + 1]):
                    source = panel[d] + run_row[i]
                    _less_block(
                        x, to + place[run_unknown[i]], high, run_size[i], run_size[j], source, rows[d], first, width[d]
                    )
            next_run[d] = end
            if end < run_start[d + 1]:
                u = of_run[end]
                following[d] = head[u]
                head[u] = d
            d = after
        if t >= last:
            continue
        for begin in range(0, wide, 6):
            end = min(begin + 6, wide)
            for k in range(begin, end):
                own = here + k * high
                pivot = x[own + k]
                if not pivot > least * diagonal[k]:
                    return column[t] + k
                root = np.sqrt(pivot)
                x[own + k] = root
                for i in range(at(own + k + 1), at(own + high)):
                    x[i] /= root
                for j in range(k + 1, end):
                    _less(x, here + j * high + j, high - j, own + j, high, own + j, 1)
            for j in range(end, wide):
                _less(
                    x,
                    here + j * high + j,
                    high - j,
                    here + begin * high + j,
                    high,
                    here + begin * high + j,
                    end - begin,
                )
        next_run[t] = run_start[t]
        if next_run[t] < run_start[t + 1]:
            u = of_run[next_run[t]]
            following[t] = head[u]
            head[u] = t
    return -1


@compiled
def substitute(b, x, panel, column, width, rows, run_start, run_unknown, run_size, run_row):
    """b ← L⁻ᵀ L⁻¹ b, in the order of elimination."""
    n = len(panel)
    for t in range(n):
        for k in range(width[t]):
            own, line = at(panel[t] + k * rows[t]), at(column[t])
            value = b[column[t] + k] / x[own + at(k)]
            b[column[t] + k] = value
            for i in range(at(k + 1), at(width[t])):
                b[line + i] -= value * x[own + i]
            for r in range(run_start[t], run_start[t + 1]):
                to, source = at(run_unknown[r]), own + at(run_row[r])
                for i in range(at(run_size[r])):
                    b[to + i] -= value * x[source + i]
    for t in range(n - 1, -1, -1):
        for k in range(width[t] - 1, -1, -1):
            own, line = at(panel[t] + k * rows[t]), at(column[t])
            value = b[column[t] + k]
            for i in range(at(k + 1), at(width[t])):
                value -= b[line + i] * x[own + i]
            for r in range(run_start[t], run_start[t + 1]):
                to, source = at(run_unknown[r]), own + at(run_row[r])
                for i in range(at(run_size[r])):
                    value -= b[to + i] * x[source + i]
            b[column[t] + k] = value / x[own + at(k)]


@compiled
def selected_inverse(z, x, panel, column, width, rows, run_start, run_unknown, run_size, run_row, of_run):
    """The entries of (L Lᵀ)⁻¹ where the panels are (Takahashi's recursion, from the last supernode on)."""
    n = len(panel)
    place = np.empty(column[n - 1] + width[n - 1], np.int64)
    for t in range(n - 1, -1, -1):
        here, high, wide = panel[t], rows[t], width[t]
        low = high - wide
        y = np.zeros((wide, high))  # [L⁻ᵀ of the top; rows below · L⁻¹ of the top], by columns
        for k in range(wide - 1, -1, -1):
            own = here + k * high
            y[k, wide:] = x[own + wide : own + high]
            for j in range(k + 1, wide):
                y[k, wide:] -= x[own + j] * y[j, wide:]
            y[k, wide:] /= x[own + k]
        inner = np.zeros((low, low))
        begin = run_start[t]
        while begin < run_start[t + 1]:
            u = of_run[begin]
            for r in range(run_start[u], run_start[u + 1]):
                for i in range(run_size[r]):
                    place[run_unknown[r] + i] = run_row[r] + i
            for k in range(width[u]):
                place[column[u] + k] = k
            end = begin
            while end < run_start[t + 1] and of_run[end] == u:
                end += 1
            for j in range(begin, end):
                for c in range(run_size[j]):
                    line = panel[u] + (run_unknown[j] + c - column[u]) * rows[u]
                    mine = run_row[j] + c - wide
                    for i in range(j, run_start[t + 1]):
                        for q in range(run_size[i]):
                            other = run_row[i] + q - wide
                            if other >= mine:
                                value = z[line + place[run_unknown[i]] + q]
                                inner[mine, other] = value
                                inner[other, mine] = value
            begin = end
        turned = np.zeros((wide, low))
        for k in range(wide):
            for j in range(low):
                turned[k] -= y[k, wide + j] * inner[j]
            z[here + k * high + wide : here + (k + 1) * high] = turned[k]
        for c in range(wide):  # (L Lᵀ)⁻¹ of the top, column by column
            e = np.zeros(wide)
            e[c] = 1.0
            for k in range(wide):
                e[k] /= x[here + k * high + k]
                for i in range(k + 1, wide):
                    e[i] -= e[k] * x[here + k * high + i]
            for k in range(wide - 1, -1, -1):
                for i in range(k + 1, wide):
                    e[k] -= e[i] * x[here + k * high + i]
                e[k] /= x[here + k * high + k]
            for k in range(wide):
                for j in range(low):
                    e[k] -= y[k, wide + j] * turned[c, j]
                z[here + c * high + k] = e[k]
