"""A sparse Jacobian as small dense blocks: rows that read the same unknowns are a *factor*, unknowns that are read
together a *node*. Both are read off the pattern, which riesz derives once for all points."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as _sparse  # pyright: ignore[reportMissingTypeStubs]
import scipy.sparse.csgraph as _csgraph  # pyright: ignore[reportMissingTypeStubs]

sparse, csgraph = cast(Any, _sparse), cast(Any, _csgraph)

LONGEST_NODE = 16
"""The unknowns along the last axis of an array are one node if they are at most so many."""


def _starts(lengths: Any) -> Any:
    """Where runs of some lengths begin, and where the last one ends."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def within(lengths: Any) -> Any:
    """0, 1, … for each of some runs, one after another."""
    return np.arange(int(np.sum(lengths))) - np.repeat(_starts(lengths)[:-1], lengths)


class FactorBlocks:
    """The pattern of a Jacobian (CSR, `shapes` those of the arrays of unknowns) as factors and nodes.

    Factor f has the rows `rows[row_first[f] : row_first[f + 1]]` and the columns of any of them; node k the unknowns
    from `node_first[k]` on.
    """

    def __init__(self, matrix: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        self.indptr, self.indices = matrix.indptr, matrix.indices
        self.shape: tuple[int, int] = matrix.shape
        self.shapes = tuple(shapes)
        self._factors()
        self._nodes()

    def fits(self, matrix: Any, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether a matrix has this pattern."""
        if matrix.shape != self.shape or tuple(shapes) != self.shapes:
            return False
        pairs = ((matrix.indptr, self.indptr), (matrix.indices, self.indices))
        return all([a is b or np.array_equal(a, b) for a, b in pairs])

    def _factors(self) -> None:
        _m, n = self.shape
        # rows with the same columns have the same sum of random numbers, modulo 2⁶⁴
        random = np.random.default_rng(0).integers(0, 2**63, (2, max(n, 1)), dtype=np.uint64)
        filled = np.flatnonzero(np.diff(self.indptr))
        starts = self.indptr[:-1][filled]
        first, second = [
            np.add.reduceat(numbers[self.indices], starts) if len(filled) else starts for numbers in random
        ]
        order = np.lexsort((second, first))
        new = np.ones(len(order), bool)
        new[1:] = (first[order][1:] != first[order][:-1]) | (second[order][1:] != second[order][:-1])
        self.rows = filled[order]
        self.row_first = np.append(np.flatnonzero(new), len(order)).astype(np.int64)
        lead = self.rows[self.row_first[:-1]]
        place = np.argsort(lead, kind="stable")  # factors in the order of their first rows: reads go forward
        counts = np.diff(self.row_first)[place]
        self.rows = self.rows[np.repeat(self.row_first[:-1][place], counts) + within(counts)]
        self.row_first, self.lead = _starts(counts), lead[place]

    def _nodes(self) -> None:
        """Unknowns along a short last axis, and neighbours read by the same factors."""
        n = self.shape[1]
        begins = np.ones(n + 1, bool)
        lengths = np.diff(self.indptr)[self.lead]
        self.factor_indices = self.indices[np.repeat(self.indptr[:-1][self.lead], lengths) + within(lengths)]
        self.factor_indptr = _starts(lengths)
        numbers = np.random.default_rng(1).integers(0, 2**52, (2, max(len(self.lead), 1))).astype(np.uint64)
        readers = np.repeat(np.arange(len(lengths)), lengths)
        keys = np.zeros((2, n), np.uint64)
        for key, given in zip(keys, numbers, strict=True):
            np.add.at(key, self.factor_indices, given[readers])
        same = (keys[:, 1:] == keys[:, :-1]).all(axis=0) & (keys[0, 1:] != 0)
        begins[1:n][same] = False
        at = 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            if size:
                begins[at] = True
                if len(shape) > 1 and shape[-1] <= LONGEST_NODE:
                    inner = np.arange(at, at + size)
                    begins[inner] = begins[inner] & False
                    begins[at : at + size : shape[-1]] = True
            at += size
        self.node_first = np.flatnonzero(begins)
        longest = np.diff(self.node_first)
        if (longest > 4 * LONGEST_NODE).any():  # a long run stays apart: panels join what belongs together
            cut = np.concatenate(
                [np.arange(a, b, LONGEST_NODE) for a, b in zip(self.node_first, self.node_first[1:], strict=False)]
            )
            self.node_first = np.append(cut, n)
        self.node_of = np.repeat(np.arange(len(self.node_first) - 1), np.diff(self.node_first))

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_first) - 1

    @cached_property
    def graph(self) -> Any:
        """Which nodes some factor reads together: a symmetric pattern, with its diagonal."""
        F, K = len(self.lead), self.nodes
        node = self.node_of[self.factor_indices]
        new = np.ones(len(node), bool)
        new[1:] = node[1:] != node[:-1]
        new[self.factor_indptr[:-1]] = True
        first = _starts(np.add.reduceat(new, self.factor_indptr[:-1]) if F else ())
        read = sparse.csr_array((np.ones(int(first[-1]), np.float32), node[new], first), shape=(F, K))
        found = sparse.csr_array(read.T @ read + sparse.eye_array(K, dtype=np.float32))
        found.sort_indices()
        return found

    @cached_property
    def products(self) -> int:
        """The multiplications of JᵀJ."""
        return int((np.diff(self.row_first).astype(float) * np.diff(self.factor_indptr).astype(float) ** 2).sum())

    @cached_property
    def parts(self) -> Any:
        """The connected part each node is in."""
        return csgraph.connected_components(self.graph, directed=False)
