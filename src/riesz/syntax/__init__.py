"""From what people write to programs: plain NumPy code, traced; text expressions; control flow."""

from . import complex_arrays, complexes, elementwise, fourier, linalg, norms, products, rearranging, reductions, sorting, special  # the rules enter themselves

__all__ = ["complex_arrays", "complexes", "elementwise", "fourier", "linalg", "norms", "products", "rearranging", "reductions", "sorting", "special"]
