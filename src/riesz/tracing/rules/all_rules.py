"""All rules: each file enters its own when it is imported. The first trace loads them; `import riesz` alone need not.

Those of scipy.special (special.py) are found when one of its ufuncs is called.
"""

from ..writing import writers
from . import array_products, elementwise, fft, gathering, quantiles, rearranging, reductions, sorting, statistics
from .complex import complex_arrays, complex_functions, complex_linalg, complex_pairs
from .linalg import norms, numpy_linalg
from .relational import folds
from .scientific import fits
from .sparse import sparse_arrays

RULES = (
    *(array_products, elementwise, fft, gathering, quantiles, rearranging, reductions, sorting, statistics),
    *(
        complex_arrays,
        complex_functions,
        complex_linalg,
        complex_pairs,
        fits,
        folds,
        norms,
        numpy_linalg,
        sparse_arrays,
        writers,
    ),
)
"""Every file of rules for NumPy."""


def load_rules() -> None:
    """Nothing more to do: importing this file entered all rules."""
