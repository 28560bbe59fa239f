"""JAX's linear algebra: factorisations and solves by their names."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...calculus.linearity import moves_linearly
from ...errors import LinearityError
from ...functions.control.bodies import Body
from ...functions.directional import jvp
from ...functions.jacobians import jacobian
from ...programs.program import Program
from ...tracing.rules.linalg import matrix_ops, scipy_linalg
from ...tracing.traced import Traced, lifted
from .lax_control import by_tangents, completed, moving_places, with_rule
from .lax_registry import is_traced, lax


def turned(x: Any) -> Any:
    """The transposed matrices."""
    return np.swapaxes(x, -1, -2)


@lax("`np.linalg.cholesky`", "cholesky")
def _cholesky(reader: Any, e: Any, x: Any) -> Any:
    return np.linalg.cholesky(x)


@lax("`scipy.linalg.solve_triangular`", "triangular_solve")
def _triangular(reader: Any, e: Any, a: Any, b: Any) -> Any:
    p = e.params
    a, b = [x if is_traced(x) else np.asarray(x) for x in (a, b)]
    flip = bool(p["transpose_a"])
    if not p["left_side"]:
        b, flip = turned(b), not flip
    a = turned(a) if flip else a
    lower = bool(p["lower"]) != flip
    home = next(x.home for x in (a, b) if is_traced(x))
    x = matrix_ops.solve_triangular(lifted(a, home), lifted(b, home), lower, unit=bool(p["unit_diagonal"]))
    return x if p["left_side"] else turned(x)


@lax("`np.linalg.eigh`", "eigh")
def _eigh(reader: Any, e: Any, x: Any) -> Any:
    values, vectors = np.linalg.eigh(x, "L" if e.params.get("lower", True) else "U")
    return [vectors, values]


@lax("`np.linalg.svd`", "svd")
def _svd(reader: Any, e: Any, x: Any) -> Any:
    if not e.params["compute_uv"]:
        return [np.linalg.svd(x, compute_uv=False)]
    u, s, v = np.linalg.svd(x, full_matrices=e.params["full_matrices"])
    return [s, u, v]


@lax("`np.linalg.qr`", "qr")
def _qr(reader: Any, e: Any, x: Any) -> Any:
    return list(np.linalg.qr(x, "complete" if e.params["full_matrices"] else "reduced"))


@lax("op LU; in a solve of JAX's it is `np.linalg.solve`", "lu")
def _lu(reader: Any, e: Any, a: Any) -> Any:
    packed, pivots = matrix_ops.taken_apart(matrix_ops.LU, scipy_linalg.stacked_matrices(a))
    pivots = Traced(pivots.home, pivots.slot, np.dtype(np.int32))
    reader.factored[id(packed)] = packed, a
    rows = matrix_ops.exchange(pivots, packed)  # P with P·A = L·U
    return [packed, pivots, np.argmax(rows, axis=-1).astype(np.int32)]


@lax("from the exchanges of rows to their order", "lu_pivots_to_permutation")
def _order(reader: Any, e: Any, pivots: Any) -> Any:
    n = e.params["permutation_size"]
    rows = matrix_ops.exchange(pivots, lifted(np.zeros((*pivots.shape[:-1], n, n)), pivots.home))
    return np.argmax(rows, axis=-1).astype(np.int32)


@lax("`np.linalg.solve`, where it is a solve by LU; otherwise the steps of the solve", "custom_linear_solve")
def _solve(reader: Any, e: Any, *args: Any) -> Any:
    lengths, jaxprs = e.params["const_lengths"], e.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    consts, b = args[first : first + lengths.solve], args[first + lengths.solve + lengths.transpose_solve :]
    factors = [c for c in consts if id(c) in reader.factored]
    matrices = [a for a in args[: lengths.matvec] if factors and np.shape(a) == np.shape(factors[0])]
    if matrices and len(b) == 1:
        how = _recognised(jaxprs.solve, consts, matrices[0], b[0])
        if how is not None:
            home = next(x.home for x in (matrices[0], b[0]) if is_traced(x))
            return [how(lifted(matrices[0], home), lifted(b[0], home))]
    linear = _is_linear(reader, jaxprs.solve, consts, b)
    return with_rule(reader, e, args, by_tangents if linear else by_structure, jaxprs.solve, [*consts, *b])


def _is_linear(reader: Any, jaxpr: Any, consts: Any, b: Any) -> bool:
    """Whether the code of a solve is linear in the right-hand side (elimination is, conjugate gradients are not)."""
    given = [np.zeros(np.shape(x), x.dtype) for x in (*consts, *b)]
    body = Body(lambda *xs: tuple(reader.closed(jaxpr, xs)), tuple(given), "a solve of JAX's")
    try:
        moves_linearly(body.program(()), [i >= len(consts) for i in range(len(given))])
    except LinearityError:
        return False
    return not body.record.captured


def by_structure(reader: Any, e: Any, whole: Any, xs: Sequence[Any]) -> Program:
    """(xs, dxs) ↦ A⁻¹(db − dA·y), y the solution that the code gives; solved with by the structure of A."""
    lengths, jaxprs = e.params["const_lengths"], e.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    ends = first + lengths.solve, first + lengths.solve + lengths.transpose_solve
    moving = moving_places(xs)
    place = {i: k for i, k in enumerate(whole(range(len(xs)))) if type(k) is int}

    def tangents(*given: Any) -> Any:
        at, dxs = whole(given[: len(xs)]), dict(zip(moving, given[len(xs) :], strict=True))
        matrix, b = at[: lengths.matvec], at[ends[1] :]
        y = reader.closed(jaxprs.solve, [*at[first : ends[0]], *b])
        live = [i for i in range(lengths.matvec) if place.get(i) in dxs]

        def product(*moved: Any) -> Any:
            held = list(matrix)
            for i, x in zip(live, moved[: len(live)], strict=True):
                held[i] = x
            return tuple(reader.closed(jaxprs.matvec, [*held, *moved[len(live) :]]))

        fixed = [matrix[i] for i in live]
        right = [dxs[place[i]] if place.get(i) in dxs else np.zeros(np.shape(x)) for i, x in enumerate(at)][ends[1] :]
        if live:
            moves = [dxs[place[i]] for i in live]
            _, part = jvp(lambda *a: product(*a, *y), tuple(fixed), tuple(moves))
            right = [r - p for r, p in zip(right, part, strict=True)]
        zeros = tuple([np.zeros(np.shape(v)) for v in b])
        if len(b) > 1:
            return jacobian(lambda v: product(*fixed, *v))(zeros).solve(tuple(right))
        return (jacobian(lambda v: product(*fixed, v)[0])(*zeros).solve(right[0]),)

    given = [*xs, *[xs[i] for i in moving]]
    return completed(Body(tangents, tuple(given), "a solve of JAX's").program(()), e, xs, moving)


def _ways() -> dict[str, Any]:
    return {
        "columns": np.linalg.solve,
        "vector": lambda a, b: np.linalg.solve(a, b[..., None])[..., 0],
        "rows": lambda a, b: turned(np.linalg.solve(a, turned(b))),
        "columns of the transpose": lambda a, b: np.linalg.solve(turned(a), b),
        "vector of the transpose": lambda a, b: np.linalg.solve(turned(a), b[..., None])[..., 0],
        "rows of the transpose": lambda a, b: turned(np.linalg.solve(turned(a), turned(b))),
    }


MOST = 1 << 22
"""Matrices of more numbers in all are not tried."""


def _recognised(jaxpr: Any, consts: Any, a: Any, b: Any) -> Any:
    """Which solve a jaxpr is: the one that gives the same for a matrix and a right-hand side drawn at random."""
    import jax
    from scipy.linalg import lu_factor

    shape, n = np.shape(a), np.shape(a)[-1]
    if np.prod(shape) > MOST or np.prod(shape[:-2]) > 64:
        return None
    rng = np.random.default_rng(0)
    A = rng.normal(size=shape) + n * np.eye(n)
    given: list[Any] = []
    packed, pivots = lu_factor(A)
    order = np.broadcast_to(np.arange(n), pivots.shape).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        for i, j in enumerate(pivots[at].tolist()):
            order[(*at, i)], order[(*at, j)] = order[(*at, j)], order[(*at, i)]
    for c in consts:
        kind = np.dtype(c.dtype).kind
        if kind in "iu":
            given.append(order.astype(c.dtype))
        elif np.shape(c) != shape:
            return None
        else:
            given.append(packed.astype(c.dtype))
    right = rng.normal(size=np.shape(b))
    wanted = np.asarray(jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *given, right)[0])
    for way in _ways().values():
        try:
            found = way(A, right)
        except (ValueError, np.linalg.LinAlgError):
            continue
        if found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-3 if wanted.dtype != float else 1e-8):
            return way
    return None


@lax("a banded solve", "tridiagonal_solve")
def _tridiagonal(reader: Any, e: Any, low: Any, middle: Any, high: Any, b: Any) -> Any:
    def moved(x: Any, by: int) -> Any:
        blank = np.zeros((*x.shape[:-1], 1), x.dtype)
        parts = [blank, x[..., :-1]] if by > 0 else [x[..., 1:], blank]
        return np.concatenate(parts, -1)

    # JAX: low[i] stands left of middle[i], high[i] right of it; bands are stored by column
    rows = [moved(high, 1), middle, moved(low, -1)]
    return scipy_linalg.solve_banded((1, 1), np.stack(rows, -2), b)
