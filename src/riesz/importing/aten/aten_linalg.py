"""PyTorch's linear algebra: factorisations and solves by their names."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracing.rules.linalg import matrix_ops, scipy_linalg
from ...tracing.trace import refuse
from ...tracing.traced import Traced, lifted
from ..lax.lax_linalg import turned
from ..lax.lax_registry import is_traced
from .aten_registry import aten

NOTHING = np.zeros((), np.int32)
"""Stands for codes of errors and pivots."""


@aten("`np.linalg.solve`", "linalg_solve", "linalg_solve_ex", "_linalg_solve_ex")
def _solve(e: Any, a: Any, b: Any, *, left: bool = True, **named: Any) -> Any:
    vector = np.ndim(b) == 1 or (np.ndim(b) == np.ndim(a) - 1 and np.shape(b) == np.shape(a)[:-1])
    if vector:
        found = np.linalg.solve(a, b) if np.ndim(b) == 1 else np.linalg.solve(a, b[..., None])[..., 0]
    else:
        found = np.linalg.solve(a, b) if left else turned(np.linalg.solve(turned(a), turned(b)))
    return found if e.name == "linalg_solve" else [found, a, NOTHING, NOTHING][: 4 if e.name[0] == "_" else 2]


@aten("`np.linalg.inv`", "linalg_inv", "inverse", "linalg_inv_ex")
def _inv(e: Any, a: Any, **named: Any) -> Any:
    found = np.linalg.inv(a)
    return [found, NOTHING] if e.name.endswith("_ex") else found


@aten("`np.linalg.pinv`", "linalg_pinv", "pinverse")
def _pinv(e: Any, a: Any, *rest: Any, **named: Any) -> Any:
    return np.linalg.pinv(a)


@aten("`np.linalg.det`", "linalg_det", "det", "_linalg_det")
def _det(e: Any, a: Any) -> Any:
    found = np.linalg.det(a)
    return [found, a, NOTHING] if e.name[0] == "_" else found


@aten("`np.linalg.slogdet`", "linalg_slogdet", "slogdet", "_linalg_slogdet", "logdet")
def _slogdet(e: Any, a: Any) -> Any:
    sign, found = np.linalg.slogdet(a)
    if e.name == "logdet":
        return np.where(np.less(sign, 0), np.nan, found)
    return [sign, found, a, NOTHING] if e.name[0] == "_" else [sign, found]


@aten("`np.linalg.cholesky`", "linalg_cholesky", "cholesky", "linalg_cholesky_ex")
def _cholesky(e: Any, a: Any, upper: bool = False, **named: Any) -> Any:
    upper = named.get("upper", upper)
    found = np.linalg.cholesky(turned(a) if upper else a)
    found = turned(found) if upper else found
    return [found, NOTHING] if e.name.endswith("_ex") else found


@aten("`np.linalg.eigh`", "linalg_eigh", "_linalg_eigh", "linalg_eigvalsh")
def _eigh(e: Any, a: Any, side: str = "L", *rest: Any) -> Any:
    if e.name == "linalg_eigvalsh" or (rest and not rest[0]):
        values = np.linalg.eigvalsh(a, side)
        return values if e.name == "linalg_eigvalsh" else [values, np.zeros(0)]
    return list(np.linalg.eigh(a, side))


@aten("`np.linalg.svd`", "linalg_svd", "_linalg_svd", "linalg_svdvals")
def _svd(e: Any, a: Any, full: bool = False, vectors: bool = True, **named: Any) -> Any:
    if e.name == "linalg_svdvals":
        return np.linalg.svd(a, compute_uv=False)
    if not vectors:
        return [np.zeros(0), np.linalg.svd(a, compute_uv=False), np.zeros(0)]
    return list(np.linalg.svd(a, full_matrices=full))


@aten("`np.linalg.qr`", "linalg_qr", "qr")
def _qr(e: Any, a: Any, mode: Any = "reduced") -> Any:
    if mode == "r":
        return [np.zeros(0), np.linalg.qr(a, "r")]
    return list(np.linalg.qr(a, "complete" if mode in ("complete", False) else "reduced"))


@aten("`scipy.linalg.expm`", "linalg_matrix_exp", "matrix_exp")
def _expm(e: Any, a: Any) -> Any:
    return scipy_linalg.analytic("expm")(a)


@aten("`scipy.linalg.solve_triangular`", "linalg_solve_triangular", "triangular_solve")
def _triangular(
    e: Any, a: Any, b: Any, upper: bool = True, *rest: Any, left: bool = True, unitriangular: bool = False, **named: Any
) -> Any:
    if e.name == "triangular_solve":
        a, b = b, a
        flip, unitriangular = rest if rest else (False, False)
        if flip:
            a, upper = turned(a), not upper
    else:
        upper = named.get("upper", upper)
    if not left:
        a, b, upper = turned(a), turned(b), not upper
    home = next(x.home for x in (a, b) if is_traced(x))
    a, b = [x if is_traced(x) else lifted(np.asarray(x), home) for x in (a, b)]
    found = matrix_ops.solve_triangular(a, b, not upper, unit=bool(unitriangular))
    found = found if left else turned(found)
    return [found, a] if e.name == "triangular_solve" else found


@aten("`np.linalg.solve` with the product of the factors", "cholesky_solve", "cholesky_inverse")
def _cholesky_solve(e: Any, b: Any, factor: Any = None, upper: bool = False) -> Any:
    if e.name == "cholesky_inverse":
        b, factor, upper = np.eye(b.shape[-1], dtype=b.dtype), b, bool(factor)
    factor = np.triu(factor) if upper else np.tril(factor)
    a = np.matmul(turned(factor), factor) if upper else np.matmul(factor, turned(factor))
    return np.linalg.solve(a, b)


@aten("op LU; its solve is `np.linalg.solve`", "linalg_lu_factor", "linalg_lu_factor_ex")
def _lu(e: Any, a: Any, **named: Any) -> Any:
    packed, pivots = matrix_ops.taken_apart(matrix_ops.LU, scipy_linalg.stacked_matrices(a))
    pivots = Traced(pivots.home, pivots.slot, np.dtype(np.int32)) + 1
    e.reader.factored[id(packed)] = packed, a
    return [packed, pivots, NOTHING][: 3 if e.name.endswith("_ex") else 2]


@aten("`np.linalg.solve`, with the matrix that was factored", "linalg_lu_solve")
def _lu_solve(e: Any, packed: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    if id(packed) not in e.reader.factored:
        raise refuse("torch.linalg.lu_solve is known for factors made by lu_factor in the same function")
    a = e.reader.factored[id(packed)][1]
    a = turned(a) if adjoint else a
    return np.linalg.solve(a, b) if left else turned(np.linalg.solve(turned(a), turned(b)))
