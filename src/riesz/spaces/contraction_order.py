"""In which order a product of labelled arrays is contracted: two at a time, with the least work.

Making one array of two costs an operation for each index of their labels together, two where a label is summed. A label
that one array alone has, and the result has not, is summed at once. Up to `EXACT` arrays the order is the best there
is, by dynamic programming over subsets; beyond that the best of a greedy order and, for chains, of all ways to put
parentheses, improved window by window until nothing changes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..runtime import tuning

Labels = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


class Path(NamedTuple):
    """Which two arrays are made one, step by step: those given are 0 … n−1, the k-th pair makes number n + k. `flops`
    is the work."""

    pairs: Pairs
    flops: int


def path(
    labels: Sequence[Labels], out: Labels, sizes: dict[int, int], fixed: Collection[int] = (), runs: int = 1
) -> Path:
    """The order of least work for Σ over all labels but `out` of a product of arrays.

    Where a product runs many times and the arrays in `fixed` stay the same, products of them alone are made once: all
    other work counts `runs` times.

    >>> path([(0, 1), (1, 2), (2,)], (0,), {0: 10, 1: 10, 2: 10})
    Path(pairs=((1, 2), (0, 3)), flops=400)
    """
    names: dict[int, int] = {}
    for ls in labels:
        for label in ls:
            if label not in names and sizes[label] != 1:
                names[label] = len(names)
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
    holders: dict[int, int] = {}
    for ls in labels:
        for k in set(ls):
            holders[k] = holders.get(k, 0) + 1
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


@lru_cache(maxsize=4096)
def _remembered(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: Labels, runs: int) -> Path:
    return _solved(labels, out, sizes, fixed, runs)


def _solved(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: Labels, runs: int) -> Path:
    """The path of a problem in canonical names: distinct labels, none of size 1."""
    stays = set(fixed)
    holders: dict[int, int] = {}
    for ls in labels:
        for k in ls:
            holders[k] = holders.get(k, 0) + 1
    kept = set(out)
    plain = tuple([tuple([k for k in ls if k in kept or holders[k] > 1]) for ls in labels])
    alone = 0
    for i, (ls, ps) in enumerate(zip(labels, plain, strict=True)):
        if len(ps) < len(ls):
            alone += (1 if i in stays else runs) * _volume(ls, sizes)
    if len(plain) <= tuning.ORDER_EXACT_ARRAYS:
        pairs, flops = _exact(plain, out, sizes, fixed, runs)
        return Path(pairs, alone + flops)
    starts = [_greedy(plain, kept, sizes)]
    if len(plain) <= tuning.ORDER_CHAIN_ARRAYS:
        starts.append(_parenthesised(plain, out, sizes, fixed, runs))
    found = min([_improved(plain, out, sizes, stays, runs, pairs) for pairs in starts], key=lambda p: p.flops)
    return Path(found.pairs, alone + found.flops)


def _volume(labels: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod([sizes[k] for k in labels])


class _Volumes(dict[int, int]):
    """The number of indices of a set of labels, given as bits."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = sizes

    def __missing__(self, bits: int) -> int:
        found = self[bits] = math.prod([n for k, n in enumerate(self.sizes) if bits >> k & 1])
        return found


def _bits(labels: Iterable[int]) -> int:
    return sum([1 << k for k in labels])


# Note [Pairs]: A and B are made one with |A ∪ B| indices; labels that nobody else needs are summed there. Every label
# that A ∪ B loses is in both: one that is only in A, and nobody else's, was summed when A was made.
@lru_cache(maxsize=4096)
def _exact(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: Labels, runs: int) -> Path:
    """The best of all orders: the best way to make a subset of the arrays one is the best of its splits into two."""
    n = len(labels)
    masks, kept, stays, volumes = [_bits(ls) for ls in labels], _bits(out), _bits(fixed), _Volumes(sizes)
    every = (1 << n) - 1
    union = [0] * (every + 1)
    for s in range(1, every + 1):
        low = s & -s
        union[s] = union[s ^ low] | masks[low.bit_length() - 1]
    result = [union[s] & (kept | union[every ^ s]) for s in range(every + 1)]
    best, split = [0] * (every + 1), [0] * (every + 1)
    for s in range(1, every + 1):
        rest = s & (s - 1)  # without the lowest: that one is in the first part
        if not rest:
            continue
        weight = 1 if not s & ~stays else runs
        least, at, part, mine = -1, 0, rest, result[s]
        while part:
            cost = best[part] + best[s ^ part]
            if least < 0 or cost < least:
                both = result[part] | result[s ^ part]
                cost += weight * (volumes[both] if both == mine else 2 * volumes[both])
                if least < 0 or cost < least:
                    least, at = cost, part
            part = (part - 1) & rest
        best[s], split[s] = least, at
    return Path(
        _numbered(every, n, lambda s: (s ^ split[s], split[s]) if s & (s - 1) else None, lambda s: s.bit_length() - 1),
        best[every],
    )


def _numbered(root: int, n: int, parts: Callable[[int], tuple[int, int] | None], leaf: Callable[[int], int]) -> Pairs:
    """A tree of pairs as a path; `parts` are the two nodes below a node, `leaf` is the number of an array."""
    number: dict[int, int] = {}
    pairs: list[tuple[int, int]] = []
    stack = [root]
    while stack:
        node = stack.pop()
        below = parts(node)
        if below is None:
            number[node] = leaf(node)
        elif below[0] in number and below[1] in number:
            i, j = number[below[0]], number[below[1]]
            number[node] = n + len(pairs)
            pairs.append((i, j) if i < j else (j, i))
        else:
            stack += [node, below[1], below[0]]
    return tuple(pairs)


