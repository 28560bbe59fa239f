"""Normal equations JᵀJ + D by blocks: unknowns that no factor ties together first (the points of a bundle
adjustment: what is left is their Schur complement), the rest in the order of minimum degree; the order, the rows of
the factor and the place of every block are found once for a pattern."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.linalg as _linalg  # pyright: ignore[reportMissingTypeStubs]
import scipy.sparse.linalg as _sparse_linalg  # pyright: ignore[reportMissingTypeStubs]

from ..errors import SolveError
from . import block_kernels as kernels
from .factor_blocks import FactorBlocks, sparse, within

linalg, sparse_linalg = cast(Any, _linalg), cast(Any, _sparse_linalg)

LAST_BY_LAPACK = 384
"""A last supernode at least so wide is factorised by LAPACK."""
LEAST_PIVOT = 1e-13
"""A pivot smaller than that part of its diagonal: the unknown is not determined."""


def minimum_degree(graph: Any) -> Any:
    """An order of elimination with few rows below: SuperLU's multiple minimum degree."""
    n = graph.shape[0]
    if n < 3:
        return np.arange(n)
    dominant = sparse.csc_array(graph, copy=True)
    dominant.data = np.full(dominant.nnz, -1.0)
    dominant.setdiag(np.bincount(dominant.indices, minlength=n) + 1.0)
    still: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    return np.argsort(sparse_linalg.splu(dominant, permc_spec="MMD_AT_PLUS_A", **still).perm_c)


def _order(blocks: FactorBlocks) -> tuple[Any, int]:
    """The nodes in the order of elimination; how many of them are eliminated first, one by one."""
    graph, K = blocks.graph, blocks.nodes
    first = np.zeros(K, bool)
    ends = np.cumsum([int(np.prod(s)) for s in blocks.shapes])
    leaf = np.searchsorted(ends, blocks.node_first[:-1], side="right")
    sizes = np.bincount(leaf, minlength=len(ends))
    for k in np.argsort(-sizes, kind="stable"):
        mine = leaf == k
        if 2 * sizes[k] < K or first.any():
            break
        if graph[mine][:, mine].nnz == sizes[k]:  # nothing but the diagonal
            first = mine
    rest, gone = np.flatnonzero(~first), np.flatnonzero(first)
    if len(gone):
        between = sparse.csr_array(graph[rest][:, gone])
        left = sparse.csr_array(graph[rest][:, rest] + between @ between.T)
    else:
        left = graph
    return np.concatenate([gone, rest[minimum_degree(left)]]), len(gone)


