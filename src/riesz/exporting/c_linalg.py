"""Linear algebra in C: factorisations and solves of single matrices, one after the other where there are many."""

# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TraceError
from ..ops.opaque import Ruled
from .c_formulas import HELPERS
from .c_orders import extremum
from .c_program import C, CProgram, Ref, Shape

RULED: dict[str, Callable[..., Any]] = {"extremum": extremum}
"""By the name of a function with a differential."""


@C("linear algebra, an extremum", Ruled)
def _ruled(c: CProgram, op: Ruled, xs: list[Ref], shape: Any) -> Any:
    name = op.smooth.name
    if name not in RULED:
        raise TraceError(f"{name} is not known in C ({', '.join(RULED)} are); export to numpy")
    if f"riesz_{name}" in HELPERS:
        c.helpers.add(f"riesz_{name}")
    return RULED[name](c, xs, shape, **dict(op.parameters))


def _rows(c: CProgram, shape: Shape, *arrays: tuple[Ref, int], call: str) -> None:
    """A call for every matrix of a stack; {0}, {1}, … are where the arrays are, of so many numbers each."""
    count = math.prod(shape[:-2])
    at = c.name("i") if count != 1 else ""
    if at:
        c.loop(at, count)
    c.line(call.format(*[f"{x.text} + {at} * {size}" if at else x.text for x, size in arrays]))
    if at:
        c.close()


def _copied(c: CProgram, x: Ref, transposed: bool = False) -> Ref:
    """Square matrices that may be overwritten."""
    work, n = c.new(x.shape), x.shape[-1]
    if not transposed:
        c.copy(x, work)
        return work

    def entry(at: list[str]) -> None:
        i, row, column = at
        c.line(f"{work.text}[({i} * {n} + {row}) * {n} + {column}] = {x.text}[({i} * {n} + {column}) * {n} + {row}];")

    c.nest((math.prod(x.shape[:-2]), n, n), entry)
    return work


def _solved(c: CProgram, a: Ref, b: Ref, transposed: bool) -> Ref:
    """A⁻¹b for matrices side by side."""
    n, k = b.shape[-2:]
    found, work = c.new(b.shape), _copied(c, a, transposed)
    c.copy(b, found)
    c.helpers.add("riesz_solve")
    _rows(c, b.shape, (work, n * n), (found, n * k), call=f"riesz_solve({n}, {k}, {{0}}, {{1}});")
    return found


def _solve(c: CProgram, xs: list[Ref], shape: Shape, transposed: bool) -> Ref:
    return _solved(c, *xs, transposed)


def _inverse(c: CProgram, xs: list[Ref], shape: Shape, strict: bool) -> Ref:
    eyes = np.broadcast_to(np.eye(shape[-1]), shape)
    return _solved(c, xs[0], c.constant(eyes), False)


def _triangular(c: CProgram, xs: list[Ref], shape: Shape, lower: bool, transposed: bool, unit: bool) -> Ref:
    n, k = shape[-2:]
    found = c.new(shape)
    c.copy(xs[1], found)
    how = f"{int(lower)}, {int(transposed)}, {int(unit)}"
    call = f"riesz_solve_triangular({n}, {k}, {how}, {{0}}, {{1}});"
    _rows(c, shape, (xs[0], n * n), (found, n * k), call=call)
    return found


def _banded(c: CProgram, xs: list[Ref], shape: Shape, below: int, above: int, turned: bool) -> Ref:
    n, k = shape[-2:]
    found, work = c.new(shape), c.new((n * (below + above + (above if turned else below) + 1),))
    c.copy(xs[1], found)
    size = (below + above + 1) * n
    call = f"riesz_solve_banded({n}, {k}, {below}, {above}, {int(turned)}, {{0}}, {work.text}, {{1}});"
    _rows(c, shape, (xs[0], size), (found, n * k), call=call)
    return found


def _cholesky(c: CProgram, xs: list[Ref], shape: Shape) -> Ref:
    n, found = shape[-1], c.new(shape)
    _rows(c, shape, (xs[0], n * n), (found, n * n), call=f"riesz_cholesky({n}, {{0}}, {{1}});")
    return found


