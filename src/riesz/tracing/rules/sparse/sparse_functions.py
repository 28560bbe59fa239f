"""scipy.sparse and scipy.sparse.linalg for matrices with traced data (sparse_arrays.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....runtime import later
from ....spaces.space import real_space
from ....terms.declared import declare_linear
from ...trace import refuse
from ...traced import holds_traced, tidy
from ..array_products import is_sparse
from ..scientific.precision import double
from .sparse_arrays import Numbering, SparseTraced, constants, kind_like, moved, moved_blocks, multiplied_pairs


def _maker(name: str) -> Callable[..., Any]:
    """A class of SciPy's, called with something traced."""

    def make(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **named: Any) -> SparseTraced:
        import scipy.sparse

        kind = getattr(scipy.sparse, name)
        if type(arg1) is SparseTraced:
            found = arg1.of_kind(kind)
        else:
            numbers = Numbering()
            if isinstance(arg1, tuple) and len(arg1) in (2, 3) and not np.isscalar(arg1[0]):
                data, *places = arg1
                if holds_traced(places):
                    raise refuse(f"{name}: the positions of a sparse matrix are fixed; these are traced")
                paired = len(places) == 1 and not name.startswith("dia")  # (data, (rows, columns))
                raw = kind_like(kind, "coo") if paired else kind  # nothing is added up among numbers of entries
                numbered = raw((numbers.array(tidy(data)), *places), shape=shape, **named)
            else:
                numbered = kind_like(kind, "coo")(np.atleast_2d(numbers.array(tidy(arg1))))
            found = numbers.found(numbered, kind)
        return found if dtype is None else found.astype(dtype)

    return make


def _diagonals(name: str) -> Callable[..., Any]:
    """diags and diags_array: the diagonals are numbered."""

    def code(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> Any:
        import scipy.sparse

        numbers = Numbering()
        single = not isinstance(diagonals, (list, tuple)) and np.ndim(tidy(diagonals)) < 2
        if isinstance(diagonals, (list, tuple)) and np.ndim(offsets) == 0:  # one diagonal, as a list of numbers
            single = len(diagonals) != 1 or not np.ndim(diagonals[0])
        rows = [tidy(diagonals)] if single else [tidy(d) for d in diagonals]
        lines = [numbers.array(d if np.ndim(d) else np.reshape(d, (1,))) for d in rows]
        whole = getattr(scipy.sparse, name)(lines, offsets=np.atleast_1d(offsets), shape=shape, dtype=np.int64)
        kind = type(whole) if format is None else kind_like(type(whole), format)
        found = numbers.found(whole, kind)
        if dtype is None:  # whole numbers become floats in some versions of SciPy
            dtype = getattr(scipy.sparse, name)([np.zeros(1, found.dtype)], offsets=[0]).dtype
        return found if dtype == found.dtype else found.astype(dtype)

    return code


def _spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    shape = m if n is None else (m, n)
    x = np.atleast_2d(tidy(data))
    return _maker("dia_matrix")((x, diags), shape=shape if shape is not None else (x.shape[1],) * 2).asformat(format)


def _joining(name: str) -> Callable[..., Any]:
    """block_array, hstack and their like."""

    def code(blocks: Any, format: Any = None, dtype: Any = None) -> Any:
        import scipy.sparse

        found = moved_blocks(getattr(scipy.sparse, name), blocks)
        found = found if dtype is None else found.astype(dtype)
        return found.asformat(format)

    return code


def _kron(A: Any, B: Any, format: Any = None) -> Any:
    """A ⊗ B: every entry of A times every entry of B."""
    a, b = [x if is_sparse(x) else _dense(x) for x in (A, B)]
    kinds = [x.kind if type(x) is SparseTraced else type(x) for x in (a, b)]
    kind = next((k for k in kinds if not k.__name__.endswith("matrix")), kinds[0])
    left, right = [x if type(x) is SparseTraced else constants(x) for x in (a, b)]
    (m, n), (p, q) = a.shape, b.shape
    i, j = [np.repeat(np.arange(len(left.row)), len(right.row)), np.tile(np.arange(len(right.row)), len(left.row))]
    data = multiplied_pairs(left.data, right.data, i, j)
    found = SparseTraced(left.row[i] * p + right.row[j], left.col[i] * q + right.col[j], data, (m * p, n * q), kind)
    return found.of_kind(kind_like(kind, format or "csr"))


def _dense(x: Any) -> Any:
    """An array as a sparse matrix with all its entries."""
    import scipy.sparse

    return _maker("coo_array")(x) if holds_traced(x) else scipy.sparse.coo_array(np.atleast_2d(x))


def _triangle(name: str) -> Callable[..., Any]:
    def code(A: Any, k: int = 0, format: Any = None) -> Any:
        import scipy.sparse

        return moved(lambda a: getattr(scipy.sparse, name)(a, k), A).asformat(format)

    return code


# -- solving ----------------------------------------------------------------------------------------------


def is_map(A: Any) -> bool:
    """Whether A is a linear map of riesz's."""
    return isinstance(A, later.LinearMap)


def map_of(A: Any) -> Any:
    """A sparse matrix or an array, traced or not, as a linear map."""
    if type(A) is SparseTraced:
        return A.linear_map
    if is_map(A):
        return A
    if not is_sparse(A):
        return map_of(_dense(A))
    entries = constants(A)
    return later.map_of_entries(entries.row, entries.col, np.asarray(entries.data, _kind(A.dtype)), A.shape)


def _kind(dtype: Any) -> Any:
    return dtype if np.dtype(dtype).kind == "f" else np.dtype(float)


def _square(A: Any) -> Any:
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"matrix must be square (has shape {tuple(A.shape)})")
    return A


