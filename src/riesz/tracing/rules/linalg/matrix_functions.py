"""More of scipy.linalg for traced arrays: what follows from decompositions, powers and equations of np.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ops.opaque import Smooth
from ...deciding import known
from ...trace import refuse
from . import matrix_ops as m
from . import numpy_linalg as linalg
from .scipy_linalg import analytic, inv, solve, sqrtm, stacked_matrices


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, **named: Any) -> Any:
    """Eigenvalues, complex as SciPy has them, and vectors."""
    if left:
        raise refuse("scipy.linalg.eig with left=True is not known to riesz; write scipy.linalg.eig(A.T) for those")
    x = stacked_matrices(a) if b is None else solve(b, a)
    w, v = np.linalg.eig(x)
    w = w + 0j
    return (w, v) if right else w


def eigvals(a: Any, b: Any = None, **named: Any) -> Any:
    """Complex eigenvalues."""
    return eig(a, b, right=False)


def _tridiagonal(d: Any, e: Any) -> Any:
    return np.diag(d) + np.diag(e, 1) + np.diag(e, -1)


def _chosen(select: Any, name: str) -> None:
    if select not in ("a", 0, None):
        raise refuse(f"scipy.linalg.{name} with select is not known to riesz; take a part of all: w[:k], v[:, :k]")


def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: Any = "a", **named: Any) -> Any:
    """Eigenvalues and vectors of the symmetric matrix with diagonal d and e beside it."""
    _chosen(select, "eigh_tridiagonal")
    w, v = np.linalg.eigh(stacked_matrices(_tridiagonal(d, e)))
    return w if eigvals_only else (w, v)


def eigvalsh_tridiagonal(d: Any, e: Any, select: Any = "a", **named: Any) -> Any:
    """Its eigenvalues."""
    return eigh_tridiagonal(d, e, True, select)


def _from_bands(bands: Any, lower: bool) -> Any:
    count = np.shape(bands)[0]
    n = np.shape(bands)[1]
    total = 0.0
    for k in range(count):
        row = bands[k][: n - k] if lower else bands[count - 1 - k][k:]
        total = total + np.diag(row, k) + (np.diag(row, -k) if k else 0.0)
    return total


def eig_banded(a_band: Any, lower: bool = False, eigvals_only: bool = False, select: Any = "a", **named: Any) -> Any:
    """Eigenvalues and vectors of a symmetric matrix given by its bands."""
    _chosen(select, "eig_banded")
    w, v = np.linalg.eigh(_from_bands(a_band, lower))
    return w if eigvals_only else (w, v)


def eigvals_banded(a_band: Any, lower: bool = False, select: Any = "a", **named: Any) -> Any:
    """Its eigenvalues."""
    return eig_banded(a_band, lower, True, select)


def pinvh(a: Any, lower: bool = True, **named: Any) -> Any:
    """The pseudoinverse of a symmetric matrix."""
    return linalg.pinv(m.mirrored(stacked_matrices(a), bool(lower)))


def expm_frechet(A: Any, E: Any, compute_expm: bool = True, **named: Any) -> Any:
    """exp A and its derivative along E, as blocks of one exponential."""
    n = np.shape(A)[-1]
    both = analytic("expm")(np.block([[A, E], [np.zeros((n, n)), A]]))
    return (both[:n, :n], both[:n, n:]) if compute_expm else both[:n, n:]


def fractional_matrix_power(A: Any, t: Any) -> Any:
    """exp(t · ln A), and products for whole t."""
    if isinstance(t, (int, np.integer)) or (isinstance(t, float) and t.is_integer()):
        return np.linalg.matrix_power(A, int(t))
    return analytic("expm")(t * analytic("logm")(A))


def signm(A: Any, **named: Any) -> Any:
    """A · (A²)^(−1/2)."""
    x = stacked_matrices(A)
    return x @ inv(sqrtm(x @ x))


def _same(name: str) -> Any:
    def code(a: Any, atol: Any = None, rtol: Any = None) -> Any:
        x, y = a, np.swapaxes(a, -1, -2)
        exact = not atol and not rtol
        close = x == y if exact else np.abs(x - y) <= (atol or 0.0) + (rtol or 0.0) * np.abs(y)
        found = known(np.all(close))
        if found is None:
            raise refuse(f"scipy.linalg.{name} asks for numbers, which are not known here; leave it out")
        return found

    return code


# -- Riccati equations -------------------------------------------------------------------------------------------


def _care_array(a: Any, b: Any, q: Any, r: Any) -> Any:
    import scipy.linalg

    return scipy.linalg.solve_continuous_are(a, b, q, r)


def _care_move(d: Any, x: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
    """(A − BK)ᵀ·dX + dX·(A − BK) = −(dAᵀX + X·dA + dQ − XdB·K − Kᵀ·dBᵀX + Kᵀ·dR·K), K = R⁻¹BᵀX."""
    k = m.solve(r, b.mT @ x)
    closed = a - b @ k
    return m.sylvester(closed.mT, closed, -_moved(d, x, k))


def _moved(d: Any, x: Any, k: Any) -> Any:
    da, db, dq, dr = d
    halves = [None if da is None else x @ da, None if db is None else -(x @ db @ k)]
    parts = [half + half.mT for half in halves if half is not None]
    parts += [] if dq is None else [dq]
    return sum(parts[1:], parts[0]) if dr is None else sum(parts, k.mT @ dr @ k)


CARE = Smooth("solve_continuous_are", _care_array, lambda a, b, q, r: a, _care_move)


def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """X with AᵀX + XA − XBR⁻¹BᵀX + Q = 0."""
    if e is not None or s is not None:
        raise refuse("scipy.linalg.solve_continuous_are with e or s is not known to riesz for traced arrays")
    return m.applied(CARE, *linalg.together(a, b, q, r))


_DENSE = "op eigh of the dense matrix"
_EIGH = "as np.linalg.eigh"
COUNTERPARTS: dict[str, tuple[Any, str, str]] = {
    "eig": (eig, "op eig", "as np.linalg.eig"),
    "eigvals": (eigvals, "op eig", "as np.linalg.eigvals"),
    **{f.__name__: (f, _DENSE, _EIGH) for f in (eigh_tridiagonal, eigvalsh_tridiagonal, eig_banded, eigvals_banded)},
    "pinvh": (pinvh, "op pinv", "as np.linalg.pinv"),
    "expm_frechet": (expm_frechet, "op expm of a block matrix", "that of expm"),
    "fractional_matrix_power": (fractional_matrix_power, "ops logm and expm", "that of both"),
    "signm": (signm, "op sqrtm and a solve", "that of both"),
    **{name: (_same(name), "decided at the point", "none") for name in ("issymmetric", "ishermitian")},
    "solve_continuous_are": (solve_continuous_are, "one step; SciPy solves", "a Lyapunov equation"),
}