def _mirrored(c: CProgram, xs: list[Ref], shape: Shape, lower: bool) -> Ref:
    n, found = shape[-1], c.new(shape)
    call = f"riesz_mirrored({n}, {int(lower)}, {{0}}, {{1}});"
    _rows(c, shape, (xs[0], n * n), (found, n * n), call=call)
    return found


def _of_diagonals(c: CProgram, x: Ref, lead: Shape, *lines: str) -> list[Ref]:
    """Numbers made of the sign and the diagonal of U in a factorisation; {0}, {1} are the sign and an entry."""
    n, work, found = x.shape[-1], _copied(c, x), [c.new(lead) for _ in lines]
    c.helpers.add("riesz_lu")
    i, j, sign = [c.name(k) for k in ("i", "i", "t")]
    c.loop(i, math.prod(lead))
    c.line(f"real {sign} = riesz_lu({n}, {work.text} + {i} * {n * n});")
    for y, line in zip(found, lines, strict=True):
        head, fold = line.split("; ")
        c.line(f"{y.at(i)} = {head.format(sign)};")
        c.loop(j, n)
        c.line(f"{y.at(i)} {fold.format(sign, f'{work.text}[{i} * {n * n} + {j} * {n + 1}]')};")
        c.close()
    c.close()
    return found


def _det(c: CProgram, xs: list[Ref], shape: Shape) -> Ref:
    return _of_diagonals(c, xs[0], shape, "{0}; *= {1}")[0]


def _slogdet(c: CProgram, xs: list[Ref], shapes: Any) -> list[Ref]:
    signs = "{0}; *= {1} > 0 ? 1 : {1} < 0 ? -1 : {1}"
    return _of_diagonals(c, xs[0], shapes[0], signs, "0; += log(fabs({1}))")


RULED |= {"solve": _solve, "inv": _inverse, "solve_triangular": _triangular, "solve_banded": _banded}
RULED |= {"cholesky": _cholesky, "mirrored": _mirrored, "det": _det, "slogdet": _slogdet}

