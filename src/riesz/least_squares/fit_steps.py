"""One linear problem of a fit: min ‖r + J s‖² + λ‖D s‖², by dense QR, by blocks, by the structure of JᵀJ, or with
products only. Which way is taken depends on the pattern of J alone."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import scipy.linalg as _linalg  # pyright: ignore[reportMissingTypeStubs]

from ..errors import RieszError, SolveError
from ..maps.linear_map import LinearMap
from ..maps.solvers.sparse import choose_sparse
from ..runtime import tuning
from .factor_blocks import FactorBlocks, sparse

linalg = cast(Any, _linalg)

METHODS = ("auto", "dense", "sparse", "iterative", "cg")


FEW_UNKNOWNS = 32
"""Up to so many, dense steps are computed by singular values."""


def norm(x: Any) -> float:
    """The Euclidean norm of a vector, sooner than NumPy has it."""
    return math.sqrt(float(x @ x))


class Ways:
    """What a fit keeps from one point to the next, and for the next fit of the same function: the pattern of J as
    blocks, and the order of elimination."""

    def __init__(self) -> None:
        self.blocks: FactorBlocks | None = None
        self.plan: Any = None

    def cholesky(self, matrix: Any, J: LinearMap) -> Any:
        """The plan of a block Cholesky factorisation, or None where another way is better."""
        shapes = [leaf.shape for leaf in J.domain.leaves]
        if self.blocks is None or not self.blocks.fits(matrix, shapes):
            v, make = J.flat, lambda: _planned(matrix, shapes)
            self.blocks, self.plan = make() if v is None else v.net.known(("normal equations", *shapes), make)
        return self.plan


def _planned(matrix: Any, shapes: list[tuple[int, ...]]) -> tuple[FactorBlocks, Any]:
    blocks = FactorBlocks(matrix, shapes)
    if blocks.products < tuning.BLOCK_CHOLESKY_PRODUCTS or find_spec("numba") is None:
        return blocks, None
    if blocks.graph.nnz > 64 * (matrix.nnz + sum(matrix.shape)):
        return blocks, None
    from .block_cholesky import BlockCholesky

    plan = BlockCholesky(blocks)
    return blocks, plan if plan.size <= tuning.FACTOR_NUMBERS else None


def matrix_of(J: LinearMap, method: str) -> Any:
    """r' as a dense array, a sparse one, or None where only products are wanted."""
    m, n = J.shape
    if method in ("sparse", "cg") or (method == "auto" and n > 200):
        J.released()  # products are those of the matrix
        try:
            found = sparse.csr_array(J.stored())
        except RieszError:
            if method == "sparse":
                raise
        else:
            if method != "auto" or found.nnz < 0.2 * m * n:
                return found if found.data.dtype == float else found.astype(float)
            return found.toarray().astype(float)
    return np.asarray(J.to_dense(), float) if method == "dense" or (method == "auto" and m * n <= 10_000_000) else None