def _ordered(A: Any) -> Any:
    """A square matrix whose entries are put in order, as SciPy's own solvers do in place."""
    if type(A) is SparseTraced:
        A.sum_duplicates()
    return _square(A)


def _right(b: Any) -> Any:
    return b.toarray() if is_sparse(b) else tidy(b)


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """A⁻¹b, by the structure of A."""
    y = _right(b)
    x = map_of(_ordered(A)).solve(y[:, 0] if np.ndim(y) == 2 and np.shape(y)[1] == 1 else y)
    return x if not is_sparse(b) or np.ndim(x) == 1 else _maker("csc_array")(x)


class TracedFactors:
    """What `splu` gives for a matrix with traced data: it solves."""

    def __init__(self, A: Any) -> None:
        self.shape, self._map = tuple(_ordered(A).shape), map_of(A)
        self.nnz = self._map.positions if is_map(A) else A.nnz

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """A⁻¹b, or with trans="T" A⁻ᵀb."""
        return (self._map if trans == "N" else self._map.T).solve(_right(rhs))


class NumberFactors:
    """SciPy's factors of a matrix of numbers, where they solve for something traced."""

    def __init__(self, lu: Any) -> None:
        self._lu = lu
        if lu.solve(np.zeros(lu.shape[0])).dtype.kind == "c":
            raise refuse(
                "the factors of a complex matrix do not solve for traced arrays; take those of [[Re, -Im], [Im, Re]]"
            )

    @classmethod
    def of(cls, given: Any) -> NumberFactors:
        """That of SciPy's."""
        return cls(given)

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """A⁻¹b, or with trans="T" A⁻ᵀb."""
        b = np.transpose(tidy(rhs))
        ways = [partial(_solved, self._lu, t) for t in ("NT" if trans == "N" else "TN")]
        space = real_space(b.shape)
        return np.transpose(later.evaluate(declare_linear(ways[0], ways[1], space, space, "solve", True), b))


def _solved(lu: Any, trans: str, b: Any) -> Any:
    """A⁻¹b along the last axis."""
    columns = np.asarray(b, float).reshape(-1, lu.shape[0]).T
    return lu.solve(np.ascontiguousarray(columns), trans).T.reshape(np.shape(b))


CLASSES: dict[str, Any] = {"SuperLU": NumberFactors}


def _factors(A: Any, *options: Any, **named: Any) -> TracedFactors:
    return TracedFactors(A)