HELPERS |= {
    "riesz_solve": """/* x <- A^-1 x for n x n A, which is overwritten, and n x k x */
static void riesz_solve(int n, int k, real *A, real *x)
{
    for (int j = 0; j < n; j++) {
        int best = j;
        for (int i = j + 1; i < n; i++) {
            if (fabs(A[i * n + j]) > fabs(A[best * n + j])) best = i;
        }
        if (best != j) {
            for (int i = 0; i < n; i++) {
                real t = A[j * n + i];
                A[j * n + i] = A[best * n + i];
                A[best * n + i] = t;
            }
            for (int i = 0; i < k; i++) {
                real t = x[j * k + i];
                x[j * k + i] = x[best * k + i];
                x[best * k + i] = t;
            }
        }
        for (int i = j + 1; i < n; i++) {
            real f = A[i * n + j] / A[j * n + j];
            if (f == 0) continue;
            for (int m = j + 1; m < n; m++) A[i * n + m] -= f * A[j * n + m];
            for (int m = 0; m < k; m++) x[i * k + m] -= f * x[j * k + m];
        }
    }
    for (int j = n - 1; j >= 0; j--) {
        for (int m = 0; m < k; m++) {
            real t = x[j * k + m];
            for (int i = j + 1; i < n; i++) t -= A[j * n + i] * x[i * k + m];
            x[j * k + m] = t / A[j * n + j];
        }
    }
}
""",
    "riesz_lu": """/* U of n x n A in place; the sign of the exchanges of rows */
static real riesz_lu(int n, real *A)
{
    real sign = 1;
    for (int j = 0; j < n; j++) {
        int best = j;
        for (int i = j + 1; i < n; i++) {
            if (fabs(A[i * n + j]) > fabs(A[best * n + j])) best = i;
        }
        if (best != j) {
            sign = -sign;
            for (int i = 0; i < n; i++) {
                real t = A[j * n + i];
                A[j * n + i] = A[best * n + i];
                A[best * n + i] = t;
            }
        }
        if (A[j * n + j] == 0) continue;
        for (int i = j + 1; i < n; i++) {
            real f = A[i * n + j] / A[j * n + j];
            for (int m = j + 1; m < n; m++) A[i * n + m] -= f * A[j * n + m];
        }
    }
    return sign;
}
""",
    "riesz_solve_triangular": """/* x <- T^-1 x for a triangle T of an n x n matrix and n x k x */
static void riesz_solve_triangular(int n, int k, int lower, int transposed, int unit, const real *T, real *x)
{
    int down = lower != transposed, row = transposed ? 1 : n, column = transposed ? n : 1;
    for (int q = 0; q < n; q++) {
        int i = down ? q : n - 1 - q;
        for (int m = 0; m < k; m++) {
            real t = x[i * k + m];
            for (int j = down ? 0 : i + 1; j < (down ? i : n); j++) t -= T[i * row + j * column] * x[j * k + m];
            x[i * k + m] = unit ? t : t / T[i * n + i];
        }
    }
}
""",
    "riesz_solve_banded": """/* x <- A^-1 x, A or its transpose with its diagonals in the rows of B; W: work space */
static void riesz_solve_banded(
    int n, int k, int below, int above, int turned, const real *B, real *W, real *x)
{
    int l = turned ? above : below, u = turned ? below : above, w = 2 * l + u + 1;
    for (int i = 0; i < n; i++) { /* W[i][c - i + l] is entry (i, c) */
        for (int q = 0; q < w; q++) {
            int c = i + q - l;
            W[i * w + q] = 0;
            if (c < 0 || c >= n || c - i > u) continue;
            W[i * w + q] = turned ? B[(above + c - i) * n + i] : B[(above + i - c) * n + c];
        }
    }
    for (int j = 0; j < n; j++) {
        int best = j, last = j + l < n ? j + l : n - 1, end = j + u + l < n ? j + u + l : n - 1;
        for (int i = j + 1; i <= last; i++) {
            if (fabs(W[i * w + j - i + l]) > fabs(W[best * w + j - best + l])) best = i;
        }
        if (best != j) {
            for (int c = j; c <= end; c++) {
                real t = W[j * w + c - j + l];
                W[j * w + c - j + l] = W[best * w + c - best + l];
                W[best * w + c - best + l] = t;
            }
            for (int m = 0; m < k; m++) {
                real t = x[j * k + m];
                x[j * k + m] = x[best * k + m];
                x[best * k + m] = t;
            }
        }
        for (int i = j + 1; i <= last; i++) {
            real f = W[i * w + j - i + l] / W[j * w + l];
            if (f == 0) continue;
            for (int c = j + 1; c <= end; c++) W[i * w + c - i + l] -= f * W[j * w + c - j + l];
            for (int m = 0; m < k; m++) x[i * k + m] -= f * x[j * k + m];
        }
    }
    for (int j = n - 1; j >= 0; j--) {
        int end = j + u + l < n ? j + u + l : n - 1;
        for (int m = 0; m < k; m++) {
            real t = x[j * k + m];
            for (int c = j + 1; c <= end; c++) t -= W[j * w + c - j + l] * x[c * k + m];
            x[j * k + m] = t / W[j * w + l];
        }
    }
}
""",
    "riesz_cholesky": """/* L with L L^T = A, n x n, from the lower triangle of A */
static void riesz_cholesky(int n, const real *A, real *L)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            real t = A[i * n + j];
            if (j > i) {
                L[i * n + j] = 0;
                continue;
            }
            for (int m = 0; m < j; m++) t -= L[i * n + m] * L[j * n + m];
            L[i * n + j] = i == j ? sqrt(t) : t / L[j * n + j];
        }
    }
}
""",
    "riesz_mirrored": """/* the symmetric matrix with the lower or upper triangle of A */
static void riesz_mirrored(int n, int lower, const real *A, real *S)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) S[i * n + j] = (lower ? j <= i : j >= i) ? A[i * n + j] : A[j * n + i];
    }
}
""",
}
