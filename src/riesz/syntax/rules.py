"""All rules: each module enters its own when it is imported. The first trace imports this; `import riesz` alone need not."""

from . import (
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