class LinearProblem:
    """min ‖r + J s‖² + λ‖D s‖², D the column norms of J, which fall to a half at most from
    point to point, or as given. `rows` are factors of the rows of
    J, `free` the unknowns that move."""

    def __init__(
        self, J: LinearMap, r: Any, method: str, scale: Any, ways: Ways, rows: Any = None, free: Any = None,
        fixed_scale: Any = None,
    ) -> None:  # fmt: skip
        self.r, self.J, self.method, self.ways, self.rows, self.free = r, J, method, ways, rows, free
        self.matrix = matrix_of(J, method)
        if self.matrix is not None and (rows is not None or free is not None):
            self._weigh()
        self.gradient = self.turned(r)
        if self.matrix is None:  # (Jᵀz)² is the square of the norm on average over signs z: good enough to scale by
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (J.shape[0], 8))
            signs = signs if rows is None else signs * rows[:, None]
            norms = np.sqrt(np.mean(np.asarray(J.rmatmat(signs), float) ** 2, axis=1))
            norms = norms if free is None else norms * free
        elif sparse.issparse(self.matrix):
            norms = np.sqrt(np.bincount(self.matrix.indices, self.matrix.data**2, minlength=J.shape[1]))
        else:
            norms = np.sqrt(np.einsum("ij,ij->j", self.matrix, self.matrix))
        self.norms, self.finite = norms, bool(np.isfinite(norms).all() and np.isfinite(self.gradient).all())
        self.scale = (
            fixed_scale if fixed_scale is not None else norms if scale is None else np.maximum(norms, 0.5 * scale)
        )
        self.normal = self.triangle = cast(Any, None)
        self.name = ""

    def _weigh(self) -> None:
        """Rows times their factors, columns of what does not move 0."""
        if not sparse.issparse(self.matrix):
            self.matrix = self.matrix * (1.0 if self.rows is None else self.rows[:, None])
            self.matrix = self.matrix if self.free is None else self.matrix * self.free
            return
        data, A = self.matrix.data, self.matrix
        if self.rows is not None:
            data = data * np.repeat(self.rows, np.diff(A.indptr))
        if self.free is not None:
            data = data * self.free[A.indices]
        self.matrix = sparse.csr_array((data, A.indices, A.indptr), shape=A.shape)

    def product(self, s: Any) -> Any:
        """J s."""
        if self.matrix is not None:
            return self.matrix @ s
        y = self.J.matvec(s if self.free is None else s * self.free)
        return y if self.rows is None else y * self.rows

    def turned(self, y: Any) -> Any:
        """Jᵀy."""
        if self.matrix is not None:
            return np.asarray(self.matrix.T @ y, float)
        s = np.asarray(self.J.rmatvec(y if self.rows is None else y * self.rows), float)
        return s if self.free is None else s * self.free

    def cosine(self, still: Any = None) -> float:
        """The largest cosine between r and a column of J, but for unknowns that are held."""
        size = norm(self.r)
        gradient = self.gradient if still is None else np.where(still, 0.0, self.gradient)
        if not size or not gradient.any():
            return 0.0
        slopes = gradient / np.where(self.norms > 0, self.norms, 1.0)
        return float(np.abs(slopes).max()) / size

    def without(self, still: Any) -> LinearProblem:
        """The same problem with more unknowns that do not move."""
        free = ~still if self.free is None else ~still & self.free
        rest = (self.method, None, self.ways, self.rows, free, self.scale)
        return LinearProblem(self.J, self.r, *rest)

    @cached_property
    def D(self) -> Any:
        """The scales of the unknowns, 1 where there is none."""
        return np.where(self.scale > 0, self.scale, 1.0)

    def step(self, damping: float) -> Any:
        """The minimiser; the shortest one where there are several."""
        if self.matrix is None:
            return self._iterated(damping)
        return self._sparse(damping) if sparse.issparse(self.matrix) else self._dense(damping)

    def _dense(self, damping: float) -> Any:
        D = self.D
        if len(D) <= FEW_UNKNOWNS and self.matrix.size <= 1 << 14:
            return self._singular(damping, D)
        if self.triangle is None:
            self.triangle, self.rhs = self.matrix, -self.r
            if self.matrix.shape[0] > self.matrix.shape[1]:
                Q, self.triangle = np.linalg.qr(self.matrix)
                self.rhs = -(Q.T @ self.r)
        self.name = "dense QR"
        if damping == 0.0:
            return linalg.lstsq(self.triangle / D, self.rhs, cond=len(self.r) * np.finfo(float).eps)[0] / D
        stacked = np.concatenate([self.triangle / D, np.diag(np.full(len(D), math.sqrt(damping)))])
        return linalg.lstsq(stacked, np.concatenate([self.rhs, np.zeros(len(D))]), lapack_driver="gelsy")[0] / D

    def _singular(self, damping: float, D: Any) -> Any:
        """By singular values, once for all dampings; LAPACK takes those of the triangle where there are many rows."""
        if self.triangle is None:
            U, self.triangle, V = np.linalg.svd(self.matrix / D, full_matrices=False)
            self.normal, self.rhs = V.T, U.T @ self.r
        self.name, sizes = "dense QR", self.triangle
        if damping:
            return -(self.normal @ (sizes / (sizes**2 + damping) * self.rhs)) / D
        kept = sizes > max(self.matrix.shape) * np.finfo(float).eps * sizes.max(initial=0.0)
        return -(self.normal @ (np.where(kept, self.rhs, 0.0) / np.where(kept, sizes, 1.0))) / D

    def _sparse(self, damping: float) -> Any:
        D = self.D
        if self.method == "cg":
            return self._conjugate(damping)
        added = damping * D**2 if damping else None
        if self.free is not None:
            added = np.where(self.free, 0.0 if added is None else added, 1.0)
        plan = self.ways.cholesky(self.matrix, self.J)
        try:
            if plan is not None:
                factor = plan.factored(self.matrix.data, added)
                self.name = f"normal equations, {plan.name}"
                return factor.solve(-self.gradient)
            if self.normal is None:
                self.normal = sparse.csr_array(self.matrix.T @ self.matrix)
            damped = self.normal + sparse.diags_array(added) if added is not None else self.normal
            solver = choose_sparse(damped, True, [leaf.size for leaf in self.J.domain.leaves])
        except SolveError as error:
            if damping:
                raise
            found = self._iterated(0.0)
            self.name = f"LSMR, since the {error}"
            return found
        self.name = f"normal equations, {solver.name}"
        return solver.solve(-self.gradient)

    def _iterated(self, damping: float) -> Any:
        """LSMR in the scaled unknowns D s; as exact as is of use at this distance from the solution."""
        from scipy.sparse.linalg import LinearOperator, lsmr  # pyright: ignore[reportMissingTypeStubs]

        self.name, D, shape = "LSMR", self.D, self.J.shape
        forward: Callable[[Any], Any] = lambda s: self.product(s.reshape(-1) / D)  # noqa: E731
        backward: Callable[[Any], Any] = lambda y: self.turned(y.reshape(-1)) / D  # noqa: E731
        A = cast(Any, LinearOperator)(shape, matvec=forward, rmatvec=backward, dtype=float)
        limits = {"atol": self._enough(), "btol": 1e-14, "conlim": 0.0, "maxiter": max(2 * min(shape), 100)}
        return cast(Any, lsmr)(A, -self.r, damp=math.sqrt(damping), **limits)[0] / D

    def _enough(self) -> float:
        return max(min(1e-2, 0.1 * self.cosine()), 1e-14)

    def _conjugate(self, damping: float) -> Any:
        """Conjugate gradients on the normal equations, preconditioned by the blocks of their diagonal."""
        from scipy.sparse.linalg import LinearOperator, cg  # pyright: ignore[reportMissingTypeStubs]

        from .node_blocks import diagonal_blocks

        added, n = damping * self.D**2, self.J.shape[1]
        if self.free is not None:
            added = np.where(self.free, added, 1.0)
        self.ways.cholesky(self.matrix, self.J)
        assert self.ways.blocks is not None
        inverse = diagonal_blocks(self.ways.blocks, self.matrix.data, added)
        apply: Callable[[Any], Any] = lambda s: self.turned(self.product(s)) + added * s  # noqa: E731
        A, M = [cast(Any, LinearOperator)((n, n), matvec=f, dtype=float) for f in (apply, inverse)]
        self.name = "conjugate gradients, preconditioned by blocks"
        return cast(Any, cg)(A, -self.gradient, rtol=self._enough(), maxiter=max(10 * n, 100), M=M)[0]
