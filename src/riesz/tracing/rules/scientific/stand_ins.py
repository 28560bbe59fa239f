"""Classes of SciPy's (and np.vectorize) whose objects convert their arguments, and our own counterparts.

A counterpart is made by the same call as SciPy's object (`CubicSpline(x, y)` with traced y), or of such an object
(`counterpart.of(spline)`), and has its methods. functions/versions/answering.py puts one in the place of the other
where something traced comes along.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

_DISTRIBUTIONS = "rv_continuous rv_discrete rv_continuous_frozen rv_discrete_frozen"
_SPLINES = """interp1d PPoly CubicSpline CubicHermiteSpline PchipInterpolator Akima1DInterpolator BSpline
RegularGridInterpolator"""
_FITPACK = "UnivariateSpline InterpolatedUnivariateSpline LSQUnivariateSpline RectBivariateSpline"
_SCATTERED = """RBFInterpolator LinearNDInterpolator NearestNDInterpolator BarycentricInterpolator
KroghInterpolator"""
TABLE: dict[str, str] = {
    **dict.fromkeys(_DISTRIBUTIONS.split(), "distributions"),
    **dict.fromkeys(["multi_rv_generic", "multi_rv_frozen", "gaussian_kde"], "multivariate"),
    **dict.fromkeys(_SPLINES.split(), "interpolators"),
    **dict.fromkeys(_FITPACK.split(), ".interpolation.fitpack_splines"),
    **dict.fromkeys(_SCATTERED.split(), ".interpolation.scattered_data"),
    "vectorize": "fits",
    "SuperLU": ".sparse.sparse_functions",
}
"""Class of SciPy's → the file with the counterpart, seen from here, entered there under the same name in `CLASSES`."""


def of_libraries(kind: type) -> bool:
    """Whether a class may have a counterpart here."""
    return kind.__module__.startswith("scipy.") or kind is np.vectorize or kind.__name__ == "SuperLU"


@lru_cache(1024)
def counterpart(kind: type) -> Any:
    """Our own class for a class of SciPy's; None where there is none."""
    if not of_libraries(kind):
        return None
    for base in kind.__mro__:
        if base.__name__ in TABLE and of_libraries(base):
            return import_module(f".{TABLE[base.__name__]}", __package__).CLASSES.get(base.__name__)
    return None


def loaded() -> list[type]:
    """The classes of the table that are loaded."""
    homes = ("scipy.stats._distn_infrastructure", "scipy.stats._multivariate", "scipy.stats", "scipy.interpolate")
    homes = (*homes, "scipy.sparse.linalg")
    spaces = [vars(sys.modules[home]) for home in homes if home in sys.modules]
    spaces.append({"vectorize": np.vectorize})
    return list({id(k): k for space in spaces for name in TABLE if isinstance(k := space.get(name), type)}.values())