def _parenthesised(labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: Labels, runs: int) -> Pairs:
    """The best of all parentheses of a product whose arrays stand in the order in which they hang together."""
    line = _line(labels, out, sizes)
    n = len(line)
    masks, kept, volumes = [_bits(labels[i]) for i in line], _bits(out), _Volumes(sizes)
    stays = [i in fixed for i in line]
    before, after = [kept] * (n + 1), [0] * (n + 1)
    for i in range(n):
        before[i + 1] = before[i] | masks[i]
    for i in range(n - 1, -1, -1):
        after[i] = after[i + 1] | masks[i]
    best, split, result, once = [[[0] * n for _ in range(n)] for _ in range(4)]
    for i in range(n):
        result[i][i], once[i][i] = masks[i], stays[i]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            mine = result[i][j] = (result[i][j - 1] | masks[j]) & (before[i] | after[j + 1])
            once[i][j] = once[i][j - 1] and stays[j]
            weight = 1 if once[i][j] else runs
            least, at = -1, i
            for k in range(i, j):
                both = result[i][k] | result[k + 1][j]
                cost = best[i][k] + best[k + 1][j] + weight * (volumes[both] if both == mine else 2 * volumes[both])
                if least < 0 or cost < least:
                    least, at = cost, k
            best[i][j], split[i][j] = least, at

    def parts(node: int) -> tuple[int, int] | None:
        i, j = divmod(node, n)
        return None if i == j else (i * n + split[i][j], (split[i][j] + 1) * n + j)

    return _numbered(n - 1, n, parts, lambda node: line[node // n])


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
                for other in {
                    o: None
                    for k in sorted(live[made])
                    for o in itertools.islice(holders[k], tuning.ORDER_NEAR)
                    if o != made
                }:
                    offer(made, other)
    apart = [(_volume(live[i], sizes), i) for i in live]
    heapq.heapify(apart)
    while len(apart) > 1:
        made = join(*sorted([heapq.heappop(apart)[1], heapq.heappop(apart)[1]]))
        heapq.heappush(apart, (_volume(live[made], sizes), made))
    return tuple(pairs)


def _improved(
    labels: tuple[Labels, ...], out: Labels, sizes: tuple[int, ...], fixed: set[int], runs: int, pairs: Pairs
) -> Path:
    """A path with each window of up to `WINDOW` parts in its best order, until no window changes."""
    n = len(labels)
    held = [tuple(sorted(ls)) for ls in results(labels, out, pairs)]
    below: dict[int, tuple[int, int]] = {n + k: pair for k, pair in enumerate(pairs)}
    root = n + len(pairs) - 1
    stays = set(fixed)
    work: dict[int, int] = {}

    def settle(node: int) -> None:
        i, j = below[node]
        both = {*held[i], *held[j]}
        if i in stays and j in stays:
            stays.add(node)
        else:
            stays.discard(node)
        work[node] = (1 if node in stays else runs) * _volume(both, sizes) * (1 if len(both) == len(held[node]) else 2)

    for node in below:
        settle(node)
    moved = set(below)
    for _ in range(tuning.ORDER_SWEEPS):
        before, moved = moved, set[int]()
        for node in _upwards(root, below):
            leaves, inner = _window(node, below, work)
            if len(leaves) < 3 or before.isdisjoint(inner):
                continue
            held_fixed = [i for i, leaf in enumerate(leaves) if leaf in stays]
            found = _window_path([held[leaf] for leaf in leaves], held[node], sizes, held_fixed, runs)
            if found.flops >= sum([work[i] for i in inner]):
                continue
            moved.update(inner)
            names = [*leaves, *reversed(inner)]  # the last pair makes the node itself
            made = results([held[leaf] for leaf in leaves], held[node], found.pairs)
            for k, (i, j) in enumerate(found.pairs):
                name = names[len(leaves) + k]
                below[name] = (names[i], names[j])
                held[name] = tuple(sorted(made[len(leaves) + k]))
                settle(name)
        if not moved:
            break
    return Path(_numbered(root, n, below.get, lambda node: node), sum(work.values()))


def _window_path(labels: list[Labels], out: Labels, sizes: tuple[int, ...], fixed: list[int], runs: int) -> Path:
    names: dict[int, int] = {}
    renamed = tuple([tuple([names.setdefault(k, len(names)) for k in ls]) for ls in labels])
    return _exact(
        renamed,
        tuple(sorted([names[k] for k in out])),
        tuple([sizes[k] for k in names]),
        tuple(fixed) if runs > 1 else (),
        runs,
    )


def _upwards(root: int, below: dict[int, tuple[int, int]]) -> list[int]:
    """The pairs, each after those below it."""
    found: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node in below:
            found.append(node)
            stack += below[node]
    return found[::-1]


def _window(node: int, below: dict[int, tuple[int, int]], work: dict[int, int]) -> tuple[list[int], list[int]]:
    """A few parts of a product and the pairs between them and it, the node first: the dearest pairs are opened."""
    leaves, inner = list(below[node]), [node]
    while len(leaves) < tuning.ORDER_WINDOW:
        open = [leaf for leaf in leaves if leaf in below]
        if not open:
            break
        dearest = max(open, key=work.__getitem__)
        at = leaves.index(dearest)
        leaves[at : at + 1] = below[dearest]
        inner.append(dearest)
    return leaves, inner
