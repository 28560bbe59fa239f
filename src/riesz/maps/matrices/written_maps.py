"""Linear maps from matrices: dense, sparse, traced, or NumPy code that is linear in one vector of coordinates."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...errors import LinearityError, SpaceError
from ...programs.program import Program
from ...runtime import tuning
from ...spaces.space import Space
from ...tracing.trace import Trace
from ...tracing.traced import HOLDERS, Traced, slot_of
from ..instances import Instance
from ..leaves import IN_TRACES, any_traced, fixed

Code = Callable[[Any], Any]


def written(f: Code, domain: Space, codomain: Space, dtype: Any) -> Instance:
    """The program of NumPy code from coordinates to coordinates; traced arrays that it uses are its point."""
    with Trace("a matrix") as trace:
        leaves = [Traced(trace, trace.input(leaf.shape), np.dtype(dtype)) for leaf in domain.leaves]
        given = list(trace.inputs)
        found = IN_TRACES.parted(codomain, f(IN_TRACES.flat(leaves)))
        slots = [slot_of(trace, y, dtype) for y in found]
        trace.no_refusals()
    program: Program = trace.prune([*trace.captured_slots, *given], slots)
    return Instance(program, fixed(trace.captured))


def is_sparse(x: Any) -> bool:
    """Whether x is one of SciPy's sparse matrices or arrays, or one with traced data; SciPy need not be there."""
    return (type(x).__module__.startswith("scipy.sparse") or type(x) in HOLDERS) and hasattr(x, "tocsr")


def as_matrix(given: Any, shape: tuple[int, int]) -> Any:
    """A matrix of real numbers that fits: traced, sparse (CSR), or dense."""
    if type(given) in HOLDERS:
        found: Any = given
    elif any_traced(given):
        found = IN_TRACES.taken(given)
    else:
        found = given.tocsr() if is_sparse(given) else np.asarray(given)
        if found.dtype.kind not in "fiub":
            raise LinearityError(f"a linear map is real; got a matrix of {found.dtype}")
    if tuple(found.shape) != shape:
        due = f"a matrix of shape {shape}"
        if len(found.shape) == 1:
            other = "for a diagonal write np.diag(d) or scipy.sparse.diags_array(d), for rows np.tile(d, (rows, 1))"
            raise LinearityError(
                f"a linear map and a matrix add, {due} is due; got a vector of {found.shape[0]}: {other}"
            )
        if not found.shape:
            other = "k * rz.id adds to the diagonal, k * np.ones(L.shape) to every entry"
            raise LinearityError(f"a linear map and the number {found[()]} do not add: {other}; or {due}")
        raise SpaceError(f"beside this linear map {due} is due; got shape {tuple(found.shape)}")
    return found


def code_of(matrix: Any) -> Code:
    """x ↦ A x for a matrix that `as_matrix` gave, with the structure that its zeros show."""
    if isinstance(matrix, Traced) or type(matrix) in HOLDERS:
        return lambda x: matrix @ x
    import scipy.sparse as sparse  # pyright: ignore[reportMissingTypeStubs]

    sparsely = is_sparse(matrix)
    count = matrix.nnz if sparsely else np.count_nonzero(matrix)
    few = sparsely or 8 * count <= matrix.size
    entries, lines = matrix, np.zeros(0, int)
    if few or count <= 3 * max(matrix.shape):
        entries = cast(Any, sparse).coo_array(matrix)
        entries.sum_duplicates()
        rows, columns = entries.coords
        lines = np.unique(columns.astype(np.int64) - rows)
    if not 0 < len(lines) <= min(tuning.SUMMED_DIAGONALS, max(1, max(matrix.shape) // 2)):
        matrix = cast(Any, sparse).csr_array(matrix) if few and not sparsely and count else matrix
        return lambda x: matrix @ x
    return diagonals({int(d): entries.diagonal(int(d)) for d in lines}, matrix.shape)


def diagonals(lines: dict[int, Any], shape: tuple[int, int]) -> Code:
    """x ↦ A x for a matrix by its diagonals: lines[d][i] = a[i − min(d, 0), i + max(d, 0)]."""

    def code(x: Any) -> Any:
        total: Any = 0.0
        for d, line in lines.items():
            before, n, rest = max(-d, 0), len(line), x.shape[1:]
            part = line * x[max(d, 0) : max(d, 0) + n]
            ends = [np.zeros((before, *rest)), part, np.zeros((shape[0] - before - n, *rest))]
            total = total + np.concatenate([p for p in ends if p.shape[0]])
        return total

    return code


def spread(x: Any, places: Any, n: int) -> Any:
    """n rows with those of x at some places, and 0 elsewhere."""
    index = np.full(n, len(places))
    index[places] = np.arange(len(places))
    return np.concatenate([x, np.zeros((1, *x.shape[1:]))])[index]


def is_symmetric(matrix: Any) -> bool:
    """Whether a matrix of numbers equals its transpose."""
    if isinstance(matrix, Traced) or type(matrix) in HOLDERS or matrix.shape[0] != matrix.shape[1]:
        return False
    return not (matrix != matrix.T).nnz if is_sparse(matrix) else bool((matrix == matrix.T).all())