class _Said:
    """The options of a call; each call has its own."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


def _iterative(name: str) -> Callable[..., Any]:
    """SciPy's iterations on a matrix with traced data or a traced right-hand side: the value is theirs, the derivative
    that of the solution."""

    def code(A: Any, b: Any, x0: Any = None, **named: Any) -> Any:
        known = is_sparse(A) or np.ndim(A) == 2
        if not known or holds_traced([x0, *named.values()]):
            others = "its other arguments without traced arrays"
            raise refuse(f"scipy.sparse.linalg.{name} is known to riesz for A a matrix, sparse or dense, and {others}")
        y = _right(b)
        said = _Said({"x0": x0, **named})
        flat = y[:, 0] if np.ndim(y) == 2 else y
        x = map_of(_square(A)).solve(flat, method=later.ScipyIterations, name=name, said=said)
        return double(x) if name == "minres" else x, 0

    return code


def _solution(A: Any, b: Any) -> tuple[Any, Any, Any]:
    """The least-squares solution, what is left of b, and the map."""
    L, y = map_of(_dense(A) if holds_traced(A) and not is_sparse(A) else A), _right(b)
    x = L.lstsq(y[:, 0] if np.ndim(y) == 2 else y)
    return double(x), y - L @ x, L


def _lsqr(A: Any, b: Any, damp: Any = 0.0, *args: Any, **named: Any) -> Any:
    x, rest, L = _undamped("lsqr", A, b, damp, named)
    size = np.sqrt(np.sum(rest**2))
    return x, 1, 0, size, size, np.nan, np.nan, np.linalg.norm(L.T @ rest), np.sqrt(np.sum(x**2)), np.zeros(L.shape[1])


def _lsmr(A: Any, b: Any, damp: Any = 0.0, *args: Any, **named: Any) -> Any:
    x, rest, L = _undamped("lsmr", A, b, damp, named)
    return x, 1, 0, np.sqrt(np.sum(rest**2)), np.linalg.norm(L.T @ rest), np.nan, np.nan, np.sqrt(np.sum(x**2))


def _undamped(name: str, A: Any, b: Any, damp: Any, named: dict[str, Any]) -> Any:
    if holds_traced(damp) or damp or named.get("x0") is not None:
        raise refuse(
            f"scipy.sparse.linalg.{name} takes neither damp nor x0 with traced arrays; for damp solve with A above "
            "damp * I: scipy.sparse.vstack([A, damp * scipy.sparse.eye_array(n)])"
        )
    return _solution(A, b)


def _eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    *args: Any,
    return_eigenvectors: bool = True,
    **named: Any,
) -> Any:
    if M is not None or (sigma is not None and (holds_traced(sigma) or sigma != 0)) or args:
        raise refuse(
            "scipy.sparse.linalg.eigsh with traced data takes k, which and sigma=0; for another shift add -sigma times "
            "the identity to A, for M use scipy.linalg.eigh(A.toarray(), M)"
        )
    w, V = map_of(_square(A)).eigh(k, "SM" if sigma is not None else which)
    return (w, V.to_dense()) if return_eigenvectors else w


def _svds(A: Any, k: int = 6, ncv: Any = None, tol: Any = 0, which: str = "LM", *args: Any, **named: Any) -> Any:
    if which != "LM" or args:
        raise refuse("scipy.sparse.linalg.svds with traced data gives the largest singular values, which='LM'")
    U, s, Vt = map_of(A).svd(k)
    if named.get("return_singular_vectors", True) is False:
        return s[::-1]
    return U.to_dense()[:, ::-1], s[::-1], Vt.to_dense()[::-1]


def _dense_expm(A: Any, B: Any, *args: Any, **named: Any) -> Any:
    if args or any([v is not None for k, v in named.items() if k != "traceA"]):
        raise refuse(
            "scipy.sparse.linalg.expm_multiply with traced arrays takes A and B; write expm_multiply(t * A, B)"
        )
    from ..linalg.scipy_linalg import COUNTERPARTS

    matrix = A.toarray() if is_sparse(A) else A.to_dense() if is_map(A) else A
    return COUNTERPARTS["expm"][0](matrix) @ _right(B)


def _norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    if is_map(x):
        raise TypeError("input is not sparse. use numpy.linalg.norm")
    if axis is not None or ord not in (None, "fro"):
        raise refuse(
            "scipy.sparse.linalg.norm of a matrix with traced data is the Frobenius norm; others need toarray()"
        )
    return np.sqrt(x.power(2).sum())


_ENTRIES = "a sparse matrix with traced data: products are gather, product, relational reduction"
_MOVED = "entries in other places: a gather of the data"
_LINEAR = "the same of the data's differential"
_SOLVES = "A⁻¹(db − dA·x), by the structure of A"
_names = [f"{f}_{k}" for f in ("csr", "csc", "coo", "dia") for k in ("array", "matrix")]
SPARSE: dict[str, tuple[Any, str, str]] = {
    **{name: (_maker(name), _ENTRIES, _LINEAR) for name in _names},
    **{name: (_diagonals(name), _MOVED, _LINEAR) for name in ("diags", "diags_array")},
    "spdiags": (_spdiags, _MOVED, _LINEAR),
    **{name: (_joining(name), _MOVED, _LINEAR) for name in ("block_array", "bmat", "hstack", "vstack", "block_diag")},
    **{name: (_triangle(name), _MOVED, _LINEAR) for name in ("tril", "triu")},
    "kron": (_kron, "a gather of both and their product", "db ⊗ a and da ⊗ b"),
    "issparse": (lambda x: type(x) is SparseTraced, "whether it is a sparse matrix", "none"),
    "isspmatrix": (lambda x: type(x) is SparseTraced and x.is_matrix, "whether it is one of SciPy's matrices", "none"),
}
LINALG: dict[str, tuple[Any, str, str]] = {
    "spsolve": (spsolve, "op solve_map, linear in b", _SOLVES),
    "splu": (_factors, "an object that solves by op solve_map", _SOLVES),
    "factorized": (lambda A: TracedFactors(A).solve, "a function that solves by op solve_map", _SOLVES),
    **{
        name: (_iterative(name), "op solve_map; its value by SciPy's iterations", _SOLVES)
        for name in ("cg", "gmres", "bicgstab", "minres", "bicg", "cgs", "qmr", "lgmres", "tfqmr", "gcrotmk")
    },
    "lsqr": (_lsqr, "op solve_map: least squares", _SOLVES),
    "lsmr": (_lsmr, "op solve_map: least squares", _SOLVES),
    "expm_multiply": (_dense_expm, "op expm of the dense matrix", "that of expm"),
    "eigsh": (_eigsh, "op some_pairs", "of eigenvalues vᵀdA v"),
    "svds": (_svds, "op some_pairs", "of singular values uᵀdA v"),
    "norm": (_norm, "√Σ data²", "⟨data, d⟩ / norm"),
}