class BlockCholesky:
    """What is the same at every point: the order of elimination, the panels, where each block of JᵀJ belongs."""

    def __init__(self, blocks: FactorBlocks) -> None:
        self.blocks = blocks
        order, self.eliminated = _order(blocks)
        K, sizes = blocks.nodes, np.diff(blocks.node_first)
        place = np.empty(K, np.int64)
        place[order] = np.arange(K)
        graph = sparse.csr_array(blocks.graph[order][:, order])
        start, adjacent = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
        parent, count = kernels.elimination_tree(start, adjacent)
        below_first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        below = kernels.reached_below(start, adjacent, parent, below_first)
        size = sizes[order].astype(np.int64)
        at = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)  # the first unknown of each node
        begins = kernels.supernodes(parent, count, size)
        ends = np.append(begins[1:], K)
        last = ends - 1
        self.width = at[ends] - at[begins]
        self.column = at[begins]
        of_node = np.repeat(np.arange(len(begins)), ends - begins)
        lists = count[last]
        nodes = below[np.repeat(below_first[last], lists) + within(lists)]
        owner = np.repeat(np.arange(len(begins)), lists)
        # neighbouring nodes of one supernode are one run
        new = np.ones(len(nodes), bool)
        new[1:] = (
            (nodes[1:] != nodes[:-1] + 1) | (owner[1:] != owner[:-1]) | (of_node[nodes[1:]] != of_node[nodes[:-1]])
        )
        heads = np.flatnonzero(new)
        lengths = np.add.reduceat(size[nodes], heads) if len(heads) else np.zeros(0, np.int64)
        self.run_unknown, self.run_size = at[nodes[heads]], lengths.astype(np.int64)
        self.of_run = of_node[nodes[heads]]
        self.run_start = np.searchsorted(owner[heads], np.arange(len(begins) + 1)).astype(np.int64)
        total = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.rows = self.width + total[self.run_start[1:]] - total[self.run_start[:-1]]
        self.run_row = total[:-1] - total[self.run_start[:-1]][owner[heads]] + self.width[owner[heads]]
        ends_of = np.cumsum(self.width * self.rows)
        self.panel, self.size = ends_of - self.width * self.rows, int(ends_of[-1]) if len(ends_of) else 0
        self.flops = float((self.width * self.rows.astype(float) ** 2).sum())
        starts = np.repeat(blocks.node_first[:-1][order], size)
        self.unknowns = starts + within(size)  # in the order of elimination
        self.diagonal = np.repeat(self.panel, self.width) + within(self.width) * (np.repeat(self.rows, self.width) + 1)
        self._place, self._of_node, self._at = place, of_node, at
        self.last = len(begins) - (len(begins) > 0 and int(self.width[-1]) >= LAST_BY_LAPACK)
        self.panels = self.panel, self.column, self.width, self.rows
        self.runs = self.run_start, self.run_unknown, self.run_size, self.run_row

    @cached_property
    def _where(self) -> tuple[Any, ...]:
        """Runs of columns of each factor in the order of elimination, and where their blocks go."""
        blocks = self.blocks
        node = blocks.node_of.astype(np.int32)[blocks.factor_indices]  # long lists: half the memory
        lengths = np.diff(blocks.factor_indptr)
        factor = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        new = np.ones(len(node), bool)
        new[1:] = (
            (node[1:] != node[:-1])
            | (factor[1:] != factor[:-1])
            | (blocks.factor_indices[1:] != blocks.factor_indices[:-1] + 1)
        )
        heads = np.flatnonzero(new)
        inner = blocks.factor_indices[heads] - blocks.node_first[node[heads]]
        order = np.lexsort((inner, self._place[node[heads]], factor[heads]))
        widths = np.diff(np.append(heads, len(node)))[order]
        heads, inner = heads[order], inner[order].astype(np.int64)
        run_first = np.searchsorted(factor[heads], np.arange(len(lengths) + 1)).astype(np.int64)
        columns = heads - blocks.factor_indptr[factor[heads]]
        places = kernels.targets(
            run_first,
            self._place[node[heads]],
            inner,
            self._of_node,
            self._at,
            self.column,
            self.rows,
            self.panel,
            self.run_start,
            self.run_unknown,
            self.run_row,
        )
        line = blocks.indptr[blocks.rows].astype(np.int64)
        return blocks.row_first, line, run_first, columns.astype(np.int64), widths.astype(np.int64), *places

    def normal(self, data: Any) -> Any:
        """The panels of JᵀJ, from the numbers of J."""
        found = np.zeros(self.size)
        kernels.assemble(found, np.ascontiguousarray(data, float), *self._where)
        return found

    def factored(self, data: Any, added: Any = None) -> FactoredNormal:
        """The factor of JᵀJ + diag(added), from the numbers of J. JᵀJ is not kept: it is made as fast as copied."""
        panels = self.normal(data)
        if added is not None:
            panels[self.diagonal] += added[self.unknowns]
        return FactoredNormal(self, panels)

    @property
    def name(self) -> str:
        """How it is solved."""
        n, supers = len(self.unknowns), len(self.width)
        if self.eliminated:
            rest = n - self.unknowns_first
            how = f"Schur complement of {self.eliminated:,} blocks; the other {rest:,} unknowns"
        else:
            how = f"{n:,} unknowns"
        dense = "dense Cholesky" if self.eliminated and int(self.width[-1]) >= n - self.unknowns_first else ""
        return f"{how} {dense or f'block Cholesky, minimum degree, {supers:,} panels of {self.size:,} numbers'}"

    @property
    def unknowns_first(self) -> int:
        """How many unknowns are eliminated first."""
        return int(self._at[self.eliminated])


class FactoredNormal:
    """L Lᵀ = JᵀJ + D, in panels."""

    def __init__(self, plan: BlockCholesky, panels: Any) -> None:
        self.plan, self.panels = plan, panels
        at = kernels.factorise(panels, *plan.panels, *plan.runs, plan.of_run, LEAST_PIVOT, plan.last)
        if at < 0 and plan.last < len(plan.width):
            at = self._last()
        if at >= 0:
            raise SolveError(f"normal equations: singular, unknown {int(plan.unknowns[at])} is not determined")

    def _last(self) -> int:
        """Factorise the last supernode; the unknown where that fails, or −1."""
        plan, n = self.plan, int(self.plan.width[-1])
        block = self.panels[int(plan.panel[-1]) :].reshape(n, n)
        before = block.diagonal().copy()
        found, info = linalg.lapack.dpotrf(block.T, lower=1, clean=0, overwrite_a=1)
        if found.base is not block and not np.shares_memory(found, block):
            block[...] = found.T
        if info > 0:
            return int(plan.column[-1]) + info - 1
        small = np.flatnonzero(~(block.diagonal() ** 2 > LEAST_PIVOT * before))
        return int(plan.column[-1] + small[0]) if len(small) else -1

    def solve(self, b: Any) -> Any:
        """x with (JᵀJ + D) x = b."""
        plan = self.plan
        moved = np.ascontiguousarray(b, float)[plan.unknowns]
        kernels.substitute(moved, self.panels, *plan.panels, *plan.runs)
        found = np.empty(len(moved))
        found[plan.unknowns] = moved
        return found

    @cached_property
    def inverse(self) -> Any:
        """The panels of (JᵀJ + D)⁻¹."""
        found = np.zeros(self.plan.size)
        kernels.selected_inverse(found, self.panels, *self.plan.panels, *self.plan.runs, self.plan.of_run)
        return found

    def blocks(self, rows: Any) -> Any:
        """(N, k, k) diagonal blocks of the inverse for unknowns (N, k) that a node holds together."""
        plan = self.plan
        place = np.empty(len(plan.unknowns), np.int64)
        place[plan.unknowns] = np.arange(len(place))
        at = place[rows]
        a, b = np.maximum(at[:, :, None], at[:, None, :]), np.minimum(at[:, :, None], at[:, None, :])
        s = np.searchsorted(plan.column, b, side="right") - 1
        return self.inverse[plan.panel[s] + (b - plan.column[s]) * plan.rows[s] + a - plan.column[s]]
