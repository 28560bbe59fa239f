"""Maps between arrays as matrices of their entries by rows: A ⊗ B, M ⊗ vᵀ, diag(vec(M)) (A ⊗ B); K for a transpose."""

from __future__ import annotations

from .expression_trees import Tree, Trees
from .polynomials import Labels


class KroneckerLayout:
    """A network with labels 0, …, rows − 1 for rows and the others for columns, as a product of Kronecker products."""

    def __init__(self, trees: Trees, left: dict[Labels, Tree], shape: Labels, rows: int, sizes: dict[int, int]) -> None:
        self.trees, self.left, self.shape, self.sizes = trees, dict(left), shape, sizes
        self.rows, self.columns = range(rows), range(rows, len(shape))

    def result(self) -> Tree | None:
        """None where there is none."""
        before, after = list[Tree](), list[Tree]()
        if len(self.left) > 1:
            before, after = self._diagonals(self.rows), self._diagonals(self.columns)
        middle = self._centred() or self._ordered()
        if middle is None:
            return None
        parts = [t for t in (*before, *middle, *after) if t.kind != "identity"]
        size = self._size(self.rows)
        return self.trees.chain(parts, 2) if parts else self.trees.node("identity", value=size, rank=2, symmetric=True)

    def _size(self, labels: range) -> int:
        size = 1
        for k in labels:
            size *= self.shape[k]
        return size

    def _diagonals(self, axes: range) -> list[Tree]:
        """diag(vec(M)) for arrays that stand at all rows, or at all columns, beside others; identities rename."""
        names: dict[int, int] = {}
        for labels, t in self.left.items():
            if t.kind == "identity" or (t.kind == "call" and t.value == "diag" and t.rank == 2):
                one, other = labels if labels[0] in axes else labels[::-1]
                if one in axes and other not in axes:
                    names[other] = one
        found: list[Tree] = []
        for labels, t in list(self.left.items()):
            here = tuple([k if k in axes else names.get(k, -1) for k in labels])
            plain = t.kind != "identity" and not (t.kind == "call" and t.value == "diag")
            if len(axes) == 2 and sorted(here) == list(axes) and plain:
                others = [k for ls in self.left if ls != labels for k in ls]
                if any([k in others for k in labels]):
                    M = t if here == tuple(axes) else self.trees.turned(t)
                    found.append(self._diagonal(M))
                    del self.left[labels]
        return found

    def _diagonal(self, M: Tree) -> Tree:
        return self.trees.diagonal(self.trees.node("call", (self.trees.folded(M),), "vec", 1))

    def _centred(self) -> list[Tree] | None:
        """(A ⊗ B) diag(vec(M)) (C ⊗ D): each axis of M is joined to rows and to columns."""
        for labels, t in self.left.items():
            if len(labels) != 2 or t.kind == "identity" or labels[0] == labels[1]:
                continue
            rest = {ls: u for ls, u in self.left.items() if ls != labels}
            joined = [[ls for ls in rest if k in ls] for k in labels]
            if sum([len(ls) for ls in joined]) != len(rest) or not any([len(ls) > 1 for ls in rest]):
                continue
            ends = [self._ends(k, mine, rest) for k, mine in zip(labels, joined, strict=True)]
            if any([e is None for e in ends]):
                continue
            pairs = [e for e in ends if e is not None]
            if [p[0] for p in pairs] == [None, None] or [p[2] for p in pairs] == [None, None]:
                continue
            return self._around(t, pairs)
        return None

    def _ends(
        self, k: int, mine: list[Labels], rest: dict[Labels, Tree]
    ) -> tuple[int | None, Tree, int | None, Tree] | None:
        """What joins an axis to rows and to columns: the row label and a matrix, the column label and a matrix."""
        n = self.shape[k] if k < len(self.shape) else self.sizes[k]
        unit = self.trees.node("identity", value=n, rank=2, symmetric=True)
        up: tuple[int | None, Tree | None] = (k, unit) if k in self.rows else (None, None)
        down: tuple[int | None, Tree | None] = (k, unit) if k in self.columns else (None, None)
        vector: Tree | None = None
        for labels in mine:
            t = rest[labels]
            if len(labels) == 1:
                vector = t
            elif len(labels) == 2:
                other = labels[1] if labels[0] == k else labels[0]
                towards = t if labels[0] == k else self.trees.turned(t)  # rows are k
                if other in self.rows and up[1] is None:
                    up = other, self.trees.turned(towards)
                elif other in self.columns and down[1] is None:
                    down = other, towards
                else:
                    return None
            else:
                return None
        if up[1] is not None and down[1] is not None and vector is not None:
            return None
        column = vector if vector is not None else self.trees.ones(n)
        first = up[1] if up[1] is not None else self.trees.turned(column)
        last = down[1] if down[1] is not None else column
        return up[0], first, down[0], last

    def _around(self, M: Tree, ends: list[tuple[int | None, Tree, int | None, Tree]]) -> list[Tree] | None:
        (r0, a, c0, c), (r1, b, c1, d) = ends
        if (r0 is not None and r1 is not None and r0 > r1) or (None in (r0, r1) and None not in (c0, c1) and c0 > c1):  # type: ignore[operator]
            return self._around(self.trees.turned(M), ends[::-1])
        used = [k for k in (r0, r1, c0, c1) if k is not None]
        if len(used) != len(self.shape):
            return None
        middle = [self._kronecker([a, b]), self._diagonal(M), self._kronecker([c, d])]
        if c0 is not None and c1 is not None and c0 > c1:
            middle.append(self.trees.node("commutation", value=(self.shape[c1], self.shape[c0]), rank=2))
        return middle

    def _kronecker(self, parts: list[Tree]) -> Tree:
        """A ⊗ B, identities side by side as one."""
        shown: list[Tree] = []
        for t in [self.trees.folded(t) for t in parts]:
            if shown and t.kind == shown[-1].kind == "identity":
                size = shown.pop().value * t.value
                t = self.trees.node("identity", value=size, rank=2, symmetric=True)
            elif shown and t.rank == shown[-1].rank == 1 and t.row != shown[-1].row:  # u ⊗ vᵀ = u vᵀ
                other = shown.pop()
                t = self.trees.chain([other, t] if t.row else [t, other], 2)
            shown.append(t)
        if len(shown) == 1:
            return shown[0]
        return self.trees.node("kronecker", shown, rank=2, symmetric=all([t.symmetric for t in shown]))

    def _ordered(self) -> list[Tree] | None:
        """Arrays that have a row, a column or one of each, in the order of both; K where two cross."""
        trees = self.trees
        on = {k for labels in self.left for k in labels}
        if on - {*self.rows, *self.columns}:
            return None
        items = {**self.left, **{(k,): trees.ones(n) for k, n in enumerate(self.shape) if k not in on}}
        every = [k for labels in items for k in labels]
        if len(set(every)) < len(every):
            return None
        pieces: list[tuple[int | None, int | None, Tree]] = []
        for labels, t in items.items():
            up, down = [k for k in labels if k in self.rows], [k for k in labels if k in self.columns]
            if len(labels) == 2 and not (up and down):
                if [*labels] not in ([*self.rows], [*self.columns]):
                    return None
                column = trees.node("call", (trees.folded(t),), "vec", 1)
                pieces.append((up[0], None, column) if up else (None, down[0], trees.turned(column)))
            elif len(labels) < 3:
                turned = not up or (bool(down) and labels == (down[0], up[0]))
                t = trees.turned(t) if turned else t
                pieces.append((up[0] if up else None, down[0] if down else None, t))
            else:
                return None
        order = sorted([p for p in pieces if p[0] is not None], key=lambda p: p[0] or 0)
        for piece in sorted([p for p in pieces if p[0] is None], key=lambda p: p[1] or 0):
            later = [k for k, p in enumerate(order) if p[1] is not None and p[1] > (piece[1] or 0)]
            order.insert(later[0] if later else len(order), piece)
        columns = [p[1] for p in order if p[1] is not None]
        parts = [p[2] for p in order]
        if columns == sorted(columns):
            return [self._kronecker(parts)]
        if len(columns) == 2 and len(self.columns) == 2:
            turn = trees.node("commutation", value=(self.shape[self.columns[0]], self.shape[self.columns[1]]), rank=2)
            return [self._kronecker(parts), turn]
        return None
