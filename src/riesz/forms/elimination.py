"""One product laid out: the factors of a network are drawn together, until an expression in the free labels is left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from .exact_numbers import ONE
from .expression_trees import Tree, Trees
from .kronecker_layout import KroneckerLayout
from .polynomials import Labels, Power, Unreadable

Item = tuple[Tree, Labels]
MOST = 10
"""How many indices a product may have that is written with indices."""


class Elimination:
    """The factors of one product, drawn together until free labels are left."""

    def __init__(self, trees: Trees, sizes: dict[int, int], rank: int, rows: int, indices: bool) -> None:
        self.trees, self.sizes, self.rank, self.rows = trees, sizes, rank, rows
        self.indices = indices  # whether sums over indices may be written
        self.above: list[Tree] = []  # numbers
        self.below: list[Tree] = []
        self._groups: dict[Labels, tuple[list[Tree], list[Tree]]] = {}
        self._squares: dict[Labels, Tree] = {}
        self.items: list[Item] = []

    def add(self, f: Power, t: Tree) -> None:
        """One factor."""
        labels = f.labels
        if not labels:
            (self.above if f.power > 0 else self.below).append(self.trees.powered(t, abs(f.power)))
            return
        if len(labels) == 2 and labels[0] > labels[1]:
            labels, t = labels[::-1], self.trees.turned(t)
        if len(labels) == 2 and labels[0] == labels[1] and f.power != 1:  # of the diagonal alone
            labels, t = labels[:1], self.trees.node("call", (t,), "diag", 1)
        group = self._groups.setdefault(labels, ([], []))
        group[0 if f.power > 0 else 1].append(self.trees.powered(t, abs(f.power)))
        if f.power == 2:
            self._squares[labels] = t

    def result(self, shape: Labels) -> Tree | None:
        """What is left in the free labels; None for a number."""
        trees = self.trees
        for labels, (above, below) in self._groups.items():
            summed = all([k in self.sizes and self.degree(k, self._groups) == 1 for k in labels])
            if summed and len(set(labels)) == len(labels) and not below:
                if len(above) == 1 and labels in self._squares:  # Σ x²
                    t = self._squares[labels]
                    t = min(t, trees.turned(t), key=lambda x: x.weight) if t.rank == 2 else t
                    self.above.append(trees.squared_norm(t, math.prod([self.sizes[k] for k in labels])))
                    continue
                if len(labels) == 1 and len(above) == 2:
                    self.above.append(trees.dot(above[0], above[1], self.sizes[labels[0]]))
                    continue
            self.items.append((trees.hadamard([*above, *[self._over(b) for b in below]], len(labels)), labels))
        while any(rule(self) for rule in RULES):  # the first that applies
            pass
        return self._final(shape)

    def _over(self, below: Tree) -> Tree:
        one = self.trees.number(ONE)
        return self.trees.node("quotient", (one, below), rank=below.rank, symmetric=below.symmetric)

    @staticmethod
    def degree(k: int, items: Iterable[Labels]) -> int:
        """How many arrays have a label."""
        return sum([k in labels for labels in items])

    def on(self, k: int) -> list[Item]:
        """The arrays that have a label."""
        return [item for item in self.items if k in item[1]]

    def replace(self, old: Sequence[Item], *new: Item) -> bool:
        """Some arrays replaced by what they make."""
        self.items = [item for item in self.items if not any([item is o for o in old])] + list(new)
        return True

    def towards(self, item: Item, k: int) -> tuple[Tree, int]:
        """A matrix with label k as its columns, and its other label."""
        t, (a, b) = item
        return (t, a) if b == k else (self.trees.turned(t), b)

    def _final(self, shape: Labels) -> Tree | None:
        trees = self.trees
        left = {labels: t for t, labels in self.items}
        keys = sorted(left)
        if len(left) < len(self.items):
            return self._entries(shape)
        ones = [trees.ones(n) for n in shape]
        match self.rank, keys:
            case 0, []:
                return None
            case 1, [(0,)]:
                return left[0,]
            case 2, [(0, 1)]:
                return left[0, 1]
            case 1, []:
                return ones[0]
            case 2, []:
                return trees.chain([ones[0], trees.turned(ones[1])], 2)
            case 2, [(0,), (1,)]:
                return trees.chain([left[0,], trees.turned(left[1,])], 2)
            case 2, [(1,)]:
                return trees.chain([ones[0], trees.turned(left[1,])], 2)
            case 2, [(0,)]:
                return trees.chain([left[0,], trees.turned(ones[1])], 2)
            case _, [labels] if labels == tuple(range(self.rank)) and self.rows in (0, self.rank):
                return left[labels]
            case _ if self.rank > 2 and 0 < self.rows < self.rank:
                return KroneckerLayout(trees, left, shape, self.rows, self.sizes).result() or self._entries(shape)
            case _:
                return self._entries(shape)

    def _entries(self, shape: Labels) -> Tree:
        """Σ A[i, k] T[k, j, l] with its indices, where matrices have no product for it."""
        on = {k for _, labels in self.items for k in labels}
        items = [*self.items, *[(self.trees.ones(n), (k,)) for k, n in enumerate(shape) if k not in on]]
        labels = tuple([labels for _, labels in items])
        if not self.indices:
            raise Unreadable(f"labels {sorted(labels)} of {len(shape)} axes")
        if len({k for ls in labels for k in ls}) > MOST:
            raise Unreadable("a product of more than ten indices")
        value = labels, tuple(range(len(shape))), self.rows if len(shape) > 2 else 0, tuple(shape)
        return self.trees.node("entries", [t for t, _ in items], value, min(len(shape), 3 if not value[2] else 2))


# -- rules of elimination, in this order ------------------------------------------------------------------------------


def diagonals(e: Elimination) -> bool:
    """M[i, i]: tr M where i is summed, else diag M."""
    for item in e.items:
        t, labels = item
        if len(labels) == 2 and labels[0] == labels[1]:
            k, folded = labels[0], e.trees.folded(t)
            e.replace([item])
            if k in e.sizes and not e.on(k):
                e.above.append(e.trees.node("call", (folded,), "tr"))
            else:
                e.items.append((e.trees.node("call", (folded,), "diag", 1), (k,)))
            return True
    return False


def equal_vectors(e: Elimination) -> bool:
    """u[i] v[i] = (u ∘ v)[i]."""
    for a, b in combinations(e.items, 2):
        if a[1] == b[1] and len(a[1]) == 1:
            k = a[1][0]
            if k not in e.sizes or len(e.on(k)) > 2:
                return e.replace([a, b], (e.trees.hadamard([a[0], b[0]], 1), (k,)))
    return False


def dots(e: Elimination) -> bool:
    """Σ u[i] v[i] = uᵀv."""
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 2 and all([len(labels) == 1 for _, labels in on]):
            e.above.append(e.trees.dot(on[0][0], on[1][0], e.sizes[k]))
            return e.replace(on)
    return False


def matrix_vector(e: Elimination) -> bool:
    """Σ M[i, k] v[k] = M v."""
    for k in sorted(e.sizes):
        on = sorted(e.on(k), key=lambda item: len(item[1]))
        if [len(labels) for _, labels in on] == [1, 2] and on[1][1][0] != on[1][1][1]:
            M, i = e.towards(on[1], k)
            return e.replace(on, (e.trees.chain([M, on[0][0]], 1), (i,)))
    return False


def equal_matrices(e: Elimination) -> bool:
    """A[i, j] B[i, j]: tr(AᵀB) where both are summed, diag(A Bᵀ) where one is, else A ∘ B."""
    trees = e.trees
    for a, b in combinations(e.items, 2):
        if len(a[1]) == 2 and set(a[1]) == set(b[1]):
            A, B = a[0], b[0] if a[1] == b[1] else trees.turned(b[0])
            summed = [k for k in a[1] if k in e.sizes and len(e.on(k)) == 2]
            if len(summed) == 2:
                e.above.append(_inner_product(trees, A, B, e.sizes[a[1][0]] * e.sizes[a[1][1]]))
                return e.replace([a, b])
            if len(summed) == 1 and "chain" in (A.kind, B.kind):
                k = summed[0]
                left, i = e.towards((A, a[1]), k)
                right, _ = e.towards((B, a[1]), k)
                return e.replace([a, b], (trees.chain([left, trees.turned(right)], 2), (i, i)))
            return e.replace([a, b], (trees.hadamard([A, B], 2), a[1]))
    return False


def _inner_product(trees: Trees, A: Tree, B: Tree, n: int) -> Tree:
    if A is B:
        return trees.squared_norm(A, n)
    turns = [(trees.turned(A), B), (A, trees.turned(B)), (B, trees.turned(A)), (trees.turned(B), A)]
    return trees.node("call", (min([trees.chain(t, 2) for t in turns], key=lambda t: t.weight),), "tr")


def lone_sums(e: Elimination) -> bool:
    """Σ over a label that nothing else has: Σ v, M 𝟏, Mᵀ𝟏."""
    trees = e.trees
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 1 and len(on[0][1]) <= 2:
            t, labels = on[0]
            if len(labels) == 1:
                e.above.append(trees.node("call", (t,), ("Σ", e.sizes[k])))
                return e.replace(on)
            M, i = e.towards(on[0], k)
            if i in e.sizes and len(e.on(i)) == 1:
                t = t.kids[0] if t.kind == "transpose" else t
                e.above.append(trees.node("call", (t,), ("Σ", e.sizes[k] * e.sizes[i])))
                return e.replace(on)
            return e.replace(on, (trees.chain([M, trees.ones(e.sizes[k])], 1), (i,)))
    return False


def matrix_matrix(e: Elimination) -> bool:
    """Σ A[i, k] B[k, j] = A B."""
    trees = e.trees
    for k in sorted(e.sizes):
        on = e.on(k)
        if len(on) == 2 and all([len(labels) == 2 for _, labels in on]):
            A, i = e.towards(on[0], k)
            B, j = e.towards(on[1], k)
            if i > j:
                A, i, B, j = B, j, A, i
            return e.replace(on, (trees.chain([A, trees.turned(B)], 2), (i, j)))
    return False


def scaled_rows(e: Elimination) -> bool:
    """u[i] M[i, j] = diag(u) M; with v[j] too, M ∘ (u vᵀ) where both labels stay."""
    trees = e.trees
    for item in e.items:
        t, labels = item
        if len(labels) != 2 or (e.rank > 2 and t.kind != "identity"):
            continue
        beside = {k: v for k in labels for v in e.items if v[1] == (k,)}
        if len(beside) == 2 and all([k < e.rank for k in labels]) and t.kind != "chain":
            u, v = [beside[k] for k in labels]
            outer = trees.chain([u[0], trees.turned(v[0])], 2)
            return e.replace([item, u, v], (trees.hadamard([t, outer], 2), labels))
        for k, v in beside.items():
            D = trees.diagonal(v[0])
            M = trees.chain([D, t] if k == labels[0] else [t, D], 2)
            return e.replace([item, v], (M, labels))
    return False


RULES = [diagonals, equal_vectors, dots, matrix_vector, equal_matrices, lone_sums, matrix_matrix, scaled_rows]
