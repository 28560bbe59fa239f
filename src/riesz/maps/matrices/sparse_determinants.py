"""The determinant of a sparse matrix inside a traced function, by the numbers of its entries.

    d log|det A| = Σ (A⁻¹)[cᵢ, rᵢ] daᵢ        over entries aᵢ in row rᵢ and column cᵢ

Only those elements of the inverse are computed. Its derivatives are elements of A⁻¹W₁A⁻¹…WₘA⁻¹ for matrices W of the
same pattern: one step, linear in each W, whose transposes are the same step with its arguments in another order.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SolveError
from ...ops.op import Op
from ...ops.opaque import Ruled, Smooth
from ...relations.index_algebra import along, flat_positions
from ...runtime import tuning
from ...runtime.blas_threads import one_blas_thread
from ...tracing.differentials import plus
from ...tracing.surroundings.contents import equal
from ...tracing.traced import Traced, slot_of, trace_of
from ..leaves import Leaves
from ..normal_form.network import Network
from .matrix_programs import part_program
from .parts import Part

if TYPE_CHECKING:
    from ..linear_map import LinearMap


class EntryPattern:
    """Where the entries of a family of sparse matrices are, and the last factors by their numbers."""

    def __init__(self, rows: Any, columns: Any, n: int) -> None:
        self.rows, self.columns, self.n = rows, columns, n
        self._last: tuple[Any, Any] | None = None
        self._order: Any = None

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_last": None}

    def matrix(self, data: Any) -> Any:
        """The matrix with these numbers."""
        from ..solvers.sparse import sparse

        return sparse.csc_array((np.asarray(data, float), (self.rows, self.columns)), shape=(self.n, self.n))

    def factors(self, data: Any) -> Any:
        """Its solver."""
        from ..solvers.factorised import caring_for
        from ..solvers.sparse import Sparse

        if self._last is None or not equal(self._last[0], np.asarray(data)):
            with caring_for("factors"):
                self._last = np.array(data), Sparse(self.matrix(data))
        return self._last[1]

    def inverse(self, data: Any) -> Any:
        """The elements of the inverse at (column, row) of each entry."""
        order, ends = self._blocks()
        if max(np.diff(ends)) <= tuning.INVERSE_BLOCK_ROWS:
            with one_blas_thread():  # for many small blocks, threads of BLAS wait for each other
                return self._by_blocks(data, order, ends)
        return self.chained(data, ())

    def chained(self, data: Any, between: Any) -> Any:
        """The elements of A⁻¹W₁A⁻¹…A⁻¹ at (column, row) of each entry, some columns at a time."""
        solver, matrices, found = self.factors(data), [self.matrix(w) for w in between], np.empty(len(self.rows))
        order = np.argsort(self.rows, kind="stable")
        ordered = self.rows[order]
        for start in range(0, self.n, tuning.INVERSE_COLUMNS):
            stop = min(start + tuning.INVERSE_COLUMNS, self.n)
            x = np.zeros((self.n, stop - start))
            x[np.arange(start, stop), np.arange(stop - start)] = 1.0
            x = solver.solve(x)
            for W in reversed(matrices):
                x = solver.solve(W @ x)
            mine = order[np.searchsorted(ordered, start) : np.searchsorted(ordered, stop)]
            found[mine] = x[self.columns[mine], self.rows[mine] - start]
        return found

    def _blocks(self) -> tuple[Any, Any]:
        """An order of the unknowns in which the matrix is block tridiagonal, and where its blocks end: levels of a
        breadth-first search, small ones put together."""
        if self._order is None:
            from scipy.sparse.csgraph import reverse_cuthill_mckee  # pyright: ignore[reportMissingTypeStubs]

            from ..solvers.sparse import sparse

            pattern = sparse.csr_array((np.ones(len(self.rows)), (self.rows, self.columns)), shape=(self.n, self.n))
            order = np.asarray(reverse_cuthill_mckee(sparse.csr_matrix(pattern), symmetric_mode=False))
            place = np.empty(self.n, np.intp)
            place[order] = np.arange(self.n)
            low = np.minimum(place[self.rows], place[self.columns])
            reach = np.arange(self.n)
            np.maximum.at(reach, low, np.maximum(place[self.rows], place[self.columns]))
            reach = np.maximum.accumulate(reach)  # how far those up to here are coupled
            ends = [0, min(self.n, 32)]
            while ends[-1] < self.n:
                ends.append(min(self.n, max(int(reach[ends[-1] - 1]) + 1, ends[-1] + 32)))
            self._order = order, np.array(ends)
        return self._order

    def _by_blocks(self, data: Any, order: Any, ends: Any) -> Any:
        """Elimination from the first block to the last, and the blocks of the inverse back again."""
        a = self.matrix(data).tocsr()[order][:, order].tocsr()
        cut = [slice(s, e) for s, e in pairwise(ends.tolist())]
        last = len(cut) - 1
        pivots, left, right = [a[cut[0], cut[0]].toarray()], [], []
        for i in range(last):
            up, down = a[cut[i], cut[i + 1]].toarray(), a[cut[i + 1], cut[i]].toarray()
            right.append(np.linalg.solve(pivots[i], up))
            left.append(np.linalg.solve(pivots[i].T, down.T).T)
            pivots.append(a[cut[i + 1], cut[i + 1]].toarray() - down @ right[i])
        place = np.empty(self.n, np.intp)
        place[order] = np.arange(self.n)
        block = np.searchsorted(ends, place, "right") - 1
        at = [(place[x] - ends[block[x]], block[x]) for x in (self.columns, self.rows)]
        (down, i), (across, j) = at  # the inverse is read at (column, row)
        found = np.empty(len(self.rows))
        inverse: Any = None
        for b in range(last, -1, -1):
            own = np.linalg.inv(pivots[b])
            if b == last:
                now = own
            else:
                beside, under = -right[b] @ inverse, -inverse @ left[b]
                now = own - right[b] @ under
                for which, values in ((i == b) & (j == b + 1), beside), ((i == b + 1) & (j == b), under):
                    found[which] = values[down[which], across[which]]
            which = (i == b) & (j == b)
            found[which] = now[down[which], across[which]]
            inverse = now
        return found


def sparse_slogdet(L: LinearMap, kind: Leaves, net: Network) -> tuple[Any, Any]:
    """Sign and logarithm of the determinant of a sparse map at traced arrays."""
    rows, columns, parts = _entries(L, kind, net)
    pattern = net.known(("pattern of entries", L.shape), lambda: EntryPattern(rows, columns, L.shape[0]))
    data = np.concatenate(parts)
    home = trace_of(data)
    found = Traced(home, home.step(Ruled(LOGDET, (("pattern", pattern),)), (slot_of(home, data, data.dtype),)))
    return found[0], found[1]


def _entries(L: LinearMap, kind: Leaves, net: Network) -> tuple[Any, Any, list[Any]]:
    """Rows, columns and, traced, the numbers of all entries."""
    from .materialise import places

    tall, wide, c = places(L.codomain.leaves), places(L.domain.leaves), net.c
    sides: list[Any] = []
    parts: list[Any] = []
    for i, row in enumerate(tall):
        for j, column in enumerate(wide):
            for e in net.block(i, j):
                box = tuple([c.sizes[k] for k in e.outer])
                at = [
                    p.start + flat_positions(m, p.shape, e.outer, c.sizes) for m, p in ((e.out, row), (e.inn, column))
                ]
                sides.append([np.broadcast_to(s, box).reshape(-1) for s in at])
                part = Part(c, [(e, tuple([along(k) for k in e.outer]))], box)
                values = kind.computed(part_program(L.instance, net, part), L.instance.point, [], L.dtype)[0]
                parts.append(np.reshape(values, (-1,)))
    rows, columns = [np.concatenate([s[i] for s in sides]) for i in (0, 1)]
    return rows, columns, parts


# -- the steps ------------------------------------------------------------------------------------------------


class _Named(Smooth):
    """Pickled by its name in this file."""

    def __reduce__(self) -> Any:
        return "LOGDET" if self is LOGDET else "CHAINED"


def _logdet(data: Any, pattern: EntryPattern) -> Any:
    try:
        return np.array(pattern.factors(data).slogdet())
    except SolveError:
        return np.array([0.0, -np.inf])


def _change(d: Any, y: Any, data: Any, pattern: EntryPattern) -> Any:
    size = np.sum(_step(pattern, (), data) * d[0])
    return np.stack([0.0 * size, size])


def _step(pattern: EntryPattern, order: tuple[int, ...], *xs: Any) -> Any:
    home = trace_of(*xs)
    op = Ruled(CHAINED, (("pattern", pattern), ("order", order)))
    return Traced(home, home.step(op, [slot_of(home, x, x.dtype) for x in xs]))


def _chained(data: Any, *between: Any, pattern: EntryPattern, order: tuple[int, ...]) -> Any:
    """A⁻¹W₁A⁻¹… with the matrices in this order."""
    return pattern.chained(data, [between[i] for i in order]) if order else pattern.inverse(data)


def _chained_change(d: Any, y: Any, data: Any, *between: Any, pattern: EntryPattern, order: tuple[int, ...]) -> Any:
    """In each W the same; in A one more matrix, −dA, in each place."""
    found: list[Any] = []
    for k, dw in enumerate(d[1:]):
        if dw is not None:
            found.append(_step(pattern, order, data, *between[:k], dw, *between[k + 1 :]))
    if d[0] is not None:
        new = len(between)
        for k in range(new + 1):
            found.append(-_step(pattern, (*order[:k], new, *order[k:]), data, *between, d[0]))
    return plus(*found)


def _turned(k: int, pattern: EntryPattern, order: tuple[int, ...]) -> Op:
    """Σ uᵢ (A⁻¹W₁A⁻¹…)ᵢ = tr(U A⁻¹W₁A⁻¹…): its derivative in Wₖ begins after Wₖ and goes around, U in its place."""
    at = order.index(k - 1)
    return Ruled(CHAINED, (("pattern", pattern), ("order", (*order[at + 1 :], k - 1, *order[:at]))))


LOGDET = _Named("logdet_sparse", _logdet, lambda s, pattern: (2,), _change, None, batched=False)
CHAINED = _Named(
    "inverse_elements", _chained, lambda s, *more, pattern, order: s, _chained_change, _turned, batched=False
)
