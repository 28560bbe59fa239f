"""Weights of inner products that are not dense: sparse and banded matrices, linear maps.

M⁻¹ is a factorisation, made once. A sparse M that is symmetric has the factors M = PᵀL·D·LᵀP without exchanges of rows
if and only if it can be eliminated in that order; it is positive definite if D > 0. So the check is the factorisation
that solves.
"""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import SpaceError
from ..relations.base import freeze
from ..relations.index_sets import Seg
from ..relations.kinds import Function, Gather


def _scipy(part: str) -> Any:
    """A module of SciPy, loaded when it is needed."""
    return importlib.import_module(f"scipy.{part}")


class EntryProduct(NamedTuple):
    """A sparse matrix as gather, product and sum."""

    taken: Gather
    data: Any
    summed: Function


class Mass:
    """M of an inner product vᵀMw: `products` has M and a root R with RᵀR = M as sparse products, `solve` is M⁻¹."""

    def __init__(self, matrix: Any) -> None:
        if matrix.dtype.kind not in "fiub":
            raise SpaceError(f"the weight of a space is a matrix of real numbers; got one of {matrix.dtype}")
        self.matrix: Any = _scipy("sparse").csr_array(matrix, dtype=float, copy=True)
        self.matrix.sum_duplicates()
        self.matrix.eliminate_zeros()
        for part in ("data", "indices", "indptr"):
            setattr(self.matrix, part, freeze(getattr(self.matrix, part)))
        self.shape = self.matrix.shape

    def __reduce__(self) -> Any:
        return Mass, (self.matrix,)

    @cached_property
    def known(self) -> dict[int, Any]:
        """The steps that are made of it."""
        return {}

    @property
    def key(self) -> Any:
        """Equal for equal weights."""
        return tuple([getattr(self.matrix, part).tobytes() for part in ("data", "indices", "indptr")])

    def wrong(self) -> str | None:
        """Why this is no inner product; None if it is one."""
        M, turned = self.matrix, self.matrix.T.tocsr()
        if not np.isfinite(M.data).all():
            return "finite in every entry"
        if M.nnz and abs(M - turned).max() > 1e-12 * abs(M).max():
            return "symmetric"
        return None if self._factors is not None else "positive definite"

    @cached_property
    def _factors(self) -> Any:
        if not self.shape[0] or not (self.matrix.diagonal() > 0).all():
            return None
        still: Any = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}, "permc_spec": "MMD_AT_PLUS_A"}
        try:
            found: Any = _scipy("sparse.linalg").splu(self.matrix.tocsc(), **still)
        except RuntimeError:  # singular
            return None
        return found if np.array_equal(found.perm_r, found.perm_c) and (found.U.diagonal() > 0).all() else None

    def solve(self, x: Any) -> Any:
        """M⁻¹ along the last axis."""
        columns = np.asarray(x, float).reshape(-1, self.shape[0]).T
        y = self._factors.solve(np.ascontiguousarray(columns))
        y = y + self._factors.solve(columns - self.matrix @ y)  # exchanging no rows leaves a little to correct
        return np.ascontiguousarray(y.T).reshape(np.shape(x))

    @cached_property
    def products(self) -> Any:
        """M, nothing for M⁻¹, and R = √D·Lᵀ·P."""
        lu, n = self._factors, self.shape[0]
        sparse = _scipy("sparse")
        P = sparse.csr_array((np.ones(n), (lu.perm_r, np.arange(n))), shape=self.shape)
        root = sparse.diags_array(np.sqrt(lu.U.diagonal())) @ lu.L.T @ P
        return self._product(self.matrix), None, self._product(root)

    def _product(self, matrix: Any) -> EntryProduct:
        entries, n = matrix.tocsr().tocoo(), Seg(self.shape[0])
        rows, columns = [freeze(np.asarray(k, np.intp)) for k in entries.coords]
        count = Seg(len(rows))
        return EntryProduct(Gather(n, count, columns), freeze(entries.data), Function(count, n, rows))


class MapMass(Mass):
    """A linear map as a weight: applied and solved with by its structure."""

    def __init__(self, linear: Any) -> None:
        self.linear, self.shape = linear, linear.shape

    def __reduce__(self) -> Any:
        return MapMass, (self.linear,)

    @property
    def key(self) -> Any:
        return id(self.linear)

    def wrong(self) -> str | None:
        """Looked at by products with random vectors; the least eigenvalue as Lanczos sees it."""
        rng, n = np.random.default_rng(0), self.shape[0]
        X = rng.normal(size=(n, 3))
        Y = self.linear.matmat(X)
        G = X.T @ Y
        if not np.isfinite(G).all():
            return "finite in every entry"
        if np.abs(G - G.T).max() > 1e-10 * np.linalg.norm(X) * np.linalg.norm(Y):
            return "symmetric"
        if n > 2:
            linalg = _scipy("sparse.linalg")
            A = linalg.LinearOperator(self.shape, matvec=self.linear.matvec, dtype=float)
            least = linalg.eigsh(A, 1, which="SA", tol=1e-2, maxiter=50 * n, v0=X[:, 0], return_eigenvectors=False)
            positive = bool(least[0] > 0)
        else:
            positive = bool((np.linalg.eigvalsh(self.linear.to_dense()) > 0).all())
        return None if positive else "positive definite"

    def _on_last(self, function: Any, x: Any) -> Any:
        columns = np.asarray(x, float).reshape(-1, self.shape[0]).T
        return np.ascontiguousarray(function(columns).T).reshape(np.shape(x))

    def solve(self, x: Any) -> Any:
        return self._on_last(self._solver.solve, x)

    @cached_property
    def _solver(self) -> Any:
        return self.linear.solver()

    def apply(self, x: Any) -> Any:
        """M along the last axis."""
        return self._on_last(self.linear.matmat, x)

    @cached_property
    def products(self) -> Any:
        return None, None, None


def mass_of(weight: Any) -> Mass | None:
    """A weight given as a sparse matrix or a linear map; None for anything else. A map with few entries counts as its
    sparse matrix."""
    if hasattr(weight, "tocoo") and hasattr(weight, "nnz"):
        return Mass(weight)
    if not hasattr(weight, "matmat") or not hasattr(weight, "solver"):
        return None
    if weight.leaves is not None:
        raise SpaceError("the weight of a space is a linear map with numbers; this one is at traced or JAX arrays")
    few = weight.positions
    return Mass(weight.stored()) if few is not None and few <= 64 * max(weight.shape) else MapMass(weight)
