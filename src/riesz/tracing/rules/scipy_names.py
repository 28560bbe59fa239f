"""Counterparts of SciPy functions that are written in Python and do not ask their arguments: used in their place while
tracing."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from ...runtime import later
from ...terms import primitives as p
from ..registry import NOTES, PARTS, as_called, by_name
from ..traced import Traced, primitive_step
from .elementwise import discrete, floating, where
from .reductions import total, unmoving_reduction


def _peak(x: Traced, axis: Any) -> Traced:
    """The maximum as a constant: shifting by it changes nothing but the size of the numbers."""
    top = unmoving_reduction(_top, x.dtype, x, axis, True)
    return where(discrete(np.isfinite, top), top, 0.0)


def _top(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.max(x, axis=axis, keepdims=keepdims, initial=-np.inf)


@by_name
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """ln Σ b·exp(a), without overflow. Its derivative is softmax."""
    if return_sign:
        raise NotImplementedError("logsumexp with return_sign=True is not known to riesz")
    x = floating(a)
    if not x.ndim:
        return x if b is None else x + np.log(b)
    top = _peak(x, axis)
    powers = np.exp(x - top) if b is None else np.exp(x - top) * b
    summed = primitive_step(p.ln, total(powers, axis, True)) + top
    return summed if keepdims else np.squeeze(summed, axis=tuple(range(x.ndim)) if axis is None else axis)


def softmax(x: Any, axis: Any = None) -> Any:
    """exp x / Σ exp x."""
    x = floating(x)
    powers = np.exp(x - _peak(x, axis))
    return powers / total(powers, axis, True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """x − logsumexp(x)."""
    x = floating(x)
    return x - logsumexp(x, axis, keepdims=True)


_special = {
    "logsumexp": (logsumexp, "ln Σ exp, shifted by the maximum", "softmax on dx"),
    "softmax": (softmax, "exp x / Σ exp x", "y · (dx − Σ y·dx)"),
    "log_softmax": (log_softmax, "x − logsumexp x", "dx − Σ softmax(x)·dx"),
}


_found: dict[Any, Any] = {}
_seen: set[str] = set()


def counterparts() -> dict[Any, Any]:
    """original → ours, for the modules of SciPy that are loaded. A module is looked at once."""
    for home in PARTS:
        module = sys.modules.get(home)
        if module is None or home in _seen or getattr(getattr(module, "__spec__", None), "_initializing", False):
            continue
        _seen.add(home)
        for name, (own, what, rule) in _own(home).items():
            original = getattr(module, name, None)
            if original is not None:
                named = home in ("scipy.linalg", "scipy.ndimage") and name != "block_diag"
                _found[original] = as_called(original, own) if named else own
                NOTES.setdefault(original, (what, rule))
    return _found


_ROOT = ("one step; SciPy finds the root", "dx = −(∂f/∂x)⁻¹ ∂f/∂p·dp")
_LEAST = ("one step; SciPy finds the minimum", "that of ∇f = 0, or of the active constraints (Karush, Kuhn, Tucker)")
_INTEGRAL = ("one step; SciPy integrates", "∫ ∂f/∂p·dp, f(b)·db − f(a)·da")
_FLOW = ("one step; SciPy solves the equation", "sensitivities, by the same solver")
CALLBACKS: dict[str, dict[str, tuple[str, str]]] = {
    "scipy.optimize": {
        **dict.fromkeys(("bisect", "brentq", "brenth", "ridder", "toms748", "newton", "fsolve"), _ROOT),
        **dict.fromkeys(("root", "root_scalar", "fixed_point"), _ROOT),
        **dict.fromkeys(("minimize", "minimize_scalar", "fminbound", "brent", "golden"), _LEAST),
        **dict.fromkeys(("fmin", "fmin_bfgs", "fmin_cg", "fmin_powell", "fmin_ncg", "fmin_l_bfgs_b"), _LEAST),
        **dict.fromkeys(("differential_evolution", "dual_annealing", "shgo", "direct"), _LEAST),
        **dict.fromkeys(("least_squares", "leastsq", "curve_fit", "nnls", "lsq_linear"), _LEAST),
        **dict.fromkeys(("broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing"), _ROOT),
        "newton_krylov": _ROOT,
    },
    "scipy.integrate": {
        **dict.fromkeys(("quad", "quad_vec", "dblquad", "tplquad", "nquad"), _INTEGRAL),
        **dict.fromkeys(("odeint", "solve_ivp"), _FLOW),
    },
}
"""Functions that are given functions: what they become (functions/implicit/scipy_callbacks.py), and their rules."""


def solvers() -> list[Any]:
    """Those of them that are loaded."""
    found: list[Any] = []
    for home, names in CALLBACKS.items():
        module = sys.modules.get(home)
        if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
            continue
        for name, note in names.items():
            found.append(getattr(module, name))
            NOTES.setdefault(found[-1], note)
    return found


def solved(original: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call of one of them inside a trace."""
    return later.solver_called(original, args, named)


_FILES = {
    "scipy.special": "special:PYTHON_FUNCTIONS",
    "scipy.linalg": "linalg.scipy_linalg:COUNTERPARTS linalg.matrix_functions:COUNTERPARTS",
    "scipy.fft": "fft:SCIPY_TRANSFORMS scientific.cosine_transforms:COUNTERPARTS",
    "scipy.signal": "scipy_signal:COUNTERPARTS scientific.rank_filters:SIGNAL",
    "scipy.sparse": "sparse.sparse_functions:SPARSE",
    "scipy.sparse.linalg": "sparse.sparse_functions:LINALG",
    "scipy.spatial": "scientific.distances:SPATIAL",
    "scipy.spatial.distance": "scientific.distances:COUNTERPARTS",
    "scipy.interpolate": """scientific.interpolators:COUNTERPARTS interpolation.fitpack_splines:COUNTERPARTS
        interpolation.scattered_data:COUNTERPARTS""",
    "scipy.integrate": "scientific.fits:INTEGRATE",
    "scipy.ndimage": "scientific.images:COUNTERPARTS scientific.rank_filters:COUNTERPARTS",
    "scipy.stats": "scientific.samples:COUNTERPARTS",
}
"""Part of SciPy → the tables of counterparts, each as file:name."""


def _own(home: str) -> dict[str, tuple[Any, str, str]]:
    found = dict(_special) if home == "scipy.special" else {}
    for table in _FILES.get(home, "").split():
        file, name = table.split(":")
        found |= getattr(import_module(f".{file}", __package__), name)
    return found
