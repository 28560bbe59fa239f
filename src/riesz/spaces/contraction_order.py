"""In which order a product of labelled arrays is contracted: two at a time, with the least work.

Making one array of two costs an operation for each index of their labels together, two where a label is summed. A label
that one array alone has, and the result has not, is summed at once. Up to `EXACT` arrays the order is the best there
is, by dynamic programming over subsets; beyond that the better of a greedy order and of all ways to put parentheses
along the line in which the arrays hang together: for a chain that is the best order again.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from ..runtime import tuning

Labels = tuple[int, ...]
Sizes = dict[int, int]
Pairs = tuple[tuple[int, int], ...]
Problem = tuple[tuple[Labels, ...], Labels, tuple[int, ...], Labels, int]
"""The labels of the arrays, of the result, the sizes of all, which arrays are fixed, and how often the product runs."""


class Path(NamedTuple):
    """Which two arrays become one, in turn: those given are 0 … n−1, the k-th pair makes n + k; `flops`: the work."""

    pairs: Pairs
    flops: int


def path(labels: Sequence[Labels], out: Labels, sizes: Sizes, fixed: Iterable[int] = (), runs: int = 1) -> Path:
    """The order of least work for Σ over all labels but `out` of a product of arrays.

    Where a product runs many times and the arrays in `fixed` stay the same, products of them alone are made once: all
    other work counts `runs` times.

    >>> path([(0, 1), (1, 2), (2,)], (0,), {0: 10, 1: 10, 2: 10})
    Path(pairs=((1, 2), (0, 3)), flops=400)
    """
    names = {k: i for i, k in enumerate(dict.fromkeys([k for ls in labels for k in ls if sizes[k] != 1]))}
    renamed = tuple([tuple(dict.fromkeys([names[k] for k in ls if k in names])) for ls in labels])
    kept = tuple(sorted({names[k] for k in out if k in names}))
    problem = (renamed, kept, tuple([sizes[k] for k in names]), tuple(sorted(fixed)) if runs > 1 else (), runs)
    return _remembered(*problem) if len(labels) <= tuning.ORDERS_KEPT else _solved(*problem)


def results(labels: Sequence[Labels], out: Iterable[int], pairs: Pairs) -> list[Labels]:
    """The labels of all arrays along a path, those given and those made: shared ones first, where matrix products want
    them.

    An array that is multiplied number by number with one that is there has its axes in the order of that one.
    """
    kept, found = set(out), list(labels)
    partner = {a: b for i, j in pairs for a, b in ((i, j), (j, i))}
    holders = Counter([k for ls in labels for k in set(ls)])
    for i, j in pairs:
        left, right = dict.fromkeys(found[i]), dict.fromkeys(found[j])
        for k in (*left, *right):
            holders[k] -= 1
        live = [k for k in (*left, *right) if k in kept or holders[k]]
        made = tuple(dict.fromkeys([*[k for k in live if k in left and k in right], *live]))
        beside = partner.get(len(found), len(found))
        order = dict.fromkeys(found[beside]) if beside < len(found) else {}
        if made and all([k in order for k in made]):
            made = tuple([k for k in order if k in made])
        for k in made:
            holders[k] += 1
        found.append(made)
    return found


def _solved(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: Labels, runs: int) -> Path:
    """The path of a problem in canonical names: distinct labels, none of size 1."""
    holders = Counter([k for ls in labels for k in ls])
    kept = set(out)
    plain = tuple([tuple([k for k in ls if k in kept or holders[k] > 1]) for ls in labels])
    summed = [i for i, (ls, ps) in enumerate(zip(labels, plain, strict=True)) if len(ps) < len(ls)]
    alone = sum([(1 if i in fixed else runs) * _volume(labels[i], sizes) for i in summed])
    problem = plain, out, sizes, fixed, runs
    if len(plain) <= tuning.ORDER_EXACT_ARRAYS:
        found = _best(range(len(plain)), _subsets(len(plain)), problem)
    else:
        found = _judged(_greedy(plain, kept, sizes), problem)
        if len(plain) <= tuning.ORDER_CHAIN_ARRAYS:
            line = _best(_line(plain, out, sizes), _intervals(len(plain)), problem)
            found = min(found, line, key=lambda p: p.flops)
    return Path(found.pairs, alone + found.flops)


_remembered = lru_cache(maxsize=4096)(_solved)


def _volume(labels: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod([sizes[k] for k in labels])


def _bits(labels: Iterable[int]) -> int:
    return sum([1 << k for k in labels])


Splits = list[tuple[int, list[int]]]
"""Sets of at least two of n arrays, as bits, each after its parts; and the second parts they are split into."""


@cache
def _subsets(n: int) -> Splits:
    """All of them: the lowest array is in the first part."""
    found: Splits = []
    for s in range(1, 1 << n):
        part = rest = s & (s - 1)
        parts = list[int]()
        while part:
            parts.append(part)
            part = (part - 1) & rest
        found += [(s, parts)] if parts else []
    return found


@cache
def _intervals(n: int) -> Splits:
    """Those of neighbours."""
    spans = [(i, i + length) for length in range(2, n + 1) for i in range(n - length + 1)]
    return [((1 << j) - (1 << i), [(1 << j) - (1 << k) for k in range(i + 1, j)]) for i, j in spans]


# Note [Pairs]: A and B are made one with |A ∪ B| indices; labels that nobody else needs are summed there. Every label
# that A ∪ B loses is in both: one that is only in A, and nobody else's, was summed when A was made.
def _best(line: Sequence[int], splits: Splits, problem: Problem) -> Path:
    """The best order of arrays in a line: the best way to make a set of them one is the best of its splits into two."""
    labels, out, sizes, fixed, runs = problem
    n, every = len(line), (1 << len(line)) - 1
    masks, kept = [_bits(labels[i]) for i in line], _bits(out)
    moves = _bits([place for place, i in enumerate(line) if i not in fixed])

    @cache
    def union(s: int) -> int:
        return union(s & (s - 1)) | masks[(s & -s).bit_length() - 1] if s else 0

    @cache
    def volume(bits: int) -> int:
        return math.prod([size for k, size in enumerate(sizes) if bits >> k & 1])

    result = {1 << i: mask for i, mask in enumerate(masks)}
    best, split = dict.fromkeys(result, 0), dict[int, int]()
    for s, parts in splits:
        mine = result[s] = union(s) & (kept | union(every ^ s))
        weight = runs if s & moves else 1
        least, at = -1, 0
        for part in parts:
            cost = best[part] + best[s ^ part]
            if least < 0 or cost < least:
                both = result[part] | result[s ^ part]
                cost += weight * volume(both) * (1 if both == mine else 2)
                if least < 0 or cost < least:
                    least, at = cost, part
        best[s], split[s] = least, at

    pairs: list[tuple[int, int]] = []
    number = {1 << place: i for place, i in enumerate(line)}
    stack = [every]
    while stack:  # each set after its two parts
        s = stack.pop()
        if s not in number:
            parts = s ^ split[s], split[s]
            if parts[0] in number and parts[1] in number:
                number[s] = n + len(pairs)
                i, j = sorted([number[parts[0]], number[parts[1]]])
                pairs.append((i, j))
            else:
                stack += [s, parts[1], parts[0]]
    return Path(tuple(pairs), best.get(every, 0))


def _judged(pairs: Pairs, problem: Problem) -> Path:
    """An order, and its work."""
    labels, out, sizes, fixed, runs = problem
    held, stays, flops = results(labels, out, pairs), set(fixed), 0
    for node, (i, j) in enumerate(pairs, start=len(labels)):
        both = {*held[i], *held[j]}
        stays |= {node} if i in stays and j in stays else set()
        flops += (1 if node in stays else runs) * _volume(both, sizes) * (1 if len(both) == len(held[node]) else 2)
    return Path(pairs, flops)


def _line(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...]) -> list[int]:
    """The arrays one after the other along the labels they share, from those with few neighbours: a chain in its order.

    What hangs together comes in pieces, those with small results first.
    """
    holders: dict[int, list[int]] = {}
    for i, ls in enumerate(labels):
        for k in ls:
            holders.setdefault(k, []).append(i)
    degree = [len({j for k in ls for j in holders[k]}) for ls in labels]
    seen: set[int] = set()
    pieces: list[list[int]] = []
    for start in sorted(range(len(labels)), key=lambda i: (degree[i], i)):
        piece, stack = list[int](), [start]
        while stack:
            i = stack.pop()
            if i not in seen:
                seen.add(i)
                piece.append(i)
                stack += sorted({j for k in labels[i] for j in holders[k]}, key=lambda j: (-degree[j], -j))
        pieces.append(piece)
    pieces.sort(key=lambda piece: _volume({k for i in piece for k in labels[i] if k in out}, sizes))
    return [i for piece in pieces for i in piece]


def _greedy(labels: tuple[Labels, ...], kept: set[int], sizes: tuple[int, ...]) -> Pairs:
    """The pair that saves most numbers for its work, again and again, among those that share a label; the rest in the
    end, smallest first.

    In a chain the pair at dimension k between i and j is judged by 1/k − 1/i − 1/j, the criterion of Chin, and of Hu
    and Shing.
    """
    n = len(labels)
    live = {i: set(ls) for i, ls in enumerate(labels)}
    holders: dict[int, dict[int, None]] = {}
    for i, ls in enumerate(labels):
        for k in ls:
            holders.setdefault(k, {})[i] = None
    pairs: list[tuple[int, int]] = []
    heap: list[tuple[float, int, int]] = []

    def offer(i: int, j: int) -> None:
        both = live[i] | live[j]
        made = [k for k in both if k in kept or len(holders[k]) > (k in live[i]) + (k in live[j])]
        saved = _volume(live[i], sizes) + _volume(live[j], sizes) - _volume(made, sizes)
        heapq.heappush(heap, (-saved / max(_volume(both, sizes), 1), min(i, j), max(i, j)))

    def join(i: int, j: int) -> int:
        made = n + len(pairs)
        pairs.append((i, j))
        both = live.pop(i) | live.pop(j)
        for k in both:
            holders[k].pop(i, None)
            holders[k].pop(j, None)
        live[made] = {k for k in both if k in kept or holders[k]}
        for k in live[made]:
            holders[k][made] = None
        return made

    def neighbours() -> bool:
        """Each array with the next one of each label: enough for a label of many arrays to become one."""
        for k in sorted(holders):
            for i, j in itertools.pairwise(holders[k]):
                offer(i, j)
        return bool(heap)

    while neighbours():
        while heap:
            _, i, j = heapq.heappop(heap)
            if i in live and j in live:
                made = join(i, j)
                near = [o for k in sorted(live[made]) for o in itertools.islice(holders[k], tuning.ORDER_NEAR)]
                for other in dict.fromkeys(near):
                    if other != made:
                        offer(made, other)
    apart = [(_volume(live[i], sizes), i) for i in live]
    heapq.heapify(apart)
    while len(apart) > 1:
        made = join(*sorted([heapq.heappop(apart)[1], heapq.heappop(apart)[1]]))
        heapq.heappush(apart, (_volume(live[made], sizes), made))
    return tuple(pairs)
