"""From what people write to programs: plain NumPy code, traced; text expressions; control flow."""

from . import elementwise, products, rearranging, reductions  # the rules enter themselves

__all__ = ["elementwise", "products", "rearranging", "reductions"]
