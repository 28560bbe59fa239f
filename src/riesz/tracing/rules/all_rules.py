"""All rules. Those of usual functions are entered with the first trace; `import riesz` alone loads none.

The others wait in a table: which functions a file answers for. It is loaded when one of them is called on something
traced. Rules of scipy.special (special.py) are found when one of its ufuncs is called, rules of other parts of SciPy
(scipy_names.py) when that part is loaded.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from .. import calls
from ..registry import BY_NAME, COMPLEX, FUNCTIONS, WRITERS, Later
from . import array_products, elementwise, gathering, rearranging, reductions

USUAL = (calls, array_products, elementwise, gathering, rearranging, reductions)
"""Files whose rules are entered at once."""
LATER = {
    "rules.fft": """fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftn fft.fft2 fft.ifftn fft.ifft2
        fft.rfftn fft.rfft2 fft.irfftn fft.irfft2 fft.fftshift fft.ifftshift""",
    "rules.complex.complex_linalg": "linalg.eig linalg.eigvals",
    "rules.linalg.norms": "linalg.norm linalg.vector_norm linalg.matrix_norm linalg.cond",
    "rules.linalg.numpy_linalg": """linalg.solve linalg.svd linalg.pinv linalg.matrix_power
        linalg.qr linalg.lstsq linalg.matrix_rank linalg.tensorsolve linalg.tensorinv linalg.inv linalg.det
        linalg.slogdet linalg.cholesky linalg.eigh linalg.eigvalsh linalg.svdvals""",
    "rules.quantiles": "quantile percentile median nanquantile nanpercentile nanmedian",
    "rules.relational.bins": "bincount histogram histogram2d histogramdd histogram_bin_edges",
    "rules.scientific.fits": """vander polyfit polyadd polysub polymul polyint polydiv poly unwrap apply_along_axis
        apply_over_axes""",
    "rules.sorting": """argsort sort argpartition partition lexsort searchsorted digitize interp take_along_axis choose
        nanargmax nanargmin unravel_index ravel_multi_index diag_indices_from tril_indices_from triu_indices_from
        argwhere trim_zeros union1d intersect1d setdiff1d setxor1d unique unique_all unique_counts unique_inverse
        unique_values sort_complex""",
    "rules.statistics": """
        cov corrcoef polyval logspace geomspace nanvar nanstd polyder roots""",
    "writing.masked": "nonzero flatnonzero extract",
}
"""File → the functions of NumPy's that it answers for."""
WRITES = {
    "writing.writers": "copyto fill_diagonal put putmask place put_along_axis",
}
"""File → the functions of NumPy's that write, which it has rules for."""
NAMES = {
    "rules.complex.complex_pairs": "joined parts_of call_complex call_complex_ufunc complex_convert",
    "rules.sparse.sparse_arrays": "with_numbers",
    "rules.relational.folds": "reduceat",
    "rules.scipy_names": "logsumexp",
    "rules.special": "special_rule",
    "writing.masked": "masked",
    "writing.noted_sums": "added_to_view part",
    "writing.waiting": "plus",
    "writing.writers": "assign Flat ufunc_on function_on",
}
"""File → what it enters by name (`registry.by_name`)."""
COMPLEX_FILES = (
    *("rules.complex.complex_functions", "rules.complex.complex_arrays", "rules.complex.complex_linalg", "rules.fft"),
)
"""Files with rules for complex arguments."""
SCIPY_FILES = ("rules.linalg.scipy_linalg", "rules.linalg.matrix_functions")
"""Files of functions with a differential that pickles name, and that are loaded with SciPy alone."""


def _whole(file: str) -> str:
    return f"{__name__.split('.')[0]}.tracing.{file}"


def _numpys(name: str) -> Any:
    """A function of NumPy's; None where this NumPy has none of that name."""
    return reduce(lambda x, part: getattr(x, part, None), name.split("."), np)


for _table, _rows in ((FUNCTIONS, LATER), (WRITERS, WRITES), (BY_NAME, NAMES)):
    for _file, _names in _rows.items():
        for _name in _names.split():
            if (_key := _name if _table is BY_NAME else _numpys(_name)) is not None:
                Later(_table, _key, _whole(_file))
COMPLEX.files = tuple(map(_whole, COMPLEX_FILES))


def load_rules() -> None:
    """Load every file of rules: for the table of coverage, and for functions that a pickle names."""
    for file in (*LATER, *WRITES, *NAMES, *COMPLEX_FILES, *SCIPY_FILES):
        import_module(_whole(file))
