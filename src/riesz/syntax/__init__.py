"""From what people write to programs: plain NumPy code, traced; text expressions; control flow."""

from . import (  # the rules enter themselves
    complex_arrays,
    complex_functions,
    complexes,
    elementwise,
    fourier,
    linalg,
    norms,
    products,
    rearranging,
    reductions,
    sorting,
    special,
    statistics,
)

__all__ = [
    "complex_arrays",
    "complex_functions",
    "complexes",
    "elementwise",
    "fourier",
    "linalg",
    "norms",
    "products",
    "rearranging",
    "reductions",
    "sorting",
    "special",
    "statistics",
]
